/* The list is short, a file an entry, and is looked through from its end: what a point opens was
 * mostly opened a moment before. */
#include "inflight/inputs.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct input {
    dev_t device;
    ino_t inode;
    char *path;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct input *inputs; /* [n_inputs], until the process ends */
static size_t n_inputs;

static bool is_a_file(const char *path, struct stat *status)
{
    return stat(path, status) == 0 && S_ISREG(status->st_mode);
}

/* ---- with the lock held ---- */

/* The path by which the file was noted; NULL: it was not. */
static const char *find(dev_t device, ino_t inode)
{
    for (size_t i = n_inputs; i-- > 0;)
        if (inputs[i].inode == inode && inputs[i].device == device)
            return inputs[i].path;
    return NULL;
}

static void add(const char *path, dev_t device, ino_t inode)
{
    struct input *grown = realloc(inputs, (n_inputs + 1) * sizeof *grown);
    char *kept = strdup(path);
    if (grown)
        inputs = grown;
    if (grown && kept)
        inputs[n_inputs++] = (struct input){device, inode, kept};
    else
        free(kept);
}

/* ---- for all ---- */

void ifl_input_note(const char *path)
{
    struct stat status;
    if (!is_a_file(path, &status))
        return;
    pthread_mutex_lock(&lock);
    if (!find(status.st_dev, status.st_ino))
        add(path, status.st_dev, status.st_ino);
    pthread_mutex_unlock(&lock);
}

int ifl_output_check(const char *path, struct ifl_error *error)
{
    struct stat status;
    if (!is_a_file(path, &status))
        return 0;
    pthread_mutex_lock(&lock);
    const char *input = find(status.st_dev, status.st_ino);
    const int rc = input ? ifl_fail_at(error, path, 0, 0,
                                       "the output would overwrite the input %.512s, expected "
                                       "another place for it",
                                       input)
                         : 0;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- where an output goes ---- */

/* As many as the kernel follows. */
enum { MAX_LINKS = 40, LINK_BYTES = 4096 };

/* Names in these folders are of open files, as /dev/stdout, and no file may take their place. */
static bool is_of_the_system(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static int fail_long(const char *path, size_t n_bytes, struct ifl_error *error)
{
    return ifl_fail_at(error, path, 0, 0, "the path has more than %zu characters", n_bytes - 1);
}

/* Replaces the path of a link by that of its target; *is_link is false if it is none. */
static int follow(char *target, size_t n_bytes, bool *is_link, struct ifl_error *error)
{
    char to[LINK_BYTES];
    const ssize_t n = readlink(target, to, sizeof to - 1);
    *is_link = n >= 0;
    if (n < 0)
        return 0;
    to[n] = '\0';
    char *slash = strrchr(target, '/');
    const size_t n_kept = *to == '/' || !slash ? 0 : (size_t)(slash + 1 - target);
    if (n_kept + (size_t)n >= n_bytes)
        return fail_long(target, n_bytes, error);
    memcpy(target + n_kept, to, (size_t)n + 1);
    return 0;
}

static int follow_all(char *target, size_t n_bytes, struct ifl_error *error)
{
    bool is_link = true;
    for (int i = 0; is_link && i < MAX_LINKS && !is_of_the_system(target); i++)
        if (follow(target, n_bytes, &is_link, error) < 0)
            return error->code;
    return 0;
}

int ifl_output_find(const char *path, char *target, size_t n_bytes, bool *in_place,
                    struct ifl_error *error)
{
    struct stat status;
    const size_t n = strlen(path);
    if (n >= n_bytes)
        return fail_long(path, n_bytes, error);
    memcpy(target, path, n + 1);
    const bool is_there = stat(path, &status) == 0;
    if (is_there && (S_ISDIR(status.st_mode) || S_ISSOCK(status.st_mode)))
        return ifl_fail_at(error, path, 0, 0, "is a %s, expected a file",
                           S_ISDIR(status.st_mode) ? "directory" : "socket");
    *in_place = is_there && !S_ISREG(status.st_mode);
    if (*in_place)
        return 0;
    if (follow_all(target, n_bytes, error) < 0)
        return error->code;
    *in_place = is_of_the_system(target);
    return ifl_output_check(target, error);
}
