"""What was read of a table of battles, in numbers and in words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from jaxeval.wording import counted

BothBad = Literal["half", "drop"]


@dataclass(frozen=True)
class DataReport:
    """What was read, what takes part in fits, and what was left out and why (battles unless said otherwise).

    Examples:
        >>> import jaxeval
        >>> report = jaxeval.simulate_battles(200, n_models=3).report
        >>> report.n_battles, report.n_self_battles
        (200, 0)
        >>> print(report)
        200 rows: 200 battles between 3 models, 41 of them ties
        13 both-bad battles counted as ties
    """

    n_rows: int  # rows of the input, each of which may stand for several battles
    n_battles: int  # that take part in fits
    n_models: int
    n_ties: int  # targets of exactly 1/2 among n_battles, both-bad ones included
    n_both_bad: int  # both-bad rows found
    both_bad: BothBad  # and what was done with them
    n_self_battles: int  # a model against itself: no information about differences
    n_zero_weight: int  # weight 0: no information at all
    models_left_out: tuple[Hashable, ...] = ()  # models seen in left-out rows only
    n_empty_rows: int = 0  # rows of the input that count no battle
    target: str | None = None  # the column of targets, if it was named beside a column "winner", which is not used then
    n_opposed: int = 0  # battles in which those two columns name opposite sides,
    n_decided: int = 0  # of those in which both name one

    @property
    def warnings(self) -> list[str]:
        """A sentence where targets and winners contradict each other."""
        if self.n_opposed == 0:
            return []
        name = self.target
        return [
            f"column {name!r} is used as the probability that side A wins, and column 'winner' is not used: they name "
            f"opposite sides in {self.n_opposed:,} of {counted(self.n_decided, 'battle')} "
            f"({self.n_opposed / self.n_decided:.0%}). If {name!r} says how sure a judge was of the winner, use it as "
            f"a weight: weight={name!r}, on the command line --weight {name}"
        ]

    def __str__(self) -> str:
        lines = [
            f"{counted(self.n_rows, 'row')}: {counted(self.n_battles, 'battle')} between "
            f"{counted(self.n_models, 'model')}, {counted(self.n_ties, 'of them a tie', 'of them ties')}"
        ]
        if self.n_both_bad:
            done = "counted as ties" if self.both_bad == "half" else "left out on request"
            lines.append(f"{counted(self.n_both_bad, 'both-bad battle')} {done}")
        if self.n_self_battles:
            lines.append(f"{counted(self.n_self_battles, 'battle')} of a model against itself left out")
        if self.n_zero_weight:
            lines.append(f"{counted(self.n_zero_weight, 'battle')} of weight 0 left out")
        if self.n_empty_rows:
            lines.append(f"{counted(self.n_empty_rows, 'row that counts', 'rows that count')} no battle left out")
        if self.target is not None:
            lines.append(f"results are those of column {self.target!r}; column 'winner' is not used")
        if self.models_left_out:
            names = ", ".join(map(str, self.models_left_out))
            lines.append(f"{counted(len(self.models_left_out), 'model')} without a usable battle left out: {names}")
        return "\n".join(lines)
