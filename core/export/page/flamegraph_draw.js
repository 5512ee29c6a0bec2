// SPDX-License-Identifier: Apache-2.0
// The flame graph page: an icicle on a canvas, the root at the top, and what a frame is in words. Only boxes that
// are wider than a pixel and inside the window are drawn.

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
		drawName(markOf(i) + nameOf(i), x + (flags & INLINED ? 7 : 5), y + h / 2 + 0.5, w - 11, above, hit, i);
	if ((i && i === state.selected) || i === state.hovered || (fn >= 0 && (fn === state.lit || fn === state.chosen)))
		outline(x, y, wide, h, i === state.selected ? 2 : 1.5);
}
const MARKS = { new: "+ ", vanished: "− ", "": "" };
const markOf = i => i > 0 ? MARKS[presence(state.tree.value[i], state.tree.base[i])] : "";
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
	// File and line beside the name of a language's function, where there is room.
	const place = i > 0 && text === name && kindOf(i) === LANGUAGE ? placeOf(functions[state.tree.fn[i]]) : "";
	const used = place ? paper.measureText(text + "  ").width : 0;
	if (!place || used + paper.measureText(place).width > room)
		return;
	paper.globalAlpha = 0.6;
	paper.fillText(place, x + used, y);
	paper.globalAlpha = 1;
}
// Cut in the middle, and only where it does not fit.
function fit(text, room) {
	if (text.length > 400)
		text = text.slice(0, 200) + "…" + text.slice(-199);
	text = printable(text);
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
		e.textContent = printable(String(text));
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
// How sure the change is.
function sureness(i) {
	const t = state.tree, z = zOf(functions[t.fn[i]], t.value[i], t.base[i]), text = presence(t.value[i], t.base[i]);
	return (text && text + "; ") + (isNoisy(i) ? "within its noise" : "more than chance") + ` (z ${signed(z, rounded(z, 1))})`;
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
	if (diff && i > 0)
		parts.push(element("div", sureness(i), "dim"));
	return parts;
}
function oneLine(i) {
	const t = state.tree, parts = [short(nameOf(i)), `${amount(t.value[i])} (${percent(t.value[i], data.total)})`];
	if (diff)
		parts.push(`before ${amount(t.base[i])} (${percent(t.base[i], data.base)})`);
	if (diff && i)
		parts.push(sureness(i));
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
