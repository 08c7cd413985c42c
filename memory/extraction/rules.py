"""Facts that users state about themselves, extracted by the rules of a language (`english.toml`,
`german.toml`). Begin with `extract_by_rules`.

Precision before recall: what is a question, denied, hypothetical, past, quoted or about others is
no fact.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from memory.extraction.messages import Extracted, UserMessage
from memory.fact_keys import InvalidKey, fact_key

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

    All patterns ignore case and are for text with single spaces and `'`. Line breaks in them, with
    the blanks after, count for nothing; `{name}` stands for one of the language's `parts`.

    patterns:
    tasks: a clause so begun asks for work on a text, and that text is not about the user.
    announces: before a colon it says that the user goes on to speak.
    remember: a sentence so begun is to be kept, whatever it says.
    fillers: may come before what a clause says.
    joins: words after which a clause begins.
    asks: a clause so begun is a question. `tags` are clauses that make one of all before.
    reported: others say it, or nobody does. `past`: it is no longer so. Nothing is read then.
    supposed: introduces a hypothesis; the clauses after it are not facts.
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


#: Longer messages are pasted: a letter, a log, a story in the first person.
MAX_MESSAGE_CHARACTERS = 4_000
#: Longer sentences are not introductions either.
MAX_SENTENCE_CHARACTERS = 400

#: Placeholders for quotations. The user's own characters of that range are removed.
_FIRST_QUOTE, _LAST_QUOTE = 0xE000, 0xE0FF
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_QUOTED = re.compile(f"[{chr(_FIRST_QUOTE)}-{chr(_LAST_QUOTE)}]")

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\u00b4`\u2018", "'"))
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_CITED_LINE = re.compile(r"^\s*[>|].*$", re.MULTILINE)
_BRACKETED = re.compile(r"\[[^\[\]\n]*\]|[\[\]]")
_QUOTATIONS = re.compile(
    r"[“„«»][^“”„«»\n]{0,300}(?:[”“»«]|$)"
    r"|\"[^\"\n]{0,300}(?:\"|$)"
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)",
    re.MULTILINE,
)
_ENDS_IN_COLON = re.compile(r":[ \t]*(?:\n|$)")
_TERMINATOR = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]+(?=\s|$)|[\n;]+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:st|mt|ft|dr|mr|mrs|ms|prof|jr|sr|vs|nr|geb|bzw|ca|d\.c|u\.s|u\.k|e\.g|i\.e|z\.\s?b)"
    r"|\b(?!i\b)[^\W\d_])$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\b\d{1,2}$")
_MONTH_AFTER = re.compile(
    r"\s(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|o[kc]t|nov|de[cz])", re.I
)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` has single spaces and no end mark; each quotation is replaced by one private-use
    character.
    """

    text: str
    is_question: bool
    quotations: Sequence[str] = ()

    def restored(self, value: str) -> str:
        """`value`, a part of the text, with its quotations put back."""
        return _QUOTED.sub(lambda quote: self.quotations[ord(quote[0]) - _FIRST_QUOTE], value)


def split_sentences(message: str) -> list[Sentence]:
    """The user's own sentences in `message`, in order: no code, quoted lines or quotations, nothing
    after a line that ends in a colon, and nothing of a pasted text.
    """
    if len(message) > MAX_MESSAGE_CHARACTERS:
        return []
    text = _PRIVATE.sub(" ", unicodedata.normalize("NFC", message))
    for pattern in (_CODE, _CITED_LINE, _BRACKETED):
        text = pattern.sub(" ", text)
    quotations: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        if len(quotations) > _LAST_QUOTE - _FIRST_QUOTE:
            return " "
        quotations.append(match[0].strip("“”„«»\"' "))
        return chr(_FIRST_QUOTE + len(quotations) - 1)

    text = _QUOTATIONS.sub(put_away, text.translate(_APOSTROPHES))
    text = _ENDS_IN_COLON.split(text, maxsplit=1)[0]
    pieces, start = [], 0
    for end in _TERMINATOR.finditer(text):
        before = text[max(start, end.start() - 12) : end.start()]
        if end[0] == "." and (
            _ABBREVIATED.search(before)
            or (_ORDINAL.search(before) and _MONTH_AFTER.match(text, end.end()))
        ):
            continue  # “St. Louis” or “3. Mai”
        pieces.append((text[start : end.start()], "?" in end[0] or "？" in end[0]))
        start = end.end()
    pieces.append((text[start:], False))
    cleaned = ((_SPACE.sub(" ", piece).strip(), is_question) for piece, is_question in pieces)
    return [
        Sentence(piece, is_question, quotations)
        for piece, is_question in cleaned
        if 0 < len(piece) <= MAX_SENTENCE_CHARACTERS
    ]


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

#: The name that people see as the extractor.
RULES_EXTRACTOR = "rules"
#: A shorter sentence tells nothing that is worth a context.
FEWEST_WORDS = 5
#: A sentence with more breaks than this is a list.
MAX_CLAUSES = 20

Clause = tuple[int, int]


