"""The list of broken lines does not rot; `broken_lines.py` itself breaks them, by hand and by night."""

from collections import Counter

from broken_lines import LINES, not_there


def test_every_line_stands_once_in_its_file_and_its_tests_exist():
    assert not_there(LINES) == []
    assert all(line.line != line.broken and line.tests for line in LINES)


def test_every_package_of_formulas_has_some():
    of_package = Counter(line.file.split("/")[0] for line in LINES)
    assert min(of_package[name] for name in ("kernels", "ratings", "accuracy", "audits", "scores", "softelo")) >= 5
    assert len({line.line for line in LINES}) == len({line.what for line in LINES}) == len(LINES)
