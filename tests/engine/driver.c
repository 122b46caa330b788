#include "driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "architecture.h"
#include "safetensors.h"

uint32_t driver_without;

int driver_open(struct driver *driver, const struct ifl_engine *engine,
                const struct ifl_engine_options *options)
{
    struct ifl_engine_options *o = &driver->options;
    *driver = (struct driver){.engine = engine, .options = *options};
    o->without |= driver_without;
    o->n_threads = o->n_threads ? o->n_threads : 1;
    o->block_tokens = o->block_tokens ? o->block_tokens : 4;
    o->n_blocks = o->n_blocks ? o->n_blocks : DRIVER_MAX_BLOCKS;
    o->max_tokens = o->max_tokens ? o->max_tokens : 1024;
    o->max_step_tokens = o->max_step_tokens ? o->max_step_tokens : DRIVER_MAX_TOKENS;
    o->max_step_seqs = o->max_step_seqs ? o->max_step_seqs : DRIVER_MAX_SEQS;
    return engine->open(o, &driver->self, &driver->error);
}

void driver_close(struct driver *driver)
{
    driver->engine->close(driver->self);
    driver->self = NULL;
}

static void add_seq(struct driver *d, const struct driven *seq, int32_t n_new)
{
    struct ifl_engine_step *step = &d->step;
    const int32_t n_blocks =
        (seq->n_computed + n_new + d->options.block_tokens - 1) / d->options.block_tokens;
    for (int32_t i = 0; i < n_new; i++, step->n_tokens++) {
        d->token_ids[step->n_tokens] = seq->tokens[seq->n_computed + i];
        d->positions[step->n_tokens] = seq->n_computed + i;
    }
    const int32_t at = d->first_block[step->n_seqs];
    memcpy(d->block_ids + at, seq->blocks, (size_t)n_blocks * sizeof *seq->blocks);
    d->n_rows[step->n_seqs++] = 1;
    d->first_block[step->n_seqs] = at + n_blocks;
    d->first_token[step->n_seqs] = step->n_tokens;
}

int driver_step(struct driver *d, struct driven *seqs, const int32_t *n_new, int32_t n,
                float *logits)
{
    struct ifl_engine_step *step = &d->step;
    step->n_seqs = step->n_tokens = 0;
    for (int32_t i = 0; i < n; i++)
        add_seq(d, &seqs[i], n_new[i]);
    step->token_ids = d->token_ids;
    step->positions = d->positions;
    step->first_token = d->first_token;
    step->first_block = d->first_block;
    step->block_ids = d->block_ids;
    step->n_rows = step->n_rows ? step->n_rows : d->n_rows;
    step->sampled = d->sampled;
    step->logits = logits;
    const int rc = d->engine->step(d->self, step, &d->error);
    for (int32_t i = 0; rc == 0 && i < n; i++)
        seqs[i].n_computed += n_new[i];
    if (d->device_ns)
        *d->device_ns = step->device_ns;
    *step = (struct ifl_engine_step){0};
    return rc;
}

/* ---- a small engine ---- */

const struct ifl_engine_options small_options = {
    .model = {.n_layers = 3,
              .d_model = 32,
              .n_q_heads = 4,
              .n_kv_heads = 2,
              .d_head = 8,
              .d_ffn = 48,
              .n_vocab = SMALL_VOCAB},
    .seed = 5,
    .n_blocks = SMALL_BLOCKS,
    .max_step_tokens = 64,
    .n_host_blocks = 8,
};
const uint32_t small_home[SMALL_HOME] = {9, 2, 17, 5, 0, 23};
const uint32_t small_other_home[SMALL_HOME] = {1, 22, 3, 10, 4, 6};

const int32_t *small_tokens(void)
{
    static int32_t tokens[64];
    for (int32_t i = 0; i < 64; i++)
        tokens[i] = i * 31 % SMALL_VOCAB;
    return tokens;
}

int small_open(struct driver *driver, const struct ifl_engine *engine, struct driven *seq,
               float *logits)
{
    const int32_t n_new = SMALL_PROMPT;
    *seq = (struct driven){small_tokens(), 0, small_home};
    const int rc = driver_open(driver, engine, &small_options);
    return rc < 0 ? rc : driver_step(driver, seq, &n_new, 1, logits);
}

size_t small_others(uint32_t others[SMALL_BLOCKS])
{
    size_t n = 0;
    for (uint32_t block = 0; block < SMALL_BLOCKS; block++) {
        bool is_home = false;
        for (size_t i = 0; i < SMALL_HOME; i++)
            is_home |= small_home[i] == block;
        if (!is_home)
            others[n++] = block;
    }
    return n;
}

/* ---- comparing ---- */

double relative_error(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(difference / size); /* NaN stays NaN, which no bound accepts */
}

/* ---- fixtures ---- */

const char *const fixture_names[] = {"llama", "llama-tied", "qwen2", "qwen3", "mistral", NULL};

void fixture_model_load(struct fixture_model *fixture, const char *name)
{
    struct architecture architecture;
    struct safetensors file;
    struct ifl_error error;
    char path[600];
    *fixture = (struct fixture_model){.n_tokens = 80};
    snprintf(fixture->dir, sizeof fixture->dir, "%s/%s", getenv("ENGINE_FIXTURES"), name);
    ifl_require(architecture_read(fixture->dir, NULL, &architecture, &error) == 0);
    fixture->model = architecture.model;
    snprintf(path, sizeof path, "%s/expected.safetensors", fixture->dir);
    ifl_require(safetensors_open(path, &file, &error) == 0);
    const size_t n = 80, n_vocab = (size_t)fixture->model.n_vocab;
    float tokens[80];
    fixture->tokens = calloc(n, sizeof *fixture->tokens);
    fixture->logits = calloc(n * n_vocab, sizeof *fixture->logits);
    ifl_require(fixture->tokens && fixture->logits);
    ifl_require(safetensors_read(&file, safetensors_find(&file, "tokens"), tokens, n, &error) == 0);
    ifl_require(safetensors_read(&file, safetensors_find(&file, "logits"), fixture->logits,
                                 n * n_vocab, &error) == 0);
    for (size_t i = 0; i < n; i++)
        fixture->tokens[i] = (int32_t)tokens[i];
    safetensors_close(&file);
}

void fixture_model_free(struct fixture_model *fixture)
{
    free(fixture->tokens);
    free(fixture->logits);
}
