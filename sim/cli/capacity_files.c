#include "cli/capacity_files.h"

#include <csv.h>
#include <math.h>
#include <string.h>

#include "base/new_file.h"
#include "cli/options.h"
#include "inflight/minmax.h"

static const char *const status_names[] = {"found", "none", "unbounded"};

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

static void put_text(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n"))
        csv_fwrite(out, text, strlen(text));
    else
        fputs(text, out);
    fputc(',', out);
}

static void put_real(FILE *out, double x)
{
    if (isnan(x))
        fputc(',', out);
    else
        fprintf(out, "%.9g,", x);
}

static void put_interval(FILE *out, const struct ifl_interval *of)
{
    put_real(out, of->mean);
    put_real(out, of->half_width);
}

/* The innermost axis, the replication, is no key of a deployment. */
static size_t n_keys(const struct study *study)
{
    return study_n_axes(study) - (study_n_replications(study) > 1);
}

static void put_keys(FILE *out, const struct study *study)
{
    for (size_t a = 0; a < n_keys(study); a++)
        put_text(out, study_axis(study, a));
}

static void put_values(FILE *out, const struct study *study, size_t row)
{
    for (size_t a = 0; a < n_keys(study); a++)
        put_text(out, study_value(study, row * study_n_replications(study), a));
}

static const char metrics_head[] =
    "goodput_rps,goodput_rps_ci95,attainment_frac,attainment_frac_ci95,"
    "output_throughput_tok_per_s,output_throughput_tok_per_s_ci95,p90_ttft_s,p90_ttft_s_ci95,"
    "p99_ttft_s,p99_ttft_s_ci95,p99_itl_s,p99_itl_s_ci95,p50_queue_s,p50_queue_s_ci95,"
    "mean_queue_s,mean_queue_s_ci95,";

static void put_metrics(FILE *out, const struct capacity_trial *trial)
{
    put_interval(out, &trial->goodput_rps);
    put_interval(out, &trial->attainment_frac);
    put_interval(out, &trial->output_throughput_tok_per_s);
    put_interval(out, &trial->p90_ttft_s);
    put_interval(out, &trial->p99_ttft_s);
    put_interval(out, &trial->p99_itl_s);
    put_interval(out, &trial->p50_queue_s);
    put_interval(out, &trial->mean_queue_s);
}

static const char *flag(bool set)
{
    return set ? "true" : "false";
}

static bool has_ensemble(const struct study *study)
{
    return study_first(study)->cost.ensemble > 0;
}

static void put_row(FILE *out, const struct study *study, const struct capacity_row *row)
{
    char why[1200] = "";
    fprintf(out, "%s,", row->error.code ? "failed" : status_names[row->status]);
    put_real(out, row->rps);
    put_real(out, row->low_rps);
    put_real(out, row->high_rps);
    if (has_ensemble(study)) {
        put_real(out, row->members_low_rps);
        put_real(out, row->members_high_rps);
    }
    put_real(out, row->at.rate_rps);
    fprintf(out, "%zu,%d,", row->n_trials, row->n_gpus);
    put_real(out, row->usd_per_hour);
    put_real(out, row->usd_per_mtok);
    put_metrics(out, &row->at);
    if (row->error.code)
        error_print(&row->error, why, sizeof why);
    fprintf(out, "%s,%s,%s,", flag(row->cheapest), flag(row->pareto_ttft), flag(row->pareto_tbt));
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
    put_keys(file.out, study);
    fprintf(file.out,
            "status,capacity_rps,capacity_low_rps,capacity_high_rps,%soffered_rps,trials,gpus,"
            "usd_per_hour,usd_per_million_output_tokens,%scheapest,pareto_ttft,pareto_tbt,error\n",
            has_ensemble(study) ? "members_low_rps,members_high_rps," : "", metrics_head);
    for (size_t i = 0; i < n; i++) {
        put_values(file.out, study, i);
        put_row(file.out, study, &rows[i]);
    }
    return new_file_close(&file, 0, error);
}

/* ---- trials.csv ---- */

