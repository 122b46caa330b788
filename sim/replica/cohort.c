#include "replica/cohort.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/minmax.h"

#include "base/array.h"

int cohort_create(struct cohort *cohort, struct kv_block block)
{
    const int32_t block_tokens = block.tokens;
    *cohort = (struct cohort){.block = block, .next_finish_tick = INT64_MAX};
    cohort->grow = calloc((size_t)block_tokens, sizeof *cohort->grow);
    cohort->n_counted = calloc((size_t)block_tokens, sizeof *cohort->n_counted);
    cohort->grows = calloc((size_t)block_tokens / 64 + 1, sizeof *cohort->grows);
    return cohort->grow && cohort->n_counted && cohort->grows ? 0 : IFL_E_NOMEM;
}

static void free_ring(struct cohort *cohort)
{
    free(cohort->due);
    free(cohort->unused_slots);
    free(cohort->n_fills);
    free(cohort->finishes);
}

void cohort_destroy(struct cohort *cohort)
{
    free(cohort->grow);
    free(cohort->n_counted);
    free(cohort->grows);
    free_ring(cohort);
    free(cohort->fresh);
    free(cohort->gaps);
    ragged_destroy(&cohort->ragged);
    *cohort = (struct cohort){0};
}

int cohort_reserve(struct cohort *cohort, size_t n)
{
    if (n <= cohort->cap)
        return 0;
    if (array_grow(&cohort->fresh, cohort->n_fresh, n, sizeof *cohort->fresh) < 0)
        return IFL_E_NOMEM;
    cohort->cap = n;
    return ragged_reserve(&cohort->ragged, n);
}

/* ---- last tokens ---- */

static bool finishes_at(const struct cohort *cohort, size_t at)
{
    return cohort->finishes[at / 64] >> at % 64 & 1;
}

static void mark_finish(struct cohort *cohort, size_t at)
{
    cohort->finishes[at / 64] |= UINT64_C(1) << at % 64;
}

/* The first marked tick from `tick` on; there must be one. */
static int64_t first_finish(const struct cohort *cohort, int64_t tick)
{
    const size_t n_words = cohort->cap_ticks / 64;
    size_t i = cohort_place(cohort, tick) / 64;
    uint64_t word = cohort->finishes[i] >> tick % 64 << tick % 64;
    tick -= tick % 64;
    for (; word == 0; tick += 64) {
        i = (i + 1) & (n_words - 1);
        word = cohort->finishes[i];
    }
    return tick + __builtin_ctzll(word);
}

/* Most ticks finish one member at most. A clear bit says that there is none and saves reading the
 * list, which would be a cache miss. */
static void finish_insert(struct cohort *cohort, struct live_request *r)
{
    const size_t place = cohort_place(cohort, r->finish_tick);
    struct live_request *before = NULL,
                        *behind = finishes_at(cohort, place) ? cohort->due[place] : NULL;
    for (; behind && behind->pub.start_serial < r->pub.start_serial;
         behind = before->links[FINISHING].next)
        before = behind;
    r->links[FINISHING] = (struct live_link){before, behind};
    if (behind)
        behind->links[FINISHING].prev = r;
    *(before ? &before->links[FINISHING].next : &cohort->due[place]) = r;
    mark_finish(cohort, place);
    if (r->finish_tick < cohort->next_finish_tick)
        cohort->next_finish_tick = r->finish_tick;
}

/* n: members left without r. */
IFL_HOT static void finish_remove(struct cohort *cohort, struct live_request *r, size_t n)
{
    const size_t at = cohort_place(cohort, r->finish_tick);
    const struct live_link link = r->links[FINISHING];
    *(link.prev ? &link.prev->links[FINISHING].next : &cohort->due[at]) = link.next;
    if (link.next)
        link.next->links[FINISHING].prev = link.prev;
    r->links[FINISHING] = (struct live_link){NULL, NULL};
    if (cohort->due[at])
        return;
    cohort->finishes[at / 64] &= ~(UINT64_C(1) << at % 64);
    if (n == 0)
        cohort->next_finish_tick = INT64_MAX;
    else if (r->finish_tick == cohort->next_finish_tick)
        cohort->next_finish_tick = first_finish(cohort, r->finish_tick);
}

