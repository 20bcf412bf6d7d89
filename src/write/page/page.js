// The page: its state, which is also in the hash of its address; its keys, and what its parts
// share.

const VIEWS = [
	['flame', '1', 'flame graph', 'Each box is a function, as wide as its time; below it are the functions it calls'],
	['callers', '2', 'callers', 'The other way round: which functions the time is spent in; below each, its callers'],
	['functions', '3', 'functions', 'A table of all functions'],
	['tree', '4', 'tree', 'The flame graph as a table'],
	['time', '5', 'one thread', 'The calls of one thread in the order of time'],
	['heat', '6', 'heat map', 'When threads run: shows what recurs'],
	['blame', '7', 'who makes it wait', 'Functions that wait; below each, what for; and below that, the stack of the thread or process that it waits for'],
];
const ORDERS = ['activity', 'name', 'tid'];

// What the help says: titles, and lines of keys and what they do.
const HELP = [
	['Mouse', [
		['drag', 'over the threads: select a range of time; drag its edge to move it, double-click to select all'],
		['click', 'a thread: show it alone; with Ctrl or Shift, add it. A box: zoom into it'],
		['right-click', 'a box: all that can be done with it. A thread that waits: show the thread that it waits for'],
		['wheel', 'over the threads: zoom time; with Shift, move along in time'],
		['Alt-click', 'a kind of time: show this kind alone'],
	]],
	['Views', [
		['1 to 6', 'flame graph, callers, functions, tree, one thread in the order of time, heat map'],
		['7', 'who makes it wait, in a profile made with --blame'],
		['a', 'show all frames: also the start of the program and of its threads, and the insides of locks'],
		['m', 'functions: raw self time, not that of the program\u2019s own code'],
		['i', 'turn the graph upside down'],
		['k, then a letter', 'switch a kind of time: r l f s p as in running, lock, file, socket, pipe; n waiting for a CPU; x stopped; i idle, or c e t q for condition, event, timer, client'],
		['w', 'show threads that are idle all the time'],
		['o', 'sort threads by activity, name or number'],
	]],
	['Moving', [
		['arrows', 'move in the graph; Enter zooms in, Backspace out'],
		['0 or Esc', 'reset everything'],
		['/', 'search, by a regular expression; n and N go to the next and the previous match'],
		['[ ]', 'previous, next thread'],
		['+ -', 'zoom time; Shift with an arrow moves along in time'],
	]],
	['More', [
		['h', 'hide all stacks with this function'],
		['u', 'hide what this function calls'],
		['H', 'show all of that again'],
		['d', 'the stacks of all threads at the pointer\u2019s time'],
		['b', 'use this range as baseline A; press again to clear'],
		['x', 'switch between A and B'],
		['c', 'copy the name of the box'],
		['s', 'save as PNG'],
		['t', 'light or dark theme'],
	]],
];
const READING = [
	'Each thread has a row over time. High bars: it runs, or waits for something particular. Low bars: it is idle. ' +
	'The top row adds up all threads that are shown.',
	'Below, each box is a function: as wide as its time, with the colours of that time. Bold names are the program\u2019s own code.',
];
const SHARES = 'Each tick takes one sample of every thread. The kernel counts how long each thread ran and how long it waited ' +
	'for a CPU. These times are divided equally among the samples of that state.';

// Files of languages whose programs are known by file and line; names that many files have.
const SCRIPTS = /\.(py|go|[cm]?[jt]sx?|rb|php|java|kt|scala|lua|erl|pl)$/;
const SAME_NAMES = /^(__init__|__main__|index|main|mod)\./;

