"""The OpenAPI description is the committed one. That answers are as it says:
tests/test_api_bounds.py."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from rest_framework.test import APIClient

from tests.description import COMMITTED, api_description, faults_of


def test_the_committed_description_is_up_to_date() -> None:
    made = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=made)
    assert made.getvalue().strip() == COMMITTED.read_text().strip(), "run `make openapi`"


def test_every_operation_says_what_it_does_takes_and_answers() -> None:
    for path, operations in api_description()["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"][0].isupper(), where
            assert operation["summary"][-1] not in ".\n", where
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


def test_every_example_is_as_described() -> None:
    seen = 0
    for path, operations in api_description()["paths"].items():
        for method, operation in operations.items():
            for part in (operation.get("requestBody", {}), *operation["responses"].values()):
                for kind, content in part.get("content", {}).items():
                    if kind == "multipart/form-data":
                        continue  # whose objects are texts
                    seen += len(content.get("examples", {}))
                    for example in content.get("examples", {}).values():
                        faults = faults_of(example["value"], content["schema"])
                        assert not faults, (method, path, faults)
    assert seen > 100


def test_every_example_belongs_to_operations_that_exist() -> None:
    files = list(Path(settings.BASE_DIR).glob("*/*/examples.yaml"))
    known = {
        operation["operationId"]
        for operations in api_description()["paths"].values()
        for operation in operations.values()
    }
    named = {
        operation
        for file in files
        for example in yaml.safe_load(file.read_text()).values()
        for operation in example.get("operations", ())
    }
    assert len(files) >= 8
    assert named <= known


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
