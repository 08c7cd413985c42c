"""The OpenAPI description is the committed one, and the API answers as it says."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from documents.models import Document, IngestionItem
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
)
from tests.description import COMMITTED, api_description


@pytest.fixture(scope="module")
def described() -> Any:
    description = api_description()
    return {**description, "components": as_json_schema(description["components"])}


def test_the_committed_description_is_up_to_date() -> None:
    made = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=made)
    assert made.getvalue().strip() == COMMITTED.read_text().strip(), "run `make openapi`"


def test_every_operation_says_what_it_does_takes_and_answers(described: Any) -> None:
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["operationId"], where
            statuses = set(operation["responses"])
            assert {"400", "401", "403", "404"} <= statuses, where
            assert all(
                each.get("description") or "$ref" in each
                for each in operation["responses"].values()
            )
            for parameter in operation.get("parameters", []):
                assert parameter["in"] == "path" or parameter["description"], (where, parameter)
            for name, content in operation.get("requestBody", {}).get("content", {}).items():
                assert content["examples"], (where, name)


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


def validator(described: Any, schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**as_json_schema(schema), "components": described["components"]})


def assert_as_described(described: Any, path: str, answer: Any, method: str = "get") -> None:
    response = described["paths"][path][method]["responses"][str(answer.status_code)]
    if "$ref" in response:
        response = described["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    schema = response["content"]["application/json"]["schema"]
    faults = [error.message for error in validator(described, schema).iter_errors(answer.json())]
    assert not faults


@pytest.mark.django_db
def test_every_answer_is_as_described(described: Any, media_root: Path) -> None:
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    document = DocumentFactory(collection=collection, metadata={"any": ["thing", {"a": 1}]})
    DocumentFactory(
        collection=collection,
        status=Document.Status.FAILED,
        error_code="encrypted",
        error="The file is encrypted.",
    )
    ChunkFactory(document=document, text="Words to find.", heading_path=["One"], page=2)
    run = RunFactory(collection=collection, timings={"parse": 0.25})
    ItemFactory(run=run, state=IngestionItem.State.FAILED, error_code="empty", error="Nothing.")
    ItemFactory(run=run, document=document)
    client = APIClient()
    client.force_login(member.user)

    v1 = "/api/v1"
    for path, values in {
        f"{v1}/collections/": {},
        f"{v1}/collections/{{slug}}/": {"slug": "notes"},
        f"{v1}/documents/": {},
        f"{v1}/documents/{{id}}/": {"id": document.pk},
        f"{v1}/documents/{{id}}/chunks/": {"id": document.pk},
        f"{v1}/runs/": {},
        f"{v1}/runs/{{id}}/": {"id": run.pk},
        f"{v1}/runs/{{id}}/items/": {"id": run.pk},
    }.items():
        url = path.format(**values)
        answer = client.get(url)
        assert answer.status_code == 200, url
        assert_as_described(described, path, answer)
        assert_as_described(described, path, client.get(url, {"no": "such"}))
        assert_as_described(described, path, APIClient().get(url))

    search = f"{v1}/search/"
    for parameters in ({"q": "words", "explain": "true"}, {"q": "words", "mode": "lexical"}):
        answer = client.get(search, parameters)
        assert answer.json()["hits"]
        assert_as_described(described, search, answer)
        assert_as_described(described, search, client.post(search, parameters), "post")
    assert_as_described(described, search, client.get(search))

    made = client.post(f"{v1}/collections/", {"name": "New"})
    assert_as_described(described, f"{v1}/collections/", made, "post")
    again = client.post(f"{v1}/collections/", {"name": "New"})
    assert again.status_code == 409
    assert_as_described(described, f"{v1}/collections/", again, "post")
    text = {"collection": "notes", "key": "k", "text": "More words."}
    queued = client.post(f"{v1}/documents/", text)
    assert queued.status_code == 202
    assert_as_described(described, f"{v1}/documents/", queued, "post")


@pytest.mark.django_db
def test_every_answer_about_memory_is_as_described(described: Any) -> None:
    client = APIClient()
    client.force_login(MembershipFactory().user)
    messages = [{"role": "user", "content": "I moved to Berlin. Do I like tea?"}]
    turn = {"user_message": "I like tea.", "assistant_response": "Noted."}

    v1 = "/api/v1/memory"
    for method, path, values, body in [
        ("post", f"{v1}/contexts/", {}, turn),
        ("post", f"{v1}/contexts/", {}, turn),
        ("put", f"{v1}/facts/{{key}}/", {"key": "city"}, {"value": "Basel"}),
        ("put", f"{v1}/facts/{{key}}/", {"key": "city"}, {"value": "Berlin"}),
        ("post", f"{v1}/conversations/", {}, {"conversation": "c", "messages": messages}),
        ("post", f"{v1}/inject/", {}, {"messages": messages}),
        ("post", f"{v1}/search/", {}, {"q": "tea"}),
        ("get", f"{v1}/search/", {}, {"q": "tea", "mode": "lexical"}),
        ("get", f"{v1}/contexts/", {}, None),
        ("get", f"{v1}/facts/", {}, None),
        ("get", f"{v1}/facts/{{key}}/", {"key": "city"}, None),
        ("get", f"{v1}/facts/{{key}}/history/", {"key": "city"}, None),
        ("get", f"{v1}/conversations/", {}, None),
        ("get", f"{v1}/usage/", {}, None),
        ("post", f"{v1}/facts/{{key}}/clear/", {"key": "city"}, None),
        ("delete", f"{v1}/facts/{{key}}/", {"key": "city"}, None),
        ("post", f"{v1}/contexts/clear/", {}, {"question": "I like tea."}),
        ("delete", f"{v1}/", {}, None),
    ]:
        url = path.format(**values)
        for address in (f"{url}?user_id=ada&confirm=ada" if path == f"{v1}/" else url, url):
            answer = getattr(client, method)(address, body)
            assert answer.status_code in (200, 201) or address == url == f"{v1}/"
            assert_as_described(described, path, answer, method)
        nobody = getattr(client, method)(f"{url}?user_id=", None if method == "get" else body)
        assert_as_described(described, path, nobody, method)
        assert_as_described(described, path, getattr(APIClient(), method)(url, body), method)


@pytest.mark.django_db
def test_every_answer_about_the_graph_is_as_described(described: Any) -> None:
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    ChunkFactory(document=DocumentFactory(collection=collection, key="a.md"), text="Of a.")
    client = APIClient()
    client.force_login(member.user)
    edge = {"source": "src:a", "rel": "R", "target": "src:b"}
    around = {"id": ["src:a", "src:none"], "hops": 1}

    v1 = "/api/v1/graph"
    for method, path, body in [
        ("put", "nodes", {"id": "src:a", "name": "A", "props": {"any": ["thing", {"a": 1}]}}),
        ("put", "nodes", {"id": "src:a"}),
        ("put", "edges", {**edge, "strict": False}),
        ("put", "edges", edge),
        ("post", "bulk", {"nodes": [{"id": "src:c"}], "edges": [{**edge, "target": "src:c"}]}),
        ("put", "edges", {"source": "doc:notes:a.md", "rel": "ABOUT", "target": "src:a"}),
        ("get", "nodes", {}),
        ("get", "nodes", {"id": "src:a"}),
        ("get", "nodes", {"id": "chunk:notes:a.md:0"}),
        ("get", "nodes", {"q": "A"}),
        ("get", "edges", {}),
        ("get", "edges", edge),
        ("get", "neighbors", {"id": "src:a"}),
        ("get", "mentions", {"id": "src:a"}),
        ("get", "traverse", {"start": "src:a"}),
        ("post", "traverse", {"start": "src:a"}),
        ("get", "paths", {"source": "src:b", "target": "src:c"}),
        ("get", "paths", {"source": "src:b", "target": "src:c", "max_depth": 1}),
        ("post", "paths", {"source": "src:b", "target": "src:c"}),
        ("get", "subgraph", around),
        ("post", "subgraph", around),
        ("get", "stats", {}),
        ("get", "extractions", {"collection": "notes"}),
        ("post", "extractions", {"collection": "notes"}),
        ("post", "merge", {"keep": "src:b", "others": ["src:c"], "dry_run": True}),
        ("post", "merge", {"keep": "src:b", "others": ["src:c"]}),
        ("post", "nodes/delete", {"ids": ["src:b"], "dry_run": True}),
    ]:
        url = f"{v1}/{path}/"
        answer = getattr(client, method)(url, body)
        assert answer.status_code in (200, 201, 202), (method, path, answer.content)
        assert_as_described(described, url, answer, method)
        wrong = getattr(client, method)(f"{url}?no=such", None if method == "get" else body)
        assert_as_described(described, url, wrong, method)
        assert_as_described(described, url, getattr(APIClient(), method)(url, body), method)

    for url in (f"{v1}/nodes/?id=src:a&dry_run=true", f"{v1}/nodes/?id=src:none"):
        assert_as_described(described, f"{v1}/nodes/", client.delete(url), "delete")


def examples_of(described: Any, schema: Any, content: Any) -> list[str]:
    """What is wrong with the examples of a body or an answer."""
    faults = validator(described, schema)
    return [
        error.message
        for example in content.get("examples", {}).values()
        for error in faults.iter_errors(example["value"])
    ]


def test_every_example_about_the_graph_is_as_described(described: Any) -> None:
    seen = 0
    for path, operations in described["paths"].items():
        if not path.startswith("/api/v1/graph/"):
            continue
        for method, operation in operations.items():
            for part in (operation.get("requestBody", {}), *operation["responses"].values()):
                for content in part.get("content", {}).values():
                    seen += len(content.get("examples", {}))
                    faults = examples_of(described, content["schema"], content)
                    assert not faults, (method, path, faults)
    assert seen > 30


def test_the_description_is_served_and_shown_from_local_files() -> None:
    client = APIClient()
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/").content.decode()
    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page


@pytest.mark.parametrize("address", ["/api/", "/api/v1/"])
def test_the_index_leads_programs_to_every_resource_and_browsers_to_the_docs(
    address: str,
) -> None:
    client = APIClient()
    index = client.get(address).json()
    assert index["schema"] == "http://testserver/api/schema/"
    assert index["resources"]["graph/nodes"] == "http://testserver/api/v1/graph/nodes/"
    for url in index["resources"].values():
        assert client.get(url).status_code in (401, 405)  # it is there

    browser = client.get(address, headers={"Accept": "text/html,*/*;q=0.8"})
    assert (browser.status_code, browser["Location"]) == (302, "/api/docs/")
    assert client.get(address, headers={"Accept": "*/*"}).status_code == 200
