/* Prints fields as YAML text that gives the same bits when it is read again. */
#include "base/tree.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "inflight/time.h"

/* 17 digits tell any two doubles apart; sign, point and exponent need 8 bytes more. */
enum { MIN_DIGITS = 15, MAX_DIGITS = 17, NUMBER_BYTES = 32 };

static void print_real(double value, char *text, size_t n_bytes)
{
    char number[NUMBER_BYTES] = "";
    for (int digits = MIN_DIGITS; digits <= MAX_DIGITS; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    snprintf(text, n_bytes, "%s", number);
}

static bool prints_ns(double seconds, int64_t ns, char number[NUMBER_BYTES])
{
    for (int digits = MIN_DIGITS; digits <= MAX_DIGITS; digits++) {
        snprintf(number, NUMBER_BYTES, "%.*g", digits, seconds);
        if (ifl_ns_from_s(strtod(number, NULL)) == ns)
            return true;
    }
    return false;
}

/* Beyond 2^53 ns the conversion to seconds rounds: the double that was read may be a neighbour of
 * the one that the nanoseconds give. So the nearest doubles are tried in turn. */
static void print_seconds(int64_t ns, char *text, size_t n_bytes)
{
    char number[NUMBER_BYTES] = "";
    double above = ifl_s_from_ns(ns), below = above;
    for (int steps = 0; steps < 4; steps++) {
        if (prints_ns(above, ns, number) || prints_ns(below, ns, number))
            break;
        above = nextafter(above, INFINITY);
        below = nextafter(below, -INFINITY);
    }
    snprintf(text, n_bytes, "%s", number);
}

/* The text is printed as a document of its own, so that libyaml decides about quotes. */
static void print_text(const char *value, char *text, size_t n_bytes)
{
    struct ifl_error error;
    struct node scalar = {.kind = NODE_SCALAR, .text = (char *)value};
    char *yaml = NULL;
    size_t n_yaml = 0;
    FILE *out = open_memstream(&yaml, &n_yaml);
    *text = '\0';
    if (!out)
        return;
    scalar.quoted = tree_is_null(&scalar);
    const int code = tree_print(&scalar, out, &error);
    if (fclose(out) == 0 && code == 0)
        snprintf(text, n_bytes, "%.*s", (int)strcspn(yaml, "\n"), yaml);
    free(yaml);
}

static void print_choice(const char *choices, int index, char *text, size_t n_bytes)
{
    for (; index > 0 && strchr(choices, '|'); index--)
        choices = strchr(choices, '|') + 1;
    snprintf(text, n_bytes, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void print_int(const struct ifl_param *field, const void *at, char *text, size_t n_bytes)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    if (field->type == IFL_CHOICE)
        print_choice(field->choices, value, text, n_bytes);
    else
        snprintf(text, n_bytes, "%" PRId32, value);
}

static void print_count(const void *at, char *text, size_t n_bytes)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    snprintf(text, n_bytes, "%" PRIu64, value);
}

void field_print(const struct ifl_param *field, const void *base, char *text, size_t n_bytes)
{
    const void *at = (const char *)base + field->offset;
    double real;
    int64_t ns;
    switch (field->type) {
    case IFL_INT:
    case IFL_CHOICE:
        print_int(field, at, text, n_bytes);
        break;
    case IFL_COUNT:
        print_count(at, text, n_bytes);
        break;
    case IFL_REAL:
        memcpy(&real, at, sizeof real);
        print_real(real, text, n_bytes);
        break;
    case IFL_TIME:
        memcpy(&ns, at, sizeof ns);
        print_seconds(ns, text, n_bytes);
        break;
    case IFL_BOOL:
        snprintf(text, n_bytes, "%s", *(const bool *)at ? "true" : "false");
        break;
    case IFL_TEXT:
        print_text(at, text, n_bytes);
        break;
    }
}

static bool may_be_left_out(const struct ifl_param *field)
{
    return field->type == IFL_REAL && field->dflt < field->min;
}

bool field_is_left_out(const struct ifl_param *field, const void *base)
{
    double value = 0;
    if (field->type == IFL_REAL)
        memcpy(&value, (const char *)base + field->offset, sizeof value);
    return may_be_left_out(field) && value == field->dflt;
}

void field_print_default(const struct ifl_param *field, char *text, size_t n_bytes)
{
    if (isnan(field->dflt))
        snprintf(text, n_bytes, "required");
    else if (may_be_left_out(field))
        snprintf(text, n_bytes, "none");
    else if (field->type == IFL_TEXT)
        print_text(field->choices ? field->choices : "", text, n_bytes);
    else if (field->type == IFL_CHOICE)
        print_choice(field->choices, (int)field->dflt, text, n_bytes);
    else if (field->type == IFL_BOOL)
        snprintf(text, n_bytes, "%s", field->dflt != 0 ? "true" : "false");
    else
        print_real(field->dflt, text, n_bytes);
}
