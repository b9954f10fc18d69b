"""Whether a change of the code moved anything: saves what everything gives, and compares it with what it gives now.

    python benchmarks/unchanged.py save before        # on the commit before: a folder
    python benchmarks/unchanged.py compare before     # on the commit after: runs all of it, and tells what moved

It finds by itself what there is. Estimators are those of tests/estimators.py, results and figures those of
tests/results.py, commands those of the command line, with the files that `jaxeval simulate all` writes; `FUNCTIONS` has
the other public functions. tests/benchmarks/test_unchanged.py fails for what is in none of them. Larger boards, and
public data (JAXEVAL_DATA, or ../shared/data beside the checkout), are among the `BOARDS`.

A number is bit-equal, within 1e-9 (Elo; shares are compared in parts of 400), or it moved. A text (a table, a screen, a
page) is equal or not. `compare` exits with 1 where something moved, or where a text differs. ``--only PART`` takes one
part, such as commands. Compiled programs are kept in the folder, so that `compare` is faster than the first `save`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import inspect
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jaxeval
from jaxeval.anchored.pooling import pooled_scores
from jaxeval.anchored.scores import bootstrap_scores
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
TOLERANCE = 1e-9
SHARE = 400.0  # a share of the judgments is compared as finely as a rating
DATA = Path(os.environ.get("JAXEVAL_DATA") or ROOT.parent / "shared" / "data")

Parts = Iterator[tuple[str, Any]]


def votes() -> Parts:
    """Bradley-Terry on tables of all pairs: schemes, slices, clusters, ridge, weights and a sparse part."""
    battles = jaxeval.simulate_battles(6_000, 25, seed=1)
    yield from _board("plain", battles, 120)
    for scheme in ("poisson", "bayesian"):
        yield from _board(scheme, battles, 60, scheme=scheme)
    yield from _board("single", battles, 60, dtype="float32")
    yield from _board("ridge", battles, 60, ridge=0.01, gauge="votes", reweight=True)
    yield from _board("thin", jaxeval.simulate_battles(400, 30, seed=2), 80)
    table = jaxeval.simulate_votes(5_000, 12, seed=3)
    rng = np.random.default_rng(3)
    table["language"] = rng.choice(["en", "de", "fr"], len(table), p=[0.7, 0.2, 0.1])
    table["voter"] = rng.integers(0, 300, len(table))
    sliced = jaxeval.Battles.from_pandas(table)
    for name, draws in jaxeval.bootstrap(sliced, 60, by="language", progress=False).items():
        yield f"by/{name}", draws.draws
    yield from _board("clusters", sliced, 60, cluster="voter")
    for path in sorted(DATA.glob("arena*_votes.parquet")):
        frame = pd.read_parquet(path)
        frame = frame[frame["model_a"] != frame["model_b"]]
        yield from _board(path.stem, jaxeval.Battles.from_pandas(frame), 200)


def sparse() -> Parts:
    """The graph of pairs."""
    yield from _board("sparse", jaxeval.simulate_battles(6_000, 300, seed=4), 40, method="sparse")


def context() -> Parts:
    """Covariates and tie models."""
    table = jaxeval.simulate_votes(4_000, 12, seed=5)
    table["length"] = np.random.default_rng(5).normal(size=len(table))
    battles = jaxeval.Battles.from_pandas(table)
    for ties in ("half", "davidson", "rao_kupper"):
        result = jaxeval.bootstrap(battles, 60, features=["length"], ties=ties, progress=False)
        yield f"{ties}/ratings", result.fit.ratings
        yield f"{ties}/draws", result.draws
        yield f"{ties}/coefficients", result.coefficient_draws


def soft_elo() -> Parts:
    """Held-out models, their resamples, temperatures and the calibration."""
    battles = {"simulated": jaxeval.simulate_judged_battles(3_000, 9, seed=6)}
    path = DATA / "softelo_sample.csv"
    if path.exists():
        battles["sample"] = jaxeval.read_judged_battles(path, label_coding="a_wins_1")
    for name, judged in battles.items():
        result = jaxeval.soft_elo(judged, n_resamples=100, progress=False)
        yield f"{name}/models", result.models.select_dtypes(float)
        yield f"{name}/temperature", 400 * jaxeval.fit_temperature(judged.score_difference, judged.human).beta


def accuracy() -> Parts:
    """Judge accuracy and comparisons."""
    table, judges = jaxeval.simulate_judged_answers(n_items=600, seed=7), ["judge-1", "judge-2"]
    answers = [
        jaxeval.JudgedAnswers.from_pandas(part, judgment=judges, label="human", model="model", item="item")
        for part in (table[table["item"] % 3 == 0], table[table["item"] % 3 > 0])
    ]
    result = jaxeval.judge_accuracy(*answers, n_resamples=500, progress=False)
    yield "table", SHARE * result.table.select_dtypes(float)
    yield "rates", SHARE * result.rates.select_dtypes(float)


def anchored() -> Parts:
    """Scores against a reference, pooling and screening."""
    verdicts = jaxeval.AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(seed=8))
    yield "scores", bootstrap_scores(verdicts, n_resamples=200).select_dtypes(float)
    screen = jaxeval.screen_judges(verdicts, n_resamples=200)
    yield "screen", SHARE * screen.table.select_dtypes(float)
    yield "pooled", pooled_scores(verdicts, screen=screen).select_dtypes(float)


def evaluators() -> Parts:
    """Agreement of evaluators with gold scores, and the study of references."""
    rng = np.random.default_rng(9)
    gold = pd.Series(rng.normal(size=40), [f"model-{k}" for k in range(40)])
    scores = pd.DataFrame({f"judge-{k}": gold + rng.normal(scale=k, size=40) for k in (0.3, 0.6, 1.2)}, gold.index)
    for resample in ("models",):
        found = jaxeval.kendall_tau_delta(scores, gold, [0.5, 1, np.inf], n_resamples=200, resample=resample)
        yield f"delta/{resample}", SHARE * found.select_dtypes(float)
    yield "agreement", SHARE * jaxeval.rank_agreement(scores, gold, top=5, n_resamples=200).select_dtypes(float)
    study = jaxeval.reference_study(jaxeval.simulate_battles(3_000, 10, seed=10), n_resamples=30, progress=False)
    yield "by_reference", study.by_reference.select_dtypes(float)
    yield "by_budget", study.by_budget.select_dtypes(float)


BOARDS = (votes, sparse, context, soft_elo, accuracy, anchored, evaluators)


def boards() -> Parts:
    """Boards of a size at which every path of the kernels is taken."""
    for of in BOARDS:
        for name, value in of():
            yield f"{of.__name__}/{name}", np.asarray(value, float)


def _board(name: str, battles: jaxeval.Battles, n_resamples: int, **options: Any) -> Parts:
    result = jaxeval.bootstrap(battles, n_resamples, progress=False, **options)
    yield f"{name}/ratings", result.fit.ratings
    yield f"{name}/draws", result.draws


def estimators() -> Parts:
    """Every estimator that resamples, by the table of the tests of invariances."""
    from estimators import ESTIMATORS, RUN

    for estimator in ESTIMATORS:
        yield estimator.name, estimator.read(estimator.call(estimator.data(), **RUN))


def results() -> Parts:
    """Every class of results, and what it shows."""
    from results import RESULTS

    yield from ((name, make()) for name, make in RESULTS.items())


def figures() -> Parts:
    """What is written in each figure, and where its marks are."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.text import Text
    from results import FIGURES

    for name, make in FIGURES.items():
        figure = getattr(jaxeval.plots, name)(*make())
        yield f"{name}/text", "\n".join(text.get_text() for text in figure.findobj(Text))
        for number, axes in enumerate(figure.axes):
            marks = [line.get_xydata() for line in axes.lines] + [own.get_offsets() for own in axes.collections]
            yield f"{name}/{number}", [np.ma.filled(np.ma.asarray(x, float), np.nan) for x in marks]
        plt.close(figure)


