"""Strange files through the command: each is refused in a sentence, or its numbers are those of a NumPy twin.

A cell says how a file spells the same votes or scores, and whether it must be accepted. What a refused cell says is
an error in words, and no traceback; what an accepted cell gives is what the twin makes of the votes that the cell
means.
"""

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import twins
from command_line import run

pytestmark = pytest.mark.usefixtures("all_on_the_host")  # as in a process of the command

RNG = np.random.default_rng(0)
A = RNG.integers(4, size=80)
B = (A + RNG.integers(1, 4, size=80)) % 4
Y = RNG.choice([0.0, 0.5, 1.0], size=80, p=[0.3, 0.2, 0.5])
WORDS = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}
ELO = 400 / np.log(10)
ACCEPTED, EITHER, REFUSED = "accepted", "either", "refused"


def votes(names="abcd", **columns):
    """The votes as a table, with models of these names."""
    names = np.array(list(names), dtype=object)
    labels = [WORDS[y] for y in Y]
    return pd.DataFrame({"model_a": names[A], "model_b": names[B], "winner": labels, **columns})


def twin(names="abcd", y=Y, weight=None, a=A, b=B):
    """Ratings by name, from a table of wins that NumPy fits."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    wins = np.zeros((4, 4))
    np.add.at(wins, (a, b), weight * y)
    np.add.at(wins, (b, a), weight * (1 - y))
    theta = twins.newton(wins)
    return dict(zip(map(str, names), 1000 + ELO * (theta - theta.mean()), strict=True))


def csv(frame, **options):
    return frame.to_csv(index=False, **options).encode()


def lines(frame):
    return "".join(json.dumps(row) + "\n" for row in frame.to_dict("records")).encode()


WEIGHTS = RNG.uniform(0.5, 2, 80)
COUNTS = RNG.integers(0, 4, 80)
SOFT = RNG.choice([0.0, 1e-320, 0.25, 0.5, 1 - 2.0**-53, 1.0], 80)
SELF = pd.concat([votes(), pd.DataFrame({"model_a": ["a"] * 5, "model_b": ["a"] * 5, "winner": ["model_a"] * 5})])
PADDED = votes().apply(lambda column: " " + column + "  ")
SWAPPED = pd.DataFrame({
    "model_a": votes()["model_b"], "model_b": votes()["model_a"],
    "winner": votes()["winner"].map({"model_a": "model_b", "model_b": "model_a", "tie": "tie"}),
})  # fmt: skip
SHOUTED = votes().assign(winner=votes()["winner"].str.upper())
DRAWS = votes().assign(winner=votes()["winner"].replace("tie", "Tie (bothbad)"))
WITH_GAP = votes()
WITH_GAP.loc[3, "winner"] = None
NOT_MET = np.arange(80) != 3


class Cell(NamedTuple):
    """A file, and what must become of it."""

    data: bytes
    means: Any = None  # what the twin gives; None for what means nothing
    fate: str = ACCEPTED
    options: tuple[Any, ...] = ()
    ending: str = "csv"


def of_names(names, fate=EITHER):
    return Cell(csv(votes(names)), twin(names), fate)


def of_column(option, values, means=None, fate=ACCEPTED):
    """Votes with a further column; one of targets takes the place of the labels."""
    frame = votes(x=values)
    return Cell(csv(frame.drop(columns="winner") if option == "target" else frame), means, fate, (f"--{option}", "x"))


SOME = {"y": Y[NOT_MET], "a": A[NOT_MET], "b": B[NOT_MET]}
ONE_MORE = {"y": np.append(Y, Y[0]), "a": np.append(A, A[0]), "b": np.append(B, B[0])}

VOTES = {
    "plain": Cell(csv(votes()), twin()),
    "a mark in front, and carriage returns": Cell(b"\xef\xbb\xbf" + csv(votes(), lineterminator="\r\n"), twin()),
    "16 bits a character": Cell(votes().to_csv(index=False).encode("utf-16"), twin()),
    "semicolons": Cell(csv(votes(), sep=";"), twin()),
    "tabs": Cell(csv(votes(), sep="\t"), twin(), ending="tsv"),
    "all cells in quotes": Cell(csv(votes(), quoting=1), twin()),
    "an empty line at the end": Cell(csv(votes()) + b"\n\n", twin()),
    "columns in another order": Cell(csv(votes()[["winner", "model_b", "model_a"]]), twin()),
    "a column of row numbers": Cell(votes().to_csv().encode(), twin()),
    "rows upside down": Cell(csv(votes().iloc[::-1]), twin()),
    "every row twice": Cell(csv(pd.concat([votes()] * 2)), twin()),
    "sides exchanged": Cell(csv(SWAPPED), twin()),
    "spaces around cells": Cell(csv(PADDED), twin(), EITHER),
    "labels in capitals": Cell(csv(SHOUTED), twin(), EITHER),
    "both are bad": Cell(csv(DRAWS), twin()),
    "models against themselves": Cell(csv(SELF), twin(), EITHER),
    "names of digits": of_names(["1", "2", "10", "007"]),
    "names that pandas takes for gaps": of_names(["NA", "null", "None", "nan"]),
    "names of truth values": of_names(["True", "False", "yes", "no"]),
    "names that differ by case": of_names(["a", "A", "b", "B"], ACCEPTED),
    "names that differ by the form of accents": of_names(["\u00e9", "e\u0301", "b", "c"]),
    "names with commas and quotes": of_names(["a,b", 'a"b', "a b", "x;y"], ACCEPTED),
    "a vote without a result": Cell(csv(WITH_GAP), fate=REFUSED),
    "a vote without a result, left out": Cell(csv(WITH_GAP), twin(**SOME), options=("--missing", "drop")),
    "weights": of_column("weight", WEIGHTS, twin(weight=WEIGHTS)),
    "tiny weights": of_column("weight", WEIGHTS * 1e-200, twin(weight=WEIGHTS), EITHER),
    "huge weights": of_column("weight", WEIGHTS * 1e200, twin(weight=WEIGHTS), EITHER),
    "a negative weight": of_column("weight", -WEIGHTS, fate=REFUSED),
    "an infinite weight": of_column("weight", np.where(NOT_MET, 1, np.inf), fate=REFUSED),
    "counts, some 0": of_column("count", COUNTS, twin(weight=COUNTS)),
    "counts as 3.0": of_column("count", COUNTS.astype(float), twin(weight=COUNTS), EITHER),
    "counts of a billion": of_column("count", COUNTS * 10**7, twin(weight=COUNTS)),
    "counts of a quadrillion": of_column("count", COUNTS * 10**13, twin(weight=COUNTS)),
    "half a vote": of_column("count", COUNTS + 0.5, fate=REFUSED),
    "soft targets at the edge": of_column("target", SOFT, twin(y=SOFT)),
    "a target above 1": of_column("target", Y * 2, fate=REFUSED),
    "targets with decimal commas": Cell(
        csv(votes(t=SOFT.round(2)).drop(columns="winner"), sep=";", decimal=","), twin(y=SOFT.round(2)), EITHER,
        ("--target", "t"),
    ),
    "lines of JSON": Cell(lines(votes()), twin(), ending="jsonl"),
    "lines of JSON, with names that are numbers": Cell(
        lines(votes([1, 2, 10, 7])), twin(["1", "2", "10", "7"]), EITHER, ending="jsonl"
    ),
    "lines of JSON with further keys in some": Cell(
        lines(votes())[:-1] + b'\n{"note": 1, ' + lines(votes().iloc[:1])[1:], twin(**ONE_MORE), ending="jsonl"
    ),
    "a table in JSON": Cell(votes().to_json(orient="records").encode(), twin(), ending="json"),
    "cut in the middle of a row": Cell(csv(votes())[:-15], fate=REFUSED),
    "no rows": Cell(b"model_a,model_b,winner\n", fate=REFUSED),
    "nothing": Cell(b"", fate=REFUSED),
    "bytes of no text": Cell(bytes(range(256)) * 4, fate=REFUSED),
}  # fmt: skip


# Counts of a quadrillion are kept and refitted as those of a billion are, by a program that takes a second to compile.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "counts of a billion" else name for name in VOTES]
)
def test_votes(name, tmp_path):
    cell = VOTES[name]
    board = accepted(cell, tmp_path, "leaderboard", "--resamples", 20)
    if board is not None:
        found = dict(zip(board["model"].astype(str), board["rating"], strict=True))
        assert found.keys() == cell.means.keys()
        np.testing.assert_allclose([found[model] for model in cell.means], [*cell.means.values()], atol=1e-4)


def accepted(cell, folder, command, *options):
    """The table of a file that is accepted; None for one that is refused, as it may be, in a sentence."""
    path, out = folder / f"strange.{cell.ending}", folder / "board.parquet"
    path.write_bytes(cell.data)
    result = run(command, path, *options, "--quiet", "--out", out, *cell.options)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if result.exit_code:
        assert cell.fate != ACCEPTED, result.output
        assert "Error: " in result.output
        assert "Traceback" not in result.output
        return None
    assert cell.fate != REFUSED, result.output
    return pd.read_parquet(out)


SCORES = RNG.choice([0.0, 1.0], size=(3, 20), p=[0.4, 0.6])
GRADES = RNG.uniform(size=(3, 20))


def scores(values=SCORES, models="abc"):
    """Scores of three models on twenty items, a row each."""
    index = pd.MultiIndex.from_product([list(models), [f"q{k}" for k in range(20)]], names=["model", "item"])
    return pd.DataFrame({"score": np.asarray(values).reshape(-1)}, index).reset_index()


def means(values=SCORES, models="abc"):
    """Mean and standard error of each model."""
    values = np.asarray(values, float)
    return {model: (row.mean(), row.std(ddof=1) / np.sqrt(len(row))) for model, row in zip(models, values, strict=True)}


RIGHT = np.where(SCORES > 0, "True", "False")
ANSWERS = {
    "plain": Cell(csv(scores()), means()),
    "grades": Cell(csv(scores(GRADES)), means(GRADES)),
    "truth values": Cell(csv(scores(RIGHT)), means(), EITHER),
    "yes and no": Cell(csv(scores(np.where(SCORES > 0, "yes", "no"))), means(), EITHER),
    "percent": Cell(csv(scores(np.where(SCORES > 0, "100%", "0%"))), means(), EITHER),
    "decimal commas": Cell(csv(scores(GRADES.round(3)), sep=";", decimal=","), means(GRADES.round(3)), EITHER),
    "huge grades": Cell(csv(scores(GRADES * 1e100)), means(GRADES * 1e100), EITHER),
    "tiny grades": Cell(csv(scores(GRADES * 1e-100)), means(GRADES * 1e-100), EITHER),
    "a large offset": Cell(csv(scores(1e9 + GRADES.round(3))), means(1e9 + GRADES.round(3)), EITHER),
    "minus zero": Cell(csv(scores(np.where(SCORES > 0, 1.0, -0.0))), means()),
    "names of digits": Cell(csv(scores(models=["1", "01", "10"])), means(models=["1", "01", "10"]), EITHER),
    "rows in another order": Cell(csv(scores().sample(frac=1, random_state=0)), means()),
    "infinite": Cell(csv(scores(np.where(SCORES > 0, np.inf, 0.0))), fate=REFUSED),
    "words": Cell(csv(scores(np.where(SCORES > 0, "good", "so"))), fate=REFUSED),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_scores(name, tmp_path):
    cell = ANSWERS[name]
    board = accepted(cell, tmp_path, "scores", "--resamples", 50)
    if board is None:
        return
    assert {*board["model"].astype(str)} == cell.means.keys()
    for row in board.to_dict("records"):
        mean, error = cell.means[str(row["model"])]
        np.testing.assert_allclose(row["score"], mean, rtol=1e-12)
        np.testing.assert_allclose(row["standard_error"], error, rtol=1e-6)
        assert row["lower"] < mean < row["upper"]


SPELLED = {
    "a mark in front, and carriage returns": lambda frame: (b"\xef\xbb\xbf" + csv(frame, lineterminator="\r\n"), "csv"),
    "decimal commas under a title": lambda frame: (b"Title\n\n" + csv(frame, sep=";", decimal=","), "csv"),
    "16 bits a character": lambda frame: (frame.to_csv(index=False).encode("utf-16"), "csv"),
    "all cells in quotes": lambda frame: (csv(frame, quoting=1), "csv"),
    "tabs, columns in another order": lambda frame: (csv(frame[frame.columns[::-1]], sep="\t"), "tsv"),
    "rows upside down": lambda frame: (csv(frame.iloc[::-1]), "csv"),
    "empty lines": lambda frame: (csv(frame).replace(b"\n", b"\n\n"), "csv"),
    "lines of JSON": lambda frame: (frame.to_json(orient="records", lines=True).encode(), "jsonl"),
    "columns of JSON": lambda frame: (json.dumps(frame.to_dict("list")).encode(), "json"),
}
SOLVED = SCORES.reshape(-1)[:40].astype(int)
JUDGED = np.where(RNG.random(40) < 0.8, SOLVED, 1 - SOLVED)
VERDICTS = RNG.choice(["win", "tie", "loss"], size=40)
WON = Y != 0.5
EVALUATED = pd.DataFrame({"model": [*"abcdefgh"], "gold": GRADES[0, :8].round(3), "other": GRADES[1, :8].round(3),
                          "third": GRADES[2, :8].round(3)})  # fmt: skip


def tau(one, other):
    """Kendall's, of values without ties."""
    return np.mean([np.sign((one[i] - one[j]) * (other[i] - other[j])) for i in range(8) for j in range(i)])


