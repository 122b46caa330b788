#include "fit/calibrate/bench.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "inflight/minmax.h"

enum { MIN_RUNS = 5, MAX_RUNS = 100 };
static const double patience_s = 0.33;

static struct timed timed_of(double seconds[], int n_runs)
{
    const size_t n = (size_t)n_runs;
    gsl_sort(seconds, 1, n);
    return (struct timed){n_runs, gsl_stats_median_from_sorted_data(seconds, 1, n), seconds[0],
                          gsl_stats_quantile_from_sorted_data(seconds, 1, n, 0.75) -
                              gsl_stats_quantile_from_sorted_data(seconds, 1, n, 0.25)};
}

int bench_time(struct bench *bench, bench_run_fn *run, void *context, struct timings *timings,
               struct ifl_error *error)
{
    double device_s[MAX_RUNS], wall_s[MAX_RUNS], host_s[MAX_RUNS], sum_s = 0;
    const volatile sig_atomic_t *stop = bench->limits.stop;
    const int max_runs = ifl_min(bench->max_runs, MAX_RUNS);
    struct lasted lasted;
    int n = 0;
    int code = run(context, bench->round++, &lasted, error);
    while (!code && (n < MIN_RUNS || (n < max_runs && sum_s < patience_s))) {
        code = run(context, bench->round++, &lasted, error);
        device_s[n] = lasted.device_s;
        wall_s[n] = lasted.wall_s;
        host_s[n++] = lasted.wall_s - lasted.device_s;
        sum_s += lasted.device_s;
        if (stop && *stop)
            code = ifl_fail(error, IFL_E_INTERRUPTED, "interrupted");
    }
    if (!code)
        *timings =
            (struct timings){timed_of(device_s, n), timed_of(wall_s, n), timed_of(host_s, n)};
    return code;
}

/* ---- the sheet ---- */

static const char *const ceiling_names[N_CEILINGS] = {"", "copy", "gemm", "copy out", "copy in"};

void bench_write_head(const struct bench *bench)
{
    fputs("op,layers,d_model,q_heads,kv_heads,d_head,d_ffn,vocab,element_bytes,m,n,k,prefill_seqs,"
          "prefill_tokens,prefill_q_kv,prefill_q_q,max_prefill_kv,decode_seqs,decode_context,"
          "sampled,blocks,block_bytes,runs,median_s,min_s,spread_s,bytes,flops,share,ceiling\n",
          bench->out);
}

/* An empty cell where there is nothing. */
static void put(FILE *out, double value)
{
    if (value != 0)
        fprintf(out, "%.15g", value);
    fputc(',', out);
}

static void put_batch(FILE *out, const struct batch *batch)
{
    if (!batch) {
        fputs(",,,,,,,,", out);
        return;
    }
    const struct ifl_step_totals *t = &batch->totals;
    fprintf(out, "%d,%d,%lld,%lld,%d,%d,%lld,%d,", t->n_prefill_seqs, t->n_prefill_tokens,
            (long long)t->prefill_q_kv, (long long)t->prefill_q_q, t->max_prefill_kv,
            t->n_decode_seqs, (long long)t->decode_context, t->n_sampled);
}

void bench_write(const struct bench *bench, const struct measurement *of)
{
    const struct ifl_engine_model *m = &bench->limits.model;
    const double ceiling = bench->ceilings[of->of];
    const double work = of->of == CEILING_GEMM ? of->flops : of->bytes;
    FILE *out = bench->out;
    fprintf(out, "%s,%d,%d,%d,%d,%d,%d,%d,%d,", of->op, m->n_layers, m->d_model, m->n_q_heads,
            m->n_kv_heads, m->d_head, m->d_ffn, m->n_vocab, bench->machine.element_bytes);
    put(out, of->m);
    put(out, of->n);
    put(out, of->k);
    put_batch(out, of->batch);
    put(out, of->n_blocks);
    put(out, of->n_blocks > 0 ? (double)bench->engine->block_bytes(bench->self) : 0);
    fprintf(out, "%d,%.9f,%.9f,%.9f,", of->timed.n_runs, of->timed.median_s, of->timed.min_s,
            of->timed.spread_s);
    put(out, of->bytes);
    put(out, of->flops);
    if (ceiling > 0)
        fprintf(out, "%.4f", work / of->timed.median_s / ceiling);
    fprintf(out, ",%s\n", ceiling_names[of->of]);
}
