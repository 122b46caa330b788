/* Virtual token counters: the client that has been served least goes first (Sheng et al., Fairness
 * in Serving Large Language Models, OSDI 2024, Algorithms 2 and 3; Ying1123/VTC-artifact,
 * slora/server/router/vtc_req_queue.py and its siblings).
 *
 * A client's counter grows with its service, divided by its weight: by the cost of a prompt when
 * the request starts, by the cost of an output token when it is produced. When a request arrives
 * for a client without a waiting request, the client's counter is lifted to the least counter of
 * the clients with one, so that idling banks no credit.
 *
 * The cost of x input and y output tokens is h(x, y) = base + input x + output y + product x y +
 * square y^2; the default is the paper's x + 2 y. With a prediction the predicted output is charged
 * at the start; a longer answer is charged as it grows, a shorter one is refunded at its end.
 *
 * Within a client requests go by arrival; equal counters go by the clients' first arrivals. A
 * restart after a preemption is not charged again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/policy.h"

enum charge { CHARGE_PRODUCED, CHARGE_PREDICTED, CHARGE_AVERAGE };
enum { AVERAGE_OVER = 5, MAX_RANKED_CLIENTS = 65536 };

/* Costs are whole multiples of COST_STEP, so that their sums are exact in any order. */
static const double COST_STEP = 0x1p-20, KEY_STEP = 0x1p-10;

struct vtc {
    bool lift;
    int32_t charge;
    double base_cost, input_cost, output_cost, product_cost, square_cost;
    char weights[256];
};

struct answer {                        /* output of a request; zeroed: it has not started */
    const struct ifl_request *request; /* NULL: has not started */
    int32_t n_charged;                 /* output tokens that are charged */
    struct answer *before, *behind;
};

struct answers {
    struct answer *first;
    uint64_t charged_in; /* 1 + view->step when all tokens were charged last */
};

struct client {
    double charged;        /* cost charged so far, in units of COST_STEP */
    double lifted, weight; /* the client's counter is lifted + charged / weight */
    double average_output_tokens;
    int64_t n_waiting, n_here;
    int64_t first_seen; /* order of the client's first arrival, 1 for the first client; 0: none
                           yet */
    struct answers answers;
};

struct counters {
    struct client *clients;
    uint32_t n_clients;
    int64_t n_seen;
    int64_t n_waiting;
    uint32_t n_here; /* clients that have requests here */
    bool compared;   /* several clients were here since the last `keys`: keys may then not be 0 */
};

struct account { /* this module's part of a request */
    bool waits;
    double expected_tokens; /* output tokens charged in advance */
    uint64_t first_start;   /* start_serial of the start that was charged */
    struct answer answer;
};

static const struct ifl_param params[] = {
    {"lift", IFL_BOOL, offsetof(struct vtc, lift), 1, 0, 1, NULL, "",
     "a client without waiting requests gains no credit; false: it does, least counter first "
     "(LCF)"},
    {"charge", IFL_CHOICE, offsetof(struct vtc, charge), CHARGE_PRODUCED, 0, 0,
     "produced|predicted|average", "",
     "output tokens are charged when produced, or in advance: as many as predicted, or a moving "
     "average of the client's last answers"},
    {"base_cost", IFL_REAL, offsetof(struct vtc, base_cost), 0, 0, 1e6, NULL, "",
     "cost of a request"},
    {"input_cost", IFL_REAL, offsetof(struct vtc, input_cost), 1, 0, 1e6, NULL, "",
     "cost of an input token"},
    {"output_cost", IFL_REAL, offsetof(struct vtc, output_cost), 2, 0, 1e6, NULL, "",
     "cost of an output token"},
    {"product_cost", IFL_REAL, offsetof(struct vtc, product_cost), 0, 0, 1e6, NULL, "",
     "cost per input tokens x output tokens"},
    {"square_cost", IFL_REAL, offsetof(struct vtc, square_cost), 0, 0, 1e6, NULL, "",
     "cost per square of output tokens"},
    {"weights", IFL_TEXT, offsetof(struct vtc, weights), 0, 0, sizeof(((struct vtc *)0)->weights),
     "", "", "weights of clients 0, 1, ... as '1 2 4'; the others have 1"},
};

static struct counters *counters_of(const void *self)
{
    return ifl_state(self);
}

static struct client *client_of(const void *self, const struct ifl_request *r)
{
    const struct counters *counters = counters_of(self);
    return &counters->clients[r->client];
}

