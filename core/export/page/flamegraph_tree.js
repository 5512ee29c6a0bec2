// SPDX-License-Identifier: Apache-2.0
// The call trees behind the page, free of anything that is drawn.
//
// data.tree: the nodes but the root in preorder, siblings by name, each as variable-length numbers (7 bits a
// byte, the lowest first) in base64: function; ends << 2 | guessed << 1 | inlined, where `ends` is how many
// levels the node is above its predecessor's child; line; own value in units of data.scale; in a diff also the
// base's own value. data.functions is in the order of names, so that comparing indices compares names.
"use strict";
const INLINED = 1, GUESSED = 2;

// Common: nodes are numbers, 0 is the root; kids() are made when they are asked for, in the order of names.
class Tree {
	constructor() {
		this.fn = [-1]; this.parent = [-1]; this.depth = [0]; this.flags = [0]; this.line = [0];
		this.value = [0]; this.base = [0]; this.self = [0]; this.baseSelf = [0];
		this.made = [];
	}
	kids(i) {
		return this.made[i] || (this.made[i] = this.find(i));
	}
	// The functions from below the root down to i.
	path(i) {
		const out = [];
		for (; i > 0; i = this.parent[i])
			out.push(this.fn[i]);
		return out.reverse();
	}
	// The node that has that path, or the last one on the way that exists; functions of `skip` may be missing.
	follow(path, skip) {
		let at = 0;
		for (const fn of path) {
			const next = this.kids(at).find(k => this.fn[k] === fn);
			if (next === undefined && !skip(fn))
				break;
			at = next === undefined ? at : next;
		}
		return at;
	}
}

class CallTree extends Tree {
	constructor(data) {
		super();
		const bytes = atob(data.tree), n = data.nodes + 1;
		this.fn = new Int32Array(n); this.parent = new Int32Array(n); this.depth = new Uint32Array(n);
		this.line = new Uint32Array(n); this.flags = new Uint8Array(n); this.end = new Uint32Array(n);
		for (const name of ["value", "base", "self", "baseSelf"])
			this[name] = new Float64Array(n);
		this.fn[0] = this.parent[0] = -1;
		this.read(bytes, n, data);
		this.add(n);
		this.omit(...data.omitted);
	}
	read(bytes, n, data) {
		let at = 0, above = 0;
		const number = () => {
			let v = 0;
			for (let scale = 1; ; scale *= 128) {
				const b = bytes.charCodeAt(at++);
				v += (b & 127) * scale;
				if (b < 128)
					return v;
			}
		};
		for (let i = 1; i < n; i++) {
			this.fn[i] = number();
			const how = number();
			for (let ends = how >> 2; ends > 0; ends--)
				above = this.parent[above];
			this.parent[i] = above;
			this.depth[i] = this.depth[above] + 1;
			this.flags[i] = how & 3;
			this.line[i] = number();
			this.self[i] = this.value[i] = number() * data.scale;
			if (data.diff)
				this.baseSelf[i] = this.base[i] = number() * data.scale;
			above = i;
		}
	}
	// Values of parents from those of their children: preorder backwards.
	add(n) {
		for (let i = n - 1; i > 0; i--) {
			const p = this.parent[i];
			this.end[i] = Math.max(this.end[i], i + 1);
			this.end[p] = Math.max(this.end[p], this.end[i]);
			this.value[p] += this.value[i];
			this.base[p] += this.base[i];
		}
		this.end[0] = n;
	}
	// The root's own: stacks that are not drawn.
	omit(value, base) {
		this.value[0] += this.self[0] = value;
		this.base[0] += this.baseSelf[0] = base;
	}
	find(i) {
		const out = [];
		for (let k = i + 1; k < this.end[i]; k = this.end[k])
			out.push(k);
		return out;
	}
}

