"""Pictures that stand alone, for pages that are not ours: one released day, and where it came from.

They are drawn as SVG and handed out as PNG, which every page shows.

Their colours are fixed, on a white ground, since nobody knows on which page they stand. The same values give
the same bytes.
"""

import base64
from collections.abc import Sequence
from html import escape

from tasks.reports.drawing.figures import Plot
from tasks.reports.drawing.paths import HEIGHT

INK, DIM, BLUE, PALE, GRID, PAPER = "#1a1f24", "#4d5760", "#0b5cad", "#c3dbf3", "#e3e8ec", "#ffffff"
FONT = 'font-family="system-ui,Segoe UI,DejaVu Sans,sans-serif"'
WIDE, TALL, LEFT, TOP, BOTTOM, RIGHT = 720, 260, 70, 44, 30, 16
BOX_TALL, BOX_GAP = 56, 26
PIXELS = 1.5
"""A unit of the drawing, on screens of today."""


def curve_picture(plot: Plot, title: str) -> str:
    """A plot with its labels, as an SVG image of 720 by 260."""
    wide, tall = WIDE - LEFT - RIGHT, TALL - TOP - BOTTOM
    grid = "".join(
        f'<path d="M{LEFT} {TOP + tall * top / 100:.1f}H{WIDE - RIGHT}" stroke="{GRID}"/>'
        f'<text x="{LEFT - 8}" y="{TOP + tall * top / 100 + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        for text, top in plot.y_labels
    )
    below = "".join(
        f'<text x="{LEFT + wide * left / 100:.1f}" y="{TALL - 10}">{escape(text)}</text>'
        for text, left in plot.x_labels
    )
    shade = f'<path d="{plot.band}" fill="{PALE}"/>' if plot.band else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {TALL}" width="{WIDE}" height="{TALL}" '
        f'{FONT} font-size="12" fill="{DIM}"><rect width="{WIDE}" height="{TALL}" fill="{PAPER}"/>'
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600" fill="{INK}">{escape(title)}</text>{grid}'
        f'<svg x="{LEFT}" y="{TOP}" width="{wide}" height="{tall}" viewBox="0 0 {plot.width} {HEIGHT}" '
        f'preserveAspectRatio="none">{shade}<path d="{plot.line}" fill="none" stroke="{BLUE}" '
        f'stroke-width="1.8" vector-effect="non-scaling-stroke"/></svg>{below}</svg>'
    )


def lineage_picture(steps: Sequence[tuple[str, str]]) -> str:
    """Boxes from left to right, each with a name and a line below it."""
    wide = (WIDE - BOX_GAP * (len(steps) - 1) - 2) / len(steps)
    boxes = []
    for number, (name, about) in enumerate(steps):
        x, last = 1 + number * (wide + BOX_GAP), number == len(steps) - 1
        fill = PALE if last else PAPER
        boxes.append(
            f'<rect x="{x:.1f}" y="1" width="{wide:.1f}" height="{BOX_TALL}" rx="6" fill="{fill}" '
            f'stroke="{DIM}"/>'
            f'<text x="{x + wide / 2:.1f}" y="24" font-weight="600" fill="{INK}">{escape(name)}</text>'
            f'<text x="{x + wide / 2:.1f}" y="43">{escape(about)}</text>'
        )
        if not last:
            start, end = x + wide + 3, x + wide + BOX_GAP - 3
            middle = 1 + BOX_TALL / 2
            boxes.append(
                f'<path d="M{start:.1f} {middle}H{end:.1f}m-6 -5l6 5l-6 5" stroke="{DIM}" fill="none"/>'
            )
    tall = BOX_TALL + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" width="{WIDE}" height="{tall}" '
        f'{FONT} font-size="11.5" text-anchor="middle" fill="{DIM}">'
        f'<rect width="{WIDE}" height="{tall}" fill="{PAPER}"/>{"".join(boxes)}</svg>'
    )


def data_uri(svg: str) -> str:
    """The picture as PNG inside an address, so that nothing is fetched for it."""
    from vl_convert import svg_to_png  # here, for only a page that is not ours needs it

    return "data:image/png;base64," + base64.b64encode(svg_to_png(svg, scale=PIXELS)).decode("ascii")
