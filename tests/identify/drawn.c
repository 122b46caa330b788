#include "drawn.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "inflight/random.h"

const struct system systems[N_SYSTEMS] = {
    {"llama-2-7b", "a100-80gb-sxm", "vllm-v1-2026-08", 1},
    {"llama-3-8b", "h100-sxm", "vllm-v1-2025-05", 1},
    {"llama-3-8b", "rtx-4090", "vllm-v1-2026-08", 1},
    {"qwen3-8b", "h200-sxm", "vllm-v1-2025-05", 1},
    {"llama-2-13b", "a100-80gb-sxm", "vllm-v0", 1},
    {"llama-3.1-70b", "a100-80gb-sxm", "vllm-v1-2025-05", 2},
    {"codellama-34b", "h100-sxm", "sarathi-vllm", 1},
    {"llama-3-70b", "h100-sxm", "sglang", 4},
};

static const double noise_sigma = 0.03;

static double uniform(uint64_t number, uint64_t index)
{
    return ifl_uniform(ifl_draw(20261122, IFL_DRAW_TRIAL, number, index));
}

void must(int rc, const struct ifl_error *error)
{
    cr_assert(rc == 0, "%s: %s", error->file, error->text);
}

/* Between two cards over PCIe 4 (L40S), in place of what a new table would change in the profile:
 * exchanges have this rate, where nothing else is said. */
static const char over_pcie[] = "{latency_s: 5.2203e-6, gb_per_s: 14.559, bulk_latency_s: "
                                "4.1578e-6, bulk_gb_per_s: 18.926, bulk_from_bytes: 131072}";

void case_load(struct deployment_case *c)
{
    enum { N_SETS = 7 };
    char sets[N_SETS][160];
    const char *set[N_SETS];
    const int data = c->system->data > 1 ? c->system->data : 1;
    struct ifl_error error;
    snprintf(sets[0], 160, "model=%s", c->system->model);
    snprintf(sets[1], 160, "hardware=%s", c->system->hardware);
    snprintf(sets[2], 160, "serving.preset=%s", c->system->preset);
    snprintf(sets[3], 160, "parallel.tensor=%d", c->system->ranks);
    snprintf(sets[4], 160, "parallel.data=%d", data);
    snprintf(sets[5], 160, "parallel.expert=%d", data);
    snprintf(sets[6], 160, "deployment.all_reduce=%s", data > 1 ? over_pcie : "null");
    for (int i = 0; i < N_SETS; i++)
        set[i] = sets[i];
    const struct study_options options = {"tests/identify/deployment.yaml", set, N_SETS};
    must(study_load(&options, &c->study, &error), &error);
    must(study_read(c->study, 0, &c->config, &error), &error);
    trace_shelf_init(&c->traces, (struct ifl_notes){0});
    profile_shelf_init(&c->profiles);
}

struct trial_setting case_setting(struct deployment_case *c)
{
    return (struct trial_setting){
        .config = &c->config, .traces = &c->traces, .profiles = &c->profiles};
}

double case_start(struct deployment_case *c, double value[N_PARAMETERS])
{
    struct machine *machine = malloc(sizeof *machine);
    struct ifl_limits limits;
    char text[MACHINE_TEXT_BYTES];
    struct ifl_error error;
    must(machine_load(machine, &c->config, &c->profiles, &error), &error);
    must(machine_size_pool(machine, &c->config, &limits, text, &error), &error);
    parameters_of(machine, &c->config, limits.n_blocks, value);
    free(machine);
    return limits.n_blocks;
}

void case_draw_requests(const struct deployment_case *c, struct ifl_trace *trace, uint64_t number,
                        size_t n, double rate_rps)
{
    const double tokens = c->prompt_tokens > 0 ? c->prompt_tokens : 300 + 700 * uniform(number, 1);
    const struct ifl_length_spec prompt = {IFL_LENGTH_LOGNORMAL, tokens, 0.9, 0, 8, 2500};
    const struct ifl_length_spec output = {
        IFL_LENGTH_LOGNORMAL, 120 + 200 * uniform(number, 2), 0.7, 0, 2, 1200};
    struct ifl_arrivals arrivals = {
        .process = IFL_ARRIVE_POISSON, .rate_rps = rate_rps, .cv = 1, .seed = number};
    struct ifl_error error;
    must(ifl_trace_generate(n, number, &prompt, &output, trace, &error), &error);
    must(ifl_trace_arrive(trace, &arrivals, "in memory", NULL, &error), &error);
    trace->has_stamps = true;
    trace->outcome = malloc((n + 1) * sizeof *trace->outcome);
    for (size_t i = 0; i < n; i++)
        trace->outcome[i] = (struct ifl_outcome){IFL_NEVER, 1, 1000000, -1};
}

