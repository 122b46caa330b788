/* What replicas have over time, from requests.csv: requests that have arrived and not ended, as
 * means of bins; and of the requests that arrive in a bin, the share that met every SLO, and of the
 * prompts of those that finished the share that was cached. Many replicas share a row; those of a
 * pool do in stacks. A request with two replicas is at the first until its K/V has come to the
 * second; one that migrated is at each in turn, as moves.csv says. One that has not finished ends
 * at its left_s; without that column it ends as it arrives.
 */
#include <math.h>
#include <string.h>

#include "inflight/minmax.h"
#include "plot/figures.h"
#include "plot/migrations.h"
#include "tables/time_bins.h"

enum { N_BINS = 120, N_SHARE_BINS = 60, MAX_ROWS = 32, MAX_STACKS = 8 };

enum {
    POINT,
    REPLICA,
    ARRIVAL,
    FINISH,
    PROMPT,
    CACHED,
    TTFT,
    TPOT,
    TTFT_SLO,
    TPOT_SLO,
    N_NEEDED,
    LEFT = N_NEEDED, /* the rest is not in the files of all runs */
    PREFILL_REPLICA,
    FIRST_SCHEDULED,
    PROMPT_TIME,
    HANDOVER_WAIT,
    TRANSFER,
    TRANSFER_HIDDEN,
    REQUEST,
    MIGRATIONS,
    N_COLUMNS
};
static const char *const columns[N_COLUMNS] = {"point",
                                               "replica",
                                               "arrival_s",
                                               "finish_s",
                                               "prompt_tokens",
                                               "cached_tokens",
                                               "ttft_s",
                                               "tpot_s",
                                               "ttft_slo_s",
                                               "tpot_slo_s",
                                               "left_s",
                                               "prefill_replica",
                                               "first_scheduled_s",
                                               "prompt_s",
                                               "handover_wait_s",
                                               "transfer_s",
                                               "transfer_hidden_s",
                                               "request_id",
                                               "migrations"};

enum share { REQUESTS, MET, PROMPT_TOKENS, CACHED_TOKENS, N_SHARES };

/* Of a series. */
struct fleet {
    size_t n_requests, n_replicas, n_rows;
    size_t n_migrated; /* requests */
    size_t n_unknown;  /* of these, without a row in moves.csv */
    struct migrations migrations;
    size_t n_pools; /* 0: a row is a group of replicas of about the same size; else it is a pool */
    size_t pool_end[MAX_STACKS]; /* [n_pools] the first replica behind the pool */
    char pools[512];             /* their names, a space between two */
    struct time_bins held;       /* a value a row: requests there */
    struct time_bins shares;     /* enum share, at arrivals */
    bool has_slo;
};

/* Requests count at their arrival for so long: only ratios of such sums are read. */
static const double moment_s = 1e-6;

static size_t row_of(const struct fleet *fleet, size_t replica)
{
    size_t row = 0;
    if (fleet->n_pools == 0)
        return replica * fleet->n_rows / fleet->n_replicas;
    while (row + 1 < fleet->n_pools && replica >= fleet->pool_end[row])
        row++;
    return row;
}

static int count_replicas(void *context, size_t series, size_t replication, const double *of,
                          struct ifl_error *error)
{
    struct fleet *fleet = (struct fleet *)context + series;
    (void)error;
    if (replication > 0)
        return IFL_OK;
    fleet->n_requests++;
    fleet->n_migrated += of[MIGRATIONS] > 0;
    for (size_t i = 0; i < 2; i++) {
        const double replica = i ? of[PREFILL_REPLICA] : of[REPLICA];
        if (replica >= 0)
            fleet->n_replicas = ifl_max(fleet->n_replicas, (size_t)replica + 1);
    }
    return IFL_OK;
}

/* A request without an objective, or without the latency that it names, meets it or not. */
static bool meets(double latency_s, double slo_s)
{
    return isnan(slo_s) || latency_s <= slo_s;
}

static void stay(struct fleet *fleet, double replica, double from_s, double to_s)
{
    double here[MAX_ROWS] = {0};
    if (!(replica >= 0) || !(to_s > from_s))
        return;
    here[row_of(fleet, (size_t)replica)] = 1;
    time_bins_add(&fleet->held, from_s, to_s - from_s, here);
}

/* Of a request with two replicas, when the second had its K/V. */
static double came_s(const double *of)
{
    return of[FIRST_SCHEDULED] + of[PROMPT_TIME] + of[HANDOVER_WAIT] + of[TRANSFER] -
           of[TRANSFER_HIDDEN];
}

