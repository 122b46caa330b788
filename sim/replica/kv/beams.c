#include "replica/kv/beams.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/random.h"

int32_t beam_parent(const struct beam_search *search, uint64_t request, int32_t n_out, int32_t seq,
                    int32_t n_seqs)
{
    ifl_assert(seq >= 0 && seq < n_seqs);
    const uint64_t index = ((uint64_t)n_out << 16 | (uint64_t)seq) << 1;
    if (ifl_uniform(ifl_draw(search->seed, IFL_DRAW_BEAM, request, index)) >= search->fork_frac)
        return seq;
    const uint64_t draw = ifl_draw(search->seed, IFL_DRAW_BEAM, request, index | 1);
    return (int32_t)(draw % (uint64_t)n_seqs);
}

/* ---- tables: one row per column, behind the scratch rows ---- */

enum { ROW_BEFORE, ROW_OLD, ROW_LOST, ROW_PARENTS, N_SCRATCH };

static int32_t *row(const struct kv_beams *b, int32_t i)
{
    return b->at + (int64_t)i * b->n_seqs;
}

static int32_t *column(const struct kv_beams *b, int32_t i)
{
    return row(b, N_SCRATCH + i);
}

static int reserve(struct kv_beams *b, int32_t n_columns)
{
    const int64_t need = (int64_t)(N_SCRATCH + n_columns) * b->n_seqs;
    if (need <= b->cap)
        return 0;
    const int64_t cap = 2 * need;
    int32_t *at = cap < INT32_MAX ? realloc(b->at, (size_t)cap * sizeof *at) : NULL;
    if (!at)
        return IFL_E_NOMEM;
    b->at = at;
    b->cap = (int32_t)cap;
    return 0;
}

static bool has(const int32_t *places, int32_t n, int32_t place)
{
    for (int32_t i = 0; i < n; i++)
        if (places[i] == place)
            return true;
    return false;
}

static int32_t distinct(const int32_t *places, int32_t n)
{
    int32_t n_distinct = 0;
    for (int32_t i = 0; i < n; i++)
        n_distinct += !has(places, i, places[i]);
    return n_distinct;
}

/* Two blocks change places. */
static void exchange(struct kv_beams *b, uint32_t *blocks, int32_t p, int32_t q)
{
    const uint32_t block = blocks[p];
    int32_t *at = column(b, 0), *const end = column(b, b->n_columns);
    blocks[p] = blocks[q];
    blocks[q] = block;
    for (; at < end; at++)
        *at = *at == p ? q : *at == q ? p : *at;
}

/* A leading column in which all tables have the same block needs no row. */
static void move_common_forwards(struct kv_beams *b, uint32_t *blocks)
{
    while (b->n_columns > 0 && distinct(column(b, 0), b->n_seqs) == 1) {
        exchange(b, blocks, column(b, 0)[0], b->n_common);
        b->n_common++;
        b->n_columns--;
        memmove(column(b, 0), column(b, 1),
                (size_t)b->n_columns * (size_t)b->n_seqs * sizeof *b->at);
    }
}

/* ---- creating and destroying ---- */

int kv_beams_begin(struct kv_beams *b, int32_t n_seqs, int32_t n_common, int32_t n_columns)
{
    ifl_assert(n_seqs > 0 && n_common >= 0 && n_columns >= 0);
    b->n_seqs = n_seqs;
    b->n_common = n_common;
    b->n_columns = n_columns;
    b->n_used = n_common + n_columns * n_seqs;
    b->n_added = 0;
    if (reserve(b, n_columns + 1) < 0)
        return IFL_E_NOMEM;
    for (int32_t i = 0; i < n_columns * n_seqs; i++)
        column(b, 0)[i] = n_common + i;
    return 0;
}

void kv_beams_end(struct kv_beams *b)
{
    b->n_seqs = b->n_common = b->n_columns = b->n_used = b->n_added = 0;
}

int32_t kv_beams_last(const struct kv_beams *b)
{
    return b->n_columns > 0 ? distinct(column(b, b->n_columns - 1), b->n_seqs) : b->n_common > 0;
}

IFL_APART int32_t kv_beams_need(const struct kv_beams *b, bool full)
{
    return full ? b->n_seqs : b->n_seqs - kv_beams_last(b);
}

/* ---- a step ---- */

