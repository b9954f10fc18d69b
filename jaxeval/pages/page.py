"""`page`: leaderboards and other results as one file of HTML.

The scripts get this JSON in ``#data``:

* ``panels``: ids of the panels of the page;
* ``title``, ``answer`` (who leads the first board, in a sentence), ``facts``, ``image`` (of a card), ``made``,
  ``version``, ``versions``, ``seed``, ``settings`` of the first result, ``about`` (the same in sentences), ``warnings``
  that belong to no single board, ``digest`` of the rest (`show.files.json_digest`);
* ``competitor``: what is rated, ``{one, many, a_one, head, heads}``, the last two as headings;
* ``level`` of the intervals; ``columns``: ``{key, title, kind, of}`` of further columns, ``of`` models or rows;
* ``models``: ``{name, about: {key: value}}``; names hold visible characters only, and may still be any text;
* ``boards``: ``{id, title, answer, category, controls, controlled?, without?, rows, n_models, n_votes, notes, warnings,
  pairs, what_if, history?, since?}``. ``controlled`` is the id of the board of the same votes with covariates, and
  ``without`` that of the board without them. ``pairs`` are of `pair_counts`, or null; ``what_if`` says why readers
  cannot refit, or is null; with votes there are ``law``, ``gauge``, ``reweight`` and ``pool``, see `votes`;
  ``offsets`` with covariates, and ``levers``, votes that readers may leave out by one press. ``since`` is the day
  of ``was`` in the rows, ``{rating, rank, half}``, ``half`` that of the interval of the change;
* their ``rows``: ``{model, rank, best, worst, rating, lower, upper, tier, votes, flags, more, was}``; ``model`` is a
  position in ``models``. Missing values are left out; infinite ends of intervals are "inf" and "-inf";
* ``results``: sections of other results, see `sections_of`.

The head of main.js says how the scripts work together.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxeval._version import __version__
from jaxeval.errors import DataError
from jaxeval.pages.boards import (
    MOST_ROWS,
    Given,
    Models,
    about_models,
    boards_of,
    categories,
    columns_of,
    general_warnings,
    given_boards,
    is_address,
)
from jaxeval.pages.document import document, fitted, free_id, number_of, static_boards, write_document
from jaxeval.pages.history import add_earlier, add_history, checked_history, earlier_rows, read_history
from jaxeval.show.boards import settings_lines
from jaxeval.show.cells import as_numbers, cell_texts, find_intervals, heading, with_index
from jaxeval.show.files import json_digest, plain_values
from jaxeval.show.shown import Shown, rated, settings_line, view_of
from jaxeval.show.table import Table
from jaxeval.wording import MODEL, Noun, common_noun, counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.features import FeatureLike

_DOTS = 110  # of figures, an inch
#: Panels of leaderboards, in this order; a panel without data is not shown.
PANELS = ("board", "intervals", "prices", "pairs", "categories", "what-if", "history")


def page(
    results: Any, path: str | Path, *, title: str | None = None, battles: Battles | None = None, metadata: Any = None,
    earlier: Any = None, history: pd.DataFrame | str | Path | None = None, made: date | str | None = None,
    ends: date | str | None = None, labels: Mapping[str, str] | None = None, image: str | None = None,
    features: Sequence[FeatureLike] = (),
) -> None:  # fmt: skip
    """Write results as one HTML file that works offline and makes no network request.

    Args:
        results: a leaderboard, as `leaderboard` returns it; what `bootstrap` returns; a fit; what `audit`, `soft_elo`,
            `judge_accuracy`, `score_leaderboard` and all other estimators return; or several of them, as a list or as a
            mapping from titles. Categories become tabs. If one of two leaderboards has covariates and the other has
            none, readers choose between them, and see how far each model moves. Other results become sections of
            sentences and tables.
        path: the file to write, whole or not at all.
        title: of the page.
        battles: the votes behind the leaderboards. The page then holds their counts by pair: readers see who met whom,
            and refit the ratings without some of the votes, in their browser.
        metadata: facts about the models, as `join_metadata` takes them: organisations, licences, prices, addresses.
        earlier: an earlier leaderboard of the same votes and categories; the page says how far each model moved.
        history: dated boards, as ``jaxeval leaderboard --state`` keeps them: a table, or its file.
        made: the day of the board, as a date or "2026-09-13"; today by default.
        ends: the day of the last vote.
        labels: what readers call a category, by its name: ``{"if": "Instruction following"}``.
        image: the address of a picture of the page, as ``--card`` draws one, for sites that show links to the page.
        features: covariates of the leaderboards that are computed, as `leaderboard` takes them; columns of ``battles``
            are found by their names. Readers refit a board with covariates with its coefficients as they are.

    Raises:
        TypeError: ``results`` are of another type, or ``battles`` are no `Battles`.
        DataError: there are no results; a leaderboard is empty; ``battles`` are not the votes of a leaderboard; as by
            `join_metadata`; ``history`` is no history; ``made`` or ``ends`` is no date; ``labels`` name no category;
            ``image`` is no address of the web.
        OSError: the file cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> board = jaxeval.leaderboard(votes, n_resamples=50)
        >>> jaxeval.page(board, "board.html", title="Simulated votes", battles=votes, made="2026-09-13")
        >>> "model-1" in Path("board.html").read_text()
        True
    """
    data = data_of_page(
        results, title=title, battles=battles, metadata=metadata, earlier=earlier, history=history, made=made,
        ends=ends, labels=labels, features=features,
    )  # fmt: skip
    if image is not None and not is_address(image):
        raise DataError(f"image={image!r} is no address of the web, as https://example.org/card.png")
    write_page({**data, "image": image}, path)


def data_of_page(
    results: Any, *, title: str | None = None, battles: Any = None, metadata: Any = None, earlier: Any = None,
    history: Any = None, made: date | str | None = None, ends: date | str | None = None,
    labels: Mapping[str, str] | None = None, features: Sequence[FeatureLike] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return all that a `page` shows, which takes the same, in types that JSON has."""
    given, others = given_boards(results, metadata)
    tables, day = _labelled(given, labels or {}), _day(made)
    models, columns = Models(tables), columns_of(tables)
    boards, sections = boards_of(tables, models, columns), sections_of(others)
    if not (boards or (battles is None and earlier is None and history is None)):
        raise DataError("battles=, earlier= and history= are about leaderboards, and there is none")
    if battles is not None:
        from jaxeval.pages.votes import add_votes

        add_votes(boards, tables, battles, models.number, features)
    if history is not None:
        kept = checked_history(history) if isinstance(history, pd.DataFrame) else read_history(history)
        add_history(boards, kept, day, models.number)
    if earlier is not None:
        before, _ = given_boards(earlier)
        if not before:
            raise DataError("earlier= is no leaderboard; it takes one that leaderboard() returned")
        add_earlier(boards, earlier_rows(before), models.number)
    settings = tables[0].settings if tables else _settings_of(others[0][1])
    noun = common_noun(board.competitor for board in tables) if tables else rated(others[0][1])
    n_models = len({str(name) for board in tables for name in board.table["model"]})
    sentences = [board["answer"] for board in boards[:1]] if boards else sections[0]["notes"]
    return {
        "panels": [*(PANELS if boards else ()), *(("results",) if sections else ()), "about"],
        "title": visible_line(title if title is not None else "Leaderboard" if boards else sections[0]["title"]),
        "answer": next(filter(None, sentences), "Results"),
        "facts": _facts(boards, n_models, battles, settings, noun, None if ends is None else _day(ends, "ends"), day),
        "image": None,
        "made": day.isoformat(),
        "version": __version__,
        "versions": settings.get("versions"),
        "seed": settings.get("seed"),
        "competitor": {**noun._asdict(), "a_one": noun.a_one, "head": noun.head, "heads": noun.heads},
        "level": settings.get("level"),
        "settings": plain_values(settings),
        "about": _about(tables),
        "warnings": [*models.alike(noun), *general_warnings(tables)],
        "columns": columns,
        "models": about_models(tables, models, columns),
        "boards": boards,
        "results": sections,
    }


