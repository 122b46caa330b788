#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "device.h"
#include "refs.h"

enum { MAX_SEQS = 8, N_LAYERS = 2, LAYER = 1 };

struct attn_case {
    enum element element;
    int32_t n_heads, n_kv_heads, head_dim, block_tokens;
    int32_t n_seqs, q_len[MAX_SEQS], kv_len[MAX_SEQS];
    int32_t window_tokens, planted; /* 0: none; the kernel's window is wrong by `planted` */
    bool is_far;                    /* the blocks used lie behind FAR_ELEMENTS */
    bool is_e4m3;                   /* K and V are; Q is fp16 then */
};

/* A case laid out as in the engine: ragged rows, shuffled blocks, NaN in unused slots. */
struct attn_bench {
    struct attn_args args;
    struct tensor q, out, pool;
    double *expected;
    int32_t q_indptr[MAX_SEQS + 1], kv_len[MAX_SEQS], n_blocks;
};

static enum element kv_element(const struct attn_case *c)
{
    return c->is_e4m3 ? ELEMENT_E4M3 : c->element;
}

static int32_t blocks_of(const struct attn_case *c, int32_t seq)
{
    return (c->kv_len[seq] + c->block_tokens - 1) / c->block_tokens;
}

static size_t pool_at(const struct attn_case *c, int32_t block, int is_v, int32_t kv_head,
                      int32_t offset)
{
    const size_t plane = (size_t)(block * N_LAYERS + LAYER) * 2 + (size_t)is_v;
    return ((plane * c->n_kv_heads + kv_head) * c->block_tokens + offset) * c->head_dim;
}

/* The first token that any row of a sequence sees. */
static int32_t first_seen(const struct attn_case *c, int32_t seq)
{
    const int32_t before = c->kv_len[seq] - c->q_len[seq] + 1 - c->window_tokens;
    return c->window_tokens > 0 && before > 0 ? before : 0;
}

/* Draws a sequence's K or V, stores the visible tokens in the pool, and returns all tokens, rounded
 * to the pool's element. */
static double *kv_store(const struct attn_case *c, struct tensor *pool, const int32_t *blocks,
                        int32_t seq, int is_v)
{
    const size_t width = (size_t)c->n_kv_heads * c->head_dim;
    struct tensor kv = tensor_random(kv_element(c), (size_t)c->kv_len[seq] * width, 1.0);
    for (int32_t t = first_seen(c, seq); t < c->kv_len[seq]; t++)
        for (int32_t h = 0; h < c->n_kv_heads; h++)
            for (int32_t i = 0; i < c->head_dim; i++)
                tensor_set(
                    pool, pool_at(c, blocks[t / c->block_tokens], is_v, h, t % c->block_tokens) + i,
                    kv.value[t * width + (size_t)h * c->head_dim + i]);
    free(kv.bits);
    return kv.value;
}

static void sequence_fill(const struct attn_case *c, struct attn_bench *bench, int32_t seq,
                          const int32_t *blocks, size_t q_width)
{
    const size_t width = (size_t)c->n_heads * c->head_dim, first = (size_t)bench->q_indptr[seq];
    const struct attn_ref_shape shape = {c->q_len[seq],   c->kv_len[seq], c->n_heads,
                                         c->n_kv_heads,   c->head_dim,    (double)bench->args.scale,
                                         c->window_tokens};
    double *k = kv_store(c, &bench->pool, blocks, seq, 0);
    double *v = kv_store(c, &bench->pool, blocks, seq, 1);
    double *q = doubles_new((size_t)c->q_len[seq] * width);
    for (int32_t t = 0; t < c->q_len[seq]; t++)
        for (size_t i = 0; i < width; i++)
            q[t * width + i] = bench->q.value[(first + t) * q_width + i];
    attn_ref(bench->expected + first * width, q, k, v, &shape);
    free(q);
    free(k);
    free(v);
}

/* Q lies at the head of rows that hold K and V too, as the projection leaves them. */
static struct attn_bench bench_new(const struct attn_case *c)
{
    struct attn_bench bench = {.n_blocks = 3}; /* blocks without an owner */
    int32_t block_indptr[MAX_SEQS + 1] = {0};
    for (int32_t s = 0; s < c->n_seqs; s++) {
        bench.q_indptr[s + 1] = bench.q_indptr[s] + c->q_len[s];
        bench.kv_len[s] = c->kv_len[s];
        block_indptr[s + 1] = block_indptr[s] + blocks_of(c, s);
    }
    bench.n_blocks += block_indptr[c->n_seqs];
    int32_t *block_id = malloc((size_t)bench.n_blocks * sizeof *block_id);
    if (!block_id)
        abort();
    draw_permutation(block_id, bench.n_blocks);

