/* Skip-join multi-level feedback queue (FastServe, Wu et al., arXiv 2305.05920, section 4.1 and
 * Algorithm 1; LLMServe/FastServe, fastserve/scheduler).
 *
 * Level p has a quantum of quantum_s x 2^p.
 *   - Join: a request joins the first level with a quantum that covers its predicted prefill.
 *   - Demotion: a request that has run at its level for longer than the quantum moves to the front
 *     of the next level.
 *   - Starvation check, every `starve_steps` steps: a request that has not run for `starve_s`, or
 *     never, moves to the front of the top level. The time it has spent is kept, so it may be
 *     demoted again after one step.
 *
 * Each level is a list; requests join at its end. Levels below the top stay short even if the queue
 * is long, because a request that waits there for long starves. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

enum { MOST_LEVELS = 30, LEVEL_BITS = 58, BATCH_BITS = 20 };

struct mlfq {
    int64_t quantum_ns;
    int32_t n_levels;
    int64_t prefill_base_ns;
    double prefill_token_s;
    int32_t starve_steps;
    int64_t starve_ns;
};

struct place {                     /* this module's part of a request */
    struct place *before, *behind; /* neighbours in the level's ring */
    const struct ifl_request *request;
    int64_t at;      /* key within the level; below 0: the request was put in front */
    int64_t left_ns; /* time left of its level's quantum; below 0 if it has spent more at a lower
                        level */
    int32_t level;
};

struct queues {
    /* Sentinels of the rings: before the first, behind the last. */
    struct place levels[MOST_LEVELS];
    int64_t n_joined, n_returned;
    int32_t n_here; /* requests at this replica */
};

static const struct ifl_param params[] = {
    {"quantum_s", IFL_TIME, offsetof(struct mlfq, quantum_ns), 0.01, 1e-6, 3600, NULL, "s",
     "quantum of the highest level; each lower level has twice that of the level above"},
    {"n_levels", IFL_INT, offsetof(struct mlfq, n_levels), 20, 1, MOST_LEVELS, NULL, "levels",
     "number of levels"},
    {"prefill_base_s", IFL_TIME, offsetof(struct mlfq, prefill_base_ns), 0, 0, 3600, NULL, "s",
     "predicted time of a prefill: constant part"},
    {"prefill_token_s", IFL_REAL, offsetof(struct mlfq, prefill_token_s), 0.0001, 0, 3600, NULL,
     "s", "predicted time of a prefill: per token of the prompt"},
    {"starve_steps", IFL_INT, offsetof(struct mlfq, starve_steps), 1000, 1, 1 << 30, NULL, "steps",
     "interval between checks for starving requests"},
    {"starve_s", IFL_TIME, offsetof(struct mlfq, starve_ns), 3, 0, 1e9, NULL, "s",
     "a request without a token for this time returns to the highest level; before its first "
     "token, at the next check"},
};

static int64_t quantum_ns(const struct mlfq *p, int32_t level)
{
    const bool ends = level < p->n_levels - 1 && p->quantum_ns <= IFL_LAST_NS >> level;
    return ends ? p->quantum_ns << level : IFL_LAST_NS;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct place *place = ifl_mine(self, of[i]);
        key[i] = ((int64_t)place->level << LEVEL_BITS) + place->at;
    }
}

/* ---- the levels ---- */

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct queues *queues = ifl_state(self);
    (void)limits;
    (void)error;
    for (struct place *end = queues->levels; end < queues->levels + MOST_LEVELS; end++)
        *end = (struct place){.before = end, .behind = end, .at = INT64_MAX};
    return 0;
}

static void stand_before(struct place *behind, struct place *place)
{
    place->before = behind->before;
    place->behind = behind;
    behind->before->behind = place;
    behind->before = place;
}

static void leave_level(struct place *place)
{
    place->before->behind = place->behind;
    place->behind->before = place->before;
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct mlfq *p = self;
    struct queues *queues = ifl_state(self);
    struct place *place = ifl_mine(self, r);
    const int64_t tokens_ns = ifl_ns_from_s(p->prefill_token_s * (double)r->n_prompt);
    const int64_t needed_ns = tokens_ns < IFL_LAST_NS ? p->prefill_base_ns + tokens_ns : IFL_NEVER;
    (void)view;
    place->request = r;
    place->at = ++queues->n_joined;
    while (place->level < p->n_levels - 1 && quantum_ns(p, place->level) < needed_ns)
        place->level++;
    place->left_ns = quantum_ns(p, place->level);
    stand_before(&queues->levels[place->level], place);
    queues->n_here++;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    struct queues *queues = ifl_state(self);
    (void)view;
    (void)why;
    leave_level(ifl_mine(self, r));
    queues->n_here--;
}

