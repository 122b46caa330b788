/* The source of a figure: each run's version and the hash of its configuration. */
#include "inflight/report.h"

#include <stdint.h>
#include <string.h>

#include "tables/run_name.h"

/* Fowler, Noll and Vo's 64-bit hash, variant 1a. */
static uint64_t hash_rest(FILE *file, const char *first_line)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = first_line; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (int c = getc(file); c != EOF; c = getc(file))
        hash = (hash ^ (unsigned char)c) * 1099511628211u;
    return hash;
}

static void put_run(FILE *to, const char *dir)
{
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/config.yaml", dir);
    FILE *file = fopen(path, "rb");
    if (file && fgets(line, sizeof line, file)) {
        const uint64_t hash = hash_rest(file, line);
        line[strcspn(line, "\n")] = '\0';
        fprintf(to, "%s: %s, config.yaml fnv1a-64 %016llx", run_name(dir),
                line + strspn(line, "# "), (unsigned long long)hash);
    } else {
        fprintf(to, "%s: no config.yaml", run_name(dir));
    }
    if (file)
        fclose(file);
}

int ifl_figure_source(char **source, size_t n_runs, const char *const *run_dirs,
                      struct ifl_error *error)
{
    size_t n_bytes;
    *source = NULL;
    FILE *to = open_memstream(source, &n_bytes);
    if (!to)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < n_runs; i++) {
        fputs(i ? "; " : "", to);
        put_run(to, run_dirs[i]);
    }
    if (fclose(to) == 0)
        return IFL_OK;
    free(*source);
    return ifl_fail_nomem(error);
}
