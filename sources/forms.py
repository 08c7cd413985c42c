"""The form of a source: what all have, and the options of its kind."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from common.errors import InvalidInput
from common.options import option_fields
from common.options.forms import form_field, is_on
from documents.forms import AccessForm, group_label, workspace_people
from documents.models import Collection
from sources.connectors import connector_class
from sources.models import DataSource
from sources.schedule import next_run

#: Stands for all members in a rule.
EVERYBODY = "everybody"
#: Names of the options in the form begin with this.
PREFIX = "option_"


class SourceForm(AccessForm):
    """A new source of a kind, or the changes of one that is there."""

    name = forms.CharField(label=_("Name"), max_length=200)
    collection = forms.ModelChoiceField(
        Collection.objects.none(), label=_("Collection"), to_field_name="slug"
    )
    schedule = forms.CharField(
        label=_("Sync every"),
        required=False,
        max_length=100,
        help_text=_("Minutes, or five cron fields such as 0 6 * * 1-5. Empty: manual runs only."),
    )
    delete_missing = forms.BooleanField(
        label=_("Delete documents when their file is deleted at the source"),
        required=False,
        initial=True,
    )

    access_rules = forms.CharField(
        label=_("Different access for some folders"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "board/**: Board"}),
        help_text=_(
            "One rule per line: a file pattern, a colon, and the names of groups and"
            " members separated by commas, or “everybody”. The first matching line"
            " applies."
        ),
    )
    maps_readers = forms.BooleanField(
        label=_("Visible to their readers at the source"),
        required=False,
        help_text=_(
            "Uses the names of groups and members in other systems, set by an owner"
            " under Members. Documents without a matching reader are visible to owners."
        ),
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
        options = option_fields(made.Options)
        initial: dict[str, Any] = {"schedule": made.usual_schedule, "collection": collection}
        if source is not None:
            initial = {
                "name": source.name,
                "schedule": source.schedule,
                "delete_missing": source.delete_missing,
                "access": source.access or [],
                "maps_readers": source.maps_readers,
                **{
                    PREFIX + name: is_on(value)
                    if name in options and options[name].kind is bool
                    else value
                    for name, value in source.options.items()
                },
            }
        super().__init__(data, initial=initial)
        self._people = dict(workspace_people(workspace_id))
        if source is not None:
            self.initial["access_rules"] = "\n".join(map(self._rule_line, source.access_rules))
        if not connector_class(kind).tells_readers:
            del self.fields["maps_readers"]
        collections = Collection.objects.filter(workspace=workspace_id).order_by("name")
        self.fields["collection"].queryset = collections  # type: ignore[attr-defined]
        if source is not None:
            del self.fields["collection"]
        if not made.lists_everything:
            del self.fields["delete_missing"]
        for name, option in options.items():
            is_kept = option.kind is SecretStr and source is not None
            self.fields[PREFIX + name] = form_field(option, has_stored_value=is_kept)
        self._rare = {PREFIX + name for name, option in options.items() if option.is_rare}
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

    def _rule_line(self, rule: Mapping[str, Any]) -> str:
        people = rule["access"]
        names = [EVERYBODY] if people is None else [self._people.get(each, each) for each in people]
        return f"{rule['glob']}: {', '.join(names)}"

    def clean_access_rules(self) -> list[dict[str, Any]]:
        """As a source keeps them. Groups may be named with and without “(group)”."""
        entries = {label.casefold(): entry for entry, label in self._people.items()}
        for entry, label in self._people.items():
            entries.setdefault(label.removesuffix(group_label("")).casefold(), entry)
        rules: list[dict[str, Any]] = []
        for line in filter(str.strip, self.cleaned_data["access_rules"].splitlines()):
            # Access list entries, such as `group:3`, have no space behind their colon.
            glob, _colon, listed = line.partition(": ")
            names = [name.strip().casefold() for name in listed.split(",") if name.strip()]
            if not glob.strip() or not names:
                raise forms.ValidationError(
                    _("Enter a file pattern, a colon and names. “%(line)s” is incomplete.")
                    % {"line": line.strip()[:80]}
                )
            if unknown := [name for name in names if name not in entries and name != EVERYBODY]:
                raise forms.ValidationError(
                    _("“%(name)s” is not a group or member of this workspace.")
                    % {"name": unknown[0]}
                )
            access = None if EVERYBODY in names else [entries[name] for name in names]
            rules.append({"glob": glob.strip(), "access": access})
        return rules

    def options(self) -> Mapping[str, Any]:
        """What was given for the options of the kind; an empty secret is left out."""
        return {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX) and value != ""
        }
