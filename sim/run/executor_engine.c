#include "run/executor_engine.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "inflight/minmax.h"
#include "run/engine_job.h"
#include "run/executor_paced.h"
#include "run/token_ids.h"

/* A waiting thread looks at the stop flag that often: a signal sets it and wakes no thread. */
static const int64_t LOOK_NS = 20000000;

struct executor_engine {
    const struct ifl_engine *engine;
    void *self; /* the open engine */
    char who[64];
    struct guard_call opens, steps, closes;
    int32_t n_stages;  /* threads: 1 without a pipeline */
    int32_t n_slots;   /* of the pipeline: steps in flight; 0: there is none */
    uint32_t pipeline; /* its number */
    const volatile sig_atomic_t *stop;
    const struct source *source;
    struct token_ids ids;
    struct engine_spoiler spoiler;
    struct engine_keep keep;
    bool guesses, verifies;
    struct proposer proposer;
    int64_t epoch_ns; /* time 0 of the run */
    struct stage_thread {
        struct executor_engine *of;
        int32_t stage;
        pthread_t thread;
    } threads[STAGES_MOST];
    int32_t n_threads; /* that have started */
    bool has_locks;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t submitted, ended;
    bool closing, has_failed;
    uint64_t n_submitted, n_taken;
    uint64_t n_run[STAGES_MOST]; /* jobs that have left a stage */
    struct engine_job jobs[EXECUTOR_ENGINE_MAX_IN_FLIGHT];
};

static struct engine_job *job_at(struct executor_engine *x, uint64_t i)
{
    return &x->jobs[i % EXECUTOR_ENGINE_MAX_IN_FLIGHT];
}

/* ---- the clock ---- */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * IFL_NS_PER_S + now.tv_nsec;
}

static int64_t engine_now(void *self)
{
    const struct executor_engine *x = self;
    return x->source ? x->source->ops->now(x->source->self) : monotonic_ns() - x->epoch_ns;
}

static uint64_t n_ended(const struct executor_engine *x)
{
    return x->n_run[x->n_stages - 1];
}

/* ---- the engine's threads ---- */

/* K/V that is given up is gathered at once: the blocks that it frees may be written next. */
static int keep(struct executor_engine *x, struct engine_job *job)
{
    const size_t n_keeps = engine_keep_choose(&x->keep, &job->kept, &job->step);
    struct ifl_engine_step gather = {.keeps = job->kept.keeps, .n_keeps = n_keeps};
    if (n_keeps == 0)
        return 0;
    const int code = x->engine->step(x->self, &gather, &job->error);
    job->step.device_ns += gather.device_ns;
    return code;
}

static int compute(struct executor_engine *x, int32_t stage, uint64_t i)
{
    struct engine_job *job = job_at(x, i);
    const struct guard_call *before = guard_enter(&x->steps);
    int code = 0;
    if (x->guesses)
        code = proposer_guess(&x->proposer, job, &x->ids, &job->error);
    if (code == 0)
        code = x->n_slots > 0
                   ? x->engine->stage(x->self, stage, (int32_t)(i % (uint64_t)x->n_slots),
                                      &job->step, &job->error)
                   : x->engine->step(x->self, &job->step, &job->error);
    if (code == 0 && x->n_slots == 0)
        code = keep(x, job);
    guard_leave(before);
    return code;
}

/* A step that has failed passes through the other stages without work. */
static void run(struct executor_engine *x, int32_t stage, uint64_t i)
{
    struct engine_job *job = job_at(x, i);
    job->stage_times[stage].start_ns = engine_now(x);
    if (job->code == 0)
        job->code = compute(x, stage, i);
}

/* The tokens of requests are read and written under the lock: several threads do. Behind a step
 * that has failed there are none to read. */
static void begin(struct executor_engine *x, struct engine_job *job)
{
    if (x->has_failed)
        job->code = ifl_fail(&job->error, IFL_E_DEVICE, "an earlier step has failed");
    else
        engine_job_look_up(job, &x->ids);
}

static void end(struct executor_engine *x, struct engine_job *job)
{
    if (job->code == 0 && engine_job_remember(job, &x->ids, x->verifies) < 0)
        job->code = ifl_fail_nomem(&job->error);
    job->passed = (struct ifl_stage_times){x->pipeline, x->n_stages, job->stage_times};
    job->done.n_accepted = x->verifies ? job->n_accepted : NULL;
    job->done.device_ns = job->step.device_ns;
    job->done.start_ns = job->stage_times[0].start_ns;
    job->done.end_ns = job->stage_times[x->n_stages - 1].end_ns;
    job->done.stages = x->n_slots > 0 ? &job->passed : NULL;
    x->has_failed |= job->code < 0;
}

