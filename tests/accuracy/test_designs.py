"""How the labelled answers were chosen: what may be believed, how much refutes it, and what is said."""

import numpy as np
import pandas as pd
import pytest
from answers import SETTINGS

import jaxeval
from jaxeval import JudgedAnswers, compare_models, judge_accuracy

Q0, Q1 = 0.8, 0.9


def answers_of(label, verdict, first=0):
    """Judged answers of (N, M) labels and verdicts."""
    n, m = label.shape
    item, model = np.repeat(np.arange(n) + first, m), np.tile(np.arange(m), n)
    table = pd.DataFrame({"item": item, "model": model, "human": label.ravel(), "judge": verdict.ravel()})
    return JudgedAnswers.from_pandas(table, judgment="judge", label="human", model="model", item="item")


def verdicts(rng, label):
    return (rng.random(label.shape) < np.where(label == 1, Q1, 1 - Q0)).astype(float)


def by_label(n_sets=200, m0=60, m1=60, accuracy=0.8, seed=0):
    """As many labels of each class, of ``n_sets`` models whose answers have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    known = np.repeat(np.repeat([1.0, 0.0], [m1, m0])[:, None], n_sets, 1)
    label = (rng.random((1000, n_sets)) < accuracy).astype(float)
    test = answers_of(np.full(label.shape, np.nan), verdicts(rng, label))
    return answers_of(known, verdicts(rng, known), 1000), test


def at_four_errors(held, low=0.95):
    return (
        abs(np.mean(held) - low) < 4 * np.sqrt(low * (1 - low) / len(held)) + 0.015
    )  # the closed form is conservative


@pytest.mark.parametrize("sampling", [pytest.param("by label", marks=pytest.mark.slow), None])
def test_labels_chosen_by_class_are_believed_by_rogan_gladen_alone(sampling):
    found = judge_accuracy(*by_label(), sampling=sampling, n_resamples=2, n_halves=1).table
    marked = found[found["believe"]]
    assert set(marked["estimator"]) == {"rogan_gladen"}
    assert len(marked) >= 198
    assert at_four_errors((marked["lower"] <= 0.8) & (marked["upper"] >= 0.8))
    other = found[found["estimator"] == "ppi_plus_plus"]
    assert ((other["lower"] <= 0.8) & (other["upper"] >= 0.8)).mean() < 0.1


@pytest.mark.slow
def test_differences_of_models_whose_labels_were_chosen_are_not_shrunk():
    parts = [by_label(60, accuracy=a, seed=s) for a, s in ((0.8, 1), (0.6, 2))]
    both = []
    for one, other in zip(*parts, strict=True):
        joined = [np.concatenate([getattr(x, name) for x in (one, other)], 1) for name in ("label", "judgment")]
        both.append(answers_of(joined[0], joined[1][..., 0], int(one.items[0])))
    found = compare_models(*both, [(k, 60 + k) for k in range(60)], n_resamples=2, n_halves=1).table
    marked, ppi = found[found["believe"]], found[found["estimator"] == "ppi_plus_plus"]
    assert set(marked["estimator"]) == {"rogan_gladen"}
    assert at_four_errors((marked["lower"] <= 0.2) & (marked["upper"] >= 0.2))
    assert marked["difference"].mean() == pytest.approx(0.2, abs=4 * 0.07 / np.sqrt(60))
    assert ppi["difference"].mean() < 0.15


def pool(n_sets=150, seed=0):
    """400 answers of each model, of which people labelled the first 50 of each class."""
    rng = np.random.default_rng(seed)
    label = (rng.random((400, n_sets)) < 0.8).astype(float)
    first = [(label == y) & ((label == y).cumsum(0) <= 50) for y in (0, 1)]
    return answers_of(np.where(first[0] | first[1], label, np.nan), verdicts(rng, label))


@pytest.mark.slow
def test_of_answers_chosen_by_label_the_rest_is_no_sample():
    answers = pool()
    held = {}
    for sampling in ("by label", "borrowed"):  # the test are all answers, or those without a label
        found = judge_accuracy(*answers.by_label(sampling), n_resamples=2, n_halves=1)
        assert found.settings.sampling == sampling
        marked = found.table[found.table["believe"]]
        held[sampling] = ((marked["lower"] <= 0.8) & (marked["upper"] >= 0.8)).mean()
    assert at_four_errors(np.repeat([1, 0], [round(150 * held["by label"]), 150 - round(150 * held["by label"])]))
    assert held["borrowed"] < 0.75


def one_model(seed=0, n=200, share=0.8, of=1000):
    rng = np.random.default_rng(seed)
    known, label = ((rng.random((size, 1)) < share).astype(float) for size in (n, of))
    return answers_of(known, verdicts(rng, known), of), answers_of(np.full(label.shape, np.nan), verdicts(rng, label))


def test_ppi_and_rogan_gladen_differ_by_the_shift_of_the_judge():
    """So Hausman's test of one against the other is the test of that shift."""
    calibration, test = one_model()
    found = judge_accuracy(calibration, test, **SETTINGS)
    estimate = found.table.set_index("estimator")["estimate"]
    y, f, g = calibration.label.ravel(), calibration.judgment.ravel(), test.judgment.ravel()
    lam = np.cov(y, f, ddof=0)[0, 1] / (f.var() + len(f) / len(g) * g.var())
    j = f[y == 1].mean() - f[y == 0].mean()
    gap = (lam - 1 / j) * (g.mean() - f.mean())
    assert estimate["ppi_plus_plus"] - estimate["rogan_gladen"] == pytest.approx(gap, abs=1e-12)
    p = np.concatenate([f, g]).mean()
    z = (g.mean() - f.mean()) / np.sqrt(p * (1 - p) * (1 / len(f) + 1 / len(g)))
    from scipy.stats import norm

    assert found.rates["p_same_share"].item() == pytest.approx(2 * norm.sf(abs(z)))


