/* Replicas that are simulated apart.
 *
 * Between two events that concern it, a replica does not depend on other replicas. It therefore
 * stays at its last time until an event needs it: an arrival sent to it, a request that leaves, or
 * a router that reads its load. Then it is simulated up to that time, through all its steps in a
 * row, as a single replica is.
 *
 * The order in which the replicas are simulated must not affect any record. If it would, the
 * replicas are simulated together, in flight.c: with rows of steps, with arrivals that ends of
 * requests cause, and with routers that have hooks for tokens and ends. They are also simulated
 * together once the gateway holds a request, since any end of a step may release it.
 *
 * A request that is sent to a replica without a look at it is put into the replica's mailbox
 * (flight_mail.h). The replica takes it when an event needs the replica, or when the mailboxes are
 * full.
 *
 * A router that reads numbers of requests (counts, least) often needs no simulation. The number
 * does not change during predicted steps, in which no request ends and after which nothing is
 * planned (next_end_ns), and a request in the mailbox counts as waiting. The replica is then
 * simulated about three times per request: when the step ends in which the request arrived, when
 * its prompt is computed, and when it ends.
 *
 * flight_news.c handles old news. */
#include "run/flight_apart.h"

#include "inflight/minmax.h"

#include "replica/warm.h"

static void free_lone(struct lone *lone, uint32_t n)
{
    for (uint32_t i = 0; lone && i < n; i++)
        event_heap_destroy(&lone[i].wakes);
    free(lone);
}

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
IFL_APART static int submit_and_wait(struct loop *loop, const struct replica *replica,
                                     struct ifl_done *done, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    int rc = flight->executor->submit(flight->executor_self, &replica->in_flight.desc, error);
    if (rc == 0)
        rc = flight->executor->next(flight->executor_self, IFL_NEVER, done, error);
    return rc;
}

IFL_HOT static int foresee(struct loop *loop, const struct replica *replica, int64_t until_ns,
                           struct ifl_done *done, struct ifl_error *error)
{
    struct outlook *outlook = &loop->outlook;
    const int64_t start_ns = replica->in_flight.desc.start_ns;
    const int64_t tick_ns = ifl_min(replica->in_flight.tick_ns, (int64_t)INT32_MAX);
    const int64_t ahead_ns = start_ns + APART_ENDS_AHEAD * tick_ns;
    const int64_t end_ns = loop->follows_counts ? ifl_max(until_ns, ahead_ns) : until_ns;
    if (!loop_look_ahead(loop->flight, replica, end_ns, outlook))
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
IFL_HOT static int pass_steps(struct loop *loop, struct replica *replica, struct lone *lone,
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
            rc = loop_coast(loop, replica, &done, until_ns, &loop->outlook, error);
    }
    lone->end_ns = IFL_NEVER;
    return rc;
}

/* Plans at the time that the plan was due. 1: a step is committed. */
IFL_HOT static int plan(struct loop *loop, struct replica *replica, struct lone *lone,
                        struct ifl_error *error)
{
    lone->last_ns = loop->now_ns = lone->due_ns;
    lone->due_ns = IFL_NEVER;
    loop->outlook.n = loop->outlook.at = 0;
    return loop_commit(loop, replica, error);
}

/* Where the step under way is not followed by others like it, nothing else is to be foretold. */
static void recall_duration(struct loop *loop, const struct replica *replica,
                            const struct lone *lone)
{
    struct outlook *outlook = &loop->outlook;
    outlook->at = 0;
    outlook->n = lone->end_ns != IFL_NEVER && !replica_coasts(replica);
    outlook->duration_ns[0] = lone->end_ns - replica->in_flight.desc.start_ns;
}

/* Without wakes: the replica sleeps until one, or until something comes. */
IFL_HOT static int fly_alone(struct loop *loop, uint32_t number, int64_t until_ns,
                             struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[number];
    struct lone *lone = &loop->lone[number];
    int rc = lone->end_ns <= until_ns;
    recall_duration(loop, replica, lone);
    while (rc > 0 || (rc == 0 && lone->due_ns < until_ns)) {
        if (rc == 0 && (rc = plan(loop, replica, lone, error)) <= 0)
            break;
        if ((rc = pass_steps(loop, replica, lone, until_ns, error)) != 0)
            break;
        lone->last_ns = lone->due_ns = loop->now_ns;
    }
    return ifl_min(rc, 0);
}

