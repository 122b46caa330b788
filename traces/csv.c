/* CSV files: libcsv splits the lines, and the names in the header assign the cells to columns.
 *
 * A line is a record: libcsv is finished behind each line that may leave a quote open. So an open
 * quote is an error of its own line and does not extend over the rest of the file. */
#include "traces.h"

#include <csv.h>
#include <string.h>

#include "inflight/nearest.h"

enum { MAX_FILE_COLUMNS = 256, UNBOUND = -1 };

struct cell {
    size_t at, n; /* in `text` */
};

struct trace_row {
    const struct trace_input *input;
    const struct trace_csv_format *format; /* with the attributes, from first_attribute on */
    size_t first_attribute;
    const struct trace_csv_reader *reader;
    struct ifl_error *error;
    int rc; /* of the callbacks, which cannot stop libcsv */
    bool header_seen;
    const char *line; /* borrowed, for the columns of errors */
    size_t line_bytes;
    char *text; /* the bound cells, each with its NUL */
    size_t cap_text, n_text;
    struct cell cells[TRACE_CSV_MAX_COLUMNS];
    int place[TRACE_CSV_MAX_COLUMNS]; /* of the format's columns in the file, or UNBOUND */
    int bound[MAX_FILE_COLUMNS];      /* of the file's columns in the format, or UNBOUND */
    int n_file_columns, n_cells;
};

/* ---- errors ---- */

/* The 1-based place in the line where the file's column begins. */
static int column_in_line(const struct trace_row *row, int place)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < row->line_bytes && place > 0; i++) {
        quoted ^= row->line[i] == '"';
        place -= row->line[i] == ',' && !quoted;
    }
    return (int)i + 1;
}

int trace_row_fail(const struct trace_row *row, size_t column, const char *expected,
                   struct ifl_error *error)
{
    char found[48];
    const struct cell *cell = &row->cells[column];
    trace_printable(found, sizeof found, row->text + cell->at, cell->n);
    return ifl_fail_at(error, row->input->path, row->input->line,
                       column_in_line(row, row->place[column]), "%s is \"%s\", expected %s",
                       row->format->columns[column].name, found, expected);
}

static const char *nearest_name(const struct trace_csv_format *format, const char *name)
{
    const char *names[TRACE_CSV_MAX_COLUMNS];
    for (size_t i = 0; i < format->n_columns; i++)
        names[i] = format->columns[i].name;
    return ifl_nearest(name, names, format->n_columns);
}

/* A NUL within a text ends it, and the rest would be lost. */
static bool has_nul(const struct trace_row *row, const char *text, size_t n)
{
    return row->input->has_nuls && memchr(text, '\0', n);
}

static int fail_header(struct trace_row *row, int place, const char *what, const char *name)
{
    return ifl_fail_at(row->error, row->input->path, row->input->line, column_in_line(row, place),
                       "column \"%s\" %s", name, what);
}

/* ---- the header ---- */

IFL_APART static int bind(struct trace_row *row, int place, const char *name, size_t n)
{
    const struct trace_csv_format *format = row->format;
    char found[64], what[96];
    size_t i = 0;
    trace_printable(found, sizeof found, name, n);
    if (has_nul(row, name, n))
        return fail_header(row, place, "holds a NUL character, expected a name without", found);
    while (i < format->n_columns && strcmp(name, format->columns[i].name) != 0)
        i++;
    row->bound[place] = i < format->n_columns ? (int)i : UNBOUND;
    if (i == format->n_columns) {
        const char *near = nearest_name(format, found);
        snprintf(what, sizeof what, "is unknown%s%s", near ? "; the nearest right name is " : "",
                 near ? near : "");
        return format->own ? fail_header(row, place, what, found) : 0;
    }
    if (row->place[i] != UNBOUND)
        return fail_header(row, place, "is there twice", found);
    row->place[i] = place;
    return 0;
}

