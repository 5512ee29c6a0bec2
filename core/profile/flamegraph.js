// SPDX-License-Identifier: Apache-2.0
// The flame graph page: an icicle, root at the top. The call tree comes in preorder, as variable-length
// numbers in base64: function, depth, flags, value (and base value) of each node. Only what is wider than a
// pixel and inside the window is drawn; the inverted tree is made as far as it is looked at.
"use strict";
(() => {
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const ROW = 19, diff = data.diff, T = data.total || 1, B = data.base || 1;
const KINDS = [["program", "#e9a13b"], ["libraries", "#6db7e8"], ["kernel", "#cf83b0"], ["run time and JIT", "#3fae86"], ["not code", "#a9abae"]];
const fns = data.functions; // [name, file, library, kind, self, total, base self, base total]

// ---- the tree ----
function decode(text) {
	const raw = atob(text), out = [];
	for (let i = 0, n = 0, m = 1; i < raw.length; i++) {
		const b = raw.charCodeAt(i);
		n += (b & 127) * m;
		if (b & 128) { m *= 128; } else { out.push(n); n = 0; m = 1; }
	}
	return out;
}

// Nodes by index; node 0 is the root. w is what widths are made of: in a diff both sides, each as its share.
class Tree {
	constructor() { this.fn = []; this.v = []; this.b = []; this.w = []; this.self = []; this.flags = []; this.parent = []; this.depth = []; this.memo = []; }
	weigh(v, b) { return diff ? v / T + b / B : v / T; }
	kids(i) { return this.memo[i] || (this.memo[i] = this.find(i).sort((x, y) => { const a = fns[this.fn[x]][0], c = fns[this.fn[y]][0]; return a < c ? -1 : a > c ? 1 : x - y; })); }
}

class Forward extends Tree {
	constructor(numbers) {
		super();
		const step = diff ? 5 : 4, n = numbers.length / step, at = [0];
		this.add(-1, 0, 0, data.drawn, data.drawnBase, -1);
		for (let i = 0; i < n; i++) {
			const o = i * step, depth = numbers[o + 1];
			this.add(numbers[o], depth, numbers[o + 2], numbers[o + 3] * data.scale, diff ? numbers[o + 4] * data.scale : 0, at[depth - 1]);
			at[depth] = i + 1;
		}
		this.end = new Uint32Array(n + 1);
		for (let i = n; i >= 0; i--) {
			this.end[i] = Math.max(this.end[i], i + 1);
			const p = this.parent[i];
			if (p >= 0) { this.end[p] = Math.max(this.end[p], this.end[i]); this.self[p] -= this.v[i]; this.selfBase[p] -= this.b[i]; }
		}
	}
	add(fn, depth, flags, v, b, parent) {
		this.selfBase = this.selfBase || [];
		this.fn.push(fn); this.depth.push(depth); this.flags.push(flags); this.v.push(v); this.b.push(b); this.parent.push(parent);
		this.w.push(this.weigh(v, b)); this.self.push(v); this.selfBase.push(b);
	}
	find(i) { const out = []; for (let c = i + 1; c < this.end[i]; c = this.end[c]) out.push(c); return out; }
}

// Leaf first: a node stands for nodes of the forward tree, all of one function, reached by the same callees.
class Inverted extends Tree {
	constructor(forward) {
		super();
		this.forward = forward; this.items = [];
		const items = [];
		for (let i = 1; i < forward.fn.length; i++)
			if (forward.self[i] > 0 || (diff && forward.selfBase[i] > 0)) items.push([i, forward.self[i], forward.selfBase[i]]);
		this.add(-1, 0, data.drawn, data.drawnBase, -1, items);
	}
	add(fn, depth, v, b, parent, items) {
		this.fn.push(fn); this.depth.push(depth); this.flags.push(0); this.v.push(v); this.b.push(b); this.parent.push(parent);
		this.w.push(this.weigh(v, b)); this.self.push(depth === 1 ? v : 0); this.items.push(items);
		return this.fn.length - 1;
	}
	find(i) {
		const groups = new Map(), f = this.forward;
		for (const [node, v, b] of this.items[i]) {
			const up = i === 0 ? node : f.parent[node];
			if (up <= 0) continue;
			let g = groups.get(f.fn[up]);
			if (!g) groups.set(f.fn[up], g = { v: 0, b: 0, items: [], flags: 0 });
			g.v += v; g.b += b; g.items.push([up, v, b]); g.flags |= f.flags[up];
		}
		const out = [];
		for (const [fn, g] of groups) { const n = this.add(fn, this.depth[i] + 1, g.v, g.b, i, g.items); this.flags[n] = g.flags; out.push(n); }
		return out;
	}
}

const forward = new Forward(decode(data.tree));
let inverted = null, tree = forward;

// ---- state ----
let zoom = 0, selected = 0, hovered = -1, lit = -1, pattern = null, off = new Set(), boxes = [];
let matches = new Uint8Array(fns.length);
const canvas = $("canvas"), scroller = $("scroller"), ctx = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

// ---- numbers ----
function number(v) {
	if (!v) return "0";
	if (data.unit === "nanoseconds") {
		const s = Math.abs(v) / 1e9;
		return (v < 0 ? "-" : "") + (s >= 100 ? s.toFixed(0) + " s" : s >= 1 ? s.toFixed(2) + " s" : s >= 0.001 ? (s * 1e3).toFixed(s >= 0.1 ? 0 : 1) + " ms" : (s * 1e6).toFixed(0) + " µs");
	}
	return v.toLocaleString("en") + (data.unit === "count" ? "" : " " + data.unit);
}
const percent = (v, of) => of ? (100 * v / of).toFixed(Math.abs(100 * v / of) >= 10 ? 1 : 2) + " %" : "0 %";
const base = path => path.slice(path.lastIndexOf("/") + 1);
const nameOf = i => i === 0 ? "all" : fns[tree.fn[i]][0];

// ---- colours ----
function hash(s) { let h = 0; for (let i = 0; i < s.length && i < 60; i++) h = (h * 31 + s.charCodeAt(i)) | 0; return h >>> 0; }
const shades = new Map();
function shade(hex, amount) {
	const n = parseInt(hex.slice(1), 16), f = x => Math.max(0, Math.min(255, Math.round(x * amount)));
	return `rgb(${f(n >> 16)},${f(n >> 8 & 255)},${f(n & 255)})`;
}
function fill(i) {
	if (i === 0) return isDark() ? "#3a3d42" : "#dcdcd8";
	if (diff) return diffColor(tree.v[i] / T, tree.b[i] / B);
	const fn = tree.fn[i], key = fn + (isDark() ? "d" : "l");
	let c = shades.get(key);
	if (!c) shades.set(key, c = shade(KINDS[fns[fn][3]][1], (isDark() ? 0.80 : 0.96) + (hash(fns[fn][0]) % 16) / 100));
	return c;
}
function diffColor(v, b) {
	const d = v + b ? (v - b) / (v + b) : 0, a = Math.min(1, Math.abs(d)) ** 0.7, grey = isDark() ? 120 : 205;
	const to = d > 0 ? [213, 74, 30] : [36, 112, 200];
	return `rgb(${to.map(c => Math.round(grey + (c - grey) * a)).join(",")})`;
}
const isDark = () => dark.matches && !printing;

// ---- drawing ----
// Visits what is wide enough: the zoomed frame's ancestors at full width, then its own tree.
function layout(width) {
	const out = [], chain = [];
	for (let i = tree.parent[zoom]; i >= 0; i = tree.parent[i]) chain.unshift(i);
	chain.forEach((i, d) => out.push({ i, x: 0, w: width, d, above: true }));
	const scale = width / (tree.w[zoom] || 1), stack = [{ i: zoom, x: 0, d: chain.length }];
	while (stack.length) {
		const n = stack.pop(), w = tree.w[n.i] * scale;
		out.push({ i: n.i, x: n.x, w, d: n.d });
		let x = n.x;
		for (const k of tree.kids(n.i)) {
			const kw = tree.w[k] * scale;
			if (kw >= 1) stack.push({ i: k, x, d: n.d + 1 });
			x += kw;
		}
	}
	return out;
}

function drawBox(b, top) {
	const { i, x, w } = b, y = b.d * ROW - top, fn = tree.fn[i], h = ROW - 1, flags = tree.flags[i];
	const faint = b.above || (i > 0 && off.has(fns[fn][3])), hit = i > 0 && matches[fn];
	ctx.globalAlpha = faint ? 0.35 : pattern && !hit ? 0.45 : 1;
	ctx.fillStyle = hit ? (isDark() ? "#d8d13c" : "#f4e04d") : fill(i);
	ctx.fillRect(x, y, Math.max(w - 0.6, 0.6), h);
	if (flags & 2 && w > 4 && hatch) { ctx.fillStyle = hatch; ctx.fillRect(x, y, w - 0.6, h); }
	if (flags & 1 && w > 6) { ctx.fillStyle = "rgba(0,0,0,.5)"; ctx.fillRect(x, y, 1, h); ctx.fillRect(x + 2, y, 1, h); }
	ctx.globalAlpha = faint ? 0.6 : 1;
	if (i === selected || i === hovered || (lit >= 0 && fn === lit)) {
		ctx.strokeStyle = isDark() ? "#fff" : "#000"; ctx.lineWidth = i === selected ? 2 : 1.5;
		ctx.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2, 1), h - 1.5);
	}
	if (w > 24) {
		ctx.fillStyle = isDark() && (i === 0 || faint) ? "#eee" : "#111";
		const room = w - 9, text = fit(nameOf(i), room);
		if (text) ctx.fillText(text, x + 5, y + h / 2 + 0.5);
	}
	ctx.globalAlpha = 1;
}

