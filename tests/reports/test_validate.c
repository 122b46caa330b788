/* Validation of runs with known differences: one run is made from the other. */
#include "scratch.h"

#include <math.h>

#include "inflight/report.h"
#include "inflight/validate.h"
#include "validate/distance.h"
#include "validate/findings.h"

#define MS (IFL_NS_PER_S / 1000)
enum { N = 40 };

/* ---- runs ---- */

struct run {
    struct ifl_trace trace;
    int64_t arrival_ns[N];
    int32_t n_prompt[N], n_output[N];
    uint64_t request_id[N];
    struct ifl_outcome outcome[N];
};

/* One arrival a second, varying latencies; every fifth answer has one token. */
static void make(struct run *run)
{
    for (int i = 0; i < N; i++) {
        const int64_t ttft_ns = (20 + (i * 7) % 40) * MS;
        run->arrival_ns[i] = i * IFL_NS_PER_S;
        run->n_prompt[i] = 10 + i;
        run->n_output[i] = i % 5 ? 1 + i % 5 : 1;
        run->request_id[i] = (uint64_t)i;
        run->outcome[i] = (struct ifl_outcome){
            .queue_ns = 5 * MS,
            .ttft_ns = ttft_ns,
            .e2e_ns = ttft_ns + (run->n_output[i] - 1) * (100 + i) * MS,
        };
    }
    run->trace = (struct ifl_trace){
        .n = N,
        .has_stamps = true,
        .arrival_ns = run->arrival_ns,
        .n_prompt = run->n_prompt,
        .n_output = run->n_output,
        .request_id = run->request_id,
        .outcome = run->outcome,
        .n_clients = 1,
    };
}

struct both {
    struct run simulated, measured;
    struct scratch scratch;
    struct ifl_validation validation;
};

static struct both *make_both(void)
{
    struct both *both = calloc(1, sizeof *both);
    cr_assert_not_null(both);
    make(&both->simulated);
    make(&both->measured);
    both->scratch = scratch_make();
    both->validation = (struct ifl_validation){
        .simulated = {"simulated", &both->simulated.trace, NULL},
        .measured = {"measured", &both->measured.trace, NULL},
        .out_dir = both->scratch.dir,
    };
    return both;
}

static void free_both(struct both *both)
{
    scratch_remove(&both->scratch);
    free(both);
}

/* ---- validation.csv ---- */

enum column { N_SAMPLES = 2, SIMULATED_VALUE, MEASURED_VALUE, ERROR_VALUE, RELATIVE_ERROR };

/* NaN if the row or the cell is missing. */
static double cell(const char *csv, const char *metric, const char *statistic, enum column column)
{
    char key[128];
    snprintf(key, sizeof key, "\n%s,%s,", metric, statistic);
    const char *at = strstr(csv, key);
    if (!at)
        return NAN;
    at++;
    for (int i = 0; i < (int)column; i++)
        at = strchr(at, ',') + 1;
    return *at == ',' || *at == '\n' ? (double)NAN : strtod(at, NULL);
}

static char *validate(struct both *both)
{
    struct ifl_error error;
    cr_assert_eq(ifl_validate(&both->validation, &error), 0, "%s", error.text);
    char *csv = scratch_read(&both->scratch, "validation.csv");
    cr_assert_not_null(csv);
    return csv;
}

static const char *const statistics[] = {"mean", "p50", "p90", "p99"};

static void expect_error(const char *csv, const char *metric, double error_s)
{
    for (int i = 0; i < 4; i++) {
        const double found = cell(csv, metric, statistics[i], ERROR_VALUE);
        cr_expect_float_eq(found, error_s, 1e-9, "%s %s: %.12g, not %.12g", metric, statistics[i],
                           found, error_s);
    }
}

Test(validate, a_run_against_itself_has_no_error)
{
    struct both *both = make_both();
    char *csv = validate(both);
    static const char *const metrics[] = {"ttft_s",  "tpot_s",    "e2e_s",   "normalized_latency_s",
                                          "queue_s", "prefill_s", "decode_s"};
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        for (int i = 0; i < 4; i++)
            cr_expect_eq(cell(csv, metrics[m], statistics[i], ERROR_VALUE), 0, "%s", metrics[m]);
        cr_expect_eq(cell(csv, metrics[m], "request_abs_error_p99", ERROR_VALUE), 0);
        cr_expect_eq(cell(csv, metrics[m], "kolmogorov_smirnov", ERROR_VALUE), 0);
        cr_expect_eq(cell(csv, metrics[m], "wasserstein", ERROR_VALUE), 0);
    }
    cr_expect_eq(cell(csv, "request_throughput_rps", "value", ERROR_VALUE), 0);
    cr_expect_eq(cell(csv, "cost.lone_prefill_s", "mean", ERROR_VALUE), 0);
    cr_expect_eq(cell(csv, "cost.lone_decode_s", "mean", ERROR_VALUE), 0);
    cr_expect_float_eq(cell(csv, "scheduling.order", "spearman", ERROR_VALUE), 1, 1e-12);
    cr_expect_eq(cell(csv, "scheduling.order", "inversions_frac", ERROR_VALUE), 0);
    cr_expect_eq(cell(csv, "e2e_s", "mean", N_SAMPLES), N);
    cr_expect_eq(cell(csv, "tpot_s", "mean", N_SAMPLES), N - N / 5, "one token has no TPOT");
    free(csv);
    free_both(both);
}

