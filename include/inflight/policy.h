/* Policy modules: small answers that a preset wires together.
 *
 * Batching drives; the other kinds are questions that the step asks on its behalf. A module is one
 * `struct ifl_policy`. It sees only the view, acts only through the step, and has no clock, no I/O
 * and no randomness but keyed draws. Planning and answering only read the module; its state changes
 * in the hooks. (Sums that no answer depends on, and what an order brings up to date in `keys`, may
 * be written at any time.)
 *
 * What is left out is right: a module that says nothing of `steady` has each step planned and is
 * told of each step by itself, and an order that says nothing of `keys` is asked again whenever its
 * list is looked at after anything has changed. Both are there for speed alone, and
 * serving.check_steady finds out a module that uses them wrongly.
 *
 * Out of tree: export one list of policies, build it as a shared object against the installed
 * headers alone, load it with `--plugin FILE.so`:
 *
 *     IFL_POLICIES(&my_policy);
 */
#ifndef INFLIGHT_POLICY_H
#define INFLIGHT_POLICY_H

#include "inflight/error.h"
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

/* A key beside `policy: NAME` in the module's section of the configuration:
 *
 *     {"max_seqs", IFL_INT, offsetof(struct mine, max_seqs), 128, 1, 1 << 20, NULL, "sequences",
 *      "most sequences on the device"},
 */
