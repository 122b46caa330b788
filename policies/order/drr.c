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

#include "answers.h"

enum { QUANTA_A_POOL = 20 };

struct drr {
    double quantum_tokens; /* 0: a twentieth of the pool */
    double input_cost, output_cost;
};

struct client {
    double deficit;
    uint32_t n_queued; /* requests that have never started */
    uint32_t place;    /* in the ring, from 0; scratch */
    bool in_round;
};

struct rounds {
    struct client *clients; /* [n_clients] */
    uint32_t *ring;         /* [n_clients], of which n from first, cyclically, are in use */
    uint32_t first, n;
    uint32_t refused; /* client that kept its turn, for lack of room; n_clients: none */
};

struct turns {
    uint32_t n_clients;
    double quantum;
    struct rounds now, trial; /* trial: scratch of a plan */
    struct answers answers;
};

static const struct ifl_param params[] = {
    {"quantum_tokens", IFL_REAL, offsetof(struct drr, quantum_tokens), 0, 0, 1e9, NULL, "",
     "cost that a client may start in a round; 0: a twentieth of the pool's tokens"},
    {"input_cost", IFL_REAL, offsetof(struct drr, input_cost), 1, 0, 1e6, NULL, "",
     "of an input token"},
    {"output_cost", IFL_REAL, offsetof(struct drr, output_cost), 2, 0, 1e6, NULL, "",
     "of an output token"},
};

static struct turns *turns_of(const void *self)
{
    return ifl_state(self);
}

static uint32_t client_of(const struct turns *turns, const struct ifl_request *r)
{
    return answers_client(r, turns->n_clients);
}

/* With a single client there is nothing to order. */
static bool is_alone(const struct turns *turns)
{
    return turns->n_clients == 1;
}

/* ---- the round ---- */

static uint32_t pop_first(const struct turns *turns, struct rounds *rounds)
{
    const uint32_t client = rounds->ring[rounds->first];
    rounds->first = (rounds->first + 1) % turns->n_clients;
    rounds->n--;
    rounds->clients[client].in_round = false;
    return client;
}

static void push_last(const struct turns *turns, struct rounds *rounds, uint32_t client)
{
    rounds->ring[(rounds->first + rounds->n++) % turns->n_clients] = client;
    rounds->clients[client].in_round = true;
}

static void push_first(const struct turns *turns, struct rounds *rounds, uint32_t client)
{
    rounds->first = (rounds->first + turns->n_clients - 1) % turns->n_clients;
    rounds->ring[rounds->first] = client;
    rounds->n++;
    rounds->clients[client].in_round = true;
}

static void copy_rounds(const struct turns *turns, struct rounds *to, const struct rounds *from)
{
    memcpy(to->clients, from->clients, turns->n_clients * sizeof *to->clients);
    memcpy(to->ring, from->ring, turns->n_clients * sizeof *to->ring);
    to->first = from->first;
    to->n = from->n;
    to->refused = from->refused;
}

/* True until the request has been charged for its prompt. */
static bool is_queued(const struct drr *p, const struct ifl_request *r)
{
    return !((const struct answer *)ifl_mine(p, r))->request;
}

/* Index, from i on, of the next started request that has not been charged for its prompt; requests
 * that start again after a preemption have been. */
static size_t next_new(const struct drr *p, struct ifl_requests started, size_t i)
{
    while (i < started.n && (started.of[i]->state != IFL_RUNNING || !is_queued(p, started.of[i])))
        i++;
    return i;
}

static void charge_start(const struct drr *p, struct rounds *rounds, const struct ifl_request *r)
{
    struct client *client = &rounds->clients[client_of(turns_of(p), r)];
    client->deficit -= p->input_cost * r->n_prompt;
    client->n_queued--;
}

/* Advances the round robin until every started request is charged. Returns the client with the next
 * turn, which has a deficit above zero and a queued request; n_clients if there is none. */
