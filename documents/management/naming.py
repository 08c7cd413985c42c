"""Collections as commands name them: by workspace and slug."""

from accounts.models import Workspace
from common.errors import NotFound
from documents import services
from documents.models import Collection


def collection_named(*, workspace: str, slug: str) -> Collection:
    """The collection; raises NotFound, and makes no workspace, for a name that is misspelt."""
    found = Workspace.objects.filter(slug=workspace).first()
    if found is None:
        slugs = ", ".join(Workspace.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise NotFound(f"There is no workspace “{workspace}”. There are: {slugs or 'none yet'}.")
    return services.get_collection(workspace=found, slug=slug)
