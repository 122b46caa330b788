#include "run/trace_shelf.h"

#include <stdlib.h>
#include <string.h>

struct shelved_trace {
    struct shelved_trace *next;
    char *path, *format;
    int32_t max_record_mib;
    char *tokenizer, *prompt_template; /* NULL: none */
    size_t n_users;
    pthread_mutex_t reading; /* held while a thread reads the file */
    bool is_read;
    struct ifl_trace trace; /* never changes once it is read */
};

/* ---- entries; under the shelf's lock ---- */

static size_t n_items(const struct ifl_trace *trace)
{
    return trace->n + (trace->hash_at ? trace->hash_at[trace->n] : 0) +
           (trace->gap_at ? trace->gap_at[trace->n] : 0);
}

static void discard(struct shelved_trace *one)
{
    ifl_trace_free(&one->trace);
    pthread_mutex_destroy(&one->reading);
    free(one->path);
    free(one->format);
    free(one->tokenizer);
    free(one->prompt_template);
    free(one);
}

/* False without memory. */
static bool copy(const char *text, char **to)
{
    *to = text ? strdup(text) : NULL;
    return !text || *to;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct shelved_trace *make(const struct ifl_trace_file *file)
{
    struct shelved_trace *one = calloc(1, sizeof *one);
    if (!one)
        return NULL;
    pthread_mutex_init(&one->reading, NULL);
    one->max_record_mib = file->max_record_mib;
    if (copy(file->path, &one->path) && copy(file->format, &one->format) &&
        copy(file->tokenizer, &one->tokenizer) &&
        copy(file->prompt_template, &one->prompt_template))
        return one;
    discard(one);
    return NULL;
}

/* An entry is for one way of reading a file: what one format or limit accepts, another may
 * refuse. */
static bool is_of(const struct shelved_trace *one, const struct ifl_trace_file *file)
{
    return strcmp(one->path, file->path) == 0 && strcmp(one->format, file->format) == 0 &&
           one->max_record_mib == file->max_record_mib && same(one->tokenizer, file->tokenizer) &&
           same(one->prompt_template, file->prompt_template);
}

/* Takes it out of the list; NULL if it is not there. */
static struct shelved_trace *take_out(struct trace_shelf *shelf, const struct ifl_trace_file *file)
{
    struct shelved_trace **at = &shelf->first;
    while (*at && !is_of(*at, file))
        at = &(*at)->next;
    struct shelved_trace *found = *at;
    if (found)
        *at = found->next;
    return found;
}

static void tidy(struct trace_shelf *shelf)
{
    size_t n_idle = 0, n_idle_items = 0;
    for (struct shelved_trace **at = &shelf->first; *at;) {
        struct shelved_trace *one = *at;
        if (one->n_users == 0)
            n_idle_items += n_items(&one->trace);
        const bool stays =
            one->n_users > 0 ||
            (one->is_read && !shelf->clears && (n_idle++ == 0 || n_idle_items <= SHELF_IDLE_ITEMS));
        if (stays) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        discard(one);
    }
}

/* ---- a file ---- */

static struct shelved_trace *begin_use(struct trace_shelf *shelf, const struct ifl_trace_file *file)
{
    pthread_mutex_lock(&shelf->lock);
    struct shelved_trace *one = take_out(shelf, file);
    if (!one)
        one = make(file);
    if (one) {
        one->next = shelf->first;
        shelf->first = one;
        one->n_users++;
    }
    pthread_mutex_unlock(&shelf->lock);
    return one;
}

static void end_use(struct trace_shelf *shelf, struct shelved_trace *one)
{
    pthread_mutex_lock(&shelf->lock);
    one->n_users--;
    tidy(shelf);
    pthread_mutex_unlock(&shelf->lock);
}

/* A file that could not be read is tried again for the next point, which gets an error of its
 * own. */
static int read_once(const struct trace_shelf *shelf, struct shelved_trace *one,
                     struct ifl_error *error)
{
    int rc = 0;
    pthread_mutex_lock(&one->reading);
    if (!one->is_read) {
        const struct ifl_trace_file file = {one->path, one->format, one->max_record_mib,
                                            one->tokenizer, one->prompt_template};
        rc = ifl_trace_read(&file, &shelf->notes, &one->trace, error);
        one->is_read = rc == 0;
    }
    pthread_mutex_unlock(&one->reading);
    return rc;
}

/* No other point needs the trace, and this one needs all rows: no copy is made. */
static bool give_away(struct trace_shelf *shelf, struct shelved_trace *one,
                      const struct ifl_trace_window *window, struct ifl_trace *trace)
{
    pthread_mutex_lock(&shelf->lock);
    const bool gives = shelf->clears && one->n_users == 1 && ifl_trace_keeps_all(window);
    if (gives) {
        *trace = one->trace;
        one->trace = (struct ifl_trace){0};
        one->is_read = false;
    }
    pthread_mutex_unlock(&shelf->lock);
    return gives;
}

int trace_shelf_cut(struct trace_shelf *shelf, const struct ifl_trace_file *file,
                    const struct ifl_trace_window *window, const struct ifl_notes *notes,
                    struct ifl_trace *trace, struct ifl_error *error)
{
    struct shelved_trace *one = begin_use(shelf, file);
    if (!one) {
        ifl_fail_nomem(error);
        return ifl_blame_file(error, file->path);
    }
    int rc = read_once(shelf, one, error);
    if (rc == 0 && !give_away(shelf, one, window, trace))
        rc = ifl_trace_cut(&one->trace, window, file->path, notes, trace, error);
    end_use(shelf, one);
    if (rc == IFL_E_NOMEM)
        ifl_blame_file(error, file->path);
    return rc;
}

/* ---- the shelf ---- */

void trace_shelf_init(struct trace_shelf *shelf, struct ifl_notes notes)
{
    *shelf = (struct trace_shelf){.notes = notes};
    pthread_mutex_init(&shelf->lock, NULL);
}

void trace_shelf_clear(struct trace_shelf *shelf)
{
    pthread_mutex_lock(&shelf->lock);
    shelf->clears = true;
    tidy(shelf);
    pthread_mutex_unlock(&shelf->lock);
}

void trace_shelf_finish(struct trace_shelf *shelf)
{
    trace_shelf_clear(shelf);
    pthread_mutex_destroy(&shelf->lock);
}
