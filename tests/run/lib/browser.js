// SPDX-License-Identifier: Apache-2.0
// What scripts that look at pages share: TAP on stdout, a browser, a page whose errors are kept.
"use strict";
const { chromium } = require("playwright-core");
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	"--disable-background-networking", "--disable-component-update", "--disable-sync"];
const WIDE = { width: 1600, height: 900 };
const SLOW = Math.max(1, Number(process.env.FUSEE_CHECK_SLOWNESS) || 1);
let n = 0, failed = 0, browser;

function ok(name, good, why) {
	n++;
	failed += good ? 0 : 1;
	console.log(`${good ? "ok" : "not ok"} ${n} - ${name}`);
	if (!good)
		console.log("# got: " + JSON.stringify(why)?.slice(0, 1500));
}
const is = (name, got, wanted) => ok(name, got === wanted, { got, wanted });

// A page of the browser: what goes wrong in it is in errors, what it asks for in requests.
class Page {
	async begin(viewport = WIDE, options = {}) {
		this.page = await browser.newPage({ viewport, ...options });
		this.page.setDefaultTimeout(20000 * SLOW);
		this.errors = [];
		this.requests = [];
		this.page.on("pageerror", e => this.errors.push(String(e)));
		this.page.on("console", m => m.type() === "error" && this.errors.push(m.text()));
		this.page.on("dialog", d => { this.errors.push("dialog"); d.dismiss(); });
		this.page.on("request", r => this.requests.push(r.url()));
	}
	painted() {
		return this.page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
	}
	close() {
		return this.page.close();
	}
}

// Runs the checks in a browser, prints the plan and exits; end() comes whatever happens.
async function run(checks, end = () => {}, args = []) {
	try {
		browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: [...ARGS, ...args] });
		await checks(browser);
	} catch (e) {
		ok(String(e.stack || e).split("\n").slice(0, 4).join(" "), false, null);
	}
	end();
	if (browser)
		await browser.close();
	console.log(`1..${n}`);
	process.exit(failed ? 1 : 0);
}
module.exports = { ok, is, Page, run, WIDE, SLOW };
