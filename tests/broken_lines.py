"""Are the tests able to fail? Lines of the package are broken one by one, and tests of their module must notice.

    python tests/broken_lines.py [--only TEXT ...] [--list] [--follow] [-j WORKERS]

The checkout stays as it is: lines are broken in a copy. The status is 1 if tests miss a broken line, and 2 if
a line is not there exactly once, or tests fail without any broken line. A line that survives asks for a test in the
module's own test file: a twin of the formula, or a known value.

A line that a refactoring has taken to another module, or whose test file has moved, is broken where it is now, if it
stands there alone. --follow writes such places into this file.
"""

from __future__ import annotations

import argparse
import difflib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_NEEDED = ("jaxeval", "tests", "pyproject.toml")
_SECONDS = 600  # a broken line may also make a loop endless
_CAUGHT = (1, 2)  # pytest's: a test has failed, or a module could not be imported


class Broken(NamedTuple):
    """A line of a file of the package, that line broken, and the test files of which one must fail."""

    what: str
    file: str
    line: str
    broken: str
    tests: str

    def place(self, root: Path) -> Path:
        return root / "jaxeval" / self.file

    def test_files(self) -> list[str]:
        return [f"tests/{name}" for name in self.tests.split()]

    def followed(self) -> Broken:
        """The line where it is now, if it or a file of its tests has moved and is one of its kind."""
        file, tests = self.file, self.tests.split()
        if self.line not in _text(self.place(ROOT)):
            homes = [path for path in (ROOT / "jaxeval").rglob("*.py") if self.line in _text(path)]
            if len(homes) == 1:
                file = homes[0].relative_to(ROOT / "jaxeval").as_posix()
        for k, name in enumerate(tests):
            namesakes = list((ROOT / "tests").rglob(Path(name).name))
            if not (ROOT / "tests" / name).exists() and len(namesakes) == 1:
                tests[k] = namesakes[0].relative_to(ROOT / "tests").as_posix()
        return self._replace(file=file, tests=" ".join(tests))

    def nearest(self) -> str:
        """The line of the package that is most like this one, and its module."""
        places = {text.strip(): path for path in (ROOT / "jaxeval").rglob("*.py") for text in _text(path).splitlines()}
        near = difflib.get_close_matches(self.line.split("\n")[0], places, 1, 0.6)
        return f"; {places[near[0]].relative_to(ROOT)} has {near[0]}" if near else ""


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


