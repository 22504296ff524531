"""Where everything lies: the zones and the files of the trusted folder, by the configuration."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from optstream.catalogue.backends import Location
from tasks.config.paths import absolute, located, resolve_ledger_url
from tasks.config.tables.base import Section
from tasks.config.tables.published import Published
from tasks.config.tables.sections import Contracts, Input, Ledger, Stream, Trusted

if TYPE_CHECKING:
    from sqlalchemy import URL


class Folders(Section):
    """The sections that name places, and each place.

    contracts: None where there are no suites of users. folder: where relative paths start, that of the
    configuration file, which is `file`; both absolute. ledger_folder: where that of `ledger.url` starts,
    which a population's file may say.
    """

    stream: Stream
    input: Input
    published: Published
    trusted: Trusted
    ledger: Ledger
    contracts: Contracts | None = None
    folder: Path
    file: Path
    ledger_folder: Path

    @property
    def input_folder(self) -> Location:
        """A path, or a URL of an object store."""
        return located(self.input.folder, self.folder)

    @property
    def published_folder(self) -> Location:
        """A path, or a URL of an object store."""
        return located(self.published.folder, self.folder)

    @property
    def trusted_folder(self) -> Path:
        """The trusted zone's folder, on this machine."""
        return Path(str(located(self.trusted.folder, self.folder)))

    @property
    def signing_key_file(self) -> Path | None:
        """The key that signs what is published; None where nothing is signed."""
        key = self.published.signing_key
        return None if key is None else absolute(key, self.folder)

    @property
    def public_key_files(self) -> tuple[Path, ...]:
        """Public keys of former signing keys."""
        return tuple(absolute(one, self.folder) for one in self.published.public_keys)

    @property
    def witness_places(self) -> tuple[Location, ...]:
        """The folders that know how far the ledger is: in the trusted folder, and the second one if any."""
        second = self.trusted.witness
        own = self.trusted_folder / "witness"
        return (own,) if second is None else (own, located(second, self.folder))

    @property
    def staging_folder(self) -> Path:
        """The bytes to be published, by stream and release."""
        return self.trusted_folder / "staging"

    @property
    def measurements_folder(self) -> Path:
        """The measurements, by stream and release."""
        return self.trusted_folder / "measurements"

    def measurements_of(self, day: date, revision: int) -> Path:
        """Return the folder of a release's measurements, which may be missing."""
        return self.measurements_folder / self.stream.name / f"{day}-r{revision}"

    def staging_of(self, day: date, revision: int) -> Path:
        """Return the folder of the bytes to be published, kept until they are; it may be missing."""
        return self.staging_folder / self.stream.name / f"{day}-r{revision}"

    @property
    def inputs_folder(self) -> Path:
        """The keyed hashes of what releases were drawn from, by stream and release."""
        return self.trusted_folder / "inputs"

    def inputs_of(self, day: date, revision: int) -> Path:
        """Return the folder of the keyed hashes of what a release was drawn from, which may be missing."""
        return self.inputs_folder / self.stream.name / f"{day}-r{revision}"

    @property
    def input_key_file(self) -> Path:
        """The key of those hashes."""
        return self.trusted_folder / "input.key"

    @property
    def contracts_folder(self) -> Path | None:
        """Where users' own suites are; None where there are none."""
        return None if self.contracts is None else absolute(self.contracts.folder, self.folder)

    @property
    def validation_folder(self) -> Path:
        """What the suites found, for the trusted zone alone."""
        return self.trusted_folder / "validation"

    @property
    def audits_folder(self) -> Path:
        """What audits of the configured mechanism found."""
        return self.trusted_folder / "audit" / self.stream.name

    @property
    def watch_folder(self) -> Path:
        """Which alarms were told to whom."""
        return self.trusted_folder / "watch" / self.stream.name

    @property
    def report_file(self) -> Path:
        """The page that operators open each morning."""
        return self.report_folder / "report.html"

    @property
    def report_folder(self) -> Path:
        """Of one stream: two may share a trusted folder."""
        return self.trusted_folder / "report" / self.stream.name

    @property
    def summaries_file(self) -> Path:
        """Figures of the published files that the pages need not read again."""
        return self.report_folder / "summaries.parquet"

    @property
    def kept_curves_file(self) -> Path:
        """Which files of the data users' page were made of which releases: they need not be made again."""
        return self.report_folder / "curves.json"

    @property
    def long_spans_file(self) -> Path:
        """What a month and a year lose by the plans of late, which statements repeat each night."""
        return self.report_folder / "long_spans.json"

    @property
    def level_shares_file(self) -> Path:
        """The shares that the model chose for the configurations of late, which takes seconds to find."""
        return self.report_folder / "level_shares.json"

    @property
    def composed_file(self) -> Path:
        """What the charges of a month and a year compose to, which the operators' page tells."""
        return self.report_folder / "composed.json"

    @property
    def catalogue_number_file(self) -> Path:
        """The number of the catalogue that was signed last."""
        return self.trusted_folder / "signed" / self.stream.name / "number"

    @property
    def serve_folder(self) -> Path:
        """The memory of the server that `optstream serve` starts, its password and its log lines."""
        return self.trusted_folder / "serve"

    @property
    def lineage_folder(self) -> Path:
        """The lineage of releases."""
        return self.trusted_folder / "lineage"

    @property
    def ledger_url(self) -> "URL":
        """The SQLAlchemy URL: a secret. An SQLite path is absolute."""
        return resolve_ledger_url(self.ledger.url.get_secret_value(), self.ledger_folder)
