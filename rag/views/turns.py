"""Turns of a conversation for a page: question, answer as safe HTML with citation links, sources.
Begin with `turn_views`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import nh3
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_noop
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from common import features
from common.text import strip_markdown
from documents.document_html import SafeRenderer
from documents.templatetags.documents import place_label
from rag.answering.phrases import MAX_NAMED_COLLECTIONS, stated_confidence
from rag.models import Message
from rag.services.conversations import VisibleMessage
from tables.presentation import computed_view

MAX_HEADINGS = 2
TEASER_CHARACTERS = 240  # characters


def source_views(
    passages: Sequence[Mapping[str, Any]],
    citations: Sequence[Mapping[str, Any]],
    *,
    collections: Mapping[str, str],
) -> list[dict[str, Any]]:
    """What the page shows of each passage. Its `parts` are empty if its text no longer exists, and
    nothing of it is marked if the whole passage is cited. `passages` and `citations` are in the
    format of events; `collections` are names by slug."""
    views = []
    for passage in passages:
        path = [heading for heading in passage["heading_path"] if heading != passage["title"]]
        places = [passage, *(each for each in citations if each["number"] == passage["number"])]
        # Where the first quotation is; answers of earlier days have only a page.
        page = f"page {passage['page']}" if passage["page"] else ""
        page = next((each["location"] for each in reversed(places[:2]) if "location" in each), page)
        name = collections.get(passage["collection"], passage["collection"])
        text, at, parts = passage["text"], 0, []
        # The cited ranges as offsets in the passage's text, sorted and merged.
        start, end = passage["start"], passage["end"]
        quotes: list[tuple[int, int]] = []
        for cited in sorted(
            (max(cited["start"], start) - start, min(cited["end"], end) - start)
            for cited in citations
            if cited["number"] == passage["number"]
        ):
            if quotes and cited[0] <= quotes[-1][1]:
                quotes[-1] = (quotes[-1][0], max(cited[1], quotes[-1][1]))
            else:
                quotes.append(cited)
        for first, last in quotes:
            if last - first < len(text.strip()):
                parts += [(text[at:first], False), (text[first:last], True)]
                at = last
        parts.append((text[at:], False))
        views.append(
            {
                "number": passage["number"],
                "title": passage["title"] or passage["document_key"],
                "place": " · ".join(
                    filter(None, (name, " › ".join(path[-MAX_HEADINGS:]), place_label(page)))
                ),
                "url": _quotation_url(passage["url"], start, quotes),
                "is_cited": bool(quotes),
                "parts": [
                    {"text": part, "is_quoted": is_quoted} for part, is_quoted in parts if part
                ],
                # The beginning of a cited passage, as a preview.
                "teaser": strip_markdown(text[:TEASER_CHARACTERS]) if quotes else "",
            }
        )
    return views


def _quotation_url(url: str, start: int, quotes: Sequence[tuple[int, int]]) -> str:
    """The address of a passage, at its first quotation, which the page of the document marks."""
    address, mark, place = str(url).partition("#passage")
    if not quotes or not mark or "?chunk=" not in address:
        return str(url)
    first, last = quotes[0]
    return f"{address}&quote={start + first}-{start + last}{mark}{place}"


#: Private-use characters that mark, through Markdown, where an unsupported sentence begins and
#: ends, and the number of a real citation.
DOUBT_START, DOUBT_END, CITATION_MARK = "\ue000", "\ue001", "\ue002"
_RESERVED = str.maketrans(dict.fromkeys((DOUBT_START, DOUBT_END, CITATION_MARK), " "))
#: Block markers at the beginning of a line; a mark must come after them.
_BLOCK_START = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>+)[ \t]+)*")
_CITATION = re.compile(rf"\[{CITATION_MARK}(\d+)\]")
_TAGS = {
    *("a", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li"),
    *("mark", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "u", "ul", "b", "i", "ins"),
    *("table", "tbody", "td", "th", "thead", "tr", "kbd", "small"),
}
_ATTRIBUTES = {
    "*": {"class", "tabindex"},
    "a": {"href", "data-cite", "aria-label"},
    "div": {"role", "aria-label"},
    "mark": {"title"},
    "ol": {"start"},
}
_EXTERNAL_ADDRESS = re.compile(r"[a-z][a-z\d+.-]*:|//", re.IGNORECASE)
_OWN_LINK = re.compile(r"#source-\d+-\d+")


class AnswerRenderer(SafeRenderer):
    """The documents' renderer, except for links, which become their text and address. Relative
    addresses are left out: they lead nowhere from here."""

    def link_open(self, *_: Any) -> str:
        return ""

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The address, unless the link text is the address already."""
        opening = next(token for token in tokens[idx::-1] if token.type == "link_open")
        address = str(opening.attrGet("href"))
        is_shown = opening.info != "auto" and _EXTERNAL_ADDRESS.match(address)
        return f" ({escape(address)})" if is_shown else ""

    def citation(self, tokens: Sequence[Token], idx: int, _: Any, env: Any) -> str:
        """A link to the source beside the answer."""
        number = tokens[idx].content
        label = escape(f"Source {number}: {env['sources'][int(number)]}")
        return (
            f'<a class="cite" href="#source-{env["turn"]}-{number}" data-cite="{number}"'
            f' aria-label="{label}">{number}</a>'
        )


