/* Saturation is found above capacity and only there, whichever requests wait. The queues have a
 * known load: one server under four disciplines, 50 runs each. */
#include "record/saturation.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "inflight/random.h"

enum { MANY = 5000, FEW = 1000, N_SEEDS = 50, TOKENS_A_SECOND = 1000 };

/* Requests with their service times, numbered by arrival. */
struct queue {
    double service_s[MANY], left_s[MANY];
    struct life lives[MANY];
    struct rare rares[MANY];
};

static bool is_saturated(const struct queue *queue, size_t n)
{
    struct saturation saturation;
    saturation_begin(&saturation, queue->lives[0].arrival_ns,
                     queue->lives[n ? n - 1 : 0].arrival_ns);
    for (size_t i = 0; i < n; i++)
        saturation_add(&saturation, &queue->lives[i]);
    return saturation_found(&saturation);
}

static void arrive(struct queue *queue, size_t i, double arrival_s, double service_s)
{
    queue->service_s[i] = queue->left_s[i] = service_s;
    queue->rares[i] = (struct rare){0};
    queue->lives[i] = (struct life){.arrival_ns = ifl_ns_from_s(arrival_s),
                                    .rare = &queue->rares[i],
                                    .first_scheduled_ns = IFL_NEVER,
                                    .end_ns = IFL_NEVER,
                                    .output_tokens = (int32_t)(service_s * TOKENS_A_SECOND) + 1,
                                    .status = IFL_FINISHED};
}

static void begin(struct queue *queue, size_t i, double now_s)
{
    if (queue->lives[i].first_scheduled_ns == IFL_NEVER)
        queue->lives[i].first_scheduled_ns = ifl_ns_from_s(now_s);
}

/* The time after the first start without service is stall time. */
static void end(struct queue *queue, size_t i, double now_s)
{
    struct life *life = &queue->lives[i];
    life->end_ns = ifl_ns_from_s(now_s);
    const int64_t stalled_ns =
        life->end_ns - life->first_scheduled_ns - ifl_ns_from_s(queue->service_s[i]);
    queue->rares[i].stalled_ns = stalled_ns > 1 ? stalled_ns : 0;
}

static double exponential(uint64_t draw)
{
    return -log(ifl_uniform(draw));
}

/* Poisson arrivals, services of 1 s on average. */
static void arrive_all(struct queue *queue, size_t n, double load, bool equal, uint64_t seed)
{
    double arrival_s = 0;
    for (size_t i = 0; i < n; i++) {
        arrival_s += exponential(ifl_draw(seed, IFL_DRAW_ARRIVAL, i, 0)) / load;
        arrive(queue, i, arrival_s, equal ? 1 : exponential(ifl_draw(seed, IFL_DRAW_OUTPUT, i, 0)));
    }
}

static double arrival_s(const struct queue *queue, size_t i, size_t n)
{
    return i < n ? ifl_s_from_ns(queue->lives[i].arrival_ns) : (double)INFINITY;
}

/* ---- one request in service ---- */

/* Whether a new request goes before one that is present. */
typedef bool before_fn(const struct queue *queue, uint32_t newcomer, uint32_t there);

static bool never(const struct queue *queue, uint32_t newcomer, uint32_t there)
{
    (void)queue, (void)newcomer, (void)there;
    return false;
}

static bool always(const struct queue *queue, uint32_t newcomer, uint32_t there)
{
    return !never(queue, newcomer, there);
}

static bool shorter(const struct queue *queue, uint32_t newcomer, uint32_t there)
{
    return queue->service_s[newcomer] < queue->service_s[there];
}

/* The server works on the last entry of `present` until it is done or a new request goes before it.
 */
static void serve(struct queue *queue, size_t n, before_fn *before)
{
    static uint32_t present[MANY];
    size_t n_present = 0, next = 0;
    double now_s = 0;
    while (next < n || n_present > 0) {
        const uint32_t served = n_present ? present[n_present - 1] : 0;
        const double done_s = n_present ? now_s + queue->left_s[served] : (double)INFINITY;
        const double newcomer_s = arrival_s(queue, next, n);
        if (n_present)
            begin(queue, served, now_s);
        if (done_s <= newcomer_s) {
            end(queue, served, now_s = done_s);
            n_present--;
            continue;
        }
        if (n_present)
            queue->left_s[served] -= newcomer_s - now_s;
        size_t at = n_present++;
        for (; at > 0 && !before(queue, (uint32_t)next, present[at - 1]); at--)
            present[at] = present[at - 1];
        present[at] = (uint32_t)next++;
        now_s = newcomer_s;
    }
}

static void first_come(struct queue *queue, size_t n, double load, uint64_t seed)
{
    arrive_all(queue, n, load, true, seed);
    serve(queue, n, never);
}

static void last_come(struct queue *queue, size_t n, double load, uint64_t seed)
{
    arrive_all(queue, n, load, true, seed);
    serve(queue, n, always);
}

