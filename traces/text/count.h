/* Counts the tokens of a trace's texts, many at a time, on several threads.
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

/* Finds the tokenizer's file in a folder. Returns the path itself if it is no folder, or if the
 * folder has no such file. */
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

/* Adds a text of three parts, which are copied. Returns 1 if the batch is large enough to be
 * encoded now. */
int text_batch_add(struct text_batch *batch, const char *const parts[3], const size_t n_bytes[3],
                   size_t record, size_t turn, struct ifl_error *error);
/* Fills in n_ids and ids of all items, on as many threads as the machine has processors. If several
 * texts cannot be encoded, the error is about the first. */
int text_batch_encode(struct text_batch *batch, struct ifl_error *error);
void text_batch_clear(struct text_batch *batch); /* keeps its memory */
void text_batch_free(struct text_batch *batch);

/* ---- template.c: what stands around a prompt ---- */

struct text_template {
    const char *before, *behind; /* borrowed */
    size_t n_before, n_behind;
};

/* Reads a template "before{}behind"; NULL: nothing is added around a prompt. */
int text_template_read(const char *text, struct text_template *around, struct ifl_error *error);

/* ---- kept.c: counts of earlier readings ---- */

struct text_key {
    char text[512]; /* everything on which the counts depend */
};

/* Makes the key of a trace's counts. Returns false if a file is not regular or there is no cache
 * folder: then nothing can be kept. */
bool text_key_make(const char *trace, const char *tokenizer, const char *around,
                   struct text_key *key);
/* Reads the kept counts of the key into *counts, to be freed by the caller. Returns false, with
 * *counts NULL and *n 0, if there are none. */
bool text_kept_read(const struct text_key *key, uint32_t **counts, size_t *n);
/* Keeps the counts; if they cannot be written, they are not kept. */
void text_kept_write(const struct text_key *key, const uint32_t *counts, size_t n);

/* ---- count.c ---- */

struct text_counter;

/* Opens the tokenizer and the template of the file, which is borrowed until the caller closes the
 * counter. The counter must be closed after an error, too. */
int text_counter_open(const struct ifl_trace_file *file, struct text_counter **counter,
                      struct ifl_error *error);
void text_counter_close(struct text_counter *counter); /* NULL is allowed */
/* Adds a text. A prompt is put into the template, an output is not. `record` is 1-based, for
 * errors. */
int text_counter_add(struct text_counter *counter, const char *text, size_t n_bytes, bool is_prompt,
                     size_t record, struct ifl_error *error);
/* Returns the counts of all texts, in the order in which they were added. The counter owns them. */
int text_counter_end(struct text_counter *counter, const uint32_t **counts, size_t *n,
                     struct ifl_error *error);

/* open.c, none.c: the versions of the libraries on which ids may depend. */
const char *text_library_versions(char *out, size_t size);

#endif
