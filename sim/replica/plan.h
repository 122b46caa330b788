/* The plan under way: the step that the policy holds, and all that the plan has done to it so far.
 * This state is written within a plan, or when its step is committed or repeated. */
#ifndef SIM_REPLICA_PLAN_H
#define SIM_REPLICA_PLAN_H

#include "inflight/executor.h"
#include "inflight/policy.h"

#include "replica/accounts.h"
#include "replica/adapters.h"
#include "replica/here.h"
#include "replica/refusals.h"

/* One request's share of the step being built. */
struct planned {
    struct live_request *r; /* NULL: undone */
    int32_t n;              /* tokens of each sequence */
    int32_t n_tokens;       /* tokens of all its sequences, shared ones counted once */
    bool decodes, samples;
    int32_t n_computed; /* tokens of each sequence computed with this step; set when the plan is
                           committed */
    int32_t n_draft;    /* guessed tokens, counted in n_tokens but not in n; for a prompt, padding
                           rows in their place */
};

/* A snapshot of one list, taken when a plan first asks for it. */
struct snapshot {
    const struct ifl_request **of;
    size_t n;
    bool taken;
};

/* Fields that each plan reads or writes come first: with many replicas they are fetched into the
 * caches anew for each plan. */
struct plan {
    struct ifl_step step; /* first: what the policy holds */
    struct planned *planned;
    size_t n_planned;
    size_t n_decodes; /* planned requests that decode; n_members of them are in the cohort */
    size_t n_members;
    bool ready_all;       /* schedule_ready took the whole cohort */
    bool shown;           /* n_now of some members was set because of ready_all */
    bool planning;        /* a plan is being made */
    bool plans_ahead;     /* ended requests run until the next plan is made */
    bool hides_in_flight; /* as in plan_hide */
    bool pads_for_ended;  /* the step computes for requests that have ended */
    bool overruled; /* one admit module accepted a request that a later one refused: the first may
                       refuse it later */
    bool rooming;   /* a module answers `room`, in which it may not ask for the room */
    bool answering; /* a module answers a question in which it may not ask the step for another
                       answer */
    bool ranking;   /* the order module is called for keys of ranked lists, or for when keys
                       change */
    unsigned refused_states; /* bits of enum ifl_state: `refused` names a request */
    int32_t slot;
    uint64_t n_begun;               /* plans made so far, this one included: the number of this
                                       plan */
    int32_t n_rejected;             /* requests rejected in this plan */
    int32_t n_ended_victims;        /* ended requests that were preempted in this plan */
    bool broken;                    /* a policy broke the contract; `error` is filled */
    size_t n_outs, n_ins, n_copies; /* in tallied pools outs and ins are only counted */
    int64_t refused_until_ns;       /* earliest until_ns of a refusal; IFL_NEVER: none */
    uint64_t first_start;           /* requests that this plan starts have this start_serial, or a
                                       later one */
    int64_t known_ns;               /* requests that arrived later are not shown */
    struct ifl_promise promise;     /* n_steps 0: the plan has promised nothing */
    struct ifl_padding padding;     /* padding of the step; stays while the promise holds */
    struct snapshot started, by_start;
    /* The policy of the module that is being called; NULL: none, and the batching module acts on
     * the step. */
    const struct ifl_policy *called;
    const struct ifl_policy *ahead; /* the preempt module whose `ahead` is running; NULL: none */
    const struct ifl_policy *refused_until_by; /* the module that refused until refused_until_ns */

    struct snapshot scheduled;
    struct ifl_copy *outs, *ins;  /* [host blocks + 1] */
    struct ifl_copy *copies;      /* [device blocks + 1] copies within the device; [0] without
                                     groups */
    int32_t n_asked_draft;        /* the draft module's answer for all requests in the plan with
                                     the number draft_asked_in */
    uint64_t draft_asked_in;      /* 0: not asked yet */
    struct ifl_padding for_ended; /* what the step computes for ended requests, in addition to
                                     `padding` */
    const struct ifl_policy *undone_by;     /* the module that took back a start last; NULL: none */
    struct refusal refused[IFL_LOADED + 1]; /* last refusal in this plan, by the request's state */
    struct ifl_error error;
};

/* ---- creating; arrays never grow within a plan ---- */

