"""What a text names: a path, or a plain URL of an object store; never a secret."""

import pytest

from optstream.catalogue import read_published
from optstream.errors import ParameterError, PublicationError
from optstream.storage.store import StoreUrl, locate, name_below


def test_a_url_can_be_extended_and_compared():
    url = locate("s3://bucket/a b/published/")
    assert url == StoreUrl("s3://bucket/a b/published") == locate("s3a://bucket/a b/published")
    assert (url.protocol, url.name, str(url.parent)) == ("s3", "published", "s3://bucket/a b")
    inner = url / "data" / "x.parquet"
    assert str(inner) == "s3://bucket/a b/published/data/x.parquet"
    assert inner.relative_to(url).as_posix() == "data/x.parquet"
    assert inner.is_relative_to(url)
    assert not locate("s3://bucket/a b/published-elsewhere").is_relative_to(url)
    with pytest.raises(ValueError, match="does not lie below"):
        url.relative_to(inner)


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA1234:hush/bucket@host/x",
        "s3://AKIA1234:hush@bucket/x",
        "s3://AKIA1234:hush/x",
        "s3://bucket/x?key=AKIA1234&secret=hush",
        "s3://bucket/x#hush",
        "simplecache::s3://bucket/hush",
        "s3://bucket/x::s3://AKIA1234:hush@other",
        "https://AKIA1234:hush@host/published",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_shown(text):
    with pytest.raises(ParameterError, match="credentials come from the environment") as caught:
        locate(text)
    assert "hush" not in str(caught.value)
    assert "AKIA" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "s3://",
        "s3://a//b",
        "s3://a/../b",
        "s3://a/./b",
        "s3:///a",
        "s3://a\0b",
        "S3://bucket/x",
        "/srv/a://b",
        "file://host/x",
        "file://x",
    ],
)
def test_what_names_nothing_is_refused(text):
    with pytest.raises(ParameterError, match="must be a path, or a plain URL"):
        locate(text)


@pytest.mark.parametrize("folder", ["/srv/dumps", "s3://bucket/dumps"])
def test_the_name_below_a_folder_is_the_same_on_disk_and_in_a_store(folder):
    place = locate(folder) / "region=A" / "date=2016-01-01"
    assert name_below(place, locate(folder)) == "region=A/date=2016-01-01"
    for elsewhere in ("/srv/dump", "s3://bucket/dump", "s3://other/dumps"):
        with pytest.raises(ValueError, match=r"is not in|does not lie below"):
            name_below(place, locate(elsewhere))


def test_a_store_that_nobody_knows_is_refused_with_a_remedy():
    with pytest.raises(PublicationError, match=r"nosuch:// is not a store.*optstream\[s3\]"):
        read_published("nosuch://bucket/published")
