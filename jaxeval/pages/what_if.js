// What if: the reader leaves votes out, or fixes the scale in another way, and the browser fits the ratings again.

const DROPPED = [
	["votes", "all votes"],
	["wins", "wins of the first"],
	["ties", "ties"],
	["losses", "wins of the second"],
];
const MOST_MODELS_TOLD = 8;
const LEFT_OUT_ON_PHONES = new Set(["interval", "was", "votes", "notes"]);

/** The votes of a board, unpacked once. */
const unpacking = new WeakMap();
function votesOf(board) {
	if (!unpacking.has(board)) unpacking.set(board, unpackVotes(board));
	return unpacking.get(board);
}

async function unpackVotes({ pairs, offsets }) {
	const votes = await unpackPairs(pairs);
	return offsets ? { ...votes, offsets: await unpackOffsets(offsets) } : votes;
}

/** The votes that a reader may leave out by one press, unpacked once, as a part to take off those of a board. */
async function leverOf(board, title) {
	const lever = board.levers?.find((own) => own.title === title);
	return lever ? { votes: await votesOf(lever), models: lever.pairs.models, sign: -1 } : null;
}

/** Changes by one press: `{id, title, state}`. */
function leversOf(board, data) {
	const title = (id) => data.boards.find((other) => other.id === id).title;
	const none = { lever: "", ties: "half", parts: [] };
	const pool = board.pool ?? { ids: [] };
	return [
		{ id: "", title: "All votes", state: none },
		{ id: "ties", title: "Without ties", state: { ...none, ties: "drop" } },
		...(board.levers ?? []).map((own) => ({
			id: own.title,
			title: `Without ${own.title}`,
			state: { ...none, lever: own.title },
		})),
		...pool.ids
			.filter((id) => id !== board.id)
			.map((id) => ({
				id: `of ${id}`,
				title: `${pool.kind === "add" ? "Only" : "Without"} votes of ${title(id)}`,
				state: { ...none, parts: [id] },
			})),
	];
}

/** Names of models for addresses, with a number if two names are equal. */
function keysOf(data) {
	const taken = new Set();
	return data.models.map(({ name }, k) => {
		const key = taken.has(name) || name === "" ? `${name} #${k}` : name;
		taken.add(key);
		return key;
	});
}

/** What the reader asks for. Addresses are input: unknown models and boards are ignored. */
function askedFor(state, board, keys) {
	const number = new Map(keys.map((key, k) => [key, k]));
	const own = board.pairs.models;
	const boards = board.pool ? board.pool.ids : [];
	const chosen = state.parts.filter((id) => boards.includes(id));
	const drops = state.drop.flatMap((entry) => {
		const [what, times, ...pair] = entry.split("\t");
		const [a, b] = pair.map((key) => number.get(key));
		const n = times === "all" ? null : Number(times);
		const sound =
			DROPPED.some(([kind]) => kind === what) && a !== undefined && b !== undefined && a !== b && pair.length === 2;
		return sound && (n === null || (Number.isInteger(n) && n > 0)) ? [{ entry, what, n, a, b }] : [];
	});
	const gauges = { mean: "mean", votes: "votes", model: "model" };
	const anchor = number.get(state.anchor);
	const given = board.gauge;
	let gauge = { kind: gauges[state.gauge] ?? null, model: anchor, rating: state.at };
	if (gauge.kind === null || (gauge.kind === "model" && anchor === undefined)) gauge = { ...given };
	return {
		parts: board.pool?.kind === "take" ? chosen.slice(0, 1) : chosen,
		without: state.without.filter((key) => number.has(key)).map((key) => number.get(key)),
		ties: state.ties === "drop" ? "drop" : "half",
		lever: (board.levers ?? []).some(({ title }) => title === state.lever) ? state.lever : "",
		drops,
		gauge,
		models: own,
	};
}

/** Votes of all boards that the reader chose; models are numbers on the page. */
async function chosenVotes(asked, board, data) {
	const at = async (own, sign) => ({ votes: await votesOf(own), models: own.pairs.models, sign });
	const chosen = asked.parts.map((id) => data.boards.find((other) => other.id === id));
	const whole = board.pool?.kind === "add" && chosen.length > 0 ? chosen : [board];
	const off = whole === chosen ? [] : chosen;
	const parts = await Promise.all([
		...whole.map((own) => at(own, 1)),
		...off.map((own) => at(own, -1)),
		...whole.map((own) => leverOf(own, asked.lever)),
	]);
	const found = parts.filter(Boolean);
	return found.length > 1 ? pooledVotes(found) : { models: found[0].models, votes: found[0].votes };
}

