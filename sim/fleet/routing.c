#include "fleet/routing.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/random.h"

#include "base/fingerprint.h"
#include "replica/warm.h"

enum { FEW_LOOKS = 4 };

/* ---- what the fleet answers ---- */

static struct routing *routing_of(const struct ifl_fleet *fleet)
{
    return ((const struct routing_fleet *)(const void *)fleet)->routing;
}

static void describe(const struct replica *replica, int64_t now_ns, struct ifl_load *load)
{
    load->n_running = (int32_t)(replica->here.running.n - replica->leaving.n_ended);
    load->n_waiting = (int32_t)replica->here.waiting.n;
    load->n_swapped = (int32_t)replica->here.n_swapped;
    load->n_free_blocks = replica->kv.device.n_free;
    load->n_moving = replica->moving.n_coming;
    load->n_waiting_tokens = replica->here.waiting.n_tokens;
    load->taken_ns = now_ns;
}

/* The index of the replica that a router asks about. There is none of that number: it asks about
 * the first, and the run ends with the router's name. */
static size_t asked_about(struct routing *routing, size_t i)
{
    if (!IFL_RARE(i >= routing->n))
        return i;
    if (routing->breach.code == 0)
        ifl_fail(&routing->breach, IFL_E_POLICY,
                 "route policy %s broke its contract at %.9f s: it asks about replica %lld of %u",
                 routing->router->policy->name, ifl_s_from_ns(routing->fleet.pub.now_ns),
                 (long long)i, (unsigned)routing->n);
    return 0;
}

/* The replica comes to the time of the question, and the loop notes its load. */
static void bring(struct routing *routing, uint32_t i, enum routing_look look)
{
    if (routing->bring && routing->asked->code >= 0)
        routing->bring(routing->bring_context, i, look, routing->asked);
}

/* An exact report is of now, whenever the load was noted. */
static void date(const struct routing *routing, struct ifl_load *load)
{
    if (!news_are_old(&routing->news))
        load->taken_ns = routing->fleet.pub.now_ns;
}

static const struct ifl_load *load_of(const struct ifl_fleet *fleet, size_t i)
{
    struct routing *routing = routing_of(fleet);
    const size_t at = asked_about(routing, i);
    routing->n_looks++;
    bring(routing, (uint32_t)at, LOOKS_AT_LOAD);
    date(routing, &routing->loads[at]);
    return &routing->loads[at];
}

static struct ifl_load_counts counts_of(const struct ifl_fleet *fleet, size_t i)
{
    struct routing *routing = routing_of(fleet);
    const size_t at = asked_about(routing, i);
    const struct ifl_load *load = &routing->loads[at];
    routing->n_looks++;
    bring(routing, (uint32_t)at, LOOKS_AT_COUNTS);
    return (struct ifl_load_counts){ifl_outstanding_and_sent(load), load->n_routed};
}

/* A router that looks at few replicas is likely to look at those that it asks the numbers of. */
static void warm(const struct routing *routing, uint32_t i)
{
    if (routing->bring && routing->looks_at_few)
        replica_warm(&routing->replicas[i]);
}

/* Every replica is up. */
static size_t nth(const struct ifl_fleet *fleet, unsigned roles, size_t k)
{
    const struct routing *routing = routing_of(fleet);
    for (size_t i = 0; i < routing->n_open; i++) {
        if ((routing->open[i].roles & roles) != roles)
            continue;
        if (k < routing->open[i].n) {
            warm(routing, routing->open[i].first + (uint32_t)k);
            return routing->open[i].first + k;
        }
        k -= routing->open[i].n;
    }
    return fleet->n;
}

static size_t up(const struct ifl_fleet *fleet, unsigned roles)
{
    ifl_assert(roles < 4);
    return routing_of(fleet)->n_open_of[roles & 3];
}

/* Of the replicas that may get the request. */
static size_t first_by(const struct ifl_fleet *fleet, unsigned roles, enum least_by by)
{
    struct routing *routing = routing_of(fleet);
    struct least *first = &routing->first[by];
    size_t best = fleet->n;
    bring(routing, ROUTING_ALL, LOOKS_AT_COUNTS);
    if (!least_is_kept(first) && least_create(first, by, routing->loads, routing->n) < 0 &&
        routing->asked->code >= 0)
        ifl_fail_nomem(routing->asked);
    if (routing->asked->code < 0)
        return 0;
    for (size_t s = 0; s < routing->n_open; s++) {
        const struct routing_span span = routing->open[s];
        if ((span.roles & roles) != roles || span.n == 0)
            continue;
        const uint32_t own = least_of(first, span.first, span.first + span.n);
        if (best == fleet->n || least_goes_before(first, own, (uint32_t)best))
            best = own;
    }
    return best;
}

