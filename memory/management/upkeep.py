"""What `manage.py memory` does for all users: pruning, embedding, the queue of extraction."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from common.showing import Shown, table_of
from common.wording import counted
from documents.management.naming import workspace_named
from memory import services
from memory.embedding import embed_waiting
from memory.management.rows import item_of, pruning_of, size_in_words
from memory.models import Context, ExtractionItem, Fact

Options = Mapping[str, Any]
PARTLY = 1
State = ExtractionItem.State


def prune(options: Options) -> Shown:
    """What exceeds the quotas, of all users."""
    done = services.prune()
    rows = [
        (str(row.workspace_id), row.user_id, row.rows, size_in_words(row.bytes), row.reason)
        for row in done
    ]
    heads = ("workspace", "user", "contexts", "bytes", "quota")
    return Shown(
        [pruning_of(row) for row in done],
        (
            f"Removed {counted(sum(row.rows for row in done), 'context')}"
            f" of {counted(len(done), 'user')}.",
        ),
        table_of(heads, rows) if rows else None,
    )


def embed(options: Options) -> Shown:
    """What waits for a vector, of all users."""
    done = embed_waiting()
    left = sum(model.objects.unembedded().count() for model in (Context, Fact))
    told = (f"{done:,} embedded", *([f"{left:,} were refused by the model"] if left else []))
    return Shown(
        {"embedded": done, "refused": left}, (", ".join(told),), code=PARTLY if left else 0
    )


def extractions(options: Options) -> Shown:
    """The queue, those that were given up first; or these tried again."""
    rows = _items(options)
    if options["retry"] is not None:
        dead = rows.filter(state=State.DEAD)
        wanted = dead.filter(pk__in=options["retry"]) if options["retry"] else dead
        ids = list(wanted.values_list("pk", flat=True))
        retried = services.retry_extractions(item_ids=ids)
        return Shown({"retried": retried}, (f"{retried:,} are in the queue again",))
    shown = list(rows.order_by("state", "due_at", "pk")[: max(options["n"], 0)])
    cells = [
        (str(row.pk), row.state, row.workspace.slug, row.user_id, row.key, row.attempts, row.error)
        for row in shown
    ]
    heads = ("id", "state", "workspace", "user", "conversation", "attempts", "error")
    return Shown(
        [item_of(row) for row in shown],
        (f"{len(shown):,} of {rows.count():,}",),
        table_of(heads, cells) if cells else None,
    )


def _items(options: Options) -> QuerySet[ExtractionItem]:
    rows = ExtractionItem.objects.select_related("workspace").defer("messages", "taken")
    if options["workspace"] is not None:
        rows = rows.filter(workspace=workspace_named(options["workspace"]))
    if options["user"] is not None:
        rows = rows.filter(user_id=options["user"])
    if options["state"] is not None:
        return rows.filter(state=options["state"])
    return rows.exclude(state=State.IDLE)
