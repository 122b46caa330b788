/* Messages about a flown point for the terminal, and the list of its assumptions in summary.csv. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/check_router.h"
#include "run/point_parts.h"

void point_say(const struct point_options *options, const char *text)
{
    if (text[0] && options->notes.say)
        options->notes.say(options->notes.context, text);
}

/* The same of a pool, with its name if it has one. */
void point_say_of(const struct point_options *options, size_t pool, const char *text)
{
    const struct config *config = options->config;
    char named[MACHINE_TEXT_BYTES + MAX_POOL_NAME + 8];
    if (config->n_pools == 0 || !text[0]) {
        point_say(options, text);
        return;
    }
    snprintf(named, sizeof named, "pool %s: %s", config->pools[pool].name, text);
    point_say(options, named);
}

/* Rows may have a deadline of their first token of their own. */
static bool has_ttft_slo(const struct point_options *options, const struct point *point)
{
    const struct ifl_trace *trace = point_trace(options, point);
    bool any = point->workload.plain.said.ttft_slo_ns != IFL_NEVER;
    for (size_t i = 0; trace->ttft_slo_ns && i < trace->n && !any; i++)
        any = trace->ttft_slo_ns[i] != IFL_NEVER;
    return any;
}

void point_say_unused(const struct point_options *options, const struct point *point)
{
    const struct config *config = options->config;
    char text[MACHINE_TEXT_BYTES];
    router_unused(config, text, sizeof text);
    point_say(options, text);
    if (config->gateway.prefill_tokens_s <= 0 || has_ttft_slo(options, point))
        return;
    snprintf(text, sizeof text,
             "cluster.gateway.prefill_tokens_s is %g and has no effect: no request has a "
             "ttft_slo_s, and slo.ttft_s is 0",
             config->gateway.prefill_tokens_s);
    point_say(options, text);
}

static bool has_step_hook(const struct ifl_policy *policy)
{
    return policy->on_step_end || policy->on_step_start;
}

static bool has_steady(const struct ifl_policy *policy)
{
    return policy->steady;
}

/* Modules of which `is` is true, as a list of words. */
static void list_modules(const struct config *config, bool (*is)(const struct ifl_policy *),
                         char *text, size_t n_text)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < N_MODULES && n < n_text; i++) {
        const struct ifl_policy *policy = config->serving.modules[i].policy;
        if (policy && is(policy))
            n += (size_t)snprintf(text + n, n_text - n, "%s%s %s", n ? ", " : "",
                                  module_kind_name(policy->kind), policy->name);
    }
}

int point_compare_runs(const struct point_options *options, const struct ifl_summary *checked,
                       const struct ifl_summary *as_runs, struct ifl_error *error)
{
    double planned, runs;
    char hearers[192], steady[192];
    const char *column = ifl_summary_difference(checked, as_runs, &planned, &runs);
    if (!column)
        return 0;
    list_modules(options->config, has_step_hook, hearers, sizeof hearers);
    list_modules(options->config, has_steady, steady, sizeof steady);
    return ifl_fail(error, IFL_E_POLICY,
                    "serving.check_steady: %s is %.9g where each step is planned, and %.9g where "
                    "promised steps are not: a hook counts its calls in place of steps (n_steps of "
                    "on_step_end), a module changes its answers by being asked (a static variable, "
                    "a state that `rank` or `ask` writes), or a promise does not stand; hooks of "
                    "steps: %s; `steady`: %s",
                    column, planned, runs, hearers[0] ? hearers : "none",
                    steady[0] ? steady : "none");
}

/* Modules of a pool whose promises were made, and in no replica tested. */
static unsigned untested_in(const struct point *point, const struct fleet_pool *pool)
{
    unsigned promised = 0, tested = 0;
    for (uint32_t i = pool->first; i < pool->first + pool->n; i++) {
        promised |= point->replicas[i].said.promised;
        tested |= point->replicas[i].said.tested;
    }
    return promised & ~tested;
}

static void say_untested(const struct point_options *options, const struct point *point, size_t k)
{
    const struct replica *first = &point->replicas[point->fleet_pools[k].first];
    char text[640], why[192];
    size_t n = (size_t)snprintf(text, sizeof text, "serving.check_steady: promises of");
    const char *before = "";
    for (unsigned left = untested_in(point, &point->fleet_pools[k]); left > 0; left &= left - 1) {
        const struct ifl_policy *policy = first->fixed.modules[__builtin_ctz(left)].policy;
        if (n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s %s %s", before,
                                  module_kind_name(policy->kind), policy->name);
        before = ",";
    }
    if (n < sizeof text)
        snprintf(text + n, sizeof text - n, " were not tested: %s",
                 replica_why_untested(first, why, sizeof why));
    if (before[0])
        point_say_of(options, k, text);
}

