#include "record/lives.h"

#include <stdlib.h>

#include "record/early_lives.h"
#include "tables/sort.h"

int lives_open(struct lives *lives, size_t cap, bool numbered, struct ifl_error *error)
{
    const size_t n = cap ? cap : 1;
    *lives = (struct lives){.cap = cap, .numbered = numbered};
    if (numbered)
        return early_open(&lives->early, error);
    lives->at = malloc(n * sizeof *lives->at);
    lives->nth = calloc(n, sizeof *lives->nth);
    lives->rares = malloc(n * sizeof *lives->rares);
    return lives->at && lives->nth && lives->rares ? IFL_OK : ifl_fail_nomem(error);
}

void lives_close(struct lives *lives)
{
    early_close(&lives->early);
    free(lives->at);
    free(lives->nth);
    free(lives->rares);
    free(lives->order);
}

static struct life *find_place(struct lives *lives, uint64_t request_id)
{
    size_t place = request_id;
    if (IFL_RARE(request_id >= lives->cap || lives->nth[place] > 0)) {
        while (lives->nth[lives->spare] > 0)
            lives->spare++;
        place = lives->spare;
    }
    lives->nth[place] = (uint32_t)lives->n;
    return &lives->at[place];
}

const struct rare life_has_none = {.ttft_slo_ns = IFL_NEVER, .tpot_slo_ns = IFL_NEVER};

static bool has_rare(const struct ifl_request_record *record)
{
    return record->stalled_ns != 0 || record->ttft_slo_ns != IFL_NEVER ||
           record->tpot_slo_ns != IFL_NEVER || record->cached_tokens != 0 ||
           record->preemptions != 0 || record->swap_outs != 0 || record->wasted_steps != 0 ||
           record->wasted_tokens != 0 || record->adapter != 0 || record->is_retry ||
           record->has_two_replicas || record->has_tiers || record->n_migrations != 0;
}

IFL_APART static void fill_rare(const struct ifl_request_record *record, struct rare *rare)
{
    *rare = (struct rare){.stalled_ns = record->stalled_ns,
                          .stalled_prefill_ns = record->stalled_prefill_ns,
                          .ttft_slo_ns = record->ttft_slo_ns,
                          .tpot_slo_ns = record->tpot_slo_ns,
                          .cached_tokens = record->cached_tokens,
                          .preemptions = record->preemptions,
                          .swap_outs = record->swap_outs,
                          .wasted_tokens = record->wasted_tokens,
                          .wasted_steps = record->wasted_steps,
                          .adapter = record->adapter,
                          .is_retry = record->is_retry,
                          .has_two_replicas = record->has_two_replicas,
                          .prefill_replica = record->prefill_replica,
                          .prefilled_ns = record->prefilled_ns,
                          .move_start_ns = record->move_start_ns,
                          .move_end_ns = record->move_end_ns,
                          .moving_ns = record->moving_ns,
                          .moving_hidden_ns = record->moving_hidden_ns,
                          .resumed_ns = record->resumed_ns,
                          .load_ns = record->load_ns,
                          .load_exposed_ns = record->load_exposed_ns,
                          .n_migrations = record->n_migrations,
                          .migrating_ns = record->migrating_ns,
                          .down_ns = record->down_ns};
    for (int t = 0; t < IFL_N_TIERS; t++)
        rare->tier_tokens[t] = record->tier_tokens[t];
}

IFL_HOT static void fill(const struct ifl_request_record *record, struct life *life,
                         struct rare *rare)
{
    const bool rarely = has_rare(record);
    if (IFL_RARE(rarely))
        fill_rare(record, rare);
    *life = (struct life){.request_id = record->request_id,
                          .arrival_ns = record->arrival_ns,
                          .first_scheduled_ns = record->first_scheduled_ns,
                          .first_token_ns = record->first_token_ns,
                          .end_ns =
                              record->status == IFL_FINISHED ? record->finish_ns : record->left_ns,
                          .max_itl_ns = record->max_itl_ns < 0 ? IFL_NEVER : record->max_itl_ns,
                          .rare = rarely ? rare : &life_has_none,
                          .prompt_tokens = record->prompt_tokens,
                          .output_tokens = record->output_tokens,
                          .replica = record->replica,
                          .status = (uint8_t)record->status};
}

