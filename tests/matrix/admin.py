"""The admin: what curators and whoever runs the site see. Its looks are django-unfold's, which does
not promise little weight."""

from functools import partial

from documents.models import Chunk
from documents.tests.factories import RunFactory
from search.models import SearchLog
from tests.matrix.states import State, World

AdminState = partial(State, light=False)
MAIN = "#main"


def _busy(world: World) -> None:
    RunFactory(collection=world.leaflets, total=2, failed=1)
    for question in ("how to grow plums", "plums", "plums"):
        SearchLog.objects.create(
            workspace=world.workspace,
            user=world.alice,
            query=question,
            mode="hybrid",
            total=0,
            milliseconds=3,
            source="web",
        )


def _chunk(world: World) -> Chunk:
    return world.leaflet.chunks.latest("pk")


STATES = [
    AdminState("index-busy", lambda world: "/admin/", MAIN, prepare=_busy),
    AdminState("documents", lambda world: "/admin/documents/document/", "#result_list"),
    AdminState(
        "document", lambda world: f"/admin/documents/document/{world.leaflet.pk}/change/", MAIN
    ),
    AdminState("chunks", lambda world: "/admin/documents/chunk/", "#result_list"),
    AdminState("chunk", lambda world: f"/admin/documents/chunk/{_chunk(world).pk}/change/", MAIN),
    AdminState("searches", lambda world: "/admin/search/searchlog/", "#result_list"),
    AdminState("changes", lambda world: "/admin/accounts/change/", MAIN),
]
