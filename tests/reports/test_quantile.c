#include <criterion/criterion.h>
#include <math.h>

#include "inflight/random.h"
#include "record/pair.h"
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
    return (int64_t)(ifl_mix(i) >> (24 + i % 39 * (unsigned)shape / 3));
}

Test(quantile, thinning_changes_no_quantile)
{
    enum { N = 100000 };
    static int64_t all[N], pairs[N];
    static uint32_t counts[N];
    for (int shape = 0; shape < 8; shape++) {
        struct distribution exact, thinned;
        struct counted thin;
        for (uint64_t i = 0; i < N; i++) {
            all[i] = crowded(i, shape / 2);
            counts[i] = shape % 2 ? (uint32_t)(ifl_mix(~i) >> 48) | 1 : 1;
            pairs[i] = pair_of(all[i], counts[i]);
        }
        cr_assert_eq(sort_by_key(all, counts, N, &error), IFL_OK);
        cr_assert_eq(quantile_thin(pairs, N, &thin, &error), IFL_OK);
        quantile_describe(all, counts, N, &exact);
        quantile_describe(thin.value, thin.count, thin.n, &thinned);
        for (size_t i = 0; i < QUANTILE_GRID; i++)
            cr_assert_eq(thinned.at_ns[i], exact.at_ns[i], "shape %d, quantile %zu", shape, i);
        cr_expect(shape > 1 || thin.n < N, "even samples thin out");
        counted_free(&thin);
    }
}

Test(quantile, thinning_of_few)
{
    int64_t pairs[] = {pair_of(PAIR_MOST_NS, 1), pair_of(0, PAIR_MOST_TIMES), pair_of(5, 65534)};
    struct counted thin;
    cr_assert_eq(quantile_thin(pairs, 0, &thin, &error), IFL_OK);
    cr_expect_eq(thin.n, 0);
    counted_free(&thin);
    cr_assert_eq(quantile_thin(pairs, 3, &thin, &error), IFL_OK);
    cr_expect_eq(thin.n, 3);
    cr_expect_eq(one_quantile(thin.value, thin.count, 3, 0.5), 2.5, "65,535 times 0, 65,535 above");
    cr_expect_eq(one_quantile(thin.value, thin.count, 3, 1), (INT64_C(1) << 47) - 1);
    counted_free(&thin);
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
