"""Two boards compared: refitted on one draw of all votes where they share some, else on independent draws.

A unit of the draw is a kind of vote: a cell of one board and a cell of the other, or of one of them alone, with the
number of such votes; or a cluster, drawn whole. The boards have the same units and the same random numbers, and each
adds up its own cells. So they are drawn together whatever their models, results or covariates are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Int
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.data.columns import factorize_sorted, plain
from jaxeval.data.features import Feature
from jaxeval.data.rankings import Rankings
from jaxeval.data.readers import read_battles
from jaxeval.data.shared_votes import SharedVotes, Sharing, all_equal, columns_for_votes, look_equal, shared_votes
from jaxeval.errors import DataError
from jaxeval.execution.processes import together
from jaxeval.execution.runs import RunOptions, digest_of, of_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.options.boards import Gauge
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.board_comparison import BoardComparison, BoardPairing
from jaxeval.ratings.bootstrap import VoteBoards, bootstrap
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.contextual_fit import ContextualBootstrap
from jaxeval.ratings.gauge import make_scale
from jaxeval.ratings.leaderboard import too_few_draws
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import TOLERANCE_LOGIT
from jaxeval.ratings.slices import Slices, make_slices, whole_board_rows
from jaxeval.ratings.small_categories import CategoryBoard
from jaxeval.ratings.vote_groups import GroupCodes, UnitMembers, unit_members
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import common_noun, counted, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import CompareBoardsArguments


@dataclass(frozen=True, eq=False)
class Posed:
    """A board that is to be refitted."""

    battles: Battles
    options: BootstrapOptions  # checked
    slices: Slices  # the one of all battles
    cell: NDArray[np.intp]  # (R,) the cell of each row

    @classmethod
    def of(cls, battles: Battles, options: BootstrapOptions) -> Posed:
        """Return the board of all ``battles``, with the errors of `jaxeval.bootstrap`."""
        checked = options.checked(battles)
        slices = make_slices(battles, checked)
        return cls(battles, checked, slices, whole_board_rows(battles, checked, slices.covariates))

    @cached_property
    def digest(self) -> tuple[str, str]:
        """Digests of the data, whatever the order of rows, and of how they are fitted: they put two boards in order."""
        return digest_of(self.slices.boards), digest_of(self.options.identity(self.slices.covariates.names)[0])

    def resampled(self, units: UnitMembers, how: RunOptions) -> Bootstrap:
        """Return the board refitted to draws of ``units``."""
        drawn = [groups._replace(shared=units) for groups in self.slices.drawn]
        with together(self.battles.n_processes):
            slices = self.slices._replace(drawn=drawn)
            (board,) = VoteBoards(slices, self.options, self.battles.report).resampled(how)
        return board


def shared_units(one: Posed, other: Posed, votes: SharedVotes) -> tuple[UnitMembers, UnitMembers]:
    """Return the units of one draw of the union, with the battles that each board has of them.

    They do not depend on which board is named first, nor on the order of rows. ``votes`` are those on both boards, of
    rows ``a`` of ``one`` and ``b`` of ``other``.

    Raises:
        DataError: a vote is in another cluster, or another stratum, on the other board.
    """
    rows = _union(one.battles, other.battles, votes)
    cells = np.array([np.where(place >= 0, x.cell[place], -1) for x, place in zip((one, other), rows[:2], strict=True)])
    # Which board's cell comes first must not depend on who is named first.
    order = slice(None, None, -1 if other.digest < one.digest else 1)
    kinds, kind = np.unique(cells[order], axis=1, return_inverse=True)
    kinds, kind, times = kinds[order], kind.reshape(-1), rows[2]
    # One pair for all: the grid of units needs no pairs, as every board has its own.
    pair, n_kinds = np.zeros(kinds.shape[1], np.int64), kinds.shape[1]
    count = count_by(kind, times, n_kinds)
    union = Cells(
        first=np.zeros(1, np.int32), second=np.ones(1, np.int32), pair=pair, target=np.full(n_kinds, np.nan),
        weight=np.ones(n_kinds), count=count,
    )  # fmt: skip
    cluster, strata = one.options.cluster, one.options.strata
    of_cluster, names = (None, pd.Index([])) if cluster is None else _of_union(one, other, rows, cluster)
    of_stratum = None if strata is None else _of_union(one, other, rows, strata)[0]
    groups = GroupCodes(of_cluster, names, of_stratum, strata or "", times)(slice(None), kind)
    units = unit_members(union, groups)
    return units.of_cells(kinds[0]), units.of_cells(kinds[1])


def _union(a: Battles, b: Battles, votes: SharedVotes) -> Int:
    """Return (3, U) row of each board, -1 for none, and number of equal battles: all that either board has."""
    left = [np.ones(x.n_rows, np.int64) if x.count is None else x.count.copy() for x in (a, b)]
    for times, shared in zip(left, (votes.a, votes.b), strict=True):
        times -= count_by(shared, votes.times, len(times))
    rows = [np.flatnonzero(times) for times in left]
    nothing = [np.full(len(times), -1) for times in rows]
    return np.array(
        [
            np.concatenate([votes.a, rows[0], nothing[1]]),
            np.concatenate([votes.b, nothing[0], rows[1]]),
            np.concatenate([votes.times, left[0][rows[0]], left[1][rows[1]]]),
        ]
    )


def _of_union(one: Posed, other: Posed, rows: Int, name: str) -> tuple[NDArray[np.intp], pd.Index]:
    """Return (U,) the group of every vote of the union by a column, and the sorted groups."""
    columns = [x.battles.column(name) for x in (one, other)]
    with _comparing(one.battles, other.battles, name):
        codes, values = factorize_sorted(pd.concat(columns, ignore_index=True), name)
    first, others = codes[rows[0]], codes[len(columns[0]) + rows[1]]
    differ = (rows[0] >= 0) & (rows[1] >= 0) & (first != others)
    if differ.any():
        k = int(differ.argmax())
        groups = [plain(values[code[k]]) for code in (first, others)]
        raise DataError(
            f"column {name!r} differs in {counted(int(differ.sum()), 'vote')} that both boards share (first in row "
            f"{rows[0][k]} of a, {groups[0]!r}, and row {rows[1][k]} of b, {groups[1]!r}; rows count from "
            "0): a shared vote needs one value"
        )
    return np.where(rows[0] >= 0, first, others), values


@contextmanager
def _comparing(a: Battles, b: Battles, name: str) -> Iterator[None]:
    """Let an error tell of both boards if each can read its own values of a column, but the two cannot be compared."""
    try:
        yield
    except (TypeError, DataError) as error:
        kinds = [pd.api.types.infer_dtype(x.codes(name)[1]) for x in (a, b)]
        raise DataError(
            f"column {name!r} has {kinds[0]} values on board a and {kinds[1]} values on board b, which cannot be "
            "compared: make them one type (in Python by .astype(str))"
        ) from error


#: What a board may be given as.
BoardLike: TypeAlias = Battles | Bootstrap | str | Path | Any
#: Options in which the boards may differ: those of the model, not of the draws.
_OF_ONE_BOARD = ("features", "normalize", "feature_ridge", "ties", "link", "penalty", "ridge", "reweight", "method")
#: Rows that look equal are reported if they are at least this share of the smaller board's rows.
_MANY_ALIKE = 0.5


@spelled_out(BootstrapOptions, RunningOptions, without="by")
def compare_boards(
    a: BoardLike,
    b: BoardLike,
    *,
    names: tuple[str, str] = ("a", "b"),
    id: str | Sequence[str] = (),
    shared: Sharing | None = None,
    options_b: Mapping[str, Any] | None = None,
    level: float = 0.95,
    min_battles: int = 0,
    top: int = 5,
    **options: Unpack[CompareBoardsArguments],
) -> BoardComparison:
    """Give two boards on one scale: this week and last, people and a judge, two slices, with and without style control.

    Where both boards share votes, each resample draws the votes of their union once, and both boards are refitted to
    what it drew. The interval of a difference thus takes into account what the boards have in common. Otherwise the
    boards have independent draws. Which votes are shared is never guessed: ``id`` or ``shared`` says it, or both boards
    are parts of the same `Battles`. With ``cluster=``, clusters that are on both boards are drawn once for both, too.

    Args:
        a: `Battles`, a table with the standard columns, a file or a list of files. Or a `Bootstrap`, such as a slice of
            `bootstrap` with ``by=``: its draws stay as they are, and are independent of those of the other board.
            Draw r of one then stands beside draw r + 1 of the other, as both may have used the same random numbers.
        b: the same of the other board.
        names: what the boards are called.
        id: column, or columns, that identify a vote. Rows of both boards with the same value are one vote, even if
            their results differ, such as those of people and of a judge. No value may be twice on a board.
        shared: "rows": rows that are equal in all columns that both tables have are one vote, as often as both have
            them; "index": rows with the same index label are one vote, as in a table that is read twice; "none": no
            vote is shared, even if both boards are parts of one table.
        options_b: the options in which board b differs: ``features``, ``normalize``, ``feature_ridge``, ``ties``,
            ``link``, ``penalty``, ``ridge``, ``reweight`` or ``method``.
        level: of each interval and each set of ranks; and, for all models at once, of the statement who moved.
        min_battles: models with fewer battles on a board are not compared.
        top: how many models make the top; `BoardComparison.agreement` has the overlap of both tops.
        **options: of `bootstrap`, by its names and with its defaults, for both boards. ``gauge`` ("mean", or a model
            and its rating) and ``base`` are those of the comparison: "mean" holds the mean of the models compared. A
            ``checkpoint`` gets a folder for each board.

    Raises:
        TypeError: a board or an option has the wrong type, or options are given for boards that have draws already.
        ValueError: as in `bootstrap`, or an impossible name, gauge or option of ``options_b``.
        DataError: as in `bootstrap`; the boards have fewer than two models in common; a value of ``id`` is twice on a
            board, or is a vote between other models on the other board; a vote is in two clusters.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(2_000, 4, seed=0).reset_index(names="vote")
        >>> last, this = votes.head(1_500), votes.tail(1_500)
        >>> found = jaxeval.compare_boards(last, this, id="vote", n_resamples=200)
        >>> found.pairing.n_shared, found.pairing.known
        (1000, "the column 'vote'")
        >>> found.table[["model", "difference"]].round(1)
             model  difference
        0  model-1         0.4
        1  model-2         3.7
        2  model-3        -8.7
        3  model-4         4.6
    """
    names, level = _checked_names(names), checked_level(level)
    min_battles, top = checked_integer("min_battles", min_battles), checked_integer("top", top, 1)
    gauge, base = options.pop("gauge", "mean"), options.pop("base", 1000.0)
    ids, of_b = [id] if isinstance(id, str) else list(id), dict(options_b or {})
    if gauge == "votes":
        raise ValueError("gauge='votes' weighs models differently on each board: take 'mean', or (model, rating)")
    if unknown := [name for name in of_b if name not in _OF_ONE_BOARD]:
        raise ValueError(
            f"options_b takes {named(_OF_ONE_BOARD, 20)}, got {unknown[0]!r}: the other options hold for both boards"
        )
    columns = [*ids, *_columns(options), *_columns(of_b)]
    if not ids and _is_file(a) and _is_file(b):
        columns += [name for name in columns_for_votes(a, b, shared) if name not in columns]
    one, other = _side(a, columns), _side(b, columns)
    messages: list[str] = []
    if not (isinstance(one, Battles) and isinstance(other, Battles)):
        how = [*options, *(["options_b"] if of_b else []), *(["id"] if ids else []), *(["shared"] if shared else [])]
        boards, pairing, messages = _resampled_before(one, other, how)
    else:
        if a is b or (isinstance(a, str | Path) and a == b):
            other = one  # one table
        votes = shared_votes(one, other, shared, ids)
        boards, pairing = _resampled(one, other, (dict(options), {**options, **of_b}), votes, apart=shared == "none")
        if not pairing.together and shared is None:
            messages = _looking_alike(one, other, ids)
    return _compared(
        boards, pairing, messages, names=names, level=level, min_battles=min_battles, top=top, gauge=gauge, base=base
    )


def _checked_names(names: tuple[str, str]) -> tuple[str, str]:
    one, other = map(str, names) if len(names) == 2 else ("", "")
    if not one.strip() or not other.strip() or one == other:
        raise ValueError(f"names must be two different names of the boards, got {', '.join(map(repr, names))}")
    return one, other


def _columns(options: Mapping[str, Any]) -> list[str]:
    """Return columns that options name. Those that a computed covariate reads are not known here."""
    names = [options[name] for name in ("cluster", "strata") if options.get(name) is not None]
    for feature in options.get("features", ()):
        names += [feature] if isinstance(feature, str) else [] if isinstance(feature, Feature) else feature
    return list(dict.fromkeys(names))


def _is_file(board: BoardLike) -> TypeGuard[str | Path | list[str | Path]]:
    """Return whether a board is named by a file, or by a list of them."""
    return isinstance(board, str | Path) or (isinstance(board, list) and all(isinstance(x, str | Path) for x in board))


def _side(board: BoardLike, columns: Sequence[str]) -> Battles | Bootstrap:
    """Return the battles of a board, or its draws; of a file the ``columns`` are read, too."""
    if isinstance(board, Bootstrap):
        return board
    if _is_file(board):
        return read_battles(board, keep=columns)
    if isinstance(board, Rankings):
        raise TypeError("boards of rankings are compared by their draws: pass bootstrap(rankings) of each")
    if isinstance(board, Mapping):
        raise TypeError(
            f"a board is one slice: pass one of {named(list(board), 4)}, as boards[{next(iter(board), '')!r}]"
        )
    return as_battles(board)


def _resampled(
    a: Battles, b: Battles, options: tuple[dict[str, Any], dict[str, Any]], votes: SharedVotes, apart: bool
) -> tuple[tuple[Bootstrap, Bootstrap], BoardPairing]:
    """Return both boards refitted to one draw of the union, if they share votes or clusters; else to independent draws.

    ``apart``: clusters of the same name on both boards are different clusters, too.
    """
    posed = [Posed.of(battles, BootstrapOptions.of(option)) for battles, option in zip((a, b), options, strict=True)]
    cluster = posed[0].options.cluster
    if cluster != posed[1].options.cluster:
        raise ValueError(
            f"the boards have their clusters in different columns, {cluster!r} and {posed[1].options.cluster!r}: name "
            "one column by cluster="
        )
    n_groups = 0  # on both boards
    if cluster is not None and not apart:
        with _comparing(a, b, cluster):
            n_groups = len(np.intersect1d(*(x.codes(cluster)[1].to_numpy() for x in (a, b))))
    together = votes.n_battles > 0 or n_groups > 0
    pairing = BoardPairing(
        n_a=a.n_battles, n_b=b.n_battles, n_shared=votes.n_battles, known=votes.known,
        n_other_result=int(votes.times[~votes.same_result(a, b)].sum()), together=together, n_groups=n_groups,
        cluster=cluster,
    )  # fmt: skip
    how = [of_run(option) for option in options]
    for run, folder in zip(how, "ab", strict=True):
        kept = run.get("checkpoint")
        if isinstance(kept, str | PathLike):  # what is none is refused by the run
            run["checkpoint"] = Path(kept) / folder
    if not together:
        one, other = (bootstrap(x, **{**option, **run}) for x, option, run in zip((a, b), options, how, strict=True))
        return (one, other), pairing
    units = shared_units(posed[0], posed[1], votes)
    first = posed[0].resampled(units[0], how[0])
    alike = posed[0].digest == posed[1].digest and digest_of(units[0]) == digest_of(units[1])
    return (first, first if alike else posed[1].resampled(units[1], how[1])), pairing


def _resampled_before(
    one: Battles | Bootstrap, other: Battles | Bootstrap, refused: Sequence[str]
) -> tuple[tuple[Bootstrap, Bootstrap], BoardPairing, list[str]]:
    """Return boards that came with draws."""
    if not (isinstance(one, Bootstrap) and isinstance(other, Bootstrap)):
        raise TypeError("one board has draws and the other has none: pass the battles of both, or bootstrap() of both")
    if isinstance(one, CategoryBoard) or isinstance(other, CategoryBoard):
        raise TypeError(
            "boards of small_categories borrow from each other, so that their draws are not independent: pass the "
            "battles of both categories"
        )
    if refused:
        raise TypeError(
            f"both boards have draws already, which {named(refused)} cannot change: pass the battles of both boards"
        )
    if len(one.draws) != len(other.draws):
        raise ValueError(
            f"the boards have {len(one.draws):,} and {counted(len(other.draws), 'resample')}: both must have as many"
        )
    n_a, n_b = (int(board.fit.n_battles.sum()) // 2 for board in (one, other))
    pairing = BoardPairing(n_a=n_a, n_b=n_b, n_shared=0, known="", n_other_result=0, together=False, made_before=True)
    if one.models.equals(other.models) and np.array_equal(one.draws_logit, other.draws_logit, equal_nan=True):
        return (one, one), pairing._replace(together=True), []
    messages = []
    if columns := [name for name in one._overlapping if name in other._overlapping]:
        messages.append(
            f"both boards are slices by {named(columns)}, whose categories overlap, and their draws are taken as "
            "independent: where a battle is in both, intervals of differences are wrong. Pass two parts of one table "
            "made by Battles.filter (on the command line --by and --slices, or --where-a and --where-b): they are then "
            "drawn together"
        )
    elif one.fit.n_battles.equals(other.fit.n_battles):
        messages.append(
            f"every {one.competitor.one} has the same number of battles on both boards, and their draws are taken as "
            "independent: if the boards rest on the same votes, intervals of differences are too wide. Pass the "
            "battles themselves, with the options in which board b differs as options_b: the boards are then drawn "
            "together"
        )
    return (one, other), pairing, messages


def _looking_alike(a: Battles, b: Battles, ids: Sequence[str]) -> list[str]:
    """Return a warning if boards without shared votes look as if they had some."""
    if ids:
        kinds = [" and ".join(str(x.column(name).dtype) for x in (a, b)) for name in ids]
        return [f"the boards share no vote: no value of {named(ids)} is on both (types of columns: {'; '.join(kinds)})"]
    if all_equal(a, b):
        return [
            f"all {a.n_battles:,} rows of both boards are equal, and are taken as different votes: if they are the "
            "same votes, intervals of differences are too wide: say shared='rows' (on the command line --shared rows). "
            "If they are different votes, say shared='none' (--shared none)"
        ]
    least, alike = min(a.n_rows, b.n_rows), look_equal(a, b)
    if alike < _MANY_ALIKE * least or alike == 0:
        return []
    return [
        f"{alike:,} of the {least:,} rows of the smaller board look like rows of the other, and are taken as different "
        "votes: if they are the same votes, intervals of differences are too wide. Name the column that identifies "
        "votes by id= (on the command line --id), or say shared='rows' (--shared rows). If they are different votes, "
        "say shared='none' (--shared none)"
    ]


def _compared(
    boards: tuple[Bootstrap, Bootstrap], pairing: BoardPairing, messages: list[str], *, names: tuple[str, str],
    level: float, min_battles: int, top: int, gauge: Gauge, base: float,
) -> BoardComparison:  # fmt: skip
    """Return the models that both boards rate, on one scale."""
    if boards[0].settings.ties != boards[1].settings.ties:
        boards = tuple(x.expected_score if isinstance(x, ContextualBootstrap) else x for x in boards)  # type: ignore[assignment]
        messages.append(
            "the boards treat ties by different models: they are compared by expected score, in which a tie counts half"
        )
    if boards[0].settings.link != boards[1].settings.link:
        messages.append(
            "the boards have different links: the scales of their ratings are similar but not equal, so that no model "
            "is said to have moved"
        )
    a, b = boards
    both = a.models.intersection(b.models)
    only = a.models.difference(b.models, sort=False), b.models.difference(a.models, sort=False)
    left_out: dict[Any, str] = {}
    for name, board in zip(names, boards, strict=True):
        of_both = board.fit.n_battles.loc[both], np.isfinite(board.fit.ratings.loc[both])
        for model, n, rated in zip(both, *of_both, strict=True):
            if n < min_battles:
                left_out.setdefault(model, f"with fewer than {counted(min_battles, 'battle')} on {name}")
            elif not rated:
                left_out.setdefault(model, f"without a finite rating on {name}")
    models = both[~both.isin(list(left_out))]
    if len(models) < 2:
        noun = common_noun(board.competitor for board in boards)
        dropped = f", and {len(left_out):,} of these are left out for too few battles or no finite rating"
        raise DataError(
            f"{noun.counted(len(models))} can be compared, and a comparison needs two. {names[0]} has "
            f"{noun.counted(len(a.models))} and {names[1]} {len(b.models):,}; {len(both):,} of them are on both"
            f"{dropped if left_out else ''}. If {noun.a_one} has another name on each board, Battles.rename makes the "
            "names equal (on the command line --rename)"
        )
    n = len(a.draws)
    order = [np.arange(n)] * 2
    if not pairing.together:  # the two may have used the same random numbers
        one, other = ((digest_of((x.models, x.fit._board.cells)), digest_of(x.draws_logit)) for x in boards)
        later = int(one < other)  # whoever is named first
        order[later] = np.roll(order[later], -1)
    ratings = [_on_scale(board, models, gauge, base, rows) for board, rows in zip(boards, order, strict=True)]
    drawn = {name: getattr(a.settings, name) for name in ("n_resamples", "seed", "scheme", "cluster", "strata")}
    shown = {"level": level, "gauge": ratings[0].gauge, "min_battles": min_battles, "names": list(names)}
    reports = [str(board.fit.report) for board in boards]
    if reports[0] == reports[1]:  # two slices of battles that were read together
        reports = [f"{names[0]} and {names[1]}, read together: {reports[0]}"]
    else:
        reports = [f"{name}: {report}" for name, report in zip(names, reports, strict=True)]
    return BoardComparison(
        names=names, boards=(a, b), ratings=(ratings[0], ratings[1]), identical=a is b,
        one_scale=a.settings.link == b.settings.link, pairing=pairing, only=only, left_out=left_out, top=top,
        level=level, settings={**drawn, **shown, "versions": a.settings.versions},
        notes=(pairing.sentence(names), *reports), told=(*messages, *too_few_draws(n, level)),
    )  # fmt: skip


def _on_scale(board: Bootstrap, models: pd.Index, gauge: Gauge, base: float, draws: Int) -> Draws:
    """Return the ratings of ``models`` alone, in a gauge that they hold, with the ``draws`` in the given order."""
    at, fit = board.models.get_indexer(models), board.fit
    rated, unit = np.ones(len(at), bool), fit.scale.unit
    scale = make_scale(gauge, base, models, fit.n_battles.to_numpy()[at], rated, unit, board.competitor)
    theta = fit.theta[at]
    return Draws(
        models, scale.ratings(theta), scale.aligned_ratings(board.draws_logit[draws][:, at], theta),
        converged=board.converged[draws], gauge=scale.gauge, anchored=scale.weights >= 1,
        precision=10 * unit * TOLERANCE_LOGIT[board.settings.dtype], settings=board.settings,
        loose=board._in_gauge._loose[at],
    )  # fmt: skip
