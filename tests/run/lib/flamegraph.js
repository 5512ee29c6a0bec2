// SPDX-License-Identifier: Apache-2.0
// Looks at flame graph pages as a person would: clicks, types, reads. TAP on stdout.
// usage: node flamegraph.js DIR [SCREENSHOTS]      DIR: now diff focus kinds hostile groups
// grouped noise many, each .html
"use strict";
const { ok, is, Page, run, WIDE } = require("./browser.js");
const [dir, shots] = process.argv.slice(2);
let browser;

// ---- what a person sees ----

class View extends Page {
	static async open(name, viewport = WIDE, options = {}) {
		const v = new View();
		await v.begin(viewport, options);
		await v.page.goto(name.startsWith("file:") ? name : `file://${dir}/${name}.html`);
		await v.painted();
		return v;
	}
	// The frames that are drawn: name, row, x, width in pixels, value.
	frames() {
		return this.page.evaluate(() => {
			const { state, functions } = window.fusee, r = document.getElementById("canvas").getBoundingClientRect();
			const top = document.getElementById("scroller").scrollTop;
			return state.boxes.map(b => ({
				name: b.i ? functions[state.tree.fn[b.i]].name : "all", row: b.row, w: b.w, value: state.tree.value[b.i],
				self: state.tree.self[b.i], x: r.left + b.x + b.w / 2, y: r.top + b.row * 19 + 9 - top,
			}));
		});
	}
	async frame(name) {
		const all = await this.frames(), f = all.find(b => b.name === name);
		if (!f)
			throw new Error(`no frame ${name} is drawn: ${all.map(b => b.name)}`);
		return f;
	}
	async has(name) {
		return (await this.frames()).some(f => f.name === name);
	}
	async click(name) {
		const { x, y } = await this.frame(name);
		await this.page.mouse.click(x, y);
		await this.painted();
	}
	async hover(name) {
		const { x, y } = await this.frame(name);
		await this.page.mouse.move(x, y);
		await this.painted();
		return this.page.innerText("#tip");
	}
	async press(...keys) {
		for (const k of keys)
			await this.page.keyboard.press(k);
		await this.painted();
	}
	async button(id) {
		await this.page.click("#" + id);
		await this.painted();
	}
	zoom() {
		return this.page.evaluate(() => {
			const { state, functions } = window.fusee;
			return state.zoom ? functions[state.tree.fn[state.zoom]].name : "all";
		});
	}
	async search(text) {
		await this.page.fill("#search", text);
		await this.painted();
		return this.page.inputValue("#matched").catch(() => this.page.$eval("#matched", e => e.value));
	}
	// The colour in the middle of a frame's left part, where no text is.
	async pixel(name, dx = 3) {
		const f = await this.frame(name);
		return this.page.evaluate(([x, y]) => {
			const c = document.getElementById("canvas"), r = c.getBoundingClientRect(), k = c.width / r.width;
			return [...c.getContext("2d").getImageData((x - r.left) * k, (y - r.top) * k, 1, 1).data].slice(0, 3);
		}, [f.x - f.w / 2 + dx, f.y]);
	}
	firstRow() {
		return this.page.innerText("#table tbody tr td:nth-child(3)");
	}
	async shot(name) {
		if (shots)
			await this.page.screenshot({ path: `${shots}/${name}.png` });
	}
}

// ---- the tests ----

async function opens(v) {
	ok("opens without an error and asks nobody for anything", !v.errors.length && v.requests.length === 1, v);
	const about = await v.page.innerText("#about");
	ok("the head names target, total and time", /program/.test(about) && /1\.00 s of cpu/.test(about) && /10\.0 s long/.test(about), about);
	const row = (await v.frames()).filter(f => f.row === 1);
	is("the first row adds up to all", row.reduce((s, f) => s + f.value, 0), 1e9);
	const leaf = await v.frame("leaf_a"), all = await v.frame("all");
	ok("a frame's width is its share", Math.abs(leaf.w / all.w - 0.6) < 0.001, leaf.w / all.w);
	const third = (await v.frames()).filter(f => f.row === 3).sort((a, b) => a.x - b.x).map(f => f.name);
	is("children stand by name", third.join(), "do_syscall_64,leaf_b,leaf_c,middle");
	await v.shot("wide");
}

