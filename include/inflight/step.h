/* The view a policy reads and the step it builds.
 *
 * A plan sees one replica at one instant: the view is a snapshot of counts, request records and
 * step totals are live. It acts only through the step, whose functions come in a table, so that a
 * plug-in has no undefined symbol. Refusals are answers; scheduling what is not on the device, or
 * more than it has left to compute, breaks the contract and ends the run with the policy's name. */
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
    uint32_t n_clients;       /* client numbers are below this */
    bool contiguous;          /* what a request holds at its start never grows */
};

/* ---- the view ---- */

struct ifl_step;

struct ifl_view {
    int64_t now_ns;
    uint64_t step; /* number of the step being planned, or of the first in flight */
    const struct ifl_limits *limits;
    size_t n_running, n_waiting, n_swapped; /* before this plan */
    uint64_t n_in_flight;                   /* steps that have begun and not ended */
    int32_t n_free_blocks, n_free_host_blocks;
    int64_t last_prefill_ns; /* duration of the last step that computed prompt tokens */
    int32_t n_ended_blocks;  /* given back by requests that ended since a step began */
    struct ifl_step *(*plan)(const struct ifl_view *); /* see ifl_plan */
    /* The order's key of that request has changed. From hooks, and from the order's `keys`. */
    void (*rerank)(const struct ifl_view *, const struct ifl_request *);
    uint32_t n_tries; /* plans of this step before this one: none gave a token */
};

enum ifl_verdict {
    IFL_YES,
    IFL_NO_BLOCKS,      /* not now: too few device blocks */
    IFL_NO_HOST_BLOCKS, /* not now: the swap pool is too full for any waiting request */
    IFL_WAIT,           /* not now, for a reason of the policy's own */
    IFL_SKIP,           /* not this one; the next may pass */
    IFL_NEVER_FITS      /* never: reject it */
};

enum ifl_fate {
    IFL_RECOMPUTE, /* blocks are dropped, n_computed returns to 0 */
    IFL_SWAP,      /* blocks are copied to host memory before the step computes */
    IFL_KEEP       /* no request gives way */
};

/* Where a request preempted by recompute re-enters waiting. Several of one step that go to the
 * front keep their order: the one preempted last stands first; of several that go to the back, too,
 * the one preempted last stands last. */
enum ifl_place {
    IFL_FRONT,    /* before everything else, whatever its rank */
    IFL_IN_ORDER, /* where its rank puts it */
    IFL_BACK      /* ranked as if it had arrived now */
};

/* Bits: ifl_next takes a union of them. */
enum ifl_list {
    IFL_IN_WAITING = 1,
    IFL_IN_RUNNING = 2,
    IFL_IN_SWAPPED = 4,
    IFL_IN_PREFILL = 8 /* the running ones that do not decode yet */
};

/* Where ifl_next is. Starts as {0}; survives start, schedule, preempt and reject within a plan. */
struct ifl_cursor {
    uint64_t at[4];
};

struct ifl_victim {
    const struct ifl_request *request; /* on the device, perhaps the needy one; NULL: none */
    enum ifl_fate fate;
    enum ifl_place place;
};
/* What the prefix cache holds of a waiting request's tokens, now. Cached K/V is at most n_tokens -
 * 1 tokens: one is always computed, to sample from. */
struct ifl_hit {
    int32_t n_cached; /* tokens; the same number that n_computed of a waiting request shows */
    int32_t n_soon;   /* more tokens that follow them and are being computed by running requests */
    uint32_t
        node; /* of the cache's tree where the match ends; 0, the root, where nothing matches */
};

struct ifl_requests { /* borrowed until the plan returns */
    const struct ifl_request *const *of;
    size_t n;
};

/* What a step computes for nobody: prompts filled up to the longest of their batch, sequences that
 * have ended and keep their row until the batch does. It costs time and holds no K/V. */
struct ifl_padding {
    int32_t n_prefill_tokens;
    int64_t prefill_q_q; /* what filling up adds to the sum of new x new */
    int32_t n_decode_seqs;
    int64_t decode_context; /* tokens whose K/V these sequences read */
};

/* "For n_steps more steps that start by until_ns and leave min_free_blocks free after taking their
 * own, I would schedule the same requests in the same order, one token each, and nothing else."
 * {0} promises nothing and is always right. It must not cover a step that asks a module which this
 * plan has not asked, for only those that were asked bound it (see steady in policy.h). The loop
 * itself stops when anything arrives, finishes or wakes, and when a block is refused. Within such a
 * run free blocks only fall and seats stand. Where somebody finishes it ends, too, unless it is
 * made to the last, by the plan and by every module that bounds it and was asked: "and if nobody
 * waits or is swapped out, and all on the device take part, those who remain when some have had
 * their last token would go on so". */
