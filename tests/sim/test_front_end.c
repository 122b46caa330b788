/* The front end: what clients and engines see of it, by pencil, and against arrivals that are moved
 * by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "fixture.h"

#define S(s) ((int64_t)((s)*1e9 + 0.5))

/* A step takes a second, however much it computes. */
static void set_up(struct fixture *f, size_t n)
{
    *f = (struct fixture){
        .limits = {.block_tokens = 4, .n_blocks = 4096, .max_model_tokens = 1024},
        .linear = {.step_s = 1},
        .front = {.request_s = 0.25, .prompt_token_s = 0.1, .token_s = 0.125},
    };
    f->capture.keep_steps = true;
    fixture_vllm(f, NULL, NULL);
    fixture_trace(f, n);
}

static void say(struct fixture *f, size_t row, double at_s, int32_t n_prompt, int32_t n_output)
{
    f->trace.arrival_ns[row] = S(at_s);
    f->trace.n_prompt[row] = n_prompt;
    f->trace.n_output[row] = n_output;
}

static void fly(struct fixture *f)
{
    struct ifl_error error = {0};
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
}

static const struct ifl_request_record *of_id(const struct fixture *f, uint64_t id)
{
    const struct ifl_request_record *found = NULL;
    for (size_t i = 0; i < f->capture.n_requests && !found; i++)
        if (f->capture.requests[i].request_id == id)
            found = &f->capture.requests[i];
    cr_assert_not_null(found, "request %llu has not ended", (unsigned long long)id);
    return found;
}

/* `first_s` and `finish_s` below 0: never. */
static void expect_times(const struct fixture *f, uint64_t id, double arrival_s, double scheduled_s,
                         double first_s, double finish_s)
{
    const struct ifl_request_record *r = of_id(f, id);
    cr_expect_eq(r->arrival_ns, S(arrival_s), "%llu", (unsigned long long)id);
    cr_expect_eq(r->first_scheduled_ns, scheduled_s < 0 ? IFL_NEVER : S(scheduled_s), "%llu",
                 (unsigned long long)id);
    cr_expect_eq(r->first_token_ns, first_s < 0 ? IFL_NEVER : S(first_s), "%llu",
                 (unsigned long long)id);
    cr_expect_eq(r->finish_ns, finish_s < 0 ? IFL_NEVER : S(finish_s), "%llu",
                 (unsigned long long)id);
}

/* 0 comes to the engine at 0 + 0.25 + 10 * 0.1 = 1.25, 1 at 0.5 + 0.25 + 2 * 0.1 = 0.95. Step from
 * 0.95: 1's prompt; 1.95: 0's; 2.95: both; 3.95: 0. Clients have tokens 0.125 later. 2 comes to an
 * idle engine at 6 + 0.25 + 0.4. */
Test(front_end, a_short_prompt_overtakes)
{
    struct fixture f;
    set_up(&f, 3);
    say(&f, 0, 0, 10, 3);
    say(&f, 1, 0.5, 2, 2);
    say(&f, 2, 6, 4, 1);
    fly(&f);
    expect_times(&f, 0, 0, 1.95, 3.075, 5.075);
    expect_times(&f, 1, 0.5, 0.95, 2.075, 4.075);
    expect_times(&f, 2, 6, 6.65, 7.775, 7.775);
    cr_expect_eq(of_id(&f, 1)->max_itl_ns, S(2), "gaps are those of the engine");
    cr_expect_eq(f.capture.steps[1].start_ns, S(1.95));
    cr_expect_eq(f.capture.n_steps, 5);
    fixture_free(&f);
}

/* Tokens alone, and requests alone. */
Test(front_end, one_way_only)
{
    struct fixture f;
    set_up(&f, 2);
    say(&f, 0, 0, 10, 2);
    say(&f, 1, 1, 1, 1);
    f.front = (struct front_end){.token_s = 0.5};
    fly(&f);
    expect_times(&f, 0, 0, 0, 1.5, 3.5);
    expect_times(&f, 1, 1, 1, 2.5, 2.5);
    fixture_free(&f);
    set_up(&f, 1);
    say(&f, 0, 2, 10, 2);
    f.front = (struct front_end){.prompt_token_s = 0.01};
    fly(&f);
    expect_times(&f, 0, 2, 2.1, 3.1, 4.1);
    fixture_free(&f);
}

/* Half a second of work on each, one at a time: out at 0.5, 1 and 3.5, the last of an idle front
 * end. With a quarter more, side by side, 0.75, 1.25 and 3.75. */
