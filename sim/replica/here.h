/* The requests that are at a replica, and the lists that they are in: the queue, those on the
 * device, those in host memory. */
#ifndef SIM_REPLICA_HERE_H
#define SIM_REPLICA_HERE_H

#include "replica/cohort.h"
#include "replica/live_request.h"
#include "replica/waiting.h"

struct here {
    struct live_pool pool;
    struct waiting waiting;
    struct live_list running;      /* ON_DEVICE, in order of start */
    struct live_list apart;        /* AMONG_PEERS, running requests that are not in the cohort:
                                      mostly those in prefill */
    int32_t n_in_prefill;          /* running requests that do not decode yet */
    struct live_request **swapped; /* in no order */
    size_t n_swapped;
    int64_t n_seqs_here;         /* sequences that wait, run or are swapped out */
    int64_t n_unanswered_tokens; /* prompt tokens of the requests without a first token */
    int64_t last_arrival_ns;     /* the latest arrival at this replica so far */
    uint64_t n_starts;
    size_t cap;           /* requests that there is room for; each array that a plan fills has room
                             for twice as many */
    struct cohort cohort; /* placed behind the fields that each plan reads; the last fields of the
                             cohort are rarely read */
    uint64_t n_backs;     /* preemptions to the back of the queue */
};

/* Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for here_destroy. parts_bytes is that of
 * live_pool_init; `refresh` brings a member of the cohort up to date when a policy reads it. */
int here_create(struct here *here, struct kv_block block, size_t parts_bytes,
                void (*refresh)(const struct ifl_ticks *ticks, const struct ifl_request *r));
void here_destroy(struct here *here);
/* Call it before the first request joins. */
static inline void here_speculate(struct here *here, const struct ragged_options *options)
{
    cohort_speculate(&here->cohort, options);
}
/* Makes room for n requests. Returns 0 or IFL_E_NOMEM. */
int here_reserve(struct here *here, size_t n);

/* ---- coming and going for good ---- */

static inline void here_join(struct here *here, const struct live_request *r)
{
    here->n_seqs_here += r->pub.n_seqs;
    if (r->pub.first_token_ns == IFL_NEVER)
        here->n_unanswered_tokens += live_prompt_tokens(r);
    here->last_arrival_ns = ifl_max(here->last_arrival_ns, r->joined_ns);
}

/* r has its first token. */
static inline void here_answer(struct here *here, const struct live_request *r)
{
    ifl_assert(here->n_unanswered_tokens >= live_prompt_tokens(r));
    here->n_unanswered_tokens -= live_prompt_tokens(r);
}

static inline void here_leave(struct here *here, const struct live_request *r)
{
    ifl_assert(here->n_seqs_here >= r->pub.n_seqs);
    here->n_seqs_here -= r->pub.n_seqs;
    if (r->pub.first_token_ns == IFL_NEVER)
        here_answer(here, r);
}

/* ---- on the device ---- */

/* r runs from now on, apart from the cohort. */
static inline void here_start(struct here *here, struct live_request *r)
{
    ifl_assert(!r->in_cohort);
    r->pub.start_serial = here->n_starts++;
    live_append(&here->running, ON_DEVICE, r);
    live_append(&here->apart, AMONG_PEERS, r);
    here->n_in_prefill += !request_decodes(&r->pub);
}

/* Takes r off the lists of running requests and brings its counts up to date. */
static inline void here_stop(struct here *here, struct live_request *r)
{
    if (r->in_cohort)
        cohort_remove(&here->cohort, r);
    else
        live_remove(&here->apart, AMONG_PEERS, r);
    live_remove(&here->running, ON_DEVICE, r);
    here->n_in_prefill -= !request_decodes(&r->pub);
}

/* r was in prefill and has computed more tokens; if it decodes now it no longer counts as in
 * prefill. */
static inline void here_compute(struct here *here, const struct live_request *r)
{
    ifl_assert(here->n_in_prefill > 0);
    here->n_in_prefill -= request_decodes(&r->pub);
}

static inline void here_leave_cohort(struct here *here, struct live_request *r)
{
    cohort_remove(&here->cohort, r);
    live_append(&here->apart, AMONG_PEERS, r);
}

/* r, which runs apart, joins the cohort; for `counts` see cohort_add. */
static inline void here_join_cohort(struct here *here, struct live_request *r, bool counts)
{
    live_remove(&here->apart, AMONG_PEERS, r);
    cohort_add(&here->cohort, r, counts);
}

/* ---- off the device ---- */

void here_add_swapped(struct here *here, struct live_request *r);
void here_remove_swapped(struct here *here, struct live_request *r);

/* Returns the number of this preemption to the back of the queue, from 0. */
static inline uint64_t here_next_back(struct here *here)
{
    return here->n_backs++;
}
/* True if a preemption has ever sent a request to the back of the queue. */
static inline bool here_sent_back(const struct here *here)
{
    return here->n_backs > 0;
}

#endif
