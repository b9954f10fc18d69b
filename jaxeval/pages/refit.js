// Bradley-Terry ratings from pair counts, as fit_bradley_terry finds them: Newton's method on the plain likelihood.
// Models are numbered within a board. Pairs, outcomes (0: a win of the pair's first model, 1: a tie, 2: a loss) and
// parameters are arrays. Strengths are in logits, ratings in Elo.

const ELO_PER_LOGIT = 400 / Math.log(10);
const WIN_POINTS = [1, 0.5, 0];
const OUTCOMES = [0, 1, 2];

const FIT_TOLERANCE = 1e-9; // logits, of a Newton step, after which the error is far smaller
const MOST_STEPS = 200;
const LONGEST_STEP = 2; // logits: far from the optimum full steps overshoot
const FREQUENCY_FLOOR = 50; // inverse-pair-frequency weights are 1 / max(battles of the pair, 50)
const MOST_REFITTED = 300; // models
const NORMAL_95 = 1.959963984540054;

/**
 * Unpacks the columns of pairs that votes.py packed.
 * @returns {size, first, second, count, weight, square}: the last three hold a Float64Array for each outcome. Of soft
 *   targets there are {size, first, second, battles, total, won} instead.
 */
async function unpackPairs(pairs) {
	const size = pairs.models.length;
	const content = await inflated(pairs.text);
	let at = 0;
	const next = () => {
		let value = 0;
		let power = 1; // a product, as shifts end at 32 bits
		for (;;) {
			const byte = content[at++];
			value += (byte & 127) * power;
			if (byte < 128) {
				return value;
			}
			power *= 128;
		}
	};
	const nPairs = next();
	const column = () => Float64Array.from({ length: nPairs }, next);
	const first = new Int32Array(nPairs);
	const second = new Int32Array(nPairs);
	let key = 0;
	for (let p = 0; p < nPairs; p++) {
		key += next();
		first[p] = Math.floor(key / size);
		second[p] = key % size;
	}
	if (pairs.kind === "soft") {
		const battles = column();
		const [total, won] = doubles(content, at, nPairs, 2);
		return { size, first, second, count: null, battles, total, won };
	}
	const count = OUTCOMES.map(column);
	if (pairs.kind === "counts") {
		return { size, first, second, count, weight: count, square: count };
	}
	const real = doubles(content, at, nPairs, 6);
	return { size, first, second, count, weight: real.slice(0, 3), square: real.slice(3) };
}

/** The offsets of votes in logits: means of the wins, ties and losses of pairs, then their spreads; see controls.py. */
async function unpackOffsets(packed) {
	const columns = await unpackNumbers(packed);
	return columns.map((codes) => Float64Array.from(decoded(codes, false), (x) => x / 1000));
}

/** The text of the columns that `unpackPairs` reads, of counts of votes whose pairs are in order. */
async function packPairs(votes) {
	const bytes = [];
	const put = (x) => {
		for (; x > 127; x = Math.floor(x / 128)) bytes.push((x % 128) + 128);
		bytes.push(x);
	};
	put(votes.first.length);
	let last = 0;
	votes.first.forEach((first, p) => {
		const key = first * votes.size + votes.second[p];
		put(key - last);
		last = key;
	});
	for (const column of votes.count) for (const x of column) put(x);
	const stream = new Blob([Uint8Array.from(bytes)]).stream().pipeThrough(new CompressionStream("gzip"));
	const packed = new Uint8Array(await new Response(stream).arrayBuffer());
	return btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
}

function doubles(content, at, length, columns) {
	const view = new DataView(content.buffer, Math.ceil(at / 8) * 8);
	return Array.from({ length: columns }, (_, c) =>
		Float64Array.from({ length }, (_, p) => view.getFloat64(8 * (c * length + p), true)),
	);
}

/**
 * Votes of several boards, added or subtracted.
 * @param parts [{votes, models, sign}]: unpacked pairs, their models' numbers on the page, and 1 or -1.
 * @returns {models, votes}: the numbers on the page, ascending, and votes between them by position.
 */
