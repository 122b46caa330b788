/* Reports: the files that a run writes.
 *
 * The event loop passes records of requests and steps to a recorder. The recorder writes
 * requests.csv, steps.csv and timeline.json during the run and computes the summary at its end. One
 * recorder serves one point of a sweep and is used by one thread. A file gets its final name only
 * when it is complete: until then it is written as PATH.tmp; at the end it replaces an older file
 * of its name. Folders must exist: they are not created.
 *
 * No pointer may be NULL unless its comment says so. Functions with an error return 0, or a
 * negative code with the error filled in: IFL_E_IO if a file cannot be written, IFL_E_NOMEM, or a
 * code that their comment names. Arguments are borrowed until the function returns. */
#ifndef INFLIGHT_REPORT_H
#define INFLIGHT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/time.h"

#define IFL_PATH_BYTES 640

/* A request that leaves before its last token was ABORTED by its client or TIMED_OUT at its
 * deadline, whether it ran or not. SHED: the gateway or the door refused it because of the load.
 * REJECTED: a module of a replica refused it, or it can never fit. FAILED: dropped after it ran. */
enum ifl_status {
    IFL_FINISHED,
    IFL_REJECTED,
    IFL_FAILED,
    IFL_ABORTED,
    IFL_TIMED_OUT,
    IFL_SHED,
    IFL_N_STATUSES
};

/* Names of the statuses in requests.csv and timeline.json. */
static const char *const ifl_status_names[IFL_N_STATUSES] = {
    [IFL_FINISHED] = "finished", [IFL_REJECTED] = "rejected",   [IFL_FAILED] = "failed",
    [IFL_ABORTED] = "aborted",   [IFL_TIMED_OUT] = "timed_out", [IFL_SHED] = "shed"};

/* Tiers below the device, the nearest first. */
enum { IFL_N_TIERS = 3 };
static const char *const ifl_tier_names[IFL_N_TIERS] = {"host", "disk", "store"};
/* A tier as the number of a replica, and the reverse. */
#define IFL_MOVE_TIER(tier) (-1 - (tier))

/* A request that has left. Times are IFL_NEVER where undefined. */
struct ifl_request_record {
    uint64_t request_id;
    uint64_t serial; /* only if the recorder's requests are `numbered` */
    /* Times of arrival and tokens are those at the client: before and after a front end.
     * first_scheduled_ns: start of the first step that computes tokens of it. */
    int64_t arrival_ns, first_scheduled_ns, first_token_ns, finish_ns;
    int64_t max_itl_ns;         /* longest gap between two of its tokens; -1 with fewer than two */
    int64_t stalled_ns;         /* total time preempted and not yet scheduled again */
    int64_t stalled_prefill_ns; /* the part of stalled_ns before the first token */
    int64_t ttft_slo_ns, tpot_slo_ns; /* IFL_NEVER: none; goodput counts requests that meet both */
    int32_t prompt_tokens, output_tokens, cached_tokens;
    int32_t preemptions, swap_outs;
    int32_t replica;  /* -1: it came to none */
    uint32_t client;  /* its number in the trace; no file has it */
    uint32_t adapter; /* its number in the trace; 0: none */
    /* Tokens computed for a request that was not answered, without those that preemptions had
     * dropped before. */
    int32_t wasted_tokens;
    int32_t wasted_steps; /* steps that computed tokens for it, if it was not answered */
    enum ifl_status status;
    bool is_retry;   /* of a request that was sent before */
    int64_t left_ns; /* if it has not finished: when it left */
    /* Of a request with two replicas; `replica` is then the one where it left: */
    bool has_two_replicas;
    int32_t prefill_replica;
    int64_t prefilled_ns;               /* end of its prompt; IFL_NEVER: not computed */
    int64_t move_start_ns, move_end_ns; /* of its K/V; IFL_NEVER: not moved */
    int64_t moving_ns;                  /* total time of its moves */
    int64_t moving_hidden_ns;           /* of moving_ns, while the prompt was computed */
    int64_t resumed_ns;                 /* the decode replica started it; IFL_NEVER: it did not */
    /* With tiers below the device: */
    bool has_tiers;
    int32_t tier_tokens[IFL_N_TIERS]; /* of cached_tokens, from host, disk and store */
    int64_t load_ns;                  /* total time of its loads */
    int64_t load_exposed_ns;          /* total time that it, or a step, waited for them */
    /* Of a request that has moved between replicas while it decoded: */
    int32_t n_migrations;
    int64_t migrating_ns, down_ns; /* total time of its moves; total time that it was stopped */
};

