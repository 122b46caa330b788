/* Policy modules. A configuration names modules of each kind, which together are a scheduler.
 *
 * The batching module plans each step. The step asks modules of the other kinds questions on its
 * behalf. A module is one `struct ifl_policy`.
 *   - It sees only the view and acts only through the step.
 *   - It has no clock, no I/O and no random numbers but ifl_policy_draw.
 *   - No pointer that it is given is NULL. The view, the step and lists are borrowed until it
 *     returns; a request is valid from on_join until on_leave has returned.
 *   - It changes its state in hooks only; `plan` and the functions that answer questions read it.
 *     Two exceptions: sums that no answer depends on, and what an order brings up to date in
 *     `keys`.
 *   - Its state is what ifl_state, ifl_mine, ifl_client and ifl_at return, and memory that its
 *     `init` or its hooks allocated. It has no static variables: threads call instances of several
 *     replicas and runs at the same time, and a process makes one run after another.
 *
 * Two optional functions are for speed alone; no result depends on them, and serving.check_steady
 * finds a module that uses them wrongly.
 *   - `steady`: without it, every step in which the module is asked or has a step hook is planned,
 *     and on_step_end is called for each.
 *   - `keys` of an order: without it, `rank` is called again whenever a list is read after any
 *     change.
 * Five members are for speed, too, and are not checked: `ignores_depth` and `by_last_use` of an
 * eviction, `for_all` of a draft and of an admission, `shown_alone` of a batching module.
 *
 * A module out of tree exports one list of policies, is built as a shared object against the
 * installed headers alone, and is loaded with `--plugin FILE.so`:
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
    IFL_TEXT    /* char[max], the NUL included, also that of the default */
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
    double dflt, min, max; /* inclusive; for IFL_TIME in seconds; a choice ignores min and max,
                              a text all three; dflt NAN: the field must be given */
    const char *choices;   /* "one|two|three" for IFL_CHOICE; the default of an IFL_TEXT; or NULL */
    const char *unit;      /* "tokens", "s", ... or "" */
    const char *doc;       /* one line */
};

/* ---- the kinds ---- */

