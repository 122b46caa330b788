/* Out-of-tree routers: one that holds requests back and drops some, one that keeps its own count of
 * requests at each replica, and others that ask for what this version does not give a router. */
#include <inflight/policy.h>

struct gate {
    int32_t max_outstanding; /* at each replica */
    int32_t max_prompt_tokens;
    int32_t max_waiting; /* at each replica; 0: outstanding requests count */
};

static const struct ifl_param params[] = {
    {"max_outstanding", IFL_INT, offsetof(struct gate, max_outstanding), 1, 0, 1 << 20, NULL,
     "requests", "a replica with so many gets no other"},
    {"max_prompt_tokens", IFL_INT, offsetof(struct gate, max_prompt_tokens), 1000, 1, 1 << 20, NULL,
     "tokens", "longer prompts are dropped"},
    {"max_waiting", IFL_INT, offsetof(struct gate, max_waiting), 0, 0, 1 << 20, NULL, "requests",
     "a replica where so many wait gets no other"},
};

static struct ifl_route gate(const void *self, const struct ifl_fleet *fleet)
{
    const struct gate *p = self;
    const size_t i = ifl_least(fleet, IFL_PREFILLS);
    if (fleet->request->n_prompt > p->max_prompt_tokens)
        return ifl_shed("the prompt is too long");
    const struct ifl_load *load = ifl_load_of(fleet, i);
    const bool is_open = p->max_waiting > 0 ? load->n_waiting < p->max_waiting
                                            : ifl_outstanding(load) < p->max_outstanding;
    return is_open ? ifl_send(i) : ifl_hold_back();
}

/* Replicas take turns; a request waits while the next one is full. No other one is looked at. */
static struct ifl_route gate_in_turn(const void *self, const struct ifl_fleet *fleet)
{
    const struct gate *p = self;
    const size_t k = (size_t)(fleet->n_routed % ifl_up(fleet, IFL_PREFILLS));
    const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
    if (fleet->request->n_prompt <= p->max_prompt_tokens)
        return ifl_send(i);
    return ifl_outstanding_and_sent(ifl_load_of(fleet, i)) < p->max_outstanding ? ifl_send(i)
                                                                                : ifl_hold_back();
}

/* A router's own count of the requests of a replica, from its hooks. It leaves a word on each
 * request; where the word is not what was left, the count is far off, and the routes differ. */
enum { FAR_OFF = 1000 };

static uint64_t word(const struct ifl_fleet *fleet, uint64_t stage)
{
    return 4 * fleet->request->serial + stage;
}

struct own_count {
    int32_t n_here, n_first_tokens;
};

static struct ifl_route least_by_own_count(const void *self, const struct ifl_fleet *fleet)
{
    size_t best = 0;
    if (ifl_n_replicas(self) != fleet->n || *fleet->note != 0)
        return ifl_shed("it knows another number of replicas, or has left a word already");
    *fleet->note = word(fleet, 1);
    for (size_t i = 1; i < fleet->n; i++)
        if (((struct own_count *)ifl_at(self, i))->n_here <
            ((struct own_count *)ifl_at(self, best))->n_here)
            best = i;
    return ifl_send(best);
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct own_count *own = ifl_at(self, replica);
    own->n_here += *fleet->note == word(fleet, 1) ? 1 : FAR_OFF;
}

static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct own_count *own = ifl_at(self, replica);
    if (fleet->request->first_token_ns == fleet->now_ns && *fleet->note == word(fleet, 1))
        own->n_first_tokens++;
    *fleet->note = word(fleet, 2);
}

/* Each request has exactly one first token before its end; otherwise it would be counted twice, and
 * the routes would differ. */
static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct own_count *own = ifl_at(self, replica);
    own->n_here -= own->n_first_tokens-- > 0 && *fleet->note == word(fleet, 2) ? 1 : 2;
}

/* The times of what a router hears never go back. */
struct clock {
    int64_t last_ns;
    int32_t n_back;
};

static void tick(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    struct clock *clock = ifl_at(self, 0);
    (void)replica;
    clock->n_back += fleet->now_ns < clock->last_ns;
    clock->last_ns = fleet->now_ns;
}

static struct ifl_route in_time(const void *self, const struct ifl_fleet *fleet)
{
    const struct clock *clock = ifl_at(self, 0);
    return clock->n_back > 0
               ? ifl_shed("time went back")
               : ifl_send_pair(ifl_least(fleet, IFL_PREFILLS), ifl_least(fleet, IFL_DECODES));
}

