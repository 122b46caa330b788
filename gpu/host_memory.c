#include "host_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

/* ---- numbers in files ---- */

/* The number behind `name` at the start of a line; the file's first where name is "". */
static bool number_in(const char *path, const char *name, double *number)
{
    char line[LINE_BYTES];
    const size_t n = strlen(name);
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *end = line;
        if (strncmp(line, name, n) != 0 || (n > 0 && line[n] != ' ' && line[n] != ':'))
            continue;
        const char *from = line + n + strspn(line + n, ": ");
        *number = strtod(from, &end);
        found = end != from;
        if (n == 0)
            break;
    }
    if (file)
        fclose(file);
    return found;
}

static bool number_at(const char *folder, const char *file, const char *name, double *number)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return number_in(path, name, number);
}

static void lower(double *least, double bytes)
{
    if (bytes < *least)
        *least = bytes > 0 ? bytes : 0;
}

/* ---- control groups ---- */

struct version {
    const char *limit, *usage, *inactive, *active; /* files; keys of memory.stat */
};

static const struct version v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file", "total_active_file"};
static const struct version v2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

/* "max" is no number: no limit. */
static void look_at_group(const char *folder, const struct version *version,
                          struct host_memory *memory)
{
    double limit, usage = 0, inactive = 0, active = 0;
    if (!number_at(folder, version->limit, "", &limit))
        return;
    number_at(folder, version->usage, "", &usage);
    number_at(folder, "memory.stat", version->inactive, &inactive);
    number_at(folder, "memory.stat", version->active, &active);
    lower(&memory->all_bytes, limit);
    lower(&memory->free_bytes, limit - (usage - inactive - active));
}

/* The group and its ancestors. In a container the group's path may begin outside the mount; the
 * mount is then the group itself. */
static void look_at_groups(const char *mount, const char *group, const struct version *version,
                           struct host_memory *memory)
{
    char folder[PATH_BYTES];
    const size_t n_mount = strlen(mount);
    snprintf(folder, sizeof folder, "%s%s", mount, group);
    for (;;) {
        look_at_group(folder, version, memory);
        char *slash = strrchr(folder + n_mount, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static bool lists(const char *controllers, const char *end, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = controllers; at < end; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

/* A line of /proc/self/cgroup: hierarchy:controllers:path, the controllers of version 2 empty. */
static void follow(const char *root, char *line, struct host_memory *memory)
{
    char mount[PATH_BYTES / 2];
    line[strcspn(line, "\n")] = '\0';
    const char *controllers = strchr(line, ':');
    const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    const bool is_v2 = group == controllers + 1;
    if (!is_v2 && !lists(controllers + 1, group, "memory"))
        return;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, is_v2 ? "" : "/memory");
    look_at_groups(mount, group + 1, is_v2 ? &v2 : &v1, memory);
}

void host_memory_read(const char *root, struct host_memory *memory)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    const double page_bytes = (double)sysconf(_SC_PAGESIZE);
    double kib;
    *memory = (struct host_memory){(double)sysconf(_SC_PHYS_PAGES) * page_bytes,
                                   (double)sysconf(_SC_AVPHYS_PAGES) * page_bytes};
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (number_in(path, "MemTotal", &kib))
        memory->all_bytes = kib * 1024;
    if (number_in(path, "MemAvailable", &kib))
        memory->free_bytes = kib * 1024;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        follow(root, line, memory);
    if (file)
        fclose(file);
}
