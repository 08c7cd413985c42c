"""API answers of search: the dataclasses of `search.results` in JSON."""

from threading import local
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from common.serializers import field_writer
from search.filters import to_json
from search.results import MODES, SORTS, Hit, SearchResult


class ScoresSerializer(serializers.Serializer[Any]):
    """All scores of a hit; higher is better, null where an arm did not list it."""

    similarity = serializers.FloatField(allow_null=True, help_text="Of the vectors, −1 to 1.")
    lexical = serializers.FloatField(allow_null=True, help_text="BM25, 0 or more.")
    graph = serializers.FloatField(
        allow_null=True, help_text="How strongly the graph led there, 0 to 1. Mode `graph` only."
    )
    fused = serializers.FloatField(help_text="Of the arms together.")
    rerank = serializers.FloatField(
        allow_null=True, help_text="The reranker's, 0 to 1; null where it did not read the hit."
    )
    score = serializers.FloatField(
        help_text="`fused`, times what the reranker makes of it; orders the hits."
    )


class SnippetSerializer(serializers.Serializer[Any]):
    """The part of the passage that matches the question best."""

    text = serializers.CharField()
    start = serializers.IntegerField(help_text="Its offset in the hit's `text`.")
    highlights = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="[start, end] of words of the question, as offsets into the snippet's text.",
    )
    cut_before = serializers.BooleanField(help_text="Whether text was left out before it.")
    cut_after = serializers.BooleanField(help_text="Whether text was left out behind it.")


class SurroundingsSerializer(serializers.Serializer[Any]):
    """A hit with the text around it."""

    text = serializers.CharField()
    start = serializers.IntegerField(help_text="Its offset in the document's text.")
    end = serializers.IntegerField()


class StopSerializer(serializers.Serializer[Any]):
    """A passage or node on a path through the graph."""

    kind = serializers.ChoiceField(choices=["chunk", "node"])
    id = serializers.CharField(help_text="Its id in the graph.")
    name = serializers.CharField(help_text="Of a passage its document's title.")


class RelatedSerializer(serializers.Serializer[Any]):
    """A passage related to a hit through the graph."""

    chunk_id = serializers.IntegerField()
    expanded_from = serializers.IntegerField(help_text="The hit's `chunk_id`.")
    path = StopSerializer(many=True, help_text="From the hit to this passage.")
    text = serializers.CharField()
    ordinal = serializers.IntegerField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    document_id = serializers.IntegerField()
    document_key = serializers.CharField()
    title = serializers.CharField()
    collection = serializers.CharField(source="collection_slug")


class DocumentAddressField(serializers.HyperlinkedIdentityField):
    """URL of a document in the API; its prefix is resolved once a request."""

    def get_url(self, obj: Any, view_name: str, request: Any, format: str | None) -> str:
        if not hasattr(request, "documents_address"):
            request.documents_address = reverse("api:document-list", request=request)
        return f"{request.documents_address}{obj.document_id}/"


class HitDocumentSerializer(serializers.Serializer[Any]):
    """The document of a hit."""

    id = serializers.IntegerField(source="document_id")
    url = DocumentAddressField(
        view_name="api:document-detail",
        lookup_field="document_id",
        lookup_url_kwarg="pk",
        help_text="Its address in the API.",
    )
    key = serializers.CharField(source="document_key")
    version = serializers.IntegerField()
    is_current = serializers.BooleanField(help_text="False for a superseded version.")
    title = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # DRF's metaclass takes it out
    source_url = serializers.CharField(source="url", help_text="Where it came from on the web.")
    media_type = serializers.CharField()
    updated_at = serializers.DateTimeField()
    dated = serializers.CharField(
        help_text="The date that it is of, ISO and as precise as its metadata say: `2024`,"
        " `2024-05` or `2024-05-31`. Else the day on which it was brought."
    )


class HitCollectionSerializer(serializers.Serializer[Any]):
    """The collection of a hit."""

    slug = serializers.CharField(source="collection_slug")
    name = serializers.CharField(source="collection_name")


