/* Deficit round robin over clients, adapted to requests with a cost that is known only at their end
 * (Sheng et al., Fairness in Serving Large Language Models, OSDI 2024, appendix;
 * Ying1123/VTC-artifact, slora/server/router/mdrr_req_queue.py; after Shreedhar and Varghese,
 * 1996).
 *
 * Clients with queued requests form a ring and take turns. At its turn a client
 *   - gets a quantum if its deficit is not above zero;
 *   - starts requests while its deficit is above zero.
 * A prompt is charged when it starts, an output token when it is produced. So deficits fall below
 * zero, and a long answer is paid off over several rounds. If the first request of a client finds
 * no room, the client keeps its turn until the next plan; if its output tokens have brought its
 * deficit below zero by then, it goes to the end of the ring.
 *
 * Turns move on in each plan that asks for an order. Within a client requests go by arrival. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/policy.h"

enum { QUANTA_A_POOL = 20 };

struct drr {
    double quantum_tokens; /* 0: a twentieth of the pool */
    double input_cost, output_cost;
};

struct client {
    double deficit;
    uint32_t n_queued; /* requests that have never started */
    uint32_t place;    /* place in the ring, from 0; scratch */
    bool in_round;
};

struct rounds {
    struct client *clients; /* [n_clients] */
    uint32_t *ring;         /* [n_clients], of which n entries from `first` on, cyclically, are in
                               use */
    uint32_t first, n;
    uint32_t refused; /* client that kept its turn, for lack of room; n_clients: none */
};

struct turns {
    uint32_t n_clients;
    double quantum;
    struct rounds now, trial; /* trial: scratch of rank, which changes no turns */
};

struct standing {         /* this module's part of a request */
    uint64_t first_start; /* 1 + start_serial of the start that was charged; 0: queued */
};

static const struct ifl_param params[] = {
    {"quantum_tokens", IFL_REAL, offsetof(struct drr, quantum_tokens), 0, 0, 1e9, NULL, "",
     "cost granted to a client per round; 0: a twentieth of the pool's tokens"},
    {"input_cost", IFL_REAL, offsetof(struct drr, input_cost), 1, 0, 1e6, NULL, "",
     "cost of an input token"},
    {"output_cost", IFL_REAL, offsetof(struct drr, output_cost), 2, 0, 1e6, NULL, "",
     "cost of an output token"},
};

/* With a single client there is nothing to order, and it is charged nothing. */
static bool is_alone(const struct turns *turns)
{
    return turns->n_clients == 1;
}

/* ---- the round ---- */

/* Place i of the ring, below 2 * n_clients. */
static uint32_t ring_place(const struct turns *turns, uint32_t i)
{
    return i < turns->n_clients ? i : i - turns->n_clients;
}

static uint32_t whose_turn(const struct rounds *rounds)
{
    return rounds->ring[rounds->first];
}

static void join_round(const struct turns *turns, struct rounds *rounds, uint32_t client)
{
    if (rounds->clients[client].in_round)
        return;
    rounds->ring[ring_place(turns, rounds->first + rounds->n++)] = client;
    rounds->clients[client].in_round = true;
}

static void end_turn(const struct turns *turns, struct rounds *rounds)
{
    const uint32_t turn = whose_turn(rounds);
    struct client *client = &rounds->clients[turn];
    rounds->first = ring_place(turns, rounds->first + 1);
    rounds->n--;
    client->in_round = false;
    if (client->n_queued > 0 || client->deficit < 0)
        join_round(turns, rounds, turn);
}

/* True if take_turns has nothing to advance. */
static bool is_advanced(const struct rounds *rounds)
{
    if (rounds->n == 0)
        return true;
    const struct client *client = &rounds->clients[whose_turn(rounds)];
    return client->deficit > 0 && client->n_queued > 0;
}

/* Advances the round robin to a client with a deficit above zero and a queued request; to an empty
 * ring if there is none. */
static void take_turns(const struct turns *turns, struct rounds *rounds)
{
    while (rounds->n > 0) {
        const uint32_t turn = whose_turn(rounds);
        struct client *client = &rounds->clients[turn];
        if (turn == rounds->refused && client->deficit < 0) {
            rounds->refused = turns->n_clients;
        } else {
            client->deficit += client->deficit <= 0 ? turns->quantum : 0;
            if (client->deficit > 0 && client->n_queued > 0)
                return;
        }
        end_turn(turns, rounds);
    }
}

/* ---- ranking: by place in the ring as it is after the turns that are due ---- */

