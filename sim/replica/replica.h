/* A replica: one engine's queues, KV pools and policy modules, and the step it is building.
 *
 * Life of a step:
 *
 *     replica_plan     asks the batching module, which acts through the step (step_builder.c)
 *     replica_commit   freezes the plan into a description for the executor
 *     ... the executor runs it ...
 *     replica_end      counts the tokens, ends requests, tells the modules
 *
 * While a promise holds, replica_repeat replaces replica_plan. While no event falls between steps,
 * replica_coast and replica_next_tick replace the whole cycle. The replica knows no clock and no
 * executor; sim/run/flight.c drives it. What its files offer one another is in replica_parts.h. */
#ifndef SIM_REPLICA_REPLICA_H
#define SIM_REPLICA_REPLICA_H

#include "inflight/executor.h"
#include "inflight/policy.h"
#include "inflight/report.h"

#include "replica/cohort.h"
#include "replica/kv/beams.h"
#include "replica/kv/pool.h"
#include "replica/live_request.h"
#include "replica/module.h"
#include "replica/refusals.h"
#include "replica/waiting.h"

struct listeners { /* modules that have a certain hook, in order of their kinds */
    const struct module *of[N_MODULES];
    size_t n;
};

/* One request's share of the step being built. */
struct planned {
    struct live_request *r; /* NULL where it was undone */
    int32_t n;              /* tokens of each sequence */
    int32_t n_tokens;       /* of all its sequences, shared ones once */
    bool decodes, samples;
};

/* A snapshot of one list, taken when a plan first asks for it. */
struct snapshot {
    const struct ifl_request **of;
    size_t n;
    bool taken;
};

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

/* Most steps that modules are told of in one call. */
enum { REPLICA_LONGEST_RUN = 1024 };

/* In the checking mode: what a module was asked within a plan, and its answer. */
struct said {
    const struct module *module;
    uint64_t question;
    int64_t answer;
};

struct said_list {
    struct said *of, *before; /* [n] of this plan, [n_before] of the one before */
    size_t n, n_before, cap;
};

struct replica {
    struct ifl_step step; /* first: what the policy holds */
    struct ifl_view view;
    struct ifl_limits limits;

    /* modules, and which of them have which hook */
    struct module modules[N_MODULES]; /* the cluster's router is not among them */
    struct listeners on_join, on_start, on_undo, on_preempt, on_step_start, on_step_end, on_leave;
    bool has_ahead;           /* the preempt module has `ahead`, to be asked after each plan */
    enum ifl_keys order_keys; /* as of the last plan that looked at a ranked list */
    bool keys_read_plan;      /* some module has asked for the plan, so keys may depend on it */

    /* constant during a run */
    uint32_t number; /* in its cluster */
    struct kv_block block;
    enum swap_full swap_full;
    uint64_t seed;
    bool wants_work; /* the executor wants the work of each sequence */
    int32_t max_samples;
    struct beam_search beams;

    /* requests that are here */
    struct live_pool pool;
    struct waiting waiting;
    struct live_list running;      /* ON_DEVICE, in order of start */
    struct live_list apart;        /* AMONG_PEERS, not in the cohort: prompts, mostly */
    int32_t n_in_prefill;          /* running requests that do not decode yet */
    struct live_request **swapped; /* in no order */
    size_t n_swapped;
    int64_t n_seqs_here;         /* sequences that wait, run or are swapped out */
    int64_t n_unanswered_tokens; /* prompt tokens of the requests without a first token */
    struct cohort cohort;
    struct refusals refusals; /* reasons why requests were dropped */
    uint64_t n_starts;
    uint64_t n_backs; /* preemptions to the back of the queue */
    size_t cap;       /* requests; each array that a plan fills has room for twice as many */

    /* K/V of these requests; accounts in slots of one token */
    struct kv_pool kv, host;
    int64_t kv_token_slots;    /* K/V that exists on the device */
    int64_t kv_internal_slots; /* held, and never to be used */
    int32_t n_group_saved;     /* blocks saved by sharing within groups */

    /* the plan under way */
    struct planned *planned;
    size_t n_planned;
    size_t n_decodes; /* planned requests that decode, n_members of them in the cohort */
    size_t n_members;
    bool ready_all;           /* schedule_ready took the whole cohort */
    bool shown;               /* n_now of some members was set for it */
    bool planning;            /* a plan is being made */
    bool keys_asked;          /* this plan has asked for order_keys */
    bool keys_change;         /* the keys of the last plan do not stand */
    bool ranks_stale;         /* keys of waiting requests must be asked anew before the next look */
    int64_t refused_until_ns; /* earliest until_ns of a refusal; IFL_NEVER: none */
    uint64_t first_start;     /* requests that this plan starts have at least this start_serial */
    struct snapshot by_start, started, scheduled;
    struct ranking by_rank[N_RANKED];
    const struct ifl_request **asked; /* scratch */
    int64_t *keys;                    /* scratch */
    struct ifl_copy *outs, *ins;      /* [host blocks + 1] */
    struct ifl_copy *copies;          /* [device blocks + 1] */
    size_t n_outs, n_ins, n_copies;   /* in tallied pools outs and ins are only counted */
    int32_t n_rejected;               /* in this plan */
    struct live_request **gone;       /* rejected in this plan or finished in this step */
    size_t n_gone;
    size_t n_decodes_gone;       /* the leading ones: finished by a tick of this step */
    struct live_request **ended; /* finished in a step that the next plan is made ahead of */
    size_t n_ended;
    int32_t n_ended_victims;                 /* ended requests that were preempted in this plan */
    bool plans_ahead;                        /* the last plan called ifl_plan_ahead */
    struct refusal refused[IFL_SWAPPED + 1]; /* the last one in this plan, by the request's state */
    struct ifl_promise promise;              /* n_steps 0: none */
    struct ifl_padding padding;              /* stays while the promise holds */
    bool pads_for_ended;                     /* the step computes for requests that have ended */
    bool broken;                             /* a policy broke the contract; `error` is filled */
    bool answering; /* a module has been asked by the plan and has not answered yet */
    struct ifl_error error;

