/* The KV pool, the timer queue, the waiting queue and the cohort against plain models. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "base/event_heap.h"
#include "replica/cohort.h"
#include "replica/kv/pool.h"
#include "replica/waiting.h"

/* The textbook walk-through of a block manager: 20 blocks of 4 tokens, the last one first. A has 5
 * tokens, B one. */
Test(kv_pool, walk_through)
{
    struct kv_pool pool;
    uint32_t a[2], b[1];
    cr_assert_eq(kv_pool_create(&pool, 20, KV_PAGED, NULL), 0);
    cr_assert_eq(kv_pool_open(&pool), 0);
    kv_take(&pool, kv_blocks_for(5, kv_block_of(4)), a);
    kv_take(&pool, kv_blocks_for(1, kv_block_of(4)), b);
    static const uint32_t slots[5][2] = {{19, 0}, {19, 1}, {19, 2}, {19, 3}, {18, 0}};
    for (uint32_t token = 0; token < 5; token++) {
        cr_assert_eq(a[token / 4], slots[token][0]);
        cr_assert_eq(token % 4, slots[token][1]);
    }
    cr_assert_eq(b[0], 17);
    kv_release(&pool, 2, a);
    cr_assert_eq(pool.n_free, 19);
    kv_pool_destroy(&pool);
}

Test(kv_pool, freed_last_is_used_first)
{
    struct kv_pool pool;
    uint32_t a[3], b[3];
    cr_assert_eq(kv_pool_create(&pool, 8, KV_PAGED, NULL), 0);
    cr_assert_eq(kv_pool_open(&pool), 0);
    kv_take(&pool, 3, a); /* 7 6 5 */
    kv_release(&pool, 3, a);
    kv_take(&pool, 3, b);
    cr_assert(b[0] == 5 && b[1] == 6 && b[2] == 7);
    kv_pool_destroy(&pool);
}

Test(kv_pool, a_shared_block_is_free_when_its_last_owner_leaves)
{
    struct kv_pool pool;
    uint32_t block;
    cr_assert_eq(kv_pool_create(&pool, 2, KV_PAGED, NULL), 0);
    cr_assert_eq(kv_pool_open(&pool), 0);
    kv_take(&pool, 1, &block);
    kv_share(&pool, block);
    kv_release(&pool, 1, &block);
    cr_assert_eq(pool.n_free, 1);
    kv_release(&pool, 1, &block);
    cr_assert_eq(pool.n_free, 2);
    kv_pool_destroy(&pool);
}

/* ---- the buddy allocator against a map of its blocks ---- */

enum { MAX_BUDDY_BLOCKS = 200, MAX_RUNS = 64 };

struct run {
    int32_t first, n;
};

/* Free buddies are merged at once, so an allocation succeeds if an aligned run is free. */
static bool aligned_run_is_free(const bool *taken, int32_t n_blocks, int32_t size)
{
    for (int32_t first = 0; first + size <= n_blocks; first += size) {
        int32_t i = 0;
        while (i < size && !taken[first + i])
            i++;
        if (i == size)
            return true;
    }
    return false;
}

static struct run take_run(struct kv_pool *pool, bool *taken, int32_t n)
{
    uint32_t blocks[MAX_BUDDY_BLOCKS + 1];
    const int32_t size = (int32_t)kv_buddy_rounded(n), n_numbers = kv_numbers(pool, n);
    blocks[n_numbers] = UINT32_MAX;
    kv_take(pool, n, blocks);
    cr_assert(n_numbers == (pool->tallied ? 1 : n) && blocks[n_numbers] == UINT32_MAX);
    cr_assert(size >= n && size < 2 * n && blocks[0] % (uint32_t)size == 0);
    for (int32_t i = 0; i < size; i++) {
        cr_assert(!taken[blocks[0] + (uint32_t)i], "a block is given out twice");
        taken[blocks[0] + (uint32_t)i] = true;
    }
    for (int32_t i = 0; i < n && !pool->tallied; i++)
        cr_assert_eq(blocks[i], blocks[0] + (uint32_t)i);
    return (struct run){(int32_t)blocks[0], n};
}

static void give_run(struct kv_pool *pool, bool *taken, struct run run)
{
    uint32_t blocks[MAX_BUDDY_BLOCKS];
    for (int32_t i = 0; i < run.n; i++)
        blocks[i] = (uint32_t)(run.first + i);
    for (int32_t i = 0; i < (int32_t)kv_buddy_rounded(run.n); i++)
        taken[run.first + i] = false;
    kv_release(pool, run.n, blocks);
}

