"""Covariates of battles: how the sides differ besides the models, such as length, markdown, or who is shown first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import count_by
from jaxeval.data.columns import plain, reject_missing
from jaxeval.data.nested_columns import arrow_of, is_nested
from jaxeval.data.numbers import numbers, reject_infinite, reject_values
from jaxeval.errors import DataError
from jaxeval.lazy_names import pc, pd
from jaxeval.wording import counted, listed


class Feature(NamedTuple):
    """A computed covariate: ``values`` gives side A's value minus side B's for all rows of the battles (R,).

    It must change its sign when the sides of a battle are swapped (those of `arena_style` do, up to a constant).
    """

    name: str
    values: Callable[[Battles], Float]
    told: str = ""  # what readers of the results must know of it, in words


#: A column of differences (side A minus side B), a pair of columns (side A's, side B's), or a computed covariate.
FeatureLike = str | tuple[str, str] | Feature


@dataclass(frozen=True, eq=False)
class Design:
    """(R, D) covariates of the rows of battles, divided by their root mean squares ``scale`` (D,).

    Coefficients are fitted for the divided covariates, and reported per ``unit`` (D,) of the covariates themselves: the
    unit is ``scale`` for columns that are normalized, else 1.
    """

    names: tuple[str, ...]
    matrix: Float
    scale: Float
    unit: Float
    told: tuple[str, ...] = ()  # what readers of the results must know of them, in words

    @property
    def factor(self) -> Float:
        """(D,) what a coefficient of ``matrix`` is multiplied by to be reported."""
        return self.unit / self.scale


def position_advantage(neutral: str | None = None) -> Feature:
    """Return the advantage of being side A: 1 for every battle, and 0 where the column ``neutral`` is true.

    Examples:
        >>> import jaxeval
        >>> feature = jaxeval.position_advantage()
        >>> feature.name, feature.values(jaxeval.simulate_battles(3, n_models=2)).tolist()
        ('position', [1.0, 1.0, 1.0])
        >>> # jaxeval.leaderboard(battles, features=[feature]) controls for it.
    """

    def values(battles: Battles) -> Float:
        if neutral is None:
            return np.ones(battles.n_rows)
        column = battles.column(neutral)
        reject_missing(column.isna().to_numpy(), neutral, battles.rows)
        odd = column[~column.isin([True, False])]
        if len(odd):
            raise DataError(f"column {neutral!r} must be true or false, got {plain(odd.iloc[0])!r}")
        return 1.0 - column.to_numpy(float)

    return Feature("position", values)


def same_group(column: str, group_a: str, group_b: str) -> Feature:
    """Make a feature: 1 where only side A is of the battle's own group, -1 where only side B is, else 0.

    Let ``column`` be the maker of the judge, and ``group_a`` and ``group_b`` those of the models: the coefficient then
    says how much a judge prefers models of its own maker.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> votes = pd.DataFrame({"model_a": [*"xy"], "model_b": [*"yx"], "winner": "tie", "judge": "red"})
        >>> votes = votes.assign(maker_a=["red", "blue"], maker_b=["blue", "red"])
        >>> feature = jaxeval.same_group("judge", "maker_a", "maker_b")
        >>> feature.values(jaxeval.Battles.from_pandas(votes)).tolist()
        [1.0, -1.0]
    """

    def values(battles: Battles) -> Float:
        group, a, b = (battles.column(name) for name in (column, group_a, group_b))
        for series, name in ((group, column), (a, group_a), (b, group_b)):
            reject_missing(series.isna().to_numpy(), name, battles.rows)
        group, a, b = (x.astype(object).to_numpy() for x in (group, a, b))
        return (a == group).astype(float) - (b == group).astype(float)

    return Feature(f"same {column}", values)


#: The covariates of the Arena, and the columns of each side's counts.
_ARENA_STYLE = {
    "sum_assistant_tokens": "sum_assistant_{}_tokens",
    "header_count": "header_count_{}",
    "list_count": "list_count_{}",
    "bold_count": "bold_count_{}",
}
_ARENA_OBJECT = "conv_metadata"
_CENTRED = (
    "style control of the Arena: (a - b) / (a + b) of tokens, headers, lists and bold text, minus its mean, divided by "
    "its standard deviation; no mean is subtracted from other covariates, as that favours a side"
)


def arena_style() -> list[Feature]:
    """Return the four covariates by which the Arena controls for style: tokens, headers, lists and bold text.

    Each is ``(a - b) / (a + b)`` of both sides' counts (0 where both are 0), minus its mean over all battles, divided
    by its standard deviation. The Arena's own program, ``arena-rank``, subtracts this mean; jaxeval subtracts no mean
    from any other covariate. Counts are those of the Arena's data sets: ``conv_metadata.sum_assistant_a_tokens``,
    ``header_count_a``, ``list_count_a`` and ``bold_count_a``, and the same of b; or columns with these names. Objects
    of counts, such as ``{"h1": 0, "h2": 3}``, are added up.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> votes = jaxeval.simulate_votes(100, n_models=3, seed=0)[["model_a", "model_b", "winner"]]
        >>> counts = {f"{kind}_{side}": range(100) for kind in ("header_count", "list_count") for side in "ab"}
        >>> votes = votes.assign(**counts, bold_count_a=[{"**": 2}] * 100, bold_count_b=[{"**": 1}, {"**": 3}] * 50)
        >>> votes = votes.assign(sum_assistant_a_tokens=300, sum_assistant_b_tokens=range(100, 200))
        >>> *_, bold = jaxeval.arena_style()
        >>> bold.name, bold.values(jaxeval.Battles.from_pandas(votes)).round(3)[:2].tolist()
        ('bold_count', [1.0, -1.0])
        >>> # jaxeval.leaderboard(battles, features=jaxeval.arena_style()) controls for them.
    """

    def of(name: str, columns: str) -> Feature:
        def values(battles: Battles) -> Float:
            a, b = (style_counts(battles, columns.format(side)) for side in "ab")
            return _standardized(relative_difference(a, b).to_numpy(), battles.count)

        return Feature(name, values, _CENTRED)

    return [of(name, columns) for name, columns in _ARENA_STYLE.items()]


def arena_style_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that `arena_style` needs, from a file whose columns have these ``names``."""
    counts = [columns.format(side) for columns in _ARENA_STYLE.values() for side in "ab"]
    if names and _ARENA_OBJECT not in names and not set(counts) <= set(names):
        raise DataError(
            f"the Arena's covariates (--style arena) need its column {_ARENA_OBJECT!r}, or "
            f"{', '.join(map(repr, counts))}; the table has {listed(names)}: name its own covariates "
            "with features= (--features)"
        )
    return counts if set(counts) <= set(names) else [_ARENA_OBJECT]


