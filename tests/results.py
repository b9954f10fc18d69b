"""Small results of every kind, of models with hostile names, for what all results must do. Each is made once.

Most of their time goes into compiling. So boards have the same models and the same number of resamples, and data that
the first solver of a bootstrap fits in every resample: another solver is another program.
"""

from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import pandas as pd
from evaluated import GAPS, GOLD
from hostile import FORMULAS, LONG, MARKUP, SCRIPTS
from jax.nn import log_sigmoid
from judged import read, residual_table, two_orders

import jaxeval
from jaxeval.anchored.diagnostics import AnchorDiagnostics
from jaxeval.evaluators.model_scores import align_scores
from jaxeval.lab.anchored_tables import Abstention
from jaxeval.lab.held_out_sweeps import conformal_study
from jaxeval.lab.rating_systems import RatingSystems
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

#: Markup, mathematics, a formula of a spreadsheet, what terminals obey, other ways of writing, length, a hidden name.
HOSTILE = [
    MARKUP[0], "$\\frac{1$", FORMULAS[0], "cr\r\nname", "e\x1b]0;bidi\u202eoverride", " ".join(SCRIPTS), LONG[0],
    "_hidden & \"it's\"",
]  # fmt: skip
#: Nothing that is shown may hold them as they are.
OBEYED = "\x1b\r\u202e"


#: Of boards that are resampled, so that they share a program.
N_RESAMPLES = 60


def renamed(frame, names=HOSTILE, columns=("model_a", "model_b")):
    models = sorted(set().union(*(frame[c] for c in columns)), key=str)
    new = dict(zip(models, names, strict=False))
    return frame.assign(**{c: frame[c].map(new) for c in columns})


@cache
def votes():
    return renamed(jaxeval.simulate_battles(1500, 8, seed=1).to_pandas())


@cache
def battles():
    return jaxeval.Battles.from_pandas(votes())


@cache
def error_budget():
    scores = jaxeval.simulate_facet_scores(3, 12, {"judge": 3}, seed=2)
    hostile = dict(zip(sorted(scores["model"].unique()), HOSTILE, strict=False))
    return jaxeval.error_budget(scores.assign(model=scores["model"].map(hostile)), ["judge"])


@cache
def time_horizons():
    runs = jaxeval.simulate_runs(2, 30, 15, 3, seed=2).replace({"agent-1": "$a", "agent-2": "_$b"})
    return jaxeval.time_horizons(runs, n_resamples=N_RESAMPLES, progress=False)


@cache
def capability_index():
    scores = renamed(jaxeval.simulate_benchmark_scores(8, 6, observed=0.9, seed=1), columns=("model",))
    return jaxeval.capability_index(scores, n_resamples=N_RESAMPLES, progress=False)


def own_model():
    """Bradley and Terry's."""

    def choices(parameter, battle):
        z = parameter["strength"][battle["model_a"]] - parameter["strength"][battle["model_b"]]
        return log_sigmoid(z), log_sigmoid(-z)

    return jaxeval.ChoiceModel(choices, {"strength": "model"})


@cache
def board():
    return jaxeval.bootstrap(battles(), N_RESAMPLES, progress=False)


@cache
def powered():
    own = jaxeval.Battles.from_pandas(votes().iloc[:900])
    judged, others = own, jaxeval.Battles.from_pandas(votes().iloc[600:])
    return jaxeval.prediction_powered(own, judged, others, n_resamples=N_RESAMPLES, progress=False)


@cache
def fewest_votes():
    """Of five models, so that there are few votes to choose from: more make wider programs besides."""
    few = battles().filter(models=HOSTILE[:5])
    return jaxeval.fewest_votes(few, n_resamples=N_RESAMPLES, top=[1, 3], progress=False)


@cache
def panel():
    judges = dict(zip(["judge-1", "judge-2", "judge-3"], ["<b>judge", "$x$", "other\x1b"], strict=True))
    own = renamed(jaxeval.simulate_panel(600, 8, seed=1)).replace({"judge": judges})
    return jaxeval.fit_judge_panel(own, 10, progress=False)


