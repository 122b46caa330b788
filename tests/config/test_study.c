#include "loading.h"

/* ---- a file ---- */

Test(study, defaults_fill_what_the_file_leaves_out)
{
    struct study *study = load(SMALL);
    const struct config *config = study_point(study, 0);
    cr_expect_eq(study_n_points(study), 1);
    cr_expect_eq(study_n_axes(study), 0);
    cr_expect_eq(config->executor, EXECUTOR_SIM);
    cr_expect_eq(config->cost.step_s, 0.01);
    cr_expect_str_eq(config->workload.trace, "tests/config/fixtures/three.csv");
    cr_expect_str_eq(config->workload.format, "auto");
    cr_expect_eq(config->workload.arrivals.process, IFL_ARRIVE_TRACE);
    cr_expect_eq(config->workload.arrivals.speedup, 1);
    cr_expect_eq(config->serving.kv.num_blocks, 10);
    cr_expect_eq(config->serving.kv.memory_utilization, 0.9);
    cr_expect(config->serving.steady_runs);
    cr_expect(config->output.requests);
    cr_expect_not(config->output.steps);
    cr_expect_eq(config->tensor_parallel, 1);
    study_free(study);
}

Test(study, a_preset_lies_under_the_file_key_by_key)
{
    struct study *study = load(TRACE LINEAR "serving:\n"
                                            "  preset: small\n"
                                            "  batching: {max_seqs: 3}\n"
                                            "  kv: {num_blocks: 10, swap_gib: 1}\n");
    const struct config *config = study_point(study, 0);
    cr_expect_str_eq(module_text(config, IFL_BATCHING, "max_seqs"), "prefill-first max_seqs=3");
    cr_expect_str_eq(module_text(config, IFL_BATCHING, "max_batched_tokens"),
                     "prefill-first max_batched_tokens=512");
    cr_expect_str_eq(module_text(config, IFL_ADMIT, "watermark_frac"),
                     "prompt-fits watermark_frac=0.25");
    cr_expect_eq(config->serving.kv.block_tokens, 32);
    cr_expect_eq(config->serving.kv.swap_gib, 1);
    study_free(study);
}

Test(study, a_preset_extends_another)
{
    struct study *study =
        load(TRACE LINEAR "serving: {preset: small-static, kv: {num_blocks: 10}}\n");
    const struct config *config = study_point(study, 0);
    cr_expect_str_eq(module_text(config, IFL_BATCHING, "max_seqs"), "static max_seqs=4");
    cr_expect_str_eq(module_text(config, IFL_PREEMPT, "fate"), "tail fate=swap");
    study_free(study);
}

Test(study, a_preset_says_how_predictions_err)
{
    static const char *const sets[] = {"workload.predictor.bucket_tokens=8"};
    struct study *study = load(TRACE LINEAR "serving: {preset: guessing, kv: {num_blocks: 10}}\n");
    cr_expect_eq(study_point(study, 0)->workload.predictor.model, PREDICT_BUCKETS);
    cr_expect_eq(study_point(study, 0)->workload.predictor.bucket_tokens, 32);
    study_free(study);
    study = load_with(TRACE LINEAR "serving: {preset: guessing, kv: {num_blocks: 10}}\n", sets, 1);
    cr_expect_eq(study_point(study, 0)->workload.predictor.bucket_tokens, 8);
    study_free(study);
}

/* prefill-first's max_batched_tokens would be an unknown key of static. */
Test(study, another_policy_drops_the_presets_parameters)
{
    struct study *study = load(TRACE LINEAR "serving: {preset: small, batching: {policy: static}, "
                                            "kv: {num_blocks: 10}}\n");
    cr_expect_str_eq(module_text(study_point(study, 0), IFL_BATCHING, "max_seqs"),
                     "static max_seqs=128");
    study_free(study);
    study = load(TRACE LINEAR "serving: {preset: small, batching: {policy: prefill-first}, "
                              "kv: {num_blocks: 10}}\n");
    cr_expect_str_eq(module_text(study_point(study, 0), IFL_BATCHING, "max_seqs"),
                     "prefill-first max_seqs=8");
    study_free(study);
}

