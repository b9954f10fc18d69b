"""Rows of coverage from the results of every benchmark that simulates some, for `trust.py`. Nothing is simulated here.

A row has ``functions`` (public names whose intervals it is of), ``method``, ``case``, ``nominal``, ``observed``, its
``standard_error``, ``data_sets``, ``without_interval`` (a share), ``note``, ``section``, ``source`` and ``date``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coverage_rows import ASKED

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]

#: Public names with an interval or a level that have no row of their own, and why.
WITHOUT_A_ROW = {
    "CategoryFit": "its `interval` is that of `CategoryBoard` without draws, which is simulated",
    "JudgePanelFit": "closed form beside `JudgePanel`, whose draws are simulated",
    "CapabilityIndex": "simulated by a slow test of tests/capability: 90 % intervals of its own model",
    "HorizonTrend": "a line through `TimeHorizons`",
    "ParetoFront": "shares of the draws of other estimators; its claims are simulated in tests/capability",
    "PredictionPoweredFit": "closed form beside `PredictionPoweredBoard`, whose draws are simulated",
    "TimeHorizons": "simulated by slow tests of tests/capability; docs/time-horizons.md has six designs",
    "allocate_calibration": "plans labels: no interval",
    "audit": "combines the results of the other functions",
    "ModelFit": "its intervals are those of whatever model is brought; the fits have twins in those of Bradley-Terry",
    "capability_index": "as `CapabilityIndex`",
    "draws_of": "its intervals are those of whatever statistic is brought; their formulas have twins in NumPy",
    "every_eval_ever": "writes intervals of other functions",
    "fewest_votes": "counts votes; its level is that of the tiers of `bootstrap`",
    "joint_scores": "draws of the scores of `anchored_scores`, whose intervals are simulated",
    "item_report": "its level is that of the bound on p_negative; no interval is shown",
    "log_result": "tells another program intervals of other functions",
    "next_battles": "plans battles: no interval",
    "plan_scores": "plans items by the error of `compare_scores`: no interval",
    "pareto_front": "as `ParetoFront`",
    "score_gate": "the intervals and tests of `compare_scores`",
    "plan_votes": "predicts widths of intervals of `fit_bradley_terry`: no interval",
    "time_horizons": "as `TimeHorizons`",
    "write_eval_results": "writes intervals of other functions",
    "write_table": "writes intervals of other functions",
}


#: Below so many votes of a model its interval is by default that of a penalised fit.
FEW_VOTES = 200
#: Below so many items or clusters a board of scores warns.
FEW_ITEMS = 30
FEW = "a warning says that intervals from so few depend on how scores are distributed"
#: Starts of notes of what is wrong by its name, or shown on purpose beside what the library gives by default.
ON_PURPOSE = (
    ASKED,
    "uncorrected by its name",
    "presumes equal error rates",
    "not the default",
    "the form for equal pairs",
    "the paper's shrinkage",
    "tastes make the votes of a voter depend on each other",
)
#: A nominal .95 may be .94 to .975 before a verdict is passed; others by their standard deviation.
BELOW, ABOVE = 0.01, 0.025
#: Limits of methods whose goal is another one, by the beginnings of their names.
GOALS = {"Bradley-Terry of clusters": (0.935, 0.97)}
#: A verdict needs so many errors, with fewer the simulation is too small to tell; more for the worst of many cells.
ERRORS, ERRORS_OF_THE_WORST = 2, 3


def read(name: str) -> tuple[Any, str]:
    """Results of a benchmark and their date."""
    found = json.loads((RESULTS / f"{name}.json").read_text())
    return found, found["environment"]["date"]


def binomial(share: float, n: int, nominal: float) -> float:
    """The standard error of a share of ``n``; of the nominal one where it is 0 or 1."""
    p = nominal if share in (0, 1) else share
    return (p * (1 - p) / n) ** 0.5


def row(functions: str, method: str, case: str, observed: float, error: float | None, n: int, nominal: float = 0.95,
        without: float = 0.0, note: str = "") -> Row:  # fmt: skip
    """A row of one of the older benchmarks; without an ``error``, it is that of a yes or no a data set."""
    return {
        "functions": functions.split(), "method": method, "case": case, "nominal": nominal, "observed": observed,
        "standard_error": error or binomial(observed, n, nominal), "data_sets": n,
        "without_interval": without, "note": note,
    }  # fmt: skip


def few_battles() -> tuple[str, Iterator[Row]]:
    """Boards of few votes, by default and as asked for; no interval counts as a miss."""
    found, date = read("few_battles")
    designs = {"wins": "wins and losses", "ties": "a fourth tied", "prompts": "dependent prompts, drawn as clusters"}
    names = "bootstrap leaderboard fit_bradley_terry Bootstrap"

    def rows() -> Iterator[Row]:
        for cell in found["cells"]:
            auto = cell["interval"] == "auto"
            firth = ", Firth's penalty" if cell["penalty"] == "firth" else ""
            method = "by default" if auto else cell["interval"]
            notes = ["undefeated models have no interval, which counts as a miss"] if cell["without_interval"] else []
            case = f"8 models, {cell['battles']} votes a model, {designs[cell['design']]}"
            own = row(names, f"Bradley-Terry{firth}, {method}", case, cell["coverage"],
                      cell["standard_error"], cell["boards"], 0.95, cell["without_interval"])  # fmt: skip
            if cell["battles"] < FEW_VOTES and not auto:
                notes.append(ASKED)
            yield {**own, "note": "; ".join(notes), "date": cell["date"]}

    return date, rows()


def scores() -> tuple[str, Iterator[Row]]:
    """Mean scores, differences, benchmarks drawn anew and trials."""
    found, date = read("score_coverage")

    def rows() -> Iterator[Row]:
        for own in found["rows"]:
            names = "score_leaderboard" if own["regime"] != "difference" else "compare_scores compare_with_baseline"
            n = 1000 if own["regime"] != "difference" else 500
            method = (
                "paired difference of scores" if own["regime"] == "difference" else f"mean score, {own['regime']} new"
            )
            drawn = "benchmarks" if own["regime"] == "benchmarks" else "items"
            units = "clusters" if "clusters" in own["scores"] else drawn
            case = f"{own['scores']}, {own['units']} {units}"
            if own["regime"] == "items" and re.fullmatch(r"right or wrong, [\d.]+", own["scores"]):
                continue  # the part "shares" sums these
            each = row(names, method, case, own["coverage"], own["error"], n)
            if own["regime"] == "items" and own["units"] < FEW_ITEMS and verdict(each) == "too short":
                each["note"] = FEW
            yield each

    return date, rows()


def facets() -> tuple[str, Iterator[Row]]:
    """Differences of scores whose judges and prompts are drawn anew, beside intervals over items alone."""
    found, date = read("which_error")

    def rows() -> Iterator[Row]:
        for own in found["rows"]:
            lie = "" if own["cells"] == "crossed" else f", {own['cells']}"
            sds = own["spreads"][1:3]
            lie += "" if any(sds) else ", which have no effect"
            case = f"{own['items']:,} items x {own['judges']} judges x {own['prompts']} prompts{lie}"
            two = "a warning says how little two levels tell" if 2 in (own["judges"], own["prompts"]) else ""
            names = "error_budget compare_scores score_leaderboard"
            both = row(names, "difference, judges and prompts random", case, own["coverage"], None, own["data_sets"],
                       note=two)  # fmt: skip
            yield {**both, "date": own.get("date", date)}
            if any(sds):
                yield row(names, "difference, items alone", case, own["coverage_items"], None, own["data_sets"],
                          note="uncorrected by its name: judges and prompts are not declared")  # fmt: skip

    return date, rows()


def predicted() -> tuple[str, Iterator[Row]]:
    """Soft-Elo intervals for models without votes: over all cells, and in the worst of them."""
    found, date = read("forward_coverage")
    cells = [own for own in found["simulated"] if own["rule"] == "matched"]

    def rows() -> Iterator[Row]:
        for target, title in (("board", "the board's rating"), ("strength", "the true strength")):
            own = [cell for cell in cells if cell["target"] == target]
            some = [cell for cell in own if cell["standard_error"]]  # elsewhere all intervals held
            worst = min(some, key=lambda c: (c["coverage"] - c["expected"]) / c["standard_error"])
            case = f"worst of {len(own)} cells: {worst['judge']} judge, {worst['models']} models, bias {worst['bias']}"
            names = "SoftEloCalibration soft_elo"
            yield row(names, f"predicted interval for {title}", case, worst["coverage"], worst["standard_error"],
                      found["pools"], worst["expected"])  # fmt: skip
            mean = sum(cell["coverage"] for cell in own) / len(own)
            error = sum(cell["standard_error"] ** 2 for cell in own) ** 0.5 / len(own)
            expected = sum(cell["expected"] for cell in own) / len(own)
            yield row(names, f"predicted interval for {title}", f"mean of {len(own)} cells", mean, error,
                      found["pools"] * len(own), expected, note="expected of a finite pool")  # fmt: skip

    return date, rows()


def merged() -> tuple[str, Iterator[Row]]:
    """New models on the people's board: over all cells, and in the worst of them."""
    found, date = read("merged_coverage")
    names = "merge_boards"

    def rows() -> Iterator[Row]:
        for what in ("new", "anchor", "new less new", "new less anchor", "anchor less anchor"):
            error = f"{what}, standard error"
            whole = next(cell for cell in found["cells"] if cell["judge"] == "all")
            own = [cell for cell in found["cells"] if cell["judge"] != "all"]
            worst = min(own, key=lambda c: (c[what] - found["level"]) / c[error])
            yield row(names, f"merged board, {what}", f"mean of {len(own)} cells", whole[what], whole[error],
                      found["pools"], found["level"])  # fmt: skip
            if "new" in what:
                case = (
                    f"worst of {len(own)} cells: {worst['judge']} judge, {worst['models']} models, bias {worst['bias']}"
                )
                yield row(names, f"merged board, {what}", case, worst[what], worst[error], found["pools"],
                          found["level"])  # fmt: skip
                continue
            for n in sorted({cell["models"] for cell in own}):  # no judge moves what people alone rated
                alike = [cell for cell in own if cell["models"] == n]
                mean = sum(cell[what] for cell in alike) / len(alike)
                spread = sum(cell[error] ** 2 for cell in alike) ** 0.5 / len(alike)
                each = row(names, f"merged board, {what}", f"{n} models, some 200 votes each", mean, spread,
                           found["pools"] * len(alike), found["level"])  # fmt: skip
                yield {**each, "date": min(cell.get("anchors_date", date) for cell in alike)}

    return date, rows()


