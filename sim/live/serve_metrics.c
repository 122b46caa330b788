#include "live/serve_metrics.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

int metrics_open(struct serve_metrics *metrics, size_t n_replicas)
{
    metrics->of = calloc(n_replicas, sizeof *metrics->of);
    metrics->n_replicas = n_replicas;
    return metrics->of ? 0 : IFL_E_NOMEM;
}

void metrics_close(struct serve_metrics *metrics)
{
    free(metrics->of);
    metrics->of = NULL;
}

/* ---- histograms ---- */

#define TTFT_BOUNDS                                                                                \
    .001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160,    \
        640, 2560
#define GAP_BOUNDS                                                                                 \
    .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80
#define REQUEST_BOUNDS                                                                             \
    .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680
#define LENGTH_BOUNDS                                                                              \
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000,     \
        500000, 1000000
#define SGLANG_BOUNDS .1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400

struct histogram_spec {
    const char *name, *doc;
    bool of_length;                 /* bounds end at the longest model */
    double bounds[MOST_BOUNDS + 1]; /* 0 behind the last */
};

static const struct histogram_spec specs[N_HISTOGRAMS] = {
    [HIST_TTFT] = {"vllm:time_to_first_token_seconds",
                   "Time to the first token.",
                   false,
                   {TTFT_BOUNDS}},
    [HIST_ITL] = {"vllm:inter_token_latency_seconds",
                  "Time between two tokens.",
                  false,
                  {GAP_BOUNDS}},
    [HIST_TPOT] = {"vllm:request_time_per_output_token_seconds",
                   "Mean time between two tokens of a request.",
                   false,
                   {GAP_BOUNDS}},
    [HIST_E2E] = {"vllm:e2e_request_latency_seconds",
                  "Time to the last token.",
                  false,
                  {REQUEST_BOUNDS}},
    [HIST_QUEUE] = {"vllm:request_queue_time_seconds",
                    "Time in the queue.",
                    false,
                    {REQUEST_BOUNDS}},
    [HIST_INFERENCE] = {"vllm:request_inference_time_seconds",
                        "Time behind the queue.",
                        false,
                        {REQUEST_BOUNDS}},
    [HIST_PREFILL] = {"vllm:request_prefill_time_seconds",
                      "Time from the queue to the first token.",
                      false,
                      {REQUEST_BOUNDS}},
    [HIST_DECODE] = {"vllm:request_decode_time_seconds",
                     "Time from the first token to the last.",
                     false,
                     {REQUEST_BOUNDS}},
    [HIST_STEP_TOKENS] = {"vllm:iteration_tokens_total",
                          "Tokens computed in a step.",
                          false,
                          {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}},
    [HIST_PROMPT_TOKENS] = {"vllm:request_prompt_tokens",
                            "Tokens of a prompt.",
                            true,
                            {LENGTH_BOUNDS}},
    [HIST_ANSWER_TOKENS] = {"vllm:request_generation_tokens",
                            "Tokens of an answer.",
                            true,
                            {LENGTH_BOUNDS}},
    [HIST_MAX_TOKENS] = {"vllm:request_params_max_tokens",
                         "max_tokens of a request.",
                         true,
                         {LENGTH_BOUNDS}},
    [HIST_COMPUTED_TOKENS] = {"vllm:request_prefill_kv_computed_tokens",
                              "Tokens of a prompt that were not found in the cache.",
                              true,
                              {LENGTH_BOUNDS}},
    [HIST_N] = {"vllm:request_params_n", "n of a request.", false, {1, 2, 5, 10, 20}},
    [HIST_PREEMPTIONS] = {"vllm:request_num_preemptions",
                          "Preemptions of a request.",
                          false,
                          {1, 2, 3, 4, 5, 10, 20}},
    [HIST_SGLANG_TTFT] = {"sglang:time_to_first_token_seconds",
                          "Time to the first token.",
                          false,
                          {SGLANG_BOUNDS}},
    [HIST_SGLANG_ITL] = {"sglang:inter_token_latency_seconds",
                         "Time between two tokens.",
                         false,
                         {.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06,
                          .08,  .1,   .2,   .4,   .6,  .8,   1,   2,    4,   6,    8}},
    [HIST_SGLANG_E2E] = {"sglang:e2e_request_latency_seconds",
                         "Time to the last token.",
                         false,
                         {SGLANG_BOUNDS, 600, 1200, 1800, 2400}},
};

static void observe(struct replica_metrics *of, enum histogram_name name, double value)
{
    const double *bounds = specs[name].bounds;
    size_t i = 0;
    while (bounds[i] > 0 && value > bounds[i])
        i++;
    of->of[name].n[i]++;
    of->of[name].sum += value;
}

/* ---- what is counted ---- */

