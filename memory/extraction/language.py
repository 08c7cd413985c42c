"""Rules of a language, read from `english.toml` and `german.toml`.

All patterns ignore case and are for text with single spaces and `'`. Line breaks in them, with the
blanks after, count for nothing; `{name}` stands for one of the language's `parts`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_INDENT = re.compile(r"\A +|\n *")
_PART = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of statement begins, and how its value is read.

    `opening` matches at the start of a clause, or with `anywhere` at any word. The value begins
    where it ends, or is its group `value`; `read` names the reader of the value. `key` and `value`
    may refer to groups of the opening and `{value}`.
    """

    opening: re.Pattern[str]
    read: str
    key: str
    value: str
    anywhere: bool
    unless: re.Pattern[str]


class Language:
    """What the rules know of a language: `rules`, and `explicit` ones for what the user asks to
    remember; `aliases` give one word for several in keys.

    patterns:
    tasks: a clause so begun asks for work on a text, and that text is not about the user.
    announces: before a colon it says that the user goes on to speak.
    remember: a sentence so begun is to be kept, whatever it says.
    fillers: may come before what a clause says.
    joins: words after which a clause begins.
    asks: a clause so begun is a question. `tags` are clauses that make one of all before.
    reported: others say it, or nobody does. `past`: it is no longer so. Nothing is read then.
    supposed: from this clause on nothing is so.
    denied: a value with this in its clause is none.
    first_person: words by which a statement is about the user. `addressed`: about who listens.

    words, in lower case:
    never_names, never_places: capitalised all the same.
    particles: within names in lower case; `place_particles` only within those of places and firms.
    vague: point to something said before. `no_start`: a phrase that means anything begins
    otherwise. `cuts`: a phrase ends before these, and before one of `ands` that one of `resumes`
    follows; a role also before `prepositions`. `trailing`: says nothing at its end.
    definite: those articles that may belong to a name.
    """

    def __init__(self, name: str) -> None:
        data = tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
        self.parts: dict[str, str] = {}
        for part, text in data["parts"].items():
            self.parts[part] = self._expanded(text)
        self.patterns = {each: self._pattern(text) for each, text in data["patterns"].items()}
        self.words = {each: frozenset(text.split()) for each, text in data["words"].items()}
        self.aliases: dict[str, str] = {
            word: alias for alias, words in data["aliases"].items() for word in words.split()
        }
        self.rules = [rule for given in data["rules"] for rule in self._rules(given)]
        self.explicit = [rule for given in data["explicit"] for rule in self._rules(given)]

    def _rules(self, given: Mapping[str, Any]) -> Iterator[Rule]:
        """A rule for each opening and each of `verbs`, {verb} in it and {said} in the value."""
        for verb, said in given.get("verbs", {"": ""}).items():
            for opening in given["openings"]:
                yield Rule(
                    self._pattern(opening.replace("{verb}", verb)),
                    given["read"],
                    given["key"],
                    given.get("value", "{value}").replace("{said}", said),
                    given.get("anywhere", False),
                    self._pattern(given.get("unless", "(?!)")),
                )

    def _pattern(self, text: str) -> re.Pattern[str]:
        return re.compile(self._expanded(text), re.IGNORECASE)

    def _expanded(self, text: str) -> str:
        return _PART.sub(lambda name: self.parts[name[1]], _INDENT.sub("", text))
