/* By predicted length, starving requests first (vllm-ltr, Fu et al., Efficient LLM Scheduling by
 * Learning to Rank, NeurIPS 2024; vllm/core/scheduler.py there, _get_opt_ordered_requests).
 *
 * The score is the predicted output length; only the order of scores matters. A request that has
 * not run for `starve_steps` steps starves: it goes before the others until it has run
 * `promoted_steps` steps. Among several of these the shortest goes first.
 *
 * A list holds the requests by the step since which they have not run. A request that arrives or
 * has run goes to the end, so the next to starve is always the first, and only requests that begin
 * to starve are ranked anew. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct starving_first {
    int32_t starve_steps, promoted_steps;
};

struct turn { /* this module's part of a request */
    const struct ifl_request *request;
    struct turn *before, *behind; /* neighbours in its list */
    uint64_t idle_from;           /* first step since its arrival or last run */
    uint64_t starves_from;        /* the step from which it goes first; 0: it does not starve */
    int32_t promoted_left;        /* steps for which the request still goes first */
    uint64_t late_for; /* number, from 1, of the call of on_step_end for the step during which it
                          arrived */
};

struct turns {
    struct turn *first, *last;
};

struct crowd {
    struct turns idle, starving; /* by idle_from; each request is in one of the two */
    size_t n_here, n_late;       /* requests at this replica; of these, requests that arrived
                                    during the current step */
    size_t n_promoted;
    bool all_ran;           /* all requests ran in the last step */
    uint64_t n_ends;        /* calls of on_step_end */
    uint64_t all_idle_from; /* 1 + the last step in which all ran: replaces an earlier idle_from */
};

static const struct ifl_param params[] = {
    {"starve_steps", IFL_INT, offsetof(struct starving_first, starve_steps), 100, 1, 1 << 30, NULL,
     "steps", "a request without a token for this many steps is starving"},
    {"promoted_steps", IFL_INT, offsetof(struct starving_first, promoted_steps), 20, 0, 1 << 30,
     NULL, "steps", "steps for which it then goes first"},
};

static const int64_t BEFORE_ALL = INT64_C(1) << 40; /* longer than any output */

static struct crowd *crowd_of(const void *self)
{
    return ifl_state(self);
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct turn *turn = ifl_mine(self, of[i]);
        const bool first = turn->promoted_left > 0 || turn->starves_from > 0;
        const int64_t length = of[i]->n_predicted >= 0 ? of[i]->n_predicted : of[i]->n_max_new;
        key[i] = first ? length - BEFORE_ALL : length;
    }
}

/* ---- the lists ---- */

static void leave(struct turns *turns, struct turn *turn)
{
    *(turn->before ? &turn->before->behind : &turns->first) = turn->behind;
    *(turn->behind ? &turn->behind->before : &turns->last) = turn->before;
}

static void append(struct turns *turns, struct turn *turn)
{
    turn->before = turns->last;
    turn->behind = NULL;
    *(turn->before ? &turn->before->behind : &turns->first) = turn;
    turns->last = turn;
}

static struct turns *turns_of(struct crowd *crowd, const struct turn *turn)
{
    return turn->starves_from > 0 ? &crowd->starving : &crowd->idle;
}

/* First step in which a request of the idle list starves, unless it runs before. */
static uint64_t next_starves(const struct starving_first *p)
{
    const struct crowd *crowd = crowd_of(p);
    const uint64_t idle_from = crowd->idle.first->idle_from, all_from = crowd->all_idle_from;
    return ifl_max(idle_from, all_from) + (uint64_t)p->starve_steps;
}

/* ---- arrivals and departures ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct crowd *crowd = crowd_of(self);
    struct turn *turn = ifl_mine(self, r);
    *turn = (struct turn){.request = r, .idle_from = ifl_next_step(view)};
    append(&crowd->idle, turn);
    crowd->n_here++;
    if (view->n_in_flight > 0) {
        turn->late_for = crowd->n_ends + 1;
        crowd->n_late++;
    }
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct turn *turn = ifl_mine(self, r);
    struct crowd *crowd = crowd_of(self);
    (void)view;
    leave(turns_of(crowd, turn), turn);
    crowd->n_here--;
    crowd->n_late -= turn->late_for == crowd->n_ends + 1;
    crowd->n_promoted -= turn->promoted_left > 0;
}

/* ---- steps ---- */

