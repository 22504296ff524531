"""The commented configurations that `optstream init` writes: of a load, of counts, of metered customers."""

import re
from pathlib import Path

from optstream.errors import ParameterError
from tasks.config.schema import MECHANISMS, NAMES, kinds_with


def example_of(
    mechanism: str = "OptStream", counts: bool = False, metered: bool = False, hourly: bool = False
) -> str:
    """Return a configuration in TOML, which runs with what `optstream simulate` makes for it.

    counts, metered: of whole numbers of visits, or of a row a customer and step, in place of a load. hourly:
    with a release an hour. Raises ParameterError where there is no example.
    """
    if mechanism not in MECHANISMS:
        raise ParameterError(f"mechanism of the example must be {NAMES}; got {mechanism!r:.80}")
    if counts and metered:
        raise ParameterError(
            "an example is of counts or metered, not of both: into the metered one write [privacy] "
            'counts = true and resolution = "1"'
        )
    section = MECHANISMS[mechanism](name=mechanism)
    if hourly and not section.kind.serves_hours:
        raise ParameterError(
            f"an example by the hour is for mechanism {kinds_with('serves_hours')}; got {mechanism!r}, which "
            "is made for days as a whole"
        )
    name = "counts" if counts else "metered" if metered else "load"
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    text = text.replace('name = "OptStream"', f'name = "{mechanism}"')
    if not section.tables:
        text = re.sub(r"\[(sampling|features)\].*\n(.+\n)+\n", "", text)
    wanted = sorted({"scale", "country"} & type(section).model_fields.keys())
    wanted += ["delta"] * (section.kind.currency == "rho") + ["period"] * hourly
    return re.sub(rf"^# ({'|'.join(wanted)}) =", r"\1 =", text, flags=re.MULTILINE) if wanted else text


EXAMPLE = example_of()
"""The usual one."""
