import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import host_work
import jax
import pytest
import quick_programs
from xdist.scheduler import LoadFileScheduling

from jaxeval.cli.compiling import OF_JAX, program_folder, settings

# Files whose tests compile the same kernels for the same shapes: in one process, each is compiled once. The groups
# that take longest start first, so that both processes end at about the same time.
_ALIKE = {
    "ratings": ["ratings/test_bootstrap.py", "ratings/test_leaderboard.py", "ratings/test_strata.py",
                "ratings/test_links.py", "ratings/test_slices.py", "ratings/test_firth.py",
                "ratings/test_shared_draws.py", "ratings/test_bradley_terry.py", "ratings/test_sandwich.py",
                "ratings/test_sparse_boards.py", "ratings/test_thin_models.py", "ratings/test_bca.py",
                "ratings/test_compare_boards.py", "test_compilations.py", "test_counts.py",
                "data/test_counted_battles.py"],
    "results": ["pages/", "plots/test_style.py", "plots/test_heat.py", "plots/test_leaderboard.py",
                "plots/test_boards.py", "plots/test_competitors.py", "show/test_shown.py", "show/test_answers.py"],
    "soft_elo": ["softelo/", "cli/test_soft_elo.py"],
    "contextual": ["ratings/test_contextual", "ratings/test_style_effect.py", "ratings/test_tie_comparison.py",
                   "cli/test_main.py"],
    "judge": ["accuracy/", "cli/test_judge.py", "plots/test_accuracy.py"],
    "meta": ["evaluators/", "lab/", "cli/test_meta.py", "data/test_item_scores.py", "plots/test_evaluators.py"],
    "docs": ["test_docs.py", "test_readme.py", "test_examples.py"],
    "commands": ["cli/"],
    "capability": ["capability/", "plots/test_capability.py"],
    "scores": ["scores/", "test_joint.py"],
    "audits": ["audits/"],
}  # fmt: skip


#: Linux gives a process 65,530 pieces of memory. A compiled program takes a hundred or so.
_MAPS, _MOST_MAPS = Path("/proc/self/maps"), 30_000

# The command keeps none of its own in a user's folder.
os.environ["JAXEVAL_CACHE"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--durations-by-directory", action="store_true", help="show how long the tests of each folder took"
    )


class _Durations:
    """How long tests took, by their folder: setup, call and teardown, on the clock of the process that ran them."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder, _, _ = report.nodeid.split("::")[0].rpartition("/")
        self.seconds[folder] += report.duration
        self.tests[folder] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("seconds and tests by folder")
        for folder, seconds in self.seconds.most_common():
            terminalreporter.line(f"{seconds:8.1f} {self.tests[folder]:6,} {folder}")
        terminalreporter.line(f"{self.seconds.total():8.1f} {self.tests.total():6,} all")


def pytest_configure(config: pytest.Config) -> None:
    """What one process of a run has compiled, the others take from a folder that begins empty and goes at the end.

    So every run compiles as on a new machine, but once. JAXEVAL_TEST_CACHE names a folder in which compiled programs
    stay for the next run.
    """
    if config.getoption("--durations-by-directory"):
        config.pluginmanager.register(_Durations())
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes of a run, which would wait for each other
    quick_programs.set_flags()  # JAX reads them when it compiles for the first time; so do processes that tests start
    gc.set_threshold(100_000)  # as the command: tracing makes many objects, and few of them are in cycles
    config.add_cleanup(gc.unfreeze)  # what is frozen when the process ends, DuckDB tells of as leaks
    # A program that another process is just writing is compiled, and is no reason to fail.
    config.addinivalue_line("filterwarnings", "ignore:Error (reading|writing) persistent compilation cache")
    config.addinivalue_line("filterwarnings", "ignore:this process held over half")  # as a process of many tests may
    if OF_JAX in os.environ:  # of a developer, or of the process that has started this one
        return
    folder = os.environ.get("JAXEVAL_TEST_CACHE")
    if not folder:
        folder = tempfile.mkdtemp(prefix="jaxeval-programs-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXEVAL_CACHE", folder)
        kept = program_folder()
    assert kept is not None
    os.environ |= settings(kept)  # for processes that tests start; in this one JAX has read them
    jax.config.update("jax_compilation_cache_dir", str(kept))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def _group(nodeid: str) -> str:
    """The group of files that a test runs with: of most, its file alone."""
    file = nodeid.split("::")[0]
    below = file.removeprefix("tests/")
    return next((group for group, names in _ALIKE.items() if below.startswith(tuple(names))), file)


class _ByKernels(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups come first and together, in their order; within them, and after them, tests stay in theirs."""
    order = {group: place for place, group in enumerate(_ALIKE)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: none of it is garbage before (see `pytest_configure`)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file, or of files that are alike, run in one process; xdist's own groups need an older pytest."""
    return _ByKernels(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Between files, compiled programs go where they leave little room for more; XLA aborts where there is none."""
    several = item.path.name == "test_examples.py"  # of all modules
    if nextitem is None or (item.path == nextitem.path and not several) or not _MAPS.exists():
        return
    if _MAPS.read_bytes().count(b"\n") > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of real public data: JAXEVAL_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("JAXEVAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no data folder: set JAXEVAL_DATA, or put the data in ../shared/data beside the checkout")
    return folder


@pytest.fixture(scope="module")
def x64() -> Iterator[None]:
    """Kernels run in double precision, as the wrappers run them."""
    with jax.enable_x64(True):
        yield


def _on_the_host() -> Iterator[None]:
    """Small boards are refitted by NumPy: for tests of what is asked, shown and written, whatever computes it."""
    with host_work.small_work_on_the_host():
        yield


on_the_host = pytest.fixture(_on_the_host, name="on_the_host")
all_on_the_host = pytest.fixture(_on_the_host, name="all_on_the_host", scope="module")  # and what its fixtures make
