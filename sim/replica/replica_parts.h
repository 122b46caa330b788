/* What the files of a replica offer one another, a section a file. Other files include replica.h
 * alone. */
#ifndef SIM_REPLICA_REPLICA_PARTS_H
#define SIM_REPLICA_REPLICA_PARTS_H

#include "replica/replica.h"
#include "replica/replica_ranks.h"
#include "replica/view.h"

#define FOR_EACH_MODULE(module, replica)                                                           \
    for (struct module *module = (replica)->fixed.modules;                                         \
         module < (replica)->fixed.modules + N_MODULES; module++)                                  \
        if (module->policy)

/* ---- replica.c: what a plan does ---- */

/* True if the plan decodes and does nothing else. Only such a plan may promise to repeat itself. */
bool replica_only_ticks(const struct replica *replica);

/* ---- replica_create.c ---- */

/* No memory for the replica; the text says how large it is. Returns IFL_E_NOMEM. */
IFL_COLD int replica_fail_nomem(const struct replica *replica, struct ifl_error *error);

/* ---- replica_leave.c ---- */

/* As a step ends, before its tokens are counted: requests that leave with it give back what they
 * have. They are still in leaving.early. */
void replica_detach_early(struct replica *replica);
/* r has computed what it was here for, and leaves with the step that ends. */
void replica_leave_with_prompt(struct replica *replica, struct live_request *r);

/* What is computed for r, which leaves before it is answered, is lost. */
void replica_note_lost(const struct replica *replica, struct live_request *r);

/* ---- replica_swap.c: within a plan ---- */

/* r, which no list has, is MOVING to the host, where it has blocks. Its device blocks are free as
 * it has come. False without memory, and nothing has changed. */
bool replica_swap_out(struct replica *replica, struct live_request *r);
/* A SWAPPED request takes `hold` device blocks and a seat, and is MOVING from the host. False, and
 * nothing has changed: they are not there. */
bool replica_swap_in(struct replica *replica, struct live_request *r, int32_t hold);
/* r, which was swapped out, has device blocks again. */
void replica_count_back(struct replica *replica, struct live_request *r);
/* All K/V of r has come: it runs from now on, without a plan's start. */
void replica_run_on(struct replica *replica, struct live_request *r);
/* True: what `needy` lacks is on its way to the host, so that nothing else is to give way. */
bool replica_room_comes(struct replica *replica, const struct live_request *needy);

/* ---- replica_moves.c ---- */

/* As a step ends: requests of which it has completed the prompt for another replica are MOVING. */
void replica_hand_over_prompts(struct replica *replica);
/* A waiting request takes blocks for hold_tokens, at least for what it will have loaded, and is
 * MOVING. before: the next step waits for it. False, and nothing has changed: they are not there.
 */
bool replica_load(struct replica *replica, struct live_request *r, int32_t hold_tokens,
                  bool before);
/* A LOADED request leaves the queue to run, with `hold` blocks. False: they are not there. */
bool replica_start_loaded(struct replica *replica, struct live_request *r, int32_t hold);
/* A MOVING or LOADED request leaves: it is no longer counted. It still has its blocks. */
void replica_leave_moving(struct replica *replica, struct live_request *r);

/* ---- step_builder.c and its siblings: what a policy may do in a plan ---- */

/* Calls on_start of the modules for r. */
void replica_tell_started(struct replica *replica, const struct live_request *r);

extern const struct ifl_step_ops replica_step_ops;
static inline struct replica *replica_of(struct ifl_step *step)
{
    return (struct replica *)(void *)step; /* first in the plan, which is first in the replica */
}
/* Gives each member of the cohort one token. False, and nothing has changed: the blocks for it are
 * not free, or fewer than spare_blocks would stay free. */
