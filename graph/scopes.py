"""Access to a workspace's graph: its scope, and the access conditions for
hand-written SQL, as in `graph.querysets`.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from accounts.models import Membership, Workspace
from accounts.services import principals
from common import features
from common.errors import NotFound
from common.rls import current_collections

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GraphScope:
    """A workspace's graph as `user` may see it; None is the site itself (commands, tasks), without
    access restrictions. `collection_ids`, if given, limit documents, passages and what was
    extracted from them. `is_limited`: to the collections of an API key, whose holder sees nothing
    that people have put in by hand, because that belongs to no collection.
    """

    workspace_id: int
    user: Any | None = None
    collection_ids: tuple[int, ...] | None = None
    is_limited: bool = False


def graph_scope(
    *, user: Any | None, workspace: Workspace, collection_ids: tuple[int, ...] | None = None
) -> GraphScope:
    """What `user` may see of the graph of `workspace`; None is the site itself.

    Raises SwitchedOff where the site has no graph, and NotFound where the user is no member.
    """
    if user is None:
        return GraphScope(workspace.pk, collection_ids=collection_ids)
    features.require("graph")
    member = user.is_active and user.pk is not None
    if not member or not Membership.objects.filter(user=user, workspace=workspace).exists():
        raise NotFound(
            gettext(
                "This workspace does not exist, or you are not a member. Ask one of its owners to"
                " add you."
            )
        )
    limits = current_collections()
    if limits is not None:
        narrowed = limits if collection_ids is None else limits & set(collection_ids)
        collection_ids = tuple(sorted(narrowed))
    return GraphScope(workspace.pk, user, collection_ids, is_limited=limits is not None)


class AccessFilter:
    """Access conditions of a scope as SQL, by table alias; statements must pass its
    `parameters`.
    """

    def __init__(self, scope: GraphScope) -> None:
        self.restricted = scope.user is not None
        self._given = "FALSE" if scope.is_limited else "{alias}.origin = 'given'"
        self._narrowed = scope.collection_ids is not None
        self.parameters: Parameters = {"workspace": scope.workspace_id}
        if scope.collection_ids is not None:
            self.parameters["seen_collections"] = list(scope.collection_ids)
        if scope.user is not None:
            self.parameters["principals"] = principals(scope.user)

    def listed(self, alias: str) -> str:
        """A document or passage of the workspace that the user may read."""
        condition = f"{alias}.workspace_id = %(workspace)s"
        if self._narrowed:
            condition += f" AND {alias}.collection_id = ANY(%(seen_collections)s)"
        if self.restricted:
            condition += (
                f" AND ({alias}.access IS NULL OR {alias}.access && %(principals)s::varchar[])"
            )
        return condition

    def passage(self, alias: str) -> str:
        """A passage of a current version that the user may read."""
        return f"{alias}.is_current AND {self.listed(alias)}"

    def node(self, alias: str) -> str:
        """A given node, or one mentioned in a readable passage; rows of documents and
        passages only if readable.
        """
        return _NODE_SQL.format(
            node=alias,
            given=self._given.format(alias=alias),
            passage=self.passage("seen_chunk"),
            document=self.listed("seen_document"),
        )

    def edge(self, alias: str) -> str:
        """A given edge, or one with evidence in a readable passage. Its ends are
        checked separately.
        """
        return _EDGE_SQL.format(
            edge=alias,
            given=self._given.format(alias=alias),
            passage=self.passage("seen_chunk"),
        )


# Not EXISTS, which PostgreSQL may turn into a list of all visible rows of the workspace.
_NODE_SQL = """{node}.workspace_id = %(workspace)s
    AND ({given} OR (
        SELECT TRUE FROM graph_mention AS seen_mention
        JOIN documents_chunk AS seen_chunk ON seen_chunk.id = seen_mention.chunk_id
        WHERE seen_mention.node_id = {node}.id AND {passage} LIMIT 1))
    AND ({node}.document_id IS NULL OR (
        SELECT TRUE FROM documents_document AS seen_document
        WHERE seen_document.id = {node}.document_id AND {document}))
    AND ({node}.chunk_id IS NULL OR (
        SELECT TRUE FROM documents_chunk AS seen_chunk
        WHERE seen_chunk.id = {node}.chunk_id AND {passage}))"""

_EDGE_SQL = """{edge}.workspace_id = %(workspace)s
    AND ({given} OR (
        SELECT TRUE FROM graph_evidence AS seen_evidence
        JOIN documents_chunk AS seen_chunk ON seen_chunk.id = seen_evidence.chunk_id
        WHERE seen_evidence.edge_id = {edge}.id AND {passage} LIMIT 1))"""
