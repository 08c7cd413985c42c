"""What is remembered, as it goes to a model: facts and former turns. Pure."""

from dataclasses import dataclass
from datetime import date

#: A fact: its key and its value.
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user said on a day, and what was answered."""

    said_on: date
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Injected:
    """Facts and former turns, both most relevant first. False where there is nothing."""

    facts: tuple[Pair, ...] = ()
    context: tuple[Turn, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.facts or self.context)


def characters(entry: Pair | Turn) -> int:
    """How many an entry's texts have."""
    texts = (entry.question, entry.answer) if isinstance(entry, Turn) else entry
    return sum(map(len, texts))
