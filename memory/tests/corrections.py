"""Conversations in which users correct themselves: what is known at the end, and which facts were
ended without another value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.cases import read_cases


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of a user, the facts that hold after them, and keys of those that ended."""

    said: Sequence[str]
    known: Mapping[str, str] = field(default_factory=dict)
    ended: Sequence[str] = ()


REPORTED, ENGLISH, GERMAN = (
    [Conversation(**each) for each in conversations]
    for conversations in read_cases(__file__, "corrections").values()
)
