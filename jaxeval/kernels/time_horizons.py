"""Time horizons: curves of success against the log of a task's length, and the lengths at which they cross levels.

Functions take arrays of NumPy as well as of JAX.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from jaxeval.kernels import links
from jaxeval.kernels.kinds import Array, Float, namespace
from jaxeval.kernels.links import Link
from jaxeval.kernels.platforms import einsum
from jaxeval.kernels.solve import SolveStep, Terms, loop
from jaxeval.lazy_names import lax

#: The tolerance is of the gradient, where the weights of an agent sum to 1.
_TERMS = Terms.of(0.0, 1e-10, 100)
#: Gauss and Hermite's nodes for the standard normal.
_NODES, _SHARES = (x.astype(np.float64) for x in np.polynomial.hermite_e.hermegauss(21))
_SHARES = _SHARES / _SHARES.sum()

# Derivatives by eta of the log of a success's probability, and of a failure's.
_Slopes = tuple[Float[Array, "..."], Float[Array, "..."]]
_sigmoid = partial(links.probability, Link.LOGIT)


def _logistic(eta: Array, spread: Array) -> _Slopes:
    return _sigmoid(-eta), -_sigmoid(eta)


def _probit(eta: Array, spread: Array) -> _Slopes:
    log_density, xp = -(eta**2) / 2 - np.log(2 * np.pi) / 2, namespace(eta)
    up, down = (xp.exp(log_density - links.log_probability(Link.PROBIT, x)) for x in (eta, -eta))
    return up, -down


def _asymmetric(eta: Array, spread: Array) -> _Slopes:
    xp = namespace(eta)
    rate = xp.exp(xp.minimum(eta, 30.0))  # success has the probability 1 - exp(-rate)
    return rate / xp.expm1(xp.minimum(rate, 700.0)), -rate


def _of_tasks(eta: Array, spread: Array) -> _Slopes:
    """Return slopes of the mean logistic curve of tasks, whose difficulty is normal with this ``spread`` (SD)."""
    each = _sigmoid(eta[..., None] + spread * _NODES)
    success, density = (each * _SHARES).sum(-1), (each * (1 - each) * _SHARES).sum(-1)
    return density / success, -density / (1 - success)


_CURVES = {"logistic": _logistic, "probit": _probit, "asymmetric": _asymmetric, "of tasks": _of_tasks}


def crossing(curve: str, level: float) -> float:
    """Return the eta at which a ``curve`` crosses a ``level``."""
    if curve == "probit":
        return float(ndtri(level))
    if curve == "asymmetric":
        return float(np.log(-np.log1p(-level)))
    return float(np.log(level) - np.log1p(-level))


def success(curve: str, eta: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return the probability of success on a ``curve`` without a spread of tasks."""
    if curve == "asymmetric":
        xp = namespace(eta)
        return -xp.expm1(-xp.exp(xp.minimum(eta, 30.0)))
    return links.probability(Link.PROBIT if curve == "probit" else Link.LOGIT, eta)


def line(
    weight: Float[Array, "N A"], share: Float[Array, "N A"], x: Float[Array, "N"], ridge: Array, spread: Array,
    curve: str,
) -> tuple[Float[Array, "A"], Float[Array, "A"], Float[Array, "A"]]:  # fmt: skip
    """Return intercepts, slopes and centres of the best eta = intercept + slope (x - centre), by Fisher's scoring.

    The penalty is ridge / 2 slope^2, the loss that of ``weight`` trials at each x of which the ``share`` succeed.
    """
    of_eta, xp = _CURVES[curve], namespace(weight)
    centre = (x[:, None] * weight).sum(0) / xp.maximum(weight.sum(0), 1e-300)
    z = x[:, None] - centre

    def step(of_line: Array, _: Array, nothing: tuple[()]) -> SolveStep:
        intercept, slope = of_line
        up, down = of_eta(intercept + slope * z, spread)
        score = weight * (share * up + (1 - share) * down)
        information = -weight * up * down
        up0, up1 = score.sum(0), (score * z).sum(0) - ridge * slope
        h00, h01, h11 = information.sum(0) + 1e-12, (information * z).sum(0), (information * z**2).sum(0) + ridge
        det = h00 * h11 - h01**2
        by0, by1 = (h11 * up0 - h01 * up1) / det, (h00 * up1 - h01 * up0) / det
        shorter = xp.minimum(1.0, 3.0 / (abs(by0) + 8 * abs(by1) + 1e-9))  # where the loss is flat
        grad = xp.stack([up0, up1])
        return SolveStep(shorter * xp.stack([by0, by1]), grad, nothing, abs(grad).max(0))

    n_agents = weight.shape[1]
    end, _ = loop(step, xp.stack([xp.zeros(n_agents), xp.full(n_agents, -0.3)]), (), _TERMS)
    return *end.theta, centre


