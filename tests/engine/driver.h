/* Runs an engine step by step in a test, on sequences with tokens and blocks. */
#ifndef TESTS_ENGINE_DRIVER_H
#define TESTS_ENGINE_DRIVER_H

#include "inflight/engine.h"

enum {
    DRIVER_MAX_SEQS = 8,
    DRIVER_MAX_TOKENS = 8192,
    DRIVER_MAX_BLOCKS = 512,
    DRIVER_MAX_ROWS = 1024
};

struct driver {
    const struct ifl_engine *engine;
    void *self;
    struct ifl_engine_options options;
    struct ifl_error error;
    /* Of the next step: what it does to blocks, its slots, rows, voters and votes may be set here.
     */
    struct ifl_engine_step step;
    int32_t token_ids[DRIVER_MAX_TOKENS], positions[DRIVER_MAX_TOKENS];
    int32_t first_token[DRIVER_MAX_SEQS + 1], first_block[DRIVER_MAX_SEQS + 1];
    uint32_t block_ids[DRIVER_MAX_SEQS * DRIVER_MAX_BLOCKS];
    int32_t n_rows[DRIVER_MAX_SEQS];
    int32_t sampled[DRIVER_MAX_ROWS];
    int64_t *device_ns; /* NULL, or where the time of a step goes */
};

struct driven {
    const int32_t *tokens;
    int32_t n_computed;
    const uint32_t *blocks;
};

/* What every engine opened from here on leaves out, of enum ifl_engine_without. */
extern uint32_t driver_without;

/* Blocks of 4 tokens, contexts of up to 1024, unless the options say otherwise (not 0). */
int driver_open(struct driver *driver, const struct ifl_engine *engine,
                const struct ifl_engine_options *options);
void driver_close(struct driver *driver);

/* n_new[i] tokens of each sequence; one row of logits each, unless step.n_rows says otherwise.
 * logits: [rows][n_vocab] or NULL. */
int driver_step(struct driver *driver, struct driven *seqs, const int32_t *n_new, int32_t n,
                float *logits);

/* ---- a small engine, with a prompt of 21 tokens in six of its blocks ---- */

enum { SMALL_PROMPT = 21, SMALL_HOME = 6, SMALL_BLOCKS = 24, SMALL_VOCAB = 100 };
extern const struct ifl_engine_options small_options;
extern const uint32_t small_home[SMALL_HOME], small_other_home[SMALL_HOME];
const int32_t *small_tokens(void); /* [64] the prompt, and tokens that may follow it */

/* Opens the engine and computes the prompt; returns the code of either. logits: [SMALL_VOCAB] or
 * NULL. */
int small_open(struct driver *driver, const struct ifl_engine *engine, struct driven *seq,
               float *logits);
/* The blocks that are not in small_home. */
size_t small_others(uint32_t others[SMALL_BLOCKS]);

/* ---- comparing ---- */

/* |a - b| / |b|, Euclidean. */
double relative_error(const float *a, const float *b, size_t n);

/* A folder of tests/engine/fixtures, with its tokens and expected logits. */
struct fixture_model {
    char dir[512];
    struct ifl_engine_model model;
    int32_t *tokens;
    int32_t n_tokens;
    float *logits; /* [n_tokens][n_vocab] */
};
extern const char *const fixture_names[]; /* NULL-ended */
void fixture_model_load(struct fixture_model *fixture, const char *name);
void fixture_model_free(struct fixture_model *fixture);

#endif
