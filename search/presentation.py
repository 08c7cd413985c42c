"""View models of the search pages: results and search state turned into labels, shares and
addresses; and questions to begin with (`example_questions`), which are headings of the documents
that are there, so that each is answered."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import ceil
from operator import not_
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf.locale import LANG_INFO
from django.urls import reverse
from django.utils.dates import MONTHS_3
from django.utils.translation import gettext, gettext_noop

from common import features
from common.errors import InvalidInput
from common.fusion import RERANK_FEATURES
from common.text import strip_markdown
from common.web import cached_reverse
from documents.demo_corpus import FIRM_COLLECTION, firm_questions, firm_table_questions
from documents.languages import language_name
from documents.models import Chunk, Document
from documents.page_images import PAGED_MEDIA_TYPES, thumbnail_url, with_pages
from documents.querysets import DocumentQuerySet
from search.filters import ALL, And, Comparison, all_of, chosen_values, read_filter, to_text
from search.filters.tree import Field, Operator, parse_field, toggle_value
from search.forms import SearchState
from search.judgements import Grade
from search.models import SavedSearch
from search.results import ArmReport, Facet, Hit, SearchResult
from tables.options import PAGE_ROWS

GRADES: Mapping[int, str] = {
    Grade.PINNED: gettext_noop("Best"),
    Grade.GOOD: gettext_noop("Good"),
    Grade.BAD: gettext_noop("Bad"),
}
TAKEN_BACK = "none"


def grade_buttons(
    document_id: int, chunk_id: int, current: int | None
) -> tuple[dict[str, Any], ...]:
    """Buttons best, good, bad. Pressing the document's `current` grade removes it; `value` is
    sent.
    """
    return tuple(
        {
            "label": gettext(label),
            "value": f"{document_id}.{chunk_id}.{TAKEN_BACK if current == grade else grade}",
            "pressed": current == grade,
        }
        for grade, label in GRADES.items()
    )


MODE_LABELS = {
    "hybrid": gettext_noop("Hybrid"),
    "lexical": gettext_noop("Words"),
    "vector": gettext_noop("Meaning"),
    "graph": gettext_noop("Graph"),
}
MODE_HINTS = {
    "hybrid": gettext_noop("Passages that fit by words and by meaning"),
    "lexical": gettext_noop("Passages that hold your words"),
    "vector": gettext_noop("Passages that mean the same, in whatever words"),
    "graph": gettext_noop(
        "By words, by meaning, and over what passages name: for answers in several documents"
    ),
}
#: What a mode needs, of what can be switched off.
MODE_FEATURES: dict[str, features.Feature] = {"vector": "vectors", "graph": "graph"}
SORT_LABELS = {
    "relevance": gettext_noop("Best first"),
    "newest": gettext_noop("Newest first"),
    "oldest": gettext_noop("Oldest first"),
    "title": gettext_noop("By title"),
}
#: How words and meaning are joined: what people choose between, with what each does.
FUSION_CHOICES = {
    "score": (
        gettext_noop("By how well they fit"),
        gettext_noop(
            "Scores of words and of meaning are added, as much of each as suits the question"
        ),
    ),
    "rrf": (
        gettext_noop("By places in both lists (RRF)"),
        gettext_noop(
            "Only the place counts that a passage has in the list by words and in that by meaning"
        ),
    ),
}
#: Facets and fields whose names are not their headings.
FIELD_HEADINGS = {
    "media_type": gettext_noop("Type"),
    "origin": gettext_noop("Source"),
    "dated": gettext_noop("Date"),
    "language": gettext_noop("Language"),
    "collection": gettext_noop("Collection"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that applies a choice, or removes it where it is selected."""

    label: str
    url: str
    selected: bool = False
    count: int | None = None
    hint: str = ""