struct ifl_param {
    const char *name; /* of the key; by custom that of the field, with a time's _ns as _s */
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
    /* Who runs this step, with how many tokens. */
    void (*plan)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* When the keys of an order may change. A request that comes to a list is asked for in any case. */
enum ifl_keys {
    IFL_KEYS_MOVE, /* any key with anything: time, a hook, what the plan does */
    IFL_KEYS_PLAN, /* any key, but not within a plan: all are asked for once a plan */
    IFL_KEYS_OWN,  /* a request's key with what it computes itself, and with ifl_rerank */
    IFL_KEYS_NAMED /* with ifl_rerank alone */
};

struct ifl_order_ops {
    /* Fills in key[n]. Smaller keys first; ties by arrival, then by serial. May ask through
     * ifl_plan(view), which is NULL outside of a plan, and read there what started in this plan. */
    void (*rank)(const void *self, const struct ifl_view *, const struct ifl_request *const *of,
                 size_t n, int64_t *key);
    /* Optional, for speed; without it IFL_KEYS_MOVE. Called when a plan first looks at a ranked
     * list, and before a preemption, so that a module may bring its state up to date and name with
     * ifl_rerank whose keys that has changed. */
    enum ifl_keys (*keys)(const void *self, const struct ifl_view *);
};

struct ifl_admission {
    enum ifl_verdict verdict;
    int32_t hold_tokens; /* take blocks for that many tokens now, at least for what is computed */
    int64_t until_ns; /* of a refusal: ask again then even if nothing happens; 0: it does not say */
};

static inline struct ifl_admission ifl_admission(enum ifl_verdict verdict, int32_t hold_tokens)
{
    return (struct ifl_admission){verdict, hold_tokens, 0};
}

/* Not now, and not before until_ns. */
static inline struct ifl_admission ifl_not_before(int64_t until_ns)
{
    return (struct ifl_admission){IFL_WAIT, 0, until_ns};
}

/* Not before until_ns; the next may pass. */
static inline struct ifl_admission ifl_skip_until(int64_t until_ns)
{
    return (struct ifl_admission){IFL_SKIP, 0, until_ns};
}

/* Several admit modules may stand in a row. They are asked in order; the first answer that is not
 * yes is the answer. What is held is the largest that any of them wants, the room the smallest. */
struct ifl_admit_ops {
    /* May `request`, waiting or swapped, start with n new tokens? */
    struct ifl_admission (*ask)(const void *self, const struct ifl_view *, struct ifl_step *,
                                const struct ifl_request *request, int32_t n);
    /* Optional: tokens of K/V that are left of the device's for the rest of this step, beside what
     * others will need later; less than nothing where that is more than there is. Where there is
     * more than enough, `enough`. */
    double (*room)(const void *self, const struct ifl_view *, struct ifl_step *, double enough);
};

struct ifl_preempt_ops {
    /* Who gives way to `needy`, to what fate. A victim that this step scheduled is undone. */
    struct ifl_victim (*pick)(const void *self, const struct ifl_view *, struct ifl_step *,
                              const struct ifl_request *needy);
    /* Optional: asked once the plan is made, to swap out ahead of need (FastServe) through the
     * step's preempt. */
    void (*ahead)(const void *self, const struct ifl_view *, struct ifl_step *);
};

/* A cached block that nobody uses. */
struct ifl_cached {
    uint64_t last_used; /* rises with every use, the order of the last touch */
    int64_t last_used_ns;
    uint64_t n_uses;      /* times a request started on it, or in a tree was inserted through it */
    int32_t depth_tokens; /* of the prefix that ends with it */
    /* Whether a waiting request would start on it now. Asking costs a look at each waiting request;
     * a key that has asked is asked for again when the answer changes. */
    bool (*wanted)(const struct ifl_cached *);
};

static inline bool ifl_wanted(const struct ifl_cached *block)
{
    return block->wanted(block);
}

struct ifl_evict_ops {
    /* The smallest key is lost first; ties: the deepest, then the one touched first. Asked when a
     * block becomes unused. */
    int64_t (*key)(const void *self, const struct ifl_view *, const struct ifl_cached *);
    /* Keys do not read depth_tokens: blocks of a prefix that became unused together share one. */
    bool ignores_depth;
};

/* A replica as a router sees it. */
struct ifl_load {
    int32_t n_running, n_waiting, n_swapped; /* requests */
    int32_t n_free_blocks;                   /* on the device */
    int64_t n_waiting_tokens; /* whose K/V those who wait will need before they have an answer */
    uint64_t n_routed;        /* requests it was ever given */
};

struct ifl_routing {
    int64_t now_ns;
    const struct ifl_request *request;
    const struct ifl_limits *limits; /* of each replica */
    const struct ifl_load *of;       /* [n] replicas, all alike */
    size_t n;
    uint64_t n_routed; /* requests of the run so far */
    uint64_t draw[2];  /* random, of this request alone */
    int32_t (*cached)(const struct ifl_routing *, size_t i);
};

/* Tokens of the request's prompt that the prefix cache of replica i holds. Costs a look at each of
 * its blocks. */
static inline int32_t ifl_cached_tokens(const struct ifl_routing *routing, size_t i)
{
    return routing->cached(routing, i);
}

struct ifl_route_ops {
    /* The replica for a request that has just arrived, below n. */
    size_t (*pick)(const void *self, const struct ifl_routing *);
};

/* Requests at a replica, whether they run or not. */
static inline int32_t ifl_outstanding(const struct ifl_load *load)
{
    return load->n_running + load->n_waiting + load->n_swapped;
}

/* ---- what modules hear when a step has ended ---- */

struct ifl_result {
    const struct ifl_request *request;
    int32_t n_new, n_sampled; /* tokens of each sequence that were computed, and sampled */
};

struct ifl_results { /* borrowed until the hook returns */
    const struct ifl_result *of;
    size_t n;
};

struct ifl_step_end {
    uint64_t step;            /* the last of n_steps that gave the same requests a token each; */
    int32_t n_steps;          /* 1 unless the module is steady */
    int64_t start_ns, end_ns; /* of all of them */
    const int64_t *ends_ns;   /* [n_steps] */
    size_t n_requests;        /* that were given tokens */
    int32_t n_preempted;
    struct ifl_results (*results)(const struct ifl_step_end *);
};

/* The requests that the step gave tokens, and how many: first those of ifl_schedule_ready in order
 * of start, then the others in the order in which the plan scheduled them. Putting the list
 * together costs a look at each. */
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
    size_t request_bytes; /* on every request (ifl_mine), zeroed when it joins a replica */
    size_t client_bytes;  /* on every client (ifl_client), zeroed at the start of a run */
    /* There is an instance for each replica, of a router for the cluster. `self`, which is not NULL
     * in any call, is its parameter struct, filled in, followed by its state (ifl_state). Both
     * optional; init may refuse parameters that do not go with the limits: 0, or negative with a
     * line that says what was found and what was expected. finish follows a refusal, too. */
    int (*init)(void *self, const struct ifl_limits *, struct ifl_error *);
    void (*finish)(void *self);
    /* Hooks, all optional; a router has none. */
    /* A request has come to the replica, at view->now_ns, and is about to wait. */
    void (*on_join)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: the request has started, from waiting or from host memory. It has its blocks,
     * its tokens of this step (ifl_n_now) and its new started_ns. */
    void (*on_start)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* The same plan has taken that start back: the request waits again, or is in host memory. It
     * counts as preempted. */
    void (*on_undo)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Within a plan: a request that an earlier plan had started loses its place. */
    void (*on_preempt)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* The plan is made and about to be submitted. The step may be read, with all questions, and not
     * changed. n_computed counts the prompts' new tokens already. */
    void (*on_step_start)(void *self, const struct ifl_view *, struct ifl_step *);
    /* It has ended, at view->now_ns; view->step is the next one's. A request that has had its last
     * token is still there. */
    void (*on_step_end)(void *self, const struct ifl_view *, const struct ifl_step_end *);
    /* A request has finished or was rejected: its last call. */
    void (*on_leave)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Optional, for speed: how long the module's answers of this plan stand while the same requests
     * decode. Called for a plan that promises (ifl_promise) if it has asked the module (see
     * step->asked) or the module has a step hook; without it such a promise is void, and every step
     * is planned. With it the module hears the steps of a run as one: on_step_start for the first
     * of them, on_step_end once, with all their tokens, before anything else is asked or told. */
    struct ifl_promise (*steady)(const void *self, const struct ifl_view *, struct ifl_step *);
    union {
        const struct ifl_batching_ops *batching;
        const struct ifl_order_ops *order;
        const struct ifl_admit_ops *admit;
        const struct ifl_preempt_ops *preempt;
        const struct ifl_evict_ops *evict;
        const struct ifl_route_ops *route;
    } ops;
};

