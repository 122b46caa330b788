/* Replicas that fly apart.
 *
 * Between two events that concern it, a replica depends on no other one. So it stays where it is
 * until something asks for it: an arrival that is sent to it, a request that leaves, a router that
 * reads its load. Then it flies on up to that time, with all its steps in a row, as a single
 * replica does. Nothing that is recorded depends on the order in which replicas fly; where it would
 * (rows of steps, arrivals that ends of requests cause, routers that hear of ends), the replicas
 * fly together, in flight.c. They fly together, too, from the time on when a request is held at the
 * gateway, for any end of a step may change that.
 *
 * Where news are old the router reads no replica, but what was taken of all of them at one time. So
 * all whose load has changed fly up to that time before it is taken. */
#include "run/flight_loop.h"

#include "inflight/minmax.h"

/* ---- whether they may ---- */

/* A router that hears of tokens and ends hears them in the order of time. */
static bool hears_in_order(const struct module *router)
{
    const struct ifl_route_ops *ops = router->policy->ops.route;
    return ops->on_first_token || ops->on_end;
}

static bool has_lockstep(const struct flight *flight)
{
    for (size_t i = 0; i < flight->n_pools; i++)
        if (flight->pools[i].n_ranks > 1)
            return true;
    return false;
}

/* A door counts what is in all replicas of its pool. */
static bool has_door(const struct flight *flight)
{
    for (size_t i = 0; i < flight->n_pools; i++) {
        const struct door *door = &flight->pools[i].door;
        if (door->max_queued_reqs > 0 || door->max_queued_tokens > 0 || door->max_waiting_reqs > 0)
            return true;
    }
    return false;
}

static bool has_pipeline(const struct flight *flight)
{
    bool has = false;
    for (size_t i = 0; i < flight->n_pools; i++)
        has = has || flight->pools[i].n_engines > 1;
    for (uint32_t i = 0; i < flight->n_replicas && !has; i++)
        has = replica_overlaps(&flight->replicas[i]);
    return has;
}

bool apart_flies(const struct flight *flight)
{
    return flight->n_replicas > 1 && !flight->handover && !flight->migration && !flight->swaps &&
           !flight->tiers && flight->records_in_any_order && flight->executor->durations &&
           flight->steady_runs && !flight->check_steady && !has_lockstep(flight) &&
           !has_pipeline(flight) && !has_door(flight) && !gateway_is_there(&flight->gateway) &&
           !hears_in_order(flight->router) && workload_is_open(flight->workload);
}

/* ---- one replica ---- */

/* Where durations are not foretold, or fail, the executor is asked for the one step. */
static int submit_and_wait(struct loop *loop, const struct replica *replica, struct ifl_done *done,
                           struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    int rc = flight->executor->submit(flight->executor_self, &replica->in_flight.desc, error);
    if (rc == 0)
        rc = flight->executor->next(flight->executor_self, IFL_NEVER, done, error);
    return rc;
}

static struct outlook *outlook_of(const struct loop *loop, const struct replica *replica)
{
    return &loop->lone_outlook[replica->fixed.number];
}

static int foresee(struct loop *loop, const struct replica *replica, int64_t until_ns,
                   struct ifl_done *done, struct ifl_error *error)
{
    struct outlook *outlook = outlook_of(loop, replica);
    const int64_t start_ns = replica->in_flight.desc.start_ns;
    if (!loop_look_ahead(loop->flight, replica, until_ns, outlook))
        return submit_and_wait(loop, replica, done, error);
    const int64_t duration_ns = outlook->duration_ns[outlook->at];
    *done = (struct ifl_done){.step = replica->in_flight.desc.step,
                              .replica = replica->fixed.number,
                              .start_ns = start_ns,
                              .end_ns = start_ns + duration_ns,
                              .device_ns = duration_ns};
    return 0;
}

/* Ends the committed step and those that repeat it, up to until_ns. 1: one that ends later is under
 * way; 0: a plan is due. */
static int pass_steps(struct loop *loop, struct replica *replica, struct lone *lone,
                      int64_t until_ns, struct ifl_error *error)
{
    struct ifl_done done;
    int rc = 1;
    while (rc > 0) {
        if ((rc = foresee(loop, replica, until_ns, &done, error)) < 0)
            return rc;
        lone->end_ns = done.end_ns;
        if (done.end_ns > until_ns)
            return 1;
        if (done.end_ns == until_ns || !replica_coasts(replica))
            rc = loop_end(loop, replica, &done, error);
        else
            rc = loop_coast(loop, replica, &done, until_ns, outlook_of(loop, replica), error);
    }
    lone->end_ns = IFL_NEVER;
    return rc;
}

/* Plans at the time that the plan was due. 1: a step is committed. */
static int plan(struct loop *loop, struct replica *replica, struct lone *lone,
                struct ifl_error *error)
{
    lone->last_ns = loop->now_ns = lone->due_ns;
    lone->due_ns = IFL_NEVER;
    outlook_of(loop, replica)->n = outlook_of(loop, replica)->at = 0;
    return loop_commit(loop, replica, error);
}