struct ifl_promise {
    int32_t n_steps;
    int64_t until_ns;
    int32_t min_free_blocks;
    bool to_the_last;
};

enum { IFL_MAX_VAIN_WAKES = 1000000 }; /* see wake */

/* A policy calls these as ifl_next, ifl_start and so on, below. */
struct ifl_step_ops {
    size_t size_bytes; /* sizeof(struct ifl_step_ops): it may grow at its end */
    /* The next request of the lists (a union of enum ifl_list) in rank order, NULL at the end.
     * Waiting requests pushed to the front come first, those preempted in this plan included.
     * Requests that left their list in this plan are passed over; those that started in it are not
     * shown. A cursor shows a request once, unless it came to wait again. The keys of waiting
     * requests are those of now; running and swapped ones stand in the order that they had when the
     * plan first listed them. */
    const struct ifl_request *(*next)(struct ifl_step *, unsigned lists, struct ifl_cursor *);
    /* The requests on the device before this plan, in order of start. One that has given way since
     * is still listed: its state says so. */
    struct ifl_requests (*running)(struct ifl_step *);
    /* The same in the order of rank in which ifl_next shows them, backwards: the last for at 0, the
     * one before it for 1, NULL beyond the first. */
    const struct ifl_request *(*last_ranked)(struct ifl_step *, size_t at);
    /* Requests that joined RUNNING in this plan, in order of start; as above. */
    struct ifl_requests (*started)(struct ifl_step *);
    /* The prefix cache's answer for a waiting request; {0} without a cache. */
    struct ifl_hit (*hit)(struct ifl_step *, const struct ifl_request *);
    /* The node above `node` in the cache's tree; 0 is the root, and above it. */
    uint32_t (*above)(struct ifl_step *, uint32_t node);
    /* Free device blocks that holding `hold_tokens` tokens would take from the pool: those that
     * `request` lacks, and for a waiting one also those of its hit that nobody else uses. */
    int32_t (*need)(struct ifl_step *, const struct ifl_request *, int32_t hold_tokens);
    /* What the admit module says to a waiting or swapped request with n new tokens, if so many
     * blocks that are free now are not. *takes, unless NULL: blocks that start would then take. */
    enum ifl_verdict (*ask)(struct ifl_step *, const struct ifl_request *, int32_t n,
                            int32_t spare_blocks, int32_t *takes);
    /* Tokens of K/V that the admit module leaves to the rest of this plan, or `enough` where that
     * is less; INFINITY: it does not say. */
    double (*room)(struct ifl_step *, double enough);
    /* A waiting or swapped request joins RUNNING with n new tokens (0 is allowed) behind those of
     * its hit, if the admit module says yes; fewer where its hit has grown since the plan looked.
     * Gives it the blocks the answer named, shares the cached ones, swaps in where needed. After a
     * yes it is IFL_NO_BLOCKS if those blocks are not free. */
    enum ifl_verdict (*start)(struct ifl_step *, const struct ifl_request *, int32_t n);
    /* A running request computes n more tokens, 0 < n <= todo, holding blocks for hold_tokens or
     * for what it computes, whichever is more. IFL_YES or IFL_NO_BLOCKS; a refusal changes
     * nothing. */
    enum ifl_verdict (*schedule)(struct ifl_step *, const struct ifl_request *, int32_t n,
                                 int32_t hold_tokens);
    /* One token for every running request that decodes and is not scheduled yet, in order of
     * start; all or none. Refuses (false) unless spare_blocks remain free afterwards. The same as
     * scheduling each, only faster. */
    bool (*schedule_ready)(struct ifl_step *, int32_t spare_blocks);
    /* Asks the preempt module for a victim and preempts it. True: another than `needy` gave way.
     * False: needy itself did, or nobody. */
    bool (*make_room)(struct ifl_step *, const struct ifl_request *needy);
    /* Takes a running request off the device. What this step scheduled for it is undone, which
     * nobody that started in this plan may have begun behind (serving.kv.publish: scheduled). */
    enum ifl_verdict (*preempt)(struct ifl_step *, const struct ifl_request *, enum ifl_fate,
                                enum ifl_place);
    /* Drops a waiting or swapped request for good. Reports count it as rejected, or as failed if it
     * has run before. */
    void (*reject)(struct ifl_step *, const struct ifl_request *);
    void (*promise)(struct ifl_step *, struct ifl_promise);
    /* If this plan is empty, plan again at `at_ns`, which may be now, even if nothing happens
     * before. The run fails once IFL_MAX_VAIN_WAKES in a row have come to nothing: no arrival, no
     * step, no move. */
    void (*wake)(struct ifl_step *, int64_t at_ns);
    /* The step, and those that a promise makes of it, compute this besides. An engine does not. */
    void (*pad)(struct ifl_step *, struct ifl_padding);
    /* Earliest arrival among waiting requests, IFL_NEVER if none; costs a walk over them. */
    int64_t (*oldest_waiting_ns)(struct ifl_step *);
    /* A random number that depends on (seed, request, index) alone. */
    uint64_t (*draw)(struct ifl_step *, const struct ifl_request *, uint32_t index);
    /* From on_step_start alone: the plan has given the request tokens, or brought it to the device.
     */
    bool (*took_part)(struct ifl_step *, const struct ifl_request *);
    /* Everyone whom this plan has given tokens, in no particular order. */
    struct ifl_requests (*scheduled)(struct ifl_step *);
    /* Says why the batching module does not start a request or is about to drop it, for the user: a
     * constant text that reads on behind the module's name. What other modules refuse is known. */
    void (*refuse)(struct ifl_step *, const struct ifl_request *, const char *why);
    /* The next plan is made ahead of the end of this step, and of those that a promise makes of it:
     * a request that has its last token by then runs on in that plan's eyes, holds its blocks and
     * its seat and may give way. What the plan gives it is computed for nothing, as padding. It
     * leaves when that plan is made; where the plan gives no token, another follows. */
    void (*plan_ahead)(struct ifl_step *);
};

