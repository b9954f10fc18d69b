import numpy as np
import pytest

from jaxeval.execution import shapes
from jaxeval.execution.shapes import Budget, Room, Step, calls_at_once, chunk_lanes, padded, padded_rows, slots_per_call

BUDGET = Budget(Room(8_000, 1024), Room(2**20, 4096), 32)


@pytest.fixture(params=["cpu", "gpu"])
def backend(request, monkeypatch):
    monkeypatch.setattr(shapes.jax, "default_backend", lambda: request.param)
    monkeypatch.setattr(shapes.jax, "local_device_count", lambda: 1)
    return request.param


@pytest.mark.parametrize(("entries", "lanes"), [(10, 512), (500, 16), (3_000, 2), (8_001, 1), (0, 1024)])
def test_a_chunk_fits_the_cache(entries, lanes, monkeypatch):
    monkeypatch.setattr(shapes.jax, "local_device_count", lambda: 1)
    assert chunk_lanes(BUDGET, entries, np.array([100_000])) == lanes


def test_calls_run_side_by_side_on_cores_that_no_device_takes(backend, monkeypatch):
    monkeypatch.setattr(shapes, "n_cores", lambda: 64)
    assert calls_at_once(BUDGET) == (8 if backend == "cpu" else 1)
    assert calls_at_once(BUDGET._replace(side_by_side=False)) == 1
    monkeypatch.setattr(shapes.jax, "local_device_count", lambda: 4)
    assert calls_at_once(BUDGET) == 1


def test_a_budget_may_ask_for_vectors_whatever_they_take(backend):
    assert chunk_lanes(BUDGET._replace(least=8), 2**30, np.array([1000])) == 8


