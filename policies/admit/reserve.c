/* Admit by reservation: a request takes blocks for its longest possible length at its start, so it
 * is never preempted. FasterTransformer and Orca (Max) reserve the model's length for each request.
 * The vLLM paper (Kwon et al., SOSP 2023, section 6.1) also gives Orca outputs that are known
 * within a factor of two (Pow2) or exactly (Oracle). */
#include "inflight/minmax.h"
#include "inflight/policy.h"

enum reserve_for {
    FOR_MAX_MODEL_LEN,
    FOR_DECLARED,
    FOR_PREDICTED,
    FOR_PREDICTED_POW2,
    FOR_COMPUTED
};

struct reserve {
    int32_t reserve_for;
};

static const struct ifl_param params[] = {
    {"for", IFL_CHOICE, offsetof(struct reserve, reserve_for), FOR_MAX_MODEL_LEN, 0, 0,
     "max-model-len|declared|predicted|predicted-pow2|computed", "",
     "reserved tokens: the model's length; prompt + declared limit; prompt + predicted output; the "
     "same, with the output rounded up to a power of two; declared without the last token, whose "
     "K/V is never computed (TGI)"},
};

static int32_t power_of_two_from(int32_t n)
{
    int32_t power = 1;
    while (power < n && power < 1 << 30)
        power *= 2;
    return power;
}

static int32_t expected_tokens(const struct reserve *p, const struct ifl_request *r)
{
    const int32_t output = r->n_predicted >= 0 ? r->n_predicted : r->n_max_new;
    switch ((enum reserve_for)p->reserve_for) {
    case FOR_DECLARED:
        return r->n_prompt + r->n_max_new;
    case FOR_COMPUTED:
        return r->n_prompt + r->n_max_new - 1;
    case FOR_PREDICTED:
        return r->n_prompt + output;
    case FOR_PREDICTED_POW2:
        return r->n_prompt + power_of_two_from(output);
    case FOR_MAX_MODEL_LEN:
        break;
    }
    return INT32_MAX;
}

static int32_t reserved_tokens(const struct reserve *p, const struct ifl_view *view,
                               const struct ifl_request *r)
{
    const int32_t expected = expected_tokens(p, r), longest = view->limits->max_model_tokens;
    return ifl_min(expected, longest);
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t hold = reserved_tokens(self, view, r);
    const int32_t need = ifl_need(step, r, hold);
    (void)n;
    if (need > view->limits->n_blocks)
        return ifl_admission(IFL_NEVER_FITS, 0);
    if (need > step->n_free_blocks)
        return ifl_admission(IFL_NO_BLOCKS, 0);
    return ifl_admission(IFL_YES, hold);
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_reserve = {
    .kind = IFL_ADMIT,
    .name = "reserve",
    .doc = "takes blocks for the longest possible length at admission (FasterTransformer, Orca)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct reserve),
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
