#include "cohort.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"

int cohort_create(struct cohort *cohort, int32_t block_tokens)
{
    *cohort = (struct cohort){.block_tokens = block_tokens};
    cohort->grow = calloc((size_t)block_tokens, sizeof *cohort->grow);
    cohort->n_counted = calloc((size_t)block_tokens, sizeof *cohort->n_counted);
    return cohort->grow && cohort->n_counted ? 0 : -1;
}

void cohort_destroy(struct cohort *cohort)
{
    free(cohort->grow);
    free(cohort->n_counted);
    free(cohort->unused_at);
    free(cohort->finish);
    free(cohort->fresh);
    free(cohort->gaps);
    *cohort = (struct cohort){0};
}

static int resize(struct live_request ***array, size_t n)
{
    struct live_request **resized = realloc(*array, n * sizeof *resized);
    if (!resized)
        return -1;
    *array = resized;
    return 0;
}

int cohort_reserve(struct cohort *cohort, size_t n)
{
    if (n <= cohort->cap)
        return 0;
    if (resize(&cohort->finish, n) < 0 || resize(&cohort->fresh, n) < 0)
        return -1;
    cohort->cap = n;
    return 0;
}

int cohort_reserve_ticks(struct cohort *cohort, int64_t n_ticks)
{
    size_t cap = cohort->cap_ticks ? cohort->cap_ticks : 4096;
    while (cap <= (size_t)n_ticks)
        cap *= 2;
    if (cap == cohort->cap_ticks)
        return 0;
    int64_t *unused_at = calloc(cap, sizeof *unused_at);
    if (!unused_at)
        return -1;
    for (size_t i = 0; i < cohort->cap_ticks; i++) {
        const size_t tick = (size_t)cohort->tick + i;
        unused_at[tick & (cap - 1)] = cohort->unused_at[tick & (cohort->cap_ticks - 1)];
    }
    free(cohort->unused_at);
    cohort->unused_at = unused_at;
    cohort->cap_ticks = cap;
    return 0;
}

/* ---- the finish heap ---- */

static bool ends_before(const struct live_request *a, const struct live_request *b)
{
    return a->finish_tick != b->finish_tick ? a->finish_tick < b->finish_tick
                                            : a->start_seq < b->start_seq;
}

static void heap_put(struct cohort *cohort, size_t i, struct live_request *r)
{
    cohort->finish[i] = r;
    r->heap_at = i;
}

static void heap_up(struct cohort *cohort, size_t i, struct live_request *r)
{
    for (; i > 0 && ends_before(r, cohort->finish[(i - 1) / 2]); i = (i - 1) / 2)
        heap_put(cohort, i, cohort->finish[(i - 1) / 2]);
    heap_put(cohort, i, r);
}

static void heap_down(struct cohort *cohort, size_t i, size_t n, struct live_request *r)
{
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && ends_before(cohort->finish[c + 1], cohort->finish[c]))
            c++;
        if (!ends_before(cohort->finish[c], r))
            break;
        heap_put(cohort, i, cohort->finish[c]);
    }
    heap_put(cohort, i, r);
}

/* The heap holds n members before the removal. */
static void heap_remove(struct cohort *cohort, size_t n, const struct live_request *r)
{
    struct live_request *last = cohort->finish[n - 1];
    const size_t i = r->heap_at;
    if (last == r)
        return;
    if (i > 0 && ends_before(last, cohort->finish[(i - 1) / 2]))
        heap_up(cohort, i, last);
    else
        heap_down(cohort, i, n - 1, last);
}

/* ---- who grows when ---- */

/* In 32 bits, which divide in a third of the time; who never fills its blocks may be anywhere. */
static int32_t grow_phase(const struct cohort *cohort, const struct live_request *r)
{
    const int64_t n_computed = r->pub.n_computed + (cohort->tick - r->synced_tick);
    const int64_t n_left = group_capacity(&r->pub, cohort->block_tokens) - n_computed;
    return (int32_t)(((uint32_t)cohort->phase + (uint32_t)n_left) % (uint32_t)cohort->block_tokens);
}

static void grow_insert(struct cohort *cohort, struct live_request *r)
{
    r->grow_phase = grow_phase(cohort, r);
    live_insert_by_start(&cohort->grow[r->grow_phase], GROWING, r);
}

static void grow_remove(struct cohort *cohort, struct live_request *r)
{
    live_remove(&cohort->grow[r->grow_phase], GROWING, r);
}

void cohort_regrow(struct cohort *cohort, struct live_request *r)
{
    grow_remove(cohort, r);
    grow_insert(cohort, r);
}

/* ---- growing by count ---- */

void cohort_count(struct cohort *cohort, struct live_request *r, int64_t at, int32_t n_unused)
{
    grow_remove(cohort, r);
    cohort->n_counted[r->grow_phase]++;
    r->counted = true;
    r->unused_tick = at;
    r->n_unused = n_unused;
    if (n_unused > 0)
        *cohort_unused_at(cohort, at) += n_unused;
}

static void stop_counting(struct cohort *cohort, struct live_request *r)
{
    const int64_t next_tick = cohort->tick + cohort->grown;
    cohort->n_counted[r->grow_phase]--;
    r->counted = false;
    if (r->n_unused > 0 && r->unused_tick >= next_tick)
        *cohort_unused_at(cohort, r->unused_tick) -= r->n_unused;
}

void cohort_uncount(struct cohort *cohort, struct live_request *r)
{
    stop_counting(cohort, r);
    grow_insert(cohort, r);
}

/* ---- members ---- */