static void move_due(struct cohort *to, const struct cohort *from)
{
    for (size_t i = 0; i < from->cap_ticks; i++) {
        const int64_t tick = from->tick + (int64_t)i;
        const size_t at = cohort_place(to, tick), was_at = cohort_place(from, tick);
        if (from->unused_slots[was_at] != 0)
            to->unused_slots[at] = from->unused_slots[was_at];
        if (from->n_fills)
            to->n_fills[at] = from->n_fills[was_at];
        if (!finishes_at(from, was_at))
            continue;
        to->due[at] = from->due[was_at];
        mark_finish(to, at);
    }
}

IFL_APART int cohort_widen(struct cohort *cohort, int64_t n_ticks)
{
    struct cohort wider = *cohort;
    wider.cap_ticks = cohort->cap_ticks ? cohort->cap_ticks : 64;
    while (wider.cap_ticks <= (size_t)n_ticks)
        wider.cap_ticks *= 2;
    wider.due = malloc(wider.cap_ticks * sizeof *wider.due);
    wider.unused_slots = calloc(wider.cap_ticks, sizeof *wider.unused_slots);
    wider.n_fills = cohort->bounded ? calloc(wider.cap_ticks, sizeof *wider.n_fills) : NULL;
    wider.finishes = calloc(wider.cap_ticks / 64, sizeof *wider.finishes);
    if (!wider.due || !wider.unused_slots || !wider.finishes ||
        (cohort->bounded && !wider.n_fills)) {
        free_ring(&wider);
        return IFL_E_NOMEM;
    }
    move_due(&wider, cohort);
    free_ring(cohort);
    *cohort = wider;
    return 0;
}

/* ---- growth ---- */

IFL_HOT static int32_t grow_phase(const struct cohort *cohort, const struct live_request *r)
{
    const int64_t n_slots = live_slots_after(r, cohort->tick - r->synced_tick);
    const int64_t capacity = group_capacity(&r->pub, cohort->block), n_left = capacity - n_slots;
    const bool is_enough = IFL_RARE(r->most_slots > 0) && capacity > r->most_slots;
    if (is_enough || n_left >= r->finish_tick - cohort->tick)
        return COHORT_NEVER;
    return (int32_t)kv_tail_tokens((uint32_t)cohort->phase + (uint32_t)n_left, cohort->block);
}

/* One more growing member of that phase; unmark_growth: one less. */
static void mark_growth(struct cohort *cohort, int32_t phase)
{
    cohort->grows[phase / 64] |= UINT64_C(1) << phase % 64;
    cohort->n_growing++;
}

static void unmark_growth(struct cohort *cohort, int32_t phase)
{
    if (cohort->n_counted[phase] == 0 && !cohort->grow[phase].head)
        cohort->grows[phase / 64] &= ~(UINT64_C(1) << phase % 64);
    cohort->n_growing--;
}

/* Ticks from one of that phase to the first at which a member takes blocks, 0 for that tick itself.
 * There must be a growing member. */
static size_t ticks_to_growth(const struct cohort *cohort, uint32_t phase)
{
    const uint32_t block_tokens = (uint32_t)cohort->block.tokens;
    uint64_t marks = cohort->grows[phase / 64] >> phase % 64;
    uint32_t at = phase - phase % 64;
    if (marks)
        return (size_t)__builtin_ctzll(marks);
    do {
        at = at + 64 < block_tokens ? at + 64 : 0;
        marks = cohort->grows[at / 64];
    } while (marks == 0);
    at += (uint32_t)__builtin_ctzll(marks);
    return at < phase ? at + block_tokens - phase : at - phase;
}

static void grow_insert(struct cohort *cohort, struct live_request *r)
{
    if (r->grow_phase == COHORT_NEVER)
        return;
    live_insert_by_start(&cohort->grow[r->grow_phase], GROWING, r);
    mark_growth(cohort, r->grow_phase);
}