void metrics_token(struct serve_metrics *metrics, const struct source_token *token, int64_t sent_ns,
                   int64_t before_ns)
{
    struct replica_metrics *of = &metrics->of[token->replica];
    if (token->index == 0) {
        observe(of, HIST_TTFT, ifl_s_from_ns(token->at_ns - sent_ns));
        observe(of, HIST_SGLANG_TTFT, ifl_s_from_ns(token->at_ns - sent_ns));
        return;
    }
    observe(of, HIST_ITL, ifl_s_from_ns(token->at_ns - before_ns));
    observe(of, HIST_SGLANG_ITL, ifl_s_from_ns(token->at_ns - before_ns));
}

void metrics_step(struct serve_metrics *metrics, const struct replica *replica)
{
    const struct ifl_step_totals *totals = &replica->in_flight.desc.totals;
    struct replica_metrics *of = &metrics->of[replica->fixed.number];
    observe(of, HIST_STEP_TOKENS, totals->n_tokens);
}

static void count_finished(struct replica_metrics *of, const struct ifl_request_record *r,
                           int32_t n)
{
    const int64_t queue_ns = r->first_scheduled_ns - r->arrival_ns,
                  prefill_ns = r->first_token_ns - r->first_scheduled_ns,
                  decode_ns = r->finish_ns - r->first_token_ns;
    const int32_t n_tokens = r->output_tokens;
    observe(of, HIST_E2E, ifl_s_from_ns(r->finish_ns - r->arrival_ns));
    observe(of, HIST_SGLANG_E2E, ifl_s_from_ns(r->finish_ns - r->arrival_ns));
    observe(of, HIST_QUEUE, ifl_s_from_ns(queue_ns));
    observe(of, HIST_PREFILL, ifl_s_from_ns(prefill_ns));
    observe(of, HIST_DECODE, ifl_s_from_ns(decode_ns));
    observe(of, HIST_INFERENCE, ifl_s_from_ns(prefill_ns + decode_ns));
    if (n_tokens > 1)
        observe(of, HIST_TPOT, ifl_s_from_ns(decode_ns) / (n_tokens - 1));
    observe(of, HIST_PROMPT_TOKENS, r->prompt_tokens);
    observe(of, HIST_COMPUTED_TOKENS, r->prompt_tokens - r->cached_tokens);
    for (int32_t i = 0; i < n; i++)
        observe(of, HIST_ANSWER_TOKENS, n_tokens);
    observe(of, HIST_N, n);
    observe(of, HIST_PREEMPTIONS, r->preemptions);
    of->n_prompt_tokens += (uint64_t)r->prompt_tokens;
    of->n_cached_tokens += (uint64_t)r->cached_tokens;
}

void metrics_ended(struct serve_metrics *metrics, const struct ifl_request_record *r, int32_t n,
                   int32_t max_tokens, bool stopped)
{
    if (r->replica < 0 || r->status == IFL_SHED || r->status == IFL_REJECTED) {
        metrics->n_shed++;
        return;
    }
    struct replica_metrics *of = &metrics->of[r->replica];
    of->n_preemptions += (uint64_t)r->preemptions;
    of->n_ended++;
    if (r->status != IFL_FINISHED) {
        of->n_aborted += r->status == IFL_ABORTED;
        of->n_failed += r->status != IFL_ABORTED;
        return;
    }
    metrics->recent_ttft_s[metrics->n_recent % RECENT] =
        ifl_s_from_ns(r->first_token_ns - r->arrival_ns);
    metrics->recent_tpot_s[metrics->n_recent++ % RECENT] =
        r->output_tokens > 1
            ? ifl_s_from_ns(r->finish_ns - r->first_token_ns) / (r->output_tokens - 1)
            : 0;
    of->n_stopped += stopped;
    of->n_at_limit += !stopped;
    count_finished(of, r, n);
    if (max_tokens > 0)
        observe(of, HIST_MAX_TOKENS, max_tokens);
}

/* ---- the text ---- */

struct writer {
    const struct serve_metrics *metrics;
    const struct flight *flight;
    struct evbuffer *out;
    const char *const *models; /* of replicas */
    const char *model;         /* of the server */
};

