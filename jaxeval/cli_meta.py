"""The command line of meta-evaluation: ``jaxeval meta FILE --gold COL`` and ``jaxeval meta --votes FILE``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.terminal import print_table, say, stdout_console

if TYPE_CHECKING:
    import pandas as pd

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SCORES_ONLY = ("gold", "model", "evaluators", "top", "improvements", "agreement")
_VOTES_ONLY = (
    "model_a",
    "model_b",
    "winner",
    "both_bad",
    "references",
    "sets",
    "budgets",
    "repeats",
    "cluster",
    "item",
)
_DELTAS = {"scores": (1.0, 2.0, 5.0, 10.0, 20.0), "votes": (2.0, 5.0, 10.0, 20.0)}
_BUDGETS, _REPEATS, _TOP, _AGREEMENT = (25, 50, 100, 200), 10, 5, 0.75
_CURVES, _CURVE_POINTS = 8, 16
_MOST_SENTENCES = 30
_LABELS: dict[str, Callable[[Any], str]] = {
    "delta": lambda delta: "all pairs" if delta == float("inf") else f"< {delta:g}",
    "tier": "tier {:g}".format,  # rows of numbers hold whole ones as floats
    "test_tier": "tier {:g}".format,
    "budget": "{:,.0f} votes".format,
}


class _Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers above 0, with commas between them."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(number > 0 for number in numbers):
            whole = "whole numbers" if self.kind is int else "numbers"
            self.fail(f"{value!r} is not a list of {whole} above 0, such as 2,5,10", param, ctx)
        return numbers


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--gold", metavar="COL", help="Column of FILE that holds the gold scores.")
@click.option("--model", metavar="COL", help="Column of models. [model; else the first of text]")
@click.option("--evaluator", "evaluators", multiple=True, metavar="COL",
              help="Column of an evaluator's scores; may be repeated. [all others of numbers]")  # fmt: skip
@click.option("--top", type=click.IntRange(1), metavar="K", help=f"How many models the top has. [{_TOP}]")
@click.option("--improvement", "improvements", multiple=True, type=click.FloatRange(0, min_open=True), metavar="DELTA",
              help="Points whose meaning is asked for; may be repeated.")  # fmt: skip
@click.option("--agreement", type=click.FloatRange(0.5, 1, min_open=True, max_open=True), metavar="P",
              help=f"Probability of agreement, for the smallest gap that has it. [{_AGREEMENT}]")  # fmt: skip
@click.option("--votes", type=_FILE, help="Votes between models: studies references instead of scores.")
@click.option("--model-a", metavar="COL", help="Columns of the votes. [model_a]")
@click.option("--model-b", metavar="COL", help="[model_b]")
@click.option("--winner", metavar="COL", help="[winner, or one-hot columns]")
@click.option("--both-bad", type=click.Choice(["half", "drop"]), help="Both-bad votes: ties, or left out. [half]")
@click.option(
    "--reference", "--references", "references", multiple=True, metavar="MODEL", help="May be repeated. [all models]"
)
@click.option("--set", "sets", multiple=True, metavar="A,B,...",
              help="References to use together; may be repeated. [by tiers]")  # fmt: skip
@click.option("--budgets", type=_Numbers(int, "N,N,..."), help="Votes of a model. [25,50,100,200]")
@click.option("--repeats", type=click.IntRange(1), metavar="N", help=f"Studies of every budget. [{_REPEATS}]")
@click.option("--cluster", metavar="COL", help="Resample whole clusters of votes: prompts, voters.")
@click.option("--item", metavar="COL",
              help="Prompts on which models met all references: budgets are numbers of them.")  # fmt: skip
@click.option("--deltas", type=_Numbers(float, "D,D,..."),
              help="Gaps under which models are close, in points. [1,2,5,10,20; of votes 2,5,10,20]")  # fmt: skip
@click.option("--tiers", default=4, show_default=True, type=click.IntRange(1), metavar="T")
@click.option("--few-pairs", is_flag=True, help="Also show what fewer than 15 pairs of models stand behind.")
@click.option(
    "--level", default=0.95, show_default=True, metavar="L", type=click.FloatRange(0, 1, min_open=True, max_open=True)
)
@click.option("--resamples", default=1000, show_default=True, type=click.IntRange(0), metavar="N",
              help="Of models, or of votes; 0 for no intervals.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="S")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Write CSVs, the advice and figures.")  # fmt: skip
def meta(file: Path | None, votes: Path | None, **options: Any) -> None:
    """Whether evaluators rank models as people do, close ones too.

    FILE has a row per model, a column of gold scores and a column per evaluator. With --votes, models are ranked by
    their votes against single references and sets of them, and compared with the ranking of all votes.
    """
    if (file is None) == (votes is None):
        raise click.UsageError("give a FILE of scores with --gold, or --votes FILE")
    foreign = [name for name in (_VOTES_ONLY if votes is None else _SCORES_ONLY) if options[name] not in (None, ())]
    if foreign:
        name = foreign[0].replace("_", "-")
        name = name.removesuffix("s") if name in ("references", "evaluators", "improvements", "sets") else name
        kind = "only with --votes" if votes is None else "only for a FILE of scores, not with --votes"
        raise click.UsageError(f"--{name} is {kind}")
    if votes is not None:
        _references(votes, **{name: options[name] for name in options if name not in _SCORES_ONLY})
    elif file is not None:
        _scores(file, **{name: options[name] for name in options if name not in _VOTES_ONLY})


def _scores(
    file: Path,
    *,
    gold: str | None,
    model: str | None,
    evaluators: Sequence[str],
    top: int | None,
    improvements: Sequence[float],
    agreement: float | None,
    deltas: Sequence[float] | None,
    tiers: int,
    few_pairs: bool,
    level: float,
    resamples: int,
    seed: int,
    out: Path | None,
) -> None:
    import numpy as np

    from jaxeval.meaningful_gaps import agreement_by_gap, smallest_gap
    from jaxeval.meta_advice import evaluator_advice
    from jaxeval.model_scores import FEW_PAIRS
    from jaxeval.rank_change import stratified_rank_change
    from jaxeval.rank_correlation import kendall_tau_delta, rank_agreement

    frame, warnings = _read_scores(file, gold, model, evaluators)
    drawn: dict[str, Any] = {"n_resamples": resamples, "level": level, "seed": seed}
    few = 0 if few_pairs else FEW_PAIRS
    wanted = agreement or _AGREEMENT
    margins = sorted({*(deltas or _DELTAS["scores"]), np.inf})
    tables = {
        "tau": kendall_tau_delta(frame, gold, margins, **drawn),
        "agreement": rank_agreement(frame, gold, top=top or _TOP, **drawn),
        "rank_change": stratified_rank_change(frame, gold, tiers, **drawn),
        "smallest_gap": smallest_gap(frame, gold, wanted, **drawn),
    }
    if improvements:
        tables["improvement"] = agreement_by_gap(frame, gold, sorted(set(improvements)), **drawn)
    advice = evaluator_advice(
        tables["tau"], tables["rank_change"], tables["smallest_gap"], tables.get("improvement"), few
    )
    # Files first: what is wrong with the terminal must not cost them.
    if out is not None:
        from jaxeval import meta_plots as plots

        figures = {
            "tau": plots.plot_tau_delta(tables["tau"], few),
            "rank_change": plots.plot_rank_change(tables["rank_change"]),
        }
        curves = _curves(frame, str(gold), drawn)
        if curves is not None:
            tables["curves"] = curves
            figures["curves"] = plots.plot_agreement(curves, wanted)
        _write(tables, figures, advice, out)
    console = stdout_console()
    print_table(
        console,
        _wide(tables["tau"], "evaluator", "delta", _pairs_cell("tau", few)),
        "Kendall's tau-b of models whose scores differ by less than delta points (pairs of models)",
        _cell,
    )
    shown = tables["agreement"].assign(measure=tables["agreement"]["measure"].str.replace("_", " "))
    wide = _wide(shown, "evaluator", "measure", lambda row: _estimate(row, "value"))
    counts = shown.drop_duplicates("evaluator")[["n_models", "n_pairs", "n_missing"]].reset_index(drop=True)
    title = f"All models; the top has {top or _TOP}; rank deviation in places"
    print_table(console, wide.join(counts.rename(columns=lambda name: name.removeprefix("n_"))), title, _cell)
    print_table(
        console,
        _wide(tables["rank_change"], "evaluator", "tier",
              lambda row: _estimate(row, "rank_change", ".1f", f" ({row['n_models']:,.0f})")),
        "Mean |rank - gold rank| by tier of gold (models)",
        _cell,
    )  # fmt: skip
    gaps = tables["smallest_gap"]
    named = ["evaluator", "delta", "lower", "upper", "largest_gap", "n_pairs", "reached_share", "status"]
    title = f"Smallest gap of scores at which gold agrees with probability {wanted:g}"
    print_table(console, gaps[[name for name in named if name in gaps]], title, _cell)
    if improvements:
        print_table(
            console,
            _wide(
                tables["improvement"],
                "evaluator",
                "delta",
                _improvement_cell,
                lambda delta: f"{delta:g} point{'s' * (delta != 1)}",
            ),
            "Probability that gold agrees, and average below",
            _cell,
        )
    console.print(f"{len(frame):,} models, {frame.shape[1] - 1:,} evaluators; gold is {gold}", style="dim",
                  highlight=False, markup=False)  # fmt: skip
    _say_settings(console, "models", resamples, level, seed)
    _say_all(console, [*warnings, *_collected(tables)], advice)


def _read_scores(
    file: Path, gold: str | None, model: str | None, evaluators: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """The gold column and those of evaluators, by model; and what was left out."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    from jaxeval.columns import DataError, require_column
    from jaxeval.readers import column_names, read_whole_table

    names = column_names(file)
    if gold is None:
        raise DataError(f"which column has the gold scores? Name it with --gold; there are {', '.join(names)}")
    named = model or ("model" if "model" in names else "")
    frame = read_whole_table(file, text=[named] if named else []).to_pandas()
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()  # Parquet files of pandas keep the index apart
    for column in (gold, *evaluators, *([named] if named else [])):
        require_column(frame, column)
    numeric = {name for name in frame if is_numeric_dtype(frame[name]) or frame[name].isna().all()}
    if not named:
        text = [name for name in frame if name not in numeric and name != gold]
        if not text:
            raise DataError(f"{file.name} has no column of text: which one names the models? Name it with --model")
        named = text[0]
    lacking = frame[named].isna()
    warnings = []
    if lacking.any():
        warnings.append(f"{lacking.sum():,} rows without a model in column {named!r} are left out")
        frame = frame[~lacking]
    for column in (gold, *evaluators):
        if column not in numeric:
            raise DataError(f"column {column!r} is not numeric{_first_text(frame[column])}")
    chosen = list(dict.fromkeys(evaluators)) or [c for c in frame if c in numeric and c not in (gold, named)]
    if not chosen:
        raise DataError(f"{file.name} has no column of numbers besides {gold!r}: there is no evaluator")
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
    import pandas as pd

    values = column.dropna()
    text = values[pd.to_numeric(values.astype(str), errors="coerce").isna()]
    return f" (the first such value is {text.iloc[0]!r}; leave missing scores empty)" if len(text) else ""