async function search(v) {
	await v.press("/");
	await v.page.keyboard.type("^leaf_a$");
	await v.painted();
	is("search shows the matched share: 60 of 100", await v.page.$eval("#matched", e => e.value), "60.0 % matched");
	const [r, g, b] = await v.pixel("leaf_a");
	ok("what matches is lit", r > 220 && g > 200 && b < 140, [r, g, b]);
	is("and its row is in the table alone", (await v.page.$$("#table tbody tr")).length, 1);
	await v.shot("search");
	await v.press("Escape");
	is("Esc clears it", await v.page.inputValue("#search"), "");
	is("a stack with two matches counts once", await v.search("main|leaf"), "95.0 % matched");
	is("small letters match capital ones", await v.search("LEAF_B".toLowerCase()), "20.0 % matched");
	is("a wrong expression is said", await v.search("("), "not a regular expression");
	await v.search("");
}

async function zooming(v) {
	await v.click("middle");
	is("a click zooms", await v.zoom(), "middle");
	const middle = await v.frame("middle"), all = await v.frame("all");
	ok("to the whole width", Math.abs(middle.w - all.w) < 0.5, [middle.w, all.w]);
	ok("hover says the share of the zoom", (await v.hover("leaf_a")).includes("100.0 % of zoom"), await v.hover("leaf_a"));
	const link = v.page.url();
	ok("the address bar keeps it", link.includes("zoom="), link);
	await v.click("leaf_a");
	await v.press("Backspace");
	is("Backspace goes back", await v.zoom(), "middle");
	await v.page.goBack();
	await v.painted();
	is("so does the browser's own button", await v.zoom(), "all");
	await v.page.goForward();
	await v.painted();
	is("and forward again", await v.zoom(), "middle");
	await v.click("_start");
	is("a click on a frame above goes back to it", await v.zoom(), "_start");
	await v.button("reset");
	is("reset shows all", await v.zoom(), "all");
	return link;
}

async function invert(v) {
	await v.button("invert");
	const top = (await v.frames()).filter(f => f.row === 1).map(f => `${f.name} ${f.value / 1e6}`);
	is("inverted: the leaves on top, with their own time", top.sort().join(),
		"[truncated: too deep] 50,leaf_a 600,leaf_b 200,leaf_c 50,vfs_read 100");
	await v.click("leaf_a");
	ok("and their callers below", await v.has("middle") && await v.has("main") && !await v.has("leaf_b"), await v.frames());
	await v.shot("inverted");
	const link = v.page.url();
	await v.button("invert");
	return link;
}

async function table(v) {
	is("the table begins with the hottest", await v.firstRow(), "leaf_a");
	await v.page.click("th:nth-child(3) button");
	is("a column's head sorts", await v.firstRow(), "[truncated: too deep]");
	await v.page.click("th:nth-child(3) button");
	is("and the other way round", await v.firstRow(), "vfs_read");
	await v.page.click("th:nth-child(2) button");
	ok("by total", ["_start", "main"].includes(await v.firstRow()), await v.firstRow());
	is("a screen reader is told", await v.page.getAttribute("th:nth-child(2)", "aria-sort"), "descending");
	const before = await v.pixel("leaf_b", 1);
	await v.page.hover("tbody tr:has(td[title='leaf_b'])");
	await v.painted();
	ok("a row lights its frames", String(before) !== String(await v.pixel("leaf_b", 1)), before);
	await v.page.click("tbody tr:has(td[title='leaf_b'])");
	is("a click on a row searches it", await v.page.$eval("#matched", e => e.value), "20.0 % matched");
	await v.button("reset");
	await v.button("showtable");
	ok("the table can be put away", !await v.page.isVisible("#side"), null);
	await v.button("showtable");
}

