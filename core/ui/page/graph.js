// SPDX-License-Identifier: Apache-2.0
// The flame graph: the page of `fusee report --flamegraph` in a frame. Its state is part of this page's address.
import { canGoBack, query, select, selection } from "./address.js";

let shown = null, frame = null, written = "";
export const zoomed = { name: "", onchange: () => {} };

function host(onKey) {
	return {
		address: () => selection.graph,
		save(to, step) {
			written = to;
			select({ graph: to }, step);
		},
		canGoBack,
		back: () => history.back(),
		zoomed(name) {
			zoomed.name = name;
			zoomed.onchange();
		},
		selected: () => selection.function,
		picked: name => select({ function: name }),
		key: onKey,
	};
}
export async function showGraph(root, current, onKey) {
	const data = query(current);
	if (frame?.isConnected && shown === data) {
		if (current.graph !== written) // the browser's button has changed the address
			frame.contentWindow.fusee?.restore();
		written = current.graph;
		return;
	}
	const before = current.follow && frame?.isConnected ? frame : null; // is seen until the new one is ready
	zoomed.name = "";
	shown = data;
	written = current.graph;
	frame = document.createElement("iframe");
	frame.title = "flame graph";
	frame.fusee = host(onKey);
	const loaded = new Promise(done => { frame.onload = done; });
	frame.src = `graph.html?${data}`;
	if (before) {
		frame.className = "next";
		root.append(frame);
	} else {
		root.replaceChildren(frame);
	}
	const own = frame;
	await loaded;
	if (own !== frame) // a newer one is being loaded
		return;
	for (const other of root.querySelectorAll("iframe"))
		if (other !== own)
			other.remove();
	own.className = "";
	if (own.contentDocument && !own.contentDocument.getElementById("canvas"))
		throw new Error(problem(own.contentDocument.body.textContent));
}
function problem(text) {
	try {
		return JSON.parse(text).error;
	} catch {
		return text;
	}
}
