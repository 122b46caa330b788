/* The deployment of a configuration: what it says is laid over the profile's. */
#include "cost/deployment.h"
#include "loading.h"
#include "run/machine.h"

#define MODEL "model: llama-2-7b\n"
#define H100 "hardware: h100-sxm-vllm0.11\n" /* vllm-0.11: 21 us a layer, 0.26 GiB */
#define FLIES TRACE SERVING MODEL H100

static struct deployment deployed(const struct study *study, size_t point)
{
    struct profile_shelf shelf;
    struct machine machine;
    struct ifl_error error = {0};
    profile_shelf_init(&shelf);
    cr_assert_eq(machine_load(&machine, study_point(study, point), &shelf, &error), 0, "%s",
                 error.text);
    profile_shelf_finish(&shelf);
    return machine.platform.deployment;
}

static struct deployment deployed_by(const char *text)
{
    struct study *study = load(text);
    const struct deployment deployment = deployed(study, 0);
    study_free(study);
    return deployment;
}

/* Writing, reading and writing again gives the same text, and the same deployment. */
static void expect_round_trip(const char *text, size_t n_points)
{
    struct study *study = load(text);
    char *once = written(study);
    struct study *again = load(once);
    char *twice = written(again);
    cr_expect_str_eq(once, twice);
    cr_assert_eq(study_n_points(again), n_points);
    for (size_t i = 0; i < n_points; i++) {
        const struct deployment was = deployed(study, i), is = deployed(again, i);
        cr_expect_eq(memcmp(&is.host, &was.host, 5 * sizeof(double)), 0, "%s", once);
        cr_expect_eq(memcmp(&is.all_reduce, &was.all_reduce, sizeof is.all_reduce), 0, "%s", once);
        cr_expect_eq(is.exchange.method, was.exchange.method, "%s", once);
        cr_expect_eq(is.exchange.gb_per_s, was.exchange.gb_per_s, "%s", once);
        cr_expect_eq(is.exchange.imbalance, was.exchange.imbalance, "%s", once);
        cr_expect_eq(is.exchange.padded_tokens, was.exchange.padded_tokens, "%s", once);
        cr_expect_eq(is.host.eager, was.host.eager);
        cr_expect_eq(is.memory.workspace_gib, was.memory.workspace_gib);
        cr_expect_eq(is.num_blocks, was.num_blocks);
        cr_expect_eq(memcmp(&is.front_end, &was.front_end, sizeof is.front_end), 0, "%s", once);
        cr_expect_str_eq(is.name, was.name);
    }
    free(once);
    free(twice);
    study_free(study);
    study_free(again);
}

/* No deployment of the shipped files has these sections: what is not said has its default. */
Test(deployment, collectives_are_laid_over)
{
    const char *const text =
        FLIES "deployment:\n"
              "  all_reduce: {latency_s: 20e-6, gb_per_s: 18}\n"
              "  exchange: {method: all_to_all, gb_per_s: 40, imbalance: 1.5, expert_s: 3e-6}\n";
    const struct deployment of = deployed_by(text), none = deployed_by(FLIES);
    cr_expect_eq(of.all_reduce.latency_s, 20e-6);
    cr_expect_eq(of.all_reduce.gb_per_s, 18);
    cr_expect_eq(of.exchange.method, EXCHANGE_ALL_TO_ALL);
    cr_expect_eq(of.exchange.gb_per_s, 40);
    cr_expect_eq(of.exchange.imbalance, 1.5);
    cr_expect_eq(of.exchange.expert_s, 3e-6);
    cr_expect_eq(none.exchange.expert_s, 0);
    cr_expect_eq(of.exchange.padded_tokens, 512);
    cr_expect_eq(of.host.layer_s, 21e-6);
    cr_expect_eq(none.exchange.method, EXCHANGE_GATHER);
    cr_expect_eq(none.exchange.imbalance, 1);
    cr_expect_eq(none.all_reduce.gb_per_s, 0);
    expect_round_trip(text, 1);
    expect_round_trip(FLIES "sweep: {deployment.exchange.gb_per_s: [10, 20]}\n", 2);
}

Test(deployment, without_one_the_profiles_applies)
{
    const struct deployment of = deployed_by(FLIES);
    cr_expect_str_eq(of.name, "vllm-0.11");
    cr_expect_eq(of.host.layer_s, 21e-6);
    struct study *study = load(FLIES);
    char *text = written(study);
    cr_expect_null(strstr(text, "deployment:"));
    free(text);
    study_free(study);
}

