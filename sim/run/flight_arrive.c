/* Arrivals of a flight: each is refused, sent to a replica, held at the gateway, or dropped. */
#include "run/flight_loop.h"

/* Whether a pool takes a request: if not, why, in the order in which it is asked. */
enum answer { UNSERVED, BEYOND_MODEL, BEYOND_POOL, DOOR_CLOSED, TAKEN };

/* vllm/v1/engine/async_llm.py, check_admission (v0.33): the server knows what it has let in and
 * what it has answered, not how far a prompt is. */
static bool door_is_closed(const struct flight *flight, const struct fleet_pool *pool,
                           const struct arrival *a)
{
    const struct door *door = &pool->door;
    int64_t n_seqs = a->said.samples, n_tokens = 0;
    if (door->max_queued_reqs == 0 && door->max_queued_tokens == 0)
        return false;
    for (uint32_t i = pool->first; i < pool->first + pool->n; i++) {
        n_seqs += flight->replicas[i].here.n_seqs_here;
        n_tokens += flight->replicas[i].here.n_unanswered_tokens;
    }
    return (door->max_queued_reqs > 0 && n_seqs > door->max_queued_reqs) ||
           (door->max_queued_tokens > 0 && n_tokens >= door->max_queued_tokens);
}

static enum answer answer_of(enum replica_fit fit)
{
    static const enum answer of[] = {[REPLICA_FITS] = TAKEN,
                                     [REPLICA_BEYOND_MODEL] = BEYOND_MODEL,
                                     [REPLICA_BEYOND_POOL] = BEYOND_POOL};
    return of[fit];
}

/* Where a replica is for prompts alone, the rest is computed elsewhere. */
static enum replica_fit fit_of(const struct replica *replica, const struct fleet_pool *pool,
                               const struct arrival *a)
{
    const enum replica_fit whole = replica_fit(replica, a);
    if (whole == REPLICA_FITS || fleet_pool_roles(pool) != IFL_PREFILLS)
        return whole;
    struct arrival prompt = *a;
    prompt.n_output = 1;
    return replica_fit(replica, &prompt);
}

/* A request that is longer than the model or the K/V pool could never finish. `enters`: it is at no
 * replica yet, and comes to the door. */
static enum answer ask_pool(const struct flight *flight, const struct fleet_pool *pool,
                            const struct arrival *a, bool enters)
{
    if (pool->n == 0 || (a->said.model > 0 && pool->model > 0 && a->said.model != pool->model))
        return UNSERVED;
    const enum answer answer = answer_of(fit_of(&flight->replicas[pool->first], pool, a));
    return answer == TAKEN && enters && door_is_closed(flight, pool, a) ? DOOR_CLOSED : answer;
}

/* Opens the pools of which `taken` has the bit to the router, and no other. Most requests may have
 * the same ones. */
static void open_pools(struct loop *loop, uint64_t taken)
{
    if (taken > 0 && taken == loop->open_pools)
        return;
    loop->open_pools = taken;
    routing_close_all(&loop->routing);
    for (size_t i = 0; i < loop->flight->n_pools; i++)
        if (taken >> i & 1)
            routing_open(&loop->routing, i);
}

/* Opens the pools that take the request to the router. The answer of the one that comes furthest;
 * where pools have roles, of the role that comes less far. */
IFL_APART static enum answer ask_each_pool(struct loop *loop, const struct arrival *a, bool enters)
{
    const struct flight *flight = loop->flight;
    ifl_assert(flight->n_pools <= 64);
    enum answer furthest[] = {[IFL_PREFILLS] = UNSERVED, [IFL_DECODES] = UNSERVED};
    uint64_t taken = 0;
    for (size_t i = 0; i < flight->n_pools; i++) {
        const enum answer answer = ask_pool(flight, &flight->pools[i], a, enters);
        const unsigned roles = fleet_pool_roles(&flight->pools[i]);
        if (answer == TAKEN)
            taken |= UINT64_C(1) << i;
        for (unsigned role = IFL_PREFILLS; role <= IFL_DECODES; role <<= 1)
            if (roles & role)
                furthest[role] = ifl_max(furthest[role], answer);
    }
    open_pools(loop, taken);
    return ifl_min(furthest[IFL_PREFILLS], furthest[IFL_DECODES]);
}

bool loop_has_one_pool(const struct flight *flight)
{
    const struct fleet_pool *pool = flight->pools;
    const bool any_model = pool->model == 0 || !flight->workload->trace->model;
    return flight->n_pools == 1 && pool->n > 0 && any_model &&
           fleet_pool_roles(pool) == (IFL_PREFILLS | IFL_DECODES) &&
           pool->door.max_queued_reqs == 0 && pool->door.max_queued_tokens == 0;
}

