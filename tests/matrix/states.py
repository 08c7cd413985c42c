"""What a state of a page is, and the small world that the states of an area share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.conf import settings as django_settings
from django.test import override_settings
from playwright.sync_api import Page

from accounts.models import Membership, User, Workspace
from documents.models import Collection, Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable
from memory.scopes import UserScope, account_id
from rag.context import RagContext
from rag.tests.asking import OFFICE, TRAVEL, document

T = TypeVar("T")

LEAFLET = [
    "# Aripiprazole\n\nRead all of this leaflet.",
    "## Side effects\n\nCommon side effects:\n\n- nausea\n- restlessness\n\n"
    "| effect | of 100 |\n|:--|--:|\n| nausea | 7 |",
    "## Storing\n\n```\nbelow 30 °C\n```\n\n> Keep out of the reach of children.",
]


class DownEmbedder(HashingEmbedder):
    """A model host that does not answer questions."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        """Nothing."""
        raise BackendUnavailable("the model host does not answer; start it.")


class StateSettings:
    """Django's settings; what is assigned to one holds until the state has been looked at."""

    def __init__(self, until_next: ExitStack) -> None:
        object.__setattr__(self, "_until_next", until_next)

    def __getattr__(self, name: str) -> Any:
        return getattr(django_settings, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._until_next.enter_context(override_settings(**{name: value}))


@dataclass
class World:
    """Alice, who owns a workspace and may use the admin, and what is in it.

    Rows are made anew for each area; the states of an area are looked at in their order and see
    what those before them prepared. Settings and contexts of a state hold for that state alone.
    """

    membership: Membership
    leaflets: Collection  # 15 documents by factories; the last is `leaflet`, with three passages
    office: Collection  # two small Markdown documents, ingested
    empty: Collection
    leaflet: Document
    _until_next: ExitStack = field(default_factory=ExitStack)

    @property
    def alice(self) -> User:
        """Who looks."""
        return self.membership.user

    @property
    def workspace(self) -> Workspace:
        """Hers, which the pages show."""
        return self.membership.workspace

    @property
    def asking(self) -> RagContext:
        """With which her questions are answered by services."""
        return RagContext(user=self.alice, workspace=self.workspace)

    @property
    def memory(self) -> UserScope:
        """Hers."""
        return UserScope(self.workspace.pk, account_id(self.alice))

    @property
    def settings(self) -> StateSettings:
        """To assign to: `world.settings.MAX_UPLOAD_BYTES = 10`."""
        return StateSettings(self._until_next)

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter a context that is left when the state has been looked at: a stub server, say."""
        return self._until_next.enter_context(context)

    def without_embedder(self) -> None:
        """Questions are compared by their words alone while the state is looked at."""
        down = {"default": {"BACKEND": f"{__name__}.{DownEmbedder.__name__}"}}
        self.settings.INFERENCE = {**self.settings.INFERENCE, "embedder": down, "reranker": {}}

    def next(self) -> None:
        """The state is over."""
        self._until_next.close()


@dataclass(frozen=True)
class State:
    """A page as somebody may find it.

    `path` is asked for after `prepare`, which changes rows or settings; `act` then does in the
    page what leads to the state (types, clicks, holds a request back by `page.route`). The state is
    reached when something that `ready` selects is visible.
    """

    name: str
    path: Callable[[World], str]
    ready: str
    login: bool = True
    prepare: Callable[[World], None] | None = None
    act: Callable[[Page], None] | None = None
    status: int = 200  # what the server answers the page with
    light: bool = True  # weighs less than 100 kB with all it loads; False only where a drawing is
    expected: tuple[str, ...] = ()  # parts of console errors that this state must provoke


def make_world() -> World:
    """Alice and her small corpus, committed."""
    member: Membership = MembershipFactory(
        user=UserFactory(username="alice", is_superuser=True),
        workspace__name="Harbour office",
        workspace__slug="harbour-office",
    )
    leaflets = CollectionFactory(
        workspace=member.workspace,
        slug="leaflets",
        name="Leaflets",
        description="Package leaflets of medicines.",
    )
    office = CollectionFactory(workspace=member.workspace, slug="office", name="Office")
    document(office, "move.md", OFFICE)
    document(office, "travel.md", TRAVEL)
    return World(
        membership=member,
        leaflets=leaflets,
        office=office,
        empty=CollectionFactory(workspace=member.workspace, slug="empty", name="Empty"),
        leaflet=_leaflets(leaflets),
    )


def _leaflets(collection: Collection) -> Document:
    for number in range(14):
        other = DocumentFactory(collection=collection, title=f"Medicine {number}")
        ChunkFactory(document=other, heading_path=["Possible side effects"], page=number)
    leaflet = DocumentFactory(
        collection=collection,
        title="Aripiprazole",
        key="leaflets/aripiprazole.md",
        media_type="text/markdown",
        rendering="markdown",
        metadata={"year": 2026},
    )
    start = 0
    for text in LEAFLET:
        ChunkFactory(document=leaflet, text=text, start=start, context="Side effects")
        start += len(text) + 2
    return Document.objects.get(pk=leaflet.pk)