/* A move was not given up if its next stage, or its end, is at another replica. */
static void take_migrated(struct fleet *fleet, const double *of, double end_s)
{
    size_t n;
    const struct migration_stage *stage = migrations_find(&fleet->migrations, of[REQUEST], &n);
    double from_s = of[ARRIVAL];
    fleet->n_unknown += n == 0;
    for (size_t i = 0; i < n; i++) {
        const double next = i + 1 < n ? stage[i + 1].from_replica : of[REPLICA];
        if (next == stage[i].from_replica)
            continue;
        stay(fleet, stage[i].from_replica, from_s, stage[i].end_s);
        from_s = stage[i].end_s;
    }
    stay(fleet, of[REPLICA], from_s, end_s);
}

static void take_stay(struct fleet *fleet, const double *of)
{
    const double end_s = isnan(of[FINISH]) ? of[LEFT] : of[FINISH];
    const double moved_s = fmin(came_s(of), end_s); /* the end where it did not move */
    const bool hands_over = of[PREFILL_REPLICA] >= 0 && of[PREFILL_REPLICA] != of[REPLICA];
    if (of[MIGRATIONS] > 0) {
        take_migrated(fleet, of, end_s);
        return;
    }
    if (hands_over)
        stay(fleet, of[PREFILL_REPLICA], of[ARRIVAL], moved_s);
    stay(fleet, of[REPLICA], hands_over ? moved_s : of[ARRIVAL], end_s);
}

static int take_request(void *context, size_t series, size_t replication, const double *of,
                        struct ifl_error *error)
{
    struct fleet *fleet = (struct fleet *)context + series;
    (void)error;
    if (replication > 0)
        return IFL_OK;
    const bool finished = !isnan(of[FINISH]);
    const bool met = finished && meets(of[TTFT], of[TTFT_SLO]) &&
                     (isnan(of[TPOT]) || meets(of[TPOT], of[TPOT_SLO]));
    const double at_arrival[N_SHARES] = {1, met, finished ? of[PROMPT] : 0,
                                         finished ? of[CACHED] : 0};
    fleet->has_slo |= !isnan(of[TTFT_SLO]) || !isnan(of[TPOT_SLO]);
    take_stay(fleet, of);
    time_bins_add(&fleet->shares, of[ARRIVAL], moment_s, at_arrival);
    return IFL_OK;
}

/* The pools of the series' point, from pools.csv, unless there are more than a stack has colours.
 */
static int take_pools(struct fleet *fleet, const struct plot *plot, size_t series,
                      struct ifl_error *error)
{
    const struct series_point *point = &plot->set->points[plot->chosen[series]];
    const struct sheet *sheet = &plot->set->runs[point->run].pools;
    size_t columns_at[3], end = 0, n = 0, used = 0;
    static const char *const names[] = {"point", "pool", "replicas"};
    if (sheet->n_rows == 0)
        return IFL_OK;
    for (size_t i = 0; i < 3; i++)
        if (sheet_require(sheet, names[i], &columns_at[i], error))
            return error->code;
    for (size_t row = 0; row < sheet->n_rows; row++) {
        const char *pool = sheet_cell(sheet, row, columns_at[1]);
        double number, count;
        if (sheet_number(sheet, row, columns_at[0], &number, error) ||
            sheet_number(sheet, row, columns_at[2], &count, error))
            return error->code;
        if (number != (double)series_number(plot->set, point))
            continue;
        if (n == MAX_STACKS || used + strlen(pool) + 2 > sizeof fleet->pools)
            return IFL_OK;
        used += (size_t)snprintf(fleet->pools + used, sizeof fleet->pools - used, "%s%s",
                                 n ? " " : "", pool);
        fleet->pool_end[n++] = end += (size_t)count;
    }
    fleet->n_pools = n;
    fleet->n_replicas = n ? end : fleet->n_replicas;
    return IFL_OK;
}

/* Requests come in the order of their ends: the first bin begins at 0. */
static int make_bins(struct fleet *fleet, size_t max_rows, struct ifl_error *error)
{
    static const double nothing[MAX_ROWS] = {0};
    fleet->n_rows = fleet->n_pools ? fleet->n_pools : ifl_min(fleet->n_replicas, max_rows);
    int code = time_bins_make(&fleet->held, N_BINS, ifl_max(fleet->n_rows, (size_t)1), error);
    if (!code)
        code = time_bins_make(&fleet->shares, N_SHARE_BINS, N_SHARES, error);
    if (!code && fleet->n_requests > 0) {
        time_bins_add(&fleet->held, 0, moment_s, nothing);
        time_bins_add(&fleet->shares, 0, moment_s, nothing);
    }
    return code;
}

