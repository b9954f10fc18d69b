"""Coverage of what corrects and describes judges: accuracies, comparisons, agreement, anchored scores, reliability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from coverage_rows import Row, exact, inside, part, row
from scipy.stats import binom

import jaxeval
from jaxeval.accuracy.belief import believed, shifted
from jaxeval.accuracy.model_comparison import compare
from jaxeval.lab.accuracy_studies import comparison_study, coverage_study

Q0, Q1, THETA = 0.8, 0.9, 0.7
ACCURACY = ("judge_accuracy", "JudgeAccuracy")
COMPARISON = ("compare_models", "ModelComparison")
#: Estimators that are shown beside the corrected ones, and why theirs may miss.
NOTES = {
    "naive": "uncorrected by its name: the judge's bias stays, and `believe` is never set",
    "rogan_gladen_shared": "presumes equal error rates; the report warns where they differ",
    "ppi_plus_plus_half, resamples": "a draw is of one half; the estimate is the median over halves, which varies less",
}


KAPPA = "the paper's shrinkage, 1 unless asked for, and printed as what it is"


def judged(rng: np.random.Generator, n: int, accuracy: float = THETA, q0: float = Q0, q1: float = Q1) -> Any:
    """Labels and a judge's verdicts of ``n`` answers."""
    label = (rng.random(n) < accuracy).astype(float)
    return label, (rng.random(n) < np.where(label == 1, q1, 1 - q0)).astype(float)


@part(10_000)
def published_study(n: int) -> list[Row]:
    """The 168 settings of arXiv:2511.21140: the setting that holds least, and the one that holds most."""
    judges = np.array([(0.7, 0.7), (0.7, 0.9), (0.9, 0.7), (0.9, 0.9)])
    theta = (np.arange(21) / 20)[:, None, None]
    found = coverage_study(theta, judges[:, 0, None], judges[:, 1, None], 1000, np.array([200, 500]), replications=n)
    rows = []
    for method, title in (("rogan_gladen", "equal split"), ("rogan_gladen_adaptive", "Algorithm 1")):
        own = found[found["method"] == method].sort_values("coverage")["coverage"]
        for which, share in (("least of", own.iloc[0]), ("most of", own.iloc[-1])):
            case = f"{which} 168 settings, 1,000 answers, 200 or 500 labels"
            held = np.repeat([1.0, 0.0], [round(share * n), n - round(share * n)])
            rows.append(row("rogan_gladen", f"Rogan-Gladen, {title}", case, held))
    return rows


@part(20_000)
def published_comparison(n: int) -> list[Row]:
    """The design of Figure 1 of arXiv:2605.06939: accuracies .7 and .75, the labels of A shared."""
    rows = []
    for j, delta in ((0.3, 0.0), (0.3, 0.3), (0.7, 0.05)):
        found = comparison_study(j, delta, replications=n).set_index("estimator")["coverage"]
        for name, share in found.items():
            held = np.repeat([1.0, 0.0], [round(share * n), n - round(share * n)])
            case = f"J of A {j:g}, that of B {delta:g} more; 1,000 answers, 400 labels"
            rows.append(
                row(COMPARISON, f"difference of accuracies, {name}, closed form", case, held, note=NOTES.get(name, ""))
            )
    return rows


