"""How evaluators rank models, compared with gold: sums over pairs, Kendall's tau-b, ranks, and agreement by the gap.

A resample of models is a vector of counts. A model is never paired with its own copy: a pair of models i and j weighs
count_i count_j. A missing score is NaN, and takes its model out of everything that is computed for the evaluator.

For many rankings of the same models, each with its own scores (`agreement`, `stratified`), the lanes L are the last
axis, which CPUs and accelerators vectorise.
"""

from typing import Any, NamedTuple

from jaxeval.kernels import solve
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Num
from jaxeval.kernels.links import Link, probability
from jaxeval.lazy_names import jnp, lax

_MOST_STEPS = 40

# Gold scores in logits that differ by no more are equal: it is ten times the error that a refit leaves.
_GOLD_TIE = 1e-7
# Scores that differ by no more are equal, and a gap that falls short of a margin by no more is not under it, because
# percentages are rounded.
_SCORE_TIE = 1e-9
_FIELD = 2.0**17  # see `_word`


class RankedPairs(NamedTuple):
    """Weights of pairs of models that have both scores, such as those whose scores differ by less than each gap."""

    concordance: Float[Array, "..."]  # pairs in the order of gold less pairs against it
    pairs: Float[Array, "..."]
    tied_scores: Float[Array, "..."]  # of them, tied by the evaluator
    tied_gold: Float[Array, "..."]  # of them, tied in gold


class PairBlocks(NamedTuple):
    """Pairs of models in blocks of W, and the sign of each pair in K rows: those of the evaluators, gap by gap."""

    first: Int32[Array, "blocks W"]
    second: Int32[Array, "blocks W"]
    sign: Float[Array, "blocks K W"]
    n_blocks: Int32[Array, ""]  # that hold pairs, the first ones


class DeltaPairs(NamedTuple):
    """Pairs of models under each of D gaps, by E evaluators with fixed scores: computed once for all resamples.

    Models have Q slots; the last is no model. Rows of pairs are those of the evaluators, gap by gap; further rows are
    empty.
    """

    ordered: PairBlocks  # that some evaluator and gold order: 1 in the order of gold, -1 against it, 0 beyond the gap
    tied: PairBlocks  # in gold: 1 under the gap, 0 beyond it
    n_evaluators: Int32[Array, ""]
    n_ends: Int32[Array, ""]  # 1 + D
    order: Int32[Array, "_ N"]  # models by score; the last slot for missing ones
    # Of ties, then of every gap: first place in the evaluator's order that is not tied, or under the gap.
    end: Int32[Array, "rows_of_ends N"]
    end_of_ties: Int32[Array, "K"]  # rows of `end` by row of pairs
    end_of_gap: Int32[Array, "K"]


class RankMeasures(NamedTuple):
    """Measures of ranks, of every evaluator; NaN where its scores, or gold, are constant."""

    spearman: Float[Array, "..."]
    top_overlap: Float[Array, "..."]  # share of gold's top models in the evaluator's; NaN with fewer models than that
    rank_deviation: Float[Array, "..."]  # mean |rank - gold rank|


class Separation(NamedTuple):
    """Weights of pairs of models by whether their intervals overlap."""

    pairs: Float[Array, "..."]
    apart: Float[Array, "..."]  # of them, with intervals that do not overlap
    ordered: Float[Array, "..."]  # of those, ordered by gold
    agreeing: Float[Array, "..."]  # of those, in the order of gold


class GapQuestion(NamedTuple):
    """What a regression of agreement on the gap is fitted to, and how."""

    first: Int32[Array, "P"]  # models of every pair
    second: Int32[Array, "P"]
    scale: Float[Array, "E"]  # points of the gap for which the slope is penalised
    start: Float[Array, "E 2"]  # where to start from: intercept and slope per scale
    edges: Float[Array, "E _"]  # of the G bins, from 0, in which the regression is compared with the pairs
    ridge: Float[Array, ""]
    tolerance: Float[Array, ""]  # logits


class GapRegression(NamedTuple):
    """Logistic regression of agreement with gold on the gap of scores: logit P = intercept + slope gap."""

    intercept: Float[Array, "..."]
    slope: Float[Array, "..."]
    pairs: Float[Array, "..."]  # weight of the pairs that the evaluator orders
    agreeing: Float[Array, "..."]  # of them, in the order of gold; ties in gold are half
    status: Int8[Array, "..."]  # a `solve.Status`
    bin_pairs: Float[Array, "... G"]  # weight of the pairs by bins of the gap
    bin_agreeing: Float[Array, "... G"]  # of them, in the order of gold
    bin_expected: Float[Array, "... G"]  # of them, by the regression


