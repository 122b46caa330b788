/* A replica: one engine's queues, KV pools and policy modules, and the step it is building.
 *
 * Life of a step:
 *
 *     replica_plan     asks the batching module, which acts through the step (step_builder.c)
 *     replica_commit   freezes the plan into a description for the executor
 *     ... the executor runs it ...
 *     replica_end      counts the tokens, ends requests, calls the modules' hooks
 *
 * While a promise holds, replica_repeat replaces replica_plan. While no event falls between steps,
 * replica_coast and replica_next_tick replace the whole cycle. The replica has no clock and no
 * executor; sim/run/flight.c drives it. What its files offer one another is in replica_parts.h. */
#ifndef SIM_REPLICA_REPLICA_H
#define SIM_REPLICA_REPLICA_H

#include "inflight/executor.h"
#include "inflight/policy.h"
#include "inflight/report.h"

#include "replica/accounts.h"
#include "replica/adapters.h"
#include "replica/here.h"
#include "replica/in_flight.h"
#include "replica/kv/beams.h"
#include "replica/kv/keep.h"
#include "replica/leaving.h"
#include "replica/listeners.h"
#include "replica/moving.h"
#include "replica/overlap.h"
#include "replica/plan.h"
#include "replica/refusals.h"
#include "replica/tiers.h"
#include "replica/wakes.h"
#include "replica/windows.h"

struct ranked_request {
    int64_t key; /* by which it is ranked */
    const struct ifl_request *r;
};

/* A list in rank order, the last one first, kept from one plan to the next (replica_ranks.c). */
struct ranking {
    enum ranked_list which;
    struct ranked_request *room; /* [cap], of which n from `first` on are taken */
    size_t first, n, cap;
    struct live_request **noted; /* requests that came or left since, or may have another key */
    size_t n_noted;
    bool kept;  /* requests that are not noted stand where their keys put them */
    bool taken; /* the list is as this plan sees it */
    bool stale; /* all keys must be asked anew before the next look */
};

/* What the lists are ranked by, and the lists (replica_ranks.c). */
struct rankings {
    enum ifl_keys order_keys; /* as of the last plan that looked at a ranked list */
    bool keys_read_plan;      /* some module has asked for the plan, so keys may depend on it */
    bool keys_asked;          /* this plan has asked for order_keys */
    bool keys_change;         /* the keys of the last plan do not stand */
    bool hook_ran;            /* one of the order has, since this plan has asked for order_keys */
    bool ranks_stale;         /* keys of waiting requests must be asked anew before the next look */
    bool asked_for_lists; /* a plan has taken one of by_rank: until then none is taken or kept */
    struct ranking by_rank[N_RANKED];
    const struct ifl_request **asked; /* scratch */
    int64_t *keys;                    /* scratch */
};

/* In the checking mode: what a module was asked within a plan, and its answer. */
struct said {
    const struct module *module;
    uint64_t question;
    int64_t answer;
};

struct said_plan {
    struct said *of; /* [n] within one plan */
    size_t n, cap;
};

/* What becomes of the next plan where several steps may be in flight. */
enum said_turn {
    TURN_OPEN,    /* anything */
    TURN_REPEATS, /* the step that has just ended begins again */
    TURN_RESTS    /* nothing, until a step ends */
};

struct said_list {
    bool checks;                  /* the checking mode */
    struct said_plan now, before; /* of this plan, and of the one that promised it */
    /* where several steps may be in flight */
    struct said_plan *flown; /* [depth], of the plans of these steps */
    enum said_turn turn;
    struct ifl_promise promise;    /* of the step that begins again */
    uint64_t step;                 /* its number */
    int32_t slot;                  /* its own */
    struct live_request **repeats; /* [n_repeats], its requests */
    size_t n_repeats, cap_repeats;
};

/* What never changes once the replica is created. */
struct replica_fixed {
    uint32_t number; /* in its cluster */
    bool plain; /* no request has several samples, guesses, an adapter, or K/V that is given up or
                   that moves; no executor wants the work: what is there for these is passed over */
    bool gives_up;     /* some request may give up K/V */
    bool loads_before; /* the next step waits for what starts load */
    bool swaps_apart;  /* beside steps */
    bool wants_work;   /* the executor reads the work of each sequence */
    int32_t max_samples;
    struct ifl_limits limits;
    struct kv_block block;
    struct overlap overlap;
    struct beam_search beams;
    struct module modules[N_MODULES]; /* the cluster's router is not among them */
    struct ifl_evict_ops evict;       /* those of the evict module, as the cache calls them */
    struct ragged_options speculation;
    struct keep keep;
    struct windows_rule windows;
    enum swap_full swap_full;
    enum leave leave;
    uint64_t seed;
    int64_t fit_tokens; /* a single sequence of no more can run; 0: replica_fit_group is asked */
};

