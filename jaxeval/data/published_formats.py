"""Files of judgments as well-known benchmarks publish them, recognised by their columns and read as battles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.data.columns import folded, numbers_or_nan, reject_missing, reject_values
from jaxeval.data.outcomes import by_difference
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: Scores that differ by no more are ties, as in FastChat, the home of MT-bench.
_MT_BENCH_TIE = 0.1
_GAMES = 2


class PublishedFormat(NamedTuple):
    """A published format: its columns, and the function that makes battles of its rows."""

    name: str
    marks: tuple[str, ...]  # columns by which it is recognised
    further: tuple[str, ...]  # further columns that are read if they are there
    battles: Callable[[pd.DataFrame, str | None], pd.DataFrame]  # of a table and, if it names none, its baseline
    told: str  # how it is read, in words
    reference: Callable[[pd.DataFrame, str | None], Any] | None = None  # of battles, the model that others met


def published_format(names: Sequence[str]) -> PublishedFormat | None:
    """The published format that a file with columns of these names has."""
    if {"modela", "modelb"} <= {folded(name) for name in names}:
        return None  # a table of battles
    return next((form for form in _FORMATS if set(form.marks) <= set(names)), None)


def _mt_bench_pairs(table: pd.DataFrame, _: str | None) -> pd.DataFrame:
    first, second = table["g1_winner"], table["g2_winner"]
    winner = first.where(first == second, "tie").map({"model_1": "model_a", "model_2": "model_b", "tie": "tie"})
    winner = winner.where(first.isin(["model_1", "model_2", "tie"]) & second.isin(["model_1", "model_2", "tie"]))
    battles = table.rename(columns={"model_1": "model_a", "model_2": "model_b"})
    return _with_judge(battles.assign(winner=winner))


def _mt_bench_scores(table: pd.DataFrame, _: str | None) -> pd.DataFrame:
    table = _with_judge(table)
    score = numbers_or_nan(table["score"], "score")
    table = table.assign(score=np.where(score < 0, np.nan, score))
    reject_missing(table["model"].isna().to_numpy(), "model")
    same = [name for name in ("question_id", "turn", "judge") if name in table]
    twice = table.duplicated([*same, "model"])
    if twice.any():
        where = f"first in row {int(twice.argmax())}; rows count from 0"
        raise DataError(
            f"{counted(int(twice.sum()), 'row scores', 'rows score')} a model again for the same {', '.join(same)} "
            f"({where}): keep one row of each"
        )
    pairs = table.merge(table[[*same, "model", "score"]], on=same, suffixes=("", "_b"))
    pairs = pairs[pairs["model"] < pairs["model_b"]].rename(columns={"model": "model_a"})
    one, two = pairs["score"].to_numpy(), pairs["score_b"].to_numpy()
    target = np.where(np.isnan(one) | np.isnan(two), np.nan, by_difference(one, two, _MT_BENCH_TIE))
    pairs = pairs.assign(target=target)
    return pairs.drop(columns=["score", "score_b"])


def _alpaca_eval(table: pd.DataFrame, _: str | None) -> pd.DataFrame:
    preference = numbers_or_nan(table["preference"], "preference")
    preference = np.where(preference == 0, 1.5, preference)  # a draw of earlier versions
    outside = ~(np.isnan(preference) | ((preference >= 1) & (preference <= 2)))
    reject_values(preference, outside, "preference", "AlpacaEval's preferences must lie in [1, 2], or be 0 for a draw")
    names = {"generator_1": "model_a", "generator_2": "model_b", "instruction": "item", "annotator": "judge"}
    return table.assign(target=2 - preference).rename(columns=names).drop(columns="preference")


def _arena_hard(table: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    if "baseline" not in table and baseline is None:
        raise DataError(
            "the file does not name the baseline of Arena-Hard: name it with baseline= (--baseline), such as "
            "baseline='gpt-4-0314'"
        )
    own = table["baseline"] if "baseline" in table else pd.Series(baseline, table.index)
    own = own if baseline is None else own.fillna(baseline)
    games = [_scores(row, games) for row, games in enumerate(table["games"])]
    rest = table.drop(columns=[name for name in ("games", "baseline") if name in table]).rename(
        columns={"uid": "question_id"}
    )
    both = []
    for game in range(_GAMES):
        sides = (own, rest["model"]) if game == 0 else (rest["model"], own)
        scores = [scores[game] for scores in games]
        both.append(rest.assign(model_a=sides[0], model_b=sides[1], winner=scores, game=game + 1))
    return _with_judge(pd.concat(both, ignore_index=True).drop(columns="model"))


def _arena_hard_games(table: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Rows of one game each; the baseline is A in the first one."""
    game = numbers_or_nan(table["game"], "game")
    reject_missing(np.isnan(game), "game")
    is_first = game == game.min()
    own, model = table["baseline"].astype(object), table["model"].astype(object)
    own = own if baseline is None else own.fillna(baseline)
    sides = {"model_a": own.where(is_first, model), "model_b": model.where(is_first, own)}
    rest = table.rename(columns={"uid": "question_id", "score": "winner"}).drop(columns=["model", "baseline"])
    return _with_judge(rest.assign(**sides, game=np.where(is_first, 1, 2)))


def _baseline(battles: pd.DataFrame, _: str | None) -> Any:
    """The baseline of Arena-Hard is A in the first game, and B in the second."""
    return battles["model_a"].astype(object).where(battles["game"] == 1, battles["model_b"].astype(object))


def _scores(row: int, games: Any) -> list[str | None]:
    """Grades of the games of a row: the baseline is A in the first game, and the model in the second."""
    if not hasattr(games, "__len__") or len(games) != _GAMES:
        raise DataError(
            f"column 'games', row {row} (rows count from 0): expected the {_GAMES} games that Arena-Hard has for a "
            "pair, one in each order"
        )
    return [game.get("score") if isinstance(game, dict) else None for game in games]


def _with_judge(table: pd.DataFrame) -> pd.DataFrame:
    """The table with judges by name only; some files have the name of the prompt beside it."""
    if "judge" not in table:
        return table
    names = [str(x[0]) if hasattr(x, "__len__") and not isinstance(x, str) and len(x) else x for x in table["judge"]]
    return table.assign(judge=names)


_FORMATS = (
    PublishedFormat(
        "MT-bench's judgments of pairs",
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
        ("turn", "judge"),
        _mt_bench_pairs,
        "orders that disagree are a tie, and judgments that failed are missing",
    ),
    PublishedFormat(
        "MT-bench's scores of single answers",
        ("question_id", "model", "score", "judge", "turn"),
        (),
        _mt_bench_scores,
        f"a battle for every pair of models on a question; scores within {_MT_BENCH_TIE} are a tie, and -1 is missing",
    ),
    PublishedFormat(
        "AlpacaEval's annotations",
        ("generator_1", "generator_2", "preference"),
        ("instruction", "dataset", "annotator"),
        _alpaca_eval,
        "the target is 2 minus the preference",
        lambda battles, _: battles["model_a"],
    ),
    PublishedFormat(
        "Arena-Hard's judgments",
        ("model", "games"),
        ("uid", "question_id", "category", "judge", "baseline"),
        _arena_hard,
        "two battles per row, one in each order",
        _baseline,
    ),
    PublishedFormat(
        "Arena-Hard's games",
        ("model", "baseline", "game", "score"),
        ("uid", "question_id", "category", "judge"),
        _arena_hard_games,
        "the baseline is A in the first game of a prompt, and B in the second",
        _baseline,
    ),
)
