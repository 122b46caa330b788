#include "record/lives.h"

#include <stdlib.h>

#include "tables/sort.h"

int lives_open(struct lives *lives, size_t cap, struct ifl_error *error)
{
    const size_t n = cap ? cap : 1;
    *lives = (struct lives){.at = malloc(n * sizeof *lives->at),
                            .nth = calloc(n, sizeof *lives->nth),
                            .rares = malloc(n * sizeof *lives->rares),
                            .cap = cap};
    return lives->at && lives->nth && lives->rares ? IFL_OK : ifl_fail_nomem(error);
}

void lives_close(struct lives *lives)
{
    free(lives->at);
    free(lives->nth);
    free(lives->rares);
}

static struct life *find_place(struct lives *lives, uint64_t request_id)
{
    ifl_require(lives->n < lives->cap);
    size_t place = request_id;
    if (request_id >= lives->cap || lives->nth[place] > 0) {
        while (lives->nth[lives->spare] > 0)
            lives->spare++;
        place = lives->spare;
    }
    lives->nth[place] = (uint32_t)++lives->n;
    return &lives->at[place];
}

static const struct rare *keep_rare(struct lives *lives, const struct ifl_request_record *record)
{
    static const struct rare none = {.ttft_slo_ns = IFL_NEVER, .tpot_slo_ns = IFL_NEVER};
    if (record->stalled_ns == 0 && record->ttft_slo_ns == IFL_NEVER &&
        record->tpot_slo_ns == IFL_NEVER && record->cached_tokens == 0 &&
        record->preemptions == 0 && record->swap_outs == 0 && record->wasted_tokens == 0 &&
        record->adapter == 0 && !record->is_retry && !record->has_two_replicas &&
        !record->has_tiers && record->n_migrations == 0)
        return &none;
    struct rare *rare = &lives->rares[lives->n_rares++];
    *rare = (struct rare){.stalled_ns = record->stalled_ns,
                          .stalled_prefill_ns = record->stalled_prefill_ns,
                          .ttft_slo_ns = record->ttft_slo_ns,
                          .tpot_slo_ns = record->tpot_slo_ns,
                          .cached_tokens = record->cached_tokens,
                          .preemptions = record->preemptions,
                          .swap_outs = record->swap_outs,
                          .wasted_tokens = record->wasted_tokens,
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
    return rare;
}

const struct life *lives_add(struct lives *lives, const struct ifl_request_record *record)
{
    struct life *life = find_place(lives, record->request_id);
    *life = (struct life){.request_id = record->request_id,
                          .arrival_ns = record->arrival_ns,
                          .first_scheduled_ns = record->first_scheduled_ns,
                          .first_token_ns = record->first_token_ns,
                          .finish_ns = record->finish_ns,
                          .max_itl_ns = record->max_itl_ns < 0 ? IFL_NEVER : record->max_itl_ns,
                          .rare = keep_rare(lives, record),
                          .prompt_tokens = record->prompt_tokens,
                          .output_tokens = record->output_tokens,
                          .replica = record->replica,
                          .status = (uint8_t)record->status};
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

/* Identities use all 64 bits: flipping the top one keeps their order in signed keys. */
static int64_t id_key(const struct life *life)
{
    return (int64_t)(life->request_id ^ (uint64_t)1 << 63);
}

/* Sorts lives [from, to) of the order, which arrived at the same time, by request_id. */
static int order_ties(const struct life *lives, uint32_t *order, int64_t *key, size_t from,
                      size_t to, struct ifl_error *error)
{
    for (size_t i = from; i < to; i++)
        key[i] = id_key(&lives[order[i]]);
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
        key[i] = life_at(lives->at, order, n, i)->arrival_ns;
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

int lives_order(const struct lives *lives, uint32_t *order, struct ifl_error *error)
{
    if (order_by_place(lives, order))
        return IFL_OK;
    int64_t *key = malloc(lives->n * sizeof *key);
    if (!key)
        return ifl_fail_nomem(error);
    const int code = order_by_arrival(lives, order, key, error);
    free(key);
    return code;
}
