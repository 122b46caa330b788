/* A request as policies see it.
 *
 * Its progress is one number: tokens computed. A request has n_tokens (prompt + generated so far)
 * and n_computed (tokens with K/V, steps in flight included). A step computes some of the missing
 * tokens; when n_computed reaches n_tokens, one token is sampled. Prefill, chunk, decode, recompute
 * and swap are cases of that:
 *
 *     prefill            n = todo              decode     n = 1 = todo
 *     chunked prefill    n < todo              recompute  n_computed back to 0, n_tokens kept
 *     swap               n_computed kept, the blocks live in host memory
 *     prefix-cache hit   n_computed of a waiting request is what the cache holds of it now
 *
 * Counts that steps change are read through functions (ifl_n_tokens, ifl_n_computed, ifl_n_out,
 * ifl_n_blocks, ifl_last_end_ns, ifl_n_now), which are always current. The true output length is
 * not in the record: no policy can know it. */
#ifndef INFLIGHT_REQUEST_H
#define INFLIGHT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the K/V of a request is. It does not tell prefill from decode: ifl_decodes does. */
enum ifl_state {
    IFL_WAITING, /* nowhere: no blocks */
    IFL_RUNNING, /* on the device, with a seat; a step may give it no tokens */
    IFL_SWAPPED, /* in host memory */
    IFL_MOVING,  /* being copied from or to another replica or a slower tier: its blocks are taken,
                    and nothing may be scheduled */
    IFL_LOADED,  /* on the device after such a copy, without a seat until it is started */
    IFL_DONE     /* answered, rejected or gone */
};

/* Why a request leaves a replica. */
enum ifl_leave {
    IFL_LEAVE_FINISHED, /* it has its last token */
    IFL_LEAVE_REJECTED, /* a module dropped it, before or after it first ran */
    IFL_LEAVE_ABORTED,  /* its client has disconnected, or its deadline has passed */
    IFL_LEAVE_MOVED     /* another replica continues it */
};

enum ifl_kind {
    IFL_BATCHING,
    IFL_ORDER,
    IFL_ADMIT,
    IFL_PREEMPT,
    IFL_EVICT,
    IFL_ROUTE,
    IFL_SCALE,
    IFL_DRAFT,
    IFL_N_KINDS
};

struct ifl_request;

/* Counts that steps change, as of the tick `read_at`; per sequence, except n_blocks. */
struct ifl_counts {
    int32_t n_tokens, n_computed;
    int32_t n_out;       /* tokens generated; a recompute keeps them */
    int32_t n_blocks;    /* on the device, of all its sequences */
    int32_t n_now;       /* tokens given in the step being built */
    int32_t n_pending;   /* tokens that steps in flight will sample, not yet known; the plan may
                            schedule them */
    int32_t n_dropped;   /* computed tokens without K/V: it was given up */
    int64_t last_end_ns; /* end of the last step that computed tokens for it, IFL_NEVER before */
};

/* Shared by requests that decode together: the number of times their counts have changed. */
struct ifl_ticks {
    uint64_t n;
    /* Brings `stale` of the request up to date and sets its read_at to n, although the pointer is
     * to const. The replica implements it; ifl_counts calls it if read_at is not n. */
    void (*refresh)(const struct ifl_ticks *, const struct ifl_request *);
};

/* Only passed by pointer, so the struct may grow at its end. A pointer from a hook or a list stays
 * valid until on_leave. A module must pass that pointer to the step and to ifl_rerank, and return
 * it as a victim: a copy of the struct, or a request of another replica, is a breach of the
 * contract. */
struct ifl_request {
    uint64_t serial;        /* order of arrival in the run, from 0; the last tie-break everywhere */
    int64_t arrival_ns;     /* at the engine: after the front end, if there is one */
    int64_t queued_ns;      /* when it last entered waiting */
    int64_t started_ns;     /* when it last left waiting, IFL_NEVER before */
    int64_t first_token_ns; /* IFL_NEVER before */
    int64_t ttft_slo_ns, tpot_slo_ns; /* IFL_NEVER: none */
    enum ifl_state state;
    int32_t n_prompt;
    int32_t n_max_new;     /* declared output limit; the true length if the trace has none */
    int32_t n_predicted;   /* predicted output length (workload.predictor, by default the true one;
                              -1: none) */
    int32_t n_prefill;     /* n_tokens when it last left waiting */
    int32_t n_seqs;        /* sequences (answers to one prompt) that advance together */
    int32_t n_host_blocks; /* in host memory, of all its sequences */
    int32_t n_preempted;   /* times it was preempted */
    int32_t priority;      /* lower is more urgent */
    int32_t n_in_flight;   /* steps in flight that compute tokens of it */
    uint32_t client;       /* below limits->n_clients; 0 if the trace names none */
    uint32_t session;      /* conversation that it is a turn of; 0: none */
    uint32_t adapter;      /* low-rank adapter that it is computed with; 0: none */
    /* The first prefix_tokens tokens of the prompt are the beginning of prefix_group's stream,
     * which is the same for all requests of the group; group 0: none. */
    uint32_t prefix_group, prefix_tokens;
    /* The trace's ids of the prompt's blocks of hash_id_tokens tokens (the last may be partial):
     * blocks with equal ids hold equal tokens. NULL if the trace has none. */
    const uint64_t *hash_ids;
    int32_t n_hash_ids, hash_id_tokens;
    uint64_t queued_serial; /* tie-break in waiting: its serial; higher than all others if it was
                               sent to the back */
    uint64_t start_serial;  /* order of start: a new, higher number at each start */
    bool is_reserved; /* the replica that will decode it is this one, or has taken blocks for it */
    bool forks;       /* its sequences are beams: the blocks that they share change at each token */

