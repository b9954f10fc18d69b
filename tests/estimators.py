"""Every estimator that resamples, on small data: what to call, how to read its draws, and which invariances it owes.

`ESTIMATORS` is the table, and ``tests/test_invariances.py`` the tests. All boards have one shape, so that estimators
share their compiled programs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from answers import simulate
from jax.nn import log_sigmoid
from ranked import named, simulated
from scipy.special import expit
from scored import answers as scored_answers

import jaxeval
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

M, N, B = 8, 300, 24
MODELS = [f"m{k}" for k in range(M)]
RUN = {"n_resamples": B, "chunk_size": B, "progress": False}

#: What an estimator owes, unless its entry says why not.
INVARIANCES = {
    "names": "models of other names, in another order, have the same estimates",
    "spelling": "names in the same order have the same draws",
    "rows": "the order of rows does not matter",
    "sides": "nor which of the two is side A",
    "weights": "a weight of 2 is the row twice",
    "counts": "equal rows counted are the rows",
    "alone": "a part of a run has the draws that it has alone, where arrays have other sizes",
    "seed": "another seed has the same estimates and other draws",
    "chunks": "chunks of 1, 7 and all resamples have the same draws",
    "first": "the first resamples are those of a run of fewer",
    "devices": "one device and four have the same draws",
    "checkpoint": "a run that stopped goes on with the same draws",
    "more": "a run that is finished goes on with more resamples",
    "memory": "a limit on memory makes chunks smaller, and changes nothing else",
}

#: Invariances that hold to the bit: the same numbers are added up in the same order. Of chunks, those of 7: the program
#: of a single lane is another one.
TO_THE_BIT = ("chunks", "first", "devices")

Data = Mapping[str, pd.DataFrame]
Labels = Mapping[str, str]


class Found(NamedTuple):
    """What an estimator says, by label; a label is a name, or a tuple with names of models in it."""

    estimate: pd.Series  # of the data
    draws: pd.DataFrame | None  # a row a resample
    ends: pd.Series  # of intervals, and whatever else rests on all draws


@dataclass(frozen=True)
class Estimator:
    """One entry of the table."""

    name: str  # of a public function, and of the options that choose another kernel
    data: Callable[[], Data]
    call: Callable[..., Any]  # of the data and `RunOptions`
    read: Callable[[Any], Found]
    alone: Callable[..., Any] | None = None  # the same call for a part of the data
    without: Mapping[str, str] = field(default_factory=dict)  # reasons, by the invariance that is not owed
    slow: bool = False  # most of its path is that of another entry, or its programs take long
    atol: float = 1e-9  # between sums in another order
    rounded: tuple[str, ...] = ()  # invariances of `TO_THE_BIT` that hold but for the last bits: XLA adds otherwise
    fewer: int = 10  # resamples of a shorter run
    by_kind: bool = False  # kinds of items are drawn in the order of what they hold: estimates alone keep still
    swapped: int = 2  # sides are swapped in every second row; in all where a side may have an advantage

    @property
    def function(self) -> str:
        return self.name.split(",")[0]

    def owes(self, invariance: str) -> bool:
        return invariance not in self.without

    def within(self, invariance: str) -> float:
        """How far apart numbers may be that the invariance calls the same."""
        exact = invariance in TO_THE_BIT and invariance not in self.rounded
        return 0 if exact and not (self.slow and invariance == "devices") else self.atol


# Data. The columns of a table say what it holds: `renamed` and `turned` know them all.

_MODEL_COLUMNS = ("model_a", "model_b", "model")
_SIGNED, _POINTS = ("length", "gap"), ("target",)
_TURNED = {"model_a": "model_b", "model_b": "model_a"}


def renamed(data: Data, new: Labels) -> Data:
    """The data of models with ``new`` names."""

    def of_table(table: pd.DataFrame) -> pd.DataFrame:
        named = {c: table[c].map(new) for c in _MODEL_COLUMNS if c in table}
        if "ranking" in table:
            named["ranking"] = table["ranking"].str.replace(r"m\d", lambda found: new[found[0]], regex=True)
        return table.assign(**named)

    return {name: of_table(table) for name, table in data.items()}


def shuffled(data: Data) -> Data:
    return each(data, lambda table: table.sample(frac=1, random_state=0))


def turned(data: Data, every: int = 2) -> Data:
    """The sides swapped in ``every`` second row, or in all."""

    def of_table(table: pd.DataFrame) -> pd.DataFrame:
        swap = np.arange(len(table)) % every == 0
        new = {"model_a": table["model_b"], "model_b": table["model_a"]}
        new |= {c: -table[c] for c in _SIGNED if c in table}
        new |= {c: 1 - table[c] for c in _POINTS if c in table}
        words = [c for c in table.columns.difference(list(_MODEL_COLUMNS)) if set(table[c]) & set(_TURNED)]
        new |= {c: table[c].replace(_TURNED) for c in words}
        return table.assign(**{c: table[c].where(~swap, x) for c, x in new.items()})

    return each(data, of_table)


def each(data: Data, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Data:
    return {name: change(table) for name, table in data.items()}


def twice(data: Data) -> Data:
    return each(data, lambda table: pd.concat([table, table]))


def weighted(data: Data) -> Data:
    return each(data, lambda table: table.assign(weight=2.0))


def counted(data: Data) -> Data:
    """Equal rows merged."""
    return each(data, lambda table: table.groupby(list(table), as_index=False).size().rename(columns={"size": "count"}))


@cache
def _all_votes(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a = rng.integers(M, size=n)
    b = (a + rng.integers(1, M, size=n)) % M
    length = rng.integers(-1, 2, size=n)
    z = 0.15 * (b - a) + 0.3 * length
    u = rng.random(n)
    winner = np.where(u < expit(z - 0.3), "model_a", np.where(u > 1 - expit(-z - 0.3), "model_b", "tie"))
    task = np.where((np.maximum(a, b) < 6) & (rng.random(n) < 0.8), "few", "most")
    names = np.array(MODELS)
    return pd.DataFrame(
        {
            "model_a": names[a],
            "model_b": names[b],
            "winner": winner,
            "length": length,
            "task": task,
            "prompt": rng.integers(100, size=n),
            "fold": rng.integers(3, size=n),
        }
    )


def votes(*columns: str) -> Data:
    """Votes with these of the columns length, task, prompt and fold."""
    return {"votes": _all_votes()[["model_a", "model_b", "winner", *columns]]}


def battles(table: pd.DataFrame) -> jaxeval.Battles:
    own = {name: name for name in ("weight", "count") if name in table}
    return jaxeval.Battles.from_pandas(table, **own)


# Results.


def as_series(items: list[tuple[tuple[Any, ...], float]]) -> pd.Series:
    return pd.Series([x for _, x in items], pd.Index([label for label, _ in items], tupleize_cols=False), dtype=float)


def of_joint(*joints: Any) -> Found:
    """Estimates and draws of `Draws`."""
    names = [x if isinstance(x, tuple) else (x,) for joint in joints for x in joint.names]
    columns = pd.Index(names, tupleize_cols=False)
    draws = pd.DataFrame(np.concatenate([joint.draws for joint in joints], axis=1), columns=columns)
    estimate = pd.Series(np.concatenate([joint.estimate for joint in joints]), columns)
    return Found(estimate, draws, pd.Series(dtype=float))


def cells(table: pd.DataFrame, *keys: str) -> pd.Series:
    """The numbers of a table by the keys of their row and the name of their column."""
    numbers = table.set_index(list(keys)).select_dtypes(["number", "bool"]).astype(float)
    rows = [x if isinstance(x, tuple) else (x,) for x in numbers.index]
    return pd.Series(
        numbers.to_numpy().reshape(-1),
        pd.Index([(*row, column) for row in rows for column in numbers], tupleize_cols=False),
    )


_OF_DRAWS = re.compile(
    r"lower|upper|failed|spread|lack_of_fit|median|error|tier|ratio|rank_best|rank_worst|told|share|p_value"
)


def of_table(table: pd.DataFrame, *keys: str) -> Found:
    """A table whose draws are not handed out: ends of intervals and the like rest on them."""
    found = cells(pd.DataFrame(table), *keys)
    drawn = np.array([bool(_OF_DRAWS.search(label[-1])) for label in found.index], bool)
    return Found(found[~drawn], None, found[drawn])


def of_board(board: Any) -> Found:
    if hasattr(board, "joint_coefficients"):
        return of_joint(board.joint, board.joint_coefficients)
    return of_joint(board.joint)


def of_slices(boards: Mapping[Any, Any]) -> Found:
    """Boards by slice, which names the first part of each label."""
    each_of = {name: of_joint(board.joint) for name, board in boards.items()}
    estimate = pd.concat([x.estimate for x in each_of.values()])
    draws = pd.concat([x.draws for x in each_of.values()], axis=1)
    labels = pd.Index([(name, *x) for name, own in each_of.items() for x in own.estimate.index], tupleize_cols=False)
    return Found(estimate.set_axis(labels), draws.set_axis(labels, axis=1), pd.Series(dtype=float))


# The table.

_ONE_BOARD = "a run is one problem: no part of it stands alone"
_NO_COUNTS = "its data have no counts"
_NO_WEIGHTS = "its data have no weights"
_PLAIN_ROWS = {"weights": _NO_WEIGHTS, "counts": _NO_COUNTS}


def _rate(data: Data, **options: Any) -> Any:
    return jaxeval.bootstrap(battles(data["votes"]), **options)


def _home(data: Data, **options: Any) -> Any:
    """A model of one's own: each model has an advantage on side A."""

    def home(parameter: Any, battle: Any) -> Any:
        a, b = battle["model_a"], battle["model_b"]
        z = parameter["strength"][a] - parameter["strength"][b] + parameter["home"][a]
        return log_sigmoid(z), log_sigmoid(-z)

    model = jaxeval.ChoiceModel(home, {"strength": "model", "home": "model"})
    return jaxeval.bootstrap(battles(data["votes"]), model=model, **options)


