"""How few votes decide: the fewest dropped, flipped or added votes, voters, or models, that change a board's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.audits.audited import AuditArguments, Audited, AuditOptions
from jaxeval.audits.changed_boards import ChangedBoards
from jaxeval.audits.fewest_bounds import surely_needed
from jaxeval.audits.fewest_moves import FewestMoves, fewest_moves
from jaxeval.audits.fewest_result import FewestVotes
from jaxeval.audits.parts import NotAnsweredError, check_plain
from jaxeval.audits.removed_models import without_each_model
from jaxeval.audits.vote_moves import VoteMoves, VoterMoves, Way
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.execution.runs import Identity, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.boards import Board
from jaxeval.ratings.vote_groups import cluster_rows
from jaxeval.tables.table import Table

#: Models at the top whose order is looked into: more would take long, and nobody reads so long a board.
_MOST_MODELS = 500
#: Models of a board, each refit of which takes tables of all pairs.
_WIDEST = 2_000
#: Pairs across a border that are tried, those that the data tell apart least.
_ACROSS = 4


@spelled_out(AuditOptions)
def fewest_votes(
    battles: Battles | Any, *, top: Sequence[int] = (1, 3, 5, 10), **options: Unpack[AuditArguments]
) -> FewestVotes:
    """How few votes decide: the fewest dropped, flipped or added votes that swap neighbours and change the top.

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
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

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
    """`fewest_votes` of what is audited."""
    sizes = sorted({checked_integer("top", k, 1) for k in top} | {1})
    options, own = audited.options, audited.battles.competitor
    check_plain(audited)
    board = audited.fit._board
    rated = np.flatnonzero(board.active)
    if not audited.fit.converged:
        raise NotAnsweredError("the fit did not converge, so that no refit says which votes decide")
    if len(rated) < 2:
        raise NotAnsweredError(
            f"fewer than two {own.many} have comparable ratings, so that there is no order to change"
        )
    if len(board.theta) > _WIDEST:
        raise NotAnsweredError(
            f"fewest votes are counted on boards of {_WIDEST:,} {own.many} or fewer, got {len(board.theta):,}: choose "
            "some by filter(models=) (on the command line --models)"
        )
    order = rated[np.argsort(-board.theta[rated], kind="stable")][:_MOST_MODELS]
    identity = partial(Identity, audited.settings | {"top": sizes}, audited.digest, noun="battles")
    with open_run(identity, len(Way) + 2, "questions of changed votes", **audited.running) as run:
        tiers = audited.resampled.joint.tiers(options.level).reindex(board.models[order]).to_numpy(float)
        boards = ChangedBoards.of(board, run)
        borders = _borders(sizes, tiers, order)
        asked = _Asked.of(board, boards.inverse, order, borders)
        neighbours = asked.pairs[: len(order) - 1]
        counts: dict[str, Float] = {}
        least: dict[str, Float] = {}
        changes = []
        for way in Way:
            moves = VoteMoves.of(board, way)
            found = fewest_moves(boards, moves, asked.pairs, f"fewest-{way}")
            counts[way] = found.number
            least[f"{way}_at_least"] = surely_needed(board, boards.inverse, moves, neighbours)
            changes.append(_changes(moves, found, neighbours, board.models))
            run.advance(1)
        if options.voter is not None:
            counts["voters"] = fewest_moves(boards, _voter_moves(audited), asked.pairs, "fewest-voters").number
        run.advance(1)
        without, removed = without_each_model(boards, order)
        run.advance(1)
    above, below = neighbours.T
    columns = {name: _whole(found[: len(neighbours)]) for name, found in {**counts, **least}.items()}
    table = pd.DataFrame({
        "above": board.models[above],
        "below": board.models[below],
        "gap": audited.fit.scale.unit * (board.theta[above] - board.theta[below]),
        **columns,
        "without": without,
    })  # fmt: skip
    return FewestVotes(
        table=Table.of(table, "Fewest votes that swap neighbours", ("above", "below", "gap", *Way)),
        borders=_border_table(borders, asked, counts, board.models),
        models=removed,
        changes=Table.of(pd.concat(changes, ignore_index=True), "Votes that are changed"),
        n_votes=int(audited.fit.n_battles.sum()) // 2,
        settings=audited.settings,
        competitor=own,
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
        "change": str(moves.way),
        "model_a": names[moves.first[move]],
        "model_b": names[moves.second[move]],
        "result": moves.target[move],
        "votes": found.times[pair, k].astype(np.int64),
    })  # fmt: skip


def _voter_moves(audited: Audited) -> VoterMoves:
    battles = audited.battles
    cell = battles.compress(slice(None))[1]
    codes, _ = battles.codes(str(audited.options.voter), "drop")
    own = codes >= 0
    count = None if battles.count is None else battles.count[own]
    return VoterMoves.of(audited.fit._board, cluster_rows(codes[own], cell[own], count))


def _whole(values: Float) -> Any:
    """Whole numbers, missing where NaN."""
    return pd.array(values, dtype="Float64").astype("Int64")
