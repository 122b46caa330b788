/* Receives the records of a run, writes its files during the run, and sums up at the end. */
#include "inflight/minmax.h"
#include "inflight/report.h"

#include "record/gaps.h"
#include "record/lives.h"
#include "record/moves.h"
#include "record/pools.h"
#include "record/stage_sums.h"
#include "record/summary.h"
#include "record/timeline.h"
#include "record/warmup.h"
#include "tables/row.h"
#include "tables/whole_file.h"

#define STEP_ROW_BYTES (29 * ROW_NUMBER_BYTES)
#define WORK_ROW_BYTES (10 * ROW_NUMBER_BYTES)
#define DIFFERENCE_ROW_BYTES (10 * ROW_NUMBER_BYTES)
#define QUANTILE_ROW_BYTES (8 * ROW_NUMBER_BYTES)

struct ifl_recorder {
    int32_t point;
    int64_t from_ns; /* the summary begins there */
    struct whole_file requests, steps, work, quantiles, differences;
    struct whole_file ends; /* requests.csv while it grows */
    struct timeline timeline;
    struct lives lives;
    struct life_log log;
    struct tally tally;       /* of those that count */
    int64_t first_arrival_ns; /* of all */
    size_t n_taken, n_warmup; /* of `log`; the first ones, which do not count */
    int64_t now_ns;           /* the end of the last step */
    void (*on_request)(void *context, const struct ifl_request_record *record);
    void *on_request_context;
    struct gaps gaps;
    struct distribution itl; /* of the gaps, once all are there */
    struct step_sums sums;
    struct pools pools;
    struct stage_sums stages;
    struct move_log moves;
    const char *const *adapter_names; /* [n_adapters] */
    size_t n_adapters;                /* 0: no file has a column of them */
    bool gives_up;
    bool shows_steps; /* steps or timeline is open */
    bool speculates;
    bool hands_over, tiers, migrates, may_leave; /* requests.csv has columns for them */
};

static const char replica_header[] = "point,replica,";

static const char steps_header[] =
    "step,start_s,duration_s,prefill_tokens,decode_tokens,prefill_seqs,decode_seqs,"
    "context_tokens,running,waiting,swapped,preempted,blocks_out,blocks_in,kv_used_blocks,"
    "kv_total_blocks,device_s,gap_s,kv_token_slots,kv_reserved_slots,kv_internal_slots,"
    "kv_pool_slots,kv_shared_blocks";
static const char kept_header[] = ",kv_given_up_tokens,kv_kept_slots";

static const char work_header[] =
    "step,request_id,prefill_tokens,decode_tokens,context_tokens,preemptions\n";

static const char differences_header[] =
    "point,replica,step,recorded_step,start_s,request_id,planned_tokens,recorded_tokens,"
    "planned_context_tokens,recorded_context_tokens\n";

static const char quantiles_header[] =
    "point,quantile,ttft_s,tpot_s,itl_s,e2e_s,normalized_latency_s,queue_s\n";

/* ---- opening and closing ---- */

/* A file of which each row names a replica. */
static int open_of_replicas(struct whole_file *file, const char *path,
                            const struct ifl_recorder_options *options, const char *header,
                            struct ifl_error *error)
{
    const bool has_pools = options->n_pools > 0;
    if ((options->grow ? whole_open_growing : whole_open)(file, path, error) ||
        whole_write(file, replica_header, error) ||
        (has_pools && whole_write(file, "pool,", error)) || whole_write(file, header, error))
        return error->code;
    return IFL_OK;
}

/* Those that this run has, with what a row says in them. */
static struct life_columns columns_of(const struct ifl_recorder *recorder, const char *pool,
                                      const char *adapter)
{
    return (struct life_columns){.pool = recorder->pools.n > 0 ? pool : NULL,
                                 .adapter = recorder->n_adapters > 0 ? adapter : NULL,
                                 .hands_over = recorder->hands_over,
                                 .tiers = recorder->tiers,
                                 .migrates = recorder->migrates,
                                 .may_leave = recorder->may_leave};
}

