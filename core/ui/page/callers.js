// SPDX-License-Identifier: Apache-2.0
// A function between its callers and its callees, with the numbers of `fusee report --peek`.
import { data } from "./data.js";
import { element, moveRow, part } from "./element.js";
import { amountOf, percent, share, short } from "./numbers.js";
import { select } from "./address.js";
import { BASE_SELF, BASE_TOTAL, NAME, SELF, TOTAL, place, sure } from "./table.js";

function row([name, inlined, value, before], d, whole) {
	const tr = element("tr"), cell = element("td", short(name) + (inlined ? "  (inlined)" : ""), "name");
	tr.tabIndex = 0;
	tr.title = short(name);
	part(cell, share(value, whole));
	cell.classList.add("bar");
	const text = before === undefined ? amountOf(value, d.unit) : `${amountOf(before, d.unit)} → ${amountOf(value, d.unit)}`;
	tr.append(element("td", text), element("td", percent(value, whole)), cell);
	tr.onclick = () => select({ function: name });
	tr.onkeydown = e => e.key === "Enter" && tr.click();
	return tr;
}
function list(title, calls, d, whole) {
	const box = element("section"), table = element("table"), body = table.createTBody();
	const weight = ([, , value, before = 0]) => Math.abs(value - before);
	calls.sort((a, b) => weight(b) - weight(a) || (a[0] < b[0] ? -1 : 1));
	body.append(...calls.map(c => row(c, d, whole)));
	table.setAttribute("aria-label", title);
	table.onkeydown = moveRow;
	const head = element("tr");
	for (const [text, className] of [["value", d.base === undefined ? "" : "wide"], ["share", ""], ["function", "text"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	table.createTHead().append(head);
	box.append(element("h3", title), calls.length ? table : element("p", "none", "empty"));
	return box;
}
function summary(f, d) {
	if (d.base === undefined)
		return `self ${amountOf(f[SELF], d.unit)} (${percent(f[SELF], d.total)})  ·  total ${amountOf(f[TOTAL], d.unit)} ` +
			`(${percent(f[TOTAL], d.total)})  ·  ${place(f)}`;
	return `self ${amountOf(f[BASE_SELF], d.unit)} → ${amountOf(f[SELF], d.unit)}  ·  total ${amountOf(f[BASE_TOTAL], d.unit)} → ` +
		`${amountOf(f[TOTAL], d.unit)}  ·  ${sure(f).textContent}  ·  ${place(f)}`;
}
export async function showCallers(root, selection) {
	if (!selection.function) {
		root.replaceChildren(element("p", "Select a function: in the table of functions, or by a double click in the flame graph.", "empty"));
		return;
	}
	const d = await data("callers", selection), f = d.function;
	if (!f) {
		root.replaceChildren(element("p", "No selected sample has this function.", "empty"));
		return;
	}
	const box = element("div", null, "sandwich"), whole = f[TOTAL];
	box.append(element("h2", short(f[NAME])), element("p", summary(f, d)),
		list("callers", d.callers, d, whole), list("callees", d.callees, d, whole));
	root.replaceChildren(box);
}
