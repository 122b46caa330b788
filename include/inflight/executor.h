/* Executors: a cost model in virtual time, or an engine in wall time.
 *
 * `submit` returns at once; `next` gives the earliest completion. Virtual time jumps to it, wall
 * time waits for it; one loop drives both and cannot tell them apart. Functions that can fail
 * return 0 or more, or a negative code with `error` filled in, which ends the run. One thread
 * calls. */
#ifndef INFLIGHT_EXECUTOR_H
#define INFLIGHT_EXECUTOR_H

#include "inflight/error.h"
#include "inflight/step.h"
#include "inflight/time.h"

/* ---- what an executor is told ---- */

struct ifl_work { /* one sequence */
    const struct ifl_request *request;
    int32_t seq;            /* of its group, from 0 */
    int32_t n_new;          /* tokens to compute */
    int32_t n_context;      /* tokens whose K/V exist before them */
    bool samples;           /* the step ends with a token for it */
    const uint32_t *blocks; /* [n_blocks] its block table: token i is in block i / block_tokens */
    int32_t n_blocks;
    int32_t stream_tokens; /* leading ones, of the answer too, that are its prefix group's stream */
    int32_t named_tokens;  /* leading ones, of the answer too, that its hash ids stand for */
};

struct ifl_copy { /* of a block: its number in the pool it is read from, in that it goes to */
    uint32_t from, to;
};

/* Sums and maxima over the step's sequences. Simulated durations depend on nothing else. */
struct ifl_step_totals {
    int32_t n_tokens;         /* new tokens, prefill and decode */
    int32_t n_prefill_tokens; /* new tokens of sequences that do not decode yet */
    int32_t n_prefill_seqs, n_decode_seqs;
    int32_t n_sampled;      /* rows of logits */
    int64_t decode_context; /* tokens whose K/V decoding sequences read, the new one included */
    int64_t prefill_q_kv;   /* sum of new x context before, over prefill sequences */
    int64_t prefill_q_q;    /* sum of new x new, over prefill sequences */
    int32_t max_prefill_kv; /* longest context + new of a prefill sequence */
    int64_t prefill_kv_64; /* sum of contexts before, each rounded up to 64, of prefill sequences */
    int32_t n_blocks_out, n_blocks_in; /* swapped to and from host memory */
    int32_t n_blocks_copied;           /* within the device */
    struct ifl_padding padding;        /* not part of the sums above */
};

/* Executed in this order: swap-outs, swap-ins, copies, compute. Borrowed until `submit` returns. */
struct ifl_step_desc {
    uint64_t step;    /* number of the replica's step */
    uint32_t replica; /* which submits it */
    int64_t start_ns;
    struct ifl_step_totals totals;
    const struct ifl_work *work; /* NULL for executors that do not want it */
    size_t n_work;
    const struct ifl_copy *outs, *ins, *copies;
    size_t n_outs, n_ins, n_copies;
};

/* ---- what it answers ---- */

struct ifl_done {             /* a step that has ended */
    uint64_t step;            /* its number, as submitted */
    uint32_t replica;         /* that submitted it */
    int64_t start_ns, end_ns; /* simulated or measured */
    int64_t device_ns;        /* time on the device; a simulation says end - start */
};

struct ifl_executor_ops {
    size_t size_bytes;
    const char *name;
    bool wants_work; /* descriptions carry one ifl_work a sequence, with block tables */
    /* Now, since the start of the run. A simulation says the time of its last answer. */
    int64_t (*now)(void *self);
    /* Takes the step; the steps of a replica execute in the order they were submitted. */
    int (*submit)(void *self, const struct ifl_step_desc *, struct ifl_error *);
    /* 1: *done is the earliest completion, not after until_ns. 0: there is none by then, and
     * now() >= until_ns. Negative: an error. */
    int (*next)(void *self, int64_t until_ns, struct ifl_done *, struct ifl_error *);
    /* The request has left for good. Optional. */
    void (*forget)(void *self, uint64_t serial);
    /* How long this step and those after it would take, up to n in all, if they followed one
     * another and each computed one more token of the same sequences: of how many it can tell, 0
     * where only submitting one can; those behind the first take a second or two each, no more, so
     * that they can be added up. Optional: then the loop flies steps between which nothing happens
     * without submitting them. */
    size_t (*durations)(void *self, const struct ifl_step_desc *first, size_t n,
                        int64_t *duration_ns);
};

#endif
