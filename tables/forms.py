"""Forms of tables: which rows are shown, and what a column is called and holds."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

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
