// SPDX-License-Identifier: Apache-2.0
// The selection, which the address bar holds: so a link shows the same, and the browser's button goes back.
const EMPTY = { view: "", file: null, base: null, type: "", where: [], function: "", graph: "" };
const TEXTS = ["view", "type", "function", "graph"];
const listeners = [];
export let selection = parse(location.hash);

function number(text) {
	return /^\d{1,9}$/.test(text || "") ? Number(text) : null;
}
function parse(hash) {
	const p = new URLSearchParams(hash.slice(1)), s = { ...EMPTY, where: p.getAll("where") };
	s.file = number(p.get("file"));
	s.base = number(p.get("base"));
	for (const name of TEXTS)
		s[name] = p.get(name) || "";
	return s;
}
function format(s) {
	const p = new URLSearchParams();
	for (const name of ["file", "base"])
		if (s[name] !== null)
			p.set(name, s[name]);
	for (const name of TEXTS)
		if (s[name])
			p.set(name, s[name]);
	for (const condition of s.where)
		p.append("where", condition);
	return "#" + p;
}
// What views of the same data have in common: the query of a request.
export function query(s) {
	const p = new URLSearchParams(format({ ...s, view: "", graph: "" }).slice(1));
	return String(p);
}
export const link = change => format({ ...selection, ...change });
export const canGoBack = () => !!(history.state && history.state.fusee);

function tell() {
	for (const listener of listeners)
		listener(selection);
}
// step: a view to come back to; else the address of this view changes.
export function select(change, step = true) {
	const next = { ...selection, ...change }, to = format(next);
	if (to === format(selection))
		return;
	if (query(next) !== query(selection) && !("graph" in change))
		next.graph = ""; // another tree
	selection = next;
	try {
		if (step)
			history.pushState({ fusee: 1 }, "", format(next));
		else
			history.replaceState(history.state, "", format(next));
	} catch { /* browsers limit how often; the next change writes it */ }
	tell();
}
export function onSelect(listener) {
	listeners.push(listener);
}
addEventListener("popstate", () => {
	selection = parse(location.hash);
	tell();
});
