/* SGLang. Its logs name no version; the presets are of 2026-08. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/model.h"

#include "import/names.h"
#include "import/settle_sglang.h"

const struct sglang_order sglang_orders[] = {{"fcfs", "fcfs"},
                                             {"lpm", "longest-prefix"},
                                             {"dfs-weight", "dfs-weight"},
                                             {"lof", "longest-output"},
                                             {"random", "random"}};
const size_t n_sglang_orders = sizeof sglang_orders / sizeof *sglang_orders;

/* The overlap loop is the default. With guesses, chunks are not mixed (server_args.py), and the
 * loop is that of sglang-eagle. */
static void settle_loop(struct settled *s, bool guesses)
{
    const bool mixed = !guesses && facts_true(s->facts, "enable_mixed_chunk", false);
    const bool plain = facts_true(s->facts, "disable_overlap_schedule", false);
    settle_put(s, "serving.preset", "%s", plain || guesses ? "sglang" : "sglang-overlap");
    if (guesses && !plain)
        settle_assume(s, "serving.in_flight.ahead", "0",
                      "as the preset sglang-eagle; newer releases overlap chains of guesses");
    if (mixed)
        settle_put(s, "serving.batching.mixed", "true");
    if (mixed)
        settle_put(s, "serving.admit.mixed", "true");
}

static void settle_order(struct settled *s)
{
    const char *policy = facts_text(s->facts, "schedule_policy");
    for (size_t i = 0; policy && i < n_sglang_orders; i++)
        if (strcmp(policy, sglang_orders[i].name) == 0) {
            settle_put(s, "serving.order.policy", "%s", sglang_orders[i].policy);
            return;
        }
    if (policy)
        settle_fail(s, "schedule_policy",
                    "schedule_policy is %.60s, expected fcfs, lpm, dfs-weight, lof or random",
                    policy);
}

/* The groups of GPUs that compute attention for requests of their own. Each is a scheduler with its
 * part of the seats and of a chunk (server_args.py, _handle_data_parallelism). */
static long long attention_groups(struct settled *s)
{
    return facts_true(s->facts, "enable_dp_attention", false) ? settle_at_least_1(s, "dp_size", 1)
                                                              : 1;
}

static void settle_seats(struct settled *s, bool guesses, long long groups)
{
    char dflt[32];
    const long long seats = guesses ? 48 / groups : 4096;
    snprintf(dflt, sizeof dflt, "%lld", seats > 1 ? seats : 1);
    if (facts_get(s->facts, "max_running_requests"))
        sglang_settle_part(s, "max_running_requests", "serving.batching.max_seqs", groups);
    else
        settle_assume(s, "serving.batching.max_seqs", dflt,
                      guesses ? "SGLang's default with guesses"
                              : "the most that SGLang takes by default");
}

/* With attention in parallel 0.3 of what it was asked for. */
static void settle_conservativeness(struct settled *s, long long groups)
{
    const struct fact *fact = facts_get(s->facts, "schedule_conservativeness");
    const double asked = settle_real_or(s, "schedule_conservativeness", 1);
    if (groups > 1 && !(fact && fact->forced))
        settle_put(s, "serving.admit.conservativeness", "%.15g", 0.3 * asked);
    else if (fact)
        settle_put(s, "serving.admit.conservativeness", "%.15g", asked);
}

static void settle_cache(struct settled *s)
{
    const char *eviction = facts_text(s->facts, "radix_eviction_policy");
    if (facts_true(s->facts, "disable_radix_cache", false))
        settle_put(s, "serving.kv.prefix_cache", "none");
    if (eviction && strcmp(eviction, "lru") != 0)
        settle_put(s, "serving.evict.policy", "%s", eviction);
}

static const struct pool_names pool = {
    .block = "page_size",
    .dflt = 1,
    .dflt_is = "SGLang's default",
    .tokens = "max_total_tokens",
    .missing = "no line says how many tokens of K/V there are (\"max_total_num_tokens\", "
               "\"KV Cache is allocated\")",
};

/* A count far from those of all pools that are allocated is of something else, or cut. Pools of one
 * server differ by their kinds of layers. */
static void check_pools(struct settled *s)
{
    const long long tokens = settle_number(s, "num_tokens", 0);
    long long least = 0, most = 0, count;
    for (size_t i = 0; i < s->facts->n; i++) {
        const struct fact *fact = &s->facts->of[i];
        const bool is_pool =
            strcmp(fact->name, "pool_tokens") == 0 || strcmp(fact->name, "other_pool_tokens") == 0;
        if (!is_pool || !count_read(fact->value, &count))
            continue;
        least = least == 0 || count < least ? count : least;
        most = count > most ? count : most;
    }
    if (tokens < least / 2 || tokens / 2 > most)
        settle_fail(s, "num_tokens",
                    "max_total_num_tokens is %lld, but pools of %lld to %lld tokens are allocated",
                    tokens, least, most);
}

