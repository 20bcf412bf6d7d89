// The profile as tables of functions, of the tree and of waits, for the keyboard and for screen readers.

const MAX_ROWS = 300;

class Tables {
	constructor(app) {
		this.app = app;
		this.place = document.getElementById('table');
		this.sort = 'self';
		this.opened = null; // nodes of the tree; null: those of the hot paths
	}

	draw() {
		const {app} = this, key = [app.version, this.sort].join();
		if (this.key === key)
			return;
		this.key = key;
		const at = document.activeElement?.dataset?.id;
		this.place.replaceChildren(app.state.view === 'functions' ? this.functions() : this.tree());
		if (at !== undefined)
			this.place.querySelector(`[data-id="${Number(at)}"]`)?.focus();
	}

	// Returns a small stacked bar of the kinds.
	mix(kinds, total) {
		const bar = element('span', '', {class: 'mix'});
		kinds.forEach((time, kind) => {
			if (!(time > 0))
				return;
			const part = element('span');
			part.style.width = 100 * time / total + '%';
			part.style.backgroundColor = this.app.looks[kind].colour;
			bar.append(part);
		});
		bar.title = kinds.map((time, kind) => [time, this.app.looks[kind].words])
			.filter(([time]) => time > 0).map(([time, kind]) => `${kind} ${formatShare(time, total)}`).join(', ');
		return bar;
	}

	head(columns) {
		const row = element('tr');
		for (const [label, sort] of columns) {
			const cell = element('th', sort ? '' : label, {scope: 'col'});
			if (sort) {
				cell.setAttribute('aria-sort', this.sort === sort ? 'descending' : 'none');
				const button = element('button', label, {type: 'button'});
				button.addEventListener('click', () => {
					this.sort = sort;
					this.app.draw();
				});
				cell.append(button);
			}
			row.append(cell);
		}
		return element('thead', '', {}, row);
	}

	times(total) {
		const {profile, sums} = this.app;
		return [element('td', formatTime(total * profile.unit)), element('td', formatShare(total, sums.time))];
	}

	// A name with its file and line, or its module.
	nameCells(frame, name) {
		const where = element('span', this.app.whereOf(frame).slice(0, 200), {class: 'where'});
		name.classList.toggle('own', this.app.isOwn(frame));
		return [name, ' ', where];
	}

	functions() {
		const {app} = this, {profile, sums} = app, {frames} = profile, credits = app.hasOwn && !app.state.raw;
		const found = credits ? sums.ownFunctions ??= functionSums(profile, sums, null, ownPlaces(profile))
			: sums.functions ??= functionSums(profile, sums);
		const order = this.sort === 'name'
			? (a, b) => app.shortName(a) < app.shortName(b) ? -1 : 1
			: (a, b) => found[this.sort][b] - found[this.sort][a] || found.total[b] - found.total[a];
		const list = Array.from({length: frames.n}, (_, frame) => frame)
			.filter(frame => found.total[frame] > 0).sort(order);
		const body = element('tbody');
		for (const frame of list.slice(0, MAX_ROWS)) {
			const about = [app.frameName(frame), app.placeOf(frame)].filter(Boolean).join('\n').slice(0, 1000);
			const name = element('button', app.shortName(frame).slice(0, 1000), {class: 'name', type: 'button', title: about});
			name.addEventListener('click', () => app.go({view: 'sandwich', fn: frame}));
			const kinds = found.byKind.map(values => values ? values[frame] : 0);
			body.append(element('tr', '', this.matchClass(frame),
				...this.times(found.self[frame]), ...this.times(found.total[frame]),
				element('td', '', {}, this.mix(kinds, found.total[frame])), element('td', '', {}, ...this.nameCells(frame, name))));
		}
		const more = list.length - MAX_ROWS;
		const table = element('table', '', {},
			this.head([['self', 'self'], ['self %', null], ['total', 'total'], ['total %', null], ['kinds', null], ['function', 'name']]), body);
		if (more > 0)
			table.append(element('caption', `${more} functions with less time are not shown`));
		return table;
	}
	matchClass(frame) {
		const {matches} = this.app;
		return matches ? {class: matches.byFrame[frame] ? 'match' : 'miss'} : {};
	}

