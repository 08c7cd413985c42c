"""What happens to files on their way, and what people do to them who mean harm."""

import io
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random

#: Bytes that mean something to some format, and those that no text has.
_TOKENS = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xae", b"\r", b"\n" * 40,
    b"\\ud800", b"\\u0000", b'"', b"'", b"`" * 9, b"<", b"<!--", b"]]>", b"&#0;", b"&#xD800;", b"&a;",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"*" * 60, b"[" * 60, b"{" * 60, b"(" * 60, b"> " * 60, b"|" * 60,
    b"-" * 60, b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"-1", b"4294967296", b"99999999999999999999",
    b"%%EOF", b"endobj", b"1 0 R", b"/Filter /FlateDecode", b"/Length -5", b"stream\n", b"PK\x05\x06",
    b"---\n", b"...\n", b"!!python/object:os.system", b"&a [*a, *a]", b".. include:: /etc/passwd\n",
    b"$$", b"/*", b"\xe0\xb8\xa0" * 30, b"\xcc\x81" * 90, b"\xf0\x9f\x91\xa8\xe2\x80\x8d" * 20,
)  # fmt: skip
_NUMBERS = (b"0", b"-1", b"1", b"65536", b"2147483648", b"99999999999", b"1e308", b"0.0000001")
_NAMES: tuple[Callable[[str], str], ...] = (
    str.upper,
    lambda name: "../" * 9 + name,
    lambda name: "/" + name,
    lambda name: "\\" + name,
)
_MAX_BYTES = 200_000


@cache
def seeds() -> Mapping[str, bytes]:
    """The files that are mutated by name, a small one of every format and encoding that the site
    reads, with all that the format has; each gives passages."""
    folder = Path(__file__).with_name("seeds")
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def mutated(random: Random, data: bytes, other: bytes) -> bytes:
    """The file with one to six changes; of a ZIP mostly its parts are changed, and packed anew."""
    if data.startswith(b"PK") and random.random() < 0.7:
        return _with_changed_part(random, data, other)
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        data = random.choice(_CHANGES)(random, data, other)[:_MAX_BYTES]
    return data


def _with_changed_part(random: Random, data: bytes, other: bytes) -> bytes:
    """Another name, another content, missing, twice, or another packing."""
    buffer = io.BytesIO()
    kind = random.randrange(12)
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w") as target:
        names = source.namelist()
        chosen = random.choice(names)
        for name in names:
            content = source.read(name)
            if name == chosen:
                if kind == 0:
                    continue
                if kind == 2:
                    target.writestr("twin/" + name, content)
                for _ in range(random.choice((1, 1, 2, 4))):
                    content = random.choice(_CHANGES)(random, content, other)[:_MAX_BYTES]
            packing = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            shown = random.choice(_NAMES)(name) if name == chosen and kind == 1 else name
            target.writestr(shown, content, packing)
    return buffer.getvalue()


def _flip(random: Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 4, 30))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _drop(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[start:end] * random.choice((2, 3, 50, 1000)) + data[end:]


def _move(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, data)
    rest = data[:start] + data[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _splice(random: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(random, other)
    at = random.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at:]


def _insert(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(_TOKENS) * random.choice((1, 1, 1, 20, 500)) + data[at:]


def _number(random: Random, data: bytes, other: bytes) -> bytes:
    """Another figure for one of those that stand in it."""
    places = [at for at, byte in enumerate(data[:50_000]) if 48 <= byte <= 57]
    if not places:
        return _insert(random, data, other)
    start = end = random.choice(places)
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    return data[:start] + random.choice(_NUMBERS) + data[end:]


def _integer(random: Random, data: bytes, other: bytes) -> bytes:
    """Huge or negative where a binary header may have a length."""
    at = random.randrange(len(data) + 1)
    value = random.choice((b"\xff" * 4, b"\x00" * 4, b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"))
    return data[:at] + value + data[at + 4 :]


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 4, 20, 100, 1000)))


_CHANGES: tuple[Callable[[Random, bytes, bytes], bytes], ...] = (
    _flip, _cut, _drop, _repeat, _move, _splice, _insert, _insert, _number, _integer,
)  # fmt: skip
