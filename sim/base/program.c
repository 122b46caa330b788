#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Folders as Meson has them: below the prefix, or whole paths where they are elsewhere. */
#ifndef INFLIGHT_PREFIX
#define INFLIGHT_PREFIX "/usr/local"
#define INFLIGHT_BINDIR "bin"
#define INFLIGHT_DATADIR "share/inflight"
#define INFLIGHT_MODULE_DIR "lib/inflight"
#endif

void program_folder(char folder[PROGRAM_PATH_BYTES])
{
    char path[PROGRAM_PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || n == PROGRAM_PATH_BYTES) {
        *folder = '\0';
        return;
    }
    memcpy(folder, path, (size_t)n);
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
}

void program_prefix(char prefix[PROGRAM_PATH_BYTES])
{
    static const char bin[] = "/" INFLIGHT_BINDIR;
    const size_t n_bin = strlen(bin);
    program_folder(prefix);
    const size_t n = strlen(prefix);
    if (n >= n_bin && strcmp(prefix + n - n_bin, bin) == 0)
        prefix[n - n_bin] = '\0';
    else
        *prefix = '\0';
}

/* ---- what was installed with it ---- */

static bool join(const char *prefix, const char *under, char folder[PROGRAM_PATH_BYTES])
{
    const bool whole = *under == '/';
    const int n = snprintf(folder, PROGRAM_PATH_BYTES, "%s%s%s", whole ? "" : prefix,
                           whole ? "" : "/", under);
    return n < PROGRAM_PATH_BYTES;
}

bool program_place(enum program_part part, size_t place, char folder[PROGRAM_PATH_BYTES])
{
    const char *under = part == PROGRAM_DATA ? INFLIGHT_DATADIR : INFLIGHT_MODULE_DIR;
    char prefix[PROGRAM_PATH_BYTES];
    program_prefix(prefix);
    const bool moved = *under != '/' && *prefix && strcmp(prefix, INFLIGHT_PREFIX) != 0;
    if (place > (size_t)moved)
        return false;
    return join(moved && place == 0 ? prefix : INFLIGHT_PREFIX, under, folder);
}
