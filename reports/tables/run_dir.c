#include "tables/run_dir.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "inflight/report.h"

static bool has(const char *dir, const char *name)
{
    char path[IFL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, R_OK) == 0;
}

int run_dir_check(const char *dir, struct ifl_error *error)
{
    static const char *const tables[][2] = {{"plan.csv", "plan_figure"},
                                            {"placements.csv", "placement_figure"}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !has(dir, "summary.csv"); i++)
        if (has(dir, tables[i][0]))
            return ifl_fail(error, IFL_E_INPUT,
                            "%s has %s of inflight capacity, expected a folder with points of a "
                            "run: with output.plots the command itself draws %s",
                            dir, tables[i][0], tables[i][1]);
    return IFL_OK;
}