static int32_t count_taken(const bool *taken, int32_t n_blocks)
{
    int32_t n = 0;
    for (int32_t i = 0; i < n_blocks; i++)
        n += taken[i];
    return n;
}

static void churn(int32_t n_blocks, uint64_t seed, bool tallied)
{
    bool taken[MAX_BUDDY_BLOCKS] = {false};
    struct run runs[MAX_RUNS];
    struct kv_pool pool;
    size_t n_runs = 0;
    cr_assert_eq(kv_pool_create(&pool, n_blocks, KV_BUDDY, NULL), 0);
    cr_assert_eq(kv_pool_open(&pool), 0);
    if (tallied)
        kv_pool_tally(&pool);
    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t draw = ifl_draw(seed, IFL_DRAW_POLICY, i, 0);
        const int32_t n = 1 + (int32_t)((draw >> 8) % (uint64_t)(1 + n_blocks / 4));
        const int32_t size = (int32_t)kv_buddy_rounded(n);
        cr_assert_eq(kv_fits(&pool, n), aligned_run_is_free(taken, n_blocks, size));
        if (draw % 3 > 0 && n_runs < MAX_RUNS && kv_fits(&pool, n)) {
            runs[n_runs++] = take_run(&pool, taken, n);
        } else if (n_runs > 0) {
            const size_t which = (draw >> 32) % n_runs;
            give_run(&pool, taken, runs[which]);
            runs[which] = runs[--n_runs];
        }
        cr_assert_eq(kv_used(&pool), count_taken(taken, n_blocks));
    }
    while (n_runs > 0)
        give_run(&pool, taken, runs[--n_runs]);
    cr_assert(kv_used(&pool) == 0 && kv_slack(&pool) == 0);
    kv_pool_destroy(&pool);
}

Test(buddy, keeps_a_map_of_its_blocks)
{
    for (uint64_t seed = 0; seed < 200; seed++)
        churn(1 + (int32_t)(ifl_draw(3, IFL_DRAW_POLICY, seed, 0) % MAX_BUDDY_BLOCKS), seed,
              seed % 2 == 1);
}

/* Near multiples of the block size a slightly wrong quotient is visible. */
static void check_block(int32_t tokens, uint32_t n)
{
    const struct kv_block block = kv_block_of(tokens);
    const uint32_t d = (uint32_t)tokens, multiple = n / d * d;
    const uint32_t from = multiple > 2 ? multiple - 2 : 0;
    for (uint32_t i = from; i - from < 5 && i >= from; i++) {
        cr_assert_eq(kv_full_blocks(i, block), i / d, "%u of %u", i, d);
        cr_assert_eq(kv_tail_tokens(i, block), i % d, "%u of %u", i, d);
    }
}

Test(block, divides_exactly)
{
    const int32_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 641, 4096, 65535, 1 << 30, INT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t d = (uint32_t)sizes[i];
        check_block(sizes[i], 5 * d < d ? d : 5 * d);
        check_block(sizes[i], INT32_MAX);
        check_block(sizes[i], UINT32_MAX - 3);
    }
    for (uint64_t i = 0; i < 100000; i++)
        check_block(1 + (int32_t)(ifl_draw(1, IFL_DRAW_POLICY, i, 0) % INT32_MAX),
                    (uint32_t)ifl_draw(1, IFL_DRAW_POLICY, i, 1));
}

/* Equal times are popped in the order of their ranks, in whatever order they were pushed. */
Test(event_heap, sorts_by_time_and_rank)
{
    enum { N = 5000 };
    struct event_heap heap = {0};
    for (uint64_t i = 0; i < N; i++)
        cr_assert_eq(
            event_push(&heap, (int64_t)(ifl_draw(1, IFL_DRAW_POLICY, i, 0) % 500), i * 2999 % N, i),
            0);
    struct event last = event_pop(&heap);
    for (size_t i = 1; i < N; i++) {
        const struct event event = event_pop(&heap);
        cr_assert(event.at_ns > last.at_ns ||
                  (event.at_ns == last.at_ns && event.rank > last.rank));
        last = event;
    }
    cr_assert_eq(event_next_ns(&heap), IFL_NEVER);
    event_heap_destroy(&heap);
}

/* ---- the waiting queue against a plain array ---- */

enum { N_WAITERS = 200, N_ROUNDS = 4000 };