Test(deployment, a_name_replaces_it)
{
    const struct deployment of = deployed_by(FLIES "deployment: eager-2024\n");
    cr_expect_str_eq(of.name, "eager-2024");
    cr_expect_eq(of.host.layer_s, 24e-6);
    cr_expect(of.host.eager);
    expect_round_trip(FLIES "deployment: eager-2024\n", 1);
}

Test(deployment, a_path_replaces_it)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/tmp/inflight-server-%ld.yaml", (long)getpid());
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("host: {layer_s: 0, step_s: 0.002}\nmemory: {workspace_gib: 3}\n", file);
    cr_assert_eq(fclose(file), 0);
    snprintf(text, sizeof text, FLIES "deployment: %s\n", path);
    const struct deployment of = deployed_by(text);
    cr_expect_eq(of.host.step_s, 0.002);
    cr_expect_eq(of.memory.workspace_gib, 3);
    expect_round_trip(text, 1);
    remove(path);
}

Test(deployment, a_map_overrides_key_by_key)
{
    const char *const text =
        FLIES "deployment: {host: {step_s: 0.0015}, memory: {workspace_gib: 1.5}}\n";
    const struct deployment of = deployed_by(text);
    cr_expect_eq(of.host.step_s, 0.0015);
    cr_expect_eq(of.host.layer_s, 21e-6);
    cr_expect_eq(of.memory.workspace_gib, 1.5);
    cr_expect_eq(of.memory.activation_tokens, 4096);
    expect_round_trip(text, 1);
    const char *const of_base = FLIES "deployment: {base: vllm, host: {eager: true}}\n";
    cr_expect_eq(deployed_by(of_base).host.layer_s, 24e-6);
    cr_expect(deployed_by(of_base).host.eager);
    expect_round_trip(of_base, 1);
    cr_expect_eq(deployed_by(FLIES "deployment: {host: {layer_s: null}}\n").host.layer_s, 21e-6);
}

Test(deployment, edits_and_sweeps_reach_its_keys)
{
    static const char *const sets[] = {"deployment=vllm", "deployment.host.seq_s=4e-5"};
    struct study *study = load_with(FLIES "deployment: {host: {step_s: 0.001}}\n", sets, 2);
    const struct deployment of = deployed(study, 0);
    cr_expect_str_eq(of.name, "vllm");
    cr_expect_eq(of.host.step_s, 0.001);
    cr_expect_eq(of.host.seq_s, 4e-5);
    study_free(study);
    const char *const text = FLIES "deployment: {host: {step_s: 0.001}}\n"
                                   "sweep: {deployment: [vllm, eager-2024], "
                                   "deployment.host.seq_s: [0, 1e-5]}\n";
    study = load(text);
    const struct deployment last = deployed(study, 3);
    cr_expect_str_eq(last.name, "eager-2024");
    cr_expect_eq(last.host.step_s, 0.001);
    cr_expect_eq(last.host.seq_s, 1e-5);
    study_free(study);
    expect_round_trip(text, 4);
}

/* Its latencies need no GPU: costs may be linear, and no other number of the deployment is used. */
Test(deployment, a_front_end_needs_no_hardware)
{
    const char *const text =
        TRACE SERVING "cost: {model: linear, step_s: 0.1}\n"
                      "deployment: {front_end: {request_s: 0.005, prompt_token_s: 2e-6}}\n";
    const struct deployment of = deployed_by(text);
    cr_expect_eq(of.front_end.request_s, 0.005);
    cr_expect_eq(of.front_end.prompt_token_s, 2e-6);
    cr_expect_eq(of.front_end.token_s, 0);
    expect_round_trip(text, 1);
    static const char *const sets[] = {"deployment.front_end.token_s=0.001"};
    struct study *study = load_with(FLIES, sets, 1);
    cr_expect_eq(deployed(study, 0).front_end.token_s, 0.001);
    cr_expect_eq(deployed(study, 0).host.layer_s, 21e-6);
    study_free(study);
    expect_round_trip(FLIES "sweep: {deployment.front_end.request_s: [0, 0.01]}\n", 2);
}

/* What they meant before there were deployments: they add, and the larger floor counts. */
Test(deployment, older_keys_of_cost_add_to_it)
{
    const char *const text = FLIES "deployment: {host: {layer_s: 1e-5}}\n"
                                   "cost: {host_step_s: 0.002, host_seq_s: 0.0001, "
                                   "host_floor_s: 0.03}\n";
    const struct deployment of = deployed_by(text);
    cr_expect_eq(of.host.step_s, 0.002);
    cr_expect_eq(of.host.seq_s, 0.0001);
    cr_expect_eq(of.host.floor_s, 0.03);
    cr_expect_eq(of.host.layer_s, 1e-5);
    expect_round_trip(text, 1);
    const struct deployment b300 =
        deployed_by(TRACE SERVING MODEL "hardware: b300\ncost: {host_seq_s: 0.0001}\n");
    cr_expect_float_eq(b300.host.seq_s, 0.0001 + 19.622e-6, 1e-18);
}