async function kinds() {
	const v = await View.open("kinds", { width: 1200, height: 600 });
	const names = (await v.page.$$eval("#legend label", all => all.map(e => e.textContent))).join();
	is("the legend has all kinds that there are", names, "program,libraries,kernel,run-time code,language,no code");
	const tip = await v.hover("inner");
	ok("hover tells name, place, library, self and total", ["inner", "work.h:30", "/lib/libwork.so.1", "self", "total", "400 ms",
		"40.0 % of all", "inlined"].every(s => tip.includes(s)), tip);
	const script = await v.hover("view"), place = await v.page.innerText("tbody tr:has(td[title='view']) td:nth-child(4)");
	ok("a function of a language has its file and line", script.includes("/srv/shop/app.py:44") && place === "app.py:42", [script, place]);
	ok("its interpreter's are omitted", !await v.has("evaluate"), await v.frames());
	ok("and what is guessed", (await v.hover("guess")).includes("guessed"), await v.hover("guess"));
	const line = [], f = await v.frame("guess");
	for (let dx = 60; dx < 80; dx++)
		line.push(String(await v.pixel("guess", Math.min(dx, f.w - 2))));
	ok("guessed frames are hatched", new Set(line).size > 1, line);
	const edge = await v.pixel("inner", 0.5), inside = await v.pixel("inner", 5);
	ok("inlined ones have an edge", edge[0] < inside[0] - 30, [edge, inside]);
	ok("losses are said", (await v.page.innerText("#facts")).includes("1,234 samples truncated (1,234 too deep)"), null);
	await v.shot("kinds");
	await v.page.mouse.move(5, 5);
	await v.page.click("#legend input[data-kind='2']");
	await v.painted();
	ok("the legend switches a kind off", !await v.has("vfs_read") && !await v.has("do_syscall_64") && await v.has("inner"),
		await v.frames());
	is("its time is its callers'", (await v.frames()).filter(b => b.name === "main").reduce((s, b) => s + b.self, 0), 300e6);
	const link = v.page.url();
	await v.button("invert");
	ok("inverted too", !await v.has("vfs_read") && await v.has("main"), await v.frames());
	await v.button("reset");
	ok("reset switches it on again", await v.has("vfs_read"), await v.frames());
	await v.close();
	const again = await View.open(link);
	ok("a link keeps what is off", !await again.has("vfs_read") && !await again.page.isChecked("input[data-kind='2']"), link);
	await again.close();
}

async function keyboard(v) {
	await v.page.evaluate(() => document.activeElement.blur());
	await v.press("ArrowDown", "ArrowDown", "ArrowDown", "Enter");
	is("by keyboard alone: down the widest, Enter zooms", await v.zoom(), "middle");
	ok("and it is said", (await v.page.innerText("#detail")).includes("middle"), await v.page.innerText("#detail"));
	await v.press("Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft");
	ok("sideways", (await v.page.innerText("#detail")).startsWith("leaf_b"), await v.page.innerText("#detail"));
	await v.press("ArrowUp", "Enter");
	is("up", await v.zoom(), "main");
	await v.press("Home", "i");
	is("i inverts", await v.page.getAttribute("#invert", "aria-pressed"), "true");
	await v.press("i", "t");
	ok("t hides the table", !await v.page.isVisible("#side"), null);
	await v.press("t", "?");
	ok("? shows the keys", await v.page.isVisible("#keys"), null);
	await v.shot("keys");
	await v.press("Escape");
	ok("Esc closes them", !await v.page.isVisible("#keys"), null);
	await v.page.focus("#table tbody tr");
	const second = await v.page.innerText("#table tbody tr:nth-child(2) td:nth-child(3)");
	await v.press("ArrowDown", "Enter");
	is("rows of the table too", await v.page.inputValue("#search"), `^${second}$`);
	await v.press("Escape");
}

