/* Predictions against their documented distributions. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "replica/predictor.h"

enum { N = 20000, TRUTH = 10000 };

Test(predictor, none_and_oracle)
{
    const struct predictor none = {.model = PREDICT_NONE}, oracle = {.model = PREDICT_ORACLE};
    cr_assert_eq(predictor_tell(&none, 1, 7, 9), -1);
    cr_assert_eq(predictor_tell(&oracle, 1, 7, 9), 7);
    cr_assert_eq(predictor_tell(&oracle, 1, 12, 9), 9, "never more than was declared");
}

/* log(predicted / true) is normal with mean 0 and deviation sigma: within 4 standard errors. */
Test(predictor, lognormal_error_has_its_sigma)
{
    const struct predictor p = {.model = PREDICT_LOGNORMAL, .sigma = 0.3, .seed = 5};
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < N; i++) {
        const double error = log((double)predictor_tell(&p, i, TRUTH, INT32_MAX) / TRUTH);
        sum += error;
        squares += error * error;
    }
    cr_assert_lt(fabs(sum / N), 4 * p.sigma / sqrt(N));
    cr_assert_lt(fabs(sqrt(squares / N) - p.sigma), 4 * p.sigma / sqrt(2.0 * N));
}

Test(predictor, a_prediction_depends_on_seed_and_request_alone)
{
    const struct predictor p = {.model = PREDICT_LOGNORMAL, .sigma = 0.5, .seed = 1};
    const struct predictor q = {.model = PREDICT_LOGNORMAL, .sigma = 0.5, .seed = 2};
    int32_t n_other_seed = 0, n_other_request = 0;
    for (uint64_t i = 0; i < 100; i++) {
        const int32_t told = predictor_tell(&p, i, TRUTH, INT32_MAX);
        cr_assert_eq(told, predictor_tell(&p, i, TRUTH, INT32_MAX));
        n_other_seed += told != predictor_tell(&q, i, TRUTH, INT32_MAX);
        n_other_request += told != predictor_tell(&p, i + 1, TRUTH, INT32_MAX);
    }
    cr_assert_gt(n_other_seed, 90);
    cr_assert_gt(n_other_request, 90);
}

/* Lengths 1..8 in buckets of 4 are predicted as 4 or 8; a miss gives the neighbouring bucket. */
Test(predictor, buckets)
{
    const struct predictor right = {.model = PREDICT_BUCKETS, .bucket_tokens = 4};
    const struct predictor wrong = {.model = PREDICT_BUCKETS, .bucket_tokens = 4, .miss_frac = 1};
    for (int32_t length = 1; length <= 8; length++)
        cr_assert_eq(predictor_tell(&right, 0, length, 100), length <= 4 ? 4 : 8);
    int32_t n_below = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const int32_t told = predictor_tell(&wrong, i, 6, 100);
        cr_assert(told == 4 || told == 12);
        n_below += told == 4;
        cr_assert_eq(predictor_tell(&wrong, i, 2, 100), 8, "nothing is below the first");
    }
    cr_assert(n_below > 430 && n_below < 570, "%d of 1000", n_below);
}