bool replica_take_tick(struct replica *replica, int32_t spare_blocks);
/* The same, and one to each request that has ended and is not known to have. */
bool replica_take_tick_ahead(struct replica *replica, int32_t spare_blocks);
/* Blocks that the tokens of these take. */
int32_t replica_blocks_for_ended(const struct replica *replica);

/* ---- replica_blocks.c: all blocks are taken and given back here, where the accounts are kept
 * ---- */

/* Blocks that r takes from the pool to hold hold_tokens tokens. If enough blocks are free but do
 * not fit (contiguous pools), the answer is more than the free ones. */
int32_t replica_need(const struct replica *replica, const struct live_request *r,
                     int32_t hold_tokens);
/* Blocks that r has in all once it holds hold_tokens tokens of each sequence. */
int32_t replica_hold_blocks(const struct replica *replica, const struct live_request *r,
                            int32_t hold_tokens);
/* Room for the numbers of n blocks in all; false without memory. */
static inline bool replica_reserve_numbers(const struct replica *replica, struct live_request *r,
                                           int32_t n)
{
    return live_reserve_blocks(r, kv_numbers(&replica->kv.device, n)) == 0;
}
/* r takes n more blocks. False, and nothing has changed: they are not there. */
bool replica_take_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* A waiting request takes the blocks of its hit and as many more as make n. False, and nothing has
 * changed: they are not there. */
bool replica_first_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* Blocks that r lacks for its adapter, and for layers with a window. */
int32_t replica_need_beside(const struct replica *replica, const struct live_request *r);
/* True if a start finds the blocks of its adapter and windows, too, or they are there. */
bool replica_fits_beside(const struct replica *replica, const struct live_request *r,
                         int32_t hold_tokens);
/* A request that has started takes its adapter's blocks, if no other has them, and those of layers
 * with a window. It drops them with its own. */
void replica_take_beside(struct replica *replica, struct live_request *r);
void replica_drop_beside(struct replica *replica, struct live_request *r);
/* r gives back all of its blocks. finished: it leaves for good; else it was preempted. */
void replica_drop_blocks(struct replica *replica, struct live_request *r, bool finished);
/* A running request gives back n blocks from its `at`-th on; with a cache, where the blocks that
 * are left are its own and cannot be found, any n. False, and nothing has changed: blocks that
 * others share would have to be copied, and too few are free. */
bool replica_cut_blocks(struct replica *replica, struct live_request *r, int32_t at, int32_t n);
/* Takes the slots of r out of the accounts, and counts them anew. */
void replica_count_out(struct replica *replica, const struct live_request *r);
void replica_count_in(struct replica *replica, const struct live_request *r);
/* Slots that hold the K/V of a request; blocks that its sequences save by sharing. */
int64_t replica_slots(const struct replica *replica, const struct live_request *r);
int32_t replica_saved_blocks(const struct replica *replica, const struct live_request *r);
/* Used blocks beside those that requests count: what runs are rounded up by, adapters, windows. */
static inline int32_t replica_slack_blocks(const struct replica *replica)
{
    return kv_slack(&replica->kv.device) + replica->adapters.n_used_blocks +
           replica->windows.n_blocks;
}
/* Slots of the blocks that requests hold. */
static inline int64_t replica_held_slots(const struct replica *replica)
{
    const int32_t n_held = kv_used(&replica->kv.device) - replica_slack_blocks(replica);
    return (int64_t)n_held * replica->fixed.limits.block_tokens;
}
/* part: the sequences of a group get their first tokens behind the prompt, and blocks of their own
 * with them. unpart: the plan takes that back. */
void replica_part(struct replica *replica, struct live_request *r);
void replica_unpart(struct replica *replica, struct live_request *r);

