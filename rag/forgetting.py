"""What answers and runs hold of a user's memory goes with it."""

from django.utils import timezone

from memory.scopes import UserScope, account_of
from rag.models import Message, Span, Trace
from rag.storing import emptied
from rag.tools.borrowed import MEMORY_NAMES


def forget_memory(scope: UserScope) -> None:
    """Empty what was made with this memory.

    Conversations are the account's own. Of a user that a program named, nothing tells whose memory
    a tool read: all runs of the workspace that asked it are emptied.
    """
    account = account_of(scope)
    if account is not None:
        rows = Message.objects.filter(
            workspace_id=scope.workspace_id, conversation__user_id=account, memory__isnull=False
        )
        rows.update(**emptied())
    read = Span.objects.filter(kind=Span.Kind.TOOL, type__in=list(MEMORY_NAMES))
    runs = Trace.objects.filter(workspace_id=scope.workspace_id, pk__in=read.values("trace"))
    if account is not None:
        runs = runs.filter(user_id=account)
    ids = list(runs.values_list("pk", flat=True))
    Span.objects.filter(trace__in=ids).update(input="", output="", error="")
    Trace.objects.filter(pk__in=ids).update(
        answer="", error="", documents=[], removed_at=timezone.now()
    )
