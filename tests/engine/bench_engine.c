/* The CPU engine against its own ceilings, on one thread, in one run: a prompt of 512 tokens
 * against OpenBLAS on the same matrix shapes, decoding one sequence against copying memory. Each
 * round measures both sides one after the other, in processor time, since the speed of a shared
 * machine changes from one second to the next; prints the medians. */
#include <cblas.h>
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"
#include "weights.h"

enum { N_PROMPT = 512, N_ROUNDS = 9, N_STEPS = 5 };

/* 100 million weights. */
static const struct ifl_engine_options options = {
    .model = {.n_layers = 12,
              .d_model = 768,
              .n_q_heads = 12,
              .n_kv_heads = 12,
              .d_head = 64,
              .d_ffn = 2048,
              .n_vocab = 20000,
              .tied_embeddings = true},
    .seed = 1,
    .n_threads = 1,
    .block_tokens = 16,
    .n_blocks = 64,
    .max_tokens = 1024,
};

static struct driver driver;
static int32_t tokens[1024];
static uint32_t blocks[64];

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double step_s(int32_t n_computed, int32_t n_new)
{
    struct driven seq = {tokens, n_computed, blocks};
    const double start_s = now_s();
    if (driver_step(&driver, &seq, &n_new, 1, NULL) < 0)
        abort();
    return now_s() - start_s;
}

/* ---- ceilings ---- */

static float *numbers(size_t n)
{
    float *of = malloc(n * sizeof *of);
    for (size_t i = 0; of && i < n; i++)
        of[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    return of;
}

static double gemm_s(int32_t m, int32_t n, int32_t k)
{
    float *a = numbers((size_t)m * (size_t)k), *b = numbers((size_t)n * (size_t)k);
    float *c = numbers((size_t)m * (size_t)n);
    const double start_s = now_s();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, 0, c, n);
    const double lasted_s = now_s() - start_s;
    free(a);
    free(b);
    free(c);
    return lasted_s;
}

static double all_gemms_s(void)
{
    const struct ifl_engine_model *m = &options.model;
    const int32_t q = m->n_q_heads * m->d_head, kv = m->n_kv_heads * m->d_head;
    return m->n_layers *
               (gemm_s(N_PROMPT, q + 2 * kv, m->d_model) + gemm_s(N_PROMPT, m->d_model, q) +
                gemm_s(N_PROMPT, 2 * m->d_ffn, m->d_model) +
                gemm_s(N_PROMPT, m->d_model, m->d_ffn)) +
           gemm_s(1, m->n_vocab, m->d_model);
}

/* Bytes read and written a second, by memcpy over more than any cache holds. */
static double copy_bytes_per_s(char *to, const char *from, size_t n_bytes)
{
    const double start_s = now_s();
    memcpy(to, from, n_bytes);
    return 2 * (double)n_bytes / (now_s() - start_s);
}

/* ---- the comparison ---- */

static void report_prefill(void)
{
    double step[N_ROUNDS], gemms[N_ROUNDS], share[N_ROUNDS];
    step_s(0, N_PROMPT);
    for (int round = 0; round < N_ROUNDS; round++) {
        step[round] = step_s(0, N_PROMPT);
        gemms[round] = all_gemms_s();
        share[round] = gemms[round] / step[round];
    }
    printf("prefill of %d tokens %8.1f ms, its GEMMs alone %8.1f ms: %5.1f %% of OpenBLAS\n",
           N_PROMPT, 1e3 * gsl_stats_median(step, 1, N_ROUNDS),
           1e3 * gsl_stats_median(gemms, 1, N_ROUNDS), 100 * gsl_stats_median(share, 1, N_ROUNDS));
}

static void report_decode(void)
{
    const double bytes = (double)weights_count(&options.model) * sizeof(float);
    const size_t n_bytes = (size_t)256 << 20;
    char *from = malloc(n_bytes), *to = malloc(n_bytes);
    double rate[N_ROUNDS], copy[N_ROUNDS], share[N_ROUNDS];
    if (!from || !to)
        abort();
    memset(from, 1, n_bytes);
    copy_bytes_per_s(to, from, n_bytes); /* touches the pages before the measurement */
    for (int round = 0; round < N_ROUNDS; round++) {
        double lasted_s = 0;
        for (int i = 0; i < N_STEPS; i++)
            lasted_s += step_s(N_PROMPT, 1);
        rate[round] = N_STEPS * bytes / lasted_s;
        copy[round] = copy_bytes_per_s(to, from, n_bytes);
        share[round] = rate[round] / copy[round];
    }
    free(from);
    free(to);
    const double rate_median = gsl_stats_median(rate, 1, N_ROUNDS);
    printf("decode step          %8.2f ms, %6.2f of %6.2f GB/s: %5.1f %% of copying\n",
           1e3 * bytes / rate_median, 1e-9 * rate_median,
           1e-9 * gsl_stats_median(copy, 1, N_ROUNDS), 100 * gsl_stats_median(share, 1, N_ROUNDS));
}

int main(void)
{
    for (uint32_t i = 0; i < 64; i++)
        blocks[i] = i * 37 % 64;
    for (int32_t i = 0; i < 1024; i++)
        tokens[i] = i * 7919 % 20000;
    if (driver_open(&driver, &ifl_engine_v1, &options) < 0)
        return fprintf(stderr, "%s\n", driver.error.text), 1;
    report_prefill();
    report_decode();
    driver_close(&driver);
    return 0;
}
