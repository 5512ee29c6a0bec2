// SPDX-License-Identifier: Apache-2.0
// The source lines of a function, with the samples of each.
import { data } from "./data.js";
import { element } from "./element.js";
import { amountOf, percent, rounded, share, short } from "./numbers.js";

function line([number, self, total, text], d, whole) {
	const tr = element("tr"), code = element("td", text === null ? "?" : text || " ", "text");
	tr.append(element("td", self ? amountOf(self, d.unit) : ""), element("td", total ? amountOf(total, d.unit) : ""),
		element("td", number || "?", "line"), code);
	if (total) {
		tr.className = "hot";
		tr.title = percent(total, d.total) + " of all";
		tr.style.setProperty("--heat", `${rounded(4 + share(total, whole) * 0.36, 0)}%`);
	}
	return tr;
}
function one(f, d) {
	const table = element("table"), head = element("tr"), scroll = element("div"), out = [element("h2", short(f.name))];
	for (const [text, className] of [["self", ""], ["total", ""], ["line", "line"], ["source", "text"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	out.push(element("p", `${short(f.file)}  ·  self ${amountOf(f.self, d.unit)}, total ${amountOf(f.total, d.unit)} (${percent(f.total, d.total)})`));
	if (!f.found)
		out.push(element("p", f.lines.some(([n]) => n) ?
			"The source file was not found, neither by its path nor below the folder of fusee ui." :
			"No line is known: the program was built without -g, or its debug symbols are not installed."));
	table.createTHead().append(head);
	table.createTBody().append(...f.lines.map(l => line(l, d, f.total)));
	scroll.append(table);
	return [...out, scroll];
}
export async function showSource(root, selection) {
	if (!selection.function) {
		root.replaceChildren(element("p", "Select a function: in the table of functions, or by a double click in the flame graph.", "empty"));
		return;
	}
	const d = await data("source", selection), box = element("div", null, "source");
	box.append(...d.functions.flatMap(f => one(f, d)));
	root.replaceChildren(d.functions.length ? box : element("p", "No line of this function is known.", "empty"));
	box.querySelector("tr.hot")?.scrollIntoView({ block: "center" });
}