// Cut in the middle, only where it does not fit.
function fit(text, room) {
	if (text.length > 400) text = text.slice(0, 200) + "…" + text.slice(-199);
	if (ctx.measureText(text).width <= room) return text;
	const n = Math.floor(room / 7);
	if (n < 3) return "";
	return text.slice(0, Math.ceil(n / 2)) + "…" + text.slice(text.length - Math.floor(n / 2) + 1);
}

let hatch = null;
function makeHatch() {
	const c = document.createElement("canvas"), g = c.getContext("2d");
	c.width = c.height = 8; g.strokeStyle = "rgba(0,0,0,.55)"; g.lineWidth = 1.2;
	for (const o of [-8, 0, 8]) { g.beginPath(); g.moveTo(o, 8); g.lineTo(o + 8, 0); g.stroke(); }
	hatch = ctx.createPattern(c, "repeat");
}

let queued = false;
function draw() { if (!queued) { queued = true; requestAnimationFrame(paint); } }
function paint() {
	queued = false;
	const width = scroller.clientWidth, height = printing ? Math.min(3000, depthNow() * ROW) : scroller.clientHeight, dpr = devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(height * dpr)) {
		canvas.width = Math.round(width * dpr); canvas.height = Math.round(height * dpr);
		canvas.style.width = width + "px"; canvas.style.height = height + "px";
		boxes = [];
	}
	if (!boxes.length) {
		boxes = layout(width);
		$("tall").style.height = Math.max(height, depthNow() * ROW + 4) + "px";
	}
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.clearRect(0, 0, width, height);
	ctx.font = "12px system-ui, 'DejaVu Sans', sans-serif"; ctx.textBaseline = "middle";
	if (!hatch) makeHatch();
	const top = printing ? 0 : scroller.scrollTop;
	for (const b of boxes) if (b.d * ROW + ROW > top && b.d * ROW < top + height) drawBox(b, top);
	document.documentElement.dataset.painted = ++paints;
}
let paints = 0;
const depthNow = () => boxes.reduce((m, b) => Math.max(m, b.d + 1), 1);
function changed() { boxes = []; draw(); }

