// SPDX-License-Identifier: Apache-2.0
// The flame graph page: an icicle on a canvas, the root at the top. Only what is wider than a pixel and inside
// the window is drawn. Texts of the profile are foreign: they reach the page by textContent alone.
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent), diff = data.diff;
const functions = data.functions.map(f => ({
	name: f[0], file: data.strings[f[1]], start: f[2], library: data.strings[f[3]], kind: f[4],
	self: f[5], total: f[6], baseSelf: f[7] || 0, baseTotal: f[8] || 0,
}));
// In the order of enum render_code; colours that colour-blind readers can tell apart.
const KINDS = [
	{ name: "program", color: [240, 167, 60] },
	{ name: "libraries", color: [112, 182, 230] },
	{ name: "kernel", color: [213, 138, 184] },
	{ name: "runtime and JIT", color: [72, 180, 142] },
	{ name: "no code", color: [170, 172, 176] },
];
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const ROW = 19, MORE = 500, LESS_COLOR = [66, 138, 222], MORE_COLOR = [226, 98, 58];
const canvas = $("canvas"), scroller = $("scroller"), paper = canvas.getContext("2d");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const calls = new CallTree(data);

const state = {
	tree: calls, zoom: 0, selected: 0, hovered: -1, lit: -1,
	off: new Set(), inverted: false, amounts: false,
	pattern: null, matches: new Uint8Array(functions.length),
	order: 0, down: true, rows: MORE, // the table's column and direction
	boxes: [], width: 0, printing: false, scroll: false,
};
const isDark = () => prefersDark.matches && !state.printing;

// ---- numbers ----

const rounded = (v, digits) => v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
// Three significant digits with the unit that suits.
function scaled(v, units) {
	let k = 0;
	while (k + 1 < units.length && Math.abs(v) >= units[k + 1][0])
		k++;
	const n = v / units[k][0], a = Math.abs(n);
	return rounded(n, a >= 100 || units[k][0] === 1 ? 0 : a >= 10 ? 1 : 2) + " " + units[k][1];
}
const UNITS = {
	nanoseconds: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
	microseconds: [[1, "µs"], [1e3, "ms"], [1e6, "s"]],
	milliseconds: [[1, "ms"], [1e3, "s"]],
	bytes: [[1, "B"], [1024, "KiB"], [1 << 20, "MiB"], [1 << 30, "GiB"]],
};
function amount(v) {
	const units = Object.hasOwn(UNITS, data.unit) && UNITS[data.unit];
	if (!v || !units)
		return rounded(v, 0) + (v && data.unit !== "count" ? " " + data.unit : "");
	return scaled(v, units);
}
const share = (v, of) => of ? 100 * v / of : 0;
const percent = (v, of) => rounded(share(v, of), Math.abs(share(v, of)) >= 9.95 ? 1 : 2) + " %";
const signed = (n, text) => (n > 0 ? "+" : "") + text;
const points = n => signed(n, rounded(n, 2)) + " %";
const fileName = path => path.slice(path.lastIndexOf("/") + 1);
const short = s => s.length > 600 ? s.slice(0, 300) + " … " + s.slice(-290) : s;
const nameOf = i => i > 0 ? functions[state.tree.fn[i]].name : "all";
const kindOf = i => functions[state.tree.fn[i]].kind;

// What a width is made of: in a comparison both sides together, so that what went away has a place too.
function weigh(i) {
	const t = state.tree;
	if (!diff)
		return t.value[i];
	return state.amounts ? t.value[i] + t.base[i] : share(t.value[i], data.total) + share(t.base[i], data.base);
}
// How the value compares with the base: -1 gone .. 1 new.
function change(v, b) {
	if (!state.amounts) {
		v = share(v, data.total);
		b = share(b, data.base);
	}
	return v + b ? (v - b) / (v + b) : 0;
}

// ---- colours ----

