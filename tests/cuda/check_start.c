/* What an engine does before its first step, on the fake device: the first steps take no longer
 * than later ones, the fastest algorithms are taken, graphs have the merges that they need, each
 * switch turns its feature off, and devices that cannot be used are refused with one line. */
#include <math.h>
#include <string.h>

#include <driver_types.h>

#include "cuda/wait.h"
#include "driver.h"
#include "fake_queue.h"
#include "must.h"
#include "verdict.h"

enum { VOCAB = 40, LONG = 420, MOST_SEQS = 6 };

static struct driver driver;
static const struct ifl_engine_options sound = {
    .model = {.n_layers = 2,
              .d_model = 64,
              .n_q_heads = 2,
              .n_kv_heads = 1,
              .d_head = 8,
              .d_ffn = 256,
              .n_vocab = VOCAB},
    .seed = 4,
    .block_tokens = 16,
    .n_blocks = 256,
    .n_host_blocks = 8,
    .max_tokens = 512,
    .max_step_tokens = 512,
    .max_step_seqs = MOST_SEQS,
};
static int32_t tokens[512];
static uint32_t tables[MOST_SEQS][32];

static void open_without(uint32_t without)
{
    struct ifl_engine_options options = sound;
    options.without = without;
    for (int32_t i = 0; i < 512; i++)
        tokens[i] = i * 31 % VOCAB;
    for (uint32_t i = 0; i < MOST_SEQS * 32; i++)
        tables[i / 32][i % 32] = i * 37 % 256;
    must(&driver, driver_open(&driver, &ifl_engine_v1, &options));
}

/* Device time of a step; driver_step clears the step, so it is asked for by another way. */
static int64_t step_ns(struct driven *seqs, const int32_t *n_new, int32_t n, float *logits)
{
    static int64_t ns;
    driver.device_ns = &ns;
    must(&driver, driver_step(&driver, seqs, n_new, n, logits));
    return ns;
}

/* ---- first steps ---- */

static void first_steps_wait_for_nothing(void)
{
    static const int32_t one[MOST_SEQS] = {1, 1, 1, 1, 1, 1};
    int n_slow = 0;
    open_without(0);
    for (int32_t n = 1; n <= MOST_SEQS; n++) {
        struct driven seqs[MOST_SEQS];
        for (int32_t s = 0; s < n; s++)
            seqs[s] = (struct driven){tokens, 0, tables[s]};
        const int64_t first_ns = step_ns(seqs, one, n, NULL);
        n_slow += first_ns != step_ns(seqs, one, n, NULL);
    }
    verdict(n_slow == 0, "the first decodes of %d batch sizes take as long as the next, %d longer",
            MOST_SEQS, n_slow);
    n_slow = 0;
    for (int32_t n_new = 2; n_new <= 512; n_new = n_new * 3 / 2 + 1) {
        struct driven seq = {tokens, 0, tables[0]};
        const int64_t first_ns = step_ns(&seq, &n_new, 1, NULL);
        seq.n_computed = 0;
        n_slow += first_ns != step_ns(&seq, &n_new, 1, NULL);
    }
    verdict(n_slow == 0, "the first prompts of 14 lengths take as long as the next, %d longer",
            n_slow);
    driver_close(&driver);
}

/* ---- algorithms ---- */

static int64_t decode_ns(uint32_t without)
{
    const int32_t one = 1;
    struct driven seq = {tokens, 0, tables[0]};
    open_without(without);
    const int64_t ns = step_ns(&seq, &one, 1, NULL);
    driver_close(&driver);
    return ns;
}

static void the_fastest_algorithm_is_taken(void)
{
    const int64_t only_ns = decode_ns(0);
    fake_n_algorithms = 3; /* the last is as fast as the only one */
    const int64_t timed_ns = decode_ns(0), first_ns = decode_ns(IFL_WITHOUT_TIMED_ALGORITHMS);
    fake_n_algorithms = 1;
    verdict(timed_ns == only_ns && first_ns > only_ns,
            "of three algorithms the fastest is taken: %lld ns, the first takes %lld",
            (long long)timed_ns, (long long)first_ns);
}

/* ---- merges ---- */

/* Logits of the last of n tokens, by prefill, and by a decode behind the others. */
static double decode_error(int32_t n, int *n_merges)
{
    static float whole[VOCAB], decoded[VOCAB];
    const int32_t before = n - 1, one = 1;
    struct driven seq = {tokens, 0, tables[0]}, other = {tokens, 0, tables[1]};
    step_ns(&seq, &n, 1, whole);
    step_ns(&other, &before, 1, NULL);
    const int merged_before = fake_n_merges;
    step_ns(&other, &one, 1, decoded);
    *n_merges = fake_n_merges - merged_before;
    return relative_error(decoded, whole, VOCAB);
}

