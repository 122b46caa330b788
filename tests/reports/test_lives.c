/* Requests that leave in any order: their rows, sums and quantiles are the same whether the
 * recorder keeps all of them to the end, or those alone that wait for an earlier one. */
#include "scratch.h"

#include <math.h>

#include "inflight/random.h"
#include "record/life_log.h"

enum { N = 9100, TOGETHER = 7 };

#define S 1000000000LL

static struct ifl_error error;
static struct ifl_request_record record[N];
static uint32_t ends[N]; /* places in `record`, by their ends */

static uint64_t draw(uint64_t i, uint64_t n)
{
    return ifl_draw(5, IFL_DRAW_POLICY, i, n);
}

/* Several arrive at a time, with identities that fall there. Some are never served. */
static void make_records(void)
{
    for (uint64_t i = 0; i < N; i++) {
        const int64_t arrival_ns = (int64_t)(i / TOGETHER) * S / 10;
        const int64_t queue_ns = (int64_t)(draw(i, 0) % (uint64_t)S),
                      first_ns = (int64_t)(draw(i, 1) % (uint64_t)S),
                      rest_ns = (int64_t)(draw(i, 2) % (uint64_t)(50 * S));
        const bool served = draw(i, 3) % 50 > 0, rare = draw(i, 4) % 20 == 0;
        record[i] = (struct ifl_request_record){
            .request_id = i / TOGETHER * TOGETHER + (TOGETHER - 1 - i % TOGETHER),
            .serial = i,
            .arrival_ns = arrival_ns,
            .first_scheduled_ns = served ? arrival_ns + queue_ns : IFL_NEVER,
            .first_token_ns = served ? arrival_ns + queue_ns + first_ns : IFL_NEVER,
            .finish_ns = served ? arrival_ns + queue_ns + first_ns + rest_ns : IFL_NEVER,
            .max_itl_ns = -1,
            .stalled_ns = rare ? rest_ns / 3 : 0,
            .ttft_slo_ns = rare ? S : IFL_NEVER,
            .tpot_slo_ns = IFL_NEVER,
            .prompt_tokens = 1 + (int32_t)(i % 100),
            .output_tokens = served ? 1 + (int32_t)(i % 37) : 0,
            .preemptions = rare,
            .status = served ? IFL_FINISHED : IFL_REJECTED,
        };
    }
}

/* Each request ends at most `apart` places before or behind its own. */
static void shuffle_ends(uint32_t apart)
{
    for (uint32_t i = 0; i < N; i++)
        ends[i] = i;
    for (uint32_t i = 0; i + apart < N; i += apart)
        for (uint32_t k = apart - 1; k > 0; k--) {
            const uint32_t j = (uint32_t)(draw(i + k, 9) % (k + 1));
            const uint32_t was = ends[i + k];
            ends[i + k] = ends[i + j];
            ends[i + j] = was;
        }
}

static struct ifl_summary run(const char *requests, const char *quantiles, bool numbered,
                              int64_t from_ns)
{
    const struct ifl_recorder_options options = {.requests_path = requests,
                                                 .quantiles_path = quantiles,
                                                 .numbered = numbered,
                                                 .from_ns = from_ns,
                                                 .n_requests = N};
    struct ifl_recorder *recorder = ifl_recorder_create(&options, &error);
    struct ifl_summary summary;
    cr_assert_not_null(recorder, "%s", error.text);
    for (size_t i = 0; i < N; i++)
        cr_assert_eq(ifl_record_request(recorder, &record[ends[i]], &error), IFL_OK);
    cr_assert_eq(ifl_recorder_finish(recorder, &summary, &error), IFL_OK);
    ifl_recorder_destroy(recorder);
    return summary;
}

static void expect_same(const struct scratch *scratch, const char *one, const char *other)
{
    char *a = scratch_read(scratch, one), *b = scratch_read(scratch, other);
    cr_expect(strlen(a) > 1000 && strcmp(a, b) == 0, "%s and %s differ", one, other);
    free(a);
    free(b);
}

Test(lives, leave_in_order_of_arrival)
{
    const struct scratch scratch = scratch_make();
    static const uint32_t apart[] = {1, 50, 6000, N - 1};
    make_records();
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        for (int64_t from_ns = 0; from_ns < 20 * S; from_ns += 10 * S) {
            shuffle_ends(apart[i]);
            const struct ifl_summary kept =
                                         run(scratch_path(&scratch, "kept.csv"),
                                             scratch_path(&scratch, "kept-q.csv"), false, from_ns),
                                     passed =
                                         run(scratch_path(&scratch, "passed.csv"),
                                             scratch_path(&scratch, "passed-q.csv"), true, from_ns);
            expect_same(&scratch, "kept.csv", "passed.csv");
            expect_same(&scratch, "kept-q.csv", "passed-q.csv");
            cr_expect_eq(kept.n_finished, passed.n_finished);
            cr_expect_eq(kept.n_warmup, passed.n_warmup);
            cr_expect_eq(kept.warmup_s, passed.warmup_s);
            cr_expect_eq(kept.goodput_rps, passed.goodput_rps);
        }
    scratch_remove(&scratch);
}

