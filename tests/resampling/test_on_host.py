"""Few resamples are NumPy's: they hold what compiled programs draw, and commands that need no more import no JAX."""

import json
import subprocess
import sys

import numpy as np
import pytest

from jaxeval.arrays import map_tree
from jaxeval.kernels.resample import Singles
from jaxeval.resampling import rows
from jaxeval.resampling.rows import halves, resampled_sums
from jaxeval.statistics.clusters import numbered

RNG = np.random.default_rng(5)
RIGHT = RNG.integers(0, 2, (300, 2)).astype(float)
GRADED = RNG.normal(size=(60, 2))
STRATA = np.repeat(np.arange(4), 15)
B = 40


def on_both_sides(monkeypatch, columns, **options):
    """The sums by NumPy, and by a compiled program."""
    found = []
    for most in (2**22, -1):
        monkeypatch.setattr(rows, "_ON_HOST", most)
        found.append(resampled_sums(columns, B, 3, "both sides", **options))
    return found


@pytest.mark.parametrize(
    ("columns", "options"),
    [(RIGHT, {}), (GRADED, {}), (GRADED, {"strata": STRATA}), (RIGHT, {"subsets": halves(RIGHT, 3, 1)})],
    ids=["equal rows together", "one by one", "strata", "halves"],
)
def test_numpy_draws_what_a_program_draws(monkeypatch, columns, options):
    """Each number is the sum of the same draws: whole numbers to the bit, others to the rounding of sums."""
    host, program = on_both_sides(monkeypatch, columns, **options)
    assert host.std(-2).min() > 0
    scale = np.abs(columns).sum(0).max()
    np.testing.assert_allclose(host, program, rtol=0, atol=0 if columns is RIGHT else 1e-14 * scale)


