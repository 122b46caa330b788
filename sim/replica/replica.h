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
 * executor; sim/run/flight.c drives it. Functions that its files share are declared in
 * replica_parts.h. */
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
    int64_t key; /* key by which the request is ranked */
    const struct ifl_request *r;
};

/* A list in rank order, the last one first, kept from one plan to the next (replica_ranks.c). */
struct ranking {
    enum ranked_list which;
    struct ranked_request *room; /* [cap]; the list is room[first] to room[first + n - 1] */
    size_t first, n, cap;
    struct live_request **noted; /* requests that joined or left since the last plan that took the
                                    list, or whose key may have changed */
    size_t n_noted;
    bool kept;  /* the list is kept: requests that are not noted are in the order of their keys */
    bool taken; /* the list is up to date for this plan */
    bool stale; /* all keys must be computed again before the list is read next */
};

/* The ranked lists and the state of their keys (replica_ranks.c). */
struct rankings {
    enum ifl_keys order_keys; /* as of the last plan that looked at a ranked list */
    bool keys_read_plan;      /* some module has read the plan, so keys may depend on it */
    bool keys_asked;          /* this plan has asked for order_keys */
    bool keys_change;         /* keys computed in the last plan are no longer valid */
    bool hook_ran;            /* a hook of the order module has run since this plan asked for
                                 order_keys */
    bool ranks_stale;         /* keys of waiting requests must be computed again before the queue
                                 is read next */
    bool asked_for_lists; /* some plan has taken a list of by_rank; before the first one, no list
                             is taken or kept */
    struct ranking by_rank[N_RANKED];
    const struct ifl_request **asked; /* scratch */
    int64_t *keys;                    /* scratch */
};

/* In the checking mode: a question to a module within a plan, and its answer. */
struct said {
    const struct module *module;
    uint64_t question;
    int64_t answer;
};

struct said_plan {
    struct said *of; /* [n] within one plan */
    size_t n, cap;
};

/* With several steps in flight, in the checking mode: what the next plan must do. */
enum said_turn {
    TURN_OPEN,    /* not restricted */
    TURN_REPEATS, /* it must plan the step that has just ended again */
    TURN_RESTS    /* it must do nothing, until a step ends */
};

/* In the checking mode: what is known of the promise of the last plan. */
struct tested_promise {
    bool only_tested;   /* without the checking mode it would be void: blocks have numbers, or a
                           module that was asked has no `steady` */
    size_t n_running;   /* requests on the device when it was made */
    uint64_t members;   /* print of those that it gives tokens */
    unsigned promising; /* the modules that make it: bits 1 << index */
    bool goes_on;       /* a step has been planned as promised; `made` has the answers in the plan
                           that made the promise */
};

struct said_list {
    bool checks; /* the checking mode */
    struct tested_promise promise_of;
    /* modules whose promise was made, could be used by the loop, was tested: bits 1 << index */
    unsigned promised, used, tested;
    const struct module *lacks;   /* it has no `steady`, for which a promise was not tested */
    struct said_plan now, before; /* answers in this plan, and in the plan that promised it */
    struct said_plan made;        /* answers in the plan that made the first of several promises */
    /* with several steps in flight */
    struct said_plan *flown; /* [depth], answers in the plans of these steps */
    enum said_turn turn;
    struct ifl_promise promise;    /* promise of the step that begins again */
    uint64_t step;                 /* number of that step */
    int32_t slot;                  /* slot of that step */
    struct live_request **repeats; /* [n_repeats], requests of that step */
    size_t n_repeats, cap_repeats;
};

/* The parts of a replica that never change after its creation. */
struct replica_fixed {
    uint32_t number; /* in its cluster */
    bool plain; /* no request has several samples, guesses, an adapter, or K/V that is given up or
                   moved, and no executor wants the work: code for these cases is skipped */
    bool gives_up;     /* some request may give up K/V */
    bool loads_before; /* the next step waits for the K/V that starting requests load */
    bool swaps_apart;  /* K/V is swapped while steps run */
    bool wants_work;   /* the executor reads the work of each sequence */
    int32_t max_samples;
    struct ifl_limits limits;
    struct kv_block block;
    struct overlap overlap;
    struct beam_search beams;
    struct module modules[N_MODULES]; /* the cluster's router is not among them */
    struct ifl_evict_ops evict;       /* functions of the evict module, as the cache calls them */
    struct ragged_options speculation;
    struct keep keep;
    struct windows_rule windows;
    enum swap_full swap_full;
    enum leave leave;
    uint64_t seed;
    int64_t fit_tokens; /* a request with one sequence of at most so many tokens fits; 0:
                           replica_fit_group decides */
};