void cohort_unlist(struct cohort *cohort, struct live_request *r)
{
    if (r->grow_phase == COHORT_NEVER)
        return;
    live_remove(&cohort->grow[r->grow_phase], GROWING, r);
    unmark_growth(cohort, r->grow_phase);
}

IFL_APART void cohort_regrow(struct cohort *cohort, struct live_request *r)
{
    ifl_assert(r->in_cohort && !r->counted);
    cohort_unlist(cohort, r);
    r->grow_phase = grow_phase(cohort, r);
    grow_insert(cohort, r);
}

/* ---- growing by count ---- */

IFL_FOR_ASSERTS static inline bool is_listed(const struct cohort *cohort,
                                             const struct live_request *r)
{
    return r->links[GROWING].prev || cohort->grow[r->grow_phase].head == r;
}

void cohort_count(struct cohort *cohort, struct live_request *r, int64_t at, int32_t n_unused)
{
    ifl_assert(r->in_cohort && !r->counted && r->grow_phase != COHORT_NEVER);
    ifl_assert(!is_listed(cohort, r));
    cohort->n_counted[r->grow_phase]++;
    mark_growth(cohort, r->grow_phase);
    r->counted = true;
    r->unused_tick = at;
    r->n_unused = n_unused;
    if (n_unused > 0)
        cohort->unused_slots[cohort_place(cohort, at)] += n_unused;
}

IFL_HOT static void stop_counting(struct cohort *cohort, struct live_request *r)
{
    const int64_t next_tick = cohort->tick + cohort->grown;
    cohort->n_counted[r->grow_phase]--;
    unmark_growth(cohort, r->grow_phase);
    r->counted = false;
    if (r->n_unused > 0 && r->unused_tick >= next_tick)
        cohort->unused_slots[cohort_place(cohort, r->unused_tick)] -= r->n_unused;
}

IFL_APART void cohort_uncount(struct cohort *cohort, struct live_request *r)
{
    ifl_assert(r->counted && r->synced_tick == cohort->tick);
    stop_counting(cohort, r);
    r->grow_phase = grow_phase(cohort, r);
    grow_insert(cohort, r);
}

/* ---- members that fill all the slots that they may have ---- */

static bool fills_up(const struct live_request *r)
{
    return r->most_slots > 0 && r->fill_tick <= r->finish_tick;
}

IFL_APART static void bound(struct cohort *cohort, struct live_request *r)
{
    r->fill_tick = cohort->tick + r->most_slots - live_slots(r);
    if (r->fill_tick <= cohort->tick) {
        cohort->n_full_seqs += r->pub.n_seqs;
    } else if (fills_up(r)) {
        cohort->n_fills[cohort_place(cohort, r->fill_tick)] += r->pub.n_seqs;
        cohort->n_filling_seqs += r->pub.n_seqs;
    }
}

IFL_APART static void unbound(struct cohort *cohort, const struct live_request *r)
{
    if (r->fill_tick <= cohort->tick) {
        cohort->n_full_seqs -= r->pub.n_seqs;
    } else if (fills_up(r)) {
        cohort->n_fills[cohort_place(cohort, r->fill_tick)] -= r->pub.n_seqs;
        cohort->n_filling_seqs -= r->pub.n_seqs;
    }
}

/* n ticks have been taken. Members filled up with the last of them at most. */
IFL_APART static void go_on_bounded(struct cohort *cohort, size_t n)
{
    cohort->context -= (int64_t)n * cohort->n_full_seqs;
    if (cohort->n_filling_seqs == 0)
        return;
    int32_t *n_fills = &cohort->n_fills[cohort_place(cohort, cohort->tick)];
    cohort->n_full_seqs += *n_fills;
    cohort->n_filling_seqs -= *n_fills;
    *n_fills = 0;
}

size_t cohort_ticks_alike(const struct cohort *cohort, size_t n)
{
    for (size_t i = 1; IFL_RARE(cohort->n_filling_seqs > 0) && i < n; i++)
        if (cohort->n_fills[cohort_place(cohort, cohort->tick + (int64_t)i)] > 0)
            return i;
    return n;
}

/* ---- members ---- */

/* r is fresh if it is a group, or if its last token did not come at last_end_ns. The first member
 * of an empty cohort sets last_end_ns. */
