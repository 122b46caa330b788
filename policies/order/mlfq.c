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
 * is long, because a request that waits there for long starves.
 *
 * In most steps every request runs, so that one clock counts the time of all of them. Such steps
 * only log when they ended; `settle` finds the demotions when ranks are asked for. Time spent in a
 * step that leaves some requests out is added to each request that ran, by moving the start of its
 * level back. */
#include "inflight/policy.h"

enum { MOST_LEVELS = 30, LEVEL_BITS = 58, BATCH_BITS = 20, MOST_LOGGED = 2048 };

struct mlfq {
    int64_t quantum_ns;
    int32_t n_levels;
    int64_t prefill_base_ns;
    double prefill_token_s;
    int32_t starve_steps;
    int64_t starve_ns;
};

struct place {                     /* of a request */
    struct place *before, *behind; /* neighbours in the level's ring */
    int64_t at;                    /* key within the level; below 0: the request was put in front */
    int32_t level;
    int64_t began_ns; /* begin of its level, on the clock; IFL_NEVER: arrived in the current step */
    const struct ifl_request *request;
    struct place *late_before; /* next in the list of arrivals in the current step */
};

struct queues {
    int64_t quantum_ns[MOST_LEVELS]; /* of each level; the last level has no end */
    struct place
        levels[MOST_LEVELS]; /* sentinels of the rings: before the first, behind the last */
    size_t n_here, n_late;   /* requests; of them those that arrived in the current step */
    struct place *late;      /* list of these n_late requests */
    int64_t clock_ns; /* total time of the steps in which all requests present at start ran */
    /* The log: steps in which all requests ran and that are not settled yet. When each ended, on
     * the clock, and the number of the first. */
    int64_t end_ns[MOST_LOGGED];
    size_t n_logged;
    uint64_t first_logged;
    int64_t n_joined, n_returned;
    uint64_t look_step; /* step of the next starvation check */
    int64_t planned_ns; /* start of the current step, or of the first step of a promised run */
    bool brings_back;   /* the current step swaps in: its batch is not in order of start */
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
     "without a token for so long, a request returns to the highest level; before its first, at "
     "once"},
};

static struct queues *queues_of(const void *self)
{
    return ifl_state(self);
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct place *place = ifl_mine(self, of[i]);
        key[i] = ((int64_t)place->level << LEVEL_BITS) + place->at;
    }
}

static int64_t prefill_ns(const struct mlfq *p, const struct ifl_request *r)
{
    const int64_t tokens_ns = ifl_ns_from_s(p->prefill_token_s * (double)r->n_prompt);
    return tokens_ns < IFL_LAST_NS ? p->prefill_base_ns + tokens_ns : IFL_NEVER;
}

/* ---- time at a level ---- */

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct mlfq *p = self;
    struct queues *queues = queues_of(p);
    (void)limits;
    (void)error;
    for (int32_t level = 0; level < p->n_levels; level++) {
        const bool ends = level < p->n_levels - 1 && p->quantum_ns <= IFL_LAST_NS >> level;
        struct place *nobody = &queues->levels[level];
        queues->quantum_ns[level] = ends ? p->quantum_ns << level : IFL_LAST_NS;
        *nobody = (struct place){.before = nobody, .behind = nobody, .at = INT64_MAX};
    }
    return 0;
}

/* ns is not negative. */
static int64_t added_ns(int64_t left, int64_t ns)
{
    return left <= IFL_NEVER - ns ? left + ns : IFL_NEVER;
}

/* End of the request's quantum at `level`, on the clock: it is demoted by the first step that ends
 * later. */
static int64_t due_ns(const struct queues *queues, const struct place *place, int32_t level)
{
    return added_ns(place->began_ns, queues->quantum_ns[level]);
}

/* ---- the levels ---- */

/* The body may take `place` off the level. */
#define FOR_EACH_PLACE(place, level)                                                               \
    for (struct place *place = (level)->behind, *next_ = place->behind; place != (level);          \
         place = next_, next_ = place->behind)

static void leave_level(struct place *place)
{
    place->before->behind = place->behind;
    place->behind->before = place->before;
}

static void stand_before(struct place *behind, struct place *place, int32_t level, int64_t at)
{
    place->level = level;
    place->at = at;
    place->before = behind->before;
    place->behind = behind;
    behind->before->behind = place;
    behind->before = place;
}

/* Puts a request in front of its new level, in the order of `at`: requests that moved there later
 * have a smaller one. */
static void move(struct queues *queues, struct place *place, int32_t level, int64_t at,
                 const struct ifl_view *view)
{
    struct place *behind = queues->levels[level].behind;
    leave_level(place);
    while (behind->at < at)
        behind = behind->behind;
    stand_before(behind, place, level, at);
    ifl_rerank(view, place->request);
}

/* ---- demotion ---- */