def tau_b(sums: RankedPairs) -> Float[Any, "..."]:
    """Return Kendall's (P - Q) / sqrt((P + Q + T) (P + Q + U)) (DOI 10.1093/biomet/33.3.239), of JAX or NumPy arrays.

    It is NaN where no pair is ordered by the evaluator, or none by gold.
    """
    xp = sums.pairs.__array_namespace__()
    product = (sums.pairs - sums.tied_scores) * (sums.pairs - sums.tied_gold)
    return xp.where(product > 0, sums.concordance / xp.sqrt(xp.where(product > 0, product, 1.0)), xp.nan)


def misordered(sums: RankedPairs) -> Float[Array, "..."]:
    """Return share of the pairs in the wrong order, a tie counting half; NaN without pairs."""
    known = sums.pairs > 0
    return jnp.where(known, 0.5 - 0.5 * sums.concordance / jnp.where(known, sums.pairs, 1.0), jnp.nan)


def delta_sums_of_draws(counts: Num[Array, "R Q"], pairs: DeltaPairs) -> RankedPairs:
    """Return sums (R, K) over pairs in resamples ``counts`` of models with fixed scores.

    The weights of pairs are formed once and multiplied by their signs for every evaluator and gap in one product: all
    are whole numbers, exact in single precision under 2**24. How many pairs lie under a gap needs no product: the
    partners of a model are neighbours in the order of scores. Loops end where there are no more pairs, evaluators or
    gaps, so the empty room of the arrays costs nothing.
    """
    by_model = counts.astype(pairs.ordered.sign.dtype).T

    def sums(blocks: PairBlocks) -> Array:
        def block(b: Array, total: Array) -> Array:
            weight = by_model[blocks.first[b]] * by_model[blocks.second[b]]
            return total + jnp.matmul(blocks.sign[b], weight, precision="highest")

        zero = jnp.zeros((blocks.sign.shape[1], len(counts)), by_model.dtype)
        return lax.fori_loop(0, blocks.n_blocks, block, zero)

    def near(e: Array, total: Array) -> Array:
        weight = by_model[pairs.order[e]]
        upto = jnp.concatenate([jnp.zeros_like(weight[:1]), jnp.cumsum(weight, 0)])

        def under(row: Array, total: Array) -> Array:
            return total.at[row].set(jnp.sum(weight * (upto[pairs.end[row]] - upto[1:]), 0))

        return lax.fori_loop(e * pairs.n_ends, (e + 1) * pairs.n_ends, under, total)

    within = lax.fori_loop(0, pairs.n_evaluators, near, jnp.zeros((len(pairs.end), len(counts)), by_model.dtype))
    totals = sums(pairs.ordered), within[pairs.end_of_gap], within[pairs.end_of_ties], sums(pairs.tied)
    return RankedPairs(*(x.T.astype(jnp.float64) for x in totals))


def delta_sums(
    scores: Float[Array, "E M"], gold: Float[Array, "M"], counts: Float[Array, "M"], deltas: Float[Array, "D"]
) -> RankedPairs:
    """Return the sums (E, D) of one resample that has ``scores`` of its own."""
    gold_gap = gold[:, None] - gold

    def of_evaluator(x: Array) -> RankedPairs:
        weight = jnp.where(jnp.isnan(x), 0.0, counts)
        copies = jnp.sum(weight**2)
        gap = x[:, None] - x

        def under(delta: Array) -> RankedPairs:
            near = jnp.abs(gap) < delta
            return RankedPairs(
                _form(jnp.where(near, jnp.sign(gap) * jnp.sign(gold_gap), 0.0), weight) / 2,
                (_form(near, weight) - copies) / 2,
                (_form(gap == 0, weight) - copies) / 2,
                (_form(near & (gold_gap == 0), weight) - copies) / 2,
            )

        return lax.map(under, deltas)

    return lax.map(of_evaluator, scores)


def _total(matrix: Num[Array, "M M"] | Bool[Array, "M M"], weight: Float[Array, "M"]) -> Float[Array, "M"]:
    """Return the ``matrix`` times the ``weight`` of the models."""
    return jnp.matmul(matrix.astype(weight.dtype), weight, precision="highest")


