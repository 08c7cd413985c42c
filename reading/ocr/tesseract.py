"""Tesseract, as Debian and others package it: a program that gets a picture and prints words with
their boxes (TSV). Begin with `Tesseract.read`."""

import csv
import os
import re
import shutil
import subprocess
from collections import defaultdict
from functools import cached_property

import numpy as np

from reading.ocr.lines import Line, Picture, Word
from reading.parsers.boxes import Box

NAME = "Tesseract"
#: Its language data by ISO 639-1 code.
LANGUAGES = {
    "bg": "bul", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng",
    "es": "spa", "et": "est", "fi": "fin", "fr": "fra", "hr": "hrv", "hu": "hun", "id": "ind",
    "it": "ita", "lt": "lit", "lv": "lav", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por",
    "ro": "ron", "ru": "rus", "sk": "slk", "sl": "slv", "sv": "swe", "tr": "tur", "uk": "ukr",
}  # fmt: skip
#: Below this mean confidence a page may be turned.
MAYBE_TURNED = 0.6
#: Words further apart than this, in heights of their line, are in different cells.
_CELL_GAP = 1.5
_ROTATE = re.compile(r"^Rotate: (\d+)$", re.M)


class Tesseract:
    """The program. `seconds` bounds one call."""

    def __init__(self, seconds: float = 300.0) -> None:
        self._seconds = seconds
        self._path = shutil.which("tesseract")

    @cached_property
    def _installed(self) -> frozenset[str]:
        return frozenset(self._run("--list-langs").split()) if self._path else frozenset()

    def language_data(self, languages: list[str]) -> str:
        """What `-l` takes for these ISO codes; empty unless the data of all is installed."""
        names = [LANGUAGES.get(code, "") for code in languages]
        return "+".join(names) if names and self._installed.issuperset(names) else ""

    @property
    def default_data(self) -> str:
        """All installed languages that are known here."""
        return "+".join(sorted(self._installed & set(LANGUAGES.values())))

    def read(self, picture: Picture, data: str) -> tuple[list[Line], int]:
        """The lines, and the degrees by which the picture must be turned clockwise to be upright;
        the boxes are those of the turned one."""
        lines = self._lines(picture, data)
        if mean_confidence(lines) >= MAYBE_TURNED and not _is_sideways(lines):
            return lines, 0
        stated = _ROTATE.search(self._run("-", "-", "--psm", "0", picture=picture))
        rotation = int(stated[1]) % 360 if stated else 0
        if rotation not in {90, 180, 270}:
            return lines, 0
        turned = self._lines(np.ascontiguousarray(np.rot90(picture, -rotation // 90)), data)
        is_better = _is_sideways(lines) or mean_confidence(turned) > mean_confidence(lines)
        return (turned, rotation) if is_better else (lines, 0)

    def _lines(self, picture: Picture, data: str) -> list[Line]:
        printed = self._run("-", "-", "-l", data, "--psm", "3", "tsv", picture=picture)
        found: dict[tuple[str, ...], list[tuple[Word, float]]] = defaultdict(list)
        rows = csv.DictReader(printed.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
        for row in rows:
            text = (row["text"] or "").strip()
            if row["level"] != "5" or not text:
                continue
            x, y = float(row["left"]), float(row["top"])
            box = Box(x, y, x + float(row["width"]), y + float(row["height"]))
            place = (row["block_num"], row["par_num"], row["line_num"])
            found[place].append((Word(text, box), float(row["conf"]) / 100))
        return [line for words in found.values() for line in _cells(words)]

    def _run(self, *arguments: str, picture: Picture | None = None) -> str:
        """What it prints; empty where it fails, as for a page without text."""
        if self._path is None:
            return ""
        sent = None
        if picture is not None:
            height, width = picture.shape
            sent = b"P5 %d %d 255\n" % (width, height) + picture.tobytes()
        done = subprocess.run(  # noqa: S603 (its arguments are ours)
            [self._path, *arguments],
            input=sent,
            capture_output=True,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},  # with more it is slower, not faster
            timeout=self._seconds,
            check=False,
        )
        return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def mean_confidence(lines: list[Line]) -> float:
    """Over all characters; 0 without any."""
    sizes = [len(line.text) for line in lines]
    return sum(line.confidence * size for line, size in zip(lines, sizes, strict=True)) / max(
        sum(sizes), 1
    )


def _is_sideways(lines: list[Line]) -> bool:
    """Tesseract reads some pages that are turned as lines that run down."""
    boxes = [word.box for line in lines for word in line.words if len(word.text) > 3]
    return 2 * sum(box.height > box.width for box in boxes) > len(boxes)


def _cells(words: list[tuple[Word, float]]) -> list[Line]:
    """A line, cut where there is much room between two words."""
    height = float(np.median([word.box.height for word, _ in words]))
    parts: list[list[tuple[Word, float]]] = [[]]
    for word, confidence in words:
        if parts[-1] and word.box.x0 - parts[-1][-1][0].box.x1 > _CELL_GAP * height:
            parts.append([])
        parts[-1].append((word, confidence))
    lines = []
    for part in parts:
        size = sum(len(word.text) for word, _ in part)
        confidence = sum(len(word.text) * confidence for word, confidence in part) / size
        lines.append(Line(tuple(word for word, _ in part), max(confidence, 0.0)))
    return lines
