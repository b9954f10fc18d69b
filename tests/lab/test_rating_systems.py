"""Other rating systems beside anchored ratings: their own answers, symmetry, and what is not finite."""

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.scores import anchored_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.lab import rating_systems
from jaxeval.lab.rating_systems import SYSTEMS, compare_rating_systems
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.ratings.gauge import ELO_PER_LOGIT


@pytest.fixture(scope="module")
def frame():
    return simulate_anchored_verdicts((1.0, 0.2, -0.6), 30, 3, 2, seed=4)


@pytest.fixture(scope="module")
def found(frame):
    return compare_rating_systems(AnchoredVerdicts.from_pandas(frame))


def test_against_one_reference_bradley_terry_is_the_logit_of_the_share(frame, found):
    outcome = frame["verdict"].map({"win": 1.0, "tie": 0.5, "loss": 0.0})
    share = outcome.groupby([frame["model"], frame["judge"]]).mean()
    table = found.table.set_index(["model", "judge"])
    expected = ELO_PER_LOGIT * np.log(share / (1 - share))
    np.testing.assert_allclose(table["bradley_terry"], expected[table.index], atol=1e-6)
    anchored = anchored_scores(AnchoredVerdicts.from_pandas(frame)).set_index(["model", "judge"])["rating"]
    pd.testing.assert_series_equal(table["anchored"], anchored, check_names=False)


def test_glicko_2_by_its_formulas():
    # One rating period of a new player against a new reference: the deviation is known, volatility hardly moves.
    rows = [("a", k, "win" if k < 7 else "loss") for k in range(10)]
    verdicts = AnchoredVerdicts.from_pandas(pd.DataFrame(rows, columns=["model", "item", "verdict"]))
    deviation = 350 / 173.7178
    g = 1 / np.sqrt(1 + 3 * deviation**2 / np.pi**2)
    v = 1 / (10 * g**2 / 4)
    moved = 173.7178 / (1 / (deviation**2 + 0.06**2) + 1 / v) * g * (7 - 5)
    (row,) = compare_rating_systems(verdicts).table.itertuples()
    assert row.glicko2 == pytest.approx(2 * moved, rel=1e-3)  # the reference moves as far the other way


def test_swapped_verdicts_negate_every_rating(frame, found):
    swapped = frame.assign(verdict=frame["verdict"].map({"win": "loss", "tie": "tie", "loss": "win"}))
    other = compare_rating_systems(AnchoredVerdicts.from_pandas(swapped)).table
    np.testing.assert_allclose(other[list(SYSTEMS)], -found.table[list(SYSTEMS)], rtol=1e-6, atol=1e-4)


def test_judges_of_the_same_verdicts_have_the_same_ratings(frame):
    """One judge three times: shuffled, and with other names of its runs; a part of it keeps its order."""
    one = frame[frame["judge"] == "judge-1"].assign(judge="a")
    two = one.assign(judge="b").sample(frac=1, random_state=0)
    three = one.assign(judge="c", run=one["run"] + 10)
    other = frame[frame["judge"] == "judge-2"].assign(anchor="y")
    both = pd.concat([pd.concat([one, two, three]).assign(anchor="x"), other])
    table = compare_rating_systems(AnchoredVerdicts.from_pandas(both)).table.query("anchor == 'x'")
    ratings = table.pivot_table(index="model", columns="judge", values=list(SYSTEMS))
    for system in SYSTEMS:
        for judge in "bc":
            np.testing.assert_allclose(ratings[system][judge], ratings[system]["a"], rtol=1e-12)
    alone = compare_rating_systems(AnchoredVerdicts.from_pandas(one.assign(anchor="x"))).table
    np.testing.assert_allclose(alone["openskill"], ratings["openskill"]["a"], rtol=1e-12)


def test_systems_agree_on_the_order_and_the_summary_is_pandas_own(found):
    mean = found.table.groupby("model")[list(SYSTEMS)].mean()
    assert (mean.loc["model-1"] > mean.loc["model-2"]).all()
    assert (mean.loc["model-2"] > mean.loc["model-3"]).all()
    summary = found.summary.set_index("system")
    deviation = found.table.groupby("model")[list(SYSTEMS)].std()
    np.testing.assert_allclose(summary["judge_sd"], deviation.mean())
    np.testing.assert_allclose(summary["judge_sd_spread"], deviation.std())
    assert summary["spearman"].tolist() == pytest.approx([1.0] * 4)
    assert (summary["n_unrated"] == 0).all()


def test_unbeaten_models_are_counted_and_left_out():
    rows = [(m, j, k, "win" if m == "a" or k < 2 else "loss") for m in "ab" for j in "xy" for k in range(4)]
    verdicts = AnchoredVerdicts.from_pandas(pd.DataFrame(rows, columns=["model", "judge", "item", "verdict"]))
    summary = compare_rating_systems(verdicts).summary.set_index("system")
    assert summary["n_unrated"].to_dict() == {"anchored": 0, "bradley_terry": 2, "glicko2": 0, "openskill": 0}
    assert summary["judge_sd"]["bradley_terry"] == pytest.approx(0.0, abs=1e-9)


def test_what_is_not_installed_is_named(monkeypatch, frame):
    monkeypatch.setattr(rating_systems, "find_spec", lambda name: None if name == "glicko2" else name)
    with pytest.raises(ImportError, match="glicko2 is not installed: pip install glicko2"):
        compare_rating_systems(AnchoredVerdicts.from_pandas(frame))
