"""Results with covariates or a tie model: ratings and draws next to what else decides a battle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.arrays import Float
from jaxeval.checks import checked_number
from jaxeval.data.report import DataReport
from jaxeval.kernels.connectivity import Standing
from jaxeval.lazy_names import pd
from jaxeval.ratings.boards import Board
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import bootstrap_result
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.contextual_boards import ContextualBoard, tie_parameters, unit_coefficients
from jaxeval.ratings.options import BootstrapOptions, FitOptions, FitSettings
from jaxeval.ratings.refits import Refitted
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.show.cells import with_kinds
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import interval_bounds, normal_quantile
from jaxeval.wording import did_you_mean


@dataclass(frozen=True, eq=False, repr=False)
class ContextualFit(BradleyTerryFit):
    """A fit with covariates, a tie model, or both: ratings as in `BradleyTerryFit`, beside these other effects.

    A rating difference is that of battles in which all covariates are equal on both sides. Its scale depends on how
    ties are treated. Ratings on different scales must not be compared.

    - As half a win: the log-odds of the expected score, P(win) + P(tie) / 2 = s(theta_i - theta_j). This is the scale
      of fits without a tie model. With the probit link s is the normal distribution function.
    - Davidson: the log-odds of decisive battles, P(win) / P(loss) = exp(theta_i - theta_j). The more ties, the wider
      these ratings are spread: some move by 50 Elo on votes of the Arena, and by 150 Elo where models differ more.
    - Rao and Kupper: the log-odds s(theta_i - theta_j) of a win if the slightest advantage decided every battle. A tie
      is an advantage under the threshold t. These ratings are mostly spread wider, too.

    ``expected_score`` has the ratings on the first scale beside those of a tie model.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0), ties="davidson")
        >>> round(fit.tie_parameter, 2)
        -0.44
        >>> fit.outcome_probabilities("model-1", "model-2").round(2).to_dict()
        {'win': 0.53, 'tie': 0.23, 'loss': 0.24, 'expected': 0.65}
    """

    _board: ContextualBoard = field(repr=False)

    @property
    def context(self) -> FitSettings:
        """The settings: ``features``, ``normalize``, ``feature_ridge`` and ``ties`` among them."""
        return self.settings

    @property
    def expected_score(self) -> BradleyTerryFit:
        """The fit of the same battles with ties as half a win, whose ratings are on the scale of expected scores.

        It is the Bradley-Terry model that is closest to the battles' results in Kullback-Leibler divergence: every
        model's expected scores add up to the points that it took. Davidson's model without covariates has the same
        sums, so that this fit is also the closest one to Davidson's expected scores. With ties as half a win it is this
        fit itself.
        """
        return self if self._ties_as_half is None else self._ties_as_half

    @property
    def tie_parameter(self) -> float:
        """t: Davidson's log nu or Rao and Kupper's threshold, logits; NaN where ties are half a win.

        A slice without ties has it at its limit, -inf or 0.
        """
        return float("nan") if self.settings.ties == "half" else float(self._board.estimates()[-1])

    @property
    def tie_parameter_standard_error(self) -> float:
        """Sandwich standard error of ``tie_parameter``; NaN where that is at its limit."""
        variance = self._covariance[-1, -1]
        return float(np.sqrt(variance)) if self._board.free[-1] else float("nan")

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row per covariate, with sandwich errors and intervals; with a tie model t is the last row.

        Columns are ``coefficient`` (logits for one unit, or probits), ``standard_error``, ``lower`` and ``upper``;
        ``odds_ratio`` with its ends, of logits only; ``elo``; and ``unit``, what one unit is on the covariate's own
        scale.
        """
        size = len(self._board.phi) - 1 - len(self.settings.features)
        error = np.sqrt(np.maximum(np.diag(self._covariance)[size:], 0))
        error = error * np.append(self._board.covariates.factor, 1.0)
        half = normal_quantile(level) * error
        estimate = self._board.estimates()
        return self.coefficient_table(error, estimate - half, estimate + half)

    @property
    def coefficient_names(self) -> pd.Index:
        """The covariates, and with a tie model the "tie parameter"."""
        of_ties = [] if self.settings.ties == "half" else ["tie parameter"]
        return pd.Index([*self.settings.features, *of_ties], name="feature", dtype=object)

    def coefficient_table(self, error: Float, lower: Float, upper: Float) -> pd.DataFrame:
        """Make `coefficients` from errors and bounds; these arrays may have an entry for t even without a tie model."""
        names, d = self.coefficient_names, len(self.settings.features)
        n = len(names)
        unit = np.append(self._board.covariates.unit, np.nan)[:n]
        estimate = self._board.estimates()[:n]
        without = ~np.isfinite(estimate) | np.append(np.zeros(d, bool), not self._board.free[-1])[:n]
        error, lower, upper = (np.where(without, np.nan, x[:n]) for x in (error, lower, upper))
        columns = {"coefficient": estimate, "standard_error": error, "lower": lower, "upper": upper}
        # The tie parameter has no odds ratio and no Elo, and coefficients in probits have no odds ratio.
        of_features = np.arange(n) < d
        has_odds = of_features & (self.settings.link == "logit")
        ratios = {"odds_ratio": estimate, "odds_ratio_lower": lower, "odds_ratio_upper": upper}
        with np.errstate(over="ignore", under="ignore"):
            columns |= {name: np.where(has_odds, np.exp(x), np.nan) for name, x in ratios.items()}
        from jaxeval.show.table import Table

        table = pd.DataFrame(columns, names)
        table = table.assign(elo=np.where(of_features, self.scale.unit * estimate, np.nan), unit=unit)
        return Table.of(table, "Coefficients", ends_of="coefficient")

    @property
    def warnings(self) -> list[str]:
        """What the data cannot say, in words."""
        coefficients = self._board.estimates()[: len(self.settings.features)]
        runaway = [name for name, x in zip(self.settings.features, coefficients, strict=True) if np.isinf(x)]
        messages = super().warnings
        if runaway:
            messages.append(
                f"{' and '.join(map(repr, runaway))}: the side that has more of it won all its battles, or lost them "
                "all, whatever the models: no finite coefficient (a feature_ridge > 0, on the command line "
                "--feature-ridge, gives one)"
            )
        return messages

    def outcome_probabilities(
        self, model_a: Any, model_b: Any, features: Mapping[str, float] | None = None
    ) -> pd.Series:
        """Return ``win``, ``tie`` and ``loss`` of ``model_a`` against ``model_b``, and the ``expected`` result.

        Args:
            model_a: a model of the board.
            model_b: its opponent.
            features: by name, side A's less side B's value of a covariate on its own scale; 0 unless given.

        Raises:
            ValueError: an unknown model or covariate.
        """
        probabilities = outcome_probabilities(self, self.theta_of(model_a), self.theta_of(model_b), features or {})
        return pd.Series({name: float(x) for name, x in probabilities.items()})

    def theta_of(self, model: Any) -> float:
        """Return the log-strength of a model of the board; infinite or NaN if it has no rating."""
        if model not in self.ratings.index:
            hint = did_you_mean(model, self.ratings.index)
            raise ValueError(f"no model {model!r} on the board of {len(self.ratings):,}{hint}")
        return float(self.strengths[model])


