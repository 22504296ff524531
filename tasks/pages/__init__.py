"""The pages that operators and data users read: frozen values in, one self-contained HTML page out."""

from tasks.pages.facts import Daily, Node, PublicFacts, Recent
from tasks.pages.operator import OperatorFacts
from tasks.pages.public import public_facts
from tasks.pages.render import public_page, trusted_page
from tasks.pages.write import Written, write_pages

__all__ = [
    "Daily",
    "Node",
    "OperatorFacts",
    "PublicFacts",
    "Recent",
    "Written",
    "public_facts",
    "public_page",
    "trusted_page",
    "write_pages",
]
