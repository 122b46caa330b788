#include "pass.h"

#include <string.h>

#include "gemm.h"
#include "inflight/minmax.h"
#include "step_slots.h"

void pass_limits_set(struct pass_limits *limits, const struct ifl_engine_options *o,
                     int32_t window_tokens, int32_t n_shares, struct attn_prefill_slots slots)
{
    const int32_t table = (o->max_tokens + o->block_tokens - 1) / o->block_tokens;
    *limits = (struct pass_limits){
        .max_rows = gemm_rows(ifl_min(o->max_step_tokens, PASS_MAX_TOKENS)),
        .max_seqs = ifl_min(o->max_step_seqs, PASS_MAX_SEQS),
        .block_tokens = o->block_tokens,
        .window_tokens = window_tokens,
        .n_shares = n_shares,
        .slots = slots,
        .group = o->model.n_q_heads / o->model.n_kv_heads,
        .n_kv_heads = o->model.n_kv_heads,
    };
    const int64_t all_tables = (int64_t)table * limits->max_seqs;
    limits->max_blocks = ifl_max(table, (int32_t)ifl_min(all_tables, PASS_MAX_BLOCKS));
}

/* ---- layout ---- */

static void *place(void *base, size_t *at, size_t n, size_t each_bytes)
{
    void *here = base ? (char *)base + *at : NULL;
    *at += (n * each_bytes + 15) & ~(size_t)15;
    return here;
}

size_t pass_lay_out(const struct pass_limits *limits, const struct pass_shape *shape, void *base,
                    struct pass_arrays *a)
{
    ifl_assert((uintptr_t)base % 16 == 0);
    const size_t n_rows = (size_t)shape->n_rows, n_decodes = (size_t)shape->n_decodes;
    const size_t n_seqs = n_decodes + (size_t)shape->n_prefills;
    const size_t n_shares = (size_t)limits->n_shares, word = sizeof(int32_t);
    size_t at = 0;
    a->token_id = place(base, &at, n_rows, word);
    a->position = place(base, &at, n_rows, word);
    a->slot = place(base, &at, n_rows, word);
    a->kv_len = place(base, &at, n_seqs, word);
    a->block_indptr = place(base, &at, n_seqs + 1, word);
    a->q_indptr = place(base, &at, (size_t)shape->n_prefills + 1, word);
    a->logit_row = place(base, &at, (size_t)shape->n_logit_rows, word);
    a->decode.share_indptr = place(base, &at, n_shares + 1, word);
    a->decode.segments = place(base, &at, n_decodes + n_shares, sizeof *a->decode.segments);
    a->decode.merges = place(base, &at, n_shares, sizeof *a->decode.merges);
    a->decode.n_merges = place(base, &at, 1, word);
    a->items = place(base, &at, (size_t)shape->n_items, sizeof *a->items);
    a->tile_merges = place(base, &at, (size_t)shape->n_tile_merges, sizeof *a->tile_merges);
    a->block_id = base ? (int32_t *)(void *)((char *)base + at) : NULL;
    return at;
}

int32_t pass_max_items(const struct pass_limits *limits)
{
    return attn_prefill_max_items((int64_t)limits->max_rows * limits->group, limits->max_seqs,
                                  limits->n_kv_heads, limits->slots);
}

size_t pass_max_bytes(const struct pass_limits *limits)
{
    const int32_t max_seqs = ifl_max(limits->max_seqs, PASS_GRAPH_SEQS);
    const struct pass_shape most = {
        .n_rows = limits->max_rows,
        .n_decodes = max_seqs,
        .n_prefills = max_seqs,
        .n_logit_rows = ifl_max(limits->max_rows, PASS_GRAPH_SEQS),
        .n_items = pass_max_items(limits),
        .n_tile_merges = attn_prefill_max_parts(limits->n_kv_heads, limits->slots),
    };
    struct pass_arrays arrays;
    return pass_lay_out(limits, &most, NULL, &arrays) +
           (size_t)limits->max_blocks * sizeof *arrays.block_id;
}

