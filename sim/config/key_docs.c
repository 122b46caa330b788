#include "config/key_docs.h"

#include <string.h>

#include "config/keys.h"
#include "config/registry.h"

enum { MAX_TEXT = 512 };

struct listener {
    void (*take)(void *context, const struct key_doc *doc);
    void *context;
};

/* `doc` has the policy, if there is one. dflt_of_all: in place of the field's own, if not NULL. */
static void tell_fields(const struct listener *listener, struct key_doc doc, const char *where,
                        const struct ifl_param *fields, size_t n, const char *dflt_of_all)
{
    char path[MAX_KEY_CHARS], dflt[MAX_TEXT], takes[MAX_TEXT];
    for (size_t i = 0; i < n; i++) {
        field_print_default(&fields[i], dflt, sizeof dflt);
        field_describe(&fields[i], takes, sizeof takes);
        doc.key = key_join(where, fields[i].name, path);
        doc.dflt = dflt_of_all ? dflt_of_all : dflt;
        doc.doc = fields[i].doc;
        doc.takes = takes;
        listener->take(listener->context, &doc);
    }
}

static void tell_section(const struct listener *listener, const struct key_section *section)
{
    char path[MAX_KEY_CHARS];
    tell_fields(listener, (struct key_doc){0}, section->where, section->keys->fields,
                section->keys->n_fields, section->is_deployment ? "the profile's" : NULL);
    for (size_t i = 0; i < section->keys->n_by_hand; i++) {
        const struct key_by_hand *key = &section->keys->by_hand[i];
        const struct key_doc doc = {
            key_join(section->where, key->name, path), key->dflt, key->doc, key->takes, NULL, NULL};
        listener->take(listener->context, &doc);
    }
}

static void tell_policies(const struct listener *listener, const struct key_section *section)
{
    const struct ifl_policy *policy;
    for (size_t i = 0; (policy = registry_at(i)); i++)
        if (policy->kind == section->kind)
            tell_fields(listener,
                        (struct key_doc){.section = section->where, .policy = policy->name},
                        section->where, policy->params, policy->n_params, NULL);
}

void config_each_key(void (*take)(void *context, const struct key_doc *doc), void *context)
{
    const struct listener listener = {take, context};
    for (size_t i = 0; i < n_key_sections; i++)
        tell_section(&listener, &key_sections[i]);
    for (size_t i = 0; i < n_key_sections; i++)
        if (key_sections[i].is_module)
            tell_policies(&listener, &key_sections[i]);
}

/* The policy that the tree names for a section: a word, or `policy` in a map. */
static const char *policy_of(const struct node *root, const char *section)
{
    const struct node *node = tree_at(root, section);
    const char *word = node ? tree_text(node) : NULL;
    return word ? word : node ? tree_text(tree_child(node, "policy")) : NULL;
}

bool config_leaves(const struct node *root, const struct key_doc *doc)
{
    const char *policy = doc->policy ? policy_of(root, doc->section) : NULL;
    if (doc->policy && (!policy || strcmp(policy, doc->policy) != 0))
        return false;
    return !tree_at(root, doc->key) && strcmp(doc->dflt, "the preset's") != 0 &&
           strcmp(doc->dflt, "the profile's") != 0;
}
