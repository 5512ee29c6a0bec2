// SPDX-License-Identifier: Apache-2.0
// Follows profiles that become more, as a running agent's: moves the shown time up to now, every few seconds.
// A range that was selected in it stays selected, and what is being used holds still.
import { select, selection } from "./address.js";

const EVERY = 3000, PAUSE = 9; // ms; and as many times what an update takes, so that the server has other work too
let pressed = false, update = null; // the selection of the latest update

// The selection up to now. A narrower range than all that is shown keeps its times.
export function upTo(now, s) {
	const to = String(now), moved = (from, end) => from && end ? String(Math.max(0, Number(from) + now - Number(end))) : from;
	const span = { span_from: moved(s.span_from, s.span_to), span_to: to }, all = s.file === "all" && s.from === s.span_from && s.to === s.span_to;
	if (!all)
		return span;
	const isBefore = s.base === "all" && s.from && s.base_to === s.from; // the base is the time before: it stays that
	return { ...span, from: span.span_from, to, ...(isBefore ? { base_from: moved(s.base_from, s.to), base_to: span.span_from } : {}) };
}
// Whether an update would disturb: a dialog, a drag, marked text, the keyboard in the view, a place in the flame graph.
function inUse(s) {
	const held = document.activeElement;
	return document.hidden || pressed || document.querySelector("dialog[open]") || !getSelection().isCollapsed || s.graph ||
		(held?.closest("#view") && !["chart", "view"].includes(held.id));
}
// Whether an update would show anything new.
const shows = s => s.view === "time" || (s.file === "all" && s.from === s.span_from && s.to === s.span_to);
// Whether no update is due: none is wished, it would show nothing new, or it would disturb.
const rests = s => !s.follow || !shows(s) || inUse(s);
export const isUpdate = s => s === update;
// An update that is ready when one has begun to use what it would replace: the next comes when that is over.
export const isHeld = s => isUpdate(s) && inUse(s);

// Waits until what is selected is shown: a show that another supersedes ends at once.
async function settled(done) {
	let last;
	do {
		last = done();
		await last;
	} while (last !== done());
}
// done(): is resolved when what was selected is shown, or is superseded by another show, which is then of done().
export async function follow(done) {
	addEventListener("pointerdown", () => { pressed = true; }, true);
	for (const name of ["pointerup", "pointercancel"])
		addEventListener(name, () => { pressed = false; }, true);
	addEventListener("pointermove", e => { pressed = e.buttons !== 0; }, true); // the end of a press may be seen by none, as in a frame
	for (let took = 0; ;) {
		await new Promise(next => setTimeout(next, Math.max(EVERY, took * PAUSE)));
		if (rests(selection))
			continue;
		await settled(done);
		if (rests(selection))
			continue;
		const begin = performance.now();
		select(upTo(Date.now(), selection), false);
		update = selection;
		await settled(done);
		took = performance.now() - begin;
	}
}
export function toggleFollowing() {
	select(selection.follow ? { follow: "" } : { follow: "1", ...upTo(Date.now(), selection) });
}
