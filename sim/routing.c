#include "routing.h"

#include <stdlib.h>

#include "inflight/random.h"

int routing_create(struct routing *routing, struct replica *replicas, uint32_t n,
                   const struct module *router, uint64_t seed, struct ifl_error *error)
{
    ifl_require(n == 1 || router);
    *routing = (struct routing){.replicas = replicas, .n = n, .router = router, .seed = seed};
    routing->loads = calloc(n, sizeof *routing->loads);
    if (!routing->loads)
        return ifl_fail_nomem(error);
    for (uint32_t i = 0; i < n; i++)
        routing_note_load(routing, &replicas[i]);
    return 0;
}

void routing_destroy(struct routing *routing)
{
    free(routing->loads);
    *routing = (struct routing){0};
}

void routing_note_load(struct routing *routing, const struct replica *replica)
{
    struct ifl_load *load = &routing->loads[replica->number];
    load->n_running = (int32_t)(replica->running.n - replica->n_ended);
    load->n_waiting = (int32_t)replica->waiting.n;
    load->n_swapped = (int32_t)replica->n_swapped;
    load->n_free_blocks = replica->kv.n_free;
    load->n_waiting_tokens = replica->waiting.n_tokens;
}

/* What the router is asked. */
struct question {
    struct ifl_routing pub; /* first: the module holds a pointer to it */
    struct routing *routing;
};

static int32_t cached_tokens(const struct ifl_routing *asked, size_t i)
{
    struct routing *routing = ((const struct question *)(const void *)asked)->routing;
    return i < routing->n ? replica_hit(&routing->replicas[i], &routing->probe).n_cached : 0;
}

int64_t routing_ask(struct routing *routing, const struct arrival *arrival, struct ifl_error *error)
{
    const struct module *router = routing->router;
    const struct ifl_route_ops *ops = router->policy->ops.route;
    struct question question = {.routing = routing,
                                .pub = {
                                    .now_ns = arrival->at_ns,
                                    .request = &routing->probe.pub,
                                    .limits = &routing->replicas[0].limits,
                                    .of = routing->loads,
                                    .n = routing->n,
                                    .n_routed = routing->n_routed++,
                                    .cached = cached_tokens,
                                }};
    routing->probe = (struct live_request){0};
    live_describe(&routing->probe, arrival);
    for (unsigned i = 0; i < 2; i++)
        question.pub.draw[i] = ifl_draw(routing->seed, IFL_DRAW_ROUTE, arrival->serial, i);
    const size_t picked = ops->pick(router->self, &question.pub);
    if (picked >= routing->n)
        return ifl_fail(error, IFL_E_POLICY, "policy %s routed to replica %zu of %u",
                        router->policy->name, picked, (unsigned)routing->n);
    routing->loads[picked].n_routed++;
    return (int64_t)picked;
}
