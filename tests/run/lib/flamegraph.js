// SPDX-License-Identifier: Apache-2.0
// Looks at flame graph pages as a person would: clicks, types, reads. TAP on stdout.
// usage: node flamegraph.js PAGE DIFF HOSTILE [SCREENSHOTS]
"use strict";
const { chromium } = require("playwright-core");
const [page1, pageDiff, pageHostile, shots] = process.argv.slice(2);
let n = 0, failed = 0;
const ok = (name, good, why) => { n++; if (!good) failed++; console.log(`${good ? "ok" : "not ok"} ${n} - ${name}`); if (!good) console.log("# " + JSON.stringify(why)); };

async function click(page, name) {
	const at = await page.evaluate(wanted => {
		const t = fusee.tree(), b = fusee.boxes().find(x => (x.i === 0 ? "all" : JSON.parse(document.getElementById("data").textContent).functions[t.fn[x.i]][0]) === wanted);
		if (!b) return null;
		const r = document.getElementById("canvas").getBoundingClientRect();
		return { x: r.left + b.x + b.w / 2, y: r.top + b.d * 19 + 9 - document.getElementById("scroller").scrollTop };
	}, name);
	if (!at) throw new Error("no frame " + name + " is drawn");
	await page.mouse.click(at.x, at.y);
	await page.waitForTimeout(80);
}
const zoomName = page => page.evaluate(() => { const z = fusee.zoom(), f = JSON.parse(document.getElementById("data").textContent).functions; return z === 0 ? "all" : f[fusee.tree().fn[z]][0]; });
const text = (page, sel) => page.$eval(sel, e => e.value !== undefined && e.value !== "" ? String(e.value) : e.textContent);
const shot = async (page, name) => { if (shots) await page.screenshot({ path: `${shots}/${name}.png` }); };
const drawn = (page, name) => page.evaluate(w => { const f = JSON.parse(document.getElementById("data").textContent).functions, t = fusee.tree(); return fusee.boxes().some(b => b.i > 0 && f[t.fn[b.i]][0] === w); }, name);