/* Zeroed memory is valid for plan_destroy. */
void plan_create(struct plan *plan, const struct ifl_limits *limits,
                 const struct ifl_step_ops *ops);
void plan_destroy(struct plan *plan);
/* Makes room for n requests. Returns 0 or IFL_E_NOMEM. */
int plan_reserve(struct plan *plan, const struct ifl_limits *limits, bool groups, size_t n);

/* ---- opening and closing ---- */

/* Resets the plan for a new step: nothing is planned yet. max_samples is the largest number of
 * samples of a request. */
void plan_open(struct plan *plan, const struct here *here, const struct accounts *kv,
               int32_t max_samples);
/* Call it before the batching module plans; resets the promise. plans_ahead: requests that ended
 * with the previous step are shown as running. known_ns: requests that arrived later are not shown.
 */
void plan_begin(struct plan *plan, bool plans_ahead, int64_t known_ns);
static inline void plan_end(struct plan *plan)
{
    ifl_assert(plan->planning);
    plan->planning = false;
}
/* Notes that the plan has used an answer of the module of that kind. */
static inline void plan_ask(struct plan *plan, enum ifl_kind kind)
{
    plan->step.asked |= 1u << kind;
}
/* Notes that `policy` is being called. Returns the policy that was being called before, for
 * plan_return. */
static inline const struct ifl_policy *plan_call(struct plan *plan, const struct ifl_policy *policy)
{
    const struct ifl_policy *before = plan->called;
    plan->called = policy;
    return before;
}
static inline void plan_return(struct plan *plan, const struct ifl_policy *before)
{
    plan->called = before;
}
/* answering: the modules called from now on answer a question in which they may not ask the step
 * for another answer. */
static inline void plan_set_answering(struct plan *plan, bool answering)
{
    plan->answering = answering;
}
/* rooming: `room` of an admit module is being called. */
static inline void plan_set_rooming(struct plan *plan, bool rooming)
{
    plan->rooming = rooming;
}
/* ranking: the order module is being called for keys, or for when keys change. */
static inline void plan_set_ranking(struct plan *plan, bool ranking)
{
    plan->ranking = ranking;
}
/* Keeps the draft module's answer for all requests until the plan is made. */
static inline void plan_keep_draft(struct plan *plan, int32_t n)
{
    plan->n_asked_draft = n;
    plan->draft_asked_in = plan->n_begun;
}
/* Notes that the `ahead` of a preempt module begins; NULL: it has returned. */
static inline void plan_set_ahead(struct plan *plan, const struct ifl_policy *ahead)
{
    plan->ahead = ahead;
}
/* Notes that the module has taken back a start of this plan. */
static inline void plan_note_undone(struct plan *plan, const struct ifl_policy *by)
{
    plan->undone_by = by;
}
/* Records a breach of the contract, which ends the run. Only the first breach counts. */
void plan_break(struct plan *plan, const struct ifl_error *error);

/* ---- what the step counts ---- */

/* Call it when blocks have been taken or given back. */
static inline void plan_count_blocks(struct plan *plan, const struct accounts *kv)
{
    plan->step.n_free_blocks = kv->device.n_free;
    plan->step.n_free_host_blocks = kv->host.n_free;
}
static inline void plan_count_adapters(struct plan *plan, const struct adapters *adapters)
{
    plan->step.n_adapters = adapters->n_used;
    plan->step.n_adapter_blocks = adapters->n_used_blocks;
}
/* Lowers the free blocks that the step shows by n_blocks while a question is answered; a negative
 * n_blocks raises them again. */
