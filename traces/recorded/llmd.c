/* Requests as measured by llm-d-benchmark's client (LMBenchmark), in seconds. launch_time counts
 * from the first request, generation_time from the first token. If several rates share a file, each
 * new value in the column qps begins a run. https://github.com/llm-d/llm-d-benchmark */
#include "traces.h"

#include <string.h>

enum { QPS, PROMPT, OUTPUT, TTFT, GENERATION, LAUNCH, N_COLUMNS };

static const struct trace_csv_column columns[N_COLUMNS] = {
    [QPS] = {"qps", TRACE_OPTIONAL},
    [PROMPT] = {"prompt_tokens", TRACE_NEEDED},
    [OUTPUT] = {"generation_tokens", TRACE_NEEDED},
    [TTFT] = {"ttft", TRACE_NEEDED},
    [GENERATION] = {"generation_time", TRACE_NEEDED},
    [LAUNCH] = {"launch_time", TRACE_NEEDED},
};

struct runs {
    struct trace_rows *rows;
    char qps[32]; /* of the previous row; empty before the first row */
};

static int take_header(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct runs *runs = self;
    (void)row;
    runs->rows->trace->has_stamps = true;
    return trace_rows_want_outcomes(runs->rows, TRACE_WITHOUT_GAPS, error);
}

static void look_for_the_next_run(struct runs *runs, const struct trace_row *row)
{
    if (!trace_row_bound(row, QPS))
        return;
    const char *qps = trace_row_text(row, QPS);
    if (runs->qps[0] && strncmp(qps, runs->qps, sizeof runs->qps - 1) != 0)
        trace_rows_next_run(runs->rows);
    snprintf(runs->qps, sizeof runs->qps, "%s", qps);
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    struct runs *runs = self;
    struct ifl_outcome outcome = {.queue_ns = IFL_NEVER, .preemptions = -1};
    int64_t arrival_ns = 0, generation_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = trace_row_tokens(row, PROMPT, 0, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, OUTPUT, 0, &output, error);
    if (rc == 0)
        rc = trace_row_stamp(row, TTFT, &outcome.ttft_ns, error);
    if (rc == 0)
        rc = trace_row_stamp(row, GENERATION, &generation_ns, error);
    if (rc == 0)
        rc = trace_row_stamp(row, LAUNCH, &arrival_ns, error);
    if (rc == 0)
        rc = trace_rows_add(runs->rows, arrival_ns, prompt, output, error);
    if (rc < 0)
        return rc;
    look_for_the_next_run(runs, row);
    outcome.e2e_ns = trace_later(outcome.ttft_ns, generation_ns);
    if (rc > 0)
        trace_rows_outcome(runs->rows, &outcome);
    return 0;
}

int trace_read_llmd(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct runs runs = {.rows = rows};
    const struct trace_csv_format format = {.columns = columns, .n_columns = N_COLUMNS};
    const struct trace_csv_reader reader = {
        .header = take_header, .record = take_record, .self = &runs, .rows = rows};
    return trace_csv_read(input, &format, &reader, error);
}
