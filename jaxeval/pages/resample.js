// Bootstrap intervals, ranks, tiers and the answer of votes, as jaxeval.leaderboard gives them, which a worker computes.
// Ratings are Elo with mean 0 among the rated models; draws are arrays by model.

const LEVEL = 0.95;
const ENOUGH_BATTLES = 200; // models with fewer have penalised intervals
const UNPLACED_ELO = 100;
const MOST_NOT_FINITE = 0.01; // of the draws of a model that these tell apart
const PRELIMINARY_VOTES = 300;
const NOISE = 1e-3; // Elo: what draws may be wrong by
const ROUNDING = 3e-7;
const [CHORD_STEPS, CHORD_TOLERANCE] = [40, 1e-6]; // logits: draws are right to 1e-4 Elo
const [FIRTH_STEPS, FIRTH_TOLERANCE] = [100, 1e-8];

/** Strengths of `n` resamples of the votes: a Float64Array for each model; infinite or NaN where one has none. */
function resampledStrengths(votes, fit, n, seed, tell) {
	const nPairs = votes.first.length;
	const owner = [];
	for (const outcome of OUTCOMES)
		for (let p = 0; p < nPairs; p++) for (let k = 0; k < votes.count[outcome][p]; k++) owner.push(outcome * nPairs + p);
	const cells = Int32Array.from(owner);
	const next = wholeNumbers(seed);
	const scale = cells.length / 4_294_967_296;
	const draws = Array.from({ length: votes.size }, () => new Float64Array(n).fill(NaN));
	const chord = chordOf(votes, fit);
	const times = new Float64Array(3 * nPairs);
	for (let b = 0; b < n; b++) {
		times.fill(0);
		for (let k = 0; k < cells.length; k++) times[cells[Math.floor(next() * scale)]] += 1;
		const count = OUTCOMES.map((outcome) => times.subarray(outcome * nPairs, (outcome + 1) * nPairs));
		const theta = chord(count) ?? slowly({ ...votes, count, weight: count, square: count });
		theta.forEach((x, k) => {
			draws[k][b] = fit.active[k] ? x : NaN;
		});
		if (b % 50 === 49) tell(b + 1);
	}
	return draws;
}

/** Strengths of votes of which some models may have no comparable rating. */
function slowly(votes) {
	const { theta, standing, converged } = fitVotes(votes, false);
	const beyond = { undefeated: Infinity, winless: -Infinity, "not comparable": NaN };
	return theta.map((x, k) => (!converged ? NaN : standing[k] === "" ? x : beyond[standing[k]]));
}

/**
 * A function of counts that gives strengths by steps with the information of the full fit; null where they do not end, or
 * where some models did not meet the others.
 */
function chordOf(votes, fit) {
	const { members, place } = membersOf(votes.size, (k) => fit.active[k]);
	const m = members.length;
	const pairs = pairsAmong(votes, place);
	const [first, second] = [votes.first, votes.second].map((side) => Int32Array.from(pairs, (p) => place[side[p]]));
	const matrix = new Float64Array(m * m);
	pairs.forEach((p, k) => {
		const [i, j] = [first[k], second[k]];
		const share = 1 / (1 + Math.exp(fit.theta[members[j]] - fit.theta[members[i]]));
		const n = OUTCOMES.reduce((sum, outcome) => sum + votes.count[outcome][p], 0);
		addDifference(matrix, m, i, j, n * share * (1 - share));
	});
	if (m === 0 || !factorised(matrix, m)) return () => null;
	const [total, won] = [new Float64Array(pairs.length), new Float64Array(pairs.length)];
	return (count) => {
		const root = Int32Array.from({ length: m }, (_, k) => k);
		const rootOf = (k) => {
			while (root[k] !== k) k = root[k] = root[root[k]];
			return k;
		};
		let groups = m;
		pairs.forEach((p, k) => {
			total[k] = count[0][p] + count[1][p] + count[2][p];
			won[k] = count[0][p] + count[1][p] / 2;
			if (total[k] === 0) return;
			const [a, b] = [rootOf(first[k]), rootOf(second[k])];
			if (a === b) return;
			root[a] = b;
			groups -= 1;
		});
		if (groups > 1) return null;
		const theta = Float64Array.from(members, (model) => fit.theta[model]);
		for (let step = 0; step < CHORD_STEPS; step++) {
			const gradient = new Float64Array(m);
			for (let k = 0; k < total.length; k++) {
				const off = won[k] - total[k] / (1 + Math.exp(theta[second[k]] - theta[first[k]]));
				gradient[first[k]] += off;
				gradient[second[k]] -= off;
			}
			const change = solved(matrix, gradient, m);
			let longest = 0;
			for (let k = 0; k < m; k++) {
				theta[k] += change[k];
				longest = Math.max(longest, Math.abs(change[k]));
			}
			if (!(longest < 20)) return null;
			if (longest < CHORD_TOLERANCE) return ofMembers(votes.size, members, (k) => theta[k]);
		}
		return null;
	};
}

