/* The processes that fly a study together: one, or those that mpirun or srun has started.
 *
 * They share counters and meet at the end; files they share through the output directory. Nobody is
 * the master: a counter is read and raised by MPI's one-sided operations. */
#ifndef SIM_CLI_RANKS_H
#define SIM_CLI_RANKS_H

#include <stdint.h>

#include "inflight/error.h"

enum ranks_counter { RANKS_CLAIMED, RANKS_POINTS, RANKS_REQUESTS, RANKS_N_COUNTERS };

/* Once, before the others, by every process. Without MPI, or started without it: one rank. */
int ranks_join(struct ifl_error *error);
void ranks_leave(void);
int ranks_n(void);
int ranks_own(void); /* from 0 */

/* Raises a counter that all ranks share by n and returns what it was. Any thread may. */
uint64_t ranks_add(enum ranks_counter counter, uint64_t n);

/* The others wait for the last; counters move on meanwhile. */
void ranks_meet(void);
/* Meets, then tells everyone the error of the lowest rank whose code is negative: returns it. */
int ranks_agree(int code, struct ifl_error *error);

#endif
