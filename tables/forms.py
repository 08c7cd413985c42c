"""Forms of tables: which rows are shown, and what a column is called and holds."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tables.groups.curation import ReadGroup
from tables.models import COLUMN_TYPES, Table
from tables.options import COMPARISON_LABELS

TYPE_LABELS = {
    "number": _("Number"),
    "date": _("Date"),
    "boolean": _("Yes or no"),
    "text": _("Text"),
}


class RowForm(forms.Form):
    """What is sent to `RowOptions`."""

    words = forms.CharField(label=_("In any cell"), max_length=200, required=False)
    column = forms.ChoiceField(label=_("Column"), required=False)
    comparison = forms.ChoiceField(
        label=_("Comparison"),
        choices=[(name, _(label)) for name, label in COMPARISON_LABELS.items()],
        required=False,
    )
    value = forms.CharField(label=_("Value"), max_length=200, required=False)

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [(column["name"], column["name"]) for column in table.columns]
        self.fields["column"].choices = [("", _("any column")), *names]  # type: ignore[attr-defined]


class ColumnForm(forms.Form):
    """A curator's correction of a column."""

    column = forms.ChoiceField(label=_("Column"))
    name = forms.CharField(
        label=_("New name"), max_length=200, required=False, help_text=_("Empty: as it is.")
    )
    type = forms.ChoiceField(
        label=_("Holds"),
        choices=[("", _("as it is")), *((name, TYPE_LABELS[name]) for name in COLUMN_TYPES)],
        required=False,
    )
    unit = forms.CharField(
        label=_("Unit"),
        max_length=20,
        required=False,
        help_text=_("Such as EUR, % or kg. Empty: as it is."),
    )

    def __init__(self, *args: Any, table: Table, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [(column["name"], column["name"]) for column in table.columns]
        self.fields["column"].choices = names  # type: ignore[attr-defined]


class GroupColumnsForm(forms.Form):
    """Which of its group's columns those of a table are."""

    def __init__(self, *args: Any, table: Table, group: ReadGroup, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = [column["name"] for column in table.columns]
        own = {
            name: str(column.position)
            for shown in group.tables
            if shown.table == table.pk
            for name, column in zip(shown.columns, group.columns, strict=True)
        }
        for at, column in enumerate(table.columns):
            fitting = [
                (str(each.position), each.name)
                for each in group.columns
                if each.type == column["type"]
            ]
            self.fields[f"column-{at}"] = forms.ChoiceField(
                label=column["name"],
                choices=[*fitting, ("", _("a column of its own"))],
                initial=own.get(column["name"], ""),
                required=False,
            )

    def means(self) -> dict[str, int | None]:
        """The positions that were chosen, by name of the column."""
        chosen = {name: self.cleaned_data[f"column-{at}"] for at, name in enumerate(self._names)}
        return {name: int(value) if value else None for name, value in chosen.items()}
