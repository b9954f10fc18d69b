"""``jaxeval meta``: evaluators beside gold, and references that rank models as all votes do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from jaxeval import plots
from jaxeval.cli.terminal import named_model
from jaxeval.data.columns import require_column
from jaxeval.data.labels import Labels
from jaxeval.data.numbers import numeric_but_for_gaps
from jaxeval.data.readers import read_battles
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.data.table_files import column_names, naming, read_whole_table
from jaxeval.errors import DataError
from jaxeval.evaluators.comparison import compare_evaluators, evaluator_advice
from jaxeval.evaluators.meaningful_gaps import AgreementFits, agreement_fits
from jaxeval.evaluators.model_scores import FEW_PAIRS, hide_few_in_agreement, hide_few_pairs
from jaxeval.evaluators.rank_correlation import kendall_tau_delta, rank_agreement, stratified_rank_change
from jaxeval.lab.reference_study import reference_study
from jaxeval.show.cells import estimate, pairs_cell, wide
from jaxeval.show.shown import Answer, Part
from jaxeval.wording import counted

#: Gaps in points, and tiers, unless others are asked for.
DELTAS = (1.0, 2.0, 5.0, 10.0, 20.0)
TIERS = 4
_CURVES, _CURVE_POINTS = 8, 16


def study_evaluators(
    file: FileName, *, gold: str | None, model: str | None, evaluators: Sequence[str], top: int,
    improvements: Sequence[float], agreement: float, deltas: Sequence[float] | None, n_tiers: int | None,
    few_pairs: bool, drawn: dict[str, Any], with_curves: bool,
) -> Answer:  # fmt: skip
    """Measure every evaluator of a file beside gold; ``with_curves`` of agreement for a figure."""
    frame, warnings = _read_scores(file, gold, model, evaluators)
    few = 0 if few_pairs else FEW_PAIRS
    margins = sorted({*(deltas or DELTAS), np.inf})
    fits = agreement_fits(frame, gold, **drawn)
    tables = {
        "tau": kendall_tau_delta(frame, gold, margins, **drawn),
        "agreement": rank_agreement(frame, gold, top=top, **drawn),
        "rank_change": stratified_rank_change(frame, gold, n_tiers or min(TIERS, len(frame)), **drawn),
        "smallest_gap": fits.smallest_gap(agreement),
    }
    if improvements:
        tables["improvement"] = fits.by_gap(sorted(set(improvements)))
    if frame.shape[1] > 2:
        tables = {"comparison": compare_evaluators(frame, gold, few_pairs=few, **drawn), **tables}
    by_gap, compared = tables.get("improvement"), tables.get("comparison")
    advice = evaluator_advice(tables["tau"], tables["rank_change"], tables["smallest_gap"], by_gap, compared, few)
    curves = _curves(fits) if with_curves else None
    if curves is not None:
        tables["curves"] = curves

    def figures() -> dict[str, Any]:
        drawings = {
            "tau": plots.plot_tau_delta(tables["tau"], few),
            "rank_change": plots.plot_rank_change(tables["rank_change"], few),
        }
        return drawings if curves is None else {**drawings, "curves": plots.plot_agreement(curves, agreement, few)}

    part = partial(Part, rows="evaluator")
    parts: list[Part] = []
    if compared is not None:
        parts.append(part(
            f"Which evaluator ranks most like {gold}", _ranking_rows(tables["tau"], compared, few),
            "Kendall's tau-b over all models (pairs of models), and the best evaluator's tau less this one's on the "
            "models that both scored",
        ))  # fmt: skip
    taus = wide(hide_few_pairs(tables["tau"], "tau", few), "evaluator", "delta", pairs_cell("tau"))
    measures = _measure_rows(hide_few_pairs(tables["agreement"], "value", few))
    changes = wide(
        hide_few_pairs(tables["rank_change"], "rank_change", few), "evaluator", "tier",
        lambda row: estimate(row, "rank_change", ".1f", f" ({row['n_models']:,.0f})"),
    )  # fmt: skip
    gaps = hide_few_pairs(tables["smallest_gap"], "delta", few)
    named = ["evaluator", "delta", "lower", "upper", "largest_gap", "n_pairs", "reached_share", "lack_of_fit", "status"]
    gaps = gaps[[name for name in named if name in gaps]]
    parts += [
        part("Close models", taus, "Kendall's tau-b of models whose scores differ by less than delta points (pairs of "
             "models)", more=compared is not None),
        part("All models", measures, f"the top has {top}; rank deviation in places", more=True),
        part("Rank change by tier", changes, "mean |rank - gold rank| by tier of gold (models of the tier that the "
             "evaluator scored); tiers are of all models that gold and any evaluator scored", more=True),
        part(f"Smallest gap of scores at which gold agrees with probability {agreement:g}", gaps, more=True),
    ]  # fmt: skip
    if by_gap is not None:
        rows = wide(
            hide_few_in_agreement(by_gap, few), "evaluator", "delta", _improvement_cell,
            lambda delta: counted(delta, "point"),
        )  # fmt: skip
        parts.append(part("What an improvement means", rows, "probability that gold agrees by the regression, share of "
                          "pairs of such gaps that do, and average below (pairs)"))  # fmt: skip
    read = f"{counted(len(frame), 'model')}, {counted(frame.shape[1] - 1, 'evaluator')}; gold is {gold}"
    return Answer(
        parts[0].title or "", warnings=[*warnings, *_collected(tables)], sentences=advice, notes=[read], parts=parts,
        tables=tables, figures=figures,
    )  # fmt: skip


def _read_scores(
    file: FileName, gold: str | None, model: str | None, evaluators: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the gold column and those of evaluators, by model; and what was left out."""
    names = column_names(file)
    if gold is None:
        raise DataError(f"which column has the gold scores? Name it with --gold; there are {', '.join(names)}")
    named = model or ("model" if "model" in names else "")
    with naming(file):
        frame = read_whole_table(file, text=[named] if named else [])
        require_column(frame, gold, *evaluators, *([named] if named else []))
    frame = pd.concat([frame[x] if x == named else numeric_but_for_gaps(frame[x]) for x in frame], axis=1)
    numeric = {name for name in frame if is_numeric_dtype(frame[name]) or frame[name].isna().all()}
    if not named:
        text = [name for name in frame if name not in numeric and name != gold]
        if not text:
            raise DataError(
                f"{base_name(file)} has no column of text: which one names the models? Name it with --model"
            )
        named = text[0]
    lacking = frame[named].isna()
    warnings = []
    if lacking.any():
        warnings.append(f"left out: {counted(lacking.sum(), 'row')} without a model in column {named!r}")
        frame = frame[~lacking]
    for column in (gold, *evaluators):
        if column not in numeric:
            raise DataError(f"column {column!r} is not numeric{_first_text(frame[column])}")
    chosen = list(dict.fromkeys(evaluators)) or [c for c in frame if c in numeric and c not in (gold, named)]
    if not chosen:
        raise DataError(f"{base_name(file)} has no column of numbers besides {gold!r}: there is no evaluator")
    if gold in chosen:
        raise DataError(f"column {gold!r} is the gold one and cannot be an evaluator too")
    empty = [c for c in chosen if not (frame[c].notna() & frame[gold].notna()).any()]
    left = [c for c in frame if c not in numeric and c != named] if not evaluators else []
    for column in left:
        warnings.append(f"column {str(column)!r} is left out: it is not numeric{_first_text(frame[column])}")
    if len(empty) < len(chosen):
        warnings += [f"column {str(column)!r} is left out: no model has a score in it and a gold one"
                     for column in empty]  # fmt: skip
        chosen = [c for c in chosen if c not in empty]
    return frame.set_index(frame[named].astype(str))[[gold, *chosen]], warnings


