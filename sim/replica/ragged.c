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
        array_grow(&ragged->n_out, ragged->n, n, sizeof *ragged->n_out) < 0 ||
        array_grow(&ragged->look_at, ragged->n, n, sizeof *ragged->look_at) < 0 ||
        array_grow(&ragged->n_step, ragged->n, n, sizeof *ragged->n_step) < 0 ||
        array_grow(&ragged->lacking, ragged->n_listed, n, sizeof *ragged->lacking) < 0 ||
        array_grow(&ragged->finished, ragged->n_finished, n, sizeof *ragged->finished) < 0)
        return IFL_E_NOMEM;
    ragged->cap = n;
    return 0;
}

void ragged_destroy(struct ragged *ragged)
{
    void *const arrays[] = {ragged->of,     ragged->n_out,   ragged->look_at,
                            ragged->n_step, ragged->lacking, ragged->finished};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
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
    const size_t likely = ragged->likely;
    if (likely < ragged->n && ragged->of[likely].r == r)
        return &ragged->of[likely];
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

/* ---- what the next tick brings ---- */

/* Guesses that surely hold, -1 where a rate is neither 0 nor 1. */
static int32_t sure_of(const struct acceptance *accepts, int32_t n_draft)
{
    const int32_t most = ifl_min(n_draft, accepts->depth);
    for (int32_t n = 0; n < most; n++) {
        if (accepts->below[n] == 0)
            return n;
        if (accepts->below[n] != acceptance_below(1))
            return -1;
    }
    return most;
}

static int32_t lacks(const struct ragged *ragged, const struct ragged_member *m, int32_t n_out,
                     struct kv_block block)
{
    const int32_t most = ragged->options.max_model_tokens - m->capacity;
    const int32_t more = ifl_min(n_out + 1 - m->lacks_at, most);
    return more > 0 ? kv_blocks_for(more, block) : 0;
}

/* Sets the tokens of the answer with which the next tick of member i is no longer like the last
 * one. */
static void set_look_at(struct ragged *ragged, size_t i)
{
    const struct ragged_options *options = &ragged->options;
    struct ragged_member *m = &ragged->of[i];
    const int32_t finishes = m->n_output - 1 - m->n_draft;
    const int32_t is_cut =
        m->n_draft > 0 ? options->max_model_tokens - 1 - m->n_before - m->n_draft : INT32_MAX;
    m->lacks_at = m->capacity - m->n_before - m->n_draft - options->lookahead_tokens;
    ragged->look_at[i] = ifl_min(finishes, is_cut);
    if (m->capacity < options->max_model_tokens)
        ragged->look_at[i] = ifl_min(ragged->look_at[i], m->lacks_at);
}

/* What member i may do with the next tick, added to the sums. */
static void look(struct ragged *ragged, size_t i, struct kv_block block)
{
    struct ragged_member *m = &ragged->of[i];
    m->n_lacking = lacks(ragged, m, ragged->n_out[i], block);
    m->may_finish = m->n_output - ragged->n_out[i] <= 1 + m->n_draft;
    ragged->n_lacking += m->n_lacking;
    ragged->n_may_finish += m->may_finish;
}

/* ---- even ticks ---- */

static void add_even(const struct ragged *ragged, const struct ragged_member *m,
                     struct ragged_sums *sums)
{
    const int64_t n = ragged->n_even - m->since_even;
    if (n == 0)
        return;
    sums->n_with[m->n_draft] += n;
    sums->n_held[m->n_sure] += n;
}

struct ragged_sums ragged_sums(const struct ragged *ragged)
{
    struct ragged_sums sums = ragged->sums;
    for (size_t i = 0; i < ragged->n; i++)
        add_even(ragged, &ragged->of[i], &sums);
    return sums;
}

/* ---- the sums of all members ---- */

static void count_in(struct ragged *ragged, size_t i, struct kv_block block)
{
    struct ragged_member *m = &ragged->of[i];
    m->n_sure = (int16_t)sure_of(m->accepts, m->n_draft);
    m->since_even = ragged->n_even;
    ragged->n_step[i] = 1 + ifl_max(m->n_sure, 0);
    set_look_at(ragged, i);
    ragged->n_drawn += m->n_sure < 0;
    ragged->n_draft_tokens += m->n_draft;
    ragged->n_draft_seqs += m->n_draft > 0;
    if (m->n_draft > ragged->most_drafts) {
        ragged->most_drafts = m->n_draft;
        ragged->n_with_most = 0;
    }
    ragged->n_with_most += m->n_draft == ragged->most_drafts;
    look(ragged, i, block);
}

static void count_out(struct ragged *ragged, size_t i)
{
    struct ragged_member *m = &ragged->of[i];
    add_even(ragged, m, &ragged->sums);
    ragged->n_drawn -= m->n_sure < 0;
    ragged->n_draft_tokens -= m->n_draft;
    ragged->n_draft_seqs -= m->n_draft > 0;
    ragged->n_with_most -= m->n_draft == ragged->most_drafts;
    ragged->n_lacking -= m->n_lacking;
    ragged->n_may_finish -= m->may_finish;
    ragged->prepared = ragged->prepared && ragged->n_with_most > 0;
}

void ragged_set_draft(struct ragged *ragged, struct ragged_member *m, int32_t n)
{
    const int32_t n_draft = ragged_cut(ragged, n, ragged_computed(ragged, m));
    if (n_draft == m->n_draft)
        return;
    add_even(ragged, m, &ragged->sums);
    m->since_even = ragged->n_even;
    m->n_draft = (int16_t)n_draft;
    ragged->prepared = false;
}

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

int32_t ragged_prepare(struct ragged *ragged, struct kv_block block)
{
    if (ragged->prepared)
        return ragged->n_lacking;
    ragged->n_drawn = 0;
    ragged->n_draft_tokens = ragged->n_draft_seqs = ragged->n_lacking = ragged->n_may_finish = 0;
    ragged->most_drafts = ragged->n_with_most = 0;
    for (size_t i = 0; i < ragged->n; i++) {
        struct ragged_member *m = &ragged->of[i];
        ragged_set_draft(ragged, m, m->n_draft);
        add_even(ragged, m, &ragged->sums);
        count_in(ragged, i, block);
    }
    ragged->prepared = true;
    ragged->listed = false;
    return ragged->n_lacking;
}

/* ---- members come and go ---- */

/* Makes room for one at `at`, or closes the gap there. */
static void move_members(struct ragged *ragged, size_t to, size_t from, size_t n)
{
    ragged->listed = false;
    memmove(&ragged->of[to], &ragged->of[from], n * sizeof *ragged->of);
    memmove(&ragged->n_out[to], &ragged->n_out[from], n * sizeof *ragged->n_out);
    memmove(&ragged->look_at[to], &ragged->look_at[from], n * sizeof *ragged->look_at);
    memmove(&ragged->n_step[to], &ragged->n_step[from], n * sizeof *ragged->n_step);
}

void ragged_add(struct ragged *ragged, struct live_request *r, struct kv_block block)
{
    const struct ifl_counts *counts = &r->pub.stale;
    size_t at = ragged->n;
    ifl_assert(ragged->n < ragged->cap && r->pub.n_seqs == 1);
    while (at > 0 && ragged->of[at - 1].r->pub.start_serial > r->pub.start_serial)
        at--;
    move_members(ragged, at + 1, at, ragged->n - at);
    ragged->n++;
    ragged->n_out[at] = counts->n_out;
    ragged->of[at] = (struct ragged_member){
        .r = r,
        .accepts = accepts_of(ragged, r),
        .key = key_of(ragged, r),
        .n_before = counts->n_computed - counts->n_out,
        .n_output = r->n_output,
        .capacity = counts->n_blocks * block.tokens,
        .n_draft = (int16_t)ragged_cut(ragged, ragged->n_all, counts->n_computed),
        .since_even = ragged->n_even,
    };
    count_in(ragged, at, block);
}

void ragged_remove(struct ragged *ragged, const struct live_request *r)
{
    const size_t at = (size_t)(ragged_find(ragged, r) - ragged->of);
    count_out(ragged, at);
    move_members(ragged, at, at + 1, ragged->n - at - 1);
    ragged->n--;
    if (ragged->next_finished < ragged->n_finished && ragged->finished[ragged->next_finished] == r)
        ragged->next_finished++;
}

void ragged_catch_up(const struct ragged *ragged, struct live_request *r)
{
    const struct ragged_member *m = ragged_find(ragged, r);
    struct ifl_counts *counts = &r->pub.stale;
    counts->n_out = ragged->n_out[m - ragged->of];
    counts->n_computed = ragged_computed(ragged, m);
    counts->n_tokens = counts->n_computed + 1;
}

void ragged_note_blocks(struct ragged *ragged, const struct live_request *r, struct kv_block block)
{
    struct ragged_member *m = ragged_find(ragged, r);
    const size_t i = (size_t)(m - ragged->of);
    ragged->n_lacking -= m->n_lacking;
    m->capacity = r->pub.stale.n_blocks * block.tokens;
    set_look_at(ragged, i);
    m->n_lacking = lacks(ragged, m, ragged->n_out[i], block);
    ragged->n_lacking += m->n_lacking;
}

/* ---- a tick ---- */

static inline uint64_t draw(const struct ragged_member *m, int32_t n_out)
{
    return ifl_mix(m->key ^ (uint64_t)n_out) >> 1;
}

/* Guesses that hold, as drawn. Few are drawn at once: which one fails first cannot be foreseen. */
static inline int32_t drawn(const struct ragged_member *m, int32_t n_out)
{
    enum { FEW = 4 };
    const struct acceptance *accepts = m->accepts;
    const int32_t most = ifl_min(m->n_draft, accepts->depth);
    int32_t n = 0;
    if (most <= FEW) {
        int32_t holds = 1;
        for (int32_t i = 0; i < most; i++) {
            holds &= draw(m, n_out + i) < accepts->below[i];
            n += holds;
        }
        return n;
    }
    while (n < most && draw(m, n_out + n) < accepts->below[n])
        n++;
    return n;
}

int32_t ragged_drawn(const struct ragged *ragged, const struct ragged_member *m)
{
    return drawn(m, ragged->n_out[m - ragged->of]);
}

/* What each member's step yields, unless it ends the answer. */
IFL_HOT static void draw_steps(struct ragged *ragged, const int32_t *n_accepted)
{
    for (size_t i = 0; i < ragged->n; i++) {
        const struct ragged_member *m = &ragged->of[i];
        const int32_t n_held = n_accepted ? n_accepted[m->work_at] : drawn(m, ragged->n_out[i]);
        ragged->sums.n_with[m->n_draft]++;
        ragged->sums.n_held[n_held]++;
        ragged->n_step[i] = 1 + n_held;
    }
}

/* Every member has what its step yields. Returns the sum; *looks: some member came to look_at. */
IFL_HOT static int64_t add_steps(struct ragged *ragged, bool *looks)
{
    int32_t *restrict n_out = ragged->n_out;
    const int32_t *restrict n_step = ragged->n_step, *restrict look_at = ragged->look_at;
    int32_t n_emitted = 0, any = 0;
    for (size_t i = 0; i < ragged->n; i++) {
        n_out[i] += n_step[i];
        n_emitted += n_step[i];
        any |= n_out[i] >= look_at[i];
    }
    *looks = any != 0;
    return n_emitted;
}

/* Member i has its last token. Returns how many its step yielded beyond. */
static int32_t finish(struct ragged *ragged, size_t i)
{
    const struct ragged_member *m = &ragged->of[i];
    const int32_t n_beyond = ragged->n_out[i] - m->n_output;
    ragged->n_out[i] = m->n_output;
    live_own(m->r)->n_step_draft = m->n_draft;
    live_own(m->r)->n_step_emitted = ragged->n_step[i] - n_beyond;
    ragged->finished[ragged->n_finished++] = m->r;
    return n_beyond;
}

/* Those that came to look_at. Returns tokens that were none. */
IFL_HOT static int32_t look_closer(struct ragged *ragged, struct kv_block block)
{
    const int32_t room = ragged->options.max_model_tokens - 2;
    int32_t n_beyond = 0;
    for (size_t i = 0; i < ragged->n; i++) {
        const struct ragged_member *m = &ragged->of[i];
        if (ragged->n_out[i] < ragged->look_at[i])
            continue;
        if (ragged->n_out[i] >= m->n_output)
            n_beyond += finish(ragged, i);
        look(ragged, i, block);
        if (m->n_lacking > 0)
            ragged->lacking[ragged->n_listed++] = (uint32_t)i;
        ragged->prepared = ragged->prepared && room - ragged_computed(ragged, m) >= m->n_draft;
    }
    return n_beyond;
}

IFL_HOT int64_t ragged_tick(struct ragged *ragged, struct kv_block block, const int32_t *n_accepted)
{
    bool looks;
    ragged->told = ragged->told || n_accepted;
    const bool even = !ragged->told && ragged->n_drawn == 0;
    if (even)
        ragged->n_even++;
    else
        draw_steps(ragged, n_accepted);
    int64_t n_emitted = add_steps(ragged, &looks);
    ragged->n_step_accepted = (int32_t)(n_emitted - (int64_t)ragged->n);
    ragged->n_finished = ragged->next_finished = 0;
    ragged->n_lacking = ragged->n_may_finish = 0;
    ragged->n_listed = 0;
    ragged->listed = true;
    if (looks)
        n_emitted -= look_closer(ragged, block);
    ragged->sums.n_steps += (int64_t)ragged->n;
    ragged->sums.n_drafted += ragged->n_draft_tokens;
    ragged->sums.n_emitted += n_emitted;
    return n_emitted;
}
