/* A replica: one engine's queues, KV pools and policy modules, and the step it is building.
 *
 * Life of a step:
 *
 *     replica_plan     asks the batching module, which acts through the step (step_builder.c)
 *     replica_commit   freezes the plan into a description for the executor
 *     ... the executor runs it ...
 *     replica_end      counts the tokens, ends requests, tells the modules
 *
 * replica_repeat stands in for replica_plan while a promise holds; where nothing can happen in
 * between, replica_end_tick, replica_stretch and replica_next_tick stand in for all of it. The
 * replica knows no clock and no executor; sim/flight.c drives it. */
#ifndef SIM_REPLICA_H
#define SIM_REPLICA_H

#include "inflight/executor.h"
#include "inflight/policy.h"
#include "inflight/report.h"

#include "cohort.h"
#include "config/config.h"
#include "kv/pool.h"
#include "live_request.h"
#include "waiting.h"

struct module {
    const struct ifl_policy *policy;
    void *self; /* parameters, then state */
};

struct listeners { /* modules that have one of the hooks, in order of their kinds */
    const struct module *of[IFL_N_KINDS];
    size_t n;
};

/* One request's share of the step being built. */
struct planned {
    struct live_request *r; /* NULL where it was undone */
    int32_t n;              /* tokens of each sequence */
    int32_t n_tokens;       /* of all its sequences, shared ones once */
    bool decodes;
};

/* A snapshot of one list, taken when a plan first asks for it. */
struct snapshot {
    const struct ifl_request **of;
    size_t n;
    bool taken;
};

struct ranked_request {
    int64_t key; /* by which it stands */
    const struct ifl_request *r;
};

/* A list in rank order, the last one first, kept from one plan to the next (replica_ranks.c). */
struct ranking {
    enum ranked_list which;
    struct ranked_request *room; /* [cap], of which n from `first` on are taken */
    size_t first, n, cap;
    struct live_request **noted; /* came or left since, or may have another key */
    size_t n_noted;
    bool kept;  /* who is not noted stands where his key puts him */
    bool taken; /* and the list is as this plan sees it */
};

/* Steps that modules hear of as one, at most. */
enum { REPLICA_LONGEST_RUN = 1024 };

struct replica {
    struct ifl_step step; /* first: what the policy holds */
    struct ifl_view view;
    struct ifl_limits limits;
    struct module modules[IFL_N_KINDS]; /* of a cluster's router, none */
    enum swap_full swap_full;
    uint64_t seed;

    struct kv_pool kv, host;
    struct live_pool pool;
    struct waiting waiting;
    struct live_list running;      /* ON_DEVICE, in order of start */
    struct live_list apart;        /* AMONG_PEERS, not in the cohort: prompts, mostly */
    struct live_request **swapped; /* in no order */
    size_t n_swapped;
    struct cohort cohort;
    uint64_t n_starts;
    uint64_t n_backs; /* preempted ones that went to the back of the queue */
    size_t cap;       /* requests the arrays below have room for */

    /* the plan under way */
    struct planned *planned;
    size_t n_planned;
    size_t n_decodes; /* of these, n_members of them in the cohort */
    size_t n_members;
    bool ready_all;       /* schedule_ready took the whole cohort */
    bool shown;           /* some member's n_now says so */
    bool ranks_stale;     /* keys of who waits must be asked anew before the next look */
    uint64_t first_start; /* who starts in this plan has at least this start_seq */
    struct snapshot by_start, started, scheduled;
    struct ranking by_rank[N_RANKED];
    const struct ifl_request **asked; /* scratch */
    int64_t *keys;                    /* scratch */
    struct ifl_copy *outs, *ins;      /* [host blocks + 1] */
    struct ifl_copy *copies;          /* [device blocks + 1] */
    size_t n_outs, n_ins, n_copies;   /* the first two are counted only, where pools are tallied */
    int32_t n_rejected;               /* in this plan */
    struct live_request **gone;       /* rejected in this plan or finished in this step */
    size_t n_gone;
    struct ifl_promise promise; /* n_steps 0: none */
    bool to_the_last;           /* it may outlast those who finish */
    struct ifl_padding padding; /* stands while the promise does */
    int64_t wake_ns;
    bool broken;    /* a policy broke the contract: error is filled */
    bool answering; /* the plan waits for the answer of a module that it has asked */
    struct ifl_error error;

    uint32_t number;       /* in its cluster */
    bool due;              /* the loop will ask for a plan */
    int64_t wake_asked_ns; /* the last that the loop was told of */