const rgb = c => `rgb(${c.map(Math.round).join(",")})`;
const mix = (a, b, part) => a.map((x, i) => x + (b[i] - x) * part);
const shades = new Map();
function hash(text) {
	let h = 0;
	for (let i = 0; i < text.length && i < 80; i++)
		h = h * 31 + text.charCodeAt(i) | 0;
	return h >>> 3;
}
// Libraries by their own time, so that the important ones differ.
const LIBRARIES = 1, BLUES = [[112, 182, 230], [142, 160, 236], [160, 208, 238], [84, 152, 214]];
const libraries = (() => {
	const self = new Map();
	for (const f of functions)
		if (f.kind === LIBRARIES)
			self.set(f.library, (self.get(f.library) || 0) + f.self + f.baseSelf);
	return [...self.keys()].sort((a, b) => self.get(b) - self.get(a));
})();
function shadeOf(fn) {
	const key = fn * 2 + isDark();
	if (!shades.has(key)) {
		const { name, kind, library } = functions[fn];
		const tint = kind === LIBRARIES ? BLUES[libraries.indexOf(library) % BLUES.length] : KINDS[kind].color;
		const color = mix(tint, [255, 255, 255], (hash(name) % 9) / 50);
		shades.set(key, rgb(isDark() ? mix(color, [20, 22, 26], 0.2) : color));
	}
	return shades.get(key);
}
function diffColor(c) {
	const same = isDark() ? [128, 131, 136] : [208, 208, 206];
	return rgb(mix(same, c > 0 ? MORE_COLOR : LESS_COLOR, Math.min(1, Math.abs(c)) ** 0.7));
}
function colorOf(i) {
	if (i === 0)
		return isDark() ? "#3b3e44" : "#e0e0dc";
	if (diff)
		return diffColor(change(state.tree.value[i], state.tree.base[i]));
	return shadeOf(state.tree.fn[i]);
}

// ---- drawing ----

// Boxes of all that is wide enough: the zoomed frame's callers over the whole width, then its own tree.
function layout(width) {
	const t = state.tree, out = [], scale = width / (weigh(state.zoom) || 1);
	for (let i = t.parent[state.zoom]; i >= 0; i = t.parent[i])
		out.unshift({ i, x: 0, w: width, row: t.depth[i], above: true });
	const todo = [{ i: state.zoom, x: 0, w: width, row: t.depth[state.zoom], above: false }];
	while (todo.length) {
		const box = todo.pop();
		let x = box.x;
		out.push(box);
		for (const i of t.kids(box.i)) {
			const w = weigh(i) * scale;
			if (w >= 1)
				todo.push({ i, x, w, row: box.row + 1, above: false });
			x += w;
		}
	}
	return out;
}

let hatch = null;
function makeHatch() {
	const tile = document.createElement("canvas"), g = tile.getContext("2d");
	tile.width = tile.height = 8;
	g.strokeStyle = "rgba(0,0,0,.6)";
	for (const x of [-8, 0, 8]) {
		g.moveTo(x, 8);
		g.lineTo(x + 8, 0);
	}
	g.stroke();
	hatch = paper.createPattern(tile, "repeat");
}