@cache
def sliced_votes():
    own = votes()
    own = own.assign(**{"<b>": np.where(np.arange(len(own)) % 2, "$a", "\x1b[2J")})
    return jaxeval.Battles.from_pandas(own)


@cache
def slices():
    return jaxeval.bootstrap(sliced_votes(), N_RESAMPLES, by="<b>", progress=False)


@cache
def categories():
    return jaxeval.small_categories(sliced_votes(), "<b>", N_RESAMPLES)


@cache
def compared_boards():
    first = battles().filter(np.arange(1500) < 1300)
    names = MARKUP[0], FORMULAS[0]
    return jaxeval.compare_boards(first, battles(), names=names, n_resamples=N_RESAMPLES, progress=False)


@cache
def judged_battles():
    return read(renamed(two_orders(m=8)))


@cache
def judge_outputs():
    return jaxeval.JudgeOutputs.from_pandas(
        renamed(jaxeval.simulate_judge_outputs(30, 8, judge_noise=[0.5, 1], unlabelled=0.5, seed=1))
    )


@cache
def soft_elo():
    return jaxeval.soft_elo(judged_battles(), n_resamples=30, progress=False)


@cache
def merged():
    """Of six models whom people voted on, and two that the judge alone has seen."""
    own = replace(read(renamed(two_orders(m=6))), models=judged_battles().models)
    a, b = own.model_a % 6, own.model_b % 6
    a = np.where(np.arange(len(a)) % 4 == 0, 6 + a % 2, a).astype(np.int32)
    new = replace(own, model_a=a, model_b=b)
    return jaxeval.merge_boards(own, new.subset(a >= 6), n_resamples=50)


@cache
def judge_agreement():
    own, rng = votes().copy(), np.random.default_rng(0)
    for name in ("first", "second", "<b>judge", "other\x1b"):
        own[name] = rng.choice(["model_a", "model_b", "tie"], len(own), p=[0.6, 0.3, 0.1])
    own = own.assign(length_a=own.index, length_b=700)
    return jaxeval.judge_agreement(own, ["first", "second"], judges=["<b>judge", "other\x1b"],
                                   shown_first="model_a", n_resamples=50)  # fmt: skip


@cache
def answers():
    frame = jaxeval.simulate_judged_answers([0.9, 0.6, 0.5], q0=[[0.8]], q1=[[0.9]], n_items=300, seed=2)
    frame = renamed(frame, columns=("model",)).rename(columns={"judge-1": "<i>$judge"})
    return jaxeval.JudgedAnswers.from_pandas(frame, judgment="<i>$judge", model="model", item="item")


@cache
def comparison():
    return jaxeval.compare_models(*answers().split(0.4), n_resamples=100, progress=False)


@cache
def verdicts():
    frame = simulate_anchored_verdicts(n_items=40, n_judges=3, run_sd=(0.2, 0.3, 2.0), seed=1)
    frame = renamed(renamed(frame, columns=("model",)), HOSTILE[::-1], columns=("judge",))
    return jaxeval.AnchoredVerdicts.from_pandas(frame)


@cache
def study():
    """Without sets of references, which are a larger program; `lab/test_reference_study.py` draws such figures."""
    return jaxeval.reference_study(battles(), sets=(), budgets=[5, 10], n_repeats=2, n_tiers=2, n_resamples=0)


def evaluators():
    return GAPS.set_axis(HOSTILE[1 : 1 + GAPS.shape[1]], axis=1)


def items():
    frame = pd.DataFrame({"model": HOSTILE * 3, "item": np.repeat([1, 2, 3], 8), "score": np.arange(24.0)})
    return jaxeval.ItemScores.from_pandas(frame)


def item_answers():
    rng, n = np.random.default_rng(0), 20
    right = rng.random((n, len(HOSTILE))) < 1 / (1 + np.exp(rng.normal(size=(n, 1)) - np.arange(-4, len(HOSTILE) - 4)))
    frame = pd.DataFrame(right.astype(float), columns=HOSTILE).rename_axis("item").reset_index()
    return frame.melt("item", var_name="model", value_name="score")


