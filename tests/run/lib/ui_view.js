// SPDX-License-Identifier: Apache-2.0
// The page of fusee ui as tests use it: servers of $FUSEE, and a page with its views.
"use strict";
const { spawn } = require("child_process");
const http = require("http");
const { Page, WIDE, SLOW } = require("./browser.js");

// Servers in a folder; end() ends those that are left.
function serving(dir) {
	const servers = [];
	async function serve(args, env = {}, stdin = "ignore") {
		const child = spawn(process.env.FUSEE, args, { cwd: dir, env: { ...process.env, ...env }, stdio: [stdin, "pipe", "pipe"] });
		let out = "", err = "";
		child.stderr.on("data", text => { err += text; });
		child.ended = new Promise(done => child.on("exit", code => done(code)));
		servers.push(child);
		const address = await new Promise(done => {
			child.stdout.on("data", text => {
				out += text;
				const line = /^http:\/\/\S+$/m.exec(out); // behind what a recorded program has printed
				if (line && out.endsWith("\n"))
					done(line[0]);
			});
			child.on("exit", () => done(""));
		});
		if (!address)
			throw new Error(`fusee ${args.join(" ")} has ended: ${err}`);
		return { child, address, origin: new URL(address).origin };
	}
	return { serve, end: () => servers.forEach(child => child.kill("SIGKILL")) };
}
function ask(address, headers) {
	return new Promise((done, fail) => http.get(address, { headers }, answer => {
		answer.resume();
		answer.on("end", () => done(answer));
	}).on("error", fail));
}
class View extends Page {
	static async open(address, viewport = WIDE, options = {}) {
		const v = new View();
		await v.begin(viewport, options);
		await v.page.goto(address);
		await v.shown();
		return v;
	}
	// Until the page says so. Not waitForFunction(), which evaluates a text: the policy does not allow that.
	async until(what, arg) {
		for (const end = Date.now() + 20000 * SLOW; Date.now() < end; await new Promise(done => setTimeout(done, 20)))
			if (await this.page.evaluate(what, arg))
				return;
		throw new Error(`it never comes: ${what}`);
	}
	// Until the view that was selected is there.
	async shown(view = "") {
		await this.until(name => document.documentElement.dataset.shown?.startsWith(name), view);
		return this.painted();
	}
	async tab(name) {
		await this.page.click(`#tab-${name}`);
		await this.shown(name);
	}
	text(selector = "#view") {
		return this.page.innerText(selector);
	}
	// Rows of the table that is shown, their cells by tabs.
	rows(selector = "#view tbody tr") {
		return this.page.$$eval(selector, all => all.map(tr => [...tr.cells].map(td => td.textContent.trim()).join("\t")));
	}
	async row(name, selector = "#view tbody tr") {
		return (await this.rows(selector)).find(r => r.split("\t").some(cell => cell === name || cell.startsWith(name + "  ("))) || "";
	}
	// Selects something, and waits for what it changes.
	async select(click) {
		const before = await this.page.evaluate(() => location.hash);
		await click();
		await this.until(hash => location.hash !== hash && document.documentElement.dataset.shown, before);
		await this.shown();
	}
	clickRow(name) {
		return this.select(() => this.page.click(`#view tr[title='${name}']`));
	}
	label(key, text) {
		return this.page.locator(`#labels ul[aria-label='${key}'] button`, { hasText: text }).first();
	}
	frame() {
		return this.page.frames().find(f => f.url().includes("graph.html"));
	}
	// The frames of the flame graph that are drawn, where they are in the window.
	async boxes() {
		const r = await this.page.$eval("iframe", f => f.getBoundingClientRect().toJSON());
		const list = await this.frame().evaluate(() => {
			const { state, functions } = window.fusee, c = document.getElementById("canvas").getBoundingClientRect();
			return state.boxes.map(b => ({ name: b.i ? functions[state.tree.fn[b.i]].name : "all", w: b.w, value: state.tree.value[b.i],
				x: c.left + b.x + b.w / 2, y: c.top + b.row * 19 + 9 }));
		});
		return list.map(b => ({ ...b, x: b.x + r.x, y: b.y + r.y }));
	}
	async box(name) {
		const all = await this.boxes(), b = all.find(box => box.name === name);
		if (!b)
			throw new Error(`no frame ${name}: ${all.map(box => box.name)}`);
		return b;
	}
}

// Drags over steps of the chart, of n.
async function drag(v, first, last, n, options = {}) {
	const r = await v.page.$eval("#chart", e => e.getBoundingClientRect().toJSON()), left = 76, width = r.width - left;
	const x = step => r.x + left + width * (step + 0.5) / n;
	await v.select(async () => {
		if (options.shift)
			await v.page.keyboard.down("Shift");
		await v.page.mouse.move(x(first), r.y + 50);
		await v.page.mouse.down();
		await v.page.mouse.move(x(last), r.y + 60, { steps: 4 });
		await v.page.mouse.up();
		if (options.shift)
			await v.page.keyboard.up("Shift");
	});
}
// The number of a profile of the list.
async function number(address, name) {
	const { files } = await (await fetch(address + "profiles.json")).json();
	return files.find(f => f.name === name).file;
}
module.exports = { ask, drag, number, serving, View };
