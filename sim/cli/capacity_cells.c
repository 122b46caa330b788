#include "cli/capacity_cells.h"

#include <csv.h>
#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

const char *const capacity_status_names[] = {"found", "none", "unbounded"};

const char *cell_status(const struct ifl_error *error, enum capacity_status status)
{
    return error->code ? "failed" : capacity_status_names[status];
}

/* ---- CSV ---- */

void cell_text(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n"))
        csv_fwrite(out, text, strlen(text));
    else
        fputs(text, out);
    fputc(',', out);
}

void cell_real(FILE *out, double x)
{
    if (isnan(x))
        fputc(',', out);
    else
        fprintf(out, "%.9g,", x);
}

void cell_count(FILE *out, int32_t n)
{
    cell_real(out, n > 0 ? n : (double)NAN);
}

void cell_interval(FILE *out, const struct ifl_interval *of)
{
    cell_real(out, of->mean);
    cell_real(out, of->half_width);
}

/* The innermost axis, the replication, is no key of a deployment. */
size_t cell_n_keys(const struct study *study)
{
    return study_n_axes(study) - (study_n_replications(study) > 1);
}

void cell_keys(FILE *out, const struct study *study)
{
    for (size_t a = 0; a < cell_n_keys(study); a++)
        cell_text(out, study_axis(study, a));
}

void cell_values(FILE *out, const struct study *study, size_t row)
{
    for (size_t a = 0; a < cell_n_keys(study); a++)
        cell_text(out, study_value(study, row * study_n_replications(study), a));
}

const char *cell_flag(bool set)
{
    return set ? "true" : "false";
}

void cell_name(const struct study *study, size_t row, const char *separator, char *text,
               size_t n_bytes)
{
    size_t at = (size_t)snprintf(text, n_bytes, "%s", cell_n_keys(study) ? "" : "it");
    for (size_t a = 0; a < cell_n_keys(study) && at < n_bytes; a++)
        at += (size_t)snprintf(text + at, n_bytes - at, "%s%s %s", a ? separator : "",
                               cell_short_key(study, a),
                               study_value(study, row * study_n_replications(study), a));
}

bool cells_have_members(const struct study *study)
{
    return study_first(study)->cost.ensemble > 0;
}

/* ---- tables ---- */

const char *cell_short_key(const struct study *study, size_t axis)
{
    const char *key = study_axis(study, axis), *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

int cell_widest(const struct study *study, size_t axis, size_t n)
{
    size_t most = strlen(cell_short_key(study, axis));
    for (size_t i = 0; i < n; i++) {
        const size_t chars = strlen(study_value(study, i * study_n_replications(study), axis));
        most = ifl_max(most, chars);
    }
    return most < 40 ? (int)most : 40;
}

void cell_print_real(FILE *out, int width, int decimals, double x)
{
    if (isnan(x))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, decimals, x);
}

void cell_print_keys(FILE *out, const struct study *study, size_t n)
{
    for (size_t a = 0; a < cell_n_keys(study); a++)
        fprintf(out, "%-*.40s  ", cell_widest(study, a, n), cell_short_key(study, a));
}

void cell_print_values(FILE *out, const struct study *study, size_t n, size_t row)
{
    for (size_t a = 0; a < cell_n_keys(study); a++)
        fprintf(out, "%-*.40s  ", cell_widest(study, a, n),
                study_value(study, row * study_n_replications(study), a));
}

/* ---- objectives ---- */

/* True if the list of columns, each followed by a comma, has the name. */
static bool has_column(const char *known, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = known; *at; at += strcspn(at, ",") + 1)
        if (strncmp(at, name, n) == 0 && at[n] == ',')
            return true;
    return false;
}

static size_t columns_of(const struct study *study, struct objective asked[MAX_OBJECTIVES])
{
    return objectives_asked(&study_first(study)->capacity, asked);
}

void cell_objective_names(FILE *out, const struct study *study, const char *known)
{
    struct objective asked[MAX_OBJECTIVES];
    const size_t n = columns_of(study, asked);
    for (size_t i = 0; i < n; i++) {
        const char *name = objective_name(&asked[i]);
        if (!has_column(known, name))
            fprintf(out, "%s,%s_ci95,", name, name);
    }
}

void cell_objectives(FILE *out, const struct study *study, const char *known,
                     const struct objective *objectives, size_t n, const struct objective_trial *of)
{
    static const struct ifl_interval none = {(double)NAN, (double)NAN};
    struct objective asked[MAX_OBJECTIVES];
    const size_t n_columns = columns_of(study, asked);
    for (size_t i = 0; i < n_columns; i++) {
        size_t k = 0;
        while (k < n && objectives[k].row != asked[i].row)
            k++;
        if (!has_column(known, objective_name(&asked[i])))
            cell_interval(out, of && k < n ? &of[k].value : &none);
    }
}

void capacity_name_binding(const struct capacity *found, char *text, size_t n_bytes)
{
    size_t at = 0;
    *text = '\0';
    for (size_t i = 0; i < found->n_objectives && at < n_bytes; i++)
        if (found->binding >> i & 1)
            at += (size_t)snprintf(text + at, n_bytes - at, "%s%s", at ? "+" : "",
                                   objective_name(&found->objectives[i]));
}

/* What is wrong, without the pool, which its row names, and the arithmetic behind a
 * colon, which the CSV has. */
void capacity_print_failure(FILE *out, const struct ifl_error *error)
{
    const char *pool = strncmp(error->text, "pool ", 5) == 0 ? strstr(error->text, ": ") : NULL;
    const char *text = pool ? pool + 2 : error->text, *colon = strstr(text, ": ");
    const int n = colon ? (int)(colon - text) : (int)strlen(text);
    fprintf(out, "  failed: %.*s\n", n, text);
}
