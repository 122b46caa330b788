/* Functions that the files of a replica share, one section per file. Other files include only
 * replica.h. */
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
/* The same, also where such a plan may not promise to repeat itself because blocks have numbers. */
bool replica_only_decodes(const struct replica *replica);
/* True if no promise of the plan can hold, whatever modules say. */
bool replica_voids(const struct replica *replica);
/* Cuts the promise to what the module's `steady` says; without one to nothing. */
void replica_cut_promise(struct replica *replica, const struct module *module,
                         struct ifl_promise *promise);
/* The plan promises so, as long as a run of steps may be and until a refusal ends. Void if a
 * request has ended that the promise does not outlive. */
void replica_promise(struct replica *replica, struct ifl_promise promise);
/* True if the step that was planned last has tokens of r. */
bool replica_computes(const struct replica *replica, const struct live_request *r);

/* ---- replica_create.c ---- */

/* Fills `error` for a replica without memory; the text says how large the replica is. Returns
 * IFL_E_NOMEM. */
IFL_COLD int replica_fail_nomem(const struct replica *replica, struct ifl_error *error);

/* ---- replica_leave.c ---- */

/* Call it when a step ends, before its tokens are counted. Requests that leave with the step give
 * back their blocks; they stay in leaving.early. */
void replica_detach_early(struct replica *replica);
/* r has computed its prompt for another replica and leaves with the step that ends. */
void replica_leave_with_prompt(struct replica *replica, struct live_request *r);

/* Notes the tokens computed for r that are lost, since r leaves before it has its answer. */
void replica_note_lost(const struct replica *replica, struct live_request *r);

/* ---- replica_swap.c: within a plan ---- */

/* r, which is in no list, takes blocks on the host and is MOVING to the host. Its device blocks
 * become free when the copy has ended. Returns false, and changes nothing, if memory is short. */
bool replica_swap_out(struct replica *replica, struct live_request *r);
/* A SWAPPED request takes `hold` device blocks and a seat, and is MOVING from the host. Returns
 * false, and changes nothing, if the blocks are not free. */
bool replica_swap_in(struct replica *replica, struct live_request *r, int32_t hold);
/* Counts r, which was swapped out and has device blocks again, in the accounts. */
void replica_count_back(struct replica *replica, struct live_request *r);
/* All K/V of r has come: r runs from now on, without a plan's start. */
void replica_run_on(struct replica *replica, struct live_request *r);
/* True if the blocks that `needy` lacks are being copied to the host, so that no further request
 * need be preempted. Claims these blocks for `needy`. */
bool replica_room_comes(struct replica *replica, const struct live_request *needy);

/* ---- replica_moves.c ---- */

/* Call it when a step ends: requests whose prompt it completed for another replica become MOVING.
 */
void replica_hand_over_prompts(struct replica *replica);
/* A waiting request takes blocks for hold_tokens tokens, at least for those that it loads, and is
 * MOVING. before: the next step waits for the K/V. Returns false, and changes nothing, if the
 * blocks are not free. */
bool replica_load(struct replica *replica, struct live_request *r, int32_t hold_tokens,
                  bool before);
/* A LOADED request leaves the queue to run, with `hold` blocks. Returns false if they are not free.
 */
bool replica_start_loaded(struct replica *replica, struct live_request *r, int32_t hold);
/* A MOVING or LOADED request leaves: `moving` no longer counts it. It still has its blocks. */
void replica_leave_moving(struct replica *replica, struct live_request *r);

/* ---- step_builder.c and its siblings: what a policy may do in a plan ---- */

/* Calls the on_start hooks of the modules for r. */
void replica_tell_started(struct replica *replica, const struct live_request *r);

extern const struct ifl_step_ops replica_step_ops;
static inline struct replica *replica_of(struct ifl_step *step)
{
    return (struct replica *)(void *)step; /* first in the plan, which is first in the replica */
}
/* Gives each member of the cohort one token. Returns false, and changes nothing, if the blocks for
 * these tokens are not free, or if fewer than spare_blocks would stay free. */
bool replica_take_tick(struct replica *replica, int32_t spare_blocks);
/* As replica_take_tick, and gives one token to each ended request that the plan takes for running.
 */
