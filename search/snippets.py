"""Snippets: sentence spans, query-term highlights (PostgreSQL's stemmers and CJK runs), nearest
sentence. Begin with `make_snippet`.
"""

import hashlib
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from django.core.cache import caches

from common.logs import with_log_context
from common.replicas import read_connection
from common.search_vector import IN_NAME_SQL
from common.text import (
    BURMESE,
    CJK,
    CJK_MARKS,
    EMOJI,
    HANGUL,
    KHMER,
    LAO,
    THAI,
    cached_pattern,
    has_unspaced_script,
    may_combine,
    single_characters,
)
from documents.embedders import embed_question, embedder_for
from documents.models import EmbeddingSpace
from inference.interfaces import Embedder, InferenceError
from search.query import Query
from search.results import Passage, Snippet

#: A line may end within a word of all these scripts but Hangul.
_LINE_END = rf"(?<![{HANGUL}])[ \t]*\n[ \t]*(?=[{CJK}])(?![{HANGUL}])"
_RUN = f"[{CJK}{CJK_MARKS}]+(?:{_LINE_END}[{CJK}{CJK_MARKS}]+)*"
_UNIT = f"[{CJK}][{CJK_MARKS}]*"
#: Scripts in which a pair of characters is less than a word, or may be a particle.
_LONG_WORDS = f"[{HANGUL}{THAI}{LAO}{KHMER}{BURMESE}]"
#: Hiragana, and the commonest function words of Chinese: what joins words and is none itself.
_CHINESE_GLUE = "的了是在和与與及也就都而着著之个個这這那哪吗嗎呢什么麼"
_GLUE = re.compile(rf"[\u3041-\u309f{_CHINESE_GLUE}]")
_ONLY_GLUE = re.compile(f"[{_CHINESE_GLUE}]+")
#: Other forms of one character for one character, so that offsets stay.
_FOLDED = {
    code: folded
    for block in (range(0x2E80, 0x2FE0), range(0xF900, 0xFB00), range(0xFF01, 0xFFDD))
    for code in block
    if len(folded := unicodedata.normalize("NFKC", chr(code))) == 1
}

Span = tuple[int, int]


def cjk_matches(query: str, text: str) -> list[Span]:
    """(start, end) offsets into `text` of what `query` matches in CJK and similar scripts, in
    order, not nested. Pure.

    A shared run counts from two characters, or three in scripts with longer words; a character
    alone in the query matches anywhere. Bigrams as PostgreSQL matches them would highlight too
    much.
    """
    if not has_unspaced_script(query):
        return []
    wanted = _QueryPairs(query)
    folded = text.translate(_FOLDED)
    return [span for run in cached_pattern(_RUN).finditer(folded) for span in wanted.within(run)]


class _QueryPairs:
    """Character pairs of a query, and which of them begin a run."""

    def __init__(self, query: str) -> None:
        runs = [
            cached_pattern(_UNIT).findall(run)
            for run in cached_pattern(_RUN).findall(query.translate(_FOLDED))
        ]
        self.alone = set(single_characters(query))
        self.pairs = {pair for run in runs for pair in pairwise(run)}
        self.first = {(run[0], run[1]) for run in runs if len(run) > 1}

    def within(self, run: re.Match[str]) -> Iterator[Span]:
        """Matching spans of a run, longest first."""
        units = list(cached_pattern(_UNIT).finditer(run.string, *run.span()))
        characters = [unit[0] for unit in units]
        position = 0
        while position < len(characters):
            end = position + 1
            while end < len(characters) and (characters[end - 1], characters[end]) in self.pairs:
                end += 1
            span = self._span_to_mark(characters, position, end)
            if span:
                yield units[span[0]].start(), units[span[1] - 1].end()
            position = end

    def _span_to_mark(self, characters: list[str], start: int, end: int) -> Span | None:
        """The part of the shared characters worth highlighting."""
        if end - start == 1:
            return (start, end) if characters[start] in self.alone else None
        shared = "".join(characters[start:end])
        if _ONLY_GLUE.fullmatch(shared):
            return None
        if end - start == 2:
            begins = (characters[start], characters[start + 1]) in self.first
            return (
                (start, end)
                if begins
                or not (cached_pattern(_LONG_WORDS).search(shared) or _GLUE.search(shared))
                else None
            )
        # Without particles at the ends, if two characters are left.
        first, last = start, end
        while first < last and _GLUE.match(characters[first]):
            first += 1
        while last > first and _GLUE.match(characters[last - 1]):
            last -= 1
        return (first, last) if last - first > 1 else (start, end)