static void note_fresh(struct cohort *cohort, struct live_request *r)
{
    if (cohort->n == 0)
        cohort->last_end_ns = r->last_token_ns;
    r->fresh = r->last_token_ns != cohort->last_end_ns || r->pub.n_seqs > 1;
    r->shares_tick = cohort->tick + 1 + r->fresh;
    if (r->fresh)
        cohort->fresh[cohort->n_fresh++] = r;
}

IFL_APART static void add_ragged(struct cohort *cohort, struct live_request *r)
{
    r->grow_phase = COHORT_NEVER;
    live_insert_by_start(&cohort->members, AMONG_PEERS, r);
    ragged_add(&cohort->ragged, r, cohort->block);
    note_fresh(cohort, r);
    cohort->n++;
    cohort->n_seqs++;
    cohort->context += r->pub.stale.n_computed;
}

IFL_HOT void cohort_add(struct cohort *cohort, struct live_request *r, bool counts)
{
    ifl_assert(request_decodes(&r->pub) && cohort->n < cohort->cap);
    ifl_require(!r->in_cohort && r->pub.stale.n_tokens == r->pub.stale.n_computed + 1);
    r->in_cohort = true;
    r->pub.ticks = &cohort->ticks;
    r->pub.read_at = cohort->ticks.n - 1; /* not yet */
    r->synced_tick = cohort->tick;
    if (cohort_is_ragged(cohort)) {
        add_ragged(cohort, r);
        return;
    }
    r->finish_tick = cohort->tick + (r->n_output - r->pub.stale.n_out);
    live_insert_by_start(&cohort->members, AMONG_PEERS, r);
    r->grow_phase = grow_phase(cohort, r);
    if (!counts)
        grow_insert(cohort, r);
    note_fresh(cohort, r);
    finish_insert(cohort, r);
    cohort->n++;
    cohort->n_seqs += r->pub.n_seqs;
    cohort->context += (int64_t)r->pub.n_seqs * (live_slots(r) - r->n_unread);
    if (IFL_RARE(r->most_slots > 0))
        bound(cohort, r);
}

static const struct cohort *cohort_of(const struct ifl_request *r)
{
    return (const struct cohort *)((uintptr_t)r->ticks - offsetof(struct cohort, ticks));
}

bool request_is_current(const struct ifl_request *r)
{
    return !r->ticks || live(r)->synced_tick == cohort_of(r)->tick;
}

IFL_HOT void cohort_catch_up(const struct cohort *cohort, struct live_request *r)
{
    ifl_assert(r->in_cohort);
    const int32_t n = (int32_t)(cohort->tick - r->synced_tick);
    r->n_steps += n;
    if (cohort_is_ragged(cohort)) {
        ragged_catch_up(&cohort->ragged, r);
        if (n > 0)
            r->pub.stale.last_end_ns = r->last_token_ns = cohort->last_end_ns;
        r->synced_tick = cohort->tick;
        return;
    }
    const int32_t n_slots = (int32_t)live_slots_after(r, n), n_held = n_slots + cohort->grown;
    if (r->counted && n_held > r->pub.stale.n_blocks * cohort->block.tokens)
        r->pub.stale.n_blocks = kv_blocks_for(n_held, cohort->block);
    if (n == 0)
        return;
    r->pub.stale.n_tokens += n;
    r->pub.stale.n_computed += n;
    r->pub.stale.n_dropped = r->pub.stale.n_computed - n_slots;
    r->pub.stale.n_out += n;
    r->pub.stale.last_end_ns = r->last_token_ns = cohort->last_end_ns;
    r->synced_tick = cohort->tick;
}

/* The longest gap that the member shared, or -1. A binary search without a branch: the comparison
 * is unpredictable. */
static int64_t longest_shared_gap(const struct cohort *cohort, const struct live_request *r)
{
    const struct gap *at = cohort->gaps;
    for (size_t n = cohort->n_gaps, half; n > 0; n -= half) {
        half = (n + 1) / 2;
        const struct gap *const next = at + half;
        at = next[-1].tick < r->shares_tick ? next : at;
    }
    return at < cohort->gaps + cohort->n_gaps ? at->gap_ns : -1;
}

