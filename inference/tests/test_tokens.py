"""Windows of the bundled model's own tokenizer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.interfaces import BackendUnavailable, EmptyText
from inference.local.model_folder import locate_model
from inference.tokens import WindowTokenizer, load_tokenizer

CLS, SEP = 101, 102
MINILM = load_tokenizer(locate_model(None)[0], lowercase=False)
WORDS = st.lists(
    st.sampled_from(["heart", "of", "aripiprazole", "3", "Über"]), min_size=1, max_size=60
)


@settings(deadline=None)
@given(WORDS.map(" ".join), st.integers(3, 40))
def test_windows_hold_every_token_once_in_order_between_special_ones(text, max_length):
    windows = WindowTokenizer(MINILM, max_length=max_length).windows([text])[0]
    assert all(window[0] == CLS and window[-1] == SEP for window in windows)
    assert all(len(window) == max_length for window in windows[:-1])
    assert len(windows[-1]) <= max_length
    content = [token for window in windows for token in window[1:-1]]
    assert content == MINILM.encode(text, add_special_tokens=False).ids


def test_a_count_leaves_special_tokens_out():
    tokenizer = WindowTokenizer(MINILM, max_length=256)
    assert tokenizer.max_tokens == 254
    assert tokenizer.count("heart heart heart") == 3
    assert tokenizer.count("heart " * 1000) == 1000
    assert tokenizer.content_tokens([CLS, 1, 2, 3, SEP]) == 3


def test_a_text_without_any_token_is_empty():
    with pytest.raises(EmptyText, match="Text 1"):
        WindowTokenizer(MINILM, max_length=256).windows(["fine", "\u200b\u00ad"])


def test_a_window_without_room_for_text_is_refused():
    with pytest.raises(BackendUnavailable, match="max_length 2 leaves no room"):
        WindowTokenizer(MINILM, max_length=2)


def test_lowercasing_happens_before_the_tokenizers_own_rules():
    tokenizer = load_tokenizer(locate_model(None)[0], lowercase=True)
    assert tokenizer.encode("HEART").ids == MINILM.encode("heart").ids


def test_a_folder_without_a_tokenizer_names_the_cure(tmp_path):
    with pytest.raises(BackendUnavailable, match=r"tokenizer\.json.*save_pretrained"):
        load_tokenizer(tmp_path, lowercase=False)