class App {
	constructor(profile) {
		this.whole = this.profile = profile; // with all frames; as it is shown
		this.hasBlame = profile.timed && findSeparators(profile).includes(1);
		this.hasOwn = profile.frames.flags.some(flags => flags & OWN);
		amount.of = profile.meta.counts ?? 'seconds';
		this.version = 0; // changes whenever the graph must show something else
		this.shades = new Map(); // by function
		this.turnTo(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
		this.folded = foldProfile(profile);
		this.profile = this.folded;
		this.idle = this.looks.reduce((mask, look, kind) => look.idle ? mask | 1 << kind : mask, 0);
		this.startOff = 0;
		this.state = this.initialState();
		this.addUp();
		this.startOff = this.isIdle() ? 0 : this.idle;
		this.state = this.initialState();
		this.addUp();
		this.lanes = new Lanes(this);
		this.graph = new Graph(this);
		this.heat = new Heat(this);
		this.tables = new Tables(this);
		this.build();
		window.addEventListener('hashchange', () => this.readHash());
		window.addEventListener('resize', () => this.draw());
		new ResizeObserver(() => this.draw()).observe(document.getElementById('view'));
		document.addEventListener('keydown', event => this.key(event));
		this.readHash();
		this.draw();
	}

	initialState() {
		const {profile} = this;
		return {
			from: profile.from, to: profile.end, threads: null, off: this.startOff, all: false, raw: false, order: 'activity',
			asleep: profile.threads.every(thread => thread.slept || thread.base), open: false,
			a: null, hide: [], fold: [], q: '', view: 'flame', zoom: ROOT, path: [], fn: ROOT, flip: false, swap: false,
		};
	}
	// True if there is hardly any time but of idle kinds.
	isIdle() {
		const {kindTime} = this.sums, sum = (total, time) => total + time;
		const busy = kindTime.filter((_, kind) => !(this.idle >> kind & 1)).reduce(sum, 0);
		return busy <= 0.001 * kindTime.reduce(sum, 0);
	}
	notes() {
		return (this.profile.meta.notes ?? []).join('\n');
	}
	choice() {
		return this.chosen;
	}

	// Adds up what is chosen and, where two profiles or two ranges are compared, the other one
	// as base.
	addUp() {
		const {profile, state} = this, {compared} = profile;
		const kept = state.a && !compared ? {...state, from: state.a[0], to: state.a[1]} : state;
		const [mine, others] = state.swap ? [kept, state] : [state, kept];
		this.chosen = mine;
		this.sums = addUp(profile, mine, compared && state.swap, this.sums);
		this.base = compared || state.a ? addUp(profile, others, compared && !state.swap, this.base) : null;
	}
	keepRange() {
		const {state, profile} = this;
		if (profile.timed && !profile.compared)
			this.go({a: state.a ? null : [state.from, state.to], swap: false});
	}
	// Hides or folds (`how`) the function that has the focus.
	putAway(how) {
		const box = this.graph.focusBox();
		if (box && box.frame !== this.profile.nodes.frame[ROOT])
			this.go({[how]: [...new Set([...this.state[how], box.frame])], zoom: ROOT, path: []});
	}

	// Changes the state and draws it at once; go() also makes it a step of the browser's
	// history.
	change(patch) {
		const old = this.state;
		this.state = {...old, ...patch};
		if (this.state.all !== old.all)
			this.showFrames(this.state.all);
		if (['from', 'to', 'threads', 'off', 'asleep', 'swap', 'a', 'hide', 'fold', 'all'].some(key => this.state[key] !== old[key]))
			this.addUp();
		if (this.state.q !== old.q || this.state.all !== old.all)
			this.findMatches();
		this.version++;
		this.draw();
	}
	// Shows all frames, or folds some; a node's number is another one then.
	showFrames(all) {
		this.profile = all ? this.whole : this.folded;
		this.sums = this.base = null;
		this.tables.opened = null;
	}
	go(patch) {
		this.change(patch);
		const hash = this.hash();
		if (hash !== location.hash.slice(1))
			location.hash = hash;
	}

	hash() {
		const {state, profile} = this, start = this.initialState(), parts = new URLSearchParams();
		const seconds = time => Number((time * profile.unit).toFixed(5));
		for (const key of ['from', 'to'])
			if (state[key] !== start[key])
				parts.set(key, seconds(state[key]));
		if (state.threads)
			parts.set('threads', [...state.threads].map(id => profile.threads[id].tid).join());
		if (state.off !== start.off)
			parts.set('off', profile.kinds.filter((_, kind) => state.off >> kind & 1).join());
		for (const key of ['asleep', 'open', 'flip', 'swap', 'all', 'raw'])
			if (state[key] !== start[key])
				parts.set(key, state[key] ? 1 : 0);
		for (const key of ['q', 'view', 'zoom', 'order'])
			if (state[key] !== start[key])
				parts.set(key, state[key]);
		if (state.view === 'sandwich')
			parts.set('fn', state.fn);
		if (state.a)
			parts.set('a', state.a.map(seconds).join('-'));
		for (const key of ['path', 'hide', 'fold'])
			if (state[key].length > 0)
				parts.set(key, state[key].join('.'));
		return parts.toString();
	}
	readHash() {
		if (this.hash() === location.hash.slice(1))
			return;
		const parts = new URLSearchParams(location.hash.slice(1));
		const profile = parts.get('all') === '1' ? this.whole : this.folded;
		const state = this.initialState();
		const number = (key, end) => {
			const value = Number(parts.get(key));
			return Number.isInteger(value) && value >= 0 && value < end ? value : 0;
		};
		for (const key of ['from', 'to'])
			if (parts.has(key))
				state[key] = Math.min(profile.end, Math.max(profile.from, Math.round(Number(parts.get(key)) / profile.unit) || 0));
		if (state.to <= state.from)
			[state.from, state.to] = [profile.from, profile.end];
		if (parts.has('threads')) {
			const tids = parts.get('threads').split(',').map(Number);
			const ids = profile.threads.filter(thread => tids.includes(thread.tid)).map(thread => thread.id);
			state.threads = ids.length > 0 ? new Set(ids) : null;
		}
		if (parts.has('off'))
			state.off = 0;
		for (const kind of (parts.get('off') ?? '').split(','))
			if (profile.kinds.includes(kind))
				state.off |= 1 << profile.kinds.indexOf(kind);
		for (const key of ['asleep', 'open', 'flip', 'swap', 'all', 'raw'])
			if (parts.has(key))
				state[key] = parts.get(key) === '1';
		state.q = parts.get('q') ?? '';
		if (ORDERS.includes(parts.get('order')))
			state.order = parts.get('order');
		if ([...VIEWS.map(([view]) => view), 'sandwich'].includes(parts.get('view')))
			state.view = parts.get('view');
		state.zoom = number('zoom', profile.nodes.n);
		state.fn = number('fn', profile.frames.n);
		const numbers = key => (parts.get(key) ?? '').split('.').filter(Boolean).map(Number).filter(Number.isInteger);
		for (const key of ['path', 'hide', 'fold'])
			state[key] = numbers(key);
		const kept = (parts.get('a') ?? '').split('-').map(text => Math.round(Number(text) / profile.unit));
		if (kept.length === 2 && kept[0] >= profile.from && kept[0] < kept[1] && kept[1] <= profile.end && !profile.compared)
			state.a = kept;
		document.getElementById('search').value = state.q;
		this.change(state);
	}

	findMatches() {
		const search = parseSearch(this.state.q);
		this.matches = search && findMatches(this.profile, search);
		// What is found in folded frames alone is said.
		this.foldsMatches = Boolean(search) && this.profile !== this.whole && this.matches.tops.length === 0 &&
			findMatches(this.whole, search).tops.length > 0;
	}
	// Searches the function of exactly that name.
	searchName(name) {
		this.search('^' + name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$');
	}
	search(text) {
		document.getElementById('search').value = text;
		this.go({q: text});
	}

	// Fills in the page's texts, and says what the buttons and fields do.
	build() {
		const {profile} = this, {meta} = profile;
		document.getElementById('title').textContent = meta.title;
		const span = (profile.end - profile.from) * profile.unit;
		const facts = document.getElementById('facts');
		facts.textContent = profile.timed ? `${formatTime(span)} \u00b7 ${profile.threads.length} threads \u00b7 ` +
			`${Math.round(1e9 / meta.period_ns)} Hz \u00b7 ${new Date(meta.start_ms).toLocaleString()}` +
			(meta.stretch_ns ? ` \u00b7 runs shorter than ${formatTime(meta.stretch_ns / 1e9)} are merged` : '') : '';
		facts.title = [facts.textContent, this.notes()].join('\n');
		const cpuWait = document.getElementById('cpu-wait');
		cpuWait.textContent = meta.cpu_wait ? `The process ${meta.cpu_wait}.` : '';
		cpuWait.title = cpuWait.textContent;
		cpuWait.hidden = !meta.cpu_wait;
		const doubts = document.getElementById('doubts');
		doubts.textContent = meta.doubts ? `${meta.doubts[0].toUpperCase()}${meta.doubts.slice(1)}.` : '';
		doubts.title = doubts.textContent;
		doubts.hidden = !meta.doubts;
		this.buildFindings();
		this.buildIdle();
		this.buildKinds();
		this.buildViews();
		const search = document.getElementById('search');
		search.addEventListener('input', () => this.change({q: search.value}));
		search.addEventListener('change', () => this.go({q: search.value}));
		search.addEventListener('keydown', event => {
			if (event.key === 'Enter') {
				this.go({q: search.value});
				this.graph.step(event.shiftKey ? -1 : 1);
			}
		});
		const click = (id, action) => document.getElementById(id).addEventListener('click', action);
		click('theme', () => this.turnTheme());
		click('save', () => this.save());
		click('help', () => this.show('Help', this.help()));
		click('order', () => this.turnOrder());
		this.buildHint(click);
		click('dialog-close', () => document.getElementById('dialog').close());
		click('dialog-copy', () => this.copy(document.getElementById('dialog-text').textContent));
		document.getElementById('lanes').hidden = !profile.timed;
		document.addEventListener('pointerdown', event => {
			if (!event.target.closest('#menu'))
				this.closeMenu();
		});
	}
	// What explain says first: a click searches the function.
	buildFindings() {
		const place = document.getElementById('findings'), findings = this.profile.meta.findings ?? [];
		place.hidden = findings.length === 0;
		place.replaceChildren(...findings.map(({text, function: name}) => {
			const button = element('button', `${text}.`, {type: 'button', title: `${text}.${name && '\nClick to search the function'}`});
			button.addEventListener('click', () => this.searchName(name));
			button.disabled = !name;
			return button;
		}));
	}
	// The hint is for who sees such a page for the first time.
	buildHint(click) {
		const hint = document.getElementById('hint'), seen = 'profiler-hint-seen';
		let isNew = this.profile.timed;
		try {
			isNew &&= !localStorage.getItem(seen);
			localStorage.setItem(seen, '1');
		} catch {
			// Where a page may keep nothing, the hint is shown each time.
		}
		hint.hidden = !isNew;
		click('hint-close', () => {
			hint.hidden = true;
			this.draw();
		});
	}
	// Returns what the help shows.
	help() {
		const section = (title, ...content) => element('section', '', {}, element('h3', title), ...content);
		const kinds = this.looks.filter((_, kind) => this.hasKind[kind] && this.profile.timed).flatMap(look => {
			const swatch = element('span', '', {class: 'swatch'});
			swatch.style.backgroundColor = look.colour;
			return [element('dt', '', {}, swatch, look.words), element('dd', look.about)];
		});
		const keys = HELP.map(([title, lines]) => section(title, element('dl', '', {}, ...lines.flatMap(([key, what]) =>
			[element('dt', '', {}, element('kbd', key)), element('dd', what)]))));
		const notes = [SHARES, ...this.notes().split('\n')].filter(Boolean).map(text => element('p', text));
		return element('div', '', {class: 'help'}, section('How to read it', ...READING.map(text => element('p', text)), element('dl', '', {}, ...kinds)),
			...keys, section('How times are counted', ...notes));
	}
	turnOrder() {
		this.go({order: ORDERS[(ORDERS.indexOf(this.state.order) + 1) % ORDERS.length]});
	}
	buildKinds() {
		const place = document.getElementById('kinds');
		this.hasKind = this.profile.kinds.map((_, kind) => this.profile.runs.kind.includes(kind));
		this.kindButtons = this.profile.kinds.map((kind, i) => {
			const button = element('button', '', {type: 'button', 'data-kind': kind, title: `${this.looks[i].about}\nClick to show or hide it, Alt-click to show it alone`});
			button.addEventListener('click', event => this.switchKind(i, event.altKey));
			return button;
		});
		place.prepend(...this.kindButtons.filter((_, kind) => !this.looks[kind].idle));
		place.append(...this.kindButtons.filter((_, kind) => this.looks[kind].idle));
	}
	// All idle kinds have one button; where it is on, each has one, too.
	buildIdle() {
		this.idleButton = element('button', '', {type: 'button', id: 'idle',
			title: 'time in which threads usually wait for work: condition, event, timer, client. Click to show or hide it'});
		this.idleButton.addEventListener('click', () => this.switchIdle());
		document.getElementById('kinds').append(this.idleButton);
	}
	switchIdle() {
		this.go({off: this.state.off & this.idle ? this.state.off & ~this.idle : this.state.off | this.idle});
	}
	buildViews() {
		const place = document.getElementById('views');
		this.what = element('span', '', {class: 'what'});
		place.append(this.what);
		const has = {time: this.profile.timed, heat: this.profile.timed, blame: this.hasBlame};
		this.viewButtons = VIEWS.filter(([view]) => has[view] ?? true).map(([view, key, label, about]) => {
			const button = element('button', '', {type: 'button', 'data-view': view, title: `${about} (${key})`},
				element('span', key + ' ', {class: 'key'}), label);
			button.addEventListener('click', () => this.go({view}));
			place.append(button);
			return button;
		});
		const toggle = (label, about, state, more = {}) => {
			const button = element('button', label, {type: 'button', title: about, 'data-toggle': state});
			button.addEventListener('click', () => this.go({[state]: !this.state[state], ...more}));
			return button;
		};
		this.rawButton = toggle('raw self time', 'Give self time to the innermost function, be it of a library, ' +
			'rather than to the nearest function of the program\u2019s own code (m)', 'raw');
		this.allButton = toggle('all frames', 'Show also what starts the program and its threads ' +
			'(_start to main, clone3 to start_thread) and the insides of locks (a)', 'all', {zoom: ROOT, path: []});
		this.what.after(this.rawButton, this.allButton);
	}
	switchKind(kind, alone) {
		const all = (1 << this.profile.kinds.length) - 1;
		this.go({off: alone ? all & ~(1 << kind) : this.state.off ^ 1 << kind});
	}

	draw() {
		if (this.asked)
			return;
		this.asked = true;
		requestAnimationFrame(() => {
			this.asked = false;
			this.drawNow();
		});
	}
	drawNow() {
		const {state} = this, table = ['functions', 'tree', 'blame'].includes(state.view);
		document.getElementById('graph-scroll').hidden = table;
		document.getElementById('table').hidden = !table;
		this.drawControls();
		if (this.profile.timed)
			this.lanes.draw();
		if (table)
			this.tables.draw();
		else if (state.view === 'heat' && this.profile.timed)
			this.heat.draw();
		else
			this.graph.draw();
		this.drawn = performance.now();
	}
	drawControls() {
		const {state, sums, profile} = this, whole = sums.kindTime.reduce((a, b) => a + b, 0);
		this.kindButtons.forEach((button, kind) => {
			const idle = this.looks[kind].idle;
			button.hidden = !this.hasKind[kind] || idle && Boolean(state.off >> kind & 1) && (state.off & this.idle) === this.idle;
			button.style.backgroundColor = this.looks[kind].colour;
			button.textContent = `${this.looks[kind].words} ${formatShare(sums.kindTime[kind], whole)}`;
			button.setAttribute('aria-pressed', !(state.off >> kind & 1));
		});
		const idleTime = sums.kindTime.reduce((sum, time, kind) => this.looks[kind].idle ? sum + time : sum, 0);
		this.idleButton.hidden = !this.hasKind.some((has, kind) => has && this.looks[kind].idle);
		this.idleButton.textContent = `idle ${formatShare(idleTime, whole)}`;
		this.idleButton.setAttribute('aria-pressed', !(state.off & this.idle));
		this.rawButton.hidden = state.view !== 'functions' || !this.hasOwn;
		this.rawButton.setAttribute('aria-pressed', state.raw);
		this.allButton.hidden = this.whole === this.folded || state.view === 'heat';
		this.allButton.setAttribute('aria-pressed', state.all);
		for (const button of this.viewButtons)
			button.setAttribute('aria-current', button.dataset.view === state.view);
		this.what.textContent = this.what.title = this.describeChoice();
		const order = document.getElementById('order');
		order.textContent = `by ${state.order} \u25be`;
		order.title = 'The order of the threads: by activity, name or number (o)';
		const matched = document.getElementById('matched');
		if (this.matches) {
			const within = state.view === 'flame' ? state.zoom : ROOT;
			const time = matchedTime(profile, sums, this.matches, within);
			matched.textContent = this.foldsMatches ? 'only in folded frames (a shows them)'
				: time === 0 && this.matches.tops.length > 0 ? 'only in time that is hidden'
				: `matched ${formatShare(time, sums.total[within])}, ${formatTime(time * profile.unit)}`;
		} else {
			matched.textContent = '';
		}
	}

	// Returns a text such as "all active threads \u00b7 3.39 s to 4.73 s \u00b7 13.3 s in total, without idle time".
	describeChoice() {
		const {state, profile, sums} = this, parts = [];
		if (profile.timed) {
			parts.push(state.threads ? sums.threads.map(thread => thread.title).slice(0, 4).join(', ')
				: state.asleep ? 'all threads' : 'all active threads');
			if (state.from > profile.from || state.to < profile.end)
				parts.push(`${formatTime(state.from * profile.unit)} to ${formatTime(state.to * profile.unit)}`);
			parts.push(`${formatTime(sums.time * profile.unit)} in total` +
				(state.off === this.idle && this.startOff ? ', without idle time' : ''));
		} else {
			parts.push(formatTime(sums.time * profile.unit));
		}
		if (state.a)
			parts.push(`A is ${state.a.map(time => formatTime(time * profile.unit)).join(' to ')}`);
		for (const [key, how] of [['hide', 'hidden stacks (H shows them)'], ['fold', 'hidden callees (H shows them)']])
			if (state[key].length > 0)
				parts.push(`${how}: ${state[key].map(frame => this.frameName(frame)).join(', ').slice(0, 200)}`);
		if (this.base)
			parts.push(`widths show ${state.swap ? 'A' : 'B'} (x switches); orange: more in B, blue: less`);
		if (state.view === 'sandwich')
			parts.unshift(`callers and callees of ${this.shortName(state.fn).slice(0, 200)}`);
		if (state.view === 'time') {
			const thread = this.timeThread();
			parts.unshift(thread ? `${thread.title} in the order of time` : 'no thread');
		}
		return parts.join(' \u00b7 ');
	}

	// Returns the thread that the view by time shows: the first chosen one.
	timeThread() {
		return this.sums.threads.find(thread => this.state.threads?.has(thread.id)) ??
			this.lanes.rows().find(row => row.thread)?.thread ?? this.profile.threads[0];
	}

	frameName(frame) {
		return this.profile.names[this.profile.frames.name[frame]] ?? '';
	}
	// Returns the name as the function's author knows it, without parameters and the like.
	shortName(frame) {
		return this.profile.names[this.profile.frames.shortName[frame]] ?? '';
	}
	// Returns "app.py:13", or else the module's name; '' where neither is known.
	whereOf(frame) {
		const {frames, files, modules} = this.profile, file = files[frames.file[frame]];
		const [name, folder] = (file || modules[frames.module[frame]]).split('/').reverse();
		const line = file && frames.line[frame] ? ':' + frames.line[frame] : '';
		return (folder && SAME_NAMES.test(name) ? folder + '/' : '') + name + line;
	}
	// Returns the same for a box: only of languages whose functions are known by their file.
	boxPlaceOf(frame) {
		return SCRIPTS.test(this.profile.files[this.profile.frames.file[frame]]) ? this.whereOf(frame) : '';
	}
	isOwn(frame) {
		return (this.profile.frames.flags[frame] & OWN) !== 0;
	}

	// Returns which of its kind's shades the function has.
	shadeOf(frame) {
		const name = this.profile.frames.name[frame];
		if (!this.shades.has(name))
			this.shades.set(name, hashText(this.profile.names[name]) % N_SHADES);
		return this.shades.get(name);
	}
	placeOf(frame) {
		const {frames, files, modules} = this.profile, flags = frames.flags[frame];
		const file = files[frames.file[frame]], module = modules[frames.module[frame]];
		const line = frames.line[frame] ? ':' + frames.line[frame] : '';
		return [file && file + line, module, flags & INLINED && 'inlined', flags & KERNEL && 'kernel']
			.filter(Boolean).join(' \u00b7 ');
	}
	stackOf(node) {
		const {nodes} = this.profile, names = [];
		for (; node !== ROOT; node = nodes.parent[node])
			names.push(this.frameName(nodes.frame[node]));
		return names;
	}
	// Returns the names of the stack's innermost functions.
	leafNames(node, n) {
		const {nodes} = this.profile, frames = [];
		for (; node !== ROOT; node = nodes.parent[node])
			frames.push(nodes.frame[node]);
		// From the leaf straight to the nearest function of the program's own.
		const own = Math.max(0, frames.findIndex(frame => this.isOwn(frame)));
		const names = frames.slice(own, own + n).map(frame => [this.shortName(frame).slice(0, 80), this.boxPlaceOf(frame)].filter(Boolean).join(' '));
		return own === 0 ? names : [this.shortName(frames[0]).slice(0, 80), ...own > 1 ? ['\u2026'] : [], ...names];
	}
	describeRun(run) {
		const {runs, waits, labels, unit} = this.profile, wait = runs.wait[run];
		return `${this.looks[runs.kind[run]].words} for ${formatTime((runs.end[run] - runs.start[run]) * unit)}` +
			(waits[wait] ? `: ${waits[wait]}` : '') + (labels[wait] ? ` (${labels[wait]})` : '');
	}

	// Returns the box's share of the time in A and in B, and the change between them.
	difference(box) {
		const {sums, base, state} = this;
		const values = state.view === 'callers' ? base.self : base.total;
		const nodes = box.node === undefined ? box.group.of : [box.node];
		const other = box.node === ROOT ? base.time : nodes.reduce((sum, node) => sum + values[node], 0);
		const shares = [base.time > 0 ? other / base.time : 0, sums.time > 0 ? box.total / sums.time : 0];
		const [a, b] = state.swap ? shares.reverse() : shares;
		return {a, b, change: b - a};
	}
	// Returns orange for more in B, blue for less, pale for about the same.
	differenceColour(box) {
		const {a, b, change} = this.difference(box), {same, more, less} = this.graph.colours;
		const strength = Math.min(1, Math.abs(change) / Math.max(a, b, 1e-9));
		return mixColours(same, change >= 0 ? more : less, strength);
	}
	describeDifference(box) {
		const {a, b, change} = this.difference(box);
		return `A ${formatShare(a, 1)}, B ${formatShare(b, 1)}: ${change >= 0 ? '+' : '\u2212'}${(100 * Math.abs(change)).toFixed(1)} points`;
	}

	showTip(event, lines) {
		const tip = document.getElementById('tip');
		tip.replaceChildren(element('b', lines[0].slice(0, 2000)),
			...lines.slice(1).filter(Boolean).map(line => element('div', line.slice(0, 2000))));
		tip.hidden = false;
		const {innerWidth, innerHeight} = window, {offsetWidth, offsetHeight} = tip;
		tip.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - offsetWidth - 4)) + 'px';
		const below = event.clientY + 18;
		tip.style.top = Math.max(0, below + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : below) + 'px';
	}
	hideTip() {
		document.getElementById('tip').hidden = true;
	}
	say(text) {
		document.getElementById('focus-text').textContent = text.slice(0, 1000);
	}
	show(title, text) {
		document.getElementById('dialog-title').textContent = title;
		document.getElementById('dialog-text').replaceChildren(typeof text === 'string' ? element('pre', text) : text);
		document.getElementById('dialog-copy').hidden = typeof text !== 'string';
		const dialog = document.getElementById('dialog');
		if (!dialog.open)
			dialog.showModal();
	}
	copy(text) {
		navigator.clipboard?.writeText(text).catch(() => this.show('Copy this', text));
		if (!navigator.clipboard)
			this.show('Copy this', text);
	}
	openMenu(event, items) {
		this.closeMenu();
		const menu = element('div', '', {id: 'menu', role: 'menu'});
		for (const [label, action] of items) {
			const button = element('button', label, {type: 'button', role: 'menuitem'});
			button.addEventListener('click', () => {
				this.closeMenu();
				action();
			});
			menu.append(button);
		}
		document.body.append(menu);
		menu.style.left = Math.min(event.clientX, innerWidth - menu.offsetWidth - 4) + 'px';
		menu.style.top = Math.min(event.clientY, innerHeight - menu.offsetHeight - 4) + 'px';
		menu.firstChild.focus();
	}
	closeMenu() {
		document.getElementById('menu')?.remove();
	}
	turnTo(theme) {
		document.documentElement.dataset.theme = this.theme = theme;
		this.looks = looksOf(this.profile.kinds, theme, this.profile.meta.idle);
		this.version++;
	}
	turnTheme() {
		this.turnTo(this.theme === 'dark' ? 'light' : 'dark');
		this.draw();
	}