    const int32_t block_rows = N_LAYERS * 2 * c->n_kv_heads * c->block_tokens;
    const size_t block_elements = (size_t)block_rows * c->head_dim;
    const size_t n_before = c->is_far ? FAR_ELEMENTS / block_elements + 1 : 0;
    const size_t n_rows = (size_t)bench.q_indptr[c->n_seqs];
    const size_t q_width = (size_t)(c->n_heads + 2 * c->n_kv_heads) * c->head_dim;
    bench.q = tensor_random(c->is_e4m3 ? ELEMENT_FP16 : c->element, n_rows * q_width, 2.0);
    bench.out = tensor_poison(c->element, n_rows * c->n_heads * c->head_dim);
    bench.pool = tensor_poison(kv_element(c), (size_t)bench.n_blocks * block_rows * c->head_dim);
    bench.expected = doubles_new(bench.out.n);
    bench.args.scale = 1.0f / sqrtf((float)c->head_dim);
    for (int32_t s = 0; s < c->n_seqs; s++)
        if (c->kv_len[s] > 0)
            sequence_fill(c, &bench, s, block_id + block_indptr[s], q_width);
    tensor_send(&bench.q);
    tensor_send(&bench.out);
    tensor_send_behind(&bench.pool, n_before * block_elements * element_bytes(kv_element(c)));
    for (int32_t i = 0; i < block_indptr[c->n_seqs]; i++)
        block_id[i] += (int32_t)n_before;
    const size_t skipped = pool_at(c, 0, 0, 0, 0) * element_bytes(kv_element(c));
    const char *blocks =
        (const char *)bench.pool.device - n_before * block_elements * element_bytes(kv_element(c));
    bench.args = (struct attn_args){
        .element = c->element,
        .out = bench.out.device,
        .q = bench.q.device,
        .q_stride = (int32_t)q_width,
        .n_heads = c->n_heads,
        .scale = bench.args.scale,
        .window_tokens = c->window_tokens + c->planted,
        .kv = {(void *)(uintptr_t)(blocks + skipped), c->block_tokens, block_rows, c->n_kv_heads,
               c->head_dim, c->is_e4m3},
        .kv_len = device_new((size_t)c->n_seqs * sizeof *c->kv_len, c->kv_len),
        .block_indptr = device_new((size_t)(c->n_seqs + 1) * sizeof *block_indptr, block_indptr),
        .block_id = device_new((size_t)block_indptr[c->n_seqs] * sizeof *block_id, block_id)};
    free(block_id);
    return bench;
}

/* The error of one sequence's rows; for padding 0 if the rows are still poisoned. */
static double sequence_error(const struct attn_bench *bench, const struct attn_case *c, int32_t seq)
{
    const size_t width = (size_t)c->n_heads * c->head_dim;
    const size_t first = (size_t)bench->q_indptr[seq] * width, n = (size_t)c->q_len[seq] * width;
    double n_written = 0.0;
    if (c->kv_len[seq] > 0)
        return error_of(bench->out.value + first, bench->expected + first, n);
    for (size_t i = first; i < first + n; i++)
        n_written += !isnan(bench->out.value[i]);
    return n_written;
}

static void bench_judge(struct attn_bench *bench, const struct attn_case *c, const char *what)
{
    double worst = 0.0;
    tensor_fetch(&bench->out);
    for (int32_t s = 0; s < c->n_seqs; s++) {
        const double error = sequence_error(bench, c, s);
        worst = isnan(worst) || error <= worst ? worst : error; /* NaN wins */
    }
    verdict(
        (worst < error_bound(c->element)) == (c->planted == 0),
        "%s, %s%s, %d/%d heads of %d, blocks of %d%s, %d sequences, the first of %d, window %d%s: "
        "error %.1e",
        what, element_name(c->element), c->is_e4m3 ? " on e4m3" : "", c->n_heads, c->n_kv_heads,
        c->head_dim, c->block_tokens, c->is_far ? " far away" : "", c->n_seqs, c->kv_len[0],
        c->window_tokens, c->planted ? " mistaken" : "", worst);
    free(bench->expected);
    tensor_free(&bench->q);
    tensor_free(&bench->out);
    tensor_free(&bench->pool);
    device_free_all();
}