/* Each part is written only by one file and its header; tests/writers checks it. The file has the
 * name of the part, except: fixed is written in replica_create.c, kv in accounts.h, ranks in
 * replica_ranks.c, said in replica_check.c, on in listeners.c. */
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
    struct overlap overlap; /* depth above 1 excludes beams and an engine as executor */
    uint64_t seed;
    bool wants_work;
    int32_t max_samples; /* most samples of a request; 0 counts as 1 */
    struct beam_search beams;
    struct keep keep; /* excludes beams, several samples per request, several steps in flight, and
                         moves */
    struct windows_rule windows;    /* groups of layers require a paged allocator */
    struct kv_tier *tiers[N_TIERS]; /* borrowed; NULL: there is none */
    bool moves;                     /* requests may come from other replicas, or go there */
    bool loads_before;              /* the next step waits for the K/V that starting requests
                                       load */
    bool swaps_apart;               /* K/V is swapped while steps run; excludes beams and several
                                       steps in flight */
    /* Read only if the draft module guesses; replica_create sets max_drafts and max_model_tokens.
     * Requires one step in flight at a time, one sample per request, and a paged allocator. */
    struct ragged_options speculation;
    struct adapters_options adapters; /* in_pool requires a paged allocator */
};

/* The caller owns the replica; zeroed memory is valid for replica_destroy. Returns 0 or the code of
 * `error`. */
int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error);
void replica_destroy(struct replica *replica);

/* Requests that wait, run, or are swapped out. */
static inline size_t replica_requests(const struct replica *replica)
{
    return replica->here.pool.n_live + waiting_undescribed(&replica->here.waiting);
}

/* The request joins the queue at now_ns: at its arrival, or later if a router held it back. If
 * `pinned` is not NULL, the request gets a record at once, and *pinned points to it until the
 * record is recycled. Returns 0, or a negative code if memory is short. */
int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                 struct live_request **pinned, struct ifl_error *error);
/* Number of blocks that n_tokens tokens fill. */
static inline int32_t replica_full_blocks(const struct replica *replica, int32_t n_tokens)
{
    return (int32_t)kv_full_blocks((uint32_t)n_tokens, replica->fixed.block);
}

/* The answer to whether a request can ever run at this replica. */
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

/* Skips a plan that is made ahead and would be shown no request, so that it would do nothing. The
 * skipped plan counts as made; the next plan, at the same time, is shown all requests. Returns
 * false if the plan must be made. */
bool replica_skip_blind_plan(struct replica *replica);
/* Builds a step at now_ns. Returns 0, or a negative code if a policy broke the contract. */
int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error);
/* Turns the checking mode on or off: every promised step is planned all the same. */
void replica_check(struct replica *replica, bool checks);
/* What a promised step must look like. */
struct promised_step {
    struct ifl_padding padding;
    int32_t n_free_blocks; /* free blocks once the step has taken its own; -1: not compared, since
                              ended requests take blocks, too */
    uint64_t members;      /* print of the requests that compute, in any order */
    struct ifl_promise promise;
    struct tested_promise of;
};
/* Call it before a promised step is planned in the checking mode. */
struct promised_step replica_promised_step(const struct replica *replica);
/* Call it once the promised step is planned. Returns 1 if it is as promised: the promise then
 * stands for the steps behind it. Returns 0 if a module that promised nothing explains the
 * difference. Else returns the code of `error`, which names the module that broke its promise. */
int replica_check_promised(struct replica *replica, const struct promised_step *promised,
                           struct ifl_error *error);
/* Says in `text`, and returns, why promises that were made in the run were not tested. */
const char *replica_why_untested(const struct replica *replica, char *text, size_t n_text);
/* True if the last plan's promise covers one more step at now_ns. */
bool replica_keeps_promise(const struct replica *replica, int64_t now_ns);
/* Builds the step at now_ns without a plan, if the promise covers it. Returns false if a plan is
 * needed. */
bool replica_repeat(struct replica *replica, int64_t now_ns);
/* Turns the plan into in_flight.desc. Returns true if there is work or a copy to submit. */
bool replica_commit(struct replica *replica);
/* With several steps in flight: notes that the step committed last begins at start_ns. */
void replica_note_begin(struct replica *replica, int64_t start_ns);
/* True if several steps may be in flight. */
static inline bool replica_overlaps(const struct replica *replica)
{
    return IFL_RARE(replica->in_flight.flown != NULL);
}
/* Call it after an empty plan if several steps may be in flight. Returns true if another plan is
 * due at once: for the next slot, or because a request was dropped, which is then in `gone`. */
