// Who makes it wait: a tree from the functions that wait, over what they wait for, to the stacks of
// those that they wait for, which --blame puts below the frame "--".

// Returns for each frame whether it is the one between a stack that waits and the other's.
function findSeparators(profile) {
	const {frames, names, modules} = profile;
	return Uint8Array.from(frames.name, (name, frame) => names[name] === '--' && modules[frames.module[frame]] === '[blame]' ? 1 : 0);
}

// Returns for each node the topmost separator at or above it; ROOT: there is none.
function topSeparators({nodes}, separators) {
	const tops = new Uint32Array(nodes.n);
	for (let i = 1; i < nodes.n; i++)
		tops[i] = tops[nodes.parent[i]] || (separators[nodes.frame[i]] ? i : ROOT);
	return tops;
}

// Returns the chosen time that is blocked, as [{node, wait, kind, time}...].
function blockedTime(profile, choice, sums) {
	const {runs, waits, kinds} = profile, found = new Map();
	const skipped = kinds.map((name, kind) => ['running', 'runnable'].includes(name) || choice.off >> kind & 1);
	eachRun(profile, sums.threads, choice.from, choice.to, (i, length, thread) => {
		const kind = runs.kind[i], wait = runs.wait[i], node = sums.places ? sums.places[runs.node[i]] : runs.node[i];
		if (skipped[kind] || node < 0)
			return;
		const key = (node * waits.length + wait) * kinds.length + kind, one = found.get(key) ?? {node, wait, kind, time: 0};
		one.time += length * weightOf(thread, kind);
		found.set(key, one);
	});
	return [...found.values()];
}

// Returns the tree as {nodes, sums}, like the profile's; label[node]: the text of a node that is no
// function.
function blameTree(profile, choice, sums) {
	const {nodes, waits, kinds} = profile, own = ownPlaces(profile);
	const separators = findSeparators(profile), tops = topSeparators(profile, separators);
	const branch = key => ({key, self: 0, total: 0, kinds: kinds.map(() => 0), below: new Map()});
	const root = branch('all waits');
	for (const {node, wait, kind, time} of blockedTime(profile, choice, sums)) {
		const path = [];
		for (let i = node; tops[i] !== ROOT && i !== tops[i]; i = nodes.parent[i])
			path.push(separators[nodes.frame[i]] ? 'which waits for' : nodes.frame[i]);
		path.push(waits[wait] || 'it is not known for what', nodes.frame[own[tops[node] ? nodes.parent[tops[node]] : node]]);
		let at = root;
		for (const key of [null, ...path.reverse()]) {
			if (key !== null && !at.below.has(key))
				at.below.set(key, branch(key));
			at = key === null ? at : at.below.get(key);
			at.total += time;
			at.kinds[kind] += time;
		}
		at.self += time;
	}
	return flatten(root, kinds.length);
}

// Returns the branches as nodes in preorder.
function flatten(root, n_kinds) {
	const frame = [], parent = [], label = [], next = [], self = [], total = [], todo = [[root, ROOT]];
	const byKind = Array.from({length: n_kinds}, () => []);
	while (todo.length > 0) {
		const [branch, above] = todo.pop(), node = frame.length, isLabel = typeof branch.key === 'string';
		frame.push(isLabel ? ROOT : branch.key);
		label.push(isLabel ? branch.key : '');
		parent.push(above);
		next.push(1);
		self.push(branch.self);
		total.push(branch.total);
		byKind.forEach((values, kind) => values.push(branch.kinds[kind]));
		for (const below of branch.below.values())
			todo.push([below, node]);
	}
	for (let i = frame.length - 1; i > 0; i--)
		next[parent[i]] += next[i];
	return {nodes: {n: frame.length, frame, parent, label, next: next.map((n, i) => i + n)}, sums: {self, total, byKind, time: total[ROOT]}};
}

// Returns the thread that the run waits for, or null: it is not known, or not in the profile.
function holderOf(profile, run) {
	const {runs, waits, threads} = profile;
	const found = /(held by|held by process|the end of|other end:) ".*" (\d+)$/s.exec(waits[runs.wait[run]]);
	const id = found && Number(found[2]), lives = thread => !thread.base && thread.birth <= runs.end[run];
	return found && (threads.findLast(thread => thread.tid === id && lives(thread)) ?? threads.find(thread => thread.pid === id)) || null;
}
