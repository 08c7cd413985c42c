"""What the rules know of a language (`english.toml`, `german.toml`), and readers of values.

Begin with `Language`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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

    Facts end by `denials`: how a clause denies a statement, and which (`i no longer live in` →
    `i live in`), for the `rules` to read. They end by `endings`, such as `i quit Orbion`: rules
    whose `key` lists patterns of keys. `topics` are what users call facts (`my job`), by patterns
    of their keys. `completions` add the words that a sentence leaves out (`and live in` →
    `and i live in`); one with a group `before` only behind a clause about the user.

    All patterns ignore case and are for text with single spaces and `'`. Line breaks in them, with
    the blanks after, count for nothing; `{name}` stands for one of the language's `parts`.

    patterns:
    tasks: a clause so begun asks for work on a text, and that text is not about the user.
    announces: before a colon it says that the user goes on to speak.
    remember: a sentence so begun is to be kept, whatever it says.
    fillers: may come before what a clause says.
    joins: words after which a clause begins.
    asks: a clause so begun is a question. `tags` are clauses that make one of all before.
    reported: others say it, or nobody does. `past`: it was long ago. Nothing is read then.
    ended: a clause with this states what is no longer so. `revokes`: one that is nothing else says
    so of the clause before. `fades` are the words of it that come behind a value.
    supposed: introduces a hypothesis; the clauses after it are not facts.
    denied: a value with this in its clause is none.
    unsure, partial: a clause with this ends no fact, as it may be so, or is so in part.
    contrasts: comes between a denied value and the right one. `corrects`: the same where that may
    be about something else. `excepts`: comes between the right value and a denied one.
    withdraws: the statement in its group no longer holds. `withdraws_topic`: the same for all that
    is known of the topic in its group. `takes_back`: a clause so begun withdraws what was said
    last, and `replaces_last` replaces it. `temporary`: with this, only for a moment. `requests`: a
    question so begun asks for it. `confesses`: it was the user who said something wrong.
    subject: a clause so begun is about the user, `other_subject` within it makes that unsure.
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
        self.endings = [rule for given in data["endings"] for rule in self._rules(given)]
        self.denials = self._replacements(data["denials"])
        self.completions = self._replacements(data["completions"])
        self.topics: dict[str, str] = {
            word: keys for keys, words in data["topics"].items() for word in words.split()
        }

    def _replacements(
        self, given: Sequence[Mapping[str, str]]
    ) -> list[tuple[re.Pattern[str], str]]:
        return [(self._pattern(each["said"]), each["means"]) for each in given]

    def _rules(self, given: Mapping[str, Any]) -> Iterator[Rule]:
        """A rule for each opening and each of `verbs`, {verb} in it and {said} in the value."""
        for verb, said in given.get("verbs", {"": ""}).items():
            for opening in given["openings"]:
                yield Rule(
                    self._pattern(opening.replace("{verb}", verb)),
                    given.get("read", ""),
                    given["key"],
                    given.get("value", "{value}").replace("{said}", said),
                    given.get("anywhere", False),
                    self._pattern(given.get("unless", "(?!)")),
                )

    def _pattern(self, text: str) -> re.Pattern[str]:
        return re.compile(self._expanded(text), re.IGNORECASE)

    def _expanded(self, text: str) -> str:
        return _PART.sub(lambda name: self.parts[name[1]], _INDENT.sub("", text))


MAX_VALUE_CHARACTERS = 100
_TOKEN = re.compile(r"[^\s,:;!?()\"–—/]+|[,:;!?()\"–—/]")
_PUNCTUATION = frozenset(',:;!?()"–—/-')
_NOT_NAMES = frozenset(("i", "i'm", "i'll", "i've", "i'd", "im"))


class ValueReader:
    """The text after an opening. Rules name in `read` the method that reads their value: mostly
    one, or none. `is_casual`: the user writes everything in lower case, names too.
    """

    def __init__(self, text: str, language: Language, *, is_casual: bool = False) -> None:
        self.text, self.language, self.is_casual = text, language, is_casual
        self.words = language.words
        self.place_particles = self.words["particles"] | self.words["place_particles"]
        self.tokens: list[str] = _TOKEN.findall(text)

    def read(self, name: str) -> list[str]:
        """The values at the start of the text, as far as they are short."""
        values: list[str] = getattr(self, name)()
        return [value for value in values if len(value) <= MAX_VALUE_CHARACTERS]

    def name(self) -> list[str]:
        found = _capitalised(self.tokens, self.words["particles"])
        if not found and self.is_casual:
            found = self._in_lower_case(self.tokens, limit=2)
        own = [word for word in found if _key(word) not in self.words["particles"]]
        if not found or len(own) > 4 or _key(found[0]) in self.words["never_names"]:
            return []
        name, _, _ = " ".join(found).rstrip(".'").partition("'s")
        return [name]

    def place(self) -> list[str]:
        has_article = bool(self.tokens) and _key(self.tokens[0]) in self.words["definite"]
        article, tokens = self.tokens[:has_article], self.tokens[has_article:]
        found = _capitalised(tokens, self.place_particles)
        if not found and self.is_casual and not article:
            found = self._in_lower_case(tokens, limit=3)
        if not found or len(found) > 5 or _key(found[0]) in self.words["never_places"]:
            return []
        place = " ".join(article + found).rstrip(".'")
        # `, Oregon` where nothing else comes before the next break.
        comma, following = tokens[len(found) :][:1], tokens[len(found) + 1 :]
        region = _capitalised(following, self.place_particles) if comma == [","] else []
        ends = len(following) <= len(region) or following[len(region)] in _PUNCTUATION
        if not 0 < len(region) <= 3 or not ends or _key(region[0]) in self.words["never_places"]:
            return [place]
        return [f"{place}, " + " ".join(region).rstrip(".'")]

    def phrase(self) -> list[str]:
        return self._phrase(self.tokens, limit=6)

    def role(self) -> list[str]:
        """A phrase that ends before “at Siemens” or “in Berlin”."""
        return self._phrase(self.tokens, limit=5, until=self.words["prepositions"])

    def title(self) -> list[str]:
        """A phrase, which may be as long as a book title."""
        has_article = bool(self.tokens) and _key(self.tokens[0]) in self.words["articles"]
        name = _capitalised(self.tokens[has_article:], self.place_particles)
        if has_article:
            return [" ".join([self.tokens[0], *name])] if name else []
        return [" ".join(name)] if len(name) > 6 else self.phrase()

    def employer(self) -> list[str]:
        found = _capitalised(self.tokens, self.place_particles)
        if found and _key(found[0]) not in self.words["never_places"]:
            return [" ".join(found).rstrip(".'")] if len(found) <= 5 else []
        indefinite = self.words["articles"] - self.words["definite"]
        if self.tokens and _key(self.tokens[0]) in indefinite:
            kind = self._phrase(self.tokens[1:], limit=3)
            return [f"{self.tokens[0]} {value}" for value in kind]
        return []

    def thing(self) -> list[str]:
        """A name of whatever kind, or an indefinite one such as “a small bank”."""
        found = self.employer() or self.name()
        if not found and self.is_casual:
            found = [" ".join(self._in_lower_case(self.tokens, limit=3))]
        return list(filter(None, found))

    def rest(self) -> list[str]:
        """The whole text, for what the user asked to be remembered."""
        return list(filter(None, [self.text.strip(" ,.-")]))

    def enumeration(self) -> list[str]:
        """`peanuts, shellfish and cats`, as long as the parts are short."""
        found: list[str] = []
        for part in self.language.patterns["lists"].split(self.text):
            values = self._phrase(_TOKEN.findall(part), limit=3 if found else 4)
            found += values
            if not values or part.strip() != values[0]:
                break
        return found

    def languages(self) -> list[str]:
        found: list[str] = []
        for part in self.language.patterns["lists"].split(self.text):
            words = _TOKEN.findall(part)[:4]
            known = [word for word in words if _key(word) in self.words["languages"]]
            if not known:
                break
            found += known[:1]
        return found

    def date(self) -> list[str]:
        match = self.language.patterns["date"].match(self.text)
        return [match[0].strip()] if match else []

    def _in_lower_case(self, tokens: Sequence[str], *, limit: int) -> list[str]:
        ends = frozenset().union(
            *(self.words[kind] for kind in ("cuts", "ands", "prepositions", "trailing"))
        )
        found: list[str] = []
        for token in tokens:
            word = _key(token)
            if token in _PUNCTUATION or word in ends:
                break
            unfit = word in self.words["vague"] or word in self.words["no_start"]
            if unfit or not word.replace("-", "").isalpha():
                return []
            found.append(token)
        return found if len(found) <= limit else []

    def _phrase(
        self, tokens: Sequence[str], *, limit: int, until: frozenset[str] = frozenset()
    ) -> list[str]:
        words = self.words
        found: list[str] = []
        for token, following in zip_longest(tokens, tokens[1:], fillvalue=""):
            word = _key(token)
            if token in _PUNCTUATION or word in words["cuts"] or word in until:
                break
            if word in words["ands"] and (not following or _key(following) in words["resumes"]):
                break
            if word in words["vague"]:
                return []
            found.append(token)
        while found and _key(found[-1]) in words["trailing"]:
            found.pop()
        if not found or len(found) > limit:
            return []
        if _key(found[0]) in words["no_start"] or _key(found[0]) in words["articles"]:
            return []
        return [" ".join(found).rstrip(".'")]


def _capitalised(tokens: Sequence[str], particles: frozenset[str]) -> list[str]:
    """Leading words that are capitalised like a name's."""
    found: list[str] = []
    for token in tokens:
        if not (_is_like_a_name(token) or (found and _key(token) in particles)):
            break
        found.append(token)
    while found and _key(found[-1]) in particles and not _is_like_a_name(found[-1]):
        found.pop()
    return found


def _is_like_a_name(token: str) -> bool:
    first = token[0]
    # scripts without case have no small letters either; a quotation counts as a name
    is_large = first.isalpha() and not first.islower()
    return (is_large or "\ue000" <= first <= "\uf8ff") and token.lower() not in _NOT_NAMES


def _key(token: str) -> str:
    return token.lower().strip(".'")


LANGUAGES = (Language("english"), Language("german"))
