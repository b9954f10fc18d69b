"""``python -m jaxeval``, and the command ``jaxeval``."""

import gc

# Nearly all objects that imports and tracing make stay alive. To look for garbage among them after every 700 new ones,
# as Python does, takes a seventh of a small board's time. A short command makes fewer than these.
gc.set_threshold(300_000)

from jaxeval.cli.main import run  # noqa: E402

if __name__ == "__main__":
    run()
