/* Texts of a trace to numbers of tokens, many at a time, by several threads.
 *
 * No pointer may be NULL unless its comment says so. Functions return 0, or a negative code with
 * the error filled in. */
#ifndef TRACES_TEXT_COUNT_H
#define TRACES_TEXT_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/tokenizer.h"
#include "inflight/trace.h"

/* ---- find.c ---- */

enum { TEXT_PATH_BYTES = 1024 };

/* The tokenizer's file in a folder; the path itself if that is none, or has none. */
const char *text_find(const char *path, char found[TEXT_PATH_BYTES]);

/* ---- batch.c ---- */

struct text_item {
    size_t at, n_bytes; /* in `bytes` of the batch */
    size_t record;      /* 1-based, for errors */
    size_t turn;        /* for the caller */
    size_t n_ids;
    uint32_t *ids; /* NULL unless the batch keeps ids */
};

enum { TEXT_MAX_THREADS = 64 };

struct text_batch {
    const struct ifl_tokenizer *tokenizer;
    const char *path; /* of the texts, for errors; borrowed */
    bool keeps_ids;
    char *bytes;
    size_t n_bytes, cap_bytes;
    struct text_item *items;
    size_t n, cap;
    struct ifl_encoder *encoders[TEXT_MAX_THREADS]; /* made as they are needed */
};

/* Adds a text of three parts, which are copied. 1: the batch is large enough to be encoded now. */
int text_batch_add(struct text_batch *batch, const char *const parts[3], const size_t n_bytes[3],
                   size_t record, size_t turn, struct ifl_error *error);
/* Fills in n_ids and ids of all items, by as many threads as the machine has processors. Of several
 * texts that cannot be encoded the first is the error. */
int text_batch_encode(struct text_batch *batch, struct ifl_error *error);
void text_batch_clear(struct text_batch *batch); /* keeps its memory */
void text_batch_free(struct text_batch *batch);

/* ---- template.c: what stands around a prompt ---- */

struct text_template {
    const char *before, *behind; /* borrowed */
    size_t n_before, n_behind;
};

/* "before{}behind"; NULL: nothing around it. */
int text_template_read(const char *text, struct text_template *around, struct ifl_error *error);

/* ---- kept.c: counts of earlier readings ---- */

struct text_key {
    char text[512]; /* all that the counts depend on */
};

/* False: a file is not regular, or there is no folder for caches: nothing can be kept. */
bool text_key_make(const char *trace, const char *tokenizer, const char *around,
                   struct text_key *key);
/* True: *counts, to be freed, are those of the key. False: there are none, *counts is NULL and *n
 * 0. */
bool text_kept_read(const struct text_key *key, uint32_t **counts, size_t *n);
/* What cannot be written is not kept. */
void text_kept_write(const struct text_key *key, const uint32_t *counts, size_t n);

/* ---- count.c ---- */

struct text_counter;

/* The tokenizer and the template of the file, which is borrowed until the caller closes the
 * counter, also after an error. */
int text_counter_open(const struct ifl_trace_file *file, struct text_counter **counter,
                      struct ifl_error *error);
void text_counter_close(struct text_counter *counter); /* NULL is allowed */
/* A prompt stands in the template, an output does not. `record` is 1-based, for errors. */
int text_counter_add(struct text_counter *counter, const char *text, size_t n_bytes, bool is_prompt,
                     size_t record, struct ifl_error *error);
/* The counts of all texts, in the order in which they were added; the counter's. */
int text_counter_end(struct text_counter *counter, const uint32_t **counts, size_t *n,
                     struct ifl_error *error);

/* open.c, none.c: the libraries on which ids may depend. */
const char *text_library_versions(char *out, size_t size);

#endif
