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
