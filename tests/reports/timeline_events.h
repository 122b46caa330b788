/* Looks into the events of a timeline.json that was read back. */
#ifndef TESTS_REPORTS_TIMELINE_EVENTS_H
#define TESTS_REPORTS_TIMELINE_EVENTS_H

#include <jansson.h>
#include <math.h>

#include "scratch.h"

static json_t *parse(const struct scratch *scratch)
{
    json_error_t wrong;
    char *text = scratch_read(scratch, "timeline.json");
    cr_assert_not_null(text);
    json_t *events = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
    cr_assert_not_null(events, "%d:%d: %s", wrong.line, wrong.column, wrong.text);
    cr_assert(json_is_array(events));
    free(text);
    return events;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static long long number_of(const json_t *event, const char *key)
{
    const json_t *number = json_object_get(event, key);
    cr_assert(json_is_integer(number), "%s is missing", key);
    return json_integer_value(number);
}

static int64_t ns_of(const json_t *event, const char *key)
{
    const json_t *us = json_object_get(event, key);
    cr_assert(json_is_real(us), "%s is missing", key);
    return llround(json_real_value(us) * 1000);
}

static const char *id_of(const json_t *event)
{
    return text_of(json_object_get(event, "id2"), "local");
}

static size_t count_phase(const json_t *events, char phase)
{
    size_t i, n = 0;
    json_t *event;
    json_array_foreach(events, i, event) n += text_of(event, "ph")[0] == phase;
    return n;
}

/* The i-th event of the phase, by name unless that is NULL. */
static const json_t *find(const json_t *events, char phase, const char *name, size_t nth)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        if (text_of(event, "ph")[0] == phase && (!name || !strcmp(text_of(event, "name"), name)) &&
            nth-- == 0)
            return event;
    }
    cr_assert_fail("no such event: %c %s", phase, name ? name : "");
    return NULL;
}

static const json_t *args_of(const json_t *events, char phase, const char *name, size_t nth)
{
    return json_object_get(find(events, phase, name, nth), "args");
}

/* Follows the lifeline of an id: each end closes the innermost open slice, not before its begin.
 * The slices go into `seen` as "name[begin,end] " in nanoseconds, innermost first. */
static void follow(const json_t *events, const char *id, char *seen, size_t n_bytes)
{
    struct {
        const char *name;
        int64_t begin_ns;
    } open[4];
    int64_t last_ns = 0; /* siblings follow each other */
    size_t i, n_open = 0, n_seen = 0;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        const char phase = text_of(event, "ph")[0];
        if ((phase != 'b' && phase != 'e') || strcmp(id_of(event), id) != 0)
            continue;
        const char *name = text_of(event, "name");
        const int64_t at_ns = ns_of(event, "ts");
        cr_assert_str_eq(text_of(event, "cat"), "request");
        if (phase == 'b') {
            cr_assert_lt(n_open, 4);
            cr_assert(n_open == 0 || at_ns >= open[n_open - 1].begin_ns);
            cr_assert_geq(at_ns, last_ns, "%s begins before what is in front of it has ended",
                          name);
            open[n_open].name = name;
            open[n_open++].begin_ns = at_ns;
            continue;
        }
        cr_assert_gt(n_open, 0);
        n_open--;
        cr_assert_str_eq(name, open[n_open].name);
        cr_assert_geq(at_ns, open[n_open].begin_ns);
        last_ns = at_ns;
        n_seen += (size_t)snprintf(seen + n_seen, n_bytes - n_seen, "%s[%lld,%lld] ", name,
                                   (long long)open[n_open].begin_ns, (long long)at_ns);
    }
    cr_assert_eq(n_open, 0, "%s has slices without an end", id);
}

static void expect_lifeline(const json_t *events, const char *id, const char *expected)
{
    char seen[512] = "";
    follow(events, id, seen, sizeof seen);
    cr_expect_str_eq(seen, expected, "%s: %s", id, seen);
}

#endif