bool replica_take_tick_ahead(struct replica *replica, int32_t spare_blocks);
/* Blocks that the tokens of these ended requests take. */
int32_t replica_blocks_for_ended(const struct replica *replica);

/* ---- replica_blocks.c: takes and gives back all blocks, and keeps the accounts ---- */

/* Returns the blocks that r takes from the pool to hold hold_tokens tokens. If enough blocks are
 * free but do not fit (contiguous pools), the result is larger than the number of free blocks. */
int32_t replica_need(const struct replica *replica, const struct live_request *r,
                     int32_t hold_tokens);
/* Blocks that r has in all once it holds hold_tokens tokens of each sequence. */
int32_t replica_hold_blocks(const struct replica *replica, const struct live_request *r,
                            int32_t hold_tokens);
/* Makes room for the numbers of n blocks in all. Returns false if memory is short. */
static inline bool replica_reserve_numbers(const struct replica *replica, struct live_request *r,
                                           int32_t n)
{
    return live_reserve_blocks(r, kv_numbers(&replica->kv.device, n)) == 0;
}
/* r takes n more blocks. Returns false, and changes nothing, if they are not free. */
bool replica_take_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* A waiting request takes the blocks of its hit and further ones, n in all. Returns false, and
 * changes nothing, if they are not free. */
bool replica_first_blocks(struct replica *replica, struct live_request *r, int32_t n);
/* Blocks that r lacks for its adapter, and for layers with a window. */
int32_t replica_need_beside(const struct replica *replica, const struct live_request *r);
/* True if r has the blocks for its adapter and windows already, or if they are free in addition to
 * those for hold_tokens tokens. */
bool replica_fits_beside(const struct replica *replica, const struct live_request *r,
                         int32_t hold_tokens);
/* take: a request that has started takes the blocks of its adapter, unless another request has
 * taken them, and those of layers with a window. drop: it gives them back with its own blocks. */
void replica_take_beside(struct replica *replica, struct live_request *r);
void replica_drop_beside(struct replica *replica, struct live_request *r);
/* r gives back all its blocks. finished: r leaves for good; otherwise it was preempted. */
void replica_drop_blocks(struct replica *replica, struct live_request *r, bool finished);
/* A running request gives back n blocks from its `at`-th on. With a cache it gives back any n
 * blocks, if the blocks that are left are its own and cannot be found. Returns false, and changes
 * nothing, if blocks that other requests share would have to be copied and too few blocks are free.
 */
bool replica_cut_blocks(struct replica *replica, struct live_request *r, int32_t at, int32_t n);
/* out: subtracts the slots of r from the accounts. in: adds them. */
void replica_count_out(struct replica *replica, const struct live_request *r);
void replica_count_in(struct replica *replica, const struct live_request *r);
/* Slots that hold the K/V of r; blocks that the sequences of r save by sharing. */
int64_t replica_slots(const struct replica *replica, const struct live_request *r);
int32_t replica_saved_blocks(const struct replica *replica, const struct live_request *r);
/* Used blocks that no request counts as its own: the rounding of contiguous runs, adapters, and
 * windows. */
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
/* part: the sequences of a group get their first tokens behind the prompt, and with them blocks of
 * their own. unpart: undoes this within the plan. */
void replica_part(struct replica *replica, struct live_request *r);
void replica_unpart(struct replica *replica, struct live_request *r);

/* Slots for which r holds blocks while n more of its tokens and n_draft guesses are computed. */
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

/* Blocks that the next tick takes for the members in grow lists (cohort.h), except members that the
 * plan has given tokens already. */
int32_t replica_listed_growth(const struct replica *replica);
/* Blocks that the next tick takes if members speculate, with guesses cut as the next tick takes
 * them. */
int32_t replica_prepare_ragged(const struct replica *replica);
/* True if the next tick may have fewer rows than the one before: guesses are cut at the end of the
 * longest sequence. A request that the step had no room for may then have a part in it. */
