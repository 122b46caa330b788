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

struct steps {
    uint64_t n_begun;
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

static struct steps *steps_of(const void *self)
{
    return (struct steps *)((uintptr_t)self + ifl_state_offset(sizeof(struct starving_first)));
}

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
    (void)view;
    *(struct turn *)r->mine[IFL_ORDER] = (struct turn){.idle_from = steps_of(self)->n_begun};
}

static void on_step_start(void *self, const struct ifl_view *view, const struct ifl_step_desc *desc,
                          struct ifl_step *step)
{
    (void)view;
    (void)step;
    steps_of(self)->n_begun = desc->step + 1;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct starving_first *p = self;
    (void)view;
    for (size_t i = 0; i < end->n_of; i++) {
        struct turn *turn = end->of[i].request->mine[IFL_ORDER];
        if (starves(p, end->step, turn))
            turn->promoted_left = p->promoted_steps;
        if (turn->promoted_left > 0)
            turn->promoted_left--;
        turn->idle_from = end->step + 1;
    }
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_EACH_PLAN};

const struct ifl_policy policy_order_starving_first = {
    .kind = IFL_ORDER,
    .name = "starving-first",
    .doc = "by predicted output length, whoever starves before everyone (LTR)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct starving_first),
    .state_bytes = sizeof(struct steps),
    .request_bytes = sizeof(struct turn),
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    /* With every step somebody may starve. */
    .steady = ifl_never_steady,
    .ops.order = &ops,
};