# fmt: off
LINES = [
    # Kernels
    Broken("the ridge's slope loses its factor", "kernels/pair_tables.py",
           "return table.score - expected_score(theta, table.n) - 2 * ridge * theta",
           "return table.score - expected_score(theta, table.n) - ridge * theta", "kernels/test_likelihood.py"),
    Broken("the probit's information of a lost battle", "kernels/links.py",
           "(1 - target) * bend(link, -z)", "(1 - target) * bend(link, z)", "kernels/test_links.py"),
    Broken("the probit's slope in its low tail", "kernels/links.py",
           "xp.where(is_low, beyond, 0.0)", "xp.where(is_low, 0.0, beyond)", "kernels/test_links.py"),
    Broken("a tie's part of Davidson's information", "kernels/tie_models.py",
           "win + tie / 4 - mean**2", "win + tie / 2 - mean**2", "kernels/test_tie_models.py"),
    Broken("the sign of Rao and Kupper's mixed derivative", "kernels/tie_models.py",
           "Information(up + down, down - up,", "Information(up + down, up - down,", "kernels/test_tie_models.py"),
    Broken("the sign of Rogan-Gladen's shift", "kernels/judge_error.py",
           "/ m1 - (1 - theta) * q0", "/ m1 + (1 - theta) * q0", "accuracy/test_rogan_gladen.py"),
    Broken("one label more, not two", "kernels/judge_error.py",
           "m0 + 2, m1 + 2)", "m0 + 1, m1 + 2)", "accuracy/test_rogan_gladen.py"),
    Broken("the covariance in the variance of PPI++", "kernels/judge_error.py",
           "- 2 * weight * covariance", "- weight * covariance",
           "kernels/test_judge_error.py accuracy/test_prediction_powered.py"),
    Broken("the degrees of freedom of scores", "kernels/judge_error.py",
           "_over(of_labelled, labelled.n - 2)", "_over(of_labelled, labelled.n - 1)",
           "kernels/test_judge_error.py accuracy/test_prediction_powered.py"),
    Broken("counters of units overlap", "kernels/resample.py",
           "column + row * _ROW_STRIDE", "column + row", "kernels/test_resample.py resampling/test_rows.py"),
    Broken("models that are near are counted from themselves on", "kernels/rank_agreement.py",
           "upto[pairs.end[row]] - upto[1:]", "upto[pairs.end[row]] - upto[:-1]",
           "evaluators/test_rank_correlation.py"),
    Broken("ties of scores and of gold are mixed up", "kernels/rank_agreement.py",
           "(sums.pairs - sums.tied_scores) * (sums.pairs - sums.tied_gold)",
           "(sums.pairs - sums.tied_scores) * (sums.pairs - sums.tied_scores)", "evaluators/test_rank_correlation.py"),
    Broken("the sign of an infinite temperature", "kernels/batch/folds.py",
           "jnp.where(agree > 0, jnp.inf, -jnp.inf)", "jnp.where(agree > 0, -jnp.inf, jnp.inf)",
           "kernels/test_temperature.py"),
    Broken("the deviance loses its factor", "kernels/batch/changed_boards.py",
           "2 * halves * n * p * (1 - p) / safe", "halves * n * p * (1 - p) / safe", "kernels/test_misfit.py"),
    Broken("the third pair of a triad", "kernels/batch/changed_boards.py",
           "log_odds[..., b] - log_odds[..., c]", "log_odds[..., b] + log_odds[..., c]",
           "kernels/test_misfit.py"),
    Broken("the ridge of rankings", "kernels/batch/plackett_luce.py",
           "counts.chosen - expected - 2 * ridge * theta", "counts.chosen - expected - ridge * theta",
           "kernels/test_plackett_luce.py"),
    Broken("points of the second model of a changed vote", "kernels/batch/changed_boards.py",
           "(j, change.weight - change.points)", "(j, -change.points)", "kernels/test_changed_votes.py"),

    # Ratings
    Broken("battles of a cell count once", "ratings/vote_groups.py",
           "scores.T @ scores.multiply(count[:, None])", "scores.T @ scores", "ratings/test_sandwich.py"),
    Broken("the mean of a stratum stays in", "ratings/vote_groups.py",
           "members.multiply(1 / strata.size[:, None])", "members.multiply(0 / strata.size[:, None])",
           "ratings/test_strata.py"),
    Broken("the variance of the gauge", "ratings/gauge.py",
           "- shift[:, None] - shift + variance", "- shift[:, None] - shift", "ratings/test_gauge.py"),
    Broken("the gauges of votes and of the mean are swapped", "ratings/gauge.py",
           'battles if gauge == "votes" else 1.0', 'battles if gauge != "votes" else 1.0', "ratings/test_gauge.py"),
    Broken("the unit of the probit", "ratings/gauge.py",
           "1.702 * ELO_PER_LOGIT", "1.6 * ELO_PER_LOGIT", "ratings/test_links.py"),
    Broken("frequent pairs weigh as rare ones", "ratings/boards.py",
           "1 / np.maximum(cells.battles, PAIR_FREQUENCY_FLOOR)", "1 / np.minimum(cells.battles, PAIR_FREQUENCY_FLOOR)",
           "ratings/test_bradley_terry.py"),
    Broken("errors of the model lose the square of the weight", "ratings/boards.py",
           "(weight * np.sqrt(self._by_link(links.information, target, z)))",
           "np.sqrt(self._by_link(links.information, target, z))",
           "ratings/test_sandwich.py"),
    Broken("errors of differences lose a covariance", "ratings/bradley_terry_fit.py",
           "variance = np.diag(c)[:, None] + np.diag(c) - 2 * c", "variance = np.diag(c)[:, None] + np.diag(c) - c",
           "ratings/test_bradley_terry.py"),
    Broken("independent boards keep the order of equal draws", "ratings/compare_boards.py",
           "np.roll(order[later], -1)", "np.roll(order[later], 0)", "ratings/test_compare_boards.py"),
    Broken("a rank change has the wrong sign", "ratings/board_comparison.py",
           'columns["rank_change"] = columns["rank_b"] - columns["rank_a"]',
           'columns["rank_change"] = columns["rank_a"] - columns["rank_b"]', "ratings/test_board_comparison.py"),
    Broken("a judge's worth counts the votes themselves", "ratings/prediction_powered.py",
           "self.fit.n_human * (gain - 1)", "self.fit.n_human * gain", "ratings/test_prediction_powered.py"),

    # Accuracies
    Broken("degrees of freedom of Student's quantile", "accuracy/prediction_powered.py",
           "stdtrit(max(n - 2, 1)", "stdtrit(max(n - 1, 1)", "accuracy/test_prediction_powered.py"),
    Broken("the pooled variance", "accuracy/prediction_powered.py",
           "/ (n + n_test - 1)", "/ (n + n_test)", "accuracy/test_prediction_powered.py"),
    Broken("the sign of the sensitivity's influence", "accuracy/influence.py",
           "(1 - each) * wrong - each * right", "(1 - each) * wrong + each * right", "accuracy/test_influence.py"),
    Broken("differences are taken for sums", "accuracy/influence.py",
           "((x[:, a] - x[:, b]) ** 2 for x in self)", "((x[:, a] + x[:, b]) ** 2 for x in self)",
           "accuracy/test_influence.py"),
    Broken("the calibration does not vary", "accuracy/belief.py",
           "(1 / labelled.n + 1 / test.n)", "(1 / test.n)", "accuracy/test_belief.py"),
    Broken("labels that are added to a class", "accuracy/rogan_gladen.py",
           "(table + 1) / (labels + k)", "(table + 1) / (labels + 1)", "accuracy/test_confusion.py"),
    Broken("the errors of both classes are swapped", "accuracy/calibration_planning.py",
           "np.sqrt(wrong0 / wrong1)", "np.sqrt(wrong1 / wrong0)", "accuracy/test_calibration_planning.py"),
    Broken("Youden's index is not squared", "accuracy/calibration_planning.py",
           "errors / (j**2 * alone)", "errors / (j * alone)", "accuracy/test_calibration_planning.py"),
    Broken("missing judgments that differ are no news", "accuracy/judge_accuracy.py",
           "test.pvalue < _RARE", "test.pvalue > _RARE", "accuracy/test_missing_judgments.py"),

    # Audits
    Broken("the level of drift is halved", "audits/over_time.py",
           "_quantile(first, 1 - alpha)", "_quantile(first, 1 - alpha / 2)", "audits/test_drift.py"),
    Broken("intervals of steps forget that these were chosen", "audits/over_time.py",
           "half = largest * ", "half = 1.96 * ", "audits/test_drift.py"),
    Broken("a fall of a rating has the p of none", "audits/over_time.py",
           "test.of_unit >= np.abs(largest)[:, None]", "test.of_unit >= largest[:, None]", "audits/test_drift.py"),
    Broken("a step begins a period late", "audits/periods.py",
           "-score.cumsum(0)[:-1] / divisor", "-score.cumsum(0)[1:] / divisor", "audits/test_drift.py"),
    Broken("what the fit takes out of draws", "audits/periods.py",
           "draws[:-1] - removing @ draws[-1]", "draws[:-1] + removing @ draws[-1]", "audits/test_drift.py"),
    Broken("errors of a few units that agree by luck", "audits/chance.py",
           "np.sqrt(np.maximum(self.squares, votes.variance))", "np.sqrt(self.squares)", "audits/test_chance.py"),
    Broken("the leverage loses a covariance", "audits/chance.py",
           "- 2 * inverse[cells.first, cells.second]", "- inverse[cells.first, cells.second]",
           "audits/test_chance.py"),
    Broken("ties lower the variance of votes too much", "audits/simulated_boards.py",
           "evaluate(changed_boards.shares_of_ties, share, votes, tied, odds) / 4",
           "evaluate(changed_boards.shares_of_ties, share, votes, tied, odds) / 2", "audits/test_goodness_of_fit.py"),
    Broken("the votes are no draw of their own", "audits/chance.py",
           "(1 + len(draws) - below)", "(len(draws) - below)", "audits/test_goodness_of_fit.py"),
    Broken("errors of true differences lose a covariance", "audits/replication.py",
           "variance[:, None] + variance - 2 * covariance", "variance[:, None] + variance - covariance",
           "audits/test_replication.py"),
    Broken("a voter's first vote is a repeat", "audits/points.py",
           "times[known] - first", "times[known]", "audits/test_who_votes.py"),
    Broken("what the strengths take of a covariate's score", "audits/chance.py",
           "- both - both.T + taken.T", "- both + taken.T", "audits/test_goodness_of_fit.py"),
    Broken("pairs of models do not share the error", "audits/over_time.py",
           "alpha / max(n, 1)", "alpha", "audits/test_anytime.py"),

    # Scores
    Broken("few clusters", "scores/estimates.py",
           "factor[k, rows[held]] = cluster_factors(sizes[held])", "factor[k, rows[held]] = 1.0",
           "scores/test_estimates.py"),
    Broken("benchmarks count by their items", "scores/estimates.py",
           "w * (of_group[:, None] / total)[group]", "w * (1 / len(of_group) / total)[group]",
           "scores/test_estimates.py"),
    Broken("the variance of trials", "scores/estimates.py",
           "np.where(n > 1, square / (n - 1), np.nan)", "np.where(n > 1, square / n, np.nan)",
           "scores/test_trials.py scores/test_estimates.py"),
    Broken("equal sums are not as far", "scores/paired_tests.py",
           "abs(total) - slack", "abs(total) + slack", "scores/test_paired_tests.py"),
    Broken("the alternatives of Student's t are swapped", "scores/paired_tests.py",
           '-t if alternative == "greater" else t', 't if alternative == "greater" else -t',
           "scores/test_paired_tests.py"),
    Broken("random flips without the flip that was seen", "scores/paired_tests.py",
           "(1 + n) / (1 + N_FLIPS)", "n / N_FLIPS", "scores/test_paired_tests.py"),
    Broken("trials are drawn with replacement", "scores/items.py",
           "np.maximum(n - drawn, 1)", "n", "scores/test_trials.py"),
    Broken("an item's rest holds the item", "scores/items.py",
           "(total - value) / (count - there)", "total / count", "scores/test_item_report.py"),
    Broken("the noise of trials stays in the spread of items", "scores/plan_scores.py",
           "max(total - noise, 0.0)", "max(total, 0.0)", "scores/test_plan_scores.py"),
    Broken("the sign of the margin", "scores/paired_tests.py",
           'p_beyond(-margin, 1), p_beyond(-margin, -1)',
           'p_beyond(margin, 1), p_beyond(-margin, -1)', "scores/test_compare_scores.py"),
    Broken("correlation within clusters by item", "statistics/clusters.py",
           "(sums**2 - seen)[several] * (alone / np.where(several, whole - alone, 1.0))[several]",
           "(sums**2 - seen)[several]", "scores/test_gate.py"),
    Broken("the next term of the incomplete beta function", "statistics/special.py",
           "n * (b - n) * x", "n * (b + n) * x", "statistics/test_special.py"),
    Broken("gaps among whole numbers of small files", "data/small_files.py",
           "and len(there) == len(values)", "", "data/test_small_files.py"),
    Broken("the larger tail of equal shares", "statistics/p_values.py",
           "min(chance @ at_most, chance @ at_least)", "max(chance @ at_most, chance @ at_least)",
           "scores/test_families.py"),

    # Soft Elo
    Broken("targets of negative differences", "softelo/temperature.py",
           "np.where(difference < 0, 1 - targets, targets)", "np.where(difference > 0, 1 - targets, targets)",
           "softelo/test_temperature.py"),
    Broken("one cluster of several battles has an error", "softelo/temperature.py",
           "cluster_factors(information) if information.any() else np.ones(n)", "np.ones(n)",
           "softelo/test_temperature.py"),
    Broken("half of the correction of bias", "statistics/comparison.py",
           "skew = 2 * scipy", "skew = scipy", "ratings/test_panel_ratings.py"),
    Broken("few units of a model", "softelo/own_battles.py",
           "squares * count / np.maximum(count - 1, 1)", "squares", "softelo/test_rating_errors.py"),
    Broken("the ridge of a held-out rating", "softelo/own_battles.py",
           "len(theta)) + 2 * ridge", "len(theta)) + ridge", "softelo/test_rating_errors.py"),
    Broken("the new model is no score", "softelo/calibrated_methods.py",
           "return ceil(exact_level(level) * (n + 1))", "return ceil(exact_level(level) * n)",
           "softelo/test_conformal.py"),
    Broken("the new model has no weight", "softelo/calibrated_methods.py",
           "level * (sum(exact) + added)", "level * sum(exact)", "softelo/test_conformal.py"),
    Broken("noise of both is added", "softelo/calibrated_methods.py",
           "v[:, None] ** 2 - s**2", "v[:, None] ** 2 + s**2", "softelo/test_calibrated_methods.py"),
    Broken("the judge's own error", "softelo/calibrated_methods.py",
           "(squares / (variance + tau_squared)).sum()", "(squares / (variance - tau_squared)).sum()",
           "softelo/test_calibrated_methods.py"),
    Broken("the influence on a correlation", "softelo/judge_agreement.py",
           "u * v - r / 2 * (u**2 + v**2)", "u * v - r * (u**2 + v**2)", "softelo/test_agreement_errors.py"),
    Broken("labels of the row and of the column are mixed up", "softelo/judge_agreement.py",
           "outer = column[:, None] + row", "outer = row[:, None] + column", "softelo/test_agreement_errors.py"),
]
# fmt: on


