/* timeline.json, read back with a JSON library. */
#include "scratch.h"

#include <jansson.h>

#include "inflight/report.h"
#include "timeline_events.h"

static struct ifl_error error;

#define S 1000000000LL

/* Preempted for one second before its first token. */
static const struct ifl_request_record finished = {
    .request_id = 7,
    .arrival_ns = 1 * S + 1,
    .first_scheduled_ns = 3 * S + 20,
    .first_token_ns = 8 * S + 300,
    .finish_ns = 1234567 * S + 891234567,
    .max_itl_ns = 4 * S,
    .stalled_ns = 1 * S + 5,
    .stalled_prefill_ns = 1 * S + 5,
    .ttft_slo_ns = IFL_NEVER,
    .tpot_slo_ns = IFL_NEVER,
    .prompt_tokens = 100,
    .output_tokens = 4,
    .cached_tokens = 16,
    .preemptions = 2,
    .swap_outs = 1,
    .status = IFL_FINISHED,
};

/* Arrives, is scheduled and gets its only token within a nanosecond. */
static const struct ifl_request_record brief = {
    .request_id = 9,
    .arrival_ns = 999,
    .first_scheduled_ns = 999,
    .first_token_ns = 1000,
    .finish_ns = 1000,
    .prompt_tokens = 5,
    .output_tokens = 1,
    .status = IFL_FINISHED,
};

static const struct ifl_request_record rejected = {
    .request_id = UINT64_MAX,
    .arrival_ns = 5 * S,
    .first_scheduled_ns = IFL_NEVER,
    .first_token_ns = IFL_NEVER,
    .finish_ns = IFL_NEVER,
    .prompt_tokens = 99999,
    .status = IFL_REJECTED,
};

static const struct ifl_request_record failed = {
    .request_id = 1,
    .arrival_ns = 2 * S,
    .first_scheduled_ns = 4 * S,
    .first_token_ns = 6 * S,
    .finish_ns = IFL_NEVER,
    .prompt_tokens = 10,
    .output_tokens = 3,
    .preemptions = 1,
    .status = IFL_FAILED,
};

