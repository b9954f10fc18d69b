"""What a test of fit finds: its tables, and what they mean in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import PartResult
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.tables.shown import Answer, settings_line
from jaxeval.wording import MODEL, Noun, counted, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = "goodness_of_fit"
# A share of the log-odds in circles that a reader should know of.
_MUCH = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit(PartResult):
    """How well one number per model fits, and where it does not.

    ``statistic`` is Pearson's X2 of the pairs' points, on ``dof`` degrees of freedom; ``p_value`` is the share of
    boards of chance with so large a one. ``table`` has a row per test: X2; the deviance from a board on which each pair
    has its own share of points; and what results should not depend on: the side, lengths, features, time. ``effect`` is
    in logits. ``reasons`` says why a test, or another number, is missing.

    ``pairs`` has a row per pair, those that stick out most first: ``votes``, ``share`` of the points of the first
    model and the ``expected`` one, ``z``, and ``p_value``, which holds for all pairs at once. ``triads`` has a row per
    triad: ``cycle``, its log-odds around (0 where one number per model fits), ``z``, ``p_value`` for all triads at
    once, and ``circular``, whether each of the three beats the next.

    ``cyclic_share`` is the share of the squared log-odds of pairs that no strengths explain (Hodge's split, DOI
    10.1007/s10107-010-0419-x), beyond ``cyclic_floor``, which chance alone gives. ``cyclic_error`` is the standard
    deviation of chance.

    ``explained`` says how much of the misfit other boards remove. ``ranks`` has a row per pair of neighbours, with
    the standard errors of their gap: of the model, of the sandwich, and with other opponents.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> found = jaxeval.goodness_of_fit(votes, n_resamples=99, progress=False)
        >>> print(f"{found.statistic:.2f} on {found.dof}, p {found.p_value:.2f}")
        4.71 on 3, p 0.21
    """

    table: pd.DataFrame
    statistic: float
    dof: int
    p_value: float
    deviance: float
    deviance_p_value: float
    pairs: pd.DataFrame
    triads: pd.DataFrame
    cyclic_share: float
    cyclic_floor: float
    cyclic_error: float
    explained: pd.DataFrame
    ranks: pd.DataFrame
    method: str  # how the p-values were found, in words
    reasons: Mapping[str, str]  # by the name of what is missing
    warnings: list[str]
    settings: Mapping[str, Any] = field(repr=False)
    competitor: Noun = MODEL  # what is rated, in words

    def _shown(self) -> Answer:
        return Answer(f"GoodnessOfFit: {self._verdict}", self.table, settings_line(self.settings), self.warnings)

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The tests, the pairs, the triads, what removes misfit, and the errors of gaps."""
        more = {name: getattr(self, name) for name in ("pairs", "triads", "explained", "ranks")}
        return {"": self.table, **more}

    def figures(self) -> dict[str, Figure]:
        """Shares of points as they are and as ratings expect them, and which model did better in which pair."""
        from jaxeval.plots.pairs import plot_pair_fit, plot_pair_residuals

        return {"shares": plot_pair_fit(self.pairs), "residuals": plot_pair_residuals(self.pairs)}

    def findings(self) -> list[Finding]:
        """What it says in words, the test first."""
        return [Finding(PART, severity, f"{text[0].upper()}{text[1:]}.") for severity, text in self._said()]

    @property
    def _misfit(self) -> bool:
        return self.p_value <= self._alpha

    @property
    def _alpha(self) -> float:
        return 1 - float(self.settings["level"]) + 1e-9

    @property
    def _verdict(self) -> str:
        return (
            f"one number per {self.competitor.one} {'does not fit' if self._misfit else 'fits'} the votes: Pearson's "
            f"X2 is {self.statistic:,.0f} on {_degrees(self.dof)} ({_p(self.p_value)}, {self.method})"
        )

    def _said(self) -> Iterator[tuple[Severity, str]]:
        much = Severity.SERIOUS if self.statistic > 2 * self.dof else Severity.CAUTION
        yield much if self._misfit else Severity.REASSURING, self._verdict
        if np.isfinite(self.deviance_p_value) and (self.deviance_p_value <= self._alpha) != self._misfit:
            yield (
                Severity.NOTE,
                f"the deviance says otherwise: it is {self.deviance:,.0f} ({_p(self.deviance_p_value)})",
            )
        yield from self._of_pairs()
        yield from self._of_circles()
        yield from self._of_tests()
        if self._misfit:
            for row in self.explained.iloc[1:].itertuples():
                share = f"{100 * min(abs(row.removed), 1):.0f}%"
                told = f"removes {share} of the misfit" if row.removed >= 0 else f"adds {share} to the misfit"
                if np.isfinite(row.removed):
                    yield Severity.NOTE, f"{visible_line(row.board)} {told}"
            yield self._of_ranks()

    def _of_pairs(self) -> Iterator[tuple[Severity, str]]:
        odd = self.pairs[self.pairs["p_value"] <= self._alpha]
        for row in odd.head(1).itertuples():
            a, b = visible_line(row.model_a), visible_line(row.model_b)
            number = f"{len(odd):,} of {counted(len(self.pairs), 'pair')} {'sticks' if len(odd) == 1 else 'stick'} out"
            yield (
                Severity.CAUTION,
                f"{number}, most of all {a} against {b}: {a} took {100 * row.share:.1f}% of "
                f"the points in {counted(row.votes, 'vote')}, where ratings expect {100 * row.expected:.1f}% "
                f"({_p(row.p_value)} among all pairs)",
            )

    def _of_circles(self) -> Iterator[tuple[Severity, str]]:
        if np.isfinite(self.cyclic_share):
            clear, much = self.cyclic_share > 2 * self.cyclic_error, self._misfit and self.cyclic_share > _MUCH
            yield (
                Severity.REASSURING if not clear else Severity.CAUTION if much else Severity.NOTE,
                f"{100 * self.cyclic_share:.1f}% of the squared log-odds of pairs go in circles, beyond the "
                f"{100 * self.cyclic_floor:.1f}% that chance gives (standard deviation {100 * self.cyclic_error:.1f})",
            )
        odd = self.triads[self.triads["p_value"] <= self._alpha]
        for row in odd.head(1).itertuples():
            triads = f"{counted(len(self.triads), 'triad')} of {self.competitor.many}"
            number = f"{len(odd):,} of {triads} {'does' if len(odd) == 1 else 'do'}"
            names = " over ".join(map(visible_line, (row.model_1, row.model_2, row.model_3, row.model_1)))
            yield (
                Severity.CAUTION,
                f"{number} not add up, {int(odd['circular'].sum()):,} of them with each beating the next; "
                f"the clearest, {names}, has {row.cycle:.2f} logits too many ({_p(row.p_value)} among all triads)",
            )

    def _of_tests(self) -> Iterator[tuple[Severity, str]]:
        tests = self.table.iloc[2:]  # after X2 and the deviance
        for row in tests[tests["p_value"] * len(tests) <= self._alpha].itertuples():
            chance = f"{_p(row.p_value)}"
            if np.isnan(row.effect):
                number = f"chi-square {row.statistic:,.0f} on {_degrees(row.dof)}"
                yield (
                    Severity.CAUTION,
                    f"strengths of {self.competitor.many} drift with {visible_line(row.test)}: {number} ({chance})",
                )
            else:
                number = f"{row.effect:+.3f} logits (standard error {row.standard_error:.3f}, {chance})"
                yield Severity.CAUTION, f"results depend on {visible_line(row.test)}: {number}"

    def _of_ranks(self) -> tuple[Severity, str]:
        z, table = normal_quantile(self.settings["level"]), self.ranks
        names = ("model_error", "sandwich_error", "opponents_error")
        apart = [int((table["gap"] > z * table[name]).sum()) for name in names]
        ratio = float((table["opponents_error"] / table["sandwich_error"]).median())
        return (
            Severity.CAUTION if apart[2] < apart[1] else Severity.NOTE,
            f"of {counted(len(table), 'pair')} of neighbours, the errors of the model tell {apart[0]:,} apart, errors "
            f"that do not rely on it {apart[1]:,}, and errors that allow for other opponents {apart[2]:,} (these are "
            f"{ratio:.2f} times as large in the median)",
        )


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.095 else f"p = {value:.2f}"


def _degrees(n: int) -> str:
    return counted(n, "degree of freedom", "degrees of freedom")
