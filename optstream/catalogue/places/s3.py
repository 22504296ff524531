"""S3 and what speaks its language, through s3fs: conditional puts (If-None-Match, If-Match).

s3fs alone has a put that creates and none that replaces on a condition, and its reads do not hand out the
tag with the bytes; so the two calls are made here, by s3fs' own client, with its credentials and retries.
A put that was answered too late is tried again by the client and is then refused, for its own first try came
through: False says that something is there, not whose it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from optstream.catalogue.places.store import Store, Stored, _no_conditions, in_plain_words

REFUSED = (409, 412)
"""Another put of the same object is under way; the condition does not hold."""
NOT_KNOWN = 501
MISSING = 404


class S3Store(Store):
    """See `Store`."""

    def get(self, name: str, largest: int) -> Stored:
        import fsspec.asyn

        async def read() -> Stored:
            response = await self.filesystem._call_s3("get_object", **self._place(name))
            async with response["Body"] as body:
                # a bound on what is held, whatever the store says of the length
                data = await body.read(largest + 1)
            return Stored(data, response["ETag"])

        with _in_plain_words(name):
            found: Stored = fsspec.asyn.sync(self.filesystem.loop, read)
        return found

    def delete(self, name: str) -> None:
        with _in_plain_words(name):
            self.filesystem.call_s3("delete_object", **self._place(name))

    def put_new(self, name: str, data: bytes) -> bool:
        return self._put(name, data, IfNoneMatch="*")

    def put_instead(self, name: str, data: bytes, tag: str) -> bool:
        return self._put(name, data, IfMatch=tag)

    def _put(self, name: str, data: bytes, **condition: str) -> bool:
        try:
            with _in_plain_words(name):
                try:
                    self.filesystem.call_s3("put_object", **self._place(name), Body=data, **condition)
                except OSError as error:
                    status, code = _answer(error)
                    if status in REFUSED or (status == MISSING and code == "NoSuchKey"):
                        return False
                    if status == NOT_KNOWN:
                        raise _no_conditions(self.url) from None
                    raise
        except FileNotFoundError:
            raise OSError(2, "there is no such bucket; make it, or correct the URL") from None
        return True

    def _place(self, name: str) -> dict[str, str]:
        bucket, _, key = self.path(name).partition("/")
        return {"Bucket": bucket, "Key": key}


def _answer(error: BaseException) -> tuple[int, str]:
    """The store's answer behind an error of s3fs: HTTP status and code; 0 without one."""
    response: Any = getattr(error.__cause__, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return int(status), str(response.get("Error", {}).get("Code", ""))


@contextmanager
def _in_plain_words(name: str) -> Iterator[None]:
    """As `in_plain_words`, for what comes from below s3fs as well."""
    from aiohttp import ClientError
    from botocore.exceptions import BotoCoreError, NoCredentialsError

    with in_plain_words(name):
        try:
            yield
        except NoCredentialsError:
            raise PermissionError from None
        except (BotoCoreError, ClientError) as error:
            raise ConnectionError(type(error).__name__) from None