/* The rows themselves are in order: the n-th one names the n-th identity. */
Test(lives, rows_are_sorted)
{
    const struct scratch scratch = scratch_make();
    make_records();
    shuffle_ends(50);
    run(scratch_path(&scratch, "rows.csv"), NULL, true, 0);
    char *text = scratch_read(&scratch, "rows.csv"), *at = text;
    for (unsigned long long i = 0, id; i < N; i++) {
        at = strchr(at, '\n') + 1;
        cr_assert_eq(sscanf(at, "0,%llu,", &id), 1);
        cr_assert_eq(id, i);
    }
    free(text);
    scratch_remove(&scratch);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of many samples, and of so few that all are kept. */
Test(lives, quantiles_are_those_of_all_samples)
{
    static int64_t ttft_ns[N];
    make_records();
    shuffle_ends(50);
    const struct ifl_summary summary = run(NULL, NULL, true, 0);
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        if (record[i].status == IFL_FINISHED)
            ttft_ns[n++] = record[i].first_token_ns - record[i].arrival_ns;
    qsort(ttft_ns, n, sizeof *ttft_ns, compare);
    const double place = 0.99 * (double)(n - 1), low = (double)ttft_ns[(size_t)place],
                 high = (double)ttft_ns[(size_t)place + 1];
    cr_expect_float_eq(summary.ttft_s.p99, (low + (high - low) * (place - floor(place))) * 1e-9,
                       1e-12);
}

/* At the ends of what half an entry holds, and beyond. */
Test(life_log, gives_back_small_and_large_numbers)
{
    const int64_t spans_ns[] = {0, 1, UINT32_MAX, UINT32_MAX + INT64_C(1), -1};
    const int32_t counts[] = {0, UINT16_MAX, UINT16_MAX + 1, INT32_MAX, -1};
    struct life_log log;
    struct life_reader reader;
    cr_assert_eq(life_log_open(&log, NULL, &error), IFL_OK);
    struct life lives[625];
    for (int i = 0; i < 625; i++) {
        const int64_t arrival_ns = INT64_C(1) << (i % 50),
                      scheduled_ns = arrival_ns + spans_ns[i % 5];
        lives[i] = (struct life){
            .arrival_ns = arrival_ns,
            .first_scheduled_ns = i % 7 ? scheduled_ns : IFL_NEVER,
            .first_token_ns = i % 11 && i % 7 ? scheduled_ns + spans_ns[i / 5 % 5] : IFL_NEVER,
            .end_ns = i % 13 ? scheduled_ns + INT64_MAX / 2 : IFL_NEVER,
            .prompt_tokens = counts[i / 5 % 5],
            .output_tokens = counts[i / 25 % 5],
            .replica = counts[i / 125],
            .status = IFL_FINISHED,
            .rare = &life_has_none};
        cr_assert_eq(life_log_add(&log, &lives[i], &error), IFL_OK);
    }
    cr_expect_lt(log.n_bytes, 625 * 56, "some are brief");
    cr_assert_eq(life_reader_open(&reader, &log, &error), IFL_OK);
    for (int i = 0; i < 625; i++) {
        cr_assert_eq(life_reader_next(&reader, &error), 1);
        cr_assert_eq(reader.life.arrival_ns, lives[i].arrival_ns);
        cr_assert_eq(reader.life.first_scheduled_ns, lives[i].first_scheduled_ns, "%d", i);
        cr_assert_eq(reader.life.first_token_ns, lives[i].first_token_ns, "%d", i);
        cr_assert_eq(reader.life.end_ns, lives[i].end_ns);
        cr_assert_eq(reader.life.prompt_tokens, lives[i].prompt_tokens);
        cr_assert_eq(reader.life.output_tokens, lives[i].output_tokens);
        cr_assert_eq(reader.life.replica, lives[i].replica);
        cr_assert_eq(reader.life.rare, &life_has_none);
    }
    cr_expect_eq(life_reader_next(&reader, &error), 0);
    life_reader_close(&reader);
    life_log_close(&log);
}

Test(life_log, a_file_gives_back_what_memory_cannot_hold)
{
    const struct scratch scratch = scratch_make();
    const struct rare rare = {.stalled_ns = 5, .ttft_slo_ns = IFL_NEVER, .preemptions = 2};
    struct life_log log;
    struct life_reader reader;
    cr_assert_eq(life_log_open(&log, scratch_path(&scratch, "requests.csv"), &error), IFL_OK);
    log.most_bytes = 1 << 14;
    for (int64_t i = 0; i < N; i++) {
        const struct life life = {.arrival_ns = i,
                                  .end_ns = 2 * i,
                                  .prompt_tokens = (int32_t)i,
                                  .replica = (int32_t)(i % 5) - 1,
                                  .status = IFL_ABORTED,
                                  .rare = i % 3 ? &life_has_none : &rare};
        cr_assert_eq(life_log_add(&log, &life, &error), IFL_OK);
    }
    cr_expect(log.in_file > 0 && log.n_bytes > 0);
    for (int pass = 0; pass < 2; pass++) {
        cr_assert_eq(life_reader_open(&reader, &log, &error), IFL_OK);
        for (int64_t i = 0; i < N; i++) {
            cr_assert_eq(life_reader_next(&reader, &error), 1);
            cr_assert(reader.life.arrival_ns == i && reader.life.end_ns == 2 * i &&
                      reader.life.prompt_tokens == i && reader.life.replica == i % 5 - 1 &&
                      reader.life.status == IFL_ABORTED);
            cr_assert_eq(reader.life.rare->stalled_ns, i % 3 ? 0 : 5);
            cr_assert_eq(reader.life.rare->preemptions, 0); /* no summary asks for them */
        }
        cr_expect_eq(life_reader_next(&reader, &error), 0);
        life_reader_close(&reader);
    }
    life_log_close(&log);
    cr_expect_eq(rmdir(scratch.dir), 0, "the file had no name");
}
