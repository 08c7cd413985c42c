"""Serializers of collections, documents, chunks and runs: first those of answers, then the inputs
of requests (`TextDocumentSerializer`, `FileUploadSerializer`, the filters of lists)."""

import re
from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import ListParameters, WorkspaceParameters
from common.fusion_options import FusionOptions
from common.options import option_fields
from common.options.drf import OptionsSerializer, serializer_field
from common.serializers import MetadataField, ReadOnlyModelSerializer, StrictSerializer
from common.text import pluralized
from common.translation import format_number, gettext
from documents.collection_options import CollectionOptions
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
)
from documents.page_images import DEFAULT_WIDTH, WIDTHS
from documents.run_progress import COUNTERS
from documents.services import MAX_METADATA_CHARACTERS, SyncRefused, SyncResult
from documents.services.model_languages import run_notes
from reading.chunkers.options import ChunkerOptions


class SpaceSerializer(ReadOnlyModelSerializer[EmbeddingSpace]):
    """The model and metric of a collection's vectors."""

    model = serializers.CharField(source="model_name")

    class Meta:
        model = EmbeddingSpace
        fields = ["name", "model", "dimensions", "metric"]


class FusionSerializer(OptionsSerializer):
    """How searches combine lexical and vector results; missing fields have the site's defaults."""

    options = FusionOptions


class CollectionSerializer(ReadOnlyModelSerializer[Collection]):
    """Documents that are chunked, embedded and searched alike."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:collection-detail", lookup_field="slug", help_text="Its address in the API."
    )
    language = serializers.CharField(
        source="default_language",
        help_text="ISO code for its documents. Empty: the language of each document is detected.",
    )
    chunker_options = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The options that were given; the others have the chunker's defaults.",
    )
    space = SpaceSerializer()
    fusion = FusionSerializer()
    document_count = serializers.IntegerField(help_text="Current documents that you may see.")

    class Meta:
        model = Collection
        fields = [
            "slug",
            "url",
            "name",
            "description",
            "language",
            "chunker",
            "chunker_options",
            "graph",
            "space",
            "vectors",
            "automatic_model",
            "reranker",
            "rerank_instruction",
            "fusion",
            "facets",
            "document_count",
            "created_at",
            "updated_at",
        ]


class FailureSerializer(serializers.Serializer[Any]):
    """Why a document or item could not be ingested; null where nothing went wrong."""

    code = serializers.CharField(source="error_code", help_text="Stable and machine-readable.")
    message = serializers.CharField(source="error", help_text="What is wrong and the cure.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, source="*", allow_null=True, read_only=True, **kwargs)

    def to_representation(self, instance: Any) -> Any:
        return super().to_representation(instance) if instance.error_code else None


class DocumentSerializer(ReadOnlyModelSerializer[Document]):
    """One document. Its text is in its chunks."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:document-detail", help_text="Its address in the API."
    )
    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)
    source_url = serializers.CharField(source="url", help_text="Its source on the web.")
    metadata = serializers.DictField()
    duplicate_of = serializers.PrimaryKeyRelatedField[Document](
        read_only=True,
        allow_null=True,
        help_text="The first document of the collection with the same bytes. A document"
        " without chunks is stored only there.",
    )
    error = FailureSerializer(
        help_text="Why its newest ingestion failed. Text of an earlier one stays searchable."
    )

    class Meta:
        model = Document
        fields = [
            "id",
            "url",
            "collection",
            "key",
            "title",
            "source",
            "source_url",
            "media_type",
            "language",
            "metadata",
            "size",
            "source_sha256",
            "version",
            "is_current",
            "duplicate_of",
            "status",
            "error",
            "is_searchable",
            "chunk_count",
            "token_count",
            "created_at",
            "updated_at",
            "indexed_at",
        ]


class ChunkSerializer(ReadOnlyModelSerializer[Chunk]):
    """A passage of a document. `start` and `end` are character offsets into the whole text."""

    heading_path = serializers.ListField(child=serializers.CharField())
    location = serializers.CharField(
        help_text="For people, where it begins: `page 3`, `12:34` of a recording, `Prices!A12`,"
        " `row 7` or nothing."
    )
    metadata = serializers.DictField()

    class Meta:
        model = Chunk
        fields = [
            "id",
            "key",
            "ordinal",
            "text",
            "context",
            "heading_path",
            "summary",
            "start",
            "end",
            "page",
            "location",
            "parent",
            "token_count",
            "language",
            "metadata",
        ]
        extra_kwargs = {
            "context": {"help_text": "Title and headings, indexed together with the text."},
            "language": {"help_text": "Its text search configuration in PostgreSQL."},
        }


