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
    struct live_request *r; /* NULL where it was undone */
    int32_t n;              /* tokens of each sequence */
    int32_t n_tokens;       /* of all its sequences, shared ones once */
    bool decodes, samples;
    int32_t n_computed; /* of each sequence, these included; once the plan is committed */
    int32_t n_draft; /* of n_tokens, but not of n: guessed ones; of a prompt, rows in their place */
};

/* A snapshot of one list, taken when a plan first asks for it. */
struct snapshot {
    const struct ifl_request **of;
    size_t n;
    bool taken;
};

/* What each plan reads or writes comes first: with many replicas it is fetched anew for each. */
struct plan {
    struct ifl_step step; /* first: what the policy holds */
    struct planned *planned;
    size_t n_planned;
    size_t n_decodes; /* planned requests that decode, n_members of them in the cohort */
    size_t n_members;
    bool ready_all;       /* schedule_ready took the whole cohort */
    bool shown;           /* n_now of some members was set for it */
    bool planning;        /* a plan is being made */
    bool plans_ahead;     /* ended requests run until the next plan is made */
    bool hides_in_flight; /* see plan_hide */
    bool pads_for_ended;  /* the step computes for requests that have ended */
    bool overruled; /* an admission said yes, and one behind it no: the first may say no later */
    bool answering; /* a question that may not be answered with another one */
    bool ranking;   /* the order is asked for the keys that ranked lists wait for */
    unsigned refused_states; /* bits of enum ifl_state: `refused` names a request */
    int32_t slot;
    uint64_t n_begun;               /* plans, this one included: its number */
    int32_t n_rejected;             /* in this plan */
    int32_t n_ended_victims;        /* ended requests that were preempted in this plan */
    bool broken;                    /* a policy broke the contract; `error` is filled */
    size_t n_outs, n_ins, n_copies; /* in tallied pools outs and ins are only counted */
    int64_t refused_until_ns;       /* earliest until_ns of a refusal; IFL_NEVER: none */
    uint64_t first_start;           /* requests that this plan starts have this start_serial, or a
                                       later one */
    int64_t known_ns;               /* requests that arrived later are not shown */
    struct ifl_promise promise;     /* n_steps 0: none */
    struct ifl_padding padding;     /* stays while the promise holds */
    struct snapshot started, by_start;
    /* Of the module that is asked, or told of something, and has not returned; NULL: none, and what
     * is done to the step the batching module does. */
    const struct ifl_policy *called;
    const struct ifl_policy *ahead; /* a preempt module preempts ahead of need; NULL: none does */
    const struct ifl_policy *refused_until_by; /* the module that refused until then */

    struct snapshot scheduled;
    struct ifl_copy *outs, *ins;  /* [host blocks + 1] */
    struct ifl_copy *copies;      /* [device blocks + 1], in the same memory; without groups [0] */
    int32_t n_asked_draft;        /* for all requests, in the plan of the number draft_asked_in */
    uint64_t draft_asked_in;      /* 0: in none */
    struct ifl_padding for_ended; /* what the step computes for these, beside `padding` */
    struct refusal refused[IFL_LOADED + 1]; /* the last one in this plan, by the request's state */
    struct ifl_error error;
};

/* ---- creating; arrays never grow within a plan ---- */

/* Zeroed memory is valid for plan_destroy. */
void plan_create(struct plan *plan, const struct ifl_limits *limits,
                 const struct ifl_step_ops *ops);
void plan_destroy(struct plan *plan);
/* Room for n requests. 0, or IFL_E_NOMEM. */
int plan_reserve(struct plan *plan, const struct ifl_limits *limits, bool groups, size_t n);

/* ---- opening and closing ---- */

/* A step begins: nothing is planned yet. max_samples: of a request. */
void plan_open(struct plan *plan, const struct here *here, const struct accounts *kv,
               int32_t max_samples);
/* The batching module is about to plan: it has promised nothing yet. plans_ahead: the requests that
 * end with the step in front of it are to run in it; known_ns: later arrivals are not shown. */
void plan_begin(struct plan *plan, bool plans_ahead, int64_t known_ns);
static inline void plan_end(struct plan *plan)
{
    ifl_assert(plan->planning);
    plan->planning = false;
}
/* The plan has looked at what a module of that kind says. */
static inline void plan_ask(struct plan *plan, enum ifl_kind kind)
{
    plan->step.asked |= 1u << kind;
}
/* A module is called, until plan_return with what this returns: the one that calls it. */
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
/* The modules that are called answer a question that may not be answered with another one. */
static inline void plan_set_answering(struct plan *plan, bool answering)
{
    plan->answering = answering;
}
/* The order is called for keys, or for when they change. */
static inline void plan_set_ranking(struct plan *plan, bool ranking)
{
    plan->ranking = ranking;
}
/* What the draft module answers for all requests stands until the plan is made. */
static inline void plan_keep_draft(struct plan *plan, int32_t n)
{
    plan->n_asked_draft = n;
    plan->draft_asked_in = plan->n_begun;
}
/* From now on a preempt module preempts ahead of need. NULL: it has done so. */
static inline void plan_set_ahead(struct plan *plan, const struct ifl_policy *ahead)
{
    plan->ahead = ahead;
}
/* A breach of the contract ends the run. The first one counts. */
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
/* Blocks that a question leaves aside. Negative: they are free again. */
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
/* The same of a LOADED request. */
static inline void plan_count_loaded_start(struct plan *plan, const struct live_request *r)
{
    ifl_assert(plan->step.n_loaded > 0);
    plan->step.n_loaded--;
    plan_count_start(plan, r);
}
/* A plan begins with so many LOADED requests in front of those that wait. */
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
/* The same of one that goes to the host beside steps. */
static inline void plan_count_leaving(struct plan *plan)
{
    plan->step.n_swapped_out++;
}
/* A plan begins with seats kept for requests on their way back. */
static inline void plan_count_returning(struct plan *plan, int32_t n, int32_t n_seqs)
{
    plan->step.n_running_requests += n;
    plan->step.n_running_seqs += n_seqs;
}
/* A victim waits again. */
static inline void plan_count_waiting(struct plan *plan)
{
    plan->step.n_waiting++;
}
/* r left the list that it was in, for good. */
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

