/* Holm's correction for several tests at once (Holm, Scandinavian Journal of Statistics 6(2),
 * 1979).
 *
 * If each corrected p below alpha is taken for a difference, the probability of any false
 * difference among all n tests is at most alpha, however the tests depend on each other. */
#ifndef INFLIGHT_REPORTS_COMPARE_HOLM_H
#define INFLIGHT_REPORTS_COMPARE_HOLM_H

#include <stddef.h>

struct holm_test {
    size_t row; /* for the caller's use; unchanged */
    double p;   /* in [0, 1], then corrected */
};

/* Corrects the p-values of a family of n tests and sorts it by them: the i-th smallest becomes the
 * largest of (n - j) p_j over j = 0 to i, at most 1. */
void holm_correct(struct holm_test *tests, size_t n);

#endif