	// Saves lanes and graph, one below the other, as a picture.
	save() {
		const canvases = [...document.querySelectorAll('canvas')].filter(canvas => canvas.offsetParent);
		const whole = document.createElement('canvas');
		whole.width = Math.max(...canvases.map(canvas => canvas.width));
		whole.height = canvases.reduce((sum, canvas) => sum + canvas.height, 0);
		const context = whole.getContext('2d');
		let y = 0;
		for (const canvas of canvases) {
			context.drawImage(canvas, 0, y);
			y += canvas.height;
		}
		whole.toBlob(blob => {
			const url = URL.createObjectURL(blob), link = element('a', '', {href: url, download: 'profile.png'});
			link.click();
			setTimeout(() => URL.revokeObjectURL(url), 10000);
		});
	}

	// Shows the stacks of all threads at the hairline, equal ones once, as a dump of the past.
	dump(time = this.lanes.hair ?? (this.state.from + this.state.to) / 2) {
		const {profile} = this, {runs} = profile, groups = new Map();
		for (const thread of profile.threads) {
			const run = this.lanes.runAt(thread, time);
			if (run < 0)
				continue;
			const key = [runs.node[run], runs.kind[run], runs.wait[run]].join();
			if (!groups.has(key))
				groups.set(key, {run, threads: []});
			groups.get(key).threads.push(thread);
		}
		const texts = [...groups.values()].sort((a, b) => runs.kind[a.run] - runs.kind[b.run]).map(({run, threads}) =>
			threads.map(thread => `"${thread.name}" ${thread.number}`.trim()).join(', ') + '   ' + this.describeRun(run) + '\n' +
			this.stackOf(runs.node[run]).map(name => '    ' + name).join('\n'));
		return {title: `All threads at ${formatTime(time * profile.unit)}`, text: texts.join('\n\n')};
	}

