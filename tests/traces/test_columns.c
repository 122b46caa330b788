/* The table of inflight/attributes.h, line by line: what a cell says is the same after it was read,
 * cut, sorted, written and read again, and a bad cell is refused at its place. */
#include "reading.h"

#include <stdio.h>

/* Two good cells of each kind, what they say, and bad ones. */
static const struct {
    const char *cells[2], *json[2];
    int64_t says[2]; /* of names: their number if the first one comes first */
    const char *bad[4], *bad_json[2];
} examples[] = {
    [TRACE_IS_WHOLE] = {{"7", "12"},
                        {"7", "12"},
                        {7, 12},
                        {"x", "1.5", "2147483648", "-2147483649"},
                        {"1.5", "\"7\""}},
    [TRACE_IS_SECONDS] = {{"0.000000001", "12.5"},
                          {"0.000000001", "12.5"},
                          {1, 12500000000},
                          {"soon", "-1", "1e30", "1 s"},
                          {"-1", "\"1\""}},
    [TRACE_IS_CLIENT] = {{"ann", "\"bob, jr\""},
                         {"\"ann\"", "\"bob, jr\""},
                         {0, 1},
                         {NULL},
                         {"[1]", "\"a\\u0000\""}},
    [TRACE_IS_GROUP] = {{"x", "y"}, {"\"x\"", "\"y\""}, {1, 2}, {NULL}, {"[1]", "\"a\\u0000\""}},
    [TRACE_IS_MODEL] = {{"ann", "\"bob, jr\""},
                        {"\"ann\"", "\"bob, jr\""},
                        {1, 2},
                        {NULL},
                        {"[1]", "\"a\\u0000\""}},
    [TRACE_IS_ADAPTER] = {{"ann", "\"bob, jr\""},
                          {"\"ann\"", "\"bob, jr\""},
                          {1, 2},
                          {NULL},
                          {"[1]", "\"a\\u0000\""}},
    [TRACE_IS_ROW] = {{"7", "9007199254740993"},
                      {"7", "12"},
                      {7, 9007199254740993},
                      {"x", "-1", "1.5", "1e30"},
                      {NULL, NULL}},
    [TRACE_IS_ID] = {{"7", "12"}, {"7", "12"}, {7, 12}, {"x", "-1", "1.5", NULL}, {NULL, NULL}},
};

enum { SAYS_NOTHING = -1, N_ROWS = 3 };

/* Which examples the rows have, in the file's order, and then sorted. */
static const int in_file[N_ROWS] = {0, SAYS_NOTHING, 1}, in_time[N_ROWS] = {SAYS_NOTHING, 1, 0};

static size_t add_cells(char *text, size_t n, const char *basics, int example)
{
    n += (size_t)sprintf(text + n, "%s", basics);
    for (int c = TRACE_FIRST_ATTRIBUTE; c < TRACE_N_CSV_COLUMNS; c++)
        n += (size_t)sprintf(
            text + n, ",%s",
            example == SAYS_NOTHING ? "" : examples[trace_columns[c].kind].cells[example]);
    return n + (size_t)sprintf(text + n, "\n");
}

static size_t add_header(char *text)
{
    size_t n = 0;
    for (int c = 0; c < TRACE_N_CSV_COLUMNS; c++)
        n += (size_t)sprintf(text + n, "%s%s", c ? "," : "", trace_columns[c].name);
    return n + (size_t)sprintf(text + n, "\n");
}

static void expect_cell(const struct ifl_trace *trace, enum trace_column column, size_t row,
                        int example, const int *order)
{
    const struct trace_column_spec *spec = &trace_columns[column];
    const int64_t found = trace_cell(trace, column, row);
    if (spec->kind == TRACE_IS_CLIENT) {
        static const char *const names[] = {"", "ann", "bob, jr"};
        cr_expect_str_eq(trace->client_names[found], names[example + 1], "row %zu", row);
        return;
    }
    if (spec->kind == TRACE_IS_MODEL && example != SAYS_NOTHING) {
        static const char *const names[] = {"ann", "bob, jr"};
        cr_assert(found >= 1 && found <= trace->n_models, "row %zu", row);
        cr_expect_str_eq(trace->model_names[found - 1], names[example], "row %zu", row);
        return;
    }
    if (spec->kind == TRACE_IS_ADAPTER && example != SAYS_NOTHING) {
        static const char *const names[] = {"ann", "bob, jr"};
        cr_assert(found >= 1 && found <= trace->n_adapters, "row %zu", row);
        cr_expect_str_eq(trace->adapter_names[found - 1], names[example], "row %zu", row);
        return;
    }
    /* Groups are numbered in the order in which a reader meets them. */
    const bool swapped = spec->kind == TRACE_IS_GROUP && order == in_time;
    const int64_t expected =
        example == SAYS_NOTHING ? spec->absent : examples[spec->kind].says[example ^ swapped];
    cr_expect_eq(found, expected, "%s of row %zu is %lld, not %lld", spec->name, row,
                 (long long)found, (long long)expected);
}

