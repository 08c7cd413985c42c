"""API answers of search: the dataclasses of `search.results` in JSON."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.utils.timezone import localtime
from drf_spectacular.utils import extend_schema_field
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from common.serializers import ResultSerializer
from search.export import ExportedHit
from search.results import (
    MODES,
    SORTS,
    ArmReport,
    Facet,
    HitRow,
    Mode,
    SearchResult,
    Snippet,
    Sort,
    Surroundings,
)


class Answer(BaseModel):
    """A part of an answer, read from the attributes of a result. `Hit.itself` is for parts that
    group fields of a hit.
    """

    model_config = ConfigDict(from_attributes=True)


class Scores(Answer):
    """All scores of a hit; higher is better, null where an arm did not list it."""

    similarity: float | None = Field(description="Of the vectors, −1 to 1.")
    lexical: float | None = Field(description="BM25, 0 or more.")
    graph: float | None = Field(
        description="How strongly the graph led there, 0 to 1. Mode `graph` only."
    )
    fused: float = Field(description="Of the arms together.")
    rerank: float | None = Field(
        description="The reranker's, 0 to 1; null where it did not read the hit."
    )
    score: float = Field(
        description="`fused`, times what the reranker makes of it; orders the hits."
    )


class SnippetSerializer(ResultSerializer):
    """The part of the passage that matches the question best."""

    result = Snippet

    highlights = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="[start, end] of words of the question, as offsets into the snippet's text.",
    )


class Stop(Answer):
    """A passage or node on a path through the graph."""

    kind: Literal["chunk", "node"]
    id: str = Field(description="Its id in the graph.")
    name: str = Field(description="Of a passage its document's title.")


class Related(Answer):
    """A passage related to a hit through the graph."""

    chunk_id: int
    expanded_from: int = Field(description="The hit's `chunk_id`.")
    path: tuple[Stop, ...] = Field(description="From the hit to this passage.")
    text: str
    ordinal: int
    start: int
    end: int
    document_id: int
    document_key: str
    title: str
    collection: str = Field(validation_alias="collection_slug")


def _document_address(document_id: int, info: ValidationInfo) -> str:
    return f"{info.context}{document_id}/"


class HitDocument(Answer):
    """The document of a hit."""

    id: int = Field(validation_alias="document_id")
    url: Annotated[str, BeforeValidator(_document_address)] = Field(validation_alias="document_id")
    key: str = Field(validation_alias="document_key")
    version: int
    is_current: bool = Field(description="False for a superseded version.")
    title: str
    source: str
    source_url: str = Field(validation_alias="url", description="Where it came from on the web.")
    media_type: str
    updated_at: Annotated[datetime, AfterValidator(localtime)]
    dated: str = Field(
        description="The date that it is of, ISO and as precise as its metadata say: `2024`,"
        " `2024-05` or `2024-05-31`. Else the day on which it was brought."
    )


def _table_address(table_id: int, info: ValidationInfo) -> str:
    root = str(info.context).removesuffix("documents/")
    return f"{root}tables/{table_id}/"


class FoundTable(Answer):
    """The rows of a table that fit best, with its header."""

    id: int
    url: Annotated[str, BeforeValidator(_table_address)] = Field(validation_alias="id")
    name: str = Field(description="The sheet, or the heading above the table; or empty.")
    columns: tuple[str, ...] = Field(description="Names of its columns.")
    rows: tuple[HitRow, ...] = Field(
        description="The best ones of the passage, 3 at most, the best one first."
    )


class TableAddressField(serializers.HyperlinkedIdentityField):
    """URL of a table in the API."""

    def __init__(self) -> None:
        super().__init__(
            view_name="api:table-detail",
            lookup_field="id",
            lookup_url_kwarg="pk",
            help_text="Its address in the API.",
        )


class FoundTableSerializer(ResultSerializer):
    """The rows of a table that fit best, with its header."""

    result = FoundTable

    url = TableAddressField()


class DocumentAddressField(serializers.HyperlinkedIdentityField):
    """URL of a document in the API."""

    def __init__(self) -> None:
        super().__init__(
            view_name="api:document-detail",
            lookup_field="document_id",
            lookup_url_kwarg="pk",
            help_text="Its address in the API.",
        )


class HitDocumentSerializer(ResultSerializer):
    """The document of a hit."""

    result = HitDocument

    url = DocumentAddressField()


class HitCollection(Answer):
    """The collection of a hit."""

    slug: str = Field(validation_alias="collection_slug")
    name: str = Field(validation_alias="collection_name")


class HitAnswer(Answer):
    """One passage. `start` and `end` are character offsets into the document's whole text."""

    rank: int = Field(description="Its place in the whole list, from 1.")
    chunk_id: int
    chunk_key: str = Field(
        description="The author's `chunk_id`, from chunk JSON; empty where there is none."
    )
    ordinal: int = Field(description="Its place in the document, from 0.")
    text: str
    context: str = Field(description="Title and headings, searched with the text.")
    heading_path: tuple[str, ...]
    page: int | None = Field(description="Or its second in a recording, or its row in a table.")
    location: str = Field(
        description="For people: `page 3`, `12:34` of a recording, `Prices!A12`, `row 7` or"
        " nothing."
    )
    parent: int | None = Field(
        description="The same for all parts of one larger passage of the document."
    )
    start: int
    end: int
    summary: str = Field(description="The author's, from chunk JSON; empty where there is none.")
    token_count: int = Field(
        description="The author's, from chunk JSON; else counted as the collection's model does."
    )
    language: str
    metadata: dict[str, Any]
    scores: Scores = Field(validation_alias="itself")
    relevance: float = Field(description="0 to 1: its score over the best hit's.")
    ranks: dict[str, int] = Field(description="Its place in the list of each arm, from 1.")
    fused_rank: int = Field(
        default=0,
        description="Its place by `fused`, before reranking and diversity. Only with `explain`.",
    )
    contributions: dict[str, float] = Field(
        default={},
        description="What each arm gave to `fused`, which is their sum. Only with `explain`.",
    )
    snippet: Snippet
    table: FoundTable | None = Field(
        description="The rows of a table that fit best, where the question names a cell of one, or"
        " most of its words are in one; null elsewhere."
    )
    surroundings: Surroundings | None = Field(description="What `expand` asked for.")
    path: tuple[Stop, ...] = Field(
        description="How the graph led there: from a name in the question, or from a better hit."
    )
    related: tuple[Related, ...] = Field(description="What `expand=graph` asked for.")
    document: HitDocument = Field(validation_alias="itself")
    collection: HitCollection = Field(validation_alias="itself")
    more_in_document: int = Field(
        description="With `group`: further passages of the document that were found."
    )