#: What has parts, or is written in several ways: AB-1234, get_user_by_id, getUserById, C++, emoji.
#: It begins where a word does, or a run of n letters would take n² steps.
_IDENTIFIER = (
    rf"[{EMOJI}]|(?<![^\W_])(?:[^\W_]+(?:[-_./&,][^\W_]+)+|[^\W_]+(?:\+\+|\#)"
    r"|[^\W_]*(?:[^\W\d_][A-Z]|[^\W\d_]\d)[^\W_]*)"
)
_IDENTIFIER_PART = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+")
_PUNCTUATION = re.compile(r"[-_./&,]")
#: Digits above and below the line, as in CO₂ and m².
_SMALL_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")


def identifier_matches(query: str, text: str) -> list[Span]:
    """(start, end) offsets into `text` of identifiers that `query` has, in whatever notation, or of
    the parts of them that are words of the query. Pure."""
    query, text = query.translate(_SMALL_DIGITS), text.translate(_SMALL_DIGITS)
    written = [word.casefold() for word in query.split()]
    words = {_PUNCTUATION.sub("", word) for word in written}
    identifiers = " ".join(word for word in query.split() if not word[0].isdigit())
    parts = (part[0].casefold() for part in _IDENTIFIER_PART.finditer(identifiers))
    pieces = {*words, *(part for part in parts if len(part) > 1)}
    # 3.11 of 3.11.4, v4 or 4.0 of v4.0.0-rc1
    versions = tuple(f"{word.removeprefix('v')}{end}" for word in written for end in ".-")
    spans: list[Span] = []
    for identifier in cached_pattern(_IDENTIFIER).finditer(text):
        lowered = identifier[0].casefold()
        if _PUNCTUATION.sub("", lowered) in words or (
            lowered.removeprefix("v")[0].isdigit()
            and lowered.removeprefix("v").startswith(versions)
        ):
            spans.append(identifier.span())
        else:
            spans += [
                part.span()
                for part in _IDENTIFIER_PART.finditer(text, *identifier.span())
                if part[0].casefold() in pieces
            ]
    return spans


#: About three lines of a result; half as many wide characters, such as Chinese ones.
WINDOW_CHARACTERS = 320
#: A shorter sentence is joined with the next one.
MIN_SENTENCE_CHARACTERS = 30

_CLOSING = r"[\"'”’)\]»*_」』）】]*"
_ENDED = rf"[.!?…]{_CLOSING}\s+|[。！？｡]+{_CLOSING}\s*"
_SENTENCE_START = re.compile(rf"(?:^|{_ENDED}|\n\s*)(?=\S)")
_SENTENCE_END = re.compile(rf"(?<!\b[A-Z])(?:{_ENDED})(?![a-zà-ÿ])|\n\s*\n\s*")
#: No character before these is a wide one: https://www.unicode.org/reports/tr11/
_MAY_BE_WIDE = re.compile(r"[\u1100-\U0010ffff]")
_SPACE = re.compile(r"\s")
_UNSPACED = re.compile(f"[{CJK}]")
_PAUSES = "。！？｡、，；：,;:"
#: Most characters by which a cut moves to a word boundary.
_MAX_CUT_SHIFT = 40

Spans = Sequence[Span]


def parse_marked(marked: str, *, start: str, stop: str) -> list[Span]:
    """Offsets, into the text without markers, of the parts between `start` and `stop`.

    Markers are single characters that occur nowhere else in the text.
    """
    spans: list[Span] = []
    before, *pieces = marked.split(start)
    position = len(before)
    for piece in pieces:
        inside, closed, after = piece.partition(stop)
        spans += [(position, position + len(inside))] if closed else []
        position += len(inside) + len(after)
    return spans


