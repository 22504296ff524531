"""The columns of answers, in words."""

from optstream.catalogue.metadata.dataset import Column
from optstream.catalogue.questions.window_answers import SCHEMA

MEANINGS: dict[str, tuple[str, str, bool]] = {
    "question": ("string", "Name of the question; questions.json says what it asks.", False),
    "step": ("integer", "Number of the window's last time step within the day, from 0.", False),
    "timestamp": ("datetime", "Start of that step in UTC.", False),
    "node": ("string", "The node of the hierarchy.", False),
    "level": ("integer", "Depth of the node, 0 at the root.", False),
    "answer": (
        "number",
        "The window's sum; for a jump its last value less its first, for a drop the reverse.",
        False,
    ),
    "happened": ("boolean", "Whether the published values have the event; empty for a sum.", True),
    "answer_noise_se": ("number", "Standard deviation of what the noise alone did to the answer.", True),
    "answer_se": ("number", "Standard error of the answer, noise and all.", True),
    "answer_noise_se_at_most": ("number", "The most that answer_noise_se can be.", True),
    "answer_se_at_most": ("number", "The most that answer_se can be.", True),
}
"""Of each column its type, its meaning, and whether it may be empty."""


def answer_columns(with_date: bool = False) -> tuple[Column, ...]:
    """Return the columns of answers with their meanings, in the order of the files.

    with_date: whether the day is a column, too, and not only in the file's path.
    """
    date = (Column("date", "date", "The local day on which the window ends."),) if with_date else ()
    return (*date, *(Column(name, *MEANINGS[name]) for name in SCHEMA))
