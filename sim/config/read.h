/* One point of a study: from a tree with the preset below to a checked `struct config`, and back.
 */
#ifndef SIM_CONFIG_READ_H
#define SIM_CONFIG_READ_H

#include "base/tree.h"
#include "config/config.h"

/* Reads every key of the tree and checks each key separately. On success the caller must call
 * config_finish. */
int config_read(const struct node *root, struct config *config, struct ifl_error *error);

/* Checks keys that need each other and files that must exist; finds the trace. */
int config_check(const struct node *root, struct config *config, struct ifl_error *error);

/* Keys that config_write leaves out: those for which skips() returns true. */
struct key_skip {
    bool (*skips)(const void *context, const char *dotted);
    const void *context;
};

/* Puts every key of the configuration into the map, in the table's order. */
int config_write(const struct config *config, const struct key_skip *skip, struct node *root,
                 struct ifl_error *error);

#endif