static const struct ifl_step_record steps[] = {
    {.step = 0,
     .start_ns = 3 * S,
     .duration_ns = 1,
     .prefill_tokens = 100,
     .prefill_seqs = 1,
     .running = 1,
     .waiting = 4,
     .kv_used_blocks = 7,
     .kv_total_blocks = 10},
    {.step = 1,
     .start_ns = 3 * S + 1,
     .duration_ns = S / 4,
     .prefill_tokens = 33,
     .decode_tokens = 2,
     .prefill_seqs = 3,
     .decode_seqs = 2,
     .context_tokens = 5000000000,
     .running = 5,
     .waiting = 2,
     .swapped = 1,
     .preempted = 6,
     .blocks_out = 8,
     .blocks_in = 9,
     .kv_used_blocks = 10,
     .kv_total_blocks = 10},
    {.step = 2, .start_ns = 86400 * S + 999, .duration_ns = 1001, .decode_seqs = 1},
    {.step = 3, .start_ns = 86401 * S, .duration_ns = 5, .blocks_in = 2},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

/* ---- writing ---- */

static struct ifl_recorder_options options_for(const struct scratch *scratch, int32_t point)
{
    char name[32];
    snprintf(name, sizeof name, "part-%d", point);
    return (struct ifl_recorder_options){.point = point,
                                         .timeline_path = scratch_path(scratch, name),
                                         .timeline_events = 1000,
                                         .n_requests = 4};
}

/* Writes records in the order of their ends: 16 events of steps and 8 + 8 + 2 + 6 of requests. */
static int write_part(const struct ifl_recorder_options *options)
{
    struct ifl_summary summary;
    struct ifl_recorder *recorder = ifl_recorder_create(options, &error);
    cr_assert_not_null(recorder, "%s", error.text);
    int code = ifl_record_request(recorder, &brief, &error);
    for (size_t i = 0; i < N_STEPS && !code; i++)
        code = ifl_record_step(recorder, &steps[i], &error);
    if (!code)
        code = ifl_record_request(recorder, &rejected, &error);
    if (!code)
        code = ifl_record_request(recorder, &failed, &error);
    if (!code)
        code = ifl_record_request(recorder, &finished, &error);
    if (!code)
        code = ifl_recorder_finish(recorder, &summary, &error);
    ifl_recorder_destroy(recorder);
    return code;
}

/* One point, joined and parsed. */
static json_t *fly(const struct scratch *scratch, uint64_t max_events, const char *label)
{
    struct ifl_recorder_options options = options_for(scratch, 0);
    options.timeline_events = max_events;
    options.label = label;
    cr_assert_eq(write_part(&options), IFL_OK, "%s", error.text);
    cr_assert_eq(scratch_join(scratch, "timeline.json", true, 1, &options.timeline_path, &error),
                 IFL_OK, "%s", error.text);
    cr_expect_eq(scratch_count(scratch), 2, "the part stays");
    return parse(scratch);
}

/* ---- tests ---- */

Test(timeline, a_slice_and_three_counters_a_step)
{
    static const char *const names[N_STEPS] = {"prefill", "mixed", "decode", "copies"};
    const struct scratch scratch = scratch_make();
    json_t *events = fly(&scratch, 1000, NULL);
    cr_assert_eq(count_phase(events, 'X'), N_STEPS);
    cr_assert_eq(count_phase(events, 'C'), (size_t)3 * N_STEPS);
    for (size_t i = 0; i < N_STEPS; i++) {
        const struct ifl_step_record *step = &steps[i];
        const json_t *slice = find(events, 'X', NULL, i), *args = json_object_get(slice, "args");
        cr_expect_str_eq(text_of(slice, "name"), names[i]);
        cr_expect_eq(number_of(slice, "tid"), 0);
        cr_expect_eq(ns_of(slice, "ts"), step->start_ns);
        cr_expect_eq(ns_of(slice, "dur"), step->duration_ns);
        cr_expect_eq(number_of(args, "step"), (long long)step->step);
        cr_expect_eq(number_of(args, "prefill_tokens"), step->prefill_tokens);
        cr_expect_eq(number_of(args, "decode_tokens"), step->decode_tokens);
        cr_expect_eq(number_of(args, "prefill_seqs"), step->prefill_seqs);
        cr_expect_eq(number_of(args, "decode_seqs"), step->decode_seqs);
        cr_expect_eq(number_of(args, "context_tokens"), step->context_tokens);
        cr_expect_eq(number_of(args, "preempted"), step->preempted);
        cr_expect_eq(number_of(args, "blocks_out"), step->blocks_out);
        cr_expect_eq(number_of(args, "blocks_in"), step->blocks_in);
        cr_expect_eq(ns_of(find(events, 'C', "batch", i), "ts"), step->start_ns);
        cr_expect_eq(ns_of(find(events, 'C', "queue", i), "ts"), step->start_ns);
        cr_expect_eq(ns_of(find(events, 'C', "kv_blocks", i), "ts"), step->start_ns);
        const json_t *batch = args_of(events, 'C', "batch", i);
        cr_expect_eq(number_of(batch, "prefill_seqs"), step->prefill_seqs);
        cr_expect_eq(number_of(batch, "decode_seqs"), step->decode_seqs);
        const json_t *queue = args_of(events, 'C', "queue", i);
        cr_expect_eq(number_of(queue, "waiting"), step->waiting);
        cr_expect_eq(number_of(queue, "swapped"), step->swapped);
        const json_t *blocks = args_of(events, 'C', "kv_blocks", i);
        cr_expect_eq(number_of(blocks, "used"), step->kv_used_blocks);
        cr_expect_eq(number_of(blocks, "total"), step->kv_total_blocks);
    }
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, lifelines_nest)
{
    const struct scratch scratch = scratch_make();
    json_t *events = fly(&scratch, 1000, NULL);
    expect_lifeline(events, "7",
                    "queued[1000000001,3000000020] prefill[3000000020,8000000300] "
                    "decode[8000000300,1234567891234567] request[1000000001,1234567891234567] ");
    expect_lifeline(events, "9",
                    "queued[999,999] prefill[999,1000] decode[1000,1000] "
                    "request[999,1000] ");
    expect_lifeline(events, "18446744073709551615", "request[5000000000,5000000000] ");
    expect_lifeline(events, "1",
                    "queued[2000000000,4000000000] prefill[4000000000,6000000000] "
                    "request[2000000000,6000000000] ");
    cr_expect_eq(count_phase(events, 'b'), 4 + 4 + 1 + 3, "and no other");
    cr_expect_eq(count_phase(events, 'e'), 4 + 4 + 1 + 3);
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, a_request_says_what_became_of_it)
{
    const struct scratch scratch = scratch_make();
    json_t *events = fly(&scratch, 1000, NULL);
    const json_t *args = args_of(events, 'b', "request", 3);
    cr_expect_str_eq(text_of(args, "request_id"), "7");
    cr_expect_str_eq(text_of(args, "status"), "finished");
    cr_expect_eq(number_of(args, "prompt_tokens"), 100);
    cr_expect_eq(number_of(args, "output_tokens"), 4);
    cr_expect_eq(number_of(args, "cached_tokens"), 16);
    cr_expect_eq(number_of(args, "preemptions"), 2);
    cr_expect_eq(number_of(args, "swap_outs"), 1);
    cr_expect_eq(json_real_value(json_object_get(args, "stalled_s")), 1.000000005);
    cr_expect_str_eq(text_of(args_of(events, 'b', "request", 1), "status"), "rejected");
    cr_expect_str_eq(text_of(args_of(events, 'b', "request", 2), "status"), "failed");
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, times_are_exact_as_text)
{
    const struct scratch scratch = scratch_make();
    json_decref(fly(&scratch, 1000, NULL));
    char *text = scratch_read(&scratch, "timeline.json");
    cr_expect_not_null(strstr(text, "\"ts\":3000000.000,\"dur\":0.001,"));
    cr_expect_not_null(strstr(text, "\"ts\":3000000.001,\"dur\":250000.000,"));
    cr_expect_not_null(strstr(text, "\"ts\":86400000000.999,\"dur\":1.001,"));
    cr_expect_not_null(strstr(text, "\"ts\":1234567891234.567}"));
    cr_expect_not_null(strstr(text, "\"stalled_s\":1.000000005}"));
    free(text);
    scratch_remove(&scratch);
}

Test(timeline, a_process_and_its_thread_have_names)
{
    const struct scratch scratch = scratch_make();
    json_t *events = fly(&scratch, 1000, "trace=\"a\\b\" cv=½");
    cr_expect_str_eq(text_of(args_of(events, 'M', "process_name", 0), "name"),
                     "point 0: trace=\"a\\b\" cv=½");
    cr_expect_str_eq(text_of(args_of(events, 'M', "thread_name", 0), "name"), "replica 0");
    json_decref(events);
    events = fly(&scratch, 1000, NULL);
    cr_expect_str_eq(text_of(args_of(events, 'M', "process_name", 0), "name"), "point 0");
    json_decref(events);
    scratch_remove(&scratch);
}

static void expect_counts(const json_t *events, bool truncated, long long n_steps,
                          long long n_requests)
{
    const json_t *args = args_of(events, 'M', "process_name", 0);
    cr_expect_eq(json_is_true(json_object_get(args, "truncated")), truncated);
    cr_expect_eq(strstr(text_of(args, "name"), "(truncated)") != NULL, truncated);
    cr_expect_eq(number_of(args, "steps"), N_STEPS);
    cr_expect_eq(number_of(args, "requests"), 4);
    cr_expect_eq(number_of(args, "steps_shown"), n_steps);
    cr_expect_eq(number_of(args, "requests_shown"), n_requests);
    cr_expect_eq((long long)count_phase(events, 'X'), n_steps);
    cr_expect_eq((long long)count_phase(events, 'C'), 3 * n_steps);
    cr_expect_eq(count_phase(events, 'b'), count_phase(events, 'e'));
}

/* Events: 8 of the request that ends first, 4 of each step, then 2, 6 and 8 of the other three. */
Test(timeline, ends_with_what_does_not_fit)
{
    static const struct {
        uint64_t max_events;
        bool truncated;
        size_t n_events;
        long long n_steps, n_requests;
    } of[] = {
        {0, true, 0, 0, 0},    {7, true, 0, 0, 0},    {8, true, 8, 0, 1},
        {11, true, 8, 0, 1},   {12, true, 12, 1, 1},  {24, true, 24, 4, 1},
        {26, true, 26, 4, 2},  {31, true, 26, 4, 2},  {39, true, 32, 4, 3},
        {40, false, 40, 4, 4}, {41, false, 40, 4, 4}, {UINT64_MAX, false, 40, 4, 4},
    };
    const struct scratch scratch = scratch_make();
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        json_t *events = fly(&scratch, of[i].max_events, "x");
        expect_counts(events, of[i].truncated, of[i].n_steps, of[i].n_requests);
        cr_expect_eq(json_array_size(events), of[i].n_events + 2, "two names beside them");
        json_decref(events);
    }
    scratch_remove(&scratch);
}

