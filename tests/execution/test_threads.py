import threading
import time
from itertools import repeat

import pytest

from jaxeval.execution.threads import in_threads


def test_results_come_in_order():
    def slow_first(number, factor):
        time.sleep(0.02 if number == 0 else 0)
        return factor * number

    assert in_threads(slow_first, range(5), repeat(10)) == [0, 10, 20, 30, 40]
    assert in_threads(slow_first, [], repeat(10)) == []


def test_one_slice_stays_in_this_thread():
    assert in_threads(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_what_has_not_begun(error):
    begun = []

    def failing(number):
        begun.append(number)
        time.sleep(0.01)
        if number == 0:
            raise error(f"slice {number}")

    with pytest.raises(error, match="slice 0"):
        in_threads(failing, range(1000))
    assert len(begun) < 1000
