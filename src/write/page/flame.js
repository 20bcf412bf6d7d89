// The graph: a box for each function, as wide as its time and coloured by the kinds of its time.
// Shows a flame graph, callers, one function with both its callers and callees, or calls in the
// order of time. A box narrower than half a pixel is left out with all that is in it, so that the
// cost of drawing depends on what is seen.

const BOX_HEIGHT = 19, LEAST_WIDTH = 0.5, MAX_BOXES = 30000;

class Graph {
	constructor(app) {
		this.app = app;
		this.canvas = document.getElementById('graph-canvas');
		this.scroll = document.getElementById('graph-scroll');
		this.space = document.getElementById('graph-space');
		this.rows = []; // lists of boxes, from left to right
		this.hover = null;
		this.focus = null; // the box that the arrow keys move, as [row, x, frame]
		const {canvas} = this;
		canvas.addEventListener('pointermove', event => this.move(event));
		canvas.addEventListener('pointerleave', () => this.leave());
		canvas.addEventListener('click', event => this.click(event));
		canvas.addEventListener('contextmenu', event => this.menu(event));
		this.scroll.addEventListener('scroll', () => app.draw());
	}

	// A box: {row, x, width, frame, total, node or group, dim}.
	add(box) {
		(this.rows[box.row] ??= []).push(box);
		this.n_boxes++;
		return box;
	}

	layout() {
		const {state} = this.app;
		this.rows = [];
		this.n_boxes = 0;
		this.pivot = 0;
		({flame: () => this.layoutFlame(), callers: () => this.layoutCallers(),
			sandwich: () => this.layoutSandwich(), time: () => this.layoutTime()})[state.view]?.();
	}

	layoutFlame() {
		const {profile, sums, state} = this.app, {nodes} = profile;
		const zoom = state.zoom < nodes.n ? state.zoom : ROOT, whole = sums.total[zoom];
		for (let i = zoom; i !== ROOT;) {
			i = nodes.parent[i];
			this.add({row: nodes.depth[i], x: 0, width: this.width, frame: nodes.frame[i], total: sums.total[i], node: i, dim: true});
		}
		if (!(whole > 0))
			return;
		const scale = this.width / whole, x = new Float64Array(profile.nodes.maxDepth + 2);
		for (let i = zoom, end = nodes.next[zoom]; i < end;) {
			const total = sums.total[i], depth = nodes.depth[i], width = total * scale;
			if (width < LEAST_WIDTH) {
				x[depth] += width;
				i = nodes.next[i];
				continue;
			}
			this.add({row: depth, x: x[depth], width, frame: nodes.frame[i], total, node: i});
			x[depth + 1] = x[depth];
			x[depth] += width;
			i++;
		}
	}

	// Lays out groups side by side in a row, and what split() makes of each in the next row.
	layoutGroups(groups, row, x, scale, step, split) {
		const todo = [{groups, row, x}];
		while (todo.length > 0 && this.n_boxes < MAX_BOXES) {
			const {groups: here, row: at, x: left} = todo.pop();
			let from = left;
			for (const group of here) {
				const width = group.total * scale;
				if (width < LEAST_WIDTH)
					break; // sorted: all others are narrower, too
				this.add({row: at, x: from, width, frame: group.frame, total: group.total, group});
				todo.push({groups: group.parts ??= split(group), row: at + step, x: from});
				from += width;
			}
		}
	}

	layoutCallers() {
		const {profile, sums, state} = this.app;
		let groups = sums.leaves ??= leafGroups(profile, sums), whole = sums.time, row = 1;
		this.add({row: 0, x: 0, width: this.width, frame: profile.nodes.frame[ROOT], total: sums.time, node: ROOT, dim: state.path.length > 0});
		const split = group => splitByCaller(profile, group);
		for (const [i, frame] of state.path.entries()) {
			const group = groups.find(one => one.frame === frame);
			if (!group)
				break;
			whole = group.total;
			groups = [group];
			if (i + 1 < state.path.length) {
				this.add({row: row++, x: 0, width: this.width, frame, total: group.total, group, dim: true});
				groups = group.parts ??= split(group);
			}
		}
		if (whole > 0)
			this.layoutGroups(groups, row, 0, this.width / whole, 1, split);
	}