IFL_APART static void fresh_remove(struct cohort *cohort, const struct live_request *r)
{
    for (size_t i = 0; i < cohort->n_fresh; i++)
        if (cohort->fresh[i] == r) {
            cohort->n_fresh--;
            memmove(&cohort->fresh[i], &cohort->fresh[i + 1],
                    (cohort->n_fresh - i) * sizeof *cohort->fresh);
            return;
        }
}

/* r has its last gap among the members. */
static inline void end_gaps(struct cohort *cohort, struct live_request *r)
{
    if (r->fresh) {
        fresh_remove(cohort, r);
    } else {
        const int64_t gap_ns = longest_shared_gap(cohort, r);
        if (gap_ns > r->max_itl_ns)
            r->max_itl_ns = gap_ns;
    }
    r->in_cohort = r->fresh = false;
    r->pub.ticks = NULL;
    cohort->n--;
    cohort->n_seqs -= r->pub.n_seqs;
    if (cohort->n == 0)
        cohort->n_gaps = 0;
}

IFL_APART static void remove_ragged(struct cohort *cohort, struct live_request *r)
{
    ragged_remove(&cohort->ragged, r);
    live_remove(&cohort->members, AMONG_PEERS, r);
    cohort->context -= r->pub.stale.n_computed;
    end_gaps(cohort, r);
}

IFL_HOT void cohort_remove(struct cohort *cohort, struct live_request *r)
{
    ifl_require(r->in_cohort);
    cohort_sync(cohort, r);
    if (cohort_is_ragged(cohort)) {
        remove_ragged(cohort, r);
        return;
    }
    if (r->counted)
        stop_counting(cohort, r);
    else
        cohort_unlist(cohort, r);
    live_remove(&cohort->members, AMONG_PEERS, r);
    finish_remove(cohort, r, cohort->n - 1);
    cohort->context -= (int64_t)r->pub.n_seqs * (live_slots(r) - r->n_unread);
    if (IFL_RARE(r->most_slots > 0))
        unbound(cohort, r);
    end_gaps(cohort, r);
}

/* ---- ticks ---- */

/* Each member has ticked less than cap_ticks times, so that older gaps are never asked for. */
static void forget_old_gaps(struct cohort *cohort)
{
    const int64_t oldest = cohort->tick - (int64_t)cohort->cap_ticks;
    size_t n = 0;
    while (n < cohort->n_gaps && cohort->gaps[n].tick < oldest)
        n++;
    cohort->n_gaps -= n;
    if (n > 0)
        memmove(cohort->gaps, cohort->gaps + n, cohort->n_gaps * sizeof *cohort->gaps);
}

IFL_APART static int make_room_for_gap(struct cohort *cohort)
{
    forget_old_gaps(cohort);
    if (cohort->cap_gaps > 0 && cohort->n_gaps * 2 <= cohort->cap_gaps)
        return 0;
    const size_t cap = cohort->cap_gaps ? 2 * cohort->cap_gaps : 64;
    struct gap *gaps = realloc(cohort->gaps, cap * sizeof *gaps);
    if (!gaps)
        return IFL_E_NOMEM;
    cohort->gaps = gaps;
    cohort->cap_gaps = cap;
    return 0;
}

static inline int push_gap(struct cohort *cohort, int64_t tick, int64_t gap_ns)
{
    while (cohort->n_gaps > 0 && cohort->gaps[cohort->n_gaps - 1].gap_ns <= gap_ns)
        cohort->n_gaps--;
    if (IFL_RARE(cohort->n_gaps == cohort->cap_gaps && make_room_for_gap(cohort) < 0))
        return IFL_E_NOMEM;
    cohort->gaps[cohort->n_gaps++] = (struct gap){tick, gap_ns};
    return 0;
}

/* n ticks have been taken, the last of them in the phase in front of this one. */
static inline void go_on(struct cohort *cohort, size_t n, uint32_t phase)
{
    cohort->phase = (int32_t)phase;
    cohort->tick += (int64_t)n;
    cohort->ticks.n++;
    cohort->context += (int64_t)n * cohort->n_seqs;
    cohort->grown = false;
    if (IFL_RARE(cohort->bounded))
        go_on_bounded(cohort, n);
}

