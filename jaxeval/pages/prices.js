// Ratings against prices: which models nobody beats for their money, and how sure that is.

const PRICE = /price|cost/i;
const MOST_DRAWS = 2_000;

/** The first column of numbers of models whose name says that it is a price. */
function priceColumn(data) {
	return data.columns.find(({ of, kind, key }) => of === "model" && kind === "number" && PRICE.test(key));
}

/** Numbers from 0 to 2^32 - 1, the same ones of a seed (sfc32 of PractRand). */
function wholeNumbers(seed) {
	let [a, b, c, d] = [seed | 0, 0x9e3779b9 | 0, 0x243f6a88 | 0, 1];
	const next = () => {
		const t = (((a + b) | 0) + d) | 0;
		d = (d + 1) | 0;
		a = b ^ (b >>> 9);
		b = (c + (c << 3)) | 0;
		c = (((c << 21) | (c >>> 11)) + t) | 0;
		return t >>> 0;
	};
	for (let k = 0; k < 20; k++) next();
	return next;
}

/** Which of points `{price, rating}` have no other that is as cheap and better: true for each that is on the front. */
function onFront(points) {
	const order = points
		.map((_, k) => k)
		.sort((a, b) => points[a].price - points[b].price || points[b].rating - points[a].rating);
	const front = points.map(() => false);
	let best = -Infinity;
	for (const k of order) {
		if (points[k].rating <= best) continue;
		front[k] = true;
		best = points[k].rating;
	}
	return front;
}

/** What a point of rating is worth in prices, by a slider from 0 to 100: from next to nothing to any price on the board. */
function worthOf(points, slider) {
	const [cheap, dear] = rangeOf(points.map(({ price }) => price));
	const [low, high] = rangeOf(points.map(({ rating }) => rating));
	const [least, most] = [cheap / (high - low || 1) / 10, (dear / (high - low || 1)) * 100];
	return Number((least * (most / least) ** (Math.min(Math.max(slider, 0), 100) / 100)).toPrecision(2));
}

/** Which point is worth most, its price paid, where a point of rating is worth `worth`. */
function worthMost(points, worth) {
	let best = 0;
	points.forEach(({ price, rating }, k) => {
		if (worth * rating - price > worth * points[best].rating - points[best].price) best = k;
	});
	return best;
}

/** Standard normal numbers, the same ones every time. */
function normals() {
	const whole = wholeNumbers(0);
	const next = () => (whole() + 0.5) / 4_294_967_296;
	return () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next());
}

/** Normal draws as wide as the intervals, as if ratings were independent: a function of a draw and a point. */
function independentDraws(points, level) {
	const width = normalQuantile((1 + level) / 2);
	const normal = normals();
	const draws = points.map(() => Float32Array.from({ length: MOST_DRAWS }, normal));
	return (b, k) => (points[k].half / width) * draws[k][b];
}

/**
 * Draws of the errors of all ratings at once, by model: of the covariance of the votes' fit (its sandwich), times what
 * makes the errors as wide as the intervals of the board. Ratings of a draw may be shifted together.
 * @returns Map from models to Float32Array, or null where the votes give no covariance.
 */
function jointDraws(board, votes, level) {
	const fit = fitVotes(votes, board.reweight);
	const place = new Map(board.pairs.models.map((model, k) => [model, k]));
	const { errors } = ratedBoard(fit, { ...board.gauge, model: place.get(board.gauge.model) });
	if (!fit.sandwich) return null;
	const { members } = membersOf(fit.theta.length, (k) => fit.active[k]);
	const m = members.length;
	const { half, inverse } = fit.sandwich;
	const covariance = new Float64Array(m * m);
	for (let i = 0; i < m; i++)
		for (let k = 0; k < m; k++) {
			const x = half[i * m + k];
			for (let j = 0; j < m; j++) covariance[i * m + j] += x * inverse[k * m + j];
		}
	if (!factorised(covariance, m)) return null;
	const width = normalQuantile((1 + level) / 2);
	const ratios = board.rows
		.map((row) => (number(row.upper) - number(row.lower)) / 2 / width / errors[place.get(row.model)])
		.filter((x) => Number.isFinite(x) && x > 0)
		.sort((a, b) => a - b);
	if (ratios.length === 0) return null;
	const wider = ELO_PER_LOGIT * ratios[Math.floor(ratios.length / 2)];
	const draws = members.map(() => new Float32Array(MOST_DRAWS));
	const [normal, own] = [normals(), new Float64Array(m)];
	for (let b = 0; b < MOST_DRAWS; b++) {
		for (let k = 0; k < m; k++) own[k] = normal();
		for (let i = 0; i < m; i++) {
			let sum = 0;
			for (let k = 0; k <= i; k++) sum += covariance[i * m + k] * own[k];
			draws[i][b] = wider * sum;
		}
	}
	return new Map(members.map((k, i) => [board.pairs.models[k], draws[i]]));
}

