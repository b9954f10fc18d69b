"""How few votes decide: the fewest dropped, flipped or added votes, voters, or models, that change a board's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.audits.audited import AuditArguments, Audited, AuditOptions
from jaxeval.audits.changed_boards import ChangedBoards, Entries
from jaxeval.audits.fewest_bounds import Change, surely_needed
from jaxeval.audits.fewest_moves import FewestMoves, fewest_moves
from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import NotAnsweredError, PartResult
from jaxeval.audits.vote_moves import Moves, VoteMoves, VoterMoves
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.execution.runs import Identity, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.boards import Board
from jaxeval.ratings.vote_groups import cluster_rows
from jaxeval.statistics.comparison import check_square
from jaxeval.tables.shown import View, settings_line
from jaxeval.tables.table import Table
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PART = "fewest_votes"
#: Models at the top whose order is looked into: more take long, and are no board to read.
_MOST_MODELS = 500
#: Pairs across a border that are tried, those that the data tell apart least.
_ACROSS = 4
#: A result that so small a share of the votes decides is serious, or asks for caution.
_SERIOUS, _CAUTION = 0.001, 0.01
_FEW_VOTERS = 3


@dataclass(frozen=True, eq=False, repr=False)
class FewestVotes(PartResult):
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
    settings: Mapping[str, Any] = field(repr=False)

    def _shown(self) -> View:
        votes = f"{counted(len(self.table), 'pair')} of neighbours, {counted(self.n_votes, 'vote')}"
        return View(f"FewestVotes: {votes}", self.table, settings_line({}))

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The neighbours, the borders, the models removed, and the votes that are changed."""
        return {"": self.table, "borders": self.borders, "models": self.models, "changes": self.changes}

    def findings(self) -> list[Finding]:
        """How few votes change #1 and other places, and what any one model decides."""
        return [*self._of_first(), *self._of_neighbours(), *self._of_borders(), *self._of_models()]

    def figures(self) -> dict[str, Figure]:
        """The fewest dropped, flipped and added votes of all neighbours."""
        from jaxeval.plots.audits import plot_fewest_votes

        return {"": plot_fewest_votes(self.table)}

    def _severity(self, n: float) -> Severity:
        share = n / self.n_votes
        return Severity.SERIOUS if share <= _SERIOUS else Severity.CAUTION if share <= _CAUTION else Severity.REASSURING

    def _of_first(self) -> list[Finding]:
        row = self.borders.iloc[0]
        first = self.table["above"].iloc[0]
        ways = [name for name in ("dropped", "flipped", "added") if not pd.isna(row[name])]
        if not ways:
            text = f"No number of dropped, flipped or added votes was found that takes #1 from {first}."
            return [Finding(_PART, Severity.REASSURING, visible_line(text))]
        n, others = int(row[ways[0]]), [f"{counted(row[way], f'{way} vote')} ({row[f'{way}_for']})" for way in ways[1:]]
        votes = f"{counted(n, f'{ways[0]} vote')} of {self.n_votes:,} ({n / self.n_votes:.2%})"
        text = f"{votes} put {row[f'{ways[0]}_for']} ahead of #1, {first}"
        also = f"; so do {' or '.join(others)}" if others else ""
        severity = self._severity(min(int(row[way]) for way in ways))
        found = [Finding(_PART, severity, visible_line(f"{text}{also}."))]
        if "voters" in row and not pd.isna(row["voters"]):
            text = f"Without {counted(row['voters'], 'voter')}, {row['voters_for']} is ahead of #1, {first}."
            severity = Severity.SERIOUS if row["voters"] <= _FEW_VOTERS else Severity.NOTE
            found.append(Finding(_PART, severity, visible_line(text)))
        return found

    def _of_neighbours(self) -> list[Finding]:
        known = self.table.dropna(subset=["dropped"])
        if not len(known):
            return []
        few = int((known["dropped"] <= _SERIOUS * self.n_votes).sum())
        least = known.loc[known["dropped"].astype(float).idxmin()]
        pair = f"{visible_line(least['below'])} passes {visible_line(least['above'])}"
        swap = f"{few:,} of {counted(len(self.table), 'pair')} of neighbours swap"
        votes = counted(least["dropped"], "vote is", "votes are")
        text = f"{swap} when {_SERIOUS:.1%} of the votes or fewer are dropped; {pair} when {votes}."
        severity = Severity.CAUTION if 2 * few > len(self.table) else Severity.NOTE
        return [Finding(_PART, severity if few else Severity.REASSURING, text)]

    def _of_borders(self) -> list[Finding]:
        others = self.borders[self.borders["top"] > 1].dropna(subset=["dropped"])
        if not len(others):
            return []
        row = others.loc[others["dropped"].astype(float).idxmin()]
        votes = f"{counted(row['dropped'], 'dropped vote')} ({row['dropped'] / self.n_votes:.2%})"
        name = visible_line(row["dropped_for"])
        text = f"The weakest border below #1 is that of {row['border']}: {votes} let {name} in."
        return [Finding(_PART, min(self._severity(row["dropped"]), Severity.CAUTION), text)]

    def _of_models(self) -> list[Finding]:
        known = self.models.dropna(subset=["swapped"])
        if not len(known):
            return []
        other = known[
            (known["first"] != self.table["above"].iloc[0]) & (known["removed"] != self.table["above"].iloc[0])
        ]
        swaps = int((known["swapped"] > 0).sum())
        text = f"Each model removed by itself: others change their order in {swaps:,} of {counted(len(known), 'case')}"
        if len(other):
            names = f"{visible_line(other['removed'].iloc[0])}, {visible_line(other['first'].iloc[0])} is #1"
            return [Finding(_PART, Severity.CAUTION, f"{text}; without {names}.")]
        return [Finding(_PART, Severity.NOTE if swaps else Severity.REASSURING, f"{text}; #1 stays.")]


