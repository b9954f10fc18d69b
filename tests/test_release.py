"""What a release needs agrees with itself: versions, dependencies, workflows and forms."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

import jaxeval

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
#: Names that conda-forge has for packages of PyPI.
CONDA = {"flatbuffers": "python-flatbuffers", "matplotlib": "matplotlib-base"}


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def check_release(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("check_release", ROOT / "packaging/check_release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dated(check_release, tmp_path, monkeypatch):
    """What is checked, in a folder whose changelog has a date."""
    for name in ("jaxeval/_version.py", "packaging/conda/recipe.yaml", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(check_release, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    heading = f"## {jaxeval.__version__} (2026-12-01)"
    changelog.write_text(re.sub(r"^## .*", heading, changelog.read_text(), count=1, flags=re.MULTILINE))
    return changelog


def test_all_files_name_one_version(check_release, dated, capsys):
    assert set(check_release.versions().values()) == {jaxeval.__version__}
    assert check_release.main(f"v{jaxeval.__version__}") == 0
    assert capsys.readouterr().err == ""
    assert check_release.main("v0.0.1") == 1
    assert f"CITATION.cff names version {jaxeval.__version__}, and the tag is v0.0.1" in capsys.readouterr().err


def test_a_version_without_a_date_is_not_published(check_release, dated, capsys):
    dated.write_text(dated.read_text().replace("(2026-12-01)", "(unreleased)", 1))
    assert check_release.main(f"v{jaxeval.__version__}") == 1
    assert "CHANGELOG.md calls its version unreleased" in capsys.readouterr().err


def test_a_release_is_tested_and_on_main():
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert [jobs[name]["needs"] for name in ("publish", "build", "tests")] == ["build", "tests", "tag"]
    assert jobs["tests"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in read(ROOT / ".github/workflows/ci.yml")[True]  # YAML reads "on" as true
    commands = "\n".join(step.get("run", "") for step in jobs["tag"]["steps"])
    assert "git merge-base --is-ancestor HEAD origin/main" in commands
    assert 'python packaging/check_release.py "$GITHUB_REF_NAME"' in commands
    assert jobs["tag"]["steps"][0]["with"]["fetch-depth"] == 0


def test_the_core_is_published_beside_the_package():
    """One version, as both read jaxeval/_version.py; each wheel is tried by itself, as they hold the same modules."""
    core = tomllib.loads((ROOT / "packaging/core/pyproject.toml").read_text())
    assert core["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "jaxeval._version.__version__"}
    assert set(core["project"]["dependencies"]) < set(PROJECT["dependencies"])
    steps = [step.get("run", "") for step in read(ROOT / ".github/workflows/release.yml")["jobs"]["build"]["steps"]]
    own, of_core = (steps.index(f"python -m build{more}") for more in ("", " --outdir dist packaging/core"))
    checked = steps.index("twine check --strict dist/*")
    assert own < of_core < checked
    wheels = [f"pip install dist/{name}-*.whl" for name in ("jaxeval", "jaxeval_core")]
    assert all(sum(wheel in step for step in steps) == 1 for wheel in wheels)
    assert any("tests/core_alone.py --fresh" in step for step in steps)


def test_the_recipe_has_the_dependencies_of_the_package():
    recipe = read(ROOT / "packaging/conda/recipe.yaml")
    pairs = (re.fullmatch(r"([\w-]+)(>=.+)", line).groups() for line in PROJECT["dependencies"])
    expected = [f"{CONDA.get(name, name)} {version}" for name, version in pairs]
    assert recipe["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *expected]
    assert recipe["build"]["python"]["entry_points"] == [f"jaxeval = {PROJECT['scripts']['jaxeval']}"]
    assert recipe["about"]["summary"] == PROJECT["description"].split(", on CPU")[0]


@pytest.mark.parametrize("name", ["packaging/conda/recipe.yaml", "packaging/Containerfile"])
def test_what_was_not_tried_says_so_on_top(name):
    assert (ROOT / name).read_text().startswith("# UNTRIED: ")


def test_citation():
    found = read(ROOT / "CITATION.cff")
    assert found["cff-version"] == "1.2.0"
    assert found["license"] == PROJECT["license"]
    assert [author["name"] for author in found["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert found["message"]
    assert found["title"].startswith("jaxeval: ")


def own_workflow(used):
    """Whether it names a workflow of this repository."""
    return used.startswith("./") and ROOT / used in WORKFLOWS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflows:
    def test_actions_are_pinned(self, path):
        """To a commit, with its version beside it; a workflow of this repository is that of the same commit."""
        used = [line for line in re.findall(r"uses: (.+)", path.read_text()) if not own_workflow(line)]
        assert used
        assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []

    def test_an_action_has_one_version_everywhere(self, path):
        versions = dict(re.findall(r"uses: (.+?)@(.+)", path.read_text()))
        for other in WORKFLOWS:
            for action, version in re.findall(r"uses: (.+?)@(.+)", other.read_text()):
                assert versions.get(action, version) == version

    def test_jobs_have_an_end_and_as_few_rights_as_do(self, path):
        workflow = read(path)
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            if own_workflow(job.get("uses", "")):  # its jobs are looked at there
                assert set(job) <= {"needs", "uses"}
                continue
            assert job["timeout-minutes"] <= 100
            assert all(set(step) & {"uses", "run"} for step in job["steps"])
            # The right to publish stands alone, beside nothing that runs our code.
            if job.get("environment") == "pypi":
                assert job["permissions"] == {"id-token": "write"}
                assert not any("run" in step for step in job["steps"])

    def test_what_they_run_exists(self, path):
        lines = "\n".join(step.get("run", "") for job in read(path)["jobs"].values() for step in job.get("steps", ()))
        named = re.findall(r"(?:python |^)((?:\.ci|packaging|docs|tests)/[\w/.]+)", lines, re.MULTILINE)
        assert [name for name in named if not (ROOT / name).exists()] == []
        extras = [extra for group in re.findall(r"'\.\[(.+?)\]'", lines) for extra in group.split(",")]
        assert set(extras) <= set(PROJECT["optional-dependencies"])


def test_ci_does_what_ci_run_does():
    workflow = read(ROOT / ".github/workflows/ci.yml")
    assert workflow["jobs"]["all"]["steps"][-1] == {"run": ".ci/run"}
    # Nothing is left out by night, which calls this workflow, and for a release, which a tag starts.
    assert read(ROOT / ".github/workflows/nightly.yml")["jobs"]["all"] == {"uses": "./.github/workflows/ci.yml"}
    whole = "github.workflow == 'nightly' || github.ref_type == 'tag'"
    assert workflow["env"]["CI_FULL"] == f"${{{{ ({whole}) && '1' || '' }}}}"


def test_pythons_that_are_named_are_those_of_ci():
    named = {text.split(":: ")[-1] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)}
    jobs = read(ROOT / ".github/workflows/ci.yml")["jobs"]
    assert named == {
        *jobs["pythons"]["strategy"]["matrix"]["python"],
        re.search(r"3\.\d+", jobs["all"]["container"])[0],
    }
    assert PROJECT["requires-python"] == ">=" + min(named, key=lambda version: int(version.split(".")[1]))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_are_what_github_reads(path):
    form = read(path)
    assert set(form) == {"name", "description", "labels", "body"}
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in {"textarea", "input", "dropdown"}
        assert field["attributes"]["label"]
        assert set(field) <= {"type", "id", "attributes", "validations"}
        assert ("options" in field["attributes"]) == (field["type"] == "dropdown")


def test_the_source_distribution_names_what_is_there():
    named = re.findall(r"^(?:graft|include) (.+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    assert [name for line in named for name in line.split() if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / ".github").glob("*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_contributors_find_the_files_that_are_named():
    text = (ROOT / ".github/CONTRIBUTING.md").read_text()
    named = set(
        re.findall(
            r"`((?:tests/|jaxeval/|benchmarks/|packaging/|\.github/|\.ci/|docs/)?[\w/]+(?:\.py|\.yml|\.md|/run))`", text
        )
    )
    named = {name for name in named if not re.search(r"[A-Z]{4}", name)}
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists() and not list(ROOT.glob(f"jaxeval/*/{name}"))] == []