/** The joint draws of a board whose votes the page can refit, drawn once; null for others. */
const drawnOf = new WeakMap();
async function jointDrawsOf(board, level) {
	if (!board.pairs || board.what_if) return null;
	if (!drawnOf.has(board)) drawnOf.set(board, jointDraws(board, await votesOf(board), level));
	return drawnOf.get(board);
}

/**
 * Points with `front` and `chance`: the share of draws with the point on the front; and with `most` and `surely`: whether
 * it is worth most where a point of rating is worth `worth`, and in which share of draws.
 */
function withFront(points, level, worth, joint = null) {
	const [counts, wins] = [points.map(() => 0), points.map(() => 0)];
	const together = joint !== null && points.every(({ model }) => joint.has(model));
	const known = together || points.every(({ half }) => Number.isFinite(half));
	const errors = together ? points.map(({ model }) => joint.get(model)) : null;
	const error = together ? (b, k) => errors[k][b] : known && independentDraws(points, level);
	for (let b = 0; known && b < MOST_DRAWS; b++) {
		const drawnPoints = points.map(({ price, rating }, k) => ({ price, rating: rating + error(b, k) }));
		onFront(drawnPoints).forEach((is, k) => (counts[k] += is));
		wins[worthMost(drawnPoints, worth)]++;
	}
	const [front, most] = [onFront(points), worthMost(points, worth)];
	const share = (n) => (known ? n / MOST_DRAWS : NaN);
	return points.map((point, k) => ({
		...point,
		front: front[k],
		chance: share(counts[k]),
		most: k === most,
		surely: share(wins[k]),
	}));
}

const pricesPanel = {
	id: "prices",
	title: "Prices",
	available: (data) => priceColumn(data) !== undefined,
	state: () => ({ ...filterState(), rank: "-rating", worth: 50 }),
	render(root, store, data) {
		const { key, title } = priceColumn(data);
		const told = element("p", { class: "told" });
		const most = element("p", { class: "told", role: "status" });
		const slider = element("input", {
			type: "range",
			min: 0,
			max: 100,
			oninput: () => store.set({ worth: Number(slider.value) }),
		});
		const chart = element("figure", { class: "chart" });
		const place = scrolling(`Ratings and ${title}`);
		let table = { columns: [], rows: [] };
		const buttons = copyButtons(() => ({ ...table, title: `${data.title}: ratings and ${title}` }));
		const value = labelled("Value of a point", slider);
		root.append(foldedFields(store, data, [], [buttons]), value, most, told, chart, place);
		let turn = 0;
		const again = drawnToWidth(chart, async (width) => {
			const own = ++turn;
			const joint = await jointDrawsOf(boardOf(store.get(), data), data.level ?? 0.95);
			if (own !== turn) return; // the reader went on
			const state = store.get();
			const board = boardOf(state, data);
			const points = shownRows(board, state, data).flatMap((row) => {
				const price = data.models[row.model].about[key];
				if (!(price > 0) || row.rating === undefined || row.rank === undefined) return [];
				const half = (number(row.upper) - number(row.lower)) / 2;
				return [{ ...row, price, half }];
			});
			const worth = worthOf(points, state.worth);
			const rows = withFront(points, data.level ?? 0.95, worth, joint);
			slider.value = state.worth;
			const best = rows.find((row) => row.most);
			const sure = Number.isFinite(best?.surely) ? ` (chance ${percent(best.surely)})` : "";
			const when = `Where a point of rating is worth ${count(worth)} of ${title}, `;
			most.textContent = best ? `${when}${data.models[best.model].name} is worth most${sure}.` : "";
			told.textContent =
				`${countedRated(rows.length, data)} with a price, a rating and a rank. On the front: none that costs as little is rated higher. ` +
				(joint
					? "Its chance is of 2,000 normal draws of all ratings at once, with the covariance of the votes, as wide as the intervals."
					: "Its chance takes the intervals as normal and independent, as the page cannot refit these votes.");
			table = { columns: priceColumns(title, data), rows: [] };
			table.rows = sorted(rows, table.columns, state.rank);
			chart.replaceChildren(priceChart(rows, title, data, width));
			place.replaceChildren(
				dataTable({ label: `Ratings and ${title}`, ...table, sort: state.rank, press: (rank) => store.set({ rank }) }),
			);
		});
		store.subscribe(again);
	},
};

