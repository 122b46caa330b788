#include "identify/judge.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

double judge_model_error(enum latency latency)
{
    static const double of[N_LATENCIES] = {[TTFT] = 0.0388, [TPOT] = 0.0109, [E2E] = 0.0246};
    return of[latency];
}

void judge_widen(enum latency latency, double mean, double *low, double *high)
{
    const double model =
        gsl_cdf_tdist_Pinv(0.95, JUDGE_MODEL_RUNS) * log1p(judge_model_error(latency));
    *low = mean * exp(-hypot(model, fmax(0, log(mean / *low))));
    *high = mean * exp(hypot(model, fmax(0, log(*high / mean))));
}

static bool is_off(const struct recording *recording, const struct trial *trial, size_t i)
{
    const double resolution = 0.002;
    for (int l = 0; l < N_LATENCIES; l++) {
        const double measured_s = recording->of[l][i];
        const bool is_near = fabs(log(trial->of[l][i] / measured_s)) <= resolution; /* NaN: not */
        if (!isnan(measured_s) && !is_near)
            return true;
    }
    return false;
}

int judge_explained(const struct judge_runs *runs, const double value[N_PARAMETERS],
                    bool *explained, struct ifl_error *error)
{
    *explained = true;
    for (size_t k = 0; *explained && k < runs->n; k++) {
        const struct recording *r = &runs->recordings[k];
        size_t n_off = 0;
        if (trial_fly(runs->setting, r, value, 0, &runs->trials[k], error) < 0)
            return error->code;
        for (size_t i = 0; i < r->n_fit; i++)
            n_off += is_off(r, &runs->trials[k], i);
        *explained = n_off <= r->n_fit / 20;
    }
    return 0;
}

int judge(const struct recording *recording, const struct trial *trial, size_t from, size_t to,
          struct judged *judged, struct ifl_error *error)
{
    double *of_request = malloc((to - from + 1) * sizeof *of_request);
    if (!of_request)
        return ifl_fail_nomem(error);
    *judged = (struct judged){.n = to - from};
    for (int l = 0; l < N_LATENCIES; l++) {
        double simulated = 0, measured = 0;
        size_t n = 0;
        for (size_t i = from; i < to; i++) {
            const double a = trial->of[l][i], b = recording->of[l][i];
            if (isnan(a) || isnan(b))
                continue;
            simulated += a;
            measured += b;
            of_request[n++] = fabs(a / b - 1);
        }
        judged->mean[l] = n ? simulated / measured - 1 : (double)NAN;
        judged->request[l] = n ? gsl_stats_median(of_request, 1, n) : (double)NAN;
    }
    free(of_request);
    return 0;
}