def functions() -> Parts:
    """The public functions that no estimator and no result needs."""
    yield from ((name, call()) for name, call in FUNCTIONS.items())


@cache
def _votes() -> pd.DataFrame:
    return jaxeval.simulate_votes(2_000, 6, seed=11, details=True)


@cache
def _rated() -> Any:
    return jaxeval.bootstrap(_votes(), 60, progress=False)


def _written(name: str, write: Callable[[str], Any]) -> str:
    """What ``write`` leaves in the file ``name``."""
    write(name)
    return Path(name).read_text()


def _saved_draws() -> Any:
    jaxeval.save_draws(_rated().joint, "draws.npz")
    return jaxeval.read_draws("draws.npz")


def _saved_ratings() -> Any:
    _rated().fit.save("ratings.json")
    return jaxeval.read_ratings("ratings.json")


def _gold() -> tuple[pd.DataFrame, pd.Series]:
    table = jaxeval.simulate_evaluators(30, seed=12).set_index("model")
    return table.drop(columns="arena"), table["arena"]


def _joined() -> Any:
    judged = _votes().assign(item=np.arange(2000))
    return jaxeval.join_verdicts(*(jaxeval.Battles.from_pandas(own) for own in (judged.head(500), judged)), item="item")


def _grouped() -> pd.DataFrame:
    maker = {f"model-{k + 1}": f"maker-{k % 3}" for k in range(6)}
    groups = {f"group_{side}": _votes()[f"model_{side}"].map(maker) for side in "ab"}
    return _votes().assign(**groups, own=[f"maker-{k % 3}" for k in range(2000)])


