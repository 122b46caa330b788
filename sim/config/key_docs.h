/* The table of keys as text, for commands that list or complete keys. */
#ifndef SIM_CONFIG_KEY_DOCS_H
#define SIM_CONFIG_KEY_DOCS_H

#include <stdbool.h>

/* All texts are valid until the function that got them returns. */
struct key_doc {
    const char *key; /* "serving.order.policy" */
    const char *dflt, *doc, *takes;
    const char *section,
        *policy; /* of a policy's parameter: "serving.order", "deadline"; or NULL */
};

/* Every key, then the parameters of each policy, section by section. */
void config_each_key(void (*take)(void *context, const struct key_doc *doc), void *context);

struct node;
/* True if a configuration leaves the key at a default of its own: it has no value for it, and if
 * the key is a policy's parameter, names that policy. */
bool config_leaves(const struct node *root, const struct key_doc *doc);

#endif