def choices(state: SearchState, name: str) -> list[Choice]:
    """Links to the other values of `mode` or `sort`."""
    labels, hints = (MODE_LABELS, MODE_HINTS) if name == "mode" else (SORT_LABELS, {})
    current = getattr(state, name)
    return [
        Choice(
            gettext(label),
            state.url(**{name: value}),
            value == current,
            hint=gettext(hints[value]) if value in hints else "",
        )
        for value, label in labels.items()
        if name != "mode" or value not in MODE_FEATURES or features.is_on(MODE_FEATURES[value])
    ]


def fusion_choices(state: SearchState, result: SearchResult) -> list[Choice]:
    """Links to the ways of joining words and meaning; none where a mode has only one of them."""
    if result.mode not in ("hybrid", "graph"):
        return []
    return [
        Choice(gettext(label), state.url(method=value), value == result.fusion, hint=gettext(hint))
        for value, (label, hint) in FUSION_CHOICES.items()
    ]


def field_heading(name: str) -> str:
    """A field name as heading: `media_type` → “Type”, `due_date` → “Due date”."""
    if name in FIELD_HEADINGS:
        return gettext(FIELD_HEADINGS[name])
    return name[:1].upper() + name[1:].replace("_", " ")


def filter_chips(state: SearchState, names: Mapping[str, str]) -> list[Choice]:
    """Active filters as links that remove them. `names`: collection slug → name."""
    chips = [
        Choice(
            names.get(slug, slug), state.toggled("collections", slug), hint=gettext("Collection")
        )
        for slug in state.collections
    ]
    chips += [
        Choice(each, state.toggled("types", each), hint=gettext("Type")) for each in state.types
    ]
    tree = state.tree
    if tree is None:
        return [*chips, Choice(state.filter, state.url(filter=""), hint=gettext("Filter"))]
    for part in tree.parts if isinstance(tree, And) else (tree,):
        match part:
            case Comparison(operator=Operator.EQ, value=str() | int() | float() as value):
                hint, label = field_heading(str(part.field)), _value_label(part.field, value)
            case Comparison(operator=Operator.IN, value=tuple(values)):
                labels = [_value_label(part.field, value) for value in values]
                hint, label = field_heading(str(part.field)), ", ".join(labels)
            case _:
                hint, label = gettext("Filter"), to_text(part)
        url = state.url(filter=state.without_condition(to_text(part)))
        chips.append(Choice(label, url, hint=hint))
    return chips


