#include "cli/list_preset.h"

#include <stdio.h>
#include <string.h>

#include "config/key_docs.h"
#include "config/layers.h"

static void print_default(void *context, const struct key_doc *doc)
{
    const struct node *root = context;
    if (strncmp(doc->key, "serving.", 8) == 0 && strcmp(doc->key, "serving.preset") != 0 &&
        config_leaves(root, doc))
        printf("# %s: %s\n", doc->key, doc->dflt);
}

int list_preset_rest(const char *name, const struct node *own, struct ifl_error *error)
{
    struct node *root;
    if (preset_load("serving", name, &root, error) < 0)
        return error->code;
    int code = layer_expand(root, error);
    if (code == 0 && tree_child(own, "extends")) {
        printf("---\n# with what it extends\n");
        code = tree_print(root, stdout, error);
    }
    if (code == 0) {
        printf("# defaults\n");
        config_each_key(print_default, root);
    }
    tree_free(root);
    return code;
}
