/* Preconditions of sim/cli/, each broken once. */
#include <string.h>

#include "violates.h"

#include "cli/dir_lock.h"
#include "cli/ranks.h"
#include "cli/resume.h"
#include "cli/run_files.h"

static struct ifl_error error;
static char long_name[600];

static const char *of_600_letters(void)
{
    memset(long_name, 'a', sizeof long_name - 1);
    return long_name;
}

VIOLATES(ranks, join_twice, ranks_join, "!begun")
{
    ranks_join(&error);
    ranks_join(&error);
}

VIOLATES(ranks, count, ranks_n, "begun")
{
    ranks_n();
}

VIOLATES(ranks, own, ranks_own, "begun")
{
    ranks_own();
}

VIOLATES(ranks, add, ranks_add, "begun")
{
    ranks_add(RANKS_POINTS, 1);
}

VIOLATES(ranks, meet, ranks_meet, "begun")
{
    ranks_meet();
}

VIOLATES(ranks, agree, ranks_agree, "begun")
{
    ranks_agree(0, &error);
}

VIOLATES(ranks, leave, ranks_leave, "begun")
{
    ranks_leave();
}

VIOLATES(folders, lock, dir_lock_take, "strlen(dir) < 512")
{
    struct dir_lock lock = {0};
    dir_lock_take(&lock, of_600_letters(), &error);
}

VIOLATES(folders, parts, parts_init, "strlen(out_dir) < 512")
{
    struct parts parts;
    parts_init(&parts, of_600_letters(), 0, 0);
}

static struct run_files files;

VIOLATES(folders, config_before_reports, run_files_write_config, "are_closed(files)")
{
    files.joints[REPORT_STEPS] = (struct ifl_joint *)(void *)long_name;
    run_files_write_config(&files, &error);
}

VIOLATES(folders, resume_behind_points, resume_check, "files->n_joined == 0")
{
    ranks_join(&error);
    files.n_joined = 1;
    resume_check(&files, NULL, &error);
}
