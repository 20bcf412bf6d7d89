// The threads' lanes over time, below a lane that shows their sum.

const LANE_HEIGHT = 18, AXIS_HEIGHT = 16, DRAG_EDGE = 5;
const KEPT = '#5aa5f5'; // the range that others are compared with

class Lanes {
	constructor(app) {
		this.app = app;
		this.overview = document.getElementById('overview');
		this.canvas = document.getElementById('lane-canvas');
		this.scroll = document.getElementById('lane-scroll');
		this.space = document.getElementById('lane-space');
		this.hair = null; // the time under the pointer
		this.drag = null;
		const {profile} = app;
		this.window = [profile.from, profile.end]; // the time that is visible
		for (const canvas of [this.overview, this.canvas])
			this.listen(canvas);
		this.scroll.addEventListener('scroll', () => app.draw());
	}

	// Returns the rows: first the threads that woke, in the order that is chosen: by activity, those
	// that ran most come first, but each process's first thread before all others. Then one row
	// for all that never woke, and, where it is opened, one for each.
	rows() {
		const {profile, state} = this.app;
		this.busy ??= this.countRunning();
		const byTid = (a, b) => a.tid - b.tid;
		const order = {
			activity: (a, b) => b.main - a.main || this.busy.get(b) - this.busy.get(a) || byTid(a, b),
			name: (a, b) => a.name.localeCompare(b.name, 'en', {numeric: true}) || byTid(a, b),
			tid: byTid,
		}[state.order];
		for (const thread of profile.threads)
			thread.main = thread.tid === profile.meta.pid ? 1 : 0;
		const awake = profile.threads.filter(thread => !thread.slept).sort(order);
		const asleep = profile.threads.filter(thread => thread.slept).sort(order);
		const rows = awake.map(thread => ({thread}));
		if (asleep.length > 0)
			rows.push({asleep});
		if (asleep.length > 0 && state.open)
			rows.push(...asleep.map(thread => ({thread})));
		return rows;
	}

	countRunning() {
		const {profile} = this.app, time = new Map(), kind = profile.kinds.indexOf('running');
		for (const thread of profile.threads) {
			let sum = 0;
			for (let i = thread.first; i < thread.end; i++)
				if (profile.runs.kind[i] === kind)
					sum += profile.runs.end[i] - profile.runs.start[i];
			time.set(thread, sum);
		}
		return time;
	}

	layout() {
		this.width = this.scroll.clientWidth;
		this.names = this.namesWidth();
		this.plot = Math.max(10, this.width - this.names - 8);
	}
	// Returns the width of the column of names: as wide as the longest, within bounds.
	namesWidth() {
		const {character} = new Lettering(this.canvas.getContext('2d'), 12);
		this.longest ??= this.app.profile.threads.reduce((most, one) => Math.max(most, one.title.length + 2), 0);
		return Math.round(Math.min(Math.max(110, this.width * 0.3), 340, Math.max(130, this.longest * character + 12)));
	}
	x(time) {
		const [from, to] = this.window;
		return this.names + (time - from) / (to - from) * this.plot;
	}
	time(x) {
		const [from, to] = this.window;
		return from + (x - this.names) / this.plot * (to - from);
	}
	clamp(time) {
		return Math.min(this.app.profile.end, Math.max(this.app.profile.from, time));
	}

	draw() {
		this.layout();
		this.colours = themeColours();
		this.drawOverview();
		this.drawLanes();
	}

	drawOverview() {
		const height = this.overview.clientHeight || 58;
		const context = fitCanvas(this.overview, this.scroll.parentElement.clientWidth, height);
		const {colours} = this, {profile} = this.app;
		context.fillStyle = colours.paper;
		context.fillRect(0, 0, this.overview.clientWidth, height);
		this.drawSum(context, height - AXIS_HEIGHT - 2);
		this.drawAxis(context, height - AXIS_HEIGHT);
		this.lettering = new Lettering(context, 12);
		context.fillStyle = colours.ink;
		const n = this.app.sums.threads.length;
		const active = profile.threads.some(thread => thread.slept) && !this.app.state.asleep && !this.app.state.threads;
		this.lettering.draw(context, `${n}${active ? ' active' : ''} ${n === 1 ? 'thread' : 'threads'}`, 6, 13, this.names - 10);
		this.shade(context, 0, height - AXIS_HEIGHT);
	}

