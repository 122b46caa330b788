/* The view a policy reads and the step it builds.
 *
 * A plan sees one replica at one instant. Counts in the view are those before the plan; request
 * records and step totals are live. A plan acts only through the step. The functions of the step
 * come in a table, so that a plug-in has no undefined symbol.
 *
 * A refusal is an answer and changes nothing. A breach of the contract ends the run with the
 * policy's name: for example, tokens for a request that is not on the device, or more tokens than a
 * request has left to compute. From the breach until the plan returns ifl_next and every call that
 * gives a verdict or changes the step refuse: the answer is NULL, false, IFL_WAIT or IFL_NO_BLOCKS.
 * Other questions are still answered.
 *
 * Only `plan` of the batching module changes the step; `ahead` of a preempt module may preempt, and
 * bring swapped requests back (ifl_start with 0 tokens). All other functions of modules, hooks of
 * the batching module included, ask, and no more: a start, tokens, a preemption, a rejection, a
 * refusal, a promise, a wake or padding of theirs is a breach. So is what a question writes to the
 * request that it is about, the limits or the view, which serving.check_steady looks for. No
 * pointer may be NULL unless its comment says so. */
#ifndef INFLIGHT_STEP_H
#define INFLIGHT_STEP_H

#include <stddef.h>

#include "inflight/request.h"

/* ---- what does not change during a run ---- */

struct ifl_limits {
    int32_t block_tokens;     /* K/V slots of a block, one a token */
    int32_t n_blocks;         /* KV blocks on the device */
    int32_t n_host_blocks;    /* KV blocks in the host's swap pool */
    int32_t max_model_tokens; /* longest prompt + output a request may have */
    uint32_t n_clients;       /* client numbers are below this: the trace's own if all are whole
                                 numbers below 65,536, else in order of first appearance */
    int32_t max_in_flight;    /* steps that may be in flight at once, slots of a pipeline; 0: one */
    bool contiguous;          /* a request's blocks are adjacent and never grow after its start */
    /* A step is planned as the one in front of it begins (serving.in_flight.ahead, one stage). The
     * call comes when that one has ended, and the plan is shown what was known then:
     *   - ifl_next passes over waiting requests that have arrived since;
     *   - a request that had its last token in that step still runs, with its blocks and its seat,
     *     and may be preempted; tokens that the plan gives it cost time as padding does, and yield
     *     nothing; it leaves when the plan has been made.
     * Hooks have been called, and all counts are current (ifl_out_before: the tokens that were
     * known). If the plan gives no token, another one follows, which knows all. */
    bool plans_ahead;
    int32_t max_drafts;   /* most tokens that are guessed for a request in a step; 0: none ever */
    uint32_t n_adapters;  /* adapters have numbers from 1 to this; 0: there are none */
    int32_t max_adapters; /* different ones that the device has slots for; 0: any number */
    /* [n_adapters + 1] KV blocks that an adapter takes while it is on the device, which is while a
     * request there is computed with it; NULL: adapters take none */
    const int32_t *adapter_blocks;
};

/* ---- the view ---- */

struct ifl_step;

