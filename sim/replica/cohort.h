/* The cohort: running requests that decode in lockstep.
 *
 * Most steps give one token to every decoding request and do nothing else. Such a step is called a
 * tick. The time that a tick takes is proportional to what changes, not to the number of members:
 * members share one tick counter, and a member's counts are its counts at `synced_tick` plus the
 * ticks since. Six structures say what changes at a tick t:
 *
 *   grow[t mod block_tokens]  members that run out of blocks at t, in order of start, so that
 *                             blocks are handed out in the same order as if each member were
 *                             scheduled alone. A member that holds all the blocks that it will ever
 *                             need is in no list
 *   n_counted[same]           members that grow at t by one block each and are in no list: only in
 *                             tallied pools, and only members without blocks in reserve
 *   due[t mod cap_ticks]      members that get their last token at t, in order of start
 *   unused_slots[same]        slots that stay empty for good in the blocks that counted members
 *                             take at t
 *   n_fills[same]             sequences that have reached their largest number of slots after t.
 *                             From then on each new token takes the slot of another token
 *                             (kv/keep.h)
 *   fresh                     members that have not ticked yet and either got their last token at
 *                             another time than the others, or are groups. The time since the last
 *                             token of a fresh member is its own; all other members share the time
 *                             since the last tick
 *
 * The longest gap of a member is a range maximum over its ticks, answered from a stack of gaps that
 * decrease (the usual monotone stack). */
#ifndef SIM_REPLICA_COHORT_H
#define SIM_REPLICA_COHORT_H

#include "inflight/error.h"

#include "replica/kv/group.h"
#include "replica/live_request.h"
#include "replica/ragged.h"

/* grow_phase of a member that holds all the blocks that it will ever need. */
enum { COHORT_NEVER = -1 };

struct gap {
    int64_t tick, gap_ns;
};

struct cohort {
    int64_t tick;        /* ticks so far */
    int32_t phase;       /* tick mod block_tokens */
    int64_t last_end_ns; /* end of the last tick */
    size_t n;
    struct live_list members; /* AMONG_PEERS, in order of start */
    int32_t n_seqs;           /* sequences of all members */
    int64_t context;          /* K/V slots that attention reads, summed over all sequences, now */
    int32_t n_full_seqs;      /* sequences, of n_seqs, that have reached most_slots */
    int32_t n_filling_seqs;   /* sum of n_fills: sequences that have not reached most_slots yet */
    struct kv_block block;
    struct live_list *grow;    /* [block_tokens], GROWING */
    int32_t *n_counted;        /* [block_tokens] */
    size_t n_growing;          /* members in all lists of `grow` */
    uint64_t *grows;           /* [block_tokens] bits: some member grows in that phase */
    struct live_request **due; /* [cap_ticks] head of a FINISHING list for each tick: a ring, since
                                  each member has fewer ticks left. An entry is set only if its bit
                                  in `finishes` is */
    int32_t *unused_slots;     /* [cap_ticks]; an array apart from `due`, since most ticks read
                                  this entry and no finish */
    int32_t *n_fills;          /* [cap_ticks], or NULL: no member has a bound */
    bool bounded;              /* members may have a bound (most_slots) */
    uint64_t *finishes;        /* [cap_ticks] bits: some member finishes at that tick */
    size_t cap_ticks;          /* a power of two, at least 64 */
    int64_t next_finish_tick;  /* INT64_MAX: no members */
    bool grown;                /* blocks of the tick under way are taken */
    struct ifl_ticks ticks;    /* how often the members' counts have changed; `refresh` is set by
                                  the replica */
    struct live_request **fresh;
    size_t n_fresh;
    size_t cap;
    struct gap *gaps; /* ticks rise, gaps fall */
    size_t n_gaps, cap_gaps;
    struct ragged ragged; /* members that speculate; if it is on, the structures above do not say
                             what a tick changes */
};

static inline bool cohort_is_ragged(const struct cohort *cohort)
{
    return IFL_RARE(cohort->ragged.options.on);
}

int cohort_create(struct cohort *cohort, struct kv_block block);
/* Sets the function that brings a member's counts up to date when a policy reads them. */
static inline void cohort_set_refresh(struct cohort *cohort,
                                      void (*refresh)(const struct ifl_ticks *,
                                                      const struct ifl_request *))
{
    cohort->ticks.refresh = refresh;
}
/* Declares that members may have a bound, most_slots. Call it before the first member is added. */
static inline void cohort_expect_bounds(struct cohort *cohort)
{
    cohort->bounded = true;
}
void cohort_destroy(struct cohort *cohort);
/* Makes room for n members. Returns 0 or IFL_E_NOMEM. */
int cohort_reserve(struct cohort *cohort, size_t n);
/* Makes room for members that tick n_ticks times. Returns 0 or IFL_E_NOMEM. */
int cohort_widen(struct cohort *cohort, int64_t n_ticks);
static inline int cohort_reserve_ticks(struct cohort *cohort, int64_t n_ticks)
{
    return (size_t)n_ticks < cohort->cap_ticks ? 0 : cohort_widen(cohort, n_ticks);
}

