"""The data users' page for fingers, on paper, and as axe-core judges it."""

import shutil

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from optstream.catalogue.about import About, NodeFacts, put_about
from tasks.reports.write import write_public_page
from tests.browser import visit
from tests.tasks.reports.conftest import INKED, label_has, until

GROUND = """() => ["plot", "map"].map((id) => {
  const pen = document.getElementById(id).getContext("2d");
  return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
})"""
ON_PAPER = [[255, 255, 255], [244, 246, 248]]


@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "light"), pytest.param(1440, "dark", marks=pytest.mark.nightly)]
)
def test_axe_finds_no_violation(chromium, served, width, scheme):
    with visit(chromium, allowed=(served,), width=width, scheme=scheme) as seen:
        seen.page.goto(served)
        label_has(seen.page, "France (FR): from")
        for details in seen.page.locator("details").all():
            details.evaluate("e => { e.open = true }")
        seen.page.focus("#find")  # with its list open
        found = Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


def test_one_finger_moves_the_days_and_two_zoom(chromium, served):
    with visit(chromium, allowed=(served,), width=360) as seen:
        page = seen.page
        page.goto(served)
        page.select_option("#measure", "means")
        page.click("#all")
        page.click("#nearer")
        before = [page.input_value(name) for name in ("#from", "#to")]
        page.locator("#plot").scroll_into_view_if_needed()
        box, device = page.locator("#plot").bounding_box(), page.context.new_cdp_session(page)
        device.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})

        def touch(kind, *across):
            points = [{"x": box["x"] + x, "y": box["y"] + 100, "id": n} for n, x in enumerate(across)]
            device.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

        touch("Start", 150)
        for x in range(160, 260, 10):
            touch("Move", x)
        touch("End")
        until(page, "before => document.getElementById('from').value < before", arg=before[0])
        ends = [page.input_value(name) for name in ("#from", "#to")]
        touch("Start", 150, 180)
        for wide in range(10, 90, 10):
            touch("Move", 150 - wide, 180 + wide)
        touch("End")
        until(page, "ends => document.getElementById('from').value > ends[0]", arg=ends)
        assert page.input_value("#to") < ends[1]
    assert seen.errors == []


def test_on_paper_plot_and_map_are_dark_on_light_and_what_is_pressed_is_left_out(chromium, served):
    with visit(chromium, allowed=(served,), scheme="dark") as seen:
        page = seen.page
        page.goto(served)
        label_has(page, "France (FR): from")
        until(page, "document.getElementById('map-told').textContent !== ''")
        on_screen, swatch = page.evaluate(GROUND), page.locator(".swatch").get_attribute("style")
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate(GROUND) == ON_PAPER
        assert all(there != paper for there, paper in zip(on_screen, ON_PAPER, strict=True))
        assert page.locator(".swatch").get_attribute("style") != swatch
        assert page.evaluate(INKED) > 5
        for kept in ("#plot", "#map"):
            assert page.locator(kept).is_visible()
            wide, high = page.evaluate(
                "id => { const e = document.querySelector(id); return [e.width, e.height] }", kept
            )
            box = page.locator(kept).bounding_box()
            assert box["width"] / box["height"] == pytest.approx(wide / high, rel=0.01), "not stretched"
        for gone in (".controls", "#csv", "#nearer", "#day", "nav"):
            assert not page.locator(gone).first.is_visible(), gone
        page.emulate_media(media="screen", color_scheme="dark")
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(GROUND) == on_screen


def square(west, south):
    """Two degrees on each side."""
    return [[[west + x, south + y] for x, y in ((0, 0), (2, 0), (2, 2), (0, 2))]]


def test_an_area_is_drawn_and_pressed_to_its_border(chromium, published, tmp_path):
    folder = tmp_path / "areas"
    shutil.copytree(published, folder)
    areas = {"53": NodeFacts("Bretagne", area=square(-4, 47)), "84": NodeFacts(area=square(4, 45))}
    put_about(folder, "simulated-load", About(nodes=areas))
    write_public_page(folder)
    page_file = (folder / "index.html").as_uri()
    with visit(chromium, allowed=(page_file,)) as seen:
        page = seen.page
        page.goto(page_file)
        page.locator("#map").scroll_into_view_if_needed()
        until(page, "document.getElementById('map-told').textContent.includes('Bretagne')")
        box = page.locator("#map").bounding_box()
        squeezed = np.cos(np.radians(47))
        scale = min((box["width"] - 80) / (10 * squeezed), (box["height"] - 80) / 4)

        def press(longitude, latitude):
            across, up = (longitude - 1) * squeezed * scale, (latitude - 47) * scale
            page.mouse.click(box["x"] + box["width"] / 2 + across, box["y"] + box["height"] / 2 - up)

        page.mouse.move(box["x"] + box["width"] / 2 - 3 * squeezed * scale, box["y"] + box["height"] / 2)
        until(page, "document.getElementById('map').title.startsWith('Bretagne (53)')")
        press(-1.9, 47.1)
        assert page.locator("#map").get_attribute("title") == ""
        assert page.locator("#chosen li").count() == 1
        press(-2.1, 47.1)
        until(page, "document.getElementById('chosen').textContent.includes('Bretagne')")
    assert seen.errors == []
