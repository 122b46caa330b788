#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>

static int n_verdicts, n_failed;

void verdict(bool ok, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    printf("%s %d - ", ok ? "ok" : "not ok", ++n_verdicts);
    vprintf(format, values);
    printf("\n");
    fflush(stdout);
    va_end(values);
    n_failed += !ok;
}

int verdicts_end(void)
{
    printf("1..%d\n", n_verdicts);
    return n_failed > 0 || n_verdicts == 0;
}