#define TWO_ADMITS "preset: two-admits, kv: {num_blocks: 10}"

static void expect_admits(const char *text, const char *const *sets, size_t n_sets,
                          const char *first, const char *second)
{
    struct study *study = load_with(text, sets, n_sets);
    const struct config *config = study_point(study, 0);
    cr_expect_str_eq(admit_text(config, 0, "max_rpm"), first);
    cr_expect_str_eq(admit_text(config, 1, "watermark_frac"), second);
    cr_expect_null(serving_admit(&config->serving, 2)->policy);
    study_free(study);
}

/* A number names one module of a list: in a file over a preset, in an edit, or in both. */
Test(study, a_list_of_modules_is_changed_by_its_numbers)
{
    static const char *const preset = TRACE LINEAR "serving: {" TWO_ADMITS "}\n";
    static const char *const file =
        TRACE LINEAR "serving: {" TWO_ADMITS ", admit: {0: {max_rpm: 7}}}\n";
    static const char *const own = TRACE LINEAR
        "serving: {preset: small, kv: {num_blocks: 10}, admit: [rate-limit, reserve]}\n";
    static const char *const sets[] = {"serving.admit.1.watermark_frac=0.125",
                                       "serving.admit.0.max_rpm=9"};
    static const char *const other[] = {"serving.admit.0=prompt-fits"};
    static const char *const others[] = {"serving.admit.1.policy=prompt-fits"};
    static const char *const list[] = {"serving.admit=[rate-limit, prompt-fits]"};
    expect_admits(preset, NULL, 0, "rate-limit max_rpm=4", "prompt-fits watermark_frac=0.5");
    expect_admits(file, NULL, 0, "rate-limit max_rpm=7", "prompt-fits watermark_frac=0.5");
    expect_admits(preset, sets, 2, "rate-limit max_rpm=9", "prompt-fits watermark_frac=0.125");
    expect_admits(file, sets, 2, "rate-limit max_rpm=9", "prompt-fits watermark_frac=0.125");
    expect_admits(preset, other, 1, "prompt-fits", "prompt-fits watermark_frac=0.5");
    expect_admits(file, list, 1, "rate-limit max_rpm=20", "prompt-fits watermark_frac=0.01");
    expect_admits(own, others, 1, "rate-limit max_rpm=20", "prompt-fits watermark_frac=0.01");
}

Test(study, four_policies_do_without_a_preset)
{
    struct study *study = load(TRACE LINEAR "serving:\n"
                                            "  batching: {policy: mixed}\n"
                                            "  order: {policy: sjf}\n"
                                            "  admit: {policy: reserve}\n"
                                            "  preempt: {policy: tail}\n"
                                            "  kv: {num_blocks: 10}\n");
    cr_expect_str_eq(module_text(study_point(study, 0), IFL_ORDER, NULL), "sjf");
    study_free(study);
}

Test(study, the_filter_has_a_short_form)
{
    struct study *study = load(LINEAR SERVING "workload: {trace: tests/config/fixtures/three.csv, "
                                              "filter: sharegpt}\n");
    const struct ifl_trace_window *window = &study_point(study, 0)->workload.window;
    cr_expect_eq(window->min_prompt, 4);
    cr_expect_eq(window->min_output, 4);
    cr_expect_eq(window->max_prompt, 1024);
    cr_expect_eq(window->max_total, 2048);
    study_free(study);
    const char *const sets[] = {"workload.filter=sharegpt", "workload.filter.max_total=99"};
    study = load_with(SMALL, sets, 2);
    cr_expect_eq(study_point(study, 0)->workload.window.max_total, 99);
    cr_expect_eq(study_point(study, 0)->workload.window.max_prompt, 1024);
    study_free(study);
}

