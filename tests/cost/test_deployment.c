/* Deployments by name, by path, in place, and as older profiles have them. */
#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "cost/deployment.h"
#include "loading.h"
#include "rows.h"

static const char *const kernels =
    "gpu: {peak_tflops: 1, memory_gb_per_s: 1, n_sms: 1, memory_gib: 1}\n"
    "gemm: {launch_us: 1, compute_frac: 1, memory_frac: 1, exponent: 2}\n"
    "prefill: {launch_us: 1, compute_frac: 1, overhead_tokens: 0, causal_frac: 0.5}\n"
    "decode: {launch_us: 1, head_us: 1, memory_frac: 1}\n"
    "decode_mixed: {head_us: 1, memory_frac: 1}\n"
    "elementwise: {launch_us: 1, memory_frac: 1}\n"
    "swap_out: {latency_us: 1, gb_per_s: 1}\n"
    "swap_in: {latency_us: 1, gb_per_s: 1}\n";
enum { KERNEL_LINES = 8 };

static int load_text(const char *rest, struct platform *platform, struct ifl_error *error)
{
    char text[2048], path[64];
    snprintf(text, sizeof text, "%s%s", kernels, rest);
    write_temporary("inflight-deployment", "yaml", text, path);
    *error = (struct ifl_error){0};
    const int code = hardware_load(path, platform, error);
    remove(path);
    return code;
}

static struct platform loaded(const char *rest)
{
    struct platform platform;
    struct ifl_error error;
    cr_assert_eq(load_text(rest, &platform, &error), 0, "%s: %s", rest, error.text);
    return platform;
}

static void expect_error(const char *rest, int line, const char *words)
{
    struct platform platform;
    struct ifl_error error;
    cr_expect_eq(load_text(rest, &platform, &error), IFL_E_INPUT, "%s", rest);
    cr_expect_eq(error.line, line, "%s: line %d", error.text, error.line);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Writes both files into a folder of their own and loads the first. */
static int load_two(const char *first, const char *second, struct deployment *of,
                    struct ifl_error *error)
{
    char dir[] = "/tmp/inflight-bases-XXXXXX", path[64], base[64], found[512];
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/first.yaml", dir);
    snprintf(base, sizeof base, "%s/second.yaml", dir);
    write_file(path, first);
    write_file(base, second);
    *error = (struct ifl_error){0};
    const int code = deployment_load(path, of, error);
    deployment_find_base(path, found);
    cr_expect_not_null(strstr(found, "/second.yaml"), "%s", found);
    remove(path);
    remove(base);
    cr_expect_eq(rmdir(dir), 0);
    return code;
}

Test(deployment, a_file_lays_its_keys_over_those_of_its_base)
{
    struct deployment of;
    struct ifl_error error;
    cr_assert_eq(load_two("base: ./second.yaml\nhost: {seq_s: 3e-5}\n",
                          "about: mine\nbase: vllm-0.20\nhost: {seq_s: 1, step_s: 2e-3}\n"
                          "intervals: {host: {step_s: [1e-3, 4e-3]}}\n",
                          &of, &error),
                 0, "%s", error.text);
    cr_expect_str_eq(of.name, "first");
    cr_expect_str_eq(of.about, "mine");
    cr_expect_eq(of.host.seq_s, 3e-5);
    cr_expect_eq(of.host.step_s, 2e-3);
    cr_expect_eq(of.host.prompt_layer_s, 13.0e-6);
    cr_expect_eq(of.memory.workspace_gib, 0.26);
    cr_expect_eq(of.n_intervals, 1);
}

Test(deployment, files_that_name_each_other_are_refused)
{
    struct deployment of;
    struct ifl_error error;
    cr_expect_eq(load_two("\nbase: ./second.yaml\n", "base: ./first.yaml\n", &of, &error),
                 IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "more than 8 files that name each other"), "%s",
                       error.text);
    cr_expect_eq(load_two("base: ./second.yaml\n", "host: {layer_s: 1}\n", &of, &error),
                 IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "memory is missing"), "%s", error.text);
}

Test(deployment, a_profile_names_one)
{
    const struct platform of = loaded("deployment: eager-2024\n");
    cr_expect_eq(of.deployment.host.layer_s, 24e-6);
    cr_expect(of.deployment.host.eager);
    cr_expect_eq(of.deployment.memory.workspace_gib, 0.26);
    cr_expect_str_eq(of.deployment.name, "eager-2024");
    cr_expect_str_eq(of.deployment_name, "eager-2024");
    cr_expect_not_null(strstr(of.deployment_path, "configs/deployments/eager-2024.yaml"));
    expect_error("deployment: eager-2042\n", KERNEL_LINES + 1,
                 "unknown deployment eager-2042, did you mean eager-2024?");
    expect_error("deployment: [vllm]\n", KERNEL_LINES + 1, "deployment is a list");
}