def _makers() -> pd.DataFrame:
    return pd.DataFrame({"model": ["model-1"], "maker": ["maker-1"]})


def _same_group() -> Any:
    return jaxeval.same_group("own", "group_a", "group_b")


def _polars_votes() -> Any:
    import polars

    return polars.read_parquet("votes.parquet").select("model_a", "model_b", "winner")


def _trials() -> jaxeval.ItemScores:
    table = jaxeval.simulate_scores(40, 4, n_trials=3, seed=14)
    return jaxeval.ItemScores.from_pandas(table, trial="trial")


def _eval_results() -> Mapping[str, Path]:
    board = jaxeval.leaderboard(_rated()).assign(model=lambda x: "maker/" + x["model"].astype(str))
    return jaxeval.write_eval_results(board, "hub", dataset="maker/votes", task="votes", date="2026-01-01")


_NAMED = {"model": "model", "item": "item"}
#: What estimators and results leave out. The files are those of `jaxeval simulate all`.
FUNCTIONS: Mapping[str, Callable[[], Any]] = {
    "arena_style": lambda: jaxeval.fit_bradley_terry(_votes(), features=[("length_a", "length_b")]),
    "arena_table": lambda: jaxeval.arena_table(jaxeval.leaderboard(_rated()), "2026-01-01"),
    "class_shares": lambda: jaxeval.class_shares([0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 1, 0], [1, 0, 1, 1], n_resamples=99),
    "compare_evaluators": lambda: jaxeval.compare_evaluators(*_gold(), n_resamples=60),
    "compare_tie_models": lambda: jaxeval.compare_tie_models(_votes(), n_folds=3),
    "compare_with_baseline": lambda: jaxeval.compare_with_baseline(jaxeval.read_scores("scores.csv"), "model-1"),
    "conformal_quantile": lambda: jaxeval.conformal_quantile(np.arange(40.0), 0.8),
    "count_battles": lambda: jaxeval.count_battles(_polars_votes()),
    "fit_temperatures": lambda: jaxeval.fit_temperatures(
        [2, 1, -1, 3, -2, 0.5, -3, 1], [1, 1, 0, 1, 0, 0, 0, 0], [*"aabbaabb"]
    ),
    "item_report": lambda: jaxeval.item_report(jaxeval.read_scores("scores.csv")),
    "error_budget": lambda: jaxeval.error_budget(jaxeval.simulate_facet_scores(seed=1), ["judge", "prompt"]),
    "join_metadata": lambda: jaxeval.join_metadata(
        jaxeval.leaderboard(_rated()), pd.DataFrame({"model": ["model-1"], "maker": "x"})
    ),
    "join_verdicts": lambda: [own.to_pandas() for own in _joined()],
    "kendall_tau": lambda: jaxeval.kendall_tau(*_gold(), n_resamples=60),
    "loo_of": lambda: jaxeval.loo_of(
        lambda w, v: w @ v["target"] / w.sum(), jaxeval.Battles.from_pandas(_votes()), "model"
    ),
    "every_eval_ever": lambda: jaxeval.every_eval_ever(_rated()),
    "opentelemetry_attributes": lambda: jaxeval.opentelemetry_attributes(_rated()),
    "page": lambda: _written("page.html", lambda file: jaxeval.page(_rated(), file, made="2026-01-01")),
    "pareto_front": lambda: jaxeval.pareto_front(_rated(), {f"model-{k}": float(k) for k in range(1, 7)}),
    "pass_at_k": lambda: jaxeval.pass_at_k(_trials(), 2),
    "pass_hat_k": lambda: jaxeval.pass_hat_k(_trials(), 2),
    "plan_scores": lambda: jaxeval.plan_scores(jaxeval.read_scores("scores.csv")),
    "plan_votes": lambda: jaxeval.plan_votes(_rated().fit, width=20.0),
    "position_advantage": lambda: jaxeval.fit_bradley_terry(_votes(), features=[jaxeval.position_advantage()]),
    "ppi_plus_plus": lambda: jaxeval.ppi_plus_plus([0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 1, 0], [1, 0, 1, 1]),
    "rank_agreement": lambda: jaxeval.rank_agreement(*_gold(), n_resamples=60),
    "read_anchored_verdicts": lambda: jaxeval.read_anchored_verdicts("anchored.csv"),
    "read_battles": lambda: jaxeval.read_battles("votes.parquet").to_pandas(),
    "read_draws": _saved_draws,
    "read_judge_outputs": lambda: jaxeval.read_judge_outputs("replies.jsonl"),
    "read_judged_answers": lambda: jaxeval.read_judged_answers(
        "labelled.csv", judgment="judge-1", model="model", item="item"
    ),
    "read_judged_battles": lambda: jaxeval.read_judged_battles("judged.csv"),
    "read_judges": lambda: jaxeval.read_judges("judged.csv"),
    "read_metadata": lambda: jaxeval.read_metadata("families.csv", "name"),
    "read_rankings": lambda: jaxeval.read_rankings("rankings.csv"),
    "read_ratings": _saved_ratings,
    "read_scores": lambda: jaxeval.read_scores("scores.csv"),
    "same_group": lambda: jaxeval.fit_bradley_terry(
        _grouped(), features=[jaxeval.same_group("own", "group_a", "group_b")]
    ),
    "save_draws": _saved_draws,
    "score_leaderboard": lambda: jaxeval.score_leaderboard(jaxeval.read_scores("scores.csv"), n_resamples=60),
    "simulate_evaluators": lambda: jaxeval.simulate_evaluators(seed=1),
    "simulate_judged_battles": lambda: jaxeval.simulate_judged_battles(200, 5, seed=1),
    "simulate_judges": lambda: jaxeval.simulate_judges(seed=1),
    "simulate_rankings": lambda: jaxeval.simulate_rankings(seed=1),
    "simulate_scores": lambda: jaxeval.simulate_scores(seed=1),
    "simulate_strengths": lambda: jaxeval.simulate_strengths(seed=1),
    "simulate_verdicts": lambda: [own.to_pandas() for own in jaxeval.simulate_verdicts(200, 500, 6, seed=1)],
    "simulate_votes": lambda: jaxeval.simulate_votes(200, 5, details=True, seed=1),
    "smallest_gap": lambda: jaxeval.smallest_gap(*_gold(), n_resamples=60),
    "write_eval_results": lambda: [path.read_text() for path in _eval_results().values()],
    "write_table": lambda: _written("table.tex", lambda file: jaxeval.write_table(jaxeval.leaderboard(_rated()), file)),
}
#: Public functions that cannot be told so, and why.
OTHERWISE = {
    "gather_battles": "it needs several processes: tests/execution has them",
    "share_resamples": "the same",
    "log_result": "it tells another program: tests/show/test_loggers.py has what",
    "free_programs": "it frees memory, and gives no number that stays",
}