// A tree whose nodes stand for several of the call tree's: `items` are [node, value, base value] of each.
class Grouped extends Tree {
	// off: (node of the call tree) => are its calls its caller's? out: .. => is it omitted, with its calls?
	constructor(calls, off, out) {
		super();
		this.calls = calls;
		this.off = off;
		this.out = out;
		this.items = [];
		const dropped = this.dropped();
		this.value[0] = calls.value[0] - dropped.reduce((sum, i) => sum + calls.value[i], 0);
		this.base[0] = calls.base[0] - dropped.reduce((sum, i) => sum + calls.base[i], 0);
	}
	// The nodes that are omitted: labels are at the roots, so that no other node is visited.
	dropped() {
		const c = this.calls, todo = [0], list = [];
		while (todo.length) {
			for (const k of c.find(todo.pop())) {
				if (this.out(k))
					list.push(k);
				else if (isLabel(c.fn[k]))
					todo.push(k);
			}
		}
		return list;
	}
	group(parent, items) {
		const groups = new Map(), c = this.calls;
		for (const item of items) {
			const g = groups.get(c.fn[item[0]]);
			if (g)
				g.push(item);
			else
				groups.set(c.fn[item[0]], [item]);
		}
		return [...groups.keys()].sort((a, b) => a - b).map(fn => this.node(parent, fn, groups.get(fn)));
	}
	node(parent, fn, items) {
		const c = this.calls, i = this.fn.length, [first] = items[0];
		let inlined = INLINED, guessed = 0, line = c.line[first], value = 0, base = 0;
		for (const [k, v, b] of items) {
			inlined &= c.flags[k];
			guessed |= c.flags[k] & GUESSED;
			line = line === c.line[k] ? line : 0;
			value += v;
			base += b;
		}
		this.fn.push(fn); this.parent.push(parent); this.depth.push(this.depth[parent] + 1);
		this.flags.push(inlined | guessed); this.line.push(line);
		this.value.push(value); this.base.push(base); this.self.push(0); this.baseSelf.push(0);
		this.items.push(items);
		return i;
	}
}

// The call tree with some frames left out: their time is their caller's.
class Filtered extends Grouped {
	constructor(calls, off, out) {
		super(calls, off, out);
		this.items.push([[0, this.value[0], this.base[0]]]);
		this.self[0] = this.own(0, "self");
		this.baseSelf[0] = this.own(0, "baseSelf");
	}
	// What the items and the frames left out below them have of their own.
	own(i, what) {
		const c = this.calls, todo = this.items[i].map(item => item[0]);
		let sum = 0;
		while (todo.length) {
			const k = todo.pop();
			sum += c[what][k];
			for (let d = k + 1; d < c.end[k]; d = c.end[d])
				if (!this.out(d) && this.off(d))
					todo.push(d);
		}
		return sum;
	}
	node(parent, fn, items) {
		const i = super.node(parent, fn, items);
		this.self[i] = this.own(i, "self");
		this.baseSelf[i] = this.own(i, "baseSelf");
		return i;
	}
	find(i) {
		const c = this.calls, todo = this.items[i].map(item => item[0]), out = [];
		while (todo.length) {
			const k = todo.pop();
			for (let d = k + 1; d < c.end[k]; d = c.end[d]) {
				if (this.out(d))
					continue;
				if (this.off(d))
					todo.push(d);
				else
					out.push([d, c.value[d], c.base[d]]);
			}
		}
		return this.group(i, out);
	}
}

// Leaf first: below the root what has time of its own, below that its callers.
class Inverted extends Grouped {
	constructor(calls, off, out) {
		super(calls, off, out);
		const leaves = [], ends = new Map(this.dropped().map(i => [i, calls.end[i]]));
		for (let i = 1; i < calls.fn.length; i++) {
			while (ends.has(i))
				i = ends.get(i);
			if (calls.self[i] || calls.baseSelf[i])
				leaves.push([i, calls.self[i], calls.baseSelf[i]]);
		}
		this.items.push(leaves);
	}
	node(parent, fn, items) {
		const i = super.node(parent, fn, items);
		if (parent === 0) {
			this.self[i] = this.value[i];
			this.baseSelf[i] = this.base[i];
		}
		return i;
	}
	find(i) {
		const c = this.calls, out = [];
		for (const [k, v, b] of this.items[i]) {
			let up = i === 0 ? k : c.parent[k];
			while (up > 0 && this.off(up))
				up = c.parent[up];
			if (up > 0)
				out.push([up, v, b]);
		}
		return this.group(i, out);
	}
}
