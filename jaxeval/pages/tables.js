// Tables that sort.

/**
 * A table. A column is `{id, title, help, number, value, text, cell, copy, copied}`. Rows are sorted by `value(row)`; null
 * and NaN come last in both directions. `text(row)` is copied, and `cell(row)` is shown (by default the text).
 * `copy: false` leaves the column out of copies; in CSV the columns `copied`, `{title, value}`, take its place.
 * `above(row)` is a line to put above a row, such as "Tier 2", or null. `sort` is the id of a column, with "-" in front if the largest values come first. `press(sort)` asks for another order.
 */
function dataTable({ label, columns, rows, sort, press, rowClass = () => null, above = () => null }) {
	const head = element("tr", {}, ...columns.map((column) => heading(column, sort, press)));
	const lines = rows.flatMap((row, k) => {
		const label = above(row);
		const line = element("tr", { class: rowClass(row, rows[k - 1]) }, ...columns.map((column) => cellOf(column, row)));
		if (label === null) return [line];
		return [element("tr", { class: "label" }, element("td", { colspan: columns.length }, label)), line];
	});
	return element(
		"table",
		{ class: "board", "aria-label": label },
		element("thead", {}, head),
		element("tbody", {}, ...lines),
	);
}

/** Put nodes into a place; a head of a table that had the focus there has it again. */
function replaceIn(place, ...nodes) {
	const focus = place.contains(document.activeElement) ? document.activeElement.dataset.sort : undefined;
	place.replaceChildren(...nodes);
	if (focus) place.querySelector(`[data-sort="${CSS.escape(focus)}"]`)?.focus();
}

/** A column of numbers, the largest first, as `spelled` writes them; `more` is what it has besides. */
function numeric(id, title, value, spelled = fixed, more = {}) {
	return { id, title, number: true, largestFirst: true, value, text: (row) => spelled(value(row)), ...more };
}

/** The column of ranks. */
function rankColumn() {
	return numeric("rank", "Rank", (row) => row.rank, count, { kind: "rank", largestFirst: false });
}

/** The column of models, of which a row is one, or has one. */
function modelColumn(data, modelOf = ({ model }) => model, cellOf = (model) => named(data.models[model].name)) {
	const name = (row) => data.models[modelOf(row)].name;
	const cell = (row) => cellOf(modelOf(row), data);
	const { head } = data.competitor;
	return { id: "model", title: head, rowHeader: true, kind: "model", value: name, text: name, cell };
}

function heading(column, sort, press) {
	const { id, title, help, number: right, value, top } = column;
	const kind = [right ? "number" : "", column.kind ?? ""].join(" ").trim() || null;
	if (!value || !press) return element("th", { scope: "col", class: kind, title: help }, top ?? title);
	const own = sort === id ? "ascending" : sort === `-${id}` ? "descending" : null;
	const sign = element(
		"span",
		{ class: "sign", "aria-hidden": "true" },
		own === null ? "" : own === "ascending" ? "\u2191" : "\u2193",
	);
	const first = column.largestFirst ? `-${id}` : id;
	const next = sort === first ? (column.largestFirst ? id : `-${id}`) : first;
	const press_ = () => press(next);
	return element(
		"th",
		{ scope: "col", class: kind, "aria-sort": own ?? "none", title: help },
		button(title, press_, { class: "sort", "data-sort": id }),
		sign,
	);
}

function cellOf(column, row) {
	const kind = [column.number ? "number" : "", column.kind ?? ""].join(" ").trim() || null;
	const shown = column.cell ? column.cell(row) : column.text(row);
	return column.rowHeader ? element("th", { scope: "row", class: kind }, shown) : element("td", { class: kind }, shown);
}

/** Rows sorted by a column; in their own order if `sort` names no column. */
function sorted(rows, columns, sort) {
	const down = sort.startsWith("-");
	const column = columns.find(({ id, value }) => value && id === (down ? sort.slice(1) : sort));
	if (!column) return rows;
	const missing = (x) => x === null || x === undefined || x === "" || Number.isNaN(x);
	return [...rows].sort((a, b) => {
		const [x, y] = [column.value(a), column.value(b)];
		if (missing(x) || missing(y)) return missing(x) - missing(y);
		const order = typeof x === "string" ? x.localeCompare(String(y), "en", { numeric: true }) : x - y;
		return down ? -order : order;
	});
}
