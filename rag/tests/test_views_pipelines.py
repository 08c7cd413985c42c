"""Pages of pipelines and traces: drawn, edited with rights, run without scripts, taken apart."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Role
from documents.models import Document
from documents.services import delete_document
from documents.tests.factories import MembershipFactory
from documents.tests.views.reading import href, parse, words
from rag.context import RagContext
from rag.models import Pipeline, Span, Trace
from rag.pipelines.validation import templates
from rag.services.pipelines import run_pipeline
from rag.views.traces import SCALE, build_waterfall
from tests.kit import logged_in

pytestmark = pytest.mark.django_db

# Nodes work in threads, which see only what is committed.
runs = pytest.mark.django_db(transaction=True)

MOVE = "When does the firm leave Mill Street?"


@pytest.fixture
def client(context: RagContext) -> Client:
    return of(context)


def of(context: RagContext) -> Client:
    return logged_in(context)


def member(context: RagContext, role: Role) -> Client:
    return logged_in(MembershipFactory(workspace=context.workspace, role=role))


def ran(context: RagContext, question: str = MOVE) -> Trace:
    for _ in run_pipeline("rag", question, context=context):
        pass
    return Trace.objects.latest("pk")


def definition(**changes: Any) -> str:
    return json.dumps({**templates()["rag"].to_json(), "id": "mine", "name": "Mine", **changes})


# --- pipelines -----------------------------------------------------------------------------------


def test_every_template_is_listed_with_its_drawing(client: Client) -> None:
    page = parse(client.get("/pipelines/"))
    listed = page.xpath("//a[@class='pipe']/@href")
    assert listed == [f"/pipelines/{name}/" for name in templates()]
    assert len(page.xpath("//a[@class='pipe']//*[local-name()='svg']")) == len(templates())


@pytest.mark.parametrize("name", sorted(templates()))
def test_a_pipeline_has_a_page(client: Client, name: str) -> None:
    page = parse(client.get(f"/pipelines/{name}/"))
    nodes = page.xpath("//*[@data-node]/@data-node")
    assert nodes == [node.id for node in templates()[name].nodes]


def test_a_pipeline_that_is_not_there_is_said(client: Client) -> None:
    answer = client.get("/pipelines/nope/")
    assert answer.status_code == 404
    assert "The pipeline “nope” does not exist" in answer.text


def test_an_editor_keeps_changes_and_deletes_a_pipeline(
    client: Client, context: RagContext
) -> None:
    saved = client.post("/new-pipeline/", {"definition": definition()})
    assert saved["Location"] == "/pipelines/mine/"
    edit = parse(client.get("/pipelines/mine/edit/"))
    version = edit.xpath("//input[@name='version']/@value")[0]
    changed = {"definition": definition(name="Ours"), "version": version}
    assert client.post("/pipelines/mine/edit/", changed).status_code == 302
    assert Pipeline.objects.get().name == "Ours"

    stale = client.post("/pipelines/mine/edit/", {**changed, "definition": definition()})
    assert stale.status_code == 400
    assert "Read it again" in stale.text
    assert "deletes it permanently" in client.get("/pipelines/mine/delete/").text
    client.post("/pipelines/mine/delete/")
    assert not Pipeline.objects.exists()


def test_every_fault_is_told_with_its_place(client: Client) -> None:
    nodes = [{"id": "a", "type": "worker", "tools": ["nope"]}, {"id": "b", "type": "wizard"}]
    given = {"definition": definition(nodes=nodes, edges=[], entry_node="a")}
    answer = client.post("/new-pipeline/", given)
    assert answer.status_code == 400
    told = parse(answer).xpath("//ul[@class='faults']/li/code/text()")
    assert {"nodes.0.tools.0", "nodes.1.type"} <= set(told)
    assert "wizard" in parse(answer).find(".//textarea").text


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "required"), ("{", "line 1"), ("[" * 100_000, "nested"), ("3", "object"), ("{}", "")],
)
def test_what_is_no_definition_is_refused_in_words(client: Client, text: str, told: str) -> None:
    answer = client.post("/new-pipeline/", {"definition": text})
    assert answer.status_code == 400
    assert told in answer.text
    assert not Pipeline.objects.exists()


def test_a_viewer_reads_and_runs_and_is_offered_no_change(context: RagContext) -> None:
    Pipeline.objects.create(
        workspace=context.workspace, slug="mine", name="Mine", definition=json.loads(definition())
    )
    bob = member(context, Role.VIEWER)
    page = bob.get("/pipelines/mine/")
    assert page.status_code == 200
    assert "Copy to change" not in page.text
    assert bob.post("/pipelines/mine/", {"question": MOVE}).status_code == 302


def test_a_pipeline_that_can_be_run_no_more_says_why(client: Client, context: RagContext) -> None:
    broken = json.loads(definition().replace("similarity_search", "gone_tool"))
    Pipeline.objects.create(
        workspace=context.workspace, slug="mine", name="Mine", definition=broken
    )
    assert "No longer runs" in client.get("/pipelines/").text
    assert "gone_tool" in words(parse(client.get("/pipelines/mine/")).find(".//main"))


def test_own_pipelines_are_paginated(client: Client, context: RagContext) -> None:
    for at in range(30):
        slug = f"p{at:02}"
        given = json.loads(definition(id=slug, name=slug))
        Pipeline.objects.create(workspace=context.workspace, slug=slug, name=slug, definition=given)
    first = parse(client.get("/pipelines/"))
    second = parse(client.get(f"/pipelines/{href(first, 'More')}"))
    found = [
        address.split("/")[2]
        for page in (first, second)
        for address in page.xpath("//a[@class='pipe']/@href")
        if address.split("/")[2] not in templates()
    ]
    assert found == [f"p{at:02}" for at in range(30)]


# --- runs ----------------------------------------------------------------------------------------


@runs
def test_a_run_without_scripts_leads_to_its_trace(client: Client) -> None:
    answer = client.post("/pipelines/rag/", {"question": MOVE})
    trace = Trace.objects.get()
    assert answer["Location"] == f"/traces/{trace.pk}/"
    page = words(parse(client.get(answer["Location"])).find(".//main"))
    assert "14 March" in page
    assert "similarity_search" in page
    overview = words(parse(client.get("/pipelines/rag/")).find(".//main"))
    assert MOVE in overview


def test_a_run_that_cannot_begin_is_said_with_the_question(client: Client) -> None:
    answer = client.post("/pipelines/research/", {"question": MOVE})
    assert answer.status_code >= 400
    assert parse(answer).xpath("//*[@role='alert']")
    assert parse(answer).find(".//textarea").text.strip() == MOVE


def test_traces_are_filtered_and_paginated(client: Client, context: RagContext) -> None:
    now = timezone.now()
    for at in range(120):
        Trace.objects.create(
            workspace=context.workspace,
            user=context.user,
            pipeline="rag" if at % 3 else "research",
            state="failed" if at % 2 else "done",
            question=f"No {at}",
            started_at=now - timedelta(seconds=at),
            ended_at=now,
        )
    told, path = [], "/traces/?pipeline=rag&state=failed"
    while path:
        page = parse(client.get(path))
        told += page.xpath("//tbody//th/a/text()")
        older = page.xpath("//a[@rel='next']/@href")
        path = older[0] if older else ""
    assert told == [f"No {at}" for at in range(120) if at % 3 and at % 2]
    assert client.get("/traces/?state=nonsense&before=x").status_code == 200


def test_a_running_one_is_cancelled(client: Client, context: RagContext) -> None:
    trace = Trace.objects.create(
        workspace=context.workspace,
        user=context.user,
        pipeline="rag",
        question=MOVE,
        started_at=timezone.now(),
    )
    assert "Cancel" in client.get(f"/traces/{trace.pk}/").text
    assert client.post(f"/traces/{trace.pk}/cancel/").status_code == 302
    Trace.objects.update(state="done")
    assert client.post(f"/traces/{trace.pk}/cancel/").status_code == 409


@runs
def test_citations_of_a_trace_lead_to_their_sources(client: Client, context: RagContext) -> None:
    trace = ran(context)
    page = parse(client.get(f"/traces/{trace.pk}/"))
    cites = page.xpath("//a[@class='cite']")
    assert cites
    for cite in cites:
        source = page.get_element_by_id(cite.get("href").removeprefix("#"))
        assert words(source.find(".//*[@class='number']")) == words(cite)
    first = page.find(f".//li[@id='source-{trace.pk}-{words(cites[0])}']")
    assert "14 March" in words(first.find(".//p[@class='whole']"))
    passage = client.get(first.xpath(".//a/@href")[0].partition("#")[0])
    assert "14 March" in passage.text

    # Cut anew, the passage has another number; the document is still there.
    Document.objects.get(key="move.md").chunks.all().delete()
    page = client.get(f"/traces/{trace.pk}/")
    assert "This passage no longer exists" in page.text
    assert page.text.count('class="cite"') == len(cites)


@runs
def test_a_trace_shows_nothing_of_what_may_be_read_no_longer(
    client: Client, context: RagContext
) -> None:
    trace = ran(context)
    Document.objects.filter(key="move.md").update(access=["user:0"])
    page = client.get(f"/traces/{trace.pk}/").text
    assert "14 March" not in page
    assert "only its times are shown" in page
    Document.objects.filter(key="move.md").update(access=None)
    delete_document(document=Document.objects.get(key="move.md"))
    page = client.get(f"/traces/{trace.pk}/").text
    assert "14 March" not in page
    assert "a quoted document was deleted" in page


# --- the waterfall -------------------------------------------------------------------------------


def test_bars_stand_where_and_as_long_as_their_steps_were() -> None:
    began = timezone.now()

    def span(pk: int, start: int, end: int, parent: int | None = None) -> Span:
        return Span(
            pk=pk,
            parent_id=parent,
            ordinal=pk,
            kind="node",
            node=f"n{pk}",
            type="llm",
            started_at=began + timedelta(milliseconds=start),
            ended_at=began + timedelta(milliseconds=end),
        )

    trace = Trace(started_at=began, ended_at=began + timedelta(milliseconds=1000))
    spans = [span(1, 0, 500), span(2, 500, 1000), span(3, 100, 300, parent=1), span(4, 999, 1000)]
    drawn = build_waterfall(trace, spans)
    bars = drawn["bars"]
    assert [bar["span"].pk for bar in bars] == [1, 3, 2, 4]
    assert [bar["depth"] for bar in bars] == [0, 1, 0, 0]
    assert [(bar["x"], bar["width"]) for bar in bars[:3]] == [(0, 500), (100, 200), (500, 500)]
    assert all(bar["x"] + bar["width"] <= SCALE for bar in bars)
    assert drawn["milliseconds"] == 1000