static int open_files(struct ifl_recorder *recorder, const struct ifl_recorder_options *options,
                      struct ifl_error *error)
{
    if (pools_open(&recorder->pools, options, error))
        return error->code;
    const struct life_columns columns = columns_of(recorder, "", "");
    if (options->requests_path && (whole_open(&recorder->requests, options->requests_path, error) ||
                                   life_write_header(&recorder->requests, &columns, error)))
        return error->code;
    if (options->requests_path && options->grow &&
        (whole_open_growing(&recorder->ends, options->requests_path, error) ||
         life_write_header(&recorder->ends, &columns, error)))
        return error->code;
    if (options->steps_path &&
        (open_of_replicas(&recorder->steps, options->steps_path, options, steps_header, error) ||
         (options->gives_up && whole_write(&recorder->steps, kept_header, error)) ||
         whole_write(&recorder->steps, options->speculates ? ",draft_tokens,accepted_tokens" : "",
                     error) ||
         whole_write(&recorder->steps, columns.adapter ? ",adapters,adapter_loads\n" : "\n",
                     error)))
        return error->code;
    recorder->speculates = options->speculates;
    if (options->work_path &&
        open_of_replicas(&recorder->work, options->work_path, options, work_header, error))
        return error->code;
    if (options->quantiles_path &&
        (whole_open(&recorder->quantiles, options->quantiles_path, error) ||
         whole_write(&recorder->quantiles, quantiles_header, error)))
        return error->code;
    if (options->differences_path &&
        (whole_open(&recorder->differences, options->differences_path, error) ||
         whole_write(&recorder->differences, differences_header, error)))
        return error->code;
    if (move_log_open(&recorder->moves, options->moves_path, options->point, error))
        return error->code;
    if (options->timeline_path &&
        timeline_open(&recorder->timeline, options, &recorder->pools, error))
        return error->code;
    recorder->shows_steps = options->steps_path || options->timeline_path;
    return IFL_OK;
}

struct ifl_recorder *ifl_recorder_create(const struct ifl_recorder_options *options,
                                         struct ifl_error *error)
{
    ifl_require(options->n_requests < UINT32_MAX);
    struct ifl_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder) {
        ifl_fail_nomem(error);
        return NULL;
    }
    *recorder = (struct ifl_recorder){.point = options->point,
                                      .from_ns = options->from_ns,
                                      .hands_over = options->hands_over,
                                      .tiers = options->tiers,
                                      .migrates = options->migrates,
                                      .may_leave = options->may_leave,
                                      .gives_up = options->gives_up,
                                      .sums = {.last_end_ns = INT64_MIN},
                                      .on_request = options->on_request,
                                      .on_request_context = options->on_request_context,
                                      .adapter_names = options->adapter_names,
                                      .n_adapters = options->n_adapters};
    gaps_init(&recorder->gaps, GAPS_MAX_PAIRS);

    /* The timeline needs each life at its end. */
    const bool numbered = options->numbered && !options->timeline_path;
    const char *beside = options->requests_path ? options->requests_path : options->quantiles_path;
    if (tally_open(&recorder->tally, options->n_requests, error) ||
        lives_open(&recorder->lives, options->n_requests, numbered, error) ||
        life_log_open(&recorder->log, beside, error) || open_files(recorder, options, error)) {
        ifl_recorder_destroy(recorder);
        return NULL;
    }
    return recorder;
}

void ifl_recorder_destroy(struct ifl_recorder *recorder)
{
    if (!recorder)
        return;
    struct ifl_error unread; /* what cannot be written at the end of a failed run is lost */
    (void)ifl_recorder_flush(recorder, &unread);
    whole_discard(&recorder->ends);
    whole_discard(&recorder->requests);
    whole_discard(&recorder->steps);
    whole_discard(&recorder->work);
    whole_discard(&recorder->quantiles);
    whole_discard(&recorder->differences);
    whole_discard(&recorder->moves.file);
    timeline_discard(&recorder->timeline);
    pools_close(&recorder->pools);
    gaps_finish(&recorder->gaps);
    stage_sums_free(&recorder->stages);
    lives_close(&recorder->lives);
    life_log_close(&recorder->log);
    tally_close(&recorder->tally);
    free(recorder);
}

