// SPDX-License-Identifier: Apache-2.0
// The list of profiles: what they measure, when, and which is compared with which.
import { about, firstRange, profiles } from "./data.js";
import { button, element, moveRow } from "./element.js";
import { amountOf, rounded, short } from "./numbers.js";
import { select } from "./address.js";

const WITH_TYPES = 200; // profiles of the list that are read to show their types
const MAX_ADDED = 32; // UI_MAX_ADDED of selection.h

export let files = [], place = null, live = false;
export async function lookForFiles() {
	const list = await profiles();
	files = list.files.map(f => ({ ...f, file: String(f.file) })).sort((a, b) => b.time - a.time || a.file - b.file);
	place = list.place;
	live = list.live;
}
export function nameOf(file) {
	const n = file.split(",").length;
	if (file === "all")
		return place ?? "all profiles";
	return n > 1 ? `${n} profiles` : files.find(f => f.file === file)?.name ?? `profile ${file}`;
}
export const hasAll = () => place !== null || files.length > 1;
// Says how many profiles are not in the sum, and why.
export function counted(d) {
	const list = [[d.broken, "cannot be read"], [d.other_types, "with other types of values"]];
	return list.filter(([n]) => n).map(([n, what]) => `${rounded(n, 0)} ${what}`);
}
// Selects all profiles, in the range that the server proposes first.
export async function chooseAll(change = {}, step = true) {
	const { from = "", to = "" } = await firstRange();
	const range = { from: String(from), to: String(to), span_from: String(from), span_to: String(to), follow: live ? "1" : "" };
	select({ file: "all", base: null, type: "", where: [], function: "", ...range, ...change }, step);
}
export const when = ms => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

function row(f, selection) {
	const tr = element("tr"), name = element("td", null, "text"), types = element("td", "", "text library");
	const compare = element("td", null, "text compare"), own = f.file === selection.file, box = element("input"), added = element("td", null, "add");
	box.type = "checkbox";
	box.value = f.file;
	box.setAttribute("aria-label", `add up ${short(f.name)}`);
	box.checked = (selection.file ?? "").split(",").includes(f.file);
	added.append(box);
	tr.tabIndex = 0;
	tr.ariaSelected = own;
	tr.dataset.file = f.file;
	name.append(button(short(f.name), () => select({ file: f.file, base: null, type: "", where: [], function: "", view: "graph" }), "link"));
	if (!own && selection.file !== null)
		compare.append(button(f.file === selection.base ? "compared" : "compare", () => select({ base: f.file, view: "table" })));
	tr.append(added, name, element("td", when(f.time), "text"), element("td", amountOf(f.bytes, "bytes"), "bytes"), types, compare);
	tr.onkeydown = e => e.key === "Enter" && e.target === tr && name.firstChild.click();
	return { tr, types, box };
}
// Requests the types of one profile after the other, until the list is no longer shown.
async function addTypes(rows, selection) {
	for (const { f, tr, types } of rows.slice(0, WITH_TYPES)) {
		try {
			types.textContent = short((await about({ ...selection, file: f.file, from: "", to: "", type: "" })).types.join(", "));
		} catch (e) {
			types.textContent = types.title = short(e.message);
		}
		if (!tr.isConnected)
			return;
	}
}
// Buttons above the list: all profiles over time, and the sum of those that are ticked.
function tools(rows) {
	const box = element("div", null, "tools"), chosen = () => rows.filter(r => r.box.checked).map(r => r.f.file);
	const open = change => select({ base: null, type: "", where: [], function: "", view: "graph", ...change });
	const sum = button("", () => open({ file: chosen().sort((a, b) => a - b).join() }));
	function count() {
		const n = chosen().length;
		sum.textContent = n > 1 ? `add up ${n} profiles` : "tick profiles to add them up";
		sum.disabled = n < 2 || n > MAX_ADDED;
	}
	for (const r of rows)
		r.box.onchange = count;
	count();
	if (hasAll())
		box.append(button(place ? `all of ${short(place)}` : "all of them, over time", () => chooseAll({ view: "time" })));
	if (rows.length > 1)
		box.append(sum);
	return box;
}
export async function showFiles(root, selection) {
	await lookForFiles();
	const table = element("table"), head = table.createTHead().insertRow();
	for (const [text, className] of [["", "add"], ["profile", "text"], ["time", "text wide"], ["size", "bytes"], ["values", "text library"], ["", "text compare"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	const rows = files.map(f => ({ f, ...row(f, selection) }));
	table.createTBody().append(...rows.map(r => r.tr));
	table.onkeydown = moveRow;
	root.replaceChildren(tools(rows), ...(files.length ? [table] : place ? [] :
		[element("p", "There is no profile here (.pb.gz, .pprof, .pb, .perf).", "empty")]));
	addTypes(rows, selection);
}