	// Draws the kinds' time of the chosen threads, stacked, for each pixel. Keeps the sums
	// while nothing changes.
	drawSum(context, height) {
		const key = JSON.stringify([this.window, this.plot, this.app.state.off, this.app.sums.threads.map(t => t.id)]);
		if (this.sumKey !== key) {
			this.sumKey = key;
			this.sum = this.sumByPixel();
		}
		const {n, pixels, most} = this.sum, fills = fillsOf(context, this.app.looks);
		for (let x = 0; x < n; x++) {
			let y = height;
			for (let kind = 0; kind < fills.length; kind++) {
				const part = pixels[kind][x] / most * (height - 4);
				if (part === 0)
					continue;
				context.fillStyle = fills[kind];
				context.fillRect(this.names + x, y - part, 1, part);
				y -= part;
			}
		}
	}
	sumByPixel() {
		const {profile, sums} = this.app, {runs} = profile, n = Math.floor(this.plot);
		const [from, to] = this.window, scale = n / (to - from);
		const pixels = profile.kinds.map(() => new Float64Array(n + 1));
		eachRun(profile, sums.threads, from, to, i => {
			if (this.app.state.off >> runs.kind[i] & 1)
				return;
			const values = pixels[runs.kind[i]];
			const a = Math.max(0, (runs.start[i] - from) * scale);
			const b = Math.min(n, (runs.end[i] - from) * scale);
			for (let x = Math.floor(a); x < b; x++)
				values[x] += Math.min(b, x + 1) - Math.max(a, x);
		});
		let most = 1;
		for (let x = 0; x < n; x++)
			most = Math.max(most, pixels.reduce((sum, values) => sum + values[x], 0));
		return {n, pixels, most};
	}

