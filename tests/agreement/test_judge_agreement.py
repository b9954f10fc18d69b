"""Agreement of judges with people: known answers on real data, naive loops, thin and hostile data, coverage."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from command_line import run
from scipy.stats import pearsonr

import jaxeval
from jaxeval.agreement.measures import by_name, columns_of, measures, sums_of_items
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.statistics.quantiles import normal_quantile, student_quantile
from jaxeval.statistics.variance_components import design_of

WORDS = np.array(["model_b", "tie", "model_a"])


def simulated(n=400, seed=0, n_raters=2, n_judges=3, same=0.3, n_items=None):
    """Wide verdicts: people and judges see a latent side, through noise that judges partly share."""
    rng = np.random.default_rng(seed)
    side = rng.choice([0, 2], n)
    shared = rng.random(n) < 0.3

    def voice(error, ties=0.1):
        own = np.where(rng.random(n) < error, 2 - side, side)
        return np.where(rng.random(n) < ties, 1, own)

    frame = pd.DataFrame({"model_a": rng.choice([*"xyz"], n), "model_b": "w", "length_a": rng.integers(1, 99, n)})
    frame["length_b"] = rng.integers(1, 99, n)
    frame["item"] = np.arange(n) if n_items is None else rng.integers(0, n_items, n)
    for k in range(n_raters):
        frame[f"human-{k}"] = WORDS[voice(0.15)]
    for k in range(n_judges):
        alone = voice(0.25 + 0.05 * k)
        frame[f"judge-{k}"] = WORDS[np.where(shared & (rng.random(n) < same), 2 - side, alone)]
    return frame


RATERS, JUDGES = ["human-0", "human-1"], ["judge-0", "judge-1", "judge-2"]
FAMILIES = {"x": "acme", "judge-0": "acme", "y": "b", "z": "b", "w": "b", "judge-1": "b", "judge-2": "none"}


@pytest.fixture(scope="module")
def frame():
    return simulated()


def judged(frame):
    """Agreement with everything that can be measured: what is resampled has the same columns in several tests."""
    return jaxeval.judge_agreement(
        frame, RATERS, judges=JUDGES, families=FAMILIES, shown_first="model_a", n_resamples=200
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(frame):
    return judged(frame)


def kappa(x, y):
    n, values = len(x), set(x) | set(y)
    observed = np.mean([a == b for a, b in zip(x, y, strict=True)])
    p, q = Counter(x), Counter(y)
    expected = sum(p[v] * q[v] for v in values) / n**2
    return (observed - expected) / (1 - expected)


def row(found, judge):
    return found.table.set_index("judge").loc[judge]


def majority(words):
    most = Counter(words).most_common()
    return most[0][0] if len(most) == 1 or most[0][1] > most[1][1] else "tie"


def test_people_agree_as_in_a_loop_over_battles(frame, found):
    pairs = list(zip(frame["human-0"], frame["human-1"], strict=True))
    people = row(found, "people")
    assert people["all_agreement"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert people["all_kappa"] == pytest.approx(kappa(*zip(*pairs, strict=True)))
    sides = [(a, b) for a, b in pairs if "tie" not in (a, b)]
    assert people["agreement"] == pytest.approx(np.mean([a == b for a, b in sides]))
    assert people["kappa"] == pytest.approx(kappa(*zip(*sides, strict=True)))
    assert people["n_decided"] == len(sides)
    assert found.raters[["rater", "other"]].to_numpy().tolist() == [RATERS]
    assert found.raters["all_kappa"][0] == pytest.approx(people["all_kappa"])


def test_judges_and_the_panel_agree_as_in_a_loop_over_labels(frame, found):
    voices = {name: frame[name] for name in JUDGES}
    voices["panel"] = [majority(words) for words in frame[JUDGES].itertuples(index=False)]
    for name, verdicts in voices.items():
        hits, sides = [], []
        for verdict, *labels in zip(verdicts, *(frame[r] for r in RATERS), strict=True):
            hits.append(np.mean([label == verdict for label in labels]))
            sides += [(label == verdict) for label in labels if "tie" not in (label, verdict)]
        own = row(found, name)
        assert own["all_agreement"] == pytest.approx(np.mean(hits)), name
        assert own["agreement"] == pytest.approx(np.mean(sides)), name
        doubled = [
            (v, label) for v, *labels in zip(verdicts, *(frame[r] for r in RATERS), strict=True) for label in labels
        ]
        assert own["all_kappa"] == pytest.approx(kappa(*zip(*doubled, strict=True)))


def test_biases_are_those_of_loops(frame, found):
    for name in JUDGES:
        own = row(found, name)
        sides = frame[frame[name] != "tie"]
        assert own["first_chosen"] == pytest.approx((sides[name] == "model_a").mean())
        apart = sides[sides["length_a"] != sides["length_b"]]
        longer = np.where(apart["length_a"] > apart["length_b"], "model_a", "model_b")
        assert own["longer_chosen"] == pytest.approx((apart[name] == longer).mean())
        family = FAMILIES[name]
        is_own = [
            (FAMILIES[a] == family, FAMILIES[b] == family)
            for a, b in zip(sides["model_a"], sides["model_b"], strict=True)
        ]
        among = [k for k, (a, b) in enumerate(is_own) if a != b]
        chosen = [("model_a" if is_own[k][0] else "model_b") == sides[name].iloc[k] for k in among]
        if family == "none":
            assert np.isnan(own["own_family"])
            continue
        assert own["own_family"] == pytest.approx(np.mean(chosen))
        people = [majority(words) for words in sides[RATERS].itertuples(index=False)]
        both = [k for k in among if people[k] != "tie"]
        side = ["model_a" if is_own[k][0] else "model_b" for k in both]
        excess = np.mean([s == sides[name].iloc[k] for s, k in zip(side, both, strict=True)]) - np.mean(
            [s == people[k] for s, k in zip(side, both, strict=True)]
        )
        assert own["family_excess"] == pytest.approx(excess)
    assert 0.4 < row(found, "people")["longer_chosen"] < 0.6


def test_what_the_panel_is_worth_is_that_of_pearson_correlations(frame, found):
    number = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
    people = frame[RATERS].apply(majority, axis=1)
    sides = frame[people != "tie"]
    truth = people[people != "tie"].map(number)
    errors = {name: np.abs(sides[name].map(number) - truth) for name in JUDGES}
    pairs = [("judge-0", "judge-1"), ("judge-0", "judge-2"), ("judge-1", "judge-2")]
    own = [pearsonr(errors[a], errors[b]).statistic for a, b in pairs]
    for (a, b), r in zip(pairs, own, strict=True):
        assert found.error_correlation.loc[a, b] == pytest.approx(r)
    panel = found.panel.set_index(["measure", "of"])["value"]
    rho = np.mean(own)
    assert panel["error_correlation", "judges"] == pytest.approx(rho)
    assert panel["n_independent", "judges"] == pytest.approx(3 / (1 + 2 * rho))
    ends = found.panel.set_index("measure").loc["n_independent"]
    assert ends["lower"] < ends["value"] < ends["upper"]
    assert any("are worth" in sentence for sentence in found.sentences)


def test_judges_that_are_one_are_worth_one(frame):
    found = judged(frame.assign(**dict.fromkeys(JUDGES, frame["judge-0"])))
    panel = found.panel.set_index(["measure", "of"])["value"]
    assert panel["n_independent", "judges"] == pytest.approx(1)
    assert panel["alpha", "judges"] == pytest.approx(1)


def test_draws_are_joint_and_intervals_are_by_items(frame, found):
    joint = found.joint
    assert joint.names.names == ["measure", "judge"]
    assert len(joint.draws) == 200
    gap = joint.of(measure="agreement").difference_interval()[0]
    assert gap.loc["judge-0", "judge-2"] > -0.2
    # Items of ten copies of a battle leave ten times less data.
    ten = judged(pd.concat([frame] * 10))
    widths = [row(x, "judge-0")["agreement_upper"] - row(x, "judge-0")["agreement_lower"] for x in (found, ten)]
    assert widths[1] == pytest.approx(widths[0], rel=0.25)
    assert row(ten, "judge-0")["n_items"] == 400


def test_long_tables_in_any_order_of_sides_say_the_same(frame, found):
    long = frame.melt(["item", "model_a", "model_b"], JUDGES, "judge", "verdict")
    turned = long.index % 2 == 1
    swap = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    long.loc[turned, ["model_a", "model_b"]] = long.loc[turned, ["model_b", "model_a"]].to_numpy()
    long.loc[turned, "verdict"] = long.loc[turned, "verdict"].map(swap)
    people = frame.melt(["item", "model_a", "model_b"], RATERS, "rater", "label")
    again = jaxeval.judge_agreement(long.sample(frac=1, random_state=0), people, n_resamples=20)
    for name in [*JUDGES, "panel", "people"]:
        for measure in ("agreement", "all_agreement"):
            assert row(again, name)[measure] == pytest.approx(row(found, name)[measure])
        # The agreement that chance gives depends on which model is side A.
        assert row(again, name)["kappa"] == pytest.approx(row(found, name)["kappa"], abs=0.01)
    shuffled = jaxeval.judge_agreement(long.sample(frac=1, random_state=1), people, n_resamples=20)
    pd.testing.assert_frame_equal(shuffled.table, again.table)
    with pytest.raises(jaxeval.DataError, match="rows repeat a judge's verdict"):
        jaxeval.judge_agreement(pd.concat([long, long]), people)
    runs = pd.concat([long.assign(run=k) for k in range(3)])
    assert row(jaxeval.judge_agreement(runs, people, n_resamples=20), "panel")["agreement"] == pytest.approx(
        row(found, "panel")["agreement"]
    )


def test_orders_and_confidence_of_raw_outputs():
    calls = jaxeval.simulate_judge_outputs(300, 5, seed=1)
    outputs = jaxeval.JudgeOutputs.from_pandas(calls, people="majority")
    found = jaxeval.judge_agreement(outputs, n_resamples=50)
    battles = outputs.battles
    for name in outputs.judges:
        own = battles[battles["judge"] == name]
        a, b = own["verdict_a_first"], own["verdict_b_first"]
        both = (a != "tie") & (b != "tie") & a.notna() & b.notna()
        assert row(found, name)["flips"] == pytest.approx((a != b)[both].mean())
        first = [*(a[a != "tie"].dropna() == "model_a"), *(b[b != "tie"].dropna() == "model_b")]
        assert row(found, name)["first_chosen"] == pytest.approx(np.mean(first))


def test_calibration_of_stated_confidence():
    rng = np.random.default_rng(0)
    n = 4000
    sure = rng.uniform(0.5, 1, n)
    right = rng.random(n) < sure
    frame = pd.DataFrame({"item": range(n), "model_a": "x", "model_b": "y", "verdict": "model_a", "confidence": sure})
    people = np.where(right, "model_a", "model_b")
    fair = jaxeval.judge_agreement(frame.assign(human=people), n_resamples=20)
    assert row(fair, "judge")["calibration_error"] < 0.02
    assert fair.reliability["n_battles"].sum() == n
    proud = jaxeval.judge_agreement(frame.assign(human=people, confidence=0.5 + sure / 2), n_resamples=20)
    own = row(proud, "judge")
    assert own["calibration_error_lower"] < np.mean(0.5 - sure / 2) < own["calibration_error_upper"]
    with pytest.raises(jaxeval.DataError, match=r"confidence.*must lie in \[0, 1\]"):
        jaxeval.judge_agreement(frame.assign(human=people, confidence=100 * sure))


@pytest.mark.slow
def test_the_arena_gives_its_known_answers(data):
    table = pd.read_parquet(data / "arena27k_human_3judges.parquet")
    judges = ["gpt4_0125", "claude3_opus", "gpt35_turbo"]
    found = jaxeval.judge_agreement(table, judges=judges, shown_first="model_a", n_resamples=50)
    assert row(found, "gpt4_0125")["agreement"] == pytest.approx(0.8327, abs=5e-5)
    assert row(found, "claude3_opus")["agreement"] == pytest.approx(0.7227, abs=5e-5)
    assert row(found, "gpt35_turbo")["agreement"] == pytest.approx(0.5696, abs=5e-5)
    assert row(found, "gpt4_0125")["n_decided"] == 14_397
    assert row(found, "gpt35_turbo")["first_chosen"] == pytest.approx(0.86, abs=0.005)
    gaps = found.by_gap[found.by_gap["judge"] == "gpt4_0125"]
    assert gaps["agreement"].is_monotonic_increasing
    assert gaps["n_battles"].sum() == 14_397
    assert found.sentences[-1].startswith("gpt4_0125 alone agrees with people more often than the panel does on the ")
    assert found.sentences[0].startswith(
        "Good enough? Not known: the panel of 3 judges (what most say) agrees with people on 80.2% ["
    )


def test_three_raters_give_their_published_kappas(data):
    table = pd.read_parquet(data / "pandalm_human3_vs_judges.parquet")
    raters = [name for name in table if "human" in name or "annotator" in name][:3]
    judge = [name for name in table if name.startswith("judge")][:1]
    coding = {"0": "tie", "1": "model_a", "2": "model_b"}
    found = jaxeval.judge_agreement(
        table, raters, judges=judge, label_coding=coding, model_a="model_1", model_b="model_2", n_resamples=50
    )
    assert found.raters["all_kappa"].round(2).tolist() == [0.85, 0.88, 0.86]
    assert "people agree with each other on" in found.sentences[0]
    assert "] below that" in found.sentences[0]


def test_judges_are_compared_on_battles_that_both_decide(frame, found):
    number = {"model_a": 1, "tie": 0, "model_b": -1}
    people, judge = frame[RATERS].map(number.get).to_numpy(), frame[JUDGES].map(number.get).to_numpy()
    panel = np.array([number[majority(words)] for words in frame[JUDGES].itertuples(index=False)])
    estimate = dict(zip(found.joint.names, found.joint.estimate, strict=True))
    paired = (people != 0).all(1)
    for name, verdict in [*zip(JUDGES, judge.T, strict=True), ("panel", panel)]:
        both = paired & (verdict != 0)
        above = (people[both] == verdict[both, None]).mean() - (people[both, 0] == people[both, 1]).mean()
        assert estimate["above_people", name] == pytest.approx(above)
        assert any(f"the {both.sum()} battles that both decide" in sentence for sentence in found.sentences)
        if name == "panel":
            continue
        weight = (people != 0).mean(1) * (verdict != 0) * (panel != 0)
        hits = [((people == side[:, None]) & (people != 0)).mean(1) for side in (verdict, panel)]
        assert estimate["above_panel", name] == pytest.approx((weight > 0) @ (hits[0] - hits[1]) / weight.sum())


def test_a_coin_beside_a_judge_makes_no_better_panel():
    """A panel of two decides easy battles only: its share is higher, and it is no better on those battles."""
    rng = np.random.default_rng(0)
    frame = simulated(400, n_judges=1).assign(coin=WORDS[rng.choice([0, 2], 400)])
    found = jaxeval.judge_agreement(frame, RATERS, judges=["judge-0", "coin"], n_resamples=50)
    panel, sides = row(found, "panel"), (frame[RATERS] != "tie").mean(axis=1)
    decided = sides @ ((frame["judge-0"] == frame["coin"]) & (frame["coin"] != "tie"))
    assert panel["n_decided"] == np.rint(decided)
    assert f"(it decides {decided:.0f} of {sides.sum():.0f} on which people chose a side)" in found.sentences[0]
    assert "a panel of two has a majority only where both agree" in found.sentences[0]
    above = found.joint.of(measure="above_panel")
    assert (above.draws == 0).all()
    assert not any("alone" in sentence for sentence in found.sentences)


def test_people_and_judges_without_common_battles_are_not_compared():
    frame = simulated(200)
    twice = np.arange(200) < 100
    frame["human-1"] = frame["human-1"].where(twice, None)
    frame["judge-0"] = frame["judge-0"].where(~twice, "tie")
    found = jaxeval.judge_agreement(frame, RATERS, judges=["judge-0"], n_resamples=50)
    assert "the judge decides no battle on which two people chose a side" in found.sentences[0]


def test_labels_meet_their_battles_whatever_the_type_of_items_and_the_order_of_the_pair():
    rows = [(7, "x", "y", "model_a"), (7, "y", "x", "model_a"), (8, "x", "y", "tie")]
    verdicts = pd.DataFrame(rows, columns=["item", "model_a", "model_b", "judge-0"])
    labels = pd.DataFrame({"item": ["7", "8", "8"], "model_a": [*"xyy"], "model_b": [*"yxz"], "label": "model_a"})
    found = LabelledVerdicts.of(verdicts, labels, judges=["judge-0"])
    np.testing.assert_array_equal(found.human, [[1], [np.nan], [0]])
    assert found.notes == ["1 human label on items and pairs without a verdict: not used"]


def test_thin_data_are_flagged():
    frame = simulated(12, seed=3)
    found = jaxeval.judge_agreement(frame, "human-0", judges=["judge-0"], n_resamples=50)
    assert "only 12 items with labels" in row(found, "judge-0")["flags"]
    assert "decided battle" in row(found, "judge-0")["flags"]
    assert "no battle has the labels of two people" in " ".join(found.warnings)
    one = jaxeval.judge_agreement(frame.assign(**{"judge-0": "model_a", "human-0": "model_a"}), "human-0",
                                  judges=["judge-0"], n_resamples=50)  # fmt: skip
    own = row(one, "judge-0")
    assert own["agreement"] == 1
    assert own["agreement_lower"] < 0.8  # twelve battles prove little
    assert "kappa" not in one.table or np.isnan(own["kappa"])
    assert "one label only: no kappa" in own["flags"]
    tied = jaxeval.judge_agreement(frame.assign(**{"judge-0": "tie"}), "human-0", judges=["judge-0"], n_resamples=50)
    assert "never chose a side on the same battle" in tied.sentences[0]


def test_bad_input_says_what_to_do(frame):
    wide = {"judges": JUDGES, "n_resamples": 20}
    for given, message in [
        ((frame.drop(columns=RATERS),), "no battle with a verdict has a human label"),
        ((frame, "rater"), "no column 'rater'"),
        ((frame.rename(columns={"judge-0": "people"}), RATERS, ["people"]), "which is the name of a row of results"),
        ((frame.assign(**{"judge-0": 1}), RATERS), "label_coding"),
        ((frame, RATERS, ["judge-0", "judge-1", "judge-0"]), "'judge-0' is named twice as a judge .*--judges"),
        ((frame, [*RATERS, "human-1"]), "'human-1' is named twice as a rater .*--human"),
        ((frame, ["human-0", "judge-1"]), "'judge-1' is named as a judge's verdicts and as human labels"),
        ((frame.assign(human="tie"), None, ["human"]), "'human' is named as a judge's verdicts and as human labels"),
    ]:
        options = wide if len(given) < 3 else {**wide, "judges": given[2]}
        with pytest.raises(jaxeval.DataError, match=message):
            jaxeval.judge_agreement(*given[:2], **options)
    long = frame.melt(["item", "model_a", "model_b"], JUDGES, "judge", "verdict")
    with pytest.raises(jaxeval.DataError, match="need a column of items"):
        jaxeval.judge_agreement(long.drop(columns="item"), "verdict")
    strange = pd.DataFrame({"item": [-1], "model_a": "x", "model_b": "w", "label": "tie"})
    with pytest.raises(jaxeval.DataError, match="none of the 1 human label is on an item and pair"):
        jaxeval.judge_agreement(long, strange)
    with pytest.raises(jaxeval.DataError, match="model against itself"):
        jaxeval.judge_agreement(frame.assign(model_a="w"), RATERS, judges=JUDGES)
    some = pd.concat([frame, frame.head(9).assign(model_a="w")])
    assert jaxeval.judge_agreement(some, RATERS, **wide).notes == ["9 rows of a model against itself: left out"]
    with pytest.raises(jaxeval.DataError, match="length_a"):
        jaxeval.judge_agreement(frame.assign(length_a="long"), RATERS, **wide)
    with pytest.raises(ValueError, match="level"):
        jaxeval.judge_agreement(frame, RATERS, judges=JUDGES, level=95)


@pytest.mark.slow
def test_intervals_hold_the_truth_with_items_that_share_errors():
    """Items of two battles with one error: 95 % intervals of agreement, kappa, the panel's worth and a difference."""
    truth = _measured(simulated(400_000, seed=99))
    held = []
    for seed in range(100):
        half = simulated(120, seed=seed)
        frame = pd.concat([half, half.assign(model_a=half["model_a"].map({"x": "y", "y": "z", "z": "x"}))])
        found = jaxeval.judge_agreement(frame, RATERS, judges=JUDGES, n_resamples=300, progress=False)
        own, panel = row(found, "judge-0"), found.panel.set_index(["measure", "of"])
        low, high = found.joint.of(measure="agreement").difference_interval()
        held.append(
            [own[f"{m}_lower"] <= truth[m, "judge-0"] <= own[f"{m}_upper"] for m in ("agreement", "kappa")]
            + [panel.loc[(m, "judges"), "lower"] <= truth[m, "panel"] <= panel.loc[(m, "judges"), "upper"]
               for m in ("n_independent", "alpha")]
            + [low.loc["judge-0", "people"] <= truth["agreement", "judge-0"] - truth["agreement", "people"]
               <= high.loc["judge-0", "people"]]
        )  # fmt: skip
    share = np.mean(held, axis=0)
    error = np.sqrt(0.95 * 0.05 / len(held))
    print(dict(zip(("agreement", "kappa", "n_independent", "alpha", "difference"), share, strict=True)))
    assert (np.abs(share - 0.95) < 4 * error).all(), share