/* K/V that has moved from one replica to another, between a replica and a tier, or its host. */
struct ifl_move_record {
    uint64_t request_id;
    int32_t from, to;                  /* replicas; one of them below 0: IFL_MOVE_TIER(tier) */
    int64_t sent_ns, start_ns, end_ns; /* requested; the link was free; the K/V had come */
    int64_t moving_ns; /* time on its links, including transfers during the step that computed it */
    int64_t hidden_ns; /* of moving_ns, before the prompt was computed; of a request that moves
                          while it decodes, before it was stopped; of a swap, during steps */
    int64_t n_bytes;
    int32_t n_blocks; /* of the target replica */
};

struct ifl_step_record {
    uint64_t step;
    int64_t start_ns, duration_ns;
    int32_t replica;
    int32_t prefill_tokens, decode_tokens, prefill_seqs, decode_seqs;
    int64_t context_tokens;            /* decoding sequences only, the new token included */
    int32_t running, waiting, swapped; /* after planning */
    int32_t preempted, blocks_out, blocks_in;
    int32_t full_seqs;     /* of decode_seqs, those that read no more K/V in the next step */
    int32_t kv_kept_slots; /* copied at the end of the step, if K/V is given up */
    int32_t kv_used_blocks, kv_total_blocks;
    /* KV slots (tokens) of the pool while the step runs; the rest of the pool is external */
    int64_t kv_token_slots;    /* with K/V */
    int64_t kv_reserved_slots; /* that a running request will use later */
    int64_t kv_internal_slots; /* that are allocated and never used */
    int64_t kv_pool_slots;
    int64_t kv_given_up_tokens; /* at the end of the step */
    int32_t kv_shared_blocks;   /* additional blocks that would be used without sharing */
    int64_t device_ns; /* time on the device; in a simulation duration_ns, of a pipeline the
                          sum over its stages */
    int64_t gap_ns;    /* since the end of the previous step, IFL_NEVER for the first step; 0 if the
                          step began before that end */
    int32_t draft_tokens, accepted_tokens; /* guessed tokens that it verifies; those that hold */
    int32_t adapters, adapter_loads; /* different adapters of its sequences; those loaded to the
                                        device before it computes */
};

enum { IFL_SPECULATION_PLACES = 64 };

/* Guessed tokens of a run. A step verifies those of each decoding request, and yields the tokens
 * that hold and one more. */
struct ifl_speculation_record {
    int64_t n_steps; /* sum over steps of the decoding requests */
    int64_t n_drafted, n_held, n_emitted;
    struct {
        int64_t n_guessed, n_held;
    } of[IFL_SPECULATION_PLACES]; /* by their place after the last token; [0]: the first place */
};

/* Writes speculation.csv. */
int ifl_write_speculation(int32_t point, const struct ifl_speculation_record *record,
                          const char *path, struct ifl_error *error);

/* A step in one stage of a pipeline. */
struct ifl_stage_record {
    uint64_t step;
    int32_t replica, pipeline; /* several replicas may share a pipeline */
    int32_t stage, n_stages;
    int64_t start_ns, end_ns;
};

/* Use of the pool over some steps of a stretch that take no blocks. */
struct ifl_pool_use {
    size_t until; /* index in the stretch of the first step with another use */
    int32_t used_blocks;
    int64_t internal_slots; /* allocated to requests and never used */
};

