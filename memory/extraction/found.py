"""What goes into an extraction, and what comes out of one."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user, and when it was said."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FoundFact:
    """`key` is a fact key already; `said_in` numbers the message, from 0, that it is taken from."""

    key: str
    value: str
    said_in: int


@dataclass(frozen=True, slots=True)
class FoundContext:
    """A question as the user may ask it again, and the answer; or a statement and no answer."""

    question: str
    answer: str
    said_in: int


@dataclass(frozen=True, slots=True)
class Found:
    """In the order in which it was said: a later fact supersedes an earlier one of its key."""

    facts: tuple[FoundFact, ...] = ()
    contexts: tuple[FoundContext, ...] = ()
