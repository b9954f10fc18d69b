"""Leaderboards of few human outcomes and many verdicts of a judge (prediction-powered inference)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.checks import check_choice, checked_number
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.report import DataReport
from jaxeval.data.verdict_rows import SAMPLE, VerdictCells, VerdictRows, verdict_rows
from jaxeval.errors import DataError
from jaxeval.execution.runs import of_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch.prediction_powered import Form
from jaxeval.lazy_names import pd
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import board_facets, bootstrap_result, with_random_facets
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.options import BootstrapOptions, BootstrapSettings
from jaxeval.ratings.prediction_powered_boards import PoweredBoard, fit_powered_board, powered_refits
from jaxeval.ratings.refits import BoardRefits, Refitted, SliceBoards
from jaxeval.ratings.slices import make_slices
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import PredictionPoweredArguments

Samples = Literal["by pair", "pooled"]
_FORMS = {"by pair": Form.BY_PAIR, "pooled": Form.POOLED}
#: Under so many votes of people lam and worth are hardly known.
FEW_VOTES = 50
# There is a warning if the worths of resamples are on average this many standard deviations below the worth. They were
# .9 to 2.1 below it at 13 to 55 votes per model, and not below at hundreds. With 3,000 votes on 55 models the worth
# itself was 920 to 1,230; all 25,000 battles give 1,480.
_TOO_LOW = 0.5
#: The standing of models that only the judge saw.
JUDGE_ONLY = "judge only"


class PredictionPoweredSettings(BootstrapSettings):
    """What made a `PredictionPoweredBoard`: the options of its bootstrap, and how the judge's verdicts were used."""

    samples: Samples
    given_lam: float | None  # None: the best one, in every resample anew
    best_for: tuple[Any, Any] | None  # the models whose difference lam was to be best for; None for all at once


@dataclass(frozen=True, eq=False, repr=False)
class PredictionPoweredFit(BradleyTerryFit):
    """Strengths fitted to human outcomes and a judge's verdicts: a `BradleyTerryFit`.

    ``n_battles`` counts the battles that people judged. A model without any has the standing "judge only", and no
    rating. Standard errors include the errors of both samples; they take lam as given.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.prediction_powered(*jaxeval.simulate_verdicts(400, 4_000, 4, seed=0), n_resamples=200)
        >>> board.fit.n_human, board.fit.n_judge_only
        (400, 4000)
        >>> board.fit.standard_errors.round().tolist()
        [14.0, 11.0, 13.0, 13.0]
    """

    _board: PoweredBoard = field(repr=False)

    @cached_property
    def _standing(self) -> NDArray[np.object_]:
        """As in `BradleyTerryFit`; "judge only" for a model that people did not judge."""
        return np.where(self._n_battles == 0, JUDGE_ONLY, super()._standing)

    @property
    def _component(self) -> Int:
        """As in `BradleyTerryFit`; 1 for a model that people did not judge."""
        return np.where(self._n_battles == 0, 1, super()._component)

    @property
    def n_human(self) -> int:
        """n, battles that people judged."""
        cells = self._board.cells
        return int(cells.count[cells.labelled].sum())

    @property
    def n_judge_only(self) -> int:
        """N, battles that the judge alone judged."""
        return int(self._board.cells.count.sum()) - self.n_human

    def _how_many(self) -> str:
        people = f"{counted(self.n_human, 'battle')} judged by people and {self.n_judge_only:,} by the judge alone"
        return f"{people}, of {self.competitor.counted(len(self.ratings))}"

    @property
    def warnings(self) -> list[str]:
        """As in `BradleyTerryFit`, and models that only the judge saw."""
        unseen = self.standing.index[self.standing == JUDGE_ONLY]
        messages = super().warnings
        if len(unseen):
            messages.append(
                f"{self.competitor.counted(len(unseen), 'has', 'have')} verdicts of the judge only, and so no rating: "
                f"{named(unseen)}. soft_elo (jaxeval soft-elo) places {self.competitor.many} without human votes"
            )
        if 0 < self.n_human < FEW_VOTES:
            messages.append(
                f"the judge's weight and worth rest on {counted(self.n_human, 'human vote')}, too few to know them "
                f"well: with fewer than {FEW_VOTES} both are often too large"
            )
        return messages


