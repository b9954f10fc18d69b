"""Who votes: each voter's pull on the ratings, voters without information, repeats, bursts, and blocks."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.audits.audited import Audited
from jaxeval.audits.blocks import divided_models
from jaxeval.audits.parts import check_plain
from jaxeval.audits.periods import Every, cut_periods, vote_seconds
from jaxeval.audits.points import GroupedVotes, Points, Taste, beside_coins, points_of, preference
from jaxeval.audits.repeats import busiest_hours, repeats, with_count
from jaxeval.audits.voters_result import WhoVotes
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board, fit_boards, rated_theta
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import FitOptions
from jaxeval.statistics.multiplicity import benjamini_hochberg, checked_alpha, holm
from jaxeval.wording import counted, visible_line

Correction = Literal["benjamini-hochberg", "holm"]

_CORRECTIONS = {"benjamini-hochberg": benjamini_hochberg, "holm": holm}
_BLOCK_ROWS = 2**22  # numbers of voters x models that are in memory at once
_BASE = 1000.0


class _Votes(NamedTuple):
    """The votes of a board by voter."""

    battles: Battles
    cells: Cells
    cell: NDArray[np.intp]  # (R,)
    voter: NDArray[np.intp]  # (R,) -1 for none
    names: pd.Index  # (V,)
    board: Board
    decided: Board  # fitted to the decided votes alone

    @property
    def sizes(self) -> Int:
        """(V,) votes."""
        own = self.voter >= 0
        count = None if self.battles.count is None else self.battles.count[own]
        return count_by(self.voter[own], count, len(self.names))

    def grouped(self, group: NDArray[np.intp], n_groups: int) -> GroupedVotes:
        """Decided votes by any group of the rows."""
        return GroupedVotes.of(self.cells, self.decided, group, self.cell, self.battles.count, n_groups)

    def of_rows(self, rows: Bool) -> Int:
        """(R,) votes of some ``rows`` (R,), 0 of the others."""
        return np.where(rows, 1 if self.battles.count is None else self.battles.count, 0)

    def refitted(self, gone: list[Int]) -> list[Board]:
        """Fits without some votes (R,) of the rows."""
        cells, models = self.cells, self.battles.models
        tables = [with_count(cells, cells.count - count_by(self.cell, votes, len(cells.count))) for votes in gone]
        return fit_boards([(models, left) for left in tables], _options(), [self.board.theta] * len(tables))


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
    """Who votes: which voters move the board, whose votes hold no information, and who votes together.

    A voter's pull is the sum of the scores of the voter's votes times the inverse information (the influence function).
    Tests compare decided votes with a Bradley-Terry board of decided votes. The points that a voter gives to a model
    are a sum of independent chance results, whose tails come from saddlepoints. So do those of the preference for
    higher rated models. Both are widened by how much voters differ in taste on this board. Voters are independent of
    each other, so that the correction over them holds.

    On simulated boards of 300 voters with 10 to 200 votes on 20 models (60 boards a case, `benchmarks/odd_votes.py`),
    at a nominal .05, any false alarm about points was raised on .00 of the boards, and about agreement on .00 to .07
    (standard error .03), also if voters' tastes differ by half a logit. Of voters who always choose one model, .62 were
    found at 200 votes, .22 at 100 and .01 at 40; of voters who toss coins, 1.00, .88 and .39; of voters who name the
    model that they do not prefer, 1.00, 1.00 and .94. With tastes of half a logit, only .14, .04 and .00 of the first
    kind were found. Of 1,500 voters with 3 to 20 votes, a block of 150 was found on .72 of the boards, one of 60 on .28
    and one of 30 on .03, with false alarms on .00 to .07. See docs/who-votes.md.

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
    alpha = checked_alpha(alpha)
    if correction not in _CORRECTIONS:
        raise ValueError(f"correction must be {' or '.join(map(repr, _CORRECTIONS))}, got {correction!r}")
    min_votes, n_strongest = checked_integer("min_votes", min_votes, 2), checked_integer("n_strongest", n_strongest)
    votes = _votes(battles, voter)
    sizes = votes.sizes
    grouped = votes.grouped(votes.voter, len(votes.names))
    asked = grouped.sizes >= min_votes
    points = points_of(grouped, asked, battles.n_models)
    taste = points.taste()
    table = _voter_table(votes, grouped, points, asked, taste, correction)
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
    return WhoVotes(
        table=table.drop(columns="number"),
        strongest=strongest,
        blocks=blocks,
        bursts=bursts,
        without=without,
        taste=taste,
        n_voters=len(votes.names),
        n_votes=int(sizes.sum()),
        n_left_out=n_left_out,
        n_suspect_votes=int(sizes[suspects].sum()),
        repeats=again,
        settings={"voter": voter, "time": time, "prompt": prompt, "every": every, "min_votes": min_votes,
                  "alpha": alpha, "correction": correction},
        warnings=warnings,
        competitor=battles.competitor,
    )  # fmt: skip