struct model { /* front first, then by (key, serial); arrivals are all alike */
    struct live_request *front[N_WAITERS], *ranked[N_WAITERS];
    int64_t key[N_WAITERS];
    size_t n_front, n_ranked;
};

static void model_add(struct model *m, struct live_request *r, int64_t key)
{
    size_t i = m->n_ranked++;
    for (; i > 0 && (m->key[i - 1] > key ||
                     (m->key[i - 1] == key && m->ranked[i - 1]->pub.serial > r->pub.serial));
         i--) {
        m->ranked[i] = m->ranked[i - 1];
        m->key[i] = m->key[i - 1];
    }
    m->ranked[i] = r;
    m->key[i] = key;
}

static struct live_request *model_at(const struct model *m, size_t i)
{
    return i < m->n_front ? m->front[m->n_front - 1 - i] : m->ranked[i - m->n_front];
}

static void model_remove(struct model *m, size_t i)
{
    if (i < m->n_front) {
        for (size_t k = m->n_front - 1 - i; k + 1 < m->n_front; k++)
            m->front[k] = m->front[k + 1];
        m->n_front--;
        return;
    }
    for (size_t k = i - m->n_front; k + 1 < m->n_ranked; k++) {
        m->ranked[k] = m->ranked[k + 1];
        m->key[k] = m->key[k + 1];
    }
    m->n_ranked--;
}

/* Walks part of the queue and removes every third request, as a plan does. */
static size_t walk(struct waiting *waiting, struct model *m, size_t n_steps,
                   struct live_request **out)
{
    uint64_t at[2] = {0, 0};
    size_t n_removed = 0;
    for (size_t i = 0; i < n_steps; i++) {
        struct live_request *r = waiting_next(waiting, at);
        const size_t place = i - n_removed;
        if (place >= m->n_front + m->n_ranked) {
            cr_assert_null(r);
            break;
        }
        cr_assert_eq(r, model_at(m, place));
        if (i % 3 == 0) {
            waiting_leave(waiting, r);
            model_remove(m, place);
            out[n_removed++] = r;
        }
    }
    waiting_tidy(waiting);
    return n_removed;
}

/* Keys in and out of order: in some rounds all are random, in others only a few. */
static int64_t draw_key(uint64_t round, uint64_t k)
{
    const uint64_t draw = ifl_draw(3, IFL_DRAW_POLICY, round, k);
    return round / 16 % 2 == 0 || draw >> 8 & 3 ? (int64_t)(draw % 20) : (int64_t)(round % 16 + 20);
}

struct new_ranks {
    struct model *model;
    uint64_t round;
};

/* Most keys change a little, a few far; each third round all change far, each fifth hardly any. */
static void rank_anew(void *context, const struct ifl_request *const *of, size_t n, int64_t *key)
{
    const struct new_ranks *ranks = context;
    const struct model old = *ranks->model;
    cr_assert_eq(n, old.n_ranked);
    ranks->model->n_ranked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct live_request *r = live(of[i]);
        const uint64_t draw = ifl_draw(4, IFL_DRAW_POLICY, ranks->round, r->pub.serial);
        const int64_t bits = (int64_t)(draw >> 8);
        size_t at = 0;
        while (old.ranked[at] != r)
            at++;
        const bool quiet = ranks->round % 5 == 0 && draw >> 20 & 15;
        const bool far = draw % 8 == 0 || ranks->round % 3 == 0;
        key[i] = quiet ? old.key[at] : far ? bits % 40 : old.key[at] + (bits & 1);
        model_add(ranks->model, old.ranked[at], key[i]);
    }
}

