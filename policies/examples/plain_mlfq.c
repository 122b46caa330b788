/* An order: the skip-join multi-level feedback queue of FastServe (Wu et al., arXiv 2305.05920,
 * section 4.1 and Algorithm 1). Level p has a quantum of quantum_s x 2^p. A request joins the first
 * level with a quantum that covers its prefill. A request that has run at its level for longer than
 * the quantum goes to the front of the level below. Every `starve_steps` steps requests that have
 * not run for `starve_s` return to the front of the top level. policies/order/mlfq.c gives the same
 * answers faster, but where plans are made ahead: there ifl_next does not show on_step_start the
 * requests that arrived since the step before began. */
#include <inflight/policy.h>

struct mlfq {
    int64_t quantum_ns;
    int32_t n_levels;
    double prefill_token_s;
    int32_t starve_steps;
    int64_t starve_ns;
};

struct counts {
    int64_t n_joined, n_to_front;
};

struct place { /* this module's part of a request */
    int32_t level;
    int64_t at, spent_ns;           /* at: place within the level, below 0 if the request was put
                                       in front; spent_ns: time spent at the level */
    const struct ifl_request *next; /* in the list of starving requests */
};

static const struct ifl_param params[] = {
    {"quantum_s", IFL_TIME, offsetof(struct mlfq, quantum_ns), 0.01, 1e-6, 1, NULL, "s",
     "quantum of the highest level; each lower level has twice that of the level above"},
    {"n_levels", IFL_INT, offsetof(struct mlfq, n_levels), 20, 1, 30, NULL, "levels",
     "number of levels"},
    {"prefill_token_s", IFL_REAL, offsetof(struct mlfq, prefill_token_s), 0.0001, 0, 1, NULL, "s",
     "predicted time of a prefill, for each token of the prompt"},
    {"starve_steps", IFL_INT, offsetof(struct mlfq, starve_steps), 1000, 1, 1 << 30, NULL, "steps",
     "interval between checks for starving requests"},
    {"starve_s", IFL_TIME, offsetof(struct mlfq, starve_ns), 3, 0, 1e9, NULL, "s",
     "a request without a token for this time is starving"},
};

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct place *place = ifl_mine(self, of[i]);
        key[i] = ((int64_t)place->level << 48) + place->at;
    }
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct mlfq *p = self;
    struct counts *counts = ifl_state(self);
    struct place *place = ifl_mine(self, r);
    const int64_t prefill_ns = ifl_ns_from_s(p->prefill_token_s * (double)r->n_prompt);
    (void)view;
    place->at = ++counts->n_joined;
    while (place->level < p->n_levels - 1 && p->quantum_ns << place->level < prefill_ns)
        place->level++;
}

static void to_front(void *self, struct place *place, int32_t level)
{
    struct counts *counts = ifl_state(self);
    place->level = level;
    place->at = -++counts->n_to_front;
}

static bool starves(const struct mlfq *p, const struct ifl_view *view, const struct ifl_request *r)
{
    const int64_t ran_ns = ifl_last_end_ns(r);
    return ran_ns == IFL_NEVER || view->now_ns - ran_ns >= p->starve_ns;
}

/* All starving requests are listed first, because moving one changes the order of the lists. */
static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct mlfq *p = self;
    const unsigned all = IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED;
    const struct ifl_request *r, *first = NULL, **last = &first;
    struct ifl_cursor cursor = {{0}};
    if (ifl_next_step(view) % (uint64_t)p->starve_steps != 0)
        return;
    while ((r = ifl_next(step, all, &cursor))) {
        struct place *place = ifl_mine(self, r);
        if (place->level > 0 && starves(p, view, r) && !ifl_took_part(step, r)) {
            *last = r;
            last = &place->next;
        }
    }
    *last = NULL;
    for (; first; first = ((struct place *)ifl_mine(self, first))->next)
        to_front(self, ifl_mine(self, first), 0);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct mlfq *p = self;
    const struct ifl_results results = ifl_results(end);
    (void)view;
    for (size_t i = 0; i < results.n; i++) {
        struct place *place = ifl_mine(self, results.of[i].request);
        place->spent_ns += end->end_ns - end->start_ns;
        if (place->level < p->n_levels - 1 && place->spent_ns > p->quantum_ns << place->level) {
            place->spent_ns = 0;
            to_front(self, place, place->level + 1);
        }
    }
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy plain_mlfq = {
    .kind = IFL_ORDER,
    .name = "plain-mlfq",
    .doc = "skip-join multi-level feedback queue (FastServe), in its plainest form",
    .params = params,
    .n_params = 5,
    .params_bytes = sizeof(struct mlfq),
    .state_bytes = sizeof(struct counts),
    .request_bytes = sizeof(struct place),
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .ops.order = &ops,
};

IFL_POLICIES(&plain_mlfq);
