/* A batch of texts, encoded by several threads. Each takes the next text that none has taken, so
 * that the results do not depend on how many there are. */
#include "text/count.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"

enum { FULL_BYTES = 1 << 25, FULL_TEXTS = 1 << 18, BYTES_A_THREAD = 1 << 17 };

int text_batch_add(struct text_batch *batch, const char *const parts[3], const size_t n_bytes[3],
                   size_t record, size_t turn, struct ifl_error *error)
{
    const size_t n = n_bytes[0] + n_bytes[1] + n_bytes[2];
    if (trace_reserve(&batch->items, &batch->cap, batch->n + 1, sizeof *batch->items, error) < 0 ||
        trace_reserve(&batch->bytes, &batch->cap_bytes, batch->n_bytes + n + 1, 1, error) < 0)
        return error->code;
    batch->items[batch->n++] =
        (struct text_item){.at = batch->n_bytes, .n_bytes = n, .record = record, .turn = turn};
    for (int i = 0; i < 3; i++) {
        if (n_bytes[i] > 0)
            memcpy(batch->bytes + batch->n_bytes, parts[i], n_bytes[i]);
        batch->n_bytes += n_bytes[i];
    }
    return batch->n_bytes >= FULL_BYTES || batch->n >= FULL_TEXTS;
}

/* ---- threads ---- */

struct crew {
    struct text_batch *batch;
    atomic_size_t next;     /* the first item that no thread has taken */
    atomic_int n_encoders;  /* taken by threads */
    pthread_mutex_t lock;   /* of what follows */
    size_t wrong;           /* the first item with an error; batch->n: none */
    struct ifl_error error; /* of it */
};

static int encode_one(struct ifl_encoder *encoder, struct text_batch *batch, struct text_item *item,
                      struct ifl_error *error)
{
    const uint32_t *ids;
    const int rc =
        ifl_encode(encoder, batch->bytes + item->at, item->n_bytes, &ids, &item->n_ids, error);
    if (rc < 0 || !batch->keeps_ids)
        return rc;
    item->ids = malloc((item->n_ids + 1) * sizeof *item->ids);
    if (!item->ids)
        return ifl_fail_nomem(error);
    if (item->n_ids > 0)
        memcpy(item->ids, ids, item->n_ids * sizeof *ids);
    return 0;
}

static void blame(struct crew *crew, size_t item, const struct ifl_error *error)
{
    pthread_mutex_lock(&crew->lock);
    if (item < crew->wrong) {
        crew->wrong = item;
        crew->error = *error;
    }
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *context)
{
    struct crew *crew = context;
    struct text_batch *batch = crew->batch;
    struct ifl_error error;
    struct ifl_encoder *encoder = batch->encoders[atomic_fetch_add(&crew->n_encoders, 1)];
    for (size_t i; (i = atomic_fetch_add(&crew->next, 1)) < batch->n;)
        if (encode_one(encoder, batch, &batch->items[i], &error) < 0)
            blame(crew, i, &error);
    return NULL;
}

static size_t threads_for(const struct text_batch *batch)
{
    const long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t n_useful = batch->n_bytes / BYTES_A_THREAD + 1;
    const size_t most = n_processors < 1                  ? 1
                        : n_processors > TEXT_MAX_THREADS ? TEXT_MAX_THREADS
                                                          : (size_t)n_processors;
    return n_useful < most ? n_useful : most;
}

static int make_encoders(struct text_batch *batch, size_t n, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!batch->encoders[i])
            rc = ifl_encoder_open(batch->tokenizer, &batch->encoders[i], error);
    return rc;
}

static int fail_item(const struct crew *crew, struct ifl_error *error)
{
    const struct text_batch *batch = crew->batch;
    *error = crew->error;
    if (error->code != IFL_E_INPUT)
        return error->code;
    return ifl_fail_at(error, batch->path, 0, 0, "record %zu: %.600s",
                       batch->items[crew->wrong].record, crew->error.text);
}

int text_batch_encode(struct text_batch *batch, struct ifl_error *error)
{
    struct crew crew = {.batch = batch, .wrong = batch->n};
    pthread_t threads[TEXT_MAX_THREADS];
    const size_t n = threads_for(batch);
    size_t n_started = 1; /* this one */
    if (make_encoders(batch, n, error) < 0)
        return error->code;
    pthread_mutex_init(&crew.lock, NULL);
    while (n_started < n && pthread_create(&threads[n_started], NULL, work, &crew) == 0)
        n_started++;
    work(&crew);
    for (size_t i = 1; i < n_started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    return crew.wrong < batch->n ? fail_item(&crew, error) : 0;
}

/* ---- the end of it ---- */

void text_batch_clear(struct text_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++)
        free(batch->items[i].ids);
    batch->n = batch->n_bytes = 0;
}

void text_batch_free(struct text_batch *batch)
{
    text_batch_clear(batch);
    for (size_t i = 0; i < TEXT_MAX_THREADS; i++)
        ifl_encoder_close(batch->encoders[i]);
    free(batch->bytes);
    free(batch->items);
    *batch = (struct text_batch){0};
}