def _form(matrix: Num[Array, "M M"] | Bool[Array, "M M"], weight: Float[Array, "M"]) -> Float[Array, ""]:
    """Return the quadratic form of the ``matrix`` in the ``weight`` of the models: its sum over all ordered pairs."""
    return jnp.vdot(weight, _total(matrix, weight), precision="highest")


def _places(x: Float[Array, "M"], weight: Float[Array, "M"]) -> tuple[Float[Array, "M"], Float[Array, "M"]]:
    """Return the weight of the models above each one, and of those equal to it, itself included."""
    return _total(x > x[:, None], weight), _total(x == x[:, None], weight)


def _ranks(x: Float[Array, "M"], weight: Float[Array, "M"]) -> Float[Array, "M"]:
    """Return ranks from the top, averaged over ties (and copies)."""
    above, level = _places(x, weight)
    return above + (level + 1) / 2


def rank_measures(
    scores: Float[Array, "E M"], gold: Float[Array, "M"], counts: Float[Array, "M"], top: Num[Array, ""]
) -> RankMeasures:
    """Return measures of ranks among the models that each evaluator of ``scores`` has scored.

    Ties on the border of the ``top`` models share its places.
    """

    def of_evaluator(x: Array) -> RankMeasures:
        weight = jnp.where(jnp.isnan(x), 0.0, counts)
        n = jnp.sum(weight)

        def placed(y: Array) -> tuple[Array, Array]:
            above, level = _places(y, weight)
            inside = weight * jnp.clip(top - above, 0, level) / jnp.maximum(level, 1)
            return above + (level + 1) / 2, inside

        (rank, scored), (gold_rank, true) = placed(x), placed(gold)
        a, b = (jnp.where(weight > 0, r - (n + 1) / 2, 0.0) for r in (rank, gold_rank))
        spread = jnp.sum(weight * a**2) * jnp.sum(weight * b**2)
        varied = spread > 0
        spearman = jnp.sum(weight * a * b) / jnp.sqrt(jnp.where(varied, spread, 1.0))
        overlap = jnp.sum(jnp.minimum(scored, true)) / top
        return RankMeasures(
            jnp.where(varied, jnp.clip(spearman, -1, 1), jnp.nan),
            jnp.where(varied & (n >= top), overlap, jnp.nan),
            jnp.where(varied, jnp.sum(weight * jnp.abs(a - b)) / jnp.maximum(n, 1), jnp.nan),
        )

    return lax.map(of_evaluator, scores)


def tier_changes(
    scores: Float[Array, "E M"], gold: Float[Array, "M"], counts: Float[Array, "M"], tiers: Integer[Array, "T"],
    within: Bool[Array, ""],
) -> tuple[Float[Array, "E T"], Float[Array, "E T"]]:  # fmt: skip
    """Return the mean |rank - gold rank| by tier of gold (Eq. 4 of Xu et al., `jaxeval.evaluators.rank_correlation`).

    Tiers are equal parts of all models; if they cannot be equal, the better ones are larger. Tied models stay together.

    Args:
        scores: of the evaluators.
        gold: scores.
        counts: of the models.
        tiers: 0 .. T - 1, 0 the best.
        within: whether ranks are among the models of the tier, not among all that the evaluator has scored.

    Returns:
        The mean, NaN for an empty tier; and the weight of the tier's models.
    """
    n = jnp.sum(counts)
    size = n // len(tiers)
    edge = tiers * size + jnp.minimum(tiers, n - size * len(tiers))  # models in better tiers
    tier = jnp.sum(_ranks(gold, counts)[:, None] > edge[1:], 1)

    def of_evaluator(x: Array) -> Any:
        scored = jnp.where(jnp.isnan(x), 0.0, counts)

        def of_tier(t: Array) -> tuple[Array, Array]:
            member = jnp.where(tier == t, scored, 0.0)
            among = jnp.where(within, member, scored)
            distance = jnp.abs(_ranks(x, among) - _ranks(gold, among))
            total = jnp.sum(member)
            mean = jnp.sum(jnp.where(member > 0, member * distance, 0.0)) / jnp.maximum(total, 1)
            return jnp.where(total > 0, mean, jnp.nan), total

        return lax.map(of_tier, tiers)

    changes: tuple[Array, Array] = lax.map(of_evaluator, scores)
    return changes


