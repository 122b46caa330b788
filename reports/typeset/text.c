#include "typeset/text.h"

#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

/* Decimals with which a number has so many significant digits; negative: none, and zeros before
 * the point. */
static int decimals_for(double value, int digits)
{
    return value == 0 ? 0 : digits - 1 - (int)floor(log10(fabs(value)));
}

/* Rounding may carry: 0.0996 with two digits is 0.10. */
static int decimals_rounded(double value, int digits)
{
    const int decimals = decimals_for(value, digits);
    const double unit = pow(10, -decimals);
    return decimals_for(round(value / unit) * unit, digits);
}

static void print(char text[40], double value, int decimals)
{
    const double unit = decimals < 0 ? pow(10, -decimals) : 1;
    snprintf(text, 40, "%.*f", ifl_max(decimals, 0),
             decimals < 0 ? round(value / unit) * unit : value);
}

struct shown_number number_shown(double value, double half_width, int digits)
{
    struct shown_number shown = {"", ""};
    const bool has_interval = half_width > 0;
    if (isnan(value))
        return shown;
    if (!has_interval && value == trunc(value) && fabs(value) < 1e15) {
        print(shown.mean, value, 0);
        return shown;
    }
    const int decimals = has_interval ? decimals_rounded(half_width, 2)
                                      : ifl_max(decimals_rounded(value, digits), 0);
    print(shown.mean, value, decimals);
    if (has_interval)
        print(shown.half_width, half_width, decimals);
    return shown;
}

struct metric_head head_of(const struct metric *metric)
{
    struct metric_head head;
    if (*metric->unit)
        snprintf(head.text, sizeof head.text, "%s (%s)", metric->label, metric->unit);
    else
        snprintf(head.text, sizeof head.text, "%s", metric->label);
    return head;
}
