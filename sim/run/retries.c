#include "run/retries.h"

#include <stdlib.h>

static int fail(const struct ifl_trace *trace, uint32_t row, const char *expected,
                struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_INPUT, "request %llu is retry_of %lld, expected %s",
                    (unsigned long long)ifl_trace_id(trace, row), (long long)trace->retry_of[row],
                    expected);
}

/* Follows the retries from the row to the one that was sent first. */
static int find_first(const struct ifl_trace *trace, const size_t *before, uint32_t row,
                      uint32_t *first, struct ifl_error *error)
{
    size_t n_steps = 0, at = row;
    if (trace->retry_of[row] >= 0 && (uint64_t)trace->retry_of[row] == ifl_trace_id(trace, row))
        return fail(trace, row, "another request than itself", error);
    for (; before[at] != trace->n && before[at] != at; at = before[at])
        if (++n_steps > trace->n)
            return fail(trace, row, "no retries in a circle", error);
    *first = (uint32_t)at;
    return trace->n_prompt[row] == trace->n_prompt[*first]
               ? 0
               : fail(trace, row, "one with as many prompt_tokens", error);
}

static void number(const struct ifl_trace *trace, const uint32_t *first_sent, uint64_t *repeats)
{
    for (size_t i = 0; i < trace->n; i++)
        if (trace->retry_of[i] >= 0)
            repeats[i] = repeats[first_sent[i]] = (uint64_t)first_sent[i] + 1;
}

int retries_find(const struct ifl_trace *trace, uint32_t **first_sent, uint64_t **repeats,
                 struct ifl_error *error)
{
    size_t *before;
    int rc = ifl_trace_repeated(trace, &before, error);
    *first_sent = malloc((trace->n + 1) * sizeof **first_sent);
    *repeats = calloc(trace->n + 1, sizeof **repeats);
    if (rc == 0 && (!*first_sent || !*repeats))
        rc = ifl_fail_nomem(error);
    for (uint32_t i = 0; rc == 0 && i < trace->n; i++)
        rc = find_first(trace, before, i, &(*first_sent)[i], error);
    if (rc == 0)
        number(trace, *first_sent, *repeats);
    free(before);
    return rc;
}
