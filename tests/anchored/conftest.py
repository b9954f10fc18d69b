import pytest
from panels import simulated

from jaxeval.data.anchored_verdicts import AnchoredVerdicts


@pytest.fixture(scope="package")
def frame():
    return simulated()


@pytest.fixture(scope="package")
def verdicts(frame):
    return AnchoredVerdicts.from_pandas(frame)
