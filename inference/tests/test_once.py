"""Loading on first use."""

import pytest

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import LazyModel


def test_what_was_loaded_is_kept():
    loads = []
    model = LazyModel(lambda: loads.append("load") or object())
    assert model() is model()
    assert loads == ["load"]


def test_a_load_that_failed_is_tried_again():
    outcomes = iter([BackendUnavailable("no such folder"), "model"])

    def load():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    model = LazyModel(load)
    with pytest.raises(BackendUnavailable, match="no such folder"):
        model()
    assert model() == "model"


def test_a_missing_library_is_named_with_its_cure():
    def load():
        import torch_of_another_name  # noqa: F401

    with pytest.raises(BackendUnavailable, match=r"torch_of_another_name.*requirements-torch.txt"):
        LazyModel(load)()
