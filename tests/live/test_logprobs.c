/* Logarithms of probabilities against closed forms: logits that are logarithms of weights. */
#include <criterion/criterion.h>
#include <math.h>

#include "run/logprobs.h"

Test(logprobs, are_those_of_weights)
{
    /* weights 1, 4, 2, 4, 5 of 16, and all of them 2^100 times as large */
    const float shift = 100 * logf(2);
    const float logits[] = {shift, logf(4) + shift, logf(2) + shift, logf(4) + shift,
                            logf(5) + shift};
    struct ifl_logprobs of;
    logprobs_of(logits, 5, 2, 3, &of);
    cr_expect_float_eq(of.of_token, log(2.0 / 16), 1e-5);
    cr_assert_eq(of.n, 3);
    const int32_t wanted[] = {4, 1, 3};
    const double weights[] = {5, 4, 4};
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(of.token[i], wanted[i]);
        cr_expect_float_eq(of.of[i], log(weights[i] / 16), 1e-5);
    }
}

Test(logprobs, of_few_and_of_all)
{
    enum { N = 50 };
    float logits[N];
    struct ifl_logprobs of;
    for (int32_t i = 0; i < N; i++)
        logits[i] = (float)(i * 7 % N); /* each of 0 to 49 once */
    logprobs_of(logits, N, 0, 0, &of);
    cr_expect_eq(of.n, 0);
    logprobs_of(logits, N, 0, 1000, &of);
    cr_assert_eq(of.n, IFL_MOST_LOGPROBS);
    for (int32_t i = 0; i < of.n; i++)
        cr_expect_eq(of.token[i] * 7 % N, N - 1 - i, "the %d-th is %d", i, of.token[i]);
    logprobs_of(logits, 3, 1, 20, &of);
    cr_expect_eq(of.n, 3, "no more than there are");
}
