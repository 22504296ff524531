"""Texts of alarms as HTML: what stands between backticks is a command."""

from markupsafe import Markup, escape


def with_code(text: str) -> Markup:
    """Return the text escaped, with `…` as code; a backtick without a partner stays one."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        pieces[-2:] = ["`".join(pieces[-2:])]
    made = (
        Markup("<code>{}</code>").format(one) if number % 2 else escape(one)
        for number, one in enumerate(pieces)
    )
    return Markup("").join(made)