@cache
def item_response():
    return jaxeval.fit_item_response(item_answers(), n_resamples=4, progress=False)


def item_subset():
    return jaxeval.item_subset(item_answers(), 8)


@cache
def rankings():
    orders = np.argsort(np.random.default_rng(0).normal(size=(40, len(HOSTILE))) + np.arange(len(HOSTILE)))
    return jaxeval.Rankings.from_pandas(
        pd.DataFrame({"ranking": [[HOSTILE[k] for k in order[:5]] for order in orders]})
    )


@cache
def goodness():
    return jaxeval.goodness_of_fit(battles(), n_resamples=99, progress=False)


_RESULTS = {
    "Battles": battles,
    "Judgments": lambda: jaxeval.Judgments.from_pandas(battles().to_pandas()),
    "DataReport": lambda: battles().report,
    "BradleyTerryFit": lambda: jaxeval.fit_bradley_terry(battles()),
    "ContextualFit": lambda: jaxeval.fit_bradley_terry(battles(), ties="davidson"),
    "Rankings": rankings,
    "RankingsReport": lambda: rankings().report,
    "NextBattles": lambda: jaxeval.next_battles(jaxeval.fit_bradley_terry(battles()), 30),
    "CapabilityIndex": capability_index,
    "ChoiceModel": own_model,
    "HorizonTrend": lambda: time_horizons().trend({"$a": "2024-01-01", "_$b": "2025-01-01"}),
    "ErrorBudget": error_budget,
    "ParetoFront": lambda: jaxeval.pareto_front(capability_index(), {name: k + 1.0 for k, name in enumerate(HOSTILE)}),
    "TimeHorizons": time_horizons,
    "ModelFit": lambda: jaxeval.fit_model(own_model(), battles()),
    "PlackettLuceFit": lambda: jaxeval.fit_plackett_luce(rankings()),
    "Bootstrap": board,
    "PredictionPoweredBoard": powered,
    "PredictionPoweredFit": lambda: powered().fit,
    "JudgePanel": panel,
    "JudgePanelFit": lambda: panel().fit,
    "ContextualBootstrap": lambda: jaxeval.bootstrap(battles(), N_RESAMPLES, ties="davidson", progress=False),
    "Bootstraps": slices,
    "CategoryBoards": categories,
    "CategoryBoard": lambda: categories()["$a"],
    "CategoryFit": lambda: categories()["$a"].fit,
    "BoardComparison": compared_boards,
    "Draws": lambda: board().joint,
    "JudgedBattles": judged_battles,
    "JudgedReport": lambda: judged_battles().report,
    "JudgeOutputs": judge_outputs,
    "OutputsReport": lambda: judge_outputs().report,
    "SoftElo": soft_elo,
    "MergedBoard": merged,
    "JudgeAgreement": judge_agreement,
    "SoftEloCalibration": lambda: jaxeval.SoftEloCalibration.fit(judged_battles()),
    "CalibratedMethod": lambda: jaxeval.SoftEloCalibration.fit(judged_battles()).methods["hard"],
    "Temperature": lambda: jaxeval.fit_temperature([2, 1, -1, 3, -2, 0.5, -3], [1, 1, 0, 1, 0, 1, 0]),
    "ConformalStudy": lambda: conformal_study(residual_table(), level=0.8, n_repeats=3),
    "JudgedAnswers": answers,
    "AnswersReport": lambda: answers().report,
    "JudgeAccuracy": lambda: comparison().accuracy,
    "ModelComparison": comparison,
    "JudgeReport": lambda: comparison().report(),
    "RoganGladen": lambda: jaxeval.rogan_gladen([0.7, 0.6], 0.8, 0.9, 100, 50, 50),
    "YoudenJ": lambda: jaxeval.youden_j(0.8, 0.9, 50, 50),
    "Allocation": lambda: jaxeval.allocate_calibration(np.array([[100, 200], [300, 400]]), 0.5, 0.8, 0.9, 0),
    "AnchoredVerdicts": verdicts,
    "AnchoredElo": lambda: jaxeval.anchored_elo(5, 10, 3),
    "Icc3": lambda: jaxeval.icc3(np.random.default_rng(0).normal(size=(20, 3)) + np.arange(20)[:, None]),
    "JudgeScreen": lambda: jaxeval.screen_judges(verdicts(), n_resamples=50, progress=False),
    "AnchorDiagnostics": lambda: AnchorDiagnostics(*3 * [pd.DataFrame({"model": HOSTILE})], ["advice"]),
    "Abstention": lambda: Abstention(*2 * [pd.DataFrame({"model": HOSTILE})], verdicts(), 0.5),
    "RatingSystems": lambda: RatingSystems(*2 * [pd.DataFrame({"model": HOSTILE})]),
    "ReferenceStudy": study,
    "ItemScores": items,
    "ItemResponse": item_response,
    "ItemSubset": item_subset,
    "ScoreComparison": lambda: jaxeval.compare_scores(items(), *HOSTILE[:2]),
    "ScoreGate": lambda: jaxeval.score_gate(items(), *HOSTILE[:2], margin=0.1),
    "ModelScores": lambda: align_scores(evaluators(), GOLD),
    "RankEvidence": lambda: jaxeval.rank_evidence(battles(), n_resamples=N_RESAMPLES, progress=False),
    "Replication": lambda: jaxeval.replication(battles(), n_boards=20, n_splits=20, n_resamples=N_RESAMPLES),
    "FewestVotes": fewest_votes,
    "GoodnessOfFit": goodness,
    "Audit": lambda: jaxeval.audit(battles(), n_resamples=N_RESAMPLES, parts=["board"], progress=False),
    "WhoVotes": lambda: jaxeval.who_votes(votes().assign(voter=np.resize(HOSTILE, 1500)), "voter"),
    "Drift": lambda: jaxeval.drift(votes().assign(day=pd.date_range("2026-01-01", periods=1500, freq="h")), "day"),
    "AnytimeIntervals": lambda: jaxeval.anytime_intervals(board()),
    "Table": lambda: jaxeval.leaderboard(slices()),
}
#: Results and data by the name of their class.
RESULTS = {name: cache(make) for name, make in _RESULTS.items()}


