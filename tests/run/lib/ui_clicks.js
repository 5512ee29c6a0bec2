// SPDX-License-Identifier: Apache-2.0
// How many clicks lead from `record --open -- make` to the line that takes the time, and in pprof's page from the same profile.
// usage: FUSEE=.. GO=.. node ui_clicks.js DIR [SCREENSHOTS]      DIR: a Makefile that runs a program; its hottest line is marked "hot line"
"use strict";
const { spawn } = require("child_process");
const fs = require("fs");
const net = require("net");
const [dir, shots] = process.argv.slice(2);
const { ok, Page, run, SLOW } = require("./browser.js");
const { serving, View } = require("./ui_view.js");
const { serve, end } = serving(dir);
let pprof = null;

// Whether text is within the window, where a person sees it; an amount of time is in its row.
function isSeen(text) {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const line = walker.currentNode.parentElement, r = line.getBoundingClientRect();
		if (walker.currentNode.data.includes(text) && r.width && r.top >= 0 && r.bottom <= innerHeight)
			return (line.closest("tr") ?? line).textContent.match(/\d ?(ms|s)(?![a-z])/) !== null;
	}
	return false;
}
async function seen(v, seconds = 20) {
	for (const last = Date.now() + seconds * 1000 * SLOW; Date.now() < last; await new Promise(done => setTimeout(done, 100)))
		if (await v.page.evaluate(isSeen, "hot line"))
			return true;
	return false;
}
async function ours() {
	await serve(["record", "-q", "--open", "-o", "made.pb.gz", "--", "make"], { PATH: `${dir}:${process.env.PATH}`, DISPLAY: ":77" });
	for (let i = 0; i < 400 * SLOW && !(fs.existsSync(`${dir}/opened`) && fs.statSync(`${dir}/opened`).size); i++)
		await new Promise(done => setTimeout(done, 50));
	const ways = {}, ticket = fs.readFileSync(`${dir}/opened`, "utf8").trim(), first = await View.open(ticket), address = first.page.url();
	async function way(name, steps) {
		const v = await View.open(address);
		let clicks = 0;
		for (const step of steps) {
			await step(v);
			clicks++;
			await v.shown();
		}
		ways[name] = await seen(v) ? clicks : null;
		if (shots)
			await v.page.screenshot({ path: `${shots}/clicks-${name}.png` });
		await v.close();
	}
	const tab = name => v => v.page.click(`#tab-${name}`);
	await way("source", [tab("source")]);
	await way("table", [tab("table"), v => v.select(() => v.page.click("#view tr[title='hot']")), tab("source")]);
	await way("graph", [v => v.box("hot").then(b => v.select(() => v.page.mouse.dblclick(b.x, b.y))), tab("source")]);
	await first.close();
	return ways;
}
// Its page begins with the graph; VIEW is a menu.
async function theirs() {
	const port = await new Promise(done => {
		const s = net.createServer().listen(0, "127.0.0.1", () => { const { port: free } = s.address(); s.close(() => done(free)); });
	});
	pprof = spawn(process.env.GO, ["tool", "pprof", "-no_browser", "-symbolize=none", `-http=127.0.0.1:${port}`, `${dir}/made.pb.gz`], { cwd: dir, detached: true, env: { ...process.env, PPROF_TMPDIR: dir } });
	let said = "";
	const address = await new Promise(done => {
		pprof.stderr.on("data", text => {
			said += text;
			const at = /http:\/\/\S+/.exec(said);
			if (at)
				done(at[0]);
		});
		pprof.on("exit", () => done(""));
	});
	if (!address)
		return { said };
	const v = new Page();
	await v.begin();
	await v.page.goto(address);
	const clicks = [() => v.page.click("#view .menu-name, .menu-name:text('View')"), () => v.page.click("a:text-is('Source')")];
	let n = 0;
	for (const click of clicks) {
		await click();
		n++;
	}
	const without = await seen(v, 15);
	if (shots)
		await v.page.screenshot({ path: `${shots}/clicks-pprof.png` });
	await v.close();
	return { clicks: without ? n : null, said: without ? "" : "its source view does not show the line" };
}
run(async () => {
	const ways = await ours();
	console.log(`# fusee: clicks to the line: ${JSON.stringify(ways)}`);
	ok("from record --open -- make one click leads to the line that takes the time, with its time", ways.source === 1, ways);
	ok("by the table three, by the flame graph two", ways.table === 3 && ways.graph === 2, ways);
	if (!process.env.GO)
		return;
	const other = await theirs();
	console.log(`# pprof: ${JSON.stringify(other)}`);
	ok("pprof's page needs no less", other.clicks === null || other.clicks >= ways.source, other);
}, () => {
	end();
	if (pprof?.pid)
		process.kill(-pprof.pid, "SIGKILL"); // go, and the pprof that it has started
});
