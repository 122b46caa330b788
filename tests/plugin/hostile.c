/* Modules of six kinds that break the contract; `way` chooses how. */
#include <inflight/policy.h>
#include <pthread.h>

struct hostile {
    int32_t way;
};

static const struct ifl_param params[] = {
    {"way", IFL_INT, offsetof(struct hostile, way), 0, 0, 100, NULL, "", "which"},
};

enum batching_way {
    NEVER_PLANS,
    STARTS_AND_PREEMPTS,
    SWAPS_AND_STARTS,
    PADS_TOO_MUCH,
    PADS_LESS_THAN_NOTHING,
    SPARES_TOO_MUCH,
    SPARES_LESS_THAN_NOTHING,
    SCHEDULES_A_WAITING,
    PROMISES_WRONGLY,
    NEVER_RETURNS,
    WAKES_FOR_EVER,
    CRASHES,
    OVERFLOWS_THE_STACK,
    DIVIDES_BY_ZERO,
    ABORTS,
    EXITS,
    ENDS_THE_THREAD,
    HANDS_OVER_NONSENSE,
    CRASHES_IN_INIT,
    EXITS_IN_FINISH,
    GIVES_UP_KV,
    PREEMPTS_FOR_NO_FATE,
    PREEMPTS_TO_NO_PLACE,
    STARTS_WITH_LESS_THAN_NOTHING,
    PROMISES_LESS_THAN_NOTHING,
    SCHEDULES_READY_WITH_LESS_THAN_NOTHING,
    REFUSES_WITHOUT_REASON
};

static int *volatile nowhere;
static volatile int zero;

static int deeper(volatile char *above)
{
    volatile char room[4096];
    room[0] = *above;
    return room[0] == 1 ? 0 : deeper(room) + room[0];
}

static const struct ifl_request *first_waiting(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    return ifl_next(step, IFL_IN_WAITING, &cursor);
}

static void start_and_preempt(struct ifl_step *step, enum ifl_fate fate)
{
    for (int i = 0; i < 1000000; i++) {
        const struct ifl_request *r = first_waiting(step);
        if (!r || ifl_start(step, r, 1) != IFL_YES)
            return;
        ifl_preempt(step, r, fate, IFL_FRONT);
    }
}

static void plan_well(struct ifl_step *step)
{
    const struct ifl_request *r = first_waiting(step);
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    if (r && step->n_preempted == 0)
        ifl_start(step, r, ifl_todo(r));
}

static void give_up_kv(const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    plan_well(step);
    if (view->n_running > 0)
        ifl_keep(step, running.of[0], 4);
}

