/* The name of a run: the last part of its folder's path. */
#ifndef INFLIGHT_REPORTS_RUN_NAME_H
#define INFLIGHT_REPORTS_RUN_NAME_H

/* A part of `dir`. */
static inline const char *run_name(const char *dir)
{
    const char *part = dir;
    for (const char *c = dir; *c; c++)
        if (*c == '/' && c[1] && c[1] != '/')
            part = c + 1;
    return part;
}

#endif
