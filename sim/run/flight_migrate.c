#include "run/flight_migrate.h"

#include <stdlib.h>

#include "inflight/minmax.h"

#include "run/flight_loop.h"

/* A request on its way. A free slot has no p. */
struct migration {
    struct live_request *p, *d; /* its record; the one where it goes, NULL before that has blocks */
    uint64_t serial;            /* p is another request by now if it has another serial */
    uint32_t from, to;
    int32_t n_preempted; /* of p, as it was chosen */
    int32_t n_stages, n_sent_blocks;
    bool awaits_step; /* the last stage begins as the step of its replica ends */
    bool stands;      /* the last stage is under way, since stands_ns */
    int64_t stands_ns, moving_ns;
    enum ifl_status left; /* in the last stage */
    /* the stage under way */
    int32_t n_blocks;
    int64_t n_bytes;
};

struct migrating {
    struct loop *loop;
    struct flight *flight;
    const struct migration_rules *rules;
    struct links links;   /* 2i: out of replica i; 2i + 1: into it */
    struct migration *of; /* [slots.n] */
    struct slots slots;
    int32_t *n_moves;                    /* [replicas] from it, and to it */
    int64_t pairs_ns;                    /* when replicas are paired next */
    struct migration_load *loads, *room; /* [replicas], scratch */
    struct migration_pair *pairs;        /* [replicas], scratch */
};

static struct replica *replica_at(const struct migrating *migrating, uint32_t number)
{
    return &migrating->flight->replicas[number];
}

struct migrating *migrating_create(struct loop *loop, struct ifl_error *error)
{
    struct migrating *migrating = calloc(1, sizeof *migrating);
    struct flight *flight = loop->flight;
    const uint32_t n = flight->n_replicas;
    if (!migrating) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *migrating = (struct migrating){.loop = loop,
                                    .flight = flight,
                                    .rules = flight->migration,
                                    .n_moves = calloc(n, sizeof *migrating->n_moves),
                                    .pairs_ns = flight->migration->interval_ns,
                                    .loads = calloc(n, sizeof *migrating->loads),
                                    .room = calloc(n, sizeof *migrating->room),
                                    .pairs = calloc(n, sizeof *migrating->pairs)};
    if (!migrating->n_moves || !migrating->loads || !migrating->room || !migrating->pairs ||
        links_create(&migrating->links, 2 * n, &flight->link) < 0) {
        ifl_fail_nomem(error);
        migrating_destroy(migrating);
        return NULL;
    }
    return migrating;
}

void migrating_destroy(struct migrating *migrating)
{
    if (!migrating)
        return;
    links_destroy(&migrating->links);
    slots_destroy(&migrating->slots);
    free(migrating->of);
    free(migrating->n_moves);
    free(migrating->loads);
    free(migrating->room);
    free(migrating->pairs);
    free(migrating);
}

/* ---- the two records ---- */

/* It decodes where it was chosen, and has not given way since. */
static bool still_runs(const struct migration *m)
{
    const struct live_request *p = m->p;
    return p->pub.serial == m->serial && p->pub.state == IFL_RUNNING && !p->ended &&
           p->left == IFL_FINISHED && p->pub.n_preempted == m->n_preempted &&
           request_decodes(&p->pub);
}

static int release(struct migrating *migrating, uint32_t number, struct live_request *r,
                   struct ifl_error *error)
{
    struct replica *replica = replica_at(migrating, number);
    replica_release(replica, r, migrating->loop->now_ns);
    return loop_note_gone(migrating->loop, replica, error);
}

static void end_migration(struct migrating *migrating, uint32_t slot)
{
    struct migration *m = &migrating->of[slot];
    migrating->n_moves[m->from]--;
    migrating->n_moves[m->to]--;
    *m = (struct migration){0};
    slots_give(&migrating->slots, slot);
}

/* The request stays where it is, whatever it does there. */
static int give_up(struct migrating *migrating, uint32_t slot, struct ifl_error *error)
{
    const struct migration m = migrating->of[slot];
    end_migration(migrating, slot);
    return m.d ? release(migrating, m.to, m.d, error) : 0;
}