    /* the step in flight */
    bool busy, ticks;
    struct ifl_step_desc desc;
    struct ifl_work *work; /* only for executors that want it */
    uint32_t *tables;      /* block tables of sequences that share a request */
    size_t n_tables, cap_tables;
    int32_t max_samples;
    struct beam_search beams;
    struct ifl_result *results; /* [n_results] of the step, or the steps, that end, where listed */
    size_t n_results;
    bool lists_results;
    bool wants_work;
    struct listeners on_join, on_step_start, on_step_end, on_leave, steady; /* who has it */
    bool has_ahead;
    bool ranks_named, ranks_move; /* the order's rerank */
    bool tells_each;              /* some module wants to know of every step */
    int32_t n_untold;             /* ticks that have ended, the modules not told */
    int64_t untold_start_ns;      /* of the first of them */
    struct ifl_step_record record;
    int64_t last_end_ns;    /* of the step before, IFL_NEVER before the first */
    int64_t tick_ns;        /* what the last step that coasted took */
    int64_t n_barren_steps; /* since the last that produced a token */

    /* KV accounting, in slots of one token */
    int64_t kv_token_slots;    /* K/V that exists on the device */
    int64_t kv_internal_slots; /* held and never used */
    int32_t n_group_saved;     /* blocks, by the sharing within groups */

    int64_t ends_ns[REPLICA_LONGEST_RUN]; /* of the untold ticks, and of the step that ends now */
};

struct replica_options {
    uint32_t number;                     /* in its cluster */
    const struct module_config *modules; /* [IFL_N_KINDS] */
    struct ifl_limits limits;
    enum kv_allocator allocator;
    enum prefix_cache prefix_cache;
    enum kv_unhashed unhashed;
    enum kv_publish publish;
    enum swap_full swap_full;
    uint64_t seed;
    bool wants_work;
    int32_t max_samples; /* of a request; 0 counts as 1 */
    struct beam_search beams;
};

/* Owned by the caller; zeroed memory is valid for replica_destroy. */
int module_create(struct module *module, const struct module_config *config,
                  const struct ifl_limits *limits, struct ifl_error *error);
void module_destroy(struct module *module); /* zeroed memory is valid */

int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error);
void replica_destroy(struct replica *replica);

/* Requests that wait, run, or are swapped out. */
static inline size_t replica_requests(const struct replica *replica)
{
    return replica->pool.n_live + waiting_undescribed(&replica->waiting);
}

/* It waits. */
int replica_join(struct replica *replica, const struct arrival *arrival, struct ifl_error *error);
/* Whether the request can ever run here. */
enum replica_fit { REPLICA_FITS, REPLICA_BEYOND_MODEL, REPLICA_BEYOND_POOL };
enum replica_fit replica_fit(const struct replica *replica, const struct arrival *arrival);

/* Builds a step at now_ns. Negative: a policy broke the contract. */
int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error);
/* True, and the step is built, if the last plan's promise covers one more step at now_ns. */
bool replica_repeat(struct replica *replica, int64_t now_ns);
/* True if the plan holds work or copies; then desc is ready to be submitted. */
bool replica_commit(struct replica *replica);
/* The step in flight has ended. Finished requests are in `gone` afterwards. Negative as well once
 * more steps in a row have produced no token than it takes to fill all K/V memory one token at a
 * time: then preemption undoes prompts faster than they are computed, for ever. */
int replica_end(struct replica *replica, const struct ifl_done *done, struct ifl_recorder *recorder,
                struct ifl_error *error);
/* A step that was committed and does nothing but what the promise repeats, for nobody's last token:
 * it may be ended and followed by the two at the end, as replica_end, replica_repeat and
 * replica_commit would; and between these, by a stretch of steps like it. */
bool replica_coasts(const struct replica *replica);
int replica_end_tick(struct replica *replica, const struct ifl_done *done,
                     struct ifl_recorder *recorder, struct ifl_error *error);
/* How many steps, the committed one included, may end so by until_ns, and the one behind them; more
 * may than really do. */
size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns);
enum { REPLICA_MAX_STRETCH = 64 };
/* Behind a step that has ended, as many of the next n as begin by the promise and end before
 * until_ns, which is how many: from 0 up, or negative. The last one of them has ended too. */
int replica_stretch(struct replica *replica, const int64_t *duration_ns, size_t n, int64_t until_ns,
                    struct ifl_recorder *recorder, struct ifl_error *error);