function pooledVotes(parts) {
	const models = [...new Set(parts.flatMap((part) => part.models))].sort((a, b) => a - b);
	const place = new Map(models.map((model, k) => [model, k]));
	const size = models.length;
	const row = new Map();
	const sums = [];
	const offset = parts.every(({ votes }) => votes.offsets);
	for (const { votes, models: own, sign } of parts) {
		for (let p = 0; p < votes.first.length; p++) {
			const a = place.get(own[votes.first[p]]);
			const b = place.get(own[votes.second[p]]);
			const key = Math.min(a, b) * size + Math.max(a, b);
			if (!row.has(key)) {
				row.set(key, sums.length);
				sums.push(new Float64Array(15));
			}
			const sum = sums[row.get(key)];
			for (const outcome of OUTCOMES) {
				const own = a < b ? outcome : 2 - outcome;
				sum[own] += sign * votes.count[outcome][p];
				sum[3 + own] += sign * votes.weight[outcome][p];
				sum[6 + own] += sign * votes.square[outcome][p];
				if (!offset) continue;
				const mean = votes.offsets[outcome][p] * (a < b ? 1 : -1);
				sum[9 + own] += sign * votes.weight[outcome][p] * mean;
				sum[12 + own] += sign * votes.weight[outcome][p] * (mean ** 2 + votes.offsets[3 + outcome][p] ** 2);
			}
		}
	}
	const column = (c) => Float64Array.from(sums, (sum) => (sum[c % 3] > 0 ? sum[c] : 0)); // no rounding of weights stays
	const keys = [...row.keys()];
	const count = OUTCOMES.map(column);
	const plain = parts.every(({ votes }) => votes.weight === votes.count);
	const votes = {
		size,
		first: Int32Array.from(keys, (key) => Math.floor(key / size)),
		second: Int32Array.from(keys, (key) => key % size),
		count,
		weight: plain ? count : OUTCOMES.map((outcome) => column(3 + outcome)),
		square: plain ? count : OUTCOMES.map((outcome) => column(6 + outcome)),
	};
	if (offset) {
		const part = (c) => Float64Array.from(sums, (sum) => (sum[c % 3] > 0 ? sum[c] / sum[3 + (c % 3)] : 0));
		const [means, squares] = [9, 12].map((from) => OUTCOMES.map((outcome) => part(from + outcome)));
		const spreads = squares.map((own, k) => own.map((x, p) => Math.sqrt(Math.max(x - means[k][p] ** 2, 0))));
		votes.offsets = [...means, ...spreads];
	}
	return { models, votes };
}

/**
 * Votes without some of them.
 * @param change {without: models left out, ties: "half" or "drop", drops: [{a, b, what, n}]}, models by position. A drop
 *   takes ``n`` votes (null: all) off the pair: of ``what`` "wins" of a, "ties", "losses" of a, or "votes", which all
 *   go. Of votes of different weights a share goes of each.
 */
function changedVotes(votes, change) {
	const out = new Uint8Array(votes.size);
	change.without.forEach((model) => (out[model] = 1));
	const kept = OUTCOMES.map(() => new Float64Array(votes.first.length));
	for (let p = 0; p < votes.first.length; p++) {
		const none = out[votes.first[p]] || out[votes.second[p]];
		for (const outcome of OUTCOMES) {
			kept[outcome][p] = none || (outcome === 1 && change.ties === "drop") ? 0 : 1;
		}
	}
	for (const { a, b, what, n } of change.drops) {
		const p = votes.first.findIndex((first, k) => pairIs(first, votes.second[k], a, b));
		if (p < 0) {
			continue;
		}
		const own = { wins: [0], ties: [1], losses: [2], votes: OUTCOMES }[what];
		for (const outcome of votes.first[p] === a ? own : own.map((outcome) => 2 - outcome)) {
			const there = votes.count[outcome][p];
			const left = n === null || what === "votes" ? 0 : Math.max(there * kept[outcome][p] - n, 0);
			kept[outcome][p] = there > 0 ? Math.min(left / there, kept[outcome][p]) : 0;
		}
	}
	const part = (columns) => columns.map((column, outcome) => column.map((x, p) => kept[outcome][p] * x));
	const count = part(votes.count).map((column) => column.map(Math.round)); // a share of a count is a whole number
	if (votes.weight === votes.count) {
		return { ...votes, count, weight: count, square: count };
	}
	return { ...votes, count, weight: part(votes.weight), square: part(votes.square) };
}

