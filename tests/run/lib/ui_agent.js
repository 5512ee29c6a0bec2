// SPDX-License-Identifier: Apache-2.0
// The page of fusee ui --agent beside an agent that runs: what it shows grows, and what is selected stays.
// usage: FUSEE=.. node ui_agent.js DIR [SCREENSHOTS]      DIR/control: the agent's socket; it writes a profile each 2 s
"use strict";
const [dir, shots] = process.argv.slice(2);
const { ok, is, run, SLOW } = require("./browser.js");
const { drag, serving, View } = require("./ui_view.js");
const { serve, end } = serving(dir);

const profilesOf = async (v, at) => Number(/(\d+) profiles?/.exec(await v.text(at))?.[1] ?? 0);
const inChart = v => profilesOf(v, ".notes");
// Waits until a number has grown; the last that was read.
async function grows(read, from, seconds = 60) {
	let now = await read();
	for (const last = Date.now() + seconds * 1000 * SLOW; now <= from && Date.now() < last; now = await read())
		await new Promise(done => setTimeout(done, 100));
	return now;
}
// Numbers are read while the page changes: an element that has just gone is read again.
const steady = read => async () => {
	try {
		return await read();
	} catch {
		return 0;
	}
};
const steps = async v => Number(/(\d+) steps/.exec(await v.page.getAttribute("#chart", "aria-label"))[1]);

async function grown(v) {
	ok("it opens with the agent's profiles over time", v.page.url().includes("file=all") && (await v.text("#title")).includes("the agent's profiles"), v.page.url());
	is("and follows them", await v.page.getAttribute(".time button:text-is('follow')", "aria-pressed"), "true");
	const before = await grows(steady(() => inChart(v)), 1), n = await grows(steady(() => inChart(v)), before);
	ok("the chart grows without a click", n > before, [before, n]);
	const facts = steady(() => profilesOf(v, "#facts")), sum = await facts(), later = await grows(facts, sum);
	ok("and the sum of what is shown", later > sum, [sum, later]);
	if (shots)
		await v.page.screenshot({ path: `${shots}/agent.png` });
}
async function table(v) {
	await v.tab("table");
	await v.page.fill("#search", "heavy|light");
	const held = await v.page.evaluate(() => new Promise(done => {
		const input = document.getElementById("search");
		setTimeout(() => done(input.isConnected && document.activeElement === input), 7000);
	}));
	ok("while one types in a view, it holds still", held, held);
	await v.page.click("#tab-table");
	const value = steady(async () => parseFloat((await v.row("heavy")).replace(/^(\d+) ms/, "0.$1")));
	const before = await value(), now = await grows(value, before);
	ok("behind that the table grows", now > before, [before, now]);
	is("and has what was searched", await v.page.inputValue("#search"), "heavy|light");
	ok("its shares are the program's", /^\d.*\b(5\d|6\d|7\d|8\d)\.\d %/.test(await v.row("heavy")), await v.rows());
	await v.page.fill("#search", "");
	const graph = /graph\.html/;
	await v.page.route(graph, () => {}); // it never comes, and an update waits for it
	await v.page.click("#tab-graph");
	await new Promise(done => setTimeout(done, 4000));
	await v.tab("table");
	const still = await value(), on = await grows(value, still);
	ok("a flame graph that never comes holds nothing up", on > still, [still, on]);
	await v.page.unroute(graph);
	await v.page.click("#tab-graph");
	await v.shown("graph");
	const all = steady(async () => (await v.box("all")).value), wide = await all(), wider = await grows(all, wide);
	ok("the flame graph grows", wider > wide, [wide, wider]);
	is("one frame at a time is left of it", await v.page.$$eval("#view iframe:not(.next)", list => list.length), 1);
}
async function selected(v) {
	await v.tab("time");
	const n = await steps(v);
	await drag(v, 0, Math.max(0, Math.floor(n / 3) - 1), n);
	await v.shown("time");
	const range = () => v.page.evaluate(() => ["from", "to", "where", "by"].map(name => new URLSearchParams(location.hash.slice(1)).get(name)).join());
	await v.select(() => v.label("process", "watched").click());
	const before = await range(), facts = await v.text("#facts"), shown = await inChart(v), later = await grows(steady(() => inChart(v)), shown);
	ok("a range that was dragged: the chart grows", later > shown, [shown, later]);
	is("and the range stays selected", await range(), before);
	await v.shown("time");
	is("and its sum", await v.text("#facts"), facts);
	ok("a mark shows it", Number(await v.page.getAttribute("#chart .own", "width")) > 0, await v.page.getAttribute("#chart .own", "width"));
	await v.select(() => v.page.click("#chosen button:text-is('following  ×')"));
	await v.page.click("#view button:text-is('all')");
	await v.shown("time");
	const stopped = await v.page.evaluate(() => location.hash), then = await inChart(v);
	await grows(async () => Number((await (await fetch(v.page.url().split("#")[0] + "time.json?file=all")).json()).windows), then + 1);
	is("following ends with a click", await v.page.evaluate(() => location.hash), stopped);
	await v.select(() => v.page.click("#view button:text-is('follow')"));
	const again = await grows(steady(() => inChart(v)), then);
	ok("and begins with one", again > then, [then, again]);
	const m = await steps(v);
	await drag(v, 0, Math.max(0, Math.floor(m / 3) - 1), m);
	await v.shown("time");
	await v.select(() => v.page.click("#view button:text-is('show only this range')"));
	ok("a range that is shown alone is kept: following has ended", !v.page.url().includes("follow="), v.page.url());
}
// What an update at 250 selects.
async function updates(v) {
	const all = { file: "all", from: "100", to: "200", span_from: "100", span_to: "200", base: "all", base_from: "0", base_to: "100" };
	const at = s => v.page.evaluate(async selection => JSON.stringify((await import(new URL("follow.js", location.href).href)).upTo(250, selection)), s);
	is("the time before stays the time before", await at(all), '{"span_from":"150","span_to":"250","from":"150","to":"250","base_from":"50","base_to":"150"}');
	is("another base stays where it is", await at({ ...all, base_to: "90" }), '{"span_from":"150","span_to":"250","from":"150","to":"250"}');
	is("as a narrower range does", await at({ ...all, from: "120", base_to: "120" }), '{"span_from":"150","span_to":"250"}');
}
run(async () => {
	const { child, address } = await serve(["ui", "--no-browser", "--agent", "--socket", `${dir}/control`]);
	const v = await View.open(address);
	await v.shown("time");
	await grown(v);
	await table(v);
	await selected(v);
	await updates(v);
	const errors = v.errors.filter(e => !/400/.test(e)); // before the first profile there is none
	ok("no error on the way", !errors.length, errors);
	await v.close();
	child.kill("SIGINT");
	is("Ctrl-C ends it", await child.ended, 0);
}, end);
