"""The result of comparing two boards: ratings on one scale, who moved, ranks on both, and how far they agree."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxeval.arrays import Float
from jaxeval.lazy_names import pd
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.show.boards import bars, rank_spread, whole
from jaxeval.show.shown import Answer, Column, Part, Result, settings_line
from jaxeval.show.table import Table
from jaxeval.statistics.comparison import RANGES, draw_bounds, places, ranking_agreement
from jaxeval.statistics.draws import Draws, both_converged
from jaxeval.statistics.quantiles import centred
from jaxeval.wording import Noun, common_noun, competitor_settings, counted, named, visible_line

#: How many models a sentence names at most.
_MOST_NAMED = 5
_SHOWN_FIRST = ("model", "difference", "at_once_lower", "at_once_upper", "moved", "rank_a", "rank_b",
                "rating_a", "rating_b")  # fmt: skip


class BoardPairing(NamedTuple):
    """What two boards share, and how their resamples were drawn."""

    n_a: int  # votes of each board
    n_b: int
    n_shared: int  # of them on both
    known: str  # how shared votes are recognised, in words
    n_other_result: int  # shared votes with another result on the other board
    together: bool  # one draw of the union; else independent draws
    n_groups: int = 0  # clusters that are on both boards
    cluster: str | None = None  # the column that names them
    made_before: bool = False  # the boards came with draws, which are taken as they are

    def sentence(self, names: tuple[str, str]) -> str:
        """Return what the boards share, and how their resamples were drawn, in words."""
        votes = f"{counted(self.n_a, 'vote')} on {names[0]} and {self.n_b:,} on {names[1]}"
        if self.made_before:
            drawn = "both have the same draws" if self.together else "each keeps its own draws, taken as independent"
            return f"{votes}; {drawn}"
        known = f" by {self.known}" if self.known else ""
        shared = f"{self.n_shared:,} of them on both, known{known}"
        if not self.n_shared:
            shared = f"none known to be on both{known}"
        if self.n_other_result:
            shared += f" ({counted(self.n_other_result, 'has', 'have')} another result on {names[1]})"
        groups = f"; {counted(self.n_groups, 'cluster')} by {self.cluster!r} on both" if self.n_groups else ""
        drawn = "one draw of the union for both" if self.together else "independent draws"
        return f"{votes}, {shared}{groups}; {drawn}"


@dataclass(frozen=True, eq=False, repr=False)
class BoardComparison(Result):
    """Two boards on one scale, over the M models that both rate. Differences are those of board b less board a.

    ``ratings`` are the joint draws of both boards in one gauge. If the boards share votes, draw r of both comes from
    the same resample. ``boards`` are the bootstraps that the draws come from.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(3_000, 4, seed=1)
        >>> week = votes.filter(lambda table: table.index < 2_000)
        >>> found = jaxeval.compare_boards(week, votes, names=("last week", "this week"), n_resamples=200)
        >>> print(found.answer.sentences[0])
        none of 4 models moved at the 95% level; the largest difference is that of model-1: +6.7 (-4.1 to +17.6)
        >>> found.table[["model", "rank_a", "rank_b"]].head(1).to_numpy().tolist()
        [['model-1', 1, 1]]
    """

    names: tuple[str, str]
    boards: tuple[Bootstrap, Bootstrap] = field(repr=False)
    ratings: tuple[Draws, Draws] = field(repr=False)  # of the models compared
    identical: bool  # the same votes, rated alike, on the same draws: there is no difference at all
    pairing: BoardPairing
    only: tuple[pd.Index, pd.Index]  # models on one board alone
    left_out: Mapping[Hashable, str]  # models on both that are not compared, and why
    top: int
    level: float
    settings: Mapping[str, Any]
    notes: tuple[str, ...]  # what was read and done
    told: tuple[str, ...] = field(default=(), repr=False)  # warnings of the comparison itself
    one_scale: bool = True  # False if the links differ: differences then do not show who moved

    def _shown(self) -> Answer:
        title = f"BoardComparison: {' and '.join(self.names)}, {self.competitor.counted(len(self.models))} on both"
        alone = [f"{name}_{end}" for name in ("difference", "rank_change") for end in ("lower", "upper")]
        table = self.table.drop(columns=alone).set_index("model")
        return Answer(title, table, self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        a, b = map(visible_line, self.names)
        notes = [
            *self.notes,
            f"{settings_line(self.settings)} of the {self.competitor.many} on both; differences are {b} less {a}",
            f"intervals of differences are for all {self.competitor.many} at once, and decide who moved",
            *([self.settings["versions"]] if "versions" in self.settings else []),
        ]
        agreement = self.agreement.reset_index()
        named_top = agreement.replace({"measure": {"top_overlap": f"top_{self.top}_overlap"}})
        alike = Part("Agreement", named_top, rows="measure")
        return view._replace(
            title=f"{a} and {b} compared",
            notes=notes,
            parts=[
                Part(None, self._columns(), rows=self.competitor),
                *([alike] if agreement["value"].notna().any() else []),
            ],
            tables={"comparison": self.table, "agreement": agreement},
        )

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"comparison": ("plot_comparison", self)}

    def _columns(self) -> list[Column]:
        """Return who moved, as a screen shows it."""
        table, rows = self.table, _records(self.table)
        value, lower, upper = (table[x].to_numpy(float) for x in ("difference", "at_once_lower", "at_once_upper"))
        columns = [
            Column(self.competitor.head, list(map(visible_line, table["model"])), right=False, folds=True),
            Column("Moved", [str(row["moved"] or "") for row in rows], right=False, order=1, style="yellow"),
            Column("Difference", [f"{x:+.1f}" for x in value]),
            Column("Interval", [_ends(row, "{:+.1f} to {:+.1f}") for row in rows], right=False, order=2),
            Column("", bars(value, lower, upper), right=False, order=9, style="cyan"),
        ]
        for side, name in zip("ab", map(visible_line, self.names), strict=True):
            spread = [rank_spread({x: row[f"{x}_{side}"] for x in ("rank_best", "rank_worst")}) for row in rows]
            columns += [
                Column(f"Rating {name}", [f"{x:.1f}" for x in table[f"rating_{side}"]], order=4),
                Column(f"Rank {name}", [whole(x) for x in table[f"rank_{side}"]], order=3),
                Column(f"Spread {name}", spread, right=False, order=5),
            ]
        return [*columns, Column("Rank change", list(map(_rank_change, rows)), right=False, order=6)]

    @property
    def competitor(self) -> Noun:
        """What is rated, in a word and its plural."""
        return common_noun(board.competitor for board in self.boards)

    @property
    def models(self) -> pd.Index:
        """The M models that are compared."""
        return self.ratings[0].names

    @cached_property
    def joint(self) -> Draws:
        """All ratings as joint draws, whose names have the levels ``board`` and ``model``."""
        a, b = self.ratings
        both = [
            (name, model)
            for name, draws_of_board in zip(self.names, (a, b), strict=True)
            for model in draws_of_board.names
        ]
        anchored = None if a.anchored is None or b.anchored is None else np.concatenate([a.anchored, b.anchored])
        return Draws(
            pd.MultiIndex.from_tuples(both, names=["board", "model"]), np.concatenate([a.estimate, b.estimate]),
            np.concatenate([a.draws, b.draws], axis=1), converged=both_converged(a, b), gauge=a.gauge,
            anchored=anchored, loose=np.concatenate([a._loose, b._loose]), precision=max(a.precision, b.precision),
            warnings=tuple(self.warnings), settings=self.settings,
        )  # fmt: skip

    @cached_property
    def difference(self) -> Draws:
        """The ratings on board b less those on board a, draw by draw, Elo."""
        difference = self.ratings[1] - self.ratings[0]
        held = np.zeros(len(self.models), bool) if difference.anchored is None else difference.anchored
        return replace(
            difference, gauge=self.ratings[0].gauge, anchored=held | self.identical, settings=self.settings, warnings=()
        )

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per model: first the models that moved, by size of the difference, then the others by rating on b.

        ``rating_a`` and ``rating_b`` (Elo, in one gauge), ``difference`` and ``rank_change`` (rank on b less rank on a:
        negative is up) have the ends ``_lower`` and ``_upper`` of a percentile interval for that model alone.
        ``at_once_lower`` and ``at_once_upper`` are the ends of intervals of the differences for all models at once,
        which decide: ``moved`` is "up" or "down" where such an interval does not hold 0 (`Draws.apart_from`), else "".
        It is missing where the boards have different links.
        The draws leave open the ranks ``rank_best_a`` to ``rank_worst_a`` on board a, and ``rank_best_b`` to
        ``rank_worst_b`` on board b, among the models compared. ``vote_count_a`` and ``vote_count_b`` count all votes of
        a model. ``attrs`` holds ``warnings`` and ``settings``.
        """
        difference, (a, b) = self.difference, self.ratings
        apart = difference.apart_from(0.0, self.level).to_numpy() & self.one_scale
        columns: dict[str, Any] = {"model": self.models.to_numpy()}
        for name, draws in (("difference", difference), ("rating_a", a), ("rating_b", b)):
            ends = draws.interval(self.level)
            columns |= {name: draws.estimate, **{f"{name}_{end}": ends[end].to_numpy() for end in ("lower", "upper")}}
            if name == "difference":
                at_once = draws.interval_at_once(0.0, self.level)
                columns |= {f"at_once_{end}": at_once[end].to_numpy() for end in ("lower", "upper")}
        moved = np.where(apart, np.where(difference.estimate > 0, "up", "down"), "")
        columns["moved"] = moved if self.one_scale else np.full(len(moved), None)
        for side, draws in (("a", a), ("b", b)):
            ranks = draws.ranks(self.level)
            columns |= {f"{name}_{side}": ranks[name].array for name in ("rank", "rank_best", "rank_worst")}
        columns["rank_change"] = columns["rank_b"] - columns["rank_a"]
        bounds = draw_bounds(_ranks(b.draws) - _ranks(a.draws), self.level)
        columns |= dict(zip(("rank_change_lower", "rank_change_upper"), bounds, strict=True))
        for side, board in zip("ab", self.boards, strict=True):
            columns[f"vote_count_{side}"] = board.fit.n_battles.loc[self.models].to_numpy()
        table = pd.DataFrame(columns)
        size = np.where(apart, -np.abs(difference.estimate), np.inf)
        table = table.iloc[np.lexsort([-self.ratings[1].estimate, size])].reset_index(drop=True)
        settings = {**self.settings, **competitor_settings(self.competitor)}
        table.attrs = {"warnings": self.warnings, "settings": settings, "report": "\n".join(self.notes)}
        return Table.of(table, f"{' and '.join(self.names)} compared", _SHOWN_FIRST)

    @property
    def movers(self) -> pd.DataFrame:
        """The rows of `table` of models that moved."""
        return self.table[self.table["moved"].isin(["up", "down"])]

    @cached_property
    def agreement(self) -> pd.DataFrame:
        """Rows ``kendall_tau`` (tau-b), ``spearman`` and ``top_overlap``, the share of the first ``top`` on both.

        Columns are ``value``, and ``lower`` and ``upper``, the ends of a percentile interval of the draws. Draws hold
        the noise of the votes twice, which lowers every agreement. They are therefore shifted to have the estimate as
        their mean.
        """
        a, b = self.ratings
        first, second = (np.concatenate([board.estimate[None], board.draws]) for board in (a, b))
        agreement = ranking_agreement(first, second, self.top, max(a.precision, b.precision))
        rows = {}
        for name, values in agreement.items():
            lower, upper = draw_bounds(centred(values)[:, None], self.level, RANGES[name])
            rows[name] = {"value": values[0], "lower": lower[0], "upper": upper[0]}
        table = pd.DataFrame(rows).T.rename_axis("measure")
        table.attrs = {"settings": {**self.settings, "top": self.top, "n_models": len(self.models)}}
        return Table.of(table, "Agreement of the boards", ends_of="value")

    def _sentences(self) -> list[str]:
        """Return who moved, and how far the boards agree."""
        table, movers, noun = self.table, self.movers, self.competitor
        n, level = len(table), f"{100 * self.level:g}% level"
        if self.identical:
            return [f"none of {noun.counted(n)} moved: the boards hold the same votes, rated alike"]
        if len(movers):
            moves = [f"{row['model']} {_with_ends(row)}" for row in _records(movers)[:_MOST_NAMED]]
            more = f" and {len(movers) - len(moves):,} more" if len(movers) > len(moves) else ""
            first = f"{len(movers):,} of {noun.counted(n)} moved at the {level}, for all at once: "
            sentences = [f"{first}{', '.join(moves)}{more}"]
        else:
            row = _records(table.loc[[table["difference"].abs().idxmax()]])[0]
            largest = f"the largest difference is that of {row['model']}: {_with_ends(row)}"
            if self.one_scale:
                no_ends = " (open: too few votes for an interval)" if pd.isna(row["at_once_lower"]) else ""
                sentences = [f"none of {noun.counted(n)} moved at the {level}; {largest}{no_ends}"]
            else:
                sentences = [f"the links of the boards differ; {largest}"]
        values = self.agreement
        tau = [values.loc["kendall_tau", name] for name in ("value", "lower", "upper")]
        if np.isfinite(tau[0]):
            overlap = values.loc["top_overlap", "value"]
            tells = np.isfinite(overlap) and self.top < n  # all models are the first n on both
            first = f"; {overlap:.0%} of the first {self.top} are the same" if tells else ""
            sentences.append(f"Kendall's tau between the boards is {tau[0]:.3f} ({tau[1]:.3f} to {tau[2]:.3f}){first}")
        return sentences

    @property
    def warnings(self) -> list[str]:
        """What the comparison, and each board, leave open, in words."""
        messages = list(self.told)
        for name, only in zip(self.names, self.only, strict=True):
            if len(only):
                messages.append(
                    f"{self.competitor.counted(len(only), 'is', 'are')} on {name} only, and not compared: {named(only)}"
                )
        for why in dict.fromkeys(self.left_out.values()):
            models = [model for model, reason in self.left_out.items() if reason == why]
            are = self.competitor.counted(len(models), "is", "are")
            messages.append(f"{are} not compared, {why}: {named(models)}")
        for name, board in zip(self.names, self.boards, strict=True):
            messages += [f"{name}: {warning}" for warning in board.warnings]
        return messages


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.to_dict("records")


def _with_ends(row: Mapping[Any, Any]) -> str:
    """Return a difference with the interval that decides whether it is one."""
    return f"{row['difference']:+.1f}{_ends(row, ' ({:+.1f} to {:+.1f})')}"


def _ends(row: Mapping[Any, Any], form: str) -> str:
    """Return the interval that decides, or nothing."""
    return "" if pd.isna(row["at_once_lower"]) else form.format(row["at_once_lower"], row["at_once_upper"])


def _rank_change(row: Mapping[Any, Any]) -> str:
    """Return the change of a rank with its interval, +2 for two places down."""
    if pd.isna(row["rank_change"]):
        return ""
    ends = row["rank_change_lower"], row["rank_change_upper"]
    return f"{row['rank_change']:+d}" + ("" if pd.isna(ends[0]) else f" [{ends[0]:+.0f}, {ends[1]:+.0f}]")


def _ranks(values: Float) -> Float:
    """Return (B, M) ranks from the top, equals sharing the mean of theirs."""
    best, worst = places(values)
    return (best + worst) / 2
