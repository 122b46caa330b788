/* Charts for a terminal: where points stand, what fits into 80 columns, how long bars are. */
#include "scratch.h"

static struct ifl_error error;

enum { MOST_LINES = 40 };

struct lines {
    char *text, *of[MOST_LINES];
    size_t n;
};

static struct lines draw(const char *summary, const char *column)
{
    struct scratch scratch = scratch_make();
    const char *const dirs[] = {scratch.dir};
    struct lines lines = {0};
    size_t n_bytes;
    scratch_write(&scratch, "summary.csv", summary);
    FILE *out = open_memstream(&lines.text, &n_bytes);
    cr_assert_eq(ifl_plot_terminal(out, 1, dirs, column, &error), IFL_OK, "%s", error.text);
    fclose(out);
    for (char *at = lines.text, *end; (end = strchr(at, '\n')); at = end + 1) {
        cr_assert_lt(lines.n, MOST_LINES);
        *end = '\0';
        lines.of[lines.n++] = at;
    }
    scratch_remove(&scratch);
    return lines;
}

/* Letters, of which UTF-8 may need several bytes each. */
static size_t n_letters(const char *line)
{
    size_t n = 0;
    for (const char *c = line; *c; c++)
        n += (*c & 0xc0) != 0x80;
    return n;
}

/* The number of letters before the first `letter` of the chart's part of a line; -1: none. */
static int column_of(const char *line, char letter)
{
    const char *bar = strchr(line, '|'), *at = bar ? strchr(bar, letter) : NULL;
    if (!at)
        return -1;
    char before[512];
    snprintf(before, sizeof before, "%.*s", (int)(at - bar - 1), bar + 1);
    return (int)n_letters(before);
}

/* Three points on a line from 0 to the top: the first letter is at the lower left, the last at the
 * upper right, the one between in the middle. Below a blank line and the title are 16 rows. */
Test(terminal, a_straight_line)
{
    struct lines lines = draw("preset,rate_rps,requests,mean_ttft_s,saturated\n"
                              "x,1,9,0,false\nx,2,9,1,false\nx,3,9,2,true\n",
                              "mean_ttft_s");
    cr_expect_str_eq(lines.of[1], "TTFT, mean (s) against the arrival rate (req/s)");
    cr_expect_eq(column_of(lines.of[2], 'A'), 68, "saturated: %s", lines.of[2]);
    cr_expect_eq(column_of(lines.of[17], 'a'), 0, "%s", lines.of[17]);
    const int middle = column_of(lines.of[9], 'a');
    cr_expect(middle == 34 || column_of(lines.of[10], 'a') == 34, "%s\n%s", lines.of[9],
              lines.of[10]);
    cr_expect_str_eq(lines.of[20], "a x");
    for (size_t i = 0; i < lines.n; i++)
        cr_expect_leq(n_letters(lines.of[i]), 80, "%s", lines.of[i]);
    /* A line from corner to corner touches each of the 69 columns, and each row. */
    size_t n_columns = 0;
    for (size_t i = 2; i < 18; i++) {
        const char *bar = strchr(lines.of[i], '|') + 1;
        cr_expect_neq(bar[strspn(bar, " ")], '\0', "row %zu is empty", i);
        n_columns += n_letters(bar + strspn(bar, " "));
    }
    cr_expect_geq(n_columns, 69);
    free(lines.text);
}

/* Values of 0.01 to 10 are a third of the height apart on a logarithm. */
Test(terminal, powers_of_ten)
{
    struct lines lines =
        draw("preset,rate_rps,requests,mean_ttft_s,saturated\n"
             "x,1,9,0.01,false\nx,2,9,0.1,false\nx,3,9,1,false\nx,4,9,10,false\n"
             "y,1,9,0.01,false\ny,2,9,,false\ny,3,9,0.01,false\ny,4,9,0.01,false\n",
             "mean_ttft_s");
    cr_expect_geq(column_of(lines.of[17], '*'), 0, "two series in a place: %s", lines.of[17]);
    cr_expect_eq(column_of(lines.of[2], 'a'), 68);
    cr_expect(column_of(lines.of[7], 'a') == 45 || column_of(lines.of[7], 'a') == 46, "%s",
              lines.of[7]);
    cr_expect(column_of(lines.of[12], 'a') == 22 || column_of(lines.of[12], 'a') == 23, "%s",
              lines.of[12]);
    cr_expect_eq(strncmp(lines.of[2], "      10 |", 10), 0, "%s", lines.of[2]);
    free(lines.text);
}

/* The longest bar has 34 letters; half of it 17; an eighth of a letter is a letter of its own. */
Test(terminal, bars)
{
    struct lines lines = draw("preset,requests,mean_tpot_s,saturated\n"
                              "one,9,0.272,false\nhalf,9,0.136,true\nnine,9,0.009,false\n",
                              "mean_tpot_s");
    cr_expect_str_eq(lines.of[1], "TPOT, mean (ms)");
    cr_expect_eq(n_letters(lines.of[2]), 34 + 1 + 9 + 2 + 34, "%s", lines.of[2]);
    cr_expect_eq(n_letters(lines.of[3]), 34 + 1 + 9 + 2 + 17, "%s", lines.of[3]);
    cr_expect_not_null(strstr(lines.of[3], "136* "));
    /* 9 of 272 ms are 9 eighths of 34 letters: a whole block and an eighth, U+2588 and U+258F. */
    cr_expect_not_null(strstr(lines.of[4], " \xe2\x96\x88\xe2\x96\x8f"), "%s", lines.of[4]);
    free(lines.text);
}
