/* The outcomes of the requests of a recorded run, row by row. */
#include "traces.h"

int trace_rows_want_outcomes(struct trace_rows *rows, enum trace_gaps gaps, struct ifl_error *error)
{
    ifl_assert(rows->trace->n == 0);
    const int rc = trace_rows_want(rows, TRACE_OUTCOME, error);
    if (rc < 0 || gaps == TRACE_WITHOUT_GAPS)
        return rc;
    rows->trace->gap_at = calloc(rows->cap + 1, sizeof *rows->trace->gap_at);
    return rows->trace->gap_at ? 0 : ifl_fail_nomem(error);
}

void trace_rows_outcome(struct trace_rows *rows, const struct ifl_outcome *outcome)
{
    ifl_assert(rows->trace->n > 0 && rows->trace->outcome);
    rows->trace->outcome[rows->trace->n - 1] = *outcome;
}

int trace_rows_gap(struct trace_rows *rows, int64_t gap_ns, struct ifl_error *error)
{
    ifl_assert(rows->trace->n > 0 && rows->trace->gap_at);
    struct ifl_trace *trace = rows->trace;
    if (trace_reserve(&trace->gap_ns, &rows->cap_gaps, rows->n_gaps + 1, sizeof *trace->gap_ns,
                      error) < 0)
        return error->code;
    trace->gap_ns[rows->n_gaps++] = gap_ns;
    trace->gap_at[trace->n] = rows->n_gaps;
    return 0;
}

void trace_rows_next_run(struct trace_rows *rows)
{
    if (!rows->several_runs)
        trace_note(rows->notes,
                   "%s: another run begins behind request %zu; workload.skip and workload.limit "
                   "choose one of them",
                   rows->path, rows->n_records - 1);
    rows->several_runs = true;
}
