import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest


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