def rogan_gladen():
    sensitivity, specificity = JUDGED[SOLVED == 1].mean(), 1 - JUDGED[SOLVED == 0].mean()
    return (1 - JUDGED[:20].mean() + specificity - 1) / (sensitivity + specificity - 1)


BETTER = max(("other", "third"), key=lambda name: tau(EVALUATED["gold"], EVALUATED[name]))
FIRST, SECOND = np.array([*"abcd"], object)[np.where(Y > 0, (A, B), (B, A))[:, WON]]
RANKED = pd.DataFrame({"voter": np.arange(WON.sum()), "ranking": FIRST + " > " + SECOND})
LABELLED = pd.DataFrame({"item": np.arange(40), "judgment": JUDGED, "human": SOLVED})
LONG = 2.0 ** np.arange(1, 9)  # minutes of eight tasks, of which each agent does four runs
RUNS = RNG.random((2, 8, 4)) < 1 / (1 + LONG / np.array([20, 60])[:, None])[..., None]
GRID = RNG.uniform(size=(3, 8, 2)).round(3)  # models, items, judges
LATER = np.arange(80) >= 50


def horizon(solved):
    """Minutes of the task that an agent solves half of the time, by a logistic curve."""
    x = np.repeat(np.log2(LONG), 4)

    def loss(b):
        z = b[0] + b[1] * x
        return np.mean(np.logaddexp(0, z) - solved.reshape(-1) * z) + 1e-5 / 2 * b[1] ** 2

    a, b = scipy.optimize.minimize(loss, [0.0, -0.5], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15}).x
    return 2 ** (-a / b)


