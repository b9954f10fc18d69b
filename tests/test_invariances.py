"""The invariances that every estimator owes: `estimators` has the table, and says which one owes what."""

import inspect
import re
from functools import cache

import estimators
import jax
import numpy as np
import pandas as pd
import pytest
from devices import on_four_devices
from estimators import ELSEWHERE, ESTIMATORS, INVARIANCES, RUN, TO_THE_BIT, B, Found

import jaxeval
from jaxeval import DataError
from jaxeval.execution import lanes
from jaxeval.execution.lanes import LaneRun


def owed(invariance):
    """The estimators that owe an invariance, as parameters of its test."""
    return pytest.mark.parametrize("estimator", [
        pytest.param(x, id=x.name, marks=[pytest.mark.slow] if x.slow else [])
        for x in ESTIMATORS if invariance not in x.without
    ])  # fmt: skip


def found(estimator, data=None, call=None, **options):
    data = estimator.data() if data is None else data
    return estimator.read((call or estimator.call)(data, **{**RUN, **options}))


@cache
def _plain(place):
    return found(ESTIMATORS[place])


def plain(estimator):
    """What all others are compared with; made once."""
    return _plain(ESTIMATORS.index(estimator))


def assert_near(one, other, atol):
    """Equal numbers of equal labels: of an index, or of columns of draws."""
    labels = one.columns if one.ndim == 2 else one.index
    assert set(labels) == set(other.columns if one.ndim == 2 else other.index)
    np.testing.assert_allclose(one, other.reindex(labels, axis=one.ndim - 1), rtol=0, atol=atol)


def assert_same(one, other, atol):
    """Equal estimates, draws and ends of intervals."""
    assert_near(one.estimate, other.estimate, atol)
    assert_near(one.ends, other.ends, atol)
    if one.draws is not None:
        assert_near(one.draws, other.draws, atol)


def models_of(data):
    columns = [c for c in ("model_a", "model_b", "model", "ranking") if c in next(iter(data.values()))]
    names = set()
    for table in data.values():
        for column in columns:
            values = table[column].unique()
            names |= set(re.findall(r"m\d", " ".join(values)) if column == "ranking" else values)
    return sorted(names)


def relabelled(estimate, new):
    labels = [tuple(new.get(part, part) for part in label) for label in estimate.index]
    return estimate.set_axis(pd.Index(labels, tupleize_cols=False))


def test_every_estimator_is_in_the_table_or_has_a_reason():
    public = (getattr(jaxeval, name) for name in jaxeval.__all__)
    functions = (x for x in public if inspect.isfunction(x))
    resampling = {x.__name__ for x in functions if "n_resamples" in inspect.signature(x).parameters}
    tested = {x.function for x in ESTIMATORS}
    assert tested | set(ELSEWHERE) == resampling
    assert not tested & set(ELSEWHERE)
    assert len({x.name for x in ESTIMATORS}) == len(ESTIMATORS)
    for estimator in ESTIMATORS:
        assert set(estimator.without) <= set(INVARIANCES)
        assert set(estimator.rounded) <= set(TO_THE_BIT) - set(estimator.without)
        assert all(estimator.without.values())
    for invariance in INVARIANCES:
        assert f"test_{invariance}" in globals()


@owed("names")
def test_names(estimator):
    data = estimator.data()
    models = models_of(data)
    new = {name: f"n{len(models) - k:02d}" for k, name in enumerate(models)}
    other = found(estimator, estimators.renamed(data, new))
    assert_near(other.estimate, relabelled(plain(estimator).estimate, new), estimator.atol)


@owed("spelling")
def test_spelling(estimator):
    data = estimator.data()
    new = {name: f"z{name}" for name in models_of(data)}
    own, other = plain(estimator), found(estimator, estimators.renamed(data, new))
    assert_near(other.ends, relabelled(own.ends, new), estimator.atol)
    if own.draws is not None:
        assert_near(other.draws, relabelled(own.draws.T, new).T, estimator.atol)


@owed("rows")
def test_rows(estimator):
    assert_same(found(estimator, estimators.shuffled(estimator.data())), plain(estimator), estimator.atol)


