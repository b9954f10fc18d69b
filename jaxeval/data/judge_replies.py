"""What a judge printed in one call: a verdict in words, scores by criterion, or a grade; JSON, fenced or not, or text.

A reply is data: nothing in it is run. A reply that can be read in two ways is not read; `Reply.wrong` says why.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from contextlib import suppress
from functools import lru_cache
from math import isfinite, nan
from typing import Any, NamedTuple

from jaxeval.data.columns import folded
from jaxeval.data.labels import unspaced

#: The most characters of a reply: models stop far earlier, so longer text is not a reply.
MOST_CHARACTERS = 1_000_000
#: Keys of a verdict in JSON, in folded spelling. A number under one of them counts only if none has words.
_VERDICT = (
    "verdict", "finalverdict", "prediction", "preference", "overallpreference", "winner", "choice", "decision",
    "better", "judgment", "judgement", "correct", "label", "result", "score", "rating", "grade", "answer",
)  # fmt: skip
_STEMS = ("scores", "score", "", "completion", "response", "answer", "assistant", "model", "output")
_NUMBER_OF_CRITERION = ("score", "rating", "value")
#: Keys of a list of sides, the best one first.
_RANKING = ("ranking", "rankings", "rank", "ranks", "order")
#: Keys of numbers that are no scores, in folded spelling.
_NO_SCORES = ("confidence", "item", "id", "run", "seed", "tokens", "time", "length", "turn", "model", "version")
_OBJECT = re.compile(r"\{\s*(?:[\"“”„]|\})")
_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,60})\]\]")
#: A line that names the verdict and ends after it.
_NAMED = re.compile(
    r"(?:\W*(?:my|the|final|overall|verdict|winner|preference|preferred|choice|decision|prediction|rating|score|grade|"
    r"judge?ment|answer|response|output|completion|correct|better|best|is)\b)+\W*:\s*(.{1,60})$",
    re.IGNORECASE,
)
#: A line of its own that grades an answer, and one that states confidence, as in the prompt of arXiv:2501.14249.
_GRADED = re.compile(
    r"^\W*(?:correct|prediction|verdict|judge?ment)\W*:\W*(\w[\w ]{0,30}?)\W*$", re.IGNORECASE | re.MULTILINE
)
_SURE = re.compile(r"^\W*confidence\W*:\W*(\d+(?:\.\d+)?\s*%?)\W*$", re.IGNORECASE | re.MULTILINE)
#: A line of two scores, of the side shown first and of the other.
_TWO_SCORES = re.compile(
    r"^[\s*_]*(\d+(?:\.\d+)?)(?:\s*/\s*(10|100|5))?(?:\s*[,;]\s*|\s+)(\d+(?:\.\d+)?)(?:\s*/\s*(10|100|5))?\W*$"
)
# A comma before the end of a list or an object is one too many; text within quotes stays.
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])', re.DOTALL)
_STRAIGHT = str.maketrans("“”„", '"""')
_LONGEST_WORD = 60
_N_SIDES = 2
#: A criterion's name with the side after it.
_OF_SIDE = re.compile(r"^(.*\w)[\s_-]+(a|b)$", re.IGNORECASE)
#: Where a model's reasoning begins and ends.
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
EMPTY = "empty"
#: Why a reply with two answers cannot be read.
SEVERAL = "several answers that differ"
_SAYS_NOTHING = "JSON without a verdict or scores"

Criteria = dict[str, float]


class Reply(NamedTuple):
    """What one reply says."""

    word: str = ""  # the verdict, or the grade, as it was printed
    confidence: float = nan  # as it was printed
    in_percent: bool = False  # whether a sign of per cent stood behind the confidence
    scores: tuple[Criteria, Criteria] | None = None  # of the sides shown first and second
    wrong: str = ""  # why it cannot be read; empty if it can
    repaired: bool = False  # commas before a closing bracket, or typographic quotes, were mended
    second: str = ""  # a verdict in brackets besides the one in JSON
    reasoned: bool = False  # the model's reasoning stood before the answer, and was cut
    unused: tuple[str, ...] = ()  # keys of numbers that look like scores, and are not read


