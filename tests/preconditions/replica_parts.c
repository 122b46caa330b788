/* Preconditions of the parts of a replica and of its steps, each broken once. */
#include "violates.h"

#include "replica/replica_parts.h"
#include "replica/step_builder.h"

static struct ifl_error error;
static struct live_request request = {.pub = {.n_seqs = 1, .n_prompt = 4}, .rare = &live_no_rare};
static struct replica idle; /* zeroed: empty, no step in flight */
static struct replica flying = {.in_flight = {.busy = true}};

/* ---- which requests are here ---- */

VIOLATES(here, answer, here_answer, "here->n_unanswered_tokens >= live_prompt_tokens(r)")
{
    here_answer(&idle.here, &request);
}

VIOLATES(here, leave, here_leave, "here->n_seqs_here >= r->pub.n_seqs")
{
    here_leave(&idle.here, &request);
}

VIOLATES(here, start, here_start, "!r->in_cohort")
{
    request.in_cohort = true;
    here_start(&idle.here, &request);
}

VIOLATES(here, compute, here_compute, "here->n_in_prefill > 0")
{
    here_compute(&idle.here, &request);
}

VIOLATES(here, swapped, here_remove_swapped, "here->n_swapped > 0")
{
    here_remove_swapped(&idle.here, &request);
}

/* ---- the step in flight ---- */

static const struct ifl_done first_done = {.step = 1, .end_ns = 5};

VIOLATES(in_flight, notes, in_flight_note_end, "in_flight->n_untold < REPLICA_LONGEST_RUN")
{
    idle.in_flight.n_untold = REPLICA_LONGEST_RUN;
    in_flight_note_end(&idle.in_flight, 1);
}

VIOLATES(in_flight, end_of_none, in_flight_end, "in_flight->busy")
{
    in_flight_end(&idle.in_flight, &first_done);
}

VIOLATES(in_flight, end_of_another, in_flight_end, "done->step == in_flight->desc.step")
{
    in_flight_end(&flying.in_flight, &first_done);
}

VIOLATES(in_flight, foresee, in_flight_foresee, "<= REPLICA_LONGEST_RUN")
{
    in_flight_foresee(&idle.in_flight, NULL, REPLICA_LONGEST_RUN + 1, 0, 0);
}

VIOLATES(in_flight, pass_none, in_flight_pass, "in_flight->busy && n > 0")
{
    in_flight_pass(&flying.in_flight, &first_done, 0, 1);
}

VIOLATES(in_flight, pass_without_notes, in_flight_pass, "first->end_ns")
{
    static int64_t ends_ns[1];
    flying.in_flight.ends_ns = ends_ns;
    in_flight_pass(&flying.in_flight, &first_done, 1, 1);
}

VIOLATES(in_flight, results, in_flight_list_results, "replica->in_flight.results")
{
    in_flight_list_results(&idle, 1);
}

/* ---- the plan ---- */

VIOLATES(plans, begun_twice, plan_begin, "!plan->planning")
{
    plan_begin(&idle.plan, false, IFL_NEVER);
    plan_begin(&idle.plan, false, IFL_NEVER);
}

VIOLATES(plans, end_of_none, plan_end, "plan->planning")
{
    plan_end(&idle.plan);
}

VIOLATES(plans, none_runs, plan_uncount_running, "n_running_requests > 0")
{
    plan_uncount_running(&idle.plan, &request);
}

VIOLATES(plans, none_waits, plan_count_start, "n_waiting > 0")
{
    plan_count_start(&idle.plan, &request);
}

VIOLATES(plans, none_swapped, plan_count_swapped_in, "n_swapped > 0")
{
    plan_count_swapped_in(&idle.plan);
}

VIOLATES(plans, no_tokens, plan_add, "one.n > 0")
{
    plan_add(&idle.plan, (struct planned){.r = &request});
}

VIOLATES(plans, keep, plan_keep, "at < plan->n_planned")
{
    const struct planned one = {.r = &request, .n = 1};
    plan_keep(&idle.plan, 0, &one);
}

VIOLATES(plans, cut, plan_cut, "n <= plan->n_planned")
{
    plan_cut(&idle.plan, 1);
}

VIOLATES(plans, sample, plan_note_computed, "i < plan->n_planned")
{
    plan_note_computed(&idle.plan, 0, 0, true);
}

VIOLATES(plans, refusal_of_none, plan_refuse, "refusal.r")
{
    plan_refuse(&idle.plan, (struct refusal){.why = "it rains"});
}

VIOLATES(plans, unpromised, plan_use_promise, "n_steps <= plan->promise.n_steps")
{
    plan_use_promise(&idle.plan, 1);
}

VIOLATES(plans, padding, plan_pad_for_ended, "one->r->ended")
{
    const struct planned one = {.r = &request, .n = 1};
    plan_pad_for_ended(&idle.plan, &one);
}

