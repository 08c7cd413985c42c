"""What the search page shows: results and state turned into words, shares and addresses."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from urllib.parse import urlencode

from django.urls import reverse

from common.fusion import EVIDENCE
from search.forms import SearchState
from search.results import ArmReport, Facet, Hit, SearchResult

MODE_LABELS = {"hybrid": "Hybrid", "lexical": "Words", "vector": "Meaning", "graph": "Graph"}
MODE_HINTS = {
    "hybrid": "Passages that fit by words and by meaning",
    "lexical": "Passages that hold your words",
    "vector": "Passages that mean the same, in whatever words",
    "graph": "By words, by meaning, and over what passages name: for answers in several documents",
}
ARM_LABELS = {"lexical": "Words", "vector": "Meaning", "graph": "Graph"}
METHODS = {
    "bm25": "BM25",
    "trigram": "BM25 with words spelt alike",
    "exact": "every vector compared",
    "ann": "by the index, approximately",
    "paths": "over what passages name",
}
TIMINGS = {
    "plan": "looking up",
    "embed": "embedding",
    "database": "searching",
    "graph": "following names",
    "rerank": "reading again",
    "total": "in all",
}
EVIDENCE_LABELS = {"letters": "Letters in common", "likeness": "Like the best"}
#: Facet → (heading, field of the state).
FACETS = {"collection": ("Collection", "collections"), "media_type": ("Type", "types")}
#: More values than this get a box to narrow them by.
LONG_FACET = 8
#: As many found words go along in the address of a passage.
PASSED_WORDS = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to click: `url` chooses it, or takes it back where it is selected."""

    label: str
    url: str
    selected: bool = False
    count: int | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FacetGroup:
    """The values of one facet."""

    name: str
    title: str
    choices: tuple[Choice, ...]

    @property
    def is_long(self) -> bool:
        """Whether it takes a box to find a value."""
        return len(self.choices) > LONG_FACET


@dataclass(frozen=True, slots=True)
class ArmLine:
    """How one arm, or a piece of evidence, judged a hit; `share` 0..1 is the part of the fused
    score that came from it."""

    label: str
    place: str
    score: str
    contribution: float | None
    share: float


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit, the address of its passage, and why it is here."""

    hit: Hit
    url: str
    arms: tuple[ArmLine, ...]

    @property
    def move(self) -> str:
        """What reranking did to its place, such as “up from 7”; empty where nothing."""
        before, now = self.hit.fused_rank, self.hit.rank
        if self.hit.rerank is None or before == now:
            return ""
        return f"{'up' if before > now else 'down'} from {before}"


def modes(state: SearchState) -> tuple[Choice, ...]:
    """The mode switch."""
    return tuple(
        Choice(label=label, url=state.url(mode=mode), selected=mode == state.mode,
               hint=MODE_HINTS[mode])
        for mode, label in MODE_LABELS.items()
    )  # fmt: skip


def facet_groups(state: SearchState, facets: Mapping[str, tuple[Facet, ...]]) -> list[FacetGroup]:
    """The facets that have values, in a fixed order."""
    own = [
        FacetGroup(
            name=name,
            title=title,
            choices=tuple(
                Choice(
                    label=facet.label,
                    url=state.toggled(field, facet.value),
                    selected=facet.value in getattr(state, field),
                    count=facet.count,
                )
                for facet in facets[name]
            ),
        )
        for name, (title, field) in FACETS.items()
        if facets.get(name)
    ]
    return own + [
        FacetGroup(
            name=f"metadata-{number}",
            title=name[:1].upper() + name[1:].replace("_", " "),
            choices=tuple(_metadata_choice(state, facet) for facet in values),
        )
        for number, (name, values) in enumerate(facets.items())
        if name not in FACETS and values
    ]


def _metadata_choice(state: SearchState, facet: Facet) -> Choice:
    """A value of the metadata: a condition of the filter, which chooses it and takes it back."""
    selected = state.has_condition(facet.filter)
    changed = state.without_condition if selected else state.with_condition
    return Choice(
        label=facet.label,
        url=state.url(filter=changed(facet.filter)),
        selected=selected,
        count=facet.count,
    )


def chips(state: SearchState, names: Mapping[str, str]) -> list[Choice]:
    """What narrows the search now; each one's address takes it away. `names`: slug → name."""
    return [
        *(Choice(label=names.get(slug, slug), url=state.toggled("collections", slug),
                 hint="Collection") for slug in state.collections),
        *(Choice(label=media_type, url=state.toggled("types", media_type), hint="Type")
          for media_type in state.types),
        *(Choice(label=condition, url=state.url(filter=state.without_condition(condition)),
                 hint="Filter") for condition in state.conditions),
    ]  # fmt: skip