/* A stretch: n steps without a pause between them. Each gives every request one more token and does
 * nothing else. */
struct ifl_stretch_record {
    const struct ifl_step_record *first; /* without durations and the pool, which are below */
    size_t n;
    int32_t n_requests; /* that decode; each has n gaps between tokens, duration_ns[0..n) */
    int32_t block_tokens, slack_blocks; /* requests hold all used blocks except slack_blocks */
    const int64_t *duration_ns;         /* [n], device time as well */
    bool lengthens;        /* each duration is known to be longer than the one in front of it */
    const int64_t *end_ns; /* [n] when each ends */
    const struct ifl_pool_use *use; /* [n_uses], the last one until n */
    size_t n_uses;
};

/* Fills in *step for step i < n of the stretch. `use` is the first of its uses with i < until. For
 * i > 0 *step must hold step i - 1; for i = 0 it is overwritten. */
static inline void ifl_stretch_step(const struct ifl_stretch_record *of,
                                    const struct ifl_pool_use *use, size_t i,
                                    struct ifl_step_record *step)
{
    ifl_assert(i < of->n);
    ifl_assert(i == 0 || step->step == of->first->step + i - 1);
    if (i == 0) {
        *step = *of->first;
    } else {
        step->step++;
        step->gap_ns = 0;
        step->start_ns += step->duration_ns;
        step->context_tokens += step->decode_seqs - step->full_seqs;
        step->kv_token_slots += step->decode_seqs - step->full_seqs;
    }
    step->duration_ns = step->device_ns = of->duration_ns[i];
    step->kv_used_blocks = use->used_blocks;
    step->kv_internal_slots = use->internal_slots;
    const int64_t held_slots = (int64_t)(use->used_blocks - of->slack_blocks) * of->block_tokens;
    step->kv_reserved_slots = held_slots - step->kv_token_slots - use->internal_slots;
}

/* The part of a request in a step. */
struct ifl_work_record {
    uint64_t step, request_id;
    int64_t start_ns, duration_ns; /* of the step */
    int32_t replica;
    int32_t prefill_tokens, decode_tokens; /* one of them is 0 */
    int32_t context_tokens;                /* with K/V before the step */
    int32_t preemptions;                   /* so far */
};

/* A request was preempted at start_ns and scheduled again at end_ns. */
struct ifl_stall_record {
    uint64_t request_id;
    int64_t start_ns, end_ns;
    bool swapped; /* its K/V lay in host memory; false: its K/V was dropped */
};

/* A sequence of a step that was planned differently from a recording; -1 for a field that one of
 * the two lacks. */
struct ifl_difference_record {
    int32_t replica;
    int64_t step, recorded_step;
    int64_t start_ns;    /* planned; if step is -1, recorded */
    bool of_all;         /* the step's sums: the recording names no requests */
    uint64_t request_id; /* 0 if of_all */
    int64_t planned_tokens, recorded_tokens;
    int64_t planned_context, recorded_context; /* tokens computed before the step; of_all: read by
                                                  decoding sequences */
};

/* A pool of a cluster: replicas [first, first + n_replicas). */
struct ifl_pool {
    const char *name;             /* a word that needs no quotes, of at most 63 characters */
    const char *model, *hardware; /* or "" */
    int32_t first, n_replicas;
    int32_t n_gpus;      /* of all its replicas */
    int32_t n_in_flight; /* most steps of a replica that are in flight at once; 0 is 1 */
};

struct ifl_recorder;

