"""Each operation of the API: it answers a right request as described, once for each key given,
and refuses values that its schema does not allow by the name of the field."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction
from django.test import override_settings

from accounts.models import User
from tests.access.walking import UNHURRIED
from tests.access.world import World, make_world
from tests.description import api_description, faults_of_answer
from tests.hostile.asking import Asker
from tests.hostile.operations import Operation, operations
from tests.hostile.requests import Hostile
from tests.plugin import committed_rows
from tests.test_access_walk import no_log

pytestmark = pytest.mark.django_db
SLUG = "^[-a-zA-Z0-9_]+$"
RIGHT: dict[str, Any] = {"string": "x", "integer": 1, "number": 1.0, "boolean": True}
#: A value of none of these types; JSON has no other.
OTHER_TYPES: dict[str, tuple[Any, ...]] = {
    "string": ({"a": 1}, ["a"]),  # many fields take a number as its text
    "integer": ("many", [1], 1.5),
    "number": ("much", [1.0]),
    "boolean": ("perhaps", [True]),
    "array": (7, "a", {"a": 1}),
    "object": (7, [1]),
}


NAMES = ("name", "description")
#: What is accepted, or refused in another way.
ACCEPTED = {
    # Without a name, a pipeline is called as its id is.
    *((f"POST /api/v1/pipelines/{path}", name) for path in ("", "check/") for name in NAMES),
    *(("PUT /api/v1/pipelines/{id}/", name) for name in NAMES),
    # A tool's answer says what is wrong with its arguments, for the model to read.
    ("POST /api/v1/tools/{name}/", "arguments"),
    # Clients of other services send fields of theirs.
    *(
        (f"POST /v1/{path}", "unheard_of")
        for path in (
            *("chat/completions", "embeddings", "rerank"),
            *("messages", "messages/count_tokens"),
        )
    ),
    # For staff alone: documents/tests/test_spaces.py.
    *(("PATCH /api/v1/spaces/{name}/", name) for name in ("ef_search", "probes", "unheard_of")),
}


def resolved(schema: Any) -> dict[str, Any]:
    """The schema itself, where it is named elsewhere."""
    while "$ref" in schema or len(schema.get("allOf", ())) == 1:
        name = schema.get("$ref") or schema["allOf"][0].get("$ref")
        if name is None:
            return dict(schema["allOf"][0])
        schema = api_description()["components"]["schemas"][name.rsplit("/", 1)[1]]
    return dict(schema)


def outside(schema: dict[str, Any]) -> Iterator[Any]:
    """Values that the schema of a field of a body does not allow."""
    yield from OTHER_TYPES.get(schema.get("type", ""), ())
    yield from outside_bounds(schema)
    if "maxItems" in schema:
        item = RIGHT.get(resolved(schema["items"]).get("type", ""), {})
        yield [item] * (schema["maxItems"] + 1)
    if schema.get("minItems"):
        yield []
    if "items" in schema:
        yield from ([value] for value in outside(resolved(schema["items"])))


def outside_bounds(schema: dict[str, Any]) -> Iterator[Any]:
    """Values of the right type that are too long, too short, too large, too small or unknown."""
    if "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield ""
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if schema.get("pattern") == SLUG:
        yield "a b"
    if "enum" in schema or schema.get("format") in ("date-time", "date"):
        yield "none of these"


def described(operation: Operation) -> Any:
    method, _, path = operation.name.partition(" ")
    return api_description()["paths"][path][method.lower()]


def bodies(operation: Operation) -> Iterator[tuple[str, Hostile]]:
    content = described(operation).get("requestBody", {}).get("content", {})
    schema = resolved(content.get("application/json", {}).get("schema", {}))
    for name, field in schema.get("properties", {}).items():
        if field.get("deprecated"):  # a former name: refused by the current one
            continue
        for value in outside(resolved(field)):
            body = {**(operation.body or {}), name: value}
            yield name, Hostile(f"{name} = {str(value)[:30]}", json.dumps(body).encode())
    for name in schema.get("required", ()):
        body = {key: each for key, each in (operation.body or {}).items() if key != name}
        yield name, Hostile(f"no {name}", json.dumps(body).encode())
    if operation.body is not None:
        body = {**operation.body, "unheard_of": 1}
        yield "unheard_of", Hostile("unknown field", json.dumps(body).encode())


def queries(operation: Operation) -> Iterator[tuple[str, Hostile]]:
    if operation.method != "GET":
        return
    right = [each for each in operation.query.split("&") if each]
    for parameter in described(operation).get("parameters", ()):
        if parameter["in"] != "query" or parameter["schema"].get("deprecated"):
            continue
        name, schema = parameter["name"], resolved(parameter["schema"])
        values = [value for value in outside_bounds(schema) if value != ""]  # which is none
        if schema.get("type") in ("integer", "number", "boolean"):
            values.append("many")
        others = [each for each in right if each.partition("=")[0] != name]
        if parameter.get("required"):
            yield name, Hostile(f"no {name}", query="&".join(others))
        for value in values:
            query = "&".join([*others, f"{name}={quote(str(value))}"])
            yield name, Hostile(f"?{name}={str(value)[:30]}", query=query)
    yield "unheard_of", Hostile("unknown parameter", query="&".join([*right, "unheard_of=1"]))


@pytest.fixture(scope="module")
def asker(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any) -> Iterator[Any]:
    media = tmp_path_factory.mktemp("media")
    (media / "empty").mkdir()
    changed = {
        "MEDIA_ROOT": media,
        "INGEST_ROOTS": [str(media)],
        "WORKSPACE_MODELS": True,
        **UNHURRIED,
    }
    with committed_rows(django_db_blocker), override_settings(**changed), no_log():
        world: World = make_world(directory=media / "empty")
        # Rights come before bounds; some things only operators of the site may do.
        User.objects.filter(username="owner").update(is_superuser=True)
        asker = Asker(world)
        yield asker, world
        asker.close()


@pytest.mark.parametrize("kind", [bodies, queries])
def test_what_the_schema_does_not_allow_is_refused_by_name(asker: Any, kind: Any) -> None:
    client, world = asker
    wrong, tried = [], 0
    for operation in operations(world.ids):
        asked = [each for each in kind(operation) if (operation.name, each[0]) not in ACCEPTED]
        with transaction.atomic():
            answers = [client._ask(operation, hostile) for _, hostile in asked]
            transaction.set_rollback(True)
        for (name, hostile), answer in zip(asked, answers, strict=True):
            text = b"" if answer.streaming else answer.content
            tried += 1
            told = f"{operation.name}, {hostile.kind}: {answer.status_code} {text[:150]!r}"
            if answer.status_code != 400:
                wrong.append(told)
                continue
            body = json.loads(text)
            named = (
                {body["error"]["param"]}
                if "error" in body
                else {each["attr"] for each in body["errors"]}
            )
            if not any(str(each).partition(".")[0] == name for each in named):
                wrong.append(f"{told} names {named}")
    assert tried > 200
    assert not wrong, "\n".join([f"{len(wrong)} of {tried} answers are wrong:", *wrong])


RIGHT_REQUEST, NOBODY = Hostile("right"), Hostile("nobody", headers={"Authorization": ""})


@pytest.mark.doors
@pytest.mark.parametrize("request_", [RIGHT_REQUEST, NOBODY], ids=["right", "nobody"])
def test_every_answer_is_as_described(asker: Any, request_: Hostile) -> None:
    client, world = asker
    wrong, answered = [], 0
    for operation in operations(world.ids):
        if operation.is_threaded and request_ is RIGHT_REQUEST:
            continue  # A stream, which tests of chats and pipelines read.
        with transaction.atomic():
            answer = client._ask(operation, request_)
            transaction.set_rollback(True)
        if request_ is NOBODY and (
            answer.status_code != 401
            or answer["WWW-Authenticate"] != 'Basic realm="ragsite", Bearer realm="ragsite"'
        ):
            wrong.append(f"{operation.name}: {answer.status_code} {answer.headers}")
        if answer.status_code == 204 or answer.streaming or "json" not in answer["Content-Type"]:
            continue
        answered += answer.status_code < 300
        method, _, path = operation.name.partition(" ")
        body = json.loads(answer.content)
        faults = faults_of_answer(method.lower(), path, answer.status_code, body)
        wrong += [f"{operation.name} [{answer.status_code}]: {fault}" for fault in faults]
    assert not wrong, "\n".join(wrong)
    assert request_ is NOBODY or answered > 80


def test_a_request_with_a_key_is_done_once(asker: Any) -> None:
    client, world = asker
    done = []
    for operation in operations(world.ids):
        headers = [each for each in described(operation)["parameters"] if each["in"] == "header"]
        if operation.is_threaded or "Idempotency-Key" not in {each["name"] for each in headers}:
            continue
        other = json.dumps({**(operation.body or {}), "unheard_of": 1}).encode()
        with transaction.atomic():
            first, again, changed = (
                client._ask(operation, Hostile("key", body, headers={"Idempotency-Key": "once"}))
                for body in (None, None, other)
            )
            no_key = Hostile("no key", headers={"Idempotency-Key": "k" * 256})
            refused = client._ask(operation, no_key)
            transaction.set_rollback(True)
        assert b"Idempotency-Key" in refused.content, operation.name
        if first.status_code < 300:
            assert again["Idempotency-Replayed"] == "true", operation.name
            assert (again.status_code, again.content) == (first.status_code, first.content)
            assert changed.status_code == 422, operation.name
            done.append(operation.name)
    assert len(done) > 10, done
