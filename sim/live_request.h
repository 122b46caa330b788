/* A request while it is in the system: what policies see, and what only the loop knows.
 *
 * Records come from a pool and are reused, block tables included, so that a run stops allocating
 * once it has seen its largest queue. Who stands far back in a long queue needs none yet
 * (waiting.h). The counts in `pub` of a member of the cohort (cohort.h) are brought up to date when
 * somebody looks. */
#ifndef SIM_LIVE_REQUEST_H
#define SIM_LIVE_REQUEST_H

#include <stddef.h>

#include "inflight/request.h"
#include "inflight/time.h"

#include "kv/beams.h"

/* The lists that link requests; each stands in one of a kind at most. */
enum live_chain {
    ON_DEVICE,   /* who runs, in order of start */
    AMONG_PEERS, /* of them, the cohort's members, in order of start; or who is apart from it */
    GROWING,     /* members that need a block at the same ticks, in order of start */
    FINISHING,   /* members whose last token one tick yields, in order of start */
    N_CHAINS
};

struct live_link {
    struct live_request *prev, *next;
};

enum ranked_list { RANKED_RUNNING, RANKED_SWAPPED, RANKED_PREFILL, N_RANKED };

struct standing { /* in a ranked list, replica_ranks.c */
    int64_t key;
    size_t noted_at; /* 1 + its place among the noted; 0: it is not */
    bool stands;
};

struct live_request {
    struct ifl_request pub; /* first: policies hold pointers to it */

    size_t row;            /* in the trace */
    int32_t n_output;      /* the true output length */
    int32_t stream_tokens; /* leading ones, of the answer too, that are its prefix group's stream */
    int32_t named_tokens;  /* leading ones, of the answer too, that its hash ids stand for */
    int32_t cap_blocks;
    uint32_t *blocks; /* device blocks while RUNNING, host blocks while SWAPPED, those of its hit
                         while WAITING; in tallied pools only the names that the cache has for them,
                         or the first (kv/pool.h) */
    uint64_t ticket;  /* with which it waits, see waiting.h; 0: it does not */
    uint64_t shown_plan, shown_to; /* the plan whose cursors have shown it, a bit each */

    struct live_link links[N_CHAINS];
    struct standing standing[N_RANKED];
    size_t swapped_at; /* its place among the swapped ones */

    /* cohort membership, see cohort.h */
    bool in_cohort, fresh;
    bool ended; /* it has its answer, and the next plan is made as if it had not */
    int64_t synced_tick, finish_tick;
    int64_t shares_tick; /* the first one whose gap is everyone's */
    int32_t grow_phase;  /* its blocks are full at ticks of that phase */
    bool counted;        /* grows by count, not in a list */
    int64_t unused_tick; /* at which the last block is taken of which n_unused slots stay empty */
    int32_t n_unused;

    /* of a sequence group, kv/group.h */
    bool parted;        /* the sequences have their own tails */
    uint64_t parted_in; /* the step in which they parted */
    struct kv_beams beams;
    int32_t n_promised; /* blocks that were taken in advance, for beams to keep */

    /* with a prefix cache */
    int32_t n_hit;         /* blocks that the cache held when it was last looked up */
    uint64_t looked_up;    /* the cache's epoch then, 0: never */
    int32_t n_published;   /* leading blocks that the cache knows */
    int32_t n_names;       /* entries of `blocks` that stand for these */
    uint64_t identity;     /* of the last one in the hit, or published */
    bool swapped_in;       /* its blocks came from the host */
    int32_t cached_tokens; /* of its prompt, when it first started */

    /* for the report */
    int64_t first_scheduled_ns, last_token_ns, max_itl_ns;
    int64_t stalled_ns, stalled_prefill_ns, stalled_since_ns;
    int64_t stall_began_ns, stall_ended_ns; /* the last that has ended; IFL_NEVER: none to report */
    bool stalled_on_host;                   /* the last one's K/V was swapped out */
    int32_t n_swap_outs;
};

/* What the workload says about a request that arrives. */
struct arrival {
    size_t row;
    uint64_t serial;
    int64_t at_ns;
    int32_t n_prompt, n_output, n_max_new, n_samples, n_predicted, priority;
    int32_t stream_tokens, named_tokens;
    uint32_t client, session, prefix_group, prefix_tokens;
    int64_t ttft_slo_ns, tpot_slo_ns;
    const uint64_t *hash_ids; /* of its blocks, borrowed from the trace, or NULL */
    int32_t n_hash_ids, hash_id_tokens;
};

