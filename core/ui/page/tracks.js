// SPDX-License-Identifier: Apache-2.0
// What each thread did when, of a profile whose samples have times: a row for each, dark where it ran all the time.
import { threads } from "./data.js";
import { $, button, element, fail, svg } from "./element.js";
import { amountOf, rounded, short } from "./numbers.js";
import { select } from "./address.js";
import { toggle } from "./labels.js";
import { BOTTOM, TOP } from "./chart.js";
import { Brush } from "./brush.js";

const ROW = 22, LEFT = 8, NANOSECONDS_PER_MS = 1e6, MORE = 64; // threads of an answer
// What is searched, and how many threads are shown, of the profile that is selected.
const state = { file: null, text: "", shown: MORE };

const clock = ms => new Date(Number(ms)).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
export const momentText = (from, to) => `${from ? clock(from) : "begin"} – ${to ? clock(to) : "end"}`;

// How much of a step the darkest is: of CPU time all of it, as one thread cannot have more.
function fullOf(d) {
	if (d.unit === "nanoseconds")
		return d.step * NANOSECONDS_PER_MS;
	return Math.max(1, ...d.tracks.flatMap(([, , , , , points]) => points.map(([, v]) => v)));
}
const nameOf = ([process, thread, pid, tid]) => `${short(thread || process || "(no name)")}${tid ? ` ${tid}` : ""}${process && process !== thread ? `, ${short(process)}` : ""}` +
	`${!tid && pid ? ` ${pid}` : ""}`;
