"""Pages of members, groups and invitations, and the page that an invitation leads to."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.db import transaction
from django.db.models import Count, Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.audit import Action, Channel, Kind, acting, record_change
from accounts.current_workspace import SESSION_KEY, request_workspace
from accounts.groups import (
    create_group,
    delete_group,
    set_groups,
    set_members,
    update_group,
)
from accounts.invitations import (
    accept_invitation,
    create_invitation,
    open_invitation,
    revoke_invitation,
    send_invitation,
)
from accounts.member_forms import GroupForm, InvitationForm, MemberForm, NewAccountForm
from accounts.members import change_role, is_owner, remove_member, require_owner, set_external_names
from accounts.models import GroupMember, Invitation, Membership, User, Workspace, WorkspaceGroup
from accounts.rate_limits import count_invitation_attempt
from common.errors import NotFound, RagsiteError
from common.rls import bypass_rls
from common.web import error_page, errors_in_form, login_required_page

LISTED_INVITATIONS = 100


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def members(request: HttpRequest) -> HttpResponse:
    """Members and groups; for owners also invitations. The answer to the form of a new one shows
    its link without a redirect, because it would have to be stored until then."""
    workspace = request_workspace(request)
    owns = is_owner(user=request.user, workspace=workspace)
    form, made = None, None
    if owns or request.method == "POST":
        require_owner(user=request.user, workspace=workspace)
        form = InvitationForm(
            request.POST if request.method == "POST" else None, workspace=workspace
        )
        made = _create_invitation(request, workspace, form) if form.is_valid() else None
    people = workspace.memberships.select_related("user").order_by("user__username")
    teams = GroupMember.objects.select_related("group").order_by("group__name")
    invitations = Invitation.objects.filter(workspace=workspace).select_related("created_by")
    context = {
        "members": people.prefetch_related(Prefetch("group_members", teams)),
        "groups": workspace.groups.annotate(
            member_count=Count("members__membership", distinct=True)
        ),
        "owns": owns,
        "invitations": invitations[:LISTED_INVITATIONS] if owns else (),
        "form": InvitationForm(None, workspace=workspace) if made else form,
        "made": made,
    }
    status = 400 if form is not None and form.errors else 200
    answer = render(request, "accounts/members.html", context, status=status)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _create_invitation(
    request: HttpRequest, workspace: Workspace, form: InvitationForm
) -> dict[str, Any] | None:
    """The invitation and its link, which no other page ever shows; None where it is refused."""
    given = form.cleaned_data
    with errors_in_form(form):
        invitation, token = create_invitation(
            workspace=workspace,
            user=request.user,
            role=given["role"],
            groups=given.get("groups", ()),
            expires_at=form.expires_at(),
            max_uses=form.max_uses(),
            email=given.get("email", ""),
        )
    if form.errors:
        return None
    url = request.build_absolute_uri(reverse("join", args=[token]))
    failure = send_invitation(invitation=invitation, url=url) if invitation.email else ""
    return {"invitation": invitation, "url": url, "failure": failure}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def member(request: HttpRequest, pk: int) -> HttpResponse:
    """Role and groups of a member."""
    membership = _own_workspace_member(request, pk)
    form = MemberForm(request.POST if request.method == "POST" else None, membership=membership)
    if form.is_valid():
        with errors_in_form(form), transaction.atomic():
            change_role(membership=membership, role=form.cleaned_data["role"])
            set_groups(membership=membership, group_ids=form.cleaned_data.get("groups", ()))
            set_external_names(membership=membership, names=form.cleaned_data["external_names"])
        if not form.errors:
            messages.success(
                request,
                gettext("Changed for {user}, effective immediately.").format(user=membership.user),
            )
            return redirect("members")
    claimed = membership.group_members.exclude(source="").select_related("group")
    context = {"membership": membership, "form": form, "claimed": claimed}
    return render(request, "accounts/member.html", context, status=400 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def member_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST end the membership. Members may leave themselves."""
    workspace = request_workspace(request)
    membership = (
        Membership.objects.filter(workspace=workspace, pk=pk).select_related("user").first()
    )
    if membership is None or membership.user_id != request.user.pk:
        membership = _own_workspace_member(request, pk)
    if request.method == "POST":
        remove_member(membership=membership)
        messages.success(
            request,
            gettext("{user} is no longer a member of {workspace}.").format(
                user=membership.user, workspace=workspace
            ),
        )
        return redirect("search" if membership.user_id == request.user.pk else "members")
    return render(request, "accounts/member_remove.html", {"membership": membership})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def group_new(request: HttpRequest) -> HttpResponse:
    """The form of a new group."""
    workspace = request_workspace(request)
    require_owner(user=request.user, workspace=workspace)
    return _group_page(request, workspace, None)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def group(request: HttpRequest, pk: int) -> HttpResponse:
    """The form of a group."""
    found = _own_workspace_group(request, pk)
    return _group_page(request, found.workspace, found)


