from threading import Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from jaxeval.execution.blas import one_blas_thread


def threads():
    return {lib["filepath"]: lib["num_threads"] for lib in ThreadpoolController().select(user_api="blas").info()}


def test_one_thread_inside_and_the_callers_number_after():
    np.linalg.inv(np.eye(3))
    before = threads()
    with one_blas_thread():
        assert set(threads().values()) == {1}
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
