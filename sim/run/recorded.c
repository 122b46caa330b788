#include "run/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "replica/live_request.h"

struct lane {           /* of a replica */
    int32_t next, last; /* recorded steps: the next one, and the last that was passed */
    int64_t n_done;
};

/* A step as it is planned now, as a recording would say it. */
struct planned_step {
    uint32_t replica;
    int64_t number, earliest_ns;
    struct logged_sums sums;
    const struct step_part *parts;
    size_t n_parts;
    const struct ifl_step_totals *totals;
};

struct recorded {
    struct recorded_options of;
    struct step_log log;
    struct lane *lanes;      /* [log.n_replicas] */
    struct step_part *parts; /* of the step that is planned */
    size_t cap_parts;
    struct recorded_counts counts;
};

/* ---- is it the same step? ---- */

static bool same_sums(const struct logged_sums *a, const struct logged_sums *b)
{
    return a->prefill_tokens == b->prefill_tokens && a->prefill_seqs == b->prefill_seqs &&
           a->decode_seqs == b->decode_seqs && a->context_tokens == b->context_tokens;
}

static bool same_parts(const struct recorded *run, const struct logged_step *step,
                       const struct planned_step *planned)
{
    return step->n_parts == planned->n_parts &&
           (step->n_parts == 0 || memcmp(run->log.parts + step->first_part, planned->parts,
                                         step->n_parts * sizeof *planned->parts) == 0);
}

static bool same(const struct recorded *run, const struct logged_step *step,
                 const struct planned_step *planned)
{
    return (!run->log.has_sums || same_sums(&step->sums, &planned->sums)) &&
           (!run->log.has_parts || same_parts(run, step, planned));
}

/* Both lists are in order of request and context. */
static bool share_a_place(const struct recorded *run, const struct logged_step *step,
                          const struct planned_step *planned)
{
    const struct step_part *a = run->log.parts + step->first_part, *b = planned->parts;
    size_t i = 0, j = 0;
    while (i < step->n_parts && j < planned->n_parts) {
        if (a[i].request_id == b[j].request_id && a[i].n_context == b[j].n_context)
            return true;
        if (step_part_order(&a[i], &b[j]) < 0)
            i++;
        else
            j++;
    }
    return false;
}

static bool is_counterpart(const struct recorded *run, const struct logged_step *step,
                           const struct planned_step *planned)
{
    if (run->log.has_parts)
        return share_a_place(run, step, planned);
    return step->start_ns - planned->earliest_ns <= step->end_ns - step->start_ns;
}

/* ---- what differs ---- */

/* A sequence in one of the steps or in both. */
static int tell(const struct recorded *run, struct ifl_difference_record difference,
                const struct step_part *was, const struct step_part *is, struct ifl_error *error)
{
    difference.request_id = was ? was->request_id : is->request_id;
    difference.planned_tokens = is ? is->n_new : -1;
    difference.planned_context = is ? is->n_context : -1;
    difference.recorded_tokens = was ? was->n_new : -1;
    difference.recorded_context = was ? was->n_context : -1;
    if (was && is && was->n_new == is->n_new && was->n_context == is->n_context)
        return 0;
    return ifl_record_difference(run->of.recorder, &difference, error);
}

static int tell_parts(const struct recorded *run, const struct ifl_difference_record *difference,
                      const struct logged_step *step, const struct planned_step *planned,
                      struct ifl_error *error)
{
    const size_t n_was = step ? step->n_parts : 0, n_is = planned ? planned->n_parts : 0;
    size_t i = 0, j = 0;
    int rc = 0;
    while (rc == 0 && (i < n_was || j < n_is)) {
        const struct step_part *was = i < n_was ? &run->log.parts[step->first_part + i] : NULL;
        const struct step_part *is = j < n_is ? &planned->parts[j] : NULL;
        if (was && is && was->request_id < is->request_id)
            is = NULL;
        else if (was && is && was->request_id > is->request_id)
            was = NULL;
        i += was != NULL;
        j += is != NULL;
        rc = tell(run, *difference, was, is, error);
    }
    return rc;
}

