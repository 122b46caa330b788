/* The view a policy reads and the step it builds.
 *
 * A plan sees one replica at one instant. Counts in the view are those before the plan; request
 * records and step totals are live. A plan acts only through the step. The functions of the step
 * come in a table, so that a plug-in has no undefined symbol.
 *
 * A refusal is an answer and changes nothing. A breach of the contract, for example tokens for a
 * request that is not on the device, ends the run with the policy's name. Until the plan returns,
 * ifl_next and each call that gives a verdict or changes the step then return NULL, false, IFL_WAIT
 * or IFL_NO_BLOCKS. Other questions are still answered.
 *
 * Only `plan` of the batching module changes the step; `ahead` of a preempt module may preempt, and
 * bring swapped requests back (ifl_start with 0 tokens). All other functions of modules, including
 * the hooks of the batching module, may only ask. In them these are breaches:
 *   - a start, tokens, a preemption, a rejection, a refusal, a promise, a wake or padding;
 *   - a write to the request in question, the limits or the view (serving.check_steady finds it).
 * No pointer may be NULL unless its comment says so. */
#ifndef INFLIGHT_STEP_H
#define INFLIGHT_STEP_H

#include <stddef.h>

#include "inflight/request.h"

/* ---- what does not change during a run ---- */

struct ifl_limits {
    int32_t block_tokens;     /* K/V slots of a block, one per token */
    int32_t n_blocks;         /* KV blocks on the device */
    int32_t n_host_blocks;    /* KV blocks in the host's swap pool */
    int32_t max_model_tokens; /* longest prompt + output a request may have */
    uint32_t n_clients;       /* client numbers are below this: the trace's own if all are whole
                                 numbers below 65,536, else in order of first appearance */
    int32_t max_in_flight;    /* steps that may be in flight at once, slots of a pipeline; 0: one */
    bool contiguous;          /* a request's blocks are adjacent and never grow after its start */
    /* An engine would plan this step when the previous step begins (serving.in_flight.ahead, one
     * stage). `plan` is called when the previous step has ended, but is shown only what was known
     * when that step began:
     *   - ifl_next skips waiting requests that have arrived since;
     *   - a request that got its last token in the previous step still runs, with its blocks and
     *     its seat, and may be preempted. Tokens that the plan gives it cost time, like padding,
     *     and yield nothing. It leaves when the plan has been made. Preempted, its state is
     *     IFL_DONE: step->n_preempted counts it, no report does, on_preempt is not called.
     * Hooks have been called for the previous step, and all counts are current; ifl_out_before
     * returns the tokens that were known. If the plan gives no token, another plan follows, which
     * is shown everything. */
    bool plans_ahead;
    int32_t max_drafts;   /* most tokens that are guessed for a request in a step; 0: never any */
    uint32_t n_adapters;  /* adapters have numbers from 1 to this; 0: there are none */
    int32_t max_adapters; /* adapters that the device has slots for; 0: no limit */
    /* [n_adapters + 1] KV blocks of an adapter while a request on the device uses it; NULL: none */
    const int32_t *adapter_blocks;
};

/* ---- the view ---- */

struct ifl_step;

struct ifl_view {
    int64_t now_ns;
    uint64_t step; /* number of the earliest step in flight; without one, of the next step */
    const struct ifl_limits *limits;
    /* Before this plan; outside of a plan, before the last one. n_running counts the requests that
     * the plan is shown; with several steps in flight these are not all on the device. */
    size_t n_running, n_waiting, n_swapped;
    uint64_t n_in_flight; /* steps that have begun and have not ended */
    int32_t n_free_blocks, n_free_host_blocks;
    int64_t last_prefill_ns; /* duration of the last step that computed prompt tokens */
    int32_t n_ended_blocks;  /* freed by requests that ended after the last step began */
    struct ifl_step *(*plan)(const struct ifl_view *); /* see ifl_plan */
    /* An order calls it when the key of the request has changed. Update the module's state first:
     * `rank` is called within the call if the request waits. No effect for a request that neither
     * waits, runs nor is swapped, or that was pushed to the front of waiting; nor in on_join,
     * on_undo and on_preempt for the hook's own request, which is ranked after the hook. Only from
     * hooks and from `keys` of an order. */
    void (*rerank)(const struct ifl_view *, const struct ifl_request *);
    uint32_t n_tries; /* earlier plans of this same step; none of them gave a token */
    int32_t slot; /* pipeline slot of the step, below limits->max_in_flight; 0: there are none */
    int32_t n_moving, n_moving_blocks; /* requests that are MOVING, and their device blocks */
    int32_t n_loaded, n_loaded_blocks; /* requests that are LOADED, and their blocks */
};

