// SPDX-License-Identifier: Apache-2.0
// Places the boxes of a graph in layers, callers above callees. It does not use the document.
// nodes: {w, h}; edges: {from, to, weight}. Sets x, y (middle) and layer of nodes, points [x, y].. of edges.
const GAP = 26, LAYER = 64, SWEEPS = 12;

// The edges without those that close a cycle, as found when the heaviest edges are followed first.
function forward(n, edges) {
	const out = Array.from({ length: n }, () => []), into = new Uint32Array(n), state = new Uint8Array(n), list = [];
	for (const e of [...edges].sort((a, b) => b.weight - a.weight)) {
		out[e.from].push(e);
		into[e.to]++;
	}
	const visit = first => {
		const stack = [[first, 0]];
		state[first] = 1;
		while (stack.length) {
			const top = stack[stack.length - 1], e = out[top[0]][top[1]++];
			if (!e) {
				state[top[0]] = 2;
				stack.pop();
				continue;
			}
			if (state[e.to] === 1)
				continue;
			list.push(e);
			if (!state[e.to]) {
				state[e.to] = 1;
				stack.push([e.to, 0]);
			}
		}
	};
	const order = [...Array(n).keys()].sort((a, b) => into[a] - into[b]);
	for (const i of order)
		if (!state[i])
			visit(i);
	return list;
}
// The layer of each node: the length of the longest path to it from a node without incoming edges.
function layersOf(n, edges) {
	const layer = new Uint32Array(n), waits = new Uint32Array(n), out = Array.from({ length: n }, () => []);
	for (const e of edges) {
		out[e.from].push(e.to);
		waits[e.to]++;
	}
	const ready = [...Array(n).keys()].filter(i => !waits[i]);
	while (ready.length) {
		const i = ready.pop();
		for (const to of out[i]) {
			layer[to] = Math.max(layer[to], layer[i] + 1);
			if (!--waits[to])
				ready.push(to);
		}
	}
	return layer;
}
// Items of the layers: nodes, and for each layer that an edge passes an invisible item.
function itemsOf(nodes, edges, layer) {
	const items = nodes.map((node, i) => ({ layer: layer[i], w: node.w, up: [], down: [], node }));
	for (const e of edges) {
		const step = layer[e.from] < layer[e.to] ? 1 : -1;
		e.way = [items[e.from]];
		for (let at = layer[e.from] + step; step * at < step * layer[e.to]; at += step) {
			items.push({ layer: at, w: 6, up: [], down: [] });
			e.way.push(items[items.length - 1]);
		}
		e.way.push(items[e.to]);
		for (let k = 0; k + 1 < e.way.length; k++) {
			const [a, b] = step > 0 ? [e.way[k], e.way[k + 1]] : [e.way[k + 1], e.way[k]];
			if (a.layer !== b.layer) {
				a.down.push(b);
				b.up.push(a);
			}
		}
	}
	return items;
}
const mean = (list, key, own) => list.length ? list.reduce((sum, o) => sum + o[key], 0) / list.length : own;
// Orders the items of each layer by the mean place of their neighbours in the layer above or below.
function order(rows) {
	for (const row of rows)
		row.forEach((item, at) => { item.at = at; });
	for (let sweep = 0; sweep < SWEEPS; sweep++) {
		const side = sweep % 2 ? "down" : "up";
		for (const row of sweep % 2 ? [...rows].reverse() : rows) {
			for (const item of row)
				item.wish = mean(item[side], "at", item.at);
			row.sort((a, b) => a.wish - b.wish);
			row.forEach((item, at) => { item.at = at; });
		}
	}
}
// Sets x as near to the wished x as order and gaps allow (isotonic regression: items that would overlap move as a block).
function spread(row) {
	const blocks = [];
	let offset = 0;
	row.forEach((item, at) => {
		offset += at ? row[at - 1].w / 2 + GAP + item.w / 2 : 0;
		let block = { sum: item.wish - offset, n: 1, items: [[item, offset]] };
		while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].n > block.sum / block.n) {
			const last = blocks.pop();
			block = { sum: last.sum + block.sum, n: last.n + block.n, items: last.items.concat(block.items) };
		}
		blocks.push(block);
	});
	for (const block of blocks)
		for (const [item, own] of block.items)
			item.x = block.sum / block.n + own;
}
function place(rows) {
	for (const row of rows) {
		let x = 0;
		for (const item of row) {
			item.x = x + item.w / 2;
			x += item.w + GAP;
		}
		for (const item of row)
			item.x -= x / 2;
	}
	for (let sweep = 0; sweep < SWEEPS; sweep++) {
		const side = sweep % 2 ? "down" : "up";
		for (const row of sweep % 2 ? [...rows].reverse() : rows) {
			for (const item of row)
				item.wish = mean(item[side], "x", item.x);
			spread(row);
		}
	}
}
// The groups of nodes that edges connect, as arrays of indices.
function parts(n, edges) {
	const root = [...Array(n).keys()], find = i => { while (root[i] !== i) i = root[i] = root[root[i]]; return i; }, out = new Map();
	for (const e of edges)
		root[find(e.from)] = find(e.to);
	for (let i = 0; i < n; i++)
		out.set(find(i), [...(out.get(find(i)) ?? []), i]);
	return [...out.values()].sort((a, b) => b.length - a.length);
}
// Places one part, with x and y from its upper left corner. Returns its width and height.
function layOutPart(nodes, edges) {
	const layer = layersOf(nodes.length, forward(nodes.length, edges)), items = itemsOf(nodes, edges, layer), rows = [];
	for (const item of items)
		(rows[item.layer] ??= []).push(item);
	order(rows);
	place(rows);
	const left = Math.min(...items.map(item => item.x - item.w / 2)), right = Math.max(...items.map(item => item.x + item.w / 2));
	let y = 0;
	for (const row of rows) {
		const h = Math.max(0, ...row.map(item => item.node?.h ?? 0));
		for (const item of row)
			Object.assign(item, { x: item.x - left, y: y + h / 2 });
		y += h + LAYER;
	}
	for (const item of items)
		if (item.node)
			Object.assign(item.node, { x: item.x, y: item.y, layer: item.layer });
	for (const e of edges) {
		e.points = e.way.map(item => [item.x, item.y]);
		delete e.way;
	}
	return { width: right - left, height: y - LAYER };
}
// Places all parts beside each other, in as many shelves as they need.
export function layOut(nodes, edges, shelf = 1200) {
	const own = edges.filter(e => e.from !== e.to), all = { width: 0, height: 0 };
	let x = 0, y = 0, h = 0;
	for (const part of parts(nodes.length, own)) {
		const index = new Map(part.map((i, at) => [i, at])), some = part.map(i => nodes[i]);
		const lines = own.filter(e => index.has(e.from)), moved = lines.map(e => ({ from: index.get(e.from), to: index.get(e.to), weight: e.weight }));
		const size = layOutPart(some, moved);
		if (x && x + size.width > Math.max(shelf, all.width)) {
			y += h + LAYER;
			x = h = 0;
		}
		for (const node of some)
			Object.assign(node, { x: node.x + x, y: node.y + y });
		lines.forEach((e, at) => { e.points = moved[at].points.map(([px, py]) => [px + x, py + y]); });
		x += size.width + GAP;
		h = Math.max(h, size.height);
		all.width = Math.max(all.width, x - GAP);
		all.height = y + h;
	}
	return all;
}
