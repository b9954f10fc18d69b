"""Names of columns that tables had in earlier versions."""

import warnings

import pandas as pd
import pytest

from jaxeval.data.model_tables import join_metadata
from jaxeval.pages.history import checked_history
from jaxeval.show import former
from jaxeval.show.table import Table

TABLE = {"model": ["a", "b"], "rating": [2.0, 1.0], "lower": [1.0, 0.0], "upper": [3.0, 2.0], "p_lower": [0.1, 0.2]}


KNOWN = pd.DataFrame({"model_name": ["b"], "licence": ["x"]})


@pytest.fixture
def table():
    return Table(pd.DataFrame(TABLE))


READ = {
    "column": lambda table: table["model_name"].tolist() == ["a", "b"],
    "attribute": lambda table: table.rating_lower.tolist() == [1, 0],
    "columns": lambda table: list(table[["model_name", "rating_upper"]]) == ["model", "upper"],
    "get": lambda table: table.get("rating_lower").tolist() == [1, 0],
    "loc": lambda table: table.loc[table["rating"] > 1, "model_name"].tolist() == ["a"],
    "index": lambda table: table.set_index("model_name")["rating"].to_dict() == {"a": 2, "b": 1},
    "sorted": lambda table: table.sort_values("rating_lower", ascending=True)["model"].tolist() == ["b", "a"],
    "groups": lambda table: [name for name, _ in table.groupby("model_name")] == ["a", "b"],
    "dropped": lambda table: "lower" not in table.drop(columns=["rating_lower"]),
    "renamed": lambda table: "name" in table.rename(columns={"model_name": "name"}),
    "merged": lambda table: len(table.merge(table[["model"]].head(1), on="model_name")) == 1,
    "merged with a former name": lambda table: list(table.merge(KNOWN, on="model_name")["licence"]) == ["x"],
    "merged by two names": lambda table: len(table.merge(KNOWN, left_on="model_name", right_on="model_name")) == 1,
    "joined": lambda table: list(table.join(KNOWN.set_index("model_name"), on="model_name")["licence"])[1] == "x",
    "filtered": lambda table: list(table.filter(items=["rating_lower"])) == ["lower"],
    "reindexed": lambda table: list(table.reindex(columns=["model_name"])["model"]) == ["a", "b"],
    "aggregated": lambda table: table.agg({"rating_lower": "max"})["lower"] == 1,
    "LaTeX": lambda table: table.to_latex(columns=["model_name"]).count("model") == 1,
}  # fmt: skip


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_a_former_name_is_read_and_told_once(table, read, monkeypatch):
    monkeypatch.setattr(former, "_told", set())
    with pytest.warns(FutureWarning, match="the column '.*' is called '.*' now") as told:
        assert read(table)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(table)


def _delete(table):
    del table["rating_lower"]


WRITE = {
    "column": (lambda table: table.__setitem__("rating_lower", table["rating_lower"] - 5), [-4, -5]),
    "loc": (lambda table: table.loc.__setitem__((0, "rating_lower"), 7.0), [7, 0]),
    "attribute": (lambda table: setattr(table, "rating_lower", [8.0, 9.0]), [8, 9]),
    "fillna": (lambda table: table.mask(table == 0).fillna({"rating_lower": 3.0}), [1, 3]),
    "assign": (lambda table: table.assign(rating_lower=[8.0, 9.0]), [8, 9]),
    "pop": (lambda table: table.pop("rating_lower").to_frame(), [1, 0]),
    "del": (_delete, None),
}  # fmt: skip


@pytest.mark.parametrize(("write", "lower"), WRITE.values(), ids=WRITE)
@pytest.mark.filterwarnings("ignore:the column:FutureWarning")
def test_a_former_name_is_written(table, write, lower):
    """No second column appears."""
    written = write(table)
    written = table if written is None else written
    assert "rating_lower" not in written.columns
    assert lower == (written["lower"].tolist() if "lower" in written.columns else None)


def test_names_of_the_right_table_stay(table):
    merged = table.merge(KNOWN, left_on="model", right_on="model_name")
    assert merged[["model", "model_name"]].to_numpy().tolist() == [["b", "b"]]
    assert list(table.merge(table, on="model")["model"]) == ["a", "b"]


def test_other_names_stay_as_they_are(table):
    """No interval is given for that of another quantity, and what a table has is never renamed."""
    for name in ("score_lower", "p_upper", "x_lower", "lower_rating"):
        assert name not in table
        with pytest.raises(KeyError):
            table[name]
        with pytest.raises(AttributeError):
            getattr(table, name)
    assert table["p_lower"].tolist() == [0.1, 0.2]
    own = join_metadata(table, pd.DataFrame({"model": ["a", "b"], "model_name": ["x", "y"], "quality": [0.1, 0.2]}))
    assert own["model_name"].tolist() == ["x", "y"]
    assert own["model"].tolist() == ["a", "b"]
    assert "quality_lower" not in own


def test_what_earlier_versions_wrote_is_read(table):
    old = {"model": "model_name", "lower": "rating_lower", "upper": "rating_upper"}
    written = pd.DataFrame(table.rename(columns=old))
    pd.testing.assert_frame_equal(former.with_present_names(written), pd.DataFrame(table))
    beside = table.rename(columns={"lower": "rating_lower", "upper": "rating_upper"})
    assert former.with_present_names(beside) is beside  # as anchored_scores, which have two quantities
    both = written.assign(model="x")
    assert next(iter(former.with_present_names(both))) == "model_name"
    history = written.assign(date="2026-01-01", board="", scale="", rank=1, vote_count=3)
    assert list(checked_history(history)["model"]) == ["a", "b"]
