"""Choosing which workspace the pages show."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from accounts.choosing import choose_workspace
from accounts.services import can_edit
from common.errors import InvalidInput
from common.web import page


@require_POST
@page
def choose(request: HttpRequest) -> HttpResponse:
    """Show the posted workspace, on the page `next`: the form leaves it out where that shows a
    thing of the former workspace."""
    slug = request.POST.get("workspace", "")
    if not slug:
        raise InvalidInput("No workspace was chosen. Choose one from the menu.")
    chosen = choose_workspace(request, slug=slug)
    may_edit = can_edit(user=request.user, workspace=chosen)
    messages.success(
        request,
        f"This is {chosen} now."
        if may_edit
        else f"This is {chosen} now. You may read here; an owner can let you edit.",
    )
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        target, {request.get_host()}, require_https=request.is_secure()
    )
    return redirect(target if is_ours else "search")
