"""Words, phrases and numbers of questions, and `Question`, which is one taken apart by
`parsing.read_question`. Words by language are in `words.toml`. Without Django.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

with (Path(__file__).parent / "words.toml").open("rb") as _file:
    _TOML: dict[str, dict[str, str]] = tomllib.load(_file)

_WORD = re.compile(r"\d+(?:[.,'’]\d+)*k?(?![\w])|[^\W_]+|[%€$£¥]|°C")
#: First parts of German compounds, which are words of their own elsewhere.
_COMPOUND = re.compile(
    r"(durchschnitts|gesamt|(?:ein|zwei|drei|vier|funf|sechs)(?=zimmer))(?=\w{4})"
)
#: “Unpaid” is “not paid”.
_NEGATED = re.compile(
    r"(?:un(?=(?:paid|sold|shipped|delivered|answered|resolved|confirmed|billed|invoiced|approved|finished|"
    r"assigned|opened|used|occupied|signed|verified|settled|bezahlt|beglichen|erledigt|verkauft|geliefert|"
    r"beantwortet|bestatigt|genehmigt))|im(?=pagad))"
)
#: Endings of British spelling: “licences”, “colours”, “organised”, “centres”, “catalogue”.
_AMERICAN = {"ence": "ense", "our": "or", "is": "iz", "tre": "ter", "ogue": "og", "lled": "led"}
_BRITISH = re.compile(
    r"(?<=\w\w)(?:ence(?=s?$)|our(?=s?$)|is(?=(?:e[ds]?|ing|ations?)$)|tre(?=s?$)|ogue(?=s?$)|lled$)"
)
#: An umlaut in letters of English.
_DIGRAPH = re.compile(r"([aou])e(?=[^aeiou])")
#: Letters of a word that is a form of one that says what columns are about.
MIN_FORM = 6
#: Marks of spans of time.
PERIODS = ("day", "week", "month", "quarter", "year")
#: Most words of a phrase, and of a name in a table that is looked for.
MAX_PHRASE = 6

Marks = dict[str, str]


@lru_cache(maxsize=50_000)
def fold(text: str) -> str:
    """In small letters, without accents; of a word, which is remembered."""
    return fold_text(text)


def fold_text(text: str) -> str:
    """In small letters, without accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def without_digraphs(word: str) -> str:
    """A word with “a” for “ae” and so on, as words with umlauts are folded."""
    return _DIGRAPH.sub(r"\1", word)


