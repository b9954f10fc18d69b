"""Statistics of one's own: draws, intervals and errors beside NumPy and SciPy; and what goes wrong, in words."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from compilations import compilations

import jaxeval
from jaxeval import draws_of, loo_of
from jaxeval.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.standard_t(3, size=(60, 3)) + np.array([1.0, 0.5, 0.4])
TABLE = pd.DataFrame(X, columns=[*"abc"]).assign(
    category=np.arange(60) % 2, family=np.arange(60) // 10, task=np.arange(60) // 2, name="x"
)
B = 64


def means(weights, x):
    return weights @ x / weights.sum()


def trimmed_mean(weights, x, share=0.1):
    order = jnp.argsort(x, axis=0)
    w = weights[order] / weights.sum()
    below = jnp.cumsum(w, 0) - w
    inside = jnp.clip(jnp.minimum(below + w, 1 - share) - jnp.maximum(below, share), 0, None)
    return (inside * jnp.take_along_axis(x, order, 0)).sum(0) / inside.sum(0)


def by_row(weights, row):
    return jax.ops.segment_sum(weights, row, 60)


def counts_of(further=None, n_resamples=B, **options):
    """How often each row is in each resample: (B, N)."""
    data = {"row": np.arange(60), **(further or {})}
    return draws_of(lambda w, d: by_row(w, d["row"]), data, n_resamples=n_resamples, **options).draws


class TestDraws:
    def test_the_statistic_of_the_rows_that_were_drawn(self):
        drawn = draws_of(trimmed_mean, X, [*"abc"], B)
        np.testing.assert_allclose(drawn.estimate, scipy.stats.trim_mean(X, 0.1), rtol=1e-12)
        counts = draws_of(
            lambda w, d: {"count": by_row(w, d[1]), "trimmed": jnp.resize(trimmed_mean(w, d[0]), 60)},
            (X, np.arange(60)), n_resamples=B,
        )  # fmt: skip
        rows = counts.of(measure="count").draws.astype(int)
        assert (rows.sum(1) == 60).all()
        expected = [scipy.stats.trim_mean(np.repeat(X, own, axis=0), 0.1) for own in rows]
        np.testing.assert_allclose(counts.of(measure="trimmed").draws[:, :3], expected, rtol=1e-10)

    def test_errors_are_those_of_a_loop(self):
        drawn = draws_of(trimmed_mean, X, n_resamples=2000)
        rng = np.random.default_rng(1)
        loop = scipy.stats.trim_mean(X[rng.integers(0, 60, (2000, 60))], 0.1, axis=1).std(0)
        np.testing.assert_allclose(drawn.standard_errors, loop, rtol=4 * np.sqrt(2 / (2 * 2000)))

    @pytest.mark.parametrize("scheme", ["multinomial", "poisson", "bayesian"])
    def test_schemes_have_the_variance_of_weights(self, scheme):
        weights = counts_of(scheme=scheme, n_resamples=2000)
        assert abs(weights.mean() - 1) < 0.01
        assert weights.var(0).mean() == pytest.approx(1 - 1 / 60, rel=0.05)
        if scheme != "poisson":
            np.testing.assert_allclose(weights.sum(1), 60)

    def test_clusters_and_strata(self):
        weights = counts_of(cluster=TABLE["task"])
        assert (weights[:, ::2] == weights[:, 1::2]).all()
        assert (weights.sum(1) == 60).all()
        within = counts_of(strata=TABLE["category"])
        assert (within[:, ::2].sum(1) == 30).all()
        both = counts_of(cluster=TABLE["task"], strata=TABLE["family"])
        assert (both.reshape(B, 6, 10).sum(2) == 10).all()

    def test_stages_draw_tasks_within_the_families_drawn(self):
        names = {"family": TABLE["family"].to_numpy(), "task": np.arange(60) // 2 % 5}
        weights = counts_of(cluster=["family", "task"], further=names, n_resamples=2000)
        assert (weights.sum(1) == 60).all()
        assert (weights[:, ::2] == weights[:, 1::2]).all()
        families = weights.reshape(2000, 6, 10).sum(2)
        assert set(np.unique(families)) <= set(range(0, 61, 10))
        # A task is drawn Binomial(5 c, 1/5) times in a family that is drawn c times: variances add.
        assert weights[:, ::2].var(0).mean() == pytest.approx((1 - 1 / 5) + (1 - 1 / 6), rel=0.06)

    def test_columns_side_by_side_multiply(self):
        names = {"item": np.arange(60) // 6, "model": np.arange(60) % 6}
        weights = counts_of(cluster={"item", "model"}, further=names).reshape(B, 10, 6)
        np.testing.assert_allclose(
            weights * weights.sum((1, 2), keepdims=True), weights.sum(2)[:, :, None] * weights.sum(1)[:, None]
        )
        assert (weights.sum((1, 2)) == 60).all()
        one = draws_of(means, pd.DataFrame(X).assign(**names), cluster={"item", "model"}, n_resamples=2)
        with pytest.raises(ValueError, match="drawn side by side have no single units"):
            one.interval(kind="bca")

    def test_rows_that_are_equal_may_be_merged(self):
        right = (X > 1).astype(float)
        n = 1000
        merged, each = (draws_of(means, right, n_resamples=n, rows=kind) for kind in ("interchangeable", "each"))
        np.testing.assert_allclose(merged.estimate, each.estimate)
        # A ratio of two deviations of n draws has a standard error of 1 / sqrt(n - 1).
        np.testing.assert_allclose(merged.standard_errors, each.standard_errors, rtol=4.5 / np.sqrt(n - 1))
        clusters = [
            draws_of(means, TABLE[["task"]].assign(x=right[:, 0]), cluster="task", rows=kind, n_resamples=B).draws
            for kind in ("interchangeable", "each")
        ]
        np.testing.assert_allclose(*clusters, atol=1e-12)

    def test_slices_are_drawn_by_themselves(self):
        drawn = draws_of(means, TABLE, by="category", cluster="task", n_resamples=B)
        assert drawn.names.names == ["category", "name"]
        own = TABLE[TABLE["category"] == 1][["a", "b", "c", "family"]]
        np.testing.assert_allclose(drawn.of(category=1).estimate, own.mean())
        several = draws_of(means, TABLE, by=["category", "family"], n_resamples=B)
        assert several.names.nlevels == 3

    def test_no_program_is_compiled_for_like_sizes_nor_for_a_function_defined_anew(self):
        def defined():
            return lambda weights, x: weights @ x / weights.sum() + 1

        draws_of(defined(), X, n_resamples=B)
        with compilations() as count:
            draws_of(defined(), X, n_resamples=B)
            draws_of(defined(), X[:50], n_resamples=B)
        assert count.programs == []

    def test_a_global_that_changes_counts(self):
        scaled = {}
        for factor in (1.0, 2.0):
            globals()["FACTOR"] = factor
            scaled[factor] = draws_of(_scaled, X, n_resamples=B).draws
        np.testing.assert_allclose(scaled[2.0], 2 * scaled[1.0])


def _scaled(weights, x):
    return FACTOR * (weights @ x)  # noqa: F821


def votes_of(table):
    return jaxeval.Battles.from_pandas(table)


class TestPairs:
    """The resamples are those of the library's own estimators."""

    @pytest.mark.parametrize("options", [{}, pytest.param({"cluster": "voter"}, marks=pytest.mark.slow)])
    def test_votes(self, options):
        votes = jaxeval.simulate_votes(600, 5, seed=0, details=True)
        battles = jaxeval.Battles.from_pandas(votes)
        m = battles.n_models

        def ratings(weights, votes):
            x = jax.nn.one_hot(votes["model_a"], m) - jax.nn.one_hot(votes["model_b"], m)

            def step(_, theta):
                p = jax.nn.sigmoid(x @ theta)
                information = (x.T * (weights * p * (1 - p))) @ x + 1 / m
                return theta + jnp.linalg.solve(information, x.T @ (weights * (votes["target"] - p)))

            return 1000 + 400 / jnp.log(10) * jax.lax.fori_loop(0, 12, step, jnp.zeros(m))

        own = draws_of(ratings, battles, n_resamples=20, **options)
        board = jaxeval.bootstrap(battles, 20, progress=False, **options)
        # A fit stops 1e-9 logits from the end of its steps, and the bootstrap 1e-8.
        np.testing.assert_allclose(own.estimate, board.fit.ratings, rtol=0, atol=2e-7)
        np.testing.assert_allclose((own - board.joint).draws, 0, atol=1e-5)

    def test_votes_of_slices(self):
        votes = jaxeval.simulate_votes(400, 4, seed=0, details=True)
        own = draws_of(lambda w, v: w @ v["target"], votes_of(votes), n_resamples=20, by="language")
        alone = votes_of(votes[votes["language"] == "English"])
        other = draws_of(lambda w, v: w @ v["target"], alone, n_resamples=20, by="language")
        np.testing.assert_allclose(own.of(language="English").draws, other.draws, atol=1e-12)

    def test_scores(self):
        scores = jaxeval.ItemScores.from_pandas(jaxeval.simulate_scores(80, 4, seed=1))
        board = jaxeval.score_draws(scores, n_resamples=B, progress=False)
        board = board if hasattr(board, "draws") else board.joint
        own = draws_of(means, scores, n_resamples=B)
        widened = own.estimate + (own.draws - own.estimate) * np.sqrt(80 / 79)
        np.testing.assert_allclose(widened, board.draws, atol=1e-12)

    def test_two_statistics_of_the_same_items(self):
        table = TABLE.assign(item=np.arange(60))
        one, other = (draws_of(means, table[["item", c]], ["mean"], B, cluster="item") for c in "ab")
        both = draws_of(means, table[["item", "a", "b"]], n_resamples=B, cluster="item")
        np.testing.assert_allclose((one - other).draws[:, 0], both.draws[:, 0] - both.draws[:, 1], atol=1e-12)


