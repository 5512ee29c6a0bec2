// SPDX-License-Identifier: Apache-2.0
// The functions in which most of the time is, for views of one function while none is selected.
import { data } from "./data.js";
import { button, element } from "./element.js";
import { short } from "./numbers.js";
import { select } from "./address.js";
import { BASE_SELF, NAME, SELF } from "./table.js";

const FIRST = 5; // functions that are shown
const own = f => Math.max(Math.abs(f[SELF]), Math.abs(f[BASE_SELF] ?? 0));

const answerOf = async (name, selection) => ({ ...await data(name, selection), shown: selection.function });

// The answers of the view `name` for the function that is selected, or else for the hottest that suit(row). shown: the
// name that selects the function, with its library where another has the same name.
export async function functionsOf(name, selection, suit) {
	if (selection.function)
		return [await answerOf(name, selection)];
	const { functions } = await data("table", selection), out = [];
	for (const f of functions.filter(row => own(row) && suit(row)).sort((a, b) => own(b) - own(a)).slice(0, FIRST))
		try {
			out.push(await answerOf(name, { ...selection, function: f[NAME] }));
		} catch (e) {
			out.push({ functions: [], shown: f[NAME], problem: e });
		}
	if (out.length && out.every(d => d.problem))
		throw out[0].problem;
	return out;
}
// The function's name; a click selects it where it is one of several.
export function heading({ shown }, selection) {
	const h = element("h2");
	h.append(selection.function ? short(shown) : button(short(shown), () => select({ function: shown }), "link"));
	return h;
}
// Why some of the hottest functions are not there.
export const missing = answers => answers.filter(d => d.problem).map(d => element("p", `${short(d.shown)}: ${short(d.problem.message)}`));
export const glance = (selection, what) => selection.function ? [] : [element("p", `The functions with the most time of their own, near ${what} with samples. ` +
	"A click on a name shows all of that function.", "glance")];