static size_t least(const struct ifl_fleet *fleet, unsigned roles)
{
    return first_by(fleet, roles, LEAST_REQUESTS);
}

static size_t most(const struct ifl_fleet *fleet, unsigned roles)
{
    return first_by(fleet, roles, MOST_REQUESTS);
}

static size_t least_routed(const struct ifl_fleet *fleet, unsigned roles)
{
    return first_by(fleet, roles, LEAST_ROUTED);
}

/* What they hold is known as it is, however old the news of their loads. False: they never hold
 * anything, so that none need come; or the question has failed. */
static bool bring_caches(struct routing *routing)
{
    struct holders *holders = &routing->holders;
    if (routing->asked->code >= 0 && !holders_are_open(holders) &&
        holders_open(holders, routing->replicas, routing->n) < 0)
        ifl_fail_nomem(routing->asked);
    if (routing->asked->code < 0 || holders->n_caches == 0)
        return false;
    if (news_are_old(&routing->news))
        for (uint32_t i = 0; i < routing->n; i++)
            bring(routing, i, LOOKS_AT_CACHE);
    else
        bring(routing, ROUTING_ALL, LOOKS_AT_CACHE);
    if (holders->lacks_memory && routing->asked->code >= 0)
        ifl_fail_nomem(routing->asked);
    return routing->asked->code >= 0;
}

static size_t longest(const struct ifl_fleet *fleet, unsigned roles, int32_t *n_tokens)
{
    struct routing *routing = routing_of(fleet);
    size_t best = fleet->n;
    *n_tokens = 0;
    if (!bring_caches(routing) || fleet->request != &routing->probe.pub)
        return fleet->n;
    for (size_t s = 0; s < routing->n_open; s++) {
        const struct routing_span span = routing->open[s];
        int32_t n = 0;
        if ((span.roles & roles) != roles || span.n == 0)
            continue;
        const uint32_t own =
            holders_longest(&routing->holders, span.first, span.n, &routing->probe, &n);
        best = n > *n_tokens ? own : best;
        *n_tokens = ifl_max(n, *n_tokens);
    }
    return best;
}

static int32_t cached_tokens(const struct ifl_fleet *fleet, size_t i)
{
    struct routing *routing = routing_of(fleet);
    const size_t at = asked_about(routing, i);
    if (!routing->replicas[at].kv.device.cached)
        return 0;
    bring(routing, (uint32_t)at, LOOKS_AT_CACHE);
    return fleet->request == &routing->probe.pub
               ? replica_hit_tokens(&routing->replicas[at], &routing->probe)
               : 0;
}

static uint64_t draw(const struct ifl_fleet *fleet, uint32_t index)
{
    return ifl_draw(routing_of(fleet)->seed, IFL_DRAW_ROUTE, fleet->request->serial, index);
}

/* No router that would move a running request is loaded: cluster.migration does. */
static const struct ifl_fleet_ops fleet_ops = {
    .size_bytes = sizeof(struct ifl_fleet_ops),
    .load = load_of,
    .nth = nth,
    .up = up,
    .least = least,
    .cached = cached_tokens,
    .draw = draw,
    .counts = counts_of,
    .most = most,
    .least_routed = least_routed,
    .longest = longest,
};

/* ---- creating ---- */

static void open_all(struct routing *routing)
{
    routing_close_all(routing);
    for (size_t i = 0; i < routing->n_pools; i++)
        routing_open(routing, i);
}

static void describe_all(struct routing *routing)
{
    for (size_t p = 0; p < routing->n_pools; p++) {
        const struct fleet_pool *pool = &routing->pools[p];
        for (uint32_t i = pool->first; i < pool->first + pool->n; i++) {
            struct ifl_load *load = &routing->loads[i];
            load->limits = &routing->replicas[i].fixed.limits;
            load->roles = fleet_pool_roles(pool);
            load->pool = (uint32_t)p;
            describe(&routing->replicas[i], 0, load);
        }
    }
}