static inline void plan_set_aside(struct plan *plan, int32_t n_blocks)
{
    plan->step.n_free_blocks -= n_blocks;
}
static inline void plan_count_running(struct plan *plan, const struct live_request *r)
{
    plan->step.n_running_requests++;
    plan->step.n_running_seqs += r->pub.n_seqs;
}
static inline void plan_uncount_running(struct plan *plan, const struct live_request *r)
{
    ifl_assert(plan->step.n_running_requests > 0);
    plan->step.n_running_requests--;
    plan->step.n_running_seqs -= r->pub.n_seqs;
}
/* r leaves the queue to start, and is listed among the started. */
static inline void plan_count_start(struct plan *plan, const struct live_request *r)
{
    ifl_assert(plan->step.n_waiting > 0);
    plan->step.n_waiting--;
    plan->step.n_started++;
    plan->started.of[plan->started.n++] = &r->pub;
}
/* As plan_count_start, for a LOADED request. */
static inline void plan_count_loaded_start(struct plan *plan, const struct live_request *r)
{
    ifl_assert(plan->step.n_loaded > 0);
    plan->step.n_loaded--;
    plan_count_start(plan, r);
}
/* Sets the number of LOADED requests in front of the queue when a plan begins. */
static inline void plan_count_loaded(struct plan *plan, int32_t n)
{
    plan->step.n_loaded = n;
}
static inline void plan_count_preempted(struct plan *plan, const struct live_request *r)
{
    plan_uncount_running(plan, r);
    plan->step.n_preempted++;
    plan->n_ended_victims += r->ended;
}
static inline void plan_count_swapped_out(struct plan *plan)
{
    plan->step.n_swapped++;
    plan->step.n_swapped_out++;
}
static inline void plan_count_swapped_in(struct plan *plan)
{
    ifl_assert(plan->step.n_swapped > 0);
    plan->step.n_swapped--;
    plan->step.n_swapped_in++;
}
/* As plan_count_swapped_out, for a request that is copied to the host while steps run. */
static inline void plan_count_leaving(struct plan *plan)
{
    plan->step.n_swapped_out++;
}
/* Counts the seats kept for requests on their way back from the host, when a plan begins. */
static inline void plan_count_returning(struct plan *plan, int32_t n, int32_t n_seqs)
{
    plan->step.n_running_requests += n;
    plan->step.n_running_seqs += n_seqs;
}
/* A preempted request waits again. */
static inline void plan_count_waiting(struct plan *plan)
{
    plan->step.n_waiting++;
}
/* r left the list of state `from` for good. */
static inline void plan_count_off(struct plan *plan, enum ifl_state from)
{
    plan->step.n_waiting -= from == IFL_WAITING || from == IFL_LOADED;
    plan->step.n_loaded -= from == IFL_LOADED;
    plan->step.n_swapped -= from == IFL_SWAPPED;
}
static inline void plan_count_rejected(struct plan *plan)
{
    plan->n_rejected++;
}

/* Removes the prompt of r from the committed step. Returns false if the step has no tokens of r. */
bool plan_forget_prompt(struct plan *plan, const struct live_request *r);

/* ---- copies ---- */

/* Record copies of n blocks of r between device and host. Call the `from` function before r gives
 * up its blocks, only if blocks have numbers, and the `to` function once r has its new blocks. */
void plan_swap_out_from(struct plan *plan, const struct live_request *r, int32_t n);
void plan_swap_out_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered);
void plan_swap_in_from(struct plan *plan, const struct live_request *r, int32_t n);
void plan_swap_in_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered);
static inline void plan_copy(struct plan *plan, uint32_t from, uint32_t to)
{
    plan->copies[plan->n_copies++] = (struct ifl_copy){from, to};
}
/* Cancels the copies from a block; the copies to any of n blocks. */
void plan_forget_copies_from(struct plan *plan, uint32_t from);
void plan_forget_copies_to(struct plan *plan, const uint32_t *to, int32_t n);

/* ---- tokens ---- */

/* Adds a request with its own entry to the step. */
static inline void plan_add(struct plan *plan, struct planned one)
{
    ifl_assert(one.r && one.n > 0);
    plan->planned[plan->n_planned++] = one;
    plan->n_decodes += one.decodes;
    plan->n_members += one.r->in_cohort;
    plan->step.n_tokens += one.n_tokens;
    plan->step.n_requests++;
}
static inline void plan_count_prefill(struct plan *plan, int32_t n_tokens)
{
    plan->step.n_prefill_tokens += n_tokens;
    plan->step.n_prefill_requests++;
}
/* Adds the whole cohort to the step. */
static inline void plan_add_cohort(struct plan *plan, const struct cohort *cohort)
{
    plan->step.n_tokens += cohort->n_seqs + cohort->ragged.n_draft_tokens;
    plan->step.n_requests += (int32_t)cohort->n;
    plan->ready_all = true;
}
/* Exchanges the array `planned` and its length with *of and *n, when the plan is committed or its
 * step ends. */
void plan_exchange(struct plan *plan, struct planned **of, size_t *n);
/* Removes the entries of `planned` whose request has left since (r is NULL). */
void plan_close_gaps(struct plan *plan);
/* Sets the number of tokens that the i-th request has computed with this step; samples: the step
 * samples a token for it. */