def _measured(frame):
    battles = LabelledVerdicts.of(frame, RATERS, judges=JUDGES)
    columns = columns_of(battles, None)
    whole = by_name(sums_of_items(columns, battles.item).sum(0, keepdims=True), columns)
    return {key: float(value[0]) for key, value in measures(whole, JUDGES).items()}


class TestRandomPrompts:
    """Agreement under prompts like these, of judges whose accuracy depends on the prompt."""

    OPTIONS: ClassVar = {"judges": ["judge-0", "judge-1"], "n_resamples": 300, "progress": False}

    def table(self, seed, n_items=40, n_prompts=5):
        rng = np.random.default_rng(seed)
        moves = rng.normal(0, 0.8, (2, n_prompts))
        item, prompt = (x.ravel() for x in np.indices((n_items, n_prompts)))
        truth, hard = rng.random(n_items) < 0.5, rng.normal(0, 0.5, n_items)
        table = pd.DataFrame({"item": item, "prompt": prompt, "one": 1, "model_a": "x", "model_b": "y"})
        table["human"] = np.where(truth[item], "model_a", "model_b")
        for j in range(2):
            right = rng.random(len(item)) < 1 / (1 + np.exp(-(1.2 + moves[j][prompt] + hard[item])))
            table[f"judge-{j}"] = np.where(truth[item] == right, "model_a", "model_b")
        return table

    def test_shares_vary_as_components_of_cells_say(self, tmp_path):
        table = self.table(1)
        found = jaxeval.judge_agreement(table, random="prompt", **self.OPTIONS)
        about = "for prompts and items like these (5 prompts, 40 items): "
        assert found.answer.sentences[0].startswith(about)
        right = (table["judge-1"] == table["human"]).to_numpy(float)
        design = design_of({"item": table["item"].to_numpy(), "prompt": table["prompt"].to_numpy()})
        variance, dof = design.error(design.components(design.squares(right[:, None]))[:, 0, 0])
        draws = found.joint.draws[:, list(found.joint.names).index(("agreement", "judge-1"))]
        longer = student_quantile(0.95, dof) / normal_quantile(0.95)
        assert draws.std() == pytest.approx(np.sqrt(variance) * longer, rel=0.15)
        alone = jaxeval.judge_agreement(table, **self.OPTIONS)
        row, before = (x.table.set_index("judge").loc["judge-1"] for x in (found, alone))
        for name in ("agreement", "kappa"):
            assert row[f"{name}_upper"] - row[f"{name}_lower"] > before[f"{name}_upper"] - before[f"{name}_lower"]
        table.to_csv(tmp_path / "judges.csv", index=False)
        line = "agreement", tmp_path / "judges.csv", "--judges", "judge-0,judge-1", "--resamples", 300
        assert about in " ".join(run(*line, "--random", "prompt").output.split())

    def test_labels_without_models(self):
        table = self.table(1).drop(columns=["model_a", "model_b"])
        found = jaxeval.judge_agreement(table, random="prompt", **self.OPTIONS)
        assert found.joint.settings["random"] == ["prompt"]

    def test_what_is_refused(self):
        table = self.table(1, n_items=6)
        refused = {"one": "one has one level", "no": "no column 'no'", "human": "it holds models or labels"}
        for name, text in refused.items():
            with pytest.raises(jaxeval.DataError, match=text):
                jaxeval.judge_agreement(table, random=name, **self.OPTIONS)
        long = table.melt(["item", "prompt", "model_a", "model_b", "human"], ["judge-0", "judge-1"], "judge", "verdict")
        with pytest.raises(jaxeval.DataError, match="column 'judge' has several values within a battle"):
            jaxeval.judge_agreement(long[long["prompt"] == 0], random="judge", n_resamples=20, progress=False)

    @pytest.mark.slow
    def test_intervals_hold(self):
        x = np.random.default_rng(1).normal(1.2, np.hypot(0.8, 0.5), 10**6)
        truth, held = (1 / (1 + np.exp(-x))).mean(), []
        for seed in range(150):
            found = jaxeval.judge_agreement(self.table(seed), random="prompt", **self.OPTIONS).table.iloc[:2]
            held.append(((found["agreement_lower"] <= truth) & (truth <= found["agreement_upper"])).mean())
        assert 0.92 < np.mean(held) < 0.975


def test_people_who_always_say_the_same():
    """Kappa is 0 in all resamples, and two equal judges are worth one in all: neither has an interval."""
    said = np.where(np.arange(40) % 3 == 0, "model_a", "model_b")
    table = pd.DataFrame(
        {"item": range(40), "model_a": "x", "model_b": "y", "human": "model_a", "j1": said, "j2": said}
    )
    found = jaxeval.judge_agreement(table, "human", judges=["j1", "j2"], n_resamples=50)
    sentences = " ".join(found.answer.sentences)
    assert "; kappa 0.00; no item has labels of two people" in sentences
    assert sentences.endswith("the 2 judges are worth 1.0 independent ones")