function drawBox({ i, x, w, row, above }, top) {
	const y = row * ROW - top, h = ROW - 1, wide = Math.max(w - (w > 3 ? 1 : 0.3), 0.7);
	const fn = state.tree.fn[i], flags = state.tree.flags[i], hit = i > 0 && state.matches[fn];
	paper.globalAlpha = state.pattern && !hit ? 0.32 : above ? 0.55 : 1;
	paper.fillStyle = hit && !diff ? "#f7e463" : colorOf(i);
	paper.fillRect(x, y, wide, h);
	if (flags & GUESSED && w > 4) {
		paper.fillStyle = hatch;
		paper.fillRect(x, y, wide, h);
	}
	if (flags & INLINED && w > 5) {
		paper.fillStyle = "rgba(0,0,0,.55)";
		paper.fillRect(x, y, 1, h);
		paper.fillRect(x + 2, y, 1, h);
	}
	paper.globalAlpha = 1;
	if (w > 26)
		drawName(nameOf(i), x + (flags & INLINED ? 7 : 5), y + h / 2 + 0.5, w - 11, above, hit, i);
	if ((i && i === state.selected) || i === state.hovered || (fn >= 0 && fn === state.lit))
		outline(x, y, wide, h, i === state.selected ? 2 : 1.5);
}
function outline(x, y, w, h, thick) {
	paper.strokeStyle = isDark() ? "#fff" : "#000";
	paper.lineWidth = thick;
	paper.strokeRect(x + thick / 2, y + thick / 2, Math.max(w - thick, 0.5), h - thick);
}
function drawName(name, x, y, room, above, hit, i) {
	const pale = isDark() && (i === 0 || above || (state.pattern && !hit));
	const text = fit(name, room);
	paper.fillStyle = pale ? "#d6d8da" : "#141517";
	if (text)
		paper.fillText(text, x, y);
}
// Cut in the middle, and only where it does not fit.
function fit(text, room) {
	if (text.length > 400)
		text = text.slice(0, 200) + "…" + text.slice(-199);
	const width = paper.measureText(text).width;
	if (width <= room)
		return text;
	for (let n = Math.floor(text.length * room / width); n >= 5; n--) {
		const cut = text.slice(0, Math.ceil(n / 2)) + "…" + text.slice(text.length - Math.floor(n / 2) + 1);
		if (paper.measureText(cut).width <= room)
			return cut;
	}
	return "";
}

let queued = false, paints = 0;
function draw() {
	if (!queued)
		requestAnimationFrame(paint);
	queued = true;
}
function boxes() {
	if (!state.boxes.length)
		state.boxes = layout(state.width);
	return state.boxes;
}
const rowsDrawn = () => boxes().reduce((n, b) => Math.max(n, b.row + 1), 1);
function fitCanvas(width, height) {
	const ratio = state.printing ? 2 : devicePixelRatio || 1;
	const w = Math.round(width * ratio), h = Math.round(height * ratio);
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	canvas.style.width = state.printing ? "100%" : width + "px";
	canvas.style.height = state.printing ? "auto" : height + "px";
	paper.setTransform(ratio, 0, 0, ratio, 0, 0);
}
// On paper: what is wide enough to be read, scaled to one page (landscape, with a head).
const PAPER_ROWS = 46, PAPER_RATIO = 0.56;
function paperRows() {
	return Math.min(PAPER_ROWS, boxes().reduce((n, b) => b.w > 6 ? Math.max(n, b.row + 1) : n, 1));
}
function paperWidth() {
	state.width = 1000;
	return Math.max(1000, Math.ceil(paperRows() * ROW / PAPER_RATIO));
}
function paint() {
	queued = false;
	const width = state.printing ? paperWidth() : scroller.clientWidth;
	if (state.width !== width)
		state.boxes = [];
	state.width = width;
	const full = rowsDrawn() * ROW + 6, height = state.printing ? paperRows() * ROW : scroller.clientHeight;
	$("tall").style.height = state.printing ? "auto" : Math.max(full, height) + "px";
	if (state.scroll)
		scroller.scrollTop = Math.max(0, state.tree.depth[state.zoom] * ROW - height / 3);
	state.scroll = false;
	fitCanvas(width, height);
	paper.clearRect(0, 0, width, height);
	paper.font = "12px " + FONT;
	paper.textBaseline = "middle";
	if (!hatch)
		makeHatch();
	const top = state.printing ? 0 : scroller.scrollTop;
	for (const b of boxes())
		if ((b.row + 1) * ROW > top && b.row * ROW < top + height)
			drawBox(b, top);
	document.documentElement.dataset.painted = ++paints;
}
function changed() {
	state.boxes = [];
	draw();
}

// ---- what a frame is ----

