"""A document: read, marked, in versions, changed, not kept, not there; uploads and runs."""

from functools import partial
from io import BytesIO

from documents.ingestion.sources import Source, text_source
from documents.ingestion.stored_files import store_file
from documents.models import Chunk, ChunkEdit, Document, IngestionItem, IngestionRun
from documents.services import edit_chunk, ingest_inline
from documents.tests.factories import DocumentFactory, ItemFactory, MembershipFactory, RunFactory
from reading.tests.factories_pdf import finished, page, prose, ruled
from tests.matrix.states import State, World

POLICY = "# Leave\n\nThirty days a year.\n\n## Travel\n\nTrains are booked by everybody alone."


def _policy() -> Document:
    return Document.objects.get(key="policy", is_current=True)


def _versions(world: World) -> None:
    for days, policy in (("Thirty", "overwrite"), ("Thirty-one", "new_version")):
        text = POLICY.replace("Thirty", days)
        source = text_source("policy", text, media_type="text/markdown", metadata={"days": days})
        ingest_inline(collection=world.office, sources=[source], policy=policy)
    chunk = Chunk.objects.get(document=_policy())
    edit_chunk(chunk=chunk, text=chunk.text.replace("Trains", "Ferries"), user=world.alice)


def _conflict(world: World) -> None:
    ChunkEdit.objects.update(state=ChunkEdit.State.CONFLICT)


def _colleagues(world: World) -> None:
    for name in ("bo", "carla-with-a-name-as-long-as-names-may-well-be-in-a-directory"):
        MembershipFactory(workspace=world.workspace, user__username=name)
    Document.objects.filter(pk=_policy().pk).update(access=[f"user:{world.alice.pk}"])


def _failed(world: World) -> None:
    DocumentFactory(
        collection=world.empty,
        key="locked",
        title="A locked file",
        status=Document.Status.FAILED,
        error_code="encrypted",
        error="The file is encrypted. Remove the password, and bring it again.",
    )


def _running(world: World) -> None:
    run = RunFactory(collection=world.leaflets, source="7 files", total=4, ready=1, failed=1)
    states = IngestionItem.State
    for name, state in (
        ("a.md", states.READY),
        ("b.md", states.PARSING),
        ("c.md", states.EMBEDDING),
    ):
        ItemFactory(run=run, name=name, state=state, document=world.leaflet)
    ItemFactory(
        run=run,
        name="torn.pdf",
        state=states.FAILED,
        error_code="malformed",
        error="torn.pdf is cut off. Save it again, and bring it again.",
    )


def _paged(world: World) -> None:
    for name, eastern in (("dues.pdf", "35 crowns"), ("torn.pdf", "36 crowns")):
        pdf = page()
        prose(pdf, 4)
        ruled(pdf, [["Quay", "Dues"], ["Northern", "40 crowns"], ["Eastern", eastern]])
        data = finished(pdf)
        source = Source(key=name, name=name, size=len(data), read=partial(bytes, data))
        ingest_inline(collection=world.office, sources=[source])
    store_file(Document.objects.get(key="torn.pdf"), BytesIO(b"torn"))


def _page(name: str) -> str:
    document = Document.objects.get(key=name)
    chunk = Chunk.objects.filter(document=document).latest("ordinal").pk
    path = f"/documents/{document.collection.slug}/{document.pk}/"
    return f"{path}?chunk={chunk}&words=crowns#passage"


def _at(rest: str = "") -> str:
    document = _policy()
    return f"/documents/{document.collection.slug}/{document.pk}/{rest}"


def _passage(world: World) -> str:
    return _at(f"?chunk={Chunk.objects.get(document=_policy()).pk}")


def _form(world: World) -> str:
    return _at(f"passages/{Chunk.objects.get(document=_policy()).pk}/")


def _leaflet(world: World, rest: str = "") -> str:
    return f"/documents/{world.leaflets.slug}/{world.leaflet.pk}/{rest}"


STATES = [
    State("gone-passage", lambda world: _leaflet(world, "?chunk=1"), ".note.warn"),
    State("unchanged", lambda world: _leaflet(world, "edits/"), ".blank"),
    State("versions", lambda world: _at(), "#versions", prepare=_versions),
    State("passage", _passage, "#passage"),
    State(
        "page",
        lambda _: _page("dues.pdf"),
        "#page rect.found",
        prepare=_paged,
        light=False,
    ),
    State("no-page", lambda _: _page("torn.pdf"), "#page .missing"),
    State("edit", _form, "textarea"),
    State("compare", lambda world: _at("compare/"), "ins"),
    State("edits", lambda world: _at("edits/"), "del"),
    State("summary", lambda world: f"/summary/document/{_policy().pk}/", ".points"),
    State("summary-of-many", lambda world: "/summary/?kind=summary", ".points"),
    State("not-kept", lambda world: _at(), ".note.warn", prepare=_conflict),
    State(
        "failed",
        lambda world: f"/documents/empty/{Document.objects.get(key='locked').pk}/",
        ".note.bad",
        prepare=_failed,
    ),
    State(
        "upload-for-some",
        lambda world: f"/documents/{world.empty.slug}/upload/",
        ".people input",
        prepare=_colleagues,
    ),
    State("describe-for-some", lambda world: _at("change/"), ".people input"),
    State("runs", lambda world: "/runs/", "h1"),
    State(
        "running",
        lambda world: f"/runs/{IngestionRun.objects.latest('pk').pk}/",
        ".step",
        prepare=_running,
    ),
]
