"""What requests about nodes and edges may say."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import PageParameters, StrictSerializer, TextField
from graph.api.fields import MAX_CURSOR, id_field, labels_field, replace_props_field, strict_field
from graph.keys import MAX_ID_CHARACTERS, MAX_REL_CHARACTERS
from graph.limits import MAX_ALIASES, MAX_NAME_CHARACTERS
from graph.models import MAX_WEIGHT
from graph.reading.resolving import MAX_ID_CHARACTERS as MAX_ASKED_ID
from graph.reading.vertices import KINDS
from graph.services.reading import (
    MAX_PAGE,
)


class NodeParameters(PageParameters, WorkspaceParameters):
    """Which nodes."""

    id = id_field("The node, document or passage that is called so, and no list.", required=False)
    q = TextField(
        required=False,
        max_length=MAX_ASKED_ID,
        help_text="Beginning of a name or id, or something like it: the best `page_size` of them.",
    )
    label = labels_field("Nodes with one of these labels; may be repeated.")  # type: ignore[assignment]
    kind = serializers.MultipleChoiceField(
        choices=KINDS,
        required=False,
        help_text="With `q`: what is looked for. Default: nodes and documents.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        others = sorted({"q", "label", "kind", "cursor", "page_size"} & attrs.keys())
        if "id" in attrs and others:
            raise serializers.ValidationError(
                dict.fromkeys(others, "With `id` one node is read. Leave this out, or the id.")
            )
        if "q" in attrs and "cursor" in attrs:
            problem = "What is found by `q` has no further pages. Ask for more by `page_size`."
            raise serializers.ValidationError({"cursor": problem})
        if "kind" in attrs and "q" not in attrs:
            problem = "This goes with `q`. Lists hold nodes; documents have a list of their own."
            raise serializers.ValidationError({"kind": problem})
        return attrs


class Deletion(WorkspaceParameters):
    """What is to go."""

    id = id_field("Id of the node.")
    preview = serializers.BooleanField(
        default=False, help_text="Only say what would go with it, and delete nothing."
    )


@extend_schema_serializer(component_name="GraphNodeInput")
class NodeBody(StrictSerializer):
    """A node as it is to be."""

    id = TextField(
        max_length=MAX_ID_CHARACTERS,
        help_text="Your own id for it, such as `src:crm:4711` or `ent:person:ada lovelace`.",
    )
    name = TextField(
        required=False,
        allow_blank=True,
        max_length=MAX_NAME_CHARACTERS,
        help_text="As people read it. Default: its id.",
    )
    labels = labels_field("What it is, such as `Person`.")
    props = serializers.DictField(required=False, help_text="JSON object of your own.")
    aliases = serializers.ListField(
        child=TextField(max_length=MAX_NAME_CHARACTERS),
        required=False,
        max_length=MAX_ALIASES,
        help_text="Other names by which texts and questions mean it.",
    )
    replace_props = replace_props_field()


@extend_schema_serializer(component_name="GraphIds")
class IdsBody(StrictSerializer):
    """Nodes by id."""

    ids = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID), min_length=1, max_length=MAX_PAGE
    )
    preview = serializers.BooleanField(
        default=False, help_text="Only say what would go with them, and delete nothing."
    )


class EdgeFilter(PageParameters, WorkspaceParameters):
    """Which edges."""

    cursor = TextField(
        required=False, max_length=MAX_CURSOR, help_text="Where the page begins: see `next`."
    )
    source = id_field("That begin at this node.", required=False)  # type: ignore[assignment]
    rel = TextField(required=False, max_length=MAX_REL_CHARACTERS, help_text="Of this relation.")
    target = id_field("That lead to this node.", required=False)


class EdgeName(WorkspaceParameters):
    """One edge: all three of its names."""

    source = id_field("Where it begins.")  # type: ignore[assignment]
    rel = TextField(max_length=MAX_REL_CHARACTERS, help_text="The relation.")
    target = id_field("Where it leads.")


@extend_schema_serializer(component_name="GraphEdgeInput")
class EdgeBody(StrictSerializer):
    """An edge as it is to be."""

    source = id_field("Where it begins: a node, a document (`doc:…`) or a passage (`chunk:…`).")  # type: ignore[assignment]
    rel = TextField(
        max_length=MAX_REL_CHARACTERS, help_text="What its source is or does, such as `WORKS_AT`."
    )
    target = id_field("Where it leads.")
    weight = serializers.FloatField(
        required=False, min_value=0, max_value=MAX_WEIGHT, help_text="How much it counts: 1."
    )
    props = serializers.DictField(required=False, help_text="JSON object of your own.")
    strict = strict_field()
    replace_props = replace_props_field()
