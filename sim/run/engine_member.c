#include "run/engine_member.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "run/logprobs.h"

static struct engine_job *job_at(struct engine_member *m, uint64_t i)
{
    return &m->jobs[i % EXECUTOR_ENGINE_MAX_IN_FLIGHT];
}

static uint64_t n_ended(const struct engine_member *m)
{
    return m->n_run[m->n_stages - 1];
}

/* ---- the engine's threads ---- */

/* K/V that is given up is gathered at once: the blocks that it frees may be written next. */
static int keep(struct engine_member *m, struct engine_job *job)
{
    const size_t n_keeps = engine_keep_choose(&m->keep, &job->kept, &job->step);
    struct ifl_engine_step gather = {.keeps = job->kept.keeps, .n_keeps = n_keeps};
    if (n_keeps == 0)
        return 0;
    const int code = m->engine->step(m->self, &gather, &job->error);
    job->step.device_ns += gather.device_ns;
    return code;
}

static int compute(struct engine_member *m, int32_t stage, uint64_t i)
{
    struct engine_job *job = job_at(m, i);
    const struct guard_call *before = guard_enter(&m->steps);
    int code = 0;
    if (m->guesses)
        code = proposer_guess(&m->proposer, job, &m->hub->ids, &job->error);
    if (code == 0)
        code = m->n_slots > 0
                   ? m->engine->stage(m->self, stage, (int32_t)(i % (uint64_t)m->n_slots),
                                      &job->step, &job->error)
                   : m->engine->step(m->self, &job->step, &job->error);
    if (code == 0 && m->n_slots == 0)
        code = keep(m, job);
    guard_leave(before);
    return code;
}

/* A step that has failed passes through the other stages without work. */
static void run(struct engine_member *m, int32_t stage, uint64_t i)
{
    struct engine_job *job = job_at(m, i);
    job->stage_times[stage].start_ns = engine_hub_now(m->hub);
    if (job->code == 0)
        job->code = compute(m, stage, i);
    if (job->code == 0 && stage == m->n_stages - 1 && job->is_asked)
        engine_job_weigh(job);
}

/* The tokens of requests are read and written under the lock: several threads do. Behind a step
 * that has failed there are none to read. */
static void begin(struct engine_member *m, struct engine_job *job)
{
    if (m->hub->has_failed)
        job->code = ifl_fail(&job->error, IFL_E_DEVICE, "an earlier step has failed");
    else
        engine_job_look_up(job, &m->hub->ids);
}

static void end(struct engine_member *m, struct engine_job *job)
{
    if (job->code == 0 && engine_job_remember(job, &m->hub->ids, m->verifies) < 0)
        job->code = ifl_fail_nomem(&job->error);
    job->passed = (struct ifl_stage_times){m->pipeline, m->n_stages, job->stage_times};
    job->done.n_accepted = m->verifies ? job->n_accepted : NULL;
    job->done.device_ns = job->step.device_ns;
    job->done.start_ns = job->stage_times[0].start_ns;
    job->done.end_ns = job->stage_times[m->n_stages - 1].end_ns;
    job->done.stages = m->n_slots > 0 ? &job->passed : NULL;
    m->hub->has_failed |= job->code < 0;
}

/* A prompt that gives way between chunks leaves blocks behind that are still to be read. */
static bool writes_what_is_sent(const struct engine_member *m, const struct engine_job *job)
{
    return m->n_sends && engine_job_writes(job, m->block_tokens, m->n_sends);
}

static bool is_due(struct engine_member *m, int32_t stage)
{
    const uint64_t i = m->n_run[stage];
    if (stage > 0)
        return i < m->n_run[stage - 1];
    if (i == m->n_submitted)
        return false;
    struct engine_job *job = job_at(m, i);
    job->awaits_sends = job->awaits_sends && writes_what_is_sent(m, job);
    return job->after <= n_ended(m) && job->after_stores <= m->out.n_ended && !job->awaits_sends;
}

