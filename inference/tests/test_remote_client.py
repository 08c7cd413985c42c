"""Asking a server that misbehaves: retries, deadlines, messages, and what is never said."""

import os
import socket
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from inference.interfaces import BackendUnavailable, MalformedAnswer
from inference.remote.client import JsonClient, with_version
from inference.remote.retry import RetryPolicy, ServerRefused, retry_after, server_text
from inference.tests.stub_server import CutOff, Dripping, Reply, Silence, self_signed, stub_server

KEY = "sk-never-to-be-seen-0123456789"
PATIENCE = RetryPolicy(attempts=3, timeout=5, first_wait=0.01, longest_wait=1)
GOOD = Reply({"good": True})


def post(stub, *, patience=PATIENCE, deadline=float("inf"), **options):
    client = JsonClient(stub.url, api_key=KEY, **options)
    return client.post("/x", {"asked": "ü"}, patience=patience, deadline=deadline)


def test_json_goes_there_with_the_key_and_comes_back(stub):
    stub.first(GOOD)
    assert post(stub, headers={"X-Extra": "1"}) == {"good": True}
    request = stub.requests[0]
    assert (request.path, request.json) == ("/x", {"asked": "ü"})
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-extra"] == "1"


def test_a_login_in_the_address_is_sent_as_one(stub):
    stub.first(GOOD)
    client = JsonClient(stub.url.replace("//", "//user:pass@"))
    client.post("/x", {}, patience=PATIENCE)
    assert stub.requests[0].headers["authorization"] == "Basic dXNlcjpwYXNz"
    assert client.base_url == stub.url


def test_without_a_key_none_is_sent(stub):
    stub.first(GOOD)
    JsonClient(stub.url).post("/x", {}, patience=PATIENCE)
    assert "authorization" not in stub.requests[0].headers


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_status_is_tried_again(stub, status):
    stub.first(Reply({"error": "busy"}, status), GOOD)
    assert post(stub) == {"good": True}
    assert len(stub.requests) == 2


@pytest.mark.parametrize("fault", [CutOff(), Reply(b"", headers={"Content-Length": "5"})])
def test_a_cut_connection_is_tried_again(stub, fault):
    stub.first(fault, GOOD)
    assert post(stub, patience=RetryPolicy(3, 0.2, 0.01, 1)) == {"good": True}
    assert len(stub.requests) == 2


def test_a_server_that_keeps_failing_is_given_up_with_its_own_words(stub):
    stub.always(lambda _: Reply({"error": {"message": "out of disk", "code": "E1"}}, 500))
    with pytest.raises(BackendUnavailable, match=r"answers 500: out of disk \(E1\).*3 times"):
        post(stub)
    assert len(stub.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 424, 501])
def test_a_lasting_refusal_is_not_tried_again(stub, status):
    stub.always(lambda _: Reply({"detail": "no"}, status))
    with pytest.raises(ServerRefused, match=f"answers {status}: no") as refused:
        post(stub)
    assert refused.value.status == status
    assert len(stub.requests) == 1


def test_an_account_without_credit_is_not_waited_for(stub):
    stub.first(Reply({"error": {"message": "No money", "code": "insufficient_quota"}}, 429))
    with pytest.raises(ServerRefused, match="insufficient_quota"):
        post(stub)


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_request_that_is_too_large_is_told_apart(stub, status):
    stub.first(Reply({"error": "batch size 66 > maximum allowed batch size 64"}, status))
    with pytest.raises(ServerRefused) as refused:
        post(stub)
    assert refused.value.too_large


@pytest.mark.parametrize(
    ("options", "status", "cure"),
    [
        ({}, 401, "Check the API key"),
        ({}, 404, "model's name and base_url"),
        ({"cures": {404: "Run `ollama pull m`."}}, 404, "Run `ollama pull m`."),
    ],
)
def test_a_refusal_names_the_cure(stub, options, status, cure):
    stub.first(Reply({"error": "x"}, status))
    with pytest.raises(ServerRefused, match=cure):
        post(stub, **options)


def test_retry_after_is_kept_to(stub):
    stub.first(Reply({}, 429, {"Retry-After": "0.15"}), GOOD)
    began = time.monotonic()
    post(stub)
    assert time.monotonic() - began >= 0.15


@pytest.mark.parametrize("unit", ["seconds", "date"])
def test_a_wait_beyond_the_budget_fails_at_once_and_says_so(stub, unit):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=1000))
    stub.first(Reply({}, 429, {"Retry-After": "1000" if unit == "seconds" else later}))
    with pytest.raises(BackendUnavailable, match=r"asks to wait \d+ s, too long"):
        post(stub)
    assert len(stub.requests) == 1


def test_retry_after_reads_seconds_and_dates_and_nothing_else():
    soon = datetime.now(UTC) + timedelta(seconds=1000)
    assert retry_after("7") == 7
    assert retry_after(" 0.5 ") == 0.5
    assert 900 < (retry_after(format_datetime(soon, usegmt=True)) or 0) <= 1000
    assert retry_after(format_datetime(soon - timedelta(days=1))) == 0
    assert [retry_after(value) for value in ("", "soon", "-3", "1e9x")] == [None] * 4


@pytest.mark.parametrize("fault", [Silence(), Dripping(), Dripping(in_headers=True)])
def test_a_request_ends_at_its_deadline_whatever_the_server_does(stub, fault):
    stub.first(fault)
    with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.\d s"):
        post(stub, patience=RetryPolicy(1, 0.15, 0.01, 1))