def _value_label(field: Field, value: str | float) -> str:
    if field.name == "language":
        return str(LANG_INFO.get(str(value), {}).get("name", value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


#: Facets that the page has parameters of its own for → the field of its state.
STATE_FIELDS = {"collection": "collections", "media_type": "types"}
#: Values visible at first; the others are collapsed.
FIRST_VALUES = 6
#: With more values than this, typing finds one sooner.
LONG_FACET = 8


def facet_groups(state: SearchState, facets: Mapping[str, Sequence[Facet]]) -> list[dict[str, Any]]:
    """Facets that narrow this search or could."""
    groups = (
        facet_group(state, name, values, number=number)
        for number, (name, values) in enumerate(facets.items())
    )
    return [
        group
        for group in groups
        if len(group["choices"]) > 1 or any(choice.selected for choice in group["choices"])
    ]


def facet_group(
    state: SearchState, name: str, values: Sequence[Facet], *, number: int = 0
) -> dict[str, Any]:
    """Links for the values of one facet: `first` are always visible, the most frequent and all
    chosen ones; `others` are collapsed. `number` identifies the facet on the page; one that
    `is_long` needs a box to find values.
    """
    if (parameter := STATE_FIELDS.get(name)) is not None:
        chosen = getattr(state, parameter)
        links = [
            Choice(
                facet.label,
                state.toggled(parameter, facet.value),
                facet.value in chosen,
                facet.count,
            )
            for facet in values
        ]
    else:
        links = [
            Choice(facet.label, state.url(filter=filter), facet.selected, facet.count)
            for facet, filter in zip(values, _toggled_filters(state, name, values), strict=True)
        ]
    is_visible = [place < FIRST_VALUES or each.selected for place, each in enumerate(links)]
    return {
        "name": name,
        "number": number,
        "title": field_heading(name),
        "choices": links,
        "first": list(compress(links, is_visible)),
        "others": list(compress(links, map(not_, is_visible))),
        "is_long": len(links) > LONG_FACET,
    }


def _toggled_filters(state: SearchState, name: str, values: Sequence[Facet]) -> Iterator[str]:
    """For each value the filter with it added or removed, beside others of its field."""
    tree = state.tree or ALL
    before, is_first = to_text(tree), not chosen_values(tree, parse_field(name, at="facet"))
    for facet in values:
        if is_first:
            yield f"{before}; {facet.filter}" if before else facet.filter
            continue
        match read_filter(facet.filter):
            case Comparison(field, Operator.EQ, str() | int() | float() as value):
                yield to_text(toggle_value(tree, field, value))
            case _:
                yield before


ARM_LABELS = {
    "lexical": gettext_noop("Words"),
    "vector": gettext_noop("Meaning"),
    "graph": gettext_noop("Graph"),
}
ARM_PHRASES = {
    "lexical": gettext_noop("by your words"),
    "vector": gettext_noop("by meaning"),
    "graph": gettext_noop("over what passages name"),
}
SCORE_UNITS = {"lexical": "BM25", "vector": "cosine", "graph": "strength"}
EVIDENCE_LABELS = {
    "letters": gettext_noop("Letters in common"),
    "likeness": gettext_noop("Like the best"),
}
#: As many found words go along in the address of a passage.
MAX_PASSED_WORDS = 10


def hit_views(
    state: SearchState, result: SearchResult, *, grades: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Hits of the page with their URLs and the reasons for their ranks. `grades`: document id →
    grade for this question.
    """
    paged = with_pages(
        [hit.document_id for hit in result.hits if hit.media_type in PAGED_MEDIA_TYPES]
    )
    return [
        {
            "hit": hit,
            "url": passage_url(hit, state.query_string()),
            "table": table_as_json(hit),
            "thumbnail": thumbnail_url(hit.collection_slug, hit.document_id, hit.page)
            if hit.document_id in paged
            else "",
            "arms": arm_lines(hit, result.arms),
            "more_url": more_url(state, hit) if hit.more_in_document else "",
            "grades": grade_buttons(hit.document_id, hit.chunk_id, grades.get(hit.document_id)),
            "percent": round(100 * hit.relevance),
            "relevance": f"{hit.relevance:.2f}",
            "score": f"{hit.score:.3f}",
            "move": rank_change(hit),
            "found_by": found_by(hit),
            "day": document_day(hit),
            "language": language_name(hit.language),
            # Host of its URL, else its file path.
            "place": urlsplit(hit.url).netloc or hit.source or hit.document_key,
        }
        for hit in result.hits
    ]


#: Columns of a row that are shown; of wider tables the first one, those named and the next.
MAX_SHOWN_COLUMNS = 12
#: Characters of a cell that stays on one line.
SHORT_CELL = 20
_UNNAMED = re.compile(r"Column \d{1,5}")


def table_as_json(hit: Hit) -> dict[str, Any] | None:
    """The best rows of a hit with the names of their columns and the address of the table's page
    that begins before them; None without rows."""
    table = hit.table
    if table is None:
        return None
    # Of wide tables first the cells that are named, then those filled in the best row.
    first = table.rows[0]
    order = sorted(
        range(len(table.columns)),
        key=lambda at: (at > 0 and at not in first.matched, not first.cells[at], at),
    )
    places = sorted(order[:MAX_SHOWN_COLUMNS])
    offset = first.ordinal // PAGE_ROWS * PAGE_ROWS
    url = cached_reverse("table", 0).replace("/0/", f"/{table.id}/")

    def text(cell: str) -> str:
        return strip_markdown(cell) if hit.rendering == "markdown" else cell

    return {
        "url": f"{url}?{urlencode({'offset': offset})}" if offset else url,
        "columns": [text(table.columns[at]) for at in places],
        "has_names": not all(map(_UNNAMED.fullmatch, table.columns)),
        "more": len(order) > len(places),
        "rows": [
            [
                {
                    "text": text(row.cells[at]),
                    "is_matched": at in row.matched,
                    "is_short": len(row.cells[at]) <= SHORT_CELL,
                }
                for at in places
            ]
            for row in table.rows
        ],
    }


def rank_change(hit: Hit) -> str:
    """Effect of reranking, such as “up from 7”; empty if none."""
    before, now = hit.fused_rank, hit.rank
    if hit.rerank is None or before == now:
        return ""
    if before > now:
        return gettext("up from {place}").format(place=before)
    return gettext("down from {place}").format(place=before)


def found_by(hit: Hit) -> str:
    """Which arms found it: “Found by your words and by meaning”."""
    *others, last = [ARM_PHRASES[name] for name in ARM_PHRASES if name in hit.ranks] or [""]
    ways = (
        gettext("{others} and {last}").format(others=", ".join(others), last=last)
        if others
        else last
    )
    return gettext("Found {ways}").format(ways=ways) if ways else ""


def document_day(hit: Hit) -> str:
    """The document's date as precise as known; empty if it is only the day it was added."""
    known = hit.dated
    if not known or known == hit.updated_at.date().isoformat():
        return ""
    year, month, day = (*map(int, known.split("-")), 0, 0)[:3]
    name = MONTHS_3[month].title() if month in MONTHS_3 else ""
    return " ".join(part for part in (str(day or ""), str(name), str(year)) if part)


def arm_lines(hit: Hit, arms: Iterable[ArmReport]) -> list[dict[str, str]]:
    """How each arm and feature scored a hit; `share` ("0.00" to "1.00") is its part of the fused
    score.
    """
    lines = []
    for name in [*(arm.name for arm in arms), *RERANK_FEATURES]:
        contribution = hit.contributions.get(name)
        line = {
            "label": gettext(EVIDENCE_LABELS[name]) if name in EVIDENCE_LABELS else "",
            "place": "",
            "score": "",
        }
        if name not in RERANK_FEATURES:
            score = {"lexical": hit.lexical, "vector": hit.similarity, "graph": hit.graph}[name]
            line = {
                "label": gettext(ARM_LABELS[name]),
                "place": str(hit.ranks.get(name, gettext("not listed"))),
                "score": "" if score is None else f"{SCORE_UNITS[name]} {score:.3g}",
            }
        elif contribution is None:
            continue
        share = contribution / hit.fused if contribution and hit.fused > 0 else 0.0
        text = "" if contribution is None else f"{contribution:.3f}"
        lines.append({**line, "contribution": text, "share": f"{share:.2f}"})
    return lines


def passage_url(hit: Hit, search: str = "") -> str:
    """URL of the passage within its document; `search` is the query string to return to."""
    path = (
        f"{cached_reverse('document', hit.collection_slug, 0).removesuffix('0/')}{hit.document_id}/"
    )
    # Distinct highlighted words, for the document page to highlight too.
    marked = " ".join(hit.snippet.text[start:end] for start, end in hit.snippet.highlights)
    found_words = list(dict.fromkeys(re.findall(r"\w+", marked.lower())))[:MAX_PASSED_WORDS]
    own = {"chunk": hit.chunk_id, "words": " ".join(found_words)}
    query = urlencode({name: value for name, value in own.items() if value})
    return f"{path}?{query}{'&' if search else ''}{search}#passage"


def more_url(state: SearchState, hit: Hit) -> str:
    """URL of a search for the other passages of this document, within the same filter."""
    only = Comparison(Field("document"), Operator.EQ, hit.document_key)
    tree = state.tree
    narrowed = to_text(all_of([tree, only] if tree else [only]))
    return state.url(group=False, collections=(hit.collection_slug,), filter=narrowed)


METHOD_LABELS = {
    "bm25": "BM25",
    "trigram": gettext_noop("BM25 with words spelt alike"),
    "exact": gettext_noop("every vector compared"),
    "ann": gettext_noop("by the index, approximately"),
    "paths": gettext_noop("over what passages name"),
}
FUSION_LABELS = {
    "score": gettext_noop("scores, weighed by how near the nearest passage is"),
    "weighted": gettext_noop("scores, by fixed weights"),
    "rrf": gettext_noop("reciprocal ranks (RRF)"),
}
TIMING_LABELS = {
    "plan": gettext_noop("looking up"),
    "embed": gettext_noop("embedding"),
    "database": gettext_noop("searching"),
    "graph": gettext_noop("following names"),
    "rerank": gettext_noop("reading again"),
    "total": gettext_noop("in all"),
}


def explain_search(result: SearchResult) -> list[str]:
    """Explanation of a search: what each arm did and weighed, and timings."""
    lines = [
        gettext("{name}: {method}, {candidates} listed, weight {weight:.2f}").format(
            name=gettext(ARM_LABELS.get(arm.name, arm.name)),
            method=gettext(METHOD_LABELS[arm.method]),
            candidates=arm.candidates,
            weight=arm.weight,
        )
        for arm in result.arms
    ]
    if len(result.arms) > 1:
        lines.append(
            gettext("Fusion: {method}").format(method=gettext(FUSION_LABELS[result.fusion]))
        )
    if result.reranked:
        lines.append(
            gettext("Read again: {reranked} by {reranker}").format(
                reranked=result.reranked, reranker=result.reranker
            )
        )
    spent = [
        f"{gettext(TIMING_LABELS[name])} {milliseconds:.0f} ms"
        for name, milliseconds in result.timings.items()
        if name in TIMING_LABELS and milliseconds >= 0.5
    ]
    return [*lines, gettext("Time: {times}").format(times=", ".join(spent))] if spent else lines


def accuracy(arms: Iterable[ArmReport]) -> str:
    """“exact” or “approximate” vector search; empty without vectors."""
    methods = {arm.method for arm in arms if arm.name == "vector"}
    if not methods:
        return ""
    return gettext("approximate") if "ann" in methods else gettext("exact")


def page_links(state: SearchState, result: SearchResult) -> dict[str, Any] | None:
    """Links to the other pages, None in `numbered` being a gap; None if there is one page."""
    count = ceil(result.total / result.k) if result.k else 0
    if count <= 1:
        return None
    near = {1, count, *range(state.page - 2, state.page + 3)}
    numbered: list[Choice | None] = []
    for number in range(1, count + 1):
        if number in near:
            numbered.append(
                Choice(str(number), state.url(page=number), selected=number == state.page)
            )
        elif numbered and numbered[-1] is not None:
            numbered.append(None)
    return {
        "number": state.page,
        "count": count,
        "previous": state.url(page=state.page - 1) if state.page > 1 else "",
        "following": state.url(page=state.page + 1) if state.page < count else "",
        "numbered": numbered,
    }


def saved_search_row(saved: SavedSearch) -> dict[str, Any]:
    """A saved search with its URL and description; one that can no longer be parsed has no
    details.
    """
    try:
        state = SearchState.parse(saved.parameters)
    except InvalidInput:
        url = f"/?{saved.parameters}"
        return {"saved": saved, "url": url, "question": saved.parameters, "details": ()}
    details = (
        *([gettext(MODE_LABELS[state.mode])] if state.mode != "hybrid" else []),
        *([gettext(SORT_LABELS[state.sort])] if state.sort != "relevance" else []),
        *state.collections,
        *state.types,
        *state.conditions,
    )
    return {"saved": saved, "url": state.url(), "question": state.q, "details": details}


MAX_ORIGIN_CHARACTERS = 300
MARKDOWN = "text/markdown"


def similar_items(found: Sequence[Hit]) -> list[dict[str, Any]]:
    """Similar passages with URLs, in the given order."""
    return [
        {
            "similar": each,
            "url": _document_url(each.collection_slug, each.document_id, each.chunk_id),
            "text": one_line(each.text, each.media_type),
        }
        for each in found
    ]


def similar_origin(document: Document, chunk: Chunk | None) -> dict[str, Any]:
    """Presentation of the passage or document asked about."""
    text = one_line(chunk.text, chunk.media_type) if chunk else ""
    return {
        "title": str(document),
        "url": _document_url(document.collection.slug, document.pk, chunk.pk if chunk else None),
        "heading_path": chunk.heading_path if chunk else (),
        "text": text if len(text) <= MAX_ORIGIN_CHARACTERS else f"{text[:MAX_ORIGIN_CHARACTERS]}…",
    }


def one_line(text: str, media_type: str) -> str:
    """One line of plain text, Markdown removed."""
    return " ".join((strip_markdown(text) if media_type == MARKDOWN else text).split())


def _document_url(slug: str, document_id: int, chunk_id: int | None) -> str:
    path = reverse("document", args=[slug, document_id])
    return path if chunk_id is None else f"{path}?chunk={chunk_id}#passage"


MAX_EXAMPLES = 4
SAMPLED_DOCUMENTS = 40
SAMPLED_CHUNKS = 500
EXAMPLE_WORD_COUNTS = range(3, 10)
MAX_EXAMPLE_CHARACTERS = 70
QUESTION_WORDS = {"how", "what", "why", "where", "when", "which", "who", "can", "is", "are", "does"}
_NUMBER = re.compile(r"^[\d.)(\s–-]+")
#: File names, paths, code and URLs are no questions.
_CODE = re.compile(r"[/\\_<>{}=|`@#*\[\]]|\w\.\w|\w\(")


def example_questions(documents: DocumentQuerySet[Document]) -> list[str]:
    """The questions of the demo's firm while its documents are there. Else up to four, each from
    another document, across as many collections as possible.
    """
    demo = firm_questions()
    firm = documents.filter(collection__slug=FIRM_COLLECTION, key__in=list(demo))
    if keys := set(firm.values_list("key", flat=True)):
        return [question for key, question in demo.items() if key in keys]
    rows = documents.order_by("-id").values_list("pk", "collection", "title")[:SAMPLED_DOCUMENTS]
    collections = {pk: collection for pk, collection, _ in rows}
    chunks = Chunk.objects.filter(document__in=list(collections), heading_path__len__gt=0)
    headings = chunks.order_by("-document", "ordinal").values_list("document", "heading_path")
    best: dict[int, str] = {}
    titles = [(pk, [title]) for pk, _, title in rows]
    for document, path in [*headings[:SAMPLED_CHUNKS], *titles]:
        question = _NUMBER.sub("", " ".join(path[-1].split())) if path else ""
        if (
            len(question.split()) in EXAMPLE_WORD_COUNTS
            and len(question) <= MAX_EXAMPLE_CHARACTERS
            and not _CODE.search(question)
            and _sort_key(question) > _sort_key(best.get(document, ""))
        ):
            best[document] = question
    return _interleave_collections(best, collections)


def example_table_questions(documents: DocumentQuerySet[Document]) -> list[str]:
    """Questions of the demo that are computed from tables, while its documents are there."""
    questions = firm_table_questions()
    firm = documents.filter(collection__slug=FIRM_COLLECTION, key__in={key for _, key in questions})
    keys = set(firm.values_list("key", flat=True))
    return [question for question, key in questions if key in keys]


def _sort_key(text: str) -> tuple[bool, int]:
    """Sort key: questions before headings, longer ones first."""
    words = text.casefold().split()
    return text.endswith("?") or bool(QUESTION_WORDS & {*words[:1]}), len(words)


def _interleave_collections(questions: dict[int, str], collections: dict[int, int]) -> list[str]:
    """One of each collection in turn, without duplicates."""
    by_collection: dict[int, list[str]] = {}
    for document, question in sorted(
        questions.items(), key=lambda item: (_sort_key(item[1]), item[0]), reverse=True
    ):
        by_collection.setdefault(collections[document], []).append(question)
    rounds = [
        turn[n]
        for n in range(max(map(len, by_collection.values()), default=0))
        for turn in by_collection.values()
        if n < len(turn)
    ]
    return list(dict.fromkeys(rounds))[:MAX_EXAMPLES]
