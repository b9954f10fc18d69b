"""How few votes decide: the fewest dropped, flipped or added votes, voters, or models, that change a board's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.audits.changed_boards import WAYS, ChangedBoards, VoteChanges, VoteMoves, VoterMoves
from jaxeval.audits.fewest_moves import fewest_moves, surely_needed
from jaxeval.audits.parts import Answered, Audited, AuditOptions, NotAnsweredError, Severity, check_plain
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.execution.runs import Identity, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.boards import Board
from jaxeval.ratings.vote_groups import cluster_rows
from jaxeval.show.shown import Answer
from jaxeval.show.table import Table
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.options.arguments import AuditArguments

#: Models at the top whose order is looked into: more would take long, and nobody reads so long a board.
_MOST_MODELS = 500
#: Models of a board, each refit of which takes tables of all pairs.
_WIDEST = 2_000
#: Pairs across a border that are tried, those that the data tell apart least.
_ACROSS = 4
#: If so small a share of the votes decides something, this is serious, or asks for caution; so few voters are serious.
_SERIOUS, _CAUTION, _FEW_VOTERS = 0.001, 0.01, 3
#: Ratings that differ by so little (Elo) are level: a fit leaves this much of no difference.
LEVEL = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class FewestVotes(Answered):
    """How few votes decide the order of a board.

    Each number is that of a refit in which the second model is ahead of the first: an upper bound, as other votes might
    do with fewer. The columns ``_at_least`` hold what is proved: with fewer votes, whichever they are, the order stays.
    Where both are equal, the number is exact. A number is missing where nothing that was tried swaps the models.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.fewest_votes(jaxeval.simulate_battles(2_000, 4, seed=0), progress=False)
        >>> found.table[["above", "below", "dropped", "flipped", "added"]].to_numpy().tolist()[1]
        ['model-2', 'model-3', 47, 24, 47]
        >>> found.borders[["border", "dropped", "dropped_for"]].to_numpy().tolist()[0]
        ['#1', 204, 'model-2']
    """

    part = "fewest_votes"
    table: pd.DataFrame
    """A row for each two neighbours, best first: ``above``, ``below``, ``gap`` (Elo), ``dropped``, ``flipped`` and
    ``added`` votes that swap them, each with ``_at_least``; ``voters`` whose votes are dropped, where a column names
    them; and ``without``, a model without whose votes the two swap, else ""."""
    borders: pd.DataFrame
    """A row for #1, each top k and each border of tiers: ``border``, ``top`` (the number of models above it), and the
    fewest ``dropped``, ``flipped`` and ``added`` votes, and ``voters``, that let another model in; ``dropped_for`` and
    so on name that model. Models that are in no tier do not count at borders of tiers."""
    models: pd.DataFrame
    """A row for each model that is ``removed`` with all its votes: ``first``, who is #1 then; ``swapped``, how many
    pairs of the other models change their order; ``moved`` and ``rank_change`` of the model that moves most."""
    changes: pd.DataFrame
    """Which votes these are, for neighbours: ``votes`` with the ``result`` of ``model_a`` against ``model_b`` (1, 1/2,
    0; of flipped ones before that), of the ``change`` that puts ``below`` ahead of ``above``."""
    n_votes: int

    def _shown(self) -> Answer:
        votes = f"{counted(len(self.table), 'pair')} of neighbours, {counted(self.n_votes, 'vote')}"
        return Answer(f"FewestVotes: {votes}", self.table, self.settings)

    @property
    def _level(self) -> pd.Series:
        """Which neighbours have equal ratings: between them there is no order that votes could change."""
        return self.table["gap"] <= LEVEL

    def _said(self) -> Iterator[tuple[Severity, str]]:
        if self._level.all():
            text = f"All {self.competitor.counted(len(self.table) + 1)} are level: there is no order that votes could "
            yield Severity.SERIOUS, f"{text}change, and any one more win makes one."
            return
        yield from self._of_first()
        yield from self._of_neighbours()
        yield from self._of_borders()
        yield from self._of_models()

    def _figures(self) -> Mapping[str, tuple[Any, ...]]:
        return {"": ("plot_fewest_votes", self.table)}

    def _severity(self, n: float) -> Severity:
        share = n / self.n_votes
        return Severity.SERIOUS if share <= _SERIOUS else Severity.CAUTION if share <= _CAUTION else Severity.REASSURING

    def _share(self, n: int) -> str:
        share = n / self.n_votes
        return f"of {self.n_votes:,} ({f'{share:.2%}' if share >= 0.00005 else 'less than 0.01%'})"

    def _of_first(self) -> Iterator[tuple[Severity, str]]:
        row, first = self.borders.iloc[0], self.table["above"].iloc[0]
        if self._level.iloc[0]:
            level = [first, *self.table["below"][self._level.cummin()]]
            named_level = named(sorted(map(visible_line, level)))
            yield Severity.SERIOUS, f"No {self.competitor.one} is #1 by itself: {named_level} are level."
            return
        ways = [name for name in ("dropped", "flipped", "added") if not pd.isna(row[name])]
        if not ways:
            text = f"No number of dropped, flipped or added votes was found that takes #1 from {first}."
            yield Severity.REASSURING, visible_line(text)
            return
        numbers = [f"{counted(row[way], f'{way} vote')} ({row[f'{way}_for']})" for way in ways[1:]]
        text = f"It takes {counted(row[ways[0]], f'{ways[0]} vote')} {self._share(row[ways[0]])} to put "
        text += ", or ".join([f"{row[f'{ways[0]}_for']} ahead of #1, {first}", *numbers])
        yield self._severity(min(int(row[way]) for way in ways)), visible_line(f"{text}.")
        if "voters" in row and not pd.isna(row["voters"]):
            text = f"Without {counted(row['voters'], 'voter')}, {row['voters_for']} is ahead of #1, {first}."
            yield Severity.SERIOUS if row["voters"] <= _FEW_VOTERS else Severity.NOTE, visible_line(text)

    def _of_neighbours(self) -> Iterator[tuple[Severity, str]]:
        known = self.table[~self._level].dropna(subset=["dropped"])
        if not len(known):
            return
        few = int((known["dropped"] <= _SERIOUS * self.n_votes).sum())
        least = known.loc[known["dropped"].astype(float).idxmin()]
        pair = f"{visible_line(least['below'])} passes {visible_line(least['above'])}"
        swap = f"{few:,} of {counted(len(self.table), 'pair')} of neighbours {'swaps' if few == 1 else 'swap'}"
        votes = counted(least["dropped"], "vote is", "votes are")
        text = f"{swap} when {_SERIOUS:.1%} of the votes or fewer are dropped; {pair} when {votes} dropped."
        severity = Severity.CAUTION if 2 * few > len(self.table) else Severity.NOTE
        yield severity if few else Severity.REASSURING, text

    def _of_borders(self) -> Iterator[tuple[Severity, str]]:
        others = self.borders[self.borders["top"] > 1].dropna(subset=["dropped"])
        if not len(others):
            return
        row = others.loc[others["dropped"].astype(float).idxmin()]
        votes = f"it takes {counted(row['dropped'], 'dropped vote')} {self._share(row['dropped'])}"
        name = visible_line(row["dropped_for"])
        text = f"The weakest border below #1 is that of {row['border']}: {votes} to let {name} in."
        yield min(self._severity(row["dropped"]), Severity.CAUTION), text

    def _of_models(self) -> Iterator[tuple[Severity, str]]:
        known = self.models.dropna(subset=["swapped"])
        if not len(known):
            return
        first = self.table["above"].iloc[0]
        other = known[(known["first"] != first) & (known["removed"] != first)]
        swaps = int((known["swapped"] > 0).sum())
        cases = f"{swaps:,} of {counted(len(known), 'case')}"
        text = f"Each {self.competitor.one} removed by itself: others change their order in {cases}"
        if len(other):
            names = f"{visible_line(other['removed'].iloc[0])}, {visible_line(other['first'].iloc[0])} is #1"
            yield Severity.CAUTION, f"{text}; without {names}."
        else:
            yield Severity.NOTE if swaps else Severity.REASSURING, f"{text}; #1 stays."


@spelled_out(AuditOptions, RunningOptions)
def fewest_votes(
    battles: Battles | Any, *, top: Sequence[int] = (1, 3, 5, 10), **options: Unpack[AuditArguments]
) -> FewestVotes:
    """Return how few votes decide: the fewest dropped, flipped or added votes that swap neighbours and change the top.

    Votes are chosen by their influence on the difference of two models, looked at anew after each refit, and every
    number is that of an exact refit (as in arXiv:2508.11847, which drops votes). To flip a vote is to swap its winner:
    ties are dropped or added only. Votes are added between any two rated models; an added tie never does more than a
    win. What would leave a model without a finite rating does not count.

    Args:
        battles: `Battles`, or a table with the standard columns.
        top: sizes k of the tops whose border is looked at; k = 1 is #1. Tiers come from the board's joint draws.
        voter: column that names who voted: then whole voters are dropped, too.
        cluster, level, n_resamples, seed: of the draws that make the tiers.
        by, time, lengths, families, ties, features: as in `audit`. A tie model and covariates are refused.

    Raises:
        ValueError: fewer than two models have comparable ratings, a tie model or covariates are asked for, or an option
            has an impossible value.
        DataError: a column is not there.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.fewest_votes(jaxeval.simulate_battles(500, 3, seed=0), top=[1], progress=False)
        >>> found.table[["above", "below", "dropped"]].to_numpy().tolist()
        [['model-1', 'model-2', 76], ['model-2', 'model-3', 27]]
    """
    return of_audited(Audited.of(battles, options), top)


def of_audited(audited: Audited, top: Sequence[int] = (1, 3, 5, 10)) -> FewestVotes:
    """Return `fewest_votes` of what is audited."""
    sizes = sorted({checked_integer("top", k, 1) for k in top} | {1})
    options, noun = audited.options, audited.battles.competitor
    check_plain(audited)
    board = audited.fit._board
    rated = np.flatnonzero(board.active)
    if not audited.fit.converged:
        raise NotAnsweredError("the fit did not converge, so that no refit says which votes decide")
    if len(rated) < 2:
        raise NotAnsweredError(
            f"fewer than two {noun.many} have comparable ratings, so that there is no order to change"
        )
    if len(board.theta) > _WIDEST:
        raise NotAnsweredError(
            f"fewest votes are counted on boards of {_WIDEST:,} {noun.many} or fewer, got {len(board.theta):,}: choose "
            "some by filter(models=) (on the command line --models)"
        )
    order = rated[np.argsort(-board.theta[rated], kind="stable")][:_MOST_MODELS]
    identity = partial(Identity, audited.settings | {"top": sizes}, audited.digest, noun="battles")
    with open_run(identity, len(WAYS) + 2, "questions of changed votes", **audited.running) as run:
        tiers = audited.resampled.joint.tiers(options.level).reindex(board.models[order]).to_numpy(float)
        boards = ChangedBoards.of(board, run)
        borders = _borders(sizes, tiers, order)
        pairs, across = _pairs_to_swap(board, boards.inverse, order, borders)
        neighbours = pairs[: len(order) - 1]
        counts: dict[str, Float] = {}
        least: dict[str, Float] = {}
        changes = []
        for way in WAYS:
            moves = VoteMoves.of(board, way)
            counts[way], move, times = fewest_moves(boards, moves, pairs, f"fewest-{way}")
            least[f"{way}_at_least"] = surely_needed(board, boards.inverse, moves, neighbours)
            changes.append(_changes(moves, move, times, neighbours, board.models))
            run.advance(1)
        if options.voter is not None:
            battles, cell = audited.battles, audited.battles.compress(slice(None))[1]
            codes, _ = battles.codes(str(options.voter), "drop")
            count = None if battles.count is None else battles.count[codes >= 0]
            voters = VoterMoves.of(board, cluster_rows(codes[codes >= 0], cell[codes >= 0], count))
            counts["voters"] = fewest_moves(boards, voters, pairs, "fewest-voters")[0]
        run.advance(1)
        without, removed = without_each_model(boards, order)
        run.advance(1)
    above, below = neighbours.T
    columns = {name: _whole(fewest[: len(neighbours)]) for name, fewest in {**counts, **least}.items()}
    table = pd.DataFrame({
        "above": board.models[above], "below": board.models[below],
        "gap": audited.fit.scale.unit * (board.theta[above] - board.theta[below]), **columns, "without": without,
    })  # fmt: skip
    return FewestVotes(
        table=Table.of(table, "Fewest votes that swap neighbours", ("above", "below", "gap", *WAYS)),
        borders=_border_table(borders, pairs, across, counts, board.models), models=removed,
        changes=Table.of(pd.concat(changes, ignore_index=True), "Votes that are changed"),
        n_votes=int(audited.fit.n_battles.sum()) // 2, settings=audited.settings, competitor=noun,
    )  # fmt: skip


#: A border's name, the models above it, which are to be passed, and those below, which may pass them.
_Border = tuple[str, Int, Int]


def _borders(sizes: Sequence[int], tiers: Float, order: Int) -> list[_Border]:
    """Give the borders of tops and of tiers, of which ``tiers`` (R,) holds those of an ``order`` of models, or NaN."""
    borders = [(f"top {k}" if k > 1 else "#1", order[:k], order[k:]) for k in sizes if k < len(order)]
    placed = ~np.isnan(tiers)
    models, tier = order[placed], tiers[placed].astype(int)
    for k in np.flatnonzero(tier[1:] != tier[:-1]) + 1:
        borders.append((f"tiers {tier[k - 1]} and {tier[k]}", models[:k], models[k:]))
    return borders


def _pairs_to_swap(board: Board, inverse: Float, order: Int, borders: Sequence[_Border]) -> tuple[Int, list[Int]]:
    """Return pairs of models (T, 2) whose order is to change, and for each border which of them let a model in.

    Neighbours of the ``order`` (R,) come first, then for each border those pairs that the data tell apart least.
    """
    variance = np.diag(inverse)
    known = {pair: k for k, pair in enumerate(pairwise(order.tolist()))}
    across = []
    for _, over, under in borders:
        above, below = (x.reshape(-1) for x in np.meshgrid(over, under))
        error = np.sqrt(np.maximum(variance[above] + variance[below] - 2 * inverse[above, below], 1e-300))
        closest = np.argsort((board.theta[above] - board.theta[below]) / error, kind="stable")[:_ACROSS]
        pairs = [*zip(above[closest].tolist(), below[closest].tolist(), strict=True)]
        pairs.append((int(over[-1]), int(under[0])))
        across.append(np.unique([known.setdefault(pair, len(known)) for pair in pairs]))
    return np.array(list(known)), across


def _border_table(
    borders: Sequence[_Border], pairs: Int, across_each: list[Int], counts: Mapping[str, Float], names: pd.Index
) -> pd.DataFrame:
    """Return the fewest of all pairs across each border, and who comes in."""
    rows = []
    for (name, above, _), across in zip(borders, across_each, strict=True):
        row: dict[str, Any] = {"border": name, "top": len(above)}
        for kind, count in counts.items():
            best = across[np.argmin(np.nan_to_num(count[across], nan=np.inf))]
            row |= {kind: count[best], f"{kind}_for": names[pairs[best, 1]] if count[best] > 0 else ""}
        rows.append(row)
    table = pd.DataFrame(rows)
    return Table.of(
        table.assign(**{kind: _whole(table[kind].to_numpy()) for kind in counts}), "Fewest votes at borders"
    )


def _changes(moves: VoteMoves, move: Int, times: Float, pairs: Int, names: pd.Index) -> pd.DataFrame:
    """Return the votes that swap each of the ``pairs``: how many ``times`` each ``move`` is made (T, K)."""
    pair, k = np.nonzero(times[: len(pairs)])
    move = move[pair, k]
    return pd.DataFrame({
        "above": names[pairs[pair, 0]], "below": names[pairs[pair, 1]], "change": str(moves.way),
        "model_a": names[moves.first[move]], "model_b": names[moves.second[move]], "result": moves.target[move],
        "votes": times[pair, k].astype(np.int64),
    })  # fmt: skip


def _whole(values: Float) -> Any:
    return pd.array(values, dtype="Float64").astype("Int64")


def without_each_model(boards: ChangedBoards, order: Int) -> tuple[list[Any], pd.DataFrame]:
    """Find a model without which neighbours in ``order`` (R,) swap, or "", and return a row for each model removed.

    The columns are ``removed``, ``first``, ``swapped``, ``moved`` and ``rank_change``, see `FewestVotes.models`. All
    but the first are missing where the votes of the others alone do not rate them all.
    """
    board, names, r = boards.board, boards.board.models, len(order)
    columns: dict[str, list[Any]] = {"removed": [], "first": [], "swapped": [], "moved": [], "rank_change": []}
    if r < 3:
        return [""] * (r - 1), pd.DataFrame(columns)
    n, wins = board.rated_tables()
    every = np.arange(len(n))
    entries = VoteChanges(np.repeat(order[:, None], len(n), 1), np.tile(every, (r, 1)), -n[order], -wins[order])
    two_others = np.array([order[order != model][:2] for model in order])
    starts = np.tile(board.theta, (r, 1))
    thetas, _, all_converged = boards.refit(entries, starts, two_others, np.arange(r), "removed-models")
    gap = thetas[:, order[:-1]] - thetas[:, order[1:]]
    of_removed = (order[:-1] == order[:, None]) | (order[1:] == order[:, None])
    gap = np.where(of_removed | ~all_converged[:, None], np.inf, gap)
    least = gap.argmin(0)
    without = [names[order[k]] if gap[k, pair] < 0 else "" for pair, k in enumerate(least.tolist())]
    rows = []
    for model, theta, converged in zip(order, thetas, all_converged, strict=True):
        row: dict[str, Any] = dict.fromkeys(columns) | {"removed": names[model]}
        if converged:
            others = order[order != model]
            theta = theta[others]
            change = np.argsort(np.argsort(-theta, kind="stable"), kind="stable") - np.arange(r - 1)
            most = int(np.abs(change).argmax())
            row |= {"first": names[others[theta.argmax()]], "swapped": np.triu(theta[:, None] < theta, 1).sum()}
            row |= {"moved": names[others[most]] if change[most] else "", "rank_change": change[most]}
        rows.append(row)
    table = pd.DataFrame(rows).astype({"swapped": "Int64", "rank_change": "Int64"})
    return without, Table.of(table, "The order of the others without a model")
