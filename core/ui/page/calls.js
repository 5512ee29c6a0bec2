// SPDX-License-Identifier: Apache-2.0
// The graph of calls between the heaviest functions, as a picture.
import { data } from "./data.js";
import { element, svg } from "./element.js";
import { amountOf, fileName, percent, printable, rounded, share, short } from "./numbers.js";
import { select } from "./address.js";
import { layOut } from "./layout.js";

const NAME = 0, LIBRARY = 1, CODE = 2, FLAT = 3, CUM = 4, NOISE = 5, PAD = 8, MARGIN = 14, MAX_NAME = 44;
const width = (text, size) => text.length * size * 0.6; // the font is monospaced
const middle = full => {
	const name = printable(full);
	return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME / 2)}…${name.slice(-MAX_NAME / 2 + 1)}` : name;
};

// Text is larger the larger the function's own value is.
function boxOf(n, d) {
	const size = 11 + 11 * Math.sqrt(Math.min(1, Math.abs(share(n[FLAT], d.total)) / 100));
	const sign = v => d.compared && v > 0 ? "+" : "";
	const lines = [middle(n[NAME]), `${sign(n[FLAT])}${amountOf(n[FLAT], d.unit)} (${percent(n[FLAT], d.total)})`];
	if (n[CUM] !== n[FLAT])
		lines.push(`of ${sign(n[CUM])}${amountOf(n[CUM], d.unit)} (${percent(n[CUM], d.total)})`);
	return { n, size, lines, w: Math.max(...lines.map((t, i) => width(t, i ? 11 : size))) + 2 * PAD, h: size * 1.3 + (lines.length - 1) * 14 + 2 * PAD };
}
function kindOf(n, d) {
	if (!d.compared)
		return `code${n[CODE]}`;
	return n[NOISE] ? "noise" : (n[FLAT] || n[CUM]) > 0 ? "more" : "less";
}
function draw(box, d) {
	const { n, x, y, w, h, size, lines } = box, g = svg("g", { class: `node ${kindOf(n, d)}`, tabindex: 0, role: "button" });
	g.setAttribute("aria-label", `${short(n[NAME])}, self ${amountOf(n[FLAT], d.unit)}, total ${amountOf(n[CUM], d.unit)}, ${percent(n[CUM], d.total)}`);
	const title = svg("title");
	title.textContent = `${short(n[NAME])}\n${short(fileName(n[LIBRARY]))}`;
	g.append(title, svg("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 5 }));
	lines.forEach((line, i) => {
		const text = svg("text", { x, y: y - h / 2 + PAD + (i ? size * 1.3 + i * 14 - 4 : size), "font-size": i ? 11 : size });
		text.textContent = line;
		g.append(text);
	});
	const open = () => select({ function: n[NAME], view: "callers" });
	g.onclick = open;
	g.onkeydown = e => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), open());
	return g;
}
// A smooth path through the points, from one edge of the caller's box to the facing edge of the callee's.
function way(e, boxes) {
	const from = boxes[e.from], to = boxes[e.to], down = from.layer <= to.layer, points = e.points.map(p => [...p]);
	points[0][1] += (down ? 1 : -1) * from.h / 2;
	points[points.length - 1][1] -= (down ? 1 : -1) * (to.h / 2 + 4);
	let path = `M${points[0].map(v => v.toFixed(1)).join(" ")}`;
	for (let k = 1; k < points.length; k++) {
		const [a, b] = [points[k - 1], points[k]], m = (a[1] + b[1]) / 2;
		path += `C${a[0].toFixed(1)} ${m.toFixed(1)} ${b[0].toFixed(1)} ${m.toFixed(1)} ${b[0].toFixed(1)} ${b[1].toFixed(1)}`;
	}
	return { path, at: points[Math.floor((points.length - 1) / 2)], next: points[Math.floor((points.length - 1) / 2) + 1] };
}
function drawEdge(e, boxes, d) {
	const { path, at, next } = way(e, boxes), part = Math.min(1, Math.abs(share(e.weight, d.total)) / 100), out = [];
	const line = svg("path", { d: path, class: `edge${e.inlined ? " inlined" : ""}${d.compared ? e.value > 0 ? " more" : " less" : ""}`,
		"stroke-width": (0.8 + 5 * part).toFixed(1), "marker-end": "url(#arrow)" });
	const title = svg("title");
	title.textContent = `${short(boxes[e.from].n[NAME])} → ${short(boxes[e.to].n[NAME])}: ${amountOf(e.value, d.unit)} (${percent(e.value, d.total)})`;
	line.append(title);
	out.push(line);
	if (part >= 0.03) {
		const text = svg("text", { x: (at[0] + next[0]) / 2 + 5, y: (at[1] + next[1]) / 2 - (Math.abs(at[0] - next[0]) > 20 ? 7 : 0), class: "weight" });
		text.textContent = amountOf(e.value, d.unit);
		out.push(text);
	}
	return out;
}
export function drawCalls(d) {
	const boxes = d.nodes.map(n => boxOf(n, d));
	const edges = d.edges.filter(([from, to]) => from !== to).map(([from, to, value, inlined]) => ({ from, to, value, inlined, weight: Math.abs(value) }));
	const size = layOut(boxes, edges), w = size.width + 2 * MARGIN, h = size.height + 2 * MARGIN;
	const root = svg("svg", { class: "calls", viewBox: `${-MARGIN} ${-MARGIN} ${w} ${h}`, width: w, height: h, role: "group", "aria-label": "graph of calls" });
	const defs = svg("defs"), arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 8, markerHeight: 8,
		orient: "auto", markerUnits: "userSpaceOnUse" });
	arrow.append(svg("path", { d: "M0 0L8 4L0 8z" }));
	defs.append(arrow);
	const drawn = edges.map(e => drawEdge(e, boxes, d));
	root.append(defs, ...drawn.map(([line]) => line), ...drawn.flatMap(([, ...text]) => text), ...boxes.map(b => draw(b, d)));
	return { root, w, h, boxes };
}
function note(d) {
	const left = d.all - d.nodes.length + d.dropped;
	return `${rounded(d.nodes.length, 0)} functions${left ? `; ${rounded(left, 0)} with less are left out, calls through them are drawn as direct` : ""}` +
		`${d.compared ? "; more is red, less is blue, within its noise grey" : ""}. Enter or a click opens a function between callers and callees.`;
}
export async function showCalls(root, selection) {
	const d = await data("calls", selection);
	if (!d.nodes.length) {
		root.replaceChildren(element("p", "There is nothing to draw.", "empty"));
		return;
	}
	const { root: picture, w, h, boxes } = drawCalls(d), box = element("div", null, "scroll"), tools = element("div", null, "tools");
	const zoom = element("input"), label = element("label", "size "), view = document.getElementById("view");
	Object.assign(zoom, { type: "range", min: 20, max: 150, step: 5 });
	zoom.value = Math.round(Math.max(60, Math.min(100, 100 * (view.clientWidth - 10) / w)));
	zoom.oninput = () => {
		picture.setAttribute("width", w * zoom.value / 100);
		picture.setAttribute("height", h * zoom.value / 100);
	};
	zoom.oninput();
	label.append(zoom);
	tools.append(label, element("span", note(d)));
	box.append(picture);
	root.replaceChildren(tools, box);
	requestAnimationFrame(() => { // scroll to the function with the largest total
		const heavy = boxes.reduce((a, b) => Math.abs(b.n[CUM]) > Math.abs(a.n[CUM]) ? b : a);
		view.scrollLeft = (heavy.x + MARGIN) * zoom.value / 100 - view.clientWidth / 2;
	});
}