def write_page(data: dict[str, Any], path: str | Path) -> None:
    """Write the page of its data as one file, whole or not at all."""
    shown = {**data, "boards": static_boards(data["boards"]), "digest": "0" * 64}

    def html(packed: Mapping[str, Any], small: bool) -> str:
        page = {**shown, "about": packed["about"]}
        return document("results.html.jinja", packed, page=page, small=small)

    packed, small = fitted(data, lambda *parts: len(html(*parts))) if data["boards"] else (dict(data), False)
    packed["digest"] = shown["digest"] = json_digest(packed)
    write_document(html(packed, small), path)


def write_blank(path: str | Path) -> None:
    """Write a page that reads votes in the reader's browser, rates them, and becomes the page of their board.

    Its data have ``blank``: the words for results and columns of `jaxeval.data`, see votes_file.js.
    """
    from jaxeval.data.labels import CODINGS, FAMILIES, TIES
    from jaxeval.data.roles import RESULTS
    from jaxeval.wording import MARKS

    def outcomes(words: Mapping[Any, Any]) -> dict[str, int]:
        return {f"{word:g}" if isinstance(word, float) else word: int(2 - 2 * label.target)
                for word, label in words.items() if label.weight == 1}  # fmt: skip

    families = [outcomes(words) for words in FAMILIES.values()]
    data: dict[str, Any] = {
        "panels": [*PANELS, "about"], "title": "Rate your votes",
        "answer": "Drop a file of votes: this page rates the models, says how sure the ranks are, and sends nothing.",
        "facts": "up to 300 models; 95% intervals from 1,000 resamples", "image": None,
        "made": datetime.now(UTC).date().isoformat(), "version": __version__, "versions": None, "seed": 0,
        "competitor": {**MODEL._asdict(), "a_one": MODEL.a_one, "head": MODEL.head, "heads": MODEL.heads},
        "level": 0.95, "settings": {}, "about": [], "warnings": [], "columns": [], "models": [], "boards": [],
        "results": [],
        "blank": {"results": list(RESULTS), "marks": MARKS, "families": families, "ties": outcomes(TIES),
                  "codes": [outcomes(CODINGS["a_wins_1"])]},
    }  # fmt: skip
    write_document(document("results.html.jinja", {**data, "digest": None}, reads=True), path)


