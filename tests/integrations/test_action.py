"""The GitHub Action: its inputs reach its step, and the step runs as GitHub runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def test_every_input_reaches_a_step():
    steps = ACTION["runs"]["steps"]
    used = " ".join(str(step.get("env", "")) + str(step.get("if", "")) for step in steps)
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in used] == []
    assert not any("${{" in step["run"] for step in steps)  # no text of an input is run


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A folder with two runs, and the command under its name."""
    folder = tmp_path_factory.mktemp("action")
    table = pd.DataFrame({"item": range(400), "score": 1})
    table.to_csv(folder / "old.csv", index=False)
    table.assign(score=[0] * 40 + [1] * 360).to_csv(folder / "new $(touch x).csv", index=False)
    command = folder / "bin" / "jaxeval"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jaxeval "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "verdict", "code"),
    [({"margin": "0.02"}, "FAIL", 1), ({"margin": "0.2", "junit": "report.xml"}, "PASS", 0),
     ({"margin": "0.1"}, "INCONCLUSIVE", 2), ({"margin": "0.1", "inconclusive": "pass"}, "INCONCLUSIVE", 0),
     ({"margin": "0.1", "options": "--no-such=1"}, None, 3)],
)  # fmt: skip
def test_the_step(bench, tmp_path, inputs, verdict, code):
    given = {name: own.get("default", "") for name, own in ACTION["inputs"].items()}
    given |= {"candidate": "new $(touch x).csv", "baseline": "old.csv"} | inputs
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    names = {key: value.split("inputs.")[1].removesuffix(" }}") for key, value in step["env"].items()}
    environment = {key: given[name] for key, name in names.items()} | {
        "PATH": f"{bench / 'bin'}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PYTHONPATH": str(ROOT), "JAXEVAL_CACHE": "off",
    }  # fmt: skip
    run = subprocess.run(["bash", "-c", step["run"]], cwd=bench, env=environment, capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    assert not (bench / "x").exists()
    if verdict is None:
        assert not (tmp_path / "output").exists()
        return
    output = (tmp_path / "output").read_text().splitlines()
    assert output[0] == f"verdict={verdict}"
    assert json.loads(Path(output[1].removeprefix("json=")).read_text())["verdict"] == verdict
    assert verdict in (tmp_path / "summary.md").read_text()
    assert (bench / "report.xml").exists() == ("junit" in inputs)
    (bench / "report.xml").unlink(missing_ok=True)