    /* Not for modules: read through the functions below. */
    struct ifl_counts stale;
    uint64_t read_at;
    const struct ifl_ticks *ticks; /* NULL: stale is current */
    void *parts;                   /* the modules' own parts of it, see ifl_mine in policy.h */
    uintptr_t seal;                /* the replica recognises its own records by it */

    /* Requests with the same number above 0 have the same prompt: one is a retry of the other. */
    uint64_t repeats;
};

/* ---- counts that steps change, always current ---- */

/* All counts. The pointer stays valid as long as r; the numbers are current until the step changes,
 * when the function must be called again. The functions below it, up to ifl_n_pending, return the
 * member of struct ifl_counts that their name ends with, always current. */
static inline const struct ifl_counts *ifl_counts(const struct ifl_request *r)
{
    if (r->ticks && r->ticks->n != r->read_at)
        r->ticks->refresh(r->ticks, r);
    return &r->stale;
}

static inline int32_t ifl_n_tokens(const struct ifl_request *r)
{
    return ifl_counts(r)->n_tokens;
}

static inline int32_t ifl_n_computed(const struct ifl_request *r)
{
    return ifl_counts(r)->n_computed;
}

static inline int32_t ifl_n_out(const struct ifl_request *r)
{
    return ifl_counts(r)->n_out;
}

/* On the device; 0 while r waits or is swapped out. A block that its sequences share counts once; a
 * block that it shares with other requests counts in full. */
static inline int32_t ifl_n_blocks(const struct ifl_request *r)
{
    return ifl_counts(r)->n_blocks;
}

static inline int64_t ifl_last_end_ns(const struct ifl_request *r)
{
    return ifl_counts(r)->last_end_ns;
}

/* Tokens given in the step being built. */
static inline int32_t ifl_n_now(const struct ifl_request *r)
{
    return ifl_counts(r)->n_now;
}

/* Tokens that steps in flight will have sampled. */
static inline int32_t ifl_n_pending(const struct ifl_request *r)
{
    return ifl_counts(r)->n_pending;
}

/* K/V slots that the computed tokens of each sequence hold: one per token, less those given up. */
static inline int32_t ifl_n_slots(const struct ifl_request *r)
{
    return ifl_counts(r)->n_computed - ifl_counts(r)->n_dropped;
}

/* Tokens of each sequence that are still to be computed before the next one can be sampled, without
 * those given in the step being built; 0 or more. For a waiting request also without its hit. */
static inline int32_t ifl_todo(const struct ifl_request *r)
{
    const struct ifl_counts *counts = ifl_counts(r);
    return counts->n_tokens + counts->n_pending - counts->n_computed - counts->n_now;
}

/* The one test for "prefill or decode" that policies, costs and reports share. Only for requests on
 * the device or in host memory: of a waiting request it is always true. */
static inline bool ifl_decodes(const struct ifl_request *r)
{
    return ifl_counts(r)->n_computed >= r->n_prefill;
}

/* Start of its time in the waiting queue: its arrival, or the time when it was sent to the back. */
static inline int64_t ifl_queued_since_ns(const struct ifl_request *r)
{
    return r->queued_serial == r->serial ? r->arrival_ns : r->queued_ns;
}

/* True if a entered its place in the waiting queue before b. */
static inline bool ifl_queued_before(const struct ifl_request *a, const struct ifl_request *b)
{
    const int64_t a_ns = ifl_queued_since_ns(a), b_ns = ifl_queued_since_ns(b);
    return a_ns != b_ns ? a_ns < b_ns : a->queued_serial < b->queued_serial;
}

#endif
