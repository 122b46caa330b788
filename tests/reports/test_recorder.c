#include "scratch.h"

#include <math.h>
#include <sys/stat.h>

#include "inflight/random.h"
#include "inflight/report.h"
#include "record/life.h"

static struct ifl_error error;

#define S 1000000000LL

/* Preempted once before and once after its first token. */
static const struct ifl_request_record stalled = {
    .request_id = 7,
    .arrival_ns = 1 * S,
    .first_scheduled_ns = 3 * S,
    .first_token_ns = 8 * S,
    .finish_ns = 18 * S + 1,
    .max_itl_ns = 4 * S,
    .stalled_ns = 6 * S,
    .stalled_prefill_ns = 2 * S,
    .ttft_slo_ns = IFL_NEVER,
    .tpot_slo_ns = IFL_NEVER,
    .prompt_tokens = 100,
    .output_tokens = 4,
    .cached_tokens = 16,
    .preemptions = 2,
    .swap_outs = 1,
    .replica = 0,
    .status = IFL_FINISHED,
};

static const struct ifl_request_record one_token = {
    .request_id = 9,
    .arrival_ns = S / 2,
    .first_scheduled_ns = S / 2,
    .first_token_ns = S,
    .finish_ns = S,
    .max_itl_ns = -1,
    .ttft_slo_ns = IFL_NEVER,
    .tpot_slo_ns = S / 2,
    .prompt_tokens = 5,
    .output_tokens = 1,
    .replica = 1,
    .status = IFL_FINISHED,
};

static const struct ifl_request_record rejected = {
    .request_id = 3,
    .arrival_ns = 1 * S,
    .first_scheduled_ns = IFL_NEVER,
    .first_token_ns = IFL_NEVER,
    .finish_ns = IFL_NEVER,
    .max_itl_ns = -1,
    .ttft_slo_ns = IFL_NEVER,
    .tpot_slo_ns = IFL_NEVER,
    .prompt_tokens = 99999,
    .status = IFL_REJECTED,
};

static const struct ifl_step_record step = {
    .step = 12,
    .start_ns = 3 * S,
    .duration_ns = S / 4,
    .replica = 1,
    .prefill_tokens = 100,
    .decode_tokens = 2,
    .prefill_seqs = 1,
    .decode_seqs = 2,
    .context_tokens = 5000000000,
    .running = 3,
    .waiting = 4,
    .swapped = 5,
    .preempted = 6,
    .blocks_out = 7,
    .blocks_in = 8,
    .kv_used_blocks = 9,
    .kv_total_blocks = 10,
    .kv_token_slots = 40,
    .kv_reserved_slots = 30,
    .kv_internal_slots = 10,
    .kv_pool_slots = 160,
    .kv_shared_blocks = 3,
    .device_ns = S / 5,
    .gap_ns = IFL_NEVER,
};

#define REQUESTS_HEADER                                                                            \
    "point,request_id,replica,status,arrival_s,first_scheduled_s,first_token_s,finish_s,"          \
    "prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions,"         \
    "swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s\n"

static struct ifl_recorder *record_all(const struct ifl_recorder_options *options)
{
    struct ifl_recorder *recorder = ifl_recorder_create(options, &error);
    cr_assert_not_null(recorder, "%s", error.text);
    cr_assert_eq(ifl_record_request(recorder, &one_token, &error), IFL_OK);
    cr_assert_eq(ifl_record_request(recorder, &stalled, &error), IFL_OK);
    cr_assert_eq(ifl_record_request(recorder, &rejected, &error), IFL_OK);
    cr_assert_eq(ifl_record_gaps(recorder, 3 * S, 2, &error), IFL_OK);
    cr_assert_eq(ifl_record_gaps(recorder, 4 * S + 1, 1, &error), IFL_OK);
    cr_assert_eq(ifl_record_step(recorder, &step, &error), IFL_OK);
    return recorder;
}

