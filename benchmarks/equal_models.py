"""Is a leader named where there is none? Boards of equal models, by how many models, games and ties.

    python benchmarks/equal_models.py
    python benchmarks/equal_models.py --boards 20   # a quick look: nothing is written

Every game is of a pair at random: pairs are equally likely, or lopsided, as the first model is met eight times as often
as the last. A claim is an answer with "ahead of all"; at most 5 % of boards may make one.

The other estimators that print ranks and tiers have equal models, too, of which the first has eight times as many
battles, rankings or verdicts as the last. Counted are leaders, boards of more than one tier, and sets of ranks that do
not hold all ranks.

Of audits of such boards it is counted how often they say what does not hold: that neighbours are told apart, that only
one model may be first, that one number per model does not fit, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, environment, save

import jaxeval
from jaxeval.audits.parts import NotAnsweredError, Severity

MODELS, GAMES, TIES = (2, 3, 6), (2, 5, 20, 40), (0.0, 0.3, 0.9)
LEVEL = 0.95
PAIRS = ("uniform", "lopsided")
DEFAULTS = {"boards": 400, "of_estimators": 100, "resamples": 400}
#: Estimators with more boards, and with more resamples: as many times. Few resamples make critical values uncertain.
MORE = {"accuracies by a judge": 6, "merged board, at .9": 4}
RESAMPLES = {"accuracies by a judge": 5}
#: Models, games and pairs of audited boards.
AUDITED = ((2, 60, "uniform"), (2, 300, "uniform"), (6, 60, "lopsided"), (6, 600, "uniform"), (6, 600, "lopsided"))
#: Six equal models, and how often each is met.
NAMES = [f"model-{k}" for k in range(6)]
SHARES = np.geomspace(8, 1, 6) / np.geomspace(8, 1, 6).sum()
EQUAL = pd.Series(0.0, NAMES)


def equal_models(n_models: int, n_games: int, ties: float, pairs: str, n_boards: int) -> pd.DataFrame:
    """A vote per game on each of the boards."""
    rng = np.random.default_rng([n_models, n_games, round(10 * ties), PAIRS.index(pairs)])
    first, second = np.triu_indices(n_models, 1)
    met = np.geomspace(8, 1, n_models) if pairs == "lopsided" else np.ones(n_models)
    chance = met[first] * met[second]
    pair = rng.choice(len(first), (n_boards, n_games), p=chance / chance.sum())
    result = rng.choice(["tie", "model_a", "model_b"], pair.shape, p=[ties, (1 - ties) / 2, (1 - ties) / 2])
    columns = {"model_a": first[pair].ravel(), "model_b": second[pair].ravel(), "winner": result.ravel()}
    return pd.DataFrame({"board": np.repeat(np.arange(n_boards), n_games).astype(str), **columns})


def cells(n_models: int, n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """How many boards name a leader, by games and ties: all boards are slices of one bootstrap."""
    designs = list(product(GAMES, TIES, PAIRS if n_models > 2 else PAIRS[:1]))
    rows = []
    for n_games, ties, pairs in designs:
        table = equal_models(n_models, n_games, ties, pairs, n_boards)
        found = jaxeval.bootstrap(
            table, n_resamples, by="board", min_slice_battles=1, max_slices=n_boards, progress=False
        )
        claims = sum("ahead of all" in board.first_sentence() for board in found.values())
        rows.append({"models": n_models, "games": n_games, "ties": ties, "pairs": pairs, "boards": len(found),
                     "claims": claims})  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def unequal(rng: np.random.Generator, n: int, ties: float = 0.0) -> pd.DataFrame:
    """Votes of pairs by `SHARES`, with a covariate that sways them."""
    pair = np.array([rng.choice(6, 2, replace=False, p=SHARES) for _ in range(n)])
    length = rng.normal(size=n)
    u = rng.random(n)
    won = (1 - ties) / (1 + np.exp(-0.5 * length))
    winner = np.where(u < won, "model_a", np.where(u < won + ties, "tie", "model_b"))
    names = np.array(NAMES)
    return pd.DataFrame(
        {"model_a": names[pair[:, 0]], "model_b": names[pair[:, 1]], "winner": winner, "length": length}
    )


def sliced(n_boards: int, n_resamples: int, **options: Any) -> Iterator[Any]:
    """Bootstraps of boards of 200 votes."""
    tables = [unequal(np.random.default_rng([6, k]), 200, 0.3).assign(board=k) for k in range(n_boards)]
    found = jaxeval.bootstrap(
        pd.concat(tables), n_resamples, by="board", max_slices=n_boards, progress=False, **options
    )
    yield from found.values()


def rankings(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """60 rankings of three of the models each."""
    for seed in range(n_boards):
        rng = np.random.default_rng([7, seed])
        orders = [" > ".join(rng.choice(NAMES, 3, replace=False, p=SHARES)) for _ in range(60)]
        # Who is drawn first must not win: shuffle.
        orders = [" > ".join(rng.permutation(own.split(" > "))) for own in orders]
        yield jaxeval.bootstrap(jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": orders})), n_resamples)


def panels(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """Four judges of 80 items."""
    for seed in range(n_boards):
        verdicts = jaxeval.simulate_panel(80, discriminations=(0.5, 1, 1, 2), strengths=EQUAL, seed=seed)
        yield jaxeval.fit_judge_panel(verdicts, n_resamples, seed, progress=False)


def powered(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """200 votes and 2,000 verdicts of a judge with tastes."""
    for seed in range(n_boards):
        samples = jaxeval.simulate_verdicts(200, 2_000, strengths=EQUAL, seed=seed, taste=0.5)
        yield jaxeval.prediction_powered(*samples, None, n_resamples, seed, progress=False)


def merged(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """4,000 judged battles of 20 models, of which the judge alone rates two; the level is .9, as there are so few."""
    equal = pd.Series(0.0, [f"model-{k:02d}" for k in range(20)])
    for seed in range(n_boards):
        battles = jaxeval.simulate_judged_battles(4_000, strengths=equal, seed=seed)
        new = (battles.model_a > 17) | (battles.model_b > 17)
        yield jaxeval.merge_boards(
            battles.subset(~new), battles.subset(new), n_resamples=n_resamples, seed=seed, progress=False
        )


def scored(n_boards: int, n_resamples: int, rate: float | None) -> Iterator[Any]:
    """60 items that are right at a ``rate``, or graded where it is None; the last models answer a half of them."""
    for seed in range(n_boards):
        rng = np.random.default_rng([8, seed])
        hard = rng.normal(size=(60, 1))
        of_item = rng.beta(0.5, 0.5, (60, 1)) if rate == 0.5 else rate
        graded = np.round(1 / (1 + np.exp(-hard - rng.normal(size=(60, 6)))), 3)
        values = graded if rate is None else (rng.random((60, 6)) < of_item).astype(float)
        values[30:, 3:] = np.nan
        table = pd.DataFrame(values, columns=NAMES).rename_axis("item").reset_index()
        table = table.melt("item", var_name="model", value_name="score").dropna()
        yield jaxeval.score_leaderboard(table, missing="available", n_resamples=n_resamples, progress=False)


def accuracies(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """300 answers a model, a third of them labelled, by a judge who knows .8 of the wrong and .9 of the right ones."""
    for seed in range(n_boards):
        table = jaxeval.simulate_judged_answers([0.7] * 6, q0=[[0.8]], q1=[[0.9]], n_items=300, seed=seed)
        answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
        accuracy = jaxeval.judge_accuracy(*answers.split(1 / 3, seed), n_resamples=n_resamples, progress=False)
        yield jaxeval.score_leaderboard(accuracy)


def anchored(n_boards: int, n_resamples: int) -> Iterator[Any]:
    """80 verdicts of each model against a reference on the same prompts, two of five of which it wins."""
    for seed in range(n_boards):
        hard = np.random.default_rng([9, seed]).beta(2, 3, 80)
        won = np.random.default_rng([10, seed]).random((80, 6)) < hard[:, None]
        rows = pd.DataFrame(won, columns=NAMES).rename_axis("item").reset_index().melt("item", var_name="model")
        verdicts = rows.assign(verdict=rows["value"].astype(float), judge="judge", anchor="reference")
        yield jaxeval.joint_scores(
            jaxeval.AnchoredVerdicts.from_pandas(verdicts.drop(columns="value")), "model", n_resamples=n_resamples,
            seed=seed, progress=False,
        )  # fmt: skip


ESTIMATORS: dict[str, Callable[[int, int], Iterator[Any]]] = {
    "votes": sliced,
    "votes, Davidson's ties": lambda n, b: sliced(n, b, ties="davidson"),
    "votes, a covariate": lambda n, b: sliced(n, b, features=["length"]),
    "rankings": rankings,
    "panel of judges": panels,
    "prediction-powered": powered,
    "merged board, at .9": merged,
    "scores, right at .5": lambda n, b: scored(n, b, 0.5),
    "scores, right at .9": lambda n, b: scored(n, b, 0.9),
    "scores, right at .99": lambda n, b: scored(n, b, 0.99),
    "scores, graded": lambda n, b: scored(n, b, None),
    "accuracies by a judge": accuracies,
    "verdicts beside a reference": anchored,
}


def claims(board: Any) -> tuple[bool, pd.Series, Any]:
    """Whether a board has a leader, its tiers, and its sets of ranks (M, 2)."""
    if isinstance(board, jaxeval.Draws):
        tiers = board.tiers(LEVEL)
        return bool((tiers == 1).sum() == 1), tiers, board.rank_sets(LEVEL).dropna().to_numpy(int)
    if hasattr(board, "rank_sets"):
        leads = "ahead of all" in board.first_sentence(LEVEL)
        return leads, board.tiers(LEVEL), board.rank_sets(LEVEL).dropna().to_numpy(int)
    table = getattr(board, "table", board)
    leads = "ahead of all" in table.attrs["answer"] if table is not board else (table["tier"] == 1).sum() == 1
    return bool(leads), table["tier"], table[["rank_best", "rank_worst"]].dropna().to_numpy(int)


def estimators(n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """Claims of each of the estimators."""
    rows = []
    for name, make in ESTIMATORS.items():
        leaders, tiers, missed = [], [], []
        for board in make(MORE.get(name, 1) * n_boards, RESAMPLES.get(name, 1) * n_resamples):
            leads, tier, sets = claims(board)
            leaders.append(leads)
            tiers.append(bool((tier.dropna() > 1).any()))
            missed.append(np.mean((sets[:, 0] > 1) | (sets[:, 1] < len(sets))) if len(sets) else 0.0)
        row = {"estimator": name, "boards": len(leaders), "leaders": sum(leaders), "tiers": sum(tiers)}
        rows.append({**row, "rank_sets_missed": float(np.mean(missed)), "date": environment()["date"]})
        print(rows[-1], flush=True)
    return rows


def audits(n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """How many audits make each claim; 199 boards of chance for goodness of fit."""
    rows = []
    for n_models, n_games, pairs in AUDITED:
        votes = equal_models(n_models, n_games, 0.0, pairs, n_boards).astype({"model_a": str, "model_b": str})
        said = []
        for _, board in votes.groupby("board"):
            try:
                ranks = jaxeval.rank_evidence(board.drop(columns="board"), n_resamples=n_resamples, progress=False)
            except NotAnsweredError:  # fewer than two models have a rating
                continue
            only = any(finding.text.startswith("Only 1 ") for finding in ranks.findings())
            own = {"told_apart": bool(ranks.neighbours["told_apart"].any()), "only_one": only}
            if n_models > 2:
                fit = jaxeval.goodness_of_fit(board.drop(columns="board"), n_resamples=199, progress=False)
                circles = [x.severity for x in fit.findings() if "circles" in x.text]
                own |= {"misfit": fit.p_value <= 1 - LEVEL, "pairs": bool((fit.pairs["p_value"] <= 1 - LEVEL).any())}
                own |= {"triads": bool((fit.triads["p_value"] <= 1 - LEVEL).any())}
                own |= {"circles": any(severity > Severity.REASSURING for severity in circles)}
            said.append(own)
        counts = pd.DataFrame(said).sum().astype(int).to_dict()
        rows.append({"models": n_models, "games": n_games, "drawn": pairs, "boards": len(said), **counts})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    rows = []
    for n_models in MODELS:
        rows += cells(n_models, sizes.boards, sizes.resamples)
    others = estimators(sizes.of_estimators, sizes.resamples)
    audited = audits(sizes.boards // 2, sizes.resamples)
    if vars(sizes) == DEFAULTS:
        found = {"cells": rows, "estimators": others, "audits": audited}
        save("equal_models", {"level": LEVEL, **DEFAULTS, **found})


if __name__ == "__main__":
    main()
