// The board: a table to sort, search and filter, with notes and warnings below.

const MOST_CHOICES = 60;
const WIDE = "(min-width: 46rem)";
const MAKERS = /^(organi[sz]ation|maker|developer|provider|company|lab)$/i;
/** Pixels that bars take on a narrow screen, and their share of a wide one. */
const [LEAST_BARS, SHARE_OF_BARS] = [96, 1 / 3];
const MEASURED_ROWS = 40;

/** The board that the reader chose, with or without style control. */
function boardOf(state, data) {
	const named = data.boards.find(({ id }) => id === state.board) ?? data.boards[0];
	const own = otherBoard(named, data, "without") ?? named;
	return (state.style && otherBoard(own, data, "controlled")) || own;
}

/** The board that another one names as its "controlled" or "without". */
function otherBoard(board, data, which) {
	return board[which] === undefined ? null : data.boards.find(({ id }) => id === board[which]);
}

/** The rows of a board that the filters leave, in the order of the board. */
function shownRows(board, state, data) {
	const sought = state.q.trim().toLowerCase();
	const wanted = new Map();
	for (const entry of state.only) {
		const [key, value] = split(entry);
		wanted.set(key, [...(wanted.get(key) ?? []), value]);
	}
	const most = state.most.map(split).map(([key, text]) => [key, Number(text)]);
	return board.rows.filter((row) => {
		const { name, about } = data.models[row.model];
		if (row.votes < state.min) return false;
		for (const [key, end] of most) if (!(about[key] <= end)) return false;
		for (const [key, values] of wanted) if (!values.includes(about[key] ?? "")) return false;
		return (
			sought === "" ||
			name.toLowerCase().includes(sought) ||
			Object.values(about).some((x) => typeof x === "string" && x.toLowerCase().includes(sought))
		);
	});
}

/** "key=value" in two. */
function split(entry) {
	const at = entry.indexOf("=");
	return at < 0 ? [entry, ""] : [entry.slice(0, at), entry.slice(at + 1)];
}

/** Entries "key=value" with one of the key's own, or none where its value is empty. */
function chosenEntries(entries, key, value) {
	const others = entries.filter((entry) => split(entry)[0] !== key);
	return value === "" ? others : [...others, `${key}=${value}`];
}

/** The part of the state that filters rows; all panels of rows share it. */
function filterState() {
	return { q: "", min: 0, only: [], most: [] };
}

/** The fields of a panel, folded on narrow screens: its own, those that filter rows, and `more` at the end. */
function foldedFields(store, data, own = [], more = []) {
	const wide = window.matchMedia(WIDE).matches;
	return element(
		"details",
		{ class: "filters", open: wide },
		element("summary", {}, "Search, filter and copy"),
		element("div", { class: "bar-of-fields" }, ...own, ...filterFields(store, data), ...more),
	);
}

/** Fields that filter rows. */
function filterFields(store, data) {
	const search = element("input", {
		type: "search",
		placeholder: `${data.competitor.head}, organisation \u2026`,
		maxlength: 200,
		oninput: () => store.set({ q: search.value }),
	});
	const fewest = element("input", {
		type: "number",
		min: 0,
		step: 1,
		inputmode: "numeric",
		oninput: () => store.set({ min: Math.max(Number(fewest.value) || 0, 0) }),
	});
	const lists = data.columns
		.filter(({ of, kind }) => of === "model" && kind === "text")
		.flatMap(({ key, title }) => {
			const values = [
				...new Set(data.models.map(({ about }) => about[key]).filter((value) => value !== undefined)),
			].sort((a, b) => a.localeCompare(b, "en"));
			if (values.length < 2 || values.length > MOST_CHOICES) return [];
			const press = () => store.set({ only: chosenEntries(store.get().only, key, list.value) });
			const list = selection([["", "all"], ...values.map((value) => [value, value])], { onchange: press });
			return [{ key, title, list }];
		});
	const ends = data.columns
		.filter(({ of, kind }) => of === "model" && kind === "number")
		.map(({ key, title }) => {
			const own = () => {
				const value = Number.isNaN(Number(field.value)) ? "" : field.value;
				store.set({ most: chosenEntries(store.get().most, key, value) });
			};
			const field = element("input", { type: "number", step: "any", inputmode: "decimal", oninput: own });
			return { key, title, field };
		});
	const show = () => {
		const state = store.get();
		for (const { key, field } of ends) {
			const [, text] = state.most.map(split).find(([name]) => name === key) ?? [key, ""];
			if (document.activeElement !== field) field.value = text;
		}
		if (search.value !== state.q) search.value = state.q;
		if (Number(fewest.value) !== state.min) fewest.value = state.min || "";
		for (const { key, list } of lists) {
			const own = state.only.map(split).find(([name]) => name === key);
			list.value = own ? own[1] : "";
		}
	};
	store.subscribe(show);
	show();
	return [
		labelled("Search", search),
		labelled("Votes, at least", fewest),
		...lists.map(({ title, list }) => labelled(title, list)),
		...ends.map(({ title, field }) => labelled(`${title}, at most`, field)),
	];
}

