"""A function of weights and data that somebody brings: known again by what it computes, and checked before it runs."""

from __future__ import annotations

import dis
import functools
import hashlib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.engine.weighing import DataRows
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.weighted import split, statistic_slopes
from jaxeval.kernels.kinds import Array
from jaxeval.lazy_names import jax, jnp
from jaxeval.statistics.comparison import bias_corrected_bounds
from jaxeval.statistics.draws import Draws, IntervalKind
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.statistics.random_facets import RandomFacets
from jaxeval.wording import counted, named

#: What it takes: weights (N,), and data with N rows.
Function = Callable[[Any, Any], Any]

_TESTED = "jaxeval."
_PURE = "use jax.numpy (jnp) in place of numpy, jnp.where in place of if, and weights of 0 in place of rows left out"


class Statistic:
    """A function, as a compiled program knows it: equal to any other of the same code that refers to equal values.

    So a function that is defined anew, as in a notebook, is not compiled anew; and one whose globals have changed is.
    """

    def __init__(self, function: Function) -> None:
        if not callable(function):
            raise TypeError(
                f"statistic must be a function of weights and data, got {type(function).__name__}: pass the function "
                "itself, as in draws_of(my_statistic, data)"
            )
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.digest = _digest(_refers_to(function, set()))

    @property
    def is_tested(self) -> bool:
        """Whether it is jaxeval's code, whose tests hold what is checked of others' code at every call."""
        function = getattr(self.function, "func", self.function)  # of a partial, what it calls
        return str(getattr(function, "__module__", "")).startswith(_TESTED)

    def __call__(self, weights: Array, data: Any) -> Array:
        """Return all of its numbers in a row."""
        numbers = self.function(weights, data)
        leaves = numbers.values() if isinstance(numbers, Mapping) else [numbers]
        return jnp.concatenate([jnp.ravel(jnp.asarray(x)).astype(jnp.float64) for x in leaves])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statistic) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True)
class Derivative:
    """The derivative of a statistic in the direction of the weight that is missing: of the rows that are left out."""

    statistic: Statistic

    def __call__(self, weights: Array, data: tuple[Array, Any]) -> Array:
        """Return ``data`` are the weights of all rows, and the statistic's own."""
        full, each = data
        slope: Array = jax.jvp(lambda w: self.statistic(w, each), (full,), (full - weights,))[1]
        return slope


@dataclass(frozen=True)
class Studentised:
    """A statistic, followed by its standard errors from the influence of every unit, by reverse differentiation."""

    statistic: Statistic

    def __call__(self, weights: Array, data: tuple[Array, Array, Any]) -> Array:
        """Return ``data`` are what a row weighs that is drawn once, the unit of each row, and the statistic's own."""
        base, unit, rows = data
        slopes = jax.jacrev(lambda w: self.statistic(w, rows))(weights)
        n = len(unit)
        drawn = jax.ops.segment_max(jnp.where(base > 0, weights / jnp.where(base > 0, base, 1.0), 0.0), unit, n)
        influence = jax.ops.segment_sum((slopes * base).T, unit, n)
        drawn = jnp.maximum(drawn, 0.0)[:, None]  # units without rows have none
        mean = (drawn * influence).sum(0) / drawn.sum()
        error = jnp.sqrt((drawn * (influence - mean) ** 2).sum(0))
        return jnp.concatenate([self.statistic(weights, rows), error])


def _check_again(statistic: Statistic, jaxpr: Any, again: Any) -> None:
    """Raise a ValueError if the second trace of a statistic is another computation, or if tracing changed something."""
    if _digest(_refers_to(statistic.function, set())) != statistic.digest:
        raise ValueError(
            f"{statistic.name} changes something outside of itself, such as a list or an array: a statistic may "
            "only read what it is given, and return numbers"
        )
    if str(jaxpr) != str(again) or _digest(jaxpr.consts) != _digest(again.consts):
        raise ValueError(
            f"{statistic.name} does not compute the same twice: it draws random numbers, or reads what changes "
            "(a clock, a file); make such numbers once, before, and pass them within data"
        )