/* ---- prefill ---- */

enum { MAX_ITEMS = 400 };

static void prefill_launch(struct attn_bench *bench, const struct attn_prefill_plan *plan)
{
    const struct attn_args *attn = &bench->args;
    const size_t part_rows = (size_t)plan->n_parts * attn->kv.n_kv_heads * ATTN_LOW_TILE;
    const struct attn_prefill_args args = {
        .attn = *attn,
        .q_indptr = device_new(sizeof bench->q_indptr, bench->q_indptr),
        .items = device_new((size_t)plan->n_items * sizeof *plan->items, plan->items),
        .merges = device_new((size_t)plan->n_merges * sizeof *plan->merges, plan->merges),
        .n_items = plan->n_items,
        .n_merges = plan->n_merges,
        .tile_rows = plan->tile_rows,
        .parts = device_new(part_rows * attn->kv.head_dim * sizeof(float), NULL),
        .part_logsum = device_new(part_rows * sizeof(float), NULL)};
    device_check(attn_prefill_launch(&args, NULL), "attn_prefill");
    if (plan->n_merges > 0)
        device_check(attn_prefill_merge_launch(&args, NULL), "attn_prefill_merge");
}

/* The device that the plan is made for decides on the tile, and on cuts. */
static void prefill_on(const struct attn_case *c, struct attn_prefill_slots slots, const char *what)
{
    static struct attn_prefill_item items[MAX_ITEMS];
    static struct attn_tile_merge merges[MAX_ITEMS];
    struct attn_bench bench = bench_new(c);
    const struct attn_prefill_batch batch = {.q_indptr = bench.q_indptr,
                                             .kv_len = bench.kv_len,
                                             .n_seqs = c->n_seqs,
                                             .group = c->n_heads / c->n_kv_heads,
                                             .n_kv_heads = c->n_kv_heads,
                                             .window_tokens = c->window_tokens + c->planted,
                                             .slots = slots};
    const int64_t n_rows = (int64_t)bench.q_indptr[c->n_seqs] * batch.group;
    struct attn_prefill_plan plan = {.items = items, .merges = merges};
    if (attn_prefill_max_items(n_rows, c->n_seqs, c->n_kv_heads, slots) > MAX_ITEMS)
        abort();
    attn_prefill_plan(&plan, &batch);
    prefill_launch(&bench, &plan);
    char text[80];
    snprintf(text, sizeof text, "prefill, tiles of %d%s", plan.tile_rows, what);
    bench_judge(&bench, c, text);
}

static int32_t n_low_blocks(const struct attn_case *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_seqs; i++)
        n += (c->q_len[i] * (c->n_heads / c->n_kv_heads) + ATTN_LOW_TILE - 1) / ATTN_LOW_TILE;
    return n * c->n_kv_heads;
}

/* A device with one slot for low tiles takes tall ones. One with a slot for each low tile takes
 * them as they are, and one with several cuts their contexts. */
static void prefill_round(const struct attn_case *c, int32_t tile_rows)
{
    const int32_t n = tile_rows == ATTN_TALL_TILE ? 1 : n_low_blocks(c);
    prefill_on(c, (struct attn_prefill_slots){n, n_low_blocks(c)}, "");
}

static void prefill_cut_round(const struct attn_case *c, int32_t n_cuts)
{
    const int32_t n = n_cuts * n_low_blocks(c);
    prefill_on(c, (struct attn_prefill_slots){n, n}, " and cuts");
}

static void decode_launch(const struct attn_bench *bench, const struct attn_case *c);

/* A row that sees one token alone is that token's V, here all 256 codes in two heads of 128: out
 * has exactly their numbers. */
