"""Commands for the upkeep of a stream: they release nothing."""

import os
from datetime import UTC, datetime

import typer

from flows.options import DEFAULT_CONFIG, Config, Json
from flows.terminal import Terminal


def doctor(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Look for what lets secrets out or stops nights; exit code 1 if something should be done."""
    from optstream.errors import ConfigurationError
    from tasks.doctor import doctor_document, examine, unusable
    from tasks.settings import load_settings

    environment = dict(os.environ)
    try:
        settings = load_settings(config)
    except ConfigurationError as error:
        findings = unusable(config, error)
    else:
        findings = examine(settings, environment, datetime.now(UTC))
    terminal = Terminal(as_json)
    for finding in findings:
        terminal.say(f"{finding.severity}: {finding.place}: {finding.rule}\n    {finding.remedy}")
    if not findings:
        terminal.say("nothing is wrong")
    terminal.document(doctor_document(findings))
    raise typer.Exit(1 if any(finding.is_bad for finding in findings) else 0)
