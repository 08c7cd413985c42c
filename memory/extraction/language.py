"""Form of a language's table of extraction patterns. All are for text with single spaces
and `'`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ValueReader = Literal[
    "name", "place", "phrase", "role", "title", "list", "languages", "date", "employer", "rest"
]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of statement begins, and how its value is read.

    `opening` matches at the start of a clause, or with `anywhere` at any word. The value begins
    where it ends, or is its group `value`; `read` names the reader of the value. `key` and `value`
    may refer to groups of the opening and `{value}`.
    """

    opening: str
    read: ValueReader
    key: str
    value: str = "{value}"
    anywhere: bool = False
    unless: str = r"(?!)"
    pattern: re.Pattern[str] = field(init=False)
    exception: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(self.opening, re.IGNORECASE))
        object.__setattr__(self, "exception", re.compile(self.unless, re.IGNORECASE))


@dataclass(frozen=True, slots=True)
class Language:
    """What a rule-based reader has to know of a language; patterns ignore case.

    tasks: a clause so begun asks for work on a text, and that text is not about the user.
    announces: before a colon it says that the user goes on to speak.
    remember: a sentence so begun is to be kept, whatever it says.
    fillers: may come before what a clause says.
    joins: words after which, where `subject` follows, a clause begins.
    asks: a clause so begun is a question. `tags` are clauses that make one of all before.
    reported: others say it, or nobody does. `past`: it is no longer so. Nothing is read then.
    supposed: from this clause on nothing is so.
    denied: a value with this in its clause is none.
    first_person: words by which a statement is about the user. `addressed`: about who listens.
    months, languages, aliases: in lower case; aliases give one word for several in keys.
    never_names, never_places: capitalised all the same.
    particles: within names in lower case; `place_particles` only within those of places and firms.
    vague: point to something said before. `no_start`: a phrase that means anything begins
    otherwise. `cuts`: a phrase ends before these, and before one of `ands` that one of `resumes`
    follows; a role also before `prepositions`. `trailing`: says nothing at its end.
    definite: those articles that may belong to a name.
    """

    code: str
    tasks: re.Pattern[str]
    announces: re.Pattern[str]
    remember: re.Pattern[str]
    fillers: re.Pattern[str]
    joins: re.Pattern[str]
    asks: re.Pattern[str]
    tags: re.Pattern[str]
    reported: re.Pattern[str]
    past: re.Pattern[str]
    supposed: re.Pattern[str]
    denied: re.Pattern[str]
    first_person: re.Pattern[str]
    addressed: re.Pattern[str]
    lists: re.Pattern[str]
    date: re.Pattern[str]
    languages: frozenset[str]
    never_names: frozenset[str]
    never_places: frozenset[str]
    particles: frozenset[str]
    place_particles: frozenset[str]
    vague: frozenset[str]
    no_start: frozenset[str]
    cuts: frozenset[str]
    ands: frozenset[str]
    resumes: frozenset[str]
    prepositions: frozenset[str]
    trailing: frozenset[str]
    articles: frozenset[str]
    definite: frozenset[str]
    aliases: Mapping[str, str]
    rules: tuple[Rule, ...]
    explicit: tuple[Rule, ...] = ()


def words(text: str) -> frozenset[str]:
    """The words of a list written as one string."""
    return frozenset(text.split())


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
