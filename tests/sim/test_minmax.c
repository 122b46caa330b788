#include <criterion/criterion.h>
#include <stdint.h>

#include "inflight/minmax.h"

Test(minmax, the_wider_type_counts)
{
    const int32_t small = -5;
    const int64_t large = INT64_C(1) << 40;
    cr_assert_eq(ifl_min(large, small), -5);
    cr_assert_eq(ifl_max(small, large), INT64_C(1) << 40);
    cr_assert_eq(sizeof ifl_min(small, large), sizeof(int64_t));
    cr_assert_eq(sizeof ifl_min(small, 1), sizeof(int32_t));
    cr_assert_eq(ifl_max((size_t)1, SIZE_MAX), SIZE_MAX);
    cr_assert_eq(ifl_min(UINT64_MAX, UINT64_MAX - 1), UINT64_MAX - 1);
    cr_assert_eq(ifl_min(INT64_MIN, INT64_MAX), INT64_MIN);
}

Test(minmax, an_argument_is_evaluated_once)
{
    int n = 0;
    cr_assert_eq(ifl_max(n++, -1), 0);
    cr_assert_eq(ifl_min(n++, 9), 1);
    cr_assert_eq(n, 2);
}
