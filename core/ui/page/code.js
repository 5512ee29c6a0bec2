// SPDX-License-Identifier: Apache-2.0
// The instructions of a function, with the samples of each. Long stretches without samples are folded.
import { button, element } from "./element.js";
import { amountOf, fileName, percent, rounded, share, short } from "./numbers.js";
import { functionsOf, glance, heading, missing } from "./hottest.js";
import { isUpdate } from "./follow.js";
import { LIBRARY } from "./table.js";

const SELF = 1, TOTAL = 2, TEXT = 3, FILE = 4, LINE = 5, BASE_SELF = 6, BASE_TOTAL = 7;
const AROUND = 6; // instructions shown on either side of an instruction with samples

// A value; in a comparison the base's value, an arrow, and the value.
function value(v, before, d) {
	if (!v && !before)
		return "";
	return before === undefined ? amountOf(v, d.unit) : `${amountOf(before, d.unit)} → ${amountOf(v, d.unit)}`;
}
const isHot = i => i[SELF] || i[TOTAL] || i[BASE_SELF] || i[BASE_TOTAL];
function row(i, last, d, f, most) {
	const tr = element("tr"), source = i[LINE] && (!last || last[LINE] !== i[LINE] || last[FILE] !== i[FILE]) ? `${fileName(i[FILE])}:${i[LINE]}` : "";
	const text = element("td", i[TEXT].replaceAll("\t", " "), "text");
	tr.append(element("td", value(i[SELF], i[BASE_SELF], d)), element("td", value(i[TOTAL], i[BASE_TOTAL], d)),
		element("td", i[0], "line"), text, element("td", source, "library"));
	if (isHot(i)) {
		tr.className = "hot";
		tr.title = `${percent(i[TOTAL], d.total)} of all, ${percent(i[TOTAL], f.total)} of ${short(f.name)}`;
		tr.style.setProperty("--heat", `${rounded(6 + share(i[TOTAL], most) * 0.4, 0)}%`);
	}
	return tr;
}
// Ranges [from, to, folded]: those near instructions with samples, and folded the others.
function stretches(list) {
	const near = new Uint8Array(list.length), out = [];
	list.forEach((i, at) => isHot(i) && near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1));
	for (let from = 0, to; from < list.length; from = to) {
		to = from + 1;
		while (to < list.length && near[to] === near[from])
			to++;
		out.push([from, to, !near[from] && to - from > 3]);
	}
	return out;
}
function fill(body, list, d, f) {
	const most = list.reduce((max, i) => Math.max(max, i[TOTAL]), 1); // this value has the full colour
	for (const [from, to, folded] of stretches(list)) {
		const rows = () => list.slice(from, to).map((i, k) => row(i, list[from + k - 1], d, f, most));
		if (!folded) {
			body.append(...rows());
			continue;
		}
		const tr = element("tr"), td = element("td", null, "fold");
		td.colSpan = 5;
		td.append(button(`${rounded(to - from, 0)} instructions without samples`, () => tr.replaceWith(...rows()), "link"));
		tr.append(td);
		body.append(tr);
	}
}
function notes(f) {
	const out = [];
	if (f.why)
		out.push(`No ${f.instructions.length ? "more " : ""}instructions: ${f.why}.`);
	else if (f.inlined)
		out.push("It is only inlined into others here: its instructions are in theirs.");
	if (f.other_build)
		out.push("The base has no or another build of it, whose addresses are not comparable: the values are those of this profile.");
	return out.map(text => element("p", text));
}
function one(f, d, s) {
	const table = element("table"), head = element("tr"), scroll = element("div"), wide = f.instructions[0]?.length > 6 ? "wide" : "";
	for (const [text, className] of [["self", wide], ["total", wide], ["address", "line"], ["instruction", "text"], ["source", "text library"]]) {
		const th = element("th", null, className);
		th.append(element("span", text));
		head.append(th);
	}
	table.createTHead().append(head);
	fill(table.createTBody(), f.instructions, d, f);
	scroll.append(table);
	const out = [heading(d, s), element("p", `${short(f.library || f.file)}  ·  self ${value(f.self, f.base_self, d) || 0}, total ` +
		`${value(f.total, f.base_total, d) || 0} (${percent(f.total, d.total)})`), ...notes(f)];
	return f.instructions.length ? [...out, scroll] : out;
}
export async function showCode(root, selection) {
	const answers = await functionsOf("code", selection, f => f[LIBRARY]), box = element("div", null, "source code");
	const parts = [...answers.flatMap(d => d.functions.flatMap(f => one(f, d, selection))), ...missing(answers)];
	box.append(...glance(selection, "instructions"), ...parts);
	root.replaceChildren(parts.length ? box : element("p", selection.function ? "No selected sample has this function." : "No selected sample has an instruction.", "empty"));
	if (!selection.function || isUpdate(selection))
		return;
	const rows = [...box.querySelectorAll("tr.hot")], heat = r => parseFloat(r.style.getPropertyValue("--heat"));
	requestAnimationFrame(() => rows.sort((a, b) => heat(b) - heat(a))[0]?.scrollIntoView({ block: "center" }));
}