def named_in(*files: Path) -> set[str]:
    """The names that ``files`` take from the package, as ``jaxeval.NAME``."""
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jaxeval"
    }


def left_out() -> set[str]:
    """Public functions that no part calls."""
    public = {name for name in jaxeval.__all__ if inspect.isfunction(getattr(jaxeval, name))}
    return public - named_in(TESTS / "results.py", TESTS / "estimators.py") - {*FUNCTIONS} - {*OTHERWISE}


#: Calls of commands that the table of README has not.
CALLS = (
    "jaxeval page --blank rate.html",
    "jaxeval agreement replies.jsonl",
    "jaxeval audit votes.parquet --families families.csv",
    "jaxeval demo",
    "jaxeval leaderboard votes.parquet --cluster voter --full",
    "jaxeval leaderboard judged.csv --scores scores_a:scores_b --ties davidson",
    "jaxeval next votes.parquet --k 100",
    "jaxeval panel replies.jsonl",
    "jaxeval plan-scores scores.csv",
    "jaxeval simulate votes --battles 200 --models 5 --out few.csv",
    "jaxeval soft-elo report judged.csv",
    "jaxeval soft-elo calibrate judged.csv --out calibration.json",
    "jaxeval soft-elo predict new.csv --calibration calibration.json",
)


