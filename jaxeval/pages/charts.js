// Axes and marks that figures share.

/** A figure of its parts, with what it says to those who do not see it. */
function figureOf(width, height, said, parts) {
	const box = { width, height, viewBox: `0 0 ${width} ${height}` };
	return drawn("svg", { ...box, role: "img", "aria-label": said }, ...parts);
}

/** A text of a figure. `anchor` is "start", "middle" or "end". */
function written(kind, x, y, anchor, text) {
	return drawn("text", { class: kind, x, y, "text-anchor": anchor }, text);
}

/** Lines from `left` to `right` at ticks of the height `y`, with their numbers at the left. */
function levels(ticks, y, left, right) {
	return ticks.flatMap((tick) => [
		drawn("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
		written("tick", left - 6, y(tick) + 4, "end", count(tick)),
	]);
}

/** A function from data to pixels. */
function scaleOf(low, high, from, to) {
	const span = high - low || 1;
	return (x) => from + ((x - low) / span) * (to - from);
}

/** Round numbers from `low` to `high`, about as many as wanted. */
function roundTicks(low, high, wanted) {
	const rough = (high - low) / Math.max(wanted, 1);
	if (!(rough > 0)) return [low];
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
	const ticks = [];
	for (let k = Math.ceil(low / step); k * step <= high; k += 1) ticks.push(k * step);
	return ticks;
}

/** The smallest and the largest finite number; 0 and 1 where there is none. */
function rangeOf(values) {
	let [low, high] = [Infinity, -Infinity];
	for (const x of values) {
		if (!Number.isFinite(x)) continue;
		low = Math.min(low, x);
		high = Math.max(high, x);
	}
	return low > high ? [0, 1] : low === high ? [low - 1, high + 1] : [low, high];
}

/** Call `draw(width)` now, and when the element becomes wider or narrower. */
function drawnToWidth(root, draw) {
	let last = 0;
	const again = () => {
		const width = Math.floor(root.clientWidth);
		if (width > 0 && width !== last) {
			last = width;
			draw(width);
		}
	};
	new ResizeObserver(again).observe(root);
	return () => {
		last = 0;
		again();
	};
}
