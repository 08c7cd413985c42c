"""What curators type: checked as the services check it, so that saving cannot be refused."""

import json
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from common.errors import RagsiteError
from graph import limits
from graph.admin.base import said_of, scope_of_row
from graph.extraction.forms import form
from graph.keys import check_id, check_rel, check_writable, names_content
from graph.models import Alias, Edge, Node
from graph.services import get_node


class PropertiesField(forms.JSONField):
    """A JSON object, shown with each property on a line of its own."""

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 6, "spellcheck": "false"})
        help_text = 'A JSON object, such as {"born": 1815}. Empty: none.'
        super().__init__(required=False, widget=widget, help_text=help_text, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False, indent=2) if value else ""
        return value

    def clean(self, value: Any) -> Any:
        props = super().clean(value) or {}
        _check(limits.props_text, props)
        return props


class LabelsField(forms.CharField):
    """Labels, one a line."""

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 2})
        super().__init__(
            required=False, widget=widget, help_text="One a line, such as “Person”.", **kwargs
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = (line.strip() for line in (super().to_python(value) or "").splitlines())
        labels = [line for line in lines if line]
        return _check(limits.check_labels, labels)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool((initial or []) != self.to_python(data))
        except forms.ValidationError:
            return True


def _check(check: Any, value: Any) -> Any:
    try:
        return check(value)
    except RagsiteError as error:
        raise forms.ValidationError(str(error)) from error


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What people say of a node. Its id stays."""

    name = forms.CharField(
        required=False,
        max_length=limits.MAX_NAME_CHARACTERS,
        widget=UnfoldAdminTextInputWidget,
        help_text="As people read it; texts that say it mean the node. Empty: its id.",
    )
    labels = LabelsField()
    props = PropertiesField(label="Properties")

    class Meta:
        model = Node
        fields = ["name", "labels", "props"]

    def clean_name(self) -> str:
        """Without control characters."""
        return str(_check(limits.check_name, self.cleaned_data["name"]))


class NewNodeForm(NodeForm):
    """A node that nothing has the id of yet."""

    key = forms.CharField(
        label="Id",
        strip=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Stays for ever. Usual: “ent:person:ada lovelace”, “src:crm:4711”.",
    )

    class Meta(NodeForm.Meta):
        fields = ["workspace", "key", "name", "labels", "props"]

    def clean_key(self) -> str:
        """An id, and none of a document or passage: those are nodes by themselves."""
        key: str = self.cleaned_data["key"]
        _check(check_id, key)
        if names_content(key):
            raise forms.ValidationError(
                "Documents and passages are nodes by themselves. Let the id begin otherwise."
            )
        return key

    def clean(self) -> dict[str, Any]:
        """Nor means another node."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        workspace, key = given.get("workspace"), given.get("key")
        if workspace and key:
            there = get_node(scope=scope_of_row(Node(workspace=workspace)), id=key)
            if there is not None:
                name = f"“{there.name}”" + ("" if there.id == key else f" ({there.id})")
                self.add_error("key", f"This id is that of {name}. Change that node instead.")
        return given


class EdgeForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """How strong an edge is, and what else is said of it."""

    weight = forms.FloatField(
        initial=1,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="How much it counts: 1 is usual, 0 nothing.",
    )
    props = PropertiesField(label="Properties")

    class Meta:
        model = Edge
        fields = ["weight", "props"]

    def clean_weight(self) -> float:
        """Within its bounds."""
        return float(_check(limits.check_weight, self.cleaned_data["weight"]))


class NewEdgeForm(EdgeForm):
    """An edge between two nodes of one workspace that is not there yet."""

    rel = forms.CharField(
        label="Relation",
        widget=UnfoldAdminTextInputWidget,
        help_text="Such as WORKS_AT. What leads from one node to the other.",
    )

    class Meta(EdgeForm.Meta):
        fields = ["source", "rel", "target", "weight", "props"]

    def clean_rel(self) -> str:
        """A relation's name."""
        return str(_check(check_rel, self.cleaned_data["rel"]))

    def clean(self) -> dict[str, Any]:
        """Not across workspaces, not what documents tell themselves, not twice."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        source, rel, target = (given.get(name) for name in ("source", "rel", "target"))
        if source is None or target is None or rel is None:
            return given
        if source.workspace_id != target.workspace_id:
            self.add_error("target", f"This node is in another workspace than “{source}”.")
        elif Edge.objects.filter(source=source, rel=rel, target=target).exists():
            self.add_error("rel", "This edge is there already. Change it in the list of edges.")
        else:
            try:
                check_writable(source.key, rel, target.key)
            except RagsiteError as error:
                self.add_error(*said_of(error, self.fields))
        return given


class NewAliasForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A name by which texts and questions mean a node."""

    form = forms.CharField(
        label="Name",
        max_length=limits.MAX_NAME_CHARACTERS,
        widget=UnfoldAdminTextInputWidget,
        help_text="However it is written: case, accents, “the” and “’s” make no difference.",
    )

    class Meta:
        model = Alias
        fields = ["node", "form"]

    def clean_form(self) -> str:
        """With a letter or digit."""
        name: str = self.cleaned_data["form"]
        if not form(_check(limits.check_name, name)):
            raise forms.ValidationError("A name has at least one letter or digit.")
        return name

    def clean(self) -> dict[str, Any]:
        """It means no other node of the workspace yet."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        node, name = given.get("node"), given.get("form")
        if node is not None and name:
            there = Alias.objects.filter(workspace=node.workspace_id, form=form(name))
            if (taken := there.select_related("node").first()) is not None:
                self.add_error(
                    "form",
                    f"“{taken.form}” means “{taken.node}” already. Remove that name first, or"
                    " merge the two nodes.",
                )
        return given
