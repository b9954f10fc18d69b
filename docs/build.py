"""Build the documentation site.

python docs/build.py                # to build/site/, with the outputs that are saved in the notebooks
python docs/build.py --serve        # and show it at http://127.0.0.1:8000, built anew when a page changes
python docs/build.py --execute      # runs the notebooks, as CI does; a cell that fails is an error

A warning is an error, and so is a link that leads nowhere. Pages of other sites are not fetched.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=ROOT / "build/site", type=Path, help="its folder (default: build/site)")
    parser.add_argument("--execute", action="store_true", help="run the notebooks")
    parser.add_argument("--serve", action="store_true", help="show the site, and build it anew when a page changes")
    parser.add_argument("--port", default=8000, type=int)
    options = parser.parse_args()
    options.out = options.out.resolve()
    arguments = ["-c", "docs", "-d", ROOT / "build/doctrees", "-j", "2", ".", options.out]
    if options.serve:
        watched = [f"--ignore={ROOT / name}" for name in ("docs/reference", "build", ".git", ".venv")]
        command = ["-m", "sphinx_autobuild", "--port", options.port, *watched, *arguments]
        return subprocess.run([sys.executable, *map(str, command)], cwd=ROOT).returncode
    if (options.out / ".buildinfo").exists():
        # Of several processes Sphinx forgets one that fails: a page that it did not write must not be an earlier one.
        shutil.rmtree(options.out)
    if options.execute:
        arguments = ["-D", "nb_execution_mode=force", *arguments]
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        "--fresh-env",
        *arguments,
    ]
    built = subprocess.run([str(word) for word in command], cwd=ROOT).returncode
    command = ["-m", "jaxeval", "page", "--blank", options.out / "rate.html"]  # readers drop their votes on it
    built = built or subprocess.run([sys.executable, *map(str, command)], cwd=ROOT).returncode
    checked = subprocess.run([sys.executable, str(ROOT / "docs/_site/links.py"), str(options.out)]).returncode
    return built or checked


if __name__ == "__main__":
    sys.exit(main())