/* ---- cutting ---- */

static int32_t blocks_before(const struct pass_limits *limits, int32_t n_tokens)
{
    return (n_tokens + limits->block_tokens - 1) / limits->block_tokens;
}

/* Slots that the piece's last token attends to. */
static int32_t kv_len_of(const struct ifl_engine_step *step, const struct pass_piece *piece)
{
    return step_n_seen(step, piece->seq, piece->first + piece->n - 1);
}

static void set_shape(struct pass *pass, int32_t n_rows)
{
    struct pass_shape *shape = &pass->shape;
    *shape = (struct pass_shape){.n_rows = n_rows, .n_logit_rows = pass->n_logit_rows};
    for (int32_t i = 0; i < pass->n_pieces; i++)
        *(pass->pieces[i].n == 1 ? &shape->n_decodes : &shape->n_prefills) += 1;
    shape->is_graph = shape->n_prefills == 0 && n_rows <= PASS_GRAPH_SEQS;
    if (shape->is_graph)
        shape->n_rows = shape->n_decodes = shape->n_logit_rows = gemm_rows(n_rows);
}

static void plan_prefills(const struct pass_limits *limits, struct pass *pass)
{
    struct pass_shape *shape = &pass->shape;
    const struct attn_prefill_batch batch = {
        .q_indptr = pass->q_indptr,
        .kv_len = pass->kv_len,
        .n_seqs = shape->n_prefills,
        .group = limits->group,
        .n_kv_heads = limits->n_kv_heads,
        .window_tokens = limits->window_tokens,
        .slots = limits->slots,
    };
    attn_prefill_plan(&pass->prefill, &batch);
    shape->tile_rows = pass->prefill.tile_rows;
    shape->n_items = pass->prefill.n_items;
    shape->n_tile_merges = pass->prefill.n_merges;
}

/* Decodes first, then prefills, each in the step's order. */
static void give_rows(const struct ifl_engine_step *step, struct pass *pass)
{
    struct pass_shape *shape = &pass->shape;
    int32_t decode_row = 0, prefill_row = shape->n_decodes, n_prefills = 0;
    for (int32_t i = 0; i < pass->n_pieces; i++) {
        const int32_t n = pass->pieces[i].n;
        int32_t *row = n == 1 ? &decode_row : &prefill_row;
        pass->row_of[i] = *row;
        if (n > 1) {
            pass->kv_len[n_prefills] = kv_len_of(step, &pass->pieces[i]);
            pass->q_indptr[n_prefills++] = *row;
        }
        *row += n;
    }
    pass->q_indptr[n_prefills] = prefill_row;
}

bool pass_cut(const struct pass_limits *limits, const struct ifl_engine_step *step,
              struct pass_cursor *cursor, struct pass *pass)
{
    int32_t n_rows = 0, n_blocks = 0;
    pass->n_pieces = pass->n_logit_rows = 0;
    while (cursor->seq < step->n_seqs && n_rows < limits->max_rows &&
           pass->n_pieces < limits->max_seqs) {
        const int32_t end = step->first_token[cursor->seq + 1];
        struct pass_piece piece = {.seq = cursor->seq, .first = cursor->row};
        piece.n = ifl_min(end - cursor->row, limits->max_rows - n_rows);
        n_blocks += blocks_before(limits, kv_len_of(step, &piece));
        if (n_blocks > limits->max_blocks)
            break;
        n_rows += piece.n;
        cursor->row += piece.n;
        cursor->seq += cursor->row == end;
        piece.n_logit_rows =
            cursor->row -
            ifl_max(piece.first, ifl_min(step_first_row(step, piece.seq), cursor->row));
        pass->n_logit_rows += piece.n_logit_rows;
        pass->pieces[pass->n_pieces++] = piece;
    }
    set_shape(pass, n_rows);
    give_rows(step, pass);
    plan_prefills(limits, pass);
    return pass->n_pieces > 0;
}

