"""Naive float64 NumPy twins of the fast code, one definition each; slow, plain, and kept to test against."""

from fractions import Fraction
from itertools import permutations, product
from math import ceil

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, log_ndtr
from scipy.stats import norm, rankdata
from scipy.stats import t as student

#: Smallest p-value that a fixed-seed test of fit may have: that of five standard errors.
FIVE_SE = 2 * norm.sf(5)

MASK = 2**64 - 1
IDENTIFIED, ABOVE, BELOW, INCOMPARABLE = range(4)


# Random words, in integers of any size.


def stream_key(*parts):
    """Odd key of SplitMix64 finalisers chained over ``parts``."""
    key, golden = 0, 0x9E3779B97F4A7C15
    for part in parts:
        x = (key * golden + part + golden) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        key = x ^ (x >> 31)
    return key | 1


def squares32(counter, key):
    """Four rounds of arXiv:2004.06278."""
    x = y = counter * key & MASK
    z = y + key & MASK
    for add in (y, z, y):
        x = x * x + add & MASK
        x = (x >> 32) | (x << 32 & MASK)
    return (x * x + z & MASK) >> 32


def squares64(counter, key):
    """Five rounds of arXiv:2004.06278."""
    x = y = counter * key & MASK
    z = y + key & MASK
    for add in (y, z, y, z):
        t = x = x * x + add & MASK
        x = (x >> 32) | (x << 32 & MASK)
    return t ^ ((x * x + y & MASK) >> 32)


# Bradley-Terry and Thurstone: (M, M) wins, sum of weight * target of the row against the column.


def mills(z):
    return np.exp(norm.logpdf(z) - log_ndtr(z))


#: log F, its derivative, and minus the second one.
LINKS = {
    "logit": (log_expit, lambda z: expit(-z), lambda z: expit(z) * expit(-z)),
    "probit": (log_ndtr, mills, lambda z: mills(z) * (mills(z) + z)),
}


def log_likelihood(theta, wins, ridge=0.0, link="logit"):
    i, j = np.nonzero(wins)
    return np.sum(wins[i, j] * LINKS[link][0](theta[i] - theta[j])) - ridge * np.sum(theta**2)


def gradient(theta, wins, ridge=0.0, link="logit"):
    (i, j), grad = np.nonzero(wins), -2 * ridge * theta
    surprise = wins[i, j] * LINKS[link][1](theta[i] - theta[j])
    np.add.at(grad, i, surprise)
    np.subtract.at(grad, j, surprise)
    return grad


def information(theta, wins, ridge=0.0, link="logit"):
    """(M, M) negative Hessian."""
    (i, j), result = np.nonzero(wins), 2 * ridge * np.eye(len(theta))
    v = wins[i, j] * LINKS[link][2](theta[i] - theta[j])
    np.add.at(result, ([i, j], [i, j]), v)
    np.subtract.at(result, ([i, j], [j, i]), v)
    return result


def newton(wins, ridge=0.0, link="logit"):
    """(M,) log-strengths of mean zero that maximise the likelihood; 0 for models without battles."""
    theta, last = np.zeros(len(wins)), np.inf
    for _ in range(100):
        curved = information(theta, wins, ridge, link)
        step = np.linalg.pinv(curved, hermitian=True) @ gradient(theta, wins, ridge, link)
        size = np.abs(step).max()
        if size < 1e-13 or last <= size < 1e-6:  # rounding is left
            return theta
        last = size
        here = log_likelihood(theta, wins, ridge, link)
        while np.abs(step).max() > 1e-6 and log_likelihood(theta + step, wins, ridge, link) < here:
            step = step / 2
        theta = theta + step
    raise AssertionError("the naive Newton iteration did not converge")


def wins_of(a, b, target, m):
    """(M, M) points that the row took off the column, from single battles."""
    wins = np.zeros((m, m))
    np.add.at(wins, (a, b), target)
    np.add.at(wins, (b, a), 1 - target)
    return wins


def one_strength(anchors, points, ridge):
    """Log-strength of one model by its points off opponents whose strengths are known."""
    return brentq(lambda t: np.sum(points - expit(t - anchors)) - 2 * ridge * t, -50, 50, xtol=1e-13)


def held_out(a, b, target, m, model, ridge):
    """Log-strength of a model by its own battles, beside the others by theirs."""
    own, first = (a == model) | (b == model), a == model
    theta = newton(wins_of(a[~own], b[~own], target[~own], m), ridge)
    return one_strength(theta[np.where(first, b, a)[own]], np.where(first, target, 1 - target)[own], ridge)


