/* Queueing theory: one sequence at a time is an M/G/1 queue, with a known mean wait.
 *
 * Pollaczek-Khinchine: E[W] = lambda E[S^2] / (2 (1 - rho)); for constant service, M/D/1,
 * rho S / (2 (1 - rho)). The simulated mean must lie within three standard errors, estimated by
 * the method of batch means (64 batches; queues forget slowly, so the batches are long).
 *
 * With c seats and clients that leave the queue after an exponential time it is M/M/c+M (Erlang A;
 * Palm 1957; Mandelbaum and Zeltyn, "Service engineering in action", 2007, section 2): a birth and
 * death process with birth rate lambda and death rate min(n, c) mu + max(n - c, 0) theta. With Q
 * the number that waits, E[W] = E[Q] / lambda, and theta E[Q] / lambda of the clients leave.
 *
 * Where each of c servers has a queue of its own and an arrival joins the shortest (Haight,
 * Biometrika 45, 1958; Kingman, Ann. Math. Statist. 32, 1961), the lengths in order of size are a
 * Markov chain with an exact equilibrium, found here by iteration: E[T] = E[N] / lambda. */
#include <criterion/criterion.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "fixture.h"

enum { N_REQUESTS = 640000, N_WARM_UP = 64000, N_BATCHES = 64 };

enum law { CONSTANT, GEOMETRIC, TWO_POINT };

/* Output lengths with mean 8; a request occupies one step of one second a token. */
static int32_t draw_steps(enum law law, size_t i)
{
    const double u = ifl_uniform(ifl_draw(11, IFL_DRAW_OUTPUT, i, 0));
    if (law == CONSTANT)
        return 8;
    if (law == TWO_POINT)
        return u < 0.75 ? 2 : 26;                           /* 0.75 x 2 + 0.25 x 26 = 8 */
    return 1 + (int32_t)floor(log(u) / log(1.0 - 1.0 / 8)); /* P(n) = (7/8)^(n-1) / 8 */
}

static double mean_square(enum law law)
{
    if (law == CONSTANT)
        return 64;
    if (law == TWO_POINT)
        return 0.75 * 4 + 0.25 * 676;
    const double p = 1.0 / 8;
    return (2 - p) / (p * p);
}

static int by_arrival(const void *a, const void *b)
{
    const struct ifl_request_record *x = a, *y = b;
    return x->request_id < y->request_id ? -1 : x->request_id > y->request_id;
}

static void mean_wait(const struct capture *c, double *mean, double *standard_error)
{
    const size_t per_batch = (N_REQUESTS - N_WARM_UP) / N_BATCHES;
    double batch[N_BATCHES] = {0};
    for (size_t i = 0; i < N_BATCHES * per_batch; i++) {
        const struct ifl_request_record *r = &c->requests[N_WARM_UP + i];
        batch[i / per_batch] += ifl_s_from_ns(r->first_scheduled_ns - r->arrival_ns);
    }
    for (size_t b = 0; b < N_BATCHES; b++)
        batch[b] /= (double)per_batch;
    *mean = gsl_stats_mean(batch, 1, N_BATCHES);
    *standard_error = gsl_stats_sd(batch, 1, N_BATCHES) / sqrt(N_BATCHES);
}

/* Little's law: the time average of the number in the system is the arrival rate times the mean
 * time in it, exactly, over a run that starts and ends empty. */
static void check_little(const struct capture *c)
{
    double area_s = 0, from_requests_s = 0;
    for (size_t i = 0; i < c->n_requests; i++)
        from_requests_s += ifl_s_from_ns(c->requests[i].finish_ns - c->requests[i].arrival_ns);
    /* the number in the system, integrated over the steps and the gaps before their starts */
    size_t arrived = 0, ended = 0;
    int64_t last_ns = 0;
    int64_t *finish = malloc(c->n_requests * sizeof *finish);
    for (size_t i = 0; i < c->n_requests; i++)
        finish[i] = c->requests[i].finish_ns; /* one server, first come first served: sorted */
    while (ended < c->n_requests) {
        const bool arrival =
            arrived < c->n_requests && c->requests[arrived].arrival_ns <= finish[ended];
        const int64_t at_ns = arrival ? c->requests[arrived].arrival_ns : finish[ended];
        area_s += (double)(arrived - ended) * ifl_s_from_ns(at_ns - last_ns);
        last_ns = at_ns;
        *(arrival ? &arrived : &ended) += 1;
    }
    free(finish);
    cr_assert(fabs(area_s - from_requests_s) < 1e-6 * area_s, "Little: %g and %g", area_s,
              from_requests_s);
}