/** Draws of strengths as Elo. In a draw that leaves some models without a value, the others keep the mean of their fit. */
function alignedDraws(draws, fit) {
	const n = draws[0].length;
	for (let b = 0; b < n; b++) {
		let [sum, known] = [0, 0];
		for (let k = 0; k < draws.length; k++) {
			if (!fit.active[k] || !Number.isFinite(draws[k][b])) continue;
			sum += draws[k][b] - fit.theta[k];
			known += 1;
		}
		for (const own of draws) own[b] = known > 0 ? ELO_PER_LOGIT * (own[b] - sum / known) : NaN;
	}
	return draws;
}

/** The numbers of the pairs of two members, by the `place` of each. */
function pairsAmong(votes, place) {
	return Array.from(votes.first.keys()).filter((p) => place[votes.first[p]] >= 0 && place[votes.second[p]] >= 0);
}

/** The inverse of the information of `m` models' pairs `{i, j, n, share}`, without the common shift; null if there is none. */
function inverseInformation(pairs, m) {
	const matrix = new Float64Array(m * m);
	let trace = 0;
	for (const { i, j, n, share } of pairs) {
		const v = n * share * (1 - share);
		addDifference(matrix, m, i, j, v);
		trace += 2 * v;
	}
	return factorised(matrix, m) ? inverted(matrix, m).map((x) => x - 1 / trace) : null;
}

/** The maximum of the log-likelihood + 1/2 log det information (Firth 1993) of models that met; null if it is not found. */
function penalisedFit(votes, fit) {
	const { members, place } = membersOf(votes.size, (k) => fit.component[k] === 1);
	const m = members.length;
	const pairs = pairsAmong(votes, place);
	const theta = Float64Array.from(members, (model) => fit.theta[model]);
	centre(theta);
	for (let step = 0; step < FIRTH_STEPS; step++) {
		const met = pairs.map((p) => {
			const [i, j] = [place[votes.first[p]], place[votes.second[p]]];
			const [win, tie, loss] = votes.count.map((column) => column[p]);
			const share = 1 / (1 + Math.exp(theta[j] - theta[i]));
			return { i, j, n: win + tie + loss, points: win + tie / 2, share };
		});
		const inverse = inverseInformation(met, m);
		if (inverse === null) return null;
		const score = new Float64Array(m);
		for (const pair of met) {
			const { i, j, n, points, share } = pair;
			pair.added = n * share * (1 - share) * (inverse[i * m + i] + inverse[j * m + j] - 2 * inverse[i * m + j]);
			const off = points + pair.added / 2 - (n + pair.added) * share;
			score[i] += off;
			score[j] -= off;
		}
		const change = product(inverse, score, m);
		const longest = change.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
		if (!Number.isFinite(longest)) return null;
		if (longest < FIRTH_TOLERANCE) {
			for (const pair of met) pair.n += pair.added; // battles that the penalty adds count as battles
			return penalisedTables(votes, fit, members, place, theta, inverseInformation(met, m));
		}
		for (let k = 0; k < m; k++) theta[k] += change[k] * Math.min(1, 1 / longest);
	}
	return null;
}