/* ---- records ---- */

static int write_life(const struct ifl_recorder *recorder, struct whole_file *file,
                      const struct life *life, struct ifl_error *error)
{
    const uint32_t adapter = life->rare->adapter;
    const struct life_columns columns = columns_of(
        recorder, recorder->pools.n > 0 ? pools_name(&recorder->pools, life->replica) : "",
        adapter > 0 ? recorder->adapter_names[adapter - 1] : "");
    return life_write(file, recorder->point, &columns, life, error);
}

/* The next life in order of arrival: its row, and the sums. */
static int take_life(struct ifl_recorder *recorder, const struct life *life,
                     struct ifl_error *error)
{
    const bool counts = recorder->from_ns <= 0 || life->arrival_ns >= recorder->from_ns;
    if (IFL_RARE(recorder->n_taken++ == 0))
        recorder->first_arrival_ns = life->arrival_ns;
    recorder->n_warmup += !counts;
    if (whole_is_open(&recorder->requests) &&
        write_life(recorder, &recorder->requests, life, error))
        return error->code;
    if (counts && recorder->pools.n > 0)
        pools_take(&recorder->pools, life, &recorder->tally);
    if (counts)
        tally_life(&recorder->tally, life);
    return life_log_add(&recorder->log, life, error);
}

/* Those that are known to be the next ones. */
IFL_APART static int take_lives(struct ifl_recorder *recorder, struct ifl_error *error)
{
    const struct life *life;
    int code = lives_next(&recorder->lives, &life, error);
    while (!code && life) {
        code = take_life(recorder, life, error);
        if (!code)
            code = lives_next(&recorder->lives, &life, error);
    }
    return code;
}

IFL_HOT int ifl_record_request(struct ifl_recorder *recorder,
                               const struct ifl_request_record *record, struct ifl_error *error)
{
    const struct life *life = lives_add(&recorder->lives, record, error);
    if (!life)
        return error->code;
    if (IFL_RARE(whole_is_open(&recorder->timeline.file)))
        timeline_request(&recorder->timeline, life);
    if (IFL_RARE(recorder->on_request != NULL))
        recorder->on_request(recorder->on_request_context, record);
    if (IFL_RARE(whole_is_open(&recorder->ends)) &&
        write_life(recorder, &recorder->ends, life, error))
        return error->code;
    return IFL_RARE(lives_may_go(&recorder->lives)) ? take_lives(recorder, error) : IFL_OK;
}

int ifl_recorder_flush(struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct whole_file *files[] = {&recorder->ends, &recorder->steps, &recorder->work};
    int code = IFL_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (whole_grows(files[i]) && whole_flush(files[i], error))
            code = error->code;
    return code;
}

int ifl_record_gaps(struct ifl_recorder *recorder, int64_t gap_ns, int64_t count,
                    struct ifl_error *error)
{
    /* The gaps of a step come before the step itself. */
    if (IFL_RARE(recorder->from_ns > 0) && recorder->now_ns < recorder->from_ns)
        return IFL_OK;
    return gaps_add(&recorder->gaps, gap_ns, count, error);
}

/* The replica, and its pool if there are pools. */
static char *put_replica(const struct ifl_recorder *recorder, char *at, int32_t replica)
{
    at = row_int(at, recorder->point);
    at = row_int(at, replica);
    return recorder->pools.n > 0 ? row_word(at, pools_name(&recorder->pools, replica)) : at;
}

