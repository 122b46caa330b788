/* Synthetic lengths: inverse CDFs of keyed draws. */
#include "traces.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_interp.h>
#include <math.h>

#include "inflight/random.h"

enum { MAX_ZIPF_VALUES = 1 << 24 };

/* A law with what its draws need: the zipf table, or the lognormal's parameters. */
struct law {
    const struct ifl_length_spec *spec;
    double mu, sigma;
    double *cumulative; /* [n_values + 1], from 0 to 1 */
    size_t n_values;
};

/* P(v) proportional to v^-exponent for v in [min, max]. */
static int tabulate_zipf(struct law *law, struct ifl_error *error)
{
    const struct ifl_length_spec *spec = law->spec;
    law->n_values = (size_t)(spec->max - spec->min) + 1;
    law->cumulative = malloc((law->n_values + 1) * sizeof *law->cumulative);
    if (!law->cumulative)
        return ifl_fail_nomem(error);
    double sum = 0;
    for (size_t i = 0; i < law->n_values; i++) {
        law->cumulative[i] = sum;
        sum += pow((double)spec->min + (double)i, -spec->exponent);
    }
    for (size_t i = 0; i < law->n_values; i++)
        law->cumulative[i] /= sum;
    law->cumulative[law->n_values] = 1;
    return 0;
}

static int check_bounds(const struct ifl_length_spec *spec, struct ifl_error *error)
{
    if (spec->min < 1 || spec->max < spec->min)
        return ifl_fail(error, IFL_E_INPUT,
                        "lengths are bound to [%d, %d] tokens, expected 1 <= min <= max", spec->min,
                        spec->max);
    return 0;
}

static int check_zipf(const struct ifl_length_spec *spec, struct ifl_error *error)
{
    if (!isfinite(spec->exponent) || spec->exponent < 0 || spec->exponent > 20)
        return ifl_fail(error, IFL_E_INPUT,
                        "the exponent of zipf is %g, expected a number from 0 to 20",
                        spec->exponent);
    if ((int64_t)spec->max - spec->min >= MAX_ZIPF_VALUES)
        return ifl_fail(
            error, IFL_E_INPUT, "zipf has %lld lengths from %d to %d tokens, expected at most %d",
            (long long)spec->max - spec->min + 1, spec->min, spec->max, MAX_ZIPF_VALUES);
    return 0;
}

static int check_mean(const struct ifl_length_spec *spec, struct ifl_error *error)
{
    if (!(spec->mean >= 1 && spec->mean <= INT32_MAX))
        return ifl_fail(error, IFL_E_INPUT, "the mean is %g tokens, expected a number from 1 to %d",
                        spec->mean, INT32_MAX);
    if (spec->law == IFL_LENGTH_LOGNORMAL && !(isfinite(spec->cv) && spec->cv >= 0))
        return ifl_fail(error, IFL_E_INPUT, "cv is %g, expected 0 or more", spec->cv);
    return 0;
}

static int prepare(struct law *law, const struct ifl_length_spec *spec, struct ifl_error *error)
{
    *law = (struct law){.spec = spec};
    int rc = spec->law == IFL_LENGTH_FIXED ? 0 : check_bounds(spec, error);
    if (rc == 0 && (spec->law == IFL_LENGTH_FIXED || spec->law == IFL_LENGTH_LOGNORMAL))
        rc = check_mean(spec, error);
    if (rc == 0 && spec->law == IFL_LENGTH_ZIPF)
        rc = check_zipf(spec, error);
    if (rc < 0)
        return rc;
    if (spec->law == IFL_LENGTH_ZIPF)
        return tabulate_zipf(law, error);
    law->sigma = sqrt(log1p(spec->cv * spec->cv));
    law->mu = log(spec->mean) - law->sigma * law->sigma / 2;
    return 0;
}

static int32_t clipped(double tokens, const struct ifl_length_spec *spec)
{
    if (tokens <= spec->min)
        return spec->min;
    return tokens >= spec->max ? spec->max : (int32_t)(tokens + 0.5);
}

static int32_t draw_length(const struct law *law, double u)
{
    const struct ifl_length_spec *spec = law->spec;
    switch (spec->law) {
    case IFL_LENGTH_UNIFORM:
        return clipped(floor(spec->min + u * ((double)spec->max - spec->min + 1)), spec);
    case IFL_LENGTH_LOGNORMAL:
        /* GSL's inverse needs a sigma above 0; a law without spread always gives its mean. */
        return clipped(law->sigma > 0 ? gsl_cdf_lognormal_Pinv(u, law->mu, law->sigma) : spec->mean,
                       spec);
    case IFL_LENGTH_ZIPF:
        return spec->min + (int32_t)gsl_interp_bsearch(law->cumulative, u, 0, law->n_values);
    default:
        return (int32_t)(spec->mean + 0.5);
    }
}

static void fill(struct ifl_trace *trace, uint64_t seed, const struct law *prompt,
                 const struct law *output)
{
    for (size_t i = 0; i < trace->n; i++) {
        trace->arrival_ns[i] = 0;
        trace->n_prompt[i] =
            draw_length(prompt, ifl_uniform(ifl_draw(seed, IFL_DRAW_PROMPT, i, 0)));
        trace->n_output[i] =
            draw_length(output, ifl_uniform(ifl_draw(seed, IFL_DRAW_OUTPUT, i, 0)));
    }
}

static int create_columns(struct ifl_trace *trace, size_t n, struct ifl_error *error)
{
    if (n == 0)
        return ifl_fail(error, IFL_E_INPUT, "0 requests are asked for, expected at least one");
    int rc = trace_column_resize(trace, TRACE_ARRIVAL, n, error);
    if (rc == 0)
        rc = trace_column_resize(trace, TRACE_PROMPT, n, error);
    if (rc == 0)
        rc = trace_column_resize(trace, TRACE_OUTPUT, n, error);
    trace->n = n;
    return rc;
}

int ifl_trace_generate(size_t n, uint64_t seed, const struct ifl_length_spec *prompt,
                       const struct ifl_length_spec *output, struct ifl_trace *trace,
                       struct ifl_error *error)
{
    struct law prompt_law = {0}, output_law = {0};
    *trace = (struct ifl_trace){.n_clients = 1};
    int rc = prepare(&prompt_law, prompt, error);
    if (rc == 0)
        rc = prepare(&output_law, output, error);
    if (rc == 0)
        rc = create_columns(trace, n, error);
    if (rc == 0)
        fill(trace, seed, &prompt_law, &output_law);
    else
        ifl_trace_free(trace);
    free(prompt_law.cumulative);
    free(output_law.cumulative);
    return rc;
}
