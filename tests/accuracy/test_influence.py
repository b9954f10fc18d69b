"""Variances from what every item contributes: the closed forms of the papers, and the bootstrap's."""

import numpy as np
import pytest
import twins
from answers import BINARY, CALIBRATION, JUDGES, MANY, MODELS, TEST, judged_rows, read, rows, simulate, stratified

from jaxeval.accuracy import influence
from jaxeval.accuracy.estimates import Evidence, Slice, contributions, estimate_draws, estimates
from jaxeval.accuracy.judged_sums import POOLED, Sums, arrays, sums, with_missing_filled
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums

#: Five standard errors of the logarithm of a standard deviation of 400 draws.
TOLERANCE = 5 / np.sqrt(2 * 400)


def pooled_variance(calibration, judge, g, other=None):
    """Eq. 10 of arXiv:2511.21140 with a pool whose answers to an item belong together; of a difference to ``other``."""
    known = calibration[calibration["human"].notna() & calibration[judge].notna()]
    y, f = known["human"], known[judge]
    q0, q1, m0, m1 = twins.judge_rates(y, f)
    j = q0 + q1 - 1
    theta = twins.misclassification_adjusted(np.mean(g), q0, q1)
    slopes = ((1 - theta) / j, -theta / j)
    test = np.var(g)
    if other is not None:
        # d theta / d q0 = (1 - theta) / J and d theta / d q1 = -theta / J: their differences.
        gap = (np.mean(g) - np.mean(other)) / j
        slopes, test = (-gap / j, -gap / j), np.var(np.subtract(g, other))
    of_rows = slopes[0] * (1 - y) * (1 - f - q0) / m0 + slopes[1] * y * (f - q1) / m1
    return test / len(g) / j**2 + (of_rows.groupby(known["item"]).sum() ** 2).sum()


def of(calibration, test, stratify=None):
    """Sums, and the contributions to estimates, of all items; no resamples."""
    data = arrays(calibration, test, stratify, POOLED)
    judged, every = (Evidence(x, sums(x), None, None) for x in (data, with_missing_filled(data)))
    return judged, contributions(Slice(calibration, test, judged, every), BINARY)


@pytest.fixture(scope="module")
def small():
    return of(read(CALIBRATION), read(TEST))


@pytest.fixture(scope="module")
def complete():
    return of(read(simulate(60, 1)), read(simulate(100, 2, first=60)))


@pytest.mark.parametrize("model", range(3))
@pytest.mark.parametrize("judge", range(3))
def test_variances_are_the_closed_forms(small, model, judge):
    y, f, g = rows(CALIBRATION, TEST, MODELS[model], JUDGES[judge])
    found = {name: items.variance()[model, judge] for name, items in small[1].items()}
    known, verdicts, judged = judged_rows(CALIBRATION, TEST, MODELS[model], JUDGES[judge])
    assert found["naive"] == pytest.approx(np.var(judged) / len(judged))
    assert found["calibration_only"] == pytest.approx(np.var(y) / len(y))
    weights = {"difference": 1.0, "ppi_plus_plus": twins.ppi_lambda(y, f, g, 1.0 if BINARY[judge] else np.inf)}
    if BINARY[judge]:
        weights["conditional"] = twins.moments(y, f) / (np.mean(f) * (1 - np.mean(f)))
        weights["eif"] = weights["conditional"] / (1 + len(y) / len(g))
        q0, q1, m0, m1 = twins.judge_rates(known, verdicts)
        if q0 + q1 > 1:
            expected = twins.misclassification_variance(np.mean(judged), len(judged), q0, q1, m0, m1)
            assert found["rogan_gladen"] == pytest.approx(expected)
        assert found["rogan_gladen_shared"] == pytest.approx(pooled_variance(CALIBRATION, JUDGES[judge], judged))
    for name, weight in weights.items():
        assert found[name] == pytest.approx(twins.ppi_variance(y, f, g, weight))


def shared_difference_variance(one, other, y, f):
    """Appendix B of arXiv:2605.06939, from the test judgments of both models and one calibration."""
    q0, q1, m0, m1 = twins.judge_rates(y, f)
    j, gap = q0 + q1 - 1, np.mean(other) - np.mean(one)
    test = np.var(np.subtract(other, one)) / (len(one) * j**2)
    return test + gap**2 * (q0 * (1 - q0) / m0 + q1 * (1 - q1) / m1) / j**4


def test_differences_with_the_labels_of_one_model_are_appendix_b(complete):
    part, _ = complete
    calibration, test = simulate(60, 1), simulate(100, 2, first=60)
    b = LabelledSums(*(x[..., 1:2, :] for x in part.total.own))
    with np.errstate(divide="ignore"):  # by the judge of scores
        rates = judge_error.rates(b)
        each = judge_error.rogan_gladen(part.total.test.judgment / 100, rates.q0, rates.q1)
    items = influence.shared_rogan_gladen(part.data, part.total, b, 1, np.asarray(each))
    for j, judge in enumerate(JUDGES[:2]):
        known = rows(calibration, test, "b", judge)[:2]
        for one, other in ((0, 1), (2, 0)):
            judged = (rows(calibration, test, MODELS[k], judge)[2] for k in (one, other))
            expected = shared_difference_variance(*judged, *known)
            assert items.difference_variance(one, other)[j] == pytest.approx(expected)


