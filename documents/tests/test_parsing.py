"""A file is parsed in a process of its own: it gives a document or a named failure, and no more."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.tests.fuzzing.mutations import seeds
from reading.parsers import Heading, Page, ParsedDocument, ParseError, parse
from reading.sandbox import ParserProcess, _ProcessPool, parse_in_sandbox, parse_many
from reading.sandbox.limits import ParserLimits
from reading.sandbox.protocol import (
    ParseRequest,
    decode_header,
    document_fields,
    document_from_fields,
    encode_header,
)
from reading.tests.factories_files import chunk_json, pdf
from tests.plugin import wait_until

LIMITS = ParserLimits(seconds=20.0)
MIB = 1024**2
#: Takes seconds, on any machine.
SLOW = pdf(*[[f"Line {line} of the page" for line in range(40)]] * 2000)


@pytest.fixture
def process() -> Iterator[ParserProcess]:
    process = ParserProcess(LIMITS)
    yield process
    process.close()


def text(name: str, content: str) -> ParseRequest:
    return ParseRequest(name=name, data=content.encode())


def child(*, of: int | None = None) -> psutil.Process:
    """The youngest parser process."""
    children = [
        process
        for process in psutil.Process(of).children()
        if "reading.sandbox" in process.cmdline()
    ]
    return max(children, key=lambda process: process.create_time())


def failure(process: ParserProcess, request: ParseRequest) -> ParseError:
    with pytest.raises(ParseError) as caught:
        process.parse(request)
    return caught.value


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("note.md", "# Tïtle 😀\n\nText\n\n## Two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".encode()),
        ("page.html", b"<!doctype html><html lang=de><title>Seite</title><p>Ein Text.</html>"),
        ("paper.pdf", pdf(["One"], ["Two"], outline=[("Two", 1)], metadata={"Author": "Ann"})),
        ("07_examplol_chunk_001.json", chunk_json()),
        ("07.chunks.jsonl", chunk_json(1) + b"\n" + chunk_json(2)),
    ],
)
def test_a_document_comes_out_as_it_is_parsed_here(
    process: ParserProcess, tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    by_path = process.parse(ParseRequest(name=name, path=tmp_path / name))
    assert by_path == process.parse(ParseRequest(name=name, data=data))
    assert by_path.text
    if not name.endswith(".chunks.jsonl"):
        assert by_path == parse(data, name=name)


def test_a_failure_keeps_its_code_and_message(process: ParserProcess) -> None:
    error = failure(process, ParseRequest(name="empty.txt", data=b" \n"))
    assert (error.code, error.message) == ("empty", str(error))
    assert "saved" in error.message


def test_a_name_that_is_no_text_leads_to_its_file(process: ParserProcess, tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9.txt"
    path.write_text("A name that is no UTF-8.")
    assert (
        process.parse(ParseRequest(name="cafe.txt", path=path)).text == "A name that is no UTF-8."
    )


def test_a_file_that_is_gone_is_unreadable(process: ParserProcess, tmp_path: Path) -> None:
    error = failure(process, ParseRequest(name="gone.txt", path=tmp_path / "gone.txt"))
    assert error.code == "unreadable"


def test_results_come_in_the_order_of_submission_however_large_they_are(
    process: ParserProcess,
) -> None:
    requests = [text(f"{n}.txt", f"{n} " + "word " * 400_000 * (n % 3)) for n in range(12)]
    for request in requests:
        process.submit(request)  # 16 MB on their way in, and 16 MB on their way out
    results = [process.result() for _ in requests]
    assert [result.text.split()[0] for result in results] == [str(n) for n in range(12)]
    assert process.is_idle


def test_many_are_parsed_ahead_and_a_broken_one_costs_nothing_but_itself() -> None:
    requests = [text(f"{n}.txt", "" if n == 30 else f"text {n}") for n in range(60)]
    results = list(parse_many(requests, limits=LIMITS))
    assert isinstance(results[30], ParseError)
    texts = [result.text for result in results if isinstance(result, ParsedDocument)]
    assert texts == [f"text {n}" for n in range(60) if n != 30]


def test_a_process_without_work_ends_and_the_next_file_gets_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reading.sandbox.IDLE_SECONDS", 0.1)
    pool = _ProcessPool()
    with pool.borrow(LIMITS) as process:
        process.parse(text("first.txt", "first"))
        first = child()
    wait_until(lambda: not first.is_running(), what="the process has ended")
    with pool.borrow(LIMITS) as process:
        assert process.parse(text("next.txt", "next")).text == "next"
        assert child() != first
    pool.close()


def test_a_process_with_work_or_just_after_it_does_not_end() -> None:
    pool = _ProcessPool()
    with pool.borrow(LIMITS) as process:
        process.parse(text("first.txt", "first"))
        pool.close()
        assert process.parse(text("next.txt", "next")).text == "next"
        own = child()
    pool.close(idle_seconds=3600)
    assert own.is_running()
    pool.close()
    assert not own.is_running()


def test_threads_have_processes_of_their_own() -> None:
    seen: list[str] = []

    def work(number: int) -> None:
        for turn in range(20):
            name = f"{number}-{turn}"
            seen.append(parse_in_sandbox(text(name, name), limits=LIMITS).text)

    threads = [Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(f"{number}-{turn}" for number in range(4) for turn in range(20))


def test_a_text_that_needs_too_much_memory_is_named_and_the_next_is_parsed() -> None:
    process = ParserProcess(ParserLimits(memory_bytes=256 * MIB))
    error = failure(process, text("wide.txt", "😀" + "x" * 60_000_000))
    assert error.code == "too_much_memory"
    assert "wide.txt" in error.message
    assert "256 MiB" in error.message
    assert "RAGSITE_PARSER_MEMORY_BYTES" in error.message
    assert process.parse(text("small.txt", "small")).text == "small"
    process.close()


def test_a_file_that_takes_too_long_is_stopped_and_those_behind_it_are_parsed() -> None:
    process = ParserProcess(ParserLimits(seconds=0.3))
    process.submit(ParseRequest(name="slow.pdf", data=SLOW))
    process.submit(text("next.txt", "next"))
    process.submit(text("last.txt", "last"))
    with pytest.raises(ParseError) as caught:
        process.result()
    assert caught.value.code == "too_slow"
    assert "slow.pdf" in caught.value.message
    assert "RAGSITE_PARSER_SECONDS" in caught.value.message
    assert [process.result().text, process.result().text] == ["next", "last"]
    process.close()


def test_a_process_whose_own_alarm_is_silent_is_killed_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reading.sandbox._GRACE_SECONDS", 0.5)
    process = ParserProcess(ParserLimits(seconds=1.0))  # in which a new one begins, too
    process.parse(text("first.txt", "first"))
    child().suspend()
    assert failure(process, text("stuck.txt", "stuck")).code == "too_slow"
    assert process.parse(text("next.txt", "next")).text == "next"
    process.close()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGSEGV, "crashed"),
        (signal.SIGABRT, "too_much_memory"),
        (signal.SIGKILL, "too_much_memory"),
    ],
)
def test_a_parser_that_dies_fails_the_file_that_it_reads(
    process: ParserProcess, caplog: pytest.LogCaptureFixture, number: signal.Signals, code: str
) -> None:
    process.parse(text("first.txt", "first"))
    process.submit(ParseRequest(name="slow.pdf", data=SLOW))
    process.submit(text("next.txt", "next"))
    with caplog.at_level(logging.WARNING):
        child().send_signal(number)
        with pytest.raises(ParseError) as caught:
            process.result()
    assert caught.value.code == code
    assert "slow.pdf" in caught.value.message
    assert ("Fatal Python error" in caplog.text) == (number != signal.SIGKILL)
    assert process.result().text == "next"


def test_a_process_that_died_while_idle_fails_nothing(process: ParserProcess) -> None:
    process.parse(text("first.txt", "first"))
    idle = child()
    idle.kill()
    idle.wait(timeout=30)  # a zombie may have threads yet, and is not dead before they are
    assert process.parse(text("next.txt", "next")).text == "next"


def test_a_process_that_keeps_too_much_memory_makes_room_for_another() -> None:
    process = ParserProcess(ParserLimits(memory_bytes=60 * MIB))  # a quarter is less than it needs
    pids = set()
    for number in range(3):
        assert process.parse(text("a.txt", f"text {number}")).text == f"text {number}"
        process.submit(text("b.txt", "ahead"))
        pids.add(child().pid)
        assert process.result().text == "ahead"
    process.close()
    assert len(pids) == 3


def test_a_text_of_more_bytes_than_a_file_may_have_is_too_large() -> None:
    process = ParserProcess(ParserLimits(max_bytes=1000))
    latin = "un été ".encode("latin-1")  # longer in UTF-8
    assert process.parse(ParseRequest(name="a.txt", data=latin * 100)).text.startswith("un été")
    assert failure(process, ParseRequest(name="b.txt", data=latin * 140)).code == "too_large"
    process.close()


def test_the_process_is_fenced_in(process: ParserProcess, monkeypatch: Any) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:secret@db/site")
    monkeypatch.setenv("SECRET_KEY", "secret")
    process.parse(text("first.txt", "first"))
    fenced = child()
    assert "secret" not in str(fenced.environ())
    if sys.platform == "linux":
        limits = {
            name: fenced.rlimit(getattr(psutil, name))[0]
            for name in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NPROC", "RLIMIT_AS")
        }
        assert limits == {
            "RLIMIT_FSIZE": 0,
            "RLIMIT_CORE": 0,
            "RLIMIT_NPROC": 0,
            "RLIMIT_AS": LIMITS.memory_bytes,
        }
        if os.geteuid() == 0:
            own_network = Path("/proc/self/ns/net").readlink()
            assert Path(f"/proc/{fenced.pid}/ns/net").readlink() != own_network


_SITE = """
import sys
from reading.sandbox import ParserLimits, ParserProcess, ParseRequest
process = ParserProcess(ParserLimits())
process.parse(ParseRequest(name="a.txt", data=b"text"))
process.submit(ParseRequest(name="slow.pdf", data=sys.stdin.buffer.read()))
print("busy", flush=True)
process.result()
"""


def test_the_process_does_not_outlive_the_site() -> None:
    site = subprocess.Popen(
        [sys.executable, "-c", _SITE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert site.stdin
    assert site.stdout
    site.stdin.write(SLOW)
    site.stdin.close()
    assert site.stdout.readline() == b"busy\n"
    orphan = child(of=site.pid)
    site.kill()
    site.wait()
    site.stdout.close()
    wait_until(lambda: not orphan.is_running(), what="the parser process has ended")


def test_a_process_that_is_forked_leaves_its_parents_parsers_alone() -> None:
    parse_in_sandbox(text("a.txt", "text"), limits=LIMITS)
    pid = os.fork()
    if pid == 0:
        same = parse_in_sandbox(text("b.txt", "forked"), limits=LIMITS).text == "forked"
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert parse_in_sandbox(text("c.txt", "parent"), limits=LIMITS).text == "parent"


# --- what a process may answer that a file has taken over ----------------------------------------

_TITLES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20)


@given(
    content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
    title=_TITLES,
    places=st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 6), _TITLES), max_size=5),
    metadata=st.dictionaries(_TITLES, st.one_of(_TITLES, st.integers(), st.none()), max_size=3),
)
def test_a_document_survives_the_way_between_the_processes(
    content: str, title: str, places: list[tuple[int, int, str]], metadata: dict[str, Any]
) -> None:
    inside = sorted((min(offset, len(content)), level, name) for offset, level, name in places)
    document = ParsedDocument(
        text=content,
        media_type="text/plain",
        title=title,
        headings=tuple(Heading(*place) for place in inside),
        pages=tuple(Page(offset, number) for number, (offset, _, _) in enumerate(inside, start=1)),
        metadata=metadata,
        language="en",
    )
    assert (
        document_from_fields(decode_header(encode_header(document_fields(document))), content)
        == document
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_FIELDS = document_fields(ParsedDocument(text="text", media_type="text/plain", title="T"))


@given(name=st.sampled_from(sorted(_FIELDS)), value=_JSON, header=_JSON)
def test_an_answer_that_is_no_document_is_refused_or_harmless(
    name: str, value: Any, header: Any
) -> None:
    for fields in ({**_FIELDS, name: value}, header):
        try:
            document = document_from_fields(decode_header(encode_header(fields)), "text")
        except (LookupError, TypeError, ValueError):
            continue
        kinds = [type(part) for part in (document.title, document.media_type, document.language)]
        assert kinds == [str, str, str]
        assert "\0" not in document.title
        assert all(0 <= place.offset <= 4 for place in (*document.headings, *document.pages))


# --- files that nobody made ----------------------------------------------------------------------

_QUICK = ParserLimits(seconds=5.0)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300), name=st.sampled_from(sorted(seeds())))
def test_noise_under_any_name_does_no_harm(data: bytes, name: str) -> None:
    outcome = next(parse_many([ParseRequest(name=name, data=data)], limits=_QUICK))
    assert not isinstance(outcome, ParseError) or outcome.code != "crashed", outcome
