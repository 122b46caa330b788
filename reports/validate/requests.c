/* validation_requests.csv: a row a pair, both sides of it. */
#include <math.h>
#include <stdlib.h>

#include "tables/row.h"
#include "tables/sort.h"
#include "tables/whole_file.h"
#include "validate/findings.h"

static const enum metric shown[] = {TTFT, TPOT, E2E, QUEUE};
enum { N_SHOWN = sizeof shown / sizeof *shown, N_FIELDS = 5 + 2 * N_SHOWN + 2 };

static int write_header(struct whole_file *file, struct ifl_error *error)
{
    char text[512];
    int at =
        snprintf(text, sizeof text, "request_id,arrival_s,prompt_tokens,output_tokens,in_flight");
    for (int m = 0; m < N_SHOWN; m++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",simulated_%s,measured_%s",
                       metric_name[shown[m]], metric_name[shown[m]]);
    snprintf(text + at, sizeof text - (size_t)at, ",e2e_relative_error,client\n");
    return whole_write(file, text, error);
}

static double relative_error(const struct pairs *pairs, size_t i)
{
    const int64_t measured = pairs_metric_ns(pairs, MEASURED, E2E, i);
    const int64_t simulated = pairs_metric_ns(pairs, SIMULATED, E2E, i);
    return measured > 0 ? (double)(simulated - measured) / (double)measured : (double)NAN;
}

/* The recording's name of the client; empty if it has none. */
static const char *client_of(const struct ifl_trace *trace, size_t row, char number[16])
{
    number[0] = '\0';
    if (trace->client && trace->client_names)
        return trace->client_names[trace->client[row]];
    if (trace->client)
        snprintf(number, 16, "%u", trace->client[row]);
    return number;
}

static int write_pair(struct whole_file *file, const struct pairs *pairs, size_t i, size_t n_before,
                      struct ifl_error *error)
{
    const struct ifl_trace *measured = pairs->trace[MEASURED];
    const size_t row = pairs->of[i].row[MEASURED];
    char number[16];
    const char *client = client_of(measured, row, number);
    char *at = whole_room(file, N_FIELDS * (size_t)ROW_REAL_BYTES + row_text_bytes(client), error);
    if (!at)
        return error->code;
    at = row_uint(at, ifl_trace_id(measured, row));
    at = row_seconds(at, measured->arrival_ns[row]);
    at = row_int(at, measured->n_prompt[row]);
    at = row_int(at, measured->n_output[row]);
    at = row_uint(at, n_before);
    for (int m = 0; m < N_SHOWN; m++)
        for (int s = 0; s < N_SIDES; s++)
            at = row_seconds(at, pairs_metric_ns(pairs, (enum side)s, shown[m], i));
    at = row_real(at, relative_error(pairs, i));
    at = row_text(at, client);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

/* Arrivals and finishes of all pairs, judged or not, each list in ascending order. */
struct comings {
    int64_t *arrival_ns, *finish_ns; /* [n] */
    size_t n;
};

static int gather(const struct pairs *pairs, struct comings *all, struct ifl_error *error)
{
    for (size_t i = 0; i < all->n; i++) {
        all->arrival_ns[i] = pairs_arrival_ns(pairs, MEASURED, i);
        all->finish_ns[i] = pairs_finish_ns(pairs, MEASURED, i);
    }
    const int rc = sort_by_key(all->arrival_ns, NULL, all->n, error);
    return rc ? rc : sort_by_key(all->finish_ns, NULL, all->n, error);
}

/* Pairs are in order of measured arrival: earlier pairs that have not finished are in flight. */
static int write_rows(struct whole_file *file, const struct pairs *pairs, const struct comings *all,
                      struct ifl_error *error)
{
    size_t n_came = 0, n_left = 0;
    int rc = IFL_OK;
    for (size_t i = 0; rc == IFL_OK && i < pairs->n; i++) {
        const int64_t arrival_ns = pairs_arrival_ns(pairs, MEASURED, i);
        while (n_came < all->n && all->arrival_ns[n_came] < arrival_ns)
            n_came++;
        while (n_left < n_came && all->finish_ns[n_left] <= arrival_ns)
            n_left++;
        rc = write_pair(file, pairs, i, n_came - n_left, error);
    }
    return rc;
}

static int write_file(const struct pairs *pairs, const struct comings *all, const char *path,
                      struct ifl_error *error)
{
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    int rc = write_header(&file, error);
    if (rc == IFL_OK)
        rc = write_rows(&file, pairs, all, error);
    return whole_finish(&file, rc, error);
}

int write_pairs(const struct pairs *pairs, const char *path, struct ifl_error *error)
{
    struct comings all = {malloc(pairs->n_all * sizeof(int64_t)),
                          malloc(pairs->n_all * sizeof(int64_t)), pairs->n_all};
    int rc = all.arrival_ns && all.finish_ns ? gather(pairs, &all, error) : ifl_fail_nomem(error);
    if (rc == IFL_OK)
        rc = write_file(pairs, &all, path, error);
    free(all.arrival_ns);
    free(all.finish_ns);
    return rc;
}