def separation(
    scores: Float[Array, "E M"], gold: Float[Array, "M"], counts: Float[Array, "M"], ends: Float[Array, "E 2 M"]
) -> Separation:
    """Weigh pairs that intervals (lower and upper ``ends``) separate, and those of them that gold orders alike."""

    def of_evaluator(x: Array, ends: Array) -> Separation:
        lower, upper = ends
        weight = jnp.where(jnp.isnan(x + lower + upper), 0.0, counts)
        above = lower[:, None] > upper  # False for NaN
        return Separation(
            (jnp.sum(weight) ** 2 - jnp.sum(weight**2)) / 2,
            _form(above, weight),
            _form(above & (gold[:, None] != gold), weight),
            _form(above & (gold[:, None] > gold), weight),
        )

    return lax.map(lambda one: of_evaluator(*one), (scores, ends))


def gap_regression(
    scores: Float[Array, "E M"], gold: Float[Array, "M"], counts: Float[Array, "M"], question: GapQuestion
) -> GapRegression:
    """Return whether gold orders a pair as the evaluator does, by how far its scores differ: Newton's method.

    Pairs that the evaluator ties say nothing; those tied in gold count half. The penalty is ridge / 2 times the squares
    of the intercept and of the slope per scale.
    """
    first, second, ridge = question.first, question.second, question.ridge
    gold_order = jnp.sign(gold[first] - gold[second])
    of_pair = counts[first] * counts[second]

    def of_evaluator(x: Array, scale: Array, start: Array, edges: Array) -> GapRegression:
        gap = x[first] - x[second]
        agree = (1 + jnp.sign(gap) * gold_order) / 2
        known = ~jnp.isnan(agree) & (gap != 0)
        weight = jnp.where(known, of_pair, 0.0)
        # Nothing here but `weight` depends on the lane: one product multiplies the rest by the weights of all lanes.
        agree, gap = jnp.where(known, agree, 0.0), jnp.where(known, jnp.abs(gap), 0.0)
        z = gap / scale
        powers = jnp.stack([jnp.ones_like(z), z, z**2])

        def sums(rows: Array, *columns: Array) -> Array:
            return jnp.matmul(jnp.stack(columns), rows.T, precision="highest")

        def expected(theta: Array) -> Array:
            return probability(Link.LOGIT, theta[0] + theta[1] * z)

        def step(theta: Array) -> tuple[Array, Array]:
            p = expected(theta)
            total = sums(powers, weight * (agree - p), weight * p * (1 - p))
            grad, v = total[0, :2] - ridge * theta, total[1]
            a, b, c = v[0] + ridge, v[1], v[2] + ridge
            change = jnp.stack([c * grad[0] - b * grad[1], a * grad[1] - b * grad[0]]) / (a * c - b * b)
            return solve.capped(change), grad

        solution = solve.iterate(step, start, solve.Terms.of(0.0, question.tolerance, _MOST_STEPS))
        ends = edges[:, None]
        inside = jnp.concatenate([powers[:1], (gap >= ends[:-1]) & (gap < ends[1:])])
        pairs, agreeing, by_regression = sums(inside, weight, weight * agree, weight * expected(solution.theta))
        return GapRegression(
            intercept=solution.theta[0], slope=solution.theta[1] / scale, pairs=pairs[0], agreeing=agreeing[0],
            status=solution.status, bin_pairs=pairs[1:], bin_agreeing=agreeing[1:], bin_expected=by_regression[1:],
        )  # fmt: skip

    return lax.map(lambda one: of_evaluator(*one), (scores, question.scale, question.start, question.edges))


def _signs(
    gap: Float[Array, "M L"], gold_gap: Float[Array, "M"]
) -> tuple[Float[Array, "M L"], Float[Array, "M L"], Float[Array, "M 1"]]:
    """Return |gap|, infinite where not compared, and the signs of both gaps, 0 for equals.

    The gap between two infinite gold scores is NaN, like that to a missing one: nothing compares them.
    """
    width = jnp.where(jnp.isnan(gold_gap)[:, None] | jnp.isnan(gap), jnp.inf, jnp.abs(gap))
    sign = jnp.where(width > _SCORE_TIE, jnp.sign(gap), 0.0)
    gold_sign = jnp.where(jnp.abs(gold_gap) > _GOLD_TIE, jnp.sign(gold_gap), 0.0)
    return width, sign, gold_sign[:, None]


def _word(sign: Float[Array, "M L"], gold_sign: Float[Array, "M 1"]) -> Float[Array, "M L"]:
    """Return a pair as a number that adds up: signed agreement, one pair, and whether gold ties it, 17 bits apart.

    Numbers as wide as those that are compared vectorise best.
    """
    return sign * gold_sign + (_FIELD + jnp.where(gold_sign == 0, _FIELD**2, 0.0))


