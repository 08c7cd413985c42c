"""Facts that users state about themselves, extracted by rules. Begin with `extract_by_rules`.

Precision before recall: what is a question, denied, hypothetical, past, quoted or about others is
no fact.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory.extraction.english import ENGLISH
from memory.extraction.german import GERMAN
from memory.extraction.language import Language, Rule, ValueReader
from memory.extraction.messages import Extracted, ExtractedContext, ExtractedFact, UserMessage
from memory.fact_keys import InvalidKey, fact_key

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


@dataclass(frozen=True, slots=True)
class Remainder:
    """The text after an opening. `is_casual`: the user writes everything in lower case,
    names too.
    """

    text: str
    language: Language
    is_casual: bool = False

    def tokens(self) -> list[str]:
        return _TOKEN.findall(self.text)


def read_value(reader: ValueReader, rest: Remainder) -> list[str]:
    """The values at the start of `rest`: mostly one, or none."""
    return [value for value in _READERS[reader](rest) if len(value) <= MAX_VALUE_CHARACTERS]


def _name(rest: Remainder) -> list[str]:
    tokens = rest.tokens()
    found = _capitalised(tokens, rest.language.particles)
    if not found and rest.is_casual:
        found = _in_lower_case(tokens, rest.language, limit=2)
    own = [word for word in found if _key(word) not in rest.language.particles]
    if not found or len(own) > 4 or _key(found[0]) in rest.language.never_names:
        return []
    name, _, _ = " ".join(found).rstrip(".'").partition("'s")
    return [name]


def _place(rest: Remainder) -> list[str]:
    tokens = rest.tokens()
    article = tokens[:1] if tokens and _key(tokens[0]) in rest.language.definite else []
    tokens = tokens[len(article) :]
    found = _capitalised(tokens, _place_particles(rest.language))
    if not found and rest.is_casual and not article:
        found = _in_lower_case(tokens, rest.language, limit=3)
    if not found or len(found) > 5 or _key(found[0]) in rest.language.never_places:
        return []
    place = " ".join(article + found).rstrip(".'")
    # `, Oregon` where nothing else comes before the next break.
    comma, following = tokens[len(found) :][:1], tokens[len(found) + 1 :]
    region = _capitalised(following, _place_particles(rest.language)) if comma == [","] else []
    ends = following[len(region)] in _PUNCTUATION if len(following) > len(region) else True
    if not region or len(region) > 3 or not ends or _key(region[0]) in rest.language.never_places:
        return [place]
    return [f"{place}, " + " ".join(region).rstrip(".'")]


def _place_particles(language: Language) -> frozenset[str]:
    return language.particles | language.place_particles


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


def _in_lower_case(tokens: Sequence[str], language: Language, *, limit: int) -> list[str]:
    ends = language.cuts | language.ands | language.prepositions | language.trailing
    found: list[str] = []
    for token in tokens:
        word = _key(token)
        if token in _PUNCTUATION or word in ends:
            break
        if not word.replace("-", "").isalpha() or word in language.vague | language.no_start:
            return []
        found.append(token)
    return found if len(found) <= limit else []


def _phrase(rest: Remainder) -> list[str]:
    return _phrase_of(rest, limit=6)


def _title(rest: Remainder) -> list[str]:
    """A phrase, which may be as long as a book title."""
    tokens = rest.tokens()
    if tokens and _key(tokens[0]) in rest.language.articles:
        article, *tokens = tokens
        name = _capitalised(tokens, _place_particles(rest.language))
        return [" ".join([article, *name])] if name else []
    name = _capitalised(tokens, _place_particles(rest.language))
    if len(name) > 6:
        return [" ".join(name)]
    return _phrase(rest)


def _role(rest: Remainder) -> list[str]:
    """A phrase that ends before “at Siemens” or “in Berlin”."""
    return _phrase_of(rest, limit=5, until=rest.language.prepositions)


def _phrase_of(rest: Remainder, *, limit: int, until: frozenset[str] = frozenset()) -> list[str]:
    language = rest.language
    found: list[str] = []
    tokens = rest.tokens()
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        word = _key(token)
        if token in _PUNCTUATION or word in language.cuts | until:
            break
        if word in language.ands and (not following or _key(following) in language.resumes):
            break
        if word in language.vague:
            return []
        found.append(token)
    while found and _key(found[-1]) in language.trailing:
        found.pop()
    if not found or len(found) > limit or _key(found[0]) in language.no_start | language.articles:
        return []
    return [" ".join(found).rstrip(".'")]


def _employer(rest: Remainder) -> list[str]:
    tokens = rest.tokens()
    found = _capitalised(tokens, _place_particles(rest.language))
    if found and _key(found[0]) not in rest.language.never_places:
        return [" ".join(found).rstrip(".'")] if len(found) <= 5 else []
    if len(tokens) > 1 and _key(tokens[0]) in rest.language.articles - rest.language.definite:
        kind = _phrase_of(Remainder(" ".join(tokens[1:]), rest.language), limit=3)
        return [f"{tokens[0]} {value}" for value in kind]
    return []


def _remainder(rest: Remainder) -> list[str]:
    """The whole text, for what the user asked to be remembered."""
    return [rest.text.strip(" ,.-")] if rest.text.strip(" ,.-") else []


def _list(rest: Remainder) -> list[str]:
    """`peanuts, shellfish and cats`, as long as the parts are short."""
    found: list[str] = []
    for part in rest.language.lists.split(rest.text):
        values = _phrase_of(Remainder(part, rest.language), limit=4 if not found else 3)
        if not values:
            break
        found += values
        if not part.strip().startswith(values[0]) or len(part.strip()) > len(values[0]):
            break
    return found


def _languages(rest: Remainder) -> list[str]:
    found: list[str] = []
    for part in rest.language.lists.split(rest.text):
        known = [word for word in _TOKEN.findall(part)[:4] if _key(word) in rest.language.languages]
        if not known:
            break
        found += known[:1]
    return found


def _date(rest: Remainder) -> list[str]:
    match = rest.language.date.match(rest.text)
    return [match[0].strip()] if match else []


def _key(token: str) -> str:
    return token.lower().strip(".'")


_READERS: dict[str, Callable[[Remainder], list[str]]] = {
    "name": _name,
    "place": _place,
    "phrase": _phrase,
    "role": _role,
    "title": _title,
    "list": _list,
    "languages": _languages,
    "date": _date,
    "employer": _employer,
    "rest": _remainder,
}


LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)


#: The name that people see as the extractor.
RULES_EXTRACTOR = "rules"
#: A shorter sentence tells nothing that is worth a context.
FEWEST_WORDS = 5
#: A sentence with more breaks than this is a list.
MAX_CLAUSES = 20

Clause = tuple[int, int]


def extract_by_rules(messages: Sequence[UserMessage]) -> Extracted:
    """Facts and contexts that the user states in these messages, which are in order of time."""
    facts: list[ExtractedFact] = []
    contexts: list[ExtractedContext] = []
    for number, said in enumerate(messages):
        spoken = split_sentences(said.text)
        is_task = any(
            language.tasks.match(sentence.text, _clause_start(sentence.text, clause, language))
            for language in LANGUAGES
            for sentence in spoken
            for clause in _clauses(sentence.text, language)
        )
        if is_task:
            continue
        told = []
        for sentence in spoken:
            known = len(contexts)
            _read_sentence(sentence, number, facts, contexts)
            if len(contexts) == known and _is_of_oneself(sentence):
                told.append(sentence.restored(sentence.text))
        if told:
            contexts.append(ExtractedContext(". ".join(told), "", number))
    values: dict[str, str] = {}
    changes: list[ExtractedFact] = []
    for fact in facts:
        if values.get(fact.key) != fact.value:
            values[fact.key] = fact.value
            changes.append(fact)
    return Extracted(tuple(changes), tuple(dict.fromkeys(contexts)))


def _read_sentence(
    sentence: Sentence, number: int, facts: list[ExtractedFact], contexts: list[ExtractedContext]
) -> None:
    for language in LANGUAGES:
        wish = language.remember.match(sentence.text)
        if wish is None:
            found = _facts(sentence, language, language.rules)
        else:
            statement = Sentence(sentence.text[wish.end() :], False, sentence.quotations)
            found = _facts(statement, language, language.rules)
            found = found or _facts(statement, language, language.explicit)
            if not found and language.first_person.search(statement.text):
                text = statement.restored(statement.text)
                contexts.append(ExtractedContext(text, "", number))
        facts += (ExtractedFact(key, value, number) for key, value in found)


def _is_of_oneself(sentence: Sentence) -> bool:
    """Whether the user states something of himself that asks nothing of who listens."""
    if sentence.is_question or len(sentence.text.split()) < FEWEST_WORDS:
        return False
    return any(
        language.first_person.search(sentence.text)
        and not any(
            unfit.search(sentence.text)
            for unfit in (language.addressed, language.reported, language.supposed)
        )
        for language in LANGUAGES
    )


def _facts(sentence: Sentence, language: Language, rules: Sequence[Rule]) -> list[tuple[str, str]]:
    # Text after a colon is a quotation, unless the user announces own words.
    before, colon, after = sentence.text.partition(": ")
    text = after if colon and language.announces.fullmatch(before) else before
    if not language.first_person.search(text):
        return []
    if language.reported.search(text) or language.past.search(text):
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
            places = [match.span() for match in rule.pattern.finditer(text, 0, clauses[-1][1])]
        else:
            places = []
        for place in places:
            found += _apply_rule(sentence, text, place, rule, language)
    return found


def _clauses(text: str, language: Language) -> list[Clause]:
    starts = [0, *(match.end() for match in language.joins.finditer(text))]
    ends = [*(match.start() for match in language.joins.finditer(text)), len(text)]
    return list(zip(starts, ends, strict=True))[:MAX_CLAUSES]


def _stated_clauses(text: str, is_question: bool, language: Language) -> list[Clause]:
    """The clauses that state something as true."""
    clauses = _clauses(text, language)
    if is_question:
        if any(language.tags.match(text[start:end]) for start, end in clauses):
            return []
        clauses = clauses[:-1]
    for number, (start, end) in enumerate(clauses):
        asks = language.asks.match(text, start) if is_question else None
        if asks or language.supposed.search(text, start, end):
            return clauses[:number]
    return clauses


def _clause_start(text: str, clause: Clause, language: Language) -> int:
    """Where the content of the clause begins."""
    match = language.fillers.match(text, *clause)
    return match.end() if match else clause[0]


def _apply_rule(
    sentence: Sentence, text: str, place: Clause, rule: Rule, language: Language
) -> Iterator[tuple[str, str]]:
    opening = rule.pattern.match(text, place[0])
    if opening is None or rule.exception.search(text, opening.end()):
        return
    if language.denied.search(text, opening.end(), place[1]):
        return
    groups = opening.groupdict(default="")
    given = groups.pop("value", text[opening.end() :])
    for value in read_value(rule.read, Remainder(given, language, text == text.lower())):
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