/** Ratings and errors of the penalised fit, Elo, and a function that gives differences of one model to all others. */
function penalisedTables(votes, fit, members, place, theta, inverse) {
	const m = members.length;
	let [within, ofWins, total] = [0, 0, 0];
	for (let p = 0; p < votes.first.length; p++) {
		const [i, j] = [place[votes.first[p]], place[votes.second[p]]];
		const [win, tie, loss] = votes.count.map((column) => column[p]);
		const share = 1 / (1 + Math.exp((j < 0 ? 0 : theta[j]) - (i < 0 ? 0 : theta[i])));
		ofWins += (win + tie + loss) * share * (1 - share);
		within += tie / 4;
		total += win + tie + loss;
	}
	const dispersion = ofWins > 0 ? Math.min(Math.max(1 - ((within / ofWins) * total) / (total + 3), 0), 1) : 1;
	const active = members.map((model) => Number(fit.active[model]));
	const n = active.reduce((sum, x) => sum + x, 0);
	const covered = product(inverse, active, m);
	const mean = n > 0 ? theta.reduce((sum, x, k) => sum + active[k] * x, 0) / n : 0;
	const common = covered.reduce((sum, x, k) => sum + active[k] * x, 0);
	const unit = ELO_PER_LOGIT * Math.sqrt(dispersion);
	const of = (value) => ofMembers(votes.size, members, value);
	const root = (x) => Math.sqrt(Math.max(x, 0));
	return {
		strengths: of((k) => theta[k]),
		ratings: of((k) => ELO_PER_LOGIT * (theta[k] - mean)),
		errors: of((k) => unit * root(inverse[k * m + k] - (2 * covered[k]) / n + common / n ** 2)),
		// less the mean of all others
		apart: of((k) => {
			const [own, others] = [inverse[k * m + k], Math.max(n - active[k], 1)];
			const rest = (common - 2 * active[k] * covered[k] + active[k] * own) / others ** 2;
			return unit * root(own - (2 * (covered[k] - active[k] * own)) / others + rest);
		}),
		differences(model) {
			const i = place[model];
			const error = (k) => unit * root(inverse[i * m + i] + inverse[k * m + k] - 2 * inverse[i * m + k]);
			if (i < 0) return { difference: of(() => NaN), error: of(() => NaN) };
			return { difference: of((k) => ELO_PER_LOGIT * (theta[i] - theta[k])), error: of(error) };
		},
	};
}

/** The point below which a share of numbers lies, between the two next to it; NaN left out. */
function quantileOf(values, share) {
	const known = values.filter((x) => !Number.isNaN(x)).sort();
	if (known.length === 0) return NaN;
	const at = share * (known.length - 1);
	const [below, above] = [known[Math.floor(at)], known[Math.ceil(at)]];
	return below === above ? below : below + (at - Math.floor(at)) * (above - below);
}

/**
 * Differences of F models, best first: `errors`, and the `largest` statistics |difference - estimate| / error of each model
 * in each draw. `draws` are less the estimates.
 */
function comparedDraws(draws) {
	const errors = draws.map(() => new Float64Array(draws.length).fill(NaN));
	const largest = draws.map((own) => new Float64Array(own.length).fill(NaN));
	for (let i = 0; i < draws.length; i++)
		for (let j = i + 1; j < draws.length; j++) {
			let [n, sum, square, own] = [0, 0, 0, 0];
			for (let b = 0; b < draws[i].length; b++) {
				const d = draws[i][b] - draws[j][b];
				if (!Number.isFinite(d)) continue;
				n += 1;
				sum += d;
				square += d * d;
				own += draws[i][b] ** 2 + draws[j][b] ** 2;
			}
			const variance = (square - sum ** 2 / n) / (n - 1);
			if (!(variance > NOISE ** 2 && variance > (ROUNDING ** 2 * own) / n)) continue;
			const error = Math.sqrt(variance);
			errors[i][j] = errors[j][i] = error;
			for (let b = 0; b < draws[i].length; b++) {
				const statistic = Math.abs(draws[i][b] - draws[j][b]) / error;
				if (!Number.isFinite(statistic)) continue;
				if (!(largest[i][b] >= statistic)) largest[i][b] = statistic;
				if (!(largest[j][b] >= statistic)) largest[j][b] = statistic;
			}
		}
	return { errors, largest };
}

/** The smallest value that a share of numbers, NaN left out, does not exceed. */
function criticalOf(largest, share) {
	const known = largest.filter((x) => !Number.isNaN(x)).sort();
	return known.length ? known[Math.ceil(share * known.length - 1e-9) - 1] : NaN;
}