	stepThread(direction) {
		const threads = this.lanes.rows().filter(row => row.thread).map(row => row.thread);
		const at = threads.findIndex(thread => this.state.threads?.has(thread.id));
		const next = threads[(at + direction + threads.length + (at < 0 && direction < 0 ? 1 : 0)) % threads.length];
		if (next)
			this.go({threads: new Set([next.id])});
	}
	out() {
		const {state, profile} = this;
		if (state.view === 'sandwich')
			this.go({view: 'flame'});
		else if (state.view === 'callers')
			this.go({path: state.path.slice(0, -1)});
		else
			this.go({zoom: profile.nodes.parent[state.zoom]});
	}
	reset() {
		this.closeMenu();
		document.getElementById('search').value = '';
		this.lanes.window = [this.profile.from, this.profile.end];
		this.go({...this.initialState(), view: this.state.view === 'sandwich' ? 'flame' : this.state.view, flip: this.state.flip});
	}

	key(event) {
		const typing = event.target.matches('input, select');
		if (typing && event.key === 'Escape') {
			event.target.blur();
			this.search('');
			return;
		}
		if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById('dialog').open)
			return;
		if (this.awaitsKind) {
			this.awaitsKind = false;
			if (event.key === 'i')
				this.switchIdle();
			const kind = this.looks.findIndex(look => look.letter === event.key);
			if (kind >= 0)
				this.switchKind(kind, false);
			return;
		}
		const action = event.shiftKey && this.shiftKeys()[event.key] || this.keys()[event.key];
		if (!action || event.key === 'Enter' && event.target.matches('button'))
			return;
		event.preventDefault();
		action();
	}
	timeKeys(view) {
		const {lanes} = this;
		return {
			5: view('time'), 6: view('heat'), ...this.hasBlame ? {7: view('blame')} : {},
			w: () => this.go({asleep: !this.state.asleep, open: !this.state.asleep}),
			'[': () => this.stepThread(-1), ']': () => this.stepThread(1),
			'+': () => lanes.zoom(0.7), '-': () => lanes.zoom(1.4),
			d: () => { const {title, text} = this.dump(); this.show(title, text); },
		};
	}
	shiftKeys() {
		return {ArrowLeft: () => this.lanes.pan(-0.2), ArrowRight: () => this.lanes.pan(0.2)};
	}
	keys() {
		const {graph} = this, down = this.state.flip ? -1 : 1;
		const view = name => () => this.go({view: name});
		return {
			'/': () => document.getElementById('search').focus(),
			n: () => graph.step(1), N: () => graph.step(-1),
			0: () => this.reset(), Escape: () => this.reset(), Backspace: () => this.out(),
			1: view('flame'), 2: view('callers'), 3: view('functions'), 4: view('tree'),
			...this.profile.timed ? this.timeKeys(view) : {},
			o: () => this.profile.timed && this.turnOrder(),
			i: () => this.go({flip: !this.state.flip}),
			a: () => this.go({all: !this.state.all, zoom: ROOT, path: []}),
			m: () => this.go({raw: !this.state.raw}),
			x: () => this.base && this.go({swap: !this.state.swap}),
			b: () => this.keepRange(),
			h: () => this.putAway('hide'), u: () => this.putAway('fold'),
			H: () => this.go({hide: [], fold: []}),
			ArrowUp: () => graph.moveFocus(0, -down), ArrowDown: () => graph.moveFocus(0, down),
			ArrowLeft: () => graph.moveFocus(-1, 0), ArrowRight: () => graph.moveFocus(1, 0),
			Enter: () => graph.focusBox() && graph.zoom(graph.focusBox()),
			c: () => graph.focusBox() && this.copy(this.frameName(graph.focusBox().frame)),
			k: () => { this.awaitsKind = true; },
			t: () => this.turnTheme(), s: () => this.save(),
			'?': () => document.getElementById('help').click(),
		};
	}

	// For tests: returns the sums, in nanoseconds, of what is chosen or of a choice that the
	// test gives.
	test(choice = {}) {
		const {profile} = this, {unit_ns} = profile.meta;
		const units = ns => ns / unit_ns;
		const own = {...this.state, ...choice};
		for (const key of ['from', 'to'])
			if (key + '_ns' in choice)
				own[key] = units(choice[key + '_ns']);
		const sums = addUp(profile, own, own.base ?? false), functions = {}, base = this.base?.time ?? 0;
		const found = functionSums(profile, sums, profile.frames.name);
		profile.names.forEach((name, i) => {
			if (found.total[i] > 0)
				functions[name] = {self: found.self[i] * unit_ns, total: found.total[i] * unit_ns};
		});
		return {
			time: sums.time * unit_ns, functions, base: base * unit_ns,
			kinds: Object.fromEntries(profile.kinds.map((kind, i) => [kind, sums.kindTime[i] * unit_ns])),
			threads: profile.threads.map(({tid, name, slept}) => ({tid, name, slept})),
			matched: this.matches ? matchedTime(profile, sums, this.matches) * unit_ns : 0,
			nodes: profile.nodes.n, runs: profile.runs.n, boxes: this.graph.n_boxes, state: this.hash(),
		};
	}
}

async function main() {
	try {
		const app = new App(await readProfile());
		window.profilerTest = choice => app.test(choice);
		window.profilerApp = app;
	} catch (error) {
		giveUp(error);
	}
}

main();