class HitSerializer(serializers.Serializer[Hit]):
    """One passage. `start` and `end` are character offsets into the document's whole text."""

    rank = serializers.IntegerField(help_text="Its place in the whole list, from 1.")
    chunk_id = serializers.IntegerField()
    chunk_key = serializers.CharField(
        help_text="The author's `chunk_id`, from chunk JSON; empty where there is none."
    )
    ordinal = serializers.IntegerField(help_text="Its place in the document, from 0.")
    text = serializers.CharField()
    context = serializers.CharField(  # type: ignore[assignment]
        help_text="Title and headings, searched with the text."
    )
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(
        allow_null=True, help_text="Or its second in a recording, or its row in a table."
    )
    location = serializers.CharField(
        help_text="For people: `page 3`, `12:34` of a recording, `Prices!A12`, `row 7` or nothing."
    )
    parent = serializers.IntegerField(  # type: ignore[assignment]
        allow_null=True,
        help_text="The same for all parts of one larger passage of the document.",
    )
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    summary = serializers.CharField(
        help_text="The author's, from chunk JSON; empty where there is none."
    )
    token_count = serializers.IntegerField(
        help_text="The author's, from chunk JSON; else counted as the collection's model does."
    )
    language = serializers.CharField()
    metadata = serializers.DictField()
    scores = ScoresSerializer(source="*")
    relevance = serializers.FloatField(help_text="0 to 1: its score over the best hit's.")
    ranks = serializers.DictField(
        child=serializers.IntegerField(), help_text="Its place in the list of each arm, from 1."
    )
    fused_rank = serializers.IntegerField(
        required=False,
        help_text="Its place by `fused`, before reranking and diversity. Only with `explain`.",
    )
    contributions = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="What each arm gave to `fused`, which is their sum. Only with `explain`.",
    )
    snippet = SnippetSerializer()
    surroundings = SurroundingsSerializer(allow_null=True, help_text="What `expand` asked for.")
    path = StopSerializer(
        many=True,
        help_text="How the graph led there: from a name in the question, or from a better hit.",
    )
    related = RelatedSerializer(many=True, help_text="What `expand=graph` asked for.")
    document = HitDocumentSerializer(source="*")
    collection = HitCollectionSerializer(source="*")
    more_in_document = serializers.IntegerField(
        help_text="With `group`: further passages of the document that were found."
    )


class FacetSerializer(serializers.Serializer[Any]):
    """A facet value with its number of hits."""

    value = serializers.CharField(help_text="What to filter by.")
    label = serializers.CharField(help_text="What to show.")  # type: ignore[assignment]
    count = serializers.IntegerField(
        help_text="How many hits have it, whatever else was picked in the same facet."
    )
    selected = serializers.BooleanField(help_text="Whether the search asked for it.")
    filter = serializers.CharField(
        help_text="The filter, as text, that keeps only these; empty where the search has a"
        " parameter of its own."
    )


class SimilarSerializer(serializers.Serializer[Any]):
    """A passage similar to the one that was named."""

    chunk_id = serializers.IntegerField()
    ordinal = serializers.IntegerField(help_text="Its place in the document, from 0.")
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(allow_null=True)
    location = serializers.CharField(
        help_text="For people, where it begins: `page 3`, `12:34` of a recording, `Prices!A12`."
    )
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    text = serializers.CharField(help_text="How it begins.")
    language = serializers.CharField()
    similarity = serializers.FloatField(
        allow_null=True, help_text="Of the vectors, −1 to 1; null where they cannot be compared."
    )
    relevance = serializers.FloatField(help_text="0 to 1: its score over the best one's.")
    document = HitDocumentSerializer(source="*")
    collection = HitCollectionSerializer(source="*")


class SimilarAnswerSerializer(serializers.Serializer[Any]):
    """Similar passages or documents, best first."""

    hits = SimilarSerializer(many=True)


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


class ArmSerializer(serializers.Serializer[Any]):
    """How one arm (lexical, vector or graph) ran."""

    name = serializers.CharField(help_text="`lexical`, `vector` or `graph`.")
    method = serializers.CharField(
        help_text="`bm25`, or `trigram` where words like those of the question were searched for;"
        " of vectors `exact` or `ann` (approximate); of the graph `paths`."
    )
    candidates = serializers.IntegerField(help_text="How many passages it listed.")
    weight = serializers.FloatField(help_text="Its share in the fusion.")


