"""Leaderboards for people: the columns that they read, and the answer of a table of `jaxeval.leaderboard`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np

from jaxeval.arrays import Float
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, in_pandas, records_of
from jaxeval.show.cells import is_missing, with_kinds
from jaxeval.show.screens import columns_of
from jaxeval.show.shown import Answer, Column, Part
from jaxeval.wording import MODEL, Noun, competitor_of, counted, in_points, named, slice_title, visible_line

_BAR_WIDTH = 24
_BORROWING = "share from the other battles; spread: how far ratings differ from theirs, Elo"
_BOARD = {"model", "rating", "lower", "upper", "vote_count", "rank", "standing", "degenerate_share"}
_PEOPLE = {"rank", "spread", "model", "rating", "lower", "upper", "vote_count", "tier", "notes"}
_OWN = {*_BOARD, "variance", "rank_best", "rank_worst", "tier", "category", "component", "preliminary"}

#: Tie models, and the scale of their ratings.
_TIE_SCALES = {
    "davidson": "Davidson: ratings are log-odds of decisive battles",
    "rao_kupper": "Rao and Kupper: ratings are log-odds of a win if the slightest advantage decided",
}


def is_board(table: Any) -> bool:
    """Return whether a table has the columns of `jaxeval.leaderboard`."""
    return set(table.columns) >= _BOARD


def more_columns(table: Any) -> list[Any]:
    """Return further columns of a leaderboard: metadata of its models, and shares of ranks that were asked for."""
    return [name for name in table if name not in _OWN and not str(name).startswith("expected_score_")]


def for_people(table: Any) -> Any:
    """Return the columns of a leaderboard that people read; other tables stay as they are.

    These are rank and spread, model, rating and interval, votes, tier, notes, and the metadata joined to the table.
    """
    if not is_board(table):
        return table
    attrs, rows, is_light = table.attrs, records_of(table), isinstance(table, PlainTable)
    if not is_light:
        table = pd.DataFrame(table)  # without its settings, which every column that is taken would copy
    by_score = [name for name in table if str(name).startswith("expected_score_")]
    made = {"spread": [rank_spread(row) for row in rows], "notes": [row_notes(row) for row in rows]}
    order = ("category", "rank", "spread", "model", "rating", "lower", "upper", *by_score, "vote_count", "tier",
             *more_columns(table), "notes")  # fmt: skip
    there = [name for name in order if (any(made[name]) if name in made else name in table)]
    columns = {name: made.get(name) or table[name] for name in there}
    shown: Any = PlainTable(columns) if is_light else pd.DataFrame(columns, index=table.index)
    shown.attrs = attrs
    return shown


def plus_minus(rating: float, lower: float, upper: float) -> str:
    """Return how far the ends of an interval are from a rating, as "+12.3/-10.1"; empty where there is no interval.

    An end that nothing bounds is open.
    """
    if not isfinite(rating) or isnan(lower):
        return ""
    far = [round(end - rating, 1) + 0.0 for end in (upper, lower)]  # no -0.0
    return "/".join(f"{x:+.1f}" if isfinite(x) else "open" for x in far)


def with_interval(rating: float, lower: float, upper: float) -> str:
    """Return a rating in a sentence, with its interval where that is finite."""
    known = plus_minus(rating, lower, upper)
    return f"{rating:.1f}" + (f" ({known})" if known and "open" not in known else "")


def leader_line(
    name: str, rating: str, alike: Sequence[str], level: float, unranked: bool, equal: Sequence[str] = (),
    provided: str = "",
) -> str:  # fmt: skip
    """Return whether the first model leads, or is tied with those ``alike``; ratings may be ``equal``.

    That it is ahead holds ``provided`` that something is so.
    """
    sure = f"at the {100 * level:g}% level"
    if equal:
        others = [x for x in alike if x not in equal]
        tied = f"; statistically tied with {named(others, 3)} {sure}" if others else ""
        return f"{level_names(name, equal)} are level, first with {rating}{tied}"
    if alike:
        return f"{name} is first with {rating}; statistically tied with {named(list(alike), 3)} {sure}"
    have = " with a rank," if unranked else ""
    return f"{name} leads with {rating}, ahead of all others{have} {sure}{provided}"


def level_names(name: str, equal: Sequence[str]) -> str:
    """Return the names of models with one rating."""
    return f"{name} and {equal[0]}" if len(equal) == 1 else named([name, *equal], 4)


def penalised_line(table: pd.DataFrame) -> str:
    """Return which intervals of a `leaderboard` table come from the penalised fit."""
    noun = competitor_of(table.attrs["settings"])
    n = table.attrs["settings"].get("n_penalised", 0)
    few = " under 200 votes" if n <= (table["vote_count"] < 200).sum() else ""
    return f"intervals of {noun.counted(n)}{few} are from a penalised fit (Firth)" if n else ""


def rank_spread(row: dict[Any, Any]) -> str:
    """Return the ranks that the data leave open to a model, as "2-5"; empty for a model without a rank."""
    best, worst = row.get("rank_best"), row.get("rank_worst")
    return "" if is_missing(best) or is_missing(worst) else f"{best}-{worst}"


def row_notes(row: dict[Any, Any]) -> str:
    """Return notes on a model's rating in a few words; empty if there are none."""
    notes = []
    if row["component"] > 1:
        notes.append(f"group {row['component']}")
    elif row["standing"]:
        notes.append(str(row["standing"]))
    if row["preliminary"]:
        notes.append("preliminary")
    if abs(row["rating"]) < float("inf") and row["degenerate_share"] > 0:
        notes.append(f"no rating in {row['degenerate_share']:.1%} of resamples")
    return ", ".join(notes)


