"""The flow of one night for several streams: each one's night in turn, a flow run each. Wiring only."""

from typing import Any

from prefect import flow, tags
from prefect.states import Completed

from flows.orchestration.heartbeats import tell_over
from flows.orchestration.nightly import nightly
from flows.orchestration.run_names import nights_name, stream_of, tags_of
from optstream.errors import OptStreamError
from tasks.planning.nightly import UnreleasedError
from tasks.storage.failures import unexpected


@flow(
    name="optstream-nights",
    flow_run_name=nights_name,
    persist_result=False,
    retries=0,
    validate_parameters=False,
    on_completion=[tell_over],
    on_failure=[tell_over],
)
def nights(configs: list[str]) -> Any:
    """Look once at each stream, in this order: one that fails, or has a day left, stops no other.

    Its parameters are paths: Prefect stores them in clear. Ends as a state whose message says which streams
    were looked at; the run of each says what was done. Raises UnreleasedError if one of them failed.
    """
    names, left = [], []
    for config in configs:
        names.append(stream_of(config))
        try:
            with tags(*tags_of(names[-1])):
                nightly(config)
        except OptStreamError as error:
            left.append(f"{names[-1]}: {error}")
        except Exception as error:  # noqa: BLE001 - a defect in one stream stops no other, and says where
            left.append(f"{names[-1]}: {unexpected(error)}")
    if left:
        raise UnreleasedError("; ".join(left))
    return Completed(message=f"looked at {', '.join(names)}")
