"""What people type to change passages and documents."""

import json
from typing import Any

from django import forms

from common.errors import InvalidInput, RagsiteError
from documents.forms_access import access_field, people_of
from documents.models import Document
from documents.services.correcting import MAX_TITLE_CHARACTERS
from documents.services.editing import MAX_CHARACTERS

EVERYBODY = ""


class PassageForm(forms.Form):
    """The text of a passage; `expected` is the one that was seen."""

    text = forms.CharField(
        strip=False,
        max_length=MAX_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "true"}),
        error_messages={"required": "A passage needs a text. Or delete its document."},
    )
    expected = forms.CharField(max_length=64, widget=forms.HiddenInput)


class MetadataLines(forms.CharField):
    """Metadata as people write it, a line a field: `year: 2026`; lists and objects as JSON."""

    def to_python(self, value: Any) -> Any:
        found: dict[str, Any] = {}
        for line in (super().to_python(value) or "").splitlines():
            if not line.strip():
                continue
            name, colon, said = line.partition(":")
            if not colon or not name.strip():
                raise forms.ValidationError(
                    "Write a field a line, its name before a colon: “%(line)s” has none.",
                    code="invalid",
                    params={"line": line.strip()[:80]},
                )
            if name.strip() in found:
                raise forms.ValidationError(
                    "“%(name)s” stands there twice.", code="invalid", params={"name": name.strip()}
                )
            found[name.strip()] = _value(said.strip())
        return found

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{name}: {_written(each)}" for name, each in value.items())


def _value(said: str) -> Any:
    """Numbers, truth values, lists and objects as JSON has them; everything else is text."""
    try:
        return json.loads(said)
    except ValueError:
        return said


def _written(value: Any) -> str:
    is_plain = isinstance(value, str) and value == value.strip() and len(value.splitlines()) < 2
    if is_plain and _value(value) == value:
        return str(value)
    return json.dumps(value, ensure_ascii=False)


class DocumentChangeForm(forms.Form):
    """Title, metadata, and who may see the document."""

    title = forms.CharField(
        max_length=MAX_TITLE_CHARACTERS,
        help_text="It is found with every passage. Another one takes a moment: all are read anew.",
    )
    metadata = MetadataLines(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="A field a line, such as “year: 2026”. Searches can be narrowed by them.",
    )
    access = access_field()

    def __init__(self, data: Any = None, *, document: Document) -> None:
        initial = {
            "title": document.title,
            "metadata": document.metadata,
            "access": document.access or [],
        }
        super().__init__(data, initial=initial)
        choices = people_of(document.workspace_id)
        known = {name for name, _ in choices}
        choices += [(name, name) for name in document.access or [] if name not in known]
        self.fields["access"].choices = choices  # type: ignore[attr-defined]
        #: Whether there is anybody to keep it from.
        self.has_access = len(choices) > 1
        if not self.has_access:
            del self.fields["access"]

    def clean_access(self) -> list[str] | None:
        """None for everybody."""
        return self.cleaned_data["access"] or None

    def field_of(self, error: RagsiteError) -> str | None:
        """Where on the page an error belongs."""
        name = error.field if isinstance(error, InvalidInput) else ""
        return name if name in self.fields else None
