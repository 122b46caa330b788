/* Preconditions of reports/ and of the contracts it implements, each broken once. */
#include <math.h>

#include "inflight/compare.h"
#include "inflight/export.h"
#include "inflight/fleet.h"
#include "inflight/report.h"
#include "inflight/validate.h"
#include "plot/figures.h"
#include "record/gaps.h"
#include "record/histogram.h"
#include "record/scale.h"
#include "record/selection.h"
#include "record/summary.h"
#include "tables/row.h"
#include "tables/sheet.h"
#include "violates.h"

static struct ifl_error error;
static const int64_t falling[2] = {2, 1};
static const double half = 0.5;

/* ---- contracts ---- */

VIOLATES(times, nan, ifl_ns_from_s, "s == s")
{
    ifl_ns_from_s((double)NAN);
}

VIOLATES(times, short_below_0, ifl_short_ns_from_s, "s >= 0")
{
    ifl_short_ns_from_s(-1);
}

VIOLATES(times, short_above_2_s, ifl_short_ns_from_s, "s < IFL_SHORT_S")
{
    ifl_short_ns_from_s(IFL_SHORT_S);
}

static size_t two_up(const struct ifl_fleet *fleet, unsigned roles)
{
    return roles ? fleet->n : 0;
}

static const struct ifl_fleet_ops fleet_ops = {.up = two_up};
static const struct ifl_fleet fleet = {.ops = &fleet_ops, .n = 2};

VIOLATES(fleets, load, ifl_load_of, "i < fleet->n")
{
    ifl_load_of(&fleet, 2);
}

VIOLATES(fleets, counts, ifl_counts_of, "i < fleet->n")
{
    ifl_counts_of(&fleet, 2);
}

VIOLATES(fleets, nth, ifl_nth, "k < fleet->ops->up")
{
    ifl_nth(&fleet, IFL_PREFILLS, 2);
}

VIOLATES(fleets, cached, ifl_cached_tokens, "i < fleet->n")
{
    ifl_cached_tokens(&fleet, 2);
}

VIOLATES(fleets, running, ifl_running_at, "i < fleet->n")
{
    ifl_running_at(&fleet, 2);
}

VIOLATES(fleets, migrate, ifl_migrate, "to < fleet->n")
{
    ifl_migrate(&fleet, NULL, 2);
}

/* ---- quantiles ---- */

VIOLATES(quantiles, values, quantile_find, "ifl_ascends(value, n)")
{
    double found;
    quantile_find(falling, NULL, 2, &half, 1, &found);
}

VIOLATES(quantiles, wanted, quantile_find, "ifl_ascends_real(wanted, n_wanted)")
{
    const int64_t value = 1;
    const double wanted[2] = {0.9, 0.1};
    double found[2];
    quantile_find(&value, NULL, 1, wanted, 2, found);
}

VIOLATES(quantiles, fractions, quantile_find, "wanted[n_wanted - 1] <= 1")
{
    const int64_t value = 1;
    const double wanted = 50;
    double found;
    quantile_find(&value, NULL, 1, &wanted, 1, &found);
}

VIOLATES(quantiles, grid, quantile_of_grid, "i < QUANTILE_GRID")
{
    quantile_of_grid(QUANTILE_GRID);
}

VIOLATES(quantiles, scale, scale_bin, "value >= scale.origin")
{
    scale_bin((struct scale){.origin = 0, .bits = 4}, -1);
}

VIOLATES(quantiles, histogram, histogram_add, "apart <= 1")
{
    struct histogram histogram = {0};
    const uint32_t times = 1;
    histogram_add(&histogram, falling, 2, &times, 2, &error);
}

VIOLATES(quantiles, histogram_below_0, scale_bin, "value >= scale.origin")
{
    struct histogram histogram = {0};
    const int64_t below = -1;
    const uint32_t times = 1;
    histogram_add(&histogram, &below, 1, &times, 0, &error);
}

VIOLATES(gap, sum, gaps_add_stretch, "sum_of(gap_ns, n) == total_ns")
{
    struct gaps gaps;
    const struct ifl_step_record first = {.start_ns = 0};
    const int64_t end_ns[] = {3, 4};
    const struct ifl_stretch_record of = {
        .first = &first, .n = 2, .n_requests = 1, .duration_ns = falling, .end_ns = end_ns};
    gaps_init(&gaps, GAPS_MAX_PAIRS);
    gaps_add_stretch(&gaps, &of, &error);
}

/* ---- lives ---- */

static const struct rare no_rare = {.ttft_slo_ns = IFL_NEVER, .tpot_slo_ns = IFL_NEVER};
static const struct life late_first[2] = {{.arrival_ns = 2, .rare = &no_rare},
                                          {.arrival_ns = 1, .rare = &no_rare}};

VIOLATES(of_lives, tally_order, tally_life, "life->arrival_ns >= tally->last_arrival_ns")
{
    struct tally tally;
    tally_open(&tally, 2, &error);
    tally_life(&tally, &late_first[0]);
    tally_life(&tally, &late_first[1]);
}

VIOLATES(of_lives, selection_bounds, selection_open, "min <= max")
{
    struct selection selection;
    selection_open(&selection, 2, 1, 2, &error);
}

/* ---- files ---- */

VIOLATES(cells, word, row_word, "strpbrk")
{
    char row[32];
    row_word(row, "a,b");
}

VIOLATES(cells, end, row_end, "at[-1] == ','")
{
    char row[] = "a;";
    row_end(row + 2);
}

