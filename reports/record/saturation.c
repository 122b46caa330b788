/* The rule for a saturated point.
 *
 * Above capacity fewer tokens are served than arrive, as long as requests arrive, and latencies
 * describe the length of the trace. Which requests wait depends on the scheduler:
 *
 *   - all under first come, first served;
 *   - long ones under shortest job first;
 *   - started ones if new prompts go first.
 *
 * So delays need not grow from one arrival to the next. The backlog grows under every discipline:
 * the prompt and output tokens of the waiting requests. (The number of requests hardly grows if a
 * few long ones starve.) By Little's law its mean is the arrival rate of tokens times their mean
 * delay.
 *
 * A request counts with all its tokens until it is first scheduled. From then to its end it counts
 * with the fraction of that time in which it was stalled: a life has the duration of stalls, not
 * their times. A request on the device does not count as waiting, even in steps that leave it out;
 * the pool bounds the number of those requests. A run that ends before such a scheduler has filled
 * the pool therefore looks like a ramp, in which the batch grows and every request is served.
 *
 * The backlog is averaged over 20 equal bins of time, from half of the arrival span to its end. The
 * bins are long, because a standard error needs nearly independent means of neighbouring bins (the
 * method of batch means, Law and Kelton). The point is saturated when
 *
 *   - the least-squares line through the bins climbs by more than 0.02 of the tokens that arrive in
 *     that time: load above about 1.02;
 *   - its slope exceeds three of its standard errors;
 *   - the mean backlog grows from each quarter of the bins to the next.
 *
 * Rejected requests do not count, nor do stalls of failed ones. A point is never saturated if fewer
 * than 40 scheduled requests arrive in that time, or if all requests arrive at once. */
#include "record/saturation.h"

#include <gsl/gsl_fit.h>
#include <math.h>

#include "record/lives.h"

#define N_BINS 20
#define MIN_PER_BIN ((size_t)2)
#define MIN_SLOPE 0.02
#define MIN_STANDARD_ERRORS 3

struct backlog {
    int64_t from_ns;
    double bins_per_ns;
    size_t n_arrived; /* requests since from_ns; arrived_tokens are their tokens */
    double arrived_tokens;
    double in_bin[N_BINS];     /* what growth within a bin adds to the bin's mean */
    double behind[N_BINS + 1]; /* growth before a bin that all of the bin sees */
};

/* Adds `tokens` to the backlog from at_ns on. */
static void grow(struct backlog *backlog, int64_t at_ns, double tokens)
{
    const double place = (double)(at_ns - backlog->from_ns) * backlog->bins_per_ns;
    if (place < 0) {
        backlog->behind[0] += tokens;
    } else if (place < N_BINS) {
        const size_t bin = (size_t)place;
        backlog->in_bin[bin] += tokens * ((double)(bin + 1) - place);
        backlog->behind[bin + 1] += tokens;
    }
}

static void add_stalls(struct backlog *backlog, const struct life *life, double tokens)
{
    const double stalled_ns = (double)life->rare->stalled_ns;
    const double stalled =
        tokens * stalled_ns / (double)(life->finish_ns - life->first_scheduled_ns);
    grow(backlog, life->first_scheduled_ns, stalled);
    grow(backlog, life->finish_ns, -stalled);
}

static void add_life(struct backlog *backlog, const struct life *life)
{
    const double tokens = (double)life->prompt_tokens + life->output_tokens;
    if (life->first_scheduled_ns == IFL_NEVER)
        return;
    if (life->arrival_ns > backlog->from_ns) {
        backlog->n_arrived++;
        backlog->arrived_tokens += tokens;
    }
    grow(backlog, life->arrival_ns, tokens);
    grow(backlog, life->first_scheduled_ns, -tokens);
    if (life->rare->stalled_ns > 0 && life_finished(life))
        add_stalls(backlog, life, tokens);
}

static void average(const struct backlog *backlog, double mean[N_BINS])
{
    double level = 0;
    for (size_t bin = 0; bin < N_BINS; bin++) {
        level += backlog->behind[bin];
        mean[bin] = level + backlog->in_bin[bin];
    }
}

/* `arriving` and the slope are in tokens per bin. */
static bool climbs(const double mean[N_BINS], double arriving)
{
    double bin[N_BINS], start, slope, cov00, cov01, cov11, sum_of_squares;
    for (size_t i = 0; i < N_BINS; i++)
        bin[i] = (double)i;
    gsl_fit_linear(bin, 1, mean, 1, N_BINS, &start, &slope, &cov00, &cov01, &cov11,
                   &sum_of_squares);
    return slope > MIN_SLOPE * arriving && slope > MIN_STANDARD_ERRORS * sqrt(cov11);
}

static bool grows_each_quarter(const double mean[N_BINS])
{
    double quarter[4] = {0};
    for (size_t bin = 0; bin < N_BINS; bin++)
        quarter[bin * 4 / N_BINS] += mean[bin];
    return quarter[0] < quarter[1] && quarter[1] < quarter[2] && quarter[2] < quarter[3];
}

bool saturation_found(const struct life *lives, const uint32_t *order, size_t n)
{
    ifl_assert(lives_ascend(lives, order, n));
    if (n == 0)
        return false;
    const int64_t first_ns = lives[order[0]].arrival_ns;
    const int64_t last_ns = lives[order[n - 1]].arrival_ns;
    const int64_t half_ns = first_ns + (last_ns - first_ns) / 2;
    if (half_ns == last_ns)
        return false;
    struct backlog backlog = {.from_ns = half_ns,
                              .bins_per_ns = N_BINS / (double)(last_ns - half_ns)};
    for (size_t i = 0; i < n; i++)
        add_life(&backlog, life_at(lives, order, n, i));
    if (backlog.n_arrived < MIN_PER_BIN * N_BINS)
        return false;
    double mean[N_BINS];
    average(&backlog, mean);
    return climbs(mean, backlog.arrived_tokens / N_BINS) && grows_each_quarter(mean);
}