@spelled_out(AuditOptions)
def fewest_votes(
    battles: Battles | Any, *, top: Sequence[int] = (1, 3, 5, 10), **options: Unpack[AuditArguments]
) -> FewestVotes:
    """How few votes decide: the fewest dropped, flipped or added votes that swap neighbours and change the top.

    Votes are chosen by their influence on the difference of two models, looked at anew after each refit, and every
    number is that of an exact refit (as of arXiv:2508.11847, which drops votes). To flip a vote is to swap its winner:
    ties are dropped or added only. Votes are added between any two rated models; an added tie never does more than a
    win. What would leave a model without a finite rating does not count.

    Args:
        battles: `Battles`, or a table with the standard columns.
        top: sizes k of the tops whose border is looked at; k = 1 is #1. Tiers come from the board's joint draws.
        voter: column that names who voted: then whole voters are dropped, too.
        cluster, level, n_resamples, seed: of the draws that make the tiers.
        by, time, lengths, families, ties, features: as in `audit`. A tie model and covariates are refused.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Raises:
        ValueError: fewer than two models have comparable ratings, there is a tie model or are covariates, or an option
            is none.
        DataError: a column is not there.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.fewest_votes(jaxeval.simulate_battles(500, 3, seed=0), top=[1], progress=False)
        >>> found.table[["above", "below", "dropped"]].to_numpy().tolist()
        [['model-1', 'model-2', 76], ['model-2', 'model-3', 27]]
    """
    return of_audited(Audited.of(battles, options), top)


