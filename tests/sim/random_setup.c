#include "random_setup.h"

#include <stdlib.h>
#include <string.h>

#include "config/registry.h"

static const char *roll_bool(struct dice *dice)
{
    return roll(dice, 0, 1) ? "true" : "false";
}

static void roll_unified(struct fixture *f, struct dice *dice)
{
    char params[256];
    const int32_t max_seqs = roll(dice, f->max_samples, 12);
    const int32_t max_active = roll(dice, 0, 1) * roll(dice, f->max_samples, max_seqs);
    snprintf(params, sizeof params,
             "{max_seqs: %d, max_active_seqs: %d, max_batched_tokens: %d, long_prefill_tokens: %d, "
             "long_prefill_alone: %s, long_prefill_adapts: %s, walks_on: %s}",
             max_seqs, max_active, roll(dice, 1, 40), roll(dice, 0, 1) * roll(dice, 1, 20),
             roll_bool(dice), roll_bool(dice), roll_bool(dice));
    f->overlap.hindsight = roll(dice, 0, 1);
    fixture_module(f, IFL_BATCHING, "unified", params);
}

/* True if a decode may ask for a block that it does not need. */
static bool roll_batching(struct fixture *f, struct dice *dice)
{
    static const char *const afters[] = {"everyone", "others", "until-victim"};
    char params[512];
    const int32_t kind = roll(dice, 0, 6);
    const bool spares = roll(dice, 0, 1);
    if (kind == 0) {
        snprintf(params, sizeof params,
                 "{max_seqs: %d, max_batched_tokens: %d, delay_factor: %d, append_rule: %s, "
                 "walk: %s, blocked_head: %s, first_chunked: %s, num_scheduler_steps: %d}",
                 roll(dice, f->max_samples, 12), roll(dice, 0, 1) * roll(dice, 8, 200),
                 roll(dice, 0, 3) == 0 ? roll(dice, 1, 3) : 0, spares ? "one-free" : "touched",
                 roll(dice, 0, 1) ? "started" : "ranked", roll(dice, 0, 2) ? "waits" : "preempts",
                 roll(dice, 0, 2) ? "false" : "true",
                 spares || roll(dice, 0, 2) ? 1 : roll(dice, 2, 5));
        fixture_module(f, IFL_BATCHING, "prefill-first", params);
    } else if (kind == 1) {
        snprintf(params, sizeof params,
                 "{max_seqs: %d, chunk_tokens: %d, append_spare_blocks: %d, walk: %s, prompts: %s, "
                 "after_preemption: %s, swapped_first: %s, schedule_stages: %d, "
                 "schedule_tokens: 24, low_chunk_tokens: 4, high_chunk_tokens: 16, "
                 "max_partial_prefills: %d, max_long_partial_prefills: %d, "
                 "long_prefill_tokens: %d}",
                 roll(dice, f->max_samples, 12), roll(dice, 0, 2) ? roll(dice, 1, 40) : 0, spares,
                 roll(dice, 0, 1) ? "started" : "ranked", roll(dice, 0, 3) ? "chunked" : "whole",
                 afters[roll(dice, 0, 2)], roll(dice, 0, 1) ? "true" : "false",
                 roll(dice, 0, 3) ? 0 : roll(dice, 1, 5), roll(dice, 1, 4), roll(dice, 1, 3),
                 roll(dice, 0, 30));
        fixture_module(f, IFL_BATCHING, "mixed", params);
    } else if (kind == 2) {
        roll_unified(f, dice);
    } else if (kind == 3) {
        snprintf(params, sizeof params,
                 "{max_seqs: %d, padded: %s, preferred_seqs: %d, queue_delay_s: %d}",
                 roll(dice, f->max_samples, 12), roll(dice, 0, 1) ? "true" : "false",
                 roll(dice, 0, 6), roll(dice, 0, 3));
        fixture_module(f, IFL_BATCHING, "static", params);
    } else if (kind == 4) {
        snprintf(params, sizeof params,
                 "{max_seqs: %d, max_batched_tokens: %d, decodes_between: %d, waiting_ratio: %d, "
                 "joined_decode: %s}",
                 roll(dice, 1, 12), roll(dice, 0, 1) * roll(dice, 8, 200), roll(dice, 0, 6),
                 roll(dice, 0, 2), roll(dice, 0, 1) ? "true" : "false");
        fixture_module(f, IFL_BATCHING, "prefill-turns", params);
    } else if (kind == 6) {
        snprintf(params, sizeof params, "{max_reqs: %d, max_batched_tokens: %d, max_missed: %d}",
                 roll(dice, 1, 12), roll(dice, 1, 60), roll(dice, 1, 5));
        fixture_module(f, IFL_BATCHING, "pausing", params);
    } else {
        snprintf(params, sizeof params, "{max_seqs: %d, chunk_tokens: %d}",
                 roll(dice, f->max_samples, 12), roll(dice, 1, 40));
        fixture_module(f, IFL_BATCHING, "alternate", params);
    }
    return kind == 5 || (spares && kind < 2);
}