function pairIs(first, second, a, b) {
	return (first === a && second === b) || (first === b && second === a);
}

/** The pair's votes as its model ``a`` sees them: [wins, ties, losses]. */
function votesOfPair(votes, a, b) {
	const p = votes.first.findIndex((first, k) => pairIs(first, votes.second[k], a, b));
	const own = p < 0 ? [0, 0, 0] : votes.count.map((column) => column[p]);
	return p < 0 || votes.first[p] === a ? own : own.reverse();
}

/**
 * Fits votes, and keeps all that standard errors need.
 * @param votes as `unpackPairs` gives them; with ``offsets`` of `unpackOffsets` the fit keeps these as they are.
 * @param reweight whether each battle counts 1 / max(battles of its pair, 50).
 * @returns {theta, active, standing, component, battles, converged, steps, spread}: by model log-strengths (0 where
 *   not active), whether a rating is finite, "" or why it is not, the group of models that met (1 that of the main
 *   group), and battles; and ``spread`` for `ratedBoard`.
 */
function fitVotes(votes, reweight) {
	const size = votes.size;
	const nPairs = votes.first.length;
	const battles = new Float64Array(size);
	const total = new Float64Array(nPairs);
	const won = new Float64Array(nPairs);
	const factor = new Float64Array(nPairs);
	for (let p = 0; p < nPairs; p++) {
		const [win, tie, loss] = votes.weight.map((column) => column[p]);
		const n = votes.count[0][p] + votes.count[1][p] + votes.count[2][p];
		factor[p] = reweight ? 1 / Math.max(n, FREQUENCY_FLOOR) : 1;
		total[p] = factor[p] * (win + tie + loss);
		won[p] = factor[p] * (win + tie / 2);
		battles[votes.first[p]] += n;
		battles[votes.second[p]] += n;
	}
	const { standing, component } = standings(votes, total);
	const active = standing.map((why) => why === "");
	const nodes = votes.offsets ? Array.from(factor, (own, p) => nodesOf(votes, p, own)) : null;
	const found = newton(votes, total, won, active, nodes);
	return { ...found, active, standing, component, battles, spread: { votes, factor, nodes } };
}

/** The offsets of a pair's votes, [offset, weight]: two of each outcome, with the mean and the spread of all of its votes. */
function nodesOf(votes, p, factor) {
	const nodes = [];
	for (let outcome = 0; outcome < 3; outcome++) {
		const weight = factor * votes.weight[outcome][p];
		const [mean, spread] = [votes.offsets[outcome][p], votes.offsets[3 + outcome][p]];
		if (weight > 0) for (const sign of [-1, 1]) nodes.push([mean + sign * spread, weight / 2]);
	}
	return nodes;
}

/** Expected points and curvature of the votes of a pair at a difference of strengths. */
function pairTerms(difference, n, nodes) {
	if (!nodes) {
		const p = 1 / (1 + Math.exp(-difference));
		return [n * p, n * p * (1 - p)];
	}
	let [points, curvature] = [0, 0];
	for (const [offset, weight] of nodes) {
		const p = 1 / (1 + Math.exp(-difference - offset));
		points += weight * p;
		curvature += weight * p * (1 - p);
	}
	return [points, curvature];
}

