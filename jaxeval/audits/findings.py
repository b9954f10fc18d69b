"""What a part of an audit says in words: sentences, each with its number and how serious it is."""

from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """How much a finding takes away from what a reader believes of a leaderboard."""

    REASSURING = 0
    """The board passed a check that could have failed."""
    NOTE = 1
    """A reader should know it; no rank depends on it."""
    CAUTION = 2
    """Some of the board's statements are weaker than they look."""
    SERIOUS = 3
    """Some of the board's statements do not hold, or cannot be checked."""


class Finding(NamedTuple):
    """One sentence of an audit's verdict."""

    part: str
    """The part of the audit that found it, such as "fewest votes"."""
    severity: Severity
    text: str
    """A whole sentence, which holds the number that it rests on."""