/* Relative to the folder of the profile, not to that of the process. */
Test(deployment, a_profile_names_a_path)
{
    char path[64];
    write_temporary("inflight-server", "yaml",
                    "host: {layer_s: 3e-6}\nmemory: {workspace_gib: 2}\nnum_blocks: 77\n", path);
    char text[128];
    snprintf(text, sizeof text, "deployment: .%s\n", strrchr(path, '/'));
    const struct platform of = loaded(text);
    remove(path);
    cr_expect_eq(of.deployment.host.layer_s, 3e-6);
    cr_expect_eq(of.deployment.num_blocks, 77);
    cr_expect_eq(of.deployment.memory.activation_tokens, 4096);
    cr_expect_str_empty(of.deployment_name, "a path is of no use in another folder");
    expect_error("deployment: ./none.yaml\n", KERNEL_LINES + 1, "there is no file");
}

Test(deployment, a_profile_holds_one)
{
    const struct platform of =
        loaded("deployment: {host: {layer_s: 0, seq_s: 2e-5}, memory: {workspace_gib: 1}}\n");
    cr_expect_eq(of.deployment.host.seq_s, 2e-5);
    cr_expect_eq(of.deployment.memory.activation_tokens, 4096);
    expect_error("deployment: {memory: {workspace_gib: 1}}\n", KERNEL_LINES + 1,
                 "deployment.host is missing");
    expect_error("deployment: {host: {step_s: 1}, memory: {workspace_gib: 1}}\n", KERNEL_LINES + 1,
                 "deployment.host.layer_s is missing");
    expect_error("deployment: {host: {layer_s: 1, step_us: 1}, memory: {workspace_gib: 1}}\n",
                 KERNEL_LINES + 1, "unknown key deployment.host.step_us, did you mean step_s?");
    expect_error("deployment: {base: vllm, hosts: {}}\n", KERNEL_LINES + 1,
                 "unknown key deployment.hosts, did you mean host?");
    expect_error("\n", 1, "deployment is missing");
}

Test(deployment, a_map_overrides_its_base_key_by_key)
{
    const struct platform of =
        loaded("deployment:\n  base: vllm-0.11\n  host: {step_s: 1e-3, eager: true}\n");
    const struct platform base = loaded("deployment: vllm-0.11\n");
    cr_expect_eq(of.deployment.host.step_s, 1e-3);
    cr_expect(of.deployment.host.eager);
    cr_expect_eq(of.deployment.host.layer_s, 21e-6);
    cr_expect_eq(of.deployment.memory.workspace_gib, base.deployment.memory.workspace_gib);
    cr_expect_str_eq(of.deployment.source, base.deployment.source);
    cr_expect_str_empty(of.deployment_name);
    expect_error("deployment:\n  base: vlm\n", KERNEL_LINES + 2, "did you mean vllm?");
}

/* As profiles were before: host in microseconds. */
Test(deployment, older_sections_fill_one)
{
    const struct platform of =
        loaded("host: {layer_us: 24, step_us: 1500, seq_us: 40, floor_ms: 44.3, eager: true}\n"
               "memory: {workspace_gib: 0.5, activation_tokens: 64}\n");
    cr_expect_eq(of.deployment.host.layer_s, 24e-6);
    cr_expect_eq(of.deployment.host.step_s, 0.0015);
    cr_expect_eq(of.deployment.host.seq_s, 0.00004);
    cr_expect_eq(of.deployment.host.floor_s, 0.0443);
    cr_expect(of.deployment.host.eager);
    cr_expect_eq(of.deployment.memory.workspace_gib, 0.5);
    cr_expect_eq(of.deployment.memory.activation_tokens, 64);
    expect_error("host: {layer_us: 1}\n", 1, "memory is missing");
    expect_error("deployment: vllm\nmemory: {workspace_gib: 1}\n", KERNEL_LINES + 2,
                 "memory beside deployment");
    expect_error("host: {layer_us: 1}\ndeployment: vllm\n", KERNEL_LINES + 1,
                 "host beside deployment");
}

static void expect_same(const struct deployment *is, const struct deployment *was)
{
    cr_expect_eq(is->num_blocks, was->num_blocks);
    cr_expect_eq(memcmp(&is->host, &was->host, 4 * sizeof(double)), 0);
    cr_expect_eq(is->host.eager, was->host.eager);
    cr_expect_eq(is->memory.workspace_gib, was->memory.workspace_gib);
    cr_expect_eq(is->memory.activation_tokens, was->memory.activation_tokens);
    cr_expect_eq(memcmp(&is->front_end, &was->front_end, sizeof is->front_end), 0);
    cr_expect_str_eq(is->assumed, was->assumed);
}

