"""The deployment card that a night leaves: of ledger and configuration, signed, without a time of a run."""

import json
from datetime import date

from optstream.catalogue import check_files
from tasks.operate.keys import new_key

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
NAMES = ("deployment-card.json", "deployment-card.html")


def card_of(installation):
    return json.loads((installation.folder / "published/deployment-card.json").read_text())["deployment"]


def test_a_night_leaves_it_signed_and_the_same_whenever_it_runs(installation):
    path = installation.folder / "optstream.toml"
    keyed = '[published]\nsigning_key = "trusted/signing.pem"'
    path.write_text(path.read_text().replace("[published]", keyed))
    public = new_key(installation.settings.signing_key_file)
    installation.release(DAY)
    installation.write_pages()
    published = installation.folder / "published"
    first = {name: (published / name).read_bytes() for name in NAMES}
    assert check_files(published, public) == []
    installation.later(days=3)
    installation.write_pages()
    assert {name: (published / name).read_bytes() for name in NAMES} == first
    (published / NAMES[1]).write_bytes(first[NAMES[1]].replace(b"Pure DP", b"No DP"))
    (line,) = check_files(published, public)
    assert line.startswith(NAMES[1])


def test_days_keep_what_they_were_drawn_under(installation):
    """Bounds and schema of each day are its statement's, whatever the configuration says by now."""
    path = installation.folder / "optstream.toml"
    before = installation.settings.privacy.bounds
    installation.release(DAY)
    text = path.read_text()
    path.write_text(text.replace('bounds = ["0", "20000"]', 'bounds = ["0", "77"]'))
    assert installation.settings.privacy.bounds != before
    installation.write_pages()
    card, page = str(card_of(installation)), (installation.folder / "published/index.html").read_text()
    assert "0 to 20,000" in card
    assert "0 to 77" not in card
    assert "'77'" not in card
    installation.release(NEXT)
    installation.write_pages()
    card, page = str(card_of(installation)), (installation.folder / "published/index.html").read_text()
    privacy = page.partition('id="privacy"')[2].partition("</section>")[0]
    for said in (card, privacy):
        assert "clamped to 0 to 20,000" in said
        assert "clamped to 0 to 77" in said
    assert "2016-06-01 to 2016-06-01 (1 day(s)): epsilon at most" in card