int routing_create(struct routing *routing, const struct routing_options *options,
                   struct ifl_error *error)
{
    const uint32_t n = options->n;
    ifl_require(n == 1 || options->router);
    *routing = (struct routing){.replicas = options->replicas,
                                .n = n,
                                .pools = options->pools,
                                .n_pools = options->n_pools,
                                .router = options->router,
                                .gateway = options->gateway,
                                .kv_frac = routing_as_written(options->gateway.kv_frac),
                                .hands_over = options->hands_over,
                                .checks = options->checks,
                                .seed = options->seed};
    routing->fleet.routing = routing;
    routing->fleet.pub = (struct ifl_fleet){.ops = &fleet_ops, .n = n};
    routing->loads = calloc(n, sizeof *routing->loads);
    routing->open = calloc(options->n_pools, sizeof *routing->open);
    if (!routing->loads || !routing->open)
        return ifl_fail_nomem(error);
    describe_all(routing);
    open_all(routing);
    news_create(&routing->news, &options->news, n);
    return 0;
}

void routing_destroy(struct routing *routing)
{
    news_destroy(&routing->news);
    for (int by = 0; by < N_LEAST; by++)
        least_destroy(&routing->first[by]);
    holders_close(&routing->holders);
    free(routing->loads);
    free(routing->open);
    free(routing->held);
    *routing = (struct routing){0};
}

static void note_changed(struct routing *routing, uint32_t replica)
{
    for (int by = 0; by < N_LEAST; by++)
        if (least_is_kept(&routing->first[by]))
            least_note(&routing->first[by], replica);
}

void routing_count_taken(struct routing *routing, uint32_t replica)
{
    routing->loads[replica].n_routed++;
    routing->loads[replica].n_sent += news_are_old(&routing->news);
    note_changed(routing, replica);
}

void routing_note_mailed(struct routing *routing, uint32_t replica)
{
    if (news_are_old(&routing->news))
        return;
    routing->loads[replica].n_waiting++;
    note_changed(routing, replica);
}

void routing_hear_one(struct routing *routing, const struct replica *replica, uint32_t n_sent)
{
    ifl_assert(news_are_old(&routing->news));
    const uint32_t number = replica->fixed.number;
    struct ifl_load *load = &routing->loads[number];
    describe(replica, load->taken_ns, load);
    load->n_sent = n_sent;
    note_changed(routing, number);
}

IFL_APART void routing_note_load(struct routing *routing, const struct replica *replica,
                                 int64_t now_ns)
{
    ifl_assert(replica == &routing->replicas[replica->fixed.number]);
    const uint32_t number = replica->fixed.number;
    const bool old = news_are_old(&routing->news);
    struct ifl_load *load = old ? &routing->news.live[number] : &routing->loads[number];
    const int64_t n_before = ifl_outstanding_and_sent(load);
    describe(replica, now_ns, load);
    load->n_routed = routing->loads[number].n_routed;
    if (old)
        news_note(&routing->news, now_ns);
    else if (ifl_outstanding_and_sent(load) != n_before)
        note_changed(routing, number);
}

/* ---- asking ---- */

/* The fleet as it is now, and a request that is at no replica. */
static const struct ifl_fleet *show(struct routing *routing, const struct arrival *arrival,
                                    int64_t now_ns)
{
    memset(&routing->probe, 0, offsetof(struct live_request, own)); /* nothing is its own */
    live_describe(&routing->probe, arrival);
    routing->fleet.pub.now_ns = now_ns;
    routing->fleet.pub.n_routed = routing->n_routed;
    routing->fleet.pub.request = &routing->probe.pub;
    routing->fleet.pub.note = &routing->note;
    routing->note = arrival->note;
    return &routing->fleet.pub;
}

static bool is_open(const struct routing *routing, size_t replica)
{
    for (size_t i = 0; i < routing->n_open; i++)
        if (replica - routing->open[i].first < routing->open[i].n)
            return true;
    return false;
}

