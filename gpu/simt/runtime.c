/* The runtime of simt.h: lanes as fibers, their barriers and warp operations, copies under way. */
#include "simt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "memory.h"
#include "warp.h"

enum { MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = 65535 }; /* of every device since Kepler */
enum { MAX_WARPS = SIMT_MAX_LANES / SIMT_WARP_LANES, MAX_CALLS = 64, MAX_COPIES = 256 };

enum lane_state { LANE_READY, LANE_AT_BARRIER, LANE_AT_WARP_OP, LANE_AT_WAIT, LANE_DONE };

/* Asynchronous copies in the order of issue: groups[0] copies of the oldest group first. */
struct copy_queue {
    struct simt_copy copies[MAX_COPIES];
    uint16_t group_of[MAX_COPIES];
    unsigned first, n;
    uint16_t n_committed;
};

struct lane {
    struct fiber fiber;
    struct simt_index index;
    enum lane_state state;
    bool has_waited; /* for the launch before */
    struct simt_site site;
    enum simt_op op;
    unsigned mask;
    struct copy_queue pending;
};

struct warp {
    uint32_t ready, at_op, at_barrier, at_wait, live;
    unsigned n_syncs;
    char order[2]; /* happens-before marks of even and odd __syncwarps */
    struct warp_operand in[SIMT_WARP_LANES], out[SIMT_WARP_LANES];
};

static struct lane *lanes[SIMT_MAX_LANES]; /* created when first needed, kept */
static struct warp warps[MAX_WARPS];
static unsigned n_lanes, n_warps, current;
static struct fiber host;

static struct simt_index grid_size, block_size, block_index;
static void (*kernel_body)(void *);
static void *kernel_closure;
static void *shared;

static size_t n_ended, n_waited; /* lanes of this launch */

static uint32_t *products; /* [products_cap] of each block */
static size_t n_blocks, products_cap, this_block;

static char order_start, order_end, order_barrier[2];
static unsigned n_barriers;
static bool sees_past; /* this block's lanes wait for the launch before */
static uint64_t dice = 1;

static struct simt_site calls[MAX_CALLS];
static int n_calls, left_out = -1;

/* ---- failure: one line, then each waiting lane and its place ---- */

static const char *state_text(const struct lane *lane)
{
    return lane->state == LANE_AT_BARRIER ? "__syncthreads" : warp_op_name(lane->op);
}

static void waiting_print(void)
{
    for (unsigned i = 0; i < n_lanes; i++) {
        const struct lane *lane = lanes[i];
        if (lane->state == LANE_DONE)
            fprintf(stderr, "  lane %4u has ended\n", i);
        else if (lane->state == LANE_AT_BARRIER || lane->state == LANE_AT_WARP_OP)
            fprintf(stderr, "  lane %4u waits at %s:%d, %s, mask %08x\n", i, lane->site.file,
                    lane->site.line, state_text(lane), lane->mask);
    }
}

static _Noreturn void fail(const char *why)
{
    fprintf(stderr, "simt: block (%u,%u,%u), lane %u: %s\n", block_index.x, block_index.y,
            block_index.z, current, why);
    waiting_print();
    abort();
}

/* ---- the scheduler of lanes ---- */

void simt_seed(uint64_t seed)
{
    dice = seed * 0x9e3779b97f4a7c15u + 1;
}

static unsigned draw(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 32);
}

static unsigned ready_lane(uint32_t ready)
{
    const unsigned turn = draw() % SIMT_WARP_LANES;
    const uint32_t turned = turn ? ready >> turn | ready << (SIMT_WARP_LANES - turn) : ready;
    return ((unsigned)__builtin_ctz(turned) + turn) % SIMT_WARP_LANES;
}

static bool all_at_barrier(void)
{
    for (unsigned w = 0; w < n_warps; w++)
        if (warps[w].live & ~warps[w].at_barrier)
            return false;
    return true;
}

