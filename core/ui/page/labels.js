// SPDX-License-Identifier: Apache-2.0
// The labels of the selected samples. A click on a value selects the samples with it, with shift those without it.
import { data } from "./data.js";
import { button, element } from "./element.js";
import { percent, rounded, short } from "./numbers.js";
import { select, selection } from "./address.js";

const keyOf = condition => condition.slice(0, condition.search(/!?=|!~/));
// Adds a condition, or removes it. A new value of a label replaces the value that was selected before.
export function toggle(condition, without) {
	const { where } = selection;
	const rest = where.filter(w => w !== condition && (without || keyOf(w) !== keyOf(condition)));
	select({ where: where.includes(condition) ? where.filter(w => w !== condition) : [...rest, condition] });
}
function chip(key, [text, value, before], total, diff) {
	const li = element("li"), condition = `${key}=${text}`, none = text === "(none)";
	const b = button(short(text) + " ", e => toggle(e.shiftKey ? `${key}!=${text}` : condition, e.shiftKey), "chip");
	b.title = `${short(text)}: click for these samples, shift and click for all others`;
	b.disabled = none;
	b.ariaPressed = selection.where.includes(condition);
	b.append(element("small", diff ? `${percent(before, diff)} → ${percent(value, total)}` : percent(value, total)));
	li.append(b);
	return li;
}
function group({ key, n, values }, total, diff) {
	const list = element("ul"), head = element("h2", short(key));
	list.setAttribute("aria-label", short(key));
	list.append(...values.map(v => chip(key, v, total, diff)));
	if (n > values.length)
		list.append(element("li", `${rounded(n - values.length, 0)} more`));
	return [head, list];
}
export async function showLabels(root, current) {
	const { labels, total, base } = await data("labels", current);
	if (current !== selection)
		return;
	root.replaceChildren(...labels.flatMap(l => group(l, total, base)));
	root.hidden = !labels.length;
}