/* Where no list of arguments behind the pools says how many tokens there are, the pool does. Pools
 * of several sizes are of several kinds of layers, or of a draft model with another size. */
static void settle_pool_lines(struct settled *s)
{
    const struct fact *pool_tokens = facts_get(s->facts, "pool_tokens");
    if (!pool_tokens || s->code < 0)
        return;
    if (facts_get(s->facts, "num_tokens")) {
        facts_decide(s->facts, "pool_tokens", FOUND_HARMLESS, NULL, NULL);
        check_pools(s);
        return;
    }
    for (size_t i = 0; i < s->facts->n; i++) {
        const struct fact *other = &s->facts->of[i];
        if (strcmp(other->name, "other_pool_tokens") != 0 ||
            strcmp(other->value, pool_tokens->value) == 0)
            continue;
        s->code = facts_fail(other->at, s->error,
                             "a pool of %.40s tokens, but one of %.40s on line %ld, and no line "
                             "says which counts (\"max_total_num_tokens\")",
                             other->value, pool_tokens->value, pool_tokens->at.line);
        return;
    }
    const struct fact first = *pool_tokens; /* the list may move */
    s->code = facts_also(s->facts, "num_tokens", first.value, first.at, s->error);
}

/* A server has --tp-size GPUs. With attention in parallel (server_args.py, enable_dp_attention)
 * they are dp_size groups that share the experts; without, the groups are replicas of that many
 * GPUs. DeepEP, and before 0.5 --enable-ep-moe, deal the experts out over all of them. */
static void settle_parallel(struct settled *s)
{
    const struct facts *facts = s->facts;
    const char *exchange = facts_text(facts, "moe_a2a_backend");
    const bool shares = facts_true(facts, "enable_dp_attention", false);
    const bool deals = facts_true(facts, "enable_ep_moe", false) ||
                       facts_true(facts, "enable_deepep_moe", false) ||
                       (exchange && strcmp(exchange, "deepep") == 0);
    const long long gpus = settle_at_least_1(s, "tp_size", 1);
    const long long groups = shares ? settle_number(s, "dp_size", 1) : 1;
    const long long experts = deals ? gpus : settle_number(s, "ep_size", 1);
    settle_common(s, shares ? "no such fact" : "tp_size", "pp_size",
                  shares ? "no such fact" : "dp_size");
    if (groups < 1 || gpus % groups != 0)
        settle_fail(s, "dp_size", "dp_size is %lld, expected a divisor of tp_size (%lld)", groups,
                    gpus);
    else if (shares && gpus > groups)
        settle_put(s, "parallel.tensor", "%lld", gpus / groups);
    if (groups > 1)
        settle_put(s, "parallel.data", "%lld", groups);
    if (experts > 1)
        settle_put(s, "parallel.expert", "%lld", experts);
}

/* True if the log shows that the data-parallel ranks are parts of the tensor-parallel ones
 * (log_ranks.h) in all files. */
static bool logs_shared_attention(const struct facts *facts)
{
    bool shares = false;
    for (size_t i = 0; i < facts->n; i++) {
        if (strcmp(facts->of[i].name, "ranks_share_attention") != 0)
            continue;
        shares = strcmp(facts->of[i].value, "True") == 0;
        if (!shares)
            return false;
    }
    return shares;
}

/* What no argument says of the ranks is what the log shows. That experts have fewer ranks than log
 * is no error: --moe-a2a-backend deals them out over all GPUs, whatever --ep-size says. */
static void settle_all_ranks(struct settled *s)
{
    static const char *const attention = "enable_dp_attention";
    const struct rank_names tensor = tensor_ranks("tp_size");
    const bool shares = facts_true(s->facts, attention, logs_shared_attention(s->facts));
    const struct rank_names groups = {
        "dp_ranks", "DP", "dp_size", "cluster.replicas",
        shares ? "no argument says how many groups compute attention: as many log here, each with "
                 "ranks of the model that are its own"
               : "no argument says how many replicas there are: as many log here"};
    const struct rank_names stages = {"pp_ranks", "PP", "pp_size", "parallel.pipeline",
                                      "no argument says how many stages there are: as many log "
                                      "here"};
    const struct rank_names experts = {"ep_ranks", "EP", "ep_size", "parallel.expert",
                                       "no argument says over how many GPUs experts are dealt out: "
                                       "as many ranks log here"};
    settle_ranks(s, &tensor);
    settle_ranks(s, &groups);
    settle_ranks(s, &stages);
    if (!facts_get(s->facts, "ep_size"))
        settle_ranks(s, &experts);
    const struct fact *fact = facts_get(s->facts, "dp_ranks");
    if (s->code == 0 && shares && fact && !facts_get(s->facts, attention))
        s->code = facts_also(s->facts, attention, "True", fact->at, s->error);
}