@lru_cache(maxsize=50_000)
def word_forms(word: str) -> frozenset[str]:
    """The folded word with and without an ending of number, gender or case: two words are forms of
    one if they share any."""
    forms = {word}
    for ending in ("s", "e", "n", "es", "en", "er", "em", "ern"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            forms.add(word[: -len(ending)])
    for ending in ("a", "o", "as", "os"):
        if word.endswith(ending) and len(word) - len(ending) >= 5:
            forms.add(word[: -len(ending)])
    if len(word) >= 5 and (plain := without_digraphs(word)) != word:
        forms |= word_forms(plain)  # “Auftraege”
    if word.endswith("ies") and len(word) > 4:
        forms.add(f"{word[:-3]}y")
    if (american := _BRITISH.sub(lambda found: _AMERICAN[found[0]], word)) != word:
        forms |= word_forms(american)
    return frozenset(forms)


def split_words(text: str) -> list[str]:
    """The folded words of a text."""
    return [part for found in _WORD.finditer(text) for part in _parts(fold(found[0]))]


def _parts(word: str) -> list[str]:
    if negated := _NEGATED.match(word):
        return ["not", word[negated.end() :]]
    compound = _COMPOUND.match(word)
    return [compound[1].removesuffix("s"), word[compound.end() :]] if compound else [word]


def _phrases(words: str) -> list[tuple[str, ...]]:
    return [tuple(split_words(phrase)) for phrase in words.replace("\n", " ").split(",")]


def _lexicon() -> dict[tuple[str, ...], Marks]:
    """Phrases with what they mean: kind → value."""
    found: dict[tuple[str, ...], Marks] = {}
    kinds = {**dict(_TOML["marks"].items()), **_TOML["ignored"]}
    for kind, words in kinds.items():
        for phrase in _phrases(words):
            found.setdefault(phrase, {})[kind] = ""
    sections = (
        *("most", "least", "more", "less"),
        *("months", "quarters", "halves", "each", "numbers", "units"),
    )
    for kind in sections:
        for value, words in _TOML[kind].items():
            for phrase in _phrases(words):
                marks = found.setdefault(phrase, {})
                # “oldest” is the greatest age or the least date: whatever the table has.
                marks[kind] = f"{marks[kind]} {value}" if kind in marks else value
    return found


_LEXICON = _lexicon()
#: Marks of which a question needs one if tables are to be asked.
MEASURES = frozenset(
    [
        "count",
        "how_often",
        "how_much",
        "spent",
        "earned",
        "raised",
        "sum",
        "mean",
        "most",
        "least",
        "often",
        "seldom",
        "top",
        "bottom",
        "list",
        "difference",
        "more",
        "less",
        "share",
        "distinct",
        "each",
        "not",
    ]
)
#: Those that ask for a computation, and not only for what is there: a chat model may write SQL.
_COMPUTATIONS = frozenset(
    (
        *(
            "count",
            "how_often",
            "how_much",
            "spent",
            "earned",
            "raised",
            "sum",
            "mean",
            "most",
            "least",
            "often",
            "seldom",
        ),
        *("difference", "share", "unsupported"),
    )
)
#: With a number these do, too: “which bikes weigh less than 20 kg”.
_LIMITS = frozenset(
    (
        *("above", "below", "at_least", "at_most", "or_more", "or_less", "exactly"),
        *("between", "before", "after", "since", "until"),
    )
)
#: And with a name of rows or columns, in a phrase such as “hours per project”.
_PHRASES = frozenset(("group", "which", "above", "below", "months", "quarters", "halves"))
#: Times from today.
_RELATIVE = (frozenset(("this", "last", "next")), frozenset(("week", "month", "quarter", "year")))


#: Words of headers whose numbers are added up over time, and of those that are not.
ADDITIVE, NOT_ADDITIVE = (
    frozenset(" ".join(words) for words in _phrases(_TOML["additive"][known]))
    for known in ("yes", "no")
)
#: Beginnings of questions for what is there, two words each.
EXISTENCE = frozenset(_phrases(_TOML["beginnings"]["existence"]))


def _concepts(*sections: str) -> dict[str, tuple[str, ...]]:
    """Words of one word or more → the concepts that they mean."""
    found: dict[str, tuple[str, ...]] = {}
    for section in sections:
        for concept, words in _TOML[section].items():
            for phrase in _phrases(words):
                key = " ".join(phrase)
                found[key] = tuple(dict.fromkeys((*found.get(key, ()), concept)))
    return found


_HEADER_CONCEPTS, _QUESTION_CONCEPTS = _concepts("concepts"), _concepts("concepts", "asks")


def concepts_of(phrase: str, *, is_question: bool) -> tuple[str, ...]:
    """What a folded word or phrase of a header, or of a question, is about."""
    known = _QUESTION_CONCEPTS if is_question else _HEADER_CONCEPTS
    if found := known.get(phrase):
        return found
    if len(phrase) < MIN_FORM:
        return ()
    return next((known[form] for form in sorted(word_forms(phrase)) if form in known), ())


#: Folded words that tell columns of one concept apart → what they say of them.
QUALIFIERS: Mapping[str, str] = {
    word: kind for kind, words in _TOML["qualifiers"].items() for (word,) in _phrases(words)
}


def _plain_verbs() -> frozenset[str]:
    """The forms of the verbs that say nothing more, by the regular conjugation of each language."""
    en, de, es = (
        re.split(r",\s*", fold_text(_TOML["verbs"][code]).strip()) for code in ("en", "de", "es")
    )
    endings = {
        "ar": "a an amos o aron aba aban ado ada ados adas ando".split(),  # noqa: SIM905
        "er": "e en emos io ieron imos ia ian ido ida idos idas iendo".split(),  # noqa: SIM905
    }
    endings["ir"] = [*endings["er"], "imos"]
    forms = {*en, *de, *es}
    for verb in en:
        stem = verb.removesuffix("e")
        forms |= {
            f"{verb}s",
            f"{stem}ed",
            f"{stem}ing",
            f"{verb}{verb[-1]}ed",
            f"{verb}{verb[-1]}ing",
        }
    for verb in de:
        stem = verb.removesuffix("en").removesuffix("n")
        forms |= {f"{stem}{each}" for each in ("t", "te", "ten", "et", "ete", "eten")}
        forms |= {f"ge{stem}t", f"ge{stem}et", f"ge{verb}"}
    for verb in es:
        forms |= {verb[:-2] + each for each in endings.get(verb[-2:], ())}
    return frozenset(forms)


#: Verbs that say nothing about which rows are asked for.
PLAIN_VERBS = _plain_verbs()
#: Values that mean the same however they are written: of each kind, folded word → value.
FAMILIES: Mapping[str, Mapping[str, str]] = {
    kind: {word: value for value, words in _TOML[kind].items() for (word,) in _phrases(words)}
    for kind in ("sex", "weekday")
}
#: “M” is a woman beside “H”, a man.
SPANISH_SEX: Mapping[str, str] = {"h": "male", "m": "female"}


@lru_cache(maxsize=4)
def known_words(min_letters: int) -> frozenset[str]:
    """The words of the grammar with at least so many letters."""
    phrases = [*_LEXICON, *(tuple(phrase.split()) for phrase in _QUESTION_CONCEPTS)]
    return frozenset(word for phrase in phrases for word in phrase if len(word) >= min_letters)


@dataclass(frozen=True, slots=True)
class Span:
    """Words of a question from `start` to `end` that mean something: kind → value."""

    start: int
    end: int
    marks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Time:
    """A time of a question: a day, or `months` from `month` on; without a `year` of any year.
    `span` are its first day and the first one after it where today decides them. `op` is `in`, `<`,
    `<=`, `>` or `>=`."""

    start: int
    end: int
    op: str
    year: int | None = None
    month: int = 1
    months: int = 12
    day: int | None = None
    span: tuple[date, date] | None = None

    def days(self, year: int) -> tuple[date, date]:
        """The first day in this year, and the first one after it. Raises ValueError where the year
        has no such day."""
        if self.span:
            return self.span
        if self.day:
            first = date(year, self.month, self.day)
            return first, first + timedelta(days=1)
        after = self.month - 1 + self.months
        return date(year, self.month, 1), date(year + after // 12, after % 12 + 1, 1)


@dataclass(slots=True)
class Question:
    """A question taken apart: folded words and, of each word, the spans that begin with it.
    `numbers` are the values by place, `millions` the places of those that “million” follows,
    `times` what it says of dates."""

    words: list[str]
    spans: list[Span]
    language: str
    numbers: dict[int, float] = field(default_factory=dict)
    millions: set[int] = field(default_factory=set)
    times: list[Time] = field(default_factory=list)

    @property
    def is_for_existence(self) -> bool:
        """Whether it asks what is there: “is there any …”."""
        return tuple(self.words[:2]) in EXISTENCE

    @property
    def content_words(self) -> list[str]:
        """The words but for small ones."""
        small = {
            at
            for span in self.spans
            if span.marks.keys() == {"words"}
            for at in range(span.start, span.end)
        }
        return [word for at, word in enumerate(self.words) if at not in small]

    def span(self, at: int) -> Span | None:
        """The span that begins at this word."""
        return next((span for span in self.spans if span.start == at), None)

    def covering(self, at: int) -> Span | None:
        """The span that has this word."""
        return next((span for span in self.spans if span.start <= at < span.end), None)

    def has(self, *kinds: str) -> bool:
        """Whether any span means one of these."""
        return any(kind in span.marks for span in self.spans for kind in kinds)

    def first(self, *kinds: str) -> Span | None:
        """The first span that means one of these."""
        return next((s for s in self.spans if any(kind in s.marks for kind in kinds)), None)


def has_measure(text: str) -> bool:
    """Whether a question has a word that asks for something that tables answer: cheap, and surely
    true where `plan_question` finds a plan."""
    words = split_words(text)
    wanted = MEASURES | _PHRASES
    if any(map(str.isdigit, text)):
        wanted |= _LIMITS
    marks = {kind for span in spans_of(words) for kind in span.marks}
    is_relative = all(kinds & marks for kinds in _RELATIVE)
    return bool(wanted & marks) or is_relative or tuple(words[:2]) in EXISTENCE


def asks_to_compute(text: str) -> bool:
    """Whether a question has a word for a computation, also one that plans do not have, such as a
    median."""
    return any(_COMPUTATIONS & span.marks.keys() for span in spans_of(split_words(text)))


def spans_of(words: list[str]) -> list[Span]:
    """The longest phrases of the lexicon, from left to right."""
    spans, at = [], 0
    while at < len(words):
        for end in range(min(at + MAX_PHRASE, len(words)), at, -1):
            if marks := _LEXICON.get(tuple(words[at:end])):
                spans.append(Span(at, end, marks))
                at = end
                break
        else:
            at += 1
    return spans


def language_of(words: list[str]) -> str:
    counts = {
        code: sum(word in known for word in words)
        for code, known in (
            (code, set(split_words(_TOML["languages"][code]))) for code in _TOML["languages"]
        )
    }
    return max(counts, key=lambda code: counts[code]) if any(counts.values()) else "en"


def parse_number(word: str, language: str) -> float | None:
    """A number as this language writes it; the other way where only that makes sense, such as `1.5`
    in German. None where it is none, or may be meant either way."""
    plain = word.replace("'", "").replace("’", "")
    decimal, group = (",", ".") if language in ("de", "es") else (".", ",")
    whole, _, fraction = plain.partition(decimal)
    is_whole = re.fullmatch(rf"\d{{1,3}}(?:{re.escape(group)}\d{{3}})+|\d+", whole)
    # “4.500” may be meant either way.
    if is_whole and (not fraction or (fraction.isdigit() and len(fraction) != 3)):
        return float(f"{whole.replace(group, '')}.{fraction or 0}")
    if re.fullmatch(r"\d{1,3}[.,]000", plain):
        return float(re.sub("[.,]", "", plain))
    if re.fullmatch(r"\d+[.,]\d{1,2}", plain):
        return float(plain.replace(",", "."))
    return None
