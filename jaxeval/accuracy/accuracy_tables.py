"""Tables of accuracies and of judges' rates, a row per model, judge and estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.belief import believed, shift_p, shifted, tolerance, tolerance_of, what_to_believe
from jaxeval.accuracy.estimates import (
    ESTIMATORS,
    Slice,
    Words,
    closed_form,
    contributions,
    effect_on_rates,
    estimate_draws,
    estimated,
    estimates,
    rates_of,
)
from jaxeval.accuracy.judged_sums import values_of_items
from jaxeval.accuracy.rogan_gladen import youden_j
from jaxeval.accuracy.statuses import BOUNDED, HAVE_NUMBERS, UNBOUNDED, WITHOUT_RESAMPLES, EstimateStatus
from jaxeval.arrays import Bool, Float
from jaxeval.lazy_names import pd
from jaxeval.options.boards import AccuracyOptions, CalibrationSampling
from jaxeval.plain_tables import PlainTable, held_table, in_pandas
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import normal_quantile, student_quantile
from jaxeval.statistics.random_facets import RandomFacets
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, did_you_mean, visible_line


class AccuracySettings(AccuracyOptions):
    """What accuracies were computed with."""

    shared: str  # whose labels the shared calibration uses
    device: str
    versions: str
    random: tuple[str, ...] = ()  # facets that are drawn anew


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyTables(Result):
    """Accuracies, the judges' rates, and what they were computed from."""

    rows: Mapping[str, Any]  # of `table` and `rates`, in pandas or not
    warnings: list[str]
    settings: AccuracySettings
    slices: Mapping[str, Slice] = field(repr=False)
    binary: Bool = field(repr=False)  # (J,) judges whose verdicts are 0 and 1
    over_judges: pd.DataFrame | None = field(default=None, repr=False)  # with judges among the random facets
    _about: str = field(default="", repr=False)  # what was sampled, where facets are random

    table = held_table("table", "A row per slice, model, judge and estimator.")
    rates = held_table("rates", "A row per slice, model and judge.")

    def _sentences(self) -> list[str]:
        return [*self.about_facets(), what_to_believe(self.rows["table"], self.settings.sampling)]

    def about_facets(self) -> list[str]:
        """Say what was sampled where facets are random, and the best model by judges like these."""
        if not self._about:
            return []
        rows = None if self.over_judges is None else self.over_judges.dropna(subset=["estimate"])
        if rows is None or not len(rows):
            return [f"intervals are {self._about}"]
        best = rows.iloc[0]
        ends = f"{best['estimate']:.3f} [{best['lower']:.3f}, {best['upper']:.3f}]"
        return [f"{self._about}: the accuracy of {visible_line(str(best['model']))} is {ends}"]

    def _shown(self) -> Answer:
        title = (
            f"{type(self).__name__}: {counted(len(self.models), 'model')}, {counted(len(self.judges), 'judge')}; "
            "the estimates to believe"
        )
        believed = self.table[self.table["believe"]]
        table = believed.drop(columns=["believe"]).sort_values("estimate", ascending=False, kind="stable")
        return Answer(title, table.reset_index(drop=True), self.settings, self.warnings)

    @property
    def models(self) -> pd.Index:
        """Models of the test."""
        return in_pandas(self.slices[""].test.models)

    @property
    def judges(self) -> pd.Index:
        """Judges of the test."""
        return in_pandas(self.slices[""].test.judges)

    def of(self, label: str) -> Self:
        """Return the accuracies of the slice ``label`` alone; "all" is that of all items.

        Raises:
            ValueError: there is no such slice.
        """
        reject_facets(self.settings.random, "slices by themselves")
        tables = (of_slice(table, label).drop(columns="slice", errors="ignore") for table in (self.table, self.rates))
        table, rates = (x.reset_index(drop=True) for x in tables)
        slices = {"": self.slices["" if label == "all" else label]}
        settings = replace(self.settings, by=None)
        return replace(self, rows={"table": table, "rates": rates}, slices=slices, settings=settings)

    @property
    def joint(self) -> Draws:
        """The accuracies of all items as joint draws: the names have the levels ``model``, ``judge`` and ``estimator``.

        Test items are drawn with the judgments of all models and judges, and so are calibration items: all differences
        are paired. Estimates that no resamples bound, see ``status``, have no draws. `of` picks another slice.
        """
        reject_facets(self.settings.random, "joint draws of accuracies")
        table = of_slice(self.table, "all")
        draws_by_name = estimate_draws(self.slices[""], self.binary)
        draws = np.stack([draws_by_name[name] for name in ESTIMATORS], -1)
        draws = draws.reshape(len(draws), -1)
        bounded = ~table["status"].isin([*UNBOUNDED, *WITHOUT_RESAMPLES]) & table["status"].isin(HAVE_NUMBERS)
        return Draws(
            table.set_index(["model", "judge", "estimator"]).index,
            table["estimate"].to_numpy(),
            np.where(bounded, draws, np.nan),
            limits=(0.0, 1.0),
            status=table["status"].to_numpy(),
            warnings=tuple(self.warnings),
            settings=self.settings,
        )


