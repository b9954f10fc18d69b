"""`error_budget`: components, errors of models and differences, and designs that make them smaller."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy
from click.testing import CliRunner

import jaxeval
from jaxeval.cli.main import main
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.variance_components import design_of, joint_freedom

#: Synthetic Data Set No. 3 of Brennan (2001, Generalizability Theory): persons x items x occasions, two rows of four.
BRENNAN = np.array(
    [
        [[2, 4, 5, 5, 4, 4, 2, 3, 0, 6], [6, 5, 5, 9, 3, 4, 6, 4, 5, 8],
         [7, 6, 4, 8, 5, 4, 6, 4, 4, 7], [5, 7, 6, 6, 6, 7, 5, 5, 5, 6]],
        [[2, 6, 5, 5, 4, 6, 2, 6, 5, 6], [5, 7, 4, 7, 5, 4, 7, 6, 5, 8],
         [5, 5, 5, 7, 6, 7, 7, 6, 5, 8], [5, 7, 5, 6, 4, 8, 5, 4, 3, 6]],
    ]
)  # fmt: skip


def table_of(values, *names):
    """A long table of an array, with a column of levels for each axis."""
    places = np.indices(values.shape).reshape(values.ndim, -1)
    return pd.DataFrame({**dict(zip(names, places, strict=True)), "score": values.reshape(-1).astype(float)})


def anova(values, names):
    """Components of a crossed balanced design by the analysis of variance, as plainly as it is written in books."""
    axes, mean = range(values.ndim), {}
    for size in range(values.ndim + 1):
        for kept in combinations(axes, size):
            mean[kept] = values.mean(tuple(a for a in axes if a not in kept), keepdims=True)
    square, found = {}, {}
    for kept in mean:
        if kept:
            effect = sum((-1) ** (len(kept) - len(part)) * mean[part] for part in mean if set(part) <= set(kept))
            dof = np.prod([values.shape[a] - 1 for a in kept])
            square[kept] = (np.broadcast_to(effect, values.shape) ** 2).sum() / dof
    for kept in square:
        above = [more for more in square if set(kept) <= set(more)]
        signed = sum((-1) ** (len(more) - len(kept)) * square[more] for more in above)
        others = np.prod([values.shape[a] for a in axes if a not in kept])
        found[" x ".join(names[a] for a in kept) if len(kept) < values.ndim else "residual"] = signed / others
    return found


def test_brennan_to_the_printed_digits():
    found = jaxeval.error_budget(table_of(BRENNAN, "occasion", "item", "model"), ["occasion"])
    components = found.table.set_index("facet")["component"]
    printed = {"model": 0.5528, "item": 0.4417, "occasion": 0.0074, "model x item": 0.5750, "model x occasion": 0.1009,
               "item x occasion": 0.1565, "residual": 0.9352}  # fmt: skip
    assert components.round(4).to_dict() == printed
    by_hand = anova(BRENNAN.transpose(2, 1, 0).astype(float), ["model", "item", "occasion"])
    np.testing.assert_allclose(components, [by_hand[name] for name in components.index], rtol=1e-10)
    relative = 0.5750 / 4 + 0.1009 / 2 + 0.9352 / 8  # Brennan's rules, over 4 items and 2 occasions
    assert found.generalizability == pytest.approx(0.5528 / (0.5528 + relative), abs=2e-4)
    absolute = relative + 0.4417 / 4 + 0.0074 / 2 + 0.1565 / 8
    assert found.dependability == pytest.approx(0.5528 / (0.5528 + absolute), abs=2e-4)
    np.testing.assert_allclose(found.table["share"].sum(), 1)


def test_errors_of_a_balanced_design_by_hand():
    scores = jaxeval.simulate_facet_scores(3, 40, {"judge": 4, "prompt": 3}, seed=3)
    values = scores["score"].to_numpy().reshape(3, 40, 4, 3)
    found = jaxeval.error_budget(scores, ["judge", "prompt"])
    row = found.differences.iloc[1]
    apart = values[0] - values[2]
    squares = {}
    for axis, n in enumerate(apart.shape):
        means = apart.mean(tuple(a for a in range(3) if a != axis))
        squares[axis] = ((means - apart.mean()) ** 2).sum() * apart.size / n / (n - 1)
    rest = ((apart - apart.mean()) ** 2).sum() - sum(squares[a] * (n - 1) for a, n in enumerate(apart.shape))
    error = rest / (apart.size - 1 - sum(n - 1 for n in apart.shape))
    variance = max(sum(squares.values()) - 2 * error, *squares.values()) / apart.size
    assert row["difference"] == pytest.approx(apart.mean())
    assert row["standard_error"] == pytest.approx(np.sqrt(variance))
    parts = [max(squares[a] - error, 0) / apart.size for a in range(3)]
    names = ["variance_item", "variance_judge", "variance_prompt"]
    np.testing.assert_allclose(row[names].astype(float), parts, atol=1e-15)


@pytest.mark.slow  # the import
def test_nested_designs_are_those_of_reml():
    """Balanced and nested: Henderson's components are REML's where none is at the boundary."""
    formula = pytest.importorskip("statsmodels.formula.api")
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, (8, 1, 1)) + rng.normal(0, 0.7, (8, 4, 1)) + rng.normal(0, 0.5, (8, 4, 5))
    table = table_of(values, "judge", "seed", "again")
    seeds = (table["judge"] * 4 + table["seed"]).to_numpy()
    design = design_of({"judge": table["judge"].to_numpy(), "seed": seeds})
    assert design.names == ["judge", "seed", "residual"]
    found = design.components(design.squares(table[["score"]].to_numpy()))[:, 0, 0]
    fitted = formula.mixedlm(
        "score ~ 1", table, groups="judge", re_formula="1", vc_formula={"seed": "0 + C(seed)"}
    ).fit(reml=True, method=["bfgs"], gtol=1e-10)
    np.testing.assert_allclose(
        found, [fitted.cov_re.iloc[0, 0], fitted.vcomp[0], fitted.scale], rtol=1e-6
    )  # fmt: skip
    np.testing.assert_allclose(np.sqrt(design.error(found)[0]), fitted.bse["Intercept"], rtol=1e-6)
    assert design.error(found)[1] == pytest.approx(7)  # judges less one: seeds and scores are within judges


def test_unbalanced_components_are_right_on_average():
    """Traces of the expected squares, against plain matrices."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 5, 60), rng.integers(0, 4, 60)
    group = (np.arange(60) > 25).astype(int)
    design = design_of({"a": a, "b": b}, group=group)
    z = [np.eye(k)[code] for k, code in ((5, a), (4, b))] + [np.eye(60)]
    sweep = np.eye(60) - np.eye(2)[group] @ np.diag(1 / np.bincount(group)) @ np.eye(2)[group].T
    for s, row in enumerate(z):
        between = row @ np.diag(1 / row.sum(0)) @ row.T
        for r, column in enumerate(z):
            expected = np.trace(between @ sweep @ column @ column.T @ sweep)
            assert design.expected[s, r] == pytest.approx(expected)
    np.testing.assert_allclose(design.spread, [(row.sum(0) ** 2).sum() / 3600 for row in z])


