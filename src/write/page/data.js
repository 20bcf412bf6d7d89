// Reads the profile from the element #profile: base64 of gzip of sections (page_sections.h). All
// times are whole units (meta.unit_ns) since the first tick.

const SECTION = {
	meta: 1, names: 2, files: 3, modules: 4, frames: 5, nodes: 6,
	threads: 7, waits: 8, runs: 9, threadNames: 10, waitTexts: 11, weights: 12,
};
const ROOT = 0;
const INLINED = 1, KERNEL = 2, TRUNCATED = 4, OWN = 8; // flags of a frame
const SLEPT = 1, BASE = 2, GOROUTINE = 4; // flags of a thread

// Characters that change the direction of the text around them.
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

class Columns {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}
	number() {
		let value = 0, scale = 1, byte;
		do {
			if (this.at >= this.bytes.length)
				throw new Error('the profile is cut short');
			byte = this.bytes[this.at++];
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte > 127);
		return value;
	}
	column(n, Type) {
		const values = new Type(n);
		for (let i = 0; i < n; i++)
			values[i] = this.number();
		return values;
	}
}

function splitSections(bytes) {
	const view = new DataView(bytes.buffer), sections = [];
	for (let at = 0; at + 8 <= bytes.length;) {
		const id = view.getUint32(at, true), length = view.getUint32(at + 4, true);
		sections[id] = bytes.subarray(at + 8, at + 8 + length);
		at += 8 + length;
	}
	return sections;
}

function readStrings(bytes) {
	return new TextDecoder().decode(bytes).replace(TURNING, '\ufffd').split('\0').slice(0, -1);
}

function readFrames(bytes) {
	const columns = new Columns(bytes), n = columns.number();
	const frames = {n};
	for (const name of ['name', 'file', 'module', 'line', 'flags', 'shortName'])
		frames[name] = columns.column(n, Uint32Array);
	return frames;
}

// Reads the nodes, which are in preorder: a node's descendants lie behind it and before next[node].
function readNodes(bytes) {
	const columns = new Columns(bytes), n = columns.number();
	const up = columns.column(n, Uint32Array), frame = columns.column(n, Uint32Array);
	const parent = new Uint32Array(n), depth = new Uint32Array(n), next = new Uint32Array(n);
	const path = [ROOT];
	let maxDepth = 0;
	for (let i = 1; i < n; i++) {
		const level = depth[i - 1] + 1 - up[i];
		parent[i] = path[level - 1];
		path[level] = i;
		depth[i] = level;
		maxDepth = Math.max(maxDepth, level);
	}
	next.fill(1);
	for (let i = n - 1; i > 0; i--)
		next[parent[i]] += next[i];
	for (let i = 0; i < n; i++)
		next[i] += i;
	return {n, frame, parent, depth, next, maxDepth};
}

function readThreads(bytes, names) {
	const columns = new Columns(bytes), n = columns.number(), threads = [];
	for (let i = 0; i < n; i++)
		threads.push({id: i});
	for (const key of ['tid', 'pid', 'birth', 'death', 'name', 'runs', 'flags'])
		for (const thread of threads)
			thread[key] = columns.number();
	let first = 0;
	for (const thread of threads) {
		thread.name = names[thread.name];
		thread.death -= 1; // -1: it is alive
		thread.slept = (thread.flags & SLEPT) !== 0;
		thread.base = (thread.flags & BASE) !== 0;
		// A goroutine shows its id in its name.
		thread.number = thread.flags & GOROUTINE ? '' : String(thread.tid);
		thread.title = thread.name + (thread.number ? ' ' + thread.number : '');
		thread.first = first;
		thread.end = first += thread.runs;
	}
	return threads;
}

function readWaits(bytes, texts) {
	const columns = new Columns(bytes), n = columns.number();
	const [what, descriptor, labels] = [0, 1, 2].map(() => columns.column(n, Uint32Array));
	return {
		waits: Array.from(what, (text, i) => [texts[text], texts[descriptor[i]]].filter(Boolean).join(' ')),
		labels: Array.from(labels, text => texts[text]),
	};
}

function readRuns(bytes, threads) {
	const columns = new Columns(bytes), n = columns.number();
	const start = columns.column(n, Uint32Array), end = columns.column(n, Uint32Array);
	const node = columns.column(n, Uint32Array), wait = columns.column(n, Uint32Array);
	const kind = new Uint8Array(n);
	for (const thread of threads) {
		let at = 0;
		for (let i = thread.first; i < thread.end; i++) {
			start[i] = at += start[i];
			end[i] = at += end[i];
			kind[i] = wait[i] & 15;
			wait[i] >>>= 4;
		}
	}
	return {n, start, end, node, kind, wait};
}

// Reads what the time of threads counts, if not itself: thread.weigh[kind], a factor; and
// thread.unseen, which has [kind, time, node] for time that is in no run.
function readWeights(bytes, threads, kinds) {
	const columns = new Columns(bytes), n = columns.number();
	const [of, ...factors] = [0, 1, 2, 3].map(() => columns.column(n, Float64Array));
	const unseen = [0, 1, 2].map(() => columns.column(n, Float64Array));
	const nodes = columns.column(n, Uint32Array);
	const classOf = kind => kind === 'running' ? 0 : kind === 'runnable' ? 1 : 2;
	for (let i = 0; i < n; i++) {
		const thread = threads[of[i]];
		thread.weigh = Float64Array.from(kinds, kind => factors[classOf(kind)][i] / 1e6);
		thread.unseen = ['running', 'runnable', 'event'].map((kind, c) => [kinds.indexOf(kind), unseen[c][i], nodes[i]])
			.filter(([, time]) => time > 0);
	}
}

async function readProfile() {
	const sections = splitSections(await unpack('profile'));
	const meta = JSON.parse(new TextDecoder().decode(sections[SECTION.meta]));
	if (meta.version !== 1)
		throw new Error('the profile is of a newer version');
	const threads = readThreads(sections[SECTION.threads], readStrings(sections[SECTION.threadNames]));
	readWeights(sections[SECTION.weights], threads, meta.kinds);
	return {
		meta, threads,
		names: readStrings(sections[SECTION.names]),
		files: readStrings(sections[SECTION.files]),
		modules: readStrings(sections[SECTION.modules]),
		frames: readFrames(sections[SECTION.frames]),
		nodes: readNodes(sections[SECTION.nodes]),
		...readWaits(sections[SECTION.waits], readStrings(sections[SECTION.waitTexts])),
		runs: readRuns(sections[SECTION.runs], threads),
		kinds: meta.kinds,
		unit: meta.unit_ns / (meta.count_ns || 1e9), // in seconds, or in samples
		from: Math.round((meta.from_ns ?? 0) / meta.unit_ns),
		end: Math.max(1, Math.round(meta.end_ns / meta.unit_ns)),
		timed: !meta.count_ns,
		compared: threads.some(thread => thread.base),
	};
}