Test(waiting, agrees_with_a_plain_array)
{
    static struct live_request all[N_WAITERS], *idle[N_WAITERS];
    struct waiting waiting = {0};
    struct model m = {.n_front = 0};
    size_t n_idle = N_WAITERS;
    uint64_t n = 0;
    cr_assert_eq(waiting_reserve(&waiting, N_WAITERS), 0);
    for (size_t i = 0; i < N_WAITERS; i++) {
        all[i].pub.serial = all[i].pub.queued_serial = i;
        idle[i] = &all[i];
    }
    for (size_t round = 0; round < N_ROUNDS; round++) {
        const uint64_t draw = ifl_draw(2, IFL_DRAW_POLICY, round, n++);
        for (size_t k = draw % 5; k > 0 && n_idle > 0; k--) {
            struct live_request *r = idle[--n_idle];
            const int64_t key = draw_key(round, k);
            if (key == 7) {
                waiting_push_front(&waiting, r);
                m.front[m.n_front++] = r;
            } else {
                waiting_push(&waiting, r, key, 0);
                model_add(&m, r, key);
            }
        }
        if (draw >> 16 & 1 && m.n_ranked > 0) {
            const size_t i = (draw >> 17) % m.n_ranked;
            struct live_request *r = m.ranked[i];
            const int64_t key = (int64_t)(draw >> 40) % 20;
            model_remove(&m, m.n_front + i);
            model_add(&m, r, key);
            waiting_rerank(&waiting, r, key, 0);
        }
        if ((draw >> 50 & 63) < (round / 512 % 2 ? 32 : 1))
            waiting_rekey(&waiting, rank_anew, &(struct new_ranks){&m, round});
        const size_t n_steps = draw >> 60 == 0 ? N_WAITERS : draw >> 8 & 7;
        n_idle += walk(&waiting, &m, n_steps, idle + n_idle);
        cr_assert_eq(waiting.n, m.n_front + m.n_ranked);
    }
    waiting_destroy(&waiting);
}

/* A plan that cannot start the preempted request, for lack of blocks, must come to those that are
 * LOADED, which have theirs: else these hold what it waits for. */
Test(waiting, shows_loaded_requests_before_preempted_ones)
{
    enum { RANKED, PREEMPTED, LOADED, PREEMPTED_LATER, LOADED_LATER, N };
    static const int shown[] = {LOADED, LOADED_LATER, PREEMPTED_LATER, PREEMPTED, RANKED};
    struct live_request r[N] = {0};
    struct waiting waiting = {0};
    uint64_t at[2] = {0, 0};
    cr_assert_eq(waiting_reserve(&waiting, N), 0);
    r[LOADED].pub.state = r[LOADED_LATER].pub.state = IFL_LOADED;
    waiting_push(&waiting, &r[RANKED], 0, 0);
    waiting_push_front(&waiting, &r[PREEMPTED]);
    waiting_push_loaded(&waiting, &r[LOADED]);
    waiting_push_front(&waiting, &r[PREEMPTED_LATER]);
    waiting_push_loaded(&waiting, &r[LOADED_LATER]);
    for (size_t i = 0; i < N; i++)
        cr_expect_eq(waiting_next(&waiting, at) - r, shown[i], "%zu", i);
    cr_expect_null(waiting_next(&waiting, at));
    waiting_destroy(&waiting);
}

/* As where each arrival is compared with all that wait, and the worst is shed, within one step. */
Test(waiting, has_room_for_any_number_between_two_plans)
{
    enum { HELD = 4, N = 1000 };
    static struct live_request r[HELD];
    struct waiting waiting = {0};
    cr_assert_eq(waiting_reserve(&waiting, HELD), 0);
    for (size_t i = 0; i < N; i++) {
        uint64_t at[2] = {0, 0};
        waiting_push(&waiting, &r[i % HELD], -(int64_t)i, 0);
        for (size_t k = 0; k <= i && k < HELD; k++)
            cr_assert_eq(waiting_next(&waiting, at), &r[(i - k) % HELD]);
        cr_assert_leq(waiting.near.tail, 3 * waiting.cap);
        if (i >= HELD - 1)
            waiting_leave(&waiting, &r[(i + 1) % HELD]);
    }
    waiting_destroy(&waiting);
}

/* ---- waiting requests without a record ---- */

enum { N_ARRIVALS = 2000 };

/* Queues an arrival as a replica does, before any walk. */
static void come(struct waiting *waiting, const struct arrival *arrival, int64_t key)
{
    struct live_request *r = live_take(waiting->pool);
    live_describe(r, arrival);
    if (waiting_line_up(waiting, arrival, key))
        live_give(waiting->pool, r);
    else
        waiting_push(waiting, r, key, arrival->at_ns);
}

/* The queue grows to half of all arrivals; one in eight arrives out of order. The first request
 * leaves after every second arrival, as in a plan that walks a prefix. At the end only requests
 * that were walked or arrived out of order have a record. */
