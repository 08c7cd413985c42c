"""API of members, groups and invitations, for owners of the workspace."""

from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.urls import reverse
from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.api.base import ResourceViewSet, operation
from accounts.groups import (
    MAX_EXTERNAL_NAME_CHARACTERS,
    MAX_EXTERNAL_NAMES,
    MAX_NAME_CHARACTERS,
    create_group,
    delete_group,
    set_groups,
    set_members,
    update_group,
)
from accounts.invitations import (
    MAX_USES,
    create_invitation,
    mail_is_sent,
    revoke_invitation,
    send_invitation,
)
from accounts.members import change_role, remove_member, require_owner, set_external_names
from accounts.models import (
    GroupMember,
    Invitation,
    Membership,
    Role,
    Scope,
    WorkspaceGroup,
)
from common.errors import Conflict
from common.serializers import MAX_ID, ReadOnlyModelSerializer, StrictSerializer, UsernameField

ROLES = "`viewer` reads, `editor` also changes documents, `owner` also manages members."
EXTERNAL_NAMES = "What other systems call it: sign-ins, and sources of documents."


def _ids(help_text: str, **options: Any) -> serializers.ListField:
    child = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    return serializers.ListField(child=child, max_length=1_000, help_text=help_text, **options)


def _names(**options: Any) -> serializers.ListField:
    child = serializers.CharField(max_length=MAX_EXTERNAL_NAME_CHARACTERS)
    return serializers.ListField(
        child=child, max_length=MAX_EXTERNAL_NAMES, help_text=EXTERNAL_NAMES, **options
    )


class OwnerViewSet(ResourceViewSet):
    """What owners of a workspace manage; others are refused."""

    tag = "members"
    required_scope = Scope.ADMIN

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_owner(user=request.user, workspace=self.workspace)

    def in_workspace(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(workspace=self.workspace)


class MemberSerializer(ReadOnlyModelSerializer[Membership]):
    """A user's role and groups in the workspace."""

    user = serializers.IntegerField(
        source="user_id", help_text="Id of the user, which access lists contain as `user:ID`."
    )
    username = serializers.CharField(source="user.username")
    email = serializers.CharField(source="user.email")
    role = serializers.ChoiceField(choices=Role.choices, help_text=ROLES)
    groups = serializers.SerializerMethodField()

    class Meta:
        model = Membership
        fields = [
            *("id", "user", "username", "email", "role", "groups", "external_names"),
            "created_at",
        ]
        extra_kwargs = {"external_names": {"help_text": EXTERNAL_NAMES}}

    def get_groups(self, row: Membership) -> list[int]:
        """Ids of the groups that the member is in."""
        return sorted({each.group_id for each in row.group_members.all()})


class MemberInput(StrictSerializer):
    """The fields that can be changed."""

    role = serializers.ChoiceField(choices=Role.choices, help_text=ROLES)
    groups = _ids("Ids of exactly the groups to be in. Those of a sign-in stay.")
    external_names = _names()


class MemberViewSet(OwnerViewSet):
    """Members of the workspace."""

    nouns = ("member", "members")
    queryset = Membership.objects.select_related("user", "workspace").prefetch_related(
        "group_members"
    )
    serializer_class = MemberSerializer

    @operation(takes=MemberInput, errors=(409,))
    def partial_update(self, membership: Membership, **values: Any) -> None:
        """Change role, groups or names of a member.

        It applies from their next request on. The last owner stays one: 409.
        """
        with transaction.atomic():
            if "role" in values:
                change_role(membership=membership, role=values["role"])
            if "groups" in values:
                set_groups(membership=membership, group_ids=values["groups"])
            if "external_names" in values:
                set_external_names(membership=membership, names=values["external_names"])

    @operation(errors=(409,))
    def destroy(self, membership: Membership) -> None:
        """Remove a member.

        From their next request on they see nothing of the workspace; their API keys here end, and
        so do invitations that they made or used. Their content stays. The last owner cannot be
        removed: 409.
        """
        remove_member(membership=membership)


class GroupSerializer(ReadOnlyModelSerializer[WorkspaceGroup]):
    """Some members of the workspace, named together in access lists."""

    id = serializers.IntegerField(source="pk", help_text="Access lists contain it as `group:ID`.")
    members = serializers.SerializerMethodField()

    class Meta:
        model = WorkspaceGroup
        fields = ["id", "name", "external_names", "members", "created_at"]
        extra_kwargs = {"external_names": {"help_text": EXTERNAL_NAMES}}

    def get_members(self, row: WorkspaceGroup) -> list[int]:
        """Ids of the users in it."""
        return sorted({each.membership.user_id for each in row.members.all()})


class GroupInput(StrictSerializer):
    """Name, other names and members of a group."""

    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS)
    external_names = _names(required=False)
    members = _ids("Ids of exactly the users to be in it. Those of a sign-in stay.", required=False)


