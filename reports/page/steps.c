/* What replicas did over time: means over bins, then the first single steps and, of these, the work
 * of each request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "page/packed.h"
#include "tables/pool_sizes.h"
#include "tables/scan.h"
#include "tables/time_bins.h"

enum {
    POINT,
    REPLICA,
    STEP,
    START,
    DURATION,
    PREFILL_TOKENS,
    DECODE_TOKENS,
    PREFILL_SEQS,
    DECODE_SEQS,
    WAITING,
    SWAPPED,
    PREEMPTED,
    USED_BLOCKS,
    TOTAL_BLOCKS,
    TOKEN_SLOTS,
    POOL_SLOTS,
    N_COLUMNS
};
static const char *const columns[N_COLUMNS] = {
    "point",          "replica",         "step",           "start_s",
    "duration_s",     "prefill_tokens",  "decode_tokens",  "prefill_seqs",
    "decode_seqs",    "waiting",         "swapped",        "preempted",
    "kv_used_blocks", "kv_total_blocks", "kv_token_slots", "kv_pool_slots"};

/* Of a bin. Requests are those of all replicas, shares those of the pools of all replicas. */
enum { BATCH, QUEUE, KV_USED, KV_TOKENS, PREFILL_RATE, DECODE_RATE, N_BINNED };
static const struct packed_column binned[N_BINNED] = {
    {"batch_seqs", 1e2, false},        {"queued_requests", 1e2, false},
    {"kv_used_frac", 1e4, false},      {"kv_token_frac", 1e4, false},
    {"prefill_tok_per_s", 1e1, false}, {"decode_tok_per_s", 1e1, false}};

enum { N_SINGLE = 9 };
static const struct packed_column single[N_SINGLE] = {
    {"replica", 1, false},        {"step", 1, true},
    {"start_s", 1e6, true},       {"duration_s", 1e6, false},
    {"prefill_tokens", 1, false}, {"decode_tokens", 1, false},
    {"running", 1, false},        {"waiting", 1, false},
    {"kv_used_frac", 1e4, false}};

typedef double single_row[N_SINGLE];

struct point_steps {
    struct time_bins bins; /* KV_USED in blocks, KV_TOKENS in slots */
    struct pool_sizes blocks, slots;
    single_row *rows; /* [n], owned */
    size_t n, cap, n_all;
};

struct steps {
    const struct page *page;
    const struct page_run *run;
    struct point_steps *points; /* [run->n_points], owned */
    size_t most_single;         /* of a point */
};

/* ---- reading ---- */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static int bin_step(struct point_steps *point, const double *of, struct ifl_error *error)
{
    const double value[N_BINNED] = {
        [BATCH] = of[PREFILL_SEQS] + of[DECODE_SEQS],
        [QUEUE] = of[WAITING] + of[SWAPPED],
        [KV_USED] = of[USED_BLOCKS],
        [KV_TOKENS] = of[TOKEN_SLOTS],
        [PREFILL_RATE] = of[PREFILL_TOKENS] / of[DURATION],
        [DECODE_RATE] = of[DECODE_TOKENS] / of[DURATION],
    };
    if (of[DURATION] > 0)
        time_bins_add(&point->bins, of[START], of[DURATION], value);
    const int code = pool_sizes_note(&point->blocks, of[REPLICA], of[TOTAL_BLOCKS], error);
    return code ? code : pool_sizes_note(&point->slots, of[REPLICA], of[POOL_SLOTS], error);
}

static int keep_single(struct point_steps *point, const double *of, struct ifl_error *error)
{
    if (point->n == point->cap) {
        const size_t cap = 2 * point->cap + 64;
        single_row *rows = realloc(point->rows, cap * sizeof *rows);
        if (!rows)
            return ifl_fail_nomem(error);
        point->rows = rows;
        point->cap = cap;
    }
    const single_row row = {of[REPLICA],
                            of[STEP],
                            of[START],
                            of[DURATION],
                            of[PREFILL_TOKENS],
                            of[DECODE_TOKENS],
                            of[PREFILL_SEQS] + of[DECODE_SEQS],
                            of[WAITING] + of[SWAPPED],
                            share(of[USED_BLOCKS], of[TOTAL_BLOCKS])};
    memcpy(point->rows[point->n++], row, sizeof row);
    return IFL_OK;
}

