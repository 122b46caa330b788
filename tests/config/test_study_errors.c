#include "loading.h"

Test(study_errors, keys)
{
    expect_wrong(SMALL "modle: x\n", 4, 1, "unknown key modle, did you mean model?");
    expect_wrong(TRACE LINEAR "serving:\n  preset: small\n  kv: {num_block: 10}\n", 5, 8,
                 "unknown key serving.kv.num_block, did you mean num_blocks?");
    expect_wrong(TRACE LINEAR "serving:\n  preset: small\n  batching: {max_seq: 10}\n", 5, 14,
                 "unknown key serving.batching.max_seq, did you mean max_seqs?");
    expect_wrong(SMALL "swep: {}\n", 4, 1, "unknown key swep, did you mean sweep?");
    expect_wrong(SMALL "slo: {ttft_s: 1, ttft_s: 2}\n", 4, 18,
                 "key ttft_s given twice, first on line 4");
    expect_wrong(SMALL "slo: fast\n", 4, 1, "slo is fast, expected a map of keys");
    expect_wrong("- a\n", 1, 1, "the file is a list, expected a map of keys");
    expect_wrong("", 1, 1, "nothing here, expected keys");
}

Test(study_errors, keys_of_vllm)
{
    expect_wrong(
        SMALL "max_num_seqs: 8\n", 4, 1,
        "unknown key max_num_seqs, vLLM's --max-num-seqs is serving.batching.max_seqs here");
    expect_wrong(TRACE LINEAR "serving:\n  preset: small\n  kv: {block-size: 8}\n", 5, 8,
                 "unknown key serving.kv.block-size, vLLM's --block-size is "
                 "serving.kv.block_tokens here");
    expect_wrong(SMALL "sweep: {serving.kv.swap_space: [1, 2]}\n", 4, 9,
                 "unknown key serving.kv.swap_space, vLLM's --swap-space is serving.kv.swap_gib "
                 "here");
}

Test(study_errors, values)
{
    expect_wrong(SMALL "slo: {ttft_s: .nan}\n", 4, 7,
                 "slo.ttft_s is .nan, expected a number from 0 to 1000000000 s");
    expect_wrong(SMALL "parallel: {tensor: 99999999999}\n", 4, 12,
                 "parallel.tensor is 99999999999, expected a whole number from 1 to 64 GPUs");
    expect_wrong(SMALL "output: {steps: yes}\n", 4, 10,
                 "output.steps is yes, expected true or false; yes, no, on and off are only words "
                 "here");
    expect_wrong(SMALL "executor: gpu\n", 4, 1,
                 "executor is gpu, expected one of sim, cpu, cuda; did you mean cpu?");
    expect_wrong(SMALL "cluster: {router: randon}\n", 4, 11,
                 "unknown route policy randon, did you mean random?");
    expect_wrong(SMALL "cluster: {replicas: 0}\n", 4, 11,
                 "cluster.replicas is 0, expected a whole number from 1 to 65536 replicas");
    expect_wrong(
        SMALL "workload.limit: 3\n", 4, 1,
        "unknown key workload.limit, expected one of "
        "model, hardware, dtype, executor, replications, steady_state, sweep, workload, adapters, "
        "serving, deployment, cost, engine, parallel, "
        "cluster, slo, output, capacity, live");
}

Test(study_errors, what_is_missing)
{
    expect_wrong(LINEAR SERVING, 0, 0,
                 "workload.trace is missing, expected text of at most 511 bytes: the trace file, "
                 "plain or gzipped");
    expect_wrong(TRACE SERVING, 1, 1,
                 "model is missing, expected a name from configs/models or a path");
    expect_wrong(TRACE SERVING "model: llama-2-7b\n", 1, 1,
                 "hardware is missing, expected a name from configs/hardware or a path");
    expect_wrong(TRACE LINEAR "serving: {order: {policy: fcfs}}\n", 3, 1,
                 "serving.batching.policy is missing, expected serving.preset, or a policy of each "
                 "kind");
    expect_wrong(TRACE LINEAR "serving: {preset: small}\n", 3, 1,
                 "serving.kv.num_blocks is missing or 0, expected at least 1 where no model and "
                 "hardware are named");
}