def test_tolerances_are_what_moves_an_estimate_to_the_end_of_its_interval():
    """In large samples: a calibration whose share of right answers is off by the tolerance of PPI++, or whose rates are
    off by that of Rogan-Gladen, moves the estimate by the distance to the nearer end."""
    calibration, test = one_model()
    rows = judge_accuracy(calibration, test, **SETTINGS).table.set_index("estimator")
    y, f, g = calibration.label.ravel(), calibration.judgment.ravel(), test.judgment.ravel()
    lam = np.cov(y, f, ddof=0)[0, 1] / (f.var() + len(f) / len(g) * g.var())
    q1, q0 = f[y == 1].mean(), 1 - f[y == 0].mean()
    distance = {
        name: min(row["estimate"] - row["lower_untruncated"], row["upper_untruncated"] - row["estimate"])
        for name, row in rows.iterrows()
    }
    delta = rows.loc["ppi_plus_plus", "tolerance"]
    theta = rows.loc["ppi_plus_plus", "estimate"]
    passed = theta * q1 + (1 - theta) * (1 - q0)
    off = theta + delta
    moved = off + lam * (passed - (off * q1 + (1 - off) * (1 - q0))) - theta
    assert moved == pytest.approx(distance["ppi_plus_plus"], abs=1e-12)
    eps = rows.loc["rogan_gladen", "tolerance"]
    truth = rows.loc["rogan_gladen", "estimate"]
    passed = truth * (q1 + eps) + (1 - truth) * (1 - q0 + eps)  # the judge passes more of both classes
    assert (passed + q0 - 1) / (q0 + q1 - 1) - truth == pytest.approx(distance["rogan_gladen"], abs=1e-12)
    assert rows.loc["calibration_only", "tolerance"] == pytest.approx(distance["calibration_only"])
    assert set(rows["tolerance_of"]) == {"prevalence", "error rates", ""}
    assert rows.loc[["naive", "ppi_plus_plus_half"], "tolerance"].isna().all()