/* Each part is written in one file, its header included; tests/writers checks it. A part is written
 * in the file of its name, fixed in replica_create.c, kv in accounts.h, ranks in replica_ranks.c,
 * said in replica_check.c, on in listeners.c. */
struct replica {
    struct plan plan; /* first, for replica_of */
    struct ifl_view view;
    struct replica_fixed fixed;
    struct listeners on;
    struct here here;
    struct accounts kv;
    struct in_flight in_flight;
    struct wakes wakes;
    struct leaving leaving;
    struct said_list said;
    struct moving moving;
    struct adapters adapters;
    struct windows windows;
    struct rankings ranks;
    struct tiers tiers;
    struct refusals refusals; /* reasons why requests were dropped */
};

struct replica_options {
    uint32_t number;                     /* in its cluster */
    const struct module_config *modules; /* [N_MODULES] */
    struct ifl_limits limits;
    enum kv_allocator allocator;
    enum prefix_cache prefix_cache;
    enum kv_unhashed unhashed;
    enum kv_publish publish;
    enum swap_full swap_full;
    enum leave leave;
    struct overlap overlap; /* no beams, no executor that is an engine */
    uint64_t seed;
    bool wants_work;
    int32_t max_samples; /* of a request; 0 counts as 1 */
    struct beam_search beams;
    struct keep keep; /* no beams, no several samples, no steps in flight beside one another, no
                         moves */
    struct windows_rule windows;    /* a paged allocator */
    struct kv_tier *tiers[N_TIERS]; /* borrowed; NULL: there is none */
    bool moves;                     /* requests may come from other replicas, or go there */
    bool loads_before;              /* the next step waits for what starts load */
    bool swaps_apart;               /* beside steps: neither beams nor several steps in flight */
    /* Read if the draft module guesses; max_drafts and max_model_tokens are set here. Then one step
     * is in flight at a time, no request has several samples, and the allocator is paged. */
    struct ragged_options speculation;
    struct adapters_options adapters; /* in_pool: a paged allocator */
};

/* Owned by the caller; zeroed memory is valid for replica_destroy. */
int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error);
void replica_destroy(struct replica *replica);

/* Requests that wait, run, or are swapped out. */
static inline size_t replica_requests(const struct replica *replica)
{
    return replica->here.pool.n_live + waiting_undescribed(&replica->here.waiting);
}

/* The request joins the queue at now_ns: when it arrived, or later if a router held it back. If
 * `pinned` is not NULL, the request gets a record at once, which *pinned points to until it is
 * recycled. Negative without memory. */
int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                 struct live_request **pinned, struct ifl_error *error);
/* Blocks that so many tokens fill. */
static inline int32_t replica_full_blocks(const struct replica *replica, int32_t n_tokens)
{
    return (int32_t)kv_full_blocks((uint32_t)n_tokens, replica->fixed.block);
}

/* Whether the request can ever run here. */
enum replica_fit { REPLICA_FITS, REPLICA_BEYOND_MODEL, REPLICA_BEYOND_POOL };
enum replica_fit replica_fit_group(const struct replica *replica, const struct arrival *arrival);
static inline enum replica_fit replica_fit(const struct replica *replica,
                                           const struct arrival *arrival)
{
    const int64_t n_tokens = (int64_t)arrival->n_prompt + arrival->n_output;
    return arrival->said.samples == 1 && n_tokens <= replica->fixed.fit_tokens
               ? REPLICA_FITS
               : replica_fit_group(replica, arrival);
}

/* The next plan is made ahead and would be shown no request, so that it would do nothing: it counts
 * as made, and the one behind it, at the same time, is shown all that are here. False: it must be
 * made. */
bool replica_skip_blind_plan(struct replica *replica);
/* Builds a step at now_ns. Negative: a policy broke the contract. */
int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error);
/* Turns the checking mode on or off: every promised step is planned all the same. */
void replica_check(struct replica *replica, bool checks);
/* What a promised step is, beside the requests that it has. */
struct promised_step {
    struct ifl_padding padding;
    int32_t n_free_blocks; /* once it has taken its own; -1: ended requests take some, too */
};
/* Call it before a promised step is planned all the same. */
struct promised_step replica_promised_step(const struct replica *replica);
/* Call it once it is planned: 0, or, where another step was planned, the code of `error`, which has
 * the name of the module that broke its word. */