static char *put_step(const struct ifl_recorder *recorder, char *at,
                      const struct ifl_step_record *step)
{
    at = put_replica(recorder, at, step->replica);
    at = row_uint(at, step->step);
    at = row_seconds(at, step->start_ns);
    at = row_seconds(at, step->duration_ns);
    at = row_int(at, step->prefill_tokens);
    at = row_int(at, step->decode_tokens);
    at = row_int(at, step->prefill_seqs);
    at = row_int(at, step->decode_seqs);
    at = row_int(at, step->context_tokens);
    at = row_int(at, step->running);
    at = row_int(at, step->waiting);
    at = row_int(at, step->swapped);
    at = row_int(at, step->preempted);
    at = row_int(at, step->blocks_out);
    at = row_int(at, step->blocks_in);
    at = row_int(at, step->kv_used_blocks);
    at = row_int(at, step->kv_total_blocks);
    at = row_seconds(at, step->device_ns);
    at = row_seconds(at, step->gap_ns);
    at = row_int(at, step->kv_token_slots);
    at = row_int(at, step->kv_reserved_slots);
    at = row_int(at, step->kv_internal_slots);
    at = row_int(at, step->kv_pool_slots);
    at = row_int(at, step->kv_shared_blocks);
    if (recorder->gives_up) {
        at = row_int(at, step->kv_given_up_tokens);
        at = row_int(at, step->kv_kept_slots);
    }
    if (recorder->speculates) {
        at = row_int(at, step->draft_tokens);
        at = row_int(at, step->accepted_tokens);
    }
    if (recorder->n_adapters > 0) {
        at = row_int(at, step->adapters);
        at = row_int(at, step->adapter_loads);
    }
    return row_end(at);
}

static int write_step(struct ifl_recorder *recorder, const struct ifl_step_record *step,
                      struct ifl_error *error)
{
    char *at = whole_room(&recorder->steps, STEP_ROW_BYTES, error);
    if (!at)
        return error->code;
    whole_commit(&recorder->steps, put_step(recorder, at, step));
    return IFL_OK;
}

IFL_APART static int show_step(struct ifl_recorder *recorder, const struct ifl_step_record *step,
                               struct ifl_error *error)
{
    if (whole_is_open(&recorder->steps) && write_step(recorder, step, error))
        return error->code;
    return whole_is_open(&recorder->timeline.file) ? timeline_step(&recorder->timeline, step, error)
                                                   : IFL_OK;
}

IFL_HOT int ifl_record_step(struct ifl_recorder *recorder, const struct ifl_step_record *step,
                            struct ifl_error *error)
{
    recorder->now_ns = step->start_ns + step->duration_ns;
    if (recorder->from_ns <= 0 || step->start_ns >= recorder->from_ns) {
        step_sums_add(&recorder->sums, step);
        if (IFL_RARE(recorder->pools.n > 0))
            step_sums_add(&recorder->pools.steps[recorder->pools.pool_of[step->replica]], step);
    }
    return IFL_RARE(recorder->shows_steps) ? show_step(recorder, step, error) : IFL_OK;
}

int ifl_record_move(struct ifl_recorder *recorder, const struct ifl_move_record *record,
                    struct ifl_error *error)
{
    const bool counts = recorder->from_ns <= 0 || record->start_ns >= recorder->from_ns;
    if (whole_is_open(&recorder->timeline.file) &&
        timeline_move(&recorder->timeline, record, error))
        return error->code;
    if (counts && recorder->pools.n > 0)
        pools_move(&recorder->pools, record);
    return move_log_add(&recorder->moves, record, counts, error);
}

int ifl_record_stage(struct ifl_recorder *recorder, const struct ifl_stage_record *record,
                     struct ifl_error *error)
{
    if ((recorder->from_ns <= 0 || record->start_ns >= recorder->from_ns) &&
        stage_sums_add(&recorder->stages, record) < 0)
        return ifl_fail_nomem(error);
    return whole_is_open(&recorder->timeline.file)
               ? timeline_stage(&recorder->timeline, record, error)
               : IFL_OK;
}

IFL_APART static int record_each(struct ifl_recorder *recorder, const struct ifl_stretch_record *of,
                                 struct ifl_error *error)
{
    struct ifl_step_record step;
    size_t i = 0;
    for (const struct ifl_pool_use *use = of->use; use < of->use + of->n_uses; use++)
        for (; i < use->until; i++) {
            ifl_stretch_step(of, use, i, &step);
            if (ifl_record_gaps(recorder, step.duration_ns, of->n_requests, error) ||
                ifl_record_step(recorder, &step, error))
                return error->code;
        }
    return IFL_OK;
}