def _curves(frame: pd.DataFrame, gold: str, drawn: dict[str, Any]) -> pd.DataFrame | None:
    """Agreement by gap for the first evaluators, up to the largest gap of each."""
    import numpy as np

    from jaxeval.meaningful_gaps import agreement_by_gap

    scored = frame[frame[gold].notna()].drop(columns=gold)
    largest = scored.max() - scored.min()
    largest = largest[largest > 0].iloc[:_CURVES]
    if len(largest) == 0:
        return None
    grids = np.linspace(0, largest, _CURVE_POINTS + 1)[1:]
    curves = agreement_by_gap(frame[[gold, *largest.index]], gold, np.unique(grids), **drawn)
    own = np.zeros(len(curves), bool)
    for evaluator, grid in zip(largest.index, grids.T, strict=True):
        own |= (curves["evaluator"] == evaluator).to_numpy() & curves["delta"].isin(grid).to_numpy()
    return curves[own].reset_index(drop=True)


def _references(
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
    out: Path | None,
) -> None:
    from jaxeval.model_scores import FEW_PAIRS
    from jaxeval.readers import read_battles
    from jaxeval.reference_study import reference_study

    battles = read_battles(
        votes,
        model_a=model_a or "model_a",
        model_b=model_b or "model_b",
        winner=winner,
        keep=[name for name in (cluster, item) if name],
        both_bad=both_bad or "half",
    )
    study = reference_study(
        battles,
        references=[_model(battles.models, name) for name in references] or None,
        sets={text: [_model(battles.models, name.strip()) for name in text.split(",")] for text in sets} or None,
        deltas=deltas or _DELTAS["votes"],
        budgets=budgets or _BUDGETS,
        n_tiers=tiers,
        n_repeats=repeats or _REPEATS,
        n_resamples=resamples,
        seed=seed,
        level=level,
        cluster=cluster,
        item=item,
    )
    few = 0 if few_pairs else FEW_PAIRS
    names = ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_tier_and_test_tier", "by_budget")
    if out is not None:
        from jaxeval import reference_plots as plots

        figures = {
            "references": plots.plot_references(study),
            "tiers": plots.plot_reference_tiers(study),
            "budgets": plots.plot_reference_budgets(study),
        }
        _write({name: getattr(study, name) for name in names}, figures, study.advice, out)
    console = stdout_console()
    print_table(console, _reference_rows(study.by_reference, few), "Ranking by win rate against one reference, "
                "beside the ranking of all votes (misordered: share of pairs in the wrong order)", _cell)  # fmt: skip
    print_table(
        console,
        _wide(study.by_tier, "tier", "delta", _pairs_cell("tau", few)),
        "Kendall's tau-b of models whose win rates differ by less than delta points: means over the references of a "
        "tier (pairs)",
        _cell,
    )
    print_table(
        console,
        _wide(study.by_tier_and_test_tier, "tier", "test_tier", lambda row: _estimate(row, "rank_change", ".1f")),
        "Mean rank change, in places, by tier of the reference (rows) and of the models ranked (columns)",
        _cell,
    )  # fmt: skip
    print_table(console, _budget_rows(study.by_budget, few), "Share of pairs in the wrong order, by votes of a model "
                "(pairs)", _cell)  # fmt: skip
    console.print(str(battles.report), style="dim", highlight=False, markup=False)
    _say_settings(console, item or cluster or "votes", resamples, level, seed)
    _say_all(console, study.warnings, study.advice)


