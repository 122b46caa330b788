#include "cli/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "inflight/inputs.h"

static const char record_name[] = "record";

void parts_init(struct parts *parts, const char *out_dir, uint64_t study_hash, size_t record_bytes)
{
    ifl_assert(strlen(out_dir) < 512);
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

int parts_check(const struct parts *parts, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES + 256];
    DIR *dir = opendir(parts->dir);
    const struct dirent *entry;
    int rc = 0;
    while (dir && rc == 0 && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", parts->dir, entry->d_name);
        rc = ifl_output_check(path, error);
    }
    if (dir)
        closedir(dir);
    return rc;
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

/* The first bytes of a record. */
struct head {
    uint64_t study_hash;
    uint64_t crc; /* of all but this number */
    struct input_sums inputs;
};

static uint64_t sum(const struct parts *parts, struct head head, const void *record)
{
    head.crc = 0;
    const uLong crc = crc32(0, (const Bytef *)&head, sizeof head);
    return crc32(crc, record, (uInt)parts->record_bytes);
}

static int write_record(const struct parts *parts, int fd, const struct head *head,
                        const void *record)
{
    const struct iovec of[] = {
        {(void *)(uintptr_t)head, sizeof *head},
        {(void *)(uintptr_t)record, parts->record_bytes},
    };
    const size_t n_bytes = sizeof *head + parts->record_bytes;
    const ssize_t n = writev(fd, of, 2);
    if (n >= 0 && (size_t)n < n_bytes)
        errno = ENOSPC;
    const bool written = n >= 0 && (size_t)n == n_bytes;
    return close(fd) == 0 && written ? 0 : -1;
}

int parts_put(const struct parts *parts, size_t point, const struct input_sums *inputs,
              const void *record, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES], temporary[IFL_PATH_BYTES + 8];
    struct head head = {.study_hash = parts->study_hash, .inputs = *inputs};
    head.crc = sum(parts, head, record);
    parts_path(parts, record_name, point, path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && write_record(parts, fd, &head, record) == 0 && rename(temporary, path) == 0)
        return 0;
    ifl_fail(error, IFL_E_IO, "%s: cannot write: %s", path, strerror(errno));
    unlink(temporary);
    return error->code;
}

enum parts_find parts_look(const struct parts *parts, size_t point, struct input_sums *inputs,
                           void *record)
{
    char path[IFL_PATH_BYTES];
    struct head head;
    struct iovec of[] = {{&head, sizeof head}, {record, parts->record_bytes}};
    parts_path(parts, record_name, point, path);
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        return PARTS_NONE;
    const ssize_t n = readv(fd, of, 2);
    close(fd);
    if (n >= (ssize_t)sizeof head.study_hash && head.study_hash != parts->study_hash)
        return PARTS_FOREIGN;
    if (n != (ssize_t)(sizeof head + parts->record_bytes) || sum(parts, head, record) != head.crc)
        return PARTS_DAMAGED;
    *inputs = head.inputs;
    return PARTS_OURS;
}

bool parts_get(const struct parts *parts, size_t point, void *record)
{
    struct input_sums inputs;
    return parts_look(parts, point, &inputs, record) == PARTS_OURS;
}

void parts_drop(const struct parts *parts, size_t point)
{
    char path[IFL_PATH_BYTES];
    parts_path(parts, record_name, point, path);
    unlink(path);
}