struct ifl_recorder_options {
    int32_t point;              /* number of the point, first column of the CSV files */
    const char *requests_path;  /* NULL: not written */
    const char *steps_path;     /* NULL: not written */
    const char *work_path;      /* NULL: not written; a row for each sequence of each step */
    const char *quantiles_path; /* NULL: not written; the latencies' quantiles, a row each half % */
    const char *timeline_path;  /* NULL: not written; a part for ifl_joint_append */
    bool speculates;            /* steps.csv has columns of guessed tokens */
    const char *differences_path; /* NULL: not written; steps planned differently from recorded */
    const char *pools_path;       /* NULL: not written; a row for each pool */
    const char
        *moves_path; /* NULL: not written; a row for each move, and no file if there is none */
    bool hands_over; /* requests.csv has columns for hand-overs */
    bool tiers;      /* requests.csv has columns for tiers below the device */
    bool migrates;   /* requests.csv has columns for requests that move while they decode */
    bool may_leave;  /* requests.csv has left_s: when unfinished requests left */
    /* The pools, which together have all replicas; files that name a replica then name its pool,
     * too. Borrowed until ifl_recorder_destroy. n_pools 0: the cluster has none. */
    const struct ifl_pool *pools;
    size_t n_pools;
    bool gives_up;            /* requests may give up K/V: steps.csv has columns for it */
    uint64_t timeline_events; /* most events of the timeline; it ends when they are reached */
    /* the timeline shows steps and requests that overlap this window; to 0: to the end */
    int64_t timeline_from_ns, timeline_to_ns;
    /* Time from the end of a step until clients have its tokens, as included in requests' records;
     * the timeline shows the ends of steps. */
    int64_t timeline_token_ns;
    int32_t n_in_flight;     /* most steps of a replica at once, without pools; 0 is 1. The timeline
                                has this many rows for them */
    uint64_t timeline_every; /* the timeline shows every n-th step and request; 0 is 1 */
    const char *label;       /* UTF-8, names the point in the timeline; borrowed by the recorder */
    size_t n_requests;       /* most request records that will come, below 2^32 - 1; more abort */
    /* The serials of the records are different, count from 0, and rise with arrival_ns. A row of
     * requests.csv is then written when all requests that arrived before it have left, and only
     * rows that wait for an earlier request take memory. */
    bool numbered;
    /* requests.csv, steps.csv and work.csv have their final names from the beginning, and grow when
     * ifl_recorder_flush is called; their rows stay if the program ends early. Until
     * ifl_recorder_finish the rows of requests.csv are in the order of ends. */
    bool grow;
    int64_t from_ns; /* the summary and the quantiles count requests that arrive from here on */
    /* Called with the context and each request's record when it is recorded, also in the warm-up;
     * the record is valid during the call. NULL: not called. */
    void (*on_request)(void *context, const struct ifl_request_record *record);
    void *on_request_context;
    /* Names of the adapters, from number 1 on; 0: there are none, and no file has a column of them.
     * They outlive the recorder. */
    const char *const *adapter_names;
    size_t n_adapters;
};

/* Opens the files. Returns NULL after an error; no file is left then. The options are copied; the
 * label and the pools are borrowed until ifl_recorder_destroy, which the caller must call. */
struct ifl_recorder *ifl_recorder_create(const struct ifl_recorder_options *options,
                                         struct ifl_error *error);
/* Frees the recorder and removes unfinished files: all files, unless ifl_recorder_finish has
 * succeeded. Accepts NULL. */
void ifl_recorder_destroy(struct ifl_recorder *recorder);

/* The records below are copied. After an error of one of them only ifl_recorder_destroy may
 * follow. */

/* One record for each request that has left, once. Records may come in any order; rows of
 * requests.csv are sorted by arrival, then request_id. Fails only for files that grow. */
int ifl_record_request(struct ifl_recorder *recorder, const struct ifl_request_record *record,
                       struct ifl_error *error);
/* Records `count` gaps of gap_ns between two tokens of a request, one gap of each of `count`
 * requests. The gaps that end with a step come before the record of the step. */
int ifl_record_gaps(struct ifl_recorder *recorder, int64_t gap_ns, int64_t count,
                    struct ifl_error *error);
/* One record for each step that has ended, in order of their ends. */
int ifl_record_step(struct ifl_recorder *recorder, const struct ifl_step_record *record,
                    struct ifl_error *error);