/* ---- what a request costs ---- */

/* Rounds to a whole number: a double of 1.5 x 2^52 has no halves. Faster than calling nearbyint. */
static double whole(double x)
{
    const double beyond_halves = 0x1.8p52;
    return x + beyond_halves - beyond_halves;
}

static double cost_of(const struct vtc *p, double x, double y)
{
    const double cost = p->base_cost + p->input_cost * x + p->output_cost * y +
                        p->product_cost * x * y + p->square_cost * y * y;
    return whole(cost / COST_STEP);
}

static double expected_tokens(const struct vtc *p, const struct ifl_request *r)
{
    if (p->charge == CHARGE_PREDICTED)
        return r->n_predicted >= 0 ? r->n_predicted : r->n_max_new;
    return p->charge == CHARGE_AVERAGE ? client_of(p, r)->average_output_tokens : 0;
}

static double first_charge(const struct vtc *p, const struct ifl_request *r)
{
    return cost_of(p, r->n_prompt, expected_tokens(p, r));
}

/* ---- output tokens not charged yet ----
 *
 * They are charged when a counter is read (to rank, at an arrival, at a departure), not at every
 * step. */

static void answers_open(struct answers *answers, struct answer *answer,
                         const struct ifl_request *r)
{
    *answer = (struct answer){.request = r, .n_charged = ifl_n_out(r), .behind = answers->first};
    if (answers->first)
        answers->first->before = answer;
    answers->first = answer;
}

static void answers_close(struct answers *answers, struct answer *answer)
{
    *(answer->before ? &answer->before->behind : &answers->first) = answer->behind;
    if (answer->behind)
        answer->behind->before = answer->before;
    *answer = (struct answer){0};
}

/* True if steps have ended since the last call: the caller must then charge all answers. */
static bool answers_lag(struct answers *answers, const struct ifl_view *view)
{
    const bool lag = answers->charged_in != view->step + 1;
    answers->charged_in = view->step + 1;
    return lag;
}

/* ---- counters ---- */

static void charge_answer(const struct vtc *p, struct client *client, struct account *account)
{
    const struct ifl_request *r = account->answer.request;
    const double y = ifl_n_out(r), before = account->answer.n_charged;
    const double from = fmax(before, account->expected_tokens);
    if (y > from)
        client->charged += cost_of(p, r->n_prompt, y) - cost_of(p, r->n_prompt, from);
    account->answer.n_charged = ifl_n_out(r);
}

static void charge_answers(const struct vtc *p, const struct ifl_view *view, struct client *client)
{
    if (!answers_lag(&client->answers, view))
        return;
    for (struct answer *answer = client->answers.first; answer; answer = answer->behind) {
        charge_answer(p, client, ifl_mine(p, answer->request));
    }
}

static double counter_of(const struct client *c)
{
    return c->lifted + c->charged / c->weight;
}

/* ---- ranking ---- */

static int64_t key_of(const struct client *c)
{
    const double counter = fmin(counter_of(c) * COST_STEP, 0x1p36);
    const int64_t seen =
        c->first_seen < MAX_RANKED_CLIENTS ? c->first_seen : MAX_RANKED_CLIENTS - 1;
    return (int64_t)floor(counter / KEY_STEP + 0.5) * MAX_RANKED_CLIENTS + seen;
}

/* With one client here there is nothing to order. */
static bool is_alone(const void *self)
{
    return counters_of(self)->n_here <= 1;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    for (size_t i = 0; i < n; i++) {
        struct client *client = client_of(self, of[i]);
        if (!is_alone(self))
            charge_answers(self, view, client);
        key[i] = is_alone(self) ? 0 : key_of(client);
    }
}

/* ---- charging ---- */

static void lift(const struct vtc *p, const struct ifl_view *view, struct client *client)
{
    const struct counters *counters = counters_of(p);
    double least = INFINITY;
    if (counters->n_waiting == 0)
        return;
    for (uint32_t i = 0; i < counters->n_clients; i++) {
        struct client *other = &counters->clients[i];
        if (other == client || other->n_waiting == 0)
            continue;
        charge_answers(p, view, other);
        least = fmin(least, counter_of(other));
    }
    charge_answers(p, view, client);
    if (least < INFINITY && counter_of(client) < least)
        client->lifted = least - client->charged / client->weight;
}

static void start_waiting(struct counters *counters, struct client *client, struct account *account)
{
    account->waits = true;
    client->n_waiting++;
    counters->n_waiting++;
}