struct ifl_view {
    int64_t now_ns;
    uint64_t step; /* number of the earliest step in flight; without one, of the next step */
    const struct ifl_limits *limits;
    /* before this plan; outside of a plan, before the last one. n_running counts the requests that
     * the plan is shown: with several steps in flight not all on the device */
    size_t n_running, n_waiting, n_swapped;
    uint64_t n_in_flight; /* steps that have begun and not ended */
    int32_t n_free_blocks, n_free_host_blocks;
    int64_t last_prefill_ns; /* duration of the last step that computed prompt tokens */
    int32_t n_ended_blocks;  /* freed by requests that have ended since the last step began */
    struct ifl_step *(*plan)(const struct ifl_view *); /* see ifl_plan */
    /* Tells that the order's key of the request has changed. Update the module's state first: the
     * key of a waiting request is asked for within the call. For a request that neither waits, runs
     * nor is swapped it does nothing, nor for one that was pushed to the front of waiting. Only
     * from hooks and from `keys` of an order; not for the request that on_join, on_undo or
     * on_preempt tells of, which is in no list yet. */
    void (*rerank)(const struct ifl_view *, const struct ifl_request *);
    uint32_t n_tries; /* earlier plans of this same step, none of which gave a token */
    int32_t slot;     /* of the pipeline that this plan is for, below limits->max_in_flight; in
                         hooks, of the step that they tell of; 0 where there are no slots */
    int32_t n_moving,
        n_moving_blocks; /* requests that are MOVING, and what they hold on the device */
    int32_t n_loaded, n_loaded_blocks; /* requests that are LOADED, and what they hold */
};

enum ifl_verdict {
    IFL_YES,
    IFL_NO_BLOCKS,      /* not now: too few device blocks */
    IFL_NO_HOST_BLOCKS, /* not now: the swap pool is too full for any waiting request */
    IFL_WAIT,           /* not now, for a reason of the policy's own */
    IFL_SKIP,           /* not now; unlike those above it does not hold up requests behind it */
    IFL_NEVER_FITS      /* never: reject it */
};

enum ifl_fate {
    IFL_RECOMPUTE, /* blocks are dropped, n_computed returns to 0 */
    IFL_SWAP,      /* blocks are copied to host memory before the step computes; if that is full,
                      as serving.kv.swap_full says */
    IFL_KEEP       /* no request gives way */
};

/* Where a request preempted by recompute re-enters the waiting queue. Of several requests preempted
 * in one step, the one preempted last stands first at the front and last at the back. */
enum ifl_place {
    IFL_FRONT,    /* before all waiting requests, whatever its rank */
    IFL_IN_ORDER, /* at the place of its rank */
    IFL_BACK /* ranked as if it arrived now: as long as it waits there, `rank` reads the time at
                which it was sent there as its arrival_ns, so a deadline that counts from
                arrival_ns moves */
};

/* Bits: ifl_next takes a union of them. */
enum ifl_list {
    IFL_IN_WAITING = 1,
    IFL_IN_RUNNING = 2,
    IFL_IN_SWAPPED = 4,
    IFL_IN_PREFILL = 8, /* running requests that do not decode yet */
    IFL_IN_LOADED = 16
};

/* Position of ifl_next in its lists. Starts as {0}. Stays valid when the plan starts, schedules,
 * preempts or rejects requests. */
struct ifl_cursor {
    uint64_t at[5];
};

struct ifl_victim {
    const struct ifl_request *request; /* on the device, perhaps `needy` itself; NULL: none */
    enum ifl_fate fate;
    enum ifl_place place;
};
/* Tokens of a waiting request that the prefix cache holds now: at most n_tokens - 1, because the
 * next token is sampled from the last one, which is always computed. */
struct ifl_hit {
    int32_t n_cached; /* tokens; ifl_n_computed of a waiting request is the same number */
    int32_t n_soon;   /* further tokens that running requests are computing now */
    int32_t n_below;  /* tokens behind n_cached in a slower tier or at another replica. Then
                         n_computed of the waiting request is what it will be once they have come */
    uint32_t node;    /* of a radix cache, where the match ends; 0: the root, or another cache */
};

struct ifl_requests { /* borrowed until the plan returns; its length does not change */
    const struct ifl_request *const *of;
    size_t n;
};

/* How K/V comes to the device, and when ifl_start may follow ifl_load. */
enum ifl_load_way {
    IFL_LOAD_APART,   /* while steps go on: the request is MOVING, then LOADED, or waits again with
                         what has come if the rest was lost; a plan starts it once it is LOADED */
    IFL_LOAD_BEFORE,  /* this step begins when it is there; a later plan finds the request LOADED
                         and starts it */
    IFL_LOAD_BY_LAYER /* this step begins at once, and each layer waits for its own part: this plan
                         may start the request at once */
};

