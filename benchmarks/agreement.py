"""Do others compute the same? One comparison a row with every peer that is installed, and with golden files.

    python benchmarks/agreement.py              # all; a peer that is missing keeps its row of an earlier run
    python benchmarks/agreement.py choix scipy  # these alone
    JAXEVAL_DATA=folder python benchmarks/agreement.py   # golden files, too

Each row is saved with the peer's version and the date. ``trust.py`` puts them on a page. Where a peer stops early or
penalises, the row says so, and the difference is its own.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from harness import RESULTS
from scipy import stats
from scipy.special import expit, ndtr

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT

PATH = RESULTS / "agreement.json"
#: What is compared, by peer and what: returns the largest difference, and what to say of it.
COMPARISONS: dict[tuple[str, str, str], Callable[[], float]] = {}
NOTES: dict[tuple[str, str, str], str] = {}


def compared(peer: str, what: str, unit: str, note: str = "") -> Callable[[Callable[[], float]], Callable[[], float]]:
    """Registers a comparison with ``peer``, the name of a distribution, or "golden" for files of the data folder."""

    def register(difference: Callable[[], float]) -> Callable[[], float]:
        COMPARISONS[peer, what, unit] = difference
        NOTES[peer, what, unit] = note
        return difference

    return register


def most(ours: Any, theirs: Any) -> float:
    """The largest absolute difference."""
    return float(np.abs(np.asarray(ours, float) - np.asarray(theirs, float)).max())


def board(link: str = "logit", ties: bool = False) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Votes of 20 models, their numbers, and targets."""
    rng = np.random.default_rng(0)
    theta = rng.normal(0, 0.8, 20)
    a = rng.integers(0, 20, 5000)
    b = (a + rng.integers(1, 20, 5000)) % 20
    p = (expit if link == "logit" else ndtr)(theta[a] - theta[b])
    target = (rng.random(5000) < p).astype(float)
    if ties:
        target = np.where(rng.random(5000) < 0.2, 0.5, target)
    return pd.DataFrame({"model_a": a, "model_b": b, "target": target}), a, b, target


def design(a: np.ndarray, b: np.ndarray, m: int = 20) -> np.ndarray:
    """e_a - e_b without the first model."""
    x = np.zeros((len(a), m))
    x[np.arange(len(a)), a] = 1
    x[np.arange(len(a)), b] -= 1
    return x[:, 1:]


def centred(rest: Any) -> np.ndarray:
    """Strengths with the first model at 0, brought to mean 0."""
    theta = np.r_[0.0, np.asarray(rest, float)]
    return theta - theta.mean()


def logits(fit: Any) -> np.ndarray:
    """Log-strengths by number of the model."""
    return fit.logits.sort_index().to_numpy()


@compared("choix", "Bradley-Terry ratings", "Elo")
def choix_ratings() -> float:
    import choix

    table, a, b, y = board()
    wins = list(zip(np.where(y == 1, a, b), np.where(y == 1, b, a), strict=True))
    return ELO_PER_LOGIT * most(
        logits(jaxeval.fit_bradley_terry(table)), choix.opt_pairwise(20, wins, method="Newton-CG", tol=1e-10)
    )


@compared("choix", "Plackett-Luce strengths", "Elo")
def choix_rankings() -> float:
    import choix

    rng, theta = np.random.default_rng(1), np.linspace(-1, 1, 10)
    orders = [np.argsort(rng.exponential(size=10) / np.exp(theta)) for _ in range(200)]
    some = [order[np.sort(rng.choice(10, 5, replace=False))] for order in orders]
    data = jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": [" > ".join(f"m{k}" for k in o) for o in some]}))
    ours = jaxeval.fit_plackett_luce(data).strengths[[f"m{k}" for k in range(10)]].to_numpy()
    theirs = choix.opt_rankings(10, [list(o) for o in some], method="Newton-CG", tol=1e-10)
    return ELO_PER_LOGIT * most(ours - ours.mean(), theirs - theirs.mean())


