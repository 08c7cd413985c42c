"""Who may see a document of a source: by rules of its folders, by its readers at the source, or all
alike. Begin with `AccessOf`.
"""

from collections import defaultdict

from accounts.groups import groups_by_external_name
from accounts.models import Membership, Role
from documents.ingestion.sources import matches_glob
from sources.models import DataSource


class AccessOf:
    """The access lists of a source's documents as its settings, groups and members are now."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._principals: dict[str, set[str]] = defaultdict(set)
        self._nobody: list[str] = []
        if not source.maps_readers:
            return
        for name, groups in groups_by_external_name(workspace=source.workspace).items():
            self._principals[name] |= {group.principal for group in groups}
        owners = set()
        for member in Membership.objects.filter(workspace=source.workspace_id):
            for name in member.external_names:
                self._principals[name.casefold()].add(f"user:{member.user_id}")
            if member.role == Role.OWNER or member.user_id == source.created_by_id:
                owners.add(f"user:{member.user_id}")
        self._nobody = sorted(owners)

    def item(self, name: str, readers: list[str] | None) -> list[str] | None:
        """The access list of the document of this path, which these may read at the source; None is
        everybody in the workspace.

        Readers that are nobody here give no access; where none is anybody, the owners of the
        workspace and who made the source see it.
        """
        for rule in self._source.access_rules:
            if matches_glob(name, rule["glob"]):
                found: list[str] | None = rule["access"]
                return found
        if not self._source.maps_readers:
            return self._source.access
        known = [self._principals.get(reader.casefold(), set()) for reader in readers or ()]
        return sorted(set().union(*known)) or self._nobody

    @property
    def state(self) -> str:
        """Differs where any list may."""
        names = sorted((name, sorted(each)) for name, each in self._principals.items())
        source = self._source
        return repr((source.access, source.access_rules, source.maps_readers, names, self._nobody))
