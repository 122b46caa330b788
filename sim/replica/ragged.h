/* Members of a cohort that speculate. In a tick each member gets one token, and one more for each
 * of its guesses that is accepted ("holds"), so that members advance by different counts.
 *
 * A tick adds to the members' counts of tokens, which are one array in order of start. It examines
 * a member further only when the member's count has come to its look_at. As in any cohort
 * (cohort.h), the record of a member is brought up to date when it is read, and its tokens have the
 * times of the cohort's ticks. Guesses take K/V slots while they are verified: a member holds
 * blocks for its guesses and for lookahead_tokens behind them.
 *
 * If all rates are 0 or 1 each step yields as many tokens as the one before. Such ticks are called
 * even: a member's sums are counted only when it leaves. */
#ifndef SIM_REPLICA_RAGGED_H
#define SIM_REPLICA_RAGGED_H

#include "replica/kv/block.h"
#include "replica/live_request.h"

struct cohort;

enum { RAGGED_MAX_DRAFTS = 64 };

/* The probability that a guess is accepted, by its place. The j-th guess of a step is verified only
 * if all guesses before it held. `depth` is the last place that can hold: the depth of a tree of
 * guesses, all nodes of which are computed. */
struct acceptance {
    int32_t depth;
    uint64_t below[RAGGED_MAX_DRAFTS]; /* the guess holds if the draw, shifted right by one, is
                                          below this */
};

/* Converts an acceptance rate, from 0 to 1, to `below`. */
static inline uint64_t acceptance_below(double rate)
{
    return rate >= 1 ? UINT64_C(1) << 63 : (uint64_t)(rate * 0x1p63);
}

/* Sums over verified guesses. */
struct ragged_sums {
    int64_t n_steps;   /* steps, counted per request, with and without guesses */
    int64_t n_emitted; /* tokens that these steps yielded */
    int64_t n_drafted;
    int64_t n_with[RAGGED_MAX_DRAFTS + 1]; /* steps of requests with so many guesses */
    int64_t n_held[RAGGED_MAX_DRAFTS + 1]; /* steps of requests in which so many held */
};

struct ragged_member {
    struct live_request *r;
    const struct acceptance *accepts;
    uint64_t key;     /* key of its random draws */
    int32_t n_before; /* tokens computed minus tokens of the answer: a constant of the member */
    int32_t n_output;
    int32_t capacity;   /* tokens for which it holds blocks */
    int32_t lacks_at;   /* it lacks a block once it has so many tokens of its answer, unless it
                           holds blocks for the longest sequence of the model */
    int32_t n_lacking;  /* blocks that it lacks for the next tick */
    int32_t work_at;    /* its entry in the description of the step in flight */
    int16_t n_draft;    /* guesses in the next step, or in the step in flight */
    int16_t n_sure;     /* of these, guesses that hold for certain; -1: the number is drawn */
    bool may_finish;    /* the next tick may yield its last token */
    int64_t since_even; /* value of n_even up to which `sums` includes the member's even ticks */
};

struct ragged_options {
    bool on;
    uint64_t seed;
    int32_t max_drafts;
    int32_t max_model_tokens;
    int32_t lookahead_tokens;         /* tokens behind its guesses for which a decode holds
                                         blocks */
    bool prompts_look_ahead;          /* a prompt holds these blocks, too */
    const struct acceptance *accepts; /* borrowed: rates of all requests, unless one of the next
                                         two applies */
    const struct acceptance *const *of_client; /* [n_clients] rates of some clients; NULL: no
                                                  client has its own */
    const struct acceptance *of_percent;       /* [101] rates of requests that state their own, in
                                                  percent */
};

