"""Base serializers for requests and answers, and pagination of lists."""

import logging
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import QueryDict
from django.utils.translation import gettext
from pydantic import BaseModel
from rest_framework import exceptions, pagination, serializers
from rest_framework.request import Request

from common import bounded_json
from common.errors import InvalidInput

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Model)
MAX_ID = 2**63 - 1


class CursorPagination(pagination.CursorPagination):
    """In the `ordering` of the view, by default newest first: stable while rows are added, and no
    count of a large table.

    `common.serializers.PageParameters` describes and checks the parameters.
    """

    ordering: str | tuple[str, ...] = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    #: Rows with equal positions are counted through by offset.
    offset_cutoff = 1_000_000

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        first = self.get_ordering(request, queryset, view)[0]
        self._field = queryset.model._meta.get_field(first.removeprefix("-"))
        return super().paginate_queryset(queryset, request, view)

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        ordering = getattr(view, "ordering", self.ordering)
        return (ordering,) if isinstance(ordering, str) else ordering

    def decode_cursor(self, request: Request) -> Any:
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound as error:
            raise _invalid_cursor() from error
        if cursor is not None and cursor.position is not None:
            try:
                value = self._field.to_python(cursor.position)
            except ValidationError as error:
                raise _invalid_cursor() from error
            if (
                (isinstance(value, int) and not 0 <= value <= MAX_ID)
                or (isinstance(value, str) and "\0" in value)
                or (isinstance(value, datetime) and value.utcoffset() is None)
            ):
                raise _invalid_cursor()
        return cursor

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described: dict[str, Any] = super().get_paginated_response_schema(schema)
        described["required"] = ["next", "previous", "results"]
        for name in ("next", "previous"):
            described["properties"][name].pop("example")
            described["properties"][name]["description"] = (
                f"Address of the {name} page; null where there is none."
            )
        return described


def _invalid_cursor() -> InvalidInput:
    return InvalidInput(
        gettext(
            "This is not a valid cursor. Follow `next` and `previous` of a page, or leave it out."
        ),
        field="cursor",
    )


#: Number of names and errors that an answer lists.
MAX_REPORTED_ERRORS = 20


class SlugsField(serializers.ListField):
    """Slugs, such as those of collections."""

    def __init__(self, **given: Any) -> None:
        super().__init__(
            **{"child": serializers.SlugField(max_length=63), "max_length": 100, **given}
        )


