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

#define N_BINS SATURATION_BINS
#define MIN_PER_BIN ((size_t)2)
#define MIN_SLOPE 0.02
#define MIN_STANDARD_ERRORS 3

/* Adds `tokens` to the backlog from at_ns on. */
static void grow(struct saturation *saturation, int64_t at_ns, double tokens)
{
    const double place = (double)(at_ns - saturation->from_ns) * saturation->bins_per_ns;
    if (place < 0) {
        saturation->behind[0] += tokens;
    } else if (place < N_BINS) {
        const size_t bin = (size_t)place;
        saturation->in_bin[bin] += tokens * ((double)(bin + 1) - place);
        saturation->behind[bin + 1] += tokens;
    }
}

static void add_stalls(struct saturation *saturation, const struct life *life, double tokens)
{
    const double stalled_ns = (double)life->rare->stalled_ns;
    const double stalled = tokens * stalled_ns / (double)(life->end_ns - life->first_scheduled_ns);
    grow(saturation, life->first_scheduled_ns, stalled);
    grow(saturation, life->end_ns, -stalled);
}

void saturation_begin(struct saturation *saturation, int64_t first_ns, int64_t last_ns)
{
    const int64_t half_ns = first_ns + (last_ns - first_ns) / 2;
    *saturation = (struct saturation){.from_ns = half_ns};
    if (half_ns != last_ns)
        saturation->bins_per_ns = N_BINS / (double)(last_ns - half_ns);
}

void saturation_add(struct saturation *saturation, const struct life *life)
{
    const double tokens = (double)life->prompt_tokens + life->output_tokens;
    if (life->first_scheduled_ns == IFL_NEVER || saturation->bins_per_ns <= 0)
        return;
    if (life->arrival_ns > saturation->from_ns) {
        saturation->n_arrived++;
        saturation->arrived_tokens += tokens;
    }
    grow(saturation, life->arrival_ns, tokens);
    grow(saturation, life->first_scheduled_ns, -tokens);
    if (life->rare->stalled_ns > 0 && life_finished(life))
        add_stalls(saturation, life, tokens);
}

static void average(const struct saturation *saturation, double mean[N_BINS])
{
    double level = 0;
    for (size_t bin = 0; bin < N_BINS; bin++) {
        level += saturation->behind[bin];
        mean[bin] = level + saturation->in_bin[bin];
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

bool saturation_found(const struct saturation *saturation)
{
    double mean[N_BINS];
    if (saturation->n_arrived < MIN_PER_BIN * N_BINS)
        return false;
    average(saturation, mean);
    return climbs(mean, saturation->arrived_tokens / N_BINS) && grows_each_quarter(mean);
}