def _model(models: pd.Index, name: str) -> Any:
    """The model as the file has it: models may be named by numbers, which the command line cannot tell from text."""
    alike = [model for model in models if str(model) == name]
    return alike[0] if len(alike) == 1 else name


def _reference_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """References, what fewer pairs than ``few`` stand behind left blank."""
    shown = table[["reference", "tier", "rank", "n_battles", "n_models", "n_pairs"]].copy()
    shown["n_battles"] = shown["n_battles"].map("{:,.6g}".format)  # weights need not be whole
    enough = table["n_pairs"] >= few
    for name, form in (("tau", ".3f"), ("misordered", ".3f"), ("rank_change", ".1f")):
        cells = [_estimate(row, name, form, between=" ") for _, row in table.iterrows()]
        shown[name] = [cell if there else "-" for cell, there in zip(cells, enough, strict=True)]
    return shown.rename(columns=lambda name: name.removeprefix("n_"))


def _budget_rows(table: pd.DataFrame, few: int) -> pd.DataFrame:
    """Single references by tier, and sets: the share of all pairs in the wrong order under every budget."""
    import numpy as np
    import pandas as pd

    rows = table[np.isinf(table["delta"])]
    single = rows[rows["n_references"] == 1].dropna(subset="tier")
    means = single.groupby(["tier", "budget"], as_index=False)[["misordered", "n_pairs"]].mean()
    means = means.assign(references=[f"one of tier {tier}, mean" for tier in means["tier"]])
    cells = pd.concat([rows[rows["n_references"] > 1], means], ignore_index=True)
    return _wide(cells, "references", "budget", _pairs_cell("misordered", few))


