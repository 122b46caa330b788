/* No allocation in the event loop: a run twice as long allocates exactly as often.
 *
 * The linker wraps the allocator (--wrap), so every call of the simulator's objects is counted. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fixture.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);

static size_t n_allocations;

void *__wrap_malloc(size_t n)
{
    n_allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    n_allocations++;
    return __real_realloc(old, n);
}

/* A load that repeats every 64 requests: bursts that preempt, quiet times that drain. */
static size_t allocations_of(size_t n_requests, const char *fate, const char *mixed)
{
    struct fixture f = {.limits = {.block_tokens = 4,
                                   .n_blocks = 120,
                                   .n_host_blocks = 60,
                                   .max_model_tokens = 200},
                        .linear = {.step_s = 0.01, .prefill_token_s = 1e-5}};
    struct ifl_error error;
    uint64_t n_preemptions = 0;
    fixture_vllm(&f, "{max_seqs: 16}", fate);
    if (mixed)
        fixture_module(&f, IFL_BATCHING, "mixed", mixed);
    fixture_trace(&f, n_requests);
    for (size_t i = 0; i < n_requests; i++) {
        f.trace.arrival_ns[i] = (int64_t)(i / 64) * 8000000000 + (int64_t)(i % 64) * 20000000;
        f.trace.n_prompt[i] = 10 + (int32_t)(i % 64) / 2;
        f.trace.n_output[i] = 20 + (int32_t)(i * 7 % 64) / 2;
    }
    f.capture.cap_requests = n_requests + 1;
    f.capture.requests = malloc(f.capture.cap_requests * sizeof *f.capture.requests);
    const size_t before = n_allocations;
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    const size_t n = n_allocations - before;
    cr_assert_eq(f.capture.n_requests, n_requests);
    for (size_t i = 0; i < n_requests; i++)
        n_preemptions += (uint64_t)f.capture.requests[i].preemptions;
    cr_assert(n_preemptions > n_requests / 10, "the load must preempt");
    fixture_free(&f);
    return n;
}

static void check(const char *fate, const char *mixed)
{
    cr_assert_eq(allocations_of(640, fate, mixed), allocations_of(6400, fate, mixed));
}

Test(allocations, recompute)
{
    check("{fate: recompute}", NULL);
}
Test(allocations, swap)
{
    check("{fate: swap}", NULL);
}
Test(allocations, chunks)
{
    check("{fate: recompute, of: ranked}", "{max_seqs: 200, chunk_tokens: 32, walk: ranked}");
}
