/* As many guesses as have held of late, from a short list for each size of the batch: SGLang's
 * adaptive speculation (2026-08; EAGLE with one branch, so that as many tokens are guessed as there
 * are draft steps).
 *
 * A slot holds batches of its size and above, up to the next one:
 *
 *     from 1 request on   1, 3, 5 or 7 guesses        from 32 on   none or 1
 *     from 8 on           none, 1 or 3                from 64 on   none
 *
 * After warm_up steps, each decide_every steps, the guesses of the slot move: down while the
 * average of those that held is at most the next lower number less a half (less another quarter
 * where the lower number is 1), up while it is above the present number less a half. The average is
 * exponential, over steps with guesses. Without guesses there is none to go by: from none it goes
 * up at each decision. */
#include "inflight/policy.h"

enum { N_SLOTS = 4, MAX_STEPS = 4 };

struct adaptive {
    int32_t tokens, warm_up, decide_every;
    double weight;
};

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct adaptive, tokens), 7, 1, 64, NULL, "tokens",
     "most guesses for a request in a step; higher numbers of the lists are left out"},
    {"warm_up", IFL_INT, offsetof(struct adaptive, warm_up), 10, 0, 1 << 20, NULL, "steps",
     "steps before the first decision"},
    {"decide_every", IFL_INT, offsetof(struct adaptive, decide_every), 5, 1, 1 << 20, NULL, "steps",
     "steps between decisions"},
    {"weight", IFL_REAL, offsetof(struct adaptive, weight), 0.2, 0.001, 1, NULL, "",
     "weight of the last step in the moving average of accepted guesses"},
};

struct slot {
    size_t from;
    int32_t n;
    int32_t tokens[MAX_STEPS];
};

static const struct slot slots[N_SLOTS] = {
    {1, 4, {1, 3, 5, 7}}, {8, 3, {0, 1, 3}}, {32, 2, {0, 1}}, {64, 1, {0}}};

struct state {
    double held;     /* the average */
    int32_t n_steps; /* since the start, or the last decision */
    bool warm;
    int32_t slot;        /* of the last step */
    int32_t at[N_SLOTS]; /* place in the slot's list */
};

static int32_t slot_of(size_t n)
{
    int32_t i = N_SLOTS - 1;
    while (i > 0 && slots[i].from > n)
        i--;
    return i;
}

static int32_t length_of(const struct adaptive *p, const struct slot *slot)
{
    int32_t n = slot->n;
    while (n > 1 && slot->tokens[n - 1] > p->tokens)
        n--;
    return n;
}

/* A new run begins in the middle of a list: SGLang's start, 3 steps, where the list has it. */
static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct adaptive *p = self;
    struct state *state = ifl_state(self);
    (void)limits;
    (void)error;
    for (int32_t i = 0; i < N_SLOTS; i++)
        while (state->at[i] + 1 < length_of(p, &slots[i]) && slots[i].tokens[state->at[i]] < 3)
            state->at[i]++;
    state->held = 1;
    return 0;
}

static void decide(const struct adaptive *p, struct state *state)
{
    const struct slot *slot = &slots[state->slot];
    int32_t *at = &state->at[state->slot];
    const int32_t n = length_of(p, slot);
    if (slot->tokens[*at] == 0) {
        *at += *at + 1 < n;
        return;
    }
    while (*at > 0) {
        const int32_t lower = slot->tokens[*at - 1];
        if (state->held > lower - 0.5 - (lower == 1 ? 0.25 : 0))
            break;
        --*at;
    }
    while (*at + 1 < n && state->held > slot->tokens[*at] - 0.5)
        ++*at;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct adaptive *p = self;
    struct state *state = ifl_state(self);
    const struct ifl_results results = ifl_results(end);
    size_t n_decodes = 0, n_drafted = 0;
    int64_t n_held = 0;
    (void)view;
    for (size_t i = 0; i < results.n; i++) {
        const struct ifl_result *of = &results.of[i];
        n_decodes += ifl_n_computed(of->request) > of->request->n_prefill;
        n_drafted += of->n_draft > 0;
        n_held += of->n_draft > 0 ? of->n_sampled - 1 : 0;
    }
    if (n_decodes == 0)
        return;
    if (n_drafted > 0)
        state->held += p->weight * ((double)n_held / (double)n_drafted - state->held);
    state->slot = slot_of(n_decodes);
    state->n_steps++;
    if (state->n_steps < (state->warm ? p->decide_every : p->warm_up))
        return;
    state->warm = true;
    state->n_steps = 0;
    decide(p, state);
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    const struct state *state = ifl_state(self);
    (void)view;
    return slots[state->slot].tokens[state->at[state->slot]];
}

static int32_t ask(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    return for_all(self, view);
}

static int32_t most(const void *params_of)
{
    return ((const struct adaptive *)params_of)->tokens;
}

static const struct ifl_draft_ops ops = {.ask = ask, .most = most, .for_all = for_all};

const struct ifl_policy policy_draft_adaptive = {
    .kind = IFL_DRAFT,
    .name = "adaptive",
    .doc = "as many guesses as were recently accepted, from a list for each batch size (SGLang)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct adaptive),
    .state_bytes = sizeof(struct state),
    .init = init,
    .on_step_end = on_step_end,
    .ops.draft = &ops,
};