static void every_code_is_read(bool decodes)
{
    const struct attn_case c = {ELEMENT_BF16, 4, 2, 128, 16, 1, {1}, {1}, 0, 0, false, true};
    struct attn_bench bench = bench_new(&c);
    int32_t block;
    int n_wrong = 0;
    device_read(&block, bench.args.block_id, sizeof block);
    for (int code = 0; code < 256; code++)
        ((uint8_t *)bench.pool.bits)[pool_at(&c, block, 1, code / 128, 0) + code % 128] =
            (uint8_t)code;
    void *rows = device_new(bench.pool.n, bench.pool.bits);
    bench.args.kv.rows = (char *)rows + pool_at(&c, 0, 0, 0, 0);
    if (decodes) {
        decode_launch(&bench, &c);
    } else {
        struct attn_prefill_item item = {0, 0, 0, 1, -1};
        const struct attn_prefill_plan plan = {
            .items = &item, .n_items = 1, .tile_rows = ATTN_TALL_TILE};
        prefill_launch(&bench, &plan);
    }
    tensor_fetch(&bench.out);
    for (int i = 0; i < 4 * 128; i++) {
        const double expected = e4m3_number(i / 256 * 128 + i % 128), got = bench.out.value[i];
        n_wrong += isnan(expected) ? !isnan(got) : got != expected;
    }
    verdict(n_wrong == 0, "%s reads every code of e4m3, %d wrong", decodes ? "decode" : "prefill",
            n_wrong);
    free(bench.expected);
    tensor_free(&bench.q);
    tensor_free(&bench.out);
    tensor_free(&bench.pool);
    device_free_all();
}

/* Any element, grouping, head dim and block size. */
static struct attn_case case_draw(int32_t n_seqs)
{
    static const int32_t groups[] = {1, 2, 3, 4, 7, 8, 16, 20}, blocks[] = {1, 5, 16, 16, 32, 64};
    struct attn_case c = {.element = draw_between(0, 1) ? ELEMENT_BF16 : ELEMENT_FP16,
                          .n_kv_heads = draw_between(1, 3),
                          .head_dim = 64 * draw_between(1, 2),
                          .block_tokens = blocks[draw_between(0, 5)],
                          .n_seqs = n_seqs};
    c.n_heads = c.n_kv_heads * groups[draw_between(0, 7)];
    return c;
}

/* Whole prompts, chunks after a computed prefix, a single token; rows_most bounds rows per head. */
static void prefill_lengths_draw(struct attn_case *c, int32_t rows_most)
{
    const int32_t longest = rows_most / (c->n_heads / c->n_kv_heads) + 1;
    for (int32_t s = 0; s < c->n_seqs; s++) {
        c->q_len[s] = s == 2 ? 1 : draw_between(1, longest);
        c->kv_len[s] = c->q_len[s] + (s % 2 ? draw_between(1, rows_most) : 0);
    }
}

/* Windows that begin within a tile, behind the tile of the rows, and before the first token. A
 * window that is wrong by one token must be detected. */
static void prefill_windows(void)
{
    static const int32_t windows[] = {1, 24, 70, 130, 400};
    struct attn_case c = {.element = ELEMENT_BF16,
                          .n_heads = 4,
                          .n_kv_heads = 2,
                          .head_dim = 64,
                          .block_tokens = 16,
                          .n_seqs = 3,
                          .q_len = {150, 40, 90},
                          .kv_len = {150, 200, 300}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        c.window_tokens = windows[i];
        c.head_dim = i % 2 ? 128 : 64;
        prefill_round(&c, i % 2 ? 64 : 128);
    }
    c.window_tokens = 24;
    for (c.planted = -1; c.planted <= 1; c.planted += 2)
        prefill_round(&c, 128);
    c.planted = 0;
    for (c.head_dim = 64; c.head_dim <= 128;
         c.head_dim += 64) { /* rows that see nothing at first */
        c.n_kv_heads = c.n_heads;
        prefill_round(&c, 128);
    }
}

/* Chunks behind long contexts, and parts of which some rows see nothing. */
static void prefill_cuts(void)
{
    struct attn_case c = {ELEMENT_BF16,     4, 2, 64,    16,   3, {20, 40, 9},
                          {1200, 60, 2300}, 0, 0, false, false};
    prefill_cut_round(&c, 2);
    prefill_cut_round(&c, 8);
    c.window_tokens = 1100;
    prefill_cut_round(&c, 4);
    c = (struct attn_case){ELEMENT_FP16, 6, 2, 128, 5, 2, {50, 1}, {1500, 700}, 0, 0, false, false};
    prefill_cut_round(&c, 6);
}

/* How busy a list schedule of the launched blocks keeps n_slots: the work of each is the matrix
 * operations that it did. Blocks start in the order of their numbers. */