	drawAxis(context, y) {
		const {colours} = this, {unit} = this.app.profile, [from, to] = this.window;
		const step = axisStep((to - from) * unit, this.plot) / unit;
		context.fillStyle = colours.faint;
		context.strokeStyle = colours.line;
		const lettering = new Lettering(context, 11);
		context.beginPath();
		for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
			const x = Math.round(this.x(at)) + 0.5;
			context.moveTo(x, y);
			context.lineTo(x, y + 4);
			// The last one stays within the edge.
			const text = formatTime(at * unit), end = this.width - 2 - text.length * lettering.character;
			lettering.draw(context, text, Math.min(x + 3, end), y + 12, 90);
		}
		context.stroke();
	}

	drawLanes() {
		const rows = this.shown = this.rows(), {colours} = this;
		const full = rows.length * LANE_HEIGHT;
		const height = Math.min(full, this.scroll.clientHeight || full);
		this.space.style.height = Math.max(0, full - height) + 'px';
		const context = fitCanvas(this.canvas, this.width, height);
		context.fillStyle = colours.paper;
		context.fillRect(0, 0, this.width, height);
		const fills = fillsOf(context, this.app.looks);
		const lettering = new Lettering(context, 12);
		const top = this.scroll.scrollTop;
		const first = Math.floor(top / LANE_HEIGHT), end = Math.min(rows.length, Math.ceil((top + height) / LANE_HEIGHT));
		for (let i = first; i < end; i++)
			if (rows[i].thread)
				this.drawLane(context, lettering, rows[i].thread, i * LANE_HEIGHT - top, fills);
		this.shade(context, 0, height);
		for (let i = first; i < end; i++)
			if (rows[i].asleep)
				this.drawAsleep(context, lettering, rows[i].asleep, i * LANE_HEIGHT - top);
		this.canvas.setAttribute('aria-label', `Lanes of ${rows.length} threads over ` +
			formatTime((this.window[1] - this.window[0]) * this.app.profile.unit));
		this.overview.setAttribute('aria-label', 'Time of the chosen threads by kind');
	}

	drawAsleep(context, lettering, threads, y) {
		context.fillStyle = this.colours.paper;
		context.fillRect(0, y, this.width, LANE_HEIGHT);
		context.fillStyle = this.colours.faint;
		lettering.draw(context, this.describeAsleep(threads), 6, y + 13, this.width - 12);
	}

	drawLane(context, lettering, thread, y, fills) {
		const {colours} = this, {state} = this.app, chosen = state.threads?.has(thread.id);
		context.fillStyle = chosen ? colours.accent : colours.ink;
		const tid = thread.number, mark = (chosen ? '\u25b8 ' : '') + (thread.base ? 'A ' : '');
		const room = this.names - 16 - tid.length * lettering.character;
		lettering.draw(context, cutMiddle(mark + thread.name, Math.floor(room / lettering.character)), 6, y + 13, room);
		context.fillStyle = colours.faint;
		context.fillText(tid, this.names - 6 - tid.length * lettering.character, y + 13);
		this.drawRuns(context, thread, y, fills);
	}

	// Sums up runs that are narrower than a pixel: the pixel shows the kind that took most of
	// it. A search dims what it does not find.
	drawRuns(context, thread, y, fills) {
		const {profile, looks, matches, state} = this.app, {runs} = profile;
		const [from, to] = this.window, scale = this.plot / (to - from);
		const mix = new Float64Array(fills.length);
		let pixel = -1, anyFound = false;
		const bar = (x, width, kind, found) => {
			const height = looks[kind].height * (LANE_HEIGHT - 3);
			context.fillStyle = fills[kind];
			context.globalAlpha = matches && !found ? 0.2 : state.off >> kind & 1 ? 0.45 : 1;
			context.fillRect(this.names + x, y + LANE_HEIGHT - 1 - height, width, height);
		};
		const flush = () => {
			if (pixel >= 0)
				bar(pixel, 1, mix.indexOf(Math.max(...mix)), anyFound);
			mix.fill(0);
			pixel = -1;
			anyFound = false;
		};
		const marks = [];
		for (let i = firstRunAfter(runs, thread, from); i < thread.end && runs.start[i] < to; i++) {
			const a = Math.max(0, (runs.start[i] - from) * scale);
			const b = Math.min(this.plot, (runs.end[i] - from) * scale);
			const found = Boolean(matches?.byNode[runs.node[i]]);
			if (found && (marks.length === 0 || marks[marks.length - 1] < a - 0.5))
				marks.push(a, b);
			else if (found)
				marks[marks.length - 1] = b;
			if (Math.floor(a) !== pixel)
				flush();
			if (b - a >= 1) {
				flush();
				bar(a, b - a, runs.kind[i], found);
				continue;
			}
			pixel = Math.floor(a);
			anyFound ||= found;
			mix[runs.kind[i]] += b - a;
		}
		flush();
		context.globalAlpha = 1;
		context.fillStyle = this.colours.match;
		for (let i = 0; i < marks.length; i += 2)
			context.fillRect(this.names + marks[i], y + LANE_HEIGHT - 3, Math.max(1, marks[i + 1] - marks[i]), 2);
	}

	// Returns a text such as "13 idle threads (65 s, hidden): pool-idle x12 poll; w futex", which names
	// threads of the same name and wait once.
	describeAsleep(threads) {
		const {profile, state} = this.app, groups = new Map();
		let time = 0;
		for (const thread of threads) {
			const run = thread.first;
			const text = `${thread.name} ${profile.waits[profile.runs.wait[run]]}`;
			groups.set(text, (groups.get(text) ?? 0) + 1);
			time += profile.runs.end[run] - profile.runs.start[run];
		}
		const names = [...groups].sort((a, b) => b[1] - a[1])
			.map(([text, n]) => n > 1 ? text.replace(' ', ` \u00d7${n} `) : text);
		const shown = state.asleep ? 'shown' : 'hidden';
		return `${state.open ? '\u25be' : '\u25b8'} ${threads.length} idle ${threads.length === 1 ? 'thread' : 'threads'} ` +
			`(${formatTime(time * profile.unit)}, ${shown}): ${names.join('; ')}`;
	}

	// Dims what is outside the range, and draws the hairline.
	shade(context, y, height) {
		const {state, profile} = this.app, [left, right] = [this.names, this.names + this.plot];
		context.fillStyle = this.colours.paper;
		context.globalAlpha = 0.6;
		const a = Math.min(right, Math.max(left, this.x(state.from)));
		const b = Math.min(right, Math.max(left, this.x(state.to)));
		if (state.from > profile.from)
			context.fillRect(left, y, a - left, height);
		if (state.to < profile.end)
			context.fillRect(b, y, right - b, height);
		context.globalAlpha = 1;
		if (state.a) {
			context.fillStyle = KEPT;
			context.fillRect(this.x(state.a[0]), y, Math.max(1, this.x(state.a[1]) - this.x(state.a[0])), 3);
		}
		context.fillStyle = this.colours.accent;
		if (state.from > profile.from)
			context.fillRect(a - 1, y, 2, height);
		if (state.to < profile.end)
			context.fillRect(b - 1, y, 2, height);
		if (this.hair !== null) {
			context.fillStyle = this.colours.ink;
			context.fillRect(this.x(this.hair), y, 1, height);
		}
	}

	rowAt(event) {
		if (event.target !== this.canvas)
			return null;
		const y = event.offsetY + this.scroll.scrollTop;
		return this.shown[Math.floor(y / LANE_HEIGHT)] ?? null;
	}

	listen(canvas) {
		canvas.addEventListener('pointerdown', event => this.press(event));
		canvas.addEventListener('pointermove', event => this.move(event));
		canvas.addEventListener('pointerup', event => this.release(event));
		canvas.addEventListener('contextmenu', event => this.menu(event));
		canvas.addEventListener('pointerleave', () => {
			this.hair = null;
			this.app.hideTip();
			this.app.draw();
		});
		canvas.addEventListener('dblclick', () => this.app.go({
			from: this.app.profile.from, to: this.app.profile.end, threads: null,
		}));
		canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
	}

	press(event) {
		if (event.button !== 0)
			return;
		const {state} = this.app, time = this.clamp(this.time(event.offsetX));
		// Takes hold of an edge of the range if one is near; else a new range begins.
		const near = edge => Math.abs(this.x(edge) - event.offsetX) < DRAG_EDGE;
		const fixed = near(state.from) && state.from > this.app.profile.from ? state.to
			: near(state.to) && state.to < this.app.profile.end ? state.from : time;
		this.drag = {fixed, x: event.offsetX, moved: false, row: this.rowAt(event)};
		event.target.setPointerCapture(event.pointerId);
	}
	move(event) {
		this.hair = event.offsetX >= this.names ? this.clamp(this.time(event.offsetX)) : null;
		if (this.drag && (this.drag.moved || Math.abs(event.offsetX - this.drag.x) > 3)) {
			this.drag.moved = true;
			this.app.hideTip();
			const time = this.clamp(this.time(event.offsetX));
			this.app.change({
				from: Math.round(Math.min(this.drag.fixed, time)),
				to: Math.round(Math.max(this.drag.fixed, time)),
			});
		} else {
			this.tip(event);
			this.app.draw();
		}
	}
	release(event) {
		const {drag} = this, {state} = this.app;
		this.drag = null;
		if (!drag)
			return;
		if (drag.moved) {
			this.app.go(state.to - state.from < 1 ? {from: this.app.profile.from, to: this.app.profile.end} : {});
			return;
		}
		if (drag.row?.asleep)
			this.app.go({open: !state.open, asleep: !state.open});
		else if (drag.row)
			this.choose(drag.row.thread, event.ctrlKey || event.metaKey || event.shiftKey);
	}
	choose(thread, add) {
		const {state} = this.app, chosen = new Set(add ? state.threads ?? [] : []);
		const alone = state.threads?.has(thread.id) && (add || state.threads.size === 1);
		if (alone)
			chosen.delete(thread.id);
		else
			chosen.add(thread.id);
		this.app.go({threads: chosen.size > 0 ? chosen : null});
	}

	// Offers the thread that is waited for at the pointer.
	menu(event) {
		const thread = this.rowAt(event)?.thread, run = thread ? this.runAt(thread, this.time(event.offsetX)) : -1;
		const holder = run < 0 ? null : holderOf(this.app.profile, run);
		if (!holder)
			return;
		event.preventDefault();
		this.app.openMenu(event, [[`Show ${holder.title}, which it waits for`, () => this.reveal(holder)]]);
	}
	// Chooses the thread alone, and scrolls to it.
	reveal(thread) {
		this.app.go({threads: new Set([thread.id]), ...thread.slept ? {asleep: true, open: true} : {}});
		this.scroll.scrollTop = (this.rows().findIndex(row => row.thread === thread) - 1) * LANE_HEIGHT;
	}

	// The wheel zooms time around the pointer: over the sum, where the lanes need no scrolling,
	// or with Ctrl or Alt. With Shift it moves along in time. Else it scrolls the lanes.
	wheel(event) {
		const scrolls = event.target === this.canvas &&
			this.scroll.scrollHeight > this.scroll.clientHeight && !event.ctrlKey && !event.altKey;
		if (scrolls && !event.shiftKey)
			return;
		event.preventDefault();
		const amount = event.deltaY || event.deltaX;
		if (event.shiftKey)
			this.pan(Math.sign(amount) * 0.1);
		else
			this.zoom(amount > 0 ? 1.25 : 0.8, this.time(event.offsetX));
	}
	zoom(factor, around = this.hair ?? (this.window[0] + this.window[1]) / 2) {
		const {profile} = this.app, [from, to] = this.window;
		const span = Math.min(profile.end - profile.from, Math.max(20, (to - from) * factor));
		const start = around - (around - from) * span / (to - from);
		this.setWindow(start, span);
	}
	pan(share) {
		const [from, to] = this.window;
		this.setWindow(from + share * (to - from), to - from);
	}
	setWindow(start, span) {
		const {profile} = this.app;
		const from = Math.min(profile.end - span, Math.max(profile.from, start));
		this.window = [from, from + span];
		this.app.draw();
	}

	// Returns the thread's run at that time, or -1.
	runAt(thread, time) {
		const {runs} = this.app.profile, i = firstRunAfter(runs, thread, time);
		return i < thread.end && runs.start[i] <= time ? i : -1;
	}

	tip(event) {
		const row = this.rowAt(event), {profile} = this.app;
		if (this.hair === null || !row?.thread) {
			this.app.hideTip();
			return;
		}
		const run = this.runAt(row.thread, this.hair);
		const lines = [`${row.thread.title}, at ${formatTime(this.hair * profile.unit)}`];
		if (run >= 0)
			lines.push(this.app.describeRun(run), this.app.leafNames(profile.runs.node[run], 6).join(' < '));
		else
			lines.push('not sampled');
		this.app.showTip(event, lines);
	}
}
