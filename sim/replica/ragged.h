/* Members of a cohort that speculate. In a tick each gets one token, and one for each of its
 * guesses that holds, so that members have different counts.
 *
 * A tick adds to the members' counts of tokens, which are one array in order of start. It examines
 * a member further only when the member's count has come to its look_at. The record of a member is
 * brought up to date when it is read, as in any cohort (cohort.h); its tokens have the times of the
 * cohort's ticks. Guesses take K/V slots while they are verified: a member holds blocks for its
 * guesses and for lookahead_tokens behind them.
 *
 * If all rates are 0 or 1 each step yields as many tokens as the one before. Such ticks are even:
 * nothing is counted for a member until it leaves. */
#ifndef SIM_REPLICA_RAGGED_H
#define SIM_REPLICA_RAGGED_H

#include "replica/kv/block.h"
#include "replica/live_request.h"

struct cohort;

enum { RAGGED_MAX_DRAFTS = 64 };

/* How likely guesses hold, by their place. The j-th of a step is looked at only if all before it
 * held. Behind the last place none does: the depth of a tree of guesses, all nodes of
 * which are computed. */
struct acceptance {
    int32_t depth;
    uint64_t below[RAGGED_MAX_DRAFTS]; /* it holds if the draw, shifted right by one, is below */
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
    uint64_t key;     /* of its draws */
    int32_t n_before; /* tokens computed less those of the answer, which stays the same */
    int32_t n_output;
    int32_t capacity;   /* tokens for which it holds blocks */
    int32_t lacks_at;   /* with so many tokens of its answer it lacks a block, unless it has enough
                           for the longest sequence of the model */
    int32_t n_lacking;  /* blocks, for the next tick */
    int32_t work_at;    /* in the description of the step in flight */
    int16_t n_draft;    /* in the next step, or in the one in flight */
    int16_t n_sure;     /* of these, guesses that surely hold; -1: it is drawn */
    bool may_finish;    /* with the next tick */
    int64_t since_even; /* even ticks before those that `sums` lacks */
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
    /* of the next tick, or the one in flight */
    bool prepared; /* the sums below are up to date */
    int32_t n_draft_tokens, n_draft_seqs, most_drafts;
    int32_t n_with_most;  /* members with most_drafts */
    int32_t n_lacking;    /* blocks */
    int32_t n_may_finish; /* members */
    int32_t n_all; /* the guesses that were asked for all members alike, and that each has; or -1 */
    int32_t n_step_accepted; /* of the last tick */
    struct ragged_options options;
    struct ragged_member *of; /* [n] */
    /* Of each member, apart from it: what a tick reads and writes of all of them. */
    int32_t *n_out;    /* [n] tokens of its answer */
    int32_t *look_at;  /* [n] with so many it may finish, lacks blocks, or its guesses are cut */
    int32_t *n_step;   /* [n] tokens that its last step yielded, or that each does */
    uint32_t *lacking; /* [n_listed] where members lack blocks, in order of start, if `listed` */
    size_t n_listed;
    bool listed;
    size_t n, cap;
    size_t likely;                  /* where ragged_find looks first */
    struct live_request **finished; /* with the last tick, in order of start; from next_finished on
                                       those that are still here */
    size_t n_finished, next_finished;
    struct ragged_sums sums; /* but for even ticks of members that are still here */
    int64_t n_even;          /* ticks for which nothing was drawn: each yielded n_step */
    size_t n_drawn;          /* members with a chance */
    bool told;               /* an executor says how many hold: no tick is even */
};

/* The member of r, which must be in the cohort. */
struct ragged_member *ragged_find(const struct ragged *ragged, const struct live_request *r);
int ragged_reserve(struct ragged *ragged, size_t n); /* 0 or IFL_E_NOMEM */
void ragged_destroy(struct ragged *ragged);
/* Makes r a member, without guesses. */
void ragged_add(struct ragged *ragged, struct live_request *r, struct kv_block block);
/* Takes r out. Its record must be up to date. */
void ragged_remove(struct ragged *ragged, const struct live_request *r);
/* Brings the record of r up to date. */
void ragged_catch_up(const struct ragged *ragged, struct live_request *r);

/* Tokens of the member that are computed. */
static inline int32_t ragged_computed(const struct ragged *ragged, const struct ragged_member *m)
{
    return m->n_before + ragged->n_out[m - ragged->of];
}
/* n guesses, cut to what the model's length leaves behind n_computed tokens. */
int32_t ragged_cut(const struct ragged *ragged, int32_t n, int32_t n_computed);
void ragged_set_draft(struct ragged *ragged, struct ragged_member *m, int32_t n);
/* r, a member, holds other blocks than before. */
void ragged_note_blocks(struct ragged *ragged, const struct live_request *r, struct kv_block block);
/* Sums up the guesses of all members, cut as the next tick takes them: n_draft_tokens and those
 * below it. Returns the blocks that the members lack for it. */
int32_t ragged_prepare(struct ragged *ragged, struct kv_block block);

/* Guesses of the member's step that hold, as drawn. */
int32_t ragged_drawn(const struct ragged *ragged, const struct ragged_member *m);
/* Blocks that member i lacks for the next tick. */
static inline int32_t ragged_lacks(const struct ragged *ragged, size_t i)
{
    return ragged->n_out[i] >= ragged->look_at[i] ? ragged->of[i].n_lacking : 0;
}
/* The next member that lacks blocks, n if there is none. *at is 0 before the first. */
static inline size_t ragged_next_lacking(const struct ragged *ragged, size_t *at)
{
    while (*at < (ragged->listed ? ragged->n_listed : ragged->n)) {
        const size_t i = ragged->listed ? ragged->lacking[(*at)++] : (*at)++;
        if (ragged_lacks(ragged, i) > 0)
            return i;
    }
    return ragged->n;
}
/* Tokens that r, a member, got with the last tick. */
static inline int32_t ragged_emitted(const struct ragged *ragged, const struct ragged_member *m)
{
    return ragged->n_step[m - ragged->of];
}
/* Of all ticks so far. */
struct ragged_sums ragged_sums(const struct ragged *ragged);
/* Sets the guesses of all members alike for the next tick. */
void ragged_set_drafts(struct ragged *ragged, int32_t n);
/* All members have their tokens. Those that had their last one are in `finished`. n_accepted: by
 * work_at, as an executor says; NULL: drawn. Returns the tokens. */
int64_t ragged_tick(struct ragged *ragged, struct kv_block block, const int32_t *n_accepted);

#endif
