// Heat maps of pairs: who beats whom, who met whom, and where votes and ratings disagree.

const MAPS = [
	{ id: "win", title: "Expected points of the row, %" },
	{ id: "battles", title: "Battles" },
	{ id: "misfit", title: "Points beyond expectation, standard errors" },
];
const TOPS = [10, 20, 40, 100, 300];
const USUAL_TOP = 20;
const LABEL_WIDTH = 190;
const TOP_HEIGHT = 22;
const [SMALLEST_CELL, LARGEST_CELL] = [3, 38];
/** Colours from low to high; colour-blind readers can tell red from blue, too. */
const SCALES = {
	light: {
		two: ["#a50f26", "#e0785a", "#fbdccb", "#f5f5f5", "#d3e5f1", "#62a3cd", "#1b5a9e"],
		one: ["#eaf1f8", "#b9d1e7", "#6f9fcb", "#2f6aa8", "#0d3a6b"],
		ink: "#1b1f24",
		faint: "#e4e7ea",
		mark: "#000000",
	},
	dark: {
		two: ["#ff8573", "#c24f42", "#6a322d", "#2b2f35", "#25476a", "#3b80bd", "#84c4ff"],
		one: ["#252b33", "#264768", "#2f6ca6", "#5aa0dd", "#bfe1fc"],
		ink: "#e6e8eb",
		faint: "#3a3f46",
		mark: "#ffffff",
	},
};

/** The expected points of a battle, a tie counting half, by the difference of two ratings. */
function expectedPoints(law, difference) {
	const d = difference / law.unit;
	const logistic = (x) => 1 / (1 + Math.exp(-x));
	if (law.name === "probit") return normalShare(d);
	if (law.name === "davidson") {
		const [win, tie, loss] = [Math.exp(d / 2), Math.exp(law.tie), Math.exp(-d / 2)];
		return (win + tie / 2) / (win + tie + loss);
	}
	if (law.name === "rao_kupper") return (1 + logistic(d - law.tie) - logistic(-d - law.tie)) / 2;
	return logistic(d);
}

/** The normal distribution function, to 1e-7 (Abramowitz and Stegun 7.1.26). */
function normalShare(x) {
	const z = Math.abs(x) / Math.SQRT2;
	const t = 1 / (1 + 0.3275911 * z);
	const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
	const beyond = (series * Math.exp(-z * z)) / 2;
	return x > 0 ? 1 - beyond : beyond;
}

/** The point below which the normal distribution has a share, by bisection. */
function normalQuantile(share) {
	let [low, high] = [-9, 9];
	for (let k = 0; k < 50; k++) {
		const middle = (low + high) / 2;
		if (normalShare(middle) < share) low = middle;
		else high = middle;
	}
	return (low + high) / 2;
}

/** A function of two models that gives their votes as the first one sees them, or null if they never met. */
function pairLookup(votes, models) {
	const place = new Map(models.map((model, k) => [model, k]));
	const row = new Map();
	for (let p = 0; p < votes.first.length; p++) row.set(votes.first[p] * votes.size + votes.second[p], p);
	return (a, b) => {
		const [i, j] = [place.get(a), place.get(b)];
		if (i === undefined || j === undefined || i === j) return null;
		const turned = i > j;
		const p = row.get(turned ? j * votes.size + i : i * votes.size + j);
		if (p === undefined) return null;
		if (votes.count === null) {
			const [n, total, won] = [votes.battles[p], votes.total[p], votes.won[p]];
			return { battles: n, total, won: turned ? total - won : won, square: total ** 2 / n, outcomes: null };
		}
		const of = (columns) => {
			const own = columns.map((column) => column[p]);
			return turned ? own.reverse() : own;
		};
		const [outcomes, weights] = [of(votes.count), of(votes.weight)];
		const sum = (values) => values.reduce((all, x) => all + x, 0);
		return {
			battles: sum(outcomes),
			total: sum(weights),
			won: weights[0] + weights[1] / 2,
			square: sum(of(votes.square)),
			outcomes,
		};
	};
}

/** A colour between those of a scale, at a share of its length. */
function colourAt(stops, share) {
	const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
	const k = Math.min(Math.floor(at), stops.length - 2);
	const [from, to] = [stops[k], stops[k + 1]].map((hex) =>
		[1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16)),
	);
	const mixed = from.map((x, c) => Math.round(x + (at - k) * (to[c] - x)));
	return { text: `rgb(${mixed.join(",")})`, light: 0.2126 * mixed[0] + 0.7152 * mixed[1] + 0.0722 * mixed[2] > 118 };
}

