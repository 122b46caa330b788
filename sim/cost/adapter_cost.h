/* What low-rank adapters add to a step: for each of their matrices in each layer two products,
 *
 *     y += (x A) B,   A [in][rank], B [rank][out]
 *
 * of the rows x of all sequences, each with the A and B of its own adapter; and the copies of
 * adapters to the device before the step computes.
 *
 *   batched  all adapters in two kernels a matrix (BGMV and SGMV: Punica, Chen et al., MLSys 2024,
 *            section 4; S-LoRA, section 5.2): a roofline over what is read once and computed,
 *
 *                2 M L launch + max(F / (e_c P), B / (e_e W))
 *                F = 2 S L sum over rows of rank
 *                B = S L (element sum over different adapters of rank + element rows)
 *
 *            with L layers, M matrices, S the sum of in + out over them; P and W are those of the
 *            data sheet, e_c of the profile's products, e_e and launch of its element-wise kernels
 *   padded   batched matrix products (S-LoRA's baseline, slora/models/bmm): before each step all A
 *            and B are copied into one array that is as wide as the largest rank; for each run of
 *            rows with one adapter there are four launches a matrix, two copies, one gather and one
 *            addition
 *   merged   adapters are added to the weights (dLoRA; PEFT's merge_adapter): a step has no extra
 *            cost; a load reads and writes the matrices twice, since the previous adapter is
 *            subtracted
 *
 * A profile of measured adapter kernels does not exist here; the factors are assumptions, and the
 * summary says so. */
#ifndef SIM_COST_ADAPTER_COST_H
#define SIM_COST_ADAPTER_COST_H

#include "inflight/executor.h"

#include "cost/hardware.h"
#include "cost/model.h"

enum adapter_matrices { ADAPTER_QV, ADAPTER_QKVO, ADAPTER_ALL };
enum adapter_compute { ADAPTER_BATCHED, ADAPTER_PADDED, ADAPTER_MERGED };

/* Matrices of a layer that have an adapter: the sum of their in + out, and their number. */
struct adapter_shape {
    int32_t n_matrices;
    int64_t in_out;
    int64_t weights; /* sum of in x out */
};
struct adapter_shape adapter_shape_of(const struct model *model, enum adapter_matrices matrices);
/* Returns the bytes of A and B in all layers, with 16 bits per element or the width of the model's
 * activations. */
int64_t adapter_bytes(const struct model *model, enum adapter_matrices matrices, int32_t rank);

struct adapter_cost {
    enum adapter_compute compute;
    bool computes;     /* a model and a hardware are named; otherwise only loads have a cost */
    double launches_s; /* launches of a step in which some row has an adapter */
    double run_s;      /* padded: time per run of rows with one adapter */
    double rank_token_s, rank_s, token_s; /* F / P, and B / W in its two parts */
    double merge_s;                       /* merged: time of a load */
    int32_t padded_rank;                  /* rank to which every adapter is padded; 0: its own
                                             rank */
    double load_s;                        /* time of each load, in addition to its bytes */
    double load_byte_s, disk_byte_s;
};

struct adapter_cost_options {
    enum adapter_matrices matrices;
    enum adapter_compute compute;
    int32_t padded_rank;
    int32_t tensor_parallel;
    double launch_s; /* launch of a kernel; 0: as in the profile */
    double load_s;
    int32_t load_copies;                 /* how many times the bytes of a load cross the link */
    double host_gb_per_s, disk_gb_per_s; /* 0: the profile's link (host), no time (disk) */
};

/* model and hardware are NULL if the configuration names none. */
struct adapter_cost adapter_cost_of(const struct model *model, const struct hardware *hardware,
                                    const struct adapter_cost_options *options);
/* Returns the seconds by which adapters lengthen a step. */
double adapter_step_s(const struct adapter_cost *cost, const struct ifl_adapter_totals *totals);

#endif
