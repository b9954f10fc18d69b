"""``random=`` of `draws_of`: draws vary with judges as components of influences say."""

import numpy as np
import pytest

import jaxeval


def means(weights, data):
    return {name: weights @ data[name] / weights.sum() for name in ("model-1", "model-2")}


def columns(seed=1, judges=4, n_items=60):
    spreads = {"judge": 0.1}
    table = jaxeval.simulate_facet_scores(2, n_items, {"judge": judges}, spreads=spreads, seed=seed)
    wide = table.pivot_table("score", ["item", "judge"], "model").reset_index()
    return table, {str(name): wide[name].to_numpy() for name in wide}


def test_draws_of_means_vary_as_the_budget_says():
    table, data = columns()
    draws = jaxeval.draws_of(means, data, cluster="item", random="judge", n_resamples=2000)
    budget = jaxeval.error_budget(table, ["judge"])
    errors = budget.models.set_index("model")["standard_error"][list(draws.names)]
    np.testing.assert_allclose(draws.draws.std(0), errors, rtol=0.08)
    apart = (draws.draws[:, 0] - draws.draws[:, 1]).std()
    assert apart == pytest.approx(budget.differences["standard_error"].iloc[0], rel=0.08)
    assert draws.freedom == pytest.approx(budget.models["dof"].min(), rel=1e-6)
    assert draws.answer.sentences[0].startswith("for judges and items like these (4 judges, 60 items): ")
    alone = jaxeval.draws_of(means, data | {"judge": np.ones(len(data["judge"]))}, cluster="item", n_resamples=2000)
    assert (draws.draws.std(0) > 1.05 * alone.draws.std(0)).all()


def test_what_is_refused():
    _, data = columns(judges=1)
    with pytest.raises(jaxeval.DataError, match="judge has one level"):
        jaxeval.draws_of(means, data, cluster="item", random="judge", n_resamples=20)
    with pytest.raises(ValueError, match="no strata and by"):
        jaxeval.draws_of(means, data, random="judge", strata="item", n_resamples=20)
    with pytest.raises(jaxeval.DataError, match="random='prompt' names no column"):
        jaxeval.draws_of(
            means, data | {"item": data["model-1"], "judge": data["model-1"]}, random="prompt", n_resamples=20
        )
    draws = jaxeval.draws_of(means, columns()[1], cluster="item", random="judge", n_resamples=20)
    with pytest.raises(ValueError, match="random facets go beyond them"):
        draws.interval(kind="bca")


@pytest.mark.slow
def test_intervals_hold():
    held, n = 0, 400
    for seed in range(n):
        table = jaxeval.simulate_facet_scores(1, 100, {"judge": 4}, spreads={"judge": 0.08}, shared=0.0, seed=seed)
        data = {"x": table["score"].to_numpy(), "judge": table["judge"].to_numpy(), "item": table["item"].to_numpy()}
        draws = jaxeval.draws_of(
            lambda w, d: w @ d["x"] / w.sum(), data, cluster="item", random="judge", n_resamples=200, progress=False
        )
        ends = draws.interval().iloc[0]
        held += ends["lower"] <= 0.7 <= ends["upper"]
    assert abs(held / n - 0.95) < 3 * np.sqrt(0.05 * 0.95 / n)
