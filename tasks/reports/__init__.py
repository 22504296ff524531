"""The pages that operators and data users read: frozen values in, one self-contained HTML page out."""

from tasks.reports.facts import Daily, Node, PublicFacts, Recent
from tasks.reports.operator import OperatorFacts
from tasks.reports.public import public_facts
from tasks.reports.render import public_page, trusted_page
from tasks.reports.write import Written, require_pages, write_pages

__all__ = [
    "Daily",
    "Node",
    "OperatorFacts",
    "PublicFacts",
    "Recent",
    "Written",
    "public_facts",
    "public_page",
    "require_pages",
    "trusted_page",
    "write_pages",
]
