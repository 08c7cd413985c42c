"""The answer on its way out: of several sinks first the first, whichever is done first. Pure."""

from rag.pipelines.engine.flow import Flow
from rag.pipelines.engine.progress import Piece

SEPARATOR = "\n\n"


class Outlet:
    """Lets a sink's pieces out as they come once all before it are over, and keeps the others'.

    A sink that may have another turn is kept until it was its last. One that emitted nothing gives
    its output as one piece.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._waiting = list(flow.sinks)
        self._kept: dict[str, list[object]] = {}
        self._text: list[str] = []
        self._last = ""

    @property
    def text(self) -> str:
        """What has gone out."""
        return "".join(self._text)

    def begin(self, id: str) -> None:
        """A node has its turn: what it emitted in an earlier one is not the answer."""
        self._kept.pop(id, None)

    def add(self, id: str, item: object) -> list[Piece]:
        """A piece from a node; those that may go out now."""
        if id not in self._waiting:
            return []
        self._kept.setdefault(id, []).append(item)
        return self.let_out()

    def let_out(self) -> list[Piece]:
        """What may go out now."""
        out: list[Piece] = []
        while self._waiting:
            id = self._waiting[0]
            is_over = self._flow.is_over(id)
            if is_over or not self._flow.is_looped(id):
                out += self._send(id, is_over=is_over)
            if not is_over:
                break
            self._waiting.pop(0)
        return out

    def rest(self) -> list[Piece]:
        """What the run came to rest with, where no sink was reached."""
        if self._last:
            return []
        return [piece for id in self._flow.stops() for piece in self._send(id, is_over=True)]

    def _send(self, id: str, *, is_over: bool) -> list[Piece]:
        if is_over and not self._flow.has_ended(id):
            return []
        if is_over and id not in self._kept:
            self._kept[id] = [self._flow.latest(id).output]
        items = self._kept.get(id, [])
        if items and self._last not in ("", id):
            items = [SEPARATOR, *items]
        if items:
            self._last = id
            self._kept[id] = []
        self._text += [item for item in items if isinstance(item, str)]
        return [Piece(id, item) for item in items]
