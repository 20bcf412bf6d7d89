// Sums over the chosen runs: those of a range of time, of threads and of kinds.

// Returns the thread's first run that ends after the time.
function firstRunAfter(runs, thread, time) {
	let low = thread.first, high = thread.end;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (runs.end[middle] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

// Calls visit(run, length within the range, thread) for each run of the threads.
function eachRun(profile, threads, from, to, visit) {
	const {start, end} = profile.runs;
	for (const thread of threads)
		for (let i = firstRunAfter(profile.runs, thread, from); i < thread.end && start[i] < to; i++)
			visit(i, Math.min(end[i], to) - Math.max(start[i], from), thread);
}

// Returns what a unit of the thread's time of that kind counts: the kernel counted the time of each
// state, and the samples of a state share it equally.
function weightOf(thread, kind) {
	return thread.weigh ? thread.weigh[kind] : 1;
}

// Returns [node, kind, time] for the part of the range in the thread's time that no tick has seen.
function unseenTime(profile, thread, from, to) {
	if (!thread.unseen || thread.unseen.length === 0)
		return [];
	let part = 0, whole = 0;
	eachRun(profile, [thread], from, to, (i, length) => { part += length; });
	eachRun(profile, [thread], profile.from, profile.end, (i, length) => { whole += length; });
	return thread.unseen.map(([kind, time, node]) => [profile.place ? profile.place[node] : node, kind, time * part / whole]);
}

// Returns the chosen threads. With `base`, those of the other profile, where threads of the same
// names are meant.
function chosenThreads(profile, choice, base = false) {
	const ids = choice.threads;
	const names = ids && profile.compared && new Set([...ids].map(id => profile.threads[id].name));
	const isChosen = thread => names ? names.has(thread.name) : ids.has(thread.id);
	return profile.threads.filter(thread => thread.base === base &&
		(ids ? isChosen(thread) : choice.asleep || !thread.slept));
}

// Adds children to their parents.
function accumulate(nodes, values) {
	const {parent} = nodes;
	for (let i = nodes.n - 1; i > 0; i--) {
		const value = values[i];
		if (value !== 0) // most have none in a short range
			values[parent[i]] += value;
	}
}

// Returns n zeros, in the array if there is one: to make one takes longer than to fill it.
function zeros(n, array) {
	return array ? array.fill(0) : new Float64Array(n);
}

// Returns for each node the node that its own time counts for: the function above it that is folded
// (choice.fold), none (-1) below a function that is left out (choice.hide), else itself. Returns
// null if each counts for itself.
function placesOf(profile, choice) {
	const {nodes} = profile;
	if (choice.hide.length + choice.fold.length === 0)
		return null;
	const hidden = new Set(choice.hide), folded = new Set(choice.fold);
	const places = new Int32Array(nodes.n), closed = new Uint8Array(nodes.n);
	for (let i = 1; i < nodes.n; i++) {
		const above = nodes.parent[i], frame = nodes.frame[i];
		places[i] = closed[above] ? places[above] : hidden.has(frame) ? -1 : i;
		closed[i] = closed[above] || places[i] < 0 || folded.has(frame) ? 1 : 0;
		if (places[i] >= 0 && hidden.has(frame)) // a hidden function that is within a folded one
			places[i] = -1;
	}
	return places;
}

// Returns self[node] and total[node] in units of time, of the kinds that are switched on;
// byKind[kind], the nodes' totals of that kind; kindTime[kind], the time of the kind, switched on
// or not. Takes the arrays of old sums, which nobody may need any more.
function addUp(profile, choice, base = false, old = null) {
	const {nodes, runs} = profile, n = nodes.n, n_kinds = profile.kinds.length;
	const {start, end} = runs, {from, to, off} = choice;
	const spare = old ? [...old.byKind.filter(Boolean), old.self, old.total] : [];
	const sums = {
		threads: chosenThreads(profile, choice, base), places: placesOf(profile, choice),
		kindTime: new Float64Array(n_kinds), byKind: new Array(n_kinds).fill(null),
		self: zeros(n, spare.pop()), total: zeros(n, spare.pop()),
	};
	const {byKind, kindTime, places, self, total} = sums;
	const add = (at, kind, length) => {
		const node = places ? places[at] : at;
		if (node < 0)
			return;
		kindTime[kind] += length;
		if (off >> kind & 1)
			return;
		(byKind[kind] ??= zeros(n, spare.pop()))[node] += length;
		self[node] += length;
	};
	// Not by eachRun: another call for each of a million runs would take as long again.
	for (const thread of sums.threads) {
		for (let i = firstRunAfter(runs, thread, from); i < thread.end && start[i] < to; i++) {
			const kind = runs.kind[i];
			add(runs.node[i], kind, (Math.min(end[i], to) - Math.max(start[i], from)) * weightOf(thread, kind));
		}
		for (const one of unseenTime(profile, thread, from, to))
			add(...one);
	}
	for (const values of byKind)
		if (values)
			accumulate(nodes, values);
	total.set(self);
	accumulate(nodes, total);
	sums.time = total[ROOT];
	return sums;
}

// Returns each node's own time by kind. Computes it when it is first asked for.
function selfByKind(profile, choice, sums) {
	if (!sums.selfByKind) {
		sums.selfByKind = sums.byKind.map(values => values && new Float64Array(values.length));
		const add = (node, kind, length) => {
			const values = sums.selfByKind[kind];
			if (values && !(sums.places?.[node] < 0))
				values[sums.places ? sums.places[node] : node] += length;
		};
		eachRun(profile, sums.threads, choice.from, choice.to, (i, length, thread) => {
			const kind = profile.runs.kind[i];
			add(profile.runs.node[i], kind, length * weightOf(thread, kind));
		});
		for (const thread of sums.threads)
			for (const one of unseenTime(profile, thread, choice.from, choice.to))
				add(...one);
	}
	return sums.selfByKind;
}

// Returns for each node the nearest one above it, or itself, that is of the program's own code; the
// node itself where there is none.
function ownPlaces(profile) {
	const {nodes, frames} = profile, own = new Uint32Array(nodes.n);
	for (let i = 1; i < nodes.n; i++)
		own[i] = frames.flags[nodes.frame[i]] & OWN ? i : own[nodes.parent[i]];
	for (let i = 1; i < nodes.n; i++)
		own[i] ||= i;
	return own;
}

// Returns each function's self time, total (a call below the function itself counts once) and both
// totals by kind. `keys` says for each frame which function it counts for; without it each counts
// for itself. `places` says for each node which one its self time is credited to.
function functionSums(profile, sums, keys, places) {
	const {nodes, frames} = profile, until = new Uint32Array(frames.n);
	const self = new Float64Array(frames.n), total = new Float64Array(frames.n);
	const byKind = sums.byKind.map(values => values && new Float64Array(frames.n));
	for (let i = 1; i < nodes.n; i++) {
		const frame = keys ? keys[nodes.frame[i]] : nodes.frame[i];
		if (sums.total[i] === 0)
			continue;
		if (places)
			self[nodes.frame[places[i]]] += sums.self[i];
		else
			self[frame] += sums.self[i];
		if (i < until[frame])
			continue;
		until[frame] = nodes.next[i];
		total[frame] += sums.total[i];
		for (let kind = 0; kind < byKind.length; kind++)
			if (byKind[kind])
				byKind[kind][frame] += sums.byKind[kind][i];
	}
	return {self, total, byKind};
}

// Parses the search: a regular expression (or, if it is not a valid one, a text) for functions'
// names, after "file:" or "module:" for those. Case matters if there is a capital. Returns null if
// the search is empty.
function parseSearch(text) {
	const [, field, pattern] = /^(file:|module:)?(.*)$/s.exec(text);
	if (!pattern)
		return null;
	const flags = /[A-Z]/.test(pattern) ? 'u' : 'iu';
	let regex;
	try {
		regex = new RegExp(pattern, flags);
	} catch {
		regex = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), flags);
	}
	return {field: (field ?? 'name:').slice(0, -1), regex};
}

