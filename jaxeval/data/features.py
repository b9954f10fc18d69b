"""Covariates of a battle: what sides differ in besides the models, such as length, markdown, or who is shown first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import count_by
from jaxeval.data.columns import numbers, reject_infinite, reject_missing
from jaxeval.errors import DataError
from jaxeval.wording import counted


class Feature(NamedTuple):
    """A covariate that is computed: ``values`` gives, for all rows of the battles (R,), side A's less side B's.

    It must change its sign when the sides of a battle are swapped.
    """

    name: str
    values: Callable[[Battles], Float]


#: A column of differences (side A less side B), a pair of columns (side A's, side B's), or what computes them.
FeatureLike = str | tuple[str, str] | Feature


@dataclass(frozen=True, eq=False)
class Design:
    """(R, D) covariates of the rows of battles, divided by their root mean squares ``scale`` (D,).

    Coefficients are found for those, and told for one ``unit`` (D,) of the covariate: ``scale`` for columns that are
    normalized, else 1.
    """

    names: tuple[str, ...]
    matrix: Float
    scale: Float
    unit: Float

    @property
    def factor(self) -> Float:
        """(D,) by which a coefficient of ``matrix`` is told."""
        return self.unit / self.scale


def position_advantage(neutral: str | None = None) -> Feature:
    """The advantage of being side A: 1 for every battle, and 0 where the column ``neutral`` is true.

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
        if not column.isin([True, False]).all():
            raise DataError(
                f"column {neutral!r} must be true or false, got {column[~column.isin([True, False])].iloc[0]!r}"
            )
        return 1.0 - column.to_numpy(float)

    return Feature("position", values)


def same_group(column: str, group_a: str, group_b: str) -> Feature:
    """1 where only side A is of the battle's own group, -1 where only side B is, else 0.

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
        own, a, b = (battles.column(name) for name in (column, group_a, group_b))
        for series, name in ((own, column), (a, group_a), (b, group_b)):
            reject_missing(series.isna().to_numpy(), name, battles.rows)
        own, a, b = (x.astype(object).to_numpy() for x in (own, a, b))
        return (a == own).astype(float) - (b == own).astype(float)

    return Feature(f"same {column}", values)


def checked_features(features: Sequence[FeatureLike], feature_ridge: float) -> list[FeatureLike]:
    """The covariates as a list.

    Raises:
        TypeError: not a list of covariates.
        ValueError: a ``feature_ridge`` without covariates that it could shrink.
    """
    if isinstance(features, str):
        raise TypeError(f"features must be a list, got the text {features!r}: write [{features!r}]")
    if isinstance(features, Feature) or not isinstance(features, Iterable):
        raise TypeError(f"features must be a list of covariates, empty for none, got {features!r}")
    found = list(features)
    if not found and feature_ridge != 0:
        raise ValueError(f"feature_ridge={feature_ridge!r} shrinks the coefficients of features, and there are none")
    return found


def design(battles: Battles, features: Sequence[FeatureLike], normalize: bool) -> Design:
    """The covariates of all battles.

    With ``normalize`` the unit of a column is its root mean square, so that a coefficient is that of a typical
    difference; nothing is subtracted, which would favour a side. The unit of what is computed is 1.

    Raises:
        DataError: a column is not there, not numeric, has missing or infinite values, or is 0 throughout.
    """
    names, columns, scale, unit = [], [], [], []
    for feature in features:
        name, values, own_scale = _values(battles, feature)
        reject_infinite(np.isinf(values), f"feature {name!r}", rows=battles.rows)
        size = _root_mean_square(values, battles.count)
        if size == 0:
            raise DataError(f"feature {name!r} is 0 in all battles: it says nothing")
        names.append(name)
        scale.append(size)
        unit.append(size if normalize and not own_scale else 1.0)
        columns.append(values / size)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"two features are called {twice[0]!r}")
    matrix = np.stack(columns, 1) if columns else np.zeros((battles.n_rows, 0))
    return Design(tuple(names), matrix, np.array(scale), np.array(unit))


def _values(battles: Battles, feature: FeatureLike) -> tuple[str, Float, bool]:
    """Name, values, and whether they are to stay on their own scale."""
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
    raise TypeError(f"a feature is a column, a pair of columns or a Feature, got {feature!r}")


def _root_mean_square(values: Float, count: Int | None) -> float:
    """Over all battles, the same bit for bit whatever the order of rows and sides, equal rows merged or not."""
    size, row = np.unique(np.abs(values), return_inverse=True)
    largest = size[-1]
    if largest == 0:
        return 0.0
    times = count_by(row, count, len(size))
    return float(largest * np.sqrt((times * (size / largest) ** 2).sum() / times.sum()))


def relative_difference(a: pd.Series, b: pd.Series) -> pd.Series:
    """(a - b) / (a + b), 0 where both are 0: how style control takes lengths, which differ by factors.

    Raises:
        DataError: a value is negative.
    """
    total = a + b
    if ((a < 0) | (b < 0)).any():
        raise DataError("relative differences need values that are not negative")
    return ((a - b) / total.where(total > 0, 1)).astype(float)
