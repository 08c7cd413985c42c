"""A folder as people have them: a file of every format, and files broken in every way."""

import json
import os
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reading.tests.factories_files import PNG, chunk_json, encrypted_pdf, pdf, scanned_pdf
from reading.tests.factories_office import changed, docx, old_drawing, pptx, xlsx

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Failure:
    """What must be said of a broken file: its code, and a word of the cure."""

    code: str
    cure: str


def word(name: str) -> str:
    """A word that no other file has."""
    digits = f"{zlib.crc32(name.encode(errors='replace')):08x}"
    return "zy" + "".join("bcdfghklmnprstvz"[int(digit, 16)] for digit in digits)


def _bomb_pdf() -> bytes:
    """A page of 100 MB of spaces, packed."""
    packed = zlib.compress(b" " * 100 * MEBIBYTE)
    plain = pdf("x")
    start = plain.index(b"<< /Length")
    end = plain.index(b"endstream")
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\n" % (len(packed), packed)
    return plain[:start] + stream + plain[end:]


#: By name, a function from the file's word to its bytes.
READABLE: Mapping[str, Callable[[str], bytes]] = {
    "plain.txt": lambda word: f"A plain text about {word}.".encode(),
    "not have the suffix": lambda word: f"A text without suffix about {word}.".encode(),
    "wide.txt": lambda word: f"Ein Text über {word} in UTF-16.".encode("utf-16"),
    "windows.log": lambda word: f"Größe und {word}\r\n".encode("cp1252"),
    "caf\udce9.txt": lambda word: f"The name is no UTF-8, but the text about {word} is.".encode(),
    "really a pdf.txt": lambda word: pdf(f"A PDF under another name, about {word}"),
    "notes.md": lambda word: f"---\ntitle: Notes\n---\n# Notes\n\nOn {word}.\n".encode(),
    "page.html": lambda word: (
        f"<!doctype html><title>Page</title><main><p>A page about {word}.</main>".encode()
    ),
    "report.docx": lambda word: docx("# Report", f"A paragraph about {word}."),
    "slides.pptx": lambda word: pptx(["Title", f"A bullet about {word}"]),
    "table.xlsx": lambda word: xlsx({"Sheet": [["name", "about"], ["one", word]]}),
    "rows.csv": lambda word: f"name,about\none,{word}\ntwo,nothing\n".encode(),
    "manual.rst": lambda word: f"Manual\n======\n\nA section about {word}.\n".encode(),
    "record.json": lambda word: json.dumps({"title": "Record", "about": word}).encode(),
    "lines.jsonl": lambda word: f'{{"about": "{word}"}}\n{{"about": "nothing"}}\n'.encode(),
    "module.py": lambda word: f'def answer():\n    """Tell of {word}."""\n    return 42\n'.encode(),
    "schema.sql": lambda word: f"CREATE TABLE {word} (id int PRIMARY KEY, name text);".encode(),
    "deep/er/nested.txt": lambda word: f"Two folders down lies {word}.".encode(),
    "chunks/07_chunk_001.json": lambda word: chunk_json(
        source_document="07", chunk_text=f"A chunk about {word}.", original_text=None
    ),
}

#: What their bytes are, and what must be said of them.
BROKEN: Mapping[str, tuple[Callable[[], bytes], Failure]] = {
    "empty.txt": (lambda: b"", Failure("empty", "saved")),
    "blank.md": (lambda: b" \n\t\n" * 9, Failure("empty", "saved")),
    "torn.pdf": (lambda: pdf("A page that ends too early")[:-200], Failure("truncated", "again")),
    "locked.pdf": (lambda: encrypted_pdf("x", user_password="y"), Failure("encrypted", "without")),
    "scanned.pdf": (lambda: scanned_pdf(2), Failure("no_text", "are empty")),
    "picture.pdf": (lambda: PNG, Failure("malformed", "scan it again")),
    "picture.png": (lambda: PNG, Failure("malformed", "scan it again")),
    "noise": (lambda: random.Random(5).randbytes(5000), Failure("binary", "Supported formats")),
    "old.vsd": (old_drawing, Failure("unsupported", "Export it")),
    "torn.docx": (lambda: docx("Torn")[:-300], Failure("truncated", "again")),
    "bomb.docx": (
        lambda: changed(docx("Boom"), {"word/media/zeros.bin": b"\0" * 50 * MEBIBYTE}),
        Failure("too_large", "Split it"),
    ),
    "renamed.xlsx": (lambda: b"<!doctype html><p>An error page.", Failure("wrong_type", "again")),
    "broken.json": (lambda: b'{"title": "An end that', Failure("truncated", "again")),
    "badly_chunk_001.json": (
        lambda: chunk_json(token_count=0),
        Failure("malformed", "Count the tokens"),
    ),
    "no-encoding.txt": (
        lambda: bytes(range(0x80, 0x100)) * 3,
        Failure("malformed", "UTF-8"),
    ),
    "bomb.pdf": (_bomb_pdf, Failure("too_large", "again")),
}


def everything(folder: Path, *, pages: int) -> tuple[dict[str, str], dict[str, Failure]]:
    """Fill the folder. Returns the readable files with the word of each, and the broken ones.

    One is a PDF of `pages` pages, with its word on the last.
    """
    for name, content in READABLE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(word(name)))
    for name, (broken, _) in BROKEN.items():
        (folder / name).write_bytes(broken())
    (folder / "handbook.pdf").write_bytes(handbook(pages))
    names = [*READABLE, "handbook.pdf"]
    failures = {name: failure for name, (_, failure) in BROKEN.items()}
    return {name: word(name) for name in names}, failures | _no_files(folder)


def handbook(pages: int) -> bytes:
    """A long PDF with a text of its own on every page."""
    lines = [
        [f"Page {page} of the handbook", f"It tells of item {page * 7919 % 100_003}, among others."]
        for page in range(1, pages + 1)
    ]
    lines[-1].append(f"It ends with {word('handbook.pdf')}.")
    return pdf(*lines)


def _no_files(folder: Path) -> dict[str, Failure]:
    """What lies in folders and is no file, or none that can be read."""
    with (folder / "enormous.txt").open("wb") as file:
        file.truncate(GIBIBYTE)
    os.mkfifo(folder / "pipe")
    (folder / "dangling.txt").symlink_to("nowhere.txt")
    (folder / "circle.txt").symlink_to("circle.txt")
    failures = {
        "enormous.txt": Failure("too_large", "RAGSITE_MAX_UPLOAD_BYTES"),
        "pipe": Failure("unsupported", "Save its output"),
        "dangling.txt": Failure("unreadable", "nowhere.txt"),
        "circle.txt": Failure("unreadable", "circle"),
    }
    # Root may read what nobody may: for it a file of the kernel's that gives an error.
    if os.geteuid() != 0:
        (folder / "forbidden.txt").write_text("secret")
        (folder / "forbidden.txt").chmod(0)
    elif Path("/proc/self/mem").exists():
        (folder / "forbidden.txt").symlink_to("/proc/self/mem")
    else:
        return failures
    return failures | {"forbidden.txt": Failure("unreadable", "permissions")}
