// SPDX-License-Identifier: Apache-2.0
// The page of `fusee ui`: its head, its views and its keys.
import { onSelect, query, select, selection } from "./address.js";
import { about, data, hold } from "./data.js";
import { $, button, element, fail, fill } from "./element.js";
import { chooseAll, counted, files, hasAll, lookForFiles, nameOf, place, showFiles, when } from "./files.js";
import { follow, isHeld, toggleFollowing } from "./follow.js";
import { showGraph, zoomed } from "./graph.js";
import { showLabels, toggle } from "./labels.js";
import { amountOf, rounded, short } from "./numbers.js";
import { showCallers } from "./callers.js";
import { showCalls } from "./calls.js";
import { showCode } from "./code.js";
import { openShare } from "./share.js";
import { showSource } from "./source.js";
import { showTable } from "./table.js";
import { rangeText, showTime } from "./time.js";
import { momentText, showTracks } from "./tracks.js";

const VIEWS = [
	{ name: "files", title: "profiles", show: showFiles },
	{ name: "graph", title: "flame graph", show: (root, s) => showGraph(root, s, onDigit) },
	{ name: "table", title: "functions", show: showTable },
	{ name: "callers", title: "callers", show: showCallers },
	{ name: "source", title: "source", show: showSource },
	{ name: "code", title: "instructions", show: showCode },
	{ name: "calls", title: "call graph", show: showCalls },
	{ name: "time", title: "over time", show: showTime },
	{ name: "tracks", title: "threads", show: showTracks },
];

// ---- head ----

function tabs() {
	$("tabs").append(...VIEWS.map(({ name, title }, at) => {
		const b = button(title, () => select({ view: name }));
		b.role = "tab";
		b.id = `tab-${name}`;
		b.title = `key: ${at + 1}`;
		b.setAttribute("aria-controls", "view");
		return b;
	}));
}
function moveTab(e) {
	const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
	const all = [...$("tabs").children], at = all.indexOf(e.target);
	if (!step || at < 0)
		return;
	all[(at + step + all.length) % all.length].focus();
	e.preventDefault();
}
function chip(text, title, onclick, className = "chip") {
	const b = button(short(text), onclick, className);
	b.title = title;
	return b;
}
let shownFile = null;
function showChosen(s) {
	const chips = s.where.map(w => chip(`${w}  ×`, "all samples again", () => toggle(w)));
	if (s.function)
		chips.push(chip(`function: ${s.function}  ×`, "all functions again", () => select({ function: "" })));
	if (s.file === "all" && (s.from || s.to))
		chips.push(chip(rangeText(s.from, s.to), "choose another range of time", () => select({ view: "time" })));
	else if (s.from || s.to)
		chips.push(chip(`${momentText(s.from, s.to)}  ×`, "all times again", () => select({ from: "", to: "" })));
	if (s.follow)
		chips.push(chip("following  ×", "new profiles are added to what is shown; stop that", toggleFollowing));
	if (s.view === "graph" && zoomed.name && zoomed.name !== s.function)
		chips.push(chip(`only stacks with ${zoomed.name}`, "in all views (s)", () => select({ function: zoomed.name }), "chip hint"));
	$("chosen").replaceChildren(...(chips.length ? chips : [element("span", "all samples")]));
}
/* What was in use at a moment is no sum. */
function ofMoments(n, sums) {
	return n > 1 && sums.type.startsWith("inuse_") ? `, each of a moment: ${amountOf(sums.total / n, sums.unit)} on average` : "";
}
async function showHead(s) {
	const a = await about(s), type = s.type || a.type, sums = await data("labels", s);
	if (s !== selection)
		return;
	const lost = a.losses.map(([stage, reason, n]) => `${rounded(n, 0)} ${stage} (${reason})`);
	const total = `${amountOf(sums.total, sums.unit)} of ${sums.type}`;
	$("facts").textContent = [s.base === null ? total : `${amountOf(sums.base, sums.unit)} → ${total}`,
		...(a.duration ? [`${rounded(a.duration / 1e9, 1)} s long`] : []), ...(a.start ? [when(a.start / 1e6)] : []), ...lost,
		...(a.windows ? [`${rounded(a.windows, 0)} profiles added up${ofMoments(a.windows, sums)}`] : []), ...counted(a),
		...(sums.omits ? ["frames of the interpreter or allocator itself are omitted"] : [])].map(short).join("  ·  ");
	fill($("type"), a.types.map(t => [t, short(t)]), type);
}
function showChoice(s) {
	$("title").textContent = s.file === null ? "fusee" : short(nameOf(s.file)) + (s.base === null ? "" : ` against ${short(nameOf(s.base))}`);
	document.title = s.file === null ? "fusee" : $("title").textContent + " – fusee";
	if (s.file !== shownFile)
		$("facts").textContent = "";
	shownFile = s.file;
	const single = files.map(f => [f.file, short(f.name)]), all = hasAll() ? [["all", short(place ?? "all profiles")]] : [];
	$("share").disabled = s.file === null;
	const options = [...all, ...single], several = [s.file, s.base].filter(f => f?.includes(",")).map(f => [f, nameOf(f)]);
	const before = s.base === "all" ? [["all", rangeText(s.base_from, s.base_to)]] : [];
	fill($("file"), [...options, ...several], s.file ?? "");
	fill($("base"), [["", "nothing"], ...before, ...single.filter(([f]) => f !== s.file), ...several], s.base ?? "");
}
$("file").onchange = () => $("file").value === "all" ? chooseAll().catch(fail) :
	select({ file: $("file").value, base: null, type: "", where: [], function: "" });
