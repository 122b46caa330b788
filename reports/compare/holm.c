#include "compare/holm.h"

#include <math.h>
#include <stdlib.h>

static int by_p_then_row(const void *left, const void *right)
{
    const struct holm_test *a = left, *b = right;
    if (a->p < b->p || a->p > b->p)
        return a->p < b->p ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

void holm_correct(struct holm_test *tests, size_t n)
{
    double most = 0;
    if (n > 0)
        qsort(tests, n, sizeof *tests, by_p_then_row);
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fmin(1, (double)(n - i) * tests[i].p));
        tests[i].p = most;
    }
}