def shuffled(table):
    return table.sample(frac=1, random_state=0)


def test_names_order_and_missing_cells_change_little():
    scores = jaxeval.simulate_facet_scores(3, 30, {"judge": 3}, seed=0)
    first = jaxeval.error_budget(scores, "judge")
    again = jaxeval.error_budget(shuffled(scores.assign(judge=scores["judge"].str.replace("judge", "z"))), ["judge"])
    pd.testing.assert_frame_equal(pd.DataFrame(first.table), pd.DataFrame(again.table))
    half = jaxeval.error_budget(scores.drop(index=[0, 5, 100]), "judge")
    known, fewer = (found.differences["standard_error"] for found in (first, half))
    np.testing.assert_allclose(known, fewer, rtol=0.03)
    assert (known != fewer).any()


def test_one_level_gives_no_number_and_two_a_warning():
    scores = jaxeval.simulate_facet_scores(2, 30, {"judge": 1, "prompt": 2}, seed=0)
    found = jaxeval.error_budget(scores, ["judge", "prompt"])
    assert found.differences[["lower", "upper", "standard_error"]].isna().all(axis=None)
    assert "no error can be given, as judge has one level" in found.answer.sentences[0]
    row = found.table.set_index("facet").loc["judge"]
    assert np.isnan(row["component"])
    assert row["flags"] == "one level: not known"
    assert any(text.startswith("prompt has two levels") for text in found.warnings)
    assert not len(found.decision)


