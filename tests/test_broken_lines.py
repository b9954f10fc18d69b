"""The list of broken lines does not rot; `broken_lines.py` itself breaks them, by hand and by night."""

from collections import Counter

import broken_lines
from broken_lines import LINES, Broken, follow, not_there


def test_every_line_stands_once_in_its_file_and_its_tests_exist():
    assert not_there([line.followed() for line in LINES]) == []
    assert all(line.line != line.broken and line.tests for line in LINES)


def test_every_package_of_formulas_has_some():
    of_package = Counter(line.file.split("/")[0] for line in LINES)
    assert min(of_package[name] for name in ("kernels", "ratings", "accuracy", "audits", "scores", "softelo")) >= 5
    assert len({line.line for line in LINES}) == len({line.what for line in LINES}) == len(LINES)


def test_lines_are_followed_to_other_modules(tmp_path, monkeypatch):
    """If they stand there once; a line that is written otherwise is shown."""
    monkeypatch.setattr(broken_lines, "ROOT", tmp_path)
    texts = {"jaxeval/new/b.py": "x = 2 * y\n", "jaxeval/c.py": "z = 3 * w\nu = 1\n", "jaxeval/d.py": "u = 1\n"}
    for name, text in (texts | {"tests/moved/test_b.py": "", "tests/test_c.py": ""}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    moved = Broken("twice", "a.py", "2 * y", "y", "test_c.py old/test_b.py")
    there = Broken("thrice", "c.py", "3 * w", "w", "test_c.py")
    assert moved.followed() == moved._replace(file="new/b.py", tests="test_c.py moved/test_b.py")
    assert there.followed() == there
    assert not_there([moved.followed(), there]) == []
    (said,) = not_there([there._replace(line="z = 3 * v")])
    assert said.endswith("z = 3 * v; jaxeval/c.py has z = 3 * w")
    both = Broken("one", "a.py", "u = 1", "u = 2", "test_c.py")
    assert both.followed() == both
    source = 'Broken("thrice", "a.py", "c", "d", ""), Broken("twice", "a.py", "2 * y", "y", "test_c.py old/test_b.py")'
    new = source.replace('"twice", "a.py"', '"twice", "new/b.py"').replace("old/test_b.py", "moved/test_b.py")
    assert follow([moved], source) == new


def test_a_text_that_no_line_has_is_told(capsys, monkeypatch):
    """And the tests of all files are not run for it."""
    monkeypatch.setattr("sys.argv", ["broken_lines.py", "--only", "no such line"])
    assert broken_lines.main() == 2
    assert "no broken line has 'no such line'" in capsys.readouterr().out