function element(tag, text, className) {
	const e = document.createElement(tag);
	if (text !== undefined)
		e.textContent = text;
	if (className)
		e.className = className;
	return e;
}
function place(i) {
	const f = functions[state.tree.fn[i]], line = state.tree.line[i];
	if (!f.file)
		return "";
	return short(f.file) + (line ? ":" + line : f.start ? ":" + f.start : "");
}
function numbersOf(i) {
	const t = state.tree, table = element("table"), body = table.createTBody(), rows = [["total", t.value[i], t.base[i]]];
	if (!state.inverted || t.depth[i] === 1)
		rows.push(["self", t.self[i], t.baseSelf[i]]);
	for (const [what, v, b] of rows) {
		const tr = body.insertRow();
		const cells = [what, amount(v), percent(v, data.total) + " of all"];
		if (state.zoom)
			cells.push(percent(v, t.value[state.zoom]) + " of zoom");
		if (diff)
			cells.push("before: " + amount(b), percent(b, data.base), points(share(v, data.total) - share(b, data.base)));
		for (const c of cells)
			tr.append(element("td", c));
	}
	return table;
}
function describe(i) {
	const parts = [element("b", short(nameOf(i)))];
	if (i > 0) {
		const f = functions[state.tree.fn[i]], flags = state.tree.flags[i];
		for (const text of [place(i), short(f.library)])
			if (text)
				parts.push(element("div", text, "dim"));
		if (flags & INLINED)
			parts.push(element("div", "inlined into the frame above", "dim"));
		if (flags & GUESSED)
			parts.push(element("div", "guessed: the unwinder was not sure of this frame", "dim"));
	}
	parts.push(numbersOf(i));
	return parts;
}
function oneLine(i) {
	const t = state.tree, parts = [short(nameOf(i)), `${amount(t.value[i])} (${percent(t.value[i], data.total)})`];
	if (diff)
		parts.push(`before ${amount(t.base[i])} (${percent(t.base[i], data.base)})`);
	if (t.self[i] && i)
		parts.push(`self ${amount(t.self[i])}`);
	if (i && functions[t.fn[i]].library)
		parts.push(fileName(functions[t.fn[i]].library));
	if (i && place(i))
		parts.push(place(i));
	return parts.join("  ·  ");
}
function tell() {
	$("detail").textContent = oneLine(state.hovered >= 0 ? state.hovered : state.selected);
}

// ---- moving ----

function goTo(i) {
	const moved = state.zoom !== i;
	state.zoom = state.selected = i;
	state.scroll = true;
	hideTip();
	changed();
	tell();
	if (moved)
		save(true);
}
// What the browser's own button does; the frame above where there is nothing to go back to.
function back() {
	if (history.state && history.state.fusee)
		history.back();
	else
		goTo(Math.max(0, state.tree.parent[state.zoom]));
}
function hideTip() {
	state.hovered = -1;
	$("tip").hidden = true;
}
function boxAt(e) {
	const r = canvas.getBoundingClientRect(), x = e.clientX - r.left;
	const row = Math.floor((e.clientY - r.top + scroller.scrollTop) / ROW);
	return boxes().find(b => b.row === row && x >= b.x && x < b.x + b.w);
}
function hover(e) {
	const box = boxAt(e), tip = $("tip"), i = box ? box.i : -1;
	if (i !== state.hovered) {
		state.hovered = i;
		tip.replaceChildren(...(box ? describe(i) : []));
		tip.hidden = !box;
		draw();
		tell();
	}
	if (!box)
		return;
	const r = tip.getBoundingClientRect(), below = e.clientY + 20;
	tip.style.left = Math.max(6, Math.min(e.clientX + 14, innerWidth - r.width - 8)) + "px";
	tip.style.top = Math.max(6, below + r.height > innerHeight ? e.clientY - r.height - 12 : below) + "px";
}
canvas.addEventListener("mousemove", hover);
canvas.addEventListener("mouseleave", () => { hideTip(); draw(); tell(); });
canvas.addEventListener("click", e => {
	const box = boxAt(e);
	if (box)
		goTo(box.i);
});

