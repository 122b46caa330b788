/* The uncertainty of a deployment's numbers: `intervals:`, the ends of an interval for each value.
 */
#include <math.h>
#include <string.h>

#include "base/tree.h"
#include "cost/deployment.h"
#include "inflight/nearest.h"

enum { NUM_BLOCKS = -1 }; /* in place of a section */

static const struct ifl_param *field_of(int section, int field)
{
    return section == NUM_BLOCKS ? &deployment_fields[field]
                                 : &deployment_sections[section].fields[field];
}

static const void *value_of(const struct deployment *deployment, int section, int field)
{
    const size_t offset = section == NUM_BLOCKS ? 0 : deployment_sections[section].offset;
    return (const char *)deployment + offset + field_of(section, field)->offset;
}

/* Numbers that vary without a step: times, rates, sizes, and the blocks. */
static bool may_vary(const struct ifl_param *field)
{
    return field->type == IFL_REAL || strcmp(field->name, "num_blocks") == 0;
}

static struct deployment_interval *find(struct deployment *deployment, int section, int field)
{
    for (size_t i = 0; i < deployment->n_intervals; i++)
        if (deployment->intervals[i].section == section && deployment->intervals[i].field == field)
            return &deployment->intervals[i];
    return NULL;
}

static void drop(struct deployment *deployment, int section, int field)
{
    struct deployment_interval *of = find(deployment, section, field);
    if (!of)
        return;
    deployment_drop_correlations(deployment, deployment_interval_key(of));
    *of = deployment->intervals[--deployment->n_intervals];
}

enum { KEYS_A_SECTION = 16 };

int deployment_interval_key(const struct deployment_interval *of)
{
    return (of->section + 1) * KEYS_A_SECTION + of->field;
}

const char *deployment_key_name(int key, char name[64])
{
    const int section = key / KEYS_A_SECTION - 1;
    snprintf(name, 64, "%s%s%s", section == NUM_BLOCKS ? "" : deployment_sections[section].name,
             section == NUM_BLOCKS ? "" : ".", field_of(section, key % KEYS_A_SECTION)->name);
    return name;
}

int deployment_key_of(const char *name)
{
    char text[64];
    for (int s = NUM_BLOCKS; s < (int)deployment_n_sections; s++) {
        const size_t n = s == NUM_BLOCKS ? DEPLOYMENT_FIELDS : deployment_sections[s].n_fields;
        for (size_t f = 0; f < n; f++) {
            const int key = (s + 1) * KEYS_A_SECTION + (int)f;
            if (may_vary(field_of(s, (int)f)) && strcmp(deployment_key_name(key, text), name) == 0)
                return key;
        }
    }
    return -1;
}

int deployment_set_interval(struct deployment *deployment, const char *key, double low, double high)
{
    const int found = deployment_key_of(key);
    const int section = found / KEYS_A_SECTION - 1, field = found % KEYS_A_SECTION;
    struct deployment_interval *of = found < 0 ? NULL : find(deployment, section, field);
    if (found < 0 || (!of && deployment->n_intervals == DEPLOYMENT_INTERVALS))
        return -1;
    if (!of)
        of = &deployment->intervals[deployment->n_intervals++];
    *of = (struct deployment_interval){section, field, low, high};
    return 0;
}

/* ---- reading ---- */

static int fail_name(const struct node *node, const char *path, int section,
                     struct ifl_error *error)
{
    const char *words[16];
    size_t n = 0;
    const size_t n_fields =
        section == NUM_BLOCKS ? DEPLOYMENT_FIELDS : deployment_sections[section].n_fields;
    for (size_t f = 0; f < n_fields && n < 16; f++)
        if (may_vary(field_of(section, (int)f)))
            words[n++] = field_of(section, (int)f)->name;
    for (size_t s = 0; section == NUM_BLOCKS && s < deployment_n_sections && n < 16; s++)
        words[n++] = deployment_sections[s].name;
    const char *near = ifl_nearest(node->key, words, n);
    return near ? tree_fail(node, error, "unknown key %s.%.60s, did you mean %s?", path, node->key,
                            near)
                : tree_fail(node, error,
                            "unknown key %s.%.60s, expected num_blocks or a number of a section of "
                            "a deployment",
                            path, node->key);
}

/* Reads one end as the field itself is read. */
static int read_end(const struct node *node, const char *path, const struct ifl_param *field,
                    double *end, struct ifl_error *error)
{
    struct ifl_param real = *field;
    real.type = IFL_REAL;
    real.offset = 0;
    return field_read(node, path, &real, end, error);
}

