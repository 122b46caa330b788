/* A request while it is in the system: fields that policies see (pub), and fields that only the
 * loop and the replica see.
 *
 * Records come from a pool and are reused together with their block tables, so that a run stops
 * allocating once it has seen its longest queue. A request far back in a long queue has no record
 * yet (waiting.h). For a member of the cohort (cohort.h) the counts in `pub` are brought up to date
 * when they are read. */
#ifndef SIM_REPLICA_LIVE_REQUEST_H
#define SIM_REPLICA_LIVE_REQUEST_H

#include <stdalign.h>
#include <stddef.h>

#include "inflight/attributes.h"
#include "inflight/error.h"
#include "inflight/minmax.h"
#include "inflight/report.h"
#include "inflight/request.h"
#include "inflight/time.h"

#include "replica/kv/beams.h"
#include "replica/kv/tier.h"

/* Kinds of list that link requests. A request is in one list of a kind at most. */
enum live_chain {
    ON_DEVICE,   /* running requests, in order of start */
    AMONG_PEERS, /* running requests: the members of the cohort, in order of start; a second list
                    has those that are not in the cohort */
    GROWING,     /* members that need a block at the same ticks, in order of start */
    FINISHING,   /* members that get their last token at the same tick, in order of start */
    N_CHAINS
};

struct live_link {
    struct live_request *prev, *next;
};

enum ranked_list { RANKED_RUNNING, RANKED_SWAPPED, RANKED_PREFILL, N_RANKED };

struct standing { /* a request's place in a ranked list (replica_ranks.c) */
    int64_t key;
    uint32_t noted_at; /* 1 + index of the request in ranking.noted; 0: it is not noted */
    bool stands;
};

/* What a replica gives away of a request. HANDS_PROMPT: it computes the prompt for another replica
 * and gives away the K/V. HANDS_PROMPT_AND_TOKEN: it also gives the first token to the client.
 * HANDS_REQUEST: it gives away a request that decodes. */
enum hands { HANDS_NOTHING, HANDS_PROMPT, HANDS_PROMPT_AND_TOKEN, HANDS_REQUEST };

/* Totals over the migrations of a request, which moves between replicas while it decodes
 * (run/flight_migrate.c). */
struct live_migrations {
    int32_t n;         /* migrations that succeeded */
    int64_t moving_ns; /* time that the copies of these migrations took */
    int64_t down_ns;   /* time that the request did not decode during these migrations */
};

/* A request's K/V in tiers below the device (replica/tiers.h). */
struct live_tiers {
    int32_t n_blocks[N_TIERS];     /* blocks behind the hit on the device, by tier, at the last
                                      lookup */
    int32_t found_tokens[N_TIERS]; /* prompt tokens found there when the request first started */
    int32_t n_offered;             /* leading blocks of the request that tiers were offered */
    uint64_t identity;             /* identity of the last block offered */
    int64_t asked_ns;              /* when the last load of the request was asked for */
    int64_t load_ns, exposed_ns;   /* time of all its loads; the part of it for which the request
                                      or its step waited */
    /* prefetches: K/V that is moved to the first tier while the request waits */
    bool prefetches;         /* some K/V is being moved, or queued for it */
    bool passed_over;        /* a plan reached the request before the K/V had come, first at
                                passed_ns */
    int prefetched_from;     /* the tier that the K/V comes from */
    int32_t prefetch_tokens; /* tokens of the prompt to prefetch, behind those found nearer to the
                                device */
    int32_t n_prefetched;    /* of n_blocks of the first tier, those that have come for it */
    int64_t passed_ns;
};

/* Whether the K/V of a request is being copied between device and host memory while steps run
 * (replica_swap.c). */
enum swaps { SWAPS_NOT, SWAPS_OUT, SWAPS_IN };

/* Fields that few requests need. Requests share live_no_rare until live_own gives a request a
 * record of its own. */
struct live_rare {
    struct live_migrations migrations;
    struct live_tiers tiers;
    size_t swapped_at; /* index of the request in here.swapped */
    int32_t n_swap_outs;
    int32_t n_step_draft, n_step_emitted; /* speculation (ragged.h): guesses and tokens of its last
                                             step */
    int32_t n_asked_draft;                /* the draft module's answer in the plan with the number
                                             draft_asked_in */
    uint64_t draft_asked_in;
    int64_t resumed_ns;    /* when the request first started on K/V that it had loaded */
    uint64_t parted_in;    /* step in which the sequences of the group parted (kv/group.h) */
    struct kv_beams beams; /* block tables of a beam search (kv/beams.h) */
};

/* The zeroed record of requests without rare fields. */
extern const struct live_rare live_no_rare;