/** The fit of votes in a gauge; models are numbers on the page. If the gauge's model has no rating, the mean is 1000. */
function refitted(models, votes, change, gauge, reweight) {
	const place = new Map(models.map((model, k) => [model, k]));
	const drops = change.drops.map((drop) => ({ ...drop, a: place.get(drop.a) ?? -1, b: place.get(drop.b) ?? -1 }));
	const without = change.without.flatMap((model) => place.get(model) ?? []);
	const left = changedVotes(votes, { without, ties: change.ties, drops });
	const fit = fitVotes(left, reweight);
	const anchor = place.get(gauge.model);
	const lost = gauge.kind === "model" && !fit.active[anchor];
	const scale = lost ? { kind: "mean", rating: 1000 } : { ...gauge, model: anchor };
	const { ratings, errors } = ratedBoard(fit, scale);
	const rows = models.map((model, k) => ({
		model,
		rating: ratings[k],
		error: errors[k],
		votes: fit.battles[k],
		standing: fit.standing[k],
		component: fit.component[k],
	}));
	const total = fit.battles.reduce((sum, n) => sum + n, 0) / 2;
	return { rows: rows.filter(({ votes: n }) => n > 0), total, converged: fit.converged, lost, left, models };
}

/** Ranks among finite ratings, best first, by model. */
function ranksOf(rows) {
	const rated = rows.filter(({ rating }) => Number.isFinite(rating)).sort((a, b) => b.rating - a.rating);
	const rank = new Map();
	rated.forEach(({ model, rating }, k) =>
		rank.set(model, k > 0 && rated[k - 1].rating === rating ? rank.get(rated[k - 1].model) : k + 1),
	);
	return rank;
}

/**
 * The rows of a refit, and how far each model moved. Only models that both boards rate are compared, with equal means, so
 * that a change of the anchor alone moves nobody. ``half`` is half the 95% interval of a move: of ``nested`` votes the
 * variances are taken off each other (Hausman 1978), of others they add up.
 */
function withMoves(rows, before, nested) {
	const old = new Map(before.filter(({ rating }) => Number.isFinite(rating)).map((row) => [row.model, row]));
	const both = rows.filter(({ model, rating }) => Number.isFinite(rating) && old.has(model));
	const shift = both.reduce((sum, { model, rating }) => sum + rating - old.get(model).rating, 0) / both.length;
	const [now, then] = [ranksOf(both), ranksOf(both.map(({ model }) => old.get(model)))];
	const rank = ranksOf(rows);
	return rows
		.map((row) => {
			const common = now.has(row.model);
			const was = old.get(row.model);
			const square = nested ? Math.abs(row.error ** 2 - was?.error ** 2) : row.error ** 2 + was?.error ** 2;
			return {
				...row,
				rank: rank.get(row.model),
				was: was?.rating ?? NaN,
				half: common ? NORMAL_95 * Math.sqrt(square) : NaN,
				moved: common ? row.rating - old.get(row.model).rating - shift : NaN,
				places: common ? then.get(row.model) - now.get(row.model) : NaN,
			};
		})
		.sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
}

function whatIfColumns(data) {
	const half = (row) => NORMAL_95 * row.error;
	const has = (row) => row.error > 0; // votes that are all ties show no variance
	return [
		rankColumn(),
		modelColumn(data),
		numeric("rating", "Rating", (row) => row.rating, ratingText, { kind: "rating" }),
		{
			id: "interval",
			title: "95% interval",
			number: true,
			kind: "interval",
			help: "1.96 sandwich errors to either side",
			value: (row) => (has(row) ? row.error : NaN),
			text: (row) => (has(row) ? `\u00b1 ${fixed(half(row))}` : ""),
			copied: [
				{ title: "Lower", value: (row) => (has(row) ? row.rating - half(row) : "") },
				{ title: "Upper", value: (row) => (has(row) ? row.rating + half(row) : "") },
			],
		},
		numeric("was", "All votes", (row) => row.was, fixed, { help: "The rating of all votes of the board" }),
		numeric("moved", "Rating moved", (row) => row.moved, signed, {
			help: `Against all votes, with equal means of the ${data.competitor.many} that both rate; grey where it is not told from chance`,
			cell: movedCell,
		}),
		numeric("places", "Places", (row) => row.places, arrow, {
			help: `Places up or down among the ${data.competitor.many} that both rate`,
			cell: placesCell,
		}),
		numeric("votes", "Votes", (row) => row.votes, count),
		{ id: "notes", title: "Notes", kind: "notes", value: (row) => row.standing, text: (row) => row.standing },
	];
}

