"""The committed description of the API, parsed once a process, and what is not as it says."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from jsonschema import Draft202012Validator

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


@cache
def api_description() -> Any:
    """As Python's lists and mappings, which are not to be changed."""
    # libyaml's parser takes a tenth of the time.
    return yaml.load(COMMITTED.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def as_json_schema(part: Any) -> Any:
    """Out of OpenAPI 3.0: `nullable` becomes a type, other names become faults."""
    if isinstance(part, list):
        return [as_json_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    inner = {key: as_json_schema(value) for key, value in part.items() if key != "nullable"}
    if "properties" in inner:
        inner.setdefault("additionalProperties", False)
    return {"anyOf": [inner, {"type": "null"}]} if part.get("nullable") is True else inner


@cache
def _components() -> Any:
    return as_json_schema(api_description()["components"])


def faults_of(value: Any, schema: Any) -> list[str]:
    """What of a value is not as a schema of the description says."""
    strict = {**as_json_schema(schema), "components": _components()}
    return [error.message for error in Draft202012Validator(strict).iter_errors(value)]


def faults_of_answer(method: str, path: str, status: int, body: Any) -> list[str]:
    """What of the JSON of an answer is not as the operation describes it for the status."""
    responses = api_description()["paths"][path][method]["responses"]
    response = responses.get(str(status), {})
    if "$ref" in response:
        name = response["$ref"].rsplit("/", 1)[1]
        response = api_description()["components"]["responses"][name]
    content = response.get("content", {})
    if "application/json" not in content:
        return [f"JSON is not described for {status}"]
    return faults_of(body, content["application/json"]["schema"])
