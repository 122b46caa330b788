#include "cli/capacity_plan.h"

#include <csv.h>
#include <math.h>
#include <string.h>

#include "base/new_file.h"
#include "cli/capacity_cells.h"
#include "cli/capacity_figure.h"
#include "cli/options.h"

/* ---- what follows from a number of replicas ---- */

/* NaN where the number is not known. */
static double real(int32_t replicas)
{
    return replicas > 0 ? replicas : (double)NAN;
}

static double usd_per_hour(const struct plan_row *row, int32_t replicas)
{
    return real(replicas) * row->cost.n_gpus * row->cost.usd_per_gpu_hour;
}

static double requests_per_hour(const struct plan_row *row)
{
    return row->target_rps * 3600;
}

static double usd_per_mtok(const struct plan_row *row, int32_t replicas)
{
    return usd_per_hour(row, replicas) / (requests_per_hour(row) * row->tokens_per_request) * 1e6;
}

static double wh_per_request(const struct plan_row *row, int32_t replicas)
{
    return real(replicas) * row->cost.n_gpus * row->cost.watts_per_gpu / requests_per_hour(row);
}

static double kwh_per_mtok(const struct plan_row *row, int32_t replicas)
{
    return wh_per_request(row, replicas) / row->tokens_per_request * 1e3;
}

void plan_fill(const struct capacity *found, const struct replica_cost *cost, double target_rps,
               struct plan_row *row)
{
    *row = (struct plan_row){
        .status = found->status,
        .target_rps = target_rps,
        .replicas = found->replicas,
        .low = found->low_replicas,
        .high = found->high_replicas,
        .members_low = found->members_low_replicas,
        .members_high = found->members_high_replicas,
        .cost = *cost,
        .n_trials = found->n_trials,
        .n_objectives = found->n_objectives,
        .at = found->trials[found->at],
    };
    row->tokens_per_request =
        row->at.output_throughput_tok_per_s.mean / row->at.request_throughput_rps.mean;
    memcpy(row->objectives, found->objectives, sizeof row->objectives);
    capacity_name_binding(found, row->binding, sizeof row->binding);
}

static bool is_found(const struct plan_row *row)
{
    return row->error.code == 0 && row->status == CAPACITY_FOUND;
}

static double bill(const struct plan_row *row)
{
    const double usd = usd_per_hour(row, row->replicas);
    return isnan(usd) ? (double)row->replicas * row->cost.n_gpus : usd;
}

void plan_mark(struct plan_row *rows, size_t n)
{
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (is_found(&rows[i]))
            least = fmin(least, bill(&rows[i]));
    for (size_t i = 0; i < n; i++)
        rows[i].cheapest = is_found(&rows[i]) && bill(&rows[i]) == least;
}

/* ---- plan.csv ---- */

static void put_costs(FILE *out, const struct plan_row *row)
{
    static double (*const costs[])(const struct plan_row *, int32_t) = {usd_per_hour, usd_per_mtok};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        cell_real(out, costs[i](row, row->replicas));
        cell_real(out, costs[i](row, row->low));
        cell_real(out, costs[i](row, row->high));
    }
    cell_real(out, row->cost.watts_per_gpu);
    cell_text(out, isnan(row->cost.watts_per_gpu) ? "" : row->cost.is_tdp ? "tdp" : "given");
    cell_real(out, wh_per_request(row, row->replicas) * 1e3);
    cell_real(out, kwh_per_mtok(row, row->replicas));
}

static void put_row(FILE *out, const struct study *study, const struct plan_row *row)
{
    const bool failed = row->error.code;
    char why[1200] = "";
    fprintf(out, "%s,", cell_status(&row->error, row->status));
    cell_real(out, row->target_rps);
    cell_count(out, row->replicas);
    cell_count(out, row->low);
    cell_count(out, row->high);
    if (cells_have_members(study)) {
        cell_count(out, row->members_low);
        cell_count(out, row->members_high);
    }
    fprintf(out, "%zu,", row->n_trials);
    cell_count(out, row->cost.n_gpus);
    cell_real(out, real(row->replicas) * row->cost.n_gpus);
    put_costs(out, row);
    cell_text(out, row->binding);
    cell_objectives(out, study, "", row->objectives, row->n_objectives, failed ? NULL : row->at.of);
    cell_real(out, failed ? (double)NAN : row->at.margin);
    fprintf(out, "%s,", cell_flag(row->cheapest));
    if (failed) {
        error_print(&row->error, why, sizeof why);
        csv_fwrite(out, why, strlen(why));
    }
    fputc('\n', out);
}