def reject_facets(random: Sequence[str], what: str) -> None:
    """Raise ValueError where facets were declared random, of which ``what`` knows nothing."""
    if random:
        facets = ", ".join(map(visible_line, random))
        raise ValueError(f"{what} know nothing of random facets ({facets}): leave random= (--random) out for them")


def joined(tables: Mapping[str, Any], by: str | None) -> Any:
    """Return tables of slices as one, with the slice in the first column where there are several."""
    if by is None:
        return tables[""]
    named = {label or "all": in_pandas(table) for label, table in tables.items()}
    return pd.concat(named, names=["slice"]).reset_index(level=0).reset_index(drop=True)


def of_slice(table: pd.DataFrame, label: str) -> pd.DataFrame:
    """Return the rows of the slice ``label``; "all" is that of all items. ValueError where there is no such slice."""
    slices = table["slice"] if "slice" in table else pd.Series("all", table.index)
    if label not in set(slices) and len(table):
        known = dict.fromkeys(slices)
        raise ValueError(f"no slice {label!r}; there are {', '.join(map(repr, known))}{did_you_mean(label, known)}")
    return table[slices == label]


def where_defined(
    status: Words, estimate: Float, ends: tuple[Float, Float], drawn: Sequence[Float]
) -> dict[str, Float]:
    """Return an estimator's columns by its statuses: NaN where there is no number, infinite ends where unbounded.

    ``drawn`` are the median and the ends of the resamples.
    """
    there, unbounded = np.isin(status, HAVE_NUMBERS), np.isin(status, UNBOUNDED)
    resampled = there & ~np.isin(status, WITHOUT_RESAMPLES)

    def end(x: Float, sign: float, shown: Bool) -> Float:
        return np.where(shown, np.where(unbounded & ~np.isnan(x), sign * np.inf, x), np.nan)

    return {
        "estimate": np.where(there, estimate, np.nan),
        "lower": end(ends[0], -1, there),
        "upper": end(ends[1], 1, there),
        "median": np.where(resampled, drawn[0], np.nan),
        "boot_lower": end(drawn[1], -1, resampled),
        "boot_upper": end(drawn[2], 1, resampled),
    }


def accuracy_table(part: Slice, binary: Bool, level: float, sampling: CalibrationSampling | None) -> PlainTable:
    """Return `JudgeAccuracy.table` of one slice."""
    m, j = len(part.test.models), len(part.test.judges)
    own, nothing = estimated(part, binary), np.full((m, j), np.nan)
    closed = closed_form(part, own, binary, level)
    truth, n_truth = part.truth()
    blocks = []
    for name, x in own.items():
        freedom = influence.freedom(x.like, part.judged.data.units)
        *drawn, failed = influence.bounds_of_draws(x.draws, freedom, level, 0.0, 1.0)
        lower, upper = closed.get(name, (nothing, nothing))
        outside = np.isin(x.status, (*BOUNDED, EstimateStatus.ONE_CLASS)) & ((upper < 0) | (lower > 1))
        status = np.where(outside, EstimateStatus.OUTSIDE, x.status)
        shown = where_defined(status, x.estimate, (lower, upper), drawn)
        blocks.append(
            {
                "estimator": np.full((m, j), name, object),
                **{key: np.clip(shown[key], 0, 1) for key in ("estimate", "lower", "upper")},
                **{f"{end}_untruncated": shown[end] for end in ("lower", "upper")},
                **{key: np.clip(shown[key], 0, 1) for key in ("median", "boot_lower", "boot_upper")},
                "failed_share": failed,
                "status": status,
                "n_test": part.of(name).total.test.n.sum(0).astype(int),
                "m0": x.labels[0],
                "m1": x.labels[1],
                "tolerance": tolerance(
                    np.minimum(shown["upper"] - shown["estimate"], shown["estimate"] - shown["lower"]), x.moves
                ),
                "tolerance_of": np.full((m, j), tolerance_of(name), object),
                "truth": truth,
                "n_truth": n_truth,
            }
        )
    columns = {key: np.stack([block[key] for block in blocks], -1) for key in blocks[0]}
    statuses = dict(zip(ESTIMATORS, np.moveaxis(columns["status"], -1, 0), strict=True))
    believe = believed(statuses, shifted(part.judged.total, part.judged.data), sampling)
    columns["believe"] = columns["estimator"] == believe[..., None]
    names = {
        "model": np.repeat(part.test.models.to_numpy(), j * len(blocks)),
        "judge": np.tile(np.repeat(part.test.judges.to_numpy(), len(blocks)), m),
    }
    return with_kinds(PlainTable(names | {key: x.reshape(-1) for key, x in columns.items()}), ends_of="estimate")


