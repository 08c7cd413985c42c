"""Spans: the steps of a run as rows, each with what went in and what came out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any

from rag.models import Span, Trace
from rag.pipelines import engine

#: Characters kept of what went into a step and came out, and of an error.
MAX_SPAN_CHARACTERS = 20_000
MAX_ERROR_CHARACTERS = 2_000
MAX_SPANS = 2_000


@dataclass(slots=True)
class Step:
    """A node's turn."""

    call: engine.NodeCall
    started: float
    ended: engine.Ended | None = None


class Spans:
    """The rows of a run: its nodes in the order in which they began, each before its calls."""

    def __init__(
        self, trace: Trace, steps: Iterable[Step], *, moment: Callable[[float], datetime]
    ) -> None:
        """`moment` tells when the engine's clock stood so."""
        self._trace = trace
        self._moment = moment
        self._ordinal = 0
        self._rows: list[tuple[Span, Span | None]] = []
        for step in steps:
            self._add_step(step)

    def save(self, *, has_texts: bool) -> None:
        """Parents first: children name them by their ids."""
        waiting = self._rows[:MAX_SPANS]
        if not has_texts:
            for row, _ in waiting:
                row.input = row.output = row.error = ""
        while waiting:
            ready = [(row, parent) for row, parent in waiting if parent is None or parent.pk]
            for row, parent in ready:
                row.parent = parent
            Span.objects.bulk_create([row for row, _ in ready])
            waiting = [(row, parent) for row, parent in waiting if row.pk is None]

    def _add_step(self, step: Step) -> None:
        call, ended, now = step.call, step.ended, monotonic()
        given = "\n\n".join(
            [call.question, *(f"{each.node}:\n{each.output}" for each in call.inputs)]
        )
        node = self._span(
            kind="node",
            type=call.node.type,
            call=call,
            state=ended.state if ended else "cancelled",
            started=step.started,
            ended=ended.at if ended else now,
            input=given,
            output=_output(ended.result) if ended and ended.result else "",
            input_tokens=call.ledger.input_tokens,
            output_tokens=call.ledger.output_tokens,
            error=ended.error if ended else "",
        )
        self._rows.append((node, None))
        rows: dict[int, Span] = {}
        for use in call.ledger.uses:
            state = "cancelled" if use.ended is None else "failed" if use.error else "done"
            row = self._span(
                kind="node" if use.kind == "task" else use.kind,
                type=use.name[:63],
                call=call,
                state=state,
                started=use.started,
                ended=now if use.ended is None else use.ended,
                input=use.input,
                output=use.output,
                input_tokens=use.input_tokens,
                output_tokens=use.output_tokens,
                error=use.error,
            )
            rows[id(use)] = row
            self._rows.append((row, rows[id(use.parent)] if use.parent else node))

    def _span(
        self,
        *,
        call: engine.NodeCall,
        started: float,
        ended: float,
        input: str,
        output: str,
        error: str,
        **columns: Any,
    ) -> Span:
        self._ordinal += 1
        return Span(
            workspace=self._trace.workspace,
            trace=self._trace,
            ordinal=self._ordinal,
            node=call.node.id,
            iteration=call.iteration,
            started_at=self._moment(started),
            ended_at=self._moment(ended),
            input=storable(input, MAX_SPAN_CHARACTERS),
            output=storable(output, MAX_SPAN_CHARACTERS),
            error=storable(error, MAX_ERROR_CHARACTERS),
            is_cut=max(len(input), len(output)) > MAX_SPAN_CHARACTERS,
            **columns,
        )


def _output(result: engine.NodeResult) -> str:
    told: Mapping[str, Any] = {"route": result.route, "score": result.score}
    notes = [f"{name}: {value}" for name, value in told.items() if value is not None]
    return "\n\n".join(_present([", ".join(notes), result.output]))


def _present(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part]


def storable(text: str, most: int) -> str:
    """The beginning of a text, as a column can hold it."""
    text = text if len(text) <= most else f"{text[:most]}…"
    return text.encode(errors="replace").decode().replace("\0", "")
