"""Accuracies where more than items was sampled: judges, prompts or seeds that another evaluation would draw anew.

An accuracy is about its estimate plus the sum of what its items contribute (see `jaxeval.accuracy.influence`). Variance
components of contributions say how much levels of a facet move it. What a prompt adds to the calibration and to the
test alike cancels in estimates that correct by the calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.estimates import Slice, contributions, critical_values, estimates
from jaxeval.accuracy.judged_sums import values_of_items
from jaxeval.accuracy.statuses import HAVE_NUMBERS
from jaxeval.arrays import Bool, Float
from jaxeval.errors import DataError
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.variance_components import FacetDesign, design_of, facet_names, sentence_of, warnings_of

JUDGE = "judge"
_ENDS = ("lower", "upper")

Codes = Mapping[str, NDArray[np.intp]]


class FacetedAccuracies:
    """Errors of the accuracies of one slice where facets are drawn anew.

    Args:
        part: the slice.
        random: columns that were kept with both answers, or "judge".
        cluster: column of what items belong to.

    Raises:
        DataError: a column is not there, an item has several of its values, or it has one value.
    """

    def __init__(self, part: Slice, random: str | Sequence[str], cluster: str | None) -> None:
        self.names = facet_names(random)
        self.part, data = part, part.judged.data
        labelled = part.calibration.take(np.flatnonzero(~np.isnan(part.calibration.label).all(axis=1)))
        self.codes: dict[str, NDArray[np.intp]] = {}
        self.unit = cluster or "item"
        self.n = n = len(labelled.items) + len(part.test.items)
        if data.units is not None:
            self.codes[self.unit] = np.concatenate([data.units.calibration, data.units.test])
        self.levels = dict.fromkeys(self.names, 0)
        for name in self.names:
            if name != JUDGE:
                both = np.concatenate([values_of_items(answers, name, name) for answers in (labelled, part.test)])
                self.codes[name], index = pd.factorize(both, sort=True)
                self.levels[name] = len(index)
        if JUDGE in self.levels:
            self.levels[JUDGE] = len(part.test.judges)
        self.levels[self.unit] = data.units.n if data.units is not None else n
        if lone := [name for name in self.names if self.levels[name] < 2]:
            raise DataError(warnings_of(design_of({lone[0]: np.zeros(2, np.intp)}), {lone[0]: 1})[0])

    @property
    def about(self) -> str:
        """What the intervals are about, in words."""
        return sentence_of(self.levels)

    @property
    def others(self) -> list[str]:
        """Facets but judges: each judge has a row of its own."""
        return [name for name in self.names if name != JUDGE]

    def widened(self, table: pd.DataFrame, binary: Bool, level: float) -> pd.DataFrame:
        """The table of accuracies with intervals made longer by what facets other than judges add, in quadrature."""
        if not self.others:
            return table
        design, table = self._design(self.codes), table.copy()
        items = contributions(self.part, binary)
        for name, contribution in items.items():
            variance, dof = _errors(design, np.concatenate([contribution.calibration, contribution.test]) * self.n)
            alone = influence.together(contribution, self.part.judged.data.units).variance()
            freedom = influence.freedom(contribution, self.part.judged.data.units)
            more = student_quantile(level, dof) ** 2 * variance - critical_values(freedom, level) ** 2 * alone
            names = [name, "ppi_plus_plus_half"] if name == "ppi_plus_plus" else [name]
            for estimator in names:
                rows = np.flatnonzero(table["estimator"] == estimator)
                self._lengthen(table, rows, np.maximum(more.reshape(-1), 0.0))
        return table

    @staticmethod
    def _lengthen(table: pd.DataFrame, rows: NDArray[np.intp], more: Float) -> None:
        for centre, ends in (
            ("estimate", ("lower", "upper")), ("estimate", ("lower_untruncated", "upper_untruncated")),
            ("median", ("boot_lower", "boot_upper")),
        ):  # fmt: skip
            middle = table[centre].to_numpy(float)[rows]
            for end, sign in zip(ends, (-1, 1), strict=True):
                column = table[end].to_numpy(float, copy=True)
                with np.errstate(invalid="ignore"):
                    moved = middle + sign * np.sqrt((column[rows] - middle) ** 2 + more)
                column[rows] = moved if end.endswith("untruncated") else np.clip(moved, 0, 1)
                table[end] = column

    def over_judges(self, table: pd.DataFrame, binary: Bool, level: float) -> pd.DataFrame | None:
        """Accuracies by judges like these: means over judges, of the estimator that is believed of most of them.

        Cells are items by judges, each with the estimate of its judge and N times what its item contributes to it.
        """
        if JUDGE not in self.names:
            return None
        n_judges, models = self.levels[JUDGE], self.part.test.models
        item, judge = (x.reshape(-1) for x in np.indices((self.n, n_judges)))
        codes = {self.unit: item} | {name: code[item] for name, code in self.codes.items()} | {JUDGE: judge}
        design = self._design(codes)
        values, items = (
            estimates(self.part.judged.total, self.part.every.total, binary),
            contributions(self.part, binary),
        )
        rows = []
        for m, model in enumerate(models):
            of_model = table[table["model"] == model]
            marked = of_model.loc[of_model["believe"], "estimator"].value_counts()
            name = next((x for x in marked.index if x in items), None)
            if name is None or not of_model.loc[of_model["estimator"] == name, "status"].isin(HAVE_NUMBERS).all():
                rows.append({"model": model})
                continue
            apart = np.concatenate([items[name].calibration[:, m], items[name].test[:, m]]) * self.n  # (n, J)
            cells = (values[name][m] + apart).reshape(-1, 1, 1)
            (variance,), (dof,) = (x.reshape(-1) for x in _errors(design, cells))
            estimate, reach = float(values[name][m].mean()), student_quantile(level, dof) * np.sqrt(variance)
            ends = {end: float(np.clip(estimate + k * reach, 0, 1)) for k, end in zip((-1, 1), _ENDS, strict=True)}
            rows.append(
                {"model": model, "estimator": name, "estimate": float(np.clip(estimate, 0, 1)), **ends,
                 "standard_error": float(np.sqrt(variance)), "dof": float(dof)}
            )  # fmt: skip
        columns = ["model", "estimator", "estimate", *_ENDS, "standard_error", "dof"]
        return pd.DataFrame(rows, columns=columns).sort_values("estimate", ascending=False, ignore_index=True)

    def warnings(self) -> list[str]:
        """What is to be known of the facets."""
        levels = {name: self.levels[name] for name in self.names if name in self.codes}
        messages = warnings_of(self._design(self.codes), levels) if self.codes else []
        if self.levels.get(JUDGE) == 2:
            messages += [
                f"{JUDGE} has two levels: what it adds rests on one difference, so that intervals are long and weak"
            ]
        return messages

    @staticmethod
    def _design(codes: Codes) -> FacetDesign:
        try:
            return design_of(codes)
        except ValueError as error:
            raise DataError(f"{error}: leave one out of random= (--random)") from None


def _errors(design: FacetDesign, values: Float) -> tuple[Float, Float]:
    """Variances (M, J) of means of values (N, M, J), and their degrees of freedom."""
    flat = values.reshape(len(values), -1)
    components = np.stack([design.components(design.squares(flat[:, [k]]))[:, 0, 0] for k in range(flat.shape[1])], 1)
    return tuple(x.reshape(values.shape[1:]) for x in design.error(components))  # type: ignore[return-value]