/* Whether sum_growth_ns fits into 64 bits: always, except in stretches of years. */
static bool fits_64_bits(const struct ifl_stretch_record *of)
{
    int64_t most;
    return !__builtin_mul_overflow(step_sums_lasted_ns(of), (int64_t)of->n, &most);
}

/* For the precondition: the steps follow one another, and the uses of the pool cover all of them.
 */
IFL_FOR_ASSERTS static inline bool is_whole(const struct ifl_stretch_record *of)
{
    int64_t at_ns = of->first->start_ns;
    size_t i = 0, use = 0;
    for (; i < of->n && at_ns + of->duration_ns[i] == of->end_ns[i]; i++) {
        if (of->lengthens && i > 0 && of->duration_ns[i] <= of->duration_ns[i - 1])
            return false;
        at_ns = of->end_ns[i];
    }
    for (size_t until = 0; use < of->n_uses && of->use[use].until > until; use++)
        until = of->use[use].until;
    return i > 0 && i == of->n && use > 0 && use == of->n_uses && of->use[use - 1].until == of->n;
}

IFL_HOT int ifl_record_stretch(struct ifl_recorder *recorder, const struct ifl_stretch_record *of,
                               struct ifl_error *error)
{
    ifl_assert(is_whole(of));
    if (IFL_RARE(recorder->shows_steps || recorder->pools.n > 0 || recorder->from_ns > 0 ||
                 !fits_64_bits(of)))
        return record_each(recorder, of, error);
    step_sums_add_stretch(&recorder->sums, of);
    recorder->now_ns = recorder->sums.last_end_ns;
    return gaps_add_stretch(&recorder->gaps, of, error);
}

int ifl_record_work(struct ifl_recorder *recorder, const struct ifl_work_record *record,
                    struct ifl_error *error)
{
    ifl_assert(whole_is_open(&recorder->work) || whole_is_open(&recorder->timeline.file));
    if (whole_is_open(&recorder->work)) {
        char *at = whole_room(&recorder->work, WORK_ROW_BYTES, error);
        if (!at)
            return error->code;
        at = put_replica(recorder, at, record->replica);
        at = row_uint(at, record->step);
        at = row_uint(at, record->request_id);
        at = row_int(at, record->prefill_tokens);
        at = row_int(at, record->decode_tokens);
        at = row_int(at, record->context_tokens);
        at = row_int(at, record->preemptions);
        whole_commit(&recorder->work, row_end(at));
    }
    if (whole_is_open(&recorder->timeline.file))
        timeline_work(&recorder->timeline, record);
    return IFL_OK;
}

int ifl_record_stall(struct ifl_recorder *recorder, const struct ifl_stall_record *record,
                     struct ifl_error *error)
{
    ifl_assert(whole_is_open(&recorder->work) || whole_is_open(&recorder->timeline.file));
    (void)error;
    if (whole_is_open(&recorder->timeline.file))
        timeline_stall(&recorder->timeline, record);
    return IFL_OK;
}

/* Nothing for a negative number. */
static char *row_count(char *at, int64_t value)
{
    return value < 0 ? row_word(at, "") : row_int(at, value);
}

int ifl_record_difference(struct ifl_recorder *recorder, const struct ifl_difference_record *record,
                          struct ifl_error *error)
{
    if (!whole_is_open(&recorder->differences))
        return IFL_OK;
    char *at = whole_room(&recorder->differences, DIFFERENCE_ROW_BYTES, error);
    if (!at)
        return error->code;
    at = row_int(at, recorder->point);
    at = row_int(at, record->replica);
    at = row_count(at, record->step);
    at = row_count(at, record->recorded_step);
    at = row_seconds(at, record->start_ns);
    at = record->of_all ? row_word(at, "") : row_uint(at, record->request_id);
    at = row_count(at, record->planned_tokens);
    at = row_count(at, record->recorded_tokens);
    at = row_count(at, record->planned_context);
    at = row_count(at, record->recorded_context);
    whole_commit(&recorder->differences, row_end(at));
    return IFL_OK;
}

/* ---- the end ---- */

static int64_t nearest_ns(double ns)
{
    return ns >= 0 ? (int64_t)(ns + 0.5) : IFL_NEVER; /* NaN is no sample */
}

