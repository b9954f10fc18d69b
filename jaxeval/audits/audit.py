"""The audit of a leaderboard: one question after the other, on one fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from jaxeval.audits import fewest_votes
from jaxeval.audits.anytime import audited_anytime
from jaxeval.audits.audit_result import Audit
from jaxeval.audits.audited import AuditArguments, Audited, AuditOptions
from jaxeval.audits.board import audited_board
from jaxeval.audits.drift import audited_drift
from jaxeval.audits.goodness_of_fit import audited_goodness_of_fit
from jaxeval.audits.pairing import audited_pairing
from jaxeval.audits.parts import Part
from jaxeval.audits.rank_evidence import audited_ranks
from jaxeval.audits.replication import replicated
from jaxeval.audits.who_votes import audited_votes
from jaxeval.data.battles import Battles
from jaxeval.execution.precision import versions
from jaxeval.execution.progress import progress_bar
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.wording import did_you_mean, named

#: The parts of an audit, in the order in which they are run and told.
PARTS = (
    Part("board", "What is audited?", audited_board),
    Part("fewest_votes", "How few votes decide?", fewest_votes.of_audited),
    Part("goodness_of_fit", "Does one number per {} fit?", audited_goodness_of_fit),
    Part("rank_evidence", "What can the ranks carry?", audited_ranks),
    Part("replication", "Would it hold again?", replicated),
    Part("who_votes", "Who votes?", audited_votes, needs=("voter",)),
    Part("drift", "Did ratings change over time?", audited_drift, needs=("time",)),
    Part("pairing", "Did results choose who meets whom?", audited_pairing, needs=("time",)),
    Part("anytime_intervals", "What may be said by somebody who looks every day?", audited_anytime),
)


@spelled_out(AuditOptions)
def audit(battles: Battles | Any, *, parts: Sequence[str] | None = None, **options: Unpack[AuditArguments]) -> Audit:
    """Can this leaderboard be believed? A verdict in words, and a table for each question.

    All parts share one fit. A part whose column nobody named, or that is not defined for these battles, says so in
    ``absent``, and the others go on.

    Args:
        battles: `Battles`, or a table with the standard columns. Verdicts of a judge are battles, too.
        parts: names of the parts to run; all by default.
        voter: column that names who voted.
        cluster: column of the clusters (prompts, voters, sessions) that are resampled, and taken as independent; by
            default battles are.
        by: column, or columns, of groups of battles (languages, categories, sides).
        time: column of the time of each vote: dates, or numbers.
        lengths: columns of the lengths of both answers, of side A and of side B.
        families: the family (organisation) of each model, by name.
        ties: "half": a tie counts half a win; or "davidson" or "rao_kupper", as in `fit_bradley_terry`.
        features: covariates ("style control"), as in `fit_bradley_terry`.
        level: of intervals and tests.
        n_resamples: at least 20, of every part that resamples or simulates.
        seed: the same seed gives the same numbers.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`, for all parts together.

    Raises:
        TypeError, ValueError: an option has the wrong type, or an impossible value.
        DataError: a column is not there, or the battles cannot be fitted.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> found = jaxeval.audit(votes, parts=["board"], progress=False)
        >>> found["board"].table[["rank", "model_name", "vote_count"]].head(2).to_numpy().tolist()
        [[1, 'model-1', 806], [2, 'model-2', 1254]]
    """
    asked = _asked(parts)
    audited = Audited.of(battles, options)
    own = audited.battles.competitor
    asked = [part._replace(question=part.question.format(own.one)) for part in asked]
    warnings = tuple(audited.fit.warnings)  # those of the fit belong to no part
    settings = audited.settings | {"parts": [part.name for part in asked]}
    found = {}
    identity = partial(Identity, settings, audited.digest, noun="battles")
    running: RunOptions = {**audited.running, "progress": False}  # of the runs within; there is a bar for each part
    with open_run(identity, len(asked), "questions", **running):
        for number, part in enumerate(asked):
            with progress_bar(len(asked), part.question, audited.running.get("progress"), compiles=False) as advance:
                advance(number)
                found[part.name] = part.answer(audited)
    return Audit(
        parts=found,
        questions={part.name: part.question for part in asked},
        settings={**settings, "votes": audited.digest, "versions": versions()},
        notes=(str(audited.battles.report),),
        warnings=warnings,
        competitor=own,
    )


def _asked(names: Sequence[str] | None) -> list[Part]:
    known = {part.name: part for part in PARTS}
    if names is None:
        return list(PARTS)
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"parts= takes a list of names, got {names!r}")
    if len(names) == 0:
        raise ValueError(f"parts= names no part; there are {named(list(known), 20)}")
    for name in names:
        if name not in known:
            raise ValueError(f"no part {name!r}; there are {named(list(known), 20)}{did_you_mean(name, known)}")
    return [part for part in PARTS if part.name in names]