Test(study_errors, names)
{
    expect_wrong(TRACE LINEAR "serving: {preset: smal}\n", 3, 11,
                 "unknown preset smal, did you mean small?");
    expect_wrong(SMALL "model: llama-2-7\n", 4, 1,
                 "unknown model llama-2-7, did you mean llama-2-7b?");
    expect_wrong(SMALL "hardware: ./none.yaml\n", 4, 1,
                 "there is no file ./none.yaml, expected a hardware profile");
    expect_wrong("workload: {trace: none.csv}\n" LINEAR SERVING, 1, 12,
                 "there is no file none.csv, expected a trace");
    expect_wrong(TRACE LINEAR "serving: {preset: small, kv: {num_blocks: 10}, order: {policy: "
                              "fcfss}}\n",
                 3, 56, "unknown order policy fcfss, did you mean fcfs?");
    expect_wrong(
        TRACE LINEAR "serving: {preset: small, order: {policy: 7}}\n", 3, 34,
        "unknown order policy 7, expected one of adapter-cluster, deadline, dfs-weight, drr, fcfs, "
        "fresh-under-load, "
        "longest-output, longest-prefix, mlfq, priority, random, sjf, starving-first, "
        "vtc");
    expect_wrong(LINEAR SERVING "workload: {trace: tests/config/fixtures/three.csv, format: "
                                "azuer}\n",
                 3, 52,
                 "workload.format is azuer, expected one of auto, azure, sharegpt, vidur, "
                 "burstgpt, bailian, mooncake, llmservingsim-run, llmservingsim, requests, bench, "
                 "aiperf, guidellm, blis, llm-d, vtc, inflight; did you mean azure?");
}

/* A study with preset `named` fails with an error in the file of preset `wrong`. */
static void expect_wrong_preset(const char *named, const char *wrong, int line, const char *message)
{
    char text[256], path[128];
    snprintf(text, sizeof text, TRACE LINEAR "serving: {preset: %s}\n", named);
    snprintf(path, sizeof path, "tests/config/fixtures/configs/serving/%s.yaml", wrong);
    const struct loaded loaded = load_bytes(text, strlen(text), NULL, 0);
    cr_expect_eq(loaded.code, IFL_E_INPUT);
    cr_expect_str_eq(loaded.error.file, path);
    cr_expect_eq(loaded.error.line, line);
    cr_expect_str_eq(loaded.error.text, message, "%s", loaded.error.text);
}

Test(study_errors, presets)
{
    expect_wrong_preset("circle-one", "circle-two", 1,
                        "presets extend each other in a circle, through circle-one");
    expect_wrong_preset("orphan", "orphan", 2, "unknown preset smal, did you mean small?");
    expect_wrong_preset("meddling", "meddling", 4,
                        "workload.limit in a preset, expected predictor");
}

Test(study_errors, keys_that_need_each_other)
{
    static const char *const trace = "workload: {trace: tests/config/fixtures/three.csv, ";
    static const struct {
        const char *rest;
        int column;
        const char *message;
    } wrong[] = {
        {"arrivals: {process: poisson}}", 52,
         "workload.arrivals.rate_rps is missing or 0, expected a rate above 0"},
        {"arrivals: {process: gamma, rate_rps: 0}}", 79,
         "workload.arrivals.rate_rps is missing or 0, expected a rate above 0"},
        {"arrivals: {process: closed}}", 52,
         "workload.arrivals.concurrency is missing or 0, expected at least 1"},
        {"arrivals: {sine_amplitude_frac: 0.5}}", 52,
         "workload.arrivals.sine_period_s is missing or 0, expected above 0"},
        {"from_s: 5, to_s: 5}", 63,
         "workload.to_s is not after workload.from_s, expected a later time"},
        {"filter: vllm}", 52, "workload.filter is vllm, expected none, sharegpt or a map"},
        {"arrivals: {pieces: 3}}", 63,
         "workload.arrivals.pieces is 3, expected a list of at most 64 pairs"},
        {"arrivals: {pieces: [[0, 1], 3]}}", 80,
         "workload.arrivals.pieces holds 3, expected pairs [from_s, rate_rps]"},
        {"arrivals: {pieces: [[5, 1]]}}", 72, "workload.arrivals.pieces begins at 5 s, expected 0"},
        {"arrivals: {sine_amplitude_frac: 1, pieces: [[0, 1]]}}", 87,
         "workload.arrivals has pieces and a sine, expected one of them"},
        {"arrivals: {pieces: [[0, 1], [0, 2]]}}", 80,
         "workload.arrivals.pieces: from_s is 0 after 0, expected ascending times"},
        {"arrivals: {pieces: [[0, 1], [5, 0]]}}", 80,
         "workload.arrivals.pieces ends with a rate of 0, expected one above 0: later requests "
         "would never arrive"},
    };
    char text[512];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s%s%s\n%s", LINEAR SERVING, trace, wrong[i].rest,
                 "slo: {ttft_s: 1}\n");
        expect_wrong(text, 3, wrong[i].column, wrong[i].message);
    }
    expect_wrong(TRACE "cost: {model: linear}\n" SERVING, 2, 8,
                 "cost.model is linear and its coefficients are 0, expected one above 0");
}

