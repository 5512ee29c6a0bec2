// SPDX-License-Identifier: Apache-2.0
// Clicks through each view of the pages of fusee ui in $SOURCES: [{name, address, begin: of the selection, call: a function}..].
"use strict";
const { ok, run } = require("./browser.js");
const { View } = require("./ui_view.js");
const VIEWS = ["files", "graph", "table", "callers", "source", "code", "calls", "time", "tracks"];

async function one({ name, address, begin, call }) {
	const v = await View.open(`${address}#view=table&${begin}`), wrong = [];
	for (const selected of ["", call]) {
		if (selected) {
			await v.tab("table");
			await v.clickRow(call);
		}
		for (const view of VIEWS) {
			await v.tab(view);
			const problem = await v.page.evaluate(() => {
				const p = document.getElementById("problem"), root = document.getElementById("view");
				return p.hidden ? (root.innerText || root.querySelector("iframe") ? "" : "it is empty") : p.textContent;
			});
			if (problem)
				wrong.push([view, selected, problem]);
		}
	}
	ok(`Chromium: ${name}, each view, with a function and without`, !wrong.length && !v.errors.length, [wrong, v.errors]);
	await v.close();
}
run(async () => {
	for (const source of JSON.parse(process.env.SOURCES))
		await one(source);
});