static void preempt_first(struct ifl_step *step, int fate, int place)
{
    const struct ifl_requests running = ifl_running(step);
    if (running.n > 0)
        ifl_preempt(step, running.of[0], (enum ifl_fate)fate, (enum ifl_place)place);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct hostile *p = self;
    const struct ifl_request *r = first_waiting(step);
    volatile bool forever = true;
    (void)view;
    switch ((enum batching_way)p->way) {
    case NEVER_PLANS:
        return;
    case STARTS_AND_PREEMPTS:
        start_and_preempt(step, IFL_RECOMPUTE);
        return;
    case SWAPS_AND_STARTS:
        start_and_preempt(step, IFL_SWAP);
        return;
    case PADS_TOO_MUCH:
        plan_well(step);
        ifl_pad(step, (struct ifl_padding){.n_prefill_tokens = INT32_MAX,
                                           .prefill_q_q = INT64_MAX,
                                           .n_decode_seqs = INT32_MAX,
                                           .decode_context = INT64_MAX,
                                           .n_draft_tokens = INT32_MAX});
        return;
    case PADS_LESS_THAN_NOTHING:
        plan_well(step);
        ifl_pad(step, (struct ifl_padding){.n_decode_seqs = -1});
        return;
    case SPARES_TOO_MUCH:
        if (r && ifl_ask_beyond(step, r, 1, INT32_MAX) == IFL_YES)
            ifl_schedule(step, r, 1, 0);
        plan_well(step);
        return;
    case SPARES_LESS_THAN_NOTHING:
        if (r)
            ifl_ask_beyond(step, r, 1, INT32_MIN);
        plan_well(step);
        return;
    case SCHEDULES_A_WAITING:
        if (r)
            ifl_schedule(step, r, 1, 0);
        return;
    case PROMISES_WRONGLY: /* the request that waits would start in one step of seven */
        if (!ifl_schedule_ready(step, 0))
            ifl_decode_one_by_one(step, 0);
        if (r && (view->n_running == 0 || view->step % 7 == 6))
            ifl_start(step, r, ifl_todo(r));
        ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
        return;
    case NEVER_RETURNS:
        while (forever)
            ;
        return;
    case WAKES_FOR_EVER:
        ifl_wake(step, view->now_ns + 1);
        return;
    case CRASHES:
        *nowhere = 1;
        return;
    case OVERFLOWS_THE_STACK:
        deeper(&(volatile char){0});
        return;
    case DIVIDES_BY_ZERO:
        zero = 7 / zero;
        return;
    case ABORTS:
        abort();
    case EXITS:
        exit(0);
    case ENDS_THE_THREAD:
        pthread_exit(NULL);
    case HANDS_OVER_NONSENSE:
        ifl_start(step, (const struct ifl_request *)(uintptr_t)64, 1);
        return;
    case GIVES_UP_KV:
        give_up_kv(view, step);
        return;
    case PREEMPTS_FOR_NO_FATE:
        plan_well(step);
        preempt_first(step, 77, IFL_FRONT);
        return;
    case PREEMPTS_TO_NO_PLACE:
        plan_well(step);
        preempt_first(step, IFL_RECOMPUTE, 55);
        return;
    case STARTS_WITH_LESS_THAN_NOTHING:
        if (r)
            ifl_start(step, r, -5);
        return;
    case PROMISES_LESS_THAN_NOTHING:
        plan_well(step);
        ifl_promise(step, INT32_MAX, IFL_NEVER, -1);
        return;
    case SCHEDULES_READY_WITH_LESS_THAN_NOTHING:
        ifl_schedule_ready(step, -1);
        return;
    case REFUSES_WITHOUT_REASON:
        if (r)
            ifl_refuse(step, r, NULL);
        return;
    case CRASHES_IN_INIT:
    case EXITS_IN_FINISH:
        plan_well(step);
        return;
    }
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct hostile *p = self;
    (void)limits;
    (void)error;
    if (p->way == CRASHES_IN_INIT)
        *nowhere = 1;
    return 0;
}

static void finish(void *self)
{
    const struct hostile *p = self;
    if (p->way == EXITS_IN_FINISH)
        exit(0);
}

enum admit_way {
    REJECTS,
    STARTS,
    CRASHES_WHEN_ASKED,
    SCHEDULES,
    PREEMPTS,
    PROMISES,
    WAKES,
    PADS,
    ASKS,
    ANSWERS_NONSENSE,
    WAITS_A_MOMENT,
    CANNOT_BEGIN,
    CANNOT_SAY_WHY,
    BEGINS_WITH_NONSENSE,
    HAS_ROOM_FOR_NO_NUMBER,
    BEGINS_WITHOUT_MEMORY
};

static int init_admit(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct hostile *p = self;
    switch ((enum admit_way)p->way) {
    case CANNOT_BEGIN:
        return ifl_fail(error, IFL_E_INPUT, "%d blocks, expected more", limits->n_blocks);
    case CANNOT_SAY_WHY:
        return IFL_E_INPUT;
    case BEGINS_WITH_NONSENSE:
        return 7;
    case BEGINS_WITHOUT_MEMORY:
        return IFL_E_NOMEM;
    default:
        return 0;
    }
}