static int read_interval(const struct node *node, const char *path, int section, int field,
                         struct deployment *deployment, struct ifl_error *error)
{
    const struct ifl_param *param = field_of(section, field);
    char found[128], key[64];
    double low, high;
    if (tree_is_null(node)) {
        drop(deployment, section, field);
        return 0;
    }
    if (node->kind != NODE_LIST || node->n != 2)
        return tree_fail(
            node, error, "%s.%s is %s, expected [low, high], the ends of its 90%%", path, node->key,
            node->kind == NODE_LIST ? "a list of another length" : tree_describe(node, found));
    if (read_end(node->of[0], path, param, &low, error) < 0 ||
        read_end(node->of[1], path, param, &high, error) < 0)
        return error->code;
    if (low > high)
        return tree_fail(node, error, "%s.%s is [%.15g, %.15g], expected the lower end first", path,
                         node->key, low, high);
    snprintf(key, sizeof key, "%s%s%s",
             section == NUM_BLOCKS ? "" : deployment_sections[section].name,
             section == NUM_BLOCKS ? "" : ".", param->name);
    return deployment_set_interval(deployment, key, low, high) == 0
               ? 0
               : tree_fail(node, error, "%s has more than %d intervals", path,
                           DEPLOYMENT_INTERVALS);
}

static int index_of(const struct ifl_param *fields, size_t n, const char *name)
{
    for (size_t f = 0; f < n; f++)
        if (strcmp(fields[f].name, name) == 0 && may_vary(&fields[f]))
            return (int)f;
    return -1;
}

static int read_section(const struct node *map, const char *where, int section,
                        struct deployment *deployment, struct ifl_error *error)
{
    char path[96], found[128];
    snprintf(path, sizeof path, "%s.%s", where, map->key);
    if (tree_is_null(map))
        return 0;
    if (map->kind != NODE_MAP)
        return tree_fail(map, error, "%s is %s, expected a map of keys to [low, high]", path,
                         tree_describe(map, found));
    for (size_t i = 0; i < map->n; i++) {
        const struct deployment_section *of = &deployment_sections[section];
        const int field = index_of(of->fields, of->n_fields, map->of[i]->key);
        if (field < 0)
            return fail_name(map->of[i], path, section, error);
        if (read_interval(map->of[i], path, section, field, deployment, error) < 0)
            return error->code;
    }
    return 0;
}

static int read_child(const struct node *child, const char *where, struct deployment *deployment,
                      struct ifl_error *error)
{
    if (strcmp(child->key, "correlations") == 0) {
        char path[96];
        snprintf(path, sizeof path, "%s.correlations", where);
        return deployment_lay_correlations(child, path, deployment, error);
    }
    const int top = index_of(deployment_fields, DEPLOYMENT_FIELDS, child->key);
    if (top >= 0)
        return read_interval(child, where, NUM_BLOCKS, top, deployment, error);
    for (size_t s = 0; s < deployment_n_sections; s++)
        if (strcmp(deployment_sections[s].name, child->key) == 0)
            return read_section(child, where, (int)s, deployment, error);
    return fail_name(child, where, NUM_BLOCKS, error);
}

/* A value that is given anew is not what an interval below it was of. */
static void drop_given(const struct node *map, int section, const struct ifl_param *fields,
                       size_t n, struct deployment *deployment)
{
    for (size_t f = 0; f < n; f++) {
        const struct node *value = tree_child(map, fields[f].name);
        if (value && !tree_is_null(value))
            drop(deployment, section, (int)f);
    }
}

int deployment_lay_intervals(const struct node *map, const char *where,
                             struct deployment *deployment, struct ifl_error *error)
{
    char path[64], found[128];
    const struct node *intervals = tree_child(map, "intervals");
    drop_given(map, NUM_BLOCKS, deployment_fields, DEPLOYMENT_FIELDS, deployment);
    for (size_t s = 0; s < deployment_n_sections; s++)
        drop_given(tree_child(map, deployment_sections[s].name), (int)s,
                   deployment_sections[s].fields, deployment_sections[s].n_fields, deployment);
    if (!intervals || tree_is_null(intervals))
        return 0;
    snprintf(path, sizeof path, "%s%sintervals", where, *where ? "." : "");
    if (intervals->kind != NODE_MAP)
        return tree_fail(intervals, error, "%s is %s, expected a map of keys to [low, high]", path,
                         tree_describe(intervals, found));
    for (size_t i = 0; i < intervals->n; i++)
        if (read_child(intervals->of[i], path, deployment, error) < 0)
            return error->code;
    return 0;
}