/** The name of a model as a link, if metadata have its address, after the initial of its maker. */
function modelCell(model, data) {
	const { name, about } = data.models[model];
	const address = data.columns.find(({ of, kind }) => of === "model" && kind === "link");
	const maker = data.columns.find(({ of, kind, key }) => of === "model" && kind === "text" && MAKERS.test(key));
	const shown = about[address?.key] === undefined ? named(name) : linked(about[address.key], name);
	const known = maker && about[maker.key];
	if (!known) return shown;
	const makers = [...new Set(data.models.map(({ about: own }) => own[maker.key]).filter(Boolean))].sort();
	const own = ownColour(makers.indexOf(known) % 8);
	return element(
		"span",
		{ class: "made" },
		element("span", { ...own, class: "maker", title: known, "aria-hidden": "true" }, [...known][0].toUpperCase()),
		shown,
	);
}

/** An interval as a bar on the scale of its board: a line, and a mark at the rating. */
function intervalBar(row, at) {
	const [low, high] = [number(row.lower), number(row.upper)];
	if (row.rating === undefined) return null;
	const clipped = (x) => Math.min(Math.max(at(x), 0), 100);
	const parts = [];
	if (!Number.isNaN(low) && !Number.isNaN(high)) {
		const [left, right] = [clipped(low), clipped(high)];
		parts.push(drawn("rect", { class: "band", x: left, y: 5, width: Math.max(right - left, 0.6), height: 4 }));
	}
	parts.push(drawn("rect", { class: "mark", x: clipped(row.rating) - 0.5, y: 2, width: 1, height: 10 }));
	return drawn(
		"svg",
		{ class: "bar", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" },
		...parts,
	);
}

/** The ends of an interval as distances from the rating: "+12.3 / −10.1". */
function distances(row) {
	const [low, high] = [number(row.lower), number(row.upper)];
	if (row.rating === undefined || Number.isNaN(low) || Number.isNaN(high)) return "";
	return `${signed(high - row.rating)} / ${signed(low - row.rating)}`;
}

/** The rows at which a tier begins, of rows in the order of their ranks. Models without a tier begin no tier. */
function tierStarts(rows) {
	const starts = new Set();
	let last;
	for (const row of rows) {
		if (row.tier === undefined) continue;
		if (last !== undefined && row.tier !== last) starts.add(row);
		last = row.tier;
	}
	return starts;
}

/** The ranks that the votes leave open. */
function rankSet({ best, worst }) {
	return best === undefined ? "" : best === worst ? `${best}` : `${best}\u2013${worst}`;
}

/** How far a model moved since the earlier board, in ranks. */
function rankMove(row) {
	return row.was?.rank === undefined || row.rank === undefined ? NaN : row.was.rank - row.rank;
}

function arrow(places) {
	if (!Number.isFinite(places)) return "";
	return places > 0 ? `\u25b2\u00a0${places}` : places < 0 ? `\u25bc\u00a0${-places}` : "=";
}

function ratingText(rating) {
	return Number.isFinite(rating) ? fixed(rating) : "unrated";
}

/** The columns of a board. */
function boardColumns(board, data) {
	const [low, high] = endsOfBars(board.rows);
	const at = scaleOf(low, high, 1, 99);
	const has = (name) => board.rows.some((row) => row[name] !== undefined);
	const level = data.level ? `${Number((100 * data.level).toPrecision(4))}%` : "";
	const without = otherBoard(board, data, "without");
	const ratings = new Map((without?.rows ?? []).map((row) => [row.model, row]));
	const columns = [
		rankColumn(),
		has("best") && {
			id: "ranks",
			title: "Rank range",
			order: 1,
			kind: "ranks",
			help: `The ranks that the votes leave open to the ${data.competitor.one}, at ${level}`,
			value: (row) => row.best,
			text: rankSet,
			copied: [
				{ title: "Best rank", value: (row) => row.best ?? "" },
				{ title: "Worst rank", value: (row) => row.worst ?? "" },
			],
		},
		modelColumn(data, ({ model }) => model, modelCell),
		numeric("rating", "Rating", (row) => row.rating, ratingText, { kind: "rating" }),
		{
			id: "interval",
			title: level ? `${level} interval` : "Interval",
			number: true,
			order: 2,
			kind: "interval",
			help: "From the rating to the ends of its interval; sorted by width",
			value: (row) => number(row.upper) - number(row.lower),
			text: distances,
			copied: [
				{ title: "Lower", value: (row) => row.lower ?? "" },
				{ title: "Upper", value: (row) => row.upper ?? "" },
			],
		},
		{
			id: "bar",
			title: "",
			kind: "bars",
			copy: false,
			text: () => "",
			cell: (row) => intervalBar(row, at),
			top: axisTop(low, high),
		},
		without &&
			numeric("moved", "Style moves it", (row) => row.rating - (ratings.get(row.model)?.rating ?? NaN), signed, {
				order: 2,
				help: "Rating with style control, less the rating without",
			}),
		has("was") && {
			id: "since",
			title: board.since ? `Since ${board.since}` : "Since the earlier board",
			number: true,
			order: 1,
			kind: "since",
			largestFirst: true,
			help: "Places up or down, and the change of the rating; grey where it is not told from chance",
			value: rankMove,
			text: sinceText,
			cell: sinceCell,
		},
		numeric("votes", "Votes", (row) => row.votes, count, { order: 2 }),
		...data.columns.map((column) => moreColumn(column, data, board)),
		has("tier") &&
			numeric("tier", "Tier", (row) => row.tier, count, {
				largestFirst: false,
				order: 1,
				kind: "tiers",
				help: `${data.competitor.heads} that the votes cannot tell from the first of their tier`,
			}),
		has("flags") && {
			id: "notes",
			title: "Notes",
			kind: "notes",
			order: 1,
			value: (row) => row.flags ?? "",
			text: (row) => row.flags ?? "",
		},
	];
	return columns.filter(Boolean);
}

/** The ends of the scale of bars: those of the ratings, and room for an interval of the usual width at either side. */
function endsOfBars(rows) {
	const rated = rows.filter(({ rating }) => rating !== undefined);
	const halves = rated.map(({ lower, upper }) => (number(upper) - number(lower)) / 2).filter(Number.isFinite);
	const room = halves.sort((a, b) => a - b)[Math.floor(halves.length / 2)] ?? 0;
	const ranked = rated.filter(({ rank }) => rank !== undefined);
	const [low, high] = rangeOf((ranked.length > 1 ? ranked : rated).map(({ rating }) => rating));
	return [low - 1.5 * room, high + 1.5 * room];
}

function axisTop(low, high, decimals = 0) {
	return element("span", { class: "ends" }, ...[low, high].map((end) => element("span", {}, fixed(end, decimals))));
}

/** Words in place of a move; null if a model has a rating now and had one before. */
function stateBefore(row) {
	if (row.rating === undefined) return "";
	return row.was === undefined ? "new" : row.was.rating === undefined ? "was unrated" : null;
}

function sinceText(row) {
	const before = stateBefore(row);
	if (before !== null) return before;
	const moved = signed(row.rating - row.was.rating);
	return [arrow(rankMove(row)), moved && `(${moved})`].filter(Boolean).join(" ");
}

function sinceCell(row) {
	const before = stateBefore(row);
	if (before !== null) return element("span", { class: "new" }, before);
	const [places, moved] = [rankMove(row), row.rating - row.was.rating];
	const said = places > 0 ? `up ${places}` : places < 0 ? `down ${-places}` : "same rank";
	const sure = Math.abs(moved) > row.was.half; // false where nothing is known of its chance
	const kind = sure ? (moved > 0 ? "up" : "down") : "same";
	const chance = row.was.half === undefined ? "" : `, 95% interval \u00b1\u00a0${fixed(row.was.half)}`;
	return element(
		"span",
		{ class: kind, title: `${sure ? "moved" : "not told from chance"}: ${signed(moved)}${chance}` },
		element("span", { "aria-label": said, role: "img" }, arrow(places)),
		" ",
		element("small", {}, signed(moved)),
	);
}

/** A column of metadata or of further numbers; null if no row of the board has a value. */
function moreColumn({ key, title, kind, of }, data, board) {
	const value = (row) => (of === "model" ? data.models[row.model].about[key] : row.more?.[key]);
	if (!board.rows.some((row) => value(row) !== undefined)) return null;
	const shown = { number: count, share: percent }[kind] ?? ((x) => x ?? "");
	const text = (row) => shown(value(row));
	const isNumber = kind === "number" || kind === "share";
	const cell =
		kind === "link"
			? (row) => (value(row) === undefined ? "" : linked(value(row)))
			: kind === "text"
				? (row) => named(text(row))
				: undefined;
	return {
		hidden: kind === "link", // the name leads there
		id: `by-${key}`,
		title,
		number: isNumber,
		kind: "more",
		order: 3,
		largestFirst: isNumber,
		value: (row) => value(row) ?? null,
		text,
		cell,
	};
}

/** Which columns fit `width`: those of a lower order go first, and `chosen` ones stay. */
function fitting(columns, rows, width, chosen) {
	if (chosen.length > 0)
		return new Set(columns.filter(({ id, order }) => !order || chosen.includes(id)).map(({ id }) => id));
	const measure = element("div", { class: "measure", "aria-hidden": "true" });
	measure.append(dataTable({ label: "", columns, rows: rows.slice(0, MEASURED_ROWS), sort: "", press: () => {} }));
	document.body.append(measure);
	const heads = [...measure.querySelectorAll("th[scope=col]")];
	const wide = window.matchMedia(WIDE).matches;
	const widths = columns.map(({ id }, k) => {
		if (id === "bar") return wide ? width * SHARE_OF_BARS : LEAST_BARS;
		return heads[k].offsetWidth;
	});
	measure.remove();
	const inOrder = columns.map((_, k) => k).sort((a, b) => (columns[a].order ?? 0) - (columns[b].order ?? 0));
	const shown = new Set();
	let left = width - 34; // the button of what has no room
	for (const k of inOrder) {
		const { id, order = 0 } = columns[k];
		if (order > 0 && (!wide || widths[k] > left)) continue;
		left -= widths[k];
		shown.add(id);
	}
	return shown;
}

/** A list of columns to show; none chosen means those that fit. */
function columnChooser(store) {
	const list = element("div", { class: "boxes" });
	const node = element("details", { class: "chooser" }, element("summary", {}, "Columns"), list);
	const show = (columns, shown) => {
		const further = columns.filter(({ order }) => order);
		const press = (id, on) => {
			const now = further.filter((column) => shown.has(column.id)).map((column) => column.id);
			store.set({ cols: on ? [...now, id] : now.filter((other) => other !== id) });
		};
		const boxes = further.map(({ id, title }) => {
			const box = element("input", {
				type: "checkbox",
				"aria-label": `Show ${title}`,
				onchange: () => press(id, box.checked),
			});
			box.checked = shown.has(id);
			return ticked(box, title);
		});
		list.replaceChildren(
			...boxes,
			button("Those that fit", () => store.set({ cols: [] })),
		);
	};
	return { node, show };
}

/** A button that opens what the row says beyond the columns shown. */
function moreOf(row, columns, data) {
	const { name } = data.models[row.model];
	const press = () => {
		const line = node.closest("tr");
		const open = node.getAttribute("aria-expanded") === "true";
		node.setAttribute("aria-expanded", !open);
		if (open) {
			line.nextElementSibling.remove();
			return;
		}
		const parts = columns.flatMap((column) => {
			const text = column.text(row);
			return text === "" ? [] : [element("dt", {}, column.title), element("dd", {}, column.cell?.(row) ?? text)];
		});
		const cell = element("td", { colspan: line.children.length }, element("dl", { class: "settings" }, ...parts));
		line.after(element("tr", { class: "more-of" }, cell));
	};
	const node = button("+", press, {
		"aria-label": `More about ${name}`,
		"aria-expanded": "false",
		class: "more-button",
	});
	return node;
}

const boardPanel = {
	id: "board",
	title: "Board",
	state: () => ({ ...filterState(), sort: "rank", pick: [], cols: [] }),
	render(root, store, data) {
		const told = element("p", { class: "told", role: "status" });
		const place = scrolling("The board");
		const below = element("div", { class: "below" });
		let [rows, columns, board] = [[], [], null];
		const buttons = copyButtons(() => ({ columns, rows, title: `${data.title}: ${board.title}` }));
		const chooser = columnChooser(store);
		root.append(foldedFields(store, data, [], [chooser.node, buttons]), told, place, below);

		const draw = () => {
			const state = store.get();
			board = boardOf(state, data);
			columns = boardColumns(board, data);
			rows = sorted(shownRows(board, state, data), columns, state.sort);
			const fits = fitting(
				columns.filter(({ hidden }) => !hidden),
				board.rows,
				place.clientWidth || window.innerWidth - 24,
				state.cols,
			);
			chooser.show(
				columns.filter(({ hidden }) => !hidden),
				fits,
			);
			const [shown, others] = [columns.filter(({ id }) => fits.has(id)), columns.filter(({ id }) => !fits.has(id))];
			const more = { id: "more", title: "More", kind: "opens", copy: false, text: () => "" };
			more.cell = (row) => moreOf(row, others, data);
			place.classList.toggle("fits", state.cols.length === 0);
			const starts = tierStarts(rows);
			const first = starts.size > 0 ? rows.find(({ tier }) => tier !== undefined) : null;
			const inOrder = state.sort === "rank" || state.sort === "-rating";
			replaceIn(
				place,
				dataTable({
					label: `${data.title}: ${board.title}`,
					columns: others.length > 0 ? [...shown, more] : shown,
					rows,
					sort: state.sort,
					press: (sort) => store.set({ sort }),
					rowClass: (row) => (inOrder && starts.has(row) ? "tier" : null),
					above: (row) => (inOrder && (starts.has(row) || row === first) ? `Tier ${row.tier}` : null),
				}),
			);
			const filtered = rows.length < board.rows.length;
			told.textContent = filtered
				? `${count(rows.length)} of ${countedRated(board.rows.length, data)}. Ranks are those among all.`
				: countedRated(board.rows.length, data);
			below.replaceChildren(
				...board.notes.map((note) => element("p", { class: "note" }, note)),
				...warnings(board.warnings),
			);
		};
		let drawnFor = 0;
		const all = () => {
			drawnFor = Math.floor(place.clientWidth);
			draw();
		};
		store.subscribe(all);
		all();
		drawnToWidth(place, (width) => width !== drawnFor && all());
	},
};

/** A list of warnings; no node if there are none. */
function warnings(sentences) {
	if (sentences.length === 0) return [];
	const list = element("ul", {}, ...sentences.map((sentence) => element("li", {}, sentence)));
	return [
		element(
			"details",
			{ class: "warnings", open: sentences.length < 4 },
			element("summary", {}, counted(sentences.length, "warning")),
			list,
		),
	];
}
