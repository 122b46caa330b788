#include "record/life.h"

#include <string.h>

#include "inflight/minmax.h"
#include "tables/row.h"

#define ROW_BYTES (40 * ROW_NUMBER_BYTES)

static const char header_begin[] = "point,request_id,replica,";
static const char header_end[] =
    "status,arrival_s,first_scheduled_s,first_token_s,finish_s,"
    "prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions,"
    "swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s";
/* Where the time went between the first step of the prompt and the first one behind it: the prompt,
 * the wait for blocks and links, the move behind the prompt, the queue of the decode replica.
 * transfer_s also counts what moved beside the prompt, transfer_hidden_s. */
static const char header_handover[] =
    ",prefill_replica,prompt_s,handover_wait_s,transfer_s,transfer_hidden_s,decode_queue_s";

/* Tokens that the prompt found in each tier, and the time of its loads: in all, and what it or its
 * step waited. */
static const char header_tiers[] = ",host_tokens,disk_tokens,store_tokens,load_s,load_exposed_s";

/* Moves of a request that decoded: how many, from their starts to their ends, and the part of that
 * in which the request stood still. */
static const char header_migrations[] = ",migrations,migrating_s,down_s";

int life_write_header(struct whole_file *file, const struct life_columns *columns,
                      struct ifl_error *error)
{
    if (whole_write(file, header_begin, error) ||
        (columns->pool && whole_write(file, "pool,", error)) ||
        whole_write(file, header_end, error) ||
        (columns->hands_over && whole_write(file, header_handover, error)) ||
        (columns->tiers && whole_write(file, header_tiers, error)) ||
        (columns->migrates && whole_write(file, header_migrations, error)) ||
        (columns->adapter && whole_write(file, ",adapter", error)) ||
        whole_write(file, columns->may_leave ? ",left_s\n" : "\n", error))
        return error->code;
    return IFL_OK;
}

/* b - a; IFL_NEVER if one of the two is undefined. */
static int64_t between_ns(int64_t a, int64_t b)
{
    return a == IFL_NEVER || b == IFL_NEVER ? IFL_NEVER : b - a;
}

static char *put_handover(char *at, const struct life *life)
{
    const struct rare *rare = life->rare;
    if (!rare->has_two_replicas) {
        for (int i = 0; i < 6; i++)
            at = row_word(at, "");
        return at;
    }
    const bool moved = rare->move_end_ns != IFL_NEVER;
    const int64_t began_ns = ifl_max(rare->move_start_ns, rare->prefilled_ns);
    at = row_int(at, rare->prefill_replica);
    at = row_seconds(at, between_ns(life->first_scheduled_ns, rare->prefilled_ns));
    at = row_seconds(at, moved ? between_ns(rare->prefilled_ns, began_ns) : IFL_NEVER);
    at = row_seconds(at, moved ? rare->moving_ns : IFL_NEVER);
    at = row_seconds(at, moved ? rare->moving_hidden_ns : IFL_NEVER);
    return row_seconds(at, between_ns(rare->move_end_ns, rare->resumed_ns));
}

static char *put_tiers(char *at, const struct rare *rare)
{
    for (int t = 0; t < IFL_N_TIERS; t++)
        at = row_int(at, rare->tier_tokens[t]);
    at = row_seconds(at, rare->load_ns);
    return row_seconds(at, rare->load_exposed_ns);
}

/* Both counts: 0 in most rows. */
static inline char *put_preemptions(char *at, const struct rare *rare)
{
    static const char none[] = "0,0,";
    if (rare == &life_has_none) {
        memcpy(at, none, sizeof none - 1);
        return at + sizeof none - 1;
    }
    at = row_int(at, rare->preemptions);
    return row_int(at, rare->swap_outs);
}

/* From stalled_s to tpot_slo_s: the same in most rows. */
static inline char *put_rare_spans(char *at, const struct life *life)
{
    static const char none[] = "0.000000000,,,";
    const int64_t stalled_ns = life_stalled_ns(life);
    if (stalled_ns == 0 && life->rare == &life_has_none) {
        memcpy(at, none, sizeof none - 1);
        return at + sizeof none - 1;
    }
    at = row_seconds(at, stalled_ns);
    at = row_seconds(at, life->rare->ttft_slo_ns);
    return row_seconds(at, life->rare->tpot_slo_ns);
}

IFL_HOT static char *put_life(char *at, int32_t point, const struct life_columns *columns,
                              const struct life *life)
{
    at = row_int(at, point);
    at = row_uint(at, life->request_id);
    at = life->replica < 0 ? row_word(at, "") : row_int(at, life->replica);
    at = columns->pool ? row_word(at, columns->pool) : at;
    at = row_word(at, ifl_status_names[life->status]);
    at = row_seconds(at, life->arrival_ns);
    at = row_seconds(at, life->first_scheduled_ns);
    at = row_seconds(at, life->first_token_ns);
    at = row_seconds(at, life_finish_ns(life));
    at = row_int(at, life->prompt_tokens);
    at = row_int(at, life->output_tokens);
    at = row_int(at, life->rare->cached_tokens);
    at = row_seconds(at, life_ttft_ns(life));
    at = row_seconds(at, life_tpot_ns(life));
    at = row_seconds(at, life_e2e_ns(life));
    at = row_seconds(at, life->max_itl_ns);
    at = put_preemptions(at, life->rare);
    at = row_seconds(at, life_queue_ns(life));
    at = row_seconds(at, life_prefill_ns(life));
    at = row_seconds(at, life_decode_ns(life));
    at = put_rare_spans(at, life);
    if (IFL_RARE(columns->hands_over))
        at = put_handover(at, life);
    if (IFL_RARE(columns->tiers))
        at = put_tiers(at, life->rare);
    if (IFL_RARE(columns->migrates)) {
        at = row_int(at, life->rare->n_migrations);
        at = row_seconds(at, life->rare->migrating_ns);
        at = row_seconds(at, life->rare->down_ns);
    }
    return at;
}

IFL_HOT int life_write(struct whole_file *file, int32_t point, const struct life_columns *columns,
                       const struct life *life, struct ifl_error *error)
{
    const size_t n_adapter = columns->adapter ? row_text_bytes(columns->adapter) : 0;
    char *at = whole_room(file, ROW_BYTES + n_adapter, error);
    if (!at)
        return error->code;
    at = put_life(at, point, columns, life);
    at = columns->adapter ? row_text(at, columns->adapter) : at;
    if (IFL_RARE(columns->may_leave))
        at = row_seconds(at, life_finished(life) ? IFL_NEVER : life->end_ns);
    whole_commit(file, row_end(at));
    return IFL_OK;
}
