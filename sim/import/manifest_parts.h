/* Containers of a manifest, and the words of their commands. */
#ifndef SIM_IMPORT_MANIFEST_PARTS_H
#define SIM_IMPORT_MANIFEST_PARTS_H

#include <stdio.h>

#include "base/tree.h"

#include "import/expand.h"

struct container {
    const struct node *map;      /* or, of a command without a container, the list of its words */
    bool is_item;                /* of a list, as in Kubernetes */
    const struct node *replicas; /* how many there are of it; NULL: one */
    struct variables *given;     /* those in front of the manifest */
    struct variables *own;       /* the container's */
};

/* Kubernetes, not Compose. */
bool manifest_is_pod(const struct container *c);

/* The text with values of variables: those in front of the manifest, and the container's. Compose
 * knows only the former, and would leave the latter to a shell; a text without the former means the
 * same value. The caller owns it. */
char *manifest_values(const struct container *c, const char *text);

/* The word for a shell, and a blank. */
void manifest_put_quoted(const char *word, FILE *out);
/* The words of a text, or of a list with an item for each. */
int manifest_put_words(const struct container *c, const struct node *words, FILE *out,
                       struct ifl_error *error);

#endif