/* Slots that r holds blocks for while n more of its tokens are computed, and n_draft guesses. */
static inline int32_t replica_slots_for(const struct replica *replica, const struct live_request *r,
                                        int32_t n, int32_t n_draft)
{
    const struct ragged_options *speculation = &replica->fixed.speculation;
    const int32_t n_after = live_slots(r) + n;
    const bool decodes = r->pub.state != IFL_WAITING && request_decodes(&r->pub);
    if (!IFL_RARE(speculation->on) || r->ended || !(decodes || speculation->prompts_look_ahead))
        return n_after;
    const int32_t n_ahead = n_after + n_draft + speculation->lookahead_tokens;
    return ifl_max(n_after, ifl_min(n_ahead, speculation->max_model_tokens));
}

/* Blocks that the next tick takes: for counted members (cohort.h), and for those in grow lists. */
int32_t replica_listed_growth(const struct replica *replica);
/* The same where members speculate, with guesses cut to what the next tick takes. */
int32_t replica_prepare_ragged(const struct replica *replica);
static inline int32_t replica_growing_blocks(const struct replica *replica)
{
    const struct cohort *cohort = &replica->here.cohort;
    if (IFL_RARE(!replica->fixed.plain) && cohort_is_ragged(cohort))
        return replica_prepare_ragged(replica);
    const int32_t n = cohort->n_counted[cohort->phase];
    return cohort_grows_by_count(cohort) && !IFL_RARE(!replica->fixed.plain)
               ? n
               : n + replica_listed_growth(replica);
}
static inline bool replica_tick_fits(const struct replica *replica, int32_t n_new,
                                     int32_t spare_blocks)
{
    return replica->kv.device.n_free - n_new >= spare_blocks &&
           !(IFL_RARE(replica->kv.device.contiguous) && n_new > 0);
}
/* True if taking n_new blocks may cost a waiting request a hit that a plan was told of. */
bool replica_tick_may_lose_hits(const struct replica *replica, int32_t n_new);
/* Where members speculate: they take the blocks that they lack; the plan asks how much is guessed
 * for each that has no tokens in it yet; a step yields what was guessed and holds. */
void replica_grow_ragged(struct replica *replica);
void replica_ask_drafts(struct replica *replica);
void replica_emit(struct replica *replica);
/* Members take their blocks for the tick under way, counted members first. */
void replica_grow_listed(struct replica *replica);
static inline void replica_grow_counted(struct replica *replica)
{
    int64_t n_unused_slots;
    const int32_t n = cohort_grow_counted(&replica->here.cohort, &n_unused_slots);
    if (n > 0)
        kv_take(&replica->kv.device, n, NULL);
    accounts_add_unused(&replica->kv, n_unused_slots);
}
static inline void replica_grow(struct replica *replica)
{
    if (cohort_is_ragged(&replica->here.cohort)) {
        replica_grow_ragged(replica);
        return;
    }
    replica_grow_counted(replica);
    if (!cohort_grows_by_count(&replica->here.cohort))
        replica_grow_listed(replica);
}
/* r, which runs apart, joins the cohort: it decodes with the others from now on. */
void replica_join_cohort(struct replica *replica, struct live_request *r);

/* ---- replica_beams.c: beam searches; one begins behind a prefill ---- */

int replica_beams_begin(struct replica *replica, struct live_request *r); /* 0 or IFL_E_NOMEM */
int64_t replica_beams_slots(const struct replica *replica, const struct live_request *r);
int32_t replica_beams_hold(const struct replica *replica, const struct live_request *r,
                           int32_t hold_tokens);
/* step: one more token of r is scheduled. undo: the plan takes that back. */
void replica_beams_step(struct replica *replica, struct live_request *r);
void replica_beams_undo(struct replica *replica, struct live_request *r);
/* The token is sampled: beams go on from one another's block tables. */
void replica_beams_fork(struct replica *replica, struct live_request *r);
/* For all beam searches in the cohort: blocks that the next tick takes, the tick, its end. */
int32_t replica_growing_beams(const struct replica *replica);
void replica_step_beams(struct replica *replica);
void replica_fork_beams(struct replica *replica);

/* ---- replica_keep.c: K/V that is given up; requests of one sequence ---- */