async function links(zoomed, inverted) {
	const dark = await View.open(zoomed + "&search=leaf", { width: 800, height: 600 }, { colorScheme: "dark" });
	is("a link restores the zoom", await dark.zoom(), "middle");
	is("and the search", await dark.page.$eval("#matched", e => e.value), "85.0 % matched");
	is("dark where the system is", await dark.page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(22, 23, 26)");
	const overflow = await dark.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	ok("a narrow window needs no sideways scrolling", overflow <= 0, overflow);
	await dark.shot("narrow-dark");
	await dark.press("Backspace");
	is("with nothing to go back to, Backspace goes up", await dark.zoom(), "main");
	await dark.close();
	const v = await View.open(inverted);
	ok("and inversion", await v.zoom() === "leaf_a" && await v.page.getAttribute("#invert", "aria-pressed") === "true", inverted);
	await v.close();
	const odd = await View.open(`file://${dir}/now.html#zoom=9999.x.-1&search=(&off=77&invert=2&amounts=1`);
	ok("a wrong link shows all", !odd.errors.length && await odd.zoom() === "all", odd.errors);
	await odd.close();
}

async function printing() {
	const v = await View.open("now");
	const pdf = await v.page.pdf({ path: shots ? `${shots}/print.pdf` : undefined, preferCSSPageSize: true });
	ok("prints", pdf.length > 5000, pdf.length);
	await v.page.emulateMedia({ media: "print" });
	ok("without its buttons, with legend and table", !await v.page.isVisible("#tools") && await v.page.isVisible("#legend") &&
		await v.page.isVisible("#table"), null);
	await v.close();
}

async function comparison() {
	const v = await View.open("diff");
	await v.shot("diff");
	const more = await v.pixel("leaf_a"), less = await v.pixel("leaf_b"), gone = await v.pixel("gone");
	ok("more is red", more[0] > more[2] + 40, more);
	ok("less is blue, what went away too", less[2] > less[0] + 40 && gone[2] > gone[0] + 80, [less, gone]);
	const same = await v.pixel("same");
	ok("the same is grey", Math.max(...same) - Math.min(...same) < 12, same);
	const tip = await v.hover("leaf_a");
	ok("with the numbers of both sides", ["600 ms", "60.0 %", "before: 300 ms", "30.0 %", "+30.00 %"].every(s => tip.includes(s)), tip);
	ok("in the table as well", (await v.page.innerText("tr:has(td[title='leaf_b'])")).includes("30.0 → 10.0 %"),
		await v.page.innerText("tr:has(td[title='leaf_b'])"));
	const before = await v.frame("gone"), all = await v.frame("all");
	ok("by shares, both sides together make the width", Math.abs(before.w / all.w - 0.15) < 0.002, before.w / all.w);
	is("search shows both sides", await v.search("^leaf_a$"), "30.0 % → 60.0 %");
	await v.search("");
	await v.button("amounts");
	ok("in amounts if wanted", (await v.page.innerText("tr:has(td[title='leaf_b'])")).includes("300 ms → 100 ms"),
		await v.page.innerText("tr:has(td[title='leaf_b'])"));
	await v.close();
	const dark = await View.open("diff", { width: 1100, height: 700 }, { colorScheme: "dark" });
	await dark.shot("diff-dark");
	await dark.close();
}

// The names of a row of frames, with their values in ms.
const rowOf = async (v, row) => (await v.frames()).filter(f => f.row === row).map(f => `${f.name} ${f.value / 1e6}`).sort().join();

async function groups() {
	const v = await View.open("groups", { width: 1200, height: 560 });
	const list = n => v.page.locator("#groups select").nth(n);
	is("one name in two programs is two functions", await rowOf(v, 2), "main [aa] 400,main [bb] 300,read_all 200,serve 100");
	is("without groups threads are one tree", await rowOf(v, 1), "_start [aa] 400,_start [bb] 300,clone 300");
	await list(0).selectOption("0");
	await v.painted();
	is("grouped by process", await rowOf(v, 1), "process: aa 600,process: bb 400");
	await list(0).selectOption("0.1");
	await v.painted();
	is("and by thread", await rowOf(v, 2), "thread: aa 400,thread: bb 300,thread: io 100,thread: io 200");
	await v.shot("groups");
	await list(0).selectOption("1");
	await v.painted();
	is("by thread alone", await rowOf(v, 1), "thread: aa 400,thread: bb 300,thread: io 300");
	await list(0).selectOption("");
	const only = list(1).locator("option", { hasText: "bb  40.0 %" });
	await list(1).selectOption(await only.getAttribute("value"));
	await v.painted();
	is("one process alone", await rowOf(v, 1), "_start [bb] 300,clone 100");
	const rows = await v.page.$$eval("#table tbody td.name", all => all.map(td => td.textContent).sort().join());
	is("in the table too", rows, "_start [bb],clone,main [bb],read,serve,work [bb]");
	ok("with its own sums", (await v.page.innerText("tr:has(td[title='read'])")).includes("100 ms"),
		await v.page.innerText("tr:has(td[title='read'])"));
	is("and in the search", await v.search("^read$"), "10.0 % matched");
	await v.search("");
	await v.button("invert");
	is("inverted as well", await rowOf(v, 1), "read 100,work [bb] 300");
	const link = v.page.url();
	await v.button("reset");
	is("reset shows all", await rowOf(v, 1), "read 300,work [aa] 400,work [bb] 300");
	await v.close();
	const again = await View.open(link);
	is("a link keeps the process", await rowOf(again, 1), "read 100,work [bb] 300");
	await again.close();
	const by = await View.open("grouped");
	is("--by opens the page with its groups", await rowOf(by, 1), "process: aa 600,process: bb 400");
	await by.close();
	const plain = await View.open("now");
	ok("no lists where there is nothing to choose", !await plain.page.isVisible("#groups"), null);
	await plain.close();
}

async function noise() {
	const v = await View.open("noise", { width: 1500, height: 420 });
	const spread = c => Math.max(...c) - Math.min(...c);
	const [same, less] = [await v.pixel("leaf_a"), await v.pixel("leaf_b")];
	ok("a change within its noise is pale", spread(same) < 25 && spread(less) > 40, [same, less]);
	ok("and says so", (await v.hover("leaf_a")).includes("within its noise"), await v.hover("leaf_a"));
	ok("a real change says so", (await v.hover("leaf_b")).includes("more than chance"), await v.hover("leaf_b"));
	ok("what is new", (await v.hover("fresh")).includes("new; more than chance"), await v.hover("fresh"));
	ok("what vanished", (await v.hover("old")).includes("vanished; more than chance"), await v.hover("old"));
	is("rows of noise are pale", await v.page.$$eval("tr.noise td.name", all => all.map(td => td.textContent).sort().join()), "leaf_a,main");
	await v.hover("leaf_b");
	await v.shot("noise");
	await v.close();
}

async function many() {
	const v = await View.open("many"), facts = await v.page.innerText("#facts");
	ok("of too many stacks the largest are drawn, and the others' weight is said",
		facts.includes("the largest 100,000 are drawn; the other 500 stacks have 5s (0.17%)"), facts);
	is("their weight is in the whole", await v.page.evaluate(() => window.fusee.state.tree.value[0]), (100000 * 3 + 500) * 1e7);
	await v.close();
}

async function filtered() {
	const v = await View.open("focus");
	const tip = await v.hover("leaf_b");
	ok("with --focus shares are still those of the whole", tip.includes("20.0 % of all"), tip);
	await v.close();
}

async function hostile() {
	const v = await View.open("hostile");
	const frames = await v.frames();
	for (const f of frames.slice(0, 40))
		await v.page.mouse.move(f.x, f.y);
	for (let row = 1; row <= 12; row++) {
		await v.page.click(`#table tbody tr:nth-child(${row})`);
		await v.page.fill("#search", "");
	}
	const bad = await v.page.evaluate(() => window.pwned);
	ok("hostile names and units break nothing and run nothing", !v.errors.length && bad === undefined && v.requests.length === 1,
		{ errors: v.errors, bad, requests: v.requests.map(r => r.slice(0, 200)) });
	const made = await v.page.$$eval("img, iframe, script[src], b b", all => all.length);
	is("and become no elements", made, 0);
	const names = await v.page.evaluate(() => window.fusee.functions.map(f => f.name));
	ok("a name of a megabyte is there", names.some(s => s.length === 1000000), names.map(s => s.length));
	ok("every name as it was", ["</script><script>window.pwned=1</script>", "a\u2028b\u2029c", "__proto__", "tab\there\u0001", "@DATA@",
		"<!--<script>"].every(s => names.includes(s)), names.map(s => s.slice(0, 60)));
	await v.close();
	const page = await browser.newPage();
	await page.goto(`file://${dir}/hostile.html`);
	await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.pwned=2'>"));
	await page.waitForTimeout(100);
	is("were one to get through, the page's policy runs nothing", await page.evaluate(() => window.pwned), undefined);
	await page.close();
}

run(async chromium => {
	browser = chromium;
	const v = await View.open("now");
	await opens(v);
	await search(v);
	const zoomed = await zooming(v), inverted = await invert(v);
	await table(v);
	await keyboard(v);
	ok("no error on the way", !v.errors.length, v.errors);
	await v.close();
	await links(zoomed, inverted);
	await kinds();
	await printing();
	await comparison();
	await groups();
	await noise();
	await many();
	await filtered();
	await hostile();
});
