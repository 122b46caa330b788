/* One trial of a search: simulates all replications at one rate, on so many replicas, and computes
 * the margin to the objectives. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "run/capacity_parts.h"
#include "run/point.h"

/* ---- judging ---- */

static void judge_one(const struct objective *objective, struct objective_trial *of,
                      struct capacity_trial *trial)
{
    const double low = of->value.mean - of->value.half_width;
    const double high = of->value.mean + of->value.half_width;
    of->margin = objective_margin(objective, of->value.mean);
    trial->margin = fmax(trial->margin, of->margin);
    trial->margin_low =
        fmax(trial->margin_low, objective_margin(objective, objective->at_least ? high : low));
    trial->margin_high =
        fmax(trial->margin_high, objective_margin(objective, objective->at_least ? low : high));
}

double capacity_margin(const struct capacity_trial *trial)
{
    return trial->margin;
}

double capacity_margin_low(const struct capacity_trial *trial)
{
    return trial->margin_low;
}

double capacity_margin_high(const struct capacity_trial *trial)
{
    return trial->margin_high;
}

uint32_t capacity_missed(const struct capacity *found, const struct capacity_trial *trial)
{
    uint32_t missed = 0;
    for (size_t i = 0; i < found->n_objectives; i++)
        missed |= trial->of[i].margin > 0 ? UINT32_C(1) << i : 0;
    return missed;
}

static struct ifl_interval interval_of(const struct search *search,
                                       const struct objective *objective)
{
    const size_t n = search->options->n_replications;
    for (size_t r = 0; r < n; r++)
        search->sample[r] = objective_value(objective, &search->summaries[r]);
    return ifl_interval_95(search->sample, n);
}

static void judge(const struct search *search, struct capacity_trial *trial)
{
    trial->margin = trial->margin_low = trial->margin_high = -INFINITY;
    for (size_t i = 0; i < search->found->n_objectives; i++) {
        trial->of[i].value = interval_of(search, &search->found->objectives[i]);
        judge_one(&search->found->objectives[i], &trial->of[i], trial);
    }
}

/* ---- flying ---- */

static bool asks_clients(const struct search *search)
{
    const struct objectives *of = &search->options->configs[0].capacity.objectives;
    return of->client_attainment_frac > 0;
}

/* The replications of a trial. Each thread takes the next one that no thread has taken. */
struct trial_crew {
    const struct capacity_options *options;
    uint64_t member;
    double rate_rps;
    int32_t replicas;              /* 0: as configured */
    struct ifl_summary *summaries; /* [n_replications] */
    bool by_client;
    atomic_size_t next;
    pthread_mutex_t lock;
    struct ifl_error error; /* of the lowest replication that failed */
    size_t failed;          /* n_replications: none */
};

/* Not the replication's own seed: a member has the same costs in all of them. */
static uint64_t member_seed(const struct capacity_options *options)
{
    return options->configs[0].workload.arrivals.seed;
}

static int fly_replication(struct trial_crew *crew, size_t replication, struct ifl_error *error)
{
    const struct capacity_options *options = crew->options;
    struct config config = options->configs[replication];
    struct point_result result;
    const struct point_options point = {.config = &config,
                                        .member = {crew->member, member_seed(options)},
                                        .traces = options->traces,
                                        .profiles = options->profiles,
                                        .stop = options->stop,
                                        .n_ended = options->n_ended,
                                        .by_client = crew->by_client};
    config.workload.arrivals.rate_rps = crew->rate_rps;
    if (crew->replicas > 0)
        config.replicas = crew->replicas;
    const int code = point_fly(&point, &result, error);
    crew->summaries[replication] = result.summary;
    return code;
}