Test(study_errors, sweeps)
{
    expect_wrong(SMALL "sweep: {rate_rps: [1]}\n", 4, 9,
                 "unknown key rate_rps, did you mean workload.arrivals.rate_rps?");
    expect_wrong(SMALL "sweep: {serving.batching.max_seq: [1]}\n", 4, 9,
                 "unknown key serving.batching.max_seq, did you mean serving.batching.max_seqs?");
    expect_wrong(SMALL "sweep: {serving.kv: [1]}\n", 4, 9,
                 "serving.kv is a map of keys, expected a key with a value");
    expect_wrong(SMALL "sweep: {workload.limit: 3}\n", 4, 9,
                 "sweep of workload.limit is 3, expected a list of values");
    expect_wrong(SMALL "sweep: {workload.limit: []}\n", 4, 9,
                 "sweep of workload.limit is an empty list, expected a list of values");
    expect_wrong(SMALL "sweep: {workload.limit: [1, [2]]}\n", 4, 29,
                 "sweep of workload.limit holds a list, expected single values or maps");
    expect_wrong(SMALL "sweep: {workload.limit: [1, -2]}\n", 4, 29,
                 "workload.limit is -2, expected a whole number from 0 to 2^64 - 1 requests");
    expect_wrong(SMALL "sweep: {sweep: [1, 2]}\n", 4, 9,
                 "sweep is swept, expected keys of a point");
    expect_wrong(SMALL "sweep: {output.dir: [a, b]}\n", 4, 9,
                 "output.dir is swept, expected one output for all points");
    expect_wrong(SMALL "sweep: [a]\n", 4, 1, "sweep is a list, expected a map of keys to lists");
    expect_wrong(SMALL "sweep: {serving.preset: [small, smal]}\n", 4, 33,
                 "unknown preset smal, did you mean small?");
}

/* A key of one module of a list has its number. */
#define TWO_ADMITS TRACE LINEAR "serving: {preset: two-admits, kv: {num_blocks: 10}"
Test(study_errors, lists_of_modules)
{
    expect_wrong(TWO_ADMITS ", admit: {max_rpm: 2}}\n", 3, 61,
                 "serving.admit.max_rpm is set, and serving.admit is a list of 2 modules, expected "
                 "a number before the key, as in serving.admit.0.max_rpm");
    expect_wrong(TWO_ADMITS ", admit: {2: {max_rpm: 2}}}\n", 3, 61,
                 "serving.admit.2 is set, and serving.admit is a list of 2 modules, expected a "
                 "number below that");
    expect_wrong(TWO_ADMITS ", admit: {0: {max_rpm: fast}}}\n", 3, 65,
                 "serving.admit.0.max_rpm is fast, expected a whole number from 0 to 1048576 "
                 "requests");
    expect_wrong(TWO_ADMITS ", admit: {1: {max_rpm: 2}}}\n", 3, 65,
                 "unknown key serving.admit.1.max_rpm, expected one of watermark_frac, "
                 "swap_in_asks, hits, paused_prompt_tokens, policy");
    expect_wrong(TWO_ADMITS "}\nsweep: {serving.admit.max_rpm: [1]}\n", 4, 33,
                 "serving.admit.max_rpm is set, and serving.admit is a list of 2 modules, expected "
                 "a number before the key, as in serving.admit.0.max_rpm");
    expect_wrong(TWO_ADMITS "}\nsweep: {serving.admit.0.max_rmp: [1]}\n", 4, 9,
                 "unknown key serving.admit.0.max_rmp, did you mean serving.admit.0.max_rpm?");
    expect_wrong(TWO_ADMITS "}\nsweep: {serving.order.0.max_rpm: [1]}\n", 4, 9,
                 "unknown key serving.order.0.max_rpm, did you mean serving.admit.max_rpm?");
    expect_wrong(SMALL "sweep: {serving.admit.0.watermark_frac: [0]}\n", 4, 42,
                 "serving.admit.0 is set, and serving.admit is one module, expected no number");
}

Test(study_errors, sweeps_are_bounded)
{
    char text[2048] = SMALL "sweep:\n";
    static const char *const axes[] = {"limit", "skip", "from_s", "to_s", "shuffle_seed"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "  workload.%s: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n", axes[i]);
    }
    expect_wrong(text, 9, 3, "the sweep has 100000 points and more, at most 10000");
}