/* Work of a step that yields no token: prompts padded to the longest prompt of their batch, and
 * rows of finished sequences that stay until their batch ends. It costs time and holds no K/V. */
struct ifl_padding {
    int32_t n_prefill_tokens;
    int64_t prefill_q_q; /* the part of padding in the sum of new x new */
    int32_t n_decode_seqs;
    int64_t decode_context; /* tokens of K/V that these sequences read */
    int32_t n_draft_tokens; /* rows in place of guesses, which read no K/V but their own */
};

/* A promise to repeat a step: the steps that follow give the same requests one token each, in the
 * same order, and do nothing else. They run without being planned. {0} promises nothing and is
 * always right. A promise must not cover a step in which a plan would ask a module that this plan
 * has not asked: such a module does not bound the promise (`steady` in policy.h).
 *
 * Besides what the fields say, the loop ends such a run of steps
 *   - when a request arrives; with a module that says `shown_alone` (policy.h) and plans ahead, not
 *     before the step that does not know of it;
 *   - when a block is refused;
 *   - at the until_ns that an admission has named with a refusal in this plan;
 *   - when a request has its last token, unless the promise is to_the_last.
 * With several steps in flight others go on in between, of other requests and promised as well;
 * they may take blocks.
 * Within a run no block is given back and no seat is taken or given back, but for those of requests
 * that end under to_the_last. A promise is void if the planned step computes a prompt, starts,
 * swaps in, preempts or rejects a request. The loop may end a run earlier; then it plans. */
struct ifl_promise {
    int32_t n_steps;         /* promised steps, the planned one not counted; with several steps in
                                flight those of others in between count, too */
    int64_t until_ns;        /* each of them starts by then; IFL_NEVER: no bound */
    int32_t min_free_blocks; /* that each of them leaves free after taking its own */
    /* The run goes on with the remaining requests when some have had their last token, provided
     * that no request waits or is swapped out and that all requests on the device take part. Must
     * be set by the plan and by every module that the plan has asked. */
    bool to_the_last;
};

enum { IFL_MAX_VAIN_WAKES = 1000000 }; /* see wake */