	layoutSandwich() {
		const {profile, sums, state} = this.app;
		const group = functionGroup(profile, sums, state.fn);
		if (!(group.total > 0))
			return;
		const scale = this.width / group.total;
		this.layoutGroups(splitByCaller(profile, group), 0, 0, scale, 1, one => splitByCaller(profile, one));
		this.rows.reverse(); // so that the nearest callers are next to the function
		this.pivot = this.rows.length;
		this.rows.forEach((boxes, row) => boxes.forEach(box => { box.row = row; }));
		this.add({row: this.pivot, x: 0, width: this.width, frame: state.fn, total: group.total, group});
		this.layoutGroups(splitByCallee(profile, group), this.pivot + 1, 0, scale, 1, one => splitByCallee(profile, one));
	}

	// Lays out one thread's calls in the order of time. Neighbours in the same call are one
	// box.
	layoutTime() {
		const {profile, state} = this.app, {runs, nodes} = profile;
		const thread = this.app.timeThread(), open = [];
		const scale = this.width / (state.to - state.from);
		const close = (depth, end) => {
			for (; open.length > depth;) {
				const box = open.pop();
				box.total = end - box.from;
				box.width = box.total * scale;
				if (box.width >= LEAST_WIDTH && this.n_boxes < MAX_BOXES)
					this.add(box);
			}
		};
		let last = state.from;
		if (thread)
			eachRun(profile, [thread], state.from, state.to, i => {
				const start = Math.max(runs.start[i], state.from), path = [];
				for (let node = runs.node[i]; node !== ROOT; node = nodes.parent[node])
					path.push(node);
				path.reverse();
				let same = start === last ? 0 : -1;
				while (same >= 0 && same < path.length && open[same]?.node === path[same] &&
					(same < path.length - 1 || open[same].kind === runs.kind[i]))
					same++;
				close(Math.max(same, 0), last);
				for (let depth = open.length; depth < path.length; depth++)
					open.push({row: depth, x: (start - state.from) * scale, from: start, node: path[depth],
						frame: nodes.frame[path[depth]], kind: depth === path.length - 1 ? runs.kind[i] : -1, timed: true});
				last = Math.min(runs.end[i], state.to);
			});
		close(0, last);
		for (const row of this.rows)
			row?.sort((a, b) => a.x - b.x);
	}

	// Returns the time of each kind within the box.
	kindsOf(box) {
		if (!box.kinds) {
			const {profile, state, sums} = this.app;
			if (box.timed)
				box.kinds = this.kindsInTime(box);
			else if (box.node !== undefined)
				box.kinds = sums.byKind.map(values => values ? values[box.node] : 0);
			else
				box.kinds = box.group.kinds ??= kindsOfGroup(box.group,
					state.view === 'callers' ? selfByKind(profile, this.app.choice(), sums) : sums.byKind);
		}
		return box.kinds;
	}
	kindsInTime(box) {
		const {profile} = this.app, kinds = profile.kinds.map(() => 0);
		eachRun(profile, [this.app.timeThread()], box.from, box.from + box.total, (i, length) => {
			kinds[profile.runs.kind[i]] += length;
		});
		return kinds;
	}

