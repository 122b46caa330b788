/* A finished (or refused) request as the recorder keeps it, and the metrics it defines.
 *
 * Every metric is IFL_NEVER where it is undefined. e2e = queue + prefill + decode + stalled, to the
 * nanosecond. tpot and normalized latency are ratios, rounded to the nearest nanosecond here, once,
 * so that requests.csv, the quantiles and the SLO test use the same number. */
#ifndef INFLIGHT_REPORTS_LIFE_H
#define INFLIGHT_REPORTS_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/report.h"
#include "tables/whole_file.h"

/* The fields that are zero or undefined for most requests. */
struct rare {
    int64_t stalled_ns, stalled_prefill_ns;
    int64_t ttft_slo_ns, tpot_slo_ns; /* objectives of the request; IFL_NEVER: none */
    int32_t cached_tokens, preemptions, swap_outs, wasted_tokens, wasted_steps;
    uint32_t adapter; /* its number; 0: none */
    bool is_retry;
    /* of a request with two replicas, as in its record */
    bool has_two_replicas;
    int32_t prefill_replica;
    int64_t prefilled_ns, move_start_ns, move_end_ns, moving_ns, moving_hidden_ns, resumed_ns;
    /* with tiers, as in its record */
    int32_t tier_tokens[IFL_N_TIERS];
    int64_t load_ns, load_exposed_ns;
    int32_t n_migrations; /* as in its record */
    int64_t migrating_ns, down_ns;
};

struct life {
    uint64_t request_id;
    int64_t arrival_ns, first_scheduled_ns, first_token_ns;
    int64_t end_ns;     /* when the request finished or, without an answer, left */
    int64_t max_itl_ns; /* IFL_NEVER where undefined */
    const struct rare
        *rare; /* requests without such fields share one record, which stays in the cache */
    int32_t prompt_tokens, output_tokens, replica;
    uint8_t status; /* enum ifl_status */
};

static inline bool life_finished(const struct life *life)
{
    return life->status == IFL_FINISHED;
}

static inline int64_t life_finish_ns(const struct life *life)
{
    return life_finished(life) ? life->end_ns : IFL_NEVER;
}

static inline int64_t life_ttft_ns(const struct life *life)
{
    return life->first_token_ns == IFL_NEVER ? IFL_NEVER : life->first_token_ns - life->arrival_ns;
}

static inline int64_t life_e2e_ns(const struct life *life)
{
    return life_finished(life) ? life->end_ns - life->arrival_ns : IFL_NEVER;
}

/* Divides in doubles, in a third of the time that integers take. Both numbers are exact below 2^53,
 * and the quotient is further from the next whole number than half a unit in its last place. */
static inline int64_t life_ratio_ns(int64_t span_ns, int64_t parts)
{
    const int64_t rounded_up = span_ns + parts / 2;
    const bool exact = rounded_up < (int64_t)1 << 53;
    return exact ? (int64_t)((double)rounded_up / (double)parts) : rounded_up / parts;
}

static inline int64_t life_tpot_ns(const struct life *life)
{
    if (!life_finished(life) || life->output_tokens < 2)
        return IFL_NEVER;
    return life_ratio_ns(life->end_ns - life->first_token_ns, life->output_tokens - 1);
}

static inline int64_t life_normalized_ns(const struct life *life)
{
    if (!life_finished(life) || life->output_tokens < 1)
        return IFL_NEVER;
    return life_ratio_ns(life_e2e_ns(life), life->output_tokens);
}

static inline int64_t life_queue_ns(const struct life *life)
{
    return life->first_scheduled_ns == IFL_NEVER ? IFL_NEVER
                                                 : life->first_scheduled_ns - life->arrival_ns;
}

static inline int64_t life_prefill_ns(const struct life *life)
{
    return life->first_token_ns == IFL_NEVER
               ? IFL_NEVER
               : life->first_token_ns - life->first_scheduled_ns - life->rare->stalled_prefill_ns;
}

static inline int64_t life_decode_ns(const struct life *life)
{
    return life_finished(life) ? life->end_ns - life->first_token_ns -
                                     (life->rare->stalled_ns - life->rare->stalled_prefill_ns)
                               : IFL_NEVER;
}

static inline int64_t life_stalled_ns(const struct life *life)
{
    return life->first_scheduled_ns == IFL_NEVER ? IFL_NEVER : life->rare->stalled_ns;
}

static inline bool life_meets(int64_t latency_ns, int64_t slo_ns)
{
    return latency_ns == IFL_NEVER || latency_ns <= slo_ns;
}

/* An undefined latency, such as tpot of one token, meets every SLO; an SLO of IFL_NEVER is met by
 * every latency. A request that did not finish meets none. */
static inline bool life_meets_slos(const struct life *life)
{
    const int64_t ttft_slo_ns = life->rare->ttft_slo_ns, tpot_slo_ns = life->rare->tpot_slo_ns;
    return life_finished(life) && life_meets(life_ttft_ns(life), ttft_slo_ns) &&
           (tpot_slo_ns == IFL_NEVER || life_meets(life_tpot_ns(life), tpot_slo_ns));
}

/* Identities use all 64 bits: flipping the top one keeps their order in signed keys. */
static inline int64_t life_id_key(const struct life *life)
{
    return (int64_t)(life->request_id ^ (uint64_t)1 << 63);
}

/* The shared record of requests without such fields. */
extern const struct rare life_has_none;

/* Columns of requests.csv that few runs have. */
struct life_columns {
    const char *pool, *adapter; /* names of the pool and adapter; NULL: there is no such column */
    bool hands_over, tiers;     /* columns about requests with two replicas; about tiers */
    bool migrates;              /* columns about requests that move while they decode */
    bool may_leave;             /* column with the time at which unfinished requests left */
};

/* Write the header and a row of requests.csv. */
int life_write_header(struct whole_file *file, const struct life_columns *columns,
                      struct ifl_error *error);
int life_write(struct whole_file *file, int32_t point, const struct life_columns *columns,
               const struct life *life, struct ifl_error *error);

#endif