int plan_write(const char *path, const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error)
{
    struct new_file file;
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    cell_keys(file.out, study);
    fprintf(file.out,
            "status,target_rps,replicas,replicas_low,replicas_high,%strials,gpus_per_replica,gpus,"
            "usd_per_hour,usd_per_hour_low,usd_per_hour_high,usd_per_million_output_tokens,"
            "usd_per_million_output_tokens_low,usd_per_million_output_tokens_high,watts_per_gpu,"
            "power,wh_per_1000_requests,kwh_per_million_output_tokens,binding,",
            cells_have_members(study) ? "members_low_replicas,members_high_replicas," : "");
    cell_objective_names(file.out, study, "");
    fprintf(file.out, "margin,cheapest,error\n");
    for (size_t i = 0; i < n; i++) {
        cell_values(file.out, study, i);
        put_row(file.out, study, &rows[i]);
    }
    return new_file_close(&file, 0, error);
}

/* ---- the table ---- */

static void print_interval(FILE *out, const struct plan_row *row)
{
    char text[48] = "-", high[16] = "-";
    if (row->high > 0)
        snprintf(high, sizeof high, "%d", row->high);
    if (row->status != CAPACITY_FOUND)
        snprintf(text, sizeof text, "%s", capacity_status_names[row->status]);
    else if (row->low > 0)
        snprintf(text, sizeof text, "[%d, %s]", row->low, high);
    fprintf(out, "  %-12s", text);
}

static int width_of(const char *name)
{
    const int n = (int)strlen(name);
    return n > 8 ? n : 8;
}

/* That requests finish is no news where they do. */
static bool is_shown(const struct objective *objective, const struct plan_row *rows, size_t n)
{
    bool shown = objective->offset != OBJECTIVE_FINISHED;
    for (size_t i = 0; i < n && !shown; i++)
        for (size_t k = 0; rows[i].error.code == 0 && k < rows[i].n_objectives; k++)
            shown |= rows[i].objectives[k].row == objective->row && rows[i].at.of[k].margin > 0;
    return shown;
}

static void print_objectives(FILE *out, const struct objective *asked, size_t n_asked,
                             const struct plan_row *rows, size_t n, const struct plan_row *row)
{
    for (size_t i = 0; i < n_asked; i++) {
        double value = (double)NAN;
        for (size_t k = 0; k < row->n_objectives; k++)
            if (row->objectives[k].row == asked[i].row)
                value = row->at.of[k].value.mean;
        if (is_shown(&asked[i], rows, n))
            cell_print_real(out, width_of(objective_name(&asked[i])), 3, value);
    }
}

static void print_row(FILE *out, const struct plan_row *row)
{
    cell_print_real(out, 8, 0, real(row->replicas));
    print_interval(out, row);
    cell_print_real(out, 5, 0, real(row->replicas) * row->cost.n_gpus);
    cell_print_real(out, 8, 2, usd_per_hour(row, row->replicas));
    cell_print_real(out, 9, 3, usd_per_mtok(row, row->replicas));
    cell_print_real(out, 9, 3, kwh_per_mtok(row, row->replicas));
}

/* The foot names the assumption of the energy, if there is one. */
static void print_foot(FILE *out, const struct plan_row *rows, size_t n)
{
    bool any_tdp = false, any_given = false;
    for (size_t i = 0; i < n; i++) {
        const bool has_power = is_found(&rows[i]) && !isnan(rows[i].cost.watts_per_gpu);
        any_tdp |= has_power && rows[i].cost.is_tdp;
        any_given |= has_power && !rows[i].cost.is_tdp;
    }
    fprintf(out, "binds: missed with one replica less; cheapest ($)\n");
    if (any_tdp || any_given)
        fprintf(out, "kWh/Mtok: the GPUs alone, at %s%s%s\n",
                any_tdp ? "their thermal design power all the time, an upper bound" : "",
                any_tdp && any_given ? ", or " : "",
                any_given ? "capacity.watts_per_gpu all the time" : "");
}