/** Whether a rating moved by more than chance gives. */
function hasMoved({ moved, half }) {
	return Math.abs(moved) > half && Math.abs(moved) >= 0.05;
}

function movedCell(row) {
	const kind = hasMoved(row) ? (row.moved > 0 ? "up" : "down") : "same";
	const title = Number.isFinite(row.half) ? `95% interval \u00b1\u00a0${fixed(row.half)}` : null;
	return element("span", { class: kind, title }, signed(row.moved));
}

/** A sentence on what a change of votes moves. */
function saidOfMoves(rows, data) {
	const told = rows.filter(hasMoved).sort((a, b) => Math.abs(b.moved) - Math.abs(a.moved));
	const places = rows.filter(({ places }) => places).length;
	if (rows.every(({ moved }) => !(Math.abs(moved) >= 0.05))) return "";
	const first = told.slice(0, 3).map((row) => `${data.models[row.model].name} ${signed(row.moved)}`);
	const most = first.length
		? `${countedRated(told.length, data)} moved by more than chance gives, most of all ${first.join(", ")}`
		: `No ${data.competitor.one} moved by more than chance gives`;
	return `${most}; ${count(places)} changed places.`;
}

function placesCell(row) {
	const { places } = row;
	if (!Number.isFinite(places)) return "";
	const said = places > 0 ? `up ${places}` : places < 0 ? `down ${-places}` : "same place";
	return element(
		"span",
		{
			class: !hasMoved(row) ? "same" : places > 0 ? "up" : places < 0 ? "down" : "same",
			"aria-label": said,
			role: "img",
		},
		arrow(places),
	);
}

/** Sentences on a refit: the number of its votes, and what they cannot say. */
function saidOf(found, data, since) {
	const { one, many } = data.competitor;
	const names = (models) => {
		const told = models
			.slice(0, MOST_MODELS_TOLD)
			.map((model) => data.models[model].name)
			.join(", ");
		return models.length > MOST_MODELS_TOLD ? `${told} and ${models.length - MOST_MODELS_TOLD} more` : told;
	};
	const of = (test) => found.rows.filter(test).map(({ model }) => model);
	const took = Math.max(Math.round(performance.now() - since), 1);
	const lines = [
		`Fitted ${counted(found.total, "vote")} between ${countedRated(found.rows.length, data)} in ${took} ms.`,
	];
	const problems = [];
	const say = (models, text) => models.length > 0 && problems.push(`${names(models)}: ${text}`);
	if (found.rows.length === 0) problems.push("No vote is left.");
	else if (!found.rows.some(({ standing }) => standing === ""))
		problems.push(
			`No two ${many} took points off each other, directly or through others: no ${one} has a finite rating.`,
		);
	else {
		say(
			of(({ standing, component }) => standing !== "" && component > 1),
			"never met the main group, not even through others: no rating that compares.",
		);
		const near = (why) => of(({ standing, component }) => standing === why && component === 1);
		say(near("undefeated"), "never lost a point to the main group: no finite rating.");
		say(near("winless"), "never took a point off the main group: no finite rating.");
		say(near("not comparable"), "no chain of wins both ways with the main group: no comparable rating.");
	}
	if (!found.converged)
		problems.push(`The fit did not converge: the votes hardly determine the ratings of some ${many}.`);
	if (found.lost)
		problems.push(`The ${one} that was to fix the scale has no rating here: the mean rating is 1000 instead.`);
	return { lines, problems };
}

