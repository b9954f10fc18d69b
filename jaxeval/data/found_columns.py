"""What the columns of a table are, by their names and values: battles, verdicts of a panel, rankings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype, is_numeric_dtype

from jaxeval.data.battles import Battles
from jaxeval.data.columns import folded, renames
from jaxeval.data.formats import HEAD_ROWS
from jaxeval.data.labels import ONE_TWO_LABELS, RIGHT_OR_WRONG, SIGNED_LABELS, spoken_label
from jaxeval.data.published_formats import blind_questions
from jaxeval.data.ranking_places import BEST_AND_WORST, lists_in_columns
from jaxeval.data.rankings import Rankings
from jaxeval.data.roles import (
    COUNT_COLUMNS,
    COUNTED,
    ONE_HOT_COLUMNS,
    ONE_PERSON,
    RESULTS,
    ROLES,
    TOGETHER,
    USUAL_SIDES,
    WIN_COLUMNS,
    are_points,
    columns_of,
    guessed_column,
    guessed_columns,
    has_usual_sides,
    is_plain,
    n_values,
    usual_column,
)
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import MARKS, named, words_of

_LONGEST = 60  # letters of a name
_SENTENCE = re.compile(r"[.!?]\s*$|(?:\S+\s+){4}\S")  # what somebody wrote: it ends like one, or has five words
_PEOPLE = ("human", "expert", "person", "rater", "annotator", "worker", "labeller", "labeler", "author", "reviewer")
#: Judges that a panel may have.
MOST_JUDGES = 20
_FEW = 0.2  # share of names that may look like sentences
#: Words in the names of columns of results; another column of two words says where or how more often than who won.
_SAYS_RESULT = re.compile(
    r"prefer|better|best|win|won|pick|cho[is]|vote|result|outcome|verdict|decision|besser|mieux|mejor"
)
_SAYS_PLACE = re.compile(r"side|arm|group|hand|order|position|shown|seat|split|server|turn|half")
_SAYS_CHANCE = re.compile(r"prob(?!e|lem)|likelihood|(?<!micro)soft(?!ware)")
_OF_TIES = {"tie", "ties", "draw", "draws", "both"}
_OF_OTHERS = {"b", "2", "second", "right", "loss", "losses", "lose", "loses"}
_SAYS_OTHER = re.compile(r"toss|predict|expect|forecast|previous|shown|serve")
_SAYS_PEOPLE = re.compile(r"rater|annotator|judge|voter|worker|reviewer|labell?er|expert|person|people|user")
_SELF_PLAY = 0.05  # share of rows in which sides may be the same; labels of two judges are the same in more
#: Columns of judges, items and the like hold no results, even where their values are letters such as L and R.
_NAMES = {folded(name) for role in ROLES.values() if role.kind == "name" for name in role.names}
_MOST_LABELS = 4  # of a column of results
_MOST_GRADES = 11  # of one that is called so
#: Pairs of columns that may name the models of both sides, those with the usual names first.
SidePairs = Sequence[tuple[str, str]]


def sides_of(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Find pairs of columns that may name the models of both sides, those with the usual names first."""
    if has_usual_sides(frame):
        a, b = map(str, columns_of(frame, USUAL_SIDES))
        return [(a, b)]
    if lacks_header(frame):
        return []
    names = [name for name in map(str, frame) if not _SAYS_PEOPLE.search(name.casefold())]
    pairs = [(x, y) for x in names for y in names
             if differs(x, y) and alike(frame, x, y) and not _goes_on(names, x)]  # fmt: skip
    return sorted(pairs, key=lambda pair: is_numeric_dtype(frame[pair[0]])) or _sides_by_values(frame)


def _goes_on(names: Sequence[str], x: str) -> bool:
    """Return whether a third one follows a column and the other side: item_1 to item_4 are no two sides."""
    return any(differ(x, z, "1", "3") or differ(x, z, "a", "c") or differ(x, z, "first", "third") for z in names)


def lacks_header(frame: pd.DataFrame) -> bool:
    """Return whether two columns hold names of the same things, and are called by two of them: the header is a vote."""
    values = {name: set(frame[name].dropna()) for name in map(str, frame) if _holds_names(frame[name])}
    pairs = [(x, y) for x, y in combinations(values, 2) if values[x] & values[y]]
    return any({x, y} <= values[x] | values[y] for x, y in pairs)