def _citation_rule(state: StateInline, silent: bool) -> bool:
    """The inline parsing rule for a citation."""
    found = _CITATION.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = found[1]
    state.pos = found.end()
    return True


_parser = (
    MarkdownIt("commonmark", renderer_cls=AnswerRenderer)
    .enable(["table", "strikethrough"])
    .disable("reference")
)
_parser.inline.ruler.before("link", "citation", _citation_rule)


def render_answer(
    text: str,
    *,
    turn: int,
    sources: Mapping[int, str],
    citations: Iterable[tuple[int, int]] = (),
    doubts: Iterable[tuple[int, int]] = (),
) -> SafeString:
    """`sources` are titles by number. `citations` are (offset, number), `doubts` (start, end) of
    unsupported sentences, both in `text`. Links point to elements with the id `source-TURN-NUMBER`.
    """
    text = text.translate(_RESERVED)
    edits = [
        (at + 1, CITATION_MARK)
        for at, number in set(citations)
        if number in sources and text.startswith(f"[{number}]", at)
    ]
    for start, end in doubts:
        # Within one block: a mark across two blocks would break both.
        block = _BLOCK_START.match(text, start, end)
        begin = block.end() if block else start
        sentence = text[begin:end].rstrip()
        if sentence and "\n\n" not in sentence:
            edits += [(begin, DOUBT_START), (begin + len(sentence), DOUBT_END)]
    for at, mark in sorted(edits, reverse=True):
        text = text[:at] + mark + text[at:]
    tokens = _parser.parse(text, env := {"turn": turn, "sources": sources})
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    html = _parser.renderer.render(tokens, _parser.options, env)
    html = html.replace(
        DOUBT_START, format_html('<mark class="doubt" title="{}">', gettext("No source says this"))
    )
    # Markers are left only in code, which Markdown does not parse.
    html = html.replace(DOUBT_END, "</mark>").replace(CITATION_MARK, "")
    sanitized = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=set(),
        url_relative=lambda url: url if _OWN_LINK.fullmatch(url) else None,
        link_rel=None,
    )
    return mark_safe(sanitized)  # noqa: S308


DEGRADED = {
    "vector": gettext_noop(
        "Words only. The embedding model does not respond, so passages with the same"
        " meaning in other words are missing."
    ),
    "rerank": gettext_noop(
        "Not reranked. The reranking model does not respond, so passages are ordered by"
        " words and meaning."
    ),
}
#: Texts by error code; for some the error's own message is shown below.
FAILURES = {
    "model_unavailable": gettext_noop(
        "The language model does not respond. Try again in a moment, or choose another model."
    ),
    "model_refused": gettext_noop("The language model declined to answer. Rephrase the question."),
    "model_empty": gettext_noop("The answer of the language model was empty. Try again."),
    "model_malformed": gettext_noop(
        "The language model sent an invalid answer. Try again. If the problem continues,"
        " contact the operator of the site."
    ),
    "model_error": gettext_noop(
        "The language model failed. Try again. If the problem continues, contact the"
        " operator of the site."
    ),
}
#: Error codes whose own message is shown too.
SHOW_ERROR_DETAIL = {"model_refused", "model_empty"}
DEGRADED_DEFAULT = gettext_noop(
    "Part of the search failed ({name}), so results may be incomplete. Ask again in a"
    " minute, or contact the operator of the site."
)


def failure_texts() -> dict[str, str]:
    """`FAILURES` in the language of the page."""
    return {code: gettext(text) for code, text in FAILURES.items()}


def degraded_texts() -> dict[str, str]:
    """`DEGRADED` in the language of the page."""
    return {name: gettext(text) for name, text in DEGRADED.items()}


def degraded_text(name: str) -> str:
    """What is missing where this part of the search did not work."""
    if name in DEGRADED:
        return gettext(DEGRADED[name])
    return gettext(DEGRADED_DEFAULT).format(name=name)


def turn_views(
    messages: Sequence[VisibleMessage],
    *,
    collections: Mapping[str, str],
    selected: Sequence[str] = (),
    has_last: bool = True,
) -> list[dict[str, Any]]:
    """What the page shows of the turns that `messages`, in order, make up: questions with their
    answers. `pk` is the answer's, or the question's if there is none. `state` is answered, refused,
    cut, stopped, failed, running, removed, or withheld if it quotes what the user may no longer
    read; `is_unsure`, an answer of low confidence, whose own text may say so (`says_unsure`).
    `searched` is what a refusal had looked at. `doubts` counts unsupported sentences.
    `collections` are names by slug, `selected` the slugs that questions are limited to."""
    # Questions with the last answer to each.
    pairs: list[tuple[Message, VisibleMessage | None]] = []
    for visible in messages:
        if visible.message.role == Message.Role.USER:
            pairs.append((visible.message, None))
        elif pairs:
            pairs[-1] = (pairs[-1][0], visible)
    return [
        _turn(
            question,
            answer,
            collections=collections,
            selected=selected,
            is_last=has_last and place == len(pairs),
        )
        for place, (question, answer) in enumerate(pairs, start=1)
    ]


