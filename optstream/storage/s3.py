"""S3 and what speaks its language, through s3fs: conditional puts (If-None-Match, If-Match).

s3fs alone has a put that creates and none that replaces on a condition, and its reads do not hand out the
tag with the bytes; so these calls are made here, by s3fs' own client, with its credentials and retries.
A put whose answer got lost is tried again by the client and is then refused, for its own first try came
through: False says that something is there, not whose it is.
Packages of the extra `s3` are imported where they are used.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from optstream.storage.store import Store, Stored, no_conditions

REFUSED = (409, 412)
"""Another put of the same object is under way; the condition does not hold."""
NOT_KNOWN = 501
SKEWED = "RequestTimeTooSkewed"
MISSING = ("NoSuchKey", "404")
PART = 2**20


class S3Store(Store):
    """`Store` on S3 and compatible services."""

    def get(self, name: str, largest: int) -> Stored:
        """Return bytes and ETag of one answer; no more than `largest` and one bytes are held."""
        import fsspec.asyn

        async def read() -> Stored:
            response = await self.filesystem._call_s3("get_object", **self._place(name))
            body, parts, length = response["Body"], [], 0
            try:
                while length <= largest and (part := await body.read(min(PART, largest + 1 - length))):
                    parts.append(part)
                    length += len(part)
            finally:
                body.close()
            return Stored(b"".join(parts), response["ETag"])

        with self.in_plain_words(name):
            found: Stored = fsspec.asyn.sync(self.filesystem.loop, read)
        return found

    def for_polars(self, name: str) -> Any:
        """Return the URL: polars reads the columns that it needs, where and as whom s3fs would."""
        import fsspec.asyn

        async def ask() -> dict[str, str]:
            client = await self.filesystem.set_session()
            options = {"aws_endpoint_url": client.meta.endpoint_url, "aws_region": client.meta.region_name}
            options["aws_allow_http"] = str(client.meta.endpoint_url.startswith("http://")).lower()
            found = client._request_signer._credentials
            if self.filesystem.anon or found is None:
                return {**options, "aws_skip_signature": "true"}
            frozen = await found.get_frozen_credentials()
            options["aws_access_key_id"], options["aws_secret_access_key"] = frozen[:2]
            return {**options, **({"aws_session_token": frozen[2]} if frozen[2] else {})}

        with self.in_plain_words(name):
            options = fsspec.asyn.sync(self.filesystem.loop, ask)
        source = f"s3://{self.path(name)}"
        return {"source": source, "storage_options": options, "credential_provider": None}

    def delete(self, name: str) -> None:
        """Delete the object; S3 answers the same whether there was one or not."""
        with self.in_plain_words(name):
            self.filesystem.call_s3("delete_object", **self._place(name))

    def put_new(self, name: str, data: bytes) -> bool:
        return self._put(name, data, IfNoneMatch="*")

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        return self._put(name, data, IfMatch=tag.strip('"') if self.bare_tags else tag)

    def _put(self, name: str, data: bytes, **condition: str) -> bool:
        try:
            with self.in_plain_words(name):
                return self._answered(name, data, condition)
        except FileNotFoundError:
            raise OSError(errno.ENOENT, "there is no such bucket; make it, or correct the URL") from None

    def _answered(self, name: str, data: bytes, condition: dict[str, str]) -> bool:
        try:
            self.filesystem.call_s3("put_object", **self._place(name), Body=data, **condition)
        except OSError as error:
            status, code = _answer(error)
            if status in REFUSED or code in MISSING:
                return False
            if status == NOT_KNOWN:
                raise no_conditions(self.url) from None
            raise
        return True

    def _place(self, name: str) -> dict[str, str]:
        bucket, _, key = self.path(name).partition("/")
        return {"Bucket": bucket, "Key": key}

    @contextmanager
    def in_plain_words(self, name: str) -> Iterator[None]:
        """Raise errors in plain words as `Store` does, for what comes from below s3fs as well; with the
        store's own code, such as SignatureDoesNotMatch.
        """
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError, NoCredentialsError

        code = ""
        try:
            with super().in_plain_words(name):
                try:
                    yield
                except NoCredentialsError:
                    raise PermissionError from None
                except (BotoCoreError, ClientError) as error:
                    code = type(error).__name__
                    raise ConnectionError from None
                except OSError as error:
                    code = _answer(error)[1]
                    raise
        except FileNotFoundError:
            raise
        except OSError as error:
            if code == SKEWED:
                error.strerror = "the store refuses, for this machine's clock is wrong; set it"
            if code.isalnum():
                error.strerror = f"{error.strerror} ({code})"
            raise


def _answer(error: BaseException) -> tuple[int, str]:
    """Return the store's answer behind an error of s3fs: HTTP status and code; 0 and "" without one."""
    response: Any = getattr(error.__cause__, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return int(status), str(response.get("Error", {}).get("Code", ""))