static int write_quantiles(struct ifl_recorder *recorder,
                           const struct distribution latencies[N_LATENCIES],
                           struct ifl_error *error)
{
    if (!whole_is_open(&recorder->quantiles))
        return IFL_OK;
    for (size_t i = 0; i < QUANTILE_GRID; i++) {
        char *at = whole_room(&recorder->quantiles, QUANTILE_ROW_BYTES, error);
        if (!at)
            return error->code;
        at = row_int(at, recorder->point);
        at = row_real(at, quantile_of_grid(i));
        for (size_t which = 0; which < N_LATENCIES; which++)
            at = row_seconds(at, nearest_ns(latencies[which].at_ns[i]));
        whole_commit(&recorder->quantiles, row_end(at));
    }
    return IFL_OK;
}

static int sum_up(struct ifl_recorder *recorder, struct ifl_summary *summary,
                  struct ifl_error *error)
{
    const struct summary_input input = {
        .lives = {.log = &recorder->log, .from = recorder->n_warmup},
        .tally = &recorder->tally,
        .run = &recorder->tally,
        .steps = &recorder->sums,
        .itl = &recorder->itl,
    };
    struct distribution latencies[N_LATENCIES];
    if (summarize(&input, latencies, summary, error) ||
        pools_write(&recorder->pools, recorder->point, &input, summary, error))
        return error->code;
    stage_sums_describe(&recorder->stages, summary);
    move_sums_describe(&recorder->moves.sums, summary);
    summary->n_adapters = recorder->n_adapters;
    summary->has_tiers = recorder->tiers;
    summary->migrates = recorder->migrates;
    summary->n_warmup = recorder->n_warmup;
    summary->warmup_s =
        recorder->n_warmup ? ifl_s_from_ns(recorder->from_ns - recorder->first_arrival_ns) : 0;
    return write_quantiles(recorder, latencies, error);
}

static int take_rest(struct ifl_recorder *recorder, struct ifl_error *error)
{
    return lives_end(&recorder->lives, error) ? error->code : take_lives(recorder, error);
}

/* All files are closed before the first gets its name: with a full disk none appears. */
static int publish(struct ifl_recorder *recorder, struct ifl_error *error)
{
    enum { N_FILES = 9 };
    struct whole_file *files[N_FILES] = {
        &recorder->ends,       &recorder->requests,      &recorder->steps,
        &recorder->work,       &recorder->quantiles,     &recorder->differences,
        &recorder->pools.file, &recorder->timeline.file, &recorder->moves.file};
    for (size_t i = 0; i < N_FILES; i++)
        if (whole_close(files[i], error))
            return error->code;
    for (size_t i = 0; i < N_FILES; i++)
        if (whole_publish(files[i], error))
            return error->code;
    return IFL_OK;
}

int ifl_recorder_finish(struct ifl_recorder *recorder, struct ifl_summary *summary,
                        struct ifl_error *error)
{
    if (gaps_describe(&recorder->gaps, &recorder->itl, error))
        return error->code;
    gaps_finish(&recorder->gaps);
    if (take_rest(recorder, error))
        return error->code;
    if (whole_is_open(&recorder->timeline.file) && timeline_end(&recorder->timeline, error))
        return error->code;
    return sum_up(recorder, summary, error) ? error->code : publish(recorder, error);
}

int ifl_recorder_warmup(struct ifl_recorder *recorder, int64_t *from_ns, struct ifl_error *error)
{
    size_t n_warmup = 0, i = 0;
    struct life_reader reader;
    *from_ns = 0;
    if (take_rest(recorder, error) ||
        warmup_requests(&recorder->log, recorder->n_taken, &n_warmup, error))
        return error->code;
    if (n_warmup == 0)
        return IFL_OK;
    int rc = life_reader_open(&reader, &recorder->log, error) < 0 ? error->code : 1;
    while (rc > 0 && i++ <= n_warmup)
        rc = life_reader_next(&reader, error);
    life_reader_close(&reader);
    if (rc > 0)
        *from_ns = reader.life.arrival_ns;
    return rc < 0 ? rc : IFL_OK;
}