static inline bool replica_tick_may_shrink(const struct replica *replica)
{
    const struct here *here = &replica->here;
    return IFL_RARE(!replica->fixed.plain) && cohort_is_ragged(&here->cohort) &&
           !here->cohort.ragged.prepared &&
           here->running.n + here->waiting.n + here->n_swapped > here->cohort.n;
}
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
/* True if taking n_new blocks may evict part of a waiting request's hit that a plan was told of. */
bool replica_tick_may_lose_hits(const struct replica *replica, int32_t n_new);
/* If members speculate. grow: members take the blocks that they lack. ask: asks the draft module
 * for each member that has no tokens in the plan yet. emit: counts the accepted guesses of a step.
 */
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
    if (IFL_RARE(cohort_is_ragged(&replica->here.cohort))) {
        replica_grow_ragged(replica);
        return;
    }
    replica_grow_counted(replica);
    if (!cohort_grows_by_count(&replica->here.cohort))
        replica_grow_listed(replica);
}
/* r, which runs apart, joins the cohort: it decodes with the other members from now on. */
void replica_join_cohort(struct replica *replica, struct live_request *r);

/* ---- replica_beams.c: beam searches; a search begins when the prompt is computed ---- */

int replica_beams_begin(struct replica *replica, struct live_request *r); /* 0 or IFL_E_NOMEM */
int64_t replica_beams_slots(const struct replica *replica, const struct live_request *r);
int32_t replica_beams_hold(const struct replica *replica, const struct live_request *r,
                           int32_t hold_tokens);
/* step: takes blocks for one more scheduled token of r. undo: undoes this within the plan. */
void replica_beams_step(struct replica *replica, struct live_request *r);
void replica_beams_undo(struct replica *replica, struct live_request *r);
/* Call it when the token is sampled: beams continue from each other's block tables. */
void replica_beams_fork(struct replica *replica, struct live_request *r);
/* For all beam searches in the cohort: the blocks that the next tick takes; the tick itself; its
 * end. */
int32_t replica_growing_beams(const struct replica *replica);
void replica_step_beams(struct replica *replica);
void replica_fork_beams(struct replica *replica);

/* ---- replica_keep.c: K/V that is given up; requests of one sequence ---- */

/* The prompt of r is computed and r will decode: r gives up the K/V that serving.kv.keep says. It
 * keeps all K/V if too few blocks are free for the copies. */
void replica_keep_prompt(struct replica *replica, struct live_request *r);
/* Slots that r will have filled when it ends. */
int32_t replica_keep_final(const struct replica *replica, const struct live_request *r);
/* Call it when r has lost its K/V. */
void replica_keep_nothing(struct live_request *r);

/* ---- replica_cache.c: lookups in the prefix cache, and what is published there ---- */

/* Tokens of the hit of a waiting request at the last lookup. */
static inline int32_t replica_cached_tokens(const struct replica *replica,
                                            const struct live_request *r)
{
    return replica->kv.device.cached ? r->n_hit * replica->fixed.limits.block_tokens : 0;
}
/* Looks up a waiting request in the prefix cache and, if there are any, in tiers or at another
 * replica. Sets its n_computed to the tokens found. */
void replica_find_hit(struct replica *replica, struct live_request *r);
/* A number that rises when the hit of a waiting request may have changed, on the device or in a
 * tier. */
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
/* Only with a cache. share: a waiting request becomes an owner of the blocks of its hit. leave: r
 * gives up its blocks, and the blocks with computed tokens stay in the cache. */
void replica_share_hit(struct replica *replica, struct live_request *r);
void replica_leave_in_cache(struct replica *replica, struct live_request *r, bool finished);
/* Publish blocks of a prompt, so that other requests can find them. prompt: the blocks that a step
 * has computed. plan: those that the plan under way will compute. */
void replica_publish_prompt(struct replica *replica, struct live_request *r, int32_t n_computed);
void replica_publish_plan(struct replica *replica, struct live_request *r, int32_t n_computed);
/* Call it before r overwrites blocks that it has published: lookups no longer find those of them
 * that only r owns. */
void replica_unpublish(struct replica *replica, struct live_request *r);
/* Unpublishes the blocks of r that the plan has published and will not compute. */
void replica_withdraw(struct replica *replica, struct live_request *r);
/* True if r started in this plan on K/V that `other` computes in the same step. */
bool replica_stands_on(const struct replica *replica, const struct live_request *r,
                       const struct live_request *other);

/* ---- replica_tiers.c: tiers below the device (tiers.h) ---- */