@part(2000)
def accuracies_in_closed_form(n: int) -> list[Row]:
    """PPI++ and Youden's J."""
    rng, held, graded = np.random.default_rng(0), [], []
    for _ in range(n):
        label, verdict = judged(rng, 500)
        found = jaxeval.ppi_plus_plus(label[:100], verdict[:100], verdict[100:])
        held.append(found.lower <= THETA <= found.upper)
        score = verdict + rng.normal(0, 0.5, 500)
        found = jaxeval.ppi_plus_plus(label[:100], score[:100], score[100:])
        graded.append(found.lower <= THETA <= found.upper)
    case = "100 labels, 400 answers, q0 = .8, q1 = .9, accuracy .7"
    rows = [
        row("ppi_plus_plus", "PPI++, a judge of verdicts", case, np.array(held, float)),
        row("ppi_plus_plus", "PPI++, a judge of scores", case, np.array(graded, float)),
    ]
    for m in (20, 50, 200):
        right = np.arange(m + 1)
        q0, q1 = (each.ravel() / m for each in np.meshgrid(right, right))
        found = jaxeval.youden_j(q0, q1, m, m)
        ends = pd.DataFrame({"lower": found.lower, "upper": found.upper})
        chance = np.outer(binom.pmf(right, m, Q1), binom.pmf(right, m, Q0))  # rows are q1, as in the mesh
        case = f"{m} labels of each class"
        rows.append(exact("youden_j", "Youden's J", case, inside(ends, Q0 + Q1 - 1), chance))
    return rows


def answers(rng: np.random.Generator, n_sets: int, n: int, accuracy: float, of: int, shared: Any) -> pd.DataFrame:
    """Answers of two models to ``n`` items of each data set, half of which are as hard for one as for the other."""
    together, alike = rng.random((n_sets, n)), rng.random((n_sets, n)) < 0.5
    frames = []
    for model, (q0, q1) in enumerate(shared):
        own = accuracy + 0.05 * model
        label = (np.where(alike, together, rng.random((n_sets, n))) < own).astype(float)
        verdict = (rng.random((n_sets, n)) < np.where(label == 1, q1, 1 - q0)).astype(float)
        item = np.arange(n_sets * n) + of
        study = np.repeat(np.arange(n_sets), n)
        frames.append(
            pd.DataFrame(
                {"item": item, "study": study, "model": f"m{model}", "human": label.ravel(), "judge": verdict.ravel()}
            )
        )
    return pd.concat(frames, ignore_index=True)


@part(2_000)
def accuracies(n: int) -> list[Row]:
    """Every estimator of an accuracy and of a difference: the closed form and the resamples."""
    rng = np.random.default_rng(5)
    rates = ((0.8, 0.9), (0.8, 0.9))
    options: Any = {"judgment": "judge", "label": "human", "model": "model", "item": "item", "keep": ["study"]}
    calibration = jaxeval.JudgedAnswers.from_pandas(answers(rng, n, 100, 0.7, 0, rates), **options)
    test = jaxeval.JudgedAnswers.from_pandas(answers(rng, n, 400, 0.7, n * 100, rates), **options)
    own: Any = {"by": "study", "n_resamples": 1000, "n_halves": 10, "progress": False}
    rows, case = [], "100 labels, 400 answers, q0 = .8, q1 = .9"
    table = jaxeval.judge_accuracy(calibration, test, **own).table.query("slice != 'all'")
    for estimator, found in table.groupby("estimator", sort=False):
        truth = 0.7 + 0.05 * (found["model"] == "m1").to_numpy()
        rows += both_kinds(ACCURACY, "accuracy", estimator, case, found, truth)
    table = jaxeval.compare_models(calibration, test, ("m1", "m0"), **own).table.query("slice != 'all'")
    for estimator, found in table.groupby("estimator", sort=False):
        rows += both_kinds(COMPARISON, "difference of accuracies", estimator, case, found, np.full(len(found), 0.05))
    return rows


#: Designs of a calibration, and the declaration that is true. The test has 1,000 answers unless it says otherwise.
DESIGNS: dict[str, str] = {
    "60 labels of each class": "by label",
    "100 labels of each class": "by label",
    "50 labels of each class, of 400 answers that are the test": "by label",
    "20 labels, then 180 by Algorithm 1": "by label",
    "200 labels of another day, whose accuracies are .05 lower": "borrowed",
    "200 labels, a random part": "random",
    "100 labels, a random part": "random",
    "200 labels, a random part, accuracies .95 and .9": "random",
}