Test(recorder, a_tiny_run_byte_for_byte)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = {
        .point = 4,
        .requests_path = scratch_path(&scratch, "requests.csv"),
        .steps_path = scratch_path(&scratch, "steps.csv"),
        .n_requests = 3,
    };
    struct ifl_summary summary;
    struct ifl_recorder *recorder = record_all(&options);
    cr_assert_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    /* tpot of the second request that arrives at 1 s: (10 s + 1 ns) / 3. */
    scratch_expect(&scratch, "requests.csv",
                   REQUESTS_HEADER
                   "4,9,1,finished,0.500000000,0.500000000,1.000000000,1.000000000,5,1,0,"
                   "0.500000000,,0.500000000,,0,0,0.000000000,0.500000000,0.000000000,0.000000000,,"
                   "0.500000000\n"
                   "4,3,0,rejected,1.000000000,,,,99999,0,0,,,,,0,0,,,,,,\n"
                   "4,7,0,finished,1.000000000,3.000000000,8.000000000,18.000000001,100,4,16,"
                   "7.000000000,3.333333334,17.000000001,4.000000000,2,1,"
                   "2.000000000,3.000000000,6.000000001,6.000000000,,\n");
    scratch_expect(&scratch, "steps.csv",
                   "point,replica,step,start_s,duration_s,prefill_tokens,decode_tokens,"
                   "prefill_seqs,decode_seqs,context_tokens,running,waiting,swapped,preempted,"
                   "blocks_out,blocks_in,kv_used_blocks,kv_total_blocks,device_s,gap_s,"
                   "kv_token_slots,kv_reserved_slots,kv_internal_slots,kv_pool_slots,"
                   "kv_shared_blocks\n"
                   "4,1,12,3.000000000,0.250000000,100,2,1,2,5000000000,3,4,5,6,7,8,9,10,"
                   "0.200000000,,40,30,10,160,3\n");
    cr_expect_eq(scratch_count(&scratch), 2);
    scratch_remove(&scratch);
}

