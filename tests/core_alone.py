"""What jaxeval-core promises, where JAX, pandas, Arrow and Matplotlib cannot be imported.

python tests/core_alone.py          # they may be installed, and are hidden
python tests/core_alone.py --fresh  # they must not be: for an environment with nothing but jaxeval-core
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LEFT_OUT = ("jax", "jaxlib", "pandas", "pyarrow", "matplotlib")
COMMAND = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LEFT_OUT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from jaxeval.core import wilson
assert round(float(wilson(0.7, 500, 0.95)[0]), 3) == 0.658
from jaxeval.cli.main import run
run()
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command without those modules."""
    alone = ["-I"] if "--fresh" in sys.argv else []  # without the checkout's own modules
    line = [sys.executable, *alone, "-W", "error", "-c", COMMAND, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def main(fresh: bool) -> None:
    """Run the commands that need no more, and one that does."""
    assert not fresh or [name for name in LEFT_OUT if importlib.util.find_spec(name)] == []
    with tempfile.TemporaryDirectory() as folder:
        table, report, logs = (Path(folder) / name for name in ("scores.csv", "gate.json", "logs"))
        written: dict[Path, str] = {}

        def out(format: str, text: str) -> tuple[object, ...]:
            """Have the table written, too, with some text in it."""
            path = Path(folder) / f"table.{format}"
            written[path] = text
            return "--out", path

        rows = [f"{model},{item},{int(item % n > 0)}" for item in range(60) for model, n in (("a", 6), ("b", 3))]
        table.write_text("\n".join(["model,item,score", *rows]))
        done = run("compare-scores", "a", "b", table)
        assert done.stdout.startswith("a is above b: difference +0.167"), done
        files = [x for name in ("json", "junit", "summary") for x in (f"--{name}", report.with_name(f"gate.{name}"))]
        done = run("compare-scores", "b", "a", table, "--margin", 0.05, "--gate", *files)
        assert (done.returncode, json.loads(report.read_text())["verdict"]) == (1, "FAIL"), done
        logs.mkdir()
        for model, n in (("a", 6), ("b", 3)):
            samples = [{"id": k, "scores": {"match": {"value": "CI"[k % n == 0]}}} for k in range(60)]
            log = {"eval": {"model": model, "task": "t"}, "samples": samples, "status": "success"}
            (logs / f"{model}.json").write_text(json.dumps(log))
        done = run("compare-scores", "a", "b", logs, "--margin", 0.05, *out("csv", "difference,lower,upper"))
        assert done.stdout.startswith("a is above b: difference +0.167"), done
        done = run("scores", table, *out("json", '"model": "a"'))
        assert done.stdout.startswith("a is first with 0.833"), done
        assert "1  a      0.833 [0.715, 0.917]  1-1" in done.stdout, done
        labels = Path(folder) / "labels.csv"
        rows = [f"{item},{int(item % 3 > 0)},{int(item % 4 > 0)}" for item in range(60)]
        labels.write_text("\n".join(["item,human,judge", *rows]))
        done = run("agreement", labels, *out("md", "| Judge |"))
        assert done.stdout.startswith("Good enough? Not known: judge agrees with people on 58% [45, 71] of 60"), done
        answers = Path(folder) / "answers.csv"
        rows = [f"{item},{int(item % 3 > 0)},{int((item % 3 > 0) == (item % 8 > 0))}" for item in range(200)]
        answers.write_text("\n".join(["item,human,judgment", *rows]))
        done = run("judge", "--calibration", answers, "--test", answers, *out("html", "<table>"))
        assert done.stdout.startswith("Believe Rogan-Gladen with the models' own labels"), done
        done = run("plan-scores", table, "--difference", 0.1, "--gate", *out("tex", r"\begin{tabular}"))
        assert done.stdout.startswith("found with power 0.8: a margin of"), done
        assert {path.name: text in path.read_text() for path, text in written.items()} == {
            path.name: True for path in written
        }
        done = run("leaderboard", table)
        assert done.returncode == 1, done
        assert done.stderr.endswith("install jaxeval in place of jaxeval-core (pip install jaxeval)\n"), done


if __name__ == "__main__":
    main("--fresh" in sys.argv)