/** The standing of each model to the main group, and its group of models that met: see kernels/connectivity.py. */
function standings(votes, total) {
	const { size, first, second } = votes;
	const wins = Array.from({ length: size }, () => []);
	const losses = Array.from({ length: size }, () => []);
	const met = Array.from({ length: size }, () => []);
	const weight = new Float64Array(size);
	for (let p = 0; p < first.length; p++) {
		const [a, b] = [first[p], second[p]];
		weight[a] += total[p];
		weight[b] += total[p];
		if (total[p] > 0) {
			met[a].push(b);
			met[b].push(a);
		}
		const tie = votes.weight[1][p] > 0;
		if (votes.weight[0][p] > 0 || tie) {
			wins[a].push(b);
			losses[b].push(a);
		}
		if (votes.weight[2][p] > 0 || tie) {
			wins[b].push(a);
			losses[a].push(b);
		}
	}
	// A group is two or more models that reach each other by wins. The main group has the most weight.
	const left = new Uint8Array(size).fill(1);
	let main = null;
	for (let model = 0; model < size; model++) {
		if (!left[model]) {
			continue;
		}
		const below = reached(wins, [model]);
		const above = reached(losses, [model]);
		let sum = 0;
		let members = 0;
		for (let k = 0; k < size; k++) {
			if (below[k] && above[k]) {
				left[k] = 0;
				sum += weight[k];
				members += 1;
			}
		}
		if (members > 1 && (main === null || sum > main.sum * (1 + 1e-12))) {
			main = { sum, below, above };
		}
	}
	const standing = Array.from({ length: size }, (_, k) => {
		const above = main ? main.above[k] : wins[k].length > 0 && losses[k].length === 0;
		const below = main ? main.below[k] : losses[k].length > 0 && wins[k].length === 0;
		return above && below ? "" : above ? "undefeated" : below ? "winless" : "not comparable";
	});
	return { standing, component: components(met, weight, standing) };
}

/** Which models a search along the lists ``next`` reaches from the models ``start``; these are included. */
function reached(next, start) {
	const found = new Uint8Array(next.length);
	const stack = [...start];
	start.forEach((model) => (found[model] = 1));
	while (stack.length) {
		for (const model of next[stack.pop()]) {
			if (!found[model]) {
				found[model] = 1;
				stack.push(model);
			}
		}
	}
	return found;
}

function components(met, weight, standing) {
	const label = new Int32Array(met.length).fill(-1);
	const groups = [];
	for (let model = 0; model < met.length; model++) {
		if (label[model] < 0) {
			const group = { number: groups.length, sum: 0, main: false };
			reached(met, [model]).forEach((is, k) => {
				if (is) {
					label[k] = group.number;
					group.sum += weight[k];
					group.main ||= standing[k] === "";
				}
			});
			groups.push(group);
		}
	}
	const order = [...groups].sort((a, b) => b.main - a.main || b.sum - a.sum);
	const place = new Map(order.map((group, k) => [group.number, k + 1]));
	return Array.from(label, (number) => place.get(number));
}

/** The models that pass a test, and the place of each of all models among them, -1 of one that does not. */
function membersOf(size, passes) {
	const members = Array.from({ length: size }, (_, k) => k).filter(passes);
	const place = new Int32Array(size).fill(-1);
	members.forEach((model, k) => (place[model] = k));
	return { members, place };
}

/** A number for each model: `value(k)` of the k-th member, and `none` for the others. */
function ofMembers(size, members, value, none = NaN) {
	const all = new Float64Array(size).fill(none);
	members.forEach((model, k) => (all[model] = value(k)));
	return all;
}

/** Add the information of a difference of two places to a matrix (m, m). */
function addDifference(matrix, m, i, j, x) {
	matrix[i * m + i] += x;
	matrix[j * m + j] += x;
	matrix[i * m + j] -= x;
	matrix[j * m + i] -= x;
}