/* True: it falls due before until_ns, since it was idle at the time of a wake. */
static bool wakes_before(struct lone *lone, int64_t until_ns)
{
    while (event_next_ns(&lone->wakes) < until_ns) {
        const int64_t at_ns = event_pop(&lone->wakes).at_ns;
        if (lone->last_ns >= at_ns || lone->due_ns != IFL_NEVER || lone->end_ns != IFL_NEVER)
            continue;
        lone->due_ns = at_ns;
        return true;
    }
    return false;
}

/* Through all that happens to it before until_ns but arrivals, and the end of a step at that time.
 */
IFL_HOT static int fly(struct loop *loop, uint32_t number, int64_t until_ns,
                       struct ifl_error *error)
{
    int rc;
    do {
        rc = fly_alone(loop, number, until_ns, error);
    } while (rc == 0 && wakes_before(&loop->lone[number], until_ns));
    return rc;
}

static void fall_due(struct lone *lone, const struct replica *replica, int64_t now_ns)
{
    if (lone->due_ns == IFL_NEVER && !replica->in_flight.busy)
        lone->due_ns = now_ns;
    lone->last_ns = ifl_max(lone->last_ns, now_ns);
}

static int let_join(struct loop *loop, uint32_t number, struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[number];
    struct arrival a;
    mail_take(&loop->mail, &loop->lone[number].mailbox, loop->flight->workload, &a);
    const int rc = replica_join(replica, &a, a.at_ns, NULL, error);
    loop->now_ns = a.at_ns;
    fall_due(&loop->lone[number], replica, a.at_ns);
    return rc;
}

/* When the number of its requests may change next if nothing comes, once it has flown. Ticks that
 * are foretold and sure to follow the one under way do not change it. */
IFL_HOT static int64_t next_end_ns(const struct loop *loop, uint32_t number, struct lone *lone)
{
    const struct replica *replica = &loop->flight->replicas[number];
    const struct outlook *outlook = &loop->outlook;
    const size_t n_known = ifl_min(outlook->n - outlook->at, (size_t)APART_ENDS_AHEAD + 1);
    int64_t at_ns = apart_next_change_ns(lone);
    lone->n_ends = 0;
    if (lone->end_ns == IFL_NEVER || n_known < 2 || !replica_coasts(replica))
        return at_ns;
    const int64_t *duration_ns = outlook->duration_ns + outlook->at + 1;
    const uint32_t n = (uint32_t)replica_sure_ticks(replica, n_known - 1);
    while (lone->n_ends < n && at_ns <= replica->plan.promise.until_ns &&
           duration_ns[lone->n_ends] <= IFL_LAST_NS - at_ns) {
        at_ns += duration_ns[lone->n_ends];
        lone->ends_ns[lone->n_ends++] = at_ns;
    }
    return at_ns;
}

/* A request that comes at at_ns changes the number of requests, beside itself, no earlier than at
 * the end of the step under way then. */
static void await(struct lone *lone, int64_t at_ns)
{
    int64_t end_ns = lone->end_ns;
    for (uint32_t i = 0; i < lone->n_ends && end_ns <= at_ns; i++)
        end_ns = lone->ends_ns[i];
    lone->count_ns = ifl_min(lone->count_ns, end_ns == IFL_NEVER ? at_ns : end_ns);
}

static void note_next_count(struct loop *loop, uint32_t number, struct lone *lone)
{
    lone->count_ns = next_end_ns(loop, number, lone);
    if (lone->mailbox.n > 0)
        await(lone, mail_next_ns(&loop->mail, &lone->mailbox));
}

/* It need not fly, and has not: its next event is known to be later. */
static void stay(struct lone *lone)
{
    const int64_t next_ns = apart_next_change_ns(lone);
    if (lone->mailbox.n == 0)
        lone->count_ns = ifl_max(lone->count_ns, next_ns);
}

IFL_HOT int apart_reach(struct loop *loop, uint32_t number, int64_t until_ns, int64_t joined_ns,
                        struct ifl_error *error)
{
    struct lone *lone = &loop->lone[number];
    const int64_t now_ns = loop->now_ns;
    int rc = 0;
    if (apart_next_change_ns(lone) > until_ns &&
        mail_next_ns(&loop->mail, &lone->mailbox) > joined_ns) {
        if (loop->follows_counts)
            stay(lone);
        return 0;
    }
    lone->stale = true;
    loop->outlook.n = loop->outlook.at = 0;
    replica_warm_lists(&loop->flight->replicas[number], lone->mailbox.n > 0);
    if (loop->follows_counts && lone->mailbox.n == 0)
        replica_warm_end(&loop->flight->replicas[number]);
    for (int64_t at_ns;
         rc == 0 && (at_ns = mail_next_ns(&loop->mail, &lone->mailbox)) <= joined_ns;) {
        rc = fly(loop, number, at_ns, error);
        if (rc == 0)
            rc = let_join(loop, number, error);
    }
    if (rc == 0)
        rc = fly(loop, number, until_ns, error);
    loop->now_ns = now_ns;
    if (rc == 0 && loop->follows_counts)
        note_next_count(loop, number, lone);
    return rc;
}

