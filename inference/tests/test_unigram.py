"""Our unigram tokenizer against that of the library `tokenizers`."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from inference.interfaces import EmptyText
from inference.local.unigram import UnigramTokenizer, UnigramWindows

NORMALIZER = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
PIECES = {
    "<unk>": 0.0,
    "▁": -3.0,
    "▁the": -2.5,
    "▁ferry": -6.0,
    "▁f": -5.5,
    "er": -4.0,
    "ry": -4.5,
    "ferry": -6.5,
    "東京": -5.0,
    "東": -7.0,
    **{letter: -6.0 - place / 10 for place, letter in enumerate(string.ascii_lowercase)},
}


@pytest.fixture(scope="module")
def ours():
    return UnigramTokenizer(PIECES, [*PIECES.values()], unknown=0, normalizer=NORMALIZER)


@pytest.fixture(scope="module")
def theirs():
    tokenizer = Tokenizer(models.Unigram([*PIECES.items()], unk_id=0))
    tokenizer.normalizer = NORMALIZER
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


@given(text=st.text(alphabet="theferyxq東京大🙂é▁ \n2") | st.text())
def test_any_text_has_the_library_s_tokens(ours, theirs, text):
    assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids


def test_the_likeliest_pieces_win_and_neighboring_unknown_characters_are_one_token(ours):
    names = [*PIECES]
    assert [names[each] for each in ours.encode("the ferry")] == ["▁the", "▁ferry"]
    assert [names[each] for each in ours.encode("東京大学")] == ["▁", "東京", "<unk>"]
    assert ours.encode("") == []


def test_windows_are_framed_and_read_the_vocabulary_once():
    loads = []

    def load():
        loads.append(True)
        return UnigramTokenizer(PIECES, [*PIECES.values()], unknown=0, normalizer=NORMALIZER)

    windows = UnigramWindows(load, [90], [91], max_length=4)
    assert (windows.max_tokens, windows.special_tokens, windows.tokenizer) == (2, (1, 1), None)
    assert loads == []
    [parts] = windows.windows(["the ferry the"])
    assert [len(part) for part in parts] == [4, 3]
    assert all(part[0] == 90 and part[-1] == 91 for part in parts)
    assert windows.count("the ferry") == 2
    assert [windows.content_tokens(part) for part in parts] == [2, 1]
    with pytest.raises(EmptyText):
        windows.windows(["the", ""])
    assert loads == [True]
