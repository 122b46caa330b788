/* The cost of a few coefficients. */
#include <math.h>
#include <stdlib.h>

#include "cost/kind.h"

struct linear {
    struct cost base;
    struct linear_cost per;
};

static bool has_decode_line(const struct linear_cost *per)
{
    return per->decode_step_s > 0 || per->large_batch_seqs > 0;
}

/* Of a step without prefill. */
static double decode_step_s(const struct linear_cost *per, const struct ifl_step_totals *totals)
{
    const int32_t n_seqs = totals->n_decode_seqs + totals->n_draft_tokens;
    const double context = (double)totals->decode_context;
    if (per->large_batch_seqs > 0 && totals->n_decode_seqs >= per->large_batch_seqs)
        return per->large_step_s + per->large_seq_s * n_seqs + per->large_context_token_s * context;
    return (per->decode_step_s > 0 ? per->decode_step_s : per->step_s) +
           per->decode_seq_s * n_seqs + per->context_token_s * context;
}

static double linear_step_s(struct cost *cost, const struct ifl_step_totals *totals)
{
    const struct linear_cost *per = &((const struct linear *)cost)->per;
    if (totals->n_prefill_tokens == 0 && has_decode_line(per))
        return decode_step_s(per, totals);
    return per->step_s + per->prefill_token_s * totals->n_prefill_tokens +
           per->prefill_square_s * (double)totals->prefill_q_q +
           per->decode_seq_s * (totals->n_decode_seqs + totals->n_draft_tokens) +
           per->context_token_s * (double)totals->decode_context;
}

static int check_coefficient(const char *name, double s, struct ifl_error *error)
{
    if (isfinite(s) && s >= 0)
        return 0;
    return ifl_fail(error, IFL_E_INPUT, "cost.%s is %g, expected a number of seconds from 0 up",
                    name, s);
}

struct cost *cost_create_linear(const struct linear_cost *linear, struct ifl_error *error)
{
    if (check_coefficient("step_s", linear->step_s, error) ||
        check_coefficient("prefill_token_s", linear->prefill_token_s, error) ||
        check_coefficient("decode_seq_s", linear->decode_seq_s, error) ||
        check_coefficient("context_token_s", linear->context_token_s, error) ||
        check_coefficient("prefill_square_s", linear->prefill_square_s, error) ||
        check_coefficient("decode_step_s", linear->decode_step_s, error) ||
        check_coefficient("large_step_s", linear->large_step_s, error) ||
        check_coefficient("large_seq_s", linear->large_seq_s, error) ||
        check_coefficient("large_context_token_s", linear->large_context_token_s, error))
        return NULL;
    struct linear *cost = malloc(sizeof *cost);
    if (!cost) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *cost = (struct linear){.base.step_s = linear_step_s, .per = *linear};
    return &cost->base;
}