class Traced:
    """What a statistic computes from N rows: shapes alone, as JAX traces it."""

    def __init__(self, statistic: Statistic, weights: Any, data: Any) -> None:
        """Trace it, and twice where its code is somebody's own.

        Raises:
            ValueError: it cannot be traced, gives no numbers, or gives another computation the second time.
        """
        jaxpr, self.shapes = _traced(statistic, weights, data)
        if not statistic.is_tested:
            _check_again(statistic, jaxpr, _traced(statistic, weights, data)[0])
        with double_precision():
            of_weights = split(statistic, weights, data)[2]
        self.made = sum(x.size for x in _variables(of_weights.jaxpr))  # numbers that a lane makes

    @property
    def n_numbers(self) -> int:
        """K: how many numbers it gives."""
        return sum(int(np.prod(x.shape)) for x in jax.tree.leaves(self.shapes))

    def names(self, names: Any, usual: pd.Index | None, name: str) -> pd.Index:
        """Return the names of its numbers: ``names``, or its keys, or the ``usual`` names of the data.

        Raises:
            ValueError: there are not as many names as numbers.
        """
        k = self.n_numbers
        index = None if names is None else names if isinstance(names, pd.Index) else pd.Index(_listed(names))
        if not isinstance(self.shapes, Mapping):
            if index is None:
                index = usual if usual is not None and len(usual) == k else pd.RangeIndex(k)
                index = pd.Index([name]) if self.shapes.shape == () else index
            _check_number(index, k, name)
            return index
        keys = [str(key) for key in self.shapes]
        sizes = {int(np.prod(x.shape)) for x in self.shapes.values()}
        if all(x.shape == () for x in self.shapes.values()):
            index = pd.Index(keys) if index is None else index
            _check_number(index, k, name)
            return index
        if len(sizes) > 1:
            lengths = ", ".join(f"{key!r} has {int(np.prod(x.shape)):,}" for key, x in self.shapes.items())
            raise ValueError(
                f"{name} returns a dict whose entries have different numbers of values ({lengths}): let each entry "
                "have one value for each name, or return one value in each"
            )
        if index is None:
            index = usual if usual is not None and len(usual) in sizes else pd.RangeIndex(max(sizes))
        _check_number(index, max(sizes), name)
        return pd.MultiIndex.from_product([keys, index], names=["measure", index.name or "name"])


def _check_number(names: pd.Index, k: int, statistic: str) -> None:
    if len(names) != k:
        raise ValueError(
            f"{statistic} returns {counted(k, 'number')}, and there {'is' if len(names) == 1 else 'are'} "
            f"{counted(len(names), 'name')}: give names= one name for each number"
        )


def _listed(names: Any) -> list[Any]:
    if isinstance(names, str):
        return [names]
    try:
        return list(names)
    except TypeError:
        raise TypeError(f"names must be a list of names, got {names!r}") from None


def _traced(statistic: Statistic, weights: Any, data: Any) -> tuple[Any, Any]:
    """Return the computation of ``statistic``, and the shapes of its results."""
    try:
        with double_precision():
            return jax.make_jaxpr(lambda w, d: _checked_numbers(statistic, w, d), return_shape=True)(weights, data)
    except _UnusableError as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # whatever somebody's function raises
        raise ValueError(_why(statistic, error, data)) from None


def check_shapes(statistic: Statistic, n: int, weights: Any, data: Any) -> None:
    """Check that a statistic of ``n`` rows can also be computed of more, such as ``weights`` has."""
    try:
        with double_precision():
            jax.eval_shape(statistic, weights, data)
    except Exception as error:  # whatever somebody's function raises
        where, message = _line_of(statistic, error), (str(error).splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"{statistic.name} can be computed of the {counted(n, 'row')} of the data, but of no other number of rows"
            f"{where}: {message}. It takes an array with a row for each, or their number, from outside: pass such an "
            "array within data, and take weights.sum() for the number of rows"
        ) from None


