#include "run/profile_shelf.h"

#include <stdlib.h>
#include <string.h>

enum kind { MODEL, HARDWARE };

struct shelved_profile {
    struct shelved_profile *next;
    enum kind kind;
    char *name;
    union {
        struct model model;
        struct platform platform;
    } of;
};

/* ---- entries; under the shelf's lock ---- */

static void discard(struct shelved_profile *one)
{
    if (one)
        free(one->name);
    free(one);
}

/* Takes it out of the list; NULL if it is not there. */
static struct shelved_profile *take_out(struct profile_shelf *shelf, enum kind kind,
                                        const char *name)
{
    struct shelved_profile **at = &shelf->first;
    while (*at && ((*at)->kind != kind || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    struct shelved_profile *found = *at;
    if (found)
        *at = found->next;
    return found;
}

static void put_first(struct profile_shelf *shelf, struct shelved_profile *one)
{
    one->next = shelf->first;
    shelf->first = one;
    struct shelved_profile **at = &shelf->first;
    for (int n = 0; *at && n < SHELF_PROFILES; n++)
        at = &(*at)->next;
    discard(*at); /* one entry was added, so one at most is too many */
    *at = NULL;
}

static struct shelved_profile *read_file(enum kind kind, const char *name, struct ifl_error *error)
{
    struct shelved_profile *one = calloc(1, sizeof *one);
    if (!one || !(one->name = strdup(name))) {
        ifl_fail_nomem(error);
        discard(one);
        return NULL;
    }
    one->kind = kind;
    const int rc = kind == MODEL ? model_load(name, &one->of.model, error)
                                 : hardware_load(name, &one->of.platform, error);
    if (rc == 0)
        return one;
    discard(one);
    return NULL;
}

static int take_copy(struct profile_shelf *shelf, enum kind kind, const char *name, void *copy,
                     size_t n_bytes, struct ifl_error *error)
{
    pthread_mutex_lock(&shelf->lock);
    struct shelved_profile *one = take_out(shelf, kind, name);
    if (!one)
        one = read_file(kind, name, error);
    if (one) {
        put_first(shelf, one);
        memcpy(copy, &one->of, n_bytes);
    }
    pthread_mutex_unlock(&shelf->lock);
    return one ? 0 : error->code;
}

/* ---- the shelf ---- */

void profile_shelf_init(struct profile_shelf *shelf)
{
    *shelf = (struct profile_shelf){.first = NULL};
    pthread_mutex_init(&shelf->lock, NULL);
}

void profile_shelf_finish(struct profile_shelf *shelf)
{
    while (shelf->first) {
        struct shelved_profile *next = shelf->first->next;
        discard(shelf->first);
        shelf->first = next;
    }
    pthread_mutex_destroy(&shelf->lock);
}

int profile_shelf_model(struct profile_shelf *shelf, const char *name, struct model *model,
                        struct ifl_error *error)
{
    return take_copy(shelf, MODEL, name, model, sizeof *model, error);
}

int profile_shelf_hardware(struct profile_shelf *shelf, const char *name, struct platform *platform,
                           struct ifl_error *error)
{
    return take_copy(shelf, HARDWARE, name, platform, sizeof *platform, error);
}