/* A policy calls these as ifl_next, ifl_start and so on, below. */
struct ifl_step_ops {
    size_t size_bytes; /* sizeof(struct ifl_step_ops): it may grow at its end */
    /* The next request of the lists (a union of enum ifl_list) in rank order, NULL at the end.
     *   - Several lists are merged by rank. Calls with one cursor may name different lists: it
     *     keeps a place in each.
     *   - A cursor that has shown requests of IFL_IN_RUNNING is not for IFL_IN_PREFILL, nor the
     *     other way round.
     *   - Requests pushed to the front of waiting come first, before those of all other lists;
     *     those preempted in this plan are included.
     *   - Requests that are LOADED stand in front of all that wait, in the order in which they
     *     came: IFL_IN_WAITING shows them first, IFL_IN_LOADED shows no others.
     *   - Requests that left their list in this plan are skipped.
     *   - Requests that this plan started are not shown.
     *   - A cursor shows a request once, unless the request has come to wait again since.
     *   - Waiting requests are ranked by their present keys, running and swapped requests by those
     *     they had when this plan first listed them. */
    const struct ifl_request *(*next)(struct ifl_step *, unsigned lists, struct ifl_cursor *);
    /* The requests on the device before this plan, in order of start. A request that has been
     * preempted since is still listed, with another `state`. */
    struct ifl_requests (*running)(struct ifl_step *);
    /* A request on the device before this plan by its rank, counted from the end: for `at` 0 the
     * one that ifl_next shows last, for 1 the one before it, NULL beyond the one that it shows
     * first. A request that has been preempted since is still counted, with another `state`. */
    const struct ifl_request *(*last_ranked)(struct ifl_step *, size_t at);
    /* Waiting requests that this plan has started, in order of start; swapped requests that came
     * back are not listed. A request that has been preempted since is still listed; one that was
     * then started again is listed twice. A later start needs another call. */
    struct ifl_requests (*started)(struct ifl_step *);
    /* What the prefix cache holds of a waiting request; {0} without a cache. */
    struct ifl_hit (*hit)(struct ifl_step *, const struct ifl_request *);
    /* The parent of `node` in the radix cache's tree; of the root, which is 0, the root itself; 0
     * also for a number that is no node. */
    uint32_t (*above)(struct ifl_step *, uint32_t node);
    /* Free device blocks that the request would take for all its sequences in order to hold
     * `hold_tokens` tokens of each, counted in K/V slots (ifl_n_slots) where it has given some up:
     * the blocks that it lacks, 0 or more; for a waiting request also the blocks of its hit that
     * are in no other use, and those of its adapter where that is in the pool and not on the
     * device. With limits->contiguous it is rounded up as they are allocated; it is above
     * n_free_blocks if no place is free, or for one that grows. */
    int32_t (*need)(struct ifl_step *, const struct ifl_request *, int32_t hold_tokens);
    /* The verdict of the admit modules on starting a waiting or swapped request with n new tokens,
     * 0 <= n <= todo, if spare_blocks of the free blocks were taken; a negative spare_blocks counts
     * as 0, and one above the pool as all its blocks. Starts nothing. Sets
     * *takes, unless NULL, to the blocks that a start would take, whatever the verdict; whether
     * they are free it does not ask. In `ask` of an admit module or `pick` of a preempt module it
     * breaks the contract. */
    enum ifl_verdict (*ask)(struct ifl_step *, const struct ifl_request *, int32_t n,
                            int32_t spare_blocks, int32_t *takes);
    /* K/V tokens that the admit modules leave to the rest of this plan, the least that one of them
     * says: `enough` if there are more; negative if they have promised more than there is.
     * INFINITY if no module says, whatever `enough`. Not from `room` of an admit module, which
     * would be asked again without end. */
    double (*room)(struct ifl_step *, double enough);
    /* Starts a waiting, swapped or LOADED request with n new tokens, 0 <= n <= todo, after those of
     * its hit, if every admit module says yes; of a LOADED one none is asked. Any other request or
     * n is a breach of the contract. A waiting request with K/V at another replica (hit.n_below),
     * or in a tier that loads `apart`, does not start: it is loaded, if its blocks are free, and
     * the verdict is IFL_SKIP; so with a swapped one where serving.swap is overlap, which runs as
     * soon as it has come. The request computes fewer than n tokens if its hit has grown since
     * the plan looked. The start takes the blocks that the admission named, shares the cached ones,
     * and brings back those in host memory. Returns the verdict: IFL_NO_BLOCKS also if all say yes
     * and the blocks are not free. */
    enum ifl_verdict (*start)(struct ifl_step *, const struct ifl_request *, int32_t n);
    /* Gives a running request n more tokens, 0 < n <= todo, once a step; none that are guessed. Any
     * other request or n, and a second call in a step, is a breach of the contract. The request
     * then holds blocks for hold_tokens (0: no more than it needs; below 0: a breach), or for its
     * slots if these are more. Returns IFL_YES or IFL_NO_BLOCKS. */
    enum ifl_verdict (*schedule)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                 int32_t hold_tokens);
    /* Gives one token, and what is guessed behind it (see drafts), to every running request that
     * decodes and is not scheduled yet, in order of start: to all, or to none. All: true, if
     * spare_blocks are still free afterwards; also true if no request is left to give a token to.
     * None: false. After a false, another call in the plan tries again, for example once
     * ifl_make_room has freed blocks; after a true, one gives nothing, whatever it returns. Does
     * the same as `schedule` of each, faster. */
    bool (*schedule_ready)(struct ifl_step *, int32_t spare_blocks);
    /* Asks the preempt module for a victim in favour of `needy`, which runs or waits, and preempts
     * it. Returns true if another request than `needy` was preempted; its blocks may be too few, so
     * that another call is needed. Returns false if it was `needy`, whose `state` tells, or none;
     * none, too, while what `needy` lacks is on its way to host memory, or
     * where it would go there itself while others are on their way. */
    bool (*make_room)(struct ifl_step *, const struct ifl_request *needy);
    /* Takes a running request off the device and undoes what this plan has scheduled for it; blocks
     * that were taken for that stay its own, so that a swap copies them, too. Returns IFL_YES, or
     * IFL_WAIT for IFL_KEEP and for IFL_SWAP of a request in a step in flight, whose K/V is still
     * to be written. The place is read where the request waits again: after IFL_RECOMPUTE, and
     * after IFL_SWAP if the request has no K/V or the pool is full. These victims are a breach of
     * the contract:
     *   - a request that is not running;
     *   - a request that this plan has swapped in;
     *   - a request with tokens in this step that are part of the hit of a request that this plan
     *     has started (serving.kv.publish: scheduled). */
    enum ifl_verdict (*preempt)(struct ifl_step *, const struct ifl_request *, enum ifl_fate,
                                enum ifl_place);
    /* Drops a waiting or swapped request for good. Reports count it as rejected, or as failed if it
     * has run before. Its state is IFL_DONE from now on; on_leave follows when the plan is made.
     * Any other request is a breach of the contract. */
    void (*reject)(struct ifl_step *, const struct ifl_request *);
    /* See struct ifl_promise. The last call of a plan counts. */
    void (*promise)(struct ifl_step *, struct ifl_promise);
    /* If this plan gives no token, plan again at `at_ns`, which may be now, even if nothing happens
     * before. The earliest at_ns of a plan counts; if it is before now, there is no wake. IFL_NEVER
     * asks for none. The run fails with IFL_E_STALLED after IFL_MAX_VAIN_WAKES wakes in a row
     * without an arrival, a step, a preemption or a rejection. */
    void (*wake)(struct ifl_step *, int64_t at_ns);
    /* Sets the padding of this step and of each step promised with it, where it does not grow. It
     * counts in the simulated duration alone; an engine does not compute it. The last call of a
     * plan counts. A negative number, more than 2^28 tokens or sequences, and more than 2^56 in
     * prefill_q_q or decode_context are a breach of the contract. */
    void (*pad)(struct ifl_step *, struct ifl_padding);
    /* Earliest arrival among waiting requests, IFL_NEVER if none; costs a walk over them. */
    int64_t (*oldest_waiting_ns)(struct ifl_step *);
    /* 64 random bits, each pattern as likely (ifl_uniform in random.h makes a number between 0 and
     * 1 of them). They depend on workload.arrivals.seed, the request and `index` alone: modules
     * that ask with the same index get the same bits. */
    uint64_t (*draw)(struct ifl_step *, const struct ifl_request *, uint32_t index);
    /* Only once the plan is made, from on_step_start; before, it is a breach of the contract. True
     * if the plan gave the request tokens, or started it (also with 0 tokens) and did not take the
     * start back. */
    bool (*took_part)(struct ifl_step *, const struct ifl_request *);
    /* The requests that this plan has given tokens so far, in no particular order. The next call
     * overwrites the list. */
    struct ifl_requests (*scheduled)(struct ifl_step *);
    /* Notes why the batching module does not start a request, or is about to reject it, for the
     * user: `why` is a constant text that follows the module's name, and stays valid until the run
     * ends. The step notes refusals of other modules by itself. For requests of one state the last
     * refusal of a plan counts. Changes nothing else. */
    void (*refuse)(struct ifl_step *, const struct ifl_request *, const char *why);
    /* As schedule, and behind the n tokens n_draft more that were guessed: at most as many as
     * drafts says. At the end of the step the accepted ones count as sampled, with one more token
     * that follows them, up to what is left of the answer; n_computed falls by the rejected, and
     * their blocks stay. ifl_n_now counts n, step->n_tokens both. */
    enum ifl_verdict (*schedule_drafts)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                        int32_t n_draft, int32_t hold_tokens);
    /* Not there yet (K/V is given up as serving.kv.keep says, whatever the plan). Today a call that
     * wants anything of it ends the run as a configuration that does not go together, with the
     * module's name. */
    /* At the end of this step a running request keeps the K/V of n_slots tokens, chosen by
     * serving.kv.keep, and gives back the blocks of the others. With n_slots of all its tokens it
     * does nothing. */
    void (*keep)(struct ifl_step *, const struct ifl_request *, int32_t n_slots);
    /* Brings n tokens of K/V of a waiting request that follow its hit (hit.n_below) to the device,
     * and takes their blocks now, without asking a module: the request is MOVING, then LOADED.
     * IFL_YES or IFL_NO_BLOCKS; a refusal changes nothing. n = 0 does nothing and returns IFL_YES.
     * In this version n is all of n_below, and IFL_LOAD_BY_LAYER ends the run; from a tier
     * (serving.kv.tiers) K/V comes IFL_LOAD_APART alone, and ifl_start loads as its key `loads`
     * says. */
    enum ifl_verdict (*load)(struct ifl_step *, const struct ifl_request *, int32_t n,
                             enum ifl_load_way);
    /* Requests on the device, after the changes so far, that are computed with the adapter; adapter
     * 0: those with none. */
    int32_t (*adapter_users)(struct ifl_step *, uint32_t adapter);
    /* Tokens that the draft module guesses behind the next token of a running request that
     * decodes, cut to the longest sequence of the model; 0 for any other. They are computed beside
     * it, and verified, if the plan gives them (schedule_drafts, schedule_ready). */
    int32_t (*drafts)(struct ifl_step *, const struct ifl_request *);
    /* As start, of a request that computes n tokens, and n_rows > 0 behind them in place of
     * guesses, of which it has none yet: padding, which nothing verifies (see pad), and for which
     * it holds blocks. step->n_tokens counts both. */
    enum ifl_verdict (*start_padded)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                     int32_t n_rows);
};

