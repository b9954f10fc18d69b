import gzip
import json
import random

import numpy as np
import pytest
from command_line import said

import jaxeval
from jaxeval import DataError, read_battles
from jaxeval.data.formats import read_head
from jaxeval.data.json_lines import MOST_BYTES, MOST_LEVELS, check_lines
from jaxeval.data.table_files import column_names

VOTE = b'{"model_a": "a", "model_b": "b", "winner": "tie"}\n'


def beside(value):
    """A vote with another column, which nobody asks for."""
    return VOTE.replace(b"}", b', "x": ' + value + b"}")


def nested(kind, levels):
    """A value of so many levels."""
    opening, closing = {"lists": (b"[", b"]"), "objects": (b'{"a":', b"}"), "mixed": (b'[{"]}": ', b"}]")}[kind]
    times = levels // 2 if kind == "mixed" else levels
    return opening * times + b"1" + closing * times


@pytest.fixture
def read(tmp_path):
    def write_and_read(content, name="votes.jsonl"):
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
        return read_battles(tmp_path / name)

    return write_and_read


class TestDepth:
    @pytest.mark.parametrize("kind", ["lists", "objects", "mixed"])
    @pytest.mark.parametrize("levels", [MOST_LEVELS, 20_000, 100_000])
    def test_too_deep(self, read, kind, levels):
        with pytest.raises(DataError, match=rf"^votes.jsonl: line 1,002 nests lists and objects {levels + 1:,} deep"):
            read(VOTE * 1001 + beside(nested(kind, levels)) + VOTE * 3)

    @pytest.mark.parametrize("kind", ["lists", "objects", "mixed"])
    def test_deep_enough(self, read, kind):
        levels = MOST_LEVELS - 1 if kind != "mixed" else MOST_LEVELS - 2
        assert read(VOTE + beside(nested(kind, levels)) * 5 + VOTE).n_battles == 7

    def test_brackets_that_nothing_closes(self, read):
        with pytest.raises(DataError, match=r"line 2 nests lists and objects 100,00\d deep"):
            read(VOTE + b"[" * 100_000 + b"\n" + VOTE)

    @pytest.mark.parametrize("opening", [b'{"a":\n', b"[\n", b'{"a": \r\n  ', b'{"]]": [{}\n, '])
    def test_over_several_lines(self, read, opening):
        """The parser minds no line ends."""
        with pytest.raises(DataError, match=r"line \d nests lists and objects .* deep, more than 200"):
            read(VOTE + b'{"x": ' + opening * 20_000 + b"\n" + VOTE)

    @pytest.mark.parametrize(
        "value", [b'"' + b"[" * 999 + b'"', rb'"\"' + b": [{" * 999 + b'"', b"[" + b"[{}, 1]," * 999 + b"[1]]"]
    )
    def test_many_brackets_are_not_many_levels(self, read, value):
        assert read(VOTE + beside(value) + VOTE).n_battles == 3

    def test_any_value(self):
        """Against a parser that counts."""
        draw = random.Random(0)
        text = ["", "]]}}", '"', "\\", '[{"', "\n", "é"]

        def value(levels):
            if levels == 0:
                return draw.choice([1, None, "".join(draw.choices(text, k=9))])
            parts = [value(levels - 1), *(value(draw.randrange(min(levels, 3))) for _ in range(draw.randrange(3)))]
            draw.shuffle(parts)
            return parts if draw.random() < 0.5 else {f"{draw.choice(text)}{k}": v for k, v in enumerate(parts)}

        for levels in np.linspace(1, 230, 60).astype(int).tolist():
            separators = draw.choice([(",", ":"), (", ", ": ")])
            line = json.dumps({"x": value(levels - 1)}, separators=separators, indent=draw.choice([None, None, 1]))
            block = b"{}\n{}\n" + line.encode() + b"\n{}\n"
            if levels <= MOST_LEVELS:
                check_lines(block, 0)
            else:
                with pytest.raises(DataError, match=f"line 13 nests lists and objects {levels} deep"):
                    check_lines(block, 10)


