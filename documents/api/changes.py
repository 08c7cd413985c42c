"""What changed between two versions of a document, or two documents, as the API shows it."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from accounts.api import WorkspaceParameters
from documents.models import Document
from documents.services.changes import Change, find_changes, in_order, other_document, places_of

MAX_CHANGES = 500


class ChangesParameters(WorkspaceParameters):
    """What a document is compared with."""

    other = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="Id of another version, or of another document of the workspace. Default: the"
        " version before.",
    )


class ChangedParagraphSerializer(serializers.Serializer[Any]):
    """A paragraph in one of the two texts, and the passage that it begins in."""

    text = serializers.CharField()
    start = serializers.IntegerField(help_text="Offset of its first character in the text.")
    chunk = serializers.IntegerField(allow_null=True)
    heading_path = serializers.ListField(child=serializers.CharField())
    location = serializers.CharField(help_text="`page 3`, if known.")


class ChangedValueSerializer(serializers.Serializer[Any]):
    """A number or date before and after."""

    before = serializers.CharField()
    after = serializers.CharField()


class TextChangeSerializer(serializers.Serializer[Any]):
    """A paragraph that was changed, added or removed."""

    kind = serializers.ChoiceField(choices=["changed", "added", "removed"])
    values = ChangedValueSerializer(many=True, help_text="Numbers and dates that changed.")
    before = ChangedParagraphSerializer(allow_null=True)
    after = ChangedParagraphSerializer(allow_null=True)


class TextChangesSerializer(serializers.Serializer[Any]):
    """The changes from `before` to `after`, those of numbers and dates first."""

    before = serializers.IntegerField(help_text="Id of the document or version.")
    after = serializers.IntegerField()
    total = serializers.IntegerField(help_text=f"At most {MAX_CHANGES} are listed.")
    changes = TextChangeSerializer(many=True)


def changes_data(document: Document, other: int | None, *, user: Any) -> Mapping[str, Any]:
    """What `TextChangesSerializer` shows. Raises NotFound."""
    before, after = in_order(document, other_document(document, other, user=user))
    changes = find_changes(before, after)
    shown = changes[:MAX_CHANGES]
    places = places_of(shown)

    def side(change: Change, name: str) -> dict[str, Any] | None:
        paragraph = getattr(change, name)
        if paragraph is None:
            return None
        chunk = paragraph.chunk
        return {
            "text": paragraph.text,
            "start": paragraph.start,
            "chunk": chunk.pk if chunk else None,
            "heading_path": chunk.heading_path if chunk else [],
            "location": places.get(chunk.pk, "") if chunk else "",
        }

    return {
        "before": before.pk,
        "after": after.pk,
        "total": len(changes),
        "changes": [
            {
                "kind": change.kind,
                "values": [{"before": old, "after": new} for old, new in change.values],
                "before": side(change, "before"),
                "after": side(change, "after"),
            }
            for change in shown
        ],
    }