class _OddReply(Exception):  # noqa: N818
    """A reply says something that cannot be what was meant."""


def read_reply(value: Any) -> Reply:
    """Return what a reply says; it is text, or an object of JSON."""
    try:
        if isinstance(value, dict):
            return _of_object(value) or Reply(wrong=_SAYS_NOTHING)
        if value is None or (isinstance(value, float) and value != value) or not str(value).strip():
            return Reply(wrong=EMPTY)
        text = str(value).strip()
        if len(text) > MOST_CHARACTERS:
            return Reply(wrong=f"longer than {MOST_CHARACTERS:,} characters")
        answer = _without_reasoning(text)
        if answer == text:
            return _of_text(text)
        return (_of_text(answer) if answer else Reply(wrong="reasoning without an answer"))._replace(reasoned=True)
    except _OddReply as odd:
        return Reply(wrong=str(odd))


def _without_reasoning(text: str) -> str:
    """Give a reply without its blocks of reasoning; text before a closing tag without an opening one is reasoning, too.

    Tags within JSON are text of the answer. If a reply begins with reasoning that has no end, all of it is reasoning.
    """
    if text.startswith(("{", "```")):
        return text
    kept, at, begun = list[str](), 0, -1
    for tag in _THINKING.finditer(text):
        if tag[1]:
            kept = kept if begun >= 0 else []
            at, begun = tag.end(), -1
        elif begun < 0:
            kept.append(text[at : tag.start()])
            at = begun = tag.start()
    unfinished = begun >= 0 and not "".join(kept).strip()
    return "".join(kept if unfinished else [*kept, text[at:]]).strip()


def _of_text(text: str) -> Reply:
    reply, broken, beside = _of_json(text) if "{" in text else (None, "", text)
    words = {unspaced(word.strip().casefold()): word.strip() for word in _BRACKETS.findall(beside)}
    if len(words) > 1:
        raise _OddReply("several verdicts in brackets")
    word = next(iter(words.values()), "")
    if reply is not None:
        return reply._replace(second=word) if reply.word else reply._replace(word=word)
    if words:
        return Reply(word=word)
    ranked = _of_ranks(text)
    if ranked is not None:
        return ranked
    if broken:
        raise _OddReply(broken)
    lines = [line for line in text.splitlines() if line.strip()]
    for line in dict.fromkeys((lines[0], lines[-1])):
        scored = _TWO_SCORES.match(line)
        if scored and scored[2] == scored[4]:
            return Reply(scores=({"score": float(scored[1])}, {"score": float(scored[3])}))
    last = lines[-1].strip().strip("*_`\"'. ")
    named = _NAMED.match(last) if len(last) <= 2 * _LONGEST_WORD else None
    word = (named[1] if named else last).strip("*_`\"'. ")
    graded = {unspaced(grade.casefold()): grade for grade in _GRADED.findall(text)}
    if graded and named is None:
        if len(graded) > 1:
            raise _OddReply(SEVERAL)
        stated = _SURE.findall(text)
        return Reply(next(iter(graded.values())), *_confidence(stated[-1] if stated else None))
    if len(word) > _LONGEST_WORD:
        raise _OddReply("prose without a verdict")
    return Reply(word=word)


def _of_ranks(text: str) -> Reply | None:
    """Give what a list of sides with their ranks says, as the prompts of AlpacaEval ask for it; None for other text."""
    if not (text.startswith("[") and text.endswith("]") and "rank" in text):
        return None
    for read in (json.loads, literal_eval):
        rows = None
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            rows = read(text)
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            ranks = {str(row.get("model", row.get("name", row.get("id", "")))): row.get("rank") for row in rows}
            return Reply(word=_best(ranks)) if len(ranks) == len(rows) else None
    return None


def _best(ranks: dict[Any, Any]) -> str:
    """Return the side with the first rank, or a tie."""
    side = {"1": "A", "2": "B"}
    if len(ranks) != _N_SIDES or any(
        isinstance(rank, bool) or not isinstance(rank, int | float) for rank in ranks.values()
    ):
        raise _OddReply("a ranking of other than two sides")
    (one, first), (other, second) = ranks.items()
    if first == second:
        return "tie"
    name = str(one if first < second else other)
    return side.get(name[-1:], name)