def _labelled(tables: Sequence[Given], labels: Mapping[str, str]) -> list[Given]:
    known = {str(name): None for board in tables for name in categories(board) if name is not None}
    if unknown := [name for name in labels if name not in known]:
        raise DataError(
            f"labels= name no category {named(list(map(repr, unknown)))}: there are {named([*known]) or 'none'}"
        )
    return [board._replace(labels=labels) for board in tables]


def _settings_of(result: Any) -> Mapping[str, Any]:
    """Return the settings of a result, where it has some."""
    settings: Any = (
        result.attrs.get("settings") if isinstance(result, pd.DataFrame) else getattr(result, "settings", None)
    )
    return asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else dict(settings or {})


def _facts(
    boards: Sequence[Mapping[str, Any]], n_models: int, battles: Any, settings: Mapping[str, Any], competitor: Noun,
    ends: date | None, made: date,
) -> str:  # fmt: skip
    """Say on one line how many models, votes and boards the page has, and when the votes end."""
    parts = []
    if boards:
        most = battles.n_battles if battles is not None else max(board["n_votes"] for board in boards)
        until = "" if ends is None else f" until {ends.isoformat()}"
        parts = [competitor.counted(n_models), counted(most, "vote") + until]
        parts += [f"as of {made.isoformat()}"] if ends is None else []
    parts += [counted(len(boards), "board")] if len(boards) > 1 else []
    if isinstance(level := settings.get("level"), float):
        parts.append(f"{100 * level:g}% intervals")
    return " · ".join(parts)