void point_tell_untested(const struct point_options *options, const struct point *point)
{
    char hearers[192], text[320];
    if (!options->config->serving.check_steady)
        return;
    for (size_t k = 0; k < point->n_pools; k++)
        if (point->fleet_pools[k].n > 0)
            say_untested(options, point, k);
    list_modules(options->config, has_step_hook, hearers, sizeof hearers);
    if (!hearers[0] || point_is_compared(options))
        return;
    snprintf(text, sizeof text,
             "serving.check_steady: hooks of steps were not tested, since only a simulated run is "
             "made a second time: %s",
             hearers);
    point_say(options, text);
}

/* Adds up the refusals of all replicas. */
static void sum_refusals(const struct point *point, struct refusals *all)
{
    *all = (struct refusals){0};
    for (uint32_t i = 0; i < point->n_replicas; i++)
        for (size_t k = 0; k < point->replicas[i].refusals.n; k++)
            refusals_add(all, &point->replicas[i].refusals.of[k]);
}

/* What stands before an item of a list: *before for the first, "; " for all others. */
static const char *then(const char **before)
{
    const char *now = *before;
    *before = "; ";
    return now;
}

/* alike: all replicas have these limits. */
static void list_misfits(FILE *to, const struct flight_rejections *rejected,
                         const struct ifl_limits *limits, bool alike, const char **before)
{
    if (rejected->n_unserved > 0)
        fprintf(to, "%s%" PRIu64 " for a model that no pool serves", then(before),
                rejected->n_unserved);
    const int64_t pool_tokens = (int64_t)limits->n_blocks * limits->block_tokens;
    char tokens[2][48] = {"", ""};
    if (alike) {
        snprintf(tokens[0], sizeof tokens[0], ", %" PRId32 " tokens", limits->max_model_tokens);
        snprintf(tokens[1], sizeof tokens[1], ", %" PRId64 " tokens", pool_tokens);
    }
    if (rejected->n_beyond_model > 0)
        fprintf(to, "%s%" PRIu64 " longer than max_model_len%s", then(before),
                rejected->n_beyond_model, tokens[0]);
    if (rejected->n_beyond_pool > 0)
        fprintf(to, "%s%" PRIu64 " larger than the KV pool%s", then(before),
                rejected->n_beyond_pool, tokens[1]);
}

static void list_turned_away(FILE *to, const struct flight *flight, const char **before)
{
    const struct {
        uint64_t n;
        const char *why;
    } of[] = {
        {flight->rejected.n_at_door,
         "turned away at the door (serving.max_queued_reqs, max_queued_tokens)"},
        {flight->rejected.n_beyond_gateway, "by a full gateway (cluster.gateway.max_held)"},
        {flight->rejected.n_too_late,
         "whose first token would be late (cluster.gateway.prefill_tokens_s)"},
        {flight->n_beyond_queue, "by a full queue (serving.max_waiting_reqs)"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].n > 0)
            fprintf(to, "%s%" PRIu64 " %s", then(before), of[i].n, of[i].why);
}

static void list_refusals(FILE *to, const struct refusals *refusals, bool failed,
                          const char **before)
{
    for (size_t i = 0; i < refusals->n; i++) {
        const struct refusal_count *one = &refusals->of[i];
        const uint64_t n = failed ? one->n_failed : one->n_rejected;
        if (n > 0)
            fprintf(to, "%s%" PRIu64 " by %s %s: %s", then(before), n,
                    module_kind_name(one->by->kind), one->by->name, one->why);
        if (n > 0 && one->n_beside > 0)
            fprintf(to,
                    " (%" PRIu64 " while others ran, to which the batching module gave no tokens)",
                    one->n_beside);
    }
}

/* Where every request was rejected, and so no latency is known: how far the limits are. */
static void add_all_rejected(FILE *to, const struct flight *flight, const struct refusals *refusals)
{
    const struct flight_rejections *rejected = &flight->rejected;
    uint64_t n = rejected->n_unserved + rejected->n_beyond_model + rejected->n_beyond_pool;
    for (size_t i = 0; i < refusals->n; i++)
        n += refusals->of[i].n_rejected;
    if (n == 0 || n < flight->workload->n_arrived)
        return;
    fprintf(to, "; all %" PRIu64 " requests were rejected", n);
    if (rejected->least_prompt_tokens > 0)
        fprintf(to, ", the shortest of these prompts has %" PRId32 " tokens",
                rejected->least_prompt_tokens);
}

