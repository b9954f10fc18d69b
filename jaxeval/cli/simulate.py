"""`jaxeval simulate`: example files for every command, of models whose strengths are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

from jaxeval.cli.commands import Command
from jaxeval.cli.declared import Words, command
from jaxeval.cli.kinds import SIMULATED
from jaxeval.cli.outputs import Outputs, keep_quiet
from jaxeval.cli.terminal import tell
from jaxeval.execution.atomic_write import whole_file
from jaxeval.lazy_names import lazy_module
from jaxeval.options.columns import File
from jaxeval.options.field import SHOWN, Options, again, option
from jaxeval.options.resampling import ResamplingOptions
from jaxeval.show.files import write_table
from jaxeval.wording import counted

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from jaxeval.data import simulated_votes as votes
    from jaxeval.lab.simulate import judged, scores, verdicts
else:
    np, pd, votes = map(lazy_module, ("numpy", "pandas", "jaxeval.data.simulated_votes"))
    judged, scores, verdicts = (
        lazy_module(f"jaxeval.lab.simulate.{name}") for name in ("judged", "scores", "verdicts")
    )

Simulation: TypeAlias = Path


class Size(NamedTuple):
    """How much is simulated."""

    n: int
    models: int
    ties: float
    seed: int


def _votes(size: Size) -> pd.DataFrame:
    return votes.simulate_votes(size.n, size.models, tie_rate=size.ties, details=True, seed=size.seed)


def _verdicts(size: Size) -> pd.DataFrame:
    """Return a judge's verdicts on the battles of `_votes`, and on ten times as many that nobody voted on."""
    voted, n = _votes(size), 10 * size.n
    strengths = votes.simulate_strengths(size.models, seed=size.seed)
    # The models are the same, and the battles are drawn anew.
    others = votes.simulate_votes(n, strengths=strengths, tie_rate=size.ties, details=True, seed=size.seed ^ 2**62)
    battles = pd.concat([voted, others.assign(prompt=others["prompt"] + voted["prompt"].max() + 1)], ignore_index=True)
    winner = verdicts.judge_verdicts(battles, strengths, np.random.default_rng([size.seed, 12]), tie_rate=size.ties)
    return battles[["prompt", "model_a", "model_b", "language"]].assign(winner=winner)


def _judges(size: Size) -> pd.DataFrame:
    biases = (0.5, 0.0, 0.0)
    table = verdicts.simulate_judges(size.n, size.models, side_biases=biases, tie_rate=size.ties, seed=size.seed)
    names = ["item", "model_a", "model_b", "language", "voter", "human", "expert"]
    return table[[*names, *table.filter(regex="^judge-").columns]]


def _families(size: Size) -> pd.DataFrame:
    """Return families: every third model is of one maker."""
    names = votes.simulate_strengths(size.models, seed=size.seed).index
    return pd.DataFrame({"name": names, "family": [f"maker-{k % 3 + 1}" for k in range(len(names))]})