class ItemSerializer(ReadOnlyModelSerializer[IngestionItem]):
    """One file of a run and its outcome."""

    document = serializers.PrimaryKeyRelatedField[Document](read_only=True, allow_null=True)
    error = FailureSerializer()

    class Meta:
        model = IngestionItem
        fields = [
            *("id", "name", "size", "state", "error", "document"),
            *("pages_read", "pages_to_read"),
            *("chunks_embedded", "chunks_to_embed"),
        ]


class RunSerializer(ReadOnlyModelSerializer[IngestionRun]):
    """One upload, command or request, and its progress."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:run-detail", help_text="Its address in the API: read it again for progress."
    )
    items_url = serializers.HyperlinkedIdentityField(
        view_name="api:run-items", help_text="Pages of everything in it."
    )
    events_url = serializers.HyperlinkedIdentityField(
        view_name="api:run-events", help_text="Its progress as server-sent events."
    )
    retry_of = serializers.PrimaryKeyRelatedField[IngestionRun](
        read_only=True, allow_null=True, help_text="The run whose failed files this run retries."
    )
    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)
    timings = serializers.DictField(
        child=serializers.FloatField(), help_text="Seconds spent in each stage."
    )
    settled = serializers.IntegerField(help_text="Files that are finished or failed.")
    is_finished = serializers.BooleanField(help_text="Whether the run has ended.")

    class Meta:
        model = IngestionRun
        fields = [
            "id",
            "url",
            "items_url",
            "events_url",
            "retry_of",
            "collection",
            "source",
            "policy",
            "state",
            "is_finished",
            *COUNTERS,
            "timings",
            "started_at",
            "finished_at",
        ]


class RetrySerializer(RunSerializer):
    """The run of a retry, with the failed files that cannot be retried."""

    left_out = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="Names of failed files that are not stored here: upload them again. At most 200.",
    )

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "left_out"]


class RunDetailSerializer(RunSerializer):
    """A run with its files."""

    items = ItemSerializer(
        source="first_items",
        many=True,
        help_text="The first 200 files, failed ones first; `items_url` pages through all.",
    )

    notes = serializers.SerializerMethodField(
        help_text="Sentences for people, once it has ended: on documents in a language that the"
        " collection's model was not made for, with the cure, or on how far they are prepared for"
        " another one."
    )

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "notes", "items"]

    def get_notes(self, run: IngestionRun) -> list[str]:
        return run_notes(run, self.context["request"].user).sentences


#: Keys are indexed, and PostgreSQL limits index rows to about 2,700 bytes.
MAX_KEY_BYTES = 2048
MEDIA_TYPE = re.compile(r"^[\w.+-]+/[\w.+-]+$", re.ASCII)


class CollectionParameter(serializers.Serializer[Any]):
    """The collection of a list's rows."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of a collection."
    )


class DocumentFilter(ListParameters, CollectionParameter):
    """Query parameters of the list of documents."""

    key = serializers.CharField(
        required=False,
        max_length=1024,
        trim_whitespace=False,
        help_text="The caller's own id: with `collection`, at most one document has it.",
    )
    status = serializers.ChoiceField(
        choices=Document.Status.choices,
        required=False,
        help_text="State of the document's newest ingestion.",
    )
    media_type = serializers.CharField(required=False, max_length=100, help_text="`text/markdown`.")
    versions = serializers.ChoiceField(
        choices=["current", "all"],
        default="current",
        help_text="`all` lists superseded versions and versions that are not loaded yet, too.",
    )


class AccessField(serializers.ListField):
    """An access list of a request; null is everybody."""

    def __init__(self, **kwargs: Any) -> None:
        options = {"required": False, "allow_null": True, "max_length": 100, **kwargs}
        super().__init__(child=serializers.CharField(max_length=300), **options)


