/* requests.csv of inflight itself, simulated or replayed: one point of a run. */
#include "traces.h"

#include <string.h>

#include "inflight/nearest.h"
#include "inflight/report.h"

enum { POINT, ID, STATUS, ARRIVAL, PROMPT, OUTPUT, TTFT, E2E, QUEUE, PREEMPTIONS, N_COLUMNS };

static const struct trace_csv_column columns[N_COLUMNS] = {
    [POINT] = {"point", TRACE_NEEDED},          [ID] = {"request_id", TRACE_NEEDED},
    [STATUS] = {"status", TRACE_NEEDED},        [ARRIVAL] = {"arrival_s", TRACE_NEEDED},
    [PROMPT] = {"prompt_tokens", TRACE_NEEDED}, [OUTPUT] = {"output_tokens", TRACE_NEEDED},
    [TTFT] = {"ttft_s", TRACE_NEEDED},          [E2E] = {"e2e_s", TRACE_NEEDED},
    [QUEUE] = {"queue_s", TRACE_NEEDED},        [PREEMPTIONS] = {"preemptions", TRACE_NEEDED},
};

struct run {
    struct trace_rows *rows;
    int64_t point; /* -1 before the first row */
};

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct run *run = self;
    (void)row;
    run->rows->trace->has_stamps = true;
    const int rc = trace_rows_want_outcomes(run->rows, TRACE_WITHOUT_GAPS, error);
    return rc < 0 ? rc : trace_rows_want(run->rows, TRACE_REQUEST_ID, error);
}

static int check_point(struct run *run, const struct trace_row *row, struct ifl_error *error)
{
    int64_t point = 0;
    char expected[64];
    const int rc = trace_row_whole(row, POINT, 0, INT32_MAX, &point, error);
    if (rc < 0 || run->point < 0 || point == run->point) {
        run->point = point;
        return rc;
    }
    snprintf(expected, sizeof expected, "%lld as above: a trace is one point of a run",
             (long long)run->point);
    return trace_row_fail(row, POINT, expected, error);
}

static int take_status(const struct trace_row *row, enum ifl_status *status,
                       struct ifl_error *error)
{
    const char *text = trace_row_text(row, STATUS);
    char expected[128];
    for (int s = 0; s < IFL_N_STATUSES; s++)
        if (strcmp(text, ifl_status_names[s]) == 0) {
            *status = (enum ifl_status)s;
            return 0;
        }
    const char *near = ifl_nearest(text, ifl_status_names, IFL_N_STATUSES);
    snprintf(expected, sizeof expected,
             "finished, rejected, failed, aborted, timed_out or shed%s%s%s",
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return trace_row_fail(row, STATUS, expected, error);
}

/* Times are empty where undefined. */
static int take_outcome(const struct trace_row *row, struct ifl_outcome *outcome,
                        struct ifl_error *error)
{
    int64_t preemptions = 0;
    enum ifl_status status = IFL_FAILED;
    int rc = take_status(row, &status, error);
    if (rc == 0)
        rc = trace_row_seconds_or(row, QUEUE, IFL_NEVER, &outcome->queue_ns, error);
    if (rc == 0)
        rc = trace_row_seconds_or(row, TTFT, IFL_NEVER, &outcome->ttft_ns, error);
    if (rc == 0)
        rc = trace_row_seconds_or(row, E2E, IFL_NEVER, &outcome->e2e_ns, error);
    if (rc == 0)
        rc = trace_row_whole(row, PREEMPTIONS, 0, INT32_MAX, &preemptions, error);
    outcome->preemptions = (int32_t)preemptions;
    if (status != IFL_FINISHED)
        outcome->e2e_ns = IFL_NEVER;
    return rc;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct run *run = self;
    struct ifl_outcome outcome = {0};
    int64_t id = 0, arrival_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = check_point(run, row, error);
    if (rc == 0)
        rc = trace_row_whole(row, ID, 0, INT64_MAX, &id, error);
    if (rc == 0)
        rc = trace_ids_add(&run->rows->ids, (uint64_t)id, trace_row_line(row), error);
    if (rc == 0)
        rc = trace_row_stamp(row, ARRIVAL, &arrival_ns, error);
    if (rc == 0)
        rc = trace_row_tokens(row, PROMPT, 1, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, OUTPUT, 0, &output, error);
    if (rc == 0)
        rc = take_outcome(row, &outcome, error);
    if (rc == 0)
        rc = trace_rows_add(run->rows, arrival_ns, prompt, output, error);
    if (rc <= 0)
        return rc;
    run->rows->trace->request_id[run->rows->trace->n - 1] = (uint64_t)id;
    trace_rows_outcome(run->rows, &outcome);
    return 0;
}

int trace_read_requests(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct run run = {.rows = rows, .point = -1};
    const struct trace_csv_format format = {.columns = columns, .n_columns = N_COLUMNS};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = &run, .rows = rows};
    return trace_csv_read(input, &format, &reader, error);
}
