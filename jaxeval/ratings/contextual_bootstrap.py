"""Bootstrap of fits with covariates or a tie model: the draws of ratings, coefficients and the tie parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.ratings.bootstrap_result import Bootstrap, ContextDraws, bootstrap_result
from jaxeval.ratings.contextual_boards import tie_parameters, unit_coefficients
from jaxeval.ratings.contextual_fit import ContextualFit, outcome_probabilities
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import Refitted
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import interval_bounds


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

    @property
    def coefficient_draws(self) -> Float:
        """(B, D) logits, or probits, per unit of the (normalised) covariates."""
        return self._draws_of_context.coefficients

    @property
    def tie_draws(self) -> Float:
        """(B,) tie parameters t; 0 where ties are half a win."""
        return self._draws_of_context.ties

    @property
    def _draws_of_context(self) -> ContextDraws:
        assert self._context is not None
        return self._context

    @property
    def expected_score(self) -> Bootstrap:
        """The resamples refitted with ties as half a win: ratings and intervals on the scale of expected scores.

        See `ContextualFit.expected_score`. With ties as half a win they are these resamples themselves.
        """
        half = self._draws_of_context.ties_as_half
        return self if half is None else half

    def beside_expected_score(self, half: Bootstrap) -> ContextualBootstrap:
        """The same with ``half``, the resamples refitted with ties as half a win."""
        fit = replace(self.fit, _ties_as_half=half.fit)
        return replace(self, fit=fit, _context=self._draws_of_context._replace(ties_as_half=half))

    @property
    def warnings(self) -> list[str]:
        """What the data or the computation leave open, in words."""
        messages = super().warnings
        share = np.isinf(self.coefficient_draws).mean(0)
        for name, own in zip(self.fit.context.features, share, strict=True):
            if own > 0:
                messages.append(
                    f"{name!r} has no finite coefficient in {own:.1%} of the resamples, where the side that has more "
                    "of it won all its battles, or lost them all: its interval is unreliable"
                )
        without = float((self.tie_draws == self.fit._contextual.tie_limit).mean())
        if without > 0 and self.fit._contextual.free[-1]:
            messages.append(f"{without:.1%} of the resamples have no ties: the tie parameter is at its limit in them")
        return messages

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """The `coefficients`, as records."""
        return {"coefficients": self.coefficients(level).reset_index().to_dict("records")}

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """A row per covariate: the full-data estimate, errors and percentile intervals of the draws.

        With a tie model its parameter t is the last row, "tie parameter".
        """
        joint = self.joint_coefficients
        lower, upper = joint.interval(level).to_numpy().T
        return self.fit.coefficient_table(joint.standard_errors.to_numpy(), lower, upper)

    @property
    def joint_coefficients(self) -> Draws:
        """The coefficients as joint draws; with a tie model its parameter is the last, "tie parameter"."""
        fitted, names = self.fit._contextual, self.fit.coefficient_names
        draws = np.column_stack([self.coefficient_draws, self.tie_draws])[:, : len(names)]
        return Draws(
            names,
            fitted.estimates()[: len(names)],
            np.where(self.converged[:, None], draws, np.nan),
            converged=self.converged,
            anchored=~fitted.free[: len(names)],
            settings=self.settings,
        )

    def outcome_probabilities(
        self, model_a: Any, model_b: Any, features: Mapping[str, float] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """``win``, ``tie``, ``loss`` and ``expected`` of one model against another, with percentile intervals.

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
        return pd.DataFrame({"probability": point, "lower": lower, "upper": upper}, pd.Index(draws, name="outcome"))


def contextual_bootstrap(fit: ContextualFit, refitted: Refitted, options: BootstrapOptions) -> ContextualBootstrap:
    """The draws of one slice."""
    fitted = fit._contextual
    kept = np.where(refitted.converged[:, None], refitted.parameters, np.nan)
    coefficients = unit_coefficients(kept[:, kept.shape[1] - 1 - fitted.n_features : -1], fitted)
    context = ContextDraws(coefficients, tie_parameters(kept[:, -1], fitted), None)
    return bootstrap_result(ContextualBootstrap, fit, refitted, options, context)
