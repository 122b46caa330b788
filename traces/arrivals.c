/* Arrival processes. Gaps are drawn at unit rate from inverse CDFs and summed; the sum is mapped
 * to time through the inverse of the cumulative rate (time rescaling: Cinlar, Introduction to
 * Stochastic Processes, 1975, section 4.7), a division where the rate is constant. */
#include "traces.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>

#include "inflight/random.h"

/* ---- gaps at unit rate ---- */

/* Near 0 the CDF is x^a / Gamma(a + 1) (1 - a x / (a + 1) + ...), DLMF 8.7.1. GSL's inverse does
 * not converge there for small shapes a, which bursty traffic has. */
IFL_APART static double gamma_gap(double u, double cv)
{
    const double shape = 1 / (cv * cv), scale = cv * cv;
    const double x = exp((gsl_sf_lngamma(shape + 1) + log(u)) / shape);
    if (x < 1e-6)
        return scale * x * (1 + x / (shape + 1));
    return gsl_cdf_gamma_Pinv(u, shape, scale);
}

static double unit_gap(const struct ifl_arrivals *arrivals, size_t row)
{
    const double u = ifl_uniform(ifl_draw(arrivals->seed, IFL_DRAW_ARRIVAL, row, 0));
    switch (arrivals->process) {
    case IFL_ARRIVE_POISSON:
        return gsl_cdf_exponential_Pinv(u, 1);
    case IFL_ARRIVE_GAMMA:
        return gamma_gap(u, arrivals->cv);
    default:
        return 1;
    }
}

/* ---- the clock: when has the cumulative rate reached `sum`? ---- */

struct clock {
    const struct ifl_arrivals *arrivals;
    size_t i_piece;
    double sum_before; /* the cumulative rate where the piece begins */
    gsl_root_fsolver *solver;
    double sum;
};

/* Sums never decrease, so the search for the piece continues from the last one. */
static double invert_pieces(struct clock *clock)
{
    const struct ifl_arrivals *a = clock->arrivals;
    for (; clock->i_piece + 1 < a->n_pieces; clock->i_piece++) {
        const double from_s = a->piece_from_s[clock->i_piece];
        const double to_s = a->piece_from_s[clock->i_piece + 1];
        const double sum_behind =
            clock->sum_before + a->piece_rate_rps[clock->i_piece] * (to_s - from_s);
        if (a->piece_rate_rps[clock->i_piece] > 0 && clock->sum <= sum_behind)
            break;
        clock->sum_before = sum_behind;
    }
    return a->piece_from_s[clock->i_piece] +
           (clock->sum - clock->sum_before) / a->piece_rate_rps[clock->i_piece];
}

/* The integral of rate (1 + a sin(2 pi (t + phase) / T)) from 0, less what it has to reach. */
static double sine_excess(double t_s, void *context)
{
    const struct clock *clock = context;
    const struct ifl_arrivals *a = clock->arrivals;
    const double turns = 2 * M_PI / a->sine_period_s;
    const double swing = cos(turns * a->sine_phase_s) - cos(turns * (t_s + a->sine_phase_s));
    return a->rate_rps * (t_s + a->sine_amplitude_frac / turns * swing) - clock->sum;
}

/* The integral differs from the straight line by a T / pi at most, which brackets the root. */
static double invert_sine(struct clock *clock)
{
    const struct ifl_arrivals *a = clock->arrivals;
    const double straight_s = clock->sum / a->rate_rps;
    const double rounding_s = 1e-9 + 1e-12 * straight_s;
    const double reach_s = a->sine_amplitude_frac * a->sine_period_s / M_PI + rounding_s;
    gsl_function excess = {sine_excess, clock};
    if (gsl_root_fsolver_set(clock->solver, &excess, straight_s - reach_s, straight_s + reach_s))
        return NAN;
    for (int i = 0; i < 200; i++) {
        if (gsl_root_fsolver_iterate(clock->solver))
            return NAN;
        if (gsl_root_test_interval(gsl_root_fsolver_x_lower(clock->solver),
                                   gsl_root_fsolver_x_upper(clock->solver), 1e-10,
                                   4 * GSL_DBL_EPSILON) == GSL_SUCCESS)
            break;
    }
    return gsl_root_fsolver_root(clock->solver);
}

static double invert(struct clock *clock)
{
    if (IFL_RARE(clock->arrivals->n_pieces > 0))
        return invert_pieces(clock);
    if (IFL_RARE(clock->arrivals->sine_amplitude_frac > 0))
        return invert_sine(clock);
    return clock->sum / clock->arrivals->rate_rps;
}

static int fill_renewal(struct ifl_trace *trace, struct clock *clock, const char *path,
                        struct ifl_error *error)
{
    for (size_t i = 0; i < trace->n; i++) {
        clock->sum += unit_gap(clock->arrivals, i);
        const double at_s = invert(clock);
        if (IFL_RARE(!isfinite(at_s) || ifl_ns_from_s(at_s) == IFL_NEVER))
            return ifl_fail_at(error, path, 0, 0,
                               "request %zu would arrive after %g s, expected at most 9.2e9 s", i,
                               at_s);
        trace->arrival_ns[i] = at_s > 0 ? ifl_ns_from_s(at_s) : 0;
    }
    return 0;
}

static int arrive_by_renewal(struct ifl_trace *trace, const struct ifl_arrivals *arrivals,
                             const char *path, struct ifl_error *error)
{
    struct clock clock = {.arrivals = arrivals};
    /* Failures are checked by their return values; GSL's default handler would abort. */
    gsl_set_error_handler_off();
    clock.solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    if (!clock.solver)
        return ifl_fail_nomem(error);
    const int rc = fill_renewal(trace, &clock, path, error);
    gsl_root_fsolver_free(clock.solver);
    return rc;
}

