// SPDX-License-Identifier: Apache-2.0
// The view over time: sums of all profiles for each value of a label. It selects the range that the other views show.
import { data, overTime } from "./data.js";
import { button, element, fill } from "./element.js";
import { amountOf, percent, rounded, short } from "./numbers.js";
import { select, selection } from "./address.js";
import { counted } from "./files.js";
import { toggle } from "./labels.js";
import { BOTTOM, LEFT, TOP, drawChart } from "./chart.js";
import { Brush } from "./brush.js";
import { toggleFollowing } from "./follow.js";

const HEIGHT = 260, LASTS = [["5 min", 300], ["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800]];
const FIRST = ["service_name", "service", "unit", "container", "pod", "process", "thread"]; // labels to group by first
let keys = [];

export function rangeText(from, to) {
	if (!from && !to)
		return "all of the time";
	const text = ms => new Date(Number(ms)).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
	return `${from ? text(from) : "begin"} – ${to ? text(to) : "now"}`;
}
// The labels of the selected profiles, or of an earlier selection if the range has no profile.
async function findKeys(s) {
	try {
		keys = (await data("labels", { ...s, base: null, where: [], function: "" })).labels.map(l => ({ key: l.key, n: l.n }));
	} catch { /* the range has no profile; the chart shows which ranges have some */ }
	return keys;
}
function chooseBy(s, list) {
	if (s.by)
		return s.by === "-" ? "" : s.by;
	return FIRST.find(key => list.some(k => k.key === key && k.n > 1)) ?? list.find(k => k.n > 1)?.key ?? "";
}
function controls(s, by, list) {
	const box = element("div", null, "tools"), choice = element("select"), label = element("label", "by ");
	fill(choice, [["-", "nothing"], ...list.map(k => [k.key, `${short(k.key)} (${rounded(k.n, 0)})`])], by || "-");
	choice.onchange = () => select({ by: choice.value }, false);
	label.append(choice);
	const now = () => Date.now(), last = seconds => String(now() - seconds * 1000);
	const group = element("span", "the last ", "lasts");
	group.append(...LASTS.map(([text, seconds]) => button(text, () => {
		const range = { from: last(seconds), to: String(now()) };
		select({ file: "all", ...range, span_from: range.from, span_to: range.to });
	})), button("all", () => select({ file: "all", from: "", to: "", span_from: "", span_to: "" })));
	const following = button("follow", toggleFollowing);
	following.ariaPressed = !!s.follow;
	following.title = "show profiles that end from now on, without a click";
	group.append(following);
	box.append(label, group);
	return box;
}
// An update may move the times before it is drawn: a click is for those that are selected then.
function ranges(s) {
	const box = element("div", null, "tools"), all = s.file === "all", narrowed = all && (s.from !== s.span_from || s.to !== s.span_to);
	box.append(element("span", all ? `all views show ${rangeText(s.from, s.to)}` :
		"the other views show one profile: drag over a range to see all profiles of it"));
	if (narrowed)
		box.append(button("show only this range", () => select({ span_from: selection.from, span_to: selection.to, follow: "" })),
			button("select all that is shown", () => select({ from: selection.span_from, to: selection.span_to })));
	if (all && s.from && s.to && s.base === null)
		box.append(button("compare with the time before", () => select({
			base: "all", base_from: String(Math.max(0, 2 * selection.from - selection.to)), base_to: selection.from,
		})));
	return box;
}
function legend(d, by) {
	const list = element("ul", null, "legend");
	list.setAttribute("aria-label", `sums by ${short(by || "nothing")}`);
	list.append(...d.groups.map(([text, value], i) => {
		const li = element("li"), name = text === null ? `${rounded(d.others, 0)} others` : text || (by ? "(none)" : "all samples");
		const b = button("", () => toggle(`${by}=${text}`), "chip");
		b.append(element("i", null, `g${i}`), ` ${short(name)} `, element("small", `${amountOf(value, d.unit)}  ${percent(value, d.total)}`));
		b.disabled = !by || !text;
		b.ariaPressed = selection.where.includes(`${by}=${text}`);
		li.append(b);
		return li;
	}));
	return list;
}
// Describes the bar under the pointer, and the chart for screen readers.
function describe(chart, brush, d, hint) {
	const sums = Array.from({ length: d.steps }, () => []);
	d.groups.forEach(([text, , points]) => points.forEach(([step, value]) => sums[step].push([text ?? "others", value])));
	chart.addEventListener("pointermove", e => {
		const at = brush.stepAt(e), own = sums[at] ?? [], total = own.reduce((sum, [, v]) => sum + v, 0);
		hint.value = [rangeText(d.start + at * d.step, d.start + (at + 1) * d.step), amountOf(total, d.unit),
			...own.slice(0, 4).map(([text, v]) => `${short(text || "all")} ${amountOf(v, d.unit)}`)].join("  ·  ");
	});
}
function pick(from, to, isBase) {
	const range = { from: String(from), to: String(to) };
	if (isBase)
		select({ base: "all", base_from: range.from, base_to: range.to });
	else
		select({ file: "all", ...range });
}
function makeChart(d, s, width, hint) {
	const chart = drawChart(d, width, HEIGHT), brush = new Brush(chart, d, width, HEIGHT, pick);
	chart.id = "chart";
	chart.tabIndex = 0;
	chart.setAttribute("role", "application");
	chart.setAttribute("aria-label", `${short(d.type)} over time, ${d.steps} steps of ${rounded(d.step / 1000, 0)} s: drag selects a range, ` +
		"arrows move it, up and down make it longer and shorter, with shift it is the range to compare with");
	if (s.file === "all" && (s.from !== s.span_from || s.to !== s.span_to)) {
		brush.range = [Number(s.from), Number(s.to) || d.start + d.steps * d.step];
		brush.show(false, ...brush.range);
	}
	if (s.base === "all")
		brush.show(true, Number(s.base_from), Number(s.base_to) || Infinity);
	describe(chart, brush, d, hint);
	return chart;
}
export async function showTime(root, s) {
	const list = await findKeys(s), by = chooseBy(s, list), d = await overTime(s, by), hint = element("output", "", "hint");
	const width = Math.max(200, document.getElementById("view").clientWidth - LEFT - 44), held = document.activeElement?.id === "chart";
	const notes = [`${rounded(d.windows, 0)} profile${d.windows === 1 ? "" : "s"}`, ...(d.step ? [`a bar is ${rounded(d.step / 1000, 0)} s`] : []),
		...counted(d)];
	const box = element("div", null, "time");
	box.style.setProperty("--chart", `${HEIGHT + TOP + BOTTOM}px`);
	box.append(controls(s, by, list), ranges(s));
	if (d.windows)
		box.append(makeChart(d, s, width, hint), hint, element("p", notes.join("  ·  "), "notes"), legend(d, by));
	else
		box.append(element("p", "No profile with such samples begins in this time.", "empty"));
	root.replaceChildren(box);
	if (held)
		requestAnimationFrame(() => document.getElementById("chart")?.focus());
}