Test(waiting, far_back_needs_no_record)
{
    static int64_t key[N_ARRIVALS];
    static bool left[N_ARRIVALS];
    struct live_pool pool;
    struct waiting waiting = {.pool = &pool};
    size_t n_odd = 0;
    live_pool_init(&pool, 0);
    cr_assert_eq(live_reserve(&pool, N_ARRIVALS), 0);
    cr_assert_eq(waiting_reserve(&waiting, N_ARRIVALS), 0);
    for (size_t i = 0; i < N_ARRIVALS; i++) {
        const uint64_t draw = ifl_draw(5, IFL_DRAW_POLICY, i, 0);
        const struct arrival arrival = {.row = i, .serial = i, .n_prompt = 3, .n_output = 1};
        key[i] = draw % 8 == 0 ? (int64_t)(i - i / 8 % 100) : (int64_t)i;
        n_odd += draw % 8 == 0;
        come(&waiting, &arrival, key[i]);
        cr_assert_eq(waiting.n_tokens, 3 * (int64_t)waiting.n);
        if (i % 2 == 0)
            continue;
        size_t first = N_ARRIVALS;
        for (size_t k = i + 1; k-- > 0;)
            if (!left[k] && (first == N_ARRIVALS || key[k] <= key[first]))
                first = k;
        uint64_t at[2] = {0, 0};
        struct live_request *r = waiting_next(&waiting, at);
        cr_assert_eq(r->row, first);
        cr_assert(r->pub.n_prompt == 3 && r->n_output == 1);
        left[first] = true;
        waiting_leave(&waiting, r);
        live_give(&pool, r);
        waiting_tidy(&waiting);
    }
    cr_assert_eq(waiting.n, N_ARRIVALS / 2);
    cr_assert_eq(pool.n_live + waiting_undescribed(&waiting), waiting.n);
    cr_assert_leq(pool.n_live, n_odd);
    waiting_destroy(&waiting);
    live_pool_finish(&pool);
}

/* ---- finish ticks against a plain search ---- */

enum { N_MEMBERS = 30, N_TICKS = 60000 };

/* The request that finishes first; of several in the same tick the one that started first. */
static struct live_request *first_to_finish(struct live_request *all)
{
    struct live_request *first = NULL;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        struct live_request *r = &all[i];
        if (r->in_cohort && (!first || r->finish_tick < first->finish_tick ||
                             (r->finish_tick == first->finish_tick &&
                              r->pub.start_serial < first->pub.start_serial)))
            first = r;
    }
    return first;
}

/* Mostly short answers, and sometimes one beyond the capacity of ticks, which must then grow. */
static int32_t draw_output(uint64_t draw)
{
    const int32_t longest = draw % 500 == 0 ? 9000 << draw / 500 % 2 : 40;
    return 2 + (int32_t)((draw >> 20) % (uint64_t)longest);
}

static void start(struct cohort *cohort, struct live_request *r, uint64_t start_serial,
                  uint64_t draw)
{
    *r = (struct live_request){
        .pub = {.n_prompt = 3, .n_seqs = 1, .stale = {.n_tokens = 4, .n_computed = 3}}};
    r->pub.stale.n_out = r->pub.stale.n_blocks = 1;
    r->n_output = draw_output(draw);
    r->pub.start_serial = start_serial;
    cr_assert_eq(cohort_reserve_ticks(cohort, r->n_output), 0);
    cohort_add(cohort, r, false);
}

Test(cohort, finishes_agree_with_a_plain_search)
{
    static struct live_request all[N_MEMBERS];
    struct cohort cohort;
    struct tick_gaps gaps;
    size_t n_finished = 0;
    cr_assert_eq(cohort_create(&cohort, kv_block_of(16)), 0);
    cr_assert_eq(cohort_reserve(&cohort, N_MEMBERS), 0);
    for (uint64_t i = 0; i < N_TICKS; i++) {
        const uint64_t draw = ifl_draw(4, IFL_DRAW_POLICY, i, 0);
        struct live_request *r = &all[(draw >> 50) % N_MEMBERS], *first;
        if (r->in_cohort && draw % 16 == 0)
            cohort_remove(&cohort, r);
        else if (!r->in_cohort)
            start(&cohort, r, i, draw);
        first = first_to_finish(all);
        cr_assert_eq(cohort_ticks_left(&cohort),
                     first ? first->finish_tick - cohort.tick - 1 : INT64_MAX - cohort.tick - 1);
        cr_assert_eq(cohort_tick(&cohort, (int64_t)i, &gaps), 0);
        while ((r = cohort_finished(&cohort))) {
            cr_assert_eq(r, first_to_finish(all));
            cr_assert_eq(r->pub.stale.n_out + cohort.tick - r->synced_tick, r->n_output);
            cohort_remove(&cohort, r);
            n_finished++;
        }
        first = first_to_finish(all);
        cr_assert(!first || first->finish_tick > cohort.tick);
    }
    cr_expect_gt(n_finished, 1000);
    cr_expect_gt(cohort.cap_ticks, 8192);
    cohort_destroy(&cohort);
}

