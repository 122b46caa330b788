/* Numbers of tokens of a trace's texts: from an earlier reading of the same files, or counted. */
#include "text/count.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"

struct text_counter {
    struct ifl_tokenizer *tokenizer;
    const struct ifl_trace_file *file;
    char found[TEXT_PATH_BYTES];
    const char *tokenizer_path, *around_text;
    struct text_template around;
    struct text_batch batch;
    struct text_key key;
    bool has_key, is_kept; /* is_kept: the counts are of an earlier reading */
    uint32_t *counts;
    size_t n_counts, cap_counts;
    size_t n_added;
};

static bool make_key(const struct text_counter *c, struct text_key *key)
{
    return text_key_make(c->file->path, c->tokenizer_path, c->around_text, key);
}

/* The counts belong to the key if the files are still what they were. */
static void keep(const struct text_counter *c)
{
    struct text_key now;
    if (!c->is_kept && c->has_key && make_key(c, &now) && memcmp(&now, &c->key, sizeof now) == 0)
        text_kept_write(&c->key, c->counts, c->n_counts);
}

int text_counter_open(const struct ifl_trace_file *file, struct text_counter **counter,
                      struct ifl_error *error)
{
    struct text_counter *c = calloc(1, sizeof *c);
    *counter = c;
    if (!c)
        return ifl_fail_nomem(error);
    c->file = file;
    c->tokenizer_path = text_find(file->tokenizer, c->found);
    c->around_text = file->prompt_template ? file->prompt_template : "";
    if (text_template_read(c->around_text, &c->around, error) < 0)
        return error->code;
    c->has_key = make_key(c, &c->key);
    c->is_kept = c->has_key && text_kept_read(&c->key, &c->counts, &c->n_counts);
    if (!c->is_kept && ifl_tokenizer_open(c->tokenizer_path, &c->tokenizer, error) < 0)
        return error->code;
    c->batch = (struct text_batch){.tokenizer = c->tokenizer, .path = file->path};
    return 0;
}

void text_counter_close(struct text_counter *counter)
{
    if (!counter)
        return;
    text_batch_free(&counter->batch);
    ifl_tokenizer_close(counter->tokenizer);
    free(counter->counts);
    free(counter);
}

static int flush(struct text_counter *c, struct ifl_error *error)
{
    struct text_batch *batch = &c->batch;
    if (text_batch_encode(batch, error) < 0 ||
        trace_reserve(&c->counts, &c->cap_counts, c->n_counts + batch->n, sizeof *c->counts,
                      error) < 0)
        return error->code;
    for (size_t i = 0; i < batch->n; i++)
        c->counts[c->n_counts++] = (uint32_t)batch->items[i].n_ids; /* below TEXT_MAX_BYTES */
    text_batch_clear(batch);
    return 0;
}

int text_counter_add(struct text_counter *c, const char *text, size_t n_bytes, bool is_prompt,
                     size_t record, struct ifl_error *error)
{
    const char *const parts[3] = {c->around.before, text, c->around.behind};
    const size_t n[3] = {is_prompt ? c->around.n_before : 0, n_bytes,
                         is_prompt ? c->around.n_behind : 0};
    c->n_added++;
    if (c->is_kept)
        return 0;
    const int rc = text_batch_add(&c->batch, parts, n, record, !is_prompt, error);
    return rc > 0 ? flush(c, error) : rc;
}

int text_counter_end(struct text_counter *c, const uint32_t **counts, size_t *n,
                     struct ifl_error *error)
{
    if (!c->is_kept && c->batch.n > 0 && flush(c, error) < 0)
        return error->code;
    if (c->n_counts != c->n_added)
        return ifl_fail_at(error, c->file->path, 0, 0,
                           "%zu texts, %zu in an earlier reading of the same file: it was changed "
                           "while it was read",
                           c->n_added, c->n_counts);
    keep(c);
    *counts = c->counts;
    *n = c->n_counts;
    return 0;
}
