/* Errors of a profile on tables of measurements, which may be others than those of its fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/new_file.h"
#include "fit/fit.h"

bool fit_covers(const struct platform *platform, const struct form *form)
{
    struct platform copy = *platform;
    return *form_parameter_at(&copy, &form->parameters[1]) > 0; /* a share or a rate */
}

static int judge_op(const struct fit_data *data, enum fit_op op, const double *predicted_s,
                    const struct fit_sample **rows, double *of_op, struct fit_verdict *verdict,
                    struct ifl_error *error)
{
    size_t n = 0;
    for (size_t i = 0; i < data->n; i++)
        if (data->samples[i].op == op && !isnan(predicted_s[i])) {
            rows[n] = &data->samples[i];
            of_op[n++] = predicted_s[i];
        }
    const struct predictions of = {rows, of_op, n};
    int code = errors_of_rows(&of, &verdict->rows[op], error);
    if (!code && op == FIT_GEMM)
        code = errors_of_layers(&of, &verdict->layers, error);
    return code;
}

static void predict(const struct fit_data *data, const struct platform *platform,
                    double *predicted_s)
{
    for (size_t i = 0; i < data->n; i++) {
        const struct form *form = form_of(data->samples[i].op);
        predicted_s[i] =
            form && fit_covers(platform, form) ? form->predict_s(platform, &data->samples[i]) : NAN;
    }
}

int fit_judge(const struct fit_data *data, const struct platform *platform,
              struct fit_verdict *verdict, struct ifl_error *error)
{
    const struct fit_sample **rows = malloc(data->n * sizeof *rows);
    double *of_op = malloc(data->n * sizeof *of_op);
    *verdict = (struct fit_verdict){.predicted_s = malloc(data->n * sizeof(double))};
    int code = rows && of_op && verdict->predicted_s ? 0 : ifl_fail_nomem(error);
    if (!code)
        predict(data, platform, verdict->predicted_s);
    for (int op = FIT_GEMM; op < FIT_OPS && !code; op++)
        code = judge_op(data, op, verdict->predicted_s, rows, of_op, verdict, error);
    free(rows);
    free(of_op);
    if (code)
        fit_verdict_free(verdict);
    return code;
}

void fit_verdict_free(struct fit_verdict *verdict)
{
    free(verdict->predicted_s);
    verdict->predicted_s = NULL;
}

/* ---- evaluation.csv ---- */

/* Columns of all tables, in the order in which they first appear. */
struct header {
    const char **names;
    size_t n;
};

static int find_header(const struct fit_data *data, struct header *header, struct ifl_error *error)
{
    size_t n_most = 0;
    for (size_t t = 0; t < data->n_tables; t++)
        n_most += data->tables[t].n_columns;
    *header = (struct header){malloc((n_most + 1) * sizeof *header->names), 0};
    if (!header->names)
        return ifl_fail_nomem(error);
    for (size_t t = 0; t < data->n_tables; t++)
        for (size_t c = 0; c < data->tables[t].n_columns; c++) {
            const char *name = table_name(&data->tables[t], c);
            bool known = false;
            for (size_t i = 0; i < t && !known; i++)
                known = table_column(&data->tables[i], name) >= 0;
            if (!known)
                header->names[header->n++] = name;
        }
    return 0;
}

static void put_cell(FILE *out, const char *text)
{
    if (!text[strcspn(text, "\",\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, out);
    fputc('"', out);
}

static void put_prediction(FILE *out, const struct fit_sample *sample, double predicted_s)
{
    const struct form *form = form_of(sample->op);
    if (isnan(predicted_s))
        fprintf(out, "%s,%.9g,\n", form ? form->section : "", sample->measured_s);
    else
        fprintf(out, "%s,%.9g,%.9g\n", form->section, sample->measured_s, predicted_s);
}

static void put_row(FILE *out, const struct header *header, const struct fit_data *data, size_t i,
                    double predicted_s)
{
    const struct fit_sample *sample = &data->samples[i];
    const struct table *table = &data->tables[sample->table];
    for (size_t c = 0; c < header->n; c++) {
        const int column = table_column(table, header->names[c]);
        if (column >= 0)
            put_cell(out, table_cell(table, sample->row, (size_t)column));
        fputc(',', out);
    }
    put_prediction(out, sample, predicted_s);
}

int fit_write_evaluation(const struct fit_data *data, const struct fit_verdict *verdict,
                         const char *path, struct ifl_error *error)
{
    struct header header;
    struct new_file file;
    int code = find_header(data, &header, error);
    if (!code)
        code = new_file_open(&file, path, error);
    if (!code) {
        for (size_t c = 0; c < header.n; c++) {
            put_cell(file.out, header.names[c]);
            fputc(',', file.out);
        }
        fprintf(file.out, "op_class,measured_s,predicted_s\n");
        for (size_t i = 0; i < data->n; i++)
            put_row(file.out, &header, data, i, verdict->predicted_s[i]);
        code = new_file_close(&file, 0, error);
    }
    free(header.names);
    return code;
}