static int tell_sums(const struct recorded *run, struct ifl_difference_record difference,
                     const struct logged_sums *was, const struct logged_sums *is,
                     struct ifl_error *error)
{
    difference.of_all = true;
    difference.planned_tokens = is ? is->prefill_tokens + is->decode_seqs : -1;
    difference.planned_context = is ? is->context_tokens : -1;
    difference.recorded_tokens = was ? was->prefill_tokens + was->decode_seqs : -1;
    difference.recorded_context = was ? was->context_tokens : -1;
    return ifl_record_difference(run->of.recorder, &difference, error);
}

/* `step` NULL: extra; `planned` NULL: unplanned. */
static int tell_difference(const struct recorded *run, uint32_t replica,
                           const struct logged_step *step, const struct planned_step *planned,
                           struct ifl_error *error)
{
    const struct ifl_difference_record difference = {
        .replica = (int32_t)replica,
        .step = planned ? planned->number : -1,
        .recorded_step = step ? step->number : -1,
        .start_ns = planned ? planned->earliest_ns : step->start_ns,
    };
    if (!run->of.recorder)
        return 0;
    return run->log.has_parts ? tell_parts(run, &difference, step, planned, error)
                              : tell_sums(run, difference, step ? &step->sums : NULL,
                                          planned ? &planned->sums : NULL, error);
}

/* ---- why a run ends ---- */

static int fail_at_part(const struct recorded *run, const struct logged_step *step,
                        const struct planned_step *planned, struct ifl_error *error)
{
    size_t i = 0;
    while (i < step->n_parts && i < planned->n_parts &&
           memcmp(&run->log.parts[step->first_part + i], &planned->parts[i],
                  sizeof *planned->parts) == 0)
        i++;
    char is[96] = "nothing", was[96] = "nothing";
    if (i < planned->n_parts)
        snprintf(is, sizeof is, "%d tokens of request %llu behind %d", planned->parts[i].n_new,
                 (unsigned long long)planned->parts[i].request_id, planned->parts[i].n_context);
    if (i < step->n_parts) {
        const struct step_part *part = &run->log.parts[step->first_part + i];
        snprintf(was, sizeof was, "%d tokens of request %llu behind %d", part->n_new,
                 (unsigned long long)part->request_id, part->n_context);
    }
    return ifl_fail_at(error, run->log.path, 0, 0,
                       "step %lld of replica %u has, at place %zu of %zu, %s; recorded, of %zu: %s",
                       (long long)planned->number, planned->replica, i, planned->n_parts, is,
                       step->n_parts, was);
}

static int fail_otherwise(const struct recorded *run, const struct logged_step *step,
                          const struct planned_step *planned, struct ifl_error *error)
{
    const struct logged_sums *is = &planned->sums, *was = &step->sums;
    const long long n_done = run->lanes[planned->replica].n_done;
    if (same(run, step, planned))
        return ifl_fail_at(error, run->log.path, 0, 0,
                           "step %lld of replica %u begins at %.9f s, after the recorded one ended "
                           "at %.9f s: these are not the recording's arrivals",
                           n_done, planned->replica, ifl_s_from_ns(planned->earliest_ns),
                           ifl_s_from_ns(step->end_ns));
    if (!run->log.has_sums || same_sums(is, was))
        return fail_at_part(run, step, planned, error);
    return ifl_fail_at(
        error, run->log.path, 0, 0,
        "step %lld of replica %u has %d prompt tokens of %d sequences and decodes %d "
        "with %lld tokens of context; recorded: %d of %d, and %d with %lld",
        n_done, planned->replica, is->prefill_tokens, is->prefill_seqs, is->decode_seqs,
        (long long)is->context_tokens, was->prefill_tokens, was->prefill_seqs, was->decode_seqs,
        (long long)was->context_tokens);
}

