"""Whatever the bytes: a frame, or a refusal that names its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import OptStreamError
from tasks.operate.rte import parse
from tasks.operate.simulate import FRENCH_REGIONS

HEADER = "Périmètre\tNature\tDate\tHeures\tConsommation\t"
ODD = st.sampled_from(
    ["Bretagne", "PACA", "France", "Données définitives", "2016-03-27", "2016-13-01", "02:00", "02:15", "1,5",
     "3000", "ND", "-", "", "9" * 12, "RTE ", "\x00", "\x85", "é", "²", "٣"]
)  # fmt: skip
ROW = st.lists(ODD | st.text(max_size=4), max_size=8).map("\t".join)
LOADS = st.sampled_from(["", "7", "ND", "8,5", "٣"])
GOOD = st.tuples(st.integers(0, 23), st.sampled_from(["00", "15", "30"]), LOADS)
GOOD_ROW = GOOD.map(lambda g: f"Bretagne\tDonnées définitives\t2016-03-27\t{g[0]:02}:{g[1]}\t{g[2]}\t")
TEXTS = st.tuples(
    st.sampled_from([HEADER, HEADER + "Gaz", "", HEADER * 2]), st.lists(ROW | GOOD_ROW, max_size=6)
)


@given(
    st.binary(max_size=200)
    | TEXTS.map(lambda text: "\n".join([text[0], *text[1]]).encode("utf-8", "replace"))
    | TEXTS.map(lambda text: "\r\n".join([text[0], *text[1]]).encode("latin-1", "replace"))
    | st.tuples(st.binary(max_size=5), TEXTS).map(lambda t: "\n".join([t[1][0], *t[1][1]]).encode() + t[0])
)
@settings(max_examples=100, deadline=None)
@pytest.mark.slow
def test_any_bytes_give_a_frame_or_a_refusal_with_its_line(content):
    try:
        region, rows = parse(content)
    except OptStreamError as error:
        number = int(str(error).removeprefix("line ").partition(":")[0])
        assert 1 <= number <= content.count(b"\n") + 1
    else:
        assert region in FRENCH_REGIONS
        assert rows.columns == ["timestamp", "load_mw", "line"]
        assert rows["timestamp"].is_sorted()
        assert rows["timestamp"].n_unique() == rows.height
        assert rows["timestamp"].null_count() == 0
        assert rows["load_mw"].is_finite().all()
