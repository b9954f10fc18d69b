"""The command ``jaxeval meta``: scores beside gold, references from votes, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

from jaxeval import (
    compare_evaluators,
    kendall_tau_delta,
    reference_study,
    simulate_votes,
    smallest_gap,
    stratified_rank_change,
)
from jaxeval.evaluators.comparison import evaluator_advice

B = 20
THREE = ["model-02", "model-07", "model-13"]


pytestmark = pytest.mark.usefixtures("undrawn")


def meta(*arguments):
    result = run("meta", *arguments)
    assert "Traceback" not in result.output
    return result


def words(result):
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def board():
    """12 models, two evaluators: one lacks two of them."""
    rng = np.random.default_rng(0)
    gold = rng.permutation(12) * 10.0 + 1000
    frame = pd.DataFrame({"name": [f"m{k:02d}" for k in range(12)], "people": gold})
    frame["judge x"], frame["judge y"] = (np.round(gold / 10 + rng.normal(0, sd, 12)) for sd in (2, 5))
    frame.loc[[3, 7], "judge y"] = np.nan
    return frame


@pytest.fixture(scope="module")
def scores(board, tmp_path_factory):
    path = tmp_path_factory.mktemp("meta") / "scores.csv"
    board.assign(maker="somebody", nothing=np.nan).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("meta") / "votes.csv"
    simulate_votes(4000, 14, seed=2, popularity_exponent=0.5).to_csv(path, index=False)
    return path


#: Of the study of references.
STUDY = [
    "--deltas",
    "4,12",
    "--budgets",
    "10,40",
    "--studies",
    3,
    "--resamples",
    20,
    "--full",
    "--set",
    ",".join(THREE),
]


@pytest.fixture
def studied(votes, tmp_path, undrawn):
    """What the study of references prints, and its folder."""
    return meta("--votes", votes, *STUDY, "--out", tmp_path / "out"), tmp_path / "out"


@pytest.mark.slow
def test_scores_beside_gold(board, scores, tmp_path):
    options = ["--gold", "people", "--deltas", "1.5,3,6", "--resamples", B, "--improvement", 3, "--full"]
    options += ["--agreement", 0.8]
    said = words(meta(scores, *options, "--out", tmp_path / "out"))
    own = board.set_index("name")
    drawn = {"n_resamples": B}
    tables = {name: pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("tau", "rank_change", "smallest_gap")}
    expected = {
        "tau": kendall_tau_delta(own, "people", [1.5, 3, 6, np.inf], **drawn),
        "rank_change": stratified_rank_change(own, "people", **drawn),
        "smallest_gap": smallest_gap(own, "people", 0.8, **drawn),
    }
    for name, table in expected.items():
        pd.testing.assert_frame_equal(tables[name], table, check_dtype=False, check_frame_type=False, rtol=1e-12)
    row = expected["tau"].query("evaluator == 'judge x' and delta == inf").iloc[0]
    assert f"{row['tau']:.3f} (66)" in said
    assert f"[{row['lower']:.2f}, {row['upper']:.2f}]" in said
    n = expected["tau"]["n_pairs"].iloc[0]
    assert n < 15
    assert f"- ({n})" in said  # few pairs are counted, not shown
    assert "12 models, 2 evaluators; gold is people" in said
    assert "tiers are of all models that gold and any evaluator scored" in said
    assert "column 'maker' is left out: it is not numeric (the first such value is 'somebody'" in said
    assert "column 'nothing' is left out: no model has a score in it and a gold one" in said
    assert said.count("models that lack one of the two scores are left out: 2 of 12 (judge y)") == 1
    assert "an improvement of 3 points is one for gold with probability" in said
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"tau.png", "rank_change.png", "curves.png", "improvement.csv", "agreement.csv", "advice.txt"} <= names
    advice = (tmp_path / "out" / "advice.txt").read_text().splitlines()
    assert " ".join(advice[0].split()) in said


@pytest.mark.slow
def test_evaluators_are_compared_first_and_few_pairs_are_hidden(board, scores, tmp_path):
    options = ["--gold", "people", "--deltas", "1.5,3,6", "--resamples", B, "--improvement", 1.5]
    said = words(meta(scores, *options, "--out", tmp_path))
    own = board.set_index("name")
    found = compare_evaluators(own, "people", n_resamples=B)
    read = pd.read_csv(tmp_path / "comparison.csv")
    pd.testing.assert_frame_equal(read, pd.DataFrame(found), check_dtype=False, rtol=1e-12)
    said = said[said.index("Which evaluator ranks most like people") :]
    assert "--full prints 4 more tables: Close models, All models, Rank change by tier" in said
    (row,) = found.itertuples()
    first, second = (said.index(f"{name} ") for name in (row.evaluator, row.other))
    assert first < second
    assert f"{row.difference:.3f} ({row.n_pairs}) " in said
    assert f"[{row.lower:.2f}, {row.upper:.2f}]" in said
    advice = (tmp_path / "advice.txt").read_text()
    assert advice.startswith(f"{row.evaluator} ranks most like gold: ")
    improvement = pd.read_csv(tmp_path / "improvement.csv")
    assert (improvement["n_pairs"] < 15).all()
    assert improvement["average_below"].notna().all()
    for n in improvement["n_pairs"]:
        assert f"below it - ({n})" in said
    assert "below it" not in advice
    everything = words(meta(scores, *options, "--few-pairs"))
    assert f"below it {improvement['average_below'][0]:.3f} ({improvement['n_pairs'][0]})" in everything


def test_one_evaluator_is_compared_with_none(scores):
    said = words(meta(scores, "--gold", "people", "--evaluator", "judge x", "--deltas", "1.5,3,6", "--resamples", B))
    assert "Which evaluator" not in said


@pytest.mark.slow
def test_all_pairs_shown_and_no_intervals(board, scores):
    options = ["--gold", "people", "--model", "name", "--evaluator", "judge x", "--resamples", 0, "--deltas", 1.5]
    said = words(meta(scores, *options, "--few-pairs", "--tiers", 4))
    row = kendall_tau_delta(board.set_index("name")[["judge x"]], board["people"].to_numpy(), [1.5], n_resamples=0)
    assert f"{row['tau'][0]:.3f} ({row['n_pairs'][0]})" in said
    assert "no resamples, so no intervals" in said
    assert "[" not in said.split("no resamples")[0]
    assert "judge y" not in said


def test_parquet_with_the_models_in_the_index(board, tmp_path):
    path = tmp_path / "scores.parquet"
    constant = board.assign(flat=3.0).set_index("name")[["people", "judge x", "flat"]]
    constant.to_parquet(path)
    said = words(meta(path, "--gold", "people", "--resamples", B, "--deltas", "1.5,3,6"))
    assert "12 models, 2 evaluators" in said
    assert "flat: no tau, scores are constant" in said


def test_rows_without_a_model_are_counted(board, tmp_path):
    path = tmp_path / "scores.csv"
    pd.concat([board, board[:1].assign(name=None)]).to_csv(path, index=False)
    said = words(meta(path, "--gold", "people", "--resamples", B, "--deltas", "1.5,3,6"))
    assert "left out: 1 row without a model in column 'name'" in said


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "which column has the gold scores? Name it with --gold; there are name, people"),
    (["--gold", "nobody"], "no column 'nobody'"),
    (["--gold", "maker"], "column 'maker' is not numeric (the first such value is 'somebody'"),
    (["--gold", "people", "--evaluator", "people"], "cannot be an evaluator too"),
    (["--gold", "people", "--model", "who"], "no column 'who'"),
])  # fmt: skip
def test_bad_scores_are_one_message(scores, arguments, message):
    result = meta(scores, *arguments)
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "give a FILE of scores with --gold, or --votes FILE"),
    (["--votes", "VOTES", "SCORES"], "give a FILE of scores with --gold, or --votes FILE"),
    (["SCORES", "--gold", "people", "--winner", "w"], "--winner is only with --votes"),
    (["--votes", "VOTES", "--improvement", 2], "--improvement is only for a FILE of scores"),
    (["SCORES", "--gold", "people", "--deltas", "2,no"], "'2,no' is not a list of numbers above 0"),
    (["--votes", "VOTES", "--budgets", "2.5"], "'2.5' is not a list of whole numbers above 0"),
])  # fmt: skip
def test_bad_options_are_one_message(scores, votes, arguments, message):
    result = meta(*({"VOTES": votes, "SCORES": scores}.get(a, a) for a in arguments))
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(("arguments", "message"), [
    (["--reference", "nobody"], "no model nobody on the board"),
    (["--set", "model-02"], "sets need two references or more"),
    (["--winner", "label"], "no column 'label'"),
])  # fmt: skip
def test_bad_votes_are_one_message(votes, arguments, message):
    result = meta("--votes", votes, *arguments)
    assert result.exit_code == 1
    assert message in result.output


def test_a_file_without_evaluators(board, tmp_path):
    path = tmp_path / "lonely.csv"
    board[["name", "people"]].to_csv(path, index=False)
    assert "there is no evaluator" in meta(path, "--gold", "people").output
    board[["people", "judge x"]].to_csv(path, index=False)
    assert "which one names the models? Name it with --model" in meta(path, "--gold", "people").output


@pytest.mark.slow
def test_references(votes, studied):
    result, out = studied
    said = words(result)
    sets = {",".join(THREE): THREE}
    options = {"deltas": (4.0, 12.0), "budgets": (10, 40), "sets": sets, "n_repeats": 3, "n_resamples": 20}
    study = reference_study(pd.read_csv(votes), **options)
    written = pd.read_csv(out / "by_reference.csv")
    pd.testing.assert_frame_equal(written, study.by_reference, check_dtype=False, rtol=1e-9)
    best = study.by_reference.iloc[0]
    assert f"{best['tau']:.3f} [{best['tau_lower']:.2f}, {best['tau_upper']:.2f}]" in said
    row = study.by_budget.query("n_references == 3 and budget == 40 and delta == inf").iloc[0]
    assert f"{row['misordered']:.3f} ({row['n_pairs']:.0f})" in said
    assert "4,000 rows: 4,000 battles between 14 models" in said
    assert "95% intervals, 20 resamples of votes, seed 0" in said
    assert " ".join(study.advice[0].split()) in said
    names = {path.name for path in out.iterdir()}
    assert {"references.png", "tiers.png", "budgets.png", "by_budget.csv", "by_test_tier.csv"} <= names


def test_advice_on_one_evaluator_without_a_name(board):
    own = board.set_index("name")
    taus = kendall_tau_delta(own["judge x"], own["people"], [3.0, 50.0, np.inf], n_resamples=0)
    sentences = evaluator_advice(taus, few_pairs=0)
    assert len(sentences) == 1
    assert sentences[0].startswith("tau 0.")
    assert "within 3 points" in sentences[0]
    wide = evaluator_advice(taus[taus["delta"] > 40])
    assert wide[0].endswith("all of them lie under every delta, so choose smaller ones")


def test_labels_of_votes(votes, scores, tmp_path):
    frame = pd.read_csv(votes)
    numbers = {"model_a": 1, "model_b": 2, "tie": 0, "both_bad": 0}
    frame.assign(winner=frame["winner"].map(numbers)).to_csv(tmp_path / "votes.csv", index=False)
    options = ["--votes", tmp_path / "votes.csv", *STUDY, "--out", "-"]
    assert "numbers are never guessed" in meta(*options).output
    labelled = meta(*options, "--labels", "1=model_a,2=model_b,0=tie")
    assert labelled.exit_code == 0, labelled.output
    assert labelled.stdout == meta("--votes", votes, *options[2:]).stdout
    assert "--labels is only with --votes" in meta(scores, "--gold", "people", "--labels", "a_wins_1").output
