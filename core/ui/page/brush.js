// SPDX-License-Identifier: Apache-2.0
// Selects a range of time in a chart, by dragging or by keys; with shift the range to compare with.
import { svg } from "./element.js";
import { LEFT, TOP } from "./chart.js";

export class Brush {
	// scale: {start, step: ms, steps}; picked(from, to, isBase); left: where the steps begin
	constructor(root, scale, width, height, picked, left = LEFT) {
		Object.assign(this, { root, scale, width, picked, left });
		this.marks = ["base", "own"].map(name => svg("rect", { y: TOP, height, width: 0, x: left, class: `range ${name}` }));
		root.append(...this.marks);
		root.onpointerdown = e => this.begin(e);
		root.onkeydown = e => this.key(e);
	}
	stepAt(e) {
		const x = e.clientX - this.root.getBoundingClientRect().left - this.left;
		return Math.max(0, Math.min(this.scale.steps - 1, Math.floor(x / this.width * this.scale.steps)));
	}
	show(isBase, from, to) {
		const { start, step, steps } = this.scale, x = ms => Math.max(0, Math.min(this.width, (ms - start) / (step * steps) * this.width));
		const mark = this.marks[isBase ? 0 : 1];
		mark.setAttribute("x", this.left + x(from));
		mark.setAttribute("width", Math.max(0, x(to) - x(from)));
	}
	begin(e) {
		if (e.button)
			return;
		const first = this.stepAt(e), { start, step } = this.scale, isBase = e.shiftKey;
		let range = null;
		const move = event => {
			const at = this.stepAt(event);
			range = [start + Math.min(first, at) * step, start + (Math.max(first, at) + 1) * step];
			this.show(isBase, ...range);
		};
		move(e);
		this.root.setPointerCapture(e.pointerId);
		this.root.onpointermove = move;
		this.root.onpointerup = () => {
			this.root.onpointermove = this.root.onpointerup = null;
			this.picked(...range, isBase);
		};
		e.preventDefault();
		this.root.focus();
	}
	// Left and right move the range by a step; up and down make it longer and shorter.
	key(e) {
		const { start, step, steps } = this.scale, [from, to] = this.range ?? [start, start + step * steps];
		const moved = { ArrowLeft: [-1, -1], ArrowRight: [1, 1], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
		if (!moved || e.ctrlKey || e.altKey || e.metaKey)
			return;
		const a = Math.max(start, from + moved[0] * step), b = Math.min(start + step * steps, to + moved[1] * step);
		if (b - a >= step)
			this.picked(a, b, e.shiftKey);
		e.preventDefault();
	}
}
