#include "cli/capacity_files.h"

#include <csv.h>
#include <math.h>
#include <string.h>

#include "base/new_file.h"
#include "cli/capacity_cells.h"
#include "cli/capacity_figure.h"
#include "cli/options.h"

/* ---- the front ---- */

static double cost(const struct capacity_row *row)
{
    const double tok_per_s = row->at.output_throughput_tok_per_s.mean;
    return isnan(row->usd_per_mtok) ? row->n_gpus / tok_per_s : row->usd_per_mtok;
}

static bool counts(const struct capacity_row *row)
{
    return row->error.code == 0 && row->status != CAPACITY_NONE && cost(row) > 0;
}

static double p90_ttft_s(const struct capacity_row *row)
{
    return row->at.p90_ttft_s.mean;
}

static double p99_tbt_s(const struct capacity_row *row)
{
    return row->at.p99_itl_s.mean;
}

static bool beats(const struct capacity_row *a, const struct capacity_row *b,
                  double (*latency_s)(const struct capacity_row *))
{
    return counts(a) && cost(a) <= cost(b) && latency_s(a) <= latency_s(b) &&
           (cost(a) < cost(b) || latency_s(a) < latency_s(b));
}

static bool unbeaten(const struct capacity_row *rows, size_t n, const struct capacity_row *row,
                     double (*latency_s)(const struct capacity_row *))
{
    bool best = counts(row) && !isnan(latency_s(row));
    for (size_t i = 0; i < n && best; i++)
        best = !beats(&rows[i], row, latency_s);
    return best;
}

void capacity_mark(struct capacity_row *rows, size_t n)
{
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (counts(&rows[i]))
            least = fmin(least, cost(&rows[i]));
    for (size_t i = 0; i < n; i++) {
        rows[i].cheapest = counts(&rows[i]) && cost(&rows[i]) == least;
        rows[i].pareto_ttft = unbeaten(rows, n, &rows[i], p90_ttft_s);
        rows[i].pareto_tbt = unbeaten(rows, n, &rows[i], p99_tbt_s);
    }
}

/* ---- capacity.csv ---- */

static const char metrics_head[] =
    "goodput_rps,goodput_rps_ci95,attainment_frac,attainment_frac_ci95,"
    "output_throughput_tok_per_s,output_throughput_tok_per_s_ci95,p90_ttft_s,p90_ttft_s_ci95,"
    "p99_ttft_s,p99_ttft_s_ci95,p99_itl_s,p99_itl_s_ci95,p50_queue_s,p50_queue_s_ci95,"
    "mean_queue_s,mean_queue_s_ci95,";

static void put_metrics(FILE *out, const struct capacity_trial *trial)
{
    cell_interval(out, &trial->goodput_rps);
    cell_interval(out, &trial->attainment_frac);
    cell_interval(out, &trial->output_throughput_tok_per_s);
    cell_interval(out, &trial->p90_ttft_s);
    cell_interval(out, &trial->p99_ttft_s);
    cell_interval(out, &trial->p99_itl_s);
    cell_interval(out, &trial->p50_queue_s);
    cell_interval(out, &trial->mean_queue_s);
}

/* Other criteria have all their metrics in metrics_head. */
static bool has_objectives(const struct study *study)
{
    return study_first(study)->capacity.criterion == CAPACITY_OBJECTIVES;
}

static void put_objective_names(FILE *out, const struct study *study)
{
    if (has_objectives(study))
        cell_objective_names(out, study, metrics_head);
}

static void put_row(FILE *out, const struct study *study, const struct capacity_row *row)
{
    char why[1200] = "";
    fprintf(out, "%s,", cell_status(&row->error, row->status));
    cell_real(out, row->rps);
    cell_real(out, row->low_rps);
    cell_real(out, row->high_rps);
    if (cells_have_members(study)) {
        cell_real(out, row->members_low_rps);
        cell_real(out, row->members_high_rps);
    }
    cell_real(out, row->at.rate_rps);
    fprintf(out, "%zu,%d,", row->n_trials, row->n_gpus);
    cell_real(out, row->usd_per_hour);
    cell_real(out, row->usd_per_mtok);
    put_metrics(out, &row->at);
    if (has_objectives(study)) {
        cell_text(out, row->binding);
        cell_objectives(out, study, metrics_head, row->objectives, row->n_objectives, row->at.of);
    }
    if (row->error.code)
        error_print(&row->error, why, sizeof why);
    fprintf(out, "%s,%s,%s,", cell_flag(row->cheapest), cell_flag(row->pareto_ttft),
            cell_flag(row->pareto_tbt));
    if (*why)
        csv_fwrite(out, why, strlen(why));
    fputc('\n', out);
}

int capacity_write(const char *path, const struct study *study, const struct capacity_row *rows,
                   size_t n, struct ifl_error *error)
{
    struct new_file file;
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    cell_keys(file.out, study);
    fprintf(file.out,
            "status,capacity_rps,capacity_low_rps,capacity_high_rps,%soffered_rps,trials,gpus,"
            "usd_per_hour,usd_per_million_output_tokens,%s%s",
            cells_have_members(study) ? "members_low_rps,members_high_rps," : "", metrics_head,
            has_objectives(study) ? "binding," : "");
    put_objective_names(file.out, study);
    fprintf(file.out, "cheapest,pareto_ttft,pareto_tbt,error\n");
    for (size_t i = 0; i < n; i++) {
        cell_values(file.out, study, i);
        put_row(file.out, study, &rows[i]);
    }
    return new_file_close(&file, 0, error);
}

