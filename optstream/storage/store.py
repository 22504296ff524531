"""One folder of an object store, through fsspec: reading from any, writing where puts can be conditional."""

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from optstream.errors import ParameterError, PublicationError

# The name of a folder or a file: a path of this machine, or the URL of an object store.

_PROTOCOL = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"[^/:]*(:[0-9]{1,5})?(/|\Z)")
_LEGAL = "must be a path, or a plain URL such as s3://bucket/folder"


@dataclass(frozen=True, order=True)
class StoreUrl:
    """A folder or an object of a store, "s3://bucket/published": text that `/` extends as it does a path."""

    text: str

    @property
    def protocol(self) -> str:
        return self.text.partition("://")[0]

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> "StoreUrl":
        return StoreUrl(self.text.rpartition("/")[0])

    def __truediv__(self, name: str) -> "StoreUrl":
        return StoreUrl(f"{self.text}/{name}")

    def __str__(self) -> str:
        return self.text

    def is_relative_to(self, other: "StoreUrl") -> bool:
        return f"{self.text}/".startswith(f"{other.text}/")


Location = Path | StoreUrl


def locate(place: Location | str) -> Location:
    """Return what a text names, a path or the URL of an object store; s3a:// becomes s3://, file:// a path.
    ParameterError for a URL with a user, password or query never shows it."""
    if not isinstance(place, str):
        return place
    if "://" not in place:
        return Path(place)
    protocol, _, rest = place.partition("://")
    # a key may hold a "/": so whatever comes before an "@" may be one
    if any(mark in place for mark in ("@", "?", "#", "\\", "::")) or not _HOST.match(rest):
        raise ParameterError(
            f"{_LEGAL}, without user, password, query or chain (not shown: it may hold a secret); "
            "credentials come from the environment, as fsspec and the store's own tools read them "
            "(AWS_ACCESS_KEY_ID, AWS_PROFILE, …)"
        )
    if protocol == "file":
        parsed = urlsplit(place)
        path = unquote(parsed.path)
        if parsed.netloc or not path.startswith("/") or "\0" in path:
            raise ParameterError(f"{_LEGAL}; a file:// URL has three slashes and an absolute path")
        return Path(path)
    parts = rest.rstrip("/").split("/")
    well_named = _PROTOCOL.fullmatch(protocol) and rest.isprintable()
    if not well_named or not all(parts) or {".", ".."} & set(parts):
        raise ParameterError(
            f"{_LEGAL}: its protocol in small letters, its parts neither empty nor '.' nor '..'"
        )
    protocol = "s3" if protocol == "s3a" else protocol  # one store, and places are compared by their text
    return StoreUrl(f"{protocol}://{'/'.join(parts)}")


def name_below(place: Location, folder: Location) -> str:
    """Return the name of a place below a folder. Raises ValueError where it is elsewhere."""
    if isinstance(place, StoreUrl) and isinstance(folder, StoreUrl) and place.is_relative_to(folder):
        return place.text[len(folder.text) + 1 :] or "."
    if isinstance(place, Path) and isinstance(folder, Path):
        return place.relative_to(folder).as_posix()
    raise ValueError(f"{place} does not lie below {folder}")


REASONS: dict[type[OSError], str] = {
    PermissionError: "the store refuses access; see the credentials in the environment, and their rights",
    TimeoutError: "the store does not answer",
    ConnectionError: "the store cannot be reached; see its address in the environment",
    OSError: "the store refuses",
}
SKEWED = "RequestTimeTooSkewed"
WRONG_CLOCK = "the store refuses, for this machine's clock is wrong; set it"
ANY = 2**62  # bytes: more than any object has
AT_ONCE = 2**23  # bytes of one request while an object is read from end to end


@dataclass(frozen=True)
class Stored:
    """An object's bytes and its tag, which is another whenever the bytes are; "" in a read-only store."""

    data: bytes = field(repr=False)
    tag: str = ""


