"""A forged catalogue that lists days of another age, or to come, is refused before it is gone through."""

import pytest

from optstream.catalogue import read_catalogue
from optstream.errors import PublicationError
from tests.tasks.operate.test_sign import DAY

FORGED = "2199-12-31"


def forge(installation, day):
    path = installation.folder / "published/catalogue.json"
    path.write_text(path.read_text().replace(str(DAY), day))


def test_a_day_of_the_year_9999_is_refused_by_page_and_reader(installation):
    installation.released(DAY)
    forge(installation, "9999-12-31")
    written = installation.write_pages()
    assert "catalogue.json has a period outside the years 1970 to 2199" in written.problem
    with pytest.raises(PublicationError, match="outside the years"):
        read_catalogue(installation.folder / "published")


def test_a_day_to_come_stops_the_public_page_and_not_the_operators(installation):
    installation.released(DAY)
    installation.write_pages()
    before = (installation.folder / "published/index.html").read_bytes()
    forge(installation, FORGED)
    written = installation.write_pages()
    assert f"catalogue.json lists {FORGED}, which is still to come" in written.problem
    assert (installation.folder / "published/index.html").read_bytes() == before
    assert installation.settings.report_file.is_file()
