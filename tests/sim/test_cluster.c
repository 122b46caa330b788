/* Clusters: replicas behind a router, against single replicas and against queueing theory. */
#include <criterion/criterion.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "fixture.h"

/* One sequence at a time; a request is a single step of as many milliseconds as its prompt has
 * tokens. Each replica is a queue with one server. */
static void set_up(struct fixture *f, const char *router, uint32_t n_replicas, size_t n_requests)
{
    *f = (struct fixture){
        .limits = {.block_tokens = 16, .n_blocks = 4096, .max_model_tokens = 65536},
        .linear = {.prefill_token_s = 1e-3},
        .n_replicas = n_replicas,
        .seed = 5};
    fixture_module(f, IFL_BATCHING, "mixed", "{max_seqs: 1}");
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(f, IFL_PREEMPT, "tail", NULL);
    fixture_module(f, IFL_ROUTE, router, NULL);
    fixture_trace(f, n_requests);
}

/* Poisson arrivals that load each of n servers by `load`; exponential service with mean 1 s. */
static void poisson_exponential(struct fixture *f, double load)
{
    double at_s = 0;
    for (size_t i = 0; i < f->trace.n; i++) {
        const double gap = ifl_uniform(ifl_draw(17, IFL_DRAW_ARRIVAL, i, 0));
        const double work = ifl_uniform(ifl_draw(17, IFL_DRAW_PROMPT, i, 0));
        at_s += gsl_cdf_exponential_Pinv(gap, 1 / (load * f->n_replicas));
        f->trace.arrival_ns[i] = ifl_ns_from_s(at_s);
        f->trace.n_prompt[i] = 1 + (int32_t)gsl_cdf_exponential_Pinv(work, 1000 - 0.5);
        f->trace.n_output[i] = 1;
    }
}

static double mean_time_in_system(const struct fixture *f)
{
    double sum_s = 0;
    size_t n = 0;
    for (size_t i = 0; i < f->capture.n_requests; i++) {
        const struct ifl_request_record *r = &f->capture.requests[i];
        if (r->request_id < f->trace.n / 10) /* warm-up */
            continue;
        sum_s += ifl_s_from_ns(r->finish_ns - r->arrival_ns);
        n++;
    }
    return sum_s / (double)n;
}

static double fly_queue(const char *router, uint32_t n_replicas, double load, size_t n_requests)
{
    struct fixture f;
    struct ifl_error error;
    set_up(&f, router, n_replicas, n_requests);
    poisson_exponential(&f, load);
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_assert_eq(f.capture.n_requests, n_requests);
    const double mean_s = mean_time_in_system(&f);
    fixture_free(&f);
    return mean_s;
}

/* Random splitting thins a Poisson stream into independent ones: M/M/1 each, 1 / (1 - load). */
Test(cluster, random_is_many_mm1)
{
    const double mean_s = fly_queue("random", 200, 0.5, 400000);
    cr_expect(fabs(mean_s - 2) < 0.02 * 2, "%g, expected 2", mean_s);
}

/* Mitzenmacher (IEEE TPDS 2001), equation for d choices among infinitely many servers: the mean
 * time is the sum over i >= 1 of load^((d^i - d) / (d - 1)). */
static double two_choices(double load)
{
    double sum = 0;
    for (int i = 1; i < 12; i++)
        sum += pow(load, pow(2, i) - 2);
    return sum;
}

Test(cluster, two_choices_half_load)
{
    const double mean_s = fly_queue("power-of-two", 500, 0.5, 400000);
    cr_expect(fabs(mean_s - two_choices(0.5)) < 0.02 * mean_s, "%g, expected %g", mean_s,
              two_choices(0.5));
}

Test(cluster, two_choices_high_load)
{
    cr_assert(fabs(two_choices(0.9) - 2.6141) < 1e-3); /* the paper's table 1 */
    const double mean_s = fly_queue("power-of-two", 500, 0.9, 800000);
    cr_expect(fabs(mean_s - two_choices(0.9)) < 0.04 * mean_s, "%g, expected %g", mean_s,
              two_choices(0.9));
}