const whatIfPanel = {
	id: "what-if",
	title: "What if",
	available: (data) => (data.boards ?? []).some(({ pairs, what_if: why }) => pairs || why),
	state: () => ({
		parts: [],
		lever: "",
		without: [],
		ties: "half",
		drop: [],
		gauge: "table",
		anchor: "",
		at: 1000,
		order: "rank",
	}),
	render(root, store, data) {
		const keys = keysOf(data);
		const columns = whatIfColumns(data);
		const levers = element("div", { class: "boards" });
		const controls = element("div", { class: "what-if-controls" });
		const more = element("details", {}, element("summary", {}, "Change more votes, or the scale"), controls);
		const moved = element("p", { class: "moved", role: "status" });
		const told = element("p", { class: "told", role: "status" });
		const problems = element("div", {});
		const place = scrolling("Ratings of the refit");
		let [rows, turn, shownFor] = [[], 0, null];
		let [fields, lever] = [null, null];
		const press = (id) => store.set(lever.options.find((own) => own.id === id).state);
		const wide = window.matchMedia(WIDE);
		wide.addEventListener("change", () => draw());
		const title = () => `${data.title}: ${boardOf(store.get(), data).title}, refitted`;
		const copies = copyButtons(() => ({ columns, rows, title: title() }));
		const kinds = element("p", { class: "note" });
		const refitter = element(
			"div",
			{},
			levers,
			more,
			moved,
			element("div", { class: "bar-of-fields" }, told, copies),
			problems,
			place,
			kinds,
		);
		const off = element("p", { class: "note", role: "status" });
		root.append(off, refitter);

		const draw = async () => {
			const state = store.get();
			const board = boardOf(state, data);
			const why =
				board.what_if ?? (board.pairs ? null : "What-if is off for this board: the page holds no votes by pair.");
			off.hidden = why === null;
			refitter.hidden = why !== null;
			off.textContent = why ?? "";
			if (why !== null) return;
			if (shownFor !== board.id) {
				fields = whatIfFields(store, data, board, keys);
				controls.replaceChildren(...fields.nodes);
				shownFor = board.id;
				const options = leversOf(board, data);
				lever = { options, ...choice({ label: "Ratings of", options, choose: press }) };
				levers.replaceChildren(lever.node);
				kinds.textContent = kindsOf(board, data);
			}
			const asked = askedFor(state, board, keys);
			const alike = ({ state: own }) =>
				own.ties === asked.ties && own.lever === asked.lever && own.parts.join() === asked.parts.join();
			lever.show(lever.options.find(alike)?.id ?? null);
			if (asked.without.length || asked.drops.length || !lever.options.some(alike)) more.open = true;
			const own = ++turn;
			const [{ models, votes }, before] = [await chosenVotes(asked, board, data), await votesOf(board)];
			if (own !== turn) return; // the reader went on
			fields.show(asked, votesAmong(models, votes));
			if (models.length > MOST_REFITTED) {
				told.textContent = `These categories have ${countedRated(models.length, data)} together; the browser refits up to ${MOST_REFITTED}.`;
				problems.replaceChildren();
				place.replaceChildren();
				return;
			}
			const since = performance.now();
			const found = refitted(models, votes, asked, asked.gauge, board.reweight);
			const usual = tableFit(board, before);
			const other = board.pool?.kind === "add" && asked.parts.length > 0;
			const fewer = asked.ties === "drop" || asked.lever || asked.without.length || asked.drops.length;
			rows = withMoves(found.rows, usual, !other || (asked.parts.includes(board.id) && !fewer));
			moved.textContent = saidOfMoves(rows, data);
			const said = saidOf(found, data, since);
			told.textContent = said.lines.join(" ");
			problems.replaceChildren(...warnings(said.problems));
			replaceIn(
				place,
				dataTable({
					label: "Ratings of the refit",
					columns: wide.matches ? columns : columns.filter(({ id }) => !LEFT_OUT_ON_PHONES.has(id)),
					rows: sorted(rows, columns, state.order),
					sort: state.order,
					press: (order) => store.set({ order }),
				}),
			);
		};
		store.subscribe(draw);
		draw();
	},
};

/** What the intervals of refits are, and what they keep. */
function kindsOf(board, data) {
	const { many } = data.competitor;
	const kept = board.offsets
		? ` Control is fixed at its estimate from all votes of the board (${board.controls.join(", ")}): refits keep what it adds to each vote, and these intervals take it as known.`
		: "";
	const short = (board.levers ?? []).map(
		({ title, words }) => ` ${title[0].toUpperCase()}${title.slice(1)}: ${words}.`,
	);
	return `These intervals are of another kind than those of the table: 1.96 sandwich errors to either side, which take votes as independent. Moves compare the ${many} that both boards rate, with equal means, so that a change of the scale alone moves nobody.${kept}${short.join("")}`;
}

