/* Executors: a cost model in virtual time, or an engine in wall time.
 *
 * `submit` returns at once; `next` returns the earliest completion. In virtual time the clock jumps
 * to it, in wall time the call waits for it; the event loop is the same for both. Functions that
 * can fail return 0 or more, or a negative code with `error` filled in, which ends the run. All
 * calls come from one thread. No pointer is NULL. `self` is the executor's own state, passed on. */
#ifndef INFLIGHT_EXECUTOR_H
#define INFLIGHT_EXECUTOR_H

#include "inflight/error.h"
#include "inflight/step.h"
#include "inflight/time.h"

/* ---- the input of an executor ---- */

struct ifl_work { /* one sequence */
    const struct ifl_request *request;
    int32_t seq;            /* of its group, from 0 */
    int32_t n_new;          /* tokens to compute */
    int32_t n_context;      /* tokens before them, with K/V already computed */
    bool samples;           /* the step ends with a token for it */
    bool decodes;           /* its prompt, and tokens that a preemption dropped, have K/V */
    const uint32_t *blocks; /* [n_blocks] its block table: token i is in block i / block_tokens */
    int32_t n_blocks;
    /* Leading tokens of the sequence (prompt and answer) with a known identity: */
    int32_t stream_tokens; /* the first tokens of the stream of its prefix group */
    int32_t named_tokens;  /* tokens under its hash ids */
    /* Above 0: the other tokens of the prompt are the same for all requests with this number, which
     * are a request and its retries. */
    uint64_t repeats;
    int32_t n_draft; /* the last ones of n_new: guessed, to be verified */
    int32_t n_holds; /* of these, the drawn number that hold, for executors that do not verify */
};

/* Low-rank adapters (Hu et al. 2021) of a step; all 0 if no sequence has one. */
struct ifl_adapter_totals {
    int32_t n;            /* different adapters */
    int32_t n_tokens;     /* new tokens that are computed with an adapter */
    int32_t n_runs;       /* runs of adjacent sequences with one adapter, in the step's order */
    int32_t most_rank;    /* largest rank */
    int64_t ranks;        /* sum of the ranks of the different adapters */
    int64_t rank_tokens;  /* sum over n_tokens of the rank of their adapter */
    int32_t n_loads;      /* adapters loaded to the device before the step computes */
    int32_t n_disk_loads; /* of n_loads, those that were not in host memory */
    int64_t load_bytes, disk_bytes;
};

struct ifl_copy {      /* of one block */
    uint32_t from, to; /* block numbers in the source pool and in the target pool */
};

/* Sums and maxima over the step's sequences. A simulated duration depends on nothing else. */
struct ifl_step_totals {
    int32_t n_tokens;         /* new tokens, prefill and decode */
    int32_t n_prefill_tokens; /* new tokens of sequences that do not decode yet */
    int32_t n_prefill_seqs, n_decode_seqs;
    int32_t n_sampled;      /* rows of logits */
    int64_t decode_context; /* tokens of K/V that decoding sequences read, the new one included */
    int64_t prefill_q_kv;   /* sum of new x context before, over prefill sequences */
    int64_t prefill_q_q;    /* sum of new x new, over prefill sequences */
    int32_t max_prefill_kv; /* longest context + new of a prefill sequence */
    int64_t prefill_kv_64;  /* sum of contexts before, each rounded up to 64, over the same */
    int32_t n_blocks_out, n_blocks_in; /* swapped to and from host memory */
    int32_t n_blocks_copied;           /* within the device */
    int32_t n_full_seqs;  /* of n_decode_seqs, those that give up as much K/V as they add: the next
                             step reads no more of it */
    int32_t n_slots_kept; /* of prompts that give up K/V at the end of the step: slots that are
                             copied within the device */
    int32_t n_keys_voted; /* tokens; their keys are read a second time for the votes */
    struct ifl_padding padding; /* not part of the sums above */
    /* Guessed tokens, included in n_tokens, n_sampled and decode_context: of n_draft_seqs decoding
     * sequences, at most max_drafts of each. */
    int32_t n_draft_tokens, n_draft_seqs, max_drafts;
    struct ifl_adapter_totals adapters;
};

/* Executed in this order: swap-outs, swap-ins, copies, compute. Borrowed until `submit` returns. */
struct ifl_step_desc {
    uint64_t step;    /* number of the replica's step */
    uint32_t replica; /* number of the replica that submits it */
    int64_t start_ns;
    struct ifl_step_totals totals;
    const struct ifl_work *work; /* NULL unless the executor wants_work */
    size_t n_work;
    const struct ifl_copy *outs, *ins, *copies;
    size_t n_outs, n_ins, n_copies;
};

/* K/V that is copied beside the steps: from one replica's device to another's, or between a device
 * and a tier below it. */
struct ifl_kv_move {
    uint64_t tag;                  /* the loop's own word */
    int32_t from, to;              /* replicas; below 0, -1 - tier: a tier of the other one */
    const struct ifl_copy *copies; /* [n_copies] blocks of a device, places of a tier; borrowed */
    size_t n_copies;
};

/* ---- the results of an executor ---- */

struct ifl_stage_time { /* of a step in a stage of a pipeline */
    int64_t start_ns, end_ns;
};

struct ifl_stage_times {
    uint32_t pipeline; /* its number: that of the replica, or of the replicas that share it */
    int32_t n;
    const struct ifl_stage_time *of; /* [n] */
};

