/* Measures an engine on this machine: operation by operation, then whole steps.
 *
 * The sheet is one long CSV. Comments at its head say what was measured (`# processor: ...`, one a
 * line). Then there is one row per shape:
 *
 *     op              ceiling_copy, ceiling_copy_out, ceiling_copy_in, ceiling_gemm: the best of
 *                     this machine; gemm, norm, rotary, activation, elementwise (those of a layer
 *                     one after the other), attention_decode, attention_prefill, attention_mixed:
 *                     of one layer, on the device; step: a whole forward pass as its caller sees
 *                     it; step_host: the part of it outside the device; swap_out, swap_in,
 *                     block_copy
 *     layers ... vocab, element_bytes     the model
 *     m, n, k                             y[m][n] = x[m][k] w[n][k]^T
 *     prefill_seqs ... sampled            the batch, as struct ifl_step_totals counts it
 *     blocks, block_bytes                 swapped or copied
 *     runs, median_s, min_s, spread_s     of the runs; the spread is that between the quartiles
 *     bytes, flops                        that have to be moved and computed
 *     share, ceiling                      share of the named ceiling that the median reaches
 *
 * Cells that do not apply to an operation are empty. */
#ifndef SIM_FIT_CALIBRATE_CALIBRATE_H
#define SIM_FIT_CALIBRATE_CALIBRATE_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "cost/model.h"
#include "inflight/engine.h"

struct calibration {
    const char *engine; /* "cpu", "cuda" */
    const struct model *model;
    enum ifl_engine_dtype dtype;
    int32_t n_threads, max_runs;
    int32_t n_blocks; /* blocks of 16 tokens; 0: as many as the engine's kind of machine has room
                         for */
    const volatile sig_atomic_t *stop;
};

/* Measures and writes the sheet to `out`; this takes minutes. Returns 0 or the code of `error`. */
int calibrate(const struct calibration *calibration, FILE *out, struct ifl_error *error);

#endif
