"""Facts that a user states of himself in so many words, found by rules. Precision before recall:
what is asked, denied, supposed, past, quoted or told of others is no fact. Longer
sentences about the user are kept as they were said, too."""

from collections.abc import Iterator, Sequence

from memory.extraction.found import Found, FoundContext, FoundFact, Said
from memory.extraction.languages import LANGUAGES
from memory.extraction.languages.table import Language, Rule
from memory.extraction.sentences import Sentence, sentences
from memory.extraction.values import Rest, read
from memory.keys import InvalidKey, fact_key

#: How it is called where people see who extracted something.
NAME = "rules"
#: A shorter sentence tells nothing that is worth a context.
FEWEST_WORDS = 5
#: A sentence with more breaks than this is a list.
MOST_CLAUSES = 20

Clause = tuple[int, int]


def found_by_rules(messages: Sequence[Said]) -> Found:
    """What the user says of himself in these messages, which are in the order of saying."""
    facts: list[FoundFact] = []
    contexts: list[FoundContext] = []
    for number, said in enumerate(messages):
        spoken = sentences(said.text)
        for language in LANGUAGES:
            if any(_is_task(sentence, language) for sentence in spoken):
                break
        else:
            told = []
            for sentence in spoken:
                known = len(contexts)
                _read_sentence(sentence, number, facts, contexts)
                if len(contexts) == known and _is_of_oneself(sentence):
                    told.append(sentence.restored(sentence.text))
            if told:
                contexts.append(FoundContext(". ".join(told), "", number))
    return Found(tuple(_each_once(facts)), tuple(dict.fromkeys(contexts)))


def _is_task(sentence: Sentence, language: Language) -> bool:
    return any(
        language.tasks.match(sentence.text, _start(sentence.text, clause, language))
        for clause in _clauses(sentence.text, language)
    )


def _read_sentence(
    sentence: Sentence, number: int, facts: list[FoundFact], contexts: list[FoundContext]
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
                contexts.append(FoundContext(text, "", number))
        facts += (FoundFact(key, value, number) for key, value in found)


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


def _each_once(facts: Sequence[FoundFact]) -> Iterator[FoundFact]:
    """Without those that say what is known already."""
    known: dict[str, str] = {}
    for fact in facts:
        if known.get(fact.key) != fact.value:
            known[fact.key] = fact.value
            yield fact


def _facts(sentence: Sentence, language: Language, rules: Sequence[Rule]) -> list[tuple[str, str]]:
    text = _after_announcement(sentence.text, language)
    if not language.first_person.search(text):
        return []
    if language.reported.search(text) or language.past.search(text):
        return []
    clauses = _stated(text, sentence.is_question, language)
    found: list[tuple[str, str]] = []
    for rule in rules:
        for place in _places(text, clauses, rule, language):
            found += _by_rule(sentence, text, place, rule, language)
    return found


def _after_announcement(text: str, language: Language) -> str:
    """What follows a colon is somebody else's, unless the user announces something."""
    before, colon, after = text.partition(": ")
    return after if colon and language.announces.fullmatch(before) else before


def _clauses(text: str, language: Language) -> list[Clause]:
    starts = [0, *(match.end() for match in language.joins.finditer(text))]
    ends = [*(match.start() for match in language.joins.finditer(text)), len(text)]
    return list(zip(starts, ends, strict=True))[:MOST_CLAUSES]


def _stated(text: str, is_question: bool, language: Language) -> list[Clause]:
    """The clauses that say that something is so."""
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


def _start(text: str, clause: Clause, language: Language) -> int:
    """Where what the clause says begins."""
    match = language.fillers.match(text, *clause)
    return match.end() if match else clause[0]


def _places(
    text: str, clauses: Sequence[Clause], rule: Rule, language: Language
) -> Iterator[Clause]:
    """Where the rule is to be tried, and until where a denial counts."""
    if rule.anywhere and clauses:
        found = rule.pattern.finditer(text, 0, clauses[-1][1])
        yield from ((match.start(), match.end()) for match in found)
    elif not rule.anywhere:
        for clause in clauses:
            starts = {clause[0], _start(text, clause, language)}
            yield from ((start, clause[1]) for start in sorted(starts))


def _by_rule(
    sentence: Sentence, text: str, place: Clause, rule: Rule, language: Language
) -> Iterator[tuple[str, str]]:
    opening = rule.pattern.match(text, place[0])
    if opening is None or rule.exception.search(text, opening.end()):
        return
    if language.denied.search(text, opening.end(), place[1]):
        return
    groups = opening.groupdict(default="")
    given = groups.pop("value", text[opening.end() :])
    for value in read(rule.read, Rest(given, language, text == text.lower())):
        names = {name: _alias(word, language) for name, word in groups.items()}
        names["value"] = value
        names["alias"] = _alias(value, language)
        names["pair"] = _pair(value, groups.get("other", ""))
        said = " ".join(sentence.restored(rule.value.format(**names)).split())
        try:
            yield fact_key(sentence.restored(rule.key.format(**names))), said
        except InvalidKey:
            continue


def _alias(word: str, language: Language) -> str:
    return language.aliases.get(word.lower().strip(), word.lower().strip())


def _pair(value: str, other: str) -> str:
    """The same for both, whichever is preferred: a change of mind supersedes."""
    return " or ".join(sorted((value.lower(), other.lower())))