def temperature(d, y):
    """The slope of a logistic fit without a constant."""
    return brentq(lambda beta: np.sum(d * (y - expit(beta * d))), -50, 50, xtol=1e-13)


def firth(wins):
    """(M,) log-strengths of mean zero without bias of the first order: a logistic fit with hat values.

    Kosmidis and Firth 2009, with the first model as reference: a row of the design for the wins of one over another.
    """
    winner, loser = np.nonzero(wins)
    weight, m = wins[winner, loser], len(wins)
    x = (np.eye(m)[winner] - np.eye(m)[loser])[:, 1:]
    beta = np.zeros(m - 1)
    for _ in range(20_000):
        p = expit(x @ beta)
        curved = weight * p * (1 - p)
        inverse = np.linalg.inv(x.T @ (curved[:, None] * x))
        hat = curved * np.einsum("ri,ij,rj->r", x, inverse, x)
        score = x.T @ (weight * (1 - p) + hat * (0.5 - p))
        step = np.linalg.solve(x.T @ ((curved + hat * p * (1 - p))[:, None] * x), score)
        beta = beta + step
        if np.abs(step).max() < 1e-13:
            theta = np.append(0.0, beta)
            return theta - theta.mean()
    raise AssertionError("the naive fit did not converge")


# Graphs.


def closure(edge):
    """(M, M) whether a path leads from the row to the column, every node reaching itself (Warshall 1962)."""
    reach = np.asarray(edge, bool) | np.eye(len(edge), dtype=bool)
    for k in range(len(reach)):
        reach |= reach[:, k, None] & reach[k]
    return reach


def standing(n, wins, weight=None):
    """(M,) standing of every model next to the group of most ``weight`` (battles); without one, next to all others."""
    m = len(n)
    weight = n.sum(1) if weight is None else weight
    reach = closure(wins > 0)
    groups = {tuple(np.flatnonzero(reach[i] & reach[:, i])) for i in range(m)}
    groups = sorted((-weight[list(g)].sum(), g) for g in groups if len(g) > 1 and weight[list(g)].any())
    if not groups:
        lost, took = (wins > 0).any(0), (wins > 0).any(1)
        return np.where(~(lost | took) | (lost & took), INCOMPARABLE, np.where(took, ABOVE, BELOW))
    member = groups[0][1][0]
    kinds = {(True, True): IDENTIFIED, (True, False): ABOVE, (False, True): BELOW, (False, False): INCOMPARABLE}
    return np.array([kinds[bool(reach[i, member]), bool(reach[member, i])] for i in range(m)])


# Draws.


def quantile(values, q):
    """Linear interpolation between the order statistics of ``values`` that are not NaN; NaN if none is left."""
    ordered = sorted(v for v in values if not np.isnan(v))
    if not ordered:
        return np.nan
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    below, above = ordered[low], ordered[high]
    share = position - low
    if share == 0 or below == above:
        return below
    if np.isinf(below):
        return below if np.isfinite(above) else np.nan
    return below + share * (above - below)


def beat_share(draws):
    m = draws.shape[1]
    share = np.full((m, m), np.nan)
    for i in range(m):
        for j in range(m):
            points = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in draws[:, [i, j]] if a == a and b == b]
            if i != j and points:
                share[i, j] = np.mean(points)
    return share


def rank_at_most_share(draws, k):
    """A model tied with t - 1 others below a higher ones has the places a + 1 .. a + t with equal chances."""
    shares = []
    for i in range(draws.shape[1]):
        inside = []
        for row in draws[~np.isnan(draws[:, i])]:
            higher, tied = sum(row > row[i]), sum(row == row[i])
            inside.append(min(max(k - higher, 0), tied) / tied)
        shares.append(np.mean(inside) if inside else np.nan)
    return np.array(shares)


def simultaneous_halfwidth(draws, estimate, level):
    m = draws.shape[1]
    error = np.array([[np.std(draws[:, i] - draws[:, j], ddof=1) for j in range(m)] for i in range(m)])
    largest = []
    for row in draws - estimate:
        largest.append(max([abs(row[i] - row[j]) / error[i, j] for i in range(m) for j in range(i)], default=0.0))
    critical = sorted(largest)[ceil(Fraction(str(level)) * len(draws)) - 1]
    return critical * error