static void *serve(void *context)
{
    const struct stage_thread *thread = context;
    const int32_t stage = thread->stage;
    struct engine_member *m = thread->of;
    struct engine_hub *hub = m->hub;
    pthread_mutex_lock(&hub->lock);
    while (!hub->closing) {
        if (!is_due(m, stage)) {
            pthread_cond_wait(&hub->submitted, &hub->lock);
            continue;
        }
        const uint64_t i = m->n_run[stage];
        struct engine_job *job = job_at(m, i);
        if (stage == 0)
            begin(m, job);
        pthread_mutex_unlock(&hub->lock);
        run(m, stage, i);
        pthread_mutex_lock(&hub->lock);
        job->stage_times[stage].end_ns = engine_hub_now(hub);
        if (stage == m->n_stages - 1)
            end(m, job);
        m->n_run[stage]++;
        if (stage == m->n_stages - 1)
            engine_hub_tell(hub);
        else
            pthread_cond_broadcast(&hub->submitted);
    }
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

/* ---- the loop's side ---- */

/* How many jobs have ended when the last one that samples a token of this one's has. */
static uint64_t last_feeder(struct engine_member *m, const struct engine_job *job)
{
    uint64_t i = m->n_slots > 0 ? m->n_submitted : 0;
    while (i > n_ended(m) && !engine_job_feeds(job_at(m, i - 1), job))
        i--;
    return i;
}

int engine_member_submit(struct engine_member *m, const struct ifl_step_desc *desc,
                         struct ifl_error *error)
{
    if (m->n_submitted - m->n_taken == EXECUTOR_ENGINE_MAX_IN_FLIGHT)
        return ifl_fail(error, IFL_E_DEVICE, "more than %d steps in flight",
                        EXECUTOR_ENGINE_MAX_IN_FLIGHT);
    struct engine_job *job = job_at(m, m->n_submitted);
    job->n_vocab = m->hub->ids.n_vocab;
    job->has_logits = m->has_logits;
    if (engine_job_write(job, desc, m->hub->source, &m->spoiler) < 0 ||
        engine_keep_write(&m->keep, &job->kept, desc, &job->step) < 0)
        return ifl_fail_nomem(error);
    pthread_mutex_lock(&m->hub->lock);
    job->after = last_feeder(m, job);
    job->after_stores = m->out.n_submitted;
    job->awaits_sends = writes_what_is_sent(m, job);
    m->n_submitted++;
    pthread_cond_broadcast(&m->hub->submitted);
    pthread_mutex_unlock(&m->hub->lock);
    return 0;
}

const struct engine_job *engine_member_first(struct engine_member *m)
{
    return m->n_taken < n_ended(m) ? job_at(m, m->n_taken) : NULL;
}

static struct engine_job *job_taken(struct engine_member *m)
{
    return m->n_taken > 0 ? job_at(m, m->n_taken - 1) : NULL;
}

/* The first answer of a group computes the prompt; those that begin with another token behind it
 * have the row of logits in common with it. */
const struct ifl_logprobs *engine_member_logprobs(struct engine_member *m, uint64_t serial,
                                                  int32_t seq, int32_t token)
{
    struct engine_job *job = job_taken(m);
    const float *row = job ? job->logits : NULL, *first = NULL;
    int32_t n_best = 0;
    for (int32_t i = 0; job && job->is_asked && i < job->step.n_seqs; i++) {
        const bool is_asked = job->owners[i].serial == serial && job->n_best[i] >= 0;
        if (is_asked && job->owners[i].seq == seq)
            return &job->logprobs[i];
        if (is_asked && job->owners[i].seq == 0) {
            first = row;
            n_best = job->n_best[i];
        }
        row += (size_t)job->n_rows[i] * (size_t)job->n_vocab;
    }
    if (!first)
        return NULL;
    logprobs_of(first, job->n_vocab, token, n_best, &job->of_first);
    return &job->of_first;
}

/* ---- opening and closing ---- */

static int open_lanes(struct engine_member *m, const struct executor_engine_options *options,
                      struct ifl_error *error)
{
    if (!options->receives && options->n_places == 0)
        return 0;
    m->has_sending = pthread_mutex_init(&m->sending, NULL) == 0;
    if (options->receives &&
        !(m->n_sends = calloc((size_t)options->open.n_blocks, sizeof *m->n_sends)))
        return ifl_fail_nomem(error);
    if (!m->has_sending || engine_tier_create(&m->tier, options->n_places) < 0)
        return ifl_fail_nomem(error);
    int rc = engine_lane_open(&m->in, m, false, error);
    if (rc == 0 && options->n_places > 0)
        rc = engine_lane_open(&m->out, m, true, error);
    return rc;
}

/* An engine that has none refuses the step, and would end the run of a server at a client's word.
 */
static bool try_logits(struct engine_member *m)
{
    float none;
    struct ifl_engine_step empty = {.logits = &none};
    struct ifl_error refusal;
    const struct guard_call *before = guard_enter(&m->steps);
    const int rc = m->n_slots > 0 ? 0 : m->engine->step(m->self, &empty, &refusal);
    guard_leave(before);
    return rc == 0;
}

static int start_threads(struct engine_member *m, struct ifl_error *error)
{
    while (m->n_threads < m->n_stages) {
        struct stage_thread *thread = &m->threads[m->n_threads];
        *thread = (struct stage_thread){.of = m, .stage = m->n_threads};
        if (pthread_create(&thread->thread, NULL, serve, thread) != 0)
            return ifl_fail(error, IFL_E_NOMEM, "no thread can be started for the engine");
        m->n_threads++;
    }
    return 0;
}

void engine_member_create(struct engine_member *m, struct engine_hub *hub,
                          const struct executor_engine_options *options)
{
    m->hub = hub;
    m->engine = options->engine;
    m->block_tokens = options->open.block_tokens;
    m->n_slots = options->open.n_stages > 0 ? options->open.max_in_flight : 0;
    m->n_stages = ifl_max(options->open.n_stages, 1);
    m->pipeline = options->pipeline;
    m->guesses = options->guesses;
    m->verifies = options->verifies;
    snprintf(m->name, sizeof m->name, "engine %s", options->engine->name);
    m->opens = (struct guard_call){m->name, "open"};
    m->steps = (struct guard_call){m->name, "step"};
    m->closes = (struct guard_call){m->name, "close"};
    m->sends = (struct guard_call){m->name, "send_blocks"};
    m->receives = (struct guard_call){m->name, "receive_blocks"};
    engine_keep_create(&m->keep, &options->keep, &options->open.model, options->open.block_tokens);
}

int engine_member_open(struct engine_member *m, const struct executor_engine_options *options,
                       struct ifl_error *error)
{
    if (m->n_slots > 0 && !m->engine->stage)
        return ifl_fail(error, IFL_E_INPUT,
                        "engine %s has no stages, expected parallel.pipeline 1 with it",
                        m->engine->name);
    if (options->spoil && engine_spoiler_create(&m->spoiler, options->spoil) < 0)
        return ifl_fail_nomem(error);
    const struct guard_call *before = guard_enter(&m->opens);
    int rc = m->engine->open(&options->open, &m->self, error);
    guard_leave(before);
    m->has_logits = rc == 0 && m->hub->source && try_logits(m);
    if (rc == 0 && options->guesses)
        rc = proposer_open(&m->proposer, &options->proposer, error);
    if (rc == 0)
        rc = open_lanes(m, options, error);
    return rc == 0 ? start_threads(m, error) : rc;
}

void engine_member_stop(struct engine_member *m)
{
    for (int32_t i = 0; i < m->n_threads; i++)
        pthread_join(m->threads[i].thread, NULL);
    engine_lane_close(&m->in);
    engine_lane_close(&m->out);
}

void engine_member_close(struct engine_member *m)
{
    const struct guard_call *before = guard_enter(&m->closes);
    m->engine->close(m->self);
    proposer_close(&m->proposer);
    guard_leave(before);
    for (size_t i = 0; i < EXECUTOR_ENGINE_MAX_IN_FLIGHT; i++)
        engine_job_finish(&m->jobs[i]);
    engine_tier_destroy(&m->tier);
    free(m->n_sends);
    engine_keep_destroy(&m->keep);
    engine_spoiler_finish(&m->spoiler);
    if (m->has_sending)
        pthread_mutex_destroy(&m->sending);
}
