"""The form of a source: what all have, and the options of its kind."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, get_args, get_origin

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from common.errors import InvalidInput
from documents.forms import AccessForm
from documents.models import Collection
from sources.connectors import connector_class
from sources.connectors.base import is_rare
from sources.models import DataSource
from sources.schedule import next_run

#: Names of the options in the form begin with this.
PREFIX = "option_"
_NO = frozenset({"false", "no", "off", "0", "n", "f"})


def _widget(option: FieldInfo) -> forms.Widget:
    """How an option of this type is given. Whether a value is right its connector says."""
    if option.annotation is SecretStr:
        return forms.PasswordInput(attrs={"autocomplete": "new-password"})
    if get_origin(option.annotation) is Literal:
        return forms.Select(choices=[(value, value) for value in get_args(option.annotation)])
    types = {option.annotation, *get_args(option.annotation)}
    if types & {int, float}:
        bounds = {
            name: bound
            for name, sort in (("min", "ge"), ("max", "le"))
            for each in option.metadata
            if (bound := getattr(each, sort, None)) is not None
        }
        return forms.NumberInput(attrs={**bounds, "step": "any" if float in types else 1})
    if date in types:
        return forms.DateInput(attrs={"type": "date"})
    return forms.TextInput()


class SourceForm(AccessForm):
    """A new source of a kind, or the changes of one that is there."""

    name = forms.CharField(label=_("Name"), max_length=200)
    collection = forms.ModelChoiceField(
        Collection.objects.none(), label=_("Collection"), to_field_name="slug"
    )
    schedule = forms.CharField(
        label=_("Read every"),
        required=False,
        max_length=100,
        help_text=_("Minutes, or five cron words such as 0 6 * * 1-5. Empty: by hand only."),
    )
    delete_missing = forms.BooleanField(
        label=_("Delete documents whose file is gone there"), required=False, initial=True
    )

    def __init__(
        self,
        data: Any,
        *,
        kind: str,
        workspace_id: int,
        source: DataSource | None = None,
        collection: str = "",
    ) -> None:
        made = connector_class(kind)
        options = made.Options.model_fields

        def is_bool(name: str) -> bool:
            return name in options and options[name].annotation is bool

        initial: dict[str, Any] = {"schedule": made.usual_schedule, "collection": collection}
        if source is not None:
            initial = {
                "name": source.name,
                "schedule": source.schedule,
                "delete_missing": source.delete_missing,
                "access": source.access or [],
                **{
                    PREFIX + name: str(value).lower() not in _NO if is_bool(name) else value
                    for name, value in source.options.items()
                },
            }
        super().__init__(data, initial=initial)
        collections = Collection.objects.filter(workspace=workspace_id).order_by("name")
        self.fields["collection"].queryset = collections  # type: ignore[attr-defined]
        if source is not None:
            del self.fields["collection"]
        if not made.lists_everything:
            del self.fields["delete_missing"]
        for name, option in options.items():
            if is_bool(name):
                self.fields[PREFIX + name] = forms.BooleanField(
                    label=_(option.title or name),
                    help_text=_(option.description) if option.description else "",
                    required=False,
                    initial=option.default,
                )
                continue
            is_secret = option.annotation is SecretStr
            kept = is_secret and source is not None
            self.fields[PREFIX + name] = forms.CharField(
                label=_(option.title or name),
                help_text=_("Empty: the one that is kept.")
                if kept
                else _(option.description)
                if option.description
                else "",
                required=option.is_required() and not kept,
                initial=None if option.is_required() or is_secret else option.default,
                widget=_widget(option),
            )
        self._rare = {PREFIX + name for name, option in options.items() if is_rare(option)}
        self.order_fields(
            ["name", *(name for name in self.fields if name.startswith(PREFIX)), "collection"]
        )
        self.offer_access(workspace_id, chosen=initial.get("access", ()))

    def usual_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self._rare]

    def rare_fields(self) -> list[forms.BoundField]:
        """Options that most people leave as they are."""
        return [field for field in self if field.name in self._rare]

    def rare_errors(self) -> bool:
        return any(field.errors for field in self.rare_fields())

    def clean_schedule(self) -> str:
        schedule: str = self.cleaned_data["schedule"].strip()
        try:
            next_run(schedule, after=timezone.now())
        except InvalidInput as error:
            raise forms.ValidationError(str(error)) from error
        return schedule

    def options(self) -> Mapping[str, Any]:
        """What was given for the options of the kind; an empty secret is left out."""
        return {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX) and value != ""
        }
