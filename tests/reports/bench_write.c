/* Rows of requests.csv and recorded steps, in processor time of one core: `meson test --benchmark`.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inflight/random.h"
#include "inflight/report.h"

enum { N_REQUESTS = 1000000, N_STEPS = 3000000 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In order of completion, which is nearly the order of arrival. */
static struct ifl_request_record request(uint64_t i)
{
    const uint64_t draw = ifl_draw(1, IFL_DRAW_PROMPT, i, 0);
    const int64_t finish_ns = (int64_t)(i * 2000000 + 60000000000);
    const int64_t arrival_ns = finish_ns - (int64_t)(draw % 20000000000) - 1000000000;
    return (struct ifl_request_record){.request_id = i,
                                       .arrival_ns = arrival_ns,
                                       .first_scheduled_ns = arrival_ns + 12345678,
                                       .first_token_ns = arrival_ns + 123456789,
                                       .finish_ns = finish_ns,
                                       .max_itl_ns = 87654321,
                                       .ttft_slo_ns = IFL_NEVER,
                                       .tpot_slo_ns = IFL_NEVER,
                                       .prompt_tokens = (int32_t)(draw % 4000) + 1,
                                       .output_tokens = (int32_t)(draw >> 32) % 500 + 2,
                                       .status = IFL_FINISHED};
}

static int record_steps(struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct ifl_step_record step = {.duration_ns = 20000000,
                                   .decode_seqs = 64,
                                   .kv_token_slots = 100000,
                                   .kv_reserved_slots = 10,
                                   .kv_internal_slots = 500,
                                   .kv_pool_slots = 120000};
    for (step.step = 0; step.step < N_STEPS; step.step++) {
        step.start_ns += step.duration_ns;
        if (ifl_record_step(recorder, &step, error))
            return error->code;
    }
    return IFL_OK;
}

static int record_gaps(struct ifl_recorder *recorder, struct ifl_error *error)
{
    for (uint64_t i = 0; i < N_STEPS; i++)
        if (ifl_record_gaps(recorder, 20000000 + (int64_t)(ifl_mix(i) >> 42), 64, error))
            return error->code;
    return IFL_OK;
}

static int measure(struct ifl_recorder *recorder, struct ifl_summary *summary,
                   struct ifl_error *error)
{
    const double start_s = now_s();
    if (record_steps(recorder, error))
        return error->code;
    const double stepped_s = now_s();
    if (record_gaps(recorder, error))
        return error->code;
    const double gapped_s = now_s();
    for (uint64_t i = 0; i < N_REQUESTS; i++) {
        const struct ifl_request_record record = request(i);
        if (ifl_record_request(recorder, &record, error))
            return error->code;
    }
    const double recorded_s = now_s();
    if (ifl_recorder_finish(recorder, summary, error))
        return error->code;
    const double end_s = now_s();
    printf("steps     %6.1f ns a step\n", (stepped_s - start_s) * 1e9 / N_STEPS);
    printf("gaps      %6.1f ns a step, distinct\n", (gapped_s - stepped_s) * 1e9 / N_STEPS);
    printf("requests  %6.1f ns a record\n", (recorded_s - gapped_s) * 1e9 / N_REQUESTS);
    printf("the rest  %6.3f s: sort, %d rows of requests.csv, summary\n", end_s - recorded_s,
           N_REQUESTS);
    printf("          %6.0f rows a second\n", N_REQUESTS / (end_s - recorded_s));
    return IFL_OK;
}

int main(void)
{
    char path[] = "/tmp/inflight-bench-XXXXXX";
    struct ifl_summary summary;
    struct ifl_error error;
    const int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    struct ifl_recorder *recorder = ifl_recorder_create(
        &(struct ifl_recorder_options){.requests_path = path, .n_requests = N_REQUESTS}, &error);
    const int code = recorder ? measure(recorder, &summary, &error) : error.code;
    ifl_recorder_destroy(recorder);
    unlink(path);
    if (code)
        fprintf(stderr, "%s\n", error.text);
    return code != 0;
}