class TestLength:
    @pytest.mark.parametrize("name", ["votes.jsonl", "votes.jsonl.gz"])
    @pytest.mark.parametrize("size", [MOST_BYTES + 1, pytest.param(3 * MOST_BYTES, marks=pytest.mark.slow)])
    def test_too_long(self, read, name, size):
        with pytest.raises(DataError, match=rf"^{name}: line 3 is longer than 33,554,432 bytes"):
            read(VOTE * 2 + beside(b'"' + b"a" * size + b'"') + VOTE, name)

    def test_the_longest(self):
        line = b"1" * MOST_BYTES + b"\n"
        check_lines(VOTE + line + VOTE + line, 0)
        with pytest.raises(DataError, match="line 104 is longer"):
            check_lines(VOTE + line + VOTE + b"1" + line + VOTE, 100)


@pytest.mark.parametrize("value", [rb"\ud800", rb"\udc00", rb"x\ud800\ud800"])
def test_half_of_a_surrogate_pair(read, value):
    assert read(VOTE + beside(b'"' + value + b'"')).n_battles == 2  # in a column that nobody asks for
    with pytest.raises(DataError, match=r"^votes.jsonl: line 4: column 'model_b' holds half of a surrogate pair, '.ud"):
        read(VOTE + b"\n" + VOTE + VOTE.replace(b'"b"', b'"' + value + b'"') + VOTE)


READERS = [jaxeval.read_battles, jaxeval.read_judged_battles, jaxeval.read_judged_answers,
           jaxeval.read_anchored_verdicts, column_names]  # fmt: skip


class TestEveryReader:
    """Errors name the file and the line, whoever reads it."""

    @pytest.mark.parametrize("reader", READERS)
    @pytest.mark.parametrize(("line", "match"), [
        (beside(nested("lists", 20_000)), "line 3 nests lists and objects 20,001 deep"),
        (b"[" * 100_000, r"line 3 nests lists and objects 100,00\d deep"),
        (VOTE.replace(b'"a"', b'"\xff\xfe"'), "line 3 cannot be read as JSON: .* save the file as UTF-8"),
        (VOTE.replace(b'"a"', rb'"\ud800"'), "line 3: column 'model_a' holds half of a surrogate pair"),
    ])  # fmt: skip
    def test_names_the_line(self, tmp_path, reader, line, match):
        (tmp_path / "lines.jsonl").write_bytes(VOTE * 2 + line + b"\n" + VOTE)
        with pytest.raises(DataError, match=f"^lines.jsonl: {match}"):
            reader(tmp_path / "lines.jsonl")

    @pytest.mark.parametrize("reader", READERS[1:])
    @pytest.mark.parametrize(
        ("name", "match"),
        [(rb"\ud800", "line 3: the name of column '.ud800' holds half of a surrogate pair"),
         (b"\xff", "line 3 cannot be read as JSON: .* save the file as UTF-8")],
    )  # fmt: skip
    def test_names_of_columns(self, tmp_path, reader, name, match):
        (tmp_path / "lines.jsonl").write_bytes(VOTE * 2 + VOTE.replace(b"}", b', "' + name + b'": 1}') + VOTE)
        with pytest.raises(DataError, match=f"^lines.jsonl: {match}"):
            reader(tmp_path / "lines.jsonl")


def test_lines_are_counted():
    for block in (b"", b"\n", b"a\nb", b"a\n\nb\n" * 100_000):
        assert check_lines(block, 0) == block.count(b"\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"null\nnull\n", 1),
        (b"\n  null\n" + VOTE, 2),
        (VOTE + b"\r\nnull", 3),
        (VOTE + VOTE.rstrip() + b" null\n" + VOTE, 2),
        (VOTE * 25_000 + b"null\n" + VOTE * 25_000, 25_001),  # in a later block of Arrow's
    ],
)
def test_null_in_place_of_an_object(content, line, read, tmp_path):
    with pytest.raises(
        DataError, match=f"line {line:,} cannot be read( as JSON: Extra data|: every line must hold one)"
    ):
        read(content)
    assert f"line {line:,} cannot be read" in said("scores", tmp_path / "votes.jsonl", code=1)


def test_null_alone_is_looked_at(tmp_path):
    (tmp_path / "votes.jsonl").write_bytes(b"null\n")
    assert "line 1 cannot be read" in said(tmp_path / "votes.jsonl", code=1)


def test_null_on_a_line_within_an_object(read):
    assert read(beside(b"\nnull") + beside(b"[1,\r\n  null]")).n_battles == 2


def test_objects_whose_values_mix_types_are_told(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"data": {"sampled": ["a"]}}\n{"data": {"sampled": "a"}}\n')
    with pytest.raises(DataError, match="column 'data' holds objects whose own values mix types"):
        read_head(tmp_path / "log.jsonl")