void capacity_write_trial_head(FILE *out, const struct study *study)
{
    put_keys(out, study);
    fprintf(out, "trial,rate_rps,%smargin,margin_low,margin_high\n", metrics_head);
}

void capacity_write_trials(FILE *out, const struct study *study, size_t row,
                           const struct capacity *capacity)
{
    for (size_t i = 0; i < capacity->n_trials; i++) {
        const struct capacity_trial *trial = &capacity->trials[i];
        put_values(out, study, row);
        fprintf(out, "%zu,", i);
        put_real(out, trial->rate_rps);
        put_metrics(out, trial);
        fprintf(out, "%.9g,%.9g,%.9g\n", trial->margin, trial->margin_low, trial->margin_high);
    }
}

/* ---- members.csv ---- */

void capacity_write_member_head(FILE *out, const struct study *study)
{
    put_keys(out, study);
    fprintf(out, "member,status,capacity_rps,trials\n");
}

void capacity_write_members(FILE *out, const struct study *study, size_t row,
                            const struct capacity_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct capacity_member *member = &members[i];
        put_values(out, study, row);
        fprintf(out, "%zu,%s,", i + 1, status_names[member->status]);
        put_real(out, member->status == CAPACITY_FOUND ? member->rps : (double)NAN);
        fprintf(out, "%zu\n", member->n_trials);
    }
}

/* ---- the table ---- */

static const char *short_key(const struct study *study, size_t axis)
{
    const char *key = study_axis(study, axis), *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static int widest(const struct study *study, size_t axis, size_t n)
{
    size_t most = strlen(short_key(study, axis));
    for (size_t i = 0; i < n; i++) {
        const size_t chars = strlen(study_value(study, i * study_n_replications(study), axis));
        most = ifl_max(most, chars);
    }
    return most < 40 ? (int)most : 40;
}

static void print_real(FILE *out, int width, int decimals, double x)
{
    if (isnan(x))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, decimals, x);
}

static void print_row(FILE *out, const struct capacity_row *row)
{
    char interval[48] = "-";
    if (row->error.code) {
        char why[1200];
        error_print(&row->error, why, sizeof why);
        fprintf(out, "  failed: %s\n", why);
        return;
    }
    if (row->status != CAPACITY_FOUND)
        snprintf(interval, sizeof interval, "%s", status_names[row->status]);
    else if (!isnan(row->low_rps))
        snprintf(interval, sizeof interval, "[%.3g, %.3g]", row->low_rps, row->high_rps);
    print_real(out, 9, 3, row->rps);
    fprintf(out, "  %-17s %5d", interval, row->n_gpus);
    print_real(out, 9, 3, row->usd_per_mtok);
    print_real(out, 9, 1, row->at.output_throughput_tok_per_s.mean);
    print_real(out, 9, 3, row->at.p90_ttft_s.mean);
    print_real(out, 9, 1, row->at.p99_itl_s.mean * 1e3);
    print_real(out, 6, 1, row->at.attainment_frac.mean * 100);
    fprintf(out, "  %s%s%s\n", row->pareto_ttft ? "t" : "", row->pareto_tbt ? "b" : "",
            row->cheapest ? "$" : "");
}

void capacity_print(FILE *out, const struct study *study, const struct capacity_row *rows, size_t n)
{
    const size_t keys = n_keys(study);
    for (size_t a = 0; a < keys; a++)
        fprintf(out, "%-*.40s  ", widest(study, a, n), short_key(study, a));
    fprintf(out,
            " req/s     95%% interval       GPUs  USD/Mtok    tok/s  TTFT p90  TBT p99  SLO\n");
    for (size_t i = 0; i < n; i++) {
        for (size_t a = 0; a < keys; a++)
            fprintf(out, "%-*.40s  ", widest(study, a, n),
                    study_value(study, i * study_n_replications(study), a));
        print_row(out, &rows[i]);
    }
    fprintf(out, "TTFT in s, TBT in ms, SLO in %%; on the front of cost against TTFT (t), against "
                 "TBT (b); cheapest ($)\n");
}