struct run { /* of consecutive steps */
    const int64_t *end_ns;
    size_t n;
    uint64_t first_step;
    int64_t ahead_ns; /* the clock minus end_ns */
};

/* Index of the first step that ends after ns on the clock; n if none does. */
static size_t first_end_behind(const struct run *run, int64_t ns)
{
    size_t first = 0, n = run->n;
    if (run->end_ns[n - 1] + run->ahead_ns <= ns)
        return n;
    while (n > 0) {
        const size_t half = n / 2;
        const bool behind = run->end_ns[first + half] + run->ahead_ns > ns;
        first += behind ? 0 : half + 1;
        n = behind ? half : n - half - 1;
    }
    return first;
}

/* Demotes a request that has run in all steps of the run, as often as its quanta ended. Of requests
 * that are demoted by one step, the last of the batch stands first. */
static void let_fall(struct queues *queues, const struct ifl_view *view, const struct run *run,
                     struct place *place, uint64_t at_in_batch)
{
    int32_t level = place->level;
    size_t fell = 0;
    for (size_t at; (at = first_end_behind(run, due_ns(queues, place, level))) < run->n; level++) {
        fell = at;
        place->began_ns = run->end_ns[fell] + run->ahead_ns;
    }
    if (level > place->level)
        move(queues, place, level,
             -(int64_t)(((run->first_step + fell) << BATCH_BITS) + at_in_batch), view);
}

static uint64_t last_start(const struct mlfq *p, const struct queues *queues)
{
    uint64_t last = 0;
    for (int32_t level = 0; level < p->n_levels; level++)
        FOR_EACH_PLACE (place, &queues->levels[level])
            if (place->request->start_serial > last)
                last = place->request->start_serial;
    return last;
}

/* Finds the demotions in the logged steps: all requests ran in them, in order of start. Levels go
 * from the lowest up, so that a demoted request is not visited again. */
static void settle(const void *self, const struct ifl_view *view)
{
    const struct mlfq *p = self;
    struct queues *queues = queues_of(p);
    const struct run run = {queues->end_ns, queues->n_logged, queues->first_logged, 0};
    const uint64_t most = (UINT64_C(1) << BATCH_BITS) - 1;
    if (run.n == 0)
        return;
    const uint64_t last = last_start(p, queues);
    for (int32_t level = p->n_levels - 1; level >= 0; level--)
        FOR_EACH_PLACE (place, &queues->levels[level]) {
            const uint64_t n_behind = last - place->request->start_serial;
            let_fall(queues, view, &run, place, n_behind < most ? most - n_behind : 0);
        }
    queues->n_logged = 0;
}

/* ---- arrivals, departures, starvation ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct mlfq *p = self;
    struct queues *queues = queues_of(self);
    struct place *place = ifl_mine(self, r);
    const int64_t needed_ns = prefill_ns(p, r);
    int32_t level = 0;
    while (level < p->n_levels - 1 && queues->quantum_ns[level] < needed_ns)
        level++;
    *place = (struct place){.request = r, .began_ns = queues->clock_ns};
    stand_before(&queues->levels[level], place, level, ++queues->n_joined);
    queues->n_here++;
    if (view->n_in_flight > 0) {
        place->began_ns = IFL_NEVER;
        place->late_before = queues->late;
        queues->late = place;
        queues->n_late++;
    }
}

/* A request may be rejected while the step in flight at its arrival has not ended: then it leaves
 * the list of late arrivals. */
static void forget_late(struct queues *queues, const struct place *place)
{
    for (struct place **at = &queues->late; *at; at = &(*at)->late_before)
        if (*at == place) {
            *at = place->late_before;
            queues->n_late--;
            return;
        }
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct queues *queues = queues_of(self);
    struct place *place = ifl_mine(self, r);
    (void)view;
    if (queues->late)
        forget_late(queues, place);
    leave_level(place);
    queues->n_here--;
}

static bool starves(const struct mlfq *p, const struct ifl_view *view, const struct ifl_request *r)
{
    return ifl_last_end_ns(r) == IFL_NEVER || view->now_ns - ifl_last_end_ns(r) >= p->starve_ns;
}

static void return_starving(const struct mlfq *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    struct queues *queues = queues_of(p);
    settle(p, view);
    for (int32_t level = 1; level < p->n_levels; level++)
        FOR_EACH_PLACE (place, &queues->levels[level])
            if (starves(p, view, place->request) && !ifl_took_part(step, place->request))
                move(queues, place, 0, -++queues->n_returned, view);
}

/* Number of the first step, from `step` on, that runs the starvation check. */
static uint64_t next_look(const struct mlfq *p, uint64_t step)
{
    const uint64_t n = (uint64_t)p->starve_steps;
    return step + (n - 1 - step % n);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct queues *queues = queues_of(self);
    queues->planned_ns = view->now_ns;
    queues->brings_back = step->n_swapped_in > 0;
    if (view->step < queues->look_step)
        return;
    if (view->step == next_look(self, view->step))
        return_starving(self, view, step);
    queues->look_step = next_look(self, view->step + 1);
}

