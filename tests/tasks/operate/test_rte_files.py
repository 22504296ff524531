"""The file around the text: zipped or not, damaged, too large, or something else."""

import io
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optstream.errors import DumpError
from tasks.operate import rte as files
from tasks.operate.rte import read_load, text_of

TEXT = b"a text"


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


ARCHIVE = zipped(("year.xls", TEXT * 50))


def test_a_text_is_taken_and_a_zipped_one_unpacked(made, tmp_path):
    content = made.encoded(made.rte_lines("53"))
    (tmp_path / "text.xls").write_bytes(content)
    (tmp_path / "packed.zip").write_bytes(zipped(("folder/", b""), ("folder/../../év.xls", content)))
    plain, unpacked = read_load(tmp_path / "text.xls"), read_load(tmp_path / "packed.zip")
    assert (plain.region, plain.file, unpacked.file) == ("53", "text.xls", "packed.zip")
    assert unpacked.rows.equals(plain.rows)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["packed.zip", "text.xls"]


def test_no_more_is_unpacked_than_the_bound_whatever_the_archive_says(monkeypatch):
    monkeypatch.setattr(files, "LARGEST_BYTES", 2**20)
    bomb = zipped(("bomb.xls", bytes(8 * 2**20)))
    assert len(bomb) < 2**20
    asked = []

    class Watched(zipfile.ZipExtFile):
        def read(self, n=-1):
            asked.append(n)
            return super().read(n)

    monkeypatch.setattr(zipfile, "ZipExtFile", Watched)
    liar = bomb.replace((8 * 2**20).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    with pytest.raises(DumpError, match="more than 1 MiB"):
        text_of(bomb)
    assert asked == [2**20 + 1]
    with pytest.raises(DumpError, match="damaged"):
        text_of(liar)
    with pytest.raises(DumpError, match="more than 1 MiB"):
        text_of(bytes(2**20 + 1))


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
ARCHIVES = [zipped(("year.xls", TEXT * 50), method=method) for method in METHODS]


@given(
    st.sampled_from(ARCHIVES),
    st.floats(0, 1),
    st.binary(min_size=1, max_size=4),
    st.sampled_from([0, 0, 0, 7]),
)
@example(ARCHIVE, 96 / len(ARCHIVE), b"\x00", 0)  # a name that is empty
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_a_spoilt_archive_gives_bytes_or_a_refusal(archive, place, spoil, cut):
    start = int(place * len(archive))
    content = archive[:start] + spoil + archive[start + len(spoil) : len(archive) - cut]
    try:
        text = text_of(content)
    except DumpError:
        return
    # what comes through unharmed (a directory's name is not), or is no archive any more
    assert text in (TEXT * 50, content)