enum { LIVE_ALIGNMENT = 16, LIVE_NEAR_PARTS = 32 };

/* Fields that a step, and the start and the end of a request, touch are placed next to each other:
 * the records of a replica share a first-level cache of 32 KiB with all other data. */
struct live_request {
    struct ifl_request pub; /* first: policies hold pointers to it */

    /* The modules' parts, if they are small, in the cache line that has the pointer to them: an
     * order that reads its part of each request in a long queue then reads one line of each. */
    alignas(LIVE_ALIGNMENT) unsigned char parts[LIVE_NEAR_PARTS];

    size_t row;       /* in the trace */
    int32_t n_output; /* true output length in tokens */
    int32_t cap_blocks;
    uint32_t *blocks; /* block numbers: device blocks while RUNNING, host blocks while SWAPPED, the
                         blocks of the hit while WAITING. In tallied pools only the names of its
                         cache entries, or the first block of a contiguous run (kv/pool.h) */
    struct live_link links[N_CHAINS];

    /* cohort membership, see cohort.h */
    int64_t synced_tick, finish_tick;
    int64_t shares_tick; /* first tick whose gap the request shares with the other members */
    int64_t unused_tick; /* tick at which its last block is taken; n_unused slots of that block
                            stay empty */
    int32_t n_unused;
    int32_t grow_phase; /* its blocks are full at ticks of that phase (tick mod block_tokens) */
    bool counted;       /* the request grows by count and is in no grow list */
    bool in_cohort, fresh;
    bool adapted; /* the request is on the device and counts as a user of its adapter */
    bool ended;   /* the request has its last token, but the next plan, made ahead, still takes it
                     for running */
    bool cut;     /* the client leaves when it has n_output tokens, before the answer ends */
    bool parted;  /* the sequences of its group, kv/group.h, have their own tails */
    bool swapped_in; /* with a prefix cache: its blocks came from the host */

    /* requests with two replicas (moving.h) */
    bool silent;             /* the other record of the request is reported, not this one */
    bool answers_on_arrival; /* the first token arrives together with the K/V */
    bool answered_elsewhere; /* the other replica sends the client that token */
    bool loads_before;       /* the next step does not begin before the K/V of the request has
                                come */
    enum hands hands_over;   /* what this replica gives away of the request; HANDS_NOTHING: the
                                request stays */
    enum swaps swaps;
    /* In the record at the decode replica, until the prompt is computed: the record at the replica
     * that computes the prompt. Otherwise NULL. */
    const struct live_request *prompt_at;
    uint32_t handover; /* index of the loop's entry for the request; 0: it has one replica */
    int32_t n_below;   /* tokens of K/V at another replica or in a tier that the request may load;
                          0: none. While the request waits, its n_computed includes them */

    /* several steps in flight (overlap.h) */
    int32_t n_late;     /* steps in flight that sample a token of the request */
    int32_t slot;       /* slot in which the request decodes */
    uint64_t last_step; /* number of the last step that samples a token of the request */

    enum ifl_status left; /* how the request leaves early (aborted or timed out); IFL_FINISHED: it
                             does not */
    int32_t stays_steps;  /* ends of steps until the request leaves; 0: it waits for no end of a
                             step */
    int32_t n_lost;       /* tokens computed for the request when it left early */
    int32_t n_steps;      /* steps that computed tokens for the request, as up to date as its
                             counts in `pub` */
    int32_t n_promised;   /* blocks taken in advance, which the beams of the request keep */
    int32_t n_window_blocks; /* blocks of layers with a window (windows.h) */

    /* for the report */
    int64_t last_token_ns, max_itl_ns, first_scheduled_ns;
    int64_t sent_ns;   /* when the client sent the request; pub.arrival_ns is when the front end
                          passed it on */
    int64_t joined_ns; /* when the request joined this replica: later than pub.arrival_ns if the
                          gateway held it */
    uint64_t note;     /* value that the router module keeps for the request */
    int64_t stalled_ns, stalled_prefill_ns, stalled_since_ns;
    int32_t attempt;  /* 0: the first time that the client sends the request; n: its n-th retry */
    uint32_t sent_to; /* 1 + number of the replica that the request was sent to; 0: this one */

    uint64_t ticket; /* ticket of its entry in the queue (waiting.h); 0: it does not wait */
    uint64_t shown_plan, shown_to; /* the last plan that showed the request, and a bit for each
                                      cursor of that plan that did */

