"""Where a quotation stands on the pages of its document: `place_quotation` gives boxes around the
very words, or nothing where the place is not certain."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

#: Text, x0, y0, x1, y1: fractions of the width and height of the page from its top left corner.
Word = tuple[str, float, float, float, float]

#: Letters and digits before and behind a quotation that tell its place from others.
CONTEXT = 300
#: By how many of them the best of several places must be better than the next.
MARGIN = 8
#: A shorter match must be of whole words of the page.
SHORT = 12
#: More places are not compared.
MAX_PLACES = 50
#: Less of a quotation on the page may be there by chance.
LEAST_PLACED = 0.6
#: Heights of a line; a wider gap is between columns. (Widths are fractions of the page's.)
GAP = 1.5
_LINK_TARGET = re.compile(r"(?<=\]\()[^)\s]*(?=\))|<!--.*?-->", re.S)
#: From here on, scripts are written without spaces: a word may be a whole line.
_FIRST_IDEOGRAPH = "\u2e80"


@dataclass(frozen=True, slots=True)
class Mark:
    """A box around words of one line, and whether one of the searched words is in it alone."""

    x0: float
    y0: float
    x1: float
    y1: float
    is_found: bool = False


class _NormalizedText:
    """The letters and digits of a text, without case, accents and ligatures; `origin` is the index
    of the character, or of the word, that each is from."""

    __slots__ = ("key", "origin")

    def __init__(self, pieces: Iterator[tuple[int, str]]) -> None:
        letters: list[str] = []
        self.origin: list[int] = []
        for index, piece in pieces:
            for letter in _plain(piece):
                if letter.isalnum():
                    letters.append(letter)
                    self.origin.append(index)
        self.key = "".join(letters)


@dataclass(frozen=True, slots=True)
class _Stream:
    """Words of the pages one after the other in one order. `word_at` is that of each letter, and -1
    of the breaks between pages, which are line feeds."""

    key: str
    word_at: list[int]


def place_quotation(
    text: str, start: int, end: int, pages: Mapping[int, Sequence[Word]], found: frozenset[str]
) -> dict[int, list[Mark]]:
    """Boxes by page around `text[start:end]`.

    `text` is what was read on the pages and around them, `pages` their words in any order. `found`
    are words that a search found, in lower case, which get boxes of their own. Empty where less
    than LEAST_PLACED of the quotation has one place alone.
    """
    words = [(page, word) for page, listed in sorted(pages.items()) for word in listed]
    covered, share = _covered_words(text, start, end, words)
    if share < LEAST_PLACED:
        return {}
    marks: dict[int, list[Mark]] = {}
    for page in sorted(pages):
        boxes = [
            (index, *_part(words[index][1], *part))
            for index, part in sorted(covered.items())
            if words[index][0] == page
        ]
        if boxes:
            marks[page] = [*_merged(boxes), *_found_words(boxes, words, found)]
    return marks


def _covered_words(
    text: str, start: int, end: int, words: Sequence[tuple[int, Word]]
) -> tuple[dict[int, tuple[int, int, int]], float]:
    """By the index of a word: the first letter in the quotation, the one behind the last, and how
    many it has. And the part of the quotation that is placed."""
    masked = _LINK_TARGET.sub(lambda match: " " * len(match[0]), text)
    source = _NormalizedText(iter(enumerate(masked)))
    first = bisect_right(source.origin, start - 1)
    last = bisect_right(source.origin, end - 1)
    if last == first:
        return {}, 0.0
    streams = [_stream(words, order) for order in _orders(words)]
    #: Letters of each word in a stream: from which on, and how many.
    placed: dict[int, list[int]] = {}
    at, done, longest = first, 0, 0
    while at < last:
        length, letters = _longest_certain(source.key, at, last, streams)
        if letters:
            for index, position in letters:
                placed.setdefault(index, []).append(position)
            done += length
            longest = max(longest, length)
            at += length
        else:
            at = _next_word(source, masked, at)
    # Words here and there may be on the page by chance; a run of them is not.
    if longest < min(2 * SHORT, (last - first) / 2):
        return {}, 0.0
    sizes = {index: sum(map(str.isalnum, _plain(words[index][1][0]))) for index in placed}
    return {
        index: (min(positions), max(positions) + 1, sizes[index])
        for index, positions in placed.items()
    }, done / (last - first)


def _longest_certain(
    key: str, at: int, last: int, streams: Sequence[_Stream]
) -> tuple[int, list[tuple[int, int]]]:
    """The longest match of the quotation's letters from `at` on whose place is certain: its length
    and the words with the position of each letter in them. Orders that disagree make it unsure."""
    length, found = 0, []
    longest = [_longest(key, at, last, stream.key) for stream in streams]
    for most, stream in zip(longest, streams, strict=True):
        wanted = most
        while wanted >= max(length, 1):
            place = _certain_place(key, at, wanted, stream)
            letters = (
                []
                if place is None
                else _complete_words(stream, place, wanted, key[at : at + wanted])
            )
            if letters and len(letters) >= length:
                here = [(index, position) for index, position, _ in letters]
                if len(letters) > length:
                    length, found = len(letters), here
                elif here != found:
                    found = []
            if letters or wanted < 2 * SHORT:
                break
            wanted //= 2
    # A part that others do not hold may be there by chance.
    if length < min(2 * SHORT, last - at) and length < max(longest):
        return 0, []
    return (length, found) if found else (0, [])


def _longest(key: str, at: int, last: int, pages: str) -> int:
    """How many letters from `at` on are anywhere in `pages` as they follow."""
    low, high = 0, last - at
    step = 16
    while low < high:
        probe = min(low + step, high)
        if key[at : at + probe] in pages:
            low, step = probe, step * 2
        else:
            high, step = probe - 1, max(step // 4, 1)
    return low


def _certain_place(key: str, at: int, length: int, stream: _Stream) -> int | None:
    """Where the letters are in the stream: the one place, or the one whose surroundings are those
    of the quotation."""
    part = key[at : at + length]
    there, here = _places(part, stream.key), _places(part, key)
    if not there or not here:
        return None
    if len(there) == len(here) == 1:
        return there[0]

    def context_overlap(mine: int, place: int) -> int:
        behind_mine, behind = mine + length, place + length
        return _common(
            key[behind_mine : behind_mine + CONTEXT], stream.key[behind : behind + CONTEXT]
        ) + _common(
            key[max(mine - CONTEXT, 0) : mine][::-1],
            stream.key[max(place - CONTEXT, 0) : place][::-1],
        )

    scores = sorted(((context_overlap(at, place), place) for place in there), reverse=True)
    best, place = scores[0]
    if len(scores) > 1 and best < scores[1][0] + MARGIN:
        return None
    # Another quotation of the same words may suit that place better.
    rivals = (context_overlap(mine, place) for mine in here if mine != at)
    return place if best >= max(rivals, default=-MARGIN) + MARGIN else None


def _places(part: str, key: str) -> list[int]:
    """Where `part` is in `key`; empty if at more than MAX_PLACES."""
    places: list[int] = []
    at = key.find(part)
    while at >= 0:
        if len(places) == MAX_PLACES:
            return []
        places.append(at)
        at = key.find(part, at + 1)
    return places


def _common(first: str, second: str) -> int:
    """How many letters two texts begin with together."""
    count = 0
    for mine, other in zip(first, second, strict=False):
        if mine != other or mine == "\n":
            break
        count += 1
    return count


def _complete_words(
    stream: _Stream, place: int, length: int, part: str
) -> list[tuple[int, int, int]]:
    """Word, position in it and number of letters so far, for each letter of a match; without those
    of a last word of which there is only a part, and nothing of a short match within words."""
    word_at = stream.word_at
    end = place + length
    starts_inside = place > 0 and word_at[place - 1] == word_at[place]
    ends_inside = end < len(word_at) and word_at[end - 1] == word_at[end]
    is_spaced = max(part) < _FIRST_IDEOGRAPH
    if is_spaced and length < SHORT and (starts_inside or ends_inside):
        return []
    if is_spaced and ends_inside:
        cut = word_at[end - 1]
        while end > place and word_at[end - 1] == cut:
            end -= 1
    letters: list[tuple[int, int, int]] = []
    for at in range(place, end):
        begin = at
        while begin > 0 and word_at[begin - 1] == word_at[at]:
            begin -= 1
        letters.append((word_at[at], at - begin, at - place + 1))
    return letters


def _next_word(source: _NormalizedText, text: str, at: int) -> int:
    """The letter that begins the next word of the text."""
    at += 1
    while at < len(source.origin) and source.origin[at] <= source.origin[at - 1] + 1:
        if not text[source.origin[at] - 1].isalnum():
            break
        if text[source.origin[at]] >= _FIRST_IDEOGRAPH:
            break
        at += 1
    return at


def _orders(words: Sequence[tuple[int, Word]]) -> list[list[int]]:
    """The words as the file has them, line by line over the whole width, as rows of tables are
    read, and column by column."""
    lines: list[list[int]] = []
    bottom, page = -1.0, -1
    for index in sorted(
        range(len(words)),
        key=lambda each: (words[each][0], (words[each][1][2] + words[each][1][4]) / 2),
    ):
        number, (_, _, y0, _, y1) = words[index]
        middle = (y0 + y1) / 2
        if not lines or number != page or middle > bottom:
            lines.append([])
            bottom, page = (middle + y1) / 2, number
        lines[-1].append(index)
    for line in lines:
        line.sort(key=lambda each: words[each][1][1])
    orders = [
        list(range(len(words))),
        [index for line in lines for index in line],
        [index for column in _columns(words, lines) for index in column],
    ]
    return [order for at, order in enumerate(orders) if order not in orders[:at]]


def _columns(words: Sequence[tuple[int, Word]], lines: Sequence[list[int]]) -> list[list[int]]:
    """Parts of lines between wide gaps, each under the part above it that it shares most of its
    width with."""
    columns: list[list[int]] = []
    open_columns: list[tuple[list[int], float, float]] = []
    page = -1
    for line in lines:
        if words[line[0]][0] != page:
            page, open_columns = words[line[0]][0], []
        parts: list[list[int]] = []
        for index in line:
            _, x0, y0, _, y1 = words[index][1]
            if not parts or x0 - words[parts[-1][-1]][1][3] > GAP * (y1 - y0):
                parts.append([])
            parts[-1].append(index)
        for part in parts:
            left, right = words[part[0]][1][1], max(words[each][1][3] for each in part)
            shared = [min(right, end) - max(left, begin) for _, begin, end in open_columns]
            best = max(shared, default=0.0)
            if best > (right - left) / 2:
                at = shared.index(best)
                column, begin, end = open_columns[at]
                column += part
                open_columns[at] = (column, min(left, begin), max(right, end))
            else:
                columns.append(list(part))
                open_columns.append((columns[-1], left, right))
    return columns


def _stream(words: Sequence[tuple[int, Word]], order: Sequence[int]) -> _Stream:
    letters = _NormalizedText((index, words[index][1][0]) for index in order)
    key: list[str] = []
    word_at: list[int] = []
    page = words[order[0]][0] if order else 0
    for letter, index in zip(letters.key, letters.origin, strict=True):
        if words[index][0] != page:
            page = words[index][0]
            key.append("\n")
            word_at.append(-1)
        key.append(letter)
        word_at.append(index)
    return _Stream("".join(key), word_at)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold()


Box = tuple[float, float, float, float]


def _part(word: Word, first: int, last: int, count: int) -> Box:
    """The box of a word, or of its letters from `first` to `last` where it is a line of a script
    without spaces."""
    text, x0, y0, x1, y1 = word
    if max(text) >= _FIRST_IDEOGRAPH and count > last - first:
        width = x1 - x0
        x0, x1 = x0 + width * first / count, x0 + width * last / count
    return x0, y0, x1, y1


def _merged(boxes: Sequence[tuple[int, float, float, float, float]]) -> list[Mark]:
    """One box around words that follow one another on a line."""
    marks: list[Mark] = []
    before, last = -2, (0.0, 0.0, 0.0, 0.0)
    for index, x0, y0, x1, y1 in boxes:
        height = max(y1 - y0, 1e-6)
        overlap = min(last[3], y1) - max(last[1], y0)
        if (
            index == before + 1
            and overlap > height / 2
            and -height / 2 <= x0 - last[2] < 2 * height
        ):
            row = marks.pop()
            marks.append(Mark(min(row.x0, x0), min(row.y0, y0), max(row.x1, x1), max(row.y1, y1)))
        else:
            marks.append(Mark(x0, y0, x1, y1))
        before, last = index, (x0, y0, x1, y1)
    return marks


def _found_words(
    boxes: Sequence[tuple[int, float, float, float, float]],
    words: Sequence[tuple[int, Word]],
    found: frozenset[str],
) -> Iterator[Mark]:
    for index, x0, y0, x1, y1 in boxes:
        if found.intersection(re.findall(r"\w+", words[index][1][0].lower())):
            yield Mark(x0, y0, x1, y1, is_found=True)
