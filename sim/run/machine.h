/* The machine that a configuration describes: a model on a hardware, how many K/V blocks fit into
 * its memory, and what steps cost. */
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
    bool has_model, has_hardware; /* the configuration names a model (hardware); otherwise that
                                     part is zeroed */
    struct stages stages;         /* stages of the pipeline; without a model they are equal parts
                                     of a step */
    struct model draft_model;     /* the model that guesses tokens, if tokens are guessed */
    struct model model, stage;    /* stage: the part of the model that the fullest stage holds */
    struct platform platform;     /* hardware, with the configured deployment */
};

int machine_load(struct machine *machine, const struct config *config, struct profile_shelf *shelf,
                 struct ifl_error *error);
/* Fills all limits, with n_clients 1. arithmetic: how the blocks were counted, or why the
 * configured number is doubted; empty if there is nothing to say. Returns 0 or the code of `error`.
 */
int machine_size_pool(const struct machine *machine, const struct config *config,
                      struct ifl_limits *limits, char arithmetic[MACHINE_TEXT_BYTES],
                      struct ifl_error *error);
/* Returns the rule for layers with a window that have blocks of their own; zeroed if there are
 * none. */
struct windows_rule machine_windows(const struct machine *machine, const struct config *config);
/* Returns serving.kv.keep with the number of layers of the model. */
struct keep machine_keep(const struct machine *machine, const struct config *config);
/* Creates the cost model of computed steps (cost_computed, not COST_RECORDED), for the caller to
 * destroy. Returns NULL, with `error` set, on failure. */
struct cost *machine_cost(const struct machine *machine, const struct config *config,
                          struct ifl_error *error);
/* Returns the sizes of K/V that moves between replicas. */
struct handover_size machine_kv_moved(const struct machine *machine, const struct config *config);
/* Writes to `text` the keys of cost.* that are set but that the cost model does not use; empty if
 * there are none. */
void machine_unused_costs(const struct config *config, char text[MACHINE_TEXT_BYTES]);
/* Fills summary->assumed: which simulated durations rest on no measurement, and which parts of the
 * configuration the durations leave out. max_model_tokens is that of the limits. */
void machine_disclose(const struct machine *machine, const struct config *config,
                      int32_t max_model_tokens, struct ifl_summary *summary);

#endif
