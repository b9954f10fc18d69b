"""What is resampled, as every estimator hands it to the kernels: one type for all schemes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jaxeval.kernels import batch
from jaxeval.kernels.resample import Tally, Units
from jaxeval.resampling.units import make_units, shortfall_of, stream_number, top_up_size_of


class Draw(Protocol):
    """What is resampled. Resample r is a function of it, of the seed and of r alone.

    Multinomial, Poisson and Bayesian draws take battles, items or judgments as units. Clusters are units of their own,
    drawn whole. In all of them like units share an entry of a table, whose size says how many there are.
    """

    @property
    def scheme(self) -> int:
        """Of `kernels.batch`: how often a unit is drawn. Static to a compiled program."""
        ...

    @property
    def units(self) -> Units:
        """The sizes of the entries, and the tables that their draws come from."""
        ...

    @property
    def stream(self) -> np.uint64:
        """Names the random numbers: other slices have others."""
        ...

    @property
    def tally(self) -> Tally:
        """How the draws of an entry are kept. Static."""
        ...

    @property
    def top_up_size(self) -> int:
        """Units drawn one by one, so that a multinomial resample has its exact total. Static."""
        ...


class UnitDraw(NamedTuple):
    """A `Draw` of units on a grid; NumPy arrays until the call."""

    scheme: int
    units: Units
    stream: np.uint64
    tally: Tally
    top_up_size: int


def unit_draw(sizes: NDArray[np.int64], scheme: int, label: str, tally: Tally) -> UnitDraw:
    """The draw from entries of ``sizes`` (K, Q) units, for the slice called ``label``."""
    shortfall = shortfall_of(int(sizes.sum()))
    units = make_units(sizes, tally, shortfall if scheme == batch.MULTINOMIAL else 0)
    return UnitDraw(scheme, units, np.uint64(stream_number(label)), tally, top_up_size_of(shortfall))