def rank_sets(draws, estimate, level, n_ranked):
    """Step-down sets of ranks, model by model: what leaves the family is told apart; NaN draws are left out."""
    m, sets = len(estimate), []
    for i in range(m):
        family, apart = [j for j in range(m) if j != i], []
        gap = {j: estimate[j] - estimate[i] for j in family}
        error = {j: np.nanstd(draws[:, j] - draws[:, i], ddof=1) for j in family}
        while family:
            statistics = [[abs(row[j] - row[i] - gap[j]) / error[j] for j in family] for row in draws]
            largest = sorted(max(t for t in row if t == t) for row in statistics if not np.isnan(row).all())
            critical = largest[ceil(Fraction(str(level)) * len(largest)) - 1]
            leaving = [j for j in family if abs(gap[j]) > critical * error[j]]
            if not leaving:
                break
            family, apart = [j for j in family if j not in leaving], apart + leaving
        sets.append((1 + sum(gap[j] > 0 for j in apart), n_ranked - sum(gap[j] < 0 for j in apart)))
    return sets


# Accuracies by judges, item by item: labels y, their judgments f, and the judgments g of test items of one model.


def mean(values):
    return sum(values) / len(values)


def moments(a, b):
    """Covariance, divided by the number of items."""
    return mean([(s - mean(a)) * (t - mean(b)) for s, t in zip(a, b, strict=True)])


def judge_rates(y, f):
    """Specificity and sensitivity, and the items that they are shares of."""
    wrong = [1 - judged for label, judged in zip(y, f, strict=True) if label == 0]
    right = [judged for label, judged in zip(y, f, strict=True) if label == 1]
    return mean(wrong), mean(right), len(wrong), len(right)


def misclassification_adjusted(p, q0, q1):
    return (p + q0 - 1) / (q0 + q1 - 1)


def misclassification_variance(p, n, q0, q1, m0, m1):
    """Eq. 10 of arXiv:2511.21140."""
    theta = misclassification_adjusted(p, q0, q1)
    total = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0 + theta**2 * q1 * (1 - q1) / m1
    return total / (q0 + q1 - 1) ** 2