// ---- what a frame is ----
const esc = s => s.replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
function shown(s) { return s.length > 700 ? s.slice(0, 350) + " … " + s.slice(-340) : s; }
function describe(i) {
	const fn = i > 0 ? fns[tree.fn[i]] : ["all", "", "", 0], zoomed = tree.v[zoom], rows = [];
	const line = (what, v, b) => rows.push(`<tr><td>${what}</td><td>${number(v)}</td><td>${percent(v, T)} of all</td>` + (diff ? `<td>before: ${number(b)}</td><td>${percent(b, B)}</td>` : zoom ? `<td>${percent(v, zoomed)} of zoom</td>` : "") + "</tr>");
	line("total", tree.v[i], tree.b[i]);
	if (tree === forward) line("self", tree.self[i], tree.selfBase[i]);
	const flags = tree.flags[i];
	return `<b>${esc(shown(fn[0]))}</b>` + (fn[1] ? `<div class="dim">${esc(shown(fn[1]))}</div>` : "") + (fn[2] ? `<div class="dim">${esc(shown(fn[2]))}</div>` : "") +
		(flags & 1 ? `<div class="dim">inlined into its caller</div>` : "") + (flags & 2 ? `<div class="dim">guessed: the unwinder was not sure of this frame</div>` : "") + `<table>${rows.join("")}</table>`;
}
function oneLine(i) {
	const fn = i > 0 ? fns[tree.fn[i]] : null;
	return `${shown(nameOf(i))}   ${number(tree.v[i])}  ${percent(tree.v[i], T)}` + (diff ? `   before ${percent(tree.b[i], B)}` : "") + (fn && fn[2] ? `   ${base(fn[2])}` : "");
}

