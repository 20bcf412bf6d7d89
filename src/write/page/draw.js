// What both canvases share: colours, texts, sizes.

// The kinds of time. Each has a colour for the light theme and one for the dark theme, dark enough for
// light text. height: of the kind in lanes, unless it is idle. letter: the key that follows k. words:
// what people read, if not the kind's name. about: the tooltip of its button.
const LOOKS = {
	running: {colours: ['#f5a623', '#a5520a'], letter: 'r', height: 1, about: 'on a CPU'},
	runnable: {colours: ['#f4dc4a', '#5f6f14'], letter: 'n', height: 0.9, words: 'waiting for a CPU', about: 'ready to run, but without a CPU'},
	lock: {colours: ['#a870d2', '#5f2aa4'], letter: 'l', height: 0.75, hatched: true, about: 'waits for a lock that another thread or process holds'},
	condition: {colours: ['#ecd9c0', '#4a4038'], letter: 'c', about: 'waits until another thread wakes it: often for work'},
	file: {colours: ['#c8763c', '#6a3018'], letter: 'f', height: 0.75, about: 'waits for a file or the disk'},
	socket: {colours: ['#5bc0f5', '#3a68b8'], letter: 's', height: 0.75, about: 'waits for a socket'},
	client: {colours: ['#cfe3ec', '#33434c'], letter: 'q', words: 'waiting for a client', about: 'waits for a new connection or a client\u2019s request'},
	event: {colours: ['#a8d0ea', '#2f4656'], letter: 'e', about: 'waits for one of several descriptors or signals (poll, epoll)'},
	timer: {colours: ['#ececec', '#37373c'], letter: 't', about: 'sleeps for a time'},
	pipe: {colours: ['#2fae6e', '#18783e'], letter: 'p', height: 0.75, about: 'waits for another process: a pipe, a terminal, a child'},
	stopped: {colours: ['#8a8a8a', '#565e66'], letter: 'x', height: 0.75, about: 'stopped, by job control or a debugger'},
};
const OTHER_LOOK = {colours: ['#f5c26b', '#8a5a10'], letter: 'o', height: 1, varied: true};
const THEMES = ['light', 'dark'];

const IDLE_HEIGHT = 0.45;

// Returns the looks of the kinds. `idle`: those in which a thread usually has no work. They are lower
// in the lanes, and hidden at first.
const looksOf = (kinds, theme, idle = []) => kinds.map(kind => {
	const look = {words: kind, about: '', ...LOOKS[kind] ?? OTHER_LOOK, idle: idle.includes(kind)};
	const dark = THEMES.indexOf(theme), lift = !dark ? 0.22 : look.idle ? 0.1 : -0.3;
	return {...look, dark, lift, colour: look.colours[dark], height: look.idle ? IDLE_HEIGHT : look.height};
});

function themeColours() {
	const style = getComputedStyle(document.documentElement), colours = {};
	for (const name of ['paper', 'ink', 'faint', 'line', 'raised', 'accent', 'match', 'on-kind', 'same', 'more', 'less'])
		colours[name] = style.getPropertyValue('--' + name).trim();
	return colours;
}

// Returns a fill for each kind in the lanes: its colour, hatched or not.
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

// Boxes of one kind differ a little by function, so that neighbours can be told apart.
const N_SHADES = 8;

const channelsOf = colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));

// Returns the colour between two; part is 0 for the first and 1 for the second.
function mixColours(one, other, part) {
	const b = channelsOf(other);
	return '#' + channelsOf(one).map((a, i) => Math.round(a + (b[i] - a) * part).toString(16).padStart(2, '0')).join('');
}

// Returns the shades of a kind: lighter and darker, warmer and cooler.
function shadesOf(look) {
	const [strong, hue] = look.varied ? [1.5, 0.3] : [1, look.idle ? 0 : 0.07];
	return Array.from({length: N_SHADES}, (_, i) => {
		const turned = i % 3 - 1;
		const light = (i * 5 % N_SHADES - 1) / (N_SHADES - 1) * look.lift * strong;
		const lit = mixColours(look.colour, light < 0 ? '#000000' : '#ffffff', Math.abs(light));
		const towards = turned < 0 ? ['#ff5050', '#902020'] : ['#ffe070', '#706000'];
		return turned === 0 ? lit : mixColours(lit, towards[look.dark], hue);
	});
}

function hashText(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length && i < 200; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return hash >>> 0;
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

// Returns the text, cut in its middle to n characters: the ends of threads' names tell them apart.
function cutMiddle(text, n) {
	if (text.length <= n)
		return text;
	const head = Math.ceil((n - 1) / 2);
	return n < 3 ? '' : text.slice(0, head) + '\u2026' + text.slice(text.length - (n - 1 - head));
}

// Draws as much of a text as fits, measured by one character of a monospaced font.
class Lettering {
	constructor(context, pixels) {
		this.font = `${pixels}px ui-monospace, "DejaVu Sans Mono", monospace`;
		context.font = this.font;
		this.isBold = false;
		this.character = context.measureText('M').width || pixels * 0.6;
	}
	bold(context, isBold) { // characters stay as wide
		if (isBold !== this.isBold)
			context.font = (isBold ? 'bold ' : '') + this.font;
		this.isBold = isBold;
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