Test(recorder, adds_up_the_point)
{
    struct ifl_summary s;
    struct ifl_recorder *recorder = record_all(&(struct ifl_recorder_options){.n_requests = 3});
    cr_assert_eq(ifl_recorder_finish(recorder, &s, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    cr_expect_eq(s.n_requests, 3);
    cr_expect_eq(s.n_finished, 2);
    cr_expect_eq(s.n_rejected, 1);
    cr_expect_eq(s.preemptions, 2);
    cr_expect_float_eq(s.duration_s, 17.500000001, 1e-12);
    cr_expect_float_eq(s.request_throughput_rps, 2 / 17.500000001, 1e-12);
    cr_expect_float_eq(s.output_throughput_tok_per_s, 5 / 17.500000001, 1e-12);
    cr_expect_float_eq(s.total_throughput_tok_per_s, 110 / 17.500000001, 1e-12);
    cr_expect_float_eq(s.ttft_s.mean, 3.75, 1e-12);
    cr_expect_float_eq(s.ttft_s.p90, 0.5 + 0.9 * 6.5, 1e-12);
    cr_expect_float_eq(s.tpot_s.p50, 3.333333334, 1e-12, "one token has no tpot");
    cr_expect_float_eq(s.itl_s.mean, 10.000000001 / 3, 1e-12);
    cr_expect_float_eq(s.itl_s.p50, 3, 1e-12);
    cr_expect_float_eq(s.normalized_latency_s.mean, (0.5 + 4.25) / 2, 1e-9);
    cr_expect_float_eq(s.mean_batch, 3, 1e-12);
    cr_expect_float_eq(s.kv_token_frac, 0.25, 1e-12);
    cr_expect_float_eq(s.kv_reserved_frac, 0.1875, 1e-12);
    cr_expect_float_eq(s.kv_internal_frac, 0.0625, 1e-12);
    cr_expect_float_eq(s.kv_external_frac, 0.5, 1e-12);
    cr_expect_float_eq(s.goodput_rps, s.request_throughput_rps, 1e-12, "without an SLO");
    cr_expect_float_eq(s.attainment_frac, 2 / 3.0, 1e-12);
}

Test(recorder, a_step_weighs_as_much_as_it_lasts)
{
    struct ifl_summary s;
    struct ifl_recorder *recorder = ifl_recorder_create(&(struct ifl_recorder_options){0}, &error);
    cr_assert_not_null(recorder);
    const struct ifl_step_record few = {.duration_ns = 30, .decode_seqs = 1};
    const struct ifl_step_record many = {.start_ns = 30, .duration_ns = 10, .decode_seqs = 9};
    cr_assert_eq(ifl_record_step(recorder, &few, &error), IFL_OK);
    cr_assert_eq(ifl_record_step(recorder, &many, &error), IFL_OK);
    cr_assert_eq(ifl_recorder_finish(recorder, &s, &error), IFL_OK);
    cr_expect_float_eq(s.mean_batch, 3, 1e-12);
    cr_expect_float_eq(s.duration_s, 40e-9, 1e-18);
    cr_expect(isnan(s.kv_token_frac) && isnan(s.attainment_frac) && isnan(s.ttft_s.mean));
    ifl_recorder_destroy(recorder);
}

static void record_due(struct ifl_recorder *recorder, struct ifl_request_record record,
                       int64_t ttft_slo_ns, int64_t tpot_slo_ns)
{
    record.ttft_slo_ns = ttft_slo_ns;
    record.tpot_slo_ns = tpot_slo_ns;
    cr_assert_eq(ifl_record_request(recorder, &record, &error), IFL_OK);
}

static uint64_t n_meeting(int64_t ttft_slo_ns, int64_t tpot_slo_ns)
{
    struct ifl_summary s;
    struct ifl_recorder *recorder =
        ifl_recorder_create(&(struct ifl_recorder_options){.n_requests = 3}, &error);
    cr_assert_not_null(recorder);
    record_due(recorder, one_token, ttft_slo_ns, tpot_slo_ns);
    record_due(recorder, stalled, ttft_slo_ns, tpot_slo_ns);
    record_due(recorder, rejected, ttft_slo_ns, tpot_slo_ns);
    cr_assert_eq(ifl_recorder_finish(recorder, &s, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    return (uint64_t)llround(s.attainment_frac * 3);
}

/* one_token: ttft 0.5 s, no tpot. stalled: ttft 7 s, tpot 3.333333334 s. */
Test(recorder, goodput_counts_requests_that_meet_every_slo)
{
    cr_expect_eq(n_meeting(7 * S, IFL_NEVER), 2);
    cr_expect_eq(n_meeting(7 * S - 1, IFL_NEVER), 1);
    cr_expect_eq(n_meeting(S / 2 - 1, IFL_NEVER), 0);
    cr_expect_eq(n_meeting(IFL_NEVER, 3333333334), 2);
    cr_expect_eq(n_meeting(IFL_NEVER, 3333333333), 1, "one token meets any tpot");
    cr_expect_eq(n_meeting(7 * S, 3 * S), 1);
}

Test(recorder, the_parts_of_a_life_sum_to_e2e)
{
    const struct rare rare = {.stalled_ns = 33, .stalled_prefill_ns = 13};
    struct life life = {.arrival_ns = 5,
                        .first_scheduled_ns = 12,
                        .first_token_ns = 40,
                        .end_ns = 101,
                        .rare = &rare,
                        .output_tokens = 6,
                        .status = IFL_FINISHED};
    cr_expect_eq(life_queue_ns(&life), 7);
    cr_expect_eq(life_prefill_ns(&life), 15);
    cr_expect_eq(life_decode_ns(&life), 41);
    cr_expect_eq(life_queue_ns(&life) + life_prefill_ns(&life) + life_decode_ns(&life) +
                     life_stalled_ns(&life),
                 life_e2e_ns(&life));
    cr_expect_eq(life_tpot_ns(&life), 12, "61 / 5 = 12.2");
    cr_expect_eq(life_normalized_ns(&life), 16, "96 / 6");
    life.end_ns = 103;
    cr_expect_eq(life_tpot_ns(&life), 13, "63 / 5 = 12.6");
}

Test(recorder, nothing_has_its_name_before_it_is_whole)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = {
        .requests_path = scratch_path(&scratch, "requests.csv"),
        .steps_path = scratch_path(&scratch, "steps.csv"),
        .quantiles_path = scratch_path(&scratch, "quantiles.csv"),
        .n_requests = 3,
    };
    struct ifl_recorder *recorder = record_all(&options);
    cr_expect_eq(access(scratch_path(&scratch, "requests.csv"), F_OK), -1);
    cr_expect_eq(access(scratch_path(&scratch, "steps.csv"), F_OK), -1);
    cr_expect_eq(scratch_count(&scratch), 3);
    ifl_recorder_destroy(recorder);
    cr_expect_eq(scratch_count(&scratch), 0, "an abandoned run leaves nothing");
    scratch_remove(&scratch);
}

/* The file grows on a device that is always full. */
Test(recorder, a_full_disk_is_named_and_leaves_nothing)
{
    if (access("/dev/full", W_OK))
        cr_skip_test("no /dev/full here");
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = {
        .requests_path = scratch_path(&scratch, "requests.csv"),
        .steps_path = scratch_path(&scratch, "steps.csv"),
        .n_requests = 3,
    };
    cr_assert_eq(symlink("/dev/full", scratch_path(&scratch, "steps.csv.tmp")), 0);
    struct ifl_summary summary;
    struct ifl_recorder *recorder = record_all(&options);
    cr_expect_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "steps.csv: cannot write: No space left on device"), "%s",
                       error.text);
    ifl_recorder_destroy(recorder);
    cr_expect_eq(scratch_count(&scratch), 0);
    scratch_remove(&scratch);
}

Test(recorder, a_folder_that_is_not_there_is_named)
{
    const struct ifl_recorder_options options = {.requests_path = "/nonexistent/requests.csv"};
    cr_expect_null(ifl_recorder_create(&options, &error));
    cr_expect_eq(error.code, IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "/nonexistent/requests.csv"), "%s", error.text);
}