def _sides_by_values(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Find the one pair of columns of text most of whose values are in both, whatever they are called."""
    texts = [
        name for name in map(str, frame) if not _SAYS_PEOPLE.search(name.casefold()) and not is_binary(frame[name])
    ]
    names = [name for name in texts if _holds_names(frame[name])]
    values = {name: set(frame[name].dropna()) for name in names}
    pairs = []
    for x, y in combinations(names, 2):
        shared, most = len(values[x] & values[y]), max(len(values[x]), len(values[y]))
        # Most values of each are in the other, and the same one hardly ever in both of a row.
        if shared >= 2 and 2 * shared >= most and not (frame[x] == frame[y]).mean() > _SELF_PLAY:
            pairs.append((x, y))
    return pairs if len(pairs) == 1 else []


def _holds_names(column: pd.Series) -> bool:
    """Return whether the values are short texts, most of which come again, and few are sentences."""
    values = column.dropna().tolist()
    if not values or not all(isinstance(value, str) for value in values):
        return False
    times = Counter(values)
    if len(times) > max(len(values) * 2 // 3, 2) or max(map(len, times)) > _LONGEST:
        return False
    return sum(n for text, n in times.items() if _SENTENCE.search(text)) <= _FEW * len(values)


def differ(x: str, y: str, one: str, other: str) -> bool:
    """Return whether ``y`` is ``x`` with one mark in place of the other: home_team and away_team, a and b."""
    words, others = words_of(x), words_of(y)
    changed = [(first, second) for first, second in zip(words, others, strict=False) if first != second]
    return len(words) == len(others) and changed == [(one, other)]


def alike(frame: pd.DataFrame, x: str, y: str) -> bool:
    """Return whether two columns hold names of the same things, and no measurements."""
    first, second = frame[x], frame[y]
    if are_points(x) or any(word in folded(x) for word in ("length", "token", "elo")):
        return False
    texts = any(word in folded(x) for word in ("response", "answer", "conversation", "prompt", "output", "completion",
                                                "chosen", "rejected"))  # fmt: skip
    if texts and not (_holds_names(first) and _holds_names(second)):  # what was written, and not who wrote
        return False
    if is_binary(first) or is_binary(second):  # verdicts
        return False
    numbers = [is_numeric_dtype(column) and not is_bool_dtype(column) for column in (first, second)]
    try:
        shared = set(first.dropna()) & set(second.dropna())
    except TypeError:  # lists
        return False
    return numbers[0] == numbers[1] and len(shared) > 0 and not any(isinstance(x, float) for x in shared)


class FoundJudgments(NamedTuple):
    """A way to read the judgments of a table."""

    arguments: dict[str, Any]  # of the reader of the shape, such as `Battles.from_pandas`
    why: str  # what the columns are, in words
    hint: str = ""  # what is to be known of them, or decided
    shape: Literal["pair", "ranking", "panel"] = "pair"
    is_sure: bool = False  # whether no rows are left out, and the rows as they stand are no battles

    def options(self, *names: str) -> tuple[str, ...]:
        """Return options of commands that stand for the arguments, or for those of some ``names``."""
        chosen = {name: value for name, value in self.arguments.items() if not names or name in names}
        sides = side_options(chosen.pop("model_a", "model_a"), chosen.pop("model_b", "model_b"))
        typed = {
            name: ",".join(f"{label}={meaning}" for label, meaning in value.items()) if isinstance(value, Mapping)
            else value if isinstance(value, str) else ("," if name in ("judges", "human") else ":").join(value)
            for name, value in chosen.items()
        }  # fmt: skip
        return (*sides, *(word for name, value in typed.items() for word in (f"--{name}", value)))


def side_options(a: str, b: str) -> tuple[str, ...]:
    """Return options that name the columns of both sides; none for the usual names."""
    return () if columns_of((a, b), USUAL_SIDES) == [a, b] else ("--model-a", a, "--model-b", b)


def found(**columns: Any) -> str:
    """Return which column, or columns, hold what, in words; None is left out."""
    return ", ".join(
        f"{what.replace('_', ' ')} in {quoted([names] if isinstance(names, str) else names)}"
        for what, names in columns.items()
        if names is not None
    )


def results_of(frame: pd.DataFrame, a: str, b: str) -> Iterator[FoundJudgments]:
    """Yield the ways to read results between the sides ``a`` and ``b``."""
    for columns, why in _result_columns(frame, a, b) if is_plain(frame[a]) and is_plain(frame[b]) else ():
        if (reading := reading_of(frame, a, b, columns, why)) is not None:
            yield reading


def _result_columns(frame: pd.DataFrame, a: str, b: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield columns that may hold results, as arguments of `Battles.from_pandas`, and what they then are, in words."""
    rest = [name for name in map(str, frame) if name not in (a, b)]
    known = {folded(name): name for name in rest}
    for usual in ("winner", "target"):
        if usual in known:
            yield {}, f"results in {known[usual]!r}"
    if {folded(name) for name in ONE_HOT_COLUMNS} <= known.keys():
        yield {}, f"results in {quoted(ONE_HOT_COLUMNS)}"
    if {*COUNT_COLUMNS} <= {*rest, *renames(COUNT_COLUMNS, rest).values()}:
        yield {}, f"counts of results in {quoted(COUNT_COLUMNS)}"
    elif {*WIN_COLUMNS} <= {*rest, *renames(COUNT_COLUMNS, rest).values()}:
        yield {}, f"counts of results in {quoted(WIN_COLUMNS)}, and no ties"
    whole = [name for name in rest if is_integer_dtype(frame[name])]
    triple = tuple(next((name for name in whole if folded(name) in words), "") for words in COUNTED)
    if all(triple):
        yield {"counts": triple}, f"counts of results in {quoted(triple)}"
    scores = [(x, y) for x in rest for y in rest if differs(x, y)
              and is_numeric_dtype(frame[x]) and are_points(x)]  # fmt: skip
    for pair in sorted(scores, key=lambda pair: len(pair[0])):
        yield {"scores": pair}, f"scores in {quoted(pair)}: the larger wins"
    usual_first = sorted(rest, key=lambda name: RESULTS.index(folded(name)) if folded(name) in RESULTS else 99)
    for name in usual_first:
        if folded(name) not in _NAMES and n_values(frame, name) <= max(6, 2 + len({*frame[a], *frame[b]})):
            yield {"winner": name}, f"results in {name!r}"
    chances = {name: {*words_of(name)} for name in rest if _SAYS_CHANCE.search(name.casefold())
               and is_float_dtype(frame[name]) and frame[name].between(0, 1).all()}  # fmt: skip
    if any(words & _OF_TIES for words in chances.values()):
        return  # a target counts half of the ties, too
    for name in (name for name, words in chances.items() if not words & _OF_OTHERS):
        yield {"target": name}, f"how probable a win of {a!r} is in {name!r}"


def reading_of(frame: pd.DataFrame, a: str, b: str, columns: dict[str, Any], why: str = "") -> FoundJudgments | None:
    """Return how rows can be read by ``columns``, alone or with options that fill a gap; None where they cannot."""
    result = columns.get("winner")
    name = folded(str(result))
    says = _SAYS_RESULT.search(name) and not _SAYS_PLACE.search(name) and not _SAYS_OTHER.search(name)
    counts = {*COUNT_COLUMNS, *renames(COUNT_COLUMNS, list(frame))}
    says = says and result not in counts
    has_codes = not columns or name in (*RESULTS, *ROLES["score"].names) or (says and name not in ROLES["count"].also)
    for gaps in ({}, {"missing": "drop"}):
        for coding in (None, "a_wins_1", ONE_TWO_LABELS, SIGNED_LABELS) if has_codes else (None,):
            labels = {} if coding is None else {"labels": coding}
            arguments: dict[str, Any] = {"model_a": a, "model_b": b, **columns, **gaps, **labels}
            try:
                battles = Battles.from_pandas(frame, **arguments)
            except (DataError, ValueError, TypeError):
                continue
            decide = _which_is_one(a, b, coding) if coding else ""
            left_out = "rows without a model or a result are left out and counted" if gaps else ""
            unsure = [decide, left_out, *_unsure(battles, (a, b), result)]
            numbers = [str(name) for name in frame if folded(name) in ROLES["count"].also and battles.count is None
                       and is_integer_dtype(frame[name]) and (frame[name] > 1).any()
                       and frame[name].between(0, 2**53 - 1).all()]  # fmt: skip
            for name in numbers[:1]:
                arguments["count"] = name
                unsure.append(f"{name!r} is taken as the number of battles of a row: else leave out --count")
            return FoundJudgments(arguments, why, "; ".join(filter(None, unsure)))
    return None


def _is_reply(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column holds what judges printed, which no line maps to labels."""
    texts = frame[name].dropna().astype(str)
    return folded(name) in map(folded, ROLES["output"].names) or texts.str.contains("[,={]").any()


def _which_is_one(a: str, b: str, coding: Any) -> str:
    loss = "-1" if coding == SIGNED_LABELS else "2"
    other = "a_wins_0" if coding == "a_wins_1" else f"1=model_b,{loss}=model_a,0=tie"
    return f"1 is taken as a win of {a!r}: if it is one of {b!r}, say --labels {other}"


def reading_with_blanks(frame: pd.DataFrame, sides: SidePairs) -> FoundJudgments | None:
    """Say how votes between ``sides`` are read, with labels in words of the file's own, or numbers; and what to say."""
    for a, b in [] if blind_questions(frame) else sides[:1]:
        rest = [name for name in map(str, frame) if name not in (a, b)]
        roles, why = {"model_a": a, "model_b": b}, f"two sides in {quoted((a, b))}"
        counts, called = {*COUNT_COLUMNS, *renames(COUNT_COLUMNS, rest)}, {*RESULTS} - {"winner"}
        texts = [name for name in rest if name not in counts and not is_numeric_dtype(frame[name])
                 and folded(name) not in _NAMES and not _is_reply(frame, name)]  # fmt: skip
        words = [
            name for name in texts
            if not _SAYS_PLACE.search(name.casefold()) and not _SAYS_OTHER.search(name.casefold())
            and 1 < n_values(frame, name) <= (_MOST_GRADES if {folded(name)} & called else _MOST_LABELS)
        ]  # fmt: skip
        ids = guessed_columns(frame, "item")  # and no points; nor is what counts the rows
        numbers = [name for name in rest if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])
                   and folded(name) not in _NAMES and name not in ids
                   and not (frame[name].diff()[1:] == 1).all()]  # fmt: skip
        if len(words) == 1:
            values = [str(value) for value in frame[words[0]].dropna().unique()]
            if {*values} <= {*frame[a], *frame[b]}:  # a third model, of a ranking
                return None
            says = _SAYS_RESULT.search(words[0].casefold())
            if {value.casefold() for value in values} <= {"yes", "no", "true", "false"} and not says:  # of whom?
                return None
            labels = {value: spoken_label(value.strip("[] ")) or "SIDE" for value in values}  # [[A]] of MT-bench, too
            which = "SIDE" if any("SIDE" in x for pair in labels.items() for x in pair) else "each"
            return FoundJudgments({**roles, "winner": words[0], "labels": labels}, f"{why}, results in {words[0]!r}",
                                  f"say for {which}: model_a, model_b or tie")  # fmt: skip
        scales = [name for name in numbers if (folded(name) in RESULTS or "prefer" in folded(name))
                  and is_integer_dtype(frame[name]) and 2 < np.ptp(frame[name]) + 1 <= _MOST_GRADES]  # fmt: skip
        if not words and len(scales) == 1:
            return _of_scale(frame, roles, scales[0], why)
        if not words and len(numbers) == len(rest) == 2:
            return FoundJudgments({**roles, "scores": tuple(numbers)}, f"{why}, numbers of each in {quoted(numbers)}",
                                  f"{numbers[0]!r} is taken as the points of {a!r}, of which more win")  # fmt: skip
    return None