/* ---- rows ---- */

typedef int rows_fn(struct whole_file *file, const struct plot *plot, size_t series,
                    const struct fleet *fleet, struct ifl_error *error);

/* The four first cells, n more, and a word unless it is NULL. */
static int write_cells(struct whole_file *file, const struct plot *plot, size_t series,
                       const double *value, size_t n, const char *word, struct ifl_error *error)
{
    const struct series_point *point = &plot->set->points[plot->chosen[series]];
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x);
    struct figure_number text[2 + MAX_STACKS];
    const char *cells[4 + 2 + MAX_STACKS + 1] = {number.text, plot->set->names[series], x.text,
                                                 figure_saturated(point)};
    ifl_assert(n <= sizeof text / sizeof *text);
    for (size_t i = 0; i < n; i++) {
        text[i] = figure_number(value[i]);
        cells[4 + i] = text[i].text;
    }
    cells[4 + n] = word;
    return figure_write_row(file, cells, 4 + n + (word != NULL), error);
}

/* The first replica of a row. */
static size_t first_of(const struct fleet *fleet, size_t row)
{
    return (row * fleet->n_replicas + fleet->n_rows - 1) / fleet->n_rows;
}

static int write_held(struct whole_file *file, const struct plot *plot, size_t series,
                      const struct fleet *fleet, struct ifl_error *error)
{
    const struct time_bins *bins = &fleet->held;
    int code = IFL_OK;
    for (size_t row = 0; row < fleet->n_rows; row++)
        for (size_t i = 0; i < bins->n_bins && !code; i++) {
            const double from_s = (double)i * bins->width_s;
            const double value[] = {from_s, from_s + bins->width_s, (double)first_of(fleet, row),
                                    (double)first_of(fleet, row + 1),
                                    time_bins_sum(bins, i, row) / bins->width_s};
            code = write_cells(file, plot, series, value, 5, NULL, error);
        }
    return code;
}

/* Sums of the rows up to each; those that are not there add nothing. The last bin stands once more
 * at its end. Where gnuplot finds the last cell empty it reads that of the row before, or the
 * header: a run without pools has "-" there. */
static int write_stacks(struct whole_file *file, const struct plot *plot, size_t series,
                        const struct fleet *fleet, struct ifl_error *error)
{
    const struct time_bins *bins = &fleet->held;
    int code = IFL_OK;
    for (size_t i = 0; bins->n_bins && i <= bins->n_bins && !code; i++) {
        double value[2 + MAX_STACKS] = {(double)i * bins->width_s, (double)fleet->n_replicas};
        double sum = 0;
        for (size_t row = 0; row < MAX_STACKS; row++) {
            if (row < fleet->n_rows)
                sum += time_bins_sum(bins, ifl_min(i, bins->n_bins - 1), row) / bins->width_s;
            value[2 + row] = sum;
        }
        code = write_cells(file, plot, series, value, 2 + MAX_STACKS,
                           fleet->n_pools ? fleet->pools : "-", error);
    }
    return code;
}

enum { N_SHARE_CELLS = 3 };

static void fill_shares(const struct fleet *fleet, size_t at, double value[N_SHARE_CELLS])
{
    const struct time_bins *bins = &fleet->shares;
    const size_t bin = ifl_min(at, bins->n_bins - 1);
    const double n = time_bins_sum(bins, bin, REQUESTS), nan = (double)NAN;
    const double cached = time_bins_sum(bins, bin, CACHED_TOKENS),
                 prompts = time_bins_sum(bins, bin, PROMPT_TOKENS);
    value[0] = (double)at * bins->width_s;
    value[1] = prompts > 0 ? cached / prompts : nan;
    value[2] = n > 0 && fleet->has_slo ? time_bins_sum(bins, bin, MET) / n : nan;
}