static bool is_due(const struct executor_engine *x, int32_t stage)
{
    const uint64_t i = x->n_run[stage];
    return stage > 0 ? i < x->n_run[stage - 1]
                     : i < x->n_submitted &&
                           x->jobs[i % EXECUTOR_ENGINE_MAX_IN_FLIGHT].after <= n_ended(x);
}

static void *serve(void *context)
{
    const struct stage_thread *thread = context;
    const int32_t stage = thread->stage;
    struct executor_engine *x = thread->of;
    pthread_mutex_lock(&x->lock);
    while (!x->closing) {
        if (!is_due(x, stage)) {
            pthread_cond_wait(&x->submitted, &x->lock);
            continue;
        }
        const uint64_t i = x->n_run[stage];
        struct engine_job *job = job_at(x, i);
        if (stage == 0)
            begin(x, job);
        pthread_mutex_unlock(&x->lock);
        run(x, stage, i);
        pthread_mutex_lock(&x->lock);
        job->stage_times[stage].end_ns = engine_now(x);
        if (stage == x->n_stages - 1)
            end(x, job);
        x->n_run[stage]++;
        pthread_cond_broadcast(stage == x->n_stages - 1 ? &x->ended : &x->submitted);
        if (stage > 0 && stage == x->n_stages - 1)
            pthread_cond_broadcast(&x->submitted); /* a job may wait for its tokens */
        if (stage == x->n_stages - 1 && x->source)
            x->source->ops->wake(x->source->self);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* ---- the loop's side ---- */

/* How many jobs have ended when the last one that samples a token of this one's has. */
static uint64_t last_feeder(struct executor_engine *x, const struct engine_job *job)
{
    uint64_t i = x->n_slots > 0 ? x->n_submitted : 0;
    while (i > n_ended(x) && !engine_job_feeds(job_at(x, i - 1), job))
        i--;
    return i;
}

static int engine_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct executor_engine *x = self;
    if (x->n_submitted - x->n_taken == EXECUTOR_ENGINE_MAX_IN_FLIGHT)
        return ifl_fail(error, IFL_E_DEVICE, "more than %d steps in flight",
                        EXECUTOR_ENGINE_MAX_IN_FLIGHT);
    struct engine_job *job = job_at(x, x->n_submitted);
    if (engine_job_write(job, desc, x->source, &x->spoiler) < 0 ||
        engine_keep_write(&x->keep, &job->kept, desc, &job->step) < 0)
        return ifl_fail_nomem(error);
    pthread_mutex_lock(&x->lock);
    job->after = last_feeder(x, job);
    x->n_submitted++;
    pthread_cond_broadcast(&x->submitted);
    pthread_mutex_unlock(&x->lock);
    return 0;
}

/* The source waits in place of the lock, and is woken at each end. */
static void wait_at_source(struct executor_engine *x, int64_t at_ns)
{
    pthread_mutex_unlock(&x->lock);
    x->source->ops->wait(x->source->self, at_ns);
    pthread_mutex_lock(&x->lock);
}

static void wait_until(struct executor_engine *x, int64_t at_ns)
{
    at_ns += x->epoch_ns;
    const struct timespec at = {.tv_sec = (time_t)(at_ns / IFL_NS_PER_S),
                                .tv_nsec = (long)(at_ns % IFL_NS_PER_S)};
    pthread_cond_timedwait(&x->ended, &x->lock, &at);
}

/* Called with the lock held; returns what `next` does. */
static int await(struct executor_engine *x, int64_t until_ns, struct ifl_done *done,
                 struct ifl_error *error)
{
    for (;;) {
        const int64_t now_ns = engine_now(x);
        if (x->stop && *x->stop)
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        if (x->n_taken < n_ended(x)) {
            const struct engine_job *job = job_at(x, x->n_taken);
            if (job->code < 0) {
                *error = job->error;
                return job->code;
            }
            if (job->done.end_ns > until_ns)
                return 0;
            *done = job->done;
            x->n_taken++;
            return 1;
        }
        if (now_ns >= until_ns)
            return 0;
        if (x->source && x->source->ops->has(x->source->self))
            return EXECUTOR_SOURCE_SPEAKS;
        if (x->source)
            wait_at_source(x, until_ns);
        else
            wait_until(x, until_ns - now_ns < LOOK_NS ? until_ns : now_ns + LOOK_NS);
    }
}

static int engine_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    struct executor_engine *x = self;
    pthread_mutex_lock(&x->lock);
    const int rc = await(x, until_ns, done, error);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

/* Later steps of the request may be adding to its tokens. */
static int32_t engine_token(void *self, const struct ifl_request *r, int32_t seq, int32_t index)
{
    struct executor_engine *x = self;
    const struct token_owner owner = {
        .serial = r->serial, .seq = seq, .n_seqs = r->n_seqs, .n_prompt = r->n_prompt};
    pthread_mutex_lock(&x->lock);
    const int32_t token = token_ids_get(&x->ids, &owner, r->n_prompt + index);
    pthread_mutex_unlock(&x->lock);
    return token;
}

/* The last step of the request has ended, so the engine's thread no longer reads its tokens. */
static void engine_forget(void *self, uint64_t serial)
{
    struct executor_engine *x = self;
    token_ids_forget(&x->ids, serial);
    engine_keep_forget(&x->keep, serial);
}

const struct ifl_executor_ops executor_engine_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "engine",
    .wants_work = true,
    .now = engine_now,
    .submit = engine_submit,
    .next = engine_next,
    .forget = engine_forget,
    .token = engine_token,
};