    /* requests that give up K/V (kv/keep.h) */
    int32_t n_unread;   /* slots that attention does not read */
    int32_t most_slots; /* largest number of slots between steps; 0: no bound */
    int32_t
        final_slots; /* slots filled when the request ends; 0: its prompt is not computed so far */
    int32_t accept_percent; /* acceptance rate of its guesses in percent (ragged.h); -1: that of
                               serving.speculation */
    int64_t fill_tick;      /* tick of the cohort from which on the request has most_slots */

    /* with a prefix cache */
    int32_t stream_tokens; /* leading tokens, answer included, that are tokens of its prefix
                              group's stream */
    int32_t named_tokens;  /* leading tokens, answer included, that the hash ids of the trace
                              cover */
    int32_t n_hit;         /* blocks that the cache held when it was last looked up */
    int32_t n_published;   /* leading blocks that the cache lists */
    int32_t n_names;       /* entries of `blocks` that name these published blocks */
    int32_t cached_tokens; /* prompt tokens found there when the request first started */
    uint64_t looked_up;    /* epoch of the cache at the last lookup; 0: never looked up */
    uint64_t identity;     /* identity of the last block in the hit, or of the last published
                              block */

    int64_t stall_began_ns, stall_ended_ns; /* last stall; IFL_NEVER: none to report */
    bool stalled_on_host;                   /* the K/V was swapped out during the last stall */

    struct standing standing[N_RANKED];
    int64_t own_arrival_ns; /* the true arrival time while the order module is shown another one
                               (replica_ranks.c) */

    const struct live_rare *rare; /* `own` or live_no_rare */
    struct live_rare own;         /* last member: everything before it is cleared when the record
                                     is reused */
};

/* Returns the request's own rare fields, for writing; initialises them on the first call. */
static inline struct live_rare *live_own(struct live_request *r)
{
    if (r->rare != &r->own) {
        const struct kv_beams beams = {.at = r->own.beams.at, .cap = r->own.beams.cap};
        r->own = live_no_rare;
        r->own.beams = beams;
        r->rare = &r->own;
    }
    return &r->own;
}

/* A request that arrives, as the workload describes it. */
struct arrival {
    size_t row;
    int32_t attempt;
    uint64_t serial;
    int64_t sent_ns, at_ns; /* when the client sends it; when the router and the engine receive
                               it */
    int32_t n_prompt, n_output, n_predicted;
    bool cut; /* the answer is longer than n_output tokens; the client leaves before its end */
    int32_t stream_tokens, named_tokens;
    uint64_t repeats; /* as in struct live_request */
    struct ifl_attributes said;
    const uint64_t *hash_ids; /* hash ids of its blocks, borrowed from the trace, or NULL */
    int32_t n_hash_ids, hash_id_tokens;
    uint64_t note;        /* value that the router module keeps for the request */
    int32_t n_to_compute; /* prompt tokens to compute when the gateway first held the request; 0:
                             it was never held */
    /* as in struct live_request, for a request with two replicas; zero: it has one */
    uint32_t handover;
    enum hands hands_over;
    bool answers_on_arrival, answered_elsewhere;
    int32_t n_below;
    const struct live_request *goes_on; /* its record at the replica that has computed its prompt;
                                           NULL: the request begins here */
};

/* True if some tokens of the request were computed, here or at the replica that has its prompt. */
static inline bool live_ran(const struct live_request *r)
{
    return r->first_scheduled_ns != IFL_NEVER ||
           (r->prompt_at && r->prompt_at->first_scheduled_ns != IFL_NEVER);
}

static inline int64_t arrival_after_sent_ns(const struct arrival *a, int64_t after_ns)
{
    return after_ns > IFL_LAST_NS - a->sent_ns ? IFL_NEVER : a->sent_ns + after_ns;
}

/* Returns the time at which the request leaves if it has not ended by then, or IFL_NEVER. *as is
 * the status with which it leaves. */
static inline int64_t arrival_leaves_ns(const struct arrival *a, enum ifl_status *as)
{
    *as = a->said.abort_ns <= a->said.deadline_ns ? IFL_ABORTED : IFL_TIMED_OUT;
    return arrival_after_sent_ns(a, ifl_min(a->said.abort_ns, a->said.deadline_ns));
}

/* Returns the time at which the request's deadline passes; IFL_NEVER if it has none. */
static inline int64_t arrival_expires_ns(const struct arrival *a)
{
    return arrival_after_sent_ns(a, a->said.deadline_ns);
}

static inline struct live_request *live(const struct ifl_request *r)
{
    /* Policies get const pointers into records that the loop owns and may change. */
    return (struct live_request *)(uintptr_t)r;
}

static inline uint32_t live_block(const struct live_request *r, int32_t i)
{
    return i < r->cap_blocks ? r->blocks[i] : 0;
}

