#include "base/table.h"

#include <csv.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/unpack.h"

enum { MAX_COLUMNS = 256, MAX_LINE = 1 << 16 };

struct reading {
    struct table *table;
    struct ifl_error *error;
    int line, code;
    size_t n_in_row;
};

/* ---- growing arrays ---- */

static int grow(void **items, size_t size, size_t n, size_t *cap)
{
    if (n <= *cap)
        return 0;
    const size_t wanted = ifl_max(n, 2 * *cap);
    void *grown = realloc(*items, wanted * size);
    if (!grown)
        return IFL_E_NOMEM;
    *items = grown;
    *cap = wanted;
    return 0;
}

static int keep(struct table *table, const char *cell, size_t n, struct ifl_error *error)
{
    void *text = table->text, *cells = table->cells;
    const int fits = grow(&text, 1, table->n_text + n + 1, &table->cap_text);
    table->text = text;
    const int counts = grow(&cells, sizeof *table->cells, table->n_cells + 1, &table->cap_cells);
    table->cells = cells;
    if (fits < 0 || counts < 0)
        return ifl_fail_nomem(error);
    table->cells[table->n_cells++] = table->n_text;
    memcpy(table->text + table->n_text, cell, n);
    table->text[table->n_text + n] = '\0';
    table->n_text += n + 1;
    return 0;
}

/* ---- called by libcsv ---- */

static void take_cell(void *text, size_t n, void *context)
{
    struct reading *reading = context;
    reading->n_in_row++;
    if (reading->code == 0)
        reading->code = keep(reading->table, text ? text : "", n, reading->error);
}

static int end_header(struct reading *reading)
{
    reading->table->n_columns = reading->n_in_row;
    if (reading->n_in_row <= MAX_COLUMNS)
        return 0;
    return ifl_fail_at(reading->error, reading->table->path, reading->line, 0,
                       "the header has %zu columns, expected at most %d", reading->n_in_row,
                       MAX_COLUMNS);
}

static int end_row(struct reading *reading)
{
    struct table *table = reading->table;
    if (reading->n_in_row != table->n_columns)
        return ifl_fail_at(reading->error, table->path, reading->line, 0,
                           "%zu cells, expected %zu as in the header", reading->n_in_row,
                           table->n_columns);
    void *lines = table->lines;
    const int fits = grow(&lines, sizeof *table->lines, table->n_rows + 1, &table->cap_lines);
    table->lines = lines;
    if (fits < 0)
        return ifl_fail_nomem(reading->error);
    table->lines[table->n_rows++] = reading->line;
    return 0;
}

static void take_row(int terminator, void *context)
{
    struct reading *reading = context;
    (void)terminator;
    if (reading->code == 0)
        reading->code = reading->table->n_columns ? end_row(reading) : end_header(reading);
    reading->n_in_row = 0;
}

/* ---- the file, a line at a time ---- */

static int fail_csv(const struct reading *reading)
{
    return ifl_fail_at(reading->error, reading->table->path, reading->line, 0,
                       "a stray or open quote, expected quotes closed on their line and doubled "
                       "inside");
}

/* libcsv is finished behind each line, so that an open quote is an error of its own line. */
static int split(struct reading *reading, struct csv_parser *parser, const char *line, size_t n)
{
    if (csv_parse(parser, line, n, take_cell, take_row, reading) != n && reading->code == 0)
        return fail_csv(reading);
    if (csv_fini(parser, take_cell, take_row, reading) != 0 && reading->code == 0)
        return fail_csv(reading);
    return reading->code;
}

static int remark(struct table *table, const char *line, size_t n, struct ifl_error *error)
{
    void *remarks = table->remarks;
    const int fits = grow(&remarks, 1, table->n_remarks + n + 1, &table->cap_remarks);
    table->remarks = remarks;
    if (fits < 0)
        return ifl_fail_nomem(error);
    memcpy(table->remarks + table->n_remarks, line, n + 1);
    table->n_remarks += n;
    return 0;
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0';
}

static int take_line(struct reading *reading, struct csv_parser *parser, const char *line, size_t n)
{
    if (line[0] == '#')
        return reading->table->n_columns ? 0 : remark(reading->table, line, n, reading->error);
    return is_blank(line) ? 0 : split(reading, parser, line, n);
}

/* A line of `n` bytes, its newline included. */
static int end_line(struct reading *reading, struct csv_parser *parser, char *line, size_t n)
{
    const char after = line[n];
    reading->line++;
    if (memchr(line, '\0', n))
        return ifl_fail_at(reading->error, reading->table->path, reading->line, 0,
                           "a line with a NUL character, expected text");
    line[n] = '\0';
    const int code = take_line(reading, parser, line, n);
    line[n] = after;
    return code;
}

