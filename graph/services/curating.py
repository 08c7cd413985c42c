"""What curators do, who see everything: names of nodes, edges by their rows, reading again."""

from collections.abc import Sequence

from django.db import connection, transaction

from accounts.history import Action, Kind, note_change
from common.deadlocks import despite_deadlocks
from common.errors import Conflict, InvalidInput, NotFound
from documents.models import Collection
from graph import limits
from graph.extraction.forms import form
from graph.listening import GraphListener
from graph.models import Alias, Extraction, Node
from graph.storing.removing import remove_alone

_DELETE_EDGES = (
    "DELETE FROM graph_edge WHERE id = ANY(%s) RETURNING workspace_id, id, source_id, target_id"
)


def add_alias(*, node: Node, name: str) -> Alias:
    """Let texts and questions that say `name` mean the node; nothing new where they do already.

    The name goes with the node. Raises InvalidInput where no letter or digit is in it, Conflict
    where it means another node, and NotFound where the node has gone.
    """
    normal = form(limits.check_name(name, field="form"))
    if not normal:
        raise InvalidInput("A name has at least one letter or digit.", field="form")
    with transaction.atomic():
        held = Node.objects.select_for_update(no_key=True).filter(pk=node.pk).first()
        if held is None:
            raise NotFound("The node has just been removed. Look again which there are.")
        alias, is_new = Alias.objects.select_related("node").get_or_create(
            workspace_id=held.workspace_id, form=normal, defaults={"node": held}
        )
        if is_new:
            _note_aliases(Action.MADE, [alias])
    if alias.node_id != held.pk:
        raise Conflict(
            f"“{normal}” means the node “{alias.node}” already. Remove it there first, or merge"
            " the two."
        )
    return alias


def remove_aliases(*, alias_ids: Sequence[int]) -> int:
    """Let these names mean nothing any more; how many did. Reading a document again that names a
    node by its own id brings that name back."""
    with transaction.atomic():
        rows = list(Alias.objects.filter(pk__in=alias_ids).order_by("pk").select_for_update())
        _note_aliases(Action.DELETED, rows)
        return Alias.objects.filter(pk__in=[row.pk for row in rows]).delete()[0]


def _note_aliases(action: Action, rows: Sequence[Alias]) -> None:
    for workspace in {row.workspace_id for row in rows}:
        note_change(
            action=action,
            kind=Kind.ALIAS,
            workspace_id=workspace,
            thing=[row.pk for row in rows if row.workspace_id == workspace],
        )


def delete_edges(*, edge_ids: Sequence[int]) -> int:
    """Remove edges, with nodes that nobody described and that hung only on them; how many."""
    return despite_deadlocks(lambda: _delete_edges(sorted(edge_ids)))


@transaction.atomic
def _delete_edges(edge_ids: Sequence[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_EDGES, [list(edge_ids)])
        gone = cursor.fetchall()
    for workspace in {row[0] for row in gone}:
        note_change(
            action=Action.DELETED,
            kind=Kind.EDGE,
            workspace_id=workspace,
            thing=[row[1] for row in gone if row[0] == workspace],
        )
    remove_alone({pk for row in gone for pk in row[2:]})
    return len(gone)


@transaction.atomic
def read_again(*, document_ids: Sequence[int]) -> int:
    """Have these documents read for the graph as if they had just come; how many are to be read.

    What is known of them stays until then. Those of collections that are not read are left out.
    """
    GraphListener().loaded(document_ids)
    waiting = Extraction.objects.filter(document__in=document_ids, state=Extraction.State.WAITING)
    return waiting.exclude(collection__graph=Collection.Graph.OFF).count()