/** Tiers and ranks left open, by model; `order` are the models that draws tell apart, best first. */
function ranksLeftOpen(order, ranked, estimate, draws, closed) {
	const centred = order.map((model) => draws[model].map((x) => (Number.isFinite(x) ? x - estimate[model] : NaN)));
	const { errors, largest } = comparedDraws(centred);
	const apart = (i, j, critical) => Math.abs(estimate[order[i]] - estimate[order[j]]) - critical * errors[i][j] > NOISE;
	const ofAll = Float64Array.from(centred[0] ?? [], (_, b) =>
		largest.reduce((most, own) => (own[b] > most || Number.isNaN(most) ? own[b] : most), NaN),
	);
	const tiers = new Map();
	const critical = criticalOf(ofAll, LEVEL);
	let [tier, leader] = [0, 0];
	order.forEach((model, k) => {
		if (k === 0 || apart(leader, k, critical)) [tier, leader] = [tier + 1, k];
		tiers.set(model, tier);
	});
	const n = ranked.length;
	const open = new Map(ranked.map((model) => [model, [1, n]]));
	let share = LEVEL;
	const loose = ranked.filter((model) => !order.includes(model));
	if (closed && loose.length > 0) {
		const each = (1 - LEVEL) / Math.max(n - 1, 1);
		share = 1 - each * Math.max(order.length - 1, 0);
		const z = normalQuantile(1 - each / 2);
		for (const model of loose) {
			const { difference, error } = closed(model);
			for (const other of ranked) {
				if (other === model) continue;
				const [above, below] = [difference[other] < -z * error[other], difference[other] > z * error[other]];
				open.get(model)[0] += above;
				open.get(model)[1] -= below;
				if (loose.includes(other)) continue;
				open.get(other)[0] += below;
				open.get(other)[1] -= above;
			}
		}
	}
	order.forEach((model, i) => {
		// By steps down: differences beyond the critical value leave the family (Mogstad and others 2023).
		let [family, own] = [order.map((_, j) => j).filter((j) => !Number.isNaN(errors[i][j])), largest[i]];
		let beyond = criticalOf(own, share);
		for (;;) {
			const left = family.filter((j) => !apart(i, j, beyond));
			if (left.length === 0 || left.length === family.length) break;
			family = left;
			own = Float64Array.from(own, (_, b) => {
				let most = NaN;
				for (const j of left) {
					const statistic = Math.abs(centred[i][b] - centred[j][b]) / errors[i][j];
					if (Number.isFinite(statistic) && !(most >= statistic)) most = statistic;
				}
				return most;
			});
			beyond = criticalOf(own, share);
		}
		order.forEach((other, j) => {
			if (!apart(i, j, beyond)) return;
			if (estimate[other] > estimate[model]) open.get(model)[0] += 1;
			if (estimate[other] < estimate[model]) open.get(model)[1] -= 1;
		});
	});
	return { tiers, open };
}

/**
 * The board of votes: what `jaxeval.leaderboard` says of them, with 95 % intervals, mean rating 1000.
 * @param votes {size, first, second, count}, names: of the models, n: resamples, tell(done): now and then.
 * @returns {rows, answer, penalised}: rows of a page, best first; the answer in a sentence; how many intervals are those of
 *   the penalised fit.
 */