def _of_scale(frame: pd.DataFrame, roles: dict[str, Any], name: str, why: str) -> FoundJudgments:
    """Return how grades from one side to the other are read, in whole numbers, once it is known which side is where."""
    least, most = int(frame[name].min()), int(frame[name].max())
    middle = 0 if least < 0 else (least + most) / 2
    grades = range(least, most + 1)
    labels = {str(x): "tie" if x == middle else "SIDE_1" if x < middle else "SIDE_2" for x in grades}
    hint = "say for SIDE_1 which side small numbers are for, model_a or model_b, and for SIDE_2 the other"
    hint += f"; {middle:g} is taken as a tie" if middle in grades else ""
    read = {**roles, "winner": name, "labels": labels}
    return FoundJudgments(read, f"{why}, numbers from {least} to {most} in {name!r}", hint)


def _unsure(battles: Battles, sides: tuple[str, str], result: str | None) -> Iterator[str]:
    """Say what the reader must decide of results in a column that has no usual name."""
    if result is None:
        return
    name = result.casefold()
    is_guess = not has_usual_sides(sides) and folded(result) not in RESULTS
    says_who_won = _SAYS_RESULT.search(name) or (battles.report.n_ties and not _SAYS_PLACE.search(name))
    if is_guess and (_SAYS_OTHER.search(name) or not says_who_won):
        yield f"{result!r} is a guess: it may say something else than who won"
    families = battles.report.label_families
    if families and all("(GSB)" in words for words in families):
        yield f"good is taken as a win of {sides[0]!r}: if it is one of {sides[1]!r}, exchange both"
    if any("wins and losses" in words for words in families) and not differs(*sides):
        yield f"a win is taken as one of {sides[0]!r}: if it is one of {sides[1]!r}, exchange both"


