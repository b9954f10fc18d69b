"""Boards of panels of judges: which judges and models can be told from the verdicts, their fit, and their refits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.data.panel_verdicts import PanelCells
from jaxeval.execution.host import fetched
from jaxeval.execution.shapes import padded_columns, padded_few, padded_size
from jaxeval.kernels import links
from jaxeval.kernels.batch.choice_models import ChoiceData, fit_choices, refit_choices
from jaxeval.kernels.batch.judge_panel import Contests, PanelModel
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Solution, Status
from jaxeval.lazy_names import pd, scipy
from jaxeval.ratings.boards import MOST_INVERTED, Board, Linear, fit_terms, inverse_within
from jaxeval.ratings.connectivity import Connectivity, analyse, per_model
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, lane_refits, refit_problem
from jaxeval.ratings.vote_groups import VoteGroups, vote_draws
from jaxeval.resampling.units import pad
from jaxeval.statistics.comparison import check_square
from jaxeval.wording import counted, named

#: With fewer verdicts a parameter, verdicts are `moderated`.
ENOUGH_VERDICTS = 100
# An eigenvalue of the design's correlations under this belongs to a direction about which verdicts say nothing.
_UNSEEN = 1e-9

FEW_VERDICTS = (
    f"fewer than {ENOUGH_VERDICTS} verdicts a parameter: verdicts are moved towards a half, as if each parameter "
    "brought one more, a half to either side"
)
NO_VERDICTS = "no verdicts between rated models"
ONE_SIDE = "all verdicts for one side: no finite side bias; left out"
ONE_CONTEST = "too few different pairs to tell discrimination from side bias; left out"
SEPARATED = "verdicts follow the ratings without exception: no finite discrimination; left out"
NOT_TOLD = "cannot be told from the ratings"


class Panel(NamedTuple):
    """Parameters of the model; 0 for what is not fitted."""

    theta: Float  # (M,)
    g: Float  # (K,) discriminations
    b: Float  # (K,) side biases, logits

    def scaled(self, scale: float) -> Panel:
        """Return the same model, with strengths ``scale`` times as large."""
        return Panel(self.theta * scale, self.g / scale, self.b)


def typical(g: Float, shares: Float) -> Float:
    """Return the root mean square of discriminations ``g`` (..., K), weighted by ``shares`` (K,): 1 on ratings' scale.

    All judges with a figure count, whatever their sign: no judge who enters or leaves a mean moves the ratings.
    """
    known = np.isfinite(g)
    total = np.where(known, shares, 0.0).sum(-1)
    return np.asarray(np.sqrt(np.where(known, shares * g**2, 0.0).sum(-1) / np.maximum(total, 1e-300)))


@dataclass(frozen=True, eq=False, kw_only=True)
class PanelBoard(Board):
    """One fitted slice; M' and K' are the numbers of models and judges with padding, P' = M' + 2 K'."""

    verdicts: PanelCells  # by judge, pair and side; those of `cells` are by pair
    judges: pd.Index
    fitted: Panel
    moves: Bool  # (P,) what is fitted: log-strengths, discriminations, side biases
    used: Bool  # (contests,) whose verdicts are used
    judge_status: list[str]  # why there are no figures of a judge, or empty
    confounded: bool

    @property
    def sums(self) -> tuple[Float, Float]:
        """(contests,) weight of the verdicts that are used, and points of side A."""
        n, points = self.verdicts.pair_sums()
        return np.where(self.used, n, 0.0), np.where(self.used, points, 0.0)

    @property
    def judged(self) -> Bool:
        """(K,) judges whose discriminations are fitted."""
        m, k = len(self.theta), len(self.judges)
        return self.moves[m : m + k]

    @property
    def shares(self) -> Float:
        """(K,) shares of the judges in the verdicts that are used: weights of the `typical` discrimination.

        Those of the data hold the scale of all resamples.
        """
        verdicts = np.bincount(self.verdicts.judge, self.sums[0], len(self.judges)) * self.judged
        return np.asarray(verdicts / max(verdicts.sum(), 1e-300))

    @property
    def working(self) -> tuple[Panel, Float]:
        """The parameters on the scale of the refits, and (K,) weights of the mean of discriminations that they hold.

        Any mean will do that changes with the scale. The mean weighted by the discriminations themselves does, whatever
        their signs. A ridge depends on the scale: with a ridge, the plain mean is 1.
        """
        if self.ridge == 0:
            return self.fitted, self.fitted.g
        mean = float(self.fitted.g[self.judged].mean())
        return self.fitted.scaled(mean if mean > 0 else 1.0), self.judged.astype(float)

    def inverse_information(self) -> Float:
        """Return (P, P) inverse of the information; the mean strength and the typical discrimination are fixed.

        The information is the observed one, so that sandwich errors hold if the model is wrong.
        """
        return self.inverse_at(self.fitted, self.shares * self.fitted.g)

    def inverse_at(self, at: Panel, weights: Float) -> Float:
        """Invert the information (P, P) at the maximum ``at``, with fixed means of strengths and discriminations.

        ``weights`` (K,) are those of the discriminations.
        """
        m, k, cells = len(at.theta), len(at.g), self.verdicts
        slopes, (n, points) = _slopes(cells, at), self.sums
        p = scipy.special.expit(_predictor(cells, at))
        information = (slopes.T @ slopes.multiply((n * p * (1 - p))[:, None])).toarray()
        residual = points - n * p
        cross = np.zeros((m, k))
        np.add.at(cross, (cells.first, cells.judge), residual)
        np.add.at(cross, (cells.second, cells.judge), -residual)
        information[:m, m : m + k] -= cross
        information[m : m + k, :m] -= cross.T
        information[:m, :m] += 2 * self.ridge * np.eye(m)
        # If strengths are equal, the verdicts say nothing about a discrimination.
        return inverse_within(information, self.moves, _gauge(m, weights))

    def linear(self) -> Linear:
        """Return the likelihood of each cell; that of verdicts that are `moderated` is of the moved ones."""
        cells, pair = self.verdicts, self.verdicts.pair
        slopes = scipy.sparse.csr_array(_slopes(cells, self.fitted)[pair].multiply(self.moves))
        weight = np.where(self.used[pair], cells.weight, 0.0)
        return Linear(slopes, weight, cells.target, _predictor(cells, self.fitted)[pair])

    def log_likelihood(self) -> float:
        """Return the log-likelihood of the verdicts that are used."""
        _, weight, target, z = self.linear()
        return float((self.verdicts.count * weight) @ self._by_link(links.log_likelihood, target, z))