/* What only a plan does. */
static void change(struct ifl_step *step, enum admit_way way, const struct ifl_request *r)
{
    const struct ifl_requests running = ifl_running(step);
    if (way == REJECTS)
        ifl_reject(step, r);
    if (way == STARTS)
        ifl_start(step, r, 1);
    if (way == SCHEDULES && running.n > 0)
        ifl_schedule(step, running.of[0], 1, 0);
    if (way == PREEMPTS)
        preempt_first(step, IFL_RECOMPUTE, IFL_FRONT);
    if (way == PROMISES)
        ifl_promise(step, 9, IFL_NEVER, 0);
    if (way == WAKES)
        ifl_wake(step, IFL_NEVER - 1);
    if (way == PADS)
        ifl_pad(step, (struct ifl_padding){0});
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct hostile *p = self;
    if (p->way == CRASHES_WHEN_ASKED)
        *nowhere = 1;
    change(step, (enum admit_way)p->way, r);
    if (p->way == ASKS)
        ifl_ask(step, r, n);
    if (p->way == ANSWERS_NONSENSE)
        return ifl_admission((enum ifl_verdict)99, 0);
    if (p->way == WAITS_A_MOMENT)
        return ifl_not_before(view->now_ns + 1);
    return ifl_admission(IFL_YES, ifl_n_tokens(r));
}

static double room(const void *self, const struct ifl_view *view, struct ifl_step *step,
                   double enough)
{
    const struct hostile *p = self;
    (void)view;
    (void)step;
    return p->way == HAS_ROOM_FOR_NO_NUMBER ? strtod("nan", NULL) : enough;
}

/* The order does the same as the admission, to the request that is ranked last. */
static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct hostile *p = self;
    struct ifl_step *step = ifl_plan(view);
    for (size_t i = 0; i < n; i++)
        key[i] = 0;
    if (step && n > 0)
        change(step, (enum admit_way)p->way, of[n - 1]);
}

enum draft_way { FEWER_THAN_NONE, MORE_THAN_MOST, MOST_BELOW_NOTHING };

static int32_t guess(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct hostile *p = self;
    (void)view;
    (void)r;
    return p->way == FEWER_THAN_NONE ? -3 : 50;
}

static int32_t most(const void *params_of)
{
    const struct hostile *p = params_of;
    return p->way == MOST_BELOW_NOTHING ? -5 : 5;
}

enum preempt_way { ASKS_BACK, PICKS_WAITING, WAKES_AHEAD, REFUSES_IN_A_HOOK };

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct hostile *p = self;
    (void)view;
    if (p->way == WAKES_AHEAD)
        ifl_wake(step, IFL_NEVER - 1);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct hostile *p = self;
    const struct ifl_requests given = ifl_scheduled(step);
    (void)view;
    if (p->way == REFUSES_IN_A_HOOK && given.n > 0)
        ifl_refuse(step, given.of[0], "it does not like it");
}

static struct ifl_victim pick_victim(const void *self, const struct ifl_view *view,
                                     struct ifl_step *step, const struct ifl_request *needy)
{
    const struct hostile *p = self;
    const struct ifl_request *waiting = first_waiting(step);
    (void)view;
    if (p->way == PICKS_WAITING && waiting)
        return (struct ifl_victim){waiting, IFL_RECOMPUTE, IFL_FRONT};
    ifl_make_room(step, needy);
    return (struct ifl_victim){needy, IFL_RECOMPUTE, IFL_FRONT};
}

