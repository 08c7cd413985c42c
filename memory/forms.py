"""Forms of the memory pages."""

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from memory.keys import MAX_GIVEN
from memory.models import Fact

#: PostgreSQL knows earlier years, Python's dates do not in every time zone.
EARLIEST = date(1000, 1, 1)
ERASE = "erase"
MAX_FIND = 4000


class DayField(forms.DateField):
    """A day that has begun, chosen with the browser's own calendar."""

    widget = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date", "autocomplete": "off"})

    def validate(self, value: date | None) -> None:
        """Refuse what has not come yet, and what nobody remembers."""
        super().validate(value)
        if value is not None and value > timezone.localdate():
            raise forms.ValidationError("That day is still to come. Choose today or one before.")
        if value is not None and value < EARLIEST:
            raise forms.ValidationError("Choose a day after the year 1000.")

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Days to come cannot be chosen."""
        return {**super().widget_attrs(widget), "max": timezone.localdate().isoformat()}


def start_of(day: date | None) -> datetime | None:
    """When it began; None for today and for no day, which both mean now."""
    if day is None or day == timezone.localdate():
        return None
    return datetime.combine(day, time.min, tzinfo=timezone.get_current_timezone())


def end_of(day: date | None) -> datetime | None:
    """Its last moment; None for today and for no day, which both mean now."""
    begun = start_of(day)
    if begun is None:
        return None
    return datetime.combine(begun.date(), time.max, tzinfo=begun.tzinfo)


class FactsShownForm(forms.Form):
    """Which facts are listed."""

    find = forms.CharField(label="Find a fact", max_length=200, required=False)
    as_of = DayField(label="As of", required=False)


class FactChangeForm(forms.Form):
    """What a fact is now, or has been since a day."""

    value = forms.CharField(label="Value", widget=forms.Textarea(attrs={"rows": 2}))
    since = DayField(
        label="True since", required=False, help_text="Left empty, from this moment on."
    )

    def moment(self) -> datetime | None:
        """Of the valid form: since when; None for now."""
        return start_of(self.cleaned_data["since"])


class FactForm(FactChangeForm):
    """A new fact, or a correction of the one that is there under its name."""

    key = forms.CharField(
        label="What it is about",
        max_length=MAX_GIVEN,
        help_text="Such as “home city”. A name that is there already is corrected.",
    )
    field_order = ("key",)


class CorrectionForm(FactChangeForm):
    """A change of a fact: something else is true now, or what is there never was."""

    never_true = forms.BooleanField(
        label="What is there was never true",
        required=False,
        help_text="The new value then holds since the day that the wrong one did.",
    )

    def __init__(self, data: QueryDict | None, *, last: Fact) -> None:
        super().__init__(data, initial={"value": last.value})
        self.last = last
        if last.valid_to is not None:
            del self.fields["never_true"]

    def moment(self) -> datetime | None:
        """Of the valid form: since when; None for now."""
        wrong = self.cleaned_data.get("never_true", False)
        return self.last.valid_from if wrong else super().moment()


class EraseForm(forms.Form):
    """A typed word confirms what cannot be undone."""

    word = forms.CharField(label="Word", strip=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["word"].widget.attrs |= {"autocomplete": "off", "autocapitalize": "off"}

    def clean_word(self) -> str:
        """Exactly the word, in whatever case."""
        word: str = self.cleaned_data["word"]
        if word.casefold() != ERASE:
            raise forms.ValidationError(f"Type “{ERASE}” to erase everything.", code="wrong_word")
        return word