VIOLATES(cells, beyond_room, whole_commit, "file->cap_bytes")
{
    char buffer[8] = "";
    struct whole_file file = {.buffer = buffer, .n_bytes = 2, .cap_bytes = 4};
    whole_commit(&file, buffer + 5);
}

static const struct sheet sheet = {.n_columns = 2, .n_rows = 1};

VIOLATES(cells, sheet_header, sheet_header, "column < sheet->n_columns")
{
    sheet_header(&sheet, 2);
}

VIOLATES(cells, sheet_row, sheet_cell, "row < sheet->n_rows")
{
    sheet_cell(&sheet, 1, 0);
}

VIOLATES(cells, scan_of_points, figure_scan_some, "\"point\"")
{
    const struct series_set set = {0};
    const struct plot plot = {.set = &set};
    const char *const columns[] = {"step"};
    figure_scan_some(&plot, "steps.csv", 1, 1, columns, NULL, NULL, &error);
}

/* ---- the recorder ---- */

static const struct ifl_step_record first_step = {.step = 7};

VIOLATES(recorders, beyond_stretch, ifl_stretch_step, "i < of->n")
{
    const struct ifl_stretch_record of = {.first = &first_step, .n = 1};
    const struct ifl_pool_use use = {.until = 1};
    struct ifl_step_record step = first_step;
    ifl_stretch_step(&of, &use, 1, &step);
}

VIOLATES(recorders, stretch_out_of_order, ifl_stretch_step, "step->step == of->first->step + i - 1")
{
    const struct ifl_stretch_record of = {.first = &first_step, .n = 3};
    const struct ifl_pool_use use = {.until = 3};
    struct ifl_step_record step = first_step;
    ifl_stretch_step(&of, &use, 2, &step);
}

static struct ifl_recorder *silent(void)
{
    const struct ifl_recorder_options options = {.n_requests = 1};
    return ifl_recorder_create(&options, &error);
}

VIOLATES(recorders, work_without_file, ifl_record_work, "whole_is_open")
{
    const struct ifl_work_record record = {0};
    ifl_record_work(silent(), &record, &error);
}

VIOLATES(recorders, stall_without_file, ifl_record_stall, "whole_is_open")
{
    const struct ifl_stall_record record = {0};
    ifl_record_stall(silent(), &record, &error);
}

VIOLATES(recorders, pause_in_stretch, ifl_record_stretch, "is_whole(of)")
{
    const int64_t duration_ns[2] = {1, 1}, end_ns[2] = {1, 3};
    const struct ifl_pool_use use = {.until = 2};
    const struct ifl_stretch_record of = {.first = &first_step,
                                          .n = 2,
                                          .duration_ns = duration_ns,
                                          .end_ns = end_ns,
                                          .use = &use,
                                          .n_uses = 1};
    ifl_record_stretch(silent(), &of, &error);
}

VIOLATES(recorders, use_of_no_step, ifl_record_stretch, "is_whole(of)")
{
    const int64_t duration_ns[2] = {1, 1}, end_ns[2] = {1, 2};
    const struct ifl_pool_use use = {.until = 1};
    const struct ifl_stretch_record of = {.first = &first_step,
                                          .n = 2,
                                          .duration_ns = duration_ns,
                                          .end_ns = end_ns,
                                          .use = &use,
                                          .n_uses = 1};
    ifl_record_stretch(silent(), &of, &error);
}

/* ---- studies ---- */

static const struct ifl_points three_points = {.n_points = 3, .n_keys = 1};

VIOLATES(studies, group_of_none, ifl_write_replications, "of->n > 0")
{
    const struct ifl_replications of = {.runs = &three_points};
    ifl_write_replications("replications.csv", &of, &error);
}

VIOLATES(studies, part_of_a_group, ifl_write_replications, "n_points % of->n == 0")
{
    const struct ifl_replications of = {.runs = &three_points, .n = 2};
    ifl_write_replications("replications.csv", &of, &error);
}

VIOLATES(studies, mean_of_none, ifl_mean_of_runs, "of->n > 0")
{
    struct ifl_replications of = {.runs = &three_points};
    ifl_mean_of_runs(&of, 0, NULL, NULL, &error);
}

VIOLATES(studies, mean_beyond, ifl_mean_of_runs, "point <")
{
    struct ifl_replications of = {.runs = &three_points, .n = 3};
    ifl_mean_of_runs(&of, 1, NULL, NULL, &error);
}

VIOLATES(studies, values_of_key, ifl_compare, "of->base_value")
{
    const struct ifl_comparison of = {.base_dir = ".", .other_dir = ".", .key = "seed"};
    ifl_compare(&of, &error);
}

VIOLATES(studies, part_of_validation, ifl_validate, "v->part < v->n_parts")
{
    const struct ifl_validation of = {.part = 2, .n_parts = 2};
    ifl_validate(&of, &error);
}

static int64_t arrival_ns[2] = {2, 1};
static struct ifl_outcome outcomes[2];

VIOLATES(studies, export_without_outcomes, ifl_export_bench, "trace->outcome")
{
    const struct ifl_trace trace = {.n = 2, .arrival_ns = arrival_ns};
    const struct ifl_bench_export of = {.trace = &trace};
    ifl_export_bench(&of, "bench.json", &error);
}

VIOLATES(studies, export_order, ifl_export_bench, "ifl_ascends")
{
    const struct ifl_trace trace = {.n = 2, .arrival_ns = arrival_ns, .outcome = outcomes};
    const struct ifl_bench_export of = {.trace = &trace};
    ifl_export_bench(&of, "bench.json", &error);
}