/* Without wakes: the replica sleeps until one, or until something comes. */
static int fly_alone(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[number];
    struct lone *lone = &loop->lone[number];
    int rc = lone->end_ns <= until_ns;
    while (rc > 0 || (rc == 0 && lone->due_ns < until_ns)) {
        if (rc == 0 && (rc = plan(loop, replica, lone, error)) <= 0)
            break;
        if ((rc = pass_steps(loop, replica, lone, until_ns, error)) != 0)
            break;
        lone->last_ns = lone->due_ns = loop->now_ns;
    }
    return ifl_min(rc, 0);
}

/* When its load may change next without a request that comes or leaves early. */
static int64_t next_change_ns(const struct lone *lone)
{
    if (lone->end_ns != IFL_NEVER)
        return lone->end_ns;
    return lone->due_ns == IFL_NEVER ? IFL_NEVER
                                     : lone->due_ns + 1; /* plans come behind arrivals */
}

/* An entry may be too early: then it is put back. */
static void expect_change(struct loop *loop, uint32_t number)
{
    struct lone *lone = &loop->lone[number];
    const int64_t at_ns = next_change_ns(lone);
    if (!loop->follows_loads || at_ns >= lone->queued_ns)
        return;
    lone->queued_ns = at_ns;
    loop->lacks_memory |= event_push(&loop->lone_changes, at_ns, number, number) < 0;
}

void apart_fall_due(struct loop *loop, const struct replica *replica)
{
    struct lone *lone = &loop->lone[replica->fixed.number];
    if (lone->due_ns == IFL_NEVER && !replica->in_flight.busy)
        lone->due_ns = loop->now_ns;
    expect_change(loop, replica->fixed.number);
}

/* It falls due if it was idle then. */
static void wake(struct loop *loop, const struct event *event)
{
    struct lone *lone = &loop->lone[event->payload];
    if (lone->last_ns < event->at_ns && lone->due_ns == IFL_NEVER && lone->end_ns == IFL_NEVER)
        lone->due_ns = event->at_ns;
    expect_change(loop, (uint32_t)event->payload);
}

/* Its load is noted. Old news say what it is at until_ns, exact ones of when. */
static void note(struct loop *loop, uint32_t number, int64_t until_ns)
{
    const bool old = news_are_old(&loop->routing.news);
    routing_note(&loop->routing, &loop->flight->replicas[number],
                 old ? until_ns : loop->lone[number].last_ns);
}

/* Up to that time, and its load is noted. */
static int bring(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error)
{
    struct lone *lone = &loop->lone[number];
    if (next_change_ns(lone) > until_ns)
        return 0;
    const int rc = fly_alone(loop, number, until_ns, error);
    note(loop, number, until_ns);
    expect_change(loop, number);
    return rc;
}

/* Replicas whose wakes come before until_ns fly up to those. *woken: that one is among them. */
static int pass_wakes(struct loop *loop, uint32_t number, int64_t until_ns, bool *woken,
                      struct ifl_error *error)
{
    int rc = 0;
    *woken = false;
    while (rc == 0 && event_next_ns(&loop->wakes) < until_ns && !*woken) {
        const struct event event = event_pop(&loop->wakes);
        rc = bring(loop, (uint32_t)event.payload, event.at_ns, error);
        wake(loop, &event);
        *woken = event.payload == number;
    }
    return rc;
}

int apart_bring(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error)
{
    const int64_t now_ns = loop->now_ns;
    bool woken;
    int rc;
    do {
        rc = bring(loop, number, until_ns, error);
        if (rc == 0)
            rc = pass_wakes(loop, number, until_ns, &woken, error);
    } while (rc == 0 && woken);
    loop->now_ns = now_ns;
    return rc;
}

/* ---- all of them ---- */

static int bring_all(struct loop *loop, int64_t until_ns, struct ifl_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++) {
        rc = apart_bring(loop, i, until_ns, error);
        if (rc == 0)
            rc = loop_check_stop(loop, error);
    }
    return rc;
}

/* All fly to the end of what they have. */
static int fly_out(struct loop *loop, struct ifl_error *error)
{
    int rc = bring_all(loop, IFL_LAST_NS, error);
    for (uint32_t i = 0; i < loop->flight->n_replicas; i++)
        loop->now_ns = ifl_max(loop->now_ns, loop->lone[i].last_ns);
    return rc;
}

/* When a request next leaves or arrives. */
static int64_t next_event_ns(struct loop *loop)
{
    const int64_t arrival_ns = workload_next_ns(loop->flight->workload);
    return loop->departures.at.n > 0 ? ifl_min(arrival_ns, loop_next_departure_ns(loop))
                                     : arrival_ns;
}