/* The prompt of r is computed, and it will decode: it gives up what serving.kv.keep says. */
void replica_keep_prompt(struct replica *replica, struct live_request *r);
/* Slots that r will have filled in the end. */
int32_t replica_keep_final(const struct replica *replica, const struct live_request *r);
/* r has lost its K/V. */
void replica_keep_nothing(struct live_request *r);

/* ---- replica_cache.c: what the prefix cache is asked and told ---- */

/* Tokens of the hit of a waiting request, as it was last looked up. */
static inline int32_t replica_cached_tokens(const struct replica *replica,
                                            const struct live_request *r)
{
    return replica->kv.device.cached ? r->n_hit * replica->fixed.limits.block_tokens : 0;
}
/* Looks up a waiting request: its n_computed becomes what the cache holds of it now, or another
 * replica does. */
void replica_find_hit(struct replica *replica, struct live_request *r);
/* Rises when the hit of a waiting request may have changed, on the device or below. */
static inline uint64_t replica_cache_epoch(const struct replica *replica)
{
    const uint64_t epoch = replica->kv.device.cache.epoch;
    return IFL_RARE(replica->tiers.on) ? epoch + tiers_changes(&replica->tiers) : epoch;
}
static inline void replica_look_up(struct replica *replica, struct live_request *r)
{
    if (replica->kv.device.cached && r->pub.state == IFL_WAITING &&
        r->looked_up != replica_cache_epoch(replica))
        replica_find_hit(replica, r);
}
/* Marks the cached blocks that waiting requests would start on, for evict modules that ask for it
 * (ifl_wanted). */
void replica_mark_wanted(struct replica *replica);
static inline void replica_note_wanted(struct replica *replica)
{
    if (replica->kv.device.cached && replica->kv.device.cache.asks_wanted)
        replica_mark_wanted(replica);
}
/* Only with a cache. share: a waiting request shares the blocks of its hit. leave: as r gives up
 * its blocks, those that hold computed tokens stay to be found. */
void replica_share_hit(struct replica *replica, struct live_request *r);
void replica_leave_in_cache(struct replica *replica, struct live_request *r, bool finished);
/* Lets other requests find the blocks of a prompt: prompt, those that a step has computed; plan,
 * those that the plan under way will have computed. */
void replica_publish_prompt(struct replica *replica, struct live_request *r, int32_t n_computed);
void replica_publish_plan(struct replica *replica, struct live_request *r, int32_t n_computed);
/* r is about to write over what it has published: of its blocks those that are its own alone are
 * found no more. */
void replica_unpublish(struct replica *replica, struct live_request *r);
/* Takes back what the plan has published of r and will not compute. */
void replica_withdraw(struct replica *replica, struct live_request *r);
/* True if r started in this plan on K/V that the plan has `other` compute. */
bool replica_stands_on(const struct replica *replica, const struct live_request *r,
                       const struct live_request *other);

/* ---- replica_tiers.c: tiers below the device (tiers.h) ---- */

/* Finds what lies below behind the hit of a waiting request, of its first `limit` blocks: n_below
 * and tiers.n_blocks of r. Returns how many blocks there are, the hit included. */
int32_t replica_find_below(struct replica *replica, struct live_request *r, int32_t limit);
/* True if what r has below comes while steps go on. */
bool replica_loads_apart(const struct replica *replica, const struct live_request *r);
/* A waiting request takes blocks for hold_tokens, at least for its prompt, and is MOVING. False,
 * and nothing has changed: they are not there. */
