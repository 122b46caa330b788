/* An admission with a parameter: a request starts while its prompt leaves a share of the pool free.
 * `serving.admit: {policy: most-used, used_frac: 0.8}` */
#include <inflight/policy.h>

struct most_used {
    double used_frac;
};

static const struct ifl_param params[] = {
    {"used_frac", IFL_REAL, offsetof(struct most_used, used_frac), 0.8, 0, 1, NULL, "",
     "share of the pool that admissions may fill"},
};

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct most_used *p = self;
    const int32_t n_blocks = view->limits->n_blocks, most = (int32_t)(p->used_frac * n_blocks);
    const int32_t hold = r->state == IFL_SWAPPED ? ifl_n_slots(r) + n : ifl_n_tokens(r);
    const int32_t need = ifl_need(step, r, hold);
    if (need > most)
        return ifl_admission(IFL_NEVER_FITS, 0);
    const bool fits = n_blocks - step->n_free_blocks + need <= most;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, hold);
}

static const struct ifl_admit_ops ops = {.ask = ask};

static const struct ifl_policy most_used = {
    .kind = IFL_ADMIT,
    .name = "most-used",
    .doc = "keeps a share of the pool free of admissions",
    .params = params,
    .n_params = 1,
    .params_bytes = sizeof(struct most_used),
    .ops.admit = &ops,
};

IFL_POLICIES(&most_used);
