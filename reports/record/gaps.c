#include "record/gaps.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "record/summary.h"
#include "tables/sort.h"

#define FIRST_PAIRS ((size_t)1 << 12)
#define GROWTH ((size_t)1 << 5) /* large, as a copy touches pages and untouched pages are free */
#define BATCH_PAIRS ((size_t)1 << 9) /* for the histogram; 6 KiB, which share the caches */
/* Merging pays for its sort if at most 1 of MERGED pairs remains; the first 1 / TRIED of the pairs
 * are tried before all are sorted. */
#define MERGED ((size_t)1024)
#define TRIED ((size_t)64)

void gaps_init(struct gaps *gaps, size_t max_pairs)
{
    *gaps = (struct gaps){.max_pairs = max_pairs};
}

void gaps_finish(struct gaps *gaps)
{
    free(gaps->pairs);
    histogram_finish(&gaps->histogram);
    *gaps = (struct gaps){0};
}

static int resize(struct gaps *gaps, size_t cap, struct ifl_error *error)
{
    int64_t *pairs = realloc(gaps->pairs, cap * sizeof *pairs);
    if (!pairs)
        return ifl_fail_nomem(error);
    gaps->pairs = pairs;
    gaps->cap = cap;
    return IFL_OK;
}

static int grow(struct gaps *gaps, struct ifl_error *error)
{
    const size_t cap = gaps->cap ? GROWTH * gaps->cap : FIRST_PAIRS;
    return resize(gaps, ifl_min(cap, gaps->max_pairs), error);
}

/* Whether the pair can count so many requests more with the gap. */
static inline bool takes(int64_t pair, int64_t gap_ns, int64_t requests)
{
    return pair_ns(pair) == gap_ns && pair_times(pair) + requests <= PAIR_MOST_TIMES;
}

/* Merges neighbours of equal gaps, unless their count would overflow. */
static void merge(struct gaps *gaps)
{
    size_t kept = 0;
    for (size_t i = 0; i < gaps->n; i++) {
        const int64_t pair = gaps->pairs[i];
        if (kept && takes(gaps->pairs[kept - 1], pair_ns(pair), pair_times(pair)))
            gaps->pairs[kept - 1] += pair_times(pair);
        else
            gaps->pairs[kept++] = pair;
    }
    gaps->n = kept;
}

/* Pairs are binned in batches, so that the histogram's cache misses overlap. */
static int bin_batch(struct gaps *gaps, const int64_t *pairs, size_t n, struct ifl_error *error)
{
    int64_t gap_ns[BATCH_PAIRS];
    uint32_t requests[BATCH_PAIRS];
    for (size_t i = 0; i < n; i++) {
        gap_ns[i] = pair_ns(pairs[i]);
        requests[i] = pair_times(pairs[i]);
    }
    return histogram_add(&gaps->histogram, gap_ns, n, requests, 1, error);
}

static int bin_pairs(struct gaps *gaps, struct ifl_error *error)
{
    for (size_t i = 0; i < gaps->n; i += BATCH_PAIRS)
        if (bin_batch(gaps, gaps->pairs + i, ifl_min(gaps->n - i, BATCH_PAIRS), error))
            return error->code;
    gaps->n = 0;
    gaps->binned = true;
    return IFL_OK;
}

/* The memory of all those pairs is given back: what the end of the run needs is as large. */
static int bin_from_now_on(struct gaps *gaps, struct ifl_error *error)
{
    gaps->max_pairs = BATCH_PAIRS;
    return bin_pairs(gaps, error) ? error->code : resize(gaps, BATCH_PAIRS, error);
}

static int sort_first(struct gaps *gaps, size_t n, size_t *n_different, struct ifl_error *error)
{
    const int64_t *pairs = gaps->pairs;
    *n_different = 0;
    if (sort_by_key(gaps->pairs, NULL, n, error))
        return error->code;
    for (size_t i = 0; i < n; i++)
        *n_different += i == 0 || pair_ns(pairs[i]) != pair_ns(pairs[i - 1]);
    return IFL_OK;
}

/* If too many of the first pairs differ, too many of all pairs do, and the full sort is skipped. */
static int merge_or_bin(struct gaps *gaps, struct ifl_error *error)
{
    const size_t few = gaps->max_pairs / MERGED;
    size_t n_different;
    if (sort_first(gaps, gaps->n / TRIED, &n_different, error))
        return error->code;
    if (n_different <= few && sort_first(gaps, gaps->n, &n_different, error))
        return error->code;
    if (n_different > few)
        return bin_from_now_on(gaps, error);
    merge(gaps);
    return IFL_OK;
}

static int make_room(struct gaps *gaps, struct ifl_error *error)
{
    if (gaps->cap < gaps->max_pairs)
        return grow(gaps, error);
    return gaps->binned ? bin_pairs(gaps, error) : merge_or_bin(gaps, error);
}

static inline int put(struct gaps *gaps, int64_t gap_ns, int64_t requests)
{
    gaps->pairs[gaps->n++] = pair_of(gap_ns, requests);
    return IFL_OK;
}

IFL_APART static int put_in_new_room(struct gaps *gaps, int64_t gap_ns, int64_t requests,
                                     struct ifl_error *error)
{
    return make_room(gaps, error) ? error->code : put(gaps, gap_ns, requests);
}