static bool any_live(void)
{
    for (unsigned w = 0; w < n_warps; w++)
        if (warps[w].live)
            return true;
    return false;
}

static void barrier_open(void)
{
    const struct simt_site *site = NULL;
    for (unsigned i = 0; i < n_lanes; i++) {
        if (lanes[i]->state != LANE_AT_BARRIER)
            continue;
        if (site && site->line != lanes[i]->site.line)
            fail("lanes wait at different __syncthreads");
        site = &lanes[i]->site;
        lanes[i]->state = LANE_READY;
    }
    for (unsigned w = 0; w < n_warps; w++) {
        warps[w].ready = warps[w].at_barrier;
        warps[w].at_barrier = 0;
    }
    n_barriers++;
}

/* The launch before ends when nothing else can happen. */
static bool wait_open(void)
{
    bool any = false;
    for (unsigned i = 0; i < n_lanes; i++)
        if (lanes[i]->state == LANE_AT_WAIT) {
            lanes[i]->state = LANE_READY;
            any = true;
        }
    for (unsigned w = 0; w < n_warps; w++) {
        warps[w].ready |= warps[w].at_wait;
        warps[w].at_wait = 0;
    }
    if (any && sees_past)
        memory_show(false);
    sees_past = sees_past && !any;
    return any;
}

/* The current warp runs on with a fixed probability, so that warps drift apart; else any other. */
static unsigned ready_warp(void)
{
    const unsigned mine = current / SIMT_WARP_LANES;
    if (warps[mine].ready && draw() % 8)
        return mine;
    const unsigned start = draw() % n_warps;
    for (unsigned i = 0; i < n_warps; i++)
        if (warps[(start + i) % n_warps].ready)
            return (start + i) % n_warps;
    return MAX_WARPS;
}

static void run_next(struct fiber *from)
{
    unsigned w = ready_warp();
    if (w == MAX_WARPS && any_live()) {
        if (!wait_open()) {
            if (!all_at_barrier())
                fail("deadlock: no thread can run");
            barrier_open();
        }
        w = ready_warp();
    }
    if (w == MAX_WARPS) {
        fiber_switch(from, &host);
        return;
    }
    current = w * SIMT_WARP_LANES + ready_lane(warps[w].ready);
    if (from != &lanes[current]->fiber)
        fiber_switch(from, &lanes[current]->fiber);
}

static struct lane *me(void)
{
    return lanes[current];
}

static struct warp *my_warp(void)
{
    return &warps[current / SIMT_WARP_LANES];
}

unsigned simt_lane(void)
{
    return current % SIMT_WARP_LANES;
}

/* ---- lanes and blocks ---- */

static void lane_finish(void)
{
    if (me()->pending.n)
        fail("ends with asynchronous copies that it never waited for");
    me()->state = LANE_DONE;
    n_ended++;
    n_waited += me()->has_waited;
    if (n_waited != 0 && n_waited != n_ended)
        fail("only some lanes have waited for the kernel before");
    my_warp()->live &= ~(1u << simt_lane());
    my_warp()->ready &= my_warp()->live;
    fiber_release(&order_end);
}

/* A lane's fiber serves every block. */
static void lane_main(void)
{
    fiber_entered();
    for (;;) {
        fiber_acquire(&order_start);
        kernel_body(kernel_closure);
        lane_finish();
        run_next(&me()->fiber);
    }
}

static void lanes_provide(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (lanes[i])
            continue;
        lanes[i] = calloc(1, sizeof *lanes[i]);
        if (!lanes[i] || !fiber_create(&lanes[i]->fiber, lane_main))
            fail("no memory for another lane");
    }
}

