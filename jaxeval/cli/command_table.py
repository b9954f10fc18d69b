"""The table of commands: what each answers, how it is said in Python, what its files hold, an example, and a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """What is known of a command before it is asked for anything."""

    name: str
    line: str  # what it does, or the question that it answers
    python: str = ""  # the same in Python, of a file FILE: a reader, and an estimator
    needs: str = ""  # what its files hold, in the words of their usual columns
    call: str = ""  # an example, of files that `simulate all` writes
    page: str = ""
    asks: str = ""  # the question that it answers of a file that fits it, where that is not ``line``
    home: str = ""  # its module, which is imported when it is asked for, where that is not the ``name``

    @property
    def in_python(self) -> str:
        """The same in Python, as it is typed."""
        return re.sub(r"([a-z_]+)\(", r"jaxeval.\1(", self.python)


#: The table of commands, by the question that they answer. Help, the look at a file, README and its pages follow it.
COMMANDS: Mapping[str, Sequence[Row]] = {
    "Which model is better?": (
        Row("leaderboard", "Rate models from votes: who met whom, and who won.", "leaderboard(read_battles(FILE))",
            "votes: model_a, model_b, winner; or counts: model_a, model_b, wins_a, ties, wins_b",
            "votes.parquet --by language --html board.html", "boards-of-votes.md",
            asks="Ratings, with intervals and ranks"),
        Row("rankings", "Rate items from rankings of two or more.", "leaderboard(read_rankings(FILE))",
            "ranking, as a > b = c; or item, rank and the ranking that they belong to", "rankings.csv",
            "tasks/rate-models-from-rankings.md", asks="Ratings of the items", home="leaderboard"),
        Row("panel", "Rate models from the verdicts of several judges.", "fit_judge_panel(TABLE)",
            "judge, item, model_a, model_b, verdict; or a column of verdicts for each judge", "panel.parquet",
            "judge-panels.md", asks="Ratings, and how far each judge follows them", home="leaderboard"),
        Row("anchored", "Rate models that all met the same reference.", "anchored_scores(read_anchored_verdicts(FILE))",
            "model, verdict (win, tie, loss), and judge, anchor, task, item, run if there are any", "anchored.csv",
            "tasks/scores-against-a-reference.md", asks="Ratings above the reference"),
        Row("scores", "Rank models by their scores on a benchmark.", "score_leaderboard(read_scores(FILE))",
            "model, item, score; or what lm-evaluation-harness, Inspect and others wrote", "scores.csv", "scores.md",
            asks="A leaderboard of scores, with intervals"),
        Row("index", "Put models on one scale by many benchmarks.", "capability_index(TABLE)",
            "model, benchmark, score: shares of right answers", "benchmarks.csv", "capability-index.md",
            asks="What do the benchmarks say together?", home="headline"),
        Row("horizons", "How long are the tasks that agents solve?", "time_horizons(TABLE)",
            "agent, task, family, minutes (of people), success", "runs.csv", "time-horizons.md", home="headline"),
    ),
    "What differs, and is it more than chance?": (
        Row("compare-boards", "Which models moved between two boards of votes?",
            "compare_boards(read_battles(FILE), read_battles(OTHER))", "",
            "votes.parquet --by language --slices English,Chinese", "comparing-boards.md"),
        Row("compare-scores", "Is one model better than another on the same items?",
            "compare_scores(read_scores(FILE), A, B)", "", "model-1 model-2 scores.csv",
            "tasks/paired-test-for-two-evaluation-runs.md",
            asks="Is one model better than another, on the same items?"),
    ),
    "Can I believe it?": (
        Row("audit", "Do the votes support their leaderboard?", "audit(read_battles(FILE))", "",
            "votes.parquet --voter voter --time time", "audit.md", asks="Can the leaderboard be believed?",
            home="agreement"),
        Row("agreement", "Do judges agree with people, and where do they err?", "judge_agreement(TABLE)",
            "judge, item, verdict, and human labels in human",
            "judges.csv --human human,expert --judges judge-1,judge-2",
            "tasks/is-my-llm-judge-good-enough.md", asks="Can the judges be trusted?"),
        Row("error-budget", "Which error is it: of items, judges, prompts, seeds?",
            "error_budget(TABLE, FACETS)", "", "facets.csv --random judge,prompt", "which-error.md",
            asks="Which error is it: of items, or of what else was sampled?", home="compare_scores"),
        Row("meta", "Which benchmarks or judges rank models as people do?", "compare_evaluators(TABLE, GOLD)",
            "a row for each model, and columns of scores, one of them gold", "evaluators.csv --gold arena",
            "tasks/does-my-evaluator-rank-like-people.md", asks="Which evaluators rank models as the gold scores do?"),
    ),
    "How much can a judge do in place of people?": (
        Row("judge", "How often are models right? A judge's count, corrected.",
            "judge_accuracy(read_judged_answers(LABELLED), read_judged_answers(FILE))",
            "model, item, judgment (0 or 1), and human for some",
            "--calibration labelled.csv --test answers.csv --judgment judge-1 --model model --item item",
            "tasks/rogan-gladen.md", asks="How often are models right, the judge's errors corrected?",
            home="judged_scores"),
        Row("soft-elo", "Ratings as people's votes give them, from a judge's scores.",
            "soft_elo(read_judged_battles(FILE))", "model_a, model_b, a judge's scores_a and scores_b, and human",
            "merge judged.csv --new new.csv", "tasks/soft-elo.md",
            asks="Ratings on people's scale, and how close the judge comes"),
    ),
    "What should be judged next?": (
        Row("next", "Which battles tell most, or how many votes are needed?",
            "next_battles(fit_bradley_terry(read_battles(FILE)), K)", "", "votes.parquet --k 200 --top-size 3",
            "what-to-judge-next.md", asks="Which battles tell most?", home="next_battles"),
        Row("plan-scores", "How many items or trials does a benchmark need?", "plan_scores(read_scores(FILE))",
            home="compare_scores"),
    ),
    "How does it look?": (
        Row("demo", "Rate simulated votes, and draw their leaderboard.", "leaderboard(simulate_battles())",
            home="leaderboard"),
        Row("simulate", "Write example files for all other commands.", "simulate_votes()"),
        Row("page", "Write a page that rates votes in a browser.",
            "page(leaderboard(read_battles(FILE)), PAGE)", home="publishing"),
    ),
}  # fmt: skip
ROWS = {row.name: row for rows in COMMANDS.values() for row in rows}