/* Every first token comes 125 ms later: TTFT and E2E have that error, TPOT has none. */
Test(validate, a_shift_is_found_again)
{
    struct both *both = make_both();
    for (int i = 0; i < N; i++) {
        both->simulated.outcome[i].queue_ns += 125 * MS;
        both->simulated.outcome[i].ttft_ns += 125 * MS;
        both->simulated.outcome[i].e2e_ns += 125 * MS;
    }
    char *csv = validate(both);
    expect_error(csv, "queue_s", 0.125);
    expect_error(csv, "ttft_s", 0.125);
    expect_error(csv, "e2e_s", 0.125);
    expect_error(csv, "prefill_s", 0);
    expect_error(csv, "tpot_s", 0);
    expect_error(csv, "decode_s", 0);
    cr_expect_float_eq(cell(csv, "e2e_s", "wasserstein", ERROR_VALUE), 0.125, 1e-9);
    cr_expect_float_eq(cell(csv, "ttft_s", "request_abs_error_p90", ERROR_VALUE), 0.125, 1e-9);
    /* All simulated first tokens come later than all measured ones, which take at most 59 ms. */
    cr_expect_eq(cell(csv, "ttft_s", "kolmogorov_smirnov", ERROR_VALUE), 1);
    free(csv);
    free_both(both);
}

/* Decoding at twice the time: the relative error of every request's TPOT is 100%. */
Test(validate, a_factor_is_a_relative_error)
{
    struct both *both = make_both();
    for (int i = 0; i < N; i++) {
        struct ifl_outcome *o = &both->simulated.outcome[i];
        o->e2e_ns += o->e2e_ns - o->ttft_ns;
    }
    char *csv = validate(both);
    cr_expect_float_eq(cell(csv, "tpot_s", "mean", RELATIVE_ERROR), 1, 1e-9);
    cr_expect_float_eq(cell(csv, "tpot_s", "request_abs_relative_error_p50", ERROR_VALUE), 1, 1e-9);
    cr_expect_float_eq(cell(csv, "tpot_s", "request_relative_error_p99", ERROR_VALUE), 1, 1e-9);
    expect_error(csv, "ttft_s", 0);
    free(csv);
    free_both(both);
}

Test(validate, only_requests_without_company_tell_the_cost_of_one)
{
    struct both *both = make_both();
    /* Requests 4 and 5: the first still decodes when the second comes. */
    both->measured.outcome[4].e2e_ns = 1500 * MS;
    both->simulated.outcome[4].e2e_ns = 1500 * MS;
    both->simulated.outcome[7].ttft_ns += 38 * MS;
    both->simulated.outcome[7].e2e_ns += 38 * MS;
    char *csv = validate(both);
    cr_expect_eq(cell(csv, "cost.lone_prefill_s", "mean", N_SAMPLES), N - 1);
    /* Request 5 has one token and no TPOT in any case. */
    cr_expect_eq(cell(csv, "cost.lone_decode_s", "mean", N_SAMPLES), N - N / 5 - 1);
    cr_expect_float_eq(cell(csv, "cost.lone_prefill_s", "mean", ERROR_VALUE), 0.038 / (N - 1),
                       1e-9);
    free(csv);
    free_both(both);
}

/* Only odd requests are judged. Request 5 is not lone: it overlaps request 4, though 4 is not
 * judged. */
Test(validate, company_counts_in_every_part)
{
    struct both *both = make_both();
    both->measured.outcome[4].e2e_ns = 1500 * MS;
    both->simulated.outcome[4].e2e_ns = 1500 * MS;
    both->validation.part = 1;
    both->validation.n_parts = 2;
    char *csv = validate(both);
    cr_expect_eq(cell(csv, "e2e_s", "mean", N_SAMPLES), N / 2);
    cr_expect_eq(cell(csv, "cost.lone_prefill_s", "mean", N_SAMPLES), N / 2 - 1);
    char *rows = scratch_read(&both->scratch, "validation_requests.csv");
    cr_assert_not_null(rows);
    cr_expect(strstr(rows, "\n5,5.000000000,15,1,1,"), "in flight: %s", rows);
    cr_expect(strstr(rows, "\n7,7.000000000,17,3,0,"), "in flight: %s", rows);
    free(rows);
    free(csv);
    free_both(both);
}