	draw() {
		this.width = this.scroll.clientWidth;
		const key = [this.app.version, this.width].join();
		if (this.key !== key) {
			this.layout();
			this.key = key;
		}
		const full = this.rows.length * BOX_HEIGHT + 4, height = this.scroll.clientHeight;
		this.space.style.height = Math.max(0, full - height) + 'px';
		const context = fitCanvas(this.canvas, this.width, height);
		this.colours = themeColours();
		context.fillStyle = this.colours.paper;
		context.fillRect(0, 0, this.width, height);
		this.shades = this.app.looks.map(shadesOf);
		this.lettering = new Lettering(context, 12);
		context.textBaseline = 'middle';
		for (const boxes of this.rows)
			for (const box of boxes ?? [])
				this.paint(context, box);
		this.paintFrames(context);
		this.canvas.setAttribute('aria-label', this.summary());
	}

	// Returns the row's place: rows go down from the top, or with state.flip up from the
	// bottom.
	y(row) {
		const {state} = this.app, height = this.scroll.clientHeight;
		const full = Math.max(this.rows.length * BOX_HEIGHT + 4, height);
		const at = state.flip ? full - (row + 1) * BOX_HEIGHT - 2 : row * BOX_HEIGHT + 2;
		return at - this.scroll.scrollTop;
	}

	paint(context, box) {
		const y = this.y(box.row), {app} = this;
		if (y < -BOX_HEIGHT || y > this.scroll.clientHeight)
			return;
		const width = Math.max(0.5, box.width - (box.width > 3 ? 1 : 0));
		// A search dims what it does not find.
		const matches = app.matches?.byFrame[box.frame], missed = app.matches && !matches;
		context.globalAlpha = missed ? 0.22 : box.dim ? 0.5 : 1;
		this.fill(context, box, y, width);
		if (matches) {
			context.fillStyle = this.colours.match;
			context.fillRect(box.x, y + BOX_HEIGHT - 3, width, 2);
		}
		if (width > 20) {
			this.lettering.bold(context, app.isOwn(box.frame));
			context.globalAlpha = missed ? 0.6 : box.dim ? 0.7 : 1;
			context.fillStyle = missed || box.dim ? this.colours.ink : this.colours['on-kind'];
			this.write(context, box, y + BOX_HEIGHT / 2, width - 6);
		}
		context.globalAlpha = 1;
	}

	// Writes the function's name and, where there is room, its file and line.
	write(context, box, y, room) {
		const {app, lettering} = this, name = app.shortName(box.frame), used = (name.length + 2) * lettering.character;
		lettering.draw(context, name, box.x + 3, y, room);
		const place = used + 5 * lettering.character > room ? '' : app.boxPlaceOf(box.frame);
		if (!place)
			return;
		context.globalAlpha *= 0.7;
		lettering.bold(context, false);
		lettering.draw(context, place, box.x + 3 + used, y, room - used);
	}

	fill(context, box, y, width) {
		const kinds = this.kindsOf(box), height = BOX_HEIGHT - 1, shade = this.app.shadeOf(box.frame);
		if (this.app.base) {
			context.fillStyle = this.app.differenceColour(box);
			context.fillRect(box.x, y, width, height);
			return;
		}
		if (box.timed && box.kind < 0) { // the boxes within it show the kinds, each at its time
			context.fillStyle = this.colours.same;
			context.fillRect(box.x, y, width, height);
			return;
		}
		if (width < 3) {
			context.fillStyle = this.shades[kinds.indexOf(Math.max(...kinds))][shade];
			context.fillRect(box.x, y, width, height);
			return;
		}
		let x = box.x;
		for (let kind = 0; kind < kinds.length; kind++) {
			const part = kinds[kind] / box.total * width;
			if (part <= 0)
				continue;
			context.fillStyle = this.shades[kind][shade];
			context.fillRect(x, y, part, height);
			x += part;
		}
	}

	paintFrames(context) {
		const frame = (box, colour, thick) => {
			context.strokeStyle = colour;
			context.lineWidth = thick;
			context.strokeRect(box.x + thick / 2, this.y(box.row) + thick / 2, Math.max(1, box.width - 1 - thick), BOX_HEIGHT - 1 - thick);
		};
		if (this.hover)
			frame(this.hover, this.colours.ink, 1.5);
		const focus = this.focusBox();
		if (focus && document.activeElement === this.scroll)
			frame(focus, this.colours.accent, 3);
	}