/* The other replica gets a record of the request, which makes no row. */
static int join(struct migrating *migrating, struct migration *m, struct ifl_error *error)
{
    struct replica *to = replica_at(migrating, m->to);
    struct arrival a;
    live_leave_for(m->p, &a);
    if (replica_join(to, &a, migrating->loop->now_ns, &m->d, error) < 0)
        return error->code;
    m->d->silent = true;
    return 0;
}

/* Blocks that the other replica takes now: 1; 0: it has none. It leaves some free where the first
 * ones are taken (vLLM's watermark; llumnix/backends/vllm/scheduler.py, pre_alloc_cache). */
static int allot(struct migrating *migrating, struct migration *m, int32_t n_blocks,
                 struct ifl_error *error)
{
    struct replica *to = replica_at(migrating, m->to);
    const int64_t now_ns = migrating->loop->now_ns;
    const int32_t n_spare = (int32_t)(migrating->rules->watermark_frac * to->fixed.limits.n_blocks);
    bool fits;
    if (m->d) {
        fits = replica_expect_more(to, m->d, n_blocks, now_ns);
    } else {
        if (n_blocks + n_spare > to->kv.device.n_free)
            return 0;
        if (join(migrating, m, error) < 0)
            return error->code;
        fits = replica_expect(to, m->d, n_blocks, n_spare, now_ns);
        if (!fits) {
            replica_leave(to, m->d, IFL_SHED, now_ns);
            m->d = NULL;
        }
    }
    return loop_note_gone(migrating->loop, to, error) < 0 ? error->code : fits;
}

/* ---- stages ---- */

static int send(struct migrating *migrating, uint32_t slot, int32_t n_blocks, double more_bytes,
                struct ifl_error *error)
{
    struct migration *m = &migrating->of[slot];
    const struct handover_size *size = &migrating->flight->moved;
    const int32_t block_tokens = replica_at(migrating, m->to)->fixed.limits.block_tokens;
    m->n_blocks = n_blocks;
    m->n_bytes = (int64_t)(size->token_bytes * block_tokens * n_blocks + more_bytes);
    m->n_sent_blocks += n_blocks;
    const struct link_load load = {.path = {2 * m->from, 2 * m->to + 1},
                                   .n_bytes = m->n_bytes,
                                   .n_pieces = ifl_max(n_blocks * size->block_pieces, 1),
                                   .at_ns = migrating->loop->now_ns,
                                   .rank = m->serial,
                                   .tag = slot};
    return links_send(&migrating->links, &load) < 0 ? ifl_fail_nomem(error) : 0;
}

/* Blocks with K/V of the request; in a step also the one that the step fills. */
static int32_t filled_blocks(const struct migrating *migrating, const struct migration *m)
{
    const struct replica *from = replica_at(migrating, m->from);
    const int32_t n_tokens = ifl_n_computed(&m->p->pub) + from->in_flight.busy;
    return ifl_min(ifl_n_blocks(&m->p->pub), kv_blocks_for(n_tokens, from->fixed.block));
}

/* No step is under way where the request is: it stands still from now on. */
static int begin_last(struct migrating *migrating, uint32_t slot, struct ifl_error *error)
{
    struct migration *m = &migrating->of[slot];
    struct replica *from = replica_at(migrating, m->from);
    m->awaits_step = false;
    if (!still_runs(m))
        return give_up(migrating, slot, error);
    const int32_t n_taken = m->d ? m->d->pub.stale.n_blocks : 0;
    const int rc = allot(migrating, m, ifl_n_blocks(&m->p->pub) - n_taken, error);
    if (rc <= 0)
        return rc < 0 ? rc : give_up(migrating, slot, error);
    const int32_t n_left = filled_blocks(migrating, m) - m->n_sent_blocks;
    replica_give_away(from, m->p, migrating->loop->now_ns);
    m->stands = true;
    m->stands_ns = migrating->loop->now_ns;
    loop_note_change(migrating->loop, from);
    return send(migrating, slot, n_left,
                handover_last_bytes(&migrating->flight->moved, ifl_n_computed(&m->p->pub)), error);
}

