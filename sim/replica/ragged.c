#include "replica/ragged.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "base/array.h"

int ragged_reserve(struct ragged *ragged, size_t n)
{
    if (!ragged->options.on || n <= ragged->cap)
        return 0;
    if (array_grow(&ragged->of, ragged->n, n, sizeof *ragged->of) < 0 ||
        array_grow(&ragged->finished, ragged->n_finished, n, sizeof *ragged->finished) < 0)
        return IFL_E_NOMEM;
    ragged->cap = n;
    return 0;
}

void ragged_destroy(struct ragged *ragged)
{
    free(ragged->of);
    free(ragged->finished);
}

/* ---- members ---- */

/* The first of the members that started at `start_serial` or later. */
static size_t place_of(const struct ragged *ragged, uint64_t start_serial)
{
    size_t from = 0, to = ragged->n;
    while (from < to) {
        const size_t at = from + (to - from) / 2;
        if (ragged->of[at].r->pub.start_serial < start_serial)
            from = at + 1;
        else
            to = at;
    }
    return from;
}

struct ragged_member *ragged_find(const struct ragged *ragged, const struct live_request *r)
{
    struct ragged_member *m = &ragged->of[place_of(ragged, r->pub.start_serial)];
    ifl_require(m < ragged->of + ragged->n && m->r == r);
    return m;
}

static const struct acceptance *accepts_of(const struct ragged *ragged,
                                           const struct live_request *r)
{
    const struct ragged_options *options = &ragged->options;
    if (r->accept_percent >= 0)
        return &options->of_percent[r->accept_percent];
    const struct acceptance *own = options->of_client ? options->of_client[r->pub.client] : NULL;
    return own ? own : options->accepts;
}

static uint64_t key_of(const struct ragged *ragged, const struct live_request *r)
{
    return ifl_mix(ifl_mix(ifl_mix(ragged->options.seed) ^ (uint64_t)IFL_DRAW_ACCEPT) ^
                   r->pub.serial);
}

void ragged_add(struct ragged *ragged, struct live_request *r, struct kv_block block)
{
    size_t at = ragged->n;
    ifl_assert(ragged->n < ragged->cap && r->pub.n_seqs == 1);
    while (at > 0 && ragged->of[at - 1].r->pub.start_serial > r->pub.start_serial)
        at--;
    memmove(&ragged->of[at + 1], &ragged->of[at], (ragged->n - at) * sizeof *ragged->of);
    ragged->n++;
    ragged->prepared = false;
    ragged->of[at] = (struct ragged_member){
        .r = r,
        .accepts = accepts_of(ragged, r),
        .key = key_of(ragged, r),
        .last_token_ns = r->last_token_ns,
        .max_itl_ns = r->max_itl_ns,
        .n_computed = r->pub.stale.n_computed,
        .n_out = r->pub.stale.n_out,
        .n_output = r->n_output,
        .capacity = r->pub.stale.n_blocks * block.tokens,
        .n_draft = (int16_t)ragged_cut(ragged, ragged->n_all, r->pub.stale.n_computed),
    };
}

void ragged_remove(struct ragged *ragged, const struct live_request *r)
{
    struct ragged_member *m = ragged_find(ragged, r);
    const size_t n_behind = ragged->n - (size_t)(m - ragged->of) - 1;
    memmove(m, m + 1, n_behind * sizeof *m);
    ragged->n--;
    ragged->prepared = false;
    if (ragged->next_finished < ragged->n_finished && ragged->finished[ragged->next_finished] == r)
        ragged->next_finished++;
}

void ragged_catch_up(const struct ragged *ragged, struct live_request *r)
{
    const struct ragged_member *m = ragged_find(ragged, r);
    struct ifl_counts *counts = &r->pub.stale;
    if (counts->n_out == m->n_out)
        return;
    counts->n_computed = m->n_computed;
    counts->n_tokens = m->n_computed + 1;
    counts->n_out = m->n_out;
    counts->last_end_ns = r->last_token_ns = m->last_token_ns;
    r->max_itl_ns = m->max_itl_ns;
}

/* ---- guesses ---- */

/* The step may go up to the last but one position of the longest sequence (vLLM,
 * v1/core/sched/scheduler.py: max_model_len - 1 - num_computed_tokens). */
int32_t ragged_cut(const struct ragged *ragged, int32_t n, int32_t n_computed)
{
    const int32_t room = ragged->options.max_model_tokens - 2 - n_computed;
    const int32_t most = ifl_min(ragged->options.max_drafts, ifl_max(room, 0));
    return ifl_max(ifl_min(n, most), 0);
}

void ragged_set_drafts(struct ragged *ragged, int32_t n)
{
    for (size_t i = 0; i < ragged->n && ragged->n_all != n; i++)
        ragged_set_draft(ragged, &ragged->of[i], n);
    ragged->n_all = n;
}

