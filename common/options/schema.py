"""Options as JSON Schema, for tools of chat models."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from common.options import Options, flat_options


class _SchemaGenerator(GenerateJsonSchema):
    """Short schemas: null counts as left out, so no argument says that it may be null. Titles are
    for forms."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        is_open = schema.get("default", ()) in (None, ())
        return self.generate_inner(schema["schema"]) if is_open else super().default_schema(schema)

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        return {"enum": list(schema["expected"])}

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "object"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(hint: Any) -> dict[str, Any]:
    """Of one argument; objects in a list are described in place."""
    schema = TypeAdapter(hint).json_schema(schema_generator=_SchemaGenerator)
    for definition in schema.pop("$defs", {}).values():
        schema["items"] = {
            key: value for key, value in definition.items() if key not in ("title", "description")
        }
        for described in definition["properties"].values():
            described.pop("title", None)
    return schema


def option_schemas(model: type[Options]) -> Mapping[str, dict[str, Any]]:
    """Schemas of the model's options by name, for the `properties` of an object. A model leaves
    out what it does not want to set."""
    shown = flat_options(model)
    schemas = {}
    for field, info in model.model_fields.items():
        name = info.alias or field
        if name not in shown:
            continue
        hint: Any = info.annotation
        for each in info.metadata:
            hint = Annotated[hint, each]
        schema = json_schema(hint)
        if shown[name].description:
            schema["description"] = shown[name].plain_description
        if info.default not in (None, "", ()) and not info.is_required():
            schema["default"] = info.default
        schemas[name] = schema
    return schemas