static void roll_admission(struct fixture *f, struct dice *dice)
{
    char params[256];
    const int32_t kind = roll(dice, 0, 4);
    if (kind == 0) {
        static const char *const whats[] = {"{for: max-model-len}", "{for: declared}",
                                            "{for: predicted}", "{for: predicted-pow2}"};
        fixture_module(f, IFL_ADMIT, "reserve", whats[roll(dice, 0, 3)]);
    } else if (kind == 1) {
        snprintf(params, sizeof params, "{room_for: %s, watermark_frac: 0.%d}",
                 roll(dice, 0, 1) ? "prompt" : "chunk", roll(dice, 0, 3));
        fixture_module(f, IFL_ADMIT, "chunk-fits", params);
    } else if (kind == 2) {
        fixture_module(f, IFL_ADMIT, "peak-estimate", NULL);
    } else {
        snprintf(params, sizeof params, "{watermark_frac: 0.0%d}", roll(dice, 0, 9));
        fixture_module(f, IFL_ADMIT, "prompt-fits", params);
    }
}

/* ---- modules that only make sense together ---- */

static void roll_capacity(struct fixture *f, struct dice *dice)
{
    static const char *const chunkings[] = {"none", "first-come", "equal-progress"};
    char params[256];
    const bool evicts = roll(dice, 0, 1);
    const int32_t chunking = roll(dice, 0, 2);
    snprintf(params, sizeof params,
             "{max_seqs: %d, max_batched_tokens: %d, chunking: %s, join: %s}", roll(dice, 1, 12),
             roll(dice, 10, 200), chunkings[chunking], roll(dice, 0, 4) ? "always" : "when-idle");
    fixture_module(f, IFL_BATCHING, "capacity", params);
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    /* With equal progress prompts start before their tokens are known, so they take blocks whole.
     */
    if (evicts && (chunking == 2 || roll(dice, 0, 1)))
        fixture_module(f, IFL_ADMIT, "prompt-fits", "{watermark_frac: 0}");
    else if (evicts)
        fixture_module(f, IFL_ADMIT, "chunk-fits", "{room_for: chunk}");
    else
        fixture_module(f, IFL_ADMIT, "reserve",
                       roll(dice, 0, 1) ? "{for: declared}" : "{for: computed}");
    fixture_module(f, IFL_PREEMPT, "tail",
                   evicts || roll(dice, 0, 1) ? "{fate: recompute, of: ranked, place: in-order}"
                                              : "{fate: never}");
}

static void roll_retracting(struct fixture *f, struct dice *dice)
{
    static const char *const orders[] = {"fcfs", "longest-prefix", "dfs-weight", "longest-output",
                                         "random"};
    static const char *const loops[] = {"mixed: false", "mixed: true", "mixed: false"};
    const int32_t loop = roll(dice, 0, 2);
    char params[256];
    snprintf(params, sizeof params, "{max_seqs: %d, max_prefill_tokens: %d, chunk_tokens: %d, %s}",
             roll(dice, 1, 12), roll(dice, 20, 200), roll(dice, 0, 1) * roll(dice, 20, 60),
             loops[loop]);
    fixture_module(f, IFL_BATCHING, "retracting", params);
    fixture_module(f, IFL_ORDER, orders[roll(dice, 0, 4)], NULL);
    snprintf(params, sizeof params, "{conservativeness: 0.%d}", roll(dice, 0, 9));
    fixture_module(f, IFL_ADMIT, "discounted", params);
    fixture_module(f, IFL_PREEMPT, "shortest-output", NULL);
    f->overlap.hindsight = loop == 2;
}