static int begin_stage(struct migrating *migrating, uint32_t slot, struct ifl_error *error)
{
    struct migration *m = &migrating->of[slot];
    if (!still_runs(m) || ++m->n_stages > migrating->rules->max_stages)
        return give_up(migrating, slot, error);
    const int32_t n_left = filled_blocks(migrating, m) - m->n_sent_blocks;
    if (n_left <= migrating->rules->last_stage_blocks) {
        m->awaits_step = replica_at(migrating, m->from)->in_flight.busy;
        return m->awaits_step ? 0 : begin_last(migrating, slot, error);
    }
    const int rc = allot(migrating, m, n_left - 1, error); /* the last block is being filled */
    if (rc <= 0)
        return rc < 0 ? rc : give_up(migrating, slot, error);
    return send(migrating, slot, n_left - 1, 0, error);
}

/* Of the requests that wait for the step of that replica the one with the lowest serial; slots.n:
 * none waits. */
static uint32_t first_that_awaits(const struct migrating *migrating, uint32_t replica)
{
    uint32_t first = migrating->slots.n;
    for (uint32_t slot = 0; slot < migrating->slots.n; slot++) {
        const struct migration *m = &migrating->of[slot];
        if (m->awaits_step && m->from == replica &&
            (first == migrating->slots.n || m->serial < migrating->of[first].serial))
            first = slot;
    }
    return first;
}

int migrating_hear_step(struct migrating *migrating, struct replica *replica,
                        struct ifl_error *error)
{
    const uint32_t number = replica->fixed.number;
    uint32_t slot;
    int rc = 0;
    while (rc == 0 && migrating->n_moves[number] > 0 &&
           (slot = first_that_awaits(migrating, number)) < migrating->slots.n)
        rc = begin_last(migrating, slot, error);
    return rc;
}

/* ---- what has come ---- */

static int record_stage(const struct migrating *migrating, const struct migration *m,
                        const struct link_arrival *arrival, struct ifl_error *error)
{
    const int64_t moving_ns = arrival->end_ns - arrival->begun_ns;
    const struct ifl_move_record record = {
        .request_id = workload_id(migrating->flight->workload, m->d->row, m->d->attempt),
        .from = (int32_t)m->from,
        .to = (int32_t)m->to,
        .sent_ns = arrival->sent_ns,
        .start_ns = arrival->begun_ns,
        .end_ns = arrival->end_ns,
        .moving_ns = moving_ns,
        .hidden_ns = m->stands ? 0 : moving_ns,
        .n_bytes = m->n_bytes,
        .n_blocks = m->n_blocks,
    };
    return ifl_record_move(migrating->flight->recorder, &record, error);
}

/* The second record is the request from now on. */
static void count_move(struct live_request *d, const struct live_request *p, uint32_t from)
{
    d->silent = false;
    d->sent_to = p->sent_to > 0 ? p->sent_to : from + 1;
    live_own(d)->migrations = p->rare->migrations;
    live_own(d)->migrations.n++;
}

/* All has come: the second record runs, and the first one is no more. */
static int land(struct migrating *migrating, uint32_t slot, struct ifl_error *error)
{
    const struct migration m = migrating->of[slot];
    struct loop *loop = migrating->loop;
    struct replica *to = replica_at(migrating, m.to);
    end_migration(migrating, slot);
    if (m.left != IFL_FINISHED)
        return release(migrating, m.to, m.d, error) < 0 ? error->code
                                                        : release(migrating, m.from, m.p, error);
    count_move(m.d, m.p, m.from);
    live_own(m.d)->migrations.moving_ns += m.moving_ns;
    live_own(m.d)->migrations.down_ns += loop->now_ns - m.stands_ns;
    replica_take_in(to, m.d, m.p, loop->now_ns);
    loop_note_change(loop, to);
    loop_move_departure(loop, m.p, m.to, m.d);
    return release(migrating, m.from, m.p, error);
}

static int end_stage(struct migrating *migrating, const struct link_arrival *arrival,
                     struct ifl_error *error)
{
    const uint32_t slot = (uint32_t)arrival->tag;
    struct migration *m = &migrating->of[slot];
    m->moving_ns += arrival->end_ns - arrival->begun_ns;
    if (record_stage(migrating, m, arrival, error) < 0)
        return error->code;
    return m->stands ? land(migrating, slot, error) : begin_stage(migrating, slot, error);
}

