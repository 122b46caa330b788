/* Measured over predicted, gathered into the factors of cost/correction.h. */
#include "fit/fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/new_file.h"
#include "cost/correction.h"

/* The place of a row in the corrections; false if its operation has none. */
static bool locate(const struct fit_sample *sample, struct correction *of)
{
    *of = (struct correction){.n = sample->n, .k = sample->k, .size = sample->m};
    switch (sample->op) {
    case FIT_GEMM:
        of->op = CORRECT_GEMM;
        return true;
    case FIT_GEMM_FP8:
        of->op = CORRECT_GEMM_FP8;
        return true;
    case FIT_PREFILL:
        *of =
            (struct correction){.op = CORRECT_PREFILL, .size = sample->n_seqs * sample->new_tokens};
        return true;
    case FIT_DECODE:
        *of = (struct correction){.op = CORRECT_DECODE,
                                  .size = sample->n_seqs * (sample->context_tokens + 1)};
        return true;
    case FIT_ELEMENTWISE:
        *of = (struct correction){.op = CORRECT_ELEMENTWISE,
                                  .size = sample->bytes /
                                          (sample->n_launches > 0 ? sample->n_launches : 1)};
        return true;
    default:
        return false;
    }
}

static int by_place(const void *a, const void *b)
{
    const struct correction *x = a, *y = b;
    const int order = correction_order(a, b);
    return order ? order : (x->factor > y->factor) - (x->factor < y->factor);
}

static size_t gather(const struct fit_data *data, const struct fit_verdict *verdict,
                     struct correction *logs)
{
    size_t n = 0;
    for (size_t i = 0; i < data->n; i++)
        if (verdict->predicted_s[i] > 0 && locate(&data->samples[i], &logs[n]))
            logs[n++].factor = log(data->samples[i].measured_s / verdict->predicted_s[i]);
    qsort(logs, n, sizeof *logs, by_place);
    return n;
}

static bool same_place(const struct correction *a, const struct correction *b)
{
    return a->op == b->op && a->n == b->n && a->k == b->k && a->size == b->size;
}

/* Replaces the entries of equal places by their mean, in the same array. */
static size_t average(struct correction *logs, size_t n)
{
    size_t n_means = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && same_place(&logs[i], &logs[end]); end++)
            sum += logs[end].factor;
        logs[n_means] = logs[i];
        logs[n_means++].factor = exp(sum / (double)(end - i));
    }
    return n_means;
}

static void put(FILE *out, const struct correction *of)
{
    fprintf(out, "%s,", correction_op_name((enum correction_op)of->op));
    if (of->n > 0)
        fprintf(out, "%.0f,%.0f,", of->n, of->k);
    else
        fputs(",,", out);
    fprintf(out, "%.15g,%.6g\n", of->size, of->factor);
}

static int write(const struct correction *means, size_t n, const char *path,
                 struct ifl_error *error)
{
    struct new_file file;
    if (new_file_open(&file, path, error))
        return error->code;
    fputs("op,n,k,size,factor\n", file.out);
    for (size_t i = 0; i < n; i++)
        put(file.out, &means[i]);
    return new_file_close(&file, 0, error);
}

int fit_write_corrections(const struct fit_data *data, const struct fit_verdict *verdict,
                          const char *path, struct ifl_error *error)
{
    struct correction *logs = malloc((data->n + 1) * sizeof *logs);
    if (!logs)
        return ifl_fail_nomem(error);
    const size_t n = average(logs, gather(data, verdict, logs));
    int code = 0;
    if (n == 0)
        code = ifl_fail(error, IFL_E_INPUT,
                        "--corrections: no row of gemm, gemm_fp8, prefill, decode or elementwise, "
                        "expected some");
    else if (n > MAX_CORRECTIONS)
        code = ifl_fail(error, IFL_E_INPUT,
                        "--corrections: %zu different products and sizes, expected at most %d; "
                        "leave some out with --where",
                        n, MAX_CORRECTIONS);
    else
        code = write(logs, n, path, error);
    free(logs);
    return code;
}
