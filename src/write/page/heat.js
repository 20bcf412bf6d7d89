// The heat map: columns are stretches of time, rows are offsets within them, so that what recurs
// can be seen. Each cell shows how many threads ran; or matched the search; or, if kinds are
// switched off, had one of the others.

const HEAT_ROWS = 50, MAX_COLUMNS = 400;
const HEAT_HEAD = 22, HEAT_AXIS = 18, HEAT_LEFT = 64; // around the cells: what it shows, the axes
const COLUMN_SECONDS = [0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 14400, 86400, 604800];

class Heat {
	constructor(app) {
		this.app = app;
		this.canvas = document.getElementById('graph-canvas');
		const active = action => event => app.state.view === 'heat' && action(event);
		this.canvas.addEventListener('pointermove', active(event => this.tip(event)));
		this.canvas.addEventListener('click', active(event => this.choose(event)));
	}

	// Sums up the time in each cell, column by column, over the whole profile whatever range is
	// chosen.
	count() {
		const {profile, sums, state, matches} = this.app, {runs} = profile;
		const span = profile.end - profile.from;
		const seconds = COLUMN_SECONDS.find(one => span * profile.unit / one <= MAX_COLUMNS) ?? span * profile.unit;
		const column = seconds / profile.unit, cell = column / HEAT_ROWS;
		const n = Math.max(1, Math.ceil(span / column - 0.02)), cells = new Float64Array(n * HEAT_ROWS);
		const running = profile.kinds.indexOf('running');
		const counts = matches ? i => matches.byNode[runs.node[i]]
			: state.off !== this.app.startOff ? i => !(state.off >> runs.kind[i] & 1) : i => runs.kind[i] === running;
		eachRun(profile, sums.threads, profile.from, profile.end, i => {
			if (!counts(i))
				return;
			const a = (Math.max(runs.start[i], profile.from) - profile.from) / cell, b = (runs.end[i] - profile.from) / cell;
			for (let at = Math.floor(a); at < b && at < cells.length; at++)
				cells[at] += Math.min(b, at + 1) - Math.max(a, at);
		});
		return {n, column, cells, most: cells.reduce((x, y) => Math.max(x, y), 0)};
	}

	draw() {
		const {app} = this, {graph, profile} = app, {clientWidth: width, clientHeight: height} = graph.scroll;
		if (this.version !== app.version)
			this.map = this.count();
		this.version = app.version;
		graph.rows = []; // no boxes that the pointer could hit
		graph.key = null;
		graph.space.style.height = '0px';
		const context = fitCanvas(this.canvas, width, height), colours = themeColours();
		context.fillStyle = colours.paper;
		context.fillRect(0, 0, width, height);
		const {n, column, cells, most} = this.map;
		this.cellWidth = (width - HEAT_LEFT) / n;
		this.cellHeight = (height - HEAT_AXIS - HEAT_HEAD) / HEAT_ROWS;
		const colour = app.matches ? colours.match : looksOf(['running'], app.theme)[0].colour;
		const cell = (share, x, y, w, h) => {
			context.fillStyle = colour;
			context.globalAlpha = 0.12 + 0.88 * share;
			context.fillRect(x, y, w, h);
			context.globalAlpha = 1;
		};
		for (let i = 0; i < cells.length; i++)
			if (cells[i] > 0)
				cell(cells[i] / most, HEAT_LEFT + Math.floor(i / HEAT_ROWS) * this.cellWidth, HEAT_HEAD + (i % HEAT_ROWS) * this.cellHeight,
					Math.max(0.5, this.cellWidth - (this.cellWidth > 4 ? 1 : 0)), Math.max(0.5, this.cellHeight - 0.5));
		const lettering = new Lettering(context, 11), each = Math.max(1, Math.ceil(90 / this.cellWidth));
		context.fillStyle = colours.faint;
		for (let i = 0; i < n; i += each)
			lettering.draw(context, formatTime((profile.from + i * column) * profile.unit), HEAT_LEFT + i * this.cellWidth + 2, height - 5, 86);
		for (let row = 0; row < HEAT_ROWS; row += HEAT_ROWS / 5)
			lettering.draw(context, '+' + formatTime(row / HEAT_ROWS * column * profile.unit), 6, HEAT_HEAD + row * this.cellHeight + 10, HEAT_LEFT - 8);
		this.drawLegend(context, lettering, cell, width);
		this.canvas.setAttribute('aria-label', `Heat map of ${n} columns of ${formatTime(column * profile.unit)}; ` +
			`at most ${most.toFixed(1)} threads`);
	}

	// Says what the map shows, and which colour is how many threads.
	drawLegend(context, lettering, cell, width) {
		const {app} = this, {column, most} = this.map, colours = themeColours();
		const what = app.matches ? 'in what the search finds' : app.state.off !== app.startOff ? 'in the kinds that are shown' : 'that run';
		const least = '0', greatest = `${Number(most.toFixed(1))} threads ${what}`, left = width - 110 - (greatest.length + 1) * lettering.character;
		context.fillStyle = colours.ink;
		lettering.draw(context, `Each column is ${formatTime(column * app.profile.unit)}, from top to bottom.`, 6, 14, left - 30);
		context.fillStyle = colours.faint;
		lettering.draw(context, greatest, left + 108, 14, width - left - 108);
		context.fillText(least, left - lettering.character - 4, 14);
		for (let i = 0; i < 20; i++)
			cell((i + 1) / 20, left + i * 5, 5, 5, 11);
	}

	// Returns the cell's number and the time at which it begins.
	cellAt(event) {
		const {n, column} = this.map, row = Math.floor((event.offsetY - HEAT_HEAD) / this.cellHeight);
		const at = Math.min(n - 1, Math.floor((event.offsetX - HEAT_LEFT) / this.cellWidth));
		if (row < 0 || row >= HEAT_ROWS || at < 0)
			return null;
		return {i: at * HEAT_ROWS + row, from: this.app.profile.from + (at + row / HEAT_ROWS) * column, columnFrom: this.app.profile.from + at * column};
	}
	tip(event) {
		const cell = this.cellAt(event), {unit} = this.app.profile;
		if (cell)
			this.app.showTip(event, [`at ${formatTime(cell.from * unit)}`, `${this.map.cells[cell.i].toFixed(2)} threads`,
				'click to select this column, Shift-click for this cell']);
		else
			this.app.hideTip();
	}
	choose(event) {
		const cell = this.cellAt(event), {profile} = this.app, {column} = this.map;
		if (!cell)
			return;
		const [from, length] = event.shiftKey ? [cell.from, column / HEAT_ROWS] : [cell.columnFrom, column];
		const start = Math.min(Math.round(from), profile.end - 1);
		this.app.go({from: start, to: Math.min(profile.end, Math.max(start + 1, Math.round(from + length)))});
	}
}