static void block_run(void)
{
    for (unsigned i = 0; i < n_lanes; i++) {
        const unsigned row = i / block_size.x;
        lanes[i]->index =
            (struct simt_index){i % block_size.x, row % block_size.y, row / block_size.y};
        lanes[i]->state = LANE_READY;
        lanes[i]->has_waited = false;
        lanes[i]->pending.n_committed = 0;
    }
    for (unsigned w = 0; w < n_warps; w++) {
        warps[w].ready = warps[w].live = ~0u;
        warps[w].at_op = warps[w].at_barrier = warps[w].at_wait = 0;
    }
    current = 0;
    sees_past = memory_is_hidden();
    if (sees_past)
        memory_hide();
    fiber_release(&order_start);
    run_next(&host);
    fiber_acquire(&order_end);
    if (sees_past)
        memory_show(false);
    memory_show(true);
}

static void products_clear(size_t n)
{
    if (n > products_cap) {
        products = realloc(products, n * sizeof *products);
        products_cap = n;
        if (!products)
            fail("no memory for another block");
    }
    n_blocks = n;
    for (size_t i = 0; i < n; i++)
        products[i] = 0;
}

const uint32_t *simt_products(size_t *n)
{
    *n = n_blocks;
    return products;
}

void simt_launch(struct simt_index grid, struct simt_index block, size_t shared_bytes,
                 bool may_overlap, void (*body)(void *closure), void *closure)
{
    grid_size = grid;
    block_size = block;
    n_lanes = block.x * block.y * block.z;
    n_warps = n_lanes / SIMT_WARP_LANES;
    if (n_lanes == 0 || n_lanes > SIMT_MAX_LANES || n_lanes % SIMT_WARP_LANES)
        fail("a block has 1 to 32 whole warps");
    if (grid.x > MAX_GRID_X || grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ)
        fail("a grid is 2^31 - 1 blocks wide at most, 65535 high and deep");
    kernel_body = body;
    kernel_closure = closure;
    fiber_adopt_caller(&host);
    n_ended = n_waited = 0;
    lanes_provide(n_lanes);
    /* Exactly the bytes asked for, rounded up to what aligned_alloc wants: 16. */
    const size_t rounded = (shared_bytes + 15) / 16 * 16;
    shared = rounded ? aligned_alloc(16, rounded) : NULL;
    if (rounded && !shared)
        fail("no memory for shared memory");
    memory_launch(may_overlap);
    products_clear((size_t)grid.x * grid.y * grid.z);
    for (size_t i = 0; i < n_blocks; i++) {
        this_block = i;
        if (rounded)
            memset(shared, 0xff, rounded);
        const size_t row = i / grid.x;
        block_index = (struct simt_index){(unsigned)(i % grid.x), (unsigned)(row % grid.y),
                                          (unsigned)(row / grid.y)};
        block_run();
    }
    free(shared);
    memory_launched();
}

bool simt_all_waited(void)
{
    return n_waited == n_ended;
}

void simt_previous_wait(void)
{
    struct lane *lane = me();
    lane->has_waited = true;
    if (!sees_past)
        return;
    struct warp *warp = my_warp();
    lane->state = LANE_AT_WAIT;
    warp->ready &= ~(1u << simt_lane());
    warp->at_wait |= 1u << simt_lane();
    run_next(&lane->fiber);
}

void simt_next_admit(void)
{
    memory_admit();
}

struct simt_index simt_thread_index(void)
{
    return me()->index;
}

struct simt_index simt_block_index(void)
{
    return block_index;
}

struct simt_index simt_block_size(void)
{
    return block_size;
}

struct simt_index simt_grid_size(void)
{
    return grid_size;
}

void *simt_shared(void)
{
    return shared;
}

/* ---- planted bugs ---- */

void simt_leave_out(int which)
{
    left_out = which;
    n_calls = 0;
}

int simt_n_calls(void)
{
    return n_calls;
}

const struct simt_site *simt_left_out(void)
{
    return left_out >= 0 && left_out < n_calls ? &calls[left_out] : NULL;
}

static bool is_left_out(struct simt_site site)
{
    int i = 0;
    while (i < n_calls && (calls[i].line != site.line || calls[i].file != site.file))
        i++;
    if (i == n_calls) {
        if (n_calls == MAX_CALLS)
            fail("too many places that synchronise");
        calls[n_calls++] = site;
    }
    return i == left_out;
}