/* `read_in`: the order of the rows in the file that was read. */
static void expect_rows(const struct ifl_trace *trace, const int *order, const int *read_in)
{
    cr_assert_eq(trace->n, N_ROWS);
    for (size_t i = 0; i < N_ROWS; i++)
        for (int c = TRACE_FIRST_ATTRIBUTE; c < TRACE_N_CSV_COLUMNS; c++)
            expect_cell(trace, (enum trace_column)c, i, order[i], read_in);
}

static struct ifl_trace write_and_read(const struct ifl_trace *trace)
{
    char text[4096];
    struct ifl_error error;
    FILE *out = fmemopen(text, sizeof text, "w");
    cr_assert_eq(ifl_trace_write(trace, out, &error), 0);
    fclose(out);
    return must_read(text);
}

static struct ifl_trace read_cut(const char *text, uint64_t limit)
{
    const struct ifl_trace_window window = {.limit = limit};
    struct ifl_trace whole = must_read(text), trace;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_cut(&whole, &window, "t.csv", NULL, &trace, &error), 0);
    ifl_trace_free(&whole);
    return trace;
}

Test(columns, each_survives_reading_cutting_sorting_and_writing)
{
    char text[4096];
    struct ifl_error error;
    size_t n = add_header(text);
    n = add_cells(text, n, "3,50,5,30", in_file[0]); /* retry_of: the third row */
    n = add_cells(text, n, "1,50,5,9007199254740993", in_file[1]);
    n = add_cells(text, n, "2,50,5,7", in_file[2]); /* retry_of: the second row */
    add_cells(text, n, "4,50,5,0", 1);              /* is cut away */
    struct ifl_trace trace = read_cut(text, N_ROWS);
    expect_rows(&trace, in_file, in_file);
    cr_assert_eq(ifl_trace_sort(&trace, NULL, &error), 0);
    expect_rows(&trace, in_time, in_file);
    struct ifl_trace again = write_and_read(&trace);
    expect_rows(&again, in_time, in_time);
    expect_column(again.arrival_ns, IFL_NS_PER_S, 2 * IFL_NS_PER_S, 3 * IFL_NS_PER_S);
    expect_column(again.request_id, 9007199254740993, 7, 30);
    ifl_trace_free(&trace);
    ifl_trace_free(&again);
}

