"""Base serializers of what requests bring, and how answers are written in less time."""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Self

from django.http import QueryDict
from rest_framework import serializers

from common import bounded_json
from common.errors import InvalidInput

#: Names and faults that an answer tells of.
MOST_TOLD = 20


class HelpfulSerializer(serializers.Serializer[Any]):
    """Input whose choices are named to whoever sends another value."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            _name_choices(getattr(field, "child", field))
        return fields


def _name_choices(field: Any) -> None:
    if isinstance(field, serializers.ChoiceField):
        there = ", ".join(map(str, field.choices)).replace("{", "{{").replace("}", "}}")
        field.error_messages["invalid_choice"] = (
            f"There is no “{{input}}” here. There are: {there}."
        )


class StrictSerializer(HelpfulSerializer):
    """Input in which a name that is not known is an error: a misspelt filter never widens a
    question, and a misspelt field is never lost."""

    def to_internal_value(self, data: Any) -> Any:
        known = [name for name, field in self.fields.items() if not field.read_only]
        names = data if isinstance(data, Mapping) else ()
        if unknown := [name for name in names if name not in known]:
            detail = f"This name is not known here. Known are: {', '.join(sorted(known))}."
            told = dict.fromkeys(unknown[:MOST_TOLD], detail)
            raise serializers.ValidationError(told, code="unknown")
        self._refuse_long_lists(data)
        return super().to_internal_value(data)

    def _refuse_long_lists(self, data: Any) -> None:
        """Before each of their entries is looked at, and each fault told, for seconds."""
        for name, field in self.fields.items():
            if field.read_only or not isinstance(field, serializers.ListField):
                continue
            most = field.max_length
            given = data.get(name) if isinstance(data, Mapping) else None
            if most is not None and isinstance(given, list) and len(given) > most:
                detail = field.error_messages["max_length"].format(max_length=most)
                raise serializers.ValidationError({name: detail}, code="max_length")


class QuerySerializer(StrictSerializer):
    """The parameters of a query string; a list is given by repeating its name."""

    @classmethod
    def from_query(cls, query: QueryDict) -> Self:
        """The serializer over a request's parameters, of which empty ones count as not given."""
        asked = cls(data={})
        asked.fields = _shared_fields(cls)
        lists = {
            name
            for name, field in asked.fields.items()
            if isinstance(field, serializers.ListField | serializers.MultipleChoiceField)
        }
        data: dict[str, Any] = {}
        for name, values in query.lists():
            if given := [value for value in values if value != ""]:
                data[name] = given if name in lists else given[-1]
        asked.initial_data = data
        return asked


@cache
def _shared_fields(serializer_class: type[serializers.Serializer[Any]]) -> Any:
    """Fields hold nothing of a request, and take longer to copy than to check."""
    return serializer_class().fields


class PageParameters(QuerySerializer):
    """A page of a list."""

    cursor = serializers.CharField(
        required=False,
        max_length=500,
        help_text="Where the page begins: taken from `next` or `previous` of another page.",
    )
    page_size = serializers.IntegerField(
        required=False, min_value=1, max_value=200, help_text="Rows a page. Default 50."
    )


class TextField(serializers.CharField):
    """A string as it was sent; a number is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class MetadataField(serializers.DictField):
    """A JSON object of the caller's own; in a form, its text."""

    def get_value(self, dictionary: Any) -> Any:
        value = dictionary.get(self.field_name)
        return serializers.empty if value is None or value == "" else value

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            data = _parsed(data)
        return super().to_internal_value(data)


def _parsed(text: str) -> Any:
    try:
        return bounded_json.parse(text)
    except InvalidInput as error:
        place = f"At {error.field}: " if error.field else ""
        raise serializers.ValidationError(f"{place}{error}") from error


Write = Callable[[Any], Any]
_WRITTEN_BY: dict[type[Any], Write] = {
    serializers.CharField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
}


def writer(field: Any) -> Write:
    """`field.to_representation`, with what DRF looks up again for each value looked up once; of a
    serializer for instances that are not mappings and have all of its fields."""
    if isinstance(field, serializers.ListField | serializers.ListSerializer):
        each = _nullable(writer(field.child))
        return lambda values: [each(value) for value in values]
    if isinstance(field, serializers.DictField):
        child = _nullable(writer(field.child))
        return lambda values: {str(key): child(value) for key, value in values.items()}
    if isinstance(field, serializers.Serializer):
        fields = [
            (
                name,
                attrgetter(".".join(each.source_attrs)) if each.source_attrs else None,
                _nullable(writer(each)),
            )
            for name, each in field.fields.items()
        ]
        return lambda instance: {
            name: write(instance if get is None else get(instance)) for name, get, write in fields
        }
    write: Write = _WRITTEN_BY.get(type(field), field.to_representation)
    return write


def _nullable(write: Write) -> Write:
    return lambda value: None if value is None else write(value)