static void roll_ranked_order(struct fixture *f, struct dice *dice)
{
    char params[256];
    const int32_t order = roll(dice, 0, 2);
    if (order == 0) {
        fixture_module(f, IFL_ORDER, "mlfq",
                       "{quantum_s: 0.1, starve_steps: 50, starve_s: 1, prefill_token_s: 0.01}");
    } else if (order == 1) {
        fixture_module(f, IFL_ORDER, "sjf", "{job: remaining}");
    } else {
        snprintf(params, sizeof params, "{starve_steps: %d, promoted_steps: %d}",
                 roll(dice, 10, 40), roll(dice, 0, 9));
        fixture_module(f, IFL_ORDER, "starving-first", params);
    }
    if (order != 1) /* host room for all requests, or some could preempt each other for ever */
        f->limits.n_host_blocks = RANDOM_MAX_REQUESTS * f->limits.max_model_tokens;
}

static void roll_ranked(struct fixture *f, struct dice *dice)
{
    char params[256];
    snprintf(params, sizeof params, "{max_seqs: %d, max_batched_tokens: %d, budget_counts: %s}",
             roll(dice, 1, 12), roll(dice, 10, 100), roll(dice, 0, 1) ? "everyone" : "prompts");
    fixture_module(f, IFL_BATCHING, "ranked", params);
    roll_ranked_order(f, dice);
    fixture_module(f, IFL_ADMIT, roll(dice, 0, 1) ? "host-room" : "chunk-fits", NULL);
    snprintf(params, sizeof params, "{keep_free_blocks: %d, look_ahead: %d}", roll(dice, 0, 8),
             roll(dice, 0, 12));
    if (roll(dice, 0, 1))
        fixture_module(f, IFL_PREEMPT, "proactive", params);
    else
        fixture_module(f, IFL_PREEMPT, "tail", "{fate: swap, of: ranked, place: in-order}");
}

/* Prompts are chunked, so recomputing requests may preempt each other for ever. Host memory for all
 * requests avoids recomputation. */
static void roll_best_that_fit(struct fixture *f, struct dice *dice)
{
    char params[256];
    snprintf(params, sizeof params, "{max_seqs: %d, max_batched_tokens: %d, watermark_frac: 0.0%d}",
             roll(dice, 1, 12), roll(dice, 10, 100), roll(dice, 0, 9));
    fixture_module(f, IFL_BATCHING, "best-that-fit", params);
    roll_ranked_order(f, dice);
    f->limits.n_host_blocks = RANDOM_MAX_REQUESTS * f->limits.max_model_tokens;
    fixture_module(f, IFL_ADMIT, "prompt-fits", "{watermark_frac: 0}");
    fixture_module(f, IFL_PREEMPT, "tail", "{fate: swap, of: ranked, place: in-order}");
}

