#include "tables/columns.h"

#include <math.h>
#include <string.h>

#include "inflight/report.h"
#include "tables/row.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): a field cannot stand in parentheses */
#define COUNT(name, field)                                                                         \
    {                                                                                              \
        name, COLUMN_COUNT, offsetof(struct ifl_summary, field)                                    \
    }
#define REAL(name, field)                                                                          \
    {                                                                                              \
        name, COLUMN_REAL, offsetof(struct ifl_summary, field)                                     \
    }
#define LATENCY(field)                                                                             \
    REAL("mean_" #field, field.mean), REAL("p50_" #field, field.p50),                              \
        REAL("p90_" #field, field.p90), REAL("p95_" #field, field.p95),                            \
        REAL("p99_" #field, field.p99)

/* NOLINTEND(bugprone-macro-parentheses) */

/* Names and order are part of the file format: new columns go at the end only. */
const struct column summary_columns[] = {
    COUNT("requests", n_requests),
    COUNT("finished", n_finished),
    COUNT("rejected", n_rejected),
    COUNT("failed", n_failed),
    REAL("duration_s", duration_s),
    REAL("request_throughput_rps", request_throughput_rps),
    REAL("output_throughput_tok_per_s", output_throughput_tok_per_s),
    REAL("total_throughput_tok_per_s", total_throughput_tok_per_s),
    LATENCY(ttft_s),
    LATENCY(tpot_s),
    LATENCY(itl_s),
    LATENCY(e2e_s),
    LATENCY(normalized_latency_s),
    REAL("goodput_rps", goodput_rps),
    REAL("attainment_frac", attainment_frac),
    COUNT("preemptions", preemptions),
    COUNT("swap_outs", swap_outs),
    COUNT("steps", n_steps),
    REAL("mean_batch_seqs", mean_batch),
    REAL("kv_token_frac", kv_token_frac),
    REAL("kv_reserved_frac", kv_reserved_frac),
    REAL("kv_internal_frac", kv_internal_frac),
    REAL("kv_external_frac", kv_external_frac),
    {"saturated", COLUMN_FLAG, offsetof(struct ifl_summary, saturated)},
    {"error", COLUMN_TEXT, offsetof(struct ifl_summary, error)},
    {"assumed", COLUMN_TEXT, offsetof(struct ifl_summary, assumed)},
    LATENCY(queue_s),
    COUNT("warmup_requests", n_warmup),
    REAL("warmup_s", warmup_s),
    REAL("kv_shared_frac", kv_shared_frac),
    REAL("cached_prompt_frac", cached_prompt_frac),
    COUNT("aborted", n_aborted),
    COUNT("timed_out", n_timed_out),
    COUNT("shed", n_shed),
    COUNT("wasted_tokens", wasted_tokens),
    REAL("wasted_frac", wasted_frac),
    COUNT("wasted_steps", wasted_steps),
    COUNT("retries", n_retries),
    REAL("retry_amplification", retry_amplification),
    COUNT("stages", n_stages),
    REAL("bubble_frac", bubble_frac),
    {"stage_use_frac", COLUMN_TEXT, offsetof(struct ifl_summary, stage_use_frac)},
    COUNT("moves", n_moves),
    REAL("moved_gb", moved_gb),
    REAL("mean_moving_s", moving_s),
    REAL("moving_hidden_frac", moving_hidden_frac),
    REAL("host_hit_frac", tier_hit_frac[0]),
    REAL("disk_hit_frac", tier_hit_frac[1]),
    REAL("store_hit_frac", tier_hit_frac[2]),
    COUNT("adapters", n_adapters),
    REAL("mean_adapters", mean_adapters),
    COUNT("adapter_loads", adapter_loads),
    COUNT("migrations", n_migrations),
    COUNT("migrated", n_migrated),
    REAL("mean_down_s", down_s),
};

enum {
    N_OF_RETRIES = 2,
    N_OF_EARLY_LEAVERS = 6 + N_OF_RETRIES,
    N_OF_PIPELINES = 3,
    N_OF_MOVES = 4,
    N_OF_TIERS = 3,
    N_OF_ADAPTERS = 3,
    N_OF_MIGRATIONS = 3,
    N_OF_FEW = N_OF_PIPELINES + N_OF_MOVES + N_OF_TIERS + N_OF_ADAPTERS + N_OF_MIGRATIONS
};
const size_t n_summary_columns = sizeof summary_columns / sizeof *summary_columns;
const size_t n_common_columns =
    sizeof summary_columns / sizeof *summary_columns - N_OF_EARLY_LEAVERS - N_OF_FEW;

char *column_put(char *at, const struct column *column, const struct ifl_summary *summary)
{
    const char *field = (const char *)summary + column->offset;
    uint64_t count;
    double real;
    bool flag;
    switch (column->type) {
    case COLUMN_COUNT:
        memcpy(&count, field, sizeof count);
        return row_uint(at, count);
    case COLUMN_REAL:
        memcpy(&real, field, sizeof real);
        return row_real(at, real);
    case COLUMN_FLAG:
        memcpy(&flag, field, sizeof flag);
        return row_word(at, flag ? "true" : "false");
    case COLUMN_TEXT:
        break;
    }
    return at;
}

double column_number(const struct column *column, const struct ifl_summary *summary)
{
    const char *field = (const char *)summary + column->offset;
    uint64_t count;
    double real;
    if (column->type == COLUMN_COUNT) {
        memcpy(&count, field, sizeof count);
        return (double)count;
    }
    memcpy(&real, field, sizeof real);
    return real;
}

const char *ifl_summary_difference(const struct ifl_summary *a, const struct ifl_summary *b,
                                   double *of_a, double *of_b)
{
    for (size_t i = 0; i < n_summary_columns; i++) {
        const struct column *column = &summary_columns[i];
        if (!column_is_number(column))
            continue;
        *of_a = column_number(column, a);
        *of_b = column_number(column, b);
        if (*of_a != *of_b && !(isnan(*of_a) && isnan(*of_b)))
            return column->name;
    }
    return NULL;
}

size_t summary_columns_of(const struct ifl_summary *summary)
{
    if (summary->migrates)
        return n_summary_columns;
    const size_t n_of_adapters = n_summary_columns - N_OF_MIGRATIONS;
    if (summary->n_adapters > 0)
        return n_of_adapters;
    if (summary->has_tiers)
        return n_of_adapters - N_OF_ADAPTERS;
    if (summary->n_moves > 0)
        return n_of_adapters - N_OF_ADAPTERS - N_OF_TIERS;
    if (summary->n_stages > 0)
        return n_of_adapters - N_OF_ADAPTERS - N_OF_TIERS - N_OF_MOVES;
    if (summary->n_retries > 0)
        return n_summary_columns - N_OF_FEW;
    return summary->n_aborted + summary->n_timed_out + summary->n_shed > 0
               ? n_summary_columns - N_OF_FEW - N_OF_RETRIES
               : n_common_columns;
}

int summary_columns_of_points(const struct ifl_points *points, size_t *n, struct ifl_error *error)
{
    *n = n_common_columns;
    for (size_t i = 0; i < points->n_points && *n < n_summary_columns; i++) {
        struct ifl_summary summary;
        const int rc = points->at(points->context, i, NULL, &summary, error);
        if (rc < 0)
            return rc;
        const size_t n_of_point = summary.error[0] ? 0 : summary_columns_of(&summary);
        *n = n_of_point > *n ? n_of_point : *n;
    }
    return 0;
}

const char *column_short_key(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}
