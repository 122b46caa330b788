/* Preconditions of sim/replica/: its requests, their queue and the cohort, each broken once. */
#include "violates.h"

#include "replica/cohort.h"
#include "replica/live_request.h"
#include "replica/predictor.h"
#include "replica/waiting.h"

static struct live_request request, other;

/* ---- requests and their lists ---- */

VIOLATES(requests, described_twice, live_describe, "r->pub.n_prompt == 0")
{
    const struct arrival arrival = {.n_prompt = 4};
    live_describe(&request, &arrival);
    live_describe(&request, &arrival);
}

VIOLATES(requests, in_a_list_already, live_insert, "list->head != r")
{
    struct live_list list = {0};
    live_append(&list, ON_DEVICE, &request);
    live_append(&list, ON_DEVICE, &request);
}

VIOLATES(requests, in_no_list, live_remove, "list->head == r")
{
    struct live_list list = {0};
    live_append(&list, ON_DEVICE, &request);
    live_remove(&list, ON_DEVICE, &other);
}

VIOLATES(predictions, limit, predictor_tell, "n_max_new >= 1")
{
    const struct predictor oracle = {.model = PREDICT_ORACLE};
    predictor_tell(&oracle, 0, 1, 0);
}

VIOLATES(predictions, buckets, predictor_tell, "p->bucket_tokens > 0")
{
    const struct predictor buckets = {.model = PREDICT_BUCKETS};
    predictor_tell(&buckets, 0, 1, 1);
}

/* ---- the waiting queue ---- */

static struct waiting queue(size_t n)
{
    static struct live_pool records;
    struct waiting of = {.pool = &records};
    ifl_require(waiting_reserve(&of, n) == 0);
    return of;
}

VIOLATES(queue, push_twice, waiting_push, "r->ticket == 0")
{
    struct waiting of = queue(2);
    waiting_push(&of, &request, 0, 0);
    waiting_push(&of, &request, 0, 0);
}

VIOLATES(queue, no_room, waiting_push, "waiting->n < waiting->cap")
{
    struct waiting of = queue(1);
    waiting_push(&of, &request, 0, 0);
    waiting_push(&of, &other, 0, 0);
}

VIOLATES(queue, front_twice, waiting_push_front, "r->ticket == 0")
{
    struct waiting of = queue(2);
    waiting_push_front(&of, &request);
    waiting_push_front(&of, &request);
}

VIOLATES(queue, line_without_records, waiting_line_up, "waiting->pool")
{
    const struct arrival arrival = {0};
    struct waiting of = queue(2);
    of.pool = NULL;
    waiting_line_up(&of, &arrival, 0);
}

VIOLATES(queue, leave, waiting_leave, "r->ticket != 0")
{
    struct waiting of = queue(1);
    waiting_leave(&of, &request);
}

VIOLATES(queue, rerank, waiting_rerank, "r->ticket != 0")
{
    struct waiting of = queue(1);
    waiting_rerank(&of, &request, 0, 0);
}

/* ---- the cohort ---- */

static struct cohort cohort(void)
{
    struct cohort of;
    ifl_require(cohort_create(&of, kv_block_of(16)) == 0 && cohort_reserve(&of, 1) == 0 &&
                cohort_reserve_ticks(&of, 100) == 0);
    return of;
}

/* A request that decodes: 8 of its 9 tokens are computed, 92 more are to come. */
static struct live_request *decoding(void)
{
    request = (struct live_request){
        .n_output = 93,
        .pub = {.n_prompt = 8,
                .n_prefill = 8,
                .n_seqs = 1,
                .stale = {.n_tokens = 9, .n_computed = 8, .n_out = 1, .n_blocks = 1}}};
    return &request;
}

VIOLATES(members, prefill, cohort_add, "request_decodes(&r->pub)")
{
    struct cohort of = cohort();
    struct live_request *r = decoding();
    r->pub.n_prefill = 9;
    cohort_add(&of, r, false);
}

VIOLATES(members, no_room, cohort_add, "cohort->n < cohort->cap")
{
    struct cohort of = cohort();
    of.cap = 0;
    cohort_add(&of, decoding(), false);
}

VIOLATES(members, catch_up, cohort_catch_up, "r->in_cohort")
{
    struct cohort of = cohort();
    cohort_catch_up(&of, decoding());
}

VIOLATES(members, todo_behind, request_todo, "request_is_current(r)")
{
    struct cohort of = cohort();
    struct tick_gaps shared;
    cohort_add(&of, decoding(), false);
    cohort_tick(&of, 1, &shared);
    request_todo(&request.pub);
}

VIOLATES(members, count_listed, cohort_count, "!is_listed(cohort, r)")
{
    struct cohort of = cohort();
    cohort_add(&of, decoding(), false);
    cohort_count(&of, &request, 0, 0);
}

VIOLATES(members, count_twice, cohort_count, "!r->counted")
{
    struct cohort of = cohort();
    cohort_add(&of, decoding(), true);
    cohort_count(&of, &request, 0, 0);
    cohort_count(&of, &request, 0, 0);
}

VIOLATES(members, uncount_uncounted, cohort_uncount, "r->counted")
{
    struct cohort of = cohort();
    cohort_add(&of, decoding(), false);
    cohort_uncount(&of, &request);
}

VIOLATES(members, uncount_behind, cohort_uncount, "r->synced_tick == cohort->tick")
{
    struct cohort of = cohort();
    struct tick_gaps shared;
    cohort_add(&of, decoding(), true);
    cohort_count(&of, &request, 0, 0);
    cohort_tick(&of, 1, &shared);
    cohort_uncount(&of, &request);
}

VIOLATES(members, regrow_counted, cohort_regrow, "!r->counted")
{
    struct cohort of = cohort();
    cohort_add(&of, decoding(), true);
    cohort_count(&of, &request, 0, 0);
    cohort_regrow(&of, &request);
}

VIOLATES(members, pass_fresh, cohort_pass, "cohort->n_fresh == 0")
{
    struct cohort of = cohort();
    struct live_request *r = decoding();
    r->pub.n_seqs = 2;
    cohort_add(&of, r, false);
    struct cohort_uses uses = {0};
    cohort_pass(&of, 2, 0, &uses);
}

VIOLATES(members, gaps_of_fresh, cohort_note_gaps, "cohort->n_fresh == 0")
{
    const int64_t gap_ns = 1;
    struct cohort of = cohort();
    struct live_request *r = decoding();
    r->pub.n_seqs = 2;
    cohort_add(&of, r, false);
    cohort_note_gaps(&of, &gap_ns, 1, false, 1);
}
