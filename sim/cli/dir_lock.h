/* A lock on the file DIR/.lock, so that one run at a time writes into a directory. The system
 * releases it when the process ends, even by a signal. */
#ifndef SIM_CLI_DIR_LOCK_H
#define SIM_CLI_DIR_LOCK_H

#include <stdbool.h>

#include "inflight/error.h"

struct dir_lock { /* zeroed: not taken */
    bool taken;
    int fd;
    char path[528];
};

/* Takes the lock. Returns IFL_E_INPUT if another process holds it; the error names the process and
 * its machine. Returns 0 with `taken` false if the file system has no locks. `dir` has at most 511
 * characters. */
int dir_lock_take(struct dir_lock *lock, const char *dir, struct ifl_error *error);
/* Releases the lock and removes the file. */
void dir_lock_release(struct dir_lock *lock);

#endif
