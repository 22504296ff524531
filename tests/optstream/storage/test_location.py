"""Paths and URLs of folders, and files in stores."""

import os
import time

import pytest

from optstream.catalogue import read_published
from optstream.errors import ParameterError, PublicationError
from optstream.storage.store import StoreUrl, locate, name_below, open_store
from tests.servers import filesystem


def test_a_url_can_be_extended_and_compared():
    url = locate("s3://bucket/a b/published/")
    assert url == StoreUrl("s3://bucket/a b/published") == locate("s3a://bucket/a b/published")
    assert (url.protocol, url.name, str(url.parent)) == ("s3", "published", "s3://bucket/a b")
    assert str(url / "data" / "x.parquet") == "s3://bucket/a b/published/data/x.parquet"


SECRET = (
    "s3://AKIA1234:hush/bucket@host/x",
    "s3://AKIA1234:hush@bucket/x",
    "s3://AKIA1234:hush/x",
    "s3://bucket/x?key=AKIA1234&secret=hush",
    "s3://bucket/x#hush",
    "simplecache::s3://bucket/hush",
    "s3://bucket/x::s3://AKIA1234:hush@other",
    "https://AKIA1234:hush@host/published",
)
NOTHING = (
    *("s3://", "s3://a//b", "s3://a/../b", "s3://a/./b", "s3:///a", "s3://a\0b", "S3://bucket/x"),
    *("/srv/a://b", "file://host/x", "file://x"),
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        *((text, "credentials come from the environment") for text in SECRET),
        *((text, "must be a path, or a plain URL") for text in NOTHING),
    ],
)
def test_what_is_no_plain_url_is_refused_and_no_credentials_are_shown(text, rule):
    with pytest.raises(ParameterError, match=rule) as caught:
        locate(text)
    assert "hush" not in str(caught.value)
    assert "AKIA" not in str(caught.value)


@pytest.mark.parametrize("folder", ["/srv/dumps", "s3://bucket/dumps"])
def test_the_name_below_a_folder_is_the_same_on_disk_and_in_a_store(folder):
    place = locate(folder) / "region=A" / "date=2016-01-01"
    assert name_below(place, locate(folder)) == "region=A/date=2016-01-01"
    for elsewhere in ("/srv/dump", "s3://bucket/dump", "s3://bucket/dumps/region=B", "s3://other/dumps"):
        with pytest.raises(ValueError, match=r"is not in|does not lie below"):
            name_below(place, locate(elsewhere))


def test_a_store_that_nobody_knows_is_refused_with_a_remedy():
    with pytest.raises(PublicationError, match=r"nosuch:// is not a store.*optstream\[s3\]"):
        read_published("nosuch://bucket/published")


@pytest.fixture
def url(s3_bucket):
    return locate(f"s3://{s3_bucket}/published")


def test_a_forked_child_reads_a_store_that_its_parent_has_used(url):
    assert open_store(url).put_new("a", b"1")
    child = os.fork()
    if child == 0:
        os._exit(0 if open_store(url).get("a").data == b"1" else 1)
    until = time.monotonic() + 60.0  # a reader that hangs is given up
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)


@pytest.mark.parametrize("odd", ["data//x", "data/../x", "data/./x"])
def test_a_name_that_is_no_path_hides_no_other(url, odd):
    assert open_store(url).put_new("data/a", b"1")
    filesystem().call_s3("put_object", Bucket=url.text.split("/")[2], Key=f"published/{odd}", Body=b"1")
    assert open_store(url).names_below("data") == [odd, "data/a"]
