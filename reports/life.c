#include "life.h"

#include <string.h>

#include "row.h"
#include "sort.h"

#define ROW_BYTES (23 * ROW_NUMBER_BYTES)

static const char header[] =
    "point,request_id,replica,status,arrival_s,first_scheduled_s,first_token_s,finish_s,"
    "prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions,"
    "swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s\n";

static const char *const status_name[] = {
    [IFL_FINISHED] = "finished", [IFL_REJECTED] = "rejected", [IFL_FAILED] = "failed"};

/* Identities use all 64 bits: flipping the top one keeps their order in signed keys. */
static int64_t id_key(const struct life *life)
{
    return (int64_t)(life->request_id ^ (uint64_t)1 << 63);
}

/* Lives [from, to) of the order arrived together: by identity. */
static int order_ties(const struct life *lives, uint32_t *order, int64_t *key, size_t from,
                      size_t to, struct ifl_error *error)
{
    for (size_t i = from; i < to; i++)
        key[i] = id_key(&lives[order[i]]);
    return sort_by_key(key + from, order + from, to - from, error);
}

static int order_by_arrival(const struct life *lives, size_t n, uint32_t *order, int64_t *key,
                            struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
        key[i] = lives[i].arrival_ns;
    }
    if (sort_by_key(key, order, n, error))
        return error->code;
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && key[to] == key[from];)
            to++;
        if (to - from > 1 && order_ties(lives, order, key, from, to, error))
            return error->code;
    }
    return IFL_OK;
}

static bool arrive_in_order(const struct life *lives, size_t n, const uint32_t *order)
{
    int64_t last_ns = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const int64_t arrival_ns = life_at(lives, order, n, i)->arrival_ns;
        if (arrival_ns < last_ns)
            return false;
        last_ns = arrival_ns;
    }
    return true;
}

/* Most traces number requests as they arrive; a few numbers may be missing. False, and the order is
 * open, where they do not. */
static bool order_by_number(const struct life *lives, size_t n, uint32_t *order, uint32_t *place)
{
    const size_t n_places = 2 * n;
    size_t n_placed = 0;
    memset(place, 0xff, n_places * sizeof *place);
    for (size_t i = 0; i < n; i++) {
        if (lives[i].request_id >= n_places || place[lives[i].request_id] != UINT32_MAX)
            return false;
        place[lives[i].request_id] = (uint32_t)i;
    }
    for (size_t number = 0; number < n_places; number++)
        if (place[number] != UINT32_MAX)
            order[n_placed++] = place[number];
    return arrive_in_order(lives, n, order);
}

int lives_order(const struct life *lives, size_t n, uint32_t *order, struct ifl_error *error)
{
    uint32_t *place = malloc((n ? n : 1) * 2 * sizeof *place);
    if (!place)
        return ifl_fail_nomem(error);
    const bool numbered = order_by_number(lives, n, order, place);
    free(place);
    if (numbered)
        return IFL_OK;
    int64_t *key = malloc((n ? n : 1) * sizeof *key);
    if (!key)
        return ifl_fail_nomem(error);
    const int code = order_by_arrival(lives, n, order, key, error);
    free(key);
    return code;
}

int life_write_header(struct whole_file *file, struct ifl_error *error)
{
    return whole_write(file, header, error);
}

static char *put_life(char *at, int32_t point, const struct life *life)
{
    at = row_int(at, point);
    at = row_uint(at, life->request_id);
    at = row_int(at, life->replica);
    at = row_word(at, status_name[life->status]);
    at = row_seconds(at, life->arrival_ns);
    at = row_seconds(at, life->first_scheduled_ns);
    at = row_seconds(at, life->first_token_ns);
    at = row_seconds(at, life->finish_ns);
    at = row_int(at, life->prompt_tokens);
    at = row_int(at, life->output_tokens);
    at = row_int(at, life->cached_tokens);
    at = row_seconds(at, life_ttft_ns(life));
    at = row_seconds(at, life_tpot_ns(life));
    at = row_seconds(at, life_e2e_ns(life));
    at = row_seconds(at, life->max_itl_ns);
    at = row_int(at, life->preemptions);
    at = row_int(at, life->swap_outs);
    at = row_seconds(at, life_queue_ns(life));
    at = row_seconds(at, life_prefill_ns(life));
    at = row_seconds(at, life_decode_ns(life));
    at = row_seconds(at, life_stalled_ns(life));
    at = row_seconds(at, life->ttft_slo_ns);
    at = row_seconds(at, life->tpot_slo_ns);
    return row_end(at);
}

int life_write(struct whole_file *file, int32_t point, const struct life *life,
               struct ifl_error *error)
{
    char *at = whole_room(file, ROW_BYTES, error);
    if (!at)
        return error->code;
    whole_commit(file, put_life(at, point, life));
    return IFL_OK;
}