/* One record for each stage of a step in a pipeline, stage by stage, after that of the step. */
int ifl_record_stage(struct ifl_recorder *recorder, const struct ifl_stage_record *record,
                     struct ifl_error *error);
/* Equal to ifl_record_step and ifl_record_gaps for each step of the stretch. n and n_uses are 1 or
 * more, each step starts as the one before it ends, and the uses rise and cover all n steps. */
int ifl_record_stretch(struct ifl_recorder *recorder, const struct ifl_stretch_record *record,
                       struct ifl_error *error);

/* The next two are only for recorders with a work_path or a timeline_path. The records of a step
 * come after the record of the previous step, and before those of requests that end with the step.
 * A stall belongs to the step that gives the request tokens again; only the timeline shows it, and
 * its record never fails. */
int ifl_record_work(struct ifl_recorder *recorder, const struct ifl_work_record *record,
                    struct ifl_error *error);
int ifl_record_stall(struct ifl_recorder *recorder, const struct ifl_stall_record *record,
                     struct ifl_error *error);
/* Counts the move for the summary, and writes a row if there is a moves_path. Moves come in the
 * order of their ends. */
int ifl_record_move(struct ifl_recorder *recorder, const struct ifl_move_record *record,
                    struct ifl_error *error);
/* Writes a row if there is a differences_path. */
int ifl_record_difference(struct ifl_recorder *recorder, const struct ifl_difference_record *record,
                          struct ifl_error *error);

/* Adds the rows so far to files that grow. A full disk is IFL_E_IO: the files then end with a
 * complete row. */
int ifl_recorder_flush(struct ifl_recorder *recorder, struct ifl_error *error);

struct ifl_quantiles {
    double mean, p50, p90, p95, p99; /* NaN where there is no sample */
};

/* What was full in steps in which the plan left requests waiting, as shares of the time of these
 * steps. */
struct ifl_pressure {
    double waiting_s;                  /* the time of these steps */
    int32_t most_running, most_tokens; /* requests, and tokens of a step, in any of them */
    double seats_frac;                 /* most_running requests ran */
    double tokens_frac;                /* the step had 15/16 of most_tokens or more */
    double blocks_frac;                /* 15/16 of the blocks or more were in use */
};

struct ifl_summary {
    uint64_t n_requests, n_finished, n_rejected, n_failed;
    double duration_s; /* first arrival to last event */
    double request_throughput_rps, output_throughput_tok_per_s, total_throughput_tok_per_s;
    struct ifl_quantiles ttft_s, tpot_s, itl_s, e2e_s, normalized_latency_s; /* per token */
    double goodput_rps, attainment_frac;
    uint64_t preemptions, swap_outs, n_steps;
    double mean_batch; /* sequences per step, weighted by time */
    double kv_token_frac, kv_reserved_frac, kv_internal_frac, kv_external_frac;
    bool saturated; /* the backlog grew over the second half of the arrivals: above capacity */
    struct ifl_quantiles queue_s; /* arrival to first scheduled */
    uint64_t n_warmup; /* requests before the steady state; no other number includes them */
    double warmup_s;
    double kv_shared_frac; /* blocks saved by sharing / blocks that would be used without sharing */
    double cached_prompt_frac; /* of the prompt tokens of finished requests, found in the cache */
    /* Requests that left early; if all are 0, files have no columns for them. */
    uint64_t n_aborted, n_timed_out, n_shed;
    uint64_t wasted_tokens; /* computed for requests that were not answered, see the record */
    double wasted_frac;     /* of the tokens computed for all requests */
    uint64_t wasted_steps;  /* a step counts once for each such request that it computed for */
    /* Requests that repeat others, and all requests divided by those that repeat none. Without
     * retries 0 and 1; files then have no columns for them. */
    uint64_t n_retries;
    double retry_amplification;
    /* K/V that moved between replicas; if there are no moves, files have no columns for them. */
    uint64_t n_moves;
    double moved_gb, moving_s, moving_hidden_frac; /* of all moves; the mean; of all their time */
    bool has_tiers;
    double tier_hit_frac[IFL_N_TIERS]; /* of the prompt tokens of finished requests */
    struct ifl_pressure pressure;      /* in no file: it explains `saturated` */
    /* Of pipelines with a step in each stage. n_stages 0: there is none, and files have no columns
     * for them. */
    uint64_t n_stages;
    double bubble_frac;        /* 1 - work / (stages x time from the first step to the last end) */
    char stage_use_frac[1024]; /* share of that time in which each stage computes, with blanks */
    /* Of low-rank adapters. n_adapters 0: there are none, and files have no columns for them. */
    uint64_t n_adapters;  /* in the trace */
    double mean_adapters; /* different adapters per step, weighted by time */
    uint64_t adapter_loads;
    /* Of requests that move while they decode. `migrates` false: none may, and files have no
     * columns for them. */
    bool migrates;
    uint64_t n_migrations, n_migrated; /* moves; requests that have moved */
    double down_s;                     /* mean time that a move stops its request */
    char error[256]; /* why the point failed, empty if it did not; if it did, nothing else is set */
    /* Assumptions in the simulated durations that replace a measurement; the recorder leaves it
     * empty. */
    char assumed[800];
    /* Attainment of the client with the lowest one. It is in no file, and the recorder leaves it 0.
     */
    double client_attainment_frac;
};