Test(study, a_rate_may_have_pieces)
{
    struct study *study =
        load(LINEAR SERVING "workload:\n"
                            "  trace: tests/config/fixtures/three.csv\n"
                            "  arrivals: {process: poisson, pieces: [[0, 1], [10.5, 4]]}\n");
    const struct ifl_arrivals *arrivals = &study_point(study, 0)->workload.arrivals;
    cr_expect_eq(arrivals->n_pieces, 2);
    cr_expect_eq(arrivals->piece_from_s[1], 10.5);
    cr_expect_eq(arrivals->piece_rate_rps[1], 4);
    study_free(study);
}

/* A configuration with every section. */
static const char *const sample =
    "model: llama-2-7b\n"
    "hardware: a100-80gb-sxm\n"
    "executor: sim\n"
    "workload:\n"
    "  trace: traces/data/azure-conv-2023.csv.gz\n"
    "  format: auto                       # azure, sharegpt, vidur, ...\n"
    "  limit: 2000\n"
    "  arrivals: {process: poisson, rate_rps: 4, seed: 7}   # trace, poisson, ...\n"
    "serving:\n"
    "  preset: vllm-v0                    # any key set here overrides the preset\n"
    "  kv: {num_blocks: 7000}             # computed from memory when absent\n"
    "cost: {model: roofline}              # linear adds step_s, prefill_token_s, ...\n"
    "engine: {weights: random, seed: 1, threads: 1}       # weights: random or a directory\n"
    "parallel: {tensor: 1, pipeline: 1}\n"
    "cluster: {replicas: 1, router: round-robin}\n"
    "slo: {ttft_s: 1.0, tpot_s: 0.1}\n"
    "output: {dir: results/example, steps: true, timeline: false}\n"
    "sweep:\n"
    "  serving.preset: [faster-transformer, vllm-v0, sarathi]\n"
    "  workload.arrivals.rate_rps: [1, 2, 4, 8]\n";

Test(study, the_sample_loads_with_twelve_points)
{
    static const char *const presets[] = {"faster-transformer", "vllm-v0", "sarathi"};
    static const char *const batching[] = {"static", "prefill-first", "mixed"};
    static const double rates_rps[] = {1, 2, 4, 8};
    struct study *study = load(sample);
    cr_assert_eq(study_n_points(study), 12);
    cr_expect_str_eq(study_axis(study, 0), "serving.preset");
    cr_expect_str_eq(study_axis(study, 1), "workload.arrivals.rate_rps");
    for (size_t p = 0; p < 12; p++) {
        const struct config *config = study_point(study, p);
        cr_expect_str_eq(study_value(study, p, 0), presets[p / 4]);
        cr_expect_str_eq(config->serving.preset, presets[p / 4]);
        cr_expect_str_eq(module_text(config, IFL_BATCHING, NULL), batching[p / 4]);
        cr_expect_eq(config->workload.arrivals.rate_rps, rates_rps[p % 4]);
        cr_expect_eq(config->serving.kv.num_blocks, 7000);
        cr_expect_eq(config->workload.window.limit, 2000);
        cr_expect_eq(config->engine.seed, 1);
        cr_expect(config->output.steps);
    }
    study_free(study);
}

Test(study, windows_files_read_as_others)
{
    struct study *study = load("\xef\xbb\xbf"
                               "workload:\r\n  trace: tests/config/fixtures/three.csv\r\n"
                               "cost: {model: linear, step_s: 0.5}\r\n" SERVING);
    cr_expect_eq(study_point(study, 0)->cost.step_s, 0.5);
    study_free(study);
}

/* ---- sweeps ---- */

Test(study, a_swept_policy_keeps_only_its_own_parameters)
{
    struct study *study =
        load(TRACE LINEAR "serving: {preset: small, kv: {num_blocks: 10},\n"
                          "          batching: {policy: prefill-first, max_seqs: 5}}\n"
                          "sweep: {serving.batching.policy: [static, prefill-first]}\n");
    cr_expect_str_eq(module_text(study_point(study, 0), IFL_BATCHING, "max_seqs"),
                     "static max_seqs=128");
    cr_expect_str_eq(module_text(study_point(study, 1), IFL_BATCHING, "max_seqs"),
                     "prefill-first max_seqs=5");
    study_free(study);
}

