// SPDX-License-Identifier: Apache-2.0
// Numbers as text: for the flame graph page and the pages of `fusee ui`.
const rounded = (v, digits) => v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
// Three significant digits with the unit that suits.
function scaled(v, units) {
	let k = 0;
	while (k + 1 < units.length && Math.abs(v) >= units[k + 1][0])
		k++;
	const n = v / units[k][0], a = Math.abs(n);
	return rounded(n, a >= 100 || units[k][0] === 1 ? 0 : a >= 10 ? 1 : 2) + " " + units[k][1];
}
const UNITS = {
	nanoseconds: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
	microseconds: [[1, "µs"], [1e3, "ms"], [1e6, "s"]],
	milliseconds: [[1, "ms"], [1e3, "s"]],
	bytes: [[1, "B"], [1024, "KiB"], [1 << 20, "MiB"], [1 << 30, "GiB"]],
};
function amountOf(v, unit) {
	const units = Object.hasOwn(UNITS, unit) && UNITS[unit];
	if (!v || !units)
		return rounded(v, 0) + (v && unit !== "count" ? " " + printable(unit) : "");
	return scaled(v, units);
}
const share = (v, of) => of ? 100 * v / of : 0;
const percent = (v, of) => rounded(share(v, of), Math.abs(share(v, of)) >= 9.95 ? 1 : 2) + " %";
const signed = (n, text) => (n > 0 ? "+" : "") + text;
const points = n => signed(n, rounded(n, 2)) + " %";
const fileName = path => path.slice(path.lastIndexOf("/") + 1);
// Control characters, and those that are invisible but change how others are shown, as U+FFFD: those of core/base/utf8.c.
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;
const printable = s => s.replace(HIDDEN, "\ufffd");
const clipped = s => s.length > 600 ? s.slice(0, 300) + " … " + s.slice(-290) : s;
const short = s => printable(clipped(s));