/* Takes all whole lines, and at the end of the file the rest. Returns how many bytes it took. */
static size_t take_lines(struct reading *reading, struct csv_parser *parser, char *text, size_t n,
                         bool at_end)
{
    size_t done = 0;
    while (reading->code == 0 && done < n) {
        const char *newline = memchr(text + done, '\n', n - done);
        if (!newline && !at_end)
            break;
        const size_t n_line = newline ? (size_t)(newline - text) + 1 - done : n - done;
        reading->code = end_line(reading, parser, text + done, n_line);
        done += n_line;
    }
    return done;
}

static int read_lines(struct reading *reading, struct ifl_unpacker *file, char *text)
{
    struct csv_parser parser;
    size_t n = 0, n_more = 1;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
        return ifl_fail_nomem(reading->error);
    while (reading->code == 0 && n_more > 0) {
        reading->code = ifl_unpack(file, text + n, MAX_LINE - n, &n_more, reading->error);
        n += n_more;
        const size_t done = take_lines(reading, &parser, text, n, n_more == 0);
        memmove(text, text + done, n - done);
        n -= done;
        if (reading->code == 0 && n == MAX_LINE)
            reading->code = ifl_fail_at(reading->error, reading->table->path, reading->line + 1, 0,
                                        "a line of more than %d bytes", MAX_LINE);
    }
    csv_free(&parser);
    return reading->code;
}

static int read_file(struct table *table, struct ifl_unpacker *file, struct ifl_error *error)
{
    struct reading reading = {.table = table, .error = error};
    char *text = malloc(MAX_LINE + 1); /* and the NUL behind a line */
    int code = text ? read_lines(&reading, file, text) : ifl_fail_nomem(error);
    free(text);
    if (code == 0 && table->n_rows == 0)
        code = ifl_fail_at(error, table->path, 0, 0, "no rows, expected a header and rows");
    return code;
}

int table_read(const char *path, struct table *table, struct ifl_error *error)
{
    struct ifl_unpacker *file = NULL;
    *table = (struct table){.path = strdup(path)};
    int code = table->path ? ifl_unpack_open(path, &file, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = read_file(table, file, error);
    ifl_unpack_close(file);
    if (code == IFL_E_NOMEM)
        ifl_blame_file(error, path);
    if (code < 0)
        table_free(table);
    return code;
}

void table_free(struct table *table)
{
    free(table->path);
    free(table->text);
    free(table->cells);
    free(table->lines);
    free(table->remarks);
    *table = (struct table){0};
}

/* ---- cells ---- */

const char *table_name(const struct table *table, size_t column)
{
    ifl_assert(column < table->n_columns);
    return table->text + table->cells[column];
}

const char *table_cell(const struct table *table, size_t row, size_t column)
{
    ifl_assert(row < table->n_rows && column < table->n_columns);
    return table->text + table->cells[(row + 1) * table->n_columns + column];
}

const char *table_remark(const struct table *table, const char *name, char text[256])
{
    const size_t n_name = strlen(name);
    text[0] = '\0';
    for (const char *line = table->remarks; line && *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "# ", 2) == 0 && strncmp(line + 2, name, n_name) == 0 &&
            strncmp(line + 2 + n_name, ": ", 2) == 0)
            snprintf(text, 256, "%.*s", (int)strcspn(line + n_name + 4, "\r\n"), line + n_name + 4);
        if (!strchr(line, '\n'))
            break;
    }
    return text;
}

int table_column(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table_name(table, i), name) == 0)
            return (int)i;
    return -1;
}

/* The 1-based place in the line where the cell begins, too low behind cells in quotes. */
static int column_in_line(const struct table *table, size_t row, size_t column)
{
    size_t at = 1;
    for (size_t i = 0; i < column; i++)
        at += strlen(table_cell(table, row, i)) + 1;
    return (int)at;
}

int table_fail(const struct table *table, size_t row, size_t column, const char *expected,
               struct ifl_error *error)
{
    return ifl_fail_at(error, table->path, table->lines[row], column_in_line(table, row, column),
                       "%s is \"%.60s\", expected %s", table_name(table, column),
                       table_cell(table, row, column), expected);
}

int table_number(const struct table *table, size_t row, size_t column, double min, double max,
                 double *value, struct ifl_error *error)
{
    char *end, expected[64];
    const char *text = table_cell(table, row, column);
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && *value >= min && *value <= max)
        return 0;
    snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    return table_fail(table, row, column, expected, error);
}