function priceColumns(title, data) {
	return [
		modelColumn(data, ({ model }) => model, modelCell),
		numeric("rating", "Rating", (row) => row.rating, fixed, { kind: "rating" }),
		numeric("price", title, (row) => row.price, count),
		{ id: "front", title: "On the front", value: (row) => Number(!row.front), text: (row) => (row.front ? "yes" : "") },
		numeric("chance", "Chance of it", (row) => row.chance, percent),
		numeric("surely", "Worth most", (row) => row.surely, percent),
	];
}

function priceChart(rows, title, data, width) {
	const height = 380;
	const [cheap, dear] = rangeOf(rows.map(({ price }) => Math.log10(price)));
	const ends = rows.flatMap(({ rating, half }) => (Number.isFinite(half) ? [rating - half, rating + half] : [rating]));
	const [low, high] = rangeOf(ends);
	const [x, y] = [scaleOf(cheap, dear, 56, width - 110), scaleOf(low, high, height - 40, 14)];
	const parts = levels(roundTicks(low, high, 6), y, 48, width - 8);
	for (let power = Math.floor(cheap); power <= dear; power++)
		for (const factor of [1, 3]) {
			const at = power + Math.log10(factor);
			if (at < cheap || at > dear) continue;
			const price = factor * 10 ** power;
			parts.push(written("tick", x(at), height - 20, "middle", count(price)));
		}
	parts.push(written("tick", (width - 60) / 2, height - 4, "middle", `${title} (log scale)`));
	const front = rows.filter((row) => row.front).sort((a, b) => a.price - b.price);
	const steps = front.map(({ price, rating }, k) => {
		const [right, up] = [x(Math.log10(price)).toFixed(1), y(rating).toFixed(1)];
		return k ? `H${right}V${up}` : `M${right} ${up}`;
	});
	if (front.length > 0)
		parts.push(drawn("path", { ...ownColour(1), class: "line", d: `${steps.join("")}H${width - 110}` }));
	const names = apart(
		front.map(({ rating }) => y(rating) - 8),
		12,
	);
	for (const row of rows) {
		const [cx, cy] = [x(Math.log10(row.price)), y(row.rating)];
		if (Number.isFinite(row.half))
			parts.push(
				drawn("line", { class: "rule", x1: cx, x2: cx, y1: y(row.rating - row.half), y2: y(row.rating + row.half) }),
			);
		const said = `${data.models[row.model].name}: ${fixed(row.rating)}, ${title} ${count(row.price)}`;
		parts.push(
			drawn("circle", { ...ownColour(1), class: row.front ? "dot" : "point", cx, cy, r: 4 }, drawn("title", {}, said)),
		);
	}
	front.forEach((row, k) => {
		const name = shortened(data.models[row.model].name, 26);
		parts.push(drawn("text", { class: "label", x: x(Math.log10(row.price)) + 6, y: names[k] }, name));
	});
	const said = `Ratings against ${title} of ${countedRated(rows.length, data)}; the table below has the numbers`;
	return figureOf(width, height, said, parts);
}