def differs(x: str, y: str) -> bool:
    """Return whether two names differ by the marks of two sides."""
    return any(differ(x, y, *marks) for marks in MARKS)


def fits(read: Callable[..., Any], frame: pd.DataFrame, **columns: Any) -> bool:
    """Return whether the rows of a table can be read so."""
    try:
        read(frame, **columns)
    except (DataError, ValueError, TypeError):
        return False
    return True


def is_binary(column: pd.Series) -> bool:
    """Return whether a column holds only 0 and 1, true and false, or words for both right and wrong."""
    try:
        texts = {str(value).casefold() for value in column.dropna().unique()}
    except TypeError:
        return False
    if texts <= {"0", "1", "0.0", "1.0", "true", "false"}:
        return bool(texts)
    # One word alone, such as the topic "t" or the status "success", may say anything.
    return texts <= RIGHT_OR_WRONG.keys() and len({RIGHT_OR_WRONG[text] for text in texts}) == 2


def found_votes(frame: pd.DataFrame) -> FoundJudgments | None:
    """Return how a table's votes are read; None where there is no way, several, or one that the reader must decide."""
    for sides in sides_of(frame):
        ways = list(results_of(frame, *sides))
        if not ways or any(way.hint for way in ways):
            continue
        targets = [Battles.from_pandas(frame, **way.arguments).target for way in ways]
        if all(np.array_equal(targets[0], target) for target in targets):
            return ways[0]._replace(why=f"two sides in {quoted(sides)}, {ways[0].why}")
    return None


