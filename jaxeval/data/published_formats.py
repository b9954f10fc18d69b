"""Verdicts between two sides as well-known benchmarks publish them, read as battles."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from itertools import combinations
from typing import Any

import numpy as np

from jaxeval.data.answer_formats import APPLICATIONS
from jaxeval.data.battle_rows import by_difference
from jaxeval.data.columns import first_place, folded, reject_missing
from jaxeval.data.formats import Format, Shape, Source
from jaxeval.data.harness_formats import ANSWERS
from jaxeval.data.labels import SPOKEN, spoken_label
from jaxeval.data.numbers import numbers_or_nan, reject_values
from jaxeval.data.roles import has_usual_sides, voter_columns
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, named


@cache
def formats() -> dict[str, Format]:
    """Return published formats of judgments by name, in the order in which a file is compared with them.

    Other packages add formats by entry points of the group ``jaxeval.formats``, each a `Format`. They come after those
    of jaxeval, whose names they cannot take. One that cannot be loaded is left out, with a warning.

    Examples:
        >>> import jaxeval
        >>> list(jaxeval.formats())[:2]
        ["MT-bench's judgments of pairs", "MT-bench's scores of single answers"]
    """
    every = {form.name: form for form in (*PAIRS, *ANSWERS, *APPLICATIONS)}
    for entry in entry_points(group="jaxeval.formats"):
        try:
            form = entry.load()
        except Exception as error:  # whatever another package does when it is imported
            warnings.warn(f"the format {entry.name} of {entry.value} cannot be imported: {error}", stacklevel=2)
            continue
        if isinstance(form, Format):
            every.setdefault(form.name, form)
        else:
            warnings.warn(f"{entry.name} of {entry.value} must be a jaxeval.Format, got {form!r}", stacklevel=2)
    return every


def format_of_names(
    names: Sequence[str],
    *shapes: Shape,
    is_document: bool = False,
    rows: Callable[[], pd.DataFrame | None] = lambda: None,
) -> Format | None:
    """Return the first format of a shape that a file of these columns, or a JSON object of these keys, has.

    Where no name tells it, the first ``rows`` may.
    """
    if has_usual_sides(names):
        shapes = tuple(shape for shape in shapes if shape != "pair")  # it is a table of battles
    every = [form for form in formats().values() if form.is_document == is_document]
    known = [form for shape in shapes for form in every if form.shape == shape]
    chosen = next((form for form in known if form.seen(names)), None)
    told_by_rows = [(form, form.fits) for form in known if form.fits is not None]
    if chosen is not None or not told_by_rows or (first := rows()) is None:
        return chosen
    return next((form for form, fits in told_by_rows if fits(first)), None)


def source_format(source: Source, *shapes: Shape) -> Format | None:
    """Return the first format of one of the shapes that a file is in."""
    return format_of_names(source.names, *shapes, is_document=source.document is not None, rows=source.first_rows)


#: Scores that differ by no more are ties, as in FastChat, the home of MT-bench.
_MT_BENCH_TIE = 0.1
_MT_BENCH_WINNERS = ("model_1", "model_2", "tie")
_MT_BENCH_HINT = "judgments that failed are left out"
_GAMES = 2


def _mt_bench_pairs(source: Source) -> pd.DataFrame:
    table = source.columns(("question_id", "model_1", "model_2", "g1_winner", "g2_winner"), ("turn", "judge"))
    first, second = table["g1_winner"], table["g2_winner"]
    winner = first.where(first == second, "tie").map({"model_1": "model_a", "model_2": "model_b", "tie": "tie"})
    winner = winner.where(first.isin(_MT_BENCH_WINNERS) & second.isin(_MT_BENCH_WINNERS))
    battles = table.rename(columns={"model_1": "model_a", "model_2": "model_b"})
    return _with_judge(battles.assign(winner=winner))


def _mt_bench_failed(rows: pd.DataFrame) -> tuple[str, ...]:
    scored = "score" in rows
    failed = (
        ~(pd.to_numeric(rows["score"], errors="coerce") >= 0)
        if scored
        else ~rows[["g1_winner", "g2_winner"]].isin(_MT_BENCH_WINNERS).all(axis=1)
    )
    return ("--missing", "drop") if failed.any() else ()


def _mt_bench_scores(source: Source) -> pd.DataFrame:
    table = _with_judge(source.columns(("question_id", "model", "score", "judge", "turn")))
    score = numbers_or_nan(table["score"], "score")
    table = table.assign(score=np.where(score < 0, np.nan, score))
    reject_missing(table["model"].isna().to_numpy(), "model")
    same = [name for name in ("question_id", "turn", "judge") if name in table]
    twice = table.duplicated([*same, "model"])
    if twice.any():
        raise DataError(
            f"{counted(int(twice.sum()), 'row scores', 'rows score')} a model again for the same {', '.join(same)}"
            f"{first_place(twice.to_numpy())}: keep one row of each"
        )
    pairs = table.merge(table[[*same, "model", "score"]], on=same, suffixes=("", "_b"))
    pairs = pairs[pairs["model"] < pairs["model_b"]].rename(columns={"model": "model_a"})
    one, two = pairs["score"].to_numpy(), pairs["score_b"].to_numpy()
    target = np.where(np.isnan(one) | np.isnan(two), np.nan, by_difference(one, two, _MT_BENCH_TIE))
    pairs = pairs.assign(target=target)
    return pairs.drop(columns=["score", "score_b"])


def _alpaca_eval(source: Source) -> pd.DataFrame:
    beside = ("instruction", "dataset", "annotator")
    table = source.columns(("generator_1", "generator_2", "preference"), beside)
    preference = numbers_or_nan(table["preference"], "preference")
    preference = np.where(preference == 0, 1.5, preference)  # a draw of earlier versions
    outside = ~(np.isnan(preference) | ((preference >= 1) & (preference <= 2)))
    reject_values(preference, outside, "preference", "AlpacaEval's preferences must lie in [1, 2], or be 0 for a draw")
    names = {"generator_1": "model_a", "generator_2": "model_b", "instruction": "item", "annotator": "judge"}
    return table.assign(target=2 - preference).rename(columns=names).drop(columns="preference")


def _arena_hard(source: Source) -> pd.DataFrame:
    baseline = source.baseline
    table = source.columns(("model", "games"), ("uid", "question_id", "category", "judge", "baseline"))
    if "baseline" not in table and baseline is None:
        raise DataError(
            "the file does not name the baseline of Arena-Hard: name it with baseline= (--baseline), such as "
            "baseline='gpt-4-0314'"
        )
    first = table["baseline"] if "baseline" in table else pd.Series(baseline, table.index)
    first = first if baseline is None else first.fillna(baseline)
    games = [_scores(row, games) for row, games in enumerate(table["games"])]
    rest = table.drop(columns=["games", "baseline"], errors="ignore").rename(columns={"uid": "question_id"})
    both = []
    for game in range(max(map(len, games))):
        sides = (first, rest["model"]) if game == 0 else (rest["model"], first)
        held = np.array([len(scores) > game for scores in games])
        scores = [scores[game] if len(scores) > game else None for scores in games]
        both.append(rest.assign(model_a=sides[0], model_b=sides[1], winner=scores, game=game + 1)[held])
    return _with_judge(pd.concat(both, ignore_index=True).drop(columns="model"))


def _arena_hard_games(source: Source) -> pd.DataFrame:
    """Read rows of one game each; the baseline is A in the first one."""
    beside = ("uid", "question_id", "category", "judge")
    table = source.columns(("model", "baseline", "game", "score"), beside)
    game = numbers_or_nan(table["game"], "game")
    reject_missing(np.isnan(game), "game")
    is_first = game == game.min()
    met, model = table["baseline"].astype(object), table["model"].astype(object)
    met = met if source.baseline is None else met.fillna(source.baseline)
    sides = {"model_a": met.where(is_first, model), "model_b": model.where(is_first, met)}
    rest = table.rename(columns={"uid": "question_id", "score": "winner"}).drop(columns=["model", "baseline"])
    return _with_judge(rest.assign(**sides, game=np.where(is_first, 1, 2)))


def _comparia(source: Source) -> pd.DataFrame:
    """Read rows of a vote each: the name of the chosen model, or that both are equal."""
    sides = {"model_a_name": "model_a", "model_b_name": "model_b"}
    table = source.columns((*sides, "chosen_model_name", "both_equal")).rename(columns=sides)
    chosen, equal = table["chosen_model_name"].astype(object), numbers_or_nan(table["both_equal"], "both_equal") == 1
    both = equal & chosen.notna().to_numpy()
    if both.any():
        raise DataError(
            f"{counted(int(both.sum()), 'row has', 'rows have')} a chosen_model_name though both_equal is true"
            f"{first_place(both)}: leave one of them empty"
        )
    for side in ("model_a", "model_b"):
        chosen = chosen.mask(chosen == table[side], side)
    return table.assign(winner=chosen.mask(equal, "tie")).drop(columns=["chosen_model_name", "both_equal"])


def _comparia_choices(rows: pd.DataFrame) -> tuple[str, ...]:
    return ("--missing", "drop") if (rows["chosen_model_name"].isna() & (rows["both_equal"] != 1)).any() else ()


def _wild_bench(source: Source) -> pd.DataFrame:
    """Read rows of two models, in the keys of their outputs, and the name of the better one."""
    table = source.columns(("session_id", "model_outputs", "winner"))
    sides = [[name for name, text in outputs.items() if text is not None] for outputs in table["model_outputs"]]
    odd = np.array([len(names) != 2 for names in sides])
    if odd.any():
        raise DataError(f"column 'model_outputs' must hold the answers of two models{first_place(odd)}")
    first, second = (pd.Series([names[k] for names in sides], table.index) for k in (0, 1))
    return (
        table.rename(columns={"session_id": "item"}).drop(columns="model_outputs").assign(model_a=first, model_b=second)
    )


def _panda_lm(source: Source) -> pd.DataFrame:
    """Read rows of the labels of three people: 1, 2, or 0 for a tie, of two models in one name."""
    people = ("annotator1", "annotator2", "annotator3")
    table = source.columns(("cmp_key", *people), ("idx",)).rename(columns={"idx": "item"})
    sides = table["cmp_key"].astype(str).str.split("_", expand=True)
    if sides.shape[1] != 2:
        raise DataError("column 'cmp_key' must hold the names of two models with one _ between them")
    table = table.assign(model_a=sides[0], model_b=sides[1])
    long = table.melt([name for name in table if name not in people], list(people), "judge", "winner")
    words = {1: "model_a", 2: "model_b", 0: "tie"}
    return long.assign(winner=pd.Series(numbers_or_nan(long["winner"], "annotators")).map(words)).drop(
        columns="cmp_key"
    )


def _nectar(source: Source) -> pd.DataFrame:
    """Read rows of a prompt and its ranked answers, each pair of which is a battle; the smaller rank wins."""
    every = source.columns(("answers",))["answers"]
    try:
        rows = [
            (prompt, a["model"], b["model"], np.sign(b["rank"] - a["rank"]) / 2 + 0.5)
            for prompt, answers in enumerate(every)
            for a, b in combinations(answers, 2)
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"an answer is no object with a model and a rank ({error}): expected Nectar's") from error
    return pd.DataFrame(rows, columns=["item", "model_a", "model_b", "target"])


def _baseline(battles: pd.DataFrame) -> pd.Series:
    """Return the baseline of Arena-Hard: A in the first game, and B in the second."""
    return battles["model_a"].astype(object).where(battles["game"] == 1, battles["model_b"].astype(object))


def _scores(row: int, games: Any) -> list[str | None]:
    """Return grades of the games of a row: the baseline is A in the first game, and the model in the second."""
    if not hasattr(games, "__len__") or not 1 <= len(games) <= _GAMES:
        raise DataError(
            f"column 'games', row {row} (rows count from 0): expected the {_GAMES} games that Arena-Hard has for a "
            "pair, one in each order, or the one of WildVision"
        )
    return [game.get("score") if isinstance(game, dict) else None for game in games]


def _with_judge(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with judges by name only; some files have the name of the prompt beside it."""
    if "judge" not in table:
        return table
    names = [str(x[0]) if hasattr(x, "__len__") and not isinstance(x, str) and len(x) else x for x in table["judge"]]
    return table.assign(judge=names)