static int take(void *context, const double *of, struct ifl_error *error)
{
    struct steps *steps = context;
    if (of[POINT] < 0 || of[POINT] >= (double)steps->run->n_points)
        return IFL_OK;
    struct point_steps *point = &steps->points[(size_t)of[POINT]];
    point->n_all += of[DURATION] > 0;
    if (bin_step(point, of, error))
        return error->code;
    const bool kept = point->n < steps->most_single && of[DURATION] > 0 &&
                      of[START] + of[DURATION] >= steps->page->options->from_s;
    return kept ? keep_single(point, of, error) : IFL_OK;
}

/* ---- writing ---- */

static int put_bins(const struct page *page, size_t number, const struct point_steps *point,
                    json_t *points)
{
    const struct time_bins *bins = &point->bins;
    const double whole[N_BINNED] = {
        1, 1, pool_sizes_sum(&point->blocks), pool_sizes_sum(&point->slots), 1, 1};
    double *mean = calloc(bins->n_bins * N_BINNED + 1, sizeof *mean);
    if (!mean)
        return ifl_fail_nomem(page->error);
    for (size_t i = 0; i < bins->n_bins; i++)
        for (size_t which = 0; which < N_BINNED; which++)
            mean[i * N_BINNED + which] =
                share(time_bins_sum(bins, i, which) / bins->width_s, whole[which]);
    json_t *object =
        packed_put_rows(page, points, number, binned, N_BINNED, mean, bins->n_bins, N_BINNED);
    free(mean);
    if (!object || page_set(page, object, "origin_s", json_real(bins->origin_s)) ||
        page_set(page, object, "width_s", json_real(bins->width_s)))
        return page->error->code;
    /* Without it: one. */
    return point->blocks.n > 1
               ? page_set(page, object, "n_replicas", json_integer((json_int_t)point->blocks.n))
               : IFL_OK;
}

/* Both tables: "over_time" and "steps". */
static int put_points(const struct steps *steps)
{
    const struct page *page = steps->page;
    json_t *tables[2] = {json_object(), json_object()}, *points[2] = {json_array(), json_array()};
    int code = page_set(page, steps->run->json, "over_time", tables[0]);
    if (!code)
        code = page_set(page, steps->run->json, "steps", tables[1]);
    for (int i = 0; i < 2 && !code; i++)
        code = page_set(page, tables[i], "points", points[i]);
    if (!code)
        code = packed_put_names(page, tables[0], binned, N_BINNED);
    if (!code)
        code = packed_put_names(page, tables[1], single, N_SINGLE);
    for (size_t p = 0; p < steps->run->n_points && !code; p++) {
        const struct point_steps *point = &steps->points[p];
        code = put_bins(page, p, point, points[0]);
        json_t *object = code ? NULL
                              : packed_put_rows(page, points[1], p, single, N_SINGLE, *point->rows,
                                                point->n, N_SINGLE);
        if (object)
            code = page_set(page, object, "n_all", json_integer((json_int_t)point->n_all));
        else
            code = page->error->code;
    }
    return code;
}

/* ---- work.csv: of the steps above ---- */

enum { WORK_POINT, WORK_REPLICA, WORK_STEP, WORK_ID, WORK_PREFILL, WORK_DECODE, N_WORK };
static const char *const work_columns[N_WORK] = {"point",      "replica",        "step",
                                                 "request_id", "prefill_tokens", "decode_tokens"};
enum { N_WORK_PACKED = N_WORK - 1 };
static const struct packed_column work_packed[N_WORK_PACKED] = {{"replica", 1, false},
                                                                {"step", 1, true},
                                                                {"request_id", 1, true},
                                                                {"prefill_tokens", 1, false},
                                                                {"decode_tokens", 1, false}};

typedef double work_row[N_WORK];

struct work {
    const struct steps *steps;
    work_row *rows; /* [cap] of all points, owned */
    size_t n, cap, n_of_point, most;
    double point; /* of the last row */
};

