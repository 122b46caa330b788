/* A request while it is in the system: fields that policies see, and fields of the loop alone.
 *
 * Records come from a pool and are reused, block tables included, so that a run stops allocating
 * once it has seen its largest queue. A request far back in a long queue has no record yet
 * (waiting.h). For a member of the cohort (cohort.h) the counts in `pub` are brought up to date
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
    AMONG_PEERS, /* running requests: members of the cohort, in order of start; or those apart from
                    it */
    GROWING,     /* members that need a block at the same ticks, in order of start */
    FINISHING,   /* members that get their last token at the same tick, in order of start */
    N_CHAINS
};

struct live_link {
    struct live_request *prev, *next;
};

enum ranked_list { RANKED_RUNNING, RANKED_SWAPPED, RANKED_PREFILL, N_RANKED };

struct standing { /* in a ranked list, replica_ranks.c */
    int64_t key;
    uint32_t noted_at; /* 1 + its index in ranking.noted; 0: it is not noted */
    bool stands;
};

/* What a replica gives that computes a prompt for another one: the K/V alone, or also the first
 * token to the client. HANDS_REQUEST: it gives away a request that decodes. */
enum hands { HANDS_NOTHING, HANDS_PROMPT, HANDS_PROMPT_AND_TOKEN, HANDS_REQUEST };

/* Of a request that moves between replicas while it decodes (run/flight_migrate.c). */
struct live_migrations {
    int32_t n;         /* that have ended with the request elsewhere */
    int64_t moving_ns; /* of the stages of these */
    int64_t down_ns;   /* that it stood still in them */
};

/* With tiers below the device (replica/tiers.h). */
struct live_tiers {
    int32_t n_blocks[N_TIERS];     /* behind its hit, when it was last looked up */
    int32_t found_tokens[N_TIERS]; /* of its prompt, when it first started */
    int32_t n_offered;             /* leading blocks that tiers were offered */
    uint64_t identity;             /* of the last of these */
    int64_t asked_ns;              /* when its last load was asked for */
    int64_t load_ns, exposed_ns;   /* of its loads; of these, that it or its step waited */
    /* K/V that comes to the first tier while it waits */
    bool prefetches;         /* some is on its way, or in line */
    bool passed_over;        /* its turn has come before that, first at passed_ns */
    int prefetched_from;     /* a tier */
    int32_t prefetch_tokens; /* of the prompt behind what lay nearer */
    int32_t n_prefetched;    /* blocks that have come */
    int64_t passed_ns;
};

/* On its way between device and host memory, beside steps (replica_swap.c). */
enum swaps { SWAPS_NOT, SWAPS_OUT, SWAPS_IN };

/* What few requests have: live_own makes a record of it one's own. */
struct live_rare {
    struct live_migrations migrations;
    struct live_tiers tiers;
    size_t swapped_at; /* its place among the swapped ones */
    int32_t n_swap_outs;
    int32_t n_step_draft, n_step_emitted; /* speculation, ragged.h: of its last step */
    int32_t n_asked_draft; /* what the draft module has answered in the plan of that number */
    uint64_t draft_asked_in;
    int64_t resumed_ns;    /* when it first started on what it had loaded */
    uint64_t parted_in;    /* the step in which its sequences parted */
    struct kv_beams beams; /* of a sequence group, kv/group.h */
};

/* What a request has that has none of it. */
extern const struct live_rare live_no_rare;

enum { LIVE_ALIGNMENT = 16, LIVE_NEAR_PARTS = 32 };

/* What a step, and the start and the end of a request, touch stands side by side: a replica's
 * records share a first cache of 32 KiB with all else. */
struct live_request {
    struct ifl_request pub; /* first: policies hold pointers to it */

    /* The modules' parts, if they are small, in the cache line that has the pointer to them: an
     * order that reads its part of each request in a long queue then reads one line of each. */
    alignas(LIVE_ALIGNMENT) unsigned char parts[LIVE_NEAR_PARTS];

    size_t row;       /* in the trace */
    int32_t n_output; /* the true output length */
    int32_t cap_blocks;
    uint32_t *blocks; /* device blocks while RUNNING, host blocks while SWAPPED, those of its hit
                         while WAITING; in tallied pools only the names that the cache has for them,
                         or the first (kv/pool.h) */
    struct live_link links[N_CHAINS];

    /* cohort membership, see cohort.h */
    int64_t synced_tick, finish_tick;
    int64_t shares_tick; /* the first tick with a gap that it shares with the other members */
    int64_t unused_tick; /* tick of its last block, of which n_unused slots stay empty */
    int32_t n_unused;
    int32_t grow_phase; /* its blocks are full at ticks of that phase */
    bool counted;       /* grows by count, is in no grow list */
    bool in_cohort, fresh;
    bool adapted; /* it is on the device, with its adapter */
    bool ended;   /* it has had its last token, and the next plan, made ahead, still counts on it */
    bool cut;     /* its client leaves as it has n_output tokens */
    bool parted;  /* the sequences of its group, kv/group.h, have their own tails */
    bool swapped_in; /* with a prefix cache: its blocks came from the host */