static void append_blocks(struct kv_beams *b)
{
    for (int32_t seq = 0; seq < b->n_seqs; seq++)
        column(b, b->n_columns)[seq] = b->n_used++;
    b->n_columns++;
}

static void copy_shared(struct kv_beams *b)
{
    int32_t *before = row(b, ROW_BEFORE);
    if (b->n_columns == 0) {
        b->n_common--;
        b->n_columns++;
        for (int32_t seq = 0; seq < b->n_seqs; seq++)
            column(b, 0)[seq] = b->n_common;
    }
    int32_t *last = column(b, b->n_columns - 1);
    memcpy(before, last, (size_t)b->n_seqs * sizeof *last);
    for (int32_t seq = 1; seq < b->n_seqs; seq++)
        if (has(before, seq, before[seq]))
            last[seq] = b->n_used++;
}

int kv_beams_step(struct kv_beams *b, bool full)
{
    const int32_t n_before = b->n_used;
    if (reserve(b, b->n_columns + 1) < 0)
        return IFL_E_NOMEM;
    (full ? append_blocks : copy_shared)(b);
    b->n_added = b->n_used - n_before;
    return 0;
}

int32_t kv_beams_copied(const struct kv_beams *b, int32_t place)
{
    ifl_assert(place >= b->n_used - b->n_added && place < b->n_used);
    const int32_t *last = column(b, b->n_columns - 1);
    for (int32_t seq = 0; seq < b->n_seqs; seq++)
        if (last[seq] == place)
            return row(b, ROW_BEFORE)[seq];
    return -1;
}

void kv_beams_undo(struct kv_beams *b, bool full, uint32_t *blocks)
{
    b->n_used -= b->n_added;
    b->n_added = 0;
    if (full) {
        b->n_columns--;
        return;
    }
    memcpy(column(b, b->n_columns - 1), row(b, ROW_BEFORE), (size_t)b->n_seqs * sizeof *b->at);
    move_common_forwards(b, blocks);
}

/* ---- a fork ---- */

/* Places of a column that no table has any more, from the last to the first. */
static int32_t find_lost(const struct kv_beams *b, const int32_t *now)
{
    const int32_t *old = row(b, ROW_OLD);
    int32_t *lost = row(b, ROW_LOST), n = 0;
    for (int32_t seq = 0; seq < b->n_seqs; seq++) {
        if (has(now, b->n_seqs, old[seq]) || has(lost, n, old[seq]))
            continue;
        int32_t i = n++;
        for (; i > 0 && lost[i - 1] < old[seq]; i--)
            lost[i] = lost[i - 1];
        lost[i] = old[seq];
    }
    return n;
}

static int32_t fork_column(struct kv_beams *b, int32_t i, const int32_t *parents, uint32_t *blocks)
{
    int32_t *now = column(b, i), *old = row(b, ROW_OLD);
    memcpy(old, now, (size_t)b->n_seqs * sizeof *now);
    for (int32_t seq = 0; seq < b->n_seqs; seq++)
        now[seq] = old[parents[seq]];
    const int32_t n_lost = find_lost(b, now);
    for (int32_t k = 0; k < n_lost; k++)
        exchange(b, blocks, row(b, ROW_LOST)[k], --b->n_used);
    return n_lost;
}

IFL_FOR_ASSERTS static inline bool are_seqs(const int32_t *parents, int32_t n_seqs)
{
    for (int32_t i = 0; i < n_seqs; i++)
        if (parents[i] < 0 || parents[i] >= n_seqs)
            return false;
    return true;
}

struct kv_beams_lost kv_beams_fork(struct kv_beams *b, const int32_t *parents, uint32_t *blocks)
{
    ifl_assert(are_seqs(parents, b->n_seqs));
    struct kv_beams_lost lost = {0};
    b->n_added = 0;
    for (int32_t i = 0; i < b->n_columns; i++) {
        lost.n_last = fork_column(b, i, parents, blocks);
        lost.n += lost.n_last;
    }
    move_common_forwards(b, blocks);
    return lost;
}

int32_t kv_beams_at(const struct kv_beams *b, int32_t seq, int32_t i)
{
    ifl_assert(seq >= 0 && seq < b->n_seqs && i >= 0 && i < b->n_common + b->n_columns);
    return i < b->n_common ? i : column(b, i - b->n_common)[seq];
}

int32_t *kv_beams_parents(struct kv_beams *b)
{
    return row(b, ROW_PARENTS);
}
