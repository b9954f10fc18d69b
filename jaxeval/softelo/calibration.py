"""The forward use of Soft-Elo: calibrate once on models with human votes, then rate models that only judges have seen.

A calibration holds, for each target map, the temperature, the judge's strengths of the anchor models, and the held-out
residuals whose conformal quantile sets the intervals (arXiv:2606.13221, sections 3.3 and 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_finite, checked_integer, checked_positive
from jaxeval.data.battles import Battles
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.versioned_json import read_versioned, write_versioned
from jaxeval.errors import DataError
from jaxeval.execution.precision import versions
from jaxeval.ratings.bradley_terry import fit_bradley_terry, named
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.softelo.conformal import (
    Level,
    conformal_quantile,
    conformal_rank,
    conformity_scores,
    exact_level,
    expected_coverage,
    smallest_calibration,
    supported_level_text,
    usable_models,
)
from jaxeval.softelo.held_out import smoothing, targets
from jaxeval.softelo.judge_agreement import agreement_by_score_gap
from jaxeval.softelo.own_battles import OwnBattles, resampled_strengths, strengths
from jaxeval.softelo.soft_elo import soft_elo
from jaxeval.softelo.temperature import fit_temperature
from jaxeval.wording import counted, did_you_mean

_FORMAT, _VERSION = "jaxeval soft-elo calibration", 1
_CALIBRATION_COLUMNS = ["model", "human_elo", "judge_elo", "residual", "standard_error", "n_battles"]
#: Under so many judged battles a new model's rating is flagged.
FEW_BATTLES = 20

Float = NDArray[np.float64]


@dataclass(frozen=True)
class CalibrationSettings:
    """What made a calibration."""

    ridge: float  # coefficient of ||theta||^2 (not half of it), on anchors and on the new model alike
    base: float
    n_resamples: int
    seed: int
    judge_name: str
    n_battles: int
    scored: bool  # by the judge's scores; False: by its verdicts alone
    mean_score_difference: float  # of absolute values: tells another scale of scores
    versions: str


@dataclass(frozen=True, eq=False)
class CalibratedMethod:
    """One target map, calibrated on M anchor models."""

    beta: float | None  # temperature of the soft map, from all human non-ties; None for the other maps
    anchors: pd.Series  # (M,) log-strengths that the judge gives the anchors, logits, mean zero
    models: pd.DataFrame  # held-out ratings of the calibration models: human_elo, judge_elo, residual, ...

    @property
    def scores(self) -> pd.Series:
        """|residual| / standard error of each calibration model."""
        scores = conformity_scores(self.models["residual"], self.models["standard_error"])
        return pd.Series(scores, pd.Index(self.models["model"], name="model"), name="score")


@dataclass(frozen=True, eq=False)
class SoftEloCalibration:
    """Everything that rating a new model from judged battles needs; plain JSON on disk."""

    methods: dict[str, CalibratedMethod]
    settings: CalibrationSettings
    warnings: list[str]

    @classmethod
    def fit(
        cls,
        battles: JudgedBattles,
        ridge: float = 0.01,
        n_resamples: int = 1000,
        seed: int = 0,
        methods: Sequence[Any] = ("hard", "soft"),
        base: float = 1500.0,
    ) -> SoftEloCalibration:
        """Calibrate on judged battles that have human votes.

        Args:
            battles: scored by the judge that will score the new models, with human labels.
            ridge: as in `soft_elo`, like ``n_resamples``, ``seed``, ``methods`` and ``base``.

        Raises:
            ValueError: no model has a held-out residual and a standard error, or the temperature of the soft map
                cannot be fitted.
        """
        pooled = _pooled_beta(battles) if "soft" in methods else None
        held_out = soft_elo(battles, ridge=ridge, n_resamples=n_resamples, seed=seed, methods=methods, base=base)
        table, left_out = usable_models(held_out)
        calibrated = {}
        for name, block in table.groupby("method", sort=False):
            beta = pooled if name == "soft" else None
            rows = block[_CALIBRATION_COLUMNS].astype({"model": str}).reset_index(drop=True)
            calibrated[str(name)] = CalibratedMethod(beta, _anchors(battles, str(name), beta, ridge), rows)
        settings = CalibrationSettings(
            float(ridge), float(base), n_resamples, seed, battles.judge_name, battles.n_battles, battles.scored,
            float(np.abs(battles.score_difference).mean()), versions(),
        )  # fmt: skip
        return cls(calibrated, settings, [*left_out, *agreement_by_score_gap(battles).attrs["warnings"]])

    def largest_level(self, method: str = "soft") -> str:
        """The largest level that the calibration supports, rounded down to four decimals."""
        return supported_level_text(len(self._method(method).models))

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON; `load` gives it back exactly.

        Raises:
            OSError: the file cannot be written; one that was there is as it was.
        """
        content = {
            "settings": asdict(self.settings),
            "warnings": self.warnings,
            "methods": {
                name: {
                    "beta": method.beta,
                    "anchors": {str(model): float(theta) for model, theta in method.anchors.items()},
                    "models": method.models.to_dict("records"),
                }
                for name, method in self.methods.items()
            },
        }
        write_versioned(path, _FORMAT, _VERSION, content)

    @classmethod
    def load(cls, path: str | Path) -> SoftEloCalibration:
        """Read a calibration that `save` wrote.

        Raises:
            DataError: the file is not one, is broken, or is of a version that this jaxeval does not know.
            FileNotFoundError: there is no such file.
        """
        path = Path(path)
        content = read_versioned(path, _FORMAT, _VERSION, "saved calibration")
        try:
            methods = {str(name): _read_method(str(name), saved) for name, saved in content["methods"].items()}
            settings = CalibrationSettings(**content["settings"])
            _check_settings(settings)
            warnings = [str(w) for w in content["warnings"]]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(
                f"{path.name} is a broken calibration ({type(error).__name__}: {error}): calibrate again, or restore "
                "the file"
            ) from error
        return cls(methods, settings, warnings)

    def predict(
        self,
        new_battles: JudgedBattles,
        level: Level = 0.9,
        method: str = "soft",
        *,
        n_resamples: int | None = None,
        among: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> pd.DataFrame:
        """Ratings of new models on the human scale, with conformal intervals, from judged battles alone.

        Each new model is rated on its own against the anchors, whose strengths stay what the calibration found.

        Args:
            new_battles: scored by the judge of the calibration; each between a new model and an anchor. Human labels
                are not looked at.
            level: 1 - alpha of the intervals.
            method: which of the calibrated target maps.
            n_resamples: of each new model's battles, for its standard error; those of the calibration by default.
            among: calibration models that set the quantile, all by default: the stratum (family, strength) that the
                new models belong to.
            weights: of the calibration models in the quantile, for new models of another population than theirs (see
                `conformal_quantile`).

        Returns:
            One row a new model, best first: ``model, rating, lower, upper, standard_error`` (Elo), ``quantile,
            n_battles, n_anchors, flags``. ``attrs`` holds ``warnings`` and ``settings`` (with the expected coverage).

        Raises:
            DataError: an opponent is not an anchor, or no battle is of a new model.
            ValueError: the calibration is too small for the level (the message says the largest it supports), or
                has no such method.
        """
        chosen = self._method(method)
        notes = self._check_source(new_battles, method)
        quantile, n_scores = self._quantile(chosen, level, among, weights)
        target = _targets(new_battles, method, chosen.beta)
        known = pd.Index(chosen.anchors.index)
        names = pd.Index([str(m) for m in new_battles.models])
        place = known.get_indexer(names)
        a, b = new_battles.model_a.astype(np.intp), new_battles.model_b.astype(np.intp)
        new_a, new_b = place[a] < 0, place[b] < 0
        _refuse_unknown(names, a, b, new_a & new_b, known)
        own = new_a != new_b
        if not own.any():
            raise DataError(
                f"none of {len(a):,} battles is of a new model: all are between the {counted(len(known), 'anchor')}, "
                "which the calibration has rated. A model to predict must not have been calibrated on"
            )
        model, opponent = np.where(new_a, a, b)[own], place[np.where(new_a, b, a)[own]]
        points = np.where(new_a, target, 1 - target)[own]

        b_resamples = self.settings.n_resamples if n_resamples is None else n_resamples
        checked_integer("n_resamples", b_resamples, 2)
        # Sorted, so that the resamples depend neither on the order of the rows nor on the sides.
        order = np.lexsort([points, opponent, model])
        model, opponent, points = model[order], opponent[order], points[order]
        new, start = np.unique(model, return_index=True)
        table = self._rate(
            [
                OwnBattles(str(names[m]), of_model, y[None], chosen.anchors.to_numpy()[None], np.zeros(1))
                for m, of_model, y in zip(new, np.split(opponent, start[1:]), np.split(points, start[1:]), strict=True)
            ],
            b_resamples,
        )
        half = quantile * table["standard_error"]
        table.insert(2, "lower", table["rating"] - half)
        table.insert(3, "upper", table["rating"] + half)
        table.insert(5, "quantile", quantile)
        table = table.sort_values("rating", ascending=False, kind="stable").reset_index(drop=True)
        warnings = [*self.warnings, *notes]
        flagged = table[table["flags"] != ""]
        warnings += [f"{row.model}: {row.flags}" for row in flagged.itertuples()]
        if (~own).any():
            between = counted((~own).sum(), "battle between two anchors", "battles between two anchors")
            warnings.append(f"left out: {between}, from which nothing follows for new models")
        table.attrs = {
            "warnings": warnings,
            "settings": {
                **asdict(self.settings),
                "n_resamples": b_resamples,
                "method": method,
                "beta": chosen.beta,
                "level": float(exact_level(level)),
                "n_calibration": n_scores,
                "expected_coverage": expected_coverage(n_scores, level) if weights is None else None,
            },
        }
        return table

    def _method(self, name: str) -> CalibratedMethod:
        if name not in self.methods:
            have = ", ".join(map(repr, self.methods))
            raise ValueError(f"the calibration has no method {name!r}; it has {have}{did_you_mean(name, self.methods)}")
        return self.methods[name]

    def _check_source(self, new: JudgedBattles, method: str) -> list[str]:
        """Sentences on new battles that another judge, or the same on another scale, may have scored."""
        settings, notes = self.settings, []
        if method == "soft" and new.scored != settings.scored:
            have = ["verdicts only", "scores"]
            raise DataError(
                f"the calibration is on the judge's {have[settings.scored]}, the new battles hold {have[new.scored]}: "
                "name the same kind of columns when reading them"
            )
        if new.judge_name != settings.judge_name:
            notes.append(f"the calibration is of {settings.judge_name!r}, the new battles are of {new.judge_name!r}")
        mean = float(np.abs(new.score_difference).mean())
        if method == "soft" and not settings.mean_score_difference / 4 <= mean <= 4 * settings.mean_score_difference:
            notes.append(
                f"score differences are {mean:.3g} on average, {settings.mean_score_difference:.3g} in the "
                "calibration: on another scale the temperature means nothing"
            )
        return notes

    def _quantile(
        self, method: CalibratedMethod, level: Level, among: Sequence[str] | None, weights: Mapping[str, float] | None
    ) -> tuple[float, int]:
        scores = method.scores
        for what, given in (("among", among), ("weights", weights)):
            unknown = [m for m in given or () if m not in scores.index]
            if unknown:
                raise ValueError(
                    f"{what} names {counted(len(unknown), 'model that does', 'models that do')} not calibrate: "
                    f"{named(unknown)}{did_you_mean(unknown[0], scores.index)}"
                )
        if among is not None:
            scores = scores.loc[list(dict.fromkeys(among))]
        n = len(scores)
        if conformal_rank(n, level) > n:
            raise ValueError(
                f"the calibration is too small for level {float(exact_level(level)):g}: its "
                f"{counted(n, 'model supports', 'models support')} levels up to {supported_level_text(n)}. Ask for "
                f"that, or calibrate on at least {counted(smallest_calibration(level), 'model')}"
            )
        if weights is None:
            return conformal_quantile(scores, level), n
        absent = [m for m in scores.index if m not in weights]
        if absent:
            raise ValueError(f"weights lacks {len(absent)} of {counted(n, 'calibration model')}: {named(absent)}")
        quantile = conformal_quantile(scores, level, [weights[m] for m in scores.index])
        if not np.isfinite(quantile):
            raise ValueError(
                f"under these weights the {counted(n, 'calibration model does', 'calibration models do')} not reach "
                f"level {float(exact_level(level)):g}: ask for a lower level"
            )
        return quantile, n

    def _rate(self, models: list[OwnBattles], n_resamples: int) -> pd.DataFrame:
        """Rating, standard error and flags of new models from their battles."""
        ridge = self.settings.ridge
        theta = strengths(models, ridge)
        models = [own._replace(start=found) for own, found in zip(models, theta, strict=True)]
        drawn = resampled_strengths(models, n_resamples, self.settings.seed, ridge)[:, 0]
        spread = ELO_PER_LOGIT * drawn.std(axis=1, ddof=1)
        rows = []
        for own, found, error in zip(models, theta[:, 0], spread, strict=True):
            points, flags = own.target[0], []
            if len(points) < FEW_BATTLES:
                flags.append(f"only {counted(len(points), 'battle')}")
            if points.min() == 1 or points.max() == 0:
                flags.append("won all its battles" if points.min() == 1 else "lost all its battles")
            if not error > 1e-9:  # all battles alike
                flags.append("its resamples do not differ: no standard error, no interval")
            rows.append(
                {
                    "model": own.name,
                    "rating": self.settings.base + ELO_PER_LOGIT * float(found),
                    "standard_error": error if error > 1e-9 else np.nan,
                    "n_battles": len(points),
                    "n_anchors": len(np.unique(own.opponent)),
                    "flags": "; ".join(flags),
                }
            )
        return pd.DataFrame(rows)


def _targets(battles: JudgedBattles, method: str, beta: float | None) -> Float:
    """(N,) targets of a method named as in the column ``method`` of `soft_elo`."""
    return targets(method, battles.score_difference, battles.hard, beta)


def _pooled_beta(battles: JudgedBattles) -> float:
    fit = fit_temperature(battles.score_difference, battles.human)
    if not (np.isfinite(fit.beta) and fit.beta > 0):
        raise ValueError(
            f"the temperature cannot be fitted on {fit.n_battles:,} human non-ties ({fit.status}): "
            + (
                "the humans prefer what the judge scores lower; check label_coding"
                if fit.beta < 0
                else 'give more battles with human votes, or calibrate methods=("hard",) only'
            )
        )
    return float(fit.beta)


def _anchors(battles: JudgedBattles, method: str, beta: float | None, ridge: float) -> pd.Series:
    """(M,) log-strengths that the judge gives all models of the calibration, mean zero over those with human votes."""
    table = pd.DataFrame(
        {
            "model_a": battles.models[battles.model_a].astype(str),
            "model_b": battles.models[battles.model_b].astype(str),
            "target": _targets(battles, method, beta),
        }
    )
    logits = fit_bradley_terry(Battles.from_pandas(table), ridge).logits
    voted = ~np.isnan(battles.human)
    with_votes = battles.models[np.union1d(battles.model_a[voted], battles.model_b[voted])].astype(str)
    return logits - logits[with_votes].mean()


def _check_settings(settings: CalibrationSettings) -> None:
    checked_positive("ridge", settings.ridge)
    checked_finite("base", settings.base)
    checked_finite("mean_score_difference", settings.mean_score_difference)
    checked_integer("n_resamples", settings.n_resamples, 2)
    checked_integer("seed", settings.seed)
    if not isinstance(settings.scored, bool):
        raise ValueError(f"scored must be true or false, found {settings.scored!r}")


def _read_method(name: str, saved: Any) -> CalibratedMethod:
    if not isinstance(saved["anchors"], dict):
        raise ValueError("anchors must be an object of strengths by model")
    anchors = pd.Series(saved["anchors"], dtype=float, name="logit").rename_axis("model")
    models = pd.DataFrame(saved["models"])[_CALIBRATION_COLUMNS]
    numbers = models[_CALIBRATION_COLUMNS[1:]].to_numpy(float)
    if not (np.isfinite(anchors).all() and np.isfinite(numbers).all()):
        raise ValueError("numbers are missing or not finite")
    if models["model"].duplicated().any() or not (models["standard_error"] >= 0).all():
        raise ValueError("models must be named once, with a standard error >= 0")
    if not np.allclose(models["judge_elo"] - models["human_elo"], models["residual"], rtol=0, atol=1e-6):
        raise ValueError("residual must be judge_elo minus human_elo")
    beta = saved["beta"]
    if (beta is None) == (name == "soft") or (name == "soft" and not 0 < float(beta) < np.inf):
        raise ValueError(f"beta of method {name!r} cannot be {beta!r}")
    if name != "soft":
        smoothing(name)
    return CalibratedMethod(None if beta is None else float(beta), anchors, models.astype({"model": str}))


def _refuse_unknown(
    names: pd.Index, a: NDArray[np.intp], b: NDArray[np.intp], both_new: NDArray[np.bool_], anchors: pd.Index
) -> None:
    if not both_new.any():
        return
    found = pd.concat([pd.Series(names[a[both_new]]), pd.Series(names[b[both_new]])]).value_counts()
    shown = ", ".join(f"{m} ({c:,})" for m, c in found.head(8).items())
    raise DataError(
        f"{both_new.sum():,} of {counted(len(a), 'battle has', 'battles have')} no anchor on either side, and a new "
        "model is rated against anchors only. Models of these battles that are not among the "
        f"{counted(len(anchors), 'anchor')}: {shown}; the anchors are {named(anchors)}. Leave those battles out, or "
        "correct the names"
    )