static int fail_beyond(const struct recorded *run, const struct planned_step *planned,
                       struct ifl_error *error)
{
    const bool known = planned->replica < run->log.n_replicas;
    return ifl_fail_at(error, run->log.path, 0, 0,
                       "replica %u recorded %lld steps, and this run asks for one more",
                       planned->replica,
                       known ? (long long)run->lanes[planned->replica].n_done : 0LL);
}

/* ---- the planned step ---- */

static int list_parts(struct recorded *run, const struct ifl_step_desc *desc,
                      struct planned_step *planned, struct ifl_error *error)
{
    if (!run->log.has_parts)
        return 0;
    if (desc->n_work > run->cap_parts) {
        if (array_grow(&run->parts, 0, 2 * desc->n_work, sizeof *run->parts) < 0)
            return ifl_fail_nomem(error);
        run->cap_parts = 2 * desc->n_work;
    }
    for (size_t i = 0; i < desc->n_work; i++)
        run->parts[i] = (struct step_part){
            .request_id = ifl_trace_id(run->of.trace, live(desc->work[i].request)->row),
            .n_context = desc->work[i].n_context,
            .n_new = desc->work[i].n_new,
        };
    if (desc->n_work > 1)
        qsort(run->parts, desc->n_work, sizeof *run->parts, step_part_order);
    planned->parts = run->parts;
    planned->n_parts = desc->n_work;
    return 0;
}

static struct planned_step describe(const struct ifl_step_desc *desc, int64_t earliest_ns)
{
    const struct ifl_step_totals *totals = &desc->totals;
    return (struct planned_step){
        .replica = desc->replica,
        .number = (int64_t)desc->step,
        .earliest_ns = earliest_ns,
        .totals = totals,
        .sums = {totals->decode_context, totals->n_prefill_tokens, totals->n_prefill_seqs,
                 totals->n_decode_seqs},
    };
}

/* ---- replaying ---- */

static const struct logged_step *pass(struct recorded *run, struct lane *lane)
{
    const struct logged_step *step = &run->log.steps[lane->next];
    lane->last = lane->next;
    lane->next = step->next;
    lane->n_done++;
    return step;
}

/* As recorded; if that is over, as long as recorded. */
static int take(const struct logged_step *step, int64_t earliest_ns, int64_t *start_ns,
                int64_t *duration_ns)
{
    *start_ns = ifl_max(earliest_ns, step->start_ns);
    *duration_ns = step->end_ns > *start_ns ? step->end_ns - *start_ns
                                            : ifl_max(step->end_ns - step->start_ns, 1);
    return 0;
}

/* How many recorded steps lie before the equal of the planned one, or -1. */
static int find_equal(const struct recorded *run, const struct lane *lane,
                      const struct planned_step *planned)
{
    int32_t at = lane->next;
    for (int n = 0; n < RECORDED_LOOK_AHEAD && at != STEP_LOG_END; n++) {
        if (same(run, &run->log.steps[at], planned))
            return n;
        at = run->log.steps[at].next;
    }
    return -1;
}

static int skip(struct recorded *run, struct lane *lane, uint32_t replica, int n,
                struct ifl_error *error)
{
    int rc = 0;
    for (; rc == 0 && n > 0; n--) {
        run->counts.n_unplanned++;
        rc = tell_difference(run, replica, pass(run, lane), NULL, error);
    }
    return rc;
}

static int predict(const struct recorded *run, const struct planned_step *planned,
                   int64_t *start_ns, int64_t *duration_ns, struct ifl_error *error)
{
    *start_ns = planned->earliest_ns;
    *duration_ns = cost_step_ns(run->of.predictor, planned->totals);
    return *duration_ns < 0 ? cost_why_not(run->of.predictor, planned->totals, error) : 0;
}

