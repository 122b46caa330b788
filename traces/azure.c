/* Azure LLM inference traces: calendar stamps, prompt and output tokens. Stamps of 2023 have seven
 * digits of a second and no zone, those of 2024 a zone. https://github.com/Azure/AzurePublicDataset
 */
#include "traces.h"

#include <string.h>

enum { STAMP, CONTEXT, GENERATED };

static const struct trace_csv_column columns[] = {{"TIMESTAMP", TRACE_NEEDED},
                                                  {"ContextTokens", TRACE_NEEDED},
                                                  {"GeneratedTokens", TRACE_NEEDED}};

/* Reads `n` digits that end with `behind` ('\0': any character); the cursor moves past them. */
static bool take_digits(const char **at, int n, char behind, int *value)
{
    for (*value = 0; n > 0; n--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = 10 * *value + (**at - '0');
    }
    if (behind == '\0')
        return true;
    return *(*at)++ == behind;
}

static bool leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int day_of_year(int year, int month, int day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    const int length = before[month] - before[month - 1] + (month == 2 && leap(year));
    if (day < 1 || day > length)
        return -1;
    return before[month - 1] + (month > 2 && leap(year)) + day - 1;
}

/* Seconds since the Epoch, POSIX.1-2017, Base Definitions 4.16. */
static int64_t epoch_s(int year, int yday, int hour, int minute, int second)
{
    const int y = year - 1900;
    const int64_t days =
        yday + (int64_t)(y - 70) * 365 + (y - 69) / 4 - (y - 1) / 100 + (y + 299) / 400;
    return days * 86400 + (int64_t)hour * 3600 + (int64_t)minute * 60 + second;
}

static bool take_date(const char **at, int *year, int *yday)
{
    int month, day;
    if (!take_digits(at, 4, '-', year) || !take_digits(at, 2, '-', &month) ||
        !take_digits(at, 2, '\0', &day))
        return false;
    if (*year < 1970 || *year > 2200 || month < 1 || month > 12)
        return false;
    *yday = day_of_year(*year, month, day);
    return *yday >= 0;
}

static bool take_time(const char **at, int *hour, int *minute, int *second)
{
    return take_digits(at, 2, ':', hour) && take_digits(at, 2, ':', minute) &&
           take_digits(at, 2, '\0', second) && *hour < 24 && *minute < 60 && *second <= 60;
}

/* Reads a zone: nothing, Z, +HH:MM or -HH:MM. */
static bool take_zone(const char **at, int *offset_s)
{
    int hours, minutes;
    const char sign = **at;
    *offset_s = 0;
    if (sign == 'Z')
        (*at)++;
    if (sign != '+' && sign != '-')
        return true;
    (*at)++;
    if (!take_digits(at, 2, ':', &hours) || !take_digits(at, 2, '\0', &minutes))
        return false;
    *offset_s = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return true;
}

static bool calendar_ns(const char *text, int64_t *ns)
{
    const char *at = text;
    int year, yday, hour, minute, second, offset_s;
    int64_t fraction_ns = 0;
    if (!take_date(&at, &year, &yday) || (*at != ' ' && *at != 'T'))
        return false;
    at++;
    if (!take_time(&at, &hour, &minute, &second))
        return false;
    if (*at == '.')
        at += 1 + trace_fraction(at + 1, &fraction_ns);
    if (!take_zone(&at, &offset_s) || *at != '\0')
        return false;
    *ns = (epoch_s(year, yday, hour, minute, second) - offset_s) * IFL_NS_PER_S + fraction_ns;
    return true;
}

static int take_record(void *self, const struct trace_row *row, struct ifl_error *error)
{
    int64_t stamp_ns = 0;
    int32_t prompt = 0, output = 0;
    int rc = calendar_ns(trace_row_text(row, STAMP), &stamp_ns)
                 ? 0
                 : trace_row_fail(row, STAMP, "YYYY-MM-DD HH:MM:SS[.fraction][+HH:MM]", error);
    if (rc == 0)
        rc = trace_row_tokens(row, CONTEXT, 0, &prompt, error);
    if (rc == 0)
        rc = trace_row_tokens(row, GENERATED, 0, &output, error);
    return rc < 0 ? rc : trace_rows_add(self, stamp_ns, prompt, output, error);
}

int trace_read_azure(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_csv_format format = {.columns = columns, .n_columns = 3};
    const struct trace_csv_reader reader = {.record = take_record, .self = rows, .rows = rows};
    const int rc = trace_csv_read(input, &format, &reader, error);
    rows->trace->has_stamps = true;
    trace_rows_rebase(rows);
    return rc;
}