static void check_law(enum law law, double load)
{
    struct fixture f = {.limits = {.block_tokens = 16, .n_blocks = 1000, .max_model_tokens = 10000},
                        .linear = {.step_s = 1}};
    struct ifl_error error;
    double at_s = 0, mean, standard_error;
    fixture_module(&f, IFL_BATCHING, "mixed", "{max_seqs: 1}");
    fixture_module(&f, IFL_ORDER, "fcfs", NULL);
    fixture_module(&f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(&f, IFL_PREEMPT, "tail", NULL);
    fixture_trace(&f, N_REQUESTS);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        const double u = ifl_uniform(ifl_draw(3, IFL_DRAW_ARRIVAL, i, 0));
        at_s += gsl_cdf_exponential_Pinv(u, 8 / load);
        f.trace.arrival_ns[i] = ifl_ns_from_s(at_s);
        f.trace.n_prompt[i] = 1;
        f.trace.n_output[i] = draw_steps(law, i);
    }
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_assert_eq(f.capture.n_requests, N_REQUESTS);
    qsort(f.capture.requests, N_REQUESTS, sizeof *f.capture.requests, by_arrival);
    mean_wait(&f.capture, &mean, &standard_error);
    const double expected = load / 8 * mean_square(law) / (2 * (1 - load));
    cr_assert(fabs(mean - expected) < 3 * standard_error,
              "load %g: mean wait %g, expected %g +- %g", load, mean, expected, standard_error);
    cr_assert(standard_error < 0.1 * expected, "the estimate is too loose to test anything");
    check_little(&f.capture);
    fixture_free(&f);
}

Test(queueing, md1_low)
{
    check_law(CONSTANT, 0.3);
}
Test(queueing, md1_middle)
{
    check_law(CONSTANT, 0.6);
}
Test(queueing, md1_high)
{
    check_law(CONSTANT, 0.9);
}
Test(queueing, geometric_low)
{
    check_law(GEOMETRIC, 0.3);
}
Test(queueing, geometric_middle)
{
    check_law(GEOMETRIC, 0.6);
}
Test(queueing, geometric_high)
{
    check_law(GEOMETRIC, 0.9);
}
Test(queueing, two_point_low)
{
    check_law(TWO_POINT, 0.3);
}
Test(queueing, two_point_middle)
{
    check_law(TWO_POINT, 0.6);
}
Test(queueing, two_point_high)
{
    check_law(TWO_POINT, 0.9);
}

/* ---- Erlang A ---- */

enum { N_IMPATIENT = 400000, SERVICE_STEPS = 1000 };

struct erlang_a {
    int32_t n_seats;
    double load;          /* lambda / (c mu) */
    double patience_mean; /* of services */
};

static double mean_queue(const struct erlang_a *q)
{
    const double mu = 1.0 / SERVICE_STEPS, theta = mu / q->patience_mean;
    const double lambda = q->load * q->n_seats * mu;
    double p = 1, sum = 1, waiting = 0;
    for (int n = 1; n < 2000; n++) {
        const int served = n < q->n_seats ? n : q->n_seats;
        p *= lambda / (served * mu + (n - served) * theta);
        sum += p;
        waiting += (n - served) * p;
    }
    return waiting / sum;
}

static void roll_impatient(struct fixture *f, const struct erlang_a *q)
{
    double at_s = 0;
    fixture_trace(f, N_IMPATIENT);
    for (size_t i = 0; i < N_IMPATIENT; i++) {
        const double u = ifl_uniform(ifl_draw(5, IFL_DRAW_ARRIVAL, i, 0));
        const double v = ifl_uniform(ifl_draw(5, IFL_DRAW_OUTPUT, i, 0));
        at_s += gsl_cdf_exponential_Pinv(u, SERVICE_STEPS / (q->load * q->n_seats));
        f->trace.arrival_ns[i] = ifl_ns_from_s(at_s);
        f->trace.n_prompt[i] = 1;
        f->trace.n_output[i] = (int32_t)ceil(gsl_cdf_exponential_Pinv(v, SERVICE_STEPS));
    }
}