    /* with two replicas, see moving.h */
    bool silent;             /* its row and its end are those of its other record */
    bool answers_on_arrival; /* with its K/V comes its first token */
    bool answered_elsewhere; /* its client has that by then */
    bool loads_before;       /* the next step waits for its K/V */
    enum hands hands_over;   /* what it gives away here; HANDS_NOTHING: it stays */
    enum swaps swaps;
    /* Of the record at the decode replica, until the prompt is done: that at the replica which
     * computes it. Else NULL. */
    const struct live_request *prompt_at;
    uint32_t handover; /* the loop's entry for it; 0: it has one replica */
    int32_t n_below;   /* tokens of K/V at another replica, that it may load; 0: none. While it
                          waits it shows as computed what will be once they have come */

    /* where several steps are in flight, see overlap.h */
    int32_t n_late;     /* steps in flight that sample a token of it */
    int32_t slot;       /* in which it decodes */
    uint64_t last_step; /* the last one that samples a token of it */

    enum ifl_status left; /* it leaves early, as aborted or timed out; IFL_FINISHED: it does not */
    int32_t stays_steps;  /* that end before it leaves; 0: it does not wait for the end of a step */
    int32_t n_lost;       /* tokens computed for it, as it left early */
    int32_t n_steps;      /* that computed tokens for it, as far as its counts in `pub` go */
    int32_t n_promised;   /* blocks that were taken in advance, for beams to keep */
    int32_t n_window_blocks; /* of layers with a window, windows.h */

    /* for the report */
    int64_t last_token_ns, max_itl_ns, first_scheduled_ns;
    int64_t sent_ns;   /* by its client; pub.arrival_ns is when it came out of the front end */
    int64_t joined_ns; /* when this replica got it: later if it was held at the gateway */
    uint64_t note;     /* the router's word of it */
    int64_t stalled_ns, stalled_prefill_ns, stalled_since_ns;
    int32_t attempt;  /* 0: its client sends it for the first time */
    uint32_t sent_to; /* 1 + the replica that it was sent to; 0: this one */

    uint64_t ticket; /* of its entry in the queue, see waiting.h; 0: it does not wait */
    uint64_t shown_plan, shown_to; /* a plan, and a bit for each of its cursors that has shown it */

    /* where it gives up K/V, kv/keep.h */
    int32_t n_unread;   /* slots that attention does not read */
    int32_t most_slots; /* that it has between steps; 0: no bound */
    int32_t
        final_slots; /* that it will have filled in the end; 0: its prompt is not computed yet */
    int32_t accept_percent; /* of guesses, ragged.h; -1: as serving.speculation says */
    int64_t fill_tick;      /* of the cohort: it has most_slots from then on */

    /* with a prefix cache */
    int32_t stream_tokens; /* leading tokens, answer included, that are its prefix group's stream */
    int32_t named_tokens;  /* leading tokens, answer included, that its hash ids stand for */
    int32_t n_hit;         /* blocks that the cache held when it was last looked up */
    int32_t n_published;   /* leading blocks that the cache lists */
    int32_t n_names;       /* entries of `blocks` that stand for these */
    int32_t cached_tokens; /* of its prompt, when it first started */
    uint64_t looked_up;    /* the cache's epoch then, 0: never */
    uint64_t identity;     /* of the last block in the hit, or published */

    int64_t stall_began_ns, stall_ended_ns; /* last stall; IFL_NEVER: none to report */
    bool stalled_on_host;                   /* the K/V was swapped out during the last stall */

    struct standing standing[N_RANKED];
    int64_t own_arrival_ns; /* while the order is shown another, see replica_ranks.c */

    const struct live_rare *rare; /* its own below, or live_no_rare */
    struct live_rare own;         /* last: what lies before it is cleared for each request */
};

/* To be written to. */
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

/* What the workload says about a request that arrives. */
struct arrival {
    size_t row;
    int32_t attempt;
    uint64_t serial;
    int64_t sent_ns, at_ns; /* by its client; when the router and the engine have it */
    int32_t n_prompt, n_output, n_predicted;
    bool cut; /* the answer goes on behind n_output tokens, for which the client does not wait */
    int32_t stream_tokens, named_tokens;
    uint64_t repeats; /* as in struct live_request */
    struct ifl_attributes said;
    const uint64_t *hash_ids; /* of its blocks, borrowed from the trace, or NULL */
    int32_t n_hash_ids, hash_id_tokens;
    uint64_t note;        /* the router's word of it */
    int32_t n_to_compute; /* of its prompt, when it was first held at the gateway; 0: it never was
                           */
    /* of a request with two replicas, as in struct live_request; zero: it has one */
    uint32_t handover;
    enum hands hands_over;
    bool answers_on_arrival, answered_elsewhere;
    int32_t n_below;
    const struct live_request *goes_on; /* its record at the replica that has computed its prompt;
                                           NULL: it begins here */
};

