#include "record/latencies.h"

#include <math.h>
#include <stdlib.h>

#include "tables/sort.h"

static int make_room(struct latency_samples *samples, size_t n, struct ifl_error *error)
{
    samples->ns = malloc((n ? n : 1) * sizeof *samples->ns);
    samples->count = malloc((n ? n : 1) * sizeof *samples->count);
    return samples->ns && samples->count ? IFL_OK : ifl_fail_nomem(error);
}

int latencies_open(struct latencies *latencies, struct tally *tally, struct ifl_error *error)
{
    *latencies = (struct latencies){0};
    tally_end(tally);
    for (size_t which = 0; which < N_LATENCIES; which++) {
        struct latency_sums *sums = &tally->of[which];
        const bool selects = sums->n > 0 && sums->selection.held;
        const size_t n = selects ? selection_mark(&sums->selection, latency_bin_ns(sums->least_ns),
                                                  latency_bin_ns(sums->most_ns))
                                 : sums->n;
        latencies->of[which].selection = selects ? &sums->selection : NULL;
        if (make_room(&latencies->of[which], n, error))
            return error->code;
    }
    return IFL_OK;
}

void latencies_close(struct latencies *latencies)
{
    for (size_t which = 0; which < N_LATENCIES; which++) {
        free(latencies->of[which].ns);
        free(latencies->of[which].count);
    }
}

void latencies_take(struct latencies *latencies, const struct life *life)
{
    int64_t ns[N_LATENCIES];
    if (!life_finished(life))
        return;
    latencies_of(life, ns);
    for (size_t which = 0; which < N_LATENCIES; which++) {
        struct latency_samples *samples = &latencies->of[which];
        if (ns[which] == IFL_NEVER ||
            (samples->selection && !selection_wants(samples->selection, latency_bin_ns(ns[which]))))
            continue;
        samples->ns[samples->n] = ns[which];
        samples->count[samples->n++] = 1;
    }
}

static int describe(struct latency_samples *samples, const struct latency_sums *sums,
                    struct distribution *of, struct ifl_error *error)
{
    if (samples->selection)
        samples->n =
            selection_put_rest(samples->selection, samples->ns, samples->count, samples->n);
    if (sort_by_key(samples->ns, samples->count, samples->n, error))
        return error->code;
    quantile_describe(samples->ns, samples->count, samples->n, of);
    of->mean_ns = sums->n ? exact_value(sums->total_ns) / (double)sums->n : (double)NAN;
    return IFL_OK;
}

int latencies_describe(struct latencies *latencies, const struct tally *tally,
                       struct distribution of[N_LATENCIES], struct ifl_error *error)
{
    for (size_t which = 0; which < N_LATENCIES; which++)
        if (which != LATENCY_ITL &&
            describe(&latencies->of[which], &tally->of[which], &of[which], error))
            return error->code;
    return IFL_OK;
}
