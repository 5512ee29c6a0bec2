// SPDX-License-Identifier: Apache-2.0
// The flame graph page: the table of functions.

const isFiltered = () => state.only.some(fn => fn >= 0);
// The functions with the values of the stacks that are shown.
let filtered = null;
function sums() {
	if (!isFiltered())
		return functions;
	if (filtered)
		return filtered;
	filtered = functions.map(f => ({ ...f, self: 0, total: 0, baseSelf: 0, baseTotal: 0 }));
	const open = new Int32Array(functions.length), path = [];
	for (let i = 1; i < calls.fn.length; i++) {
		while (path.length && calls.end[path.at(-1)] <= i)
			open[calls.fn[path.pop()]]--;
		if (isOut(i)) {
			i = calls.end[i] - 1;
			continue;
		}
		const f = filtered[calls.fn[i]];
		f.self += calls.self[i];
		f.baseSelf += calls.baseSelf[i];
		if (!open[calls.fn[i]]++) {
			f.total += calls.value[i];
			f.baseTotal += calls.base[i];
		}
		path.push(i);
	}
	return filtered;
}
// A node whose label is not the selected value.
function isOut(i) {
	const fn = calls.fn[i], label = fn >= 0 ? functions[fn].kind - LABELS : -1;
	return label >= 0 && state.only[label] >= 0 && state.only[label] !== fn;
}

const by = (now, before) => f => {
	if (!diff)
		return f[now];
	return state.amounts ? f[now] - f[before] : share(f[now], data.total) - share(f[before], data.base);
};
const COLUMNS = [
	{ name: "self", key: by("self", "baseSelf") },
	{ name: "total", key: by("total", "baseTotal") },
	{ name: "function", key: f => f.name, text: true },
	{ name: "library", key: f => fileName(f.library) || placeOf(f), text: true },
];
function head() {
	const tr = $("table").tHead.rows[0];
	COLUMNS.forEach((column, c) => {
		const th = element("th", undefined, column.text ? "text" : ""), button = element("button");
		button.onclick = () => {
			state.down = state.order === c ? !state.down : !column.text;
			state.order = c;
			fillTable();
		};
		th.append(button);
		tr.append(th);
	});
}
function numberCell(f, c) {
	const now = f[c ? "total" : "self"], before = f[c ? "baseTotal" : "baseSelf"], delta = COLUMNS[c].key(f);
	const main = !diff ? amount(now) : state.amounts ? signed(delta, amount(delta)) : points(delta);
	const td = element("td", main + " ");
	const small = !diff ? percent(now, data.total) : state.amounts ? `${amount(before)} → ${amount(now)}` :
		`${rounded(share(before, data.base), 1)} → ${percent(now, data.total)}`;
	td.append(element("small", small));
	return td;
}
function rowOf(fn, room) {
	const f = sums()[fn], tr = element("tr"), name = element("td", fit(f.name, room) || short(f.name), "text name");
	const library = element("td", fileName(f.library) || placeOf(f), "text library");
	tr.tabIndex = 0;
	tr.dataset.fn = fn;
	name.title = short(f.name);
	library.title = short(f.library || f.file);
	if (isNoise(f, f.self, f.baseSelf) && isNoise(f, f.total, f.baseTotal))
		tr.className = "noise";
	if (presence(f.total, f.baseTotal))
		name.append(element("small", " " + presence(f.total, f.baseTotal)));
	tr.append(numberCell(f, 0), numberCell(f, 1), name, library);
	return tr;
}
function sorted() {
	const { key, text } = COLUMNS[state.order], sign = state.down ? -1 : 1;
	const keys = sums().map(f => diff && !text ? Math.abs(key(f)) : key(f)), out = [];
	for (let i = 0; i < functions.length; i++)
		if (!isLabel(i) && (sums()[i].total || sums()[i].baseTotal) && (!state.pattern || state.matches[i]))
			out.push(i);
	return out.sort((a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
}
function fillTable() {
	const all = sorted(), table = $("table"), room = table.tHead.rows[0].cells[2].clientWidth - 17;
	paper.font = "13px " + FONT;
	table.tBodies[0].replaceChildren(...all.slice(0, state.rows).map(fn => rowOf(fn, room)));
	[...table.tHead.rows[0].cells].forEach((th, c) => {
		const own = c === state.order;
		th.setAttribute("aria-sort", own ? (state.down ? "descending" : "ascending") : "none");
		th.firstChild.textContent = COLUMNS[c].name + (own ? (state.down ? " ▼" : " ▲") : "");
	});
	$("more").hidden = all.length <= state.rows;
	$("more").firstElementChild.textContent = `${rounded(state.rows, 0)} of ${rounded(all.length, 0)} functions`;
}
$("more").lastElementChild.onclick = () => { state.rows *= 4; fillTable(); };
function light(row) {
	const fn = row ? Number(row.dataset.fn) : -1;
	if (fn !== state.lit)
		draw();
	state.lit = fn;
}
for (const [event, on] of [["mouseover", true], ["mouseleave", false], ["focusin", true], ["focusout", false]])
	$("table").addEventListener(event, e => light(on ? e.target.closest("tr[data-fn]") : null));
$("table").addEventListener("click", e => {
	const row = e.target.closest("tr[data-fn]");
	if (row)
		searchRow(row);
});