class Store:
    """Objects below one URL, by their names relative to it. Reads are of what was put last. OSError is in our
    own words: messages of stores and their libraries may hold parts of credentials."""

    bare_tags = False  # whether conditions name tags without the quotes that they are given with

    def __init__(self, url: StoreUrl, filesystem: Any) -> None:
        from fsspec.core import strip_protocol

        self.url, self.filesystem = url, filesystem
        self._root: str = strip_protocol(url.text)

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def get(self, name: str, largest: int = ANY) -> Stored:
        """Return an object; of one that is longer than `largest` bytes, one byte more than that."""
        with self.opened(name) as file:
            return Stored(file.read(largest + 1))

    def is_object(self, name: str) -> bool:
        try:
            return bool(self.facts(name)["type"] == "file")
        except FileNotFoundError:
            return False

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """An object to be read in parts, all from the same one."""
        path = self.path(name)
        with self.in_plain_words(name), self.filesystem.open(path, "rb", block_size=AT_ONCE) as file:
            yield file

    def facts(self, name: str) -> Mapping[str, Any]:
        """Return what the store says of an object without reading it: size (bytes), and its tag or times."""
        with self.in_plain_words(name):
            found: dict[str, Any] = self.filesystem.info(self.path(name))
        return found

    def list_folder(self) -> dict[str, int | None]:
        """Return the names in the folder itself, with the bytes of each that is an object."""
        try:
            with self.in_plain_words(""):
                found = self.filesystem.ls(self._root, detail=True)
        except FileNotFoundError:
            return {}
        # some tools mark a folder by an empty object, whose name ends in "/"
        named = [(entry["name"].removeprefix(f"{self._root}/"), entry) for entry in found]
        return {
            name.rstrip("/"): int(entry["size"]) if entry["type"] == "file" and name[-1] != "/" else None
            for name, entry in named
            if name.strip("/")
        }

    def for_polars(self, name: str) -> Any:
        """Return what polars scans, and how: here the bytes, for it knows not this kind of store."""
        return {"source": io.BytesIO(self.get(name).data)}

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, rising; none where there are none."""
        try:
            with self.in_plain_words(folder):
                found = self.filesystem.find(self.path(folder))
        except FileNotFoundError:
            return []
        return sorted(name.removeprefix(f"{self._root}/") for name in found)

    def delete(self, name: str) -> None:
        """Remove an object; one that is gone already is no error."""
        raise no_conditions(self.url)

    @contextmanager
    def in_plain_words(self, name: str) -> Iterator[None]:
        """Let nothing out but FileNotFoundError and OSError, in our own words with the store's code."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", name) from None
        except OSError as error:
            kind, (_, code) = next(one for one in REASONS if isinstance(error, one)), _answer(error)
            words = WRONG_CLOCK if code == SKEWED else REASONS[kind]
            raise kind(errno.EIO, f"{words} ({code})" if code.isalnum() else words) from None

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object where there is none. Returns False, with nothing written, if one may be there."""
        return self._put(name, data, IfNoneMatch="*")

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        """Replace the object of this tag. Returns False, with nothing written, if another may be there."""
        return self._put(name, data, IfMatch=tag.strip('"') if self.bare_tags else tag)

    def _put(self, name: str, data: bytes, **condition: str) -> bool:
        raise no_conditions(self.url)


def _answer(error: BaseException) -> tuple[int, str]:
    """Return the HTTP status and the store's code behind an error, or 0 and the kind of what is behind it."""
    cause: Any = error.__cause__
    response = getattr(cause, "response", None)
    if not isinstance(response, Mapping):
        return 0, "" if cause is None else type(cause).__name__
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return int(status), str(response.get("Error", {}).get("Code", ""))


def no_conditions(url: StoreUrl) -> PublicationError:
    return PublicationError(
        f"{url.protocol}:// has no put here that fails when another was faster, so two runs could lose each "
        "other's days: publish to s3:// (AWS, or a store that enforces If-None-Match and If-Match as it "
        "does), or to a local folder, and copy that one"
    )


# S3 and what speaks its language, through s3fs: conditional puts (If-None-Match, If-Match).
#
# s3fs alone has a put that creates and none that replaces on a condition, and its reads do not hand out the
# tag with the bytes; so these calls are made here, by s3fs' own client, with its credentials and retries.
# A put whose answer got lost is tried again by the client and is then refused, for its own first try came
# through: False says that something is there, not whose it is.
# Packages of the extra `s3` are imported where they are used.