struct ifl_batching_ops {
    /* Decides which requests run in this step, each with how many tokens. Called when a further
     * step may be in flight and a request waits, runs or is swapped out.
     *
     * With several steps in flight (limits->max_in_flight above 0) n_computed includes tokens of
     * steps in flight. A running request may have nothing to do (ifl_todo 0): its token is not
     * known yet. Requests that this step may not hold are not shown.
     *
     * A plan may give no token. The next plan is then made at the next event or wake (ifl_wake), or
     * at once if this plan preempted or rejected a request. If this plan swaps blocks, the copies
     * are a step without tokens.
     *
     * If a plan gives no token, changes nothing and asks for no wake, the loop drops a request:
     *   - at once, one that the plan refused for want of blocks, as never fitting, or by
     *     ifl_refuse;
     *   - when no event is left, one that the plan refused with IFL_WAIT or IFL_SKIP.
     * If the plan refused no request then, the run ends with IFL_E_STALLED. */
    void (*plan)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* When keys of an order may change, and so when `rank` is called again. It is always called for a
 * request that joins a list. */
enum ifl_keys {
    IFL_KEYS_MOVE, /* any key, at any time: as time passes, by a hook, by a change of the plan */
    IFL_KEYS_PLAN, /* any key, but read once a plan: later changes of that plan do not count */
    IFL_KEYS_OWN,  /* a key, when its request computes tokens or ifl_rerank is called for it; no
                      key changes as time passes */
    IFL_KEYS_NAMED /* a key, only when ifl_rerank is called for its request */
};

struct ifl_order_ops {
    /* Sets key[i] of each request of[i], i < n. n may be 0; any int64_t is a key; a key that is not
     * set is undefined. The requests wait, run or are in host memory; on_join has been called for
     * each. Smaller keys go first. Ties go by arrival (of a waiting request that was sent back: the
     * time at which it was sent there), then by serial.
     *
     * May read the step through ifl_plan(view), which is not NULL here, for example for
     * ifl_policy_draw, or to get the requests that this plan has started. Must not read ranked
     * lists (ifl_next, ifl_last_ranked, ifl_oldest_waiting_ns), which need these keys: doing so,
     * here or in `keys`, is a breach of the contract. */
    void (*rank)(const void *self, const struct ifl_view *, const struct ifl_request *const *of,
                 size_t n, int64_t *key);
    /* Optional, for speed; the default is IFL_KEYS_MOVE. Called once a plan, before the plan first
     * reads a ranked list or preempts. A module that defers its bookkeeping can catch up here and
     * call ifl_rerank for each request with a key that has changed. */
    enum ifl_keys (*keys)(const void *self, const struct ifl_view *);
};

struct ifl_admission {
    enum ifl_verdict verdict;
    int32_t
        hold_tokens;  /* take blocks now for this many tokens, or for the computed ones if more */
    int64_t until_ns; /* of a refusal: ask again at this time, even if nothing happens; 0, or a time
                         not later than now: none */
};

/* The answer without until_ns. hold_tokens is per sequence; 0: blocks for the computed tokens
 * alone; a yes must not have a negative one. A swapped request takes blocks at least for all that
 * it has in host memory. A refusal ignores hold_tokens. */
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

/* A configuration may list several admit modules. They are asked in order; the first answer other
 * than IFL_YES counts. If all say yes, the largest hold_tokens counts. If several have `room`, the
 * smallest counts. */
struct ifl_admit_ops {
    /* May `request`, waiting or swapped, start with n new tokens, 0 <= n <= ifl_todo? Called by
     * ifl_start and by ifl_ask; a yes is therefore not yet a start: see on_start. During
     * ifl_ask_beyond, step->n_free_blocks is lower by the blocks that are set aside. If too few
     * blocks are free for a yes, ifl_start returns IFL_NO_BLOCKS; ifl_ask returns the yes. Must not
     * call ifl_ask, ifl_start or ifl_make_room. */
    struct ifl_admission (*ask)(const void *self, const struct ifl_view *, struct ifl_step *,
                                const struct ifl_request *request, int32_t n);
    /* Optional. Returns the K/V tokens on the device that are left to the rest of this plan after
     * the future demand of the running requests; negative if that demand exceeds the free pool. It
     * may stop counting at `enough` tokens and return `enough`: the caller treats all larger values
     * alike. Called at any time in a plan. Must only read, and must not call ifl_room. */
    double (*room)(const void *self, const struct ifl_view *, struct ifl_step *, double enough);
    /* Optional, for speed: the refusal, without until_ns, that `ask` answers for every waiting
     * request until the plan ends, whatever the plan does; IFL_YES if it may answer otherwise for
     * some. A batching module may then leave the waiting requests out (ifl_ask_for_all). */
    enum ifl_verdict (*for_all)(const void *self, const struct ifl_view *, struct ifl_step *);
};

struct ifl_preempt_ops {
    /* Returns the request to preempt in favour of `needy`, and its fate; {0}: none. The victim's
     * state must be IFL_RUNNING; it may be `needy` itself if that runs. What the plan has scheduled
     * for the victim is undone. No request is preempted if the victim
     *   - was brought back from host memory by this plan, or
     *   - has tokens in this plan that are part of the hit of a request that this plan started
     *     (serving.kv.publish: scheduled).
     * Must not call ifl_ask, ifl_start or ifl_make_room. */
    struct ifl_victim (*pick)(const void *self, const struct ifl_view *, struct ifl_step *,
                              const struct ifl_request *needy);
    /* Optional. Called at the end of each plan, after `plan` of the batching module. It may swap
     * requests out ahead of need with ifl_preempt (FastServe) and bring swapped requests that fit
     * back by ifl_start with 0 tokens. It must change nothing else. */
    void (*ahead)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* A block that no request uses: cached, or without K/V if serving.kv.unhashed is in-order.
 * Borrowed until the call returns. If two requests have computed the same tokens, both blocks stay,
 * each is evicted on its own, and hits go to the older one. */
struct ifl_cached {
    uint64_t last_used; /* number of the last release; later ones have larger numbers */
    int64_t last_used_ns;
    uint64_t n_uses;      /* requests that started on it, the one that computed it included; in a
                             radix cache, insertions of a request that pass through it */
    int32_t depth_tokens; /* length of the prefix that ends with this block; INT32_MAX: the block
                             holds no cached K/V */
    /* True if a waiting request would start on the block now. Costs a walk over the waiting
     * requests. If `key` has called it, `key` is called again when the answer changes. */
    bool (*wanted)(const struct ifl_cached *);
};

/* Only within `key`. */
static inline bool ifl_wanted(const struct ifl_cached *block)
{
    return block->wanted(block);
}

struct ifl_evict_ops {
    /* The block with the smallest key is evicted first; ties go to the deepest, then to the least
     * recently used. Called when a block becomes evictable, not when room is needed: when no
     * request uses it any more and, in a tree, it has no block below it. The key stands until the
     * block is used again. May be called outside of a plan. */
    int64_t (*key)(const void *self, const struct ifl_view *, const struct ifl_cached *);
    /* True if keys do not read depth_tokens. Blocks of a prefix that became unused together then
     * share one key. */
    bool ignores_depth;
    /* Optional, for speed. True if the key is always last_used, or always last_used_ns; parameters
     * may choose between them. `key` is called once before any plan to find out which, for a block
     * in which only these two are set. */
    bool by_last_use;
};

/* How many tokens are guessed (speculative decoding). The executor decides which tokens are guessed
 * and how many of them are accepted (serving.speculation). A module learns how many were accepted
 * in on_step_end, and may change its state in any hook. The step asks once per request and plan and
 * keeps the answer until the next plan; a change in on_start, on_undo or on_preempt may therefore
 * come too late for requests of the same plan. */
struct ifl_draft_ops {
    /* Returns the number of tokens to guess after the next token of a decoding request: 0 to
     * `most`; any other number is a breach of the contract. NULL: no speculation. */
    int32_t (*ask)(const void *self, const struct ifl_view *, const struct ifl_request *);
    /* Returns the most that `ask` may answer, 0 to 64. Called before `init`; reads only the
     * parameter struct `params`. */
    int32_t (*most)(const void *params);
    /* Optional, for speed: the answer of `ask` if all requests get the same, else negative. */
    int32_t (*for_all)(const void *self, const struct ifl_view *);
};

/* ---- the end of a step, the argument of on_step_end ---- */

struct ifl_result {
    const struct ifl_request *request;
    int32_t n_new, n_sampled; /* tokens computed, and sampled, of each of its sequences */
    int32_t n_draft; /* of n_new, the guessed tokens; n_sampled - 1 of them were accepted */
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
    size_t n_requests;        /* that were given tokens, and have not left since */
    int32_t n_preempted;
    struct ifl_results (*results)(const struct ifl_step_end *);
};

/* The requests to which the step gave tokens, and how many; requests that have left since the step
 * began are not listed. Decoding requests come first, in order of start, then the others in the
 * order in which the plan scheduled them. With several steps in flight all are in the order in
 * which the plan scheduled them. The first call makes the list, which costs a walk over the
 * requests. A call when on_step_end has returned is a breach of the contract. */
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
    bool leaves_out; /* of a batching module: with limits->plans_ahead the module itself leaves out
                        what a plan made ahead cannot know. ifl_next then shows all requests, and
                        a request leaves when it ends */
    /* Optional, for speed, of a batching module: its plans depend only on the requests that a plan
     * made ahead is shown, not on how many wait (n_waiting, ifl_oldest_waiting_ns) nor on which
     * have ended. Its promises then cover the plan that does not know of an arrival yet, and under
     * to_the_last the one that does not know of an end yet. A plan that would be shown no request
     * is skipped. */
    bool shown_alone;
    /* Of a router: it may answer ifl_send_pair. If true and no pool has a role, the router is
     * refused when the configuration is read. If false and the router answers ifl_send_pair, the
     * run ends with the router's name. */
    bool sends_pairs;
    /* Each replica has an instance of the module; a router has one for the cluster. `self` is never
     * NULL: it points to the instance's parameter struct, filled in; ifl_state finds its state.
     * init and finish are optional. init may allocate memory, which finish frees. The limits stay
     * valid until finish returns. init returns
     *   - 0;
     *   - IFL_E_INPUT if the parameters do not go with the limits, with a line that says what was
     *     found and what was expected (ifl_fail), which is printed after the module's name;
     *   - IFL_E_NOMEM.
     * Any other answer ends the run. finish is called once, also after a failure of init. */
    int (*init)(void *self, const struct ifl_limits *, struct ifl_error *);
    void (*finish)(void *self);
    /* Hooks, all optional. Those of a router are in its ops. */
    /* A request has come to the replica, at view->now_ns, and is about to wait: its state is
     * IFL_WAITING, and no list or count includes it yet. `rank` is called for it after the hook: at
     * once if the order has `keys` that stand, else in the next plan. Called once for a request,
     * outside of a plan; a step may be in flight. */
    void (*on_join)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: the request has started, from waiting or from host memory. It has its blocks
     * and its tokens of this step (ifl_n_now). If it waited, its started_ns is new. */
    void (*on_start)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: a request that this plan has started is preempted. It waits again, or is in
     * host memory. step->n_preempted includes it. */
    void (*on_undo)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: a request that an earlier plan has started is preempted. */
    void (*on_preempt)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* The plan is made and is about to be submitted. The hook may read the step, with all its
     * questions, and must not change it. ifl_n_computed of prompts includes the new tokens. */
    void (*on_step_start)(void *self, const struct ifl_view *, struct ifl_step *);
    /* The step has ended, at view->now_ns; view->step is the number of the next step. A request
     * that has had its last token is still running. */
    void (*on_step_end)(void *self, const struct ifl_view *, const struct ifl_step_end *);
    /* The request leaves the replica. The last call for it; its K/V on the device and in host
     * memory is already free. Its state is IFL_DONE, wherever it was before: a module that counts
     * requests on the device needs a flag in its part of the request (ifl_mine). */
    void (*on_leave)(void *self, const struct ifl_view *, const struct ifl_request *,
                     enum ifl_leave why);
    /* Optional, for speed: returns how long the module's answers of this plan stay the same while
     * the same requests decode. Called when the plan has made a promise (ifl_promise), for a module
     * that the plan has asked (step->asked) or that has a step hook; the promise is cut to what is
     * returned. Such a module without `steady` voids the promise, and every step is planned. With
     * `steady`, hooks are called once for the promised steps: on_step_start for the first of them,
     * on_step_end for all of them, before any other call. */
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
    uint32_t n_replicas;     /* of the cluster; 0 if the module is no router */
};

/* The next four return the bytes that the module asked for in its struct ifl_policy, 16-byte
 * aligned. `self` is the instance that was passed. If the module asked for 0 bytes, the address is
 * invalid: its use ends the run with the module's name. */

/* The state of an instance, of state_bytes; valid from init until finish returns. */
static inline void *ifl_state(const void *self)
{
    return (void *)((uintptr_t)self + ((const struct ifl_instance *)self)[-1].state_offset);
}

/* The instance's own part of a request, of request_bytes. Valid from on_join until on_leave has
 * returned, for requests of this replica alone: other replicas have instances of their own. A
 * router has no parts of requests. */
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

/* Number of replicas of a router's cluster, for which its init allocates. 0 for other kinds. */
static inline size_t ifl_n_replicas(const void *self)
{
    return ((const struct ifl_instance *)self)[-1].n_replicas;
}

struct ifl_policy_list {
    uint32_t abi;        /* IFL_POLICY_ABI */
    size_t policy_bytes; /* sizeof(struct ifl_policy) when the list was compiled */
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

/* A `steady` without a bound, with to_the_last. For a module with answers that change only when a
 * request joins or starts: they must not change when blocks are taken, nor when requests have had
 * their last token and have given back their blocks and seats. */
IFL_HOT static inline struct ifl_promise
ifl_always_steady(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    (void)step;
    return (struct ifl_promise){INT32_MAX, INT64_MAX, 0, true};
}

#endif