class SearchAnswerSerializer(serializers.Serializer[Any]):
    """A page of hits with facets, arms and timings."""

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)
    sort = serializers.ChoiceField(choices=SORTS)
    total = serializers.IntegerField(
        help_text="Length of the ranked list: passages, or documents with `group`. It does not"
        " count what fits the question: of each arm only the best are listed, 64 or 200 and more"
        " for later pages."
    )
    offset = serializers.IntegerField()
    k = serializers.IntegerField()
    next_offset = serializers.SerializerMethodField(
        help_text="The `offset` of the next page; null on the last."
    )
    hits = HitSerializer(many=True)
    facets = serializers.DictField(
        child=FacetSerializer(many=True),
        help_text="Values by name (`collection`, `media_type` and each `facet` asked for), most"
        " frequent first; years newest first.",
    )
    filter = serializers.SerializerMethodField(
        help_text="The filter that held, in JSON form; `type` is part of it. Empty: none."
    )
    arms = ArmSerializer(many=True)
    timings = serializers.DictField(
        child=serializers.FloatField(), help_text="Milliseconds by stage, and their `total`."
    )
    can_rerank = serializers.BooleanField(help_text="Whether a reranker is set up here.")
    reranker = serializers.CharField(help_text="The reranker that worked; empty without one.")
    reranked = serializers.IntegerField(help_text="How many hits it read.")
    suggestion = serializers.CharField(
        help_text="The question with its spelling corrected, where words occur nowhere; or empty."
    )
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What should have worked and did not: `vector` when the embedder is down,"
        " `rerank` when the reranker is.",
    )
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What a person should know of this answer."
    )

    def get_filter(self, result: Any) -> dict[str, Any]:
        return to_json(result.filter)

    def get_next_offset(self, result: Any) -> int | None:
        behind: int = result.offset + len(result.hits)
        return behind if result.hits and behind < result.total else None


#: A serializer copies its fields when it is first used, which takes as long as to write an answer.
_thread_local = local()


def search_answer(result: SearchResult, *, request: Request, explain: bool) -> dict[str, Any]:
    """A search result as JSON data; without `explain`, contributions are left out."""
    if not hasattr(_thread_local, "write"):
        _thread_local.context = {}
        _thread_local.write = field_writer(SearchAnswerSerializer(context=_thread_local.context))
    _thread_local.context["request"] = request
    answer: dict[str, Any] = _thread_local.write(result)
    if not explain:
        for hit in answer["hits"]:
            del hit["contributions"], hit["fused_rank"]
    return answer


class ExportedSerializer(serializers.Serializer[Any]):
    """A hit in an export."""

    rank = serializers.IntegerField()
    title = serializers.CharField()
    headings = serializers.CharField(help_text="From the outermost on, with ` > ` between.")
    page = serializers.IntegerField(allow_null=True)
    text = serializers.CharField()
    collection = serializers.CharField()
    media_type = serializers.CharField()
    language = serializers.CharField()
    dated = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    source_url = serializers.CharField()
    link = serializers.CharField(help_text="Its document's address in the API.")
    relevance = serializers.FloatField()
    similarity = serializers.FloatField(allow_null=True)
    lexical = serializers.FloatField(allow_null=True)
    fused = serializers.FloatField()
    rerank = serializers.FloatField(allow_null=True)
    document_id = serializers.IntegerField()
    document_key = serializers.CharField()
    chunk_id = serializers.IntegerField()
    chunk_key = serializers.CharField()
    summary = serializers.CharField()
    token_count = serializers.IntegerField()
    metadata = serializers.DictField()


class ExportSerializer(serializers.Serializer[Any]):
    """An export: the query and its hits."""

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)
    sort = serializers.ChoiceField(choices=SORTS)
    filter = serializers.DictField(help_text="The filter that held, in JSON form.")
    total = serializers.IntegerField(help_text="How many hits are in it, 1,000 at most.")
    exported_at = serializers.DateTimeField()
    hits = ExportedSerializer(many=True)