Test(front_end, requests_wait_for_their_turn)
{
    for (int more = 0; more < 2; more++) {
        const double s = 0.25 * more;
        struct fixture f;
        set_up(&f, 3);
        say(&f, 0, 0, 3, 1);
        say(&f, 1, 0.125, 3, 1);
        say(&f, 2, 3, 3, 1);
        f.front = (struct front_end){.serial_s = 0.5, .request_s = s};
        fly(&f);
        expect_times(&f, 0, 0, 0.5 + s, 1.5 + s, 1.5 + s);
        expect_times(&f, 1, 0.125, 1.5 + s, 2.5 + s, 2.5 + s);
        expect_times(&f, 2, 3, 3.5 + s, 4.5 + s, 4.5 + s);
        fixture_free(&f);
    }
}

/* One client: it sends as it has the last token of the answer before, and each request takes
 * 0.25 + prompt * 0.1 + output + 0.125 s. */
Test(front_end, a_closed_loop_counts_from_the_clients_last_token)
{
    struct fixture f;
    set_up(&f, 5);
    int64_t at_ns = 0;
    for (size_t i = 0; i < 5; i++)
        say(&f, i, 0, 1 + 3 * (int32_t)i, 4 - (int32_t)i % 3);
    f.concurrency = 1;
    fly(&f);
    for (size_t i = 0; i < 5; i++) {
        const struct ifl_request_record *r = of_id(&f, i);
        cr_expect_eq(r->arrival_ns, at_ns, "%zu", i);
        at_ns += S(0.375) + f.trace.n_prompt[i] * S(0.1) + f.trace.n_output[i] * S(1);
        cr_expect_eq(r->finish_ns, at_ns, "%zu", i);
    }
    fixture_free(&f);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of c clients each sends as it has its answer: the k-th request after the first c is sent at the
 * k-th end, whatever overtakes what. */
Test(front_end, a_closed_loop_keeps_its_clients)
{
    enum { N = 200, CLIENTS = 7 };
    struct fixture f;
    int64_t sent_ns[N], ended_ns[N];
    set_up(&f, N);
    f.front = (struct front_end){0.03, 0.013, 0.4};
    f.linear = (struct linear_cost){.step_s = 0.1, .prefill_token_s = 0.01};
    for (size_t i = 0; i < N; i++)
        say(&f, i, 0, 1 + (int32_t)(ifl_draw(3, IFL_DRAW_PROMPT, i, 0) % 60),
            1 + (int32_t)(ifl_draw(3, IFL_DRAW_OUTPUT, i, 0) % 9));
    f.concurrency = CLIENTS;
    fly(&f);
    cr_assert_eq(f.capture.n_requests, N);
    for (size_t i = 0; i < N; i++) {
        sent_ns[i] = f.capture.requests[i].arrival_ns;
        ended_ns[i] = f.capture.requests[i].finish_ns;
    }
    qsort(sent_ns, N, sizeof *sent_ns, by_value);
    qsort(ended_ns, N, sizeof *ended_ns, by_value);
    for (size_t i = 0; i < CLIENTS; i++)
        cr_expect_eq(sent_ns[i], 0);
    for (size_t i = CLIENTS; i < N; i++)
        cr_expect_eq(sent_ns[i], ended_ns[i - CLIENTS], "%zu", i);
    fixture_free(&f);
}

/* Turn 1 is sent 2.5 s after the client has the last token of turn 0: 0 + 0.25 + 0.3, two steps,
 * 0.125; then 2.5. */
Test(front_end, a_session_thinks_from_the_clients_last_token)
{
    struct fixture f;
    set_up(&f, 2);
    say(&f, 0, 0, 3, 2);
    say(&f, 1, 0, 5, 1);
    f.trace.session = calloc(2, sizeof *f.trace.session);
    f.trace.think_ns = calloc(2, sizeof *f.trace.think_ns);
    f.trace.session[0] = f.trace.session[1] = 1;
    f.trace.think_ns[0] = -1;
    f.trace.think_ns[1] = S(2.5);
    fly(&f);
    expect_times(&f, 0, 0, 0.55, 1.675, 2.675);
    expect_times(&f, 1, 5.175, 5.925, 7.05, 7.05);
    fixture_free(&f);
}

/* ---- against arrivals that are moved by hand ---- */

enum { N_MOVED = 60 };

struct moved {
    int64_t at_ns;
    size_t row;
};

static int by_time_then_row(const void *a, const void *b)
{
    const struct moved *x = a, *y = b;
    return x->at_ns != y->at_ns ? (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns)
                                : (x->row > y->row) - (x->row < y->row);
}

static void roll(struct fixture *f, uint64_t seed, const char *router)
{
    double at_s = 0;
    set_up(f, N_MOVED);
    f->linear = (struct linear_cost){.step_s = 0.05, .prefill_token_s = 0.001};
    f->limits.n_blocks = 60; /* some are preempted */
    f->front = (struct front_end){0.02 * (double)(seed % 3), 0.005, 0.07};
    f->n_replicas = router ? 3 : 1;
    if (router)
        fixture_module(f, IFL_ROUTE, router, NULL);
    for (size_t i = 0; i < N_MOVED; i++) {
        at_s += 0.01 * (double)(ifl_draw(seed, IFL_DRAW_ARRIVAL, i, 0) % 6);
        say(f, i, at_s, 1 + (int32_t)(ifl_draw(seed, IFL_DRAW_PROMPT, i, 0) % 40),
            1 + (int32_t)(ifl_draw(seed, IFL_DRAW_OUTPUT, i, 0) % 20));
    }
}

/* The trace as the engine sees it, in whole nanoseconds: request_s and prompt_token_s are whole
 * milliseconds. */
static void move(struct fixture *to, const struct fixture *of)
{
    struct moved moved[N_MOVED];
    const int64_t request_ms = (int64_t)(of->front.request_s * 1e3 + 0.5);
    const int64_t token_ms = (int64_t)(of->front.prompt_token_s * 1e3 + 0.5);
    to->front = (struct front_end){0};
    to->trace.request_id = calloc(N_MOVED, sizeof *to->trace.request_id);
    for (size_t i = 0; i < N_MOVED; i++)
        moved[i] = (struct moved){
            of->trace.arrival_ns[i] + (request_ms + token_ms * of->trace.n_prompt[i]) * 1000000, i};
    qsort(moved, N_MOVED, sizeof *moved, by_time_then_row);
    for (size_t i = 0; i < N_MOVED; i++) {
        to->trace.arrival_ns[i] = moved[i].at_ns;
        to->trace.n_prompt[i] = of->trace.n_prompt[moved[i].row];
        to->trace.n_output[i] = of->trace.n_output[moved[i].row];
        to->trace.request_id[i] = moved[i].row;
    }
}

/* The engines do the same, step by step; clients have their tokens later. */
static void expect_same_flight(uint64_t seed, const char *router)
{
    struct fixture f, g;
    roll(&f, seed, router);
    roll(&g, seed, router);
    move(&g, &f);
    fly(&f);
    fly(&g);
    cr_assert_eq(f.capture.n_steps, g.capture.n_steps);
    cr_expect_eq(
        memcmp(f.capture.steps, g.capture.steps, f.capture.n_steps * sizeof *g.capture.steps), 0,
        "seed %llu", (unsigned long long)seed);
    cr_expect_eq(f.capture.gap_sum_ns, g.capture.gap_sum_ns);
    for (size_t i = 0; i < N_MOVED; i++) {
        struct ifl_request_record expected = *of_id(&g, i);
        expected.arrival_ns = f.trace.arrival_ns[i];
        expected.first_token_ns += S(0.07);
        expected.finish_ns += S(0.07);
        cr_expect_eq(memcmp(of_id(&f, i), &expected, sizeof expected), 0, "seed %llu, request %zu",
                     (unsigned long long)seed, i);
    }
    fixture_free(&f);
    fixture_free(&g);
}

Test(front_end, an_engine_sees_arrivals_that_are_moved)
{
    for (uint64_t seed = 0; seed < 200; seed++)
        expect_same_flight(seed, NULL);
}

Test(front_end, a_router_sees_arrivals_that_are_moved)
{
    static const char *const routers[] = {"round-robin", "least-outstanding", "random"};
    for (uint64_t seed = 0; seed < 150; seed++)
        expect_same_flight(seed, routers[seed % 3]);
}

/* ---- requests that leave, and that are turned away ---- */

/* 0 leaves at 0.1, and does not come to the engine; 1 leaves at 1 + 2 = 3, and comes at 1.35: its
 * first token is there at 2.35, and the step from then, which is its last, ends after it has left
 * and gives it none. 2 is given up in the front end. */
Test(front_end, patience_counts_from_sending)
{
    struct fixture f;
    set_up(&f, 3);
    say(&f, 0, 0, 1, 4);
    say(&f, 1, 1, 1, 9);
    say(&f, 2, 8, 50, 9);
    f.trace.abort_ns = calloc(3, sizeof *f.trace.abort_ns);
    f.trace.deadline_ns = calloc(3, sizeof *f.trace.deadline_ns);
    f.trace.abort_ns[0] = S(0.1);
    f.trace.abort_ns[1] = S(2);
    f.trace.abort_ns[2] = f.trace.deadline_ns[0] = f.trace.deadline_ns[1] = IFL_NEVER;
    f.trace.deadline_ns[2] = S(5);
    fly(&f);
    expect_times(&f, 0, 0, -1, -1, -1);
    cr_expect_eq(of_id(&f, 0)->status, IFL_ABORTED);
    cr_expect_eq(f.capture.requests[0].request_id, 0, "it leaves first");
    expect_times(&f, 1, 1, 1.35, 2.475, -1);
    cr_expect_eq(of_id(&f, 1)->status, IFL_ABORTED);
    cr_expect_eq(of_id(&f, 1)->output_tokens, 1);
    expect_times(&f, 2, 8, -1, -1, -1);
    cr_expect_eq(of_id(&f, 2)->status, IFL_TIMED_OUT);
    cr_expect_eq(f.capture.n_steps, 2);
    fixture_free(&f);
}

/* The engine's first token is there at 1.35, the client's at 1.475: a client that waits for 1.4 s
 * leaves, one that waits for 1.5 s stays. */
Test(front_end, the_first_token_is_the_clients)
{
    for (int stays = 0; stays < 2; stays++) {
        struct fixture f;
        set_up(&f, 1);
        say(&f, 0, 0, 1, 3);
        f.patience = (struct patience){PATIENCE_CONSTANT, .mean_s = stays ? 1.5 : 1.4,
                                       .until_first_token = true};
        fly(&f);
        cr_expect_eq(of_id(&f, 0)->status, stays ? IFL_FINISHED : IFL_ABORTED);
        fixture_free(&f);
    }
}

/* It stays beyond its patience, which ends at 1.5, and leaves at its deadline: its third token
 * would be there at 3.475. */
Test(front_end, patience_that_is_void_leaves_the_deadline)
{
    for (int in_time = 0; in_time < 2; in_time++) {
        struct fixture f;
        set_up(&f, 1);
        say(&f, 0, 0, 1, 3);
        f.patience = (struct patience){PATIENCE_CONSTANT, .mean_s = 1.5, .until_first_token = true};
        f.trace.deadline_ns = calloc(1, sizeof *f.trace.deadline_ns);
        f.trace.deadline_ns[0] = in_time ? S(3.5) : S(3);
        fly(&f);
        cr_expect_eq(of_id(&f, 0)->status, in_time ? IFL_FINISHED : IFL_TIMED_OUT);
        fixture_free(&f);
    }
}

/* Each attempt goes through it: sent at 0, gone at 0.2; sent at 1.2, gone at 1.4. The next client
 * of the closed loop sends then, and has its answer. */
Test(front_end, every_attempt_goes_through_it)
{
    struct fixture f;
    set_up(&f, 2);
    say(&f, 0, 0, 1, 1);
    say(&f, 1, 0, 1, 1);
    f.concurrency = 1;
    f.retries = (struct retries){.most = 1, .backoff_s = 1, .factor = 1, .max_backoff_s = 1};
    f.trace.abort_ns = calloc(2, sizeof *f.trace.abort_ns);
    f.trace.abort_ns[0] = S(0.2);
    f.trace.abort_ns[1] = IFL_NEVER;
    fly(&f);
    cr_assert_eq(f.capture.n_requests, 3);
    cr_expect_eq(f.capture.requests[0].arrival_ns, 0);
    cr_expect_eq(f.capture.requests[1].arrival_ns, S(1.2));
    cr_expect_eq(f.capture.requests[1].status, IFL_ABORTED);
    cr_expect_eq(f.capture.requests[2].arrival_ns, S(1.4));
    cr_expect_eq(f.capture.requests[2].finish_ns, S(1.4 + 0.35 + 1 + 0.125));
    fixture_free(&f);
}

/* A refusal is the engine's: it comes as the request is out of the front end, and without tokens
 * there is nothing to wait for. */
Test(front_end, a_refusal_comes_out_of_it)
{
    struct fixture f;
    set_up(&f, 2);
    say(&f, 0, 0, 2000, 1);
    say(&f, 1, 0, 1, 1);
    f.concurrency = 1;
    fly(&f);
    expect_times(&f, 0, 0, -1, -1, -1);
    cr_expect_eq(of_id(&f, 0)->status, IFL_REJECTED);
    cr_expect_eq(of_id(&f, 1)->arrival_ns, S(0.25 + 200));
    fixture_free(&f);
}