/* The waits of all clients and the share that left, in batches. */
static void measure(const struct fixture *f, double wait[N_BATCHES], double left[N_BATCHES])
{
    const size_t n_warm_up = N_IMPATIENT / 10, per_batch = (N_IMPATIENT - n_warm_up) / N_BATCHES;
    for (size_t i = 0; i < N_BATCHES * per_batch; i++) {
        const struct ifl_request_record *r = &f->capture.requests[n_warm_up + i];
        const bool aborted = r->status == IFL_ABORTED;
        const int64_t ns = aborted ? patience_ns(&f->patience, r->request_id)
                                   : r->first_scheduled_ns - r->arrival_ns;
        wait[i / per_batch] += ifl_s_from_ns(ns) / (double)per_batch;
        left[i / per_batch] += (double)aborted / (double)per_batch;
    }
}

static void check_mean(const char *what, const double of[N_BATCHES], double expected)
{
    const double mean = gsl_stats_mean(of, 1, N_BATCHES);
    const double standard_error = gsl_stats_sd(of, 1, N_BATCHES) / sqrt(N_BATCHES);
    cr_expect(fabs(mean - expected) < 3 * standard_error, "%s: %g, expected %g +- %g", what, mean,
              expected, standard_error);
    cr_expect(standard_error < 0.01 * expected, "%s: %g +- %g is too loose", what, mean,
              standard_error);
}

