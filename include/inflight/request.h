/* A request as policies see it.
 *
 * One number drives everything: tokens computed. A request knows `n_tokens` (prompt + generated so
 * far) and `n_computed` (tokens whose K/V exist, steps in flight included). A step gives it new
 * tokens; when `n_computed` catches up with `n_tokens`, one token is sampled. Prefill, chunk,
 * decode, recompute and swap are cases of that:
 *
 *     prefill            n = todo              decode     n = 1 = todo
 *     chunked prefill    n < todo              recompute  n_computed back to 0, n_tokens kept
 *     swap               n_computed kept, the blocks live in host memory
 *     prefix-cache hit   n_computed of a waiting request is what the cache holds of it, now
 *
 * The true output length is not here: no policy can peek. */
#ifndef INFLIGHT_REQUEST_H
#define INFLIGHT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Where a request's K/V is, never what phase it is in. */
enum ifl_state {
    IFL_WAITING, /* nowhere: no blocks */
    IFL_RUNNING, /* on the device, whether scheduled in this step or not */
    IFL_SWAPPED, /* in host memory */
    IFL_MOVING,  /* on its way in or out: counted as used, not schedulable; nobody is so far */
    IFL_REMOTE,  /* computed on another replica and offered to this one; nobody is so far */
    IFL_DONE     /* answered or rejected */
};

enum ifl_kind {
    IFL_BATCHING,
    IFL_ORDER,
    IFL_ADMIT,
    IFL_PREEMPT,
    IFL_EVICT,
    IFL_ROUTE,
    IFL_N_KINDS
};

/* Only ever passed by pointer, so it may grow at its end. Counts are tokens per sequence. A
 * pointer from a hook or a list stays valid until on_leave. */
struct ifl_request {
    uint64_t serial; /* order of arrival in the run; the last tie-break everywhere */
    int64_t arrival_ns;
    int64_t queued_ns;                /* when it last entered waiting */
    int64_t started_ns;               /* when it last left waiting, IFL_NEVER before */
    int64_t last_end_ns;              /* end of the last step that computed tokens for it */
    int64_t ttft_slo_ns, tpot_slo_ns; /* IFL_NEVER where none */
    enum ifl_state state;
    int32_t n_prompt;
    int32_t n_max_new;   /* declared output limit */
    int32_t n_predicted; /* predicted output length, -1 without a predictor */
    int32_t n_tokens, n_computed;
    int32_t n_prefill;               /* n_tokens when it last left waiting */
    int32_t n_out;                   /* tokens generated, kept by a recompute */
    int32_t n_seqs;                  /* sequences (answers to one prompt) that advance together */
    int32_t n_blocks, n_host_blocks; /* that it holds, of all its sequences, on either side */
    int32_t n_now;                   /* tokens given in the step being built */
    int32_t n_preempted;             /* times it lost its place */
    int32_t priority;                /* lower is more urgent */
    uint32_t client;                 /* below limits->n_clients; 0 where the trace names none */
    uint32_t session;                /* conversation that it is a turn of; 0: none */
    /* The prompt's first prefix_tokens tokens are those of prefix_group's stream, in all requests
     * of that group; 0: none. */
    uint32_t prefix_group, prefix_tokens;
    void *mine[IFL_N_KINDS]; /* request_bytes of each module, zeroed on joining a replica */
    /* What the trace calls the prompt's blocks of hash_id_tokens tokens, the last perhaps partial:
     * equal ids, equal tokens. NULL where it does not say. */
    const uint64_t *hash_ids;
    int32_t n_hash_ids, hash_id_tokens;
    /* Its place among equals in waiting: serial, or above everyone's if it went to the back. */
    uint64_t queued_serial;
    bool forks; /* its sequences are a search's beams, which share other blocks after each token */
    int64_t first_token_ns; /* IFL_NEVER before */
    uint64_t start_serial;  /* order of start: rises each time it joins those who run */
};

/* Tokens that still want computing before the next one can be sampled. */
static inline int32_t ifl_todo(const struct ifl_request *r)
{
    return r->n_tokens - r->n_computed - r->n_now;
}

/* The one test for "prefill or decode" that policies, costs and reports share. */
static inline bool ifl_decodes(const struct ifl_request *r)
{
    return r->n_computed >= r->n_prefill;
}

/* When it came to its place in the queue: it arrived, or was sent to the back. */
static inline int64_t ifl_queued_since_ns(const struct ifl_request *r)
{
    return r->queued_serial == r->serial ? r->arrival_ns : r->queued_ns;
}

/* In the order in which they came to wait. */
static inline bool ifl_queued_before(const struct ifl_request *a, const struct ifl_request *b)
{
    const int64_t a_ns = ifl_queued_since_ns(a), b_ns = ifl_queued_since_ns(b);
    return a_ns != b_ns ? a_ns < b_ns : a->queued_serial < b->queued_serial;
}

#endif
