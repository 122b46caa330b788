/* Skip-join multi-level feedback queue (FastServe, Wu et al., arXiv 2305.05920, section 4.1 and
 * Algorithm 1; LLMServe/FastServe, fastserve/scheduler).
 *
 * Level p has a quantum of quantum_s x 2^p. A request joins the first level whose quantum covers
 * its predicted prefill, skipping those above. Who has run at a level for longer than its quantum
 * goes down by one, to the front there. Every `starve_steps` steps whoever has not run for
 * `starve_s`, or ever, returns to the top, to the front there, too, one after the other; what it
 * has spent stays spent, so that it may fall again after a step.
 *
 * Each level is a list: who joins comes last there, who falls or returns to it first.
 * The levels below the top are short even where the queue is not, since whoever waits there for
 * long starves. */
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

struct place { /* of a request */
    const struct ifl_request *request;
    struct place *before, *behind; /* at its level */
    int32_t level;
    int64_t at;      /* within the level, less than 0: it came to the front */
    int64_t left_ns; /* at it; less than 0 where it has spent more elsewhere */
    int64_t ran_ns;  /* when it last ran, or IFL_NEVER */
};

struct queues {
    struct {
        struct place *first, *last;
    } levels[MOST_LEVELS];
    size_t n_here;
    int64_t n_joined, n_returned;
    int64_t planned_ns; /* the step under way, or the first of those that repeat one another */
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
    return ifl_state(self, sizeof(struct mlfq));
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++) {
        const struct place *place = of[i]->mine[IFL_ORDER];
        key[i] = ((int64_t)place->level << LEVEL_BITS) + place->at;
    }
}

/* The last level's has no end. */
static int64_t quantum_ns(const struct mlfq *p, int32_t level)
{
    const bool ends = level < p->n_levels - 1 && p->quantum_ns <= IFL_LAST_NS >> level;
    return ends ? p->quantum_ns << level : IFL_LAST_NS;
}

static int64_t prefill_ns(const struct mlfq *p, const struct ifl_request *r)
{
    const int64_t tokens_ns = ifl_ns_from_s(p->prefill_token_s * (double)r->n_prompt);
    return tokens_ns < IFL_LAST_NS ? p->prefill_base_ns + tokens_ns : IFL_NEVER;
}

/* ---- the levels ---- */

static void leave_level(struct queues *queues, struct place *place)
{
    const int32_t level = place->level;
    *(place->before ? &place->before->behind : &queues->levels[level].first) = place->behind;
    *(place->behind ? &place->behind->before : &queues->levels[level].last) = place->before;
}

static void join_level(struct queues *queues, struct place *place, int32_t level)
{
    place->level = level;
    place->at = ++queues->n_joined;
    place->before = queues->levels[level].last;
    place->behind = NULL;
    *(place->before ? &place->before->behind : &queues->levels[level].first) = place;
    queues->levels[level].last = place;
}

/* To the front, but for those who came there since. */
static void move(struct queues *queues, struct place *place, int32_t level, int64_t at,
                 const struct ifl_view *view)
{
    leave_level(queues, place);
    struct place *before = NULL, *behind = queues->levels[level].first;
    for (; behind && behind->at < at; behind = behind->behind)
        before = behind;
    place->level = level;
    place->at = at;
    place->before = before;
    place->behind = behind;
    *(before ? &before->behind : &queues->levels[level].first) = place;
    *(behind ? &behind->before : &queues->levels[level].last) = place;
    ifl_rerank(view, place->request);
}

