"""How files of battles are read, and which of their battles count: options, in the words of `read_battles`."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.declared import Competitor, Costs
from jaxeval.cli.terminal import named_model, tell
from jaxeval.data.file_lists import local_file, names_of
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.errors import ColumnError, DataError
from jaxeval.options.boards import Gauge, MissingGroup, SliceOptions
from jaxeval.options.columns import File, VoteReading
from jaxeval.options.field import FIT, ROWS, Options, again, option
from jaxeval.options.resampling import DrawnTogether
from jaxeval.wording import competitor_of, named

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.battles import Battles
    from jaxeval.data.features import FeatureLike


class Reading(Competitor, VoteReading):
    """How battles are read, and which of them count."""

    models: tuple[str, ...] = option(
        (), "Rate only the battles between these models; may be repeated.", "NAME", section=ROWS
    )
    exclude: tuple[str, ...] = option((), "Leave out the battles of this model; may be repeated.", "NAME", section=ROWS)
    rename: File | None = option(
        None, "Other names of models: a table with the columns model and name, or a JSON object. Where players are "
        "rated, the column model may be called player.", "FILE", section=ROWS,
    )  # fmt: skip

    def read(
        self, paths: Sequence[FileName], keep: Sequence[str], id: str | None = None,
        known: Mapping[str, str] | None = None, plain: bool = False,
    ) -> Battles:  # fmt: skip
        """Return the battles in files; ``id``, ``known`` and ``plain`` as of `battles_in`."""
        from jaxeval.data.readers import battles_in
        from jaxeval.data.saved_battles import is_saved

        for path in paths:
            if not is_remote(path) and Path(path).is_file() and is_saved(Path(path)):
                return self._saved(paths, Path(path), id)
        columns: dict[str, Any] = {name: getattr(self, name) for name in _COLUMNS}
        columns["missing"] = "drop" if self.missing == "drop" else "error"
        columns |= self._found(paths)
        return battles_in(paths, keep=keep, id=id, known=known, plain=plain, **columns)

    def _found(self, paths: Sequence[FileName]) -> dict[str, Any]:
        """Find columns of sides and results by their values, where none are named and none have usual names."""
        from jaxeval.data.columns import without_blanks
        from jaxeval.data.published_formats import format_of_names
        from jaxeval.data.roles import has_usual_sides
        from jaxeval.data.table_files import head_names, naming

        roles = [self.winner, self.target, self.scores, self.counts, self.winner_model, self.count]
        if any(x is not None for x in roles) or (self.model_a, self.model_b) != ("model_a", "model_b"):
            return {}
        first = names_of(paths)[0]
        names = head_names(local_file(first))
        if has_usual_sides(names):
            return {}
        from jaxeval.data.formats import read_head
        from jaxeval.data.found_columns import found_votes, reading_with_blanks, sides_of
        from jaxeval.data.published_formats import about_questions, blind_questions

        head = read_head(first)
        rows = head.rows
        if format_of_names(names, "pair", rows=lambda: rows) is not None:
            return {}
        if rows is not None and len({name.strip() for name in rows}) == rows.shape[1]:  # values separated by ", ", say
            rows = without_blanks(rows, list(rows))[0].rename(columns=str.strip)
        match = None if rows is None else found_votes(rows)
        if match is None and rows is not None and self.labels:
            blanks = reading_with_blanks(rows, sides_of(rows))
            if blanks is not None and blanks.arguments.pop("labels", None) is not None:  # --labels fills the blanks
                match = blanks
        if match is not None:
            options = match.options()
            tell(f"{first}: {match.why}; read as {shlex.join(options)}" if options else f"{first}: {match.why}")
            return match.arguments
        with naming(first):
            blind = [] if rows is None else blind_questions(rows)
            if blind:
                raise DataError(about_questions(blind))
            raise ColumnError(
                "no column is called 'model_a', and the values do not say which columns are the sides and the result; "
                f"its {'columns' if head.document is None else 'keys'} are {named(list(map(repr, head.names)), 20)}"
            )

    def _saved(self, paths: Sequence[FileName], path: Path, id: str | None) -> Battles:
        """Return the battles of a state, which are read already."""
        from jaxeval.data.battles import Battles

        if len(paths) > 1:
            raise click.UsageError(
                f"{path} holds battles that jaxeval saved: name it alone, or with --state to add the other files to it"
            )
        usual = {"model_a": "model_a", "model_b": "model_b", "tie_within": 0, "both_bad": "half"}
        of_votes = [name for name in _COLUMNS if name not in ("missing", "where")]
        changed = [name for name in of_votes if getattr(self, name) != usual.get(name)]
        if changed:
            option = f"--{changed[0].replace('_', '-')}"
            raise click.UsageError(f"{option} says how votes are read, and those of {path} are: leave it out")
        battles = Battles.load(path)
        if id not in (None, battles.id):
            raise click.UsageError(f"--id says which votes of files count, and those of {path} do: leave it out")
        return battles if self.where is None else battles.filter(self.where)

    def named(self, battles: Battles) -> Battles:
        """Return the battles, with the word for what competes, if one was given."""
        if self.competitor is None:
            return battles
        return battles.reporting(_said=self.competitor)

    def chosen(self, battles: Battles) -> Battles:
        """Return the battles that count, with models renamed; names to leave out may be old or new ones."""
        battles = self.remembering(self.named(battles))
        new = {named_model(battles.models, name): other for name, other in battles.names.items()}
        before = [name for name in self.exclude if named_model(battles.models, name) in battles.models]
        if before and new:
            battles = battles.filter(exclude=[named_model(battles.models, name) for name in before])
        if any(name in battles.models for name in new) or (self.rename is not None and not before):
            battles = battles.rename(new)
        models, exclude = (
            [named_model(battles.models, name) for name in names]
            for names in (self.models, [name for name in self.exclude if not new or name not in before])
        )
        return battles.filter(models=models or None, exclude=exclude) if models or exclude else battles

    def remembering(self, battles: Battles) -> Battles:
        """Return the battles, with the names of ``--rename`` among those that a state keeps for later runs."""
        if self.rename is None:
            return battles
        from jaxeval.data.model_tables import read_names

        return replace(battles, names={**battles.names, **read_names(self.rename, battles.competitor)})


class BoardReading(Costs, Reading):
    """The same, for boards of groups and tables of models."""

    missing: MissingGroup = again(SliceOptions, "missing")  # type: ignore[assignment]
    metadata: File | None = option(
        None, "A table with a column model (or player, where players are rated). Its other columns (organisation, "
        "licence, price) are added to every output.", "FILE", section=ROWS,
    )  # fmt: skip

    cost: str | None = again(
        Costs, "cost", more="It is one of --metadata.", needs="metadata: it is a column of that file"
    )

    def with_metadata(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of models with the columns of ``--metadata``."""
        if self.metadata is None:
            return table
        from jaxeval.data.model_tables import join_metadata, read_metadata

        return join_metadata(table, read_metadata(self.metadata, competitor_of(table.attrs.get("settings"))))