class _UnusableError(Exception):
    """What a statistic returned is of no use."""


def _checked_numbers(statistic: Statistic, weights: Any, data: Any) -> Any:
    value = statistic.function(weights, data)
    parts = value.values() if isinstance(value, Mapping) else [value]
    for part in parts:
        is_array = isinstance(part, jax.Array | np.ndarray | int | float | np.number)
        if not is_array or jnp.iscomplexobj(part):
            what = "complex numbers" if is_array else f"a {type(part).__name__}"
            kind = f"a dict with {what}" if isinstance(value, Mapping) else what
            raise _UnusableError(
                f"{statistic.name} returns {kind}: a statistic returns an array of numbers, or a dict of them "
                "(jnp.stack makes one array of several numbers)"
            )
    if sum(jnp.size(part) for part in parts) == 0:
        raise _UnusableError(f"{statistic.name} returns no number")
    return jax.tree.map(jnp.asarray, dict(value) if isinstance(value, Mapping) else value)


def _why(statistic: Statistic, error: Exception, data: Any) -> str:
    """Return what to change in a statistic that cannot be traced."""
    where = _line_of(statistic, error)
    message = (str(error).splitlines() or [""])[0].rstrip(".")
    kinds = jax.errors
    if isinstance(error, kinds.NonConcreteBooleanIndexError):
        return (
            f"{statistic.name} chooses rows by a condition{where}, so that the shape of its result would depend on the "
            "weights: choose by jnp.where(condition, x, 0.0), or multiply the weights by the condition"
        )
    if isinstance(error, kinds.TracerArrayConversionError):
        return f"{statistic.name} hands an array of JAX to NumPy or pandas{where}: {_PURE}"
    if isinstance(error, kinds.ConcretizationTypeError | kinds.TracerIntegerConversionError):
        return f"{statistic.name} asks for the value of a number that JAX has not computed yet{where}: {_PURE}"
    if isinstance(error, kinds.UnexpectedTracerError):
        return f"{statistic.name} uses a value that an earlier call left outside of it{where}: return all that it makes"
    if isinstance(error, KeyError | TypeError) and ("string indexing" in message or isinstance(error, KeyError)):
        have = (
            f"the data have {named(list(data))}"
            if isinstance(data, Mapping)
            else (f"the data arrive as an array of shape {np.shape(data)}: pass dict(table) to take columns by name")
        )
        return f"{statistic.name} asks for what the data do not have{where}: {message}; {have}"
    if isinstance(error, TypeError) and "positional argument" in message:
        return f"{statistic.name} must take two arguments, the weights and the data: {message}"
    if isinstance(error, AttributeError | TypeError) and "Tracer" in message:
        return f"{statistic.name} uses an array of JAX as one of NumPy or pandas{where} ({message}): {_PURE}"
    return f"{statistic.name} raises {type(error).__name__}{where}: {message}"


def _line_of(statistic: Statistic, error: Exception) -> str:
    """Return where in somebody's file an error arose."""
    code = getattr(_plain(statistic.function), "__code__", None)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if code and frame.filename == code.co_filename
    ]
    if not frames:
        return ""
    line = f": {frames[-1].line}" if frames[-1].line else ""
    return f" (line {frames[-1].lineno}{line})"


def _variables(jaxpr: Any) -> Iterator[Any]:
    """Yield the arrays that a computation makes."""
    for equation in jaxpr.eqns:
        yield from (x.aval for x in equation.outvars if hasattr(x.aval, "size"))
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _variables(inner)


def _plain(function: Any) -> Any:
    """Return the Python function inside of a partial or a jitted one."""
    while True:
        inner = getattr(function, "__wrapped__", None) or (
            function.func if isinstance(function, functools.partial) else None
        )
        if inner is None:
            return getattr(function, "__func__", function)
        function = inner