def make_snippet(
    text: str, highlights: Spans, *, window: int = WINDOW_CHARACTERS, focus: Span | None = None
) -> Snippet:
    """The window with most distinct highlighted words, then with most highlights.

    Without highlights (a hit of the vector arm only) it is at the sentence `focus`, or the
    beginning. It starts at a sentence if one is near, and never cuts a word or grapheme.
    """
    start, end = _best_window(text, highlights, window_length(text, window), focus)
    start, end = _trimmed(text, start, end)
    inside = tuple(
        (first - start, last - start)
        for first, last in highlights
        if start <= first and last <= end
    )
    return Snippet(
        text=text[start:end],
        start=start,
        highlights=inside,
        cut_before=bool(text[:start].strip()),
        cut_after=bool(text[end:].strip()),
    )


def needs_focus(text: str, highlights: Spans, *, window: int = WINDOW_CHARACTERS) -> bool:
    """Whether `make_snippet` would use a `focus`."""
    return not highlights and len(text) > window_length(text, window)


def window_length(text: str, window: int = WINDOW_CHARACTERS) -> int:
    """Number of characters of `text` that fill the same lines as `window` narrow ones."""
    sample = text[:window]
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in _MAY_BE_WIDE.findall(sample))
    return window // 2 if wide * 2 > len(sample) else window


def sentences(text: str, *, longest: int = WINDOW_CHARACTERS) -> list[Span]:
    """(start, end) of the sentences of `text`, in order, without surrounding white space.

    Short ones are joined, longer ones than `longest` characters cut; half of that for wide
    characters.
    """
    longest, usual = window_length(text, longest), longest
    shortest = MIN_SENTENCE_CHARACTERS * longest // usual
    found: list[Span] = []
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        first, last = _trimmed(text, start, end)
        if last - first >= shortest or (end == len(text) and last > first):
            start = end
            while last - first > longest:
                cut = _cut_before(text, first, first + longest)
                found.append(_trimmed(text, first, cut))
                first = cut
            first, last = _trimmed(text, first, last)
            if last > first:
                found.append((first, last))
    return found