struct ragged {
    /* sums for the next tick, or the tick in flight */
    bool prepared; /* the sums below are up to date */
    int32_t n_draft_tokens, n_draft_seqs, most_drafts;
    int32_t n_with_most;  /* members with most_drafts */
    int32_t n_lacking;    /* blocks */
    int32_t n_may_finish; /* members */
    int32_t n_all; /* guesses per member, if the same number was asked for all and each has it;
                      else -1 */
    int32_t n_step_accepted; /* accepted guesses of the last tick */
    struct ragged_options options;
    struct ragged_member *of; /* [n] */
    /* Arrays with one entry per member: the fields that a tick reads and writes for all members. */
    int32_t *n_out;    /* [n] tokens of the member's answer */
    int32_t *look_at;  /* [n] value of n_out from which on the member may finish, lacks blocks, or
                          has its guesses cut */
    int32_t *n_step;   /* [n] tokens that the member's last step yielded, or that each even step
                          yields */
    uint32_t *lacking; /* [n_listed] indices of members that lack blocks, in order of start; valid
                          if `listed` */
    size_t n_listed;
    bool listed;
    size_t n, cap;
    size_t likely;                  /* index at which ragged_find looks first */
    struct live_request **finished; /* members that finished in the last tick, in order of start;
                                       those from next_finished on have not been removed yet */
    size_t n_finished, next_finished;
    struct ragged_sums sums; /* sums, except those of even ticks of present members */
    int64_t n_even;          /* even ticks so far: nothing was drawn, and each member got n_step
                                tokens */
    size_t n_drawn;          /* members whose accepted guesses are drawn (n_sure < 0) */
    bool told;               /* the executor reports how many guesses hold: no tick is even */
};

/* Returns the member of r, which must be in the cohort. */
struct ragged_member *ragged_find(const struct ragged *ragged, const struct live_request *r);
int ragged_reserve(struct ragged *ragged, size_t n); /* 0 or IFL_E_NOMEM */
void ragged_destroy(struct ragged *ragged);
/* Makes r a member, without guesses. */
void ragged_add(struct ragged *ragged, struct live_request *r, struct kv_block block);
/* Takes r out. Its record must be up to date. */
void ragged_remove(struct ragged *ragged, const struct live_request *r);
/* Brings the record of r up to date. */
void ragged_catch_up(const struct ragged *ragged, struct live_request *r);

/* Computed tokens of the member. */
static inline int32_t ragged_computed(const struct ragged *ragged, const struct ragged_member *m)
{
    return m->n_before + ragged->n_out[m - ragged->of];
}
/* Limits n guesses to the number that fits into the model's length behind n_computed tokens. */
int32_t ragged_cut(const struct ragged *ragged, int32_t n, int32_t n_computed);
void ragged_set_draft(struct ragged *ragged, struct ragged_member *m, int32_t n);
/* Call it when the number of blocks that the member r holds has changed. */
void ragged_note_blocks(struct ragged *ragged, const struct live_request *r, struct kv_block block);
/* Sums up the guesses of all members, cut as for the next tick, into n_draft_tokens and the fields
 * below it. Returns the blocks that the members lack for this tick. */
int32_t ragged_prepare(struct ragged *ragged, struct kv_block block);

/* Returns how many guesses of the member's step hold, as drawn from its key. */
int32_t ragged_drawn(const struct ragged *ragged, const struct ragged_member *m);
/* Blocks that member i lacks for the next tick. */
static inline int32_t ragged_lacks(const struct ragged *ragged, size_t i)
{
    return ragged->n_out[i] >= ragged->look_at[i] ? ragged->of[i].n_lacking : 0;
}
/* Returns the index of the next member that lacks blocks, or ragged->n if there is none. *at must
 * be 0 for the first call. */
static inline size_t ragged_next_lacking(const struct ragged *ragged, size_t *at)
{
    while (*at < (ragged->listed ? ragged->n_listed : ragged->n)) {
        const size_t i = ragged->listed ? ragged->lacking[(*at)++] : (*at)++;
        if (ragged_lacks(ragged, i) > 0)
            return i;
    }
    return ragged->n;
}
/* Tokens that the member got in the last tick. */
static inline int32_t ragged_emitted(const struct ragged *ragged, const struct ragged_member *m)
{
    return ragged->n_step[m - ragged->of];
}
/* Returns the sums over all ticks so far. */
struct ragged_sums ragged_sums(const struct ragged *ragged);
/* Sets the guesses of all members alike for the next tick. */
void ragged_set_drafts(struct ragged *ragged, int32_t n);
/* Ends a tick: gives each member its tokens and lists the members with their last token in
 * `finished`. n_accepted: the accepted guesses by work_at, as the executor reports them; NULL: they
 * are drawn. Returns the tokens of all members. */
int64_t ragged_tick(struct ragged *ragged, struct kv_block block, const int32_t *n_accepted);

#endif