static inline int add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error)
{
    if (gaps->n && takes(gaps->pairs[gaps->n - 1], gap_ns, requests)) {
        gaps->pairs[gaps->n - 1] += requests;
        return IFL_OK;
    }
    return gaps->n < gaps->cap ? put(gaps, gap_ns, requests)
                               : put_in_new_room(gaps, gap_ns, requests, error);
}

/* A gap too long for a pair: from here on all are binned. */
static int add_long(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error)
{
    if (!gaps->binned && bin_from_now_on(gaps, error))
        return error->code;
    for (uint32_t part; requests > 0; requests -= part) {
        part = (uint32_t)ifl_min(requests, (int64_t)UINT32_MAX);
        if (histogram_add(&gaps->histogram, &gap_ns, 1, &part, 0, error))
            return error->code;
    }
    return IFL_OK;
}

/* What does not fit into one pair. */
IFL_APART static int add_large(struct gaps *gaps, int64_t gap_ns, int64_t requests,
                               struct ifl_error *error)
{
    if (gap_ns > PAIR_MOST_NS)
        return add_long(gaps, gap_ns, requests, error);
    for (; requests > PAIR_MOST_TIMES; requests -= PAIR_MOST_TIMES)
        if (add(gaps, gap_ns, PAIR_MOST_TIMES, error))
            return error->code;
    return add(gaps, gap_ns, requests, error);
}

static inline int add_any(struct gaps *gaps, int64_t gap_ns, int64_t requests,
                          struct ifl_error *error)
{
    if (IFL_RARE(gap_ns > PAIR_MOST_NS || requests > PAIR_MOST_TIMES))
        return add_large(gaps, gap_ns, requests, error);
    return add(gaps, gap_ns, requests, error);
}

IFL_HOT int gaps_add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error)
{
    exact_add(&gaps->total_ns, gap_ns, requests);
    gaps->n_gaps += requests;
    return requests > 0 ? add_any(gaps, gap_ns, requests, error) : IFL_OK;
}

/* Appends gaps that fit into pairs, of which there is one already, until the array is full or a gap
 * equals its predecessor. Returns the number appended. */
static size_t append(struct gaps *gaps, const int64_t *gap_ns, size_t n, bool lengthen,
                     int64_t requests)
{
    const size_t n_room = gaps->cap - gaps->n, n_most = ifl_min(n, n_room);
    int64_t *to = gaps->pairs + gaps->n, last_ns = pair_ns(to[-1]);
    const size_t n_longer = lengthen ? n_most : 0;
    size_t i = 0;
    for (; i < n_longer; i++)
        to[i] = pair_of(gap_ns[i], requests);
    for (; i < n_most && gap_ns[i] != last_ns; i++)
        to[i] = pair_of(last_ns = gap_ns[i], requests);
    gaps->n += i;
    return i;
}

IFL_FOR_ASSERTS static inline int64_t sum_of(const int64_t *gap_ns, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += gap_ns[i];
    return sum;
}

int gaps_add_stretch(struct gaps *gaps, const struct ifl_stretch_record *of,
                     struct ifl_error *error)
{
    const int64_t *gap_ns = of->duration_ns, total_ns = step_sums_lasted_ns(of);
    const size_t n = of->n;
    const uint32_t each = (uint32_t)of->n_requests;
    ifl_assert(sum_of(gap_ns, n) == total_ns);
    exact_add(&gaps->total_ns, total_ns, of->n_requests);
    gaps->n_gaps += (int64_t)n * of->n_requests;
    if (gaps->binned)
        return histogram_add(&gaps->histogram, gap_ns, n, &each, 0, error);
    const bool fit = total_ns <= PAIR_MOST_NS && each <= PAIR_MOST_TIMES;
    for (size_t i = 0; i < n;) {
        if (add_any(gaps, gap_ns[i++], each, error))
            return error->code;
        i += fit ? append(gaps, gap_ns + i, n - i, of->lengthens, each) : 0;
    }
    return IFL_OK;
}

static int describe_binned(struct gaps *gaps, struct distribution *of, struct ifl_error *error)
{
    int64_t *gap_ns = NULL;
    uint32_t *requests = NULL;
    size_t n;
    int code = bin_pairs(gaps, error);
    if (!code)
        code = histogram_list(&gaps->histogram, &gap_ns, &requests, &n, error);
    if (!code)
        quantile_describe(gap_ns, requests, n, of);
    free(gap_ns);
    free(requests);
    return code;
}

static int describe_pairs(struct gaps *gaps, struct distribution *of, struct ifl_error *error)
{
    struct counted thinned = {0};
    const int code = quantile_thin(gaps->pairs, gaps->n, &thinned, error);
    if (!code)
        quantile_describe(thinned.value, thinned.count, thinned.n, of);
    counted_free(&thinned);
    return code;
}

int gaps_describe(struct gaps *gaps, struct distribution *of, struct ifl_error *error)
{
    if (gaps->binned ? describe_binned(gaps, of, error) : describe_pairs(gaps, of, error))
        return error->code;
    of->mean_ns = gaps->n_gaps ? exact_value(gaps->total_ns) / (double)gaps->n_gaps : (double)NAN;
    return IFL_OK;
}