/* ---- who moves ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct mlfq *p = self;
    struct place *place = r->mine[IFL_ORDER];
    const int64_t needed_ns = prefill_ns(p, r);
    int32_t level = 0;
    (void)view;
    while (level < p->n_levels - 1 && quantum_ns(p, level) < needed_ns)
        level++;
    *place = (struct place){.request = r, .left_ns = quantum_ns(p, level), .ran_ns = IFL_NEVER};
    join_level(queues_of(self), place, level);
    queues_of(self)->n_here++;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    leave_level(queues_of(self), r->mine[IFL_ORDER]);
    queues_of(self)->n_here--;
}

static bool starves(const struct mlfq *p, const struct ifl_view *view, const struct place *place)
{
    return place->ran_ns == IFL_NEVER || view->now_ns - place->ran_ns >= p->starve_ns;
}

static void rise(const struct mlfq *p, const struct ifl_view *view, struct place *place)
{
    struct queues *queues = queues_of(p);
    const int64_t spent_ns = quantum_ns(p, place->level) - place->left_ns;
    place->left_ns = quantum_ns(p, 0) - spent_ns;
    move(queues, place, 0, -++queues->n_returned, view);
}

static void return_starving(const struct mlfq *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    struct queues *queues = queues_of(p);
    for (int32_t level = 1; level < p->n_levels; level++)
        for (struct place *place = queues->levels[level].first, *next; place; place = next) {
            next = place->behind;
            if (starves(p, view, place) && !ifl_took_part(step, place->request))
                rise(p, view, place);
        }
}

/* Steps up to and with the next that looks for starving requests. */
static int32_t steps_to_look(const struct mlfq *p, const struct ifl_view *view)
{
    return p->starve_steps - (int32_t)(view->step % (uint64_t)p->starve_steps);
}

static void on_step_start(void *self, const struct ifl_view *view, const struct ifl_step_desc *desc,
                          struct ifl_step *step)
{
    (void)desc;
    queues_of(self)->planned_ns = view->now_ns;
    if (steps_to_look(self, view) == 1)
        return_starving(self, view, step);
}

/* The first step that ends so late; n_steps: none does. */
static int32_t first_end_behind(const struct ifl_step_end *end, int64_t ns)
{
    int32_t low = 0, high = end->n_steps;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (end->ends_ns[middle] > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Of those who fall in one step the last of the batch stands first. */
static void fall(const struct mlfq *p, const struct ifl_view *view, const struct ifl_step_end *end,
                 size_t i)
{
    struct place *place = end->of[i].request->mine[IFL_ORDER];
    const uint64_t first_step = end->step + 1 - (uint64_t)end->n_steps;
    int32_t level = place->level;
    int64_t at = 0;
    while (place->left_ns < 0) {
        const int32_t fell = first_end_behind(end, end->end_ns + place->left_ns);
        at = -(int64_t)(((first_step + (uint64_t)fell) << BATCH_BITS) + i);
        place->left_ns = quantum_ns(p, ++level) - (end->end_ns - end->ends_ns[fell]);
    }
    move(queues_of(p), place, level, at, view);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct queues *queues = queues_of(self);
    const int64_t lasted_ns = end->end_ns - queues->planned_ns;
    for (size_t i = 0; i < end->n_of; i++) {
        struct place *place = end->of[i].request->mine[IFL_ORDER];
        place->ran_ns = end->end_ns;
        place->left_ns -= lasted_ns;
        if (place->left_ns < 0)
            fall(self, view, end, i);
    }
    queues->planned_ns = end->end_ns; /* of a repetition that is in flight by now */
}

/* When the first of those who run may have used up a quantum. */
static int64_t next_fall_ns(const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests scheduled = ifl_scheduled(step);
    int64_t left_ns = IFL_NEVER - view->now_ns;
    for (size_t i = 0; i < scheduled.n; i++) {
        const struct place *place = scheduled.of[i]->mine[IFL_ORDER];
        if (place->left_ns < left_ns)
            left_ns = place->left_ns;
    }
    return view->now_ns + left_ns;
}

/* Ranks stand until somebody who runs falls, if they were asked for; who falls when is found out
 * later. A look for starving requests needs a plan of its own, unless nobody is left out. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const bool all_run = (size_t)step->n_requests == queues_of(self)->n_here;
    const bool asked = step->asked & 1u << IFL_ORDER;
    struct ifl_promise promise = {INT32_MAX, IFL_NEVER, 0};
    if (!all_run)
        promise.n_steps = steps_to_look(self, view) - 2;
    if (asked)
        promise.until_ns = next_fall_ns(view, step);
    return promise;
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_NAMED};

const struct ifl_policy policy_order_mlfq = {
    .kind = IFL_ORDER,
    .name = "mlfq",
    .doc = "skip-join multi-level feedback queue (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct mlfq),
    .state_bytes = sizeof(struct queues),
    .request_bytes = sizeof(struct place),
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .hears_runs = true,
    .steady = steady,
    .ops.order = &ops,
};