def settings_lines(table: pd.DataFrame) -> list[str]:
    """Return what was read for a `leaderboard` table, and how it was made."""
    settings = table.attrs["settings"]
    noun = competitor_of(settings)
    weights = ", inverse-pair-frequency weights" if settings["reweight"] else ""
    if settings.get("features"):
        unit = "normalized" if settings["normalize"] else "raw"
        features = counted(len(settings["features"]), f"{unit} feature")
        weights += f"; {features}, with ridge {settings['feature_ridge']:g}"
    if settings.get("ties", "half") != "half":
        weights += f"; ties by {_TIE_SCALES[settings['ties']]}; by expected score: a tie is half a win"
    if settings.get("penalty") == "firth":
        weights += f"; {settings['penalty'].capitalize()}'s penalty"
    if settings.get("link", "logit") != "logit":
        weights += f"; {settings['link']} link"
    cluster = f" of {settings['cluster']}" if settings["cluster"] else ""
    cluster += f" within {settings['strata']}" if settings["strata"] else ""
    few = f"; {noun.many} under {settings['min_battles']:,} votes take no rank" if settings["min_battles"] else ""
    draw = f"{settings['scheme']} resample"
    interval, n_thin = settings["interval"], settings.get("n_penalised", 0)
    if interval == "auto":
        interval = "Wald" if settings.get("by_errors") else "percentile"
        weights += f"; {penalised_line(table)}" if n_thin else ""
        n_basic = settings.get("n_reflected", 0)
        weights += f"; those of {noun.counted(n_basic)} are basic, as few votes of others move them" if n_basic else ""
    if "prior_spread" in settings:
        draw, weights = "draw", f"; spreads about {settings['prior_spread']:g} Elo or less before the battles"
    return [
        table.attrs["report"],
        f"{counted(settings['n_resamples'], draw)}{cluster}, seed {settings['seed']}; "
        f"{100 * settings['level']:g}% {interval} intervals; ridge {settings['ridge']:g}{weights}; "
        f"gauge: {settings['gauge']}",
        f"rank spread: by differences to all other {noun.many}, {100 * settings['level']:g}% "
        f"{f'for all {noun.many} at once' if settings['simultaneous_ranks'] else f'for each {noun.one} by itself'}"
        f"{few}",
        f"{settings['dtype']}, {settings['method']} method, on {settings['n_devices']} x {settings['device']}; "
        f"{settings['versions']}",
    ]


def score_answers(table: pd.DataFrame | PlainTable) -> list[str]:
    """Say who is first on each board of a table of scores, by judge and category."""
    groups = [name for name in ("judge", "category") if name in table]
    boards: dict[Any, list[dict[Any, Any]]] = {}
    for row in table.records() if isinstance(table, PlainTable) else table.to_dict("records"):
        boards.setdefault(tuple(row[name] for name in groups), []).append(row)
    return [
        "".join(f"{visible_line(str(name))}: " for name in names) + _first_by_score(board)
        for names, board in boards.items()
    ]