(async () => {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
	const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
	const errors = [], requests = [];
	page.on("pageerror", e => errors.push(String(e)));
	page.on("console", m => { if (m.type() === "error") errors.push(m.text()); });
	page.on("request", r => requests.push(r.url()));
	await page.goto("file://" + page1);
	await page.waitForFunction(() => +document.documentElement.dataset.painted > 0);
	ok("opens without an error and asks nobody for anything", !errors.length && requests.length === 1, { errors, requests });
	await shot(page, "wide");

	await page.keyboard.press("/");
	await page.keyboard.type("^leaf_a$");
	await page.waitForTimeout(80);
	ok("search shows the matched share: 60 of 100", (await text(page, "#matched")).startsWith("60.0 %"), await text(page, "#matched"));
	await shot(page, "search");
	await page.keyboard.press("Escape");
	ok("Esc clears it", (await page.$eval("#search", e => e.value)) === "", null);
	await page.fill("#search", "main|leaf");
	ok("a stack with two matches counts once", (await text(page, "#matched")).startsWith("95.0 %"), await text(page, "#matched"));
	await page.fill("#search", "(");
	ok("a wrong expression is said", (await text(page, "#matched")).includes("not a regular"), await text(page, "#matched"));
	await page.fill("#search", "");

	await click(page, "middle");
	ok("a click zooms", await zoomName(page) === "middle", await zoomName(page));
	ok("the address bar keeps it", (await page.evaluate(() => location.hash)).includes("z="), await page.evaluate(() => location.hash));
	const link = await page.evaluate(() => location.href);
	await page.evaluate(() => document.getElementById("canvas").focus());
	await page.keyboard.press("Backspace");
	ok("Backspace goes one back", await zoomName(page) === "main", await zoomName(page));
	await click(page, "_start");
	ok("a click on an ancestor goes back to it", await zoomName(page) === "_start", await zoomName(page));
	await page.click("#reset");
	ok("reset shows all", await zoomName(page) === "all", await zoomName(page));

	await page.click("#invert");
	await page.waitForTimeout(80);
	const top = await page.evaluate(() => { const t = fusee.tree(), f = JSON.parse(document.getElementById("data").textContent).functions; return fusee.boxes().filter(b => b.d === 1).map(b => f[t.fn[b.i]][0] + ":" + t.v[b.i]); });
	ok("inverted: the leaves on top, with their own time", top.includes("leaf_a:600000000") && top.includes("leaf_b:200000000"), top);
	await click(page, "leaf_a");
	ok("and their callers below", await drawn(page, "middle") && await drawn(page, "main"), null);
	await shot(page, "inverted");
	await page.click("#invert");

	const sum = await page.evaluate(() => fusee.boxes().filter(b => b.d === 1).reduce((s, b) => s + fusee.tree().v[b.i], 0));
	ok("the first row adds up to all", sum === 1000000000, sum);
	const first = () => page.$eval("tbody tr td.name", e => e.textContent);
	ok("the table begins with the hottest", await first() === "leaf_a", await first());
	await page.click("th:nth-child(3) button");
	ok("a column's head sorts", await first() === "[truncated: too deep]", await first());
	await page.click("th:nth-child(2) button");
	ok("by total", ["_start", "main"].includes(await first()), await first());
	await page.hover("tbody tr:nth-child(3)");
	await page.click("tbody tr:has(td.name[title='leaf_b'])");
	ok("a click on a row searches it", (await text(page, "#matched")).startsWith("20.0 %"), await text(page, "#matched"));
	await page.click("#reset");
	const before = await page.evaluate(() => document.getElementById("canvas").toDataURL());
	await page.click("#legend input[data-kind='2']");
	await page.waitForTimeout(80);
	ok("the legend switches a kind off", before !== await page.evaluate(() => document.getElementById("canvas").toDataURL()), null);
	await page.click("#showtable");
	ok("the table can be put away", !(await page.isVisible("#side")), null);
	await page.click("#showtable");

	await page.evaluate(() => { document.activeElement.blur(); document.getElementById("canvas").focus(); });
	for (const k of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(k);
	await page.waitForTimeout(80);
	ok("by keyboard alone", await zoomName(page) === "middle", await zoomName(page));
	ok("and it is said", (await text(page, "#detail")).includes("middle"), await text(page, "#detail"));
	await page.keyboard.press("?");
	ok("? shows the keys", await page.isVisible("#keys"), null);
	await page.keyboard.press("Escape");

	const again = await browser.newPage({ viewport: { width: 800, height: 600 }, colorScheme: "dark" });
	await again.goto(link);
	await again.waitForTimeout(200);
	ok("a link restores the view", await zoomName(again) === "middle", await zoomName(again));
	await shot(again, "narrow-dark");
	const dark = await again.evaluate(() => getComputedStyle(document.body).backgroundColor);
	ok("dark where the system is", dark === "rgb(23, 24, 26)", dark);
	await page.emulateMedia({ media: "print" });
	ok("prints without its buttons", !(await page.isVisible("#tools")), null);
	await page.emulateMedia({ media: "screen" });

	await page.goto("file://" + pageDiff);
	await page.waitForTimeout(200);
	await shot(page, "diff");
	await click(page, "leaf_a");
	const d = await text(page, "#detail");
	ok("a diff has both sides' numbers", d.includes("before") && d.includes("60.0 %") && d.includes("30.0 %"), d);
	ok("a function that went away is still there", await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).functions.some(f => f[0] === "gone")), null);

	errors.length = 0;
	await page.goto("file://" + pageHostile);
	await page.waitForTimeout(300);
	ok("hostile names break nothing and run nothing", !errors.length && await page.evaluate(() => window.pwned === undefined && +document.documentElement.dataset.painted > 0), errors);
	const names = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).functions.map(f => f[0].length));
	ok("a name of a megabyte is there", Math.max(...names) >= 1000000, Math.max(...names));
	await page.hover("tbody tr:nth-child(1)");
	await browser.close();
	console.log(`1..${n}`);
	process.exit(failed ? 1 : 0);
})().catch(e => { console.log(`not ok ${n + 1} - ${String(e).split("\n")[0]}`); console.log(`1..${n + 1}`); process.exit(1); });