/* Sets *from_ns to the end of the warm-up, the arrival of the first request after it: the later of
 * the two that MSER-5 finds in TTFT and in end-to-end latency. 0 if there is no warm-up, or if
 * fewer than 50 requests finished. All requests of the run must have been recorded. A second
 * recorder with this from_ns in its options, for the same run again, leaves the warm-up out. Fails
 * only with IFL_E_NOMEM, and with IFL_E_IO if requests are kept in a file. */
int ifl_recorder_warmup(struct ifl_recorder *recorder, int64_t *from_ns, struct ifl_error *error);

/* Completes the files under their final names and computes the summary. Called once, when all
 * records have come; then ifl_recorder_destroy. After an error in writing no file has its name.
 * *summary is overwritten, and holds nothing to read after an error. */
int ifl_recorder_finish(struct ifl_recorder *recorder, struct ifl_summary *summary,
                        struct ifl_error *error);

/* ---- files of a whole run ---- */

/* The points of a run, read one at a time, so that a study of any size takes the same memory. */
struct ifl_points {
    size_t n_points, n_keys;
    const char *const *keys; /* [n_keys] swept */
    void *context;
    /* Fills in the swept values [n_keys], which outlive the points, and the summary; either pointer
     * may be NULL. Called for any point below n_points, in any order and more than once, with the
     * same result. If the point failed, its reason is in summary->error, and the result is 0. A
     * negative code, with the error filled in, ends the caller, which returns it. */
    int (*at)(void *context, size_t point, const char **values, struct ifl_summary *summary,
              struct ifl_error *error);
};

/* Those of a run of one point without swept keys; the summary is borrowed. */
struct ifl_points ifl_one_point(const struct ifl_summary *summary);

/* The first number of summary.csv that differs, by its column's name, with both values; NULL: none
 * does. */
const char *ifl_summary_difference(const struct ifl_summary *a, const struct ifl_summary *b,
                                   double *of_a, double *of_b);

/* Writes the file `path`: one row per point, swept keys first. The row of a failed point has its
 * keys and its error; its other cells are empty. A failed write leaves no file of its own and an
 * older file as it was. */
int ifl_write_summary(const char *path, const struct ifl_points *points, struct ifl_error *error);
/* Prints the summaries as a table for a terminal. `file` is a FILE * and stays open. The caller
 * checks it for errors with ferror. */
int ifl_print_summary(void *file, const struct ifl_points *points, struct ifl_error *error);

/* ---- several runs of each point ---- */

