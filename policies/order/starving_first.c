/* By predicted length, but whoever starves goes first (vllm-ltr, Fu et al., Efficient LLM
 * Scheduling by Learning to Rank, NeurIPS 2024; vllm/core/scheduler.py there,
 * _get_opt_ordered_requests).
 *
 * The score is the predicted output length, of which only the order matters. A request that has not
 * run for `starve_steps` steps goes before the others until it has run `promoted_steps` steps; of
 * several such ones the shortest goes first. */
#include "inflight/policy.h"

struct starving_first {
    int32_t starve_steps, promoted_steps;
};

struct turn {           /* of a request */
    uint64_t idle_from; /* the first step that it could have run in and did not */
    int32_t promoted_left;
};

static const struct ifl_param params[] = {
    {"starve_steps", IFL_INT, offsetof(struct starving_first, starve_steps), 100, 1, 1 << 30, NULL,
     "steps", "without a token for so many steps a request starves"},
    {"promoted_steps", IFL_INT, offsetof(struct starving_first, promoted_steps), 20, 0, 1 << 30,
     NULL, "steps", "then it goes first for so many steps"},
};

static const int64_t BEFORE_ALL = INT64_C(1) << 40; /* longer than any output */

static bool starves(const struct starving_first *p, uint64_t step, const struct turn *turn)
{
    return (int64_t)(step - turn->idle_from) >= p->starve_steps;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    for (size_t i = 0; i < n; i++) {
        const struct turn *turn = of[i]->mine[IFL_ORDER];
        const bool first = turn->promoted_left > 0 || starves(self, view->step, turn);
        const int64_t length = of[i]->n_predicted >= 0 ? of[i]->n_predicted : of[i]->n_max_new;
        key[i] = first ? length - BEFORE_ALL : length;
    }
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)self;
    *(struct turn *)r->mine[IFL_ORDER] = (struct turn){.idle_from = view->step + view->n_in_flight};
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct starving_first *p = self;
    (void)view;
    for (size_t i = 0; i < end->n_of; i++) {
        struct turn *turn = end->of[i].request->mine[IFL_ORDER];
        if (starves(p, end->step + 1 - (uint64_t)end->n_steps, turn))
            turn->promoted_left = p->promoted_steps;
        turn->promoted_left -=
            turn->promoted_left < end->n_steps ? turn->promoted_left : end->n_steps;
        turn->idle_from = end->step + 1;
    }
}

/* Steps for which the key of a request stays what it is. */
static int32_t steps_to_change(const struct starving_first *p, const struct ifl_view *view,
                               const struct ifl_request *r)
{
    const struct turn *turn = r->mine[IFL_ORDER];
    const bool starving = starves(p, view->step, turn), first = starving || turn->promoted_left > 0;
    if (r->n_now > 0)
        return first ? (starving ? p->promoted_steps : turn->promoted_left) - 1 : INT32_MAX;
    return first ? INT32_MAX : p->starve_steps - 1 - (int32_t)(view->step - turn->idle_from);
}

static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    struct ifl_promise promise = {INT32_MAX, IFL_NEVER, 0};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    if (!(step->asked & 1u << IFL_ORDER))
        return promise;
    while ((r = ifl_next(step, IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED, &cursor))) {
        const int32_t n = steps_to_change(self, view, r);
        promise.n_steps = n < promise.n_steps ? n : promise.n_steps;
    }
    return promise;
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_EACH_PLAN};

const struct ifl_policy policy_order_starving_first = {
    .kind = IFL_ORDER,
    .name = "starving-first",
    .doc = "by predicted output length, whoever starves before everyone (LTR)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct starving_first),
    .request_bytes = sizeof(struct turn),
    .on_join = on_join,
    .on_step_end = on_step_end,
    .hears_runs = true,
    .steady = steady,
    .ops.order = &ops,
};