/* The router knows the shortest queue, so no request waits while a server is idle. The mean time
 * lies between that of M/M/n and that of two choices. */
Test(cluster, least_outstanding_beats_two_choices)
{
    const double least_s = fly_queue("least-outstanding", 100, 0.9, 200000);
    const double two_s = fly_queue("power-of-two", 100, 0.9, 200000);
    cr_expect_gt(least_s, 1.0);
    cr_expect_lt(least_s, two_s);
}

/* ---- round robin, exactly ---- */

static int by_id(const void *a, const void *b)
{
    const struct ifl_request_record *x = a, *y = b;
    return x->request_id < y->request_id ? -1 : x->request_id > y->request_id;
}

static void mixed_load(struct fixture *f, size_t every, size_t from)
{
    for (size_t i = 0; i < f->trace.n; i++) {
        const size_t row = from + i * every;
        f->trace.arrival_ns[i] = (int64_t)row * 40000000;
        f->trace.n_prompt[i] = 1 + (int32_t)(ifl_draw(1, IFL_DRAW_PROMPT, row, 0) % 200);
        f->trace.n_output[i] = 1 + (int32_t)(ifl_draw(1, IFL_DRAW_OUTPUT, row, 0) % 200);
    }
}

static void set_up_batch(struct fixture *f, uint32_t n_replicas, size_t n)
{
    set_up(f, "round-robin", n_replicas, n);
    f->limits.n_blocks = 60; /* tight: requests are preempted */
    f->linear = (struct linear_cost){5e-3, 1e-4, 1e-3, 1e-6};
    fixture_vllm(f, NULL, NULL);
}

/* Three replicas in turn are three single replicas with every third request. */
Test(cluster, round_robin_is_single_replicas)
{
    enum { N = 300 };
    struct fixture f;
    struct ifl_error error;
    set_up_batch(&f, 3, 3 * N);
    mixed_load(&f, 1, 0);
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    qsort(f.capture.requests, 3 * N, sizeof *f.capture.requests, by_id);
    int32_t n_preemptions = 0;
    for (uint32_t which = 0; which < 3; which++) {
        struct fixture alone;
        set_up_batch(&alone, 1, N);
        mixed_load(&alone, 3, which);
        cr_assert_eq(fixture_fly(&alone, &error), 0, "%s", error.text);
        qsort(alone.capture.requests, N, sizeof *alone.capture.requests, by_id);
        for (size_t i = 0; i < N; i++) {
            struct ifl_request_record one = alone.capture.requests[i];
            const struct ifl_request_record *other = &f.capture.requests[3 * i + which];
            one.request_id = other->request_id;
            one.serial = other->serial; /* of all three replicas, not of one */
            one.replica = (int32_t)which;
            n_preemptions += one.preemptions;
            const size_t n_bytes = offsetof(struct ifl_request_record, status) + sizeof one.status;
            cr_assert_eq(memcmp(&one, other, n_bytes), 0, "row %zu of replica %u", i, which);
        }
        fixture_free(&alone);
    }
    cr_expect_gt(n_preemptions, 0);
    fixture_free(&f);
}