class _Copy:
    """The tree, where lines may be broken."""

    def __init__(self, root: Path, programs: Path) -> None:
        self.root = root
        for name in _NEEDED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        data = os.environ.get("JAXEVAL_DATA") or str(ROOT.parent / "shared" / "data")
        kept = {"JAXEVAL_TEST_CACHE": str(programs)} | dict(os.environ)  # compiled programs of all runs
        self.environment = kept | {"JAXEVAL_DATA": data}
        own = "import jaxeval, pathlib, sys; sys.exit(pathlib.Path(jaxeval.__file__).parents[1] != pathlib.Path.cwd())"
        if subprocess.run([sys.executable, "-c", own], cwd=root, env=self.environment, check=False).returncode:
            raise SystemExit("the copy's jaxeval is not the one that Python imports there")

    def pytest(self, files: Sequence[str], seconds: float | None = _SECONDS) -> tuple[int, str]:
        """pytest's status, and what it says; 1 if it does not end."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=seconds,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 1, f"stopped after {seconds} s"
        return done.returncode, done.stdout + done.stderr

    def caught(self, line: Broken) -> tuple[bool, str]:
        """Whether the tests fail with the broken line, and which one."""
        path = line.place(self.root)
        path.write_text(path.read_text("utf-8").replace(line.line, line.broken), "utf-8")
        try:
            status, said = self.pytest(line.test_files())
        finally:
            shutil.copy2(line.place(ROOT), path)
        if status not in (0, *_CAUGHT):
            raise SystemExit(f"{line.what}: pytest ends with status {status}\n{said[-2000:]}")
        failed = [text for text in said.splitlines() if text.startswith(("FAILED", "ERROR", "stopped"))]
        return status in _CAUGHT, failed[0].split(" - ")[0] if failed else ""


def not_there(lines: Sequence[Broken]) -> list[str]:
    """Sentences about lines that do not stand once in their file, and about test files that are missing."""
    found = []
    for line in lines:
        path = line.place(ROOT)
        times = _text(path).count(line.line)
        if times != 1:
            found.append(f"{line.what}: {line.file} has it {times} times: {line.line}{line.nearest()}")
        found += [f"{line.what}: there is no {name}" for name in line.test_files() if not (ROOT / name).exists()]
    return found


def follow(lines: Sequence[Broken], source: str) -> str:
    """This file, with the places where its lines are now."""
    for line in lines:
        now = line.followed()
        head, what, entry = source.partition(f'Broken("{line.what}", ')
        for old, new in ((line.file, now.file), (line.tests, now.tests)):
            entry = entry.replace(f'"{old}"', f'"{new}"', 1)
        source = head + what + entry
    return source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="lines whose description or file holds such a text")
    parser.add_argument("--list", action="store_true", help="show the lines, and break none")
    parser.add_argument("--follow", action="store_true", help="write where lines and tests are now, and break none")
    parser.add_argument("-j", type=int, default=2, dest="workers", metavar="WORKERS", help="runs at a time")
    asked = parser.parse_args()
    if asked.follow:
        Path(__file__).write_text(follow(LINES, Path(__file__).read_text("utf-8")), "utf-8")
        return 0
    lines = [
        line.followed() for line in LINES if any(text in f"{line.what} {line.file}" for text in asked.only or [""])
    ]
    if not lines:
        print(f"no broken line has {' or '.join(map(repr, asked.only))} in its name or file; --list shows all")
        return 2
    if asked.list:
        for line in lines:
            print(f"{line.file}: {line.what}\n  - {line.line}\n  + {line.broken}\n  {line.tests}")
        return 0
    if wrong := not_there(lines):
        print(*wrong, sep="\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="jaxeval-broken-lines-") as folder:
        copies: queue.Queue[_Copy] = queue.Queue()
        for k in range(max(min(asked.workers, len(lines)), 1)):
            root = Path(folder, str(k))
            root.mkdir()
            copies.put(_Copy(root.resolve(), Path(folder, "programs")))

        # Tests that fail without a broken line catch nothing. This run also compiles most of what the others need.
        whole = copies.get()
        status, said = whole.pytest(sorted({file for line in lines for file in line.test_files()}), None)
        copies.put(whole)
        if status:
            print(f"the tests fail without a broken line:\n{said[-4000:]}")
            return 2

        def one(line: Broken) -> bool:
            copy, start = copies.get(), time.perf_counter()
            try:
                caught, by = copy.caught(line)
            finally:
                copies.put(copy)
            seconds = time.perf_counter() - start
            print(
                f"{'caught  ' if caught else 'SURVIVED'} {seconds:5.1f} s  {line.file}: {line.what}  {by}", flush=True
            )
            return caught

        with ThreadPoolExecutor(max(asked.workers, 1)) as pool:
            caught = list(pool.map(one, lines))
    print(f"{sum(caught)} of {len(lines)} broken lines are caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