/* Totals of the step being built; read them, never keep them. */
struct ifl_step {
    const struct ifl_step_ops *ops;
    int32_t n_tokens, n_requests;                 /* scheduled */
    int32_t n_prefill_tokens, n_prefill_requests; /* of which: do not decode yet */
    int32_t n_running_requests, n_running_seqs;   /* on the device, after the changes so far */
    int32_t n_in_prefill;                         /* of those before this plan: do not decode yet */
    int32_t n_waiting, n_swapped;                 /* after the changes so far */
    int32_t n_free_blocks, n_free_host_blocks;    /* after the changes so far */
    int32_t n_started, n_preempted, n_swapped_out, n_swapped_in; /* in this plan */
    unsigned asked; /* kinds of module that this plan has asked: bits 1 << enum ifl_kind */
    uint64_t note;  /* by the plan, for its module's on_step_start; 0 where a promise stands in */
};

/* ---- calls, as a policy writes them: what each does stands at struct ifl_step_ops ---- */

/* The step being planned, for questions; NULL outside of a plan. An order whose keys look at it has
 * them asked for again whenever the plan has changed it. */
static inline struct ifl_step *ifl_plan(const struct ifl_view *view)
{
    return view->plan(view);
}

static inline void ifl_rerank(const struct ifl_view *view, const struct ifl_request *r)
{
    view->rerank(view, r);
}

/* False: nobody is left on any of the lists. */
static inline bool ifl_may_list(const struct ifl_step *s, unsigned lists)
{
    return (lists & IFL_IN_WAITING && s->n_waiting > 0) ||
           (lists & IFL_IN_SWAPPED && s->n_swapped > 0) ||
           (lists & IFL_IN_PREFILL && s->n_in_prefill > 0) ||
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

static inline enum ifl_verdict ifl_ask(struct ifl_step *s, const struct ifl_request *r, int32_t n)
{
    return s->ops->ask(s, r, n, 0, NULL);
}

static inline enum ifl_verdict ifl_ask_beyond(struct ifl_step *s, const struct ifl_request *r,
                                              int32_t n, int32_t spare_blocks)
{
    return s->ops->ask(s, r, n, spare_blocks, NULL);
}

/* Of several one after the other, none of whom starts: *taken are the blocks of those before r, and
 * then of r too, if it says yes. */
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

static inline void ifl_plan_ahead(struct ifl_step *s)
{
    s->ops->plan_ahead(s);
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

static inline bool ifl_took_part(struct ifl_step *s, const struct ifl_request *r)
{
    return s->ops->took_part(s, r);
}

/* ---- what most batching modules do with them ---- */

/* Sequences of the widest group on the device before this plan. */
static inline int32_t ifl_widest_group(struct ifl_step *s)
{
    int32_t n = 1;
    if (s->n_running_seqs == s->n_running_requests)
        return n;
    const struct ifl_requests running = ifl_running(s);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING && running.of[i]->n_seqs > n)
            n = running.of[i]->n_seqs;
    return n;
}

/* What a step is asked for, at most, or what it has. */
struct ifl_demand {
    int64_t n_seqs, n_tokens, n_blocks;
};

static inline bool ifl_within(const struct ifl_demand *demand, const struct ifl_demand *most)
{
    return demand->n_seqs <= most->n_seqs && demand->n_tokens <= most->n_tokens &&
           demand->n_blocks <= most->n_blocks;
}

/* Adds everyone who waits, with the whole of their prompts. False: it is too much; how much more
 * was not looked at. */
static inline bool ifl_add_waiting(struct ifl_step *s, struct ifl_demand *demand,
                                   const struct ifl_demand *most)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    for (int32_t left = s->n_waiting;
         left > 0 && ifl_within(demand, most) && (r = ifl_next(s, IFL_IN_WAITING, &cursor));
         left--) {
        demand->n_seqs += r->n_seqs;
        demand->n_tokens += (int64_t)r->n_seqs * ifl_todo(r);
        demand->n_blocks += ifl_need(s, r, ifl_n_tokens(r));
    }
    return ifl_within(demand, most);
}