def _group_page(
    request: HttpRequest, workspace: Workspace, found: WorkspaceGroup | None
) -> HttpResponse:
    posted = request.POST if request.method == "POST" else None
    form = GroupForm(posted, workspace=workspace, group=found)
    if form.is_valid():
        given = form.cleaned_data
        names = {"name": given["name"], "external_names": given["external_names"]}
        with errors_in_form(form), transaction.atomic():
            kept = (
                create_group(workspace=workspace, **names)
                if found is None
                else update_group(group=found, **names)
            )
            set_members(group=kept, user_ids=given["members"])
        if not form.errors:
            messages.success(request, gettext("“{group}” is saved.").format(group=given["name"]))
            return redirect("members")
    claimed = found.members.exclude(source="").select_related("membership__user") if found else ()
    context = {"group": found, "form": form, "claimed": claimed}
    return render(request, "accounts/group.html", context, status=400 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def group_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST delete the group."""
    found = _own_workspace_group(request, pk)
    if request.method == "POST":
        delete_group(group=found)
        messages.success(request, gettext("“{group}” is deleted.").format(group=found))
        return redirect("members")
    return render(request, "accounts/group_delete.html", {"group": found})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def invitation_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST revoke the invitation."""
    workspace = request_workspace(request)
    require_owner(user=request.user, workspace=workspace)
    found = Invitation.objects.filter(workspace=workspace, pk=pk).first()
    if found is None:
        raise NotFound(gettext("This invitation does not exist."))
    if request.method == "POST":
        revoke_invitation(invitation=found)
        messages.success(request, gettext("The link no longer works."))
        return redirect("members")
    return render(request, "accounts/invitation_revoke.html", {"invitation": found})


def _own_workspace_member(request: HttpRequest, pk: int) -> Membership:
    """A member of the workspace that the user owns. Raises Forbidden and NotFound."""
    workspace = request_workspace(request)
    require_owner(user=request.user, workspace=workspace)
    rows = Membership.objects.filter(workspace=workspace, pk=pk)
    found = rows.select_related("user", "workspace").first()
    if found is None:
        raise NotFound(gettext("This member does not exist."))
    return found


def _own_workspace_group(request: HttpRequest, pk: int) -> WorkspaceGroup:
    workspace = request_workspace(request)
    require_owner(user=request.user, workspace=workspace)
    found = workspace.groups.filter(pk=pk).first()
    if found is None:
        raise NotFound(gettext("This group does not exist."))
    return found


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """What an invitation leads to. Who is logged in joins with one click, others log in or make an
    account first. Nothing of the workspace is told but its name and who invites."""
    try:
        invitation = open_invitation(token)
        posted = request.POST if request.method == "POST" else None
        if request.user.is_authenticated:
            if posted is not None:
                return _joined(request, token, request.user)
            form = None
        else:
            if posted is not None:
                count_invitation_attempt(request)
            form = NewAccountForm(posted, invitation=invitation)
            if form.is_valid():
                with bypass_rls(), transaction.atomic():  # of nobody yet
                    return _joined(request, token, form.save(), is_new_account=True)
    except RagsiteError as error:
        if error.status == 404:
            # Who has used it up themselves, such as by clicking twice, is a member.
            if request.user.is_authenticated and request.method == "POST":
                try:
                    return _joined(request, token, request.user)
                except NotFound:
                    pass
            count_invitation_attempt(request)
            return error_page(request, status=error.status, message=str(error))
        return error_page(request, status=error.status, message=str(error))
    answer = render(
        request,
        "accounts/join.html",
        {"invitation": invitation, "form": form, "here": reverse("join", args=[token])},
        status=400 if form is not None and form.errors else 200,
    )
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _joined(
    request: HttpRequest, token: str, user: User, *, is_new_account: bool = False
) -> HttpResponse:
    with acting(channel=Channel.PAGE, user=user):
        membership, is_new = accept_invitation(token=token, user=user)
        with bypass_rls():  # the request began before there was the membership
            workspace = membership.workspace
            if is_new_account:
                record_change(
                    action=Action.MADE,
                    kind=Kind.USER,
                    workspace_id=workspace.pk,
                    object_id=user.pk,
                )
                login(request, user, backend="accounts.backends.AccountBackend")
    request.session[SESSION_KEY] = workspace.slug
    text = gettext("Welcome to {workspace}.") if is_new else gettext("You are in {workspace}.")
    messages.success(request, text.format(workspace=workspace))
    return redirect("search")