def _rated(
    name: str, *columns: str, without: Mapping[str, str] = {}, rounded: tuple[str, ...] = (), **options: Any
) -> Estimator:
    """`bootstrap` with other ``options``."""
    return Estimator(
        f"bootstrap, {name}",
        partial(votes, *columns),
        partial(_rate, **options),
        of_board,
        slow=True,
        rounded=rounded,
        without={"alone": "as without options"} | dict(without),
    )


_BOARDS = [
    Estimator("bootstrap", partial(votes, "task"), partial(_rate, by="task"), of_slices,
        alone=lambda data, **run: _rate(each(data, lambda t: t[t["task"] == "few"]), by="task", **run)),
    _rated("method sparse", method="sparse", rounded=("chunks",)),
    Estimator("bootstrap, own model", votes, _home, of_joint, by_kind=True,
        without={"alone": "as without options", "sides": "the model is about sides"}, rounded=("chunks",), slow=True),
    _rated("ties davidson", ties="davidson"),
    Estimator("bootstrap, few votes", lambda: {"votes": _all_votes()[["model_a", "model_b", "winner"]][:50]}, _rate,
        of_board, without={"alone": "as without options"}, slow=True),
    _rated("ties rao_kupper", ties="rao_kupper"),
    _rated("features", "length", features=["length"]),
    _rated("features of clusters", "length", "prompt", features=["length"], ties="davidson", cluster="prompt",
        without={"counts": "no two votes on a prompt are equal"}, rounded=("chunks",)),
    _rated("link probit", link="probit"),
    _rated("link probit, method sparse", link="probit", method="sparse", rounded=("chunks",)),
    _rated("penalty firth", penalty="firth",
        without={"weights": "the penalty is of as many battles as Kish's number of the weights, not of their sum"}),
    _rated("scheme poisson", scheme="poisson"),
    _rated("scheme bayesian", scheme="bayesian", rounded=("chunks",)),
    _rated("cluster", "prompt", cluster="prompt"),
    _rated("strata", "fold", strata="fold"),
    _rated("cluster, method sparse", "prompt", cluster="prompt", method="sparse", rounded=("chunks",)),
]  # fmt: skip


