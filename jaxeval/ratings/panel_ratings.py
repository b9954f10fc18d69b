"""Leaderboards of panels of judges without gold labels: ratings, and how far each judge follows them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.labels import Labels
from jaxeval.data.panel_verdicts import ROW, PanelCells, PanelColumns, PanelRows, panel_rows
from jaxeval.execution.runs import of_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.options.boards import BoardInterval
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import board_facets, bootstrap_result, with_random_facets
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.options import BootstrapOptions, BootstrapSettings
from jaxeval.ratings.panel_boards import ONE_CONTEST, ONE_SIDE, PanelBoard, fit_panel_board, messages_of, panel_refits
from jaxeval.ratings.refits import BoardRefits, Refitted, SliceBoards
from jaxeval.ratings.slices import make_slices
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.options.arguments import FitJudgePanelArguments

#: The standing of models where side biases, or discriminations, cannot be told from ratings.
CONFOUNDED = "confounded"
#: Flags of judges.
NEAR_ZERO, AGAINST = "may not follow the ratings at all", "goes against the ratings"
SHARED_TASTE = (
    "no interval of a panel covers a taste that all its judges share: it covers what these judges would say in more "
    "verdicts, not what people prefer. A panel's ranks need not be nearer to people's than those of its best judge"
)
NO_ITEMS = (
    "no column says which verdicts are on the same item, so that verdicts are drawn one by one: if judges err together "
    "on an item, intervals are too narrow, and more so with more judges (in simulations with ten judges, 95% intervals "
    "held the truth in 65% of the cases). Name the column (item=, --item)"
)
BY_ROW = (
    "verdicts are drawn one by one, as if judges erred independently on an item: if they do not, intervals are too "
    "narrow"
)


class PanelSettings(BootstrapSettings):
    """What made a `JudgePanel`: the options of its bootstrap, and its model of a judge."""

    side_bias: bool


@dataclass(frozen=True, eq=False, repr=False)
class JudgePanelFit(BradleyTerryFit):
    """Fitted strengths, with the discrimination and side bias of each judge: a `BradleyTerryFit` with judges.

    ``n_battles`` counts verdicts. ``win_probability`` is that of a judge of discrimination 1 without a side bias. Where
    side biases cannot be told from ratings, all models have the standing "confounded", and no rating.

    Examples:
        >>> import jaxeval
        >>> verdicts = jaxeval.simulate_panel(600, 6, discriminations=[0.6, 1.0, 1.6], seed=2)
        >>> fit = jaxeval.fit_judge_panel(verdicts, n_resamples=200).fit
        >>> fit.discriminations.round(1).to_dict()
        {'judge-1': 0.6, 'judge-2': 0.9, 'judge-3': 1.4}
    """

    _board: PanelBoard = field(repr=False)

    @cached_property
    def _standing(self) -> NDArray[np.object_]:
        """As in `BradleyTerryFit`; "confounded" where side biases cannot be told from ratings."""
        return np.full(len(self.theta), CONFOUNDED, object) if self._board.confounded else super()._standing

    @property
    def discriminations(self) -> pd.Series:
        """(K,) g: how sharply each judge tells models apart. NaN without a figure.

        Their root mean square over all judges, weighted by the verdicts of each, is 1: the scale of the ratings.
        """
        return self._of_judges(self._board.fitted.g, 0, "discrimination")

    @property
    def side_biases(self) -> pd.Series:
        """(K,) b, logits: above 0 for a judge who favours side A, which was shown first. NaN without a figure."""
        return self._of_judges(self._board.fitted.b, 1, "side_bias")

    @property
    def judge_status(self) -> pd.Series:
        """(K,) why a judge has no figures; empty for one who has."""
        fitted = self._board
        return pd.Series(fitted.judge_status, fitted.judges, name="status", dtype=object)

    @property
    def n_verdicts(self) -> pd.Series:
        """(K,) verdicts of each judge."""
        cells = self._board.verdicts
        count = np.bincount(cells.judge[cells.pair], cells.count, len(self._board.judges)).astype(np.int64)
        return pd.Series(count, self._board.judges, name="n_verdicts")

    def _of_judges(self, values: Float, block: int, name: str) -> pd.Series:
        fitted = self._board
        m, k = len(fitted.theta), len(fitted.judges)
        there = fitted.moves[m + block * k : m + (block + 1) * k]
        return pd.Series(np.where(there, values, np.nan), fitted.judges, name=name)

    @property
    def _left_out(self) -> bool:
        """Whether no judge is left, as the side biases of all are unknown."""
        return all(text in (ONE_SIDE, ONE_CONTEST) for text in self._board.judge_status)

    def _how_many(self) -> str:
        n, k = counted(int(self.n_battles.sum()) // 2, "verdict"), counted(len(self._board.judges), "judge")
        return f"{n} of {k} on {self.competitor.counted(len(self.ratings))}"

    @property
    def warnings(self) -> list[str]:
        """As in `BradleyTerryFit`, and what the verdicts do not say of judges."""
        if self._board.confounded:  # nothing else is worth saying
            return [*self.report.warnings, *self._board.flags]
        if self._left_out:  # nor do models without verdicts show who met whom
            return [*self.report.warnings, *messages_of(self._board)]
        return [*super().warnings, *messages_of(self._board)]


@dataclass(frozen=True, eq=False, repr=False)
class JudgePanel(Bootstrap):
    """A board of a panel of judges, resampled: what a `Bootstrap` has, and the judges.

    Examples:
        >>> import jaxeval
        >>> verdicts = jaxeval.simulate_panel(600, 6, discriminations=[0.6, 1.0, 1.6], seed=2)
        >>> panel = jaxeval.fit_judge_panel(verdicts, n_resamples=200)
        >>> panel.judges()[["discrimination", "discrimination_upper"]].round(1).to_numpy().tolist()
        [[0.6, 0.7], [0.9, 1.0], [1.4, 1.5]]
        >>> joint = panel.joint_judges.of(measure="discrimination")
        >>> joint.tiers().to_dict()
        {'judge-1': 3, 'judge-2': 2, 'judge-3': 1}
    """

    fit: JudgePanelFit
    settings: PanelSettings
    _judges: Float = field(kw_only=True, repr=False)  # (B, 2 K) of `joint_judges`; NaN without a figure

    @property
    def ratings(self) -> pd.Series:
        """(M,) Elo: a difference d means odds of 10^(d / 400) with a judge of discrimination 1."""
        return self.fit.ratings

    def first_sentence(
        self, level: float = 0.95, *, kind: BoardInterval | None = None, min_battles: int | None = None
    ) -> str:
        """Say what `Bootstrap` says, and by which judges a difference of 400 means odds of 10 to 1."""
        if self.fit._left_out:
            why = named(list(dict.fromkeys(text.partition(";")[0] for text in self.fit.judge_status)))
            none = f"no {self.competitor.one} can be ranked: all judges are left out ({why})"
            return f"{none}; side_bias=False (on the command line --no-side-bias) takes no judge to favour a side"
        sentence = super().first_sentence(level, kind=kind, min_battles=min_battles)
        if not np.isfinite(self.ratings).any() or not (self.fit.converged or self.ranked(min_battles).any()):
            return sentence
        judges = [visible_line(name) for name in self.fit.discriminations.dropna().index]
        by = f"a typical judge of {named(judges)}" if len(judges) > 1 else judges[0]
        return f"{sentence}; 400 more are odds of 10 to 1 by {by}"

    @cached_property
    def _in_gauge(self) -> Draws:
        return replace(super()._in_gauge, bias_corrected=True)

    @property
    def joint_judges(self) -> Draws:
        """Discriminations and side biases as joint draws; their names have the levels ``measure`` and ``judge``."""
        fit = self.fit
        discriminations, side_biases = np.split(self._judges, 2, axis=1)
        measures = {"discrimination": (fit.discriminations, discriminations)}
        if self.settings.side_bias:
            measures["side_bias"] = fit.side_biases, side_biases
        alone = fit._board.judged & (fit._board.judged.sum() == 1)  # whose discrimination is 1
        return Draws(
            pd.MultiIndex.from_product([measures, fit._board.judges], names=["measure", "judge"]),
            np.concatenate([measure_of_judges.to_numpy() for measure_of_judges, _ in measures.values()]),
            np.concatenate([draws for _, draws in measures.values()], axis=1),
            converged=self.converged,
            anchored=np.concatenate([alone, np.zeros(len(alone) * (len(measures) - 1), bool)]),
            settings=self.settings,
        )

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """Return the `judges`, as records."""
        return {"judges": self.judges(level).reset_index().to_dict("records")}

    def judges(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row per judge: verdicts, discrimination and side bias with standard errors and intervals, and flags.

        Flags mark judges who may not follow the ratings (the interval of the discrimination holds 0), judges who go
        against them (the interval lies under 0), and judges without figures. The more a judge follows the ratings, the
        more the judge's verdicts count in the fit.

        Raises:
            ValueError: a level that is not between 0 and 1.
        """
        joint, fit = self.joint_judges, self.fit
        errors, ends = joint.standard_errors, joint.interval(level)
        columns: dict[str, Any] = {"n_verdicts": fit.n_verdicts}
        for measure in joint.names.unique(0):
            columns[measure] = pd.Series(joint.estimate, joint.names).loc[measure]
            columns[f"{measure}_standard_error"] = errors.loc[measure]
            for end in ("lower", "upper"):
                columns[f"{measure}_{end}"] = ends[end].loc[measure]
        table = pd.DataFrame(columns, pd.Index(fit._board.judges, name="judge"))
        flags = fit.judge_status.to_numpy(object)
        lower, upper = table["discrimination_lower"], table["discrimination_upper"]
        flags = np.where((lower <= 0) & (upper >= 0), NEAR_ZERO, flags)
        flags = np.where(upper < 0, AGAINST, flags)
        return Table.of(table.assign(flags=flags), "Judges")

    @property
    def warnings(self) -> list[str]:
        """What the verdicts or the computation leave open, in words."""
        table = self.judges()
        doubted, against = (table.index[table["flags"] == flag] for flag in (NEAR_ZERO, AGAINST))
        messages = super().warnings
        if len(against):
            messages.append(f"{named(against)}: the verdicts go against the ratings, as if sides were mixed up")
        if len(doubted):
            messages.append(f"{named(doubted)}: the verdicts may not follow the ratings at all (discrimination near 0)")
        return messages