def calibrated(
    rng: np.random.Generator, n_sets: int, design: str, accuracy: float
) -> tuple[jaxeval.JudgedAnswers, jaxeval.JudgedAnswers]:
    """Calibration and test of a model in every data set; the sets are called models, whose answers are their own."""
    m0 = m1 = np.full(n_sets, int(design.split()[0]))
    if "Algorithm" in design:
        q0, q1, p = (rng.binomial(n, x, n_sets) / n for n, x in ((10, Q0), (10, Q1), (1000, passed(accuracy))))
        plan = jaxeval.allocate_calibration(200, p, q0, q1, pilot0=10)
        m0, m1 = np.asarray(plan.m0), np.asarray(plan.m1)
        pilot = np.stack([q0, q1], 1)
    of_all = "are the test" in design
    n_test = 400 if of_all else 1000
    label = (rng.random((n_test, n_sets)) < accuracy).astype(float)
    verdict = (rng.random(label.shape) < np.where(label == 1, Q1, 1 - Q0)).astype(float)
    if of_all:
        chosen = [label == y for y in (0.0, 1.0)]
        chosen = [own & (own.cumsum(0) <= 50) for own in chosen]
        human = np.where(chosen[0] | chosen[1], label, np.nan)
        known, judged, first = human, verdict, 0
    else:
        most = int((m0 + m1).max())
        place = np.arange(most)[:, None]
        known = np.where(place < m1, 1.0, np.where(place < m0 + m1, 0.0, np.nan))
        if "random" in design or "another day" in design:
            share = accuracy - 0.05 * ("another day" in design)
            known = (rng.random((int(m0[0]), n_sets)) < share).astype(float)
        judged = (rng.random(known.shape) < np.where(known == 1, Q1, 1 - Q0)).astype(float)
        if "Algorithm" in design:  # the pilot's labels are among the others
            own = place < np.round(10 * pilot[:, 1])
            judged = np.where(place < 10, own, judged)
            back = place - m1
            judged = np.where((back >= 0) & (back < 10), back >= np.round(10 * pilot[:, 0]), judged)
        first = n_test
    return answers_of(known, judged, first), answers_of(np.full(verdict.shape, np.nan), verdict, 0)


def passed(accuracy: float) -> float:
    """The share of answers that the judge passes."""
    return accuracy * Q1 + (1 - accuracy) * (1 - Q0)


def answers_of(label: Any, verdict: Any, first: int) -> jaxeval.JudgedAnswers:
    """Judged answers of (N, M) labels and verdicts; items are numbered from ``first`` on."""
    n, m = label.shape
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n) + first, m),
            "model": np.tile(np.arange(m), n),
            "human": label.ravel(),
            "judge": verdict.astype(float).ravel(),
        }
    )
    if first:  # items without a label are no part of a calibration
        frame = frame[frame["human"].notna()]
    return jaxeval.JudgedAnswers.from_pandas(frame, judgment="judge", label="human", model="model", item="item")


@part(1000)
def designs_of_calibrations(n: int) -> list[Row]:
    """The believed interval of an accuracy and of a difference, where the design is declared and where it is not."""
    rows = []
    for number, (design, true) in enumerate(DESIGNS.items()):
        rng = np.random.default_rng([51, number])
        accuracy = (0.95, 0.9) if "accuracies .95" in design else (0.8, 0.7)
        parts = [calibrated(rng, n, design, own) for own in accuracy]
        calibration, test = (beside(*both) for both in zip(*parts, strict=True))
        pairs = [(k, n + k) for k in range(n)]
        found = jaxeval.judge_accuracy(
            calibration,
            test,
            sampling=true,
            n_resamples=2,
            n_halves=1,
            progress=False,  # type: ignore[arg-type]
        )
        for sampling in (true, None):
            # What is believed is all that a declaration changes.
            part = found.slices[""]
            shift = shifted(part.judged.total, part.judged.data)
            status = {name: own["status"].to_numpy()[:, None] for name, own in found.table.groupby("estimator")}
            mark = believed(status, shift, sampling).astype(object)  # type: ignore[arg-type]
            marked = found.table["estimator"].to_numpy() == np.repeat(mark[:, 0], len(status))
            own = compare(replace(found, table=found.table.assign(believe=marked)), pairs, labels_of_b=False)
            said = f'declared "{sampling}"' if sampling else "not declared"
            for functions, what, table, name, truth in (
                (ACCURACY, "accuracy", own.accuracy.table, "model", np.where(found.table["model"] < n, *accuracy)),
                (COMPARISON, "difference of accuracies", own.table, "model_a", accuracy[0] - accuracy[1]),
            ):
                held = pd.Series(np.where(table["believe"], inside(table, truth), np.nan))
                held = held.groupby(table[name].to_numpy()).max().to_numpy().reshape(-1, n).T
                rows.append(row(functions, f"{what}, the believed interval", f"{design}; {said}", held))
    return rows


