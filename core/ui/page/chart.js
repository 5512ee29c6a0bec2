// SPDX-License-Identifier: Apache-2.0
// Sums over time as stacked bars: a path for each group.
import { svg } from "./element.js";
import { amountOf } from "./numbers.js";

const EVERY = [1, 2, 5, 10, 15, 20, 30, 60]; // bars between two labels of the time axis
export const LEFT = 76, BOTTOM = 22, TOP = 8;

// The height of the highest bar.
function highest(d) {
	const sums = new Float64Array(Math.max(1, d.steps));
	for (const [, , points] of d.groups)
		for (const [step, value] of points)
			sums[step] += Math.max(0, value);
	return Math.max(1, ...sums);
}
// Negative sums, as profiles that are differences have, get no bar.
function bars(d, width, height) {
	const top = highest(d), at = new Float64Array(Math.max(1, d.steps)), w = width / Math.max(1, d.steps), gap = w > 5 ? 1 : 0;
	return d.groups.map(([, , points], i) => {
		let path = "";
		for (const [step, value] of points) {
			if (value <= 0)
				continue;
			const y = TOP + height * (1 - (at[step] + value) / top);
			path += `M${(LEFT + step * w).toFixed(1)} ${y.toFixed(1)}h${Math.max(0.5, w - gap).toFixed(1)}v${(height * value / top).toFixed(1)}` +
				`h${(-Math.max(0.5, w - gap)).toFixed(1)}z`;
			at[step] += value;
		}
		return svg("path", { d: path, class: `group g${i}` });
	});
}
const clock = (ms, day) => new Date(ms).toLocaleString("en-GB", day ? { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" } : { timeStyle: "medium" });
function axis(d, width, height) {
	const length = d.steps * d.step, day = length > 40 * 3600e3, every = EVERY.find(k => k * Math.floor(width / 130) >= d.steps) ?? d.steps;
	const out = [svg("line", { x1: LEFT, x2: LEFT + width, y1: TOP + height, y2: TOP + height, class: "axis" })];
	for (let i = 0; i < d.steps; i += every) {
		const x = LEFT + width * i / d.steps, text = svg("text", { x, y: TOP + height + 16, class: "time" });
		text.textContent = clock(d.start + i * d.step, day);
		out.push(svg("line", { x1: x, x2: x, y1: TOP + height, y2: TOP + height + 4, class: "axis" }), text);
	}
	return out;
}
function amounts(d, height) {
	const top = highest(d);
	return [1, 0.5].map(part => {
		const text = svg("text", { x: LEFT - 6, y: TOP + height * (1 - part) + 10, class: "amount" });
		text.textContent = amountOf(top * part, d.unit);
		return text;
	});
}
export function drawChart(d, width, height) {
	const root = svg("svg", { width: width + LEFT, height: height + TOP + BOTTOM, class: "chart" });
	root.append(...axis(d, width, height), ...amounts(d, height), ...bars(d, width, height));
	return root;
}
