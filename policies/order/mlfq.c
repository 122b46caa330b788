/* Skip-join multi-level feedback queue (FastServe, Wu et al., arXiv 2305.05920, section 4.1 and
 * Algorithm 1; LLMServe/FastServe, fastserve/scheduler).
 *
 * Level p has a quantum of quantum_s x 2^p. A request joins the first level whose quantum covers
 * its predicted prefill, skipping those above. Who has run at a level for longer than its quantum
 * goes down by one, to the front there. Every `starve_steps` steps whoever has not run for
 * `starve_s` returns to the top. Within a level requests go by when they joined it. */
#include "inflight/policy.h"

enum { MOST_LEVELS = 30 };

struct mlfq {
    int64_t quantum_ns;
    int32_t n_levels;
    int64_t prefill_base_ns;
    double prefill_token_s;
    int32_t starve_steps;
    int64_t starve_ns;
};

struct queues {
    int64_t n_joined, n_demoted;
    int32_t n_steps;    /* since the last look for starving requests */
    int64_t planned_ns; /* the step under way */
};

struct place { /* of a request */
    int32_t level;
    int64_t at;       /* within the level */
    int64_t spent_ns; /* at it */
};

struct history {              /* of a request */
    struct place now, before; /* it rose, in that step, because it starved */
    uint64_t rose_in;
    int64_t ran_ns; /* when it last ran, or came */
};

static const struct ifl_param params[] = {
    {"quantum_s", IFL_TIME, offsetof(struct mlfq, quantum_ns), 0.01, 1e-6, 3600, NULL, "s",
     "of the highest level; each level below has twice as much"},
    {"n_levels", IFL_INT, offsetof(struct mlfq, n_levels), 20, 1, MOST_LEVELS, NULL, "levels",
     "levels"},
    {"prefill_base_s", IFL_TIME, offsetof(struct mlfq, prefill_base_ns), 0, 0, 3600, NULL, "s",
     "predicted time of a prefill: this"},
    {"prefill_token_s", IFL_REAL, offsetof(struct mlfq, prefill_token_s), 0.0001, 0, 3600, NULL,
     "s", "predicted time of a prefill: and this for every token of the prompt"},
    {"starve_steps", IFL_INT, offsetof(struct mlfq, starve_steps), 1000, 1, 1 << 30, NULL, "steps",
     "between looks for starving requests"},
    {"starve_s", IFL_TIME, offsetof(struct mlfq, starve_ns), 3, 0, 1e9, NULL, "s",
     "without a token for so long, a request returns to the highest level"},
};

static struct queues *queues_of(const void *self)
{
    return (struct queues *)((uintptr_t)self + ifl_state_offset(sizeof(struct mlfq)));
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct history *of_i = of[i]->mine[IFL_ORDER];
        key[i] = ((int64_t)of_i->now.level << 48) + of_i->now.at;
    }
}

static int64_t quantum_ns(const struct mlfq *p, int32_t level)
{
    return p->quantum_ns << level;
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct mlfq *p = self;
    struct history *of_r = r->mine[IFL_ORDER];
    const int64_t prefill_ns =
        p->prefill_base_ns + ifl_ns_from_s(p->prefill_token_s * (double)r->n_prompt);
    (void)view;
    *of_r = (struct history){
        .now.at = ++queues_of(self)->n_joined, .rose_in = UINT64_MAX, .ran_ns = r->arrival_ns};
    while (of_r->now.level < p->n_levels - 1 && quantum_ns(p, of_r->now.level) < prefill_ns)
        of_r->now.level++;
}

/* The step that begins may serve some of them, which then were not starving: its end takes them
 * back. */
static void return_starving(const struct mlfq *p, const struct ifl_view *view, uint64_t step_begins,
                            struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED, &cursor))) {
        struct history *of_r = r->mine[IFL_ORDER];
        if (of_r->now.level == 0 || view->now_ns - of_r->ran_ns < p->starve_ns)
            continue;
        of_r->before = of_r->now;
        of_r->rose_in = step_begins;
        of_r->now = (struct place){.at = ++queues_of(p)->n_joined};
    }
}

static void on_step_start(void *self, const struct ifl_view *view, const struct ifl_step_desc *desc,
                          struct ifl_step *step)
{
    const struct mlfq *p = self;
    struct queues *queues = queues_of(self);
    queues->planned_ns = view->now_ns;
    if (++queues->n_steps < p->starve_steps)
        return;
    queues->n_steps = 0;
    return_starving(p, view, desc->step, step);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct mlfq *p = self;
    (void)view;
    for (size_t i = 0; i < end->n_of; i++) {
        struct history *of_r = end->of[i].request->mine[IFL_ORDER];
        if (of_r->rose_in == end->step)
            of_r->now = of_r->before;
        of_r->ran_ns = end->end_ns;
        of_r->now.spent_ns += end->end_ns - queues_of(self)->planned_ns;
        if (of_r->now.spent_ns <= quantum_ns(p, of_r->now.level) ||
            of_r->now.level == p->n_levels - 1)
            continue;
        of_r->now = (struct place){of_r->now.level + 1, -++queues_of(self)->n_demoted, 0};
    }
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_EACH_PLAN};

const struct ifl_policy policy_order_mlfq = {
    .kind = IFL_ORDER,
    .name = "mlfq",
    .doc = "skip-join multi-level feedback queue (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct mlfq),
    .state_bytes = sizeof(struct queues),
    .request_bytes = sizeof(struct history),
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    /* With every step somebody may have used up a quantum. */
    .steady = ifl_never_steady,
    .ops.order = &ops,
};