// Returns byFrame[frame], 1 if the frame matches; byNode[node], 1 if the node or one above it does;
// and tops, the matching nodes that are below no other matching one.
function findMatches(profile, search) {
	const {frames, nodes} = profile;
	const texts = {name: profile.names, file: profile.files, module: profile.modules}[search.field];
	const found = Uint8Array.from(texts, text => search.regex.test(text) ? 1 : 0);
	const byFrame = Uint8Array.from(frames[search.field], text => found[text]);
	if (search.field === 'name') // as it is shown, too
		frames.shortName.forEach((text, frame) => { byFrame[frame] |= found[text]; });
	const byNode = new Uint8Array(nodes.n), tops = [];
	byFrame[nodes.frame[ROOT]] = 0;
	for (let i = 1; i < nodes.n;)
		if (byFrame[nodes.frame[i]]) {
			byNode.fill(1, i, nodes.next[i]);
			tops.push(i);
			i = nodes.next[i];
		} else {
			i++;
		}
	return {byFrame, byNode, tops};
}

// Returns the time of the matching nodes at or below the node `within`, none of it twice.
function matchedTime(profile, sums, matches, within = ROOT) {
	const {next} = profile.nodes;
	if (matches.byNode[within])
		return sums.total[within];
	let time = 0;
	for (const i of matches.tops)
		if (i >= within && i < next[within])
			time += sums.total[i];
	return time;
}

