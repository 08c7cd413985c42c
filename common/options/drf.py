"""Options as fields of the API: `OptionsSerializer`."""

from typing import Any, ClassVar

from django.utils.functional import lazy
from rest_framework import serializers

from common import bounded_json
from common.options import OptionField, nested_options, option_fields
from common.serializers import StrictSerializer

Field = serializers.Field[Any, Any, Any, Any]


class MappingField(serializers.DictField):
    """A JSON object; in a query string as text."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            data = bounded_json.parse(data)
        return super().to_internal_value(data)


class OptionsSerializer(StrictSerializer):
    """Input with the options of a model besides its own fields, which go before an option of the
    same name and have its description, if none of their own. Values are checked by the fields, and
    what they do not know of by the model.

    None leaves an option open: it need not be given. Only a switch may be null.
    """

    options: ClassVar[Any]
    #: Options that this input does not have.
    skip: ClassVar[frozenset[str]] = frozenset()
    #: Whether an option that is not given has its default, or stays as it is.
    has_defaults: ClassVar[bool] = True
    #: What takes a text.
    text_field: ClassVar[type[Field]] = serializers.CharField

    def get_fields(self) -> dict[str, Any]:
        own = super().get_fields()
        for name, option in option_fields(self.options).items():
            if name in own and own[name].help_text is None:
                own[name].help_text = option.description
        made = {
            name: own.pop(name, None)
            or serializer_field(option, has_default=self.has_defaults, text_field=self.text_field)
            for name, option in nested_options(self.options, skip=self.skip).items()
        }
        return self.list_choices({**made, **own})


def serializer_field(
    option: OptionField,
    *,
    has_default: bool = True,
    text_field: Any = serializers.CharField,
    **changes: Any,
) -> Field:
    """The field of an option; `changes` replace some of its arguments."""
    given: dict[str, Any] = {}
    if option.description:
        given["help_text"] = option.description
    if not has_default:
        given["required"] = option.is_required
    elif option.kind is bool and option.default is None and not option.is_required:
        given |= {"default": None, "allow_null": True}
    elif option.default not in (None, (), {}):
        given["default"] = option.default
    elif not option.is_required:
        given["required"] = False
    return _field(option, {**given, **changes}, text_field)


def _field(option: OptionField, given: dict[str, Any], text_field: Any) -> Field:
    if option.choices:
        return serializers.ChoiceField(**{"choices": option.choices, **given})
    if option.kind is bool:
        return serializers.BooleanField(**given)
    if option.kind in (int, float):
        error = lazy(option.number_error, str)()
        given |= {
            "min_value": option.least,
            "max_value": option.most,
            "error_messages": dict.fromkeys(("invalid", "min_value", "max_value"), error),
        }
        whole = option.kind is int
        return serializers.IntegerField(**given) if whole else serializers.FloatField(**given)
    if option.item is not None:
        given["child"] = _field(option.item, {}, text_field)
        if option.kind is dict:
            return MappingField(**given)
        return serializers.ListField(max_length=option.max_length, **given)
    given.setdefault("allow_blank", not (option.is_required or option.min_length))
    made: Field = text_field(max_length=option.max_length, **given)
    return made