/** The maximum of the likelihood, with mean 0 among the ``active`` models. */
function newton(votes, total, won, active, nodes = null) {
	const { size, first, second } = votes;
	const { members, place } = membersOf(size, (k) => active[k]);
	const m = members.length;
	if (m === 0) {
		return { theta: new Float64Array(size), converged: true, steps: 0 };
	}
	const own = [];
	const score = new Float64Array(m);
	const met = new Float64Array(m);
	for (let p = 0; p < first.length; p++) {
		const [i, j] = [place[first[p]], place[second[p]]];
		if (i >= 0 && j >= 0 && total[p] > 0) {
			own.push([i, j, total[p], won[p], nodes?.[p]]);
			score[i] += won[p];
			score[j] += total[p] - won[p];
			met[i] += total[p];
			met[j] += total[p];
		}
	}
	const now = score.map((points, k) => Math.log((points + 1) / (met[k] - points + 1)));
	let steps = 0;
	let converged = false;
	while (!converged && steps < MOST_STEPS) {
		centre(now);
		const gradient = new Float64Array(m);
		const matrix = new Float64Array(m * m);
		for (const [i, j, n, points, offsets] of own) {
			const [expected, curvature] = pairTerms(now[i] - now[j], n, offsets);
			gradient[i] += points - expected;
			gradient[j] -= points - expected;
			addDifference(matrix, m, i, j, curvature);
		}
		if (!factorised(matrix, m)) {
			break;
		}
		const change = solved(matrix, gradient, m);
		const longest = change.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
		const share = Math.min(1, LONGEST_STEP / longest);
		for (let k = 0; k < m; k++) {
			now[k] += share * change[k];
		}
		steps += 1;
		converged = longest < FIT_TOLERANCE;
		if (!Number.isFinite(longest)) {
			break;
		}
	}
	centre(now);
	return { theta: ofMembers(size, members, (k) => now[k], 0), converged, steps };
}

function centre(theta) {
	const mean = theta.reduce((sum, x) => sum + x, 0) / theta.length;
	for (let k = 0; k < theta.length; k++) {
		theta[k] -= mean;
	}
}

/**
 * Writes the Cholesky factor of an information over it; false if rounding leaves no factor.
 * The information does not determine a common shift, so a constant of its own scale is added in that direction.
 */
function factorised(matrix, m) {
	let trace = 0;
	for (let k = 0; k < m; k++) {
		trace += matrix[k * m + k];
	}
	const constant = trace / m / m;
	for (let k = 0; k < m * m; k++) {
		matrix[k] += constant;
	}
	for (let j = 0; j < m; j++) {
		const row = j * m;
		let square = matrix[row + j];
		for (let k = 0; k < j; k++) {
			square -= matrix[row + k] * matrix[row + k];
		}
		if (!(square > 0)) {
			return false;
		}
		const pivot = Math.sqrt(square);
		matrix[row + j] = pivot;
		for (let i = j + 1; i < m; i++) {
			const other = i * m;
			let sum = matrix[other + j];
			for (let k = 0; k < j; k++) {
				sum -= matrix[other + k] * matrix[row + k];
			}
			matrix[other + j] = sum / pivot;
		}
	}
	return true;
}

/** The solution of factor factor' x = right. */
function solved(factor, right, m) {
	const x = Float64Array.from(right);
	for (let i = 0; i < m; i++) {
		let sum = x[i];
		for (let k = 0; k < i; k++) {
			sum -= factor[i * m + k] * x[k];
		}
		x[i] = sum / factor[i * m + i];
	}
	for (let i = m - 1; i >= 0; i--) {
		const own = x[i] / factor[i * m + i];
		x[i] = own;
		for (let k = 0; k < i; k++) {
			x[k] -= factor[i * m + k] * own; // along a row, which lies together
		}
	}
	return x;
}

/** The inverse of factor factor'. */
function inverted(factor, m) {
	const inverse = new Float64Array(m * m);
	const unit = new Float64Array(m);
	for (let k = 0; k < m; k++) {
		unit.fill(0);
		unit[k] = 1;
		inverse.set(solved(factor, unit, m), k * m);
	}
	return inverse;
}

