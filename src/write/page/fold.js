// Frames that every program has are folded at first: what starts the program and its threads, and what
// is within libc's and the languages' locks. The profile then has two trees: all frames, and the
// others, in which equal stacks are one.

// Of a stack's beginning: C and C++, Rust, Go, Python, Java. By short names.
const STARTS = new RegExp('^(' + [
	'_start(_c)?', '_*libc_start_(main|call_main).*', 'generic_start_main', '_*clone[23]?', 'start_thread',
	'execute_native_thread_routine', 'std::thread::(_State_impl|_Invoker)::.*', 'std::__invoke(_impl)?',
	'std::(rt|panic|panicking|sys|sys_common)::.*', 'std::thread::(Builder|spawnhook|lifecycle)::.*',
	'(core::ops::function|core::panic::unwind_safe|Box|alloc::boxed::Box|AssertUnwindSafe)::.*call_once.*',
	'runtime\\.(goexit|main|rt0_go)',
	'(_run_module_as_main|_run_code|builtin_exec(_impl)?|Thread\\._bootstrap(_inner)?|Thread\\.run)',
	'thread_native_entry|Thread::call_run|JavaThread::(run|run_helper|thread_main_inner)|thread_entry|JavaCalls::call.*',
].join('|') + ')$');
const START_MODULES = /\/(lib(c|stdc\+\+|pthread)[.-][^/]*|ld-(linux|musl)[^/]*)$/; // of unnamed ones

// Functions whose insides are folded into them.
const LOCKS = new RegExp('^(_*(GI_+|new_)?)?(' + [
	'pthread_(mutex|rwlock|spin|cond|barrier)_\\w*', 'pthread_(join|tryjoin_np|timedjoin_np|clockjoin\\w*)',
	'sem_(wait|timedwait|clockwait|post)', 'mtx_\\w+', 'cnd_\\w+', 'cxa_guard_acquire', 'PyThread_acquire_lock\\w*', 'take_gil', 'drop_gil',
	'(internal/)?sync\\.\\(\\*(Mutex|RWMutex|WaitGroup|Cond)\\)\\.\\w+', 'runtime\\.(lock2?|unlock2?|gopark|notesleep|notewakeup|semacquire1?|selectgo|chanrecv1?|chansend1?)',
].join('|') + ')$');

// Returns for each node whether it is folded. Only a frame that is not the last of its stacks can be
// one of the beginning.
function findFolded(profile) {
	const {frames, names, modules, files, nodes} = profile;
	const [starts, locks, mains, creators] = [0, 1, 2, 3].map(() => new Uint8Array(frames.n));
	for (let i = 0; i < frames.n; i++) {
		const name = names[frames.shortName[i]].replace(/@.*/, ''), module = modules[frames.module[i]];
		starts[i] = STARTS.test(name) || name[0] === '[' && START_MODULES.test(module) ? 1 : 0;
		creators[i] = name.startsWith('created by ') ? 1 : 0; // of a goroutine
		mains[i] = name === 'main' ? 1 : 0; // Rust's has more of the beginning behind it
		locks[i] = LOCKS.test(name) ? 1 : 0;
	}
	const separators = findSeparators(profile); // behind one, another stack begins
	const HEAD = 1, INSIDE = 2, folded = new Uint8Array(nodes.n), state = new Uint8Array(nodes.n);
	state[ROOT] = HEAD;
	for (let i = 1; i < nodes.n; i++) {
		const frame = nodes.frame[i], above = state[nodes.parent[i]];
		const own = frames.flags[frame] & OWN, inner = frames.flags[frame] & (KERNEL | TRUNCATED);
		// Roots that the profiler names, such as threads, have neither a file nor a module. In other
		// tools' stacks none has.
		const nameOnly = frames.module[frame] === frames.module[nodes.frame[ROOT]] && !files[frames.file[frame]];
		const named = creators[frame] || nameOnly && (profile.timed || nodes.depth[i] === 1);
		if (separators[frame])
			state[i] = HEAD;
		else if (above === HEAD && starts[frame] && !own && nodes.next[i] > i + 1)
			folded[i] = 1, state[i] = HEAD;
		else if (above === INSIDE && !own && !inner)
			folded[i] = 1, state[i] = INSIDE;
		else
			state[i] = locks[frame] ? INSIDE : above === HEAD && (named || mains[frame]) ? HEAD : 0;
	}
	return folded;
}