static void roll_deadlines(struct fixture *f, struct dice *dice)
{
    char params[256];
    snprintf(params, sizeof params, "{max_seqs: %d, step_s: 0.1, prefill_token_s: 0.00%d}",
             roll(dice, 1, 12), roll(dice, 1, 9));
    fixture_module(f, IFL_BATCHING, "deadline-chunks", params);
    fixture_module(f, IFL_ORDER, "deadline",
                   roll(dice, 0, 1) ? "{relegate: true, prefill_tok_per_s: 100}" : NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(f, IFL_PREEMPT, "tail", roll(dice, 0, 1) ? "{fate: swap}" : NULL);
}

/* Fate `never` only if admission reserves the memory of whole requests and no spare block is asked
 * for: in other set-ups preemptions are necessary. */
static void roll_tail(struct fixture *f, struct dice *dice, bool spares)
{
    static const char *const fates[] = {"recompute", "swap", "swap-groups", "never"};
    static const char *const places[] = {"front", "in-order", "back"};
    const bool reserved = !spares && strcmp(f->modules[IFL_ADMIT].policy->name, "reserve") == 0;
    char params[256];
    snprintf(params, sizeof params, "{fate: %s, of: %s, place: %s, scheduled: %s}",
             fates[roll(dice, 0, reserved ? 3 : 2)], roll(dice, 0, 1) ? "started" : "ranked",
             places[roll(dice, 0, 2)], roll(dice, 0, 1) ? "keep" : "undo");
    fixture_module(f, IFL_PREEMPT, "tail", params);
}

static void roll_modules(struct fixture *f, struct dice *dice)
{
    const int32_t family = roll(dice, 0, 7);
    if (family == 0) {
        roll_capacity(f, dice);
        return;
    }
    if (family == 1) {
        roll_retracting(f, dice);
        return;
    }
    if (family == 2) {
        roll_ranked(f, dice);
        return;
    }
    if (family == 7) {
        roll_best_that_fit(f, dice);
        return;
    }
    if (family == 3) {
        roll_deadlines(f, dice);
        return;
    }
    static const char *const orders[] = {"fcfs", "sjf", "priority", "vtc", "drr"};
    const bool spares = roll_batching(f, dice);
    fixture_module(f, IFL_ORDER, orders[roll(dice, 0, 4)], NULL);
    roll_admission(f, dice);
    roll_tail(f, dice, spares);
}

static void roll_trace(struct fixture *f, struct dice *dice)
{
    const int32_t gap = roll(dice, 0, 3);
    int64_t at_ns = 0;
    fixture_trace(f, (size_t)roll(dice, 1, RANDOM_MAX_REQUESTS));
    f->trace.ttft_slo_ns = calloc(f->trace.n, sizeof *f->trace.ttft_slo_ns);
    f->trace.tpot_slo_ns = calloc(f->trace.n, sizeof *f->trace.tpot_slo_ns);
    for (size_t i = 0; i < f->trace.n; i++) {
        at_ns += gap ? (int64_t)roll(dice, 0, 4 * gap) * 100000000 : 0;
        f->trace.arrival_ns[i] = at_ns;
        f->trace.n_prompt[i] = roll(dice, 1, 60);
        f->trace.n_output[i] = roll(dice, 1, 40);
        f->trace.priority[i] = roll(dice, 0, 3);
        f->trace.ttft_slo_ns[i] = roll(dice, 0, 1) ? roll(dice, 1, 50) * 100000000LL : IFL_NEVER;
        f->trace.tpot_slo_ns[i] = roll(dice, 0, 1) ? roll(dice, 1, 10) * 50000000LL : IFL_NEVER;
        f->trace.client[i] = (uint32_t)roll(dice, 0, RANDOM_CLIENTS - 1);
    }
    f->concurrency = roll(dice, 0, 4) == 0 ? roll(dice, 1, 10) : 0;
}

/* Conversations: the prompt of a turn repeats all or most of the previous tokens and adds some. */
static void roll_conversations(struct fixture *f, struct dice *dice)
{
    enum { N_TALKS = 3 };
    struct ifl_trace *trace = &f->trace;
    int32_t n_said[N_TALKS + 1] = {0};
    trace->session = calloc(trace->n, sizeof *trace->session);
    trace->think_ns = calloc(trace->n, sizeof *trace->think_ns);
    for (size_t i = 0; i < trace->n; i++) {
        const uint32_t talk = (uint32_t)roll(dice, 0, N_TALKS);
        const int32_t heard = n_said[talk] - (roll(dice, 0, 3) ? 0 : roll(dice, 0, 20));
        trace->session[i] = talk;
        trace->think_ns[i] = talk > 0 && roll(dice, 0, 3) ? roll(dice, 0, 3) * 100000000LL : -1;
        if (talk == 0)
            continue;
        if (heard > 0 && heard < 100)
            trace->n_prompt[i] = heard + roll(dice, 1, 12);
        trace->n_output[i] = roll(dice, 1, 20);
        trace->prefix_group[i] = roll(dice, 0, 5) ? talk : 1;
        trace->prefix_tokens[i] = roll(dice, 0, 5) ? trace->n_prompt[i] : heard > 0 ? 1 : 0;
        n_said[talk] = trace->n_prompt[i] + trace->n_output[i];
    }
}

/* The groups' prefixes, described by one hash id per token. */
static void name_tokens(struct ifl_trace *trace)
{
    size_t n = 0;
    trace->hash_block_tokens = 1;
    trace->hash_at = calloc(trace->n + 1, sizeof *trace->hash_at);
    trace->hash_id = calloc(trace->n * 120, sizeof *trace->hash_id);
    for (size_t i = 0; i < trace->n; i++) {
        for (int32_t k = 0; k < trace->prefix_tokens[i]; k++)
            trace->hash_id[n++] = trace->prefix_group[i] * 1000 + (uint32_t)k;
        trace->hash_at[i + 1] = n;
        trace->prefix_group[i] = 0;
        trace->prefix_tokens[i] = 0;
    }
}

/* Shared prefixes of a few groups, most of them longer than a block. */
static void roll_prefixes(struct fixture *f, struct dice *dice)
{
    f->trace.prefix_group = calloc(f->trace.n, sizeof *f->trace.prefix_group);
    f->trace.prefix_tokens = calloc(f->trace.n, sizeof *f->trace.prefix_tokens);
    for (size_t i = 0; i < f->trace.n; i++) {
        f->trace.prefix_group[i] = (uint32_t)roll(dice, 0, 4);
        if (f->trace.prefix_group[i] > 0)
            f->trace.prefix_tokens[i] = roll(dice, 1, f->trace.n_prompt[i]);
    }
    if (roll(dice, 0, 1))
        roll_conversations(f, dice);
    if (f->trace.session && roll(dice, 0, 2) == 0)
        name_tokens(&f->trace);
}

/* Hash ids as a trace has them: an id stands for its block and all before it. */
static void roll_hash_ids(struct fixture *f, struct dice *dice)
{
    struct ifl_trace *trace = &f->trace;
    size_t n = 0;
    trace->hash_block_tokens = roll(dice, 1, 12);
    trace->hash_at = calloc(trace->n + 1, sizeof *trace->hash_at);
    trace->hash_id = calloc(trace->n * 61, sizeof *trace->hash_id);
    for (size_t i = 0; i < trace->n; i++) {
        uint64_t id = 0;
        for (int32_t at = 0; at < trace->n_prompt[i]; at += trace->hash_block_tokens) {
            const int32_t branch = roll(dice, 0, 3) ? 0 : roll(dice, 0, 2);
            const bool whole = at + trace->hash_block_tokens <= trace->n_prompt[i];
            id = id * 3 + (uint64_t)branch + 1;
            trace->hash_id[n++] = whole ? id % 0x3fffffff : 0x40000000 + i;
        }
        trace->hash_at[i + 1] = n;
    }
}

static void roll_memory(struct fixture *f, struct dice *dice)
{
    static const char *const evict[] = {"lru", "lfu", "queue-informed"};
    const int32_t kind = roll(dice, 0, 9);
    const char *admits = f->modules[IFL_ADMIT].policy->name;
    const bool grows = strcmp(admits, "chunk-fits") == 0 || strcmp(admits, "discounted") == 0;
    f->allocator = kind == 0 && !grows ? KV_BUDDY : KV_PAGED;
    f->prefix_cache = kind < 4   ? PREFIX_CACHE_NONE
                      : kind < 7 ? PREFIX_CACHE_HASH
                                 : PREFIX_CACHE_RADIX;
    f->unhashed = roll(dice, 0, 2) ? KV_UNHASHED_FIRST : KV_UNHASHED_IN_ORDER;
    f->publish = roll(dice, 0, 1) ? KV_PUBLISH_SCHEDULED : KV_PUBLISH_COMPUTED;
    if (f->prefix_cache == PREFIX_CACHE_RADIX)
        f->unhashed = KV_UNHASHED_FIRST;
    fixture_module(f, IFL_EVICT, evict[roll(dice, 0, 2)], NULL);
    if (roll(dice, 0, 2))
        roll_prefixes(f, dice);
    else if (roll(dice, 0, 1))
        roll_hash_ids(f, dice);
}

static void roll_samples(struct fixture *f, struct dice *dice)
{
    f->trace.samples = calloc(f->trace.n, sizeof *f->trace.samples);
    for (size_t i = 0; i < f->trace.n; i++)
        f->trace.samples[i] = roll(dice, 1, f->max_samples);
    f->beams = (struct beam_search){
        .search = roll(dice, 0, 1), .fork_frac = roll(dice, 0, 10) / 10.0, .seed = dice->seed};
}

/* Some requests are computed with one of a few adapters. */
void roll_adapters(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed + (UINT64_C(1) << 41), 0};
    const bool in_pool = roll(&dice, 0, 1) && f->allocator == KV_PAGED;
    const int32_t slots = roll(&dice, 0, 1) * roll(&dice, 1, 3);
    f->trace.adapter = calloc(f->trace.n, sizeof *f->trace.adapter);
    for (size_t i = 0; i < f->trace.n; i++)
        f->trace.adapter[i] = (uint32_t)roll(&dice, 0, RANDOM_ADAPTERS);
    for (uint32_t i = 1; i <= RANDOM_ADAPTERS; i++) {
        const int32_t n_blocks = roll(&dice, 0, 3);
        f->adapters[i] = (struct adapter){.rank = roll(&dice, 1, 64), .n_blocks = n_blocks};
        f->adapter_blocks[i] = n_blocks;
    }
    f->limits.n_adapters = RANDOM_ADAPTERS;
    f->limits.max_adapters = slots;
    f->limits.adapter_blocks = in_pool ? f->adapter_blocks : NULL;
    f->adapters_of =
        (struct adapters_options){.n = RANDOM_ADAPTERS,
                                  .of = f->adapters,
                                  .in_pool = in_pool,
                                  .device_slots = slots,
                                  .host_slots = slots > 0 ? slots + roll(&dice, 0, 1) : 0};
    f->adapter_cost = (struct adapter_cost){.computes = true,
                                            .launches_s = 0.01,
                                            .rank_token_s = 0.0001,
                                            .rank_s = 0.0005,
                                            .load_s = 0.03};
    if (slots > 0) /* asked behind the other admission */
        f->modules[IFL_N_KINDS] = (struct module_config){
            .policy = registry_find(IFL_ADMIT, "adapter-slots"), .params = calloc(1, 1)};
}