def _rankings() -> Data:
    lists = simulated(120, M, lengths=(2, 5), tied=0.2)
    return {"rankings": pd.DataFrame({"ranking": [named(ranking) for ranking in lists]})}


def _rank(data: Data, **options: Any) -> Any:
    table = data["rankings"]
    own = {name: name for name in ("weight", "count") if name in table}
    return jaxeval.bootstrap(jaxeval.Rankings.from_pandas(table, **own), **options)


def _categories(data: Data, *, by: str = "task", chunk_size: int = B, **options: Any) -> Any:
    return jaxeval.small_categories(battles(data["votes"]), by, **options)


_NOT_LANES = dict.fromkeys(
    ("chunks", "devices", "checkpoint", "more", "memory"),
    "its draws are of a posterior in closed form, and not of lanes",
)


def _powered() -> Data:
    table, rng = _all_votes(1200), np.random.default_rng(1)
    target = table["winner"].map({"model_a": 1.0, "tie": 0.5, "model_b": 0.0})
    own = table[["model_a", "model_b"]].assign(target=target, task=table["task"])
    judged = own.assign(target=target.where(rng.random(1200) < 0.7, rng.choice([0.0, 0.5, 1.0], 1200)))
    return {"human": own[:N], "judged": judged[:N], "unlabelled": judged[N:]}


