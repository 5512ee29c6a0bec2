// SPDX-License-Identifier: Apache-2.0
// The source lines of a function, with the samples of each.
import { data } from "./data.js";
import { element } from "./element.js";
import { amountOf, percent, rounded, share, short } from "./numbers.js";

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
function one(f, d) {
	const table = element("table"), head = element("tr"), scroll = element("div"), out = [element("h2", short(f.name))];
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