/* A single pool was opened to the router for good. */
static enum answer ask_pools(struct loop *loop, const struct arrival *a, bool enters)
{
    return IFL_RARE(!loop->one_pool) ? ask_each_pool(loop, a, enters)
                                     : answer_of(replica_fit(loop->flight->replicas, a));
}

void loop_open_pools(struct loop *loop, const struct arrival *a)
{
    ask_pools(loop, a, false);
}

static void note_beyond(struct flight_rejections *rejected, const struct arrival *a)
{
    const int32_t least = rejected->least_prompt_tokens;
    rejected->least_prompt_tokens = least > 0 ? ifl_min(least, a->n_prompt) : a->n_prompt;
}

static bool is_turned_away(struct loop *loop, const struct arrival *a, enum ifl_status *status)
{
    struct flight_rejections *rejected = &loop->flight->rejected;
    const enum answer answer = ask_pools(loop, a, true);
    if (!IFL_RARE(answer != TAKEN))
        return false;
    rejected->n_unserved += answer == UNSERVED;
    rejected->n_beyond_model += answer == BEYOND_MODEL;
    rejected->n_beyond_pool += answer == BEYOND_POOL;
    rejected->n_at_door += answer == DOOR_CLOSED;
    if (answer == BEYOND_MODEL || answer == BEYOND_POOL)
        note_beyond(rejected, a);
    *status = answer == DOOR_CLOSED ? IFL_SHED : IFL_REJECTED;
    return true;
}

int loop_turn_away(struct loop *loop, const struct arrival *a, int64_t now_ns,
                   enum ifl_status status, struct ifl_error *error)
{
    struct flight *flight = loop->flight;
    const struct ifl_request_record record = {
        .request_id = workload_id(flight->workload, a->row, a->attempt),
        .serial = a->serial,
        .arrival_ns = a->sent_ns,
        .first_scheduled_ns = IFL_NEVER,
        .first_token_ns = IFL_NEVER,
        .finish_ns = IFL_NEVER,
        .max_itl_ns = -1,
        .ttft_slo_ns = a->said.ttft_slo_ns,
        .tpot_slo_ns = a->said.tpot_slo_ns,
        .prompt_tokens = a->n_prompt,
        .replica = -1,
        .is_retry = workload_is_retry(flight->workload, a->row, a->attempt),
        .client = a->said.client,
        .adapter = a->said.adapter,
        .status = status,
        .left_ns = now_ns,
    };
    loop_count_ended(loop, 1);
    const int rc = ifl_record_request(flight->recorder, &record, error);
    outside_tell_end(flight, a->row, &record, now_ns);
    return rc < 0 ? rc
                  : workload_ended(flight->workload, a->row, a->serial, a->attempt, status, now_ns,
                                   error);
}

/* SGLang (managers/scheduler.py, _abort_on_queued_limit, v0.5.23): where more would wait than may,
 * the arrival goes, or by priorities the worst. */
IFL_APART static int shed_beyond_queue(struct loop *loop, const struct door *door,
                                       struct replica *replica, struct live_request *arrived,
                                       int64_t now_ns, struct ifl_error *error)
{
    if (replica->here.waiting.n <= (size_t)door->max_waiting_reqs)
        return 0;
    struct live_request *one =
        door->shed == SHED_WORST ? replica_worst_waiting(replica, arrived) : arrived;
    const int64_t loop_ns = loop->now_ns; /* which is later, where steps are seen ahead */
    loop->flight->n_beyond_queue++;
    replica_leave(replica, one, IFL_SHED, now_ns);
    loop->now_ns = now_ns;
    const int rc = loop_report_gone(loop, replica, error);
    loop->now_ns = loop_ns;
    routing_note(&loop->routing, replica, now_ns);
    return rc;
}

/* Of the engines that share the pipeline of that replica, whichever of them the router said. */
IFL_APART static uint32_t least_busy_engine(const struct flight *flight, uint32_t number)
{
    const struct fleet_pool *pool = flight->pools;
    while (number - pool->first >= pool->n)
        pool++;
    const uint32_t n_engines = ifl_max(pool->n_engines, 1);
    const uint32_t first = number - (number - pool->first) % n_engines;
    uint32_t least = first;
    for (uint32_t i = first + 1; i < first + n_engines; i++)
        if (replica_requests(&flight->replicas[i]) < replica_requests(&flight->replicas[least]))
            least = i;
    return least;
}