/* False, and nothing has changed: the promise does not cover it. */
bool replica_next_tick(struct replica *replica, int64_t now_ns);
/* What became of a request in `gone`; then it may be recycled. */
void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record);
/* Empties `gone`. */
void replica_recycle(struct replica *replica);

#define FOR_EACH_MODULE(module, replica)                                                           \
    for (struct module *module = (replica)->modules; module < (replica)->modules + IFL_N_KINDS;    \
         module++)                                                                                 \
        if (module->policy)

#define FOR_EACH_LISTENER(module, listeners)                                                       \
    for (const struct module *const *at_ = (listeners)->of, *module;                               \
         at_ < (listeners)->of + (listeners)->n && (module = *at_, true); at_++)

/* ---- between replica.c, replica_blocks.c, replica_cache.c, replica_step.c, step_builder.c ---- */

extern const struct ifl_step_ops replica_step_ops;

/* Blocks that holding that many tokens takes from the pool; more than are free where they are and
 * yet do not fit. */
int32_t replica_need(const struct replica *replica, const struct live_request *r,
                     int32_t hold_tokens);
/* Blocks come and go through these, which keep the accounts. */
bool replica_take_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* A waiting request gets the blocks of its hit and as many more as make n. */
bool replica_first_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* finished: it leaves for good, as opposed to giving way. */
void replica_drop_blocks(struct replica *replica, struct live_request *r, bool finished);
/* What a step has computed of a prompt can be found by others; and what the plan will have. */
void replica_publish_prompt(struct replica *replica, struct live_request *r, int32_t n_computed);
void replica_publish_plan(struct replica *replica, struct live_request *r, int32_t n_computed);
/* What the plan published of it will not be computed. */
void replica_withdraw(struct replica *replica, struct live_request *r);
/* It started in this plan on K/V that the plan has the other compute. */
bool replica_stands_on(const struct replica *replica, const struct live_request *r,
                       const struct live_request *other);
/* The first tokens behind the prompt: the sequences of a group part, and meet again if undone. */
void replica_part(struct replica *replica, struct live_request *r);
void replica_unpart(struct replica *replica, struct live_request *r);
/* Blocks that holding that many tokens of each sequence takes in all. */
int32_t replica_hold_blocks(const struct replica *replica, const struct live_request *r,
                            int32_t hold_tokens);
int32_t replica_saved_blocks(const struct replica *replica, const struct live_request *r);
/* Slots that hold the K/V of a request. */
int64_t replica_slots(const struct replica *replica, const struct live_request *r);

/* Of a beam search that has begun: slots, blocks for so many tokens, one more token that is
 * scheduled or undone. It begins with the first token behind a prefill; 0, or -1 without memory. */
int replica_beams_begin(struct replica *replica, struct live_request *r);
int64_t replica_beams_slots(const struct replica *replica, const struct live_request *r);
int32_t replica_beams_hold(const struct replica *replica, const struct live_request *r,
                           int32_t hold_tokens);
void replica_beams_step(struct replica *replica, struct live_request *r);
void replica_beams_undo(struct replica *replica, struct live_request *r);
/* Its last token is sampled: beams go on from one another's tables. */
void replica_beams_fork(struct replica *replica, struct live_request *r);
/* The same for all that tick. */
int32_t replica_growing_beams(const struct replica *replica);
void replica_step_beams(struct replica *replica);
void replica_fork_beams(struct replica *replica);

/* Both with a prefix cache: the blocks of a waiting request's hit become its own; what it leaves
 * behind when it goes can be found. */
void replica_share_hit(struct replica *replica, struct live_request *r);
void replica_leave_in_cache(struct replica *replica, struct live_request *r, bool finished);
/* n_computed of a waiting request becomes what the cache holds of it, now. */
void replica_find_hit(struct replica *replica, struct live_request *r);
static inline void replica_look_up(struct replica *replica, struct live_request *r)
{
    if (replica->kv.cached && r->pub.state == IFL_WAITING &&
        r->looked_up != replica->kv.cache.epoch)
        replica_find_hit(replica, r);
}
/* For modules that want to know what those who wait would start on. */
void replica_mark_wanted(struct replica *replica);
static inline void replica_note_wanted(struct replica *replica)
{
    if (replica->kv.cached && replica->kv.cache.options.evict->informed)
        replica_mark_wanted(replica);
}
/* The cache's answer for anybody, a request that is not here included. */
struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r);
int64_t replica_rank(struct replica *replica, struct live_request *r);
int64_t replica_rank_now(struct replica *replica, struct live_request *r); /* had it arrived now */
void replica_rank_anew(struct replica *replica);                           /* everyone who waits */
/* In replica_ranks.c: the list as the plan sees it; who comes, leaves, or may have another key,
 * though he has not run; and who is gone for good. */