int replica_check_promised(const struct replica *replica, const struct promised_step *promised,
                           struct ifl_error *error);
/* True if the last plan's promise covers one more step at now_ns. */
bool replica_keeps_promise(const struct replica *replica, int64_t now_ns);
/* True if the plan gives one token to each member of the cohort and does nothing else: what a
 * promise says. */
bool replica_ticks_again(const struct replica *replica);
/* Builds the step at now_ns without a plan, if the promise covers it. False: a plan is needed. */
bool replica_repeat(struct replica *replica, int64_t now_ns);
/* Turns the plan into `desc`. True if there is work or a copy to submit. */
bool replica_commit(struct replica *replica);
/* Where several steps may be in flight: the one committed last is known to begin at start_ns. */
void replica_note_begin(struct replica *replica, int64_t start_ns);
/* Where several steps may be in flight. */
static inline bool replica_overlaps(const struct replica *replica)
{
    return IFL_RARE(replica->in_flight.flown != NULL);
}
/* Call it after an empty plan where several steps may be in flight. True: another plan is due at
 * once, for the next slot, or because a request was given up, which is in `gone`. */
bool replica_tries_on(struct replica *replica);
/* Steps or loads are in flight, the end of one of which is waited for. */
static inline bool replica_awaits_step(const struct replica *replica)
{
    return replica->in_flight.n_flown > 0 || replica->moving.n > 0;
}
/* Call it after an empty plan with no event to follow. Drops one request that the plan has refused
 * for good; at_end (of the workload) also one that it has refused for now. A request on the device
 * is dropped before one in host memory, and that before one in the queue. It is in `gone`
 * afterwards. False: the plan has refused no request. */
bool replica_give_up(struct replica *replica, bool at_end);
/* Of the requests that wait with a worse priority than `arrived`, one with the worst, and of these
 * the one that was queued last; without any, `arrived`. All must have records (replica_join with
 * `pinned`). */
struct live_request *replica_worst_waiting(struct replica *replica, struct live_request *arrived);
/* The request leaves early, as aborted, timed out or shed: at once, and is then in `gone`, or as a
 * step ends (replica_leave.c). Call it once for a request. */
void replica_leave(struct replica *replica, struct live_request *r, enum ifl_status status,
                   int64_t now_ns);
/* The step in flight has ended. Finished requests are in `gone` afterwards. Negative, too, if steps
 * in a row have produced no token for longer than filling all K/V memory one token at a time takes:
 * preemption then undoes prompts faster than they are computed, for ever. */
int replica_end(struct replica *replica, const struct ifl_done *done, struct ifl_recorder *recorder,
                struct ifl_error *error);
/* True if the committed step does only what the promise repeats and yields no request's last token.
 * Then replica_coast may end it and replica_next_tick may follow, with the same result as
 * replica_end, replica_repeat and replica_commit. */
bool replica_coasts(const struct replica *replica);
/* An estimate of how many durations replica_coast can use: the committed step, the steps behind it
 * that end by until_ns, and one more. It may be too high, but within it the context grows alike. */
size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns);
enum { REPLICA_MAX_STRETCH = 64 };
/* Ends the committed step, which ends before until_ns, and steps behind it, at most n in all. Each
 * of those
 * - changes only sums,
 * - begins by the promise and
 * - ends before until_ns.
 *
 * Returns how many have ended, or negative. */
int replica_coast(struct replica *replica, const struct ifl_done *done, const int64_t *duration_ns,
                  size_t n, int64_t until_ns, struct ifl_recorder *recorder,
                  struct ifl_error *error);
/* How many ticks are sure to follow the committed one, n at most, of which replica_coasts: in and
 * between them no request ends and nothing is planned, if the promise holds for so long and no
 * request comes or leaves. */
size_t replica_sure_ticks(const struct replica *replica, size_t n);
/* Commits the next tick. False, and nothing has changed: the promise does not cover it. */
bool replica_next_tick(struct replica *replica, int64_t now_ns);
/* As the run ends: fills a record of the preemptions that no step's record counts. False: there are
 * none. */
bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record);
/* Fills the record of a request in `gone`. Call it before replica_recycle. (No build checks that
 * the request is there: each record would cost a walk over all of them.) */
void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record);
/* Empties `gone`; its records may be reused. */
void replica_recycle(struct replica *replica);

/* ---- replica_moves.c: requests with two replicas (moving.h). Each of these is called between
 * plans, and voids the promise ---- */

/* The K/V of r, which is MOVING from here, has been read, or is not wanted: its blocks are free,
 * and its record is in `gone`, where it makes no row. */