/* A session's turns meet at one replica, and sessions spread over all of them. */
Test(cluster, sessions_stay)
{
    enum { N = 2000, N_SESSIONS = 100, N_REPLICAS = 8 };
    struct fixture f;
    struct ifl_error error;
    int32_t home[N_SESSIONS + 1], n_at[N_REPLICAS] = {0};
    memset(home, -1, sizeof home);
    set_up(&f, "session", N_REPLICAS, N);
    poisson_exponential(&f, 0.5);
    f.trace.session = calloc(N, sizeof *f.trace.session);
    for (size_t i = 0; i < N; i++)
        f.trace.session[i] = 1 + (uint32_t)(ifl_draw(2, IFL_DRAW_POLICY, i, 0) % N_SESSIONS);
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    for (size_t i = 0; i < N; i++) {
        const struct ifl_request_record *r = &f.capture.requests[i];
        int32_t *at = &home[f.trace.session[r->request_id]];
        cr_assert(*at < 0 || *at == r->replica);
        *at = r->replica;
    }
    for (size_t s = 1; s <= N_SESSIONS; s++)
        if (home[s] >= 0)
            n_at[home[s]]++;
    for (size_t i = 0; i < N_REPLICAS; i++)
        cr_expect(n_at[i] > 2 && n_at[i] < 30, "replica %zu has %d of 100 sessions", i, n_at[i]);
    fixture_free(&f);
}

/* ---- rejections by the server ---- */

static double share_turned_away(const struct door *door, uint32_t n_replicas, double load)
{
    struct fixture f;
    struct ifl_error error;
    set_up(&f, "least-outstanding", n_replicas, 2000000);
    poisson_exponential(&f, load);
    f.door = *door;
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    const double share = (double)f.n_at_door / (double)f.trace.n;
    fixture_free(&f);
    return share;
}

/* M/M/1/K: a queue that holds no more than K loses (1 - load) load^K / (1 - load^(K+1)). */
Test(cluster, a_door_makes_it_mm1k)
{
    const double load = 0.9, lost = (1 - load) * pow(load, 5) / (1 - pow(load, 6));
    const double share = share_turned_away(&(struct door){.max_queued_reqs = 5}, 1, load);
    cr_expect(fabs(share - lost) < 0.02 * lost, "%g, expected %g", share, lost);
}

/* Erlang's loss formula: with as many requests as servers in the cluster, no request waits. B(c, a)
 * is a B(c-1, a) / (c + a B(c-1, a)), from B(0, a) = 1. */
Test(cluster, a_door_counts_the_whole_cluster)
{
    const double load = 0.8;
    double lost = 1;
    for (int c = 1; c <= 5; c++)
        lost = 5 * load * lost / (c + 5 * load * lost);
    const double share = share_turned_away(&(struct door){.max_queued_reqs = 5}, 5, load);
    cr_expect(fabs(share - lost) < 0.02 * lost, "%g, expected %g", share, lost);
}

/* The number of rejections out of four simultaneous requests, each with two answers to 30 tokens.
 */
static uint64_t turned_away_of_four(const struct door *door)
{
    struct fixture f = {
        .limits = {.block_tokens = 16, .n_blocks = 64, .max_model_tokens = 64, .n_clients = 1},
        .linear = {.step_s = 1},
        .max_samples = 2,
        .door = *door};
    struct ifl_error error;
    fixture_vllm(&f, NULL, NULL);
    fixture_trace(&f, 4);
    f.trace.samples = calloc(4, sizeof *f.trace.samples);
    for (size_t i = 0; i < 4; i++) {
        f.trace.n_prompt[i] = 30;
        f.trace.n_output[i] = 2;
        f.trace.samples[i] = 2;
    }
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    const uint64_t n = f.n_at_door;
    fixture_free(&f);
    return n;
}

/* The server counts each answer as a request: limits of 4 and of 5 admit two of these requests. The
 * first brings 60 queued tokens, the second makes them 120. */
Test(cluster, a_door_counts_answers)
{
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_reqs = 4}), 2);
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_reqs = 5}), 2);
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_reqs = 6}), 1);
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_tokens = 60}), 3);
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_tokens = 61}), 2);
    cr_expect_eq(turned_away_of_four(&(struct door){.max_queued_tokens = 121}), 1);
}

/* ---- news ---- */

enum { MS = 1000000 };