def _of_json(text: str) -> tuple[Reply | None, str, str]:
    """Return what the objects in ``text`` say, or None; why one of them cannot be read; and the text around them.

    If the objects say nothing, that text is all of ``text``.
    """
    replies, beside, last, whole = list[Reply](), list[str](), 0, text
    at = _OBJECT.search(text)
    while at is not None:
        parsed = _object(text, at.start())
        if isinstance(parsed, str):
            return None, parsed, whole
        value, end, mended = parsed
        beside.append(text[last : at.start()])
        answer = _of_object(value)
        if answer is not None:
            replies.append(answer if mended is None else answer._replace(repaired=True))
        text, last = text if mended is None else mended, end
        at = _OBJECT.search(text, end)
    if len(replies) > 1 and len({repr(reply._replace(repaired=False)) for reply in replies}) > 1:
        raise _OddReply(SEVERAL)
    return (replies[0], "", "\n".join([*beside, text[last:]])) if replies else (None, _SAYS_NOTHING, whole)


def _object(text: str, start: int) -> tuple[Any, int, str | None] | str:
    """Return the object at ``start``, where it ends, and the text from there if it was mended; or why it is unread."""
    try:
        return *_DECODER.raw_decode(text, start), None
    except RecursionError:
        return "lists and objects nested too deep to read"
    except ValueError as error:
        reason = f"JSON that cannot be read ({str(error).split(':')[0]})"
    for rest in (text[start:], text[start:].translate(_STRAIGHT)):
        mended = _TRAILING_COMMA.sub(lambda match: match[1] or "", rest)
        with suppress(ValueError, RecursionError):
            return *_DECODER.raw_decode(mended), mended
    return reason


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _OddReply("JSON that names a key twice")
    return entries


def _no_number(name: str) -> Any:
    raise _OddReply(f"JSON that holds {name}, which is no number")


# Judges break lines within quotes: not strict.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number, strict=False)


def _of_object(value: dict[Any, Any]) -> Reply | None:
    """Return what an object says; None if it has no known key."""
    there = _there(value)
    scores, used = _scores(there), set[str]()
    if scores is not None:
        used = {f"{stem}{side}" for stem in _STEMS for side in "ab"}
    elif isinstance(there.get("scores"), dict):
        scores, used = _scores(_there(there["scores"])), {"scores"}
        if scores is None:
            scores, _ = _by_criterion(there["scores"])
    if scores is None:
        scores, used = _by_criterion(value)
    verdicts = [there[key] for key in _VERDICT if key in there and isinstance(there[key], str | int | float)]
    words = {word.strip().casefold(): word.strip() for word in verdicts if isinstance(word, str) and word.strip()}
    if len(words) > 1:
        raise _OddReply("JSON with several verdicts that differ")
    word = next(iter(words.values()), "") or next(
        (str(number) for number in verdicts if not isinstance(number, str)), ""
    )
    if not word:
        word = next((_ranked(there[key]) for key in _RANKING if isinstance(there.get(key), list | dict)), "")
    if not word and scores is None:
        return None
    of_verdict = {*_VERDICT, *_RANKING} if not words or scores is not None else {*_RANKING}
    names = [(str(name)[:_LONGEST_WORD], entry) for name, entry in value.items()]
    unused = tuple(name for name, entry in names if folded(name) not in used | of_verdict and _is_score(name, entry))
    return Reply(word[: 2 * _LONGEST_WORD], *_confidence(there.get("confidence")), scores, unused=unused)


def _ranked(value: list[Any] | dict[str, Any]) -> str:
    """Return the first side of a list of sides, or the side with the first rank."""
    if isinstance(value, dict):
        return _best(value)
    if value and all(isinstance(entry, str) for entry in value):
        return str(value[0])
    return ""


def _is_score(name: Any, entry: Any) -> bool:
    """Return whether an entry of an object looks like a score: a number, or numbers by name."""
    if isinstance(entry, dict):
        return any(_is_score(key, value) for key, value in entry.items())
    key = folded(str(name)[:_LONGEST_WORD])
    return type(entry) in (int, float) and not any(word in key for word in _NO_SCORES)