struct ifl_interval {
    double mean, half_width; /* NaN if there are too few samples */
};

/* The 95% confidence interval of a mean of independent samples (Student's t). With one sample
 * half_width is NaN; with none, for which `sample` may be NULL, both are. */
struct ifl_interval ifl_interval_95(const double *sample, size_t n);

/* Runs that come in groups of n replications: the innermost swept key, the last one, numbers them.
 * n and runs->n_keys are 1 or more, and runs->n_points is a multiple of n. */
struct ifl_replications {
    const struct ifl_points *runs;
    size_t n;
};

/* Writes replications.csv: a row per n replications, the swept keys first, then of each metric the
 * mean and, under its name with _ci95, the half width of the interval. Failed runs are left out,
 * and the columns `runs` and saturated_runs count those that are not. */
int ifl_write_replications(const char *path, const struct ifl_replications *of,
                           struct ifl_error *error);
/* An `at` of struct ifl_points with a struct ifl_replications as its context: a point is the mean
 * of n runs, without those that failed. Such points have n_points / n points and n_keys - 1 keys.
 * If all runs failed, the summary has the first one's error. */
int ifl_mean_of_runs(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *error);

/* ---- joining ---- */

/* A file of a run, joined from the files of its points in order: CSV files under one header, or
 * timelines in one JSON array. It appears at its path when it is closed. */
struct ifl_joint;

/* NULL after an error. `path` is copied. A timeline's parts are those of a timeline_path. */
struct ifl_joint *ifl_joint_open(const char *path, bool timeline, struct ifl_error *error);
/* Appends the file at `part`, which does not change. Of CSV files the first line is taken from the
 * first part only. A part that cannot be read is IFL_E_IO. */
int ifl_joint_append(struct ifl_joint *joint, const char *part, struct ifl_error *error);
/* Gives the file its name and frees the joint. On failure the unfinished file is removed and the
 * joint is freed as well. After a failed ifl_joint_append call ifl_joint_destroy instead. A joint
 * of timelines needs at least one part. */
int ifl_joint_close(struct ifl_joint *joint, struct ifl_error *error);
/* Frees the joint and removes the unfinished file. Accepts NULL. */
void ifl_joint_destroy(struct ifl_joint *joint);

/* One point simulated n times; each member draws the cost parameters from the uncertainty of their
 * fit. */
struct ifl_ensemble {
    int32_t point;
    const struct ifl_summary *nominal;
    const struct ifl_summary *members; /* [n] */
    size_t n;
};
/* The value of rank q (n + 1) of n ascending values, interpolated, or the outermost one: one more
 * draw is below it with probability q. NaN for n = 0. */
double ifl_ensemble_quantile(const double *ascending, size_t n, double q);
/* Writes intervals.csv: a row per number of the summary, with the nominal value and, over the
 * members, the mean, the median and the quantiles 0.05 and 0.95, as ifl_ensemble_quantile has them:
 * one more member lies between them in 90% of cases, in fewer if n is below 19.
 * Members in which a number is NaN do not count for it; for n = 0 there are no rows. */
int ifl_write_intervals(const struct ifl_ensemble *ensemble, const char *path,
                        struct ifl_error *error);

/* ---- figures ---- */

/* gnuplot draws a figure from out_dir/FIGURE.csv with a script of script_dir and writes
 * out_dir/FIGURE.pdf, .svg and .png. A missing gnuplot is IFL_E_IO with a message that names the
 * package. */
struct ifl_drawing {
    const char *out_dir, *script_dir;
    int32_t columns;      /* of a page that a figure spans: 1 is 8.8 cm wide, 2 is 17.8 cm */
    const char *source;   /* UTF-8, for the files' metadata, see ifl_figure_source; may be NULL */
    const char *settings; /* gnuplot commands that set variables of style.gp; may be NULL */
    bool latex; /* FIGURE.tex as well, to be \input, and the FIGURE-tex.pdf that it includes */
    const char *note; /* UTF-8, written below the legend, broken at "; " if it needs more than
                       * one line; may be NULL */
};

