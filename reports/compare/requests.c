#include "compare/requests.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "inflight/minmax.h"
#include "tables/scan.h"

const char *const latency_name[N_LATENCIES] = {
    [TTFT] = "ttft_s",
    [TPOT] = "tpot_s",
    [E2E] = "e2e_s",
    [QUEUE] = "queue_s",
    [NORMALIZED] = "normalized_latency_s",
};

enum { POINT, REQUEST_ID, ARRIVAL, PROMPT, OUTPUT, FIRST_LATENCY, N_COLUMNS = FIRST_LATENCY + 4 };
static const char *const columns[N_COLUMNS] = {
    "point",  "request_id", "arrival_s", "prompt_tokens", "output_tokens",
    "ttft_s", "tpot_s",     "e2e_s",     "queue_s",
};

/* ---- one run's requests ---- */

struct one {
    uint32_t pair;
    int line; /* of requests.csv */
    double request_id, arrival_s, prompt_tokens, output_tokens, latency_s[N_LATENCIES];
};

struct requests {
    const char *path;
    const uint32_t *pair_of; /* [n_points] the matching's pair of each point, or UINT32_MAX */
    size_t n_points;
    struct one *of; /* [cap], owned */
    size_t n, cap;
    int line; /* the last that was read */
};

static int grow(struct requests *requests, struct ifl_error *error)
{
    if (requests->n < requests->cap)
        return IFL_OK;
    const size_t cap = 2 * requests->cap + 1024;
    struct one *of = realloc(requests->of, cap * sizeof *of);
    if (!of)
        return ifl_fail_nomem(error);
    requests->of = of;
    requests->cap = cap;
    return IFL_OK;
}

static int take_request(void *context, const double *value, struct ifl_error *error)
{
    struct requests *requests = context;
    const double e2e_s = value[FIRST_LATENCY + E2E];
    requests->line++;
    if (!(value[POINT] >= 0 && value[POINT] < (double)requests->n_points))
        return ifl_fail_at(error, requests->path, requests->line, 0,
                           "a request of point %g, expected one of the %zu of summary.csv",
                           value[POINT], requests->n_points);
    if (isnan(e2e_s))
        return IFL_OK;
    const uint32_t pair = requests->pair_of[(size_t)value[POINT]];
    if (pair == UINT32_MAX)
        return IFL_OK;
    if (grow(requests, error))
        return error->code;
    struct one *one = &requests->of[requests->n++];
    *one = (struct one){.pair = pair,
                        .line = requests->line,
                        .request_id = value[REQUEST_ID],
                        .arrival_s = value[ARRIVAL],
                        .prompt_tokens = value[PROMPT],
                        .output_tokens = value[OUTPUT]};
    memcpy(one->latency_s, &value[FIRST_LATENCY], 4 * sizeof *value);
    one->latency_s[NORMALIZED] = value[OUTPUT] > 0 ? e2e_s / value[OUTPUT] : (double)NAN;
    return IFL_OK;
}

static int by_pair_then_id(const void *left, const void *right)
{
    const struct one *a = left, *b = right;
    if (a->pair != b->pair)
        return a->pair < b->pair ? -1 : 1;
    return (a->request_id > b->request_id) - (a->request_id < b->request_id);
}

/* The rows are sorted by id, so that equal ids are neighbours. */
static int check_twins(const struct requests *requests, const char *path, struct ifl_error *error)
{
    for (size_t i = 1; i < requests->n; i++) {
        const struct one *a = &requests->of[i - 1], *b = &requests->of[i];
        if (by_pair_then_id(a, b) == 0)
            return ifl_fail_at(error, path, ifl_max(a->line, b->line), 0,
                               "request_id is %.0f as on line %d, expected each id once",
                               b->request_id, ifl_min(a->line, b->line));
    }
    return IFL_OK;
}

