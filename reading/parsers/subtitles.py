"""Subtitles and transcripts (WebVTT and SubRip): what is said, in paragraphs that begin with their
time and speaker."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from reading.location import clock
from reading.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from reading.parsers.normalise import decode_nonblank, language_code, readable_title

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
#: `<v Ada>`, also with classes: `<v.loud Ada>`.
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,100})?\s+([^<>]{1,200})>")
_TAG = re.compile(r"</?[a-zA-Z0-9][^<>\n]{0,300}>|\{\\[^{}\n]{1,200}\}")
_TITLE = re.compile(r"WEBVTT(?:[ \t]+(?:- *)?(.{1,300}))?")
_LANGUAGE = re.compile(r"^(?:Language|language): *([\w-]{2,20})$", re.M)
#: Names that transcripts write before what is said.
_LABEL = re.compile(r"(?:- ?)?([^\W\d_][\w .'’-]{0,40}): (?=\S)")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_OTHER_BLOCKS = ("STYLE", "REGION", "NOTE")
#: A paragraph ends with its sentence after so many characters or seconds, and anyhow after four
#: times as many characters, because automatic captions have no full stops.
_PARAGRAPH_CHARACTERS, _PARAGRAPH_SECONDS = 300, 30
_PAUSE_SECONDS = 5.0
_MAX_CUES = 500_000
_BROKEN_LISTED = 20


@dataclass(slots=True)
class Cue:
    """Text from `start` to `end`, in seconds, of one speaker."""

    start: float
    end: float
    speaker: str
    text: str


def parse_vtt(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """WebVTT (`.vtt`): paragraphs with the time and the speaker of each."""
    return _parse(data, name=name, media_type="text/vtt", limits=limits)


def parse_srt(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """SubRip (`.srt`): paragraphs with the time of each."""
    return _parse(data, name=name, media_type="application/x-subrip", limits=limits)


def _parse(data: bytes, *, name: str, media_type: str, limits: Limits) -> ParsedDocument:
    text = decode_nonblank(data)
    limits.check_characters(len(text), "The file")
    broken: list[int] = []
    cues = list(_without_repeated_lines(_cues(text, broken)))
    if not cues:
        if broken:
            raise ParseError(
                "malformed",
                f"The times of the cues cannot be read, the first in line {broken[0]}."
                " Times look like 00:01:02.500 --> 00:01:05.000.",
            )
        raise ParseError("no_text", "The subtitles have no text. Check that the file was saved.")
    parts, pages, length = [], [], 0
    for start, paragraph in _paragraphs(cues):
        part = f"[{clock(int(start))}] {paragraph}"
        pages.append(Page(length, int(start)))
        parts.append(part)
        length += len(part) + 2
    head = text.split("\n\n", 1)[0] if text.startswith("WEBVTT") else ""
    title = _TITLE.match(head)
    language = _LANGUAGE.search(head)
    metadata = {
        "duration": clock(int(max(cue.end for cue in cues))),
        "speakers": list(dict.fromkeys(cue.speaker for cue in cues if cue.speaker))[:100],
        "broken_lines": broken[:_BROKEN_LISTED],
    }
    return ParsedDocument(
        text="\n\n".join(parts),
        media_type=media_type,
        title=(title[1] or "").strip() if title and title[1] else readable_title(name),
        pages=tuple(pages),
        metadata={key: value for key, value in metadata.items() if value},
        language=language_code(language[1]) if language else "",
    )


def _cues(text: str, broken: list[int]) -> Iterator[Cue]:
    """Cues in the order of time; numbers of lines whose times cannot be read go to `broken`."""
    lines = text.split("\n")
    cues: list[Cue] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith(_OTHER_BLOCKS) and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and lines[at].strip():
                at += 1
            continue
        if "-->" not in lines[at]:
            at += 1
            continue
        times, number = _TIMES.fullmatch(lines[at]), at + 1
        at += 1
        said = []
        # A blank line ends a cue, and so does the next one's time where that line is missing.
        while at < len(lines) and lines[at].strip() and "-->" not in lines[at]:
            said.append(lines[at])
            at += 1
        if said and at < len(lines) and "-->" in lines[at] and said[-1].strip().isdecimal():
            said.pop()
        start, end = _seconds(times, 1), _seconds(times, 5)
        if times is None or start is None or end is None or end < start:
            broken.append(number)
            continue
        cues += _voices(said, start, end)
        if len(cues) > _MAX_CUES:
            raise ParseError(
                "too_large", f"The subtitles have more than {_MAX_CUES:,} cues. Split them."
            )
    yield from sorted(cues, key=lambda cue: cue.start)


def _seconds(times: re.Match[str] | None, group: int) -> float | None:
    if times is None:
        return None
    hours, minutes, seconds, fraction = times.group(group, group + 1, group + 2, group + 3)
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")


def _voices(lines_of_cue: list[str], start: float, end: float) -> Iterator[Cue]:
    """One cue for each speaker, without tags. The lines stay lines."""
    pieces = _VOICE.split("\n".join(lines_of_cue))
    for speaker, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        plain = html.unescape(_TAG.sub("", piece)).replace("\u200b", "")
        lines = [" ".join(line.split()) for line in plain.split("\n")]
        for line in filter(None, lines):
            label = None if speaker else _LABEL.match(line)
            yield Cue(
                start,
                end,
                " ".join(html.unescape(label[1] if label else speaker).split()),
                line[label.end() :] if label else line,
            )


def _without_repeated_lines(cues: Iterator[Cue]) -> Iterator[Cue]:
    """Lines without those that the cue before showed: automatic captions roll, and show each
    line two or three times."""
    shown: list[Cue] = []
    for cue in cues:
        shown = [other for other in shown if other.end >= cue.start - 0.5][-20:]
        before = next((other for other in reversed(shown) if other.speaker == cue.speaker), None)
        if any(other.text == cue.text and other.speaker == cue.speaker for other in shown):
            shown.append(cue)
            continue
        # The line grows word by word.
        if before and cue.text.startswith(f"{before.text} "):
            shown.append(cue)
            yield Cue(cue.start, cue.end, cue.speaker, cue.text[len(before.text) + 1 :])
            continue
        shown.append(cue)
        yield cue


def _paragraphs(cues: list[Cue]) -> Iterator[tuple[float, str]]:
    """Start and text of what one speaker says, cut after a pause or at the end of a sentence."""
    words: list[str] = []
    start = end = 0.0
    speaker, size = "", 0
    for cue in cues:
        is_long = size > _PARAGRAPH_CHARACTERS or cue.start - start > _PARAGRAPH_SECONDS
        if words and (
            (cue.speaker and cue.speaker != speaker)
            or cue.start - end > _PAUSE_SECONDS
            or (is_long and _SENTENCE_END.search(words[-1]))
            or size > 4 * _PARAGRAPH_CHARACTERS
        ):
            yield start, " ".join(words)
            words = []
        if not words:
            start, size = cue.start, 0
            speaker = cue.speaker or (speaker if cue.start - end <= _PAUSE_SECONDS else "")
            words = [f"{speaker}:"] if speaker else []
        words.append(cue.text)
        size += len(cue.text) + 1
        end = max(end, cue.end)
    if words:
        yield start, " ".join(words)