@owed("sides")
def test_sides(estimator):
    own, other = plain(estimator), found(estimator, estimators.turned(estimator.data(), estimator.swapped))
    assert_near(own.estimate, other.estimate, estimator.atol)
    if not estimator.by_kind:
        assert_same(own, other, estimator.atol)


@owed("weights")
def test_weights(estimator):
    """For estimates; errors know that a row of weight 2 is one observation."""
    data = estimator.data()
    one, other = (found(estimator, change(data)) for change in (estimators.twice, estimators.weighted))
    assert_near(one.estimate, other.estimate, estimator.atol)


@owed("counts")
def test_counts(estimator):
    data = estimators.counted(estimator.data())
    assert any(len(table) < len(own) for table, own in zip(data.values(), estimator.data().values(), strict=True))
    assert_same(found(estimator, data), plain(estimator), estimator.atol)


@owed("alone")
def test_alone(estimator):
    alone, whole = found(estimator, call=estimator.alone), plain(estimator)
    assert 0 < len(alone.estimate) < len(whole.estimate)
    draws = None if alone.draws is None else whole.draws[alone.draws.columns]
    own = Found(whole.estimate[alone.estimate.index], draws, whole.ends[alone.ends.index])
    assert_near(alone.estimate, own.estimate, estimator.atol)
    if not estimator.by_kind:
        assert_same(alone, own, estimator.atol)


@owed("seed")
def test_seed(estimator):
    own, other = plain(estimator), found(estimator, seed=1)
    assert_near(own.estimate, other.estimate, estimator.atol)
    one, another = (x.ends if x.draws is None else x.draws for x in (own, other))
    assert not np.allclose(one, another, equal_nan=True)


@owed("chunks")
def test_chunks(estimator):
    for size, atol in ((7, estimator.within("chunks")), (1, estimator.atol)):
        assert_same(found(estimator, chunk_size=size), plain(estimator), atol)


def lanes_of(estimator, n_resamples):
    """What the lanes of a run give, by their section, slice and number."""
    seen = {}

    def keep(section, of, results):
        for name, values in lanes.named_leaves(results).items():
            for own, number, value in zip(of.slices.tolist(), of.numbers.tolist(), values, strict=True):
                seen[section, name, own, number] = value

    results, solve = LaneRun.results, LaneRun.solve

    def kept_results(run, task, of, section):
        made = results(run, task, of, section)
        keep(section, of, made)
        return made

    def kept_solution(run, solvers, of, section):
        made = solve(run, solvers, of, section)
        keep(section, of, made[0])
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaneRun, "results", kept_results)
        patch.setattr(LaneRun, "solve", kept_solution)
        found(estimator, n_resamples=n_resamples)
    return seen


@owed("first")
def test_first(estimator):
    whole = plain(estimator)
    if whole.draws is not None:
        few = found(estimator, n_resamples=estimator.fewer)
        assert len(few.draws) == estimator.fewer < B
        assert_near(few.draws, whole.draws[: estimator.fewer], estimator.within("first"))
        return
    few, many = lanes_of(estimator, estimator.fewer), lanes_of(estimator, B)
    assert set(few) < set(many)
    for lane, value in few.items():
        np.testing.assert_allclose(value, many[lane], rtol=0, atol=estimator.within("first"), err_msg=str(lane))


def save(path, slow):
    """All results of this process, as arrays in one file: what the process of four devices runs."""
    arrays, flag = {"n": jax.device_count()}, jax.config.jax_enable_x64
    for place, estimator in enumerate(ESTIMATORS):
        if estimator.slow == slow and estimator.owes("devices"):
            own = found(estimator, chunk_size=7)
            arrays |= {f"{place} estimate": own.estimate, f"{place} ends": own.ends}
            if own.draws is not None:
                arrays[f"{place} draws"] = own.draws
    assert jax.config.jax_enable_x64 == flag
    if not slow:
        boards = jaxeval.bootstrap(estimators.battles(estimators.votes()["votes"]), 8, chunk_size=7)
        assert boards.settings.n_devices == jax.device_count()
    np.savez(path, **arrays)


