"""What the pages load: vendored files as they were released, and nothing that is not listed."""

import io
import re
import tarfile
from base64 import b64encode
from hashlib import sha256, sha512
from pathlib import Path

import pytest

from docs.generate.vendored import FILES, INTO, PACKAGE, checked
from tasks.pages.render import ASSETS, asset

TEMPLATES = Path(__file__).parents[3] / "tasks/pages/templates"


def test_vendored_files_are_the_released_ones_with_their_licence():
    kept = {path.name: sha256(path.read_bytes()).hexdigest() for path in INTO.iterdir()}
    assert kept == dict(FILES.values())
    assert "MIT" in (INTO / "uPlot-LICENSE.txt").read_text()
    assert f"v{PACKAGE.partition('@')[2]}".encode() in (INTO / "uPlot.iife.min.js").read_bytes()


def test_a_release_or_file_that_differs_is_refused():
    def packed(**changed):
        into = io.BytesIO()
        with tarfile.open(fileobj=into, mode="w:gz") as archive:
            for member, (name, _) in FILES.items():
                data = changed.get(name.partition(".")[0], (INTO / name).read_bytes())
                about = tarfile.TarInfo(member)
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))
        return into.getvalue(), b64encode(sha512(into.getvalue()).digest()).decode()

    data, integrity = packed()
    assert set(checked(data, integrity)) == {name for name, _ in FILES.values()}
    with pytest.raises(ValueError, match="not the release that is pinned here"):
        checked(data)
    with pytest.raises(ValueError, match="not the file that is pinned here"):
        checked(*packed(uPlot=b"alert(1)"))


def test_templates_load_what_is_served_and_hold_no_script_or_style_of_their_own():
    for template in TEMPLATES.iterdir():
        text = template.read_text()
        assert set(re.findall(r"/static/([\w.-]+)", text)) <= set(ASSETS), template.name
        assert not re.search(r"style=|\|safe|\son\w+=", text), template.name
        inline = re.findall(r"<script(?![^>]* src=)(?![^>]*application/json)[^>]*>(.*)", text)
        assert inline == (["{{ script }}</script>{% endif %}"] if template.name == "base.html.jinja" else [])
    assert not re.search(rb"url\(|@import", asset("page.css")[1])
