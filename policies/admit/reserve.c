/* Admit by reservation: room for the longest life of a request is taken at once, so it is never
 * preempted. FasterTransformer and Orca (Max) reserve the model's length for everyone. */
#include "inflight/policy.h"

enum reserve_for { FOR_MAX_MODEL_LEN, FOR_DECLARED, FOR_PREDICTED };

struct reserve {
    int32_t reserve_for;
};

static const struct ifl_param params[] = {
    {"for", IFL_CHOICE, offsetof(struct reserve, reserve_for), FOR_MAX_MODEL_LEN, 0, 0,
     "max-model-len|declared|predicted", "",
     "what is reserved: the model's length, prompt + declared limit, prompt + predicted output"},
};

static int32_t longest_life(const struct reserve *p, const struct ifl_view *view,
                            const struct ifl_request *r)
{
    if (p->reserve_for == FOR_DECLARED || (p->reserve_for == FOR_PREDICTED && r->n_predicted < 0))
        return r->n_prompt + r->n_max_new;
    if (p->reserve_for == FOR_PREDICTED)
        return r->n_prompt + r->n_predicted;
    return view->limits->max_model_tokens;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t hold = longest_life(self, view, r);
    const int32_t need = ifl_need(step, r, hold);
    (void)n;
    if (need > view->limits->n_blocks)
        return (struct ifl_admission){IFL_NEVER_FITS, 0};
    if (need > step->n_free_blocks)
        return (struct ifl_admission){IFL_NO_BLOCKS, 0};
    return (struct ifl_admission){IFL_YES, hold};
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_reserve = {
    .kind = IFL_ADMIT,
    .name = "reserve",
    .doc = "room for the request's longest life is taken at admission (FasterTransformer, Orca)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct reserve),
    .ops.admit = &ops,
};