// ---- moving ----
function goTo(i, keep) { zoom = i; if (!keep) selected = i; scroller.scrollTop = 0; changed(); tell(); save(); }
function tell() { $("detail").textContent = oneLine(hovered >= 0 ? hovered : selected); }
function boxAt(e) {
	const r = canvas.getBoundingClientRect(), x = e.clientX - r.left, d = Math.floor((e.clientY - r.top + scroller.scrollTop) / ROW);
	return boxes.find(b => b.d === d && x >= b.x && x < b.x + b.w);
}
canvas.addEventListener("mousemove", e => {
	const b = boxAt(e), tip = $("tip"), h = b ? b.i : -1;
	if (h !== hovered) { hovered = h; draw(); if (b) tip.innerHTML = describe(b.i); tell(); }
	tip.hidden = !b;
	if (b) {
		const r = tip.getBoundingClientRect();
		tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - r.width - 6)) + "px";
		tip.style.top = (e.clientY + 18 + r.height > innerHeight ? Math.max(4, e.clientY - r.height - 10) : e.clientY + 18) + "px";
	}
});
canvas.addEventListener("mouseleave", () => { hovered = -1; $("tip").hidden = true; draw(); tell(); });
canvas.addEventListener("click", e => { const b = boxAt(e); if (b) goTo(b.i); });
const up = () => goTo(zoom > 0 ? tree.parent[zoom] : 0);
function move(key) {
	const p = tree.parent[selected], sib = p >= 0 ? tree.kids(p) : [0], at = sib.indexOf(selected);
	if (key === "ArrowUp" && p >= 0) selected = p;
	if (key === "ArrowDown") { const k = tree.kids(selected); if (k.length) selected = k.reduce((m, c) => tree.w[c] > tree.w[m] ? c : m); }
	if (key === "ArrowLeft" && at > 0) selected = sib[at - 1];
	if (key === "ArrowRight" && at < sib.length - 1) selected = sib[at + 1];
	if (!boxes.some(b => b.i === selected)) { zoom = tree.parent[selected] >= 0 ? tree.parent[selected] : 0; changed(); save(); }
	const y = tree.depth[selected] * ROW;
	if (y < scroller.scrollTop) scroller.scrollTop = y;
	if (y + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + ROW - scroller.clientHeight;
	draw(); tell();
}
document.addEventListener("keydown", e => {
	if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
	if (e.target.id === "search") {
		if (e.key === "Escape") { setSearch(""); canvas.focus(); }
		if (e.key === "Enter") canvas.focus();
		return;
	}
	const onButton = e.target.tagName === "BUTTON" || e.target.tagName === "INPUT" || e.target.tagName === "TR";
	const act = { "/": () => $("search").focus(), i: () => setInvert(tree === forward), t: () => setTable($("side").hidden), "?": () => $("keys").showModal(), Backspace: up, Home: () => goTo(0), Escape: () => setSearch("") }[e.key];
	if (act) { e.preventDefault(); act(); } else if (e.key.startsWith("Arrow") && !onButton) { e.preventDefault(); move(e.key); } else if (e.key === "Enter" && !onButton) { goTo(selected); }
});
scroller.addEventListener("scroll", draw);
new ResizeObserver(changed).observe(scroller);
dark.addEventListener("change", draw);
addEventListener("beforeprint", () => { printing = true; boxes = []; paint(); });
addEventListener("afterprint", () => { printing = false; changed(); });

// ---- search ----
function setSearch(text, quiet) {
	const input = $("search");
	if (input.value !== text) input.value = text;
	pattern = null; input.classList.remove("bad"); matches.fill(0); $("matched").value = "";
	if (text) {
		try { pattern = new RegExp(text, /[A-Z]/.test(text) ? "" : "i"); } catch { input.classList.add("bad"); $("matched").value = "not a regular expression"; }
	}
	if (pattern) {
		fns.forEach((f, i) => { matches[i] = pattern.test(f[0]) ? 1 : 0; });
		let sum = 0; // each stack once: nothing below a match is counted again
		for (let i = 1; i < forward.fn.length;) if (matches[forward.fn[i]]) { sum += forward.v[i]; i = forward.end[i]; } else { i++; }
		$("matched").value = percent(sum, T) + " matched";
	}
	fillTable(); draw(); if (!quiet) save();
}
$("search").addEventListener("input", e => setSearch(e.target.value));

// ---- buttons ----
function setInvert(on, quiet) {
	tree = on ? (inverted = inverted || new Inverted(forward)) : forward;
	$("invert").setAttribute("aria-pressed", on);
	zoom = selected = 0; hovered = -1; scroller.scrollTop = 0; changed(); tell(); if (!quiet) save();
}
function setTable(on, quiet) { $("side").hidden = !on; $("showtable").setAttribute("aria-pressed", on); if (!quiet) save(); }
$("invert").onclick = () => setInvert(tree === forward);
$("reset").onclick = () => { setSearch(""); goTo(0); };
$("back").onclick = up;
$("showtable").onclick = () => setTable($("side").hidden);
$("help").onclick = () => $("keys").showModal();

// ---- legend ----
function legend() {
	const box = $("legend");
	if (diff) {
		box.innerHTML = `<span class="note"><i style="background:rgb(36,112,200)"></i>less than before</span><span class="note"><i style="background:#cdcdcd"></i>the same</span><span class="note"><i style="background:rgb(213,74,30)"></i>more than before</span><span class="note">width: both sides together</span>`;
		return;
	}
	KINDS.forEach(([name, color], k) => {
		if (!fns.some(f => f[3] === k)) return;
		const label = document.createElement("label");
		label.innerHTML = `<input type="checkbox" checked data-kind="${k}"><i style="background:${color}"></i>${name}`;
		label.firstChild.onchange = e => { if (e.target.checked) off.delete(k); else off.add(k); draw(); };
		box.append(label);
	});
	const any = forward.flags.reduce((a, f) => a | f, 0);
	if (any & 1) box.insertAdjacentHTML("beforeend", `<span class="note"><i class="inline"></i>inlined</span>`);
	if (any & 2) box.insertAdjacentHTML("beforeend", `<span class="note"><i class="hatch"></i>guessed</span>`);
}

// ---- table ----
const columns = diff ? [["self: change, now", f => f[4] / T - f[6] / B], ["total: change, now", f => f[5] / T - f[7] / B], ["function", f => f[0]], ["library", f => base(f[2])]]
	: [["self", f => f[4]], ["total", f => f[5]], ["function", f => f[0]], ["library", f => base(f[2])]];
let order = [0, -1];
function head() {
	const tr = $("table").tHead.rows[0];
	columns.forEach(([name], c) => {
		const th = document.createElement("th"), b = document.createElement("button");
		if (c > 1) th.className = "text";
		b.textContent = name; th.append(b); tr.append(th);
		b.onclick = () => { order = order[0] === c ? [c, -order[1]] : [c, c > 1 ? 1 : -1]; fillTable(); };
	});
}
function cells(f) {
	const td = (v, of, b, bof) => diff ? `<td>${v / of > b / bof ? "+" : ""}${(100 * (v / of - b / bof)).toFixed(2)} % <small>${percent(v, of)}</small></td>` : `<td>${number(v)} <small>${percent(v, of)}</small></td>`;
	return td(f[4], T, f[6], B) + td(f[5], T, f[7], B) + `<td class="text name" title="${esc(shown(f[0]))}">${esc(shown(f[0]))}</td><td class="text lib" title="${esc(f[2])}">${esc(base(f[2]))}</td>`;
}
function fillTable() {
	const [c, dir] = order, key = columns[c][1], size = diff && c < 2 ? x => Math.abs(x) : x => x;
	const rows = fns.map((f, i) => i).filter(i => !pattern || matches[i]);
	rows.sort((a, b) => { const x = size(key(fns[a])), y = size(key(fns[b])); return (x < y ? -1 : x > y ? 1 : 0) * dir || a - b; });
	$("table").tBodies[0].innerHTML = rows.slice(0, 500).map(i => `<tr tabindex="0" data-fn="${i}">${cells(fns[i])}</tr>`).join("");
	[...$("table").tHead.rows[0].cells].forEach((th, i) => { th.setAttribute("aria-sort", i === c ? (dir > 0 ? "ascending" : "descending") : "none"); th.firstChild.textContent = columns[i][0] + (i === c ? (dir > 0 ? " ▲" : " ▼") : ""); });
}
const rowOf = e => e.target.closest && e.target.closest("tr[data-fn]");
const quote = s => "^" + s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
$("table").addEventListener("mouseover", e => { const r = rowOf(e), fn = r ? +r.dataset.fn : -1; if (fn !== lit) { lit = fn; draw(); } });
$("table").addEventListener("mouseleave", () => { lit = -1; draw(); });
$("table").addEventListener("click", e => { const r = rowOf(e); if (r) setSearch(quote(fns[+r.dataset.fn][0])); });
$("table").addEventListener("keydown", e => { const r = rowOf(e); if (r && e.key === "Enter") setSearch(quote(fns[+r.dataset.fn][0])); });

// ---- the address bar ----
function save() {
	const path = [];
	for (let i = zoom; i > 0; i = tree.parent[i]) path.unshift(tree.fn[i]);
	const p = new URLSearchParams();
	if (path.length) p.set("z", path.join("."));
	if ($("search").value) p.set("s", $("search").value);
	if (tree !== forward) p.set("i", "1");
	if ($("side").hidden) p.set("t", "0");
	const h = p.toString();
	if (location.hash.slice(1) !== h) history.replaceState(null, "", h ? "#" + h : location.pathname + location.search);
}
function restore() {
	const p = new URLSearchParams(location.hash.slice(1));
	setTable(p.get("t") !== "0" , true);
	setInvert(p.get("i") === "1", true);
	let at = 0;
	for (const fn of (p.get("z") || "").split(".").filter(Boolean)) {
		const k = tree.kids(at).find(c => tree.fn[c] === +fn);
		if (k === undefined) break;
		at = k;
	}
	zoom = selected = at;
	setSearch(p.get("s") || "", true);
	changed(); tell();
}
addEventListener("hashchange", restore);

// ---- begin ----
document.title = data.title + " - fusee";
$("title").textContent = data.title;
$("facts").textContent = data.facts;
legend(); head(); restore();
window.fusee = { tree: () => tree, zoom: () => zoom, boxes: () => boxes, goTo, forward }; // for tests and the console
})();