/* Moves a request to the front of a level, but behind requests that were put there later. */
static void move(void *self, const struct ifl_view *view, struct place *place, int32_t level,
                 int64_t at)
{
    struct queues *queues = ifl_state(self);
    struct place *behind = queues->levels[level].behind;
    leave_level(place);
    place->level = level;
    place->at = at;
    while (behind->at < at)
        behind = behind->behind;
    stand_before(behind, place);
    ifl_rerank(view, place->request);
}

/* ---- moves between levels ---- */

/* True if the request starves. A request in a step in flight does not: it is about to run. */
static bool starves(const struct mlfq *p, const struct ifl_view *view, const struct ifl_request *r)
{
    const int64_t ran_ns = ifl_last_end_ns(r);
    return r->n_in_flight == 0 && (ran_ns == IFL_NEVER || view->now_ns - ran_ns >= p->starve_ns);
}

/* Number of steps from `step` to the next starvation check; 0: `step` has one itself. */
static int32_t steps_to_check(const struct mlfq *p, uint64_t step)
{
    return p->starve_steps - 1 - (int32_t)(step % (uint64_t)p->starve_steps);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct mlfq *p = self;
    struct queues *queues = ifl_state(self);
    if (steps_to_check(p, ifl_next_step(view) - 1) > 0) /* this one is in flight */
        return;
    for (int32_t level = 1; level < p->n_levels; level++)
        for (struct place *place = queues->levels[level].behind, *next;
             place != &queues->levels[level]; place = next) {
            next = place->behind;
            if (starves(p, view, place->request) && !ifl_took_part(step, place->request)) {
                place->left_ns -= quantum_ns(p, level) - quantum_ns(p, 0);
                move(self, view, place, 0, -++queues->n_returned);
            }
        }
}

/* Demotes a request that has spent its quantum in a run, perhaps by more than one level. Of
 * requests demoted in one step, the last of the batch stands first. */
static void demote(void *self, const struct ifl_view *view, const struct ifl_step_end *end,
                   struct place *place, size_t at_in_batch)
{
    const uint64_t first_step = end->step + 1 - (uint64_t)end->n_steps;
    int32_t level = place->level;
    int64_t began_ns = end->start_ns - (quantum_ns(self, level) - place->left_ns), at = 0;
    for (size_t i = 0; end->end_ns - began_ns > quantum_ns(self, level); i++) {
        if (end->ends_ns[i] - began_ns <= quantum_ns(self, level))
            continue;
        began_ns = end->ends_ns[i];
        at = -(int64_t)(((first_step + i) << BATCH_BITS) + at_in_batch);
        level++;
    }
    place->left_ns = quantum_ns(self, level) - (end->end_ns - began_ns);
    move(self, view, place, level, at);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct ifl_results ran = ifl_results(end);
    const int64_t ran_ns = end->end_ns - end->start_ns;
    for (size_t i = 0; i < ran.n; i++) {
        struct place *place = ifl_mine(self, ran.of[i].request);
        if (ran_ns > place->left_ns)
            demote(self, view, end, place, i);
        else
            place->left_ns -= ran_ns;
    }
}

/* The rank order, if the plan asked for it, is stable until the next demotion; it does not matter
 * if every request runs. A step with a starvation check must be planned by itself. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct queues *queues = ifl_state(self);
    const bool ranks_matter = step->asked & 1u << IFL_ORDER && step->n_requests < queues->n_here;
    const struct ifl_requests none = {NULL, 0}, falling = ranks_matter ? ifl_scheduled(step) : none;
    int64_t left_ns = IFL_NEVER - view->now_ns;
    for (size_t i = 0; i < falling.n; i++) {
        const struct place *place = ifl_mine(self, falling.of[i]);
        left_ns = ifl_min(place->left_ns, left_ns);
    }
    const int32_t n_steps = steps_to_check(self, ifl_next_step(view)) - 1;
    return (struct ifl_promise){n_steps, view->now_ns + left_ns, 0, false};
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_NAMED;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_mlfq = {
    .kind = IFL_ORDER,
    .name = "mlfq",
    .doc = "skip-join multi-level feedback queue (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct mlfq),
    .state_bytes = sizeof(struct queues),
    .request_bytes = sizeof(struct place),
    .init = init,
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .steady = steady,
    .ops.order = &ops,
};