enum ifl_verdict {
    IFL_YES,
    IFL_NO_BLOCKS,      /* not now: too few device blocks */
    IFL_NO_HOST_BLOCKS, /* not now: the swap pool is too full for any waiting request */
    IFL_WAIT,           /* not now, for the policy's own reason */
    IFL_SKIP,           /* not now, but requests behind this one may start, unlike above */
    IFL_NEVER_FITS      /* never: reject it */
};

enum ifl_fate {
    IFL_RECOMPUTE, /* blocks are dropped, n_computed returns to 0 */
    IFL_SWAP,      /* blocks are copied to host memory; if that is full, see kv.swap_full */
    IFL_KEEP       /* no request gives way */
};

/* Where a request preempted by recompute re-enters the waiting queue. Of several requests preempted
 * in one step, the one preempted last stands first at the front and last at the back. */
enum ifl_place {
    IFL_FRONT,    /* before all waiting requests, whatever its rank */
    IFL_IN_ORDER, /* at the place of its rank */
    IFL_BACK      /* ranked as if it arrived now while it waits: `rank` reads the time of the
                     preemption as its arrival_ns, so a deadline that counts from it moves */
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
    const struct ifl_request *request; /* on the device, may be `needy` itself; NULL: none */
    enum ifl_fate fate;
    enum ifl_place place;
};
/* Tokens of a waiting request that the prefix cache holds now: at most n_tokens - 1, because the
 * last token is always computed in order to sample the next one. */
struct ifl_hit {
    int32_t n_cached; /* tokens; ifl_n_computed of a waiting request is the same number */
    int32_t n_soon;   /* further tokens that running requests are computing now */
    int32_t n_below;  /* further tokens in a slower tier or at another replica, in n_computed */
    uint32_t node;    /* radix-cache node where the match ends; 0: the root, or no radix cache */
};

struct ifl_requests { /* borrowed until the plan returns; its length does not change */
    const struct ifl_request *const *of;
    size_t n;
};

/* How K/V is copied to the device, and when ifl_start may follow ifl_load. */
enum ifl_load_way {
    IFL_LOAD_APART,   /* while steps run: the request is MOVING, then LOADED, and a plan starts it;
                         if part of the K/V is lost, it waits again with the part that came */
    IFL_LOAD_BEFORE,  /* this step waits for the K/V; a later plan starts the LOADED request */
    IFL_LOAD_BY_LAYER /* each layer of this step waits for its own K/V: this plan may start it */
};

/* Work of a step that yields no token: prompts padded to the longest prompt of their batch, and
 * rows of finished sequences that stay until their batch ends. It costs time and takes no K/V. */
struct ifl_padding {
    int32_t n_prefill_tokens;
    int64_t prefill_q_q; /* what padding adds to the sum of (new tokens)^2 */
    int32_t n_decode_seqs;
    int64_t decode_context; /* tokens of K/V that these sequences read */
    int32_t n_draft_tokens; /* rows in place of guesses; they read only their own K/V */
};

/* A promise to repeat a step: the following steps give the same requests one token each, in the
 * same order, and do nothing else. They run without being planned. {0} promises nothing and is
 * always correct. A promise must not cover a step in which a plan would ask a module that this plan
 * has not asked: such a module does not bound the promise (`steady` in policy.h).
 *
 * Besides the bounds in the fields, the loop ends such a run of steps
 *   - when a request arrives; if the module has `shown_alone` (policy.h) and plans ahead, one step
 *     later, since the plan of that step was made without the arrival;
 *   - when a block is refused;
 *   - at the until_ns of an admission's refusal in this plan;
 *   - when a request has its last token, unless the promise is to_the_last.
 * The loop may end a run earlier; then it plans.
 *
 * With several steps in flight, steps of other requests, also promised ones, run in between and may
 * take blocks. Within a run no block or seat is given back and no seat is taken, except by requests
 * that end under to_the_last. A promise is void if the planned step computes a prompt, or starts,
 * swaps in, preempts or rejects a request. */
struct ifl_promise {
    int32_t n_steps;         /* promised steps, without the planned one; with several steps in
                                flight, steps of other requests in between count, too */
    int64_t until_ns;        /* latest start of a promised step; IFL_NEVER: no bound */
    int32_t min_free_blocks; /* left free by each promised step after it has taken its own */
    /* When requests have had their last token, the run goes on with the others if no request waits
     * or is swapped out and all requests on the device take part. Must be set by the plan and by
     * every module that the plan has asked. */
    bool to_the_last;
};

