"""A machine's clock and disk, changed while processes run: a small library put before the system's."""

import mmap
import os
import shutil
import struct
import subprocess
import time
from functools import cached_property
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control { volatile int64_t ahead_seconds, delay_microseconds, asleep_until; };
static struct control usual;
static struct control *machine = &usual;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("OPTSTREAM_MACHINE");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof usual, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) machine = found;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += machine->ahead_seconds;
  return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int result = syscall(SYS_gettimeofday, now, zone);
  if (result == 0 && now) now->tv_sec += machine->ahead_seconds;
  return result;
}
time_t time(time_t *where) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (where) *where = now.tv_sec;
  return now.tv_sec;
}

#define LONG_SECONDS 20
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
  struct timespec now, moment = {0, 100000000};
  if (clock != CLOCK_MONOTONIC || !(flags & TIMER_ABSTIME))
    return syscall(SYS_clock_nanosleep, clock, flags, until, left) ? errno : 0;
  syscall(SYS_clock_gettime, clock, &now);
  int64_t before = machine->ahead_seconds;
  if (until->tv_sec - now.tv_sec > LONG_SECONDS)
    machine->asleep_until = time(NULL) + until->tv_sec - now.tv_sec + 1;
  while (until->tv_sec - now.tv_sec > LONG_SECONDS) {
    if (machine->ahead_seconds - before > until->tv_sec - now.tv_sec) return 0;
    if (syscall(SYS_nanosleep, &moment, NULL)) return errno;
    syscall(SYS_clock_gettime, clock, &now);
  }
  return syscall(SYS_clock_nanosleep, clock, flags, until, left) ? errno : 0;
}

static void wait_for_the_disk(void) {
  int64_t delay = machine->delay_microseconds;
  struct timespec left = {delay / 1000000, delay % 1000000 * 1000};
  if (delay) syscall(SYS_nanosleep, &left, NULL);
}
int fsync(int file) { wait_for_the_disk(); return syscall(SYS_fsync, file); }
int fdatasync(int file) { wait_for_the_disk(); return syscall(SYS_fdatasync, file); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  wait_for_the_disk(); return syscall(SYS_pwrite64, file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  wait_for_the_disk(); return syscall(SYS_pwrite64, file, data, size, at);
}
int rename(const char *from, const char *to) { wait_for_the_disk(); return syscall(SYS_rename, from, to); }
"""

A_DAY = 86_400


def why_not() -> str | None:
    """Why there is no such machine here; None if there is."""
    return None if shutil.which("cc") else "no C compiler: install gcc"


class Machine:
    """ahead_seconds: of the true time. folder: everybody who is on this machine may enter it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        source = folder / "machine.c"
        source.write_text(SOURCE)
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", folder / "machine.so", source], check=True, timeout=60
        )
        control = folder / "control"
        control.write_bytes(bytes(24))
        (folder / "machine.so").chmod(0o755)
        control.chmod(0o666)  # PostgreSQL runs as somebody else
        with control.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), 24)
        self.ahead_seconds = 0

    @cached_property
    def environment(self) -> dict[str, str]:
        """What puts a process, and all that it starts, on this machine."""
        return {
            "LD_PRELOAD": str(self._folder / "machine.so"),
            "OPTSTREAM_MACHINE": str(self._folder / "control"),
        }

    def set_clock(self, ahead_seconds: int) -> None:
        """Jump, for all processes at once."""
        self.ahead_seconds = ahead_seconds
        self._control[:8] = struct.pack("q", ahead_seconds)

    def slow_disk(self, milliseconds: int) -> None:
        """Every write and sync waits for so long before it begins; 0: not any more."""
        self._control[8:16] = struct.pack("q", milliseconds * 1000)

    def let_time_pass(self) -> None:
        """Until those that sleep for long are awake; not those who would sleep for a day or longer."""
        (until,) = struct.unpack("q", self._control[16:])
        self._control[16:] = bytes(8)
        if self.ahead_seconds < until - int(time.time()) + 1 < self.ahead_seconds + A_DAY:
            self.set_clock(until - int(time.time()) + 1)


def without_preload() -> dict[str, str]:
    """This process's environment, for what runs elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
