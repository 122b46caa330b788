/* Arrays that grow, with the pages that malloc gives and takes back. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/array.h"

/* Copied as long as it is small, then moved by the system. */
Test(array, keeps_what_is_in_use)
{
    const size_t n_most = (size_t)16 * MAPPED_BYTES / sizeof(uint64_t);
    uint64_t *of = NULL;
    array_map_large();
    for (size_t n = 0, cap = 0; n < n_most; of[n] = n, n++)
        cr_assert_eq(array_room(&of, n, &cap, 8, sizeof *of), 0);
    for (size_t i = 0; i < n_most; i++)
        if (of[i] != i)
            cr_assert_fail("element %zu is %llu", i, (unsigned long long)of[i]);
    free(of);
}