$("base").onchange = () => select({ base: $("base").value === "" ? null : $("base").value });
$("type").onchange = () => select({ type: $("type").value });
$("share").onclick = openShare;
$("help").onclick = () => $("keys").showModal();
$("tabs").onkeydown = moveTab;

// ---- views ----

let shows = 0, supersede = () => {};
// A view that is ready late must not replace a view that was selected after it: that ends its show, as a frame that is
// removed before it is loaded never says so.
async function showView(s, view) {
	const own = ++shows, into = view.name === "graph" ? $("view") : element("div");
	supersede();
	const superseded = new Promise(done => { supersede = done; });
	try {
		await Promise.race([view.show(into, s), superseded]);
	} finally {
		if (own === shows && into !== $("view") && !isHeld(s))
			$("view").replaceChildren(...into.childNodes);
	}
}
async function show(s) {
	const view = VIEWS.find(v => v.name === s.view) || VIEWS[s.file === null ? 0 : 1];
	for (const tab of $("tabs").children) {
		tab.ariaSelected = tab.id === `tab-${view.name}`;
		tab.tabIndex = tab.ariaSelected === "true" ? 0 : -1;
	}
	$("view").setAttribute("aria-labelledby", `tab-${view.name}`);
	$("problem").hidden ||= !s.follow; // an update that changes nothing does not make it flicker
	delete document.documentElement.dataset.shown;
	showChoice(s);
	showChosen({ ...s, view: view.name });
	if (s.file === null && view.name !== "files") {
		select({ view: "files" }, false);
		return;
	}
	// the view is requested first, as the server answers one request after the other
	const shown = showView(s, view), settled = shown.catch(() => {});
	const behind = request => settled.then(() => s === selection && !isHeld(s) && request());
	const some = s.file === null ? [] : [behind(() => showHead(s)), behind(() => showLabels($("labels"), s))];
	const failed = (await Promise.allSettled([shown, ...some])).filter(result => result.status === "rejected");
	if (s === selection)
		$("problem").hidden = !failed.length;
	if (s === selection && failed.length)
		fail(failed.at(-1).reason);
	if (s === selection)
		document.documentElement.dataset.shown = `${view.name}?${query(s)}`; // for the tests
}
zoomed.onchange = () => showChosen({ ...selection, view: "graph" });

// ---- keys ----

function onDigit(key) {
	const view = VIEWS[Number(key) - 1];
	if (view)
		select({ view: view.name });
	return !!view;
}
const KEYS = {
	"/": () => $("search")?.focus(), "?": () => $("keys").showModal(), Escape: () => select({ function: "" }),
};
document.addEventListener("keydown", e => {
	if (e.target.id === "search" && e.key === "Escape" && !e.target.value)
		e.target.blur();
	if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || e.target.matches("input, select"))
		return;
	if (Object.hasOwn(KEYS, e.key))
		KEYS[e.key]();
	else if (!onDigit(e.key))
		return;
	e.preventDefault();
});

// ---- begin ----

async function start() {
	tabs();
	hold();
	try {
		await lookForFiles();
	} catch (e) {
		fail(e);
		return;
	}
	let showing = null;
	onSelect(s => { showing = show(s); });
	follow(() => showing);
	if (selection.file === null && place !== null)
		chooseAll({ view: "time" }, false).catch(fail);
	else if (selection.file === null && files.length === 1)
		select({ file: files[0].file }, false);
	else
		showing = show(selection);
}
start();
