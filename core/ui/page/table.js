// SPDX-License-Identifier: Apache-2.0
// The table of functions: self and total; in a comparison those of both profiles, and whether the change may be chance.
import { data } from "./data.js";
import { button, compile, element, moveRow } from "./element.js";
import { amountOf, fileName, percent, points, rounded, share, short, signed } from "./numbers.js";
import { select } from "./address.js";

const MORE = 500;
// The indices of a row's members, as the server sends them.
export const NAME = 0, FILE = 1, LINE = 2, LIBRARY = 3, SELF = 5, TOTAL = 6, BASE_SELF = 7, BASE_TOTAL = 8, Z_SELF = 9, Z_TOTAL = 10,
	NOISE = 11;
const state = { order: 0, down: true, rows: MORE, text: "" };

export function place(f) {
	return f[LIBRARY] ? fileName(f[LIBRARY]) : f[FILE] ? fileName(f[FILE]) + (f[LINE] ? ":" + f[LINE] : "") : "";
}
const change = (f, d, now, before) => share(f[now], d.total) - share(f[before], d.base);
function columns(d) {
	const diff = d.base !== undefined;
	const value = (name, now, before) => ({
		name, className: diff ? `wide ${name}` : "", cell: f => numbers(f, d, now, before),
		key: f => diff ? Math.abs(change(f, d, now, before)) : f[now],
	});
	return [
		value("self", SELF, BASE_SELF), value("total", TOTAL, BASE_TOTAL),
		...(diff ? [{ name: "chance?", className: "z", cell: f => sure(f), key: f => largestZ(f) }] : []),
		{ name: "function", className: "text", text: true, cell: f => element("td", short(f[NAME]) + presence(f, d), "name"), key: f => f[NAME] },
		{ name: "library", className: "text library", text: true, cell: f => element("td", place(f), "library"), key: place },
	];
}
const presence = (f, d) => d.base === undefined || !f[TOTAL] === !f[BASE_TOTAL] ? "" : f[BASE_TOTAL] ? "  (vanished)" : "  (new)";
function numbers(f, d, now, before) {
	const diff = d.base !== undefined;
	const td = element("td", (diff ? points(change(f, d, now, before)) : amountOf(f[now], d.unit)) + " ");
	td.className = diff && now === SELF ? "wide self" : "";
	td.append(element("small", diff ? `${percent(f[before], d.base)} → ${percent(f[now], d.total)}` : percent(f[now], d.total)));
	td.title = diff ? `${amountOf(f[before], d.unit)} → ${amountOf(f[now], d.unit)}` : amountOf(f[now], d.unit);
	return td;
}
const largestZ = f => Math.max(Math.abs(f[Z_SELF]), Math.abs(f[Z_TOTAL]));
// As core/report/change.c decides.
export function sure(f) {
	const z = Math.abs(f[Z_TOTAL]) > Math.abs(f[Z_SELF]) ? f[Z_TOTAL] : f[Z_SELF];
	const td = element("td", f[NOISE] ? "chance" : `${z > 0 ? "▲ more" : "▼ less"} ${signed(z, rounded(z, 1))}`, "z");
	td.title = `z of self ${rounded(f[Z_SELF], 1)}, of total ${rounded(f[Z_TOTAL], 1)}; chance: of 20 comparisons of equal runs, one has a function beyond the limit`;
	return td;
}
function rowOf(f, d, list) {
	const tr = element("tr");
	tr.tabIndex = 0;
	tr.title = short(f[NAME]);
	if (d.base !== undefined)
		tr.className = f[NOISE] ? "noise" : change(f, d, TOTAL, BASE_TOTAL) > 0 ? "more" : "less";
	tr.append(...list.map(c => c.cell(f)));
	tr.onclick = () => select({ function: f[NAME], view: "callers" });
	tr.onkeydown = e => e.key === "Enter" && tr.click();
	return tr;
}
function head(list, refill) {
	const tr = element("tr");
	list.forEach((c, at) => {
		const th = element("th", null, c.className), own = at === state.order;
		th.ariaSort = own ? (state.down ? "descending" : "ascending") : "none";
		th.append(button(c.name + (own ? (state.down ? " ▼" : " ▲") : ""), () => {
			state.down = own ? !state.down : !c.text;
			state.order = at;
			refill();
		}));
		tr.append(th);
	});
	return tr;
}
function sorted(rows, column) {
	const sign = state.down ? -1 : 1;
	return rows.map(f => [column.key(f), f]).sort(([a, x], [b, y]) =>
		a < b ? -sign : a > b ? sign : x[NAME] < y[NAME] ? -1 : x[NAME] > y[NAME] ? 1 : 0).map(([, f]) => f);
}
function search(onchange) {
	const input = element("input");
	input.type = "search";
	input.id = "search";
	input.placeholder = "search (regular expression)";
	input.setAttribute("aria-label", "search functions, a regular expression");
	input.spellcheck = false;
	input.value = state.text;
	input.oninput = () => {
		state.text = input.value;
		state.rows = MORE;
		onchange();
	};
	return input;
}
export async function showTable(root, selection) {
	const d = await data("table", selection), list = columns(d), table = element("table"), count = element("output");
	const more = button("show more", () => { state.rows *= 4; refill(); }), tools = element("div", null, "tools"), input = search(() => refill());
	state.order = Math.min(state.order, list.length - 1);
	function refill() {
		const pattern = compile(state.text);
		const all = sorted(pattern ? d.functions.filter(f => pattern.test(f[NAME])) : d.functions, list[state.order]);
		input.ariaInvalid = pattern === undefined;
		table.tHead.replaceChildren(head(list, refill));
		table.tBodies[0].replaceChildren(...all.slice(0, state.rows).map(f => rowOf(f, d, list)));
		count.value = pattern === undefined ? "not a regular expression" :
			`${rounded(all.length, 0)} function${all.length === 1 ? "" : "s"}`;
		more.hidden = all.length <= state.rows;
	}
	table.createTHead();
	table.createTBody();
	table.onkeydown = moveRow;
	refill();
	tools.append(input, count);
	root.replaceChildren(tools, table, more);
}