class TestIntervals:
    def test_bca_is_the_formula_of_its_inventor(self):
        x = np.exp(np.random.default_rng(2).normal(size=(60, 1)))
        drawn = draws_of(means, x, n_resamples=2000)
        draws, influence = drawn.draws[:, 0], x[:, 0] - x.mean()
        start = scipy.stats.norm.ppf((draws < x.mean()).mean())
        acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
        ends = start + scipy.stats.norm.ppf([0.025, 0.975])
        shares = scipy.stats.norm.cdf(start + ends / (1 - acceleration * ends))
        assert drawn.interval(kind="bca").iloc[0].tolist() == pytest.approx(np.quantile(draws, shares).tolist())

    def test_studentised_is_that_of_a_loop(self):
        x = np.exp(np.random.default_rng(3).normal(size=(50, 2)))
        counts = draws_of(lambda w, d: by_row(w, d[1])[:50], (x, np.arange(50)), n_resamples=300).draws
        drawn = draws_of(lambda w, d: means(w, d[0]), (x, np.arange(50)), n_resamples=300)
        samples = [np.repeat(x, own.astype(int), axis=0) for own in counts]
        t = np.array([(s.mean(0) - x.mean(0)) / (s.std(0) / np.sqrt(50)) for s in samples])
        error = x.std(0) / np.sqrt(50)
        low, high = np.quantile(t, [0.025, 0.975], axis=0)
        expected = np.stack([x.mean(0) - high * error, x.mean(0) - low * error], 1)
        np.testing.assert_allclose(drawn.interval(kind="studentised"), expected, rtol=1e-9)

    def test_influence_of_clusters_and_of_merged_rows(self):
        right = (X[:, :1] > 1).astype(float)
        p = right.mean()
        merged = draws_of(means, right, n_resamples=B, rows="interchangeable")
        assert merged.influence_errors.iloc[0] == pytest.approx(np.sqrt(p * (1 - p) / 60))
        table = pd.DataFrame({"x": X[:, 0], "task": np.arange(60) // 2})
        away = (X[:, 0] - X[:, 0].mean()).reshape(30, 2).sum(1) / 60
        drawn = draws_of(means, table, cluster="task", n_resamples=B)
        assert drawn.influence_errors.iloc[0] == pytest.approx(np.sqrt((away**2).sum()))

    def test_a_loop_of_unknown_length_has_bca(self):
        def halved(weights, x):
            mean = means(weights, x)
            return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] / 2), (0, mean))[1]

        drawn = draws_of(halved, X, n_resamples=B)
        plain = draws_of(means, X, n_resamples=B)
        np.testing.assert_allclose(8 * drawn.interval(kind="bca"), plain.interval(kind="bca"), rtol=1e-9)
        with pytest.raises(ValueError, match="a loop of unknown length"):
            drawn.interval(kind="studentised")

    def test_wald_goes_to_both_sides(self):
        drawn = draws_of(means, TABLE[["a", "task"]], cluster="task", n_resamples=B)
        half = scipy.stats.t.ppf(0.975, 29) * np.sqrt(1 + 1 / 29) * drawn.standard_errors.iloc[0]
        ends = drawn.interval(kind="wald").iloc[0]
        assert ends.tolist() == pytest.approx([drawn.estimate[0] - half, drawn.estimate[0] + half])

    def test_a_part_keeps_its_influence(self):
        drawn = draws_of(means, X, [*"abc"], B)
        part = drawn.take(np.array([2, 0]))
        pd.testing.assert_frame_equal(part.interval(kind="bca"), drawn.interval(kind="bca").loc[["c", "a"]])