/** The board's own votes, fitted as the table's ratings are. */
const tableFits = new WeakMap();
function tableFit(board, votes) {
	if (!tableFits.has(board)) {
		const nothing = { without: [], ties: "half", drops: [] };
		tableFits.set(board, refitted(board.pairs.models, votes, nothing, board.gauge, board.reweight).rows);
	}
	return tableFits.get(board);
}

/** A function that gives the votes of two models as the first one sees them. */
function votesAmong(models, votes) {
	const place = new Map(models.map((model, k) => [model, k]));
	return (a, b) => votesOfPair(votes, place.get(a) ?? -1, place.get(b) ?? -1);
}

/** The fields of this panel. `show(asked, votesOfTwo)` writes the state into them and keeps the focus. */
function whatIfFields(store, data, board, keys) {
	const modelName = (model) => data.models[model].name;
	const inOrder = board.rows.map(({ model }) => model).filter((model) => board.pairs.models.includes(model));
	const rest = board.pairs.models.filter((model) => !inOrder.includes(model));
	const others = (board.pool?.ids ?? []).flatMap(
		(id) => data.boards.find((other) => other.id === id).pairs?.models ?? [],
	);
	const all = [...new Set([...inOrder, ...rest, ...(board.pool?.kind === "add" ? others : [])])];
	const titleOf = (id) => data.boards.find((other) => other.id === id).title;
	const entries = all.map((model) => [keys[model], modelName(model)]);
	const modelList = (attributes = {}) => selection(entries, attributes);
	const removable = (text, label, press) =>
		element("li", {}, element("bdi", {}, text), " ", button("\u00d7", press, { "aria-label": label, class: "remove" }));
	const nodes = [];
	const shows = [];

	const { pool } = board;
	if (pool?.kind === "add" && pool.ids.length > 1) {
		const boxes = pool.ids.map((id) => {
			const box = element("input", { type: "checkbox", value: id, onchange: changed });
			return { id, box, node: ticked(box, titleOf(id)) };
		});
		function changed() {
			const parts = boxes.filter(({ box }) => box.checked).map(({ id }) => id);
			const usual = parts.length === 1 && parts[0] === board.id;
			if (parts.length === 0)
				this.checked = true; // some votes are needed
			else store.set({ parts: usual ? [] : parts });
		}
		const every = button("All", () => store.set({ parts: pool.ids }));
		nodes.push(
			group("Votes of the categories", element("div", { class: "boxes" }, ...boxes.map(({ node }) => node)), every),
		);
		shows.push(({ parts }) =>
			boxes.forEach(({ id, box }) => (box.checked = parts.length > 0 ? parts.includes(id) : id === board.id)),
		);
	}
	if (pool?.kind === "take" && pool.ids.length > 0) {
		const list = selection([["", "none"], ...pool.ids.map((id) => [id, titleOf(id)])], {
			onchange: () => store.set({ parts: list.value === "" ? [] : [list.value] }),
		});
		nodes.push(
			group(
				"Categories",
				labelled("Leave out", list),
				element("p", { class: "note" }, "Categories overlap: one of them can be left out at a time."),
			),
		);
		shows.push(({ parts }) => (list.value = parts[0] ?? ""));
	}

	const waysOfTies = [
		["half", "count as half a win"],
		["drop", "are left out"],
	];
	const ties = selection(waysOfTies, { onchange: () => store.set({ ties: ties.value }) });
	nodes.push(group("Ties", labelled("Ties", ties)));
	shows.push((asked) => (ties.value = asked.ties));

	const gone = element("ul", { class: "chips", "aria-label": `${data.competitor.heads} left out` });
	const out = modelList();
	const leave = button("Leave out", () => store.set({ without: [...new Set([...store.get().without, out.value])] }));
	nodes.push(group(data.competitor.heads, labelled(data.competitor.head, out), leave, gone));
	shows.push(({ without }) => {
		const back = (key) => () => {
			store.set({ without: store.get().without.filter((other) => other !== key) });
			out.focus();
		};
		gone.replaceChildren(
			...without.map((model) => removable(modelName(model), `Put ${modelName(model)} back`, back(keys[model]))),
		);
	});

	const [first, second] = [modelList({ onchange: tell }), modelList({ onchange: tell })];
	if (all.length > 1) second.selectedIndex = 1;
	const what = selection(DROPPED, { onchange: tell });
	const times = element("input", { type: "number", min: 1, step: 1, inputmode: "numeric", placeholder: "all" });
	const theirs = element("p", { class: "note", role: "status" });
	const dropped = element("ul", { class: "chips", "aria-label": "Votes left out" });
	let votesOfTwo = () => [0, 0, 0];
	function tell() {
		times.disabled = what.value === "votes";
		const [a, b] = [first, second].map((list) => keys.indexOf(list.value));
		const [wins, even, losses] = votesOfTwo(a, b);
		theirs.textContent =
			a === b
				? `Choose two ${data.competitor.many}.`
				: `${modelName(a)} against ${modelName(b)}: ${count(wins)} won, ${count(even)} tied, ${count(losses)} lost.`;
	}
	const drop = button("Drop", () => {
		const n = times.disabled || times.value === "" ? "all" : String(Math.floor(Number(times.value)));
		if (first.value === second.value || (n !== "all" && !(Number(n) > 0))) return;
		const entry = [what.value, n, first.value, second.value].join("\t");
		store.set({ drop: [...store.get().drop.filter((other) => other !== entry), entry] });
	});
	nodes.push(
		group(
			"Votes of a pair",
			labelled("First", first),
			labelled("Second", second),
			labelled("Drop", what),
			labelled("How many", times),
			drop,
			theirs,
			dropped,
		),
	);
	shows.push(({ drops }, ask) => {
		votesOfTwo = ask;
		tell();
		const back = (entry) => () => {
			store.set({ drop: store.get().drop.filter((other) => other !== entry) });
			first.focus();
		};
		dropped.replaceChildren(
			...drops.map((own) => {
				const text = dropText(own, modelName);
				return removable(text, `Count again: ${text}`, back(own.entry));
			}),
		);
	});

	const gauges = [
		["table", "as in the table"],
		["mean", "mean rating"],
		["votes", "mean rating, weighted by votes"],
		["model", `rating of ${data.competitor.a_one}`],
	];
	const scale = selection(gauges, {
		onchange: () => store.set({ gauge: scale.value, anchor: scale.value === "model" ? anchor.value : "" }),
	});
	const anchor = modelList({ onchange: () => store.set({ anchor: anchor.value }) });
	const at = element("input", { type: "number", step: "any", onchange: () => store.set({ at: usable(at.value) }) });
	const anchorField = labelled(data.competitor.head, anchor);
	const atField = labelled("Rating", at);
	nodes.push(group("Scale", labelled("Fixed by", scale), anchorField, atField));
	shows.push(({ gauge }) => {
		const state = store.get();
		const usual =
			state.gauge === "table" ||
			!["mean", "votes", "model"].includes(state.gauge) ||
			(state.gauge === "model" && keys[gauge.model] !== state.anchor);
		scale.value = usual ? "table" : state.gauge;
		anchorField.hidden = scale.value !== "model";
		atField.hidden = usual;
		if (state.gauge === "model" && !usual) anchor.value = state.anchor;
		if (document.activeElement !== at) at.value = state.at;
	});

	const reset = button("Start again", () => store.set(whatIfPanel.state()));
	nodes.push(element("div", { class: "bar-of-fields" }, reset));
	return { nodes, show: (...asked) => shows.forEach((show) => show(...asked)) };
}

/** The rating that a reader typed; 1000 if it is no usable number. */
function usable(text) {
	const x = Number(text);
	return text.trim() !== "" && Math.abs(x) <= 1e9 ? x : 1000;
}

function group(title, ...children) {
	return element("fieldset", {}, element("legend", {}, title), ...children);
}

/** "3 wins of A against B". */
function dropText({ what, n, a, b }, modelName) {
	const [first, second] = what === "losses" ? [b, a] : [a, b];
	const one = { votes: "vote", ties: "tie", wins: "win", losses: "win" }[what];
	const many = n === null ? `all ${one}s` : counted(n, one);
	return what === "wins" || what === "losses"
		? `${many} of ${modelName(first)} against ${modelName(second)}`
		: `${many} between ${modelName(a)} and ${modelName(b)}`;
}
