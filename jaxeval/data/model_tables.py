"""What is known about models besides their battles: other names, organisations, licences, prices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from jaxeval.data.columns import as_frame, reject_missing, renames, require_column
from jaxeval.data.file_lists import local_file
from jaxeval.data.remote_names import FileName
from jaxeval.data.table_files import naming, read_as, read_whole_table
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import MODEL, Noun, competitor_of, did_you_mean, listed, named


def read_names(name: FileName, competitor: Noun = MODEL) -> dict[str, str]:
    """Read new names by models' names, from a table with the columns model and name, or from a JSON object.

    Where a ``competitor`` is a player, the column model may also be called player.
    """
    path = local_file(name)
    if path.suffix.lower() == ".json":
        with naming(path):
            try:
                names = json.loads(path.read_bytes())
            except (ValueError, RecursionError) as error:
                raise DataError(f"cannot be read as JSON: {error}") from error
            if isinstance(names, dict):
                odd = next((name for name, other in names.items() if not isinstance(other, str)), None)
                if odd is not None:
                    raise DataError(f"the name of {odd!r} must be text, got {names[odd]!r}")
                return names
    return read_as(partial(_names, competitor=competitor), path, [*_keys(competitor), "name"], {})


def read_families(name: FileName) -> dict[str, str]:
    """Return the families of models, or of judges, by name, from a table with the columns name and family."""
    with naming(name):
        table = read_whole_table(name, ["name"])
        require_column(table, "name", "family")
    return dict(zip(table["name"].astype(str), table["family"], strict=True))


def _names(table: pd.DataFrame, competitor: Noun) -> dict[str, str]:
    table = _by_model(table, competitor, "name")
    reject_missing(table["name"].isna().to_numpy(), "name")
    return {str(model): str(name) for model, name in table["name"].items()}


def read_metadata(path: FileName, competitor: str | Sequence[str] = MODEL) -> pd.DataFrame:
    """Return a table of metadata of models, indexed by its column model, for `join_metadata`.

    Args:
        path: the file.
        competitor: what is rated, in a word, as of `Battles.from_pandas`. If it is "player", the column may also be
            called player.

    Raises:
        DataError: there is no column model, and none of that word; or a model is there twice.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> pd.DataFrame({"model": ["model-1"], "licence": ["open"]}).to_csv("models.csv")
        >>> jaxeval.read_metadata("models.csv")["licence"].to_dict()
        {'model-1': 'open'}
    """
    noun = Noun.of(competitor)
    return read_as(partial(_by_model, competitor=noun), path, _keys(noun), {})


def _keys(competitor: Noun) -> list[str]:
    """Return names of the column of models, the preferred one first."""
    return list(dict.fromkeys(("model", competitor.one)))


def _by_model(table: pd.DataFrame, competitor: Noun, *columns: str) -> pd.DataFrame:
    """Return the table, indexed by its column model; or by the one of that word, which is then called model."""
    words = [word for word in _keys(competitor) if word not in columns]
    table = table.rename(columns=renames(columns, table.columns))
    for key in words:
        table = table.rename(columns=renames([key], table.columns))
        if key in table.columns:
            break
    else:
        have = f"its columns are {listed(table)}{did_you_mean(key, table.columns)}"
        raise DataError(f"no column {' or '.join(map(repr, words))} in the table; {have}")
    require_column(table, key, *columns)
    reject_missing(table[key].isna().to_numpy(), key)
    twice = table[key][table[key].duplicated()].unique()
    if len(twice):
        raise DataError(f"column {key!r} names {competitor.counted(len(twice))} more than once: {named(list(twice))}")
    return table.set_index(key).rename_axis("model")


def join_metadata(table: Any, metadata: Any) -> pd.DataFrame:
    """Return a table of models with further columns from a table of metadata; they are missing for models not in it.

    Args:
        table: a table with a column ``model``, as `leaderboard` gives it.
        metadata: a table with a column ``model``, or indexed by model. For a board of players, the column or the index
            may also be called ``player``.

    Raises:
        DataError: both tables have a column of the same name, the metadata have a model twice, or no model is in both.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 3, seed=0), n_resamples=50)
        >>> known = pd.DataFrame({"model": ["model-2", "model-1"], "licence": ["open", "closed"]})
        >>> jaxeval.join_metadata(board, known)["licence"].tolist()
        ['closed', 'open', nan]
    """
    metadata, noun = as_frame(metadata), competitor_of(table.attrs.get("settings"))
    if metadata.index.name not in ("model", noun.one):
        metadata = _by_model(metadata, noun)
    require_column(table, "model")
    both = [column for column in metadata if column in table.columns]
    if both:
        raise DataError(
            f"the metadata have columns that the table has, too: {named(both)}. Rename them in the metadata"
        )
    names = table["model"].astype(str)
    by_name = metadata.set_axis(metadata.index.astype(str))
    if not names.isin(by_name.index).any():
        raise DataError(
            f"the metadata have none of the {noun.counted(len(names))} of the table; they have "
            f"{named(list(by_name.index))}"
        )
    joined = table.copy()
    for column in by_name:
        joined.insert(len(joined.columns), column, names.map(by_name[column]))
    return joined