/* A second pool of layers with a window, of 0.8 of the tokens, since 0.5.8 for some models
 * (ServerArgs.swa_full_tokens_ratio), and one of states (mamba_full_memory_ratio). */
static void report_kinds(struct settled *s)
{
    struct model model;
    if (s->code < 0 || !settle_known_model(s, &model) || model_kv_groups(&model).n_window == 0)
        return;
    settle_find(s, FOUND_UNMODELLED, s->facts->server_at, tree_text(tree_at(s->root, "model")),
                NULL,
                model.state_layers > 0
                    ? "the pool of states: K/V has its memory here, and seats that it limits are "
                      "not"
                    : "a second pool, of layers with a window: all layers hold all tokens here");
}

/* CUDA graphs hold steps without prompts alone. Layers with latents or states have so many kernels
 * that the host which launches them is slower than short prompts. Steps of other models show no
 * such floor. */
static void settle_prompts(struct settled *s)
{
    struct model model;
    if (s->code == 0 && settle_known_model(s, &model) &&
        (model_is_latent(&model) || model.state_layers > 0))
        settle_host_time(s, "deployment.host.prompt_floor_layer_s", "2e-3",
                         "SGLang launches the kernels of prompts one by one; as found in published "
                         "runs of 0.4 to 0.5, hosts differ");
}

/* Requests and tokens pass three processes, and kernels of prompts are launched one by one. */
static void settle_front_end(struct settled *s)
{
    settle_host_time(s, "deployment.front_end.request_s", "0.03",
                     "HTTP, the tokenizer and what the first step lacks, as found in published "
                     "runs of 0.4 to 0.5");
    settle_host_time(s, "deployment.intervals.front_end.request_s", "[0.01, 0.07]",
                     "hosts of these runs differ as much");
}

/* aiter is AMD's library of kernels. */
static void report_device(struct settled *s)
{
    static const char *const names[] = {"attention_backend", "prefill_attention_backend",
                                        "decode_attention_backend"};
    char what[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct fact *fact = facts_get(s->facts, names[i]);
        if (!fact || strcmp(fact->value, "aiter") != 0)
            continue;
        snprintf(what, sizeof what, "%s=aiter", names[i]);
        settle_find(s, FOUND_UNMODELLED, fact->at, what, NULL, OTHER_DEVICE);
    }
}

/* A format that was asked for is that of the pool, too. */
static void settle_pool_dtype(struct settled *s)
{
    const char *dtype = facts_text(s->facts, "pool_dtype");
    const char *asked = facts_text(s->facts, "kv_cache_dtype");
    if (!dtype || (asked && strcmp(asked, "auto") != 0))
        facts_decide(s->facts, "pool_dtype", FOUND_HARMLESS, NULL, NULL);
    else if (strncmp(dtype, "float8_e4m3", strlen("float8_e4m3")) == 0)
        settle_put(s, "engine.kv_dtype", "fp8");
    else if (strstr(dtype, "float16") == NULL)
        facts_decide(s->facts, "pool_dtype", FOUND_UNMODELLED, NULL,
                     "the width of K/V: a step takes as long as with the dtype of the weights");
}

void settle_sglang(struct settled *s)
{
    settle_started(s);
    settle_all_ranks(s);
    sglang_check_version(s);
    settle_put(s, "serving.preset", "sglang"); /* in front of the other keys */
    const bool guesses = settle_drafts_sglang(s);
    settle_loop(s, guesses);
    settle_order(s);
    const long long groups = attention_groups(s);
    if (s->code < 0)
        return;
    sglang_settle_chunk(s, groups);
    settle_cache(s);
    settle_parallel(s);
    settle_length(s, "context_length");
    settle_count(s, "max_prefill_tokens", "serving.batching.max_prefill_tokens");
    settle_count(s, "max_queued_requests", "serving.max_waiting_reqs");
    settle_conservativeness(s, groups);
    settle_seats(s, guesses, groups);
    settle_pool_lines(s);
    settle_pool(s, &pool);
    settle_pool_dtype(s);
    sglang_settle_memory(s, groups);
    settle_tiers_sglang(s);
    settle_role_sglang(s);
    settle_prompts(s);
    settle_front_end(s);
    report_kinds(s);
    report_device(s);
}