def test_what_comes_together_is_counted_once():
    scores = jaxeval.simulate_facet_scores(2, 30, {"judge": 3}, seed=0)
    both = jaxeval.error_budget(scores.assign(prompt=scores["judge"]), ["judge", "prompt"])
    alone = jaxeval.error_budget(scores, ["judge"])
    assert any("prompt and judge always come together" in text for text in both.warnings)
    columns = ["standard_error", "lower", "upper"]
    pd.testing.assert_frame_equal(both.differences[columns], alone.differences[columns])
    nested = jaxeval.error_budget(scores.assign(judge=scores["item"] + scores["judge"]), ["judge"])
    assert any("judge" in text and "residual" in text for text in nested.warnings)
    seeds = jaxeval.simulate_facet_scores(2, 30, {"judge": 3, "seed": 2}, seed=0)
    found = jaxeval.error_budget(seeds.assign(seed=seeds["judge"] + seeds["seed"]), ["judge", "seed"])
    assert any(text.startswith("seed is nested in judge") for text in found.warnings)


def test_what_is_refused():
    scores = jaxeval.simulate_facet_scores(2, 30, {"judge": 2}, seed=0)
    own = scores[(scores["model"] == "model-1") == (scores["judge"] == "judge-1")]
    with pytest.raises(jaxeval.DataError, match="'judge' is confounded with the models: each of its 2 levels"):
        jaxeval.error_budget(own, ["judge"])
    with pytest.raises(jaxeval.DataError, match=r"no column 'jugde'.*judge"):
        jaxeval.error_budget(scores, ["jugde"])
    with pytest.raises(jaxeval.DataError, match="cannot be random: it is the column of the model"):
        jaxeval.error_budget(scores, ["model"])
    with pytest.raises(jaxeval.DataError, match="no column 'prompt' was read as random; there are 'judge'"):
        jaxeval.error_budget(jaxeval.ItemScores.from_pandas(scores, random=["judge"]), ["prompt"])
    with pytest.raises(ValueError, match="target must be between 0 and 1, got 2"):
        jaxeval.error_budget(scores, ["judge"], target=2)
    with pytest.raises(ValueError, match="prices are of item, judge, score, got 'judges'"):
        jaxeval.error_budget(scores, ["judge"], prices={"judges": 2})
    with pytest.raises(jaxeval.DataError, match="no model is called 'x'"):
        jaxeval.error_budget(scores, ["judge"], pair=("x", "model-1"))
    apart = scores[(scores["model"] == "model-1") == (scores["item"] < "item-15")]
    with pytest.raises(jaxeval.DataError, match="share no two items under the same judge"):
        jaxeval.error_budget(apart, ["judge"])


def test_one_model_equal_scores_and_rows_that_repeat():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, (6, 1)) + rng.normal(0, 1, (6, 5))  # items within judges
    table = table_of(values, "judge", "item").assign(model="m")
    found = jaxeval.error_budget(table.assign(item=range(30)), "judge")
    between = 5 * values.mean(1).var(ddof=1)
    within = values.var(1, ddof=1).mean()
    components = found.table.set_index("facet")["component"]
    np.testing.assert_allclose(components[["judge", "residual"]], [(between - within) / 5, within])
    assert found.models["standard_error"].iloc[0] == pytest.approx(np.sqrt(between / 30))
    assert len(found.differences) == 0
    alike = jaxeval.error_budget(jaxeval.simulate_facet_scores(2, 5, {"judge": 2}).assign(score=1.0), "judge")
    assert "scores show no variance" in alike.answer.sentences[0]
    shifted = pd.DataFrame({"model": [*"aabb"], "item": [1, 2, 1, 2], "score": [1.0, 2.0, 0.0, 1.0]})
    assert "differences show no variance" in jaxeval.error_budget(shifted).answer.sentences[0]
    again = jaxeval.error_budget(jaxeval.simulate_facet_scores(2, 5, {"judge": 2}))
    assert any("10 rows repeat a model and an item: averaged first" in text for text in again.warnings)


def test_ten_thousand_levels():
    rng = np.random.default_rng(0)
    seeds = np.tile(np.arange(10_000), 2)
    table = pd.DataFrame({"model": np.repeat(["a", "b"], 10_000), "item": seeds % 50, "seed": seeds})
    found = jaxeval.error_budget(table.assign(score=rng.normal(size=20_000)), ["seed"])
    assert found.differences["standard_error"].iloc[0] == pytest.approx(np.sqrt(2 / 10_000), rel=0.25)


