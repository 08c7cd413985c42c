"""Bodies with vectors: many numbers, which the usual bounds are not meant for."""

from typing import Any

from common import bounded_json
from common.parsers import JSONParser

MAX_BYTES = 64 * 1024 * 1024
#: Of everything but vectors.
MAX_VALUES = 200_000
NUMBERS = {int, float}


class VectorsJSONParser(JSONParser):
    """JSON of up to 64 MB, in which lists of numbers called `vector` are not counted."""

    max_bytes = MAX_BYTES
    too_large = f"This body may have {MAX_BYTES:,} bytes. Send fewer items at once."

    def value(self, text: str) -> Any:
        """Vectors are taken out while the rest is checked; they are checked as such later."""
        value = bounded_json.load(text)
        holders = [holder for holder in _objects(value) if _is_vector(holder.get("vector"))]
        vectors = [holder.pop("vector") for holder in holders]
        bounded_json.check(value, max_values=MAX_VALUES)
        for holder, vector in zip(holders, vectors, strict=True):
            holder["vector"] = vector
        return value


def _objects(value: Any) -> list[dict[str, Any]]:
    """The body, and its items."""
    if not isinstance(value, dict):
        return []
    items = value.get("items")
    return (
        [value, *(item for item in items if isinstance(item, dict))]
        if isinstance(items, list)
        else [value]
    )


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= NUMBERS
