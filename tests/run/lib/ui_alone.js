// SPDX-License-Identifier: Apache-2.0
// The page of fusee ui with hostile names through each view, and pages of others that try to reach it.
// usage: node ui_alone.js ADDRESS      of a folder with hostile.pb.gz and names.pb.gz; run by tests/run/ui-alone
"use strict";
const http = require("http");
const [address] = process.argv.slice(2);
const { ok, is, run } = require("./browser.js");
const { ask, number, View } = require("./ui_view.js");
const VIEWS = ["files", "graph", "table", "callers", "source", "code", "calls", "time", "tracks"];
// What no text may have that is shown: it moves the cursor of a terminal, reverses text or hides it. As in core/base/utf8.c.
const BAD = "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
	"\\ufff9-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e007f}]";
let browser;

// All texts and attributes of a page that a person may see or hear, in which something is bad.
function badTexts(bad) {
	const pattern = new RegExp(bad, "u"), found = [];
	const look = (what, text) => text && pattern.test(text) && found.push([what, text.slice(0, 60)]);
	look("title", document.title);
	look("canvas", window.fusee?.svg().match(pattern)?.[0]);
	for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();)
		look(walker.currentNode.parentElement.localName, walker.currentNode.parentElement.localName !== "script" && walker.currentNode.data);
	for (const e of document.querySelectorAll("*"))
		for (const name of ["title", "aria-label", "download", "placeholder"])
			look(`${e.localName} ${name}`, e.getAttribute(name));
	return found;
}
async function hostile(name) {
	const file = await number(address, name), v = await View.open(`${address}#file=${file}&view=table`), bad = [], seen = [];
	const functions = await v.page.evaluate(async at => (await (await fetch(`table.json?file=${at}`)).json()).functions.map(f => f[0]), file);
	const labels = await v.page.evaluate(async at => (await (await fetch(`labels.json?file=${at}`)).json()).labels.map(l => `${l.key}=${l.values[0][0]}`), file);
	for (const view of VIEWS) {
		for (const name of ["", ...functions.filter(f => f.length < 2000)]) {
			const p = new URLSearchParams({ file, view, function: name });
			if (name.length % 2 && labels.length)
				p.append("where", labels[name.length % labels.length]);
			if (name.length % 3 === 0)
				p.set("base", file);
			await v.page.evaluate(hash => {
				delete document.documentElement.dataset.shown;
				location.hash = hash;
			}, String(p));
			await v.shown();
			for (const frame of v.page.frames())
				bad.push(...(await frame.evaluate(badTexts, BAD)).map(b => [view, ...b]));
			seen.push(view);
		}
	}
	ok(`${name}: ${seen.length} views show no control or reversing character`, seen.length >= VIEWS.length * 2 && !bad.length, bad.slice(0, 10));
	await v.page.click("#share");
	bad.push(...await v.page.evaluate(badTexts, BAD));
	ok(`${name}: nor the dialog to share`, !bad.length, bad.slice(0, 10));
	const made = await v.page.$$eval("img, b, iframe iframe, script:not([src])", all => all.length);
	is(`${name}: no name is an element`, made, 0);
	is(`${name}: none is run`, await v.page.evaluate(() => window.pwned), undefined);
	const errors = v.errors.filter(e => !/400|431/.test(e)); // a selection without samples; a name of a megabyte
	ok(`${name}: no error on the way`, !errors.length, errors);
	const origin = new URL(address).origin, others = v.requests.filter(r => !r.startsWith(origin + "/") && !r.startsWith("data:"));
	ok(`${name}: the page requests its own origin alone`, v.requests.length > 20 && !others.length, others);
	await v.close();
}
// A page of another origin that knows even the token, and tries each way to read or to show something of the page.
const EVIL = target => `<!DOCTYPE html><body><script>
const target = ${JSON.stringify(target)}, got = {};
const settle = (name, promise) => promise.then(value => { got[name] = value; }, e => { got[name] = "refused " + e.name; });
const load = (tag, attribute, from) => new Promise(done => {
	const e = document.createElement(tag);
	e[attribute] = from;
	e.onload = () => done("loaded");
	e.onerror = () => done("refused");
	document.body.append(e);
	setTimeout(() => done("refused"), 4000);
});
const frame = document.createElement("iframe");
frame.src = target;
document.body.append(frame);
const opened = window.open(target);
window.all = Promise.all([
	settle("fetch", fetch(target + "profiles.json").then(r => r.text())),
	settle("fetch without CORS", fetch(target + "profiles.json", { mode: "no-cors" }).then(r => r.type + r.status)),
	settle("post", fetch(target + "profiles.json", { method: "POST", body: "x", mode: "no-cors" }).then(r => r.type + r.status)),
	settle("script", load("script", "src", target + "main.js")),
	settle("module", import(target + "main.js").then(() => "loaded")),
	settle("style", load("link", "href", target + "ui.css")),
	settle("image", load("img", "src", target + "share.html?file=0")),
	settle("socket", new Promise(done => {
		const s = new WebSocket(target.replace("http", "ws") + "open");
		s.onopen = () => done("opened");
		s.onerror = () => done("refused");
	})),
	settle("frame", new Promise(done => setTimeout(() => {
		try { done("reads " + frame.contentDocument.title); } catch (e) { done("refused " + e.name); }
	}, 2000))),
	settle("window", new Promise(done => setTimeout(() => {
		try { done("reads " + opened.document.title); } catch (e) { done("refused " + e.name); }
	}, 2000))),
]).then(() => got);
</script>`;
async function foreign() {
	let asked = 0;
	const server = http.createServer((q, a) => { asked++; a.setHeader("content-type", "text/html"); a.end(EVIL(address)); });
	await new Promise(done => server.listen(0, "127.0.0.1", done));
	const context = await browser.newContext(), page = await context.newPage(), errors = [];
	page.on("console", m => errors.push(m.text()));
	await page.goto(`http://127.0.0.1:${server.address().port}/`);
	const got = await page.evaluate(() => window.all), read = Object.entries(got).filter(([, v]) => !/^(refused|opaque0$)/.test(v) && v !== "null" && v !== undefined);
	ok(`a page of another origin, with the token, reads nothing in ${Object.keys(got).length} ways`, asked && Object.keys(got).length === 10 && !read.length, got);
	ok("and cannot show it in a frame", errors.some(e => /frame-ancestors|X-Frame|refused to (display|frame)/i.test(e)) || got.frame.startsWith("refused"), [errors, got.frame]);
	await context.close();
	server.closeAllConnections();
	server.close();
}
// evil.example is 127.0.0.1, as its own name server says once its page is loaded.
async function rebound() {
	const at = address.replace("127.0.0.1", "evil.example"), page = await browser.newPage(), answer = await page.goto(at);
	is("another name for 127.0.0.1, in a browser: 421", answer.status(), 421);
	ok("which has nothing of the page", !(await page.content()).includes("main.js"), await page.content());
	await page.close();
	const { origin } = new URL(address);
	for (const [what, path, headers, status] of [
		["a name that only begins like ours", address, { host: "127.0.0.1.evil.example" }, 421],
		["a name below one of others", address, { host: "localhost.evil.example" }, 421],
		["a path below the page", address + "..%2f..%2fetc/passwd", {}, 404],
		["an address of a network", address, { host: "192.0.2.1" }, 421],
		["a token of another length", `${origin}/00/profiles.json`, {}, 403],
		["the token with a letter more", address.replace(/\/$/, "0/profiles.json"), {}, 403],
		["the token with a letter less", address.replace(/.\/$/, "/profiles.json"), {}, 403],
		["the token in capitals", address.toUpperCase().replace("HTTP", "http"), {}, 403],
		["an Origin of another port", address + "profiles.json", { origin: "http://127.0.0.1:1" }, 403],
		["an Origin of another scheme", address + "profiles.json", { origin: origin.replace("http", "https") }, 403],
		["an Origin that is hidden", address + "profiles.json", { origin: "null" }, 403],
		["a path above the token", address + "%2e%2e/profiles.json", {}, 403],
	]) {
		const got = (await ask(path, headers)).statusCode;
		ok(`${what}: ${status}`, got === status, got);
	}
}
run(async chromium => {
	browser = chromium;
	await hostile("hostile.pb.gz");
	await hostile("names.pb.gz");
	await foreign();
	await rebound();
}, () => {}, ["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