static void merges_come_and_go(void)
{
    int n_short, n_long, n_again;
    open_without(0);
    const double short_error = decode_error(20, &n_short), long_error = decode_error(LONG, &n_long),
                 again_error = decode_error(30, &n_again);
    verdict(short_error < 1e-2 && n_short == 0 && again_error < 1e-2 && n_again == 0,
            "a short context: %d merges, error %.1e", n_short, short_error);
    verdict(long_error < 1e-2 && n_long == sound.model.n_layers,
            "a long context, from a graph captured before: %d merges, error %.1e", n_long,
            long_error);
    driver_close(&driver);
    fake_captures_no_merge = true;
    open_without(0);
    const double planted = decode_error(LONG, &n_long);
    fake_captures_no_merge = false;
    verdict(!(planted < 1e-2), "a graph without the merge is seen: error %.1e", planted);
    driver_close(&driver);
}

/* ---- switches ---- */

static void swap_three(void)
{
    static const struct ifl_copy outs[] = {{3, 1}, {9, 4}, {20, 6}};
    driver.step = (struct ifl_engine_step){.outs = outs, .n_outs = 3};
    must(&driver, driver_step(&driver, NULL, NULL, 0, NULL));
}

static void each_switch_works(void)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } switches[] = {{"dependent launch", IFL_WITHOUT_DEPENDENT_LAUNCH},
                    {"graphs", IFL_WITHOUT_GRAPHS},
                    {"batched copies", IFL_WITHOUT_BATCHED_COPIES},
                    {"timed algorithms", IFL_WITHOUT_TIMED_ALGORITHMS},
                    {"all four", 15}};
    int ignored;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        const bool graphs = !(switches[i].bit & IFL_WITHOUT_GRAPHS);
        const bool batches = !(switches[i].bit & IFL_WITHOUT_BATCHED_COPIES);
        open_without(switches[i].bit);
        fake_n_graphs = fake_n_batches = 0;
        const double error = fmax(decode_error(20, &ignored), decode_error(LONG, &ignored));
        swap_three();
        verdict(error < 1e-2 && (fake_n_graphs > 0) == graphs && (fake_n_batches > 0) == batches,
                "without %s: %d graphs launched, %d batches copied, error %.1e", switches[i].name,
                fake_n_graphs, fake_n_batches, error);
        driver_close(&driver);
    }
}

/* ---- devices that cannot be used ---- */

static void expect_refused(int code, const char *reason)
{
    const int rc = driver_open(&driver, &ifl_engine_v1, &sound);
    verdict(rc == code && strstr(driver.error.text, reason) && !strchr(driver.error.text, '\n'),
            "refused: %s", driver.error.text);
    if (rc == 0)
        driver_close(&driver);
}

static void devices_are_refused(void)
{
    const int driver_before = fake_driver;
    fake_driver = 12040;
    expect_refused(IFL_E_DEVICE, "the driver supports CUDA 12.4, this build needs 1");
    fake_driver = 0; /* no driver at all */
    expect_refused(IFL_E_DEVICE, "no CUDA device: ");
    fake_driver = driver_before;
    fake_mode = cudaComputeModeProhibited;
    expect_refused(IFL_E_DEVICE, "is in compute mode prohibited, expected default");
    fake_mode = cudaComputeModeDefault;
    fake_is_taken = true;
    expect_refused(IFL_E_DEVICE, "is busy or unavailable: ");
    fake_mode = cudaComputeModeExclusiveProcess;
    expect_refused(IFL_E_DEVICE, "is in exclusive mode and another process has it: ");
    fake_is_taken = false;
    fake_mode = cudaComputeModeDefault;
    fake_capability = 7;
    expect_refused(IFL_E_DEVICE, "compute capability 7.0, executor cuda expects 8.0 or more");
    fake_capability = 9;
}

/* K/V that leaves less than 0.5 GiB of the 3 that are free. */
static void memory_is_left_for_the_driver(void)
{
    struct ifl_engine_options options = sound;
    options.block_tokens = 256;
    options.n_blocks = 23000; /* of 128 KiB */
    const int rc = driver_open(&driver, &ifl_engine_v1, &options);
    verdict(rc == IFL_E_NOMEM && strstr(driver.error.text, "leaves 0.50 to the driver"),
            "refused: %s", driver.error.text);
    if (rc == 0)
        driver_close(&driver);
}

static void a_hung_device_is_given_up(void)
{
    const int32_t one = 1;
    struct driven seq = {tokens, 0, tables[0]};
    open_without(0);
    wait_patience_s = 0.05;
    fake_hangs = true;
    const int rc = driver_step(&driver, &seq, &one, 1, NULL);
    verdict(rc == IFL_E_DEVICE && strstr(driver.error.text, "the device has not answered for"),
            "a step: %s", driver.error.text);
    driver_close(&driver); /* does not wait either */
    fake_hangs = false;
    verdict(true, "and the engine closes");
}

int main(void)
{
    first_steps_wait_for_nothing();
    the_fastest_algorithm_is_taken();
    merges_come_and_go();
    each_switch_works();
    devices_are_refused();
    memory_is_left_for_the_driver();
    a_hung_device_is_given_up();
    return verdicts_end();
}
