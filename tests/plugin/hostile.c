/* Modules of four kinds that break the contract; `way` chooses how. */
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
    SCHEDULES_WHO_WAITS,
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
    GIVES_UP_KV
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
    case SCHEDULES_WHO_WAITS:
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

enum admit_way { REJECTS, STARTS, CRASHES_WHEN_ASKED };

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct hostile *p = self;
    (void)view;
    if (p->way == CRASHES_WHEN_ASKED)
        *nowhere = 1;
    else if (p->way == REJECTS)
        ifl_reject(step, r);
    else
        ifl_start(step, r, n);
    return ifl_admission(IFL_YES, ifl_n_tokens(r));
}

enum preempt_way { ASKS_BACK, PICKS_WAITING };

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

enum route_way { NAMES_NO_REPLICA, CRASHES_ON_ARRIVAL, EXITS_ON_ARRIVAL };

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct hostile *p = self;
    if (p->way == CRASHES_ON_ARRIVAL)
        *nowhere = 1;
    if (p->way == EXITS_ON_ARRIVAL)
        exit(0);
    return ifl_send(fleet->n);
}

static const struct ifl_batching_ops batching_ops = {plan};
static const struct ifl_admit_ops admit_ops = {.ask = ask};
static const struct ifl_preempt_ops preempt_ops = {.pick = pick_victim};
static const struct ifl_route_ops route_ops = {.pick = pick};

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
    .ops.admit = &admit_ops,
};
static const struct ifl_policy preempt = {
    .kind = IFL_PREEMPT,
    .name = "hostile",
    .doc = "asks when asked",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct hostile),
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

const struct ifl_policy_list ifl_policies_v3 = {
    IFL_POLICY_ABI, sizeof(struct ifl_policy), 4, {&batching, &admit, &preempt, &route}};
