"""One board of people's votes and judges' scores: the human board, with new models placed on it from scores alone.

Models that people voted on keep the ratings, and the draws, that the votes give them. A new model is rated by
`SoftEloCalibration.predict` against the anchors, the models that both people and the judge know. Both scales have one
zero: the mean of the anchors. (The held-out ratings of `soft_elo` have another zero for every model, the mean of the
others, and so lie M / (M - 1) times as far apart.)

The draws of a new model are joint with the people's. A draw moves its rating by the sampling errors of the
temperature, of the anchors and of its own battles (`joint_errors`), given how the draw moves the people's ratings; and
by the judge's own error of the model, normal with the standard deviation tau of the calibration. These moves are then
stretched until the interval at the board's level is as long as the conformal one, whose coverage does not rest on a
normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.leaderboard import leaderboard
from jaxeval.resampling.units import stream_number
from jaxeval.show.boards import leader_line, leaderboard_answer, with_interval
from jaxeval.show.cells import heading
from jaxeval.show.screens import columns_of
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.softelo.calibrated_methods import Level, chosen_level, floor_text
from jaxeval.softelo.calibration import SoftEloCalibration
from jaxeval.softelo.own_battles import FEW_ANCHORS, JudgedSide, joint_errors
from jaxeval.softelo.temperature import targets
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted, named, visible_line

#: What a row rests on.
PEOPLE, BOTH, JUDGE = "people", "both", "judge"
#: The standing of new models that the judged battles cannot place.
NOT_PLACED = "not placed"
_FIRST = ("rank", "model", "rating", "lower", "upper", "rests_on", "vote_count", "tier")
#: New models that the answer names.
_MOST_NEW = 3


@dataclass(frozen=True, eq=False, repr=False)
class MergedBoard(Result):
    """People's ratings and judges' ratings on one scale.

    ``table`` has the columns of `leaderboard` and four more. ``rests_on`` is "people", "both" (people rate the
    model, and the judge's scores of it calibrate the judge) or "judge" (a new model). ``judged_count`` counts its
    judged battles that were used, ``anchor_count`` the different anchors that a new model met, and ``flags`` says what
    is wrong with a row. New models that cannot be placed stand last, without a rating and a rank.

    Examples:
        The votes on the sixth model are hidden: the judge alone places it.

        >>> import jaxeval
        >>> battles = jaxeval.simulate_judged_battles(600, 6, seed=1)
        >>> of_new = (battles.model_a == 5) | (battles.model_b == 5)
        >>> board = jaxeval.merge_boards(battles.subset(~of_new), battles.subset(of_new), n_resamples=200)
        >>> board.table[["model", "rating", "rests_on", "rank_best", "rank_worst"]].round().tail(2)
             model  rating rests_on  rank_best  rank_worst
        4  model-3   959.0     both          3           5
        5  model-6   740.0    judge          6           6
        >>> board.joint.beat_share.loc["model-3", "model-6"] > 0.9
        np.True_
    """

    table: pd.DataFrame
    joint: Draws = field(repr=False)  # of all models that have a place
    people: Bootstrap = field(repr=False)  # the board of the votes alone
    calibration: SoftEloCalibration = field(repr=False)
    predictions: pd.DataFrame = field(repr=False)  # of the new models, as `SoftEloCalibration.predict` gives them

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the board, in words."""
        return list(self.table.attrs["warnings"])

    def _shown(self) -> Answer:
        n_new = int((self.table["rests_on"] == JUDGE).sum())
        title = f"MergedBoard: {counted(len(self.table), 'model')}, {n_new:,} of them rated by the judge alone"
        shown = self.table[[*_FIRST, *self.table.columns.drop(list(_FIRST))]]
        return Answer(title, shown, self.table.attrs["settings"], self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        board, settings, rests_on = leaderboard_answer(self.table), self.table.attrs["settings"], heading("rests_on")
        parts = []
        for part in board.parts:
            columns = [x._replace(order=0) if x.head == rests_on else x for x in columns_of(part)]
            parts.append(part._replace(table=columns))
        about = (
            f"new models: {visible_line(settings['judge'])}, {settings['target_map']} targets, judge's ridge "
            f"{settings['judge_ridge']:g}; {floor_text(settings['floor'])}"
        )
        beaten = self.joint.beat_share.reset_index()
        return board._replace(
            title="People's board with new models from a judge's scores",
            figures=view.figures,
            sentences=view.sentences,
            notes=[about, *board.notes],
            parts=parts,
            tables={"leaderboard": self.table, "predictions": self.predictions, "beat_share": beaten},
        )

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"leaderboard": ("plot_leaderboard", self.table)}

    def _sentences(self) -> list[str]:
        """Return where the new models stand, and who is first."""
        table, level = self.table, f"{100 * self.table.attrs['settings']['level']:g}% level"
        n_ranked, new = table["rank"].notna().sum(), table[(table["rests_on"] == JUDGE) & table["rank"].notna()]
        sentences = [
            f"{visible_line(row['model'])} would stand at rank {row['rank']} of {n_ranked:,} ({row['rank_best']} "
            f"to {row['rank_worst']} at the {level}) with {row['rating']:.1f} [{row['lower']:.1f}, "
            f"{row['upper']:.1f}], by the judge's scores alone"
            for row in new.head(_MOST_NEW).to_dict("records")
        ]
        if len(new) > _MOST_NEW:
            sentences.append(f"{counted(len(new) - _MOST_NEW, 'more new model')}: see the column Rests on")
        return [*sentences, *table.attrs["answer"].splitlines()]


@spelled_out()
def merge_boards(
    judged: JudgedBattles,
    new: JudgedBattles | None = None,
    votes: Battles | Bootstrap | None = None,
    *,
    level: Level | None = None,
    method: str = "soft",
    n_resamples: int = 1000,
    seed: int = 0,
    base: float = 1000.0,
    ridge: float = 0.01,
    cluster: str | None = None,
    min_votes: int = 1,
    min_anchors: int = FEW_ANCHORS,
    **running: Unpack[RunOptions],
) -> MergedBoard:
    """Place new models, by a judge's scores, on the board of people's votes (arXiv:2606.13221, section 5.3).

    The models that people voted on have exactly the ratings of `leaderboard`: new models move nobody. The rating of a
    new model is the anchors' mean rating plus what the judge sees between it and them. Its interval is the forward
    conformal one of `SoftEloCalibration.predict` for its true strength. Ranks, rank sets, tiers and shares of wins come
    from joint draws; see this module's text.

    Args:
        judged: battles that the judge scored, with human labels on some. They calibrate the judge.
        new: battles of the new models, scored by the same judge; by default those in ``judged``. Human labels are not
            looked at.
        votes: people's votes (`Battles`, or a table of them), or their `bootstrap`, whose settings then hold; by
            default the human labels of ``judged``. Draws of other votes are independent of the judge's.
        level: of all intervals, tiers and rank sets; by default .9, or the largest that the calibration supports.
        method: target map, "soft", "hard" or "smooth:c".
        n_resamples: joint draws.
        seed: the same seed gives the same draws. Those of a model do not depend on their number.
        base: mean rating of the people's board.
        ridge: of the judge's ratings, as in `soft_elo`.
        cluster: column of battles that were sampled together (prompts, voters), in all tables: clusters, not battles,
            are then independent.
        min_votes: models with fewer human labels in ``judged`` are new: their labels are not used.
        min_anchors: new models that met fewer different anchors are not placed.

    Raises:
        DataError: no battle has a human label, no model is new, a column is missing, or too few models calibrate.
        ValueError: the calibration does not support ``level``, or cannot be made.

    Examples:
        >>> import jaxeval
        >>> battles = jaxeval.simulate_judged_battles(900, 8, seed=1)
        >>> of_new = (battles.model_a >= 6) | (battles.model_b >= 6)
        >>> board = jaxeval.merge_boards(battles.subset(~of_new), battles.subset(of_new), n_resamples=200)
        >>> board.table["rests_on"].value_counts().to_dict()
        {'both': 6, 'judge': 2}
    """
    source = judged if new is None else new
    for name, judged_table in {"judged": judged, "new": source}.items():
        if not isinstance(judged_table, JudgedBattles):
            raise TypeError(
                f"{name} must be JudgedBattles, got {type(judged_table).__name__}: read_judged_battles reads them, "
                "and the method judged() of JudgeOutputs gives them"
            )
    votes = votes if votes is None or isinstance(votes, Bootstrap) else as_battles(votes)
    checked_integer("min_votes", min_votes, 1)
    checked_integer("min_anchors", min_anchors, 1)
    checked_integer("n_resamples", n_resamples, 2)
    rated = _rated_by_people(judged, votes, min_votes)
    known, unused = _calibrating(judged, rated)
    calibration = SoftEloCalibration.fit(known, ridge, (method,), base, cluster=cluster)
    people = votes if isinstance(votes, Bootstrap) else None
    if people is None:
        people_votes = _labels(known, cluster) if votes is None else votes
        people = bootstrap(people_votes, n_resamples, seed, base=base, cluster=cluster, **running)
    of_new, not_placed, sentences = _new_battles(source, rated, calibration.methods[method].anchors.index, min_anchors)
    models = calibration.methods[method].models
    share, lowered = chosen_level(level, len(models), "the merged board")
    predicted = calibration.predict(of_new, share, method, human_votes=np.inf, cluster=cluster)
    if predicted["lower"].isna().all():
        doubts = [f"{row.model} ({row.flags})" for row in predicted.itertuples()]
        raise DataError(f"no new model has an interval, so none can be placed: {named(doubts)}")
    joint = _joint(known, of_new, calibration, people, predicted, on_board=votes is None)
    board = leaderboard(people, level=float(share))
    notes = [*board.attrs["warnings"], *lowered, *sentences, *unused, *predicted.attrs["warnings"]]
    table = _table(board, joint, predicted, not_placed, known)
    table.attrs = {
        "answer": _answer(table, joint, float(share)),
        "warnings": list(dict.fromkeys(notes)),
        "report": f"{board.attrs['report']}\n{source.report}",
        "settings": {
            **board.attrs["settings"],
            "judge": source.judge_name,
            "target_map": method,
            "judge_ridge": float(ridge),
            "min_votes": min_votes,
            "min_anchors": min_anchors,
            "floor": predicted.attrs["settings"]["floor"],
        },
    }
    return MergedBoard(
        table=Table.of(table, f"Merged board of {counted(len(table), 'model')}", _FIRST, "rating"),
        joint=replace(joint, warnings=tuple(table.attrs["warnings"])),
        people=people,
        calibration=calibration,
        predictions=predicted,
    )


def _answer(table: pd.DataFrame, joint: Draws, level: float) -> str:
    """Return who is first on the merged board, as `Bootstrap.first_sentence` says it."""
    ranked = table[table["rank"].notna()]
    if ranked.empty:
        return "no model can be ranked"
    first, *others = joint.names.get_indexer(ranked["model"].astype(str)).tolist()
    best = ranked.iloc[0]
    alike = [visible_line(joint.names[j]) for j in joint.not_below(first, np.array(others, np.intp), level)]
    rating = with_interval(best["rating"], best["lower"], best["upper"])
    return leader_line(visible_line(best["model"]), rating, alike, level, unranked=len(ranked) < len(table))


def _text(battles: JudgedBattles) -> pd.Index:
    return pd.Index([str(model) for model in battles.models])


def _rated_by_people(judged: JudgedBattles, votes: Battles | Bootstrap | None, min_votes: int) -> pd.Index:
    if votes is not None:
        if min_votes > 1:
            raise ValueError(
                "min_votes (--min-votes) is about the human labels of the judged battles: filter the votes instead"
            )
        return pd.Index([str(model) for model in votes.models])
    voted = ~np.isnan(judged.human)
    if not voted.any():
        raise DataError(
            f"none of {counted(judged.n_battles, 'judged battle')} has a human label, so there is no board of people's "
            "votes to place new models on: name the column of labels (human=, --human), or give votes (votes=, --votes)"
        )
    n = np.bincount(np.concatenate([judged.model_a[voted], judged.model_b[voted]]), minlength=judged.n_models)
    return _text(judged)[n >= min_votes]


def _calibrating(judged: JudgedBattles, rated: pd.Index) -> tuple[JudgedBattles, list[str]]:
    """Return the battles between models that people rate, and a sentence on votes that are not used."""
    is_rated = _text(judged).isin(rated)
    both = is_rated[judged.model_a] & is_rated[judged.model_b]
    unused = int((~np.isnan(judged.human) & ~both).sum())
    if not (~np.isnan(judged.human) & both).any():
        raise DataError(
            f"no judged battle between two of the {counted(len(rated), 'model')} on the people's board has a human "
            "label: the judge cannot be calibrated"
        )
    return judged.subset(both), [f"{counted(unused, 'human label')} on battles of new models: not used"] * bool(unused)


def _labels(known: JudgedBattles, cluster: str | None) -> Battles:
    voted = known.subset(~np.isnan(known.human))
    sides = {"model_a": voted.models[voted.model_a], "model_b": voted.models[voted.model_b]}
    clusters = {} if cluster is None else {cluster: voted.column(cluster).to_numpy()}
    return Battles.from_pandas(pd.DataFrame({**sides, "target": voted.human, **clusters}), target="target")


def _new_battles(
    source: JudgedBattles, rated: pd.Index, anchors: pd.Index, min_anchors: int
) -> tuple[JudgedBattles, dict[str, str], list[str]]:
    """Return the battles between new models and anchors, the models that are not placed and why, and sentences."""
    names = _text(source)
    is_new, is_anchor = ~names.isin(rated), names.isin(anchors)
    if not is_new.any():
        raise DataError(
            f"people rate all {counted(len(names), 'model')} of the judged battles: none is new. A model is new if it "
            "has no human label, or fewer than min_votes (--min-votes)"
        )
    a, b = source.model_a.astype(np.intp), source.model_b.astype(np.intp)
    usable = (is_new[a] & is_anchor[b]) | (is_anchor[a] & is_new[b])
    met = pd.DataFrame({"model": np.where(is_new[a], a, b)[usable], "anchor": np.where(is_new[a], b, a)[usable]})
    n_anchors = met.groupby("model")["anchor"].nunique().reindex(np.flatnonzero(is_new), fill_value=0)
    not_placed = {
        names[k]: f"met only {counted(n, 'anchor')}" if n else "met no anchor"
        for k, n in n_anchors.items()
        if n < min_anchors
    }
    if len(not_placed) == len(n_anchors):
        raise DataError(
            f"no new model can be placed on the board: none met {min_anchors:,} of its "
            f"{counted(len(anchors), 'anchor')}, as min_anchors (--min-anchors) asks for: {_reasons(not_placed)}"
        )
    sentences = []
    if not_placed:
        sentences.append(
            f"{counted(len(not_placed), 'new model is', 'new models are')} not placed, as they met fewer than "
            f"{min_anchors} anchors (min_anchors, --min-anchors): {_reasons(not_placed)}"
        )
    n_between = int((is_new[a] & is_new[b]).sum())
    if n_between:
        sentences.append(f"{counted(n_between, 'battle')} between two new models: not used")
    n_strange = int(((is_new[a] & ~is_anchor[b] & ~is_new[b]) | (is_new[b] & ~is_anchor[a] & ~is_new[a])).sum())
    if n_strange:
        sentences.append(
            f"{counted(n_strange, 'battle')} of new models against models without calibrating battles: not used"
        )
    out = names.isin(list(not_placed))
    return source.subset(usable & ~out[a] & ~out[b]), not_placed, sentences


def _reasons(not_placed: dict[str, str]) -> str:
    return named([f"{name} ({why})" for name, why in not_placed.items()])


def _joint(
    known: JudgedBattles, new_battles: JudgedBattles, calibration: SoftEloCalibration, people: Bootstrap,
    predicted: pd.DataFrame, *, on_board: bool,
) -> Draws:  # fmt: skip
    """Return joint draws of the people's models and of those of the new ones that have an interval, Elo."""
    ((method, fitted),), settings = calibration.methods.items(), calibration.settings
    level, anchors = predicted.attrs["settings"]["level"], fitted.anchors
    placed = predicted[predicted["lower"].notna()]
    place = pd.Index([str(m) for m in people.models]).get_indexer(anchors.index)
    rating = np.where(place >= 0, people.fit.ratings.to_numpy()[place], np.nan)
    zero = np.isfinite(rating)
    above = rating[zero].mean() - ELO_PER_LOGIT * anchors[zero].mean() - settings.base
    estimate = placed["rating"].to_numpy() + above
    moved = np.where(place >= 0, people.draws[:, place], np.nan) - np.where(zero, rating, np.nan)
    shift, moved = _about_zero(moved, zero)

    known_units, own_units = _units([known, new_battles], settings.cluster)
    numbered = [*anchors.index, *placed["model"]]
    errors = joint_errors(
        _side(known, method, fitted.beta, numbered, known_units),
        _new_on_a(_side(new_battles, method, fitted.beta, numbered, own_units), len(anchors)),
        known.human,
        zero,
        anchors=anchors.to_numpy(),
        new=(placed["rating"].to_numpy() - settings.base) / ELO_PER_LOGIT,
        people=np.where(zero, rating, np.nan) / ELO_PER_LOGIT,
        beta=fitted.beta,
        ridge=settings.ridge,
        on_board=on_board,
    )
    of_new, with_people = np.split(errors[: len(placed)], [len(placed)], axis=1)
    of_people = errors[len(placed) :, len(placed) :]
    regression = with_people @ np.linalg.pinv(of_people, rcond=1e-10, hermitian=True)
    values, vectors = np.linalg.eigh(of_new - regression @ with_people.T)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    # Draws of a model are a function of the seed and of its name.
    streams = [np.random.default_rng([people.settings.seed, stream_number(name)]) for name in placed["model"]]
    normal = np.stack([stream.standard_normal((len(moved), 2)) for stream in streams], axis=1)  # (B, J, 2)
    sampled = moved @ regression.T + ELO_PER_LOGIT * normal[:, :, 0] @ root
    spread = np.hypot(ELO_PER_LOGIT * np.sqrt(np.diag(of_new)), fitted.floor)
    half = (placed["upper"] - placed["lower"]).to_numpy() / 2
    stretch = half / (normal_quantile(level) * spread)
    draws = estimate + shift[:, None] + stretch * (sampled + fitted.floor * normal[:, :, 1])
    joint = people.joint
    return replace(
        joint,
        names=pd.Index([*people.models, *placed["model"]], name="model"),
        estimate=np.concatenate([joint.estimate, estimate]),
        draws=np.concatenate([joint.draws, draws], axis=1),
        anchored=None if joint.anchored is None else np.append(joint.anchored, np.zeros(len(placed), bool)),
        status=np.concatenate([np.asarray(joint.status), placed["flags"].to_numpy()]),
        closed_form=None,  # it is of the models that people rated alone
    )


def _about_zero(moved: Float, zero: Bool) -> tuple[Float, Float]:
    """Give (B,) by how much draws move the mean of the anchors at ``zero``, and (B, M) each less that; 0 if unknown."""
    known = np.isfinite(moved) & zero
    shift = np.where(known, moved, 0.0).sum(1) / np.maximum(known.sum(1), 1)
    return shift, np.where(known, moved - shift[:, None], 0.0)


def _side(
    battles: JudgedBattles, method: str, beta: float | None, numbered: list[str], unit: NDArray[np.intp]
) -> JudgedSide:
    place = pd.Index(numbered).get_indexer(_text(battles))
    target = targets(method, battles.score_difference, battles.hard, beta)
    return JudgedSide(place[battles.model_a], place[battles.model_b], target, battles.score_difference, unit)


def _new_on_a(side: JudgedSide, n_anchors: int) -> JudgedSide:
    """Give battles between new models, numbered after the anchors, and anchors: the new one on side A, numbered from 0.

    A new model without an interval has no number, and its battles go.
    """
    there = (side.a >= 0) & (side.b >= 0)
    a, b, target, difference = side.a[there], side.b[there], side.target[there], side.difference[there]
    swap = a < n_anchors
    target, difference = np.where(swap, 1 - target, target), np.where(swap, -difference, difference)
    return JudgedSide(np.where(swap, b, a) - n_anchors, np.where(swap, a, b), target, difference, side.unit[there])


def _units(tables: list[JudgedBattles], cluster: str | None) -> list[NDArray[np.intp]]:
    """Return (N,) number of what each battle is sampled with, the same number for the same cluster in all tables."""
    ends = np.cumsum([battles.n_battles for battles in tables])[:-1]
    number = np.arange(sum(battles.n_battles for battles in tables))
    if cluster is not None:
        number, _ = pd.factorize(pd.concat([battles.column(cluster) for battles in tables], ignore_index=True))
    return np.split(number, ends)


def _table(
    people: pd.DataFrame, joint: Draws, predicted: pd.DataFrame, not_placed: dict[str, str], known: JudgedBattles
) -> pd.DataFrame:
    sides = _text(known)[np.concatenate([known.model_a, known.model_b])]
    judged = people["model"].astype(str).map(sides.value_counts()).fillna(0)
    old = people.assign(rests_on=np.where(judged > 0, BOTH, PEOPLE), judged_count=judged, flags="")
    rest = pd.DataFrame({"model": list(not_placed), "flags": list(not_placed.values())})
    new = pd.concat([predicted, rest], ignore_index=True)
    placed = new["lower"].notna()
    half = (new["upper"] - new["lower"]) / 2
    rating = pd.Series(joint.estimate, joint.names).reindex(new["model"].where(placed)).to_numpy()
    new = pd.DataFrame(
        {
            "model": new["model"],
            "rating": rating,
            "lower": rating - half,
            "upper": rating + half,
            "variance": joint.standard_errors.reindex(new["model"].where(placed)).to_numpy() ** 2,
            "vote_count": 0,
            "component": 1,
            "standing": np.where(placed, "", NOT_PLACED),
            "preliminary": True,
            "degenerate_share": 0.0,
            "rests_on": JUDGE,
            "judged_count": new["n_battles"],
            "anchor_count": new["n_anchors"],
            "flags": new["flags"],
        }
    )
    whole = pd.concat([old, new], ignore_index=True)
    whole = whole[[*people, "rests_on", "judged_count", "anchor_count", "flags"]]
    ranks = joint.ranks(predicted.attrs["settings"]["level"]).reindex(whole["model"])
    whole = whole.assign(**{name: ranks[name].array for name in ranks})
    whole = whole.astype({"judged_count": "Int64", "anchor_count": "Int64"})
    order = np.lexsort([whole["model"].astype(str), -whole["rating"].fillna(-np.inf), whole["rank"].isna()])
    return whole.iloc[order].reset_index(drop=True)
