"""The compiled programs of batched calls, and how the command line keeps them for its next run."""

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, update_wrapper, wraps
from inspect import BoundArguments, signature
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from jaxeval.errors import MemoryLimitError
from jaxeval.kernels.kinds import Array, Integer, Mesh, Wrapped, namespace
from jaxeval.kernels.platforms import traced_for
from jaxeval.lazy_names import jax, jnp, lax
from jaxeval.wording import counted


class Chunks(NamedTuple):
    """The chunks of a call of `jaxeval.execution.lanes`, T per device, each of R lanes of one slice."""

    slices: Integer[Array, "devices chunks"]
    numbers: Integer[Array, "devices chunks R"]  # which resample of its slice each lane is
    n_chunks: Integer[Array, "devices"]  # that each device runs, the first ones


def over_lanes(
    chunk: Callable[..., Any], mesh: Mesh, chunks: Chunks, shared: tuple[Any, ...], problems: Any = None
) -> Any:
    """Return ``chunk(numbers, *shared)`` for every one of the ``chunks``, shared out to the devices.

    Args:
        chunk: computes the lanes ``numbers`` (R,) of one slice; its results have the leading axis R.
        mesh: the devices.
        chunks: slices and lanes.
        shared: what every chunk gets.
        problems: a tree of arrays, whose first axes number the slices: ``chunk`` gets that of its slice as first
            argument. None where there is one slice.

    Returns:
        The results with leading axes (devices, T, R); slots without a chunk hold zeros.
    """

    def on_device(chunks: Chunks, shared: tuple[Any, ...], problems: Any) -> Any:
        # The first axis is the device's.
        slices, numbers, n_chunks = (x[0] for x in chunks)

        # Jitted, so that it is traced only once, for the shapes and for the loop.
        @partial(jax.jit, inline=True)
        def one(t: Array) -> Any:
            problem = (
                () if problems is None else (jax.tree.map(lambda x: x[0 if len(x) == 1 else slices[t]], problems),)
            )
            return chunk(*problem, numbers[t], *shared)

        def run(t: Array, results: Any) -> Any:
            return jax.tree.map(lambda all_, computed: all_.at[t].set(computed), results, one(t))

        shapes = jax.eval_shape(one, jnp.int32(0))
        empty = jax.tree.map(lambda s: jnp.zeros((len(numbers), *s.shape), s.dtype), shapes)
        return jax.tree.map(lambda x: x[None], lax.fori_loop(0, n_chunks, run, empty))

    everywhere, part = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("lanes")
    # What is computed from shared arrays alone is the same on all devices, but the check cannot see it through loops.
    spread = jax.shard_map(
        on_device, mesh=mesh, in_specs=(part, everywhere, everywhere), out_specs=part, check_vma=False
    )
    with traced_for(mesh.devices.flat[0].platform):
        return spread(chunks, shared, problems)


