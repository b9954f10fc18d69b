"""Words that messages share."""

import pytest

from jaxeval.wording import (
    COMPETITOR,
    MODEL,
    Noun,
    common_noun,
    competitor_of,
    competitor_settings,
    counted,
    did_you_mean,
    said_noun,
    shortened,
    visible,
    visible_line,
)


@pytest.mark.parametrize(("n", "words", "text"), [
    (1, ("file",), "1 file"),
    (0, ("file",), "0 files"),
    (2000, ("file",), "2,000 files"),
    (1.0, ("point",), "1 point"),
    (3.0, ("point",), "3 points"),
    (2.5, ("point",), "2.5 points"),
    (12345.678, ("vote",), "12,345.7 votes"),
    (1, ("row has", "rows have"), "1 row has"),
    (2, ("row has", "rows have"), "2 rows have"),
])  # fmt: skip
def test_counted(n, words, text):
    assert counted(n, *words) == text


@pytest.mark.parametrize(("name", "known", "hint"), [
    ("winer", ["winner", "model_a"], "; did you mean 'winner'?"),
    ("GPT-4", ["gpt-4", "claude"], "; did you mean 'gpt-4'?"),
    ("gpt", ["gpt-4-turbo-2024-04-09", "claude"], "; did you mean 'gpt-4-turbo-2024-04-09'?"),
    ("model_c", ["model_a", "model_b"], "; did you mean 'model_b' or 'model_a'?"),
    ("colour", ["language", "voter"], ""),
    ("x", [], ""),
    ("", ["a"], ""),
    (12, [1, 12.0], "; did you mean 12.0?"),
    ("2024", [2024, "2024b"], "; did you mean 2024 or '2024b'?"),
])  # fmt: skip
def test_did_you_mean(name, known, hint):
    assert did_you_mean(name, known) == hint


@pytest.mark.parametrize(("text", "shown"), [
    ("plain é 模型　\u00a0 m²", "plain é 模型　\u00a0 m²"),
    ("a\x1b[31mb", r"a\x1b[31mb"),
    ("a\x9b31mb", r"a\x9b31mb"),
    ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    ("a\rb\tc\x00", r"a\rb\tc\x00"),
    ("a\u202eb\u2066c\u200bd\ufeff", r"a\u202eb\u2066c\u200bd\ufeff"),
    ("a\u2028b\ud800", r"a\u2028b\ud800"),
    ("a\nb", "a\nb"),
])  # fmt: skip
def test_visible(text, shown):
    assert visible(text) == shown


def test_visible_line():
    assert visible_line("a\nb\x1b") == r"a\nb\x1b"
    assert visible_line(3) == "3"


@pytest.mark.parametrize(("most", "shown"), [(10, "0123456789"), (9, "0123…6789"), (8, "0123…789")])
def test_long_texts_lose_their_middle(most, shown):
    assert shortened("0123456789", most) == shown


class TestNoun:
    @pytest.mark.parametrize(("word", "one", "many"), [
        ("player", "player", "players"),
        ("class", "class", "classes"),
        ("box", "box", "boxes"),
        ("match", "match", "matches"),
        ("entry", "entry", "entries"),
        ("essay", "essay", "essays"),
        ("x_y", "x_y", "x_ys"),
        ("2y", "2y", "2ys"),
        ("y", "y", "ys"),
        ("w" * 40, "w" * 40, "w" * 40 + "s"),
        ("chess engine", "chess engine", "chess engines"),
        ("city,cities", "city", "cities"),
        (" mouse , mice ", "mouse", "mice"),
        (("sheep", "sheep"), "sheep", "sheep"),
        (["Team", "Teams"], "Team", "Teams"),
        (Noun("a", "b"), "a", "b"),
    ])  # fmt: skip
    def test_of_a_word(self, word, one, many):
        assert Noun.of(word) == (one, many)

    @pytest.mark.parametrize("word", ["", " ", "a,", ",a", "a,b,c", "a\nb", "a\x1b[31m", ()])
    def test_what_is_no_word(self, word):
        with pytest.raises(ValueError, match="no word such as 'player'"):
            Noun.of(word)

    @pytest.mark.parametrize("word", ["w" * 41, f"{'w' * 41},players", "player," + "w" * 43])
    def test_too_long_a_word(self, word):
        with pytest.raises(ValueError, match=r"for what is rated may have 4[02] characters, and 'w+…w+' has 4[13]"):
            Noun.of(word)

    def test_the_longest_word_is_read_back(self):
        longest = Noun.of("w" * 38 + "ch")
        assert len(longest.many) == 42
        assert Noun.of(longest) == Noun.of(list(longest)) == longest

    @pytest.mark.parametrize("word", [3, None, [3], ("player", 3), b"player", {"player": "players"}, {"player"}])
    def test_what_is_no_text(self, word):
        with pytest.raises(TypeError, match="must be text such as 'player'"):
            Noun.of(word)

    def test_in_sentences(self):
        city, image = Noun.of("city"), Noun.of("image")
        assert (city.counted(1), city.counted(2_000, "has", "have")) == ("1 city", "2,000 cities have")
        assert (city.counted(1, "has", "have"), city.counted(2, "more")) == ("1 city has", "2 cities more")
        assert (city.a_one, image.a_one, city.head, city.heads) == ("a city", "an image", "City", "Cities")
        assert Noun.of("LLM").head == "LLM"

    def test_of_several_data(self):
        player, team = Noun.of("player"), Noun.of("team")
        assert common_noun([player, player]) == player
        assert common_noun([player, team]) == COMPETITOR
        assert common_noun([]) == common_noun([None]) == MODEL
        assert common_noun([None, player]) == said_noun([player, None]) == player
        assert said_noun([MODEL, player]) == COMPETITOR
        assert said_noun([None]) is said_noun([]) is None

    def test_in_settings(self):
        player = Noun.of("player")
        assert competitor_settings(MODEL) == {}
        assert competitor_settings(player) == {"competitor": ["player", "players"]}
        assert competitor_of({"level": 0.95, **competitor_settings(player)}) == player
        assert competitor_of({}) == competitor_of(None) == MODEL