// Returns what the threads wait for in the runs whose node is in the set: {waits: [[text,
// time]...], longest: {run, thread} or null}. The longest wait is found by its whole length, within
// the range or beyond.
function waitsOf(profile, choice, sums, isIn) {
	const {runs} = profile, time = new Map();
	let longest = null;
	for (const thread of sums.threads)
		eachRun(profile, [thread], choice.from, choice.to, (i, length) => {
			if (!isIn(runs.node[i]) || sums.places?.[runs.node[i]] < 0 || choice.off >> runs.kind[i] & 1 || profile.kinds[runs.kind[i]] === 'running')
				return;
			const text = profile.waits[runs.wait[i]];
			if (text)
				time.set(text, (time.get(text) ?? 0) + length * weightOf(thread, runs.kind[i]));
			const whole = runs.end[i] - runs.start[i];
			if (!longest || whole > longest.time)
				longest = {run: i, thread, time: whole};
		});
	const waits = [...time].sort((a, b) => b[1] - a[1]);
	return {waits, longest};
}

// Splits a group by caller. A group of a tree of callers holds places in the tree that have the
// same functions below them: the place at[i] stands for the time of the node of[i], from which the
// way upwards began.
function splitByCaller(profile, group) {
	const {nodes} = profile, groups = new Map();
	for (let i = 0; i < group.at.length; i++) {
		if (group.at[i] === ROOT)
			continue;
		const up = nodes.parent[group.at[i]];
		if (up === ROOT)
			continue;
		addToGroup(groups, nodes.frame[up], up, group.of[i], group.weigh);
	}
	return sortGroups(groups);
}

function splitByCallee(profile, group) {
	const {nodes} = profile, groups = new Map();
	for (const at of group.at)
		for (let i = at + 1; i < nodes.next[at]; i = nodes.next[i])
			if (group.weigh(i) > 0)
				addToGroup(groups, nodes.frame[i], i, i, group.weigh);
	return sortGroups(groups);
}

function addToGroup(groups, frame, at, of, weigh) {
	let group = groups.get(frame);
	if (!group)
		groups.set(frame, group = {frame, at: [], of: [], total: 0, weigh});
	group.at.push(at);
	group.of.push(of);
	group.total += weigh(of);
}

function sortGroups(groups) {
	return [...groups.values()].sort((a, b) => b.total - a.total);
}

// Groups all functions by their own time: callers go upwards from these.
function leafGroups(profile, sums) {
	const groups = new Map(), weigh = node => sums.self[node];
	for (let i = 1; i < profile.nodes.n; i++)
		if (sums.self[i] > 0)
			addToGroup(groups, profile.nodes.frame[i], i, i, weigh);
	return sortGroups(groups);
}

// Returns the group of the function's outermost calls.
function functionGroup(profile, sums, frame) {
	const {nodes} = profile, groups = new Map(), weigh = node => sums.total[node];
	for (let i = 1; i < nodes.n;)
		if (nodes.frame[i] === frame) {
			addToGroup(groups, frame, i, i, weigh);
			i = nodes.next[i];
		} else {
			i++;
		}
	return groups.get(frame) ?? {frame, at: [], of: [], total: 0, weigh};
}

// Returns the group's time by kind; `values` has the nodes' time by kind.
function kindsOfGroup(group, values) {
	return values.map(one => one ? group.of.reduce((sum, node) => sum + one[node], 0) : 0);
}
