/* A replica: one engine's queues, KV pools and policy modules, and the step it is building.
 *
 * Life of a step:
 *
 *     replica_plan     asks the batching module, which acts through the step (step_builder.c)
 *     replica_commit   freezes the plan into a description for the executor
 *     ... the executor runs it ...
 *     replica_end      counts the tokens, ends requests, tells the modules
 *
 * replica_repeat stands in for replica_plan while a promise holds; where nothing can happen in
 * between, replica_coast and replica_next_tick stand in for all of it. The replica knows no clock
 * and no executor; sim/flight.c drives it. What its files do for one another is in
 * replica_parts.h. */
#ifndef SIM_REPLICA_H
#define SIM_REPLICA_H

#include "inflight/executor.h"
#include "inflight/policy.h"
#include "inflight/report.h"

#include "cohort.h"
#include "config/config.h"
#include "kv/pool.h"
#include "live_request.h"
#include "module.h"
#include "refusals.h"
#include "waiting.h"

struct listeners { /* modules that have one of the hooks, in order of their kinds */
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
    int64_t key; /* by which it stands */
    const struct ifl_request *r;
};

/* A list in rank order, the last one first, kept from one plan to the next (replica_ranks.c). */
struct ranking {
    enum ranked_list which;
    struct ranked_request *room; /* [cap], of which n from `first` on are taken */
    size_t first, n, cap;
    struct live_request **noted; /* came or left since, or may have another key */
    size_t n_noted;
    bool kept;  /* who is not noted stands where its key puts it */
    bool taken; /* and the list is as this plan sees it */
    bool stale; /* all keys must be asked anew before the next look */
};

/* Steps that modules hear of as one, at most. */
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

    /* who decides, and what they want to hear */
    struct module modules[N_MODULES]; /* of a cluster's router, none */
    struct listeners on_join, on_start, on_undo, on_preempt, on_step_start, on_step_end, on_leave;
    bool has_ahead;           /* the preempt module's question after each plan */
    enum ifl_keys order_keys; /* as of the last plan that looked at a ranked list */
    bool keys_read_plan;      /* they may change with what a plan does */

    /* what never changes */
    uint32_t number; /* in its cluster */
    struct kv_block block;
    enum swap_full swap_full;
    uint64_t seed;
    bool wants_work; /* the executor asks for each sequence */
    int32_t max_samples;
    struct beam_search beams;

    /* who is here */
    struct live_pool pool;
    struct waiting waiting;
    struct live_list running;      /* ON_DEVICE, in order of start */
    struct live_list apart;        /* AMONG_PEERS, not in the cohort: prompts, mostly */
    int32_t n_in_prefill;          /* of these: do not decode yet */
    struct live_request **swapped; /* in no order */
    size_t n_swapped;
    int64_t n_seqs_here;         /* that wait, run or are swapped out */
    int64_t n_unanswered_tokens; /* of the prompts of those without a first token */
    struct cohort cohort;
    struct refusals refusals; /* of who is gone for them */
    uint64_t n_starts;
    uint64_t n_backs; /* preempted ones that went to the back of the queue */
    size_t cap;       /* requests the arrays below have room for */

    /* their K/V; accounts in slots of one token */
    struct kv_pool kv, host;
    int64_t kv_token_slots;    /* K/V that exists on the device */
    int64_t kv_internal_slots; /* held and never used */
    int32_t n_group_saved;     /* blocks, by the sharing within groups */

    /* the plan under way */
    struct planned *planned;
    size_t n_planned;
    size_t n_decodes; /* of these, n_members of them in the cohort */
    size_t n_members;
    bool ready_all;           /* schedule_ready took the whole cohort */
    bool shown;               /* some member's n_now says so */
    bool planning;            /* the batching module makes a plan */
    bool keys_asked;          /* order_keys is of this plan */
    bool keys_change;         /* the last plan's keys do not stand */
    bool ranks_stale;         /* keys of waiting requests must be asked anew before the next look */
    int64_t refused_until_ns; /* the first hour that an admit module named; IFL_NEVER: none */
    uint64_t first_start;     /* who starts in this plan has at least this start_serial */
    struct snapshot by_start, started, scheduled;
    struct ranking by_rank[N_RANKED];
    const struct ifl_request **asked; /* scratch */
    int64_t *keys;                    /* scratch */
    struct ifl_copy *outs, *ins;      /* [host blocks + 1] */
    struct ifl_copy *copies;          /* [device blocks + 1] */
    size_t n_outs, n_ins, n_copies;   /* the first two are counted only, where pools are tallied */
    int32_t n_rejected;               /* in this plan */
    struct live_request **gone;       /* rejected in this plan or finished in this step */
    size_t n_gone;
    size_t n_decodes_gone;       /* of these, the first ones: by a tick of this step */
    struct live_request **ended; /* in a step that the next plan is made ahead of */
    size_t n_ended;
    int32_t n_ended_victims;                 /* of those preempted in this plan */
    bool plans_ahead;                        /* as the last plan said */
    struct refusal refused[IFL_SWAPPED + 1]; /* last in this plan, of each state */
    struct ifl_promise promise;              /* n_steps 0: none */
    struct ifl_padding padding;              /* stands while the promise does */
    bool pads_for_ended;                     /* the step computes for requests that have ended */
    bool broken;                             /* a policy broke the contract: error is filled */
    bool answering; /* the plan waits for the answer of a module that it has asked */
    struct ifl_error error;

    bool checks; /* the checking mode */
    struct said_list said;

    /* what the loop asks for */
    bool busy;             /* a step is in flight */
    bool due;              /* a plan will be asked for */
    int64_t wake_ns;       /* when an empty plan wants another */
    int64_t wake_asked_ns; /* the last that the loop was told of */
    uint64_t wake_step;    /* at the last wake */
    uint64_t n_vain_wakes; /* in a row, nothing having happened here in between */

    /* the step in flight */
    bool ticks; /* the cohort takes part */
    struct ifl_step_desc desc;
    struct ifl_work *work; /* only for executors that want it */
    uint32_t *tables;      /* block tables of sequences that share a request */
    size_t n_tables, cap_tables;
    struct ifl_result *results; /* of the steps that end, where a module asks for them */
    struct ifl_step_record record;
    int32_t n_preempted_before; /* by plans without a step since the last one */
    int64_t last_end_ns;        /* of the step before, IFL_NEVER before the first */
    int64_t n_barren_steps;     /* since the last that produced a token */

    /* steps that repeat one another */
    int64_t tick_ns;                      /* what the last one took that coasted */
    int32_t n_untold;                     /* ticks that have ended, the modules not told */
    int64_t untold_start_ns;              /* of the first of them */
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