def _of_steps(
    weight: Float[Array, "N A"], share: Float[Array, "N A"], x: Float[Array, "N"], levels: Sequence[float]
) -> Float[Array, "A L"]:
    """Return where the best falling curve goes below each level: between the two tasks about it.

    The rows at which the best falling curve is at least q are the first k, for the k that maximises the sum of
    weight (share - q) over them.
    """
    xp = namespace(x)
    order = x.argsort(stable=True)
    weight, share, x = weight[order], share[order], x[order, None]
    last = _running_maximum(xp.where(weight > 0, x, -xp.inf))
    after = -_running_maximum(xp.where(weight > 0, -x, -xp.inf)[::-1])[::-1]
    after = xp.concatenate([after[1:], xp.full_like(after[:1], xp.inf)])
    between = xp.where(xp.isneginf(last), -xp.inf, (last + after) / 2)  # infinite after the last

    def at(level: float) -> Array:
        gain = (weight * (share - level)).cumsum(0)
        gain = xp.where(last == after, -xp.inf, gain)  # tasks of one length stay together
        best = gain.argmax(0)[None]
        above = xp.take_along_axis(gain, best, 0) > 0
        return xp.where(above, xp.take_along_axis(between, best, 0), -xp.inf)[0]

    return xp.stack([at(level) for level in levels], 1)


def _running_maximum(x: Float[Array, "N A"]) -> Float[Array, "N A"]:
    so_far: Array = np.maximum.accumulate(x) if namespace(x) is np else lax.cummax(x)  # type: ignore[assignment]
    return so_far


def horizons(
    weights: Float[Array, "N"], runs: Mapping[str, Array], *, curve: str, levels: Sequence[float], ridge: float,
    spread: float | None, multiples: Sequence[float],
) -> Float[Array, "numbers"]:  # fmt: skip
    """Return the weighted shares of success (A,) of agents, and the logs of horizons (kinds, A, L), end to end.

    Args:
        weights: of rows: tasks, or parts of the runs of each.
        runs: ``x`` (N,) log lengths, ``weight`` (N, A) of each agent's runs, ``share`` (N, A) that succeed, and, with
            ``multiples``, ``noise`` (N, S), normal with the standard deviation of the errors in ``x``.
        curve: its name.
        levels: of success.
        ridge: penalty of the slopes.
        spread: standard deviation of the tasks' difficulties on the scale of eta. With it there are two kinds: the
            horizon of all tasks of a length, and that of the task of median difficulty; otherwise one.
        multiples: of the noise's variance, to be added for the extrapolation to none (Cook and Stefanski 1994,
            DOI 10.1080/01621459.1994.10476871).
    """
    etas = [[crossing(curve, level) for level in levels]]
    if spread:
        etas = [[_crossing_of_tasks(level, spread) for level in levels], *etas]
    weight, share, xp = weights[:, None] * runs["weight"], runs["share"], namespace(weights)

    def of_lengths(x: Array) -> Array:
        if curve == "monotone":
            return _of_steps(weight, share, x, levels)[None]
        by = xp.asarray(ridge), xp.asarray(spread or 0.0), "of tasks" if spread else curve
        intercept, slope, centre = (part[:, None] for part in line(weight, share, x, *by))
        return xp.stack([xp.where(slope < 0, centre + (xp.asarray(eta) - intercept) / slope, xp.nan) for eta in etas])

    logs = of_lengths(runs["x"])
    if multiples:
        logs = _without_noise(of_lengths, runs["x"], runs["noise"], logs, multiples)
    succeed, fail = ((weight * part).sum(0)[:, None] for part in (share, 1 - share))
    logs = xp.where(fail <= 0, xp.inf, xp.where(succeed <= 0, -xp.inf, logs))
    logs = xp.where(succeed + fail > 0, logs, xp.nan)
    return xp.concatenate([(succeed / (succeed + fail))[:, 0], logs.reshape(-1)])


def _without_noise(
    of_lengths: Callable[[Array], Array], x: Array, noise: Array, plain: Array, multiples: Sequence[float]
) -> Array:
    """Extrapolate horizons at more and more noise in the lengths to none: a parabola, at the multiple -1."""
    over = lax.map if namespace(x) is not np else lambda function, rows: np.stack([*map(function, rows)])
    noisy = [over(lambda z, by=by: of_lengths(x + by**0.5 * z), noise.T).mean(0) for by in multiples]
    at = np.array([0.0, *multiples])
    parabola = np.linalg.pinv(np.stack([at**0, at, at**2], 1))
    share = parabola[0] - parabola[1] + parabola[2]  # of each in the parabola at -1
    return einsum("k,k...->...", share, namespace(x).stack([plain, *noisy]))


def _crossing_of_tasks(level: float, spread: float) -> float:
    """Return the eta at which the average over tasks crosses a level."""

    def above(eta: float) -> float:
        return float((_SHARES * expit(eta + spread * _NODES)).sum()) - level

    return float(brentq(above, -40.0 - 5 * spread, 40.0 + 5 * spread))
