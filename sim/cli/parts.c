#include "cli/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char record_name[] = "record";

void parts_init(struct parts *parts, const char *out_dir, uint64_t study_hash, size_t record_bytes)
{
    snprintf(parts->dir, sizeof parts->dir, "%.511s/.parts", out_dir);
    parts->study_hash = study_hash;
    parts->record_bytes = record_bytes;
}

bool parts_exist(const struct parts *parts)
{
    return access(parts->dir, F_OK) == 0;
}

int parts_make(const struct parts *parts, struct ifl_error *error)
{
    if (mkdir(parts->dir, 0777) < 0 && errno != EEXIST)
        return ifl_fail(error, IFL_E_IO, "%s: cannot make the directory: %s", parts->dir,
                        strerror(errno));
    return 0;
}

void parts_remove(const struct parts *parts)
{
    DIR *dir = opendir(parts->dir);
    const struct dirent *entry;
    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(parts->dir);
}

static bool any_record(const struct parts *parts)
{
    DIR *dir = opendir(parts->dir);
    const struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir)))
        found = strncmp(entry->d_name, record_name, strlen(record_name)) == 0 &&
                !strstr(entry->d_name, ".tmp");
    if (dir)
        closedir(dir);
    return found;
}

void parts_salvage(const struct parts *parts, size_t n_points, struct ifl_error *error)
{
    if (n_points < 2 || !any_record(parts))
        parts_remove(parts);
    else if (error->code == IFL_E_INTERRUPTED)
        snprintf(error->text, sizeof error->text,
                 "interrupted; the same command with --resume does the rest");
}

void parts_path(const struct parts *parts, const char *name, size_t point,
                char path[IFL_PATH_BYTES])
{
    snprintf(path, IFL_PATH_BYTES, "%s/%s-%06zu", parts->dir, name, point);
}

static int write_record(const struct parts *parts, int fd, const void *record)
{
    const struct iovec of[] = {
        {(void *)(uintptr_t)&parts->study_hash, sizeof parts->study_hash},
        {(void *)(uintptr_t)record, parts->record_bytes},
    };
    const size_t n_bytes = sizeof parts->study_hash + parts->record_bytes;
    const ssize_t n = writev(fd, of, 2);
    if (n >= 0 && (size_t)n < n_bytes)
        errno = ENOSPC;
    const bool written = n >= 0 && (size_t)n == n_bytes;
    return close(fd) == 0 && written ? 0 : -1;
}

int parts_put(const struct parts *parts, size_t point, const void *record, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES], temporary[IFL_PATH_BYTES + 8];
    parts_path(parts, record_name, point, path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && write_record(parts, fd, record) == 0 && rename(temporary, path) == 0)
        return 0;
    ifl_fail(error, IFL_E_IO, "%s: cannot write: %s", path, strerror(errno));
    unlink(temporary);
    return error->code;
}

bool parts_get(const struct parts *parts, size_t point, void *record)
{
    char path[IFL_PATH_BYTES];
    uint64_t study_hash;
    struct iovec of[] = {{&study_hash, sizeof study_hash}, {record, parts->record_bytes}};
    parts_path(parts, record_name, point, path);
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    const ssize_t n = readv(fd, of, 2);
    close(fd);
    return n == (ssize_t)(sizeof study_hash + parts->record_bytes) &&
           study_hash == parts->study_hash;
}
