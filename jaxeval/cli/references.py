"""``jaxeval meta --votes FILE``: which references rank models as all votes do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxeval import plots
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName
from jaxeval.show.cells import estimate, pairs_cell, wide
from jaxeval.show.shown import Answer, Part

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.labels import Labels


DELTAS = (2.0, 5.0, 10.0, 20.0)


def study_references(
    votes: FileName,
    *,
    references: Sequence[str],
    sets: Sequence[str],
    deltas: Sequence[float] | None,
    few_pairs: bool,
    drawn: dict[str, Any],
    labels: Labels | None = None,
    **options: Any,
) -> Answer:
    """Study references on the votes of a file; ``options`` are of `read_battles` and of `reference_study`."""
    from jaxeval.data.readers import read_battles
    from jaxeval.evaluators.model_scores import FEW_PAIRS, hide_few_pairs
    from jaxeval.lab.reference_study import reference_study

    columns = {"labels": labels, **{name: options.pop(name) for name in ("model_a", "model_b", "winner", "both_bad")}}
    kept = [options[name] for name in ("item", "cluster", "strata") if options[name]]
    battles = read_battles(votes, keep=kept, **columns)
    few = 0 if few_pairs else FEW_PAIRS
    study = reference_study(
        battles,
        references=[named_model(battles.models, name) for name in references] or None,
        sets={text: [named_model(battles.models, name.strip()) for name in text.split(",")] for text in sets} or None,
        deltas=deltas or DELTAS,
        few_pairs=few,
        **options,
        **drawn,
    )
    names = ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_tier_and_test_tier", "by_budget", "by_set")

    meaning = "beside the ranking of all votes (misordered: share of pairs in the wrong order)"
    singles = _reference_rows(study.by_reference, few)
    title = "Ranking by win rate against one reference"
    parts = [Part(title, singles, meaning, rows="reference", kept=("tau", "pairs"))]
    taus = wide(hide_few_pairs(study.by_tier, "tau", few), "tier", "delta", pairs_cell("tau"))
    meaning = (
        "Kendall's tau-b of models whose win rates differ by less than delta points: means over the references of a "
        "tier (pairs)"
    )
    parts.append(Part("Close models", taus, meaning, rows="tier", more=True))
    changes = wide(study.by_tier_and_test_tier, "tier", "test_tier", _change_cell)
    meaning = (
        "% of the greatest possible, by tier of the reference (rows) and of the models ranked (columns); in places "
        "(references with enough pairs)"
    )
    parts.append(Part("Mean rank change", changes, meaning, rows="tier", more=True))
    wrong = _budget_rows(study.by_budget, few)
    title = "Share of pairs in the wrong order, by votes of a model"
    parts.append(Part(title, wrong, "(pairs)", rows="set", more=True))
    if len(study.by_set):
        gains = wide(hide_few_pairs(study.by_set, "gain", few), "references", "budget", _set_cell)
        meaning = "gain in tau over the same ones alone, on the same models, by votes of a model; tau alone (pairs)"
        parts.append(Part("Several references", gains, meaning, rows="set", more=True))
    return study.answer._replace(
        title=parts[0].title or "",
        notes=[str(battles.report)],
        parts=parts,
        tables={name: getattr(study, name) for name in names},
        figures=lambda: {
            "references": plots.plot_references(study),
            "tiers": plots.plot_reference_tiers(study),
            "budgets": plots.plot_reference_budgets(study),
        },
    )


def _reference_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """References, what fewer pairs than ``few`` stand behind left blank."""
    from jaxeval.evaluators.model_scores import hide_few_pairs

    shown = table[["reference", "tier", "rank", "n_battles", "n_models", "n_pairs"]].copy()
    shown["n_battles"] = shown["n_battles"].map("{:,.6g}".format)  # weights need not be whole
    for name, form in (("tau", ".3f"), ("misordered", ".3f"), ("rank_change", ".1f")):
        rows = hide_few_pairs(table, name, few).iterrows()
        shown[name] = [estimate(row, name, form, between=" ") for _, row in rows]
    return shown.rename(columns=lambda name: name.removeprefix("n_"))


def _change_cell(row: pd.Series) -> str:
    if row["relative_change"] != row["relative_change"]:
        return "-"
    percent = row[["relative_change", "relative_change_lower", "relative_change_upper"]] * 100
    return f"{estimate(percent, 'relative_change', '.1f')}\n{row['rank_change']:.1f} ({row['n_references']:.0f})"


def _set_cell(row: pd.Series) -> str:
    if row["gain"] != row["gain"]:
        return "-"
    return f"{estimate(row, 'gain', '+.3f')}\n{row['tau_alone']:.3f} ({row['n_pairs']:,.0f})"


def _budget_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """Single references by tier, and sets: the share of all pairs in the wrong order under every budget."""
    import numpy as np
    import pandas as pd

    from jaxeval.evaluators.model_scores import hide_few_pairs

    rows = hide_few_pairs(table[np.isinf(table["delta"])], "misordered", few)
    single = rows[rows["n_references"] == 1].dropna(subset=["tier", "misordered"])
    means = single.groupby(["tier", "budget"], as_index=False)[["misordered", "n_pairs"]].mean()
    means = means.assign(references=[f"one of tier {tier}, mean" for tier in means["tier"]])
    cells = pd.concat([rows[rows["n_references"] > 1], means], ignore_index=True)
    return wide(cells, "references", "budget", pairs_cell("misordered"))
