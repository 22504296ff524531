"""What a store must do beside conditional puts: serve forked processes, list whatever others put there."""

import os
import time

import pytest

from optstream.storage.store import locate, open_store
from tests.temporary_s3 import filesystem

LONGEST_READ = 60.0
"""Seconds; a reader that hangs is given up."""


@pytest.fixture
def url(s3_bucket):
    return locate(f"s3://{s3_bucket}/published")


def test_a_forked_child_reads_a_store_that_its_parent_has_used(url):
    assert open_store(url).put_new("a", b"1")
    child = os.fork()
    if child == 0:
        os._exit(0 if open_store(url).get_whole("a").data == b"1" else 1)
    until = time.monotonic() + LONGEST_READ
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)


@pytest.mark.parametrize("odd", ["data//x", "data/../x", "data/./x"])
def test_a_name_that_is_no_path_hides_no_other(url, odd):
    assert open_store(url).put_new("data/a", b"1")
    bucket = url.text.split("/")[2]
    filesystem().call_s3("put_object", Bucket=bucket, Key=f"published/{odd}", Body=b"1")
    assert open_store(url).names_below("data") == [odd, "data/a"]
