/* A wall clock that can be stepped from outside, for one process: preloaded, it adds to the
 * realtime clocks the nanoseconds that it reads from the file named by QUORUMLOCK_CLOCK_FILE,
 * anew at each call. Monotonic clocks are left alone, as a real step leaves them.
 *
 * The kernel is asked by system call, not through the C library's own functions: finding those
 * (dlsym) may allocate, and redis-server's allocator reads the clock when it starts. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long long second = 1000000000LL;
static int offset_file = -1;

__attribute__((constructor)) static void open_offset(void) {
	const char *path = getenv("QUORUMLOCK_CLOCK_FILE");
	if (path) offset_file = open(path, O_RDONLY | O_CLOEXEC);
}

static long long offset(void) {
	char text[32];
	ssize_t n = offset_file < 0 ? 0 : pread(offset_file, text, sizeof text - 1, 0);
	if (n <= 0) return 0;
	text[n] = 0;
	return strtoll(text, 0, 10);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	if (syscall(SYS_clock_gettime, id, ts)) return -1;
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_TAI) return 0;
	long long now = ts->tv_sec * second + ts->tv_nsec + offset();
	ts->tv_sec = now / second;
	ts->tv_nsec = now % second;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec ts;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out) {
	struct timespec ts;
	if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
	if (out) *out = ts.tv_sec;
	return ts.tv_sec;
}
