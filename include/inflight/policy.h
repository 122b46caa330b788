/* Policy modules: a configuration names modules of each kind, which together are a scheduler.
 *
 * The batching module plans each step. Modules of the other kinds answer questions, which the step
 * asks for the batching module. A module is one `struct ifl_policy`.
 *   - It sees only the view and acts only through the step.
 *   - It has no clock, no I/O and no random numbers but ifl_policy_draw.
 *   - No pointer that it is given is NULL. The view, the step and lists are borrowed until it
 *     returns; a request is valid from on_join until on_leave has returned.
 *   - Its state changes in hooks only; planning and answering read it. Two exceptions: sums that no
 *     answer depends on, and what an order brings up to date in `keys`.
 *   - It has no state but what it finds by ifl_state, ifl_mine, ifl_client and ifl_at, and what
 *     `init` or a hook of its own has taken memory for: no static variables. Threads call instances
 *     of several replicas and runs at the same time, and a process makes one run after another.
 *
 * Two optional functions are for speed alone; no result depends on them, and serving.check_steady
 * finds a module that uses them wrongly.
 *   - `steady`: without it, every step in which the module has a say is planned and told by itself.
 *   - `keys` of an order: without it, keys are asked for again whenever a list is read after any
 *     change.
 * Four fields are for speed, too, and are not checked: `ignores_depth` and `by_last_use` of an
 * eviction, `for_all` of a draft, `shown_alone` of a batching module.
 *
 * Out of tree: export one list of policies, build it as a shared object against the installed
 * headers alone, load it with `--plugin FILE.so`:
 *
 *     IFL_POLICIES(&my_policy);
 */
#ifndef INFLIGHT_POLICY_H
#define INFLIGHT_POLICY_H

#include "inflight/batching.h"
#include "inflight/error.h"
#include "inflight/fleet.h"
#include "inflight/step.h"
#include "inflight/time.h"

#define IFL_POLICY_ABI 3u

/* ---- parameters: one table parses, checks and documents them ---- */

enum ifl_type {
    IFL_INT,    /* int32_t */
    IFL_REAL,   /* double */
    IFL_BOOL,   /* bool */
    IFL_TIME,   /* int64_t nanoseconds, written in seconds */
    IFL_CHOICE, /* int32_t, the index of one of `choices` */
    IFL_COUNT,  /* uint64_t: seeds and numbers of rows */
    IFL_TEXT    /* char[max], the NUL included */
};

/* A parameter: a key beside `policy: NAME` in the module's section of the configuration.
 *
 *     {"max_seqs", IFL_INT, offsetof(struct mine, max_seqs), 128, 1, 1 << 20, NULL, "sequences",
 *      "most sequences on the device"},
 */
struct ifl_param {
    const char *name; /* of the key: by custom the field's name; a time's ends in _s, not _ns */
    enum ifl_type type;
    size_t offset;         /* of the field in the module's parameter struct */
    double dflt, min, max; /* inclusive; for IFL_TIME in seconds; a choice ignores min and max;
                              dflt NAN: the field must be given */
    const char *choices;   /* "one|two|three" for IFL_CHOICE; the default of an IFL_TEXT; or NULL */
    const char *unit;      /* "tokens", "s", ... or "" */
    const char *doc;       /* one line */
};

/* ---- the kinds ---- */