/* With room for 10 the first step does not fit; the request of two events behind it would. */
Test(timeline, nothing_follows_the_first_that_does_not_fit)
{
    const struct scratch scratch = scratch_make();
    json_t *events = fly(&scratch, 10, NULL);
    expect_counts(events, true, 0, 1);
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, points_are_processes_in_order)
{
    const struct scratch scratch = scratch_make();
    const char *paths[3];
    for (int32_t point = 2; point >= 0; point--) {
        const struct ifl_recorder_options options = options_for(&scratch, point);
        paths[point] = options.timeline_path;
        cr_assert_eq(write_part(&options), IFL_OK, "%s", error.text);
    }
    cr_assert_eq(scratch_join(&scratch, "timeline.json", true, 3, paths, &error), IFL_OK, "%s",
                 error.text);
    cr_expect_eq(scratch_count(&scratch), 4, "the parts stay");
    json_t *events = parse(&scratch), *event;
    size_t i;
    cr_assert_eq(json_array_size(events), (size_t)3 * 42);
    json_array_foreach(events, i, event) cr_expect_eq(number_of(event, "pid"), (long long)i / 42);
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, nothing_has_its_name_before_it_is_whole)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = options_for(&scratch, 0);
    struct ifl_recorder *recorder = ifl_recorder_create(&options, &error);
    cr_assert_not_null(recorder);
    cr_expect_eq(access(options.timeline_path, F_OK), -1);
    cr_expect_eq(scratch_count(&scratch), 1);
    ifl_recorder_destroy(recorder);
    cr_expect_eq(scratch_count(&scratch), 0, "an abandoned run leaves nothing");
    scratch_remove(&scratch);
}