class TestLeftOut:
    def test_each_group(self):
        found = loo_of(trimmed_mean, TABLE[["a", "b", "family"]], "family")
        expected = [scipy.stats.trim_mean(X[TABLE["family"] != f, :2], 0.1) for f in range(6)]
        np.testing.assert_allclose(found, expected)
        assert found.index.name == "family"
        np.testing.assert_allclose(list(found.attrs["estimate"].values()), scipy.stats.trim_mean(X[:, :2], 0.1))

    def test_each_row(self):
        found = loo_of(means, X)
        np.testing.assert_allclose(found, (X.sum(0) - X) / 59)

    def test_a_model_with_all_of_its_battles(self):
        battles = jaxeval.simulate_battles(200, 4, seed=0)
        found = loo_of(lambda w, v: w @ v["target"] / w.sum(), battles, "model")
        frame = pd.DataFrame({"a": battles.model_a, "b": battles.model_b, "y": battles.target})
        expected = [frame.query(f"a != {k} and b != {k}")["y"].mean() for k in range(4)]
        np.testing.assert_allclose(found.iloc[:, 0], expected)
        assert found.index.equals(battles.models)


class TestShown:
    def test_a_strangers_estimator_is_shown_and_kept(self, tmp_path):
        drawn = draws_of(trimmed_mean, TABLE, by="category", cluster="task", n_resamples=B)
        table = drawn.table()
        assert {"estimate", "lower", "upper", "rank", "tier"} <= set(table)
        jaxeval.write_table(table, tmp_path / "own.csv")
        jaxeval.save_draws(drawn, tmp_path / "own.npz")
        read = jaxeval.read_draws(tmp_path / "own.npz")
        assert (read.draws == drawn.draws).all()
        assert read.freedom == drawn.freedom
        pd.testing.assert_frame_equal(read.interval(), drawn.interval())
        figure = jaxeval.plots.plot_draws(drawn)
        assert len(figure.axes[0].get_yticklabels()) == len(drawn.names)
        jaxeval.page(drawn, tmp_path / "own.html", made="2026-01-01")
        assert "trimmed" in repr(drawn.settings)
        assert "tier" in (tmp_path / "own.html").read_text()

    def test_missing_values_are_told(self):
        def seen(weights, x):
            return jnp.stack([jnp.where(weights[0] > 0, weights[0], jnp.nan), weights.sum()])

        drawn = draws_of(seen, X, ["first", "all"], B)
        assert drawn.status[1] == "ok"
        assert drawn.status[0].startswith("no value in ")
        assert len(drawn.warnings) == 1

    def test_few_clusters_are_told(self):
        drawn = draws_of(means, TABLE[["a", "family"]], cluster="family", n_resamples=B)
        assert drawn.warnings[0].startswith("only 6 clusters")
        assert drawn.freedom == pytest.approx(5)