	// Returns what the table shows: the calls, or who makes them wait.
	calls() {
		const {app} = this, {profile, sums} = app;
		return app.state.view === 'tree' ? {nodes: profile.nodes, sums} : sums.blame ??= blameTree(profile, app.choice(), sums);
	}
	// Returns the nodes of it that are open. A tree of waits is a new one for each choice.
	open() {
		const calls = this.calls();
		if (this.app.state.view === 'tree')
			return this.opened ??= this.hotPaths(calls);
		return calls.opened ??= this.hotPaths(calls);
	}

	tree() {
		const body = element('tbody');
		this.addRows(body, ROOT, 1);
		const table = element('table', '', {role: 'treegrid', 'aria-label': 'Calls'},
			this.head([['total', null], ['total %', null], ['self', null], ['self %', null], ['kinds', null], ['function', null]]), body);
		table.addEventListener('keydown', event => this.key_(event));
		return table;
	}
	addRows(body, node, level) {
		const {app} = this, {nodes, sums} = this.calls(), label = nodes.label?.[node];
		const children = [];
		for (let i = node + 1; i < nodes.next[node]; i = nodes.next[i])
			if (sums.total[i] > 0)
				children.push(i);
		children.sort((a, b) => sums.total[b] - sums.total[a]);
		const open = this.open().has(node);
		const attributes = {role: 'row', 'aria-level': level, tabindex: node === ROOT ? 0 : -1, 'data-id': node};
		if (children.length > 0)
			attributes['aria-expanded'] = open;
		Object.assign(attributes, label ? {} : this.matchClass(nodes.frame[node]));
		const kinds = sums.byKind.map(values => values ? values[node] : 0);
		const sign = children.length === 0 ? '\u2003' : open ? '\u25be ' : '\u25b8 ';
		const text = element('span', app.shortName(nodes.frame[node]).slice(0, 1000), {title: app.frameName(nodes.frame[node]).slice(0, 1000)});
		const name = element('td', '', {role: 'gridcell'}, sign, ...label ? [label.slice(0, 1000)] : this.nameCells(nodes.frame[node], text));
		name.style.paddingLeft = level * 0.9 + 'rem';
		const cells = [...this.times(sums.total[node]), ...this.times(sums.self[node]),
			element('td', '', {}, this.mix(kinds, sums.total[node]))];
		cells.forEach(cell => cell.setAttribute('role', 'gridcell'));
		const row = element('tr', '', attributes, ...cells, name);
		row.addEventListener('click', () => this.toggle(node));
		body.append(row);
		if (open)
			for (const child of children.slice(0, MAX_ROWS))
				this.addRows(body, child, level + 1);
	}
	// Returns the nodes to open at first: those that most of the time goes through, a screen of them.
	hotPaths({nodes, sums}) {
		const opened = new Set([ROOT]);
		let todo = [ROOT];
		for (let rows = 0; todo.length > 0 && rows < 30;) {
			const node = todo.shift();
			opened.add(node);
			for (let i = node + 1; i < nodes.next[node]; i = nodes.next[i])
				if (sums.total[i] > 0)
					rows++;
			for (let i = node + 1; i < nodes.next[node]; i = nodes.next[i])
				if (sums.total[i] > 0.08 * sums.time)
					todo.push(i);
			todo.sort((a, b) => sums.total[b] - sums.total[a]);
		}
		return opened;
	}
	toggle(node, open = !this.open().has(node)) {
		if (open)
			this.open().add(node);
		else
			this.open().delete(node);
		this.key = null;
		this.app.draw();
	}
	// Handles keys as the WAI-ARIA treegrid does: right opens, left closes or goes to the
	// parent.
	key_(event) {
		const row = event.target.closest('[data-id]');
		if (!row)
			return;
		const node = Number(row.dataset.id), {nodes} = this.calls();
		const go = other => { if (other) { other.tabIndex = 0; other.focus(); } };
		const at = id => this.place.querySelector(`[data-id="${id}"]`);
		const actions = {
			ArrowDown: () => go(row.nextElementSibling), ArrowUp: () => go(row.previousElementSibling),
			ArrowRight: () => this.open().has(node) ? go(row.nextElementSibling) : this.toggle(node, true),
			ArrowLeft: () => this.open().has(node) ? this.toggle(node, false) : go(at(nodes.parent[node])),
			Enter: () => nodes === this.app.profile.nodes ? this.app.go({view: 'flame', zoom: node}) : this.toggle(node),
		};
		if (!actions[event.key])
			return;
		actions[event.key]();
		event.preventDefault();
		event.stopPropagation();
	}
}
