#include <string.h>

#include "loading.h"

/* Data sheets: dense bf16 TFLOP/s, GB/s, multiprocessors. */
Test(hardware, profiles_hold_the_data_sheets_peaks)
{
    const struct {
        const char *name;
        double tflops, gb_per_s;
        int32_t n_sms;
    } sheets[] = {{"a100-80gb-sxm", 312, 2039, 108},
                  {"a100-40gb-sxm", 312, 1555, 108},
                  {"h100-sxm", 989.4, 3352, 132},
                  {"h200-sxm", 989.4, 4800, 132},
                  {"l40s", 362.05, 864, 142},
                  {"l4", 121, 300, 58},
                  {"a10", 125, 600, 72},
                  {"a100-40gb-pcie", 312, 1555, 108},
                  {"rtx-a6000", 154.8, 768, 84},
                  {"rtx-3090", 71, 936, 82},
                  {"rtx-5090", 209.5, 1792, 170}};
    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++) {
        const struct hardware hw = load_hardware(sheets[i].name);
        cr_expect_eq(hw.gpu.peak_tflops, sheets[i].tflops, "%s", hw.name);
        cr_expect_eq(hw.gpu.memory_gb_per_s, sheets[i].gb_per_s, "%s", hw.name);
        cr_expect_eq(hw.gpu.n_sms, sheets[i].n_sms, "%s", hw.name);
        cr_expect_str_eq(hw.name, sheets[i].name);
        cr_expect_gt(strlen(hw.source), 50, "%s", hw.name);
        cr_expect_gt(strlen(hw.assumed), 20, "%s", hw.name);
    }
}

static void expect_same_lines(const struct hardware *hw, const struct hardware *of, int32_t n_gpus)
{
    const struct lines_profile *lines = hardware_allreduce(hw, false, n_gpus);
    const struct lines_profile *expected = hardware_allreduce(of, false, n_gpus);
    cr_assert_eq(!lines, !expected, "%s of %d", hw->name, n_gpus);
    if (lines)
        cr_expect_arr_eq(lines, expected, sizeof *lines, "%s of %d", hw->name, n_gpus);
}

static void expect_same_stages(const struct hardware *hw, const struct hardware *of)
{
    cr_expect_gt(of->send_recv.gb_per_s, 0, "%s", of->name);
    cr_expect_eq(hw->send_recv.gb_per_s, of->send_recv.gb_per_s, "%s", hw->name);
    cr_expect_eq(hw->send_recv.latency_us, of->send_recv.latency_us, "%s", hw->name);
}

/* Cards whose all-reduces were not measured have those of cards on the same path. */
Test(hardware, a_path_has_one_all_reduce_and_one_pipeline)
{
    const struct {
        const char *name, *pair, *others;
    } paths[] = {{"a100-80gb-pcie", "l40s", "l40s"},
                 {"a100-40gb-pcie", "l40s", "l40s"},
                 {"a10", "l40s", "l40s"},
                 {"a10g", "rtx-3090", "rtx-3090"},
                 {"h100-pcie", "rtx-pro-6000", "rtx-pro-6000"},
                 {"h100-nvl", "a100-80gb-sxm", "rtx-pro-6000"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct hardware hw = load_hardware(paths[i].name);
        const struct hardware pair = load_hardware(paths[i].pair);
        const struct hardware others = load_hardware(paths[i].others);
        expect_same_lines(&hw, &pair, 2);
        expect_same_lines(&hw, &others, 4);
        expect_same_lines(&hw, &others, 8);
        expect_same_stages(&hw, &others);
    }
}

Test(hardware, all_reduces_are_for_2_4_and_8_gpus)
{
    const struct hardware hw = load_hardware("h100-sxm");
    cr_expect_eq(hardware_allreduce(&hw, false, 4), &hw.allreduce[1]);
    cr_expect_eq(hardware_allreduce(&hw, false, 8), &hw.allreduce[2]);
    cr_expect_null(hardware_allreduce(&hw, false, 1));
    cr_expect_null(hardware_allreduce(&hw, false, 3));
    cr_expect_null(hardware_allreduce(&hw, false, 16));
    cr_expect_eq(hardware_allreduce(&hw, true, 4), &hw.allreduce_eager[1]);
}

static const char *const gpu =
    "gpu: {peak_tflops: 1, memory_gb_per_s: 1, n_sms: 1, memory_gib: 1}\n";
static const char *const rest =
    "gemm: {launch_us: 1, compute_frac: 1, memory_frac: 1, exponent: 2}\n"
    "prefill: {launch_us: 1, compute_frac: 1, overhead_tokens: 0, causal_frac: 0.5}\n"
    "decode: {launch_us: 1, head_us: 1, memory_frac: 1}\n"
    "decode_mixed: {head_us: 1, memory_frac: 1}\n"
    "elementwise: {launch_us: 1, memory_frac: 1}\n"
    "host: {layer_us: 1}\n"
    "swap_out: {latency_us: 1, gb_per_s: 1}\n"
    "swap_in: {latency_us: 1, gb_per_s: 1}\n";

static int load_text(const char *first, const char *middle, const char *last,
                     struct platform *platform, struct ifl_error *error)
{
    char text[2048], path[64];
    snprintf(text, sizeof text, "%s%s%s", first, middle, last);
    write_temporary("inflight-hardware", "yaml", text, path);
    *error = (struct ifl_error){0};
    const int code = hardware_load(path, platform, error);
    remove(path);
    return code;
}

Test(hardware, optional_keys_have_defaults)
{
    struct platform hw;
    struct ifl_error error;
    cr_assert_eq(load_text(gpu, rest, "memory: {workspace_gib: 1}\n", &hw, &error), 0, "%s",
                 error.text);
    cr_expect_eq(hw.deployment.memory.activation_tokens, 4096);
    cr_expect_eq(hw.deployment.host.floor_s, 0);
    cr_expect_eq(hw.hardware.swap.piece_bytes, 0);
    cr_expect_null(hardware_allreduce(&hw.hardware, false, 2));
}

static void expect_error(const char *first, const char *last, int line, const char *words)
{
    struct platform hw;
    struct ifl_error error;
    cr_expect_eq(load_text(first, rest, last, &hw, &error), IFL_E_INPUT, "%s", words);
    cr_expect_eq(error.line, line, "%s: line %d", error.text, error.line);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
}

Test(hardware, wrong_profiles_are_named_by_line)
{
    const char *const memory = "memory: {workspace_gib: 1}\n";
    expect_error("", memory, 1, "gpu is missing");
    expect_error("gpu: {peak_tflops: 1, memory_gb_per_s: 1, n_sms: 1}\n", memory, 1,
                 "gpu.memory_gib is missing");
    expect_error("gpu: fast\n", memory, 1, "gpu is fast");
    expect_error(gpu, "memory: {workspace_gib: -1}\n", 10, "memory.workspace_gib is -1");
    expect_error(gpu, "memory: {workspace_gib: much}\n", 10, "expected a number");
    expect_error(gpu, "memory: {workspace_gib: 1, activation_token: 1}\n", 10, "activation_tokens");
    expect_error(gpu, "memory: {workspace_gib: 1}\nmemry: 1\n", 11, "memory");
}