def of_audited(audited: Audited, top: Sequence[int] = (1, 3, 5, 10)) -> FewestVotes:
    """`fewest_votes` of what is audited."""
    sizes = sorted({checked_integer("top", k, 1) for k in top} | {1})
    options = audited.options
    if options.ties != "half" or options.features:
        what = f"ties={options.ties!r}" if options.ties != "half" else "covariates"
        raise NotAnsweredError(
            f"fewest votes are counted for boards of plain votes, got {what}: leave it out; a tie then is half a win"
        )
    board = audited.fit._board
    rated = np.flatnonzero(board.active)
    if len(rated) < 2:
        raise NotAnsweredError("fewer than two models have comparable ratings, so that there is no order to change")
    check_square(len(board.theta), 2_000, "the influence of votes on all differences", "a board of fewer models")
    order = rated[np.argsort(-board.theta[rated], kind="stable")][:_MOST_MODELS]
    tiers = audited.resampled.joint.tiers(options.level).reindex(board.models[order]).to_numpy(float)
    kinds = ["dropped", "flipped", "added", *(["voters"] if options.voter is not None else [])]
    identity = partial(Identity, audited.settings | {"top": sizes}, audited.digest, noun="battles")
    with open_run(identity, len(kinds) + 1, "questions of changed votes", **audited.running) as run:
        boards = ChangedBoards.of(board, run)
        borders = _borders(sizes, tiers, order)
        asked = _Asked.of(board, boards.inverse, order, borders)
        counts: dict[str, Float] = {}
        least: dict[str, Float] = {}
        changes = []
        for kind in kinds:
            moves: Moves = _voter_moves(audited) if kind == "voters" else getattr(VoteMoves, kind)(board)
            found = fewest_moves(boards, moves, asked.pairs, f"{_PART}-{kind}")
            counts[kind] = found.number
            if isinstance(moves, VoteMoves):
                changes.append(_changes(moves, found, asked.pairs[: len(order) - 1], board.models).assign(change=kind))
                least[kind] = surely_needed(board, boards.inverse, moves, Change(kind), asked.pairs[: len(order) - 1])
            run.advance(1)
        without, removed = _without_models(boards, order)
        run.advance(1)
    names = board.models
    n_pairs = len(order) - 1
    own = {"above": names[order[:-1]], "below": names[order[1:]]}
    unit = audited.fit.scale.unit
    gap = unit * (board.theta[order[:-1]] - board.theta[order[1:]])
    columns: dict[str, Any] = {kind: _whole(counts[kind][:n_pairs]) for kind in kinds}
    columns |= {f"{kind}_at_least": _whole(found) for kind, found in least.items()}
    table = pd.DataFrame({**own, "gap": gap, **columns, "without": without})
    return FewestVotes(
        table=Table.of(
            table, "Fewest votes that swap neighbours", ("above", "below", "gap", "dropped", "flipped", "added")
        ),
        borders=_border_table(borders, asked, counts, names),
        models=removed,
        changes=Table.of(pd.concat(changes, ignore_index=True), "Votes that are changed"),
        n_votes=int(audited.fit.n_battles.sum()) // 2,
        settings=audited.settings,
    )


class _Border(NamedTuple):
    """A border on the board."""

    name: str
    above: Int  # the models that are to be passed
    below: Int  # those that may pass them


def _borders(sizes: Sequence[int], tiers: Float, order: Int) -> list[_Border]:
    """The borders of tops and of tiers, of which ``tiers`` (R,) holds those of an ``order`` of models, or NaN."""
    found = [_Border(f"top {k}" if k > 1 else "#1", order[:k], order[k:]) for k in sizes if k < len(order)]
    placed = ~np.isnan(tiers)
    models, own = order[placed], tiers[placed].astype(int)
    for k in np.flatnonzero(own[1:] != own[:-1]) + 1:
        found.append(_Border(f"tiers {own[k - 1]} and {own[k]}", models[:k], models[k:]))
    return found


class _Asked(NamedTuple):
    """Pairs of models whose order is to change: neighbours first, then those across borders."""

    pairs: Int  # (T, 2)
    across: list[Int]  # for each border, which of them let a model in

    @classmethod
    def of(cls, board: Board, inverse: Float, order: Int, borders: Sequence[_Border]) -> _Asked:
        """The neighbours of an ``order`` (R,), and for each border those pairs that the data tell apart least."""
        variance = np.diag(inverse)
        known = {pair: k for k, pair in enumerate(pairwise(order.tolist()))}
        across = []
        for border in borders:
            above, below = (x.reshape(-1) for x in np.meshgrid(border.above, border.below))
            error = np.sqrt(np.maximum(variance[above] + variance[below] - 2 * inverse[above, below], 1e-300))
            closest = np.argsort((board.theta[above] - board.theta[below]) / error, kind="stable")[:_ACROSS]
            pairs = [*zip(above[closest].tolist(), below[closest].tolist(), strict=True)]
            pairs.append((int(border.above[-1]), int(border.below[0])))
            across.append(np.unique([known.setdefault(pair, len(known)) for pair in pairs]))
        return cls(np.array(list(known)), across)