def _about(tables: Sequence[Given]) -> list[str]:
    """Return what made the results, in sentences, each of them once."""
    lines = []
    for board in tables:
        if board.settings:
            start = "" if board.title is None or len(tables) == 1 else f"{board.title}: "
            # Fits resample nothing.
            settings = settings_lines(board.table) if "scheme" in board.settings else [settings_line(board.settings)]
            lines += [f"{start}{line}" for text in settings for line in text.split("\n") if line]
    return [visible_line(line) for line in dict.fromkeys(lines)]


def _day(made: date | str | None, name: str = "made") -> date:
    if made is None:
        return datetime.now(UTC).date()
    try:
        return made if isinstance(made, date) else date.fromisoformat(made)
    except ValueError as error:
        raise DataError(f"{name}={made!r} is no date such as 2026-09-13") from error


def sections_of(results: Iterable[tuple[str | None, Any]]) -> list[dict[str, Any]]:
    """Return a section for each table of the results, with an id for permalinks."""
    sections, taken = [], set[str]()
    for title, value in results:
        result = value if isinstance(value, Shown) else Table.of(value, "Table")
        start, warnings = "" if title is None else f"{title}: ", view_of(result).warnings
        first, *others = result._sections()
        for part in (first, *others):
            name = f"{start}{part.title}"
            section = {
                "id": free_id(name, taken), "title": visible_line(name),
                "notes": [visible_line(line) for line in part.below if line],
                "warnings": [visible_line(text) for text in dict.fromkeys(map(str, warnings))],
            }  # fmt: skip
            # Warnings, figures and sliders of the first one are those of the result.
            sections.append(section | _table(part.table, rated(result)) | (_drawn(result) if part is first else {}))
            warnings = ()
    return sections


def _drawn(result: Any) -> dict[str, Any]:
    """Return the figures of a result as images, and its tables that readers slide between."""
    pictures: dict[str, Any] = {}
    for figure in view_of(result).figures().values():
        file = BytesIO()
        figure.savefig(file, format="png", dpi=_DOTS, metadata={"Software": None})
        pictures.setdefault("figures", []).append(f"data:image/png;base64,{b64encode(file.getvalue()).decode()}")
    if sliding := getattr(result, "_sliding", None):
        label, tables = sliding()
        pictures["sliding"] = {
            "label": label, "texts": [*tables], "tables": [_table(table, rated(result)) for table in tables.values()]
        }  # fmt: skip
    return pictures


def _table(frame: Any, competitor: Noun) -> dict[str, Any]:
    """Return columns of a table with their texts, numbers to sort by, and bars of intervals."""
    if frame is None or not frame.shape[1]:
        return {"columns": [], "n_rows": 0, "left_out": ""}
    table, n_names = with_index(frame.head(MOST_ROWS))
    texts = cell_texts(table)
    bars = {interval.upper: interval for interval in find_intervals(table)}
    columns: list[dict[str, Any]] = []
    for k, name in enumerate(table.columns):
        column, parts = table.iloc[:, k], name if isinstance(name, tuple) else (name,)
        is_number = is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype)
        head = ", ".join(heading(part, competitor) for part in parts)
        entry: dict[str, Any] = {"title": visible_line(head), "text": texts[k]}
        if is_number:
            entry["value"] = [number_of(x) for x in as_numbers(column)]
        columns.append({**entry, "name": k < n_names})
        if k in bars:
            ends = {end: [number_of(x) for x in as_numbers(table.iloc[:, at])] for end, at in bars[k]._asdict().items()}
            columns.append({"title": "", "bar": ends, "text": [""] * len(table), "name": False})
    if not n_names:  # the first column of words names the rows
        for entry in columns:
            if "value" not in entry and "bar" not in entry:
                entry["name"] = True
                break
    more = len(frame) - len(table)
    return {"columns": columns, "n_rows": len(table), "left_out": counted(more, "more row") if more else ""}