def _refers_to(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield what a value is made of: of a function its code and all it refers to, of other objects their own bytes."""
    if isinstance(value, functools.partial):
        yield b"partial"
        yield from _refers_to([value.func, list(value.args), dict(value.keywords)], seen)
    elif hasattr(value, "__wrapped__") and callable(value):
        yield from _refers_to(value.__wrapped__, seen)
    elif hasattr(value, "__func__"):
        yield from _refers_to(value.__func__, seen)
        yield from _refers_to(value.__self__, seen)
    elif isinstance(value, FunctionType):
        yield f"function {value.__qualname__}".encode()
        if id(value) in seen or value.__module__.split(".")[0] in ("jax", "numpy", "scipy", "jaxeval"):
            return
        seen.add(id(value))
        yield from _of_code(value.__code__)
        cells = (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
        yield from _refers_to([value.__defaults__, value.__kwdefaults__, list(cells)], seen)
        for name in sorted(_global_names(value.__code__)):
            if name in value.__globals__:
                yield name.encode()
                yield from _refers_to(value.__globals__[name], seen)
    elif isinstance(value, type | BuiltinFunctionType):
        yield f"{value.__module__} {value.__qualname__}".encode()
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}".encode()
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for key, part in value.items():
            yield repr(key).encode()
            yield from _refers_to(part, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        yield f"{type(value).__name__} of {len(value)}".encode()
        for part in value:
            yield from _refers_to(part, seen)
    elif isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        yield from (pd.util.hash_pandas_object(value).to_numpy().tobytes(), repr(value.shape).encode())
    elif isinstance(value, np.ndarray | jax.Array) and not isinstance(value, jax.core.Tracer):
        array = np.asarray(value)
        yield f"{array.dtype} {array.shape}".encode()
        yield repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
    elif isinstance(value, str | bytes | int | float | complex | bool | type(None)):
        yield repr(value).encode()
    else:  # known by itself alone
        yield f"{type(value).__qualname__} {id(value)}".encode()


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # named before it has a value
        return False


def _of_code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:
            yield repr(constant).encode()


def _global_names(code: CodeType) -> set[str]:
    """Return the globals that code reads, and the functions within it."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _digest(parts: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        piece = part if isinstance(part, bytes) else b"".join(_refers_to(part, set()))
        digest.update(f"{len(piece)}:".encode() + piece)
    return digest.hexdigest()


def same_numbers(one: Float, other: Float) -> bool:
    """Return whether two sets of numbers are equal up to rounding, and missing in the same places."""
    scale = np.nanmax(np.abs(np.where(np.isfinite(one), one, np.nan)), initial=0.0)
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9 * scale, equal_nan=True))