def _turn(
    question: Message,
    visible: VisibleMessage | None,
    *,
    collections: Mapping[str, str],
    selected: Sequence[str],
    is_last: bool,
) -> dict[str, Any]:
    leaves_out = set(collections) - set(selected)
    asking: dict[str, Any] = {
        "question": question.content,
        "asked_at": question.created_at,
        "is_last": is_last,
        "search_url": _link("search", question.content, selected),
        "everywhere_url": _link("chat", question.content) if selected and leaves_out else "",
    }
    if visible is None:
        return {"pk": question.pk, "state": "failed", **asking}
    answer, state = visible.message, _state(visible)
    sources = source_views(visible.passages, visible.citations, collections=collections)
    has_doubts = state != "refused" and not visible.is_withheld
    unsupported = answer.verdict.get("unsupported", ()) if has_doubts else ()
    doubts = [(each["start"], each["end"]) for each in unsupported]
    html: SafeString | str = ""
    tables = visible.tables or {}
    computed = tables.get("computed")
    searched = answer.verdict.get("searched") if state == "refused" else None
    if computed:
        html = render_to_string("tables/computed.html", computed_view(computed, pk=answer.pk))
    elif state != "refused" or (answer.generator != "extractive" and not searched):
        # The page words the site's own refusal better itself.
        html = render_answer(
            visible.content,
            turn=answer.pk,
            sources={source["number"]: source["title"] for source in sources},
            citations=[(cited["at"], cited["number"]) for cited in visible.citations],
            doubts=doubts,
        )
    memory = None if visible.is_withheld else answer.memory
    has_memory = memory and (memory.get("facts") or memory.get("context"))
    general_error = failure_texts().get(answer.error_code, "")
    shows_detail = general_error and answer.error_code in SHOW_ERROR_DETAIL
    return {
        "pk": answer.pk,
        "state": state,
        "html": html,
        # What `rag.services.answers` says behind a refusal: what nothing found mentions.
        "missing": []
        if html
        else [
            words
            for words in visible.content.split("\n\n")[1 : -1 if searched else None]
            if words != tables.get("text")
        ],
        # Before quotations that may be no answer; behind those that are.
        "tables": tables if tables.get("readings") and not computed else None,
        "reading": computed["reading"] if computed and computed.get("is_chosen") else "",
        "is_sure": state == "answered" and answer.verdict.get("confidence") == "high",
        "searched": _searched(searched, collections) if searched else None,
        "says_unsure": stated_confidence(visible.content) == "low",
        "is_unsure": state in {"answered", "cut"} and answer.verdict.get("confidence") == "low",
        "error": general_error or answer.error,
        "error_detail": answer.error if shows_detail else "",
        "sources": sources,
        "doubts": len(doubts),
        "reasoning": visible.reasoning.strip(),
        "thought_seconds": max(round((answer.reasoning_ms or 0) / 1000), 1),
        "remembered": memory if has_memory and features.is_on("memory") else None,
        "degraded": [degraded_text(name) for name in answer.degraded],
        "answered_by": {
            "extractive": gettext("Extractive"),
            "computed": gettext("Computed from tables"),
        }.get(answer.generator)
        or " · ".join(filter(None, (answer.pipeline, answer.model))),
        "seconds": None if answer.elapsed_ms is None else answer.elapsed_ms / 1000,
        "trace_url": reverse("trace", args=[answer.trace_id]) if answer.trace_id else "",
        **asking,
    }


def _searched(searched: Mapping[str, Any], collections: Mapping[str, str]) -> dict[str, Any]:
    """What a refusal had looked at; links to its collections if there are few."""
    slugs = [slug for slug in searched["collections"] if slug in collections]
    return {
        "documents": searched["documents"],
        "count": len(searched["collections"]),
        "is_filtered": searched["filtered"],
        "links": [
            {"name": collections[slug], "url": reverse("collection", args=[slug])} for slug in slugs
        ]
        if len(slugs) <= MAX_NAMED_COLLECTIONS
        else [],
    }


def _link(name: str, question: str, collections: Sequence[str] = ()) -> str:
    given = [("q", question), *(("collection", slug) for slug in collections)]
    return f"{reverse(name)}?{urlencode(given)}"


def _state(visible: VisibleMessage) -> str:
    answer = visible.message
    if visible.is_withheld:
        return "withheld"
    if answer.state != Message.State.COMPLETE:
        return str(answer.state)
    if answer.verdict.get("refused"):
        return "refused"
    return "cut" if answer.finish_reason == "length" else "answered"
