// SPDX-License-Identifier: Apache-2.0
// Saves what is shown as a file: a profile, folded text, a page of its own, or the view's picture.
import { query, selection } from "./address.js";
import { $, button, element, svg } from "./element.js";
import { nameOf } from "./files.js";
import { short } from "./numbers.js";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor", "paint-order", "opacity"];

// A name for files, without characters that file systems refuse.
function stem(s) {
	const name = s.file === null ? "fusee" : nameOf(s.file).replace(/\.(pb\.gz|pprof|pb|perf)$/, "");
	return name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+/, "").slice(0, 80) || "fusee";
}
function save(name, type, text) {
	const link = element("a"), address = URL.createObjectURL(new Blob([text], { type }));
	link.href = address;
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(address), 60000);
}
// A copy of the picture that has its styles as attributes.
function standalone(picture) {
	const copy = picture.cloneNode(true), from = [picture, ...picture.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
	from.forEach((e, i) => {
		const style = getComputedStyle(e);
		for (const name of STYLES)
			to[i].setAttribute(name, style.getPropertyValue(name));
		for (const name of ["class", "tabindex", "id", "role"])
			if (e.tagName !== "marker" || name !== "id")
				to[i].removeAttribute(name);
	});
	const [x, y, width, height] = (copy.getAttribute("viewBox") ?? `0 0 ${copy.getAttribute("width")} ${copy.getAttribute("height")}`).split(" ");
	copy.prepend(svg("rect", { x, y, width, height, fill: getComputedStyle(document.body).backgroundColor }));
	return new XMLSerializer().serializeToString(copy);
}
function pictureOf() {
	const frame = document.querySelector("#view iframe");
	if (frame)
		return frame.contentWindow.fusee?.svg();
	const picture = document.querySelector("#view svg");
	return picture && standalone(picture);
}
function link(text, path, name) {
	const a = element("a", text), li = element("li");
	a.href = `${path}?${query(selection)}`;
	a.download = name;
	li.append(a);
	return li;
}
export function openShare() {
	const name = stem(selection), list = $("files-to-save"), compared = selection.base !== null;
	list.replaceChildren(link(`profile, for pprof and others${compared ? " (without what it is compared with)" : ""}`, "share.pb.gz", `${name}.pb.gz`),
		link("folded text, for flame graph tools", "share.folded", `${name}.folded`),
		link("flame graph and functions, one page without a server", "share.html", `${name}.html`));
	if (pictureOf()) {
		const li = element("li");
		li.append(button("picture of this view (SVG)", () => save(`${name}.svg`, "image/svg+xml", pictureOf()), "link"));
		list.append(li);
	}
	$("share-what").textContent = short([...selection.where, ...(selection.function ? [`function ${selection.function}`] : [])].join(", ") || "all samples");
	$("share-dialog").showModal();
}