/* Says why requests have that status; a row of summary.csv only counts them. */
static void explain(const struct point_options *options, const struct point *point,
                    const struct flight *flight, const struct ifl_limits *limits,
                    enum ifl_status status)
{
    struct refusals refusals;
    char head[32];
    const char *before = head;
    char *note = NULL;
    size_t n_bytes;
    FILE *to = open_memstream(&note, &n_bytes);
    if (!to)
        return;
    sum_refusals(point, &refusals);
    snprintf(head, sizeof head, "%s requests: ", ifl_status_names[status]);
    if (status == IFL_REJECTED)
        list_misfits(to, &flight->rejected, limits, flight->n_pools == 1, &before);
    if (status == IFL_SHED)
        list_turned_away(to, flight, &before);
    list_refusals(to, status == IFL_SHED ? &flight->shed : &refusals, status == IFL_FAILED,
                  &before);
    if (status == IFL_REJECTED)
        add_all_rejected(to, flight, &refusals);
    if (fclose(to) == 0 && before != head)
        options->notes.say(options->notes.context, note);
    free(note);
}

void point_explain_refusals(const struct point_options *options, const struct point *point,
                            const struct flight *flight, const struct ifl_limits *limits)
{
    static const enum ifl_status of[] = {IFL_REJECTED, IFL_FAILED, IFL_SHED};
    for (size_t i = 0; i < sizeof of / sizeof *of && options->notes.say; i++)
        explain(options, point, flight, limits, of[i]);
}

/* Says how far the plans were those of the recording, to the terminal and in summary.csv. */
void point_explain_differences(const struct point_options *options, const struct point *point,
                               struct ifl_summary *summary)
{
    const struct recorded_counts counts = recorded_counts(point->recorded);
    char text[256];
    snprintf(text, sizeof text,
             "%" PRIu64 " of %" PRIu64 " steps were planned otherwise than recorded, %" PRIu64
             " recorded steps were not planned, %" PRIu64 " not reached",
             counts.n_otherwise, counts.n_steps, counts.n_unplanned, counts.n_left);
    snprintf(summary->assumed, sizeof summary->assumed, "%s", text);
    point_say(options, text);
}

void point_tell_dummies(const struct point_options *options, const struct flight *flight)
{
    char note[96];
    snprintf(note, sizeof note, "dummy steps of data-parallel ranks without work: %" PRIu64,
             flight->n_dummies);
    if (flight->n_dummies > 0 && options->notes.say)
        options->notes.say(options->notes.context, note);
}

void point_tell_adapters(const struct point_options *options, const struct point *point)
{
    for (uint32_t i = 0; i < point->n_replicas; i++) {
        const struct adapters *adapters = &point->replicas[i].adapters;
        const int32_t slots = adapters->fixed.in_pool ? 0 : adapters->fixed.device_slots;
        char note[160];
        if (slots == 0 || adapters->most_step <= (size_t)slots)
            continue;
        snprintf(note, sizeof note,
                 "a step had %zu adapters, more than serving.adapters.max_loras (%" PRId32
                 "): the admission adapter-slots enforces it",
                 adapters->most_step, slots);
        point_say(options, note);
        return;
    }
}

/* Of a sequence in a step of vLLM, as in deployments that were measured: vllm-0.20 has 19.6 us,
 * vllm-0.8 34 us, vllm-0.6 42.6 us. A sequence in a step is an output token, but for prompts, so
 * that output tokens a second times the middle one is a share of the time. */
static const double host_seq_s = 34e-6, shown_share = 0.1;

void point_tell_host(const struct point_options *options, const struct point *point,
                     const struct ifl_summary *summary)
{
    const struct machine *machine = &point->pools[0].machine;
    const double tok_per_s = summary->output_throughput_tok_per_s / point->n_replicas;
    char note[256];
    if (options->config->executor != EXECUTOR_SIM || !machine->has_hardware ||
        strcmp(options->config->serving.engine, "vllm") != 0 ||
        machine->platform.deployment.host.seq_s > 0 || !(tok_per_s * host_seq_s > shown_share))
        return;
    snprintf(note, sizeof note,
             "%.0f output tokens a second from a replica, whose host takes no time for a sequence: "
             "34 us would be %.0f%% of the time; deployments vllm-0.6, vllm-0.8 and vllm-0.20 have "
             "20 to 43 us",
             tok_per_s, 100 * tok_per_s * host_seq_s);
    point_say(options, note);
}

/* Which durations rest on no measurement, by pools. */
void point_disclose(const struct config *config, const struct point *point,
                    struct ifl_summary *summary)
{
    for (size_t i = 0; i < point->n_pools; i++) {
        struct ifl_summary of = {0};
        const size_t at = strlen(summary->assumed), n_bytes = sizeof summary->assumed - at;
        machine_disclose(&point->pools[i].machine, config_of_pool(config, i),
                         point->pools[i].limits.max_model_tokens, &of);
        if (config->n_pools > 0 && of.assumed[0] && config->pools[i].count > 0)
            snprintf(summary->assumed + at, n_bytes, "%spool %s: %s", at ? "; " : "",
                     config->pools[i].name, of.assumed);
        else if (config->n_pools == 0 && of.assumed[0])
            snprintf(summary->assumed + at, n_bytes, "%s%s", at ? "; " : "", of.assumed);
    }
}