def anchored():
    return jaxeval.anchored_scores(verdicts())


def swapped():
    own = anchored()
    return pd.concat([own, own.assign(anchor="$other", rating=own["rating"] + 20)], ignore_index=True)


def intervals():
    table = residual_table(len(HOSTILE)).assign(model=HOSTILE, width=20.0)
    return table.assign(lower=table["judge_elo"] - 10, upper=table["judge_elo"] + 10)


def reliability():
    table = pd.DataFrame({"predicted": [0.6, 0.8], "agreement": [0.5, 0.9], "standard_error": 0.1, "n_battles": 40})
    names = ("ece", "beta", "ece_floor", "ece_debiased", "ece_lower", "ece_upper")
    table.attrs["settings"] = dict.fromkeys(names, 0.1)
    return table


def by_gap():
    table = pd.DataFrame({"lower": [0.0, 2], "upper": [2, np.inf], "agreement": [0.5, 0.9], "n_battles": [9, 60]})
    table.attrs["settings"] = dict.fromkeys(("r", "r_lower", "r_upper"), 0.5)
    return table.assign(standard_error=0.1)


def sweep(**columns):
    return pd.DataFrame({"method": ["hard", "soft", "_$m"], "mae": [30.0, 20, 25], **columns})


def simulated_study():
    return pd.DataFrame({"m": [1, 2] * 2, "bias": [0.1, 0.2] * 2, "estimator": ["naive", "_$e"] * 2})


def effect():
    table = jaxeval.leaderboard(board())
    columns = {"rating_plain": table["rating"] + 5, "rank_plain": table["rank"], "shift": -5.0}
    return table.assign(**columns, shift_lower=-9.0, shift_upper=-1.0)


def coefficients():
    return pd.DataFrame({"coefficient": 0.1, "lower": -0.1, "upper": 0.2, "odds_ratio": np.nan}, HOSTILE)


