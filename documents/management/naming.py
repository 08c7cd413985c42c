"""Workspaces and collections as commands name them: by slug."""

from accounts.models import Workspace
from common.errors import NotFound
from documents import services
from documents.models import Collection


def collection_named(*, workspace: str, slug: str) -> Collection:
    """The collection; raises NotFound, and makes no workspace, for a name that is misspelt."""
    return services.get_collection(workspace=workspace_named(workspace), slug=slug)


def workspace_named(slug: str) -> Workspace:
    """The workspace; raises NotFound that names those there are."""
    found = Workspace.objects.filter(slug=slug).first()
    if found is None:
        slugs = ", ".join(Workspace.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise NotFound(f"There is no workspace “{slug}”. There are: {slugs or 'none yet'}.")
    return found