def calls() -> list[str]:
    """A call or more for every command: those of README's table, and `CALLS`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [*re.findall(r"^\| .+? \| `(jaxeval .+?)` \|", text, re.MULTILINE), *CALLS]


def command_of(call: str) -> tuple[str, Any]:
    """The command of a call, by its whole name."""
    import click

    from jaxeval.cli.main import main

    name, command, words = "", main, shlex.split(call)[1:]
    while isinstance(command, click.Group):
        inside = command.commands.get(words[0]) if words else None
        if inside is None:  # a file in its place: the group's own command
            inside = next(own for own in command.commands.values() if own.name == command.default)
            words = ["", *words]
        name, command, words = f"{name} {inside.name}".strip(), inside, words[1:]
    return name, command


def commands() -> Parts:
    """What commands print and write, in a folder with the example files; and what `jaxeval FILE` says of each file."""
    from click.testing import CliRunner

    from jaxeval.cli.main import main

    for file in sorted(path.name for path in Path().iterdir() if path.is_file()):
        yield f"jaxeval {file}", CliRunner().invoke(main, [file]).output
    for number, call in enumerate(calls()):
        _, command = command_of(call)
        has = {option for parameter in command.params for option in parameter.opts}
        further = ["--resamples", "100"] * ("--resamples" in has and "--resamples" not in call)
        written = {"--out": f"{number}.csv", "--html": f"{number}.html"}
        for option, file in written.items():
            further += [option, file] * (option in has and option not in call)
        done = CliRunner().invoke(main, [*shlex.split(call)[1:], *further])
        yield f"{call}/screen", f"exit code {done.exit_code}\n{done.stdout}{done.stderr}"
        for file in written.values():
            if Path(file).exists():
                yield f"{call}/{file}", Path(file).read_text(encoding="utf-8")


#: What is saved, part by part.
PARTS: tuple[Callable[[], Parts], ...] = (boards, functions, estimators, results, figures, commands)


def leaves(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, np.ndarray | str]]:
    """The arrays and texts that ``value`` is made of, each with a name."""
    if isinstance(value, pd.Series):
        value = value.to_frame()
    if isinstance(value, pd.DataFrame):
        yield f"{name}/text", value.to_csv()
        yield f"{name}/numbers", value.select_dtypes("number").to_numpy(float, na_value=np.nan)
        return
    if isinstance(value, str | Path | int | float | bool | None):
        yield name, str(value)
        return
    if isinstance(value, pd.Index):
        yield name, "\n".join(map(str, value))
        return
    if hasattr(value, "_repr_html_"):
        yield f"{name}/shown", repr(value)
        yield f"{name}/html", value._repr_html_()
    if isinstance(value, Mapping):
        inside = {str(key): own for key, own in value.items()}
    elif is_dataclass(value):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
        inside |= {key: getattr(value, key) for key in _WHEN_ASKED if key not in inside and hasattr(value, key)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        inside = value._asdict()
    elif isinstance(value, list | tuple):
        inside = {str(key): own for key, own in enumerate(value)}
    else:
        array = np.asarray(value) if hasattr(value, "__array__") else None
        if array is not None and array.dtype.kind in "biuf":
            yield name, array.astype(float)
        elif array is not None and array.dtype.kind in "OUM":
            yield name, "\n".join(map(str, array.reshape(-1)))
        return
    if depth < _DEEPEST:
        for key, own in inside.items():
            yield from leaves(f"{name}/{key}", own, depth + 1)


_DEEPEST = 4
_WHEN_ASKED = ("ratings", "strengths", "component", "standing", "n_battles")  # what a fit labels when it is asked for


def run(only: str | None, programs: Path) -> dict[str, np.ndarray | str]:
    """All leaves of all parts, made in a folder with the example files."""
    import jax
    from click.testing import CliRunner

    from jaxeval.cli.main import main

    jax.config.update("jax_compilation_cache_dir", str(programs.resolve()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    sys.path.insert(0, str(TESTS))
    found: dict[str, np.ndarray | str] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made = CliRunner().invoke(main, ["simulate", "all", "--out", "."])
        if made.exit_code:
            raise SystemExit(made.output)
        for part in PARTS:
            if only not in (None, part.__name__):
                continue
            before = len(found)
            for name, value in part():
                found |= leaves(f"{part.__name__}/{name}", value)
            print(f"{part.__name__}: {len(found) - before} arrays and texts", flush=True)
    return found


def save(folder: Path, only: str | None) -> None:
    """Write what everything gives: arrays, texts, and a digest of each."""
    folder.mkdir(parents=True, exist_ok=True)
    found = run(only, folder / "programs")
    np.savez_compressed(folder / "arrays.npz", **{k: x for k, x in found.items() if isinstance(x, np.ndarray)})
    texts = {name: x for name, x in found.items() if isinstance(x, str)}
    (folder / "texts.json").write_text(json.dumps(texts, indent=0))
    digests = {name: digest(x) for name, x in found.items()}
    (folder / "digests.json").write_text(json.dumps(digests, indent=0))


def digest(value: np.ndarray | str) -> str:
    """A digest of an array's bytes and shape, or of a text."""
    content = value.encode() if isinstance(value, str) else repr(value.shape).encode() + value.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def how_far(x: np.ndarray, y: np.ndarray) -> float:
    """The largest difference of two arrays; infinite where only one is missing or infinite, or where shapes differ."""
    if x.shape != y.shape:
        return np.inf
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(x - y))
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))