static void expect_change(struct loop *loop, uint32_t number)
{
    const struct lone *lone = &loop->lone[number];
    int64_t at_ns = lone->count_ns;
    if (!loop->follows_loads)
        return;
    if (loop->follows_caches)
        at_ns = ifl_min(at_ns, apart_next_change_ns(lone));
    if (at_ns != loop->lone_changes.key[number])
        tournament_set(&loop->lone_changes, number, at_ns);
}

void apart_fall_due(struct loop *loop, const struct replica *replica)
{
    struct lone *lone = &loop->lone[replica->fixed.number];
    fall_due(lone, replica, loop->now_ns);
    lone->n_ends = 0;
    lone->count_ns = loop->follows_counts ? apart_next_change_ns(lone) : 0;
    expect_change(loop, replica->fixed.number);
}

/* Its load is noted, if it has flown. Old news say what it is at until_ns, exact ones of when. */
static void note(struct loop *loop, uint32_t number, int64_t until_ns)
{
    struct lone *lone = &loop->lone[number];
    const bool old = news_are_old(&loop->routing.news);
    if (!lone->stale || (old && !loop->takes_news))
        return;
    lone->stale = false;
    routing_note(&loop->routing, &loop->flight->replicas[number], old ? until_ns : lone->last_ns);
}

int apart_bring(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error)
{
    const int rc = apart_reach(loop, number, until_ns, until_ns, error);
    note(loop, number, until_ns);
    expect_change(loop, number);
    return rc;
}

/* ---- mail ---- */

/* Each replica comes to so many requests in a row, on average; small fleets to more. */
enum { MAIL_EACH = 256, LEAST_MAIL = 256 };

/* Replicas take what they have been sent, but for what old news of them may not know of yet. */
static int empty_mailboxes(struct loop *loop, struct ifl_error *error)
{
    const bool old = news_are_old(&loop->routing.news);
    const int64_t most_ns =
        old ? news_heard_of_ns(&loop->routing.news, loop->now_ns) - 1 : IFL_NEVER;
    int rc = 0;
    for (uint32_t i = 0; i < loop->flight->n_replicas && rc == 0; i++) {
        const struct mailbox *box = &loop->lone[i].mailbox;
        if (box->n == 0)
            continue;
        const int64_t last_ns = mail_last_ns(&loop->mail, box);
        const int64_t until_ns = ifl_min(last_ns, most_ns);
        rc = !old && loop->follows_counts ? apart_bring(loop, i, loop->now_ns, error)
                                          : apart_reach(loop, i, until_ns, until_ns, error);
        if (rc == 0)
            rc = loop_check_stop(loop, error);
    }
    return rc;
}

IFL_APART static int make_room(struct loop *loop, struct ifl_error *error)
{
    struct mail *mail = &loop->mail;
    if (mail->cap > 0 && empty_mailboxes(loop, error) < 0)
        return error->code;
    const uint32_t n_first = ifl_max((uint32_t)LEAST_MAIL, MAIL_EACH * loop->flight->n_replicas);
    const uint32_t n = mail->n > mail->cap / 2 ? 2 * mail->cap : mail->cap;
    return mail_reserve(mail, ifl_max(n, n_first)) < 0 ? ifl_fail_nomem(error) : 0;
}

bool apart_takes_mail(const struct loop *loop)
{
    return loop->lone && (!news_are_old(&loop->routing.news) || !loop->takes_news);
}