static double slots_busy(const uint32_t *products, size_t n_blocks, int32_t n_slots)
{
    uint64_t ends[64] = {0}, all = 0, last = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        int32_t first = 0;
        for (int32_t s = 1; s < n_slots; s++)
            first = ends[s] < ends[first] ? s : first;
        ends[first] += products[i];
        all += products[i];
        last = ends[first] > last ? ends[first] : last;
    }
    return (double)all / ((double)last * n_slots);
}

static void prefill_order(void)
{
    const struct attn_case c = {ELEMENT_BF16, 8, 8, 64, 16, 1, {300}, {300}, 0, 0, false, false};
    enum { SLOTS = 12 };
    size_t n_blocks;
    prefill_round(&c, ATTN_LOW_TILE);
    const uint32_t *products = device_products(&n_blocks);
    if (!products)
        return;
    const double busy = slots_busy(products, n_blocks, SLOTS);
    verdict(busy > 0.9, "prefill's blocks keep %d slots busy for %.2f of the time", SLOTS, busy);
}

/* With K and V in e4m3: every tile, windows, cuts, blocks far away. */
void check_e4m3_prefill(void)
{
    struct attn_case c = {ELEMENT_BF16, 4, 2, 64, 16, 3, {0}, {0}, 0, 0, false, true};
    draw_seed(9);
    prefill_lengths_draw(&c, 80);
    prefill_round(&c, 64);
    prefill_round(&c, 128);
    c = (struct attn_case){ELEMENT_FP16, 4, 1, 128, 16, 2, {0}, {0}, 0, 0, false, true};
    prefill_lengths_draw(&c, check_is_small ? 150 : 300);
    prefill_round(&c, 64);
    if (check_is_small)
        return;
    prefill_round(&c, 128);
    c.element = ELEMENT_BF16;
    c.is_far = check_far();
    prefill_round(&c, 128);
    c = (struct attn_case){ELEMENT_BF16,     4, 2, 64,    16,  3, {20, 40, 9},
                           {1200, 60, 2300}, 0, 0, false, true};
    prefill_cut_round(&c, 8);
    for (int i = 0; i < 6; i++) {
        c = case_draw(3);
        c.is_e4m3 = true;
        prefill_lengths_draw(&c, 250);
        c.window_tokens = i % 2 ? draw_between(1, 300) : 0;
        prefill_round(&c, i % 2 ? 128 : 64);
        prefill_round(&c, i % 2 ? 64 : 128);
    }
    every_code_is_read(false);
}

void check_attn_prefill(void)
{
    struct attn_case c = {ELEMENT_BF16, 4, 2, 64, 16, 3, {0}, {0}, 0, 0, false, false};
    draw_seed(7);
    prefill_lengths_draw(&c, 80);
    prefill_round(&c, 64);
    prefill_round(&c, 128);
    c = (struct attn_case){ELEMENT_FP16, 4, 1, 128, 16, 2, {0}, {0}, 0, 0, false, false};
    prefill_lengths_draw(&c, 300);
    prefill_round(&c, check_is_small ? 64 : 128);
    if (check_is_small)
        return;
    prefill_windows();
    prefill_cuts();
    prefill_order();
    c.is_far = check_far();
    prefill_round(&c, 128);
    for (int i = 0; i < 10; i++) {
        c = case_draw(3);
        prefill_lengths_draw(&c, 250);
        c.window_tokens = i % 2 ? draw_between(1, 300) : 0;
        prefill_round(&c, 64);
        prefill_round(&c, 128);
    }
}

/* ---- decode ---- */

static void plan_send(struct attn_decode_args *args, const struct attn_case *c)
{
    const int32_t n_shares = args->n_shares;
    int32_t n_merges;
    struct attn_decode_plan plan = {
        .share_indptr = malloc((size_t)(n_shares + 1) * sizeof *plan.share_indptr),
        .segments = calloc((size_t)n_shares + c->n_seqs, sizeof *plan.segments),
        .merges = calloc((size_t)n_shares, sizeof *plan.merges),
        .n_merges = &n_merges};
    if (!plan.share_indptr || !plan.segments || !plan.merges)
        abort();
    const int32_t n_parts =
        attn_decode_plan(&plan, n_shares, args->attn.window_tokens, c->kv_len, c->n_seqs);
    args->plan.share_indptr =
        device_new((size_t)(n_shares + 1) * sizeof *plan.share_indptr, plan.share_indptr);
    args->plan.segments =
        device_new((size_t)(n_shares + c->n_seqs) * sizeof *plan.segments, plan.segments);
    args->plan.merges = device_new((size_t)n_shares * sizeof *plan.merges, plan.merges);
    args->plan.n_merges = device_new(sizeof n_merges, &n_merges);
    args->parts = device_new((size_t)n_parts * c->n_heads * c->head_dim * sizeof(float), NULL);
    args->part_logsum = device_new((size_t)n_parts * c->n_heads * sizeof(float), NULL);
    free(plan.share_indptr);
    free(plan.segments);
    free(plan.merges);
}

