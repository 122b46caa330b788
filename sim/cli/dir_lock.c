#include "cli/dir_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLDER_BYTES = 128 };

static int fail_held(int fd, const char *dir, struct ifl_error *error)
{
    char holder[HOLDER_BYTES] = "another process";
    const ssize_t n = pread(fd, holder, sizeof holder - 1, 0);
    if (n > 0)
        holder[n] = '\0';
    return ifl_fail_at(error, dir, 0, 0,
                       "%s writes there, expected one run at a time in a directory", holder);
}

static void write_holder(int fd)
{
    char host[HOLDER_BYTES / 2] = "", holder[HOLDER_BYTES];
    gethostname(host, sizeof host - 1);
    const int n = snprintf(holder, sizeof holder, "process %ld on %s", (long)getpid(), host);
    /* A failure is ignored: only the error of another run would show this text. */
    if (ftruncate(fd, 0) < 0 || pwrite(fd, holder, (size_t)n, 0) < 0)
        return;
}

/* The run that held the lock may remove the file between this run's open and its lock. */
static bool still_there(int fd, const char *path)
{
    struct stat opened, there;
    return fstat(fd, &opened) == 0 && stat(path, &there) == 0 && opened.st_dev == there.st_dev &&
           opened.st_ino == there.st_ino;
}

static bool is_held(int code)
{
    return code == EACCES || code == EAGAIN;
}

/* 1: the file was removed before it was locked, so the lock is to be tried again. */
static int try_once(struct dir_lock *lock, const char *dir, struct ifl_error *error)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc = 0;
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock->fd < 0)
        return ifl_fail_at(error, lock->path, 0, 0, "cannot open: %s", strerror(errno));
    if (fcntl(lock->fd, F_SETLK, &whole) == 0) {
        rc = !still_there(lock->fd, lock->path);
        lock->taken = rc == 0;
    } else if (is_held(errno)) {
        rc = fail_held(lock->fd, dir, error);
    } else {
        unlink(lock->path);
    }
    if (!lock->taken)
        close(lock->fd);
    return rc;
}

int dir_lock_take(struct dir_lock *lock, const char *dir, struct ifl_error *error)
{
    ifl_assert(strlen(dir) < 512);
    int rc = 1;
    snprintf(lock->path, sizeof lock->path, "%.511s/.lock", dir);
    while (rc > 0)
        rc = try_once(lock, dir, error);
    if (lock->taken)
        write_holder(lock->fd);
    return rc;
}

void dir_lock_release(struct dir_lock *lock)
{
    if (!lock->taken)
        return;
    unlink(lock->path);
    close(lock->fd);
    lock->taken = false;
}
