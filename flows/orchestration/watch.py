"""The watch: looks at a stream, and sends each alarm once. Wiring only; no run of a Prefect server."""

from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.blocks.notifications import AppriseNotificationBlock, CustomWebhookNotificationBlock
from prefect.events import emit_event
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.utilities.asyncutils import run_coro_as_sync

from flows.orchestration.environment import ANSWER_SECONDS
from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings
from tasks.ledger import ledger_if_any
from tasks.monitor.alarms import Alarm, Kind, alarm, lines_of
from tasks.monitor.facts import note_end
from tasks.monitor.notify import (
    FILE,
    Memory,
    Notification,
    heard,
    log_transitions,
    news_for,
    read_memory,
    seen,
    write_memory,
)
from tasks.monitor.view import StreamView
from tasks.monitor.view import watch as look_at
from tasks.operate.permissions import check_trusted
from tasks.trusted.files import exclusive_in, unexpected

# A notification block for any address that Apprise knows, e-mail among them: its base cannot be saved.


class AppriseUrl(AppriseNotificationBlock):
    """Sends notifications to an Apprise URL, such as "mailtos://user:secret@example.org?to=night@example.org".

    Saved as "apprise-url/NAME". The URL may hold a password: Prefect keeps it encrypted.
    """

    _block_type_name = "Apprise URL"
    _block_type_slug = "apprise-url"


BLOCKS = (AppriseUrl, CustomWebhookNotificationBlock)
"""Imported, so that blocks of these types can be loaded by name."""
EVENTS = "events"  # the channel that every server has


@dataclass(frozen=True)
class Watched:
    """What one watch saw and sent; `failed` is in words, and is tried again by the next watch."""

    view: StreamView | OptStreamError
    alarms: tuple[Alarm, ...]
    sent: Mapping[str, Notification]
    failed: tuple[str, ...]


def watch_here(settings: Settings, *, events: bool = True) -> Watched:
    """Look at a stream once, and send each channel of [watch] notify its new alarms."""
    hasty = {PREFECT_API_REQUEST_TIMEOUT: ANSWER_SECONDS, PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(hasty):  # of a server that hangs
        watched = _look_and_send(settings, (EVENTS,) * events + settings.watching.notify)
    with suppress(OSError):  # of a full disk: then it is late
        note_end(settings, "watch", datetime.now(UTC))
    return watched


def report_unreadable(config: Path) -> None:
    """Emit that a configuration cannot be read: its other channels stand in it."""
    words = (
        f"the configuration {config.name} cannot be read: nothing is released, nothing watched; "
        "`optstream status` says why"
    )
    _emit(f"optstream.alarm.{Kind.BLIND}", alarm(Kind.BLIND, config.stem, words))


def _look_and_send(settings: Settings, channels: Sequence[str]) -> Watched:
    now = datetime.now(UTC)
    with ExitStack() as alone:
        with suppress(OSError):  # of that disk, maybe: then it looks and sends without
            alone.enter_context(exclusive_in(settings.watch_folder))
        memory = before = read_memory(settings)
        try:
            check_trusted(settings)
            with ledger_if_any(settings) as ledger:
                view: StreamView | OptStreamError = look_at(settings, ledger, now)
        except OptStreamError as error:
            view = error
        except Exception as error:  # noqa: BLE001 - a watch that ends here would be silent, whatever the reason
            view = ConfigurationError(unexpected(error))
        found = _blind(settings, memory) if isinstance(view, OptStreamError) else view.alarms
        # channels, Prefect's events and its artifacts may lead out of the trusted zone
        alarms = tuple(alarm for alarm in found if not alarm.kind.depends_on_readings)
        memory = seen(memory, alarms, (EVENTS, *settings.watching.notify), now)
        logged = log_transitions(settings, before, memory, now)
        sent, failed = _send_all(settings, memory, channels)
    return Watched(view, alarms, sent, tuple(filter(None, [*failed, logged])))


def _blind(settings: Settings, memory: Memory) -> tuple[Alarm, ...]:
    """The alarm of a watch that cannot look, and those that last: nothing is known to be over."""
    words = (
        "the watch cannot look at ledger or folders, so it sees neither days nor budget: `optstream status` "
        "says why"
    )
    blind = alarm(Kind.BLIND, settings.stream.name, words)
    return (*(one.alarm for one in memory.values() if one.lasts and one.alarm.key != blind.key), blind)


def _send_all(
    settings: Settings, memory: Memory, channels: Sequence[str]
) -> tuple[dict[str, Notification], list[str]]:
    """Send to each channel and record it after each; unrecorded messages are sent again."""
    sent, silent, failed = {}, [], _keep(settings, memory)
    for channel in channels:
        news = news_for(memory, channel).joined
        if not news:
            continue
        try:
            _send(settings, channel, news)
        except Exception as error:  # noqa: BLE001 - an address may be a secret: its kind alone is shown
            silent.append(f"{channel} ({type(error).__name__})")
            continue
        sent[channel], memory = news, heard(memory, channel)
        failed = _keep(settings, memory)
    if silent:
        failed.append(
            f"could not be notified, and will be by the next watch: {', '.join(silent)}; see that "
            "PREFECT_API_URL names the server where the block is saved (`prefect block ls`), and that its "
            "address answers"
        )
    return sent, failed


def _keep(settings: Settings, memory: Memory) -> list[str]:
    try:
        write_memory(settings, memory)
    except OSError as error:
        return [
            f"which alarms were sent cannot be recorded in {settings.watch_folder / FILE} "
            f"({error.strerror}): repair that folder or its disk; until then every watch sends all again"
        ]
    return []


def _send(settings: Settings, channel: str, news: Notification) -> None:
    if channel == EVENTS:
        for name, alarms in (("alarm", news.new), ("resolved", news.over)):
            for alarm in alarms:
                _emit(f"optstream.{name}.{alarm.kind}", alarm)
        return
    block: Any = Block.load(channel)
    if not isinstance(block, NotificationBlock):
        raise TypeError(f"{channel} is no notification block")
    new, over = len(news.new), len(news.over)
    counts = [f"{new} alarm{'' if new == 1 else 's'}"] * bool(new) + [f"{over} over"] * bool(over)
    with block.raise_on_failure():
        sent: Coroutine[Any, Any, None] | None = block.notify(
            "\n".join([*lines_of(news.new), *lines_of(news.over, "over: ")]),
            subject=f"optstream {settings.stream.name}: {', '.join(counts)}",
        )
        if sent is not None:  # as the base class has it; Prefect's own blocks send at once where none waits
            run_coro_as_sync(sent)


def _emit(name: str, alarm: Alarm) -> None:
    resource = {
        "prefect.resource.id": f"optstream.stream.{alarm.stream}",
        "prefect.resource.name": alarm.stream,
    }
    if emit_event(name, resource=resource, payload=alarm.model_dump(mode="json")) is None:
        raise ConnectionError("no server takes events")