/* ifl_decodes and ifl_todo for the counts as they are in the record. Call them only for requests
 * outside the cohort, or with counts that were just brought up to date. request_decodes may also be
 * called for any member of the cohort, because members always decode. */
static inline bool request_decodes(const struct ifl_request *r)
{
    return r->stale.n_computed >= r->n_prefill;
}

/* True if r is outside the cohort, or if its record counts every tick. It is the precondition of
 * request_todo (cohort.c). */
bool request_is_current(const struct ifl_request *r);
static inline int32_t request_todo(const struct ifl_request *r)
{
    ifl_assert(request_is_current(r));
    return r->stale.n_tokens + r->stale.n_pending - r->stale.n_computed - r->stale.n_now;
}

/* Slots with K/V of each sequence: now, by the counts in the record, and after n further tokens.
 * Once there are most_slots, each further token takes the slot of another one. */
static inline int32_t live_slots(const struct live_request *r)
{
    return r->pub.stale.n_computed - r->pub.stale.n_dropped;
}
static inline int64_t live_slots_after(const struct live_request *r, int64_t n)
{
    const int64_t n_slots = live_slots(r) + n;
    return IFL_RARE(r->most_slots > 0) && n_slots > r->most_slots ? r->most_slots : n_slots;
}

/* Prompt tokens, counted once for each sequence, as servers count them. */
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

/* Inserts r behind `before`, or first if that is NULL. */
static inline void live_insert(struct live_list *list, enum live_chain chain,
                               struct live_request *before, struct live_request *r)
{
    ifl_assert(list->head != r && !r->links[chain].prev && !r->links[chain].next);
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
    ifl_assert(list->n > 0 && (r->links[chain].prev || list->head == r));
    const struct live_link link = r->links[chain];
    *(link.prev ? &link.prev->links[chain].next : &list->head) = link.next;
    *(link.next ? &link.next->links[chain].prev : &list->tail) = link.prev;
    r->links[chain] = (struct live_link){NULL, NULL};
    list->n--;
}

/* ---- the pool of records ---- */

enum { LIVE_CHUNK = 32 }; /* records: about 29 KiB */

struct live_pool {
    struct live_request *free; /* records that were used before and are free now, linked by
                                  ON_DEVICE */
    void **chunks;
    size_t n_chunks, cap_chunks;
    size_t n_used;       /* records of the chunks used so far; the others were never written, so no
                            memory backs them */
    size_t record_bytes; /* bytes of a record, with the modules' parts behind it unless they fit
                            into `parts` */
    size_t parts_at;     /* offset of the modules' parts in a record */
    size_t parts_bytes;  /* bytes of the modules' parts behind the record */
    size_t n_live;
};

/* The seal identifies a record of this pool: a copy of a record has another address, and a record
 * of another replica another pool. */
static inline uintptr_t live_seal(const struct live_pool *pool, const struct ifl_request *r)
{
    return (uintptr_t)pool ^ (uintptr_t)r;
}
static inline bool live_is_of(const struct live_pool *pool, const struct ifl_request *r)
{
    return r->seal == live_seal(pool, r);
}

/* parts_bytes: size of all modules' parts of a request together (pub.parts). */
void live_pool_init(struct live_pool *pool, size_t parts_bytes);
void live_pool_finish(struct live_pool *pool);
/* Makes room for n records in use at once. Returns 0 or IFL_E_NOMEM. */
int live_add_chunks(struct live_pool *pool, size_t n);
static inline int live_reserve(struct live_pool *pool, size_t n)
{
    return n <= pool->n_chunks * LIVE_CHUNK ? 0 : live_add_chunks(pool, n);
}
/* Returns a zeroed record without rare fields, whose block table keeps its capacity. There must be
 * room for it (live_reserve). */
struct live_request *live_take(struct live_pool *pool);
static inline void live_give(struct live_pool *pool, struct live_request *r)
{
    r->links[ON_DEVICE].next = pool->free;
    pool->free = r;
    pool->n_live--;
}
/* Copies to r what has happened to the request at another replica, from its record there. */
void live_go_on(struct live_request *r, const struct live_request *from);
/* Fills an arrival for another replica that continues with r. May be called at any time. */
void live_leave_for(const struct live_request *r, struct arrival *arrival);
/* Fills a zeroed record with what policies see of a request that arrives. */
void live_describe(struct live_request *r, const struct arrival *arrival);
int live_grow_blocks(struct live_request *r, int32_t n);

/* Makes room for n block numbers. Returns 0 or IFL_E_NOMEM. */
static inline int live_reserve_blocks(struct live_request *r, int32_t n)
{
    return n <= r->cap_blocks ? 0 : live_grow_blocks(r, n);
}

#endif
