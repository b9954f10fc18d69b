"""The forward use of Soft-Elo: calibrate once on models with human votes, then rate models that only judges have seen.

A calibration holds, for each target map, the temperature, the judge's strengths of the anchor models, and the held-out
residuals with their errors. The intervals are conformal (arXiv:2606.13221, sections 3.3 and 5.3) with one change. The
paper scales residuals by the standard error of the judge's rating. That fails when a new model has more battles than
the calibration models had, as the judge's own error does not shrink with battles. Here residuals are matched in noise
with the prediction instead, see `jaxeval.softelo.calibrated_methods`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.data.battles import Battles
from jaxeval.data.file_lists import local_file
from jaxeval.data.judge_outputs import read_judged_battles
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.labels import Labels
from jaxeval.data.saved_results import read_versioned, write_versioned
from jaxeval.errors import DataError
from jaxeval.execution.precision import versions
from jaxeval.kernels.solve import Status
from jaxeval.ratings.bootstrap import fit_bradley_terry
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.show.boards import board_part
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.softelo.calibrated_methods import (
    CalibratedMethod,
    CalibrationSettings,
    Level,
    chosen_level,
    conformal_rank,
    expected_coverage,
    floor_spread,
    floor_text,
    half_widths,
    smallest_calibration,
    supported_level_text,
)
from jaxeval.softelo.judge_agreement import agreement_by_score_gap, usable_models
from jaxeval.softelo.own_battles import flag_sentences, flags, held_out_errors, rate_new_models, units
from jaxeval.softelo.soft_elo import few_clusters, soft_elo
from jaxeval.softelo.temperature import FEWEST_BATTLES, STATUS_TEXT, fit_temperature, targets
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted, did_you_mean, named, visible_line

_FORMAT, _VERSION = "jaxeval soft-elo calibration", 2


@dataclass(frozen=True, eq=False, repr=False)
class SoftEloCalibration(Result):
    """Everything that rating a new model from judged battles needs; plain JSON on disk.

    Examples:
        The sixth model of these battles is new: its own human votes are not looked at.

        >>> import jaxeval
        >>> battles = jaxeval.simulate_judged_battles(600, 6, seed=1)
        >>> of_new = (battles.model_a == 5) | (battles.model_b == 5)
        >>> calibration = jaxeval.SoftEloCalibration.fit(battles.subset(~of_new))
        >>> calibration.largest_level()
        '0.8333'
        >>> calibration.predict(battles.subset(of_new), level=0.8)[["model", "rating", "lower", "upper"]].round(0)
             model  rating   lower   upper
        0  model-6  1240.0  1196.0  1285.0
    """

    methods: dict[str, CalibratedMethod]
    settings: CalibrationSettings
    warnings: list[str]

    def _shown(self) -> Answer:
        rows = {name: {"beta": method.beta, "n_models": len(method.models)} for name, method in self.methods.items()}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
        title = f"SoftEloCalibration: {counted(self.settings.n_battles, 'battle')} judged by {self.settings.judge_name}"
        return Answer(title, table, self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        sentences = []
        for name, method in self.methods.items():
            beta = "" if method.beta is None else f", beta {method.beta:.4f}"
            calibrate = counted(len(method.models), "model calibrates", "models calibrate")
            anchors = counted(len(method.anchors), "anchor")
            levels = f"levels up to {self.largest_level(name)}"
            sentences.append(f"{name}: {anchors}, {calibrate} ({levels}){beta}; {floor_text(method.floor)}")
        return sentences

    @classmethod
    def fit(
        cls,
        battles: JudgedBattles,
        ridge: float = 0.01,
        methods: Sequence[str] = ("hard", "soft"),
        base: float = 1500.0,
        *,
        cluster: str | None = None,
    ) -> SoftEloCalibration:
        """Calibrate on judged battles that have human votes.

        Args:
            battles: scored by the judge that will score the new models, with human labels.
            ridge: as in `soft_elo`, like ``methods`` and ``base``.
            cluster: column of the battles whose equal values were sampled together: prompts, voters. It makes the
                errors of ratings larger where these recur.

        Raises:
            DataError: ``cluster`` names no column, or one with missing values.
            ValueError: no model has a held-out residual with its errors, or the temperature of the soft map cannot be
                fitted.
        """
        pooled = _pooled_beta(battles) if "soft" in methods else None
        held_out = soft_elo(battles, ridge=ridge, n_resamples=0, methods=methods, base=base, cluster=cluster)
        errors = held_out_errors(battles, held_out.settings.methods, ridge, cluster)
        names = ("standard_error", "human_error", "residual_error")
        # The table of `soft_elo` goes by model, and by method within.
        columns = {name: ELO_PER_LOGIT * error.T.ravel() for name, error in zip(names, errors, strict=True)}
        table, left_out = usable_models(held_out.models.assign(**columns))
        calibrated = {}
        for name, block in table.groupby("method", sort=False):
            beta = pooled if name == "soft" else None
            anchors = _anchors(battles, str(name), beta, ridge)
            calibrated[str(name)] = CalibratedMethod.from_table(beta, anchors, block)
        settings = CalibrationSettings(
            ridge=float(ridge), base=float(base), cluster=cluster, judge_name=battles.judge_name,
            n_battles=battles.n_battles, scored=battles.scored, labels=battles.label_coding,
            hard_label=battles.hard_label, both_orders=battles.orders is not None,
            both_verdicts=battles.verdict_orders is not None,
            mean_score_difference=float(np.abs(battles.score_difference).mean()), versions=versions(),
        )  # fmt: skip
        warnings = [*left_out, *few_clusters(held_out.models), *agreement_by_score_gap(battles).attrs["warnings"]]
        return cls(calibrated, settings, warnings)

    def largest_level(self, method: str = "soft") -> str:
        """Return the largest level that the calibration supports, rounded down to four decimals."""
        return supported_level_text(len(self._method(method).models))

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON; `load` gives it back exactly.

        Raises:
            OSError: the file cannot be written; one that was there is as it was.
        """
        content = {
            "settings": asdict(self.settings),
            "warnings": self.warnings,
            "methods": {name: method.to_json() for name, method in self.methods.items()},
        }
        write_versioned(path, _FORMAT, _VERSION, content)

    @classmethod
    def load(cls, path: str | Path) -> SoftEloCalibration:
        """Read a calibration that `save` wrote.

        Raises:
            DataError: the file is not one, is broken, or is of a version that this jaxeval does not know.
            FileNotFoundError: there is no such file.
        """
        path = local_file(path)
        content = read_versioned(path, _FORMAT, _VERSION, "saved calibration", "calibrate again")
        try:
            methods = {
                str(name): CalibratedMethod.from_json(str(name), saved) for name, saved in content["methods"].items()
            }
            settings = CalibrationSettings(**content["settings"])
            settings.check()
            warnings = [str(w) for w in content["warnings"]]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(
                f"{path.name} is a broken calibration ({type(error).__name__}: {error}): calibrate again, or restore "
                "the file"
            ) from error
        return cls(methods, settings, warnings)

    def read_new_battles(
        self, path: str | Path, method: str = "soft", *, label_coding: Labels | None = None, **columns: Any
    ) -> JudgedBattles:
        """Return judged battles of new models from a file: only what `predict` needs is read.

        Human labels are not read. The judge's verdicts are read with the calibration's coding of labels, and hard
        labels are made of scores or verdicts as in the calibration. Verdicts are left out where scores alone make the
        targets, unless ``columns`` names a column of verdicts.

        Args:
            path: as in `read_judged_battles`.
            method: the target map to predict with.
            label_coding: of the verdicts, in place of the calibration's.
            columns: as in `read_judged_battles`, without ``human``.

        Raises:
            DataError: the file cannot be read as a table of judged battles.
            FileNotFoundError: there is no such file.
        """
        self._method(method)
        if method != "soft":
            columns["hard_label"] = columns.get("hard_label") or self.settings.hard_label
        elif columns.get("verdict") is None and self.settings.scored:
            columns["verdict"] = False
        return read_judged_battles(path, **columns, human=False, label_coding=label_coding or self.settings.labels)

    def predict(
        self,
        new_battles: JudgedBattles,
        level: Level | None = None,
        method: str = "soft",
        *,
        human_votes: float | None = None,
        among: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        cluster: str | None = None,
    ) -> pd.DataFrame:
        """Return ratings of new models on the human scale, with conformal intervals, from judged battles alone.

        Each new model is rated on its own against the anchors, whose strengths stay what the calibration found. The
        interval is for the rating that a board of human votes would show after ``human_votes`` votes on other battles
        of the model. No random numbers are drawn.

        Args:
            new_battles: scored by the judge of the calibration; each between a new model and an anchor. Human labels
                are not looked at.
            level: 1 - alpha of the intervals; by default .9, or the largest level that the calibration supports.
            method: which of the calibrated target maps.
            human_votes: number of each new model's votes on the board that is predicted; by default the median of the
                calibration models. ``inf`` predicts the model's true strength.
            among: calibration models that set the intervals, all by default: the stratum (family, strength) that the
                new models belong to.
            weights: of the calibration models, for new models of another population than theirs (see `half_widths`).
            cluster: column of the new battles whose equal values were sampled together; the calibration's by default.

        Returns:
            One row per new model, best first: ``model, rating, lower, upper, standard_error`` (Elo), ``n_battles,
            n_anchors, flags``. ``attrs`` holds ``warnings`` and ``settings``, with the expected coverage,
            ``human_votes``, ``human_error`` (the error of a board's rating after so many votes, Elo) and ``floor`` (the
            judge's own error, which no number of battles removes, Elo).

        Raises:
            DataError: an opponent is not an anchor, no battle is of a new model, or there is no such cluster column.
            ValueError: the calibration is too small for the level (the message says the largest it supports), has no
                such method or models, or ``human_votes`` is not positive.
        """
        chosen = self._method(method)
        notes = self.settings.doubts(new_battles, method)
        pool = _pool(chosen.models, among)
        level, lowered = _supported(level, len(pool))
        votes, human_error = _board(pool, human_votes)
        target = targets(method, new_battles.score_difference, new_battles.hard, chosen.beta)
        cluster = self._cluster(new_battles, cluster)
        unit = units(new_battles, cluster)
        table, n_between = rate_new_models(
            new_battles, target, unit, chosen.anchors, self.settings.ridge, self.settings.base
        )
        noise = np.hypot(table["standard_error"], human_error)
        share = None if weights is None else _in_order(weights, pool)
        half = half_widths(pool["residual"], pool["residual_error"], noise, level, share)
        if np.isinf(half).any():
            raise ValueError(
                f"with these weights {counted(len(pool), 'calibration model does', 'calibration models do')} not "
                f"support level {float(level):g}: ask for a lower level"
            )
        table.insert(2, "lower", table["rating"] - half)
        table.insert(3, "upper", table["rating"] + half)
        table["flags"] = flags(table, pool)
        table = table.drop(columns=["n_units", "won", "lost"])
        table = table.sort_values("rating", ascending=False, kind="stable").reset_index(drop=True)
        warnings = [*self.warnings, *notes, *lowered]
        warnings += flag_sentences(table)
        if n_between:
            between = counted(n_between, "battle between two anchors", "battles between two anchors")
            warnings.append(f"{between}, which tell nothing of new models: left out")
        table.attrs = {
            "warnings": warnings,
            "settings": {
                **asdict(self.settings),
                "cluster": cluster,
                "method": method,
                "beta": chosen.beta,
                "level": float(level),
                "n_calibration": len(pool),
                "expected_coverage": expected_coverage(len(pool), level) if weights is None else None,
                "human_votes": votes,
                "human_error": human_error,
                "floor": floor_spread(pool["residual"], pool["residual_error"]),
            },
        }
        return Table.of(table, "New models", ends_of="rating")

    def _method(self, name: str) -> CalibratedMethod:
        if name not in self.methods:
            have = ", ".join(map(repr, self.methods))
            raise ValueError(f"the calibration has no method {name!r}; it has {have}{did_you_mean(name, self.methods)}")
        return self.methods[name]

    def _cluster(self, new: JudgedBattles, named: str | None) -> str | None:
        usual = self.settings.cluster
        if named is None and usual is not None and usual not in new.columns.columns:
            raise DataError(
                f"the calibration's battles were sampled by {usual!r}, and the new battles have no such column: name "
                "the one that they have (cluster=, on the command line --cluster)"
            )
        return usual if named is None else named


