"""What the API says of a search: the dataclasses of `search.results`, in JSON."""

from typing import Any

from rest_framework import serializers

from search.filters import to_json
from search.results import MODES, Hit


class ScoresSerializer(serializers.Serializer[Any]):
    """Every score that was computed, kept apart; higher is better, null is “not seen”."""

    similarity = serializers.FloatField(allow_null=True, help_text="Of the vectors, −1 to 1.")
    lexical = serializers.FloatField(allow_null=True, help_text="BM25, 0 or more.")
    graph = serializers.FloatField(
        allow_null=True, help_text="How strongly the graph led there, 0 to 1. Mode `graph` only."
    )
    fused = serializers.FloatField(help_text="Of the arms together; orders the hits.")
    rerank = serializers.FloatField(allow_null=True, help_text="The reranker's, 0 to 1.")


class SnippetSerializer(serializers.Serializer[Any]):
    """The part of the passage that fits the question best."""

    text = serializers.CharField()
    start = serializers.IntegerField(help_text="Its offset in the hit's `text`.")
    highlights = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="[start, end] of words of the question, as offsets into the snippet's text.",
    )
    cut_before = serializers.BooleanField(help_text="Whether text was left out before it.")
    cut_after = serializers.BooleanField(help_text="Whether text was left out behind it.")


class SurroundingsSerializer(serializers.Serializer[Any]):
    """A hit with what stands around it, as one text."""

    text = serializers.CharField()
    start = serializers.IntegerField(help_text="Its offset in the document's text.")
    end = serializers.IntegerField()


class StopSerializer(serializers.Serializer[Any]):
    """A stop on a path through the graph."""

    kind = serializers.ChoiceField(choices=["chunk", "node"])
    id = serializers.CharField(help_text="Its id in the graph.")
    name = serializers.CharField(help_text="Of a passage its document's title.")


class RelatedSerializer(serializers.Serializer[Any]):
    """A passage that hangs together with a hit."""

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


class HitDocumentSerializer(serializers.Serializer[Any]):
    """The document that a hit stands in."""

    id = serializers.IntegerField(source="document_id")
    url = serializers.HyperlinkedIdentityField(
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


class HitCollectionSerializer(serializers.Serializer[Any]):
    """The collection that a hit stands in."""

    slug = serializers.CharField(source="collection_slug")
    name = serializers.CharField(source="collection_name")


class HitSerializer(serializers.Serializer[Hit]):
    """One passage. `start` and `end` are character offsets into the document's whole text."""

    rank = serializers.IntegerField(help_text="Its place in the whole list, from 1.")
    chunk_id = serializers.IntegerField()
    chunk_key = serializers.CharField()
    ordinal = serializers.IntegerField(help_text="Its place in the document, from 0.")
    text = serializers.CharField()
    context = serializers.CharField(  # type: ignore[assignment]
        help_text="Title and headings, searched with the text."
    )
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(allow_null=True)
    parent = serializers.IntegerField(  # type: ignore[assignment]
        allow_null=True,
        help_text="The same for all parts of one larger passage of the document.",
    )
    start = serializers.IntegerField()
    end = serializers.IntegerField()
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

    def to_representation(self, instance: Hit) -> Any:
        shown = super().to_representation(instance)
        if not self.context["explain"]:  # type: ignore[index]
            del shown["contributions"], shown["fused_rank"]
        return shown


class ArmSerializer(serializers.Serializer[Any]):
    """How one retriever worked."""

    name = serializers.CharField(help_text="`lexical`, `vector` or `graph`.")
    method = serializers.CharField(
        help_text="`bm25`, or `trigram` where words like those of the question were searched for;"
        " of vectors `exact` or `ann` (approximate); of the graph `paths`."
    )
    candidates = serializers.IntegerField(help_text="How many passages it listed.")
    weight = serializers.FloatField(help_text="Its share in the fusion.")


class FacetSerializer(serializers.Serializer[Any]):
    """A value that hits have."""

    value = serializers.CharField(help_text="What to filter by.")
    label = serializers.CharField(help_text="What to show.")  # type: ignore[assignment]
    count = serializers.IntegerField(help_text="How many of the found passages have it.")
    selected = serializers.BooleanField(help_text="Whether the search asked for it.")
    filter = serializers.CharField(
        help_text="The filter, as text, that keeps only these; empty where the search has a"
        " parameter of its own."
    )


class SearchAnswerSerializer(serializers.Serializer[Any]):
    """A page of hits and how it came about."""

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)
    total = serializers.IntegerField(
        help_text="How much was ranked: passages, or documents with `group`. Bounded."
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
        " frequent first.",
    )
    filter = serializers.SerializerMethodField(
        help_text="The filter that held, in JSON form; `type` is part of it. Empty: none."
    )
    arms = ArmSerializer(many=True)
    timings = serializers.DictField(
        child=serializers.FloatField(), help_text="Milliseconds by stage, and their `total`."
    )
    reranker = serializers.CharField(help_text="The reranker that worked; empty without one.")
    reranked = serializers.IntegerField(help_text="How many hits it read.")
    suggestion = serializers.CharField(
        help_text="The question with misspelt words mended, where some stand nowhere; or empty."
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
