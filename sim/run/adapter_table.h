/* The adapters of a trace on a machine: their ranks, bytes and blocks. */
#ifndef SIM_RUN_ADAPTER_TABLE_H
#define SIM_RUN_ADAPTER_TABLE_H

#include "inflight/trace.h"

#include "config/config.h"
#include "replica/adapters.h"
#include "run/machine.h"

struct adapter_table {
    struct adapter *of; /* [n + 1], by number */
    int32_t *blocks;    /* [n + 1] blocks of the K/V pool that each adapter takes, if adapters lie
                           in the pool; else NULL */
    uint32_t n;
};

/* Names of adapters, moved out of a trace. Zeroed memory is valid for adapter_names_free. */
struct adapter_names {
    char **of; /* [n] */
    uint32_t n;
};
void adapter_names_keep(struct adapter_names *names, struct ifl_trace *trace);
void adapter_names_free(struct adapter_names *names);

/* Fills the table, which is empty for a trace without adapters. Returns 0 or a negative code:
 * IFL_E_INPUT if ranks or keys about adapters are wrong. Call adapter_table_free after an error,
 * too; zeroed memory is valid for it. */
int adapter_table_make(const struct ifl_trace *trace, const struct config *config,
                       const struct machine *machine, struct adapter_table *table,
                       struct ifl_error *error);
void adapter_table_free(struct adapter_table *table);
/* Fills the fields of the limits that concern adapters. */
void adapter_table_limit(const struct adapter_table *table, const struct config *config,
                         struct ifl_limits *limits);
/* Returns the adapter options of a replica. They borrow the table. */
struct adapters_options adapter_table_options(const struct adapter_table *table,
                                              const struct config *config);
/* Returns the ranks of all adapters, [n], for the caller to free; NULL if memory is short. */
int32_t *adapter_table_ranks(const struct adapter_table *table);
/* Returns the extra cost of steps with adapters. */
struct adapter_cost adapter_table_cost(const struct machine *machine, const struct config *config);

#endif