Test(recorder, quantiles_are_a_table_of_their_own)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = {
        .point = 2, .quantiles_path = scratch_path(&scratch, "quantiles.csv"), .n_requests = 3};
    struct ifl_summary summary;
    struct ifl_recorder *recorder = record_all(&options);
    cr_assert_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    char *text = scratch_read(&scratch, "quantiles.csv");
    cr_assert_not_null(text);
    cr_expect_not_null(strstr(text, "\n2,0,0.500000000,3.333333334,3.000000000,0.500000000,"));
    cr_expect_not_null(strstr(text, "\n2,0.5,3.750000000,3.333333334,3.000000000,8.750000001,"));
    cr_expect_not_null(strstr(text, "\n2,1,7.000000000,3.333333334,4.000000001,17.000000001,"));
    free(text);
    scratch_remove(&scratch);
}

/* ---- stretches ---- */

enum { N_STRETCH = 5, SLACK_BLOCKS = 1 };
static const int64_t lasted_ns[N_STRETCH] = {30000001, 30000002, 30000002, 30000007, 30000011};
static const int32_t used_blocks[N_STRETCH] = {9, 9, 10, 10, 12};
static const int64_t internal_slots[N_STRETCH] = {10, 10, 11, 11, 26};

static struct ifl_step_record first_of_stretch(void)
{
    struct ifl_step_record first = step;
    first.prefill_tokens = first.prefill_seqs = 0;
    first.gap_ns = 7; /* the others follow at once */
    first.kv_token_slots = 90;
    return first;
}

static void record_stretch(struct ifl_recorder *recorder)
{
    static const struct ifl_pool_use use[] = {{2, 9, 10}, {4, 10, 11}, {N_STRETCH, 12, 26}};
    int64_t end_ns[N_STRETCH], now_ns = 3 * S;
    for (int i = 0; i < N_STRETCH; i++)
        end_ns[i] = now_ns += lasted_ns[i];
    const struct ifl_step_record first = first_of_stretch();
    const struct ifl_stretch_record stretch = {.first = &first,
                                               .n = N_STRETCH,
                                               .n_requests = 2,
                                               .block_tokens = 16,
                                               .slack_blocks = SLACK_BLOCKS,
                                               .duration_ns = lasted_ns,
                                               .end_ns = end_ns,
                                               .use = use,
                                               .n_uses = sizeof use / sizeof *use};
    cr_assert_eq(ifl_record_stretch(recorder, &stretch, &error), IFL_OK);
}

