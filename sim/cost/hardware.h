/* A hardware profile: fitted numbers for the kernels of one kind of GPU.
 *
 * A profile is a YAML file (configs/hardware/) with one map for each section below and text about
 * where the numbers come from. Fractions are of the data sheet's peaks. The form in which the
 * numbers enter is in kernels.h.
 *
 * A profile's file also says which deployment (deployment.h) applies if a configuration names none:
 * `deployment: NAME`, a path relative to the profile's folder, or a map. Instead of `deployment`
 * the file may have the sections `host`, in microseconds, and `memory`. */
#ifndef SIM_COST_HARDWARE_H
#define SIM_COST_HARDWARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "inflight/error.h"

#include "cost/correction.h"
#include "cost/deployment.h"

struct gpu_profile {
    double peak_tflops;     /* dense, 16-bit inputs */
    double memory_gb_per_s; /* 1e9 bytes */
    int32_t n_sms;
    double memory_gib; /* as the driver reports it, below the number on the box */
    double tdp_w; /* data sheet: the power that the board does not exceed for long; 0: unknown */
    double compute_capability; /* NVIDIA's number of the architecture, as 9.0; 0: unknown */
};

struct gemm_profile {
    double launch_us;                 /* t0 */
    double compute_frac, memory_frac; /* e_c, e_m */
    double exponent;                  /* p: how sharply compute- turns into memory-bound */
    double wave_frac;                 /* a: how far partial waves of tiles cost as full ones */
    double tile_frac;                 /* b: how far rows that do not fill a tile cost as its rows */
    double tile_rows;                 /* rows of a tile in products of more than 512 rows; 0: 128 */
    double vector_frac;               /* e_v: e_m of one row, if that has a kernel of its own */
};

/* Products with weights that have fewer bytes than their inputs and are unpacked during the
 * product. */
struct gemm_unpacked_profile {
    double reduce_us; /* r: time for an SM to add its part of a column's sums to that of the
                         previous SM; 0: such products are those of gemm with fewer bytes */
};

/* All experts of a layer in one operation. */
struct experts_profile {
    double launch_us;                 /* tx: fixed time, with the sort of the tokens by expert */
    double compute_frac, memory_frac; /* e_c, e_m */
    double exponent;                  /* p */
    double expert_us;                 /* x: for each expert that any token picks */
};

/* Latent attention: the kernels that copy, concatenate and pad between its products. */
struct latent_profile {
    double layer_us;  /* tl: of a layer */
    double token_us;  /* of each token of a prompt */
    double decode_us; /* of each sequence that decodes */
};

/* The gated delta rule of layers with a state. */
struct delta_profile {
    double launch_us;   /* tp: of a wave of prompts */
    double chain_us;    /* c: of a token, in one value head of one sequence, on one SM */
    double decode_us;   /* td */
    double memory_frac; /* e_d: of peak bytes/s, of states that are read and written */
};

/* Latent attention to the tokens that an indexer picks: its time apart from its products. */
struct sparse_profile {
    double layer_us, decode_us; /* ts; of each sequence that decodes */
    double token_us;            /* of each token of a prompt: its quantisation, its choice */
    double prompt_us;           /* least time with prompts, outside of CUDA graphs */
    double memory_frac;         /* e_d: of peak bytes/s, of the indexer's keys */
    double compute_frac;        /* e_c: of peak FLOP/s, of prompts' attention; 0: unknown */
    double index_frac;          /* e_i: of twice the peak, of the indexer's scores of prompts */
};

struct prefill_profile {
    double launch_us;       /* ta */
    double compute_frac;    /* e_a */
    double overhead_tokens; /* c_tok: work of a query besides its context, in context tokens */
    double causal_frac;     /* kappa: share of a chunk's own q x q square that is computed */
    double tail_tiles;      /* tail: 128-row tiles of the longest sequence that run alone */
    double head_us;         /* w: of an SM, for each sequence and KV head */
};

struct decode_profile {
    double launch_us;   /* td */
    double head_us;     /* w: of an SM for each sequence and KV head */
    double memory_frac; /* e_d */
    double split_us;    /* ts: in addition, if contexts are long enough to be split over SMs */
    /* s: rate of one SM. For kernels that split contexts over SMs only if query heads share KV
     * heads: without sharing, an SM reads a head's whole context alone. 0: all are split */
    double stream_gb_per_s;
};