function neighbour(key) {
	const { tree, selected } = state, own = boxes().find(b => b.i === selected);
	if (!own)
		return state.zoom;
	if (key === "ArrowUp")
		return Math.max(0, tree.parent[selected]);
	if (key === "ArrowDown") {
		const below = boxes().filter(b => b.row === own.row + 1 && (own.above || tree.parent[b.i] === selected));
		return below.reduce((widest, b) => b.w > widest.w ? b : widest, below[0] || own).i;
	}
	const row = boxes().filter(b => b.row === own.row).sort((a, b) => a.x - b.x), at = row.indexOf(own);
	return (row[at + (key === "ArrowLeft" ? -1 : 1)] || own).i;
}
function move(key) {
	state.selected = neighbour(key);
	state.hovered = -1;
	const y = state.tree.depth[state.selected] * ROW;
	if (y < scroller.scrollTop)
		scroller.scrollTop = y;
	else if (y + ROW > scroller.scrollTop + scroller.clientHeight)
		scroller.scrollTop = y + ROW - scroller.clientHeight;
	draw();
	tell();
}
function moveInTable(row, key) {
	const to = key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
	if (to && (key === "ArrowUp" || key === "ArrowDown"))
		to.focus();
}

const KEYS = {
	"/": () => { $("search").focus(); $("search").select(); },
	i: () => $("invert").click(), a: () => diff && $("amounts").click(), t: () => $("showtable").click(),
	"?": () => $("keys").showModal(), Backspace: back, Home: () => goTo(0), Escape: () => setSearch(""),
};
function onKey(e) {
	const target = e.target, row = target.closest("tr[data-fn]");
	if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open)
		return;
	if (target.id === "search") {
		if (e.key === "Escape")
			setSearch("");
		if (e.key === "Escape" || e.key === "Enter")
			canvas.focus();
		return;
	}
	const control = target.matches("button, input");
	if (Object.hasOwn(KEYS, e.key))
		KEYS[e.key]();
	else if (e.key.startsWith("Arrow") && row)
		moveInTable(row, e.key);
	else if (e.key === "Enter" && row)
		searchRow(row);
	else if (e.key.startsWith("Arrow") && !control)
		move(e.key);
	else if (e.key === "Enter" && !control)
		goTo(state.selected);
	else
		return;
	e.preventDefault();
}
document.addEventListener("keydown", onKey);
scroller.addEventListener("scroll", () => draw());
new ResizeObserver(changed).observe(scroller);
new ResizeObserver(() => !restoring && fillTable()).observe($("side"));
prefersDark.addEventListener("change", draw);
function print(on) {
	state.printing = on;
	state.boxes = [];
	state.width = 0;
	paint();
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));

// ---- search ----

function compile(text) {
	try {
		return text ? new RegExp(text, /\p{Lu}/u.test(text) ? "" : "i") : null;
	} catch {
		return undefined;
	}
}
// What runs in a matching function, each stack once.
function matched() {
	let value = 0, base = 0;
	for (let i = 1; i < calls.fn.length;) {
		if (!state.matches[calls.fn[i]]) {
			i++;
			continue;
		}
		value += calls.value[i];
		base += calls.base[i];
		i = calls.end[i];
	}
	const now = percent(value, data.total);
	return diff ? `${percent(base, data.base)} → ${now}` : `${now} matched`;
}
function setSearch(text, quiet) {
	const pattern = compile(text), input = $("search");
	if (input.value !== text)
		input.value = text;
	state.pattern = pattern || null;
	functions.forEach((f, i) => { state.matches[i] = pattern && pattern.test(f.name) ? 1 : 0; });
	input.setAttribute("aria-invalid", pattern === undefined);
	$("matched").value = pattern ? matched() : pattern === undefined ? "not a regular expression" : "";
	state.rows = MORE;
	fillTable();
	draw();
	if (!quiet)
		save(false);
}
const quote = s => "^" + s.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
function searchRow(row) {
	const { name } = functions[row.dataset.fn];
	setSearch(name.length > 300 ? quote(name.slice(0, 300)) : quote(name) + "$");
}
$("search").addEventListener("input", e => setSearch(e.target.value));

// ---- buttons and legend ----