def found_panel(frame: pd.DataFrame, sides: SidePairs) -> FoundJudgments | None:
    """Return how judges' verdicts between ``sides`` are read, in rows or columns; there ``human`` are those of people.

    Of the first rows, one judge may be enough.
    """
    judge, human, output = (usual_column(frame, None, role) for role in ("judge", "human", "output"))
    if not sides or output is not None:
        return None
    a, b = sides[0]
    if judge is not None and names_people(frame[judge]):
        judge = None  # people, one or many, are no panel of judges
    n_judges = 0 if judge is None else n_values(frame, judge)
    one_so_far = n_judges == 1 and len(frame) == HEAD_ROWS
    if one_so_far or 1 < n_judges <= MOST_JUDGES:
        verdict = next((name for name in columns_of(frame, ("verdict", *RESULTS)) if name != human), None)
        read = None if verdict is None else reading_of(frame, a, b, {"winner": verdict})
        if read is None:
            return None
        arguments = read.arguments
        if verdict in ("verdict", "winner"):
            del arguments["winner"]
        why = found(two_sides=(a, b), judges=judge, their_verdicts=verdict)
        hint = "the first rows are of one judge, and a panel has several" if one_so_far else read.hint
        return FoundJudgments(arguments, why, hint, "panel", "missing" not in arguments and not _is_votes(frame))
    known = {"model_a": a, "model_b": b, "missing": "drop"}
    few = [name for name in map(str, frame) if name not in (a, b, human) and n_values(frame, name) <= 6
           and folded(name) not in ("ftr", "htr")]  # fmt: skip # football: results, and at half time
    columns = [name for name in few if fits(Battles.from_pandas, frame, **known, winner=name)]
    people = [*([] if human is None else [human]), *(name for name in columns if _is_of_person(name))]
    judges = [name for name in columns if name not in people and (len(people) < 2 or folded(name) not in TOGETHER)]
    labels, hint = dict[str, Any](), ""
    if not columns:
        labels, hint = {"labels": ONE_TWO_LABELS}, _which_is_one(a, b, ONE_TWO_LABELS)
        named_so = [name for name in few if _is_of_person(name)]
        people = [name for name in named_so if fits(Battles.from_pandas, frame, **known, **labels, winner=name)]
    if not judges and len(people) < 2:
        return None
    whose = found(verdicts_of_judges=judges or None, verdicts_of_people=people if len(people) > 1 else None)
    read_as = {"model_a": a, "model_b": b, "human": people, "judges": judges, **labels}
    return FoundJudgments(read_as, f"{found(two_sides=(a, b))}, {whose}", hint, "panel")