def _first_text(column: pd.Series) -> str:
    values = column.dropna()
    text = values[pd.to_numeric(values.astype(str), errors="coerce").isna()]
    return f" (the first such value is {text.iloc[0]!r}; leave missing scores empty)" if len(text) else ""


def _curves(fits: AgreementFits) -> pd.DataFrame | None:
    """Return agreement by gap for the first evaluators, up to the largest gap of each."""
    known = pd.DataFrame(fits.scores.scores.T, columns=fits.scores.evaluators)
    largest = known.max() - known.min()
    largest = largest[largest > 0].iloc[:_CURVES]
    if len(largest) == 0:
        return None
    grids = np.linspace(0, largest, _CURVE_POINTS + 1)[1:]
    curves = fits.only(largest.index).by_gap(np.unique(grids))
    mask = np.zeros(len(curves), bool)
    for evaluator, grid in zip(largest.index, grids.T, strict=True):
        mask |= (curves["evaluator"] == evaluator).to_numpy() & curves["delta"].isin(grid).to_numpy()
    return curves[mask].reset_index(drop=True)


def _ranking_rows(taus: pd.DataFrame, comparison: pd.DataFrame, few: int) -> pd.DataFrame:
    """Return evaluators, the best first: the tau of each over all its models, and how much better the best is."""
    overall = hide_few_pairs(taus[np.isinf(taus["delta"])], "tau", few).set_index("evaluator")
    best = comparison["evaluator"].iloc[0]
    others = hide_few_pairs(comparison[comparison["evaluator"] == best], "difference", few).set_index("other")
    tau, difference = pairs_cell("tau", " "), pairs_cell("difference", " ")
    rows = {
        "evaluator": [best, *others.index],
        "kendall tau": [tau(overall.loc[name]) for name in (best, *others.index)],
        "best less this": ["", *(difference(row) for _, row in others.iterrows())],
    }
    return pd.DataFrame(rows)


