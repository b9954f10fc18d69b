// Results other than leaderboards, section by section: sentences, and tables to sort and copy.

const resultsPanel = {
	id: "results",
	title: "Results",
	available: (data) => (data.results ?? []).length > 0,
	state: (data) => ({ part: data.results[0].id, by: "" }),
	render(root, store, data) {
		const parts = choice({
			label: "Parts",
			options: data.results,
			choose: (part) => store.set({ part, by: "" }),
		});
		const place = element("div", { class: "part" });
		if (data.results.length > 1) root.append(element("div", { class: "bar-of-fields" }, parts.node));
		root.append(place);
		const draw = () => {
			const state = store.get();
			const part = data.results.find(({ id }) => id === state.part) ?? data.results[0];
			parts.show(part.id);
			const columns = resultColumns(part);
			const rows = Array.from({ length: part.n_rows }, (_, k) => ({ k }));
			const shown = sorted(rows, columns, state.by);
			const nodes = [
				element("h2", {}, named(part.title)),
				...(part.notes.length > 1
					? [element("ul", { class: "findings" }, ...part.notes.map((line) => element("li", {}, line)))]
					: part.notes.map((line) => element("p", {}, line))),
				...warnings(part.warnings),
			];
			nodes.push(...(part.figures ?? []).map((src) => element("img", { class: "figure", src, alt: part.title })));
			if (part.sliding) nodes.push(...slidingTable(part.sliding));
			if (rows.length > 0) {
				const table = dataTable({
					label: part.title,
					columns,
					rows: shown,
					sort: state.by,
					press: (by) => store.set({ by }),
				});
				nodes.push(
					copyButtons(() => ({ columns, rows: shown, title: part.title })),
					scrolling(part.title, table),
				);
			}
			if (part.left_out) nodes.push(element("p", { class: "note" }, part.left_out));
			replaceIn(place, ...nodes);
		};
		store.subscribe(draw);
		draw();
	},
};

/** A field to slide along, and the table of where it stands. */
function slidingTable({ label, texts, tables }) {
	const place = scrolling(label);
	const said = element("output", {}, "");
	const draw = () => {
		const at = Number(field.value);
		const rows = Array.from({ length: tables[at].n_rows }, (_, k) => ({ k }));
		said.textContent = texts[at];
		field.setAttribute("aria-valuetext", texts[at]);
		place.replaceChildren(dataTable({ label, columns: resultColumns(tables[at]), rows, sort: "" }));
	};
	const field = element("input", { type: "range", min: 0, max: texts.length - 1, oninput: () => draw() });
	field.value = Math.floor(texts.length / 2);
	draw();
	return [element("div", { class: "sliding" }, labelled(label, field), said), place];
}

/** The columns of a part for `dataTable`; a row is `{k}`, its position. */
function resultColumns(part) {
	return part.columns.map(({ title, text, value, bar, name }, k) => {
		const shown = ({ k: row }) => text[row];
		if (bar) {
			const ends = ["lower", "upper", "estimate"].map((end) => bar[end].map(number));
			const [low, high] = rangeOf(ends.flat());
			const at = scaleOf(low, high, 0, 100);
			const cell = ({ k: row }) =>
				intervalBar({ lower: ends[0][row], upper: ends[1][row], rating: finite(ends[2][row]) }, at);
			return { id: `c${k}`, title, kind: "bars", copy: false, text: () => "", cell, top: axisOf(low, high) };
		}
		return {
			id: `c${k}`,
			title: title || "Name",
			number: value !== undefined,
			largestFirst: value !== undefined,
			rowHeader: name,
			kind: value === undefined ? "words" : null,
			value: value ? ({ k: row }) => number(value[row]) : shown,
			text: shown,
			cell: value ? undefined : (row) => named(shown(row)),
		};
	});
}

function finite(x) {
	return Number.isFinite(x) ? x : undefined;
}

/** The ends of the scale of bars, with as many digits as they need. */
function axisOf(low, high) {
	return axisTop(low, high, high - low > 20 ? 0 : high - low > 1 ? 1 : 2);
}
