"""Named instances from the settings."""

import sys
import threading

import pytest
from django.test.utils import override_settings

from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable, InferenceError
from inference.model_registry import ModelRegistry, embedders, rerankers

HASHING = "inference.backends.hashing.HashingEmbedder"
COUNTED = "inference.tests.test_handler.Counted"


class Counted(HashingEmbedder):
    """Takes long enough to make that another thread gets its turn meanwhile."""

    made: list["Counted"] = []

    def __init__(self) -> None:
        super().__init__()
        self.embed_query("so many words to read before it is there " * 2000)
        self.made.append(self)


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def configured(**aliases):
    return override_settings(INFERENCE={"embedder": aliases})


def test_an_alias_gives_its_backend_with_its_options():
    with configured(
        default={"BACKEND": HASHING}, small={"BACKEND": HASHING, "OPTIONS": {"dimensions": 8}}
    ):
        assert embedders["default"].dimensions == 384
        assert embedders["small"].dimensions == 8
        assert sorted(embedders) == ["default", "small"]


def test_an_instance_is_made_once_and_again_after_the_settings_change():
    with configured(default={"BACKEND": HASHING}):
        first = embedders["default"]
        assert embedders["default"] is first
    with configured(default={"BACKEND": HASHING, "OPTIONS": {"dimensions": 8}}):
        assert embedders["default"].dimensions == 8


@pytest.mark.usefixtures("eager_switching")
def test_threads_that_ask_at_once_share_one_instance():
    Counted.made.clear()
    handler = ModelRegistry("embedder")
    together = threading.Barrier(8)
    got = []

    def ask():
        together.wait()
        got.append(handler["default"])

    with configured(default={"BACKEND": COUNTED}):
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(got) == 8
    assert set(map(id, got)) == {id(Counted.made[0])}
    assert len(Counted.made) == 1


def test_an_unknown_alias_is_answered_with_those_there_are():
    with (
        configured(default={"BACKEND": HASHING}, big={"BACKEND": HASHING}),
        pytest.raises(InferenceError, match=r"no embedder is called 'large'.* has: big, default"),
    ):
        embedders["large"]


def test_a_kind_without_entries_says_none():
    with configured(), pytest.raises(InferenceError, match=r"no reranker is called 'x'.*none"):
        rerankers["x"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"BACKEND": "no_such_package.Embedder"}, "No module named 'no_such_package'"),
        ({"BACKEND": "inference.backends.hashing.Missing"}, "Missing"),
        (
            {"BACKEND": HASHING, "OPTIONS": {"colour": "red"}},
            "unexpected keyword argument 'colour'",
        ),
    ],
)
def test_a_backend_that_cannot_be_made_says_why_and_what_to_correct(entry, reason):
    with configured(default=entry), pytest.raises(BackendUnavailable, match=reason) as failed:
        embedders["default"]
    assert "Correct its BACKEND and OPTIONS in INFERENCE['embedder']" in str(failed.value)
