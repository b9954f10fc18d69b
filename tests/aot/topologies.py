"""Devices that are only described, for which XLA compiles all the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jax.experimental.topologies import get_topology_desc

# Else libtpu asks the network which TPU this machine is, and lets one process use it.
os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}


def tpus() -> list[Any]:
    """Four chips of a TPU v5e."""
    return list(get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices)


def gpus() -> list[Any]:
    """One H200."""
    from jax._src import xla_bridge

    known = xla_bridge.canonicalize_platform
    # Without a driver JAX has no backend that says whether "gpu" is NVIDIA's or AMD's.
    xla_bridge.canonicalize_platform = lambda name: "cuda" if name in ("gpu", "cuda") else known(name)
    target = (Path(__file__).parent / "h200.txtpb").read_text()
    return list(get_topology_desc("h200", platform="cuda", target_config=target, topology="1x1x1").devices)


#: What makes the devices of each platform, and the module that it takes.
DEVICES: dict[str, Callable[[], list[Any]]] = {"tpu": tpus, "cuda": gpus}
_MODULES = {"tpu": ["libtpu"], "cuda": ["jax_cuda13_plugin", "jax_cuda12_plugin"]}
_WHEELS = {"tpu": "jaxeval[aot]", "cuda": "jax[cuda13]"}


def what_lacks(platform: str) -> str | None:
    """Why nothing can be compiled for ``platform``; None where it can."""
    if any(find_spec(name) for name in _MODULES[platform]):
        return None
    return f"to compile for {platform} takes {' or '.join(_MODULES[platform])}: pip install '{_WHEELS[platform]}'"