int migrating_end(struct migrating *migrating, struct ifl_error *error)
{
    struct link_arrival arrival;
    int rc;
    while ((rc = links_take(&migrating->links, migrating->loop->now_ns, &arrival)) > 0)
        if (end_stage(migrating, &arrival, error) < 0)
            return error->code;
    return rc < 0 ? ifl_fail_nomem(error) : 0;
}

/* ---- which move ---- */

static bool is_on_its_way(const struct migrating *migrating, const struct live_request *r)
{
    for (uint32_t slot = 0; slot < migrating->slots.n; slot++)
        if (migrating->of[slot].p == r)
            return true;
    return false;
}

/* In the step that completes its prompt a request has no token yet to go on from. */
static bool may_move(const struct migrating *migrating, uint32_t from, const struct live_request *r)
{
    return request_decodes(&r->pub) && ifl_n_computed(&r->pub) < ifl_n_tokens(&r->pub) &&
           r->pub.n_seqs == 1 && !r->ended && r->left == IFL_FINISHED &&
           (migrating->n_moves[from] == 0 || !is_on_its_way(migrating, r));
}

/* Of equals the one that started first; NULL: none may move. */
static struct live_request *choose(const struct migrating *migrating, uint32_t from)
{
    const enum migration_request which = migrating->rules->request;
    struct live_request *best = NULL;
    FOR_EACH_LIVE (r, &replica_at(migrating, from)->here.running, ON_DEVICE) {
        if (!may_move(migrating, from, r))
            continue;
        const int32_t n = ifl_n_tokens(&r->pub), least = best ? ifl_n_tokens(&best->pub) : n;
        if (!best || which == MIGRATE_LAST || (which == MIGRATE_SHORTEST ? n < least : n > least))
            best = r;
    }
    return best;
}

/* ---- one that waits ---- */

/* The first in the queue; NULL: it may not go there. */
static struct live_request *first_waiting(const struct migrating *migrating,
                                          struct migration_pair pair)
{
    uint64_t at[2] = {0, 0}, at_other[2] = {0, 0};
    struct live_request *p = waiting_next(&replica_at(migrating, pair.from)->here.waiting, at);
    const struct live_request *other =
        waiting_next(&replica_at(migrating, pair.to)->here.waiting, at_other);
    if (!p || p->pub.state != IFL_WAITING || p->pub.n_seqs > 1 || p->left != IFL_FINISHED)
        return NULL;
    return !other || p->pub.arrival_ns <= other->pub.arrival_ns ? p : NULL;
}

static int move_waiting(struct migrating *migrating, struct migration_pair pair,
                        struct ifl_error *error)
{
    struct live_request *p = first_waiting(migrating, pair);
    struct replica *from = replica_at(migrating, pair.from), *to = replica_at(migrating, pair.to);
    struct loop *loop = migrating->loop;
    if (!p)
        return 0;
    const int32_t n = kv_blocks_for(p->pub.stale.n_tokens, to->fixed.block);
    const int32_t n_spare = (int32_t)(migrating->rules->watermark_frac * to->fixed.limits.n_blocks);
    struct migration m = {.p = p, .from = pair.from, .to = pair.to};
    if (n + n_spare > to->kv.device.n_free)
        return 0;
    if (join(migrating, &m, error) < 0)
        return error->code;
    if (!replica_take_waiting(to, m.d, p, n, n_spare, loop->now_ns)) {
        replica_leave(to, m.d, IFL_SHED, loop->now_ns);
        return loop_note_gone(loop, to, error);
    }
    count_move(m.d, p, pair.from);
    loop_note_change(loop, to);
    loop_move_departure(loop, p, pair.to, m.d);
    p->silent = true;
    replica_leave(from, p, IFL_SHED, loop->now_ns);
    return loop_note_gone(loop, from, error);
}