/* ---- drawing ---- */

static double read_value(const struct deployment *deployment, const struct deployment_interval *of)
{
    int32_t whole;
    double real;
    if (of->section == NUM_BLOCKS) {
        memcpy(&whole, value_of(deployment, of->section, of->field), sizeof whole);
        return whole;
    }
    memcpy(&real, value_of(deployment, of->section, of->field), sizeof real);
    return real;
}

static void write_value(struct deployment *deployment, const struct deployment_interval *of,
                        double value)
{
    const struct ifl_param *field = field_of(of->section, of->field);
    void *at = (void *)(uintptr_t)value_of(deployment, of->section, of->field);
    const double clipped = fmin(fmax(value, field->min), field->max);
    const int32_t whole = (int32_t)fmax(round(clipped), 1);
    if (of->section == NUM_BLOCKS)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &clipped, sizeof clipped);
}

int deployment_check_intervals(const struct deployment *deployment, struct ifl_error *error)
{
    double z[DEPLOYMENT_INTERVALS] = {0};
    for (size_t i = 0; i < deployment->n_intervals; i++) {
        const struct deployment_interval *of = &deployment->intervals[i];
        const double value = read_value(deployment, of);
        if (value >= of->low && value <= of->high)
            continue;
        return ifl_fail(error, IFL_E_INPUT,
                        "deployment.intervals: %s%s%s is %.15g, expected a value within its "
                        "interval, %.15g to %.15g",
                        of->section == NUM_BLOCKS ? "" : deployment_sections[of->section].name,
                        of->section == NUM_BLOCKS ? "" : ".",
                        field_of(of->section, of->field)->name, value, of->low, of->high);
    }
    return deployment_correlate(deployment, z)
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "deployment.intervals.correlations: no numbers can be correlated so, "
                          "expected a positive definite matrix");
}

/* Of a normal distribution: 90% lie within so many standard deviations. */
static const double sds_of_90 = 1.6448536269514722;

void deployment_draw(const struct deployment *from, double (*normal)(const void *context, int i),
                     const void *context, struct deployment *to)
{
    double z[DEPLOYMENT_INTERVALS];
    for (size_t i = 0; i < from->n_intervals; i++)
        z[i] = normal(context, deployment_interval_key(&from->intervals[i]));
    (void)deployment_correlate(from, z);
    for (size_t i = 0; i < from->n_intervals; i++) {
        const struct deployment_interval *of = &from->intervals[i];
        const double value = read_value(from, of);
        const double half = z[i] < 0 ? value - of->low : of->high - value;
        write_value(to, of, value + z[i] * half / sds_of_90);
    }
}

/* ---- writing ---- */

static void write_one(const struct deployment_interval *of, const char *indent, FILE *out)
{
    static const struct ifl_param number = {.type = IFL_REAL};
    char low[32], high[32];
    field_print(&number, &of->low, low, sizeof low);
    field_print(&number, &of->high, high, sizeof high);
    fprintf(out, "%s%s: [%s, %s]\n", indent, field_of(of->section, of->field)->name, low, high);
}

static bool has_section(const struct deployment *deployment, int section)
{
    bool has = false;
    for (size_t i = 0; i < deployment->n_intervals; i++)
        has |= deployment->intervals[i].section == section;
    return has;
}

void deployment_write_intervals(const struct deployment *deployment, const char *indent, FILE *out)
{
    char deeper[32];
    if (deployment->n_intervals == 0)
        return;
    fprintf(out, "%sintervals:  # the ends of 90%%\n", indent);
    for (int s = NUM_BLOCKS; s < (int)deployment_n_sections; s++) {
        if (!has_section(deployment, s))
            continue;
        if (s != NUM_BLOCKS)
            fprintf(out, "%s  %s:\n", indent, deployment_sections[s].name);
        snprintf(deeper, sizeof deeper, "%s  %s", indent, s == NUM_BLOCKS ? "" : "  ");
        for (size_t i = 0; i < deployment->n_intervals; i++)
            if (deployment->intervals[i].section == s)
                write_one(&deployment->intervals[i], deeper, out);
    }
    snprintf(deeper, sizeof deeper, "%s  ", indent);
    deployment_write_correlations(deployment, deeper, out);
}