/* An exact load is of now. */
static struct ifl_route while_dated(const void *self, const struct ifl_fleet *fleet)
{
    const size_t i = ifl_least(fleet, IFL_PREFILLS);
    (void)self;
    return ifl_load_of(fleet, i)->taken_ns == fleet->now_ns ? ifl_send(i) : ifl_shed("it is old");
}

static int64_t balance(void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    return fleet->now_ns + 1;
}

static int32_t want(void *self, const struct ifl_fleet *fleet, int64_t *again_ns)
{
    (void)self;
    *again_ns = fleet->now_ns + 1;
    return 1;
}

static const struct ifl_route_ops gate_ops = {.pick = gate};
static const struct ifl_route_ops turn_ops = {.pick = gate_in_turn};
static const struct ifl_route_ops own_ops = {
    .pick = least_by_own_count,
    .on_sent = on_sent,
    .on_first_token = on_first_token,
    .on_end = on_end,
};
static const struct ifl_route_ops dated_ops = {.pick = while_dated};
static const struct ifl_route_ops clock_ops = {
    .pick = in_time, .on_sent = tick, .on_first_token = tick, .on_end = tick};
static const struct ifl_route_ops balance_ops = {.pick = gate, .balance = balance};
static const struct ifl_scale_ops scale_ops = {.want = want};

static const struct ifl_policy gate_policy = {
    .kind = IFL_ROUTE,
    .name = "gate",
    .doc = "holds requests back while each replica is full",
    .params = params,
    .n_params = 3,
    .params_bytes = sizeof(struct gate),
    .ops.route = &gate_ops,
};
static const struct ifl_policy turn_policy = {
    .kind = IFL_ROUTE,
    .name = "gate-in-turn",
    .doc = "holds long prompts back while the replica whose turn it is is full",
    .params = params,
    .n_params = 3,
    .params_bytes = sizeof(struct gate),
    .ops.route = &turn_ops,
};
static const struct ifl_policy own_policy = {
    .kind = IFL_ROUTE,
    .name = "own-count",
    .doc = "fewest outstanding, counted by itself",
    .replica_bytes = sizeof(struct own_count),
    .ops.route = &own_ops,
};

static const struct ifl_policy clock_policy = {
    .kind = IFL_ROUTE,
    .name = "in-time",
    .doc = "the least prompts, while no time goes back",
    .replica_bytes = sizeof(struct clock),
    .ops.route = &clock_ops,
};

static const struct ifl_policy dated_policy = {
    .kind = IFL_ROUTE,
    .name = "while-dated",
    .doc = "the least requests, while loads are of now",
    .ops.route = &dated_ops,
};

#if defined(ASKS_FOR_HOOK)
static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)self;
    (void)view;
    (void)r;
}
static const struct ifl_policy later = {.kind = IFL_ROUTE,
                                        .name = "later",
                                        .doc = "hears nothing",
                                        .on_join = on_join,
                                        .ops.route = &gate_ops};
#elif defined(ASKS_FOR_PARTS)
static const struct ifl_policy later = {.kind = IFL_ROUTE,
                                        .name = "later",
                                        .doc = "keeps a part of each request",
                                        .request_bytes = 8,
                                        .ops.route = &gate_ops};
#elif defined(ASKS_FOR_REPLICAS)
static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *block)
{
    (void)self;
    (void)view;
    (void)block;
    return 0;
}
static const struct ifl_evict_ops evict_ops = {.key = key};
static const struct ifl_policy later = {.kind = IFL_EVICT,
                                        .name = "later",
                                        .doc = "keeps a part of each replica",
                                        .replica_bytes = 8,
                                        .ops.evict = &evict_ops};
#elif defined(ASKS_FOR_PARAMS)
static const struct ifl_policy later = {.kind = IFL_ROUTE,
                                        .name = "later",
                                        .doc = "forgets n_params",
                                        .params = params,
                                        .params_bytes = sizeof(struct gate),
                                        .ops.route = &gate_ops};
#elif defined(ASKS_FOR_BALANCE)
static const struct ifl_policy later = {
    .kind = IFL_ROUTE, .name = "later", .doc = "moves requests", .ops.route = &balance_ops};
#else
static const struct ifl_policy later = {
    .kind = IFL_SCALE, .name = "later", .doc = "scales", .ops.scale = &scale_ops};
#endif

#ifdef ASKS_FOR_LATER
IFL_POLICIES(&gate_policy, &turn_policy, &own_policy, &clock_policy, &dated_policy, &later);
#else
IFL_POLICIES(&gate_policy, &turn_policy, &own_policy, &clock_policy, &dated_policy);
#endif
