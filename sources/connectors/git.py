"""The files of a branch of a git repository, over https or from a path of the server."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import urllib3
from django.conf import settings
from dulwich.client import FetchPackResult, LocalGitClient
from dulwich.errors import GitProtocolError, NotGitRepository
from dulwich.object_store import iter_tree_contents
from dulwich.objects import Blob, Commit
from dulwich.refs import Ref
from dulwich.repo import Repo
from pydantic import Field, SecretStr

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import matches_glob, storable_key, storable_name
from reading.web_fetch import DEFAULT_PORTS
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Glob,
    Item,
    ItemError,
    SourceError,
    check_size,
    local_path,
)
from sources.connectors.git_http import BoundedGitClient, too_much

#: Files and folders of a branch.
MAX_ENTRIES = 200_000
_REGULAR_FILES = frozenset({0o100644, 0o100755})


class GitOptions(ConnectorOptions):
    url: str = Field(
        title=gettext_noop("Address"),
        description=gettext_noop("Such as https://git.example.org/team/handbook."),
    )
    branch: str = Field(
        default="",
        title=gettext_noop("Branch"),
        description=gettext_noop("Empty: the default one."),
    )
    glob: Glob = "**/*"
    username: str = Field(default="", title=gettext_noop("User name"))
    password: SecretStr = Field(default=SecretStr(""), title=gettext_noop("Password or token"))


class Git(Connector):
    """Keeps the newest commit of the branch, without history, in a repository of its own below
    the site's directory; it may be deleted at any time. A file's version is the hash of its bytes,
    so that only what changed is ever fetched."""

    kind = "git"
    label = gettext_noop("Git repository")
    Options: ClassVar[type[ConnectorOptions]] = GitOptions

    def __init__(self, options: GitOptions) -> None:
        self._options = options
        place = hashlib.sha256(f"{options.url} {options.branch}".encode()).hexdigest()[:24]
        self._folder = settings.SOURCES_DIR / f"git-{place}"
        self._repo: Repo | None = None
        self._files: dict[str, bytes] = {}

    def list_items(self) -> Iterator[Item]:
        repo = self._fetch_branch()
        for key, sha in self._files.items():
            blob = repo[sha]
            assert isinstance(blob, Blob)
            yield Item(
                key=key,
                version=sha.decode(),
                name=storable_name(key),
                size=blob.raw_length(),
                url=self._web_address(key),
            )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        repo = self._repo or self._fetch_branch()
        try:
            blob = repo[item.version.encode()]
        except KeyError:
            raise ItemError("The branch has new commits; the next run fetches them.") from None
        assert isinstance(blob, Blob)
        check_size(blob.raw_length(), max_bytes)
        with file.open("wb") as opened:
            opened.writelines(blob.chunked)
        return {}

    def is_gone(self, key: str) -> bool:
        if self._repo is None:
            self._fetch_branch()
        return key not in self._files

    def close(self) -> None:
        if self._repo is not None:
            self._repo.close()

    def _fetch_branch(self) -> Repo:
        """Fetch the newest commit, and read the names and hashes of its files."""
        self._check_address()
        branch = self._options.branch
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            repo = self._repo = Repo(str(self._folder))
        except NotGitRepository:
            repo = self._repo = Repo.init_bare(str(self._folder))
        wanted = Ref(f"refs/heads/{branch}".encode() if branch else b"HEAD")
        fetched = self._fetch_commit(repo, wanted)
        sha = fetched.refs.get(wanted)
        if sha is None:
            message = (
                gettext("{url} has no branch “{branch}”.")
                if branch
                else gettext("{url} has no commits.")
            )
            raise SourceError(
                message.format(url=self._options.url, branch=branch), is_permanent=bool(branch)
            )
        repo.refs[Ref(b"refs/heads/ragsite")] = sha
        commit = repo[sha]
        assert isinstance(commit, Commit)
        self._files = {}
        # Counted, because a folder may be in itself many times over.
        entries = iter_tree_contents(repo.object_store, commit.tree, include_trees=True)
        for count, entry in enumerate(entries):
            if count >= MAX_ENTRIES:
                raise too_much(gettext("{limit} files and folders"), MAX_ENTRIES)
            key = storable_key(entry.path.decode(errors="surrogateescape"))
            if entry.mode in _REGULAR_FILES and matches_glob(key, self._options.glob):
                self._files[key] = entry.sha
        return repo

    def _fetch_commit(self, repo: Repo, wanted: Ref) -> FetchPackResult:
        options = self._options

        def missing(refs: Mapping[Any, Any], depth: int | None = None) -> list[Any]:
            return [refs[name] for name in [wanted] if name in refs and refs[name] not in repo]

        try:
            if urlsplit(options.url).scheme in DEFAULT_PORTS:
                client = BoundedGitClient(
                    options.url,
                    username=options.username,
                    password=options.password.get_secret_value(),
                )
                return client.fetch_newest(repo, missing)
            path = local_path(options.url)
            return LocalGitClient().fetch(path, repo, determine_wants=missing, depth=1)
        except (GitProtocolError, NotGitRepository, urllib3.exceptions.HTTPError, OSError) as error:
            raise SourceError(
                gettext(
                    "{url} cannot be fetched: {reason}. Check the address, and the user name and"
                    " token of a private repository."
                ).format(url=options.url, reason=error or type(error).__name__)
            ) from error

    def _check_address(self) -> None:
        url = urlsplit(self._options.url)
        if url.scheme in DEFAULT_PORTS and url.hostname:
            try:
                _ = url.port
            except ValueError as error:
                raise SourceError(str(error), is_permanent=True) from error
        elif not Path(local_path(self._options.url)).is_absolute():
            raise SourceError(
                gettext(
                    "Enter an address that begins with https://, or an absolute path on the server."
                ),
                is_permanent=True,
            )

    def _web_address(self, key: str) -> str:
        """Where the common hosts show a file; empty for others."""
        url = urlsplit(self._options.url)
        if url.scheme != "https" or url.hostname not in {
            "github.com",
            "gitlab.com",
            "codeberg.org",
        }:
            return ""
        base = self._options.url.removesuffix("/").removesuffix(".git")
        branch = quote(self._options.branch or "HEAD")
        middle = {"github.com": "blob", "gitlab.com": "-/blob", "codeberg.org": "src/branch"}
        return f"{base}/{middle[url.hostname]}/{branch}/{quote(key)}"