def _wide(
    table: pd.DataFrame, rows: str, columns: str, cell: Callable[[Any], str], label: Callable[[Any], str] | None = None
) -> pd.DataFrame:
    """A row per value of ``rows`` and a column per value of ``columns``, the cells as text."""
    import pandas as pd

    name = label or _LABELS.get(columns, str)
    found: dict[Any, dict[str, Any]] = {}
    for _, row in table.iterrows():
        first = _LABELS.get(rows, str)(row[rows])
        found.setdefault(first, {rows: first})[name(row[columns])] = cell(row)
    return pd.DataFrame(list(found.values()))


def _pairs_cell(name: str, few: int) -> Callable[[Any], str]:
    def cell(row: Any) -> str:
        n = 0 if row["n_pairs"] != row["n_pairs"] else row["n_pairs"]
        return _estimate(row, name, count=f" ({n:,.0f})") if n >= few else f"- ({n:,.0f})"

    return cell


def _estimate(row: Any, name: str, form: str = ".3f", count: str = "", between: str = "\n") -> str:
    """A cell of a number and, on the next line, its interval; a dash where there is none."""
    if row[name] != row[name]:
        return f"-{count}"
    own = f"{name}_" if f"{name}_lower" in row else ""
    lower, upper = row.get(f"{own}lower", float("nan")), row.get(f"{own}upper", float("nan"))
    short = ".1f" if form == ".1f" else ".2f"
    ends = "" if lower != lower else f"{between}[{lower:{short}}, {upper:{short}}]"
    return f"{row[name]:{form}}{count}{ends}"