static inline int32_t lacks(const struct ragged *ragged, const struct ragged_member *m,
                            struct kv_block block)
{
    const int32_t more = ragged_holds(ragged, m->n_computed, m->n_draft) - m->capacity;
    return more > 0 ? kv_blocks_for(more, block) : 0;
}

void ragged_note_blocks(struct ragged *ragged, const struct live_request *r, struct kv_block block)
{
    struct ragged_member *m = ragged_find(ragged, r);
    ragged->n_lacking -= lacks(ragged, m, block);
    m->capacity = r->pub.stale.n_blocks * block.tokens;
    ragged->n_lacking += lacks(ragged, m, block);
}

IFL_HOT int32_t ragged_prepare(struct ragged *ragged, struct kv_block block)
{
    if (ragged->prepared)
        return ragged->n_lacking;
    int32_t n_tokens = 0, n_seqs = 0, most = 0, n_blocks = 0;
    bool may_finish = false;
    for (size_t i = 0; i < ragged->n; i++) {
        struct ragged_member *m = &ragged->of[i];
        m->n_draft = (int16_t)ragged_cut(ragged, m->n_draft, m->n_computed);
        n_tokens += m->n_draft;
        n_seqs += m->n_draft > 0;
        most = ifl_max(most, m->n_draft);
        may_finish |= m->n_output - m->n_out <= 1 + m->n_draft;
        n_blocks += lacks(ragged, m, block);
    }
    ragged->n_draft_tokens = n_tokens;
    ragged->n_draft_seqs = n_seqs;
    ragged->most_drafts = most;
    ragged->may_finish = may_finish;
    ragged->prepared = true;
    return ragged->n_lacking = n_blocks;
}

/* ---- a tick ---- */

int32_t ragged_drawn(const struct ragged_member *m)
{
    const struct acceptance *accepts = m->accepts;
    const int32_t most = ifl_min(m->n_draft, accepts->depth);
    int32_t n = 0;
    while (n < most) {
        const uint64_t below = accepts->below[n];
        const bool sure = below == UINT64_C(1) << 63;
        if (below == 0 || (!sure && ifl_mix(m->key ^ (uint64_t)(m->n_out + n)) >> 1 >= below))
            break;
        n++;
    }
    return n;
}

/* Returns the tokens that the member gets. */
static inline int32_t emit(struct ragged *ragged, struct ragged_member *m, int32_t n_held)
{
    const int32_t left = m->n_output - m->n_out;
    const int32_t n = ifl_min(n_held + 1, left);
    ragged->sums.n_with[m->n_draft]++;
    ragged->sums.n_held[n_held]++;
    ragged->sums.n_drafted += m->n_draft;
    ragged->n_step_accepted += n_held;
    m->n_emitted = (int16_t)n;
    m->n_computed += n;
    m->n_out += n;
    if (n == left) {
        m->r->n_step_draft = m->n_draft;
        m->r->n_step_emitted = n;
        ragged->finished[ragged->n_finished++] = m->r;
    }
    return n;
}

/* What ragged_prepare would find behind the tick, while no member leaves and none comes. */
struct next_tick {
    int32_t n_lacking;
    bool may_finish, cuts;
};

static inline void look_ahead(const struct ragged *ragged, const struct ragged_member *m,
                              struct kv_block block, struct next_tick *next)
{
    next->n_lacking += lacks(ragged, m, block);
    next->may_finish |= m->n_output - m->n_out <= 1 + m->n_draft;
    next->cuts |= ragged->options.max_model_tokens - 2 - m->n_computed < m->n_draft;
}

static void note_next(struct ragged *ragged, const struct next_tick *next)
{
    ragged->n_lacking = next->n_lacking;
    ragged->may_finish = next->may_finish;
    ragged->prepared = ragged->prepared && !next->cuts;
}

IFL_HOT void ragged_tick(struct ragged *ragged, struct ragged_tick *tick)
{
    const int64_t shared_ns = tick->end_ns - tick->last_end_ns;
    struct next_tick next = {0};
    int64_t n_emitted = 0;
    tick->n_own_gaps = 0;
    ragged->n_finished = ragged->next_finished = 0;
    ragged->n_step_accepted = 0;
    for (size_t i = 0; i < ragged->n; i++) {
        struct ragged_member *m = &ragged->of[i];
        const int32_t n_held = tick->n_accepted ? tick->n_accepted[m->work_at] : ragged_drawn(m);
        const int64_t gap_ns = tick->end_ns - m->last_token_ns;
        n_emitted += emit(ragged, m, n_held);
        m->last_token_ns = tick->end_ns;
        m->max_itl_ns = ifl_max(m->max_itl_ns, gap_ns);
        if (gap_ns != shared_ns)
            tick->own_gap_ns[tick->n_own_gaps++] = gap_ns;
        look_ahead(ragged, m, tick->block, &next);
    }
    note_next(ragged, &next);
    ragged->sums.n_steps += (int64_t)ragged->n;
    ragged->sums.n_emitted += n_emitted;
    tick->n_emitted = n_emitted;
}