enum { IFL_MAX_VAIN_WAKES = 1000000 }; /* see wake */

/* A policy calls these as ifl_next, ifl_start and so on, below. */
struct ifl_step_ops {
    size_t size_bytes; /* sizeof(struct ifl_step_ops): it may grow at its end */
    /* The next request of the lists (a union of enum ifl_list) in rank order, NULL at the end.
     *   - Several lists are merged by rank. Calls with one cursor may name different lists: it
     *     keeps a place in each.
     *   - A cursor must not be used for both IFL_IN_RUNNING and IFL_IN_PREFILL.
     *   - Requests pushed to the front of waiting come first, before those of all other lists;
     *     those preempted in this plan are included.
     *   - LOADED requests are in front of all waiting requests, in the order in which they became
     *     LOADED: IFL_IN_WAITING shows them first, IFL_IN_LOADED shows only them.
     *   - Requests that left their list in this plan are skipped.
     *   - Requests that this plan started are not shown.
     *   - A cursor shows a request once; again only if the request has been preempted since.
     *   - Waiting requests are ranked by their present keys, running and swapped requests by the
     *     keys that they had when this plan first listed them. */
    const struct ifl_request *(*next)(struct ifl_step *, unsigned lists, struct ifl_cursor *);
    /* The requests on the device before this plan, in order of start. A request that has been
     * preempted since is still listed, with another `state`. */
    struct ifl_requests (*running)(struct ifl_step *);
    /* A request on the device before this plan, by rank from the end: `at` 0 is the one that
     * ifl_next shows last, 1 the one before it; NULL if there are no more. A request that has been
     * preempted since is still counted, with another `state`. */
    const struct ifl_request *(*last_ranked)(struct ifl_step *, size_t at);
    /* Waiting requests that this plan has started, in order of start; swapped requests that came
     * back are not listed. A request that has been preempted since is still listed; one that was
     * then started again is listed twice. The list lacks later starts: call again. */
    struct ifl_requests (*started)(struct ifl_step *);
    /* What the prefix cache holds of a waiting request; {0} without a cache. */
    struct ifl_hit (*hit)(struct ifl_step *, const struct ifl_request *);
    /* The parent of `node` in the radix cache's tree; 0 (the root) for the root and for a number
     * that is no node. */
    uint32_t (*above)(struct ifl_step *, uint32_t node);
    /* Free device blocks that the request would take so that each of its sequences holds
     * `hold_tokens` tokens (negative: 0), in K/V slots (ifl_n_slots) if it has given some up:
     *   - the blocks that it lacks;
     *   - of a waiting request, also the blocks of its hit that no other request uses;
     *   - of a request that does not run, also those of its adapter if the pool holds adapters and
     *     this one is not on the device.
     * With limits->contiguous it is rounded up as the allocator does; it exceeds n_free_blocks if
     * no place is free, or if the request has blocks and would have to grow. */
    int32_t (*need)(struct ifl_step *, const struct ifl_request *, int32_t hold_tokens);
    /* The verdict of the admit modules on starting a waiting or swapped request with n new tokens,
     * 0 <= n <= todo, if spare_blocks of the free blocks were taken; a negative spare_blocks counts
     * as 0, one above the pool as all its blocks. Starts nothing. Sets *takes, unless NULL, to the
     * blocks that a start would take, whatever the verdict; it does not check that they are free.
     * A breach of the contract in `ask` of an admit module and `pick` of a preempt module. */
    enum ifl_verdict (*ask)(struct ifl_step *, const struct ifl_request *, int32_t n,
                            int32_t spare_blocks, int32_t *takes);
    /* K/V tokens that the admit modules leave to the rest of this plan: the minimum of their
     * `room`. `enough` if there are more; negative if they have promised more than there is;
     * INFINITY if no admit module has `room`, whatever `enough`. Not from `room` of an admit
     * module: the recursion would not end. */
    double (*room)(struct ifl_step *, double enough);
    /* Starts a waiting, swapped or LOADED request with n new tokens after those of its hit, 0 <= n
     * <= todo, if every admit module says yes; for a LOADED request no module is asked. Any other
     * request or n is a breach of the contract. The start takes the blocks that the admission
     * named, shares the cached ones, and brings back those in host memory. The request computes
     * fewer than n tokens if its hit has grown since the plan looked.
     *
     * Returns the verdict: IFL_NO_BLOCKS also if all say yes and the blocks are not free. In two
     * cases the request does not start: it is loaded if its blocks are free, and the verdict is
     * IFL_SKIP:
     *   - a waiting request with K/V at another replica (hit.n_below), or in a tier that loads
     *     `apart`;
     *   - with serving.swap overlap, a swapped request, which runs as soon as its K/V has come. */
    enum ifl_verdict (*start)(struct ifl_step *, const struct ifl_request *, int32_t n);
    /* Gives a running request n more tokens, 0 < n <= todo, once a step, and no guessed ones. Any
     * other request or n, and a second call in a step, is a breach of the contract. The request
     * then holds blocks for hold_tokens (0: no more than it needs; below 0: a breach), or for its
     * slots if these are more. Returns IFL_YES or IFL_NO_BLOCKS. */
    enum ifl_verdict (*schedule)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                 int32_t hold_tokens);
    /* Gives one token, and those guessed after it (see drafts), to every running request that
     * decodes, is not scheduled yet and may go on (ifl_may_go_on), in order of start. Does the same
     * as `schedule` of each, faster. It serves all of them or none:
     *   - all if spare_blocks blocks are still free afterwards, and returns true; also true if no
     *     request is left;
     *   - none otherwise, and returns false.
     * After a false, another call in the plan tries again, for example once ifl_make_room has freed
     * blocks. After a true, another call gives nothing, whatever it returns. */
    bool (*schedule_ready)(struct ifl_step *, int32_t spare_blocks);
    /* Asks the preempt module for a victim in favour of `needy`, which runs or waits, and preempts
     * it. Returns true if a request other than `needy` was preempted; its blocks may be too few, so
     * that another call is needed. Returns false if `needy` itself was preempted (see its `state`),
     * or no request. With serving.swap overlap no request is preempted
     *   - while the blocks that `needy` lacks are being copied to host memory;
     *   - if `needy` itself would be swapped out while other swaps are under way;
     *   - if the victim of a swap has not computed since it came back. */
    bool (*make_room)(struct ifl_step *, const struct ifl_request *needy);
    /* Takes a running request off the device and undoes what this plan has scheduled for it. It
     * keeps the blocks that were taken for that, so that a swap copies them, too. Returns IFL_YES,
     * or IFL_WAIT for IFL_KEEP and for IFL_SWAP of a request in a step in flight, since its K/V is
     * not written yet. The place is used if the request waits again: after IFL_RECOMPUTE, and after
     * IFL_SWAP if the request has no K/V or the pool is full. These victims are a breach of the
     * contract:
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
    /* If this plan gives no token, the loop plans again at `at_ns`, which may be now, even if
     * nothing happens before. The earliest at_ns of a plan counts; if it is before now, or
     * IFL_NEVER, there is no wake. The run fails with IFL_E_STALLED after IFL_MAX_VAIN_WAKES wakes
     * in a row without an arrival, a step, a preemption or a rejection. */
    void (*wake)(struct ifl_step *, int64_t at_ns);
    /* Sets the padding of this step and, unchanged, of each step promised with it. It only adds to
     * the simulated duration; an engine does not compute it. The last call of a plan counts. A
     * negative number, more than 2^28 tokens or sequences, and more than 2^56 in prefill_q_q or
     * decode_context are a breach of the contract. */
    void (*pad)(struct ifl_step *, struct ifl_padding);
    /* Earliest arrival among waiting requests, IFL_NEVER if none; costs a walk over them. */
    int64_t (*oldest_waiting_ns)(struct ifl_step *);
    /* 64 uniform random bits (ifl_uniform in random.h turns them into a number between 0 and 1).
     * They depend on workload.arrivals.seed, the request and `index` alone: modules that pass the
     * same index get the same bits. */
    uint64_t (*draw)(struct ifl_step *, const struct ifl_request *, uint32_t index);
    /* Only once the plan is made, from on_step_start; before, it is a breach of the contract. True
     * if the plan gave the request tokens, or started it (also with none) and let that stand. */
    bool (*took_part)(struct ifl_step *, const struct ifl_request *);
    /* Requests that this plan has given tokens so far, in no order. The next call overwrites it. */
    struct ifl_requests (*scheduled)(struct ifl_step *);
    /* Notes for the user why the batching module does not start a request, or is about to reject
     * it. `why` is a constant text that follows the module's name and stays valid until the run
     * ends. The step notes refusals of other modules itself. For requests of one state the last
     * refusal of a plan counts. Changes nothing else. */
    void (*refuse)(struct ifl_step *, const struct ifl_request *, const char *why);
    /* As schedule, with n_draft guessed tokens after the n tokens; n_draft is at most what `drafts`
     * returns. At the end of the step the accepted guesses and one more token count as sampled, up
     * to the end of the answer; n_computed falls by the rejected ones, and their blocks stay.
     * ifl_n_now counts the n tokens, step->n_tokens counts both. */
    enum ifl_verdict (*schedule_drafts)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                        int32_t n_draft, int32_t hold_tokens);
    /* At the end of this step a running request keeps the K/V of n_slots tokens, chosen by
     * serving.kv.keep, and gives back the blocks of the others. With n_slots of all its tokens it
     * does nothing. Any other n_slots ends the run with the module's name: serving.kv.keep alone
     * decides which K/V is given up. */
    void (*keep)(struct ifl_step *, const struct ifl_request *, int32_t n_slots);
    /* Brings the n tokens of K/V of a waiting request that follow its hit (hit.n_below) to the
     * device, and takes their blocks now, without asking a module: the request is MOVING, then
     * LOADED. Returns IFL_YES or IFL_NO_BLOCKS; a refusal changes nothing. n = 0 does nothing and
     * returns IFL_YES. In this version n must be all of n_below, and IFL_LOAD_BY_LAYER ends the
     * run. From a tier (serving.kv.tiers) only IFL_LOAD_APART is possible; ifl_start loads as the
     * tier's key `loads` says. */
    enum ifl_verdict (*load)(struct ifl_step *, const struct ifl_request *, int32_t n,
                             enum ifl_load_way);
    /* Requests on the device, after the changes so far, with the adapter; 0: those without one. */
    int32_t (*adapter_users)(struct ifl_step *, uint32_t adapter);
    /* Tokens that the draft module guesses after the next token of a running request that decodes,
     * cut to the longest sequence of the model; 0 for any other request. If the plan gives them
     * (schedule_drafts, schedule_ready), the step computes and verifies them. */
    int32_t (*drafts)(struct ifl_step *, const struct ifl_request *);
    /* As start, of a request that computes n tokens and n_rows > 0 rows of padding after them. The
     * rows take the place of guesses, which the request does not have yet: it holds blocks for
     * them, and they are not verified (see pad). step->n_tokens counts both. */
    enum ifl_verdict (*start_padded)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                     int32_t n_rows);
    /* The refusal that all waiting requests would get for the rest of the plan; IFL_YES: some may
     * get another answer, have several sequences or be LOADED. None has more than *longest tokens.
     */
    enum ifl_verdict (*ask_for_all)(struct ifl_step *, int32_t *longest);
};

