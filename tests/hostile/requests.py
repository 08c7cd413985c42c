"""What is sent: bodies, queries and headers that nobody means well with."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from zlib import crc32

from tests.hostile.operations import Operation

JSON = "application/json"
#: Each field is sent one of these.
WRONG: tuple[Any, ...] = (
    *(None, [], {}, "", 0, True, -1, 10**400, 0.5, "x" * 100_000, "\u202e👩‍👩‍👧\u0301"),
    *([None], [[]], {"": None}, ["x"] * 3000, "2024-02-31", "1e400", "%s'\"\\", 2**63, ["a", 1]),
)
LONG = "x" * 100_000
#: Kinds of bodies that an operation gets to see. The others end in what all operations share.
WELL_FORMED = {
    *("wide as allowed", "long list", "huge integer", "infinite number", "NUL in every string"),
    *("half a surrogate pair", "key twice", "a list", "unknown names", "null for all", "nothing"),
    *("lines of junk", "form of junk", "byte order mark"),
}
_OPEN = '{"a":'
_WIDE = "{" + ",".join(f'"k{at}":1' for at in range(100_000)) + "}"
#: Of a query or a header, where whatever stands is text.
TEXTS = ("%00", "%", "%ff%fe", "%zz", "9" * 400, "-1", LONG, "", "%F0%9F%91%A9%E2%80%AE", "1e400")
CURSORS = ("bz0x", "cD0lMDA=", "cj0xJnA9OTk5", "====", "bz05OTk5OTk5OTk5OTk5OTk5OTk5", "8J")
HEADERS: dict[str, tuple[str, ...]] = {
    "If-Match": ('"' + "x" * 60_000, "*", ",,,", '"a", ' * 5000, "W/\x00", "é"),
    "If-None-Match": ('"a", ' * 5000, "W/", "*", '"\x00"'),
    "Idempotency-Key": ("k" * 60_000, "", "\x00", "é\xff", "a b\tc"),
    "X-Workspace": ("w" * 60_000, "", "\x00", "../..", "%00"),
    "Accept": ("x/" * 20_000, "text/csv", "*/*;q=" + "9" * 5000, ";;;,,,", "\xff/\xff", ""),
    "Range": ("bytes=" + "0-1," * 5000, "bytes=-", f"bytes={'9' * 400}-", "items=1", "bytes=9-1"),
    "Last-Event-ID": ("x" * 60_000, "9" * 400, "-1", "\x00", "1-" + "9" * 99),
    "Cookie": ("sessionid=" + "x" * 60_000, "=;=;" * 5000, "sessionid=\x00", "csrftoken=é"),
    "Content-Type": (
        "application/" + "x" * 60_000,
        "application/json; charset=none",
        "/",
        "a/b;" * 5000,
    ),
    "Accept-Language": ("de," * 20_000, "\x00"),
}


@dataclass(frozen=True, slots=True)
class Hostile:
    """One request, as far as it is other than the right one."""

    kind: str
    body: bytes | None = None
    content_type: str = JSON
    query: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


def bodies(operation: Operation) -> Iterator[Hostile]:
    """Every kind of body that is well-formed, and every fourth of those that all parsers refuse;
    operations that take none get every eighth."""
    kinds = list(_bodies(operation))
    place = _of(operation, "kinds")
    if not operation.fields:
        return iter(kinds[place % 8 :: 8])
    refused = [each for each in kinds if each.kind not in WELL_FORMED]
    return iter([each for each in kinds if each.kind in WELL_FORMED] + refused[place % 4 :: 4])


def _bodies(operation: Operation) -> Iterator[Hostile]:
    right = operation.body or {}
    name = (operation.fields or ("x",))[_of(operation, "body") % len(operation.fields or "x")]
    key = json.dumps(name)
    rest = json.dumps(right)
    for kind, sent in {
        "deep lists": f"{{{key}: {'[' * 10_000}{']' * 10_000}}}",
        "deep objects": f"{{{key}: {_OPEN * 10_000}1{'}' * 10_000}}}",
        "deep and never closed": "[" * 10_000,
        "wide": _WIDE,
        "wide as allowed": json.dumps({**right, name: dict.fromkeys(map(str, range(20_000)), 1)}),
        "long list": json.dumps({**right, name: [0] * 45_000}),
        "huge integer": f"{{{key}: 1{'0' * 400}}}",
        "integer of a hundred thousand digits": f"{{{key}: {'9' * 100_000}}}",
        "infinite number": f"{{{key}: 1e400}}",
        "NaN": f"{{{key}: NaN}}",
        "infinity": f"{{{key}: [-Infinity]}}",
        "NUL in every string": json.dumps(_everywhere(right, "\0") or {name: "\0"}),
        "half a surrogate pair": json.dumps(_everywhere(right, "\ud800") or {name: "\udfff"}),
        "key twice": f"{{{key}: 1, {key}: {{}}, {rest[1:-1] or key + ': 2'}}}",
        "truncated": rest[:-1],
        "nothing": "",
        "spaces": " " * 100_000,
        "a list": f"[{rest}]",
        "a text": '"' + "x" * 100_000 + '"',
        "unknown names": json.dumps({**right, "__proto__": {}, "": 1, "x" * 5000: 1}),
        "null for all": json.dumps(dict.fromkeys(operation.fields)),
    }.items():
        yield Hostile(kind, sent.encode())
    yield Hostile("broken UTF-8", rest.encode()[:-1] + b', "\xff\xc3\x28": "\xed\xa0\x80"}')
    yield Hostile("UTF-16", rest.encode("utf-16"))
    yield Hostile("byte order mark", b"\xef\xbb\xbf" + rest.encode())
    gzipped = gzip.compress(rest.encode())
    yield Hostile("gzip", gzipped, headers={"Content-Encoding": "gzip"})
    form = b"--x\r\nContent-Disposition: form-data; name=\xff\x00\r\n\r\n" + rest.encode()
    for kind, body, content_type in (
        ("text", rest.encode(), "text/plain"),
        ("XML", b'<!DOCTYPE a [<!ENTITY b "&b;&b;">]><a>&b;</a>', "application/xml"),
        ("form without end", form, "multipart/form-data; boundary=x"),
        ("form of junk", b"\x00\xff" * 500, f"multipart/form-data; boundary={'é' * 90}"),
        ("form with an empty boundary", form, "multipart/form-data; boundary="),
        ("lines of junk", b"\xff\n{\n[]\nnull\n" * 9, "application/x-ndjson"),
        ("JSON in Latin-1", rest.encode(), "application/json; charset=latin-1"),
    ):
        yield Hostile(kind, body, content_type)


def fields(operation: Operation) -> Iterator[Hostile]:
    """Each field of the body with one value of another kind."""
    for name in operation.fields:
        value = WRONG[_of(operation, name) % len(WRONG)]
        body = json.dumps({**(operation.body or {}), name: value}).encode()
        yield Hostile(f"{name} = {json.dumps(value)[:40]}", body)


def queries(operation: Operation) -> Iterator[Hostile]:
    """Each parameter with one text and repeated, a query of junk, and one place of no page."""
    for name in operation.parameters:
        text = TEXTS[_of(operation, name) % len(TEXTS)]
        yield Hostile(f"?{name}={text[:20]}", query=_joined(operation, f"{name}={text}"))
    again = "&".join(f"{quote(name)}=a&{quote(name)}=b" for name in operation.parameters)
    yield Hostile("every parameter twice", query=again)
    yield Hostile("a query of junk", query="&&=;%00=%&%zz[]=1&\xff=\xff&" + "a&" * 500)
    if "cursor" in operation.parameters:
        cursor = CURSORS[_of(operation, "cursor") % len(CURSORS)]
        yield Hostile(f"cursor {cursor}", query=_joined(operation, f"cursor={cursor}"))


def headers(operation: Operation) -> Iterator[Hostile]:
    """Every third header with one of its values."""
    for name in list(HEADERS)[_of(operation, "headers") % 3 :: 3]:
        values = HEADERS[name]
        value = values[_of(operation, name) % len(values)]
        yield Hostile(f"{name}: {value[:20]!r}", headers={name: value})


def _joined(operation: Operation, more: str) -> str:
    return "&".join(filter(None, (operation.query, more)))


def _of(operation: Operation, what: str) -> int:
    """A number that is the same in each run, and another for each operation."""
    return crc32(f"{operation.name} {what}".encode())


def _everywhere(value: Any, text: str) -> Any:
    """`value` with `text` in each of its texts."""
    if isinstance(value, str):
        return f"a{text}{value}"
    if isinstance(value, dict):
        return {key: _everywhere(each, text) for key, each in value.items()}
    return [_everywhere(each, text) for each in value] if isinstance(value, list) else value