@pytest.mark.parametrize("n_lanes", [1, 7, 30, 33, 100, 129, 1000, 5000])
def test_little_more_runs_than_there_is(backend, n_lanes):
    """On a CPU little is what takes less time than to compile for another size."""
    size = chunk_lanes(BUDGET, 1, np.array([n_lanes]))
    run = -(-n_lanes // size) * size
    most = {"cpu": 1024, "gpu": max((2 if n_lanes < 200 else 1.25) * n_lanes, 8)}[backend]
    assert run <= max(most, 1.25 * n_lanes)


def test_slices_of_few_lanes_take_small_chunks(backend):
    """Twenty halves of 50 lanes beside 1,000 whole ones, as judged accuracies have them, of many entries each."""
    of_slices = np.array([1000, *[50] * 20])
    size = chunk_lanes(Budget(Room(2**26, 1024), Room(2**26, 1024), 32), 2**16, of_slices)
    assert (-(-of_slices // size) * size).sum() <= 1.3 * of_slices.sum()


@pytest.mark.parametrize("n_lanes", [1000, 10_000])
def test_a_twentieth_too_many_is_no_reason_for_small_chunks(n_lanes, monkeypatch):
    """Each chunk has something to set up, which may take as long as many lanes."""
    monkeypatch.setattr(shapes.jax, "default_backend", lambda: "cpu")
    assert chunk_lanes(Budget(Room(2**20, 256), Room(2**26, 4096), 32), 2**13, np.full(300, n_lanes)) == 128


def test_devices_share_the_lanes(monkeypatch):
    monkeypatch.setattr(shapes.jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(shapes.jax, "local_device_count", lambda: 8)
    size = chunk_lanes(BUDGET, 1, np.array([1000]))
    assert -(-1000 // size) == 8
    assert slots_per_call(-(-1000 // size), 32) == 1


@pytest.mark.parametrize("n_devices", [1, 2, 3, 6, 8])
@pytest.mark.parametrize("entries", [10, 10_000, 250_000])
def test_accelerators_return_little_more_than_the_results(n_devices, entries, monkeypatch):
    """And no device runs much more than its share."""
    monkeypatch.setattr(shapes.jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(shapes.jax, "local_device_count", lambda: n_devices)
    for of_slices in [np.array([n]) for n in (1000, 1025, 2500, 10_000, 12_345)] + [np.full(29, 10_000)]:
        size = chunk_lanes(shapes.REFITS, entries, of_slices)
        n_chunks = int((-(-of_slices // size)).sum())
        slots = slots_per_call(n_chunks, 32)
        of_busiest = -(-n_chunks // n_devices)
        returned = n_devices * -(-of_busiest // slots) * slots * size
        assert returned <= 1.5 * of_slices.sum()
        assert of_busiest * size <= 1.25 * of_slices.sum() / n_devices


@pytest.mark.parametrize("n_chunks", [1, 2, 3, 5, 11, 31, 32, 33, 100, 1000])
def test_calls_have_few_slots_too_many(backend, n_chunks, monkeypatch):
    slots = slots_per_call(n_chunks, 32)
    n_calls = -(-n_chunks // slots)
    assert 1 <= slots <= 32
    if backend == "gpu":
        assert n_calls * slots <= 1.25 * n_chunks
    else:
        assert n_calls == -(-n_chunks // 32)
        assert slots in (8, 32)


def test_few_sizes_are_compiled(backend):
    sizes = {(chunk_lanes(BUDGET, 1, np.array([n])), slots_per_call(n, 32)) for n in range(1, 33)}
    assert len(sizes) <= (2 if backend == "cpu" else 14)


def test_rows_are_padded_with_zeros():
    assert padded_rows(np.ones((3, 2))).shape == (1024, 2)
    found = padded_rows(np.ones((1070, 2)))
    assert found.shape == (2048, 2)
    assert found.sum() == 2140


@pytest.mark.parametrize("step", Step)
def test_sizes_grow_by_a_step_or_an_eighth(step):
    for n in (1, step, step + 1, 5 * step - 1, 16 * step, 16 * step + 1, 1000 * step + 7):
        assert n <= padded(n, step) <= max(n + step - 1, 1.125 * n)
        assert padded(padded(n, step), step) == padded(n, step)
    assert len({padded(n, step) for n in range(16 * step, 32 * step + 1)}) <= 9


def test_padding_is_small():
    models, pairs = range(65, 1200), range(4097, 2**17, 37)
    assert max((shapes.padded_size(m) / m) ** 2 for m in models if m > 128) < 1.14
    assert all(shapes.padded_size(m) % 8 == 0 for m in range(1, 1200))
    assert max(shapes.padded_columns(n) / n for n in pairs) < 1.13
    assert max(shapes.padded_places(n, 1024) / n for n in range(1601, 2**16)) < 1.13
    assert {shapes.padded_places(n, 1024) for n in range(1140, 1577)} == {1600}  # 20,000 to 40,000 battles
    assert {shapes.padded_units(n) for n in range(5_000, 12_000)} == {12_288}
    assert {shapes.padded_units(n) for n in range(1, 768)} == {768}
    assert max(shapes.padded_units(n) / n for n in range(786_432, 2**21, 997)) < 1.13
    for pad, sizes in [
        (shapes.padded_units, pairs),
        (shapes.padded_size, models),
        (shapes.padded_columns, pairs),
        (shapes.padded_few, pairs),
    ]:
        assert all(pad(n) >= n for n in sizes)


@pytest.mark.parametrize(("first", "last", "most"), [(4097, 2**16, 1.25), (2**16 + 1, 2**20, 1.13)])
@pytest.mark.parametrize("rows", [0.26, 0.31, 0.5, 1.9])
def test_pairs_and_rows_of_a_graph_grow_together(first, last, most, rows):
    """A graph that grows without changing its kind has a few sizes."""
    sizes = {}
    for n in range(first, last, (last - first) // 500):
        pairs, padded_rows = shapes.padded_graph(n, int(rows * n))
        assert n <= pairs <= most * n
        assert int(rows * n) <= padded_rows <= pairs * (rows + 1 / 64)
        sizes.setdefault(pairs, set()).add(padded_rows)
    assert len(sizes) <= 4 * np.log2(last / first) + 1 if first < 2**16 else 8 * np.log2(last / first) + 1
    assert all(len(own) == 1 for own in sizes.values())


@pytest.mark.parametrize("size", [16, 64, 136, 320])
def test_pairs_are_never_more_than_there_can_be(size):
    complete = size * (size - 1) // 2 + 1
    for n in {2, complete // 3, complete * 9 // 10, complete}:
        assert n <= shapes.padded_pairs(n, size) <= complete


@pytest.mark.parametrize("mean", [1, 3, 4, 10, 100])
def test_battles_fill_their_blocks(mean):
    per_pair = np.random.default_rng(0).poisson(mean, 1000) + 1
    found = shapes.battle_blocks(per_pair)
    groups = -(-per_pair // found.rows)
    assert found.blocks * found.groups >= groups.sum()
    assert (groups * found.rows).sum() <= 1.5 * per_pair.sum()
    assert found.rows == (1 if mean == 1 else 16 if mean == 100 else 4)
    rows = shapes.entry_rows(per_pair)
    assert (rows & (rows - 1), rows <= max(2 * mean, 4)) == (0, True)


def test_categories_share_few_sizes():
    """Of 40 boards between two thousand and four million battles."""
    per_pair = np.random.default_rng(0).poisson(1, 60_000)
    sizes = set()
    for scale in np.geomspace(0.02, 30, 40):
        own = np.random.default_rng(0).poisson(scale * (1 + per_pair))
        columns = int((-(-own // shapes.UNIT_ROWS)).sum())
        sizes.add((shapes.battle_blocks(own[own > 0]), shapes.padded_units(columns)))
    assert len(sizes) <= 16


def test_what_is_left_decides_sizes_in_few_steps(backend):
    """How many lanes are left for a solver depends on the data."""
    lanes, left = np.array([1000, 1000, 1000]), np.array([1000, 0, 37])
    assert shapes.deciding(lanes, left).tolist() == {"cpu": [1000, 1000, 1000], "gpu": [1000, 0, 64]}[backend]
    assert shapes.deciding(lanes, lanes).tolist() == [1000, 1000, 1000]


def test_few_lanes_of_many_slices_take_small_chunks(backend):
    """The folds of a budget sweep that one solver leaves to the next: a few of each of a hundred slices."""
    left = np.repeat([19, 3, 0], [5, 75, 100])
    assert shapes.for_few(64, 20_000, left) == {"cpu": 8, "gpu": 64}[backend]
    assert shapes.for_few(64, 20_000, np.full(180, 19)) == 64  # not so few
    assert shapes.for_few(64, 20_000, left[:7]) == 64  # to compile takes longer


@pytest.mark.parametrize("n_models", [1, 5, 55, 300])
def test_slices_are_together_where_that_makes_chunks_fewer(backend, n_models):
    """Of 1,000 resamples against 300 models, as Soft-Elo has them: few chunks on an accelerator, filled alike."""
    together = shapes.slices_together(shapes.OWN_BATTLES, 3 * 2 * 320, n_models, 1000)
    n_chunks = -(-n_models // together)
    assert n_chunks == (n_models if backend == "cpu" else 1 if n_models < 30 else n_chunks)
    assert backend == "cpu" or n_chunks <= 10
    assert n_chunks * together < n_models + n_chunks


def test_a_tpu_holds_tiles(monkeypatch):
    assert shapes.held_numbers((3, 24, 130)) == 3 * 24 * 130
    monkeypatch.setattr(shapes.jax, "default_backend", lambda: "tpu")
    assert [shapes.held_numbers(shape) for shape in [(), (5,), (3, 20, 130)]] == [1, 128, 3 * 24 * 256]
    assert shapes.lane_bytes(100) == 200
    small, large = (chunk_lanes(Budget(Room(1, 1), Room(n, 4096), 32), 1, np.array([5000])) for n in (2**8, 2**10))
    assert (small, large) == (64, 256)
