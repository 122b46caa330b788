/* The contents of /metrics: counters, gauges and histograms of each replica, under the names of
 * vLLM (0.32.0) or SGLang (0.5). Times are those of the flight. Gauges are read from the replicas.
 */
#ifndef SIM_LIVE_SERVE_METRICS_H
#define SIM_LIVE_SERVE_METRICS_H

#include <event2/buffer.h>

#include "config/config.h"
#include "run/flight.h"
#include "run/source.h"

enum histogram_name {
    HIST_TTFT,
    HIST_ITL,
    HIST_TPOT,
    HIST_E2E,
    HIST_QUEUE,
    HIST_INFERENCE,
    HIST_PREFILL,
    HIST_DECODE,
    HIST_STEP_TOKENS,
    HIST_PROMPT_TOKENS,
    HIST_ANSWER_TOKENS,
    HIST_MAX_TOKENS,
    HIST_COMPUTED_TOKENS,
    HIST_N,
    HIST_PREEMPTIONS,
    HIST_SGLANG_TTFT,
    HIST_SGLANG_ITL,
    HIST_SGLANG_E2E,
    N_HISTOGRAMS
};

enum { MOST_BOUNDS = 26 };

struct histogram {
    uint64_t n[MOST_BOUNDS + 1]; /* of the values up to each bound, and of all above */
    double sum;
};

struct replica_metrics {
    struct histogram of[N_HISTOGRAMS];
    uint64_t n_prompt_tokens, n_cached_tokens, n_answer_tokens, n_preemptions;
    uint64_t n_stopped, n_at_limit, n_aborted, n_failed, n_ended;
    int32_t null_blocks; /* blocks that vLLM counts but no request gets */
};

enum { RECENT = 256 };

struct serve_metrics {
    double recent_ttft_s[RECENT], recent_tpot_s[RECENT]; /* latencies of the last requests, a
                                                            ring */
    uint64_t n_recent;
    struct replica_metrics *of; /* [n_replicas] */
    size_t n_replicas;
    uint64_t n_shed;
    double created; /* seconds since 1970 */
};

int metrics_open(struct serve_metrics *metrics, size_t n_replicas);
void metrics_close(struct serve_metrics *metrics);

/* Counts a token that reaches its client; the previous one was there at before_ns. */
void metrics_token(struct serve_metrics *metrics, const struct source_token *token, int64_t sent_ns,
                   int64_t before_ns);
void metrics_step(struct serve_metrics *metrics, const struct replica *replica);
/* Counts a request of n answers that has ended; max_tokens 0: not known any more. */
void metrics_ended(struct serve_metrics *metrics, const struct ifl_request_record *record,
                   int32_t n, int32_t max_tokens, bool stopped);
/* Writes the text. `models`, [n_replicas], are the names of the replicas' models; `model` is that
 * of the server. */
void metrics_write(const struct serve_metrics *metrics, const struct flight *flight,
                   enum live_metrics names, const char *const *models, const char *model,
                   struct evbuffer *out);

#endif
