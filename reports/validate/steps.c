/* Step time against composition, where both runs recorded their steps.
 *
 * Steps are put into classes by their prompt tokens and decoding sequences, each in powers of two.
 * With n steps of mean duration d in a class, the time that both runs were busy differs by
 *
 *     sum n_s d_s - sum n_m d_m = sum n_m (d_s - d_m)  +  sum (n_s - n_m) d_s
 *                                  cost                    scheduling
 *
 * A class that one run never had takes its mean from the other run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tables/row.h"
#include "tables/sheet.h"
#include "tables/whole_file.h"
#include "validate/findings.h"

enum { N_POWERS = 33 };

struct class
{
    size_t n[N_SIDES];
    double time_s[N_SIDES];
};

struct steps {
    struct sheet sheet[N_SIDES];
    struct class class[N_POWERS][N_POWERS]; /* by prompt tokens, by decoding sequences */
    size_t n_alike;                         /* equal steps before the first that differs */
};

/* 0 for 0, else 1 + the number of the power of two below. */
static int power_of(double value)
{
    int power = 0;
    while (power < N_POWERS - 1 && value >= ldexp(1, power))
        power++;
    return power;
}

/* ---- reading ---- */

enum { PREFILL_TOKENS, DECODE_SEQS, CONTEXT_TOKENS, DURATION, N_READ };

static int read_row(const struct sheet *sheet, const size_t column[N_READ], size_t row,
                    double value[N_READ], struct ifl_error *error)
{
    for (int c = 0; c < N_READ; c++)
        if (sheet_number(sheet, row, column[c], &value[c], error))
            return error->code;
    return IFL_OK;
}

static int find_columns(const struct sheet *sheet, size_t column[N_READ], struct ifl_error *error)
{
    static const char *const names[N_READ] = {"prefill_tokens", "decode_seqs", "context_tokens",
                                              "duration_s"};
    for (int c = 0; c < N_READ; c++)
        if (sheet_require(sheet, names[c], &column[c], error))
            return error->code;
    return IFL_OK;
}

static int classify(struct steps *steps, enum side side, struct ifl_error *error)
{
    const struct sheet *sheet = &steps->sheet[side];
    size_t column[N_READ];
    double value[N_READ];
    if (find_columns(sheet, column, error))
        return error->code;
    for (size_t row = 0; row < sheet->n_rows; row++) {
        if (read_row(sheet, column, row, value, error))
            return error->code;
        struct class *class =
            &steps->class[power_of(value[PREFILL_TOKENS])][power_of(value[DECODE_SEQS])];
        class->n[side]++;
        class->time_s[side] += value[DURATION];
    }
    return IFL_OK;
}

static bool same_schedule(const double *a, const double *b)
{
    int i = 0;
    while (i < DURATION && a[i] == b[i])
        i++;
    return i == DURATION;
}

static int compare(struct steps *steps, struct ifl_error *error)
{
    const struct sheet *s = &steps->sheet[SIMULATED], *m = &steps->sheet[MEASURED];
    size_t column[N_SIDES][N_READ];
    double value[N_SIDES][N_READ];
    if (find_columns(s, column[SIMULATED], error) || find_columns(m, column[MEASURED], error))
        return error->code;
    for (size_t row = 0; row < s->n_rows && row < m->n_rows; row++) {
        if (read_row(s, column[SIMULATED], row, value[SIMULATED], error) ||
            read_row(m, column[MEASURED], row, value[MEASURED], error))
            return error->code;
        if (!same_schedule(value[SIMULATED], value[MEASURED]))
            break;
        steps->n_alike++;
    }
    return IFL_OK;
}

/* ---- sums ---- */

static double mean_s(const struct class *class, enum side side)
{
    const enum side other = side == SIMULATED ? MEASURED : SIMULATED;
    const enum side of = class->n[side] ? side : other;
    return class->time_s[of] / (double)class->n[of];
}