def misclassification_interval(p, q0, q1, n, m0, m1, alpha=0.05):
    """Its Figure 8, before the ends are clipped."""
    z = norm.ppf(1 - alpha / 2)
    p, q0, q1 = (n * p + z**2 / 2) / (n + z**2), (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
    n, m0, m1 = n + z**2, m0 + 2, m1 + 2
    th = (p + q0 - 1) / (q0 + q1 - 1)
    dth = 2 * z**2 * (-(1 - th) * q0 * (1 - q0) / m0 + th * q1 * (1 - q1) / m1)
    se = (p * (1 - p) / n + (1 - th) ** 2 * q0 * (1 - q0) / m0 + th**2 * q1 * (1 - q1) / m1) ** 0.5 / (q0 + q1 - 1)
    return th + dth - z * se, th + dth + z * se


def ppi_lambda(y, f, g, most=np.inf):
    spread = moments(f, f) + len(f) / len(g) * moments(g, g)
    return min(max(moments(y, f) / spread, 0.0), most) if spread > 1e-15 else 0.0


def ppi_mean(y, f, g, lam):
    return mean([label - lam * judged for label, judged in zip(y, f, strict=True)]) + lam * mean(g)


def ppi_variance(y, f, g, lam):
    rest = [label - lam * judged for label, judged in zip(y, f, strict=True)]
    return lam**2 * moments(g, g) / len(g) + moments(rest, rest) / len(rest)


def ppi_interval(y, f, g, lam, verdicts, level=0.95):
    """With rows added: one of each label and verdict, and a test item of each verdict; of scores, Student's."""
    if not verdicts:
        rest = [label - lam * judged for label, judged in zip(y, f, strict=True)]
        variance = lam**2 * moments(g, g) / (len(g) - 1) + moments(rest, rest) / (len(rest) - 2)
        centre, z = ppi_mean(y, f, g, lam), student.ppf((1 + level) / 2, len(y) - 2)
    else:
        more = [*y, 0, 0, 1, 1], [*f, 0, 1, 0, 1], [*g, 0, 1]
        variance = max(ppi_variance(*more, lam), ppi_variance(y, f, g, lam))
        centre, z = ppi_mean(*more, lam), norm.ppf((1 + level) / 2)
    return centre - z * variance**0.5, centre + z * variance**0.5


def by_verdict(y, f, verdicts):
    """Mean label of the verdicts 1 and 0, times their shares; a verdict between them is in part either."""
    total = 0.0
    for part in (lambda v: v, lambda v: 1 - v):
        share = mean([part(v) for v in verdicts])
        if share > 0:
            total += share * sum(part(v) * label for label, v in zip(y, f, strict=True)) / sum(map(part, f))
    return total


def accuracies(y, f, g, binary):
    """Every estimator with the model's own calibration; those that need verdicts only if they are ``binary``."""
    lam = ppi_lambda(y, f, g, 1.0 if binary else np.inf)
    found = {
        "naive": mean(g),
        "calibration_only": mean(y),
        "difference": mean(g) + mean([label - judged for label, judged in zip(y, f, strict=True)]),
        "ppi_plus_plus": ppi_mean(y, f, g, lam),
    }
    if binary:
        q0, q1, _, _ = judge_rates(y, f)
        found["conditional"] = by_verdict(y, f, g)
        found["eif"] = by_verdict(y, f, [*f, *g])
        found["rogan_gladen"] = misclassification_adjusted(mean(g), q0, q1) if q0 + q1 > 1 else np.nan
    return found


# Ranks beside gold. ``rows`` are the models of a resample, copies and all.


def pairs_of(rows):
    """Pairs of rows that are not copies of one model."""
    return [(i, j) for a, i in enumerate(rows) for j in rows[:a] if i != j]


def delta_sums(scores, gold, rows, delta):
    """Pairs in and against the order of gold, under ``delta``; all of them, those tied by the evaluator, by gold."""
    sums = np.zeros(4)
    for i, j in pairs_of(rows):
        gap = scores[i] - scores[j]
        if abs(gap) < delta:
            sums += np.sign(gap) * np.sign(gold[i] - gold[j]), 1, gap == 0, gold[i] == gold[j]
    return sums


def tau_delta(scores, gold, rows, delta):
    concordance, pairs, tied, tied_gold = delta_sums(scores, gold, rows, delta)
    product = (pairs - tied) * (pairs - tied_gold)
    return concordance / np.sqrt(product) if product > 0 else np.nan


def tier_changes(scores, gold, rows, n_tiers, within):
    """Mean change of ranks in tiers of all ``rows``, over those that are scored, and how many those are."""
    sizes = [len(part) for part in np.array_split(rows, n_tiers)]
    tier = np.searchsorted(np.cumsum(sizes)[:-1], rankdata(-gold[rows]), side="left")
    changes, number = [], []
    for t in range(n_tiers):
        scored = ~np.isnan(scores[rows])
        own = scored & (tier == t)
        among = own if within else scored
        distance = np.full(len(rows), np.nan)
        distance[among] = np.abs(rankdata(-scores[rows][among]) - rankdata(-gold[rows][among]))
        changes.append(distance[own].mean() if own.any() else np.nan)
        number.append(own.sum())
    return changes, number


def gap_regression(scores, gold, rows, scale, ridge):
    """Intercept and slope of the penalised logistic regression of agreement on the gap."""
    pairs = [(i, j) for i, j in pairs_of(rows) if scores[i] != scores[j] and not np.isnan(scores[i] + scores[j])]
    z = np.array([abs(scores[i] - scores[j]) for i, j in pairs]) / scale
    y = np.array([(1 + np.sign(scores[i] - scores[j]) * np.sign(gold[i] - gold[j])) / 2 for i, j in pairs])

    def loss(theta):
        eta = theta[0] + theta[1] * z
        return np.sum(np.logaddexp(0, eta) - y * eta) + ridge / 2 * np.sum(theta**2)

    found = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    return found.x[0], found.x[1] / scale


def conformal_quantile(scores, level):
    rank = ceil(Fraction(str(level)) * (len(scores) + 1))
    return sorted(scores)[rank - 1] if rank <= len(scores) else np.inf


# Plackett-Luce: rankings as lists of levels, each a list of the numbers of the items that tie.


def ranking_log_likelihood(theta, levels):
    """Mean over all orders of the items that tie."""
    orders = list(product(*(permutations(level) for level in levels)))
    total = 0.0
    for order in orders:
        items = [item for level in order for item in level]
        for k, item in enumerate(items):
            total += theta[item] - np.log(np.exp(theta[items[k:]]).sum())
    return total / len(orders)


def plackett_luce(rankings, n_items, weight=None, ridge=0.0):
    """Log-strengths of mean zero, by a general minimiser of the `ranking_log_likelihood`, choice by choice."""
    weight = np.ones(len(rankings)) if weight is None else weight
    chosen, among, times = [], [], []
    for w, levels in zip(weight, rankings, strict=True):
        orders = list(product(*(permutations(level) for level in levels)))
        for order in orders:
            items = [item for level in order for item in level]
            for k, item in enumerate(items):
                chosen.append(item)
                among.append(np.isin(np.arange(n_items), items[k:]))
                times.append(w / len(orders))
    chosen, among, times = np.array(chosen), np.array(among, float), np.array(times)

    def loss(theta):
        each = times @ (theta[chosen] - np.log(among @ np.exp(theta)))
        return ridge * theta @ theta + theta.mean() ** 2 - each  # the mean has no other pull

    found = minimize(loss, np.zeros(n_items), method="BFGS", options={"gtol": 1e-9}).x
    return found - found.mean()


# Categories that borrow.


def borrowed_belief(own, others, spread):
    """Mean, covariance, log evidence and borrowed shares of a category, from (M, M) wins, at a spread over 0.

    In the parameters theta, without that of the first model, and d = theta_c - theta; as in section 2 of
    arXiv:2409.00696.
    """
    m = len(own)
    slope = np.eye(m)[:, 1:]  # of theta
    of_own = np.hstack([slope, np.eye(m)])  # of theta_c
    of_others = np.hstack([slope, np.zeros((m, m))])

    def derivatives(wins, theta):
        n = wins + wins.T
        p = expit(theta[:, None] - theta)
        v = n * p * (1 - p)
        return np.sum(wins * np.log(p)), wins.sum(1) - (n * p).sum(1), np.diag(v.sum(1)) - v

    x = np.zeros(2 * m - 1)
    for _ in range(50):
        l_own, g_own, h_own = derivatives(own, of_own @ x)
        l_others, g_others, h_others = derivatives(others, of_others @ x)
        prior = np.r_[np.zeros(m - 1), np.full(m, spread**-2)]
        h = of_own.T @ h_own @ of_own + of_others.T @ h_others @ of_others + np.diag(prior)
        x = x + np.linalg.solve(h, of_own.T @ g_own + of_others.T @ g_others - prior * x)
    centre = np.eye(m) - 1 / m
    covariance = centre @ of_own @ np.linalg.inv(h) @ of_own.T @ centre
    evidence = l_own + l_others - prior @ x**2 / 2 - m * np.log(spread) - np.linalg.slogdet(h)[1] / 2
    return centre @ of_own @ x, covariance, evidence, 1 - np.diag(covariance @ h_own) * m / (m - 1)


# Odd votes.


def sum_of_chances(probability):
    """(n + 1,) distribution of the number of successes among n chances."""
    found = np.ones(1)
    for p in probability:
        found = np.convolve(found, [1 - p, p])
    return found


def step_score(theta, votes, unit, period):
    """Score, information given ``theta``, and size of a step of ``unit`` from ``period`` on.

    ``votes`` are tuples (period, first, second, target), of weight 1.
    """
    n = len(theta)
    score, information = np.zeros(n + 1), np.zeros((n + 1, n + 1))
    for when, first, second, target in votes:
        slope = np.zeros(n + 1)
        slope[first], slope[second] = 1, -1
        if when >= period and unit in (first, second):
            slope[n] = slope[unit]
        p = expit(theta[first] - theta[second])
        score += slope * (target - p)
        information += np.outer(slope, slope) * p * (1 - p)
    own = information[:n, :n] + 1 / n  # whatever the common level
    effective = information[n, n] - information[n, :n] @ np.linalg.solve(own, information[:n, n])
    return score[n], effective, score[n] / effective


def item_response(values, slope, intercept, grid):
    """Log-likelihood of (M, I) scores, NaN where missing, and means of abilities, on one fine grid."""
    prior = np.exp(-(grid**2) / 2)
    at = grid[:, None] * slope + intercept
    there = ~np.isnan(values)
    log = np.where(there, values, 0) @ at.T - there.astype(float) @ np.log1p(np.exp(at)).T
    joint = np.exp(log - log.max(1, keepdims=True)) * prior / prior.sum()
    return (np.log(joint.sum(1)) + log.max(1)).sum(), joint @ grid / joint.sum(1)
