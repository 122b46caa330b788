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

/* While everyone runs in every step, that is all there is to know. */
struct crowd {
    size_t n_here, n_late; /* requests, those that came while a step was in flight */
    size_t n_promoted;
    bool all_ran; /* in the last step */
    uint64_t all_idle_from;
};

static const struct ifl_param params[] = {
    {"starve_steps", IFL_INT, offsetof(struct starving_first, starve_steps), 100, 1, 1 << 30, NULL,
     "steps", "without a token for so many steps a request starves"},
    {"promoted_steps", IFL_INT, offsetof(struct starving_first, promoted_steps), 20, 0, 1 << 30,
     NULL, "steps", "then it goes first for so many steps"},
};

static const int64_t BEFORE_ALL = INT64_C(1) << 40; /* longer than any output */

static struct crowd *crowd_of(const void *self)
{
    return (struct crowd *)((uintptr_t)self + ifl_state_offset(sizeof(struct starving_first)));
}

/* Steps in a row, before this one, in which it could have run and did not. */
static int64_t idle_steps(const struct starving_first *p, uint64_t step, const struct turn *turn)
{
    const uint64_t all_from = crowd_of(p)->all_idle_from;
    return (int64_t)(step - (turn->idle_from > all_from ? turn->idle_from : all_from));
}

static bool starves(const struct starving_first *p, uint64_t step, const struct turn *turn)
{
    return idle_steps(p, step, turn) >= p->starve_steps;
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
    *(struct turn *)r->mine[IFL_ORDER] = (struct turn){.idle_from = view->step + view->n_in_flight};
    crowd_of(self)->n_here++;
    crowd_of(self)->n_late += view->n_in_flight > 0;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct turn *turn = r->mine[IFL_ORDER];
    struct crowd *crowd = crowd_of(self);
    (void)view;
    crowd->n_here--;
    crowd->n_promoted -= turn->promoted_left > 0;
}

static bool listens(const void *self, const struct ifl_view *view, size_t n)
{
    const struct crowd *crowd = crowd_of(self);
    (void)view;
    return !crowd->all_ran || crowd->n_promoted > 0 || n + crowd->n_late < crowd->n_here;
}

static void note_run(const struct starving_first *p, const struct ifl_step_end *end,
                     struct turn *turn)
{
    const bool was_promoted = turn->promoted_left > 0;
    if (starves(p, end->step + 1 - (uint64_t)end->n_steps, turn))
        turn->promoted_left = p->promoted_steps;
    turn->promoted_left -= turn->promoted_left < end->n_steps ? turn->promoted_left : end->n_steps;
    turn->idle_from = end->step + 1;
    crowd_of(p)->n_promoted += (size_t)(turn->promoted_left > 0) - (size_t)was_promoted;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct crowd *crowd = crowd_of(self);
    (void)view;
    for (size_t i = 0; end->of && i < end->n_of; i++)
        note_run(self, end, end->of[i].request->mine[IFL_ORDER]);
    crowd->all_ran = end->n_of + crowd->n_late == crowd->n_here;
    if (crowd->all_ran)
        crowd->all_idle_from = end->step + 1;
    crowd->n_late = 0;
}

/* Steps for which the key of a request stays what it is. */
static int32_t steps_to_change(const struct starving_first *p, const struct ifl_view *view,
                               const struct ifl_request *r)
{
    const struct turn *turn = r->mine[IFL_ORDER];
    const bool starving = starves(p, view->step, turn), first = starving || turn->promoted_left > 0;
    if (r->n_now > 0)
        return first ? (starving ? p->promoted_steps : turn->promoted_left) - 1 : INT32_MAX;
    return first ? INT32_MAX : p->starve_steps - 1 - (int32_t)idle_steps(p, view->step, turn);
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
    .state_bytes = sizeof(struct crowd),
    .request_bytes = sizeof(struct turn),
    .on_join = on_join,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .listens = listens,
    .hears_runs = true,
    .steady = steady,
    .ops.order = &ops,
};
