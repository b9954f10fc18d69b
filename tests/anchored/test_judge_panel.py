"""Agreement between judges of the same answers, run by run."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.judge_panel import judge_kappas, judge_panel, reliability_factor
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.errors import DataError


@pytest.fixture(scope="module")
def frame():
    return simulate_anchored_verdicts((0.8, 0.0), 60, 4, 4, run_sd=(0.2, 0.2, 0.3, 2.5), seed=2)


def cohen(x, y):
    observed = np.mean(x == y)
    expected = sum(np.mean(x == c) * np.mean(y == c) for c in ("win", "tie", "loss"))
    return (observed - expected) / (1 - expected)


class TestKappa:
    def test_pairs_one_by_one(self, frame):
        some = frame.sample(frac=0.8, random_state=3)
        found = judge_kappas(AnchoredVerdicts.from_pandas(some))
        wide = some.pivot_table("verdict", ["model", "item", "run"], "judge", aggfunc="first")
        for a, b in combinations(wide.columns, 2):
            both = wide[[a, b]].dropna()
            assert found.loc[a, b] == pytest.approx(cohen(both[a], both[b]))
            assert found.loc[b, a] == found.loc[a, b]
        np.testing.assert_allclose(np.diag(found), 1)

    def test_one_verdict_only_has_none(self):
        table = pd.DataFrame({"judge": ["x", "y"] * 2, "item": [1, 1, 2, 2], "verdict": "win"})
        assert judge_kappas(AnchoredVerdicts.from_pandas(table)).isna().all(axis=None)

    def test_it_needs_verdicts(self):
        table = pd.DataFrame({"judge": ["x", "y"], "item": [1, 1], "verdict": [0.3, 1.0]})
        with pytest.raises(DataError, match="Cohen's kappa needs verdicts of win, tie and loss"):
            judge_kappas(AnchoredVerdicts.from_pandas(table))

    def test_the_factor_is_the_root_of_the_mean(self):
        kappas = pd.DataFrame([[1, 0.5, 0.7], [0.5, 1, np.nan], [0.7, np.nan, 1]])
        assert reliability_factor(kappas) == pytest.approx(np.sqrt(0.6))
        with pytest.raises(
            ValueError, match=r"the mean kappa of 1 pair of judges is -0\.2, and a .* needs one above 0"
        ):
            reliability_factor(pd.DataFrame([[1, -0.2], [-0.2, 1]]))
        with pytest.raises(ValueError, match="the mean kappa of 1 pair of judges is 0, and a reliability factor"):
            reliability_factor(pd.DataFrame([[1, 0], [0, 1]]))
        with pytest.raises(ValueError, match="the mean kappa of 0 pairs of judges is nan"):
            reliability_factor(pd.DataFrame([[1.0]]))

    def test_runs_are_numbered_within_a_judge(self, frame):
        """Names of runs that judges do not share, and a run that one judge lacks."""
        few = frame[(frame["judge"] != "judge-2") | (frame["run"] < 2)]
        own = few.assign(run=few["judge"] + "/" + few["run"].astype(str))
        named, plain = (AnchoredVerdicts.from_pandas(table) for table in (own, few))
        pd.testing.assert_frame_equal(judge_kappas(named), judge_kappas(plain))
        panel = judge_panel(named)
        assert panel.outcome.shape == (4, 120, 4)
        assert panel.n_runs.tolist() == [4, 2, 4, 4]
        np.testing.assert_array_equal(panel.outcome, judge_panel(plain).outcome)
        assert np.isnan(panel.outcome[1, :, 2:]).all()