static int check_header(struct trace_row *row)
{
    char found[256];
    size_t n = row->line_bytes;
    while (n > 0 && (row->line[n - 1] == '\n' || row->line[n - 1] == '\r'))
        n--;
    for (size_t i = 0; i < row->format->n_columns; i++)
        if (row->format->columns[i].presence == TRACE_NEEDED && row->place[i] == UNBOUND)
            return ifl_fail_at(row->error, row->input->path, row->input->line, 0,
                               "column %s is missing, the header is \"%s\"",
                               row->format->columns[i].name,
                               trace_printable(found, sizeof found, row->line, n));
    const int rc =
        row->reader->header ? row->reader->header(row->reader->self, row, row->error) : 0;
    return rc < 0 ? rc
                  : trace_attributes_want_row(row->reader->rows, row, row->first_attribute,
                                              row->format->n_columns - row->first_attribute,
                                              row->error);
}

/* ---- cells and records, called back by libcsv ---- */

static int keep_cell(struct trace_row *row, int column, const char *text, size_t n)
{
    if (IFL_RARE(row->n_text + n + 1 > row->cap_text)) {
        const size_t cap = 2 * (row->n_text + n + 1);
        char *grown = realloc(row->text, cap);
        if (!grown)
            return ifl_fail_nomem(row->error);
        row->text = grown;
        row->cap_text = cap;
    }
    row->cells[column] = (struct cell){row->n_text, n};
    memcpy(row->text + row->n_text, text, n);
    row->text[row->n_text + n] = '\0';
    row->n_text += n + 1;
    return IFL_RARE(has_nul(row, text, n))
               ? trace_row_fail(row, (size_t)column, "a text without NUL characters", row->error)
               : 0;
}

static void take_cell(void *text, size_t n, void *context)
{
    struct trace_row *row = context;
    const int place = row->n_cells++;
    if (IFL_RARE(row->rc < 0))
        return;
    if (IFL_RARE(!row->header_seen) && place < MAX_FILE_COLUMNS)
        row->rc = bind(row, place, text, n);
    else if (place < row->n_file_columns && row->bound[place] != UNBOUND)
        row->rc = keep_cell(row, row->bound[place], text, n);
}

IFL_APART static int end_header(struct trace_row *row)
{
    if (row->n_cells > MAX_FILE_COLUMNS)
        return ifl_fail_at(row->error, row->input->path, row->input->line, 0,
                           "the header has %d columns, expected at most %d", row->n_cells,
                           MAX_FILE_COLUMNS);
    row->header_seen = true;
    row->n_file_columns = row->n_cells;
    return check_header(row);
}

static int end_record(struct trace_row *row)
{
    if (row->n_cells != row->n_file_columns)
        return ifl_fail_at(row->error, row->input->path, row->input->line, 0,
                           "%d cells, expected %d as in the header", row->n_cells,
                           row->n_file_columns);
    struct trace_rows *rows = row->reader->rows;
    const size_t n = rows->trace->n;
    const int rc = row->reader->record(row->reader->self, row, row->error);
    return rc < 0 || row->format->own || rows->trace->n == n
               ? rc
               : trace_attributes_take_row(rows, row, row->first_attribute, row->error);
}

static void take_row(int terminator, void *context)
{
    struct trace_row *row = context;
    (void)terminator;
    const int rc = row->rc < 0 ? row->rc : row->header_seen ? end_record(row) : end_header(row);
    row->rc = rc < 0 ? rc : 0;
    row->n_cells = 0;
    row->n_text = 0;
}

/* ---- the file ---- */

static int fail_split(const struct trace_row *row, struct csv_parser *parser, size_t at)
{
    if (csv_error(parser) == CSV_ENOMEM)
        return ifl_fail_nomem(row->error);
    const char *what = at < row->line_bytes ? "a stray quote, expected it doubled in a quoted cell"
                                            : "a quote is not closed, expected it on this line";
    return ifl_fail_at(row->error, row->input->path, row->input->line,
                       at < row->line_bytes ? (int)at + 1 : 0, "%s", what);
}

/* True if the line may end within a record: only then csv_fini is needed. Most files have no
 * quotes.
 */
static bool may_be_open(const struct trace_row *row)
{
    return row->line[row->line_bytes - 1] != '\n' || row->input->has_quotes;
}

static int split_line(struct trace_row *row, struct csv_parser *parser)
{
    const size_t at = csv_parse(parser, row->line, row->line_bytes, take_cell, take_row, row);
    if (IFL_RARE(row->rc == 0 && at < row->line_bytes))
        return fail_split(row, parser, at);
    if (row->rc == 0 && may_be_open(row) && csv_fini(parser, take_cell, take_row, row) != 0)
        return fail_split(row, parser, at);
    return row->rc;
}