def extract_by_rules(messages: Sequence[UserMessage]) -> Extracted:
    """Facts and contexts that the user states in these messages, which are in order of time."""
    facts: list[tuple[str, str, int]] = []
    contexts: list[tuple[str, str, int]] = []
    for number, said in enumerate(messages):
        spoken = split_sentences(said.text)
        is_task = any(
            language.patterns["tasks"].match(text, _clause_start(text, clause, language))
            for language in LANGUAGES
            for text in (sentence.text for sentence in spoken)
            for clause in _clauses(text, language)
        )
        if is_task:
            continue
        told = []
        for sentence in spoken:
            wishes = []
            for language in LANGUAGES:
                found, wish = _read_sentence(sentence, language)
                facts += ((key, value, number) for key, value in found)
                wishes += [wish] if wish else []
            contexts += ((wish, "", number) for wish in wishes)
            if not wishes and _is_of_oneself(sentence):
                told.append(sentence.restored(sentence.text))
        if told:
            contexts.append((". ".join(told), "", number))
    values: dict[str, str] = {}
    changes = []
    for key, value, number in facts:
        if values.get(key) != value:
            values[key] = value
            changes.append((key, value, number))
    return Extracted(tuple(changes), tuple(dict.fromkeys(contexts)))


def _read_sentence(sentence: Sentence, language: Language) -> tuple[list[tuple[str, str]], str]:
    """Facts of the sentence; and its text where the user asks to remember what is none."""
    wish = language.patterns["remember"].match(sentence.text)
    if wish is None:
        return _facts(sentence, language, language.rules), ""
    statement = Sentence(sentence.text[wish.end() :], False, sentence.quotations)
    found = _facts(statement, language, language.rules)
    found = found or _facts(statement, language, language.explicit)
    if found or not language.patterns["first_person"].search(statement.text):
        return found, ""
    return [], statement.restored(statement.text)


def _is_of_oneself(sentence: Sentence) -> bool:
    """Whether the user states something of himself that asks nothing of who listens."""
    if sentence.is_question or len(sentence.text.split()) < FEWEST_WORDS:
        return False
    return any(
        language.patterns["first_person"].search(sentence.text)
        and not any(
            language.patterns[unfit].search(sentence.text)
            for unfit in ("addressed", "reported", "supposed")
        )
        for language in LANGUAGES
    )


def _facts(sentence: Sentence, language: Language, rules: Sequence[Rule]) -> list[tuple[str, str]]:
    # Text after a colon is a quotation, unless the user announces own words.
    before, colon, after = sentence.text.partition(": ")
    patterns = language.patterns
    text = after if colon and patterns["announces"].fullmatch(before) else before
    if not patterns["first_person"].search(text):
        return []
    if patterns["reported"].search(text) or patterns["past"].search(text):
        return []
    clauses = _stated_clauses(text, sentence.is_question, language)
    found: list[tuple[str, str]] = []
    for rule in rules:
        # Where to try the rule, and up to where a negation counts.
        if not rule.anywhere:
            places = [
                (start, clause[1])
                for clause in clauses
                for start in sorted({clause[0], _clause_start(text, clause, language)})
            ]
        elif clauses:
            places = [match.span() for match in rule.opening.finditer(text, 0, clauses[-1][1])]
        else:
            places = []
        for place in places:
            found += _apply_rule(sentence, text, place, rule, language)
    return found


def _clauses(text: str, language: Language) -> list[Clause]:
    starts = [0, *(match.end() for match in language.patterns["joins"].finditer(text))]
    ends = [*(match.start() for match in language.patterns["joins"].finditer(text)), len(text)]
    return list(zip(starts, ends, strict=True))[:MAX_CLAUSES]


def _stated_clauses(text: str, is_question: bool, language: Language) -> list[Clause]:
    """The clauses that state something as true."""
    clauses = _clauses(text, language)
    if is_question:
        if any(language.patterns["tags"].match(text[start:end]) for start, end in clauses):
            return []
        clauses = clauses[:-1]
    for number, (start, end) in enumerate(clauses):
        asks = language.patterns["asks"].match(text, start) if is_question else None
        if asks or language.patterns["supposed"].search(text, start, end):
            return clauses[:number]
    return clauses


def _clause_start(text: str, clause: Clause, language: Language) -> int:
    """Where the content of the clause begins."""
    match = language.patterns["fillers"].match(text, *clause)
    return match.end() if match else clause[0]


def _apply_rule(
    sentence: Sentence, text: str, place: Clause, rule: Rule, language: Language
) -> Iterator[tuple[str, str]]:
    opening = rule.opening.match(text, place[0])
    if opening is None or rule.unless.search(text, opening.end()):
        return
    if language.patterns["denied"].search(text, opening.end(), place[1]):
        return
    groups = opening.groupdict(default="")
    given = groups.pop("value", text[opening.end() :])
    for value in ValueReader(given, language, is_casual=text == text.lower()).read(rule.read):
        names = {name: _alias(word, language) for name, word in groups.items()}
        names["value"] = value
        names["alias"] = _alias(value, language)
        # The same for both orders, so that a change of preference supersedes the old one.
        names["pair"] = " or ".join(sorted((value.lower(), groups.get("other", "").lower())))
        said = " ".join(sentence.restored(rule.value.format(**names)).split())
        try:
            yield fact_key(sentence.restored(rule.key.format(**names))), said
        except InvalidKey:
            continue


def _alias(word: str, language: Language) -> str:
    return language.aliases.get(word.lower().strip(), word.lower().strip())