static void *fly_replications(void *context)
{
    struct trial_crew *crew = context;
    struct ifl_error error;
    for (size_t r; (r = atomic_fetch_add(&crew->next, 1)) < crew->options->n_replications;) {
        if (fly_replication(crew, r, &error) == 0)
            continue;
        pthread_mutex_lock(&crew->lock);
        if (r < crew->failed) {
            crew->failed = r;
            crew->error = error;
        }
        pthread_mutex_unlock(&crew->lock);
        atomic_store(&crew->next, crew->options->n_replications);
    }
    return NULL;
}

static int fly(struct search *search, double rate_rps, int32_t replicas)
{
    pthread_t helpers[CAPACITY_MAX_THREADS];
    const struct capacity_options *options = search->options;
    struct trial_crew crew = {.options = options,
                              .member = search->member,
                              .rate_rps = rate_rps,
                              .replicas = replicas,
                              .by_client = asks_clients(search),
                              .summaries = search->summaries,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .failed = options->n_replications};
    size_t n = 0;
    while (n + 1 < options->n_threads && n + 1 < options->n_replications &&
           n < CAPACITY_MAX_THREADS &&
           pthread_create(&helpers[n], NULL, fly_replications, &crew) == 0)
        n++;
    fly_replications(&crew);
    while (n > 0)
        pthread_join(helpers[--n], NULL);
    if (crew.failed == options->n_replications)
        return 0;
    *search->error = crew.error;
    return crew.error.code;
}

/* ---- the trial ---- */

static struct ifl_interval estimate(const struct search *search, size_t offset)
{
    return interval_of(search, &(struct objective){.offset = offset});
}

#define ESTIMATE(field) estimate(search, offsetof(struct ifl_summary, field))

/* Compares with a tolerance, because rates pass through their logarithms. */
const struct capacity_trial *capacity_known(const struct search *search, double rate_rps,
                                            int32_t replicas)
{
    const struct capacity *found = search->found;
    for (size_t i = 0; i < found->n_trials; i++)
        if (fabs(found->trials[i].rate_rps - rate_rps) < 1e-9 * rate_rps &&
            found->trials[i].replicas == replicas)
            return &found->trials[i];
    return NULL;
}

static int fail_lost(const struct search *search, double rate_rps, int32_t replicas)
{
    if (replicas > 0)
        return ifl_fail(search->error, IFL_E_STALLED,
                        "the number of replicas is not found within %d trials, the last being %d",
                        CAPACITY_MAX_TRIALS, replicas);
    return ifl_fail(search->error, IFL_E_STALLED,
                    "the capacity is not found within %d rates, the last being %g",
                    CAPACITY_MAX_TRIALS, rate_rps);
}

const struct capacity_trial *capacity_try(struct search *search, double rate_rps, int32_t replicas)
{
    struct capacity *found = search->found;
    const struct capacity_trial *known = capacity_known(search, rate_rps, replicas);
    if (known || search->code < 0)
        return known;
    if (found->n_trials == CAPACITY_MAX_TRIALS)
        search->code = fail_lost(search, rate_rps, replicas);
    else
        search->code = fly(search, rate_rps, replicas);
    if (search->code < 0)
        return NULL;
    if (search->options->trials)
        atomic_fetch_add(&search->options->trials->n_flown, 1);
    struct capacity_trial *trial = &found->trials[found->n_trials++];
    *trial = (struct capacity_trial){
        .rate_rps = rate_rps,
        .replicas = replicas,
        .goodput_rps = ESTIMATE(goodput_rps),
        .attainment_frac = ESTIMATE(attainment_frac),
        .output_throughput_tok_per_s = ESTIMATE(output_throughput_tok_per_s),
        .request_throughput_rps = ESTIMATE(request_throughput_rps),
        .p90_ttft_s = ESTIMATE(ttft_s.p90),
        .p99_ttft_s = ESTIMATE(ttft_s.p99),
        .p99_itl_s = ESTIMATE(itl_s.p99),
        .p50_queue_s = ESTIMATE(queue_s.p50),
        .mean_queue_s = ESTIMATE(queue_s.mean),
    };
    judge(search, trial);
    return trial;
}