def _measure_rows(shown: pd.DataFrame) -> pd.DataFrame:
    """Return a row per evaluator: its measures, and of how many models they are."""
    named = shown.assign(measure=shown["measure"].str.replace("_", " "))
    measures = wide(named, "evaluator", "measure", lambda row: estimate(row, "value"))
    counts = shown.drop_duplicates("evaluator")[["n_models", "n_pairs", "n_missing"]].reset_index(drop=True)
    return measures.join(counts.rename(columns=lambda name: name.removeprefix("n_")))


def _improvement_cell(row: pd.Series) -> str:
    below, observed = (estimate(row[[name]], name) for name in ("average_below", "observed"))
    doubt = " (no line)" if row.get("lack_of_fit", False) else ""
    return (
        f"{estimate(row, 'probability')}{doubt}\nobserved {observed} ({row['n_observed']:,.0f})\n"
        f"below it {below} ({row['n_pairs']:,.0f})"
    )


def _collected(tables: dict[str, pd.DataFrame]) -> list[str]:
    """Return warnings of all tables; those of one alone name it."""
    by_table = {name: table.attrs.get("warnings", []) for name, table in tables.items()}
    times = Counter(sentence for sentences in by_table.values() for sentence in sentences)
    return [w if times[w] > 1 else f"{name}: {w}" for name, sentences in by_table.items() for w in sentences]


_VOTE_DELTAS = (2.0, 5.0, 10.0, 20.0)