def _sums(words: Float[Array, "... M L"], tied: Float[Array, "... M L"]) -> RankedPairs:
    """Return the `RankedPairs` from sums of words (`_word`), and sums of ties of the scores."""
    gold_tied = jnp.round(words / _FIELD**2)
    rest = words - _FIELD**2 * gold_tied
    pairs = jnp.round(rest / _FIELD)
    surplus, pairs, gold_tied, tied = (jnp.sum(x, -2) for x in (rest - _FIELD * pairs, pairs, gold_tied, tied))
    return RankedPairs(surplus, pairs, tied, gold_tied)


def agreement(scores: Float[Array, "M L"], gold: Float[Array, "M"], deltas: Float[Array, "D"]) -> RankedPairs:
    """Return sums (D, L) of the pairs whose ``scores`` differ by less than each of ``deltas`` > 0.

    A model is left out of a ranking where its score is NaN. ``gold`` are log-strengths; infinite ones of the same sign
    do not compare with each other, and NaN compares with nothing.
    """
    m = gold.shape[0]
    margins = jnp.where(jnp.isinf(deltas), jnp.finfo(scores.dtype).max, deltas - _SCORE_TIE)
    twice, gold_twice = jnp.concatenate([scores, scores]), jnp.concatenate([gold, gold])
    first_half = jnp.arange(m) < m // 2

    def shifted(s: Array, state: tuple[tuple[Array, ...], Array]) -> tuple[tuple[Array, ...], Array]:
        """Return all pairs of a model and the s-th one after it, in a circle: s up to M / 2 takes each pair once."""
        words, tied = state
        once = jnp.where((2 * s < m) | first_half, gold, jnp.nan)
        gold_gap = once - lax.dynamic_slice_in_dim(gold_twice, s, m)
        width, sign, gold_sign = _signs(scores - lax.dynamic_slice_in_dim(twice, s, m), gold_gap)
        one = _word(sign, gold_sign)
        words = tuple(word + jnp.where(width < margin, one, 0.0) for word, margin in zip(words, margins, strict=True))
        return words, tied + (width <= _SCORE_TIE)

    zero = jnp.zeros(scores.shape)
    words, tied = lax.fori_loop(1, m // 2 + 1, shifted, ((zero,) * len(margins), zero))
    return _sums(jnp.stack(words), tied)


def stratified(
    scores: Float[Array, "M L"], gold: Float[Array, "M"], member: Bool[Array, "T M"]
) -> tuple[Float[Array, "T L"], Float[Array, "T L"], RankedPairs]:
    """Compare rankings ``scores`` with ``gold`` in the tiers of ``member``, as `agreement` does.

    Equals share the mean of their ranks, which makes a rank 1 + sum over the others of (1 - sign) / 2.

    Returns:
        The mean |rank - gold rank| of the tier's models, with ranks among all that are compared; their number; and the
        pairs inside a tier (T, L).
    """
    m = gold.shape[0]
    tier = jnp.where(jnp.any(member, 0), jnp.argmax(member, 0), -1)

    def row(i: Array, state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        word, tied, change, partners = state
        gold_gap = jnp.where(jnp.arange(m) == i, jnp.nan, gold[i] - gold)
        width, sign, gold_sign = _signs(scores[i] - scores, gold_gap)
        compared = width < jnp.inf
        inside = compared & (tier[i] == tier)[:, None]
        word = word + jnp.where(inside, _word(sign, gold_sign), 0.0)
        tied = tied + (inside & (width <= _SCORE_TIE))
        change = change + jnp.where(compared, sign - gold_sign, 0.0)
        return word, tied, change, partners + compared

    word, tied, change, partners = lax.fori_loop(0, m, row, (jnp.zeros(scores.shape),) * 4)
    mine = member[:, :, None]
    ranked = (partners > 0) & mine
    models = jnp.sum(ranked, 1).astype(scores.dtype)
    total = jnp.sum(jnp.where(ranked, 0.5 * jnp.abs(change), 0.0), 1)
    mean = jnp.where(models > 0, total / jnp.maximum(models, 1), jnp.nan)
    inside = _sums(jnp.where(mine, word, 0.0), jnp.where(mine, tied, 0.0))
    return mean, models, RankedPairs(*(x / 2 for x in inside))  # every pair is seen from both sides