static void record_its_steps(struct ifl_recorder *recorder)
{
    struct ifl_step_record one = first_of_stretch();
    for (int i = 0; i < N_STRETCH; i++) {
        one.duration_ns = one.device_ns = lasted_ns[i];
        one.kv_used_blocks = used_blocks[i];
        one.kv_internal_slots = internal_slots[i];
        one.kv_reserved_slots =
            16 * (used_blocks[i] - SLACK_BLOCKS) - one.kv_token_slots - internal_slots[i];
        cr_assert_eq(ifl_record_gaps(recorder, lasted_ns[i], 2, &error), IFL_OK);
        cr_assert_eq(ifl_record_step(recorder, &one, &error), IFL_OK);
        one.step++;
        one.gap_ns = 0;
        one.start_ns += lasted_ns[i];
        one.context_tokens += 2;
        one.kv_token_slots += 2;
    }
}

static struct ifl_summary summary_of(void (*record)(struct ifl_recorder *),
                                     struct ifl_recorder_options options)
{
    struct ifl_summary summary;
    options.n_requests = 1;
    struct ifl_recorder *recorder = ifl_recorder_create(&options, &error);
    cr_assert_not_null(recorder, "%s", error.text);
    cr_assert_eq(ifl_record_request(recorder, &stalled, &error), IFL_OK);
    record(recorder);
    cr_assert_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    return summary;
}

static void expect_same_summaries(const struct ifl_summary *a, const struct ifl_summary *b)
{
    cr_expect_eq(a->n_steps, b->n_steps);
    cr_expect_eq(a->duration_s, b->duration_s);
    cr_expect_eq(a->mean_batch, b->mean_batch);
    cr_expect_eq(a->itl_s.mean, b->itl_s.mean);
    cr_expect_eq(a->itl_s.p90, b->itl_s.p90);
    cr_expect_eq(a->kv_token_frac, b->kv_token_frac);
    cr_expect_eq(a->kv_reserved_frac, b->kv_reserved_frac);
    cr_expect_eq(a->kv_internal_frac, b->kv_internal_frac);
    cr_expect_eq(a->kv_shared_frac, b->kv_shared_frac);
}

Test(recorder, a_stretch_is_its_steps)
{
    const struct scratch scratch = scratch_make();
    const char *const paths[] = {NULL, scratch_path(&scratch, "stretch.csv")};
    for (int shown = 0; shown < 2; shown++) {
        const struct ifl_summary at_once =
            summary_of(record_stretch, (struct ifl_recorder_options){.steps_path = paths[shown]});
        const struct ifl_summary one_by_one = summary_of(
            record_its_steps,
            (struct ifl_recorder_options){.steps_path = scratch_path(&scratch, "steps.csv")});
        cr_expect_eq(at_once.n_steps, N_STRETCH);
        expect_same_summaries(&at_once, &one_by_one);
    }
    char *const steps = scratch_read(&scratch, "steps.csv");
    scratch_expect(&scratch, "stretch.csv", steps);
    free(steps);
    scratch_remove(&scratch);
}

/* ---- ratios ---- */

/* Spans around each change of the quotient to the next integer, below 2^53 and above. */
Test(life, ratios_are_those_of_integers)
{
    for (uint64_t i = 0; i < 200000; i++) {
        const int64_t parts = 1 + (int64_t)(ifl_mix(i) % 200000);
        const int64_t most = (INT64_MAX / 2) >> i % 24;
        const int64_t whole = 1 + (int64_t)(ifl_mix(~i) % (uint64_t)(most / parts));
        for (int64_t off = -1; off <= 1; off++) {
            const int64_t rounded_up = whole * parts + off;
            cr_assert_eq(life_ratio_ns(rounded_up - parts / 2, parts), rounded_up / parts,
                         "%lld over %lld", (long long)rounded_up, (long long)parts);
        }
    }
}
