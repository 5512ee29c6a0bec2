// SPDX-License-Identifier: Apache-2.0
// Looks at the page of fusee ui as a person would. TAP on stdout.
// usage: FUSEE=.. node ui.js DIR [SCREENSHOTS]      DIR/profiles: now before after lines and a hostile one, DIR/store, DIR/xdg-open, which writes to DIR/sudo/opened
"use strict";
const { execFileSync } = require("child_process");
const fs = require("fs");
const [dir, shots] = process.argv.slice(2);
const { ok, is, run, WIDE, SLOW } = require("./browser.js");
const { ask, drag, number, serving, View } = require("./ui_view.js");
const { serve, end } = serving(dir);
const HOSTILE = "<img src=x onerror=window.pwned=1>";
let browser;

async function shot(v, name) {
	if (shots)
		await v.page.screenshot({ path: `${shots}/${name}.png` });
}

// ---- the tests ----

async function refused({ address, origin }) {
	const policy = (await ask(address)).headers["content-security-policy"];
	ok("the policy: own origin, no inline script", policy.includes("default-src 'none'; script-src 'self'") && !policy.includes("unsafe"), policy);
	is("a wrong token: 403", (await ask(`${origin}/${"0".repeat(48)}/profiles.json`)).statusCode, 403);
	is("no token: 403", (await ask(origin + "/")).statusCode, 403);
	is("a foreign Host: 421", (await ask(address, { host: "evil.example" })).statusCode, 421);
	is("a foreign Origin: 403", (await ask(address + "profiles.json", { origin: "http://evil.example" })).statusCode, 403);
	is("its own: 200", (await ask(address + "profiles.json", { origin })).statusCode, 200);
	is("a file that was not named: 404", (await ask(address + "../../etc/passwd")).statusCode, 403);
}
async function list(v) {
	const rows = await v.rows();
	is("profiles by time, the latest first", rows.map(r => r.split("\t")[1]).join(), `${HOSTILE}.pb.gz,many.pb,lines.pb.gz,now.pb.gz,after.pb.gz,before.pb.gz,broken.pb.gz`);
	await v.until(() => [...document.querySelectorAll("#view tbody tr")].every(r => r.cells[4].textContent));
	ok("with their values", (await v.row("now.pb.gz")).includes("samples, cpu"), await v.rows());
	ok("and why one cannot be read", (await v.row("broken.pb.gz")).includes("cannot read 'broken.pb.gz' as a profile"), await v.rows());
	await shot(v, "profiles");
	await v.select(() => v.page.click("#view button.link:text-is('broken.pb.gz')"));
	ok("which is also said where it is opened", (await v.text("#problem")).includes("cannot read 'broken.pb.gz' as a profile"), await v.text("#problem"));
	await v.tab("files");
	await v.select(() => v.page.click("#view button.link:text-is('now.pb.gz')"));
	ok("a click opens one", (await v.text("#title")).includes("now.pb.gz") && (await v.text("#facts")).includes("1.00 s of cpu"), await v.text("#about"));
}
async function graph(v) {
	const leaf = await v.box("leaf_a"), all = await v.box("all");
	ok("the flame graph: a width is a share", Math.abs(leaf.w / all.w - 0.6) < 0.001, [leaf, all]);
	await v.select(() => v.page.mouse.click(leaf.x, leaf.y));
	ok("a click zooms, and the address keeps it", v.page.url().includes("graph=") && Math.abs((await v.box("leaf_a")).w - all.w) < 1, v.page.url());
	const link = v.page.url();
	ok("what is zoomed can be selected", (await v.text("#chosen")).includes("only stacks with leaf_a"), await v.text("#chosen"));
	await v.select(() => v.page.goBack());
	ok("the browser's button goes back", Math.abs((await v.box("leaf_a")).w - leaf.w) < 1, await v.boxes());
	await v.frame().fill("#search", "leaf_b");
	await v.until(() => location.hash.includes("leaf_b"));
	is("search", await v.frame().$eval("#matched", e => e.value), "20.0 % matched");
	await v.frame().fill("#search", "");
	await v.frame().click("#invert");
	ok("invert", (await v.boxes()).length && v.page.url().includes("invert"), v.page.url());
	await v.frame().click("#invert");
	const middle = await v.box("leaf_b");
	await v.select(() => v.page.mouse.dblclick(middle.x, middle.y));
	ok("a double click selects the function", v.page.url().includes("function=leaf_b"), v.page.url());
	await v.until(() => document.documentElement.dataset.shown?.includes("function=leaf_b"));
	ok("and filters the flame graph", !(await v.boxes()).some(b => b.name === "leaf_a"), await v.boxes());
	is("which outlines it", await v.frame().evaluate(() => window.fusee.functions[window.fusee.state.chosen].name), "leaf_b");
	await v.tab("table");
	is("and the table", (await v.rows()).map(r => r.split("\t")[2]).sort().join(), "_start,leaf_b,main");
	await v.select(() => v.page.click("#chosen button"));
	is("its chip takes it back", (await v.rows()).length, 8);
	return link;
}
async function table(v) {
	is("the table begins with the hottest", (await v.rows())[0].split("\t").join(" "), "600 ms 60.0 % 600 ms 60.0 % leaf_a program");
	await v.page.click("#view th:nth-child(3) button");
	is("a head sorts", (await v.rows())[0].split("\t")[2], "_start");
	is("and is marked", await v.page.getAttribute("#view th:nth-child(3)", "aria-sort"), "ascending");
	await v.page.keyboard.press("/");
	await v.page.keyboard.type("leaf");
	is("search", (await v.rows()).length, 3);
	await v.page.fill("#search", "(");
	is("a wrong expression is said", await v.page.$eval("#view output", e => e.value), "not a regular expression");
	await v.page.fill("#search", "");
	await shot(v, "table");
	await v.clickRow("main");
}
async function callers(v) {
	ok("a row leads to callers and callees", v.page.url().includes("view=callers") && v.page.url().includes("function=main"), v.page.url());
	const calls = v.rows("#view table[aria-label=callees] tbody tr");
	is("callees with values and shares", (await calls)[0], "600 ms\t60.0 %\tmiddle");
	is("callers", (await v.rows("#view table[aria-label=callers] tbody tr")).join(), "1.00 s\t100.0 %\t_start");
	await shot(v, "callers");
	await v.clickRow("middle");
	is("a callee is the next function", await v.text("#view h2"), "middle");
	await v.page.goBack();
	await v.until(() => document.querySelector("#view h2")?.textContent === "main");
	ok("back", true);
}
async function calls(address) {
	const v = await View.open(`${address}#file=${await number(address, "now.pb.gz")}&view=calls`);
	const boxes = await v.page.$$eval(".calls .node rect", all => all.map(r => r.getBoundingClientRect().toJSON()));
	is("the graph of calls has each function", boxes.length, 8);
	const over = boxes.filter((a, i) => boxes.some((b, k) => k > i && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
	ok("no box is over another", !over.length, boxes);
	const names = await v.page.$$eval(".calls .node", all => all.map(g => [g.getAttribute("aria-label").split(",")[0], g.getBoundingClientRect().top]));
	const top = Object.fromEntries(names);
	ok("callers are above callees", top._start < top.main && top.main < top.middle && top.middle < top.leaf_a, names);
	await shot(v, "calls");
	await v.page.focus(".calls .node[aria-label^='middle,']");
	await v.select(() => v.page.keyboard.press("Enter"));
	ok("Enter opens a function between callers and callees", v.page.url().includes("function=middle") && v.page.url().includes("view=callers"), v.page.url());
	ok("no error on the way", !v.errors.length, v.errors);
	await v.close();
}
// A click on something that saves a file: its name and bytes.
async function saved(v, click) {
	const [download] = await Promise.all([v.page.waitForEvent("download"), click()]);
	return { name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path()) };
}
const isSvg = text => text.startsWith("<svg xmlns=") && text.trimEnd().endsWith("</svg>");
async function share(address) {
	const v = await View.open(`${address}#file=${await number(address, "now.pb.gz")}&view=graph&where=process%3Dbb`, WIDE, { acceptDownloads: true });
	await v.page.click("#share");
	const link = text => () => v.page.click(`#share-dialog >> text=${text}`);
	const folded = await saved(v, link("folded text"));
	is("share: folded text of what is selected", folded.bytes.toString(), "_start;main;do_syscall_64;vfs_read 100000000\n_start;main;leaf_c 100000000\n");
	is("its name", folded.name, "now.folded");
	const page = await saved(v, link("one page"));
	ok("share: one page", page.name === "now.html" && page.bytes.includes("leaf_c") && !page.bytes.includes("leaf_a"), page.name);
	const profile = await saved(v, link("profile, for pprof"));
	fs.writeFileSync(`${dir}/${profile.name}`, profile.bytes);
	const text = execFileSync(process.env.FUSEE, ["report", "--folded", profile.name], { cwd: dir, encoding: "utf8" });
	is("share: the profile that fusee report reads", text, folded.bytes.toString());
	const picture = await saved(v, link("picture of this view")), svg = picture.bytes.toString();
	ok("share: the flame graph as a picture", picture.name === "now.svg" && isSvg(svg) && /<text [^>]*>vfs_read<\/text>/.test(svg) && !svg.includes("leaf_a"), svg);
	await v.page.click("#share-dialog button:text-is('close')");
	await v.tab("calls");
	await v.page.click("#share");
	const calls = (await saved(v, link("picture of this view"))).bytes.toString();
	ok("share: the graph of calls as a picture", isSvg(calls) && calls.includes(">leaf_c</text>") && !calls.includes("var("), calls);
	for (const [name, text] of [["flame graph", svg], ["calls", calls]]) {
		const image = await browser.newPage();
		fs.writeFileSync(`${dir}/picture.svg`, text);
		await image.goto(`file://${dir}/picture.svg`);
		is(`the picture of the ${name} is well-formed`, await image.evaluate(() => document.documentElement.nodeName + document.querySelectorAll("parsererror").length), "svg0");
		if (shots)
			await image.screenshot({ path: `${shots}/svg-${name.replace(" ", "-")}.png` });
		await image.close();
	}
	ok("no error on the way", !v.errors.length, v.errors);
	await v.close();
}
async function labels(v) {
	await v.select(() => v.label("process", "bb").click());
	is("a label filters callees", (await v.rows("#view table[aria-label=callees] tbody tr")).join(), "100 ms\t50.0 %\tdo_syscall_64,100 ms\t50.0 %\tleaf_c");
	is("and is pressed", await v.label("process", "bb").getAttribute("aria-pressed"), "true");
	await v.tab("graph");
	ok("and the flame graph", !(await v.boxes()).some(b => b.name === "leaf_a") && (await v.boxes()).some(b => b.name === "leaf_c"), await v.boxes());
	ok("and the other labels", !await v.label("thread", "aa").count(), null);
	await v.tab("table");
	await v.select(() => v.page.click("#chosen button >> nth=0"));
	await v.select(() => v.label("thread", "io").click({ modifiers: ["Shift"] }));
	ok("with shift those without", (await v.text("#chosen")).includes("thread!=io") && !await v.row("leaf_b"), await v.rows());
	const link = v.page.url();
	const again = await View.open(link);
	ok("a link shows the same", (await again.text("#chosen")).includes("thread!=io") && !await again.row("leaf_b") && !!await again.row("leaf_a"), link);
	await again.close();
	await v.select(() => v.page.selectOption("#type", "samples"));
	ok("another value", (await v.row("leaf_a")).startsWith("60 "), await v.rows());
	const errors = v.errors.filter(e => !/400/.test(e)); // the broken profile
	ok("no error on the way", !errors.length, errors);
}
// A browser has six connections to a server: pages that wait do not take them all.
async function manyPages(address) {
	const context = await browser.newContext(), pages = [];
	for (let i = 0; i < 8; i++) {
		pages.push(await context.newPage());
		await pages[i].goto(address);
	}
	await pages[0].close();
	await pages[7].reload();
	for (let i = 0; i < 400 * SLOW && !await pages[7].evaluate(() => document.documentElement.dataset.shown); i++)
		await new Promise(done => setTimeout(done, 50));
	ok("eight pages at once", (await pages[7].innerText("#view")).includes("now.pb.gz"), await pages[7].innerText("#view"));
	await context.close();
}
async function source(address) {
	const v = await View.open(`${address}#file=${await number(address, "lines.pb.gz")}&view=source`);
	ok("source, without a function: the hottest, near their lines", (await v.text("#view h2")) === "add" && (await v.rows("#view tr.hot")).some(r => r.includes("sum += i * i;")), await v.text());
	await shot(v, "hottest");
	await v.tab("code");
	ok("instructions, too", (await v.text("#view h2")) === "add" && (await v.rows("#view tr.hot")).length > 1, await v.text());
	await v.select(() => v.page.click("#view h2 button >> nth=0"));
	ok("a click on its name selects it", v.page.url().includes("function=add"), v.page.url());
	await v.select(() => v.page.click("#chosen button"));
	await v.tab("table");
	await v.clickRow("add");
	await v.tab("source");
	const rows = await v.rows();
	const hot = rows.filter(r => r.includes("sum += i * i;") || r.includes("for (unsigned long i"));
	ok("source lines have the time of each", hot.some(r => /\d+ ms|\d s/.test(r.split("\t")[0])), rows);
	is("lines beside it have none", rows.find(r => r.includes("static void add"))?.split("\t").slice(0, 3).join(), ",,3");
	await shot(v, "source");
	await v.tab("code");
	const code = await v.rows("#view tr.hot"), sums = code.map(r => r.split("\t")[0]).filter(t => t);
	ok("instructions have the time of each", sums.length > 1 && code.every(r => /^[0-9a-f]+$/.test(r.split("\t")[2])), code);
	ok("and their lines", (await v.rows()).some(r => /work\.c:[56]/.test(r.split("\t")[4])), await v.rows());
	await shot(v, "instructions");
	await v.page.goto(`${address}#file=${await number(address, "lines.pb.gz")}&view=source&function=main`);
	await v.page.reload();
	await v.shown("source");
	ok("text of a source file stays text", (await v.text()).includes("<script>window.pwned=1</script>") && !v.errors.length, v.errors);
	is("and runs nothing", await v.page.evaluate(() => window.pwned), undefined);
	await v.close();
}
// Functions of the same name in two libraries; one that cannot be read.
async function namesakes() {
	const { address } = await serve(["ui", "--no-browser", "namesakes.pb.gz"]), v = await View.open(`${address}#file=0&view=code`);
	const heads = () => v.page.$$eval("#view h2", all => all.map(h => h.textContent)), names = await heads();
	ok("namesakes of two libraries have their libraries' names", names.length === 2 && names.every((name, i) => name.startsWith("work") && name.includes(["a.so", "b.so"][i])), names);
	await v.select(() => v.page.click("#view h2 button >> nth=1"));
	ok("by which a click selects one", (await heads()).join() === names[1] && (await v.text()).includes("/lib/b.so"), await v.text());
	await v.page.route(url => url.pathname.endsWith("code.json") && url.searchParams.get("function") === names[0], route => route.abort());
	await v.page.reload(); // forgets the answers
	await v.shown("code");
	await v.select(() => v.page.click("#chosen button"));
	ok("of which one cannot be read: the other is there", (await heads()).join() === names[1] && (await v.text()).includes(`${names[0]}: `), await v.text());
	await v.close();
}
async function comparison(address) {
	const v = await View.open(`${address}#file=${await number(address, "after.pb.gz")}&view=table`);
	await v.select(() => v.page.selectOption("#base", { label: "before.pb.gz" }));
	ok("a comparison has both sides", (await v.row("leaf_a")).includes("+30.00 % 30.0 % → 60.0 %"), await v.rows());
	ok("more than chance is marked", /▲ more \+\d/.test(await v.row("leaf_a")) && /▼ less -\d/.test(await v.row("leaf_b")), await v.rows());
	ok("what is chance too", (await v.row("same")).includes("chance"), await v.row("same"));
	ok("new and vanished", !!await v.row("new  (new)") && !!await v.row("gone  (vanished)"), await v.rows());
	await shot(v, "compare");
	await v.clickRow("main");
	ok("callees have both sides", (await v.rows("#view table[aria-label=callees] tbody tr")).some(r => r.startsWith("3.00 s → 6.00 s\t60.0 %\tmiddle")),
		await v.rows("#view table[aria-label=callees] tbody tr"));
	await v.page.goBack();
	await v.shown("table");
	await v.tab("graph");
	ok("the flame graph compares, too", (await v.boxes()).some(b => b.name === "gone"), await v.boxes());
	await v.close();
}
async function input() {
	const { child, address } = await serve(["ui", "--no-browser", "-"], {}, fs.openSync(`${dir}/profiles/now.pb.gz`));
	const v = await View.open(`${address}#file=0&view=table`);
	is("standard input", (await v.rows())[0].split("\t").join(" "), "600 ms 60.0 % 600 ms 60.0 % leaf_a program");
	await v.close();
	child.kill("SIGINT");
	await child.ended;
}
async function keyboard(address) {
	const v = await View.open(`${address}#file=${await number(address, "now.pb.gz")}&view=table`);
	await v.page.focus("#view tbody tr");
	await v.page.keyboard.press("ArrowDown");
	await v.select(() => v.page.keyboard.press("Enter"));
	is("by keyboard: a row, Enter", await v.text("#view h2"), "leaf_b");
	await v.select(() => v.page.keyboard.press("2"));
	ok("a digit is a view", v.page.url().includes("view=graph"), v.page.url());
	await v.until(() => document.documentElement.dataset.shown?.startsWith("graph"));
	await v.frame().focus("#canvas");
	await v.select(() => v.page.keyboard.press("3"));
	ok("also from within the flame graph", v.page.url().includes("view=table"), v.page.url());
	await v.page.keyboard.press("?");
	ok("? shows the keys", await v.page.isVisible("#keys"), null);
	await v.page.keyboard.press("Escape");
	await v.select(() => v.page.keyboard.press("Escape"));
	ok("Esc: all functions again", !v.page.url().includes("function="), v.page.url());
	const roles = await v.page.evaluate(() => [document.querySelector("#tabs").role, document.querySelectorAll("[role=tab]").length,
		document.querySelector("[role=tab][aria-selected=true]").id, document.querySelector("#view").role,
		document.querySelector("#view").getAttribute("aria-labelledby")].join());
	is("roles for screen readers", roles, "tablist,9,tab-table,tabpanel,tab-table");
	await v.close();
}
// What axe, a checker of accessibility, finds of weight in each view, light and dark.
async function accessible(address, store) {
	const file = await number(address, "lines.pb.gz"), axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
	for (const colorScheme of ["light", "dark"]) {
		const found = [];
		for (const view of ["files", "graph", "table", "callers", "source&function=main", "source", "code&function=main", "code", "calls", "time", "tracks"]) {
			const at = view === "time" ? `${store}#file=all` : `${address}#file=${file}`;
			const v = await View.open(`${at}&view=${view}${view === "callers" ? "&function=main" : ""}`, WIDE, { colorScheme, bypassCSP: true });
			for (const frame of v.page.frames()) {
				await frame.evaluate(axe);
				const result = await frame.evaluate(() => window.axe.run(document, { iframes: false }));
				found.push(...result.violations.filter(e => ["serious", "critical"].includes(e.impact)).map(e => [view, e.id, e.nodes.length, e.nodes[0].html.slice(0, 160),
					e.nodes[0].failureSummary.slice(0, 200)]));
			}
			await v.close();
		}
		ok(`axe has no finding of weight, ${colorScheme}`, !found.length, found);
	}
}
async function widths(address) {
	const file = await number(address, "after.pb.gz"), base = await number(address, "before.pb.gz");
	for (const [width, colorScheme] of [[400, "dark"], [400, "light"], [700, "dark"], [1000, "dark"], [1000, "light"], [2000, "dark"], [2000, "light"]]) {
		const bad = [];
		for (const view of ["files", "graph", "table", "callers", "source", "code", "calls", "time", "tracks"]) {
			const v = await View.open(`${address}#file=${file}&base=${base}&view=${view}${view === "callers" ? "&function=main" : ""}`,
				{ width, height: 800 }, { colorScheme });
			let over = 0;
			for (const f of v.page.frames())
				over = Math.max(over, await f.evaluate(() => document.documentElement.scrollWidth - innerWidth));
			const errors = v.errors.filter(e => view !== "files" || !/400/.test(e)); // the list has a broken profile
			if (over > 0 || errors.length)
				bad.push([view, over, errors]);
			const named = view === "files" ? await v.page.$eval("#view tbody button.link", b => b.getBoundingClientRect().width) : 100;
			if (named < 60)
				bad.push([view, "a name has no room", named]);
			await shot(v, `${view}-${width}-${colorScheme}`);
			await v.close();
		}
		ok(`${width} px wide, ${colorScheme}: no sideways scrolling, no error`, !bad.length, bad);
	}
}
async function hostile(address) {
	const file = await number(address, HOSTILE + ".pb.gz"), v = await View.open(`${address}#file=${file}&view=table`);
	for (let i = 1; i <= 12; i++) {
		await v.page.evaluate(at => document.querySelectorAll("#view tbody tr")[at]?.click(), i - 1);
		await v.page.waitForTimeout(60);
		await v.tab("source");
		await v.tab("graph");
		await v.tab("table");
		await v.page.evaluate(() => document.querySelector("#chosen button")?.click());
		await v.shown();
	}
	await v.tab("files");
	const bad = await v.page.evaluate(() => window.pwned), made = await v.page.$$eval("img, b, iframe iframe, script:not([src])", all => all.length);
	ok("hostile names of functions, labels, units and files stay text", bad === undefined && made === 0, { bad, made });
	const errors = v.errors.filter(e => !/431|400/.test(e)); // a name of a megabyte is no request
	ok("and make no error", !errors.length, errors);
	const origin = new URL(address).origin;
	ok("nobody else is asked for anything", v.requests.every(r => r.startsWith(origin + "/") || r.startsWith("data:")), v.requests.filter(r => !r.startsWith(origin)));
	await v.page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.pwned=2'>"));
	await v.page.waitForTimeout(100);
	is("were one to get through, the policy runs nothing", await v.page.evaluate(() => window.pwned), undefined);
	await v.close();
}
async function threads(address) {
	const v = await View.open(`${address}#file=${await number(address, "lines.pb.gz")}&view=tracks`), whole = await v.text("#facts");
	ok("a track of the thread, with its id", /^work \d+$/.test((await v.text(".threads")).trim()), await v.text(".threads"));
	await shot(v, "tracks");
	const box = await v.page.locator("#chart").boundingBox();
	await v.select(async () => {
		await v.page.mouse.move(box.x + 20, box.y + 15);
		await v.page.mouse.down();
		await v.page.mouse.move(box.x + box.width / 2, box.y + 15, { steps: 5 });
		await v.page.mouse.up();
	});
	ok("a range that is dragged is the filter of all views", (await v.text("#facts")) !== whole && /\d\d:\d\d\.\d{3}/.test(await v.text("#chosen")), await v.text("#facts"));
	await v.tab("table");
	ok("and of the table", v.page.url().includes("from=") && (await v.row("add")).includes("%"), await v.rows());
	await v.tab("tracks");
	await v.page.focus("#chart");
	const before = v.page.url();
	await v.select(() => v.page.keyboard.press("ArrowRight"));
	ok("an arrow moves it", v.page.url() !== before, v.page.url());
	await v.select(() => v.page.click("#chosen button"));
	is("and all times are there again", await v.text("#facts"), whole);
	await v.select(() => v.page.click(".threads button"));
	ok("a thread's name filters", v.page.url().includes("where=tid%3D"), v.page.url());
	await v.page.goto(`${address}#file=${await number(address, "many.pb")}&view=tracks`);
	await v.page.reload();
	await v.shown("tracks");
	const rows = () => v.page.$$eval(".threads li", all => all.length), names = await rows();
	await v.page.click("#view button:text-is('show 36 more')");
	await v.until(() => document.querySelectorAll(".threads li").length === 100);
	ok("of 100 threads 64 are shown, and a click shows the others", names === 64 && !await v.page.isVisible("#view button:has-text('more')"), names);
	await v.page.keyboard.press("/");
	await v.page.keyboard.type("worker-99");
	await v.until(() => document.querySelectorAll(".threads li").length === 1);
	ok("a search finds one", (await v.text(".threads")).startsWith("worker-99") && (await v.page.evaluate(() => document.activeElement.value)) === "worker-99", await v.text(".threads"));
	await v.page.fill("#search", "none of them");
	await v.until(() => document.querySelector("#view .empty"));
	await v.page.route(/tracks\.json.*thread=fails/, route => route.abort());
	await v.page.fill("#search", "fails");
	await v.until(() => !document.getElementById("problem").hidden);
	const problem = await v.text("#problem");
	await v.page.fill("#search", "");
	await v.until(() => document.querySelectorAll(".threads li").length === 64 && document.getElementById("problem").hidden);
	ok("a search that fails says so, until one succeeds", problem.includes("does not answer"), problem);
	await v.page.goto(`${address}#file=${await number(address, "now.pb.gz")}&view=tracks`);
	await v.page.reload();
	await v.shown("tracks");
	ok("a profile without times says so", (await v.text("#view")).includes("record --timeline"), await v.text("#view"));
	await v.close();
}
async function overTime() {
	const server = await serve(["ui", "--no-browser", "store"]), v = await View.open(server.address);
	await v.select(() => v.page.click("#view button:text-is('all of them, over time')"));
	await v.shown("time");
	ok("over time: all profiles, by service", v.page.url().includes("file=all") && (await v.page.inputValue("#view select")) === "service", v.page.url());
	ok("sums of each", /db 2\.00 s/.test(await v.text(".legend")) && /web 1\.00 s/.test(await v.text(".legend")), await v.text(".legend"));
	await shot(v, "time");
	const steps = Number(/(\d+) steps/.exec(await v.page.getAttribute("#chart", "aria-label"))[1]);
	await drag(v, Math.floor(steps / 2), steps - 1, steps);
	ok("a range that is dragged selects profiles", (await v.text("#facts")).includes("5 profiles added up"), await v.text("#facts"));
	await v.tab("table");
	is("and the table", await v.row("work_db"), "1.50 s 75.0 %\t1.50 s 75.0 %\twork_db\tprogram");
	const link = v.page.url();
	await v.tab("time");
	await drag(v, 0, Math.floor(steps / 2) - 1, steps, { shift: true });
	await v.tab("table");
	ok("with shift the range to compare with", (await v.row("work_db")).includes("50.0 % → 75.0 %") && (await v.row("work_db")).includes("▲ more"), await v.rows());
	await v.tab("time");
	await v.select(() => v.label("service", "web").click());
	ok("a label filters the chart", !/db/.test(await v.text(".legend")), await v.text(".legend"));
	await v.page.focus("#chart");
	await v.select(() => v.page.keyboard.press("ArrowLeft"));
	ok("an arrow moves the range", v.page.url() !== link && (await v.page.evaluate(() => document.activeElement.id)) === "chart", v.page.url());
	await v.tab("files");
	await v.page.check("#view tbody tr >> nth=0 >> input");
	await v.page.check("#view tbody tr >> nth=1 >> input");
	await v.select(() => v.page.click("#view button:text-is('add up 2 profiles')"));
	ok("profiles that are ticked are added up", (await v.text("#title")).includes("2 profiles") && (await v.text("#facts")).includes("2 profiles added up"), await v.text("#about"));
	const again = await View.open(link);
	ok("a link keeps the range", (await again.text("#facts")).includes("5 profiles added up"), link);
	await again.close();
	ok("no error on the way", !v.errors.length, v.errors);
	await v.close();
	server.child.kill("SIGINT");
	is("Ctrl-C ends it", await server.child.ended, 0);
}
async function opens() {
	const path = `${dir}:${process.env.PATH}`;
	const uid = process.getuid() || 65534, sudo = { SUDO_UID: uid, SUDO_GID: uid };
	const { child, address } = await serve(["record", "-q", "--open", "-o", "sudo/opened.pb.gz", "--", "./work"],
		{ PATH: path, DISPLAY: ":77", ...(process.getuid() ? {} : sudo) });
	for (let i = 0; i < 200 * SLOW && !(fs.existsSync(`${dir}/sudo/opened`) && fs.statSync(`${dir}/sudo/opened`).size); i++)
		await new Promise(done => setTimeout(done, 50));
	const [user, ticket] = fs.readFileSync(`${dir}/sudo/opened`, "utf8").trim().split(" "), status = fs.readFileSync(`/proc/${child.pid}/status`, "utf8");
	ok("under sudo page and browser are of the user who called it", user === String(uid) &&
		/^Uid:\s(\d+)\s\1\s\1\s\1$/m.exec(status)[1] === user && /^CapEff:\s0+$/m.test(status), { user, status });
	ok("record --open opens the browser, without the token on its command line", ticket.startsWith(new URL(address).origin) &&
		!ticket.includes(new URL(address).pathname.split("/")[1]), { ticket, address });
	const v = await View.open(ticket);
	ok("which shows the recording", v.page.url().startsWith(address) && (await v.text("#title")).includes("opened.pb.gz"), v.page.url());
	is("the ticket leads to it once", (await ask(ticket)).statusCode, 403);
	await v.page.reload();
	await v.shown();
	await v.close();
	const code = await Promise.race([child.ended, new Promise(done => setTimeout(() => done("it runs"), 60000 * SLOW))]);
	is("it ends some time after the page was closed", code, 0);
}
run(async chromium => {
	browser = chromium;
	const server = await serve(["ui", "--no-browser", "profiles"]), { address } = server;
	await refused(server);
	await View.open(address); // stays open: on a busy machine 15 s without a page pass between two of them
	const v = await View.open(address);
	await list(v);
	const zoomed = await graph(v);
	await table(v);
	await callers(v);
	await labels(v);
	await v.close();
	const again = await View.open(zoomed);
	await again.shown("graph");
	ok("a link keeps the zoom", (await again.boxes()).find(b => b.name === "leaf_a").w > 1000, zoomed);
	await again.close();
	await calls(address);
	await share(address);
	await source(address);
	await namesakes();
	await threads(address);
	await comparison(address);
	await manyPages(address);
	await keyboard(address);
	await input();
	const store = await serve(["ui", "--no-browser", "store"]);
	const held = await View.open(store.address);
	await accessible(address, store.address);
	await held.close();
	store.child.kill("SIGINT");
	await widths(address);
	await overTime();
	await hostile(address);
	server.child.kill("SIGINT");
	is("Ctrl-C ends it, and a page that is open does not keep it", await server.child.ended, 0);
	await opens();
}, end);
