// SPDX-License-Identifier: Apache-2.0
// The flame graph page: what the user does (moving, search, buttons), and the address bar, which holds the view.

// In the page of `fusee ui`, which shows this page in a frame: what keeps the address and is told what is selected.
const host = window.frameElement?.fusee;

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
	if (host)
		host.zoomed(i > 0 ? functions[state.tree.fn[i]].name : "");
}
// What the browser's own button does; the frame above where there is nothing to go back to.
function back() {
	if (host ? host.canGoBack() : history.state && history.state.fusee)
		(host || history).back();
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
// The first click of two has moved the frames.
let clicked = 0;
canvas.addEventListener("click", e => {
	const box = boxAt(e);
	if (e.detail === 2)
		pick(clicked);
	else if (box)
		goTo(clicked = box.i);
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

// Selects a function for all views of the page around.
function pick(i) {
	if (host && i > 0 && !isLabel(state.tree.fn[i]))
		host.picked(functions[state.tree.fn[i]].name);
}
const KEYS = {
	s: () => pick(state.selected),
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
	else if (!host || !host.key(e.key))
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
		if (isOut(i)) {
			i = calls.end[i];
			continue;
		}
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
	functions.forEach((f, i) => { state.matches[i] = pattern && (!isLabel(i) || state.by.size) && pattern.test(f.name) ? 1 : 0; });
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

const skipped = fn => isLabel(fn) ? !state.by.has(functions[fn].kind - LABELS) : state.off.has(functions[fn].kind);
function chooseTree() {
	const plain = !state.off.size && state.by.size === data.labels.length && !isFiltered();
	const off = i => i > 0 && skipped(calls.fn[i]);
	state.tree = state.inverted ? new Inverted(calls, off, isOut) : plain ? calls : new Filtered(calls, off, isOut);
	state.zoom = state.selected = 0;
	filtered = null;
	hideTip();
}
function setInverted(on) {
	state.inverted = on;
	$("invert").setAttribute("aria-pressed", on);
	chooseTree();
	goTo(0);
	save(true);
}
// Another tree; the zoom stays as far as it can.
function regrow() {
	const path = state.tree.path(state.zoom);
	chooseTree();
	state.zoom = state.selected = state.tree.follow(path, skipped);
	state.scroll = true;
	changed();
	tell();
	save(true);
}
function setKind(kind, on) {
	if (on)
		state.off.delete(kind);
	else
		state.off.add(kind);
	regrow();
}
function allKinds(off) {
	state.off = off;
	for (const box of document.querySelectorAll("#legend input"))
		box.checked = !off.has(Number(box.dataset.kind));
}
// ---- labels: process, thread ----

const labelText = fn => functions[fn].name.slice(functions[fn].name.indexOf(": ") + 2);
// The groups that can be chosen: no label, the first, the first two ..; of two labels the second alone, too.
function groupings() {
	const { labels } = data, out = [[]];
	labels.forEach((_, n) => out.push([...labels.keys()].slice(0, n + 1)));
	if (labels.length === 2)
		out.push([1]);
	return out;
}
const groupText = g => g.length ? g.map(l => data.labels[l]).join(", ") : "no groups";
function select(name, options, onchange) {
	const label = element("label", name + " "), list = element("select");
	for (const [value, text] of options) {
		const option = element("option", short(text));
		option.value = value;
		list.append(option);
	}
	list.onchange = () => onchange(list.value);
	label.append(list);
	$("groups").append(label);
	return list;
}
const lists = [];
function setGroups(groups, only) {
	state.by = new Set(groups);
	state.only = only;
	lists.forEach((list, n) => { list.value = n ? only[n - 1] : groups.join("."); });
}
function regroup(groups, only) {
	setGroups(groups, only);
	regrow();
	setSearch($("search").value, true);
}
function labelLists() {
	$("groups").hidden = !data.labels.length;
	if (!data.labels.length)
		return;
	lists.push(select("group by", groupings().map(g => [g.join("."), groupText(g)]),
		value => regroup(numbers(value), state.only)));
	data.labels.forEach((name, label) => {
		const values = functions.map((f, fn) => fn).filter(fn => functions[fn].kind === LABELS + label);
		values.sort((a, b) => functions[b].total + functions[b].baseTotal - functions[a].total - functions[a].baseTotal);
		const options = values.slice(0, MORE).map(fn => [fn, `${labelText(fn)}  ${percent(functions[fn].total, data.total)}`]);
		lists.push(select(name, [[-1, "all"], ...options],
			value => regroup([...state.by], state.only.with(label, Number(value)))));
	});
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
	allKinds(new Set());
	setGroups(data.grouped ? [...data.labels.keys()] : [], data.labels.map(() => -1));
	chooseTree();
	setSearch("");
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
	note("same, or within its noise", "", "#d0d0ce");
	note("more", "", rgb(MORE_COLOR));
}

// ---- the address bar ----

let restoring = true;
function address() {
	const p = new URLSearchParams(), path = state.tree.path(state.zoom);
	const put = (key, on, value) => on && p.set(key, value);
	put("zoom", path.length, path.join("."));
	put("search", $("search").value, $("search").value);
	put("invert", state.inverted, 1);
	put("off", state.off.size, [...state.off].join("."));
	put("by", [...state.by].join() !== (data.grouped ? [...data.labels.keys()] : []).join(), [...state.by].join("."));
	put("only", isFiltered(), state.only.join("."));
	put("amounts", state.amounts, 1);
	put("table", $("side").hidden !== !!host, host ? 1 : 0);
	return "#" + p;
}
// step: a view to come back to, else the same view's address changes.
const kept = () => host ? host.address() : location.hash;
function save(step) {
	const to = address();
	if (restoring || to === (kept() || "#"))
		return;
	if (host) {
		host.save(to, step);
		return;
	}
	try {
		if (step)
			history.pushState({ fusee: 1 }, "", to);
		else
			history.replaceState(history.state, "", to);
	} catch { /* browsers limit how often; the next change writes it */ }
}
const numbers = text => (text || "").split(".").filter(Boolean).map(Number);
function restore() {
	const p = new URLSearchParams(kept().slice(1));
	restoring = true;
	allKinds(new Set(numbers(p.get("off")).filter(k => k in KINDS)));
	setGroups(p.has("by") ? numbers(p.get("by")).filter(l => l in data.labels) : data.grouped ? [...data.labels.keys()] : [],
		data.labels.map((_, l) => numbers(p.get("only"))[l] ?? -1).map((fn, l) => functions[fn]?.kind === LABELS + l ? fn : -1));
	setTable(host ? p.get("table") === "1" : p.get("table") !== "0");
	setAmounts(diff && p.get("amounts") === "1");
	setInverted(p.get("invert") === "1");
	setSearch(p.get("search") || "", true);
	goTo(state.tree.follow(numbers(p.get("zoom")), () => false));
	restoring = false;
}
addEventListener("popstate", restore);

// ---- begin ----

function start() {
	const total = `${amount(data.total)} of ${short(data.type)}`;
	document.title = short(data.title) + " – fusee";
	document.documentElement.classList.toggle("framed", !!host);
	state.chosen = host ? functions.findIndex(f => f.name === host.selected()) : -1;
	$("title").textContent = short(data.title);
	$("facts").textContent = [diff ? `${amount(data.base)} → ${total}` : total, ...data.facts.map(short)].join("  ·  ");
	$("amounts").hidden = !diff;
	$("table").classList.toggle("diff", diff);
	legend();
	labelLists();
	head();
	restore();
}
start();
window.fusee = { state, functions, goTo, restore, setSearch, svg: svgText }; // for the console and the tests