@pytest.fixture(scope="module")
def four_devices(tmp_path_factory):
    """Results of four devices, all fast estimators in one process and all slow ones in another."""
    folder = tmp_path_factory.mktemp("devices")

    @cache
    def saved(slow):
        script = f"import sys, test_invariances\ntest_invariances.save(sys.argv[1], {slow})"
        return dict(on_four_devices(script, __file__.rpartition("/")[0], folder / f"{slow}.npz"))

    return saved


@owed("devices")
@pytest.mark.slow
def test_devices(estimator, four_devices):
    saved, own, place = four_devices(estimator.slow), plain(estimator), ESTIMATORS.index(estimator)
    for name, values in own._asdict().items():
        if values is not None:
            assert saved[f"{place} {name}"].dtype == np.float64
            np.testing.assert_allclose(saved[f"{place} {name}"], values, rtol=0, atol=estimator.within("devices"))


class StoppedError(Exception):
    """Somebody stops a run."""


def kept_run(estimator, folder, stop_in=None, **options):
    """What a run with a checkpoint finds, and how many lanes each of its parts computed.

    It is stopped half-way through the part that is number ``stop_in``.
    """
    parts, finished = [], LaneRun._finished

    def recorded(run, task, of, which, results):
        if run.checkpoint is None or len(which) == 0:
            yield from finished(run, task, of, which, results)
            return
        parts.append(len(which))
        if len(parts) - 1 == stop_in:
            yield from finished(run, task, of, which[: len(which) // 2], results)
            raise StoppedError
        yield from finished(run, task, of, which, results)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaneRun, "_finished", recorded)
        return found(estimator, checkpoint=folder, **options), parts


@owed("checkpoint")
def test_checkpoint(estimator, tmp_path):
    """A stopped run leaves what it finished; of a finished one nothing is computed again."""
    plain(estimator)  # `draws_of` looks at a statistic once, in a part of the first run
    _, parts = kept_run(estimator, tmp_path / "whole")
    last, folder = len(parts) - 1, tmp_path / "stopped"
    with pytest.raises(StoppedError):
        kept_run(estimator, folder, stop_in=last)
    resumed, left = kept_run(estimator, folder)
    assert left == [parts[last] - parts[last] // 2]
    assert_same(resumed, plain(estimator), estimator.atol)
    again, left = kept_run(estimator, folder)
    assert left == []
    assert_same(again, resumed, 0)
    with pytest.raises(DataError, match=r"holds resamples of another run \(seed 0, not 1\)"):
        found(estimator, checkpoint=folder, seed=1)
    with pytest.raises(TypeError, match="checkpoint must be the path of a folder, got 5"):
        found(estimator, checkpoint=5)


@owed("more")
def test_more(estimator, tmp_path):
    _, parts = kept_run(estimator, tmp_path / "whole")
    kept_run(estimator, tmp_path / "fewer", n_resamples=estimator.fewer)
    more, left = kept_run(estimator, tmp_path / "fewer")
    assert 0 < sum(left) < sum(parts)
    assert_same(more, plain(estimator), estimator.atol)


def sized_run(estimator, **options):
    """What a run finds, and the sizes of its chunks."""
    sizes, placed = [], lanes._placed

    def recorded(parts, of, size, per_device):
        sizes.append(size)
        return placed(parts, of, size, per_device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "_placed", recorded)
        return found(estimator, **options), sizes


@owed("memory")
def test_memory(estimator):
    """The error names what a part of the work needs; another part may need more."""
    own, sizes = sized_run(estimator)
    limit, needs = 1, re.compile(r"too small: .* one resample at a time ([\d,]+) more; ([\d,]+) would do")
    for _ in range(5):
        try:
            few, smaller = sized_run(estimator, memory_limit=limit)
            break
        except jaxeval.MemoryLimitError as error:
            lane, enough = (int(x.replace(",", "")) for x in needs.search(str(error)).groups())
            assert enough > limit
            with pytest.raises(jaxeval.MemoryLimitError):
                found(estimator, memory_limit=enough - 1)
            limit = enough + 6 * lane
    assert limit > 1
    assert min(smaller) < min(sizes)
    assert_same(few, own, estimator.atol)