/* ---- writing ---- */

static void write_rows(const struct pass_limits *limits, const struct ifl_engine_step *step,
                       const struct pass_piece *piece, int32_t row, struct pass_arrays *a)
{
    const uint32_t *table = step->block_ids + step->first_block[piece->seq];
    for (int32_t i = 0; i < piece->n; i++, row++) {
        const int32_t slot = step_slot(step, piece->first + i);
        a->token_id[row] = step->token_ids[piece->first + i];
        a->position[row] = step->positions[piece->first + i];
        a->slot[row] = (int32_t)table[slot / limits->block_tokens] * limits->block_tokens +
                       slot % limits->block_tokens;
    }
}

/* Decodes, then prefills. */
static int32_t write_seqs(const struct pass_limits *limits, const struct ifl_engine_step *step,
                          const struct pass *pass, struct pass_arrays *a)
{
    int32_t seq = 0, n_blocks = 0;
    for (int32_t kind = 0; kind < 2; kind++) {
        for (int32_t i = 0; i < pass->n_pieces; i++) {
            const struct pass_piece *piece = &pass->pieces[i];
            if ((piece->n > 1) != kind)
                continue;
            const int32_t n = blocks_before(limits, kv_len_of(step, piece));
            a->kv_len[seq] = kv_len_of(step, piece);
            a->block_indptr[seq++] = n_blocks;
            memcpy(a->block_id + n_blocks, step->block_ids + step->first_block[piece->seq],
                   (size_t)n * sizeof *a->block_id);
            n_blocks += n;
        }
        for (; !kind && seq < pass->shape.n_decodes; seq++) { /* padding */
            a->kv_len[seq] = 0;
            a->block_indptr[seq] = n_blocks;
        }
    }
    a->block_indptr[seq] = n_blocks;
    memcpy(a->q_indptr, pass->q_indptr, ((size_t)pass->shape.n_prefills + 1) * sizeof *a->q_indptr);
    return n_blocks;
}

static void write_padding(const struct pass_shape *shape, int32_t n_rows, int32_t n_logit_rows,
                          struct pass_arrays *a)
{
    for (int32_t row = n_rows; row < shape->n_rows; row++) {
        a->token_id[row] = a->position[row] = 0;
        a->slot[row] = -1;
    }
    for (int32_t i = n_logit_rows; i < shape->n_logit_rows; i++)
        a->logit_row[i] = -1;
}

size_t pass_write(const struct pass_limits *limits, const struct ifl_engine_step *step,
                  struct pass *pass, void *base)
{
    const struct pass_shape *shape = &pass->shape;
    const struct attn_prefill_plan *prefill = &pass->prefill;
    struct pass_arrays a;
    const size_t head_bytes = pass_lay_out(limits, shape, base, &a);
    int32_t n_rows = 0, n_logit_rows = 0;
    for (int32_t i = 0; i < pass->n_pieces; i++) {
        const struct pass_piece *piece = &pass->pieces[i];
        write_rows(limits, step, piece, pass->row_of[i], &a);
        n_rows += piece->n;
        for (int32_t n = piece->n_logit_rows; n > 0; n--)
            a.logit_row[n_logit_rows++] = pass->row_of[i] + piece->n - n;
    }
    write_padding(shape, n_rows, n_logit_rows, &a);
    const int32_t n_blocks = write_seqs(limits, step, pass, &a);
    attn_decode_plan(&a.decode, limits->n_shares, limits->window_tokens, a.kv_len,
                     shape->n_decodes);
    pass->n_merges = *a.decode.n_merges;
    memcpy(a.items, prefill->items, (size_t)shape->n_items * sizeof *a.items);
    memcpy(a.tile_merges, prefill->merges, (size_t)shape->n_tile_merges * sizeof *a.tile_merges);
    return head_bytes + (size_t)n_blocks * sizeof *a.block_id;
}
