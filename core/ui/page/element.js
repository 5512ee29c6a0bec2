// SPDX-License-Identifier: Apache-2.0
// Makes elements. Texts from profiles are not trusted: they are set as textContent, never as HTML, and without
// characters that would reverse or hide what is beside them.
import { printable, rounded, short } from "./numbers.js";

export const $ = id => document.getElementById(id);
export function element(tag, text, className) {
	const e = document.createElement(tag);
	if (text !== undefined && text !== null)
		e.textContent = printable(String(text));
	if (className)
		e.className = className;
	return e;
}
export function svg(tag, attributes = {}) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes))
		e.setAttribute(name, value);
	return e;
}
export function button(text, onclick, className) {
	const b = element("button", text, className);
	b.type = "button";
	b.onclick = onclick;
	return b;
}
// Shows an error beside the view, until something is shown without one.
export function fail(e) {
	$("problem").textContent = short(e.message);
	$("problem").hidden = false;
}
// options: [value, text]
export function fill(list, options, value) {
	list.replaceChildren(...options.map(([v, text]) => {
		const option = element("option", text);
		option.value = v;
		return option;
	}));
	list.value = value;
}
export function compile(text) {
	try {
		return text ? new RegExp(text, /\p{Lu}/u.test(text) ? "" : "i") : null;
	} catch {
		return undefined;
	}
}
// The arrow keys move the focus between rows of a table.
export function moveRow(e) {
	const row = e.target.closest("tbody tr");
	const to = row && (e.key === "ArrowUp" ? row.previousElementSibling : e.key === "ArrowDown" ? row.nextElementSibling : null);
	if (!to)
		return;
	to.focus();
	e.preventDefault();
}
export const part = (e, share) => e.style.setProperty("--part", `${rounded(Math.min(100, Math.abs(share)), 1)}%`);