def side_by_side(solve: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``solve`` of `dense_solve` for lanes, the first axis of tables and of scores, and the last of all else.

    On the host, these functions take lanes as they are.
    """

    def of_lanes(table: Any, *others: Array) -> Any:
        if namespace(*others) is np:
            return solve(table, *others)
        return jax.vmap(solve, (0, *[-1] * len(others)), -1)(table, *others)

    return of_lanes


T = TypeVar("T")

#: A process may hold so many mappings of memory (Linux only), and holds those of the other file, one a line. A compiled
#: program takes about a hundred. Where none is left, XLA ends the process.
_MOST_MAPS, _MAPS = Path("/proc/sys/vm/max_map_count"), Path("/proc/self/maps")
_RECENT = 16  # programs that stay while there is room at all: a run that goes on would compile them again at once


class Program(Generic[T]):
    """A function that `jax.jit` compiles for every shape of its arguments and every value of its static ones.

    What is compiled for one shape can be freed alone. Whatever else a jitted function has, such as ``lower`` and
    ``trace``, it has too. ``runs`` says how long that takes in a command, which compiles it accordingly.
    """

    def __init__(self, function: Callable[..., T], static_argnames: tuple[str, ...], runs: "Runs" = "often") -> None:
        update_wrapper(self, function)
        self.signature = signature(function)
        self.static_argnames = static_argnames
        self.runs = runs

    @cached_property
    def jitted(self) -> Wrapped:
        """The jitted function, made when it is first used: JAX is not imported before."""
        return jax.jit(self.__wrapped__, static_argnames=self.static_argnames)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        """Run it."""
        bound, store = self.signature.bind(*args, **kwargs), _store
        bound.apply_defaults()
        if store is not None:
            return store.call(self, bound)
        # Within another program JAX takes no options of the compiler.
        inside = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(bound.arguments))
        result: T = (self.jitted if inside else self._own(bound)[1])(*args, **kwargs)
        return result

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results as shapes; a program that was called before is not traced again for them."""
        bound = self.signature.bind(*args, **kwargs)
        if _store is None:
            bound.apply_defaults()
            key, own = self._own(bound)
            if key not in _shapes:
                _shapes[key] = own.eval_shape(*args, **kwargs)
            return _shapes[key]
        arguments = bound.arguments
        others = {name: value for name, value in arguments.items() if name not in self.static_argnames}
        return jax.eval_shape(lambda others: self(**{**arguments, **others}), others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)

    def clear_cache(self) -> None:
        """Free all that is compiled of it."""
        _free([key for key in list(_compiled) if key.program is self])
        jitted: Any = self.jitted
        jitted.clear_cache()

    def _own(self, bound: BoundArguments) -> tuple["Key", Any]:
        """Return the jitted function for arguments of these shapes and static values, and its key."""
        static, others = self.split(bound)
        key = Key.of(self, None, tuple(static.values()), others)
        return key, compiled(key, self._anew)

    def split(self, bound: BoundArguments) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the static arguments, and the others."""
        static = {name: bound.arguments[name] for name in self.static_argnames}
        return static, {name: value for name, value in bound.arguments.items() if name not in static}

    def _anew(self) -> Wrapped:
        """Return a jitted function with a cache of its own: JAX keeps one for every function."""
        function = self.__wrapped__

        @wraps(function)
        def one(*args: Any, **kwargs: Any) -> T:
            result: T = function(*args, **kwargs)
            return result

        return jax.jit(one, static_argnames=self.static_argnames, compiler_options=_cpu_options())

    def of_others(self, static: Mapping[str, Any], others: Mapping[str, Any]) -> Wrapped:
        """Return the jitted function of the ``others``, its arguments but the ``static`` ones, which are given."""

        def function(others: Mapping[str, Any]) -> T:
            bound = BoundArguments(self.signature, {**static, **others})
            result: T = self.__wrapped__(*bound.args, **bound.kwargs)  # a jitted one has options of its own
            return result

        return jitted(function, self, others)


def jitted(function: Callable[..., Any], program: Program[Any], arguments: Any) -> Wrapped:
    """Return ``function`` jitted for a short process, as a command's, for ``arguments`` of these shapes.

    JAX's cache knows it by the name of ``program``.
    """

    def named(*args: Any) -> Any:
        return function(*args)

    named.__name__ = program.__name__
    level: int | None = None
    if program.runs != "long":
        numbers = sum(np.size(x) for x in jax.tree.leaves(arguments))
        level = int(program.runs == "often" or numbers > _FEW)
    return jax.jit(named, compiler_options=_cpu_options(level))


#: How long all calls of a program take in a command: less than a thorough compilation (if its arguments are few
#: numbers), about as long, or so long that no process saves time by a short one.
Runs: TypeAlias = Literal["briefly", "often", "long"]
_FEW = 200_000
_SHORT = {"xla_cpu_use_fusion_emitters": False}
_CPU, _HAS_WIDE_VECTORS, _WIDE = Path("/proc/cpuinfo"), b"avx512_fp16", {"xla_cpu_prefer_vector_width": 512}


@cache
def _cpu_options(level: int | None = None) -> dict[str, Any] | None:
    """Return XLA's options for CPUs; None elsewhere, and where this XLA has no such options.

    A ``level`` makes compilation short. At level 1 it takes a third to half less time. Results are the same to
    rounding; chord steps take up to a quarter more, passes over rows no more. At level 0 it takes another two thirds
    less, and passes take several times as long.

    Intel's CPUs since Sapphire Rapids compute with 512 bits at full speed: resamples take a sixth less time. XLA uses
    256 by itself, as earlier ones slowed down.
    """
    if jax.default_backend() != "cpu":
        return None
    options: dict[str, Any] = {}
    with suppress(OSError):  # not Linux, or not to be read
        options |= _WIDE if _HAS_WIDE_VECTORS in _CPU.read_bytes() else {}
    if level is not None:
        options |= {"xla_backend_optimization_level": level, **_SHORT}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return options


@runtime_checkable
class Store(Protocol):
    """Where programs are kept between processes."""

    def call(self, program: Program[T], arguments: BoundArguments) -> T:
        """Return what ``program`` gives for all of its ``arguments``."""
        ...


class Key(NamedTuple):
    """What a compiled program is found by."""

    program: Program[Any]
    store: Store | None
    static: Hashable  # values of its static arguments
    tree: Hashable  # of the others
    types: tuple[Hashable, ...]  # and those of their leaves

    @classmethod
    def of(cls, program: Program[Any], store: Store | None, static: Hashable, others: Mapping[str, Any]) -> "Key":
        """Return the key of a program for ``others``, trees of arrays."""
        leaves, tree = jax.tree.flatten(others)
        return cls(program, store, static, tree, tuple(map(jax.typeof, leaves)))


_store: Store | None = None
#: What is compiled; the least recently called first.
_compiled: OrderedDict[Key, Any] = OrderedDict()
_shapes: dict[Key, Any] = {}  # of results, by the same keys
_lock = Lock()
_warned = False


def compiled(key: Key, make: Callable[[], Wrapped]) -> Wrapped:
    """Return the jitted function of this ``key``, which `free_programs` may free; it is made if there is none.

    Raises:
        MemoryLimitError: this process may hardly have more mappings of memory.
    """
    with _lock:
        known: Wrapped | None = _compiled.get(key)
        if known is not None:
            _compiled.move_to_end(key)
            return known
    _make_room()
    made = make()
    with _lock:
        kept: Wrapped = _compiled.setdefault(key, made)
    return kept


def free_programs() -> int:
    """Free all that jaxeval has compiled in this process, and return how many programs that were.

    A compiled program takes memory, and about a hundred of the 65,530 mappings of memory that Linux gives a process.
    When half of them are taken, the programs of jaxeval that were called least recently are freed by themselves. Call
    this to free all at once, as between parts of long work. What is needed again is compiled again, with the same
    results. Programs of others, such as your own `jax.jit` functions, stay.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(500, 4))
        >>> jaxeval.free_programs() > 0
        True
        >>> jaxeval.free_programs()
        0
    """
    return _free(list(_compiled))


def _free(keys: list[Key]) -> int:
    with _lock:
        for key in keys:
            _shapes.pop(key, None)
        freed = [one for key in keys if (one := _compiled.pop(key, None)) is not None]
    for one in freed:
        one.clear_cache()
    return len(freed)


def _make_room() -> None:
    """Free the oldest programs where half of the mappings are taken, before another is compiled."""
    global _warned
    try:
        most, taken, n_freed = int(_MOST_MAPS.read_text()), _n_maps(), 0
    except (OSError, ValueError):  # not Linux, or not to be read
        return
    if taken <= most // 2:
        return
    while taken > most * 3 // 8 and len(_compiled) > (_RECENT if taken <= most * 9 // 10 else 0):
        oldest = list(_compiled)[: max(1, (len(_compiled) - _RECENT) // 4)]
        n_freed += _free(oldest)
        taken = _n_maps()
    if n_freed and not _warned:
        _warned = True
        warnings.warn(
            f"this process held over half of the {most:,} mappings of memory that it may have, so that "
            f"{counted(n_freed, 'compiled program')} of jaxeval, called least recently, had to go. "
            "This is said once; whenever it comes to this again, the oldest go again. Results stay the same",
            RuntimeWarning,
            stacklevel=2,
        )
    if taken > most * 9 // 10:
        raise MemoryLimitError(
            f"this process holds {taken:,} mappings of memory, and {most:,} are the most: nothing more can be compiled "
            "safely. The programs of jaxeval are freed already, and other code holds the rest: free what it has "
            "compiled (jax.clear_caches()), start a new process, or raise the limit (sysctl vm.max_map_count)"
        )


def _n_maps() -> int:
    with _MAPS.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(partial(file.read, 1 << 20), b""))


@contextmanager
def kept_in(store: Store) -> Iterator[None]:
    """Let all programs within this context be called through ``store``."""
    global _store
    before, _store = _store, store
    try:
        yield
    finally:
        _store = before
        _free([key for key in list(_compiled) if key.store is store])


def program(*static_argnames: str, runs: Runs = "often") -> Callable[[Callable[..., T]], Program[T]]:
    """Return a decorator that makes a function a `Program`."""
    return partial(Program, static_argnames=static_argnames, runs=runs)


@program("kernel", runs="briefly")
def elementwise(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``kernel`` of trees of arrays, compiled for each kernel and each shape."""
    return kernel(*arguments)