static inline struct live_request *live(const struct ifl_request *r)
{
    /* Policies get const pointers into records that the loop owns and may change. */
    return (struct live_request *)(uintptr_t)r;
}

static inline uint32_t live_block(const struct live_request *r, int32_t i)
{
    return i < r->cap_blocks ? r->blocks[i] : 0;
}

/* As ifl_decodes and ifl_todo, of the counts that stand in the record: for requests that do not
 * decode together with others, or whose counts were just brought up to date. A member of the cohort
 * decodes at any time. */
static inline bool request_decodes(const struct ifl_request *r)
{
    return r->stale.n_computed >= r->n_prefill;
}

static inline int32_t request_todo(const struct ifl_request *r)
{
    return r->stale.n_tokens + r->stale.n_pending - r->stale.n_computed - r->stale.n_now;
}

/* Of all its answers, each of which has the prompt for itself where a server counts prompts. */
static inline int64_t live_prompt_tokens(const struct live_request *r)
{
    return (int64_t)r->pub.n_prompt * r->pub.n_seqs;
}

struct live_list {
    struct live_request *head, *tail;
    size_t n;
};

#define FOR_EACH_LIVE(r, list, chain)                                                              \
    for (struct live_request *r = (list)->head; r; r = r->links[chain].next)

/* Behind `before`, or first. */
static inline void live_insert(struct live_list *list, enum live_chain chain,
                               struct live_request *before, struct live_request *r)
{
    struct live_request *behind = before ? before->links[chain].next : list->head;
    r->links[chain] = (struct live_link){before, behind};
    *(before ? &before->links[chain].next : &list->head) = r;
    *(behind ? &behind->links[chain].prev : &list->tail) = r;
    list->n++;
}

static inline void live_append(struct live_list *list, enum live_chain chain,
                               struct live_request *r)
{
    live_insert(list, chain, list->tail, r);
}

static inline void live_insert_by_start(struct live_list *list, enum live_chain chain,
                                        struct live_request *r)
{
    struct live_request *before = list->tail;
    while (before && before->pub.start_serial > r->pub.start_serial)
        before = before->links[chain].prev;
    live_insert(list, chain, before, r);
}

static inline void live_remove(struct live_list *list, enum live_chain chain,
                               struct live_request *r)
{
    const struct live_link link = r->links[chain];
    *(link.prev ? &link.prev->links[chain].next : &list->head) = link.next;
    *(link.next ? &link.next->links[chain].prev : &list->tail) = link.prev;
    r->links[chain] = (struct live_link){NULL, NULL};
    list->n--;
}

/* ---- the pool of records ---- */

enum { LIVE_CHUNK = 1024 }; /* records */

struct live_pool {
    struct live_request *free; /* of those that have been used; linked as if they ran */
    void **chunks;
    size_t n_chunks, cap_chunks;
    size_t n_used;       /* of all chunks' records; no memory stands behind the others yet */
    size_t record_bytes; /* the record and its modules' parts behind it */
    size_t n_live;
};

/* parts_bytes: what all modules together hang on a request, pub.parts. */
void live_pool_init(struct live_pool *pool, size_t parts_bytes);
void live_pool_finish(struct live_pool *pool);
/* Room for n records in use at once; 0, or -1 without memory. */
int live_add_chunks(struct live_pool *pool, size_t n);
static inline int live_reserve(struct live_pool *pool, size_t n)
{
    return n <= pool->n_chunks * LIVE_CHUNK ? 0 : live_add_chunks(pool, n);
}
/* A zeroed record (its block table keeps its capacity); there must be room for it. */
struct live_request *live_take(struct live_pool *pool);
static inline void live_give(struct live_pool *pool, struct live_request *r)
{
    r->links[ON_DEVICE].next = pool->free;
    pool->free = r;
    pool->n_live--;
}
/* What policies see of a request that arrives, in a zeroed record. */
void live_describe(struct live_request *r, const struct arrival *arrival);
int live_grow_blocks(struct live_request *r, int32_t n);

/* Room for n block numbers; 0, or -1 without memory. */
static inline int live_reserve_blocks(struct live_request *r, int32_t n)
{
    return n <= r->cap_blocks ? 0 : live_grow_blocks(r, n);
}

#endif