/* No recorded step is its equal. */
static int take_otherwise(struct recorded *run, struct lane *lane,
                          const struct planned_step *planned, int64_t *start_ns,
                          int64_t *duration_ns, struct ifl_error *error)
{
    const struct logged_step *steps = run->log.steps;
    const struct logged_step *step = lane->next == STEP_LOG_END ? NULL : &steps[lane->next];
    const bool extra = !step || !is_counterpart(run, step, planned);
    const struct logged_step *length = step ? step : &steps[lane->last];
    run->counts.n_otherwise++;
    if (tell_difference(run, planned->replica, extra ? NULL : step, planned, error) < 0)
        return error->code;
    if (!extra)
        (void)pass(run, lane);
    if (run->of.otherwise == OTHERWISE_PREDICTED)
        return predict(run, planned, start_ns, duration_ns, error);
    *start_ns = planned->earliest_ns;
    *duration_ns = ifl_max(length->end_ns - length->start_ns, 1);
    return 0;
}

static int take_strictly(struct recorded *run, struct lane *lane,
                         const struct planned_step *planned, int64_t *start_ns,
                         int64_t *duration_ns, struct ifl_error *error)
{
    if (lane->next == STEP_LOG_END)
        return fail_beyond(run, planned, error);
    const struct logged_step *step = &run->log.steps[lane->next];
    if (!same(run, step, planned) || step->end_ns < planned->earliest_ns)
        return fail_otherwise(run, step, planned, error);
    *start_ns = ifl_max(planned->earliest_ns, step->start_ns);
    *duration_ns = step->end_ns - *start_ns;
    (void)pass(run, lane);
    return 0;
}

int recorded_step(struct recorded *run, const struct ifl_step_desc *desc, int64_t earliest_ns,
                  int64_t *start_ns, int64_t *duration_ns, struct ifl_error *error)
{
    struct planned_step planned = describe(desc, earliest_ns);
    if (list_parts(run, desc, &planned, error) < 0)
        return error->code;
    run->counts.n_steps++;
    if (desc->replica >= run->log.n_replicas || run->log.first[desc->replica] == STEP_LOG_END)
        return fail_beyond(run, &planned, error);
    struct lane *lane = &run->lanes[desc->replica];
    if (run->of.otherwise == OTHERWISE_FAIL)
        return take_strictly(run, lane, &planned, start_ns, duration_ns, error);
    const int n_before = find_equal(run, lane, &planned);
    if (n_before < 0)
        return take_otherwise(run, lane, &planned, start_ns, duration_ns, error);
    if (skip(run, lane, desc->replica, n_before, error) < 0)
        return error->code;
    return take(pass(run, lane), earliest_ns, start_ns, duration_ns);
}

struct recorded_counts recorded_counts(const struct recorded *run)
{
    struct recorded_counts counts = run->counts;
    for (uint32_t i = 0; i < run->log.n_replicas; i++)
        for (int32_t at = run->lanes[i].next; at != STEP_LOG_END; at = run->log.steps[at].next)
            counts.n_left++;
    return counts;
}

/* ---- life ---- */

struct recorded *recorded_create(const struct recorded_options *options, struct ifl_error *error)
{
    struct recorded *run = calloc(1, sizeof *run);
    if (!run) {
        (void)ifl_fail_nomem(error);
        return NULL;
    }
    run->of = *options;
    int rc = step_log_read(options->name, &run->log, error);
    if (rc == 0) {
        run->lanes = calloc(run->log.n_replicas, sizeof *run->lanes);
        rc = run->lanes ? 0 : ifl_fail_nomem(error);
    }
    for (uint32_t i = 0; rc == 0 && i < run->log.n_replicas; i++)
        run->lanes[i] = (struct lane){.next = run->log.first[i], .last = run->log.first[i]};
    if (rc == 0)
        return run;
    recorded_destroy(run);
    return NULL;
}

void recorded_destroy(struct recorded *run)
{
    if (!run)
        return;
    step_log_free(&run->log);
    free(run->lanes);
    free(run->parts);
    free(run);
}