static inline void plan_note_computed(struct plan *plan, size_t i, int32_t n_computed, bool samples)
{
    ifl_assert(i < plan->n_planned);
    plan->planned[i].n_computed = n_computed;
    plan->planned[i].samples = samples;
}
/* Takes back the tokens that the plan has given r. */
void plan_remove(struct plan *plan, const struct live_request *r);
/* shown: n_now of some member was set because the whole cohort takes part. */
static inline void plan_note_shown(struct plan *plan, bool shown)
{
    plan->shown = shown;
}
/* Writes *one to entry `at` of `planned`, when the plan is committed. */
static inline void plan_keep(struct plan *plan, size_t at, const struct planned *one)
{
    ifl_assert(at < plan->n_planned && one->r);
    plan->planned[at] = *one;
}
/* Shortens `planned` to its first n entries. */
static inline void plan_cut(struct plan *plan, size_t n)
{
    ifl_assert(n <= plan->n_planned);
    plan->n_planned = n;
}
/* Adds a request that has ended, but for which the step computes. one NULL: resets this, no such
 * request so far. */
void plan_pad_for_ended(struct plan *plan, const struct planned *one);

/* ---- lists that the plan is shown ---- */

/* Sets which requests on the device the plan is not shown. hides_in_flight: those in a step in
 * flight. slot: those that decode in another slot; -1: there are no slots. */
static inline void plan_hide(struct plan *plan, bool hides_in_flight, int32_t slot)
{
    plan->hides_in_flight = hides_in_flight;
    plan->slot = slot;
}
static inline bool plan_shows(const struct plan *plan, const struct live_request *r)
{
    return !(plan->hides_in_flight && r->pub.n_in_flight > 0) &&
           (plan->slot < 0 || plan->slot == r->slot || !request_decodes(&r->pub));
}
/* Sets the number of shown requests that do not decode yet. */
static inline void plan_count_shown(struct plan *plan, int32_t n_in_prefill)
{
    plan->step.n_in_prefill = n_in_prefill;
}
/* Sets the number of requests and sequences that take seats. */
static inline void plan_count_seats(struct plan *plan, int32_t n, int32_t n_seqs)
{
    plan->step.n_running_requests = n;
    plan->step.n_running_seqs = n_seqs;
}
/* Lists the running requests, except those that this plan has started or is not shown. */
void plan_take_by_start(struct plan *plan, const struct live_list *running);
/* Lists all requests that this plan has scheduled. */
struct ifl_requests plan_list_scheduled(struct plan *plan, const struct cohort *cohort);

/* ---- refusals and promises ---- */

/* For each state, only the last refusal of a plan is kept. */
static inline void plan_refuse(struct plan *plan, struct refusal refusal)
{
    ifl_assert(refusal.r && refusal.by && refusal.why);
    if (refusal.r->pub.state > IFL_LOADED)
        return;
    plan->refused[refusal.r->pub.state] = refusal;
    plan->refused_states |= 1u << refusal.r->pub.state;
}
static inline void plan_overrule(struct plan *plan)
{
    plan->overruled = true;
}
static inline void plan_refuse_until(struct plan *plan, const struct ifl_policy *by,
                                     int64_t until_ns)
{
    if (until_ns >= plan->refused_until_ns)
        return;
    plan->refused_until_ns = until_ns;
    plan->refused_until_by = by;
}
static inline void plan_promise(struct plan *plan, struct ifl_promise promise)
{
    plan->promise = promise;
}
/* Something happened that the promise does not cover. */
static inline void plan_void_promise(struct plan *plan)
{
    plan->promise.n_steps = 0;
}
/* Limits the promise to n steps. */
static inline void plan_cut_promise(struct plan *plan, int32_t n)
{
    if (plan->promise.n_steps > n)
        plan->promise.n_steps = n;
}
/* Lowers the promise by n steps that have been taken. */
static inline void plan_use_promise(struct plan *plan, int32_t n_steps)
{
    ifl_assert(n_steps <= plan->promise.n_steps);
    plan->promise.n_steps -= n_steps;
}
static inline void plan_pad(struct plan *plan, struct ifl_padding padding)
{
    plan->padding = padding;
}
#endif
