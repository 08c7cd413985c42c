"""API of members, groups and invitations, for owners of the workspace."""

from typing import Any

from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.urls import reverse
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet
from accounts.groups import (
    MAX_EXTERNAL_NAME_CHARACTERS,
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
from common.api import ErrorSerializer
from common.errors import Conflict
from common.openapi import load_examples
from common.serializers import MAX_ID, ReadOnlyModelSerializer, StrictSerializer

examples = load_examples("accounts.api")
ROLES = "`viewer` reads, `editor` also changes documents, `owner` also manages members."
EXTERNAL_NAMES = "What other systems call it: sign-ins, and sources of documents."


def _ids(help_text: str, **options: Any) -> serializers.ListField:
    child = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    return serializers.ListField(child=child, max_length=1_000, help_text=help_text, **options)


def _names(**options: Any) -> serializers.ListField:
    child = serializers.CharField(max_length=MAX_EXTERNAL_NAME_CHARACTERS)
    return serializers.ListField(child=child, max_length=50, help_text=EXTERNAL_NAMES, **options)


class OwnerViewSet(WorkspaceViewSet):
    """What owners of a workspace manage; others are refused."""

    required_scope = Scope.ADMIN
    lookup_value_converter = "int"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_owner(user=request.user, workspace=self.workspace)


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


@extend_schema(tags=["members"])
class MemberViewSet(ListModelMixin, RetrieveModelMixin, OwnerViewSet):
    """Members of the workspace."""

    summaries = {"list": "List the members", "retrieve": "Read a member"}
    serializer_class = MemberSerializer

    def get_queryset(self) -> QuerySet[Membership]:
        rows = Membership.objects.visible_to(self.request.user).filter(workspace=self.workspace)
        return rows.select_related("user", "workspace").prefetch_related("group_members")

    @extend_schema(
        summary="Change role, groups or names of a member",
        description="It applies from their next request on. The last owner stays one: 409.",
        request=MemberInput,
        responses={200: MemberSerializer, 409: ErrorSerializer},
        examples=[examples.MEMBER],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        membership: Membership = self.get_object()
        values = self.validated(MemberInput, partial=True)
        with transaction.atomic():
            if "role" in values:
                change_role(membership=membership, role=values["role"])
            if "groups" in values:
                set_groups(membership=membership, group_ids=values["groups"])
            if "external_names" in values:
                set_external_names(membership=membership, names=values["external_names"])
        return self.answer(self.get_object())

    @extend_schema(
        summary="Remove a member",
        description="From their next request on they see nothing of the workspace; their API"
        " keys here end, and so do invitations that they made or used. Their"
        " content stays. The last owner cannot be removed: 409.",
        responses={204: None, 409: ErrorSerializer},
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        remove_member(membership=self.get_object())
        return Response(status=204)


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


@extend_schema(tags=["members"])
class GroupViewSet(ListModelMixin, RetrieveModelMixin, OwnerViewSet):
    """Groups of the workspace."""

    summaries = {"list": "List the groups", "retrieve": "Read a group"}
    serializer_class = GroupSerializer
    ordering = "-group"

    def get_queryset(self) -> QuerySet[WorkspaceGroup]:
        rows = WorkspaceGroup.objects.visible_to(self.request.user).filter(workspace=self.workspace)
        inside = GroupMember.objects.select_related("membership")
        return rows.select_related("workspace").prefetch_related(Prefetch("members", inside))

    @extend_schema(
        summary="Create a group",
        request=GroupInput,
        responses={201: GroupSerializer, 409: ErrorSerializer},
        examples=[examples.NEW_GROUP],
    )
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(GroupInput)
        members = values.pop("members", ())
        with transaction.atomic():
            group = create_group(workspace=self.workspace, **values)
            set_members(group=group, user_ids=members)
        return self.answer(self.get_queryset().get(pk=group.pk), status=201)

    @extend_schema(
        summary="Rename a group, or set its members",
        description="People who are no longer in it lose its access from their next request on.",
        request=GroupInput,
        responses={200: GroupSerializer, 409: ErrorSerializer},
        examples=[examples.GROUP_MEMBERS],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        group: WorkspaceGroup = self.get_object()
        values = self.validated(GroupInput, partial=True)
        members = values.pop("members", None)
        with transaction.atomic():
            update_group(group=group, **values)
            if members is not None:
                set_members(group=group, user_ids=members)
        return self.answer(self.get_object())

    @extend_schema(
        summary="Delete a group",
        description="409 while documents or sources are shared with it.",
        responses={204: None, 409: ErrorSerializer},
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        delete_group(group=self.get_object())
        return Response(status=204)


class InvitationSerializer(ReadOnlyModelSerializer[Invitation]):
    """A link that makes who opens it a member, without the link."""

    email = serializers.CharField(help_text="The address that the link was sent to; empty if none.")
    role = serializers.ChoiceField(choices=Role.choices, help_text=ROLES)
    created_by = serializers.CharField(
        source="created_by.username", default=None, allow_null=True, help_text="Who created it."
    )
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


@extend_schema(tags=["members"])
class InvitationViewSet(ListModelMixin, RetrieveModelMixin, OwnerViewSet):
    """Invitations to the workspace."""

    summaries = {
        "list": "List invitations, newest first",
        "retrieve": "Read an invitation, without its link",
    }
    serializer_class = InvitationSerializer

    def get_queryset(self) -> QuerySet[Invitation]:
        rows = Invitation.objects.visible_to(self.request.user).filter(workspace=self.workspace)
        return rows.select_related("created_by")

    # Not `idempotent`: a stored answer would keep the link.
    @extend_schema(
        summary="Invite people",
        description="People who open the link join with their account, or create one there.",
        request=NewInvitationSerializer,
        responses={201: InvitationWithLinkSerializer, 409: ErrorSerializer},
        examples=[examples.NEW_INVITATION],
    )
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewInvitationSerializer)
        if values.get("email") and not mail_is_sent():
            raise Conflict(
                gettext("This site does not send mail. Leave `email` out and pass on the link.")
            )
        invitation, token = create_invitation(workspace=self.workspace, user=request.user, **values)
        url = request.build_absolute_uri(reverse("join", args=[token]))
        if invitation.email and (failure := send_invitation(invitation=invitation, url=url)):
            revoke_invitation(invitation=invitation)
            raise Conflict(
                gettext(
                    "The mail could not be sent: {failure}. Try again, or without `email`."
                ).format(failure=failure)
            )
        shown = InvitationSerializer(invitation, context=self.get_serializer_context()).data
        return Response({**shown, "url": url}, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(
        summary="Revoke an invitation",
        description="Nobody can join with it from then on. Revoking it again gives the same"
        " answer.",
        request=None,
    )
    @action(detail=True, methods=["post"])
    def revoke(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(revoke_invitation(invitation=self.get_object()))