static void roll_door(struct fixture *f, struct dice *dice)
{
    const bool closes = roll(dice, 0, 4) == 0;
    f->door.max_queued_reqs = closes ? roll(dice, 0, 30) : 0;
    f->door.max_queued_tokens = closes ? roll(dice, 0, 1) * roll(dice, 1, 600) : 0;
}

void roll_setup(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed, 0};
    *f = (struct fixture){
        .limits = {.block_tokens = roll(&dice, 1, 8),
                   .n_blocks = roll(&dice, 10, 80),
                   .n_host_blocks = roll(&dice, 0, 1) * roll(&dice, 5, 60),
                   .max_model_tokens = roll(&dice, 60, 120),
                   .n_clients = RANDOM_CLIENTS},
        .linear = {.step_s = 0.1, .prefill_token_s = 0.001, .context_token_s = 0.0001},
        .check_blocks = true,
    };
    f->capture.keep_steps = true;
    f->max_samples = roll(&dice, 0, 4) == 0 ? roll(&dice, 2, 4) : 1;
    roll_modules(f, &dice);
    roll_trace(f, &dice);
    roll_samples(f, &dice);
    roll_memory(f, &dice);
    f->beams.search &= f->allocator == KV_PAGED; /* contiguous runs cannot share */
    roll_door(f, &dice);
}