def compare(folder: Path, only: str | None) -> int:
    """Print what moved since it was saved in ``folder``; 1 where something did."""
    now = run(only, folder / "programs")
    with np.load(folder / "arrays.npz") as arrays:
        before: dict[str, np.ndarray | str] = {name: arrays[name] for name in arrays}
    before |= json.loads((folder / "texts.json").read_text())
    if only is not None:
        before = {name: x for name, x in before.items() if name.startswith(f"{only}/")}
    count = {"equal, bit for bit": 0, f"within {TOLERANCE:g}": 0, "moved": 0, "new": 0, "gone": 0}
    for name in dict.fromkeys([*before, *now]):
        kind, what = told(before.get(name), now.get(name))
        kind = f"within {TOLERANCE:g}" if kind == "near" else kind
        count[kind] += 1
        if kind != "equal, bit for bit":
            print(f"{kind}: {name}{what}")
    print(", ".join(f"{n} {kind}" for kind, n in count.items()))
    return int(count["moved"] + count["gone"] > 0)


def told(before: np.ndarray | str | None, now: np.ndarray | str | None) -> tuple[str, str]:
    """How ``now`` is beside ``before``, and what differs."""
    if before is None or now is None:
        return ("new" if before is None else "gone"), ""
    if isinstance(before, str) != isinstance(now, str):
        return "moved", " from text to numbers, or back"
    if isinstance(before, str):
        if before == now:
            return "equal, bit for bit", ""
        lines = difflib.unified_diff(str(before).splitlines(), str(now).splitlines(), "before", "now", lineterm="", n=0)
        return "moved", "\n" + "\n".join(f"    {line[:160]}" for line, _ in zip(lines, range(12), strict=False))
    gap = how_far(before, now)
    if gap == 0:
        return "equal, bit for bit", ""
    return ("near" if gap <= TOLERANCE else "moved"), f" {gap:.1e}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["save", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS])
    given = parser.parse_args()
    if given.command == "save":
        save(given.folder, given.only)
    else:
        sys.exit(compare(given.folder, given.only))