// Paths of four strengths for each row: as many elements as rows, not as steps.
function rowOf(points, at, d, width, full) {
	const w = width / d.steps, paths = ["", "", "", ""], y = TOP + at * ROW + 2;
	for (const [step, value] of points)
		if (value > 0)
			paths[Math.min(3, Math.floor(value / full * 4))] += `M${(LEFT + step * w).toFixed(1)} ${y}h${Math.max(1, w).toFixed(1)}v${ROW - 4}h${(-Math.max(1, w)).toFixed(1)}z`;
	return paths.map((path, i) => svg("path", { d: path, class: `ran ran${i}` }));
}
function axis(d, width, height) {
	const marks = Math.max(1, Math.floor(width / 130)), seconds = d.steps * d.step / 1000, out = [];
	for (let i = 0; i <= marks; i++) {
		const x = LEFT + width * i / marks, text = svg("text", { x, y: TOP + height + 16, class: i ? "time amount" : "time" });
		text.textContent = `${rounded(seconds * i / marks, 2)} s`;
		out.push(svg("line", { x1: x, x2: x, y1: TOP, y2: TOP + height + 4, class: "axis" }), text);
	}
	return out;
}
function draw(d, width) {
	const height = d.tracks.length * ROW, root = svg("svg", { width: width + LEFT, height: height + TOP + BOTTOM, class: "chart tracks" }), full = fullOf(d);
	root.append(...axis(d, width, height), ...d.tracks.flatMap((t, i) => rowOf(t[5], i, d, width, full)));
	return root;
}
// The names are buttons beside the picture: a click keeps the samples of that thread.
function namesOf(d, s) {
	const list = element("ul", null, "threads");
	list.setAttribute("aria-label", "threads");
	list.append(...d.tracks.map(track => {
		const [, thread, , tid, total] = track, condition = tid ? `tid=${tid}` : `thread=${thread}`, li = element("li");
		const b = button(nameOf(track), () => toggle(condition), "link");
		b.ariaPressed = s.where.includes(condition);
		b.title = `${nameOf(track)}: ${amountOf(total, d.unit)}`;
		b.disabled = !tid && !thread;
		li.append(b);
		return li;
	}));
	return list;
}
function describe(chart, brush, d, hint) {
	const values = d.tracks.map(t => new Map(t[5]));
	chart.addEventListener("pointermove", e => {
		const row = Math.floor((e.clientY - chart.getBoundingClientRect().top - TOP) / ROW), at = brush.stepAt(e), value = values[row]?.get(at) ?? 0;
		hint.value = !d.tracks[row] ? "" : [nameOf(d.tracks[row]), `${rounded(at * d.step / 1000, 3)} s`, amountOf(value, d.unit)].join("  ·  ");
	});
}
function makeChart(d, s, width, hint) {
	const chart = draw(d, width), height = d.tracks.length * ROW;
	const brush = new Brush(chart, d, width, height, (from, to, isBase) => select(isBase ?
		{ base: s.file, base_from: String(from), base_to: String(to) } : { from: String(from), to: String(to) }), LEFT);
	chart.id = "chart";
	chart.tabIndex = 0;
	chart.setAttribute("role", "application");
	chart.setAttribute("aria-label", `${d.tracks.length} threads over ${rounded(d.steps * d.step / 1000, 2)} s: drag selects a range, arrows move it, ` +
		"up and down make it longer and shorter, with shift it is the range to compare with");
	if (s.from || s.to) {
		brush.range = [Number(s.from), Number(s.to) || d.start + d.steps * d.step];
		brush.show(false, ...brush.range);
	}
	if (s.base === s.file && (s.base_from || s.base_to))
		brush.show(true, Number(s.base_from), Number(s.base_to) || Infinity);
	describe(chart, brush, d, hint);
	return chart;
}
function nothing(s) {
	return s.file === "all" || s.file.includes(",") ? "Choose one profile: of several that are added up there are no threads over time." :
		"This profile has no times: fusee record --timeline keeps them.";
}
// The threads that are shown, of as many answers as they need.
async function listed(s) {
	const d = { ...await threads(s, state.text, 0) };
	for (let skip = MORE; skip < state.shown && d.others; skip += MORE) {
		const next = await threads(s, state.text, skip);
		d.tracks = [...d.tracks, ...next.tracks];
		d.others = next.others;
	}
	return d;
}
// Searches when one has typed for a moment.
function search(again) {
	const input = element("input");
	let timer = 0;
	input.type = "search";
	input.id = "search";
	input.placeholder = "search threads";
	input.setAttribute("aria-label", "search threads by name or number");
	input.spellcheck = false;
	input.value = state.text;
	input.oninput = () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			Object.assign(state, { text: input.value, shown: MORE });
			again();
		}, 150);
	};
	return input;
}
// The picture of the threads of an answer, and what can be said of them.
function lanes(d, s, again) {
	const hint = element("output", "", "hint"), both = element("div", null, "lanes");
	const room = document.getElementById("view").clientWidth, names = Math.min(190, room * 0.3), width = Math.max(160, room - names - LEFT - 44);
	both.style.setProperty("--names", `${names}px`);
	const notes = [`a column is ${rounded(d.step, 0)} ms`, ...(d.unit === "nanoseconds" ? ["the darkest ran all of it"] : []),
		...(d.untimed ? [`${amountOf(d.untimed, d.unit)} without a time`] : []), ...(d.others ? [`${rounded(d.others, 0)} other threads`] : [])];
	const more = button(`show ${rounded(Math.min(MORE, d.others), 0)} more`, () => {
		state.shown += MORE;
		again();
	});
	more.hidden = !d.others;
	if (!d.tracks.length)
		return [element("p", state.text ? "No thread has this in its name or number." : "No thread has a selected sample.", "empty")];
	both.append(namesOf(d, s), makeChart(d, s, width, hint));
	return [both, more, hint, element("p", notes.join("  ·  "), "notes")];
}
export async function showTracks(root, s) {
	const single = s.file !== "all" && !s.file.includes(","), box = element("div", null, "time"), content = element("div"), tools = element("div", null, "tools");
	if (state.file !== s.file)
		Object.assign(state, { file: s.file, text: "", shown: MORE });
	const first = single ? await listed(s) : null;
	if (!first?.steps) {
		box.append(element("p", nothing(s), "empty"));
		root.replaceChildren(box);
		return;
	}
	let asks = 0;
	async function again() {
		const own = ++asks;
		try {
			const d = await listed(s);
			if (own !== asks || !content.isConnected)
				return;
			content.replaceChildren(...lanes(d, s, again));
			$("problem").hidden = true;
		} catch (e) {
			if (own === asks && content.isConnected)
				fail(e);
		}
	}
	const held = document.activeElement?.id === "chart";
	tools.append(search(again), element("span", s.from || s.to ? `all views show ${momentText(s.from, s.to)}` : "drag over a range, and all views show it"));
	content.replaceChildren(...lanes(first, s, again));
	box.append(tools, content);
	root.replaceChildren(box);
	if (held)
		requestAnimationFrame(() => document.getElementById("chart")?.focus());
}
