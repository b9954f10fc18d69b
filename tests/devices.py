"""Scripts in a process of their own that sees four devices."""

import os
import subprocess
import sys

import numpy as np
from quick_programs import flags


def on_four_devices(script, here, path):
    """The arrays that ``script`` (which imports tests of the folder ``here``) saves at ``path``, its argument."""
    environment = {
        "JAX_ENABLE_X64": "1",
        "XLA_FLAGS": flags("--xla_force_host_platform_device_count=4"),
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(here), *sys.path]),
    }
    subprocess.run([sys.executable, "-c", script, str(path)], env={**os.environ, **environment}, check=True)
    saved = np.load(path)
    assert saved["n"] == 4
    return saved
