#include "flown.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

void flown_well(struct fixture *f, uint64_t seed)
{
    struct ifl_error error = {0};
    const int rc = fixture_fly(f, &error);
    cr_assert_eq(rc, 0, "seed %llu: %s", (unsigned long long)seed, error.text);
    cr_assert_eq(f->complaint[0], '\0', "seed %llu: %s", (unsigned long long)seed, f->complaint);
}

void flown_each_once(const struct fixture *f, uint64_t seed)
{
    bool *seen = calloc(f->trace.n + 1, sizeof *seen);
    cr_assert_not_null(seen);
    cr_assert_eq(f->capture.n_requests, f->trace.n, "seed %llu: %zu of %zu ended",
                 (unsigned long long)seed, f->capture.n_requests, f->trace.n);
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        cr_assert(!seen[r->request_id], "seed %llu: request %llu ended twice",
                  (unsigned long long)seed, (unsigned long long)r->request_id);
        seen[r->request_id] = true;
        if (r->status == IFL_FINISHED)
            cr_assert_eq(r->output_tokens, f->trace.n_output[r->request_id]);
    }
    free(seen);
}

/* Compares up to the last field; the padding behind it has no defined value. */
static bool is_same(const struct ifl_request_record *a, const struct ifl_request_record *b)
{
    return memcmp(a, b, offsetof(struct ifl_request_record, status)) == 0 && a->status == b->status;
}

void flown_same_requests(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    cr_assert_eq(a->capture.n_steps, b->capture.n_steps, "seed %llu: %zu steps, %zu",
                 (unsigned long long)seed, a->capture.n_steps, b->capture.n_steps);
    for (size_t i = 0; i < a->capture.n_requests; i++)
        cr_assert(is_same(&a->capture.requests[i], &b->capture.requests[i]),
                  "seed %llu: steady runs show in request %zu", (unsigned long long)seed, i);
}

void flown_same_steps(const struct fixture *a, const struct fixture *b, uint64_t seed)
{
    const size_t n_steps = a->capture.n_steps;
    flown_same_requests(a, b, seed);
    cr_assert(n_steps == 0 || memcmp(a->capture.steps, b->capture.steps,
                                     n_steps * sizeof *a->capture.steps) == 0,
              "seed %llu: steady runs show", (unsigned long long)seed);
}
