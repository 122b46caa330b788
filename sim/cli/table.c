/* inflight table: writes the summaries of runs as a table for a paper or a page. */
#include <stdio.h>
#include <string.h>

#include "inflight/typeset.h"

#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/usage.h"

static const char *const format_names[IFL_N_TABLE_FORMATS] = {
    [IFL_TABLE_LATEX] = "latex", [IFL_TABLE_MARKDOWN] = "markdown", [IFL_TABLE_CSV] = "csv"};

struct request {
    struct text_list runs, where;
    const char *rows, *columns, *format, *out_path;
    long long digits;
};

/* "a,b" as its two names, in `text`. -1 after printing one line. */
static int split(const char *option, const char *given, char text[1024], struct text_list *names)
{
    names->n = 0;
    if (!given)
        return 0;
    if (snprintf(text, 1024, "%s", given) >= 1024) {
        fprintf(stderr, "inflight table: %s: more than 1023 letters\n", option);
        return -1;
    }
    for (char *name = text, *end; name; name = end) {
        end = strchr(name, ',');
        if (end)
            *end++ = '\0';
        if (!*name || names->n == sizeof names->of / sizeof *names->of) {
            fprintf(stderr, "inflight table: %s %s: expected names with a comma between two\n",
                    option, given);
            return -1;
        }
        names->of[names->n++] = name;
    }
    return 0;
}

static int read_format(const char *name, enum ifl_table_format *format)
{
    int i = 0;
    while (i < IFL_N_TABLE_FORMATS && strcmp(format_names[i], name) != 0)
        i++;
    *format = (enum ifl_table_format)i;
    if (i < IFL_N_TABLE_FORMATS)
        return 0;
    fprintf(stderr, "inflight table: there is no format %s, ", name);
    cli_suggest(name, format_names, IFL_N_TABLE_FORMATS);
    return -1;
}

static int write_table(struct ifl_table *table, const char *path, struct ifl_error *error)
{
    struct new_file file;
    table->out = stdout;
    if (!path)
        return ifl_table(table, error);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    table->out = file.out;
    return new_file_close(&file, ifl_table(table, error), error);
}

static int make_table(const struct request *request)
{
    struct text_list rows, columns;
    char row_text[1024], column_text[1024];
    struct ifl_error error;
    struct ifl_table table = {.n_runs = request->runs.n,
                              .run_dirs = request->runs.of,
                              .n_where = request->where.n,
                              .where = request->where.of,
                              .digits = (int)request->digits};
    if (split("--rows", request->rows, row_text, &rows) < 0 ||
        split("--columns", request->columns, column_text, &columns) < 0 ||
        read_format(request->format, &table.format) < 0)
        return 2;
    table.rows = rows.of;
    table.n_rows = rows.n;
    table.columns = columns.of;
    table.n_columns = columns.n;
    return write_table(&table, request->out_path, &error) < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct request request = {.format = "markdown", .digits = 3};
    if (options_read(&command_table, &request, argc, argv, &request.runs) < 0)
        return 2;
    if (request.runs.n == 0)
        return usage_fail(&command_table);
    if (request.digits < 1 || request.digits > 9) {
        fprintf(stderr, "inflight table: --digits is %lld, expected 1 to 9\n", request.digits);
        return 2;
    }
    return make_table(&request);
}

static const struct option_spec options[] = {
    {"--rows", NULL, OPTION_TEXT, offsetof(struct request, rows), "KEY,...",
     "swept keys, or run: one row for each of their values", COMPLETE_NOTHING},
    {"--columns", NULL, OPTION_TEXT, offsetof(struct request, columns), "METRIC|KEY,...",
     "columns of summary.csv; a swept key gives separate columns for each of its values",
     COMPLETE_NOTHING},
    {"--where", NULL, OPTION_LIST, offsetof(struct request, where), "KEY=VALUE",
     "use only points with this value", COMPLETE_NOTHING},
    {"--format", "-f", OPTION_TEXT, offsetof(struct request, format), "markdown|latex|csv",
     "format of the table (markdown)", COMPLETE_NOTHING},
    {"--digits", NULL, OPTION_COUNT, offsetof(struct request, digits), "N",
     "significant digits (3)", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_path), "FILE",
     "file for the table (standard output)", COMPLETE_FILE},
};

const struct command command_table = {
    .name = "table",
    .doc = "write summaries of runs as a table in LaTeX, Markdown or CSV",
    .arguments = "DIR...",
    .example = "inflight table results/quickstart --columns p99_ttft_s,request_throughput_rps",
    .notes = "With replications a cell is a mean and half the width of its 95% interval. The best "
             "of a column is bold.",
    .completion = COMPLETE_FOLDER,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