def _border_table(
    borders: Sequence[_Border], asked: _Asked, counts: Mapping[str, Float], names: pd.Index
) -> pd.DataFrame:
    """The fewest of all pairs across each border, and who comes in."""
    rows = []
    for border, across in zip(borders, asked.across, strict=True):
        row: dict[str, Any] = {"border": border.name, "top": len(border.above)}
        for kind, count in counts.items():
            best = across[np.argmin(np.nan_to_num(count[across], nan=np.inf))]
            row |= {kind: count[best], f"{kind}_for": names[asked.pairs[best, 1]] if count[best] > 0 else ""}
        rows.append(row)
    table = pd.DataFrame(rows)
    return Table.of(
        table.assign(**{kind: _whole(table[kind].to_numpy()) for kind in counts}), "Fewest votes at borders"
    )


def _changes(moves: VoteMoves, found: FewestMoves, pairs: Int, names: pd.Index) -> pd.DataFrame:
    """The votes that swap each of the ``pairs``."""
    pair, k = np.nonzero(found.times[: len(pairs)])
    move = found.move[pair, k]
    return pd.DataFrame({
        "above": names[pairs[pair, 0]],
        "below": names[pairs[pair, 1]],
        "change": "",
        "model_a": names[moves.first[move]],
        "model_b": names[moves.second[move]],
        "result": moves.target[move],
        "votes": found.times[pair, k].astype(np.int64),
    })  # fmt: skip


def _voter_moves(audited: Audited) -> VoterMoves:
    battles = audited.battles
    cell = battles.compress(slice(None))[1]
    codes, _ = battles.codes(str(audited.options.voter))
    return VoterMoves.of(audited.fit._board, cluster_rows(codes, cell, battles.count))


def _without_models(boards: ChangedBoards, order: Int) -> tuple[list[Any], pd.DataFrame]:
    """For neighbours in the ``order`` a model without which they swap, or ""; and a row for each model removed."""
    board = boards.board
    n, wins = board.rated_tables()
    m = len(n)
    rest = [order[order != model][:2] for model in order]
    if len(order) < 3:
        return [""] * (len(order) - 1), pd.DataFrame(
            {"removed": [], "first": [], "swapped": [], "moved": [], "rank_change": []}
        )
    entries = Entries(
        np.repeat(order, m).reshape(-1, m), np.tile(np.arange(m), (len(order), 1)), -n[order], -wins[order]
    )
    found = boards.refit(
        entries, np.tile(board.theta, (len(order), 1)), np.array(rest), np.arange(len(order)), f"{_PART}-models"
    )
    theta, names = found.theta, board.models
    ahead = theta[:, order[:-1]] - theta[:, order[1:]]
    touched = (order[:-1] == order[:, None]) | (order[1:] == order[:, None])
    ahead = np.where(touched | ~found.converged[:, None], np.inf, ahead)
    least = ahead.argmin(0)
    without = [names[order[k]] if ahead[k, pair] < 0 else "" for pair, k in enumerate(least.tolist())]
    rows = []
    for k, model in enumerate(order):
        others = order[order != model]
        row: dict[str, Any] = {
            "removed": names[model],
            "first": None,
            "swapped": np.nan,
            "moved": None,
            "rank_change": np.nan,
        }
        if found.converged[k]:
            own = theta[k, others]
            rank = np.argsort(np.argsort(-own, kind="stable"), kind="stable")
            change = rank - np.arange(len(others))
            most = int(np.abs(change).argmax())
            swapped = int(np.triu(own[:, None] < own, 1).sum())
            row |= {"first": names[others[own.argmax()]], "swapped": swapped}
            row |= {"moved": names[others[most]] if change[most] else "", "rank_change": change[most]}
        rows.append(row)
    table = pd.DataFrame(rows)
    whole = {name: _whole(table[name].to_numpy(float)) for name in ("swapped", "rank_change")}
    return without, Table.of(table.assign(**whole), "The order of the others without a model")


def _whole(values: Float) -> Any:
    """Whole numbers, missing where NaN."""
    return pd.array(values, dtype="Float64").astype("Int64")