def residual():
    """The variance component of errors of scores with one score in each cell."""
    by = [GRID.mean(axis, keepdims=True) for axis in ((2,), (1,), (0,))]
    ones = [GRID.mean(axes, keepdims=True) for axes in ((1, 2), (0, 2), (0, 1))]
    left = GRID - sum(by) + sum(ones) - GRID.mean()
    return (left**2).sum() / (2 * 7 * 1)


def moved():
    before, after = (twin(y=Y[rows], a=A[rows], b=B[rows]) for rows in (~LATER, LATER))
    return {("model", name, "difference"): after[name] - before[name] for name in before}


def table_of(values, **names):
    """A row for each value, and the names of its place."""
    index = pd.MultiIndex.from_product(list(names.values()), names=list(names))
    return pd.DataFrame({"value": np.asarray(values).reshape(-1)}, index).reset_index()


#: Of a command: its table, its options, where a number stands in its answer (key, value, column), and what it is.
NUMBERS = {
    "meta": (EVALUATED, ("--gold", "gold", "--resamples", 20),
             {("evaluator", BETTER, "tau"): tau(EVALUATED["gold"], EVALUATED[BETTER])}),
    "agreement": (LABELLED.rename(columns={"judgment": "judge_one"}), ("--resamples", 20),
                  {("judge", "judge_one", "agreement"): (JUDGED == SOLVED).mean()}),
    "judge": (LABELLED, ("--resamples", 20), {("estimator", "rogan_gladen", "estimate"): rogan_gladen()}),
    "anchored": (pd.DataFrame({"model": "x", "item": np.arange(40), "verdict": VERDICTS}), ("--resamples", 20),
                 {("model", "x", word): (one == VERDICTS).sum() for word, one in
                  (("wins", "win"), ("ties", "tie"), ("losses", "loss"))}),
    "rankings": (RANKED, ("--resamples", 20), {("model", name, "rating"): rating for name, rating in
                                               twin(y=Y[WON], a=A[WON], b=B[WON]).items()}),
    "compare-boards": (votes(day=np.where(LATER, "y", "x")),
                       ("--by", "day", "--slices", "x,y", "--resamples", 20), moved()),
    "error-budget": (table_of(GRID, model=[*"abc"], item=range(8), judge=["j1", "j2"]).rename(
        columns={"value": "score"}), ("--random", "judge"), {("facet", "residual", "component"): residual()}),
    "horizons": (table_of(RUNS.astype(int), agent=["f", "g"], task=range(8), run=range(4)).assign(
        minutes=np.tile(np.repeat(LONG, 4), 2)).rename(columns={"value": "success"}), ("--resamples", 20),
                 {("agent", name, "horizon"): horizon(solved) for name, solved in zip("fg", RUNS, strict=True)}),
}  # fmt: skip
USUAL = "decimal commas under a title"


