#include "run/executor_engine.h"

#include <stdlib.h>

#include "run/engine_member.h"
#include "run/executor_paced.h"

struct executor_engine {
    struct engine_hub hub;
    struct engine_member *members; /* [n] */
    uint32_t n;
};

static int64_t engine_now(void *self)
{
    return engine_hub_now(&((struct executor_engine *)self)->hub);
}

static int engine_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct executor_engine *x = self;
    ifl_require(desc->replica < x->n);
    return engine_member_submit(&x->members[desc->replica], desc, error);
}

/* ---- what has ended ---- */

/* The member with the step that ended first; NULL: none has ended. */
static struct engine_member *first_to_end(struct executor_engine *x)
{
    struct engine_member *first = NULL;
    int64_t end_ns = IFL_NEVER;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct engine_job *job = engine_member_first(&x->members[i]);
        if (job && job->done.end_ns < end_ns) {
            first = &x->members[i];
            end_ns = job->done.end_ns;
        }
    }
    return first;
}

/* The lane with the move that ended first; NULL: none has ended. */
static struct engine_lane *first_to_come(struct executor_engine *x)
{
    struct engine_lane *first = NULL;
    int64_t end_ns = IFL_NEVER;
    for (uint32_t i = 0; i < x->n; i++) {
        struct engine_lane *lanes[] = {&x->members[i].in, &x->members[i].out};
        for (size_t k = 0; k < 2; k++) {
            const struct lane_move *move = engine_lane_first(lanes[k]);
            if (move && move->end_ns < end_ns) {
                first = lanes[k];
                end_ns = move->end_ns;
            }
        }
    }
    return first;
}

static int take_step(struct engine_member *member, int64_t until_ns, struct ifl_done *done,
                     struct ifl_error *error)
{
    const struct engine_job *job = engine_member_first(member);
    if (job->code < 0) {
        *error = job->error;
        return job->code;
    }
    if (job->done.end_ns > until_ns)
        return 0;
    *done = job->done;
    member->n_taken++;
    return 1;
}

/* Called with the lock held; returns what `next` does. */
static int await(struct executor_engine *x, int64_t until_ns, struct ifl_done *done,
                 struct ifl_error *error)
{
    for (;;) {
        const int64_t now_ns = engine_now(x);
        if (x->hub.stop && *x->hub.stop)
            return ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
        struct engine_member *member = first_to_end(x);
        const struct engine_lane *lane = first_to_come(x);
        const int64_t step_ns = member ? engine_member_first(member)->done.end_ns : IFL_NEVER;
        const int64_t move_ns = lane ? engine_lane_first(lane)->end_ns : IFL_NEVER;
        if (member && step_ns <= move_ns)
            return take_step(member, until_ns, done, error);
        if (lane && move_ns <= until_ns) {
            done->end_ns = move_ns;
            return IFL_NEXT_MOVED;
        }
        if (now_ns >= until_ns)
            return 0;
        if (x->hub.source && x->hub.source->ops->has(x->hub.source->self))
            return EXECUTOR_SOURCE_SPEAKS;
        engine_hub_wait(&x->hub, now_ns, until_ns);
    }
}

static int engine_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    struct executor_engine *x = self;
    pthread_mutex_lock(&x->hub.lock);
    const int rc = await(x, until_ns, done, error);
    pthread_mutex_unlock(&x->hub.lock);
    return rc;
}

/* ---- K/V that moves ---- */

static int engine_move(void *self, const struct ifl_kv_move *move, struct ifl_error *error)
{
    struct executor_engine *x = self;
    const bool goes_out = move->to < 0;
    const int32_t number = goes_out ? move->from : move->to;
    ifl_require(number >= 0 && (uint32_t)number < x->n && move->from < (int32_t)x->n);
    struct engine_member *member = &x->members[number];
    struct engine_member *from = move->from < 0 ? NULL : &x->members[move->from];
    pthread_mutex_lock(&x->hub.lock);
    const int rc = engine_lane_submit(goes_out ? &member->out : &member->in, from, move);
    pthread_mutex_unlock(&x->hub.lock);
    return rc < 0 ? ifl_fail_nomem(error) : 0;
}

static int take_move(struct executor_engine *x, int64_t until_ns, struct ifl_kv_moved *moved,
                     struct ifl_error *error)
{
    struct engine_lane *lane = first_to_come(x);
    const struct lane_move *move = lane ? engine_lane_first(lane) : NULL;
    if (!move || move->end_ns > until_ns)
        return 0;
    if (move->code < 0) {
        *error = move->error;
        return move->code;
    }
    *moved = (struct ifl_kv_moved){move->tag, move->sent_ns, move->start_ns, move->end_ns};
    lane->n_taken++;
    return 1;
}

