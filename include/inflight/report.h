/* Reports: what a run leaves behind.
 *
 * The loop tells a recorder what happened; the recorder writes requests.csv, steps.csv and
 * timeline.json as it goes, and at the end a row of summary.csv. One recorder serves one point of a
 * sweep and is used by one thread. Files appear under their final names only when they are whole.
 */
#ifndef INFLIGHT_REPORT_H
#define INFLIGHT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/time.h"

#define IFL_PATH_BYTES 640

enum ifl_status { IFL_FINISHED, IFL_REJECTED, IFL_FAILED, IFL_N_STATUSES };

/* As requests.csv and timeline.json call them. */
static const char *const ifl_status_names[IFL_N_STATUSES] = {
    [IFL_FINISHED] = "finished", [IFL_REJECTED] = "rejected", [IFL_FAILED] = "failed"};

/* A request's life. Times are IFL_NEVER where undefined; it is first scheduled when the first step
 * that computes some of it begins. */
struct ifl_request_record {
    uint64_t request_id;
    int64_t arrival_ns, first_scheduled_ns, first_token_ns, finish_ns;
    int64_t max_itl_ns;         /* longest gap between two of its tokens; -1 with fewer than two */
    int64_t stalled_ns;         /* preempted and not yet scheduled again, in all */
    int64_t stalled_prefill_ns; /* the part of it before the first token */
    int64_t ttft_slo_ns, tpot_slo_ns; /* IFL_NEVER where none; goodput counts who meets both */
    int32_t prompt_tokens, output_tokens, cached_tokens;
    int32_t preemptions, swap_outs;
    int32_t replica;
    enum ifl_status status;
};

struct ifl_step_record {
    uint64_t step;
    int64_t start_ns, duration_ns;
    int32_t replica;
    int32_t prefill_tokens, decode_tokens, prefill_seqs, decode_seqs;
    int64_t context_tokens;            /* decoding sequences only, the new token included */
    int32_t running, waiting, swapped; /* after planning */
    int32_t preempted, blocks_out, blocks_in;
    int32_t kv_used_blocks, kv_total_blocks;
    /* KV slots (tokens) by what they hold, while the step runs; the rest of the pool is external */
    int64_t kv_token_slots;    /* K/V that exists */
    int64_t kv_reserved_slots; /* will be used later by a running request */
    int64_t kv_internal_slots; /* allocated and never used */
    int64_t kv_pool_slots;
    int32_t kv_shared_blocks; /* so many more would be used if nobody shared any */
    int64_t device_ns;        /* time on the device; a simulation says duration_ns */
    int64_t gap_ns;           /* since the end of the step before, IFL_NEVER for the first */
};

/* How the pool is used in steps that take no blocks. */
struct ifl_pool_use {
    size_t until; /* the step of a stretch before which it changes */
    int32_t used_blocks;
    int64_t internal_slots; /* of those that requests hold: never used */
};

/* Steps that follow one another without a pause, each of which gives every request one more token
 * and does nothing else. */
struct ifl_stretch_record {
    const struct ifl_step_record *first; /* its duration and its pool are those below */
    size_t n;
    int32_t n_requests; /* that decode: each waited every step's duration for its token */
    int32_t block_tokens, slack_blocks; /* requests hold the slots of all used blocks but these */
    const int64_t *duration_ns;         /* [n], device time as well */
    const int64_t *end_ns;              /* [n] when each ends */
    const struct ifl_pool_use *use;     /* [n_uses], the last one until n */
    size_t n_uses;
};

/* Step i of it, with that use of the pool, in place of step i - 1. */
static inline void ifl_stretch_step(const struct ifl_stretch_record *of,
                                    const struct ifl_pool_use *use, size_t i,
                                    struct ifl_step_record *step)
{
    if (i == 0) {
        *step = *of->first;
    } else {
        step->step++;
        step->gap_ns = 0;
        step->start_ns += step->duration_ns;
        step->context_tokens += step->decode_seqs;
        step->kv_token_slots += step->decode_seqs;
    }
    step->duration_ns = step->device_ns = of->duration_ns[i];
    step->kv_used_blocks = use->used_blocks;
    step->kv_internal_slots = use->internal_slots;
    const int64_t held_slots = (int64_t)(use->used_blocks - of->slack_blocks) * of->block_tokens;
    step->kv_reserved_slots = held_slots - step->kv_token_slots - use->internal_slots;
}

/* What a step did for a request. */
struct ifl_work_record {
    uint64_t step, request_id;
    int64_t start_ns, duration_ns; /* of the step */
    int32_t replica;
    int32_t prefill_tokens, decode_tokens; /* one of them is 0 */
    int32_t context_tokens;                /* K/V that it had before */
    int32_t preemptions;                   /* so far */
};