void replica_take_ranking(struct replica *replica, struct ranking *list);
static inline const struct ranking *replica_ranking(struct replica *replica, enum ranked_list which)
{
    if (!replica->by_rank[which].taken)
        replica_take_ranking(replica, &replica->by_rank[which]);
    return &replica->by_rank[which];
}
void replica_note(struct ranking *list, struct live_request *r);
static inline void replica_note_rank(struct replica *replica, enum ranked_list which,
                                     struct live_request *r)
{
    if (replica->by_rank[which].kept)
        replica_note(&replica->by_rank[which], r);
}
void replica_forget(struct ranking *list, struct live_request *r);
static inline void replica_forget_rank(struct replica *replica, struct live_request *r)
{
    for (int which = 0; which < N_RANKED; which++)
        if (replica->by_rank[which].kept)
            replica_forget(&replica->by_rank[which], r);
}
static inline bool replica_ranks_before(const struct ifl_request *a, int64_t key_a,
                                        const struct ifl_request *b, int64_t key_b)
{
    if (key_a != key_b)
        return key_a < key_b;
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->serial < b->serial;
}
/* The next tick's new blocks, and those of members that do not grow by count. */
int32_t replica_listed_growth(const struct replica *replica);
static inline int32_t replica_growing_blocks(const struct replica *replica)
{
    const struct cohort *cohort = &replica->cohort;
    const int32_t n = cohort->n_counted[cohort->phase];
    return cohort_grows_by_count(cohort) && !replica->beams.search
               ? n
               : n + replica_listed_growth(replica);
}
bool replica_tick_may_lose_hits(const struct replica *replica, int32_t n_new);
/* The promise covers one more step at now_ns. */
bool replica_keeps_promise(const struct replica *replica, int64_t now_ns);
static inline bool replica_tick_fits(const struct replica *replica, int32_t n_new,
                                     int32_t spare_blocks)
{
    return replica->kv.n_free - n_new >= spare_blocks && !(replica->kv.contiguous && n_new > 0);
}
/* The counted members take theirs. */
static inline void replica_grow_counted(struct replica *replica)
{
    int64_t n_unused_slots;
    const int32_t n = cohort_grow_counted(&replica->cohort, &n_unused_slots);
    if (n > 0)
        kv_take(&replica->kv, n, NULL);
    replica->kv_internal_slots += n_unused_slots;
}
void replica_grow_listed(struct replica *replica); /* the others theirs */
static inline void replica_grow(struct replica *replica)
{
    replica_grow_counted(replica);
    if (!cohort_grows_by_count(&replica->cohort))
        replica_grow_listed(replica);
}
/* r decodes with the others from now on. */
void replica_add_to_cohort(struct replica *replica, struct live_request *r);
bool replica_take_tick(struct replica *replica, int32_t spare_blocks);
/* The plan does nothing but tick: what a promise may repeat. */
bool replica_only_ticks(const struct replica *replica);
/* Of the end of a step: everyone who decodes has a token; its times. */
int replica_tick(struct replica *replica, int64_t end_ns, struct ifl_recorder *recorder,
                 struct ifl_error *error);
void replica_stamp_record(struct replica *replica, const struct ifl_done *done);
void replica_record_pool(struct replica *replica); /* how the pool is used, now */
/* Slots of the blocks that requests hold. */
static inline int64_t replica_held_slots(const struct replica *replica)
{
    const int32_t n_held = kv_used(&replica->kv) - kv_slack(&replica->kv);
    return (int64_t)n_held * replica->limits.block_tokens;
}
/* And it does so for those who ticked last. */
bool replica_ticks_again(const struct replica *replica);
/* Modules that hear runs hear of the one that has come to its end. */
void replica_tell_steps(struct replica *replica);
static inline void replica_tell_run(struct replica *replica)
{
    if (replica->n_untold > 0 && replica->on_step_end.n > 0)
        replica_tell_steps(replica);
    replica->n_untold = 0;
}
/* Off the running list, its counts up to date; blocks stay. */
void replica_leave(struct replica *replica, struct live_request *r);

static inline struct replica *replica_of(struct ifl_step *step)
{
    return (struct replica *)(void *)step;
}

#endif
