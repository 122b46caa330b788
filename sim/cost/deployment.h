/* A deployment: how a server runs an engine on a GPU, apart from what the card itself can do.
 *
 * A deployment is a map, in a file of its own (configs/deployments/), in a hardware profile or in a
 * configuration. A map with `base: NAME` has the values of that deployment where it gives none.
 *
 * Its numbers stand in sections, a table each (deployment_sections). A new section is a struct, a
 * table of its fields, a row of deployment_sections and one of the configuration's key_sections
 * (config/keys.c). */
#ifndef SIM_COST_DEPLOYMENT_H
#define SIM_COST_DEPLOYMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "inflight/error.h"
#include "inflight/policy.h"

struct node;

/* Of a step: for each layer, once, for each sequence. */
struct host_times {
    double layer_s, step_s, seq_s;
    double floor_s; /* least forward time: an eager engine's host takes longer than small steps */
    bool eager;     /* kernels are not replayed from CUDA graphs: all-reduces are the eager ones */
};

struct deployment_memory {
    double workspace_gib;     /* beside weights, activations and KV: context, libraries, graphs */
    double activation_tokens; /* tokens of the largest step for which activations are reserved */
    double drawn_sds; /* no field of the file: how far a member of an ensemble lies from the count
                         of memory_engine.h, in standard deviations */
};

/* From the client to the engine, and back: HTTP, tokenizer, proxies (run/workload.h). */
struct front_end {
    double request_s, prompt_token_s; /* before the engine has the request */
    double token_s;                   /* from the end of a step until the client has its token */
};

struct deployment {
    char name[128];     /* of the file, or of the profile that holds the map */
    char about[256];    /* the server and its software */
    char source[512];   /* where the numbers come from */
    char assumed[512];  /* the numbers that no measurement covers; empty if none */
    int32_t num_blocks; /* KV blocks that the server reports; 0: they are computed */
    struct host_times host;
    struct deployment_memory memory;
    struct front_end front_end;
};

/* ---- the table ---- */

enum {
    DEPLOYMENT_FIELDS = 4,
    DEPLOYMENT_HOST_FIELDS = 5,
    DEPLOYMENT_MEMORY_FIELDS = 2,
    DEPLOYMENT_FRONT_END_FIELDS = 3
};
extern const struct ifl_param deployment_fields[DEPLOYMENT_FIELDS]; /* those in no section */
extern const struct ifl_param deployment_host_fields[DEPLOYMENT_HOST_FIELDS];
extern const struct ifl_param deployment_memory_fields[DEPLOYMENT_MEMORY_FIELDS];
extern const struct ifl_param deployment_front_end_fields[DEPLOYMENT_FRONT_END_FIELDS];

struct deployment_section {
    const char *name;
    const struct ifl_param *fields;
    size_t n_fields;
    size_t offset; /* of the section's struct in struct deployment */
};
extern const struct deployment_section deployment_sections[];
extern const size_t deployment_n_sections;

/* ---- reading ---- */

/* `name` is the name of a file in configs/deployments or a path. */
int deployment_load(const char *name, struct deployment *deployment, struct ifl_error *error);

/* Lays the map at `where` ("deployment" in messages) over the deployment: over that of `base` if
 * the map names one. A map over a zeroed deployment without a name has to be whole: a value without
 * a default is then required. Paths are relative to the folder `beside`; NULL: to the working
 * directory. */
int deployment_lay(const struct node *map, const char *where, const char *beside,
                   struct deployment *deployment, struct ifl_error *error);

/* The file that the map's `base` names, or the word that stands for such a map, relative as in
 * deployment_lay; "" for NULL and without a base. */
int deployment_find(const struct node *map, const char *beside, char path[512],
                    struct ifl_error *error);

/* ---- the sections `host` and `memory` that profiles had before, in microseconds ---- */

extern const char *const deployment_old_sections[]; /* NULL-ended */
/* Fills the deployment from the profile's sections, which are required. */
int deployment_read_old(const struct node *root, struct deployment *deployment,
                        struct ifl_error *error);

/* ---- writing ---- */

/* The comment behind a section (field NULL) or a field, or NULL for none. */
typedef const char *remark_fn(void *context, const char *section, const char *field);
/* Writes the sections as a map below `deployment:`, which deployment_lay reads back to the same
 * bits. A section whose fields all have defaults, and have them, is left out. `remark` may be
 * NULL. */
void deployment_write(const struct deployment *deployment, remark_fn *remark, void *context,
                      FILE *out);

#endif
