/* Batch, queue and K/V pool over time, from steps.csv, as means of a few hundred bins. Between
 * steps batch, queue and pool count as empty. */
#include <string.h>

#include "plot/figures.h"
#include "tables/pool_sizes.h"
#include "tables/time_bins.h"

enum { N_BINS = 480 };

enum {
    POINT,
    REPLICA,
    START,
    DURATION,
    PREFILL_SEQS,
    DECODE_SEQS,
    WAITING,
    SWAPPED,
    TOKEN_SLOTS,
    RESERVED_SLOTS,
    INTERNAL_SLOTS,
    POOL_SLOTS,
    N_COLUMNS
};
static const char *const columns[N_COLUMNS] = {
    "point",          "replica",           "start_s",           "duration_s",
    "prefill_seqs",   "decode_seqs",       "waiting",           "swapped",
    "kv_token_slots", "kv_reserved_slots", "kv_internal_slots", "kv_pool_slots"};

enum tracked { BATCH, QUEUE, TOKENS, RESERVED, INTERNAL, N_TRACKED };

struct track {
    struct time_bins bins;
    struct pool_sizes slots;
};

static int take_step(void *context, size_t series, size_t replication, const double *of,
                     struct ifl_error *error)
{
    if (replication > 0)
        return IFL_OK;
    struct track *track = (struct track *)context + series;
    const double value[N_TRACKED] = {of[PREFILL_SEQS] + of[DECODE_SEQS], of[WAITING] + of[SWAPPED],
                                     of[TOKEN_SLOTS], of[RESERVED_SLOTS], of[INTERNAL_SLOTS]};
    time_bins_add(&track->bins, of[START], of[DURATION], value);
    return pool_sizes_note(&track->slots, of[REPLICA], of[POOL_SLOTS], error);
}

/* ---- rows: a bin each, and the last one once more at its end ---- */

typedef size_t cells_fn(const struct track *track, size_t bin, struct figure_number *cells);

static size_t batch_cells(const struct track *track, size_t bin, struct figure_number *cells)
{
    cells[0] = figure_number(time_bins_sum(&track->bins, bin, BATCH) / track->bins.width_s);
    cells[1] = figure_number(time_bins_sum(&track->bins, bin, QUEUE) / track->bins.width_s);
    return 2;
}

static size_t kv_cells(const struct track *track, size_t bin, struct figure_number *cells)
{
    const double all = track->bins.width_s * pool_sizes_sum(&track->slots),
                 tokens = time_bins_sum(&track->bins, bin, TOKENS) / all,
                 reserved = time_bins_sum(&track->bins, bin, RESERVED) / all,
                 internal = time_bins_sum(&track->bins, bin, INTERNAL) / all;
    cells[0] = figure_number(tokens);
    cells[1] = figure_number(reserved);
    cells[2] = figure_number(internal);
    cells[3] = figure_number(1 - tokens - reserved - internal);
    return 4;
}

static int write_track(struct whole_file *file, const struct plot *plot, size_t series,
                       const struct track *track, cells_fn *fill, struct ifl_error *error)
{
    const struct series_point *point = &plot->set->points[plot->chosen[series]];
    const struct figure_number number = figure_series_number(point), x = figure_number(point->x);
    const struct time_bins *bins = &track->bins;
    for (size_t i = 0; bins->n_bins && i <= bins->n_bins; i++) {
        struct figure_number value[4];
        const struct figure_number at = figure_number(bins->origin_s + (double)i * bins->width_s);
        const size_t bin = i < bins->n_bins ? i : i - 1, n = fill(track, bin, value);
        const char *cells[9] = {number.text, plot->set->names[series], x.text,
                                figure_saturated(point), at.text};
        for (size_t c = 0; c < n; c++)
            cells[5 + c] = value[c].text;
        if (figure_write_row(file, cells, 5 + n, error))
            return error->code;
    }
    return IFL_OK;
}

static int write_tracks(struct whole_file *file, const struct plot *plot, const char *header,
                        cells_fn *fill, struct ifl_error *error)
{
    const size_t n = figure_n_curves(plot);
    struct track *tracks = calloc(n, sizeof *tracks);
    bool any = false;
    if (!tracks)
        return ifl_fail_nomem(error);
    int code = IFL_OK;
    for (size_t series = 0; series < n && !code; series++)
        code = time_bins_make(&tracks[series].bins, N_BINS, N_TRACKED, error);
    if (!code)
        code = figure_scan(plot, "steps.csv", N_COLUMNS, columns, take_step, tracks, error);
    if (!code)
        code = figure_write_head(file, plot, header, error);
    for (size_t series = 0; series < n && !code; series++) {
        code = write_track(file, plot, series, &tracks[series], fill, error);
        any |= tracks[series].bins.n_bins > 0;
    }
    for (size_t series = 0; series < n; series++) {
        time_bins_free(&tracks[series].bins);
        pool_sizes_free(&tracks[series].slots);
    }
    free(tracks);
    return code || any ? code : FIGURE_EMPTY;
}

int over_time_batch(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_tracks(file, plot, "time_s,batch_seqs,queued_requests", batch_cells, error);
}

int over_time_kv(struct whole_file *file, const struct plot *plot, struct ifl_error *error)
{
    return write_tracks(file, plot,
                        "time_s,kv_token_frac,kv_reserved_frac,kv_internal_frac,kv_external_frac",
                        kv_cells, error);
}

const char *over_time_lacks(const struct plot *plot)
{
    return figure_has_file(plot, "steps.csv") ? NULL : "no steps.csv";
}
