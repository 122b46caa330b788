/* One run at a time writes into a directory: a lock on the file DIR/.lock, which the system takes
 * back from a process that ends, however it ends. */
#ifndef SIM_CLI_DIR_LOCK_H
#define SIM_CLI_DIR_LOCK_H

#include <stdbool.h>

#include "inflight/error.h"

struct dir_lock { /* zeroed: not taken */
    bool taken;
    int fd;
    char path[528];
};

/* Where another process has it, IFL_E_INPUT, and a line that names the process and its machine.
 * `dir` has at most 511 characters. 0 but not taken: the file system has no locks. */
int dir_lock_take(struct dir_lock *lock, const char *dir, struct ifl_error *error);
/* Removes the file as well. */
void dir_lock_release(struct dir_lock *lock);

#endif
