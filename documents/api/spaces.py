"""Embedding spaces over HTTP: their models, contents and unfinished moves."""

from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext
from rest_framework import serializers

from accounts.api import ResourceViewSet, operation
from common.errors import Forbidden, NotFound
from common.rls import bypass_rls
from common.serializers import ReadOnlyModelSerializer, StrictSerializer
from documents import services
from documents.models import Collection, EmbeddingSpace, Reembedding
from documents.spaces import OPTION_BOUNDS


class EmbeddingSpaceMoveSerializer(ReadOnlyModelSerializer[Reembedding]):
    """An unfinished move of passages to a space."""

    collection = serializers.SlugRelatedField[Collection](
        slug_field="slug", read_only=True, allow_null=True, help_text="Null: all of them."
    )

    share = serializers.FloatField(help_text="How much of it is done, 0 to 1.")

    class Meta:
        model = Reembedding
        fields = ["id", "collection", "state", "share", "started_at"]


class EmbeddingSpaceDetailSerializer(ReadOnlyModelSerializer[EmbeddingSpace]):
    """One model's vectors. Spaces belong to the site; their contents belong to workspaces."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:space-detail", lookup_field="name", help_text="Its address in the API."
    )
    model = serializers.CharField(source="model_name")
    index_options = serializers.DictField(
        help_text="The options that were set; the others have their defaults."
    )
    collections = serializers.SerializerMethodField(
        help_text="Slugs of the workspace's collections with passages in this space."
    )
    moves = EmbeddingSpaceMoveSerializer(
        many=True, source="open_moves", help_text="Of the workspace's collections, to this space."
    )

    class Meta:
        model = EmbeddingSpace
        fields = [
            "name",
            "url",
            "model",
            "embedder",
            "dimensions",
            "metric",
            "query_instruction",
            "index_type",
            "index_options",
            "precision",
            "state",
            "is_default",
            "collections",
            "moves",
            "created_at",
        ]
        extra_kwargs = {"query_instruction": {"help_text": "What is put before a question."}}

    def get_collections(self, row: EmbeddingSpace) -> list[str]:
        return [collection.slug for collection in row.own_collections]  # type: ignore[attr-defined]


class SearchOptionField(serializers.IntegerField):
    """How much of an index searches visit; errors name both bounds."""

    def __init__(self, option: str, **kwargs: Any) -> None:
        least, most = OPTION_BOUNDS[option]
        bounds = f"{option} must be a whole number from {least} to {most:,}."
        messages: dict[str, Any] = dict.fromkeys(("min_value", "max_value", "invalid"), bounds)
        super().__init__(
            required=False, min_value=least, max_value=most, error_messages=messages, **kwargs
        )


class EmbeddingSpaceChangeSerializer(StrictSerializer):
    """How much of a space's index searches visit. Null: chosen by the size of the index."""

    ef_search = SearchOptionField("ef_search", allow_null=True, help_text="Of HNSW indexes.")
    probes = SearchOptionField("probes", allow_null=True, help_text="Of IVFFlat indexes.")


class SpaceViewSet(ResourceViewSet):
    """Embedding spaces of the site. `manage.py spaces` makes, indexes and removes them, and
    `manage.py reembed` moves collections to them."""

    for_limited_keys = frozenset({"list", "retrieve"})
    nouns = ("embedding space", "embedding spaces")
    editors_only = True
    serializer_class = EmbeddingSpaceDetailSerializer
    lookup_field = "name"
    lookup_value_converter = "slug"
    action_scopes = {"partial_update": "admin"}
    etag_excluded_fields = frozenset({"collections", "moves"})

    def get_queryset(self) -> QuerySet[EmbeddingSpace]:
        own = Collection.objects.none()
        try:
            own = Collection.objects.visible_to(self.request.user).filter(workspace=self.workspace)
        except NotFound:
            if self.action != "partial_update":  # staff need not be members
                raise
        moves = Reembedding.objects.exclude(state=Reembedding.State.DONE).filter(
            Q(collection=None) | Q(collection__in=own)
        )
        return EmbeddingSpace.objects.prefetch_related(
            Prefetch("collections", own.order_by("slug"), to_attr="own_collections"),
            Prefetch("reembeddings", moves.select_related("collection"), to_attr="open_moves"),
        )

    def editable_object(self) -> EmbeddingSpace:
        if not self.request.user.has_perm("documents.change_embeddingspace"):
            _ = self.workspace  # who is no member sees no spaces
            raise Forbidden(
                gettext("Only staff can change embedding spaces, because the whole site uses them.")
            )
        space: EmbeddingSpace = self.get_object()
        return space

    @operation(takes=EmbeddingSpaceChangeSerializer)
    def partial_update(self, space: EmbeddingSpace, **values: Any) -> None:
        """Change how searches use an index.

        Only for staff who may change embedding spaces, because the whole site uses them. Nothing is
        rebuilt.
        """
        with bypass_rls():  # the history of the site belongs to no workspace
            services.change_search_options(space=space, **values)
