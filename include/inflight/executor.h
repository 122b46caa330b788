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

/* ---- what an executor is told ---- */

struct ifl_work { /* one sequence */
    const struct ifl_request *request;
    int32_t seq;            /* of its group, from 0 */
    int32_t n_new;          /* tokens to compute */
    int32_t n_context;      /* tokens before them, with K/V already computed */
    bool samples;           /* the step ends with a token for it */
    bool decodes;           /* its prompt, and what a preemption dropped, were computed before */
    const uint32_t *blocks; /* [n_blocks] its block table: token i is in block i / block_tokens */
    int32_t n_blocks;
    /* Leading tokens of the sequence (prompt and answer) with a known identity: */
    int32_t stream_tokens; /* those that the stream of its prefix group begins with */
    int32_t named_tokens;  /* those that its hash ids stand for */
    uint64_t
        repeats; /* above 0: the others of its prompt are those of all requests with this number */
    int32_t n_draft; /* of n_new, the last ones: guessed, to be verified */
    int32_t n_holds; /* of these, as drawn for the executors that do not verify them really */
};

/* Of low-rank adapters (Hu et al. 2021) in a step; all 0 where no sequence has one. */
struct ifl_adapter_totals {
    int32_t n;            /* different ones */
    int32_t n_tokens;     /* new tokens that are computed with one */
    int32_t n_runs;       /* runs of sequences with the same one, in the step's order */
    int32_t most_rank;    /* of any of them */
    int64_t ranks;        /* sum of the different ones' ranks */
    int64_t rank_tokens;  /* sum over these tokens of the rank of their adapter */
    int32_t n_loads;      /* brought to the device before the step computes */
    int32_t n_disk_loads; /* of them, those that were not in host memory */
    int64_t load_bytes, disk_bytes;
};

struct ifl_copy {      /* of one block */
    uint32_t from, to; /* its numbers in the source pool and in the target pool */
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
    int32_t n_full_seqs;  /* of n_decode_seqs those that give up as much K/V as they add: a step
                             behind this one reads no more of it */
    int32_t n_slots_kept; /* of prompts that give up K/V as the step ends: slots of a token that are
                             copied within the device */
    int32_t n_keys_voted; /* tokens whose keys are read once more to choose them */
    struct ifl_padding padding; /* not part of the sums above */
    /* of n_tokens and n_sampled, those that were guessed, of n_draft_seqs sequences that decode,
     * at most max_drafts of each; decode_context counts them, too */
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

/* ---- what an executor answers ---- */

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
    /* [n_work], as the step was submitted: the guessed tokens that the target would have sampled,
     * too. NULL: the loop draws how many hold. Borrowed until the next call of the executor */
    const int32_t *n_accepted;
};

struct ifl_kv_moved {
    uint64_t tag;
    int64_t sent_ns, start_ns, end_ns; /* submitted; the copy began, and ended */
};

/* What `next` answers where a move has ended before any step. */
enum { IFL_NEXT_MOVED = 3 };

enum { IFL_MOST_LOGPROBS = 20 };

/* Natural logarithms of the probabilities that a model gives a token, and the likeliest ones. */
struct ifl_logprobs {
    double of_token;
    int32_t n;                        /* of the likeliest */
    int32_t token[IFL_MOST_LOGPROBS]; /* falling; of equals the lower number first */
    double of[IFL_MOST_LOGPROBS];
};

struct ifl_executor_ops {
    size_t size_bytes; /* sizeof(struct ifl_executor_ops): it may grow at its end */
    const char *name;
    bool wants_work; /* descriptions carry one ifl_work a sequence, with block tables */
    /* Time since the start of the run; in a simulation, that of its last answer of `next`: the end
     * of that step, or until_ns. Never falls. */
    int64_t (*now)(void *self);
    /* Takes the step and returns 0; the steps of a replica execute in the order they were
     * submitted, each stage of a pipeline with the K/V of its layers, and their ends are told in
     * that order. There is more than one at a time only where the replica's limits->max_in_flight
     * says so. What the description points to is borrowed until `submit` returns. A step with
     * copies alone, or with padding alone, is possible. */
    int (*submit)(void *self, const struct ifl_step_desc *, struct ifl_error *);
    /* 1: *done is the earliest completion, not after until_ns; each step is told once. 0: there is
     * none by then, and now() >= until_ns. Negative: an error, also that of a step that failed.
     * until_ns may be in the past: what has ended is told and nothing is waited for. It is
     * IFL_NEVER only while a step is in flight. Of an executor that moves K/V, IFL_NEXT_MOVED: a
     * move has ended at done->end_ns, and `moved` tells of it. */
    int (*next)(void *self, int64_t until_ns, struct ifl_done *, struct ifl_error *);
    /* Optional. The request of this serial has left the run: it has finished, or a plan has dropped
     * it, perhaps before any step computed it. No step in flight and no later step names it. */
    void (*forget)(void *self, uint64_t serial);
    /* Optional, for speed: the loop then need not submit steps that repeat one another. Predicts
     * the durations of up to n steps in a row: `first`, and steps that each compute one more token
     * of the same sequences, n_decode_seqs - n_full_seqs of which read one more. `first` is
     * borrowed as by `submit`; nothing is submitted. Fills duration_ns[0..k), room for n, and
     * returns k. It may stop early; it must stop
     *   - before a duration that is known only by submitting the step (k may be 0);
     *   - before a duration of 2^31 ns or more that is not the first, so that sums stay in
     *     range. */
    size_t (*durations)(void *self, const struct ifl_step_desc *first, size_t n,
                        int64_t *duration_ns);
    /* Optional. Takes the steps of n replicas, numbered upwards, that run in lockstep: they start
     * together, at the start_ns of the first, and end together. */
    int (*submit_group)(void *self, const struct ifl_step_desc *const *, size_t n,
                        struct ifl_error *);
    /* Optional. The token behind `index` others of that answer of r, which the end of a step has
     * told. */
    int32_t (*token)(void *self, const struct ifl_request *r, int32_t seq, int32_t index);
    /* Optional, both or none: the executor really moves K/V, for as long as that takes. `move`
     * returns at once. What goes to a tier is read before a step that is submitted later begins;
     * what comes to a replica is written when all has been read that went to its tiers before, and
     * what goes to another replica is read before a step or a move that came later writes there.
     * No step in flight writes the blocks, nor does a later one touch those that come before the
     * move has ended. `moved`: 1: *moved is the earliest move that has ended by until_ns,
     * each told once; 0: none has. */
    int (*move)(void *self, const struct ifl_kv_move *, struct ifl_error *);
    int (*moved)(void *self, int64_t until_ns, struct ifl_kv_moved *, struct ifl_error *);
    /* Optional. Of the token, which `token` tells of that answer of r, in the step of the replica
     * whose end was told last; borrowed until the next call. NULL: nothing asked for it as the step
     * was submitted. */
    const struct ifl_logprobs *(*logprobs)(void *self, uint32_t replica,
                                           const struct ifl_request *r, int32_t seq, int32_t token);
    /* Optional, where it is known. When the step begins that the replica has submitted last, which
     * those in flight may keep from beginning at once. */
    int64_t (*begins)(void *self, uint32_t replica);
};

#endif