def test_a_difference_falls_where_its_nearer_end_reaches_0():
    table = jaxeval.simulate_judged_answers([0.8, 0.6], 0.8, 0.9, 600, seed=3)
    answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    found = compare_models(*answers.split(1 / 3), **SETTINGS)
    own = found.table.set_index("estimator")
    j = found.accuracy.rates["j"].to_numpy()
    nearer = own[["lower", "upper"]].abs().min(axis=1)
    assert own.loc["rogan_gladen", "tolerance"] == pytest.approx(nearer["rogan_gladen"] / (1 / j).sum())
    assert own.loc["calibration_only", "tolerance"] == pytest.approx(nearer["calibration_only"] / 2)
    j_of_b = j[1]
    assert own.loc["rogan_gladen_shared", "tolerance"] == pytest.approx(nearer["rogan_gladen_shared"] * j_of_b / 2)


def test_nothing_bounded_has_no_tolerance():
    few = one_model(n=6, share=0.5)
    found = judge_accuracy(*few, **SETTINGS).table.set_index("estimator")
    assert found.loc["rogan_gladen", "status"] in ("few labels of a class", "J near 0", "J <= 0")
    assert np.isnan(found.loc["rogan_gladen", "tolerance"])


def test_what_a_report_says_of_each_design():
    calibration, test = by_label(1, 60, 60)
    texts, kinds = {}, {}
    for sampling in ("random", "by label", "borrowed", None):
        report = judge_accuracy(calibration, test, sampling=sampling, **SETTINGS).report
        texts[sampling], kinds[sampling] = " ".join(report.text.split()), {c.kind for c in report.cautions}
    assert {"undeclared", "balanced"} <= kinds[None]
    assert {"balanced", "another share"} <= kinds["random"]
    assert not {"undeclared", "balanced", "borrowed", "another share"} & kinds["by label"]
    assert "borrowed" in kinds["borrowed"]
    assert "The calibration is no random part (p = " in texts[None]
    assert "declare how the labelled answers were chosen, with sampling= (on the command line" in texts[None]
    assert "if they are a random part" not in texts[None]
    assert "60 of each; 0): labels that are chosen by label look like this" in texts[None]
    for text in texts.values():
        assert 'Labels chosen by class make the whole calibration one "by label"' in text
        assert "tolerance: by how much the calibration may differ" in text
    assert 'How the labelled answers were chosen: "by label": the numbers' in texts["by label"]


def test_a_random_calibration_is_not_called_another():
    found = judge_accuracy(*one_model(3), **SETTINGS).report
    (own,) = [c for c in found.cautions if c.kind == "undeclared"]
    assert "Nothing shows that the calibration is no random part" in own.text
    assert "nothing proves that it is; declare how" in own.text
    assert '"random" if they are a random part' in own.text


def test_where_nothing_is_believed_the_sentence_says_what_to_declare():
    """Scores of an undeclared calibration: Rogan-Gladen needs verdicts, and PPI++ a random part."""
    rng = np.random.default_rng(0)
    label = (rng.random((100, 2)) < 0.7).astype(float)
    scores = label + rng.random(label.shape)
    parts = answers_of(label, scores, 500), answers_of(label * np.nan, rng.permutation(scores))
    found = compare_models(*parts, **SETTINGS)
    assert not found.table["believe"].any()
    (claim,) = found.report.claims()
    assert claim.endswith(
        "no claim: Rogan-Gladen: needs verdicts of 0 and 1; turn scores into verdicts (threshold=, --threshold) or "
        'declare sampling="random" (--calibration-sampling random) if it is'
    )
    declared = compare_models(*parts, sampling="random", **SETTINGS)
    assert declared.table.loc[declared.table["believe"], "estimator"].tolist() == ["ppi_plus_plus"]


def test_a_split_says_that_it_is_random_and_what_is_taken_from_it_does_not():
    table = jaxeval.simulate_judged_answers([0.8], 0.8, 0.9, 300)
    answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    calibration, test = answers.split(1 / 3)
    assert (answers.sampling, calibration.sampling, test.sampling) == (None, "random", None)
    assert calibration.take(np.arange(50)).sampling is None
    assert judge_accuracy(calibration, test, **SETTINGS).settings.sampling == "random"
    assert judge_accuracy(calibration, test, sampling="borrowed", **SETTINGS).settings.sampling == "borrowed"


def test_a_design_that_there_is_not():
    with pytest.raises(
        ValueError, match="sampling must be one of 'random', 'by label', 'borrowed' or None, got 'by-lab"
    ):
        judge_accuracy(*one_model(), sampling="by-label")
