/* An order: deficit round robin over clients (Sheng et al., OSDI 2024, appendix;
 * Ying1123/VTC-artifact, slora/server/router/mdrr_req_queue.py). At its turn a client gets a
 * quantum if its deficit is not above zero, and starts requests while it is. A prompt is charged
 * when it starts, an output token when it is produced. If a client's first request finds no room,
 * the client keeps its turn; if its deficit is below zero by the next plan, it goes to the end.
 * policies/order/drr.c gives the same answers for any number of clients. */
#include <string.h>

#include <inflight/policy.h>

enum { MOST_CLIENTS = 64 };

struct drr {
    double quantum_tokens; /* 0: a twentieth of the pool */
    double input_cost, output_cost;
};

struct round {
    double deficit[MOST_CLIENTS];
    int32_t n_queued[MOST_CLIENTS]; /* requests that have never started */
    uint32_t ring[MOST_CLIENTS];    /* [n], in the order of their turns */
    size_t n;
    uint32_t refused; /* 1 + the client that kept its turn, for lack of room; 0: none */
};

static const struct ifl_param params[] = {
    {"quantum_tokens", IFL_REAL, offsetof(struct drr, quantum_tokens), 0, 0, 1e9, NULL, "",
     "cost granted to a client per round; 0: a twentieth of the pool's tokens"},
    {"input_cost", IFL_REAL, offsetof(struct drr, input_cost), 1, 0, 1e6, NULL, "",
     "cost of an input token"},
    {"output_cost", IFL_REAL, offsetof(struct drr, output_cost), 2, 0, 1e6, NULL, "",
     "cost of an output token"},
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    (void)self;
    if (limits->n_clients > MOST_CLIENTS)
        return ifl_fail(error, IFL_E_INPUT, "there are %u clients, expected at most %d",
                        limits->n_clients, MOST_CLIENTS);
    return 0;
}

static size_t place_of(const struct round *round, uint32_t client)
{
    size_t i = 0;
    while (i < round->n && round->ring[i] != client)
        i++;
    return i;
}

static void end_turn(struct round *round)
{
    const uint32_t client = round->ring[0];
    memmove(round->ring, round->ring + 1, --round->n * sizeof *round->ring);
    if (round->n_queued[client] > 0 || round->deficit[client] < 0)
        round->ring[round->n++] = client;
}

/* Until a client may start a request, or none is left. */
static void take_turns(const struct drr *p, const struct ifl_limits *limits, struct round *round)
{
    const double pool = (double)limits->n_blocks * limits->block_tokens;
    for (; round->n > 0; end_turn(round)) {
        const uint32_t client = round->ring[0];
        if (round->refused == client + 1 && round->deficit[client] < 0) {
            round->refused = 0;
            continue;
        }
        if (round->deficit[client] <= 0)
            round->deficit[client] += p->quantum_tokens > 0 ? p->quantum_tokens : pool / 20;
        if (round->deficit[client] > 0 && round->n_queued[client] > 0)
            return;
    }
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct round round = *(const struct round *)ifl_state(self);
    take_turns(self, view->limits, &round);
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)place_of(&round, of[i]->client);
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct round *round = ifl_state(self);
    (void)view;
    round->n_queued[r->client]++;
    if (place_of(round, r->client) == round->n)
        round->ring[round->n++] = r->client;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct drr *p = self;
    struct round *round = ifl_state(self);
    uint64_t *first_start = ifl_mine(self, r);
    if (*first_start > 0)
        return;
    *first_start = r->start_serial + 1;
    take_turns(p, view->limits, round);
    while (round->ring[0] != r->client) {
        end_turn(round);
        take_turns(p, view->limits, round);
    }
    round->deficit[r->client] -= p->input_cost * r->n_prompt;
    round->n_queued[r->client]--;
    if (round->deficit[r->client] <= 0 || round->n_queued[r->client] == 0)
        end_turn(round);
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct drr *p = self;
    struct round *round = ifl_state(self);
    uint64_t *first_start = ifl_mine(self, r);
    if (*first_start != r->start_serial + 1)
        return;
    *first_start = 0;
    round->deficit[r->client] += p->input_cost * r->n_prompt;
    on_join(self, view, r);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct round *round = ifl_state(self);
    if (!(step->asked & 1u << IFL_ORDER))
        return;
    take_turns(self, view->limits, round);
    if (round->n > 0)
        round->refused = 1 + round->ring[0];
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct drr *p = self;
    struct round *round = ifl_state(self);
    const struct ifl_results results = ifl_results(end);
    (void)view;
    for (size_t i = 0; i < results.n; i++)
        for (int32_t n = 0; n < results.of[i].n_sampled; n++)
            round->deficit[results.of[i].request->client] -= p->output_cost;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    struct round *round = ifl_state(self);
    const uint64_t *first_start = ifl_mine(self, r);
    (void)view;
    (void)why;
    round->n_queued[r->client] -= *first_start == 0;
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy plain_drr = {
    .kind = IFL_ORDER,
    .name = "plain-drr",
    .doc = "deficit round robin over clients, in its plainest form",
    .params = params,
    .n_params = 3,
    .params_bytes = sizeof(struct drr),
    .state_bytes = sizeof(struct round),
    .request_bytes = sizeof(uint64_t),
    .init = init,
    .on_join = on_join,
    .on_start = on_start,
    .on_undo = on_undo,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .ops.order = &ops,
};

IFL_POLICIES(&plain_drr);