void cohort_add(struct cohort *cohort, struct live_request *r)
{
    ifl_require(!r->in_cohort && r->pub.n_tokens == r->pub.n_computed + 1);
    r->in_cohort = r->fresh = true;
    r->synced_tick = r->entered_tick = cohort->tick;
    r->finish_tick = cohort->tick + (r->n_output - r->pub.n_out);
    live_insert_by_start(&cohort->members, AMONG_PEERS, r);
    grow_insert(cohort, r);
    cohort->fresh[cohort->n_fresh++] = r;
    heap_up(cohort, cohort->n, r);
    cohort->n++;
    cohort->n_seqs += r->pub.n_seqs;
    cohort->context += (int64_t)r->pub.n_seqs * r->pub.n_computed;
}

void cohort_sync(const struct cohort *cohort, struct live_request *r)
{
    const int32_t n = (int32_t)(cohort->tick - r->synced_tick);
    if (r->counted)
        r->pub.n_blocks = (r->pub.n_computed + n + cohort->grown + cohort->block_tokens - 1) /
                          cohort->block_tokens;
    if (n == 0)
        return;
    r->pub.n_tokens += n;
    r->pub.n_computed += n;
    r->pub.n_out += n;
    r->pub.last_end_ns = r->last_token_ns = cohort->last_end_ns;
    r->synced_tick = cohort->tick;
}

/* The longest shared gap since the member's second tick; its first gap was its own. */
static int64_t longest_shared_gap(const struct cohort *cohort, const struct live_request *r)
{
    size_t low = 0, high = cohort->n_gaps;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (cohort->gaps[middle].tick >= r->entered_tick + 2)
            high = middle;
        else
            low = middle + 1;
    }
    return low < cohort->n_gaps ? cohort->gaps[low].gap_ns : -1;
}

static void fresh_remove(struct cohort *cohort, const struct live_request *r)
{
    for (size_t i = 0; i < cohort->n_fresh; i++)
        if (cohort->fresh[i] == r) {
            cohort->n_fresh--;
            memmove(&cohort->fresh[i], &cohort->fresh[i + 1],
                    (cohort->n_fresh - i) * sizeof *cohort->fresh);
            return;
        }
}

void cohort_remove(struct cohort *cohort, struct live_request *r)
{
    ifl_require(r->in_cohort);
    cohort_sync(cohort, r);
    if (r->counted)
        stop_counting(cohort, r);
    else
        grow_remove(cohort, r);
    live_remove(&cohort->members, AMONG_PEERS, r);
    heap_remove(cohort, cohort->n, r);
    if (r->fresh) {
        fresh_remove(cohort, r);
    } else {
        const int64_t gap_ns = longest_shared_gap(cohort, r);
        if (gap_ns > r->max_itl_ns)
            r->max_itl_ns = gap_ns;
    }
    r->in_cohort = r->fresh = false;
    cohort->n--;
    cohort->n_seqs -= r->pub.n_seqs;
    cohort->context -= (int64_t)r->pub.n_seqs * r->pub.n_computed;
    if (cohort->n == 0)
        cohort->n_gaps = 0;
}

/* ---- ticks ---- */

/* Gaps from before the oldest member entered can no longer be asked for. */
static void forget_old_gaps(struct cohort *cohort)
{
    int64_t oldest = cohort->tick;
    for (size_t i = 0; i < cohort->n; i++)
        if (cohort->finish[i]->entered_tick < oldest)
            oldest = cohort->finish[i]->entered_tick;
    size_t n = 0;
    while (n < cohort->n_gaps && cohort->gaps[n].tick < oldest)
        n++;
    cohort->n_gaps -= n;
    if (n > 0)
        memmove(cohort->gaps, cohort->gaps + n, cohort->n_gaps * sizeof *cohort->gaps);
}

static int push_gap(struct cohort *cohort, int64_t tick, int64_t gap_ns)
{
    while (cohort->n_gaps > 0 && cohort->gaps[cohort->n_gaps - 1].gap_ns <= gap_ns)
        cohort->n_gaps--;
    if (cohort->n_gaps == cohort->cap_gaps) {
        forget_old_gaps(cohort);
        if (cohort->n_gaps * 2 > cohort->cap_gaps || cohort->cap_gaps == 0) {
            const size_t cap = cohort->cap_gaps ? 2 * cohort->cap_gaps : 256;
            struct gap *gaps = realloc(cohort->gaps, cap * sizeof *gaps);
            if (!gaps)
                return -1;
            cohort->gaps = gaps;
            cohort->cap_gaps = cap;
        }
    }
    cohort->gaps[cohort->n_gaps++] = (struct gap){tick, gap_ns};
    return 0;
}

int cohort_tick(struct cohort *cohort, int64_t end_ns, struct tick_gaps *shared)
{
    *shared = (struct tick_gaps){end_ns - cohort->last_end_ns, cohort->n - cohort->n_fresh};
    cohort_pass(cohort);
    cohort->last_end_ns = end_ns;
    for (size_t i = 0; i < cohort->n_fresh; i++)
        cohort->fresh[i]->fresh = false;
    cohort->n_fresh = 0;
    return shared->count ? push_gap(cohort, cohort->tick, shared->gap_ns) : 0;
}

int cohort_note_gaps(struct cohort *cohort, const int64_t *gap_ns, size_t n, int64_t end_ns)
{
    const int64_t before = cohort->tick - (int64_t)n;
    for (size_t i = 0; i < n; i++)
        if (push_gap(cohort, before + 1 + (int64_t)i, gap_ns[i]) < 0)
            return -1;
    cohort->last_end_ns = end_ns;
    return 0;
}

struct live_request *cohort_finished(const struct cohort *cohort)
{
    if (cohort->n == 0 || cohort->finish[0]->finish_tick != cohort->tick)
        return NULL;
    return cohort->finish[0];
}
