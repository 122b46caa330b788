/* The adapters of a trace on a machine: their ranks, bytes and blocks. */
#ifndef SIM_RUN_ADAPTER_TABLE_H
#define SIM_RUN_ADAPTER_TABLE_H

#include "inflight/trace.h"

#include "config/config.h"
#include "replica/adapters.h"
#include "run/machine.h"

struct adapter_table {
    struct adapter *of; /* [n + 1], by number */
    int32_t *blocks;    /* [n + 1] of the K/V pool, where they lie there; else NULL */
    uint32_t n;
};

/* The names, which a trace gives up. Zeroed memory is valid for adapter_names_free. */
struct adapter_names {
    char **of; /* [n] */
    uint32_t n;
};
void adapter_names_keep(struct adapter_names *names, struct ifl_trace *trace);
void adapter_names_free(struct adapter_names *names);

/* Empty for a trace without adapters. IFL_E_INPUT where the ranks or what is asked of adapters are
 * wrong. Zeroed memory is valid for adapter_table_free, which is called after an error, too. */
int adapter_table_make(const struct ifl_trace *trace, const struct config *config,
                       const struct machine *machine, struct adapter_table *table,
                       struct ifl_error *error);
void adapter_table_free(struct adapter_table *table);
/* What the limits say of them. */
void adapter_table_limit(const struct adapter_table *table, const struct config *config,
                         struct ifl_limits *limits);
/* The options of a replica that follow from them. */
struct adapters_options adapter_table_options(const struct adapter_table *table,
                                              const struct config *config);
/* [n] of all adapters, which the caller frees; NULL without memory. */
int32_t *adapter_table_ranks(const struct adapter_table *table);
/* What steps cost more with them. */
struct adapter_cost adapter_table_cost(const struct machine *machine, const struct config *config);

#endif
