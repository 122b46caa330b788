/* summary.csv: the swept keys and the numbers of every point. */
#include <stdlib.h>

#include "inflight/report.h"
#include "tables/columns.h"
#include "tables/row.h"
#include "tables/whole_file.h"

static char *put_metric(char *at, const struct column *column, const struct ifl_summary *summary)
{
    if (column->type == COLUMN_TEXT)
        return row_text(at, (const char *)summary + column->offset);
    return summary->error[0] ? row_word(at, "") : column_put(at, column, summary);
}

static size_t texts_bytes(const char *const *text, size_t n)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += row_text_bytes(text[i]);
    return n_bytes;
}

static char *put_texts(char *at, const char *const *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at = row_text(at, text[i]);
    return at;
}

static int write_header(struct whole_file *file, const char *const *keys, size_t n_keys,
                        size_t n_columns, struct ifl_error *error)
{
    size_t n_bytes = texts_bytes(keys, n_keys);
    for (size_t i = 0; i < n_columns; i++)
        n_bytes += row_text_bytes(summary_columns[i].name);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    at = put_texts(at, keys, n_keys);
    for (size_t i = 0; i < n_columns; i++)
        at = row_word(at, summary_columns[i].name);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_point(struct whole_file *file, const char *const *values, size_t n_keys,
                       size_t n_columns, const struct ifl_summary *summary, struct ifl_error *error)
{
    const size_t n_bytes = texts_bytes(values, n_keys) + n_columns * ROW_REAL_BYTES +
                           row_text_bytes(summary->error) + row_text_bytes(summary->assumed) +
                           row_text_bytes(summary->stage_use_frac);
    char *at = whole_room(file, n_bytes, error);
    if (!at)
        return error->code;
    at = put_texts(at, values, n_keys);
    for (size_t i = 0; i < n_columns; i++)
        at = put_metric(at, &summary_columns[i], summary);
    whole_commit(file, row_end(at));
    return IFL_OK;
}

static int write_points(struct whole_file *file, const struct ifl_points *points,
                        struct ifl_error *error)
{
    struct ifl_summary summary;
    size_t n_columns = 0;
    const char **values = calloc(points->n_keys + 1, sizeof *values);
    int code =
        values ? summary_columns_of_points(points, &n_columns, error) : ifl_fail_nomem(error);
    if (!code)
        code = write_header(file, points->keys, points->n_keys, n_columns, error);
    for (size_t i = 0; i < points->n_points && !code; i++) {
        code = points->at(points->context, i, values, &summary, error);
        if (!code)
            code = write_point(file, values, points->n_keys, n_columns, &summary, error);
    }
    free(values);
    return code;
}

int ifl_write_summary(const char *path, const struct ifl_points *points, struct ifl_error *error)
{
    struct whole_file file;
    if (whole_open(&file, path, error))
        return error->code;
    return whole_finish(&file, write_points(&file, points, error), error);
}

static int get_only(void *context, size_t point, const char **values, struct ifl_summary *summary,
                    struct ifl_error *error)
{
    (void)point;
    (void)values;
    (void)error;
    if (summary)
        *summary = *(const struct ifl_summary *)context;
    return 0;
}

struct ifl_points ifl_one_point(const struct ifl_summary *summary)
{
    return (struct ifl_points){
        .n_points = 1, .context = (void *)(uintptr_t)summary, .at = get_only};
}