COMPILED = ("compare-boards", "error-budget", "horizons")  # seconds each


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.slow) if name in COMPILED else name for name in NUMBERS]
)
@pytest.mark.parametrize("spelled", [USUAL, *(pytest.param(name, marks=pytest.mark.slow)
                                              for name in SPELLED if name != USUAL)])  # fmt: skip
def test_other_commands(spelled, command, tmp_path):
    table, options, means = NUMBERS[command]
    data, ending = SPELLED[spelled](table)
    if command == "judge":  # the answers to rate are those of the first rows, with the other judgment
        (tmp_path / "rated.csv").write_bytes(csv(table.iloc[:20].assign(judgment=1 - table["judgment"][:20])))
        (tmp_path / f"labelled.{ending}").write_bytes(data)
        options = ("--calibration", tmp_path / f"labelled.{ending}", "--test", tmp_path / "rated.csv", *options)
        result = run("judge", *options, "--quiet", "--out", tmp_path / "board.parquet")
        assert result.exit_code == 0, result.output
        board = pd.read_parquet(tmp_path / "board.parquet")
    else:
        board = accepted(Cell(data, ending=ending), tmp_path, command, *options)
    for (key, name, column), value in means.items():
        found = board.loc[(board[key] == name) & (board.get("level", 0.5) == 0.5), column]
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-6 * (column != "rating"))


