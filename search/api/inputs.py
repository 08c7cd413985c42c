"""Search parameters, the same in a query string and in a JSON body."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common import bounded_json
from common.options import Options, option_fields
from common.options.drf import OptionsSerializer, serializer_field
from common.parsers import JSONParser
from common.serializers import SlugsField
from common.translation import format_number, gettext
from search.export import EXPORT_FORMATS as EXPORTS
from search.filters.tree import MAX_CHARACTERS
from search.query_options import (
    FacetRequest,
    PageOptions,
    ScopeOptions,
    SearchRequest,
    SimilarRequest,
)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "object", "additionalProperties": {}},
            {"type": "string", "maxLength": MAX_CHARACTERS},
        ],
        "example": {"year": {"$gte": 2020}, "language": "de"},
    }
)
class FilterField(serializers.Field[Any, Any, Any, Any]):
    """A filter in JSON or text form, passed on unchecked: the filter parser has its own errors."""

    def to_internal_value(self, data: Any) -> Any:
        return data


MAX_BYTES = 64 * 1024 * 1024
#: Of everything but vectors.
MAX_OTHER_VALUES = 200_000
NUMBER_TYPES = {int, float}


class VectorsJSONParser(JSONParser):
    """JSON of up to 64 MB; numbers of lists called `vector` do not count towards the
    value limit.
    """

    max_bytes = MAX_BYTES
    too_large = f"This body may have {MAX_BYTES:,} bytes. Send fewer items at once."

    def value(self, text: str) -> Any:
        """Parses; vectors are set aside while the rest is checked, and validated later."""
        value = bounded_json.load(text)
        items = value.get("items") if isinstance(value, dict) else None
        objects = [value, *(items if isinstance(items, list) else ())]
        holders = [
            each
            for each in objects
            if isinstance(each, dict)
            and isinstance(each.get("vector"), list)
            and set(map(type, each["vector"])) <= NUMBER_TYPES
        ]
        vectors = [holder.pop("vector") for holder in holders]
        bounded_json.check(value, max_values=MAX_OTHER_VALUES)
        for holder, vector in zip(holders, vectors, strict=True):
            holder["vector"] = vector
        return value


MAX_DIMENSIONS = 16_000  # pgvector's own limit


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "number", "format": "double"},
        "maxItems": MAX_DIMENSIONS,
        "example": [0.12, -0.07, 0.33],
    }
)
class VectorField(serializers.Field[Any, Any, Any, Any]):
    """A list of numbers. Its length is checked against the space later, where the
    error names the item.
    """

    def to_internal_value(self, data: Any) -> list[float]:
        if not isinstance(data, list) or not set(map(type, data)) <= {int, float}:
            raise serializers.ValidationError(gettext("A vector must be a list of numbers."))
        if len(data) > MAX_DIMENSIONS:
            raise serializers.ValidationError(
                gettext("A vector may have at most {limit} numbers.").format(
                    limit=format_number(MAX_DIMENSIONS)
                )
            )
        return data


class ScopeInput(OptionsSerializer):
    """The scope of a search: collections, media types, filter and versions."""

    options: ClassVar[type[Options]] = ScopeOptions

    collection = SlugsField(required=False)
    filter = FilterField(required=False)


class SearchSerializer(ScopeInput):
    """A question and which page of its hits to return."""

    options = SearchRequest

    explain = serializers.BooleanField(
        default=False, help_text="Say with each hit what each arm contributed."
    )


class SearchParameters(SearchSerializer, WorkspaceParameters):
    """The query string of a search."""


class ExportParameters(ScopeInput, WorkspaceParameters):
    """The query string of an export."""

    options = SearchRequest
    skip = frozenset({"expand", *option_fields(PageOptions)})

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        kind = serializers.ChoiceField(
            choices=EXPORTS,
            default="csv",
            help_text="`csv` for a spreadsheet, in UTF-8; `json` for a program.",
        )
        return {**super().get_fields(), "as": kind}


class FacetParameters(ScopeInput, WorkspaceParameters):
    """Query string of facet values."""

    options = FacetRequest

    prefix, q = (
        serializer_field(option_fields(FacetRequest)[name], allow_blank=False)
        for name in ("prefix", "q")
    )


class FieldsParameters(WorkspaceParameters):
    """Query string of the list of filterable fields."""

    collection = SlugsField(
        required=False, help_text=option_fields(ScopeOptions)["collection"].description
    )


class SimilarParameters(ScopeInput, WorkspaceParameters):
    """Query string of similar documents or passages."""

    options = SimilarRequest
