"""Facts that users state about themselves, and what they say no longer holds, extracted by the
rules of a language (`languages.py`). Begin with `extract_by_rules`.

Precision before recall: what is a question, hypothetical, quoted or about others is no fact, and
ends none.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.extraction.endings import Ending, ended_keys
from memory.extraction.languages import LANGUAGES, Language, Rule, ValueReader
from memory.extraction.messages import Extracted, UserMessage
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


#: The name that people see as the extractor.
RULES_EXTRACTOR = "rules"
#: A shorter sentence tells nothing that is worth a context.
FEWEST_WORDS = 5
#: A sentence with more breaks than this is a list.
MAX_CLAUSES = 20

#: Characters within which the right value follows a denied one.
MAX_CONTRAST = 30

Clause = tuple[int, int]
#: Where it begins in the sentence, its key and its value.
Stated = tuple[int, str, str]


def extract_by_rules(messages: Sequence[UserMessage]) -> Extracted:
    """Facts, endings and contexts that the user states in these messages, which are in order
    of time.
    """
    changes: list[tuple[str, str, int]] = []
    endings: list[tuple[Ending, int, int]] = []
    contexts: list[tuple[str, str, int]] = []
    values: dict[str, str] = {}
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
        read: list[tuple[str, str] | Ending] = []
        taken_back: list[Ending] = []
        for sentence in spoken:
            wishes = []
            for language in LANGUAGES:
                found, wish = _read_sentence(sentence, language)
                read += found
                wishes += [wish] if wish else []
                taken_back += [] if found else _taken_back(sentence, language)
            contexts += ((wish, "", number) for wish in wishes)
            if not wishes and _is_of_oneself(sentence):
                told.append(sentence.restored(sentence.text))
        for each in read or taken_back[:1]:
            if isinstance(each, Ending):
                endings.append((each, number, len(changes)))
                for key in ended_keys(each, values) if each.keys else list(values):
                    del values[key]
            elif values.get(each[0]) != each[1]:
                values[each[0]] = each[1]
                changes.append((*each, number))
        if told:
            contexts.append((". ".join(told), "", number))
    return Extracted(tuple(changes), tuple(dict.fromkeys(contexts)), tuple(endings))


def _read_sentence(
    sentence: Sentence, language: Language
) -> tuple[list[tuple[str, str] | Ending], str]:
    """Facts and endings of the sentence, as they follow each other; and its text where the user
    asks to remember what is neither.
    """
    wish = language.patterns["remember"].match(sentence.text)
    if wish is None:
        return _statements(sentence, language), ""
    statement = Sentence(sentence.text[wish.end() :], False, sentence.quotations)
    found = _statements(statement, language)
    found = found or [fact[1:] for fact in _facts(statement, language, language.explicit)]
    if found or not language.patterns["first_person"].search(statement.text):
        return found, ""
    return [], statement.restored(statement.text)


def _statements(sentence: Sentence, language: Language) -> list[tuple[str, str] | Ending]:
    sentence = _completed(sentence, language)
    facts = _facts(sentence, language, language.rules)
    # What is stated anew takes the place of what was: it needs no end of its own.
    found = _endings(sentence, language)
    # “My cat Luna has died” names her, but no longer as somebody who is there.
    clauses = _clauses(_own_words(sentence, language), language)
    found += [
        (at, (key, value))
        for at, key, value in facts
        if not any(
            isinstance(each, Ending)
            and start <= at
            and not any(start < other <= at for other, _ in clauses)
            and ended_keys(each, {key: value})
            for start, each in found
        )
    ]
    stated = {each[0] for _, each in found if not isinstance(each, Ending)}
    return [
        each
        for _, each in sorted(found, key=lambda pair: pair[0])
        if not isinstance(each, Ending) or not stated.issuperset(each.keys)
    ]


def _taken_back(sentence: Sentence, language: Language) -> list[Ending]:
    """Endings of what was said last: “Scratch that”, “I meant Anna”."""
    text, patterns = sentence.text, language.patterns
    found: list[Ending] = []
    if sentence.is_question:
        return found
    for start in {
        at for clause in _clauses(text, language) for at in _starts(text, clause, language)
    }:
        if instead := patterns["replaces_last"].match(text, start):
            found.append(Ending(replacement=instead["new"]))
        elif patterns["takes_back"].match(text, start):
            found.append(Ending())
    return found


def _completed(sentence: Sentence, language: Language) -> Sentence:
    """The sentence with the words that it leaves out, such as a second “I”."""
    text = sentence.text
    for pattern, complete in language.completions:
        match = pattern.search(text)
        while match and len(text) < 2 * MAX_SENTENCE_CHARACTERS:
            end = match.end()
            if "before" not in match.groupdict() or _continues(text, match, language):
                whole = match.expand(complete)
                text = text[: match.start()] + whole + text[end:]
                end = match.start() + len(whole)
            match = pattern.search(text, end)
    return Sentence(text, sentence.is_question, sentence.quotations)


def _continues(text: str, match: re.Match[str], language: Language) -> bool:
    """Whether the clause before the match is about the user, so that what follows is too."""
    patterns = language.patterns
    clause = next(
        (
            (start, end)
            for start, end in reversed(_clauses(text, language))
            if start < match.start()
        ),
        (0, 0),
    )
    start = _clause_start(text, clause, language)
    if patterns["other_subject"].search(text, start, match.start()):
        return False
    is_denied = patterns["denied"].search(text, start, match.start())
    if is_denied and not match.groupdict().get("now"):
        return False
    # or it goes on as the one before does: “Ich heiße Anna, wohne in Kiel und …”
    return patterns["subject"].match(text, start) is not None


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


def _own_words(sentence: Sentence, language: Language) -> str:
    """Text after a colon is a quotation, unless the user announces own words."""
    before, colon, after = sentence.text.partition(": ")
    return after if colon and language.patterns["announces"].fullmatch(before) else before


def _facts(sentence: Sentence, language: Language, rules: Sequence[Rule]) -> list[Stated]:
    patterns, text = language.patterns, _own_words(sentence, language)
    if not patterns["first_person"].search(text):
        return []
    if patterns["reported"].search(patterns["confesses"].sub("", text)):
        return []
    if patterns["past"].search(text):
        return []
    clauses = _stated_clauses(text, sentence.is_question, language)
    end = clauses[-1][1] if clauses else 0
    over = [
        clauses[number - 1] if number and patterns["revokes"].fullmatch(text, *clause) else clause
        for number, clause in enumerate(clauses)
        if patterns["ended"].search(text, *clause)
    ]
    clauses = [clause for clause in clauses if clause not in over]
    found: list[Stated] = []
    for rule in rules:
        # Where to try the rule, and up to where a negation counts.
        if not rule.anywhere:
            places = [
                (start, clause[1])
                for clause in clauses
                for start in sorted({clause[0], _clause_start(text, clause, language)})
            ]
        else:
            places = [
                match.span()
                for match in rule.opening.finditer(text, 0, end)
                if not any(start <= match.start() < until for start, until in over)
            ]
        for place in places:
            found += (
                (place[0], key, value)
                for key, value, _ in _apply_rule(sentence, text, place, rule, language)
            )
    return found


def _endings(sentence: Sentence, language: Language) -> list[tuple[int, tuple[str, str] | Ending]]:
    """What the sentence says to hold no longer, and what instead, with the places where it does."""
    patterns, text = language.patterns, _own_words(sentence, language)
    found: list[tuple[int, tuple[str, str] | Ending]] = []
    for start in sorted(
        {at for clause in _clauses(text, language) for at in _starts(text, clause, language)}
    ):
        # “Can you forget that …?” asks for it; “Forget that …?” does not.
        if sentence.is_question and not patterns["requests"].match(text, start):
            continue
        found += ((start, ending) for ending in _withdrawn(sentence, text, start, language))
    if found or patterns["reported"].search(patterns["confesses"].sub("", text)):
        return found
    clauses = _stated_clauses(text, sentence.is_question, language)
    for number, clause in enumerate(clauses):
        if patterns["unsure"].search(text, *clause):
            continue
        for start in _starts(text, clause, language):
            found += (
                (start, each) for each in _denied(sentence, text, (start, clause[1]), language)
            )
            for rule in language.endings:
                found += (
                    (start, each)
                    for each in _ended_by(sentence, text, (start, clause[1]), rule, language)
                )
        found += (
            (clause[0], each)
            for each in _taken_from(sentence, text, clauses[: number + 1], language)
        )
    return found


def _taken_from(
    sentence: Sentence, text: str, clauses: Sequence[Clause], language: Language
) -> Iterator[Ending]:
    """What the last clause takes from the one before: “…, but not any more”, “…, not walnuts”."""
    if len(clauses) < 2:
        return
    before, last = clauses[-2:]
    revokes = language.patterns["revokes"].fullmatch(text, *last)
    excepts = language.patterns["excepts"].match(text, *last)
    if not revokes and not excepts:
        return
    for rule in language.rules:
        for start in _starts(text, before, language):
            for key, value, head in _apply_rule(
                sentence, text, (start, last[0]), rule, language, is_denial=True
            ):
                if revokes:
                    yield Ending((key,), value)
                elif excepts:
                    other = head + text[excepts.end() : last[1]]
                    denied = _apply_rule(
                        sentence, other, (0, len(other)), rule, language, is_denial=True
                    )
                    yield from (Ending((fact[0],), fact[1]) for fact in denied)


def _starts(text: str, clause: Clause, language: Language) -> list[int]:
    return sorted({clause[0], _clause_start(text, clause, language)})


def _withdrawn(sentence: Sentence, text: str, start: int, language: Language) -> Iterator[Ending]:
    """What the user asks to forget, or takes back in so many words."""
    patterns = language.patterns
    if patterns["temporary"].search(text, start):
        return
    facts: list[Stated] = []
    if match := patterns["withdraws"].match(text, start):
        said = next(filter(None, match.groups()), "")
        statement = _completed(Sentence(said, False, sentence.quotations), language)
        facts = _facts(statement, language, language.rules)
        facts = facts or _facts(statement, language, language.explicit)
        yield from (Ending((key,), value) for _, key, value in facts)
    match = patterns["withdraws_topic"].match(text, start)
    if match and not facts:
        topic = next(filter(None, match.groups()), "")
        yield from _of_topic(sentence.restored(topic), language)


def _of_topic(topic: str, language: Language) -> Iterator[Ending]:
    """Ending of what is known of a topic: “my job”, “the nut allergy”, “Rex”."""
    words = [_alias(word, language) for word in topic.split()]
    if keys := language.topics.get(words[-1]):
        yield Ending(tuple(keys.replace("{value}", "_".join(words[:-1]) or "*").split()))
        return
    try:
        key = fact_key(" ".join(words))
    except InvalidKey:
        return
    kinds = ("pet_", "family_", "favourite_", "opinion_of_", "language_", "allergy_to_")
    yield Ending((key, f"{key}_*", *(f"{kind}{key}" for kind in kinds)))
    yield Ending(("*",), topic)


def _denied(
    sentence: Sentence, text: str, place: Clause, language: Language
) -> Iterator[Ending | tuple[str, str]]:
    """Facts that a clause denies, such as “I no longer live in Kiel”."""
    patterns, (start, end) = language.patterns, place
    for pattern, means in language.denials:
        match = pattern.match(text, start)
        if match is None:
            continue
        end = max(end, match.end())
        rest = patterns["fades"].sub("", text[match.end() : end])
        statement = match.expand(means) + rest
        if patterns["partial"].search(rest):
            continue
        whole = (0, len(statement))
        for rule in language.rules:
            for key, value, head in _apply_rule(
                sentence, statement, whole, rule, language, is_denial=True
            ):
                right = patterns["contrasts"].search(text, match.end(), end + MAX_CONTRAST)
                other = patterns["corrects"].search(text, match.end(), end + MAX_CONTRAST)
                found = [
                    fact
                    for behind in (right, other)
                    if behind and behind.start() <= end
                    for instead in [head + text[behind.end() :]]
                    for fact in _apply_rule(sentence, instead, (0, len(instead)), rule, language)
                ]
                if right and right.start() <= end and found:
                    yield found[0][:2]
                # “…, it's Sam” is about the name only where Bob was known as the name.
                yield Ending((key,), value, found[0][1] if found else "")


def _ended_by(
    sentence: Sentence, text: str, place: Clause, rule: Rule, language: Language
) -> Iterator[Ending]:
    """Facts that end by something else: “I quit Orbion”, “my dog died”."""
    opening = rule.opening.match(text, place[0])
    if opening is None or rule.unless.search(text, opening.end(), place[1]):
        return
    groups = opening.groupdict(default="")
    is_casual = text == text.lower()

    def thing(given: str) -> str:
        values = ValueReader(given, language, is_casual=is_casual).read(rule.read)
        return sentence.restored(values[0]) if values else ""

    value = replacement = ""
    if rule.read:
        value = thing(groups.get("value") or text[opening.end() :])
        replacement = thing(groups["new"]) if groups.get("new") else ""
        if not value or (groups.get("new") and not replacement):
            return
    names = {name: _alias(word, language).replace(" ", "_") for name, word in groups.items()}
    names["value"] = "_".join(value.lower().split()) or "*"
    yield Ending(tuple(rule.key.format(**names).split()), value, replacement)


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
    sentence: Sentence,
    text: str,
    place: Clause,
    rule: Rule,
    language: Language,
    *,
    is_denial: bool = False,
) -> Iterator[tuple[str, str, str]]:
    """Keys and values that the rule reads at the place, and the text before the value."""
    opening = rule.opening.match(text, place[0])
    if opening is None:
        return
    if not is_denial and (
        rule.unless.search(text, opening.end())
        or language.patterns["denied"].search(text, opening.end(), place[1])
    ):
        return
    groups = opening.groupdict(default="")
    given = groups.pop("value", text[opening.end() :])
    head = text[
        place[0] : opening.start("value") if "value" in opening.groupdict() else opening.end()
    ]
    for value in ValueReader(given, language, is_casual=text == text.lower()).read(rule.read):
        if not sentence.restored(value).strip():
            continue  # a quotation mark with nothing behind it
        names = {name: _alias(word, language) for name, word in groups.items()}
        names["value"] = value
        names["alias"] = _alias(value, language)
        # The same for both orders, so that a change of preference supersedes the old one.
        names["pair"] = " or ".join(sorted((value.lower(), groups.get("other", "").lower())))
        said = " ".join(sentence.restored(rule.value.format(**names)).split())
        try:
            yield fact_key(sentence.restored(rule.key.format(**names))), said, head
        except InvalidKey:
            continue


def _alias(word: str, language: Language) -> str:
    return language.aliases.get(word.lower().strip(), word.lower().strip())