class HelpfulSerializer(serializers.Serializer[Any]):
    """Input whose errors list the valid choices."""

    def get_fields(self) -> dict[str, Any]:
        return self.list_choices(super().get_fields())

    def list_choices(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields, whose errors list their choices from now on."""
        for field in fields.values():
            choice = getattr(field, "child", field)
            if isinstance(choice, serializers.ChoiceField):
                there = ", ".join(map(str, choice.choices)).replace("{", "{{").replace("}", "}}")
                choice.error_messages["invalid_choice"] = (
                    f"There is no “{{input}}” here. There are: {there}."
                )
        return fields


class StrictSerializer(HelpfulSerializer):
    """Input in which an unknown name is an error: a misspelt filter never widens a search, and a
    misspelt field is never lost.
    """

    #: Former names of fields and the current ones. The former are optional fields too, and listed
    #: in `deprecate_fields` of `extend_schema_serializer`.
    former_names: ClassVar[Mapping[str, str]] = {}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (former := self.former_names.keys() & data.keys()):
            logger.warning("former names of API parameters: %s", ", ".join(sorted(former)))
            current = {self.former_names[name]: data[name] for name in former}
            data = {**current, **{name: data[name] for name in data if name not in former}}
        known = [name for name, field in self.fields.items() if not field.read_only]
        names = data if isinstance(data, Mapping) else ()
        if unknown := [name for name in names if name not in known]:
            detail = f"This name is not known here. Known are: {', '.join(sorted(known))}."
            told = dict.fromkeys(unknown[:MAX_REPORTED_ERRORS], detail)
            raise serializers.ValidationError(told, code="unknown")
        # Reject lists that are too long before each entry is validated.
        for name, field in self.fields.items():
            if field.read_only or not isinstance(field, serializers.ListField):
                continue
            most = field.max_length
            given = data.get(name) if isinstance(data, Mapping) else None
            if most is not None and isinstance(given, list) and len(given) > most:
                detail = field.error_messages["max_length"].format(max_length=most)
                raise serializers.ValidationError({name: detail}, code="max_length")
        return super().to_internal_value(data)


class ReadOnlyModelSerializer(serializers.ModelSerializer[M]):
    """Rows in answers: a model's fields that no request sets."""

    def get_extra_kwargs(self) -> dict[str, Any]:
        given = super().get_extra_kwargs()
        return {name: {**given.get(name, {}), "read_only": True} for name in self.Meta.fields}


_FIELDS: dict[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    date: serializers.DateField,
    datetime: serializers.DateTimeField,
}


@cache
def _field_types(result: type[Any]) -> Mapping[str, tuple[Any, dict[str, Any]]]:
    """Type and arguments of the fields of an answer with this result."""
    if not issubclass(result, BaseModel):
        hints = get_type_hints(result, include_extras=True)
        return {name: (hint, {}) for name, hint in hints.items()}
    found = {}
    for name, info in result.model_fields.items():
        options: dict[str, Any] = {"help_text": info.description} if info.description else {}
        if isinstance(info.validation_alias, str):
            options["source"] = "*" if info.validation_alias == "itself" else info.validation_alias
        if not info.is_required():
            options["required"] = False
        found[name] = (info.annotation, options)
    return found


class ResultSerializer(serializers.Serializer[Any]):
    """An answer with the fields of `result`, a dataclass, named tuple or model of pydantic, behind
    its own.

    A field of this class takes the place of the one that is its source. Others are described by
    a text in the annotation: `edges: Annotated[int, "Of these nodes."]`, or by that of a model. A
    result within a result has its own serializer, if one is defined before.
    """

    result: ClassVar[Any]
    #: Fields of the result that are not in the answer.
    skip: ClassVar[frozenset[str]] = frozenset()
    _serializers: ClassVar[dict[Any, type["ResultSerializer"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._serializers.setdefault(cls.result, cls)

    def get_fields(self) -> dict[str, Any]:
        own = super().get_fields()
        names = {
            name if field.source in (None, "*") else field.source: name
            for name, field in own.items()
        }
        derived = {}
        for name, (hint, options) in _field_types(self.result).items():
            own_name = names.get(name, name)
            if own_name in own:
                derived[own_name] = own.pop(own_name)
            elif name not in self.skip:
                derived[name] = self._field(hint, **options)
        return {**own, **derived}

    def _field(self, hint: Any, **options: Any) -> Any:
        """The field of a value of this type; `options` are arguments of it."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._field(arguments[0], help_text=arguments[1], **options)
        if origin in (Union, UnionType):
            return self._field(arguments[0], allow_null=True, **options)
        made: Any = _FIELDS.get(hint)
        if origin is Literal:
            made, options["choices"] = serializers.ChoiceField, arguments
        elif arguments and issubclass(origin, Mapping):
            made = serializers.DictField
            if arguments[1] is not Any:
                options["child"] = self._field(arguments[1])
        elif arguments and arguments[0] not in _FIELDS and not get_args(arguments[0]):
            made, options["many"] = self._serializer(arguments[0]), True
        elif arguments:
            made, options["child"] = serializers.ListField, self._field(arguments[0])
        return (made or self._serializer(hint))(**options)

    def _serializer(self, result: type[Any]) -> Any:
        if result not in self._serializers:
            type(
                f"{result.__name__}Serializer",
                (ResultSerializer,),
                {"__doc__": result.__doc__, "result": result},
            )
        return self._serializers[result]


class QuerySerializer(StrictSerializer):
    """The parameters of a query string; a list is given by repeating its name."""

    @classmethod
    def from_query(cls, query: QueryDict) -> Self:
        """The serializer over a request's parameters; empty ones count as missing."""
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
    """Fields hold no request data, and are more expensive to copy than to use."""
    return serializer_class().fields


class PageParameters(QuerySerializer):
    """Cursor and size of a page."""

    cursor = serializers.CharField(
        required=False,
        max_length=500,
        help_text="Where the page begins: taken from `next` or `previous` of another page.",
    )
    page_size = serializers.IntegerField(
        required=False, min_value=1, max_value=200, help_text="Rows a page. Default 50."
    )


class TextField(serializers.CharField):
    """A string as it was sent, untrimmed; numbers are rejected."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class UsernameField(serializers.CharField):
    """The name of the user in the column of the same name; null where there is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default=None, allow_null=True, **options)

    def bind(self, field_name: str, parent: Any) -> None:
        self.source = f"{field_name}.username"
        super().bind(field_name, parent)


class MetadataField(serializers.DictField):
    """A JSON object of the client's own; in a form, as text."""

    def get_value(self, dictionary: Any) -> Any:
        value = dictionary.get(self.field_name)
        return serializers.empty if value is None or value == "" else value

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            try:
                data = bounded_json.parse(data)
            except InvalidInput as error:
                place = f"At {error.field}: " if error.field else ""
                raise serializers.ValidationError(f"{place}{error}") from error
        return super().to_internal_value(data)