def audited_votes(audited: Audited) -> WhoVotes:
    """The part of an audit; its clusters are taken for prompts, unless they are the voters."""
    own = audited.options
    check_plain(audited)
    prompt, time = own.cluster if own.cluster != own.voter else None, own.time
    if time is not None:
        try:
            vote_seconds(audited.battles, time)
        except DataError:  # the part on drift reports it; voters can be looked at all the same
            time = None
    return who_votes(audited.battles, str(own.voter), time=time, prompt=prompt, alpha=1 - own.level)


def _options() -> FitOptions:
    return FitOptions()


def _votes(battles: Battles, voter: str) -> _Votes:
    """The votes with their voters, fitted."""
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
    board, own = fit_boards([(battles.models, cells), (battles.models, decided)], _options())
    return _Votes(battles, cells, cell, codes, names, board, own)


def _voter_table(
    votes: _Votes, grouped: GroupedVotes, points: Points, asked: Bool, taste: Taste, correction: Correction
) -> pd.DataFrame:
    """A row for each voter ``asked`` for, numbered."""
    number, models = np.flatnonzero(asked), votes.battles.models
    own = asked[points.group]
    each = pd.DataFrame({name: getattr(points, name)[own] for name in ("group", "model", "n", "points", "expected")})
    each["p"] = points.p_values(taste.logit)[own]
    best = each.loc[each.groupby("group")["p"].idxmin()].set_index("group").reindex(number)
    n_models = each.groupby("group").size().reindex(number).to_numpy()
    liking = preference(grouped.take(asked), taste.logit, len(models))
    pull, pulled = _pulls(votes, number)
    p_points = np.minimum(best["p"].to_numpy() * n_models, 1.0)
    return pd.DataFrame(
        {
            "number": number,
            "voter": votes.names[number],
            "n_votes": votes.sizes[number],
            "n_decided": grouped.sizes[number].astype(np.int64),
            "pull": pull,
            "pulled": models[pulled],
            "model": models[best["model"].to_numpy(np.intp)],
            "n_on_model": best["n"].to_numpy(np.int64),
            "points": best["points"].to_numpy(),
            "expected_points": best["expected"].to_numpy(),
            "p_points": p_points,
            "p_points_adjusted": _CORRECTIONS[correction](p_points),
            "agreement": liking.agreement,
            "expected_agreement": liking.expected,
            "p_honest": liking.p_honest,
            "p_honest_adjusted": _CORRECTIONS[correction](liking.p_honest),
        }
    )


def _verdicts(table: pd.DataFrame, grouped: GroupedVotes, alpha: float) -> list[str]:
    """What is odd about each voter, in words; "" for nothing."""
    said: list[list[str]] = [[] for _ in range(len(table))]
    treats = np.where(table["points"] > table["expected_points"], "favours", "slights")
    for row in np.flatnonzero(table["p_points_adjusted"] <= alpha):
        said[row].append(f"{treats[row]} {visible_line(table['model'].iloc[row])}")
    odd = np.flatnonzero(table["p_honest_adjusted"] <= alpha)
    which = np.zeros(grouped.n_groups, bool)
    which[table["number"].to_numpy()[odd]] = True
    below, above = beside_coins(grouped.take(which))
    for row, p_below, p_above in zip(odd, below, above, strict=True):
        than = "no more than coins do" if p_above > alpha else "less than voters do"
        said[row].append(f"agrees with the board {'less than coins do' if p_below <= alpha else than}")
    return [", ".join(words) for words in said]


def _pulls(votes: _Votes, number: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
    """(K,) largest pulls of the voters ``number`` on a rating, Elo, and the models pulled."""
    m = len(votes.battles.models)
    own = votes.voter >= 0
    times = np.ones(own.sum()) if votes.battles.count is None else votes.battles.count[own].astype(float)
    shape = (len(votes.names), len(votes.cells.count))
    by_voter = scipy.sparse.csr_array((times, (votes.voter[own], votes.cell[own])), shape)[number]
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
    """Periods and models of ``min_votes`` votes or more, the least likely first."""
    cut = cut_periods(seconds, every)
    n_periods = len(cut.starts)
    found = points_of(votes.grouped(cut.number, n_periods), np.ones(n_periods, bool), len(votes.battles.models))
    p = np.where(found.n >= min_votes, found.p_values(found.taste().logit), np.nan)
    table = pd.DataFrame(
        {
            "period": cut.names[found.group],
            "model": votes.battles.models[found.model],
            "n": found.n.astype(np.int64),
            "points": found.points,
            "expected": found.expected,
            "p_value": p,
            "p_adjusted": holm(p),
        }
    )
    return table.dropna(subset="p_value").sort_values("p_value", kind="stable", ignore_index=True)


def _refits(
    votes: _Votes, strongest: pd.DataFrame, suspects: Bool, repeated: Int | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The strongest voters with pulls from refits, and all models with and without the suspects."""
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
    """(M,) Elo that a model has on the ``full`` board beyond that ``without`` some votes; NaN where either has none."""
    both = without.active & full.active
    moved = full.theta - without.theta
    level = moved[both].mean() if both.any() else 0.0
    return np.where(both, ELO_PER_LOGIT * (moved - level), np.nan)
