"""Accuracies where judges and prompts are drawn anew, too."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.errors import DataError

RUN = {"n_resamples": 20, "n_halves": 1, "progress": False}
N_PROMPTS = 6


def answers_of(shift, seed=0, n=240):
    """Answers of one model; prompts move the judges' shares by ``shift``."""
    rng = np.random.default_rng(seed)
    label, prompt = (rng.random(n) < 0.65).astype(int), np.arange(n) % N_PROMPTS
    move = shift * rng.permutation(np.linspace(-1, 1, N_PROMPTS))[prompt]
    judged = {f"judge-{j}": (rng.random(n) < np.where(label, 0.85, 0.25) + move).astype(int) for j in range(3)}
    return pd.DataFrame({"item": range(n), "model": "m", "human": label, "prompt": prompt, "one": 1, **judged})


def split(table):
    judges = [name for name in table if name.startswith("judge-")]
    keep = ["prompt", "one"]
    return jaxeval.JudgedAnswers.from_pandas(table, judgment=judges, model="model", item="item", keep=keep).split(1 / 3)


@pytest.fixture(scope="module")
def parts():
    return split(answers_of(0.14))


def widths(found, estimator):
    own = found.table[found.table["estimator"] == estimator]
    return (own["upper_untruncated"] - own["lower_untruncated"]).to_numpy()


def test_prompts_lengthen_the_raw_share_and_cancel_in_what_corrects_it(parts):
    """The interval of the raw share is about Student's of the means of prompts."""
    fixed, found = (jaxeval.judge_accuracy(*parts, random=random, **RUN) for random in ((), "prompt"))
    assert widths(found, "naive").mean() > 1.6 * widths(fixed, "naive").mean()
    assert (widths(found, "ppi_plus_plus") >= widths(fixed, "ppi_plus_plus") - 1e-12).all()
    assert widths(found, "ppi_plus_plus").mean() < widths(found, "naive").mean()
    test = parts[1]
    prompts = pd.DataFrame(test.judgment[:, 0]).groupby(test.covariate("prompt").number[:, 0]).mean()
    by_hand = 2 * 2.5706 * prompts.std() / np.sqrt(N_PROMPTS)  # t with 5 degrees of freedom
    np.testing.assert_allclose(widths(found, "naive"), by_hand, rtol=0.03)
    assert found.over_judges is None
    assert found.answer.sentences[0] == "intervals are for prompts and items like these (6 prompts, 240 items)"
    pd.testing.assert_frame_equal(found.rates, fixed.rates)


def test_judges_like_these(parts):
    """The mean over judges; its error holds what the judges' estimates differ by."""
    found = jaxeval.judge_accuracy(*parts, random=["judge"], **RUN)
    own = found.table[found.table["believe"]]
    (row,) = found.over_judges.to_dict("records")
    assert row["estimate"] == pytest.approx(own["estimate"].mean())
    assert row["standard_error"] ** 2 >= own["estimate"].var() / 3 - 1e-12
    assert row["lower"] < row["estimate"] < row["upper"]
    assert found.answer.sentences[0].startswith("for judges and items like these (3 judges, 240 items): the accuracy")
    pd.testing.assert_frame_equal(found.table, jaxeval.judge_accuracy(*parts, **RUN).table)


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"random": "prompts"}, DataError, "did you mean 'prompt'"),
    ({"random": "one"}, DataError, "one has one level"),
    ({"random": "prompt", "by": "one"}, ValueError, "does not go with by="),
    ({"random": 3}, ValueError, "random must be names of columns, got 3"),
])  # fmt: skip
def test_what_is_refused(parts, options, error, text):
    with pytest.raises(error, match=text):
        jaxeval.judge_accuracy(*parts, **options, **RUN)


def test_what_knows_nothing_of_facets_is_refused(parts):
    found = jaxeval.judge_accuracy(*parts, random="prompt", **RUN)
    for call in (lambda: found.joint, lambda: jaxeval.score_leaderboard(found, judge="judge-0")):
        with pytest.raises(ValueError, match="know nothing of random facets"):
            call()


def test_command(tmp_path):
    table = answers_of(0.14)
    table[::3].to_csv(tmp_path / "labelled.csv", index=False)
    table.drop(index=table.index[::3]).to_csv(tmp_path / "test.csv", index=False)
    line = ["judge", "--calibration", tmp_path / "labelled.csv", "--test", tmp_path / "test.csv", "--resamples", 20]
    line += [word for j in range(3) for word in ("--judgment", f"judge-{j}")]
    result = run(*line, "--calibration-sampling", "random", "--random", "judge,prompt")
    assert result.exit_code == 0, result.output
    assert "for judges, prompts and items like these (3 judges, 6 prompts, 240 items)" in result.output
    assert "Accuracy by judges like these" in result.output
    proposed = "if another evaluation would draw other judges and prompts, --random judge,prompt counts them"
    assert proposed not in result.output
    assert proposed in " ".join(run(*line).output.split())
    result = run(*line, "--random", "prompt", "--compare", "m", "m")
    assert "--random and --compare do not go together" in result.output