static int add_findings(const struct steps *steps, struct findings *findings,
                        struct ifl_error *error)
{
    double busy_s[N_SIDES] = {0}, cost_s = 0, scheduling_s = 0;
    const size_t n[N_SIDES] = {steps->sheet[SIMULATED].n_rows, steps->sheet[MEASURED].n_rows};
    const struct class *class = &steps->class[0][0];
    for (size_t i = 0; i < (size_t)N_POWERS * N_POWERS; i++, class ++) {
        if (class->n[SIMULATED] + class->n[MEASURED] == 0)
            continue;
        const double s = mean_s(class, SIMULATED), m = mean_s(class, MEASURED);
        const double n_s = (double)class->n[SIMULATED], n_m = (double)class->n[MEASURED];
        cost_s += n_m * (s - m);
        scheduling_s += (n_s - n_m) * s;
        busy_s[SIMULATED] += class->time_s[SIMULATED];
        busy_s[MEASURED] += class->time_s[MEASURED];
    }
    int rc = findings_add(findings, "steps.count", "sum", n[MEASURED], (double)n[SIMULATED],
                          (double)n[MEASURED], error);
    if (rc == IFL_OK)
        rc = findings_add(findings, "steps.alike_from_the_start", "count", n[MEASURED],
                          (double)steps->n_alike, (double)n[MEASURED], error);
    if (rc == IFL_OK)
        rc = findings_add(findings, "steps.busy_s", "sum", n[MEASURED], busy_s[SIMULATED],
                          busy_s[MEASURED], error);
    if (rc == IFL_OK)
        rc = findings_add_error(findings, "cost.steps_s", "sum", n[MEASURED], cost_s, error);
    return rc ? rc
              : findings_add_error(findings, "scheduling.steps_s", "sum", n[MEASURED], scheduling_s,
                                   error);
}

/* ---- validation_steps.csv ---- */

static int write_class(struct whole_file *file, const struct class *class, int prefill, int decode,
                       struct ifl_error *error)
{
    char *at = whole_room(file, 8 * (size_t)ROW_REAL_BYTES, error);
    if (!at)
        return error->code;
    const double s = class->time_s[SIMULATED] / (double)class->n[SIMULATED];
    const double m = class->time_s[MEASURED] / (double)class->n[MEASURED];
    at = row_real(at, prefill ? ldexp(1, prefill - 1) : 0);
    at = row_real(at, decode ? ldexp(1, decode - 1) : 0);
    at = row_uint(at, class->n[SIMULATED]);
    at = row_uint(at, class->n[MEASURED]);
    at = row_real(at, s);
    at = row_real(at, m);
    at = row_real(at, s - m);
    at = row_real(at, (s - m) / m);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_classes(const struct steps *steps, const char *path, struct ifl_error *error)
{
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    int rc = whole_write(&file,
                         "prefill_tokens_from,decode_seqs_from,simulated_steps,measured_steps,"
                         "simulated_mean_s,measured_mean_s,error_s,relative_error\n",
                         error);
    for (int prefill = 0; prefill < N_POWERS; prefill++)
        for (int decode = 0; decode < N_POWERS; decode++) {
            const struct class *class = &steps->class[prefill][decode];
            if (rc == IFL_OK && class->n[SIMULATED] + class->n[MEASURED] > 0)
                rc = write_class(&file, class, prefill, decode, error);
        }
    return whole_finish(&file, rc, error);
}

/* ---- both runs ---- */

static bool has_steps(const char *dir, char path[4096])
{
    if (!dir)
        return false;
    snprintf(path, 4096, "%s/steps.csv", dir);
    return access(path, F_OK) == 0;
}

static int find_in(struct steps *steps, const char *out_dir, struct findings *findings,
                   struct ifl_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/validation_steps.csv", out_dir);
    int rc = classify(steps, SIMULATED, error);
    if (rc == IFL_OK)
        rc = classify(steps, MEASURED, error);
    if (rc == IFL_OK)
        rc = compare(steps, error);
    if (rc == IFL_OK)
        rc = add_findings(steps, findings, error);
    return rc ? rc : write_classes(steps, path, error);
}

int find_steps(const struct ifl_validation *validation, struct findings *findings,
               struct ifl_error *error)
{
    char path[N_SIDES][4096];
    if (!has_steps(validation->simulated.dir, path[SIMULATED]) ||
        !has_steps(validation->measured.dir, path[MEASURED]))
        return IFL_OK;
    struct steps *steps = calloc(1, sizeof *steps);
    if (!steps)
        return ifl_fail_nomem(error);
    int rc = sheet_read(&steps->sheet[SIMULATED], path[SIMULATED], error);
    if (rc == IFL_OK)
        rc = sheet_read(&steps->sheet[MEASURED], path[MEASURED], error);
    if (rc == IFL_OK)
        rc = find_in(steps, validation->out_dir, findings, error);
    sheet_free(&steps->sheet[SIMULATED]);
    sheet_free(&steps->sheet[MEASURED]);
    free(steps);
    return rc;
}