@compared("evalica", "Bradley-Terry ratings, ties as half", "Elo")
def evalica_ratings() -> float:
    import evalica

    table, a, b, y = board(ties=True)
    word = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    found = evalica.bradley_terry(list(a), list(b), [word[v] for v in y], tolerance=1e-12, limit=100_000)
    theirs = np.log(found.scores.sort_index().to_numpy())
    return ELO_PER_LOGIT * most(logits(jaxeval.fit_bradley_terry(table)), theirs - theirs.mean())


@compared("arena-rank", "Bradley-Terry ratings", "Elo", "at its own tolerances, which stop before the maximum")
def arena_rank_ratings() -> float:
    ours, theirs = arena_rank()
    return most(ours.ratings.sort_index() - 1000, theirs[0])


@compared("arena-rank", "sandwich errors, as a share", "of 1", "of the half-width of its intervals")
def arena_rank_errors() -> float:
    ours, theirs = arena_rank()
    errors = ours.standard_errors.sort_index().to_numpy()
    return most((theirs[2] - theirs[1]) / 2 / stats.norm.ppf(0.975) / errors, 1.0)


def arena_rank() -> tuple[Any, np.ndarray]:
    from peers import _import_arena_rank, arena_rank_sandwich

    _import_arena_rank()
    table, a, b, y = board(ties=True)
    counts = np.zeros((20, 20, 3))
    np.add.at(counts, (np.minimum(a, b), np.maximum(a, b), place(a, b, y)), 1)
    return jaxeval.fit_bradley_terry(table), arena_rank_sandwich(counts)