/* The decode part of a step that also holds prefill. K and V are counted for each query head.
 * memory_frac may be above 1, as query heads that share a KV head find it in the cache. memory_frac
 * 0: the kernel of `decode` is used with and without prefill beside it. */
struct decode_mixed_profile {
    double head_us;            /* w' */
    double memory_frac;        /* e_d' */
    double shared_launch_frac; /* l: share of td and ts that the launch of the prompts saves */
};

struct elementwise_profile {
    double launch_us;   /* te */
    double memory_frac; /* e_e */
};

/* Two lines, each latency + bytes / rate. An all-reduce needs two because engines have a kernel for
 * small messages and leave large ones to a library; a link has two because its rates for small and
 * for large pieces differ. */
struct lines_profile {
    double latency_us, gb_per_s;
    double bulk_latency_us, bulk_gb_per_s; /* the second line; both 0: there is only the first */
    double bulk_from_bytes;                /* size at which the second line begins; 0: the line
                                              with the lower time counts */
};
#define HARDWARE_ALLREDUCES 3 /* over 2, 4 and 8 GPUs */

/* Between pipeline stages. */
struct send_recv_profile {
    double latency_us, gb_per_s;
};

struct swap_profile {
    double piece_bytes; /* bytes of one copy; 0: a whole block, all layers together */
};

/* Copies of K/V blocks within the device: one launch, each byte read and written. */
struct block_copy_profile {
    double launch_us;
    double memory_frac;
};

struct hardware {
    char name[128];             /* of the file, without folder and extension */
    char about[256];            /* the machine and the software stack */
    char source[512];           /* where the numbers come from */
    char assumed[512];          /* the numbers that no measurement covers; empty if none */
    char kernels[64];           /* engine and version of the measured kernels; empty: none is
                                   named */
    char corrections_path[512]; /* path of a CSV, as the profile writes it; empty if there is
                                   none */
    struct corrections corrections;
    struct gpu_profile gpu;
    struct gemm_profile gemm;
    struct gemm_profile gemm_fp8, gemm_nvfp4; /* 0 compute_frac: unknown */
    struct gemm_unpacked_profile gemm_unpacked;
    /* 0 compute_frac: two products of gemm or gemm_fp8 take the place of the first two, `experts`
     * with fewer bytes that of the third */
    struct experts_profile experts, experts_fp8, experts_mxfp4, experts_nvfp4;
    struct latent_profile latent;
    struct delta_profile delta;   /* 0 chain_us: that of a B200 (kernels.h) */
    struct sparse_profile sparse; /* 0 compute_frac: that of a H200 (kernels.h) */
    struct prefill_profile prefill;
    struct decode_profile decode;
    struct decode_mixed_profile decode_mixed;
    struct elementwise_profile elementwise;
    struct lines_profile allreduce[HARDWARE_ALLREDUCES];
    struct lines_profile allreduce_eager[HARDWARE_ALLREDUCES]; /* outside CUDA graphs */
    struct send_recv_profile send_recv;                        /* 0 GB/s: unknown */
    struct swap_profile swap;
    struct lines_profile swap_out, swap_in; /* time of one piece, to the host and from it */
    struct block_copy_profile block_copy;
};

/* What steps are computed on: a GPU, and how a server runs on it. */
struct platform {
    struct hardware hardware;
    struct deployment deployment;
    char deployment_name[128]; /* as the profile names it; empty for a map or a path */
    char deployment_path[512]; /* of the file that the profile's deployment is from; empty: none */
};

/* The path of the corrections of the profile at that path; false if it has none. */
enum { HARDWARE_PATH_BYTES = 1024 };
bool hardware_corrections(const char *profile, const struct hardware *hardware,
                          char path[HARDWARE_PATH_BYTES]);
/* Loads a profile and its deployment. `name` is the name of a file in configs/hardware or a path.
 */
int hardware_load(const char *name, struct platform *platform, struct ifl_error *error);

/* Writes the profile as YAML that hardware_load reads back to the same bits, with the deployment as
 * its name where it has one. `remark` may be NULL. Optional sections without numbers are left out.
 */
void hardware_write(const struct platform *platform, remark_fn *remark, void *context, FILE *out);

/* Returns the all-reduce lines for that many GPUs, outside CUDA graphs if `eager`; or NULL. */
const struct lines_profile *hardware_allreduce(const struct hardware *hardware, bool eager,
                                               int32_t n_gpus);

#endif