def verdicts_of_several(frame: pd.DataFrame, read: FoundJudgments | None) -> tuple[list[str], list[str]]:
    """Return columns of verdicts of several judges, and of several people, none of which says by itself who won.

    ``read`` is how the panel of the table is read, if it has one.
    """
    judges, people = ([] if read is None else read.arguments.get(role, []) for role in ("judges", "human"))
    several_people = len(people) > 1 and usual_column(frame, None, "human") is None
    return judges if len(judges) > 1 else [], people if several_people else []


def found_rankings(frame: pd.DataFrame) -> FoundJudgments | None:
    """Return how rankings are read: places in rows, or lists of all that was ranked."""
    rank = guessed_column(frame, "rank")
    if rank is not None and folded(rank) != "rank" and columns_of(frame, (*RESULTS, *ROLES["score"].names)):
        rank = None  # beside a result, a position is the order in which answers were shown
    items, rankings = guessed_columns(frame, "ranked"), guessed_columns(frame, "ranking")
    for item, ids in [(x, y) for x in items for y in rankings if x != y] if rank is not None else []:
        roles = {"item": item, "rank": rank, "ranking": ids}
        if n_values(frame, ids) < len(frame) and fits(Rankings.from_pandas, frame, **roles):
            why = found(items=item, their_ranks=rank, of_the_rankings=ids)
            named_roles = {role: name for role, name in roles.items() if name != role}
            hint = "a position is taken for a place, 1 for the best, and not for the order in which answers were shown"
            hint = hint if folded(rank) == "position" else ""
            return FoundJudgments(named_roles, why, hint, "ranking", not hint and not _is_votes(frame))
    lists = [name for name in map(str, frame) if folded(name) == "ranking" or _is_list_of_ranks(frame[name])]
    for name in lists[:1]:
        try:
            levels = Rankings.from_pandas(frame, ranking=name).to_lists()
        except DataError:
            chosen, levels = fits(Rankings.from_pandas, frame, ranking=name, first=1), []
        else:
            chosen = all(len(x) == 2 and not isinstance(x[0], list) for x in levels) and max(map(len, levels)) > 1
            chosen = chosen and all(isinstance(x[1], list) for x in levels)
        if chosen or levels:
            hint = "one item is taken as the best of those shown: if the others truly tie, leave out --first 1"
            first, hint = ({"first": "1"}, hint) if chosen else ({}, "")
            named_roles = {} if name == "ranking" else {"ranking": name}
            return FoundJudgments({**named_roles, **first}, found(rankings=name), hint, "ranking", not _is_votes(frame))
    in_columns = None
    try:
        in_columns = None if lists or _is_votes(frame) or guessed_column(frame, "model") else lists_in_columns(frame)
        if in_columns is not None:
            Rankings.from_pandas(frame)
    except DataError as error:
        if in_columns is None or in_columns[1].startswith(BEST_AND_WORST):
            return FoundJudgments({}, f"{BEST_AND_WORST} of those shown", f"correct it first: {error}", "ranking")
        return None
    if in_columns is not None:
        ranks = in_columns[1].startswith("ranks of")
        hint = "numbers are taken as ranks, 1 for the best; if they are scores, give them to jaxeval scores" * ranks
        return FoundJudgments({}, in_columns[1], hint, "ranking", False)
    return None


def _is_list_of_ranks(column: pd.Series) -> bool:
    first = column.dropna().head(5)
    return len(first) > 0 and all(isinstance(value, str) and re.search(r"\S > \S", value) for value in first)


def _is_votes(frame: pd.DataFrame) -> bool:
    """Return whether the rows are battles as they stand, without options that say how they are read."""
    return fits(Battles.from_pandas, frame, missing="drop")


def is_person(name: str) -> bool:
    """Return whether a name is one of a person: expert, annotator_2."""
    return re.sub(r"\d+$", "", folded(name)) in _PEOPLE


def _is_of_person(name: str) -> bool:
    """Return whether a column is called after one person: expert, annotator_2, rater 1 winner."""
    return any(re.sub(r"\d+$", "", word) in ONE_PERSON for word in words_of(name))


def names_people(column: pd.Series) -> bool:
    """Return whether most values of a column name people: expert_3, arena_user_7."""
    named_so = [is_person(value) or "user" in folded(value) for value in column.dropna()] if is_plain(column) else []
    return sum(named_so) > len(named_so) / 2


def quoted(names: Sequence[str]) -> str:
    """Write names in quotes, for a sentence."""
    shown = [repr(str(name)) for name in names]
    return named(shown, 6) if len(shown) != 2 else " and ".join(shown)