def style_counts(battles: Battles, name: str) -> pd.Series:
    """Return (R,) counts of a side; objects of several counts are added up."""
    name = name if name in battles.columns else f"{_ARENA_OBJECT}.{name}"
    column = battles.column(name)
    if is_nested(column):
        counts = arrow_of(column)
        parts = [pc.fill_null(pc.struct_field(counts, [field.name]), 0) for field in counts.type]
        total = np.sum([part.to_numpy() for part in parts], axis=0)
        column = pd.Series(np.where(counts.is_null().to_numpy(), np.nan, total))
    values = numbers(column, name, battles.rows)
    reject_values(values, values < 0, name, "counts must be >= 0", battles.rows)
    return pd.Series(values)


def _standardized(values: Float, count: Int | None) -> Float:
    """Standardize ``values`` by their mean and standard deviation over all battles, whatever the order of rows."""
    distinct, row = np.unique(values, return_inverse=True)
    times = count_by(row, count, len(distinct))
    distinct = distinct - (times * distinct).sum() / times.sum()
    size = np.sqrt((times * distinct**2).sum() / times.sum())
    return np.asarray((distinct / (size or 1.0))[row])


def checked_features(features: Sequence[FeatureLike], feature_ridge: float) -> list[FeatureLike]:
    """Return the covariates as a list."""
    if isinstance(features, str):
        raise TypeError(f"features must be a list, got the text {features!r}: write [{features!r}]")
    if isinstance(features, Feature) or not isinstance(features, Iterable):
        raise TypeError(f"features must be a list of covariates, empty for none, got {features!r}")
    covariates = list(features)
    if not covariates and feature_ridge != 0:
        raise ValueError(f"feature_ridge={feature_ridge!r} shrinks the coefficients of features, but there are none")
    return covariates


def design(battles: Battles, features: Sequence[FeatureLike], normalize: bool) -> Design:
    """Return the covariates of all battles.

    With ``normalize`` the unit of a column is its root mean square, so that a coefficient is that of a typical
    difference. No mean is subtracted, as that would favour a side. Computed covariates always have the unit 1.
    """
    names, columns, scale, unit = [], [], [], []
    for feature in features:
        name, values, own_scale = _values(battles, feature)
        reject_infinite(np.isinf(values), f"feature {name!r}", rows=battles.rows)
        size = _root_mean_square(values, battles.count)
        if size == 0:
            raise DataError(f"feature {name!r} is 0 in all battles, and so says nothing: leave it out")
        names.append(name)
        scale.append(size)
        unit.append(size if normalize and not own_scale else 1.0)
        columns.append(values / size)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"two features are called {twice[0]!r}: leave one out, or give it another name")
    matrix = np.stack(columns, 1) if columns else np.zeros((battles.n_rows, 0))
    notes = dict.fromkeys(feature.told for feature in features if isinstance(feature, Feature) and feature.told)
    return Design(tuple(names), matrix, np.array(scale), np.array(unit), tuple(notes))


def _values(battles: Battles, feature: FeatureLike) -> tuple[str, Float, bool]:
    """Return the feature's name, its values, and whether they stay on their own scale."""
    if isinstance(feature, Feature):
        values = np.asarray(feature.values(battles), np.float64)
        if values.shape != (battles.n_rows,) or np.isnan(values).any():
            raise DataError(
                f"feature {feature.name!r} must give a number for each of the {counted(battles.n_rows, 'row')} of the "
                "battles"
            )
        return feature.name, values, True
    if isinstance(feature, str):
        return feature, numbers(battles.column(feature), feature, battles.rows), False
    if isinstance(feature, tuple) and len(feature) == 2 and all(isinstance(name, str) for name in feature):
        a, b = (numbers(battles.column(name), name, battles.rows) for name in feature)
        return f"{feature[0]} - {feature[1]}", a - b, False
    raise TypeError(f"a feature must be a column, a pair of columns or a Feature, got {feature!r}")


def _root_mean_square(values: Float, count: Int | None) -> float:
    """Return the root mean square of all battles, bit for bit equal in any order of rows and sides, merged or not."""
    size, row = np.unique(np.abs(values), return_inverse=True)
    times = count_by(row, count, len(size))
    largest = size[-1]
    if largest == 0:
        return 0.0
    return float(largest * np.sqrt((times * (size / largest) ** 2).sum() / times.sum()))


def relative_difference(a: pd.Series, b: pd.Series) -> pd.Series:
    """Give (a - b) / (a + b), 0 where both are 0: for style control by lengths, which differ by factors."""
    total = a + b
    if ((a < 0) | (b < 0)).any():
        raise DataError("relative differences need values that are not negative")
    return ((a - b) / total.where(total > 0, 1)).astype(float)
