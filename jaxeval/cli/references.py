"""``jaxeval meta --votes FILE``: which references rank models as all votes do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.tables import (
    estimate,
    number_cell,
    one_line_cell,
    pairs_cell,
    say_all,
    say_settings,
    wide,
    write_results,
)
from jaxeval.cli.terminal import named_model, note, print_table, stdout_console

if TYPE_CHECKING:
    import pandas as pd

DELTAS = (2.0, 5.0, 10.0, 20.0)
BUDGETS, REPEATS = (25, 50, 100, 200), 10


def study_references(
    votes: Path,
    *,
    model_a: str | None,
    model_b: str | None,
    winner: str | None,
    both_bad: str | None,
    references: Sequence[str],
    sets: Sequence[str],
    budgets: Sequence[int] | None,
    repeats: int | None,
    cluster: str | None,
    item: str | None,
    deltas: Sequence[float] | None,
    tiers: int,
    few_pairs: bool,
    level: float,
    resamples: int,
    seed: int,
    checkpoint: Path | None,
    memory_limit: int | None,
    out: Path | None,
) -> None:
    """Reads the votes, studies references on them, writes and prints what is found."""
    from jaxeval.data.readers import read_battles
    from jaxeval.evaluators.few_pairs import FEW_PAIRS, hide_few_pairs
    from jaxeval.references.study import reference_study

    battles = read_battles(
        votes,
        model_a=model_a or "model_a",
        model_b=model_b or "model_b",
        winner=winner,
        keep=[name for name in (cluster, item) if name],
        both_bad=both_bad or "half",
    )
    few = 0 if few_pairs else FEW_PAIRS
    study = reference_study(
        battles,
        references=[named_model(battles.models, name) for name in references] or None,
        sets={text: [named_model(battles.models, name.strip()) for name in text.split(",")] for text in sets} or None,
        deltas=deltas or DELTAS,
        budgets=budgets or BUDGETS,
        n_tiers=tiers,
        n_repeats=repeats or REPEATS,
        n_resamples=resamples,
        seed=seed,
        level=level,
        cluster=cluster,
        item=item,
        few_pairs=few,
        memory_limit=memory_limit,
        checkpoint=checkpoint,
    )
    names = ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_tier_and_test_tier", "by_budget", "by_set")
    first_goes_on()
    if out is not None:
        from jaxeval.plots import references as plots

        figures = {
            "references": plots.plot_references(study),
            "tiers": plots.plot_reference_tiers(study),
            "budgets": plots.plot_reference_budgets(study),
        }
        write_results({name: getattr(study, name) for name in names}, figures, study.advice, out)
    console = stdout_console()
    print_table(console, _reference_rows(study.by_reference, few), "Ranking by win rate against one reference, "
                "beside the ranking of all votes (misordered: share of pairs in the wrong order)",
                one_line_cell)  # fmt: skip
    print_table(
        console,
        wide(hide_few_pairs(study.by_tier, "tau", few), "tier", "delta", pairs_cell("tau")),
        "Kendall's tau-b of models whose win rates differ by less than delta points: means over the references of a "
        "tier (pairs)",
        number_cell,
    )
    print_table(
        console,
        wide(study.by_tier_and_test_tier, "tier", "test_tier", _change_cell),
        "Mean rank change, % of the greatest possible, by tier of the reference (rows) and of the models ranked "
        "(columns); in places (references with enough pairs)",
        number_cell,
    )  # fmt: skip
    print_table(console, _budget_rows(study.by_budget, few), "Share of pairs in the wrong order, by votes of a model "
                "(pairs)", number_cell)  # fmt: skip
    if len(study.by_set):
        print_table(
            console,
            wide(hide_few_pairs(study.by_set, "gain", few), "references", "budget", _set_cell),
            "Several references: gain in tau over the same ones alone, on the same models, by votes of a model; tau "
            "alone (pairs)",
            number_cell,
        )
    note(console, battles.report)
    say_settings(console, item or cluster or "votes", resamples, level, seed)
    say_all(console, study.warnings, study.advice)


def _reference_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """References, what fewer pairs than ``few`` stand behind left blank."""
    from jaxeval.evaluators.few_pairs import hide_few_pairs

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

    from jaxeval.evaluators.few_pairs import hide_few_pairs

    rows = hide_few_pairs(table[np.isinf(table["delta"])], "misordered", few)
    single = rows[rows["n_references"] == 1].dropna(subset=["tier", "misordered"])
    means = single.groupby(["tier", "budget"], as_index=False)[["misordered", "n_pairs"]].mean()
    means = means.assign(references=[f"one of tier {tier}, mean" for tier in means["tier"]])
    cells = pd.concat([rows[rows["n_references"] > 1], means], ignore_index=True)
    return wide(cells, "references", "budget", pairs_cell("misordered"))