def ranks() -> tuple[str, Iterator[Row]]:
    """Whoever came first, and claims in closed form."""
    found, date = read("rank_claims")

    def rows() -> Iterator[Row]:
        for own in found["winners"]:
            case = f"{own['models']} models {own['gap_elo']:g} Elo apart, {own['votes']} votes"
            yield row("rank_evidence RankEvidence", "interval of whoever came first", case, own["zoom"], None,
                      found["boards"])  # fmt: skip
        for own in found["closed_form"]:
            case = f"12 models, {own['votes']} votes"
            n = max(found["boards"] // 5, 20)
            yield row("replication Replication", f"{own['claim']}, in closed form", case, own["closed_form"],
                      own["standard_error"], n)  # fmt: skip
            yield row("bootstrap", f"{own['claim']}, by resamples", case, own["resamples"], own["standard_error"], n)

    return date, rows()


def audits() -> tuple[str, Iterator[Row]]:
    """Looks, drift and voters: the chance of no false alarm."""
    found, date = read("odd_votes")

    def rows() -> Iterator[Row]:
        for cell in found["cells"]:
            n = cell["boards"]
            if cell["part"] == "looks":
                case = f"100 looks from {cell['first']} votes on, tuned for {cell['tuned_for']:g} Elo"
                yield row("anytime_intervals AnytimeIntervals", "held at all looks", case,
                          1 - cell["missed_anytime"], None, n)  # fmt: skip
            if cell["part"] == "drift" and not cell["step_elo"]:
                taste = f"tastes of {cell['taste']:g} logits" if cell["taste"] else "no tastes"
                case = f"{taste}, cluster: {cell['cluster'] or 'none'}"
                note = (
                    "tastes make the votes of a voter depend on each other: `cluster` corrects it"
                    if cell["taste"] and not cell["cluster"]
                    else ""
                )
                yield row("drift Drift", "no change is reported", case, 1 - cell["any_false"], None, n, note=note)
            elif cell["part"] == "drift":
                n_found = round(n * cell["found"])
                case = f"step of {cell['step_elo']} Elo, where it is found"
                yield row("drift Drift", "interval of the step that is largest", case, cell["held"], None, n_found)
            if cell["part"] == "voters" and cell["odd"] == "none":
                case = f"300 honest voters, tastes of {cell['taste']:g} logits"
                yield row("who_votes WhoVotes", "no voter is reported", case, 1 - cell["any_false_preference"], None, n)

    return date, rows()


def panels() -> tuple[str, Iterator[Row]]:
    """Judges without votes of people."""
    found, date = read("judge_panel")

    def rows() -> Iterator[Row]:
        for own in found["coverage"]:
            together = ", judges err together" if own["together"] else ""
            case = f"{own['judges']} judges, {own['items']} prompts{together}, {own['drawn']} resampled"
            note = "not the default; shown to compare" if own["drawn"] == "verdicts" else ""
            for what in ("difference", "discrimination", "side_bias"):
                yield row("fit_judge_panel JudgePanel", f"panel, {what.replace('_', ' ')}", case, own[what],
                          own[f"{what}_se"], found["panels"], note=note)  # fmt: skip

    return date, rows()


def few_votes() -> tuple[str, Iterator[Row]]:
    """Few votes and many verdicts."""
    found, date = read("few_votes")

    def rows() -> Iterator[Row]:
        names = "prediction_powered PredictionPoweredBoard"
        for own in found["coverage"]:
            pairs = "equal pairs" if own["equal_pairs"] else "pairs that differ in frequency"
            case = f"500 votes, 6,000 verdicts, 8 models, {pairs}"
            if own["samples"] == "people alone":
                yield row("bootstrap", "Bradley-Terry of the votes alone", "500 votes, 8 models", own["coverage"],
                          own["standard_error"], found["boards"])  # fmt: skip
                continue
            note = 'the form for equal pairs; `samples` is "by pair" by default' if own["samples"] == "pooled" else ""
            yield row(names, f"prediction-powered, {own['samples']}", case, own["coverage"], own["standard_error"],
                      found["boards"], note=note)  # fmt: skip
            yield row(names, f"worth of the judge, {own['samples']}", case, own["worth_in_interval"], None,
                      found["boards"], note=note)  # fmt: skip

    return date, rows()


def categories() -> tuple[str, Iterator[Row]]:
    """Categories that borrow."""
    found, date = read("small_categories")

    def rows() -> Iterator[Row]:
        for own in found["coverage"]:
            case = f"{own['battles']} votes of 53 models, spread of {own['true_spread_elo']:.0f} Elo"
            yield row("small_categories CategoryBoard CategoryBoards", "category that borrows", case, own["coverage"],
                      own["standard_error"], found["boards"])  # fmt: skip

    return date, rows()


#: Sections of the page, and the parts of `interval_coverage` or older benchmarks that fill them.
SECTIONS = {
    "Ratings from votes": (
        "plain", "voters", "schemes", "links", "ties", "covariates", "rankings", few_battles, "two_boards",
    ),
    "Few votes, judges, categories": (few_votes, panels, categories, predicted, merged, "conformal"),
    "Ranks and audits": (ranks, audits, "honest_boards"),
    "Judges' errors": (
        "published_study", "published_comparison", "accuracies_in_closed_form", "accuracies", "designs_of_calibrations",
        "clusters_of_answers", "shares_of_classes", "agreement",
    ),
    "Scores against a reference": ("anchored", "scores_of_runs", "reliability"),
    "Evaluators and references": ("correlations", "gaps", "tiers_and_separation", "references"),
    "Scores of items": ("shares", scores, facets, "scores_beside_a_baseline", "trials", "item_response"),
}  # fmt: skip


def rows() -> list[Row]:
    """All of them, by section."""
    parts, found = json.loads((RESULTS / "coverage.json").read_text()), []
    for section, sources in SECTIONS.items():
        for source in sources:
            if isinstance(source, str):
                name, date, own = "coverage", parts[source]["date"], iter(parts[source]["rows"])
            else:
                (date, own), name = source(), source.__name__
            found += [{"date": date, **each, "section": section, "source": name} for each in own]
    return found


def on_purpose(own: Row) -> bool:
    """Whether a row is of what is wrong by its name, or asked for beside the default."""
    return any(part.startswith(ON_PURPOSE) for part in own["note"].split("; "))


def verdict(own: Row) -> str:
    """What the row says of its interval: by its value, if there are data sets enough to tell."""
    p, error = own["nominal"], own["standard_error"]
    scale = (p * (1 - p) / (0.95 * 0.05)) ** 0.5
    off = own["observed"] - p
    limits = (p - BELOW * scale, p + ABOVE * scale)
    least, most = next((goal for start, goal in GOALS.items() if own.get("method", "").startswith(start)), limits)
    if least <= own["observed"] <= most or not off:
        return "as said"
    if abs(off) <= (ERRORS_OF_THE_WORST if own["case"].startswith("worst of") else ERRORS) * error:
        return "not settled"
    return "too short" if off < 0 else "longer than needed"