/* As Python writes a float. */
static const char *real(double value, char text[40])
{
    if (value == (double)(int64_t)value && value < 1e15) {
        snprintf(text, 40, "%.1f", value);
        return text;
    }
    for (int digits = 15; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, 40, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

static void put_head(const struct writer *w, const char *name, const char *kind, const char *doc)
{
    evbuffer_add_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", name, doc, name, kind);
}

static void put_value(const struct writer *w, const char *name, const char *labels, size_t replica,
                      double value)
{
    char text[40];
    evbuffer_add_printf(w->out, "%s{engine=\"%zu\",%smodel_name=\"%s\"} %s\n", name, replica,
                        labels, w->models[replica], real(value, text));
}

static double created(const struct writer *w, size_t replica)
{
    (void)replica;
    return w->metrics->created;
}

/* A number of each replica. A counter has the time of its creation beside it. */
static void put_all(const struct writer *w, const char *name, const char *kind, const char *doc,
                    double (*value)(const struct writer *w, size_t replica))
{
    char total[96], since[96];
    const bool counts = strcmp(kind, "counter") == 0;
    snprintf(total, sizeof total, "%s%s", name, counts ? "_total" : "");
    put_head(w, total, kind, doc);
    for (size_t i = 0; i < w->metrics->n_replicas; i++)
        put_value(w, total, "", i, value(w, i));
    if (!counts)
        return;
    snprintf(since, sizeof since, "%s_created", name);
    put_head(w, since, "gauge", doc);
    for (size_t i = 0; i < w->metrics->n_replicas; i++)
        put_value(w, since, "", i, created(w, i));
}

static double longest(const struct writer *w, size_t replica)
{
    return w->flight->replicas[replica].fixed.limits.max_model_tokens;
}

static void put_histogram(const struct writer *w, enum histogram_name name, size_t replica)
{
    const struct histogram_spec *spec = &specs[name];
    const struct histogram *of = &w->metrics->of[replica].of[name];
    const char *model = w->models[replica];
    const double most = spec->of_length ? longest(w, replica) : DBL_MAX;
    char bound[40];
    uint64_t n = 0;
    size_t i = 0;
    for (; spec->bounds[i] > 0; i++) {
        n += of->n[i];
        if (spec->bounds[i] <= most)
            evbuffer_add_printf(
                w->out, "%s_bucket{engine=\"%zu\",le=\"%s\",model_name=\"%s\"} %llu.0\n",
                spec->name, replica, real(spec->bounds[i], bound), model, (unsigned long long)n);
    }
    n += of->n[i];
    evbuffer_add_printf(w->out,
                        "%s_bucket{engine=\"%zu\",le=\"+Inf\",model_name=\"%s\"} %llu.0\n"
                        "%s_count{engine=\"%zu\",model_name=\"%s\"} %llu.0\n",
                        spec->name, replica, model, (unsigned long long)n, spec->name, replica,
                        model, (unsigned long long)n);
    evbuffer_add_printf(w->out, "%s_sum{engine=\"%zu\",model_name=\"%s\"} %s\n", spec->name,
                        replica, model, real(of->sum, bound));
}

static void put_histograms(const struct writer *w, enum histogram_name first,
                           enum histogram_name last)
{
    char since[96];
    for (enum histogram_name name = first; name <= last; name++) {
        put_head(w, specs[name].name, "histogram", specs[name].doc);
        for (size_t i = 0; i < w->metrics->n_replicas; i++)
            put_histogram(w, name, i);
        snprintf(since, sizeof since, "%s_created", specs[name].name);
        put_head(w, since, "gauge", specs[name].doc);
        for (size_t i = 0; i < w->metrics->n_replicas; i++)
            put_value(w, since, "", i, created(w, i));
    }
}

/* ---- numbers of a replica ---- */

static const struct replica *replica_at(const struct writer *w, size_t i)
{
    return &w->flight->replicas[i];
}

static double n_running(const struct writer *w, size_t i)
{
    return (double)replica_at(w, i)->here.running.n;
}

static double n_waiting(const struct writer *w, size_t i)
{
    const struct replica *replica = replica_at(w, i);
    return (double)(replica->here.waiting.n + replica->here.n_swapped);
}

static double blocks_used(const struct writer *w, size_t i)
{
    const struct replica *replica = replica_at(w, i);
    return (double)(replica->fixed.limits.n_blocks - replica->kv.device.n_free);
}

static double kv_frac(const struct writer *w, size_t i)
{
    return blocks_used(w, i) / replica_at(w, i)->fixed.limits.n_blocks;
}

static double tokens_used(const struct writer *w, size_t i)
{
    return blocks_used(w, i) * replica_at(w, i)->fixed.limits.block_tokens;
}

static double tokens_in_all(const struct writer *w, size_t i)
{
    const struct ifl_limits *limits = &replica_at(w, i)->fixed.limits;
    return (double)limits->n_blocks * limits->block_tokens;
}

#define COUNTED(name)                                                                              \
    static double name(const struct writer *w, size_t i)                                           \
    {                                                                                              \
        return (double)w->metrics->of[i].name;                                                     \
    }
COUNTED(n_prompt_tokens)
COUNTED(n_cached_tokens)
COUNTED(n_answer_tokens)
COUNTED(n_preemptions)
COUNTED(n_ended)
COUNTED(n_aborted)

static double hit_rate(const struct writer *w, size_t i)
{
    const struct replica_metrics *of = &w->metrics->of[i];
    return of->n_prompt_tokens ? (double)of->n_cached_tokens / (double)of->n_prompt_tokens : 0;
}

static void put_successes(const struct writer *w)
{
    static const char name[] = "vllm:request_success_total", doc[] = "Requests that have ended.";
    put_head(w, name, "counter", doc);
    for (size_t i = 0; i < w->metrics->n_replicas; i++) {
        const struct replica_metrics *of = &w->metrics->of[i];
        put_value(w, name, "finished_reason=\"stop\",", i, (double)of->n_stopped);
        put_value(w, name, "finished_reason=\"length\",", i, (double)of->n_at_limit);
        put_value(w, name, "finished_reason=\"abort\",", i, (double)of->n_aborted);
        put_value(w, name, "finished_reason=\"error\",", i, (double)of->n_failed);
    }
}

static void put_cache_config(const struct writer *w)
{
    char labels[128];
    put_head(w, "vllm:cache_config_info", "gauge", "The K/V cache.");
    for (size_t i = 0; i < w->metrics->n_replicas; i++) {
        const struct ifl_limits *limits = &replica_at(w, i)->fixed.limits;
        snprintf(labels, sizeof labels, "block_size=\"%d\",num_gpu_blocks=\"%d\",",
                 limits->block_tokens, limits->n_blocks + w->metrics->of[i].null_blocks);
        put_value(w, "vllm:cache_config_info", labels, i, 1);
    }
}

static void put_rejections(const struct writer *w)
{
    char text[40];
    put_head(w, "vllm:admission_rejections_total", "counter", "Requests turned away.");
    evbuffer_add_printf(w->out,
                        "vllm:admission_rejections_total{model_name=\"%s\",reason="
                        "\"max_num_queued_reqs\"} %s\n",
                        w->model, real((double)w->metrics->n_shed, text));
}

static void put_vllm(const struct writer *w)
{
    put_all(w, "vllm:num_requests_running", "gauge", "Requests in batches.", n_running);
    put_all(w, "vllm:num_requests_waiting", "gauge", "Requests that wait.", n_waiting);
    put_all(w, "vllm:kv_cache_usage_perc", "gauge", "Share of the K/V cache in use.", kv_frac);
    put_all(w, "vllm:gpu_cache_usage_perc", "gauge", "The same, by its older name.", kv_frac);
    put_cache_config(w);
    put_all(w, "vllm:prefix_cache_queries", "counter", "Tokens of prompts that were looked up.",
            n_prompt_tokens);
    put_all(w, "vllm:prefix_cache_hits", "counter", "Tokens of prompts that were found.",
            n_cached_tokens);
    put_all(w, "vllm:num_preemptions", "counter", "Preemptions.", n_preemptions);
    put_all(w, "vllm:prompt_tokens", "counter", "Tokens of prompts.", n_prompt_tokens);
    put_all(w, "vllm:generation_tokens", "counter", "Tokens of answers.", n_answer_tokens);
    put_successes(w);
    put_rejections(w);
    put_histograms(w, HIST_TTFT, HIST_PREEMPTIONS);
}

static void put_sglang(const struct writer *w)
{
    put_all(w, "sglang:num_running_reqs", "gauge", "Requests in batches.", n_running);
    put_all(w, "sglang:num_queue_reqs", "gauge", "Requests that wait.", n_waiting);
    put_all(w, "sglang:token_usage", "gauge", "Share of the K/V cache in use.", kv_frac);
    put_all(w, "sglang:num_used_tokens", "gauge", "Tokens in the K/V cache.", tokens_used);
    put_all(w, "sglang:max_total_num_tokens", "gauge", "Tokens that fit into it.", tokens_in_all);
    put_all(w, "sglang:cache_hit_rate", "gauge", "Share of prompts found in it.", hit_rate);
    put_all(w, "sglang:prompt_tokens", "counter", "Tokens of prompts.", n_prompt_tokens);
    put_all(w, "sglang:generation_tokens", "counter", "Tokens of answers.", n_answer_tokens);
    put_all(w, "sglang:cached_tokens", "counter", "Tokens of prompts that were found.",
            n_cached_tokens);
    put_all(w, "sglang:num_requests", "counter", "Requests that have ended.", n_ended);
    put_all(w, "sglang:num_aborted_requests", "counter", "Requests whose clients left.", n_aborted);
    put_all(w, "sglang:num_retracted_requests", "counter", "Preemptions.", n_preemptions);
    put_histograms(w, HIST_SGLANG_TTFT, HIST_SGLANG_E2E);
}

void metrics_write(const struct serve_metrics *metrics, const struct flight *flight,
                   enum live_metrics names, const char *const *models, const char *model,
                   struct evbuffer *out)
{
    const struct writer w = {metrics, flight, out, models, model};
    if (names != LIVE_METRICS_SGLANG)
        put_vllm(&w);
    if (names != LIVE_METRICS_VLLM)
        put_sglang(&w);
}
