/* `inflight list keys`: the table of keys as a page to read. */
#include <string.h>

#include "config/keys.h"
#include "inflight/minmax.h"

enum { MAX_TEXT = 512 };

struct columns {
    int key, dflt;
};

static void fit(int *width, const char *text)
{
    const int n_chars = (int)strlen(text);
    *width = ifl_max(*width, n_chars);
}

static void fit_fields(struct columns *columns, const char *where, const struct ifl_param *fields,
                       size_t n)
{
    char path[MAX_KEY_CHARS], dflt[MAX_TEXT];
    for (size_t i = 0; i < n; i++) {
        field_print_default(&fields[i], dflt, sizeof dflt);
        fit(&columns->key, key_join(where, fields[i].name, path));
        fit(&columns->dflt, dflt);
    }
}

static struct columns fit_all(void)
{
    struct columns columns = {0};
    const struct ifl_policy *policy;
    for (size_t i = 0; i < n_key_sections; i++) {
        const struct key_section *section = &key_sections[i];
        fit_fields(&columns, section->where, section->fields, section->n_fields);
        for (size_t j = 0; section->is_module && (policy = registry_at(j)); j++)
            if (policy->kind == section->kind)
                fit_fields(&columns, section->where, policy->params, policy->n_params);
    }
    return columns;
}

/* `dflt_of_all`: in place of the field's own, if not NULL. */
static void print_default(const struct ifl_param *field, const char *dflt_of_all, char *text,
                          size_t n_bytes)
{
    if (dflt_of_all)
        snprintf(text, n_bytes, "%s", dflt_of_all);
    else
        field_print_default(field, text, n_bytes);
}

static void print_fields(FILE *out, const struct columns *columns, const char *where,
                         const struct ifl_param *fields, size_t n, const char *dflt_of_all)
{
    char path[MAX_KEY_CHARS], dflt[MAX_TEXT], takes[MAX_TEXT];
    for (size_t i = 0; i < n; i++) {
        print_default(&fields[i], dflt_of_all, dflt, sizeof dflt);
        field_describe(&fields[i], takes, sizeof takes);
        fprintf(out, "%-*s  %-*s  %s (%s)\n", columns->key, key_join(where, fields[i].name, path),
                columns->dflt, dflt, fields[i].doc, takes);
    }
}

static void print_section(FILE *out, const struct columns *columns,
                          const struct key_section *section)
{
    char path[MAX_KEY_CHARS];
    print_fields(out, columns, section->where, section->fields, section->n_fields,
                 section->is_deployment ? "the profile's" : NULL);
    for (size_t i = 0; i < section->n_by_hand; i++) {
        const struct key_by_hand *key = &section->by_hand[i];
        fprintf(out, "%-*s  %-*s  %s (%s)\n", columns->key,
                key_join(section->where, key->name, path), columns->dflt, key->dflt, key->doc,
                key->takes);
    }
}

static void print_modules(FILE *out, const struct columns *columns,
                          const struct key_section *section)
{
    const struct ifl_policy *policy;
    for (size_t i = 0; (policy = registry_at(i)); i++) {
        if (policy->kind != section->kind || policy->n_params == 0)
            continue;
        fprintf(out, "\n%s: {policy: %s}\n", section->where, policy->name);
        print_fields(out, columns, section->where, policy->params, policy->n_params, NULL);
    }
}

void config_print_keys(FILE *out)
{
    const struct columns columns = fit_all();
    fprintf(out, "%-*s  %-*s  %s\n", columns.key, "KEY", columns.dflt, "DEFAULT",
            "MEANING (and what it takes)");
    for (size_t i = 0; i < n_key_sections; i++)
        print_section(out, &columns, &key_sections[i]);
    for (size_t i = 0; i < n_key_sections; i++)
        if (key_sections[i].is_module)
            print_modules(out, &columns, &key_sections[i]);
}