static void copy_rounds(const struct turns *turns, struct rounds *to, const struct rounds *from)
{
    memcpy(to->clients, from->clients, turns->n_clients * sizeof *to->clients);
    memcpy(to->ring, from->ring, turns->n_clients * sizeof *to->ring);
    to->first = from->first;
    to->n = from->n;
    to->refused = from->refused;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct turns *turns = ifl_state(self);
    struct rounds *rounds = &turns->now;
    (void)view;
    if (!is_advanced(rounds)) {
        rounds = &turns->trial;
        copy_rounds(turns, rounds, &turns->now);
        take_turns(turns, rounds);
    }
    for (uint32_t i = 0; i < rounds->n; i++)
        rounds->clients[rounds->ring[ring_place(turns, rounds->first + i)]].place = i;
    for (size_t i = 0; i < n; i++) {
        const struct client *client = &rounds->clients[of[i]->client];
        key[i] = client->in_round ? client->place : turns->n_clients;
    }
}

/* ---- hooks ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct turns *turns = ifl_state(self);
    (void)view;
    turns->now.clients[r->client].n_queued++;
    join_round(turns, &turns->now, r->client);
}

/* Clients with an earlier turn lose it: their first requests were refused. */
static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct drr *p = self;
    struct turns *turns = ifl_state(self);
    struct rounds *now = &turns->now;
    struct client *client = &now->clients[r->client];
    struct standing *standing = ifl_mine(self, r);
    (void)view;
    if (standing->first_start > 0 || is_alone(turns))
        return;
    standing->first_start = r->start_serial + 1;
    for (take_turns(turns, now); whose_turn(now) != r->client; take_turns(turns, now))
        end_turn(turns, now);
    client->deficit -= p->input_cost * r->n_prompt;
    client->n_queued--;
    if (client->deficit <= 0 || client->n_queued == 0)
        end_turn(turns, now);
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct drr *p = self;
    struct turns *turns = ifl_state(self);
    struct standing *standing = ifl_mine(self, r);
    if (standing->first_start != r->start_serial + 1)
        return;
    standing->first_start = 0;
    turns->now.clients[r->client].deficit += p->input_cost * r->n_prompt;
    on_join(self, view, r);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct turns *turns = ifl_state(self);
    (void)view;
    if (!(step->asked & 1u << IFL_ORDER))
        return;
    take_turns(turns, &turns->now);
    if (turns->now.n > 0)
        turns->now.refused = whose_turn(&turns->now);
}

/* Charges token by token, as in the artifact: one product would round differently. */
static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct drr *p = self;
    struct turns *turns = ifl_state(self);
    (void)view;
    if (is_alone(turns))
        return;
    const struct ifl_results results = ifl_results(end);
    for (size_t i = 0; i < results.n; i++)
        for (int32_t n = results.of[i].n_sampled; n > 0; n--)
            turns->now.clients[results.of[i].request->client].deficit -= p->output_cost;
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    struct turns *turns = ifl_state(self);
    const struct standing *standing = ifl_mine(self, r);
    (void)view;
    (void)why;
    turns->now.clients[r->client].n_queued -= standing->first_start == 0;
}

/* ---- creating and destroying ---- */

static bool allocate(struct rounds *rounds, uint32_t n_clients)
{
    rounds->clients = calloc(n_clients, sizeof *rounds->clients);
    rounds->ring = calloc(n_clients, sizeof *rounds->ring);
    rounds->refused = n_clients;
    return rounds->clients && rounds->ring;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct drr *p = self;
    struct turns *turns = ifl_state(self);
    const double pool_tokens = (double)limits->n_blocks * limits->block_tokens;
    turns->n_clients = limits->n_clients;
    turns->quantum = p->quantum_tokens > 0 ? p->quantum_tokens : pool_tokens / QUANTA_A_POOL;
    if (p->quantum_tokens > 0 && p->quantum_tokens < fmax(p->input_cost, p->output_cost))
        return ifl_fail(
            error, IFL_E_INPUT,
            "serving.order.quantum_tokens is %g, expected at least the cost of a token, "
            "or 0: it would take rounds without end to pay for a prompt",
            p->quantum_tokens);
    const bool ok = allocate(&turns->now, limits->n_clients);
    return allocate(&turns->trial, limits->n_clients) && ok ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    struct turns *turns = ifl_state(self);
    free(turns->now.clients);
    free(turns->now.ring);
    free(turns->trial.clients);
    free(turns->trial.ring);
}

/* With several clients, each token may end a client's turn. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    (void)view;
    const bool stands = is_alone(ifl_state(self)) || !(step->asked & 1u << IFL_ORDER);
    return (struct ifl_promise){stands ? INT32_MAX : 0, IFL_NEVER, 0, false};
}

static const struct ifl_order_ops ops = {.rank = rank};

const struct ifl_policy policy_order_drr = {
    .kind = IFL_ORDER,
    .name = "drr",
    .doc = "clients take turns, each with a quantum of cost per round (deficit round robin)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct drr),
    .state_bytes = sizeof(struct turns),
    .request_bytes = sizeof(struct standing),
    .init = init,
    .finish = finish,
    .on_join = on_join,
    .on_start = on_start,
    .on_undo = on_undo,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .on_leave = on_leave,
    .steady = steady,
    .ops.order = &ops,
};
