"""What is resampled, as every estimator hands it to the kernels: one type for all schemes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from jaxeval.arrays import Int
from jaxeval.kernels.resample import DrawScheme, Packing, Units
from jaxeval.resampling.units import make_units, stream_number


class Draw(Protocol):
    """What is resampled. Resample r is a function of the draw, the seed and r alone.

    Multinomial, Poisson and Bayesian draws take battles, items or judgments as units. Clusters are units of their own,
    drawn whole. Equal units share an entry of a table; its size says how many they are. Of the units of a stratum,
    every resample holds the same number.

    Two levels, such as calibration and test items, are two draws. Each has a stream of its own, and resample r of a
    result takes the r-th of both.
    """

    @property
    def scheme(self) -> DrawScheme:
        """How a resample weights the units. Static to a compiled program."""
        ...

    @property
    def units(self) -> Units:
        """The sizes of the entries, their strata, and the tables that their draws come from."""
        ...

    @property
    def stream(self) -> np.uint64:
        """Number of the stream of random numbers: each slice has its own."""
        ...

    @property
    def packing(self) -> Packing:
        """How the draws of a column of entries are kept. Static."""
        ...


class UnitDraw(NamedTuple):
    """A `Draw` of units on a grid; NumPy arrays until the call."""

    scheme: DrawScheme
    units: Units
    stream: np.uint64
    packing: Packing


def unit_draw(sizes: Int, scheme: DrawScheme, label: str, packing: Packing, stratum: Int | None = None) -> UnitDraw:
    """The draw from entries of ``sizes`` (K, Q) units for the slice named ``label``; ``stratum`` as in `make_units`."""
    units = make_units(sizes, stratum, shortfall=None if scheme == DrawScheme.MULTINOMIAL else 0)
    return UnitDraw(scheme, units, np.uint64(stream_number(label)), packing)
