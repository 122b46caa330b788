/* The bench of measurements: an open engine, a clock, and the CSV that rows are written to. */
#ifndef SIM_FIT_CALIBRATE_BENCH_H
#define SIM_FIT_CALIBRATE_BENCH_H

#include "fit/calibrate/batch.h"

struct timed {
    int n_runs;
    double median_s, min_s, spread_s; /* spread: between the quartiles */
};

enum ceiling { CEILING_NONE, CEILING_COPY, CEILING_GEMM, CEILING_OUT, CEILING_IN, N_CEILINGS };

struct bench {
    const struct ifl_engine *engine;
    void *self; /* the open engine */
    struct ifl_engine_options limits;
    struct ifl_engine_machine machine;
    struct batch batch;
    int max_runs;
    uint32_t round;
    double ceilings[N_CEILINGS]; /* bytes/s, FLOP/s; 0: not measured yet */
    FILE *out;
};

/* One row of the CSV. Fields that do not apply are 0 or NULL and give empty cells. */
struct measurement {
    const char *op;
    double m, n, k;
    const struct batch *batch;
    double n_blocks;
    struct timed timed;
    double bytes, flops; /* bytes to be moved, FLOPs to be computed */
    enum ceiling of;     /* the ceiling to compare with: FLOPs with CEILING_GEMM, bytes with all
                            others */
};

/* Time of one run on the device, and as measured by its caller; 0: not measured. */
struct lasted {
    double device_s, wall_s;
};
struct timings {
    struct timed device, wall, host; /* host: wall less device */
};

/* Times run(context, round, &lasted, error), after one run that does not count. It runs max_runs
 * times; or, if the runs together exceed a third of a second on the device, fewer times, but at
 * least five. */
typedef int bench_run_fn(void *context, uint32_t round, struct lasted *lasted,
                         struct ifl_error *error);
int bench_time(struct bench *bench, bench_run_fn *run, void *context, struct timings *timings,
               struct ifl_error *error);

void bench_write_head(const struct bench *bench);
void bench_write(const struct bench *bench, const struct measurement *measurement);

/* ---- operations.c: ceilings first ---- */

int bench_ceilings(struct bench *bench, struct ifl_error *error);
int bench_products(struct bench *bench, struct ifl_error *error);
int bench_rows(struct bench *bench, struct ifl_error *error);
int bench_attention(struct bench *bench, struct ifl_error *error);

/* ---- steps.c ---- */

int bench_steps(struct bench *bench, struct ifl_error *error);
int bench_moves(struct bench *bench, struct ifl_error *error);

#endif
