"""What the pages load: vendored files as they were released, and nothing that is not listed."""

import re
from hashlib import sha256
from pathlib import Path

from tasks.pages.render import ASSETS, asset

TEMPLATES = Path(__file__).parents[3] / "tasks/pages/templates"
RELEASED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot-LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def test_vendored_files_are_the_released_ones_with_their_licence():
    folder = TEMPLATES.parent / "static/vendored"
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == RELEASED
    assert "MIT" in (folder / "uPlot-LICENSE.txt").read_text()


def test_templates_load_what_is_served_and_hold_no_script_or_style_of_their_own():
    for template in TEMPLATES.iterdir():
        text = template.read_text()
        assert set(re.findall(r"/static/([\w.-]+)", text)) <= set(ASSETS), template.name
        assert not re.search(r"style=|\|safe|\son\w+=", text), template.name
        inline = re.findall(r"<script(?![^>]* src=)(?![^>]*application/json)[^>]*>(.*)", text)
        assert inline == (["{{ script }}</script>{% endif %}"] if template.name == "base.html.jinja" else [])
    assert not re.search(rb"url\(|@import", asset("page.css")[1])