@dataclass(frozen=True, eq=False, repr=False)
class StatisticDraws(Draws):
    """`Draws` of a statistic that can be differentiated by its weights: BCa and studentised intervals, too."""

    derivatives: Any = field(default=None, repr=False)  # its `influence_sums` and `studentised` errors
    place: Any = field(default=None, repr=False)  # (M,) of each quantity among those of the derivatives
    about: str = field(default="", repr=False)  # which facets are random, if any are

    def _sentences(self) -> list[str]:
        first, *others = super()._sentences()
        return [f"{self.about}: {first}" if self.about else first, *others]

    def take(self, which: Bool | NDArray[np.intp]) -> Draws:
        """Return the quantities ``which``: a mask (M,), or their numbers."""
        taken: Any = super().take(which)
        return replace(taken, place=self._places[which])

    @property
    def _places(self) -> NDArray[np.intp]:
        return np.arange(len(self.names)) if self.place is None else np.asarray(self.place)

    @cached_property
    def influence_errors(self) -> pd.Series:
        """Standard errors from the influence of each unit (the infinitesimal jackknife), without resamples.

        Raises:
            ValueError: the statistic has no derivatives, or units are not drawn by themselves.
        """
        return pd.Series(np.sqrt(self._known.influence_sums[0][self._places]), self.names)

    @property
    def _known(self) -> Any:
        if self.derivatives is None:
            raise ValueError(
                "columns that are drawn side by side have no single units, whose influence these errors and intervals "
                "take, and random facets go beyond them: use kind='percentile', 'basic' or 'wald'"
            )
        return self.derivatives

    def interval(self, level: float = 0.95, kind: IntervalKind = "percentile") -> pd.DataFrame:
        """Return confidence intervals, as of `Draws`; two more kinds know the influence of each unit.

        Args:
            level: of each interval by itself.
            kind: as for `Draws.interval`; or "bca", quantiles corrected for bias and for an error that changes with
                the value (Efron 1987); or "studentised", from draws divided by the error that each resample has.

        Raises:
            ValueError: as `Draws.interval`; for these two also where the statistic has no derivatives.
        """
        if kind not in ("bca", "studentised"):
            return super().interval(level, kind)
        known = np.isfinite(self.estimate) & ~self.without_spread.to_numpy()
        if kind == "bca":
            squares, cubes = (x[self._places] for x in self._known.influence_sums)
            with np.errstate(invalid="ignore", divide="ignore"):
                acceleration = np.where(squares > 0, cubes / (6 * squares**1.5), 0.0)
            bounds = bias_corrected_bounds(self.draws, level, self.estimate, acceleration)
            lower, upper = self._widened(self.estimate, bounds, level, self.limits)
        else:
            error, errors = (x[..., self._places] for x in self._known.studentised)
            with np.errstate(invalid="ignore", divide="ignore"):
                scaled = np.where(errors > 0, (self.draws - self.estimate) / errors, np.nan)
            low, high = interval_bounds(scaled, level)
            lower, upper = self.estimate - high * error, self.estimate - low * error
        return pd.DataFrame(
            {"lower": np.where(known, lower, np.nan), "upper": np.where(known, upper, np.nan)}, self.names
        )


def with_random_facets(
    draws: StatisticDraws, statistic: Statistic, table: DataRows, facets: Sequence[str], cluster: Any, seed: int
) -> StatisticDraws:
    """Move draws (B, K) of rows, or of clusters, by effects of other facets, with the fewest degrees of freedom.

    Raises:
        DataError: a facet is no column, or has one level.
    """
    codes = {name: table.groups(name, "random")[0] for name in facets}
    drawn = ("row", None) if cluster is None else (str(cluster), table.groups(cluster, "cluster")[0])
    of_rows = RandomFacets.of(codes, *drawn)
    effects, dof = of_rows.effects(_influences(statistic, table), len(draws.draws), seed)
    freedom = [x for x in (draws.freedom, *dof[np.isfinite(dof)]) if x is not None]
    return replace(
        draws, draws=draws.draws + effects, freedom=float(min(freedom)) if freedom else None, derivatives=None,
        about=of_rows.about, warnings=(*draws.warnings, *of_rows.warnings),
        settings={**draws.settings, "random": list(facets)},
    )  # fmt: skip


def _influences(statistic: Statistic, table: DataRows) -> Float:
    """Return (N, K) influences of rows, of which the statistic is about the mean."""
    try:
        with double_precision():
            slopes = np.asarray(statistic_slopes(statistic, np.ones(table.n), table.arrays))
    except ValueError as error:
        if "Reverse-mode" not in str(error):
            raise
        raise ValueError(
            f"{statistic.name} has a loop of unknown length, through which JAX finds no derivatives in reverse: random "
            f"facets of {counted(table.n, 'row')} need a loop of a given length (jax.lax.fori_loop, jax.lax.scan)"
        ) from None
    return (slopes - slopes.mean(1, keepdims=True)).T * table.n
