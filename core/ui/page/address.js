// SPDX-License-Identifier: Apache-2.0
// The selection. The address bar has it, so that links lead to it and the browser's button goes back to it.
// file and base: numbers of files, separated by commas, or "all": the profiles that begin at from <= t < to, in ms.
const RANGES = ["from", "to", "base_from", "base_to", "span_from", "span_to"];
const TEXTS = ["view", "type", "function", "by", "graph", "follow"];
const EMPTY = { file: null, base: null, where: [] };
for (const name of [...TEXTS, ...RANGES])
	EMPTY[name] = "";
const listeners = [];
export let selection = parse(location.hash);

function profilesOf(text) {
	return /^(\d{1,9}(,\d{1,9})*|all)$/.test(text || "") ? text : null;
}
function timeOf(text) {
	return /^\d{1,13}$/.test(text || "") ? text : "";
}
function parse(hash) {
	const p = new URLSearchParams(hash.slice(1)), s = { ...EMPTY, where: p.getAll("where") };
	s.file = profilesOf(p.get("file"));
	s.base = profilesOf(p.get("base"));
	for (const name of RANGES)
		s[name] = timeOf(p.get(name));
	for (const name of TEXTS)
		s[name] = p.get(name) || "";
	return s;
}
function format(s) {
	const p = new URLSearchParams();
	for (const name of ["file", "base"])
		if (s[name] !== null)
			p.set(name, s[name]);
	for (const name of [...RANGES, ...TEXTS])
		if (s[name])
			p.set(name, s[name]);
	for (const condition of s.where)
		p.append("where", condition);
	return "#" + p;
}
// All profiles, or one: a part of its samples by their times.
const hasRange = profiles => profiles !== null && !profiles.includes(",");
// The query of a request for data: the selection without what only decides how data is shown.
export function query(s) {
	const own = { ...s, view: "", graph: "", by: "", follow: "", span_from: "", span_to: "" };
	if (!hasRange(s.file))
		own.from = own.to = "";
	if (!hasRange(s.base))
		own.base_from = own.base_to = "";
	const p = new URLSearchParams(format(own).slice(1));
	return String(p);
}
export const link = change => format({ ...selection, ...change });
export const canGoBack = () => !!(history.state && history.state.fusee);

function tell() {
	for (const listener of listeners)
		listener(selection);
}
// step: the browser's button leads back to the selection before; otherwise the address is replaced.
export function select(change, step = true) {
	const next = { ...selection, ...change };
	if (next.file !== selection.file && !("from" in change)) // a range is one of these profiles
		next.from = next.to = "";
	if (next.base !== selection.base && !("base_from" in change))
		next.base_from = next.base_to = "";
	const to = format(next);
	if (to === format(selection))
		return;
	if (query(next) !== query(selection) && !("graph" in change))
		next.graph = ""; // a place in the flame graph of other data means nothing
	selection = next;
	try {
		if (step)
			history.pushState({ fusee: 1 }, "", format(next));
		else
			history.replaceState(history.state, "", format(next));
	} catch { /* browsers limit how often an address may change; the next change writes it */ }
	tell();
}
export function onSelect(listener) {
	listeners.push(listener);
}
addEventListener("popstate", () => {
	selection = parse(location.hash);
	tell();
});