def _power(data: Data, **options: Any) -> Any:
    # Rows of people and of the judge belong together: they are joined by their place.
    samples = [jaxeval.Battles.from_pandas(table.sort_index(), target="target") for table in data.values()]
    return jaxeval.prediction_powered(*samples, **options)


def _verdicts_of_panel() -> Data:
    table, rng = _all_votes(150), np.random.default_rng(2)
    own = [
        table[["model_a", "model_b", "task"]].assign(
            item=np.arange(150),
            judge=judge,
            winner=table["winner"].where(rng.random(150) < sure, rng.choice(["model_a", "model_b"], 150)),
        )
        for judge, sure in (("x", 0.9), ("y", 0.7), ("z", 0.5))
    ]
    return {"verdicts": pd.concat(own, ignore_index=True)}


def _panel(data: Data, **options: Any) -> Any:
    return jaxeval.fit_judge_panel(data["verdicts"], **options)


def _two_boards() -> Data:
    table = _all_votes()[["model_a", "model_b", "winner"]].reset_index(names="vote")
    return {"a": table[:200], "b": table[100:]}


def _compare(data: Data, **options: Any) -> Any:
    return jaxeval.compare_boards(data["a"], data["b"], id="vote", **options)


def _effect(data: Data, **options: Any) -> Any:
    return jaxeval.style_effect(battles(data["votes"]), ["length"], **options)


_BOARDS += [
    Estimator(
        "bootstrap, rankings",
        _rankings,
        _rank,
        of_board,
        without={"alone": _ONE_BOARD, "sides": "rankings have no sides"},
        slow=True,
    ),
    Estimator(
        "small_categories",
        partial(votes, "task"),
        _categories,
        of_slices,
        slow=True,
        without=_NOT_LANES
        | {
            "alone": "a category borrows from the others",
            "weights": "a posterior knows that a row of weight 2 is one observation",
        },
    ),
    Estimator(
        "prediction_powered",
        _powered,
        partial(_power, by="task"),
        of_slices,
        slow=True,
        without=_PLAIN_ROWS,
        alone=lambda data, **run: _power(each(data, lambda t: t[t["task"] == "few"]), by="task", **run),
    ),
    Estimator(
        "fit_judge_panel",
        _verdicts_of_panel,
        partial(_panel, by="task"),
        of_slices,
        slow=True,
        without=_PLAIN_ROWS,
        swapped=1,
        alone=lambda data, **run: _panel(each(data, lambda t: t[t["task"] == "few"]), by="task", **run),
    ),
    Estimator(
        "compare_boards",
        _two_boards,
        _compare,
        lambda found: of_joint(found.joint),
        slow=True,
        without=_PLAIN_ROWS | {"alone": _ONE_BOARD, "spelling": "a digest of the data, names included, orders the two"},
    ),
    Estimator(
        "style_effect",
        partial(votes, "length"),
        _effect,
        lambda found: of_table(found, "model"),
        without={"alone": _ONE_BOARD},
        slow=True,
    ),
]


