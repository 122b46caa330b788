/* validation_requests.csv: a row a pair, both sides of it. */
#include <math.h>
#include <stdlib.h>

#include "row.h"
#include "sort.h"
#include "validate/findings.h"
#include "whole_file.h"

static const enum metric shown[] = {TTFT, TPOT, E2E, QUEUE};
enum { N_SHOWN = sizeof shown / sizeof *shown, N_FIELDS = 5 + 2 * N_SHOWN + 1 };

static int write_header(struct whole_file *file, struct ifl_error *error)
{
    char text[512];
    int at =
        snprintf(text, sizeof text, "request_id,arrival_s,prompt_tokens,output_tokens,in_flight");
    for (int m = 0; m < N_SHOWN; m++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",simulated_%s,measured_%s",
                       metric_name[shown[m]], metric_name[shown[m]]);
    snprintf(text + at, sizeof text - (size_t)at, ",e2e_relative_error\n");
    return whole_write(file, text, error);
}

static double relative_error(const struct pairs *pairs, size_t i)
{
    const int64_t measured = pairs_metric_ns(pairs, MEASURED, E2E, i);
    const int64_t simulated = pairs_metric_ns(pairs, SIMULATED, E2E, i);
    return measured > 0 ? (double)(simulated - measured) / (double)measured : (double)NAN;
}

static int write_pair(struct whole_file *file, const struct pairs *pairs, size_t i, size_t n_before,
                      struct ifl_error *error)
{
    const struct ifl_trace *measured = pairs->trace[MEASURED];
    const size_t row = pairs->of[i].row[MEASURED];
    char *at = whole_room(file, N_FIELDS * (size_t)ROW_REAL_BYTES, error);
    if (!at)
        return error->code;
    at = row_uint(at, pairs_id(measured, row));
    at = row_seconds(at, measured->arrival_ns[row]);
    at = row_int(at, measured->n_prompt[row]);
    at = row_int(at, measured->n_output[row]);
    at = row_uint(at, n_before);
    for (int m = 0; m < N_SHOWN; m++)
        for (int s = 0; s < N_SIDES; s++)
            at = row_seconds(at, pairs_metric_ns(pairs, (enum side)s, shown[m], i));
    at = row_real(at, relative_error(pairs, i));
    whole_commit(file, row_end(at));
    return IFL_OK;
}

/* Pairs come by measured arrival: those in flight are the ones before that have not finished. */
static int write_rows(struct whole_file *file, const struct pairs *pairs, int64_t *finish_ns,
                      struct ifl_error *error)
{
    size_t n_finished = 0;
    for (size_t i = 0; i < pairs->n; i++)
        finish_ns[i] = pairs_finish_ns(pairs, MEASURED, i);
    int rc = sort_by_key(finish_ns, NULL, pairs->n, error);
    for (size_t i = 0; rc == IFL_OK && i < pairs->n; i++) {
        const int64_t arrival_ns = pairs_arrival_ns(pairs, MEASURED, i);
        while (n_finished < i && finish_ns[n_finished] <= arrival_ns)
            n_finished++;
        rc = write_pair(file, pairs, i, i - n_finished, error);
    }
    return rc;
}

int write_pairs(const struct pairs *pairs, const char *path, struct ifl_error *error)
{
    struct whole_file file;
    int64_t *finish_ns = malloc(pairs->n * sizeof *finish_ns);
    if (!finish_ns)
        return ifl_fail_nomem(error);
    int rc = whole_open(&file, path, error);
    if (rc == IFL_OK) {
        rc = write_header(&file, error);
        if (rc == IFL_OK)
            rc = write_rows(&file, pairs, finish_ns, error);
        if (rc == IFL_OK)
            rc = whole_close(&file, error);
        if (rc == IFL_OK)
            rc = whole_publish(&file, error);
        whole_discard(&file);
    }
    free(finish_ns);
    return rc;
}