const skipped = fn => state.off.has(functions[fn].kind);
function chooseTree() {
	const off = state.off.size ? i => i > 0 && skipped(calls.fn[i]) : () => false;
	state.tree = state.inverted ? new Inverted(calls, off) : state.off.size ? new Filtered(calls, off) : calls;
	state.zoom = state.selected = 0;
	hideTip();
}
function setInverted(on) {
	state.inverted = on;
	$("invert").setAttribute("aria-pressed", on);
	chooseTree();
	goTo(0);
	save(true);
}
function setKind(kind, on) {
	const path = state.tree.path(state.zoom);
	if (on)
		state.off.delete(kind);
	else
		state.off.add(kind);
	chooseTree();
	state.zoom = state.selected = state.tree.follow(path, skipped);
	state.scroll = true;
	changed();
	tell();
	save(true);
}
function allKinds(off) {
	state.off = off;
	for (const box of document.querySelectorAll("#legend input"))
		box.checked = !off.has(Number(box.dataset.kind));
}
function setAmounts(on) {
	state.amounts = on;
	$("amounts").setAttribute("aria-pressed", on);
	if (!restoring)
		fillTable();
	changed();
	save(false);
}
function setTable(on) {
	$("side").hidden = !on;
	$("showtable").setAttribute("aria-pressed", on);
	save(false);
}
$("invert").onclick = () => setInverted(!state.inverted);
$("amounts").onclick = () => setAmounts(!state.amounts);
$("showtable").onclick = () => setTable($("side").hidden);
$("back").onclick = back;
$("reset").onclick = () => {
	setSearch("");
	allKinds(new Set());
	chooseTree();
	goTo(0);
	save(true);
};
$("help").onclick = () => $("keys").showModal();

function note(text, className, color) {
	const span = element("span", undefined, "note"), swatch = element("i", undefined, className);
	if (color)
		swatch.style.background = color;
	span.append(swatch, text);
	$("legend").append(span);
}
function kindSwitch({ name, color }, kind) {
	const label = element("label"), box = element("input"), swatch = element("i");
	label.title = "off: these frames are left out, their time is their callers'";
	box.type = "checkbox";
	box.checked = true;
	box.dataset.kind = kind;
	box.onchange = () => setKind(kind, box.checked);
	swatch.style.background = rgb(color);
	label.append(box, ...(diff ? [] : [swatch]), name);
	$("legend").append(label);
}
function legend() {
	const flags = calls.flags.reduce((all, f) => all | f, 0);
	KINDS.forEach((k, i) => functions.some(f => f.kind === i) && kindSwitch(k, i));
	if (flags & INLINED)
		note("inlined", "inline");
	if (flags & GUESSED)
		note("guessed", "hatch");
	if (!diff)
		return;
	note("less than before", "", rgb(LESS_COLOR));
	note("same", "", "#a4a6a8");
	note("more", "", rgb(MORE_COLOR));
}

// ---- table ----

