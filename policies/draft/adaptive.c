/* As many guesses as were accepted recently, from a short list for each size of the batch: SGLang's
 * adaptive speculation (python/sglang/srt/speculative/adaptive_spec_params.py at 015c872, main of
 * 2026-08, with its default lists; EAGLE with one branch, so that the number of guesses is that of
 * the draft steps).
 *
 * A slot is for batches from one size on, up to the next slot. These are its possible numbers of
 * guesses:
 *
 *     from 1 request on   1, 3, 5 or 7        from 32 on   0 or 1
 *     from 8 on           0, 1 or 3           from 64 on   0
 *
 * A slot begins with 3 guesses, or with the middle of its list if 3 is not in it. It has an
 * exponential average of the accepted guesses, over its own steps with guesses, which begins at one
 * less than its guesses. The slot's number of guesses changes at every decide_every-th of its
 * steps, after the first warm_up steps:
 *
 *     down   while the average is at most the next lower number - 0.5, or 0.5 if that number is 0;
 *            in the first slot at most this - 0.25
 *     up     if not down, while the average is above the present number - 0.5
 *     from 0 to the next number in any case: without guesses nothing is measured
 *
 * Two things differ in SGLang: it pads a batch to the size of its CUDA graph before it looks for
 * the slot, and it counts accepted guesses beyond the end of an answer. */
#include "inflight/policy.h"

enum { N_SLOTS = 4, MAX_STEPS = 4, FIRST_TOKENS = 3 };

struct adaptive {
    int32_t tokens, warm_up, decide_every;
    double weight;
};

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct adaptive, tokens), 7, 1, 64, NULL, "tokens",
     "most guesses for a request in a step; higher numbers of the lists are left out"},
    {"warm_up", IFL_INT, offsetof(struct adaptive, warm_up), 10, 0, 1 << 20, NULL, "steps",
     "steps of a batch size's list before those that count towards its first decision"},
    {"decide_every", IFL_INT, offsetof(struct adaptive, decide_every), 5, 1, 1 << 20, NULL, "steps",
     "steps of a batch size's list between decisions"},
    {"weight", IFL_REAL, offsetof(struct adaptive, weight), 0.2, 0.001, 1, NULL, "",
     "weight of the last step in the moving average of accepted guesses"},
};

struct list {
    size_t from;
    double down; /* SGLang's down_hysteresis */
    int32_t n;
    int32_t tokens[MAX_STEPS];
};

static const struct list lists[N_SLOTS] = {
    {1, -0.25, 4, {1, 3, 5, 7}}, {8, 0, 3, {0, 1, 3}}, {32, 0, 2, {0, 1}}, {64, 0, 1, {0}}};

struct slot {
    double held; /* the average */
    int64_t n_steps;
    int32_t at; /* place in the list */
};

struct state {
    struct slot slots[N_SLOTS];
};

static int32_t slot_of(size_t n)
{
    int32_t i = N_SLOTS - 1;
    while (i > 0 && lists[i].from > n)
        i--;
    return i;
}

static int32_t length_of(const struct adaptive *p, const struct list *list)
{
    int32_t n = list->n;
    while (n > 1 && list->tokens[n - 1] > p->tokens)
        n--;
    return n;
}

static int32_t first_place(const struct list *list, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (list->tokens[i] == FIRST_TOKENS)
            return i;
    return n / 2;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct adaptive *p = self;
    struct state *state = ifl_state(self);
    (void)limits;
    (void)error;
    for (int32_t i = 0; i < N_SLOTS; i++) {
        struct slot *slot = &state->slots[i];
        slot->at = first_place(&lists[i], length_of(p, &lists[i]));
        slot->held = lists[i].tokens[slot->at] - 1;
    }
    return 0;
}

/* The largest average at which the number of guesses falls to `lower`. */
static double drop_at(const struct list *list, int32_t lower)
{
    return (lower == 0 ? 0.5 : lower - 0.5) + list->down;
}

static void decide(struct slot *slot, const struct list *list, int32_t n)
{
    const int32_t before = slot->at;
    if (list->tokens[before] == 0) {
        slot->at += before + 1 < n;
        return;
    }
    while (slot->at > 0 && slot->held <= drop_at(list, list->tokens[slot->at - 1]))
        slot->at--;
    if (slot->at < before)
        return;
    while (slot->at + 1 < n && slot->held > list->tokens[slot->at] - 0.5)
        slot->at++;
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
    const struct list *list = &lists[slot_of(n_decodes)];
    struct slot *slot = &state->slots[slot_of(n_decodes)];
    if (n_drafted > 0)
        slot->held += p->weight * ((double)n_held / (double)n_drafted - slot->held);
    slot->n_steps++;
    if (slot->n_steps > p->warm_up && (slot->n_steps - p->warm_up) % p->decide_every == 0)
        decide(slot, list, length_of(p, list));
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    const struct state *state = ifl_state(self);
    const int32_t i = slot_of(view->n_running);
    return lists[i].tokens[state->slots[i].at];
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
