"""The command line: ``jaxeval leaderboard, compare-boards, agreement, soft-elo, judge, anchored, meta`` and others."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

import click

from jaxeval._version import __version__
from jaxeval.cli.command_table import ROWS
from jaxeval.cli.commands import Commands
from jaxeval.cli.compiling import kept_programs
from jaxeval.cli.terminal import tell

#: click's own completion, and the cache of `jaxeval.cli.compiling`.
_EPILOG = """\b
A FILE may be -, standard input. It may also lie elsewhere; this needs the extra jaxeval[remote]:
  hf://datasets/OWNER/NAME/FILE    https://HOST/FILE    s3://BUCKET/FILE

\b
The shell completes commands and options after
  eval "$(_JAXEVAL_COMPLETE=bash_source jaxeval)"    (or zsh_source)
  _JAXEVAL_COMPLETE=fish_source jaxeval | source

Compiled programs are kept in your cache folder. JAXEVAL_CACHE names another folder, or is "off"."""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
    epilog=_EPILOG,
    homes={row.name: row.home or row.name.replace("-", "_") for row in ROWS.values()},
)
@click.version_option(__version__, prog_name="jaxeval")
def main() -> None:
    """Leaderboards of language models from votes and judges' scores, with honest uncertainty."""


def run() -> None:
    """Run `main` as a process that Ctrl-C ends at once: what XLA still computes does not outlive an exit."""
    try:
        code = main(standalone_mode=False, obj=kept_programs)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:  # of help, on a full disk
        tell(f"Error: {error}")
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        from jaxeval.data.file_formats import remove_copies

        remove_copies()
        tell("Aborted!")
    finally:
        if "duckdb" not in sys.modules or "jaxlib" in sys.modules:  # DuckDB alone tells of what is frozen as a leak
            gc.freeze()  # Python's last search for garbage, at the end, takes a fifth of a small board's time
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, none
            stream.flush()
    os._exit(130)


if __name__ == "__main__":
    run()
