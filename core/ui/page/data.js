// SPDX-License-Identifier: Apache-2.0
// Requests data of a selection from the server, as JSON. Answers are kept, so that equal requests are sent once.
import { query } from "./address.js";

const KEPT = 24, answers = new Map();

async function load(address) {
	let response, data;
	try {
		response = await fetch(address, { cache: "no-store" });
	} catch {
		throw new Error("fusee ui does not answer: it has ended");
	}
	if (response.status === 431)
		throw new Error("the selected name is too long");
	try {
		data = await response.json();
	} catch {
		throw new Error(`fusee ui answers ${response.status}`);
	}
	if (!response.ok)
		throw new Error(data.error);
	return data;
}
function once(address) {
	if (!answers.has(address)) {
		const answer = load(address);
		answer.catch(() => answers.delete(address));
		answers.set(address, answer);
		if (answers.size > KEPT)
			answers.delete(answers.keys().next().value);
	}
	return answers.get(address);
}
export const profiles = () => load("profiles.json");
export const about = selection => once(`about.json?${query({ ...selection, base: null, base_from: "", base_to: "", where: [], function: "" })}`);
export const data = (name, selection) => once(`${name}.json?${query(selection)}`);
// The threads of a profile over time: those with the text in their names or ids, the next after `skip`.
export function threads(selection, text, skip) {
	const p = new URLSearchParams(query({ ...selection, from: "", to: "", base: null }));
	for (const [name, value] of [["thread", text], ["skip", skip]])
		if (value)
			p.set(name, value);
	return once(`tracks.json?${p}`);
}
// The sums over time of all profiles in the span, for each value of the label `by`.
export function overTime(selection, by) {
	const p = new URLSearchParams(query({ ...selection, base: null }));
	for (const [name, value] of [["by", by], ["span_from", selection.span_from], ["span_to", selection.span_to]])
		if (value)
			p.set(name, value);
	return once(`time.json?${p}`);
}
export const firstRange = () => load("range.json");

// A request that stays open as long as the page does: fusee ends when no page has one. As browsers limit the
// connections to a server, one page of several makes it; when that page is closed, the lock goes to another.
async function holdOne() {
	for (;;) {
		try {
			await fetch("open", { cache: "no-store" });
		} catch { /* fusee has closed the connection, or has ended */ }
		await new Promise(done => setTimeout(done, 2000));
	}
}
export function hold() {
	if (navigator.locks) // browsers have it for loopback and https only
		navigator.locks.request("open", holdOne);
	else
		holdOne();
}
