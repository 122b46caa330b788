/* Members of a cohort that speculate: with a tick each gets a token and as many more as hold of
 * those that were guessed for it, so that no two have the same count.
 *
 * What a tick changes of a member stands in one cache line, in order of start. Its record is
 * brought up to date when it is read, as that of any member (cohort.h). Guesses take K/V slots
 * while they are verified; a member holds blocks for them, and for lookahead_tokens behind. */
#ifndef SIM_REPLICA_RAGGED_H
#define SIM_REPLICA_RAGGED_H

#include "replica/kv/block.h"
#include "replica/live_request.h"

struct cohort;

enum { RAGGED_MAX_DRAFTS = 64, RAGGED_MAX_DEPTH = 16 };

/* How likely guesses hold, by their place. The j-th of a step is looked at only if all before it
 * held. Behind the last place none does: the depth of a tree of guesses, whose nodes all are
 * computed. */
struct acceptance {
    int32_t depth;
    uint64_t below[RAGGED_MAX_DEPTH]; /* it holds if the draw, shifted right by one, is below */
};

/* rate: of 1. */
static inline uint64_t acceptance_below(double rate)
{
    return rate >= 1 ? UINT64_C(1) << 63 : (uint64_t)(rate * 0x1p63);
}

/* Sums over verified guesses. */
struct ragged_sums {
    int64_t n_steps;   /* of requests, with and without guesses */
    int64_t n_emitted; /* tokens that they yielded */
    int64_t n_drafted;
    int64_t n_with[RAGGED_MAX_DRAFTS + 1]; /* steps of requests with so many guesses */
    int64_t n_held[RAGGED_MAX_DRAFTS + 1]; /* steps of requests in which so many held */
};

struct ragged_member {
    struct live_request *r;
    const struct acceptance *accepts;
    uint64_t key; /* of its draws */
    int64_t last_token_ns, max_itl_ns;
    int32_t n_computed, n_out, n_output;
    int32_t capacity;  /* tokens for which it holds blocks */
    int16_t n_draft;   /* in the next step, or in the one in flight */
    int16_t n_emitted; /* by the last one */
    int32_t work_at;   /* in the description of the step in flight */
};

struct ragged_options {
    bool on;
    uint64_t seed;
    int32_t max_drafts;
    int32_t max_model_tokens;
    int32_t lookahead_tokens;         /* for which a decode holds blocks behind its guesses */
    bool prompts_look_ahead;          /* a prompt holds them, too */
    const struct acceptance *accepts; /* borrowed: of all, or */
    const struct acceptance *const *of_client; /* [n_clients] of some clients; NULL: none */
    const struct acceptance *of_percent;       /* [101] of requests that say so themselves */
};

struct ragged {
    struct ragged_options options;
    struct ragged_member *of; /* [n] */
    size_t n, cap;
    struct live_request **finished; /* with the last tick, in order of start; from next_finished on
                                       those that are still here */
    size_t n_finished, next_finished;
    struct ragged_sums sums;
    /* of the next tick, or the one in flight */
    bool prepared; /* the sums below are up to date */
    int32_t n_draft_tokens, n_draft_seqs, most_drafts;
    int32_t n_lacking; /* blocks */
    int32_t n_all;     /* what was asked for all members alike, and no one has otherwise; or -1 */
    bool may_finish;
    int32_t n_step_accepted; /* of the last tick */
};

/* The member of r, which must be in the cohort. */
struct ragged_member *ragged_find(const struct ragged *ragged, const struct live_request *r);
int ragged_reserve(struct ragged *ragged, size_t n); /* 0 or IFL_E_NOMEM */
void ragged_destroy(struct ragged *ragged);
/* Makes r a member, without guesses. */
void ragged_add(struct ragged *ragged, struct live_request *r, struct kv_block block);
/* Takes r out, whose record must be up to date. */
void ragged_remove(struct ragged *ragged, const struct live_request *r);
/* Brings the record of r up to date. */
void ragged_catch_up(const struct ragged *ragged, struct live_request *r);

/* n guesses, cut to what the model's length leaves behind n_computed tokens. */
int32_t ragged_cut(const struct ragged *ragged, int32_t n, int32_t n_computed);
static inline void ragged_set_draft(struct ragged *ragged, struct ragged_member *m, int32_t n)
{
    const int32_t n_draft = ragged_cut(ragged, n, m->n_computed);
    ragged->prepared = ragged->prepared && n_draft == m->n_draft;
    m->n_draft = (int16_t)n_draft;
}
/* r, a member, holds other blocks than before. */
void ragged_note_blocks(struct ragged *ragged, const struct live_request *r, struct kv_block block);
/* Slots for which a sequence holds blocks while n_computed tokens and one more are computed, with
 * n_draft guesses. */
static inline int32_t ragged_holds(const struct ragged *ragged, int32_t n_computed, int32_t n_draft)
{
    const int32_t n = n_computed + 1 + n_draft + ragged->options.lookahead_tokens;
    return ifl_min(n, ragged->options.max_model_tokens);
}
/* Sums up the guesses of all members, cut as the next tick takes them: n_draft_tokens and those
 * below it. Returns the blocks that the members lack for it. */
int32_t ragged_prepare(struct ragged *ragged, struct kv_block block);

/* Guesses of the member's step that hold, as drawn. */
int32_t ragged_drawn(const struct ragged_member *m);

struct ragged_tick {
    struct kv_block block;
    int64_t end_ns, last_end_ns; /* of this tick and the one before */
    const int32_t *n_accepted;   /* by work_at, as an executor says; NULL: drawn */
    int64_t *own_gap_ns;         /* [n] out: gaps of members other than end_ns - last_end_ns */
    size_t n_own_gaps;           /* out */
    int64_t n_emitted;           /* out */
};
/* Sets the guesses of all members alike for the next tick. */
void ragged_set_drafts(struct ragged *ragged, int32_t n);
/* All members have their tokens. Those that had their last one are in `finished`. */
void ragged_tick(struct ragged *ragged, struct ragged_tick *tick);

#endif