/* Once the plan is committed: r leaves the step, in which its prompt takes part. False: its prompt
 * takes no part. */
bool plan_forget_prompt(struct plan *plan, const struct live_request *r);

/* ---- copies ---- */

/* r gives up its n blocks on one side for as many on the other. from, only where blocks have
 * numbers: before it does. to: after. */
void plan_swap_out_from(struct plan *plan, const struct live_request *r, int32_t n);
void plan_swap_out_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered);
void plan_swap_in_from(struct plan *plan, const struct live_request *r, int32_t n);
void plan_swap_in_to(struct plan *plan, const struct live_request *r, int32_t n, bool numbered);
static inline void plan_copy(struct plan *plan, uint32_t from, uint32_t to)
{
    plan->copies[plan->n_copies++] = (struct ifl_copy){from, to};
}
/* Takes back the copies from a block; those to any of n blocks. */
void plan_forget_copies_from(struct plan *plan, uint32_t from);
void plan_forget_copies_to(struct plan *plan, const uint32_t *to, int32_t n);

/* ---- tokens ---- */

/* A request takes part with tokens of its own. */
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
/* The whole cohort takes part. */
static inline void plan_add_cohort(struct plan *plan, const struct cohort *cohort)
{
    plan->step.n_tokens += cohort->n_seqs + cohort->ragged.n_draft_tokens;
    plan->step.n_requests += (int32_t)cohort->n;
    plan->ready_all = true;
}
/* The plan is committed: what `planned` lists goes to *of and *n, in exchange for what these hold.
 */
void plan_exchange(struct plan *plan, struct planned **of, size_t *n);
/* Leaves out the requests of `planned` that have left since, which are NULL there. */
void plan_close_gaps(struct plan *plan);
/* The i-th request has so many tokens computed with this step; samples: it gets a token. */
static inline void plan_note_computed(struct plan *plan, size_t i, int32_t n_computed, bool samples)
{
    ifl_assert(i < plan->n_planned);
    plan->planned[i].n_computed = n_computed;
    plan->planned[i].samples = samples;
}
/* Takes back what the plan has given r. */
void plan_remove(struct plan *plan, const struct live_request *r);
/* n_now of a member was set, since it takes part with the cohort. */
static inline void plan_note_shown(struct plan *plan, bool shown)
{
    plan->shown = shown;
}
/* When the plan is committed: `planned` keeps *one at that place. */
static inline void plan_keep(struct plan *plan, size_t at, const struct planned *one)
{
    ifl_assert(at < plan->n_planned && one->r);
    plan->planned[at] = *one;
}
/* `planned` ends behind the n-th. */
static inline void plan_cut(struct plan *plan, size_t n)
{
    ifl_assert(n <= plan->n_planned);
    plan->n_planned = n;
}
/* The step computes for a request that has ended. NULL: for none so far. */
void plan_pad_for_ended(struct plan *plan, const struct planned *one);

/* ---- lists that the plan is shown ---- */

/* Requests on the device that the plan is not shown. hides_in_flight: those in a step in flight.
 * slot: those that decode in another one; -1: there are no slots. */
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
/* The plan is shown so many requests that do not decode yet. */
static inline void plan_count_shown(struct plan *plan, int32_t n_in_prefill)
{
    plan->step.n_in_prefill = n_in_prefill;
}
/* Only so many requests and sequences take seats. */
static inline void plan_count_seats(struct plan *plan, int32_t n, int32_t n_seqs)
{
    plan->step.n_running_requests = n;
    plan->step.n_running_seqs = n_seqs;
}
/* Lists the running requests, but for those that this plan has started or is not shown. */
void plan_take_by_start(struct plan *plan, const struct live_list *running);
/* All that this plan has scheduled. */
struct ifl_requests plan_list_scheduled(struct plan *plan, const struct cohort *cohort);

/* ---- refusals and promises ---- */

/* Of several refusals in a plan the last one counts, for each state. */
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
/* No more than n steps are promised. */
static inline void plan_cut_promise(struct plan *plan, int32_t n)
{
    if (plan->promise.n_steps > n)
        plan->promise.n_steps = n;
}
/* n promised steps are taken. */
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
