#include "record/gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    free(gaps->gap_ns);
    free(gaps->requests);
    histogram_finish(&gaps->histogram);
    *gaps = (struct gaps){0};
}

static int grow(struct gaps *gaps, struct ifl_error *error)
{
    size_t cap = gaps->cap ? GROWTH * gaps->cap : FIRST_PAIRS;
    cap = ifl_min(cap, gaps->max_pairs);
    int64_t *gap_ns = realloc(gaps->gap_ns, cap * sizeof *gap_ns);
    if (gap_ns)
        gaps->gap_ns = gap_ns;
    uint32_t *requests = realloc(gaps->requests, cap * sizeof *requests);
    if (requests)
        gaps->requests = requests;
    if (!gap_ns || !requests)
        return ifl_fail_nomem(error);
    gaps->cap = cap;
    return IFL_OK;
}

/* Merges neighbours of equal gaps, unless their count would overflow. */
static void merge(struct gaps *gaps)
{
    size_t kept = 0;
    for (size_t i = 0; i < gaps->n; i++) {
        const int64_t gap_ns = gaps->gap_ns[i];
        const uint32_t requests = gaps->requests[i];
        if (kept && gaps->gap_ns[kept - 1] == gap_ns &&
            gaps->requests[kept - 1] <= UINT32_MAX - requests) {
            gaps->requests[kept - 1] += requests;
        } else {
            gaps->gap_ns[kept] = gap_ns;
            gaps->requests[kept++] = requests;
        }
    }
    gaps->n = kept;
}

/* Pairs are binned in batches, so that the histogram's cache misses overlap. */
static int bin_pairs(struct gaps *gaps, struct ifl_error *error)
{
    if (histogram_add(&gaps->histogram, gaps->gap_ns, gaps->n, gaps->requests, 1, error))
        return error->code;
    gaps->n = 0;
    gaps->binned = true;
    return IFL_OK;
}

/* The memory of all those pairs is given back: what the end of the run needs is as large. */
static int bin_from_now_on(struct gaps *gaps, struct ifl_error *error)
{
    gaps->cap = gaps->max_pairs = ifl_min(gaps->cap, BATCH_PAIRS);
    if (bin_pairs(gaps, error))
        return error->code;
    int64_t *gap_ns = realloc(gaps->gap_ns, gaps->cap * sizeof *gap_ns);
    gaps->gap_ns = gap_ns ? gap_ns : gaps->gap_ns;
    uint32_t *requests = realloc(gaps->requests, gaps->cap * sizeof *requests);
    gaps->requests = requests ? requests : gaps->requests;
    return IFL_OK;
}

static int sort_first(struct gaps *gaps, size_t n, size_t *n_different, struct ifl_error *error)
{
    *n_different = 0;
    if (sort_by_key(gaps->gap_ns, gaps->requests, n, error))
        return error->code;
    for (size_t i = 0; i < n; i++)
        *n_different += i == 0 || gaps->gap_ns[i] != gaps->gap_ns[i - 1];
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

static inline int put(struct gaps *gaps, int64_t gap_ns, uint32_t requests)
{
    gaps->gap_ns[gaps->n] = gap_ns;
    gaps->requests[gaps->n++] = requests;
    return IFL_OK;
}

IFL_APART static int put_in_new_room(struct gaps *gaps, int64_t gap_ns, uint32_t requests,
                                     struct ifl_error *error)
{
    return make_room(gaps, error) ? error->code : put(gaps, gap_ns, requests);
}

static inline int add(struct gaps *gaps, int64_t gap_ns, uint32_t requests, struct ifl_error *error)
{
    const size_t last = gaps->n - 1;
    if (gaps->n && gaps->gap_ns[last] == gap_ns && gaps->requests[last] <= UINT32_MAX - requests) {
        gaps->requests[last] += requests;
        return IFL_OK;
    }
    return gaps->n < gaps->cap ? put(gaps, gap_ns, requests)
                               : put_in_new_room(gaps, gap_ns, requests, error);
}

/* More requests than one pair counts. */
IFL_APART static int add_many(struct gaps *gaps, int64_t gap_ns, int64_t requests,
                              struct ifl_error *error)
{
    for (; requests > UINT32_MAX; requests -= UINT32_MAX)
        if (add(gaps, gap_ns, UINT32_MAX, error))
            return error->code;
    return add(gaps, gap_ns, (uint32_t)requests, error);
}

IFL_HOT int gaps_add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error)
{
    exact_add(&gaps->total_ns, gap_ns, requests);
    gaps->n_gaps += requests;
    if (IFL_RARE(requests > UINT32_MAX))
        return add_many(gaps, gap_ns, requests, error);
    return requests > 0 ? add(gaps, gap_ns, (uint32_t)requests, error) : IFL_OK;
}

/* Appends gaps as pairs, of which there is one already, until the array is full or a gap equals its
 * predecessor. Returns the number appended. */
static size_t append(struct gaps *gaps, const int64_t *gap_ns, size_t n, bool lengthen,
                     uint32_t requests)
{
    const size_t n_room = gaps->cap - gaps->n, n_most = ifl_min(n, n_room);
    int64_t *to_ns = gaps->gap_ns + gaps->n, last_ns = to_ns[-1];
    uint32_t *to = gaps->requests + gaps->n;
    const size_t n_longer = lengthen ? n_most : 0;
    memcpy(to_ns, gap_ns, n_longer * sizeof *to_ns);
    for (size_t k = 0; k < n_longer; k++)
        to[k] = requests;
    size_t i = n_longer;
    for (; i < n_most && gap_ns[i] != last_ns; i++) {
        to_ns[i] = last_ns = gap_ns[i];
        to[i] = requests;
    }
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
    for (size_t i = 0; i < n;) {
        if (add(gaps, gap_ns[i++], each, error))
            return error->code;
        i += append(gaps, gap_ns + i, n - i, of->lengthens, each);
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
    if (quantile_thin(gaps->gap_ns, gaps->requests, gaps->n, gaps->requests, &gaps->n, error))
        return error->code;
    quantile_describe(gaps->gap_ns, gaps->requests, gaps->n, of);
    return IFL_OK;
}

int gaps_describe(struct gaps *gaps, struct distribution *of, struct ifl_error *error)
{
    if (gaps->binned ? describe_binned(gaps, of, error) : describe_pairs(gaps, of, error))
        return error->code;
    of->mean_ns = gaps->n_gaps ? exact_value(gaps->total_ns) / (double)gaps->n_gaps : (double)NAN;
    return IFL_OK;
}