/* A row that says nothing leaves what the run says. */
Test(columns, a_row_overwrites_what_it_says)
{
    char text[4096];
    size_t n = add_header(text);
    n = add_cells(text, n, "0,50,5,", 1);
    add_cells(text, n, "0,50,5,9007199254740993", SAYS_NOTHING);
    struct ifl_trace trace = must_read(text);
    struct ifl_attributes said, unsaid;
    memset(&said, 0x11, sizeof said);
    memset(&unsaid, 0x11, sizeof unsaid);
    cr_expect(ifl_trace_has_attributes(&trace));
    ifl_trace_attributes_of(&trace, 0, &said);
    ifl_trace_attributes_of(&trace, 1, &unsaid);
#define EXPECT_SAID(column, kind, member, ...)                                                     \
    if (TRACE_IS_##kind != TRACE_IS_CLIENT) {                                                      \
        cr_expect_eq(said.member, trace.member[0], "%s", #member);                                 \
        cr_expect(said.member != unsaid.member, "%s", #member);                                    \
        cr_expect_eq((uint32_t)unsaid.member, 0x11111111, "%s", #member);                          \
        cr_expect_eq(trace.member[1], ifl_attributes_absent.member, "%s", #member);                \
    }
    IFL_ATTRIBUTES(EXPECT_SAID)
#undef EXPECT_SAID
    cr_expect_eq(unsaid.client, 1); /* a client without a name is a client, too */
    ifl_trace_free(&trace);
    trace = must_read("prompt_tokens,output_tokens,request_id\n1,1,5\n");
    cr_expect_not(ifl_trace_has_attributes(&trace));
    cr_expect_eq(ifl_trace_id(&trace, 0), 5);
    ifl_trace_free(&trace);
}

/* ---- bad cells ---- */

static void expect_refusal(const char *text, size_t n, const char *name, int line, size_t column)
{
    struct ifl_trace trace;
    struct ifl_error error = {0};
    cr_expect_eq(read_bytes(text, n, "auto", &trace, &error), IFL_E_INPUT, "accepted: %s", text);
    cr_expect_eq(strncmp(error.text, name, strlen(name)), 0, "\"%s\" is not about %s", error.text,
                 name);
    cr_expect(strstr(error.text, ", expected "), "%s", error.text);
    cr_expect(error.line == line && error.column == (int)column, "%s: blamed at %d:%d, not %d:%zu",
              error.text, error.line, error.column, line, column);
    cr_expect_str_eq(error.file, "text.csv");
}

/* A good line, and one that differs in the cell `of`. */
static void expect_bad_cell(int of, const char *bad, size_t n_bad)
{
    char text[4096];
    size_t n = add_header(text), column = 0;
    n = add_cells(text, n, "0,50,5,0", 0);
    const size_t line = n;
    n += (size_t)sprintf(text + n, "1,50,5");
    for (int c = TRACE_REQUEST_ID; c < TRACE_N_CSV_COLUMNS; c++) {
        const char *good = examples[trace_columns[c].kind].cells[0];
        text[n++] = ',';
        if (c == of)
            column = n - line + 1;
        const size_t n_cell = c == of ? n_bad : strlen(good);
        memcpy(text + n, c == of ? bad : good, n_cell);
        n += n_cell;
    }
    text[n++] = '\n';
    expect_refusal(text, n, trace_columns[of].name, 3, column);
}

Test(columns, bad_cells_are_refused_at_their_place)
{
    for (int c = TRACE_REQUEST_ID; c < TRACE_N_CSV_COLUMNS; c++) {
        const struct trace_column_spec *spec = &trace_columns[c];
        for (int i = 0; i < 4 && examples[spec->kind].bad[i]; i++)
            expect_bad_cell(c, examples[spec->kind].bad[i], strlen(examples[spec->kind].bad[i]));
        char below[24];
        const int n = sprintf(below, "%lld", (long long)spec->least - 1);
        if (spec->kind == TRACE_IS_WHOLE)
            expect_bad_cell(c, below, (size_t)n);
        if (trace_kind_is_named(spec->kind))
            expect_bad_cell(c, "a\0b", 3);
    }
}

/* ---- in other formats ---- */

Test(columns, keys_of_json_say_the_same)
{
    for (int c = TRACE_FIRST_ATTRIBUTE; c < TRACE_FIRST_ATTRIBUTE + TRACE_N_OF_ANY_FORMAT; c++) {
        const struct trace_column_spec *spec = &trace_columns[c];
        const char *const *json = examples[spec->kind].json;
        char text[512];
        const size_t n = (size_t)sprintf(
            text,
            "{\"timestamp\":0,\"input_length\":50,\"output_length\":5,\"%s\":%s}\n"
            "{\"timestamp\":0,\"input_length\":50,\"output_length\":5,\"%s\":null}\n",
            spec->name, json[0], spec->name);
        sprintf(text + n, "{\"timestamp\":0,\"input_length\":50,\"output_length\":5,\"%s\":%s}\n",
                spec->name, json[1]);
        struct ifl_trace trace = must_read(text);
        for (size_t i = 0; i < N_ROWS; i++)
            expect_cell(&trace, (enum trace_column)c, i, in_file[i], in_file);
        ifl_trace_free(&trace);
        for (int bad = 0; bad < 2; bad++) {
            const size_t n_bad = (size_t)sprintf(
                text + n, "{\"timestamp\":0,\"input_length\":50,\"output_length\":5,\"%s\":%s}\n",
                spec->name, examples[spec->kind].bad_json[bad]);
            expect_refusal(text, n + n_bad, spec->name, 3, 0);
        }
    }
}

Test(columns, columns_of_other_csv_say_the_same)
{
    for (int c = TRACE_FIRST_ATTRIBUTE; c < TRACE_FIRST_ATTRIBUTE + TRACE_N_OF_ANY_FORMAT; c++) {
        const struct trace_column_spec *spec = &trace_columns[c];
        const char *const *cells = examples[spec->kind].cells, *bad = examples[spec->kind].bad[0];
        char text[256];
        const size_t n =
            (size_t)sprintf(text, "num_prefill_tokens,%s,num_decode_tokens\n50,%s,5\n50,,5\n",
                            spec->name, cells[0]);
        sprintf(text + n, "50,%s,5\n", cells[1]);
        struct ifl_trace trace = must_read(text);
        for (size_t i = 0; i < N_ROWS; i++)
            expect_cell(&trace, (enum trace_column)c, i, in_file[i], in_file);
        ifl_trace_free(&trace);
        if (bad)
            expect_refusal(text, n + (size_t)sprintf(text + n, "50,%s,5\n", bad), spec->name, 4, 4);
    }
}

/* ---- documentation ---- */

Test(columns, format_md_has_the_texts_of_the_table)
{
    static char text[32768];
    FILE *file = fopen("docs/formats.md", "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int c = 0; c < TRACE_N_CSV_COLUMNS; c++) {
        const struct trace_column_spec *spec = &trace_columns[c];
        char row[512];
        snprintf(row, sizeof row, "| `%s` | %s | %s |\n", spec->name, spec->says, spec->empty);
        cr_expect(strstr(text, row), "docs/formats.md lacks the row\n%s", row);
    }
}
