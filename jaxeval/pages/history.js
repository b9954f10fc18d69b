// Ratings and ranks from board to board, if dated boards were kept.

const MOST_LINES = 8;

const historyPanel = {
	id: "history",
	title: "History",
	available: (data) => data.boards.some(({ history }) => history && history.dates.length > 1),
	state: () => ({ ...filterState(), of: "rating" }),
	render(root, store, data) {
		const kinds = choice({
			label: "What is drawn",
			options: [
				{ id: "rating", title: "Ratings" },
				{ id: "rank", title: "Ranks" },
			],
			choose: (of) => store.set({ of }),
		});
		const told = element("p", { class: "told" });
		const place = element("figure", { class: "chart" });
		root.append(foldedFields(store, data, [kinds.node]), told, place);
		const again = drawnToWidth(place, (width) => {
			const state = store.get();
			const board = boardOf(state, data);
			const of = state.of === "rank" ? "rank" : "rating";
			kinds.show(of);
			if (!board.history) {
				told.textContent = "No earlier boards of these votes were kept.";
				place.replaceChildren();
				return;
			}
			const rows = shownRows(board, state, data).filter(({ model }) => board.history.models[model] !== undefined);
			const shown = rows.slice(0, MOST_LINES);
			told.textContent =
				rows.length > shown.length
					? `The first ${shown.length} of ${countedRated(rows.length, data)}: search or filter for others.`
					: "";
			place.replaceChildren(
				historyChart(board.history, shown, of, data, width),
				historyTable(board.history, shown, of, data),
			);
		});
		store.subscribe(again);
	},
};

function historyChart(history, rows, of, data, width) {
	const times = history.dates.map((date) => Date.parse(date));
	const valuesOf = (model, name) => (history.models[model][name] ?? []).map((value) => value ?? NaN);
	const series = rows.map(({ model }) => valuesOf(model, of));
	const ends = rows.map(({ model }) =>
		of === "rating" ? ["lower", "upper"].map((end) => valuesOf(model, end)) : [[], []],
	);
	const [low, high] = rangeOf([series, ends].flat(3));
	const names = Math.min(Math.max(width * 0.24, 90), 220);
	const height = 360;
	const x = scaleOf(times[0], times.at(-1), 46, width - names - 10);
	const y = of === "rank" ? scaleOf(low, high, 16, height - 30) : scaleOf(low, high, height - 30, 16);
	const ticks = roundTicks(low, high, 6).filter((tick) => of === "rating" || Number.isInteger(tick));
	const parts = levels(ticks, y, 40, width - names - 6);
	const every = Math.max(Math.ceil(times.length / Math.max(Math.floor((width - names) / 120), 2)), 1);
	times.forEach((time, k) => {
		if (k % every === 0)
			parts.push(written("tick", x(time), height - 8, k === 0 ? "start" : "middle", history.dates[k]));
	});
	const places = apart(
		series.map((values) => y(values.findLast(Number.isFinite))),
		14,
	);
	rows.forEach(({ model }, k) => {
		const known = series[k].map((value, t) => [times[t], value]).filter(([, value]) => Number.isFinite(value));
		if (known.length === 0) return;
		const own = ownColour(k);
		const at = (value, t) => `${x(times[t]).toFixed(1)} ${y(value).toFixed(1)}`;
		const inside = times.map((_, t) => t).filter((t) => ends[k].every((end) => Number.isFinite(end[t])));
		const [under, over] = ends[k].map((end) => inside.map((t) => at(end[t], t)));
		if (inside.length > 1)
			parts.push(drawn("path", { ...own, class: "spread", d: `M${[...under, ...over.reverse()].join("L")}Z` }));
		const path = known
			.map(([time, value], t) => `${t ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`)
			.join("");
		const { name } = data.models[model];
		parts.push(drawn("path", { ...own, class: "line", d: path }, drawn("title", {}, name)));
		for (const [time, value] of known)
			parts.push(
				drawn(
					"circle",
					{ ...own, class: "dot", cx: x(time), cy: y(value), r: 2.5 },
					drawn(
						"title",
						{},
						`${name}: ${fixed(value, of === "rank" ? 0 : 1)}, ${new Date(time).toISOString().slice(0, 10)}`,
					),
				),
			);
		parts.push(
			drawn(
				"text",
				{ ...own, class: "name-of-line", x: width - names, y: places[k] + 4 },
				shortened(name, Math.floor(names / 7)),
			),
		);
	});
	const said = `${of}s of ${countedRated(rows.length, data)} over time; the table below has the numbers`;
	return figureOf(width, height, said, parts);
}

/** Positions near the given ones that are at least `least` apart. */
function apart(positions, least) {
	const order = positions.map((_, k) => k).sort((a, b) => positions[a] - positions[b]);
	const moved = [...positions];
	for (let k = 1; k < order.length; k += 1) moved[order[k]] = Math.max(moved[order[k]], moved[order[k - 1]] + least);
	return moved;
}

function historyTable(history, rows, of, data) {
	const columns = history.dates.map((date, k) =>
		numeric(date, date, (row) => history.models[row.model][of][k] ?? NaN, of === "rank" ? count : fixed),
	);
	const label = `${of}s over time`;
	return scrolling("Over time", dataTable({ label, columns: [modelColumn(data), ...columns], rows, sort: "" }));
}
