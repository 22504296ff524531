"""JSON Schemas (2020-12) of what other tools read, from the model of each document.

`python -m tasks.schemas` lists them, `python -m tasks.schemas optstream.status/3` prints one.
"""

import json
import sys
from typing import Any

from pydantic import BaseModel

from optstream.catalogue.about import About
from optstream.catalogue.documents import json_schema
from optstream.catalogue.index import Catalogue
from optstream.catalogue.statement import Manifest
from optstream.errors import ParameterError
from tasks.ledger.export import Exported
from tasks.ledger.show import Book, Horizon
from tasks.ledger.verify import Verification
from tasks.monitor.view import Status
from tasks.operate.doctor import DoctorDocument
from tasks.operate.purge import Purged
from tasks.plan.advise import AdviceDocument
from tasks.plan.backfill import BackfillDocument, PlanDocument
from tasks.plan.dry_run import DryRun, DryRuns
from tasks.release.outcomes import ExportDocument, ReportDocument, RunDocument, Streams, VerifiedDocument

DOCUMENTS: dict[str, tuple[type[BaseModel], str]] = {
    "optstream.status/3": (Status, "optstream status --json"),
    "optstream.ledger-show/1": (Book, "optstream ledger show --json"),
    "optstream.ledger-horizon/1": (Horizon, "optstream ledger horizon --json"),
    "optstream.dry-run/2": (DryRun, "optstream run --dry-run --json"),
    "optstream.run/1": (RunDocument, "optstream run --json"),
    "optstream.backfill/1": (BackfillDocument, "optstream backfill --json"),
    "optstream.backfill-plan/1": (PlanDocument, "optstream backfill --dry-run --json"),
    "optstream.dry-runs/1": (DryRuns, "optstream run --dry-run --json of several streams"),
    "optstream.plan-advice/1": (AdviceDocument, "optstream advise --json"),
    "optstream.doctor/1": (DoctorDocument, "optstream doctor --json"),
    "optstream.purge/1": (Purged, "optstream purge --json"),
    "optstream.export/1": (ExportDocument, "optstream export --json"),
    "optstream.report/1": (ReportDocument, "optstream report --json"),
    "optstream.verified/1": (VerifiedDocument, "optstream verify-published --json"),
    "optstream.ledger-verify/1": (Verification, "optstream ledger verify --json"),
    "optstream.ledger-export/1": (Exported, "optstream ledger export --json"),
    "optstream.streams/1": (Streams, "--json of several streams"),
    "optstream.manifest/1": (Manifest, "The manifest of a published release"),
    "optstream.about/1": (About, "about.json of a published folder"),
    "optstream.catalogue/1": (Catalogue, "catalogue.json of a published folder"),
    "optstream.catalogue/2": (Catalogue, "catalogue.json of a published folder whose catalogues are signed"),
}
"""The model of each format, which describes it, and the title of its schema."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a format such as "optstream.status/3". Raises ParameterError for another name."""
    if name not in DOCUMENTS:
        raise ParameterError(f"a format with a schema must be one of {', '.join(DOCUMENTS)}; got {name!r}")
    kind, title = DOCUMENTS[name]
    return json_schema(kind, name, title)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(schema_of(sys.argv[1]), indent=2))
    else:
        print(*DOCUMENTS, sep="\n")