/**
 * Ratings of a fit in a gauge, and their sandwich errors (White 1982): battles are independent, the model may be wrong.
 * @param gauge {kind: "mean", "votes" or "model", model: position, rating: of the mean or of the model}.
 * @returns {ratings, errors}: Elo by model; not finite ratings as in Python; NaN where there is no error.
 */
function ratedBoard(fit, gauge) {
	const size = fit.theta.length;
	const { members, place } = membersOf(size, (k) => fit.active[k]);
	const weightOf = (k) =>
		gauge.kind === "model" ? Number(k === gauge.model) : gauge.kind === "votes" ? fit.battles[k] : 1;
	const weights = ofMembers(size, members, (k) => weightOf(members[k]), 0);
	const sum = weights.reduce((all, x) => all + x, 0);
	const centreOf = members.reduce((all, k) => all + (weights[k] / sum) * fit.theta[k], 0);
	const beyond = { undefeated: Infinity, winless: -Infinity, "not comparable": NaN };
	const ratings = Array.from(fit.theta, (theta, k) =>
		fit.active[k] ? gauge.rating + ELO_PER_LOGIT * (theta - centreOf) : beyond[fit.standing[k]],
	);
	fit.sandwich ??= sandwich(fit, members, place);
	if (fit.sandwich === null) return { ratings, errors: new Float64Array(size).fill(NaN) };
	const { inverse, half, diagonal } = fit.sandwich;
	const m = members.length;
	const own = members.map((k) => weights[k] / sum);
	const shift = product(half, product(inverse, own, m), m);
	const common = shift.reduce((all, x, k) => all + own[k] * x, 0);
	const error = (k) => ELO_PER_LOGIT * Math.sqrt(Math.max(diagonal[k] - 2 * shift[k] + common, 0));
	return { ratings, errors: ofMembers(size, members, error) };
}

/** The pseudo-inverse of the information up to a shift, its product with the squared scores, and the covariance's diagonal. */
function sandwich(fit, members, place) {
	const { votes, factor, nodes } = fit.spread;
	const signs = nodes ? [-1, 1] : [0];
	const m = members.length;
	const information = new Float64Array(m * m);
	const squares = new Float64Array(m * m);
	for (let p = 0; p < votes.first.length; p++) {
		const [i, j] = [place[votes.first[p]], place[votes.second[p]]];
		if (i < 0 || j < 0) {
			continue;
		}
		const difference = fit.theta[members[i]] - fit.theta[members[j]];
		const weight = factor[p] * (votes.weight[0][p] + votes.weight[1][p] + votes.weight[2][p]);
		const [, curvature] = pairTerms(difference, weight, nodes?.[p]);
		let square = 0;
		for (const outcome of OUTCOMES)
			for (const sign of signs) {
				const offset = nodes ? votes.offsets[outcome][p] + sign * votes.offsets[3 + outcome][p] : 0;
				const expected = 1 / (1 + Math.exp(-difference - offset));
				square += (votes.square[outcome][p] * (WIN_POINTS[outcome] - expected) ** 2) / signs.length;
			}
		addDifference(information, m, i, j, curvature);
		addDifference(squares, m, i, j, factor[p] ** 2 * square);
	}
	if (!factorised(information, m)) {
		return null;
	}
	const inverse = inverted(information, m);
	const half = new Float64Array(m * m);
	const diagonal = new Float64Array(m);
	for (let i = 0; i < m; i++) {
		const row = half.subarray(i * m, (i + 1) * m);
		for (let k = 0; k < m; k++) {
			const x = inverse[i * m + k];
			const other = squares.subarray(k * m, (k + 1) * m);
			for (let j = 0; j < m; j++) {
				row[j] += x * other[j];
			}
		}
		for (let j = 0; j < m; j++) {
			diagonal[i] += row[j] * inverse[i * m + j];
		}
	}
	return { inverse, half, diagonal };
}

function product(matrix, vector, m) {
	const result = new Float64Array(m);
	for (let i = 0; i < m; i++) {
		for (let k = 0; k < m; k++) {
			result[i] += matrix[i * m + k] * vector[k];
		}
	}
	return result;
}
