/* A CUDA grid on one CPU thread: what the kernels' host dialect asks of the runtime.
 *
 * Every CUDA thread ("lane") is a fiber. Blocks run one after another; within a block a lane runs
 * until it waits at a barrier or a warp operation, or ends. The next lane is drawn from the seed.
 * A warp operation names the lanes that it expects; the last of them computes all results.
 *
 * What ThreadSanitizer sees: __syncthreads and __syncwarp order memory; shuffles, votes and matrix
 * operations do not; blocks of one launch happen after each other. An asynchronous copy overwrites
 * its destination with garbage when it is issued and with the data at its wait: the hardware may
 * write at any time between the two.
 *
 * A launch that may overlap the previous one (programmatic dependent launch) sees memory as it was
 * before the previous launch, until its lanes wait. If the previous launch allowed the next one
 * before it had waited itself, the memory is that before the launch before it, and so on. A wait
 * does not show copies that the host makes in between: CUDA's documents promise more, but nothing
 * here relies on it.
 *
 * Divergent barriers, wrong masks and deadlocks print every waiting lane and abort.
 *
 * Not modelled: warp-synchronous timing, the weak memory model, bank conflicts, races between
 * blocks, performance. Not thread safe. */
#ifndef GPU_SIMT_SIMT_H
#define GPU_SIMT_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SIMT_WARP_LANES = 32, SIMT_MAX_LANES = 1024, SIMT_OPERAND_BYTES = 48 };

struct simt_index {
    unsigned x, y, z;
};

/* File and line of a call in a kernel. */
struct simt_site {
    const char *file;
    int line;
};

enum simt_op {
    SIMT_SYNCWARP,
    SIMT_SHUFFLE,     /* struct simt_shuffle -> uint64_t */
    SIMT_BALLOT,      /* uint32_t (0, 1) -> uint32_t */
    SIMT_LDMATRIX,    /* uint32_t[4], one row of one 8x8 matrix -> uint32_t[4] */
    SIMT_LDMATRIX_TR, /* the same, each matrix transposed */
    SIMT_MMA_BF16,    /* struct simt_mma -> float[4] */
    SIMT_MMA_FP16,
    SIMT_N_OPS
};

struct simt_shuffle {
    uint64_t value;
    uint32_t source_lane;
};

/* D = A B + C of m16n8k16, in the fragment layout of the PTX manual's mma.m16n8k16. */
struct simt_mma {
    uint32_t a[4], b[2];
    float c[4];
};

/* 16 bytes of shared memory still to be filled from n_bytes of global memory and zeros. */
struct simt_copy {
    void *to;
    const void *from;
    unsigned n_bytes;
};

/* Runs body(closure) once per lane of every block. Dynamic shared memory is filled with NaN
 * before each block. */
void simt_launch(struct simt_index grid, struct simt_index block, size_t shared_bytes,
                 bool may_overlap, void (*body)(void *closure), void *closure);

/* ---- global memory, for launches that overlap ---- */

/* From now on, until the memory is dropped, launches may see older contents of it. */
void simt_memory_add(void *memory, size_t n_bytes);
void simt_memory_drop(const void *memory);
/* Declares that the last launch writes this memory: the next launch finds NaN there until it waits.
 */
void simt_memory_written(void *memory, size_t n_bytes);
/* Call it before the host writes memory, after the last launch and before the next. */
void simt_host_writes(const void *memory, size_t n_bytes);
/* Call it when other work has run that ends before the next launch begins. */
void simt_fence(void);

/* True if every lane of the last launch has waited for the previous launch; it is a failure if only
 * some have. */
bool simt_all_waited(void);
/* Matrix operations of each block of the last launch, in the order in which a device starts blocks;
 * [*n_blocks], valid until the next launch. */
const uint32_t *simt_products(size_t *n_blocks);
/* Seeds the draws of the next lane. The same seed gives the same order. */
void simt_seed(uint64_t seed);

/* Plants a bug: from here on the call number `which` (counted from 0, in order of first
 * execution) among the kernel's __syncthreads, __syncwarp and asynchronous waits does nothing.
 * -1 plants nothing. The list of calls seen so far is emptied. */
void simt_leave_out(int which);
/* The number of calls since simt_leave_out, and the skipped call as FILE:LINE or NULL. */
int simt_n_calls(void);
const struct simt_site *simt_left_out(void);

/* ---- for a running lane ---- */

struct simt_index simt_thread_index(void);
struct simt_index simt_block_index(void);
struct simt_index simt_block_size(void);
struct simt_index simt_grid_size(void);
unsigned simt_lane(void);
void *simt_shared(void);

/* Records that this lane waits for the previous launch. On a device two launches may overlap until
 * every lane has waited. */
void simt_previous_wait(void);
/* This lane allows the next launch to begin. */
void simt_next_admit(void);
void simt_barrier(struct simt_site site);
/* Posts `in`, waits for every lane in mask to do the same operation, returns this lane's `out`. */
void simt_warp(enum simt_op op, unsigned mask, const void *in, size_t in_bytes, void *out,
               size_t out_bytes, struct simt_site site);

void simt_copy_issue(struct simt_copy copy);
void simt_copy_commit(void);
/* Takes the oldest copy out of those that must be complete when at most n_groups committed groups
 * may be pending; false when there is none. */
bool simt_copy_due(unsigned n_groups, struct simt_copy *copy);
/* False if this wait is the call that simt_leave_out skips. */
bool simt_copy_waits(struct simt_site site);

#ifdef __cplusplus
}
#endif

#endif
