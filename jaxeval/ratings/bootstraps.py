"""The bootstraps of slices: a result for each group, and what is in no slice."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

import pandas as pd

from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import Slices, slice_name
from jaxeval.show.shown import Answer, Result
from jaxeval.wording import Noun, common_noun, counted, named, slice_title


class Bootstraps(Result, dict[Hashable, Bootstrap]):
    """The bootstraps of the slices, by group, and what is in no slice.

    Slices with similar numbers of models keep their draws in one array. Its memory is freed when none of them is left.

    Attributes:
        by: the columns whose groups the slices are.
        left_out: how many battles each slice has that is not rated, as they are too few; by group.
        n_missing: battles without a value of ``by``, which are in no slice: ``missing="drop"``.
        told: how often battles count where categories overlap, in words; else empty.
    """

    def __init__(self, boards: Iterable[tuple[Hashable, Bootstrap]], slices: Slices, options: BootstrapOptions) -> None:
        overlapping = slices.overlapping
        super().__init__((group, replace(x, _overlapping=overlapping) if overlapping else x) for group, x in boards)
        self.by, self.left_out, self.n_missing, self.told = slices.by, slices.left_out, slices.n_missing, slices.told
        self._least = options.min_slice_battles

    def _shown(self) -> Answer:
        rows = {
            "n_models": [len(board.models) for board in self.values()],
            "n_battles": [int(board.fit.n_battles.sum()) // 2 for board in self.values()],
            "best": [board.fit._best_first().index[0] for board in self.values()],
        }
        table = pd.DataFrame(rows, pd.Index(map(slice_name, self), name=" / ".join(self.by)))
        settings = next(iter(self.values())).settings if self else ""
        return Answer(f"Bootstraps: {counted(len(self), 'slice')}", table, settings, self.warnings)

    def _sentences(self) -> list[str]:
        return [f"{slice_title(slice_name(group), self.by)}: {board.first_sentence()}" for group, board in self.items()]

    @property
    def competitor(self) -> Noun:
        """What is rated, in a word and its plural."""
        return common_noun(board.competitor for board in self.values())

    @property
    def warnings(self) -> list[str]:
        """What is in no slice, in words."""
        by, messages = " / ".join(self.by), []
        if self.n_missing:
            are = "battles without a value of {} are" if self.n_missing > 1 else "battle without a value of {} is"
            messages.append(f"{self.n_missing:,} {are.format(by)} in no slice")
        if len(self.left_out):
            shown = [f"{slice_name(group)} ({n:,})" for group, n in self.left_out.items()]
            few = f"{len(shown):,} slices by {by} have" if len(shown) > 1 else f"1 slice by {by} has"
            messages.append(
                f"{few} fewer than {self._least:,} battles and no ratings (battles in brackets): {named(shown)}"
            )
        return messages
