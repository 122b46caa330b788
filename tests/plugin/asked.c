/* Modules that ask, answer or write what they may not, each of which `way` chooses; and two drafts
 * with a state that changes while a plan is made. */
#include <inflight/policy.h>

#ifndef DOC
#define DOC "admits all"
#endif

struct asked {
    int32_t way;
};

static const struct ifl_param params[] = {
    {"way", IFL_INT, offsetof(struct asked, way), 0, 0, 100, NULL, "", "which"},
};

static int32_t way_of(const void *self)
{
    return ((const struct asked *)self)->way;
}

/* ---- an order ---- */

enum order_way {
    RANKS_BY_LENGTH,
    LOOKS_AT_THE_QUEUE,
    LOOKS_AT_THE_TAIL,
    LOOKS_AT_THE_QUEUE_FOR_KEYS,
    WRITES_A_REQUEST,
    WRITES_THE_STATE,
    WRITES_THE_LIMITS,
    LOOKS_FOR_THE_OLDEST
};

static void look_at_queue(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    while (step && ifl_next(step, IFL_IN_WAITING, &cursor))
        ;
}

static void write(const struct ifl_view *view, const struct ifl_request *r, int32_t way)
{
    if (way == WRITES_A_REQUEST)
        ((struct ifl_request *)(uintptr_t)r)->n_max_new = 1;
    if (way == WRITES_THE_STATE)
        ((struct ifl_request *)(uintptr_t)r)->state = IFL_DONE;
    if (way == WRITES_THE_LIMITS)
        ((struct ifl_limits *)(uintptr_t)view->limits)->n_blocks = 10;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->n_prompt;
    if (way_of(self) == LOOKS_AT_THE_QUEUE)
        look_at_queue(ifl_plan(view));
    if (way_of(self) == LOOKS_AT_THE_TAIL && ifl_plan(view))
        (void)ifl_last_ranked(ifl_plan(view), 0);
    if (way_of(self) == LOOKS_FOR_THE_OLDEST && ifl_plan(view))
        (void)ifl_oldest_waiting_ns(ifl_plan(view));
    if (n > 0)
        write(view, of[0], way_of(self));
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    if (way_of(self) == LOOKS_AT_THE_QUEUE_FOR_KEYS)
        look_at_queue(ifl_plan(view));
    return IFL_KEYS_MOVE;
}

/* ---- an admission ---- */

enum admit_way {
    ADMITS,
    HOLDS_LESS_THAN_NOTHING,
    WRITES_WHEN_ASKED,
    ASKS_WHICH_TOOK_PART,
    ASKS_WHICH_TOOK_PART_IN_A_HOOK,
    ASKS_FOR_ROOM_FOR_ROOM
};

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)n;
    if (way_of(self) == WRITES_WHEN_ASKED)
        write(view, r, WRITES_A_REQUEST);
    if (way_of(self) == ASKS_WHICH_TOOK_PART)
        (void)ifl_took_part(step, r);
    return ifl_admission(IFL_YES, way_of(self) == HOLDS_LESS_THAN_NOTHING ? -7 : 0);
}

static double room(const void *self, const struct ifl_view *view, struct ifl_step *step,
                   double enough)
{
    (void)view;
    return way_of(self) == ASKS_FOR_ROOM_FOR_ROOM ? ifl_room(step, enough) : enough;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    if (way_of(self) == ASKS_WHICH_TOOK_PART_IN_A_HOOK)
        (void)ifl_took_part(ifl_plan(view), r);
}

/* ---- a batching module ---- */

enum batching_way {
    ASKS_FOR_TOO_MUCH,
    ASKS_FOR_LESS_THAN_NOTHING,
    GIVES_AND_HOLDS_LESS,
    RERANKS_AND_NEEDS_LESS
};

/* Both have no effect: the request is ranked after the hook. */
static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    if (way_of(self) == RERANKS_AND_NEEDS_LESS)
        ifl_rerank(view, r);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING, &cursor);
    (void)view;
    for (size_t i = 0; i < running.n; i++)
        (void)ifl_schedule(step, running.of[i], ifl_todo(running.of[i]),
                           way_of(self) == GIVES_AND_HOLDS_LESS ? -1 : 0);
    if (r && way_of(self) == RERANKS_AND_NEEDS_LESS && ifl_need(step, r, -2000000000) != 0)
        ifl_reject(step, r);
    else if (r && way_of(self) < GIVES_AND_HOLDS_LESS)
        (void)ifl_ask(step, r, way_of(self) == ASKS_FOR_TOO_MUCH ? ifl_todo(r) + 1 : -2);
    if (r && r->state == IFL_WAITING)
        (void)ifl_start(step, r, ifl_todo(r));
}

/* ---- drafts ---- */

/* No guesses for twenty steps behind a preemption; or a number of guesses that changes with each
 * question. */
struct guesses {
    int32_t n_left, n_asked;
};

enum most_way { SAYS_FOUR, DIVIDES_BY_ZERO, EXITS, GUESSES_BY_ITS_GUESS };