def _pool(models: pd.DataFrame, among: Sequence[str] | None) -> pd.DataFrame:
    if among is None:
        return models
    if isinstance(among, str) or not len(among):
        raise ValueError(f"among must be a list of one calibration model or more, got {among!r}")
    _refuse_strangers("among", among, models)
    return models[models["model"].isin(among)]


def _in_order(weights: Mapping[str, float], pool: pd.DataFrame) -> list[float]:
    _refuse_strangers("weights", weights, pool)
    absent = [m for m in pool["model"] if m not in weights]
    if absent:
        raise ValueError(
            f"{len(absent):,} of {counted(len(pool), 'calibration model')} have no weight in weights=: {named(absent)}"
        )
    return [weights[m] for m in pool["model"]]


def _refuse_strangers(what: str, names: Iterable[str], models: pd.DataFrame) -> None:
    unknown = sorted(set(names) - set(models["model"]))
    if unknown:
        raise ValueError(
            f"{what} names {counted(len(unknown), 'model that does', 'models that do')} not calibrate: "
            f"{named(unknown)}{did_you_mean(unknown[0], models['model'])}"
        )


def _supported(level: Level | None, n: int) -> tuple[Fraction, list[str]]:
    """Return the level, which n models must support, and a sentence where the default was lowered."""
    chosen, lowered = chosen_level(level, n, "predictions")
    if conformal_rank(n, chosen) > n:
        raise ValueError(
            f"the calibration is too small for level {float(chosen):g}: its "
            f"{counted(n, 'model supports', 'models support')} levels up to {supported_level_text(n)}. Ask for that, "
            f"or calibrate on at least {counted(smallest_calibration(chosen), 'model')}"
        )
    return chosen, lowered