static int split_lines(struct trace_row *row, struct trace_input *input)
{
    struct csv_parser parser;
    int rc;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return ifl_fail_nomem(row->error);
    while ((rc = trace_input_line(input, &row->line, &row->line_bytes, row->error)) > 0) {
        rc = split_line(row, &parser);
        if (rc < 0)
            break;
    }
    csv_free(&parser);
    return rc;
}

static void add_attributes(const struct trace_csv_format *format, struct trace_csv_column *columns,
                           struct trace_csv_format *with)
{
    const size_t n = format->own ? TRACE_N_ATTRIBUTES : TRACE_N_OF_ANY_FORMAT;
    memcpy(columns, format->columns, format->n_columns * sizeof *columns);
    for (size_t a = 0; a < n; a++)
        columns[format->n_columns + a] = (struct trace_csv_column){
            trace_columns[TRACE_FIRST_ATTRIBUTE + a].name, TRACE_OPTIONAL};
    *with = (struct trace_csv_format){columns, format->n_columns + n, format->own};
}

int trace_csv_read(struct trace_input *input, const struct trace_csv_format *format,
                   const struct trace_csv_reader *reader, struct ifl_error *error)
{
    ifl_assert(format->n_columns <= TRACE_CSV_MAX_COLUMNS);
    struct trace_csv_column columns[TRACE_CSV_MAX_COLUMNS];
    struct trace_csv_format with;
    struct trace_row *row = calloc(1, sizeof *row);
    if (!row)
        return ifl_fail_nomem(error);
    add_attributes(format, columns, &with);
    row->input = input;
    row->format = &with;
    row->first_attribute = format->n_columns;
    row->reader = reader;
    row->error = error;
    for (size_t i = 0; i < TRACE_CSV_MAX_COLUMNS; i++)
        row->place[i] = UNBOUND;
    const int rc = split_lines(row, input);
    free(row->text);
    free(row);
    return rc;
}

/* ---- cells, as readers ask for them ---- */

bool trace_row_bound(const struct trace_row *row, size_t column)
{
    return row->place[column] != UNBOUND;
}

bool trace_row_filled(const struct trace_row *row, size_t column)
{
    return trace_row_bound(row, column) && row->cells[column].n > 0;
}

const char *trace_row_text(const struct trace_row *row, size_t column)
{
    return row->text + row->cells[column].at;
}

int trace_row_line(const struct trace_row *row)
{
    return row->input->line;
}

int trace_row_column(const struct trace_row *row, size_t column)
{
    return column_in_line(row, row->place[column]);
}

IFL_COLD static int fail_whole(const struct trace_row *row, size_t column, int64_t min, int64_t max,
                               struct ifl_error *error)
{
    char expected[96];
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min,
             (long long)max);
    return trace_row_fail(row, column, expected, error);
}

IFL_HOT int trace_row_whole(const struct trace_row *row, size_t column, int64_t min, int64_t max,
                            int64_t *value, struct ifl_error *error)
{
    if (trace_whole(trace_row_text(row, column), row->cells[column].n, value) == TRACE_NUMBER &&
        *value >= min && *value <= max)
        return 0;
    return fail_whole(row, column, min, max, error);
}

IFL_HOT int trace_row_tokens(const struct trace_row *row, size_t column, int32_t min,
                             int32_t *tokens, struct ifl_error *error)
{
    int64_t value;
    const int rc = trace_row_whole(row, column, min, INT32_MAX, &value, error);
    if (rc == 0)
        *tokens = (int32_t)value;
    return rc;
}

int trace_row_stamp(const struct trace_row *row, size_t column, int64_t *ns,
                    struct ifl_error *error)
{
    if (trace_seconds(trace_row_text(row, column), row->cells[column].n, ns) == TRACE_NUMBER &&
        *ns >= 0)
        return 0;
    return trace_row_fail(row, column, "seconds from 0 to 9.2e9", error);
}

int trace_row_seconds_or(const struct trace_row *row, size_t column, int64_t none_ns, int64_t *cell,
                         struct ifl_error *error)
{
    *cell = none_ns;
    return trace_row_filled(row, column) ? trace_row_stamp(row, column, cell, error) : 0;
}