#: Arguments of `read_battles`.
_COLUMNS = tuple(field.name for field in fields(VoteReading))


class Covariates(Options, section=FIT):
    """What a board controls for."""

    features: str | None = option(
        None, "Columns to control for: a column of differences (side A minus side B), or two columns as A:B.", "A,B"
    )


def refuse_beside(flag: str, flags: Mapping[str, str], has: Set[str]) -> None:
    """Refuse options, by name and flag, that what ``flag`` makes does not have."""
    for name, other in flags.items():
        if name not in has:
            raise click.UsageError(f"{other} and {flag} do not go together: leave one out")


def check_draws(options: DrawnTogether) -> None:
    """Refuse ways to draw that do not go together."""
    if options.cluster and options.scheme != "multinomial":
        raise click.UsageError("--cluster draws clusters with replacement: leave --scheme out")
    if options.strata and options.scheme == "poisson":
        raise click.UsageError(
            "--scheme poisson draws every battle on its own, and --strata fixes how many: leave one out"
        )


def covariates_of(
    names: str | None, position: bool = False, neutral: str | None = None, same_groups: tuple[str, ...] = (),
    styled: Sequence[FileName] = (),
) -> tuple[list[FeatureLike], list[str]]:  # fmt: skip
    """Return the covariates, those of the Arena's style of ``styled`` files among them, and the columns they need."""
    from jaxeval.data.features import arena_style, arena_style_columns, position_advantage, same_group
    from jaxeval.data.table_files import head_names

    pairs = _split(names.split(","), "--features takes columns A,B or pairs of columns A:B", 1, 2) if names else []
    groups = _split(same_groups, "--same-group takes three columns COL:A:B", 3, 3)
    features: list[FeatureLike] = [parts[0] if len(parts) == 1 else (parts[0], parts[1]) for parts in pairs]
    features += [position_advantage(neutral)] if position else []
    features += [same_group(*parts) for parts in groups]
    features += arena_style() if styled else []
    of_style = arena_style_columns(head_names(names_of(styled)[0])) if styled else []
    return features, [name for parts in [*pairs, *groups, [neutral] if neutral else [], of_style] for name in parts]


def _split(texts: Sequence[str], takes: str, least: int, most: int) -> list[list[str]]:
    """Return columns of each of ``texts``, joined by colons."""
    columns = [[part.strip() for part in text.split(":")] for text in texts]
    if any(not least <= len(parts) <= most or not all(parts) for parts in columns):
        raise click.UsageError(f"{takes}, got {','.join(texts)!r}")
    return columns


def gauge_of(battles: Battles, gauge: Gauge) -> Gauge:
    """Return the gauge of the option, an anchor by the name that the battles have for it."""
    return (named_model(battles.models, str(gauge[0])), gauge[1]) if isinstance(gauge, tuple) else gauge


def undeclared(
    file: FileName, used: Collection[Any], further: Sequence[str] = (), whole: str | None = None
) -> list[str]:
    """Propose to declare columns of judges, prompts or seeds of a table that are not ``used``, and ``further`` ones.

    With ``whole`` only those that have one value within each of its values.
    """
    from jaxeval.data.columns import Columns
    from jaxeval.data.formats import whole_table
    from jaxeval.data.table_files import head_names
    from jaxeval.statistics.random_facets import USUAL_FACETS

    with contextlib.suppress(ValueError, OSError):  # no table, or none here
        there = [name for name in head_names(Path(str(file))) if name in USUAL_FACETS and name not in used]
        if there:
            table = whole_table(Path(str(file)), Columns((*there, *([whole] if whole else []))), nested=True)
            there = [name for name in there if len(table[name].unique()) > 1]
            if whole:
                there = [
                    name for name in there if len(table[[whole, name]].drop_duplicates()) == table[whole].nunique()
                ]
        if there := [*further, *there]:
            words = " and ".join(f"{name}s" for name in there)
            return [f"if another evaluation would draw other {words}, --random {','.join(there)} counts them"]
    return []