const by = (now, before) => f => {
	if (!diff)
		return f[now];
	return state.amounts ? f[now] - f[before] : share(f[now], data.total) - share(f[before], data.base);
};
const COLUMNS = [
	{ name: "self", key: by("self", "baseSelf") },
	{ name: "total", key: by("total", "baseTotal") },
	{ name: "function", key: f => f.name, text: true },
	{ name: "library", key: f => fileName(f.library), text: true },
];
function head() {
	const tr = $("table").tHead.rows[0];
	COLUMNS.forEach((column, c) => {
		const th = element("th", undefined, column.text ? "text" : ""), button = element("button");
		button.onclick = () => {
			state.down = state.order === c ? !state.down : !column.text;
			state.order = c;
			fillTable();
		};
		th.append(button);
		tr.append(th);
	});
}
function numberCell(f, c) {
	const now = f[c ? "total" : "self"], before = f[c ? "baseTotal" : "baseSelf"], delta = COLUMNS[c].key(f);
	const main = !diff ? amount(now) : state.amounts ? signed(delta, amount(delta)) : points(delta);
	const td = element("td", main + " ");
	const small = !diff ? percent(now, data.total) : state.amounts ? `${amount(before)} → ${amount(now)}` :
		`${rounded(share(before, data.base), 1)} → ${percent(now, data.total)}`;
	td.append(element("small", small));
	return td;
}
function rowOf(fn, room) {
	const f = functions[fn], tr = element("tr"), name = element("td", fit(f.name, room) || short(f.name), "text name");
	const library = element("td", fileName(f.library), "text library");
	tr.tabIndex = 0;
	tr.dataset.fn = fn;
	name.title = short(f.name);
	library.title = short(f.library);
	tr.append(numberCell(f, 0), numberCell(f, 1), name, library);
	return tr;
}
function sorted() {
	const { key, text } = COLUMNS[state.order], sign = state.down ? -1 : 1;
	const keys = functions.map(f => diff && !text ? Math.abs(key(f)) : key(f)), out = [];
	for (let i = 0; i < functions.length; i++)
		if (!state.pattern || state.matches[i])
			out.push(i);
	return out.sort((a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
}
function fillTable() {
	const all = sorted(), table = $("table"), room = table.tHead.rows[0].cells[2].clientWidth - 17;
	paper.font = "13px " + FONT;
	table.tBodies[0].replaceChildren(...all.slice(0, state.rows).map(fn => rowOf(fn, room)));
	[...table.tHead.rows[0].cells].forEach((th, c) => {
		const own = c === state.order;
		th.setAttribute("aria-sort", own ? (state.down ? "descending" : "ascending") : "none");
		th.firstChild.textContent = COLUMNS[c].name + (own ? (state.down ? " ▼" : " ▲") : "");
	});
	$("more").hidden = all.length <= state.rows;
	$("more").firstElementChild.textContent = `${rounded(state.rows, 0)} of ${rounded(all.length, 0)} functions`;
}
$("more").lastElementChild.onclick = () => { state.rows *= 4; fillTable(); };
function light(row) {
	const fn = row ? Number(row.dataset.fn) : -1;
	if (fn !== state.lit)
		draw();
	state.lit = fn;
}
for (const [event, on] of [["mouseover", true], ["mouseleave", false], ["focusin", true], ["focusout", false]])
	$("table").addEventListener(event, e => light(on ? e.target.closest("tr[data-fn]") : null));
$("table").addEventListener("click", e => {
	const row = e.target.closest("tr[data-fn]");
	if (row)
		searchRow(row);
});

// ---- the address bar ----

let restoring = true;
function address() {
	const p = new URLSearchParams(), path = state.tree.path(state.zoom);
	const put = (key, on, value) => on && p.set(key, value);
	put("zoom", path.length, path.join("."));
	put("search", $("search").value, $("search").value);
	put("invert", state.inverted, 1);
	put("off", state.off.size, [...state.off].join("."));
	put("amounts", state.amounts, 1);
	put("table", $("side").hidden, 0);
	return "#" + p;
}
// step: a view to come back to, else the same view's address changes.
function save(step) {
	const to = address();
	if (restoring || to === (location.hash || "#"))
		return;
	try {
		if (step)
			history.pushState({ fusee: 1 }, "", to);
		else
			history.replaceState(history.state, "", to);
	} catch { /* browsers limit how often; the next change writes it */ }
}
const numbers = text => (text || "").split(".").filter(Boolean).map(Number);
function restore() {
	const p = new URLSearchParams(location.hash.slice(1));
	restoring = true;
	allKinds(new Set(numbers(p.get("off")).filter(k => k in KINDS)));
	setTable(p.get("table") !== "0");
	setAmounts(diff && p.get("amounts") === "1");
	setInverted(p.get("invert") === "1");
	setSearch(p.get("search") || "", true);
	goTo(state.tree.follow(numbers(p.get("zoom")), () => false));
	restoring = false;
}
addEventListener("popstate", restore);

// ---- begin ----

function start() {
	const total = `${amount(data.total)} of ${data.type}`;
	document.title = data.title + " – fusee";
	$("title").textContent = short(data.title);
	$("facts").textContent = [diff ? `${amount(data.base)} → ${total}` : total, ...data.facts.map(short)].join("  ·  ");
	$("amounts").hidden = !diff;
	$("table").classList.toggle("diff", diff);
	legend();
	head();
	restore();
}
start();
window.fusee = { state, functions, goTo }; // for the console and the tests