def _judged(n: int = 400, seed: int = 3) -> pd.DataFrame:
    """Battles with the judge's score differences, and people's outcomes of most."""
    rng = np.random.default_rng(seed)
    table = _all_votes(n)
    target = table["winner"].map({"model_a": 1.0, "tie": 0.5, "model_b": 0.0})
    gap = (2 * target - 1 + rng.normal(0, 1.5, n)).round(1)
    return table[["model_a", "model_b", "prompt"]].assign(gap=gap, target=target.where(rng.random(n) < 0.9))


def _read_judged(table: pd.DataFrame) -> jaxeval.JudgedBattles:
    options = {"score_difference": "gap", "human": "target", "label_coding": "a_wins_1"}
    return jaxeval.JudgedBattles.from_pandas(table, **options)


def _soft(data: Data, **options: Any) -> Any:
    judges = {name: _read_judged(table) for name, table in data.items()}
    return jaxeval.soft_elo(judges, min_battles=10, **options)


def _of_soft(found: Any) -> Found:
    """The judge is part of each label, also where there is only one."""
    own = of_joint(found.joint)
    if len(found.judges) > 1:
        return own
    labels = pd.Index([(found.judges[0], *label) for label in own.estimate.index], tupleize_cols=False)
    return Found(own.estimate.set_axis(labels), own.draws.set_axis(labels, axis=1), own.ends)


def _merge(data: Data, **options: Any) -> Any:
    return jaxeval.merge_boards(_read_judged(data["known"]), _read_judged(data["new"]), **options)


def _to_merge() -> Data:
    table = _judged(900)
    new = table[["model_a", "model_b"]].isin(["m2", "m7"]).any(axis=1)
    return {"known": table[~new], "new": table[new]}


def _answers() -> Data:
    """A few answers have no judgment."""
    columns = ["item", "model", "human", "good", "poor", "topic"]
    return {"calibration": simulate(60, 1, gaps=0.03)[columns], "test": simulate(90, 2, 60, gaps=0.03)[columns]}


def _accuracy(data: Data, function: Callable[..., Any] = jaxeval.judge_accuracy, **options: Any) -> Any:
    names = {"judgment": ["good", "poor"], "model": "model", "item": "item", "keep": ["topic"], "missing": "drop"}
    parts = (jaxeval.JudgedAnswers.from_pandas(table, **names) for table in data.values())
    return function(*parts, n_halves=2, **options)


def _agreed() -> Data:
    table, rng = _all_votes(), np.random.default_rng(4)

    def heard(sure: float) -> pd.Series:
        return table["winner"].where(rng.random(N) < sure, rng.choice(["model_a", "model_b"], N))

    voices = {"human-0": heard(0.9), "human-1": heard(0.8), "judge-0": heard(0.7), "judge-1": heard(0.5)}
    return {"verdicts": table[["model_a", "model_b", "prompt"]].assign(**voices)}


def _agree(data: Data, **options: Any) -> Any:
    return jaxeval.judge_agreement(
        data["verdicts"], ["human-0", "human-1"], judges=["judge-0", "judge-1"], item="prompt", **options
    )


def _halves_apart(found: Found) -> Found:
    """What rests on random halves of the calibration is drawn, too."""
    drawn = np.array(["ppi_plus_plus_half" in label for label in found.estimate.index])
    return Found(found.estimate[~drawn], None, pd.concat([found.ends, found.estimate[drawn]]))


def _of_accuracy(found: Any) -> Found:
    """The slices, if there are any, without all of them together."""
    table, keys = found.table, ["model", "judge", "estimator"]
    if "slice" in table:
        table, keys = table[table["slice"] != "all"], ["slice", *keys]
    return _halves_apart(of_table(table, *keys))


def _of_differences(found: Any) -> Found:
    """Each difference in both directions: names decide which one a table has."""
    table = found.table.assign(lower=found.table["boot_lower"], upper=found.table["boot_upper"])
    table = table[["model_a", "model_b", "judge", "estimator", "difference", "lower", "upper", "failed_share"]]
    back = table.rename(columns=_TURNED | {"lower": "upper", "upper": "lower"})
    back = back.assign(**{name: -back[name] for name in ("difference", "lower", "upper")})
    return _halves_apart(of_table(pd.concat([table, back]), "model_a", "model_b", "judge", "estimator"))