static uint32_t take_turns(const struct drr *p, struct rounds *rounds, struct ifl_requests started)
{
    const struct turns *turns = turns_of(p);
    size_t i = next_new(p, started, 0);
    while (rounds->n > 0) {
        const uint32_t turn = pop_first(turns, rounds);
        struct client *client = &rounds->clients[turn];
        if (turn == rounds->refused && client->deficit < 0) {
            rounds->refused = turns->n_clients;
            push_last(turns, rounds, turn);
            continue;
        }
        if (client->deficit <= 0)
            client->deficit += turns->quantum;
        for (; client->deficit > 0 && client->n_queued > 0; i = next_new(p, started, i + 1)) {
            if (i == started.n) {
                push_first(turns, rounds, turn);
                return turn;
            }
            if (client_of(turns, started.of[i]) != turn) /* the client's first was refused */
                break;
            charge_start(p, rounds, started.of[i]);
        }
        if (client->n_queued > 0 || client->deficit < 0)
            push_last(turns, rounds, turn);
    }
    return turns->n_clients;
}

/* ---- charging answers ---- */

/* Token by token, as in the artifact: one product would round differently. */
static void charge_answer(const struct drr *p, struct answer *answer)
{
    const struct turns *turns = turns_of(p);
    const struct ifl_request *r = answer->request;
    struct client *client = &turns->now.clients[client_of(turns, r)];
    for (int32_t n = ifl_n_out(r) - answer->n_charged; n > 0; n--)
        client->deficit -= p->output_cost;
    answer->n_charged = ifl_n_out(r);
}

static void charge_answers(const struct drr *p, const struct ifl_view *view)
{
    struct turns *turns = turns_of(p);
    if (!answers_lag(&turns->answers, view))
        return;
    for (struct answer *answer = turns->answers.first; answer; answer = answer->behind) {
        charge_answer(p, answer);
    }
}

/* ---- ranking: by place in the ring, after charging the requests that this plan has started ----
 */

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct turns *turns = turns_of(self);
    struct rounds *trial = &turns->trial;
    const struct ifl_requests none = {NULL, 0};
    struct ifl_step *step = ifl_plan(view);
    if (is_alone(turns)) {
        memset(key, 0, n * sizeof *key);
        return;
    }
    charge_answers(self, view);
    copy_rounds(turns, trial, &turns->now);
    (void)take_turns(self, trial, step ? ifl_started(step) : none);
    for (uint32_t i = 0; i < trial->n; i++)
        trial->clients[trial->ring[(trial->first + i) % turns->n_clients]].place = i;
    for (size_t i = 0; i < n; i++) {
        const struct client *client = &trial->clients[client_of(turns, of[i])];
        key[i] = client->in_round ? client->place : turns->n_clients;
    }
}

/* ---- what changes it ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct turns *turns = turns_of(self);
    const uint32_t of = client_of(turns, r);
    (void)view;
    turns->now.clients[of].n_queued++;
    if (!turns->now.clients[of].in_round)
        push_last(turns, &turns->now, of);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct drr *p = self;
    struct turns *turns = turns_of(self);
    const struct ifl_requests started = ifl_started(step);
    if (!(step->asked & 1u << IFL_ORDER) || is_alone(turns))
        return;
    charge_answers(self, view);
    const uint32_t turn = take_turns(self, &turns->now, started);
    if (turn < turns->n_clients)
        turns->now.refused = turn;
    for (size_t i = next_new(p, started, 0); i < started.n; i = next_new(p, started, i + 1))
        answers_open(&turns->answers, ifl_mine(self, started.of[i]), started.of[i]);
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    const struct drr *p = self;
    struct turns *turns = turns_of(self);
    struct answer *answer = ifl_mine(self, r);
    (void)view;
    if (is_queued(p, r)) {
        turns->now.clients[client_of(turns, r)].n_queued--;
        return;
    }
    charge_answer(self, answer);
    answers_close(&turns->answers, answer);
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
    struct turns *turns = turns_of(self);
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
    struct turns *turns = turns_of(self);
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
    const bool stands = is_alone(turns_of(self)) || !(step->asked & 1u << IFL_ORDER);
    return (struct ifl_promise){stands ? INT32_MAX : 0, IFL_NEVER, 0, false};
}

static const struct ifl_order_ops ops = {.rank = rank};

const struct ifl_policy policy_order_drr = {
    .kind = IFL_ORDER,
    .name = "drr",
    .doc = "clients take turns, each with a quantum of cost a round (deficit round robin)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct drr),
    .state_bytes = sizeof(struct turns),
    .request_bytes = sizeof(struct answer),
    .init = init,
    .finish = finish,
    .on_join = on_join,
    .on_step_start = on_step_start,
    .on_leave = on_leave,
    .steady = steady,
    .ops.order = &ops,
};