/** The cells of a map: values, their places on the scale of colours, and the ends of the scale. */
function heatOf(kind, models, board, ratings, lookup) {
	const values = models.map((a) =>
		models.map((b) => {
			if (a === b) return NaN;
			const pair = lookup?.(a, b) ?? null;
			if (kind === "battles") return pair ? pair.battles : 0;
			const expected = board.law ? expectedPoints(board.law, ratings.get(a) - ratings.get(b)) : NaN;
			if (kind === "win") return expected;
			return pair ? (pair.won - pair.total * expected) / Math.sqrt(pair.square * expected * (1 - expected)) : NaN;
		}),
	);
	if (kind === "win") {
		const far = (x) => (Number.isFinite(x) ? Math.abs(x - 0.5) : 0);
		const end = Math.max(Math.ceil(20 * values.flat().reduce((most, x) => Math.max(most, far(x)), 0)) / 20, 0.05);
		return {
			values,
			two: true,
			share: (x) => (x - 0.5 + end) / (2 * end),
			text: (x) => `${Math.round(100 * x)}`,
			ends: [0.5 - end, 0.5, 0.5 + end].map((x) => `${Math.round(100 * x)}`),
		};
	}
	const most = values.flat().reduce((largest, x) => (Number.isFinite(x) ? Math.max(largest, Math.abs(x)) : largest), 0);
	if (kind === "battles") {
		const top = Math.log1p(most) || 1;
		const middle = Math.round(Math.expm1(top / 2));
		return {
			values,
			two: false,
			share: (x) => Math.log1p(x) / top,
			text: (x) => (x >= 10_000 ? `${Math.round(x / 1000)}k` : count(Math.round(x))),
			ends: ["0", count(middle), count(Math.round(most))],
		};
	}
	const end = Math.max(most, 3);
	return {
		values,
		two: true,
		share: (x) => (x + end) / (2 * end),
		text: (x) => fixed(x, 0),
		ends: [fixed(-end), "0", `+${fixed(end)}`],
	};
}

/** A sentence on a pair. */
function saidOfPair(a, b, data, board, ratings, pair, hasVotes) {
	const name = (model) => data.models[model].name;
	if (a === b) return `${name(a)} against itself: nothing to show.`;
	const parts = [];
	const expected = board.law ? expectedPoints(board.law, ratings.get(a) - ratings.get(b)) : NaN;
	if (Number.isFinite(expected)) parts.push(`expected points ${fixed(100 * expected)}%`);
	if (pair) {
		const own = pair.outcomes
			? `: ${count(pair.outcomes[0])} won, ${count(pair.outcomes[1])} tied, ${count(pair.outcomes[2])} lost`
			: "";
		parts.push(
			`${counted(pair.battles, "battle")}${own}`,
			`took ${fixed((100 * pair.won) / pair.total)}% of the points`,
		);
		const z = (pair.won - pair.total * expected) / Math.sqrt(pair.square * expected * (1 - expected));
		if (Number.isFinite(z) && !board.controls.length)
			parts.push(`${fixed(Math.abs(z))} standard errors ${z < 0 ? "below" : "above"} expectation`);
	} else if (hasVotes) parts.push("they never met");
	return `${name(a)} against ${name(b)}: ${parts.join("; ") || "nothing is known"}.`;
}