_NO_SIDES = {"weights": _NO_WEIGHTS, "counts": _NO_COUNTS, "sides": "its data have no sides"}


def _scored(n: int = 48) -> Data:
    table = scored_answers(n, np.linspace(0.9, 0.3, M))
    return {"scores": table.assign(task=table["item"] % 3)}


def _score(data: Data, **options: Any) -> Any:
    return jaxeval.score_draws(data["scores"], **options)


def _respond(data: Data, **options: Any) -> Any:
    return jaxeval.fit_item_response(data["scores"].drop(columns="task"), **options)


def _own(data: Data, **options: Any) -> Any:
    """A statistic of one's own: odds of the mean score."""

    def odds(weights: Any, scores: Any) -> Any:
        total = weights @ scores
        return (total + 1) / (weights.sum() - total + 1)

    return jaxeval.draws_of(odds, jaxeval.ItemScores.from_pandas(data["scores"].drop(columns="task")), **options)


def _runs() -> Data:
    """Runs of models on tasks of several lengths: `_scored`'s items."""
    table = _all_runs().rename(columns={"agent": "model", "task": "item"})
    return {"runs": table.assign(model=table["model"].map(dict(zip(sorted(set(table["model"])), MODELS, strict=True))))}


@cache
def _all_runs() -> pd.DataFrame:
    return jaxeval.simulate_runs(M, 40, 20, 2, seed=3)


def _horizons(data: Data, **options: Any) -> Any:
    return jaxeval.time_horizons(data["runs"], task="item", **options)


def _benchmarked() -> Data:
    table = jaxeval.simulate_benchmark_scores(M, 10, observed=0.7, seed=1)
    return {"scores": table.assign(model="m" + (table["model"].str[-1].astype(int) - 1).astype(str))}


def _index(data: Data, **options: Any) -> Any:
    return jaxeval.capability_index(data["scores"], **options)


def _anchored() -> Data:
    table = simulate_anchored_verdicts(strengths=(0.8, 0.0), n_items=40, n_judges=3, n_runs=2, seed=2)
    return {"verdicts": table}


def _joint_scores(data: Data, **options: Any) -> Any:
    return jaxeval.joint_scores(jaxeval.AnchoredVerdicts.from_pandas(data["verdicts"]), **options)


def _screen(data: Data, **options: Any) -> Any:
    return jaxeval.screen_judges(jaxeval.AnchoredVerdicts.from_pandas(data["verdicts"]), **options)


