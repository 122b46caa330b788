/* SGLang. Its logs name no version; the presets are of 2026-08. */
#include <stdlib.h>
#include <string.h>

#include "import/settle.h"

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

/* chunked_prefill_size -1: prompts run whole. By default it goes by the GPU's memory. */
static void settle_chunk(struct settled *s)
{
    const char *chunk = facts_text(s->facts, "chunked_prefill_size");
    if (chunk && strcmp(chunk, "-1") == 0)
        settle_put(s, "serving.batching.chunk_tokens", "0");
    else if (chunk)
        settle_count(s, "chunked_prefill_size", "serving.batching.chunk_tokens");
    else
        settle_assume(s, "serving.batching.chunk_tokens", "8192",
                      "SGLang's default on GPUs of 80 to 160 GB");
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
    .missing = "no line says how many tokens of K/V there are (\"max_total_num_tokens\")",
};

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

void settle_sglang(struct settled *s)
{
    settle_put(s, "serving.preset", "sglang"); /* in front of the other keys */
    const bool guesses = settle_drafts_sglang(s);
    settle_loop(s, guesses);
    settle_order(s);
    settle_chunk(s);
    settle_cache(s);
    settle_parallel(s);
    settle_count(s, "context_length", "serving.max_model_len");
    settle_count(s, "max_prefill_tokens", "serving.batching.max_prefill_tokens");
    settle_count(s, "max_queued_requests", "serving.max_waiting_reqs");
    settle_real(s, "schedule_conservativeness", "serving.admit.conservativeness");
    settle_count_or(s, "max_running_requests", "serving.batching.max_seqs", guesses ? "48" : "4096",
                    guesses ? "SGLang's default with guesses"
                            : "the most that SGLang takes by default");
    settle_pool(s, &pool);
    settle_tiers_sglang(s);
    settle_role_sglang(s);
}
