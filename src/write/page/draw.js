// What both canvases share: colours, texts, sizes.

// The kinds of time. height: of the kind in lanes; kinds that usually wait for work are lower.
// letter: the key that follows k. words: what people read, if not the kind's name. about: the tooltip
// of its button.
const LOOKS = {
	running: {colour: '#f5a623', letter: 'r', height: 1, about: 'on a CPU'},
	runnable: {colour: '#f2e03a', letter: 'n', height: 0.9, words: 'waiting for a CPU', about: 'ready to run, but without a CPU'},
	lock: {colour: '#a266c8', letter: 'l', height: 0.75, hatched: true, about: 'waits for a lock that another thread or process holds'},
	condition: {colour: '#ecd9c0', letter: 'c', height: 0.45, about: 'waits for another thread: often without work'},
	file: {colour: '#c8763c', letter: 'f', height: 0.75, about: 'waits for a file or the disk'},
	socket: {colour: '#5bb8f0', letter: 's', height: 0.75, about: 'waits for a socket'},
	event: {colour: '#a8d0ea', letter: 'e', height: 0.45, about: 'waits for one of several descriptors or signals'},
	timer: {colour: '#ececec', letter: 't', height: 0.45, about: 'sleeps for a time'},
	pipe: {colour: '#2fae6e', letter: 'p', height: 0.75, about: 'waits for another process: a pipe, a terminal, a child'},
	stopped: {colour: '#8a8a8a', letter: 'x', height: 0.75, about: 'stopped, by job control or a debugger'},
};
const OTHER_LOOK = {colour: '#f5c26b', letter: 'o', height: 1};
const INK_ON_COLOUR = '#111111', NEUTRAL = '#d6d6d6';

const looksOf = kinds => kinds.map(kind => ({words: kind, about: '', ...LOOKS[kind] ?? OTHER_LOOK}));

function themeColours() {
	const style = getComputedStyle(document.documentElement), colours = {};
	for (const name of ['paper', 'ink', 'faint', 'line', 'raised', 'accent', 'match'])
		colours[name] = style.getPropertyValue('--' + name).trim();
	return colours;
}

// Returns a fill for each kind: its colour, hatched or not.
function fillsOf(context, looks) {
	return looks.map(look => {
		if (!look.hatched)
			return look.colour;
		const tile = document.createElement('canvas');
		tile.width = tile.height = 8;
		const t = tile.getContext('2d');
		t.fillStyle = look.colour;
		t.fillRect(0, 0, 8, 8);
		t.strokeStyle = '#ffffff70';
		t.lineWidth = 2;
		t.beginPath();
		for (const x of [-8, 0, 8])
			t.moveTo(x, 8), t.lineTo(x + 8, 0);
		t.stroke();
		return context.createPattern(tile, 'repeat');
	});
}

// Makes the canvas as large as it is shown; its context counts in CSS pixels.
function fitCanvas(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	canvas.style.width = width + 'px';
	canvas.style.height = height + 'px';
	const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	const context = canvas.getContext('2d');
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	return context;
}

function rootFontPixels() {
	return parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
}

// Draws as much of a text as fits, measured by one character of a monospaced font.
class Lettering {
	constructor(context, pixels) {
		this.font = `${pixels}px ui-monospace, "DejaVu Sans Mono", monospace`;
		context.font = this.font;
		this.character = context.measureText('M').width || pixels * 0.6;
	}
	draw(context, text, x, y, width) {
		const n = Math.floor(width / this.character);
		if (n < 3)
			return;
		const cut = text.length > n ? text.slice(0, n - 1) + '\u2026' : text;
		// Other characters may be wider than the measured one.
		if (/^[\x20-\x7e\u2026]*$/.test(cut))
			context.fillText(cut, x, y);
		else
			context.fillText(cut, x, y, width);
	}
}

// The unit of amounts: seconds, or, in a profile without time, what is counted.
const amount = {of: 'seconds'};

function formatTime(seconds) {
	if (amount.of !== 'seconds')
		return Math.round(seconds).toLocaleString('en') + ' ' + amount.of;
	const size = Math.abs(seconds) * 1.000001; // so that 0.9999999 s is 1 s rather than 1000 ms
	if (seconds === 0)
		return '0 s';
	if (size >= 10000)
		return Math.round(seconds) + ' s';
	if (size >= 1)
		return Number(seconds.toPrecision(4)) + ' s';
	if (size >= 0.001)
		return Number((seconds * 1e3).toPrecision(3)) + ' ms';
	return Math.round(seconds * 1e6) + ' \u00b5s';
}

const formatShare = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : '0 %';

// Returns the step of a time axis: about one for each `pixels`.
function axisStep(span, width, pixels = 110) {
	const least = span * pixels / Math.max(width, 1);
	const power = 10 ** Math.floor(Math.log10(least));
	return [1, 2, 5, 10].map(n => n * power).find(step => step >= least);
}

// Returns an element with a text and children; attributes are given by name.
function element(name, text, attributes = {}, ...children) {
	const made = document.createElement(name);
	if (text)
		made.textContent = text;
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children);
	return made;
}
