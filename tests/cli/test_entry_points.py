"""A package that is not jaxeval's adds a command."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run, said

from jaxeval.cli.main import main

CODE = """
import click
import pandas as pd


@click.command()
@click.argument("file")
@click.option("--share", default=0.5, show_default=True, help="Quantile of the scores.")
def quantile(file, share):
    \"\"\"Quantiles of the columns of FILE.\"\"\"
    if not 0 <= share <= 1:
        raise ValueError(f"--share must be in [0, 1], got {share}")
    print(pd.read_csv(file).quantile(share).to_csv(header=False), end="")


none = 3
"""
#: An estimator of somebody else: a trimmed mean by category, with clusters.
TRIMMED = """
import click, jax.numpy as jnp, pandas as pd, jaxeval


def trimmed_mean(weights, x):
    order = jnp.argsort(x, axis=0)
    share = jnp.cumsum(weights[order], 0) / weights.sum()
    kept = weights[order] * ((share > 0.1) & (share <= 0.9))
    return (kept * jnp.take_along_axis(x, order, 0)).sum(0) / kept.sum(0)


@click.command()
@click.argument("file")
@click.option("--out")
def trimmed(file, out):
    found = jaxeval.draws_of(trimmed_mean, pd.read_csv(file), cluster="passage", by="category", n_resamples=100)
    found.show()
    click.echo(found.tiers().to_string())
    jaxeval.plots.plot_draws(found).savefig(f"{out}/board.png")
    for ending in ("csv", "json", "md", "html"):
        jaxeval.write_table(found, f"{out}/board.{ending}")
"""
ENTRIES = """[jaxeval.estimators]
quantile = example_estimators:quantile
absent = example_estimators_absent:quantile
odd = example_estimators:none
scores = example_estimators:quantile
trimmed = example_trimmed:trimmed
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as it is installed: its code and its metadata in a folder of ``sys.path``."""
    (tmp_path / "example_estimators.py").write_text(CODE)
    (tmp_path / "example_trimmed.py").write_text(TRIMMED)
    metadata = tmp_path / "example_estimators-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: example-estimators\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    main.__dict__.pop("others", None)
    yield tmp_path
    main.__dict__.pop("others", None)
    for name in ("example_estimators", "example_trimmed"):
        sys.modules.pop(name, None)


def test_the_command_runs(package):
    file = package / "scores.csv"
    pd.DataFrame({"a": [0, 1, 5], "b": [2, 3, 10]}).to_csv(file, index=False)
    assert said("quantile", file) == "a,1.0\nb,3.0\n"
    assert said("quantile", file, "--share", 1) == "a,5.0\nb,10.0\n"
    assert "Quantiles of the columns of FILE." in said("quantile", "--help")


def test_an_estimator_is_shown_as_those_of_jaxeval_are(package):
    """In a table, tiers, a figure, a page and files, with intervals of clusters for each category."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"passage": np.arange(200) // 4, "category": ["x", "y"] * 100})
    table = table.assign(a=rng.normal(2, 1, 200), b=rng.normal(0, 1, 200))
    table.to_csv(package / "scores.csv", index=False)
    shown = said("trimmed", package / "scores.csv", "--out", package)
    assert "Draws: 100 draws of 4 quantities" in shown
    assert [line.split()[-2:] for line in shown.splitlines()[-4:]] == [["a", "1"], ["b", "2"]] * 2
    board = pd.read_csv(package / "board.csv")
    assert board["name"].tolist() == ["a", "a", "b", "b"]
    assert sorted(board["category"]) == ["x", "x", "y", "y"]
    inside = board[(board["lower"] < board["estimate"]) & (board["estimate"] < board["upper"])]
    assert len(inside) == 4
    assert (package / "board.png").read_bytes().startswith(b"\x89PNG")
    assert "<table" in (package / "board.html").read_text()
    assert "| Category | Name |" in (package / "board.md").read_text()
    assert len(json.loads((package / "board.json").read_text())["rows"]) == 4


def test_bad_input_is_one_message(package):
    file = package / "scores.csv"
    pd.DataFrame({"a": [0]}).to_csv(file, index=False)
    result = run("quantile", file, "--share", 2)
    assert (result.exit_code, result.stderr) == (1, "Error: --share must be in [0, 1], got 2.0\n")


def test_help_lists_it_and_imports_nothing(package):
    shown = said("--help")
    assert "From other packages" in shown
    assert ["quantile", "example_estimators:quantile"] in [line.split() for line in shown.splitlines()]
    assert "example_estimators" not in sys.modules


def test_names_of_jaxeval_stay_its_own(package):
    assert main.get_command(None, "scores") is main.commands["scores"]
    assert main.list_commands(None).count("scores") == 1


@pytest.mark.parametrize(
    ("name", "says"), [("absent", "cannot be imported: No module named"), ("odd", "must be a click.Command, got 3")]
)
def test_what_is_wrong_is_said(package, name, says):
    result = run(name)
    assert result.exit_code == 1
    assert f"{name} of example_estimators" in result.stderr
    assert says in result.stderr


def test_near_names(package):
    assert "quantile" in run("quantil").stderr