/* Marks requests that starve when the next step is planned, unless they run in this step. */
static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct crowd *crowd = crowd_of(self);
    (void)step;
    while (crowd->idle.first && next_starves(self) <= view->step + 1) {
        struct turn *turn = crowd->idle.first;
        leave(&crowd->idle, turn);
        append(&crowd->starving, turn);
        turn->starves_from = view->step + 1;
        ifl_rerank(view, turn->request);
    }
}

/* False if every request ran in this step and in the one before, and no request is promoted or
 * starves: all_idle_from then stands for every turn. */
static bool matters_which_ran(const struct crowd *crowd, size_t n_ran)
{
    return !crowd->all_ran || crowd->n_promoted > 0 || crowd->starving.first ||
           n_ran + crowd->n_late < crowd->n_here;
}

static void note_run(const struct starving_first *p, const struct ifl_step_end *end,
                     struct turn *turn)
{
    struct crowd *crowd = crowd_of(p);
    const bool was_promoted = turn->promoted_left > 0, starved = turn->starves_from > 0;
    leave(turns_of(crowd, turn), turn);
    if (starved && turn->starves_from <= end->step + 1 - (uint64_t)end->n_steps)
        turn->promoted_left = p->promoted_steps;
    turn->promoted_left -= ifl_min(turn->promoted_left, end->n_steps);
    turn->idle_from = end->step + 1;
    turn->starves_from = 0;
    append(&crowd->idle, turn);
    crowd->n_promoted += (size_t)(turn->promoted_left > 0) - (size_t)was_promoted;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct crowd *crowd = crowd_of(self);
    (void)view;
    if (matters_which_ran(crowd, end->n_requests)) {
        const struct ifl_results ran = ifl_results(end);
        for (size_t i = 0; i < ran.n; i++)
            note_run(self, end, ifl_mine(self, ran.of[i].request));
    }
    crowd->all_ran = end->n_requests + crowd->n_late == crowd->n_here;
    if (crowd->all_ran)
        crowd->all_idle_from = end->step + 1;
    crowd->n_late = 0;
    crowd->n_ends++;
}

/* Steps, this one included, until the promotion of a scheduled request ends; INT32_MAX: none. */
static int32_t promoted_steps_left(const struct starving_first *p, struct ifl_step *step)
{
    const struct crowd *crowd = crowd_of(p);
    int32_t least = INT32_MAX;
    if (crowd->n_promoted == 0 && !crowd->starving.first)
        return least;
    const struct ifl_requests scheduled = ifl_scheduled(step);
    for (size_t i = 0; i < scheduled.n; i++) {
        const struct turn *turn = ifl_mine(p, scheduled.of[i]);
        const int32_t left = turn->starves_from > 0 ? p->promoted_steps : turn->promoted_left;
        if ((turn->starves_from > 0 || left > 0) && left < least)
            least = left;
    }
    return least;
}

/* Keys stand until a promotion ends or a request begins to starve. The step before a request begins
 * to starve must be planned by itself, so that on_step_start marks the request. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct crowd *crowd = crowd_of(self);
    const bool all_run = (size_t)step->n_requests == crowd->n_here;
    const int32_t left = promoted_steps_left(self, step);
    struct ifl_promise promise = {left == INT32_MAX ? left : left - 1, IFL_NEVER, 0};
    if (all_run || !crowd->idle.first)
        return promise;
    const int64_t n_steps = (int64_t)(next_starves(self) - view->step) - 2;
    promise.n_steps = n_steps < promise.n_steps ? (int32_t)n_steps : promise.n_steps;
    return promise;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_own_keys};

const struct ifl_policy policy_order_starving_first = {
    .kind = IFL_ORDER,
    .name = "starving-first",
    .doc = "shortest predicted output first, but starving requests before all others (LTR)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct starving_first),
    .state_bytes = sizeof(struct crowd),
    .request_bytes = sizeof(struct turn),
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .steady = steady,
    .ops.order = &ops,
};