Test(deployment, errors_have_their_line)
{
    expect_wrong(
        FLIES "cost: {host_step_s: 0.1}\ndeployment: {host: {step_s: 0.1}}\n", 5, 8,
        "cost.host_step_s is set beside deployment.host.step_s, expected the latter alone");
    expect_wrong(FLIES "cost: {host_floor_s: 0.1}\ndeployment: {host: {floor_s: 0}}\n", 5, 8,
                 "cost.host_floor_s is set beside deployment.host.floor_s, expected the latter "
                 "alone");
    expect_wrong(FLIES "deployment: vlm\n", 5, 1, "unknown deployment vlm, did you mean vllm?");
    expect_wrong(FLIES "deployment: {base: vlm}\n", 5, 14,
                 "unknown deployment vlm, did you mean vllm?");
    expect_wrong(FLIES "deployment: {host: {step: 1}}\n", 5, 21,
                 "unknown key deployment.host.step, did you mean step_s?");
    expect_wrong(FLIES "deployment: {hosts: {}}\n", 5, 14,
                 "unknown key deployment.hosts, did you mean host?");
    expect_wrong(FLIES "deployment: {host: {step_s: -1}}\n", 5, 21,
                 "deployment.host.step_s is -1, expected a number from 0 to 1000 s");
    expect_wrong(FLIES "deployment: {kernels: {prompt_frac: 0}}\n", 5, 24,
                 "deployment.kernels.prompt_frac is 0, expected a number from 0.1 to 10 of "
                 "the profile's time");
    expect_wrong(FLIES "deployment: {kernels: {prompt: 1}}\n", 5, 24,
                 "unknown key deployment.kernels.prompt, did you mean prompt_frac?");
    expect_wrong(FLIES "deployment: [vllm]\n", 5, 1,
                 "deployment is a list, expected a map of keys");
    expect_wrong(FLIES "deployment: {base: {}}\n", 5, 14,
                 "deployment.base is a map, expected the name of a deployment or a path");
    expect_wrong_edit("deployment.host.steps_s=1",
                      "unknown key deployment.host.steps_s, did you mean deployment.host.step_s?");
}

static struct ifl_limits limits_of(const char *text)
{
    struct study *study = load(text);
    const struct config *config = study_point(study, 0);
    struct profile_shelf shelf;
    struct machine machine;
    struct ifl_limits limits;
    char arithmetic[MACHINE_TEXT_BYTES];
    struct ifl_error error = {0};
    profile_shelf_init(&shelf);
    cr_assert_eq(machine_load(&machine, config, &shelf, &error), 0, "%s", error.text);
    cr_assert_eq(machine_size_pool(&machine, config, &limits, arithmetic, &error), 0, "%s",
                 error.text);
    profile_shelf_finish(&shelf);
    study_free(study);
    return limits;
}

/* engine.kv_dtype is the width of K/V that blocks, swaps and attention count with: half of 16 bits
 * makes blocks for twice the tokens, of the device and of the host. 2 GiB of host memory hold 4096
 * tokens of 2 x 32 layers x 32 heads x 128 x 2 bytes. */
Test(deployment, fp8_halves_the_bytes_of_a_block)
{
    static const char start[] = TRACE MODEL H100 "serving: {preset: small, kv: {swap_gib: 2, "
                                                 "num_blocks: 0, block_tokens: 16}}\n";
    char text[512];
    struct ifl_limits limits[3];
    static const char *const dtypes[] = {"auto", "bf16", "fp8"};
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%sengine: {kv_dtype: %s}\n", start, dtypes[i]);
        limits[i] = limits_of(text);
    }
    cr_expect_eq(limits[0].n_blocks, limits[1].n_blocks);
    cr_expect_eq(limits[2].n_blocks / 2, limits[0].n_blocks);
    cr_expect_eq(limits[0].n_host_blocks, 4096 / 16);
    cr_expect_eq(limits[2].n_host_blocks, 2 * 4096 / 16);
}

Test(deployment, its_blocks_count_where_the_configuration_gives_none)
{
    cr_expect_eq(
        limits_of(TRACE "serving: {preset: small}\n" MODEL H100 "deployment: {num_blocks: 7437}\n")
            .n_blocks,
        7437);
    cr_expect_eq(limits_of(FLIES "deployment: {num_blocks: 7437}\n").n_blocks, 10);
}