/* ---- creating and destroying ---- */

/* The condition variables' deadlines follow the clock that the loop reads. */
static int create_locks(struct executor_engine *x)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return IFL_E_NOMEM;
    x->has_locks = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_mutex_init(&x->lock, NULL) == 0 &&
                   pthread_cond_init(&x->submitted, &attributes) == 0 &&
                   pthread_cond_init(&x->ended, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return x->has_locks ? 0 : IFL_E_NOMEM;
}

static int start(struct executor_engine *x, const struct executor_engine_options *options,
                 struct ifl_error *error)
{
    if (x->n_slots > 0 && !x->engine->stage)
        return ifl_fail(error, IFL_E_INPUT,
                        "engine %s has no stages, expected parallel.pipeline 1 with it",
                        x->engine->name);
    if (create_locks(x) < 0 ||
        token_ids_create(&x->ids, options->token_seed, options->open.model.n_vocab,
                         options->n_requests) < 0 ||
        (options->spoil && engine_spoiler_create(&x->spoiler, options->spoil) < 0))
        return ifl_fail_nomem(error);
    const struct guard_call *before = guard_enter(&x->opens);
    const int rc = x->engine->open(&options->open, &x->self, error);
    guard_leave(before);
    if (rc < 0)
        return rc;
    if (options->guesses && proposer_open(&x->proposer, &options->proposer, error) < 0)
        return error->code;
    x->epoch_ns = monotonic_ns();
    while (x->n_threads < x->n_stages) {
        struct stage_thread *thread = &x->threads[x->n_threads];
        *thread = (struct stage_thread){.of = x, .stage = x->n_threads};
        if (pthread_create(&thread->thread, NULL, serve, thread) != 0)
            return ifl_fail(error, IFL_E_NOMEM, "no thread can be started for the engine");
        x->n_threads++;
    }
    return 0;
}

struct executor_engine *executor_engine_create(const struct executor_engine_options *options,
                                               struct ifl_error *error)
{
    struct executor_engine *x = calloc(1, sizeof *x);
    if (!x) {
        ifl_fail_nomem(error);
        return NULL;
    }
    x->engine = options->engine;
    x->n_slots = options->open.n_stages > 0 ? options->open.max_in_flight : 0;
    x->n_stages = ifl_max(options->open.n_stages, 1);
    x->pipeline = options->pipeline;
    x->stop = options->open.stop;
    x->source = options->source;
    engine_keep_create(&x->keep, &options->keep, &options->open.model, options->open.block_tokens);
    x->guesses = options->guesses;
    x->verifies = options->verifies;
    snprintf(x->who, sizeof x->who, "engine %s", options->engine->name);
    x->opens = (struct guard_call){x->who, "open"};
    x->steps = (struct guard_call){x->who, "step"};
    x->closes = (struct guard_call){x->who, "close"};
    if (start(x, options, error) < 0) {
        executor_engine_destroy(x);
        return NULL;
    }
    return x;
}

static void stop_threads(struct executor_engine *x)
{
    pthread_mutex_lock(&x->lock);
    x->closing = true;
    pthread_cond_broadcast(&x->submitted);
    pthread_mutex_unlock(&x->lock);
    for (int32_t i = 0; i < x->n_threads; i++)
        pthread_join(x->threads[i].thread, NULL);
}

void executor_engine_destroy(struct executor_engine *x)
{
    if (!x)
        return;
    if (x->n_threads > 0)
        stop_threads(x);
    const struct guard_call *before = guard_enter(&x->closes);
    x->engine->close(x->self);
    proposer_close(&x->proposer);
    guard_leave(before);
    for (size_t i = 0; i < EXECUTOR_ENGINE_MAX_IN_FLIGHT; i++)
        engine_job_finish(&x->jobs[i]);
    token_ids_destroy(&x->ids);
    engine_keep_destroy(&x->keep);
    engine_spoiler_finish(&x->spoiler);
    if (x->has_locks) {
        pthread_mutex_destroy(&x->lock);
        pthread_cond_destroy(&x->submitted);
        pthread_cond_destroy(&x->ended);
    }
    free(x);
}