// Returns the tree without the folded nodes, and place[node], the node of it that a node counts for.
// Its nodes are in preorder, too; of siblings the heavier one, by weight[node], is the first.
function foldNodes(nodes, folded, weight) {
	const {n} = nodes, place = new Uint32Array(n);
	const parent = new Uint32Array(n), frame = new Uint32Array(n), depth = new Uint32Array(n), next = new Uint32Array(n);
	const before = new Uint32Array(n + 1); // how many folded ones there are before a node
	for (let i = 0; i < n; i++)
		before[i + 1] = before[i] + folded[i];
	let count = 0, maxDepth = 0;
	const put = (of, above, level) => {
		parent[count] = above;
		frame[count] = nodes.frame[of];
		depth[count] = level;
		maxDepth = Math.max(maxDepth, level);
		return count++;
	};
	// Copies a node below which nothing is folded, with all below it.
	const copy = (from, above, level) => {
		const shift = count - from;
		for (let i = from; i < nodes.next[from]; i++)
			place[i] = put(i, i === from ? above : nodes.parent[i] + shift, level + nodes.depth[i] - nodes.depth[from]);
	};
	// Sorts the children of equal nodes into groups of equal nodes.
	const groupsBelow = sources => {
		const groups = new Map(), todo = [...sources].reverse();
		while (todo.length > 0) {
			const above = todo.pop();
			for (let i = above + 1; i < nodes.next[above]; i = nodes.next[i]) {
				if (folded[i])
					todo.push(i);
				else if (groups.has(nodes.frame[i]))
					groups.get(nodes.frame[i]).push(i);
				else
					groups.set(nodes.frame[i], [i]);
			}
		}
		const sum = group => group.reduce((total, i) => total + weight[i], 0);
		return [...groups.values()].map(group => [sum(group), group]).sort((a, b) => a[0] - b[0]).map(([, group]) => group);
	};
	const todo = [[[ROOT], ROOT, 0]];
	while (todo.length > 0) {
		const [sources, above, level] = todo.pop(), [first] = sources;
		if (sources.length === 1 && before[nodes.next[first]] === before[first]) {
			copy(first, above, level);
			continue;
		}
		const made = put(first, above, level);
		for (const source of sources)
			place[source] = made;
		for (const group of groupsBelow(sources))
			todo.push([group, made, level + 1]);
	}
	for (let i = 1; i < n; i++)
		if (folded[i])
			place[i] = place[nodes.parent[i]];
	next.fill(1, 0, count);
	for (let i = count - 1; i > 0; i--)
		next[parent[i]] += next[i];
	for (let i = 0; i < count; i++)
		next[i] += i;
	const cut = array => array.slice(0, count);
	return {place, tree: {n: count, frame: cut(frame), parent: cut(parent), depth: cut(depth), next: cut(next), maxDepth}};
}

// Returns the profile without the folded frames; itself if there are none.
function foldProfile(profile) {
	const {nodes, runs} = profile, folded = findFolded(profile);
	if (!folded.includes(1))
		return profile;
	const weight = new Float64Array(nodes.n);
	for (let i = 0; i < runs.n; i++)
		weight[runs.node[i]] += runs.end[i] - runs.start[i];
	accumulate(nodes, weight);
	const {place, tree} = foldNodes(nodes, folded, weight);
	return {...profile, nodes: tree, place, runs: {...runs, node: runs.node.map(node => place[node])}};
}