/* Replicas with one seat; a request takes 10 s. */
static void at_once(struct fixture *f, const char *router, const char *params, uint32_t n_replicas,
                    size_t n_requests, int64_t gap_ns)
{
    set_up(f, router, n_replicas, n_requests);
    free(f->modules[IFL_ROUTE].params);
    f->modules[IFL_ROUTE] = (struct module_config){0};
    fixture_module(f, IFL_ROUTE, router, params);
    for (size_t i = 0; i < n_requests; i++) {
        f->trace.arrival_ns[i] = (int64_t)i * gap_ns;
        f->trace.n_prompt[i] = 10000;
        f->trace.n_output[i] = 1;
    }
}

static void check_places(struct fixture *f, const char *expected)
{
    struct ifl_error error;
    cr_assert_eq(fixture_fly(f, &error), 0, "%s", error.text);
    char found[64] = "";
    for (size_t row = 0; row < f->trace.n; row++)
        for (size_t i = 0; i < f->capture.n_requests; i++)
            if (f->capture.requests[i].request_id == row)
                found[row] = (char)('0' + f->capture.requests[i].replica);
    cr_expect_str_eq(found, expected);
    fixture_free(f);
}

/* Two idle replicas, news each 100 ms, arrivals at 0, 1, 2, 3 ms: a router that does not count what
 * it sends follows the last report, in which both are idle. */
Test(cluster, old_news_send_all_to_one)
{
    struct fixture f;
    at_once(&f, "least-outstanding", "{counts_sent: false}", 2, 4, MS);
    f.news = (struct news_options){100 * MS, 0};
    check_places(&f, "0000");
}

Test(cluster, own_counts_make_up_for_old_news)
{
    struct fixture f;
    at_once(&f, "least-outstanding", NULL, 2, 4, MS);
    f.news = (struct news_options){100 * MS, 0};
    check_places(&f, "0101");
}

/* Arrivals at 0, 30, 60, ... ms. The report of 100 ms, which comes at 150, says 4 for replica 0; so
 * the requests of 150 and 180 go to replica 1. The report of 200, which comes at 250, says 5 and 2
 * (0 had 150's: no, it came at 150, behind the news): 4 + 1 of 120 = 5 at 0, 150 and 180 at 1. */
Test(cluster, a_report_is_heard_after_its_delay)
{
    struct fixture f;
    at_once(&f, "least-outstanding", "{counts_sent: false}", 2, 10, 30 * MS);
    f.news = (struct news_options){100 * MS, 50 * MS};
    check_places(&f, "0000011111");
}

/* A report counts what has been sent before it was taken, so own counts are of what came since. */
Test(cluster, own_counts_begin_with_the_report)
{
    struct fixture f;
    at_once(&f, "least-outstanding", NULL, 2, 10, 30 * MS);
    f.news = (struct news_options){100 * MS, 50 * MS};
    check_places(&f, "0101010101");
}

/* With an interval below every gap between events, and no delay, old news are as good as exact
 * ones: steps end at whole milliseconds, arrivals come half a microsecond behind. */
Test(cluster, quick_news_are_exact_ones)
{
    struct fixture f[2];
    struct ifl_error error;
    for (int old = 0; old < 2; old++) {
        set_up(&f[old], "least-outstanding", 3, 2000);
        poisson_exponential(&f[old], 0.8);
        for (size_t i = 0; i < f[old].trace.n; i++)
            f[old].trace.arrival_ns[i] = f[old].trace.arrival_ns[i] / MS * MS + 500;
        f[old].news = (struct news_options){old ? 100 : 0, 0};
        cr_assert_eq(fixture_fly(&f[old], &error), 0, "%s", error.text);
    }
    cr_assert_eq(f[0].capture.n_requests, f[1].capture.n_requests);
    cr_expect(memcmp(f[0].capture.requests, f[1].capture.requests,
                     f[0].capture.n_requests * sizeof *f[0].capture.requests) == 0);
    for (int old = 0; old < 2; old++)
        fixture_free(&f[old]);
}