static void stop_waiting(struct counters *counters, struct client *client, struct account *account)
{
    if (!account->waits)
        return;
    account->waits = false;
    client->n_waiting--;
    counters->n_waiting--;
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct vtc *p = self;
    struct counters *counters = counters_of(self);
    struct client *client = client_of(self, r);
    if (client->first_seen == 0)
        client->first_seen = ++counters->n_seen;
    if (client->n_waiting == 0 && p->lift)
        lift(p, view, client);
    counters->n_here += client->n_here++ == 0;
    counters->compared |= !is_alone(self);
    start_waiting(counters, client, ifl_mine(self, r));
}

/* The prompt is charged at the first start. */
static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct vtc *p = self;
    struct account *account = ifl_mine(self, r);
    struct client *client = client_of(self, r);
    (void)view;
    stop_waiting(counters_of(self), client, account);
    if (account->answer.request)
        return;
    account->first_start = r->start_serial;
    account->expected_tokens = expected_tokens(p, r);
    client->charged += first_charge(p, r);
    answers_open(&client->answers, &account->answer, r);
}

static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    if (r->state == IFL_WAITING)
        start_waiting(counters_of(self), client_of(self, r), ifl_mine(self, r));
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct account *account = ifl_mine(self, r);
    struct client *client = client_of(self, r);
    on_preempt(self, view, r);
    if (account->first_start != r->start_serial)
        return;
    client->charged -= first_charge(self, r);
    answers_close(&client->answers, &account->answer);
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    const struct vtc *p = self;
    struct client *client = client_of(self, r);
    struct account *account = ifl_mine(self, r);
    (void)view;
    stop_waiting(counters_of(self), client, account);
    counters_of(self)->n_here -= --client->n_here == 0;
    if (!account->answer.request)
        return;
    charge_answer(p, client, account);
    answers_close(&client->answers, &account->answer);
    if (ifl_n_out(r) < account->expected_tokens)
        client->charged -= cost_of(p, r->n_prompt, account->expected_tokens) -
                           cost_of(p, r->n_prompt, ifl_n_out(r));
    const double old = client->average_output_tokens;
    client->average_output_tokens =
        old > 0 ? (old * (AVERAGE_OVER - 1) + ifl_n_out(r)) / AVERAGE_OVER : ifl_n_out(r);
}

/* ---- an instance ---- */

static int read_weights(const struct vtc *p, struct counters *counters, struct ifl_error *error)
{
    const char *text = p->weights;
    uint32_t n = 0;
    while (*(text += strspn(text, " ,"))) {
        char *end;
        const double weight = strtod(text, &end);
        if (end == text || !(weight > 0 && weight < 1e6))
            return ifl_fail(
                error, IFL_E_INPUT,
                "serving.order.weights: found '%s', expected numbers above 0 as '1 2 4'", text);
        if (n < counters->n_clients)
            counters->clients[n++].weight = weight;
        text = end;
    }
    return 0;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct counters *counters = counters_of(self);
    counters->n_clients = limits->n_clients;
    counters->clients = calloc(limits->n_clients, sizeof *counters->clients);
    if (!counters->clients)
        return ifl_fail_nomem(error);
    for (uint32_t i = 0; i < limits->n_clients; i++)
        counters->clients[i].weight = 1;
    return read_weights(self, counters, error);
}

static void finish(void *self)
{
    free(counters_of(self)->clients);
}

/* With several clients, each token may change which client is next. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const bool stands = is_alone(self) || !(step->asked & 1u << IFL_ORDER);
    (void)view;
    return (struct ifl_promise){stands ? INT32_MAX : 0, IFL_NEVER, 0, false};
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    struct counters *counters = counters_of(self);
    const bool compared = counters->compared;
    (void)view;
    counters->compared = !is_alone(self);
    return compared ? IFL_KEYS_MOVE : IFL_KEYS_OWN;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_vtc = {
    .kind = IFL_ORDER,
    .name = "vtc",
    .doc = "the client with the least service goes first, by virtual token counters (VTC, LCF)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct vtc),
    .state_bytes = sizeof(struct counters),
    .request_bytes = sizeof(struct account),
    .init = init,
    .finish = finish,
    .on_join = on_join,
    .on_start = on_start,
    .on_undo = on_undo,
    .on_preempt = on_preempt,
    .on_leave = on_leave,
    .steady = steady,
    .ops.order = &ops,
};
