import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from xdist.scheduler import LoadFileScheduling

# Files whose tests compile the same kernels for the same shapes: in one process, each is compiled once.
_ALIKE = {
    "contextual": ["contextual", "contextual_bootstrap", "style_effect", "tie_comparison"],
    "soft_elo": ["annotation_budget", "cli_soft_elo", "label_smoothing", "soft_elo_calibration", "softelo"],
    "judge": ["cli_judge", "influence", "judge_accuracy", "judge_plots", "judge_report", "model_comparison",
              "split_study"],
    "meta": ["cli_meta", "item_scores", "meaningful_gaps", "meta_plots", "rank_change", "rank_correlation",
             "reference_study", "separability"],
}  # fmt: skip
_GROUPS = {f"test_{name}": group for group, names in _ALIKE.items() for name in names}


class _ByKernels(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return _GROUPS.get(Path(file).stem, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file, or of files that are alike, run in one process; xdist's own groups need an older pytest."""
    return _ByKernels(config, log) if config.getvalue("dist") == "loadfile" else None


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