class DocumentInput(StrictSerializer):
    """Changes of a document's title, metadata and access."""

    title = serializers.CharField(
        required=False,
        max_length=500,
        help_text="The title is part of every passage, so all of them are embedded again.",
    )
    metadata = MetadataField(
        required=False, help_text="The complete metadata: fields that you leave out are removed."
    )
    access = AccessField(
        help_text="Who may see all its versions, including you: members of the workspace by"
        " `user:7`, user name or email address, groups by `group:3` or name. Null: everybody in the"
        " workspace.",
    )


class DocumentDeletion(WorkspaceParameters):
    """Whether all versions are deleted or one."""

    versions = serializers.ChoiceField(
        choices=["all", "this"],
        default="all",
        help_text="`this` deletes a single superseded version.",
    )


class PageImageParameters(WorkspaceParameters):
    """How large the image of a page is."""

    width = serializers.IntegerField(
        min_value=1,
        max_value=WIDTHS[-1],
        default=DEFAULT_WIDTH,
        help_text="Pixels, rounded up to 160, 800, 1200, 1600 or 2400.",
    )


class RunFilter(ListParameters, CollectionParameter):
    """Query parameters of the list of runs."""

    state = serializers.ChoiceField(
        choices=IngestionRun.State.choices, required=False, help_text="State of the run."
    )


class ItemFilter(ListParameters):
    """Query parameters of the list of a run's files."""

    state = serializers.ChoiceField(
        choices=IngestionItem.State.choices, required=False, help_text="State of the file."
    )


class ChunkerOptionsSerializer(OptionsSerializer):
    """Options of the chunker. Each chunker takes only its own; tokens are the model's."""

    options = ChunkerOptions


class CollectionChangeSerializer(OptionsSerializer):
    """Fields of a collection that are set at creation and can be changed later."""

    options = CollectionOptions
    has_defaults = False
    name = serializers.CharField(max_length=200)
    chunker_options = ChunkerOptionsSerializer(required=False)
    graph = serializer_field(
        option_fields(CollectionOptions)["graph"],
        has_default=False,
        choices=Collection.Graph.choices,
    )
    fusion = FusionSerializer(
        required=False, help_text=option_fields(CollectionOptions)["fusion"].description
    )


class NewCollectionSerializer(CollectionChangeSerializer):
    """Fields of a new collection, with its slug."""

    slug = serializers.SlugField(
        required=False, max_length=63, help_text="Its name in addresses. Default: from the name."
    )