def _first_by_score(board: Sequence[Mapping[Any, Any]]) -> str:
    """Return the answer of one board, in words."""
    best = board[0]
    if is_missing(best["score"]):
        return "no model has a score; the flags say why"
    if len(board) == 1:
        known = not is_missing(best["lower"]) and not is_missing(best["upper"])
        ends = f" ({in_points(best['lower'])} to {in_points(best['upper'])})" if known else ""
        return f"{visible_line(str(best['model']))} has a score of {in_points(best['score'])}{ends}"
    # If nothing bounds the first score it has no tier, and is not told apart from models whose ranks begin at 1.
    name, value = ("rank_best", 1) if is_missing(best["tier"]) else ("tier", best["tier"])
    first = [visible_line(str(row["model"])) for row in board if row is best or row["rank"] == best["rank"]]
    others = sum(not is_missing(row[name]) and row[name] == value for row in board) - len(first)
    is_first, it = ("is first", "it") if len(first) == 1 else ("are first", "them")
    answer = f"{' and '.join(first) if len(first) < 3 else named(first, 3)} {is_first} with {in_points(best['score'])}"
    return f"{answer}; {counted(others, 'other is', 'others are')} not told apart from {it}" if others > 0 else answer


def board_part(
    title: str | None, table: pd.DataFrame, *, kept: Sequence[str] = (), rows: str | None = None,
    competitor: Noun = MODEL,
) -> Part:  # fmt: skip
    """Return a board as a screen shows it, with intervals as distances and as bars.

    The ``table`` has ``model``, ``rating`` (those that are not finite are "unrated"), ``lower``, ``upper``, and perhaps
    ``rank``, ``spread``, ``vote_count``, ``tier`` and ``notes``; other columns stand behind the ratings, and those
    ``kept`` leave last where there is no room.
    """
    ends = [np.asarray(table[name], float) for name in ("rating", "lower", "upper")]
    rating = ends[0]

    def known(name: str, head: str, order: int, text: Callable[[Any], str] = whole, **looks: Any) -> list[Column]:
        return [Column(head, list(map(text, table[name])), order=order, **looks)] if name in table else []

    others = table[["model", *(name for name in table if name not in _PEOPLE)]]
    further = columns_of(Part(None, others, kept=kept, competitor=competitor))[1:]
    columns = [
        *known("rank", "Rank", 3),
        *known("spread", "Spread", 4, str, right=False),
        *known("model", competitor.head, 0, visible_line, right=False, folds=True),
        Column("Rating", [f"{x:.1f}" if np.isfinite(x) else "unrated" for x in rating]),
        Column("+/-", [plus_minus(*interval) for interval in zip(*ends, strict=True)], right=False, order=1),
        Column("", bars(*ends), right=False, order=8, style="cyan"),
        # Those that are not kept go first, notes and bars next.
        *(column._replace(order=10 if column.order else 2) for column in further),
        *known("vote_count", "Votes", 5),
        *known("tier", "Tier", 6),
        *known("notes", "Notes", 9, str, right=False, folds=True, style="yellow"),
    ]
    return Part(title, columns, rows=rows or competitor)


def whole(value: object) -> str:
    """Return a whole number as a cell; empty where it is missing."""
    return "" if is_missing(value) else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def bars(rating: Float, lower: Float, upper: Float) -> list[str]:
    """Draw intervals in characters over the range of all finite bounds."""
    bounds = np.column_stack([lower, upper])
    finite = bounds[np.isfinite(bounds)]
    if len(rating) < 2 or len(finite) == 0 or finite.max() == finite.min():
        return [""] * len(rating)
    low, width = finite.min(), finite.max() - finite.min()
    bars = []
    for x, (a, b) in zip(rating, bounds, strict=True):
        if not (np.isfinite(x) and np.isfinite(a) and np.isfinite(b)):
            bars.append("")
            continue
        left, at, right = (round((y - low) / width * (_BAR_WIDTH - 1)) for y in (a, x, b))
        line = [" "] * _BAR_WIDTH
        line[left : right + 1] = "─" * (right - left + 1)
        line[min(max(at, 0), _BAR_WIDTH - 1)] = "●"
        bars.append("".join(line))
    return bars