def _best_window(text: str, highlights: Spans, window: int, focus: Span | None) -> Span:
    if len(text) <= window:
        return 0, len(text)
    best, best_start = (0, 0), 0
    for index, (first, _) in enumerate(highlights):
        # Start of the sentence around `first`, if room is left for what follows.
        earliest = max(0, first - window // 3)
        starts = [match.end() for match in _SENTENCE_START.finditer(text, earliest, first + 1)]
        start = starts[-1] if starts else max(0, first - window // 6)
        inside = [span for span in highlights[index:] if span[1] <= start + window]
        words = {text[a:b].casefold() for a, b in inside}
        if (len(words), len(inside)) > best:
            best, best_start = (len(words), len(inside)), start
    if focus and not highlights:
        # An earlier sentence where the text would end too early.
        earliest = max(0, min(focus[0], len(text) - window))
        starts = [match.end() for match in _SENTENCE_START.finditer(text, earliest, focus[0] + 1)]
        best_start = min([*starts, focus[0]])
    # The first valid cut from there.
    start = best_start
    if start > 0 and _inside_word(text, start):
        space = _SPACE.search(text, start, min(len(text), start + _MAX_CUT_SHIFT))
        start = space.end() if space else start
    places = range(start, min(len(text), start + _MAX_CUT_SHIFT))
    start = next((place for place in places if not _inside_character(text, place)), start)
    return start, _cut_before(text, start, min(len(text), start + window))


def _cut_before(text: str, start: int, end: int) -> int:
    """Last valid cut position up to `end`, after `start`."""
    if end >= len(text):
        return len(text)
    if _inside_word(text, end) or _UNSPACED.match(text, end):
        nearest = range(end, max(start, end - _MAX_CUT_SHIFT), -1)
        end = next(
            (place for place in nearest if text[place].isspace() or text[place - 1] in _PAUSES), end
        )
    places = range(end, max(start, end - _MAX_CUT_SHIFT), -1)
    return next((place for place in places if not _inside_character(text, place)), end)


def _inside_character(text: str, place: int) -> bool:
    """Whether a cut at `place` would split a grapheme."""
    return 0 < place < len(text) and may_combine(text[place - 1], text[place])


def _inside_word(text: str, place: int) -> bool:
    """Whether a cut at `place` would split a word of a script with spaces."""
    before, after = text[place - 1], text[place]
    return not (
        before.isspace() or after.isspace() or _UNSPACED.match(before) or _UNSPACED.match(after)
    )


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


#: Private-use characters that no parser keeps in a text of its own.
START, STOP = "\ue000", "\ue001"

#: Full-width letters and digits, and their half-width forms.
_FULL_WIDTH = "".join(
    map(chr, (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)))
)
_HALF_WIDTH = unicodedata.normalize("NFKC", _FULL_WIDTH)

# `<` and `>` become spaces of the same length, because ts_headline drops what looks like a tag
# and would shift every offset behind it. `translate` is slow with many characters. Without
# OFFSET each query would be put together twice.
_HIGHLIGHT_SQL = """
    SELECT chunk.id,
           ts_headline(chunk.language,
                       translate(regexp_replace(spaced.text, %(in_name)s, ' ', 'g'),
                                 %(plain)s, %(blank)s),
                       meant.query,
                       format('HighlightAll=true, StartSel=%%s, StopSel=%%s',
                              %(start)s::text, %(stop)s::text)),
           chunk.text
    FROM documents_chunk AS chunk,
         LATERAL (SELECT words, tsvector_to_array(words)
                                || ragsite_forms(chunk.language, %(text)s, words) AS forms
                  FROM to_tsvector(chunk.language, ragsite_words(%(text)s)) AS words OFFSET 0)
             AS asked,
         LATERAL (SELECT regexp_replace(
                             CASE WHEN chunk.text ~ %(any_wide)s
                                  THEN translate(chunk.text, %(wide)s, %(usual)s)
                                  ELSE chunk.text END,
                             %(letters)s, ' ', 'g') AS text) AS spaced,
         LATERAL (SELECT (SELECT string_agg(quoted, ' | ')::tsquery
                          FROM (SELECT '''' || replace(replace(word, '\\', '\\\\'), '''', '''''')
                                       || '''' AS quoted
                                FROM (SELECT unnest(tsvector_to_array(asked.words)) AS word
                                      UNION ALL
                                      -- words of the text with a form in common with the query's
                                      SELECT lexeme FROM unnest(chunk.search_vector)
                                      WHERE octet_length(lexeme) > length(lexeme)
                                        AND ragsite_forms(chunk.language, lexeme, '') && asked.forms
                                      UNION ALL SELECT unnest(asked.forms)) AS words
                                UNION ALL
                                SELECT to_tsquery(chunk.language, prefix || ':*')::text
                                FROM unnest(%(prefixes)s::text[]) AS prefix) AS words
                          WHERE quoted <> '') AS query OFFSET 0) AS meant
    WHERE chunk.id = ANY(%(ids)s) AND meant.query IS NOT NULL
"""


def highlights(query: Query, chunk_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """(start, end) offsets into each chunk's text of the words that match the query,
    by PostgreSQL's stemming.
    """
    parameters: dict[str, Any] = {
        "text": query.text,
        "in_name": IN_NAME_SQL,
        "letters": f"[{CJK}{CJK_MARKS}]",
        "any_wide": f"[{_FULL_WIDTH}]",
        "wide": _FULL_WIDTH,
        "usual": _HALF_WIDTH,
        "prefixes": list(query.prefixes),
        "ids": list(chunk_ids),
        "start": START,
        "stop": STOP,
        "plain": "<>" + START + STOP,
        "blank": "    ",
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_HIGHLIGHT_SQL, parameters)
        return {
            chunk_id: _disjoint(
                [
                    *parse_marked(marked, start=START, stop=STOP),
                    *cjk_matches(query.text, text),
                    *identifier_matches(query.text, text),
                ]
            )
            for chunk_id, marked, text in cursor.fetchall()
        }


def _disjoint(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, without those that begin within another."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return found


logger = logging.getLogger(__name__)

#: What is embedded is bounded by the number of sentences and not by elapsed time, so that a page
#: shows the same snippets however busy the machine is. 16 take 40 ms with all-MiniLM-L6-v2 on two
#: cores.
MAX_SENTENCES = 16
MAX_CHARACTERS = 2000
#: Of all texts of a page together; the texts that are ranked below show their beginnings.
MAX_PAGE_SENTENCES = 48
#: Seconds after which a model counts as failed. Far above what a busy machine needs.
MODEL_TIMEOUT = 5.0
CACHE_SECONDS = 24 * 60 * 60

_threads = ThreadPoolExecutor(2, thread_name_prefix="sentences")


def snippet_focuses(
    query: str,
    chunks: Sequence[Passage],
    marked: Mapping[int, Spans],
    *,
    spaces: Sequence[EmbeddingSpace],
) -> dict[int, Span]:
    """By chunk id, the sentence that `make_snippet` shows of chunks without highlights.

    `chunks` are a page's, best first; each is compared with the model of its own space.
    """
    wanted = [chunk for chunk in chunks if needs_focus(chunk.text, marked.get(chunk.pk, ()))]
    found: dict[int, Span] = {}
    for space in spaces:
        own = [chunk for chunk in wanted if chunk.space_id == space.pk]
        spans = nearest_sentences(query, space, [chunk.text for chunk in own])
        found |= {chunk.pk: span for chunk, span in zip(own, spans, strict=True) if span}
    return found


def nearest_sentences(query: str, space: EmbeddingSpace, texts: Sequence[str]) -> list[Span | None]:
    """(start, end) of the sentence of each text that is nearest to `query` in `space`.

    Most important texts first. None where time ran out, the text is empty, or the model failed:
    never raises for failures of a model or cache.
    """
    if not texts:
        return []
    try:
        embedder = embedder_for(space)
        name = f"{embedder.model_name}\0{embedder.dimensions}\0{space.query_instruction}"
        cuts: dict[str, tuple[str, list[Span]]] = {}
        keys, count = [], 0
        for text in texts:
            spans = [span for span in sentences(text)[:MAX_SENTENCES] if span[1] <= MAX_CHARACTERS]
            count += len(spans)
            if count > MAX_PAGE_SENTENCES:
                break
            # Cache key; the length keeps different queries and texts apart.
            content = f"{name}\0{len(query)}\0{query}{text}"
            key = "sentence:" + hashlib.sha256(content.encode(errors="replace")).hexdigest()
            keys.append(key)
            cuts[key] = text, spans
        known: dict[str, Span] = {}
        try:
            stored = caches["default"].get_many(keys)
        except Exception as error:  # each cache backend has errors of its own
            logger.warning("cache of sentences cannot be read, choosing without it: %s", error)
        else:
            known = {key: tuple(s) for key, s in stored.items() if tuple(s) in cuts[key][1]}
        wanted = {key: cut for key, cut in cuts.items() if key not in known and cut[1]}
        if wanted:
            work = _threads.submit(with_log_context(_choose), query, space, embedder, wanted)
            try:
                known |= work.result(timeout=MODEL_TIMEOUT)
            except TimeoutError:
                work.cancel()
                logger.warning("the model hangs, snippets show beginnings")
    except InferenceError as error:
        logger.warning("no sentence is nearest, snippets show beginnings: %s", error)
        return [None] * len(texts)
    return [known.get(key) for key in keys] + [None] * (len(texts) - len(keys))


def _choose(
    query: str,
    space: EmbeddingSpace,
    embedder: Embedder,
    cuts: Mapping[str, tuple[str, Sequence[Span]]],
) -> dict[str, Span]:
    """The sentence of each text that is nearest to the query, by cache key."""
    asked = embed_question(space, query)
    chosen = {}
    for key, (text, spans) in cuts.items():
        vectors = embedder.embed_documents([text[start:end] for start, end in spans])
        chosen[key] = spans[int(np.argmax(vectors @ asked))]
    try:
        caches["default"].set_many(chosen, timeout=CACHE_SECONDS)
    except Exception as error:
        logger.warning("cache of sentences cannot be written: %s", error)
    return chosen
