"""Options as fields of a form of pages and the admin."""

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from common import bounded_json
from common.errors import InvalidInput
from common.options import OptionField, Options, nested_options

#: Texts that switch an option off.
_NO = frozenset({"false", "no", "off", "0", "n", "f"})


def is_on(value: Any) -> bool:
    """Whether a switch is on that may be stored as text."""
    return str(value).lower() not in _NO


def form_field(option: OptionField, *, has_stored_value: bool = False) -> forms.Field:
    """The field of an option. It gives a text, which the model reads and checks; a switch gives
    a bool, a list its texts, a mapping a dict. With `has_stored_value` an empty secret keeps it.
    """
    label = _(option.title) if option.title else option.name
    help_text = lazy(_plain_help, str)(option.description) if option.description else ""
    if option.kind is bool:
        return forms.BooleanField(
            label=label, help_text=help_text, required=False, initial=option.default
        )
    if option.kind in _WRITTEN_FIELDS:
        return _WRITTEN_FIELDS[option.kind](label=label, help_text=help_text)
    return forms.CharField(
        label=label,
        help_text=_("Empty: keep the saved one.") if has_stored_value else help_text,
        required=option.is_required and not has_stored_value,
        initial=option.default,
        widget=_widget(option),
    )


def _plain_help(description: str) -> str:
    """A translated description without its backticks."""
    return gettext(description).replace("`", "")


def _widget(option: OptionField) -> forms.Widget:
    if option.kind is SecretStr:
        return forms.PasswordInput(attrs={"autocomplete": "new-password"})
    if option.choices:
        choices = [(value, value) for value in option.choices]
        return forms.Select(choices=choices if option.default else [("", "—"), *choices])
    if option.kind in (int, float):
        bounds = {"min": option.least, "max": option.most}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return forms.NumberInput(attrs={**given, "step": "any" if option.kind is float else 1})
    if option.kind is date:
        return forms.DateInput(attrs={"type": "date"})
    return forms.TextInput()


class WrittenField(forms.CharField):
    """A value that people write as text, which subclasses `parse` and `write`."""

    kind: type[Any] = dict

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"required": False, "empty_value": "", **given})

    def parse(self, text: str) -> Any:
        """The value. Raises InvalidInput and ValueError."""
        raise NotImplementedError

    def write(self, value: Any) -> str:
        """The text of a value of `kind`."""
        raise NotImplementedError

    def to_python(self, value: Any) -> Any:
        try:
            return self.parse(super().to_python(value) or "")
        except (InvalidInput, ValueError) as error:
            raise forms.ValidationError(str(error), code="invalid") from error

    def prepare_value(self, value: Any) -> Any:
        return self.write(value) if isinstance(value, self.kind) else value


class LinesField(WrittenField):
    """Texts, one a line; empty lines and repeated ones are left out."""

    kind = list

    def __init__(self, **given: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3})
        given["help_text"] = format_lazy("{} {}", given.get("help_text", ""), _("One per line."))
        super().__init__(widget=widget, **given)

    def parse(self, text: str) -> list[str]:
        lines = map(str.strip, text.splitlines())
        return list(dict.fromkeys(line for line in lines if line))

    def write(self, value: list[str]) -> str:
        return "\n".join(value)


class ObjectField(WrittenField):
    """A JSON object, displayed with one entry a line; empty where there is none."""

    def __init__(self, **given: Any) -> None:
        attributes = {"rows": 4, "spellcheck": "false", "class": "code"}
        widget = forms.Textarea(attrs={**attributes, "placeholder": '{"born": 1815}'})
        super().__init__(widget=widget, **given)

    def parse(self, text: str) -> dict[str, Any]:
        value = bounded_json.parse(text) if text else {}
        if not isinstance(value, dict):
            raise InvalidInput(gettext('Enter a JSON object, such as {"born": 1815}.'))
        return value

    def write(self, value: dict[str, Any]) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


_WRITTEN_FIELDS: dict[type[Any], type[WrittenField]] = {list: LinesField, dict: ObjectField}
_WRITTEN = re.compile(r"([\w.]+)\s*=\s*([\w.+-]+)")


class OptionsField(WrittenField):
    """Options in one line, such as `method=rrf depth=60`, as a mapping of those given. The value of
    an option that is a mapping is written by its own names: `vector=0.7 lexical=0.3`, where `keys`
    has the names of it.
    """

    def __init__(
        self, model: type[Options], *, keys: Mapping[str, str] | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self.model, self.keys = model, keys or {}

    def parse(self, text: str) -> dict[str, Any]:
        if _WRITTEN.sub("", text).strip(" ,;\n\r\t"):
            names = ", ".join([*nested_options(self.model), *self.keys])
            raise InvalidInput(
                gettext("Write name=value, with spaces between. Names: {names}.").format(
                    names=names
                )
            )
        given: dict[str, Any] = {}
        for name, value in _WRITTEN.findall(text):
            if name in self.keys:
                given.setdefault(self.keys[name], {})[name] = value
            else:
                given[name] = value
        return self.model.from_text(given).given()

    def write(self, value: dict[str, Any]) -> str:
        nested = [each for each in value.values() if isinstance(each, dict)]
        flat = {name: each for name, each in value.items() if not isinstance(each, dict)}
        for each in nested:
            flat |= each
        return " ".join(f"{name}={each}" for name, each in flat.items())