def test_differences_with_a_pool_keep_the_answers_to_an_item_together(complete):
    calibration, test = simulate(60, 1), simulate(100, 2, first=60)
    for judge in JUDGES[:2]:
        one, other = (rows(calibration, test, k, judge)[2] for k in "ab")
        found = complete[1]["rogan_gladen_shared"].difference_variance(0, 1)[JUDGES.index(judge)]
        assert found == pytest.approx(pooled_variance(calibration, judge, one, other))


def test_differences_keep_items_paired(complete):
    items = complete[1]
    calibration, test = simulate(60, 1), simulate(100, 2, first=60)
    for j, judge in enumerate(JUDGES):
        ya, fa, ga, yb, fb, gb = map(np.array, [x for k in "ab" for x in rows(calibration, test, k, judge)])
        assert items["naive"].difference_variance(0, 1)[j] == pytest.approx(np.var(ga - gb) / 100)
        assert items["calibration_only"].difference_variance(0, 1)[j] == pytest.approx(np.var(ya - yb) / 60)
        most = 1.0 if BINARY[j] else np.inf
        a, b = twins.ppi_lambda(ya, fa, ga, most), twins.ppi_lambda(yb, fb, gb, most)
        expected = np.var(a * ga - b * gb) / 100 + np.var(ya - a * fa - yb + b * fb) / 60
        assert items["ppi_plus_plus"].difference_variance(0, 1)[j] == pytest.approx(expected)
    for item in items.values():
        np.testing.assert_array_equal(item.difference_variance(2, 2), 0)
        np.testing.assert_allclose(item.difference_variance(0, 1), item.difference_variance(1, 0))


@pytest.mark.parametrize("judge", JUDGES)
def test_variances_of_strata_and_of_their_shares_add_up(judge):
    found = {name: items.variance()[0, JUDGES.index(judge)] for name, items in of(*map(read, MANY), "topic")[1].items()}
    g = judged_rows(*MANY, "a", judge)[2]
    assert found["naive"] == pytest.approx(np.var(g) / len(g))  # added up, its strata are no strata
    corrected = {"difference": 1.0} if judge == "score" else {"difference": 1.0, "rogan_gladen": None}
    for name, lam in corrected.items():
        used = rows if lam else judged_rows
        parts = [used(*(frame[frame["topic"] == topic] for frame in MANY), "a", judge) for topic in ("art", "law")]
        n = sum(len(part[2]) for part in parts)
        share = np.array([len(part[2]) for part in parts]) / n
        if lam is None:
            rates = [(np.mean(g), len(g), *twins.judge_rates(y, f)) for y, f, g in parts]
            within = [twins.misclassification_variance(*given) for given in rates]
            theta = [twins.misclassification_adjusted(p, q0, q1) for p, _, q0, q1, *_ in rates]
        else:
            within = [twins.ppi_variance(*part, lam) for part in parts]
            theta = [twins.ppi_mean(*part, lam) for part in parts]
        between = share @ (theta - share @ theta) ** 2 / n
        assert found[name] == pytest.approx(share**2 @ within + between)


@pytest.mark.slow
@pytest.mark.parametrize("stratify", [None, "topic"])
def test_the_bootstrap_has_the_same_variances(stratify):
    """Of estimates and of differences, answers missing at random; the poor judge has too long a tail."""
    part = stratified().slices[""]
    if stratify is None:
        # The same resamples, whose strata are put together.
        drawn = (
            Sums(*(type(x)(*(leaf.sum(-3, keepdims=True) for leaf in x)) for x in evidence.draws))
            for evidence in (part.judged, part.every)
        )
        draws = estimates(*drawn, BINARY)
        contributed = of(*map(read, MANY))[1]
    else:
        draws, contributed = estimate_draws(part, BINARY), contributions(part, BINARY)
    for name, items in contributed.items():
        for j, judge in enumerate(JUDGES):
            if np.isnan(draws[name][0, 0, j]) or (judge == "poor" and name.startswith("rogan")):
                continue
            ratio = np.log(draws[name][:, :, j].std(0) / np.sqrt(items.variance()[:, j]))
            np.testing.assert_array_less(np.abs(ratio), TOLERANCE, err_msg=f"{name} {judge}")
            apart = (draws[name][:, 0, j] - draws[name][:, 1, j]).std()
            ratio = np.log(apart / np.sqrt(items.difference_variance(0, 1)[j]))
            assert abs(ratio) < TOLERANCE, (name, judge)


def test_answers_that_models_share_weigh_twice_and_go_together():
    calibration = simulate(60, 1).assign(text=lambda frame: np.arange(len(frame)))
    copies = calibration["model"] == "b"
    columns = ["human", *JUDGES, "text"]
    calibration.loc[copies, columns] = calibration.loc[np.flatnonzero(copies) - 1, columns].to_numpy()
    variance = of(read(calibration, answer="text"), read(TEST))[1]["rogan_gladen_shared"].variance()
    g = judged_rows(calibration, TEST, "a", "good")[2]
    assert variance[0, 0] == pytest.approx(pooled_variance(calibration, "good", g))