#: Votes as forms write them: a row for each person, and a column for each question between two models.
_BETWEEN = re.compile(r"\s+(?:vs\.?|versus|or|od(?:\.|er)|gegen|contra)\s+", re.IGNORECASE)
_BEFORE, _BEHIND = r"[:,?!]\s+|\s[-\u2013\u2014]\s", r"[?:,;(]|\s[-\u2013\u2014]\s"
_MOST_WORDS, _LONGEST = 3, 60  # words and letters of a model's name
_ANSWERS = {"yes", "no", "true", "false", "agree", "disagree", "male", "female"}
_FEWEST = 3  # questions whose answers alone name the models
_PEOPLE = ("email", "emailaddress", "username", "participant", "respondent", "name")


def pair_columns(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Find questions between two models: the two by the name of the question's column; none where that is not sure.

    The name of a column says them (alpha vs beta; Which is better, alpha or beta?), or its answers are the names of
    models, of which each is in several questions.
    """
    answers = {name: _answers(frame[name]) for name in map(str, frame)}
    texts = {name: values for name, values in answers.items() if values}
    by_header = {name: pair for name in texts if (pair := _pair_of(name)) and all(_side(x, pair) for x in texts[name])}
    if len(by_header) > 1:
        return by_header
    choices = {name: {x for x in values if x.casefold() not in SPOKEN} for name, values in texts.items()}
    pairs = {name: tuple(sorted(values)) for name, values in choices.items()
             if len(values) == 2 and not {x.casefold() for x in values} & _ANSWERS}  # fmt: skip
    times = Counter(model for pair in set(pairs.values()) for model in pair)
    pairs = {name: pair for name, pair in pairs.items() if min(times[model] for model in pair) > 1}
    return {name: (a, b) for name, (a, b) in pairs.items()} if len({*pairs.values()}) >= _FEWEST else {}


def blind_questions(frame: pd.DataFrame) -> list[str]:
    """Find columns of answers A or B of several questions, which do not say whose these are."""
    sides = [name for name in map(str, frame) if (answers := _answers(frame[name])) and len(answers) > 1
             and all(x.casefold() in SPOKEN for x in answers)]  # fmt: skip
    return sides if len(sides) >= _FEWEST else []


def about_questions(names: list[str]) -> str:
    """Say what to do about `blind_questions`."""
    return (
        f"{named([repr(name) for name in names], 3)} hold answers such as A and B, and nothing says which models these "
        "are: call each of these columns 'MODEL vs MODEL', A first, as in 'model-1 vs model-2'"
    )


def _answers(column: pd.Series) -> set[str]:
    """Return the few short texts that a column holds; none where it holds anything else."""
    values = column.dropna()
    if not len(values) or not all(isinstance(value, str) and len(value) <= _LONGEST for value in values):
        return set()
    texts = {value.strip() for value in values} - {""}
    return texts if len(texts) <= 6 else set()


def _pair_of(name: str) -> tuple[str, str] | None:
    """Return the two models that the name of a column says; of a grid it stands in brackets."""
    inside = [text for text in re.findall(r"\[(.+?)\]", name) if _BETWEEN.search(text)]
    parts = _BETWEEN.split(inside[-1] if inside else name)
    if len(parts) != 2:
        return None
    first, second = re.split(_BEFORE, parts[0])[-1].strip(), re.split(_BEHIND, parts[1])[0].strip(" .")
    fit = all(0 < len(model.split()) <= _MOST_WORDS for model in (first, second))
    return (first, second) if fit and first.casefold() != second.casefold() else None


def _side(answer: str, pair: tuple[str, str]) -> str | None:
    """Say who won, in standard labels; None for an answer that says nothing of it."""
    names = [x.casefold() for x in pair]
    if answer.casefold() in names:
        return ("model_a", "model_b")[names.index(answer.casefold())]
    return spoken_label(answer)


def _form(source: Source) -> pd.DataFrame:
    """Read a row for each person and question."""
    frame = source.columns()
    pairs = pair_columns(frame)
    if not pairs:
        raise DataError("the first rows are answers to questions between two models, and later ones are not")
    if not voter_columns(list(frame)):
        person = next((name for name in frame if folded(name) in _PEOPLE and frame[name].is_unique), None)
        frame = frame.assign(voter=range(len(frame)) if person is None else frame[person])
    rest = [name for name in frame if name not in pairs]
    long = frame.melt(rest, list(pairs), "item", "winner")
    winners = [None if not isinstance(x, str) or not x.strip() else _side(x.strip(), pairs[name])
            for name, x in zip(long["item"], long["winner"], strict=True)]  # fmt: skip
    sides = [pd.Series([pairs[name][k] for name in long["item"]], long.index) for k in (0, 1)]
    return long.assign(winner=pd.Series(winners, long.index, dtype=object), model_a=sides[0], model_b=sides[1])


#: The published formats of battles.
PAIRS = (
    Format("MT-bench's judgments of pairs", ("question_id", "model_1", "model_2", "g1_winner", "g2_winner"),
           _mt_bench_pairs, about="orders that disagree are a tie, and judgments that failed are missing",
           hint=_MT_BENCH_HINT, asks=_mt_bench_failed),
    Format("MT-bench's scores of single answers", ("question_id", "model", "score", "judge", "turn"), _mt_bench_scores,
           about=f"a battle for every pair of models on a question; scores within {_MT_BENCH_TIE} are a tie, and -1 is "
           "missing", hint=_MT_BENCH_HINT, asks=_mt_bench_failed),
    Format("AlpacaEval's annotations", ("generator_1", "generator_2", "preference"), _alpaca_eval,
           about="the target is 2 minus the preference", reference=lambda battles: battles["model_a"],
           hint="annotations without a preference are left out",
           asks=lambda rows: ("--missing", "drop") if rows["preference"].isna().any() else ()),
    Format("Arena-Hard's judgments", ("model", "games"), _arena_hard, reference=_baseline,
           about="two battles per row, one in each order",
           hint="BASELINE is the model that all others were compared with, which the file does not name",
           asks=lambda rows: () if "baseline" in rows else ("--baseline", "BASELINE")),
    Format("WildBench's judgments of pairs", ("session_id", "model_outputs", "winner"), _wild_bench,
           about="how much better an answer is does not count"),
    Format("PandaLM's labels", ("cmp_key", "annotator1", "annotator2", "annotator3"), _panda_lm,
           about="each of three people is a judge"),
    Format("ComparIA's votes", ("model_a_name", "model_b_name", "chosen_model_name", "both_equal"), _comparia,
           about="models that are equal are a tie, and votes for neither are missing",
           hint="votes for neither are left out", asks=_comparia_choices),
    Format("Arena-Hard's games", ("model", "baseline", "game", "score"), _arena_hard_games, reference=_baseline,
           about="the baseline is A in the first game of a prompt, and B in the second"),
    Format("Nectar's rankings", ("prompt", "answers", "good_natured"), _nectar, asks=lambda rows: ("--cluster", "item"),
           about="every pair of answers to a prompt is a battle", hint="battles of a prompt are drawn together"),
    Format("a form with a column for each question between two models", (), _form, fits=pair_columns,
           about="'voter' is the person, 'item' the question", asks=lambda rows: ("--cluster", "voter")),
)  # fmt: skip