def padded_model(n_models: int, n_judges: int) -> PanelModel:
    """Return the model for these numbers of models and judges, with padding."""
    return PanelModel(padded_size(n_models), max(padded_few(n_judges), 4))


def padded_panel(values: Any, model: PanelModel, n_models: int) -> Any:
    """Return (..., P') ``values`` (..., P) of strengths, discriminations and side biases, with zeros for padding."""
    parts = np.split(values, [n_models, (values.shape[-1] + n_models) // 2], axis=-1)
    sizes = model.models, model.judges, model.judges
    return np.concatenate([pad(x, (*x.shape[:-1], n)) for x, n in zip(parts, sizes, strict=True)], axis=-1)


def padded_contests(cells: PanelCells) -> Contests:
    """Return the contests with padding, which has no verdicts."""
    size = (padded_columns(len(cells.first) + 1),)
    return Contests(*(as_leaf(pad(x, size), np.int32) for x in (cells.first, cells.second, cells.judge)))


def _gauge(m: int, weights: Float) -> Float:
    """Return (2, P) what stays: the sum of ``m`` strengths, and that of discriminations by ``weights`` (K,)."""
    gauge = np.zeros((2, m + 2 * len(weights)))
    gauge[0, :m], gauge[1, m : m + len(weights)] = 1.0, weights
    return gauge


def _ridge(ridge: float, model: PanelModel) -> Float:
    """Return (P',) the ridge, which is that of the strengths."""
    return np.repeat([ridge, 0.0], [model.models, 2 * model.judges])


def fit_panel_board(
    models: pd.Index, cells: PanelCells, judges: pd.Index, options: FitOptions, side_bias: bool
) -> PanelBoard:
    """Fit one slice: its models and cells, and all judges of the panel, some of whom may have no verdicts here.

    Judges are left out if the verdicts say too little about them, or if no finite number describes them.

    Raises:
        ValueError: too many models for tables of all pairs.
    """
    m, k = len(models), len(judges)
    check_square(m + 2 * k, MOST_INVERTED, "the information of a panel", "the verdicts on the models that you compare")
    n, points = cells.pair_sums()
    as_read = cells
    status = np.full(k, "", object)
    while True:
        kept = status == ""
        of_kept = kept[cells.judge]
        # Judges who saw unrated models alone add nothing to the fit, but show which models have met.
        meets = (kept | (status == NO_VERDICTS))[cells.judge]
        connectivity = _connectivity(cells, np.where(meets, n, 0.0), np.where(meets, points, 0.0), m)
        active = (connectivity.standing == Standing.IDENTIFIED) | (options.ridge > 0)
        used = of_kept & active[cells.first] & active[cells.second]
        speechless = _speechless(cells, np.where(used, n, 0.0), points, kept, side_bias)
        if speechless:
            for judge, why in speechless.items():
                status[judge] = why
            continue
        active &= np.bincount(cells.first[used], minlength=m) + np.bincount(cells.second[used], minlength=m) > 0
        moves = np.concatenate([active, kept, kept & side_bias])
        flags = _confounded(models, judges, cells, used, connectivity, side_bias)
        if flags or not used.any():
            status[kept] = NOT_TOLD
            moves[:] = active[:] = False
            connectivity = connectivity._replace(standing=np.full(m, Standing.INCOMPARABLE, np.int8))
            panel = Panel(np.zeros(m), np.zeros(k), np.zeros(k))
            end = Solution(*(as_leaf(x, np.float64) for x in (panel.theta, Status.CONVERGED, 0, 0)))
            break
        n_parameters = int(active.sum() + kept.sum() * (1 + side_bias) - 2)
        cells = moderated(as_read, used, n_parameters) if options.ridge == 0 else as_read
        moderate = np.where(used, cells.pair_sums()[1], 0.0)
        end, panel = _fitted(cells, np.where(used, n, 0.0), moderate, moves, m, options)
        separated = [] if end.status == Status.CONVERGED else _separated(cells, used, n, points, panel, side_bias)
        if not separated or kept.sum() == 1:
            break
        status[separated] = SEPARATED
    end = end._replace(theta=as_leaf(panel.theta, np.float64))
    fit = PanelBoard.at(
        end, models, as_read.pooled, connectivity=connectivity, active=active, ridge=options.ridge, verdicts=cells,
        judges=judges, fitted=panel, moves=moves, used=used, judge_status=list(status), confounded=bool(flags),
        flags=tuple(flags) + ((FEW_VERDICTS,) if moves.any() and cells is not as_read else ()),
    )  # fmt: skip
    return _in_gauge(fit) if moves.any() else fit


def moderated(cells: PanelCells, used: Bool, n_parameters: int) -> PanelCells:
    """Move verdicts towards a half as if each parameter brought one more verdict, a half to either side.

    Of a few dozen items one judge may follow the ratings without exception, in the data or in every other resample:
    the maximum of the likelihood is then that judge's order alone, infinitely far apart. Half a verdict a parameter to
    either side is what Firth's penalty adds in all (DOI 10.1093/biomet/80.1.27); here it is spread evenly. Nothing
    changes from `ENOUGH_VERDICTS` a parameter on.

    Verdicts are counted in the contests ``used`` alone, and weighted ones as the equal ones that they are worth.
    """
    count = cells.count * used[cells.pair]
    n = float((count @ cells.weight) ** 2 / (count @ cells.weight**2))
    if n >= ENOUGH_VERDICTS * n_parameters:
        return cells
    return replace(cells, target=0.5 + (cells.target - 0.5) * n / (n + n_parameters))


def _in_gauge(fit: PanelBoard) -> PanelBoard:
    """Scale the fit to a `typical` discrimination of 1."""
    panel = fit.fitted.scaled(float(typical(fit.fitted.g, fit.shares)) or 1.0)
    return replace(fit, fitted=panel, theta=panel.theta)


def _connectivity(cells: PanelCells, n: Float, points: Float, m: int) -> Connectivity:
    tables = np.zeros((2, m, m))
    for table, there, back in zip(tables, (n, points), (n, n - points), strict=True):
        np.add.at(table, (cells.first, cells.second), there)
        np.add.at(table, (cells.second, cells.first), back)
    return analyse(*tables)


def _speechless(cells: PanelCells, n: Float, points: Float, kept: Bool, side_bias: bool) -> dict[int, str]:
    """Find the judges of those ``kept`` who say too little by themselves, and why."""
    k = len(kept)
    total, of_a = np.bincount(cells.judge, n, k), np.bincount(cells.judge, np.where(n > 0, points, 0.0), k)
    reasons = {}
    for judge in np.flatnonzero(kept).tolist():
        contests = np.flatnonzero((cells.judge == judge) & (n > 0))
        if total[judge] == 0:
            reasons[judge] = NO_VERDICTS
        elif side_bias and (of_a[judge] == 0 or of_a[judge] == total[judge]):
            reasons[judge] = ONE_SIDE
        elif side_bias and len(contests) == 1 and kept.sum() > 1:
            reasons[judge] = ONE_CONTEST
    return reasons


def _slopes(cells: PanelCells, at: Panel) -> scipy.sparse.csr_array:
    m, k, n = len(at.theta), len(at.g), len(cells.first)
    first, second, judge = cells.first, cells.second, cells.judge.astype(np.int64)
    g, places = at.g[judge], np.stack([first, second, m + judge, m + k + judge], 1)
    values = np.stack([g, -g, at.theta[first] - at.theta[second], np.ones(n)], 1)
    return scipy.sparse.csr_array((values.ravel(), places.ravel(), np.arange(0, 4 * n + 1, 4)), (n, m + 2 * k))


def _predictor(cells: PanelCells, at: Panel) -> Float:
    return np.asarray(at.g[cells.judge] * (at.theta[cells.first] - at.theta[cells.second]) + at.b[cells.judge])


def _confounded(
    models: pd.Index, judges: pd.Index, cells: PanelCells, used: Bool, connectivity: Connectivity, side_bias: bool
) -> list[str]:
    """Return a sentence if the design leaves more open than the gauge does, whatever the verdicts say.

    The rank of the design is taken at random parameters.
    """
    rated = connectivity.standing == Standing.IDENTIFIED
    among = np.flatnonzero(used & rated[cells.first] & rated[cells.second])
    rng, m, k = np.random.default_rng(0), len(models), len(judges)
    at = Panel(rng.normal(size=m), np.exp(rng.normal(size=k)), np.zeros(k))
    slopes = _slopes(cells, at)[among]
    if _n_unseen(slopes[:, : m + 2 * k if side_bias else m + k]) <= 2:
        return []
    if not side_bias or _n_unseen(slopes[:, : m + k]) > 2:
        return [
            "the judges' discriminations cannot be compared, and so no model is rated: the judges share too few models "
            "and pairs. Rate the judges of each part of the panel on their own (filter the verdicts)"
        ]
    on_a, on_b = np.bincount(cells.first[among], minlength=m) > 0, np.bincount(cells.second[among], minlength=m) > 0
    always = [f"{named(models[x & ~y])} {'is' if (x & ~y).sum() == 1 else 'are'} always on side {side}"
              for x, y, side in ((on_a, on_b, "A"), (on_b, on_a, "B")) if (x & ~y).any()]  # fmt: skip
    why = f": {' and '.join(always)}" if always else ""
    return [
        f"side biases cannot be told from ratings, and so no model is rated{why}. Have both orders judged; or, if the "
        "judges have no side biases, leave them out of the model (side_bias=False, --no-side-bias)"
    ]


def _n_unseen(slopes: scipy.sparse.csr_array) -> int:
    """Return how many directions of those parameters that have entries the rows say nothing about."""
    gram = (slopes.T @ slopes).toarray()
    there = np.flatnonzero(np.diag(gram))
    root = np.sqrt(np.diag(gram)[there])
    return int((np.linalg.eigvalsh(gram[np.ix_(there, there)] / root[:, None] / root) < _UNSEEN).sum())


def _fitted(
    cells: PanelCells, n: Float, points: Float, moves: Bool, m: int, options: FitOptions
) -> tuple[Solution, Panel]:
    """Return the maximum of the likelihood for ``m`` models, on any scale, with a positive sum of discriminations."""
    k = (len(moves) - m) // 2
    model, contests = padded_model(m, k), padded_contests(cells)
    theta = _first_strengths(cells, n, points, m)
    judged = moves[m : m + k]
    g = judged * 1.0 if options.ridge > 0 else _first_discriminations(cells, n, points, theta, judged)
    counts = pad(np.stack([points, n - points]), (2, len(contests.first)))
    start, free, gauge = (
        padded_panel(x, model, m) for x in (np.concatenate([theta, g, np.zeros(k)]), moves, _gauge(m, np.asarray(g)))
    )
    terms = fit_terms(_ridge(options.ridge, model))
    end = fetched(fit_choices, model, contests, counts, start, free, gauge, terms)
    theta, g, b = np.split(np.asarray(end.theta), [model.models, model.models + model.judges])
    sign = -1.0 if g.sum() < 0 else 1.0
    parts = zip((sign * theta, sign * g, b), np.split(moves, [m, m + k]), strict=True)
    return end, Panel(*(np.where(free, x[: len(free)], 0.0) for x, free in parts))


def _first_strengths(cells: PanelCells, n: Float, points: Float, m: int) -> Float:
    """Return (M,) log-strengths near those of the pooled verdicts, to start from: shrunk log-odds of models' points."""
    won = np.bincount(cells.first, points, m) + np.bincount(cells.second, n - points, m)
    total = np.bincount(cells.first, n, m) + np.bincount(cells.second, n, m)
    strengths = np.where(total > 0, np.log((won + 1) / (total - won + 1)), 0.0)
    return np.asarray(strengths - strengths[total > 0].mean() * (total > 0))


def _first_discriminations(cells: PanelCells, n: Float, points: Float, theta: Float, judged: Bool) -> Float:
    """Return (K,) discriminations after a step of regressing the verdicts on strengths: at least the sign is right."""
    difference, k = theta[cells.first] - theta[cells.second], len(judged)
    slope = np.bincount(cells.judge, 4 * (points - n / 2) * difference, k)
    slopes = np.clip(slope / np.maximum(np.bincount(cells.judge, n * difference**2, k), 1e-300), -3, 3)
    return np.where(judged, slopes if judged.sum() > 1 and np.abs(slopes[judged]).max() > 0 else 1.0, 0.0)


def _separated(cells: PanelCells, used: Bool, n: Float, points: Float, panel: Panel, side_bias: bool) -> list[int]:
    """Find judges who chose a side by the order of the strengths alone."""
    difference = panel.theta[cells.first] - panel.theta[cells.second]
    separated = []
    for judge in np.unique(cells.judge[used]).tolist():
        of_judge = used & (cells.judge == judge) & (n > 0)
        won, lost = difference[of_judge & (points > 0)], difference[of_judge & (points < n)]
        if not side_bias:
            won, lost = np.r_[won, -lost], np.r_[lost, -won]
        if len(won) and len(lost) and (lost.max() <= won.min() or won.max() <= lost.min()):
            separated.append(judge)
    return separated


def messages_of(fit: PanelBoard) -> list[str]:
    """Return sentences on judges without figures."""
    by_why: dict[str, list[Any]] = {}
    for name, why in zip(fit.judges, fit.judge_status, strict=True):
        if why and not (why == NOT_TOLD and fit.confounded):
            by_why.setdefault(why, []).append(name)
    return [f"{counted(len(names), 'judge')} ({named(names)}): {why}" for why, names in by_why.items()]


# In turn, each for the lanes that those before it left; and their limits of steps.
_MAX_STEPS = {Solver.CHORD: 40, Solver.NEWTON: 200}
# Numbers that a lane has for each entry that is drawn and each contest, at most.
_PER_ENTRY, _PER_CONTEST = 2, 10


def panel_refits(fitted: PanelBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """Return the refits of a slice called ``label``: verdicts are drawn, or clusters of them."""
    cells, m, k = fitted.verdicts, len(fitted.theta), len(fitted.judges)
    model, contests = padded_model(m, k), padded_contests(cells)
    draw, entries, _ = vote_draws(cells, drawn, options.drawn, label, len(contests.first))
    weight, (at, weights) = cells.weight * fitted.used[cells.pair], fitted.working
    places = padded_panel(np.arange(1, m + 2 * k + 1), model, m)
    there = places > 0
    inverse = np.zeros((len(places), len(places)))
    inverse[np.ix_(there, there)] = fitted.inverse_at(at, weights)
    main = per_model(cells.first, cells.second, fitted.sums[0], m)
    data = ChoiceData(
        entries=entries.sums([weight * cells.target, weight * (1 - cells.target)]),
        occasions=contests,
        gauge=as_leaf(padded_panel(_gauge(m, weights), model, m), np.float64),
    )
    start, moves = (padded_panel(x, model, m) for x in (np.concatenate(at), fitted.moves))
    main = pad(np.where(fitted.active, main, 0.0), (model.models,))
    problem = refit_problem(draw, data, start, main, inverse, moves=moves)
    held = _PER_ENTRY * (draw.units.size.size + data.entries.shares[0].size) + _PER_CONTEST * len(contests.first)
    tables = {Solver.CHORD: 2 * model.models**2, Solver.NEWTON: 4 * len(inverse) ** 2}

    def on_board(refitted: Refitted) -> Refitted:
        """Scale the parameters, without padding, as those of the fit."""
        theta, g, b = np.split(refitted.parameters, [model.models, model.models + model.judges], axis=1)
        scale = typical(g[:, :k], fitted.shares)[:, None]
        scale = np.where(scale > 0, scale, 1.0)
        parameters = np.concatenate([theta[:, :m] * scale, g[:, :k] / scale, b[:, :k]], axis=1)
        return refitted._replace(parameters=parameters, standing=refitted.standing[:, :m])

    def words(solver: Solver) -> int:
        return held + tables[solver]

    ridge = _ridge(options.ridge, model)
    return lane_refits(options, refit_choices, model, problem, _MAX_STEPS, words, on_board=on_board, ridge=ridge)