const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record,
                             struct ifl_error *error)
{
    ifl_require(lives->n < lives->cap);
    lives->n++;
    if (lives->numbered) {
        const size_t place = early_place(&lives->early, record->serial, error);
        if (place == EARLY_NOMEM)
            return NULL;
        fill(record, &lives->early.at[place], &lives->early.rares[place]);
        return &lives->early.at[place];
    }
    struct life *life = find_place(lives, record->request_id);
    fill(record, life, &lives->rares[lives->n_rares]);
    lives->n_rares += life->rare != &life_has_none;
    return life;
}

/* ---- order ---- */

static bool comes_before(const struct life *a, const struct life *b)
{
    return a->arrival_ns < b->arrival_ns ||
           (a->arrival_ns == b->arrival_ns && a->request_id < b->request_id);
}

/* The order of the indices; false if it is not the order of arrival. */
static bool order_by_place(const struct lives *lives, uint32_t *order)
{
    const struct life *last = NULL;
    bool in_order = true;
    for (size_t place = 0, n = 0; place < lives->cap && in_order; place++) {
        const struct life *life = &lives->at[place];
        if (lives->nth[place] == 0)
            continue;
        in_order = !last || comes_before(last, life);
        order[n++] = (uint32_t)place;
        last = life;
    }
    return in_order;
}

/* Sorts lives [from, to) of the order, which arrived at the same time, by request_id. */
static int order_ties(const struct life *lives, uint32_t *order, int64_t *key, size_t from,
                      size_t to, struct ifl_error *error)
{
    for (size_t i = from; i < to; i++)
        key[i] = life_id_key(&lives[order[i]]);
    return sort_by_key(key + from, order + from, to - from, error);
}

/* Lives of equal arrival and request_id keep the order in which they were added. */
static int order_by_arrival(const struct lives *lives, uint32_t *order, int64_t *key,
                            struct ifl_error *error)
{
    const size_t n = lives->n;
    for (size_t place = 0; place < lives->cap; place++)
        if (lives->nth[place] > 0)
            order[lives->nth[place] - 1] = (uint32_t)place;
    for (size_t i = 0; i < n; i++)
        key[i] = lives->at[order[i]].arrival_ns;
    if (sort_by_key(key, order, n, error))
        return error->code;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && key[to] == key[from];)
            to++;
        if (to - from > 1 && order_ties(lives->at, order, key, from, to, error))
            return error->code;
    }
    return IFL_OK;
}

static int put_in_order(struct lives *lives, struct ifl_error *error)
{
    lives->order = malloc((lives->n ? lives->n : 1) * sizeof *lives->order);
    if (!lives->order)
        return ifl_fail_nomem(error);
    if (order_by_place(lives, lives->order))
        return IFL_OK;
    int64_t *key = malloc((lives->n ? lives->n : 1) * sizeof *key);
    if (!key)
        return ifl_fail_nomem(error);
    const int code = order_by_arrival(lives, lives->order, key, error);
    free(key);
    return code;
}

int lives_end(struct lives *lives, struct ifl_error *error)
{
    if (lives->ended)
        return IFL_OK;
    lives->ended = true;
    if (lives->numbered)
        return IFL_OK;
    lives->n_left = lives->n;
    return put_in_order(lives, error);
}

/* If the order is not that of the indices, every access would miss the cache, so a life a few
 * positions ahead is prefetched. */
static const struct life *next_in_order(struct lives *lives)
{
    enum { AHEAD = 6 };
    if (lives->n_left == 0)
        return NULL;
    const uint32_t *order = &lives->order[lives->n - lives->n_left];
    const struct life *soon = &lives->at[order[lives->n_left > AHEAD ? AHEAD : 0]];
    __builtin_prefetch(soon);
    __builtin_prefetch(&soon->status);
    lives->n_left--;
    return &lives->at[*order];
}

int lives_next(struct lives *lives, const struct life **life, struct ifl_error *error)
{
    if (!lives->numbered) {
        *life = lives->ended ? next_in_order(lives) : NULL;
        return IFL_OK;
    }
    const int code = early_next(&lives->early, lives->ended, life, error);
    if (!*life)
        lives->n_before_go = lives->n + LIVES_AT_ONCE;
    return code;
}
