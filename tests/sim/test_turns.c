/* Deficit round robin among the classes of a gateway. */
#include <criterion/criterion.h>

#include "fleet/turns.h"
#include "inflight/minmax.h"
#include "inflight/random.h"

static struct classes of_list(const char *list)
{
    struct classes classes;
    struct ifl_error error;
    cr_assert_eq(classes_read(&classes, list, &error), 0, "%s", error.text);
    return classes;
}

/* While all classes have work and no request is larger than a quantum, what two classes were
 * served, in quanta, differs by at most 1 + 2 x largest / quantum of each (Shreedhar and Varghese
 * 1996, theorem 2). With larger requests whole rounds are given at once, as Dynamo does, and shares
 * may be some percent beside the quanta. */
Test(turns, classes_are_served_as_their_quanta)
{
    const struct classes classes = of_list("0:1000,10:3000,1000:900");
    enum { N = 3, LARGEST = 900, N_SERVED = 20000 };
    struct turns turns = {0};
    int64_t heads[CLASSES_MOST] = {1, 1, 1}, served[N] = {0};
    uint64_t state = 1;
    for (int k = 0; k < N_SERVED; k++) {
        const int i = turns_next(&turns, &classes, heads);
        cr_assert(i >= 0 && i < N);
        cr_assert_geq(turns.credit_tokens[i], heads[i]);
        turns_spend(&turns, &classes, i, heads[i]);
        served[i] += heads[i];
        heads[i] = 1 + (int64_t)(ifl_mix(state++) % LARGEST);
        for (int j = 0; j < N; j++) {
            const double own = (double)served[i] / (double)classes.quantum_tokens[i],
                         its = (double)served[j] / (double)classes.quantum_tokens[j];
            cr_assert_lt(own - its, 1 + 2.0 * LARGEST / (double)classes.quantum_tokens[i] +
                                        2.0 * LARGEST / (double)classes.quantum_tokens[j]);
        }
    }
}

/* Tokens of class 0 for each token of class 1, where so many requests go until none may. */
static double share(const char *list, int64_t a, int64_t b, int n_at_a_time)
{
    const struct classes classes = of_list(list);
    const int64_t heads[CLASSES_MOST] = {a, b}, none[CLASSES_MOST] = {0, 0};
    struct turns turns = {0};
    int64_t served[2] = {0};
    for (int k = 0; k < 60000; k++) {
        const int i = turns_next(&turns, &classes, heads);
        cr_assert(i == 0 || i == 1);
        turns_spend(&turns, &classes, i, heads[i]);
        served[i] += heads[i];
        if ((k + 1) % n_at_a_time == 0)
            cr_assert_eq(turns_next(&turns, &classes, none), NO_CLASS);
    }
    return (double)served[0] / (double)served[1];
}

/* As capacity is freed, Dynamo's router takes requests until none may go; with that the class that
 * was served last loses its turn (policy_queue.rs, carry_class, and queue.rs, handle_update). Where
 * one goes at a time, each request of class 0 gives class 1 a quantum, which needs several for its
 * own requests: shares are a request of class 0 to a quantum of class 1. Where all may go they are
 * those of the quanta. */
Test(turns, a_turn_ends_where_no_request_may_go)
{
    static const char list[] = "0:4096,2048:1024";
    cr_expect_float_eq(share(list, 1000, 3000, INT32_MAX), 4, 0.01);
    cr_expect_float_eq(share(list, 1000, 3000, 1), 1000.0 / 1024, 0.01);
    cr_expect_float_eq(share(list, 100, 2100, 1), 100.0 / 1024, 0.01);
    cr_expect_float_eq(share(list, 1000, 3000, 8), 2.909, 0.001); /* by a model in Python */
    cr_expect_float_eq(share(list, 1000, 3000, 64), 3.813, 0.001);
}

Test(turns, a_class_that_may_not_go_gets_nothing)
{
    const struct classes classes = of_list("0:10,5:10");
    const int64_t heads[CLASSES_MOST] = {0, 35}, none[CLASSES_MOST] = {0, 0};
    struct turns turns = {0};
    cr_expect_eq(turns_next(&turns, &classes, none), NO_CLASS);
    cr_expect_eq(turns_next(&turns, &classes, heads), 1);
    cr_expect_eq(turns.credit_tokens[0], 0);
    cr_expect_eq(turns.credit_tokens[1], 40);
    turns_spend(&turns, &classes, 1, 35);
    turns_forget(&turns, 1);
    cr_expect_eq(turns.credit_tokens[1], 0, "an empty class keeps no credit");
}

Test(turns, a_class_is_told_by_its_tokens)
{
    const struct classes classes = of_list("0:1,10:1,1000:1"), none = of_list("");
    static const int32_t tokens[] = {1, 9, 10, 999, 1000, INT32_MAX};
    static const int expected[] = {0, 0, 1, 1, 2, 2};
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(classes_of(&classes, tokens[i]), expected[i]);
        cr_expect_eq(classes_of(&none, tokens[i]), 0);
    }
}
