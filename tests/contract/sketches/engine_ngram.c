/* N-gram speculation: one pass verifies drafts, the tokens behind an earlier occurrence of the last
 * two. A rejected draft is rolled back by not counting it: the next pass writes its slot anew. */
#include <inflight/engine.h>

enum { MAX_DRAFTS = 4 };
struct ngram_seq {               /* of all tokens but the last one, K and V are there */
    struct ifl_engine_step step; /* this sequence's, with its block table */
    int32_t *tokens, n_tokens;
};

/* Writes the drafts behind the tokens and returns their number. The earliest match, as in vLLM. */
static int32_t ngram_draft(const struct ngram_seq *s)
{
    int32_t *end = s->tokens + s->n_tokens, *at = s->tokens, n = 0;
    while (at + 2 < end && (at[0] != end[-2] || at[1] != end[-1]))
        at++;
    for (at += 2; n < MAX_DRAFTS && at + n < end; n++)
        end[n] = at[n];
    return n;
}

/* Returns the number of accepted drafts, which one more token follows; negative: an error. */
int ngram_decode(const struct ifl_engine *engine, void *self, struct ngram_seq *s,
                 struct ifl_error *error)
{
    int32_t positions[1 + MAX_DRAFTS], sampled[1 + MAX_DRAFTS], ends[] = {0, 1 + ngram_draft(s)};
    int32_t *fed = s->tokens + s->n_tokens - 1, n = 0;
    struct ifl_engine_step step = s->step;
    for (int32_t i = 0; i < ends[1]; i++)
        positions[i] = s->n_tokens - 1 + i;
    step.n_tokens = ends[1], step.first_token = ends, step.n_rows = &ends[1];
    step.token_ids = fed, step.positions = positions, step.sampled = sampled;
    if (engine->step(self, &step, error) < 0)
        return error->code;
    while (n + 1 < ends[1] && sampled[n] == fed[n + 1])
        n++;
    fed[n + 1] = sampled[n];
    s->n_tokens += n + 1;
    return n;
}