/* Adds r, which decodes: its n_tokens is n_computed + 1, and its last token was sampled at
 * last_token_ns. With `counts` r is put into no grow list: the caller calls cohort_count next,
 * unless the grow_phase of r is COHORT_NEVER. */
void cohort_add(struct cohort *cohort, struct live_request *r, bool counts);
/* Takes r out, with its counts and its longest gap up to date. */
void cohort_remove(struct cohort *cohort, struct live_request *r);
/* Brings the counts of a member up to date with the ticks since the last time, and with the blocks
 * that were taken for the tick under way. */
void cohort_catch_up(const struct cohort *cohort, struct live_request *r);
static inline void cohort_sync(const struct cohort *cohort, struct live_request *r)
{
    if (r->synced_tick < cohort->tick || cohort->grown)
        cohort_catch_up(cohort, r);
}

/* A step begins: no blocks are taken for its tick yet. */
static inline void cohort_open(struct cohort *cohort)
{
    cohort->grown = false;
}
/* Call it if counts of members have changed other than by a tick: pointers that policies hold then
 * read them anew. */
static inline void cohort_stir(struct cohort *cohort)
{
    cohort->ticks.n++;
}

/* First of the members that need blocks to take the next tick, linked by GROWING. Skip those for
 * which cohort_grows is false: they hold blocks in reserve. */
static inline struct live_request *cohort_growing(const struct cohort *cohort)
{
    return cohort->grow[cohort->phase].head;
}

static inline bool cohort_grows(const struct cohort *cohort, const struct live_request *r)
{
    return live_slots_after(r, cohort->tick - r->synced_tick) >=
           group_capacity(&r->pub, cohort->block);
}

/* r grows by count from now on. It must be in no grow list and hold exactly the blocks that it
 * needs now. Its last block is taken at the tick `at` and leaves n_unused slots empty for good;
 * n_unused is 0 if no slot stays empty, or if that block is taken already. */
void cohort_count(struct cohort *cohort, struct live_request *r, int64_t at, int32_t n_unused);
/* Takes r out of its grow list, if it is in one. */
void cohort_unlist(struct cohort *cohort, struct live_request *r);
/* r stops growing by count and is put into the grow list of its phase. Its record must be up to
 * date. */
void cohort_uncount(struct cohort *cohort, struct live_request *r);
static inline size_t cohort_place(const struct cohort *cohort, int64_t tick)
{
    return (size_t)tick & (cohort->cap_ticks - 1);
}
/* Returns the slots that no token will ever fill, of the blocks that counted members take for that
 * tick, and resets the number to 0. */
static inline int32_t cohort_take_unused(struct cohort *cohort, int64_t tick)
{
    int32_t *of = &cohort->unused_slots[cohort_place(cohort, tick)];
    const int32_t n = *of;
    *of = 0;
    return n;
}
/* The counted members take their blocks for the tick under way. Returns the number of blocks. No
 * token will ever fill *n_unused_slots of their slots. */
static inline int32_t cohort_grow_counted(struct cohort *cohort, int64_t *n_unused_slots)
{
    const int32_t n = cohort->n_counted[cohort->phase];
    *n_unused_slots = n > 0 ? cohort_take_unused(cohort, cohort->tick) : 0;
    cohort->grown = true;
    cohort->ticks.n++;
    return n;
}
/* True if every member that takes blocks for the tick under way is counted. */
static inline bool cohort_grows_by_count(const struct cohort *cohort)
{
    return cohort->grow[cohort->phase].head == NULL;
}

/* Call it after a listed member got blocks. Moves the member to the list of the tick at which its
 * blocks will be full. */
void cohort_regrow(struct cohort *cohort, struct live_request *r);

struct tick_gaps { /* `count` members have waited gap_ns since their last token */
    int64_t gap_ns;
    size_t count;
};
/* Counts a tick that ended at end_ns: every member has one more token. *shared is the gap of the
 * members that are not fresh; the caller records the gaps of fresh members before the call. Returns
 * 0 or IFL_E_NOMEM. */
