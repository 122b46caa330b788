#include "tables/metric.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *column, *label, *unit;
    double scale;
    int better;
    const char *in_words, *unit_in_words; /* NULL: label, unit */
} known[] = {
    {"requests", "requests", "", 1, 0, NULL, NULL},
    {"finished", "finished", "", 1, 1, NULL, NULL},
    {"rejected", "rejected", "", 1, -1, NULL, NULL},
    {"failed", "failed", "", 1, -1, NULL, NULL},
    {"aborted", "aborted", "", 1, -1, NULL, NULL},
    {"timed_out", "timed out", "", 1, -1, NULL, NULL},
    {"shed", "shed", "", 1, -1, NULL, NULL},
    {"wasted_tokens", "wasted tokens", "", 1, -1, NULL, NULL},
    {"wasted_frac", "wasted tokens", "%", 100, -1, "wasted", "% of the computed tokens"},
    {"wasted_steps", "wasted steps", "", 1, -1, NULL, NULL},
    {"retries", "retries", "", 1, -1, NULL, NULL},
    {"retry_amplification", "requests sent per request", "", 1, -1, NULL, NULL},
    {"bubble_frac", "pipeline bubbles", "%", 100, -1, "pipeline bubbles", "% of the stages' time"},
    {"moves", "moves of K/V", "", 1, 0, NULL, NULL},
    {"moved_gb", "K/V moved", "GB", 1, 0, NULL, NULL},
    {"mean_moving_s", "time of a move", "ms", 1e3, -1, NULL, NULL},
    {"moving_hidden_frac", "moves hidden", "%", 100, 1, NULL, "% of their time"},
    {"migrations", "moves of running requests", "", 1, 0, NULL, NULL},
    {"migrated", "requests that moved", "", 1, 0, NULL, NULL},
    {"mean_down_s", "a moving request stands still", "ms", 1e3, -1, NULL, NULL},
    {"mean_adapters", "adapters a step", "", 1, 0, NULL, NULL},
    {"adapter_loads", "adapters loaded", "", 1, -1, NULL, NULL},
    {"host_hit_frac", "prompts found on the host", "%", 100, 1, NULL, "% of the prompt tokens"},
    {"disk_hit_frac", "prompts found on disk", "%", 100, 1, NULL, "% of the prompt tokens"},
    {"store_hit_frac", "prompts found in the store", "%", 100, 1, NULL, "% of the prompt tokens"},
    {"duration_s", "duration", "s", 1, 0, NULL, NULL},
    {"request_throughput_rps", "requests", "req/s", 1, 1, "request throughput", NULL},
    {"output_throughput_tok_per_s", "output", "tok/s", 1, 1, "output throughput", NULL},
    {"total_throughput_tok_per_s", "prompt and output", "tok/s", 1, 1, "total throughput", NULL},
    {"goodput_rps", "goodput", "req/s", 1, 1, NULL, NULL},
    {"attainment_frac", "SLO attainment", "%", 100, 1, NULL, NULL},
    {"preemptions", "preemptions", "", 1, -1, NULL, NULL},
    {"swap_outs", "swap-outs", "", 1, -1, NULL, NULL},
    {"steps", "steps", "", 1, 0, NULL, NULL},
    {"mean_batch_seqs", "mean batch", "seqs", 1, 0, NULL, NULL},
    {"kv_token_frac", "K/V holds tokens", "%", 100, 0, "KV holds tokens", "% of the pool"},
    {"kv_reserved_frac", "K/V reserved", "%", 100, 0, "KV reserved", NULL},
    {"kv_internal_frac", "K/V internal waste", "%", 100, 0, "KV internal waste", NULL},
    {"kv_external_frac", "K/V external", "%", 100, 0, "KV external", NULL},
    {"kv_shared_frac", "K/V saved by sharing", "%", 100, 0, "KV saved by sharing",
     "% of the blocks"},
    {"cached_prompt_frac", "prompts from cache", "%", 100, 0, NULL, "% of their tokens"},
    {"warmup_requests", "warm-up", "requests", 1, 0, NULL, NULL},
    {"warmup_s", "warm-up", "s", 1, 0, NULL, NULL},
};

static const struct {
    const char *name, *label, *unit;
    double scale;
} latencies[] = {
    {"ttft_s", "TTFT", "s", 1},
    {"tpot_s", "TPOT", "ms", 1e3},
    {"itl_s", "ITL", "ms", 1e3},
    {"e2e_s", "end to end", "s", 1},
    {"queue_s", "in the queue", "s", 1},
    {"normalized_latency_s", "normalized latency", "ms/tok", 1e3},
};

/* "mean_" or "p99_" in front of a latency. */
static bool is_statistic(const char *word, size_t n_chars)
{
    return (n_chars == 4 && strncmp(word, "mean", 4) == 0) ||
           (n_chars > 1 && word[0] == 'p' && isdigit((unsigned char)word[1]));
}

struct metric metric_of(const char *column)
{
    struct metric metric = {.unit = "", .in_words = "", .unit_in_words = "", .scale = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].column, column) == 0) {
            metric = (struct metric){
                .unit = known[i].unit, .scale = known[i].scale, .better = known[i].better};
            metric.in_words = known[i].in_words ? known[i].in_words : known[i].label;
            metric.unit_in_words = known[i].unit_in_words ? known[i].unit_in_words : metric.unit;
            snprintf(metric.label, sizeof metric.label, "%s", known[i].label);
            return metric;
        }
    const size_t n_chars = strcspn(column, "_");
    for (size_t i = 0; column[n_chars] && i < sizeof latencies / sizeof *latencies; i++)
        if (is_statistic(column, n_chars) && strcmp(column + n_chars + 1, latencies[i].name) == 0) {
            metric = (struct metric){.unit = latencies[i].unit,
                                     .in_words = latencies[i].label,
                                     .unit_in_words = latencies[i].unit,
                                     .scale = latencies[i].scale,
                                     .better = -1};
            snprintf(metric.label, sizeof metric.label, "%s, %.*s", latencies[i].label,
                     (int)n_chars, column);
            return metric;
        }
    snprintf(metric.label, sizeof metric.label, "%s", column);
    return metric;
}

const char *metric_unit_in_files(const struct metric *metric)
{
    static const struct {
        const char *unit, *in_files;
    } scaled[] = {{"ms", "s"}, {"ms/tok", "s/token"}, {"%", "share"}};
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        if (strcmp(scaled[i].unit, metric->unit) == 0)
            return scaled[i].in_files;
    return metric->unit;
}

bool metric_is_latency(const struct metric *metric)
{
    return metric->better == -1 &&
           (strcmp(metric->unit, "s") == 0 || strncmp(metric->unit, "ms", 2) == 0);
}