class IngestTarget(StrictSerializer):
    """Collection, policy, metadata and access list of an ingestion."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")
    policy = serializers.ChoiceField(
        choices=IngestionRun.Policy.choices,
        default=IngestionRun.Policy.SKIP_IF_UNCHANGED.value,
        help_text="What to do if the key exists. `skip_if_unchanged` replaces a text that"
        " has changed, `overwrite` any text; `new_version` keeps the old text as"
        " a version that can be read, but is not searched.",
    )
    store_once = serializers.BooleanField(
        default=False,
        help_text="A document with the same bytes as another one of the collection becomes"
        " a link to it, so that nothing is embedded or found twice.",
    )
    metadata = MetadataField(
        required=False, help_text="Your own JSON object, returned with every hit."
    )

    access = AccessField(
        help_text="Who may see new documents, including you: members of the workspace by `user:7`,"
        " user name or email address, groups by `group:3` or name. Default: everybody in the"
        " workspace."
        " Existing documents keep their access, and refuse a text that fewer"
        " people may see.",
    )

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if len(str(metadata)) > MAX_METADATA_CHARACTERS:
            problem = f"The metadata may have {MAX_METADATA_CHARACTERS:,} characters."
            raise serializers.ValidationError(problem)
        return metadata


def check_key(key: str) -> None:
    """Raise ValidationError for a key longer than the database index allows."""
    if len(key.encode()) > MAX_KEY_BYTES:
        raise serializers.ValidationError(
            gettext("A key may have at most {limit} bytes. Shorten it.").format(
                limit=format_number(MAX_KEY_BYTES)
            )
        )


class TextDocumentSerializer(IngestTarget):
    """A document given as text."""

    key = serializers.CharField(
        max_length=1024,
        trim_whitespace=False,
        validators=[check_key],
        help_text="Your own id for it. The same key again replaces the document.",
    )
    text = serializers.CharField(trim_whitespace=False)
    title = serializers.CharField(required=False, allow_blank=True, max_length=500)
    media_type = serializers.CharField(
        default="text/plain",
        max_length=100,
        validators=[RegexValidator(MEDIA_TYPE, "A media type looks like “text/markdown”.")],
        help_text="`text/plain`, `text/markdown` or `text/html`.",
    )


class FileUploadSerializer(IngestTarget):
    """Documents given as files. Each one's key is its path, else its name."""

    files = serializers.ListField(
        child=serializers.FileField(max_length=1024, allow_empty_file=True),
        min_length=1,
        max_length=settings.MAX_UPLOAD_FILES,
        help_text="One or more files: repeat the field. A broken file does not affect the others.",
    )
    paths = serializers.ListField(
        child=serializers.CharField(max_length=1024, validators=[check_key]),
        required=False,
        help_text="The files' paths in their folder, as many and in the same order.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        paths = attrs.get("paths")
        if paths and len(paths) != len(attrs["files"]):
            files, named = pluralized(len(attrs["files"]), "file"), pluralized(len(paths), "path")
            problem = f"{files} came with {named}. Send as many."
            raise serializers.ValidationError({"paths": problem})
        return attrs


class DirectoryFields(serializers.Serializer[Any]):
    """A directory of the server, and which files of it."""

    directory = serializers.CharField(
        max_length=1024,
        trim_whitespace=False,
        help_text="Full path of a directory of the server, below one that the operator allows.",
    )
    glob = serializers.CharField(
        default="**/*", max_length=200, help_text="Pattern of the files; `*` never crosses a `/`."
    )


class PageOfTheWebSerializer(IngestTarget):
    """A web page to fetch. Its URL is its key."""

    url = serializers.CharField(max_length=1024, help_text="Begins with `https://` or `http://`.")


class DirectoryOfTheServerSerializer(IngestTarget, DirectoryFields):
    """A directory of the server. Each file's key is its path."""

    metadata = None  # type: ignore[assignment]  # each file has its own


@extend_schema_serializer(deprecate_fields=["force"])
class DirectorySyncSerializer(StrictSerializer, DirectoryFields):
    """A directory to keep the collection in sync with."""

    delete = serializers.BooleanField(
        default=False, help_text="Remove documents whose files are gone."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only report what would be done.")
    allow_empty = serializers.BooleanField(
        default=False, help_text="The directory is supposed to be empty."
    )
    allow_deletions = serializers.BooleanField(
        default=False,
        help_text="Delete more than half of the documents, if so many files are gone.",
    )
    force = serializers.BooleanField(required=False, help_text="Former name of `allow_deletions`.")
    former_names = {"force": "allow_deletions"}


class MoveSerializer(serializers.Serializer[Any]):
    """A renamed file: its path before and after."""

    before = serializers.CharField(source="0")
    after = serializers.CharField(source="1")


class RefusalSerializer(serializers.Serializer[SyncRefused]):
    """Too many deletions, and what allows them."""

    reason = serializers.CharField(help_text="How many documents would be deleted.")
    option = serializers.ChoiceField(
        choices=["allow_empty", "allow_deletions"],
        help_text="The field to set if this is intended.",
    )


def _paths_field(meaning: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning)


class SyncSerializer(serializers.Serializer[SyncResult]):
    """The outcome for the directory's files, each by its relative path."""

    run = RunSerializer(allow_null=True, help_text="The ingestion to watch; null in a dry run.")
    new = _paths_field("Not in the collection before.")
    modified = _paths_field("With other bytes than before, or to be cut in another way.")
    unchanged = _paths_field("As they were.")
    renamed = MoveSerializer(many=True, help_text="Their documents move; nothing is embedded.")
    deleted = _paths_field("Gone from the directory.")
    failed = _paths_field("There, and not to be read. Nothing is concluded of them.")
    retried = _paths_field("Failed before, and tried again.")
    reasons = serializers.DictField(
        child=serializers.CharField(),
        help_text="Why, by path: of `failed`, and of `retried` why they failed before.",
    )
    deletions_applied = serializers.BooleanField(
        help_text="Whether the documents of deleted files were removed."
    )
    refused = RefusalSerializer(
        allow_null=True, help_text="In a dry run: what is refused without `dry_run`."
    )