/* The longest 2% of requests have a tenth of the work: when they starve, few requests wait. */
static void shortest_first(struct queue *queue, size_t n, double load, uint64_t seed)
{
    arrive_all(queue, n, load, false, seed);
    serve(queue, n, shorter);
}

/* ---- all requests in service ---- */

/* With equal service times of 1 s requests finish in order of arrival: `head` is done when each
 * present request has received 1 s of service since its arrival. */
static void processor_sharing(struct queue *queue, size_t n, double load, uint64_t seed)
{
    static double served_before_s[MANY];
    double now_s = 0, served_s = 0; /* service per request since time 0 */
    arrive_all(queue, n, load, true, seed);
    for (size_t head = 0, next = 0; head < n;) {
        const double present = (double)(next - head);
        const double done_s = next > head ? now_s + (served_before_s[head] + 1 - served_s) * present
                                          : (double)INFINITY;
        const double newcomer_s = arrival_s(queue, next, n);
        if (done_s <= newcomer_s) {
            served_s = served_before_s[head] + 1;
            end(queue, head++, now_s = done_s);
            continue;
        }
        served_s += next > head ? (newcomer_s - now_s) / present : 0;
        served_before_s[next] = served_s;
        begin(queue, next++, now_s = newcomer_s);
    }
}

/* ---- known loads ---- */

typedef void discipline_fn(struct queue *queue, size_t n, double load, uint64_t seed);

static struct queue queue;

static int n_saturated(discipline_fn *discipline, size_t n, double load)
{
    int n_found = 0;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        discipline(&queue, n, load, seed);
        n_found += is_saturated(&queue, n);
    }
    return n_found;
}

/* Random excursions make a few short runs look saturated; just above capacity a short run may look
 * unsaturated. */
static void expect_told(discipline_fn *discipline)
{
    cr_expect_eq(n_saturated(discipline, FEW, 0.5), 0);
    cr_expect_eq(n_saturated(discipline, MANY, 0.5), 0);
    cr_expect_leq(n_saturated(discipline, FEW, 0.9), 4);
    cr_expect_leq(n_saturated(discipline, MANY, 0.9), 1);
    cr_expect_geq(n_saturated(discipline, FEW, 1.1), N_SEEDS / 2);
    cr_expect_geq(n_saturated(discipline, MANY, 1.1), 46);
    cr_expect_eq(n_saturated(discipline, FEW, 1.5), N_SEEDS);
    cr_expect_eq(n_saturated(discipline, MANY, 1.5), N_SEEDS);
}

Test(saturation, first_come_first_served)
{
    expect_told(first_come);
}

Test(saturation, last_come_first_served)
{
    expect_told(last_come);
}

Test(saturation, shortest_first)
{
    expect_told(shortest_first);
}

Test(saturation, processor_sharing)
{
    expect_told(processor_sharing);
}

/* ---- loads that are no overload ---- */

Test(saturation, a_burst_is_not_judged)
{
    for (size_t i = 0; i < FEW; i++)
        arrive(&queue, i, 0, 1);
    serve(&queue, FEW, never);
    cr_expect_not(is_saturated(&queue, FEW));
    cr_expect_not(is_saturated(&queue, 0));
}

Test(saturation, a_constant_delay_is_not_growth)
{
    for (size_t i = 0; i < FEW; i++) {
        arrive(&queue, i, (double)i, 1);
        begin(&queue, i, (double)i + 500);
        end(&queue, i, (double)i + 501);
    }
    cr_expect_not(is_saturated(&queue, FEW));
}

/* No request finishes before the last arrival: the number in service grows, but none waits. */
Test(saturation, a_ramp_without_delay_is_not)
{
    for (size_t i = 0; i < FEW; i++) {
        arrive(&queue, i, (double)i, 2 * FEW);
        begin(&queue, i, (double)i);
        end(&queue, i, (double)i + 2 * FEW);
    }
    cr_expect_not(is_saturated(&queue, FEW));
}

/* ---- requests that do not finish ---- */

Test(saturation, the_rejected_do_not_count)
{
    first_come(&queue, MANY, 1.5, 1);
    for (size_t i = 0; i < MANY; i++)
        if (i % 100 != 0) {
            queue.lives[i].status = IFL_REJECTED;
            queue.lives[i].first_scheduled_ns = queue.lives[i].end_ns = IFL_NEVER;
        }
    cr_expect_not(is_saturated(&queue, MANY), "25 are not judged");
}

Test(saturation, a_failed_request_has_waited_until_its_start)
{
    first_come(&queue, MANY, 1.5, 1);
    for (size_t i = 0; i < MANY; i++) {
        queue.lives[i].status = IFL_FAILED;
        queue.lives[i].end_ns = IFL_NEVER;
        queue.rares[i].stalled_ns = IFL_NS_PER_S;
    }
    cr_expect(is_saturated(&queue, MANY));
}