static inline uint32_t next_phase(const struct cohort *cohort, uint32_t phase)
{
    return phase + 1 < (uint32_t)cohort->block.tokens ? phase + 1 : 0;
}

/* The tick of *phase (its blocks are taken) and those behind it that take none, n at most in all.
 * Returns how many, and moves *phase behind them. */
static inline size_t ticks_without_blocks(const struct cohort *cohort, uint32_t *phase, size_t n)
{
    const uint32_t next = next_phase(cohort, *phase);
    if (n > 1 && cohort->n_growing > 0)
        n = ifl_min(n, 1 + ticks_to_growth(cohort, next));
    *phase = n > 1 ? kv_tail_tokens(next + (uint32_t)n - 1, cohort->block) : next;
    return n;
}

IFL_HOT size_t cohort_pass(struct cohort *cohort, size_t n, int32_t most_used,
                           struct cohort_uses *uses)
{
    ifl_assert(n > 0 && (n == 1 || cohort->n_fresh == 0));
    struct ifl_pool_use *use = uses->of;
    uint32_t phase = (uint32_t)cohort->phase;
    size_t i = ticks_without_blocks(cohort, &phase, n);
    for (; i < n && !cohort->grow[phase].head; i += ticks_without_blocks(cohort, &phase, n - i)) {
        const int32_t n_used = use->used_blocks + cohort->n_counted[phase];
        if (n_used > most_used)
            break;
        const int64_t n_unused = cohort_take_unused(cohort, cohort->tick + (int64_t)i);
        use->until = i;
        use[1] = (struct ifl_pool_use){0, n_used, use->internal_slots + n_unused};
        use++;
    }
    use->until = i;
    uses->n = (size_t)(use - uses->of) + 1;
    go_on(cohort, i, phase);
    return i;
}

IFL_HOT int cohort_tick(struct cohort *cohort, int64_t end_ns, struct tick_gaps *shared)
{
    *shared = (struct tick_gaps){end_ns - cohort->last_end_ns, cohort->n - cohort->n_fresh};
    go_on(cohort, 1, next_phase(cohort, (uint32_t)cohort->phase));
    cohort->last_end_ns = end_ns;
    for (size_t i = 0; i < cohort->n_fresh; i++)
        cohort->fresh[i]->fresh = false;
    cohort->n_fresh = 0;
    return shared->count ? push_gap(cohort, cohort->tick, shared->gap_ns) : 0;
}

int cohort_note_gaps(struct cohort *cohort, const int64_t *gap_ns, size_t n, bool lengthen,
                     int64_t end_ns)
{
    ifl_assert(cohort->n_fresh == 0 && (int64_t)n <= cohort->tick);
    const int64_t before = cohort->tick - (int64_t)n;
    cohort->last_end_ns = end_ns;
    for (size_t i = lengthen ? n : 0; i + 1 < n; i++)
        if (gap_ns[i] > gap_ns[i + 1] && push_gap(cohort, before + 1 + (int64_t)i, gap_ns[i]) < 0)
            return IFL_E_NOMEM;
    return n > 0 ? push_gap(cohort, cohort->tick, gap_ns[n - 1]) : 0;
}

struct live_request *cohort_finished(const struct cohort *cohort)
{
    const struct ragged *ragged = &cohort->ragged;
    if (cohort_is_ragged(cohort))
        return ragged->next_finished < ragged->n_finished ? ragged->finished[ragged->next_finished]
                                                          : NULL;
    return cohort->next_finish_tick == cohort->tick
               ? cohort->due[cohort_place(cohort, cohort->tick)]
               : NULL;
}

/* ---- where members speculate ---- */

int32_t cohort_n_draft(const struct live_request *r)
{
    struct cohort *cohort = (struct cohort *)(uintptr_t)cohort_of(&r->pub);
    return cohort_is_ragged(cohort) ? ragged_find(&cohort->ragged, r)->n_draft : 0;
}