_SEED_OF_NAMES = {"spelling": "names are part of the seed: each model's battles are drawn by themselves"}
_JUDGES = [
    Estimator("soft_elo", lambda: {"x": _judged(), "y": _judged(300, 4)}, _soft, _of_soft, slow=True,
        rounded=("chunks",), alone=lambda data, **run: _soft({"x": data["x"]}, **run),
        without=_PLAIN_ROWS | _SEED_OF_NAMES),
    Estimator("soft_elo, clusters", lambda: {"x": _judged()}, partial(_soft, cluster="prompt"), _of_soft, slow=True,
        rounded=("chunks",), without=_PLAIN_ROWS | _SEED_OF_NAMES | {"alone": "as without clusters"}),
    Estimator("merge_boards", _to_merge, _merge, lambda found: of_joint(found.joint), slow=True,
        without=_PLAIN_ROWS | _SEED_OF_NAMES | {"alone": _ONE_BOARD}),
    Estimator("judge_accuracy", _answers, _accuracy, _of_accuracy, without=_NO_SIDES | {"alone": "see slices"}),
    Estimator("judge_accuracy, slices", _answers, partial(_accuracy, by="topic"), _of_accuracy, without=_NO_SIDES,
        alone=lambda data, **run: _accuracy(each(data, lambda t: t[t["topic"] == "law"]), by="topic", **run),
        slow=True),
    Estimator("judge_accuracy, strata", _answers, partial(_accuracy, strata="topic"), _of_accuracy,
        without=_NO_SIDES | {"alone": "see slices"}, slow=True),
    Estimator("compare_models", _answers, partial(_accuracy, function=jaxeval.compare_models, shared="pooled"),
        _of_differences, without=_NO_SIDES | {"alone": "as judge_accuracy"}, slow=True),
    Estimator("judge_agreement", _agreed, _agree, lambda found: of_joint(found.joint), swapped=1, by_kind=True,
        without=_PLAIN_ROWS | {"alone": "measures of the panel rest on all judges"}, slow=True),
    Estimator("score_draws", _scored, _score, of_joint, by_kind=True, without=_NO_SIDES,
        alone=lambda data, **run: _score(each(data, lambda t: t[t["model"] < "m3"]), **run)),
    Estimator("draws_of", _scored, _own, of_joint, by_kind=True, without=_NO_SIDES,
        alone=lambda data, **run: _own(each(data, lambda t: t[t["model"] < "m3"]), **run)),
    Estimator("fit_item_response", _scored, _respond, lambda found: of_joint(found.joint), slow=True,
        rounded=("chunks",), without=_NO_SIDES | {"alone": _ONE_BOARD}),
    Estimator("time_horizons", _runs, _horizons, lambda found: of_joint(found.joint), without=_NO_SIDES,
        alone=lambda data, **run: _horizons(each(data, lambda t: t[t["model"] < "m3"]), **run), atol=1e-7, slow=True),
    Estimator("capability_index", _benchmarked, _index, lambda found: of_joint(found.joint),
        without=_NO_SIDES | {"alone": _ONE_BOARD}, atol=1e-3, slow=True),
    Estimator("joint_scores", _anchored, _joint_scores, of_joint, by_kind=True, without=_NO_SIDES,
        alone=lambda data, **run: _joint_scores(each(data, lambda t: t[t["judge"] == "judge-1"]), **run)),
    Estimator("screen_judges", _anchored, _screen, lambda found: of_joint(found.joint),
        without=_NO_SIDES | {"alone": _ONE_BOARD}, slow=True),
]  # fmt: skip


def _evaluated() -> Data:
    rng = np.random.default_rng(0)
    gold = rng.permutation(12) * 10.0 + 1000
    scores = {
        name: (gold / 10 + rng.normal(0, s, 12)).round() for name, s in zip("xyzuv", (2, 5, 5, 5, 5), strict=True)
    }
    return {"scores": pd.DataFrame({"model": [f"m{k:02d}" for k in range(12)], **scores, "gold": gold})}