struct ifl_done {             /* a step that has ended */
    uint64_t step;            /* its number, as submitted */
    uint32_t replica;         /* number of the replica that submitted it */
    int64_t start_ns, end_ns; /* simulated or measured */
    int64_t device_ns;        /* time on the device; a simulation says end - start, of a pipeline
                                 the sum over its stages */
    const struct ifl_stage_times *stages; /* NULL: there is no pipeline. Borrowed until the next
                                             call of the executor */
    /* [n_work] in the order of the submitted work: number of guessed tokens that equal the target's
     * own. NULL: the loop draws how many hold. Borrowed until the next call of the executor. */
    const int32_t *n_accepted;
};

struct ifl_kv_moved {
    uint64_t tag;
    int64_t sent_ns, start_ns, end_ns; /* submitted; the copy began; the copy ended */
};

/* Result of `next` if a move has ended before any step. */
enum { IFL_NEXT_MOVED = 3 };

enum { IFL_MOST_LOGPROBS = 20 };

/* Natural logarithms of the probabilities that a model gives a token, and the likeliest ones. */
struct ifl_logprobs {
    double of_token;
    int32_t n;                        /* of the likeliest */
    int32_t token[IFL_MOST_LOGPROBS]; /* by falling probability; of equals the lower number first */
    double of[IFL_MOST_LOGPROBS];
};

struct ifl_executor_ops {
    size_t size_bytes; /* sizeof(struct ifl_executor_ops): it may grow at its end */
    const char *name;
    bool wants_work; /* descriptions have one ifl_work per sequence, with block tables */
    /* Time since the start of the run; in a simulation, the time of the last result of `next`: the
     * end of that step, or until_ns. Never falls. */
    int64_t (*now)(void *self);
    /* Takes the step and returns 0. The steps of a replica execute in the order in which they were
     * submitted, each stage of a pipeline with the K/V of its layers, and `next` returns them in
     * that order. More than one step of a replica is in flight only if its limits->max_in_flight
     * allows it. Memory that the description points to is borrowed until `submit` returns. A step
     * may have only copies, or only padding. */
    int (*submit)(void *self, const struct ifl_step_desc *, struct ifl_error *);
    /* Waits for a completion until until_ns, which may be in the past: then it does not wait. It is
     * IFL_NEVER only while a step is in flight. Returns
     *   - 1: *done is the earliest completion, not after until_ns; each step is returned once;
     *   - 0: there is none until then, and now() >= until_ns;
     *   - IFL_NEXT_MOVED, of an executor that moves K/V: a move has ended at done->end_ns; `moved`
     *     returns it;
     *   - a negative code: an error, also of a step that failed. */
    int (*next)(void *self, int64_t until_ns, struct ifl_done *, struct ifl_error *);
    /* Optional. The request of this serial has left the run: it has finished, or a plan has dropped
     * it, perhaps before any step computed it. No step in flight and no later step names it. */
    void (*forget)(void *self, uint64_t serial);
    /* Optional, for speed: the loop then need not submit steps that repeat one another. Predicts
     * the durations of up to n steps in a row: `first`, and steps that each compute one more token
     * of the same sequences; n_decode_seqs - n_full_seqs of them read one token more than before.
     * `first` is borrowed as by `submit`; nothing is submitted. Fills duration_ns[0..k), which has
     * room for n, and returns k. It may stop early; it must stop
     *   - before a duration that is known only by submitting the step (k may be 0);
     *   - before a duration of 2^31 ns or more that is not the first, so that sums stay in
     *     range. */
    size_t (*durations)(void *self, const struct ifl_step_desc *first, size_t n,
                        int64_t *duration_ns);
    /* Optional. Takes the steps of n replicas, numbered upwards, that run in lockstep: they start
     * together, at the start_ns of the first, and end together. */
    int (*submit_group)(void *self, const struct ifl_step_desc *const *, size_t n,
                        struct ifl_error *);
    /* Optional. The token at place `index`, from 0, of answer `seq` of r. The step that sampled it
     * has ended. */
    int32_t (*token)(void *self, const struct ifl_request *r, int32_t seq, int32_t index);
    /* Optional, both or none: the executor copies K/V itself and measures the time. `move` returns
     * at once. The executor must
     *   - read blocks that go to a tier before a later submitted step begins;
     *   - write blocks that come to a replica after earlier blocks for its tiers have been read;
     *   - read blocks that go to another replica before a later step or move writes them.
     * The loop ensures that no step in flight writes the blocks, and that no later step touches
     * blocks that come before the move has ended. `moved` returns 1: *moved is the earliest move
     * that has ended by until_ns, each returned once; or 0: none has. */
    int (*move)(void *self, const struct ifl_kv_move *, struct ifl_error *);
    int (*moved)(void *self, int64_t until_ns, struct ifl_kv_moved *, struct ifl_error *);
    /* Optional. Probabilities of the token that `token` returns for answer `seq` of r, in the step
     * of the replica that `next` returned last; borrowed until the next call. NULL: they were not
     * requested when the step was submitted. */
    const struct ifl_logprobs *(*logprobs)(void *self, uint32_t replica,
                                           const struct ifl_request *r, int32_t seq, int32_t token);
    /* Optional, if it is known: the start of the step that the replica has submitted last. Steps in
     * flight may delay it. */
    int64_t (*begins)(void *self, uint32_t replica);
};

#endif