def _calls(size: Size, new: bool) -> pd.DataFrame:
    """Simulate a judge's scores of the battles of the model in the middle, or of all others."""
    battles = judged.simulate_judged_battles(size.n, size.models, tie_rate=size.ties, seed=size.seed)
    calls = judged.scored_calls(battles, size.seed)
    middle = battles.models[(len(battles.models) - 1) // 2]
    chosen = calls[((calls["model_a"] == middle) | (calls["model_b"] == middle)) == new]
    return chosen.replace({middle: "new-model"}).drop(columns="human") if new else chosen


def _answers(size: Size, labelled: bool) -> pd.DataFrame:
    """Return the first fifth of the items with people's labels, or the others without."""
    m, q1 = size.models, [[0.9, 0.85]]
    q0 = np.column_stack([np.full(m, 0.8), np.linspace(0.6, 0.8, m)])
    table = judged.simulate_judged_answers(np.linspace(0.75, 0.6, m), q0=q0, q1=q1, n_items=size.n, seed=size.seed)
    first = table["item"] < -(-size.n // 5)
    return table[first] if labelled else table[~first].drop(columns="human")


def _benchmarks(size: Size) -> pd.DataFrame:
    table = scores.simulate_benchmark_scores(max(size.models, 3), min(max(size.n, 2), 40), seed=size.seed)
    names = sorted(table["model"].unique())  # the weakest first, and here the strongest
    return table.assign(model=table["model"].map(dict(zip(names, names[::-1], strict=True))))


class Made(NamedTuple):
    """A kind of data: what makes it, its file, and its usual numbers of battles (or items) and of models."""

    make: Callable[[Size], pd.DataFrame]
    ending: str
    n: int
    models: int
    text: str  # of the help


#: In the order of the help. Kinds of the same numbers and seed are of the same battles and models.
KINDS = {
    "votes": Made(_votes, ".parquet", 25_000, 55, "people's votes in the Arena's format: leaderboard, audit, next"),
    "verdicts": Made(_verdicts, ".parquet", 25_000, 55,
                     "a judge on these battles and ten times as many: leaderboard --judged"),
    "families": Made(_families, ".csv", 25_000, 55, "who made the models of the votes: audit --families"),
    "judges": Made(_judges, ".csv", 1_000, 8, "battles with labels of two people and three judges: agreement"),
    "panel": Made(lambda s: verdicts.simulate_panel(
                      s.n, s.models, side_biases=(0.5, 0.0, 0.0), together=0.3, seed=s.seed),
                  ".parquet", 1_000, 8, "verdicts of three judges where nobody voted: panel"),
    "replies": Made(lambda s: judged.simulate_judge_outputs(s.n, s.models, tie_rate=s.ties, seed=s.seed),
                    ".jsonl", 1_000, 8, "what three judges printed, and human labels: soft-elo, panel"),
    "judged": Made(lambda size: _calls(size, False), ".csv", 3_000, 16, "scores of a judge and human labels: soft-elo"),
    "new": Made(lambda size: _calls(size, True), ".csv", 3_000, 16,
                "its scores of a model without votes: soft-elo predict, merge"),
    "labelled": Made(lambda size: _answers(size, True), ".csv", 1_000, 3,
                     "answers that people and two judges marked: judge --calibration"),
    "answers": Made(lambda size: _answers(size, False), ".csv", 1_000, 3,
                    "more answers, marked by these judges alone: judge --test"),
    "anchored": Made(lambda s: verdicts.simulate_anchored_verdicts(
                         np.linspace(1, -0.5, s.models).tolist(), s.n, 4, 3, run_sd=(0.2, 0.3, 0.3, 3.0), seed=s.seed),
                     ".csv", 80, 5, "verdicts of four judges against one reference: anchored"),
    "evaluators": Made(lambda s: scores.simulate_evaluators(s.models, seed=s.seed),
                       ".csv", 1, 40, "scores of three evaluators beside people's ratings: meta"),
    "rankings": Made(lambda s: votes.simulate_rankings(s.n, s.models, length=min(4, s.models), seed=s.seed),
                     ".csv", 3_000, 12, "rankings of four models each: rankings"),
    "scores": Made(lambda s: scores.simulate_scores(
                       s.n, s.models, n_benchmarks=min(3, s.n), n_trials=2, items_per_passage=5, seed=s.seed),
                   ".csv", 300, 8, "right and wrong answers on three benchmarks: scores, compare-scores"),
    "facets": Made(lambda s: scores.simulate_facet_scores(s.models, s.n, {"judge": 5, "prompt": 4}, seed=s.seed)
                   .round({"score": 4}),
                   ".csv", 200, 4, "scores under five judges and four prompts: error-budget"),
    "runs": Made(lambda s: scores.simulate_runs(s.models, s.n, max(s.n // 3, 1), 4, seed=s.seed),
                 ".csv", 120, 4, "runs of agents on tasks of seconds to a day: horizons"),
    "benchmarks": Made(_benchmarks, ".csv", 15, 40, "shares of right answers, half of them missing: index"),
}  # fmt: skip
_EPILOG = "\b\nKINDs of data, and the commands that read them:\n" + "\n".join(
    f"  {name:<11} {kind.text}" for name, kind in KINDS.items()
)


class Simulated(Options):
    """How much is simulated, and where it goes."""

    battles: int | None = option(
        None, "How many battles, items or rankings. [25,000 votes; fewer of other kinds]", "N", least=1
    )
    models: int | None = option(None, "How many models. [55 of votes; fewer of others]", "M", least=2)
    ties: float = option(0.25, "How often two equal models tie.", "SHARE", least=0, most=0.5)
    pairs: File | None = option(
        None, "Vote on the battles in FILE, as `next` proposes them, by the strengths of this seed.", "FILE",
        flag="--of",
    )  # fmt: skip
    seed: int = again(ResamplingOptions, "seed")
    out: Simulation = option(
        None, f"A file for one KIND ({', '.join(SIMULATED)}), or a folder for one file each.", "PATH", required=True,
        section=SHOWN,
    )  # fmt: skip
    quiet: bool = again(Outputs, "quiet")

    def __post_init__(self) -> None:
        keep_quiet(self.quiet)


@command("simulate", Command, metavars={"kinds": "[KIND]..."}, types={"kinds": click.Choice([*KINDS, "all"])},
         epilog=_EPILOG)  # fmt: skip
def simulate(kinds: Words, options: Simulated) -> None:
    """Write example files for the other commands: simulated data, whose truth is known.

    Without a KIND, votes: `jaxeval simulate --out votes.parquet`. "all" writes all kinds into a folder. Models are
    named in the order of their strength: model-01 is the strongest. The same seed gives the same data.
    """
    from jaxeval.data.table_files import read_whole_table

    out, battles, models, seed, pairs = options.out, options.battles, options.models, options.seed, options.pairs
    chosen = list(KINDS) if "all" in kinds else list(dict.fromkeys(kinds)) or ["votes"]
    to_file = out.suffix.lower() in SIMULATED and not out.is_dir()
    if to_file and len(chosen) > 1:
        raise click.UsageError(f"--out {out} is one file, and {', '.join(chosen)} are several: name a folder")
    if pairs is not None and (chosen != ["votes"] or battles is not None):
        raise click.UsageError("--of is for votes, and FILE says how many: leave other KINDs and --battles out")
    if not to_file:
        out.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        kind = KINDS[name]
        size = Size(battles or kind.n, models or kind.models, options.ties, seed)
        path = out if to_file else out / f"{name}{kind.ending}"
        if pairs is None:
            table = kind.make(size)
        else:
            strengths = votes.simulate_strengths(size.models, seed=seed)
            table = votes.votes_on(read_whole_table(pairs, ()), strengths, size.ties, seed)
        over = ", in place of an older file" if path.exists() else ""
        _write(table, path)
        of_models = counted(size.models, "model")
        what = f"{name} ({counted(len(table), 'row')}, {of_models})"
        what = f"{counted(len(table), 'vote')} between {of_models}" if name == "votes" else what
        tell(f"wrote {what} to {path}{over}")


def _write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix.lower() != ".jsonl":
        write_table(table.reset_index(drop=True), path)
        return
    with whole_file(path) as file:
        file.write(table.to_json(orient="records", lines=True, date_format="iso").encode())
