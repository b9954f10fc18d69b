import pytest


@pytest.fixture(autouse=True, scope="module")
def whatever_computes_it(all_on_the_host):
    """Boards are made of what was read, to see that it was read as it should."""
