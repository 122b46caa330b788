/* Arguments that say several keys at once: guesses, tiers and roles as a command line's words, with
 * a blank in front of each; "" where there are none, or none can say them. */
#ifndef SIM_IMPORT_EXPORT_MORE_H
#define SIM_IMPORT_EXPORT_MORE_H

#include "base/server_flags.h"
#include "base/tree.h"

/* `root` has every key. Of vLLM these are for 0.8.5 and later. */
void export_drafts(const struct node *root, enum server server, char *words, size_t n_bytes);
void export_tiers(const struct node *root, enum server server, char *words, size_t n_bytes);

#endif