/* A request has waited to be scheduled again. */
struct ifl_stall_record {
    uint64_t request_id;
    int64_t start_ns, end_ns;
    bool swapped; /* its K/V lay in host memory; else it was dropped */
};

struct ifl_recorder;

struct ifl_recorder_options {
    int32_t point;              /* number of the point, first column of the CSV files */
    const char *requests_path;  /* NULL: not written */
    const char *steps_path;     /* NULL: not written */
    const char *work_path;      /* NULL: not written; a row for each request of each step */
    const char *quantiles_path; /* NULL: not written; the latencies' quantiles, a row each half % */
    const char *timeline_path;  /* NULL: not written; a part for ifl_joint_append */
    uint64_t timeline_events;   /* the timeline ends with what does not fit into so many */
    int64_t timeline_from_ns, timeline_to_ns; /* what it shows overlaps these; to 0: to the end */
    uint64_t timeline_every; /* it shows one step and one request of so many; 0 is 1 */
    const char *label; /* UTF-8, names the point in the timeline; borrowed until it is finished */
    size_t n_requests; /* how many records will come at most */
    int64_t from_ns;   /* the summary and the quantiles tell of requests that arrive from then on */
};

struct ifl_recorder *ifl_recorder_create(const struct ifl_recorder_options *options,
                                         struct ifl_error *error);
/* Removes what is unfinished. Accepts NULL. */
void ifl_recorder_destroy(struct ifl_recorder *recorder);

/* In any order; rows of requests.csv come out by arrival, then request_id. */
int ifl_record_request(struct ifl_recorder *recorder, const struct ifl_request_record *record,
                       struct ifl_error *error);
/* `count` requests have waited gap_ns between two of their tokens. */
int ifl_record_gaps(struct ifl_recorder *recorder, int64_t gap_ns, int64_t count,
                    struct ifl_error *error);
int ifl_record_step(struct ifl_recorder *recorder, const struct ifl_step_record *record,
                    struct ifl_error *error);
/* The same as each step and its gaps. */
int ifl_record_stretch(struct ifl_recorder *recorder, const struct ifl_stretch_record *record,
                       struct ifl_error *error);

/* For recorders with a work_path or a timeline_path; between the step before and this one, or
 * behind the step, but before the record of a request that ends with it. */
int ifl_record_work(struct ifl_recorder *recorder, const struct ifl_work_record *record,
                    struct ifl_error *error);
int ifl_record_stall(struct ifl_recorder *recorder, const struct ifl_stall_record *record,
                     struct ifl_error *error);

struct ifl_quantiles {
    double mean, p50, p90, p95, p99; /* NaN where there is no sample */
};

struct ifl_summary {
    uint64_t n_requests, n_finished, n_rejected, n_failed;
    double duration_s; /* first arrival to last event */
    double request_throughput_rps, output_throughput_tok_per_s, total_throughput_tok_per_s;
    struct ifl_quantiles ttft_s, tpot_s, itl_s, e2e_s, normalized_latency_s; /* per token */
    double goodput_rps, attainment_frac;
    uint64_t preemptions, swap_outs, n_steps;
    double mean_batch; /* sequences a step, weighted by time */
    double kv_token_frac, kv_reserved_frac, kv_internal_frac, kv_external_frac;
    bool saturated; /* the backlog grew over the second half of the arrivals: above capacity */
    struct ifl_quantiles queue_s; /* arrival to first scheduled */
    uint64_t
        n_warmup; /* requests before the steady state; the rest of the summary is without them */
    double warmup_s;
    double kv_shared_frac; /* blocks that sharing saves, of those that there would be without it */
    double cached_prompt_frac; /* of the prompt tokens of finished requests, found in the cache */
    char error[256]; /* why the point failed, all else being undefined; empty if it did not */
    /* What the simulated durations assume, for lack of a measurement; the recorder leaves it empty.
     */
    char assumed[800];
};

/* When the warm-up ends, by MSER-5, of a run whose requests are all recorded: the arrival of the
 * first request behind it. */
int ifl_recorder_warmup(const struct ifl_recorder *recorder, int64_t *from_ns,
                        struct ifl_error *error);

/* Writes what is left to the final files and computes the summary. */
int ifl_recorder_finish(struct ifl_recorder *recorder, struct ifl_summary *summary,
                        struct ifl_error *error);

/* ---- files of a whole run ---- */

/* The points of a run, asked for one by one, so that a study of any size takes the same memory. */
struct ifl_points {
    size_t n_points, n_keys;
    const char *const *keys; /* [n_keys] swept */
    void *context;
    /* Fills in the swept values [n_keys], which outlive the points, and what came out; either may
     * be NULL. */
    int (*at)(void *context, size_t point, const char **values, struct ifl_summary *summary,
              struct ifl_error *error);
};

