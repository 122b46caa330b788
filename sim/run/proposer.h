/* The proposer guesses tokens for an engine to verify: by a look-up in the request's own text, or
 * with a draft model on an engine of its own.
 *
 * The draft model's K/V has the same block numbers as the target's, with slots of its own size, so
 * that blocks are swapped, copied and shared for both alike. The draft model computes the same
 * prompts. For a decode it first computes the tokens that it lacks, up to the last one, and then
 * one guess a pass. */
#ifndef SIM_RUN_PROPOSER_H
#define SIM_RUN_PROPOSER_H

#include "inflight/engine.h"

#include "run/engine_job.h"
#include "run/token_ids.h"

struct proposer_options {
    const struct ifl_engine *engine;       /* NULL: guesses come from a look-up */
    struct ifl_engine_options open;        /* options of the draft model, with the target's
                                              limits */
    int32_t longest_match, shortest_match; /* look-up: how many last tokens must have occurred
                                              before */
    size_t n_requests;
};

struct proposer {
    const struct ifl_engine *engine;
    void *self;
    int32_t longest_match, shortest_match;
    int32_t *n_computed; /* [n_requests] by serial: tokens that have K/V of the draft model */
    struct engine_job pass;
    int32_t *seq_of; /* for a pass: which sequence of the job each of its sequences is */
    int32_t *text;
    size_t cap_seqs, cap_text;
};

/* Zeroed memory is valid for proposer_close. */
int proposer_open(struct proposer *proposer, const struct proposer_options *options,
                  struct ifl_error *error);
void proposer_close(struct proposer *proposer);
/* Fills in the guessed tokens of the job, of which all other tokens must be known. If a look-up
 * finds no occurrence, it guesses the last token again. */
int proposer_guess(struct proposer *proposer, struct engine_job *job, const struct token_ids *ids,
                   struct ifl_error *error);

#endif