class HitSerializer(ResultSerializer):
    """One passage. `start` and `end` are character offsets into the document's whole text."""

    result = HitAnswer


class FacetSerializer(ResultSerializer):
    """A facet value with its number of hits."""

    result = Facet


class Similar(Answer):
    """A passage similar to the one that was named."""

    chunk_id: int
    ordinal: int = Field(description="Its place in the document, from 0.")
    heading_path: tuple[str, ...]
    page: int | None
    location: str = Field(
        description="For people, where it begins: `page 3`, `12:34` of a recording, `Prices!A12`."
    )
    start: int
    end: int
    text: str = Field(description="How it begins.")
    language: str
    similarity: float | None = Field(
        description="Of the vectors, −1 to 1; null where they cannot be compared."
    )
    relevance: float = Field(description="0 to 1: its score over the best one's.")
    document: HitDocument = Field(validation_alias="itself")
    collection: HitCollection = Field(validation_alias="itself")


class SimilarAnswer(Answer):
    """Similar passages or documents, best first."""

    hits: tuple[Similar, ...]


class SimilarAnswerSerializer(ResultSerializer):
    """Similar passages or documents, best first."""

    result = SimilarAnswer


class FacetAnswerSerializer(serializers.Serializer[Any]):
    """A facet with its values, most frequent first."""

    facet = serializers.CharField()
    values = FacetSerializer(many=True, help_text="Those of most hits first, then others with 0.")


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}], "example": "knuth"}
)
class ScalarField(serializers.ReadOnlyField):
    """Text, a number, true or false."""


