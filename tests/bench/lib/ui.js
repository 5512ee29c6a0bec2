// SPDX-License-Identifier: Apache-2.0
// Of tests/bench/ui: one profile, in each page. usage: FUSEE=.. node ui.js PROFILE STACKS
"use strict";
const { chromium } = require("playwright-core");
const { spawn } = require("child_process");
const fs = require("fs");
const http = require("http");
const path = require("path");
const [profile, stacks] = process.argv.slice(2);
const PORT = 21000 + process.pid % 20000, PATIENCE = 120000;
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const pause = ms => new Promise(done => setTimeout(done, ms));

// A file server for speedscope, which has none.
function files() {
	const root = path.dirname(require.resolve("speedscope/package.json")) + "/dist/release/";
	const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
	const server = http.createServer((q, a) => {
		const name = decodeURIComponent(new URL(q.url, "http://x").pathname).slice(1), file = name === "profile" ? profile : root + path.basename(name);
		fs.readFile(file, (e, bytes) => { a.writeHead(e ? 404 : 200, { "content-type": types[path.extname(file)] ?? "application/octet-stream" }); a.end(bytes); });
	});
	return new Promise(done => server.listen(PORT + 1, "127.0.0.1", () => done(server)));
}
const answers = port => new Promise(done => http.get({ port, host: "127.0.0.1", path: "/ui/" }, a => { a.resume(); done(true); }).on("error", () => done(false)));
const PAGES = [{
	name: "fusee ui",
	async start() {
		const child = spawn(process.env.FUSEE, ["ui", "--no-browser", profile], { stdio: ["ignore", "pipe", "ignore"] });
		return { child, address: await new Promise(done => child.stdout.on("data", text => done(String(text).trim()))) };
	},
	frame: page => page.frames().find(f => f.url().includes("graph.html")),
	isDrawn: () => Number(document.documentElement.dataset.painted) > 0,
	search: () => { const s = document.getElementById("search"); s.value = "b"; s.dispatchEvent(new Event("input", { bubbles: true })); },
	canvas: "#canvas", at: [0.3, 47],
}, {
	name: "go tool pprof -http",
	async start() {
		const child = spawn("go", ["tool", "pprof", "-symbolize=none", "-no_browser", `-http=127.0.0.1:${PORT}`, profile], { stdio: "ignore", detached: true });
		for (const end = Date.now() + PATIENCE; !await answers(PORT) && Date.now() < end;)
			await pause(20);
		return { child, group: true, address: `http://127.0.0.1:${PORT}/ui/flamegraph` };
	},
	frame: page => page.mainFrame(),
	isDrawn: () => document.querySelectorAll("#stack-chart .boxbg").length > 0,
	search: () => { const s = document.getElementById("search"); s.value = "b"; s.dispatchEvent(new Event("input", { bubbles: true })); },
	canvas: "#stack-chart", at: [0.3, 60],
}, {
	name: "speedscope",
	async start() {
		const server = await files();
		return { server, address: `http://127.0.0.1:${PORT + 1}/index.html#profileURL=${encodeURIComponent(`http://127.0.0.1:${PORT + 1}/profile`)}` };
	},
	frame: page => page.mainFrame(),
	isDrawn: () => !!document.querySelector("canvas") && /Left Heavy/.test(document.body.innerText) && !document.querySelector("progress"),
	canvas: "canvas", at: [0.3, 120],
}];
// Until a frame is on the screen that shows what the event has changed.
const measureEvent = () => {
	window.measured = 0;
	for (const type of ["click", "dblclick", "input"])
		addEventListener(type, () => {
			const t = performance.now();
			requestAnimationFrame(() => setTimeout(() => { window.measured = performance.now() - t; }, 0));
		}, { capture: true, once: true });
};
async function event(frame, act) {
	await frame.evaluate(measureEvent);
	await act();
	for (const end = Date.now() + PATIENCE; Date.now() < end; await pause(10)) {
		const ms = await frame.evaluate(() => window.measured);
		if (ms)
			return `${ms.toFixed(0)} ms`;
	}
	return "never";
}
function server(child) {
	let cpu = 0, memory = 0;
	for (const pid of fs.readdirSync("/proc").filter(n => /^\d+$/.test(n)))
		try {
			const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
			if (Number(pid) !== child.pid && stat[1] !== String(child.pid))
				continue;
			cpu += (Number(stat[11]) + Number(stat[12])) / 100;
			memory = Math.max(memory, Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0));
		} catch { /* it has ended */ }
	return `server ${cpu.toFixed(1)} s of CPU, ${(memory / 1024).toFixed(0)} MiB`;
}
async function one(browser, p) {
	const begin = Date.now(), s = await p.start(), page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
	page.setDefaultTimeout(PATIENCE);
	try {
		await page.goto(s.address, { waitUntil: "commit" });
		let frame, drawn = false;
		for (const end = begin + PATIENCE; !drawn && Date.now() < end; await pause(10))
			try {
				frame = p.frame(page);
				drawn = frame && await frame.evaluate(p.isDrawn);
			} catch { /* the page is loaded */ }
		const first = ((Date.now() - begin) / 1000).toFixed(1), out = [drawn ? `first picture ${first} s` : "no picture"];
		if (drawn && p.search) {
			const box = await (await frame.$(p.canvas)).boundingBox();
			out.push(`zoom ${await event(frame, () => page.mouse.click(box.x + box.width * p.at[0], box.y + p.at[1]))}`);
			out.push(`search ${await event(frame, () => frame.evaluate(p.search))}`);
		}
		if (s.child)
			out.push(server(s.child));
		console.log(`${Number(stacks).toLocaleString("en")} stacks, ${p.name}: ${out.join(", ")}`);
	} finally {
		await page.close();
		if (s.child)
			process.kill(s.group ? -s.child.pid : s.child.pid, "SIGKILL");
		s.server?.close();
		s.server?.closeAllConnections();
	}
}
async function main() {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ARGS });
	for (const p of PAGES)
		await one(browser, p).catch(e => console.log(`${stacks} stacks, ${p.name}: ${String(e.message).split("\n")[0]}`));
	await browser.close();
}
main();
