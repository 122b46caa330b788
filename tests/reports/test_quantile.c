#include <criterion/criterion.h>
#include <math.h>

#include "inflight/random.h"
#include "record/quantile.h"
#include "tables/sort.h"

static struct ifl_error error;

static double one_quantile(const int64_t *value, const uint32_t *count, size_t n, double q)
{
    double found;
    quantile_find(value, count, n, &q, 1, &found);
    return found;
}

/* Expected values by hand from numpy's rule: position (n - 1) q, linear in between. */
Test(quantile, interpolates_as_numpy)
{
    const int64_t four[] = {1, 2, 3, 4};
    cr_expect_eq(one_quantile(four, NULL, 4, 0), 1);
    cr_expect_eq(one_quantile(four, NULL, 4, 0.25), 1.75);
    cr_expect_eq(one_quantile(four, NULL, 4, 0.5), 2.5);
    cr_expect_eq(one_quantile(four, NULL, 4, 1), 4);
    const int64_t skewed[] = {10, 20, 1000};
    cr_expect_float_eq(one_quantile(skewed, NULL, 3, 0.9), 20 + 0.8 * 980, 1e-9);
    cr_expect_float_eq(one_quantile(skewed, NULL, 3, 0.99), 20 + 0.98 * 980, 1e-9);
    const int64_t negative[] = {-50, -10};
    cr_expect_eq(one_quantile(negative, NULL, 2, 0.25), -40);
}

Test(quantile, of_one_and_of_none)
{
    const int64_t seven = 7;
    cr_expect_eq(one_quantile(&seven, NULL, 1, 0.99), 7);
    cr_expect(isnan(one_quantile(&seven, NULL, 0, 0.5)));
    struct distribution of;
    quantile_describe(NULL, NULL, 0, &of);
    cr_expect(isnan(of.mean_ns) && isnan(quantile_summary_s(&of).p99));
}

Test(quantile, a_count_stands_for_equal_samples)
{
    const int64_t value[] = {1, 5, 9};
    const uint32_t count[] = {3, 1, 2};
    const int64_t written_out[] = {1, 1, 1, 5, 9, 9};
    for (int percent = 0; percent <= 100; percent++)
        cr_assert_eq(one_quantile(value, count, 3, percent / 100.0),
                     one_quantile(written_out, NULL, 6, percent / 100.0), "at %d %%", percent);
    cr_expect_eq(one_quantile(value, count, 3, 0.5), 3);
    const uint32_t with_none[] = {0, 1, 0};
    cr_expect_eq(one_quantile(value, with_none, 3, 0.5), 5);
}

Test(quantile, many_at_once_agree_with_one_at_a_time)
{
    const int64_t value[] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
    struct distribution of;
    quantile_describe(value, NULL, 11, &of);
    const struct ifl_quantiles s = quantile_summary_s(&of);
    cr_expect_float_eq(s.mean, 50e-9, 1e-20);
    cr_expect_float_eq(s.p50, 50e-9, 1e-20);
    cr_expect_float_eq(s.p90, 90e-9, 1e-20);
    cr_expect_float_eq(s.p95, 95e-9, 1e-20);
    cr_expect_float_eq(s.p99, 99e-9, 1e-20);
    cr_expect_eq(of.at_ns[QUANTILE_GRID - 1], 100);
}

/* Most samples lie at one end and one far away, so many fall into few buckets. */
static int64_t crowded(uint64_t i, int shape)
{
    return (int64_t)(ifl_mix(i) >> (24 + i % 39 * (unsigned)shape / 3)) - 1000;
}

Test(quantile, thinning_changes_no_quantile)
{
    enum { N = 100000 };
    static int64_t all[N], thin[N];
    static uint32_t counts[N], count[N];
    for (int shape = 0; shape < 8; shape++) {
        struct distribution exact, thinned;
        size_t n_left;
        for (uint64_t i = 0; i < N; i++) {
            all[i] = thin[i] = crowded(i, shape / 2);
            counts[i] = count[i] = shape % 2 ? (uint32_t)(ifl_mix(~i) >> 32) : 1;
        }
        cr_assert_eq(sort_by_key(all, counts, N, &error), IFL_OK);
        cr_assert_eq(quantile_thin(thin, shape % 2 ? count : NULL, N, count, &n_left, &error),
                     IFL_OK);
        quantile_describe(all, counts, N, &exact);
        quantile_describe(thin, count, n_left, &thinned);
        for (size_t i = 0; i < QUANTILE_GRID; i++)
            cr_assert_eq(thinned.at_ns[i], exact.at_ns[i], "shape %d, quantile %zu", shape, i);
        cr_expect(shape > 1 || n_left < N, "even samples thin out");
    }
}

Test(quantile, thinning_of_few)
{
    int64_t value[] = {INT64_MAX, INT64_MIN, 5};
    uint32_t count[] = {1, 1, 1};
    size_t n_left;
    cr_assert_eq(quantile_thin(value, count, 0, count, &n_left, &error), IFL_OK);
    cr_expect_eq(n_left, 0);
    cr_assert_eq(quantile_thin(value, count, 3, count, &n_left, &error), IFL_OK);
    cr_expect_eq(n_left, 3);
    cr_expect_eq(one_quantile(value, count, 3, 0.5), 5);
}

static int ascending(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

Test(sort, agrees_with_the_c_library)
{
    enum { N = 5000 };
    static int64_t ours[N], theirs[N];
    for (int bits = 1; bits <= 64; bits += 7) {
        for (uint64_t i = 0; i < N; i++)
            ours[i] = theirs[i] = (int64_t)ifl_mix(i) >> (64 - bits);
        cr_assert_eq(sort_by_key(ours, NULL, N, &error), IFL_OK);
        qsort(theirs, N, sizeof *theirs, ascending);
        cr_assert_arr_eq(ours, theirs, sizeof ours);
    }
}

Test(sort, the_whole_range_of_keys)
{
    int64_t key[] = {INT64_MAX, 0, INT64_MIN, -1, 1, INT64_MIN};
    uint32_t tag[] = {0, 1, 2, 3, 4, 5};
    const int64_t sorted[] = {INT64_MIN, INT64_MIN, -1, 0, 1, INT64_MAX};
    const uint32_t tags[] = {2, 5, 3, 1, 4, 0};
    cr_assert_eq(sort_by_key(key, tag, 6, &error), IFL_OK);
    cr_expect_arr_eq(key, sorted, sizeof sorted);
    cr_expect_arr_eq(tag, tags, sizeof tags, "equal keys keep their order");
}