def outcome_probabilities(
    fit: ContextualFit, theta_a: ArrayLike, theta_b: ArrayLike, features: Mapping[str, float],
    coefficients: Float | None = None, tie: ArrayLike | None = None,
) -> dict[str, Float]:  # fmt: skip
    """Return ``win, tie, loss, expected`` by the fit, or by draws (B,): strengths, ``coefficients`` (B, D), ``tie``."""
    covariates, n_features = fit._board.covariates, len(fit.settings.features)
    if not isinstance(features, Mapping):
        raise TypeError(f"features must be values by name, as {{'length': 2.0}}, got {features!r}")
    unknown = [name for name in features if name not in covariates.names]
    if unknown:
        raise ValueError(f"no covariate {unknown[0]!r}; the fit has {', '.join(map(repr, covariates.names)) or 'none'}")
    values = np.array([checked_number(f"feature {name!r}", features.get(name, 0.0)) for name in covariates.names])
    for name, value in zip(covariates.names, values.tolist(), strict=True):
        if not np.isfinite(value):
            raise ValueError(f"feature {name!r} must be finite, got {value}")
    x = values / covariates.unit
    estimates = fit._board.estimates()
    with np.errstate(invalid="ignore"):
        # A covariate that is equal on both sides does not matter, even if its coefficient is infinite.
        of_features = np.where(x == 0, 0.0, estimates[:n_features] if coefficients is None else coefficients) @ x
        z = np.asarray(theta_a) - np.asarray(theta_b) + of_features
    win, tie_, loss = fit._board.outcomes(z, estimates[-1] if tie is None else tie)
    return {"win": win, "tie": tie_, "loss": loss, "expected": win + tie_ / 2}


def board_fit(board: Board, drawn: VoteGroups, report: DataReport, options: FitOptions) -> BradleyTerryFit:
    """Return the result for a fitted board: a `ContextualFit` if it has covariates or a tie model."""
    if isinstance(board, ContextualBoard):
        return fit_result(ContextualFit, board, drawn, report, options, features=board.covariates.names)
    return fit_result(BradleyTerryFit, board, drawn, report, options)