	summary() {
		const {app} = this, heaviest = this.rows[1]?.reduce((a, b) => a.total >= b.total ? a : b);
		return `Graph of ${formatTime(app.sums.time * app.profile.unit)}` +
			(heaviest ? `; widest: ${app.frameName(heaviest.frame).slice(0, 80)}` : '');
	}

	boxAt(x, y) {
		for (let row = 0; row < this.rows.length; row++) {
			const top = this.y(row);
			if (y >= top && y < top + BOX_HEIGHT)
				return this.rows[row]?.find(box => x >= box.x && x < box.x + Math.max(1, box.width)) ?? null;
		}
		return null;
	}

	move(event) {
		const box = this.boxAt(event.offsetX, event.offsetY);
		if (box !== this.hover) {
			this.hover = box;
			this.app.draw();
		}
		if (box)
			this.app.showTip(event, this.describe(box));
		else
			this.app.hideTip();
	}
	leave() {
		this.hover = null;
		this.app.hideTip();
		this.app.draw();
	}
	click(event) {
		const box = this.boxAt(event.offsetX, event.offsetY);
		if (box) {
			this.focus = box;
			this.zoom(box);
			this.hover = null;
			this.app.hideTip(); // until the pointer moves: it would cover what is now shown
		}
	}

	// Zooms into the box, or out again if it is the one that was zoomed into.
	zoom(box) {
		const {state} = this.app;
		if (box.timed)
			this.app.go({from: Math.round(box.from), to: Math.round(Math.max(box.from + 1, box.from + box.total))});
		else if (state.view === 'callers')
			this.app.go({path: this.pathTo(box)});
		else if (state.view === 'flame')
			this.app.go({zoom: box.node});
		else
			this.app.go({fn: box.frame});
	}
	// Returns the frames that lead to a box of the callers, from its row upwards.
	pathTo(box) {
		const path = [];
		const middle = box.x + box.width / 2;
		for (let row = 1; row <= box.row; row++) {
			const part = this.rows[row].find(one => middle >= one.x && middle < one.x + one.width);
			path.push(part.frame);
		}
		return path;
	}

	// Returns the lines of the tooltip.
	describe(box) {
		const {app} = this, {profile, sums} = app, unit = profile.unit;
		const node = box.node;
		const zoomed = app.state.view === 'flame' ? sums.total[app.state.zoom] : sums.time;
		const lines = [app.frameName(box.frame), app.placeOf(box.frame)];
		let times = `${formatTime(box.total * unit)}, ${formatShare(box.total, sums.time)} of the selection`;
		if (zoomed !== sums.time)
			times += `, ${formatShare(box.total, zoomed)} of the zoom`;
		if (node !== undefined && !box.timed)
			times += `, self ${formatTime(sums.self[node] * unit)}`;
		lines.push(times, profile.timed ? this.describeKinds(box) : '');
		if (app.base)
			lines.push(app.describeDifference(box));
		lines.push(...this.describeWaits(box));
		return lines;
	}
	describeKinds(box) {
		return this.kindsOf(box)
			.map((time, kind) => [time, this.app.looks[kind].words])
			.filter(([time]) => time > 0).sort((a, b) => b[0] - a[0])
			.map(([time, kind]) => `${kind} ${formatShare(time, box.total)}`).join('  ');
	}
	describeWaits(box) {
		const {profile, sums} = this.app, {nodes} = profile;
		if (box.timed || !profile.timed)
			return [];
		if (!box.waits) {
			let isIn = node => node >= box.node && node < nodes.next[box.node];
			if (box.node === undefined) {
				const of = new Set(box.group.of);
				const tops = this.app.state.view === 'callers' ? null : [...of].sort((a, b) => a - b);
				isIn = node => tops ? isBelow(tops, nodes, node) : of.has(node);
			}
			box.waits = waitsOf(profile, this.app.choice(), sums, isIn);
		}
		const {waits, longest} = box.waits, unit = profile.unit, lines = [];
		if (longest && longest.time * profile.meta.unit_ns >= profile.meta.stretch_ns)
			lines.push(`longest wait ${formatTime(longest.time * unit)} (${longest.thread.title}, ` +
				`at ${formatTime(profile.runs.start[longest.run] * unit)})`);
		if (waits.length > 0)
			lines.push(waits.slice(0, 4).map(([text, time]) => `${formatTime(time * unit)} ${text}`).join('; '));
		return lines;
	}

