"""From files to answers by the API alone, with a real worker."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from documents.tests.factories import MembershipFactory
from tests.kit import client_of
from tests.plugin import WorkerProcess, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_brought_is_found_and_what_is_deleted_is_not(
    celery_worker_process: WorkerProcess,
) -> None:
    client = client_of(MembershipFactory())
    collection = client.post("/api/v1/collections/", {"name": "Leaflets"}).json()

    text = client.post(
        "/api/v1/documents/",
        {
            "collection": collection["slug"],
            "key": "aripiprazole",
            "text": "# Side effects\n\nNausea and restlessness are common.",
            "media_type": "text/markdown",
            "metadata": {"year": 2025},
        },
    ).json()
    files = client.post(
        "/api/v1/documents/",
        {
            "collection": collection["slug"],
            "files": [
                SimpleUploadedFile("storage.txt", b"Keep the tablets away from children."),
                SimpleUploadedFile("broken.pdf", b"%PDF-1.7 and then nothing"),
            ],
        },
        format="multipart",
    ).json()
    for run in (text, files):
        wait_until(
            lambda url=run["url"]: client.get(url).json()["is_finished"],  # type: ignore[misc]
            what="the run is finished",
        )

    finished = client.get(files["url"]).json()
    assert (finished["state"], finished["ready"], finished["failed"]) == ("partial", 1, 1)
    failed = finished["items"][0]
    assert failed["name"] == "broken.pdf"
    assert failed["error"]["code"]
    assert failed["error"]["message"]

    def hits(question: str) -> list[str]:
        answer = client.get("/api/v1/search/", {"q": question, "mode": "lexical"})
        return [hit["document"]["key"] for hit in answer.json()["hits"]]

    assert hits("nausea") == ["aripiprazole"]
    assert hits("tablets") == ["storage.txt"]

    found = client.get("/api/v1/documents/", {"collection": "leaflets", "key": "aripiprazole"})
    document = found.json()["results"][0]
    assert (document["status"], document["metadata"]) == ("ready", {"year": 2025})
    chunks = client.get(document["url"] + "chunks/").json()["results"]
    assert "Nausea" in chunks[0]["text"]

    assert client.delete(document["url"]).status_code == 204
    assert hits("nausea") == []