static int check_roles(const struct routing *routing, const struct ifl_route *route,
                       struct ifl_error *error)
{
    const char *name = routing->router->policy->name;
    const unsigned of_prefill = routing->loads[route->prefill].roles,
                   of_decode = routing->loads[route->decode].roles;
    if (of_prefill & IFL_PREFILLS && of_decode & IFL_DECODES)
        return 0;
    if (route->prefill == route->decode)
        return ifl_fail(
            error, IFL_E_POLICY,
            "route policy %s sends a request to replica %zu alone, which has the role %s; "
            "expected a router that answers a prefill and a decode replica, such as "
            "pair (cluster.router)",
            name, route->prefill, of_prefill & IFL_PREFILLS ? "prefill" : "decode");
    const bool wrong_prefill = !(of_prefill & IFL_PREFILLS);
    return ifl_fail(
        error, IFL_E_POLICY, "route policy %s names replica %zu for %s, which has the role %s",
        name, wrong_prefill ? route->prefill : route->decode,
        wrong_prefill ? "the prompt" : "the decodes", wrong_prefill ? "decode" : "prefill");
}

static int check_route(const struct routing *routing, const struct ifl_route *route,
                       struct ifl_error *error)
{
    const char *name = routing->router->policy->name;
    if ((unsigned)route->what > IFL_REFUSE_ARRIVAL)
        return ifl_fail(
            error, IFL_E_POLICY,
            "route policy %s answers %d to what becomes of a request, expected one of enum "
            "ifl_destination",
            name, (int)route->what);
    if (route->what != IFL_SEND)
        return 0;
    if (route->prefill >= routing->n || route->decode >= routing->n)
        return ifl_fail(
            error, IFL_E_POLICY,
            "route policy %s routed to replica %lld, expected one below %u (that number itself "
            "is the answer of ifl_least and ifl_nth where no replica can be meant)",
            name, (long long)(route->prefill >= routing->n ? route->prefill : route->decode),
            (unsigned)routing->n);
    if (route->prefill != route->decode && !routing->hands_over)
        return ifl_fail(
            error, IFL_E_POLICY,
            "route policy %s hands a request over from replica %zu to replica %zu, and no "
            "pool of the cluster has a role (cluster.pools.NAME.role)",
            name, route->prefill, route->decode);
    if (!is_open(routing, route->prefill) || !is_open(routing, route->decode))
        return ifl_fail(error, IFL_E_POLICY,
                        "route policy %s routed to replica %zu, which does not take that request",
                        name, is_open(routing, route->prefill) ? route->decode : route->prefill);
    return check_roles(routing, route, error);
}

/* All that a question shows, but for the note: only that may be written. */
static uint64_t print_of(const struct routing *routing, const struct ifl_request *r)
{
    uint64_t print = FINGERPRINT_OF_NOTHING;
    print = fingerprint(print, &routing->fleet.pub, sizeof routing->fleet.pub);
    print = fingerprint(print, r, offsetof(struct ifl_request, stale));
    print = fingerprint(print, routing->loads, routing->n * sizeof *routing->loads);
    for (uint32_t i = 0; i < routing->n; i++)
        print = fingerprint(print, &routing->replicas[i].fixed.limits,
                            sizeof routing->replicas[i].fixed.limits);
    return print;
}

static uint64_t print_before(const struct routing *routing, const struct ifl_request *r)
{
    if (!IFL_RARE(routing->checks))
        return 0;
    for (uint32_t i = 0; i < routing->n; i++) /* as load_of will */
        date(routing, &routing->loads[i]);
    return print_of(routing, r);
}

static void check_print(struct routing *routing, const struct ifl_request *r, uint64_t before,
                        int64_t now_ns)
{
    if (!IFL_RARE(routing->checks) || routing->breach.code < 0 || print_of(routing, r) == before)
        return;
    ifl_fail(&routing->breach, IFL_E_POLICY,
             "route policy %s broke its contract at %.9f s: it changes the request, the fleet, a "
             "load or "
             "the limits, which it may only read",
             routing->router->policy->name, ifl_s_from_ns(now_ns));
}

/* 0, or the error of a question that the router has asked. */
static int end_question(const struct routing *routing, struct ifl_error *error)
{
    if (error->code == 0 && IFL_RARE(routing->breach.code < 0))
        *error = routing->breach;
    return error->code;
}