JUDGED_PAIRS = votes(item=np.arange(80) % 40, judge=np.where(np.arange(80) < 40, "k", "l"))
SHARES = table_of((RNG.binomial(50, 0.5, (5, 4)) / 50).round(2), model=[*"abcde"], benchmark=["p", "q", "r", "s"])
SCORED = votes(human=[WORDS[y] for y in Y], scores_a=RNG.integers(1, 10, 80), scores_b=RNG.integers(1, 10, 80))
#: Commands whose numbers have twins in their own tests: strangely spelled, the same table gives the same ones.
ALIKE = {
    "panel": (JUDGED_PAIRS, ("--resamples", 20)),
    "index": (SHARES.rename(columns={"value": "score"}), ("--resamples", 20)),
    "next": (votes(), ("--k", 5)),
    "audit": (votes(), ("--resamples", 20, "--parts", "board")),
    "soft-elo": (SCORED, ("--resamples", 20)),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ALIKE)
def test_strange_spellings_give_the_same_numbers(command, tmp_path):
    table, options = ALIKE[command]
    spelled = {"plain": lambda frame: (csv(frame), "csv"), **SPELLED}
    spelled.pop("rows upside down", None)  # draws of a panel and of a judge's scores follow the rows
    boards = {}
    for name, spell in spelled.items():
        data, ending = spell(table)
        boards[name] = accepted(Cell(data, ending=ending), tmp_path, command, *options)
    for name, board in boards.items():
        pd.testing.assert_frame_equal(board, boards["plain"], check_dtype=False, rtol=1e-9, obj=name)


def test_an_audit_of_a_strange_file(tmp_path):
    data, ending = SPELLED[USUAL](votes())
    board = accepted(Cell(data, ending=ending), tmp_path, "audit", "--resamples", 20, "--parts", "board")
    (first, one), (second, two) = sorted(twin().items(), key=lambda item: -item[1])[:2]
    assert f"{first} is {one - two:.1f} Elo above {second}" in board["finding"].iloc[0]
