"""Summaries: quoted or written, kept, and gone with their documents and the rights to them."""

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Role
from common.errors import InvalidInput
from documents.models import Chunk, Document
from documents.services import delete_document, edit_chunk
from documents.tests.factories import ChunkFactory, DocumentFactory, MembershipFactory
from inference.tests.chatting import PROTOCOLS
from inference.tests.stub_server import StubServer
from rag import tools
from rag.answering.central_sentences import central_passages, central_sentences
from rag.answering.whole_document import whole_document_question
from rag.context import RagContext
from rag.errors import NoChatModel
from rag.events import Citation, Done, Retrieval, answer_text
from rag.models import Summary
from rag.services.answers import answer
from rag.services.questions import Question
from rag.services.summaries import cancel_summary, create_written_summary, get_summary
from rag.services.written_summaries import fail_stale_summaries, write_summary
from rag.tests.answering import passage
from rag.tools.summaries import document_text_of, scope_text_of

PARTS = [
    ("Leave", "Everybody has 27 days of paid leave in a year. It is asked for in May."),
    ("Travel", "Train tickets of the second class need no approval by your lead. Keep receipts."),
    ("Illness", "Call your lead before nine in the morning on the first day of an illness."),
]


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("What is handbook.docx about?", ("about", "handbook.docx")),
        ("what's the “Staff Handbook” about", ("about", "Staff Handbook")),
        ("Please summarise the minutes.", ("summary", "minutes")),
        ("Give me a summary of the document plan.pptx", ("summary", "plan.pptx")),
        ("Worum geht es in wartung-ferry.docx?", ("about", "wartung-ferry.docx")),
        ("Fasse das Protokoll bitte zusammen", ("summary", "Protokoll")),
        ("¿De qué trata carta-talvera.docx?", ("about", "carta-talvera.docx")),
        ("Resume el contrato", ("summary", "contrato")),
        ("What is the leave carried over?", None),
        ("How do I summarise a document?", None),
        ("Wann ist die Zusammenfassung fertig?", None),
    ],
)
def test_questions_about_a_whole_document(message: str, asked: tuple[str, str] | None) -> None:
    assert whole_document_question(message) == asked


def test_passages_are_spread_over_what_the_text_is_about() -> None:
    import numpy as np

    subjects = np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 1, 2, 2, 2]]
    assert central_passages(subjects, 3) == [0, 3, 5]
    assert central_passages(subjects, 8) == list(range(8))


def test_sentences_are_whole_prose_of_different_passages_in_order() -> None:
    table = "| quay | dues |\n|---|---|\n| northern quay | 40 crowns of harbour dues |\n"
    texts = [*(f"# {name}\n\n{text}" for name, text in PARTS), table]
    passages = [
        passage(text, number, start=number * 1000, document_id=1)
        for number, text in enumerate(texts, 1)
    ]
    chosen = central_sentences(passages, 3)
    assert [quote.text.split(".")[0] for quote in chosen] == [
        text.split(".")[0] for _, text in PARTS
    ]
    assert [quote.start for quote in chosen] == sorted(quote.start for quote in chosen)
    # Copies are said once, and a table alone is quoted all the same.
    copies = [passage(PARTS[2][1], number, start=number, document_id=number) for number in (1, 2)]
    assert len(central_sentences(copies, 3)) == 1
    assert [quote.part.kind for quote in central_sentences([passage(table)], 3)] == ["row"]
    assert central_sentences([], 3) == []


def handbook(role: Role = Role.OWNER, parts: int = 1) -> tuple[RagContext, Document]:
    membership = MembershipFactory(role=role)
    row = DocumentFactory(
        collection__workspace=membership.workspace,
        key="handbook.md",
        title="Handbook",
        is_current=True,
        content_sha256="1" * 64,
    )
    start = 0
    for ordinal, (name, text) in enumerate(PARTS * parts):
        ChunkFactory(document=row, ordinal=ordinal, text=text, heading_path=[name], start=start)
        start += len(text) + 2
    return RagContext(user=membership.user, workspace=membership.workspace), row


@pytest.mark.django_db
def test_a_summary_is_made_once_of_each_text_and_goes_with_it() -> None:
    context, row = handbook()
    made = get_summary(document_text_of(row), "summary")
    assert get_summary(document_text_of(row), "summary").pk == made.pk
    assert {cited["heading_path"][0] for cited in made.citations} == {name for name, _ in PARTS}
    for cited in made.citations:
        assert made.text.startswith(f"[{cited['number']}]", cited["at"])
        chunk = Chunk.objects.get(pk=cited["chunk"])
        assert chunk.text[cited["start"] - chunk.start :].startswith(cited["quote"])
    everything = get_summary(scope_text_of(context.search_scope()), "about")
    assert everything.documents == [row.pk]
    with pytest.raises(InvalidInput, match="kind"):
        get_summary(document_text_of(row), "poem")
    edit_chunk(chunk=Chunk.objects.filter(document=row)[0], text="Nobody has any leave at all.")
    assert not Summary.objects.exists()
    get_summary(document_text_of(row), "about")
    delete_document(document=row)
    assert not Summary.objects.exists()


