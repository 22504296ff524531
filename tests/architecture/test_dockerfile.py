"""The image: nobody's secrets, no root, a base of a stated version; and hadolint has nothing to say."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
LINES = (CHECKOUT / "Dockerfile").read_text().splitlines()


def said(word):
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_it_runs_as_somebody_without_rights_on_a_stated_base():
    assert said("USER") == ["10001"]
    assert LINES.index("USER 10001") < LINES.index('ENTRYPOINT ["optstream"]')
    bases = said("FROM")
    assert bases
    assert all(re.match(r"python:3\.11\.\d+-slim-\w+( AS \w+)?$", base) for base in bases)


def test_nothing_secret_and_no_data_go_in():
    assert said("ARG") == []
    assert all("URL" not in line and "PASS" not in line for line in said("ENV"))
    ignored = (CHECKOUT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    taken = {word for line in said("COPY") if "--from" not in line for word in line.split()[:-1]}
    assert taken == {line.removeprefix("!") for line in ignored if line.startswith("!")}
