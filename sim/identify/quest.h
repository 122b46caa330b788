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
    double layers, peak_blocks, whole_blocks; /* most in use: with all hits, without */
    double low_blocks, high_blocks;           /* 90% of what the engine may count */
    bool has_blocks;                          /* the configuration says how many */
    bool waits;                               /* requests wait for memory in some recording */
    double cached_frac; /* of the prompts' tokens, found in a pool without an end */
};

/* Finds the parameters. The caller owes quest_close, also after an error. */
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

/* A parameter that is not fitted, and why. */
IFL_PRINTF(4, 5)
void quest_leave(struct identified *found, enum parameter p, enum finding_state state,
                 const char *format, ...);
/* Which parameters are fitted at first. */
void quest_choose(struct quest *quest);
/* Leaves out the last parameter that the recordings do not determine. 1, 0 if there is none. */
int quest_leave_one(struct quest *quest, struct ifl_error *error);
/* The host may take less a layer than its profile says: less a step than nothing. */
double quest_least(const struct quest *quest, enum parameter p);
/* A parameter below its least value stays there. 1, 0 if there is none. */
int quest_bound_one(struct quest *quest, struct ifl_error *error);
/* The front end shows in requests that find a free server. */
int quest_leave_front(struct quest *quest, struct ifl_error *error);
/* The exchange shows where it takes a part of a step. */
int quest_probe_exchange(struct quest *quest, struct ifl_error *error);
/* A pool that the recordings leave open by half is not determined. */
void quest_leave_pool(struct quest *quest);
/* What a pool may be for which hardly a request waits. `asks`: those that wait show it, and it is
 * to be fitted from fit.value on. */
int quest_ask_pool(struct quest *quest, bool *asks, struct ifl_error *error);

#endif