bool replica_tries_on(struct replica *replica);
/* Call it if there are steps in flight, but no requests: no plan is made until the oldest ends, if
 * the engine waits for it. */
void replica_wait_for_step(struct replica *replica);
/* True if a step or a load is in flight, so that its end will follow. */
static inline bool replica_awaits_step(const struct replica *replica)
{
    return replica->in_flight.n_flown > 0 || replica->moving.n > 0;
}
/* Call it after an empty plan if no event follows. Drops one request that the plan has refused for
 * good; with at_end (of the workload) also one that it has refused for now. A request on the device
 * is dropped first, then one in host memory, then one in the queue. The request is in `gone`
 * afterwards. Returns false if the plan has refused no request. */
bool replica_give_up(struct replica *replica, bool at_end);
/* Returns the waiting request with the worst priority, of several the one queued last, if its
 * priority is worse than that of `arrived`; otherwise `arrived`. All waiting requests must have
 * records (replica_join with `pinned`). */
struct live_request *replica_worst_waiting(struct replica *replica, struct live_request *arrived);
/* Removes a request early, as aborted, timed out or shed: either at once, so that it is in `gone`
 * afterwards, or when a step ends (replica_leave.c). Call it at most once for a request. */
void replica_leave(struct replica *replica, struct live_request *r, enum ifl_status status,
                   int64_t now_ns);
/* Counts the tokens of the step in flight, which has ended. Finished requests are in `gone`
 * afterwards. Returns 0 or a negative code. It also fails if steps in a row have produced no token
 * for longer than it takes to fill all K/V memory one token at a time: preemption then undoes
 * prompts faster than they are computed, for ever. */
int replica_end(struct replica *replica, const struct ifl_done *done, struct ifl_recorder *recorder,
                struct ifl_error *error);
/* True if the committed step does only what the promise repeats and yields no request's last token.
 * Then replica_coast may end the step and replica_next_tick may follow, with the same result as
 * replica_end, replica_repeat and replica_commit. */
bool replica_coasts(const struct replica *replica);
/* Estimates how many durations replica_coast can use: those of the committed step, of the steps
 * behind it that end by until_ns, and of one more. The estimate may be too high. Within it, the
 * context grows by the same number of slots in each step. */
size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns);
enum { REPLICA_MAX_STRETCH = 64 };
/* Ends the committed step, which must end before until_ns, and the steps behind it, at most n in
 * all. Each of the steps behind it
 * - changes only sums,
 * - begins within the promise, and
 * - ends before until_ns.
 *
 * Returns how many steps have ended, or a negative code. */
int replica_coast(struct replica *replica, const struct ifl_done *done, const int64_t *duration_ns,
                  size_t n, int64_t until_ns, struct ifl_recorder *recorder,
                  struct ifl_error *error);
/* Returns how many ticks, at most n, are sure to follow the committed tick, for which
 * replica_coasts must be true. In and between these ticks no request ends and nothing is planned,
 * provided that the promise holds for so long and no request comes or leaves. */
size_t replica_sure_ticks(const struct replica *replica, size_t n);
/* Commits the next tick. Returns false, and changes nothing, if the promise does not cover it. */
bool replica_next_tick(struct replica *replica, int64_t now_ns);
/* Call it when the run ends. Fills a record with the preemptions that are in no step's record.
 * Returns false if there are none. */
bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record);
/* Fills the record of a request in `gone`. Call it before replica_recycle. (No build checks that
 * the request is there: each record would cost a walk over all of them.) */
void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record);
/* Empties `gone`; the records of its requests may be reused. */
void replica_recycle(struct replica *replica);

/* ---- replica_moves.c: requests with two replicas (moving.h). Each function is called between
 * plans and voids the promise ---- */

/* The K/V of r, which is MOVING from here, has been read or is not needed. Frees the blocks of r
 * and puts its record into `gone`, without a row in the reports. */
void replica_release(struct replica *replica, struct live_request *r, int64_t now_ns);
/* Copies to r, which waits or is MOVING to here, what has happened to `from`, its record at the
 * replica that has now computed its prompt. */
void replica_go_on(struct replica *replica, struct live_request *r,
                   const struct live_request *from);
/* Notes that the replica which will continue with r has taken blocks for it. */
void replica_reserved(struct replica *replica, struct live_request *r, int64_t now_ns);
/* The K/V for which r, which is MOVING to here, waited has come. r becomes LOADED; if it has its
 * last token, it is in `gone`. */
