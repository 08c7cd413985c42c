"""Turns of a conversation as the page shows them: a question, its answer, what that rests on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString

from rag.models import Message
from rag.services.conversations import Shown
from rag.views.rendered import render_answer
from rag.views.sources import ShownSource, shown_sources

DEGRADED = {
    "vector": "Words only. The model that compares meanings does not answer, so passages that say"
    " the same in other words are missing.",
    "rerank": "Not reranked. The model that reads the best passages again does not answer, so"
    " they stand in the order of words and meaning.",
}
#: By the code of an error; for some its own words stand below these.
FAILURES = {
    "model_unavailable": "The language model does not answer just now. Try again in a moment, or"
    " choose another model.",
    "model_refused": "The language model would not answer this. Ask it in other words.",
    "model_empty": "The language model answered nothing. Try again.",
    "model_malformed": "The language model answered in a form that cannot be read. Try again; if it"
    " happens again, tell whoever runs the site.",
    "model_error": "The language model could not answer. Try again; if it happens again, tell"
    " whoever runs the site.",
}
#: Codes of errors whose own words tell more than these.
OWN_WORDS = {"model_refused", "model_empty"}
DEGRADED_OTHERWISE = (
    "Part of the search did not work ({name}), so something may be missing. Ask again in a minute,"
    " or tell whoever runs the site."
)


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A question and what came of it.

    `pk` is the answer's, or the question's where there is none. `state` is answered, refused, cut,
    stopped, failed, running, removed, or withheld where it quotes what the user may read no longer.
    `doubts` counts sentences without support.
    """

    pk: int
    question: str
    asked_at: datetime
    state: str
    search_url: str
    everywhere_url: str
    is_last: bool
    html: SafeString | str = ""
    error: str = ""
    error_detail: str = ""
    sources: Sequence[ShownSource] = ()
    doubts: int = 0
    remembered: Mapping[str, Any] | None = None
    degraded: Sequence[str] = ()
    answered_by: str = ""
    seconds: float | None = None
    trace_url: str = ""


def shown_turns(
    messages: Sequence[Shown],
    *,
    collections: Mapping[str, str],
    asked: Sequence[str] = (),
    has_last: bool = True,
) -> list[ShownTurn]:
    """The turns that `messages`, in order, make up. `collections` are names by slug, `asked` the
    slugs that questions go to."""
    pairs = _pairs(messages)
    return [
        _turn(
            question,
            answer,
            collections=collections,
            asked=asked,
            is_last=has_last and place == len(pairs),
        )
        for place, (question, answer) in enumerate(pairs, start=1)
    ]


def _pairs(messages: Iterable[Shown]) -> list[tuple[Message, Shown | None]]:
    """Questions with the last answer to each."""
    pairs: list[tuple[Message, Shown | None]] = []
    for shown in messages:
        if shown.message.role == Message.Role.USER:
            pairs.append((shown.message, None))
        elif pairs:
            pairs[-1] = (pairs[-1][0], shown)
    return pairs


def _turn(
    question: Message,
    shown: Shown | None,
    *,
    collections: Mapping[str, str],
    asked: Sequence[str],
    is_last: bool,
) -> ShownTurn:
    leaves_out = set(collections) - set(asked)
    asking: dict[str, Any] = {
        "question": question.content,
        "asked_at": question.created_at,
        "is_last": is_last,
        "search_url": _to("search", question.content, asked),
        "everywhere_url": _to("chat", question.content) if asked and leaves_out else "",
    }
    if shown is None:
        return ShownTurn(pk=question.pk, state="failed", **asking)
    answer, state = shown.message, _state(shown)
    sources = shown_sources(shown.passages, shown.citations, collections=collections)
    doubts = [] if state == "refused" else _doubts(shown)
    return ShownTurn(
        pk=answer.pk,
        state=state,
        html=_html(shown, sources, doubts) if _has_words(state, answer) else "",
        error=(told := FAILURES.get(answer.error_code, "")) or answer.error,
        error_detail=answer.error if told and answer.error_code in OWN_WORDS else "",
        sources=sources,
        doubts=len(doubts),
        remembered=None if shown.is_withheld else _remembered(answer),
        degraded=[_degraded(name) for name in answer.degraded],
        answered_by=_answered_by(answer),
        seconds=None if answer.elapsed_ms is None else answer.elapsed_ms / 1000,
        trace_url=reverse("trace", args=[answer.trace_id]) if answer.trace_id else "",
        **asking,
    )


def _to(name: str, question: str, collections: Sequence[str] = ()) -> str:
    given = [("q", question), *(("collection", slug) for slug in collections)]
    return f"{reverse(name)}?{urlencode(given)}"


def _state(shown: Shown) -> str:
    answer = shown.message
    if shown.is_withheld:
        return "withheld"
    if answer.state != Message.State.COMPLETE:
        return str(answer.state)
    if answer.verdict.get("refused"):
        return "refused"
    return "cut" if answer.finish_reason == "length" else "answered"


def _has_words(state: str, answer: Message) -> bool:
    """What a refusal says without a model, the page says better, with what to do."""
    return state != "refused" or answer.generator != "extractive"


def _doubts(shown: Shown) -> list[tuple[int, int]]:
    unsupported = () if shown.is_withheld else shown.message.verdict.get("unsupported", ())
    return [(each["start"], each["end"]) for each in unsupported]


def _html(
    shown: Shown, sources: Sequence[ShownSource], doubts: Sequence[tuple[int, int]]
) -> SafeString:
    return render_answer(
        shown.content,
        turn=shown.message.pk,
        sources={source.number: source.title for source in sources},
        citations=[(cited["at"], cited["number"]) for cited in shown.citations],
        doubts=doubts,
    )


def _remembered(answer: Message) -> Mapping[str, Any] | None:
    memory = answer.memory
    return memory if memory and (memory.get("facts") or memory.get("context")) else None


def _degraded(name: str) -> str:
    return DEGRADED.get(name) or DEGRADED_OTHERWISE.format(name=name)


def _answered_by(answer: Message) -> str:
    if answer.generator == "extractive":
        return "Extractive"
    return " · ".join(name for name in (answer.pipeline, answer.model) if name)
