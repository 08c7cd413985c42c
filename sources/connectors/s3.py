"""A bucket of Amazon S3, or of a store that speaks its protocol: MinIO, Ceph, R2 and others."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from botocore import UNSIGNED
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.config import Config
from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.loaders import Loader, create_loader
from botocore.session import Session
from pydantic import Field, SecretStr

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import matches_glob
from documents.ingestion.web_pages import SUFFIX_BY_MEDIA_TYPE
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Glob,
    Item,
    ItemError,
    ItemGone,
    SourceError,
    check_size,
)
from sources.connectors.http import HttpClient

PAGE_OBJECTS = 1000
#: Of an answer that says why there is no object.
MAX_ERROR_BYTES = 64 * 1024
#: Where a store has none; Amazon tells where its buckets are.
DEFAULT_REGION = "us-east-1"
_NOT_FOUND = frozenset({"404", "NoSuchKey", "NotFound"})
_WRONG_KEYS = frozenset(
    {
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"),
        *("TokenRefreshRequired", "AccountProblem", "NotSignedUp", "InvalidSecurity"),
    }
)
_OTHER_REGION = frozenset(
    {
        *("PermanentRedirect", "TemporaryRedirect", "Redirect", "301", "302", "307"),
        *("AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
    }
)


class S3Options(ConnectorOptions):
    bucket: str = Field(title=gettext_noop("Bucket"))
    prefix: str = Field(
        default="",
        title=gettext_noop("Folder"),
        description=gettext_noop("In the bucket, such as team/handbook. Empty: all of it."),
    )
    glob: Glob = "**/*"
    endpoint: str = Field(
        default="",
        title=gettext_noop("Address of the store"),
        description=gettext_noop("Such as https://minio.example.org. Empty: Amazon S3."),
    )
    region: str = Field(
        default="",
        title=gettext_noop("Region"),
        description=gettext_noop("Such as eu-central-1. Empty if the store has no regions."),
    )
    addressing: Literal["auto", "path", "virtual"] = Field(
        default="auto",
        title=gettext_noop("Bucket in the address"),
        description=gettext_noop(
            "auto works for Amazon and most stores. path: after the address; virtual:"
            " before the host name."
        ),
    )
    access_key: str = Field(
        default="",
        title=gettext_noop("Access key"),
        description=gettext_noop("Use a key that can only list and read. Empty: a public bucket."),
    )
    secret_key: SecretStr = Field(default=SecretStr(""), title=gettext_noop("Secret key"))


@cache  # reading what it knows of S3 takes half a second
def _data_loader() -> Loader:
    return create_loader()


class S3(Connector):
    """Botocore builds, signs and reads the requests; `HttpClient` sends them, so that only
    addresses are reached that may be, and the waits and bounds are those of other sources."""

    kind = "s3"
    label = gettext_noop("S3 bucket (Amazon, MinIO, Ceph)")
    Options: ClassVar[type[ConnectorOptions]] = S3Options

    def __init__(self, options: S3Options) -> None:
        self._options = options
        folder = options.prefix.strip("/")
        self._prefix = f"{folder}/" if folder else ""
        self._http = HttpClient()
        #: Where the body of the request in hand goes, and how large it may be.
        self._download: tuple[Path, int] | None = None

    def list_items(self) -> Iterator[Item]:
        with self._errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._options.bucket,
                Prefix=self._prefix,
                PaginationConfig={"PageSize": PAGE_OBJECTS},
            )
            for page in pages:
                for entry in page.get("Contents", ()):
                    key = entry["Key"].removeprefix(self._prefix)
                    # Folders are objects without bytes whose names end with a slash.
                    if not key or key.endswith("/") or "\0" in key:
                        continue
                    if any(part.startswith(".") for part in key.split("/")):
                        continue
                    if matches_glob(key, self._options.glob):
                        size, modified = entry.get("Size"), entry.get("LastModified")
                        changed = modified.timestamp() if modified else ""
                        yield Item(
                            key=key,
                            version=entry.get("ETag", "").strip('"') or f"{size}-{changed}",
                            name=key,
                            size=size,
                            modified_at=modified,
                        )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        check_size(item.size, max_bytes)
        self._download = file, max(max_bytes, MAX_ERROR_BYTES)
        try:
            with self._errors(item):
                answer = self._client.get_object(
                    Bucket=self._options.bucket, Key=self._prefix + item.key
                )
        finally:
            self._download = None
        check_size(file.stat().st_size, max_bytes)
        _unpack(file, str(answer.get("ContentEncoding", "")), max_bytes=max_bytes)
        suffix = SUFFIX_BY_MEDIA_TYPE.get(answer.get("ContentType", "").partition(";")[0])
        if suffix and not PurePosixPath(item.name).suffix:
            return {"file_name": item.name + suffix}
        return {}

    def is_gone(self, key: str) -> bool:
        bucket = self._options.bucket
        try:
            self._client.head_object(Bucket=bucket, Key=self._prefix + key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                return False
        except BotoCoreError:
            return False
        else:
            return False
        # A bucket that is away answers the same for all that was in it.
        try:
            self._client.list_objects_v2(Bucket=bucket, Prefix=self._prefix, MaxKeys=1)
        except (ClientError, BotoCoreError):
            return False
        return True

    def close(self) -> None:
        self._http.close()

    @cached_property
    def _client(self) -> BaseClient:
        options = self._options
        secret = options.secret_key.get_secret_value()
        if bool(options.access_key) != bool(secret):
            raise SourceError(
                gettext(
                    "Give both the access key and the secret key, or neither for a public bucket."
                ),
                is_permanent=True,
            )
        # Nothing of this server's own environment, files or role: its rights are not the source's.
        session = Session(
            session_vars={
                name: (None, None, default, convert)
                for name, (_, _, default, convert) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
            }
            | dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
        )
        session.register_component("data_loader", _data_loader())
        addressing = options.addressing
        if addressing == "auto" and options.endpoint:
            addressing = "path"
        with self._errors():
            client: BaseClient = session.create_client(
                "s3",
                region_name=options.region or DEFAULT_REGION,
                endpoint_url=options.endpoint or None,
                aws_access_key_id=options.access_key or None,
                aws_secret_access_key=secret or None,
                config=Config(
                    signature_version="s3v4" if secret else UNSIGNED,
                    s3={"addressing_style": addressing},
                    retries={"total_max_attempts": 1},
                    # Stores that are not Amazon's know no other checksums.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    ignore_configured_endpoint_urls=True,
                    proxies={},
                ),
            )
        client.meta.events.register("before-send.s3", self._send)
        return client

    def _send(self, request: AWSPreparedRequest, **context: Any) -> AWSResponse:
        """Send what botocore has signed, and give it the answer. Redirections are its business."""
        headers = {
            name: value.decode() if isinstance(value, bytes) else str(value)
            for name, value in request.headers.items()
        }
        options: dict[str, Any] = {"headers": headers, "follow_redirects": False}
        if self._download is None:
            answer = self._http.request(request.method, request.url, **options)
            body = answer.content
        else:
            file, max_bytes = self._download
            answer = self._http.download(request.url, file, max_bytes=max_bytes, **options)
            body = b"" if answer.is_success else file.read_bytes()
        if answer.is_redirect and "x-amz-bucket-region" not in answer.headers:
            # Botocore would ask where to go, again and again.
            raise SourceError(
                gettext(
                    "The store redirects {place} to another address. Set its address and region."
                ).format(place=self._place),
                is_permanent=True,
            )
        return AWSResponse(request.url, answer.status_code, answer.headers, _Body(body))

    @contextmanager
    def _errors(self, item: Item | None = None) -> Iterator[None]:
        """Errors of the store as SourceError, and those of one object as ItemError."""
        try:
            yield
        except ClientError as error:
            raise self._explained(error, item) from error
        except ParamValidationError as error:
            reason = f"“{self._options.bucket}” is no name of a bucket. Correct it."
            raise SourceError(reason, is_permanent=True) from error
        except (BotoCoreError, ValueError) as error:
            reason = f"{self._place} cannot be read: {error}. Check its address and name."
            raise SourceError(reason, is_permanent=True) from error

    def _explained(self, error: ClientError, item: Item | None) -> SourceError | ItemError:
        told = error.response.get("Error", {})
        code, message = str(told.get("Code", "")), str(told.get("Message", ""))[:200].strip(" .")
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        is_permanent = True
        if code == "RequestTimeTooSkewed":
            reason = gettext("The clocks of the store and this server differ too much. Set them.")
            is_permanent = False
        elif code == "NoSuchBucket":
            reason = gettext(
                "{place} does not exist. Check its name, the address and the region."
            ).format(place=self._place)
        elif code in _WRONG_KEYS:
            reason = gettext(
                "The store refuses the keys ({code}). Check access key and secret key."
            ).format(code=code)
        elif code in _OTHER_REGION or status in {301, 302, 307, 308}:
            headers = error.response["ResponseMetadata"]["HTTPHeaders"]
            region = told.get("Region") or headers.get("x-amz-bucket-region")
            reason = (
                gettext("{place} is in another region. Set the region to {region}.")
                if region
                else gettext("{place} is in another region. Set its region and address.")
            ).format(place=self._place, region=region)
        elif status == 429 or status >= 500:
            reason = gettext(
                "The store answers {status}: {message}. The next run tries again."
            ).format(status=code or status, message=message)
            is_permanent = False
        elif item is None:
            reason = gettext(
                "{place}: the store answers {status} ({message}). The keys need the rights to list"
                " and to read it."
            ).format(place=self._place, status=code or status, message=message)
            is_permanent = status in {400, 401, 403}
        else:
            return _item_error(item, code or str(status), message)
        return SourceError(reason, is_permanent=is_permanent)

    @property
    def _place(self) -> str:
        return gettext("Bucket “{bucket}” at {endpoint}").format(
            bucket=self._options.bucket, endpoint=self._options.endpoint or "Amazon S3"
        )


def _item_error(item: Item, code: str, message: str) -> ItemError:
    if code in _NOT_FOUND:
        return ItemGone(f"{item.name} no longer exists.")
    if code == "InvalidObjectState":
        return ItemError("It is archived. Restore it in the store, then retry.")
    return ItemError(
        f"The store answers {code}: {message}. The keys need the right to read it, and to decrypt"
        " it if it is encrypted."
    )


class _Body(BytesIO):
    """A body as botocore reads it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def _unpack(file: Path, encoding: str, *, max_bytes: int) -> None:
    """Unpack a file that is stored packed, as such for web sites are. Raises ItemError."""
    packed = {each.strip().lower() for each in encoding.split(",")}
    packed -= {"", "identity", "aws-chunked"}
    if not packed:
        return
    if packed != {"gzip"}:
        raise ItemError(f"It is compressed with {encoding[:40]}. Use gzip or no compression.")
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    plain = file.with_name(f"{file.name}.plain")
    with file.open("rb") as opened, plain.open("wb") as target:
        try:
            while piece := unpacking.unconsumed_tail or opened.read(64 * 1024):
                target.write(unpacking.decompress(piece, 1024 * 1024))
                check_size(target.tell(), max_bytes)
        except zlib.error as error:
            raise ItemError("It is marked as gzip and is not. Store it again.") from error
    plain.replace(file)