def beside(one: jaxeval.JudgedAnswers, other: jaxeval.JudgedAnswers) -> jaxeval.JudgedAnswers:
    """The models of both on the same items; those of the second are numbered after those of the first."""
    frames = [
        pd.DataFrame(
            {
                "item": np.repeat(own.items.to_numpy(), len(own.models)),
                "model": np.tile(own.models.to_numpy() + place, len(own.items)),
                "human": own.label.ravel(),
                "judge": own.judgment[..., 0].ravel(),
            }
        )
        for own, place in ((one, 0), (other, len(one.models)))
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame = frame[frame["judge"].notna()]
    return jaxeval.JudgedAnswers.from_pandas(frame, judgment="judge", label="human", model="model", item="item")


@part(1000)
def clusters_of_answers(n: int) -> list[Row]:
    """Passages whose answers are right, and are judged well, more or less often: PPI++ and Rogan-Gladen."""
    rows = []
    for number, (n_passages, size, chosen) in enumerate(((60, 8, "items"), (60, 8, "passages"), (20, 20, "passages"))):
        rng = np.random.default_rng([52, number])
        m = n_passages * size
        spread = [
            rng.beta(4 * x, 4 * (1 - x), (n_passages, n)).repeat(size, 0) for x in (THETA, Q1, Q0)
        ]  # an intra-passage correlation of .2
        label = (rng.random((m, n)) < spread[0]).astype(float)
        verdict = np.where(label == 1, rng.random((m, n)) < spread[1], rng.random((m, n)) > spread[2])
        known = rng.permutation(m) < m // 3 if chosen == "items" else np.arange(m) < m // 3 // size * size
        frame = pd.DataFrame(
            {
                "item": np.repeat(np.arange(m), n),
                "passage": np.repeat(np.arange(m) // size, n),
                "model": np.tile(np.arange(n), m),
                "human": np.where(known[:, None], label, np.nan).ravel(),
                "judge": verdict.astype(float).ravel(),
            }
        )
        answers = jaxeval.JudgedAnswers.from_pandas(
            frame, judgment="judge", label="human", model="model", item="item", keep=["passage"]
        )
        found = jaxeval.judge_accuracy(
            *answers.by_label("random"), cluster="passage", n_resamples=2, n_halves=1, progress=False
        ).table
        for estimator in ("ppi_plus_plus", "rogan_gladen"):
            own = found[(found["estimator"] == estimator) & found["status"].isin(["ok", "clipped"])]
            case = f"{n_passages} passages of {size} answers, a third of the {chosen} labelled"
            rows.append(row(ACCURACY, f"accuracy, {estimator}, clusters, closed form", case, inside(own, THETA)))
    return rows


def both_kinds(functions: Any, what: str, estimator: str, case: str, found: pd.DataFrame, truth: Any) -> list[Row]:
    """Rows of the closed form, if there is one, and of the resamples."""
    rows = []
    kinds = {"closed form": ("lower", "upper"), "resamples": ("boot_lower", "boot_upper")}
    for kind, names in kinds.items():
        if found[names[0]].notna().any():
            held = pd.Series(inside(found, truth, names)).groupby(found["slice"].to_numpy()).mean()
            note = NOTES.get(f"{estimator}, {kind}", NOTES.get(estimator, ""))
            rows.append(row(functions, f"{what}, {estimator}, {kind}", case, held.to_numpy(), note=note))
    return rows


@part(500)
def shares_of_classes(n: int) -> list[Row]:
    """Three classes, of which the judge gets 80 % right."""
    share = np.array([0.5, 0.3, 0.2])
    closed, drawn = [], []
    for number in range(n):
        rng = np.random.default_rng([31, number])
        true = rng.choice(3, 700, p=share)
        said = np.where(rng.random(700) < 0.8, true, (true + rng.integers(1, 3, 700)) % 3)
        names = np.array(list("abc"))
        found = jaxeval.class_shares(names[true[:200]], names[said[:200]], names[said[200:]], n_resamples=500)
        table = found.table.loc[list("abc")]
        closed.append(inside(table, share))
        drawn.append(inside(table, share, ("boot_lower", "boot_upper")))
    case = "3 classes, 200 labels, 500 answers"
    return [
        row("class_shares", "shares of classes, closed form", case, closed),
        row("class_shares", "shares of classes, resamples", case, drawn),
    ]


@part(2_000)
def agreement(n: int) -> list[Row]:
    """Agreement and Cohen's kappa of a judge who repeats people in 6 of 10 verdicts and else tosses a coin."""
    names = np.array(["model_a", "model_b"])
    held: dict[str, list[Any]] = {"agreement": [], "kappa": []}
    for number in range(n):
        rng = np.random.default_rng([41, number])
        human = names[rng.integers(0, 2, 100)]
        judge = np.where(rng.random(100) < 0.6, human, names[rng.integers(0, 2, 100)])
        table = pd.DataFrame({"item": range(100), "model_a": "x", "model_b": "y", "human": human, "judge": judge})
        found = jaxeval.judge_agreement(table, "human", judges=["judge"], item="item", n_resamples=500, progress=False)
        own = found.table.set_index("judge").loc[["judge"]]
        for name, true in (("agreement", 0.8), ("kappa", 0.6)):
            held[name].append(inside(own, true, (f"{name}_lower", f"{name}_upper")))
    names_ = ("judge_agreement", "JudgeAgreement")
    return [row(names_, f"{name} with people", "100 votes", each) for name, each in held.items()]


@part(20_000)
def anchored(n: int) -> list[Row]:
    """Beta intervals of win probabilities against a reference."""
    rng, rows = np.random.default_rng(6), []
    names = ("anchored_elo", "AnchoredElo", "anchored_scores")

    def add(method: str, case: str, found: Any, truth: Any, ends: str = "probability", note: str = "") -> None:
        table = pd.DataFrame(
            {"lower": getattr(found, f"{ends}_lower").ravel(), "upper": getattr(found, f"{ends}_upper").ravel()}
        )
        rows.append(row(names, method, case, inside(table, truth), note=note))

    for size in (40, 160):
        for p in (0.5, 0.9):
            wins = np.arange(size + 1)
            found = jaxeval.anchored_elo(wins, 0, size - wins)
            ends = pd.DataFrame({"lower": found.probability_lower, "upper": found.probability_upper})
            case = f"{size} prompts, no ties, p = {p:g}"
            chance = binom.pmf(wins, size, p)
            rows.append(exact(names, "anchored score, Beta interval", case, inside(ends, p), chance))
    drawn = rng.multinomial(160, [0.35, 0.4, 0.25], n)
    found = jaxeval.anchored_elo(*drawn.T)
    add("anchored score, Beta interval", "160 prompts, 40 % ties", found, 0.55)
    add("anchored score, own interval of the prompts", "160 prompts, 40 % ties", found, 0.55, "own")
    p = rng.beta(0.5, 0.5, n)
    found = jaxeval.anchored_elo(wins := rng.binomial(40, p), 0, 40 - wins)
    add("anchored score, Beta interval", "40 prompts, no ties, p drawn from the prior", found, p)
    good = rng.binomial(160, rng.beta(5, 5, n))
    wins, title = rng.hypergeometric(good, 160 - good, 64), "64 of a pool of 160 prompts, no ties, pools that differ"
    found = jaxeval.anchored_elo(wins, 0, 64 - wins, pool_size=160)
    add("anchored score, Beta interval for a pool", title, found, good / 160)
    found = jaxeval.anchored_elo(wins, 0, 64 - wins, pool_size=160, kappa=0.85)
    add("anchored score, kappa = .85 as in the paper", title, found, good / 160, note=KAPPA)
    return rows


def ternary(latent: Any) -> Any:
    """Outcomes 0, 1/2, 1 of a latent score."""
    return np.where(latent > 0.4, 1.0, np.where(latent < -0.4, 0.0, 0.5))


@part(2_000)
def reliability(n: int) -> list[Row]:
    """ICC of repeated runs: normal ones, and win, tie and loss."""
    rows, single, average = [], [], []
    for number in range(10 * n):
        rng = np.random.default_rng([51, number])
        found = jaxeval.icc3(rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 5)))
        single.append(found.single_lower <= 0.8 <= found.single_upper)
        average.append(found.average_lower <= 1 / (1 + 0.25 / 5) <= found.average_upper)
    case = "40 items, 5 runs, normal"
    rows.append(row(("icc3", "Icc3"), "ICC(3,1)", case, np.array(single, float)))
    rows.append(row(("icc3", "Icc3"), "ICC(3,k)", case, np.array(average, float)))
    rng = np.random.default_rng(0)
    true = jaxeval.icc3(ternary(rng.normal(size=(400_000, 1)) + 0.5 * rng.normal(size=(400_000, 5)))).single
    words, held, boot = np.array(["loss", "tie", "win"]), [], []
    for number in range(n):
        rng = np.random.default_rng([52, number])
        outcome = ternary(rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 5)))
        table = pd.DataFrame({"item": np.repeat(range(60), 5), "run": np.tile(range(5), 60), "judge": "j"})
        table = table.assign(model="m", anchor="a", verdict=words[(2 * outcome).astype(int).ravel()])
        found = jaxeval.screen_judges(jaxeval.AnchoredVerdicts.from_pandas(table), n_resamples=500, progress=False)
        held.append(inside(found.table, true, ("single_lower", "single_upper")))
        boot.append(inside(found.table, true, ("single_boot_lower", "single_boot_upper")))
    case, names = "60 prompts, 5 runs of win, tie or loss", ("screen_judges", "JudgeScreen")
    rows.append(row(names, "ICC(3,1), weighted prompts", case, held))
    rows.append(row(names, "ICC(3,1), resampled prompts", case, boot))
    return rows


@part(2_000)
def scores_of_runs(n: int) -> list[Row]:
    """Scores of prompts that differ, each judged five times."""
    beta, own = [], []
    for number in range(n):
        rng = np.random.default_rng([61, number])
        chance = np.repeat(rng.beta(2, 1, 80), 5)
        verdict = np.where(rng.random(400) < chance, "win", "loss")
        table = pd.DataFrame({"item": np.repeat(range(80), 5), "run": np.tile(range(5), 80), "verdict": verdict})
        data = jaxeval.AnchoredVerdicts.from_pandas(table.assign(model="m", judge="j", anchor="a"))
        found = jaxeval.anchored_scores(data)
        beta.append(inside(found, 2 / 3, ("probability_lower", "probability_upper")))
        own.append(inside(found, 2 / 3, ("own_lower", "own_upper")))
    case = "80 prompts of unlike chances, 5 runs each"
    return [
        row("anchored_scores", "anchored score, Beta interval", case, beta),
        row("anchored_scores", "anchored score, own interval of the prompts", case, own),
    ]
