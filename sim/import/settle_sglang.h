/* The files that turn SGLang's facts into keys, and the functions that they share. `groups` are
 * those of attention in parallel; 1: it is not. */
#ifndef SIM_IMPORT_SETTLE_SGLANG_H
#define SIM_IMPORT_SETTLE_SGLANG_H

#include "import/settle.h"

/* Adds a line to the report if the release is not known. */
void sglang_check_version(struct settled *s);

/* A count that the server was asked for, of which a group gets its part; what it says that it took
 * is a group's already. */
void sglang_settle_part(struct settled *s, const char *name, const char *key, long long groups);

/* The chunk, which goes by the GPU's memory. */
void sglang_settle_chunk(struct settled *s, long long groups);

/* The share of memory for weights and K/V, unless the blocks are known. Call it after the model and
 * the blocks are set. */
void sglang_settle_memory(struct settled *s, long long groups);

#endif
