"""Options of all that resamples: intervals, draws, and how a long call runs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from jaxeval.options.field import INTERVALS, RUNS, Options, option

#: Names of types on the command line.
Share: TypeAlias = float  # above 0 and below 1
Folder: TypeAlias = str | Path
Size: TypeAlias = int  # of memory, in bytes

Scheme = Literal["multinomial", "poisson", "bayesian", "cluster"]


class RunningOptions(Options, section=RUNS):
    """How a long call runs; no result depends on it."""

    checkpoint: Folder | None = option(
        None, "Keep finished resamples in this folder. After an interruption the same call goes on from them.", "FOLDER"
    )
    memory_limit: Size | None = option(
        None, "Most memory for the resamples and their results, such as 500MB or 2GB. Python, the data and compiling "
        "(some 300 MB) come on top.", "SIZE", flag="--memory",
    )  # fmt: skip
    chunk_size: int | None = option(
        None, "Resamples computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).", flag=""
    )
    progress: bool | None = option(
        None,
        "Show a bar on standard error; by default only on a terminal, for work over 0.7 s, elsewhere a line a minute.",
        flag="",
    )


class DrawOptions(Options, section=INTERVALS):
    """What is drawn, and the level of intervals from it."""

    level: Share = option(0.95, "Confidence level of the intervals, and of what is said with them.", "L")
    n_resamples: int = option(
        1000, "Number of resamples behind the intervals.", "N", flag="--resamples", least=2, shown=True
    )
    seed: int = option(0, "Seed of the random numbers: the same seed gives the same result.", "S", least=0)


class ResamplingOptions(RunningOptions, DrawOptions):
    """Options of most estimators."""


class DrawnTogether(Options, section=INTERVALS):
    """What is drawn together, apart, and how."""

    scheme: Scheme = option(
        "multinomial", "How a resample is drawn. multinomial: as many as there are, with replacement. poisson: each a "
        "Poisson number of times. bayesian: all, with random weights.", choices=("multinomial", "poisson", "bayesian"),
    )  # fmt: skip
    cluster: str | None = option(
        None, "Column of clusters: judgments that belong together, such as those of a prompt, a voter or a session. "
        "Resamples draw them whole, and errors allow for them.", "COL",
    )  # fmt: skip
    strata: str | None = option(
        None, "Column of strata. Every resample draws as many of each stratum as the data have.", "COL"
    )