VIOLATES(views, no_steps, view_end, "n_steps > 0")
{
    view_end(&idle.view, 0, 1);
}

/* ---- ranked lists, the cache, the checking mode ---- */

VIOLATES(lists, note, replica_note, "list->kept")
{
    replica_note(&idle.ranks.by_rank[RANKED_RUNNING], &request);
}

VIOLATES(lists, forget, replica_forget, "list->kept")
{
    replica_forget(&idle.ranks.by_rank[RANKED_RUNNING], &request);
}

VIOLATES(lists, taken_twice, replica_take_ranking, "!list->taken")
{
    idle.ranks.by_rank[RANKED_RUNNING].taken = true;
    replica_take_ranking(&idle, &idle.ranks.by_rank[RANKED_RUNNING]);
}

VIOLATES(lists, asked_twice, replica_ask_keys, "!replica->ranks.keys_asked")
{
    idle.ranks.keys_asked = true;
    replica_ask_keys(&idle);
}

VIOLATES(without_cache, share, replica_share_hit, "replica->kv.device.cached")
{
    replica_share_hit(&idle, &request);
}

VIOLATES(without_cache, no_hit, replica_share_hit, "r->n_hit > 0")
{
    idle.kv.device.cached = true;
    replica_share_hit(&idle, &request);
}

VIOLATES(without_cache, leave, replica_leave_in_cache, "replica->kv.device.cached")
{
    replica_leave_in_cache(&idle, &request, true);
}

VIOLATES(without_cache, look_up, replica_find_hit, "replica->kv.device.cached")
{
    replica_find_hit(&idle, &request);
}

VIOLATES(without_cache, look_up_running, replica_find_hit, "r->pub.state == IFL_WAITING")
{
    idle.kv.device.cached = true;
    request.pub.state = IFL_RUNNING;
    replica_find_hit(&idle, &request);
}

VIOLATES(without_cache, wanted, replica_mark_wanted, "replica->kv.device.cached")
{
    replica_mark_wanted(&idle);
}

VIOLATES(checking, off, replica_say, "replica->said.checks")
{
    replica_say(&idle, NULL, 0, 0);
}

/* ---- blocks ---- */

VIOLATES(blocks_of, parted_twice, replica_part, "!r->parted")
{
    request.parted = true;
    replica_part(&idle, &request);
}

VIOLATES(blocks_of, first_of_running, replica_first_blocks, "r->pub.state == IFL_WAITING")
{
    request.pub.state = IFL_RUNNING;
    replica_first_blocks(&idle, &request, 1);
}

VIOLATES(blocks_of, step_of_no_beams, replica_beams_step, "r->rare->beams.n_seqs > 0")
{
    replica_beams_step(&idle, &request);
}

VIOLATES(blocks_of, undo_of_no_beams, replica_beams_undo, "r->rare->beams.n_seqs > 0")
{
    replica_beams_undo(&idle, &request);
}

VIOLATES(blocks_of, fork_of_no_beams, replica_beams_fork, "r->rare->beams.n_seqs > 0")
{
    replica_beams_fork(&idle, &request);
}

VIOLATES(blocks_of, tokens_without_blocks, step_put_in_plan, "holds_blocks(replica, r, n)")
{
    idle.fixed.block = kv_block_of(16);
    step_put_in_plan(&idle, &request, 1, 0);
}

VIOLATES(blocks_of, no_tokens, step_put_in_plan, "n > 0")
{
    step_put_in_plan(&idle, &request, 0, 0);
}

VIOLATES(blocks_of, not_swapped, step_remove_swapped, "r->pub.state == IFL_SWAPPED")
{
    step_remove_swapped(&idle, &request);
}

/* ---- the life of a step ---- */

VIOLATES(life, joins_before_it_arrives, replica_join, "now_ns >= arrival->at_ns")
{
    const struct arrival arrival = {.at_ns = 2};
    replica_join(&idle, &arrival, 1, NULL, &error);
}

VIOLATES(life, plan, replica_plan, "!replica->in_flight.busy")
{
    replica_plan(&flying, 0, &error);
}

VIOLATES(life, repeat, replica_repeat, "!replica->in_flight.busy")
{
    replica_repeat(&flying, 0);
}

VIOLATES(life, give_up, replica_give_up, "!replica->in_flight.busy")
{
    replica_give_up(&flying, true);
}

VIOLATES(life, commit, replica_commit, "!replica->in_flight.busy")
{
    replica_commit(&flying);
}

VIOLATES(life, end, replica_end, "replica->in_flight.busy")
{
    replica_end(&idle, &first_done, NULL, &error);
}

VIOLATES(life, next_tick, replica_next_tick, "!replica->in_flight.busy")
{
    replica_next_tick(&flying, 0);
}

VIOLATES(life, coast, replica_coast, "replica_coasts(replica)")
{
    const int64_t duration_ns = 5;
    replica_coast(&flying, &first_done, &duration_ns, 1, 10, NULL, &error);
}
