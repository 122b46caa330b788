#include "cli/model_files.h"

#include <math.h>
#include <string.h>

#include "inflight/report.h"

#include "base/data.h"
#include "base/new_file.h"
#include "base/outputs.h"
#include "cli/out_dir.h"
#include "config/config.h"

/* ---- model.csv: one number a row ---- */

static void put(FILE *out, const char *quantity, const char *part, double value, const char *unit)
{
    fprintf(out, "%s,%s,%.10g,%s\n", quantity, part, value, unit);
}

static void put_phase(FILE *out, const char *name, const struct portrait_phase *phase)
{
    char quantity[48];
    for (int i = 0; i < PASS_PARTS; i++) {
        snprintf(quantity, sizeof quantity, "%s_flops", name);
        put(out, quantity, phase->parts[i].name, phase->parts[i].flops, "FLOP");
        snprintf(quantity, sizeof quantity, "%s_bytes", name);
        put(out, quantity, phase->parts[i].name, phase->parts[i].bytes, "B");
    }
    put(out, name, "flops", phase->sum.flops, "FLOP");
    put(out, name, "bytes", phase->sum.bytes, "B");
    put(out, name, "intensity", phase->intensity, "FLOP/B");
    put(out, name, "attainable", phase->attainable_tflops, "TFLOP/s");
    put(out, name, "attained", phase->tflops, "TFLOP/s");
    put(out, name, "step", phase->step_s, "s");
    put(out, name, "step_bound", phase->bound_s, "s");
    put(out, name, "tokens", phase->tok_per_s, "tok/s");
    put(out, name, "price", phase->usd_per_million_tokens, "USD/Mtok");
}

static void write_model(const struct portrait *portrait, FILE *out)
{
    fprintf(out, "quantity,part,value,unit\n");
    put(out, "parameters", "all", (double)portrait->parameters, "");
    put(out, "weights", "rank", (double)portrait->weight_bytes, "B");
    put(out, "kv_per_token", "rank", (double)portrait->kv_bytes_per_token, "B");
    put(out, "training_flops", "all", portrait->training_flops, "FLOP");
    put(out, "forward_flops", "all", portrait->forward_flops, "FLOP");
    put(out, "ridge", "gpu", portrait->ridge_flops_per_byte, "FLOP/B");
    put(out, "kv_blocks", "rank", portrait->fits ? portrait->memory.n_blocks : 0, "blocks");
    put(out, "largest_batch", "all", (double)portrait->largest_batch, "seqs");
    put(out, "longest_context", "all", (double)portrait->longest_context, "tokens");
    put_phase(out, "prefill", &portrait->prefill);
    put_phase(out, "decode", &portrait->decode);
}

/* ---- batches.csv ---- */

static void write_batches(const struct portrait *portrait, FILE *out)
{
    fprintf(out, "batch,fits,step_s,tok_per_s,intensity_flops_per_byte,tflops,"
                 "usd_per_million_tokens\n");
    for (size_t i = 0; i < portrait->n_batches; i++) {
        const struct portrait_batch *of = &portrait->batches[i];
        fprintf(out, "%d,%s,%.9f,%.9g,%.9g,%.9g,%.9g\n", of->batch, of->fits ? "true" : "false",
                of->decode.step_s, of->decode.tok_per_s, of->decode.intensity, of->decode.tflops,
                of->decode.usd_per_million_tokens);
    }
}

/* ---- roofline.csv: the roof, and what lies under it ---- */

static void put_point(FILE *out, const char *series, int32_t batch, double intensity, double tflops)
{
    fprintf(out, "%s,%d,%.9g,%.9g\n", series, batch, intensity, tflops);
}

static void put_roof(FILE *out, const struct portrait *portrait)
{
    const double ridge = portrait->ridge_flops_per_byte,
                 peak = portrait->platform.hardware.gpu.peak_tflops;
    const double last = fmax(portrait->prefill.intensity, ridge);
    put_point(out, "roof", 0, 0.5, peak / ridge / 2);
    put_point(out, "roof", 0, ridge, peak);
    put_point(out, "roof", 0, 2 * last, peak);
}

static void write_roofline(const struct portrait *portrait, FILE *out)
{
    fprintf(out, "series,batch,intensity_flops_per_byte,tflops\n");
    put_roof(out, portrait);
    for (size_t i = 0; i < portrait->n_batches; i++)
        put_point(out, "decode", portrait->batches[i].batch, portrait->batches[i].decode.intensity,
                  portrait->batches[i].decode.tflops);
    put_point(out, "prefill", portrait->options.batch, portrait->prefill.intensity,
              portrait->prefill.tflops);
}

/* ---- all of them ---- */

static int write_one(const struct portrait *portrait, const char *dir, const char *name,
                     void (*write)(const struct portrait *, FILE *), struct ifl_error *error)
{
    struct new_file file;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (new_file_open(&file, path, error))
        return error->code;
    write(portrait, file.out);
    return new_file_close(&file, 0, error);
}

static int draw(const char *dir, struct ifl_error *error)
{
    char script_dir[512];
    const struct ifl_drawing drawing = {.out_dir = dir,
                                        .script_dir = script_dir,
                                        .columns = 1,
                                        .source = "inflight " INFLIGHT_VERSION};
    if (data_plot_scripts(script_dir, error) < 0)
        return error->code;
    return ifl_figure(&drawing, "roofline", "roofline", error);
}

int model_files_write(const struct portrait *portrait, const char *dir, struct ifl_error *error)
{
    static const char *const names[] = {"model.csv", "batches.csv", "roofline.csv", NULL};
    struct out_dir out;
    if (outputs_check(dir, names, error) < 0 || out_dir_make(&out, dir, error) < 0)
        return error->code;
    int rc = write_one(portrait, dir, "model.csv", write_model, error);
    if (rc == 0)
        rc = write_one(portrait, dir, "batches.csv", write_batches, error);
    if (rc == 0)
        rc = write_one(portrait, dir, "roofline.csv", write_roofline, error);
    if (rc == 0)
        rc = draw(dir, error);
    out_dir_tidy(&out);
    return rc;
}