    bool checks; /* the checking mode */
    struct said_list said;

    /* read by the loop */
    bool busy;             /* a step is in flight */
    bool due;              /* the loop has put it down for a plan */
    int64_t wake_ns;       /* when an empty plan asks for another plan */
    int64_t wake_asked_ns; /* the last wake_ns for which the loop has an event */
    uint64_t wake_step;    /* view.step at the last wake */
    uint64_t n_vain_wakes; /* wakes in a row without any event here in between */

    /* the step in flight */
    bool ticks; /* the cohort takes part */
    struct ifl_step_desc desc;
    struct ifl_work *work; /* only for executors that want it */
    uint32_t *tables;      /* block tables of the sequences of groups */
    size_t n_tables, cap_tables;
    struct ifl_result *results; /* of the steps that end, if a module asks for them */
    struct ifl_step_record record;
    int32_t n_preempted_before; /* by plans that led to no step since the last one */
    int64_t last_end_ns;        /* of the step before, IFL_NEVER before the first */
    int64_t n_barren_steps;     /* steps since the last one that produced a token */

    /* steps that repeat one another */
    int64_t tick_ns;                      /* duration of the last tick that coasted */
    int32_t n_untold;                     /* ticks that have ended and that no module was told of */
    int64_t untold_start_ns;              /* start of the first of them */
    int64_t ends_ns[REPLICA_LONGEST_RUN]; /* of the untold ticks, and of the step that ends now */
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
    uint64_t seed;
    bool wants_work;
    int32_t max_samples; /* of a request; 0 counts as 1 */
    struct beam_search beams;
};

/* Owned by the caller; zeroed memory is valid for replica_destroy. */
int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error);
void replica_destroy(struct replica *replica);

/* Requests that wait, run, or are swapped out. */
static inline size_t replica_requests(const struct replica *replica)
{
    return replica->pool.n_live + waiting_undescribed(&replica->waiting);
}

/* The request joins the queue at now_ns: when it arrived, or later if a router held it back.
 * Negative without memory. */
int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                 struct ifl_error *error);
/* Whether the request can ever run here. */
enum replica_fit { REPLICA_FITS, REPLICA_BEYOND_MODEL, REPLICA_BEYOND_POOL };
enum replica_fit replica_fit(const struct replica *replica, const struct arrival *arrival);

/* Builds a step at now_ns. Negative: a policy broke the contract. */
int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error);
/* Call it when a promised step was planned otherwise: fills `error` with the name of the module
 * that broke its word, and returns the code. */
int replica_blame(const struct replica *replica, struct ifl_error *error);
/* True if the last plan's promise covers one more step at now_ns. */
bool replica_keeps_promise(const struct replica *replica, int64_t now_ns);
/* True if the plan gives one token to each member of the cohort and does nothing else: what a
 * promise says. */
bool replica_ticks_again(const struct replica *replica);
/* Builds the step at now_ns without a plan, if the promise covers it. False: a plan is needed. */
bool replica_repeat(struct replica *replica, int64_t now_ns);
/* Turns the plan into `desc`. True if there is work or a copy to submit. */
bool replica_commit(struct replica *replica);
/* Call it after an empty plan with no event to follow. Drops one request that the plan has refused
 * for good; at_end (of the workload) also one that it has refused for now. A request on the device
 * is dropped before one in host memory, and that before one in the queue. It is in `gone`
 * afterwards. False: the plan has refused no request. */
bool replica_give_up(struct replica *replica, bool at_end);
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
 * that end by until_ns, and one more. It may be too high. */
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
/* Commits the next tick. False, and nothing has changed: the promise does not cover it. */
bool replica_next_tick(struct replica *replica, int64_t now_ns);
/* As the run ends: fills a record of the preemptions that no step's record counts. False: there are
 * none. */
bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record);
/* Fills the record of a request in `gone`. Call it before replica_recycle. */
void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record);
/* Empties `gone`; its records may be reused. */
void replica_recycle(struct replica *replica);

/* What the prefix cache holds of the tokens of r, which need not be a request of this replica. */
struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r);

#endif
