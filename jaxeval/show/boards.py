"""A leaderboard for people: the columns of a screen, and not all columns that programs may want."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from jaxeval.wording import competitor_of, counted, named, visible_line

if TYPE_CHECKING:
    import pandas as pd

_BOARD = {"model_name", "rating", "rating_lower", "rating_upper", "vote_count", "rank", "standing", "degenerate_share"}
_OWN = {*_BOARD, "variance", "rank_best", "rank_worst", "tier", "category", "component", "preliminary"}

#: Tie models, and the scale of their ratings.
_TIE_SCALES = {
    "davidson": "Davidson: ratings are log-odds of decisive battles",
    "rao_kupper": "Rao and Kupper: ratings are log-odds of a win if the slightest advantage decided",
}


def is_board(table: pd.DataFrame) -> bool:
    """Whether a table has the columns of `jaxeval.leaderboard`."""
    return set(table.columns) >= _BOARD


def more_columns(table: pd.DataFrame) -> list[Any]:
    """Further columns of a leaderboard: metadata of its models, and shares of ranks that were asked for."""
    return [name for name in table if name not in _OWN and not str(name).startswith("expected_score_")]


def for_people(table: pd.DataFrame) -> pd.DataFrame:
    """The columns of a leaderboard that people read; other tables stay as they are.

    These are rank and spread, model, rating and interval, votes, tier, notes, and the metadata joined to the table.
    """
    import pandas as pd

    if not is_board(table):
        return table
    by_score = [name for name in table if str(name).startswith("expected_score_")]
    columns = {
        **({"category": table["category"]} if "category" in table else {}),
        "rank": table["rank"],
        "spread": [rank_spread(row) for row in table.to_dict("records")],
        **{name: table[name] for name in ("model_name", "rating", "rating_lower", "rating_upper", *by_score)},
        "vote_count": table["vote_count"],
        **({"tier": table["tier"]} if "tier" in table else {}),
        **{name: table[name] for name in more_columns(table)},
        "notes": [row_notes(row) for row in table.to_dict("records")],
    }
    shown = pd.DataFrame(columns, index=table.index)
    empty = [name for name in ("spread", "notes") if not shown[name].astype(bool).any()]
    return shown.drop(columns=empty)


def plus_minus(rating: float, lower: float, upper: float, decimals: int = 1) -> str:
    """How far the ends of an interval are from a rating, as "+12.3/-10.1"; empty where there is no interval."""
    if not isfinite(rating) or isnan(lower):
        return ""
    above, below = (round(end - rating, decimals) + 0.0 for end in (upper, lower))  # no -0.0
    return f"{above:+.{decimals}f}/{below:+.{decimals}f}"


def with_interval(rating: float, lower: float, upper: float) -> str:
    """A rating in a sentence, with its interval where that is finite."""
    known = plus_minus(rating, lower, upper)
    return f"{rating:.1f}" + (f" ({known})" if known and "inf" not in known else "")


def leader_line(name: str, rating: str, alike: Sequence[str], level: float, unranked: bool) -> str:
    """Whether the first model leads, or is statistically tied with those ``alike``."""
    sure = f"at the {100 * level:g}% level"
    if alike:
        return f"{name} is first with {rating}; statistically tied with {named(list(alike), 3)} {sure}"
    have = " that have a rank" if unranked else ""
    return f"{name} leads with {rating}, ahead of all others{have} {sure}"


def penalised_line(table: pd.DataFrame) -> str:
    """Which intervals of a `leaderboard` table come from the penalised fit."""
    own = competitor_of(table.attrs["settings"])
    n = table.attrs["settings"].get("n_penalised", 0)
    few = " under 200 votes" if n <= (table["vote_count"] < 200).sum() else ""
    return f"intervals of {own.counted(n)}{few} are from a penalised fit (Firth)" if n else ""


def rank_spread(row: dict[Any, Any]) -> str:
    """The ranks that the data leave open to a model, as "2-5"; empty for a model without a rank."""
    import pandas as pd

    best, worst = row.get("rank_best"), row.get("rank_worst")
    return "" if pd.isna(best) or pd.isna(worst) else f"{best}-{worst}"


def row_notes(row: dict[Any, Any]) -> str:
    """Notes on a model's rating in a few words; empty if there are none."""
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
    """What was read for a `leaderboard` table, and how it was made."""
    settings = table.attrs["settings"]
    own = competitor_of(settings)
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
    few = f"; {own.many} under {settings['min_battles']:,} votes take no rank" if settings["min_battles"] else ""
    draw = f"{settings['scheme']} resample"
    interval, n_thin = settings["interval"], settings.get("n_penalised", 0)
    if interval == "auto":
        interval = "percentile"
        weights += f"; {penalised_line(table)}" if n_thin else ""
    if "prior_spread" in settings:
        draw, weights = "draw", f"; spreads about {settings['prior_spread']:g} Elo or less before the battles"
    return [
        table.attrs["report"],
        f"{counted(settings['n_resamples'], draw)}{cluster}, seed {settings['seed']}; "
        f"{100 * settings['level']:g}% {interval} intervals; ridge {settings['ridge']:g}{weights}; "
        f"gauge: {settings['gauge']}",
        f"rank spread: by differences to all other {own.many}, {100 * settings['level']:g}% "
        f"{f'for all {own.many} at once' if settings['simultaneous_ranks'] else f'for each {own.one} by itself'}{few}",
        f"{settings['dtype']}, {settings['method']} method, on {settings['n_devices']} x {settings['device']}; "
        f"{settings['versions']}",
    ]


def score_answers(table: pd.DataFrame) -> list[str]:
    """Say who is first on each board of a table of scores, by judge and category."""
    groups = [name for name in ("judge", "category") if name in table]
    boards = [own for _, own in table.groupby(groups, sort=False)] if groups else [table]
    return ["".join(f"{visible_line(str(own.iloc[0][x]))}: " for x in groups) + _first_by_score(own) for own in boards]


def _first_by_score(board: pd.DataFrame) -> str:
    """The answer of one board, in words."""
    import pandas as pd

    best = board.iloc[0]
    if pd.isna(best["score"]):
        return "no model has a score; the flags say why"
    # If nothing bounds the first score it has no tier, and is not told apart from models whose ranks begin at 1.
    alike = board["rank_best"] == 1 if pd.isna(best["tier"]) else board["tier"] == best["tier"]
    others = int(alike.fillna(False).sum()) - 1
    answer = f"{visible_line(str(best['model_name']))} is first with {best['score']:.3f}"
    return f"{answer}; {counted(others, 'other is', 'others are')} not told apart from it" if others > 0 else answer