/* Looks up, behind the hit of a waiting request and within its first `limit` blocks, what the tiers
 * have. Sets n_below and tiers.n_blocks of r. Returns the number of blocks found, the hit included.
 */
int32_t replica_find_below(struct replica *replica, struct live_request *r, int32_t limit);
/* True if the K/V that r has in tiers is loaded while steps run. */
bool replica_loads_apart(const struct replica *replica, const struct live_request *r);
/* A waiting request takes blocks for hold_tokens tokens, at least for its prompt, and is MOVING.
 * Returns false, and changes nothing, if the blocks are not free. */
bool replica_load_below(struct replica *replica, struct live_request *r, int32_t hold_tokens);
/* Call it before r takes its first blocks: these may push out of a tier what r loads. Returns false
 * if memory is short. */
bool replica_note_loads(struct replica *replica, const struct live_request *r);
/* r starts and has its blocks: its K/V in tiers counts as loaded, or its step waits for this K/V.
 */
void replica_take_below(struct replica *replica, struct live_request *r);
/* r starts for the first time: records how many tokens it found in each tier. */
void replica_note_found(struct replica *replica, struct live_request *r);
/* Offer blocks to the tiers. prompt: those that r has computed or found of its prompt. answer:
 * those of its prompt and answer, when r ends. */
void replica_offer_prompt(struct replica *replica, struct live_request *r, int32_t n_computed);
void replica_offer_answer(struct replica *replica, struct live_request *r);
/* Blocks of the prompt that a store outside the simulation holds. */
int32_t replica_given_blocks(const struct replica *replica, const struct live_request *r,
                             const struct kv_tier *tier);
void replica_report_tiers(const struct live_request *r, struct ifl_request_record *record);

/* ---- replica_check.c: serving.check_steady ---- */

/* Computes again every key that should not have changed. A changed key is a breach of the contract.
 */
void replica_check_keys(struct replica *replica);
/* Records a question to a module within this plan, and its answer. */
IFL_COLD void replica_say(struct replica *replica, const struct module *module, uint64_t question,
                          int64_t answer);
static inline void replica_note_said(struct replica *replica, const struct module *module,
                                     uint64_t question, int64_t answer)
{
    if (IFL_RARE(replica->said.checks))
        replica_say(replica, module, question, answer);
}
/* Returns a checksum of what a module may read but not change, taken before it is asked about n
 * requests; 0 if nothing is checked. replica_compare_print reports a breach if the checksum differs
 * after the question. */
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
/* Call it when a plan begins: the answers in the last plan become those of the previous plan.
 * stands: nothing that voids a promise has happened since then. */
void replica_check_plan(struct replica *replica, int64_t now_ns, bool stands);
/* Call it when the promise that the plan has made has been cut to what other modules say. If it is
 * void for a reason that leaves it true, it is tested all the same. */
void replica_test_promise(struct replica *replica, struct ifl_promise made);
/* Call it when the plan is made. With several steps in flight, a promised plan must be as promised.
 */
void replica_check_turn(struct replica *replica);
/* push: one of several steps in flight has begun. pull: the oldest one ends at end_ns. */
void replica_check_push(struct replica *replica);
void replica_check_pull(struct replica *replica, int64_t end_ns);
void replica_check_finish(struct replica *replica);

/* ---- replica_moves.c ---- */

/* Call it when something has changed between two plans: voids the promise. */
void replica_stir(struct replica *replica, int64_t now_ns);

/* ---- replica.c: leaving ---- */

/* Call it when the plan is made: removes the ended requests. Those that the plan took for running
 * and did not preempt give back their blocks. */
void replica_let_ended_go(struct replica *replica);

/* ---- promise.c: what the next plan is not shown ---- */

/* A request arrives at at_ns and is in no list yet. Ends the promise: now, or with the next plan if
 * that plan is made ahead and does not see the request. */
void replica_promise_arrived(struct replica *replica, int64_t at_ns);
/* Call it when a step has ended with the last tokens of requests. True if the promise also holds
 * for the remaining requests, and for a plan that still takes the ended ones for running. */
bool replica_promise_ended(const struct replica *replica);

/* ---- replica_step.c: the end of a step ---- */

/* Gives every member of the cohort one more token, at end_ns, and records the gaps. Returns 0 or
 * the code of `error`. */
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