def leaderboard_answer(table: Any, top: int | None = None, notes: Sequence[str] = ()) -> Answer:
    """Give what a `leaderboard` table says: who leads, each category's board, what it rests on and what it cannot say.

    A screen shows the ``top`` models of each category, or as many as it has room for.
    """
    attrs, settings = table.attrs, table.attrs["settings"]
    further = ("coefficients", "judge", "judges", "categories")
    beside = {name: with_kinds(pd.DataFrame(attrs[name]), percent="borrowed") for name in further if attrs.get(name)}
    tables = {"leaderboard": table, **beside}
    # pandas copies attrs whenever a column or a part is taken: those of many categories are large.
    board: Any = table.assign() if isinstance(table, PlainTable) else pd.DataFrame(table)
    board.attrs = {name: attrs[name] for name in ("kinds", "ends_of") if name in attrs}
    blocks: list[tuple[str | None, pd.DataFrame]] = [(None, board)]
    if "category" in table:
        groups = in_pandas(board).groupby("category", sort=False)
        blocks = [(slice_title(category, settings["by"]), block) for category, block in groups]
    noun = competitor_of(settings)
    parts = [_board(title, block, top, noun) for title, block in blocks]
    parts[-1] = parts[-1]._replace(below=list(filter(None, [penalised_line(table)])))
    if "coefficients" in tables:
        parts.append(_coefficients(tables["coefficients"], settings["link"]))
    borrowed: dict[str | None, str] = {}
    if "categories" in tables:
        for row in tables["categories"].to_dict("records"):
            if row["borrowed"] >= 0:
                borrowed[slice_title(row["category"], settings["by"])] = f"; {row['borrowed']:.0%} borrowed"
        parts.insert(0, Part("What categories borrow", tables["categories"], _BORROWING, rows="group"))
    if "judges" in tables:
        parts.append(_judges(tables["judges"]))
    answers = attrs.get("answer", "").splitlines() or [""] * len(blocks)
    sentences = [answer + borrowed.get(title, "") for answer, (title, _) in zip(answers, blocks, strict=True)]
    sentences += [_worth(record, settings) for record in attrs.get("judge", [])]
    notes = [*notes, *settings_lines(table)]
    return Answer(
        "Leaderboard", table, settings, attrs["warnings"], sentences=sentences, notes=notes, parts=parts, tables=tables
    )


def _worth(judge: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    start = f"{slice_title(judge['category'], settings['by'])}: the" if "category" in judge else "The"
    ends = f"[{judge['worth_lower']:,.0f}, {judge['worth_upper']:,.0f}]"
    return (
        f"{start} judge's {judge['n_judge_only']:,} verdicts are worth {judge['worth']:,.0f} {ends} votes, beside the "
        f"{judge['n_human']:,} of people (weight lam {judge['lam']:.2f})"
    )


def _board(title: str | None, block: pd.DataFrame, top: int | None, competitor: Noun) -> Part:
    """Return a board whose columns are made when a screen shows it: of many models they take seconds."""

    def columns() -> Sequence[Column]:
        board = for_people(block)
        board = board.drop(columns="category") if "category" in board else board
        return columns_of(board_part(None, board, competitor=competitor))

    shown = None if title is None else visible_line(title)
    return Part(shown, columns, rows=competitor, top=None if top is None else min(top, len(block)))


def _coefficients(table: pd.DataFrame, link: str) -> Part:
    heads = {"coefficient": f"{link}s", "unit": "one_unit_is"}
    names = [name for name in ("category", "feature", "coefficient", "lower", "upper", "elo", "odds_ratio", "unit")
             if name in table]  # fmt: skip
    return Part("Covariates", table[names].rename(columns=heads), rows="covariate", kept=("feature", f"{link}s"))


def _judges(table: pd.DataFrame) -> Part:
    return Part(
        "Judges", table.drop(columns=[name for name in table if str(name).endswith("_standard_error")]),
        "discrimination: how sharply a judge follows the ratings, root mean square 1; side bias: logits", rows="judge",
        kept=("judge", "discrimination"),
    )  # fmt: skip