/* ---- ticks without new blocks, against a plain search ---- */

/* Ticks until the first at which any request fills a block; at most n. */
static size_t passes(const struct cohort *cohort, const struct live_request *all, size_t n_all,
                     size_t n)
{
    const int32_t block_tokens = cohort->block.tokens;
    for (size_t t = 1; t < n; t++)
        for (size_t i = 0; i < n_all; i++)
            if ((all[i].pub.stale.n_computed + cohort->tick + (int64_t)t) % block_tokens == 0)
                return t;
    return n;
}

static void pass_and_compare(int32_t block_tokens)
{
    enum { N_LONG = 3, N_PASSES = 500 };
    struct live_request all[N_LONG] = {0};
    struct ifl_pool_use use[150] = {{0}};
    struct cohort_uses uses = {.of = use};
    struct cohort cohort;
    size_t n_short = 0;
    cr_assert_eq(cohort_create(&cohort, kv_block_of(block_tokens)), 0);
    cr_assert_eq(cohort_reserve(&cohort, N_LONG), 0);
    for (size_t n_all = 0; n_all <= N_LONG; n_all++) {
        for (uint64_t i = 0; i < N_PASSES; i++) {
            const size_t n = 1 + ifl_draw(5, IFL_DRAW_POLICY, n_all, i) % 150;
            const size_t expected = passes(&cohort, all, n_all, n);
            cr_assert_eq(cohort_pass(&cohort, n, 0, &uses), expected, "block of %d", block_tokens);
            n_short += expected < n;
        }
        if (n_all == N_LONG)
            break;
        struct live_request *r = &all[n_all];
        r->pub = (struct ifl_request){.n_seqs = 1, .stale.n_computed = 7 + 40 * (int32_t)n_all};
        r->pub.stale.n_tokens = r->pub.n_prompt = r->pub.stale.n_computed + 1;
        r->pub.stale.n_blocks = (r->pub.stale.n_computed + block_tokens - 1) / block_tokens;
        r->n_output = 1 << 19;
        cr_assert_eq(cohort_reserve_ticks(&cohort, r->n_output), 0);
        cohort_add(&cohort, r, false);
        r->pub.stale.n_computed -= (int32_t)cohort.tick; /* as of tick 0, for the search */
    }
    cr_expect_gt(n_short, N_PASSES);
    cohort_destroy(&cohort);
}

Test(cohort, passes_stop_where_a_sequence_grows)
{
    const int32_t block_tokens[] = {1, 16, 64, 100, 128, 200};
    for (size_t i = 0; i < sizeof block_tokens / sizeof *block_tokens; i++)
        pass_and_compare(block_tokens[i]);
}

/* ---- the table of a prefix cache ---- */

/* Of equal identities the first is found, however many entries have made the table wider since. */
Test(kv_cache, a_wider_table_finds_the_same)
{
    enum { N = 3000, ALIKE = 3 };
    const struct ifl_view view = {.now_ns = 0};
    const struct kv_cache_options options = {.kind = PREFIX_CACHE_HASH, .view = &view};
    struct kv_cache cache;
    kv_cache_create(&cache, &options);
    cr_expect_eq(kv_cache_find(&cache, 7), -1, "nothing is found before there is memory");
    cr_assert_eq(kv_cache_open_blocks(&cache, N), 0);
    cr_assert_eq(kv_cache_reserve_all(&cache), 0);
    for (uint32_t block = 0; block < N; block++) {
        kv_cache_publish(&cache, block, ifl_mix(block % (N / ALIKE)), -1, 16, KV_SOUGHT_BY_ALL);
        cr_assert_eq(kv_cache_find(&cache, ifl_mix(block / 2 % (N / ALIKE))),
                     (int32_t)(block / 2 % (N / ALIKE)));
    }
    for (uint32_t block = 0; block < N / ALIKE; block++) {
        kv_cache_withdraw(&cache, block);
        cr_assert_eq(kv_cache_find(&cache, ifl_mix(block)), (int32_t)(block + N / ALIKE));
    }
    kv_cache_destroy(&cache);
}
