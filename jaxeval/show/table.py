"""Result tables: DataFrames that print what matters where pandas would leave out the middle."""

from __future__ import annotations

from typing import Any

import pandas as pd

from jaxeval.show.boards import is_board, leaderboard_answer
from jaxeval.show.cells import with_kinds
from jaxeval.show.documents import text_table
from jaxeval.show.shown import Answer, Result
from jaxeval.wording import visible


class Table(Result, pd.DataFrame):  # type: ignore[misc]
    """A DataFrame that a function returns as its result, and that shows its most important columns first.

    If all columns fit on a line of ``pandas.options.display.width`` characters, it prints as pandas prints it.
    Otherwise it prints the most important columns with rounded numbers, and names the others below. In notebooks it
    shows bars. The order of the columns in the frame does not change.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 3, seed=0), n_resamples=200)
        >>> table
        rank  model    rating  lower, upper  vote_count  tier  variance  rank_best
           1  model-1    1060    1048, 1072       1,160     1     37.11          1
           2  model-2     994     983, 1003       1,528     2     26.70          2
           3  model-3     946      936, 958       1,312     3     33.29          3
        (columns not shown: rank_worst, component, preliminary, degenerate_share)
        >>> table[["model", "rating", "rank"]].round()
             model  rating  rank
        0  model-1  1060.0     1
        1  model-2   994.0     2
        2  model-3   946.0     3
    """

    _metadata = ["_title", "_first"]
    _title = ""
    _first: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, frame: pd.DataFrame, title: str, first: tuple[str, ...] = (), ends_of: str | None = None, **kinds: str
    ) -> Table:
        """Return the frame with its ``attrs``, a title for notebooks, the columns to show first, and `with_kinds`."""
        table = cls(frame)
        table.attrs = frame.attrs
        table._title, table._first = title, first
        return with_kinds(table, ends_of, **kinds)

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def __repr__(self) -> str:
        if self.empty:
            return repr(pd.DataFrame(self))
        options = pd.options.display
        width, most = options.width or 80, options.max_rows or len(self)
        as_usual = pd.DataFrame.to_string(self, max_rows=most, min_rows=options.min_rows)
        if max(map(len, as_usual.splitlines())) <= width and visible(as_usual) == as_usual:
            return as_usual
        return text_table(
            self._in_order, width=width, most_rows=None if len(self) <= most else options.min_rows or most
        )

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return self.styled(rows=pd.options.display.max_rows)

    @property
    def _in_order(self) -> pd.DataFrame:
        """The columns as they are shown."""
        first = [name for name in self._first if name in list(self.columns)]  # an index of levels holds their starts
        return self[[*first, *self.columns.drop(first)]] if first else self

    def _shown(self) -> Answer:
        warnings = self.attrs.get("warnings", [])
        return Answer(self._title, self._in_order, self.attrs.get("settings"), warnings)

    def _in_full(self, view: Answer) -> Answer:
        if is_board(self) and "settings" in self.attrs:
            return leaderboard_answer(self)._replace(figures=view.figures)
        return view._replace(tables={"table": self})

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"leaderboard": ("plot_leaderboard", self)} if is_board(self) else {}

    def _sentences(self) -> list[str]:
        return str(self.attrs.get("answer", "")).splitlines() or list(super()._sentences())