Test(study_errors, edits)
{
    expect_wrong_edit("slo.ttft_s=fast",
                      "slo.ttft_s is fast, expected a number from 0 to 1000000000 s");
    expect_wrong_edit("rate_rps=3",
                      "unknown key rate_rps, did you mean workload.arrivals.rate_rps?");
    expect_wrong_edit("slo.ttft=3", "unknown key slo.ttft, did you mean slo.ttft_s?");
    expect_wrong_edit("wrkload.limit=3", "unknown key wrkload.limit, did you mean workload.limit?");
    expect_wrong_edit("slo.ttft_s", "not an edit, expected path.to.key=value");
    expect_wrong_edit("=3", "not an edit, expected path.to.key=value");
    expect_wrong_edit("slo.ttft_s=", "no value, expected one (null for the default)");
    expect_wrong_edit("output.dir=[a", "not valid YAML: did not find expected ',' or ']' while "
                                       "parsing a flow sequence");
    expect_wrong_edit("slo=3", "slo is 3, expected a map of keys");
    expect_wrong_edit("slo={ttft: 3}", "unknown key slo.ttft, did you mean ttft_s?");
    expect_wrong_edit("serving.preset=smal", "unknown preset smal, did you mean small?");
    expect_wrong_edit("sweep.workload.limit=3",
                      "sweep of workload.limit is 3, expected a list of values");
}

/* A key missing from the file is reported for the file, not for an edit elsewhere. */
Test(study_errors, edits_are_not_blamed_for_the_file)
{
    const char *edit = "workload.limit=3", *text = LINEAR "serving: {preset: small}\n" TRACE;
    const struct loaded loaded = load_bytes(text, strlen(text), &edit, 1);
    cr_expect_eq(loaded.code, IFL_E_INPUT);
    cr_expect_str_eq(loaded.error.file, loaded.path);
    cr_expect_eq(loaded.error.line, 2);
}

Test(study_errors, a_missing_file)
{
    struct study *study;
    struct ifl_error error = {0};
    cr_expect_eq(study_load(&(struct study_options){.path = "/nowhere.yaml"}, &study, &error),
                 IFL_E_INPUT);
    cr_expect_null(study);
    cr_expect_str_eq(error.file, "/nowhere.yaml");
    cr_expect_str_eq(error.text, "cannot be opened: No such file or directory");
}

#define CACHED "serving.kv.prefix_cache=hash"

/* The second edit is refused with that message. */
static void expect_no_tier(const char *cache, const char *tier, const char *message)
{
    const struct loaded loaded =
        load_bytes(SMALL, strlen(SMALL), (const char *const[]){cache, tier}, 2);
    cr_expect_eq(loaded.code, IFL_E_INPUT, "accepted: %s", tier);
    cr_expect_str_eq(loaded.error.text, message, "%s", loaded.error.text);
}

Test(study_errors, tiers)
{
    expect_no_tier("serving.kv.prefix_cache=none", "serving.kv.tiers.host.blocks=5",
                   "serving.kv.prefix_cache is none, expected hash or radix, "
                   "where there are tiers (serving.kv.tiers)");
    expect_no_tier(CACHED, "serving.kv.tiers.host={blocks: 5, device_ratio: 2}",
                   "serving.kv.tiers.host.device_ratio is set beside another size, expected one of "
                   "blocks, gib and device_ratio");
    expect_no_tier(CACHED, "serving.kv.tiers.disk={blocks: 5, unit_tokens: 3}",
                   "serving.kv.tiers.disk.unit_tokens is no multiple of serving.kv.block_tokens, "
                   "expected units of whole blocks");
    expect_no_tier(CACHED, "serving.kv.tiers.host={blocks: 5, unit_tokens: 4096, stores: evicted}",
                   "serving.kv.tiers.host.unit_tokens is more than a block and stores is evicted, "
                   "expected a block: the device evicts block by block");
    expect_no_tier(CACHED, "serving.kv.tiers.host={blocks: 5, store_after: 2, stores: evicted}",
                   "serving.kv.tiers.host.store_after is above 1 and stores is evicted, expected "
                   "stores computed");
    expect_no_tier(CACHED, "serving.kv.tiers.host={gib: 5}",
                   "serving.kv.tiers.host.gib is set where no model is named, expected "
                   "cluster.links.token_bytes, the bytes of K/V of a token");
    expect_no_tier(CACHED, "serving.kv.tiers.disk={blocks: 5, prefetch: timeout}",
                   "serving.kv.tiers.disk.prefetch is set and there is no tier host, expected one: "
                   "what is prefetched comes there");
    expect_no_tier(CACHED,
                   "serving.kv.tiers={host: {blocks: 9}, store: {blocks: 9, unit_tokens: 4096, "
                   "prefetch: best_effort}}",
                   "serving.kv.tiers.store.prefetch is set and unit_tokens differ from those of "
                   "the tier host, expected the same");
    expect_no_tier(CACHED, "serving.kv.tiers.host={blocks: 5, evict: lrv}",
                   "serving.kv.tiers.host.evict is lrv, expected one of lru, lfu, fifo, mru, filo, "
                   "slru; did you mean lru?");
    expect_no_tier(CACHED, "serving.kv.tiers.hots.blocks=5",
                   "unknown key serving.kv.tiers.hots.blocks, did you mean "
                   "serving.kv.tiers.host.blocks?");
}
