"""The form of a connection: its options, and who may use it."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import Workspace
from common.options import option_fields
from common.options.forms import form_field
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions, Preset


class ConnectionForm(forms.Form):
    """A new connection to the server of a preset, or the changes of one that is there."""

    kind = forms.CharField(widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any,
        *,
        preset: Preset | None = None,
        connection: ModelConnection | None = None,
        workspaces: Mapping[int, str] | None = None,
        models: Sequence[str] = (),
        chooses_purpose: bool = False,
    ) -> None:
        """`workspaces` to choose from by id, for a connection of the site. `models` are offered.
        People choose the purpose of a new connection of the site (`chooses_purpose`)."""
        initial: dict[str, Any] = {}
        if preset is not None:
            initial = {"kind": preset.kind, "address": preset.address}
        if connection is not None:
            named = option_fields(ConnectionOptions).keys() - {"key"}
            initial = {name: getattr(connection, name) for name in named}
            initial["workspaces"] = connection.workspaces or []
        super().__init__(data, initial=initial)
        options = option_fields(ConnectionOptions)
        is_kept = connection is not None and connection.has_key
        for name, option in options.items():
            if name != "kind":
                self.fields[name] = form_field(option, has_stored_value=is_kept and name == "key")
        del self.fields["dimensions"]  # measured
        purpose = self.fields["purpose"] = forms.ChoiceField(
            label=_("What for"),
            choices=ModelConnection.Purpose.choices,
            initial=ModelConnection.Purpose.CHAT,
            required=False,
        )
        if not chooses_purpose:
            purpose.widget = forms.HiddenInput()
        self.order_fields(["purpose"])
        self.fields["key"].required = False
        # What was typed stays while models are listed; the answer is never stored.
        self.fields["key"].widget.render_value = True
        if models:
            offered: list[tuple[str, Any]] = [(name, name) for name in models]
            if len(models) > 1:
                offered.insert(0, ("", _("Choose one")))
            self.fields["model"].widget = forms.Select(choices=offered)
        kind = (data or initial).get("kind")
        if kind != ModelConnection.Kind.OLLAMA:
            del self.fields["context_tokens"]
        self._rare = {name for name, option in options.items() if option.is_rare}
        if workspaces and len(workspaces) > 1:
            self.fields["workspaces"] = forms.TypedMultipleChoiceField(
                label=_("Only for these workspaces"),
                choices=list(workspaces.items()),
                coerce=int,
                required=False,
                widget=forms.CheckboxSelectMultiple,
                help_text=_("None checked: all workspaces may use it."),
            )
            self._rare.add("workspaces")

    def usual_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name not in self._rare]

    def rare_fields(self) -> list[forms.BoundField]:
        """Options that most people leave as they are."""
        return [field for field in self.visible_fields() if field.name in self._rare]

    def rare_errors(self) -> bool:
        return any(field.errors for field in self.rare_fields())

    def options(self) -> ConnectionOptions:
        """Raises InvalidInput."""
        given = {
            name: value
            for name, value in self.cleaned_data.items()
            if name in option_fields(ConnectionOptions) and value != ""
        }
        return ConnectionOptions.from_text(given)

    def chosen_workspaces(self) -> list[int] | None:
        return self.cleaned_data.get("workspaces") or None


def workspace_names() -> dict[int, str]:
    """All workspaces of the site, for its operator."""
    return dict(Workspace.objects.order_by("name").values_list("pk", "name"))
