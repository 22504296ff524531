"""Points where a process dies, stands still or is refused, by number or "after fsync in _write < fill, 1"."""

import builtins
import errno
import io
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

CHECKOUT = Path(__file__).parents[2]
PACKAGES = tuple(f"{CHECKOUT / tree}{os.sep}" for tree in ("optstream", "tasks", "flows", "data_contracts"))
ON_PATHS = ("replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")
ON_DESCRIPTORS = ("fsync", "fdatasync", "posix_fallocate", "ftruncate")
CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
Act = Callable[[str], None]
Point = str | int
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
"""Death as nothing else dies; and to stand still until SIGCONT."""
REFUSALS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO}


def is_refusable(name: str) -> bool:
    """Whether a system may refuse there; after a commit it is the answer that gets lost."""
    return not name.startswith("after") or "commit" in name


def happening(act: str, point: Point, may: Callable[[], bool] = lambda: True) -> Act:
    """A signal or a refusal, once: at this point, or at the first from it on that `may` be refused."""
    numbers, done = count(1), list[str]()

    def meet(name: str) -> None:
        number = next(numbers)
        if isinstance(point, str):
            is_due = name == point
        else:
            is_due = number >= point and (act in SIGNALS or is_refusable(name))
        if not is_due or done:
            return
        done.append(name)
        if not may():
            return
        if act in SIGNALS:
            os.kill(os.getpid(), SIGNALS[act])
        else:
            raise OSError(REFUSALS[act], os.strerror(REFUSALS[act]))

    return meet


# The same in processes that are started by a command: the first that comes to the point.

ARMED = "OPTSTREAM_FAULT"
_KEPT: list[Any] = []
ARM = f"""import os, re, sys
if "{ARMED}" in os.environ and re.search(os.environ["{ARMED}_IN"], " ".join(sys.orig_argv)):
    from tests.faults.hook import arm
    arm()
"""
"""For a `sitecustomize.py`."""


def armed(flag: Path, watched: Path, act: str, point: Point, words: str) -> dict[str, str]:
    """Variables by which one process, of these `words`, meets the act; the flag gets its id as suffix."""
    flag.touch()
    document = {"flag": str(flag), "watched": str(watched), "act": act, "point": point}
    return {ARMED: json.dumps(document), f"{ARMED}_IN": words}


def arm() -> None:
    """In a process with these variables: until its end."""
    given = json.loads(os.environ[ARMED])
    flag = Path(given["flag"])

    def is_first() -> bool:
        with suppress(FileNotFoundError):
            flag.rename(flag.with_suffix(f".{os.getpid()}"))
            return True
        return False

    _KEPT.append(Hook(Path(given["watched"]), happening(given["act"], given["point"], is_first)).installed())
    _KEPT[-1].__enter__()


class Hook:
    """What happens at each point: `act` is called with its name, while the hook is installed."""

    def __init__(self, folder: Path, act: Act) -> None:
        self._folder, self._act = f"{folder}{os.sep}", act
        self._seen: Counter[str] = Counter()
        self._changing: set[int] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        wrapped: dict[tuple[Any, str], Any] = {}
        for name in ON_PATHS:
            wrapped[os, name] = self._around(name, getattr(os, name), self._path)
        for name in ON_DESCRIPTORS:
            wrapped[os, name] = self._around(name, getattr(os, name), self._descriptor)
        wrapped[os, "open"] = self._creation(os.open)
        # os.fdopen calls io.open
        wrapped[builtins, "open"] = wrapped[io, "open"] = self._files_of(io.open)
        wrapped[DefaultDialect, "do_commit"] = self._commit(DefaultDialect.do_commit)
        genuine = {place: getattr(*place) for place in wrapped}
        event.listen(Engine, "before_cursor_execute", self._executed)
        for (owner, name), call in wrapped.items():
            setattr(owner, name, call)
        try:
            yield
        finally:
            for (owner, name), call in genuine.items():
                setattr(owner, name, call)
            event.remove(Engine, "before_cursor_execute", self._executed)

    def _creation(self, genuine: Callable[..., int]) -> Any:
        creating = self._around("create", genuine, self._path)

        def opened(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            return int((creating if flags & os.O_CREAT else genuine)(path, flags, *rest, **more))

        return opened

    def _executed(self, connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(CHANGES):
            self._changing.add(id(connection.connection.dbapi_connection))

    def _commit(self, genuine: Callable[..., None]) -> Any:
        """A database that refuses says so in its driver's words; after the commit, its answer got lost."""

        def commit(dialect: DefaultDialect, connection: Any) -> None:
            driver = getattr(connection, "dbapi_connection", connection)
            if id(driver) not in self._changing:
                return genuine(dialect, connection)
            self._changing.discard(id(driver))
            name = self._name("commit")
            try:
                self._act(f"before {name}")
                genuine(dialect, connection)
                self._act(f"after {name}")
            except OSError as error:
                raise dialect.loaded_dbapi.OperationalError(error.strerror) from error
            return None

        return commit

    def _around(self, primitive: str, genuine: Callable[..., Any], ours: Callable[[Any], bool]) -> Any:
        def call(first: Any, *rest: Any, **more: Any) -> Any:
            if not ours(_whole(first, more)):
                return genuine(first, *rest, **more)
            name = self._name(primitive)
            self._act(f"before {name}")
            result = genuine(first, *rest, **more)
            self._act(f"after {name}")
            return result

        return call

    def _files_of(self, genuine: Callable[..., Any]) -> Any:
        def opened(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            found = genuine(file, mode, *rest, **more)
            ours = self._descriptor(file) if isinstance(file, int) else self._path(file)
            return _Watched(found, self) if ours and set(mode) & set("wax+") else found

        return opened

    def write(self, file: Any, data: Any) -> int:
        """Write in two halves, with a point before, between and after: a torn write is a fault too."""
        name = self._name("write")
        self._act(f"before {name}")
        half = len(data) // 2
        file.write(data[:half])
        file.flush()
        self._act(f"during {name}")
        file.write(data[half:])
        self._act(f"after {name}")
        return len(data)

    def _path(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(self._folder)  # noqa: PTH100

    def _descriptor(self, number: Any) -> bool:
        try:
            return f"{os.readlink(f'/proc/self/fd/{number}')}{os.sep}".startswith(self._folder)  # noqa: PTH115
        except OSError:
            return False

    def _name(self, primitive: str) -> str:
        place = f"{primitive} in {' < '.join(_callers())}"
        self._seen[place] += 1
        return f"{place}, {self._seen[place]}"


def _whole(first: Any, more: dict[str, Any]) -> Any:
    """A name that is relative to a folder's descriptor, as a path; all else as it is."""
    folder = more.get("dir_fd", more.get("src_dir_fd"))
    if folder is None or not isinstance(first, str | os.PathLike):
        return first
    return f"{os.readlink(f'/proc/self/fd/{folder}')}{os.sep}{os.fspath(first)}"  # noqa: PTH115


class _Watched:
    """A file that is written through the hook."""

    def __init__(self, file: Any, hook: Hook) -> None:
        self._file, self._hook = file, hook

    def write(self, data: Any) -> int:
        return self._hook.write(self._file, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Watched":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _callers() -> list[str]:
    """The two innermost functions of the project, without lambdas; of the ledger, its method."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGES):
            name = code.co_qualname
            if name == "transaction.<locals>.method":
                name = f"Ledger.{frame.f_locals['work'].__name__}"
            if name.startswith("Ledger.") and not name.startswith("Ledger._"):
                return [name]
            if not name.endswith("<lambda>"):
                found.append(name)
        frame = frame.f_back
    return found[:2] or ["elsewhere"]
