/* The engine of TELLING_ENGINE, which writes what it computes to the file TELLING_LOG: a line a row
 * of logits (the engine's number in order of opening, position, token, the likeliest token behind
 * it, all logits), and a line a copy beside the steps (`send` or `receive`, the engine, blocks).
 * TELLING_SLOW_MS makes each receive last; TELLING_FAILS is the number of the receive that fails;
 * with TELLING_LOST none brings anything. With TELLING_SERIAL calls wait for one another. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inflight/engine.h"

enum { MOST_ENGINES = 8 };

struct told {
    void *self; /* of the engine itself */
    int number;
    int32_t n_vocab, max_rows;
    float *logits;
};

static const struct ifl_engine *engine;
static struct told engines[MOST_ENGINES];
static int n_engines, n_received;
static FILE *log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void load(void)
{
    void *library = dlopen(getenv("TELLING_ENGINE"), RTLD_NOW | RTLD_LOCAL);
    engine = library ? dlsym(library, IFL_ENGINE_SYMBOL) : NULL;
    log_file = fopen(getenv("TELLING_LOG"), "a");
    if (!engine || !log_file)
        abort();
}

static int number_of(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

/* Of engines that are no engines of several threads. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void take_turn(void)
{
    if (number_of("TELLING_SERIAL"))
        pthread_mutex_lock(&turn);
}

static void end_turn(void)
{
    if (number_of("TELLING_SERIAL"))
        pthread_mutex_unlock(&turn);
}

static int open_told(const struct ifl_engine_options *options, void **self, struct ifl_error *error)
{
    if (!engine)
        load();
    struct told *told = &engines[n_engines];
    *told = (struct told){.number = n_engines++,
                          .n_vocab = options->model.n_vocab,
                          .max_rows = options->max_step_tokens};
    told->logits = malloc((size_t)told->max_rows * (size_t)told->n_vocab * sizeof *told->logits);
    *self = told;
    return engine->open(options, &told->self, error);
}

static void tell_rows(const struct told *told, const struct ifl_engine_step *step)
{
    const float *logits = step->logits;
    const int32_t *sampled = step->sampled;
    for (int32_t i = 0; i < step->n_seqs; i++)
        for (int32_t row = 0; row < step->n_rows[i]; row++, logits += told->n_vocab) {
            const int32_t token = step->first_token[i + 1] - step->n_rows[i] + row;
            fprintf(log_file, "row %d %d %d %d", told->number, step->positions[token],
                    step->token_ids[token], *sampled++);
            for (int32_t k = 0; k < told->n_vocab; k++)
                fprintf(log_file, " %.8e", (double)logits[k]);
            fputc('\n', log_file);
        }
}

static int step_told(void *self, struct ifl_engine_step *step, struct ifl_error *error)
{
    struct told *told = self;
    step->logits = told->logits;
    take_turn();
    const int rc = engine->step(told->self, step, error);
    end_turn();
    pthread_mutex_lock(&lock);
    if (rc == 0)
        tell_rows(told, step);
    pthread_mutex_unlock(&lock);
    return rc;
}

static size_t block_bytes(const void *self)
{
    return engine->block_bytes(((const struct told *)self)->self);
}

static int read_told(void *self, enum ifl_engine_pool pool, uint32_t block, void *bytes,
                     struct ifl_error *error)
{
    return engine->read_block(((struct told *)self)->self, pool, block, bytes, error);
}

static int write_told(void *self, enum ifl_engine_pool pool, uint32_t block, const void *bytes,
                      struct ifl_error *error)
{
    return engine->write_block(((struct told *)self)->self, pool, block, bytes, error);
}

static void tell_copy(const struct told *told, const char *what, const uint32_t *blocks, size_t n)
{
    pthread_mutex_lock(&lock);
    fprintf(log_file, "%s %d", what, told->number);
    for (size_t i = 0; i < n; i++)
        fprintf(log_file, " %u", blocks[i]);
    fputc('\n', log_file);
    pthread_mutex_unlock(&lock);
}

static int send_told(void *self, const uint32_t *blocks, size_t n, void *bytes,
                     struct ifl_error *error)
{
    const struct told *told = self;
    tell_copy(told, "send", blocks, n);
    take_turn();
    const int rc = engine->send_blocks(told->self, blocks, n, bytes, error);
    end_turn();
    return rc;
}

static int receive_told(void *self, const uint32_t *blocks, size_t n, const void *bytes,
                        struct ifl_error *error)
{
    const struct told *told = self;
    const long ms = number_of("TELLING_SLOW_MS");
    const struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&nap, NULL);
    tell_copy(told, "receive", blocks, n);
    pthread_mutex_lock(&lock);
    const int number = ++n_received;
    pthread_mutex_unlock(&lock);
    if (number == number_of("TELLING_FAILS"))
        return ifl_fail(error, IFL_E_DEVICE, "copy %d was lost", number);
    if (number_of("TELLING_LOST"))
        return 0;
    take_turn();
    const int rc = engine->receive_blocks(told->self, blocks, n, bytes, error);
    end_turn();
    return rc;
}

static void close_told(void *self)
{
    struct told *told = self;
    if (!told)
        return;
    engine->close(told->self);
    free(told->logits);
    fprintf(log_file, "close %d\n", told->number);
    fflush(log_file);
}

__attribute__((visibility("default"))) const struct ifl_engine ifl_engine_v1 = {
    .abi = IFL_ENGINE_ABI,
    .engine_bytes = sizeof(struct ifl_engine),
    .options_bytes = sizeof(struct ifl_engine_options),
    .step_bytes = sizeof(struct ifl_engine_step),
    .name = "cpu",
    .open = open_told,
    .step = step_told,
    .block_bytes = block_bytes,
    .read_block = read_told,
    .write_block = write_told,
    .close = close_told,
    .send_blocks = send_told,
    .receive_blocks = receive_told,
};