@dataclass(frozen=True, eq=False, repr=False)
class PredictionPoweredBoard(Bootstrap):
    """A board of few human outcomes and many verdicts, resampled: what a `Bootstrap` has, and the judge's worth.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.prediction_powered(*jaxeval.simulate_verdicts(400, 4_000, 4, seed=0), n_resamples=200)
        >>> print("between {:.0f} and {:.0f} human votes".format(*board.worth_interval()))
        between 165 and 367 human votes
    """

    fit: PredictionPoweredFit
    settings: PredictionPoweredSettings
    lam_draws: Float = field(kw_only=True, repr=False)  # (B,) lam of each resample; NaN without convergence, like gains
    _gain: Float = field(kw_only=True, repr=False)  # (B,) from the judge

    @property
    def warnings(self) -> list[str]:
        """As in `Bootstrap`, and whether the votes are too few to know the judge's worth."""
        messages = super().warnings
        worths = self._worth(self._gain)
        if self.worth - worths.mean() > _TOO_LOW * worths.std() > 0:
            messages.append(
                f"in the resamples the judge's verdicts are worth {counted(round(worths.mean()), 'vote')} on average, "
                f"below the {self.worth:,.0f} of the data: with so few votes per {self.competitor.one} both numbers "
                "are too low, and so is the interval of the worth"
            )
        return messages

    @property
    def _by_errors(self) -> bool:
        """Whether all intervals are those of the fit: percentiles of few votes fall short."""
        return self.settings.interval == "auto"

    @property
    def ratings(self) -> pd.Series:
        """(M,) Elo."""
        return self.fit.ratings

    @property
    def lam(self) -> float:
        """The weight of the judge's verdicts, from 0 (they are not used) to 1."""
        return self.fit._board.lam

    @property
    def worth(self) -> float:
        """How many human votes the judge is worth: so many more votes would do the same for the variance.

        It is n (variance without the judge / variance with it - 1), for the sum of the variances over models, or for
        the difference that lam is best for. It takes battles as independent. It depends on this n and N: with more
        verdicts it grows up to a bound that the judge's agreement with people sets, and no judge is worth more than N
        votes.
        """
        return float(self._worth(self.fit._board.gain))

    def _worth(self, gain: Any) -> Any:
        return np.minimum(self.fit.n_human * (gain - 1), self.fit.n_judge_only)

    def worth_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval of `worth`, from lam chosen anew in every resample; its lower end may be 0.

        Resamples keep the strengths by which variances are summed, and vary too little: percentiles fall short. Each
        end is the further one of the percentile and of the other percentile reflected in logarithms.

        Raises:
            ValueError: a level that is not between 0 and 1.
        """
        lower, upper = (float(end) for end in interval_bounds(self._worth(self._gain), level))
        if not (self.worth > 0 and upper > 0):
            return lower, upper
        reflected = min(self.worth**2 / max(lower, self.worth / 2), self.fit.n_judge_only)
        return min(lower, self.worth**2 / upper), max(upper, reflected)

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """Return what the verdicts are worth, see `judge`."""
        return {"judge": [dict(self.judge(level))]}

    def judge(self, level: float = 0.95) -> dict[str, float]:
        """Record what the verdicts are worth: lam, worth and its interval, and the battles of both samples."""
        lower, upper = self.worth_interval(level)
        record = {"lam": self.lam, "worth": self.worth, "worth_lower": lower, "worth_upper": upper}
        return {**record, "n_human": self.fit.n_human, "n_judge_only": self.fit.n_judge_only}


@spelled_out(
    BootstrapOptions,
    RunningOptions,
    without="features normalize feature_ridge ties link penalty interval method reweight dtype strata",
)
def prediction_powered(
    human: Battles | Any,
    judged: Battles | Any,
    unlabelled: Battles | Any,
    lam: float | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    *,
    by: str | Sequence[str] | None = None,
    samples: Samples = "by pair",
    best_for: tuple[Any, Any] | None = None,
    random: str | Sequence[str] = (),
    **options: Unpack[PredictionPoweredArguments],
) -> PredictionPoweredBoard | dict[Hashable, PredictionPoweredBoard]:
    """Fit Bradley-Terry ratings of what people prefer, from few of their votes and many verdicts of a judge.

    Prediction-powered inference (arXiv:2301.09633, 2311.01453; on leaderboards arXiv:2403.07008). People and the judge
    judged the same n battles, and the judge N others. The points of a model are those that people gave, plus lam times
    a difference: what the judge gives in the N others, scaled to n battles, less what the judge gives in the n. A judge
    who is wrong in the same way in both samples moves no rating, however wrong; the more the judge agrees with people
    battle by battle, the smaller the errors. With lam = 0 the judge is not used.

    Each resample draws both samples anew, chooses lam anew, and is refitted. So intervals include the uncertainty of
    lam.

    Args:
        human: outcomes that people gave, `Battles` or a table with the standard columns: wins, ties and losses.
        judged: the judge's verdicts on the same battles in the same order.
        unlabelled: the judge's verdicts on other battles of the same kind.
        lam: the judge's weight, from 0 to 1; by default the one of least variance.
        by: a column of ``human`` and ``unlabelled``, or several, whose groups are rated each on its own.
        samples: "by pair" compares the judge's verdicts on both samples within each pair of models, so that pairs may
            be more frequent in one of them. "pooled" compares them over all battles, as the papers do; the n battles
            must then be a random sample of all.
        best_for: two models: lam is then chosen for the difference of their ratings, and `worth` is about it. By
            default, and in slices without one of the two, both are about the sum of the variances of all ratings.
        random: columns of ``human`` and ``unlabelled`` of what was sampled besides battles, as in `bootstrap`: judges,
            prompts, voters. ``worth`` does not count them.
        ridge: as in `bootstrap`, like ``gauge``, ``base``, ``max_slices``, ``min_slice_battles``, ``missing`` and the
            options of the run. ``min_slice_battles`` counts the battles of both samples.
        scheme: "multinomial" draws n and N battles with replacement; "poisson" and "bayesian" as in `bootstrap`.
        cluster: column of ``human`` and ``unlabelled`` of the clusters (items, voters), which are drawn whole, with the
            battles of both samples.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: a bad number, or an impossible gauge.
        DataError: the rows of ``human`` and ``judged`` are not the same battles; outcomes are soft or weighted; a
            column is not there; ``best_for`` names no model that people judged; models are numbers in one table and
            text in another.

    Returns:
        A `PredictionPoweredBoard`; with ``by`` a dict of them by group. `leaderboard` makes a table of either.

    Examples:
        >>> import jaxeval
        >>> human, judged, unlabelled = jaxeval.simulate_verdicts(400, 4_000, n_models=4, seed=0)
        >>> board = jaxeval.prediction_powered(human, judged, unlabelled, n_resamples=200)
        >>> board.ratings.round().tolist()
        [1066.0, 986.0, 995.0, 952.0]
        >>> print(f"lam {board.lam:.2f}, worth {board.worth:.0f} human votes")
        lam 0.59, worth 246 human votes
    """
    arguments = {**locals(), **options}
    human, judged, unlabelled = (as_battles(x) for x in (human, judged, unlabelled))
    weight = None if lam is None else checked_number("lam", lam)
    if weight is not None and not 0 <= weight <= 1:
        raise ValueError(f"lam must be from 0 (no judge) to 1, got {lam!r}")
    check_choice("samples", samples, Samples)
    rows = verdict_rows(human, judged, unlabelled)
    checked = BootstrapOptions.of(arguments).checked(rows)
    of_facets = board_facets(checked, rows, facet_names(random))
    # Every resample holds as many battles of each sample as the data; clusters may lie in both.
    drawn = checked if checked.cluster is not None or checked.scheme == "poisson" else replace(checked, strata=SAMPLE)
    slices = make_slices(rows, drawn)
    pair = None if best_for is None else _checked_models(best_for, rows)
    how = {"samples": samples, "given_lam": weight, "best_for": pair}
    boards = _Powered(slices, checked, rows.report, drawn, how).by_group(of_run(options))
    return with_random_facets(boards, rows, of_facets)


@dataclass(frozen=True, eq=False)
class _Powered(SliceBoards[PredictionPoweredFit, PredictionPoweredBoard]):
    """Boards of both samples."""

    report: DataReport
    drawn: BootstrapOptions  # with the samples as strata
    how: dict[str, Any]  # the verdicts are used: settings

    @property
    def deciding(self) -> Mapping[str, Any]:
        return self.how

    def fit(self, s: int) -> PredictionPoweredFit:
        models, cells = self.slices.boards[s]
        assert isinstance(cells, VerdictCells)
        form, lam, pair = _FORMS[self.how["samples"]], self.how["given_lam"], _places(self.how["best_for"], models)
        fitted = fit_powered_board(models, cells, self.options, form, lam, pair)
        count, options = cells.by_people(len(models)), replace(self.drawn, strata=None)
        return fit_result(PredictionPoweredFit, fitted, self.slices.drawn[s], self.report, options, count)

    def refits(self, s: int, fit: PredictionPoweredFit) -> BoardRefits:
        groups = self.slices.labels[s], self.slices.drawn[s]
        return powered_refits(fit._board, *groups, self.options, self.how["given_lam"])

    def result(self, fit: PredictionPoweredFit, refitted: Refitted) -> PredictionPoweredBoard:
        lam, gain = np.where(refitted.converged, refitted.parameters[:, -2:].T, np.nan)
        return bootstrap_result(
            PredictionPoweredBoard, fit, refitted, self.options, PredictionPoweredSettings, self.how,
            lam_draws=lam, _gain=gain,
        )  # fmt: skip


def _checked_models(best_for: Any, rows: VerdictRows) -> tuple[Any, Any]:
    if not isinstance(best_for, Sequence) or isinstance(best_for, str) or len(best_for) != 2:
        raise TypeError(f"best_for takes two models, got {best_for!r}")
    first, second = best_for
    for name in best_for:
        if name not in rows.models:
            hint = did_you_mean(name, rows.models)
            raise DataError(f"best_for: no model {name!r} among the {counted(rows.n_models, 'model')}{hint}")
        if not rows.has_votes(name):
            raise DataError(f"best_for: people judged no battle of {name!r}, so that it has no rating")
    if first == second:
        raise ValueError(f"best_for takes two different models, got {first!r} twice")
    return first, second


def _places(pair: tuple[Any, Any] | None, models: pd.Index) -> tuple[int, int] | None:
    """Return where the pair is among the models of a slice; a slice without one of them takes all its models."""
    if pair is None or not all(name in models for name in pair):
        return None
    first, second = models.get_indexer(pd.Index(pair))
    return int(first), int(second)