/* Two neighbours of forty start in the other order: one inverted pair of 780. Spearman's
 * coefficient is 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 1 twice. */
Test(validate, order_of_admission)
{
    struct both *both = make_both();
    both->simulated.outcome[10].queue_ns = 1500 * MS;
    both->simulated.outcome[10].ttft_ns = 1600 * MS;
    both->simulated.outcome[10].e2e_ns = 1700 * MS;
    char *csv = validate(both);
    cr_expect_float_eq(cell(csv, "scheduling.order", "inversions_frac", ERROR_VALUE), 1 / 780.0,
                       1e-9);
    cr_expect_float_eq(cell(csv, "scheduling.order", "spearman", ERROR_VALUE),
                       1 - 6.0 * 2 / (40.0 * (1600 - 1)), 1e-9);
    free(csv);
    free_both(both);
}

/* ---- pairing ---- */

static struct pairs match(struct both *both)
{
    struct pairs pairs;
    struct ifl_error error;
    cr_assert_eq(pairs_match(&both->validation, &pairs, &error), 0, "%s", error.text);
    return pairs;
}

Test(validate, a_part_of_a_recording_is_found_by_id)
{
    struct both *both = make_both();
    both->simulated.trace.n = 5;
    for (int i = 0; i < 5; i++) {
        both->simulated.request_id[i] = 20 + (uint64_t)i;
        both->simulated.n_output[i] = both->measured.n_output[20 + i];
        both->simulated.n_prompt[i] = 1024 + both->measured.n_prompt[20 + i];
    }
    struct pairs pairs = match(both);
    cr_expect(pairs.by_id, "prompts may have a prefix that the recording does not carry");
    cr_expect_eq(pairs.n, 5);
    cr_expect_eq(pairs.of[3].row[MEASURED], 23);
    cr_expect_eq(pairs.n_alone[MEASURED], N - 5);
    pairs_free(&pairs);
    free_both(both);
}

Test(validate, strangers_ids_are_not_believed)
{
    struct both *both = make_both();
    for (int i = 0; i < N; i++)
        both->measured.request_id[i] = (uint64_t)(N - 1 - i);
    struct pairs pairs = match(both);
    cr_expect(!pairs.by_id);
    cr_expect_eq(pairs.n, N);
    cr_expect_eq(pairs.of[3].row[SIMULATED], 3);
    pairs_free(&pairs);
    free_both(both);
}

Test(validate, unfinished_requests_have_no_error)
{
    struct both *both = make_both();
    both->simulated.outcome[2].e2e_ns = IFL_NEVER;
    both->measured.outcome[3].e2e_ns = IFL_NEVER;
    struct pairs pairs = match(both);
    cr_expect_eq(pairs.n, N - 2);
    cr_expect_eq(pairs.n_unfinished, 2);
    pairs_free(&pairs);
    free_both(both);
}

Test(validate, runs_without_a_common_request_are_refused)
{
    struct both *both = make_both();
    struct ifl_error error;
    for (int i = 0; i < N; i++)
        both->measured.n_output[i] = 1000 + i;
    cr_expect_eq(ifl_validate(&both->validation, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "none of which finished and is one of the 40 of simulated"), "%s",
              error.text);
    both->measured.trace.outcome = NULL;
    cr_expect_eq(ifl_validate(&both->validation, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "a trace without outcomes"), "%s", error.text);
    free_both(both);
}

Test(validate, clients_keep_their_names)
{
    struct both *both = make_both();
    uint32_t client[N];
    char first[] = "adapter-1", second[] = "a, b", *names[] = {first, second};
    for (int i = 0; i < N; i++)
        client[i] = (uint32_t)i % 2;
    both->measured.trace.client = client;
    both->measured.trace.client_names = names;
    free(validate(both));
    char *rows = scratch_read(&both->scratch, "validation_requests.csv");
    cr_assert_not_null(rows);
    cr_expect(strstr(rows, ",0,adapter-1\n1,1.000000000,"), "%s", rows);
    cr_expect(strstr(rows, ",0,\"a, b\"\n2,2.000000000,"), "%s", rows);
    free(rows);
    free_both(both);
}

/* ---- gaps, steps ---- */