/* A bin stands once more at its end where the next has no value, and the last one does. */
static int write_shares(struct whole_file *file, const struct plot *plot, size_t series,
                        const struct fleet *fleet, struct ifl_error *error)
{
    double before[N_SHARE_CELLS] = {NAN, NAN, NAN};
    int code = IFL_OK;
    for (size_t i = 0; fleet->shares.n_bins && i <= fleet->shares.n_bins && !code; i++) {
        double value[N_SHARE_CELLS];
        bool ends = false;
        fill_shares(fleet, i, value);
        for (size_t k = 1; k < N_SHARE_CELLS; k++)
            ends |= isnan(value[k]) && !isnan(before[k]);
        before[0] = value[0];
        if (ends)
            code = write_cells(file, plot, series, before, N_SHARE_CELLS, NULL, error);
        if (!code)
            code = write_cells(file, plot, series, value, N_SHARE_CELLS, NULL, error);
        memcpy(before, value, sizeof before);
    }
    return code;
}

static void destroy_fleets(struct fleet *fleets, size_t n)
{
    for (size_t series = 0; fleets && series < n; series++) {
        time_bins_free(&fleets[series].held);
        time_bins_free(&fleets[series].shares);
        migrations_free(&fleets[series].migrations);
    }
    free(fleets);
}

/* A replica may have had none but requests that left it for others. */
static void take_migrations(struct fleet *fleet, struct migrations migrations)
{
    fleet->migrations = migrations;
    for (size_t i = 0; i < migrations.n; i++)
        fleet->n_replicas = ifl_max(fleet->n_replicas, (size_t)migrations.of[i].from_replica + 1);
}

/* Where requests that migrated have been, if there are any. */
static int read_migrations(struct fleet *fleets, const struct plot *plot, struct ifl_error *error)
{
    struct migrations of[MAX_CURVES] = {0};
    size_t n_migrated = 0;
    for (size_t series = 0; series < figure_n_curves(plot); series++)
        n_migrated += fleets[series].n_migrated;
    if (n_migrated == 0)
        return IFL_OK;
    const int code = migrations_read(of, plot, error);
    for (size_t series = 0; series < figure_n_curves(plot); series++)
        take_migrations(&fleets[series], of[series]);
    return code;
}

static void say_unknown(const struct fleet *fleets, const struct plot *plot)
{
    size_t n_unknown = 0;
    for (size_t series = 0; series < figure_n_curves(plot); series++)
        n_unknown += fleets[series].n_unknown;
    if (n_unknown > 0)
        figure_say(plot, "%zu requests, of whose moves no file tells: at their last replica",
                   n_unknown);
}

static int write_fleets(struct whole_file *file, const struct plot *plot, size_t max_rows,
                        bool by_pool, const char *header, rows_fn *write, struct ifl_error *error)
{
    const size_t n = figure_n_curves(plot);
    struct fleet *fleets = calloc(n, sizeof *fleets);
    size_t most = 0;
    int code = fleets ? IFL_OK : ifl_fail_nomem(error);
    if (!code)
        code = figure_scan_some(plot, "requests.csv", N_COLUMNS, N_NEEDED, columns, count_replicas,
                                fleets, error);
    if (!code)
        code = read_migrations(fleets, plot, error);
    for (size_t series = 0; series < n && !code; series++) {
        most = ifl_max(most, fleets[series].n_replicas);
        code = by_pool ? take_pools(&fleets[series], plot, series, error) : IFL_OK;
        if (!code)
            code = make_bins(&fleets[series], max_rows, error);
    }
    if (!code)
        code = figure_scan_some(plot, "requests.csv", N_COLUMNS, N_NEEDED, columns, take_request,
                                fleets, error);
    if (!code)
        code = figure_write_head(file, plot, header, error);
    if (!code && write != write_shares)
        say_unknown(fleets, plot);
    for (size_t series = 0; series < n && !code; series++)
        code = write(file, plot, series, &fleets[series], error);
    destroy_fleets(fleets, n);
    return code || most > 1 ? code : FIGURE_EMPTY;
}

int replicas_load(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_fleets(file, plot, MAX_ROWS, false,
                        "from_s,to_s,from_replica,to_replica,"
                        "outstanding_requests",
                        write_held, error);
}

int replicas_outstanding(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_fleets(file, plot, MAX_STACKS, true,
                        "time_s,replicas,upto_1,upto_2,upto_3,"
                        "upto_4,upto_5,upto_6,upto_7,upto_8,pools",
                        write_stacks, error);
}

int replicas_shares(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_fleets(file, plot, MAX_ROWS, false, "time_s,cached_frac,attained_frac",
                        write_shares, error);
}

const char *replicas_lack(const struct plot *plot)
{
    return figure_has_file(plot, "requests.csv") ? NULL : "no requests.csv";
}