def _by_criterion(value: dict[Any, Any]) -> tuple[tuple[Criteria, Criteria] | None, set[str]]:
    """Return both sides' scores by criterion: {"clarity": {"A": 8, "B": 6}} or {"clarity_A": 8, "clarity_B": 6}.

    Also the folded keys that hold them.
    """
    sides: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    used = set[str]()
    for name, entry in value.items():
        name = str(name)[:_LONGEST_WORD]
        criterion = isinstance(entry, dict) and folded(name) not in _RANKING
        by_side = {_side_of(key): score for key, score in entry.items()} if criterion else {}
        if by_side.keys() == {"a", "b"} and len(by_side) == len(entry):
            used.add(folded(name))
            for side, letter in zip(sides, "ab", strict=True):
                side[name] = by_side[letter]
        ending = _OF_SIDE.match(name)
        if ending and type(entry) in (int, float):
            used.add(folded(name))
            sides["ab".index(ending[2].casefold())][ending[1]] = entry
    if not used:
        return None, used
    if {spelled(name) for name in sides[0]} != {spelled(name) for name in sides[1]}:
        raise _OddReply("scores of one side only")
    return (_criteria(sides[0]), _criteria(sides[1])), used


def _side_of(key: Any) -> str:
    """Return "a" or "b" for a key that names a side, and "?" with the key for another one."""
    name = folded(str(key)[:_LONGEST_WORD])
    return name[-1:] if name[-1:] in ("a", "b") and name[:-1] in _STEMS else f"?{name}"


def _there(value: dict[Any, Any]) -> dict[str, Any]:
    """Return an object's entries by folded keys, without the None that Arrow writes for keys of other objects only."""
    return {folded(str(key)[:_LONGEST_WORD]): entry for key, entry in value.items() if entry is not None}


def _scores(there: dict[str, Any]) -> tuple[Criteria, Criteria] | None:
    """Return the scores of both sides, where there are keys for them."""
    for stem in _STEMS:
        stated = [there.get(f"{stem}{side}") for side in "ab"]
        # Text under other keys is what the judge writes about the answers.
        sides = [
            _criteria(side) for side in stated if not (side is None or (isinstance(side, str) and stem != "score"))
        ]
        if len(sides) == 1:
            raise _OddReply("scores of one side only")
        if sides:
            return sides[0], sides[1]
    return None


def _criteria(value: Any) -> Criteria:
    """Return numbers by criterion; a single number belongs to the criterion "score"."""
    if not isinstance(value, dict):
        return {"score": _number(value, "score")}
    scores = {spelled(str(name)[:_LONGEST_WORD]): _number(score, str(name)) for name, score in value.items()
             if score is not None}  # fmt: skip
    if len(scores) < len(value) - list(value.values()).count(None):
        raise _OddReply("JSON that names a criterion twice")
    if not scores:
        raise _OddReply("scores without a criterion")
    return scores


@lru_cache(maxsize=4096)
def spelled(name: str) -> str:
    """Return a criterion's name without the case and the blanks that judges give it."""
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def _number(value: Any, name: str) -> float:
    if type(value) is int and abs(value) <= MOST_CHARACTERS:
        return float(value)
    if isinstance(value, dict):
        value = next((value[key] for key in _NUMBER_OF_CRITERION if key in value), None)
    try:
        number = nan if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        number = nan
    if not isfinite(number):
        raise _OddReply(f"criterion {name[:_LONGEST_WORD]!r} has no number")
    return number


def _confidence(value: Any) -> tuple[float, bool]:
    """Return a stated confidence, given as a number or as text; and whether a sign of per cent follows it."""
    if value is None:
        return nan, False
    text = str(value).strip()
    try:
        number = nan if isinstance(value, bool) else float(text.removesuffix("%"))
    except (ValueError, OverflowError):
        number = nan
    if not isfinite(number):
        raise _OddReply("a confidence that is no number")
    return number, text.endswith("%")
