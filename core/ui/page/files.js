// SPDX-License-Identifier: Apache-2.0
// The list of profiles: what they measure, when, and which is compared with which.
import { about, profiles } from "./data.js";
import { button, element, moveRow } from "./element.js";
import { amountOf, short } from "./numbers.js";
import { select } from "./address.js";

const WITH_TYPES = 200; // profiles that are read for the list

export let files = [];
export async function lookForFiles() {
	const list = await profiles();
	files = list.files.sort((a, b) => b.time - a.time || a.file - b.file);
	return list;
}
export const nameOf = file => files.find(f => f.file === file)?.name ?? `profile ${file}`;
export const when = ms => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

function row(f, selection) {
	const tr = element("tr"), name = element("td", null, "text"), types = element("td", "", "text");
	const compare = element("td", null, "text"), own = f.file === selection.file;
	tr.tabIndex = 0;
	tr.ariaSelected = own;
	tr.dataset.file = f.file;
	name.append(button(short(f.name), () => select({ file: f.file, base: null, type: "", where: [], function: "", view: "graph" }), "link"));
	if (!own && selection.file !== null)
		compare.append(button(f.file === selection.base ? "compared" : "compare", () => select({ base: f.file, view: "table" })));
	tr.append(name, element("td", when(f.time), "text"), element("td", amountOf(f.bytes, "bytes")), types, compare);
	tr.onkeydown = e => e.key === "Enter" && e.target === tr && name.firstChild.click();
	return { tr, types };
}
// One after the other, until the list is shown no more.
async function addTypes(rows) {
	for (const { f, tr, types } of rows.slice(0, WITH_TYPES)) {
		try {
			types.textContent = (await about(f.file)).types.map(([type]) => type).join(", ");
		} catch (e) {
			types.textContent = e.message;
			types.title = e.message;
		}
		if (!tr.isConnected)
			return;
	}
}
export async function showFiles(root, selection) {
	await lookForFiles();
	const table = element("table"), head = table.createTHead().insertRow();
	for (const [text, className] of [["profile", "text"], ["time", "text wide"], ["size", ""], ["values", "text library"], ["", "text z"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	const rows = files.map(f => ({ f, ...row(f, selection) }));
	table.createTBody().append(...rows.map(r => r.tr));
	table.onkeydown = moveRow;
	root.replaceChildren(files.length ? table : element("p", "There is no profile here (.pb.gz, .pprof, .pb, .perf).", "empty"));
	addTypes(rows);
}