class FilterableFieldSerializer(serializers.Serializer[Any]):
    """A field that a search can be filtered by."""

    name = serializers.CharField(help_text="How a filter calls it.")
    description = serializers.CharField()
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=["text", "number", "boolean", "time", "language"]),
        help_text="What its values are.",
    )
    is_list = serializers.BooleanField(help_text="Whether it may have several values.")
    is_facet = serializers.BooleanField(help_text="Whether its values can be counted.")
    operators = serializers.ListField(
        child=serializers.CharField(), help_text="What it can be compared by, in the JSON form."
    )
    examples = serializers.ListField(
        child=serializers.CharField(), help_text="Conditions, in the text form."
    )
    values = serializers.ListField(child=ScalarField(), help_text="Frequent ones, of metadata.")
    share = serializers.FloatField(
        help_text="0 to 1: how many of the newest passages have it; 1 for fields of every passage."
    )


class FieldsAnswerSerializer(serializers.Serializer[Any]):
    """Fields that a search can be filtered by."""

    filters = FilterableFieldSerializer(
        many=True, help_text="Fields of every search, then the metadata that there are here."
    )


class ArmSerializer(ResultSerializer):
    """How one arm (lexical, vector or graph) ran."""

    result = ArmReport


class SearchAnswer(Answer):
    """A page of hits with facets, arms and timings."""

    query: str
    mode: Mode
    sort: Sort
    total: int = Field(
        description="Length of the ranked list: passages, or documents with `group`. It does not"
        " count what fits the question: of each arm only the best are listed, 64 or 200 and more"
        " for later pages. See `is_cut`."
    )
    is_cut: bool = Field(
        description="Whether an arm listed as many as it may, so that `total` is the least that"
        " there are, and a later page may say more."
    )
    offset: int
    k: int
    next_offset: int | None
    hits: tuple[HitAnswer, ...]
    facets: dict[str, tuple[Facet, ...]] = Field(
        description="Values by name (`collection`, `media_type` and each `facet` asked for), most"
        " frequent first; years newest first."
    )
    filter: dict[str, Any] = Field(validation_alias="filter_json")
    arms: tuple[ArmReport, ...]
    timings: dict[str, float] = Field(description="Milliseconds by stage, and their `total`.")
    can_rerank: bool = Field(description="Whether a reranker is set up here.")
    reranker: str = Field(description="The reranker that worked; empty without one.")
    reranked: int = Field(description="How many hits it read.")
    suggestion: str = Field(
        description="The question with its spelling corrected, where words occur nowhere; or empty."
    )
    degraded: tuple[str, ...] = Field(
        description="What should have worked and did not: `vector` when the embedder is down,"
        " `rerank` when the reranker is."
    )
    notes: tuple[str, ...] = Field(description="What a person should know of this answer.")


class SearchAnswerSerializer(ResultSerializer):
    """A page of hits with facets, arms and timings."""

    result = SearchAnswer

    next_offset = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="The `offset` of the next page; null on the last.",
    )
    filter = serializers.DictField(
        source="filter_json",
        read_only=True,
        help_text="The filter that held, in JSON form; `type` is part of it. Empty: none.",
    )


def answer_data(answer: type[Answer], result: Any, *, request: Request) -> dict[str, Any]:
    """An answer as JSON data, made of a search result or of what has the same attributes."""
    documents = reverse("api:document-list", request=request)
    return answer.model_validate(result, context=documents).model_dump(mode="json")


def search_answer(result: SearchResult, *, request: Request, explain: bool) -> dict[str, Any]:
    """A search result as JSON data; without `explain`, contributions are left out."""
    answer = answer_data(SearchAnswer, result, request=request)
    if not explain:
        for hit in answer["hits"]:
            del hit["contributions"], hit["fused_rank"]
    return answer


class ExportedSerializer(ResultSerializer):
    """A hit in an export."""

    result = ExportedHit


class ExportSerializer(serializers.Serializer[Any]):
    """An export: the query and its hits."""

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)
    sort = serializers.ChoiceField(choices=SORTS)
    filter = serializers.DictField(help_text="The filter that held, in JSON form.")
    total = serializers.IntegerField(help_text="How many hits are in it, 1,000 at most.")
    exported_at = serializers.DateTimeField()
    hits = ExportedSerializer(many=True)
