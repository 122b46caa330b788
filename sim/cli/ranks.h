/* The processes (ranks) that simulate a study together: one, or those that mpirun or srun has
 * started. */
#ifndef SIM_CLI_RANKS_H
#define SIM_CLI_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

enum ranks_counter {
    RANKS_CLAIMED,
    RANKS_POINTS,  /* points that are finished */
    RANKS_SKIPPED, /* of these, points that an earlier run had finished */
    RANKS_REQUESTS,
    RANKS_N_COUNTERS
};

/* To be called once by every process, before the other functions. A process that was built or
 * started without MPI is one rank. */
int ranks_join(struct ifl_error *error);
void ranks_leave(void);
int ranks_n(void);
int ranks_own(void); /* from 0 */

/* Raises a shared counter by n and returns its value before. Any thread may call it. */
uint64_t ranks_add(enum ranks_counter counter, uint64_t n);

/* Returns when all ranks have called it. Counters can be raised meanwhile. */
void ranks_meet(void);
/* Waits for all ranks, then gives every rank the code and the error of the lowest rank with a
 * negative code. 0 if no rank has one. */
int ranks_agree(int code, struct ifl_error *error);

/* What the module inflight_mpi exports: the functions above. It is loaded only if a launcher has
 * started several processes. */
struct ranks_module {
    size_t n_bytes; /* of this struct */
    int (*join)(struct ifl_error *error);
    void (*leave)(void);
    int (*n)(void);
    int (*own)(void);
    uint64_t (*add)(enum ranks_counter counter, uint64_t n);
    void (*meet)(void);
    int (*agree)(int code, struct ifl_error *error);
};

#endif