bool case_record(struct deployment_case *c, uint64_t number, double rate_rps, size_t n)
{
    struct ifl_trace trace;
    struct trial trial;
    struct ifl_error error;
    struct trial_setting setting = case_setting(c);
    bool whole = true;
    setting.noise = (struct step_noise){c->is_exact ? 0 : noise_sigma, number + 1};
    case_draw_requests(c, &trace, number, n, rate_rps);
    must(recording_take(&c->recording, "in memory", &trace,
                        &(struct recording_options){.config = &c->config, .fit_frac = 1}, &error),
         &error);
    must(trial_open(&trial, n, &error), &error);
    must(trial_fly(&setting, &c->recording, c->truth, 0, &trial, &error), &error);
    struct ifl_trace flown = c->recording.trace;
    c->recording.trace = (struct ifl_trace){0};
    for (size_t i = 0; i < n; i++) {
        whole = whole && isfinite(trial.of[E2E][i]);
        if (whole)
            flown.outcome[i] = (struct ifl_outcome){IFL_NEVER, ifl_ns_from_s(trial.of[TTFT][i]),
                                                    ifl_ns_from_s(trial.of[E2E][i]), -1};
    }
    trial_close(&trial);
    recording_free(&c->recording);
    if (whole)
        must(recording_take(&c->recording, "in memory", &flown,
                            &(struct recording_options){.config = &c->config, .fit_frac = 1},
                            &error),
             &error);
    else
        ifl_trace_free(&flown);
    return whole;
}

/* Flies requests without outcomes; the caller owes recording_free and trial_close. */
static void case_fly(struct deployment_case *c, const double value[N_PARAMETERS], uint64_t number,
                     size_t n, double rate_rps, struct trial *trial)
{
    struct ifl_trace trace;
    struct ifl_error error;
    struct trial_setting setting = case_setting(c);
    case_draw_requests(c, &trace, number, n, rate_rps);
    must(recording_take(&c->recording, "in memory", &trace,
                        &(struct recording_options){.config = &c->config, .fit_frac = 1}, &error),
         &error);
    must(trial_open(trial, n, &error), &error);
    must(trial_fly(&setting, &c->recording, value, 0, trial, &error), &error);
}

double case_most_rate(struct deployment_case *c, uint64_t number)
{
    double last_s = 0;
    struct trial trial;
    const size_t n = 300;
    case_fly(c, c->truth, number, n, 1e6, &trial);
    for (size_t i = 0; i < n; i++)
        last_s = isfinite(trial.of[E2E][i]) ? fmax(last_s, trial.of[E2E][i]) : last_s;
    trial_close(&trial);
    recording_free(&c->recording);
    return (double)n / last_s;
}

double case_choose_rate(struct deployment_case *c, uint64_t number)
{
    return (c->tight ? 0.9 + 0.2 * uniform(number, 3) : 0.4 + 0.4 * uniform(number, 3)) *
           case_most_rate(c, number);
}

void case_means(struct deployment_case *c, const double value[N_PARAMETERS], uint64_t number,
                double rate_rps, double means[N_LATENCIES])
{
    struct trial trial;
    const size_t n = 300;
    case_fly(c, value, number, n, rate_rps, &trial);
    for (int l = 0; l < N_LATENCIES; l++) {
        size_t n_finite = 0;
        means[l] = 0;
        for (size_t i = 0; i < n; i++)
            if (isfinite(trial.of[l][i])) {
                means[l] += trial.of[l][i];
                n_finite++;
            }
        means[l] /= (double)n_finite;
    }
    trial_close(&trial);
    recording_free(&c->recording);
}

void case_draw_truth(struct deployment_case *c, uint64_t number)
{
    double *truth = c->truth;
    const double computed = case_start(c, truth);
    truth[HOST_STEP] = 0.003 * uniform(number, 4);
    truth[HOST_SEQ] = 60e-6 * uniform(number, 5);
    truth[FRONT_REQUEST] = 0.04 * uniform(number, 6);
    truth[FRONT_PROMPT_TOKEN] = 20e-6 * uniform(number, 7);
    c->tight = uniform(number, 8) < 0.5;
    /* Half of the deployments have the profile's kernels. */
    truth[PROMPT_FRAC] = uniform(number, 10) < 0.5 ? 1 : 0.85 + 0.3 * uniform(number, 11);
    truth[BLOCKS] = round(c->tight ? fmin(computed, 600 + 1400 * uniform(number, 9)) : computed);
}

static void identify_with(struct deployment_case *c, struct identify_options *options,
                          struct identified *found)
{
    struct ifl_error error;
    options->setting = case_setting(c);
    options->recordings = &c->recording;
    options->n_recordings = 1;
    must(identify(options, found, &error), &error);
    recording_free(&c->recording);
}

void case_identify(struct deployment_case *c, enum parameter released, struct identified *found)
{
    struct identify_options options = {0};
    if (released < N_PARAMETERS)
        options.release[released] = true;
    identify_with(c, &options, found);
}

void case_identify_among(struct deployment_case *c, struct identified *found)
{
    struct identify_options options = {.study = c->study};
    identify_with(c, &options, found);
}

void case_unload(struct deployment_case *c)
{
    trace_shelf_finish(&c->traces);
    profile_shelf_finish(&c->profiles);
    config_finish(&c->config);
    study_free(c->study);
}
