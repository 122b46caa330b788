/* The pools of K/V that TensorRT-LLM's PyTorch executor allocates one after the other: one for a
 * run that measures memory, then that of the server (_torch/pyexecutor/_util.py, KvCacheCreator).
 * Where the workers print no lines of Python, "Estimated max" does not stand between them. Then a
 * pool that follows a whole one of the same server counts in its place. Pools of several windows
 * stand side by side, in front of the line that says what was allocated (kvCacheManager.cpp). */
#ifndef SIM_IMPORT_LOG_POOLS_H
#define SIM_IMPORT_LOG_POOLS_H

#include <regex.h>

#include "import/log_lines.h"

struct log_pools {
    bool has_any;   /* a line of a pool was read */
    bool is_whole;  /* what was allocated for the first was read, too */
    bool is_closed; /* no pool comes in place of another: this was the second, or another server
                       starts */
};

/* Notes a start behind a pool: what follows is of another server. */
void log_pools_see(struct log_pools *pools, const char *line);
/* Takes a line of a pool with its match. If it is that of the second pool, the facts of the first
 * one are removed. Returns 0 or a negative code. */
int log_pools_take(struct log_pools *pools, struct facts *facts, const struct log_line *of,
                   const char *line, const regmatch_t *groups, struct place at,
                   struct ifl_error *error);

#endif