const heatMapsPanel = {
	id: "pairs",
	title: "Pairs",
	available: (data) => (data.boards ?? []).some(({ pairs, law }) => pairs || law),
	state: () => ({ ...filterState(), map: "win", top: window.matchMedia(WIDE).matches ? USUAL_TOP : TOPS[0] }),
	render(root, store, data) {
		const kind = element("select", { onchange: () => store.set({ map: kind.value }) });
		const top = selection(
			TOPS.map((n) => [n, n]),
			{ onchange: () => store.set({ top: Number(top.value) }) },
		);
		const canvas = element("canvas", {
			class: "heat",
			tabindex: 0,
			role: "application",
			"aria-roledescription": "heat map",
			"aria-describedby": "pair-told pair-keys",
		});
		const said = element("p", { class: "told pair", id: "pair-told", role: "status" });
		const keys = element(
			"p",
			{ class: "note", id: "pair-keys" },
			"Rows against columns, in the order of the board; columns have the numbers of the rows. Point at a cell for its votes, or walk with the arrow keys, Home, End, Page Up and Page Down.",
		);
		const note = element("p", { class: "note" });
		const legend = element("canvas", { class: "legend", width: 240, height: 14, "aria-hidden": "true" });
		const ends = element("span", { class: "ends" });
		const place = element("div", { class: "scroll" }, canvas);
		root.append(
			foldedFields(store, data, [labelled("Show", kind), labelled(`${data.competitor.heads}, at most`, top)]),
			said,
			place,
			element("div", { class: "legend" }, legend, ends),
			keys,
			note,
		);
		let [view, at, turn, printing] = [null, null, 0, false];

		const theme = () => (printing ? "light" : themeNow());
		const paint = () =>
			view && paintHeat(canvas, legend, view, at, SCALES[theme()] ?? SCALES.light, Math.max(root.clientWidth - 4, 280));
		const tell = () => {
			const [a, b] = at ? [view.models[at[0]], view.models[at[1]]] : [];
			said.textContent = at
				? saidOfPair(a, b, data, view.board, view.ratings, view.lookup?.(a, b) ?? null, view.lookup !== null)
				: "No pair is chosen.";
		};
		const choose = (cell) => {
			if (cell && at && cell[0] === at[0] && cell[1] === at[1]) return;
			at = cell;
			tell();
			paint();
		};

		const draw = async () => {
			const state = store.get();
			const board = boardOf(state, data);
			const own = ++turn;
			const votes = board.pairs ? await votesOf(board) : null;
			if (own !== turn) return;
			const fair = board.law && votes && !board.controls.length; // covariates, too, are why points differ
			const maps = MAPS.filter(({ id }) => (id === "win" ? board.law : id === "battles" ? votes : fair));
			kind.replaceChildren(...maps.map(({ id, title }) => element("option", { value: id }, title)));
			const map = maps.find(({ id }) => id === state.map) ?? maps[0];
			const most = TOPS.includes(state.top) ? state.top : USUAL_TOP;
			top.value = most;
			const there = shownRows(board, state, data).map(({ model }) => model);
			const models = there.slice(0, most);
			const empty = map === undefined || models.length < 2;
			canvas.hidden = legend.hidden = ends.hidden = empty;
			note.textContent = noteOf(map, board, there.length, models.length, data);
			if (empty) {
				view = at = null;
				said.textContent =
					map === undefined
						? "The page holds nothing on the pairs of this board."
						: `There are not two ${data.competitor.many} to compare.`;
				return;
			}
			kind.value = map.id;
			const ratings = new Map(board.rows.map((row) => [row.model, row.rating ?? NaN]));
			const lookup = votes && pairLookup(votes, board.pairs.models);
			view = {
				models,
				board,
				ratings,
				lookup,
				names: models.map((model) => data.models[model].name),
				heat: heatOf(map.id, models, board, ratings, lookup),
			};
			if (at && Math.max(...at) >= models.length) at = null;
			at ??= firstThatMet(models, lookup);
			canvas.setAttribute("aria-label", `${map.title}: ${countedRated(models.length, data)} of ${board.title}`);
			ends.replaceChildren(...view.heat.ends.map((text) => element("span", {}, text)));
			tell();
			paint();
		};

		canvas.addEventListener("pointermove", (event) => choose(cellUnder(canvas, event)));
		canvas.addEventListener("pointerdown", (event) => choose(cellUnder(canvas, event)));
		canvas.addEventListener("focus", () => choose(at ?? [0, 1]));
		canvas.addEventListener("keydown", (event) => {
			const last = view.models.length - 1;
			const [i, j] = at ?? [0, 0];
			const to = {
				ArrowUp: [i - 1, j],
				ArrowDown: [i + 1, j],
				ArrowLeft: [i, j - 1],
				ArrowRight: [i, j + 1],
				Home: [i, 0],
				End: [i, last],
				PageUp: [0, j],
				PageDown: [last, j],
			}[event.key];
			if (to === undefined) return;
			event.preventDefault();
			choose(to.map((k) => Math.min(Math.max(k, 0), last)));
		});
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
		new MutationObserver(paint).observe(document.documentElement, {
			attributes: true,
			attributeFilter: ["data-theme"],
		});
		for (const [event, prints] of [
			["beforeprint", true],
			["afterprint", false],
		]) {
			window.addEventListener(event, () => {
				printing = prints;
				paint();
			});
		}
		drawnToWidth(root, paint);
		store.subscribe(draw);
		draw();
	},
};

/** The first pair in the order of the board that met; the first two where votes are not known. */
function firstThatMet(models, lookup) {
	for (let i = 0; lookup && i < models.length; i++)
		for (let j = i + 1; j < models.length; j++) if (lookup(models[i], models[j])) return [i, j];
	return [0, 1];
}