/* Totals of the step being built. Every call may change them, so do not keep copies. */
struct ifl_step {
    const struct ifl_step_ops *ops;
    int32_t n_tokens, n_requests;                 /* scheduled */
    int32_t n_prefill_tokens, n_prefill_requests; /* of them, in prefill */
    int32_t n_running_requests, n_running_seqs;   /* on the device by now, of the plan's slot */
    int32_t n_in_prefill;                         /* of view->n_running, in prefill */
    int32_t n_waiting, n_swapped, n_loaded;       /* after the changes so far; n_waiting includes
                                                     LOADED requests */
    /* After the changes so far. Cached blocks that no request uses are free. Host blocks of a
     * request that this plan brings back are free from the next plan on. */
    int32_t n_free_blocks, n_free_host_blocks;
    /* in this plan; a swap-in is not counted in n_started */
    int32_t n_started, n_preempted, n_swapped_out, n_swapped_in;
    unsigned asked;     /* kinds of module that this plan has asked: bits 1 << enum ifl_kind */
    uint64_t note;      /* set by the plan for its module's on_step_start; 0 in a promised step */
    int32_t max_drafts; /* as limits->max_drafts */
    int32_t n_adapters; /* different adapters of requests on the device, after the changes so far */
    int32_t n_adapter_blocks; /* KV blocks that they take */
    int32_t max_model_tokens; /* as limits->max_model_tokens */
};

/* ---- calls, as a policy writes them: struct ifl_step_ops says what each does ---- */

/* The number of the step that is planned, or is planned next. */
static inline uint64_t ifl_next_step(const struct ifl_view *view)
{
    return view->step + view->n_in_flight;
}

/* The step being planned, for questions. NULL outside of a plan, but not in `rank` and `keys` of an
 * order: these are also called as a request joins, and as a hook (on_step_start) reads a list, and
 * are given the step of the last plan then. If keys of an order read the step, `rank` is called
 * again whenever the plan has changed it. */
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

/* Asks for several requests one after another, without starting them. *taken is 0 before the first
 * call; it sums the blocks that the requests so far would take. The blocks of r are added if the
 * verdict is IFL_YES. */
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

/* KV blocks that a start of r takes for its adapter; 0: none, or the adapter is on the device. */
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