def rates_table(part: Slice, binary: Bool, level: float) -> PlainTable:
    """Return `JudgeAccuracy.rates` of one slice: rates of every model and judge, strata together."""
    m, j = len(part.test.models), len(part.test.judges)
    point, draws = rates_of(part.judged.total.own), rates_of(part.judged.draws.own)
    # Scores may lie outside of [0, 1].
    q0, q1, m0, m1 = (np.where(binary, x, 0.0) for x in point)
    data, total, *_ = part.judged
    freedom = influence.freedom(influence.youden_j(data, total), data.units)
    worth = effect_on_rates(part) * (student_quantile(level, freedom) / normal_quantile(level)) ** 2
    closed = youden_j(q0, q1, m0 / worth, m1 / worth, level)
    ends = {
        "q0": (point.q0, closed.q0_lower, closed.q0_upper, draws.q0, 0.0),
        "q1": (point.q1, closed.q1_lower, closed.q1_upper, draws.q1, 0.0),
        "j": (closed.estimate, closed.lower, closed.upper, draws.q0 + draws.q1 - 1, -1.0),
    }
    columns: dict[str, NDArray[Any]] = {
        "model": np.repeat(part.test.models.to_numpy(), j),
        "judge": np.tile(part.test.judges.to_numpy(), m),
    }
    for name, (value, lower, upper, drawn, least) in ends.items():
        _, boot_lower, boot_upper, _ = influence.bounds_of_draws(drawn, freedom, level, least, 1.0)
        shown = {"": value, "_lower": lower, "_upper": upper, "_boot_lower": boot_lower, "_boot_upper": boot_upper}
        columns |= {f"{name}{end}": np.where(binary, x, np.nan).reshape(-1) for end, x in shown.items()}
    status = np.where(point.m0 + point.m1 > 0, closed.status, EstimateStatus.NO_LABELS)
    columns["status"] = np.where(binary, status, EstimateStatus.NOT_BINARY).reshape(-1)
    columns["m0"], columns["m1"] = (x.reshape(-1).astype(int) for x in (point.m0, point.m1))
    columns["p_same_share"] = shift_p(part.judged.total, part.judged.data).reshape(-1)
    return PlainTable(columns)


class FacetedAccuracies:
    """Errors of the accuracies of one slice where more than items was sampled: judges, prompts, seeds are drawn anew.

    An accuracy is about its estimate plus the sum of what its items contribute (see `jaxeval.accuracy.influence`).
    Variance components of contributions say how much levels of a facet, a column or "judge", move it. What a prompt
    adds to the calibration and to the test alike cancels in estimates that correct by the calibration.
    """

    def __init__(self, part: Slice, random: str | Sequence[str], cluster: str | None) -> None:
        self.part, data, names = part, part.judged.data, facet_names(random)
        labelled = part.calibration.take(np.flatnonzero(~np.isnan(part.calibration.label).all(axis=1)))
        self.n, unit = len(labelled.items) + len(part.test.items), cluster or "item"
        codes = {}
        for name in names:
            if name == "judge":
                continue
            both = np.concatenate([values_of_items(answers, name, name) for answers in (labelled, part.test)])
            codes[name] = pd.factorize(both, sort=True)[0]
        units = None if data.units is None else np.concatenate([data.units.calibration, data.units.test])
        #: Facets but judges, each of whom has a row of its own; and all of them, of cells of items and judges.
        self.others = RandomFacets.of(codes, unit, units) if codes else None
        self.cells: RandomFacets | None = None
        if "judge" in names:
            item, judge = (x.reshape(-1) for x in np.indices((self.n, len(part.test.judges))))
            of_cells = {name: judge if name == "judge" else codes[name][item] for name in names}
            self.cells = RandomFacets.of(of_cells, unit, item if units is None else units[item])
        #: What intervals are about, and what is to be known of it; the caller has names.
        self.facets: RandomFacets = self.cells or self.others  # type: ignore[assignment]

    def widened(self, table: pd.DataFrame, binary: Bool, level: float) -> pd.DataFrame:
        """Lengthen the intervals of the table of accuracies by what facets other than judges add, in quadrature."""
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
        """Return accuracies by judges like these: means over judges, of the estimator that is believed of most.

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
            ends = {end: float(np.clip(estimate + k * reach, 0, 1)) for k, end in ((-1, "lower"), (1, "upper"))}
            rows.append(
                {"model": model, "estimator": name, "estimate": float(np.clip(estimate, 0, 1)), **ends,
                 "standard_error": float(error), "dof": float(dof)}
            )  # fmt: skip
        columns = ["model", "estimator", "estimate", "lower", "upper", "standard_error", "dof"]
        return pd.DataFrame(rows, columns=columns).sort_values("estimate", ascending=False, ignore_index=True)