bool replica_load_below(struct replica *replica, struct live_request *r, int32_t hold_tokens);
/* r, which starts, has its blocks: it has what lies below, too, or its step waits for it. */
void replica_take_below(struct replica *replica, struct live_request *r);
/* r starts for the first time: what it found where. */
void replica_note_found(struct replica *replica, struct live_request *r);
/* Tiers are offered what r has computed or found of its prompt; of all, as it ends. */
void replica_offer_prompt(struct replica *replica, struct live_request *r, int32_t n_computed);
void replica_offer_answer(struct replica *replica, struct live_request *r);
/* Blocks of the prompt that a store outside the simulation holds. */
int32_t replica_given_blocks(const struct replica *replica, const struct live_request *r,
                             const struct kv_tier *tier);
void replica_report_tiers(const struct live_request *r, struct ifl_request_record *record);

/* ---- replica_check.c: serving.check_steady ---- */

/* Asks again for every key that is said to stand. A key that has changed is a breach. */
void replica_check_keys(struct replica *replica);
/* Writes down what a module was asked within this plan, and its answer. */
IFL_COLD void replica_say(struct replica *replica, const struct module *module, uint64_t question,
                          int64_t answer);
static inline void replica_note_said(struct replica *replica, const struct module *module,
                                     uint64_t question, int64_t answer)
{
    if (IFL_RARE(replica->said.checks))
        replica_say(replica, module, question, answer);
}
/* What a module may read and not change, before it is asked about n requests; 0: nothing is
 * checked. Behind the question a change is a breach. */
IFL_COLD uint64_t replica_print_of(const struct replica *replica,
                                   const struct ifl_request *const *of, size_t n);
IFL_COLD void replica_compare_print(struct replica *replica, const struct module *module,
                                    uint64_t before, const struct ifl_request *const *of, size_t n);
static inline uint64_t replica_print(const struct replica *replica,
                                     const struct ifl_request *const *of, size_t n)
{
    return IFL_RARE(replica->said.checks) ? replica_print_of(replica, of, n) : 0;
}
static inline void replica_compare(struct replica *replica, const struct module *module,
                                   uint64_t before, const struct ifl_request *const *of, size_t n)
{
    if (IFL_RARE(before != 0))
        replica_compare_print(replica, module, before, of, n);
}
/* A plan begins: the answers of the last one become those of the plan before. stands: nothing has
 * happened since then that voids a promise. */
void replica_check_plan(struct replica *replica, int64_t now_ns, bool stands);
/* The plan is made. Where several steps may be in flight, one that was promised must be so. */
void replica_check_turn(struct replica *replica);
/* One of several steps in flight has begun; the oldest one ends at end_ns. */
void replica_check_push(struct replica *replica);
void replica_check_pull(struct replica *replica, int64_t end_ns);
void replica_check_finish(struct replica *replica);

/* ---- replica_moves.c ---- */

/* Something has changed between two plans. */
void replica_stir(struct replica *replica, int64_t now_ns);

/* ---- replica.c: leaving ---- */

/* Once the plan is made: the ended requests leave. Those that the plan took for running, and did
 * not preempt, give back their blocks. */
void replica_let_ended_go(struct replica *replica);

/* ---- promise.c: what the next plan is not shown ---- */

/* A request arrives at at_ns, and is not in a list yet: the promise ends, now or with the plan that
 * does not know of it. */
void replica_promise_arrived(struct replica *replica, int64_t at_ns);
/* A step has ended, and requests with it. True: the promise holds for those that are left, and for
 * the plan that takes these for running. */
bool replica_promise_ended(const struct replica *replica);

/* ---- replica_step.c: the end of a step ---- */

/* Every member of the cohort has one more token, since end_ns; records the gaps. */
int replica_tick(struct replica *replica, int64_t end_ns, struct ifl_recorder *recorder,
                 struct ifl_error *error);
/* Calls on_step_end of the modules for the untold ticks, as one run. */
void replica_tell_steps(struct replica *replica);
static inline void replica_tell_run(struct replica *replica)
{
    if (IFL_RARE(replica->on.step_end.n > 0) && replica->in_flight.n_untold > 0)
        replica_tell_steps(replica);
    in_flight_tell(&replica->in_flight);
}

#endif