/* Percentiles of 1..9 ms against those of 11..19 ms, as numpy interpolates them. */
Test(validate, gaps_between_tokens)
{
    struct both *both = make_both();
    size_t at[N + 1];
    int64_t gaps[N_SIDES][9];
    for (int i = 0; i <= N; i++)
        at[i] = i < 5 ? 0 : 9;
    for (int i = 0; i < 9; i++) {
        gaps[SIMULATED][i] = (19 - i) * MS;
        gaps[MEASURED][i] = (1 + i) * MS;
    }
    both->simulated.trace.gap_at = both->measured.trace.gap_at = at;
    both->simulated.trace.gap_ns = gaps[SIMULATED];
    both->measured.trace.gap_ns = gaps[MEASURED];
    char *csv = validate(both);
    cr_expect_float_eq(cell(csv, "itl_s", "p50", SIMULATED_VALUE), 0.015, 1e-9);
    cr_expect_float_eq(cell(csv, "itl_s", "p90", MEASURED_VALUE), 0.0082, 1e-9);
    cr_expect_float_eq(cell(csv, "itl_s", "p99", ERROR_VALUE), 0.010, 1e-9);
    free(csv);
    free_both(both);
}

/* Simulated against measured: pure decodes take 2 ms instead of 3; there is one step more; the long
 * prompt takes one step instead of two. */
Test(validate, steps_split_into_cost_and_scheduling)
{
    static const char header[] = "prefill_tokens,decode_seqs,context_tokens,duration_s\n";
    struct both *both = make_both();
    struct scratch dirs[N_SIDES] = {scratch_make(), scratch_make()};
    char text[256];
    snprintf(text, sizeof text, "%s0,1,5,0.002\n0,1,6,0.002\n0,1,7,0.002\n64,0,0,0.010\n", header);
    scratch_write(&dirs[SIMULATED], "steps.csv", text);
    snprintf(text, sizeof text, "%s0,1,5,0.003\n0,1,6,0.003\n32,0,0,0.006\n32,0,0,0.006\n", header);
    scratch_write(&dirs[MEASURED], "steps.csv", text);
    both->validation.simulated.dir = dirs[SIMULATED].dir;
    both->validation.measured.dir = dirs[MEASURED].dir;
    char *csv = validate(both);
    cr_expect_float_eq(cell(csv, "cost.steps_s", "sum", ERROR_VALUE), -0.002, 1e-12);
    cr_expect_float_eq(cell(csv, "scheduling.steps_s", "sum", ERROR_VALUE), 0.002 + 0.010 - 0.012,
                       1e-12);
    cr_expect_float_eq(cell(csv, "steps.busy_s", "sum", ERROR_VALUE), 0.016 - 0.018, 1e-12);
    cr_expect_eq(cell(csv, "steps.alike_from_the_start", "count", SIMULATED_VALUE), 2);
    scratch_expect(&both->scratch, "validation_steps.csv",
                   "prefill_tokens_from,decode_seqs_from,simulated_steps,measured_steps,"
                   "simulated_mean_s,measured_mean_s,error_s,relative_error\n"
                   "0,1,3,2,0.002,0.003,-0.001,-0.333333333\n"
                   "32,0,0,2,,0.006,,\n"
                   "64,0,1,0,0.01,,,\n");
    scratch_remove(&dirs[SIMULATED]);
    scratch_remove(&dirs[MEASURED]);
    free(csv);
    free_both(both);
}

/* ---- distances ---- */

Test(distance, textbook)
{
    /* Of four values two lie below all others: the distribution functions are half apart. */
    static const int64_t a[] = {1, 2, 5, 6}, b[] = {5, 6, 7, 8};
    cr_expect_eq(distance_ks(a, b, 4), 0.5);
    cr_expect_eq(distance_wasserstein(a, b, 4), (4 + 4 + 2 + 2) / 4.0);
    static const int64_t same[] = {3, 3, 3}, tied[] = {3, 3, 9};
    cr_expect_float_eq(distance_ks(same, tied, 3), 1 / 3.0, 1e-15);
    cr_expect_eq(distance_ks(a, a, 4), 0);
}

/* ---- figures ---- */

Test(figures, draw_every_kind)
{
    struct both *both = make_both();
    struct ifl_error error;
    const struct ifl_drawing drawing = {
        .out_dir = both->scratch.dir, .script_dir = getenv("INFLIGHT_SCRIPTS"), .columns = 2};
    free(validate(both));
    for (const char *const *figure = ifl_validation_figures; *figure; figure++) {
        char name[64];
        const int rc = ifl_figure(&drawing, *figure, *figure, &error);
        if (rc < 0 && strstr(error.text, "gnuplot not found"))
            break;
        cr_assert_eq(rc, 0, "%s", error.text);
        snprintf(name, sizeof name, "%s.svg", *figure);
        char *svg = scratch_read(&both->scratch, name);
        cr_assert_not_null(svg);
        cr_expect(strstr(svg, "</svg>"), "%s is cut short", name);
        free(svg);
    }
    free_both(both);
}
