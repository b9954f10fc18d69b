"""A rating model of one's own: the log-probabilities of what may happen in a battle, fitted and resampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import as_leaf
from jaxeval.data.battles import Battles, as_battles
from jaxeval.engine.choice_boards import MODEL, ChoiceBoard, OccasionCells, OccasionRows, fit_choice_board
from jaxeval.engine.statistic import Statistic
from jaxeval.errors import DataError
from jaxeval.kernels.batch.choice_models import ChoiceData, refit_choices
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.solve import Status
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, SliceBoards, lane_refits, refit_problem
from jaxeval.ratings.slices import make_slices
from jaxeval.ratings.vote_groups import vote_draws
from jaxeval.show.shown import Answer, Result, Shown
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted, did_you_mean, named

#: What a model function takes: parameters by name, and what is known of C battles by name; and what it gives.
LogProbabilities = Callable[[dict[str, Any], dict[str, Any]], Sequence[Any]]

_MAX_STEPS = {Solver.CHORD: 40, Solver.NEWTON: 200}
# Where a search ended without a maximum, parameters beyond this may have no bound: odds of 1 in 3e6.
_FAR = 15.0
#: There is a warning if a larger share of the resamples has no fit.
_FEW_FAILED = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceModel(Shown):
    """A rating model: the log-probabilities of the results of a battle, as a function of parameters.

    The function is written for one set of parameters, with `jax.numpy`. It gets two dicts. The first has an array for
    each parameter: one number for each model or group. The second says of C battles, as arrays (C,), the numbers of the
    models, ``battle["model_a"]`` and ``battle["model_b"]``, and what the further ``columns`` say: a column of numbers
    as they are, any other one as numbers of its sorted values. It returns the log-probabilities, arrays (C,): of a win
    of side A and a win of side B, a tie then being half of each; or of a win of side A, a tie, and a win of side B.

    Args:
        log_probabilities: the function.
        parameters: by name: "model" for a number per model; the name of a column for a number per value of it; or how
            many numbers there are.
        columns: further columns of the battles that the function reads.
        start: where the search begins, by name; 0 for the others.

    Raises:
        TypeError: ``log_probabilities`` is no function.
        ValueError: there are no parameters, or ``start`` names one that is not there.

    Examples:
        >>> import jaxeval
        >>> from jax.nn import log_sigmoid
        >>> def home(parameter, battle):
        ...     a, b = battle["model_a"], battle["model_b"]
        ...     z = parameter["strength"][a] - parameter["strength"][b] + parameter["home"][0]
        ...     return log_sigmoid(z), log_sigmoid(-z)
        >>> model = jaxeval.ChoiceModel(home, {"strength": "model", "home": 1})
        >>> fit = jaxeval.fit_model(model, jaxeval.simulate_battles(2_000, 3, seed=0))
        >>> fit.parameters.round(2).tolist()
        [0.34, -0.04, -0.31, 0.04]
    """

    log_probabilities: LogProbabilities
    parameters: Mapping[str, str | int]
    columns: Sequence[str] = ()
    start: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.log_probabilities):
            raise TypeError(
                "log_probabilities must be a function of parameters and battles, got "
                f"{type(self.log_probabilities).__name__}"
            )
        if not self.parameters:
            raise ValueError('a model needs parameters, such as {"strength": "model"}')
        for name, of in self.parameters.items():
            if not isinstance(of, str) and not (isinstance(of, int) and of > 0):
                raise ValueError(f"parameter {name!r} takes 'model', a column, or how many numbers it has, got {of!r}")
        for name in self.start:
            if name not in self.parameters:
                raise ValueError(f"start names no parameter {name!r}{did_you_mean(name, pd.Index([*self.parameters]))}")

    def _shown(self) -> Answer:
        numbers = [str(of) if isinstance(of, int) else f"one per {of}" for of in self.parameters.values()]
        table = pd.DataFrame({"numbers": numbers}, pd.Index([*self.parameters], name="parameter"))
        return Answer(f"ChoiceModel: {self.function.name}", table)

    @cached_property
    def function(self) -> Statistic:
        """The function, known again by its code."""
        return Statistic(self.log_probabilities)

    def rows(self, judgments: Any) -> Battles:
        """Return the battles, with what the function reads of them.

        Raises:
            DataError: there is no such column, or values are missing.
        """
        battles = as_battles(judgments)
        of_battles = {role.name: getattr(battles, role.name) for role in fields(Battles)}
        values, levels = {}, {}
        for name in dict.fromkeys([*(of for of in self.parameters.values() if isinstance(of, str)), *self.columns]):
            if name == MODEL:
                continue
            numbers = battles.column(name) if name in self.columns and name not in self.parameters.values() else None
            if numbers is not None and pd.api.types.is_numeric_dtype(numbers):
                values[name] = numbers.to_numpy(float)
                if not np.isfinite(values[name]).all():
                    raise DataError(f"column {name!r} has missing or infinite values, which a model cannot read")
            else:
                codes, levels[name] = battles.codes(name)
                values[name] = codes.astype(float)
        return OccasionRows(**of_battles, values=values, levels=levels)

    def boards(self, rows: Battles, options: BootstrapOptions) -> SliceBoards[Any, Draws]:
        """Return the model's boards of the slices of ``rows``.

        Raises:
            ValueError: an option that is about Bradley-Terry ratings.
        """
        plain = BootstrapOptions()
        for name in (
            "gauge", "base", "reweight", "features", "feature_ridge", "ties", "link", "penalty", "interval", "method",
            "dtype",
        ):  # fmt: skip
            if getattr(options, name) != getattr(plain, name):
                raise ValueError(f"{name}= is about Bradley-Terry ratings: a model of one's own has none, leave it out")
        assert isinstance(rows, OccasionRows)
        return _Boards(make_slices(rows, options), options, self, rows)


@dataclass(frozen=True, eq=False)
class _Boards(SliceBoards[ChoiceBoard, Draws]):
    """The boards of a model of one's own."""

    model: ChoiceModel
    rows: OccasionRows

    @property
    def deciding(self) -> Mapping[str, Any]:
        """The model."""
        return {"model": self.model.function.digest, "parameters": dict(self.model.parameters),
                "start": dict(self.model.start)}  # fmt: skip

    def fit(self, s: int) -> ChoiceBoard:
        """Fit by Newton's method."""
        models, cells = self.slices.boards[s]
        assert isinstance(cells, OccasionCells)
        model = self.model
        return fit_choice_board(
            model.function, model.parameters, model.start, models, cells, self.rows, self.options.ridge
        )

    def refits(self, s: int, fit: ChoiceBoard) -> BoardRefits:
        """Refit by chord steps, and by Newton's method what those leave."""
        cells, options = fit.cells, self.options
        draw, entries, _ = vote_draws(
            cells, self.slices.drawn[s], options.drawn, self.slices.labels[s], len(fit.data[0])
        )
        data = ChoiceData(entries.sums(fit.shares()), fit.data, as_leaf(fit.gauge, np.float64))
        problem = refit_problem(draw, data, fit.phi, inverse=fit.inverse, moves=fit.moves)
        of_choice = data.entries.shares[0].size + 6 * len(fit.data[0])
        words = fit.n_choices * of_choice + draw.units.size.size + 4 * len(fit.phi) ** 2
        return lane_refits(options, refit_choices, fit.lane, problem, _MAX_STEPS, lambda _: words, ridge=fit.ridge)

    def result(self, fit: ChoiceBoard, refitted: Refitted) -> Draws:
        """Return the draws of one slice."""
        draws = np.where(refitted.converged[:, None], fit.unpadded(refitted.parameters), np.nan)
        failed, warnings = 1 - refitted.converged.mean(), _warnings(fit)
        if failed > _FEW_FAILED:
            warnings.append(
                f"{failed:.1%} of the resamples have no fit, and are left out: they leave parameters open, or without "
                "a bound. Intervals may be too narrow; a ridge > 0 gives all of them one"
            )
        return Draws(
            fit.names, fit.unpadded(fit.phi), draws, converged=refitted.converged, gauge=_gauge_text(fit),
            precision=1e-7, warnings=(*self.rows.report.warnings, *warnings),
            settings=_settings(self.model, self.options),
        )  # fmt: skip