int apart_land(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    struct lone *lone = loop->lone;
    int rc = bring_all(loop, loop->now_ns, error);
    for (uint32_t i = 0; i < flight->n_replicas; i++)
        note(loop, i, loop->now_ns);
    loop->lone = NULL;
    routing_follow(&loop->routing, NULL, NULL);
    for (uint32_t i = 0; i < flight->n_replicas && rc == 0; i++) {
        struct replica *replica = &flight->replicas[i];
        if (lone[i].due_ns != IFL_NEVER)
            loop_fall_due(loop, replica);
        if (lone[i].end_ns == IFL_NEVER)
            continue;
        loop->n_busy++;
        rc = flight->executor->submit(flight->executor_self, &replica->in_flight.desc, error);
    }
    free(lone);
    return rc;
}

/* From now on lone_changes is kept. */
static int follow_loads(struct loop *loop, struct ifl_error *error)
{
    const int rc = bring_all(loop, loop->now_ns, error);
    loop->follows_loads = true;
    for (uint32_t i = 0; i < loop->flight->n_replicas; i++)
        expect_change(loop, i);
    return rc;
}

/* Those whose loads may have changed by now. */
static int bring_changed(struct loop *loop, struct ifl_error *error)
{
    const int64_t now_ns = loop->now_ns;
    bool woken;
    int rc = loop->follows_loads ? 0 : follow_loads(loop, error);
    if (rc == 0)
        rc = pass_wakes(loop, ROUTING_ALL, now_ns, &woken, error);
    loop->now_ns = now_ns;
    while (rc == 0 && event_next_ns(&loop->lone_changes) <= now_ns) {
        const struct event event = event_pop(&loop->lone_changes);
        struct lone *lone = &loop->lone[event.payload];
        if (event.at_ns != lone->queued_ns)
            continue;
        lone->queued_ns = IFL_NEVER;
        rc = apart_bring(loop, (uint32_t)event.payload, now_ns, error);
        expect_change(loop, (uint32_t)event.payload);
    }
    return rc == 0 && loop->lacks_memory ? ifl_fail_nomem(error) : rc;
}

static int bring_for_router(void *context, uint32_t number, struct ifl_error *error)
{
    struct loop *loop = context;
    return number == ROUTING_ALL ? bring_changed(loop, error)
                                 : apart_bring(loop, number, loop->now_ns, error);
}

int apart_take_off(struct loop *loop, struct ifl_error *error)
{
    const uint32_t n = loop->flight->n_replicas;
    loop->lone = malloc(n * sizeof *loop->lone);
    loop->lone_outlook = malloc(n * sizeof *loop->lone_outlook);
    if (!loop->lone || !loop->lone_outlook)
        return ifl_fail_nomem(error);
    for (uint32_t i = 0; i < n; i++) {
        struct lone *lone = &loop->lone[i];
        lone->end_ns = lone->due_ns = lone->queued_ns = IFL_NEVER;
        lone->last_ns = -1;
    }
    routing_follow(&loop->routing, bring_for_router, loop);
    return 0;
}

/* ---- old news ---- */

/* When a load changes next, or a wake may lead to that. */
static int64_t next_change_of_any_ns(struct loop *loop)
{
    const int64_t wake_ns = event_next_ns(&loop->wakes);
    int64_t next_ns = wake_ns == IFL_NEVER ? IFL_NEVER : wake_ns + 1;
    for (uint32_t i = 0; i < loop->flight->n_replicas; i++) {
        const int64_t own_ns = next_change_ns(&loop->lone[i]);
        next_ns = ifl_min(next_ns, own_ns);
    }
    return next_ns;
}

/* When loads are taken next: behind the first change since they were taken last. */
static int64_t next_take_ns(struct loop *loop)
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
        if (next_change_ns(&loop->lone[i]) <= at_ns || event_next_ns(&loop->wakes) < at_ns)
            rc = apart_bring(loop, i, at_ns, error);
    routing_hear_news(&loop->routing, at_ns);
    return rc;
}

/* The router hears what it has heard by now_ns, behind the ends of steps and requests that leave at
 * that time. */
static int hear(struct loop *loop, struct ifl_error *error)
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

int apart_run(struct loop *loop, struct ifl_error *error)
{
    int rc = 1;
    while (rc > 0) {
        for (int64_t at_ns; (at_ns = next_event_ns(loop)) != IFL_NEVER;) {
            loop->now_ns = at_ns;
            if (news_are_old(&loop->routing.news) && (rc = hear(loop, error)) < 0)
                return rc;
            if ((rc = loop_let_come_and_go(loop, error)) < 0)
                return rc;
            if (!loop->lone)
                return 1;
            if ((rc = loop_check_stop(loop, error)) < 0)
                return rc;
        }
        rc = fly_out(loop, error);
        if (rc == 0)
            rc = loop_give_up(loop, error);
    }
    return rc;
}