def test_the_decision_study_reaches_its_target_in_simulation():
    """Differences under the cheapest design vary by as much as the study says."""
    spreads = {"item": 0.3, "judge": 0.08, "prompt": 0.05, "residual": 0.4}
    scores = jaxeval.simulate_facet_scores(2, 400, {"judge": 8, "prompt": 8}, spreads=spreads, seed=4)
    prices = {"judge": 30.0, "prompt": 5.0, "item": 1.0, "score": 0.01}
    found = jaxeval.error_budget(scores, ["judge", "prompt"], target=0.9, prices=prices)
    now, best = found.decision.iloc[0], found.decision.iloc[-1]
    assert best["design"] == "cheapest"
    assert best["standard_error"] <= 0.9 * now["standard_error"]
    more = found.decision.set_index("design").loc["more items"]
    assert pd.isna(more["n_scores"]) or best["cost"] <= more["cost"]
    parts = found.table.set_index("facet")["component"]
    n = {name: float(best[f"n_{name}"]) for name in ("item", "judge", "prompt")}
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(4000, 4))
    sizes = [n["item"], n["judge"], n["prompt"], np.prod(list(n.values()))]
    true = np.array([spreads[name] for name in ("item", "judge", "prompt", "residual")]) * np.sqrt(2 / np.array(sizes))
    simulated = (drawn * true).sum(1).std()
    assert best["standard_error"] == pytest.approx(simulated, rel=0.35)  # components of eight levels are known so far
    assert parts["model x judge"] > 0


def test_a_decision_study_of_nested_seeds_has_some_in_each_item():
    scores = jaxeval.simulate_facet_scores(2, 40, {"judge": 3, "seed": 3}, seed=0)
    nested = scores.assign(seed=scores["item"].str.cat(scores["seed"]))
    best = jaxeval.error_budget(nested, ["judge", "seed"]).decision.set_index("design").loc["cheapest"]
    assert best["n_seed"] >= best["n_item"]
    assert best["n_scores"] == best["cost"] == best["n_judge"] * best["n_seed"]
    in_judges = scores.assign(seed=scores["judge"].str.cat(scores["seed"]))
    best = jaxeval.error_budget(in_judges, ["judge", "seed"]).decision.set_index("design").loc["cheapest"]
    assert best["n_seed"] >= best["n_judge"]
    assert best["n_scores"] == best["n_item"] * best["n_seed"]


def test_the_command_writes_what_python_gives(tmp_path):
    scores = jaxeval.simulate_facet_scores(3, 40, {"judge": 3}, seed=0)
    file = tmp_path / "facets.csv"
    scores.to_csv(file, index=False)
    run = CliRunner().invoke
    out = tmp_path / "found"
    options = ["--random", "judge", "--price", "judge=20,score=0.1"]
    result = run(main, ["error-budget", str(file), *options, "--out", f"{out}/"])
    assert result.exit_code == 0, result.output
    assert "for judges and items like these (3 judges, 40 items)" in " ".join(result.output.split())
    expected = jaxeval.error_budget(scores, ["judge"], prices={"judge": 20, "score": 0.1})
    for name, table in (("components", expected.table), ("differences", expected.differences)):
        written = pd.read_csv(out / f"{name}.csv", comment="#")
        np.testing.assert_allclose(written.iloc[:, 1].apply(pd.to_numeric, errors="coerce").dropna(),
                                   pd.to_numeric(table.iloc[:, 1], errors="coerce").dropna(), rtol=1e-6)  # fmt: skip
    result = run(main, ["error-budget", str(file), "--random", "judge", "--where", "judge <> 'judge-1'"])
    assert "for judges and items like these (2 judges, 40 items)" in " ".join(result.output.split())
    for wrong, text in ((["--random", "jury"], "no column 'jury'"), (["--price", "judge"], "--price takes NAME=COST"),
                        (["--random", "judge", "--pair", "model-1", "x"], "x")):  # fmt: skip
        result = run(main, ["error-budget", str(file), *wrong])
        assert result.exit_code != 0
        assert text in " ".join(result.output.split())