/* It waits from now_ns on, which is when it arrived, or later if a router held it back. */
int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                 struct ifl_error *error);
/* Whether the request can ever run here. */
enum replica_fit { REPLICA_FITS, REPLICA_BEYOND_MODEL, REPLICA_BEYOND_POOL };
enum replica_fit replica_fit(const struct replica *replica, const struct arrival *arrival);

/* Builds a step at now_ns. Negative: a policy broke the contract. */
int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error);
/* A promised step was planned otherwise: names the module that answered wrongly. */
int replica_blame(const struct replica *replica, struct ifl_error *error);
/* The last plan's promise covers one more step at now_ns. */
bool replica_keeps_promise(const struct replica *replica, int64_t now_ns);
/* The plan decodes for those who did so last, and does nothing else: what was promised. */
bool replica_ticks_again(const struct replica *replica);
/* True, and the step is built, if the promise covers it. */
bool replica_repeat(struct replica *replica, int64_t now_ns);
/* True if the plan holds work or copies; then desc is ready to be submitted. */
bool replica_commit(struct replica *replica);
/* An empty plan, behind which nothing happens until somebody comes. Whoever it refuses for good, on
 * the device before in host memory before in the queue, is dropped, and is in `gone` afterwards. At
 * the end of the workload whoever it refuses for now is, too. False: it refuses nobody. */
bool replica_give_up(struct replica *replica, bool at_end);
/* The step in flight has ended. Finished requests are in `gone` afterwards. Negative as well once
 * more steps in a row have produced no token than it takes to fill all K/V memory one token at a
 * time: then preemption undoes prompts faster than they are computed, for ever. */
int replica_end(struct replica *replica, const struct ifl_done *done, struct ifl_recorder *recorder,
                struct ifl_error *error);
/* A step that was committed and does nothing but what the promise repeats, for nobody's last token:
 * it may be ended by replica_coast and followed by replica_next_tick, as replica_end,
 * replica_repeat and replica_commit would. */
bool replica_coasts(const struct replica *replica);
/* How many steps, the committed one included, may end so by until_ns, and the one behind them; more
 * may than really do. */
size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns);
enum { REPLICA_MAX_STRETCH = 64 };
/* Ends the committed step, which does so before until_ns, and as many behind it, n in all at most,
 * as are nothing but sums, begin by the promise and end before until_ns, too: how many, or
 * negative. */
int replica_coast(struct replica *replica, const struct ifl_done *done, const int64_t *duration_ns,
                  size_t n, int64_t until_ns, struct ifl_recorder *recorder,
                  struct ifl_error *error);
/* False, and nothing has changed: the promise does not cover it. */
bool replica_next_tick(struct replica *replica, int64_t now_ns);
/* Preemptions that no step has told of: true, and a record of them alone, as the run ends. */
bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record);
/* What became of a request in `gone`; then it may be recycled. */
void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record);
/* Empties `gone`. */
void replica_recycle(struct replica *replica);

/* What the prefix cache holds of anybody's prompt, a request that is not here included. */
struct ifl_hit replica_hit(struct replica *replica, const struct live_request *r);

#endif
