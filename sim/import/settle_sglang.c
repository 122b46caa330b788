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

/* The groups of GPUs that compute attention for requests of their own. Each is a scheduler with its
 * part of the seats and of a chunk (server_args.py, _handle_data_parallelism). */
static long long attention_groups(struct settled *s)
{
    return facts_true(s->facts, "enable_dp_attention", false) ? settle_at_least_1(s, "dp_size", 1)
                                                              : 1;
}

/* A count that the server was asked for, of which a group gets its part; what it says that it took
 * is a group's already. */
static void settle_share(struct settled *s, const char *name, const char *key, long long groups)
{
    const struct fact *fact = facts_get(s->facts, name);
    const long long count = settle_at_least_1(s, name, 1) / (fact->forced ? 1 : groups);
    settle_put(s, key, "%lld", count > 1 ? count : 1);
}

/* chunked_prefill_size -1: prompts run whole. By default it goes by the GPU's memory. */
static void settle_chunk(struct settled *s, long long groups)
{
    const char *chunk = facts_text(s->facts, "chunked_prefill_size");
    char dflt[32];
    snprintf(dflt, sizeof dflt, "%lld", 8192 / groups > 1 ? 8192 / groups : 1);
    if (chunk && strcmp(chunk, "-1") == 0)
        settle_put(s, "serving.batching.chunk_tokens", "0");
    else if (chunk && strcmp(chunk, "0") != 0)
        settle_share(s, "chunked_prefill_size", "serving.batching.chunk_tokens", groups);
    else if (!chunk)
        settle_assume(s, "serving.batching.chunk_tokens", dflt,
                      groups > 1 ? "SGLang's default on GPUs of 80 to 160 GB, a group's part"
                                 : "SGLang's default on GPUs of 80 to 160 GB");
}

static void settle_seats(struct settled *s, bool guesses, long long groups)
{
    char dflt[32];
    const long long seats = guesses ? 48 / groups : 4096;
    snprintf(dflt, sizeof dflt, "%lld", seats > 1 ? seats : 1);
    if (facts_get(s->facts, "max_running_requests"))
        settle_share(s, "max_running_requests", "serving.batching.max_seqs", groups);
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

/* --mem-fraction-static is the share of the rule `sglang`. Blocks that are known need none. */
static void settle_memory(struct settled *s)
{
    const bool is_known = tree_at(s->root, "serving.kv.num_blocks");
    const bool is_said = facts_get(s->facts, "mem_fraction_static");
    if (!is_said && is_known)
        return;
    settle_put(s, "serving.kv.sizing", "sglang");
    if (is_said)
        settle_real(s, "mem_fraction_static", "serving.kv.memory_utilization");
    else
        settle_assume(
            s, "serving.kv.memory_utilization", "0.835",
            "SGLang's default on one H100; it goes by the GPU's memory, the chunk and the "
            "graphs: give --mem-fraction-static");
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
    settle_ranks(s, "tp_size");
    settle_put(s, "serving.preset", "sglang"); /* in front of the other keys */
    const bool guesses = settle_drafts_sglang(s);
    settle_loop(s, guesses);
    settle_order(s);
    const long long groups = attention_groups(s);
    if (s->code < 0)
        return;
    settle_chunk(s, groups);
    settle_cache(s);
    settle_parallel(s);
    settle_count(s, "context_length", "serving.max_model_len");
    settle_length(s);
    settle_count(s, "max_prefill_tokens", "serving.batching.max_prefill_tokens");
    settle_count(s, "max_queued_requests", "serving.max_waiting_reqs");
    settle_conservativeness(s, groups);
    settle_seats(s, guesses, groups);
    settle_pool(s, &pool);
    settle_memory(s);
    settle_tiers_sglang(s);
    settle_role_sglang(s);
}
