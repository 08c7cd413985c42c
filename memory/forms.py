"""Forms of the memory pages."""

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from memory.fact_keys import MAX_INPUT_CHARACTERS
from memory.models import Fact

#: PostgreSQL knows earlier years, Python's dates do not in every time zone.
EARLIEST_DAY = date(1000, 1, 1)
ERASE_WORD = "erase"


class DayField(forms.DateField):
    """A day that is not in the future, chosen with the browser's date picker."""

    widget = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date", "autocomplete": "off"})

    def validate(self, value: date | None) -> None:
        """Reject future days and days before the year 1000."""
        super().validate(value)
        if value is not None and value > timezone.localdate():
            raise forms.ValidationError(
                gettext("This date is in the future. Choose today or an earlier date.")
            )
        if value is not None and value < EARLIEST_DAY:
            raise forms.ValidationError(gettext("Choose a date after the year 1000."))

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Future days cannot be chosen."""
        return {**super().widget_attrs(widget), "max": timezone.localdate().isoformat()}


def start_of(day: date | None) -> datetime | None:
    """Start of the day; None for today and for no day, which both mean now."""
    if day is None or day == timezone.localdate():
        return None
    return datetime.combine(day, time.min, tzinfo=timezone.get_current_timezone())


def end_of(day: date | None) -> datetime | None:
    """End of the day; None for today and for no day, which both mean now."""
    begun = start_of(day)
    if begun is None:
        return None
    return datetime.combine(begun.date(), time.max, tzinfo=begun.tzinfo)


class FactListForm(forms.Form):
    """Filter of the list of facts."""

    find = forms.CharField(label=gettext_lazy("Find a fact"), max_length=200, required=False)
    as_of = DayField(label=gettext_lazy("As of"), required=False)


class FactChangeForm(forms.Form):
    """The value of a fact, now or since a day."""

    value = forms.CharField(label=gettext_lazy("Value"), widget=forms.Textarea(attrs={"rows": 2}))
    since = DayField(
        label=gettext_lazy("True since"),
        required=False,
        help_text=gettext_lazy("Empty: from now on."),
    )

    def moment(self) -> datetime | None:
        """Since when it holds, of the valid form; None for now."""
        return start_of(self.cleaned_data["since"])


class FactForm(FactChangeForm):
    """A new fact, or a correction of the existing one with that name."""

    key = forms.CharField(
        label=gettext_lazy("Topic"),
        max_length=MAX_INPUT_CHARACTERS,
        help_text=gettext_lazy("Such as “home city”. An existing name gets the new value."),
    )
    field_order = ("key",)


class CorrectionForm(FactChangeForm):
    """A change of a fact: the value has changed, or was never true."""

    never_true = forms.BooleanField(
        label=gettext_lazy("The current value was never true"),
        required=False,
        help_text=gettext_lazy("The new value then applies from the same date as the wrong one."),
    )

    def __init__(self, data: QueryDict | None, *, last: Fact) -> None:
        super().__init__(data, initial={"value": last.value})
        self.last = last
        if last.valid_to is not None:
            del self.fields["never_true"]

    def moment(self) -> datetime | None:
        """Since when it holds, of the valid form; None for now."""
        wrong = self.cleaned_data.get("never_true", False)
        return self.last.valid_from if wrong else super().moment()


class EraseForm(forms.Form):
    """Confirmation by a typed word."""

    word = forms.CharField(label=gettext_lazy("Word"), strip=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["word"].widget.attrs |= {"autocomplete": "off", "autocapitalize": "off"}

    def clean_word(self) -> str:
        """The word must match, in any case."""
        word: str = self.cleaned_data["word"]
        if word.casefold() != ERASE_WORD:
            raise forms.ValidationError(
                gettext("Type “{word}” to erase everything.").format(word=ERASE_WORD),
                code="wrong_word",
            )
        return word