static void check_erlang_a(struct erlang_a q)
{
    struct fixture f = {
        .limits = {.block_tokens = 16, .n_blocks = 100000, .max_model_tokens = 100000},
        .linear = {.step_s = 1},
        .patience = {.process = PATIENCE_EXPONENTIAL,
                     .mean_s = q.patience_mean * SERVICE_STEPS,
                     .until_first_token = true,
                     .seed = 9}};
    struct ifl_error error;
    double wait[N_BATCHES] = {0}, left[N_BATCHES] = {0};
    char seats[32];
    snprintf(seats, sizeof seats, "{max_seqs: %d}", q.n_seats);
    fixture_module(&f, IFL_BATCHING, "mixed", seats);
    fixture_module(&f, IFL_ORDER, "fcfs", NULL);
    fixture_module(&f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(&f, IFL_PREEMPT, "tail", NULL);
    roll_impatient(&f, &q);
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    cr_assert_eq(f.capture.n_requests, N_IMPATIENT);
    qsort(f.capture.requests, N_IMPATIENT, sizeof *f.capture.requests, by_arrival);
    measure(&f, wait, left);
    const double queue = mean_queue(&q), lambda = q.load * q.n_seats / SERVICE_STEPS;
    check_mean("mean wait", wait, queue / lambda);
    check_mean("share that leaves", left, queue / lambda / (q.patience_mean * SERVICE_STEPS));
    fixture_free(&f);
}

Test(queueing, erlang_a_one_seat, .timeout = 600)
{
    check_erlang_a((struct erlang_a){1, 0.9, 1});
}
Test(queueing, erlang_a_four_seats, .timeout = 600)
{
    check_erlang_a((struct erlang_a){4, 1.0, 2});
}
Test(queueing, erlang_a_overload, .timeout = 600)
{
    check_erlang_a((struct erlang_a){8, 1.5, 0.5});
}

/* ---- join the shortest queue ---- */

enum { N_JOINING = 48000, LONGEST = 40, MOST_SERVERS = 3, N_STATES = LONGEST * LONGEST * LONGEST };

/* The place of the lengths, in order of size; servers that are not there have length 0. */
static size_t place_of(const int length[MOST_SERVERS])
{
    int of[MOST_SERVERS];
    memcpy(of, length, sizeof of);
    for (int i = 1; i < MOST_SERVERS; i++)
        for (int k = i; k > 0 && of[k] < of[k - 1]; k--) {
            const int longer = of[k - 1];
            of[k - 1] = of[k];
            of[k] = longer;
        }
    return ((size_t)of[0] * LONGEST + (size_t)of[1]) * LONGEST + (size_t)of[2];
}

/* Moves the probability p to the state with one more or less at server i. */
static void move(double *to, const int length[MOST_SERVERS], int i, int by, double p)
{
    int next[MOST_SERVERS];
    memcpy(next, length, sizeof next);
    next[i] += by;
    to[place_of(next)] += p;
    to[place_of(length)] -= p;
}

/* One step of the chain, in which at most one of the events happens; mu is 1. */
static void step_chain(const double *from, double *to, int n_servers, double lambda)
{
    const double all = lambda + n_servers;
    int length[MOST_SERVERS] = {0, 0, 0}; /* ascends; servers that are not there come first */
    const int first = MOST_SERVERS - n_servers;
    memcpy(to, from, N_STATES * sizeof *to);
    for (length[0] = 0; length[0] < (first > 0 ? 1 : LONGEST); length[0]++)
        for (length[1] = length[0]; length[1] < LONGEST; length[1]++)
            for (length[2] = length[1]; length[2] < LONGEST; length[2]++) {
                const double p = from[place_of(length)];
                if (p > 0 && length[first] < LONGEST - 1)
                    move(to, length, first, 1, p * lambda / all);
                for (int i = first; p > 0 && i < MOST_SERVERS; i++)
                    if (length[i] > 0)
                        move(to, length, i, -1, p / all);
            }
}

static double mean_of(const double *p)
{
    double mean = 0;
    for (size_t at = 0; at < N_STATES; at++)
        mean += p[at] * (double)(at / LONGEST / LONGEST + at / LONGEST % LONGEST + at % LONGEST);
    return mean;
}

static double mean_in_system(int n_servers, double lambda)
{
    double *p = calloc(N_STATES, sizeof *p), *next = calloc(N_STATES, sizeof *next);
    double mean = -1, before = -2;
    p[0] = 1;
    while (fabs(mean - before) > 1e-9) {
        before = mean;
        for (int i = 0; i < 100; i++) {
            step_chain(p, next, n_servers, lambda);
            double *swapped = p;
            p = next;
            next = swapped;
        }
        mean = mean_of(p);
    }
    free(p);
    free(next);
    return mean;
}

/* With one server the chain is M/M/1. With two it is better than two queues that are chosen at
 * random and worse than one queue for both, M/M/2. */
Test(queueing, the_chain_of_shortest_queues_has_its_bounds)
{
    const double rho = 0.5, mm2 = 2 * rho / (1 - rho * rho), mm1 = rho / (1 - rho);
    const double two = mean_in_system(2, 2 * rho);
    cr_expect(fabs(mean_in_system(1, rho) - mm1) < 1e-6);
    cr_expect(mm2 < two && two < 2 * mm1, "%g is not between %g and %g", two, mm2, 2 * mm1);
}

static void check_shortest(uint32_t n_servers, double load)
{
    struct fixture f = {
        .limits = {.block_tokens = 16, .n_blocks = 100000, .max_model_tokens = 100000},
        .linear = {.step_s = 1},
        .n_replicas = n_servers};
    const double lambda = load * n_servers;
    double at_s = 0, time_s[N_BATCHES] = {0};
    struct ifl_error error;
    fixture_module(&f, IFL_BATCHING, "mixed", "{max_seqs: 1}");
    fixture_module(&f, IFL_ORDER, "fcfs", NULL);
    fixture_module(&f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(&f, IFL_PREEMPT, "tail", NULL);
    fixture_module(&f, IFL_ROUTE, "least-outstanding", NULL);
    fixture_trace(&f, N_JOINING);
    for (size_t i = 0; i < N_JOINING; i++) {
        const double u = ifl_uniform(ifl_draw(13, IFL_DRAW_ARRIVAL, i, 0));
        const double v = ifl_uniform(ifl_draw(13, IFL_DRAW_OUTPUT, i, 0));
        at_s += gsl_cdf_exponential_Pinv(u, SERVICE_STEPS / lambda);
        f.trace.arrival_ns[i] = ifl_ns_from_s(at_s);
        f.trace.n_prompt[i] = 1;
        f.trace.n_output[i] = (int32_t)ceil(gsl_cdf_exponential_Pinv(v, SERVICE_STEPS));
    }
    cr_assert_eq(fixture_fly(&f, &error), 0, "%s", error.text);
    qsort(f.capture.requests, N_JOINING, sizeof *f.capture.requests, by_arrival);
    const size_t n_warm_up = N_JOINING / 10, per_batch = (N_JOINING - n_warm_up) / N_BATCHES;
    for (size_t i = 0; i < N_BATCHES * per_batch; i++) {
        const struct ifl_request_record *r = &f.capture.requests[n_warm_up + i];
        time_s[i / per_batch] += ifl_s_from_ns(r->finish_ns - r->arrival_ns) / (double)per_batch;
    }
    const double expected_s = mean_in_system((int)n_servers, lambda) / lambda * SERVICE_STEPS;
    check_mean("mean time with the shortest queue", time_s, expected_s);
    fixture_free(&f);
}

Test(queueing, two_shortest_queues, .timeout = 600)
{
    check_shortest(2, 0.4);
}
Test(queueing, three_shortest_queues, .timeout = 600)
{
    check_shortest(3, 0.45);
}