/* Totals of the step being built. Every call may change them, so do not keep copies. */
struct ifl_step {
    const struct ifl_step_ops *ops;
    int32_t n_tokens, n_requests;                 /* scheduled */
    int32_t n_prefill_tokens, n_prefill_requests; /* of them, in prefill */
    int32_t n_running_requests, n_running_seqs;   /* on the device, after the changes so far; of a
                                                     slot, where there are slots */
    int32_t n_in_prefill;                         /* of view->n_running, in prefill */
    int32_t n_waiting, n_swapped, n_loaded;       /* after the changes so far; those that are LOADED
                                                     count as waiting, too */
    /* After the changes so far. Cached blocks that no request uses are free; of the host's, those
     * of a request that this plan brings back are so from the next plan on. */
    int32_t n_free_blocks, n_free_host_blocks;
    /* in this plan; a swap-in is not counted in n_started */
    int32_t n_started, n_preempted, n_swapped_out, n_swapped_in;
    unsigned asked;     /* kinds of module that this plan has asked: bits 1 << enum ifl_kind */
    uint64_t note;      /* set by the plan for its module's on_step_start; 0 in a promised step */
    int32_t max_drafts; /* as limits->max_drafts */
    int32_t n_adapters; /* different ones of requests on the device, after the changes so far */
    int32_t n_adapter_blocks; /* KV blocks that they take */
};