static void decode_launch(const struct attn_bench *bench, const struct attn_case *c)
{
    struct attn_decode_args args = {.attn = bench->args, .n_shares = 1};
    plan_send(&args, c);
    device_check(attn_decode_launch(&args, NULL), "attn_decode");
}

static void decode_round(const struct attn_case *c, int32_t n_shares)
{
    struct attn_bench bench = bench_new(c);
    struct attn_decode_args args = {.attn = bench.args, .n_shares = n_shares};
    plan_send(&args, c);
    device_check(attn_decode_launch(&args, NULL), "attn_decode");
    device_check(attn_merge_launch(&args, NULL), "attn_merge");
    bench_judge(&bench, c, n_shares == 1 ? "decode, whole" : "decode, shared out");
}

/* Short sequences, one cut by every share, a single token, and padding with an unchanged row. */
static void decode_lengths_draw(struct attn_case *c, int32_t longest)
{
    for (int32_t s = 0; s < c->n_seqs; s++) {
        c->q_len[s] = 1;
        c->kv_len[s] = draw_between(1, longest / 2);
    }
    c->kv_len[0] = longest;
    c->kv_len[2] = 0;
    c->kv_len[3] = 1;
}

static void decode_windows(void)
{
    struct attn_case c = {ELEMENT_FP16, 8, 2, 64, 16, 5, {0}, {0}, 24, 0, false, false};
    decode_lengths_draw(&c, 290);
    decode_round(&c, 1);
    c.window_tokens = 200;
    decode_round(&c, 3);
    c.window_tokens = 24;
    for (c.planted = -1; c.planted <= 1; c.planted += 2)
        decode_round(&c, 3);
}

/* Batches of few and more sequences, wider heads, and K/V beyond 2^32 elements. */
static void decode_lengths_and_places(struct attn_case *c)
{
    decode_lengths_draw(c, 290);
    decode_round(c, 1);
    decode_round(c, 3);
    c->head_dim = 128;
    decode_round(c, 4);
    c->is_far = check_far();
    decode_round(c, 3);
}

void check_e4m3_decode(void)
{
    struct attn_case c = {ELEMENT_BF16, 8, 2, 64, 16, 5, {0}, {0}, 0, 0, false, true};
    draw_seed(10);
    decode_lengths_and_places(&c);
    for (int i = 0; i < 8 && !check_is_small; i++) {
        c = case_draw(5);
        c.is_e4m3 = true;
        decode_lengths_draw(&c, draw_between(200, 1500));
        c.window_tokens = i % 2 ? draw_between(1, 1000) : 0;
        decode_round(&c, draw_between(1, 9));
    }
    every_code_is_read(true);
}

void check_attn_decode(void)
{
    struct attn_case c = {ELEMENT_BF16, 8, 2, 64, 16, 5, {0}, {0}, 0, 0, false, false};
    draw_seed(8);
    decode_lengths_and_places(&c);
    c.is_far = false;
    if (!check_is_small)
        decode_windows();
    for (int i = 0; i < 10 && !check_is_small; i++) {
        c = case_draw(5);
        decode_lengths_draw(&c, draw_between(200, 1500));
        c.window_tokens = i % 2 ? draw_between(1, 1000) : 0;
        decode_round(&c, draw_between(1, 9));
    }
    int32_t n_shares = 0;
    const struct attn_args args = {
        .element = ELEMENT_BF16, .n_heads = 8, .kv = {.n_kv_heads = 2, .head_dim = 64}};
    const int failed = attn_decode_shares(&args, &n_shares);
    verdict(!failed && n_shares > 0, "the device holds %d shares of 2 KV heads", n_shares);
}