def _board(pool: pd.DataFrame, human_votes: float | None) -> tuple[float, float]:
    """Return votes behind the human rating that is predicted, and the error (Elo) that so many votes leave it."""
    votes = float(pool["n_human"].median() if human_votes is None else human_votes)
    if not votes > 0:
        raise ValueError(f"human_votes must be > 0 (inf: the true strength), got {human_votes!r}")
    per_vote = float((pool["human_error"] ** 2 * pool["n_human"]).median())
    return votes, float(np.sqrt(per_vote / votes))


def _pooled_beta(battles: JudgedBattles) -> float:
    fit = fit_temperature(battles.score_difference, battles.human)
    if np.isfinite(fit.beta) and fit.beta > 0:
        return float(fit.beta)
    by_hard = "or calibrate hard targets alone (methods=['hard'], --method hard)"
    if fit.beta < -normal_quantile(0.95) * fit.standard_error:
        why = f"({fit.status}): the humans prefer what the judge scores lower; check what the labels mean "
        why += "(label_coding=, --labels)"
    elif fit.beta < 0:
        why = f"(slope {fit.beta:.2g}, standard error {fit.standard_error:.2g}): the scores show no relation to what "
        why += f"the humans prefer; take another judge, give more battles with human votes, {by_hard}"
    elif fit.status == STATUS_TEXT[Status.TOO_FEW]:
        decided = ~np.isnan(battles.human) & (battles.human != 0.5)
        n = int(np.count_nonzero(battles.score_difference[decided]))
        why = f"({fit.status} with scores that differ): they do in {n:,} of them, and {FEWEST_BATTLES} are needed; "
        why += f"take a judge that tells answers apart, give more battles with human votes, {by_hard}"
    else:
        why = f"({fit.status}): give more battles with human votes, {by_hard}"
    raise ValueError(f"the temperature cannot be fitted on {fit.n_battles:,} human non-ties {why}")