def shown_hits(state: SearchState, result: SearchResult) -> list[ShownHit]:
    """The page's hits."""
    return [
        ShownHit(
            hit=hit,
            url=_passage_url(state, hit),
            arms=(
                *(_arm_line(arm, hit) for arm in result.arms),
                *(_evidence_line(name, hit) for name in EVIDENCE if name in hit.contributions),
            ),
        )
        for hit in result.hits
    ]


def _passage_url(state: SearchState, hit: Hit) -> str:
    """The document with the passage marked; it keeps the search, for the way back."""
    path = reverse("document", args=[hit.collection_slug, hit.document_id])
    own = {"chunk": hit.chunk_id, "words": " ".join(_found_words(hit))}
    query = urlencode({name: value for name, value in own.items() if value})
    return f"{path}?{query}&{state.query_string()}#passage"


def _found_words(hit: Hit) -> list[str]:
    """The words that are highlighted in the snippet, each once, for the page to light too."""
    marked = " ".join(hit.snippet.text[start:end] for start, end in hit.snippet.highlights)
    return list(dict.fromkeys(re.findall(r"\w+", marked.lower())))[:PASSED_WORDS]


def _arm_line(arm: ArmReport, hit: Hit) -> ArmLine:
    score = {"lexical": hit.lexical, "vector": hit.similarity, "graph": hit.graph}.get(arm.name)
    unit = {"lexical": "BM25", "vector": "cosine", "graph": "strength"}.get(arm.name, "score")
    contribution = hit.contributions.get(arm.name)
    return ArmLine(
        label=ARM_LABELS.get(arm.name, arm.name.capitalize()),
        place=str(hit.ranks.get(arm.name, "not listed")),
        score="" if score is None else f"{unit} {score:.3g}",
        contribution=contribution,
        share=_share(contribution, hit),
    )


def _evidence_line(name: str, hit: Hit) -> ArmLine:
    contribution = hit.contributions[name]
    return ArmLine(EVIDENCE_LABELS[name], "", "", contribution, _share(contribution, hit))


def _share(contribution: float | None, hit: Hit) -> float:
    return contribution / hit.fused if contribution and hit.fused > 0 else 0.0


def how_it_worked(result: SearchResult) -> list[str]:
    """For a person who asked why: what each arm did and weighed, and where the time went."""
    lines = [
        f"{ARM_LABELS.get(arm.name, arm.name)}: {METHODS[arm.method]}, {arm.candidates} listed,"
        f" weight {arm.weight:.2f}"
        for arm in result.arms
    ]
    if result.reranked:
        lines.append(f"Read again: {result.reranked} by {result.reranker}")
    spent = [
        f"{TIMINGS[name]} {milliseconds:.0f} ms"
        for name, milliseconds in result.timings.items()
        if name in TIMINGS and milliseconds >= 0.5
    ]
    return [*lines, f"Time: {', '.join(spent)}"] if spent else lines


def accuracy(arms: Iterable[ArmReport]) -> str:
    """“exact” or “approximate”, by how vectors were compared; empty where none were."""
    methods = {arm.method for arm in arms if arm.name == "vector"}
    return "approximate" if "ann" in methods else "exact" if methods else ""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Pagination: `numbered` holds None where pages are left out."""

    number: int
    count: int
    previous: str
    following: str
    numbered: tuple[Choice | None, ...]


def page_links(state: SearchState, result: SearchResult) -> PageLinks | None:
    """Addresses of the pages around this one; None where everything is on one page."""
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
    return PageLinks(
        number=state.page,
        count=count,
        previous=state.url(page=state.page - 1) if state.page > 1 else "",
        following=state.url(page=state.page + 1) if state.page < count else "",
        numbered=tuple(numbered),
    )