/* n more tokens for a running request that leave spare_blocks free; others give way until its
 * blocks are there. Where nobody does, those that it touches suffice. False: it gave way itself, or
 * does not get them. */
static inline bool ifl_give(struct ifl_step *s, const struct ifl_request *r, int32_t n,
                            int32_t spare_blocks)
{
    while (n > 0 && r->state == IFL_RUNNING &&
           (s->n_free_blocks < spare_blocks || ifl_schedule(s, r, n, 0) != IFL_YES))
        if (!ifl_make_room(s, r))
            return r->state == IFL_RUNNING && s->n_free_blocks < spare_blocks &&
                   ifl_schedule(s, r, n, 0) == IFL_YES;
    return r->state == IFL_RUNNING;
}

/* Every running request decodes, in order of start, as ifl_give says. */
static inline void ifl_decode_one_by_one(struct ifl_step *s, int32_t spare_blocks)
{
    const struct ifl_requests running = ifl_running(s);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING && ifl_decodes(running.of[i]))
            ifl_give(s, running.of[i], 1, spare_blocks);
}

/* The batching module's own verdict on a request that would wait for ever. */
static inline enum ifl_verdict ifl_never(struct ifl_step *s, const struct ifl_request *r,
                                         const char *why)
{
    ifl_refuse(s, r, why);
    return IFL_NEVER_FITS;
}

/* Drops a group that is wider than all seats. */
static inline bool ifl_dropped_as_too_wide(struct ifl_step *s, const struct ifl_request *r,
                                           int32_t max_seqs)
{
    if (r->n_seqs <= max_seqs)
        return false;
    (void)ifl_never(s, r, "the request has more sequences than max_seqs");
    ifl_reject(s, r);
    return true;
}

/* Drops who never fits. False: r must wait, and with it whoever stands in line behind it. */
static inline bool ifl_settled(struct ifl_step *s, const struct ifl_request *r,
                               enum ifl_verdict verdict)
{
    if (verdict == IFL_NEVER_FITS)
        ifl_reject(s, r);
    return verdict == IFL_YES || verdict == IFL_SKIP || verdict == IFL_NEVER_FITS;
}

/* This plan has taken its place: it waits again since now. */
static inline bool ifl_gave_way_now(const struct ifl_view *view, const struct ifl_step *s,
                                    const struct ifl_request *r)
{
    return r->state == IFL_WAITING && s->n_preempted > 0 && r->n_preempted > 0 &&
           r->queued_ns == view->now_ns;
}

/* What it had generated before the step that has ended now, if that was one of its own: what a plan
 * made as that step began knows of. */
static inline int32_t ifl_out_before(const struct ifl_view *view, const struct ifl_request *r)
{
    return ifl_n_out(r) - (ifl_last_end_ns(r) == view->now_ns);
}

/* Those in host memory come back for a token each, in rank order until one must wait or max_seqs
 * sequences run. */
static inline void ifl_return_swapped(struct ifl_step *s, int32_t max_seqs)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (s->n_running_seqs < max_seqs && (r = ifl_next(s, IFL_IN_SWAPPED, &cursor)))
        if (!ifl_settled(s, r, ifl_start(s, r, 1)))
            return;
}

#endif
