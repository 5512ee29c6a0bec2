// SPDX-License-Identifier: Apache-2.0
// The flame graph page: its data and state, numbers as text, and colours. Texts of the profile are foreign: they
// reach the page by textContent alone.
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent), diff = data.diff;
const functions = data.functions.map(f => ({
	name: f[0], file: data.strings[f[1]], start: f[2], library: data.strings[f[3]], kind: f[4],
	self: f[5], total: f[6], baseSelf: f[7] || 0, baseTotal: f[8] || 0, weight: f[9] || 0, baseWeight: f[10] || 0,
}));
// In the order of enum render_code; colours that colour-blind readers can tell apart.
const KINDS = [
	{ name: "program", color: [240, 167, 60] },
	{ name: "libraries", color: [112, 182, 230] },
	{ name: "kernel", color: [213, 138, 184] },
	{ name: "run-time code", color: [72, 180, 142] },
	{ name: "language", color: [232, 214, 78] },
	{ name: "no code", color: [170, 172, 176] },
];
const LANGUAGE = 4;
// Functions of a kind from here on are values of data.labels: "process: bb".
const LABELS = KINDS.length;
const isLabel = fn => fn >= 0 && functions[fn].kind >= LABELS;
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const ROW = 19, MORE = 500, LESS_COLOR = [66, 138, 222], MORE_COLOR = [226, 98, 58];
const canvas = $("canvas"), scroller = $("scroller");
let paper = canvas.getContext("2d"); // flamegraph_svg.js puts another in its place
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const calls = new CallTree(data);

const state = {
	tree: calls, zoom: 0, selected: 0, hovered: -1, lit: -1, chosen: -1, // chosen: by the page around
	off: new Set(), inverted: false, amounts: false,
	by: new Set(data.grouped ? data.labels.keys() : []), // labels that are shown as frames
	only: data.labels.map(() => -1), // by label: the function whose stacks are shown
	pattern: null, matches: new Uint8Array(functions.length),
	order: 0, down: true, rows: MORE, // the table's column and direction
	boxes: [], width: 0, printing: false, scroll: false,
};
const isDark = () => prefersDark.matches && !state.printing;

// ---- numbers and names ----

const amount = v => amountOf(v, data.unit);
// "app.py:42" of a function that no library holds.
const placeOf = f => f.library || !f.file ? "" : fileName(f.file) + (f.start ? ":" + f.start : "");
const nameOf = i => i > 0 ? functions[state.tree.fn[i]].name : "all";
const kindOf = i => functions[state.tree.fn[i]].kind;

// What a width is made of: in a comparison both sides together, so that what went away has a place too.
function weigh(i) {
	const t = state.tree;
	if (!diff)
		return t.value[i];
	return state.amounts ? t.value[i] + t.base[i] : share(t.value[i], data.total) + share(t.base[i], data.base);
}
// How the value compares with the base: -1 gone .. 1 new.
function change(v, b) {
	if (!state.amounts) {
		v = share(v, data.total);
		b = share(b, data.base);
	}
	return v + b ? (v - b) / (v + b) : 0;
}

// ---- what is chance ----

// As core/report/change.c: two shares, each of so many events, and the share of both.
function weightOf(own, value, other, mean) {
	return value && own ? own : Math.max(mean, other);
}
function sharesOf(f, v, b) {
	const [mean, baseMean] = data.weights;
	if (!diff || !mean || !baseMean)
		return null;
	const pa = v / data.total, pb = b / data.base, na = data.total / mean, nb = data.base / baseMean;
	const p = (pa * na + pb * nb) / (na + nb);
	if (!(p > 0 && p < 1))
		return null;
	return { pa, pb, p,
		ea: data.total / ((1 - p) * weightOf(f.weight, v, f.baseWeight, mean) + p * mean),
		eb: data.base / ((1 - p) * weightOf(f.baseWeight, b, f.weight, baseMean) + p * baseMean) };
}
// Their difference in standard deviations.
function zOf(f, v, b) {
	const s = sharesOf(f, v, b);
	const d = s && Math.abs(s.pa - s.pb) - (1 / s.ea + 1 / s.eb) / 2;
	return d > 0 ? Math.sign(s.pa - s.pb) * d / Math.sqrt(s.p * (1 - s.p) * (1 / s.ea + 1 / s.eb)) : 0;
}
// The same by the likelihood of both, which is right for few events, too.
function likelihoodZ({ pa, pb, p, ea, eb }) {
	const sign = pa > pb ? 1 : -1, a = pa - sign / (2 * ea), b = pb + sign / (2 * eb);
	const part = (n, x) => 2 * n * ((x > 0 ? x * Math.log(x / p) : 0) + (x < 1 ? (1 - x) * Math.log((1 - x) / (1 - p)) : 0));
	const within = x => Math.min(Math.max(x, 0), 1);
	return sign * (a - b) > 0 ? Math.sqrt(Math.max(part(ea, within(a)) + part(eb, within(b)), 0)) : 0;
}
function isNoise(f, v, b) {
	const s = sharesOf(f, v, b);
	return diff && (!s || Math.abs(zOf(f, v, b)) < data.limit || likelihoodZ(s) < data.limit);
}
const isNoisy = i => i > 0 && isNoise(functions[state.tree.fn[i]], state.tree.value[i], state.tree.base[i]);
const presence = (v, b) => !diff || !v === !b ? "" : b ? "vanished" : "new";

// ---- colours ----

const rgb = c => `rgb(${c.map(Math.round).join(",")})`;
const mix = (a, b, part) => a.map((x, i) => x + (b[i] - x) * part);
const shades = new Map();
function hash(text) {
	let h = 0;
	for (let i = 0; i < text.length && i < 80; i++)
		h = h * 31 + text.charCodeAt(i) | 0;
	return h >>> 3;
}
// Libraries by their own time, so that the important ones differ.
const LIBRARIES = 1, BLUES = [[112, 182, 230], [142, 160, 236], [160, 208, 238], [84, 152, 214]];
const libraries = (() => {
	const self = new Map();
	for (const f of functions)
		if (f.kind === LIBRARIES)
			self.set(f.library, (self.get(f.library) || 0) + f.self + f.baseSelf);
	return [...self.keys()].sort((a, b) => self.get(b) - self.get(a));
})();
function shadeOf(fn) {
	const key = fn * 2 + isDark();
	if (!shades.has(key)) {
		const { name, kind, library } = functions[fn];
		const tint = kind === LIBRARIES ? BLUES[libraries.indexOf(library) % BLUES.length] : KINDS[kind].color;
		const color = mix(tint, [255, 255, 255], (hash(name) % 9) / 50);
		shades.set(key, rgb(isDark() ? mix(color, [20, 22, 26], 0.2) : color));
	}
	return shades.get(key);
}
function diffColor(c) {
	const same = isDark() ? [128, 131, 136] : [208, 208, 206];
	return rgb(mix(same, c > 0 ? MORE_COLOR : LESS_COLOR, Math.min(1, Math.abs(c)) ** 0.7));
}
function colorOf(i) {
	if (i === 0)
		return isDark() ? "#3b3e44" : "#e0e0dc";
	if (diff)
		return diffColor(change(state.tree.value[i], state.tree.base[i]) * (isNoisy(i) ? 0.12 : 1));
	if (isLabel(state.tree.fn[i]))
		return isDark() ? "#4a4e56" : "#d0d3d8";
	return shadeOf(state.tree.fn[i]);
}