@spelled_out(
    BootstrapOptions,
    RunningOptions,
    without="features normalize feature_ridge ties link penalty interval method reweight dtype",
)
def fit_judge_panel(
    verdicts: Any,
    n_resamples: int = 1000,
    seed: int = 0,
    *,
    judge: str | None = None,
    item: str | None = None,
    judges: Sequence[str] | None = None,
    cluster: str | Literal[False] | None = None,
    by: str | Sequence[str] | None = None,
    side_bias: bool = True,
    label_coding: Labels | None = None,
    shown_first: str | None = None,
    model_a: str = "model_a",
    model_b: str = "model_b",
    random: str | Sequence[str] = (),
    **options: Unpack[FitJudgePanelArguments],
) -> JudgePanel | dict[Hashable, JudgePanel]:
    """Fit ratings by a panel of judges without gold labels, and how far each judge follows them.

    Judge k takes model i, on side A, over model j with probability s(g_k (theta_i - theta_j) + b_k): the discrimination
    g_k says how sharply the judge tells models apart (arXiv:2601.21817), and b_k favours side A. Ties are half a win.
    All are estimated together by maximum likelihood: the more a judge agrees with what the panel says, the more the
    judge counts. The scale: the root mean square of the discriminations of all judges, weighted by their verdicts, is
    1, and ratings are those by such a judge. Few verdicts spread ratings and sharpen judges beyond the truth, and draws
    once more, so that percentiles of draws are bias-corrected (`Draws.bias_corrected`). With fewer than 100 verdicts a
    parameter and no ridge, verdicts are moved towards a half, as if each parameter brought one more, a half to either
    side: no judge who follows the ratings without exception sets a scale without end. ``fit.log_likelihood`` is that of
    the moved verdicts.

    Judges err together on an item, and so items are drawn whole if a column names them. In simulations with ten judges
    who share .7 of their noise, 95 % intervals held the truth in .95 of the cases if items were drawn, and in .68 if
    verdicts were (standard errors .01; benchmarks/judge_panel.py). With judges who err independently, intervals from
    items held it in .94 to .96.

    No interval covers a taste that all judges share. Nor need the ranks be nearer to people's than those of the best
    judge: on the Arena's 27,000 votes the ratings of three judges together have smaller errors than those of each, and
    their order is not better than that of the best one.

    Args:
        verdicts: a table with a row for each verdict and a column of judges; a table with a row for each battle and a
            column of verdicts for each of ``judges``; what `read_judge_outputs` gives, where each call is a verdict;
            a dict of `JudgedBattles` by judge, as `read_judges` gives, where each order is a verdict; or `Battles` that
            keep a column of judges. A table with the columns "verdict_a_first" and "verdict_b_first" has two verdicts
            in a row. Verdicts that are missing are left out, and the report counts them.
        judge: column of the judges; "judge" or another usual name by default.
        item: column of the items (prompts); "item" or another usual name by default. Without one, each row of a table
            with ``judges`` is an item.
        judges: columns of verdicts, where each judge has its own.
        cluster: column of what is drawn whole; by default that of items. False draws verdicts one by one.
        by: a column, or several, whose groups are rated each on its own.
        side_bias: whether judges may favour a side. False leaves the b_k out.
        label_coding: what verdicts mean, if they do not say so, as in `JudgedBattles.from_pandas`.
        shown_first: column of the side that was shown first, if that is not always ``model_a``. Side A is the one
            shown first.
        model_a: column of the first model.
        model_b: column of the second model.
        random: columns of what was sampled besides items, as in `bootstrap`: with "judge" ratings are those by judges
            like these. Discriminations and side biases are these judges' own.
        ridge: as in `bootstrap`, like ``gauge``, ``base``, ``scheme``, ``strata``, ``max_slices``,
            ``min_slice_battles``, ``missing`` and the options of the run. ``min_slice_battles`` counts verdicts. The
            ridge holds strengths where the discriminations have a mean of 1, before they are scaled.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: a bad number, or an impossible gauge.
        DataError: no column names the judges; a column is not there; verdicts cannot be read, or there are none.

    Returns:
        A `JudgePanel`; with ``by`` a dict of them by group. `leaderboard` makes a table of either.

    Examples:
        >>> import jaxeval
        >>> g, b = [0.6, 1.0, 1.6], [0.8, 0.0, 0.0]
        >>> verdicts = jaxeval.simulate_panel(600, 6, discriminations=g, side_biases=b, seed=2)
        >>> panel = jaxeval.fit_judge_panel(verdicts, n_resamples=200)
        >>> panel.ratings.round().tolist()
        [1358.0, 1229.0, 1029.0, 944.0, 906.0, 534.0]
        >>> panel.judges()[["discrimination", "side_bias"]].round(1).to_numpy().tolist()
        [[0.6, 0.8], [0.9, 0.0], [1.4, -0.1]]
    """
    where = PanelColumns(
        judge=judge, item=item, judges=judges, label_coding=label_coding, shown_first=shown_first, model_a=model_a,
        model_b=model_b,
    )  # fmt: skip
    rows = panel_rows(verdicts, where)
    rows, drawn_by, messages = _clusters(rows, cluster, str(options.get("scheme", "multinomial")))
    arguments = {**locals(), **options, "cluster": drawn_by}
    checked = BootstrapOptions.of(arguments).checked(rows)
    of_facets = board_facets(checked, rows, facet_names(random))
    slices = make_slices(rows, checked)
    boards = _Panels(slices, checked, rows, side_bias, messages).by_group(of_run(options))
    return with_random_facets(boards, rows, of_facets)


