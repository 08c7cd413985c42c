"""`RagContext`: on whose behalf a request answers, searches or writes, and what it may see."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from accounts.api_keys import ScopeMissing, collections_of, scopes_of
from accounts.models import Workspace
from common import features
from common.errors import NotFound
from documents.models import Collection, Document
from graph.scopes import GraphScope, graph_scope
from inference.cancellation import Cancelled
from memory.scopes import UserScope, scope_of, user_scope
from rag.answering.evidence import passages_from_hits
from rag.events import Passage, SearchedScope
from search.filters import all_of, read_filter
from search.query_options import scope_for, site_scope
from search.results import Hit, Scope

if TYPE_CHECKING:
    from accounts.api import WorkspaceView


class PassageCollector:
    """The passages of one answer, each with the number by which it is cited. Thread-safe: tools of
    a pipeline add passages in parallel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_chunk: dict[int, Passage] = {}

    def collect(self, hits: Iterable[Hit]) -> list[Passage]:
        """Number the hits; passages that are known keep their numbers."""
        return self.add(passages_from_hits(hits))

    def add(self, passages: Iterable[Passage]) -> list[Passage]:
        """Number passages that come from no search; their own numbers are ignored."""
        with self._lock:
            return [
                self._by_chunk.setdefault(
                    passage.chunk_id, replace(passage, number=len(self._by_chunk) + 1)
                )
                for passage in passages
            ]

    @property
    def passages(self) -> list[Passage]:
        """All passages, ordered by number."""
        with self._lock:
            return list(self._by_chunk.values())

    @property
    def by_number(self) -> dict[int, Passage]:
        return {passage.number: passage for passage in self.passages}


@dataclass(frozen=True, slots=True)
class RagContext:
    """Who asks, in which workspace, and how the request limits it: never anything a model said.

    Without `user` it is the site itself, as for a command: it reads everything in the workspace and
    has no memory. `scopes` are those of the API key; None means a session or password, which may do
    all that the user may. `collections` are slugs to limit everything to; empty means all that the
    user sees; `key_collections` are ids of those that the API key is limited to. `memory_user` is
    whose memory is used when a program acts for its own users. Once `cancelled` is set nothing more
    is begun.
    """

    user: Any
    workspace: Workspace
    scopes: frozenset[str] | None = None
    collections: tuple[str, ...] = ()
    filter: Mapping[str, Any] | str | None = None
    memory_user: str | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    key_collections: frozenset[int] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    found: PassageCollector = field(default_factory=PassageCollector)

    @property
    def user_id(self) -> int | None:
        """Of the account; None for the site itself."""
        return self.user.pk if self.user is not None else None

    def allows(self, scope: str) -> bool:
        """Whether the API key, if there is one, has `scope`."""
        return self.scopes is None or scope in self.scopes

    def require(self, scope: str) -> None:
        """Raise ScopeMissing for a key without `scope`."""
        if self.scopes is not None and scope not in self.scopes:
            raise ScopeMissing(scope, has=sorted(self.scopes))

    def check(self) -> None:
        """Raise Cancelled if the request was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled

    def search_scope(
        self, collections: Sequence[str] = (), *, filter: Mapping[str, Any] | str | None = None
    ) -> Scope:
        """The scope of a search: `collections`, or those of the context, as the user sees them.

        Raises NotFound for a collection that does not exist, is not visible to the user or not in
        the context; FilterError; Forbidden for a key that may not read.
        """
        self.require("read")
        outside = [
            slug for slug in collections if self.collections and slug not in self.collections
        ]
        if outside:
            raise NotFound(
                gettext(
                    "There is no collection “{name}” here. The collections are: {collections}."
                ).format(collections=", ".join(self.collections), name=outside[0])
            )
        where = tuple(collections) or self.collections
        if self.user is None:
            scope = site_scope(workspace=self.workspace, collections=where, filter=self.filter)
        else:
            scope = scope_for(
                user=self.user, workspace=self.workspace, collections=where, filter=self.filter
            )
        if filter is None:
            return scope
        return replace(scope, filter=all_of([scope.filter, read_filter(filter)]))

    def describe_search(self, scope: Scope | None = None) -> SearchedScope:
        """What a search in `scope`, by default all of the context, looks at."""
        scope = self.search_scope() if scope is None else scope
        collections = Collection.objects.filter(pk__in=scope.collection_ids).order_by("name", "pk")
        readable = (
            Document.objects.all() if self.user is None else Document.objects.visible_to(self.user)
        )
        searched = readable.current().filter(
            collection__in=scope.collection_ids, status=Document.Status.READY
        )
        return SearchedScope(
            dict(collections.values_list("slug", "name")),
            documents=searched.count(),
            is_filtered=scope.is_filtered,
            is_limited=len(scope.collection_ids) < len(scope.visible_ids),
        )

    @property
    def memory_scope(self) -> UserScope | None:
        """The user whose memory is used; None for no memory. Raises SwitchedOff and Forbidden."""
        features.require("memory")
        self.require("memory")
        if self.user is None:
            return user_scope(workspace=self.workspace, user_id=self.memory_user)
        return scope_of(user=self.user, workspace=self.workspace, user_id=self.memory_user)

    @property
    def graph_scope(self) -> GraphScope:
        """The graph as the user sees it, limited to the context's collections. Raises Forbidden for
        a key that may not read."""
        self.require("read")
        narrowed = self.search_scope().collection_ids if self.collections else None
        return graph_scope(user=self.user, workspace=self.workspace, collection_ids=narrowed)


def context_of_view(
    view: "WorkspaceView", *, collections: Sequence[str] = (), **narrowed: Any
) -> RagContext:
    """The context of an API request: its user, workspace and key; `narrowed` are other fields of
    it."""
    return RagContext(
        user=view.request.user,
        workspace=view.workspace,
        scopes=scopes_of(view.request.auth),
        key_collections=collections_of(view.request.auth),
        collections=tuple(collections),
        **narrowed,
    )