/* Steps of a replica follow each other, so those kept are all from its first to its last. */
static bool is_kept(const struct point_steps *point, double replica, double step)
{
    bool begun = false;
    for (size_t i = 0; i < point->n && !begun; i++)
        begun = point->rows[i][0] == replica && point->rows[i][1] <= step;
    for (size_t i = point->n; begun && i-- > 0;)
        if (point->rows[i][0] == replica)
            return step <= point->rows[i][1];
    return false;
}

static int take_work(void *context, const double *of, struct ifl_error *error)
{
    struct work *work = context;
    const struct steps *steps = work->steps;
    if (of[WORK_POINT] < 0 || of[WORK_POINT] >= (double)steps->run->n_points)
        return IFL_OK;
    if (of[WORK_POINT] != work->point)
        work->n_of_point = 0;
    work->point = of[WORK_POINT];
    if (work->n_of_point == work->most ||
        !is_kept(&steps->points[(size_t)of[WORK_POINT]], of[WORK_REPLICA], of[WORK_STEP]))
        return IFL_OK;
    if (work->n == work->cap) {
        const size_t cap = 2 * work->cap + 256;
        work_row *rows = realloc(work->rows, cap * sizeof *rows);
        if (!rows)
            return ifl_fail_nomem(error);
        work->rows = rows;
        work->cap = cap;
    }
    work->n_of_point++;
    memcpy(work->rows[work->n++], of, sizeof(work_row));
    return IFL_OK;
}

static int put_work_points(const struct page *page, const struct work *work, json_t *points)
{
    for (size_t from = 0, to; from < work->n; from = to) {
        for (to = from; to < work->n && work->rows[to][0] == work->rows[from][0];)
            to++;
        json_t *object = packed_put_rows(page, points, (size_t)work->rows[from][0], work_packed,
                                         N_WORK_PACKED, &work->rows[from][1], to - from, N_WORK);
        if (!object || page_set(page, object, "cut", json_boolean(to - from == work->most)))
            return page->error->code;
    }
    return IFL_OK;
}

static int put_work(const struct steps *steps)
{
    const struct page *page = steps->page;
    char path[4096];
    struct work work = {
        .steps = steps, .most = ifl_max(IFL_PAGE_WORK / page->n_points, 1), .point = (double)NAN};
    if (!page_has_file(steps->run, "work.csv", path))
        return IFL_OK;
    json_t *object = json_object(), *points = json_array();
    int code = page_set(page, steps->run->json, "work", object);
    if (!code)
        code = page_set(page, object, "points", points);
    if (!code)
        code = packed_put_names(page, object, work_packed, N_WORK_PACKED);
    if (!code)
        code = scan_csv(path, N_WORK, work_columns, take_work, &work, page->error);
    if (!code)
        code = put_work_points(page, &work, points);
    free(work.rows);
    return code;
}

/* ---- the whole ---- */

/* An even number of bins a point. */
static size_t n_bins(const struct page *page)
{
    const size_t n = IFL_PAGE_BINS / page->n_points;
    return n < 64 ? 64 : n > 1024 ? 1024 : n & ~(size_t)1;
}

int page_put_steps(const struct page *page, const struct page_run *run)
{
    char path[4096];
    struct steps steps = {
        .page = page, .run = run, .most_single = ifl_max(IFL_PAGE_STEPS / page->n_points, 1)};
    if (!page_has_file(run, "steps.csv", path))
        return IFL_OK;
    steps.points = calloc(run->n_points + 1, sizeof *steps.points);
    int code = steps.points ? IFL_OK : ifl_fail_nomem(page->error);
    for (size_t p = 0; p < run->n_points && !code; p++)
        code = time_bins_make(&steps.points[p].bins, n_bins(page), N_BINNED, page->error);
    if (!code)
        code = scan_csv(path, N_COLUMNS, columns, take, &steps, page->error);
    if (!code)
        code = put_points(&steps);
    if (!code)
        code = put_work(&steps);
    for (size_t p = 0; steps.points && p < run->n_points; p++) {
        time_bins_free(&steps.points[p].bins);
        pool_sizes_free(&steps.points[p].blocks);
        pool_sizes_free(&steps.points[p].slots);
        free(steps.points[p].rows);
    }
    free(steps.points);
    return code;
}
