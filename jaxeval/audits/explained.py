"""What removes misfit, and what misfit does to the errors of ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.audits.pair_votes import PairVotes, pair_votes, responses
from jaxeval.data.battles import Battles
from jaxeval.data.features import design
from jaxeval.ratings.boards import Board, fit_boards
from jaxeval.ratings.contextual_boards import ContextualBoard, Likelihood, fit_slices
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.options import BootstrapOptions, FitOptions, Ties
from jaxeval.ratings.sandwich import score_squares
from jaxeval.ratings.slices import Slices, make_slices, whole_board
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.wording import counted

_TIE_MODELS: dict[str, Ties] = {"Davidson's model of ties": "davidson", "Rao and Kupper's model of ties": "rao_kupper"}


class Explained(NamedTuple):
    """What other boards leave of the misfit."""

    table: pd.DataFrame
    no_slices: str  # why there are no slices, in words


def n_free(fitted: Likelihood) -> int:
    """Parameters that a board fits: strengths but one, coefficients, and that of ties."""
    own = int(fitted.free.sum()) if isinstance(fitted, ContextualBoard) else 0
    return int(fitted.board.active.sum()) - 1 + own


def explained(
    battles: Battles, plain: PairVotes, board: Board, options: FitOptions, by: str | Sequence[str] | None
) -> Explained:
    """Pearson's X2 of one number per model, and of what else might fit.

    That is a board with the features of ``options``, boards with a model of ties, and boards of each slice of ``by`` on
    its own. ``removed`` is the share of the first row's excess of X2 over its degrees of freedom that is gone in a row.
    Slices keep all of it if pairs are as odd in each slice, and have none of it if mixing slices caused it.
    Overlapping slices, in which votes would count twice, have no row.

    Raises:
        DataError: as in `bootstrap`.
    """
    found = [
        (f"one number per {battles.competitor.one}", float(plain.pearson.sum()), int(plain.met.sum()) - n_free(board))
    ]
    others = {}
    if options.features:
        others["control for " + ", ".join(design(battles, options.features, options.normalize).names)] = options
    if 0 < plain.ties.sum() < plain.votes.sum() and board.cells.hard:
        others |= {name: replace(options, features=(), ties=ties) for name, ties in _TIE_MODELS.items()}
    for name, own in others.items():
        covariates = design(battles, own.features, own.normalize)
        (fitted,) = fit_slices([(battles.models, whole_board(battles, covariates, own)[0])], covariates, own)
        votes = pair_votes(fitted, responses(fitted).expected)
        found.append((name, float(votes.pearson.sum()), int(votes.met.sum()) - n_free(fitted)))
    no_slices = ""
    if by is None:
        no_slices = "no column of slices was named"
    else:
        sliced = BootstrapOptions(by=by).checked(battles)
        slices = make_slices(battles, design(battles, (), True), sliced)
        if slices.overlapping:
            no_slices = f"the slices by {', '.join(slices.overlapping)} overlap: {slices.told}"
        else:
            found.append(_of_slices(slices))
    table = pd.DataFrame(found, columns=["board", "statistic", "dof"])
    table["excess"] = table["statistic"] - table["dof"]
    first = table["excess"].iloc[0]
    table["removed"] = 1 - table["excess"] / first if first > 2 * np.sqrt(2 * table["dof"].iloc[0]) else np.nan
    return Explained(table, no_slices)


def _of_slices(slices: Slices) -> tuple[str, float, int]:
    boards = fit_boards(slices.boards, FitOptions())
    each = [pair_votes(own, responses(own).expected) for own in boards]
    dof = sum(int(votes.met.sum()) - n_free(own) for votes, own in zip(each, boards, strict=True))
    statistic = float(sum(votes.pearson.sum() for votes in each))
    return f"a rating for each of {counted(len(boards), 'slice')} by {', '.join(slices.by)}", statistic, dof


def rank_errors(models: pd.Index, board: Board, votes: PairVotes, drawn: VoteGroups) -> pd.DataFrame:
    """A row per pair of neighbours in the ranking: their gap (Elo), and its standard error in three ways.

    ``model_error`` takes the fit for right; ``sandwich_error`` does not. Both are for pairs that met as often as they
    did. ``opponents_error`` takes the oddness of pairs as drawn anew, as it would be with other opponents.
    """
    elo = ELO_PER_UNIT[board.link]
    inverse, rated = board.inverse_information(), np.flatnonzero(board.active)
    order = rated[np.argsort(-board.theta[rated], kind="stable")]
    above, below = order[:-1], order[1:]
    residual = np.where(votes.met, votes.points - votes.expected, 0.0)
    odd = np.zeros((len(board.theta),) * 2)
    odd[votes.first, votes.second] = odd[votes.second, votes.first] = residual**2
    n_pairs = int(votes.met.sum())
    middles = {
        "model_error": None,
        "sandwich_error": score_squares(board.scores(), board.cells.count, drawn),
        "opponents_error": (np.diag(odd.sum(1)) - odd) * n_pairs / max(n_pairs - len(rated) + 1, 1),
    }

    def error(middle: Float | None) -> Float:
        covariance = inverse if middle is None else inverse @ middle @ inverse
        own = covariance.diagonal()
        return np.asarray(np.sqrt(np.maximum(own[above] + own[below] - 2 * covariance[above, below], 0)) * elo)

    return pd.DataFrame(
        {
            "above": models[above],
            "below": models[below],
            "gap": (board.theta[above] - board.theta[below]) * elo,
            **{name: error(middle) for name, middle in middles.items()},
        }
    )
