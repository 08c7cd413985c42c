"""Something that was found at a place in a text. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spot:
    """`name` is written from `start` to `end`; `form` identifies it."""

    form: str
    name: str
    start: int
    end: int