function resampledBoard(votes, names, n, seed, noun, tell = () => {}) {
	const all = { ...votes, weight: votes.count, square: votes.count };
	const fit = fitVotes(all, false);
	const models = Array.from({ length: votes.size }, (_, k) => k);
	const { ratings } = ratedBoard(fit, { kind: "mean", rating: 0 });
	const rated = (k) => Number.isFinite(ratings[k]);
	const draws = alignedDraws(resampledStrengths(all, fit, n, seed, tell), fit);
	const lost = draws.map((own) => own.reduce((sum, x) => sum + !Number.isFinite(x), 0) / n);
	const loose = models.map((k) => rated(k) && lost[k] > MOST_NOT_FINITE);

	const unbounded = (k) => ["undefeated", "winless"].includes(fit.standing[k]) && fit.component[k] === 1;
	const few = models.map((k) => (rated(k) && fit.battles[k] < ENOUGH_BATTLES) || (unbounded(k) && !rated(k)));
	const firth = few.some(Boolean) || loose.some(Boolean) ? penalisedFit(all, fit) : null;
	const own = models.map((k) => firth !== null && (few[k] || loose[k]) && !Number.isNaN(firth.ratings[k]));
	const vague = models.map((k) => firth !== null && few[k] && rated(k) && firth.errors[k] > UNPLACED_ELO);
	const tooFew = models.map((k) => {
		if (!loose[k] && !vague[k]) return false;
		if (firth === null) return true;
		const { difference, error } = firth.differences(k);
		const near = (j) => (j === k ? false : !(Math.abs(difference[j]) > NORMAL_95 * error[j]));
		const others = models.filter((j) => rated(j) && j !== k);
		if (loose[k]) return firth.apart[k] > UNPLACED_ELO && others.some(near);
		return others.filter((j) => !vague[j]).every(near);
	});
	const known = models.filter((k) => rated(k) && !tooFew[k]);
	if (known.length === 1) {
		const apart = firth?.differences(known[0]);
		const below = (j) => apart !== undefined && apart.difference[j] > NORMAL_95 * apart.error[j];
		tooFew[known[0]] = models.some((j) => rated(j) && tooFew[j] && !below(j));
	}

	const ends = models.map((k) => {
		if (own[k]) {
			const [low, high] = [
				firth.ratings[k] - NORMAL_95 * firth.errors[k],
				firth.ratings[k] + NORMAL_95 * firth.errors[k],
			];
			return [fit.standing[k] === "winless" ? -Infinity : low, fit.standing[k] === "undefeated" ? Infinity : high];
		}
		if (!rated(k)) return [NaN, NaN];
		const [low, high] = [(1 - LEVEL) / 2, (1 + LEVEL) / 2].map((share) => quantileOf(draws[k], share));
		return high - low > NOISE ? [low, high] : [NaN, NaN];
	});

	const strength = (k) => Math.round(1e9 * fit.theta[k]); // equal models differ by rounding
	const byName = (a, b) => (names[a] < names[b] ? -1 : 1);
	const better = (a, b) => strength(b) - strength(a) || byName(a, b);
	const ranked = models.filter((k) => rated(k) && !tooFew[k]).sort(better);
	const ofTwo = votes.size === 2 && own.some(Boolean); // their one difference is that of the penalised fit
	const order = ranked.filter((k) => !loose[k] && !ofTwo);
	const { tiers, open } = ranksLeftOpen(order, ranked, ratings, draws, firth?.differences);
	if (ofTwo && ranked.length === 2) ranked.forEach((k) => tiers.set(k, open.get(k)[0]));
	const rank = new Map(ranked.map((k) => [k, 1 + ranked.filter((j) => strength(j) > strength(k)).length]));
	const notBelow = (first, others) =>
		others.filter((j) => {
			if (own[first] || own[j]) {
				const { difference, error } = firth.differences(first);
				return !(difference[j] - NORMAL_95 * error[j] > 0);
			}
			const apart = draws[first].map((x, b) => x - draws[j][b]);
			return !(quantileOf(apart, (1 - LEVEL) / 2) > NOISE);
		});

	const plain = (x) => (Number.isFinite(x) ? x + 1000 : x > 0 ? "inf" : x < 0 ? "-inf" : undefined);
	const rows = models
		.filter((k) => fit.battles[k] > 0)
		.sort((a, b) => tooFew[a] - tooFew[b] || rated(b) - rated(a) || better(a, b))
		.map((k) => {
			const flags = [
				fit.component[k] > 1 ? `group ${fit.component[k]}` : tooFew[k] ? "too few battles" : fit.standing[k],
				fit.battles[k] < PRELIMINARY_VOTES && "preliminary",
				rated(k) && lost[k] > 0 && `no rating in ${(100 * lost[k]).toFixed(1)}% of resamples`,
			];
			const row = { model: k, rank: rank.get(k), tier: tiers.get(k), votes: fit.battles[k] };
			const text = flags.filter(Boolean).join(", ");
			if (rank.has(k)) [row.best, row.worst] = open.get(k);
			if (text) row.flags = text;
			if (rated(k)) [row.rating, row.lower, row.upper] = [ratings[k], ...ends[k]].map(plain);
			return row;
		});
	const answer = leaderLine({
		names,
		noun,
		models,
		ratings,
		rated,
		ranked,
		ends,
		strength,
		better,
		notBelow,
		firth,
		fit,
		own,
		loose,
	});
	return {
		rows: JSON.parse(JSON.stringify(rows)),
		answer,
		penalised: own.filter(Boolean).length,
		converged: fit.converged,
	};
}

