"""Plackett-Luce strengths of ranked items by (regularised) maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from jaxeval.data.features import design
from jaxeval.data.rankings import ITEM, RankingCells, Rankings, as_rankings
from jaxeval.data.report import DataReport
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.gauge import Gauge
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.ranking_boards import RankingBoard, fit_ranking_board
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.wording import MODEL, counted

#: Options of a fit that are about battles, with the value that stands for none.
_OF_BATTLES = {"features": (), "ties": "half", "link": "logit", "reweight": False, "penalty": "none"}


@dataclass(frozen=True, eq=False, repr=False)
class PlackettLuceFit(BradleyTerryFit):
    """Fitted strengths of ranked items: a `BradleyTerryFit` of rankings in place of battles.

    ``strengths`` are log-strengths theta of mean zero, and ``ratings`` base + (400 / ln 10) theta. The first of two
    items is ranked above the second with probability 1 / (1 + exp(theta_2 - theta_1)), which ``win_probability`` holds.
    ``n_battles`` counts the rankings of an item.

    An item takes a point off every item that it is ranked above, and half a point off those that it ties with. So an
    item that never stands below the main group, nor ties with it, is "undefeated", and its rating is +inf. It is
    "winless" (-inf) if it never stands above the group. The rating is NaN if no chain of rankings compares the item.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> orders = ["a > b > c", "b > a > c", "a > c > b", "c > a", "b > c"]
        >>> fit = jaxeval.fit_plackett_luce(pd.DataFrame({"ranking": orders}))
        >>> fit.ratings.round().tolist()
        [1087.0, 1017.0, 896.0]
    """

    def _how_many(self) -> str:
        items = ITEM if self.competitor == MODEL else self.competitor
        return f"{counted(self.report.n_battles, 'ranking')} of {items.counted(len(self.ratings))}"

    @property
    def _rankings(self) -> RankingBoard:
        fitted = self._likelihood
        assert isinstance(fitted, RankingBoard)
        return fitted

    @property
    def _in_one_cluster(self) -> pd.Index:
        """Rated items with several rankings that all lie in one cluster, where there are several clusters."""
        rows, places = self._drawn.clusters, self._rankings.cells.places
        if rows is None or len(rows.size) == 1:
            return self.ratings.index[:0]
        found = places.of(rows.cell)
        n_clusters = pd.Series(rows.cluster[found.ranking]).groupby(found.item).nunique()
        one = n_clusters.reindex(range(len(self.ratings))).to_numpy() == 1
        return self.ratings.index[one & (self.n_battles.to_numpy() > 1) & self._board.active]


def fit_plackett_luce(
    rankings: Rankings | Any,
    ridge: float = 0.0,
    *,
    gauge: Gauge = "mean",
    base: float = 1000.0,
    cluster: str | None = None,
    strata: str | None = None,
) -> PlackettLuceFit:
    """Plackett-Luce strengths by maximum likelihood.

    A ranking is a row of choices. The best item is chosen out of all of its items, the second best out of those that
    are left, and so on. Item i is chosen out of a set A with probability exp(theta_i) / sum over j in A of exp(theta_j)
    (Luce 1959; Plackett 1975, DOI 10.2307/2346567; Hunter 2004, DOI 10.1214/aos/1079120141). Maximises the weighted
    log-likelihood of all rankings less ridge ||theta||^2.

    A tie counts as the mean of its orders: the mean of their log-likelihoods. Two items that tie at the end are half a
    win each, as a tie of two models is in `fit_bradley_terry`. The mean is exact, over the sets of items that may be
    left in any order. If more than ten items tie, there are too many such sets, and `Rankings` refuses the ranking.

    Rankings of two items give the strengths of `fit_bradley_terry`. Do not break longer rankings into pairs for it. A
    ranking of K items makes K (K - 1) / 2 battles, which are not independent: errors and intervals that take them as
    independent are wrong. For rankings of five items they were too small by a quarter in simulations. The strengths
    from pairs differ, too, and are less exact.

    ``jaxeval.bootstrap(rankings, ...)`` resamples rankings, and ``jaxeval.leaderboard(rankings, ...)`` makes a table of
    them, with slices, clusters, strata, checkpoints and all else that these functions have for battles.

    Args:
        rankings: `Rankings`, or a table of the standard columns, see `Rankings.from_pandas`.
        ridge: >= 0, coefficient of the squared norm. With 0, items that the rankings cannot place get infinite or NaN
            ratings and are named in ``warnings``.
        gauge: of the ratings: "mean", "votes" (mean weighted by rankings), or (item, rating) to hold an item at one.
        base: the mean rating of the first two gauges.
        cluster: column of the clusters (judges, prompts) that ``standard_errors`` and ``covariance`` take as
            independent, in place of rankings; the ratings do not change.
        strata: column of strata, each with a fixed number of rankings, or clusters.

    Raises:
        ValueError: a negative ridge, or an impossible gauge.
        DataError: ``rankings`` is a table that cannot be read; ``cluster`` or ``strata`` names no column, or one with
            missing values, or one that differs within a ranking.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> orders = ["a > b > c", "b > a > c", "a > c > b", "c > a", "b > c"]
        >>> rankings = jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": orders}))
        >>> fit = jaxeval.fit_plackett_luce(rankings)
        >>> fit.strengths.round(2).to_dict()
        {'a': 0.5, 'b': 0.1, 'c': -0.6}
        >>> fit.standard_errors.round().tolist()
        [110.0, 110.0, 92.0]
    """
    rows = as_rankings(rankings).rows
    options = FitOptions(ridge=ridge, gauge=gauge, base=base, cluster=cluster, strata=strata).checked(rows)
    cells, drawn = whole_board(rows, design(rows, (), True), options)
    assert isinstance(cells, RankingCells)
    return ranking_fit(fit_ranking_board(rows.models, cells, options), drawn, rows.report, options)


def ranking_fit(fitted: RankingBoard, drawn: VoteGroups, report: DataReport, options: FitOptions) -> PlackettLuceFit:
    """The result for a fitted board of rankings."""
    count = fitted.cells.per_item(len(fitted.board.theta))
    return fit_result(PlackettLuceFit, fitted, drawn, report, options, count)


def check_for_rankings(options: FitOptions) -> None:
    """An error for options that are about battles.

    Raises:
        ValueError: it names the option.
    """
    for name, without in _OF_BATTLES.items():
        if getattr(options, name) != without and getattr(options, name) != "auto":
            raise ValueError(f"{name}= is about battles, and rankings have none: leave it out")
    if options.method == "sparse":
        raise ValueError("method='sparse' is for battles: rankings are fitted on tables of all items")
    if getattr(options, "dtype", "float64") != "float64":
        raise ValueError("refits of rankings are in double precision: leave dtype= out")
