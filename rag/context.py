"""On whose behalf something is answered, looked up or written."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accounts.models import Workspace
from accounts.permissions import ScopeMissing
from common.errors import NotFound
from graph.scopes import GraphScope, graph_scope
from inference.cancelling import Cancelled
from memory.scopes import UserScope, scope_of, user_scope
from rag.answering.passages import Passage, from_hits
from search.filters import all_of, read_filter
from search.results import Hit, Scope
from search.services import scope_for, site_scope


class Collector:
    """Passages of one answer, each under the one number by which it is cited.

    Tools of a pipeline find some at the same time, in several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_chunk: dict[int, Passage] = {}

    def collect(self, hits: Iterable[Hit]) -> list[Passage]:
        """The hits under their numbers; those that were there before keep theirs."""
        return self.add(from_hits(hits))

    def add(self, passages: Iterable[Passage]) -> list[Passage]:
        """The same with passages that no search found, whatever their numbers."""
        with self._lock:
            return [
                self._by_chunk.setdefault(
                    passage.chunk_id, replace(passage, number=len(self._by_chunk) + 1)
                )
                for passage in passages
            ]

    @property
    def passages(self) -> list[Passage]:
        """All of them, by number."""
        with self._lock:
            return list(self._by_chunk.values())

    @property
    def by_number(self) -> dict[int, Passage]:
        """What a number stands for."""
        return {passage.number: passage for passage in self.passages}


@dataclass(frozen=True, slots=True)
class RagContext:
    """Who asks, where, and what of it the request leaves: never anything that a model said.

    Without `user` it is the site itself, as for a command: it reads everything in the workspace,
    and has no memory.
    `scopes` are those of the API key that the request came with, None where it came with a session
    or password, which may all that the user may. `collections` are slugs that everything is
    narrowed to; none means all that the user sees. `memory_user` is whose memory is used where a
    program acts for its own users. `search_options` are others of `search.services.search`, such
    as its `fusion`, with which tools search where a call does not say otherwise. Once `cancelled`
    is set nothing more is begun.
    """

    user: Any
    workspace: Workspace
    scopes: frozenset[str] | None = None
    collections: tuple[str, ...] = ()
    filter: Mapping[str, Any] | str | None = None
    memory_user: str | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    cancelled: threading.Event = field(default_factory=threading.Event)
    found: Collector = field(default_factory=Collector)

    def allows(self, scope: str) -> bool:
        """Whether the key, if there is one, has `scope`."""
        return self.scopes is None or scope in self.scopes

    def require(self, scope: str) -> None:
        """Raise ScopeMissing for a key that lacks `scope`."""
        if self.scopes is not None and scope not in self.scopes:
            raise ScopeMissing(scope, has=sorted(self.scopes))

    def check(self) -> None:
        """Raise Cancelled where nobody waits for an answer any more."""
        if self.cancelled.is_set():
            raise Cancelled

    def search_scope(
        self, collections: Sequence[str] = (), *, filter: Mapping[str, Any] | str | None = None
    ) -> Scope:
        """What may be searched: `collections`, or those of the context, as the user sees them.

        Raises NotFound for a collection that is not there, not for this user, or not one of the
        context's; FilterError; Forbidden for a key that may not read.
        """
        self.require("read")
        outside = [
            slug for slug in collections if self.collections and slug not in self.collections
        ]
        if outside:
            raise NotFound(
                f"There is no collection “{outside[0]}” here. There are:"
                f" {', '.join(self.collections)}."
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

    @property
    def memory_scope(self) -> UserScope | None:
        """Whose memory is used; None for nobody's. Raises Forbidden."""
        self.require("memory")
        if self.user is None:
            return user_scope(workspace=self.workspace, user_id=self.memory_user)
        return scope_of(user=self.user, workspace=self.workspace, user_id=self.memory_user)

    @property
    def graph_scope(self) -> GraphScope:
        """The graph as the user sees it, of what the collections of the context tell. Raises
        Forbidden for a key that may not read."""
        self.require("read")
        narrowed = self.search_scope().collection_ids if self.collections else None
        return graph_scope(user=self.user, workspace=self.workspace, collection_ids=narrowed)

    def collect(self, hits: Iterable[Hit]) -> list[Passage]:
        """Hits under the numbers by which this answer cites them."""
        return self.found.collect(hits)