int apart_post(struct loop *loop, uint32_t number, const struct arrival *a, struct ifl_error *error)
{
    if (mail_is_full(&loop->mail) && make_room(loop, error) < 0)
        return error->code;
    mail_put(&loop->mail, &loop->lone[number].mailbox, a);
    if (loop->follows_counts) {
        await(&loop->lone[number], a->at_ns);
        routing_note_mailed(&loop->routing, number);
        expect_change(loop, number);
    }
    return 0;
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

/* What the replica does next is the loop's again. */
static int land_one(struct loop *loop, uint32_t number, struct lone *lone, struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[number];
    while (lone->wakes.n > 0)
        if (event_push(&loop->wakes, event_pop(&lone->wakes).at_ns, number, number) < 0)
            return ifl_fail_nomem(error);
    if (lone->due_ns != IFL_NEVER)
        loop_fall_due(loop, replica);
    if (lone->end_ns == IFL_NEVER)
        return 0;
    loop->n_busy++;
    return loop->flight->executor->submit(loop->flight->executor_self, &replica->in_flight.desc,
                                          error);
}

int apart_land(struct loop *loop, struct ifl_error *error)
{
    const uint32_t n = loop->flight->n_replicas;
    struct lone *lone = loop->lone;
    int rc = apart_take_news(loop, error);
    if (rc == 0)
        rc = bring_all(loop, loop->now_ns, error);
    loop->lone = NULL;
    routing_follow(&loop->routing, NULL, NULL);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = land_one(loop, i, &lone[i], error);
    free_lone(lone, n);
    return rc;
}

/* From now on lone_changes is kept. What a cache holds may change with every step. */
static int follow_loads(struct loop *loop, bool caches, struct ifl_error *error)
{
    const uint32_t n = loop->flight->n_replicas;
    loop->follows_counts = true;
    const int rc = bring_all(loop, loop->now_ns, error);
    if (rc == 0 && !loop->follows_loads && tournament_create(&loop->lone_changes, n) < 0)
        return ifl_fail_nomem(error);
    loop->follows_loads = rc == 0;
    loop->follows_caches = loop->follows_caches || caches;
    for (uint32_t i = 0; i < n; i++)
        expect_change(loop, i);
    return rc;
}

/* Replicas with loads, or caches, that may have changed by now. The one behind each is warmed
 * meanwhile. */
static int bring_changed(struct loop *loop, bool caches, struct ifl_error *error)
{
    struct tournament *changes = &loop->lone_changes;
    const int64_t now_ns = loop->now_ns;
    const bool follows = loop->follows_loads && (loop->follows_caches || !caches);
    int rc = follows ? 0 : follow_loads(loop, caches, error);
    while (rc == 0 && tournament_least(changes) <= now_ns) {
        const uint32_t number = tournament_first(changes);
        tournament_set(changes, number, IFL_NEVER);
        replica_warm(&loop->flight->replicas[tournament_first(changes)]);
        rc = apart_bring(loop, number, now_ns, error);
    }
    return rc;
}

static int bring_for_router(void *context, uint32_t number, enum routing_look look,
                            struct ifl_error *error)
{
    struct loop *loop = context;
    loop->follows_counts = loop->follows_counts || look == LOOKS_AT_COUNTS;
    if (news_are_old(&loop->routing.news) && look != LOOKS_AT_CACHE)
        return apart_hear(loop, number, look, error);
    if (number == ROUTING_ALL)
        return bring_changed(loop, look == LOOKS_AT_CACHE, error);
    if (look == LOOKS_AT_COUNTS && apart_knows_count(&loop->lone[number], loop->now_ns))
        return 0;
    if (apart_take_news(loop, error) < 0)
        return error->code;
    return apart_bring(loop, number, loop->now_ns, error);
}

int apart_take_off(struct loop *loop, struct ifl_error *error)
{
    const uint32_t n = loop->flight->n_replicas;
    loop->lone = calloc(n, sizeof *loop->lone);
    if (!loop->lone)
        return ifl_fail_nomem(error);
    for (uint32_t i = 0; i < n; i++) {
        struct lone *lone = &loop->lone[i];
        lone->end_ns = lone->due_ns = IFL_NEVER;
        lone->last_ns = -1;
    }
    routing_follow(&loop->routing, bring_for_router, loop);
    return 0;
}

void apart_end(struct loop *loop)
{
    free_lone(loop->lone, loop->flight->n_replicas);
    mail_destroy(&loop->mail);
    tournament_destroy(&loop->lone_changes);
}

int apart_run(struct loop *loop, struct ifl_error *error)
{
    int rc = 1;
    while (rc > 0) {
        for (int64_t at_ns; (at_ns = next_event_ns(loop)) != IFL_NEVER;) {
            loop->now_ns = at_ns;
            if (loop->takes_news && (rc = apart_hear_reports(loop, error)) < 0)
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