def _branches(weights, x):
    return x.sum(0) if weights.sum() > 3 else x.mean(0)


_ACCUMULATED = []


def _leaks(weights, x):
    _ACCUMULATED.append(weights)
    return weights @ x


_GENERATOR = np.random.default_rng(0)

WRONG = {
    "numpy": (lambda w, x: np.average(x, weights=w, axis=0), "hands an array of JAX to NumPy or pandas"),
    "if": (_branches, "asks for the value of a number that JAX has not computed yet"),
    "choice": (lambda w, x: x[w > 0].mean(0), "chooses rows by a condition"),
    "number": (lambda w, x: float(w.sum()), "asks for the value of a number"),
    "rows": (lambda w, x: (w @ x) / len(x), "changes when rows of weight 0 are added"),
    "unweighted": (lambda w, x: x.mean(0), "changes when rows of weight 0 are added"),
    "random": (lambda w, x: (w + _GENERATOR.normal()) @ x, "does not compute the same twice"),
    "leak": (_leaks, "changes something outside of itself"),
    "outside": (lambda w, x: w @ (x * np.arange(60)[:, None]), "of no other number of rows"),
    "nothing": (lambda w, x: None, "returns a NoneType"),
    "list": (lambda w, x: [w @ x], "returns a list"),
    "complex": (lambda w, x: 1j * (w @ x), "returns complex numbers"),
    "arguments": (lambda w: w, "must take two arguments"),
    "column": (lambda w, x: w @ x["a"], r"asks for what the data do not have.*pass dict\(table\)"),
    "pandas": (lambda w, x: x.groupby("a").mean(), "uses an array of JAX as one of NumPy or pandas"),
    "error": (lambda w, x: 1 / 0, r"raises ZeroDivisionError \(line "),
    "no value": (lambda w, x: jnp.log(-1 - jnp.abs(w @ x)), r"has no value \(NaN\) for the data"),
    "lengths": (lambda w, x: {"a": w @ x, "b": w.sum()}, "entries have different numbers of values"),
}


