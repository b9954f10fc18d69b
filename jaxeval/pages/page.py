"""`page`: leaderboards as one file of HTML.

What the scripts get, as JSON in ``#data``:

* ``panels``: ids of the panels of the page;
* ``title``, ``facts``, ``made``, ``version``, ``versions``, ``seed``, ``settings`` of the first result, ``about`` (the
  same in sentences), ``warnings`` of no single board, ``digest`` (of all else, as `tables.records.json_digest`);
* ``level`` of the intervals; ``columns``: ``{key, title, kind, of}`` of what is known of models, or of rows, besides;
* ``models``: ``{name, about: {key: value}}``; the names are visible signs, and may still be any text;
* ``boards``: ``{id, title, category, controls, controlled?, without?, rows, n_models, n_votes, notes, warnings,
  pairs, what_if}``. ``controlled`` is the id of the same votes with covariates, ``without`` the way back. ``pairs`` are
  of `pair_counts`, or null; ``what_if`` says why readers cannot refit, or is null;
* their ``rows``: ``{model, rank, best, worst, rating, lower, upper, tier, votes, flags, more, was}``; ``model`` is a
  position in ``models``. What is missing is left out; infinite ends of intervals are "inf" and "-inf".

How the scripts work together stands at the head of main.js.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxeval._version import __version__
from jaxeval.pages.boards import Models, about_models, boards_of, columns_of, general_warnings
from jaxeval.pages.document import document, write_document
from jaxeval.pages.given import Given, given_boards
from jaxeval.tables.boards import settings_lines
from jaxeval.tables.records import json_digest, plain_values
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles

#: What the page of leaderboards shows, in this order; a panel without data stays away.
PANELS = ("board", "intervals", "categories", "history", "about")


def page(
    results: Any,
    path: str | Path,
    *,
    title: str = "Leaderboard",
    battles: Battles | None = None,
    metadata: Any = None,
    made: date | str | None = None,
) -> None:
    """Write leaderboards as one file of HTML that works offline and asks no network for anything.

    Args:
        results: a leaderboard, as `leaderboard` returns it; what `bootstrap` returns; a fit; or several of them, as a
            list or as a mapping of titles. Categories become tabs. Of two results, one with covariates and one
            without, readers choose, and see how far each model moves.
        path: the file to write, whole or not at all.
        title: of the page.
        battles: the votes behind the results, whose counts by pair the page then holds.
        metadata: what is known of the models, as `join_metadata` takes it: organisations, licences, prices, addresses.
        made: the day of the board, as a date or "2026-09-13"; today by default.

    Raises:
        TypeError: the results are no leaderboards.
        DataError: there are none; as by `join_metadata`; ``made`` is no date.
        OSError: the file cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> import jaxeval
        >>> board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=50)
        >>> jaxeval.page(board, "board.html", title="Simulated votes", made="2026-09-13")
        >>> "model-1" in Path("board.html").read_text()
        True
    """
    given = given_boards(results, metadata)
    write_document(board_html(given, title, _day(made)), path)


def board_html(given: Sequence[Given], title: str, made: date) -> str:
    """The page of leaderboards."""
    data = board_data(given, title, made)
    return document("board.html.jinja", data)


def board_data(given: Sequence[Given], title: str, made: date) -> dict[str, Any]:
    """What the page shows, in types that JSON has."""
    first = given[0]
    models, columns = Models([own.table for own in given]), columns_of(given)
    boards = boards_of(given, models, columns)
    data = {
        "panels": list(PANELS),
        "title": visible_line(title),
        "facts": _facts(boards, len(models.shown), first.settings),
        "made": made.isoformat(),
        "version": __version__,
        "versions": first.settings.get("versions"),
        "seed": first.settings.get("seed"),
        "level": first.settings.get("level"),
        "settings": plain_values(first.settings),
        "about": _about(given),
        "warnings": [*models.alike(), *general_warnings(given)],
        "columns": columns,
        "models": about_models(given, models, columns),
        "boards": boards,
    }
    data["digest"] = json_digest(data)
    return data


def _facts(boards: Sequence[Mapping[str, Any]], n_models: int, settings: Mapping[str, Any]) -> str:
    """How much the page rests on, on a line."""
    most = max(board["n_votes"] for board in boards)
    parts = [counted(n_models, "model"), counted(most, "vote")]
    parts += [counted(len(boards), "board")] if len(boards) > 1 else []
    if isinstance(level := settings.get("level"), float):
        parts.append(f"{100 * level:g}% intervals")
    return " · ".join(parts)


def _about(given: Sequence[Given]) -> list[str]:
    """What made the results, in sentences; each once."""
    lines = []
    for own in given:
        if own.settings:
            start = "" if own.title is None or len(given) == 1 else f"{own.title}: "
            lines += [f"{start}{line}" for text in settings_lines(own.table) for line in text.split("\n") if line]
    return [visible_line(line) for line in dict.fromkeys(lines)]


def _day(made: date | str | None) -> date:
    from jaxeval.errors import DataError

    if made is None:
        return datetime.now(UTC).date()
    try:
        return made if isinstance(made, date) else date.fromisoformat(made)
    except ValueError as error:
        raise DataError(f"made={made!r} is no date such as 2026-09-13") from error