class GroupViewSet(OwnerViewSet):
    """Groups of the workspace."""

    nouns = ("group", "groups")
    serializer_class = GroupSerializer
    ordering = "-group"

    def get_queryset(self) -> QuerySet[WorkspaceGroup]:
        # No class attribute: its primary key would name the parameter of the address.
        rows = WorkspaceGroup.objects.visible_to(self.request.user).select_related("workspace")
        inside = Prefetch("members", GroupMember.objects.select_related("membership"))
        return self.in_workspace(rows.prefetch_related(inside))

    @operation(takes=GroupInput, status=201, errors=(409,))
    def create(self, *, members: Any = (), **values: Any) -> Any:
        """Create a group."""
        with transaction.atomic():
            group = create_group(workspace=self.workspace, **values)
            set_members(group=group, user_ids=members)
        return self.reloaded(group)

    @operation(takes=GroupInput, errors=(409,))
    def partial_update(self, group: WorkspaceGroup, *, members: Any = None, **values: Any) -> None:
        """Rename a group, or set its members.

        People who are no longer in it lose its access from their next request on.
        """
        with transaction.atomic():
            update_group(group=group, **values)
            if members is not None:
                set_members(group=group, user_ids=members)

    @operation(errors=(409,))
    def destroy(self, group: WorkspaceGroup) -> None:
        """Delete a group.

        409 while documents or sources are shared with it.
        """
        delete_group(group=group)


class InvitationSerializer(ReadOnlyModelSerializer[Invitation]):
    """A link that makes who opens it a member, without the link."""

    email = serializers.CharField(help_text="The address that the link was sent to; empty if none.")
    role = serializers.ChoiceField(choices=Role.choices, help_text=ROLES)
    created_by = UsernameField(help_text="Who created it.")
    is_open = serializers.BooleanField(help_text="Neither revoked, expired nor used up.")

    class Meta:
        model = Invitation
        fields = [
            *("id", "role", "groups", "email", "max_uses", "uses", "is_open"),
            *("created_by", "created_at", "expires_at", "revoked_at"),
        ]


class InvitationWithLinkSerializer(InvitationSerializer):
    """A new invitation with its link."""

    url = serializers.URLField(help_text="The link. It is shown only once and stored nowhere.")

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "url"]


class NewInvitationSerializer(StrictSerializer):
    """What who accepts it becomes, and how long and often it works."""

    role = serializers.ChoiceField(choices=Role.choices, default=Role.VIEWER, help_text=ROLES)
    groups = _ids("Ids of groups to be in.", required=False)
    expires_at = serializers.DateTimeField(
        required=False, help_text="When it ends, within 90 days. Default: in a week."
    )
    max_uses = serializers.IntegerField(
        min_value=1,
        max_value=MAX_USES,
        allow_null=True,
        default=1,
        help_text="How many people can use it. Null: any number.",
    )
    email = serializers.EmailField(
        required=False, help_text="Send the link to this address. 409 if the site sends no mail."
    )


class InvitationViewSet(OwnerViewSet):
    """Invitations to the workspace."""

    nouns = ("invitation", "invitations")
    queryset = Invitation.objects.select_related("created_by")
    serializer_class = InvitationSerializer

    @operation(
        takes=NewInvitationSerializer,
        gives=InvitationWithLinkSerializer,
        status=201,
        errors=(409,),
        shows_secret=True,
    )
    def create(self, **values: Any) -> Invitation:
        """Invite people.

        People who open the link join with their account, or create one there.
        """
        if values.get("email") and not mail_is_sent():
            raise Conflict(
                gettext("This site does not send mail. Leave `email` out and pass on the link.")
            )
        invitation, token = create_invitation(
            workspace=self.workspace, user=self.request.user, **values
        )
        url = self.request.build_absolute_uri(reverse("join", args=[token]))
        if invitation.email and (failure := send_invitation(invitation=invitation, url=url)):
            revoke_invitation(invitation=invitation)
            raise Conflict(
                gettext(
                    "The mail could not be sent: {failure}. Try again, or without `email`."
                ).format(failure=failure)
            )
        invitation.url = url  # type: ignore[attr-defined]  # for this answer alone
        return invitation

    @action(detail=True, methods=["post"])
    @operation()
    def revoke(self, invitation: Invitation) -> Invitation:
        """Revoke an invitation.

        Nobody can join with it from then on. Revoking it again gives the same answer.
        """
        return revoke_invitation(invitation=invitation)
