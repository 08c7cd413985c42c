"""On whose behalf a request asks."""

from collections.abc import Sequence
from typing import Any

from accounts.api import WorkspaceView
from accounts.keys import scopes_of
from rag.context import RagContext


def context_of(
    view: WorkspaceView, *, collections: Sequence[str] = (), **narrowed: Any
) -> RagContext:
    """The caller's user, workspace and key; `narrowed` are other fields of the context."""
    return RagContext(
        user=view.request.user,
        workspace=view.workspace,
        scopes=scopes_of(view.request.auth),
        collections=tuple(collections),
        **narrowed,
    )