/* Whether the replica can do with it is asked later. */
IFL_HOT static int mail_to(struct loop *loop, uint32_t number, const struct arrival *a,
                           struct ifl_error *error)
{
    if (apart_post(loop, number, a, error) < 0)
        return error->code;
    routing_note_sent(&loop->routing, number);
    routing_tell_sent(&loop->routing, a, number, a->at_ns);
    return error->code < 0 ? error->code : 0; /* the router may have looked at a replica */
}

IFL_HOT static int send_to(struct loop *loop, uint32_t number, const struct arrival *a,
                           int64_t now_ns, struct ifl_error *error)
{
    if (IFL_RARE(loop->shares_pipelines))
        number = least_busy_engine(loop->flight, number);
    struct replica *replica = &loop->flight->replicas[number];
    const struct door *door = &loop->flight->pools[loop->routing.loads[number].pool].door;
    struct live_request *r;
    enum ifl_status as;
    const bool departs = arrival_leaves_ns(a, &as) != IFL_NEVER || loop->places;
    const bool prefetches = replica->tiers.prefetches, sheds = door->max_waiting_reqs > 0;
    const bool pinned = departs || sheds || prefetches;
    if (IFL_RARE(loop->lone != NULL) && !pinned && apart_takes_mail(loop))
        return mail_to(loop, number, a, error);
    int rc = IFL_RARE(loop->lone != NULL) ? apart_take_news(loop, error) : 0;
    if (rc == 0)
        rc = loop_bring(loop, number, now_ns, error);
    if (rc == 0)
        rc = replica_join(replica, a, now_ns, pinned ? &r : NULL, error);
    if (IFL_RARE(prefetches) && rc == 0)
        rc = tiering_hear_join(loop->tiering, replica, r, error);
    if (IFL_RARE(departs) && rc == 0)
        rc = loop_note_departure(loop, a, number, r, error);
    routing_note_sent(&loop->routing, number);
    loop_fall_due(loop, replica);
    routing_note(&loop->routing, replica, now_ns);
    routing_tell_sent(&loop->routing, a, number, now_ns);
    return IFL_RARE(sheds) && rc == 0 ? shed_beyond_queue(loop, door, replica, r, now_ns, error)
                                      : rc;
}

/* How much of its prompt is to be computed orders it among those that are held. */
static int count_to_compute(struct loop *loop, struct arrival *a, int64_t now_ns,
                            struct ifl_error *error)
{
    const struct gateway *gateway = &loop->flight->gateway;
    if (gateway->order != GATEWAY_SHORTEST && gateway->classes.n == 0)
        return 0;
    const int32_t n = routing_to_compute(&loop->routing, a, now_ns, error);
    a->n_to_compute = n;
    return ifl_min(n, 0);
}

/* again: the request was held before. */
IFL_APART static int hold(struct loop *loop, struct arrival *a, bool again, int64_t now_ns,
                          struct ifl_error *error)
{
    if (!again && count_to_compute(loop, a, now_ns, error) < 0)
        return error->code;
    if (!again && routing_is_full(&loop->routing, a)) {
        loop->flight->rejected.n_beyond_gateway++;
        return loop_turn_away(loop, a, now_ns, IFL_SHED, error);
    }
    int rc = loop->lone ? apart_land(loop, error) : 0;
    if (rc == 0)
        rc = routing_hold(&loop->routing, a, error);
    return rc < 0 || again ? rc : loop_note_departure(loop, a, 0, NULL, error);
}

IFL_APART static int shed(struct loop *loop, const struct arrival *a, int64_t now_ns,
                          const char *why, struct ifl_error *error)
{
    routing_note_shed(&loop->routing, why);
    return loop_turn_away(loop, a, now_ns, IFL_SHED, error);
}

/* As the gateway and the router say. */
IFL_APART static int route(struct loop *loop, struct arrival *a, bool again, int64_t now_ns,
                           struct ifl_error *error)
{
    struct ifl_route route;
    if (routing_saturated(&loop->routing, now_ns))
        return hold(loop, a, again, now_ns, error);
    const int rc = routing_ask(&loop->routing, a, now_ns, &route, error);
    if (rc < 0)
        return rc;
    if (route.what == IFL_HOLD)
        return hold(loop, a, again, now_ns, error);
    if (route.what != IFL_SEND)
        return shed(loop, a, now_ns, route.why, error);
    if (routing_too_late(&loop->routing, a, route.prefill, now_ns)) {
        loop->flight->rejected.n_too_late++;
        return loop_turn_away(loop, a, now_ns, IFL_SHED, error);
    }
    return loop->moves && route.prefill != route.decode
               ? moves_send(loop->moves, (uint32_t)route.prefill, (uint32_t)route.decode, a, now_ns,
                            error)
               : send_to(loop, (uint32_t)route.prefill, a, now_ns, error);
}

