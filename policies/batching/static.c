/* Static batching: a batch is formed and runs until its last member has finished; only then the
 * next is formed. Whole prompts share the first step. The admit module reserves room for the
 * longest request, so that no request is ever preempted.
 *
 * In the FasterTransformer scheduler of the Sarathi-Serve repository, members that finish early
 * leave the batch and cost nothing. FasterTransformer itself pads: prompts are padded to the
 * longest of the batch, and a finished member keeps its row, which is computed in vain, until the
 * last member has finished. Before a batch is formed, Triton's dynamic batcher may wait for a
 * preferred size, but not longer than a delay (preferred_batch_size, max_queue_delay_microseconds).
 */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct static_batching {
    int32_t max_seqs;
    bool padded;
    int32_t preferred_seqs; /* 0: max_seqs */
    int64_t queue_delay_ns;
};

struct finished { /* sequences of the batch that have finished */
    int32_t n;
    int64_t context; /* their tokens */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct static_batching, max_seqs), 128, 1, 1 << 20, NULL,
     "sequences", "largest batch"},
    {"padded", IFL_BOOL, offsetof(struct static_batching, padded), 0, 0, 1, NULL, "",
     "prompts cost as much as the longest one, finished requests as much as running ones"},
    {"preferred_seqs", IFL_INT, offsetof(struct static_batching, preferred_seqs), 0, 0, 1 << 20,
     NULL, "sequences", "a batch starts as soon as this many sequences wait; 0: max_seqs"},
    {"queue_delay_s", IFL_TIME, offsetof(struct static_batching, queue_delay_ns), 0, 0, 3600, NULL,
     "s", "longest wait of the oldest request for preferred_seqs; then all waiting requests start"},
};

static struct finished *finished_of(const void *self)
{
    return ifl_state(self);
}

/* Requests of a list start, in rank order, until one must wait. */
static void start_from(const struct static_batching *p, struct ifl_step *step, enum ifl_list list,
                       int32_t max_seqs)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_running_seqs < max_seqs && (r = ifl_next(step, list, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
    }
}

static void form_batch(const struct static_batching *p, const struct ifl_view *view,
                       struct ifl_step *step)
{
    const int32_t preferred = p->preferred_seqs ? p->preferred_seqs : p->max_seqs;
    const bool reached = step->n_waiting >= preferred;
    if (p->queue_delay_ns > 0 && !reached) {
        const int64_t send_ns = ifl_oldest_waiting_ns(step) + p->queue_delay_ns;
        if (view->now_ns < send_ns) {
            ifl_wake(step, send_ns);
            return;
        }
    }
    start_from(p, step, IFL_IN_WAITING, reached ? ifl_min(preferred, p->max_seqs) : p->max_seqs);
    if (p->padded)
        ifl_pad_prompts(step);
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct static_batching *p = self;
    const struct finished *finished = finished_of(self);
    if (view->n_running == 0 && view->n_swapped == 0) {
        if (view->n_waiting > 0)
            form_batch(p, view, step);
        return;
    }
    if (p->padded)
        ifl_pad(step, (struct ifl_padding){.n_decode_seqs = finished->n,
                                           .decode_context = finished->context});
    if (!ifl_schedule_ready(step, 0)) /* only where the admit module reserved too little */
        ifl_decode_one_by_one(step, 0);
    if (step->n_preempted > 0)
        return;
    start_from(p, step, IFL_IN_SWAPPED, p->max_seqs);
    if (step->n_swapped_in == 0 && p->padded) /* a finished member adds to the padding */
        ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
    else if (step->n_swapped_in == 0)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)step;
    if (view->n_running == 0 && view->n_swapped == 0)
        *finished_of(self) = (struct finished){0};
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct finished *finished = finished_of(self);
    (void)view;
    if (r->started_ns == IFL_NEVER)
        return;
    finished->n += r->n_seqs;
    finished->context += (int64_t)ifl_n_tokens(r) * r->n_seqs;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_static = {
    .kind = IFL_BATCHING,
    .name = "static",
    .doc = "a batch runs until its last request has finished; none joins it (FasterTransformer)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct static_batching),
    .state_bytes = sizeof(struct finished),
    .on_step_start = on_step_start,
    .steady = ifl_always_steady,
    .on_leave = on_leave,
    .ops.batching = &ops,
};