#: Items, judges, prompts (or seeds within judges), and standard deviations of their effects and of single scores.
DESIGNS = [
    (200, 3, 4, 0.4, 0.03, 0.02, 0.5), (200, 5, 5, 0.4, 0.03, 0.02, 0.5), (200, 2, 3, 0.4, 0.05, 0.0, 0.5),
    (1000, 3, 4, 0.4, 0.03, 0.02, 0.5), (1000, 10, 5, 0.4, 0.03, 0.02, 0.5), (50, 3, 3, 0.4, 0.0, 0.0, 0.5),
    (1000, 3, 3, 0.4, 0.0, 0.0, 0.5), (2000, 2, 2, 0.4, 0.05, 0.03, 0.5),
]  # fmt: skip


def simulated_intervals(sizes, spreads, kept, nested, n, seed):
    """Whether intervals hold 0, with all facets and with items alone, and how long they are; n data sets at once."""
    rng = np.random.default_rng(seed)
    i, j, p = np.indices(sizes).reshape(3, -1)
    there = rng.random(len(i)) < kept
    i, j, p = np.unique(i[there], return_inverse=True)[1], j[there], (j * sizes[2] + p if nested else p)[there]
    design = design_of({"item": i, "judge": j, "prompt": p}, 1 / np.bincount(i)[i])
    found = []
    for _ in range(n // 50):
        effects = [rng.normal(0, sd, (code.max() + 1, 50))[code] for code, sd in zip((i, j, p), spreads, strict=False)]
        values = sum(effects) + rng.normal(0, spreads[3], (len(i), 50))
        variance, dof = design.error(design.components(design.squares(values)[:, range(50), range(50)]))
        mean = design.weight @ values
        means = np.stack([np.bincount(i, column) for column in values.T], 1) / np.bincount(i)[:, None]
        ends = student_quantile(0.95, dof) * np.sqrt(variance)
        alone = student_quantile(0.95, len(means) - 1.0) * means.std(0, ddof=1) / np.sqrt(len(means))
        found.append([np.abs(mean) <= ends, np.abs(mean) <= alone, ends, alone])
    return np.concatenate(found, 1).mean(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "kept", "nested"),
    [*((design, 1.0, False) for design in DESIGNS), (DESIGNS[0], 0.5, False), (DESIGNS[0], 1.0, True)],
)
def test_intervals_hold(design, kept, nested):
    n = 1000 if design[0] < 1000 else 400
    held, alone, length, shortest = simulated_intervals(design[:3], design[3:], kept, nested, n, 11)
    error = np.sqrt(0.05 * 0.95 / n)
    assert held > 0.94 - 3 * error
    assert length > shortest
    if design[4]:
        assert alone < held
    else:  # judges and prompts without any effect
        assert length < 1.15 * shortest


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.6])  # of the single scores, a share of the variance over items
@pytest.mark.parametrize(("levels", "least"), [(2, 0.925), (3, 0.933), (5, 0.94), (10, 0.945)])
def test_intervals_hold_whatever_a_facet_adds(levels, least, noise):
    """The mean square of its levels is a chi-square, that of items is known: the chance is summed over quantiles."""
    d = levels - 1
    chi2 = scipy.stats.chi2.ppf((np.arange(2000) + 0.5) / 2000, d) / d
    for added in (0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 1024):
        stratum = (noise + added) * chi2
        variance = np.maximum(np.maximum(stratum + 1 - noise, stratum), 1.0)
        parts = np.stack([stratum, np.ones_like(stratum)], -1)
        reach = student_quantile(0.95, joint_freedom(parts, np.array([d, 1e6]), variance)) * np.sqrt(variance)
        held = np.mean(2 * scipy.stats.norm.cdf(reach / np.sqrt(1 + added)) - 1)
        assert held > least


def test_levels_of_unlike_size_leave_no_error_of_zero():
    """A stratum that is negative is that of what is nested in it: one judge with nine items of ten, or equal means."""
    rng = np.random.default_rng(5)
    for sizes in ([180, 5, 5, 5, 5], [20, 20]):
        judge = np.repeat(np.arange(len(sizes)), sizes)
        design = design_of({"item": np.arange(len(judge)), "judge": judge})
        values = rng.normal(0, 1, (len(judge), 40))
        values -= np.stack([np.bincount(judge, column) / sizes for column in values.T], 1)[judge]  # judges are alike
        components = design.components(np.diagonal(design.squares(values), axis1=1, axis2=2))
        variance, dof = design.error(components)
        np.testing.assert_allclose(variance, values.var(0) / (len(judge) - len(sizes)))
        np.testing.assert_allclose(dof, 1)
