"""What schemathesis cannot know of this API."""

import json
from typing import Any

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

#: Codes of a request that is not as the description says. Any other refusal is about what the
#: request means: a node that is not there, a vector of another model, weights that are all zero.
OF_SHAPE = {
    "empty",
    "invalid_choice",
    "max_items",
    "max_length",
    "max_string_length",
    "max_value",
    "min_items",
    "min_length",
    "min_value",
    "not_a_dict",
    "not_a_list",
    "null",
    "parse_error",
    "required",
    "unknown",
    "unsupported_media_type",
}


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: Any, value: Any) -> bytes:
    """One line; what is no line is sent as it is, and refused."""
    return json.dumps(value).encode()


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Whether it is one: to be refused for what it means, a request may well be well-formed. And
    in an address nothing but text can stand: null is the word “null”."""
    if isinstance(failure, RejectedPositiveData):
        return bool(codes(response) & OF_SHAPE)
    if isinstance(failure, AcceptedNegativeData):
        return not any(_is_null(value) for value in (case.query or {}).values())
    return True


@schemathesis.hook
def before_load_schema(context: Any, raw: dict[str, Any]) -> None:
    """A stream of events is a text in OpenAPI 3.0; here each of them is looked at."""
    for operations in raw["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                stream = response.get("content", {}).get("text/event-stream")
                if stream is not None:
                    stream["schema"] = EVENT


EVENT = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}


def _is_null(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return any(part in (None, "null") for part in parts)


def codes(response: Any) -> set[str]:
    """What an answer says is wrong, in either shape."""
    try:
        body = response.json()
    except ValueError:
        return set()
    if not isinstance(body, dict):
        return set()
    error = body.get("error")
    if isinstance(error, dict):
        return {str(error.get("code"))}
    return {str(each["code"]) for each in body.get("errors", ())}
