/* One identification while it runs: the state that the files share which choose parameters, fit
 * them and look for rivals. */
#ifndef SIM_IDENTIFY_QUEST_H
#define SIM_IDENTIFY_QUEST_H

#include "identify/fit.h"
#include "identify/identify.h"

struct quest {
    const struct identify_options *options;
    struct identified *found;
    struct residuals residuals;
    struct fit fit;
    struct machine *machine;                  /* as the configuration says */
    double layers, peak_blocks, whole_blocks; /* most blocks in use: peak_blocks with all cache
                                                 hits, whole_blocks without */
    double low_blocks, high_blocks;           /* 90% of what the engine may count */
    bool has_blocks;                          /* the configuration says how many */
    bool waits;                               /* requests wait for memory in some recording */
    double cached_frac; /* share of the prompts' tokens found in the cache of an unlimited pool */
};

/* Finds the parameters. The caller must call quest_close, after an error, too. */
int quest_search(struct quest *quest, const struct identify_options *options,
                 struct identified *found, struct ifl_error *error);
void quest_close(struct quest *quest);

/* ---- start.c ---- */

/* The machine of a configuration, and the limits with the pool that its rule makes: blocks as a log
 * counts them, the null block included. */
int quest_load_machine(const struct config *config, struct profile_shelf *profiles,
                       struct machine *machine, struct ifl_limits *limits, struct ifl_error *error);
/* The machine, and the values that configuration and profile say. */
int quest_start(struct quest *quest, struct ifl_error *error);
/* Fills `waits` and the blocks in use. */
int quest_look_for_waits(struct quest *quest, struct ifl_error *error);

/* ---- choose.c ---- */

/* Records that a parameter is not fitted, and why. */
IFL_PRINTF(4, 5)
void quest_leave(struct identified *found, enum parameter p, enum finding_state state,
                 const char *format, ...);
/* Which parameters are fitted at first. */
void quest_choose(struct quest *quest);
/* Leaves out the last parameter that the recordings do not determine. Returns 1, or 0 if there is
 * none. */
int quest_leave_one(struct quest *quest, struct ifl_error *error);
/* Returns the least value of a parameter: the host's time per layer may be less than in its
 * profile, so its time per step may be below 0. */
double quest_least(const struct quest *quest, enum parameter p);
/* Fixes a parameter that is below its least value at that value. Returns 1, or 0 if there is none.
 */
int quest_bound_one(struct quest *quest, struct ifl_error *error);
/* Leaves out the front end unless enough requests find a free server, in which alone it shows. */
int quest_leave_front(struct quest *quest, struct ifl_error *error);
/* Leaves out the exchange rate if no time per token grows by 1% at an eighth of it. */
int quest_probe_exchange(struct quest *quest, struct ifl_error *error);
/* Leaves out the pool if the upper end of its interval is at least 1.5 times the lower end. */
void quest_leave_pool(struct quest *quest);
/* Bounds a pool for which hardly any request waits. *asks: the few requests that wait determine it,
 * and it is to be fitted from fit.value on. */
int quest_ask_pool(struct quest *quest, bool *asks, struct ifl_error *error);

#endif
