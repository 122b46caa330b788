#include "fit/where.h"

#include <string.h>

enum comparison { LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, UNEQUAL };

struct condition {
    char left[64], right[64];
    enum comparison is;
    bool right_is_number;
    double number;
};

static bool holds(enum comparison is, double a, double b)
{
    switch (is) {
    case LESS:
        return a < b;
    case LESS_OR_EQUAL:
        return a <= b;
    case GREATER:
        return a > b;
    case GREATER_OR_EQUAL:
        return a >= b;
    case EQUAL:
        return a == b;
    case UNEQUAL:
        break;
    }
    return a != b;
}

/* Longer operators come first, so that "<=" is not read as "<". */
static const char *find_comparison(const char *text, enum comparison *is)
{
    static const struct {
        const char *text;
        enum comparison is;
    } all[] = {{"<=", LESS_OR_EQUAL}, {">=", GREATER_OR_EQUAL}, {"!=", UNEQUAL},
               {"<", LESS},           {">", GREATER},           {"=", EQUAL}};
    const char *at = text + strcspn(text, "<>!=");
    for (size_t i = 0; *at && i < sizeof all / sizeof *all; i++)
        if (strncmp(at, all[i].text, strlen(all[i].text)) == 0) {
            *is = all[i].is;
            return at + strlen(all[i].text);
        }
    return NULL;
}

static int parse(const char *text, struct condition *condition, struct ifl_error *error)
{
    char *end;
    const char *right = find_comparison(text, &condition->is);
    const size_t n_left = strcspn(text, "<>!=");
    if (!right || n_left == 0 || n_left >= sizeof condition->left || !*right ||
        strlen(right) >= sizeof condition->right)
        return ifl_fail(error, IFL_E_INPUT,
                        "--where \"%.80s\", expected COLUMN, one of < <= > >= = !=, and a number "
                        "or a column",
                        text);
    snprintf(condition->left, sizeof condition->left, "%.*s", (int)n_left, text);
    snprintf(condition->right, sizeof condition->right, "%s", right);
    condition->number = strtod(right, &end);
    condition->right_is_number = *end == '\0';
    return 0;
}

static int test_row(struct fit_data *data, struct fit_sample *sample, const struct condition *on,
                    int left, int right, struct ifl_error *error)
{
    const struct table *table = &data->tables[sample->table];
    double a, b = on->number;
    if (table_number(table, sample->row, (size_t)left, -1e300, 1e300, &a, error))
        return error->code;
    if (right >= 0 && table_number(table, sample->row, (size_t)right, -1e300, 1e300, &b, error))
        return error->code;
    if (!holds(on->is, a, b))
        sample->op = FIT_NONE;
    return 0;
}

static int apply(struct fit_data *data, const char *text, struct ifl_error *error)
{
    struct condition on = {0};
    bool any = false;
    if (parse(text, &on, error))
        return error->code;
    for (size_t i = 0; i < data->n; i++) {
        const struct table *table = &data->tables[data->samples[i].table];
        const int left = table_column(table, on.left);
        const int right = on.right_is_number ? -1 : table_column(table, on.right);
        if (left < 0 || (right < 0 && !on.right_is_number))
            continue;
        any = true;
        if (test_row(data, &data->samples[i], &on, left, right, error))
            return error->code;
    }
    if (any)
        return 0;
    return ifl_fail(error, IFL_E_INPUT, "--where \"%.80s\": no table has its columns", text);
}

int where_keep(struct fit_data *data, const char *const *conditions, size_t n_conditions,
               struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < n_conditions && !code; i++)
        code = apply(data, conditions[i], error);
    return code;
}