def study_references(
    votes: FileName, *, references: Sequence[str], sets: Sequence[str], deltas: Sequence[float] | None,
    n_tiers: int | None, few_pairs: bool, drawn: dict[str, Any], labels: Labels | None = None, **options: Any,
) -> Answer:  # fmt: skip
    """Study references on the votes of a file; ``options`` are of `read_battles` and of `reference_study`."""
    columns = {"labels": labels, **{name: options.pop(name) for name in ("model_a", "model_b", "winner", "both_bad")}}
    kept = [options[name] for name in ("item", "cluster", "strata") if options[name]]
    battles = read_battles(votes, keep=kept, **columns)
    few = 0 if few_pairs else FEW_PAIRS
    study = reference_study(
        battles, references=[named_model(battles.models, name) for name in references] or None,
        sets={text: [named_model(battles.models, name.strip()) for name in text.split(",")] for text in sets} or None,
        deltas=deltas or _VOTE_DELTAS, n_tiers=n_tiers or min(TIERS, len(battles.models)), few_pairs=few, **options,
        **drawn,
    )  # fmt: skip
    names = ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_tier_and_test_tier", "by_budget", "by_set")

    singles = _reference_rows(study.by_reference, few)
    taus = wide(hide_few_pairs(study.by_tier, "tau", few), "tier", "delta", pairs_cell("tau"))
    changes = wide(study.by_tier_and_test_tier, "tier", "test_tier", _relative_cell)
    parts = [
        Part("Ranking by win rate against one reference", singles, "beside the ranking of all votes (misordered: share "
             "of pairs in the wrong order)", rows="reference", kept=("tau", "pairs")),
        Part("Close models", taus, "Kendall's tau-b of models whose win rates differ by less than delta points: means "
             "over the references of a tier (pairs)", rows="tier", more=True),
        Part("Mean rank change", changes, "% of the greatest possible, by tier of the reference (rows) and of the "
             "models ranked (columns); in places (references with enough pairs)", rows="tier", more=True),
        Part("Share of pairs in the wrong order, by votes of a model", _budget_rows(study.by_budget, few), "(pairs)",
             rows="set", more=True),
    ]  # fmt: skip
    if len(study.by_set):
        gains = wide(hide_few_pairs(study.by_set, "gain", few), "references", "budget", _set_cell)
        parts.append(Part("Several references", gains, "gain in tau over the same ones alone, on the same models, by "
                          "votes of a model; tau alone (pairs)", rows="set", more=True))  # fmt: skip
    return study.answer._replace(
        title=parts[0].title or "", notes=[str(battles.report)], parts=parts,
        tables={name: getattr(study, name) for name in names},
        figures=lambda: {
            "references": plots.plot_references(study), "tiers": plots.plot_reference_tiers(study),
            "budgets": plots.plot_reference_budgets(study),
        },
    )  # fmt: skip


def _reference_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """Return references, what fewer pairs than ``few`` stand behind left blank."""
    shown = table[["reference", "tier", "rank", "n_battles", "n_models", "n_pairs"]].copy()
    shown["n_battles"] = shown["n_battles"].map("{:,.6g}".format)  # weights need not be whole
    for name, form in (("tau", ".3f"), ("misordered", ".3f"), ("rank_change", ".1f")):
        rows = hide_few_pairs(table, name, few).iterrows()
        shown[name] = [estimate(row, name, form, between=" ") for _, row in rows]
    return shown.rename(columns=lambda name: name.removeprefix("n_"))


def _relative_cell(row: pd.Series) -> str:
    if np.isnan(row["relative_change"]):
        return "-"
    percent = row[["relative_change", "relative_change_lower", "relative_change_upper"]] * 100
    return f"{estimate(percent, 'relative_change', '.1f')}\n{row['rank_change']:.1f} ({row['n_references']:.0f})"


def _set_cell(row: pd.Series) -> str:
    if row["gain"] != row["gain"]:
        return "-"
    return f"{estimate(row, 'gain', '+.3f')}\n{row['tau_alone']:.3f} ({row['n_pairs']:,.0f})"


def _budget_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """Return single references by tier, and sets: the share of all pairs in the wrong order under every budget."""
    rows = hide_few_pairs(table[np.isinf(table["delta"])], "misordered", few)
    single = rows[rows["n_references"] == 1].dropna(subset=["tier", "misordered"])
    means = single.groupby(["tier", "budget"], as_index=False)[["misordered", "n_pairs"]].mean()
    means = means.assign(references=[f"one of tier {tier}, mean" for tier in means["tier"]])
    cells = pd.concat([rows[rows["n_references"] > 1], means], ignore_index=True)
    return wide(cells, "references", "budget", pairs_cell("misordered"))