/* summary.csv: one row a point, swept keys first. */
int ifl_write_summary(const char *path, const struct ifl_points *points, struct ifl_error *error);
/* The same as a table for a terminal; `file` is a FILE. */
int ifl_print_summary(void *file, const struct ifl_points *points, struct ifl_error *error);

/* ---- several runs of each point ---- */

struct ifl_interval {
    double mean, half_width; /* NaN where there are too few samples */
};

/* The 95% confidence interval of a mean of independent samples (Student's t). */
struct ifl_interval ifl_interval_95(const double *sample, size_t n);

/* Of points whose innermost key counts n runs of the same. */
struct ifl_replications {
    const struct ifl_points *runs;
    size_t n;
};

/* replications.csv: a row for n runs, the swept keys first; of each metric the mean, and under its
 * name with _ci95 the half width of the interval. */
int ifl_write_replications(const char *path, const struct ifl_replications *of,
                           struct ifl_error *error);
/* The means of n runs as a point, for struct ifl_points; its context is a struct
 * ifl_replications. */
int ifl_mean_of_runs(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *error);

/* ---- joining ---- */

/* A report of a run that is made of its points' files, in order: CSV files under one header, or
 * timelines in one JSON array. It appears at its path when it is closed. */
struct ifl_joint;

struct ifl_joint *ifl_joint_open(const char *path, bool timeline, struct ifl_error *error);
/* The part stays. */
int ifl_joint_append(struct ifl_joint *joint, const char *part, struct ifl_error *error);
/* Frees the joint in any case. */
int ifl_joint_close(struct ifl_joint *joint, struct ifl_error *error);
/* Removes what is unfinished. Accepts NULL. */
void ifl_joint_destroy(struct ifl_joint *joint);

/* The same point flown again and again with costs drawn from what their fit leaves open. */
struct ifl_ensemble {
    int32_t point;
    const struct ifl_summary *nominal;
    const struct ifl_summary *members; /* [n] */
    size_t n;
};
/* intervals.csv: a row a number of the summary, with the nominal value, and the members' mean,
 * median and the quantiles 0.05 and 0.95, between which 90% of them lie. */
int ifl_write_intervals(const struct ifl_ensemble *ensemble, const char *path,
                        struct ifl_error *error);

/* ---- figures ---- */

/* gnuplot draws a figure from out_dir/FIGURE.csv by a script of script_dir into out_dir/FIGURE.pdf,
 * .svg and .png. A missing gnuplot is IFL_E_IO with a message that names the package. */
struct ifl_drawing {
    const char *out_dir, *script_dir; /* both must exist */
    int32_t columns;    /* of a page that a figure spans: 1 is 8.8 cm wide, 2 is 17.8 cm */
    const char *source; /* UTF-8, what it was made from, for the files' metadata; may be NULL */
    const char *note;   /* UTF-8, written below the legend, a line for each part between "; "
                         * where one line is too short; may be NULL */
};

/* "RUN: inflight 0.1.0, config.yaml fnv1a-64 0123456789abcdef; ...", the caller's to free: the
 * first line of each run's config.yaml, which names the version, and the hash of its bytes. A run
 * without one, as a recording, says so. */
int ifl_figure_source(char **source, size_t n_runs, const char *const *run_dirs,
                      struct ifl_error *error);

/* Draws FIGURE.csv, which is there already, by SCRIPT.gp. */
int ifl_figure(const struct ifl_drawing *drawing, const char *script, const char *figure,
               struct ifl_error *error);

typedef void ifl_plot_note_fn(void *context, const char *text);

/* Figures for papers from the reports of one or more runs, overlaid: each with a CSV of exactly
 * what it draws, and with the runs' version and the hash of their config.yaml in its metadata. */
struct ifl_plot_options {
    size_t n_runs;
    const char *const *run_dirs;
    struct ifl_drawing drawing; /* its source is filled in */
    size_t n_figures;           /* 0: all that the runs have the reports for */
    const char *const *figures; /* names, as ifl_plot_figure knows them */
    double rate_rps;       /* for figures at one rate; 0: the middle one of those that all share */
    ifl_plot_note_fn *say; /* hears of each figure made or left out, and why; may be NULL */
    void *context;
};

int ifl_plot(const struct ifl_plot_options *options, struct ifl_error *error);

struct ifl_plot_figure {
    const char *name, *doc;
};
/* The i-th figure that ifl_plot can draw; its name is NULL at the end. */
struct ifl_plot_figure ifl_plot_figure(size_t i);

#endif