/* The file of a point, then that of the run, is written to a device that is always full. */
Test(timeline, a_full_disk_is_named_and_leaves_nothing)
{
    if (access("/dev/full", W_OK))
        cr_skip_test("no /dev/full here");
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = options_for(&scratch, 0);
    cr_assert_eq(symlink("/dev/full", scratch_path(&scratch, "part-0.tmp")), 0);
    cr_expect_eq(write_part(&options), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "part-0: cannot write: No space left on device"), "%s",
                       error.text);
    cr_expect_eq(scratch_count(&scratch), 0);

    cr_assert_eq(write_part(&options), IFL_OK);
    cr_assert_eq(symlink("/dev/full", scratch_path(&scratch, "timeline.json.tmp")), 0);
    cr_expect_eq(scratch_join(&scratch, "timeline.json", true, 1, &options.timeline_path, &error),
                 IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "timeline.json: cannot write: No space left on device"),
                       "%s", error.text);
    cr_expect_eq(scratch_count(&scratch), 1, "the part alone is left");
    scratch_remove(&scratch);
}

/* ---- slices inside a request ---- */

/* Two chunks and a stall before the first token; after it a swap, and a recompute of 104 tokens. */
static int write_story(const struct ifl_recorder_options *options)
{
    const struct ifl_work_record work[] = {
        {.request_id = 7,
         .step = 0,
         .start_ns = 3 * S + 20,
         .duration_ns = S,
         .prefill_tokens = 60},
        {.request_id = 9, .step = 0, .start_ns = 999, .duration_ns = 1, .prefill_tokens = 5},
        {.request_id = 7, .step = 1, .start_ns = 6 * S, .duration_ns = S, .prefill_tokens = 40},
        {.request_id = 7, .step = 2, .start_ns = 9 * S, .duration_ns = S, .decode_tokens = 1},
        {.request_id = 7, .step = 4, .start_ns = 20 * S, .duration_ns = S, .prefill_tokens = 104},
        {.request_id = 1, .step = 5, .start_ns = 30 * S, .duration_ns = S, .prefill_tokens = 9},
    };
    const struct ifl_stall_record preempted = {7, 4 * S + 20, 6 * S, false},
                                  swapped = {7, 11 * S, 20 * S, true};
    struct ifl_summary summary;
    struct ifl_recorder *recorder = ifl_recorder_create(options, &error);
    cr_assert_not_null(recorder, "%s", error.text);
    int code = ifl_record_stall(recorder, &swapped, &error);
    for (size_t i = 0; i < sizeof work / sizeof *work && !code; i++)
        code = ifl_record_work(recorder, &work[i], &error);
    if (!code)
        code = ifl_record_stall(recorder, &preempted, &error);
    for (size_t i = 0; i < N_STEPS && !code; i++)
        code = ifl_record_step(recorder, &steps[i], &error);
    const struct ifl_request_record *const requests[] = {&failed, &finished, &brief};
    for (size_t i = 0; i < 3 && !code; i++)
        code = ifl_record_request(recorder, requests[i], &error);
    if (!code)
        code = ifl_recorder_finish(recorder, &summary, &error);
    ifl_recorder_destroy(recorder);
    return code;
}

static json_t *tell(const struct scratch *scratch, const struct ifl_recorder_options *options)
{
    cr_assert_eq(write_story(options), IFL_OK, "%s", error.text);
    cr_assert_eq(scratch_join(scratch, "timeline.json", true, 1, &options->timeline_path, &error),
                 IFL_OK);
    return parse(scratch);
}

