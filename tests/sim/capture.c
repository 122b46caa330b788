#include "capture.h"

#include <stdlib.h>

struct capture *capture_target;

void capture_free(struct capture *capture)
{
    free(capture->requests);
    free(capture->steps);
    *capture = (struct capture){0};
}

struct ifl_recorder *ifl_recorder_create(const struct ifl_recorder_options *options,
                                         struct ifl_error *error)
{
    (void)options;
    (void)error;
    return (struct ifl_recorder *)(void *)capture_target;
}

void ifl_recorder_destroy(struct ifl_recorder *recorder)
{
    (void)recorder;
}

static void *room(struct capture *c, void *array, size_t n, size_t *cap, size_t element_bytes)
{
    if (n < *cap)
        return array;
    *cap = *cap ? 2 * *cap : 1024;
    c->n_growths++;
    return realloc(array, *cap * element_bytes);
}

int ifl_record_request(struct ifl_recorder *recorder, const struct ifl_request_record *record,
                       struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    c->requests = room(c, c->requests, c->n_requests, &c->cap_requests, sizeof *c->requests);
    c->requests[c->n_requests++] = *record;
    return 0;
}

int ifl_record_gaps(struct ifl_recorder *recorder, int64_t gap_ns, int64_t count,
                    struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    c->n_gaps += count;
    c->gap_sum_ns += gap_ns * count;
    return 0;
}

int ifl_record_difference(struct ifl_recorder *recorder, const struct ifl_difference_record *record,
                          struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    ifl_require(c->n_differences < sizeof c->differences / sizeof *c->differences);
    c->differences[c->n_differences++] = *record;
    return 0;
}

int ifl_record_move(struct ifl_recorder *recorder, const struct ifl_move_record *record,
                    struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    ifl_require(record->sent_ns <= record->start_ns && record->start_ns <= record->end_ns);
    ifl_require(record->hidden_ns >= 0 && record->hidden_ns <= record->moving_ns);
    c->n_moves++;
    c->n_between_tiers += record->from < 0 && record->to < 0;
    c->hidden_ns += record->hidden_ns;
    return 0;
}

int ifl_record_step(struct ifl_recorder *recorder, const struct ifl_step_record *record,
                    struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    if (!c->keep_steps)
        return 0;
    c->steps = room(c, c->steps, c->n_steps, &c->cap_steps, sizeof *c->steps);
    c->steps[c->n_steps++] = *record;
    return 0;
}

int ifl_record_stage(struct ifl_recorder *recorder, const struct ifl_stage_record *record,
                     struct ifl_error *error)
{
    struct capture *c = (struct capture *)(void *)recorder;
    (void)error;
    c->stage_ns += record->end_ns - record->start_ns;
    return 0;
}

int ifl_record_stretch(struct ifl_recorder *recorder, const struct ifl_stretch_record *of,
                       struct ifl_error *error)
{
    struct ifl_step_record step;
    size_t i = 0;
    for (const struct ifl_pool_use *use = of->use; use < of->use + of->n_uses; use++)
        for (; i < use->until; i++) {
            ifl_stretch_step(of, use, i, &step);
            ifl_record_gaps(recorder, step.duration_ns, of->n_requests, error);
            ifl_record_step(recorder, &step, error);
        }
    return 0;
}

int ifl_record_work(struct ifl_recorder *recorder, const struct ifl_work_record *record,
                    struct ifl_error *error)
{
    (void)recorder;
    (void)record;
    (void)error;
    return 0;
}

int ifl_record_stall(struct ifl_recorder *recorder, const struct ifl_stall_record *record,
                     struct ifl_error *error)
{
    (void)recorder;
    (void)record;
    (void)error;
    return 0;
}

int ifl_recorder_finish(struct ifl_recorder *recorder, struct ifl_summary *summary,
                        struct ifl_error *error)
{
    (void)recorder;
    (void)error;
    *summary = (struct ifl_summary){0};
    return 0;
}

int ifl_recorder_flush(struct ifl_recorder *recorder, struct ifl_error *error)
{
    (void)recorder;
    (void)error;
    return 0;
}
