import os
import subprocess
import sys
import threading
import time
from itertools import repeat
from threading import Thread

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # its BLAS counts, too
from threadpoolctl import ThreadpoolController

from jaxeval.execution.precision import in_threads, n_cores, one_blas_thread


def test_results_come_in_order():
    def slow_first(number, factor):
        time.sleep(0.02 if number == 0 else 0)
        return factor * number

    assert in_threads(slow_first, range(5), repeat(10)) == [0, 10, 20, 30, 40]
    assert in_threads(slow_first, [], repeat(10)) == []


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert n_cores() == 2


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


@pytest.fixture(autouse=True)
def two_threads():
    """Whatever the processes of a run have."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def threads():
    return {lib["filepath"]: lib["num_threads"] for lib in ThreadpoolController().select(user_api="blas").info()}


def test_one_thread_inside_and_the_callers_number_after():
    np.linalg.inv(np.eye(3))
    before = threads()
    assert set(before.values()) == {2}
    with one_blas_thread():
        assert set(threads().values()) == {1}
    assert threads() == before


def test_the_library_that_jax_calls_is_among_them():
    """SciPy's. A command loads it with JAX: later than the first controller was made."""
    code = (
        "from jaxeval.execution.precision import one_blas_thread; import sys, threadpoolctl, numpy\n"
        "from jaxeval.lazy_names import called_once\n"
        "with called_once():\n"
        "    with one_blas_thread(): assert 'scipy' not in sys.modules\n"
        "    import jax\n"
        "    with one_blas_thread(): print({x['num_threads'] for x in threadpoolctl.threadpool_info()})\n"
        "    import jax.numpy as jnp\n"
        "    assert jnp.linalg.cholesky(4 * jnp.eye(2))[1, 1] == 2 and 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg\n"
        "assert scipy.linalg.cholesky([[4.0]]) == 2 == scipy.linalg.lapack.dpotrf([[4.0]])[0]"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "{1}"


def test_blocks_of_several_threads_do_not_wait_for_each_other():
    before = threads()
    entered = []

    def enter():
        with one_blas_thread():
            entered.append(set(threads().values()))

    with one_blas_thread():
        other = Thread(target=enter, daemon=True)
        other.start()
        other.join(60)
        assert entered == [{1}]
        assert set(threads().values()) == {1}  # the first block goes on
    assert threads() == before


def test_restored_after_an_error_too():
    before = threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert threads() == before


def test_calls_from_several_threads_leave_the_number_as_it_was():
    before = threads()

    def enter_and_leave():
        for _ in range(20):
            with one_blas_thread():
                pass

    workers = [Thread(target=enter_and_leave) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert threads() == before
