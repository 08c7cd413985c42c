"""Choosing who may see a document."""

from django import forms

from accounts.models import Membership

HELP = "Nobody ticked: everybody in the workspace."


def people_of(workspace_id: int) -> list[tuple[str, str]]:
    """The members, as access lists name them and as people do."""
    members = Membership.objects.filter(workspace=workspace_id).select_related("user")
    return [
        (f"user:{member.user_id}", member.user.username)
        for member in members.order_by("user__username")
    ]


def access_field() -> forms.MultipleChoiceField:
    """Boxes to tick; the form that has it sets the choices."""
    return forms.MultipleChoiceField(
        label="Who may see it",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=HELP,
    )
