#include "replica/predictor.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "inflight/assert.h"
#include "inflight/error.h"
#include "inflight/random.h"

static double uniform(const struct predictor *p, uint64_t request_id, uint64_t index)
{
    return ifl_uniform(ifl_draw(p->seed, IFL_DRAW_PREDICTION, request_id, index));
}

/* The median is the truth; the mean is exp(sigma^2 / 2) times as much. */
IFL_APART static double with_lognormal_error(const struct predictor *p, uint64_t request_id,
                                             int32_t n_output)
{
    return n_output * exp(p->sigma * gsl_cdf_ugaussian_Pinv(uniform(p, request_id, 0)));
}

/* The upper end of the bucket, as S3 reserves (Jin et al., NeurIPS 2023). */
IFL_APART static double upper_end(const struct predictor *p, uint64_t request_id, int32_t n_output)
{
    int32_t bucket = (n_output - 1) / p->bucket_tokens;
    if (uniform(p, request_id, 0) < p->miss_frac)
        bucket += bucket > 0 && uniform(p, request_id, 1) < 0.5 ? -1 : 1;
    return ((double)bucket + 1) * p->bucket_tokens;
}

IFL_HOT static int32_t predict(const struct predictor *p, uint64_t request_id, int32_t n_output,
                               int32_t n_max_new)
{
    double tokens = n_output;
    if (IFL_RARE(p->model == PREDICT_LOGNORMAL))
        tokens = round(with_lognormal_error(p, request_id, n_output));
    if (IFL_RARE(p->model == PREDICT_BUCKETS))
        tokens = upper_end(p, request_id, n_output);
    if (tokens > n_max_new)
        return n_max_new;
    return tokens > 1 ? (int32_t)tokens : 1;
}

int32_t predictor_tell(const struct predictor *p, uint64_t request_id, int32_t n_output,
                       int32_t n_max_new)
{
    ifl_assert(n_max_new >= 1 && n_output >= 1);
    ifl_assert(p->model != PREDICT_BUCKETS || p->bucket_tokens > 0);
    return p->model == PREDICT_NONE ? -1 : predict(p, request_id, n_output, n_max_new);
}