IFL_APART int routing_ask(struct routing *routing, struct arrival *arrival, int64_t now_ns,
                          struct ifl_route *route, struct ifl_error *error)
{
    const struct module *router = routing->router;
    arrival->note = 0;
    routing->asked = error;
    error->code = 0;
    routing->looks_at_few = routing->n_looks > 0 && routing->n_looks <= FEW_LOOKS;
    routing->n_looks = 0;
    const struct ifl_fleet *fleet = show(routing, arrival, now_ns);
    const uint64_t before = print_before(routing, &routing->probe.pub);
    *route = router->policy->ops.route->pick(router->self, fleet);
    arrival->note = routing->note;
    check_print(routing, &routing->probe.pub, before, now_ns);
    return end_question(routing, error) < 0 ? error->code : check_route(routing, route, error);
}

int32_t routing_to_compute(struct routing *routing, const struct arrival *arrival, int64_t now_ns,
                           struct ifl_error *error)
{
    const struct ifl_fleet *fleet = show(routing, arrival, now_ns);
    int32_t n_cached;
    routing->asked = error;
    error->code = 0;
    longest(fleet, IFL_PREFILLS, &n_cached);
    return error->code < 0 ? error->code : ifl_max(arrival->n_prompt - n_cached, 1);
}

/* ---- telling ---- */

IFL_APART void routing_say_sent(struct routing *routing, const struct arrival *arrival,
                                uint32_t replica, int64_t now_ns)
{
    ifl_assert(replica < routing->n);
    const struct module *router = routing->router;
    if (router->policy->ops.route->on_sent)
        router->policy->ops.route->on_sent(router->self, show(routing, arrival, now_ns), replica);
}

static const struct ifl_fleet *show_live(struct routing *routing, const struct live_request *r,
                                         int64_t now_ns)
{
    routing->fleet.pub.now_ns = now_ns;
    routing->fleet.pub.n_routed = routing->n_routed;
    routing->fleet.pub.request = &r->pub;
    routing->fleet.pub.note = &live(&r->pub)->note;
    return &routing->fleet.pub;
}

int routing_pick_decode(struct routing *routing, const struct replica *replica,
                        const struct live_request *r, uint32_t *decode, struct ifl_error *error)
{
    const struct module *router = routing->router;
    if (!router->policy->ops.route->pick_decode)
        return 0;
    routing->asked = error;
    error->code = 0;
    const struct ifl_fleet *fleet = show_live(routing, r, replica->view.now_ns);
    const uint64_t before = print_before(routing, &r->pub);
    const size_t answer = router->policy->ops.route->pick_decode(router->self, fleet);
    check_print(routing, &r->pub, before, replica->view.now_ns);
    if (end_question(routing, error) < 0)
        return error->code;
    if (answer >= routing->n || answer == replica->fixed.number || !is_open(routing, answer) ||
        !(routing->loads[answer].roles & IFL_DECODES))
        return ifl_fail(
            error, IFL_E_POLICY,
            "route policy %s names replica %lld for the decodes of a request of replica %u, "
            "expected another one that decodes",
            router->policy->name, (long long)answer, (unsigned)replica->fixed.number);
    *decode = (uint32_t)answer;
    return 0;
}

IFL_APART void routing_say_first_token(struct routing *routing, const struct replica *replica,
                                       const struct live_request *r)
{
    const struct module *router = routing->router;
    if (router->policy->ops.route->on_first_token)
        router->policy->ops.route->on_first_token(
            router->self, show_live(routing, r, replica->view.now_ns), replica->fixed.number);
}

IFL_APART void routing_say_first_tokens(struct routing *routing, const struct replica *replica)
{
    ifl_assert(replica == &routing->replicas[replica->fixed.number]);
    if (!routing->router->policy->ops.route->on_first_token)
        return;
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct live_request *r = replica->plan.planned[i].r;
        if (r->pub.first_token_ns == replica->in_flight.last_end_ns && r->pub.stale.n_out == 1)
            routing_say_first_token(routing, replica, r);
    }
}

IFL_APART void routing_say_end(struct routing *routing, const struct replica *replica,
                               const struct live_request *r, int64_t now_ns)
{
    ifl_assert(replica == &routing->replicas[replica->fixed.number]);
    const struct module *router = routing->router;
    if (router->policy->ops.route->on_end)
        router->policy->ops.route->on_end(router->self, show_live(routing, r, now_ns),
                                          r->sent_to > 0 ? r->sent_to - 1 : replica->fixed.number);
}
