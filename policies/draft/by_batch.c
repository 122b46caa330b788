/* A number of guesses from a table of batch sizes: vLLM's num_speculative_tokens_per_batch_size.
 * The number of requests in a step gives the guesses of the next one. If no range of the table has
 * that number the guesses stay as they were. */
#include <stdlib.h>

#include "inflight/policy.h"

enum { MAX_RANGES = 16, TABLE_CHARS = 256 };

struct by_batch {
    int32_t tokens;
    char table[TABLE_CHARS];
};

struct range {
    int64_t from, to;
    int32_t tokens;
};

struct table {
    int32_t tokens; /* guesses of the next step */
    size_t n;
    struct range of[MAX_RANGES];
};

static const struct ifl_param params[] = {
    {"tokens", IFL_INT, offsetof(struct by_batch, tokens), 3, 0, 64, NULL, "tokens",
     "guesses for a request until a range of the table applies, and their limit"},
    {"table", IFL_TEXT, offsetof(struct by_batch, table), 0, 0, TABLE_CHARS, "", "",
     "FROM-TO:GUESSES for the number of requests in a step, such as 1-8:5,9-32:3,33-:0"},
};

/* Reads one range, FROM-TO:TOKENS or FROM-:TOKENS. Returns the text behind it, NULL if it is no
 * range. */
static const char *read_range(const char *text, struct range *range)
{
    char *end;
    range->from = strtol(text, &end, 10);
    if (end == text || *end != '-')
        return NULL;
    text = end + 1;
    range->to = *text == ':' ? INT64_MAX : strtol(text, &end, 10);
    text = *text == ':' ? text : end;
    if (*text != ':')
        return NULL;
    range->tokens = (int32_t)strtol(text + 1, &end, 10);
    return end == text + 1 || range->to < range->from ? NULL : end;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct by_batch *p = self;
    struct table *table = ifl_state(self);
    (void)limits;
    table->tokens = p->tokens;
    for (const char *at = p->table; *at;) {
        struct range *range = &table->of[table->n];
        const char *end = table->n < MAX_RANGES ? read_range(at, range) : NULL;
        if (!end || (*end && *end != ',') || range->tokens < 0 || range->tokens > p->tokens)
            return ifl_fail(error, IFL_E_INPUT,
                            "serving.draft.table has '%s', expected at most %d ranges as "
                            "1-8:5,9-32:3,33-:0, with guesses of 0 to serving.draft.tokens, %d",
                            at, MAX_RANGES, p->tokens);
        table->n++;
        at = *end ? end + 1 : end;
    }
    return 0;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct table *table = ifl_state(self);
    const int64_t n = (int64_t)end->n_requests;
    (void)view;
    for (size_t i = 0; i < table->n; i++)
        if (n >= table->of[i].from && n <= table->of[i].to)
            table->tokens = table->of[i].tokens;
}

static int32_t for_all(const void *self, const struct ifl_view *view)
{
    (void)view;
    return ((const struct table *)ifl_state(self))->tokens;
}

static int32_t ask(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    return for_all(self, view);
}

static int32_t most(const void *params_of)
{
    return ((const struct by_batch *)params_of)->tokens;
}

static const struct ifl_draft_ops ops = {.ask = ask, .most = most, .for_all = for_all};

const struct ifl_policy policy_draft_by_batch = {
    .kind = IFL_DRAFT,
    .name = "by-batch",
    .doc = "the number of guesses depends, by a table, on the requests of the last step (vLLM)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct by_batch),
    .state_bytes = sizeof(struct table),
    .init = init,
    .on_step_end = on_step_end,
    .ops.draft = &ops,
};