class TestErrors:
    @pytest.mark.parametrize("what", WRONG)
    def test_of_the_statistic(self, what):
        statistic, said = WRONG[what]
        with pytest.raises(ValueError, match=said) as found:
            draws_of(statistic, X, n_resamples=B)
        assert found.value.__cause__ is None
        assert "Tracer" not in str(found.value) or what == "pandas"

    @pytest.mark.parametrize(("data", "options", "said"), [
        ({"a": X[:, 0], "b": X[:40, 0]}, {}, "'a' has 60, 'b' has 40"),
        ({"a": X[:, 0], "b": TABLE["name"].to_numpy()}, {}, "'b' of the data holds"),
        ({"a": X[:, 0], "b": 3.0}, {}, "is a single number"),
        (X[:0], {}, "the data have no rows"),
        (X[:1], {}, "the data have one row"),
        (TABLE[["name"]], {}, "no column of numbers"),
        (TABLE, {"cluster": "tsk"}, "names no column of the data.*did you mean 'task'"),
        (X, {"cluster": np.arange(3)}, "a value for each of the 60 rows"),
        (TABLE, {"cluster": "family", "strata": "category"}, "several strata of 'category'"),
    ])  # fmt: skip
    def test_of_the_data(self, data, options, said):
        def first(weights, d):
            return weights @ (d["a"] if isinstance(d, dict) else d)

        with pytest.raises(DataError, match=said):
            draws_of(first, data, n_resamples=B, **options)

    def test_of_the_options(self):
        for options, said in [
            ({"names": ["a"]}, "returns 3 numbers, and there is 1 name"),
            ({"scheme": "jackknife"}, "unknown scheme 'jackknife'"),
            ({"rows": "merged"}, "rows must be one of"),
            ({"n_resamples": 0}, "n_resamples must be at least 1"),
            ({"scheme": "poisson", "strata": np.arange(60) % 2}, "no stratum has a given number"),
        ]:
            with pytest.raises(ValueError, match=said):
                draws_of(means, X, **{"n_resamples": B, **options})
        with pytest.raises(TypeError, match="statistic must be a function"):
            draws_of(3, X)
        with pytest.raises(TypeError, match="data must be an array"):
            draws_of(means, "votes.csv")

    def test_functions_of_other_kinds(self):
        doubled = functools.partial(lambda k, weights, x: k * means(weights, x), 2.0)
        for function in (doubled, jax.jit(lambda weights, x: 2 * means(weights, x))):
            np.testing.assert_allclose(draws_of(function, X, n_resamples=2).estimate, 2 * X.mean(0))


@pytest.mark.slow  # a process of its own
def test_a_process_that_checks_no_kinds_of_arrays():
    """Tests check them, users do not: a name that only the checks have must not be needed."""
    line = (
        "import jaxeval; print(jaxeval.draws_of(lambda w, d: w @ d / w.sum(), [0.0, 1.0], n_resamples=5).draws.shape)"
    )
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("(5, 1)\n", 0), done.stderr