void replica_loaded(struct replica *replica, struct live_request *r, int64_t now_ns);
/* The K/V that r, which waits or is MOVING to here, was to load is lost. r waits (at the front of
 * the queue if it was MOVING) and computes all its tokens. */
void replica_lose(struct replica *replica, struct live_request *r, int64_t now_ns);

/* ---- replica_migrate.c: requests that move while they decode (fleet/migration.h). Each function
 * is called between plans and voids the promise ---- */

/* r, which has just joined, takes n blocks for the K/V that comes, and is MOVING to here. Returns
 * false, and r waits on, if n and spare_blocks more are not free. */
bool replica_expect(struct replica *replica, struct live_request *r, int32_t n,
                    int32_t spare_blocks, int64_t now_ns);
/* r takes n more blocks. Returns false, and changes nothing, if they are not free. */
bool replica_expect_more(struct replica *replica, struct live_request *r, int32_t n,
                         int64_t now_ns);
/* r, which decodes and is in no step in flight, stops decoding and is MOVING from here. */
void replica_give_away(struct replica *replica, struct live_request *r, int64_t now_ns);
/* r, which is MOVING to here, takes over the counts of `from`, its record at the replica that gives
 * it away. It runs at once; no plan starts it. */
void replica_take_in(struct replica *replica, struct live_request *r,
                     const struct live_request *from, int64_t now_ns);
/* As replica_take_in, for a request that waits at the other replica: r takes n blocks and is
 * LOADED, with nothing computed. Returns false, and r waits on, if n and spare_blocks more are not
 * free. */
bool replica_take_waiting(struct replica *replica, struct live_request *r,
                          const struct live_request *from, int32_t n, int32_t spare_blocks,
                          int64_t now_ns);

/* ---- replica_swap.c: swaps while steps run (serving.swap: overlap). Each function is called
 * between plans and voids the promise ---- */

/* The copy of r, which is MOVING to or from the host, has ended. If it went to the host, r is
 * SWAPPED and its device blocks are free; otherwise r runs at once, without a plan's start. */
void replica_swapped(struct replica *replica, struct live_request *r, int64_t now_ns);
/* The copy of r has ended, but r has left meanwhile: frees all its blocks. */
void replica_drop_swap(struct replica *replica, struct live_request *r, int64_t now_ns);
/* r counts as gone from now on; its blocks are freed later. */
void replica_note_gone(struct replica *replica, struct live_request *r, enum ifl_status status);

/* ---- replica_tiers.c: tiers below the device (tiers.h). Called between plans; voids the promise
 * ---- */

/* The K/V that r, which is MOVING, loads from tiers has come: r is LOADED. */
void replica_loaded_below(struct replica *replica, struct live_request *r, int64_t now_ns);
/* Call it when the units that can be found in the tiers have changed. */
void replica_hear_tiers(struct replica *replica, int64_t now_ns);

/* ---- replica_prefetch.c ---- */

/* Call it when r has joined and waits. Returns true, and fills *ask, if some of its K/V is to be
 * moved to the first tier. */
bool replica_ask_prefetch(struct replica *replica, struct live_request *r,
                          struct prefetch_ask *ask);
/* Takes room in the first tier for the next units of the prefetch, at most most_units, and advances
 * *ask behind them. Returns how many units are to be sent; 0 if nothing more is to come. *chain has
 * the units that are not in the first tier yet, for kv_tier_land or kv_tier_drop. read[most_units]:
 * the slots of those that are sent, for kv_tier_let_go; TIER_NONE: the tier has lost the unit. */
int32_t replica_take_prefetch(struct replica *replica, const struct live_request *r,
                              struct prefetch_ask *ask, int32_t most_units, int32_t *chain,
                              int32_t *read);
/* Notes that the prefetch of r has ended. */
void replica_end_prefetch(struct live_request *r, int64_t now_ns);
/* A plan has reached r while some of its K/V is still to come. Returns true if the plan passes over
 * r until all has come, or until *until_ns; false if r starts on what has come. */
bool replica_passes_over(const struct replica *replica, struct live_request *r, int64_t *until_ns);

/* Returns what the prefix cache holds of the tokens of r, which need not be a request of this
 * replica. */
struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r);
/* As replica_hit, but only n_cached, of a request that is at no replica. */
int32_t replica_hit_tokens(const struct replica *replica, const struct live_request *r);
/* Returns the largest number of blocks of r that the prefix cache may hold. */
int32_t replica_longest_hit(const struct replica *replica, const struct live_request *r);

#endif
