/* Old news of replicas that are simulated apart.
 *
 * A router that reads a load sees the load at a time in the past, which is the same for all
 * replicas. A replica need not be simulated beyond that time, and it is simulated up to it when the
 * router first reads its load. Requests may therefore wait in mailboxes; the router's own count
 * includes them, as requests sent since the report.
 *
 * This ends when the present state of a replica is needed: the router reads its cache, a request
 * may leave early, or the replicas are simulated together. From then on all replicas are simulated
 * up to each time at which loads are taken. */
#include "run/flight_apart.h"

#include "inflight/minmax.h"

/* ---- one at a time ---- */

static int hear_of(struct loop *loop, uint32_t number, int64_t at_ns, struct ifl_error *error)
{
    struct lone *lone = &loop->lone[number];
    if (at_ns <= lone->heard_ns)
        return 0;
    lone->heard_ns = at_ns;
    const int rc = apart_reach(loop, number, at_ns, at_ns - 1, error);
    if (lone->stale)
        routing_hear_one(&loop->routing, &loop->flight->replicas[number], lone->mailbox.n);
    lone->stale = false;
    return rc;
}

static int hear_of_all(struct loop *loop, int64_t at_ns, struct ifl_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++)
        rc = hear_of(loop, i, at_ns, error);
    return rc;
}

/* The number of requests of each. */
static int hear_counts(struct loop *loop, int64_t at_ns, struct ifl_error *error)
{
    int rc = 0;
    if (at_ns <= loop->counts_heard_ns)
        return 0;
    loop->counts_heard_ns = at_ns;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++)
        if (!apart_knows_count(&loop->lone[i], at_ns))
            rc = hear_of(loop, i, at_ns, error);
    return rc;
}

int apart_hear(struct loop *loop, uint32_t number, enum routing_look look, struct ifl_error *error)
{
    const int64_t at_ns = news_heard_of_ns(&loop->routing.news, loop->now_ns);
    if (loop->takes_news)
        return 0;
    if (number == ROUTING_ALL)
        return hear_counts(loop, at_ns, error);
    if (look == LOOKS_AT_COUNTS && apart_knows_count(&loop->lone[number], at_ns))
        return 0;
    loop->routing.loads[number].taken_ns = at_ns;
    return hear_of(loop, number, at_ns, error);
}

/* ---- all of them ---- */

/* All come to at_ns, and live news say so. joined_ns: apart_reach. */
static int reach_all(struct loop *loop, int64_t at_ns, int64_t joined_ns, struct ifl_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++) {
        rc = apart_reach(loop, i, at_ns, joined_ns, error);
        loop->lone[i].stale = false;
        routing_note(&loop->routing, &loop->flight->replicas[i], at_ns);
        loop->routing.news.live[i].n_routed -= loop->lone[i].mailbox.n;
    }
    return rc;
}

/* What the router knows is noted, then the reports that are on their way, as if all had been taken.
 */
int apart_take_news(struct loop *loop, struct ifl_error *error)
{
    struct news *news = &loop->routing.news;
    const int64_t now_ns = loop->now_ns, interval_ns = news->options.interval_ns;
    if (!news_are_old(news) || loop->takes_news)
        return 0;
    int64_t at_ns = news_heard_of_ns(news, now_ns);
    int rc = hear_of_all(loop, at_ns, error);
    if (rc == 0 && routing_open_news(&loop->routing) < 0)
        rc = ifl_fail_nomem(error);
    while (rc == 0 && (at_ns += interval_ns) <= now_ns) {
        rc = reach_all(loop, at_ns, at_ns - 1, error);
        news_take_now(news, at_ns);
    }
    news->heard_ns = now_ns;
    loop->takes_news = true;
    return rc == 0 ? reach_all(loop, now_ns, now_ns, error) : rc;
}

/* When a load changes next. */
static int64_t next_change_of_any_ns(const struct loop *loop)
{
    int64_t next_ns = IFL_NEVER;
    for (uint32_t i = 0; i < loop->flight->n_replicas; i++) {
        const int64_t own_ns = apart_next_change_ns(&loop->lone[i]);
        next_ns = ifl_min(next_ns, own_ns);
    }
    return next_ns;
}

/* When loads are taken next: behind the first change since they were taken last. */
static int64_t next_take_ns(const struct loop *loop)
{
    const struct news *news = &loop->routing.news;
    if (news->next_take_ns != IFL_NEVER)
        return news->next_take_ns;
    const int64_t change_ns = next_change_of_any_ns(loop);
    return change_ns == IFL_NEVER ? IFL_NEVER : news_take_ns(news, change_ns);
}

static int take(struct loop *loop, int64_t at_ns, struct ifl_error *error)
{
    int rc = 0;
    loop->now_ns = at_ns;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++)
        if (apart_next_change_ns(&loop->lone[i]) <= at_ns)
            rc = apart_bring(loop, i, at_ns, error);
    routing_hear_news(&loop->routing, at_ns);
    return rc;
}

int apart_hear_reports(struct loop *loop, struct ifl_error *error)
{
    const int64_t now_ns = loop->now_ns;
    int64_t at_ns = IFL_NEVER;
    int rc = 0;
    while (rc == 0 && (at_ns = next_take_ns(loop)) < now_ns)
        rc = take(loop, at_ns, error);
    loop->now_ns = now_ns;
    if (rc == 0)
        rc = loop_let_leave(loop, error);
    if (rc == 0 && next_take_ns(loop) == now_ns)
        rc = take(loop, now_ns, error);
    routing_hear_news(&loop->routing, now_ns);
    return rc;
}