void plan_print(FILE *out, const struct study *study, const struct plan_row *rows, size_t n)
{
    struct objective asked[MAX_OBJECTIVES];
    const size_t n_asked = objectives_asked(&study_first(study)->capacity, asked);
    cell_print_keys(out, study, n);
    fprintf(out, " replicas  95%% interval  GPUs    USD/h  USD/Mtok  kWh/Mtok");
    for (size_t i = 0; i < n_asked; i++)
        if (is_shown(&asked[i], rows, n))
            fprintf(out, " %*s", width_of(objective_name(&asked[i])), objective_name(&asked[i]));
    fprintf(out, "     binds\n");
    for (size_t i = 0; i < n; i++) {
        cell_print_values(out, study, n, i);
        if (rows[i].error.code) {
            capacity_print_failure(out, &rows[i].error);
            continue;
        }
        print_row(out, &rows[i]);
        print_objectives(out, asked, n_asked, rows, n, &rows[i]);
        fprintf(out, "  %s  %s\n", rows[i].cheapest ? "$" : " ", rows[i].binding);
    }
    print_foot(out, rows, n);
}

/* ---- no answer ---- */

static const struct plan_row *nearest_row(const struct plan_row *rows, size_t n)
{
    const struct plan_row *near = NULL;
    for (size_t i = 0; i < n; i++)
        if (rows[i].error.code == 0 && (!near || rows[i].at.margin < near->at.margin))
            near = &rows[i];
    return near;
}

int plan_judge(const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error)
{
    char name[256];
    size_t worst = 0;
    const struct plan_row *near = nearest_row(rows, n);
    for (size_t i = 0; i < n; i++)
        if (is_found(&rows[i]))
            return 0;
    if (!near)
        return 0;
    for (size_t k = 0; k < near->n_objectives; k++)
        if (near->at.of[k].margin > near->at.of[worst].margin)
            worst = k;
    const struct objective *missed = &near->objectives[worst];
    cell_name(study, (size_t)(near - rows), ", ", name, sizeof name);
    return ifl_fail(error, IFL_E_STALLED,
                    "no deployment meets the objectives at %g requests/s; %s comes nearest: %s is "
                    "%.4g with %d replicas, expected %s %g",
                    near->target_rps, name, objective_name(missed), near->at.of[worst].value.mean,
                    near->at.replicas, missed->at_least ? "at least" : "at most", missed->limit);
}

/* ---- the figure ---- */

static struct capacity_bar bar_of(const struct plan_row *row)
{
    const bool priced = !isnan(row->cost.usd_per_gpu_hour);
    const int32_t counts[] = {row->replicas, row->low, row->high};
    double bills[3];
    for (size_t k = 0; k < 3; k++)
        bills[k] = priced ? usd_per_hour(row, counts[k]) : real(counts[k]) * row->cost.n_gpus;
    return (struct capacity_bar){
        .status = cell_status(&row->error, row->status),
        .value = bills[0],
        .low = bills[1],
        .high = bills[2],
        .replicas = row->replicas,
        .n_gpus = row->cost.n_gpus,
        .cheapest = row->cheapest,
        .unit = priced ? "USD an hour" : "GPUs",
    };
}

int plan_draw(const char *dir, const struct study *study, const struct plan_row *rows, size_t n,
              struct ifl_error *error)
{
    struct capacity_figure figure;
    char note[128];
    if (capacity_figure_open(&figure, dir, "plan_figure", "bill", error) < 0)
        return error->code;
    for (size_t i = 0; i < n; i++) {
        const struct capacity_bar bar = bar_of(&rows[i]);
        capacity_figure_put(&figure, study, i, &bar);
    }
    snprintf(note, sizeof note, "replicas × GPUs of each, at %g requests/s",
             study_first(study)->capacity.target_rps);
    return capacity_figure_draw(&figure, note, error);
}