/* ---- the other processes ---- */

static int arrive_by_trace(struct ifl_trace *trace, const struct ifl_arrivals *arrivals,
                           const char *path, struct ifl_error *error)
{
    if (!trace->has_stamps)
        return ifl_fail_at(error, path, 0, 0,
                           "the trace has no stamps for arrivals by trace, expected a process: "
                           "poisson, gamma, constant, burst or closed");
    for (size_t i = 0; arrivals->speedup != 1 && i < trace->n; i++) {
        const double at_s = ifl_s_from_ns(trace->arrival_ns[i]) / arrivals->speedup;
        trace->arrival_ns[i] = ifl_ns_from_s(at_s);
        if (trace->arrival_ns[i] == IFL_NEVER)
            return ifl_fail_at(error, path, 0, 0,
                               "with speedup %g request %zu would arrive after %g s, expected at "
                               "most 9.2e9 s",
                               arrivals->speedup, i, at_s);
    }
    return 0;
}

static void arrive_at_once(struct ifl_trace *trace)
{
    for (size_t i = 0; i < trace->n; i++)
        trace->arrival_ns[i] = 0;
}

/* ---- checking the parameters ---- */

static bool positive(double value)
{
    return isfinite(value) && value > 0;
}

static int check_pieces(const struct ifl_arrivals *a, struct ifl_error *error)
{
    if (a->n_pieces > IFL_MAX_RATE_PIECES || a->piece_from_s[0] != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "the first of %zu rate pieces begins at %g s, expected 0 and at most %d "
                        "pieces",
                        a->n_pieces, a->piece_from_s[0], IFL_MAX_RATE_PIECES);
    for (size_t i = 0; i < a->n_pieces; i++) {
        if (!isfinite(a->piece_rate_rps[i]) || a->piece_rate_rps[i] < 0)
            return ifl_fail(error, IFL_E_INPUT,
                            "rate piece %zu has %g requests/s, expected 0 or more", i,
                            a->piece_rate_rps[i]);
        if (i > 0 && !(a->piece_from_s[i] > a->piece_from_s[i - 1] && isfinite(a->piece_from_s[i])))
            return ifl_fail(error, IFL_E_INPUT,
                            "rate piece %zu begins at %g s, expected later than the one before", i,
                            a->piece_from_s[i]);
    }
    if (a->piece_rate_rps[a->n_pieces - 1] == 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "the last rate piece has 0 requests/s, expected more: it never ends");
    return 0;
}

static int check_sine(const struct ifl_arrivals *a, struct ifl_error *error)
{
    if (a->n_pieces > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "rate pieces and a sine are both given, expected one of them");
    if (!(a->sine_amplitude_frac >= 0 && a->sine_amplitude_frac <= 1) ||
        !positive(a->sine_period_s) || !isfinite(a->sine_phase_s))
        return ifl_fail(error, IFL_E_INPUT,
                        "the sine has amplitude %g, period %g s and phase %g s, expected an "
                        "amplitude from 0 to 1 and a period above 0",
                        a->sine_amplitude_frac, a->sine_period_s, a->sine_phase_s);
    return 0;
}

static int check_renewal(const struct ifl_arrivals *a, struct ifl_error *error)
{
    if (a->process == IFL_ARRIVE_GAMMA && !(a->cv >= 0.01 && a->cv <= 50))
        return ifl_fail(error, IFL_E_INPUT, "cv is %g, expected a number from 0.01 to 50", a->cv);
    if (a->sine_amplitude_frac != 0) {
        const int rc = check_sine(a, error);
        if (rc < 0)
            return rc;
    }
    if (a->n_pieces > 0)
        return check_pieces(a, error);
    if (!positive(a->rate_rps))
        return ifl_fail(error, IFL_E_INPUT, "rate_rps is %g, expected a number above 0",
                        a->rate_rps);
    return 0;
}

static int check(const struct ifl_arrivals *a, struct ifl_error *error)
{
    switch (a->process) {
    case IFL_ARRIVE_TRACE:
        return positive(a->speedup)
                   ? 0
                   : ifl_fail(error, IFL_E_INPUT, "speedup is %g, expected a number above 0",
                              a->speedup);
    case IFL_ARRIVE_BURST:
        return 0;
    case IFL_ARRIVE_CLOSED:
        return a->concurrency > 0
                   ? 0
                   : ifl_fail(error, IFL_E_INPUT, "concurrency is %d, expected 1 or more",
                              a->concurrency);
    default:
        return check_renewal(a, error);
    }
}

int ifl_trace_arrive(struct ifl_trace *trace, const struct ifl_arrivals *arrivals, const char *path,
                     const struct ifl_notes *notes, struct ifl_error *error)
{
    ifl_assert(trace_has_lengths(trace));
    int rc = check(arrivals, error);
    if (rc < 0)
        return rc;
    if (arrivals->process == IFL_ARRIVE_TRACE)
        rc = arrive_by_trace(trace, arrivals, path, error);
    else if (arrivals->process == IFL_ARRIVE_BURST || arrivals->process == IFL_ARRIVE_CLOSED)
        arrive_at_once(trace);
    else
        rc = arrive_by_renewal(trace, arrivals, path, error);
    if (rc < 0)
        return rc;
    trace->has_stamps = arrivals->process != IFL_ARRIVE_CLOSED;
    return ifl_trace_sort(trace, notes, error);
}