def _gauge_text(fit: ChoiceBoard) -> str:
    ends = np.cumsum([0, *(size for _, size in fit.lane.sizes)])
    held = [name for k, (name, _) in enumerate(fit.lane.sizes) if fit.gauge[:, ends[k] : ends[k + 1]].any()]
    return f"common level of {named(held)} held" if held else ""


def _warnings(fit: ChoiceBoard) -> list[str]:
    """Return what the battles leave open."""
    messages = []
    silent = fit.names[~fit.moves[fit.place]]
    if len(silent):
        messages.append(f"no battle says anything of {named([' '.join(map(str, name)) for name in silent])}")
    if fit.status != Status.CONVERGED:
        far = fit.names[np.abs(fit.phi[fit.place]) > _FAR]
        why = f": {named([' '.join(map(str, name)) for name in far])} may have no bound" if len(far) else ""
        messages.append(f"the fit has not converged{why}; a ridge > 0 holds parameters near 0")
    return messages


def _settings(model: ChoiceModel, options: BootstrapOptions) -> dict[str, Any]:
    shown = ("n_resamples", "seed", "scheme", "cluster", "strata", "ridge")
    return {"model": model.function.name, **{name: getattr(options, name) for name in shown}}


@dataclass(frozen=True, eq=False, repr=False)
class ModelFit(Result):
    """A fitted `ChoiceModel`.

    ``parameters`` are indexed by parameter and name, and NaN where no battle says anything of one. ``covariance`` is
    the sandwich covariance, over clusters if there are any, and holds if the model is wrong.

    Examples:
        >>> import jaxeval
        >>> from jax.nn import log_sigmoid
        >>> def plain(parameter, battle):
        ...     z = parameter["strength"][battle["model_a"]] - parameter["strength"][battle["model_b"]]
        ...     return log_sigmoid(z), log_sigmoid(-z)
        >>> model = jaxeval.ChoiceModel(plain, {"strength": "model"})
        >>> fit = jaxeval.fit_model(model, jaxeval.simulate_battles(2_000, 3, seed=0))
        >>> fit.table()[["estimate", "lower", "upper"]].round(2).to_numpy().tolist()
        [[0.35, 0.28, 0.42], [-0.04, -0.09, 0.02], [-0.31, -0.38, -0.24]]
    """

    parameters: pd.Series
    covariance: pd.DataFrame = field(repr=False)
    log_likelihood: float
    converged: bool
    n_battles: int
    warnings: list[str]
    settings: Mapping[str, Any]

    @property
    def standard_errors(self) -> pd.Series:
        """Of the parameters."""
        return pd.Series(np.sqrt(np.maximum(np.diag(self.covariance), 0)), self.parameters.index)

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row per parameter: estimate, standard error, and the ends of an interval.

        Raises:
            ValueError: a level that is not between 0 and 1.
        """
        error = self.standard_errors
        half = normal_quantile(level) * error
        columns = {"estimate": self.parameters, "standard_error": error}
        columns |= {"lower": self.parameters - half, "upper": self.parameters + half}
        return Table.of(pd.DataFrame(columns), "Parameters", ends_of="estimate")

    def _shown(self) -> Answer:
        title = f"ModelFit: {counted(len(self.parameters), 'parameter')} of {counted(self.n_battles, 'battle')}"
        return Answer(title, self.table(), {"level": 0.95}, self.warnings)

    def _sentences(self) -> list[str]:
        model, n = self.settings["model"], counted(len(self.parameters), "parameter")
        return [f"{model}: {n}, log-likelihood {self.log_likelihood:.1f}"]


def fit_model(
    model: ChoiceModel, judgments: Any, *, ridge: float = 0.0, cluster: str | None = None, strata: str | None = None
) -> ModelFit:
    """Fit a rating model of one's own by maximum likelihood.

    Gradient, information and errors follow from the model's log-probabilities by differentiation. Where the battles do
    not see a common shift of a parameter, as of strengths, its mean stays where it starts.
    ``jaxeval.bootstrap(judgments, model=model)`` resamples it.

    Args:
        model: a `ChoiceModel`.
        judgments: `Battles`, or a table with the standard columns.
        ridge: >= 0, coefficient of the squared norm of all parameters.
        cluster: column of the clusters that standard errors take as independent, in place of battles.
        strata: column of strata, each with a fixed number of battles, or clusters.

    Raises:
        TypeError: ``model`` is no `ChoiceModel`.
        ValueError: a negative ridge; the function gives something else than log-probabilities.
        DataError: the battles leave parameters open; a column is not there or has missing values; a model of ties gets
            soft outcomes.

    Examples:
        >>> import jaxeval
        >>> import jax.numpy as jnp
        >>> from jax.nn import log_sigmoid
        >>> def tie_band(parameter, battle):
        ...     z = parameter["strength"][battle["model_a"]] - parameter["strength"][battle["model_b"]]
        ...     band = jnp.exp(parameter["log_band"][0])
        ...     win, loss = log_sigmoid(z - band), log_sigmoid(-z - band)
        ...     return win, jnp.log1p(-jnp.exp(win) - jnp.exp(loss)), loss
        >>> model = jaxeval.ChoiceModel(tie_band, {"strength": "model", "log_band": 1})
        >>> fit = jaxeval.fit_model(model, jaxeval.simulate_battles(2_000, 3, seed=0))
        >>> bool(fit.converged)
        True
    """
    if not isinstance(model, ChoiceModel):
        raise TypeError(f"model must be a ChoiceModel, got {type(model).__name__}")
    rows = model.rows(judgments)
    options = BootstrapOptions(ridge=ridge, cluster=cluster, strata=strata).checked(rows)
    boards = model.boards(rows, options)
    assert isinstance(boards, _Boards)
    fit, drawn = boards.fit(0), boards.slices.drawn[0]
    return ModelFit(
        parameters=pd.Series(fit.unpadded(fit.phi), fit.names, name="estimate"),
        covariance=pd.DataFrame(fit.covariance(drawn), fit.names, fit.names),
        log_likelihood=fit.log_likelihood,
        converged=fit.status == Status.CONVERGED,
        n_battles=int(fit.cells.count.sum()),
        warnings=[*rows.report.warnings, *_warnings(fit)],
        settings=_settings(model, options),
    )
