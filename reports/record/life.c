#include "record/life.h"

#include "tables/row.h"

#define ROW_BYTES (25 * ROW_NUMBER_BYTES)

static const char header_begin[] = "point,request_id,replica,";
static const char header_end[] =
    "status,arrival_s,first_scheduled_s,first_token_s,finish_s,"
    "prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions,"
    "swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s\n";

int life_write_header(struct whole_file *file, bool has_pools, struct ifl_error *error)
{
    if (whole_write(file, header_begin, error) ||
        (has_pools && whole_write(file, "pool,", error)) || whole_write(file, header_end, error))
        return error->code;
    return IFL_OK;
}

static char *put_life(char *at, int32_t point, const char *pool, const struct life *life)
{
    at = row_int(at, point);
    at = row_uint(at, life->request_id);
    at = life->replica < 0 ? row_word(at, "") : row_int(at, life->replica);
    at = pool ? row_word(at, pool) : at;
    at = row_word(at, ifl_status_names[life->status]);
    at = row_seconds(at, life->arrival_ns);
    at = row_seconds(at, life->first_scheduled_ns);
    at = row_seconds(at, life->first_token_ns);
    at = row_seconds(at, life->finish_ns);
    at = row_int(at, life->prompt_tokens);
    at = row_int(at, life->output_tokens);
    at = row_int(at, life->rare->cached_tokens);
    at = row_seconds(at, life_ttft_ns(life));
    at = row_seconds(at, life_tpot_ns(life));
    at = row_seconds(at, life_e2e_ns(life));
    at = row_seconds(at, life->max_itl_ns);
    at = row_int(at, life->rare->preemptions);
    at = row_int(at, life->rare->swap_outs);
    at = row_seconds(at, life_queue_ns(life));
    at = row_seconds(at, life_prefill_ns(life));
    at = row_seconds(at, life_decode_ns(life));
    at = row_seconds(at, life_stalled_ns(life));
    at = row_seconds(at, life->rare->ttft_slo_ns);
    at = row_seconds(at, life->rare->tpot_slo_ns);
    return row_end(at);
}

int life_write(struct whole_file *file, int32_t point, const char *pool, const struct life *life,
               struct ifl_error *error)
{
    char *at = whole_room(file, ROW_BYTES, error);
    if (!at)
        return error->code;
    whole_commit(file, put_life(at, point, pool, life));
    return IFL_OK;
}
