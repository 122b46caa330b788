/* The list is short, a file an entry, and is looked through from its end: what a point opens was
 * mostly opened a moment before. */
#include "inflight/inputs.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

struct input {
    dev_t device;
    ino_t inode;
    char *path;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct input *inputs; /* [n_inputs], until the process ends */
static size_t n_inputs;

static bool is_there(const char *path, struct stat *status)
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
    if (!is_there(path, &status))
        return;
    pthread_mutex_lock(&lock);
    if (!find(status.st_dev, status.st_ino))
        add(path, status.st_dev, status.st_ino);
    pthread_mutex_unlock(&lock);
}

int ifl_output_check(const char *path, struct ifl_error *error)
{
    struct stat status;
    if (!is_there(path, &status))
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