/* ---- barriers and warp operations ---- */

void simt_barrier(struct simt_site site)
{
    if (is_left_out(site))
        return;
    struct lane *lane = me();
    struct warp *warp = my_warp();
    lane->state = LANE_AT_BARRIER;
    lane->site = site;
    lane->mask = ~0u;
    warp->ready &= ~(1u << simt_lane());
    warp->at_barrier |= 1u << simt_lane();
    void *mark = &order_barrier[n_barriers & 1];
    fiber_release(mark);
    run_next(&lane->fiber);
    fiber_acquire(mark);
}

static void warp_op_finish(struct warp *warp, unsigned mask)
{
    const struct lane *last = me();
    const unsigned first = current / SIMT_WARP_LANES * SIMT_WARP_LANES;
    for (unsigned i = 0; i < SIMT_WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        if (lanes[first + i]->op != last->op || lanes[first + i]->mask != mask)
            fail("lanes of one mask disagree on operation or mask");
        lanes[first + i]->state = LANE_READY;
    }
    const char *wrong = warp_resolve(last->op, mask, warp->in, warp->out);
    if (wrong)
        fail(wrong);
    warp->n_syncs += last->op == SIMT_SYNCWARP;
    products[this_block] += last->op == SIMT_MMA_BF16 || last->op == SIMT_MMA_FP16;
    warp->at_op &= ~mask;
    warp->ready |= mask;
}

/* By loops, not memcpy: a sanitizer would take the mailbox for the kernel's memory. */
static void operand_copy(unsigned char *to, const unsigned char *from, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        to[i] = from[i];
}

void simt_warp(enum simt_op op, unsigned mask, const void *in, size_t in_bytes, void *out,
               size_t out_bytes, struct simt_site site)
{
    if (op == SIMT_SYNCWARP && is_left_out(site))
        return;
    struct lane *lane = me();
    struct warp *warp = my_warp();
    const unsigned self = simt_lane();
    lane->state = LANE_AT_WARP_OP;
    lane->op = op;
    lane->mask = mask;
    lane->site = site;
    if (!(mask >> self & 1))
        fail("calls a warp operation whose mask leaves it out");
    if (mask & ~warp->live)
        fail("the mask of a warp operation names a lane that has ended");
    operand_copy(warp->in[self].bytes, in, in_bytes);
    void *mark = &warp->order[warp->n_syncs & 1];
    if (op == SIMT_SYNCWARP)
        fiber_release(mark);
    warp->ready &= ~(1u << self);
    warp->at_op |= 1u << self;
    if ((warp->at_op & mask) == mask)
        warp_op_finish(warp, mask);
    else
        run_next(&lane->fiber);
    if (op == SIMT_SYNCWARP)
        fiber_acquire(mark);
    operand_copy(out, warp->out[self].bytes, out_bytes);
}

/* ---- asynchronous copies ---- */

void simt_copy_issue(struct simt_copy copy)
{
    struct copy_queue *queue = &me()->pending;
    if (queue->n == MAX_COPIES)
        fail("more asynchronous copies in flight than the shim holds");
    const unsigned at = (queue->first + queue->n++) % MAX_COPIES;
    queue->copies[at] = copy;
    queue->group_of[at] = queue->n_committed;
}

void simt_copy_commit(void)
{
    me()->pending.n_committed++;
}

bool simt_copy_due(unsigned n_groups, struct simt_copy *copy)
{
    struct copy_queue *queue = &me()->pending;
    const uint16_t age = (uint16_t)(queue->n_committed - queue->group_of[queue->first]);
    if (queue->n == 0 || age <= n_groups)
        return false;
    *copy = queue->copies[queue->first];
    queue->first = (queue->first + 1) % MAX_COPIES;
    queue->n--;
    return true;
}

bool simt_copy_waits(struct simt_site site)
{
    return !is_left_out(site);
}