/* ---- calls, as a policy writes them: struct ifl_step_ops says what each does ---- */

/* The number of the step that is planned, or is planned next. */
static inline uint64_t ifl_next_step(const struct ifl_view *view)
{
    return view->step + view->n_in_flight;
}

/* The step being planned, for questions; NULL outside of a plan, also while a hook that is given a
 * step (on_step_start) lists it and an order is asked for keys. An order whose keys read it needs
 * an answer without it, such as what its hooks have noted. If the keys of an order read it, they
 * are asked for again whenever the plan has changed it. */
static inline struct ifl_step *ifl_plan(const struct ifl_view *view)
{
    return view->plan(view);
}

static inline void ifl_rerank(const struct ifl_view *view, const struct ifl_request *r)
{
    view->rerank(view, r);
}

/* False if all of the lists are empty. If true, ifl_next may still show nothing. */
static inline bool ifl_may_list(const struct ifl_step *s, unsigned lists)
{
    return (lists & IFL_IN_WAITING && s->n_waiting > 0) ||
           (lists & IFL_IN_SWAPPED && s->n_swapped > 0) ||
           (lists & IFL_IN_PREFILL && s->n_in_prefill > 0) ||
           (lists & IFL_IN_LOADED && s->n_loaded > 0) ||
           (lists & IFL_IN_RUNNING && s->n_running_requests > 0);
}