static int begin(struct migrating *migrating, struct migration_pair pair, struct ifl_error *error)
{
    if (migrating->rules->request == MIGRATE_FIRST_WAITING)
        return move_waiting(migrating, pair, error);
    struct live_request *p = choose(migrating, pair.from);
    if (!p)
        return 0;
    if (slots_reserve(&migrating->slots, &migrating->of, sizeof *migrating->of) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&migrating->slots);
    migrating->of[slot] = (struct migration){.p = p,
                                             .serial = p->pub.serial,
                                             .from = pair.from,
                                             .to = pair.to,
                                             .n_preempted = p->pub.n_preempted,
                                             .left = IFL_FINISHED};
    migrating->n_moves[pair.from]++;
    migrating->n_moves[pair.to]++;
    return begin_stage(migrating, slot, error);
}

/* Whole ones for each request (llumlet's backends/vllm/scheduler.py,
 * num_blocks_all_waiting_requests, num_blocks_first_waiting_request). */
static int64_t awaited_blocks(const struct migrating *migrating, struct replica *replica)
{
    struct waiting *waiting = &replica->here.waiting;
    uint64_t at[2] = {0, 0};
    if (waiting->n == 0 || migrating->rules->awaited == AWAITED_OF_ALL)
        return waiting->n_blocks;
    return kv_blocks_for(waiting_next(waiting, at)->pub.stale.n_tokens, replica->fixed.block);
}

static struct migration_load load_of(const struct migrating *migrating, struct replica *replica)
{
    const struct here *here = &replica->here;
    const size_t n_running = here->running.n - replica->leaving.n_ended;
    const bool of_all = migrating->rules->awaited == AWAITED_OF_ALL;
    const size_t n_waiting = of_all ? here->waiting.n : here->waiting.n > 0;
    return (struct migration_load){
        .replica = replica->fixed.number,
        .free_blocks = (double)(replica->kv.device.n_free - awaited_blocks(migrating, replica)),
        .n_requests = (int32_t)(n_running + n_waiting),
        .n_lost = (int32_t)(here->n_swapped + waiting_count_preempted(&here->waiting)),
        .last_blocks = here->running.tail ? ifl_n_blocks(&here->running.tail->pub) : 0,
    };
}

static int pair_pool(struct migrating *migrating, const struct fleet_pool *pool,
                     struct ifl_error *error)
{
    const struct migration_rules *rules = migrating->rules;
    size_t n = 0;
    int rc = 0;
    for (uint32_t i = pool->first; i < pool->first + pool->n; i++)
        if (migrating->n_moves[i] < rules->max_moves)
            migrating->loads[n++] = load_of(migrating, replica_at(migrating, i));
    const size_t n_pairs =
        migration_pair(rules, migrating->loads, n, migrating->room, migrating->pairs);
    for (size_t i = 0; i < n_pairs && rc == 0; i++)
        rc = begin(migrating, migrating->pairs[i], error);
    return rc;
}

int64_t migrating_next_ns(const struct migrating *migrating)
{
    const int64_t stage_ns = links_next_ns(&migrating->links);
    return migrating->loop->n_busy > 0 ? ifl_min(stage_ns, migrating->pairs_ns) : stage_ns;
}

int migrating_pair(struct migrating *migrating, struct ifl_error *error)
{
    const struct flight *flight = migrating->flight;
    const int64_t now_ns = migrating->loop->now_ns, interval_ns = migrating->rules->interval_ns;
    const bool due = now_ns % interval_ns == 0;
    int rc = 0;
    if (now_ns < migrating->pairs_ns)
        return 0;
    migrating->pairs_ns = (now_ns / interval_ns + 1) * interval_ns;
    for (size_t i = 0; i < flight->n_pools && due && rc == 0; i++)
        rc = pair_pool(migrating, &flight->pools[i], error);
    return rc;
}

/* ---- requests that leave ---- */

int migrating_leave(struct migrating *migrating, struct replica *replica, struct live_request *r,
                    enum ifl_status status, bool *waits, struct ifl_error *error)
{
    *waits = r->pub.state == IFL_MOVING && r->hands_over == HANDS_REQUEST;
    if (!*waits)
        return 0;
    for (uint32_t slot = 0; slot < migrating->slots.n; slot++)
        if (migrating->of[slot].p == r && migrating->of[slot].stands)
            migrating->of[slot].left = status;
    replica_note_gone(replica, r, status);
    return loop_report_early(migrating->loop, replica, r, error);
}