def place(a: np.ndarray, b: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Outcomes of the model with the smaller number, as `peers` counts them."""
    from peers import LOSS, TIE, WIN

    y = np.where(a < b, y, 1 - y)
    return np.where(y == 1, WIN, np.where(y == 0, LOSS, TIE))


@compared("scikit-learn", "Bradley-Terry with a covariate, ratings", "Elo")
def scikit_learn_covariate() -> float:
    from sklearn.linear_model import LogisticRegression

    table, a, b, y = board()
    f = np.random.default_rng(2).normal(size=len(y))
    found = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=5000, solver="newton-cholesky")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.fit(np.c_[design(a, b), f], y)
    ours = jaxeval.fit_bradley_terry(
        jaxeval.Battles.from_pandas(table.assign(f=f), target="target", keep=["f"]), features=["f"]
    )
    return ELO_PER_LOGIT * most(ours.logits.sort_index(), centred(found.coef_[0, :-1]))


@compared("scikit-learn", "Cohen's kappa", "")
def scikit_learn_kappa() -> float:
    from sklearn.metrics import cohen_kappa_score

    table = verdicts()
    found = jaxeval.judge_agreement(table, "human", judges=["judge"], item="item", n_resamples=20, progress=False)
    return most(found.table.set_index("judge").loc["judge", "kappa"], cohen_kappa_score(table["human"], table["judge"]))


def verdicts() -> pd.DataFrame:
    rng, names = np.random.default_rng(3), np.array(["model_a", "model_b"])
    human = names[rng.integers(0, 2, 300)]
    judge = np.where(rng.random(300) < 0.6, human, names[rng.integers(0, 2, 300)])
    return pd.DataFrame({"item": range(300), "model_a": "x", "model_b": "y", "human": human, "judge": judge})


def statsmodels_fit(link: str, cluster: bool) -> tuple[Any, Any]:
    import statsmodels.api as sm

    table, a, b, y = board(link)
    voter = np.arange(len(y)) // 10
    family = sm.families.Binomial(sm.families.links.Logit() if link == "logit" else sm.families.links.Probit())
    model = sm.GLM(y, design(a, b), family=family)
    how: dict[str, Any] = (
        {"cov_type": "cluster", "cov_kwds": {"groups": voter, "use_correction": False}}
        if cluster
        else {"cov_type": "HC0"}
    )
    theirs = model.fit(tol=1e-14, maxiter=200, **how)
    battles = jaxeval.Battles.from_pandas(table.assign(voter=voter), target="target", keep=["voter"])
    return jaxeval.fit_bradley_terry(battles, link=link, cluster="voter" if cluster else None), theirs


def mean_gauge_errors(covariance: np.ndarray) -> np.ndarray:
    """Standard errors in the mean gauge of strengths whose first is held at 0."""
    whole = np.zeros((len(covariance) + 1,) * 2)
    whole[1:, 1:] = covariance
    centre = np.eye(len(whole)) - 1 / len(whole)
    return np.sqrt(np.diag(centre @ whole @ centre.T))


@compared("statsmodels", "Bradley-Terry ratings", "Elo")
def statsmodels_ratings() -> float:
    ours, theirs = statsmodels_fit("logit", False)
    return ELO_PER_LOGIT * most(logits(ours), centred(theirs.params))


@compared("statsmodels", "Thurstone's Case V strengths", "probits")
def statsmodels_probit() -> float:
    ours, theirs = statsmodels_fit("probit", False)
    return most(ours.strengths.sort_index(), centred(theirs.params))


@compared("statsmodels", "sandwich errors, as a share", "of 1", "statsmodels takes HC0, as `fit_bradley_terry`")
def statsmodels_sandwich() -> float:
    ours, theirs = statsmodels_fit("logit", False)
    errors = ours.standard_errors.sort_index().to_numpy() / ELO_PER_LOGIT
    return most(errors / mean_gauge_errors(theirs.cov_params()), 1.0)


@compared("statsmodels", "sandwich errors of clusters, as a share", "of 1")
def statsmodels_clusters() -> float:
    ours, theirs = statsmodels_fit("logit", True)
    errors = ours.standard_errors.sort_index().to_numpy() / ELO_PER_LOGIT
    return most(errors / mean_gauge_errors(theirs.cov_params()), 1.0)


@compared("statsmodels", "Wilson's interval of a share, by the naive accuracy", "")
def statsmodels_wilson() -> float:
    from statsmodels.stats.proportion import proportion_confint

    rates = jaxeval.youden_j(0.7, 0.85, 40, 60)
    theirs = [*proportion_confint(28, 40, method="wilson"), *proportion_confint(51, 60, method="wilson")]
    return most([rates.q0_lower, rates.q0_upper, rates.q1_lower, rates.q1_upper], theirs)


@compared("statsmodels", "Holm's adjusted p-values", "")
def statsmodels_holm() -> float:
    from statsmodels.stats.multitest import multipletests

    from jaxeval.statistics.p_values import holm

    p = np.random.default_rng(4).random(50) ** 3
    return most(holm(p), multipletests(p, method="holm")[1])


@compared("statsmodels", "McNemar's exact p-value", "")
def statsmodels_mcnemar() -> float:
    from statsmodels.stats.contingency_tables import mcnemar

    right = np.random.default_rng(5).random((200, 2)) < [0.6, 0.7]
    scores = jaxeval.ItemScores(right.astype(float)[:, None], pd.RangeIndex(200), pd.Index(["s"]), pd.RangeIndex(2))
    found = jaxeval.compare_scores(scores, 0, 1)
    theirs = mcnemar([[0, (right[:, 0] & ~right[:, 1]).sum()], [(right[:, 1] & ~right[:, 0]).sum(), 0]], exact=True)
    return most(found.p_mcnemar, theirs.pvalue)


@compared("ppi-python", "PPI++ estimate of an accuracy", "")
def ppi_estimate() -> float:
    from ppi_py import ppi_mean_pointestimate

    y, f, g = judged()
    return most(jaxeval.ppi_plus_plus(y, f, g, pooled_variance=True).estimate, ppi_mean_pointestimate(y, f, g)[0])


@compared("ppi-python", "PPI++ interval of an accuracy", "")
def ppi_interval() -> float:
    from ppi_py import ppi_mean_ci

    y, f, g = judged()
    ours = jaxeval.ppi_plus_plus(y, f, g, pooled_variance=True)
    return most([ours.lower, ours.upper], [end[0] for end in ppi_mean_ci(y, f, g, alpha=0.05)])


def judged() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    y = (rng.random(900) < 0.7).astype(float)
    f = np.clip(y + rng.normal(0, 0.4, 900), 0, 1)
    return y[:150], f[:150], f[150:]


@compared("ppi-python", "prediction-powered Bradley-Terry ratings", "Elo", "it stops by gradient steps")
def ppi_ratings() -> float:
    from few_votes import against_ppi_python

    return against_ppi_python()["largest_difference_elo"]


@compared("pingouin", "ICC(3,1) and ICC(3,k)", "")
def pingouin_icc() -> float:
    import pingouin

    rng = np.random.default_rng(7)
    table = rng.normal(size=(40, 1)) + rng.normal(size=(40, 5))
    long = pd.DataFrame(table).melt(ignore_index=False, var_name="run").rename_axis("item").reset_index()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pingouin.intraclass_corr(long, targets="item", raters="run", ratings="value")["ICC"]
    ours = jaxeval.icc3(table)
    return most([ours.single, ours.average], [theirs.iloc[2], theirs.iloc[5]])


@compared("krippendorff", "Krippendorff's alpha, nominal, with gaps", "")
def krippendorff_of_labels() -> float:
    import krippendorff

    from jaxeval.statistics.rater_agreement import coincidences, krippendorff_alpha, label_counts

    rng = np.random.default_rng(8)
    codes = rng.integers(0, 3, (30, 4))
    codes[:, 1:] = np.where(rng.random((30, 3)) < 0.6, codes[:, :1], codes[:, 1:])
    codes[rng.random((30, 4)) < 0.1] = -1
    ours = krippendorff_alpha(coincidences(label_counts(codes, 3)).sum(0))
    known = np.where(codes < 0, np.nan, codes.astype(float))
    return most(ours, krippendorff.alpha(known.T, level_of_measurement="nominal"))


@compared("girth", "difficulties, two parameters", "logits", "it stops by steps of 1e-3")
def girth_items() -> float:
    import girth

    rng = np.random.default_rng(9)
    ability, a, d = rng.normal(size=2000), rng.uniform(0.7, 1.8, 24), np.linspace(-1.5, 1.5, 24)
    right = (rng.random((24, 2000)) < expit(a[:, None] * (ability - d[:, None]))).astype(int)
    theirs = girth.twopl_mml(right, options={"quadrature_n": 121, "max_iteration": 200})
    scores = jaxeval.ItemScores(right.astype(float)[:, None], pd.RangeIndex(24), pd.Index(["s"]), pd.RangeIndex(2000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = jaxeval.fit_item_response(scores, kind="2pl", prior_sd=1e3, n_resamples=10, progress=False).items
    difficulty = ours["difficulty"].to_numpy()
    return most(difficulty, theirs["Difficulty"])


@compared("scipy", "Beta intervals of anchored scores", "")
def scipy_beta() -> float:
    wins, ties, losses = np.random.default_rng(10).integers(0, 200, (3, 1000)) + 1
    ours = jaxeval.anchored_elo(wins, ties, losses)
    a, b = wins + ties / 2 + 0.5, losses + ties / 2 + 0.5
    ends = [ours.probability_lower, ours.probability_upper]
    return most(ends, [stats.beta.ppf(0.025, a, b), stats.beta.ppf(0.975, a, b)])


@compared("scipy", "Kendall's tau-b and Spearman's rho, with ties", "")
def scipy_tau() -> float:
    rng = np.random.default_rng(11)
    gold = rng.integers(0, 20, 60).astype(float)
    scores = pd.DataFrame({f"e{k}": (gold + rng.integers(-6, 7, 60)) for k in range(10)})
    ours = jaxeval.rank_agreement(scores, gold, n_resamples=0).pivot_table("value", "evaluator", "measure")
    theirs = [[stats.kendalltau(scores[e], gold)[0], stats.spearmanr(scores[e], gold)[0]] for e in ours.index]
    return most(ours[["kendall_tau", "spearman"]], theirs)


@compared("scipy", "temperature of a judge, by its own minimiser", "of beta")
def scipy_temperature() -> float:
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(12)
    d = rng.normal(0, 2, 2000)
    y = (rng.random(2000) < expit(0.6 * d)).astype(float)
    found = minimize_scalar(lambda beta: np.logaddexp(0, beta * d).sum() - (y * beta * d).sum(), (0.1, 1), tol=1e-12)
    return most(jaxeval.fit_temperature(d, y).beta, found.x)


def data(name: str) -> Path:
    """A file of the data folder."""
    folder = os.environ.get("JAXEVAL_DATA")
    if not folder:
        raise PackageNotFoundError("the data folder: set JAXEVAL_DATA")
    return Path(folder) / name


@compared("golden", "exact Bradley-Terry of five arenas: ratings", "Elo", "an independent Newton's method in float64")
def golden_ratings() -> float:
    return max(most(ours.ratings[own.index], own["rating"]) for ours, own in exact_boards())


@compared("golden", "exact Bradley-Terry of five arenas: sandwich errors", "Elo")
def golden_errors() -> float:
    return max(most(ours.standard_errors[own.index], own["se_sandwich"]) for ours, own in exact_boards())


def exact_boards() -> list[tuple[Any, pd.DataFrame]]:
    golden = pd.read_csv(data("golden_exact_bt.csv.gz"))
    return [
        (jaxeval.fit_bradley_terry(jaxeval.read_battles(data(f"{file}.parquet"), winner=label)), own.set_index("model"))
        for (file, label), own in golden.groupby(["dataset", "label"])
    ]


@compared("golden", "evalica's golden files: log scores", "logits")
def golden_evalica() -> float:
    worst = 0.0
    for name in ("simple", "food", "llmfao"):
        fit = jaxeval.fit_bradley_terry(
            jaxeval.read_battles(data(f"evalica_{name}.csv.gz"), model_a="left", model_b="right")
        )
        golden = pd.read_csv(data(f"evalica_{name}_golden.csv.gz"), dtype={"item": str})
        score = np.log(golden[golden["algorithm"] == "bradley_terry"].set_index("item")["score"])
        worst = max(worst, most(fit.logits[score.index], score - score.mean()))
    return worst


@compared("golden", "arena-rank's golden file, arena27k: ratings", "Elo", "arena-rank stops before the maximum")
def golden_arena_rank() -> float:
    golden, worst = pd.read_csv(data("golden_arena_rank_bt.csv.gz")), 0.0
    golden = golden[golden["dataset"] == "arena27k_human_3judges"]
    for (label, reweighted), own in golden.groupby(["label", "reweighted"]):
        battles = jaxeval.read_battles(data("arena27k_human_3judges.parquet"), winner=label)
        fit = jaxeval.fit_bradley_terry(battles, reweight=bool(reweighted))
        worst = max(worst, most(fit.ratings[own["model"]], own["rating"]))
    return worst


@compared(
    "golden",
    "the Soft-Elo authors' script on their sample: held-out ratings, hard and soft",
    "Elo",
    "ridge 0.005, as there",
)
def golden_soft_elo() -> float:
    battles = jaxeval.read_judged_battles(data("softelo_sample.csv"), label_coding="a_wins_0")
    found = jaxeval.soft_elo(battles, 0.005, n_resamples=0, progress=False).models
    both = found.merge(
        pd.read_csv(data("softelo_sample_reference.csv")), on=["model", "method"], suffixes=("", "_theirs")
    )
    return max(most(both[name], both[f"{name}_theirs"]) for name in ("human_elo", "judge_elo"))


def main() -> None:
    """Compares what can be compared, and saves it."""
    only = sys.argv[1:]
    saved = {tuple(r[k] for k in ("peer", "what", "unit")): r for r in read()}
    for key, difference in COMPARISONS.items():
        peer = key[0]
        if only and peer not in only:
            continue
        try:
            own = version(peer) if peer != "golden" else ""
            found = difference()
        except PackageNotFoundError:
            print(f"{peer} is missing: {key[1]} as of {saved[key]['date'] if key in saved else 'never'}")
            continue
        saved[key] = {
            "peer": peer, "what": key[1], "unit": key[2], "version": own, "largest_difference": found,
            "note": NOTES[key], "date": datetime.date.today().isoformat(),
        }  # fmt: skip
        print(f"{peer:14} {key[1]:70} {found:.1e} {key[2]}", flush=True)
        PATH.write_text(json.dumps([saved[key] for key in COMPARISONS if key in saved], indent=1) + "\n")


def read() -> list[dict[str, Any]]:
    return json.loads(PATH.read_text()) if PATH.exists() else []


if __name__ == "__main__":
    with jax.enable_x64(False):
        main()