/** Who is first, in a sentence, and from whom the votes do not tell it apart: see `Bootstrap.first_sentence`. */
function leaderLine(of) {
	const { names, noun, models, ratings, rated, ranked, ends, strength, notBelow, firth, fit, own, loose } = of;
	const sure = "at the 95% level";
	const upTo = (list, most) =>
		list.length <= most ? list.join(", ") : `${list.slice(0, most).join(", ")} and ${list.length - most} more`;
	const beside = (first, rest) => {
		if (firth === null) return rest;
		const { difference, error } = firth.differences(first);
		return rest.filter((j) => !(difference[j] > NORMAL_95 * error[j]));
	};
	const above = models.filter((k) => fit.standing[k] === "undefeated" && fit.component[k] === 1);
	if (above.length > 0 && firth !== null) {
		const best = above.reduce((a, b) => (firth.strengths[b] > firth.strengths[a] ? b : a));
		const rest = models.filter((k) => k !== best && fit.battles[k] > 0);
		const n = fit.battles[best];
		if (beside(best, rest).length === 0)
			return `${names[best]} leads: undefeated in ${n} ${n === 1 ? "battle" : "battles"}, so that it has no finite rating, and ahead of all others ${sure}`;
	}
	const all = models.filter(rated).sort(of.better);
	if (all.length === 0)
		return `no ${noun.one} can be ranked: no two ${noun.many} took points off each other, directly or through others`;
	const [first, ...others] = ranked.length > 0 ? ranked : all;
	const sign = (x) => (Math.abs(x) < 0.05 ? "+0.0" : `${x < 0 ? "-" : "+"}${Math.abs(x).toFixed(1)}`);
	const [low, high] = ends[first];
	const known = Number.isFinite(low) && Number.isFinite(high);
	let rating = (1000 + ratings[first]).toFixed(1);
	if (known) rating += ` (${sign(high - ratings[first])}/${sign(low - ratings[first])})`;
	const alike = notBelow(first, others);
	const equal = others.filter((k) => strength(k) === strength(first));
	const level = [names[first], ...equal.map((k) => names[k])];
	const together = level.length === 2 ? level.join(" and ") : upTo(level, 4);
	if (ranked.length === 0 || (loose[first] && (alike.length > 0 || !own[first]))) {
		const firstWith = equal.length > 0 ? `${together} are level, first` : `${names[first]} is first`;
		const undefeated = above.map((k) => names[k]);
		const besides = above.length > 0 ? ` of those with a rating; undefeated: ${upTo(undefeated, 8)}` : "";
		return `too few games to say who leads: ${firstWith} with ${rating}${besides}`;
	}
	const rest = models.filter((k) => k !== first && !others.includes(k) && fit.battles[k] > 0);
	const unranked = rest.length > 0 && beside(first, rest).length > 0;
	if (others.length === 0 && (unranked || rest.length === 0))
		return `${names[first]} is first with ${rating}, the only ${noun.one} with a rank`;
	const higher = above.length > 0 || models.some((k) => rated(k) && !ranked.includes(k) && ratings[k] > ratings[first]);
	if (alike.length > 0 && higher) rating += " of those with a rank";
	const tied = (list) =>
		`; statistically tied with ${upTo(
			list.map((k) => names[k]),
			3,
		)} ${sure}`;
	const extreme = (k) => ["undefeated", "winless"].includes(fit.standing[k]) && fit.component[k] === 1;
	const apart = models.filter((k) => !rated(k) && !extreme(k) && fit.battles[k] > 0).map((k) => names[k]);
	const besides =
		(above.length > 0
			? `; undefeated, without a rank: ${upTo(
					above.map((k) => names[k]),
					8,
				)}`
			: "") + (apart.length > 0 ? `; nothing compares ${upTo(apart, 3)} with these` : "");
	if (equal.length > 0) {
		const further = alike.filter((k) => !equal.includes(k));
		return `${together} are level, first with ${rating}${further.length > 0 ? tied(further) : ""}${besides}`;
	}
	if (alike.length > 0) return `${names[first]} is first with ${rating}${tied(alike)}${besides}`;
	return `${names[first]} leads with ${rating}, ahead of all others${unranked ? " with a rank," : ""} ${sure}${besides}`;
}

/** The text of the page's script. A worker runs it, too: there it is no page, and makes boards of messages. */
const SCRIPT = typeof document === "undefined" ? null : document.currentScript.textContent;
if (SCRIPT === null)
	self.onmessage = ({ data: { votes, names, n, seed, noun } }) => {
		const board = resampledBoard(votes, names, n, seed, noun, (done) => postMessage({ done }));
		postMessage({ board });
	};