IFL_HOT static int dispatch(struct loop *loop, struct arrival *a, bool again, int64_t now_ns,
                            struct ifl_error *error)
{
    return loop->routing.router ? route(loop, a, again, now_ns, error)
                                : send_to(loop, 0, a, now_ns, error);
}

IFL_HOT int loop_let_one_arrive(struct loop *loop, struct ifl_error *error)
{
    struct flight *flight = loop->flight;
    struct arrival a;
    enum ifl_status status;
    if (workload_enters_front(flight->workload))
        return 0;
    if (IFL_RARE(!workload_take(flight->workload, &a))) {
        arrival_leaves_ns(&a, &status);
        return loop_turn_away(loop, &a, a.at_ns, status, error);
    }
    return is_turned_away(loop, &a, &status) ? loop_turn_away(loop, &a, a.at_ns, status, error)
                                             : dispatch(loop, &a, false, a.at_ns, error);
}

/* True if the answer is the same for all that are held: they may have the same replicas, and these
 * are saturated. */
static bool gateway_is_shut(struct loop *loop)
{
    if (loop->flight->n_pools > 1 || !loop->flight->gateway.hold)
        return false;
    open_pools(loop, 1);
    return routing_saturated(&loop->routing, loop->now_ns);
}

/* Of a request that was held. Where all doors are closed it stays, as it was let in before. */
static int ask_again(struct loop *loop, struct arrival *a, struct ifl_error *error)
{
    return ask_pools(loop, a, true) == TAKEN ? dispatch(loop, a, true, loop->now_ns, error)
                                             : hold(loop, a, true, loop->now_ns, error);
}

/* Whether the first request of the class may go, by its tokens: what turns_next is told. */
static int ask_head(struct loop *loop, int class_of, int64_t *tokens, struct ifl_error *error)
{
    struct routing *routing = &loop->routing;
    const size_t at = routing_head(routing, class_of);
    struct ifl_route route;
    *tokens = 0;
    if (at == routing->n_held)
        return 0;
    struct arrival a = routing->held[at];
    if (ask_pools(loop, &a, true) != TAKEN || routing_saturated(routing, loop->now_ns))
        return 0;
    if (routing_ask(routing, &a, loop->now_ns, &route, error) < 0)
        return error->code;
    *tokens = route.what == IFL_HOLD ? 0 : a.n_to_compute;
    return 0;
}

static int let_head_go(struct loop *loop, int class_of, struct ifl_error *error)
{
    struct routing *routing = &loop->routing;
    struct arrival a = routing->held[routing_head(routing, class_of)];
    turns_spend(&routing->turns, &routing->gateway.classes, class_of, a.n_to_compute);
    routing_give_up_held(routing, a.serial, &a);
    return ask_again(loop, &a, error);
}

/* The classes take turns; of each, the first is asked about alone. */
static int ask_classes(struct loop *loop, struct ifl_error *error)
{
    const struct classes *classes = &loop->flight->gateway.classes;
    int64_t tokens[CLASSES_MOST];
    int rc = 0;
    for (int next = 0; rc == 0 && next != NO_CLASS;) {
        for (int i = 0; rc == 0 && i < classes->n; i++)
            rc = ask_head(loop, i, &tokens[i], error);
        next = rc == 0 ? turns_next(&loop->routing.turns, classes, tokens) : NO_CLASS;
        if (next != NO_CLASS)
            rc = let_head_go(loop, next, error);
    }
    return rc;
}

int loop_ask_held(struct loop *loop, struct ifl_error *error)
{
    struct routing *routing = &loop->routing;
    const size_t first = routing->first_held, n = routing->n_held;
    int rc = 0;
    loop->asks_held = false;
    if (gateway_is_shut(loop))
        return 0;
    if (loop->flight->gateway.classes.n > 0)
        return ask_classes(loop, error);
    routing->first_held = routing->n_held = 0;
    for (size_t i = first; i < n && rc == 0; i++) {
        struct arrival a = routing->held[i];
        rc = ask_again(loop, &a, error);
    }
    return rc;
}

int loop_give_up_held(struct loop *loop, struct ifl_error *error)
{
    struct routing *routing = &loop->routing;
    if (!routing_holds(routing))
        return 0;
    const struct arrival a = routing->held[routing->first_held++];
    const int rc =
        shed(loop, &a, loop->now_ns, "it holds it back, and no request is left to wait for", error);
    return rc < 0 ? rc : 1;
}