struct ifl_batching_ops {
    /* Decides which requests run in this step, each with how many tokens. Called when a further
     * step may be in flight and a request waits, runs or is swapped out. With several in flight
     * (limits->max_in_flight above 0) n_computed is ahead of what has been computed, and a request
     * may run and have nothing to do (ifl_todo 0): its token is not known yet. Requests that this
     * step may not hold are not shown. It may give no token: the next plan is made
     * at the next event or wake (ifl_wake), or at once if this one preempted or rejected; if it
     * copies blocks, by a swap, the copies are a step without tokens. A plan that gives none,
     * changes nothing and asks for no wake drops a request that it refused for want of blocks, for
     * good or by ifl_refuse. What it refused with IFL_WAIT or IFL_SKIP is dropped when no event is
     * left. If it refused nothing then, the run ends with IFL_E_STALLED. */
    void (*plan)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* When keys of an order may change, and so when they are asked for again. The key of a request that
 * joins a list is asked for in any case. */
enum ifl_keys {
    IFL_KEYS_MOVE, /* any key at any time: with time, a hook, a change that the plan makes */
    IFL_KEYS_PLAN, /* any key, but not within a plan: all keys are asked for once a plan */
    IFL_KEYS_OWN, /* a key only when its request computes tokens, or by ifl_rerank; not with time */
    IFL_KEYS_NAMED /* a key only by ifl_rerank */
};

struct ifl_order_ops {
    /* Sets every key[i], of the request of[i], i < n; n may be 0, and any int64_t is a key. A key
     * that is not set is whatever lay there before. The requests wait, run or are in host memory;
     * on_join has been called for each. Smaller keys go first; ties go by arrival (while it waits
     * at the back, the time at which it was sent there), then by serial. May read the step through
     * ifl_plan(view), which is NULL outside of a plan, for example the requests that this plan has
     * started; not its lists (ifl_next, ifl_last_ranked, ifl_oldest_waiting_ns), which wait for
     * these keys: that is a breach of the contract, and so it is in `keys`. */
    void (*rank)(const void *self, const struct ifl_view *, const struct ifl_request *const *of,
                 size_t n, int64_t *key);
    /* Optional, for speed; without it IFL_KEYS_MOVE. Called once a plan, before the plan first
     * reads a ranked list or preempts, so that a module that defers its bookkeeping can catch up
     * and call ifl_rerank for each request with another key. */
    enum ifl_keys (*keys)(const void *self, const struct ifl_view *);
};

struct ifl_admission {
    enum ifl_verdict verdict;
    int32_t
        hold_tokens;  /* blocks are taken now for so many tokens, or for those computed if more */
    int64_t until_ns; /* of a refusal: ask again then, even if nothing happens; 0, or any time that
                         is not later than now: not given */
};

/* The answer without until_ns. hold_tokens is per sequence, 0: blocks for the computed tokens
 * alone; of a yes it is not negative. A swapped request takes blocks for all that it has in host
 * memory, whatever hold_tokens. A refusal needs none: nothing is taken for it. */
static inline struct ifl_admission ifl_admission(enum ifl_verdict verdict, int32_t hold_tokens)
{
    return (struct ifl_admission){verdict, hold_tokens, 0};
}

/* IFL_WAIT, to be asked again at until_ns. */
static inline struct ifl_admission ifl_not_before(int64_t until_ns)
{
    return (struct ifl_admission){IFL_WAIT, 0, until_ns};
}

/* IFL_SKIP, to be asked again at until_ns: requests behind this one may start. */
static inline struct ifl_admission ifl_skip_until(int64_t until_ns)
{
    return (struct ifl_admission){IFL_SKIP, 0, until_ns};
}

/* A configuration may list several admit modules. They are asked in order; the first answer that is
 * not IFL_YES counts. If all say yes, the largest hold_tokens counts. Of several rooms the smallest
 * counts. */
struct ifl_admit_ops {
    /* May `request`, waiting or swapped, start with n new tokens, 0 <= n <= ifl_todo? Asked for
     * ifl_start and for ifl_ask, so that a yes is not yet a start: see on_start. The blocks that
     * ifl_ask_beyond sets aside are missing in step->n_free_blocks. ifl_start turns a yes for which
     * too few blocks are free into IFL_NO_BLOCKS; ifl_ask does not. Must not call ifl_ask,
     * ifl_start or ifl_make_room. */
    struct ifl_admission (*ask)(const void *self, const struct ifl_view *, struct ifl_step *,
                                const struct ifl_request *request, int32_t n);
    /* Optional. K/V tokens on the device that are left to the rest of this plan after the future
     * demand of the running requests; negative if that demand is larger than the free pool. It may
     * stop counting at `enough` tokens and return `enough`; the caller takes anything from there on
     * alike. Called at any time in a plan; only reads, and does not call ifl_room. */
    double (*room)(const void *self, const struct ifl_view *, struct ifl_step *, double enough);
};

struct ifl_preempt_ops {
    /* The request that is preempted in favour of `needy`, and its fate; {0}: none. The state of the
     * request must be IFL_RUNNING; `needy` itself may be it if it runs. What the plan has scheduled
     * for the victim is undone. One that this plan has brought back from host memory, or on whose
     * tokens of this plan another has started (serving.kv.publish: scheduled), does not give way:
     * then none does. Must not call ifl_ask, ifl_start or ifl_make_room. */
    struct ifl_victim (*pick)(const void *self, const struct ifl_view *, struct ifl_step *,
                              const struct ifl_request *needy);
    /* Optional. Called at the end of each plan, behind the batching module, so that requests can be
     * swapped out ahead of need with ifl_preempt (FastServe), and those in host memory that fit
     * brought back by ifl_start with 0 tokens; nothing else. */
    void (*ahead)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* A block that no request uses: cached, or one without K/V where serving.kv.unhashed is in-order.
 * Borrowed until the call returns. */
struct ifl_cached {
    uint64_t last_used; /* number of the last use; later uses have larger numbers */
    int64_t last_used_ns;
    uint64_t n_uses;      /* starts on it, computing it included; in a radix cache, insertions of
                             a request that run through it */
    int32_t depth_tokens; /* length of the prefix that ends with this block; INT32_MAX: the block
                             holds no cached K/V */
    /* True if a waiting request would start on the block now. Costs a walk over the waiting
     * requests. A key that has read it is asked for again when the answer changes. */
    bool (*wanted)(const struct ifl_cached *);
};

/* Only within `key`. */
static inline bool ifl_wanted(const struct ifl_cached *block)
{
    return block->wanted(block);
}

struct ifl_evict_ops {
    /* The block with the smallest key is evicted first; ties go to the deepest, then to the least
     * recently used. Asked when a block may be evicted for the first time, long before room is
     * lacking: as it has become unused and, in a tree, has no block below it. The key stands until
     * the block is used again. May be asked outside of a plan. */
    int64_t (*key)(const void *self, const struct ifl_view *, const struct ifl_cached *);
    /* True: keys do not read depth_tokens, so that blocks of a prefix that became unused together
     * share one key. */
    bool ignores_depth;
    /* Optional, for speed. True: the key is last_used; or, if the parameters say so, last_used_ns.
     * Which of the two is asked once before any plan, of a block that has these two alone. */
    bool by_last_use;
};

/* How many tokens are guessed (speculative decoding). Which ones, and how many of them hold, is the
 * executor's business (serving.speculation). A module hears of the latter in on_step_end. What it
 * answers may change in any hook. It is asked once per request and plan, and that answer stands
 * until the next plan, so that a change in on_start, on_undo or on_preempt may come too late for
 * requests of the same plan. */
struct ifl_draft_ops {
    /* Tokens guessed behind the next token of a request that decodes: 0 to `most`, or the contract
     * is broken. NULL: none ever, and there is no speculation. */
    int32_t (*ask)(const void *self, const struct ifl_view *, const struct ifl_request *);
    /* The most that `ask` may answer, 0 to 64. It reads the parameters alone, to which params
     * points, and is called before `init`. */
    int32_t (*most)(const void *params);
    /* Optional, for speed: what `ask` would answer for every request; negative: it depends. */
    int32_t (*for_all)(const void *self, const struct ifl_view *);
};

/* ---- the end of a step, as on_step_end is told of it ---- */

struct ifl_result {
    const struct ifl_request *request;
    int32_t n_new, n_sampled; /* tokens computed, and sampled, of each of its sequences */
    int32_t n_draft; /* of n_new, tokens that were guessed beforehand: all but n_sampled - 1
                        of them were rejected */
};

struct ifl_results { /* borrowed until the hook returns */
    const struct ifl_result *of;
    size_t n;
};

/* One step, or n_steps steps in a row that gave the same requests one token each. */
struct ifl_step_end {
    uint64_t step;            /* number of the last of them */
    int32_t n_steps;          /* 1 unless the module has `steady` */
    int64_t start_ns, end_ns; /* of the first, and of the last */
    const int64_t *ends_ns;   /* [n_steps] */
    size_t n_requests;        /* that were given tokens */
    int32_t n_preempted;
    struct ifl_results (*results)(const struct ifl_step_end *);
};

/* The requests that were given tokens, and how many: first those that decode, in order of start,
 * then the others in the order in which the plan scheduled them. Where several steps are in flight
 * all are in the order in which the plan scheduled them. The list is made when it is first asked
 * for, which costs a walk over the requests. Only within on_step_end. */
static inline struct ifl_results ifl_results(const struct ifl_step_end *end)
{
    return end->results(end);
}

struct ifl_policy {
    enum ifl_kind kind;
    const char *name, *doc; /* as in `policy: NAME`; one line */
    const struct ifl_param *params;
    size_t n_params;
    size_t params_bytes;  /* of the parameter struct */
    size_t state_bytes;   /* of the instance's own state, zeroed at the start of a run */
    size_t request_bytes; /* on every request (ifl_mine), zeroed when it joins a replica; a router
                             that asks for some is refused when it is loaded */
    size_t client_bytes;  /* on every client (ifl_client), zeroed at the start of a run */
    size_t replica_bytes; /* of a router on every replica (ifl_at), zeroed at the start of a run;
                             other kinds: 0 */
    bool leaves_out; /* a batching module that itself leaves out what plans made ahead do not know
                        (limits->plans_ahead): ifl_next shows all, and requests leave as they end */
    /* Optional, for speed: a batching module for which only those requests count that a plan made
     * ahead is shown, as it is shown them. It reads neither how many wait (n_waiting,
     * ifl_oldest_waiting_ns) nor which have ended. Its promises then cover the plan that does not
     * know of an arrival, and under to_the_last the one that does not know of an end; and a plan
     * that would be shown no request is left out. */
    bool shown_alone;
    /* A router that sends requests to two replicas (ifl_send_pair) wherever there are as many: it
     * is refused as the configuration is read, where no pool has a role. Without this the run ends
     * with its name when it first does so. */
    bool sends_pairs;
    /* Each replica has an instance of the module; a router has one for the cluster. `self` is never
     * NULL: it points to the instance's parameter struct, filled in; ifl_state finds its state.
     * init and finish are optional. init may take memory, which finish gives back. The limits stay
     * valid until finish returns. init returns 0; IFL_E_INPUT with a line that says what was found
     * and what was expected (ifl_fail), if the parameters do not go with the limits; or
     * IFL_E_NOMEM. Any other answer ends the run. The module's name goes before the line. finish is
     * called once, after a failure of init, too. */
    int (*init)(void *self, const struct ifl_limits *, struct ifl_error *);
    void (*finish)(void *self);
    /* Hooks, all optional. Those of a router are in its ops. */
    /* A request has come to the replica, at view->now_ns, and is about to wait: its state is
     * IFL_WAITING, and no list or count has it yet. Its key is asked for after the hook. Called
     * once for a request, outside of a plan; a step may be in flight. */
    void (*on_join)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: the request has started, from waiting or from host memory. It has its blocks
     * and its tokens of this step (ifl_n_now); from waiting also a new started_ns. */
    void (*on_start)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: a request that this plan has started is preempted. It waits again, or is in
     * host memory. It counts as preempted. */
    void (*on_undo)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: a request that an earlier plan has started is preempted. */
    void (*on_preempt)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* The plan is made and is about to be submitted. The step may be read, all questions included,
     * and not changed. ifl_n_computed of prompts counts the new tokens already. */
    void (*on_step_start)(void *self, const struct ifl_view *, struct ifl_step *);
    /* The step has ended, at view->now_ns; view->step is the number of the next step. A request
     * that has had its last token is still running. */
    void (*on_step_end)(void *self, const struct ifl_view *, const struct ifl_step_end *);
    /* The request leaves the replica. The last call for it; its K/V is free by then, on the device
     * and in host memory. Its state is IFL_DONE, wherever it was: a module that counts requests on
     * the device keeps a flag in its part. */
    void (*on_leave)(void *self, const struct ifl_view *, const struct ifl_request *,
                     enum ifl_leave why);
    /* Optional, for speed: how long the module's answers of this plan stand while the same requests
     * decode. Called when the plan has made a promise (ifl_promise), for a module that the plan has
     * asked (step->asked) or that has a step hook; the promise is cut to what is returned. Without
     * `steady` such a module voids the promise, and every step is planned. With it the module is
     * told of the steps of a run together: on_step_start for the first of them, on_step_end once
     * for all of them, before any other call. */
    struct ifl_promise (*steady)(const void *self, const struct ifl_view *, struct ifl_step *);
    union {
        const struct ifl_batching_ops *batching;
        const struct ifl_order_ops *order;
        const struct ifl_admit_ops *admit;
        const struct ifl_preempt_ops *preempt;
        const struct ifl_evict_ops *evict;
        const struct ifl_route_ops *route;
        const struct ifl_scale_ops *scale;
        const struct ifl_draft_ops *draft;
    } ops;
};

/* Lies in memory before the parameters that `self` points to. Offsets are in bytes. */
struct ifl_instance {
    uint64_t state_offset;   /* from self to the state */
    uint64_t part_offset;    /* from request->parts to the instance's part of the request */
    uint64_t client_offset;  /* from self to the instance's part of client 0 */
    uint64_t client_stride;  /* from the part of a client to that of the next */
    uint64_t replica_offset; /* from self to the instance's part of replica 0 */
    uint32_t replica_stride; /* from the part of a replica to that of the next */
    uint32_t n_replicas;     /* of the cluster; 0 where the module is no router */
};

/* The next four find bytes that the module has asked for in its struct ifl_policy, 16-byte aligned.
 * `self` is the instance that was passed. Where it has asked for 0 bytes the address is invalid:
 * its use ends the run with the module's name. */

/* The state of an instance, of state_bytes; valid from init until finish returns. */
static inline void *ifl_state(const void *self)
{
    return (void *)((uintptr_t)self + ((const struct ifl_instance *)self)[-1].state_offset);
}

/* The instance's own part of a request, of request_bytes. Valid from on_join until on_leave has
 * returned. Of requests of this replica alone: other replicas have instances of their own. A router
 * has no parts of requests. */
static inline void *ifl_mine(const void *self, const struct ifl_request *r)
{
    return (void *)((uintptr_t)r->parts + ((const struct ifl_instance *)self)[-1].part_offset);
}

/* The instance's own part of the request's client, of client_bytes. Instances of other replicas
 * have their own. */
static inline void *ifl_client(const void *self, const struct ifl_request *r)
{
    const struct ifl_instance *instance = (const struct ifl_instance *)self - 1;
    return (void *)((uintptr_t)self + instance->client_offset +
                    r->client * instance->client_stride);
}

/* A router's own part of a replica, of replica_bytes; `replica` is below fleet->n. */
static inline void *ifl_at(const void *self, size_t replica)
{
    const struct ifl_instance *instance = (const struct ifl_instance *)self - 1;
    return (void *)((uintptr_t)self + instance->replica_offset +
                    replica * instance->replica_stride);
}

/* How many replicas a router's cluster has: what its init takes memory for. 0 for other kinds. */
static inline size_t ifl_n_replicas(const void *self)
{
    return ((const struct ifl_instance *)self)[-1].n_replicas;
}

struct ifl_policy_list {
    uint32_t abi;        /* IFL_POLICY_ABI */
    size_t policy_bytes; /* sizeof(struct ifl_policy) where the list was compiled */
    size_t n;
    const struct ifl_policy *of[16]; /* [n] */
};

#define IFL_POLICIES_SYMBOL "ifl_policies_v3"
#if defined(__GNUC__)
__attribute__((visibility("default"))) /* also of what is built with -fvisibility=hidden */
#endif
extern const struct ifl_policy_list ifl_policies_v3;

/* Defines the list from addresses of 1 to 16 policies, which are never freed:
 * IFL_POLICIES(&my_order, &my_admission); once in a shared object. */
#define IFL_POLICIES(...)                                                                          \
    const struct ifl_policy_list ifl_policies_v3 = {                                               \
        IFL_POLICY_ABI,                                                                            \
        sizeof(struct ifl_policy),                                                                 \
        sizeof((const struct ifl_policy *[]){__VA_ARGS__}) / sizeof(const struct ifl_policy *),    \
        {__VA_ARGS__}}

/* A `keys` that returns IFL_KEYS_OWN. */
IFL_HOT static inline enum ifl_keys ifl_own_keys(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_OWN;
}

/* A `keys` that returns IFL_KEYS_PLAN. */
static inline enum ifl_keys ifl_keys_of_plan(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_PLAN;
}

/* A `steady` without a bound, to_the_last. For a module whose answers change only when a request
 * joins or starts: it answers the same while blocks are taken, and after requests have had their
 * last token and have given back their blocks and seats. */
IFL_HOT static inline struct ifl_promise
ifl_always_steady(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    (void)step;
    return (struct ifl_promise){INT32_MAX, INT64_MAX, 0, true};
}

#endif