/* Makes *source, which the caller frees after a success: "RUN: inflight 0.1.0, config.yaml fnv1a-64
 * 0123456789abcdef; ...", for each run the first line of its config.yaml, which names the version,
 * and the hash of the file's bytes. For a run without the file, such as a recording, it says so.
 * Fails only with IFL_E_NOMEM; *source is then not to be freed. */
int ifl_figure_source(char **source, size_t n_runs, const char *const *run_dirs,
                      struct ifl_error *error);

/* Draws out_dir/FIGURE.csv, which must exist, with script_dir/SCRIPT.gp; `script` and `figure` are
 * names without a suffix. The message of IFL_E_IO is gnuplot's, or says that it is missing. After a
 * failure there is no FIGURE.pdf, .svg or .png, not even one of an earlier call. */
int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error);

/* Takes a note of ifl_plot, in its thread: one line without a line feed, valid until the function
 * returns. */
typedef void ifl_plot_note_fn(void *context, const char *text);

/* A chart of 80 columns for a terminal, in UTF-8: a column of summary.csv against the arrival rate,
 * with a letter per series, capital if saturated; if no rate is swept, with a bar per point. */
int ifl_plot_terminal(FILE *out, size_t n_runs, const char *const *run_dirs, const char *column,
                      struct ifl_error *error);

enum ifl_plot_scale { IFL_SCALE_USUAL, IFL_SCALE_LINEAR, IFL_SCALE_LOG };

/* Zeroed: the figure's own. */
struct ifl_plot_axis {
    enum ifl_plot_scale scale;
    bool has_range;
    double low, high; /* low < high, both above 0 on a logarithmic axis */
};

/* Figures for papers from the reports of one or more runs, overlaid. Each figure has a CSV file of
 * the data that it draws. Its metadata hold the version and the hash of config.yaml of each run. */
struct ifl_plot_options {
    size_t n_runs;
    const char *const *run_dirs;
    struct ifl_drawing drawing; /* its source and note are not read: ifl_plot makes them */
    size_t n_figures;           /* 0: all figures for which the runs have the reports */
    const char *const *figures; /* names, as of ifl_plot_figure */
    double rate_rps;            /* for figures at one rate; 0: the middle of those in all runs */
    /* The swept key of the axis, by its full name or the last part of it; NULL: the arrival rate,
     * also one that results from a factor on a trace's rate. With a key, figures "..._vs_rate" are
     * named by the key. */
    const char *x;
    size_t n_y; /* columns of summary.csv, each a figure against the axis, COLUMN_vs_rate; if */
    const char *const *y; /* there are some, and n_figures is 0, only these are drawn */
    size_t n_labels;
    const char *const *labels; /* "NAME=TEXT": the text replaces the name of a series, a run, a
                                * swept key, a value or a column */
    struct ifl_plot_axis x_axis, y_axis; /* of figures against the axis; if set, and n_figures is
                                          * 0, only such figures are drawn */
    ifl_plot_note_fn *say; /* called for each figure made, or left out and why; may be NULL */
    void *context;
};

/* Draws the figures into drawing.out_dir, which must exist. Figures drawn before an error stay.
 * Failures of gnuplot and of writing are IFL_E_IO. If no request of the runs has finished, nothing
 * is drawn, and the result is 0. These are IFL_E_INPUT:
 *   - an unknown name of a figure, key, column or series;
 *   - a named figure for which the runs lack the reports, or that has no such axis;
 *   - a rate_rps at which a run has no point;
 *   - a run that cannot be read. */
int ifl_plot(const struct ifl_plot_options *options, struct ifl_error *error);

struct ifl_plot_figure {
    const char *name, *doc;
};
/* The i-th figure that ifl_plot can draw, from 0; its name is NULL if i is beyond the last. The
 * texts are constant. */
struct ifl_plot_figure ifl_plot_figure(size_t i);

#endif