Test(timeline, chunks_and_stalls_lie_in_the_phases)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = options_for(&scratch, 0);
    json_t *events = tell(&scratch, &options);
    expect_lifeline(events, "7",
                    "queued[1000000001,3000000020] chunk[3000000020,4000000020] "
                    "preempted[4000000020,6000000000] chunk[6000000000,7000000000] "
                    "prefill[3000000020,8000000300] swapped[11000000000,20000000000] "
                    "recompute[20000000000,21000000000] decode[8000000300,1234567891234567] "
                    "request[1000000001,1234567891234567] ");
    expect_lifeline(events, "9",
                    "queued[999,999] chunk[999,1000] prefill[999,1000] decode[1000,1000] "
                    "request[999,1000] ");
    /* Failed after a recompute: the lifeline ends with the last known time. */
    expect_lifeline(events, "1",
                    "queued[2000000000,4000000000] prefill[4000000000,6000000000] "
                    "recompute[30000000000,31000000000] request[2000000000,31000000000] ");
    cr_expect_eq(number_of(args_of(events, 'b', "chunk", 0), "tokens"), 60);
    cr_expect_eq(number_of(args_of(events, 'b', "recompute", 1), "tokens"), 104);
    json_decref(events);
    scratch_remove(&scratch);
}

/* The window from 10 s to 25 s overlaps no step and one request; shown are that request's slices
 * that overlap the window. */
Test(timeline, a_window_shows_what_overlaps_it)
{
    const struct scratch scratch = scratch_make();
    struct ifl_recorder_options options = options_for(&scratch, 0);
    options.timeline_from_ns = 10 * S + 1;
    options.timeline_to_ns = 25 * S;
    json_t *events = tell(&scratch, &options);
    expect_lifeline(events, "7",
                    "queued[1000000001,3000000020] prefill[3000000020,8000000300] "
                    "swapped[11000000000,20000000000] recompute[20000000000,21000000000] "
                    "decode[8000000300,1234567891234567] request[1000000001,1234567891234567] ");
    expect_lifeline(events, "9", "");
    expect_lifeline(events, "1", "");
    cr_expect_eq(count_phase(events, 'X'), 0);
    cr_expect_eq(number_of(args_of(events, 'M', "process_name", 0), "steps"), N_STEPS);
    cr_expect(!json_is_true(json_object_get(args_of(events, 'M', "process_name", 0), "truncated")));
    json_decref(events);
    scratch_remove(&scratch);
}

/* One in three is shown: steps 0 and 3, request 9. */
Test(timeline, a_sample_shows_one_of_so_many)
{
    const struct scratch scratch = scratch_make();
    struct ifl_recorder_options options = options_for(&scratch, 0);
    options.timeline_every = 3;
    json_t *events = tell(&scratch, &options);
    cr_expect_eq(count_phase(events, 'X'), 2);
    cr_expect_eq(number_of(args_of(events, 'X', NULL, 1), "step"), 3);
    expect_lifeline(events, "7", "");
    expect_lifeline(events, "1", "");
    cr_expect_eq(count_phase(events, 'b'), 5, "request 9: four, and a chunk");
    cr_expect_eq(number_of(args_of(events, 'M', "process_name", 0), "every"), 3);
    json_decref(events);
    scratch_remove(&scratch);
}

Test(timeline, a_replica_has_a_track_and_counters_of_its_own)
{
    const struct scratch scratch = scratch_make();
    const struct ifl_recorder_options options = options_for(&scratch, 0);
    const struct ifl_step_record second = {.replica = 2, .start_ns = S, .duration_ns = S};
    struct ifl_summary summary;
    struct ifl_recorder *recorder = ifl_recorder_create(&options, &error);
    cr_assert_not_null(recorder);
    cr_assert_eq(ifl_record_step(recorder, &second, &error), IFL_OK);
    cr_assert_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    cr_assert_eq(scratch_join(&scratch, "timeline.json", true, 1, &options.timeline_path, &error),
                 IFL_OK);
    json_t *events = parse(&scratch);
    cr_expect_str_eq(text_of(args_of(events, 'M', "thread_name", 2), "name"), "replica 2");
    cr_expect_eq(number_of(find(events, 'M', "thread_name", 2), "tid"), 2);
    cr_expect_eq(number_of(find(events, 'X', NULL, 0), "tid"), 2);
    find(events, 'C', "kv_blocks (replica 2)", 0);
    json_decref(events);
    scratch_remove(&scratch);
}