static struct platform written_and_read(const struct platform *platform, const char *words)
{
    char text[8192] = "", path[64];
    struct platform again;
    struct ifl_error error = {0};
    FILE *out = fmemopen(text, sizeof text, "w");
    cr_assert_not_null(out);
    hardware_write(platform, NULL, NULL, out);
    cr_assert_eq(fclose(out), 0);
    cr_expect_not_null(strstr(text, words), "%s", text);
    write_temporary("inflight-deployment", "yaml", text, path);
    cr_assert_eq(hardware_load(path, &again, &error), 0, "%s", error.text);
    remove(path);
    return again;
}

Test(deployment, a_written_profile_reads_back_to_the_same_bits)
{
    struct platform of =
        loaded("deployment: {base: vllm, num_blocks: 9, assumed: much, host: {seq_s: 0.1}}\n");
    of.deployment.host.layer_s = 24e-6 / 3;
    struct platform again = written_and_read(&of, "\ndeployment:\n  ");
    expect_same(&again.deployment, &of.deployment);
    of = loaded("deployment: vllm-0.11\n");
    again = written_and_read(&of, "\ndeployment: vllm-0.11\n");
    expect_same(&again.deployment, &of.deployment);
}

/* None: zeros, which no file has to say, and no written profile says. */
Test(deployment, a_front_end_may_be_left_out)
{
    struct platform of = loaded("deployment: {host: {layer_s: 0}, memory: {workspace_gib: 1}}\n"),
                    again;
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    cr_assert_not_null(out);
    cr_expect_eq(of.deployment.front_end.request_s, 0);
    cr_expect_eq(of.deployment.front_end.prompt_token_s, 0);
    cr_expect_eq(of.deployment.front_end.token_s, 0);
    hardware_write(&of, NULL, NULL, out);
    cr_assert_eq(fclose(out), 0);
    cr_expect_null(strstr(text, "front_end"), "%s", text);
    of = loaded("deployment: {base: vllm, num_blocks: 9, front_end: {prompt_token_s: 3e-6}}\n");
    again = written_and_read(&of, "\n  front_end:\n    request_s: 0\n    prompt_token_s: 3e-06\n");
    expect_same(&again.deployment, &of.deployment);
    expect_error("deployment: {base: vllm, front_end: {token_s: -1}}\n", KERNEL_LINES + 1,
                 "deployment.front_end.token_s is -1, expected a number from 0 to 1000 s");
    expect_error("deployment: {base: vllm, front_end: {token: 1}}\n", KERNEL_LINES + 1,
                 "unknown key deployment.front_end.token, did you mean token_s?");
}

/* ---- what the shipped ones rest on ---- */

/* A line through the CPU times of a step, Llama-2-7B on one A100, by the size of its batch. */
Test(deployment, the_host_of_engine_v0_is_a_line_through_measured_times)
{
    enum { MOST = 32 };
    double batch[MOST], ms[MOST], c0, c1, cov00, cov01, cov11, chi2;
    size_t n = 0;
    struct table table = read_logs("tests/cost/data/vidur_a100_cpu_overheads.csv");
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        if (strcmp(word(&row, "model_name"), "meta-llama/Llama-2-7b-hf") != 0)
            continue;
        batch[n] = number(&row, "batch_size");
        ms[n++] = number(&row, "schedule_median") + number(&row, "prepare_inputs_e2e_median") +
                  number(&row, "sampler_e2e_median") + number(&row, "process_model_outputs_median");
    }
    table_free(&table);
    cr_assert_eq(n, 13);
    gsl_fit_linear(batch, 1, ms, 1, n, &c0, &c1, &cov00, &cov01, &cov11, &chi2);
    const struct platform platform = loaded("deployment: vllm-0.6\n");
    cr_expect_lt(fabs(platform.deployment.host.step_s - c0 * 1e-3), 5e-6, "%g ms", c0);
    cr_expect_lt(fabs(platform.deployment.host.seq_s - c1 * 1e-3), 5e-8, "%g ms", c1);
}

/* What the fit to step logs of vLLM 0.20 finds, with a time a layer at its lower bound. */
Test(deployment, the_host_of_asynchronous_scheduling_is_that_of_the_b300)
{
    const struct host_times shared = loaded("deployment: vllm-0.20\n").deployment.host;
    const struct host_times fitted = load_platform("b300").deployment.host;
    cr_expect_leq(fitted.layer_s, 1e-7);
    cr_expect_eq(shared.layer_s, 0);
    cr_expect_eq(shared.step_s, fitted.step_s);
    cr_expect_lt(fabs(shared.seq_s / fitted.seq_s - 1), 5e-3);
    cr_expect_lt(fabs(shared.prompt_layer_s / fitted.prompt_layer_s - 1), 5e-3);
}
