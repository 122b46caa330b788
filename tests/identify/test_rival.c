/* A run of one preset under the configuration of another: the notice names the one that ran. Under
 * its own there is none. */
#include <criterion/criterion.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"

/* A run of `ran` at that part of the rate that it takes, identified as `configured`. */
struct pair {
    int system; /* of `systems`: model, GPU and ranks */
    const char *ran, *configured;
    double load;
};

/* The profile's kernels and the pool that the preset makes. */
static void draw(struct deployment_case *c, uint64_t number)
{
    case_draw_truth(c, number);
    double start[N_PARAMETERS];
    case_start(c, start);
    c->truth[BLOCKS] = start[BLOCKS];
    c->truth[PROMPT_FRAC] = 1;
    c->tight = false;
}

/* How far what was found is off the truth in the means at another rate. */
static void predict(struct deployment_case *ran, const struct deployment_case *configured,
                    const double value[], double rate_rps, uint64_t number, double off[N_LATENCIES])
{
    double means[2][N_LATENCIES];
    case_means(ran, ran->truth, number, rate_rps, means[0]);
    struct deployment_case other = *configured;
    case_means(&other, value, number, rate_rps, means[1]);
    for (int l = 0; l < N_LATENCIES; l++)
        off[l] = means[1][l] / means[0][l] - 1;
}

/* False if a request of the run did not finish. */
static bool identify_pair(const struct pair *pair, uint64_t number, struct identified *found,
                          double off[N_LATENCIES])
{
    struct system ran_on = systems[pair->system], as = systems[pair->system];
    ran_on.preset = pair->ran;
    as.preset = pair->configured;
    struct deployment_case ran = {.system = &ran_on}, configured = {.system = &as};
    case_load(&ran);
    case_load(&configured);
    draw(&ran, number);
    const double most_rps = case_most_rate(&ran, number);
    const bool whole = case_record(&ran, number, pair->load * most_rps, 300);
    if (whole) {
        configured.recording = ran.recording;
        case_identify_among(&configured, found);
        const double load = pair->load < 0.85 ? 0.85 : 0.55;
        predict(&ran, &configured, found->value, load * most_rps, number + 77, off);
    }
    case_unload(&ran);
    case_unload(&configured);
    return whole;
}

static void show_pair(const struct pair *pair, uint64_t number, const struct identified *found,
                      const double off[N_LATENCIES])
{
    if (getenv("IDENTIFY_SHOW"))
        fprintf(stderr,
                "%d %s %s as %s at %.2f: %zu flights; predicts TTFT %+.1f%%, TPOT %+.1f%%, end to "
                "end %+.1f%%; %s\n",
                (int)number, systems[pair->system].model, pair->ran, pair->configured, pair->load,
                found->n_flights, 100 * off[TTFT], 100 * off[TPOT], 100 * off[E2E],
                *found->rival ? found->rival : "nothing said");
}

/* The name is that of the preset, or of one that does the same in such a run: SGLang's and vLLM's
 * v0 both compute prompts first, and with one client VTC is S-LoRA. */
Test(rival, another_preset_is_named)
{
    static const struct {
        struct pair pair;
        const char *named;
    } cases[] = {
        {{0, "vllm-v0", "vllm-v1-2026-11", 0.55}, "vllm-v0"},
        {{0, "vllm-v1-2026-11", "vllm-v0", 0.55}, "vllm-v1"},
        {{0, "sarathi", "tgi", 0.55}, "sarathi"},
        {{0, "vllm-v0", "faster-transformer", 0.25}, "sglang"},
        {{0, "vtc", "sglang", 0.55}, "s-lora"},
    };
    gsl_set_error_handler_off();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pair *pair = &cases[i].pair;
        struct identified found;
        double off[N_LATENCIES];
        cr_assert(identify_pair(pair, 4010 + i, &found, off));
        show_pair(pair, 4010 + i, &found, off);
        cr_expect(strstr(found.rival, cases[i].named), "%s as %s: %s", pair->ran, pair->configured,
                  found.rival);
    }
}

/* Every preset of a list as every other, at three loads: a table, for the documentation. */
Test(matrix, of_presets)
{
    static const char *presets[] = {"faster-transformer",
                                    "orca-max",
                                    "vllm-v0",
                                    "vllm-v1-2026-11",
                                    "sarathi",
                                    "sglang",
                                    "tgi",
                                    "vtc",
                                    "fastserve"};
    enum { N = sizeof presets / sizeof *presets };
    static const double loads[] = {0.25, 0.55, 0.85};
    const char *asked = getenv("IDENTIFY_SYSTEM");
    gsl_set_error_handler_off();
    for (int i = 0; i < N * N * 3; i++) {
        struct identified found;
        double off[N_LATENCIES];
        const struct pair pair = {asked ? atoi(asked) : 0, presets[i / N % N], presets[i % N],
                                  loads[i / N / N]};
        const uint64_t number = 4000 + (uint64_t)(i / N % N);
        if (identify_pair(&pair, number, &found, off))
            show_pair(&pair, number, &found, off);
        if (strcmp(pair.ran, pair.configured) == 0)
            cr_expect(!*found.rival, "%s at %g: %s", pair.ran, pair.load, found.rival);
    }
}

/* Deployments as `truth` draws them, with pools that requests wait for and other kernels. */
Test(rival, the_right_preset_has_none)
{
    const char *asked = getenv("IDENTIFY_DEPLOYMENTS");
    const int n = asked ? atoi(asked) : 4;
    int n_all = 0, accused = 0;
    gsl_set_error_handler_off();
    for (int i = 0; i < n; i++) {
        const uint64_t number = 900 + (uint64_t)i;
        struct deployment_case c = {.system = &systems[number % N_SYSTEMS]};
        struct identified found;
        case_load(&c);
        case_draw_truth(&c, number);
        if (case_record(&c, number, case_choose_rate(&c, number), 400)) {
            case_identify_among(&c, &found);
            n_all++;
            accused += *found.rival != '\0';
            if (getenv("IDENTIFY_SHOW"))
                fprintf(stderr, "%d %s %s: %zu flights; %s\n", (int)number, c.system->model,
                        c.system->preset, found.n_flights,
                        *found.rival ? found.rival : "nothing said");
        }
        case_unload(&c);
    }
    cr_assert(4 * n_all >= 3 * n, "%d of %d deployments finish", n_all, n);
    cr_assert(accused * 30 <= n_all, "%d of %d accused", accused, n_all);
}
