/* On the fake device each allocation of an opening fails once, and each call of CUDA and cuBLAS of
 * an opening and some steps. Each failure gives one line and leaks nothing (LeakSanitizer is
 * linked).
 *
 * The linker wraps the allocator (--wrap) for inflight's objects, not for libraries. */
#include <linux/mempolicy.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "driver.h"
#include "fake_queue.h"
#include "verdict.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
long __wrap_syscall(long number, ...);

static long n_allocations, failing; /* number of the allocation that fails, 0: none */

void *__wrap_malloc(size_t n)
{
    return ++n_allocations == failing ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return ++n_allocations == failing ? NULL : __real_calloc(n, size);
}

static struct driver driver;
static const struct ifl_engine_options options = {
    .model = {.n_layers = 1,
              .d_model = 16,
              .n_q_heads = 2,
              .n_kv_heads = 1,
              .d_head = 8,
              .d_ffn = 16,
              .n_vocab = 16},
    .n_blocks = 8,
    .n_host_blocks = 2,
    .max_tokens = 16,
    .max_step_tokens = 16,
    .max_step_seqs = 2,
    .bench_bytes = 1 << 14,
};

/* Exports a block and imports it elsewhere. */
static int carry(void)
{
    char bytes[1 << 12];
    ifl_require(ifl_engine_v1.block_bytes(driver.self) <= sizeof bytes);
    const int rc = ifl_engine_v1.read_block(driver.self, IFL_DEVICE_POOL, 3, bytes, &driver.error);
    return rc < 0
               ? rc
               : ifl_engine_v1.write_block(driver.self, IFL_DEVICE_POOL, 1, bytes, &driver.error);
}

/* A prompt; a decode that is captured, and replayed; every kind of block move. */
static int steps(void)
{
    static int32_t tokens[16] = {1, 2, 3, 4};
    static const uint32_t table[4] = {3, 1, 2, 0};
    static const struct ifl_copy out = {5, 1}, in = {1, 6}, copy = {6, 7};
    static const uint32_t spoilt = 4;
    struct driven seq = {tokens, 0, table};
    int rc = 0;
    for (int32_t n_new = 3; rc == 0 && seq.n_computed < 6; n_new = 1) {
        driver.step = (struct ifl_engine_step){.outs = &out,
                                               .ins = &in,
                                               .copies = &copy,
                                               .spoilt = &spoilt,
                                               .n_outs = 1,
                                               .n_ins = 1,
                                               .n_copies = 1,
                                               .n_spoilt = 1};
        rc = driver_step(&driver, &seq, &n_new, 1, NULL);
    }
    return rc == 0 ? carry() : rc;
}

/* On a prompt and a decode. */
static int measure(enum ifl_engine_op_kind kind, int64_t *ns)
{
    static const int32_t ids[4] = {1, 2, 3, 4}, positions[4] = {0, 1, 2, 2}, tokens[3] = {0, 3, 4},
                         tables[3] = {0, 1, 2};
    static const uint32_t table[2] = {3, 1};
    static const int32_t n_rows[2] = {1, 1};
    int32_t sampled[2];
    const struct ifl_engine_step step = {.n_seqs = 2,
                                         .n_tokens = 4,
                                         .token_ids = ids,
                                         .positions = positions,
                                         .first_token = tokens,
                                         .first_block = tables,
                                         .block_ids = table,
                                         .n_rows = n_rows,
                                         .sampled = sampled};
    struct ifl_engine_op op = {
        .kind = kind, .m = 3, .n = 16, .k = 8, .n_bytes = 64, .step = &step, .round = 5};
    const int rc = ifl_engine_v1.measure(driver.self, &op, &driver.error);
    *ns = op.ns;
    return rc;
}

static int measurements(void)
{
    struct ifl_engine_machine machine;
    int64_t ns;
    int rc = ifl_engine_v1.describe(driver.self, &machine, &driver.error);
    for (int kind = IFL_OP_COPY; rc == 0 && kind <= IFL_OP_ATTENTION; kind++)
        rc = measure((enum ifl_engine_op_kind)kind, &ns);
    return rc;
}

static bool is_one_line(const struct ifl_error *error)
{
    return error->code < 0 && *error->text && !strchr(error->text, '\n');
}

