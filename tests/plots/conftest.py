import pytest


@pytest.fixture(autouse=True, scope="module")
def whatever_computes_it(all_on_the_host):
    """Figures are of results, not of how they come about."""