def _anchors(battles: JudgedBattles, method: str, beta: float | None, ridge: float) -> pd.Series:
    """Return (M,) log-strengths that the judge gives all models of the calibration, mean zero over those with votes."""
    table = pd.DataFrame(
        {
            "model_a": battles.models[battles.model_a].astype(str),
            "model_b": battles.models[battles.model_b].astype(str),
            "target": targets(method, battles.score_difference, battles.hard, beta),
        }
    )
    logits = fit_bradley_terry(Battles.from_pandas(table), ridge).logits
    voted = ~np.isnan(battles.human)
    with_votes = battles.models[np.union1d(battles.model_a[voted], battles.model_b[voted])].astype(str)
    return logits - logits[with_votes].mean()


def prediction_answer(table: pd.DataFrame) -> Answer:
    """Say what a table of `SoftEloCalibration.predict` holds: ratings of new models, under a leaderboard's headings."""
    settings = table.attrs["settings"]
    shown = table.sort_values("rating", ascending=False, kind="stable")
    board = shown[["model", "rating", "lower", "upper", "n_battles"]].assign(notes=shown["flags"].astype(str))
    if len(shown) > 1:
        board["rank"] = range(1, len(shown) + 1)
    title = f"Ratings on the human scale with {settings['level']:g} intervals (Elo)"
    part = board_part(title, board, kept=["n_battles"])
    first = shown.iloc[0]
    answer = (
        f"{visible_line(first['model'])} rates {first['rating']:.1f} [{first['lower']:.1f}, {first['upper']:.1f}] on "
        "the human scale"
    )
    votes, error = settings["human_votes"], settings["human_error"]
    endless = "the intervals are for the model's true strength"
    finite = f"the intervals are for the board's rating after {votes:g} human votes (their error: {error:.1f} Elo)"
    calibrate = counted(settings["n_calibration"], "model calibrates", "models calibrate")
    notes = [
        f"{finite if error else endless}; {floor_text(settings['floor'])}",
        f"{calibrate}: expected coverage {settings['expected_coverage']:.4f}, nominal {settings['level']:g}; ridge "
        f"{settings['ridge']:g}; method {settings['method']}",
    ]
    sentence = answer if len(shown) == 1 else f"{answer}, the highest of {counted(len(shown), 'new model')}"
    warnings, tables = table.attrs["warnings"], {"predictions": table}
    return Answer(title, table, settings, warnings, sentences=[sentence], notes=notes, parts=[part], tables=tables)