/** Sentences on what a map shows, and for how many models. */
function noteOf(map, board, there, shown, data) {
	const lines = [];
	if (there > shown) lines.push(`The first ${count(shown)} of ${countedRated(there, data)}.`);
	if (map?.id === "win" && board.law)
		lines.push("Expected points are the chance of a win and half that of a tie, from the ratings.");
	if (map?.id === "misfit")
		lines.push(
			"How far the row's points against the column are from what the ratings expect. A tie is half a point, so pairs with many ties vary less than this scale assumes: values beyond 3 are rare by chance.",
		);
	return lines.join(" ");
}

/** The cell under a pointer, if any. */
function cellUnder(canvas, event) {
	const box = canvas.getBoundingClientRect();
	const { cell, size, label } = canvas.layout ?? { cell: 1, size: 0, label: 0 };
	const column = Math.floor((event.clientX - box.left - label) / cell);
	const row = Math.floor((event.clientY - box.top - TOP_HEIGHT) / cell);
	return row >= 0 && column >= 0 && row < size && column < size ? [row, column] : null;
}

/** Draw a map and its legend. */
function paintHeat(canvas, legend, { names, heat }, at, scale, room) {
	const size = names.length;
	const label = Math.min(LABEL_WIDTH, Math.floor(room * 0.3));
	const cell = Math.min(Math.max(Math.floor((room - label) / size), SMALLEST_CELL), LARGEST_CELL);
	const [width, height] = [label + size * cell + 2, TOP_HEIGHT + size * cell + 2];
	const dense = window.devicePixelRatio || 1;
	[canvas.width, canvas.height] = [Math.round(width * dense), Math.round(height * dense)];
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	canvas.layout = { cell, size, label };
	const ink = canvas.getContext("2d");
	ink.scale(dense, dense);
	const stops = heat.two ? scale.two : scale.one;
	const fontSize = Math.min(Math.max(cell - 4, 7), 13);
	ink.font = `${fontSize}px system-ui, sans-serif`;
	ink.textBaseline = "middle";

	const every = Math.ceil(11 / cell); // labels that do not touch
	ink.fillStyle = scale.ink;
	names.forEach((name, k) => {
		const centre = TOP_HEIGHT + (k + 0.5) * cell;
		if (k % every === 0) {
			ink.textAlign = "right";
			ink.fillText(`${k + 1}`, label - 4, centre);
			ink.fillText(cutToWidth(ink, name, label - 36), label - 28, centre);
		}
		if (k % Math.ceil(22 / cell) === 0) {
			ink.textAlign = "center";
			ink.fillText(`${k + 1}`, label + (k + 0.5) * cell, TOP_HEIGHT / 2);
		}
	});

	const gap = cell > 8 ? 1 : 0;
	const cellFont = Math.min(Math.floor(cell * 0.42), 12);
	ink.textAlign = "center";
	ink.font = `${cellFont}px system-ui, sans-serif`;
	heat.values.forEach((row, i) =>
		row.forEach((x, j) => {
			const [left, above] = [label + j * cell, TOP_HEIGHT + i * cell];
			if (!Number.isFinite(x)) {
				ink.fillStyle = scale.faint;
				if (i === j) ink.fillRect(left + cell / 3, above + cell / 3, Math.max(cell / 3, 1), Math.max(cell / 3, 1));
				return;
			}
			const colour = colourAt(stops, heat.share(x));
			ink.fillStyle = colour.text;
			ink.fillRect(left, above, cell - gap, cell - gap);
			if (cell >= 22) {
				ink.fillStyle = colour.light ? "#000000" : "#ffffff";
				ink.fillText(heat.text(x), left + (cell - gap) / 2, above + (cell - gap) / 2 + 0.5);
			}
		}),
	);
	if (at) {
		ink.strokeStyle = scale.mark;
		ink.lineWidth = 2;
		ink.strokeRect(label + at[1] * cell, TOP_HEIGHT + at[0] * cell, cell, cell);
	}

	const bar = legend.getContext("2d");
	for (let x = 0; x < legend.width; x++) {
		bar.fillStyle = colourAt(stops, x / (legend.width - 1)).text;
		bar.fillRect(x, 0, 1, legend.height);
	}
}

/** A name that fits a width, cut with an ellipsis. */
function cutToWidth(ink, name, width) {
	if (ink.measureText(name).width <= width) return name;
	const signs = [...name];
	let [low, high] = [0, Math.min(signs.length, 60)];
	while (low < high) {
		const middle = Math.ceil((low + high) / 2);
		if (ink.measureText(`${signs.slice(0, middle).join("")}\u2026`).width <= width) low = middle;
		else high = middle - 1;
	}
	return `${signs.slice(0, low).join("")}\u2026`;
}