Test(study, a_key_of_a_list_of_modules_is_swept)
{
    static const char *const fixed[] = {"serving.admit.0.max_rpm=3"};
    static const char *const text = TRACE LINEAR
        "serving: {" TWO_ADMITS "}\n"
        "sweep: {serving.admit.0.max_rpm: [1, 2], serving.admit.1: [reserve, chunk-fits]}\n";
    static const char *const admits[] = {"reserve", "reserve", "chunk-fits", "chunk-fits"};
    struct study *study = load(text);
    cr_assert_eq(study_n_points(study), 4);
    cr_expect_str_eq(study_axis(study, 0), "serving.admit.0.max_rpm");
    cr_expect_str_eq(admit_text(study_point(study, 0), 0, "max_rpm"), "rate-limit max_rpm=1");
    cr_expect_str_eq(admit_text(study_point(study, 3), 0, "max_rpm"), "rate-limit max_rpm=2");
    for (size_t p = 0; p < 4; p++)
        cr_expect_str_eq(admit_text(study_point(study, p % 2 * 2 + p / 2), 1, NULL), admits[p]);
    study_free(study);
    study = load_with(text, fixed, 1);
    cr_expect_eq(study_n_points(study), 2);
    cr_expect_str_eq(admit_text(study_point(study, 1), 0, "max_rpm"), "rate-limit max_rpm=3");
    study_free(study);
}

Test(study, edits_fix_what_was_swept)
{
    const char *const fixed[] = {"serving.preset=sarathi"};
    struct study *study = load_with(sample, fixed, 1);
    cr_expect_eq(study_n_points(study), 4);
    cr_expect_eq(study_n_axes(study), 1);
    cr_expect_str_eq(study_axis(study, 0), "workload.arrivals.rate_rps");
    cr_expect_str_eq(study_point(study, 3)->serving.preset, "sarathi");
    study_free(study);
    const char *const none[] = {"sweep=null"};
    study = load_with(sample, none, 1);
    cr_expect_eq(study_n_points(study), 1);
    cr_expect_str_eq(study_point(study, 0)->serving.preset, "vllm-v0");
    study_free(study);
    const char *const other[] = {"sweep.workload.arrivals.rate_rps=[3]",
                                 "sweep.serving.preset=null", "sweep.workload.limit=[10, 20]"};
    study = load_with(sample, other, 3);
    cr_expect_eq(study_n_points(study), 2);
    cr_expect_eq(study_point(study, 1)->workload.arrivals.rate_rps, 3);
    cr_expect_eq(study_point(study, 1)->workload.window.limit, 20);
    study_free(study);
}

Test(study, edits_override_in_their_order)
{
    const char *const sets[] = {"serving.batching.policy=static",
                                "serving.batching.max_seqs=2",
                                "output={steps: true}",
                                "slo.ttft_s=0.25",
                                "slo.ttft_s=0.5",
                                "output.dir=\"a: b\""};
    struct study *study = load_with(SMALL, sets, 6);
    const struct config *config = study_point(study, 0);
    cr_expect_str_eq(module_text(config, IFL_BATCHING, "max_seqs"), "static max_seqs=2");
    cr_expect(config->output.steps);
    cr_expect(config->output.requests);
    cr_expect_eq(config->ttft_slo_s, 0.5);
    cr_expect_str_eq(config->output.dir, "a: b");
    study_free(study);
}

/* ---- writing ---- */