static inline const struct ifl_request *ifl_next(struct ifl_step *s, unsigned lists,
                                                 struct ifl_cursor *cursor)
{
    return ifl_may_list(s, lists) ? s->ops->next(s, lists, cursor) : NULL;
}

static inline struct ifl_requests ifl_running(struct ifl_step *s)
{
    return s->ops->running(s);
}

static inline const struct ifl_request *ifl_last_ranked(struct ifl_step *s, size_t at)
{
    return s->ops->last_ranked(s, at);
}

static inline struct ifl_requests ifl_scheduled(struct ifl_step *s)
{
    return s->ops->scheduled(s);
}

static inline struct ifl_requests ifl_started(struct ifl_step *s)
{
    return s->ops->started(s);
}

static inline struct ifl_hit ifl_hit(struct ifl_step *s, const struct ifl_request *r)
{
    return s->ops->hit(s, r);
}

static inline uint32_t ifl_above(struct ifl_step *s, uint32_t node)
{
    return s->ops->above(s, node);
}

static inline int32_t ifl_need(struct ifl_step *s, const struct ifl_request *r, int32_t hold_tokens)
{
    return s->ops->need(s, r, hold_tokens);
}

/* `ask` with no blocks set aside. */
static inline enum ifl_verdict ifl_ask(struct ifl_step *s, const struct ifl_request *r, int32_t n)
{
    return s->ops->ask(s, r, n, 0, NULL);
}

static inline enum ifl_verdict ifl_ask_beyond(struct ifl_step *s, const struct ifl_request *r,
                                              int32_t n, int32_t spare_blocks)
{
    return s->ops->ask(s, r, n, spare_blocks, NULL);
}

/* For several requests one after another, none of which is started. *taken, 0 before the first,
 * holds the blocks that the requests before r would take; the blocks of r are added if the verdict
 * is IFL_YES. */
static inline enum ifl_verdict ifl_ask_in_turn(struct ifl_step *s, const struct ifl_request *r,
                                               int32_t n, int32_t *taken)
{
    int32_t takes = 0;
    const enum ifl_verdict verdict = s->ops->ask(s, r, n, *taken, &takes);
    *taken += verdict == IFL_YES ? takes : 0;
    return verdict;
}

static inline double ifl_room(struct ifl_step *s, double enough)
{
    return s->ops->room(s, enough);
}

static inline enum ifl_verdict ifl_start(struct ifl_step *s, const struct ifl_request *r, int32_t n)
{
    return s->ops->start(s, r, n);
}

