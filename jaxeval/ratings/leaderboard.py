"""The leaderboard: ratings, intervals, ranks and what they rest on, as one table."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.errors import DataError
from jaxeval.execution.precision import in_threads
from jaxeval.execution.processes import check_alike, together
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.options.boards import BoardInterval
from jaxeval.options.resampling import RunningOptions
from jaxeval.plain_tables import PlainTable, in_pandas, objects, stacked
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import Bootstraps
from jaxeval.ratings.contextual_fit import ContextualBootstrap
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import slice_name
from jaxeval.show.cells import with_kinds
from jaxeval.statistics.differences import MOST_COMPARISONS, MOST_NOT_FINITE
from jaxeval.wording import common_noun, competitor_of, competitor_settings, counted, named, slice_title

if TYPE_CHECKING:
    from jaxeval.options.arguments import LeaderboardArguments

#: Under so many votes a rating is marked preliminary, as at the Arena.
PRELIMINARY_VOTES = 300
#: If more slices than this share a warning, it stands once, in the words of the first one.
_FEW_ALIKE = 3
#: The standing of models that have too few battles for a rank.
TOO_FEW_BATTLES = "too few battles"
#: Columns that matter most to readers.
_SHOWN_FIRST = ("category", "rank", "model", "rating", "lower", "upper", "vote_count", "tier")


@spelled_out(BootstrapOptions, RunningOptions)
def leaderboard(
    battles: Battles | Bootstrap | Mapping[Hashable, Bootstrap] | Any,
    *,
    by: str | Sequence[str] | None = None,
    level: float = 0.95,
    rank_at_most: int | Sequence[int] = (),
    min_battles: int | None = None,
    simultaneous_ranks: bool = False,
    **options: Unpack[LeaderboardArguments],
) -> pd.DataFrame:
    """Return ratings with bootstrap intervals, best first.

    Args:
        battles: `Battles`, a table with the standard columns, `Rankings` (whose items are then the models, and rankings
            their votes), or the result of `bootstrap` (whose settings then hold).
        by: column, or columns, whose groups have a leaderboard each, as in `bootstrap`.
        level: of the intervals, of the sets of ranks, and simultaneously of all differences for the tiers.
        interval: "auto", "percentile", "basic" or "wald", see `Bootstrap.interval`. With "auto" models with fewer than
            200 battles have penalised intervals from errors of the fit, as percentiles of so few are too short.
        rank_at_most: k, or several: adds columns ``p_rank_<k>``, the share of resamples with rank k or better.
        min_battles: models with fewer battles take part in the fit and are rated, but they take no rank. They stand at
            the end of the table with the standing "too few battles"; they are not compared for tiers and sets of ranks,
            and figures leave them out. By default the data decide, see `Bootstrap.too_few`; 0 ranks every model with a
            rating. (`soft_elo` has an option of the same name with another meaning.)
        simultaneous_ranks: the sets of ranks hold all true ranks at once at ``level``; by default each set holds the
            true rank of its own model at ``level``.
        **options: of `bootstrap`, by its names and with its defaults: ``n_resamples``, ``seed``, ``cluster``,
            ``strata``, ``features`` and so on.

    Raises:
        TypeError: options are given together with a result of `bootstrap`; ``min_battles`` is no integer.
        ValueError: as in `bootstrap`; an impossible level, interval, rank or ``min_battles``.
        DataError: as in `bootstrap`; no model has ``min_battles`` battles.
        ProcessError: as in `bootstrap`.

    Returns:
        One row per model (and category, with ``by``): models by rank, unrated models, models with too few battles.

        These columns depend on the gauge:

        - ``rating`` (the full-data fit), ``lower``, ``upper`` (Elo), ``variance`` (Elo^2: of the draws, or of
          the fit that gives the interval of a model with few battles or of a board with few clusters);
        - with a tie model ``expected_score_rating, expected_score_lower, expected_score_upper``, Elo, with ties as half
          a win: all other columns are on the scale of the tie model, see `ContextualFit`.

        All other columns are the same under every gauge, to the last digit:

        - ``model``; ``vote_count``; ``rank`` (by rating, among rated models with enough battles); and ``category``
          with ``by``;
        - ``rank_best``, ``rank_worst``: the ranks that the differences to all other models leave open, see
          `Bootstrap.rank_sets`. Each set by itself holds the true rank of its model with probability ``level``, or all
          do at once with ``simultaneous_ranks``;
        - ``tier``: models that the data cannot tell from their tier's leader share its tier;
        - ``p_rank_<k>``, with ``rank_at_most``;
        - ``borrowed``, of `small_categories`: how much of what is known of a model comes from other categories;
        - ``component`` (1 = the largest group of models that met), ``standing`` ("undefeated", "winless", "not
          comparable", "too few battles", or empty), ``preliminary`` (under 300 votes), ``degenerate_share`` (share of
          resamples in which the model has no comparable rating).

        On boards so wide that comparing all pairs would take minutes, ``rank_best``, ``rank_worst`` and ``tier`` are
        missing, with a warning.

        ``attrs`` holds ``answer`` (who is first, in a sentence; with ``by`` a line for each category, see
        `Bootstrap.first_sentence`), ``warnings`` (list of sentences), ``report`` (what was read and left out) and
        ``settings``.
        If the battles have another word than "model" for what is rated, the settings have it and its plural as
        ``competitor``. Some boards have a list of records there, too: with features or a tie model ``coefficients``,
        the tie parameter among them; those of `prediction_powered` ``judge``, what the judge's verdicts are worth;
        those of `small_categories` ``categories``, what they borrow; those of `fit_judge_panel` ``judges``.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)
        >>> table[["model", "rating", "lower", "upper", "rank", "tier"]].round()
             model  rating   lower   upper  rank  tier
        0  model-1  1098.0  1080.0  1116.0     1     1
        1  model-2   992.0   979.0  1003.0     2     2
        2  model-3   968.0   955.0   983.0     3     2
        3  model-4   942.0   928.0   956.0     4     3
        >>> table.attrs["warnings"]
        []
    """
    table = plain_leaderboard(
        battles, by=by, level=level, rank_at_most=rank_at_most, min_battles=min_battles,
        simultaneous_ranks=simultaneous_ranks, **options,
    )  # fmt: skip
    return result_table(table)


def result_table(table: PlainTable) -> pd.DataFrame:
    """Return the rows of `plain_leaderboard` as `leaderboard` returns them."""
    from jaxeval.show.table import Table

    n_models = len(dict.fromkeys(table["model"].tolist()))
    title = f"Leaderboard of {competitor_of(table.attrs['settings']).counted(n_models)}"
    return Table.of(in_pandas(table), title, _SHOWN_FIRST)


def plain_leaderboard(
    battles: Battles | Bootstrap | Mapping[Hashable, Bootstrap] | Any, *, by: str | Sequence[str] | None = None,
    level: float = 0.95, rank_at_most: int | Sequence[int] = (), min_battles: int | None = None,
    simultaneous_ranks: bool = False, **options: Unpack[LeaderboardArguments],
) -> PlainTable:  # fmt: skip
    """Return the rows of `leaderboard`, and its ``attrs``, without pandas."""
    interval = options.get("interval", "auto")
    if min_battles is not None:
        min_battles = checked_integer("min_battles", min_battles)
    shown = {"level": level, "interval": interval, "min_battles": min_battles}
    shown["simultaneous_ranks"] = bool(simultaneous_ranks)
    boards = _resampled_before(battles)
    if boards is None:
        with together(battles.n_processes if isinstance(battles, Battles) else 1):
            check_alike({**shown, "rank_at_most": rank_at_most})
            boards = (
                {None: bootstrap(battles, by=None, **options)} if by is None else bootstrap(battles, by=by, **options)
            )
    elif by is not None or options.keys() - {"interval"}:
        refused = [*([] if by is None else ["by"]), *(name for name in options if name != "interval")]
        raise TypeError(f"a result of bootstrap() takes no {named(refused, 20)}: pass these options to bootstrap()")
    if not boards:
        raise ValueError("no board to show: the mapping of bootstraps is empty")
    if min_battles is not None:
        _check_enough(boards.values(), min_battles)
    ks = [rank_at_most] if isinstance(rank_at_most, int | np.integer) else list(rank_at_most)
    names = [slice_name(group) for group in boards]
    if len(set(names)) < len(names):  # values that hold the separator themselves
        names = list(map(str, boards))
    first, word = next(iter(boards.values())), common_noun(board.competitor for board in boards.values())
    how = first.settings.interval if interval == "auto" else interval

    def part(name: Hashable, board: Bootstrap) -> tuple[PlainTable, list[str], str]:
        kind = board.settings.interval if interval == "auto" else interval
        table = _table(name, board, level, kind, ks, min_battles, simultaneous_ranks)
        sentence = board.first_sentence(level, kind=kind, min_battles=min_battles)
        titled = sentence if name is None else f"{slice_title(name, board.settings.by)}: {sentence}"
        return table, [*board.warnings, *_rank_warnings(board, min_battles)], titled

    tables, of_slice, answers = map(list, zip(*in_threads(part, names, boards.values()), strict=True))
    warnings, overlap = (boards.warnings, boards.told) if isinstance(boards, Bootstraps) else ([], "")
    warnings += of_slice[0] if names == [None] else shared_warnings(names, of_slice, list(boards.values()))
    if interval != "wald":
        warnings += too_few_draws(len(first.draws), level)
    table = stacked(tables)
    of_covariates = first.fit._board.covariates.told if isinstance(first, ContextualBootstrap) else ()
    beside: dict[str, list[dict[str, Any]]] = {}
    for name, board in zip(names, boards.values(), strict=True):
        for kind, records in board.beside(level).items():
            category = {} if name is None else {"category": name}
            beside.setdefault(kind, []).extend({**category, **record} for record in records)
    table.attrs = {
        "answer": "\n".join(answers),
        "warnings": warnings,
        "report": "\n".join(filter(None, [str(first.fit.report), overlap, *of_covariates])),
        **beside,
        "settings": {
            **{name: value for name, value in asdict(first.settings).items() if value != ()},  # no covariates
            **shown,
            "level": float(level),
            "interval": how,
            "by_errors": how == "auto" and any(board._by_errors for board in boards.values()),
            "n_penalised": sum(board.n_penalised for board in boards.values()) if how == "auto" else 0,
            "n_reflected": sum(board.n_reflected for board in boards.values()) if how == "auto" else 0,
            **competitor_settings(word),
        },
    }
    return with_kinds(table, "rating", percent="borrowed")


def too_few_draws(n: int, level: float) -> list[str]:
    """Return a sentence where ``n`` draws do not have one in each tail of an interval."""
    enough = ceil(2 / (1 - Fraction(str(level))))
    if n >= enough:
        return []
    return [
        f"{counted(n, 'resample is', 'resamples are')} too few for {100 * level:g}% intervals, whose tails each hold "
        f"less than one of them: take {enough:,} or more"
    ]


def _resampled_before(battles: Any) -> Mapping[Hashable, Bootstrap] | None:
    """Return the boards by slice, if ``battles`` is a result of `bootstrap`; the whole board is the slice None."""
    if isinstance(battles, Bootstrap):
        return {None: battles}
    if isinstance(battles, Mapping) and all(isinstance(board, Bootstrap) for board in battles.values()):
        return battles
    return None


def _check_enough(boards: Iterable[Bootstrap], min_battles: int) -> None:
    """Raise DataError if no board has a model of ``min_battles`` battles."""
    boards = list(boards)
    most, model = max((x.max(), str(board.models[x.argmax()])) for board in boards for x in [board.fit._n_battles])
    if most < min_battles:
        noun = common_noun(board.competitor for board in boards)
        raise DataError(
            f"no {noun.one} has {counted(min_battles, 'battle')} or more, so that no {noun.one} takes a rank. {model} "
            f"has the most, {most:,}: lower min_battles (--min-votes)"
        )


def _rank_warnings(board: Bootstrap, min_battles: int | None) -> list[str]:
    """Return sentences about models that take no rank, and about those that cannot be told apart."""
    messages, differences, noun = [], board.differences(min_battles), board.competitor
    too_few = board._too_few(min_battles)
    few = board.models[too_few]
    how = "rated with the others, " if np.isfinite(board.fit._ratings[too_few]).all() else ""
    if len(few) and min_battles is not None:
        messages.append(
            f"{noun.counted(len(few), 'has', 'have')} fewer than {min_battles:,} battles: {how}at the end of the "
            f"table without a rank: {named(few)}"
        )
    elif len(few):
        messages.append(
            f"{noun.counted(len(few), 'has', 'have')} too few battles for a rank: {how}at the end of the table: "
            f"{named(few)}. min_battles=0 (--min-votes 0) ranks all that have a rating"
        )
    unsure = board._ranked(min_battles) & board._loose
    if unsure.any():
        spread = (
            f"Their rank spread is that of a penalised fit{'' if differences.of_two else ', and they have no tier'}"
            if differences.closed_form is not None
            else "Each has a rank spread over the whole board, however high or low its rating is, and no tier; and it "
            f"adds a place above and one below to the spread of every other {noun.one}. min_battles (--min-votes) "
            f"leaves out {noun.many} with few battles"
        )
        messages.append(
            f"{noun.counted(int(unsure.sum()), 'has', 'have')} no finite rating in more than {MOST_NOT_FINITE:.0%} of "
            f"the resamples, too often to be compared by these: {named(board.models[unsure])}. {spread}"
        )
    if not differences.within_reach:
        messages.append(
            f"no tiers and no rank spread: {differences.n_comparisons:,} differences, of all pairs of {noun.many} in "
            f"all resamples, are more than the {MOST_COMPARISONS:,} that are compared; leave out {noun.many} with few "
            "battles (min_battles, --min-votes), or take fewer resamples"
        )
    return messages


def _expected_scores(board: Bootstrap, level: float, interval: BoardInterval) -> dict[str, Any]:
    """Return columns of the ratings and intervals on the scale of expected scores, with a tie model only."""
    if not isinstance(board, ContextualBootstrap) or board.expected_score is board:
        return {}
    half = board.expected_score
    lower, upper = half.ends(level, interval)
    names = ("expected_score_rating", "expected_score_lower", "expected_score_upper")
    return dict(zip(names, (half.fit._ratings, lower, upper), strict=True))


def _table(
    name: Hashable, board: Bootstrap, level: float, interval: BoardInterval, ks: Sequence[int], min_battles: int | None,
    simultaneous_ranks: bool,
) -> PlainTable:  # fmt: skip
    fit, bounds = board.fit, board.ends(level, interval)
    rating, n_battles = fit._ratings, fit._n_battles
    rated, ranked, few = np.isfinite(rating), board._ranked(min_battles), board._too_few(min_battles)
    # Equal models differ by rounding, and the rounding of ratings depends on the gauge.
    strength = np.where(rated, np.round(fit.theta, 9), rating)
    rank, *open_ranks = board.contrasts.rank_columns(level, simultaneous_ranks, ranked).items()
    models = board.models.to_numpy()
    table = PlainTable({
        "model": models,
        "rating": rating,
        "lower": bounds[0],
        "upper": bounds[1],
        "variance": np.where(rated, board.variance_of(bounds, level, interval), np.nan),
        "vote_count": n_battles,
        **dict([rank]),
        **({} if name is None else {"category": objects([name] * len(models))}),
        **dict(open_ranks),
        **{f"p_rank_{k}": board.rank_share(k, min_battles=min_battles).to_numpy() for k in ks},
        "component": fit._component,
        "standing": np.where(few, TOO_FEW_BATTLES, fit._standing),
        "preliminary": n_battles < PRELIMINARY_VOTES,
        "degenerate_share": board._degenerate_share,
        **_expected_scores(board, level, interval),
        **fit._further_columns,
    })  # fmt: skip
    return table[np.lexsort([np.array(list(map(str, models))), -np.nan_to_num(strength), ~rated, few])]


def shared_warnings(names: Sequence[Any], warnings: Sequence[Sequence[str]], boards: Sequence[Bootstrap]) -> list[str]:
    """Return the warnings of all slices, each with the slice's name.

    If more than three slices have warnings that differ only in models and numbers, the first of them stands in full and
    names the other slices. What all slices say in the same words stands once, without their names.
    """
    of_all = [
        of_board for of_board in warnings[0] if len(warnings) > 1 and all(of_board in others for others in warnings)
    ]
    warnings = [[of_board for of_board in others if of_board not in of_all] for others in warnings]
    models = sorted({str(model) for board in boards for model in board.models}, key=len, reverse=True)
    # Between letters and digits only: a model "a" must not take the "a" out of words.
    models_or_signs = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, models))})(?!\w)|[\d\W_]|\band [\d,]+ more\b")
    alike: dict[str, list[tuple[int, str]]] = {}
    for s, of_board in enumerate(warnings):
        for warning in of_board:
            alike.setdefault(models_or_signs.sub("", warning), []).append((s, warning))
    messages = list(dict.fromkeys(of_all))
    for places in alike.values():
        others: list[Any] = []
        if len({s for s, _ in places}) > _FEW_ALIKE:
            others = list(dict.fromkeys(names[s] for s, _ in places[1:]))
            places = places[:1]
        rest = f"; likewise in {len(others):,} more slices: {named(others)}" if others else ""
        messages += [f"{slice_title(names[s], boards[s].settings.by)}: {warning}{rest}" for s, warning in places]
    return messages
