"""Accuracies where more than items was sampled: judges, prompts or seeds that another evaluation would draw anew.

An accuracy is about its estimate plus the sum of what its items contribute (see `jaxeval.accuracy.influence`). Variance
components of contributions say how much levels of a facet move it. What a prompt adds to the calibration and to the
test alike cancels in estimates that correct by the calibration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.estimates import Slice, contributions, estimates
from jaxeval.accuracy.judged_sums import values_of_items
from jaxeval.accuracy.statuses import HAVE_NUMBERS
from jaxeval.arrays import Bool, Float
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.random_facets import RandomFacets
from jaxeval.statistics.variance_components import facet_names

JUDGE = "judge"
_ENDS = ("lower", "upper")


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
        self.part, data, names = part, part.judged.data, facet_names(random)
        labelled = part.calibration.take(np.flatnonzero(~np.isnan(part.calibration.label).all(axis=1)))
        self.n, unit = len(labelled.items) + len(part.test.items), cluster or "item"
        codes = {}
        for name in names:
            if name == JUDGE:
                continue
            both = np.concatenate([values_of_items(answers, name, name) for answers in (labelled, part.test)])
            codes[name] = pd.factorize(both, sort=True)[0]
        units = None if data.units is None else np.concatenate([data.units.calibration, data.units.test])
        #: Facets but judges, each of whom has a row of its own; and all of them, of cells of items and judges.
        self.others = RandomFacets.of(codes, unit, units) if codes else None
        self.cells = None
        if JUDGE in names:
            item, judge = (x.reshape(-1) for x in np.indices((self.n, len(part.test.judges))))
            of_cells = {name: judge if name == JUDGE else codes[name][item] for name in names}
            self.cells = RandomFacets.of(of_cells, unit, item if units is None else units[item])

    @property
    def facets(self) -> RandomFacets:
        """What intervals are about, and what is to be known of it."""
        found = self.cells or self.others
        assert found is not None  # the caller has names
        return found

    def widened(self, table: pd.DataFrame, binary: Bool, level: float) -> pd.DataFrame:
        """The table of accuracies with intervals made longer by what facets other than judges add, in quadrature."""
        if self.others is None:
            return table
        table = table.copy()
        for name, contribution in contributions(self.part, binary).items():
            each = np.concatenate([contribution.calibration, contribution.test]) * self.n
            error, dof = (x.reshape(each.shape[1:]) for x in self.others.errors(each.reshape(self.n, -1), alike=False))
            alone = influence.together(contribution, self.part.judged.data.units).variance()
            freedom = influence.freedom(contribution, self.part.judged.data.units)
            more = (student_quantile(level, dof) * error) ** 2 - student_quantile(level, freedom) ** 2 * alone
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
        if self.cells is None:
            return None
        values = estimates(self.part.judged.total, self.part.every.total, binary)
        items, models = contributions(self.part, binary), self.part.test.models
        rows = []
        for m, model in enumerate(models):
            of_model = table[table["model"] == model]
            marked = of_model.loc[of_model["believe"], "estimator"].value_counts()
            name = next((x for x in marked.index if x in items), None)
            if name is None or not of_model.loc[of_model["estimator"] == name, "status"].isin(HAVE_NUMBERS).all():
                rows.append({"model": model})
                continue
            apart = np.concatenate([items[name].calibration[:, m], items[name].test[:, m]]) * self.n  # (n, J)
            each = (values[name][m] + apart).reshape(-1, 1)
            (error,), (dof,) = self.cells.errors(each, alike=False)
            estimate, reach = float(values[name][m].mean()), student_quantile(level, dof) * error
            ends = {end: float(np.clip(estimate + k * reach, 0, 1)) for k, end in zip((-1, 1), _ENDS, strict=True)}
            rows.append(
                {"model": model, "estimator": name, "estimate": float(np.clip(estimate, 0, 1)), **ends,
                 "standard_error": float(error), "dof": float(dof)}
            )  # fmt: skip
        columns = ["model", "estimator", "estimate", *_ENDS, "standard_error", "dof"]
        return pd.DataFrame(rows, columns=columns).sort_values("estimate", ascending=False, ignore_index=True)