/* What stands in front of the parameters that `self` points to. */
struct ifl_instance {
    uint64_t state_offset;  /* of the state, from self */
    uint64_t part_offset;   /* of its part of each request, from request->parts */
    uint64_t client_offset; /* of its part of the first client, from self */
    uint64_t client_stride; /* from that of a client to that of the next */
};

/* The state of an instance, 16-byte aligned. */
static inline void *ifl_state(const void *self)
{
    return (void *)((uintptr_t)self + ((const struct ifl_instance *)self)[-1].state_offset);
}

/* The instance's own part of a request, 16-byte aligned. */
static inline void *ifl_mine(const void *self, const struct ifl_request *r)
{
    return (void *)((uintptr_t)r->parts + ((const struct ifl_instance *)self)[-1].part_offset);
}

/* The instance's own part of the request's client, 16-byte aligned. */
static inline void *ifl_client(const void *self, const struct ifl_request *r)
{
    const struct ifl_instance *instance = (const struct ifl_instance *)self - 1;
    return (void *)((uintptr_t)self + instance->client_offset +
                    r->client * instance->client_stride);
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

/* The list, from addresses of policies: IFL_POLICIES(&my_order, &my_admission); */
#define IFL_POLICIES(...)                                                                          \
    const struct ifl_policy_list ifl_policies_v3 = {                                               \
        IFL_POLICY_ABI,                                                                            \
        sizeof(struct ifl_policy),                                                                 \
        sizeof((const struct ifl_policy *[]){__VA_ARGS__}) / sizeof(const struct ifl_policy *),    \
        {__VA_ARGS__}}

/* The `keys` of an order whose keys depend on the request itself. */
static inline enum ifl_keys ifl_own_keys(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_OWN;
}

/* The `keys` of an order whose keys stand within a plan and may be others in the next. */
static inline enum ifl_keys ifl_keys_of_plan(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_PLAN;
}

/* The `steady` of a module whose answers stand while the same requests decode and free blocks only
 * fall. */
static inline struct ifl_promise ifl_always_steady(const void *self, const struct ifl_view *view,
                                                   struct ifl_step *step)
{
    (void)self;
    (void)view;
    (void)step;
    return (struct ifl_promise){INT32_MAX, INT64_MAX, 0, true};
}

#endif
