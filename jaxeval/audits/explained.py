"""What takes misfit away, and what it does to the errors of ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.audits.pair_votes import PairVotes, pair_votes, responses
from jaxeval.data.battles import Battles
from jaxeval.data.features import design
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board, fit_boards
from jaxeval.ratings.contextual_boards import ContextualBoard, Likelihood, fit_slices
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.sandwich import score_squares
from jaxeval.ratings.slices import make_slices, whole_board
from jaxeval.ratings.vote_groups import VoteGroups

_TIE_MODELS = ("davidson", "rao_kupper")


def n_free(fitted: Likelihood) -> int:
    """Parameters that a board fits: strengths but one, coefficients, and that of ties."""
    own = int(fitted.free.sum()) if isinstance(fitted, ContextualBoard) else 0
    return int(fitted.board.active.sum()) - 1 + own


def explained(
    battles: Battles, plain: PairVotes, board: Board, options: FitOptions, by: str | Sequence[str] | None
) -> pd.DataFrame:
    """Pearson's X2 of one number per model, and of what else might fit.

    That is a board with the features of ``options``, boards with a model of ties, and boards of each slice of ``by`` on
    its own. ``removed`` is the share of the first row's excess of X2 over its degrees of freedom that a row has not:
    slices have the excess of all votes, if pairs are as odd in each, and none, if mixing slices made it.

    Raises:
        DataError: the slices overlap, so that votes would count twice; or as in `fit_bradley_terry`.
    """
    found = [("one number per model", float(plain.pearson.sum()), int(plain.met.sum()) - n_free(board))]
    others = {}
    if options.features:
        others["with " + ", ".join(design(battles, options.features, options.normalize).names)] = options
    if 0 < plain.ties.sum() < plain.votes.sum() and board.cells.hard:
        others |= {f"ties by {name}": replace(options, features=(), ties=name) for name in _TIE_MODELS}
    for name, own in others.items():
        covariates = design(battles, own.features, own.normalize)
        (fitted,) = fit_slices([(battles.models, whole_board(battles, covariates, own)[0])], covariates, own)
        votes = pair_votes(fitted, responses(fitted).expected)
        found.append((name, float(votes.pearson.sum()), int(votes.met.sum()) - n_free(fitted)))
    if by is not None:
        sliced = BootstrapOptions(by=by).checked(battles)
        slices = make_slices(battles, design(battles, (), True), sliced)
        if slices.overlapping:
            raise DataError(
                f"the slices by {', '.join(slices.overlapping)} overlap: {slices.told}; misfit is compared between "
                "slices that have no vote in common"
            )
        boards = fit_boards(slices.boards, FitOptions())
        each = [pair_votes(own, responses(own).expected) for own in boards]
        statistic = float(sum(votes.pearson.sum() for votes in each))
        dof = sum(int(votes.met.sum()) - n_free(own) for votes, own in zip(each, boards, strict=True))
        found.append((f"{len(boards):,} slices by {', '.join(slices.by)}", statistic, dof))
    table = pd.DataFrame(found, columns=["board", "statistic", "dof"])
    table["excess"] = table["statistic"] - table["dof"]
    first = table["excess"].iloc[0]
    table["removed"] = 1 - table["excess"] / first if first > 2 * np.sqrt(2 * table["dof"].iloc[0]) else np.nan
    return table


def rank_errors(models: pd.Index, board: Board, votes: PairVotes, drawn: VoteGroups) -> pd.DataFrame:
    """A row per pair of neighbours in the ranking: their gap (Elo), and its standard error in three ways.

    ``model_error`` takes the fit for right, ``sandwich_error`` does not, for the pairs that met as often as they did.
    ``opponents_error`` takes the oddness of pairs as drawn anew, as for other opponents.
    """
    elo = ELO_PER_UNIT[board.link]
    inverse, rated = board.inverse_information(), np.flatnonzero(board.active)
    order = rated[np.argsort(-board.theta[rated], kind="stable")]
    above, below = order[:-1], order[1:]
    residual = np.where(votes.met, votes.points - votes.expected, 0.0)
    slopes = np.zeros((len(residual), len(board.theta)))
    slopes[np.arange(len(residual)), votes.first], slopes[np.arange(len(residual)), votes.second] = residual, -residual
    n_pairs = int(votes.met.sum())
    middles = {
        "model_error": None,
        "sandwich_error": score_squares(board.scores(), board.cells.count, drawn),
        "opponents_error": slopes.T @ slopes * n_pairs / max(n_pairs - len(rated) + 1, 1),
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
