"""Where a page's search looks."""

from django.http import HttpRequest

from accounts.models import Workspace
from search.forms import SearchState
from search.results import Scope
from search.services import scope_for


def scope_of(request: HttpRequest, workspace: Workspace, state: SearchState) -> Scope:
    """What the state narrows to, of what the user may see. Raises NotFound and FilterError."""
    return scope_for(
        user=request.user,
        workspace=workspace,
        collections=state.collections,
        filter=state.filter,
        media_types=state.types,
    )
