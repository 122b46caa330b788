/* Policy modules: small answers that a preset wires together.
 *
 * Batching drives; the other kinds are questions that the step asks on its behalf. A module is one
 * `struct ifl_policy`. It sees only the view, acts only through the step, and has no clock, no I/O
 * and no randomness but keyed draws. Planning and answering only read the module; its state changes
 * in the four hooks, which are called for every step, also inside a steady run (but see
 * hears_runs). Sums over what requests have got may be brought up to date when they are asked for
 * (ifl_refresh): that changes no answer.
 *
 * Out of tree: export one const list under the name below, build it as a shared object against the
 * installed headers alone, load it with `--plugin FILE.so`:
 *
 *     const struct ifl_policy_list ifl_policies_v1 = {IFL_POLICY_ABI, sizeof(struct ifl_policy),
 *                                                     1, {&my_policy}};
 */
#ifndef INFLIGHT_POLICY_H
#define INFLIGHT_POLICY_H

#include "inflight/error.h"
#include "inflight/step.h"
#include "inflight/time.h"

/* ABI 2 added `hears_runs` and `listens`, the view's `n_in_flight`, `refresh`, `rerank` and what
 * who has ended gave back, the admit module's `room`, to the step `took_part`, `last_ranked`,
 * `scheduled`, `room`, `note`, `refuse`, `n_in_prefill` and the spare blocks of `ask`, to the
 * promise `to_the_last`, to what ends `ends_ns`, to the request `first_token_ns` and
 * `start_serial`, and the order's `settle`. */
#define IFL_POLICY_ABI 2u

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

/* When keys may change. Whoever comes to a list is asked for in any case. */
enum ifl_rerank {
    IFL_RANK_ONCE,      /* those of requests that run, with each step, and of whom ifl_rerank names:
                           the others are asked for once */
    IFL_RANK_NAMED,     /* those of whom ifl_rerank names, nobody else's */
    IFL_RANK_EACH_PLAN, /* all, with time, hits or counters: they are asked for by every plan */
    IFL_RANK_EACH_START /* all, and those of who waits with who starts, too: they are asked for
                           again after every start */
};

struct ifl_order_ops {
    /* Fills in key[n]. Smaller keys first; ties by arrival, then by serial. May ask through
     * view->asked, which is NULL outside of a plan, and read who started in this plan there. */
    void (*rank)(const void *self, const struct ifl_view *, const struct ifl_request *const *of,
                 size_t n, int64_t *key);
    enum ifl_rerank rerank;
    /* Optional: the time to name whose keys have changed, where that is found out late. Comes
     * before those who run are asked for by rank, or preempted. */
    void (*settle)(const void *self, const struct ifl_view *);
};

struct ifl_admission {
    enum ifl_verdict verdict;
    int32_t hold_tokens; /* take blocks for that many tokens now, at least for what is computed */
};

struct ifl_admit_ops {
    /* May `request`, waiting or swapped, start with n new tokens? Owns the watermark. */
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
    bool wanted;          /* a waiting request would start on it; see `informed` */
};

struct ifl_evict_ops {
    /* The smallest key is lost first; ties: the deepest, then the one touched first. Asked when a
     * block becomes unused. */
    int64_t (*key)(const void *self, const struct ifl_view *, const struct ifl_cached *);
    /* `wanted` is kept, and keys are asked again when it changes. */
    bool informed;
    /* Keys do not read depth_tokens: blocks of a prefix that became unused together share one. */
    bool ignores_depth;
};

/* A replica as a router sees it. */
struct ifl_load {
    int32_t n_running, n_waiting, n_swapped; /* requests */
    int32_t n_free_blocks;                   /* on the device */
    int32_t n_cached; /* tokens of this request's prompt in its prefix cache; see asks_hits */
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
};

struct ifl_route_ops {
    /* The replica for a request that has just arrived, below n. */
    size_t (*pick)(const void *self, const struct ifl_routing *);
    bool asks_hits; /* reads n_cached: every replica's cache is asked */
};

/* Requests at a replica, whether they run or not. */
static inline int32_t ifl_outstanding(const struct ifl_load *load)
{
    return load->n_running + load->n_waiting + load->n_swapped;
}

struct ifl_policy {
    enum ifl_kind kind;
    const char *name, *doc; /* as in `policy: NAME`; one line */
    const struct ifl_param *params;
    size_t n_params;
    size_t params_bytes;  /* of the parameter struct */
    size_t state_bytes;   /* of the instance's own state, zeroed at the start of a run */
    size_t request_bytes; /* on every request, request->mine[kind]: zeroed, 16-byte aligned */
    /* There is an instance for each replica, of a router for the cluster. `self`, which is not NULL
     * in any call, is its parameter struct, filled in, followed by its state (ifl_state). Both
     * optional; init may refuse parameters that do not go with the limits: 0, or negative with a
     * line that says what was found and what was expected. finish follows a refusal, too. */
    int (*init)(void *self, const struct ifl_limits *, struct ifl_error *);
    void (*finish)(void *self);
    /* Hooks, all optional; a router has none. */
    /* A request has come to the replica, at view->now_ns, and is about to wait. */
    void (*on_join)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* The plan is made and about to be submitted. The step may be read, with all questions, and not
     * changed. n_computed counts the prompts' new tokens already. */
    void (*on_step_start)(void *self, const struct ifl_view *, const struct ifl_step_desc *,
                          struct ifl_step *);
    /* It has ended, at view->now_ns; view->step is the next one's. Who has had its last token is
     * still there. */
    void (*on_step_end)(void *self, const struct ifl_view *, const struct ifl_step_end *);
    /* A request has finished or was rejected: its last call. */
    void (*on_leave)(void *self, const struct ifl_view *, const struct ifl_request *);
    /* Steps that repeat one another may be told of as one: on_step_start comes for the first alone,
     * on_step_end once, with all their tokens, before anything else is asked or told. It is faster,
     * and must come to the same. */
    bool hears_runs;
    /* Optional: whether it matters to on_step_end who they were, whom the step gave tokens, n
     * requests. If not, it comes without a list; putting one together costs a look at each. */
    bool (*listens)(const void *self, const struct ifl_view *, size_t n);
    /* Optional: bounds a promise where the module's answers drift; called if the plan that promises
     * has asked the module (step->asked), and for every promise where on_step_end hears runs, which
     * can end one to be told in time. NULL: my answers stand. */
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

/* Where the state of an instance begins: right behind its parameters, 16-byte aligned. */
static inline size_t ifl_state_offset(size_t params_bytes)
{
    return (params_bytes + 15u) & ~(size_t)15u;
}

/* The state of an instance. Where `self` is const, in plans and answers, only what is scratch, or
 * brought up to date without changing any answer, may be written to. */
static inline void *ifl_state(const void *self, size_t params_bytes)
{
    return (void *)((uintptr_t)self + ifl_state_offset(params_bytes));
}

struct ifl_policy_list {
    uint32_t abi;        /* IFL_POLICY_ABI */
    size_t policy_bytes; /* sizeof(struct ifl_policy) where the list was compiled */
    size_t n;
    const struct ifl_policy *of[16]; /* [n] */
};

#define IFL_POLICIES_SYMBOL "ifl_policies_v1"
extern const struct ifl_policy_list ifl_policies_v1;

/* The `steady` of a module whose answers may be others at every step. */
static inline struct ifl_promise ifl_never_steady(const void *self, const struct ifl_view *view,
                                                  struct ifl_step *step)
{
    (void)self;
    (void)view;
    (void)step;
    return (struct ifl_promise){0};
}

#endif