enum route_way {
    NAMES_NO_REPLICA,
    CRASHES_ON_ARRIVAL,
    EXITS_ON_ARRIVAL,
    NAMES_NO_DESTINATION,
    READS_A_LOAD_TOO_FAR,
    READS_COUNTS_TOO_FAR,
    READS_A_CACHE_TOO_FAR,
    SENDS_A_PAIR,
    SENDS_TO_A_DECODE,
    SENDS_PAIRS_ROUND,
    NAMES_ITSELF_LATE,
    CRASHES_LATE,
    SHEDS_IN_TWO_LINES
};

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct hostile *p = self;
    if (p->way == CRASHES_ON_ARRIVAL)
        *nowhere = 1;
    if (p->way == EXITS_ON_ARRIVAL)
        exit(0);
    if (p->way == NAMES_NO_DESTINATION)
        return (struct ifl_route){(enum ifl_destination)42, 0, 0, NULL};
    if (p->way == READS_A_LOAD_TOO_FAR)
        return ifl_send(ifl_load_of(fleet, 99)->n_routed > 99);
    if (p->way == READS_COUNTS_TOO_FAR)
        return ifl_send(ifl_counts_of(fleet, 99).n_routed > 99);
    if (p->way == READS_A_CACHE_TOO_FAR)
        return ifl_send(ifl_cached_tokens(fleet, 99) > 9999);
    if (p->way == SHEDS_IN_TWO_LINES)
        return ifl_shed("one line\nand\tanother");
    if (p->way == SENDS_TO_A_DECODE)
        return ifl_send(1);
    if (p->way == SENDS_PAIRS_ROUND)
        return ifl_send_pair(1, 0);
    if (p->way == SENDS_A_PAIR || p->way == NAMES_ITSELF_LATE || p->way == CRASHES_LATE)
        return ifl_send_pair(0, 1);
    return ifl_send(fleet->n);
}

static size_t pick_decode(const void *self, const struct ifl_fleet *fleet)
{
    const struct hostile *p = self;
    (void)fleet;
    if (p->way == CRASHES_LATE)
        *nowhere = 1;
    return 0;
}

static const struct ifl_batching_ops batching_ops = {plan};
static const struct ifl_admit_ops admit_ops = {.ask = ask, .room = room};
static const struct ifl_preempt_ops preempt_ops = {.pick = pick_victim, .ahead = ahead};
static const struct ifl_order_ops order_ops = {.rank = rank};
static const struct ifl_draft_ops draft_ops = {.ask = guess, .most = most};
static const struct ifl_route_ops route_ops = {.pick = pick, .pick_decode = pick_decode};

static const struct ifl_policy batching = {
    .kind = IFL_BATCHING,
    .name = "hostile",
    .doc = "breaks the contract",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .init = init,
    .finish = finish,
    .ops.batching = &batching_ops,
};
static const struct ifl_policy admit = {
    .kind = IFL_ADMIT,
    .name = "hostile",
    .doc = "acts when asked",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .init = init_admit,
    .ops.admit = &admit_ops,
};
static const struct ifl_policy preempt = {
    .kind = IFL_PREEMPT,
    .name = "hostile",
    .doc = "asks when asked",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .on_step_start = on_step_start,
    .ops.preempt = &preempt_ops,
};
static const struct ifl_policy route = {
    .kind = IFL_ROUTE,
    .name = "hostile",
    .doc = "names no replica",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .ops.route = &route_ops,
};

static const struct ifl_policy order = {
    .kind = IFL_ORDER,
    .name = "hostile",
    .doc = "acts when asked",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .ops.order = &order_ops,
};
static const struct ifl_policy draft = {
    .kind = IFL_DRAFT,
    .name = "hostile",
    .doc = "guesses nonsense",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
    .ops.draft = &draft_ops,
};
static const struct ifl_policy greedy = {
    .kind = IFL_ADMIT,
    .name = "greedy",
    .doc = "has a large state",
    .state_bytes = (size_t)1 << 62,
    .ops.admit = &admit_ops,
};
static const struct ifl_policy wide = {
    .kind = IFL_ADMIT,
    .name = "wide",
    .doc = "has a large part of each request",
    .request_bytes = (size_t)1 << 40,
    .ops.admit = &admit_ops,
};
static const struct ifl_policy broad = {
    .kind = IFL_ADMIT,
    .name = "broad",
    .doc = "has as large a part of each request as there may be",
    .request_bytes = (size_t)1 << 31,
    .ops.admit = &admit_ops,
};

IFL_POLICIES(&batching, &admit, &preempt, &route, &order, &draft, &greedy, &wide, &broad);