def history():
    early = jaxeval.leaderboard(
        jaxeval.bootstrap(jaxeval.Battles.from_pandas(votes().head(700)), N_RESAMPLES, progress=False)
    )
    return {date(2026, 1, 1): early, date(2026, 3, 1): jaxeval.leaderboard(board())}


_FIGURES = {
    "plot_accuracy": lambda: (comparison().accuracy,),
    "plot_differences": lambda: (comparison(),),
    "plot_interval_length": lambda: ((0.3, 0.7),),
    "plot_rates": lambda: (comparison().accuracy,),
    "plot_regimes": lambda: ((0.5, 0.9),),
    "plot_study": lambda: (simulated_study(), "m", "bias", "estimator"),
    "plot_judge_agreement": lambda: (judge_agreement(),),
    "plot_anchor_swap": lambda: (swapped(),),
    "plot_anchored": lambda: (anchored(),),
    "plot_pooling": lambda: (
        pd.DataFrame({"n_judges": [1, 2], "empirical": [2.0, 1], "predicted": 1.5, "predicted_observed": 1.0}),
    ),
    "plot_screen": lambda: (RESULTS["JudgeScreen"](),),
    "plot_subsamples": lambda: (
        pd.DataFrame({"n": [10, 20], "empirical": [2.0, 1], "theoretical": 1.5, "corrected": 1.0, "adjusted": 0.9}),
    ),
    "plot_fewest_votes": lambda: (fewest_votes().table,),
    "plot_boards": lambda: tuple(history().values()),
    "plot_comparison": lambda: (compared_boards(),),
    "plot_history": lambda: (history(),),
    "plot_draw_differences": lambda: (board().joint,),
    "plot_draws": lambda: (board().joint,),
    "plot_error_budget": lambda: (error_budget(),),
    "plot_front": lambda: (RESULTS["ParetoFront"](),),
    "plot_index": lambda: (RESULTS["CapabilityIndex"](),),
    "plot_over_time": lambda: (time_horizons(), {"$a": "2024-01-01", "_$b": "2025-01-01"}),
    "plot_success_curves": lambda: (time_horizons(),),
    "plot_ranks": lambda: (board().joint,),
    "plot_agreement": lambda: (jaxeval.agreement_by_gap(evaluators(), GOLD, [2.0, 4.0], n_resamples=30),),
    "plot_rank_change": lambda: (jaxeval.stratified_rank_change(evaluators(), GOLD, n_resamples=30),),
    "plot_tau_delta": lambda: (jaxeval.kendall_tau_delta(evaluators(), GOLD, [2.0, np.inf], n_resamples=30),),
    "plot_battle_counts": lambda: (battles(),),
    "plot_rank_distribution": lambda: (board().joint,),
    "plot_slices": lambda: (jaxeval.leaderboard(slices()),),
    "plot_win_probability": lambda: (board(),),
    "plot_leaderboard": lambda: (jaxeval.leaderboard(slices()),),
    "plot_pair_fit": lambda: (goodness().pairs,),
    "plot_pair_residuals": lambda: (goodness().pairs,),
    "plot_reference_budgets": lambda: (study(),),
    "plot_reference_tiers": lambda: (study(),),
    "plot_references": lambda: (study(),),
    "plot_budget": lambda: (sweep(budget=[10.0, 20, 30], beta=0.5),),
    "plot_calibration": lambda: (by_gap(), reliability()),
    "plot_held_out": lambda: (soft_elo(),),
    "plot_intervals": lambda: (intervals(),),
    "plot_ramp": lambda: (sweep(group=[1, 2, 3], residual=[5.0, 0, -5], standard_error=1.0),),
    "plot_smoothing": lambda: (sweep(constant=[np.nan, np.nan, 0.2]),),
    "plot_coefficients": lambda: (coefficients(),),
    "plot_style_effect": lambda: (effect(),),
}
#: What each figure is drawn of.
FIGURES = {name: cache(make) for name, make in _FIGURES.items()}
