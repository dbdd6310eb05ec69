/* Fails or kills a program at its Nth write, sync, truncate, rename or unlink below one folder. Loaded with LD_PRELOAD.
 *
 *   FAULT_UNDER   the folder, absolute and resolved
 *   FAULT_STATE   a file of 64 zero bytes, which all processes of one command share
 *   FAULT_LOG     a file that gets one line per counted call: "KIND PATH"
 *   FAULT_AT      N, from 1; 0 only counts
 *   FAULT_DO      one of `names`; "no space" holds for all later writes too, "short write" writes half
 *
 * Python, SQLite and git call libc through the dynamic linker, so their calls arrive here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault { NONE, BEFORE, AFTER, HALF, ENOSPACE, EIOERROR, SHORT };
static const char *const names[] = {
    "", "killed before", "killed after", "killed in half", "no space", "I/O error", "short write",
};
static struct { long calls, pid, fired; } *state;  /* pid: the first process, which is the command */
static const char *under;
static long at;
static enum fault fault;
static int log_file = -1;

/* Also called by a command that was forked from a process with the shim. */
__attribute__((constructor)) void fault_shim_start(void) {
    const char *shared = getenv("FAULT_STATE"), *log = getenv("FAULT_LOG");
    const char *chosen = getenv("FAULT_DO"), *n = getenv("FAULT_AT");
    under = getenv("FAULT_UNDER");
    if (!under || !shared || !chosen || !n) return;
    at = atol(n);
    for (int i = NONE; i <= SHORT; i++)
        if (!strcmp(chosen, names[i])) fault = i;
    int file = open(shared, O_RDWR | O_CLOEXEC);
    void *mapped = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return;
    state = mapped;
    if (log) log_file = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    __sync_bool_compare_and_swap(&state->pid, 0, getpid());
}

static void die(void) {
    kill((pid_t)state->pid, SIGKILL);
    kill(0, SIGKILL);
    for (;;) pause();
}

/* What to do with this call. */
static enum fault decide(const char *kind, const char *path) {
    size_t length = under ? strlen(under) : 0;
    if (!state || strncmp(path, under, length) || path[length] != '/') return NONE;
    long n = __sync_add_and_fetch(&state->calls, 1);
    char line[PATH_MAX + 16];
    int size = snprintf(line, sizeof line, "%s %s\n", kind, path + length + 1);
    if (log_file >= 0 && size > 0) syscall(SYS_write, log_file, line, (size_t)size);
    if (fault == ENOSPACE && state->fired && !strcmp(kind, "write")) return ENOSPACE;
    if (n != at) return NONE;
    state->fired = n;
    if (fault == BEFORE) die();
    return fault;
}

static enum fault decide_fd(const char *kind, int fd) {
    char link[40], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = state ? readlink(link, path, sizeof path - 1) : -1;
    if (size < 0) return NONE;
    path[size] = 0;
    return decide(kind, path);
}

/* A path that may be relative to an open folder, or to the working directory. */
static enum fault decide_at(const char *kind, int folder, const char *name) {
    char link[40] = "/proc/self/cwd", path[2 * PATH_MAX];
    if (name[0] == '/' || !state) return decide(kind, name);
    if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return NONE;
    snprintf(path + size, sizeof path - (size_t)size, "/%s", name);
    return decide(kind, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
/* `size` is what the call is going to write, where it writes. */
#define CALL(decision, size, call)                       \
    enum fault fault_here = decision;                    \
    switch (fault_here) {                                \
    case ENOSPACE: errno = ENOSPC; return -1;            \
    case EIOERROR: errno = EIO; return -1;               \
    case HALF: case SHORT: size -= size / 2; break;      \
    default: break;                                      \
    }                                                    \
    __typeof__(call) result = call;                      \
    if (fault_here == AFTER || fault_here == HALF) die(); \
    return result;
#define CALL_FD(kind, fd, call) size_t none = 0; CALL(decide_fd(kind, fd), none, call)
#define CALL_AT(kind, folder, path, call) size_t none = 0; CALL(decide_at(kind, folder, path), none, call)

ssize_t write(int fd, const void *data, size_t size) { CALL(decide_fd("write", fd), size, REAL(write)(fd, data, size)) }
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    CALL(decide_fd("write", fd), size, REAL(pwrite)(fd, data, size, place))
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    CALL(decide_fd("write", fd), size, REAL(pwrite64)(fd, data, size, place))
}
int fsync(int fd) { CALL_FD("sync", fd, REAL(fsync)(fd)) }
int fdatasync(int fd) { CALL_FD("sync", fd, REAL(fdatasync)(fd)) }
int ftruncate(int fd, off_t size) { CALL_FD("truncate", fd, REAL(ftruncate)(fd, size)) }
int ftruncate64(int fd, off64_t size) { CALL_FD("truncate", fd, REAL(ftruncate64)(fd, size)) }
int rename(const char *from, const char *to) { CALL_AT("rename", AT_FDCWD, to, REAL(rename)(from, to)) }
int renameat(int a, const char *from, int b, const char *to) {
    CALL_AT("rename", b, to, REAL(renameat)(a, from, b, to))
}
int link(const char *from, const char *to) { CALL_AT("rename", AT_FDCWD, to, REAL(link)(from, to)) }
int unlink(const char *path) { CALL_AT("unlink", AT_FDCWD, path, REAL(unlink)(path)) }
int unlinkat(int folder, const char *path, int flags) {
    CALL_AT("unlink", folder, path, REAL(unlinkat)(folder, path, flags))
}