@pytest.mark.django_db
def test_a_model_reads_a_long_text_in_parts_and_no_more_than_it_may(
    settings: Any, server: StubServer
) -> None:
    _, row = handbook(parts=4)
    text = document_text_of(row)
    settings.RAG_CONTEXT_TOKENS = 60
    server.always(lambda payload: PROTOCOLS[0].answer(payload, "Everybody has leave [1][99]."))
    made = create_written_summary(text, "summary", max_tokens=150)
    assert made.is_unfinished
    assert made.is_sampled
    assert create_written_summary(text, "summary", max_tokens=150).pk == made.pk
    assert get_summary(text, "summary").pk == made.pk
    assert write_summary(made.pk)
    assert not write_summary(made.pk)
    made.refresh_from_db()
    assert (made.state, made.text) == ("done", "Everybody has leave [1].")
    assert [cited["number"] for cited in made.citations] == [1]
    assert 2 < made.calls_total == made.calls_done == len(server.requests)


@pytest.mark.django_db
def test_a_summary_that_is_cancelled_or_lost_is_not_written(
    settings: Any, server: StubServer
) -> None:
    _, row = handbook()
    text = document_text_of(row)
    made = create_written_summary(text, "about", max_tokens=1000)
    assert cancel_summary(text, "about") == 1
    assert not write_summary(made.pk)
    lost = create_written_summary(text, "about", max_tokens=1000)
    Summary.objects.filter(pk=lost.pk).update(state="running", leased_until="2020-01-01T00:00:00Z")
    assert fail_stale_summaries() == 1
    assert get_summary(text, "about").state == "failed"
    again = create_written_summary(text, "about", max_tokens=1000)
    assert (again.state, again.pk == lost.pk) == ("waiting", False)


@pytest.mark.django_db
def test_without_a_model_nothing_is_written() -> None:
    _, row = handbook()
    with pytest.raises(NoChatModel):
        create_written_summary(document_text_of(row), "about", max_tokens=1000)


@pytest.mark.django_db
def test_a_chat_quotes_the_document_that_it_is_asked_about(context: RagContext) -> None:
    events = list(answer(Question("What is travel.md about?"), context=context))
    assert isinstance(events[-1], Done)
    (retrieved,) = (event for event in events if isinstance(event, Retrieval))
    assert {each.document_key for each in retrieved.passages} == {"travel.md"}
    cited = [event for event in events if isinstance(event, Citation)]
    text = answer_text(events)
    assert "“Train tickets need no approval.”" in text
    assert all(text.startswith(f"[{each.passage.number}]", each.at) for each in cited)
    site = RagContext(user=None, workspace=context.workspace)
    said = list(answer(Question("Worum geht es in Travel?"), context=site))
    assert "“Train tickets need no approval.”" in answer_text(said)
    # Nothing is called so: it is looked for as any question is.
    other = list(answer(Question("What is unicorns.md about?"), context=context))
    assert isinstance(other[-1], Done)


@pytest.mark.django_db
def test_a_chat_model_reads_the_document_that_it_is_asked_about(
    context: RagContext, server: StubServer
) -> None:
    server.always(lambda payload: PROTOCOLS[0].answer(payload, "It is about travel [1]."))
    events = list(answer(Question("Summarise travel.md"), context=context))
    assert answer_text(events) == "It is about travel [1]."
    prompt = json.dumps(server.requests[-1].json)
    assert "Train tickets need no approval" in prompt
    assert "Mill Street" not in prompt


@pytest.mark.django_db
def test_the_tool_numbers_what_it_quotes() -> None:
    context, _ = handbook()
    said = tools.call("summarize_document", {"id": "handbook.md"}, context=context)
    assert not said.is_error
    assert '[1] "Handbook > Leave"' in said.text
    assert "| Everybody has 27 days of paid leave in a year." in said.text
    assert tools.call("summarize_document", {"id": "none.md"}, context=context).is_error


@pytest.mark.django_db
def test_the_page_is_a_part_for_htmx_and_hides_what_may_not_be_read(client: Client) -> None:
    context, row = handbook()
    client.force_login(context.user)
    address = f"/summary/document/{row.pk}/?kind=summary"
    page = client.get(address)
    assert "<html" in page.text
    part = client.get(address, headers={"HX-Request": "true"})
    assert part.text.lstrip().startswith("<section")
    assert "27 days of paid leave" in part.text
    assert part.headers["Cache-Control"] == "private, no-store"
    every = client.get("/summary/?kind=about")
    assert "Handbook" in every.text
    Document.objects.filter(pk=row.pk).update(access=["group:1"])
    Chunk.objects.filter(document=row).update(access=["group:1"])
    assert client.get(address).status_code == 404
    assert "27 days" not in client.get("/summary/?kind=about").text


@pytest.mark.django_db
def test_the_page_has_a_model_write_shows_how_far_it_is_and_stops_it(
    client: Client, server: StubServer
) -> None:
    context, row = handbook()
    client.force_login(context.user)
    address = f"/summary/document/{row.pk}/?kind=about"
    asked = client.post(address, {"act": "write"}, headers={"HX-Request": "true"})
    assert f'data-poll="{address}"' in asked.text
    client.post(address, {"act": "stop"})
    assert not Summary.objects.filter(model__gt="").exists()


@pytest.mark.django_db
def test_the_api_quotes_and_has_a_model_write(client: Client, server: StubServer) -> None:
    context, row = handbook()
    client.force_login(context.user)
    address = f"/api/v1/documents/{row.pk}/summary/"
    found = client.get(address).json()
    assert (found["kind"], found["model"], found["passages"]) == ("summary", "", 3)
    started = client.post(address, {}, content_type="application/json")
    assert started.status_code == 202
    assert client.delete(address).status_code == 204
    assert client.get(address).json()["model"] == ""
    every = client.get("/api/v1/summary/?kind=about").json()
    assert every["documents"] == [row.pk]
