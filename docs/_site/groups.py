"""Which public name stands in which group of the API reference."""

import jaxeval
from jaxeval import plots

#: Title, what it is for, and the modules of `jaxeval` (or packages) whose public names it has. A name goes to the group
#: that names the most of its module's path.
GROUPS = [
    ("Votes and other data", "Read, check, count and keep what people and judges said.", ["data"]),
    ("Boards", "Ratings of votes and rankings, with intervals from resamples, ranks and tiers.", ["ratings"]),
    (
        "Covariates and ties",
        "Style control, the advantage of a side, and what a tie is.",
        ["data.features", "ratings.contextual_fit", "ratings.contextual_effects"],
    ),
    (
        "Boards compared",
        "Who moved between two boards, and by how much.",
        ["ratings.board_comparison", "ratings.compare_boards"],
    ),
    ("Can a board be believed?", "How few votes decide, whether the model fits, who votes, and drift.", ["audits"]),
    ("What to judge next", "The battles that tell most, and how many votes a question takes.", ["planning"]),
    ("Scores on items", "Benchmarks: models, items, trials, and paired comparisons of models.", ["scores"]),
    (
        "Accuracy by judges",
        "Accuracies of models by imperfect judges, corrected by labels of people.",
        ["accuracy"],
    ),
    (
        "People and judges",
        "Whether judges agree with people, few votes beside many verdicts, and panels without people.",
        ["agreement", "data.verdict_rows", "ratings.panel_ratings", "ratings.prediction_powered"],
    ),
    ("Ratings from judges' scores", "Soft-Elo: judges' scores on the scale of people's votes.", ["softelo"]),
    ("Ratings against a reference", "Wins, ties and losses against a fixed reference model.", ["anchored"]),
    (
        "Benchmarks of benchmarks",
        "Whether an evaluator ranks models as people do, and which references a ranking needs.",
        ["evaluators", "lab.reference_study"],
    ),
    (
        "Headline numbers",
        "Time horizons of agents, an index of capability, and fronts of cost and quality.",
        ["capability"],
    ),
    ("Your own estimator", "Any JAX function of weights and data, resampled, or with groups left out.", ["engine"]),
    (
        "Draws, tables and files",
        "Joint draws of any estimator, and what is written for others.",
        ["statistics", "data.saved_results", "show", "data.model_tables"],
    ),
    ("Pages", "Leaderboards that refit in the reader's browser.", ["pages"]),
    ("Simulated data", "Data whose truth is known.", ["data.simulated_votes", "lab.simulate", "lab.accuracy_studies"]),
    (
        "Runs and errors",
        "Several processes, compiled programs, and what goes wrong.",
        ["errors", "execution", "kernels.batch.programs", "_version"],
    ),
]  # fmt: skip


def grouped() -> dict[str, list[str]]:
    """Public names by the title of their group."""
    owners = {owner: title for title, _, modules in GROUPS for owner in modules}
    found: dict[str, list[str]] = {title: [] for title, *_ in GROUPS}
    for module, names in vars(jaxeval)["_HOMES"].items():
        alike = [owner for owner in owners if f"{module}.".startswith(f"{owner}.") or module.startswith(f"{owner}_")]
        if not alike:
            raise ValueError(
                f"{names}: no group of the reference takes names of {module}; see GROUPS in docs/_site/groups.py"
            )
        found[owners[max(alike, key=len)]] += names
    return found


#: Public too, in the modules that have them: what a study of a method takes. The notebooks use them.
STUDIES = {
    "accuracy.calibration_planning": ["judge_pays", "labels_for_length", "minimum_calibration_size", "variance_ratio"],
    "lab.accuracy_studies": ["comparison_study", "coverage_study", "shift_study", "split_study"],
    "anchored.diagnostics": ["diagnose_anchors"],
    "anchored.direct_scoring": [
        "direct_score_agreement", "direct_score_statistics", "direct_win_probability", "dispersion",
    ],
    "anchored.reliability": ["judge_kappas", "reliability_factor"],
    "anchored.pooling": ["pooled_scores", "pooling_curve"],
    "lab.anchored_tables": ["abstain", "subsample_study"],
    "lab.rating_systems": ["compare_rating_systems"],
    "anchored.scores": ["bootstrap_scores"],
    "anchored.screening": ["width_by_threshold"],
    "lab.simulate.verdicts": ["simulate_anchored_verdicts"],
    "evaluators.comparison": ["evaluator_advice"],
    "evaluators.rank_correlation": ["delta_table"],
    "lab.held_out_sweeps": ["budget_sweep", "conformal_study", "leave_one_out_intervals", "width_decomposition"],
    "softelo.judge_agreement": ["agreement_by_score_gap", "reliability", "residual_ramp"],
    "lab.judge_diagnostics": ["diagnose"],
}  # fmt: skip

#: Where each public name is documented.
PLACES = {
    **{name: f"jaxeval.{module}.{name}" for module, names in STUDIES.items() for name in names},
    **{name: f"jaxeval.plots.{name}" for name in plots.__all__},
    **{name: f"jaxeval.{name}" for name in jaxeval.__all__},
}
