"""Tiny random models, in folders laid out as the real ones are on the hub."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)

END = "<|endoftext|>"
TURNS = ["<|im_start|>", "<|im_end|>"]
CORPUS = [
    "a wing",
    "the pump carries cold water before noon",
    "three letters, forgotten",
    "yes",
    "no",
]
QUERY_PROMPT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)


def qwen3_embedding(at: Path, **config: Any) -> str:
    """The files of Qwen/Qwen3-Embedding-0.6B that a model is run by, as they stand there."""
    _seeded(Qwen3Model, _qwen3_config(**config)).to(torch.bfloat16).save_pretrained(at)
    # Saved from a causal model whose head is its embedding, and without a padding token.
    _rewrite(at / "config.json", architectures=["Qwen3ForCausalLM"], torch_dtype="bfloat16")
    save_qwen3_tokenizer(at, ends_texts=True)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, (path, kind) in enumerate(kinds.items())
    ]
    _write(at / "modules.json", modules)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling = {f"pooling_mode_{mode}": False for mode in (*modes, "weightedmean_tokens")}
    pooling |= {"word_embedding_dimension": 32, "pooling_mode_lasttoken": True}
    _write(at / "1_Pooling" / "config.json", pooling | {"include_prompt": True})
    prompts = {"prompts": {"query": QUERY_PROMPT, "document": ""}, "default_prompt_name": None}
    _write(at / "config_sentence_transformers.json", prompts | {"similarity_fn_name": "cosine"})
    return str(at)


def qwen3_reranker(at: Path, **config: Any) -> str:
    """The files of Qwen/Qwen3-Reranker-0.6B."""
    _seeded(Qwen3ForCausalLM, _qwen3_config(**config)).save_pretrained(at)
    save_qwen3_tokenizer(at, ends_texts=False)
    return str(at)


def cross_encoder(at: Path, *, labels: int = 1, **config: Any) -> str:
    """A BERT that classifies pairs, with an uncased word-piece tokenizer of 128 tokens."""
    tokenizer = _wordpiece()
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    settings = {
        **sizes,
        "intermediate_size": 64,
        "vocab_size": tokenizer.vocab_size,
        "max_position_embeddings": 128,
        "num_labels": labels,
        "initializer_range": 0.3,
        **config,
    }
    _seeded(BertForSequenceClassification, BertConfig(**settings)).save_pretrained(at)
    tokenizer.save_pretrained(at)
    return str(at)


def save_qwen3_tokenizer(
    at: Path, *, ends_texts: bool, corpus: list[str] | None = None
) -> PreTrainedTokenizerFast:
    """Byte-level BPE; `ends_texts` for the one of the embedding models, which adds a last token."""
    bytewise = Tokenizer(models.BPE())
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END, *TURNS],
        show_progress=False,
    )
    bytewise.train_from_iterator(corpus or CORPUS, trainer)
    bytewise.add_tokens([AddedToken(word, normalized=False) for word in ("<think>", "</think>")])
    if ends_texts:
        bytewise.post_processor = processors.TemplateProcessing(
            single=f"$A {END}", special_tokens=[(END, bytewise.token_to_id(END))]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytewise, pad_token=END, eos_token=TURNS[1], model_max_length=131072
    )
    tokenizer.save_pretrained(at)
    return tokenizer


def _wordpiece() -> PreTrainedTokenizerFast:
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=names, show_progress=False)
    pieces.train_from_iterator(CORPUS, trainer)
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, pieces.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=128,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _qwen3_config(**config: Any) -> Qwen3Config:
    settings = {
        "vocab_size": 400,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "initializer_range": 0.3,  # so that texts differ and a wrong token shows
        **config,
    }
    return Qwen3Config(**settings)


def _seeded(kind: Any, config: Any) -> Any:
    torch.manual_seed(7)
    return kind(config)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def _rewrite(path: Path, **changes: object) -> None:
    _write(path, json.loads(path.read_text()) | changes)