@dataclass(frozen=True, eq=False)
class _Panels(SliceBoards[JudgePanelFit, JudgePanel]):
    """Boards of one panel."""

    rows: PanelRows
    side_bias: bool
    messages: Sequence[str]  # of the clusters

    judgments = "verdicts"

    @property
    def deciding(self) -> Mapping[str, Any]:
        return {"side_bias": self.side_bias}

    @property
    def data(self) -> tuple[Any, ...]:
        return (self.rows.judges,)

    @property
    def n_parameters(self) -> int:
        return super().n_parameters + 2 * len(self.rows.judges) * len(self.slices.boards)

    def fit(self, s: int) -> JudgePanelFit:
        models, cells = self.slices.boards[s]
        assert isinstance(cells, PanelCells)
        fitted = fit_panel_board(models, cells, self.rows.judges, self.options, self.side_bias)
        fitted = replace(fitted, flags=(*fitted.flags, *self.messages, SHARED_TASTE))
        return fit_result(JudgePanelFit, fitted, self.slices.drawn[s], self.rows.report, self.options)

    def refits(self, s: int, fit: JudgePanelFit) -> BoardRefits | Refitted:
        moves = fit._board.moves
        if not moves.any():
            return Refitted.without_steps(np.full((self.options.n_resamples, len(moves)), np.nan), len(fit.ratings))
        return panel_refits(fit._board, self.slices.labels[s], self.slices.drawn[s], self.options)

    def result(self, fit: JudgePanelFit, refitted: Refitted) -> JudgePanel:
        m = len(fit.ratings)
        there = refitted.converged[:, None] & fit._board.moves[m:]
        of_judges = np.where(there, refitted.parameters[:, m:], np.nan)
        return bootstrap_result(
            JudgePanel, fit, refitted, self.options, PanelSettings, self.deciding, _judges=of_judges
        )


def _clusters(
    rows: PanelRows, cluster: str | Literal[False] | None, scheme: str
) -> tuple[PanelRows, str | None, list[str]]:
    """Return the column by which verdicts are drawn, and what the warnings say about it."""
    if cluster is False or (cluster is None and scheme in ("poisson", "bayesian")):
        return rows, None, [BY_ROW]
    if cluster is not None:
        return rows, cluster, []
    if rows.item is None:
        return rows, None, [NO_ITEMS]
    message = "each row of the table is taken as an item" if rows.item == ROW else f"items: column {rows.item!r}"
    return rows.reporting(message), rows.item, []
