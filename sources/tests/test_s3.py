"""S3 buckets as sources: what is listed and fetched, with whose rights, and what stores answer."""

import gzip
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from moto.core.responses import ActionAuthenticatorMixin

from sources.connectors.base import ItemError, ItemGone, SourceError
from sources.connectors.s3 import S3, S3Options
from sources.tests.places import S3Place, WebPlace, opened


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sources.connectors.http.TRIES", 1)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[S3Place]:
    with opened(S3Place, tmp_path / "place") as place:
        assert isinstance(place, S3Place)
        yield place


def connector(place: S3Place, **options: str) -> S3:
    return S3(S3Options.model_validate(place.options | options))


def fetched(source: S3, file: Path, *, max_bytes: int = 1000) -> dict[str, bytes]:
    """The bytes of each file, by its name."""
    found = {}
    for item in source.list_items():
        told = source.fetch(item, file, max_bytes=max_bytes)
        found[told.get("file_name", item.name)] = file.read_bytes()
    return found


def test_all_pages_of_a_folder_are_listed_and_each_object_is_fetched_as_it_is(
    place: S3Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sources.connectors.s3.PAGE_OBJECTS", 2)
    names = ["a.md", "b/c.md", "b//d.md", "ä + %2F &?#=.md", "it's~(1)*.md"]
    for name in names:
        place.write(name, f"Text of {name}")
    for name in ("", "empty/", ".hidden.md", ".git/config"):
        place.write(name, "")
    place.client.put_object(Bucket=place.bucket, Key="docs-2/other.md", Body=b"Elsewhere.")
    with connector(place) as source:
        assert fetched(source, tmp_path / "file") == {
            name: f"Text of {name}".encode() for name in names
        }
    with connector(place, prefix="/docs/b/", glob="*.md") as source:
        assert [item.name for item in source.list_items()] == ["c.md"]


def test_packed_objects_are_unpacked_within_bounds_and_types_stand_for_missing_suffixes(
    place: S3Place, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    place.write("page", "<p>Trains.</p>", ContentType="text/html; charset=utf-8")
    place.write("notes.md", gzip.compress(b"Notes."), ContentEncoding="gzip")
    with connector(place) as source:
        assert fetched(source, file) == {"page.html": b"<p>Trains.</p>", "notes.md": b"Notes."}
    place.write("notes.md", gzip.compress(b"x" * 10_000_000)[:-9], ContentEncoding="gzip")
    place.write("page", "odd", ContentEncoding="br")
    with connector(place) as source:
        for item in source.list_items():
            with pytest.raises(ItemError, match=r"bytes; 100,000 are allowed|compressed with br"):
                source.fetch(item, file, max_bytes=100_000)


def test_large_archived_and_vanished_objects_are_told_apart(place: S3Place, tmp_path: Path) -> None:
    place.write("large.md", "x" * 2000)
    place.write("cold.md", "Cold.", StorageClass="GLACIER")
    place.write("gone.md", "Gone.")
    with connector(place) as source:
        cold, gone, large = source.list_items()
        place.remove("gone.md")
        with pytest.raises(ItemError, match="1,000 are allowed"):
            source.fetch(large, tmp_path / "file", max_bytes=1000)
        with pytest.raises(ItemError, match="archived"):
            source.fetch(cold, tmp_path / "file", max_bytes=1000)
        with pytest.raises(ItemGone):
            source.fetch(gone, tmp_path / "file", max_bytes=1000)
        assert [source.is_gone(item.key) for item in (cold, gone, large)] == [False, True, False]
    with connector(place, bucket="no-such-bucket") as source:
        assert not source.is_gone("gone.md")
        with pytest.raises(SourceError, match="does not exist") as told:
            list(source.list_items())
        assert told.value.is_permanent


def test_what_the_keys_may_not_do_is_named_and_never_taken_for_gone(
    place: S3Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("open.md", "For all.")
    place.write("closed.md", "For few.")
    accounts = place.service("iam")
    name = place.bucket
    accounts.create_user(UserName=name)
    bucket = f"arn:aws:s3:::{place.bucket}"
    allowed = [
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{bucket}/docs/open*"},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
    accounts.put_user_policy(UserName=name, PolicyName="read", PolicyDocument=policy)
    key = accounts.create_access_key(UserName=name)["AccessKey"]
    options = {"access_key": key["AccessKeyId"], "secret_key": key["SecretAccessKey"]}
    # From here on the server checks signatures and rights.
    monkeypatch.setattr(ActionAuthenticatorMixin, "request_count", 10**9)
    monkeypatch.setattr("moto.core.responses.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
    with connector(place, **options) as source:
        closed, free = source.list_items()
        source.fetch(free, tmp_path / "file", max_bytes=1000)
        with pytest.raises(ItemError, match="AccessDenied"):
            source.fetch(closed, tmp_path / "file", max_bytes=1000)
        assert not source.is_gone(closed.key)
    for wrong, reason in (
        ({"secret_key": "wrong"}, "SignatureDoesNotMatch"),
        ({"access_key": "nobody"}, "InvalidAccessKeyId"),
        (
            {"secret_key": ""},
            "Give both the access key and the secret key, or neither for a public bucket",
        ),
    ):
        with (
            connector(place, **(options | wrong)) as source,
            pytest.raises(SourceError, match=reason) as told,
        ):
            list(source.list_items())
        assert told.value.is_permanent


# --- stores that answer otherwise -----------------------------------------------------------------


class Store(WebPlace):
    """Answers what it was given, and keeps what it was asked."""

    kind = "s3"

    def __init__(self, root: Path) -> None:
        self.requests: list[dict[str, str]] = []
        self.answer: Callable[[dict[str, str]], tuple[str, dict[str, str], str]] = lambda asked: (
            *("200 OK", {}),
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
        )
        super().__init__(root)

    def application(self) -> Any:
        def serve(environ: dict[str, Any], start: Any) -> list[bytes]:
            self.requests.append({name: str(value) for name, value in environ.items()})
            status, headers, body = self.answer(self.requests[-1])
            start(status, list(headers.items()))
            return [body.encode()]

        return serve

    def source(self, **options: str) -> S3:
        given = {"bucket": "team", "endpoint": f"http://localhost:{self.port}"}
        return S3(S3Options.model_validate(given | options))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(Store, tmp_path / "store") as store:
        assert isinstance(store, Store)
        yield store


def failure(code: str, message: str = "No.", **more: str) -> str:
    fields = {"Code": code, "Message": message, **more}
    inner = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in fields.items())
    return f'<?xml version="1.0"?><Error>{inner}</Error>'


def test_rights_of_the_server_itself_are_never_used(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither from its environment and files nor from the machine that it runs on."""
    files = tmp_path / "credentials"
    files.write_text("[default]\naws_access_key_id = ours\naws_secret_access_key = ours\n")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "ours",
        "AWS_SECRET_ACCESS_KEY": "ours",
        "AWS_SESSION_TOKEN": "ours",
        "AWS_PROFILE": "ours",
        "AWS_SHARED_CREDENTIALS_FILE": str(files),
        "AWS_CONFIG_FILE": str(files),
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://localhost:{store.port}/rights",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://localhost:{store.port}/",
        "AWS_ENDPOINT_URL": "http://localhost:1",
        "HTTP_PROXY": "http://localhost:1",
    }.items():
        monkeypatch.setenv(name, value)
    with store.source() as source:
        assert list(source.list_items()) == []
    with store.source(access_key="theirs", secret_key="secret") as source:
        assert list(source.list_items()) == []
    unsigned, signed = store.requests
    assert "ours" not in str(store.requests)
    assert "HTTP_AUTHORIZATION" not in unsigned
    assert "Credential=theirs/" in signed["HTTP_AUTHORIZATION"]
    assert "HTTP_X_AMZ_SECURITY_TOKEN" not in signed


def test_a_bucket_of_another_region_is_read_there_and_no_redirection_is_followed(
    store: Store, tmp_path: Path
) -> None:
    listing = store.answer

    def elsewhere(asked: dict[str, str]) -> tuple[str, dict[str, str], str]:
        if "/eu-central-1/" in asked.get("HTTP_AUTHORIZATION", ""):
            return listing(asked)
        body = failure("AuthorizationHeaderMalformed", Region="eu-central-1")
        return "400 Bad Request", {}, body

    store.answer = elsewhere
    with store.source(access_key="a", secret_key="b") as source:
        assert list(source.list_items()) == []
    with opened(Store, tmp_path / "inside") as inside:
        assert isinstance(inside, Store)
        target = {"Location": f"http://localhost:{inside.port}/team"}
        store.answer = lambda asked: ("307 Temporary Redirect", target, failure("Redirect"))
        with (
            store.source() as source,
            pytest.raises(SourceError, match="to another address") as told,
        ):
            list(source.list_items())
        assert told.value.is_permanent
        assert inside.requests == []


@pytest.mark.parametrize(
    ("status", "body", "reason", "is_permanent"),
    [
        ("503 Slow Down", failure("SlowDown"), "SlowDown", False),
        ("500 Internal Server Error", "", "500", False),
        ("403 Forbidden", failure("RequestTimeTooSkewed"), "clocks", False),
        (
            "403 Forbidden",
            failure("AccessDenied"),
            "The keys need the rights to list and to read it",
            True,
        ),
        ("200 OK", "<html>Welcome", "500", False),
    ],
)
def test_a_store_that_is_away_is_asked_again_and_one_that_refuses_is_not(
    store: Store, status: str, body: str, reason: str, is_permanent: bool
) -> None:
    store.answer = lambda asked: (status, {}, body)
    with store.source() as source:
        with pytest.raises(SourceError, match=reason) as told:
            list(source.list_items())
        assert told.value.is_permanent == is_permanent
        assert not source.is_gone("a.md")


def test_a_listing_in_a_circle_ends_as_a_failure(store: Store) -> None:
    numbers = count()
    page = (
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x"
        "</NextContinuationToken><Contents><Key>{}.md</Key><ETag>a</ETag><Size>1</Size>"
        "<LastModified>2026-11-24T10:00:00Z</LastModified></Contents></ListBucketResult>"
    )
    store.answer = lambda asked: ("200 OK", {}, page.format(next(numbers)))
    with store.source() as source, pytest.raises(SourceError, match="cannot be read"):
        list(source.list_items())


def test_a_store_inside_the_network_is_not_asked_unless_allowed(
    store: Store, settings: Any
) -> None:
    settings.SOURCE_NETWORKS = []
    with store.source() as source, pytest.raises(SourceError, match="outside the public internet"):
        list(source.list_items())
    with (
        store.source(endpoint="http://169.254.169.254") as source,
        pytest.raises(SourceError, match="outside the public internet"),
    ):
        list(source.list_items())
    assert store.requests == []