/* ---- the figure ---- */

int capacity_draw(const char *dir, const struct study *study, const struct capacity_row *rows,
                  size_t n, struct ifl_error *error)
{
    struct capacity_figure figure;
    if (capacity_figure_open(&figure, dir, "capacity_figure", "rate_rps", error) < 0)
        return error->code;
    for (size_t i = 0; i < n; i++) {
        const struct capacity_row *row = &rows[i];
        const struct capacity_bar bar = {
            .status = cell_status(&row->error, row->status),
            .value = row->rps,
            .low = row->low_rps,
            .high = row->high_rps,
            .n_gpus = row->n_gpus,
            .cheapest = row->cheapest,
            .unit = "requests/s",
        };
        capacity_figure_put(&figure, study, i, &bar);
    }
    return capacity_figure_draw(&figure, "GPUs of each", error);
}

/* ---- trials.csv ---- */

static bool has_target(const struct study *study)
{
    return study_first(study)->capacity.target_rps > 0;
}

void capacity_write_trial_head(FILE *out, const struct study *study)
{
    cell_keys(out, study);
    fprintf(out, "trial,rate_rps,%s%s", has_target(study) ? "replicas," : "", metrics_head);
    put_objective_names(out, study);
    fprintf(out, "margin,margin_low,margin_high\n");
}

void capacity_write_trials(FILE *out, const struct study *study, size_t row,
                           const struct capacity *capacity)
{
    for (size_t i = 0; i < capacity->n_trials; i++) {
        const struct capacity_trial *trial = &capacity->trials[i];
        cell_values(out, study, row);
        fprintf(out, "%zu,", i);
        cell_real(out, trial->rate_rps);
        if (has_target(study))
            fprintf(out, "%d,", trial->replicas);
        put_metrics(out, trial);
        if (has_objectives(study))
            cell_objectives(out, study, metrics_head, capacity->objectives, capacity->n_objectives,
                            trial->of);
        fprintf(out, "%.9g,%.9g,%.9g\n", trial->margin, trial->margin_low, trial->margin_high);
    }
}

/* ---- members.csv ---- */

void capacity_write_member_head(FILE *out, const struct study *study)
{
    cell_keys(out, study);
    fprintf(out, "member,status,%s,trials\n", has_target(study) ? "replicas" : "capacity_rps");
}

void capacity_write_members(FILE *out, const struct study *study, size_t row,
                            const struct capacity_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct capacity_member *member = &members[i];
        const bool found = member->status == CAPACITY_FOUND;
        const double value = has_target(study) ? ceil(member->crossing - 1e-9) : member->rps;
        cell_values(out, study, row);
        fprintf(out, "%zu,%s,", i + 1, capacity_status_names[member->status]);
        cell_real(out, found ? value : (double)NAN);
        fprintf(out, "%zu\n", member->n_trials);
    }
}

/* ---- the table ---- */

static void print_row(FILE *out, const struct capacity_row *row, bool asks)
{
    char interval[48] = "-";
    if (row->error.code) {
        char why[1200];
        error_print(&row->error, why, sizeof why);
        fprintf(out, "  failed: %s\n", why);
        return;
    }
    if (row->status != CAPACITY_FOUND)
        snprintf(interval, sizeof interval, "%s", capacity_status_names[row->status]);
    else if (!isnan(row->low_rps))
        snprintf(interval, sizeof interval, "[%.3g, %.3g]", row->low_rps, row->high_rps);
    cell_print_real(out, 9, 3, row->rps);
    fprintf(out, "  %-17s %5d", interval, row->n_gpus);
    cell_print_real(out, 9, 3, row->usd_per_mtok);
    cell_print_real(out, 9, 1, row->at.output_throughput_tok_per_s.mean);
    cell_print_real(out, 9, 3, row->at.p90_ttft_s.mean);
    cell_print_real(out, 9, 1, row->at.p99_itl_s.mean * 1e3);
    cell_print_real(out, 6, 1, row->at.attainment_frac.mean * 100);
    const char *marks[] = {row->pareto_ttft ? "t" : "", row->pareto_tbt ? "b" : "",
                           row->cheapest ? "$" : ""};
    if (asks)
        fprintf(out, "  %s%s%s%*s  %s\n", marks[0], marks[1], marks[2],
                3 - !!*marks[0] - !!*marks[1] - !!*marks[2], "", row->binding);
    else
        fprintf(out, "  %s%s%s\n", marks[0], marks[1], marks[2]);
}

void capacity_print(FILE *out, const struct study *study, const struct capacity_row *rows, size_t n)
{
    const bool asks = has_objectives(study);
    cell_print_keys(out, study, n);
    fprintf(out,
            " req/s     95%% interval       GPUs  USD/Mtok    tok/s  TTFT p90  TBT p99  SLO%s\n",
            asks ? "      binds" : "");
    for (size_t i = 0; i < n; i++) {
        cell_print_values(out, study, n, i);
        print_row(out, &rows[i], asks);
    }
    fprintf(out, "TTFT in s, TBT in ms, SLO in %%; on the front of cost against TTFT (t), against "
                 "TBT (b); cheapest ($)\n");
}