int cohort_tick(struct cohort *cohort, int64_t end_ns, struct tick_gaps *shared);
/* The use of the pool over several ticks, for cohort_pass. */
struct cohort_uses {
    struct ifl_pool_use *of; /* room for one entry per tick and one more; the caller fills the
                                first entry, except `until` */
    size_t n;
};
/* cohort_tick in two parts, for many ticks at once; requires n_fresh == 0, unless n is 1.
 *
 * cohort_pass advances by up to n ticks, the tick under way included, and returns their number. It
 * stops before a tick
 * - for which a listed member takes blocks, or
 * - after whose blocks more than most_used blocks would be in use.
 * *uses receives the use of the pool over these ticks. The caller sees to it that only the last
 * tick may be followed by a fill of a bounded member (cohort_ticks_alike).
 *
 * cohort_note_gaps then records the durations of the last n ticks, the last of which ended at
 * end_ns. Set `lengthen` only if each is longer than the one in front of it. Returns 0 or
 * IFL_E_NOMEM. */
size_t cohort_pass(struct cohort *cohort, size_t n, int32_t most_used, struct cohort_uses *uses);
int cohort_note_gaps(struct cohort *cohort, const int64_t *gap_ns, size_t n, bool lengthen,
                     int64_t end_ns);
/* Number of ticks before the next tick that yields, or may yield, the last token of a member. */
static inline int64_t cohort_ticks_left(const struct cohort *cohort)
{
    if (cohort_is_ragged(cohort))
        return cohort->ragged.n_may_finish == 0;
    return cohort->next_finish_tick - cohort->tick - 1;
}
/* Returns how many of the next n ticks pass until a bounded member is full (has most_slots), that
 * tick included; n if none becomes full. During these ticks the context grows by the same number of
 * slots each. */
size_t cohort_ticks_alike(const struct cohort *cohort, size_t n);
/* Returns a member that got its last token with the tick just counted, or NULL. The same member is
 * returned until it is removed. */
struct live_request *cohort_finished(const struct cohort *cohort);

/* ---- where members speculate ---- */

/* Switches speculation on. Call it before the first member is added. */
static inline void cohort_speculate(struct cohort *cohort, const struct ragged_options *options)
{
    cohort->ragged = (struct ragged){.options = *options, .n_all = -1};
}
/* Sets the number of guesses of each member for the next tick. */
static inline void cohort_set_drafts(struct cohort *cohort, int32_t n_draft)
{
    ragged_set_drafts(&cohort->ragged, n_draft);
}

/* Draws (or reads from n_accepted) how many guesses hold in the tick under way and adds them to the
 * context. Call it before cohort_tick. Returns the tokens of all members. */
static inline int64_t cohort_emit(struct cohort *cohort, const int32_t *n_accepted)
{
    const int64_t n = ragged_tick(&cohort->ragged, cohort->block, n_accepted);
    cohort->context += n - cohort->n_seqs;
    return n;
}
/* Guesses of the member r in the step being built or in flight; 0 if the cohort does not speculate.
 */
int32_t cohort_n_draft(const struct live_request *r);
static inline void cohort_set_draft(struct cohort *cohort, const struct live_request *r,
                                    int32_t n_draft)
{
    if (!cohort_is_ragged(cohort))
        return;
    cohort->ragged.n_all = -1;
    ragged_set_draft(&cohort->ragged, ragged_find(&cohort->ragged, r), n_draft);
}
static inline int32_t cohort_prepare(struct cohort *cohort)
{
    return ragged_prepare(&cohort->ragged, cohort->block);
}
/* Returns the request of member i, in order of start, and notes that ragged_find will look for it
 * next. */
static inline struct live_request *cohort_turn_to(struct cohort *cohort, size_t i)
{
    cohort->ragged.likely = i;
    return cohort->ragged.of[i].r;
}
/* Notes that the member r is entry `at` of the description of the step. Returns how many of its
 * guesses hold, as drawn; 0 if the cohort does not speculate. */
static inline int32_t cohort_note_work(const struct cohort *cohort, const struct live_request *r,
                                       int32_t at)
{
    if (!cohort_is_ragged(cohort))
        return 0;
    struct ragged_member *m = ragged_find(&cohort->ragged, r);
    m->work_at = at;
    return ragged_drawn(&cohort->ragged, m);
}
/* Call it when the number of blocks that the member r holds has changed. */
static inline void cohort_note_blocks(struct cohort *cohort, const struct live_request *r)
{
    ragged_note_blocks(&cohort->ragged, r, cohort->block);
}

#endif