REFUSED = (409, 412)  # another put of the same object is under way; the condition does not hold
NOT_KNOWN = 501
MISSING = ("NoSuchKey", "404")
PART = 2**20
MOST_READS = 3


class S3Store(Store):
    """`Store` on S3 and compatible services."""

    def get(self, name: str, largest: int = ANY) -> Stored:
        """Return bytes and ETag of one answer, a new one where it breaks off; no more than `largest` and one
        bytes are held."""
        import fsspec.asyn
        from aiohttp import ClientPayloadError

        async def read(body: Any) -> bytes:
            parts, length = [], 0
            try:
                while length <= largest and (part := await body.read(min(PART, largest + 1 - length))):
                    parts.append(part)
                    length += len(part)
            finally:
                body.close()
            return b"".join(parts)

        with self.in_plain_words(name):
            for _ in range(MOST_READS):
                response = self.filesystem.call_s3("get_object", **self._place(name))
                with suppress(ClientPayloadError):
                    data = fsspec.asyn.sync(self.filesystem.loop, read, response["Body"])
                    return Stored(data, response["ETag"])
            raise ConnectionError

    def for_polars(self, name: str) -> Any:
        """Return the URL: polars reads the columns that it needs, where and as whom s3fs would."""
        import fsspec.asyn

        filesystem = self.filesystem
        with self.in_plain_words(name):
            client = filesystem.connect()
            key = [filesystem.key, filesystem.secret, filesystem.token]
            if not filesystem.key:
                found = fsspec.asyn.sync(filesystem.loop, filesystem.session.get_credentials)
                key = list(fsspec.asyn.sync(filesystem.loop, found.get_frozen_credentials)) if found else []
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        options = {name: part for name, part in zip(names, key, strict=False) if part}
        if filesystem.anon or not options:
            options = {"aws_skip_signature": "true"}
        options |= {"aws_endpoint_url": client.meta.endpoint_url, "aws_region": client.meta.region_name}
        options["aws_allow_http"] = str(client.meta.endpoint_url.startswith("http://")).lower()
        source = f"s3://{self.path(name)}"
        return {"source": source, "storage_options": options, "credential_provider": None}

    def delete(self, name: str) -> None:
        """Delete the object; S3 answers the same whether there was one or not."""
        with self.in_plain_words(name):
            self.filesystem.call_s3("delete_object", **self._place(name))

    def _put(self, name: str, data: bytes, **condition: str) -> bool:
        try:
            with self.in_plain_words(name):
                try:
                    self.filesystem.call_s3("put_object", **self._place(name), Body=data, **condition)
                except OSError as error:
                    status, code = _answer(error)
                    if status in REFUSED or code in MISSING:
                        return False
                    if status == NOT_KNOWN:
                        raise no_conditions(self.url) from None
                    raise
        except FileNotFoundError:
            raise OSError(errno.ENOENT, "there is no such bucket; make it, or correct the URL") from None
        return True

    def _place(self, name: str) -> dict[str, str]:
        bucket, _, key = self.path(name).partition("/")
        return {"Bucket": bucket, "Key": key}

    @contextmanager
    def in_plain_words(self, name: str) -> Iterator[None]:
        """Raise errors as `Store` does, also those of what is below s3fs."""
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError, NoCredentialsError

        with super().in_plain_words(name):
            try:
                yield
            except NoCredentialsError:
                raise PermissionError from None
            except (BotoCoreError, ClientError) as error:
                raise ConnectionError from error


# The store that a URL names, and the connections of this process.

KINDS: dict[str, type[Store]] = {"s3": S3Store}
"""Protocols whose puts can be conditional; of any other, objects are read alone."""
INSTALL = "install what reaches it: pip install 'optstream[s3]' for s3://"


def open_store(url: StoreUrl) -> Store:
    """Return the store of a URL. Raises PublicationError for a protocol not known, or not installed."""
    return KINDS.get(url.protocol, Store)(url, _connected(url.protocol, os.getpid()))


@lru_cache
def _connected(protocol: str, _process: int) -> Any:
    """Return fsspec's file system, one a process, without a cache. Raises PublicationError without any."""
    import fsspec

    try:
        return fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        raise PublicationError(f"{protocol}:// is not a store that can be reached here; {INSTALL}") from error
