// All ratings with their intervals on one axis, and a rule between tiers.

const intervalsPanel = {
	id: "intervals",
	title: "Intervals",
	state: () => filterState(),
	render(root, store, data) {
		const place = element("figure", { class: "chart" });
		root.append(foldedFields(store, data), place);
		const again = drawnToWidth(place, (width) => {
			const state = store.get();
			const board = boardOf(state, data);
			place.replaceChildren(intervalChart(shownRows(board, state, data), data, width));
		});
		store.subscribe(again);
	},
};

const LINE = 20;

function intervalChart(all, data, width) {
	const rows = all.filter((row) => row.rating !== undefined);
	const names = Math.min(Math.max(width * 0.34, 110), 300);
	const bounds = rows.flatMap((row) => [number(row.lower), row.rating, number(row.upper)]);
	const [low, high] = rangeOf(bounds);
	const [left, right] = [names + 8, width - 12];
	const x = scaleOf(low, high, left + 6, right);
	const clipped = (value) => Math.min(Math.max(x(value), left), right + 8);
	const height = 34 + rows.length * LINE + 24;
	const parts = [];
	for (const tick of roundTicks(low, high, width / 110)) {
		parts.push(drawn("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 26, y2: height - 24 }));
		for (const y of [16, height - 8]) parts.push(written("tick", x(tick), y, "middle", count(tick)));
	}
	const starts = tierStarts(rows);
	rows.forEach((row, k) => {
		const y = 34 + k * LINE + LINE / 2;
		const name = data.models[row.model].name;
		if (starts.has(row))
			parts.push(drawn("line", { class: "rule", x1: 0, x2: width, y1: y - LINE / 2, y2: y - LINE / 2 }));
		parts.push(written("label", names, y + 4, "end", shortened(name, Math.floor(names / 7.6))));
		const [a, b] = [number(row.lower), number(row.upper)];
		if (!Number.isNaN(a) && !Number.isNaN(b))
			parts.push(drawn("line", { class: "interval", x1: clipped(a), x2: clipped(b), y1: y, y2: y }));
		parts.push(drawn("circle", { class: "point", cx: x(row.rating), cy: y, r: 3.5 }));
		const said = `${name}: ${fixed(row.rating)} ${distances(row)}`;
		parts.push(drawn("rect", { class: "touch", x: 0, y: y - LINE / 2, width, height: LINE }, drawn("title", {}, said)));
	});
	const said = `Ratings and intervals of ${countedRated(rows.length, data)}, best first; the board has the numbers`;
	return figureOf(width, height, said, parts);
}

/** A text without its middle if it has more than `most` characters. */
function shortened(text, most) {
	const signs = [...text];
	if (signs.length <= most) return text;
	const half = Math.floor(most / 2);
	return `${signs.slice(0, half).join("")}\u2026${signs.slice(signs.length - (most - half - 1)).join("")}`;
}
