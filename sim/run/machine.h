/* What a point is flown on, by its configuration: a model on a hardware, how many K/V blocks that
 * leaves room for, and what its steps cost. */
#ifndef SIM_RUN_MACHINE_H
#define SIM_RUN_MACHINE_H

#include "inflight/report.h"
#include "inflight/step.h"

#include "config/config.h"
#include "cost/cost.h"
#include "cost/stages.h"
#include "run/profile_shelf.h"

enum { MACHINE_TEXT_BYTES = 1024 };

struct machine {
    bool has_model, has_hardware; /* the configuration names one; else it is zeroed */
    struct stages stages;         /* of the pipeline; equal parts of a step without a model */
    struct model draft_model;     /* that guesses tokens, where any are guessed */
    struct model model, stage;    /* stage: the part of the model that the fullest stage holds */
    struct platform platform;     /* with the deployment that the configuration says */
};

int machine_load(struct machine *machine, const struct config *config, struct profile_shelf *shelf,
                 struct ifl_error *error);
/* Fills all limits; n_clients is 1. `arithmetic`: how the blocks were counted, or why the given
 * number is doubted; empty if there is nothing to say. */
int machine_size_pool(const struct machine *machine, const struct config *config,
                      struct ifl_limits *limits, char arithmetic[MACHINE_TEXT_BYTES],
                      struct ifl_error *error);
/* Of layers with a window, in blocks of their own; zero: there are none. */
struct windows_rule machine_windows(const struct machine *machine, const struct config *config);
/* serving.kv.keep, with the layers of the model. */
struct keep machine_keep(const struct machine *machine, const struct config *config);
/* The cost model that steps are computed with (cost_computed, not COST_RECORDED), which the caller
 * destroys. NULL, and `error`, on failure. */
struct cost *machine_cost(const struct machine *machine, const struct config *config,
                          struct ifl_error *error);
/* What K/V that moves between replicas is made of. */
struct handover_size machine_kv_moved(const struct machine *machine, const struct config *config);
/* Names the keys of cost.* that are set and that its model does not use; empty if there are none.
 */
void machine_unused_costs(const struct config *config, char text[MACHINE_TEXT_BYTES]);
/* Fills summary->assumed: which of the simulated durations rest on no measurement, and what of the
 * configuration they leave out. max_model_tokens is that of the limits. */
void machine_disclose(const struct machine *machine, const struct config *config,
                      int32_t max_model_tokens, struct ifl_summary *summary);

#endif
