"""Template tags of chat, pipelines and traces."""

from typing import Any

from django import template
from django.utils.translation import gettext

from common.translation import format_number
from rag.models import Trace

register = template.Library()

_TONE_OF_STATE = {
    Trace.State.RUNNING: "busy",
    Trace.State.DONE: "good",
    Trace.State.FAILED: "bad",
    Trace.State.TIMED_OUT: "bad",
    Trace.State.CANCELLED: "warn",
}


@register.filter
def pipeline_text(pipeline: Any, field: str) -> str:
    """Name or description of a pipeline; that of a template in the language of the page."""
    text = str(getattr(pipeline, field))
    return gettext(text) if pipeline.is_template and text else text


@register.filter
def run_tone(state: str) -> str:
    """The colour of a run's state."""
    return _TONE_OF_STATE.get(Trace.State(state), "")


@register.filter
def took(milliseconds: float | None) -> str:
    """A duration for people: 8 ms, 240 ms, 3.4 s, 2 min 5 s."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{format_number(milliseconds / 1000, 1)} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds} s"


@register.filter
def ran(trace: Trace) -> str:
    """How long a run took; a dash while it runs."""
    if trace.ended_at is None:
        return "–"
    return took((trace.ended_at - trace.started_at).total_seconds() * 1000)
