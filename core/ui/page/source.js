// SPDX-License-Identifier: Apache-2.0
// The source lines of a function, with the samples of each.
import { element } from "./element.js";
import { amountOf, percent, rounded, share, short } from "./numbers.js";
import { functionsOf, glance, heading, missing } from "./hottest.js";
import { isUpdate } from "./follow.js";
import { FILE } from "./table.js";

// While no function is selected: lines on either side of a line with samples, and lines of a file that was not found.
const AROUND = 3, WITHOUT_TEXT = 3;

// A value; in a comparison the base's value, an arrow, and the value.
function value(v, before, d) {
	if (!v && !before)
		return "";
	return before === undefined ? amountOf(v, d.unit) : `${amountOf(before, d.unit)} → ${amountOf(v, d.unit)}`;
}
function line([number, self, total, text, baseSelf, baseTotal], d, whole) {
	const tr = element("tr"), code = element("td", text === null ? "?" : text || " ", "text");
	tr.append(element("td", value(self, baseSelf, d)), element("td", value(total, baseTotal, d)), element("td", number || "?", "line"), code);
	if (total || baseTotal) {
		tr.className = "hot";
		tr.title = `${baseTotal === undefined ? "" : percent(baseTotal, d.base) + " → "}${percent(total, d.total)} of all`;
		tr.style.setProperty("--heat", `${rounded(4 + share(total, whole) * 0.36, 0)}%`);
	}
	return tr;
}
// The lines near those with samples, of a file that was not found the hottest; null: some are not shown there.
function near({ lines, found }) {
	if (!found)
		return [...lines].sort((a, b) => b[1] - a[1]).slice(0, WITHOUT_TEXT).sort((a, b) => a[0] - b[0]);
	const hot = lines.map(([, , total, , , before]) => total || before), out = [];
	lines.forEach((l, at) => {
		if (hot.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(Boolean))
			out.push(l);
		else if (out.at(-1) !== null)
			out.push(null);
	});
	return out;
}
function gap() {
	const tr = element("tr"), td = element("td", "⋮", "line");
	td.colSpan = 3;
	tr.append(td, element("td"));
	return tr;
}
function one(f, d, s, whole) {
	const table = element("table"), head = element("tr"), scroll = element("div"), out = [heading(d, s)];
	const wide = d.base === undefined ? "" : "wide";
	for (const [text, className] of [["self", wide], ["total", wide], ["line", "line"], ["source", "text"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	out.push(element("p", `${short(f.file)}  ·  self ${value(f.self, f.base_self, d) || 0}, total ` +
		`${value(f.total, f.base_total, d) || 0} (${percent(f.total, d.total)})`));
	if (!f.found)
		out.push(element("p", f.lines.some(([n]) => n) ?
			"The source file was not found, neither by its path nor below the folder of fusee ui." :
			"No line is known: the program was built without -g, or its debug symbols are not installed."));
	table.createTHead().append(head);
	table.createTBody().append(...(s.function ? f.lines : near(f)).map(l => l ? line(l, d, whole) : gap()));
	scroll.append(table);
	return [...out, scroll];
}
export async function showSource(root, selection) {
	const answers = await functionsOf("source", selection, f => f[FILE]), lines = answers.flatMap(d => d.functions.flatMap(f => f.found ? f.lines : []));
	const whole = lines.reduce((most, [, , total]) => Math.max(most, total), 1);
	const isFound = d => d.functions.some(f => f.found);
	const known = answers.sort((a, b) => isFound(b) - isFound(a)).flatMap(d => d.functions.flatMap(f => one(f, d, selection, selection.function ? f.total : whole)));
	const parts = [...known, ...missing(answers)];
	const box = element("div", null, "source");
	box.append(...glance(selection, "lines"), ...parts);
	root.replaceChildren(parts.length ? box : element("p", selection.function ? "No line of this function is known." :
		"No line is known: programs were built without -g, or their debug symbols are not installed.", "empty"));
	if (selection.function && !isUpdate(selection)) // is not in the page yet
		requestAnimationFrame(() => box.querySelector("tr.hot")?.scrollIntoView({ block: "center" }));
}