static inline enum ifl_verdict ifl_start_padded(struct ifl_step *s, const struct ifl_request *r,
                                                int32_t n, int32_t n_rows)
{
    return s->ops->start_padded(s, r, n, n_rows);
}

static inline enum ifl_verdict ifl_schedule(struct ifl_step *s, const struct ifl_request *r,
                                            int32_t n, int32_t hold_tokens)
{
    return s->ops->schedule(s, r, n, hold_tokens);
}

static inline bool ifl_schedule_ready(struct ifl_step *s, int32_t spare_blocks)
{
    return s->ops->schedule_ready(s, spare_blocks);
}

static inline bool ifl_make_room(struct ifl_step *s, const struct ifl_request *needy)
{
    return s->ops->make_room(s, needy);
}

static inline enum ifl_verdict ifl_preempt(struct ifl_step *s, const struct ifl_request *r,
                                           enum ifl_fate fate, enum ifl_place place)
{
    return s->ops->preempt(s, r, fate, place);
}

static inline void ifl_reject(struct ifl_step *s, const struct ifl_request *r)
{
    s->ops->reject(s, r);
}

static inline void ifl_refuse(struct ifl_step *s, const struct ifl_request *r, const char *why)
{
    s->ops->refuse(s, r, why);
}

static inline void ifl_promise(struct ifl_step *s, int32_t n_steps, int64_t until_ns,
                               int32_t min_free_blocks)
{
    s->ops->promise(s, (struct ifl_promise){n_steps, until_ns, min_free_blocks, false});
}

static inline void ifl_promise_to_the_last(struct ifl_step *s, int32_t n_steps, int64_t until_ns,
                                           int32_t min_free_blocks)
{
    s->ops->promise(s, (struct ifl_promise){n_steps, until_ns, min_free_blocks, true});
}

static inline void ifl_wake(struct ifl_step *s, int64_t at_ns)
{
    s->ops->wake(s, at_ns);
}

static inline void ifl_pad(struct ifl_step *s, struct ifl_padding padding)
{
    s->ops->pad(s, padding);
}

static inline enum ifl_verdict ifl_schedule_drafts(struct ifl_step *s, const struct ifl_request *r,
                                                   int32_t n, int32_t n_draft, int32_t hold_tokens)
{
    return s->ops->schedule_drafts(s, r, n, n_draft, hold_tokens);
}

static inline void ifl_keep(struct ifl_step *s, const struct ifl_request *r, int32_t n_slots)
{
    s->ops->keep(s, r, n_slots);
}

static inline enum ifl_verdict ifl_load(struct ifl_step *s, const struct ifl_request *r, int32_t n,
                                        enum ifl_load_way way)
{
    return s->ops->load(s, r, n, way);
}

static inline int32_t ifl_adapter_users(struct ifl_step *s, uint32_t adapter)
{
    return s->ops->adapter_users(s, adapter);
}

/* KV blocks that a start of r takes for its adapter; 0: none, or the adapter is there. */
static inline int32_t ifl_adapter_lack(struct ifl_step *s, const struct ifl_limits *limits,
                                       const struct ifl_request *r)
{
    return limits->adapter_blocks && r->adapter && ifl_adapter_users(s, r->adapter) == 0
               ? limits->adapter_blocks[r->adapter]
               : 0;
}

static inline int64_t ifl_oldest_waiting_ns(struct ifl_step *s)
{
    return s->ops->oldest_waiting_ns(s);
}

static inline uint64_t ifl_policy_draw(struct ifl_step *s, const struct ifl_request *r,
                                       uint32_t index)
{
    return s->ops->draw(s, r, index);
}

static inline int32_t ifl_drafts(struct ifl_step *s, const struct ifl_request *r)
{
    return s->max_drafts > 0 ? s->ops->drafts(s, r) : 0;
}

static inline bool ifl_took_part(struct ifl_step *s, const struct ifl_request *r)
{
    return s->ops->took_part(s, r);
}

#endif
