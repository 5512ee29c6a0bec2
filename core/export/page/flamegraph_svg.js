// SPDX-License-Identifier: Apache-2.0
// The flame graph as a picture for other programs: what is drawn, with the canvas's calls written down as SVG.

const MARKUP = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" };
// Also without the characters that XML does not have.
const markup = text => String(text).replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "?").replace(/[&<>"]/g, c => MARKUP[c]);
function recorder(out, real) {
	const n = v => Number(v.toFixed(2));
	const opacity = r => r.globalAlpha < 1 ? ` opacity="${r.globalAlpha}"` : "";
	return {
		fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1,
		measureText: text => real.measureText(text),
		fillRect(x, y, w, h) {
			const fill = typeof this.fillStyle === "string" ? markup(this.fillStyle) : "url(#hatch)";
			out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${fill}"${opacity(this)}/>`);
		},
		strokeRect(x, y, w, h) {
			out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="none" stroke="${markup(this.strokeStyle)}" stroke-width="${this.lineWidth}"/>`);
		},
		fillText(text, x, y) {
			out.push(`<text x="${n(x)}" y="${n(y)}" fill="${markup(this.fillStyle)}"${opacity(this)}>${markup(text)}</text>`);
		},
	};
}
function svgText() {
	const out = [], real = paper, height = rowsDrawn() * ROW + 6;
	paper = recorder(out, real);
	try {
		for (const b of boxes())
			drawBox(b, 0);
	} finally {
		paper = real;
	}
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${state.width}" height="${height}" font-family="${markup(FONT)}" font-size="12">\n` +
		`<title>${markup(document.title)}</title>\n<style>text { dominant-baseline: central; white-space: pre }</style>\n<defs><pattern id="hatch" width="6" height="6" ` +
		`patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="#000" stroke-opacity=".6"/></pattern></defs>\n` +
		`<rect width="100%" height="100%" fill="${isDark() ? "#16171a" : "#fdfdfc"}"/>\n${out.join("\n")}\n</svg>\n`;
}