@dataclass(frozen=True, eq=False, repr=False)
class ContextualBootstrap(Bootstrap):
    """B refitted resamples with covariates or a tie model: a `Bootstrap`, with the draws of the other parameters.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.bootstrap(jaxeval.simulate_battles(2_000, 4, seed=0), 100, ties="davidson")
        >>> board.tie_draws.shape
        (100,)
        >>> board.coefficients().loc["tie parameter", ["lower", "upper"]].round(1).tolist()
        [-0.5, -0.3]
    """

    fit: ContextualFit
    coefficient_draws: Float = field(kw_only=True, repr=False)  # (B, D) per unit of the (normalised) covariates
    tie_draws: Float = field(kw_only=True, repr=False)  # (B,) tie parameters t; 0 where ties are half a win
    _ties_as_half: Bootstrap | None = field(default=None, repr=False)

    @property
    def expected_score(self) -> Bootstrap:
        """The resamples refitted with ties as half a win: ratings and intervals on the scale of expected scores.

        See `ContextualFit.expected_score`. With ties as half a win they are these resamples themselves.
        """
        return self if self._ties_as_half is None else self._ties_as_half

    def beside_expected_score(self, half: Bootstrap) -> ContextualBootstrap:
        """Return the same with ``half``, the resamples refitted with ties as half a win."""
        return replace(self, fit=replace(self.fit, _ties_as_half=half.fit), _ties_as_half=half)

    @property
    def warnings(self) -> list[str]:
        """What the data or the computation leave open, in words."""
        messages = super().warnings
        share = np.isinf(self.coefficient_draws).mean(0)
        for name, lost in zip(self.fit.settings.features, share, strict=True):
            if lost > 0:
                messages.append(
                    f"{name!r} has no finite coefficient in {lost:.1%} of the resamples, where the side that has more "
                    "of it won all its battles, or lost them all: its interval is unreliable"
                )
        without = float((self.tie_draws == self.fit._board.tie_limit).mean())
        if without > 0 and self.fit._board.free[-1]:
            messages.append(f"{without:.1%} of the resamples have no ties: the tie parameter is at its limit in them")
        return messages

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """Return the `coefficients`, as records."""
        return {"coefficients": self.coefficients(level).reset_index().to_dict("records")}

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row per covariate: the full-data estimate, errors and percentile intervals of the draws.

        With a tie model its parameter t is the last row, "tie parameter".
        """
        joint = self.joint_coefficients
        lower, upper = joint.interval(level).to_numpy().T
        return self.fit.coefficient_table(joint.standard_errors.to_numpy(), lower, upper)

    @property
    def joint_coefficients(self) -> Draws:
        """The coefficients as joint draws; with a tie model its parameter is the last, "tie parameter"."""
        fitted, names = self.fit._board, self.fit.coefficient_names
        draws = np.column_stack([self.coefficient_draws, self.tie_draws])[:, : len(names)]
        return Draws(
            names, fitted.estimates()[: len(names)], np.where(self.converged[:, None], draws, np.nan),
            converged=self.converged, anchored=~fitted.free[: len(names)], settings=self.settings,
        )  # fmt: skip

    def outcome_probabilities(
        self, model_a: Any, model_b: Any, features: Mapping[str, float] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Return ``win``, ``tie``, ``loss`` and ``expected`` of one model against another, with percentile intervals.

        Args:
            model_a: a model of the board.
            model_b: its opponent.
            features: as in `ContextualFit.outcome_probabilities`.
            level: of the intervals.
        """
        fit = self.fit
        point = fit.outcome_probabilities(model_a, model_b, features)
        a, b = (self.models.get_loc(model) for model in (model_a, model_b))
        draws = outcome_probabilities(
            fit, self.draws_logit[:, a], self.draws_logit[:, b], features or {}, self.coefficient_draws, self.tie_draws
        )
        together = np.where(self.converged[:, None], np.stack(list(draws.values()), 1), np.nan)
        lower, upper = interval_bounds(together, level)
        ends = {"lower": lower, "upper": upper}
        table = pd.DataFrame({"probability": point, **ends}, pd.Index(draws, name="outcome"))
        return with_kinds(table, ends_of="probability")


def contextual_bootstrap(fit: ContextualFit, refitted: Refitted, options: BootstrapOptions) -> ContextualBootstrap:
    """Return the draws of one slice."""
    fitted = fit._board
    kept = np.where(refitted.converged[:, None], refitted.parameters, np.nan)
    coefficients = unit_coefficients(kept[:, kept.shape[1] - 1 - fitted.n_features : -1], fitted)
    rates_some = (refitted.standing == Standing.IDENTIFIED).any(1) | (options.ridge > 0)
    ties = np.where(rates_some, tie_parameters(kept[:, -1], fitted), np.nan)
    return bootstrap_result(ContextualBootstrap, fit, refitted, options, coefficient_draws=coefficients, tie_draws=ties)