def test_a_resample_that_exceeds_its_total_is_drawn_again(monkeypatch):
    """With rates that hardly fall short of the total, most resamples are drawn more than once, on both sides alike."""
    made = rows.make_singles

    def tight(n, width, stratum=None):
        units = made(n, width, stratum)
        return Singles(units.threshold, units.strata._replace(limit=units.strata.limit // 2))

    monkeypatch.setattr(rows, "make_singles", tight)
    host, program = on_both_sides(monkeypatch, GRADED)
    np.testing.assert_allclose(host, program, rtol=0, atol=1e-13 * np.abs(GRADED).sum())


@pytest.mark.parametrize("columns", [GRADED, RIGHT[:20]], ids=["one by one", "equal rows together"])
@pytest.mark.parametrize("few", [7, 1])
def test_the_first_resamples_do_not_depend_on_how_many_follow(columns, few):
    """Nor does one alone, in which a single unit may be what its draws lack."""
    for seed in range(30):
        many, first = (resampled_sums(columns, n, seed, "many and few") for n in (B, few))
        np.testing.assert_array_equal(many[:few], first)


@pytest.mark.parametrize("run", [{"chunk_size": 8}, {"memory_limit": 10**9}])
def test_what_is_asked_of_lanes_is_done_by_programs(run):
    assert rows.LaneRun().is_plain
    assert not rows.LaneRun(**run).is_plain


def test_a_tree_keeps_its_form():
    tree = {"b": (np.ones(2), None), "a": [np.zeros(3)], "c": rows.Slots(None, np.ones(1), None, np.ones(2))}
    sizes = map_tree(len, tree)
    assert sizes == {"a": [3], "b": (2, None), "c": rows.Slots(None, 1, None, 2)}
    assert map_tree(lambda x, y: len(x) + y, tree, sizes)["b"] == (4, None)


@pytest.mark.parametrize("given", [[5, 5, 2, 9, 2], [True, False, True], [3], []])
def test_clusters_are_numbered_alike_with_and_without_pandas(given):
    number = numbered(np.array(given, int))
    np.testing.assert_array_equal(number, numbered(np.array([str(x) for x in given], object)))


COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
sys.argv = ["jaxeval"]
HEAVY = ("jax", "matplotlib", "scipy", "scipy.stats", "scipy.special", "pandas", "pyarrow", "numpy.ma")
from jaxeval.cli.main import kept_programs, main
found = []
for arguments in json.loads(sys.stdin.read()):
    said = io.StringIO()
    with redirect_stdout(said):
        main(arguments, standalone_mode=False, obj=kept_programs)
    found.append([arguments[0], said.getvalue(), [x for x in HEAVY if x in sys.modules]])
print(json.dumps(found))
"""


CORE = """
import json, sys
from jaxeval import core
steps = [sorted({"numpy", "scipy"} & set(sys.modules))]
import numpy as np
table = np.array([[8, 2], [1, 9]])
steps.append([float(core.mcnemar(8, 2)), core.sign_flips(np.array([1.0, -1, 1, 1, 0, 2]), 0)[0]])
steps.append(core.holm(np.array([0.01, 0.04, 0.03])).tolist())
steps.append([float(end) for end in core.wilson(0.7, 500, 0.95)])
labels = core.coincidences(np.array([[2, 0], [0, 2], [1, 1]]))
steps.append([float(core.cohen_kappa(table)[2]), float(core.krippendorff_alpha(labels.sum(0)))])
steps.append([hasattr(core, name) for name in core.__all__])
heavy = ("jax", "pandas", "pyarrow", "matplotlib")
core.score_interval(8, 2, 30, 0.95), core.design_effect(np.array([1.0, -1, 2, -2]), np.array([0, 0, 1, 1]))
print(json.dumps([*steps, [name for name in heavy if name in sys.modules]]))
"""


def test_the_core_imports_neither_jax_nor_pandas():
    command = [sys.executable, "-W", "error", "-c", CORE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    light, tests, adjusted, interval, agreement, there, heavy = json.loads(done.stdout)
    assert (light, heavy) == ([], [])
    assert tests[0] == pytest.approx(2 * (1 + 10 + 45) / 2**10)
    assert 0 < tests[1] < 1
    assert adjusted == pytest.approx([0.03, 0.06, 0.06])
    assert interval == pytest.approx([0.6583, 0.7385], abs=1e-3)
    assert agreement == pytest.approx([(0.85 - 0.5) / 0.5, 1 - 2 * 5 / 18])
    assert all(there)


#: Headers of other small tables, rows of an item of them, and commands that read them.
SHAPES = {
    "raters.csv": ("item,rater,label", ("{},r1,0", "{},r2,1", "{},r3,1"), "agreement raters.csv --judges r1"),
    "judges.csv": ("item,judge,verdict,human", ("{},j1,yes,yes", "{},j2,no,yes"), "agreement judges.csv"),
    "wide.csv": ("item,a,b", ("q{},1,0", "r{},1,1"), "scores wide.csv --wide"),
    "words.csv": (
        "item,human,judgment",
        ("q{},correct,correct", "r{},wrong,wrong", "s{},correct,wrong"),
        "judge --calibration words.csv --test words.csv",
    ),
    "orders.csv": ("item,order,human,judge", ("{},AB,A,A", "{},BA,B,A"), "agreement orders.csv"),
}


def test_small_files_are_answered_without_jax(tmp_path):
    """500 items and two models; in one process, which holds at each step what those before it imported."""
    right = RNG.random((500, 2)) < (0.5, 0.7)
    judged = np.where(RNG.random((500, 2)) < 0.9, right, ~right)
    scores, calibration, labels = (tmp_path / f"{name}.csv" for name in ("scores", "calibration", "labels"))
    table = [f"{m},{i},{int(judged[i, k])},{int(right[i, k])}" for i in range(500) for k, m in enumerate("ab")]
    scores.write_text("\n".join(["model,item,score", *(row.rpartition(",")[0] for row in table)]))
    calibration.write_text("\n".join(["model,item,score,label", *table[:300]]))
    labels.write_text("\n".join(["item,x,y", *(f"{i},{int(right[i, 0])},{int(judged[i, 0])}" for i in range(500))]))
    lines, log = tmp_path / "scores.jsonl", tmp_path / "log.json"
    rows = [dict(zip(("model", "item", "score"), row.split(","), strict=False)) for row in table]
    lines.write_text("\n".join(json.dumps({**row, "score": int(row["score"])}) for row in rows))
    array = lines.with_suffix(".json")
    array.write_text(f"[{lines.read_text()}]".replace("\n", ","))
    for k, model in enumerate("ab"):
        samples = [{"id": i, "scores": {"match": {"value": "CI"[int(judged[i, k])]}}} for i in range(500)]
        of_model = {"eval": {"model": model, "task": "t"}, "samples": samples, "status": "success"}
        log.with_name(f"{model}.json").write_text(json.dumps(of_model))
    graded, words = tmp_path / "graded.csv", tmp_path / "words.jsonl"
    said = [("right" if right[i, 0] else "wrong", "right" if judged[i, 0] else "wrong") for i in range(500)]
    words.write_text("\n".join(json.dumps({"id": i, "human": x, "judge": y}) for i, (x, y) in enumerate(said)))
    of_topics = [f"{m},{i},{x:.2f},{'xy'[i % 2]}" for i in range(900) for m, x in zip("ab", RNG.random(2), strict=True)]
    graded.write_text("\n".join(["model,item,score,topic", *of_topics]))
    light = [
        ["compare-scores", "a", "b", scores],
        ["compare-scores", "a", "b", lines],
        ["compare-scores", "a", "b", array],
        ["compare-scores", log.with_name("a.json"), log.with_name("b.json")],
        ["plan-scores", scores, "--difference", "0.05"],
        ["scores", scores],
        ["scores", lines],
        ["agreement", labels, "--human", "x", "--judges", "y"],
        ["agreement", words],
    ]
    for name, (header, of_item, line) in SHAPES.items():
        path = tmp_path / name
        path.write_text("\n".join([header, *(row.format(k) for k in range(60) for row in of_item)]))
        light.append([path if word == name else word for word in line.split()])
    roles = ["--model", "model", "--item", "item"]  # items of both files are drawn one by one
    calls = [
        *light,
        ["compare-scores", "b", "a", scores, "--margin", "0.05"],
        ["scores", graded, "--by", "topic"],
        ["judge", "--test", scores, "--calibration", calibration, "--judgment", "score", "--human", "label"],
        ["judge", "--test", scores, "--calibration", calibration, "--judgment", "score", "--human", "label", *roles],
    ]
    given = json.dumps([list(map(str, call)) for call in calls])
    done = subprocess.run([sys.executable, "-c", COMMANDS], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name, said, _ in found if said] == [call[0] for call in calls]
    assert [loaded for *_, loaded in found[: len(light)]] == [[]] * len(light)
    heavy = {"jax", "matplotlib", "scipy.stats"}
    assert [set(loaded) & heavy for *_, loaded in found] == [set()] * len(calls)
    heavy = {"pandas", "pyarrow"}  # of these, with SciPy's functions
    assert [set(loaded) & heavy for *_, loaded in found] == [set()] * len(calls)
    assert found[0][1] == found[1][1]
