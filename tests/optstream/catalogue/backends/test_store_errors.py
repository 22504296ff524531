"""Errors of a store are reported in our own words: no text of it or its libraries gets out."""

import traceback

import pytest

from optstream.catalogue import check_files, read_published
from optstream.errors import PublicationError
from tests.failing import raising
from tests.optstream.catalogue.conftest import days_in, put, take_back
from tests.optstream.catalogue.folders import DAY, NEXT, s3_folder

pytest.importorskip("s3fs")

from aiobotocore.response import StreamingBody
from aiohttp import ClientPayloadError
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from s3fs.errors import translate_boto_error


def answer(code, status):
    error = {"Code": code, "Message": "the key AKIA-hush does not", "AWSAccessKeyId": "AKIA-hush"}
    document = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    return translate_boto_error(ClientError(document, "GetObject"))


ERRORS = {
    "wrong key": (lambda: answer("SignatureDoesNotMatch", 403), r"credentials.*\(SignatureDoesNotMatch\)"),
    "no rights": (lambda: answer("AccessDenied", 403), r"refuses access.*\(AccessDenied\)"),
    "wrong clock": (lambda: answer("RequestTimeTooSkewed", 403), "for this machine's clock is wrong; set it"),
    "no key": (NoCredentialsError, "refuses access; see the credentials in the environment"),
    "nobody there": (
        lambda: EndpointConnectionError(endpoint_url="https://AKIA-hush@host"),
        r"cannot be reached; see its address in the environment \(EndpointConnectionError\)",
    ),
    "broken": (lambda: answer("InternalError", 500), r"the store refuses \(InternalError\)"),
}


@pytest.fixture
def failing(s3_bucket, monkeypatch):
    """A folder with one day, whose store then fails."""
    folder = s3_folder(s3_bucket)
    put(folder.name, DAY)

    def fail(make_error):
        async def call(*_, **__):
            raise make_error()

        monkeypatch.setattr("s3fs.S3FileSystem._call_s3", call)
        monkeypatch.setattr("s3fs.S3FileSystem.call_s3", raising(make_error()))
        return folder

    return fail


@pytest.mark.parametrize(("make_error", "words"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_to_do_and_repeat_nothing(failing, make_error, words):
    folder = failing(make_error)
    for work in (
        lambda: read_published(folder.name),
        lambda: check_files(folder.name),
        lambda: put(folder.name, NEXT),
        lambda: take_back(folder.name),
    ):
        with pytest.raises(PublicationError, match=words) as caught:
            work()
        assert "hush" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("n_breaks", [2, 100])
def test_an_answer_that_breaks_off_is_asked_for_again(s3_bucket, monkeypatch, n_breaks):
    folder, left = s3_folder(s3_bucket), [ClientPayloadError("hush")] * n_breaks
    put(folder.name, DAY)
    read = StreamingBody.read

    async def breaks_off(body, *amount, **named):
        if left:
            raise left.pop()
        return await read(body, *amount, **named)

    monkeypatch.setattr(StreamingBody, "read", breaks_off)
    if n_breaks == 2:
        assert days_in(folder.name) == [DAY]
    else:
        with pytest.raises(PublicationError, match="cannot be reached"):
            days_in(folder.name)


def test_a_missing_bucket(s3_server):
    with pytest.raises(PublicationError, match="there is no such bucket; make it, or correct the URL"):
        put("s3://no-such-bucket/published", DAY)
    with pytest.raises(PublicationError, match="'s3://no-such-bucket/published' is no published folder"):
        read_published("s3://no-such-bucket/published")


def test_a_store_that_knows_no_conditions(failing):
    folder = failing(lambda: answer("NotImplemented", 501))
    with pytest.raises(PublicationError, match=r"no put here that fails when another was faster"):
        put(folder.name, NEXT)
