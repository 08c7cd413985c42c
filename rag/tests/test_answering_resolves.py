"""Every citation resolves: the document's text at its offsets is what was quoted, however the file
was parsed and cut."""

import json
from pathlib import Path

import pytest

from documents.ingestion.sources import Source, discover, text_source
from documents.models import Collection, Document
from documents.services import document_text, ingest_inline
from documents.tests.factories import CollectionFactory
from rag.answering.evidence import passages_from_hits
from rag.answering.extractive import extract_answer
from reading.chunkers import CHUNKERS
from reading.tests.factories_files import chunk_fields
from search.query_options import site_scope
from search.services import search

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PROSE = "\n\n".join(
    f"Part {n} tells of the harbour. Ship number {n} brings tea, sugar and rum to the harbour."
    f" It leaves on day {n} of the month, unless Captain Dr. Vane is ill.\n  An indented line."
    for n in range(1, 11)
)
ROWS = "\n".join(f"ship {n},{n * 7},tea and rum for the harbour" for n in range(1, 25))
FILES = {
    "plain.txt": PROSE,
    "notes.md": f"# Harbour\n\n{PROSE}\n\n## Ships\n\n- ship one brings tea\n- two brings rum\n"
    "\n| ship | tons |\n|---|---|\n| Anna | 70 |\n| Vera | 90 |\n\n```python\nship = tea[1]\n```\n",
    "ships.csv": f"ship,tons,cargo\n{ROWS}\n",
    "page.html": "<html><head><title>Harbour</title></head><body><h1>Ships</h1>"
    "<p>The harbour has <b>three</b> piers &amp; a light.</p><ul><li>tea ship</li></ul>"
    "<table><tr><th>ship</th><th>tons</th></tr><tr><td>Anna</td><td>70</td></tr></table></body>"
    "</html>",
    "ships.jsonl": "\n".join(json.dumps({"ship": f"Anna {n}", "cargo": "tea"}) for n in range(8)),
    "harbour.py": '"""Ships of the harbour."""\n\n\ndef tea(ship):\n    return ship["tea"]\n\n\n'
    "class Harbour:\n    def ships(self):\n        return [1]\n",
    "harbour.sql": "CREATE TABLE ship (id int, tea text);\nCREATE TABLE harbour (id int);\n",
    "japanese.txt": "港には船があります。船はお茶を運びます。\n\n" * 10,
}
QUESTION = "Which ship brings tea to the harbour?"


def assert_citations_resolve(collection: Collection, question: str, *, k: int = 8) -> int:
    """Ask, quote, and look each citation up; how many there were."""
    scope = site_scope(workspace=collection.workspace, collections=[collection.slug])
    passages = passages_from_hits(search(question, scope=scope, k=k, snippets=False).hits)
    count = 0
    for passage in passages:  # each alone, so that every one is quoted
        text = document_text(Document.objects.get(pk=passage.document_id)).text
        assert text[passage.start : passage.end] == passage.text
        for cited in extract_answer(question, [passage]).cited:
            assert text[cited.start : cited.end] == cited.quote
            count += 1
    return count


@pytest.mark.parametrize("name", sorted(FILES))
def test_of_every_kind_of_file(name: str, tmp_path: Path) -> None:
    collection = CollectionFactory()
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    run = ingest_inline(collection=collection, sources=discover([tmp_path / name]))
    assert run.failed == 0
    question = "船はお茶を" if name == "japanese.txt" else QUESTION
    assert assert_citations_resolve(collection, question) > 0


@pytest.mark.parametrize("chunker", sorted(CHUNKERS))
@pytest.mark.parametrize("name", ["notes.md", "ships.csv"])
def test_of_every_chunker(chunker: str, name: str) -> None:
    asked = CHUNKERS[chunker].defaults
    small = {"max_tokens": 60, "overlap": 20, "parent_tokens": 200}
    options = {option: value for option, value in small.items() if option in asked}
    collection = CollectionFactory(chunker=chunker, chunker_options=options)
    # As one chunk only a short file is taken.
    text = FILES[name][: 500 if chunker == "none" else None]
    source = text_source(name, text, file_name=name)
    run = ingest_inline(collection=collection, sources=[source])
    assert run.failed == 0
    assert assert_citations_resolve(collection, QUESTION) > 0


def test_of_records_that_were_cut_elsewhere() -> None:
    text = "Ship number {n} brings much tea to the harbour. It leaves in the evening."
    records = [chunk_fields(n, original_text=text.format(n=n)) for n in range(3)]
    data = "\n".join(map(json.dumps, records)).encode()
    source = Source("leaflet", "leaflet.chunks.jsonl", len(data), lambda: data)
    collection = CollectionFactory()
    run = ingest_inline(collection=collection, sources=[source])
    assert run.failed == 0
    assert assert_citations_resolve(collection, QUESTION) >= 3


def test_of_a_document_that_is_stored_once() -> None:
    collection = CollectionFactory()
    sources = [text_source(key, PROSE, file_name=key) for key in ("one.txt", "two.txt")]
    ingest_inline(collection=collection, sources=sources, store_once=True)
    assert assert_citations_resolve(collection, QUESTION) > 0


def test_of_the_version_that_was_asked() -> None:
    collection = CollectionFactory()
    for text in (PROSE, PROSE.replace("tea", "coffee")):
        ingest_inline(
            collection=collection,
            sources=[text_source("log.txt", text, file_name="log.txt")],
            policy="new_version",
        )
    assert assert_citations_resolve(collection, "Which ship brings coffee?") > 0
