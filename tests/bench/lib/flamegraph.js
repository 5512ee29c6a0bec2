// SPDX-License-Identifier: Apache-2.0
// Measures DIR/page.html beside a page of plain boxes that it makes of the same tree.
// As many plain boxes as there are stacks, the widest frames; with FUSEE_TEST_LONG all frames (minutes).
// usage: node flamegraph.js DIR STACKS ROUNDS
"use strict";
const fs = require("fs");
const { chromium } = require("playwright-core");
const [dir, stacks, rounds] = process.argv.slice(2);
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	"--disable-background-networking", "--disable-component-update", "--disable-sync"];
const VIEW = { viewport: { width: 1600, height: 900 } };

// One element a frame, placed by share; a zoom places all of them anew, as pages of this kind do.
function plainPage(frames) {
	const box = f => `<div style="left:${(f.x * 100).toFixed(4)}%;top:${f.row * 19}px;width:${(f.w * 100).toFixed(4)}%"` +
		` title="${f.name.replace(/</g, "&lt;")}">${f.name.replace(/</g, "&lt;")}</div>`;
	return `<!DOCTYPE html><meta charset="utf-8"><style>div{position:absolute;height:18px;overflow:hidden;` +
		`white-space:nowrap;background:#f0a73c;font:12px sans-serif}</style>` + frames.map(box).join("\n") +
		`<script>const all=[...document.querySelectorAll("div")].map(e=>({e,x:parseFloat(e.style.left),w:parseFloat(e.style.width)}));
		function zoom(i){const z=all[i];for(const b of all){b.e.style.left=(b.x-z.x)/z.w*100+"%";b.e.style.width=b.w/z.w*100+"%";}}</script>`;
}
const frames = page => page.evaluate(() => {
	const { state, functions } = window.fusee, t = state.tree, x = new Float64Array(t.fn.length), out = [];
	for (let i = 0; i < t.fn.length; i++) {
		let at = x[i];
		for (const k of t.kids(i)) {
			x[k] = at;
			at += t.value[k] / t.value[0];
		}
		out.push({ x: x[i], w: t.value[i] / t.value[0], row: t.depth[i], name: i ? functions[t.fn[i]].name : "all" });
	}
	return out;
});
// Milliseconds from the navigation, or from the zoom's begin, to when it is painted.
const paints = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))));
const zoomPage = () => {
	const { state, goTo } = window.fusee, kids = state.tree.kids(1), from = performance.now();
	goTo(kids[kids.length >> 1]);
	return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from))));
};
const zoomPlain = () => {
	const from = performance.now();
	window.zoom(Math.min(2, document.querySelectorAll("div").length - 1));
	return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from))));
};

async function measure(file, zoom) {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ARGS });
	const page = await browser.newPage(VIEW);
	page.setDefaultTimeout(300000);
	await page.goto("file://" + file);
	const paint = await page.evaluate(paints), zoomed = await page.evaluate(zoom);
	await browser.close();
	return { paint, zoom: zoomed };
}

const number = (n, digits = 0) => n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
function spread(all, what) {
	const v = all.map(r => r[what]).sort((a, b) => a - b);
	return `${number(v[v.length >> 1])} (${number(v[0])} to ${number(v[v.length - 1])})`;
}

async function main() {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ARGS });
	const page = await browser.newPage(VIEW);
	await page.goto(`file://${dir}/page.html`);
	const all = await frames(page);
	await browser.close();
	const few = process.env.FUSEE_TEST_LONG ? all.length : Math.min(Number(stacks), all.length);
	all[0].w = 2; // the root first: a widest one is zoomed
	const widest = all.slice().sort((a, b) => b.w - a.w).slice(0, few);
	all[0].w = 1;
	fs.writeFileSync(`${dir}/plain.html`, plainPage(widest));
	console.log(`${number(all.length)} frames of ${number(Number(stacks))} distinct stacks; beside it the ${number(few)} widest as plain boxes`);
	console.log(`median of ${rounds} browsers each, in turn (smallest to largest)`);
	const ours = [], plain = [];
	for (let i = 0; i < Number(rounds); i++) {
		ours.push(await measure(`${dir}/page.html`, zoomPage));
		plain.push(await measure(`${dir}/plain.html`, zoomPlain));
	}
	const line = (...cells) => console.log(cells.map((c, i) => i ? c.padStart(32) : c.padEnd(14)).join(""));
	const size = name => number(fs.statSync(`${dir}/${name}.html`).size / 1e6, 2);
	line("", "fusee's page", "plain boxes");
	line("MB", size("page"), size("plain"));
	line("first paint ms", spread(ours, "paint"), spread(plain, "paint"));
	line("zoom ms", spread(ours, "zoom"), spread(plain, "zoom"));
}
main().catch(e => {
	console.error(String(e));
	process.exit(1);
});
