"""Which slow tests a change can touch: `.ci/reach.py` follows imports and public names."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reach():
    spec = importlib.util.spec_from_file_location("reach", ROOT / ".ci/reach.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of(files):
    return {file.relative_to(ROOT).as_posix() for file in files}


@pytest.mark.slow
def test_a_file_reaches_what_its_imports_do(reach):
    """By a name of a module, by a public name, and by a module beside it."""
    found = names_of(reach.reached(ROOT / "tests/scores/test_item_response.py"))
    assert {"jaxeval/scores/item_response.py", "jaxeval/kernels/batch/items.py", "pyproject.toml"} <= found
    assert {"tests/conftest.py", "tests/scores/test_item_response.py"} <= found
    assert "jaxeval/softelo/soft_elo.py" not in found


@pytest.mark.slow
def test_a_kernel_reaches_little(reach):
    found = names_of(reach.reached(ROOT / "tests/kernels/test_resample.py"))
    assert "jaxeval/kernels/resample.py" in found
    assert "jaxeval/cli/main.py" not in found


@pytest.mark.parametrize("name", ["test_docs.py", "test_invariances.py"])
@pytest.mark.slow
def test_what_walks_all_names_reaches_the_package(reach, name):
    assert names_of((ROOT / "jaxeval").rglob("*.py")) <= names_of(reach.reached(ROOT / "tests" / name))


@pytest.mark.slow
def test_the_command_reaches_what_its_words_name(reach):
    """Commands that a test does not name import nothing; what processes run is in texts."""
    votes = names_of(reach.reached(ROOT / "tests/ratings/test_slices.py"))
    assert {"jaxeval/cli/main.py", "jaxeval/cli/judged_scores.py", "jaxeval/ratings/bootstrap.py"} <= votes
    assert not any(name.startswith("jaxeval/softelo/") for name in votes)
    assert "jaxeval/accuracy/judge_accuracy.py" in names_of(reach.reached(ROOT / "tests/cli/test_judge.py"))
    precision = names_of(reach.reached(ROOT / "tests/execution/test_precision.py"))
    assert "jaxeval/ratings/bootstrap.py" in precision
    assert "jaxeval/cli/main.py" not in precision


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernels/test_resample.py", "ratings/test_slices.py", "execution/test_precision.py"])
def test_what_is_imported_is_in_reach(reach, name):
    """By the tests of a file, of the command, and of a script in another process."""
    status, missed = reach.out_of_reach(ROOT / "tests" / name, "-m", "not slow")
    assert (status, missed) == (0, set())


def test_files_beside_are_reached_by_tests_that_name_them(reach, monkeypatch):
    """Whatever modules import: to follow these takes long, and nothing here is kept of what is found without them."""
    monkeypatch.setattr(reach, "imported", lambda path, words: ())
    reached = reach.reached.__wrapped__
    assert "docs/quick-start.md" in names_of(reached(ROOT / "tests/test_docs.py"))
    assert {".ci/reach.py", ".ci/run"} <= names_of(reached(Path(__file__)))


def test_what_has_run_is_due_again_when_it_changes(reach, tmp_path, monkeypatch, capsys):
    """A line of a module that the file reaches by way of another."""
    for folder in ("jaxeval", "tests", ".ci"):
        (tmp_path / folder).mkdir()
    texts = {
        "jaxeval/__init__.py": '_HOMES = {"a": ["f"]}\n',
        "jaxeval/a.py": "def f():\n    from jaxeval.b import g\n",
        "jaxeval/b.py": "g = 1\n",
        "jaxeval/c.py": "h = 1\n",
        "tests/conftest.py": "",
        "tests/quick_programs.py": "",
        "pyproject.toml": "",
        "tests/test_f.py": "import pytest\nimport jaxeval\n\n@pytest.mark.slow\ndef test():\n    jaxeval.f()\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    places = {"ROOT": "", "PACKAGE": "jaxeval", "TESTS": "tests", "KEPT": ".ci/ran"}
    for name, place in places.items():
        monkeypatch.setattr(reach, name, tmp_path / place)
    monkeypatch.delenv("CI_FULL", raising=False)

    def due(**changed):
        for name, text in changed.items():
            (tmp_path / f"jaxeval/{name}.py").write_text(text)
        for kept in vars(reach).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()
        monkeypatch.setattr("sys.argv", ["reach.py", "due"])
        assert reach.main() == 0
        return dict(line.split() for line in capsys.readouterr().out.splitlines())

    first = due()
    assert list(first) == ["tests/test_f.py"]
    (tmp_path / ".ci/ran").write_text("spark 12\n")
    monkeypatch.setattr("sys.argv", ["reach.py", "ran"])
    monkeypatch.setattr("sys.stdin", [f"{name} {digest}\n" for name, digest in first.items()])
    assert reach.main() == 0
    assert (tmp_path / ".ci/ran").read_text().startswith("slow:tests/test_f.py ")
    assert (tmp_path / ".ci/ran").read_text().endswith("spark 12\n")
    assert due() == {}
    assert due(c="h = 2\n") == {}
    assert list(due(b="g = 2\n")) == ["tests/test_f.py"]
    monkeypatch.setenv("CI_FULL", "1")
    assert due(b="g = 1\n") == first


#: Stand-ins: a pytest that fails on a file named "bad", and a Python that keeps what it is told has run.
STAND_INS = """
set -euo pipefail
logs=$PWD python=./reach JAXEVAL_DATA=$PWD
mkdir -p .ci-venv/bin
printf '#!/bin/sh\ncase "$*" in *bad*) exit 1;; esac\n' > .ci-venv/bin/pytest
printf '#!/bin/sh\ncat >> ran\n' > reach
chmod +x reach .ci-venv/bin/pytest
"""


@pytest.mark.parametrize(
    ("left", "setting", "bad", "n_ran"),
    [(240, "", None, 32), (29, "", None, 0), (29, "CI_FULL=1", None, 32), (240, "", 20, 16), (240, "CI_FULL=1", 20, 0)],
)
def test_only_what_has_passed_is_noted(tmp_path, left, setting, bad, n_ran):
    """By the stage of `.ci/run`: what has no time left, or failed, or comes after what failed, stays due."""
    text = (ROOT / ".ci/run").read_text()
    (stage,) = re.findall(r"^slow\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    (fits,) = re.findall(r"^fits\(\) .*\n", text, re.MULTILINE)
    lines = [f"{'bad' if n == bad else f'file{n}'} {n}\n" for n in range(32)]
    (tmp_path / "slow.files").write_text("".join(lines))
    script = f"{STAND_INS}\nunset CI_FULL\n{setting}\ndeadline=$((EPOCHSECONDS + {left}))\n{fits}{stage}\nslow\n"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (bad is None), done.stderr
    ran = (tmp_path / "ran").read_text() if n_ran else ""
    assert ran == "".join(lines[:n_ran])
    assert (tmp_path / "slow.left").read_text() == "".join(lines[n_ran:])