static int engine_moved(void *self, int64_t until_ns, struct ifl_kv_moved *moved,
                        struct ifl_error *error)
{
    struct executor_engine *x = self;
    pthread_mutex_lock(&x->hub.lock);
    const int rc = take_move(x, until_ns, moved, error);
    pthread_mutex_unlock(&x->hub.lock);
    return rc;
}

/* ---- tokens ---- */

/* Later steps of the request may be adding to its tokens. */
static int32_t engine_token(void *self, const struct ifl_request *r, int32_t seq, int32_t index)
{
    struct executor_engine *x = self;
    const struct token_owner owner = {
        .serial = r->serial, .seq = seq, .n_seqs = r->n_seqs, .n_prompt = r->n_prompt};
    pthread_mutex_lock(&x->hub.lock);
    const int32_t token = token_ids_get(&x->hub.ids, &owner, r->n_prompt + index);
    pthread_mutex_unlock(&x->hub.lock);
    return token;
}

static const struct ifl_logprobs *engine_logprobs(void *self, uint32_t replica,
                                                  const struct ifl_request *r, int32_t seq,
                                                  int32_t token)
{
    struct executor_engine *x = self;
    return engine_member_logprobs(&x->members[replica], r->serial, seq, token);
}

/* The last step of the request has ended, so no engine's thread reads its tokens any more. */
static void engine_forget(void *self, uint64_t serial)
{
    struct executor_engine *x = self;
    token_ids_forget(&x->hub.ids, serial);
    for (uint32_t i = 0; i < x->n; i++)
        engine_keep_forget(&x->members[i].keep, serial);
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
    .move = engine_move,
    .moved = engine_moved,
    .logprobs = engine_logprobs,
};

/* ---- creating and destroying ---- */

/* Blocks that move are the same bytes in both engines. */
static int check_alike(const struct executor_engine *x,
                       const struct executor_engine_options *options, struct ifl_error *error)
{
    const struct engine_member *first = &x->members[0];
    const size_t block_bytes = first->engine->block_bytes(first->self);
    for (uint32_t i = 1; i < x->n; i++) {
        const struct engine_member *member = &x->members[i];
        const size_t n_bytes = member->engine->block_bytes(member->self);
        if (options[i].open.block_tokens != options[0].open.block_tokens || n_bytes != block_bytes)
            return ifl_fail(error, IFL_E_INPUT,
                            "a block of replica %u has %d tokens in %zu bytes and one of replica 0 "
                            "%d in %zu, expected the same where K/V moves between engines",
                            i, options[i].open.block_tokens, n_bytes, options[0].open.block_tokens,
                            block_bytes);
    }
    return 0;
}

/* Time begins when all engines are open. */
static int start(struct executor_engine *x, const struct executor_engine_options *options,
                 struct ifl_error *error)
{
    int rc = 0;
    if (engine_hub_create(&x->hub) < 0 ||
        token_ids_create(&x->hub.ids, options->token_seed, options->open.model.n_vocab,
                         options->n_requests) < 0)
        return ifl_fail_nomem(error);
    for (uint32_t i = 0; rc == 0 && i < x->n; i++)
        rc = engine_member_open(&x->members[i], &options[i], error);
    if (rc == 0 && options->receives)
        rc = check_alike(x, options, error);
    engine_hub_begin(&x->hub);
    return rc;
}

struct executor_engine *executor_engine_create(const struct executor_engine_options *options,
                                               uint32_t n, struct ifl_error *error)
{
    struct executor_engine *x = calloc(1, sizeof *x);
    if (!x || !(x->members = calloc(n, sizeof *x->members))) {
        free(x);
        ifl_fail_nomem(error);
        return NULL;
    }
    x->n = n;
    x->hub.stop = options->open.stop;
    x->hub.source = options->source;
    for (uint32_t i = 0; i < n; i++)
        engine_member_create(&x->members[i], &x->hub, &options[i]);
    if (start(x, options, error) < 0) {
        executor_engine_destroy(x);
        return NULL;
    }
    return x;
}

static void stop_threads(struct executor_engine *x)
{
    pthread_mutex_lock(&x->hub.lock);
    x->hub.closing = true;
    pthread_cond_broadcast(&x->hub.submitted);
    pthread_mutex_unlock(&x->hub.lock);
    for (uint32_t i = 0; i < x->n; i++)
        engine_member_stop(&x->members[i]);
}

void executor_engine_destroy(struct executor_engine *x)
{
    if (!x)
        return;
    if (x->hub.has_locks)
        stop_threads(x);
    for (uint32_t i = 0; i < x->n; i++)
        engine_member_close(&x->members[i]);
    engine_hub_destroy(&x->hub);
    free(x->members);
    free(x);
}