void replica_release(struct replica *replica, struct live_request *r, int64_t now_ns);
/* r, which waits or is MOVING to here, has what has happened to `from`, its record at the replica
 * that has now computed its prompt. */
void replica_go_on(struct replica *replica, struct live_request *r,
                   const struct live_request *from);
/* The replica that will go on with r has taken blocks for it. */
void replica_reserved(struct replica *replica, struct live_request *r, int64_t now_ns);
/* What r, which is MOVING to here, waited for has come: it is LOADED, or has its last token and is
 * in `gone`. */
void replica_loaded(struct replica *replica, struct live_request *r, int64_t now_ns);
/* What r, which waits or is MOVING to here, was to load is lost: it waits, and computes all. */
void replica_lose(struct replica *replica, struct live_request *r, int64_t now_ns);

/* ---- replica_migrate.c: requests that move while they decode (fleet/migration.h). Each of these
 * is called between plans, and voids the promise ---- */

/* r, which has just joined, takes n blocks for what comes, and is MOVING to here. False: they are
 * not there, spare_blocks beside them, and it waits. */
bool replica_expect(struct replica *replica, struct live_request *r, int32_t n,
                    int32_t spare_blocks, int64_t now_ns);
/* It takes n more. False, and nothing has changed: they are not there. */
bool replica_expect_more(struct replica *replica, struct live_request *r, int32_t n,
                         int64_t now_ns);
/* r, which decodes and is in no step, stands still, and is MOVING from here. */
void replica_give_away(struct replica *replica, struct live_request *r, int64_t now_ns);
/* r, which is MOVING to here, has all that `from` has, its record at the replica that gives it
 * away: it runs, without the question of a plan. */
void replica_take_in(struct replica *replica, struct live_request *r,
                     const struct live_request *from, int64_t now_ns);
/* The same of one that waits there: r takes n blocks and is LOADED, with nothing computed. False: n
 * and spare_blocks beside them are not there, and it waits. */
bool replica_take_waiting(struct replica *replica, struct live_request *r,
                          const struct live_request *from, int32_t n, int32_t spare_blocks,
                          int64_t now_ns);

/* ---- replica_swap.c: swaps beside steps (serving.swap: overlap). Each of these is called between
 * plans, and voids the promise ---- */

/* r, which is MOVING to the host, or from there, has come: its device blocks are free, and it is
 * SWAPPED; or it runs, without the question of a plan. */
void replica_swapped(struct replica *replica, struct live_request *r, int64_t now_ns);
/* It has come, and is gone: all that it has is free. */
void replica_drop_swap(struct replica *replica, struct live_request *r, int64_t now_ns);
/* r counts as gone now; its blocks are free later. */
void replica_note_gone(struct replica *replica, struct live_request *r, enum ifl_status status);

/* ---- replica_tiers.c: tiers below the device (tiers.h). Called between plans; the promise is void
 * ---- */

/* What r, which is MOVING, loads from tiers has come: it is LOADED. */
void replica_loaded_below(struct replica *replica, struct live_request *r, int64_t now_ns);
/* Something else can be found in the tiers. */
void replica_hear_tiers(struct replica *replica, int64_t now_ns);

/* ---- replica_prefetch.c ---- */

/* r has come, and waits. True: some of its K/V is to come to the first tier. */
bool replica_ask_prefetch(struct replica *replica, struct live_request *r,
                          struct prefetch_ask *ask);
/* Takes room in the first tier for the next units, at most so many, and ask on behind them. Returns
 * how many are to be sent; those that are not there yet are in the chain (kv_tier_land, or
 * kv_tier_drop). 0: nothing more is to come. */
int32_t replica_take_prefetch(struct replica *replica, const struct live_request *r,
                              struct prefetch_ask *ask, int32_t most_units, int32_t *chain);
/* So many blocks have come for r. */
void replica_prefetched(struct live_request *r, int32_t n_blocks);
/* Nothing more comes for r. */
void replica_end_prefetch(struct live_request *r, int64_t now_ns);
/* The turn of r has come, for which some is still to come. True: it is passed over, until then or
 * until_ns; false: it makes do with what has come. */
bool replica_passes_over(const struct replica *replica, struct live_request *r, int64_t *until_ns);

/* What the prefix cache holds of the tokens of r, which need not be a request of this replica. */
struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r);
/* The same, n_cached alone, of a request that is at no replica. */
int32_t replica_hit_tokens(const struct replica *replica, const struct live_request *r);
/* Most blocks that it may hold of r. */
int32_t replica_longest_hit(const struct replica *replica, const struct live_request *r);

#endif
