"""Who votes: each voter's pull on the ratings, voters without information, repeats, bursts, and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.audits.parts import Answered, Audited, Severity, check_plain
from jaxeval.audits.periods import Every, cut_periods, period_word, vote_seconds
from jaxeval.audits.points import (
    GroupedVotes,
    Points,
    Repeats,
    Taste,
    beside_coins,
    busiest_hours,
    divided_models,
    points_of,
    preference,
    repeats,
    with_count,
)
from jaxeval.checks import check_choice, checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board, fit_boards, rated_theta
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import FitOptions
from jaxeval.show.shown import Answer
from jaxeval.statistics.p_values import benjamini_hochberg, holm
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, visible_line

Correction = Literal["benjamini-hochberg", "holm"]

_CORRECTIONS = {"benjamini-hochberg": benjamini_hochberg, "holm": holm}
_BLOCK_ROWS = 2**22  # numbers of voters x models that are in memory at once
_BASE = 1000.0
_MOST_TOLD = 3
_SURE_OF_TASTE = 3.0  # standard errors
_MANY_REPEATS = 0.01  # of all votes
_OFTEN = 1.5  # times as often as by chance


@dataclass(frozen=True, eq=False, repr=False)
class WhoVotes(Answered):
    """What voters do to a board. Ratings and pulls are in Elo.

    ``table`` has a row for each voter of ``min_votes`` decided votes or more, the least likely first:

    - ``pull``, ``pulled``: the largest change of a rating that the voter's votes make, and of which model;
    - ``model, n_on_model, points, expected_points, p_points``: the model that the voter treats most unlike the board,
      and the chance of so many or so few points, corrected for the voter's number of models;
    - ``agreement, expected_agreement, p_honest``: votes for the higher rated model, and the chance that somebody who
      votes as the board does prefers the higher rated models so little;
    - ``p_points_adjusted``, ``p_honest_adjusted``: corrected for all voters; ``verdict`` is empty where both are above
      ``alpha``;
    - ``repeats``: votes on a pair (and prompt, where known) beyond the voter's first; ``busiest_hour``: the most votes
      within an hour, where times are known.

    ``strongest`` has the voters of the largest pulls, with pulls from a fit without each (``pull_refitted``).
    ``blocks`` says about which models voters differ more than about others (`jaxeval.audits.points`). ``bursts``
    has the points of models in periods, beside those that the board expects; None without times. ``without`` has
    the ratings without the voters that have a verdict, and changes without repeats. ``taste`` is by how much voters
    differ in what they like (logits).

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.who_votes(jaxeval.simulate_votes(3_000, 4, seed=0).assign(voter=lambda v: v.index % 50))
        >>> (found.table["verdict"] != "").sum()
        np.int64(0)
        >>> found.findings()[0].text[:83]
        'Of the 50 voters with 10 decided votes or more, 0 do not vote as honest voters do ('
    """

    part = "who_votes"
    strongest: pd.DataFrame
    blocks: pd.DataFrame
    bursts: pd.DataFrame | None
    without: pd.DataFrame
    taste: Taste
    n_voters: int
    n_votes: int
    n_left_out: int  # votes without a voter
    n_suspect_votes: int
    repeats: Repeats

    def _shown(self) -> Answer:
        suspects = int((self.table["verdict"] != "").sum())
        title = f"WhoVotes: {suspects:,} of {counted(self.n_voters, 'voter')} stand out"
        columns = ["voter", "verdict", "n_votes", "pull", "pulled", "agreement", "expected_agreement"]
        named_so = (name for name in ("voter", "time", "prompt") if self.settings[name])
        by = [f"{name} by {visible_line(self.settings[name])}" for name in named_so]
        settings = ", ".join([*by, f"{self.settings['correction']} at {self.settings['alpha']:g}"])
        return Answer(title, self.table[columns], settings, self.warnings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        for part in (self._of_voters, self._of_board, self._of_repeats, self._of_blocks, self._of_bursts):
            yield from part()

    def _of_voters(self) -> Iterator[tuple[Severity, str]]:
        n, votes = len(self.table), f"{self.settings['min_votes']} decided votes or more"
        if n == 0:
            models = f"{self.competitor.many} that these votes rate"
            yield Severity.CAUTION, f"0 voters have {votes} between {models}: no voter can be tested."
            return
        odd = self.table[self.table["verdict"] != ""]
        names = "; ".join(f"voter {visible_line(row.voter)} {row.verdict}" for row in odd.head(_MOST_TOLD).itertuples())
        do = "does" if len(odd) == 1 else "do"
        text = f"Of the {counted(n, 'voter')} with {votes}, {len(odd):,} {do} not vote as honest voters do "
        text += f"({self.settings['correction']} at {self.settings['alpha']:g})" + (f": {names}" if names else "")
        yield Severity.CAUTION if len(odd) else Severity.REASSURING, f"{text}."
        if self.taste.z > _SURE_OF_TASTE:
            text = f"Voters' likings of {self.competitor.a_one} differ by {self.taste.logit:.2f} logits (standard "
            text += "deviation), so that the votes of one voter are not independent: cluster by voter."
            yield Severity.NOTE, text
        if len(self.strongest):
            yield _strongest_sentence(self.strongest.iloc[0])

    def _of_board(self) -> Iterator[tuple[Severity, str]]:
        if self.n_suspect_votes == 0 or self.without["change"].isna().all():
            return
        change = self.without["change"].abs()
        first = self.without.loc[self.without["rank"] == 1, "model"].iloc[0]
        now = self.without.loc[self.without["rank_without"] == 1, "model"].iloc[0]
        moved = int((self.without["rank"] != self.without["rank_without"]).sum())
        lead = f"{visible_line(now)} leads instead of {visible_line(first)}" if now != first else "the leader stays"
        share = self.n_suspect_votes / self.n_votes
        text = f"Without the {self.n_suspect_votes:,} votes of these voters ({share:.1%}) ratings move by "
        text += f"{change.max():.1f} Elo at most, {counted(moved, 'rank changes', 'ranks change')}, and "
        severity = Severity.SERIOUS if now != first else Severity.CAUTION if moved else Severity.NOTE
        yield severity, f"{text}{lead}."

    def _of_repeats(self) -> Iterator[tuple[Severity, str]]:
        again, prompt = int(self.repeats.of_voter.sum()), self.settings["prompt"]
        share = again / self.n_votes
        if prompt is not None:
            severity = Severity.CAUTION if share > _MANY_REPEATS else Severity.NOTE if again else Severity.REASSURING
            text = f"{counted(again, 'vote repeats', 'votes repeat')} an earlier one of the same voter, pair and "
            text += f"{visible_line(prompt)} ({share:.1%})"
            if again and self.without["change_without_repeats"].notna().any():
                text += (
                    f"; ratings move by {self.without['change_without_repeats'].abs().max():.1f} Elo at most without"
                )
            yield severity, f"{text}."
            return
        times = self.repeats.alike / max(self.repeats.alike_by_chance, 1.0)
        if times < _OFTEN:
            return
        text = f"Voters meet the same pair again {times:.1f} times as often as if their pairs were drawn as the "
        text += f"board's are: {counted(again, 'vote is', 'votes are')} on a pair that the voter had met before."
        yield Severity.NOTE, text

    def _of_blocks(self) -> Iterator[tuple[Severity, str]]:
        known = self.blocks["p_adjusted"].notna()
        if not known.any():
            return
        odd = self.blocks[known & (self.blocks["p_adjusted"] <= self.settings["alpha"])]
        if len(odd) == 0:
            text = f"Voters differ about none of {self.competitor.counted(int(known.sum()))} more than about the others"
            yield Severity.REASSURING, f"{text}: no block of voters stands out (Holm)."
            return
        first = odd.iloc[0]
        text = f"Voters differ more about {self.competitor.counted(len(odd))} than about the others, most about "
        text += f"{visible_line(first['model'])} ({first['taste_logit']:.2f} logits, p = {first['p_adjusted']:.2g}): a "
        text += f"block of voters may vote {first['lean']} it."
        yield Severity.CAUTION, text

    def _of_bursts(self) -> Iterator[tuple[Severity, str]]:
        if self.bursts is None or len(self.bursts) == 0:
            return
        period = period_word(self.settings["every"])
        odd = self.bursts[self.bursts["p_adjusted"] <= self.settings["alpha"]]
        if len(odd) == 0:
            text = f"No {period} gave any {self.competitor.one} more or fewer points than the board expects of it "
            yield Severity.REASSURING, f"{text}({len(self.bursts):,} looked at, Holm)."
            return
        first = odd.iloc[0]
        text = f"{counted(len(odd), 'burst')}: in the {period} of {first['period']} "
        text += f"{visible_line(first['model'])} took {first['points']:g} of {first['n']:g} points, "
        yield Severity.CAUTION, f"{text}where the board expects {first['expected']:.0f}."


class _Votes(NamedTuple):
    battles: Battles
    cells: Cells
    cell: NDArray[np.intp]  # (R,)
    voter: NDArray[np.intp]  # (R,) -1 for none
    names: pd.Index  # (V,)
    board: Board
    decided: Board  # fitted to the decided votes alone

    @property
    def sizes(self) -> Int:
        known = self.voter >= 0
        count = None if self.battles.count is None else self.battles.count[known]
        return count_by(self.voter[known], count, len(self.names))

    def grouped(self, group: NDArray[np.intp], n_groups: int) -> GroupedVotes:
        return GroupedVotes.of(self.cells, self.decided, group, self.cell, self.battles.count, n_groups)

    def of_rows(self, rows: Bool) -> Int:
        """Return (R,) votes of some ``rows`` (R,), 0 of the others."""
        return np.where(rows, 1 if self.battles.count is None else self.battles.count, 0)

    def refitted(self, gone: list[Int]) -> list[Board]:
        """Fit without some votes (R,) of the rows."""
        cells, models = self.cells, self.battles.models
        tables = [with_count(cells, cells.count - count_by(self.cell, votes, len(cells.count))) for votes in gone]
        return fit_boards([(models, left) for left in tables], FitOptions(), [self.board.theta] * len(tables))


def who_votes(
    battles: Battles | Any,
    voter: str = "voter",
    *,
    time: str | None = None,
    prompt: str | None = None,
    every: Every = "day",
    min_votes: int = 10,
    alpha: float = 0.05,
    correction: Correction = "benjamini-hochberg",
    n_strongest: int = 5,
) -> WhoVotes:
    """Return who votes: which voters move the board, whose votes hold no information, and who votes together.

    A voter's pull is the sum of the scores of the voter's votes times the inverse information (the influence function).
    Tests compare decided votes with a Bradley-Terry board of decided votes. The points that a voter gives to a model
    are a sum of independent chance results, whose tails come from saddlepoints. So do those of the preference for
    higher rated models. Both are widened by how much voters differ in taste on this board. Voters are independent of
    each other, so that the correction over them holds.

    docs/who-votes.md says how often honest voters of simulated boards raise an alarm, and how many votes it takes to
    find voters who always choose one model, toss coins or vote in blocks.

    Args:
        battles: `Battles`, or a table with the standard columns; results are votes, not soft targets.
        voter: column of who votes; rows without one are left out, and counted.
        time: column of when votes were cast, for bursts: times, ISO 8601, or seconds since 1970.
        prompt: column of prompts (or conversations), for repeats; votes without one repeat nothing.
        every: the periods of bursts, as in `drift`.
        min_votes: decided votes that a voter needs to be tested.
        alpha: false alarms of either test: the chance of any ("holm"), or their share among all alarms.
        correction: over voters: "benjamini-hochberg" or "holm". Blocks and bursts are always corrected by Holm.
        n_strongest: how many voters of the largest pulls to show; the board is fitted anew without each in turn.

    Raises:
        DataError: there is no such column, no row has a voter, results are soft, or a time cannot be read.
        ValueError: a number out of range, or an unknown correction.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(3_000, 4, seed=0)
        >>> votes["voter"] = votes.index % 50
        >>> odd = votes["voter"] == 0  # always prefers the last model
        >>> for side in ("model_a", "model_b"):
        ...     votes.loc[odd & (votes[side] == "model-4"), "winner"] = side
        >>> found = jaxeval.who_votes(votes, "voter")
        >>> found.table.loc[:0, ["voter", "verdict"]].to_numpy().tolist()
        [[0, 'favours model-4, agrees with the board less than coins do']]
        >>> found.table.loc[:0, ["n_on_model", "points", "expected_points"]].round(1).to_numpy().tolist()
        [[29.0, 29.0, 11.5]]
        >>> found.without.loc[found.without["model"] == "model-4", "change"].round(1).tolist()
        [-5.9]
    """
    battles = as_battles(battles)
    alpha = checked_level(alpha, "alpha")
    check_choice("correction", correction, _CORRECTIONS)
    min_votes, n_strongest = checked_integer("min_votes", min_votes, 2), checked_integer("n_strongest", n_strongest)
    votes = _votes(battles, voter)
    sizes = votes.sizes
    grouped = votes.grouped(votes.voter, len(votes.names))
    tested = grouped.sizes >= min_votes
    points = points_of(grouped, tested, battles.n_models)
    taste = points.taste()
    table = _voter_table(votes, grouped, points, tested, taste, correction)
    table.insert(2, "verdict", _verdicts(table, grouped, alpha))
    prompts = None if prompt is None else battles.codes(prompt, "drop")[0]
    again = repeats(votes.voter, votes.cell, votes.cells, prompts, battles.count, len(votes.names))
    table["repeats"] = again.of_voter[table["number"]]
    bursts = None
    if time is not None:
        seconds = vote_seconds(battles, time)
        table["busiest_hour"] = busiest_hours(votes.voter, seconds, battles.count, len(votes.names))[table["number"]]
        bursts = _bursts(votes, seconds, every, min_votes)
    table["suspicion"] = table[["p_points_adjusted", "p_honest_adjusted"]].min(axis=1)
    table = table.sort_values(["suspicion", "p_points"], kind="stable", ignore_index=True).drop(columns="suspicion")
    suspects = np.zeros(len(votes.names), bool)
    suspects[table.loc[table["verdict"] != "", "number"]] = True
    blocks = divided_models(points, ~suspects, taste.logit, battles.models)
    strongest = table.reindex(table["pull"].abs().sort_values(ascending=False, kind="stable").index[:n_strongest])
    strongest, without = _refits(votes, strongest, suspects, None if prompts is None else again.of_row)
    n_left_out = battles.n_battles - int(sizes.sum())
    warnings = [f"{counted(n_left_out, 'vote has', 'votes have')} no voter, and take no part"] if n_left_out else []
    settings = {"voter": voter, "time": time, "prompt": prompt, "every": every, "min_votes": min_votes,
                "alpha": alpha, "correction": correction}  # fmt: skip
    return WhoVotes(
        table=table.drop(columns="number"), strongest=strongest, blocks=blocks, bursts=bursts, without=without,
        taste=taste, n_voters=len(votes.names), n_votes=int(sizes.sum()), n_left_out=n_left_out,
        n_suspect_votes=int(sizes[suspects].sum()), repeats=again, settings=settings, warnings=warnings,
        competitor=battles.competitor,
    )  # fmt: skip


def audited_votes(audited: Audited) -> WhoVotes:
    """Return the part of an audit; its clusters are taken for prompts, unless they are the voters."""
    options = audited.options
    check_plain(audited)
    prompt, time = options.cluster if options.cluster != options.voter else None, options.time
    if time is not None:
        try:
            vote_seconds(audited.battles, time)
        except DataError:  # the part on drift reports it; voters can be looked at all the same
            time = None
    return who_votes(audited.battles, str(options.voter), time=time, prompt=prompt, alpha=1 - options.level)


def _votes(battles: Battles, voter: str) -> _Votes:
    if not np.isin(battles.target, (0.0, 0.5, 1.0)).all():
        soft = int((~np.isin(battles.target, (0.0, 0.5, 1.0))).sum())
        raise DataError(
            f"{counted(soft, 'row has a soft target', 'rows have soft targets')}: this part looks at "
            "votes only, which are wins, losses and ties"
        )
    codes, names = battles.codes(voter, "drop")
    if (codes < 0).all():
        raise DataError(f"column {voter!r} is empty in all of {counted(len(codes), 'row')}: it names no voter")
    cells, cell = battles.compress(slice(None))
    decided = with_count(cells, np.where(cells.target == 0.5, 0, cells.count))
    if len(decided.count) == 0:
        raise DataError(
            f"all {counted(battles.n_battles, 'battle is a tie', 'battles are ties')}: nobody prefers any "
            f"{battles.competitor.one}"
        )
    board, decided_board = fit_boards([(battles.models, cells), (battles.models, decided)], FitOptions())
    return _Votes(battles, cells, cell, codes, names, board, decided_board)


def _voter_table(
    votes: _Votes, grouped: GroupedVotes, points: Points, tested: Bool, taste: Taste, correction: Correction
) -> pd.DataFrame:
    """Return a row for each voter ``tested``, numbered."""
    number, models = np.flatnonzero(tested), votes.battles.models
    rows = tested[points.group]
    each = pd.DataFrame({name: getattr(points, name)[rows] for name in ("group", "model", "n", "points", "expected")})
    each["p"] = points.p_values(taste.logit)[rows]
    best = each.loc[each.groupby("group")["p"].idxmin()].set_index("group").reindex(number)
    n_models = each.groupby("group").size().reindex(number).to_numpy()
    liking = preference(grouped.take(tested), taste.logit, len(models))
    pull, pulled = _pulls(votes, number)
    p_points = np.minimum(best["p"].to_numpy() * n_models, 1.0)
    return pd.DataFrame({
        "number": number, "voter": votes.names[number], "n_votes": votes.sizes[number],
        "n_decided": grouped.sizes[number].astype(np.int64), "pull": pull, "pulled": models[pulled],
        "model": models[best["model"].to_numpy(np.intp)], "n_on_model": best["n"].to_numpy(np.int64),
        "points": best["points"].to_numpy(), "expected_points": best["expected"].to_numpy(), "p_points": p_points,
        "p_points_adjusted": _CORRECTIONS[correction](p_points), **liking,
        "p_honest_adjusted": _CORRECTIONS[correction](liking["p_honest"]),
    })  # fmt: skip


def _verdicts(table: pd.DataFrame, grouped: GroupedVotes, alpha: float) -> list[str]:
    """Return what is odd about each voter, in words; "" for nothing."""
    verdicts: list[list[str]] = [[] for _ in range(len(table))]
    treats = np.where(table["points"] > table["expected_points"], "favours", "slights")
    for row in np.flatnonzero(table["p_points_adjusted"] <= alpha):
        verdicts[row].append(f"{treats[row]} {visible_line(table['model'].iloc[row])}")
    odd = np.flatnonzero(table["p_honest_adjusted"] <= alpha)
    which = np.zeros(grouped.n_groups, bool)
    which[table["number"].to_numpy()[odd]] = True
    below, above = beside_coins(grouped.take(which))
    for row, p_below, p_above in zip(odd, below, above, strict=True):
        than = "no more than coins do" if p_above > alpha else "less than voters do"
        verdicts[row].append(f"agrees with the board {'less than coins do' if p_below <= alpha else than}")
    return [", ".join(words) for words in verdicts]


def _pulls(votes: _Votes, number: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
    """Return (K,) largest pulls of the voters ``number`` on a rating, Elo, and the models pulled."""
    m = len(votes.battles.models)
    known = votes.voter >= 0
    times = np.ones(known.sum()) if votes.battles.count is None else votes.battles.count[known].astype(float)
    shape = (len(votes.names), len(votes.cells.count))
    by_voter = scipy.sparse.csr_array((times, (votes.voter[known], votes.cell[known])), shape)[number]
    scores, inverse = (by_voter @ votes.board.scores()).tocsr(), votes.board.inverse_information() * ELO_PER_LOGIT
    inverse[~votes.board.active] = 0
    pull, model = np.zeros(len(number)), np.zeros(len(number), np.intp)
    step = max(_BLOCK_ROWS // m, 1)
    for start in range(0, len(number), step):
        part = slice(start, start + step)
        pulls = scores[part] @ inverse
        model[part] = np.abs(pulls).argmax(1)
        pull[part] = pulls[np.arange(len(pulls)), model[part]]
    return pull, model


def _bursts(votes: _Votes, seconds: Int, every: Every, min_votes: int) -> pd.DataFrame:
    """Return periods and models of ``min_votes`` votes or more, the least likely first."""
    cut = cut_periods(seconds, every)
    n_periods = len(cut.starts)
    points = points_of(votes.grouped(cut.number, n_periods), np.ones(n_periods, bool), len(votes.battles.models))
    p = np.where(points.n >= min_votes, points.p_values(points.taste().logit), np.nan)
    table = pd.DataFrame({
        "period": cut.names[points.group], "model": votes.battles.models[points.model],
        "n": points.n.astype(np.int64), "points": points.points, "expected": points.expected, "p_value": p,
        "p_adjusted": holm(p),
    })  # fmt: skip
    return table.dropna(subset="p_value").sort_values("p_value", kind="stable", ignore_index=True)


def _refits(
    votes: _Votes, strongest: pd.DataFrame, suspects: Bool, repeated: Int | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the strongest voters with pulls from refits, and all models with and without the suspects."""
    board, models = votes.board, votes.battles.models
    gone = [votes.of_rows(votes.voter == number) for number in strongest["number"]]
    odd = votes.of_rows(suspects[votes.voter] & (votes.voter >= 0))
    boards = votes.refitted([*gone, odd, *([] if repeated is None else [repeated])])
    pulls = [
        _shift(other, board)[models.get_loc(name)] for other, name in zip(boards, strongest["pulled"], strict=False)
    ]
    strongest = strongest.drop(columns="number").assign(pull_refitted=np.asarray(pulls, float))
    rating = np.where(board.active, _BASE + ELO_PER_LOGIT * rated_theta(board), rated_theta(board))
    change = -_shift(boards[len(gone)], board)
    without = pd.DataFrame({"model": models, "rating": rating, "rating_without": rating + change, "change": change})
    if repeated is not None:
        without["change_without_repeats"] = -_shift(boards[-1], board)
    for name, column in (("rank", "rating"), ("rank_without", "rating_without")):
        finite = without[column].where(np.isfinite(without[column]))
        without[name] = finite.rank(ascending=False, method="min").astype("Int64")
    columns = ["voter", "n_votes", "pulled", "pull", "pull_refitted"]
    without = without.sort_values("rating", ascending=False, kind="stable", ignore_index=True)
    return strongest[columns].reset_index(drop=True), without


def _shift(without: Board, full: Board) -> Float:
    """Return each model's Elo (M,) on the ``full`` board beyond that ``without`` some votes; NaN if either has none."""
    both = without.active & full.active
    moved = full.theta - without.theta
    level = moved[both].mean() if both.any() else 0.0
    return np.where(both, ELO_PER_LOGIT * (moved - level), np.nan)


def _strongest_sentence(top: pd.Series) -> tuple[Severity, str]:
    who, votes, model = visible_line(top["voter"]), counted(top["n_votes"], "vote"), visible_line(top["pulled"])
    if np.isnan(top["pull_refitted"]):
        return Severity.SERIOUS, f"Without the {votes} of voter {who}, {model} has no rating."
    text = f"The {votes} of voter {who} move {model} by {top['pull_refitted']:+.1f} Elo"
    return Severity.NOTE, f"{text}; no other voter moves a rating more."