def test_one_slow_answer_leaves_time_for_another_try(stub):
    stub.first(Silence(), GOOD)
    assert post(stub, patience=RetryPolicy(2, 0.1, 0.01, 1)) == {"good": True}


def test_a_server_that_is_not_there_is_said_to_be_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        client = JsonClient(f"http://127.0.0.1:{taken.getsockname()[1]}", unreachable="Start it.")
        with pytest.raises(BackendUnavailable, match=r"refused.*Start it\. Tried 3 times"):
            client.post("/x", {}, patience=PATIENCE)


def test_deadlines_hold_over_tls_too(tmp_path, monkeypatch):
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with stub_server(certificate=certificate) as stub:
        stub.first(GOOD, Dripping(in_headers=True))
        client = JsonClient(stub.url)
        assert client.post("/x", {}, patience=PATIENCE) == {"good": True}
        with pytest.raises(BackendUnavailable, match="did not answer within"):
            client.post("/x", {}, patience=RetryPolicy(1, 0.1, 0.01, 1))


def test_what_is_no_json_is_malformed_and_not_asked_for_again(stub):
    page = b"<!DOCTYPE html><html><title>Welcome to nginx</title>" + b"<p>x</p>" * 999
    stub.always(lambda _: Reply(page))
    with pytest.raises(MalformedAnswer, match="no JSON: a web page “Welcome to nginx”"):
        post(stub)
    assert len(stub.requests) == 1


def test_json_nested_beyond_reason_is_malformed(stub):
    stub.first(Reply(b"[" * 200_000))
    with pytest.raises(MalformedAnswer, match="no JSON"):
        post(stub)


def test_an_endless_error_page_is_read_in_part(stub):
    endless = Reply(b"<html>" + b"x" * 500_000, 404)
    stub.first(endless)
    with pytest.raises(ServerRefused, match="answers 404: a web page"):
        post(stub)


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401),
        Reply(f"<html><title>{KEY}</title>".encode(), 502),
        Reply(f"no JSON but {KEY}".encode()),
        Reply(b"", 302, {"Location": f"http://127.0.0.1:9/{KEY}"}),
        Silence(),
        CutOff(),
    ],
)
def test_the_key_is_in_no_message_representation_traceback_or_log(stub, reply, caplog):
    caplog.set_level("INFO")
    stub.first(reply)
    client = JsonClient(stub.url.replace("//", "//user:pass-word@"), api_key=KEY)
    with pytest.raises((BackendUnavailable, MalformedAnswer)) as failed:
        client.post("/x", {}, patience=RetryPolicy(1, 0.1, 0.01, 1))
    told = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + repr(client)
    told += caplog.text
    assert KEY not in told
    assert "pass-word" not in told


@pytest.mark.parametrize("key", ["sk-a\nX-Evil: 1", "sk-ü", "sk a"])
def test_a_key_that_cannot_be_one_is_refused_without_naming_it(key):
    with pytest.raises(BackendUnavailable, match="API key holds a character") as refused:
        JsonClient("http://127.0.0.1", api_key=key)
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "ftp://x", "http://", "http://x:port", "http://x/?key=1"]
)
def test_an_address_that_cannot_be_one_is_refused(url):
    with pytest.raises(BackendUnavailable, match="base_url"):
        JsonClient(url)


def test_a_version_is_put_behind_an_address_that_has_none():
    assert with_version("http://h:1") == with_version("http://h:1/") == "http://h:1/v1"
    assert with_version("http://h/v1/") == "http://h/v1"
    assert with_version("https://g/v1beta/openai/") == "https://g/v1beta/openai"
    assert with_version("https://vllm.example.org/serve") == "https://vllm.example.org/serve/v1"


def test_the_servers_text_is_one_short_line():
    assert server_text(b'{"error": "a\\n  b."}') == "a b"
    assert server_text(b'{"detail": [{"loc": ["body"]}]}') == '[{"loc": ["body"]}]'
    assert server_text(b"plain \xff") == "plain \ufffd"
    assert len(server_text(b"x" * 5000)) == 300
    assert server_text(b"") == ""


def test_a_fork_makes_connections_of_its_own(stub):
    stub.always(lambda _: GOOD)
    client = JsonClient(stub.url)
    client.post("/x", {}, patience=PATIENCE)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            client.post("/child", {}, patience=PATIENCE)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert client.post("/x", {}, patience=PATIENCE) == {"good": True}
    assert [request.path for request in stub.requests] == ["/x", "/child", "/x"]
    parents, childs, parents_again = (request.port for request in stub.requests)
    assert parents == parents_again != childs


def test_a_proxy_is_taken_from_the_environment(stub, monkeypatch):
    stub.always(lambda _: GOOD)
    monkeypatch.setenv("http_proxy", stub.url)
    monkeypatch.setenv("no_proxy", "inside.example")
    client = JsonClient("http://outside.example")
    assert client.post("/x", {}, patience=PATIENCE) == {"good": True}
    assert stub.requests[0].path == "http://outside.example/x"


def test_waits_end_when_the_answer_is_no_longer_wanted(stub):
    cancelled = threading.Event()
    cancelled.set()
    stub.always(lambda _: Reply({}, 500))
    with pytest.raises(BackendUnavailable):
        JsonClient(stub.url).post("/x", {}, patience=PATIENCE, cancelled=cancelled)
    assert len(stub.requests) == 1