/* True if every request ran but those that arrived in the step. */
static bool all_ran(const struct queues *queues, size_t n_ran)
{
    return n_ran + queues->n_late == queues->n_here;
}

/* Every request ran: only the ends of the steps are logged. A full log is settled. */
static void log_ends(const struct mlfq *p, const struct ifl_view *view,
                     const struct ifl_step_end *end)
{
    struct queues *queues = queues_of(p);
    const int64_t ahead_ns = queues->clock_ns - queues->planned_ns;
    const size_t n = (size_t)end->n_steps;
    for (size_t at = 0; at < n;) {
        if (queues->n_logged == MOST_LOGGED)
            settle(p, view);
        if (queues->n_logged == 0)
            queues->first_logged = end->step + 1 - (n - at);
        const size_t n_room = MOST_LOGGED - queues->n_logged;
        const size_t n_more = n - at < n_room ? n - at : n_room;
        int64_t *end_ns = queues->end_ns + queues->n_logged;
        for (size_t i = 0; i < n_more; i++)
            end_ns[i] = end->ends_ns[at + i] + ahead_ns;
        queues->n_logged += n_more;
        at += n_more;
    }
}

/* Demotes requests that ran in these steps. uncounted_ns is the time of the steps that the clock
 * does not count, because some requests did not run. */
static void look_who_falls(const struct mlfq *p, const struct ifl_view *view,
                           const struct ifl_step_end *end, int64_t uncounted_ns)
{
    struct queues *queues = queues_of(p);
    const struct run run = {.end_ns = end->ends_ns,
                            .n = (size_t)end->n_steps,
                            .first_step = end->step + 1 - (uint64_t)end->n_steps,
                            .ahead_ns = queues->clock_ns - queues->planned_ns};
    settle(p, view);
    const struct ifl_results ran = ifl_results(end);
    for (size_t i = 0; i < ran.n; i++) {
        struct place *place = ifl_mine(p, ran.of[i].request);
        let_fall(queues, view, &run, place, i);
        place->began_ns -= uncounted_ns;
    }
}

static void let_late_begin(struct queues *queues)
{
    for (struct place *place = queues->late; place; place = place->late_before)
        place->began_ns = queues->clock_ns;
    queues->late = NULL;
    queues->n_late = 0;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct queues *queues = queues_of(self);
    const int64_t lasted_ns = end->end_ns - queues->planned_ns;
    const bool all = all_ran(queues, end->n_requests);
    if (queues->brings_back || !all)
        look_who_falls(self, view, end, all ? 0 : lasted_ns);
    else
        log_ends(self, view, end);
    queues->clock_ns += all ? lasted_ns : 0;
    if (queues->late)
        let_late_begin(queues);
    queues->planned_ns = end->end_ns; /* start of the next promised step, if there is one */
}

/* Highest level with a request that the plan gave no token; n_levels if there is none. */
static int32_t level_left_out(const struct mlfq *p, const struct queues *queues)
{
    for (int32_t level = 0; level < p->n_levels; level++)
        FOR_EACH_PLACE (place, &queues->levels[level])
            if (ifl_n_now(place->request) == 0)
                return level;
    return p->n_levels;
}

/* Earliest time at which a demotion could put a running request behind one that was left out. A
 * demotion to the latter's level or above cannot, because it goes to the front. */
static int64_t next_pass_ns(const struct mlfq *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    const struct queues *queues = queues_of(p);
    const struct ifl_requests scheduled = ifl_scheduled(step);
    settle(p, view);
    const int32_t lowest = level_left_out(p, queues);
    int64_t least_ns = IFL_NEVER - view->now_ns;
    for (size_t i = 0; i < scheduled.n && lowest < p->n_levels; i++) {
        const struct place *place = ifl_mine(p, scheduled.of[i]);
        int64_t left = due_ns(queues, place, place->level) - queues->clock_ns;
        for (int32_t level = place->level + 1; level <= lowest && left < least_ns; level++)
            left = added_ns(left, queues->quantum_ns[level]);
        least_ns = left < least_ns ? left : least_ns;
    }
    return view->now_ns + least_ns;
}

/* The rank order, if the plan asked for it, is stable until next_pass_ns; demotions before that are
 * found later. A step with a starvation check must be planned by itself, unless every request
 * runs. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const bool all_run = (size_t)step->n_requests == queues_of(self)->n_here;
    const bool asked = step->asked & 1u << IFL_ORDER;
    struct ifl_promise promise = {INT32_MAX, IFL_NEVER, 0};
    if (!all_run)
        promise.n_steps = (int32_t)(next_look(self, view->step) - view->step) - 1;
    if (asked)
        promise.until_ns = next_pass_ns(self, view, step);
    return promise;
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    settle(self, view);
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