def _evaluate(data: Data, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    table = data["scores"].set_index("model")
    return function(table.drop(columns="gold"), table["gold"], *arguments, **options)


def _separate(data: Data, **options: Any) -> Any:
    table = data["scores"].set_index("model")
    scores = table.drop(columns="gold")
    return jaxeval.separability(scores, table["gold"], standard_error=2 + 0 * scores, **options)


def _measured(name: str, *keys: str, slow: bool = True, arguments: tuple[Any, ...] = ()) -> Estimator:
    """A measure of evaluators beside gold, whose table has a row for each of the ``keys``."""
    call = partial(_evaluate, function=getattr(jaxeval, name))
    if arguments:
        call = lambda data, **run: _evaluate(data, getattr(jaxeval, name), *arguments, **run)  # noqa: E731
    return Estimator(
        name,
        _evaluated,
        call,
        lambda found: of_table(found, *keys),
        slow=slow,
        without=_NO_SIDES,
        alone=lambda data, **run: call(each(data, lambda t: t[["model", "x", "y", "gold"]]), **run),
    )


def _by_item(data: Data, **options: Any) -> Any:
    table = data["scores"]
    gold = table.groupby("model")["gold"].first()
    scores = jaxeval.ItemScores.from_pandas(table, model="model", item="item", score="score", keep=["task"])
    return jaxeval.kendall_tau_delta(scores, gold, [np.inf], resample="both", strata="task", **options)


def _scored_beside_gold() -> Data:
    """Gold goes with each row, so that it has the names of the scores."""
    table = _scored()["scores"]
    gold = dict(zip(MODELS, np.random.default_rng(7).permutation(M) * 10.0, strict=True))
    return {"scores": table.assign(gold=table["model"].map(gold))}


_EVALUATORS = [
    Estimator("kendall_tau_delta, items in strata", _scored_beside_gold, _by_item,
        lambda found: of_table(found, "evaluator", "delta"), without=_NO_SIDES | {"alone": "as of models"}, slow=True),
    _measured("kendall_tau", "evaluator"),
    _measured("kendall_tau_delta", "evaluator", "delta", slow=False, arguments=([1.5, np.inf],)),
    Estimator("joint_tau", _evaluated, partial(_evaluate, function=jaxeval.joint_tau), of_joint, slow=True,
        without=_NO_SIDES | {"alone": "as kendall_tau_delta"}),
    _measured("rank_agreement", "evaluator", "measure"),
    _measured("compare_evaluators", "evaluator", "other"),
    _measured("stratified_rank_change", "evaluator", "tier"),
    _measured("agreement_by_gap", "evaluator", "delta", arguments=([1.5, 3.0],)),
    _measured("smallest_gap", "evaluator"),
    Estimator("separability", _evaluated, _separate, lambda found: of_table(found, "evaluator"), slow=True,
        without=_NO_SIDES,
        alone=lambda data, **run: _separate(each(data, lambda t: t[["model", "x", "y", "gold"]]), **run)),
]  # fmt: skip


def _of_misfit(found: Any) -> Found:
    """Of each pair, in both directions, what they share: names decide which one the table has."""
    pairs = found.pairs[["model_a", "model_b", "votes", "z", "p_value"]]
    pairs = pairs.assign(z=pairs["z"].abs())
    pairs = of_table(pd.concat([pairs, pairs.rename(columns=_TURNED)]), "model_a", "model_b")
    estimate = [*pairs.estimate.items(), (("statistic",), found.statistic), (("dof",), found.dof)]
    return Found(as_series(estimate), None, as_series([*pairs.ends.items(), (("p_value",), found.p_value)]))


def _of_study(found: Any) -> Found:
    """Draws as they are made; `joint` centres them about the estimate. Votes under a budget are drawn, too."""
    whole, budget = of_joint(found.joint), of_joint(found.joint_under_budget)
    draws = [x.reshape(len(x), -1) for x in (found.tau_draws, found.budget_tau_draws)]
    draws = pd.DataFrame(np.concatenate(draws, axis=1), columns=whole.estimate.index.append(budget.estimate.index))
    return Found(whole.estimate, draws, budget.estimate)


def _study(data: Data, **options: Any) -> Any:
    return jaxeval.reference_study(
        battles(data["votes"]), budgets=[10], n_repeats=2, n_tiers=2, few_pairs=0, deltas=(5.0,), **options
    )


_AUDITS = [
    Estimator("reference_study", votes, _study, _of_study, without={"alone": _ONE_BOARD}, slow=True),
    Estimator("goodness_of_fit", votes, lambda data, **run: jaxeval.goodness_of_fit(battles(data["votes"]), **run),
        _of_misfit, fewer=20, without={"alone": _ONE_BOARD, "weights": "it counts votes, and a row of weight 2 is one"},
        slow=True),
    Estimator(
        "fewest_votes",
        votes,
        lambda data, **run: jaxeval.fewest_votes(battles(data["votes"]), top=[1, 3], **run),
        lambda found: of_table(found.table, "above", "below"),
        fewer=20,
        slow=True,
        without={
            "alone": _ONE_BOARD,
            "weights": "it counts votes, and a row of weight 2 is one",
            "more": "its checkpoint is of one number of resamples",
            "seed": "the votes to change are read, and no draws",
        },
    ),
    Estimator("rank_evidence", votes, lambda data, **run: jaxeval.rank_evidence(battles(data["votes"]), **run),
        lambda found: of_joint(found.joint), fewer=20, without={"alone": _ONE_BOARD}, slow=True),
]  # fmt: skip

ESTIMATORS = [*_BOARDS, *_JUDGES, *_EVALUATORS, *_AUDITS]

#: Public functions with ``n_resamples`` that are not in the table, and why.
ELSEWHERE = {
    "audit": "it calls the estimators of its parts",
    "class_shares": "its resamples are drawn by NumPy in one go, and it has none of `RunOptions`",
    "leaderboard": "a table of `bootstrap`",
    "replication": "its boards are simulated and fitted one after the other; n_resamples has no effect",
    "score_leaderboard": "a table of `score_draws`",
}