static int32_t guess(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    if (way_of(self) == GUESSES_BY_ITS_GUESS)
        return ifl_drafts(ifl_plan(view), r);
    return ((const struct guesses *)ifl_state(self))->n_left > 0 ? 0 : 4;
}

static int32_t guess_in_turn(const void *self, const struct ifl_view *view,
                             const struct ifl_request *r)
{
    struct guesses *guesses = ifl_state(self);
    (void)view;
    (void)r;
    return ++guesses->n_asked % 5;
}

static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    (void)r;
    ((struct guesses *)ifl_state(self))->n_left = 20;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct guesses *guesses = ifl_state(self);
    (void)view;
    (void)end;
    guesses->n_left -= guesses->n_left > 0;
}

static int32_t most(const void *params_of)
{
    const struct asked *p = params_of;
    const volatile int32_t zero = 0;
    if (p->way == EXITS)
        exit(0);
    return p->way == DIVIDES_BY_ZERO ? 4 / zero : 4;
}

/* ---- a router ---- */

enum route_way {
    WRITES_ITS_NOTE,
    WRITES_THE_ARRIVAL,
    WRITES_A_LOAD,
    WRITES_THE_FLEET,
    WRITES_LIMITS_OF_A_LOAD,
    WRITES_A_LOAD_LATE
};

static struct ifl_load *writable(const struct ifl_fleet *fleet)
{
    return (struct ifl_load *)(uintptr_t)ifl_load_of(fleet, 1);
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    switch ((enum route_way)way_of(self)) {
    case WRITES_ITS_NOTE:
        *fleet->note = 7;
        break;
    case WRITES_THE_ARRIVAL:
        ((struct ifl_request *)(uintptr_t)fleet->request)->n_prompt++;
        break;
    case WRITES_A_LOAD:
        writable(fleet)->n_waiting++;
        break;
    case WRITES_THE_FLEET:
        ((struct ifl_fleet *)(uintptr_t)fleet)->now_ns++;
        break;
    case WRITES_LIMITS_OF_A_LOAD:
        ((struct ifl_limits *)(uintptr_t)writable(fleet)->limits)->n_blocks--;
        break;
    case WRITES_A_LOAD_LATE:
        break;
    }
    return ifl_up(fleet, IFL_PREFILLS | IFL_DECODES) > 0 ? ifl_send(0) : ifl_send_pair(0, 1);
}

static size_t pick_decode(const void *self, const struct ifl_fleet *fleet)
{
    if (way_of(self) == WRITES_A_LOAD_LATE)
        writable(fleet)->n_waiting++;
    return 1;
}

static const struct ifl_route_ops route_ops = {.pick = pick, .pick_decode = pick_decode};
static const struct ifl_order_ops order_ops = {.rank = rank, .keys = keys};
static const struct ifl_admit_ops admit_ops = {.ask = ask, .room = room};
static const struct ifl_batching_ops batching_ops = {.plan = plan};
static const struct ifl_draft_ops backs_off_ops = {.ask = guess, .most = most};
static const struct ifl_draft_ops in_turn_ops = {.ask = guess_in_turn, .most = most};

#define PARAMS .params = params, .n_params = 1, .params_bytes = sizeof(struct asked)

static const struct ifl_policy order = {.kind = IFL_ORDER,
                                        .name = "asked",
                                        .doc = "looks, or writes, as it ranks",
                                        PARAMS,
                                        .ops.order = &order_ops};
static const struct ifl_policy admit = {.kind = IFL_ADMIT,
                                        .name = "asked",
                                        .doc = DOC,
                                        PARAMS,
                                        .on_start = on_start,
                                        .ops.admit = &admit_ops};
static const struct ifl_policy batching = {.kind = IFL_BATCHING,
                                           .name = "asked",
                                           .doc = "asks for nonsense",
                                           PARAMS,
                                           .on_join = on_join,
                                           .ops.batching = &batching_ops};
static const struct ifl_policy backs_off = {.kind = IFL_DRAFT,
                                            .name = "backs-off",
                                            .doc = "guesses nothing for a while",
                                            PARAMS,
                                            .state_bytes = sizeof(struct guesses),
                                            .on_undo = on_preempt,
                                            .on_preempt = on_preempt,
                                            .on_step_end = on_step_end,
                                            .ops.draft = &backs_off_ops};
static const struct ifl_policy in_turn = {.kind = IFL_DRAFT,
                                          .name = "in-turn",
                                          .doc = "counts questions",
                                          PARAMS,
                                          .state_bytes = sizeof(struct guesses),
                                          .ops.draft = &in_turn_ops};

static const struct ifl_policy route = {.kind = IFL_ROUTE,
                                        .name = "asked",
                                        .doc = "writes as it picks",
                                        PARAMS,
                                        .ops.route = &route_ops};

IFL_POLICIES(&order, &admit, &batching, &backs_off, &in_turn, &route);

#ifdef CRASHES_AT_THE_END
__attribute__((destructor)) static void end(void)
{
    *(volatile int *)8 = 1;
}
#endif