static void expect_same_again(const char *text, const char *const *sets, size_t n_sets)
{
    struct study *study = load_with(text, sets, n_sets);
    char *once = written(study);
    struct study *again = load(once);
    char *twice = written(again);
    cr_expect_str_eq(once, twice);
    cr_expect_eq(study_n_points(study), study_n_points(again));
    for (size_t p = 0; p < study_n_points(study); p++) {
        const struct config *a = study_point(study, p), *b = study_point(again, p);
        cr_expect_arr_eq(&a->workload, &b->workload, sizeof a->workload);
        cr_expect_arr_eq(&a->serving.kv, &b->serving.kv, sizeof a->serving.kv);
        for (size_t kind = IFL_BATCHING; kind < N_MODULES; kind++) {
            const struct module_config *m = &a->serving.modules[kind],
                                       *n = &b->serving.modules[kind];
            cr_expect_eq(m->policy, n->policy);
            if (!m->policy)
                continue;
            cr_expect_arr_eq(m->params, n->params, m->policy->params_bytes, "%s", m->policy->name);
        }
    }
    study_free(study);
    study_free(again);
    free(once);
    free(twice);
}

Test(study, what_is_written_reads_back_as_the_same)
{
    const char *const odd[] = {"output.dir=\"null\"",
                               "slo.ttft_s=0.30000000000000004",
                               "workload.from_s=1e-9",
                               "workload.to_s=987654321.123456789",
                               "workload.arrivals.seed=18446744073709551615",
                               "workload.arrivals.pieces=[[0, 0.1], [1e-3, 2]]",
                               "workload.filter=sharegpt"};
    static const char *const seeded[] = {"workload.predictor.seed=3"};
    static const char *const list[] = {"serving.admit=[rate-limit, reserve]",
                                       "serving.admit.0.max_rpm=3"};
    expect_same_again(SMALL, NULL, 0);
    expect_same_again(SMALL, odd, 7);
    expect_same_again(sample, NULL, 0);
    expect_same_again(SMALL "sweep: {serving.order.policy: [fcfs, sjf], workload.limit: [1, 2]}\n",
                      NULL, 0);
    expect_same_again(SMALL "sweep: {serving.kv.block_tokens: [8, 16]}\n", NULL, 0);
    expect_same_again(SMALL "sweep: {workload.filter: [none, sharegpt]}\n", NULL, 0);
    expect_same_again(SMALL "sweep: {serving.preset: [small, guessing]}\n", NULL, 0);
    expect_same_again(SMALL "sweep: {serving.preset: [guessing, small]}\n", seeded, 1);
    expect_same_again(SMALL, list, 2);
    expect_same_again(TRACE LINEAR "serving: {" TWO_ADMITS "}\n"
                                   "sweep: {serving.admit.0.max_rpm: [1, 2]}\n",
                      NULL, 0);
    expect_same_again(TRACE LINEAR "serving: {" TWO_ADMITS ", admit: {1: {watermark_frac: 0}}}\n"
                                   "sweep: {serving.admit.0.policy: [reserve, chunk-fits]}\n",
                      NULL, 0);
}

Test(study, what_is_written_holds_every_key)
{
    struct study *study = load(SMALL);
    char *text = written(study);
    cr_expect_eq(strncmp(text, "# inflight ", 11), 0);
    cr_expect_not_null(strstr(text, "\nexecutor: sim\n"));
    cr_expect_not_null(strstr(text, "\nserving:\n  preset: small\n"));
    cr_expect_not_null(strstr(text, "    max_batched_tokens: 512\n"));
    cr_expect_not_null(strstr(text, "    watermark_frac: 0.25\n"));
    cr_expect_not_null(strstr(text, "  trace: tests/config/fixtures/three.csv\n"));
    cr_expect_null(strstr(text, "sweep"));
    free(text);
    study_free(study);
}

/* Keys of a swept preset are not written: they would override the other presets. */
Test(study, a_swept_preset_is_written_as_it_was_given)
{
    struct study *study = load(sample);
    char *text = written(study);
    cr_expect_null(strstr(text, "admit:"));
    cr_expect_not_null(strstr(text, "\nserving:\n  preset: vllm-v0\n  kv:\n    num_blocks: 7000\n"
                                    "sweep:\n"
                                    "  serving.preset: [faster-transformer, vllm-v0, sarathi]\n"
                                    "  workload.arrivals.rate_rps: [1, 2, 4, 8]\n"));
    free(text);
    study_free(study);
}