	menu(event) {
		const box = this.boxAt(event.offsetX, event.offsetY);
		if (!box)
			return;
		event.preventDefault();
		const {app} = this;
		app.openMenu(event, [
			['Zoom into it', () => this.zoom(box)],
			['Show its callers and callees', () => app.go({view: 'sandwich', fn: box.frame})],
			['Hide all stacks with it', () => { this.focus = box; app.putAway('hide'); }],
			['Hide its callees', () => { this.focus = box; app.putAway('fold'); }],
			['Search for it', () => app.searchName(app.frameName(box.frame))],
			['Copy its name', () => app.copy(app.frameName(box.frame))],
			...(box.node === undefined ? [] : [['Copy its stack', () => app.copy(app.stackOf(box.node).join('\n'))]]),
		]);
	}

	focusBox() {
		if (!this.focus)
			return null;
		const {row, x, frame} = this.focus;
		return this.rows[row]?.find(box => box.frame === frame && Math.abs(box.x - x) < 1) ?? null;
	}
	// Moves the focus to the neighbour in the direction (dx, dy); up is towards the root.
	moveFocus(dx, dy) {
		const here = this.focusBox() ?? this.rows[0]?.[0];
		if (!here)
			return;
		const middle = here.x + here.width / 2;
		let there = here;
		if (!this.focusBox())
			there = here;
		else if (dy !== 0)
			there = this.nearest(here.row + dy, dy > 0 ? here : null, middle);
		else
			there = this.rows[here.row][this.rows[here.row].indexOf(here) + dx];
		if (!there)
			return;
		this.focus = there;
		this.reveal(there);
		this.app.say(this.describe(there).join('. '));
		this.app.draw();
	}
	// Returns the widest box below `above` in the row, or the box at x.
	nearest(row, above, x) {
		const boxes = this.rows[row] ?? [];
		if (!above)
			return boxes.find(box => x >= box.x && x < box.x + box.width) ?? boxes[0];
		return boxes.filter(box => box.x >= above.x - 0.5 && box.x < above.x + above.width)
			.reduce((a, b) => !a || b.width > a.width ? b : a, null);
	}
	reveal(box) {
		const y = this.y(box.row), height = this.scroll.clientHeight;
		if (y < 0)
			this.scroll.scrollTop += y - BOX_HEIGHT;
		else if (y > height - BOX_HEIGHT)
			this.scroll.scrollTop += y - height + 2 * BOX_HEIGHT;
	}
	step(direction) { // moves the focus to the next box that matches
		const {app} = this;
		if (!app.matches)
			return;
		const found = this.rows.flat().filter(box => app.matches.byFrame[box.frame]);
		if (found.length === 0)
			return;
		const at = found.indexOf(this.focusBox());
		this.focus = found[(at + direction + found.length) % found.length];
		this.scroll.focus();
		this.reveal(this.focus);
		app.say(this.describe(this.focus).join('. '));
		app.draw();
	}
}

// True if the node is one of the sorted nodes or below one.
function isBelow(tops, nodes, node) {
	let low = 0, high = tops.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (tops[middle] <= node)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && node < nodes.next[tops[low - 1]];
}