static int read_run(struct requests *requests, const struct matching *matching, enum run run,
                    struct ifl_error *error)
{
    const size_t n_points = matching->summary[run].n_rows;
    uint32_t *pair_of = malloc((n_points + 1) * sizeof *pair_of);
    char path[4096];
    if (!pair_of)
        return ifl_fail_nomem(error);
    memset(pair_of, 0xff, (n_points + 1) * sizeof *pair_of);
    for (size_t i = 0; i < matching->n_pairs; i++)
        pair_of[matching->pairs[i].row[run]] = (uint32_t)i;
    snprintf(path, sizeof path, "%s/requests.csv", matching_dir(matching->of, run));
    *requests =
        (struct requests){.path = path, .pair_of = pair_of, .n_points = n_points, .line = 1};
    const int code = scan_csv(path, N_COLUMNS, columns, take_request, requests, error);
    free(pair_of);
    if (code || requests->n == 0)
        return code;
    qsort(requests->of, requests->n, sizeof *requests->of, by_pair_then_id);
    return check_twins(requests, path, error);
}

/* ---- both ---- */

static bool differ(double a, double b)
{
    return a < b || a > b;
}

static int fail_lengths(const struct matching *matching, const struct one *base,
                        const struct one *other, struct ifl_error *error)
{
    return ifl_fail_at(error, matching->of->other_dir, 0, 0,
                       "request %.0f of point %zu has %.0f prompt and %.0f output tokens, in %s "
                       "%.0f and %.0f: expected runs of the same requests",
                       other->request_id, matching->pairs[other->pair].row[OTHER],
                       other->prompt_tokens, other->output_tokens, matching->of->base_dir,
                       base->prompt_tokens, base->output_tokens);
}

static int join(struct request_pairs *pairs, const struct matching *matching,
                const struct requests run[N_RUNS], struct ifl_error *error)
{
    for (size_t i = 0, k = 0; i < run[BASE].n && k < run[OTHER].n;) {
        const struct one *base = &run[BASE].of[i], *other = &run[OTHER].of[k];
        const int order = by_pair_then_id(base, other);
        i += order <= 0;
        k += order >= 0;
        if (order != 0)
            continue;
        if (differ(base->prompt_tokens, other->prompt_tokens) ||
            differ(base->output_tokens, other->output_tokens))
            return fail_lengths(matching, base, other, error);
        struct request_pair *pair = &pairs->of[pairs->n++];
        *pair = (struct request_pair){.pair = base->pair, .arrival_s = base->arrival_s};
        memcpy(pair->latency_s[BASE], base->latency_s, sizeof base->latency_s);
        memcpy(pair->latency_s[OTHER], other->latency_s, sizeof other->latency_s);
    }
    return IFL_OK;
}

static int by_pair_then_arrival(const void *left, const void *right)
{
    const struct request_pair *a = left, *b = right;
    if (a->pair != b->pair)
        return a->pair < b->pair ? -1 : 1;
    return (a->arrival_s > b->arrival_s) - (a->arrival_s < b->arrival_s);
}

static int pair_up(struct request_pairs *pairs, const struct matching *matching,
                   const struct requests run[N_RUNS], struct ifl_error *error)
{
    const size_t n = ifl_min(run[BASE].n, run[OTHER].n);
    pairs->of = malloc((n + 1) * sizeof *pairs->of);
    if (!pairs->of)
        return ifl_fail_nomem(error);
    if (join(pairs, matching, run, error))
        return error->code;
    qsort(pairs->of, pairs->n, sizeof *pairs->of, by_pair_then_arrival);
    for (size_t p = 0, i = 0; p <= matching->n_pairs; p++) {
        while (i < pairs->n && pairs->of[i].pair < p)
            i++;
        pairs->first[p] = i;
    }
    return IFL_OK;
}

static bool has_requests(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/requests.csv", dir);
    return access(path, F_OK) == 0;
}

int request_pairs_read(struct request_pairs *pairs, const struct matching *matching,
                       struct ifl_error *error)
{
    struct requests run[N_RUNS] = {0};
    *pairs = (struct request_pairs){.first = calloc(matching->n_pairs + 1, sizeof *pairs->first)};
    if (!pairs->first)
        return ifl_fail_nomem(error);
    if (!has_requests(matching->of->base_dir) || !has_requests(matching->of->other_dir))
        return IFL_OK;
    int code = read_run(&run[BASE], matching, BASE, error);
    if (!code)
        code = read_run(&run[OTHER], matching, OTHER, error);
    if (!code)
        code = pair_up(pairs, matching, run, error);
    free(run[BASE].of);
    free(run[OTHER].of);
    if (code)
        request_pairs_free(pairs);
    return code;
}

void request_pairs_free(struct request_pairs *pairs)
{
    free(pairs->of);
    free(pairs->first);
    *pairs = (struct request_pairs){0};
}
