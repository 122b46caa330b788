/* The balancer of vLLM's data-parallel front end (DPLBAsyncMPClient.get_core_engine_for_request,
 * vllm/v1/engine/core_client.py, v0.33): the rank with the least
 *
 *     max(clients x own in flight, waiting + running) + waiting x 6 x max(0, usage - 0.5)
 *
 * where waiting, running and the use of the K/V pool are those of the rank's last report, and
 * waiting grows by `clients` with each request that the client has sent since. Of equal ranks the
 * first is taken, counted from a start that moves on by one rank with each request; client c of n
 * begins at rank ranks x c / n. An exact report (no cluster.news) already counts what was sent. A
 * report replaces the counts when it arrives, so requests sent between its sampling and its arrival
 * are no longer counted.
 *
 * Several API servers each count for themselves; requests are dealt to them in turn. A pick looks
 * at each replica. */
#include <stdlib.h>

#include "inflight/policy.h"

struct rotating {
    int32_t clients;
    double pressure, usage_from;
};

static const struct ifl_param params[] = {
    {"clients", IFL_INT, offsetof(struct rotating, clients), 1, 1, 1024, NULL, "front ends",
     "front ends that take requests in turn, each with its own counts; their starts are spread "
     "over the replicas"},
    {"pressure", IFL_REAL, offsetof(struct rotating, pressure), 6, 0, 1e6, NULL, "",
     "additional weight of a waiting request per unit of pool use ..."},
    {"usage_from", IFL_REAL, offsetof(struct rotating, usage_from), 0.5, 0, 1, NULL, "of the pool",
     "... above this use"},
};

struct state {
    struct client_view *views; /* [replica][client] */
    uint64_t *n_picked;        /* [client] */
};

/* A client's counts of a replica. */
struct client_view {
    int32_t n_in_flight; /* the client's own requests at the replica */
    int32_t n_since;     /* of these, requests sent since the report of taken_ns arrived */
    int64_t taken_ns;
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct rotating *p = self;
    struct state *state = ifl_state(self);
    (void)limits;
    state->views = calloc(ifl_n_replicas(self) * (size_t)p->clients, sizeof *state->views);
    state->n_picked = calloc((size_t)p->clients, sizeof *state->n_picked);
    return state->views && state->n_picked ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    struct state *state = ifl_state(self);
    free(state->views);
    free(state->n_picked);
}

static size_t client_of(const struct rotating *p, const struct ifl_fleet *fleet)
{
    return (size_t)(fleet->request->serial % (uint64_t)p->clients);
}

static struct client_view *view_of(const struct rotating *p, const struct ifl_fleet *fleet,
                                   size_t replica)
{
    const struct state *state = ifl_state(p);
    return &state->views[replica * (size_t)p->clients + client_of(p, fleet)];
}

static double score_of(const struct rotating *p, const struct ifl_fleet *fleet, size_t replica)
{
    const struct ifl_load *load = ifl_load_of(fleet, replica);
    const struct client_view *view = view_of(p, fleet, replica);
    const int32_t n_since = load->taken_ns == view->taken_ns ? view->n_since : 0;
    const double waiting = (double)load->n_waiting + (double)p->clients * n_since;
    const double own = (double)p->clients * view->n_in_flight, reported = waiting + load->n_running;
    const double usage = 1 - (double)load->n_free_blocks / load->limits->n_blocks;
    const double over = usage > p->usage_from ? usage - p->usage_from : 0;
    return (own > reported ? own : reported) + waiting * p->pressure * over;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const struct rotating *p = self;
    const struct state *state = ifl_state(self);
    const size_t n = ifl_up(fleet, IFL_PREFILLS), client = client_of(p, fleet);
    const size_t first = n * client / (size_t)p->clients;
    const size_t start = (size_t)((first + state->n_picked[client]) % n);
    size_t best = ifl_nth(fleet, IFL_PREFILLS, start);
    double least = score_of(p, fleet, best);
    for (size_t k = 1; k < n; k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, (start + k) % n);
        const double score = score_of(p, fleet, i);
        if (score < least) {
            least = score;
            best = i;
        }
    }
    return ifl_send(best);
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    const struct rotating *p = self;
    struct state *state = ifl_state(self);
    const struct ifl_load *load = ifl_load_of(fleet, replica);
    struct client_view *view = view_of(p, fleet, replica);
    state->n_picked[client_of(p, fleet)]++;
    view->n_in_flight++;
    if (load->n_sent == 0)
        return;
    view->n_since = (load->taken_ns == view->taken_ns ? view->n_since : 0) + 1;
    view->taken_ns = load->taken_ns;
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    view_of(self, fleet, replica)->n_in_flight--;
}

static const struct ifl_route_ops ops = {.pick = pick, .on_sent = on_sent, .on_end = on_end};

const struct ifl_policy policy_route_rotating_least = {
    .kind = IFL_ROUTE,
    .name = "rotating-least",
    .doc = "fewest requests, as reported or counted; waiting ones weigh more if the pool is full",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct rotating),
    .state_bytes = sizeof(struct state),
    .init = init,
    .finish = finish,
    .ops.route = &ops,
};