static void fail_each_allocation(void)
{
    long n_failures = 0, n_silent = 0;
    for (failing = 1;; failing++) {
        n_allocations = 0;
        if (driver_open(&driver, &ifl_engine_v1, &options) == 0)
            break;
        n_failures++;
        n_silent += !is_one_line(&driver.error) || driver.error.code != IFL_E_NOMEM;
    }
    failing = 0;
    verdict(n_failures > 10 && n_silent == 0, "no memory at %ld places", n_failures);
    driver_close(&driver);
}

static void fail_each_call(void)
{
    long n_failures = 0, n_silent = 0;
    for (long call = 1;; call++) {
        fake_fail_call(call);
        int rc = driver_open(&driver, &ifl_engine_v1, &options);
        if (rc == 0)
            rc = steps();
        if (rc == 0)
            rc = measurements();
        driver_close(&driver);
        if (rc == 0)
            break;
        n_failures++;
        n_silent += !is_one_line(&driver.error);
    }
    fake_fail_call(0);
    verdict(n_failures > 100 && n_silent == 0, "each of %ld calls fails once", n_failures);
}

/* ---- times of operations ---- */

static void expect_time(enum ifl_engine_op_kind kind, double us, const char *what)
{
    int64_t ns = 0;
    int rc = measure(kind, &ns); /* loads modules, as the first run of a calibration */
    if (rc == 0)
        rc = measure(kind, &ns);
    verdict(rc == 0 && fabs((double)ns - us * 1e3) < 2, "%s takes %lld ns, expected %.0f", what,
            (long long)ns, us * 1e3);
}

/* The measured time is that of the kernels, without the calls that launch them. */
static void measure_the_device_alone(void)
{
    const int rc = driver_open(&driver, &ifl_engine_v1, &options);
    verdict(rc == 0, "opened to measure");
    if (rc < 0)
        return;
    expect_time(IFL_OP_NORM, FAKE_KERNEL_US, "a norm");
    expect_time(IFL_OP_ATTENTION, 2 * FAKE_KERNEL_US,
                "decode attention and prefill, without a merge of what is whole");
    expect_time(IFL_OP_GEMM, 2.0 * 4 * 16 * 8 / FAKE_FLOPS_PER_US, "a product of 3 rows, 4 made");
    driver_close(&driver);
}

/* ---- memory near the device ---- */

/* Linux's memory policy of this thread, and the nodes preferred while memory was pinned. */
static int mode;
static unsigned long preferred, pinned_near;
static bool is_refused;

long __wrap_syscall(long number, ...)
{
    va_list values;
    va_start(values, number);
    if (number == SYS_get_mempolicy)
        *va_arg(values, int *) = mode;
    if (number == SYS_set_mempolicy && !is_refused) {
        mode = va_arg(values, int);
        preferred = mode == MPOL_PREFERRED ? *va_arg(values, const unsigned long *) : 0;
    }
    va_end(values);
    return number == SYS_set_mempolicy && is_refused ? -1 : 0;
}

static void note_pinned(void)
{
    pinned_near |= preferred;
}

static void expect_pinned_near(unsigned long nodes, int node, int mode_before, const char *what)
{
    fake_node = node;
    fake_pins = note_pinned;
    mode = mode_before;
    pinned_near = 0;
    const int rc = driver_open(&driver, &ifl_engine_v1, &options);
    verdict(rc == 0 && pinned_near == nodes && mode == mode_before, "%s", what);
    driver_close(&driver);
    fake_node = -1;
    fake_pins = NULL;
}

static void pin_near_the_device(void)
{
    expect_pinned_near(1UL << 3, 3, MPOL_DEFAULT, "pinned on node 3, as before thereafter");
    expect_pinned_near(0, 3, MPOL_INTERLEAVE, "another library's policy is left alone");
    expect_pinned_near(0, -1, MPOL_DEFAULT, "a machine without nodes");
    is_refused = true;
    expect_pinned_near(0, 3, MPOL_DEFAULT, "a kernel that does not let us");
    is_refused = false;
}

/* Devices with tensor cores that are too old; the fake device reports any capability. */
static void refuse_old_devices(void)
{
    fake_capability = 7;
    const int rc = driver_open(&driver, &ifl_engine_v1, &options);
    verdict(rc == IFL_E_DEVICE && strstr(driver.error.text, "compute capability 7.0, executor"),
            "refused: %s", driver.error.text);
    if (rc == 0)
        driver_close(&driver);
    fake_capability = 9;
}

int main(void)
{
    refuse_old_devices();
    pin_near_the_device();
    measure_the_device_alone();
    fail_each_allocation();
    fail_each_call();
    return verdicts_end();
}
