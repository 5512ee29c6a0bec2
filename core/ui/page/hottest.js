// SPDX-License-Identifier: Apache-2.0
// The functions in which most of the time is, for views of one function while none is selected.
import { data } from "./data.js";
import { button, element } from "./element.js";
import { short } from "./numbers.js";
import { select } from "./address.js";
import { BASE_SELF, NAME, SELF } from "./table.js";

const FIRST = 5; // functions that are shown
const own = f => Math.max(Math.abs(f[SELF]), Math.abs(f[BASE_SELF] ?? 0));

// The answers of the view `name` for the function that is selected, or else for the hottest that suit(row).
export async function functionsOf(name, selection, suit) {
	if (selection.function)
		return [await data(name, selection)];
	const { functions } = await data("table", selection), out = [];
	for (const f of functions.filter(row => own(row) && suit(row)).sort((a, b) => own(b) - own(a)).slice(0, FIRST))
		out.push(await data(name, { ...selection, function: f[NAME] }));
	return out;
}
// The function's name; a click selects it where it is one of several.
export function heading(name, selection) {
	const h = element("h2");
	h.append(selection.function ? short(name) : button(name, () => select({ function: name }), "link"));
	return h;
}
export const glance = (selection, what) => selection.function ? [] : [element("p", `The functions with the most time of their own, near ${what} with samples. ` +
	"A click on a name shows all of that function.", "glance")];
