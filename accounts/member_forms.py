"""Forms of members, groups and invitations."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.groups import MAX_NAME_CHARACTERS
from accounts.invitations import mail_is_sent
from accounts.models import Invitation, Membership, Role, User, Workspace, WorkspaceGroup
from common.options.forms import LinesField

ROLE_CHOICES = [
    (Role.VIEWER, gettext_lazy("Viewer: can read, search and ask")),
    (Role.EDITOR, gettext_lazy("Editor: can also add, change and delete documents")),
    (Role.OWNER, gettext_lazy("Owner: can also manage members, groups and invitations")),
]
DAYS = {
    "1": gettext_lazy("a day"),
    "7": gettext_lazy("a week"),
    "30": gettext_lazy("30 days"),
    "90": gettext_lazy("90 days"),
}
USES = {
    "1": gettext_lazy("one person"),
    "10": gettext_lazy("10 people"),
    "100": gettext_lazy("100 people"),
    "": gettext_lazy("any number"),
}


class GroupsForm(forms.Form):
    """A form with a check box for each group of the workspace, if there are any."""

    groups = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Groups"),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def offer_groups(self, groups: Iterable[WorkspaceGroup]) -> None:
        choices = [(group.pk, group.name) for group in groups]
        self.fields["groups"].choices = choices  # type: ignore[attr-defined]
        if not choices:
            del self.fields["groups"]


class MemberForm(GroupsForm):
    """Role and groups of a member."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLE_CHOICES)
    external_names = LinesField(
        label=gettext_lazy("Names in other systems"),
        help_text=gettext_lazy("Such as the user name or email address at a source of documents."),
    )

    field_order = ("role", "groups", "external_names")

    def __init__(self, data: Any, *, membership: Membership) -> None:
        mine = membership.group_members.filter(source="").values_list("group", flat=True)
        initial = {
            "role": membership.role,
            "groups": list(mine),
            "external_names": membership.external_names,
        }
        super().__init__(data, initial=initial)
        self.offer_groups(membership.workspace.groups.all())


class GroupForm(forms.Form):
    """Name, other names and members of a group."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=MAX_NAME_CHARACTERS)
    external_names = LinesField(
        label=gettext_lazy("Names in other systems"),
        help_text=gettext_lazy(
            "From your company's sign-in, or from a source of documents. The name of the group"
            " itself also counts."
        ),
    )
    members = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Members"),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, data: Any, *, workspace: Workspace, group: WorkspaceGroup | None = None
    ) -> None:
        initial: dict[str, Any] = {}
        if group is not None:
            initial = {
                "name": group.name,
                "external_names": group.external_names,
                "members": list(
                    group.members.filter(source="").values_list("membership__user", flat=True)
                ),
            }
        super().__init__(data, initial=initial)
        people = workspace.memberships.select_related("user").order_by("user__username")
        self.fields["members"].choices = [  # type: ignore[attr-defined]
            (each.user_id, each.user.username) for each in people
        ]


class InvitationForm(GroupsForm):
    """A new invitation."""

    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLE_CHOICES, initial=Role.VIEWER)
    days = forms.ChoiceField(
        label=gettext_lazy("Valid for"), choices=list(DAYS.items()), initial="7"
    )
    uses = forms.ChoiceField(
        label=gettext_lazy("For"), choices=list(USES.items()), required=False, initial="1"
    )
    email = forms.EmailField(
        label=gettext_lazy("Send to"),
        required=False,
        help_text=gettext_lazy("An email address. Empty: copy the link yourself."),
    )

    field_order = ("role", "groups", "days", "uses", "email")

    def __init__(self, data: Any, *, workspace: Workspace) -> None:
        super().__init__(data)
        self.offer_groups(workspace.groups.all())
        if not mail_is_sent():
            del self.fields["email"]

    def expires_at(self) -> datetime:
        """Of the valid form."""
        return timezone.now() + timedelta(days=int(self.cleaned_data["days"]))

    def max_uses(self) -> int | None:
        """Of the valid form; None for any number."""
        uses = self.cleaned_data["uses"]
        return int(uses) if uses else None


class NewAccountForm(UserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """The account of somebody who was invited."""

    email = forms.EmailField(
        label=gettext_lazy("Email"),
        required=False,
        help_text=gettext_lazy("Optional."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    class Meta:
        model = User
        fields = ("username", "email")

    def __init__(self, data: Any, *, invitation: Invitation) -> None:
        super().__init__(data, initial={"email": invitation.email})