/* Whether some of it was computed, here or at the replica that has its prompt. */
static inline bool live_ran(const struct live_request *r)
{
    return r->first_scheduled_ns != IFL_NEVER ||
           (r->prompt_at && r->prompt_at->first_scheduled_ns != IFL_NEVER);
}

static inline int64_t arrival_after_sent_ns(const struct arrival *a, int64_t after_ns)
{
    return after_ns > IFL_LAST_NS - a->sent_ns ? IFL_NEVER : a->sent_ns + after_ns;
}

/* The time at which the request leaves, if it is still there, and as what; IFL_NEVER: never. */
static inline int64_t arrival_leaves_ns(const struct arrival *a, enum ifl_status *as)
{
    *as = a->said.abort_ns <= a->said.deadline_ns ? IFL_ABORTED : IFL_TIMED_OUT;
    return arrival_after_sent_ns(a, ifl_min(a->said.abort_ns, a->said.deadline_ns));
}

/* The time at which its deadline passes; IFL_NEVER: it has none. */
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

/* ifl_decodes and ifl_todo for the counts as they stand in the record: only for requests outside
 * the cohort, or with counts that were just brought up to date. For request_decodes any member will
 * do, because members decode at all times. */
static inline bool request_decodes(const struct ifl_request *r)
{
    return r->stale.n_computed >= r->n_prefill;
}

/* True outside the cohort, and where a member has no tick that its record does not count. For that
 * precondition (cohort.c). */
bool request_is_current(const struct ifl_request *r);
static inline int32_t request_todo(const struct ifl_request *r)
{
    ifl_assert(request_is_current(r));
    return r->stale.n_tokens + r->stale.n_pending - r->stale.n_computed - r->stale.n_now;
}

/* Slots with K/V of each sequence, as the record stands; and after n further tokens, each of which
 * takes the slot of another one once there are most_slots. */
static inline int32_t live_slots(const struct live_request *r)
{
    return r->pub.stale.n_computed - r->pub.stale.n_dropped;
}
static inline int64_t live_slots_after(const struct live_request *r, int64_t n)
{
    const int64_t n_slots = live_slots(r) + n;
    return IFL_RARE(r->most_slots > 0) && n_slots > r->most_slots ? r->most_slots : n_slots;
}

/* Prompt tokens of all sequences: servers that count prompt tokens count the prompt once for
 * each. */
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
    struct live_request *free; /* used records that are free now, linked by ON_DEVICE */
    void **chunks;
    size_t n_chunks, cap_chunks;
    size_t n_used; /* records of the chunks in use so far; the others were never written, so no
                      memory backs them */
    size_t record_bytes; /* the record, and its modules' parts behind it unless they are near */
    size_t parts_at;     /* in a record */
    size_t parts_bytes;  /* of parts behind the record */
    size_t n_live;
};

/* A copy of a record lies elsewhere, and a record of another replica is from another pool. */
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
/* Room for n records in use at once; 0 or IFL_E_NOMEM. */
int live_add_chunks(struct live_pool *pool, size_t n);
static inline int live_reserve(struct live_pool *pool, size_t n)
{
    return n <= pool->n_chunks * LIVE_CHUNK ? 0 : live_add_chunks(pool, n);
}
/* A zeroed record (its block table keeps its capacity) with nothing rare; there must be room for
 * it. */
struct live_request *live_take(struct live_pool *pool);
static inline void live_give(struct live_pool *pool, struct live_request *r)
{
    r->links[ON_DEVICE].next = pool->free;
    pool->free = r;
    pool->n_live--;
}
/* The record takes over what has happened to the request at another replica. */
void live_go_on(struct live_request *r, const struct live_request *from);
/* As an arrival at another replica, which would go on with it, at any time. */
void live_leave_for(const struct live_request *r, struct arrival *arrival);
/* Fills a zeroed record with what policies see of a request that arrives. */
void live_describe(struct live_request *r, const struct arrival *arrival);
int live_grow_blocks(struct live_request *r, int32_t n);

/* Room for n block numbers; 0 or IFL_E_NOMEM. */
static inline int live_reserve_blocks(struct live_request *r, int32_t n)
{
    return n <= r->cap_blocks ? 0 : live_grow_blocks(r, n);
}

#endif