def _improvement_cell(row: Any) -> str:
    below = _estimate(row[["average_below"]], "average_below")
    return f"{_estimate(row, 'probability')}\nbelow it {below} ({row['n_pairs']:,.0f})"


def _collected(tables: dict[str, pd.DataFrame]) -> list[str]:
    """Warnings of all tables; those of one alone name it."""
    by_table = {name: table.attrs.get("warnings", []) for name, table in tables.items()}
    times = Counter(sentence for own in by_table.values() for sentence in own)
    return [w if times[w] > 1 else f"{name}: {w}" for name, own in by_table.items() for w in own]


def _say_settings(console: Any, drawn: str, resamples: int, level: float, seed: int) -> None:
    text = f"{100 * level:g}% intervals, {resamples:,} resamples of {drawn}, seed {seed}"
    console.print(text if resamples else "no resamples, so no intervals", style="dim", highlight=False, markup=False)


def _say_all(console: Any, warnings: Sequence[str], advice: Sequence[str]) -> None:
    for sentence in dict.fromkeys(warnings):
        say(console, f"warning: {sentence}", "yellow")
    for sentence in advice[:_MOST_SENTENCES]:
        say(console, f"* {sentence}", "cyan")
    if len(advice) > _MOST_SENTENCES:
        say(console, f"* and {len(advice) - _MOST_SENTENCES:,} more: --out writes all to advice.txt", "cyan")


def _write(tables: dict[str, pd.DataFrame], figures: dict[str, Any], advice: Sequence[str], out: Path) -> None:
    from jaxeval.figure_style import save_figures

    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(out / f"{name}.csv", index=False)
    (out / "advice.txt").write_text("".join(f"{sentence}\n" for sentence in advice), encoding="utf-8")
    save_figures(figures, out)
    click.echo(f"wrote {len(tables)} tables, {len(figures)} figures and advice.txt to {out}", err=True)


def _cell(name: Any, value: Any) -> str:
    if isinstance(value, float):
        form = ".2f" if str(name) == "reached_share" else ".4g"
        return "-" if value != value else "never" if value == float("inf") else f"{value:{form}}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
